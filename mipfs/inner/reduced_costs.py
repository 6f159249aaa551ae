"""The inner minimum over Σσ ≤ M with some atoms fixed, from above, and the atoms that it fixes at a cutoff.

    bound = g − Σ of the gains inside − the sum of the K largest positive gains of the free atoms

An atom whose other value would lift this to the cutoff is fixed, by one more of these sums each.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mipfs.atoms.features import UNIT_ROUNDOFF

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def with_each(g: float, gains: Array, inside: Integers, free: Integers, M: int | None) -> Array:
    """The bound of a node where one more free atom is in, (k,), rounded down: for every atom; inf where none fits.

    Parameters
    ----------
    g, gains, inside, free, M : as for `screened`
    """
    least = np.full(gains.size, np.inf)
    room = free.size if M is None else min(M - inside.size, free.size)
    least[inside] = screened(g, gains, inside, free, M, np.inf)[0]
    if room <= 0:
        return least
    mine, held = gains[free], float(gains[inside].sum())
    most = np.maximum(-np.partition(-mine, room - 1)[:room], 0.0)
    taken, weakest = g - held - float(most.sum()), float(most.min())  # what comes in pushes the weakest out
    size = abs(g) + float(most.sum() + np.abs(gains[inside]).sum()) + np.abs(mine)
    error = 2.0 * (free.size + inside.size + 12) * UNIT_ROUNDOFF * size
    least[free] = np.maximum(taken + weakest - mine, taken) - error
    return least


def screened(
    g: float, gains: Array, inside: Integers, free: Integers, M: int | None, cutoff: float
) -> tuple[float, Integers, Integers]:
    """A node's bound, rounded down, and which free atoms it fixes in and out.

    Parameters
    ----------
    g : float, what the gains are taken off
    gains : (k,) of the atoms, rounded up
    inside, free : positions
    M : most atoms inside, or None
    cutoff : float, maybe inf
    """
    room = free.size if M is None else min(M - inside.size, free.size)
    mine = gains[free]
    order = np.argsort(-mine, kind="stable")
    chosen = order[: max(0, min(room, int(np.count_nonzero(mine > 0.0))))]
    taken, held = mine[chosen], gains[inside]
    size = abs(g) + float(np.abs(taken).sum() + np.abs(held).sum())
    error = 2.0 * (free.size + inside.size + 8) * UNIT_ROUNDOFF * size
    bound = g - float(held.sum()) - float(taken.sum()) - error
    if not np.isfinite(cutoff) or free.size == 0:
        return bound, order[:0], order[:0]
    # the other value of a chosen atom lets the next best in; of another it pushes the worst chosen one out
    following = max(0.0, float(mine[order[chosen.size]])) if room and chosen.size < free.size else 0.0
    weakest = float(taken[-1]) if chosen.size == room and room else 0.0
    rest = order[chosen.size :]
    goes_in = chosen[bound + taken - following >= cutoff]
    goes_out = rest[bound + weakest - mine[rest] >= cutoff] if room else rest
    return bound, free[np.sort(goes_in)], free[np.sort(goes_out)]
