"""The structural loss L = C max over ȳ of [Δ(ȳ) − w'a(ȳ)]₊ of a multivariate measure (Mao 2013, (5)).

Dual set A = {α_ȳ ≥ 0, Σ α_ȳ ≤ C}, g(α) = Σ α_ȳ Δ(ȳ), v = Σ α_ȳ v(ȳ) with v_i(ȳ) = (y_i − ȳ_i)/n for labellings. So

    v(σ) = max over α ∈ A of  g(α) − ½ Σ_j σ_j ω_j(α)²,   ω = X'v

is convex in σ as for the other losses, and its dual vectors are cuts. Seen by those who only need ω, a dual vector is
y∘v ≥ 0, shape (n,); g cannot be told from it and comes with the `LabellingsDual`. There is no bias.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mipfs.data.instance import Instance
from mipfs.measures import Measure, Violated
from mipfs.plumbing.arrays import Array, Integers
from mipfs.svm import central
from mipfs.svm.bundle import BestPoint, store_most_violated
from mipfs.svm.labellings import Labellings, LabellingsDual
from mipfs.svm.solver import SVM

MAX_ROUNDS = 1000
"""Labellings per solve."""
EXACT_MASTER = 1e-14
"""A master solved with this proximal term that still yields nothing new is exact up to the round-off of its Gram
matrix: an interior point that does without it takes over (`mipfs.svm.central`)."""
IDLE_MASTERS, DROP_ABOVE = 40, 100
"""Masters in which a labelling was inactive before it is dropped, and the labellings from which on any are."""


class Structural:
    """The loss of one measure, with the names that the module of a pointwise loss has.

    Parameters
    ----------
    measure : Measure
    """

    def __init__(self, measure: Measure) -> None:
        self.measure = measure

    def value(self, margins: Array, c: Array) -> float:
        """L at margins y_i f_i (n,); every c_i is C."""
        return float(c[0]) * max(0.0, self.measure.violated(self.measure.y * margins).value)

    def Solver(self, data: Instance, c: Array, bias: bool) -> StructuralSolver:
        """The inner solver on one instance."""
        return StructuralSolver(data, c, bias, self.measure)


class UnmeasuredLoss:
    """What there is to say of the structural loss before its measure is known."""

    name, pointwise, has_top, dual_depends_on_c, has_rho, is_smooth, says_odds, slack_degree, kernels = (
        "structural", False, True, False, False, False, False, None, None,
    )  # fmt: skip

    def of_problem(self, problem: Any) -> Structural:
        """The loss of a problem's measure."""
        return Structural(problem.measured)

    def assumed_error(self, c: Array) -> float:
        """None is assumed."""
        return 0.0

    def slacks(self, margins: Array, rho: float) -> Array:
        """How far the margins (n,) fall short of ρ."""
        return np.maximum(0.0, rho - margins)


LOSS = UnmeasuredLoss()


class StructuralSolver:
    """The structural SVM on any columns of one instance, by a bundle method (Mao 2013, Algorithm 1 with one group).

    Labellings are kept from call to call: they hold for all columns.

    Parameters
    ----------
    data : Instance
    c : (n,) loss weights, all of them C
    bias : bool, must be False
    measure : Measure
    """

    def __init__(self, data: Instance, c: Array, bias: bool, measure: Measure) -> None:
        assert not bias, "the structural loss has no bias"
        self.data = data
        self.measure = measure
        self.C = float(c[0])
        self.labellings = Labellings(data, measure)
        self.must_stop: Callable[[], bool] = bool  # never
        self._beta = np.empty(0)

    def solve(self, ids: Integers, sigma: Array | None = None, *, tol: float = 1e-7, start: Any = None) -> SVM:
        """Solve on the columns `ids`.

        Parameters
        ----------
        ids : (k,) positions of the columns
        sigma : (k,) weights in (0, 1] of the perspective form; ones by default
        tol : relative gap to reach, between the recomputed values
        start : ignored; the stored labellings are the warm start

        Returns
        -------
        SVM
            With ``alpha`` = y∘v and its `LabellingsDual`.
        """
        from mipfs.kernels.simplex_qp import PROXIMAL_WEIGHT, maximise_on_simplex

        ids = np.asarray(ids, dtype=np.int64)
        pool, C = self.labellings, self.C
        root = np.full(ids.size, np.sqrt(C)) if sigma is None else np.sqrt(C * sigma)
        self._drop_idle_labellings()
        Z = self.data.block(ids).values
        center = self.data.center[ids]
        if not len(pool):
            pool.add(self.measure.violated(np.zeros(self.measure.n)))
            self._beta = np.zeros(1)
        B = root[:, None] * pool.block(ids, Z)
        G, beta = _labelling_gram(B), np.append(max(0.0, 1.0 - self._beta.sum()), self._beta)
        best, steps, sharpness = BestPoint(np.zeros(ids.size)), 0, PROXIMAL_WEIGHT
        for _ in range(MAX_ROUNDS):
            if sharpness >= EXACT_MASTER:
                steps += maximise_on_simplex(G, np.append(0.0, pool.losses), beta, sharpness)
                pool.mark(beta[1:] > 0.0)
                outer = pulled = B @ beta[1:]
            else:  # the Gram matrix has lost what is left of the gap
                beta, outer = central.solve(B, pool.losses, 0.1 * tol)
                pulled, steps = B @ beta[1:], steps + 1
            dual = float(pool.losses @ beta[1:]) - 0.5 * float(pulled @ pulled)

            def at(step: float, begin: Array = best.point, outer: Array = outer) -> tuple[float, Array, Violated]:
                u = begin + step * (outer - begin)
                violated = self.measure.violated(np.asarray(Z @ (root * u) - float(center @ (root * u))))
                return 0.5 * float(u @ u) + max(0.0, violated.value), u, violated

            def is_closed(dual: float = dual) -> bool:
                return best.upper - dual <= 0.5 * tol * abs(best.upper)

            if store_most_violated(best, at, pool, is_closed=is_closed):
                beta = np.append(beta, 0.0)
                if self.must_stop():
                    break
                B = np.column_stack([B, root * pool.last(ids, Z)])
                G = _border_matrix(G, B)
                continue
            if is_closed() or sharpness < EXACT_MASTER or self.must_stop():
                break
            sharpness *= 0.01
        self._beta = beta[1 : len(pool) + 1]
        found = pool.combine(C * self._beta, C)
        omega = np.asarray(Z.T @ found.v) - center * float(found.v.sum())
        part = np.ones(ids.size) if sigma is None else sigma
        dual = found.value_below - 0.5 * float(part @ np.square(omega))
        return SVM(
            root * best.point, 0.0, self.measure.y * found.v, C * best.upper, dual, 1.0, steps, combination=found
        )

    def _drop_idle_labellings(self) -> None:
        """Drop labellings that have long been inactive."""
        if len(self.labellings) > DROP_ABOVE:
            keep = self.labellings.drop(IDLE_MASTERS, DROP_ABOVE // 2)
            self._beta = self._beta[keep]


def _labelling_gram(B: Array) -> Array:
    """G = B'B, with ȳ = y (a = 0) as the first labelling: it takes up the slack of Σα ≤ C."""
    G = np.zeros((B.shape[1] + 1, B.shape[1] + 1))
    G[1:, 1:] = B.T @ B
    return G


def _border_matrix(G: Array, B: Array) -> Array:
    """G with the last column of B taken in."""
    K = G.shape[0]
    out = np.zeros((K + 1, K + 1))
    out[:K, :K] = G
    out[K, 1:] = out[1:, K] = B.T @ B[:, -1]
    return out


__all__ = ["LabellingsDual", "Structural", "StructuralSolver"]
