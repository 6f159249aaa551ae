"""Pseudo-costs: the atom whose two sides together lifted the bound most where they were tried before.

    Ψ⁻_j = mean over the splits on j of gain/σ_j where j went out,   Ψ⁺_j that of gain/(1 − σ_j) where it went in
    score of j = max(Ψ⁻_j σ_j, ε) · max(Ψ⁺_j (1 − σ_j), ε)

Of an atom that was never tried the means over all atoms stand in (Linderoth and Savelsbergh 1999; the product is that
of Achterberg, Koch and Martin 2005). Before anything was tried, and of equal scores, that of largest |w| is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled

MEMORY = 4
"""Of every atom: tries and sum of gain/σ out, tries and sum of gain/(1 − σ) inside."""
LEAST = 1e-6
"""A share is not taken for less, nor a gain relative to the means: a side that gained nothing hides the other else."""


def learn(memory: npt.NDArray[np.float64], splits: npt.NDArray[Any]) -> None:
    """Enter what splits were worth, in order."""
    way = np.where(splits["inside"] > 0, 1.0 - splits["share"], splits["share"])
    slope = splits["gain"] / np.maximum(way, LEAST)
    column = np.where(splits["inside"] > 0, 2, 0)
    np.add.at(memory, (splits["atom"], column), 1.0)
    np.add.at(memory, (splits["atom"], column + 1), slope)


@compiled(nogil=True)
def choose(relaxed, places):  # type: ignore[no-untyped-def]
    """The place of largest score."""
    memory = relaxed.memory
    tries_out, sum_out, tries_in, sum_in = 0.0, 0.0, 0.0, 0.0
    for j in range(memory.shape[0]):
        tries_out += memory[j, 0]
        sum_out += memory[j, 1]
        tries_in += memory[j, 2]
        sum_in += memory[j, 3]
    mean_out = sum_out / tries_out if tries_out > 0.0 else 0.0
    mean_in = sum_in / tries_in if tries_in > 0.0 else 0.0
    best = places[0]
    highest = -1.0
    for t in places:
        j = relaxed.atoms[t]
        sigma = relaxed.sigma[t]
        out = memory[j, 1] / memory[j, 0] if memory[j, 0] > 0.0 else mean_out
        inside = memory[j, 3] / memory[j, 2] if memory[j, 2] > 0.0 else mean_in
        score = max(out * sigma, LEAST * mean_out) * max(inside * (1.0 - sigma), LEAST * mean_in)
        if score > highest or (score == highest and abs(relaxed.w[t]) > abs(relaxed.w[best])):
            best = t
            highest = score
    return best
