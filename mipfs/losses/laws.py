"""What proofs rest on, tried at a few numbers before a loss is first used: one that breaks it is refused by name.

    ℓ falls with a slope of at most t = max_slope,   g(α) ≤ ℓ(m) + αm for every 0 ≤ α ≤ t and every m (Fenchel)

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
    with np.errstate(all="ignore"):  # an exponential is inf at FAR, which is no slope
        values = np.array([loss.value(np.array([m]), one) for m in MARGINS])
    slope = (values[0] - values[1]) / (MARGINS[1] - FAR)
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
