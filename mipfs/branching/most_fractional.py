"""The atom whose σ is nearest to ½, as textbooks have it; of equal ones that of larger |w|."""

from __future__ import annotations

from mipfs.compiled import compiled


@compiled(nogil=True)
def choose(relaxed, places):  # type: ignore[no-untyped-def]
    """The place of largest min(σ, 1 − σ)."""
    best = places[0]
    for t in places[1:]:
        more = min(relaxed.sigma[t], 1.0 - relaxed.sigma[t]) - min(relaxed.sigma[best], 1.0 - relaxed.sigma[best])
        if more > 0.0 or (more == 0.0 and abs(relaxed.w[t]) > abs(relaxed.w[best])):
            best = t
    return best
