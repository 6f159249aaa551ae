"""The atom of largest |w|: where it is excluded the loss rises most, and where it is included the others lose room."""

from __future__ import annotations

from mipfs.compiled import compiled


@compiled(nogil=True)
def choose(relaxed, places):  # type: ignore[no-untyped-def]
    """The first place of largest |w|."""
    best = places[0]
    for t in places[1:]:
        if abs(relaxed.w[t]) > abs(relaxed.w[best]):
            best = t
    return best
