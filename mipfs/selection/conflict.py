"""A smallest conflicting set of rows, by name (why no selection is allowed)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mipfs.errors import NumericalError
from mipfs.plumbing.arrays import Mask
from mipfs.plumbing.own_threads import in_own_thread
from mipfs.selection.selection import Selection
from mipfs.solvers import highs

MAX_ROUNDS = 300
"""Rounds of the search for a minimum set before an irreducible one is accepted."""


@in_own_thread
def smallest_conflict(selection: Selection, must_stop: Callable[[], bool] = bool) -> tuple[str, ...]:
    """The smallest set of rows without a common selection.

    Every minimal conflict meets the complement of every satisfiable set, so a minimum hitting set of
    the complements collected so far is a lower bound on the conflict; when the hitting set is itself
    a conflict, or an irreducible one is as small, it is a smallest one. HiGHS's own irreducible sets are
    for linear programs, and rows over binaries may contradict each other only through integrality.

    Parameters
    ----------
    selection : Selection
    must_stop : callable, optional
        Asked again and again; once it says so, the conflict found so far is returned, however large.

    Returns
    -------
    tuple of str
        Names of rows, ``cardinality``, ``forced_in[name]`` and ``forced_out[name]``; () when satisfiable.
    """
    items = _conflict_items(selection)
    everything = list(range(len(items)))
    if _find_satisfying(selection, items, everything)[0]:
        return ()
    smallest = _drop_superfluous(selection, items, everything, must_stop)
    complements: list[list[int]] = []
    for _ in range(MAX_ROUNDS):
        hit = _hitting_set(complements, len(items), must_stop)
        if hit is None or len(hit) >= len(smallest) or must_stop():
            break
        possible, sigma = _find_satisfying(selection, items, hit)
        if not possible:
            return _item_names(items, hit)
        grown = _find_met(selection, items, sigma) | set(hit)
        for i in everything:
            if i in grown or must_stop():
                continue
            possible, sigma = _find_satisfying(selection, items, [*sorted(grown), i])
            if possible:
                grown |= _find_met(selection, items, sigma) | {i}
        complements.append([i for i in everything if i not in grown])
    return _item_names(items, smallest)


Item = tuple[str, int, str]


def _item_names(items: Sequence[Item], chosen: Sequence[int]) -> tuple[str, ...]:
    """Each name once: the two sides of one row may be two items."""
    return tuple(dict.fromkeys(items[i][2] for i in chosen))


def _conflict_items(selection: Selection) -> list[Item]:
    names = selection.feature_names or tuple(f"x{j + 1}" for j in range(selection.n_features))
    return [
        *(("row", r, name) for r, name in enumerate(selection.rows.names)),
        *([] if selection.M is None else [("cardinality", 0, "cardinality")]),
        *(("in", j, f"forced_in[{names[j]}]") for j in selection.forced_in),
        *(("out", j, f"forced_out[{names[j]}]") for j in selection.forced_out),
    ]


def _find_satisfying(selection: Selection, items: Sequence[Item], keep: Sequence[int]) -> tuple[bool, Mask | None]:
    """Whether some selection meets these items, and one that does, if it was found."""
    chosen = [items[i] for i in keep]
    part = Selection(
        selection.n_features,
        selection.M if any(kind == "cardinality" for kind, _, _ in chosen) else None,
        tuple(j for kind, j, _ in chosen if kind == "in"),
        tuple(j for kind, j, _ in chosen if kind == "out"),
        selection.rows.take([r for kind, r, _ in chosen if kind == "row"]),
    )
    try:
        sigma = part.minimise(np.zeros(selection.n_features))[0]
    except NumericalError:  # what cannot be shown to conflict does not
        return True, None
    return sigma is not None, sigma


def _find_met(selection: Selection, items: Sequence[Item], sigma: Mask | None) -> set[int]:
    """Items that a selection surely meets, whatever the extra variables are."""
    if sigma is None:
        return set()
    rows = selection.rows
    activity = rows.matrix[:, : selection.n_features] @ sigma.astype(float)
    alone = np.diff(rows.matrix[:, selection.n_features :].tocsr().indptr) == 0
    holds = alone & (activity >= rows.lb) & (activity <= rows.ub)

    def is_met(kind: str, place: int) -> bool:
        if kind == "row":
            return bool(holds[place])
        if kind == "cardinality":
            return bool(selection.M is not None and np.count_nonzero(sigma) <= selection.M)
        return bool(sigma[place] == (kind == "in"))

    return {i for i, (kind, place, _) in enumerate(items) if is_met(kind, place)}


def _hitting_set(sets: Sequence[Sequence[int]], size: int, must_stop: Callable[[], bool]) -> list[int] | None:
    """A minimum set of items that meets each of `sets`; None where HiGHS finds none."""
    if not sets:
        return []
    program = highs.HighsModel()
    program.add_columns(np.zeros(size), np.ones(size))
    program.set_costs(np.ones(size))
    program.make_whole(np.arange(size))
    for members in sets:
        program.add_row(1.0, highs.highs_infinity(), np.array(members), np.ones(len(members)))
    found = highs.solve(program, stop=must_stop)
    return None if found.status != "optimal" or found.values is None else np.flatnonzero(found.values > 0.5).tolist()


def _drop_superfluous(
    selection: Selection, items: Sequence[Item], candidates: Sequence[int], must_stop: Callable[[], bool]
) -> list[int]:
    """Drop every item whose absence leaves the rest conflicting, many at a time while that goes well."""
    kept = list(candidates)
    waiting = list(candidates)
    size = max(1, len(candidates) // 2)
    while waiting and not must_stop():
        some = set(waiting[:size])
        rest = [k for k in kept if k not in some]
        if not _find_satisfying(selection, items, rest)[0]:
            kept = rest
            waiting = waiting[size:]
            size = 2 * size
        elif size > 1:
            size = max(1, size // 4)
        else:
            waiting = waiting[1:]
    return kept
