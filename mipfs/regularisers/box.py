"""The box: ½w² with low ≤ w ≤ high. With t = clip(ω, low, high): h(ω) = ωt − ½t², w(ω) = t.

Signs are the box [0, ∞) or (−∞, 0], which is a cone: h is homogeneous there, and with no other end. An end is forgiven
2^−40 of itself outward, as rows are, so that a weight may be rounded to the user's scale and back: that is part of what
the box is, in both classes. Incumbents keep the ends themselves. `Bounds` is the box of bounds that a user gave by
name, on the scale of the weights that are reported; what the checker has of those is `mipfs.check.bounded`.

Those may exclude 0 (low > 0, or high < 0): a feature that is selected has a weight of that size at least. Then h is
negative where ω is small, and the box is not monotone. h is the difference of ωt and ½t², and where it is near 0 the
rounding of t shows: `conjugate_above` counts it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers
from mipfs.regularisers.base import ROUNDING, Regulariser, U, raise_by_rounding, widen

End = float | None
WIDER, NARROWER = 1.0 + 2.0**-40, 1.0 - 2.0**-40
"""What an end is multiplied by; one that leaves out 0 by the other one."""


@dataclass(frozen=True)
class Box(Regulariser):
    """½w² on a box.

    Parameters
    ----------
    low, high : float <= 0 and float >= 0, None for no end; or one of these for every feature
    """

    low: End | tuple[End, ...] = None
    high: End | tuple[End, ...] = None
    name = "box"
    formula = "½w², low ≤ w ≤ high"
    _ends: ClassVar[tuple[Array, Array]]
    _wider: ClassVar[tuple[Array, Array]]
    _nearest: ClassVar[Array]
    _may_exclude_0: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, sign in (("low", -1.0), ("high", 1.0)):
            given = getattr(self, name)
            if isinstance(given, Sequence) and not isinstance(given, tuple):
                object.__setattr__(self, name, tuple(given))
            for end in given if isinstance(given, Sequence) else (given,):
                is_number = isinstance(end, (int, float)) and not isinstance(end, bool) and math.isfinite(end)
                if end is not None and not (is_number and (sign * end >= 0.0 or self._may_exclude_0)):
                    what = "at most 0" if sign < 0 else "at least 0"
                    raise UsageError(f"box: {name} = {end!r} must be a number of {what}, or None for no end")
        self._take_ends()

    def _take_ends(self) -> None:
        """Hold the ends as floats, too: they are asked for at every step."""
        ends = _ends_as_floats(self.low, -math.inf), _ends_as_floats(self.high, math.inf)
        object.__setattr__(self, "_ends", ends)
        low, high = ends
        outward = np.where(low > 0.0, NARROWER, WIDER) * low, np.where(high < 0.0, NARROWER, WIDER) * high
        object.__setattr__(self, "_wider", outward)
        object.__setattr__(self, "_nearest", np.maximum(0.0, np.maximum(low, -high)))

    def check(self, count: int) -> None:
        """Refuse ends that are not one for every feature."""
        for name in ("low", "high"):
            given = getattr(self, name)
            if isinstance(given, tuple) and len(given) != count:
                raise UsageError(f"box: {name} has {len(given)} ends, for {count} features")

    @property
    def ends(self) -> tuple[Array, Array]:
        """low and high, infinite where there is none."""
        return self._ends

    @property
    def forgiven(self) -> tuple[Array, Array]:
        """low and high with what an end is forgiven: those of its conjugate."""
        return self._wider

    @property
    def is_homogeneous(self) -> bool:
        """Whether it holds signs alone."""
        return all(bool(np.all(np.isinf(end) | (end == 0.0))) for end in self.ends)

    @property
    def is_monotone(self) -> bool:
        """Whether 0 lies in it, for every feature."""
        return not bool(np.any(self._nearest > 0.0))

    @property
    def excluding(self) -> Any:
        """Of which features it leaves out 0: one bool, or one for every feature."""
        return self._nearest > 0.0

    def conjugate_above(self, omega: Array, radius: Array) -> Array:
        """No less than h anywhere in [ω − radius, ω + radius]."""
        found = super().conjugate_above(omega, radius)
        if self.is_monotone:
            return found
        return np.asarray(found + 4.0 * ROUNDING * U * (np.abs(found) + np.square(self._nearest)))

    def at(self, ids: Integers) -> Box:
        """The ends of some of the features."""
        found = object.__new__(Box)
        for name in ("low", "high"):
            one = getattr(self, name)
            object.__setattr__(found, name, tuple(one[j] for j in ids) if isinstance(one, tuple) else one)
        found._take_ends()
        return found

    def value(self, w: Array) -> Array:
        """½w², inf outside."""
        low, high = self._wider
        return np.where((w >= low) & (w <= high), 0.5 * np.square(w), np.inf)

    def conjugate(self, omega: Array) -> Array:
        """ωt − ½t²."""
        t = self.weight(omega)
        return np.asarray(t * (omega - 0.5 * t))

    def weight(self, omega: Array) -> Array:
        """t."""
        low, high = self._wider
        return np.clip(omega, low, high)

    def curvature(self, omega: Array) -> Array:
        """1 where no end is in the way."""
        low, high = self.ends
        return ((omega > low) & (omega < high)).astype(float)


class Bounds(Box):
    """The box that the bounds on the weights of a problem are, on the scale of the data (`Problem.weight_bounds`).

    An end is a product rounded to nearest, which the 2^−40 that an end is forgiven covers.
    """

    _may_exclude_0 = True

    @classmethod
    def of(cls, bounds: Mapping[str, tuple[float, float]], index: Mapping[str, int], scale: Array) -> Bounds:
        """Those of bounds by name, on the user's scale: a weight there times `scale` (p,) is that on the data's."""
        sides: list[list[End]] = [[None] * scale.size, [None] * scale.size]
        for name, ends in bounds.items():
            j = index[name]
            for side, end in zip(sides, ends, strict=True):
                side[j] = end * float(scale[j]) if math.isfinite(end) else None
        return cls(*map(tuple, sides))


def conjugate_at(omega: float, low: float, high: float) -> float:
    """`Box.conjugate` of one number, in code that can be compiled."""
    t = min(max(omega, low), high)
    return t * (omega - 0.5 * t)


def conjugate_above(omega: float, radius: float, low: float, high: float) -> Any:
    """`Regulariser.conjugate_above` of one number of a box, in code that can be compiled."""
    wider = widen(omega, radius)
    return raise_by_rounding(
        max(conjugate_at(omega - wider, low, high), conjugate_at(omega + wider, low, high)), ROUNDING
    )


def check_atoms(regulariser: Regulariser, bounds: Mapping[str, Any], atoms: Any) -> None:
    """Refuse bounds beside another regulariser, and both on atoms that are neither features nor groups as they are.

    Of groups that overlap a column's weight is the sum of its copies. At every σ these are σ_g/Σσ times that sum, each
    of its sign, so that a sign of the sum is one of every copy; another end of the sum is none of its copies.

    Raises
    ------
    UsageError
    """
    outside = [name for name, (low, high) in bounds.items() if low > 0.0 or high < 0.0]
    if outside and atoms.kind != "features":
        raise UsageError(
            f"weight_bounds of {outside[0]!r} = {bounds[outside[0]]!r} exclude 0, and go with single features as they "
            f"are, not {atoms.kind}; let 0 be between them"
        )
    if bounds and not regulariser.is_ridge:
        raise UsageError(f"weight_bounds go with ½w² alone; leave them, or the regulariser {regulariser.name!r}, out")
    if atoms.kind == "features" or (regulariser.is_ridge and not bounds):
        return
    if not bounds:
        raise UsageError(f"the regulariser {regulariser.name!r} is about single features as they are, not {atoms.kind}")
    if atoms.kind != "groups":
        raise UsageError(
            f"weight_bounds are about single features or groups as they are, not {atoms.kind}; leave them out"
        )
    if np.any(atoms.scale != 1.0):
        raise UsageError(
            "weight_bounds are about groups without a scale; leave them, or the scaling of the groups, out"
        )
    for name in atoms.shared if atoms.overlapping else ():
        ends = bounds.get(name, (0.0, 0.0))
        if any(end and math.isfinite(end) for end in ends):
            raise UsageError(
                f"weight_bounds of {name!r} = {ends!r}, and {name!r} stands in several groups: its weight is the sum "
                "of one for each, which may have a sign (0 or no end), but no other end; take it out of all but one"
            )


def _ends_as_floats(given: Any, absent: float) -> Array:
    """Ends as floats."""
    listed = given if isinstance(given, tuple) else (given,)
    found = np.array([absent if end is None else float(end) for end in listed])
    return found if isinstance(given, tuple) else found[0]


class Stated:
    """The box, for the checker."""

    def __init__(self, low: list[float | None] | float | None, high: list[float | None] | float | None) -> None:
        sides = [(one if isinstance(one, list) else [one], isinstance(one, list)) for one in (low, high)]
        for (side, _), sign in zip(sides, (-1, 1), strict=True):
            if any(end is not None and (type(end) not in (int, float) or sign * end < 0) for end in side):
                raise ValueError("an end has the wrong sign, or is no number")
        forgiven = 1 + Fraction(1, 2**40)
        exact = [([None if end is None else Fraction(end) * forgiven for end in side], many) for side, many in sides]
        self.low, self.high = exact
        self.is_homogeneous = all(end is None or end == 0 for side, _ in exact for end in side)
        least, most = ("low" if sides[0][1] else f"{low!r}"), ("high" if sides[1][1] else f"{high!r}")
        self.words = f"½w², {least} ≤ w ≤ {most}"

    def ends(self, j: int) -> tuple[Fraction | None, Fraction | None]:
        """Of feature j."""
        (low, many), (high, more) = self.low, self.high
        return low[j if many else 0], high[j if more else 0]

    def value(self, j: int, w: Fraction) -> Fraction | None:
        """r(w) of feature j."""
        low, high = self.ends(j)
        return None if (low is not None and w < low) or (high is not None and w > high) else w * w / 2

    def conjugate(self, j: int, omega: Fraction) -> Fraction:
        """h(ω) of feature j."""
        low, high = self.ends(j)
        t = omega if low is None else max(omega, low)
        t = t if high is None else min(t, high)
        return t * (omega - t / 2)


KIND = Box
