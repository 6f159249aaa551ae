"""What the node kernels are handed, by name: tuples of arrays and numbers, which compiled code reads as it stands."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


def given(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array that a kernel only reads, of one type whoever owns it: contiguous, and not to be written to."""
    view = array.view() if array.flags.forc else np.ascontiguousarray(array)
    view.flags.writeable = False
    return view


class Samples(NamedTuple):
    """The loss of a node, in units of the largest weight.

    y, c : (n,) labels and loss weights; kind : HINGE, SQUARED_HINGE or LOGISTIC; bias : whether b is free
    """

    y: npt.NDArray[Any]
    c: npt.NDArray[Any]
    kind: int
    bias: bool


class InPlay(NamedTuple):
    """The columns of a node that are not fixed out.

    cols : (q,) positions, the forced ones first; forced : how many; room : how many of the others may be in
    penalty : (q,) c_j of these columns, in the units of the samples
    """

    cols: npt.NDArray[Any]
    forced: int
    room: int
    penalty: npt.NDArray[Any]


class Goal(NamedTuple):
    """When a relaxation is solved far enough.

    cutoff : it is given up once its bound reaches this
    tol : relative gap at which it counts as solved
    share : stop once upper − lower ≤ share·(cutoff − upper)
    known : a bound that the node has already: stop only if MOST of what it can rise to is earned; −inf for none
    """

    cutoff: float
    tol: float
    share: float
    known: float


class Columns(NamedTuple):
    """The columns that are alive, and what is selected of them.

    Z, X : columns y∘(x − z)·√size of the kernel, and the data's own
    penalty, center, norms : (k,); M : at most so many, −1 for any
    """

    Z: Any
    X: Any
    penalty: npt.NDArray[Any]
    center: npt.NDArray[Any]
    norms: npt.NDArray[Any]
    M: int


class Grid(NamedTuple):
    """How dual vectors are kept.

    c : (n,) loss weights; size : the largest; weighted : whether they differ
    bits : of the largest entry; coarse : what COARSE bits take off a bound at most, about
    """

    c: npt.NDArray[Any]
    size: float
    weighted: bool
    bits: int
    coarse: float


class RowSides(NamedTuple):
    """The user's rows over the columns in play, each as two sides: a'σ ≤ ends[r], then −a'σ ≤ ends[r + count].

    indptr, indices, data : the count rows, CSR; without any, indptr is (0,)
    ends, beyond : (2·count,) an end, and by how much it must be exceeded to be broken
    base, most : (2·count,) what extra variables add to a side at least, and at most
    """

    indptr: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    data: npt.NDArray[Any]
    ends: npt.NDArray[Any]
    base: npt.NDArray[Any]
    beyond: npt.NDArray[Any]
    most: npt.NDArray[Any]


class Piece(NamedTuple):
    """What an exploration of m = budget + 1 nodes and places leaves behind; of several ones with a leading axis.

    states (m, k) int8, weights (m, k) float32, intercepts, rhos, bounds (m,), parents (m,) int64
        The nodes; `parents` is the place of the dual vector that earned a node's bound. A node whose rho is negative
        was stuck before and is split as it stands.
    grids : (m,) of the dual vectors, place 0 that of the first node
    feature, children, dual, values : the piece of the proof, see `Proof.graft`; a screened place has the feature k
    causes : of a place that the rows leave empty, the side of `RowSides` that shows it; −1 for any other
    prices : (m, rows) multipliers of the user's rows that earn a bound together with a dual vector
    ages : (m,) nodes above a node whose multipliers were only stepped since some were found anew
    packed, ends, tops, widths : the dual vectors as `DualStore` keeps them
    found : (m, 2) int64, proof place of a node, and OPEN, LEAF, STUCK or DEAR; −1 where it is done
    offers, sums : (m, k) float32, (m,), sizes of the weights to round, and what their σ add up to: of the first node,
        if it was split (sums is −1 else), then of those whose relaxation is integral and below the cutoff
    totals : (9,) nodes solved, steps, stalled, proof places, dual vectors, nodes, bytes, least closed bound, offers
    """

    states: npt.NDArray[Any]
    weights: npt.NDArray[Any]
    intercepts: npt.NDArray[Any]
    rhos: npt.NDArray[Any]
    bounds: npt.NDArray[Any]
    parents: npt.NDArray[Any]
    grids: npt.NDArray[Any]
    feature: npt.NDArray[Any]
    children: npt.NDArray[Any]
    dual: npt.NDArray[Any]
    values: npt.NDArray[Any]
    causes: npt.NDArray[Any]
    prices: npt.NDArray[Any]
    ages: npt.NDArray[Any]
    packed: npt.NDArray[Any]
    ends: npt.NDArray[Any]
    tops: npt.NDArray[Any]
    widths: npt.NDArray[Any]
    found: npt.NDArray[Any]
    offers: npt.NDArray[Any]
    sums: npt.NDArray[Any]
    totals: npt.NDArray[Any]
