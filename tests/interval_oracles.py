"""Values of small problems as intervals whose ends are computed exactly: also where doubles are no reference.

v(σ) of one selection lies between the dual value of a feasible dual vector and the primal value of a classifier. Both
points come from an interior point (`tests.interval_kernels`), in double-doubles where doubles leave too much between
them; both values are summed in whole numbers, without any rounding (of the logistic loss all but its logarithms). So an
interval may be wide, and then says so, but it is never wrong: with C = 1e12 on separable data, with sample weights over
twelve orders of magnitude, on columns with means of 1e5. Nothing here is shared with the code under test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tests import interval_kernels as kernels
from tests.structural_oracles import labellings

Array = npt.NDArray[np.float64]
Chosen = frozenset[int]

WIDE = 1e-7
"""An interval wider than this, relative, decides nothing: the reference is unsure."""
FINE = 1e-10
"""An interval from doubles is taken when it is as narrow as that; else double-doubles try."""
LOGARITHM = 1e-12
"""What is taken off and added for the rounding of logarithms, relative: every term of either end is positive."""
KINDS = {
    "hinge": kernels.HINGE,
    "squared-hinge": kernels.SQUARED_HINGE,
    "structural": kernels.HARD,
    "logistic": kernels.LOGISTIC,
}


@dataclass(frozen=True)
class Interval:
    """Two ends between which a value lies."""

    lower: float
    upper: float

    @property
    def is_sure(self) -> bool:
        """Whether it is narrow enough to judge by."""
        return self.upper - self.lower <= WIDE * abs(self.upper)

    def shifted(self, cost: float) -> Interval:
        """With a fixed cost added, rounded outward."""
        if cost == 0.0:
            return self
        return Interval(down(self.lower + cost), up(self.upper + cost))


def down(value: float) -> float:
    """The next number below, so that one rounding is paid for."""
    return math.nextafter(value, -math.inf)


def up(value: float) -> float:
    """The next number above."""
    return math.nextafter(value, math.inf)


def whole(values: Iterable[Any], shift: int | None = None) -> tuple[list[int], int]:
    """Numbers (floats, or pairs of floats to be added) as whole multiples of 2^-shift."""
    ratios = []
    for value in values:
        parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
        for part in parts:
            ratios.append(float(part).as_integer_ratio())
        if len(parts) == 1:
            ratios.append((0, 1))
    if shift is None:
        shift = max((below.bit_length() - 1 for _, below in ratios), default=0)
    numbers = [above << (shift - below.bit_length() + 1) for above, below in ratios]
    return [numbers[i] + numbers[i + 1] for i in range(0, len(numbers), 2)], shift


@dataclass(frozen=True, eq=False)
class Svm:
    """The columns of all atoms, and the loss: v(σ) of any selection.

    Attributes
    ----------
    X : (n, p) ndarray, as the instance stores it
    center : (p,) ndarray, taken off the stored columns
    y : (n,) ndarray of {-1, +1}
    c : (n,) ndarray, C times the sample weights; of the structural loss only c[0] = C counts
    columns : sequence, the columns of every atom
    scale : (count,) ndarray, λ of every atom
    loss, bias, measure, beta, k : as `mipfs.Problem` has them
    """

    X: Array
    center: Array
    y: Array
    c: Array
    columns: Sequence[Sequence[int]]
    scale: Array
    loss: str
    bias: bool
    measure: str | None = None
    beta: float = 1.0
    k: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", {})
        object.__setattr__(self, "_points", {})

    # the rows Gx + ξ ≥ h of the SVM on all atoms, exactly

    @cached_property
    def _middle(self) -> Array:
        """With a free bias any number may be taken off a column: its mean, so that ω has no cancellation."""
        return (self.X - self.center).mean(axis=0) if self.bias else np.zeros(self.X.shape[1])

    @cached_property
    def _places(self) -> list[slice]:
        ends = np.cumsum([len(part) for part in self.columns]).tolist()
        return [slice(end - len(part), end) for end, part in zip(ends, self.columns, strict=True)]

    @cached_property
    def _exact(self) -> tuple[list[list[int]], int]:
        """Row by row the values of all atoms' columns as whole multiples of 2^-shift."""
        n, p = self.X.shape
        X, shift = whole(self.X.ravel().tolist())
        off, other = whole([*self.center.tolist(), *self._middle.tolist()])
        E = max(shift, other)
        taken = [(off[j] + off[p + j]) << (E - other) for j in range(p)]
        scale, F = whole(self.scale.tolist())
        flat = [(j, scale[g]) for g, part in enumerate(self.columns) for j in part]
        rows = [[((X[i * p + j] << (E - shift)) - taken[j]) * times for j, times in flat] for i in range(n)]
        return rows, E + F

    @cached_property
    def _doubles(self) -> npt.NDArray[np.complex128]:
        """The same in double-doubles."""
        return in_pairs(*self._exact)

    @cached_property
    def _box(self) -> Array:
        """The largest dual of every sample."""
        return np.full(self.c.size, np.inf) if self.loss == "squared-hinge" else self.c

    @cached_property
    def _labellings(self) -> tuple[Array, Array]:
        assert self.measure is not None
        order = np.argsort(-self.y, kind="stable")  # one table for all orders of the same labels
        key = (self.measure, int(np.sum(self.y > 0)), self.y.size, self.beta, self.k)
        if key not in _TABLES:
            _TABLES[key] = labellings(self.measure, self.y[order], beta=self.beta, k=self.k)
        losses, sorted_v = _TABLES[key]
        V = np.empty_like(sorted_v)
        V[:, order] = sorted_v
        return losses, V

    @cached_property
    def _answers(self) -> tuple[list[list[int]], int]:
        """Of the structural loss: V X row by row, as whole multiples of 2^-shift."""
        rows, shift = self._exact
        _, V = self._labellings
        v, e = whole(V.ravel().tolist())
        n, places = self.y.size, range(len(rows[0]))
        A = [[sum(v[r * n + i] * rows[i][j] for i in range(n)) for j in places] for r in range(len(V))]
        return A, e + shift

    @cached_property
    def _answers_in_pairs(self) -> npt.NDArray[np.complex128]:
        return in_pairs(*self._answers)

    def _places_of(self, chosen: Chosen) -> list[int]:
        return [j for g in sorted(chosen) for j in range(self._places[g].start, self._places[g].stop)]

    # points

    def _rows(self, at: list[int], double: bool) -> tuple[Any, ...]:
        """G, h, P, q and c of the interior point, columns scaled by powers of two, and these."""
        Z, n = self._doubles[:, at], self.y.size
        if self.loss == "structural":
            losses, A = self._labellings[0], self._answers_in_pairs[:, at]
            G = np.vstack([np.hstack([A, np.ones((len(A), 1))]), np.append(np.zeros(A.shape[1]), 1.0)])
            h = np.append(losses, 0.0).astype(complex)
            c, free, q = np.ones(h.size, dtype=complex), 1, np.append(np.zeros(len(at)), self.c[0]).astype(complex)
        else:
            G = self.y[:, None] * (np.hstack([Z, np.ones((n, 1))]) if self.bias else Z)
            h, c, free = np.ones(n, dtype=complex), self.c.astype(complex), int(self.bias)
            q = np.zeros(len(at) + free, dtype=complex)
        largest = np.abs(G.real).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, 2.0 ** -np.floor(np.log2(np.where(largest > 0, largest, 1.0))), 1.0)
        P = np.append(unit[: len(at)] ** 2, np.zeros(free)).astype(complex)
        arrays = (G * unit, h, P, q * unit, c)  # in one layout, for which there is machine code
        return (*(np.ascontiguousarray(a if double else a.real) for a in arrays), unit)

    def _point(self, chosen: Chosen, double: bool) -> tuple[Any, Any]:
        """(w, b) and alpha that an interior point ends with (Newton's method for the logistic loss)."""
        key = (chosen, double)
        if key not in self._points:  # type: ignore[attr-defined]
            G, h, P, q, c, unit = self._rows(self._places_of(chosen), double)
            x, alpha = np.zeros(G.shape[1], G.dtype), np.zeros(G.shape[0], G.dtype)
            if not G.shape[1]:
                alpha = 0.5 * c if self.loss == "logistic" else c.copy()
            elif self.loss == "logistic":
                kernels.logistic(G, P, c, x, alpha, 300)
            else:
                close, kind = 1e-14 if double else 1e-12, KINDS[self.loss]
                error = kernels.interior(G, h, P, q, c, kind, x, alpha, 1.0, 120, close)
                if error > FINE:  # from far duals too
                    other = np.empty_like(x), np.empty_like(alpha)
                    far = self.c[0] / len(h) if self.loss == "structural" else 0.5 * self.c.max()
                    if kernels.interior(G, h, P, q, c, kind, *other, far, 120, close) < error:
                        x, alpha = other
            self._points[key] = (x * unit, alpha)  # type: ignore[attr-defined]
        found: tuple[Any, Any] = self._points[key]  # type: ignore[attr-defined]
        return found

    def quick(self, chosen: Chosen) -> float:
        """A lower bound of v(σ) in doubles, mostly tight; of the structural loss the lower end itself."""
        if self.loss == "structural":
            return self.of(chosen).lower
        _, alpha = self._point(chosen, False)
        fit = np.empty_like(alpha)
        kernels.balanced(alpha, self.y, self._box, self.bias, fit)
        Z = np.ascontiguousarray(self._doubles[:, self._places_of(chosen)].real)
        return float(kernels.quick_lower(Z, self.y, self.c, fit, KINDS[self.loss]))

    def of(self, chosen: Chosen) -> Interval:
        """v(σ) of a selection, unit margin, without penalties."""
        known: dict[Chosen, Interval] = self._known  # type: ignore[attr-defined]
        if chosen not in known:
            found = self._interval(chosen, False)
            if not found.upper - found.lower <= FINE * abs(found.upper):
                better = self._interval(chosen, True)
                found = Interval(max(found.lower, better.lower), min(found.upper, better.upper))
            known[chosen] = found
        return known[chosen]

    # the two ends, in whole numbers

    def _interval(self, chosen: Chosen, double: bool) -> Interval:
        at, (x, alpha) = self._places_of(chosen), self._point(chosen, double)
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(alpha))):
            return Interval(0.0, math.inf)
        if self.loss == "structural":
            return self._joint(at, x, alpha)
        rows, shift = self._exact
        Z = [[row[j] for j in at] for row in rows]
        fit = np.empty(self.y.size)
        kernels.balanced(np.ascontiguousarray(alpha.real), self.y, self._box, self.bias, fit)
        return Interval(max(0.0, self._dual(Z, shift, fit)), self._primal(Z, shift, x))

    def _dual(self, Z: list[list[int]], shift: int, alpha: Array) -> float:
        """g(α) − ½‖ω‖² of a feasible α, rounded down."""
        a, E = whole(alpha.tolist())
        signed = [v if sign > 0 else -v for v, sign in zip(a, self.y, strict=True)]
        assert not self.bias or sum(signed) == 0, "the classes are balanced exactly"
        assert np.all((alpha >= 0) & (alpha <= self._box)), "the dual vector is in its box"
        omega = [sum(v * row[j] for v, row in zip(signed, Z, strict=True)) for j in range(len(Z[0]))] if Z else []
        square = sum(v * v for v in omega)  # over 2^(2(E + shift))
        if self.loss == "logistic":
            gain = math.fsum(_entropy(v, c) for v, c in zip(alpha.tolist(), self.c.tolist(), strict=True))
            return down(down(gain * (1.0 - LOGARITHM)) - up(ratio(square, 2 * (E + shift) + 1)))
        value = Fraction(sum(a), 1 << E) - Fraction(square, 1 << (2 * (E + shift) + 1))
        if self.loss == "squared-hinge":
            value -= (
                sum(
                    (Fraction(v * v, 1 << 2 * E) / Fraction(c) for v, c in zip(a, self.c.tolist(), strict=True)),
                    Fraction(0),
                )
                / 2
            )
            total = Fraction(sum(a), 1 << E)
            paid = total - value
            if paid > 0:  # the best multiple of α is feasible too
                value = max(value, total * total / (4 * paid))
        return down(float(value))

    def _primal(self, Z: list[list[int]], shift: int, x: Any) -> float:
        """½‖w‖² + L at (w, b), and of hinges at the multiple of it whose least margin is 1; the smaller one."""
        w, E = whole(x.tolist())
        k, F = len(w) - int(self.bias), E + shift
        b = w[k] << shift if self.bias else 0
        margins = [
            (sum(v * u for v, u in zip(row, w[:k], strict=True)) + b) * (1 if sign > 0 else -1)
            for row, sign in zip(Z, self.y, strict=True)
        ]
        square = Fraction(sum(v * v for v in w[:k]), 1 << (2 * E + 1))
        if self.loss == "logistic":
            loss = math.fsum(c * _softplus(-ratio(m, F)) for m, c in zip(margins, self.c.tolist(), strict=True))
            return up(up(float(square)) + up(loss * (1.0 + LOGARITHM)))
        found = square + self._loss([(1 << F) - m for m in margins], F)
        least = min(margins)
        if least > 0:
            found = min(found, square * Fraction(1 << F, least) ** 2)
        return up(float(found))

    def _loss(self, slacks: list[int], F: int) -> Fraction:
        """Σ c φ(slack), slacks over 2^F."""
        c, e = whole(self.c.tolist())
        power = 1 if self.loss == "hinge" else 2
        total = sum(v * s**power for v, s in zip(c, slacks, strict=True) if s > 0)
        return Fraction(total, 1 << (e + power * F + power - 1))

    def _joint(self, at: list[int], x: Any, alpha: Any) -> Interval:
        """Of the structural loss: the upper end is that of w, of 0, or of the multiple of w without a loss."""
        rows, E = self._answers
        A = [[row[j] for j in at] for row in rows]
        C, k = Fraction(float(self.c[0])), len(at)
        delta, d = whole(self._labellings[0].tolist())
        w, f = whole(x[:k].tolist())
        gains = [Fraction(sum(a * u for a, u in zip(row, w, strict=True)), 1 << (E + f)) for row in A]
        wanted = [Fraction(one, 1 << d) for one in delta]
        square = Fraction(sum(u * u for u in w), 1 << (2 * f + 1))
        slack = max(one - gain for one, gain in zip(wanted, gains, strict=True))
        upper = min(square + C * max(Fraction(0), slack), C * max(Fraction(0), *wanted))
        if all(gain > 0 for one, gain in zip(wanted, gains, strict=True) if one > 0):
            pairs = zip(wanted, gains, strict=True)
            stretch = max((one / gain for one, gain in pairs if one > 0 or gain < 0), default=Fraction(0))
            if stretch >= 0 and all(stretch * gain >= one for one, gain in zip(wanted, gains, strict=True)):
                upper = min(upper, square * stretch * stretch)
        m, g = whole([complex(v.real, v.imag) if v.real > 0 else 0j for v in alpha[: len(delta)].astype(complex)])
        m = [max(0, v) for v in m]
        total = Fraction(sum(m), 1 << g)
        shrink = min(Fraction(1), C / total) if total > 0 else Fraction(1)
        gain = Fraction(sum(a * b for a, b in zip(m, delta, strict=True)), 1 << (g + d))
        omega = [sum(m[r] * A[r][j] for r in range(len(m))) for j in range(k)]
        paid = Fraction(sum(o * o for o in omega), 1 << (2 * (g + E) + 1))
        lower = shrink * gain - shrink * shrink * paid
        return Interval(max(0.0, down(float(lower))), up(float(upper)) if upper > 0 else 0.0)


def in_pairs(rows: list[list[int]], shift: int) -> npt.NDArray[np.complex128]:
    """Whole multiples of 2^-shift as double-doubles."""
    found = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=complex)
    for i, row in enumerate(rows):
        for j, number in enumerate(row):
            first = ratio(number, shift)
            rest = Fraction(number, 1 << shift) - Fraction(first) if number else Fraction(0)
            found[i, j] = complex(first, float(rest))
    return found


def labelled_loss(svm: Svm, values: Sequence[Fraction]) -> float:
    """The structural loss at the values f(x_i) of all samples."""
    losses, V = svm._labellings
    slack = max(
        Fraction(float(delta)) - sum((Fraction(float(v)) * f for v, f in zip(row, values, strict=True)), Fraction(0))
        for row, delta in zip(V, losses, strict=True)
    )
    return float(Fraction(float(svm.c[0])) * max(Fraction(0), slack))


_TABLES: dict[tuple[Any, ...], tuple[Array, Array]] = {}
"""The labellings of every measure on sorted labels."""


def ratio(number: int, shift: int) -> float:
    """number / 2^shift, to the nearest double."""
    return float(Fraction(number, 1 << shift)) if number else 0.0


def _softplus(t: float) -> float:
    return max(t, 0.0) + math.log1p(math.exp(-abs(t)))


def _entropy(a: float, c: float) -> float:
    """−α log(α/c) − (c − α) log(1 − α/c) of a term, both parts positive."""
    if not 0.0 < a < c:
        return 0.0
    rest = float(Fraction(c) - Fraction(a))
    large = -rest * math.log1p(-a / c) if a < 0.5 * c else -rest * math.log(rest / c)
    small = -a * math.log(a / c) if a < 0.5 * c else -a * math.log1p(-rest / c)
    return small + large


class Enumerated:
    """(P) over all its selections: intervals as the problem reports them, computed where they are asked for.

    Parameters
    ----------
    svm : Svm
    allowed : sequence of frozenset
    cost : (count,) ndarray, fixed cost of every atom
    rho : bool, whether values are those of the ρ-form
    """

    def __init__(self, svm: Svm, allowed: Sequence[Chosen], cost: Array, rho: bool) -> None:
        self.svm, self.allowed, self.cost, self.rho = svm, list(allowed), cost, rho

    def _reported(self, found: Interval, chosen: Chosen) -> Interval:
        shifted = found.shifted(math.fsum(self.cost[sorted(chosen)]))
        if not self.rho:
            return shifted
        return Interval(
            down(-0.25 / shifted.lower) if shifted.lower > 0 else -math.inf,
            up(-0.25 / shifted.upper) if shifted.upper < math.inf else 0.0,
        )

    def of(self, chosen: Chosen) -> Interval:
        """The value of a selection."""
        return self._reported(self.svm.of(chosen), chosen)

    @cached_property
    def _quick(self) -> Mapping[Chosen, float]:
        return {
            chosen: self._reported(Interval(self.svm.quick(chosen), math.inf), chosen).lower for chosen in self.allowed
        }

    @cached_property
    def optimum(self) -> Interval:
        """The optimal value; infinite ends where nothing is allowed."""
        order = sorted(self.allowed, key=lambda chosen: self._quick[chosen])
        lower, upper = math.inf, math.inf
        for chosen in order:
            if self._quick[chosen] >= upper:
                lower = min(lower, self._quick[chosen])
                break
            value = self.of(chosen)
            lower, upper = min(lower, max(value.lower, self._quick[chosen])), min(upper, value.upper)
        return Interval(min(lower, upper), upper)

    def below(self, limit: float) -> list[tuple[Chosen, Interval]]:
        """The allowed selections whose value may lie at or below a limit."""
        found = [(chosen, self.of(chosen)) for chosen in self.allowed if self._quick[chosen] <= limit]
        return [(chosen, value) for chosen, value in found if value.lower <= limit]
