"""Derived rows: inequalities a'σ ≤ b that every selection of S satisfies, each with the proof that it does.

They stand behind the user's rows in `Selection.rows` and go their way from there on: rows of the masters, prices and
propagation in the nodes of `branch`, multipliers in the certificate. What they do not do is restrict S. The certificate
states each with its derivation, from which the checker makes it anew, exactly, out of the user's rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import UsageError
from mipfs.plumbing.arrays import terms_of
from mipfs.selection.rows import Rows

if TYPE_CHECKING:
    from mipfs.selection.selection import Selection

WIDEST = 2**53
"""Whole numbers of a derived row up to this size are floats."""


@dataclass(frozen=True)
class ChvatalGomory:
    """The row Σ_j ⌊a_j⌋ σ_j ≤ ⌊b⌋, where a'σ ≤ b is a sum of rows of S (Gomory 1958; Chvátal 1973).

    It holds because σ ≥ 0 and because what it bounds is a whole number. The cover inequality of a row is one of these.

    Parameters
    ----------
    rows : mapping of the position of a row of the user's to its multiplier, positive at its upper end, else negative
    cardinality : multiplier ≥ 0 of Σσ ≤ M
    bounds : mapping of the position of an atom to the multiplier ≥ 0 of σ_j ≤ 1
    """

    rows: Mapping[int, Fraction]
    cardinality: Fraction = Fraction(0)
    bounds: Mapping[int, Fraction] = field(default_factory=dict)

    @property
    def _rows_in_use(self) -> dict[int, Fraction]:
        """The rows that count."""
        return {int(r): Fraction(value) for r, value in self.rows.items() if value}

    def derived(self, selection: Selection) -> tuple[dict[int, int], int]:
        """The coefficients by atom and the end; a `UsageError` where the multipliers do not fit the rows."""
        rows = selection.rows
        p = selection.n_features
        if min([self.cardinality, *self.bounds.values()]) < 0 or (selection.M is None and self.cardinality):
            raise UsageError("a derived row has a negative multiplier of a bound, or one of a row that is not there")
        for j in self.bounds:
            if not 0 <= j < p:
                raise UsageError(f"a derived row has a multiplier of σ ≤ 1 of atom {j}; there are {p} atoms, from 0 on")
        end = Fraction(self.cardinality) * (selection.M or 0) + sum(self.bounds.values(), Fraction(0))
        a: dict[int, Fraction] = dict.fromkeys(range(p), Fraction(self.cardinality)) if self.cardinality else {}
        for j, value in self.bounds.items():
            a[j] = a.get(j, Fraction(0)) + value
        for r, value in self._rows_in_use.items():
            limit = float(rows.high[r] if value > 0 else rows.low[r]) if 0 <= r < len(rows) else math.inf
            if not math.isfinite(limit):
                raise UsageError(f"a derived row has a multiplier of row {r} at an end that it does not have")
            end += value * Fraction(limit)
            for j, entry in terms_of(rows.matrix, r):
                a[j] = a.get(j, Fraction(0)) + value * Fraction(entry)
        if any(v for j, v in a.items() if j >= p):
            raise UsageError("the extra variables do not cancel in a derived row")
        found = {j: math.floor(v) for j, v in a.items() if math.floor(v)}
        if max(map(abs, [*found.values(), math.floor(end)])) > WIDEST:
            raise UsageError("a derived row has numbers beyond 2^53")
        return found, math.floor(end)

    def stated(self, selection: Selection) -> dict[str, Any]:
        """The row and its derivation, as a certificate has them."""
        found, end = self.derived(selection)
        names = selection.feature_names
        return {
            "kind": "chvatal-gomory",
            "terms": {names[j]: value for j, value in found.items()},
            "ub": end,
            "rows": [[r, str(value)] for r, value in self._rows_in_use.items()],
            "cardinality": str(Fraction(self.cardinality)),
            "bounds": {names[j]: str(Fraction(value)) for j, value in self.bounds.items()},
        }


def derived_bytes(derived: Sequence[ChvatalGomory]) -> npt.NDArray[np.uint8]:
    """Derivations as bytes, for the state of a run."""
    plain = [
        [
            [[r, str(value)] for r, value in one._rows_in_use.items()],
            str(Fraction(one.cardinality)),
            [[int(j), str(Fraction(value))] for j, value in one.bounds.items()],
        ]
        for one in derived
    ]
    return np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)


def derived_of(kept: npt.NDArray[Any]) -> tuple[ChvatalGomory, ...]:
    """What `derived_bytes` kept; a file may hold anything.

    Raises
    ------
    ValueError
    """
    if kept.dtype != np.uint8 or kept.ndim != 1:
        raise ValueError("derived rows of another kind")
    found = []
    for rows, cardinality, bounds in json.loads(kept.tobytes() or b"[]"):
        rows, bounds = ({int(at): Fraction(text) for at, text in part} for part in (rows, bounds))
        found.append(ChvatalGomory(rows, Fraction(cardinality), bounds))
    return tuple(found)


Family = Callable[["Selection"], Iterable[ChvatalGomory]]
"""A family of cuts: what it derives from the rows of a set S."""


def rows_of(selection: Selection, derivations: Sequence[ChvatalGomory]) -> Rows:
    """The derived rows of a set that has only the user's rows."""
    found = [one.derived(selection) for one in derivations]
    width = selection.rows.matrix.shape[1] - len(selection.rows.extra)
    count = len(found)
    at = [(r, j) for r, (terms, _) in enumerate(found) for j in terms]
    i, j = np.array(at, dtype=np.int64).reshape(-1, 2).T
    values = np.array([value for terms, _ in found for value in terms.values()], dtype=float)
    matrix = sparse.csr_array((values, (i, j)), shape=(count, width))
    ends = np.array([end for _, end in found], dtype=float)
    names = tuple(f"derived row {k + 1}" for k in range(count))
    return Rows(matrix, np.full(count, -np.inf), ends, names, ("",) * count)
