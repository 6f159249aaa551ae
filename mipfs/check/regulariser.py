"""The term of a weight that a result names, in rational numbers; without a name it is ½w², which the checker knows.

    v(σ) = min over w, b of Σ_j σ_j r_j(w_j/σ_j) + L(m) ≥ g(α) − Σ_j σ_j h_j(ω_j),   h(ω) = max over w of ωw − r(w)

What r and h are is stated by the class `Stated` of the regulariser's file, in rational numbers: see
`mipfs.check.stated`, which runs it apart from that file. Where it is used, h is held against r: at the largest ω of
every dual vector the best w is looked for, and one that has more than h(ω) refutes the statement. Bounds on the
weights, which stand under `weight_bounds`, are the checker's own (`mipfs.check.bounded`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from mipfs.check.rounding import Array, CertificateError, Integers, above, require
from mipfs.check.stated import statement_of

TRIED, SECTIONS = 4, 40
"""Features of a dual vector whose h is held against r, and golden sections that look for the best w."""
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
"""The ratio of the golden section: one of two places is a place of the next section too."""


class Stated(Protocol):
    """r and h of every feature j, exactly: r − ½w² is convex, r(0) = 0, r ≥ ½w², and h is the conjugate of r."""

    words: str
    is_homogeneous: bool
    """Whether r(tw) = t²r(w) for t ≥ 0: then the ρ-form is −1/(4v)."""

    def value(self, j: int, w: Fraction) -> Fraction | None:
        """r_j(w); None where w is not allowed."""

    def conjugate(self, j: int, omega: Fraction) -> Fraction:
        """h_j(ω)."""


def stated_regulariser(params: Mapping[str, Any]) -> Stated | None:
    """The regulariser of a problem; None for ½w²."""
    given = params.get("regulariser")
    if given is None:
        return None
    require(isinstance(given, Mapping) and isinstance(given.get("name"), str), "the regulariser has no name")
    name = given["name"]
    own = {key: value for key, value in given.items() if key != "name"}
    try:
        found: Stated = statement_of("regulariser", name)(**own)
    except (TypeError, ValueError, OverflowError) as error:
        raise CertificateError(f"the regulariser {name!r} is not stated as it must be: {error}") from None
    return found


def twice_above(regulariser: Stated, first: int, omega: Array, radius: Array) -> Array:
    """2h of the features from `first` on, no less than anywhere in ω ± radius, (B, k): h is convex."""
    found = np.empty(omega.shape)
    for at, (middle, far) in enumerate(zip(omega.ravel().tolist(), radius.ravel().tolist(), strict=True)):
        if not np.isfinite(middle + far):
            found.flat[at] = np.inf
            continue
        j = first + at % omega.shape[1]
        ends = (Fraction(middle) - Fraction(far), Fraction(middle) + Fraction(far))
        found.flat[at] = above(2 * max(regulariser.conjugate(j, end) for end in ends))
    for row in omega:
        largest = np.argsort(-np.abs(row), kind="stable")[:TRIED]
        for k in largest[np.isfinite(row[largest])].tolist():
            _hold_against_values(regulariser, first + k, float(row[k]))
    return found


def _hold_against_values(regulariser: Stated, j: int, omega: float) -> None:
    """Reject an h(ω) below ωw − r(w) at some w: this is concave, and has its maximum between 0 and ω, since r ≥ ½w²."""
    h, low, high = regulariser.conjugate(j, Fraction(omega)), 0.0, omega

    def reached(w: float) -> Fraction | None:
        """ωw − r(w); None where w is not allowed."""
        value = regulariser.value(j, Fraction(w))
        found = None if value is None else Fraction(omega) * Fraction(w) - value
        require(
            found is None or found <= h,
            f"the regulariser is stated wrongly: of feature {j + 1} its conjugate at ω = {omega:g} is {float(h):.10g}, "
            f"but ωw − value is more at w = {w:.10g}",
        )
        return found

    one, other = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_one, at_other = reached(one), reached(other)
    for _ in range(SECTIONS):
        if at_other is None or (at_one is not None and at_one >= at_other):
            high, other, at_other = other, one, at_one
            one = high - GOLDEN * (high - low)
            at_one = reached(one)
        else:
            low, one, at_one = one, other, at_other
            other = low + GOLDEN * (high - low)
            at_other = reached(other)


def terms_above(regulariser: Stated, ids: Integers, w: list[Fraction], sigma: Array) -> float:
    """Σ σ_j r_j(w_j/σ_j) over some features, rounded up once."""
    total = Fraction(0)
    for j, one, part in zip(ids.tolist(), w, map(Fraction, sigma.tolist()), strict=True):
        term = regulariser.value(j, one / part)
        if term is None:
            raise CertificateError("a weight is one that the regulariser does not allow")
        total += part * term
    return above(total)
