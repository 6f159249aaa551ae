"""Cover inequalities of rows with coefficients of one sign, such as a budget.

Of a row a'σ ≤ b, a ≥ 0, a cover C has Σ over C of a_j > b: not all of it goes in. With λ = Σ over C of a_j − b and
t = 1/max over C of a_j, minimal covers have tλ ≤ 1, so that t times the row and 1 − t a_j times σ_j ≤ 1 for the j of C,
rounded down, are

    Σ over C of σ_j + Σ over all others of ⌊t a_j⌋ σ_j ≤ |C| − 1

an extended cover inequality (Balas 1975), a Chvátal-Gomory row. σ̄ breaks it if Σ over C of (1 − σ̄_j) < 1, so the
cover is filled by rising (1 − σ̄_j)/a_j (the greedy of Crowder, Johnson and Padberg 1983).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import terms_of
from mipfs.selection.derived import ChvatalGomory
from mipfs.selection.selection import Selection


def separate(selection: Selection, sigma: npt.NDArray[np.float64]) -> Iterator[ChvatalGomory]:
    """A cover inequality of every row that has one which σ breaks."""
    rows = selection.rows
    for r in range(len(rows)):
        entries = {j: Fraction(value) for j, value in terms_of(rows.matrix, r)}
        if not entries or max(entries) >= selection.n_features:
            continue
        for sign, end in ((1, float(rows.high[r])), (-1, -float(rows.low[r]))):
            a = {j: sign * value for j, value in entries.items()}
            if math.isfinite(end) and min(a.values()) > 0:
                cover = _violated_cover(a, Fraction(end), sigma)
                if cover:
                    yield _extended_cover_row(r, sign, a, cover)


def _violated_cover(a: dict[int, Fraction], end: Fraction, sigma: npt.NDArray[np.float64]) -> list[int]:
    """A minimal cover that σ breaks; empty where none is found."""
    order = sorted(a, key=lambda j: ((1.0 - float(sigma[j])) / float(a[j]), j))
    cover, total = list[int](), Fraction(0)
    for j in order:
        cover.append(j)
        total += a[j]
        if total > end:
            break
    if total <= end:
        return []
    # What makes it no smaller a cover goes, those first that σ breaks it most without.
    for j in sorted(cover, key=lambda j: (float(sigma[j]), j)):
        if total - a[j] > end:
            cover.remove(j)
            total -= a[j]
    return cover if sum(1.0 - float(sigma[j]) for j in cover) < 1.0 else []


def _extended_cover_row(r: int, sign: int, a: dict[int, Fraction], cover: list[int]) -> ChvatalGomory:
    """The extended inequality of a minimal cover."""
    t = 1 / max(a[j] for j in cover)
    bounds = {j: 1 - t * a[j] for j in cover if t * a[j] != 1}
    return ChvatalGomory({r: sign * t}, bounds=bounds)
