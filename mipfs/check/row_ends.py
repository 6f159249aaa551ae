"""Rows over the weights, l ≤ Σ a_j w_j ≤ u with l ≤ 0 ≤ u on the user's scale, as a result states them.

    v(σ) ≥ g(α) − Σ_k ν_k o_k − Σ_g ½ σ_g s_g,   ω = X'(α∘y) + Σ_k ν_k d_k,   ν ≥ 0

Every end of a row is d'w ≥ −o on the scaled data: with the allowance e that the result states, which is that of the
largest weight that it states, o = (e − l)/N and d = a/(N scale), or o = (u + e)/N and d = −a/(N scale). N is the least
power of two that no |a_j|/scale_j exceeds.

**In floating point.** An entry of d is rounded once, and so is ν_k d_k: with the sum over E ends, and the sum with
X'(α∘y), ω is off by 1.01 (E + 4) u Σ ν_k |d_kj| more, and an ulp of itself. o is rounded up, and ν'o is a sum of
products of integers and floats that is rounded up, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from mipfs.check import phrases
from mipfs.check.rounding import TINY, Array, CertificateError, Document, U, above, number, require
from mipfs.data.instance import Instance

FORGIVEN = Fraction(1, 2**40)
SMALLEST, LARGEST = 1e-100, 1e100
APART = 2.0**-50
"""What a coefficient of parity may be off, of the largest value of its feature, times the samples and 64."""
FIELDS = {"coefficients", "lower", "upper", "allowance"}


class RowsOverWeights:
    """The rows of `params.weight_rows`, and their ends.

    Attributes
    ----------
    count : int, how many ends there are
    offsets : (count,) o, rounded up
    columns, d : (m,) the features that stand in a row, and (count, m) their d
    """

    def __init__(self, stated: Any, document: Document, data: Instance) -> None:
        require(isinstance(stated, list) and stated, "weight_rows: no list of rows stands there")
        self.rows = [_exact_row(k, one, data) for k, one in enumerate(stated, 1)]
        self.groups = [_groups(k, one, data) for k, one in enumerate(stated, 1)]
        named = {name for terms, *_ in self.rows for name in terms}
        largest = _power_of_two_above(
            w for weights in _weights_of(document) for name, w in weights.items() if name in named
        )
        for k, (terms, low, high, e) in enumerate(self.rows, 1):
            right = _row_allowance(terms.values(), (low, high), largest)
            require(e == right, f"weight_rows, row {k}: the allowance is {e!r}, and {right!r} of the stated weights")
        self.columns = np.array(sorted(data.index[name] for name in named), dtype=np.int64)
        place = {int(j): k for k, j in enumerate(self.columns)}
        offsets, entries = list[float](), list[dict[int, float]]()
        for terms, low, high, e in self.rows:
            sizes = {data.index[name]: a / Fraction(float(data.scale[data.index[name]])) for name, a in terms.items()}
            unit = _power_of_two_not_below(max(map(abs, sizes.values())))
            for end, sign in ((None if low is None else -low, 1), (high, -1)):
                if end is not None:
                    offsets.append(above((end + Fraction(e)) / unit))
                    entries.append({place[j]: sign * float(a / unit) for j, a in sizes.items()})
        self.count = len(offsets)
        self.offsets = np.array(offsets)
        self.d = np.zeros((self.count, self.columns.size))
        for k, one in enumerate(entries):
            self.d[k, list(one)] = list(one.values())

    def g_below(self, g: Array, nu: Array) -> Array:
        """g − ν'o of dual vectors, (B,) and (B, count), rounded down."""
        cost = nu @ self.offsets
        cost = cost * (1.0 + 2.0 * (self.count + 4) * U) + self.count * TINY
        return np.where(nu.any(axis=1), np.nextafter(g - cost, -math.inf), g)

    def added(self, at: int, omega: Array, radius: Array, nu: Array) -> tuple[Array, Array]:
        """ω and how far it may be off, (B, k), of the columns from the one at `at` on, with the part of the rows."""
        here = (self.columns >= at) & (self.columns < at + omega.shape[1])
        if not here.any() or not nu.any():
            return omega, radius
        own, d = self.columns[here] - at, self.d[:, here]
        omega, radius = omega.copy(), radius.copy()
        radius[:, own] += 1.01 * (self.count + 4) * U * (nu @ np.abs(d)) + self.count * TINY
        omega[:, own] += nu @ d
        radius[:, own] += 2.0 * U * np.abs(omega[:, own])
        return omega, radius

    def check_weights(self, weights: Mapping[str, Any], whose: str) -> None:
        """Refuse a classifier whose weights break a row by more than its allowance."""
        for k, (terms, low, high, e) in enumerate(self.rows, 1):
            total = sum((a * Fraction(weights[name]) for name, a in terms.items() if name in weights), Fraction(0))
            broken = f"the weights of {whose} break row {k} over the weights: their sum is {float(total)!r}"
            require(low is None or total >= low - Fraction(e), broken)
            require(high is None or total <= high + Fraction(e), broken)

    @property
    def stated(self) -> list[tuple[dict[str, float], float | None, float | None]]:
        """Coefficients and ends of every row."""
        return [
            (
                {name: float(a) for name, a in terms.items()},
                None if low is None else float(low),
                None if high is None else float(high),
            )
            for terms, low, high, _ in self.rows
        ]

    def words(self) -> list[str]:
        """The rows, a line each."""
        return [
            phrases.weight_row({name: float(a) for name, a in terms.items()}, low, high, e, groups=groups)
            for (terms, low, high, e), groups in zip(self.rows, self.groups, strict=True)
        ]


def _exact_row(
    k: int, stated: Any, data: Instance
) -> tuple[dict[str, Fraction], Fraction | None, Fraction | None, float]:
    """Coefficients, ends and allowance of a row."""
    said = f"weight_rows, row {k}"
    require(isinstance(stated, Mapping) and {*stated} - {"parity"} == FIELDS, f"{said} has not the fields of one")
    terms = stated["coefficients"]
    require(isinstance(terms, Mapping) and terms, f"{said} has no coefficients")
    for name, a in terms.items():
        require(name in data.index, f"{said}: the data has no feature {name!r}")
        size = abs(number(a, f"{said}: a coefficient"))
        require(SMALLEST <= size <= LARGEST, f"{said}: a coefficient is {a!r}")
    ends = []
    for side, sign in (("lower", -1), ("upper", 1)):
        end = stated[side]
        if end is not None:
            size = sign * number(end, f"{said}: {side}")
            require(size == 0 or SMALLEST <= size <= LARGEST, f"{said}: {side} is {end!r}")
        ends.append(None if end is None else Fraction(end))
    require(ends != [None, None], f"{said} has no end")
    e = number(stated["allowance"], f"{said}: the allowance")
    return {str(name): Fraction(a) for name, a in terms.items()}, ends[0], ends[1], e


def _groups(k: int, stated: Mapping[str, Any], data: Instance) -> tuple[str, str] | None:
    """The names of the groups whose mean scores a row is about, its coefficients recomputed; None of any other row."""
    said = f"weight_rows, row {k}: parity"
    if "parity" not in stated:
        return None
    given, n = stated["parity"], data.n_samples
    require(isinstance(given, Mapping) and {*given} == {"groups", "samples"}, f"{said} has not the fields of one")
    names, marks = given["groups"], given["samples"]
    are_names = isinstance(names, list) and len(names) == 2 and all(isinstance(name, str) for name in names)
    require(are_names and names[0] != names[1], f"{said} has no two groups")
    require(isinstance(marks, str) and len(marks) == n and {*marks} <= {*"012"}, f"{said} marks no {n} samples")
    require(stated["upper"] is not None and stated["lower"] == -stated["upper"], f"{said} has other ends")
    values, mark = data.block().values, np.array([*marks])
    size = np.asarray(
        abs(values).max(axis=0).toarray() if hasattr(values, "tocsc") else abs(values).max(axis=0)
    ).ravel()
    means = []
    for one in "12":
        weight = np.where(mark == one, data.sample_weight, 0.0)
        require(bool(weight.any()), f"{said}: no sample is marked {one}")
        means.append(np.asarray(weight @ values).ravel() / math.fsum(weight))
    apart = (means[0] - means[1]) * data.scale
    off = APART * (n + 64) * (size * data.scale + np.abs(data.shift)) + SMALLEST
    own = np.zeros(data.n_features)
    own[[data.index[name] for name in stated["coefficients"]]] = list(stated["coefficients"].values())
    odd = np.flatnonzero(~(np.abs(own - apart) <= off))
    named = data.feature_names[int(odd[0])] if odd.size else ""
    require(not odd.size, f"{said}: the coefficient of {named!r} is not the difference of the means of the groups")
    return names[0], names[1]


def _weights_of(document: Document) -> Iterable[Mapping[str, float]]:
    """The weights that a result states: of its classifier, of the supports that are listed, and of a relaxation."""
    near, relaxed = document.get("near_optimal"), document.get("relaxed")
    shown = [] if relaxed is None or relaxed.get("weights") is None else [relaxed]
    for one in (document, *([] if near is None else near["supports"]), *shown):
        weights = one.get("weights")
        require(isinstance(weights, Mapping), "weights are no mapping")
        for w in weights.values():
            number(w, "a weight")
        yield weights


def _power_of_two_above(weights: Iterable[float]) -> Fraction:
    """The least power of two that no weight exceeds in size; 0 where all are 0."""
    most = max((abs(Fraction(w)) for w in weights), default=Fraction(0))
    return _power_of_two_not_below(most) if most else most


def _power_of_two_not_below(most: Fraction) -> Fraction:
    """The least power of two that a positive number does not exceed."""
    found = Fraction(2) ** (most.numerator.bit_length() - most.denominator.bit_length() - 1)
    while found < most:
        found *= 2
    return found


def _row_allowance(coefficients: Iterable[Fraction], ends: tuple[Fraction | None, ...], largest: Fraction) -> float:
    """e, the least float that is no less."""
    size = max(abs(end) for end in ends if end is not None)
    found = above(FORGIVEN * (size + largest * sum(map(abs, coefficients), Fraction(0))))
    if not math.isfinite(found):
        raise CertificateError("an allowance is beyond floating point")
    return found
