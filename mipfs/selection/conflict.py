"""A smallest conflicting set of rows, by name (why no selection is allowed)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipfs.errors import NumericalError
from mipfs.selection.selection import Selection

MAX_ROUNDS = 300
"""Rounds of the search for a minimum set before an irreducible one is accepted."""


def smallest_conflict(selection: Selection) -> tuple[str, ...]:
    """The smallest set of rows without a common selection.

    Every minimal conflict meets the complement of every satisfiable set, so a minimum hitting set of
    the complements collected so far is a lower bound on the conflict; when the hitting set is itself
    a conflict, it is a smallest one. HiGHS's own irreducible sets are for linear programs, and rows
    over binaries may contradict each other only through integrality.

    Returns
    -------
    tuple of str
        Names of rows, ``cardinality``, ``forced_in[name]`` and ``forced_out[name]``; () when satisfiable.
    """
    items = _items(selection)
    everything = list(range(len(items)))
    if _satisfiable(selection, items, everything):
        return ()
    complements: list[list[int]] = []
    for _ in range(MAX_ROUNDS):
        hit = _hitting_set(complements, len(items))
        if not _satisfiable(selection, items, hit):
            return _names(items, hit)
        grown = list(hit)
        for i in everything:
            if i not in hit and _satisfiable(selection, items, [*grown, i]):
                grown.append(i)
        kept = set(grown)
        complements.append([i for i in everything if i not in kept])
    return _names(items, _irreducible(selection, items, everything))


Item = tuple[str, int, str]


def _names(items: Sequence[Item], chosen: Sequence[int]) -> tuple[str, ...]:
    """Each name once: the two sides of one row may be two items."""
    return tuple(dict.fromkeys(items[i][2] for i in chosen))


def _items(selection: Selection) -> list[Item]:
    names = selection.feature_names or tuple(f"x{j + 1}" for j in range(selection.n_features))
    items: list[Item] = [("row", r, name) for r, name in enumerate(selection.rows.names)]
    if selection.M is not None:
        items.append(("cardinality", 0, "cardinality"))
    items += [("in", j, f"forced_in[{names[j]}]") for j in selection.forced_in]
    items += [("out", j, f"forced_out[{names[j]}]") for j in selection.forced_out]
    return items


def _satisfiable(selection: Selection, items: Sequence[Item], keep: Sequence[int]) -> bool:
    chosen = [items[i] for i in keep]
    part = Selection(
        selection.n_features,
        selection.M if any(kind == "cardinality" for kind, _, _ in chosen) else None,
        tuple(j for kind, j, _ in chosen if kind == "in"),
        tuple(j for kind, j, _ in chosen if kind == "out"),
        selection.rows.take([r for kind, r, _ in chosen if kind == "row"]),
    )
    try:
        return part.minimise(np.zeros(selection.n_features))[0] is not None
    except NumericalError:  # what cannot be shown to conflict does not
        return True


def _hitting_set(sets: Sequence[Sequence[int]], size: int) -> list[int]:
    """A minimum set of items that meets each of `sets`."""
    if not sets:
        return []
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import lil_array

    matrix = lil_array((len(sets), size))
    for r, members in enumerate(sets):
        matrix[r, list(members)] = 1.0
    each, covers = np.ones(size), LinearConstraint(matrix.tocsr(), lb=1)
    answer = milp(each, integrality=each, bounds=Bounds(0, 1), constraints=covers)
    return [int(i) for i in np.flatnonzero(answer.x > 0.5)]


def _irreducible(selection: Selection, items: Sequence[Item], candidates: Sequence[int]) -> list[int]:
    """Drop every item whose absence leaves the rest conflicting."""
    kept = list(candidates)
    for i in candidates:
        rest = [k for k in kept if k != i]
        if not _satisfiable(selection, items, rest):
            kept = rest
    return kept
