"""Matrices that are hard for a choice of columns, small enough for dense references."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

KINDS = ("gauss", "lognormal", "0/1", "deficient", "zeros", "equal", "tall", "orthogonal", "scales", "one")


def matrix(seed: int) -> Array:
    """A matrix of at most 14 rows and 40 columns, of one kind after the other."""
    r = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, p = int(r.integers(2, 12)), int(r.integers(2, 40))
    if kind == "tall":
        n, p = 14, int(r.integers(1, 8))
    if kind == "one":
        n, p = int(r.integers(1, 6)), 1
    X = r.standard_normal((n, p))
    if kind == "lognormal":
        X *= np.exp(3.0 * r.standard_normal(p))
    if kind == "0/1":
        X = (X > 1.0).astype(float)
        X[0, 0] = 1.0
    if kind == "deficient":
        X = X[:, : max(1, p // 3)] @ r.standard_normal((max(1, p // 3), p))
        X[-1] = X[0]
    if kind == "zeros":
        X[:, r.random(p) < 0.5] = 0.0
        X[0, 0] = 1.0
    if kind == "equal":
        X = X[:, r.integers(0, max(1, p // 4), p)]
    if kind == "orthogonal":
        X = np.linalg.qr(r.standard_normal((max(n, p), p)))[0]
    if kind == "scales":
        X *= 10.0 ** r.integers(-3, 4, p) * 10.0 ** float(r.choice([-90, 0, 90]))
    return X


def picks(seed: int, rank: int) -> int:
    """A number of picks: one above the rank for every third seed."""
    return (
        rank + 1 if seed % 3 == 0 else int(np.ceil(rank * np.random.default_rng(seed).choice([1.3, 2.0, 4.0, 9.0]))) + 1
    )
