"""What the node kernels are handed, by name: tuples of arrays and numbers, which compiled code reads as it stands."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.kernels.loss import LossSteps
from mipfs.pointers import Step
from mipfs.settings.nodes import NodeSettings


def only_read(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array that a kernel only reads, of one type whoever owns it: contiguous, and not to be written to."""
    view = array.view() if array.flags.forc else np.ascontiguousarray(array)
    view.flags.writeable = False
    return view


class LossSamples(NamedTuple):
    """The loss of a node, in units of the largest weight.

    y, c : (n,) labels and loss weights; loss : its functions; bias : whether b is free
    """

    y: npt.NDArray[Any]
    c: npt.NDArray[Any]
    loss: LossSteps
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
    known : a bound that the node has already: stop only if most of what it can rise to is earned; −inf for none
    stop : (1,) int8, set from outside to give up: heard after every step
    steering : STEERING
    """

    cutoff: float
    tol: float
    share: float
    known: float
    stop: npt.NDArray[Any]
    steering: Any


class AliveColumns(NamedTuple):
    """The columns that are alive, and what is selected of them.

    Z, X : `TwoWays`, columns y∘(x − z)·√size of the kernel, and `Numbers`, the data's own
    penalty, center, norms : (k,)
    M : the most columns that may be selected, −1 for any number
    """

    Z: Any
    X: Any
    penalty: npt.NDArray[Any]
    center: npt.NDArray[Any]
    norms: npt.NDArray[Any]
    M: int


class DualGrid(NamedTuple):
    """How dual vectors are kept.

    c, top : (n,) loss weights, and upper ends of the dual box, inf where there are none
    size : the largest weight; weighted : whether they differ
    bits : of the largest entry; coarse : what `steering.coarse` bits take off a bound at most, about
    """

    c: npt.NDArray[Any]
    top: npt.NDArray[Any]
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


NODE = np.dtype(
    [(name, np.float64) for name in ("bound", "intercept", "rho")]
    + [(name, np.int64) for name in ("parent", "start", "place", "why", "next", "age", "atom")]
    + [("share", np.float64)]
)
"""A node: its bound and the dual vector that earned it; intercept and ρ of its warm start, and the dual vector of that;
its place in the proof, −1 where it is done; why it goes back; what is solved next, `mipfs.kernels.node.RELAX` or
`COMPLETE`; nodes above it whose multipliers were only stepped since some were found anew; until its first solve the
split that made it: the atom j as j + 1 where it is inside, as −(j + 1) where it is out, 0 for none, and the σ_j that
its parent's relaxation had."""
SPLIT = np.dtype([("atom", np.int64), ("inside", np.int64), ("share", np.float64), ("gain", np.float64)])
"""What a split was worth on one side: the atom, whether it is inside there, its σ before, and by how much the bound
that the child earned lies above its parent's."""
PLACE = np.dtype(
    [(name, np.int64) for name in ("feature", "outside", "inside", "dual", "cause")] + [("value", np.float64)]
)
"""A place of the proof, see `Proof.attach`; one that is screened has the feature k. `cause`: the side of `RowSides`
that shows that the rows leave it empty, −1 for any other."""
DUAL = np.dtype([(name, np.int64) for name in ("grid", "end", "top", "width")])
"""A dual vector as `DualStore` keeps it."""
TOTALS = np.dtype(
    [(name, np.int64) for name in ("solved", "steps", "stalled", "places", "nodes", "duals", "bytes", "offers", "svms")]
    + [("splits", np.int64), ("floor", np.float64)]
)
"""Of a piece: nodes solved, Newton steps, nodes that stalled, what is used of each array, SVMs on completions where it
was enumerated, sides of splits that were solved, the least closed bound."""
LIMITS = np.dtype([(name, np.float64) for name in ("cutoff", "level", "tol", "share", "rises", "apart")])
"""Of an exploration: the cutoff, from which on nodes are pruned; the level, above which they are left open; tol and
share of `Goal`; whether a node is left only with most of what it adds to its parent's bound; atoms that one relaxation
splits off a node with three free places, 0 where nodes with two are not enumerated."""
NO_TOTALS = np.zeros(1, TOTALS)
"""Of a piece that is its open node alone."""
NO_TOTALS["nodes"], NO_TOTALS["duals"], NO_TOTALS["offers"], NO_TOTALS["floor"] = 1, 1, 1, np.inf
NO_PLACE = np.array([(-1, -1, -1, -1, -1, -np.inf)], PLACE)
"""A place of which nothing is shown."""
NO_DUAL = np.zeros(1, DUAL)
NOW = np.dtype(
    [(name, np.float64) for name in ("constant", "edge", "lower", "upper", "sum", "bound", "gain", "missing")]
    + [(name, np.int64) for name in ("node", "forced", "count", "room", "is_leaf", "completes", "steps", "undecided")]
    + [(name, np.int64) for name in ("exponent", "fixes", "is_better", "dual")]
)
"""The node that is being solved: what its prices add; the cutoff of the plain node that they make of it, and bounds of
that one in the kernel's units; the sum of the relaxed σ; the bound that it earned; what a step of the prices promised,
and what it did not keep; number, columns that are forced, columns in play, how many of the others may be in, whether
there are none, and whether one of them is put in, in place of a relaxation; Newton steps; fractional σ; exponent of the
dual vector; how many features it fixes, whether it lifts the bound, and its number."""
NEWTON = np.dtype(
    [(name, np.float64) for name in ("rho", "lower", "upper", "intercept", "prox", "seen_lower", "seen_upper", "base")]
    + [(name, np.float64) for name in ("loss", "dual", "damping", "aim", "lift", "first", "start", "bend")]
    + [(name, np.int64) for name in ("why", "steps", "stalls", "moved", "rose", "inner", "listed")]
)
"""Of `mipfs.kernels.boolean_newton.relax`. In and out: ρ, intercept and proximal weight. Out: the largest bound, the
least value, why it stopped, and its steps. Within: both values when it last looked, and whether the bound rose;
penalties of the forced columns; loss and g(β); damping of the model, share of the gap that a minimisation aims at, size
of the curvature; slope along a step, its proximal part and that one's bend; steps that did not descend, steps on the
working set, rows with curvature, and rows whose curvature the model holds."""


def _numba_type(default: Any) -> Any:
    """How kernels read a setting; a record of settings as a record."""
    if dataclasses.is_dataclass(default):
        return _kind_of_record(default.__class__)
    return np.dtype(np.int64 if isinstance(default, int) else np.float64)


@cache
def _kind_of_record(owner: Any) -> Any:
    """How kernels read the records of a class of settings."""
    return np.dtype([(one.name, _numba_type(one.default)) for one in dataclasses.fields(owner)])


STEERING = _numba_type(NodeSettings())
"""The numbers of `mipfs.settings.NodeSettings`, as kernels read them."""


def steering_of(settings: Any) -> Any:
    """A record of settings, of nodes or of completions, for the kernels."""
    return np.array([dataclasses.astuple(settings)], _numba_type(settings))[0]


class RelaxationPoint(NamedTuple):
    """Where a relaxation is, in and out.

    w : (q,) weights; alpha : (n,) multipliers, where the loss is smoothed
    best : (n,) out: the dual vector of the largest bound, in its box
    """

    w: npt.NDArray[Any]
    alpha: npt.NDArray[Any]
    best: npt.NDArray[Any]


class NewtonPath(NamedTuple):
    """What the Newton steps of a node keep, over n samples and q columns in play.

    m, beta, curve, move : (n,) margins, β, curvature, and how a step moves the margins
    held, kept : (n,) the β of the scores ω, and the curvature that the model holds;  scale : (n,) scratch
    inner, listed : (n,) rows with curvature, and those that the model holds;  rows : (n,) scratch
    omega, tau, cls, chosen : (q,) scores, thresholds and classes, and the working set;  pulled : of all columns
    sums : (2,) of a function of the loss
    """

    m: npt.NDArray[Any]
    beta: npt.NDArray[Any]
    curve: npt.NDArray[Any]
    move: npt.NDArray[Any]
    held: npt.NDArray[Any]
    kept: npt.NDArray[Any]
    scale: npt.NDArray[Any]
    inner: npt.NDArray[Any]
    listed: npt.NDArray[Any]
    rows: npt.NDArray[Any]
    omega: npt.NDArray[Any]
    tau: npt.NDArray[Any]
    cls: npt.NDArray[Any]
    chosen: npt.NDArray[Any]
    pulled: npt.NDArray[Any]
    sums: npt.NDArray[Any]

    @classmethod
    def of(cls, n: int, q: int, k: int) -> NewtonPath:
        """A path over n samples, q columns in play and k columns that are alive, before its first step."""
        return cls(
            np.zeros(n), np.empty(n), np.empty(n), np.empty(n), np.zeros(n), np.zeros(n), np.empty(n),
            np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
            np.zeros(q), np.empty(q), np.empty(q, np.int64), np.empty(q, np.int64), np.empty(k),
            np.empty(2),
        )  # fmt: skip


class WorkingSet(NamedTuple):
    """A working set of s columns in play, forced ones first; vectors of s + 1 have the intercept at the end.

    ids, J : (s,) places among the columns in play, and columns;  w, center, costs : (s,) weights, those that the
    proximal term holds them to, and penalties
    H, G : (s + 1, s + 1) the model's matrix, and the loss's curvature;  g, d : (s + 1,) gradient and step
    cls, tau, point : (s,) classes, thresholds, and scratch
    minimise_model : the step that minimises its model
    """

    minimise_model: Step
    ids: npt.NDArray[Any]
    J: npt.NDArray[Any]
    w: npt.NDArray[Any]
    center: npt.NDArray[Any]
    costs: npt.NDArray[Any]
    H: npt.NDArray[Any]
    G: npt.NDArray[Any]
    g: npt.NDArray[Any]
    d: npt.NDArray[Any]
    cls: npt.NDArray[Any]
    tau: npt.NDArray[Any]
    point: npt.NDArray[Any]


class ExplorationScratch(NamedTuple):
    """Scratch of explorations, over n samples, k columns and `budget` nodes.

    first : (B, n) dual vectors of the nodes that are explored from
    alphas, wholes : (budget + 2, n) dual vectors of a piece, and one at the end to try
    columns, w, costs, sigma, classes, tau, fixed, fixed_first, s : (k,), of the columns in play in their order
    priced, dense, atoms, behind : (k,) of all columns;  best, v : (n,);  y, y_next : (rows,);  idle : (2·rows,)
    memory : (k, ·) of a branching rule, which it only reads
    now, newton : (1,) NOW and NEWTON;  stop : (1,) int8, set from outside to give up;  steering : STEERING
    """

    first: npt.NDArray[Any]
    alphas: npt.NDArray[Any]
    wholes: npt.NDArray[Any]
    columns: npt.NDArray[Any]
    w: npt.NDArray[Any]
    costs: npt.NDArray[Any]
    sigma: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    tau: npt.NDArray[Any]
    fixed: npt.NDArray[Any]
    fixed_first: npt.NDArray[Any]
    s: npt.NDArray[Any]
    priced: npt.NDArray[Any]
    dense: npt.NDArray[Any]
    atoms: npt.NDArray[Any]
    behind: npt.NDArray[Any]
    best: npt.NDArray[Any]
    v: npt.NDArray[Any]
    y: npt.NDArray[Any]
    y_next: npt.NDArray[Any]
    idle: npt.NDArray[Any]
    memory: npt.NDArray[Any]
    now: npt.NDArray[Any]
    newton: npt.NDArray[Any]
    stop: npt.NDArray[Any]
    steering: Any

    @classmethod
    def of(
        cls, n: int, k: int, rows: int, budget: int, count: int, stop: npt.NDArray[Any], steering: Any
    ) -> ExplorationScratch:
        """Room for explorations from `count` nodes."""
        return cls(
            np.empty((count, n)), np.empty((budget + 2, n)), np.empty((budget + 2, n), np.int64),
            np.empty(k, np.int64), np.empty(k), np.empty(k), np.empty(k), np.empty(k, np.int64), np.empty(k),
            np.empty(k, np.int8), np.empty(k, np.int8), np.empty(k), np.empty(k), np.empty(k), np.empty(k, np.int64),
            np.empty(k, np.int64), np.empty(n), np.empty(n), np.zeros(rows), np.zeros(rows),
            np.empty(2 * rows, np.bool_), NO_MEMORY, np.zeros(1, NOW), np.zeros(1, NEWTON), stop, steering,
        )  # fmt: skip


NO_MEMORY = only_read(np.zeros((0, 0)))
"""Of a branching rule that keeps nothing."""


class RelaxedNode(NamedTuple):
    """What a branching rule (`mipfs.branching`) knows of a relaxed node, over its q atoms in play, those not fixed out.

    atoms : (q,) int64, their numbers among those that the search holds, in the order of the data
    w : (q,) weights of the relaxation, or norms of the weights of atoms of several columns: up to one factor for all,
        which kernels and the interior point have each their own, so that they are compared with one another only
    sigma : (q,) σ of the relaxation, from 0 to 1
    bound, cutoff : the bound that the node earned, and the one from which on it would be pruned
    memory : (k, ·) what the rule has learnt of every atom that the search holds, by its number in `atoms`
    """

    atoms: npt.NDArray[Any]
    w: npt.NDArray[Any]
    sigma: npt.NDArray[Any]
    bound: float
    cutoff: float
    memory: npt.NDArray[Any]


class NodeSteps(NamedTuple):
    """Steps of a node that are called by their address: see `mipfs.pointers`.

    relax : `mipfs.kernels.boolean_newton.relax`; minimise_model : `mipfs.kernels.model_step.minimise_model`
    price : `mipfs.kernels.node.price_further`, which is not there where the user has no rows
    branch : a rule of `mipfs.branching`
    """

    relax: Step
    minimise_model: Step
    price: Step
    branch: Step


class ExploredPiece(NamedTuple):
    """What an exploration of m = budget + 1 nodes and places leaves behind; of several ones with a leading axis.

    nodes (m,) NODE, states (m, k) int8, weights (m, k) float32
        The nodes; place 0 is the one that it began with.
    places : PLACE, the piece of the proof
    duals : (m,) DUAL, of which place 0 stands for the dual vector of the first node
    prices : (m, rows) multipliers of the user's rows that earn a bound together with a dual vector
    packed : the bytes of the dual vectors
    offers, sums : (m, k) float32, (m,), sizes of the weights to round, and what their σ add up to: of the first node,
        if it was split (sums is −1 else), then of those whose relaxation is integral and below the cutoff
    splits : (m,) SPLIT, in the order in which their children were solved
    totals : (1,) TOTALS
    """

    nodes: npt.NDArray[Any]
    states: npt.NDArray[Any]
    weights: npt.NDArray[Any]
    places: npt.NDArray[Any]
    duals: npt.NDArray[Any]
    prices: npt.NDArray[Any]
    packed: npt.NDArray[Any]
    offers: npt.NDArray[Any]
    sums: npt.NDArray[Any]
    splits: npt.NDArray[Any]
    totals: npt.NDArray[Any]

    @classmethod
    def of(cls, count: int, m: int, k: int, rows: int, places: int, n_bytes: int) -> ExploredPiece:
        """Empty pieces of `count` explorations of m nodes, k columns and `rows` rows, with their places and bytes."""
        return cls(
            np.zeros((count, m), NODE), np.empty((count, m, k), np.int8), np.empty((count, m, k), np.float32),
            np.empty((count, places), PLACE), np.empty((count, m), DUAL), np.zeros((count, m, rows)),
            np.empty((count, n_bytes), np.uint8), np.empty((count, m, k), np.float32), np.empty((count, m)),
            np.empty((count, m), SPLIT), np.zeros((count, 1), TOTALS),
        )  # fmt: skip
