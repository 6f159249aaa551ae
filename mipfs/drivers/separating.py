"""Rows that a separator finds while `branch` searches: they are rows of all nodes from the next batch on.

Where a batch of open nodes is about to be handed out, the separator is asked about the fractional σ of the first of
them, in their order, and before that about those of the root, which is relaxed again while that lifts its bound. What
a batch is told is fixed when it is handed out (`mipfs.inner.unit.ExplorationRules`), and what is asked depends on the
tree alone: neither threads nor who is done first make the rows others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from mipfs.drivers.waiting import unpack_open_node
from mipfs.errors import UsageError
from mipfs.inner.boolean_node import FREE, INSIDE, BooleanRelaxation
from mipfs.inner.rows_node import RowsRelaxation
from mipfs.kernels.node import relaxed_of
from mipfs.kernels.units import OpenNodes
from mipfs.plumbing.arrays import Array, scatter
from mipfs.plumbing.declared import show_value
from mipfs.plumbing.extension import told_by_name
from mipfs.problem import Problem
from mipfs.selection.derived import ChvatalGomory
from mipfs.separators import get_separator
from mipfs.settings import SeparationSettings

Key = tuple[frozenset[tuple[int, int]], int]
"""A row: its coefficients by atom, and its end."""


def check_separated(problem: Problem) -> None:
    """Refuse a separator where there is nothing that it could be about.

    Raises
    ------
    UsageError
    """
    rows = problem.selection.rows
    if not len(rows):
        raise UsageError("separate is for problems with rows over the selection; this one has none, leave it out")
    if len(rows.extra):
        raise UsageError("separate takes no extra variables; leave it out")


class Separation:
    """Asks a separator, and keeps which rows it gave.

    Parameters
    ----------
    problem : Problem
    name : str, optional, of the separator
    settings : SeparationSettings
    """

    def __init__(self, problem: Problem, name: str | None, settings: SeparationSettings) -> None:
        self.settings, self._name = settings, name
        self._separate = None if name is None else get_separator(name)
        self._given = self._shown = problem.selection.given
        if self._separate is not None:
            check_separated(problem)
            # A copy, so that a separator that writes into what it is shown changes no problem.
            self._shown = replace(self._given, rows=self._given.rows.take(range(len(self._given.rows))))
        self._kept = set[Key]()

    @property
    def is_on(self) -> bool:
        """Whether there is a separator, and room for more rows."""
        return self._separate is not None and len(self._kept) < self.settings.most

    def found(self, points: Iterable[Array], must_stop: Callable[[], bool] = bool) -> tuple[ChvatalGomory, ...]:
        """New rows that some σ (p,) break, the most broken first of each; as many as one round takes.

        None where it must stop meanwhile: what a separator that was cut off had yielded by then is chance.

        Raises
        ------
        UsageError
            A derivation does not fit the rows, what is yielded is none, or the separator fails.
        """
        found = list[ChvatalGomory]()
        for sigma in points:
            own = self._broken(sigma, must_stop)
            if own is None:
                return ()
            for _, one, key in sorted(own, key=lambda each: each[0]):
                if key not in self._kept and len(found) < self.settings.at_once and self.is_on:
                    self._kept.add(key)
                    found.append(one)
        return tuple(found)

    def _broken(self, sigma: Array, must_stop: Callable[[], bool]) -> list[tuple[float, ChvatalGomory, Key]] | None:
        """The rows of one answer that σ breaks, each with by how much (negative); None where it must stop."""
        own = list[tuple[float, ChvatalGomory, Key]]()
        with told_by_name(f"separate = {self._name!r}: separate(selection, sigma)", self._separate):
            assert self._separate is not None
            for one in islice(self._separate(self._shown, sigma) or (), self.settings.looked_at):
                if must_stop():
                    return None
                terms, end = self._row_of(one)
                over = sum(value * float(sigma[j]) for j, value in terms.items()) - end
                if over > self.settings.broken:
                    own.append((-over, one, (frozenset(terms.items()), end)))
        return own

    def _row_of(self, one: object) -> tuple[dict[int, int], int]:
        """The row of what was yielded, or an error that names the separator."""
        said = f"separate = {self._name!r}"
        if not isinstance(one, ChvatalGomory):
            raise UsageError(f"{said}: the separator yields {show_value(one)}; it yields derivations (ChvatalGomory)")
        try:
            return one.derived(self._given)
        except UsageError as error:
            raise UsageError(f"{said}: {error}") from None

    def know(self, derived: Sequence[ChvatalGomory]) -> None:
        """Note rows that were found before, by a run that this one goes on with."""
        for one in derived:
            terms, end = one.derived(self._given)
            self._kept.add((frozenset(terms.items()), end))


def is_bound_lifted(before: float, after: float, least: float) -> bool:
    """Whether a bound was lifted by more than a share of its size."""
    return bool(np.isfinite(before) and after > before + least * abs(before))


def relaxation_sigmas(relaxation: RowsRelaxation, nodes: OpenNodes, prices: Array) -> Iterator[Array]:
    """σ (p,) of the relaxations above some open nodes, from whose weights these begin, at prices (m, rows).

    None where weights of single features are not kept (groups, boxes): there the root alone is asked about.
    """
    kernel, problem = relaxation.kernel, relaxation.problem
    if not isinstance(kernel, BooleanRelaxation):
        return
    for at in range(nodes.heads.size):
        states, warm = unpack_open_node(nodes, at, relaxation.alive.size)
        own = relaxation.pricing.of(prices[at]) or relaxation.pricing.none
        inside, free = np.flatnonzero(states == INSIDE), np.flatnonzero(states == FREE)
        columns = np.concatenate([inside, free])
        room = free.size if problem.M is None else max(0, min(problem.M - inside.size, free.size))
        costs = own.penalties(problem.penalty)[relaxation.alive][columns] / kernel.size
        w = warm.w[columns].astype(float) / np.sqrt(kernel.size)
        sigma, tau = np.empty(columns.size), np.empty(columns.size)
        relaxed_of(w, costs, inside.size, room, sigma, np.empty(columns.size, dtype=np.int64), tau)
        yield scatter(problem.atoms.count, relaxation.alive[columns], sigma)
