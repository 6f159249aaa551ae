"""One node of `branch` by the Newton kernel alone, at any penalties: what an exploration does with each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mipfs.inner.boolean_node import FREE, INSIDE, BooleanRelaxation, NodeOutcome, WarmStart
from mipfs.kernels import boolean_newton as kernel
from mipfs.kernels import perspective
from mipfs.kernels.bound import gains, screen_atoms
from mipfs.kernels.face_descent import FaceModel
from mipfs.kernels.model_step import minimise_model
from mipfs.kernels.structures import NEWTON, Goal, InPlay, RelaxationPoint, steering_of
from mipfs.pointers import Step
from mipfs.proof.cuts import feasible_dual

Array = npt.NDArray[np.float64]
States = npt.NDArray[np.int8]

SLICES = 12
"""Calls of the kernel at most."""


def solve(
    relaxation: BooleanRelaxation,
    states: States,
    warm: WarmStart,
    alpha: Array,
    cutoff: float,
    tol: float,
    share: float,
    known: float,
) -> NodeOutcome:
    """Solve the relaxation of a node, to `tol` or until its fate is clear.

    Parameters
    ----------
    states : (k,) FREE, INSIDE or OUTSIDE of the alive features
    warm, alpha : where to begin; alpha is the (n,) dual vector of the parent
    cutoff : the node is given up once its bound reaches it
    tol : relative gap of the relaxation
    share : stop when upper − lower is at most this share of cutoff − upper
    known : a bound that it must rise from, part of the way to what the node allows; −inf for none
    """
    inside, free = np.flatnonzero(states == INSIDE), np.flatnonzero(states == FREE)
    columns = np.concatenate([inside, free])
    room = free.size if relaxation.M is None else min(relaxation.M - inside.size, free.size)
    w = np.zeros(columns.size)
    w[:] = warm.w[columns] / np.sqrt(relaxation.size)
    start = np.zeros(1, NEWTON)[0]
    beta, penalty = alpha / relaxation.size, relaxation.penalty[columns] / relaxation.size
    best, found = beta, -np.inf
    start["rho"], start["intercept"], start["prox"] = warm.rho, warm.b, relaxation.settings.proximal
    in_play = InPlay(columns, inside.size, room, penalty)
    steering, steps = steering_of(relaxation.settings), 0
    ends = cutoff / relaxation.size, float(tol), float(share), known / relaxation.size
    goal = Goal(*ends, relaxation.stop, steering)
    for _ in range(SLICES):
        dual = np.empty(beta.size)
        try:
            point, space = RelaxationPoint(w, beta, dual), np.empty((1, 1))
            model = FaceModel(space, w, w, 0.0, w, 0, 0, relaxation.samples.bias, 0.0, steering)
            minimise = Step.of(minimise_model, model, 0.0, 0, w, lends=True).made()
            kernel.relax(minimise, relaxation._in_play()[0], relaxation.samples, in_play, goal, point, start)
        except ZeroDivisionError:  # numbers too far apart: the best dual vector so far is a bound all the same
            w[:] = np.nan
            break
        steps += int(start["steps"])
        if start["lower"] > found:
            best, found = dual, start["lower"]
        if start["why"] != kernel.STALLED or start["steps"] < relaxation.settings.slice or relaxation.stop[0]:
            break
    if not np.all(np.isfinite(w)):
        w[:], start["rho"], start["intercept"] = 0.0, warm.rho, 0.0
    whole, q = feasible_dual(relaxation.problem, relaxation.size * best)
    weights = np.zeros(relaxation.alive.size, dtype=np.float32)
    weights[columns] = w * np.sqrt(relaxation.size)
    sigma = np.zeros(relaxation.alive.size)
    sigma[inside] = 1.0
    sigma[free] = _sigma(w[inside.size :], penalty[inside.size :], room)
    g, s = relaxation.scores(whole, q)
    bound, fixed_in, fixed_out = screen_atoms(g, gains(s, relaxation.penalty), inside, free, relaxation.M, cutoff)
    after = WarmStart(weights, float(start["intercept"]), max(0.5, relaxation.settings.back * float(start["rho"])))
    return NodeOutcome(bound, whole, q, after, sigma, fixed_in, fixed_out, steps)


def _sigma(w: Array, penalty: Array, room: int) -> Array:
    """σ of weights: clip(|w_j|/τ_j, 0, 1)."""
    if room <= 0 or w.size == 0:
        return np.zeros(w.size)
    classes, tau = np.empty(w.size, dtype=np.int64), np.empty(w.size)
    perspective.classify_weights(w, penalty, 0, room, classes, tau)
    return np.where(classes == perspective.IN, 1.0, np.minimum(1.0, np.abs(w) / np.maximum(tau, 1e-300)))
