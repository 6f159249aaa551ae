"""Approximate leverage scores: draws with their probabilities, without a singular value decomposition of X.

(Drineas, Magdon-Ismail, Mahoney, Woodruff 2012, Algorithm 1; what Paul 2016, section 6, leaves to be tried.)

    B = S X'      S adds every feature, with a random sign, to one of t rows                 (Clarkson, Woodruff 2013)
    B = Q R       R is m × m, m the number of samples; ‖(R⁻¹)' x_j‖² is near ‖v_j‖²
    s_j           = ‖G (R⁻¹)' x_j‖², G Gaussian of few rows: near that again

The two products with X cost as many operations as it has entries, times the rows of G, and X is kept as it is.
How near the scores are is not bounded here: the eigenvalues that the draws leave are measured, as of every method.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg, sparse

from mipfs.errors import DataError
from mipfs.lab.sketch.picks import Picks, Progress, gathered
from mipfs.lab.sketch.source import Source
from mipfs.plumbing.arrays import Array

ROWS_PER_SAMPLE = 32
"""Rows of S X' for every sample."""
PROJECTIONS = 32
"""Rows of G by default: scores to within some quarter."""
RANK_THRESHOLD = 1e-10
"""Singular values of S X' below this share of the largest are zero."""


def scores(source: Source, seed: int, projections: int = PROJECTIONS) -> Array:
    """The approximate scores ‖v_j‖² of every column, shape (p,).

    Raises
    ------
    DataError
        A matrix of rank 0.
    """
    m, p = source.shape
    r = np.random.default_rng(seed)
    t = ROWS_PER_SAMPLE * m
    place, sign = r.integers(0, t, p), r.choice(np.array([-1.0, 1.0]), p)
    spread = sparse.csr_array((sign, (np.arange(p), place)), shape=(p, t))
    image = source.times(spread) if t < p else source.dense()
    U, values, _ = linalg.svd(image, full_matrices=False, check_finite=False)
    if values[0] <= 0.0:
        raise DataError("every column is constant, so that nothing is left of them", "there is nothing to choose by")
    kept = values > RANK_THRESHOLD * values[0]
    # B' = U Σ W': (R⁻¹)' = Σ⁻¹U' up to a rotation
    pulled = (U[:, kept] / values[kept]).T
    if projections < int(np.count_nonzero(kept)):
        pulled = r.standard_normal((projections, pulled.shape[0])) @ pulled / np.sqrt(projections)
    found = source.project(pulled)
    return np.asarray(np.einsum("ij,ij->j", found, found))


def pick(source: Source, r: int, *, seed: int, projections: int | None, progress: Progress | None) -> Picks:
    """r independent draws by approximate scores; a column that is drawn c times has weight c/(r·probability)."""
    found = scores(source, seed, PROJECTIONS if projections is None else projections)
    chances = found / found.sum()
    order = np.random.default_rng([seed, 1]).choice(chances.size, size=r, p=chances)
    remarks = ("of approximate scores nothing is promised; what the draws left is measured",)
    return gathered(order.astype(np.int64), 1.0 / (r * chances[order]), None, remarks)
