"""What proofs rest on, tried at a few numbers before a loss is first used: one that breaks it is refused by name.

    ℓ ≥ 0,   ℓ falls, with a slope of at most t = max_slope,   g(α) ≤ ℓ(m) + αm for all 0 ≤ α ≤ t and m (Fenchel)

That is no proof: what a certificate rests on is what the loss's file states to the checker.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from mipfs.errors import UsageError

FAR = -1e6
"""A margin at which a loss has about its steepest slope."""
MARGINS = (FAR, -1e3, -30.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0, 30.0, 1e3)
SHARES = (0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""The α that are tried, of the top, or of `OPEN` where there is none."""
OPEN = 64.0
AGREEMENT = 1e-8
"""What rounding may change, relative to the terms."""


@cache
def check(loss: Any) -> None:
    """Refuse a loss that breaks them, once a process.

    Parameters
    ----------
    loss : mipfs.losses.base.Loss

    Raises
    ------
    UsageError
    """
    one, name, t = np.ones(1), loss.name, loss.max_slope
    if not hasattr(loss, "terms"):
        raise UsageError(f"the loss {name!r} names no `terms`: give it a class of mipfs.losses.terms.Terms with `bend`")
    with np.errstate(all="ignore"):  # an exponential is inf at FAR: it has no steepest slope
        values = np.array([loss.value(np.array([m]), one) for m in MARGINS])
    _check_values(name, values)
    slope = (values[0] - values[1]) / (MARGINS[1] - FAR) if np.isfinite(values[0]) else np.inf
    if slope > t * (1.0 + AGREEMENT):
        said = f"{slope:.6g}" if slope < 1e5 else "math.inf"
        raise UsageError(
            f"the loss {name!r} falls with a slope of {slope:.6g}, above max_slope = {t:g}: its dual box is too small; "
            f"say max_slope = {said}, in its class Stated too"
        )
    for alpha in (t if loss.has_top else OPEN) * np.array(SHARES):
        g = loss.dual_value(np.array([alpha]), one)
        sides = values + alpha * np.array(MARGINS)
        size = np.abs(values) + np.abs(alpha * np.array(MARGINS)) + loss.dual_magnitude(np.array([alpha]), one)
        k = int(np.argmax(g - sides - AGREEMENT * size))
        if not g <= sides[k] + AGREEMENT * size[k]:
            raise UsageError(
                f"the loss {name!r}: dual_value is {g:.6g} at alpha = {alpha:g} and c = 1, above value + alpha·margin "
                f"= {sides[k]:.6g} at margin {MARGINS[k]:g}: no bound would hold; mend dual_value, or max_slope = {t:g}"
            )


def _check_values(name: str, values: Any) -> None:
    """ℓ is a number, nowhere negative, and does not rise: α ≥ 0, and gaps are of an objective that is at least 0."""
    for k, (m, value) in enumerate(zip(MARGINS, values.tolist(), strict=True)):
        said = f"the loss {name!r}: its value is {value:.6g} at margin {m:g} and c = 1"
        if not value >= -AGREEMENT:
            raise UsageError(f"{said}; a loss is a number of at least 0 everywhere: add a constant, or mend value")
        if k and value > values[k - 1] + AGREEMENT * (1.0 + values[k - 1]):
            raise UsageError(
                f"{said}, more than the {values[k - 1]:.6g} at {MARGINS[k - 1]:g}; a loss never rises with the margin: "
                "mend value, or let it stay at its least value from there on"
            )
