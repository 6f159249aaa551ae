"""Which selections an estimator allows: rows, a budget and forced features, by name or by position.

A name may be that of a group, such as a column of words (`mipfs.selection.of_groups`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.instance import Instance, Row, misspelling_hint
from mipfs.data.over_weights import ParityRow
from mipfs.errors import RowError, UsageError
from mipfs.selection.of_groups import compile_rows
from mipfs.selection.rows import Rows

WRITE = "give a list of mipfs.Row, or (A, lb, ub) with a column of A for each"


def selection_arguments(
    names: Sequence[str],
    groups: Mapping[str, Sequence[str]] = MappingProxyType({}),
    *,
    rows: Any = None,
    forced_in: Any = (),
    forced_out: Any = (),
    cost: Any = None,
    budget: Any = None,
) -> dict[str, Any]:
    """The keyword arguments of `mipfs.Problem` that say what may be selected beside Σσ ≤ M.

    Parameters
    ----------
    names : (p,) what is selected from
    groups : mapping of a name, such as a column of words, to some of these: it counts as selected where one of them is
    rows : sequence of Row, (A, lb, ub) or None
        The terms of a row are about names, or 0-based positions; A has shape (r, p).
    forced_in, forced_out : sequence of names or 0-based positions, or None
    cost : mapping of name or position to number >= 0, (p,) array-like, or None
    budget : number or None
        Σ cost_j σ_j ≤ budget; what has no cost is free.

    Raises
    ------
    UsageError
        An unknown name, a cost that is negative or no number, a budget without costs.
    RowError
        Rows of another form, or over another number of columns.
    """
    if all(
        given is None or (isinstance(given, tuple) and not given)
        for given in (rows, forced_in, forced_out, cost, budget)
    ):
        return {}
    index = {name: j for j, name in enumerate(names)}
    known = {**groups, **index}
    listed, found = _named_rows(rows, names, known)
    amounts = _feature_costs(cost, names, known)
    if budget is not None:
        if isinstance(budget, bool) or not isinstance(budget, (int, float, np.number)) or not math.isfinite(budget):
            raise UsageError(f"budget = {budget!r} must be a finite number, or None")
        terms = {name: amount for name, amount in amounts.items() if amount > 0}
        if not terms:
            what = "all costs are 0" if amounts else "nothing has a cost"
            raise UsageError(f"budget = {budget!r}, but {what}; give cost, a mapping of name to number")
        listed.append(Row("budget", terms, -math.inf, float(budget)))
    single = {}
    for what, given in (("forced_in", forced_in), ("forced_out", forced_out)):
        asked = _names_of_positions(given, what, names, known)
        listed += [Row.forced(what, name) for name in asked if name not in index]
        single[what] = tuple(name for name in asked if name in index)
    return {"rows": found.stack(compile_rows(listed, index, groups)) if listed else found, **single}


def name_of(key: Any, what: str, names: Sequence[str], index: Mapping[str, Any]) -> str:
    """The name, one of `index`, that a name or a position stands for."""
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if not 0 <= key < len(names):
            raise UsageError(f"{what}: position {int(key)} must lie between 0 and {len(names) - 1}")
        return names[int(key)]
    name = str(key)
    if name not in index:
        raise UsageError(f"{what}: nothing is called {name!r}; {misspelling_hint(name, names)}")
    return name


def names_of(
    given: Any, names: Sequence[str], what: str, known: Mapping[str, Any] | None = None
) -> tuple[str, ...] | None:
    """Names or positions as names, which are among `known`, by default `names`; None where none are given."""
    if given is None:
        return None
    index = {name: j for j, name in enumerate(names)} if known is None else known
    return _names_of_positions(given, what, names, index)


def over_weights(given: Any, data: Instance) -> Any:
    """Rows over the weights whose features are named, or given by 0-based positions; none where none are given."""
    if given is None:
        return ()
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise UsageError(f"weight_rows = {given!r}; give a list of ({{name: coefficient}}, lower, upper)")
    found = []
    for row in given:
        parts = tuple(row) if isinstance(row, (tuple, list)) else ()
        if len(parts) != 3 or not isinstance(parts[0], Mapping):
            raise UsageError(f"weight_rows: {row!r} is no ({{name: coefficient}}, lower, upper)")
        names, index = data.feature_names, data.index
        named = ({name_of(key, "weight_rows", names, index): a for key, a in parts[0].items()}, *parts[1:])
        found.append(ParityRow.of(row.parity, named).as_of(data) if isinstance(row, ParityRow) else named)
    return found


def _names_of_positions(given: Any, what: str, names: Sequence[str], index: Mapping[str, Any]) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"{what} = {given!r}; give a list of names, or of 0-based positions")
    return tuple(dict.fromkeys(name_of(key, what, names, index) for key in given))


def _feature_costs(given: Any, names: Sequence[str], index: Mapping[str, Any]) -> dict[str, float]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        values = np.asarray(given)
        if values.shape != (len(names),) or values.dtype.kind not in "biuf":
            raise UsageError(f"cost has shape {values.shape}; give one number for each of {len(names)}, or a mapping")
        given = dict(zip(names, values.tolist(), strict=True))
    found = {}
    for key, value in given.items():
        name = name_of(key, "cost", names, index)
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not number or not 0 <= value < math.inf:
            raise UsageError(f"cost of {name!r} is {value!r}; give a finite number >= 0")
        found[name] = float(value)
    return found


def _named_rows(given: Any, names: Sequence[str], known: Mapping[str, Any]) -> tuple[list[Row], Rows]:
    """Rows by name, and those of arrays."""
    none = Rows.empty(len(names))
    if given is None:
        return [], none
    if isinstance(given, Row):
        given = [given]
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise RowError(f"rows is a {type(given).__name__}; {WRITE}")
    if all(isinstance(row, Row) for row in given):
        return [_with_names(row, names, known) for row in given], none
    if len(given) != 3 or any(isinstance(part, (Row, str)) for part in given):
        raise RowError(f"rows has {len(given)} parts that are not all rows; {WRITE}")
    A, lb, ub = given
    return [], _from_arrays(A, lb, ub, len(names))


def _with_names(row: Row, names: Sequence[str], index: Mapping[str, Any]) -> Row:
    terms: dict[str, float] = {}
    for key, value in row.terms.items():
        name = name_of(key, f"row {row.name!r}", names, index)
        terms[name] = terms.get(name, 0.0) + float(value)
    return Row(row.name, terms, row.lb, row.ub, row.origin)


def _from_arrays(A: Any, lb: Any, ub: Any, p: int) -> Rows:
    try:
        matrix = sparse.csr_array(A if sparse.issparse(A) else np.atleast_2d(np.asarray(A, dtype=float)), dtype=float)
        ends = [np.broadcast_to(np.asarray(end, dtype=float), (matrix.shape[0],)) for end in (lb, ub)]
    except (TypeError, ValueError) as error:
        raise RowError(f"rows = (A, lb, ub) does not fit together: {error}; {WRITE}") from None
    if matrix.shape[1] != p:
        raise RowError(f"rows over {matrix.shape[1]} columns, but there are {p} to select from; {WRITE}")
    labels = tuple(f"row{r + 1}" for r in range(matrix.shape[0]))
    return Rows(matrix, ends[0], ends[1], labels, ("",) * len(labels))
