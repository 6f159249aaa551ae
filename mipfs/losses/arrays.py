"""Losses in whole arrays of a library: their proximal steps and both values, over B nodes at once.

For the relaxation on a device (`mipfs.inner.array_batch`); xp is NumPy, or a library with its functions. Sums are in
float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

STEPS = 4
"""Newton's steps of the logistic proximal step: it begins at the last margin, which is near."""
LEAST = 1e-30
"""What a logarithm is of at least."""


@dataclass(frozen=True)
class ArrayLoss:
    """A loss in arrays.

    Attributes
    ----------
    proximal : proximal(xp, v, weight, m)
        The minimiser h of weight·ℓ(h) + ½ (h − v)², from the last margins m; all (B, n).
    value : value(xp, m, c)
        L(m), (B,).
    dual : dual(xp, alpha, c)
        g(α), (B,), for α in its box.
    """

    proximal: Callable[..., Any]
    value: Callable[..., Any]
    dual: Callable[..., Any]


def _total(xp: Any, terms: Any) -> Any:
    """Sums over the samples."""
    return xp.sum(terms, axis=1, dtype=xp.float64)


def _falling(xp: Any, h: Any) -> Any:
    """1/(1 + e^h)."""
    e = xp.exp(-xp.abs(h))
    return xp.where(h > 0.0, e, 1.0) / (1.0 + e)


def _logistic_proximal(xp: Any, v: Any, weight: Any, m: Any) -> Any:
    """h = v + weight/(1 + e^h), between v and v + weight."""
    low, high = v, v + weight
    h = xp.clip(m, low, high)
    for _ in range(STEPS):
        share = _falling(xp, h)
        over = h - v - weight * share
        low, high = xp.where(over > 0.0, low, xp.maximum(low, h)), xp.where(over > 0.0, xp.minimum(high, h), high)
        h = xp.clip(h - over / (1.0 + weight * share * (1.0 - share)), low, high)
    return h


def _logistic_dual(xp: Any, alpha: Any, c: Any) -> Any:
    """−Σ [α log(α/c) + (c − α) log(1 − α/c)]."""
    share = alpha / c
    rest = 1.0 - share
    parts = share * xp.log(xp.maximum(share, LEAST)) + rest * xp.log(xp.maximum(rest, LEAST))
    return -_total(xp, c * parts)


ARRAYS = {
    "hinge": ArrayLoss(
        lambda xp, v, weight, m: xp.maximum(v, xp.minimum(v + weight, 1.0)),
        lambda xp, m, c: _total(xp, c * xp.maximum(1.0 - m, 0.0)),
        lambda xp, alpha, c: _total(xp, alpha),
    ),
    "squared-hinge": ArrayLoss(
        lambda xp, v, weight, m: xp.where(v < 1.0, (v + weight) / (1.0 + weight), v),
        lambda xp, m, c: _total(xp, 0.5 * c * xp.square(xp.maximum(1.0 - m, 0.0))),
        lambda xp, alpha, c: _total(xp, alpha - 0.5 * alpha * alpha / c),
    ),
    "logistic": ArrayLoss(
        _logistic_proximal,
        lambda xp, m, c: _total(xp, c * (xp.maximum(-m, 0.0) + xp.log1p(xp.exp(-xp.abs(m))))),
        _logistic_dual,
    ),
}
"""By name, those that have a proximal step."""
