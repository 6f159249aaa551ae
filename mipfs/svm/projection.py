"""The projection onto the dual set {0 ≤ α ≤ top} with, for a free bias, y'α = 0."""

from __future__ import annotations

import numpy as np

from mipfs.plumbing.arrays import Array


def project(alpha: Array, top: Array, y: Array, bias: bool, c: Array | None = None) -> Array:
    """The point of the dual set that is nearest to α, up to rounding.

    With a bias it is clip(α − ν c∘y, 0, top) for the ν at which y'· vanishes: a non-increasing, piecewise linear
    function of ν, whose root is found between two of its sorted breakpoints.

    Parameters
    ----------
    alpha : (n,)
    top : (n,) upper ends of the box, inf where there is none
    y : (n,) labels, -1.0 or +1.0, of both classes when `bias`
    bias : bool
    c : (n,) positive, optional
        Distances are Σ d_i²/c_i; by default c is 1. With the loss weights a sample of weight two counts as two do.

    Returns
    -------
    (n,) ndarray
    """
    if not bias:
        return np.asarray(np.clip(alpha, 0.0, top), dtype=float)
    from mipfs.kernels.projection import project_on_box
    from mipfs.kernels.structures import only_read

    slope = y if c is None else c * y
    # α_i leaves 0 and reaches top_i at these values of ν
    breaks = np.concatenate([alpha / slope, ((alpha - top) / slope)[np.isfinite(top)]])
    breaks.sort()
    found = np.empty(alpha.size)
    project_on_box(only_read(alpha), only_read(slope), only_read(top), only_read(y), breaks, found)
    return found
