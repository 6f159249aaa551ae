"""½w² between bounds on the weights, l_j ≤ w_j ≤ u_j on the user's scale, as a result states them by name.

    v(σ) ≥ g(α) − Σ σ_j h_j(ω_j),   h_j(ω) = max over L ≤ w ≤ U of ωw − ½w² = ωt − ½t²,   t = clip(ω, L, U)

L = l_j·scale_j and U = u_j·scale_j are those of the weight on the scaled data. Each is forgiven 2^−40 of itself, L
downwards and U upwards, in the objective and in h alike, so that the bound is one on all that is allowed: a weight of a
relaxation is divided by its σ, which rounds. The weights of a classifier are forgiven nothing: they lie between l and u
as they are stated.

Bounds that exclude 0 hold for a feature that is selected, whose h_j may be negative; v(σ) may rise with it.

What a group is worth is the sum of h_j over its columns. A column of several groups has a weight in each, and l and u,
which are 0 or none there, are those of their sum: split as costs least, it has parts of its own sign.

**In floating point.** L and U are rounded outward, which makes h no smaller, and so are the ends x of the interval that
ω lies in, of which one has the largest h. x − ½t is rounded once, and the product once more: 2h is too small by 3u of
its size at most, and by a multiple of the smallest float where it underflows.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from mipfs.check import phrases
from mipfs.check.rounding import TINY, Array, CertificateError, U, above, below, require
from mipfs.data.instance import Instance

FORGIVEN = Fraction(1, 2**40)
Ends = tuple[Fraction | None, Fraction | None]
FREE: Ends = (None, None)


class BoundedRidge:
    """½w² between the bounds of `params.weight_bounds`."""

    def __init__(self, stated: Any, data: Instance) -> None:
        require(isinstance(stated, Mapping), f"weight_bounds: {stated!r} stands there, no names with bounds")
        self.stated = {str(name): _stated_bounds(name, ends, data) for name, ends in stated.items()}
        self.is_homogeneous = all(end is None or end == 0 for ends in self.stated.values() for end in ends)
        self.excluding = frozenset(data.index[name] for name, ends in self.stated.items() if _excludes_0(ends))
        self.words = _list_bounds(self.stated) or "without bounds"
        self.users: dict[int, Ends] = {data.index[name]: ends for name, ends in self.stated.items()}
        self._ends = {
            j: (_relax_end(low, -1, float(data.scale[j])), _relax_end(high, 1, float(data.scale[j])))
            for j, (low, high) in self.users.items()
        }
        self._low = np.full(data.n_features, -math.inf)
        self._high = np.full(data.n_features, math.inf)
        for j, (low, high) in self._ends.items():
            self._low[j] = -math.inf if low is None else below(low)
            self._high[j] = math.inf if high is None else above(high)

    def value(self, j: int, w: Fraction) -> Fraction | None:
        """½w² of feature j, on the scaled data; None outside of its bounds."""
        low, high = self._ends.get(j, FREE)
        return None if (low is not None and w < low) or (high is not None and w > high) else w * w / 2

    def conjugate(self, j: int, omega: Fraction) -> Fraction:
        """h_j(ω), exactly."""
        low, high = self._ends.get(j, FREE)
        t = omega if low is None else max(omega, low)
        t = t if high is None else min(t, high)
        return t * (omega - t / 2)

    def twice_above(self, first: int, omega: Array, radius: Array) -> Array:
        """2h of the features from `first` on, no less than anywhere in ω ± radius, (B, k)."""
        low, high = (side[first : first + omega.shape[1]] for side in (self._low, self._high))
        found = np.full(omega.shape, -math.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            for x in (np.nextafter(omega - radius, -math.inf), np.nextafter(omega + radius, math.inf)):
                t = np.clip(x, low, high)
                found = np.fmax(found, 2.0 * (t * (x - 0.5 * t)))
            found = np.where(np.isfinite(omega + radius), found + 8.0 * U * np.abs(found) + 4.0 * TINY, math.inf)
        return np.where(np.isnan(found), math.inf, found)

    def check_weights(self, names: Mapping[str, Any], selected: Container[int], whose: str) -> None:
        """Refuse a classifier of the columns `selected` with a weight outside of its bounds: nothing is forgiven."""
        for j, (name, (low, high)) in zip(self.users, self.stated.items(), strict=True):
            if j in self.excluding and j not in selected:  # it has no weight
                continue
            w = Fraction(names.get(name, 0.0))
            inside = (low is None or low <= w) and (high is None or w <= high)
            require(
                inside,
                f"the weight of {name!r} in {whose}, {float(w)!r}, leaves its bounds {_interval_text((low, high))}",
            )


def _stated_bounds(name: Any, given: Any, data: Instance) -> Ends:
    """The bounds of a feature as they are stated."""
    require(name in data.index, f"weight_bounds: the data has no feature {name!r}")
    require(isinstance(given, list) and len(given) == 2, f"weight_bounds of {name!r}: {given!r} are no two ends")
    for end in given:
        is_end = end is None or (type(end) in (int, float) and math.isfinite(end))
        require(is_end, f"weight_bounds of {name!r}: {given!r} are no two numbers")
    try:
        low, high = (None if end is None else Fraction(end) for end in given)
    except (TypeError, ValueError, OverflowError) as error:
        raise CertificateError(f"weight_bounds of {name!r}: {error}") from None
    require(low is None or high is None or low <= high, f"weight_bounds of {name!r}: {given!r} cross")
    return low, high


def _excludes_0(ends: Ends) -> bool:
    low, high = ends
    return (low is not None and low > 0) or (high is not None and high < 0)


def _relax_end(end: Fraction | None, sign: int, scale: float) -> Fraction | None:
    """An end on the scaled data with what it is forgiven: −1 of a lower, 1 of an upper one."""
    return None if end is None else (end + sign * FORGIVEN * abs(end)) * Fraction(scale)


def _interval_text(ends: Ends) -> str:
    low, high = ends
    return f"[{'-inf' if low is None else repr(float(low))}, {'inf' if high is None else repr(float(high))}]"


def _list_bounds(stated: Mapping[str, Ends]) -> str:
    """The bounds, one after the other; equal ones of all that have any are said once."""
    different = set(stated.values())
    if len(stated) > phrases.MOST_NAMED and len(different) == 1:
        return f"{phrases.describe_bound('each', *next(iter(different)))}, of {len(stated)} features"
    return ", ".join(phrases.describe_bound(name, *ends) for name, ends in stated.items() if ends != FREE)
