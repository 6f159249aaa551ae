"""Bounds on the weights, by the names of the features and on the user's scale: l ≤ w ≤ u.

With l ≤ 0 ≤ u they hold whether a feature is selected or not. Bounds that exclude 0, 0 < l or u < 0, are about a
feature that is selected, whose weight is at least so much; without it the weight is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
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


def settle_bounds(
    given: Any,
    index: Mapping[str, int],
    unknown: Callable[[str], str],
    groups: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> WeightBounds:
    """Bounds as they were given, checked; features that have none are left out.

    Parameters
    ----------
    given : mapping of feature name to (lower, upper), None or infinite for no end
    index : mapping of feature name to its position
    unknown : says of a name that is no feature which one may have been meant
    groups : mapping of name to features, such as a column of words: bounds by its name are those of each

    Raises
    ------
    UsageError
        By the name of the feature: no feature of that name, an end that is no number, ends that cross.
    """
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise UsageError(f"weight_bounds is a {kind}; give {{name: (lower, upper)}}, None or infinity for no end")
    found = dict[str, tuple[float, float]]()
    for name, pair in given.items():
        members = (name,) if name in index else groups.get(name, ())
        if not members:
            if name in INTERCEPTS:
                raise UsageError(f"weight_bounds: {name!r}: the intercept has no bounds; bias=False leaves it out")
            raise UsageError(f"weight_bounds: no feature is called {name!r}; {unknown(str(name))}")
        ends = _feature_bounds(name, pair)
        if ends != FREE:
            each = dict.fromkeys(members, ends)
            found |= both({one: found[one] for one in members if one in found}, each)
    return dict(sorted(found.items(), key=lambda one: index[one[0]]))


def _feature_bounds(name: str, pair: Any) -> tuple[float, float]:
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
    for end in (low, high):
        if math.isfinite(end) and end != 0.0 and not SMALLEST <= abs(end) <= LARGEST:
            raise UsageError(f"{said}: an end that is not 0 must be of a size from {SMALLEST:g} to {LARGEST:g}")
    return low + 0.0, high + 0.0  # no −0.0


def both(*parts: Mapping[str, tuple[float, float]]) -> WeightBounds:
    """What keeps all of some bounds.

    Raises
    ------
    UsageError
        They leave a feature no weight.
    """
    found: WeightBounds = {}
    for part in parts:
        for name, (low, high) in part.items():
            least, most = found.get(name, FREE)
            found[name] = both_ends = max(low, least), min(high, most)
            if both_ends[0] > both_ends[1]:
                raise UsageError(
                    f"weight_bounds of {name!r}: {(least, most)!r} and {(low, high)!r} have no weight in common; "
                    "leave one of them out"
                )
    return found


def excludes_0(ends: tuple[float, float]) -> bool:
    """Whether a feature with such bounds has a weight wherever it is selected."""
    low, high = ends
    return low > 0.0 or high < 0.0


def excluding_0(bounds: Mapping[str, tuple[float, float]]) -> list[str]:
    """The features whose bounds exclude 0."""
    return [name for name, ends in bounds.items() if excludes_0(ends)]


def by_class(index: Mapping[str, int], labels: Iterable[Any]) -> dict[str, int]:
    """The names that bounds of more than two classes may have: features, of all classes, and ``feature|class``."""
    texts = [str(label) for label in labels]
    found = dict(index)
    for name, j in index.items():
        for text in texts:
            both_ways = column_of(name, text)
            if both_ways in found:
                raise UsageError(f"{both_ways!r} has two meanings in bounds on the weights of classes; rename {name!r}")
            found[both_ways] = j
    return found


def of_class(bounds: Mapping[str, tuple[float, float]], index: Mapping[str, int], label: Any) -> WeightBounds:
    """Those of one class, by feature, of bounds whose names are `by_class`'s."""
    own = ((name.removesuffix(column_of("", label)), name, ends) for name, ends in bounds.items())
    parts = [{name if name in index else bare: ends} for bare, name, ends in own if name in index or bare in index]
    found = both(*parts)
    return dict(sorted(found.items(), key=lambda one: index[one[0]]))


def column_of(feature: str, label: object) -> str:
    """The column of a feature in the block of a class (`mipfs.data.stacked`), and what bounds of that class name."""
    return f"{feature}|{label}"


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


def bounds_document(bounds: Mapping[str, tuple[float, float]]) -> dict[str, list[float | None]]:
    """Bounds as JSON has them: null for no end."""
    return {name: [end if math.isfinite(end) else None for end in ends] for name, ends in bounds.items()}


def clip_weights(names: Sequence[str], weights: Any, bounds: Mapping[str, tuple[float, float]]) -> Any:
    """Weights (k,) on the user's scale between their bounds."""
    if not bounds:
        return weights
    ends = [bounds.get(name, FREE) for name in names]
    return cast(Any, weights.clip([low for low, _ in ends], [high for _, high in ends])) if ends else weights
