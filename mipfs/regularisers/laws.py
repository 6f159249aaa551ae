"""What proofs rest on, tried at a few numbers before a regulariser of one's own is first used: one that breaks it is
refused by name.

    r(0) = 0,   r ≥ ½w²,   h(ω) ≥ ωw − r(w) for every w,   with equality at w = h'(ω),   r − ½w² convex
    r(2w) = 4r(w) where it is homogeneous,   r = ½w² where it is the ridge

That is no proof: what a certificate rests on is what the file's class `Stated` says to the checker.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mipfs.errors import UsageError
from mipfs.plumbing.extension import is_own

SIZES = np.geomspace(1e-6, 1e3, 91)
TRIED = (*(-SIZES[::-1]).tolist(), 0.0, *SIZES.tolist())
"""The w and the ω that are tried: ten a decade, so that a wrong threshold lies between two of them."""
FEATURES = 64
"""First features whose terms are tried."""
AGREEMENT = 1e-8
"""What rounding may change, relative to the terms."""


def check(regulariser: Any, count: int) -> None:
    """Refuse a regulariser of `count` features that breaks them; those of the package are tested instead.

    Raises
    ------
    UsageError
    """
    if is_own(type(regulariser).__module__):
        return
    few = min(count, FEATURES)
    regulariser.check(count)
    own = regulariser.at(np.arange(few))
    with np.errstate(all="ignore"):
        values = np.array([own.value(np.full(few, w)) for w in TRIED])
        _check_claims(own, values, few)
        if own.is_monotone:
            _check_values(regulariser.name, values)
        for omega in TRIED:
            _check_conjugate(own, omega, values, few)


def _check_claims(own: Any, values: Any, few: int) -> None:
    """It is ½w² where it says so, as a subclass of the ridge does, and homogeneous where it says that."""
    at = np.array(TRIED)[:, None]
    for claim in ("is_ridge", "has_kernels"):
        if getattr(own, claim):
            _compare(own, claim, "½w²", values, 0.5 * np.square(at))
    if own.is_homogeneous:
        _compare(
            own,
            "is_homogeneous",
            "a quarter of that at 2w",
            values,
            [own.value(np.full(few, 2 * w)) / 4 for w in TRIED],
        )


def _compare(own: Any, claim: str, what: str, values: Any, right: Any) -> None:
    """Refuse a claim that the values of some weight contradict."""
    wanted = np.broadcast_to(right, values.shape)
    wrong = ~((values == wanted) | (np.abs(values - wanted) <= AGREEMENT * np.abs(wanted)))
    if np.any(wrong):
        k, j = (int(one[0]) for one in np.nonzero(wrong))
        raise UsageError(
            f"the regulariser {own.name!r} says {claim}, but its value at w = {TRIED[k]:g} is {values[k, j]:.6g} and "
            f"{what} is {wanted[k, j]:.6g}: say {claim} = False"
        )


def _check_values(name: str, values: Any) -> None:
    """r(0) = 0, r ≥ ½w², and the chords of r − ½w² above it."""
    at, half = np.array(TRIED), 0.5 * np.square(TRIED)
    if np.any(values[at == 0.0] != 0.0):
        raise UsageError(f"the regulariser {name!r}: its value at 0 is not 0; a weight of 0 costs nothing")
    least = values.min(axis=1)
    for w, low, ridge in zip(TRIED, least.tolist(), half.tolist(), strict=True):
        if not low >= ridge * (1.0 - AGREEMENT):
            raise UsageError(
                f"the regulariser {name!r}: its value is {low:.6g} at w = {w:g}, below ½w² = {ridge:.6g}, which bounds "
                "rest on; it has ½w² and what comes on top of it"
            )
    rest = values - half[:, None]
    share = ((at[1:-1] - at[:-2]) / (at[2:] - at[:-2]))[:, None]
    chord = (1.0 - share) * rest[:-2] + share * rest[2:]
    bent = np.isfinite(chord) & ~(rest[1:-1] <= chord + AGREEMENT * (np.abs(chord) + values[1:-1]))
    if np.any(bent):
        w = at[1:-1][bent.any(axis=1)][0]
        raise UsageError(f"the regulariser {name!r}: its value less ½w² is not convex about w = {w:g}")


def _check_conjugate(own: Any, omega: float, values: Any, few: int) -> None:
    """h(ω) is what the best w has, and h'(ω) that w."""
    h, w = own.conjugate(np.full(few, omega)), own.weight(np.full(few, omega))
    at = np.array(TRIED)[:, None]
    reached, held = omega * at - values, omega * w - own.value(w)
    size = np.abs(h) + np.abs(omega * w) + np.abs(own.value(w))
    said = f"the regulariser {own.name!r}: its conjugate at ω = {omega:g}"
    tolerance = AGREEMENT * (np.abs(h) + np.abs(omega * at) + np.where(np.isfinite(values), np.abs(values), 0.0))
    below = ~(h >= reached - tolerance)
    if np.any(below):
        k, j = (int(one[0]) for one in np.nonzero(below))
        raise UsageError(
            f"{said} is {h[j]:.6g}, below ωw - value = {reached[k, j]:.6g} at w = {TRIED[k]:g}: no bound would hold; "
            "mend conjugate, or value"
        )
    if not np.all(np.abs(h - held) <= AGREEMENT * size):
        j = int(np.argmax(~(np.abs(h - held) <= AGREEMENT * size)))
        raise UsageError(
            f"{said} is {h[j]:.6g}, and ωw - value is {held[j]:.6g} at w = weight(ω) = {w[j]:.6g}: that weight is to "
            "be the best one; mend conjugate, weight or value"
        )
