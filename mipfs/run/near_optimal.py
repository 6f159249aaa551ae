"""All supports within a relative gap of the optimum, or the best K: is this set the answer, or one of forty?

A driver that is asked for them goes on when the gap has closed. It closes a node only once its bound lies above

    L = min(U + g|U|, value of the K-th best support found so far),

so no support of a value up to L is lost, and when no node is open all of them have been evaluated. A support that only
adds features of weight 0 to another one has the same value (not where it changes what extra variables cost). There may
be millions of those: they are counted (`mipfs.run.ties`), and a node that holds nothing else is closed
(`EvaluatedSupports.has_ties_only`).
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Mask
from mipfs.run.listed import ListedSupport, show_supports, values_by_name
from mipfs.run.outcome import SupportValue
from mipfs.run.stored import as_stored

if TYPE_CHECKING:
    from mipfs.problem import Problem
    from mipfs.run.run import Run

Bytes = npt.NDArray[np.uint8]

SEARCH_ALLOWANCE = 1e-7
"""Relative allowance on the limit of the search, and the relative difference of two values up to which a support that
only adds features counts as worth the same: what a listed value may be off by."""
LISTED_GAP = 1e-9
"""Relative gap to which supports are evaluated for a list: the weight of a feature then shows whether it matters."""
ROUNDING_ALLOWANCE = 1e-9
"""What sums and the rounding of dual vectors may take off a proven value, relative."""


def is_asked(run: Run) -> bool:
    """Whether the options of the run ask for near-optimal supports.

    Raises
    ------
    UsageError
        A gap of 1 or more for the ρ-form, whose values are negative.
    """
    gap = run.options.pool_gap
    size = run.options.pool_size
    if gap is not None and gap >= 1.0 and run.problem.margin == "rho":
        raise UsageError(f"pool_gap = {gap!r} must be in [0, 1) for the ρ-form, for example 0.01")
    return gap is not None or size is not None


def costs_something(problem: Problem) -> Mask:
    """The atoms (p,) that are no ties: they, or extra variables beside them, cost something, or have a weight."""
    dear = (problem.penalty > 0.0) | problem.excluding
    return dear | problem.selection.priced if problem.has_extra_costs else dear


def _least_of(objective: Any) -> Any:
    """What is not told from an objective, or from several, is worth at least this."""
    return objective - SEARCH_ALLOWANCE * np.abs(objective)


def check_packed(keys: npt.NDArray[Any], width: int) -> None:
    """Refuse what are no selections (k, width) that `np.packbits` packed.

    Raises
    ------
    ValueError
    """
    if keys.dtype != np.uint8 or keys.ndim != 2 or (keys.shape[0] and keys.shape[1] != width):
        raise ValueError("the supports are of another number of atoms")


class EvaluatedSupports(dict[bytes, SupportValue]):
    """The supports that a run has evaluated, by their packed σ, and which of them belong to its list.

    Parameters
    ----------
    run : Run
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self._counted: list[float] = []
        self._rows: Bytes = np.empty((0, -(-run.problem.atoms.count // 8)), dtype=np.uint8)
        self._objectives = np.empty(0)

    @cached_property
    def _costly_atoms(self) -> Bytes:
        """The atoms that cost something, or that change what extra variables cost."""
        return np.packbits(costs_something(self.run.problem))

    def add(self, key: bytes, value: SupportValue) -> None:
        """Take note of a support; one that may be padded counts for the K best once `count` says so."""
        self[key] = value
        if not value.is_padded:
            insort(self._counted, value.objective)

    def improve(self, sigma: Mask, objective: float, lower: float) -> None:
        """Take note of another evaluation of a support."""
        key = np.packbits(sigma).tobytes()
        one = self[key]
        self[key] = replace(one, objective=min(one.objective, objective), lower=max(one.lower, lower))

    def count(self, key: bytes) -> None:
        """Let a support that may be padded count for the K best: it is none of a smaller one's ties."""
        insort(self._counted, self[key].objective)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of them as arrays, for the state of a run."""
        values = [[one.objective, one.lower, one.is_padded, one.stands_at] for one in self.values()]
        return {
            "found_keys": np.frombuffer(b"".join(self), dtype=np.uint8).reshape(-1, self._rows.shape[1]),
            "found_values": np.array(values, dtype=float).reshape(-1, 4),
            "found_counted": np.array(self._counted),
        }

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on with those that `arrays` kept.

        Raises
        ------
        ValueError
            They are of other atoms, or no values.
        """
        counted = kept["found_counted"]
        check_packed(kept["found_keys"], self._rows.shape[1])
        if counted.ndim != 1 or not np.isfinite(counted).all() or np.any(counted[1:] < counted[:-1]):
            raise ValueError("what counts of the supports is no list of values")
        if np.isnan(kept["found_values"]).any():
            raise ValueError("a support has a value that is no number")
        for key, (objective, lower, padded, at) in zip(kept["found_keys"], kept["found_values"].tolist(), strict=True):
            self[key.tobytes()] = SupportValue(objective, lower, bool(padded), at)
        self._counted = kept["found_counted"].tolist()

    def limit(self, values: Sequence[float]) -> float:
        """The largest value (unit margin) that is asked for, rounded up; ∞ where K supports are still to come.

        Parameters
        ----------
        values : of the supports that count, ascending
        """
        gap = self.run.options.pool_gap
        size = self.run.options.pool_size
        best = self.run.objective
        limit = math.inf
        if gap is not None:  # the ρ-form reports −1/(4v)
            limit = best + gap * abs(best) if self.run.problem.margin == "unit" else best / (1.0 - gap)
            limit = best if gap == 0.0 or best == 0.0 else math.nextafter(limit, math.inf)
        return min(limit, values[size - 1]) if size is not None and len(values) >= size else limit

    @property
    def cutoff(self) -> float:
        """Nodes are closed from here on: just above the limit; −∞ when no list is asked for."""
        if not self.run.wants_all:
            return -math.inf
        limit = self.limit(self._counted)
        return math.nextafter(limit + SEARCH_ALLOWANCE * abs(limit), math.inf) if limit < math.inf else limit

    def has_ties_only(self, inside: Mask, free: Mask, bound: float) -> bool:
        """Whether a node holds nothing but supports that add features of weight 0 to one that was evaluated.

        That is so where it has all of the latter fixed, nothing else that it may take costs anything, and its bound
        reaches that one's value: adding features never raises v(σ), but for those whose bounds exclude 0.

        Parameters
        ----------
        inside, free : (count,) atoms that are fixed to 1, and those that may still be taken
        bound : float, of the node
        """
        if len(self) > len(self._objectives):
            self._rows = np.frombuffer(b"".join(self), dtype=np.uint8).reshape(-1, self._rows.shape[1])
            self._objectives = np.array([one.objective for one in self.values()])
        level = bound if self.run.problem.has_extra_costs else max(bound, 0.0)
        packed = np.packbits(inside)
        dear = np.packbits(inside | free) & self._costly_atoms
        rows = self._rows[np.flatnonzero(_least_of(self._objectives) <= level)]
        fits = np.flatnonzero(~np.any(rows & ~packed, axis=1) & ~np.any(dear & ~rows, axis=1))
        if not fits.size:
            return False
        key = rows[fits[0]].tobytes()
        one = self[key]  # it stands in the list wherever one of its ties does
        self[key] = replace(one, stands_at=min(one.stands_at, level))
        return True

    def listed(self) -> list[tuple[Mask, SupportValue]]:
        """The supports that are not proven above the limit, best first, without those that are another one's ties."""
        ranked = sorted(self.items(), key=lambda item: item[1].objective)
        limit = self.limit(())
        count = self.run.problem.atoms.count
        least = {key: min(one.lower, one.stands_at) for key, one in ranked}
        near = {key: one for key, one in ranked if least[key] - ROUNDING_ALLOWANCE * abs(least[key]) <= limit}
        kept = _minimal_supports(near, self._costly_atoms)
        bits = {key: np.unpackbits(np.frombuffer(key, dtype=np.uint8), count=count).astype(bool) for key in kept}
        return [(bits[key], one) for key, one in near.items() if key in kept][: self.run.options.pool_size]

    def is_complete(self, listed: Sequence[tuple[Mask, SupportValue]]) -> bool:
        """Whether no other support belongs to the list, and all that was evaluated beside it is proven to be none.

        The search is over, and closed no node below the list's limit.
        """
        limit = self.limit([one.objective for _, one in listed])
        return self.run.closed and limit <= self.limit(self._counted) and self._rules_out_others(listed, limit)

    def _rules_out_others(self, listed: Sequence[tuple[Mask, SupportValue]], limit: float) -> bool:
        """Whether the supports that are not listed are proven to be worth the limit, or are ties of those that are.

        Numbers far apart may leave an SVM's two values apart by more than tells a support from the last one listed:
        then nothing shows that it belongs behind it, and `verify` would refuse a list that is called complete.
        """
        size = self.run.options.pool_size
        full = size is not None and len(listed) >= size
        least = limit - SEARCH_ALLOWANCE * abs(limit) if full else limit
        rows = {np.packbits(sigma).tobytes(): np.packbits(sigma) for sigma, _ in listed}
        smaller = np.array([*rows.values()], dtype=np.uint8).reshape(len(listed), -1)
        worth = _least_of(np.array([one.objective for _, one in listed]))
        for key, one in self.items():
            proven = one.lower + ROUNDING_ALLOWANCE * abs(one.lower)
            if proven < least and key not in rows:
                row = np.frombuffer(key, dtype=np.uint8)
                is_tie = ~np.any(smaller & ~row, axis=1) & ~np.any(row & ~smaller & self._costly_atoms, axis=1)
                if not np.any(is_tie & (worth <= proven)):
                    return False
        return True


class SideSupports(EvaluatedSupports):
    """The supports that a search beside a run has evaluated, which has seen those of the run, too.

    Parameters
    ----------
    run : Run, of that search; no list is asked of it
    whole : EvaluatedSupports, of the run that it is beside
    """

    def __init__(self, run: Run, whole: EvaluatedSupports) -> None:
        super().__init__(run)
        self._whole = whole

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._whole

    def __missing__(self, key: bytes) -> SupportValue:
        return self._whole[key]

    def forget(self) -> None:
        """Forget its own, of which the run has taken note."""
        self.clear()
        self._counted.clear()


def _minimal_supports(near: Mapping[bytes, SupportValue], dear: Bytes) -> set[bytes]:
    """The keys of those that are no smaller one with features of weight 0 and of no cost; `dear` do cost something."""
    kept = {key for key, one in near.items() if not one.is_padded}
    rows = {key: np.frombuffer(key, dtype=np.uint8) for key in near}
    padded = (key for key, one in near.items() if one.is_padded)
    for key in sorted(padded, key=lambda key: int.from_bytes(key).bit_count()):
        row = rows[key]
        level = near[key].objective
        same = [rows[one] for one in kept if _least_of(near[one].objective) <= level]
        smaller = np.array(same, dtype=np.uint8).reshape(-1, row.size)
        if not np.any(~np.any(smaller & ~row, axis=1) & ~np.any(row & ~smaller & dear, axis=1)):
            kept.add(key)
    return kept


def near_optimal(run: Run) -> Mapping[str, Any] | None:
    """What the run found, for its result; None when it was not asked for.

    The dual vectors that show the objectives from below are left in ``run.outcome.beside``.

    Returns
    -------
    mapping or None
        ``complete``: whether no other support belongs to the list (False when a limit stopped the run); ``gap`` and
        ``size``, as asked; ``supports``: best first, each with ``objective``, ``gap`` above the best one (relative),
        ``selected``, its names, ``weights`` and ``intercept`` on the user's scale, ``ties``: how many other supports
        that the rows allow contain it and have the same value, for what they add has weight 0 and no cost; None where
        they were not counted (`mipfs.run.ties`, or a list that is not complete); and ``extra``, values of the extra
        variables at which the rows hold, where there are any. ``share``: name to the share of these supports in which
        it stands, largest first. Values are exact to 1e-6, but for supports that no arithmetic of doubles tells from
        the limit.
    """
    found = run.outcome.found
    if found is None:
        return None
    problem = run.problem
    names = run.problem.atoms.names
    ties = {np.packbits(sigma).tobytes(): count for sigma, _, count in found.supports}
    listed = _rank_supports(run, (sigma for sigma, _, _ in found.supports))
    run.outcome.beside = [one.dual for one in listed]
    best = problem.reported(listed[0].stored.objective) if listed else math.nan
    supports = []
    times = Counter[str]()
    for one in listed:
        sigma = one.found.sigma(problem.atoms.count)
        objective = problem.reported(one.stored.objective)
        selected = [names[int(j)] for j in one.found.selected]
        entry = {
            "objective": objective,
            "gap": gap_above(objective, best),
            "selected": selected,
            "weights": one.stored.weights,
            "intercept": one.stored.intercept,
            "ties": ties[np.packbits(sigma).tobytes()],
        }
        values = values_by_name(run, sigma)
        supports.append(entry | ({} if values is None else {"extra": values}))
        times.update(selected)
    return {
        "complete": found.complete and len(listed) == len(found.supports),
        "gap": run.options.pool_gap,
        "size": run.options.pool_size,
        "supports": supports,
        "share": {name: count / len(listed) for name, count in times.most_common()},
    }


def _rank_supports(run: Run, supports: Iterable[Mask]) -> list[ListedSupport]:
    """The supports that can be shown, best first as they are stored; the best of all becomes the incumbent.

    Storing may turn the order of two that are equal but for an ulp. Of equal ones the incumbent stays the first. Where
    rounding leaves the best one's value in doubt, nothing is said of how far the others lie above it.
    """
    each = list(show_supports(run, supports))
    if not each or run.incumbent is None:
        return []
    chosen, value = run.incumbent.selected, as_stored(run.problem, run.incumbent).objective
    each.sort(key=lambda one: (one.stored.objective, not np.array_equal(one.found.selected, chosen)))
    if each[0].stored.objective > value:
        return []
    run.incumbent = each[0].found
    if run.options.pool_gap is None:
        return each
    best, *values = (run.problem.reported(one.stored.objective) for one in each)  # it may be better than in the search
    limit = best + run.options.pool_gap * abs(best)
    return each[: 1 + bisect_right(values, limit + SEARCH_ALLOWANCE * abs(limit))]


def gap_above(objective: float, best: float) -> float:
    """(objective − best)/|best|: 0 where they are equal, inf at a best one of 0 otherwise."""
    return 0.0 if objective == best else (objective - best) / abs(best) if best else math.inf
