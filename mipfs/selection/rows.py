"""Linear rows over a selection and the user's extra variables, and when they count as satisfied.

A row over σ holds when, in exact arithmetic,

    lb − δ (a + |lb|)  ≤  Σ_j a_j σ_j + Σ_k b_k z_k  ≤  ub + δ (a + |ub|),      a = max |a_j|, |b_k|,  δ = 2⁻⁴⁰,

so that decimals mean what they say (0.1 + 0.2 ≤ 0.3 holds, though it does not in binary), a row means the same when it
is multiplied by a number, and nothing else is forgiven. Every driver, every claim that nothing is allowed and the
checker use this one definition: it is linear, so bounds and Farkas rays are taken over just the rows that it states.

z are the extra variables that are whole numbers: as σ they enter a row exactly. The others add their terms to the sum
and nothing to a: a row means the same in whatever unit they are. The values that are written down for them are rounded,
for which 2⁻⁴⁸ of their terms is forgiven on top. Where a variable has a cost nothing is: values that the rows do not
allow would be worth less than any that they do.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.checks import as_numbers
from mipfs.data.instance import Row
from mipfs.errors import RowError
from mipfs.kernels.bound import U
from mipfs.plumbing.arrays import Array, Mask, row_of, sum_exactly
from mipfs.plumbing.declared import Names, check_value

ALLOWANCE = 2.0**-40
"""δ: 8,000 units of round-off, so that many decimals may be summed."""
EXTRA_ALLOWANCE = 2.0**-48
"""What is forgiven for the rounding of the values of real extra variables, relative to their terms."""
LEAST_SIZE, MOST_SIZE = 1e-100, 1e100
"""Coefficients and bounds are zero, infinite (bounds), or of a size between these."""


@dataclass(frozen=True, eq=False)
class Extras:
    """The user's extra variables: names, bounds, which are integer, and what a unit of each costs (none: nothing)."""

    names: tuple[str, ...] = ()
    lb: Array = field(default_factory=lambda: np.empty(0))
    ub: Array = field(default_factory=lambda: np.empty(0))
    integer: Mask = field(default_factory=lambda: np.empty(0, bool))
    cost: Array = None  # type: ignore[assignment]  # None is replaced by zeros in __post_init__

    def __post_init__(self) -> None:
        count = len(self.names)
        cost = (
            np.zeros(count) if self.cost is None else np.array(as_numbers(self.cost, "cost"), dtype=float).reshape(-1)
        )
        if cost.size != count:
            raise RowError(f"{cost.size} costs for {count} extra variables; give one for each")
        for name, one in zip(self.names, cost.tolist(), strict=True):
            if one != 0.0 and not LEAST_SIZE <= abs(one) <= MOST_SIZE:
                said = f"the extra variable {name!r} costs {one:g}, which is no number of a size from 1e-100 to 1e100"
                raise RowError(f"{said}; write it in other units")
        object.__setattr__(self, "cost", cost)

    @cached_property
    def is_costed(self) -> bool:
        """Whether some of them cost, or pay, something."""
        return bool(np.any(self.cost != 0.0))

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Bounds (e,), (e,) of the variables; those of integer ones are whole."""
        return np.where(self.integer, np.ceil(self.lb), self.lb), np.where(self.integer, np.floor(self.ub), self.ub)


@dataclass(frozen=True, eq=False)
class Rows:
    """Linear rows ``lb <= matrix @ [sigma; extra] <= ub``.

    Whatever is given is brought into one form: repeated entries summed, zeros left out, entries sorted.

    Attributes
    ----------
    matrix : (r, p + e) csr_array
    lb, ub : (r,) ndarray, -inf and inf when absent
    names, origins : tuple of r str
    extra : Extras, the e extra variables
    largest : (r,) ndarray, optional
        a of every row where that is not the largest coefficient here: features were left out (`of_features`).

    Raises
    ------
    RowError
        A coefficient or bound that is no number or out of the range of 1e-100 to 1e100; parts that do not fit together.
    """

    matrix: Any
    lb: Array
    ub: Array
    names: tuple[str, ...]
    origins: tuple[str, ...]
    extra: Extras = field(default_factory=Extras)
    largest: Array | None = None

    def __post_init__(self) -> None:
        matrix = sparse.csr_array(self.matrix, dtype=float, copy=True)
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise RowError(f"the rows are no valid sparse matrix: {error}") from None
        with np.errstate(over="ignore", invalid="ignore"):
            matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix.sort_indices()
        lb, ub = (np.array(side, dtype=float).reshape(-1) for side in (self.lb, self.ub))
        if not matrix.shape[0] == lb.size == ub.size == len(self.names) == len(self.origins):
            raise RowError(f"{matrix.shape[0]} rows with {lb.size} and {ub.size} bounds and {len(self.names)} names")
        for name, value in (("matrix", matrix), ("lb", lb), ("ub", ub)):
            object.__setattr__(self, name, value)
        self._check_range()

    def __len__(self) -> int:
        return len(self.names)

    def named_apart(self, others: Iterable[str]) -> Rows:
        """The rows with extra variables called by names that neither `others` nor another of them has."""
        if not len(self.extra):
            return self
        names, taken = list[str](), {*others}
        for name in self.extra.names:
            further = (f"{name}#{k}" for k in itertools.count(2))
            free = next(text for text in itertools.chain((name,), further) if text not in taken)
            taken.add(free)
            names.append(free)
        return replace(self, extra=replace(self.extra, names=tuple(names)))

    @classmethod
    def empty(cls, n_features: int) -> Rows:
        """No rows over `n_features` features."""
        return cls(sparse.csr_array((0, n_features)), np.empty(0), np.empty(0), (), ())

    @classmethod
    def given(
        cls, A: Any, lb: npt.ArrayLike, ub: npt.ArrayLike, names: Sequence[str] | None, p: int, start: int = 0
    ) -> Rows:
        """Rows ``lb <= A sigma <= ub`` over p columns; those without `names` are called row1, … from `start` on.

        Raises
        ------
        RowError
            Parts that are no numbers, or do not fit together.
        """
        matrix = sparse.csr_array(A if sparse.issparse(A) else np.atleast_2d(as_numbers(A, "A")))
        if matrix.ndim != 2 or matrix.shape[1] != p:
            raise RowError(f"rows of shape {matrix.shape}, but there are {p} to select from; give (r, {p})")
        r = matrix.shape[0]
        sides = as_numbers(lb, "lb"), as_numbers(ub, "ub")
        if any(side.shape not in ((), (1,), (r,)) for side in sides):
            raise RowError(f"bounds of shapes {sides[0].shape} and {sides[1].shape} for {r} rows; give one for each")
        lower, upper = (np.broadcast_to(side, (r,)).copy() for side in sides)
        labels = check_value("names", names, Names | None) or tuple(f"row{start + i + 1}" for i in range(r))
        if len(labels) != r:
            raise RowError(f"{len(labels)} names for {r} rows; give one for each")
        return cls(matrix, lower, upper, labels, ("",) * r)

    @classmethod
    def of(cls, rows: Sequence[Row], index: Mapping[str, int], extra: Extras | None = None) -> Rows:
        """Compile named rows to sparse ones.

        Raises
        ------
        RowError
            A row over a name that is neither a feature nor an extra variable.
        """
        extra = extra or Extras()
        place = {**index, **{name: len(index) + k for k, name in enumerate(extra.names)}}
        data = []
        columns = []
        pointer = [0]
        for row in rows:
            for name, value in row.terms.items():
                if name not in place:
                    raise RowError(f"row {row.name!r}{_origin_in_words(row.origin)}: no feature is called {name!r}")
                columns.append(place[name])
                data.append(_checked_number(value, row))
            pointer.append(len(columns))
        return cls(
            sparse.csr_array((np.array(data, float), columns, pointer), shape=(len(rows), len(place))),
            np.array([_checked_number(row.lb, row) for row in rows], float),
            np.array([_checked_number(row.ub, row) for row in rows], float),
            tuple(row.name for row in rows),
            tuple(row.origin for row in rows),
            extra,
        )

    def stack(self, other: Rows) -> Rows:
        """These rows and then `other`'s; extra variables of both, kept apart."""
        p = self.matrix.shape[1] - len(self.extra)
        mine, theirs = self.matrix, other.matrix
        pad = sparse.csr_array((mine.shape[0], len(other.extra)))
        gap = sparse.csr_array((theirs.shape[0], len(self.extra)))
        matrix = sparse.vstack(
            [sparse.hstack([mine, pad]), sparse.hstack([theirs[:, :p], gap, theirs[:, p:]])], format="csr"
        )
        extra = Extras(
            self.extra.names + other.extra.names,
            np.concatenate([self.extra.lb, other.extra.lb]),
            np.concatenate([self.extra.ub, other.extra.ub]),
            np.concatenate([self.extra.integer, other.extra.integer]),
            np.concatenate([self.extra.cost, other.extra.cost]),
        )
        return Rows(
            matrix,
            np.concatenate([self.lb, other.lb]),
            np.concatenate([self.ub, other.ub]),
            self.names + other.names,
            self.origins + other.origins,
            extra,
            np.concatenate([self._largest_coefficients, other._largest_coefficients]),
        )

    def take(self, keep: Sequence[int]) -> Rows:
        """Some of the rows, with all extra variables."""
        ids = list(keep)
        return Rows(
            self.matrix[ids],
            self.lb[ids],
            self.ub[ids],
            tuple(self.names[i] for i in ids),
            tuple(self.origins[i] for i in ids),
            self.extra,
            self._largest_coefficients[ids],
        )

    def of_features(self, ids: npt.NDArray[np.int64]) -> Rows:
        """The rows as they hold where all features but `ids` (k,) are out: with the allowances that they have here."""
        p = self.matrix.shape[1] - len(self.extra)
        e = len(self.extra)
        if not len(self) and not e:  # SciPy would make a place for every feature
            return Rows.empty(ids.size)
        kept = self.matrix[:, np.concatenate([ids, p + np.arange(e)])]
        return Rows(kept, self.lb, self.ub, self.names, self.origins, self.extra, self._largest_coefficients)

    @cached_property
    def sizes(self) -> Any:
        """|matrix|, as a csr_array."""
        return abs(self.matrix)

    @cached_property
    def low(self) -> Array:
        """Least activity (r,) at which a row holds: `lb` less its allowance."""
        return np.nextafter(self.lb - self._allowances(self.lb), -np.inf)

    @cached_property
    def high(self) -> Array:
        """Largest activity (r,) at which a row holds: `ub` with its allowance."""
        return np.nextafter(self.ub + self._allowances(self.ub), np.inf)

    def hold(self, x: Array) -> bool:
        """Whether all rows hold at x (p + e,), in exact arithmetic."""
        activity = self.matrix @ x
        size = self.sizes @ np.abs(x)
        error = (np.diff(self.matrix.indptr) + 2) * U * 1.01 * size
        if len(self.extra) and not self.extra.is_costed:
            rounded = np.abs(x)
            rounded[: x.size - len(self.extra)] = 0.0
            rounded[x.size - len(self.extra) :][self.extra.integer] = 0.0
            room = EXTRA_ALLOWANCE * (self.sizes @ rounded)
        else:
            room = np.zeros(len(self))
        low, high = self.low - room, self.high + room
        if np.any(activity - error > high) or np.any(activity + error < low):
            return False
        unclear = (activity + error > high) | (activity - error < low)
        return all(low[r] <= self.activity(int(r), x) <= high[r] for r in np.flatnonzero(unclear))

    def activity(self, r: int, x: Array) -> Fraction:
        """Σ_j a_j x_j of row r, without rounding."""
        columns, a = row_of(self.matrix, r)
        return sum_exactly(x[columns], a)

    def refuted_by(self, low: Array, high: Array) -> int:
        """A row that holds nowhere in the box [low, high] (p + e,); -1 when every row holds somewhere."""
        least, most = self.activities(low, high)
        broken = np.flatnonzero((least > self.high) | (most < self.low) | (self.low > self.high))
        return int(broken[0]) if broken.size else -1

    def activities(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Least and largest activity (r,) over the box [low, high] (p + e,), rounded outwards."""
        up, down = self._positive_and_negative_part
        far = np.maximum(*(np.where(np.isfinite(end), np.abs(end), 0.0) for end in (low, high)))
        error = (np.diff(self.matrix.indptr) + 4) * U * 1.01 * (self.sizes @ far)
        return up @ low + down @ high - error, up @ high + down @ low + error

    @cached_property
    def _positive_and_negative_part(self) -> tuple[Any, Any]:
        """The positive and the negative entries, without zeros: an infinite bound must meet none."""
        parts = self.matrix.copy(), self.matrix.copy()
        for part, side in zip(parts, (np.maximum, np.minimum), strict=True):
            part.data = side(part.data, 0.0)
            part.eliminate_zeros()
        return parts

    @cached_property
    def _largest_coefficients(self) -> Array:
        """max |a_j| of every row over the features and the whole variables, shape (r,)."""
        if self.largest is not None or not len(self):
            return np.empty(0) if self.largest is None else self.largest
        p = self.matrix.shape[1] - len(self.extra)
        found = _largest_of(self.sizes[:, :p])
        if self.extra.integer.any():
            found = np.maximum(found, _largest_of(self.sizes[:, p + np.flatnonzero(self.extra.integer)]))
        return found

    def _allowances(self, bound: Array) -> Array:
        return ALLOWANCE * (self._largest_coefficients + np.where(np.isfinite(bound), np.abs(bound), 0.0))

    def _check_range(self) -> None:
        """Refuse by name what cannot be computed with."""
        sizes = np.abs(self.matrix.data)
        wrong = np.flatnonzero(~((sizes >= LEAST_SIZE) & (sizes <= MOST_SIZE)))
        if wrong.size:
            r = int(np.searchsorted(self.matrix.indptr, wrong[0], side="right")) - 1
            self.refuse(
                r, f"the coefficient {self.matrix.data[wrong[0]]:g} is no number of a size from 1e-100 to 1e100"
            )
        for side, never in ((self.lb, np.inf), (self.ub, -np.inf)):
            far = np.isfinite(side) & (np.abs(side) > MOST_SIZE)
            for r in np.flatnonzero(np.isnan(side) | (side == never) | far)[:1]:
                self.refuse(int(r), f"the bound {side[r]:g} is no number of a size up to 1e100")
        low, high = self.extra.box
        for k in np.flatnonzero(~(low <= high) | (low == np.inf) | (high == -np.inf))[:1]:
            kind = "integer " * bool(self.extra.integer[k])
            lb = self.extra.lb[k]
            ub = self.extra.ub[k]
            name = self.extra.names[k]
            raise RowError(f"the {kind}extra variable {name!r} has no value within its bounds, {lb:g} and {ub:g}")

    def refuse(self, r: int, what: str) -> None:
        """Refuse row `r`.

        Raises
        ------
        RowError
            Always, with the name and the origin of the row.
        """
        raise RowError(f"row {self.names[r]!r}{_origin_in_words(self.origins[r])}: {what}; write it in other units")


def _checked_number(value: Any, row: Row) -> float:
    """A coefficient or a bound; one that is NaN or out of range is refused by the rows that are made of it."""
    number = value if isinstance(value, float) else check_value(f"a number of row {row.name!r}", value, float)
    return float(number)


def _largest_of(sizes: Any) -> Array:
    return np.asarray(sizes.max(axis=1).toarray(), dtype=float).reshape(-1)


def _origin_in_words(origin: str) -> str:
    return f" ({origin})" if origin else ""
