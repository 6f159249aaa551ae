"""Reliability: pseudo-costs where both sides were tried often enough, and the largest |w| until then.

Achterberg, Koch and Martin 2005 look ahead where pseudo-costs are not reliable yet, by solving both children. A node's
relaxation is dear here, and the largest |w| is a good guess: while the atom of largest |w| was tried less than
`RELIABLE` times on either side, it is split on, which is the try. From then on it competes by its score
(`mipfs.branching.pseudo_costs`) with the others that are reliable.
"""

from __future__ import annotations

from mipfs.branching.pseudo_costs import MEMORY, learn
from mipfs.compiled import compiled

__all__ = ["MEMORY", "choose", "learn"]
RELIABLE = 4.0
"""Tries of a side after which its mean gain is relied on: 4 of Achterberg's 8, for trees are small."""


@compiled(nogil=True)
def choose(relaxed, places):  # type: ignore[no-untyped-def]
    """The place of largest |w|, or where that was tried often enough, the reliable one of largest score."""
    memory = relaxed.memory
    largest = places[0]
    for t in places[1:]:
        if abs(relaxed.w[t]) > abs(relaxed.w[largest]):
            largest = t
    if min(memory[relaxed.atoms[largest], 0], memory[relaxed.atoms[largest], 2]) < RELIABLE:
        return largest
    best = largest
    highest = -1.0
    for t in places:
        j = relaxed.atoms[t]
        if min(memory[j, 0], memory[j, 2]) < RELIABLE:
            continue
        sigma = relaxed.sigma[t]
        score = memory[j, 1] / memory[j, 0] * sigma * (memory[j, 3] / memory[j, 2]) * (1.0 - sigma)
        if score > highest or (score == highest and abs(relaxed.w[t]) > abs(relaxed.w[best])):
            best = t
            highest = score
    return best
