"""A sweep of block coordinate descent over groups of columns, for the group lasso (Qin, Scheinberg, Goldfarb 2010).

    min over w   Σ_g d_g ‖w_g‖ + Σ_i c_i log(1 + e^(−y_i (f_i)))

Every block takes proximal gradient steps with its own constant; the margins are kept and changed as its weights are.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled
from mipfs.kernels.columns import add_columns, dot_columns


class Blocks(NamedTuple):
    """Columns in groups.

    X : dense in Fortran order or a CSC triple, whose column j stands for x_j − center_j
    starts : (G + 1,) first column of every group;  d, step : (G,) penalty and 1/L_g, 0 for a group without values
    """

    X: Any
    center: npt.NDArray[Any]
    starts: npt.NDArray[Any]
    d: npt.NDArray[Any]
    step: npt.NDArray[Any]


@compiled(nogil=True)
def group_sweep(blocks, y, c, w, f, inner):  # type: ignore[no-untyped-def]
    """One pass over the groups; the number of weights that moved.

    w, f : weights and values of the classifier, changed in place; inner : steps of a block at most.
    """
    X, center, starts, d, step = blocks
    n = y.size
    moved = 0
    slope = np.empty(n)
    total = 0.0
    is_new = True
    for g in range(starts.size - 1):
        if step[g] == 0.0:
            continue
        cols = np.arange(starts[g], starts[g + 1])
        out = np.empty(cols.size)
        delta = np.empty(cols.size)
        for _ in range(inner):
            if is_new:
                total = 0.0
                for i in range(n):
                    # −∂/∂f_i of the loss, made anew only where weights have moved since.
                    slope[i] = y[i] * c[i] / (1.0 + math.exp(min(700.0, y[i] * f[i])))
                    total += slope[i]
                is_new = False
            dot_columns(X, cols, slope, out)
            norm = 0.0
            for t in range(cols.size):
                out[t] = w[cols[t]] + step[g] * (out[t] - center[cols[t]] * total)
                norm += out[t] * out[t]
            norm = math.sqrt(norm)
            # The prox of d‖·‖ shortens the group by step·d, or to zero.
            shrink = max(0.0, 1.0 - step[g] * d[g] / norm) if norm > 0.0 else 0.0
            far = 0.0
            size = 0.0
            offset = 0.0
            for t in range(cols.size):
                delta[t] = shrink * out[t] - w[cols[t]]
                w[cols[t]] += delta[t]
                far = max(far, abs(delta[t]))
                size = max(size, abs(w[cols[t]]))
                offset += center[cols[t]] * delta[t]
            if far == 0.0:
                break
            add_columns(X, cols, delta, f)
            if offset != 0.0:
                for i in range(n):
                    f[i] -= offset
            moved = moved + 1
            is_new = True
            if far <= 1e-3 * size:
                break
    return moved
