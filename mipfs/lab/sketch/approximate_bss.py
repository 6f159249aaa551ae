"""Approximate BSS (Paul 2016, Algorithm 2): BSS on the right singular vectors of GX, G Gaussian of few rows.

V is then made from t projections instead of all rows. Where rank GX = rank X, both have the same row space, their right
singular vectors differ by a rotation, and the guarantee of BSS carries over as it stands; otherwise it does not.
"""

from __future__ import annotations

import numpy as np

from mipfs.lab.sketch.bss import check_picks, promise_eigenvalues, sparsify
from mipfs.lab.sketch.picks import Picks, Progress, gathered
from mipfs.lab.sketch.source import Source, column_norms, right_vectors

PROJECTION_DIVISOR = 4
"""Projections by default: r over this, so that q = ½."""


def pick(source: Source, r: int, *, seed: int, projections: int | None, progress: Progress | None) -> Picks:
    """BSS after a Gaussian projection of the rows.

    Parameters
    ----------
    projections : int >= 1, the rows of G; r/4 by default

    Raises
    ------
    UsageError
        r is not above the rank of GX.
    """
    t = max(1, r // PROJECTION_DIVISOR) if projections is None else projections
    G = np.random.default_rng(seed).standard_normal((t, source.shape[0]))
    image = source.project(G)
    norms = column_norms(image)
    basis = right_vectors(image, norms, None)
    check_picks(r, basis.rank, f"the rank of {t} projections", f"ask for r = {4 * basis.rank}, or fewer projections")
    order, weight = sparsify(basis.V, norms, r, progress)
    # Of full row rank GX may have lost directions of X: then nothing is promised until rank X is known to be t.
    sure = basis.rank < t or t >= source.shape[0]
    return gathered(order, weight, promise_eigenvalues(basis.rank, r), rank=basis.rank, sure=sure)
