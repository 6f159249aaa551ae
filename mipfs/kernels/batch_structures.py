"""What nodes that are relaxed many at a time share, and what every one has of its own: B nodes of n samples, q columns
and G atoms (`mipfs.kernels.batch`). N are the samples and, behind them, the ends of rows over the weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.pointers import Step

f4 = np.float32


class BatchShape(NamedTuple):
    """What all nodes share.

    first : (G + 1,) the columns of atom g are first[g] … first[g + 1] − 1
    low, high : (q,) ends of the weights
    costs : (G,) penalties;  has_costs, has_ends : whether there are any, and finite ends that are not 0
    c, top : (n,) loss weights and upper ends of the dual box, in units of the largest weight;  y : (n,)
    rx, rm : ρ_x and ρ_m that a node begins with;  over_relaxation : r;  bias : whether there is an intercept
    scaled_offsets, offsets, sizes : (N − n,) of the ends of rows over the weights: −o in units of A, o of float64,
        and the factor by which rows of A are larger, so that ν in units of the largest loss weight is α times it
    """

    first: npt.NDArray[Any]
    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    costs: npt.NDArray[Any]
    has_costs: bool
    has_ends: bool
    c: npt.NDArray[Any]
    top: npt.NDArray[Any]
    y: npt.NDArray[Any]
    rx: Any
    rm: Any
    over_relaxation: Any
    bias: bool
    scaled_offsets: npt.NDArray[Any]
    offsets: npt.NDArray[Any]
    sizes: npt.NDArray[Any]


class BatchMatrices(NamedTuple):
    """The matrices that never change, float32.

    A : (N, q)
    V : A'A = VΛV': V (q, q); of fewer rows than columns AA' = UΛU': U (N, N);  values : (q,) or (N,) Λ
    back, across : U'A (N, q) and ΛU' (N, N) then, else (0, 0)
    """

    A: npt.NDArray[Any]
    V: npt.NDArray[Any]
    back: npt.NDArray[Any]
    across: npt.NDArray[Any]
    values: npt.NDArray[Any]


class ScoreTerms(NamedTuple):
    """What scores are made of, in float64.

    X : (N, q) the columns as they are stored, and the ends' d;  center, low, high : (q,)
    norms, centers : (q,) of columns, or (G,) of atoms, that bound rounding errors;  scale : (G,) λ
    is_ridge : whether the term is ½w², else with ends;  samples : n
    """

    X: npt.NDArray[Any]
    center: npt.NDArray[Any]
    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    norms: npt.NDArray[Any]
    centers: npt.NDArray[Any]
    scale: npt.NDArray[Any]
    is_ridge: bool
    samples: int


class BatchScratch(NamedTuple):
    """Scratch of an exploration of B lanes.

    e, omega : (B, q);  s : (B, ·) as Λ;  t, a, margins : (B, N);  done : (B,) lanes, and −1 behind them
    kept : (count, m + 1, N), the dual vectors that nodes of every piece begin with
    """

    e: npt.NDArray[Any]
    s: npt.NDArray[Any]
    omega: npt.NDArray[Any]
    t: npt.NDArray[Any]
    a: npt.NDArray[Any]
    margins: npt.NDArray[Any]
    done: npt.NDArray[Any]
    kept: npt.NDArray[Any]


class FinishedDuals(NamedTuple):
    """The dual vectors of nodes that are done.

    wholes : (B, N) int64;  exponents : (B,) int64;  g : (B,) rounded down;  v : (B, N) α∘y;  omega : (B, q)
    s : (B, G) rounded up
    """

    wholes: npt.NDArray[Any]
    exponents: npt.NDArray[Any]
    g: npt.NDArray[Any]
    v: npt.NDArray[Any]
    omega: npt.NDArray[Any]
    s: npt.NDArray[Any]


class AliveAtoms(NamedTuple):
    """The atoms in play: first (G + 1,) as in `BatchShape`, penalty (G,) float64, the most that may be in, −1 for
    all.
    """

    first: npt.NDArray[Any]
    penalty: npt.NDArray[Any]
    M: int


class Lanes(NamedTuple):
    """B nodes that are being relaxed.

    x, c, w : (B, q);  m, d, alpha, best : (B, N), α in units of ρ_m, and the best dual vector so far, in its box
    sigma : (B, G);  states : (B, G) int8
    threshold_start : (B,) where the search for the multiplier begins, 0 for nowhere
    costs : (B, G) prices of the atoms;  cardinality_multiplier : (B,) the multiplier of the cardinality row
    y, best_row_multipliers : (B, rows) float64, multipliers of the user's rows, and those of the best dual vector
    constant : (B,) what the rows add to the value
    intercept, rx, rm : (B,), ρ_x and ρ_m
    room : (B,) how many free atoms may be in, −1 for all;  of, node : (B,) its piece, and its number there
    used : (B,) iterations;  lower, upper : (B,) best values so far, in units of the largest loss weight
    """

    x: npt.NDArray[Any]
    c: npt.NDArray[Any]
    w: npt.NDArray[Any]
    m: npt.NDArray[Any]
    d: npt.NDArray[Any]
    alpha: npt.NDArray[Any]
    best: npt.NDArray[Any]
    sigma: npt.NDArray[Any]
    states: npt.NDArray[Any]
    threshold_start: npt.NDArray[Any]
    costs: npt.NDArray[Any]
    cardinality_multiplier: npt.NDArray[Any]
    y: npt.NDArray[Any]
    best_row_multipliers: npt.NDArray[Any]
    constant: npt.NDArray[Any]
    intercept: npt.NDArray[Any]
    rx: npt.NDArray[Any]
    rm: npt.NDArray[Any]
    room: npt.NDArray[Any]
    of: npt.NDArray[Any]
    node: npt.NDArray[Any]
    used: npt.NDArray[Any]
    lower: npt.NDArray[Any]
    upper: npt.NDArray[Any]

    @classmethod
    def of_size(cls, B: int, n: int, q: int, G: int, rows: int) -> Lanes:
        """Room for B nodes."""
        x, c, w = (np.empty((B, q), f4) for _ in range(3))
        m, d, alpha, best = (np.empty((B, n), f4) for _ in range(4))
        scale, value, intercept, rx, rm = (np.empty(B, f4) for _ in range(5))
        y = np.zeros((B, rows))
        paid = np.zeros((B, rows))
        room, of, node, used = (np.empty(B, np.int64) for _ in range(4))
        sigma = np.empty((B, G), f4)
        costs = np.empty((B, G), f4)
        states = np.empty((B, G), np.int8)
        return cls(
            x, c, w, m, d, alpha, best, sigma, states, scale, costs, value, y, paid, np.zeros(B),
            intercept, rx, rm, room, of, node, used, np.empty(B), np.empty(B),
        )  # fmt: skip


class BatchProblem(NamedTuple):
    """What explorations are given of a problem: rules are the numbers of `mipfs.settings.BatchSettings`."""

    alive: AliveAtoms
    shape: BatchShape
    factor: BatchMatrices
    scoring: ScoreTerms
    rules: Any


class BatchSteps(NamedTuple):
    """Steps of an exploration that are called by their address (`mipfs.pointers`), with tuples that are lent.

    begin, advance, evaluate_bounds, end : of `mipfs.kernels.batch`;  branch : a rule of `mipfs.branching`
    """

    begin: Step
    advance: Step
    evaluate_bounds: Step
    end: Step
    branch: Step


class ExplorationState(NamedTuple):
    """What an exploration has of its own; `work` is a `mipfs.kernels.structures.ExplorationScratch`."""

    lanes: Lanes
    room: BatchScratch
    earned: FinishedDuals
    work: Any
