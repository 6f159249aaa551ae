"""The histogram intersection kernel of one feature at a time: its scores by suffix sums, its columns as hats.

    min(x, z) = ∫ 1[t ≤ x] 1[t ≤ z] dt over t > 0, so  v'K_j v = Σ_k (u_k − u_{k−1}) (Σ of v_i over x_ij ≥ u_k)²

over the distinct values 0 = u_0 < u_1 < … < u_d of feature j (Maji and Berg 2009: one sort, then one pass).

In an orthonormal basis of functions that are constant between the u_k, 1[t ≤ x] has the coordinates
φ_k(x) = ∫ from 0 to x of that basis, and φ(x)'φ(z) = min(x, z) for all x, z of which one is some u_k. The basis is
Haar's over the u_k: 1/√u_d first, then for every split of lo < mid < hi (mid halves them) a on (u_lo, u_mid), −b on
(u_mid, u_hi). φ_mid is a hat that is zero outside (u_lo, u_hi), so a sample has log₂ d + 1 columns that are not zero,
where the steps 1[x ≥ u_k] have d/2.
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled


@compiled(nogil=True)
def intersection_scores(knots, starts, rows, levels, v, out):  # type: ignore[no-untyped-def]
    """out_j = v'K_j v.

    Parameters
    ----------
    knots : (K,) distinct positive values, ascending in every feature
    starts : (p + 1,) knots of feature j are starts[j] : starts[j + 1]
    rows : (nnz,) int32, samples by feature and value
    levels : (K + 1,) samples with value knots[k] are rows[levels[k] : levels[k + 1]]
    v : (n,)
    out : (p,) out
    """
    for j in range(out.size):
        total = 0.0
        score = 0.0
        # From the last knot down: total = Σ v_i over x_ij ≥ u_k.
        for k in range(starts[j + 1] - 1, starts[j] - 1, -1):
            for s in range(levels[k], levels[k + 1]):
                total += v[rows[s]]
            below = knots[k - 1] if k > starts[j] else 0.0
            score += (knots[k] - below) * total * total
        out[j] = score


@compiled(nogil=True)
def hat_coordinates(x, knots, columns, values, counts):  # type: ignore[no-untyped-def]
    """The coordinates of every x_i >= 0, as rows of at most `columns.shape[1]` entries that are not zero.

    Parameters
    ----------
    x : (n,) values; above the last knot they count as it
    knots : (d,) u_1 … u_d, ascending and positive
    columns : (n, depth) int32 out, 0 … d − 1
    values : (n, depth) out
    counts : (n,) int64 out
    """
    d = knots.size
    top = knots[d - 1]
    for i in range(x.size):
        at = min(x[i], top)
        count = 0
        if at > 0.0:
            columns[i, 0] = 0
            values[i, 0] = at / np.sqrt(top)
            count = 1
        # u_low < x < u_high, u_0 = 0
        low = 0
        high = d
        while at > 0.0 and high - low > 1:
            mid = (low + high) // 2
            # Haar's function on (u_low, u_high), integrated: a hat with its peak at u_mid.
            left = knots[low - 1] if low > 0 else 0.0
            peak = knots[mid - 1]
            right = knots[high - 1]
            rise = peak - left
            fall = right - peak
            if at <= peak:
                value = (at - left) / rise * np.sqrt(rise * (fall / (rise + fall)))
                high = mid
            else:
                value = (right - at) / fall * np.sqrt(fall * (rise / (rise + fall)))
                low = mid
            if value <= 0.0:
                break
            columns[i, count] = mid
            values[i, count] = value
            count += 1
            if at == peak:
                break
        counts[i] = count
