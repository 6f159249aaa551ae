"""Rows over the weights, l ≤ Σ a_j w_j ≤ u with l ≤ 0 ≤ u, by the names of the features and on the user's scale.

Every end is a sample of infinite weight: d'w ≥ −o with d = a, o = −l of a lower end, and d = −a, o = u of an upper one.

    v(σ) = max over α ∈ A, ν ≥ 0 of g(α) − Σ_k ν_k o_k − Σ_j σ_j h_j(ω_j),   ω = X'(y∘α) + Σ_k ν_k d_k

**When floats satisfy a row.** A zero sum of three doubles fails in half of all draws. So a row holds within

    e = 2⁻⁴⁰ (the largest finite of |l|, |u| + W Σ|a_j|),

rounded up to a float, where W is the least power of two that no weight of a feature of any row exceeds; 0 where all are
0. A bound takes l − e and u + e in place of the ends. What a run proves it proves of the W that no optimum exceeds: as
w = 0 keeps every row, ½ w_j² ≤ Σ c_i ℓ(0) there. The W of what is found is smaller, and is what a result states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy import sparse

from mipfs.data.bounds import INTERCEPTS, LARGEST, SMALLEST
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers, Mask, mask_of, rounded_up

FORGIVEN = Fraction(1, 2**40)
"""The allowance of a row, of the numbers that enter it."""
U = 2.0**-53
NORMAL, SURE = 1e-290, 0.25
"""An allowance at least that floats tell; the share of it within which they tell that a row is kept."""
AIMED_SHARE, TIGHT = 2.0**-46, 1e-9
"""Weights are brought into their rows up to this share of what the allowance is one of, less than that: the rest is for
what storing them rounds. A row counts as tight up to the other one."""
DIGITS = 2.0**-46
"""A coefficient of parity below this share of its feature's size is the rounding of equal means."""
SAME = 2.0**-30
"""Share of a column's scale by which two computations of its coefficient of parity differ at most by rounding."""
MOST_STATED = 2**20
"""Samples times rows of parity up to which a result states the groups beside the coefficients."""
MOST_DENSE = 2**24
"""Numbers of all ends that are held with their zeros."""
CANCELLED = 2.0**-40
"""Share of a weight that a move leaves of it, up to which it is the rounding of a zero."""
MOST_TURNS = 60
"""How often weights are brought into the rows that they break, and back between their bounds."""


@dataclass(frozen=True, eq=False)
class Parity:
    """What a row of parity is made of, so that it is made anew of other samples: the mean scores of two groups.

    Attributes
    ----------
    place : (n,) ndarray of int, the group of every sample
    pair : two of them
    names : what these are called
    """

    place: Integers
    pair: tuple[int, int]
    names: tuple[str, str]

    def of(self, samples: Integers) -> Parity:
        """It of some of the samples.

        Raises
        ------
        UsageError
            None of these is in one of the groups.
        """
        found = Parity(self.place[samples], self.pair, self.names)
        for group, name in zip(self.pair, self.names, strict=True):
            if not np.any(found.place == group):
                raise UsageError(
                    f"parity: no sample of the group {name!r} is among {samples.size} that a fold or resampling fits; "
                    "take fewer folds, or larger groups"
                )
        return found

    def coefficients(self, data: Any) -> dict[str, float]:
        """m_A − m_B by name, of the means by the weights of the samples, without what rounding leaves of equal ones.

        They are on the user's scale of the data, an `Instance`, but for a shift.
        """
        first, second = (self._group_means(data, group) for group in self.pair)
        apart = first - second
        size = DIGITS * (np.abs(first) + np.abs(second))
        kept = np.flatnonzero((np.abs(apart) > size) & (np.abs(apart) >= SMALLEST) & (np.abs(apart) <= LARGEST))
        return {data.feature_names[j]: float(apart[j]) for j in kept.tolist()}

    @classmethod
    def of_document(cls, stated: Mapping[str, Any]) -> Parity:
        """It as `document` states it."""
        marks = np.frombuffer(stated["samples"].encode("ascii", "replace"), dtype=np.uint8)
        first, second = stated["groups"]
        return cls(marks.astype(np.int64) - ord("0"), (1, 2), (first, second))

    @property
    def document(self) -> dict[str, Any]:
        """The names of both groups, and of every sample whether it is in the first (1), the second (2), or neither."""
        mark = np.where(self.place == self.pair[0], "1", np.where(self.place == self.pair[1], "2", "0"))
        return {"groups": list(self.names), "samples": "".join(mark.tolist())}

    def _group_means(self, data: Any, group: int) -> Array:
        """The means of all features in a group, (p,)."""
        rows = np.flatnonzero(self.place == group)
        weight = data.sample_weight[rows]
        means: Array = np.asarray((weight / weight.sum()) @ data.block().values[rows], dtype=float).ravel() * data.scale
        return means


class ParityRow(tuple[Any, ...]):
    """({name: coefficient}, lower, upper) of a row of parity, which knows what it is made of.

    Attributes
    ----------
    parity : Parity
    """

    parity: Parity

    @classmethod
    def made(cls, parity: Parity, data: Any, within: float) -> ParityRow:
        """The row of an `Instance`."""
        return cls.of(parity, (parity.coefficients(data), -within, within))

    @classmethod
    def of(cls, parity: Parity, row: tuple[Any, ...]) -> ParityRow:
        """A row that is there, with what it is made of."""
        found = cls(row)
        found.parity = parity
        return found

    def as_of(self, data: Any) -> ParityRow:
        """It as an `Instance` of the same samples computes it, if that differs by rounding alone; else as it is."""
        terms, *ends = self
        if self.parity.place.size != data.n_samples:
            return self
        own = self.parity.coefficients(data)
        names = sorted(terms.keys() | own.keys())
        size = data.scale[[data.index[name] for name in names]]
        here, there = (np.array([one.get(name, 0.0) for name in names]) for one in (own, terms))
        return ParityRow.of(self.parity, (own, *ends)) if np.all(np.abs(here - there) <= SAME * size) else self


@dataclass(frozen=True)
class WeightRow:
    """lower ≤ Σ coefficients_j w_j ≤ upper; an end that is absent is infinite.

    Attributes
    ----------
    coefficients : tuple of (feature, float), none of them 0
    lower, upper : float <= 0 and float >= 0
    parity : Parity or None, what it is made anew of where a part of the samples is fitted
    """

    coefficients: tuple[tuple[str, float], ...]
    lower: float
    upper: float
    parity: Parity | None = field(default=None, compare=False, repr=False)

    def on(self, part: Any, samples: Integers, scale: Mapping[str, float]) -> WeightRow:
        """The row of a part of the data, whose user's columns are those of the whole, less a shift, by `scale`.

        Parity is of the samples of the part; any other row is the same condition on the same weights.
        """
        if self.parity is None:
            return replace(self, coefficients=tuple((name, a / scale[name]) for name, a in self.coefficients))
        parity = self.parity.of(samples)
        return replace(self, coefficients=tuple(parity.coefficients(part).items()), parity=parity)

    def is_parity_of(self, data: Any) -> bool:
        """Whether it says of the samples of an `Instance` by how much the mean scores of two groups differ at most."""
        own = self.parity
        is_one = own is not None and self.lower == -self.upper > -math.inf and own.place.size == data.n_samples
        return is_one and cast("Parity", own).coefficients(data) == self.terms

    @property
    def terms(self) -> dict[str, float]:
        """The coefficients by name."""
        return dict(self.coefficients)

    @cached_property
    def numbers(self) -> tuple[Fraction, Fraction]:
        """The largest finite of |l| and |u|, and Σ|a_j|."""
        return sizes_of([a for _, a in self.coefficients], (self.lower, self.upper))

    def allowance(self, largest: float) -> float:
        """e where no weight of a row's feature exceeds `largest`."""
        end, coefficients = self.numbers
        return rounded_up(FORGIVEN * (end + Fraction(largest) * coefficients))

    def keeps(self, weights: Mapping[str, float], largest: float) -> bool:
        """Whether weights by name, 0 where one is missing, keep it within its allowance."""
        terms = [(a, weights[name]) for name, a in self.coefficients if weights.get(name)]
        e = self.allowance(largest)
        products = [a * w for a, w in terms]
        error = 4.0 * U * math.fsum(map(abs, products))
        if e > NORMAL and error < SURE * e < math.inf:  # mostly floats tell
            total = math.fsum(products)
            if self.lower - SURE * e <= total <= self.upper + SURE * e:
                return True
        exact = sum((Fraction(a) * Fraction(w) for a, w in terms), Fraction(0))
        low = self.lower == -math.inf or exact >= Fraction(self.lower) - Fraction(e)
        return low and (self.upper == math.inf or exact <= Fraction(self.upper) + Fraction(e))

    def written(self) -> dict[str, Any]:
        """It as JSON has it."""
        ends = (end if math.isfinite(end) else None for end in (self.lower, self.upper))
        return {"coefficients": self.terms, **dict(zip(("lower", "upper"), ends, strict=True))}


def allowance(coefficients: Iterable[float], ends: Sequence[float], largest: float) -> float:
    """e of a row, rounded up."""
    end, total = sizes_of(coefficients, ends)
    return rounded_up(FORGIVEN * (end + Fraction(largest) * total))


def sizes_of(coefficients: Iterable[float], ends: Sequence[float]) -> tuple[Fraction, Fraction]:
    """The largest finite end in size, and Σ|a_j|."""
    end = max((abs(Fraction(end)) for end in ends if math.isfinite(end)), default=Fraction(0))
    return end, sum((abs(Fraction(a)) for a in coefficients), Fraction(0))


def power_above(weights: Iterable[float]) -> float:
    """W: the least power of two that no weight exceeds in size; 0 where all are 0."""
    most = max(map(abs, weights), default=0.0)
    if most == 0.0:
        return 0.0
    mantissa, exponent = math.frexp(most)
    return math.ldexp(1.0, exponent - 1 if mantissa == 0.5 else exponent)


def check_weight_rows(given: Any, index: Mapping[str, int], unknown: Callable[[str], str]) -> tuple[WeightRow, ...]:
    """Rows as they were given, checked; those that say nothing are left out.

    Parameters
    ----------
    given : sequence of ({name: coefficient}, lower, upper), or of WeightRow; None or infinity for no end
    index : mapping of feature name to its position
    unknown : says of a name that is no feature which one may have been meant

    Raises
    ------
    UsageError
        By the number of the row.
    """
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        kind = type(given).__name__
        raise UsageError(f"weight_rows is a {kind}; give a list of ({{name: coefficient}}, lower, upper)")
    found = [_checked_row(number, one, index, unknown) for number, one in enumerate(given, 1)]
    says_something = [one for one in found if one.coefficients and (one.lower > -math.inf or one.upper < math.inf)]
    return tuple(dict.fromkeys(says_something))


def _checked_row(number: int, given: Any, index: Mapping[str, int], unknown: Callable[[str], str]) -> WeightRow:
    """A row, checked."""
    said, parity = f"weight_rows, row {number}", getattr(given, "parity", None)
    if isinstance(given, WeightRow):
        given = given.terms, given.lower, given.upper
    try:
        terms, lower, upper = given
    except (TypeError, ValueError):
        terms = lower = upper = None
    if not isinstance(terms, Mapping):
        raise UsageError(f"{said}: {given!r} is no ({{name: coefficient}}, lower, upper), None for no end")
    for name in terms:
        if name not in index:
            if name in INTERCEPTS:
                raise UsageError(f"{said}: {name!r}: the intercept stands in no row over the weights; leave it out")
            raise UsageError(f"{said}: no feature is called {name!r}; {unknown(str(name))}")
    coefficients = {name: _checked_number(a, f"{said}: the coefficient of {name!r}") for name, a in terms.items()}
    low = -math.inf if lower is None else _checked_number(lower, f"{said}: lower", infinite=True)
    high = math.inf if upper is None else _checked_number(upper, f"{said}: upper", infinite=True)
    if not low <= 0.0 <= high:
        end = f"lower = {low!r} is above 0" if low > 0.0 else f"upper = {high!r} is below 0"
        raise UsageError(
            f"{said}: {end}: without any feature all weights are 0, and every selection must be able to keep the row; "
            "rows over weights have lower <= 0 <= upper (a feature that must have a weight stands in forced_in)"
        )
    held = sorted(((name, a) for name, a in coefficients.items() if a != 0.0), key=lambda one: index[one[0]])
    return WeightRow(tuple(held), low + 0.0, high + 0.0, parity)


def _checked_number(value: Any, said: str, *, infinite: bool = False) -> float:
    """A number that can be computed with."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
    try:
        found = float(value) if is_number else math.nan
    except OverflowError:
        found = math.nan
    if math.isnan(found) or (math.isinf(found) and not infinite):
        raise UsageError(f"{said} is {value!r}, which is no finite number")
    if math.isfinite(found) and found != 0.0 and not SMALLEST <= abs(found) <= LARGEST:
        raise UsageError(f"{said} is {value!r}; one that is not 0 must be of a size from {SMALLEST:g} to {LARGEST:g}")
    return found


def of_stated(params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of the parameters of a result, as `check_weight_rows` takes them."""
    found = list[tuple[Any, ...]]()
    for one in params.get("weight_rows") or ():
        row = one["coefficients"], one["lower"], one["upper"]
        parity = one.get("parity")
        found.append(row if parity is None else ParityRow.of(Parity.of_document(parity), row))
    return found


def rows_document(rows: Sequence[WeightRow], largest: float, data: Any = None) -> list[dict[str, Any]]:
    """Rows as JSON has them, with the allowance within which they hold.

    Those of parity state their groups, if these are those of an `Instance`, and not too many.
    """
    found = [one.written() | {"allowance": one.allowance(largest)} for one in rows]
    if data is not None and len(rows) * data.n_samples <= MOST_STATED:
        for row, entry in zip(rows, found, strict=True):
            if row.is_parity_of(data):
                entry["parity"] = cast("Parity", row.parity).document
    return found


@dataclass(frozen=True, eq=False)
class RowEnds:
    """The ends of rows over the weights, on the scale of the data: d'w ≥ −o.

    A row is divided by the least power of two that none of its |a_j|/scale_j exceeds, which its multipliers are of.

    Attributes
    ----------
    rows : tuple of WeightRow
    index : mapping of feature name to its position
    scale : (p,) of the columns
    largest : float, W of what is proven
    """

    rows: tuple[WeightRow, ...]
    index: Mapping[str, int]
    scale: Array
    largest: float

    @cached_property
    def count(self) -> int:
        """How many ends there are: the entries of a dual vector behind those of the samples."""
        return len(self.of)

    @cached_property
    def of(self) -> list[tuple[int, float]]:
        """The row of every end, and 1 of a lower, −1 of an upper one; lower ends first, row after row."""
        found = []
        for r, row in enumerate(self.rows):
            found += [(r, 1.0)] if row.lower > -math.inf else []
            found += [(r, -1.0)] if row.upper < math.inf else []
        return found

    @cached_property
    def units(self) -> list[Fraction]:
        """What every row is divided by."""
        found = []
        for row in self.rows:
            most = max(abs(Fraction(a)) / Fraction(float(self.scale[self.index[name]])) for name, a in row.coefficients)
            found.append(unit_of(most))
        return found

    @cached_property
    def matrix(self) -> Any:
        """d of every end, each entry rounded once, (count, p) csr_array."""
        values, columns, starts = list[float](), list[int](), [0]
        for r, sign in self.of:
            for name, a in self.rows[r].coefficients:
                j = self.index[name]
                exact = Fraction(a) / Fraction(float(self.scale[j])) / self.units[r]
                values.append(sign * float(exact))
                columns.append(j)
            starts.append(len(values))
        shape = (self.count, self.scale.size)
        return sparse.csr_array((np.array(values), np.array(columns, dtype=np.int64), np.array(starts)), shape=shape)

    @cached_property
    def offsets(self) -> Array:
        """o of every end with the allowance of W, rounded up, (count,)."""
        found = []
        for r, sign in self.of:
            row = self.rows[r]
            found.append(
                rounded_up(
                    (Fraction(_offset_without_allowance(row, sign)) + Fraction(row.allowance(self.largest)))
                    / self.units[r]
                )
            )
        return np.array(found)

    @cached_property
    def touched(self) -> Mask:
        """(p,) bool, which features stand in a row."""
        return mask_of(self.scale.size, self.matrix.indices)

    @cached_property
    def _dense_matrix(self) -> Array:
        """`matrix` with its zeros, of which there are few rows."""
        return np.asarray(self.matrix.toarray(), dtype=float)

    def on(self, ids: Integers) -> Array:
        """d of every end on some columns, (count, k)."""
        if self.count * self.scale.size <= MOST_DENSE:
            return self._dense_matrix[:, ids]
        return np.asarray(self.matrix[:, ids].toarray(), dtype=float)

    def pulled(self, nu: Array) -> Array:
        """Σ ν_k d_k, (p,)."""
        return np.asarray(self.matrix.T @ nu, dtype=float)

    def pulled_error(self, nu: Array) -> Array:
        """A bound on how far that is off: every entry is rounded once, and count terms are added."""
        return np.asarray(2.0 * (self.count + 8) * U * (abs(self.matrix).T @ np.abs(nu)))

    def cost(self, nu: Array) -> Array:
        """The terms ν_k o_k that are taken off g, (count,)."""
        return nu * self.offsets

    def largest_of(self, ids: Integers, weights: Array) -> float:
        """W of weights (k,) on the user's scale of the columns `ids`, all different."""
        return power_above(np.asarray(weights)[self.touched[ids]].tolist())

    def hold(self, ids: Integers, weights: Array) -> bool:
        """Whether weights (k,) on the user's scale keep every row within its allowance, and are no larger than W."""
        largest = self.largest_of(ids, weights)
        if not largest <= self.largest:
            return False
        names, values = self._feature_names, np.asarray(weights, dtype=float).tolist()
        by_name = {names[j]: w for j, w in zip(np.asarray(ids).tolist(), values, strict=True) if j in names}
        return all(row.keeps(by_name, largest) for row in self.rows)

    @cached_property
    def _feature_names(self) -> dict[int, str]:
        """The features of all rows, by their positions."""
        return {self.index[name]: name for row in self.rows for name, _ in row.coefficients}

    @cached_property
    def allowances(self) -> Array:
        """What of `offsets` is the allowance, about, (count,)."""
        return np.array([self.rows[r].allowance(self.largest) / float(self.units[r]) for r, _ in self.of])

    @cached_property
    def _allowance_sizes(self) -> tuple[Array, Array]:
        """What an allowance is a share of: of every end the largest end of its row, and Σ|a_j|, about, (count,)."""
        found = [(self.rows[r].numbers, self.units[r]) for r, _ in self.of]
        ends, sums = ([float(numbers[k] / unit) for numbers, unit in found] for k in (0, 1))
        return np.array(ends), np.array(sums)

    @cached_property
    def plain(self) -> Array:
        """`offsets` without it, about."""
        return np.array([_offset_without_allowance(self.rows[r], sign) / float(self.units[r]) for r, sign in self.of])

    def brought_in(self, ids: Integers, w: Array, ends: tuple[Array | float, Array | float]) -> Array:
        """Weights (k,) on the scale of the data, moved as little as brings them into every row, and between `ends`.

        The rows that are broken or tight are met by the nearest weights, those at an end of theirs held in every other
        turn: projections on convex sets in turn. Where that leads nowhere the weights are 0, which keep every row, or
        as near to it as their ends let those be that stand in none.
        """
        low, high = (np.broadcast_to(end, w.shape) for end in ends)
        part = self.on(ids)
        plain, (at_ends, sums) = self.plain, self._allowance_sizes
        touched, scale = np.flatnonzero(self.touched[ids]), self.scale[ids]
        w = np.clip(w, low, high)
        for turn in range(MOST_TURNS):
            size = at_ends + float(np.abs((w / scale)[touched]).max(initial=0.0)) * sums  # as an allowance has it
            short = -plain - part @ w
            if np.all(short <= AIMED_SHARE * size):
                return w
            held = np.flatnonzero(short > -TIGHT * size)
            free = np.flatnonzero((low < w) & (w < high) if turn % 2 == 0 else low < high)
            step = np.linalg.lstsq(part[np.ix_(held, free)], short[held], rcond=1e-12)[0]
            moved = w.copy()
            moved[free] += step
            # Such remainders would shrink from turn to turn, and the allowance with them: no row would ever hold.
            moved[np.abs(moved) <= CANCELLED * np.abs(w)] = 0.0
            w = np.clip(moved, low, high)
        return np.clip(np.zeros(w.size), low, high)


def _offset_without_allowance(row: WeightRow, sign: float) -> float:
    """o of an end without its allowance."""
    return -row.lower if sign > 0 else row.upper


def unit_of(most: Fraction) -> Fraction:
    """The least power of two that a positive number does not exceed."""
    k = most.numerator.bit_length() - most.denominator.bit_length()
    found = Fraction(2) ** (k - 1)
    while found < most:
        found *= 2
    return found
