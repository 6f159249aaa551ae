"""Derived rows of a certificate: made anew from the rows of S in rational arithmetic, then rows like these.

A Chvátal-Gomory row is Σ_j ⌊a_j⌋ σ_j ≤ ⌊b⌋, where a'σ ≤ b is a sum of rows of S at one of their ends, of Σσ ≤ M and of
σ_j ≤ 1, each with a multiplier of the right sign. It holds for every selection: σ ≥ 0, and whole numbers are whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.check.rounding import read_rational as read
from mipfs.check.rounding import require
from mipfs.check.statement import Statement, largest, with_allowance

NAMES = frozenset(["kind", "terms", "ub", "rows", "cardinality", "bounds"])
WIDEST = 2**53


def append(statement: Statement, stated: Sequence[Mapping[str, Any]]) -> None:
    """Derive the rows that a certificate states, and let the multipliers of its leaves be about them, too."""
    rows = [_check_derivation(statement, one, f"derived row {k + 1}") for k, one in enumerate(stated)]
    if not rows:
        return
    at = [(k, j) for k, (terms, _) in enumerate(rows) for j in terms]
    i, j = np.array(at, dtype=np.int64).reshape(-1, 2).T
    values = np.array([value for terms, _ in rows for value in terms.values()], dtype=float)
    A = sparse.csc_array((values, (i, j)), shape=(len(rows), statement.A.shape[1]))
    ub = np.array([end for _, end in rows], dtype=float)
    low, high = with_allowance(np.full(ub.size, -np.inf), ub, largest(A))
    statement.A = sparse.csc_array(sparse.vstack([statement.A, A]))
    statement.lb, statement.ub = np.append(statement.lb, low), np.append(statement.ub, high)


def _check_derivation(statement: Statement, one: Mapping[str, Any], name: str) -> tuple[dict[int, int], int]:
    """Coefficients and end of a row, after they were found to be what its derivation makes them, or weaker."""
    require(frozenset(one) == NAMES and one["kind"] == "chvatal-gomory", f"{name} has a derivation of no known kind")
    p = statement.p
    count = len(statement.rows)
    bounds = {int(statement.ids((key,))[0]): _read_rational(value, name) for key, value in one["bounds"].items()}
    cardinality = _read_rational(one["cardinality"], name)
    require(min([cardinality, *bounds.values()]) >= 0, f"{name} takes a bound with a negative multiplier")
    a = dict.fromkeys(range(p), cardinality) if cardinality else {}
    for j, value in bounds.items():
        a[j] = a.get(j, Fraction(0)) + value
    end = cardinality * statement.M + sum(bounds.values(), Fraction(0))
    require(isinstance(one["rows"], list), f"{name} is derived from what is no list of rows")
    for r, text in one["rows"]:
        require(type(r) is int and 0 <= r < count, f"{name} is derived from a row that does not exist")
        value = _read_rational(text, name)
        limit = float(statement.ub[r] if value > 0 else statement.lb[r])
        require(math.isfinite(limit), f"{name} is derived from an end that a row does not have")
        end += value * Fraction(limit)
        span = slice(statement.by_row.indptr[r], statement.by_row.indptr[r + 1])
        for j, entry in zip(statement.by_row.indices[span].tolist(), statement.by_row.data[span].tolist(), strict=True):
            a[j] = a.get(j, Fraction(0)) + value * Fraction(entry)
    require(not any(value for j, value in a.items() if j >= p), f"{name} is about an extra variable")
    found = {j: math.floor(value) for j, value in a.items() if math.floor(value)}
    terms = {int(statement.ids((key,))[0]): _read_integer(value, name) for key, value in one["terms"].items()}
    ub = _read_integer(one["ub"], name)
    require(terms == found and ub >= math.floor(end), f"{name} does not follow from the rows that it is derived from")
    return terms, ub


def _read_rational(text: Any, name: str) -> Fraction:
    require(type(text) is str, f"a multiplier of {name} is no text")
    return read(text.encode(), f"a multiplier of {name}")


def _read_integer(value: Any, name: str) -> int:
    require(type(value) is int and abs(value) <= WIDEST, f"{name} has a number that is no whole one up to 2^53")
    return int(value)
