"""Bounds on the weights, by the names of the features and on the user's scale: l ≤ w ≤ u with l ≤ 0 ≤ u."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from mipfs.errors import UsageError

WeightBounds = dict[str, tuple[float, float]]
"""The least and the largest weight of the features that have such an end, infinite where it is absent."""
FREE = -math.inf, math.inf
AT_LEAST_0, AT_MOST_0 = (0.0, math.inf), (-math.inf, 0.0)
SMALLEST, LARGEST = 1e-100, 1e100
"""Sizes of an end that is not 0: within them no product with a scale overflows, or vanishes."""
INTERCEPTS = ("intercept", "(intercept)", "bias", "b", "intercept_")
"""What users call the intercept, which has no bounds."""


def settled(given: Any, index: Mapping[str, int], unknown: Callable[[str], str]) -> WeightBounds:
    """Bounds as they were given, checked; features that have none are left out.

    Parameters
    ----------
    given : mapping of feature name to (lower, upper), None or infinite for no end
    index : mapping of feature name to its position
    unknown : says of a name that is no feature which one may have been meant

    Raises
    ------
    UsageError
        By the name of the feature: no feature of that name, an end that is no number, ends that cross or leave out 0.
    """
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise UsageError(f"weight_bounds is a {kind}; give {{name: (lower, upper)}}, None or infinity for no end")
    found = dict[str, tuple[float, float]]()
    for name, pair in given.items():
        if name not in index:
            if name in INTERCEPTS:
                raise UsageError(f"weight_bounds: {name!r}: the intercept has no bounds; bias=False leaves it out")
            raise UsageError(f"weight_bounds: no feature is called {name!r}; {unknown(str(name))}")
        ends = _ends(name, pair)
        if ends != FREE:
            found[name] = ends
    return dict(sorted(found.items(), key=lambda one: index[one[0]]))


def _ends(name: str, pair: Any) -> tuple[float, float]:
    """The two ends of a feature."""
    try:
        low, high = pair
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    ends = [absent if end is None else end for end, absent in ((low, -math.inf), (high, math.inf))]
    if isinstance(pair, (str, bytes)) or any(isinstance(end, (bool, str, bytes)) for end in ends):
        ends = [math.nan]
    try:
        low, high = map(float, ends)
    except (TypeError, ValueError, OverflowError):
        low, high = math.nan, math.nan
    said = f"weight_bounds of {name!r} = {pair!r}"
    if math.isnan(low) or math.isnan(high):
        raise UsageError(f"{said} must be two numbers (lower, upper), None or infinity for no end")
    if low > high:
        raise UsageError(f"{said}: the lower end lies above the upper one; write them the other way round")
    if not low <= 0.0 <= high:
        raise UsageError(
            f"{said} leaves out 0, which would force the feature in; bounds hold for features that may be left out: "
            "write 0 for that end, and name the feature in forced_in where it must be selected"
        )
    for end in (low, high):
        if math.isfinite(end) and end != 0.0 and not SMALLEST <= abs(end) <= LARGEST:
            raise UsageError(f"{said}: an end that is not 0 must be of a size from {SMALLEST:g} to {LARGEST:g}")
    return low + 0.0, high + 0.0  # no −0.0


def both(*parts: Mapping[str, tuple[float, float]]) -> WeightBounds:
    """What keeps all of some bounds, which all have 0 between them."""
    found: WeightBounds = {}
    for part in parts:
        for name, (low, high) in part.items():
            least, most = found.get(name, FREE)
            found[name] = max(low, least), min(high, most)
    return found


def of_signs(nonnegative: Iterable[str] = (), nonpositive: Iterable[str] = ()) -> WeightBounds:
    """The bounds that hold weights at 0 or above, or at 0 or below."""
    return both(dict.fromkeys(nonnegative, AT_LEAST_0), dict.fromkeys(nonpositive, AT_MOST_0))


def of_box(names: Sequence[str], box: Any) -> WeightBounds:
    """−W ≤ w ≤ W for every feature.

    Raises
    ------
    UsageError
        W is no number above 0.
    """
    is_number = isinstance(box, (int, float)) and not isinstance(box, bool)
    if not is_number or not SMALLEST <= box <= LARGEST:
        raise UsageError(f"box = {box!r} must be a number from {SMALLEST:g} to {LARGEST:g}")
    return dict.fromkeys(names, (-float(box), float(box)))


def written(bounds: Mapping[str, tuple[float, float]]) -> dict[str, list[float | None]]:
    """Bounds as JSON has them: null for no end."""
    return {name: [end if math.isfinite(end) else None for end in ends] for name, ends in bounds.items()}


def clipped(names: Sequence[str], weights: Any, bounds: Mapping[str, tuple[float, float]]) -> Any:
    """Weights (k,) on the user's scale between their bounds."""
    if not bounds:
        return weights
    ends = [bounds.get(name, FREE) for name in names]
    return cast(Any, weights.clip([low for low, _ in ends], [high for _, high in ends])) if ends else weights
