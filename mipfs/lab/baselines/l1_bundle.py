"""The ℓ1-regularised bundle for a measure ("ℓ1-bmrm-F1" of Mao 2013, section 8; Teo et al. 2010).

    min over w   ‖w‖₁ + C max over ȳ of [Δ(ȳ) − w'a(ȳ)]₊
    dual         max over α ≥ 0, Σα ≤ C of  Σ α_ȳ Δ(ȳ)   s.t.  |ω_j(α)| ≤ 1 for all j,   ω(α) = Σ α_ȳ a(ȳ)

The master is a linear program over the labellings and the features met so far: the labelling that its w violates most
is a new row, the features with |ω_j| > 1 are new columns. α / max(1, max_j |ω_j|) is feasible and earns the bound.
(Mao and Teo report that the bundle with this regulariser need not converge; the limit of rounds says when it did not.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mipfs.data.instance import Instance
from mipfs.errors import NumericalError, UsageError
from mipfs.lab.baselines.linear import BaselineDescription, Linear, bracket, check_size, check_weight, linear
from mipfs.lab.baselines.structural_svm import MEASURE, of_columns
from mipfs.measures import Violated, get_measure
from mipfs.plumbing.arrays import Array, Integers, scatter
from mipfs.solvers import highs
from mipfs.svm.bundle import BestPoint, store_most_violated
from mipfs.svm.labellings import Labellings

ABOUT = BaselineDescription(
    what="the features of an ℓ1-regularised bundle for F1, C searched for M of them, and the structural SVM on them",
    source="Mao 2013, section 8; Teo et al. 2010",
    sparse="yes",
    limits="no sample weights; need not converge within 500 labellings; bench takes its own measure for F1",
    library="HiGHS",
    weighted=False,
)
MOST_ROUNDS = 500
"""Labellings per solve at most."""
MOST_ENTERING = 100
"""Features that enter the master at a time."""
MASTER_SHARE = 0.1
"""Labellings are asked for at this share of the way from the best w to the master's."""
ZERO_SHARE = 1e-9
"""A weight below this share of the largest one is a zero of the linear program."""


class L1Bundle:
    """The method on one data set; labellings, features and the basis are kept from one C to the next.

    Parameters
    ----------
    data : Instance without sample weights
    measure : one of `mipfs.measures.MEASURES`
    beta, k : of the measure, see `mipfs.measures.get_measure`

    Raises
    ------
    UsageError
        A parameter of the measure out of its range, or sample weights.
    """

    def __init__(self, data: Instance, measure: str, *, beta: float | None = None, k: int | None = None) -> None:
        if np.any(data.sample_weight != 1.0):
            raise UsageError("a measure is joint over the samples and has no sample weights; leave them out")
        self.data = data
        self.measure = get_measure(measure, data.y, beta=beta, k=k)
        self.labellings = Labellings(data, self.measure)
        self.features: Integers = np.empty(0, dtype=np.int64)
        self._lp = highs.HighsModel()
        self._lp.add_column(0.0, 0.0, highs.highs_infinity())  # ξ; then u_j, v_j of every feature, w_j = u_j − v_j
        self._ask_for_labelling(BestPoint(np.zeros(data.n_features)), np.zeros(data.n_features), 0.0)

    def solve(self, C: float, *, tol: float = 1e-3, rounds: int = MOST_ROUNDS) -> Linear:
        """Solve at one C.

        Parameters
        ----------
        C : float > 0
        tol : float > 0
            Relative gap to reach.
        rounds : int >= 1, labellings at most

        Returns
        -------
        Linear
            On the features of non-zero weight of the best w that was met, with objective and bound.
        """
        check_weight(C)
        self._lp.set_costs(np.array([float(C)]))
        best, lower = BestPoint(np.zeros(self.data.n_features)), 0.0
        self._ask_for_labelling(best, best.point, C)

        def is_closed() -> bool:
            return best.upper - lower <= tol * abs(best.upper)

        for _ in range(rounds):
            w, alpha = self._solve_master()
            omega = self._omega_of_dual(alpha)
            top = float(np.abs(omega).max())
            lower = max(lower, float(self.labellings.losses @ alpha) / max(1.0, top, alpha.sum() / C))
            grown = self._enter_features(omega)
            added = not is_closed() and self._ask_for_labelling(best, w, C, is_closed)
            if is_closed() or not (added or grown):
                break
        ids = np.flatnonzero(np.abs(best.point) > ZERO_SHARE * np.abs(best.point).max())
        return linear(self.data, ids, best.point[ids], 0.0, float(C), objective=best.upper, bound=lower)

    def of_size(self, M: int, *, tol: float = 1e-3, rounds: int = MOST_ROUNDS) -> Linear:
        """The solution with M features, by bisection of C.

        The solution of a linear program is constant in C but for jumps, and so is its number of features. Where no C
        that was tried has M of them, it is the smallest solution beyond M without all but its M largest weights.

        Parameters
        ----------
        M : int in 1 … p
        tol, rounds : as in `solve`

        Returns
        -------
        Linear
            With the objective of its own w; with fewer than M features where every C that was tried has fewer.
        """
        check_size(M, self.data.n_features)
        first = float(np.abs(self._omega_of_dual(np.append(1.0, np.zeros(len(self.labellings) - 1)))).max())
        start = 2.0 / max(first, 1e-300)
        below, above = bracket(lambda C: self.solve(C, tol=tol, rounds=rounds), int(M), start)
        if above is None or (below is not None and below.ids.size == M):
            assert below is not None
            return below
        scaled = above.w * self.data.scale[above.ids]
        keep = np.sort(np.argsort(-np.abs(scaled), kind="stable")[:M])
        ids = above.ids[keep]
        w = scaled[keep]
        kept = linear(self.data, ids, w, 0.0, above.C, bound=above.bound)
        loss = max(0.0, self.measure.violated(kept.scores(self.data)).value)
        return replace(kept, objective=float(np.abs(w).sum()) + above.C * loss)

    def _solve_master(self) -> tuple[Array, Array]:
        """The linear program: w (p,) and α (K,)."""
        solution = highs.solve(self._lp)
        if solution.status != "optimal" or solution.values is None:
            raise NumericalError("l1-bundle: HiGHS finds no optimum of the linear program; scale the data")
        parts = solution.values[1:].reshape(-1, 2)
        w = scatter(self.data.n_features, self.features, parts[:, 0] - parts[:, 1])
        return w, np.maximum(self._lp.multipliers(), 0.0)

    def _omega_of_dual(self, alpha: Array) -> Array:
        """ω = Σ α_k a(ȳ_k) of all features, shape (p,)."""
        used = np.flatnonzero(alpha)
        v = self.measure.direction(alpha[used] @ self.labellings.counts[used])
        return self.data.block().pull(v)

    def _enter_features(self, omega: Array) -> bool:
        """Take in the features that violate |ω_j| ≤ 1 most; whether there were any."""
        size = np.abs(omega)
        size[self.features] = 0.0
        order = np.argsort(-size, kind="stable")[:MOST_ENTERING]
        new = order[size[order] > 1.0 + 1e-9]
        if not new.size:
            return False
        rows = np.arange(len(self.labellings))
        for a in self.labellings.block(new):
            for sign in (1.0, -1.0):
                self._lp.add_column(1.0, 0.0, highs.highs_infinity(), rows, sign * a)
        self.features = np.concatenate([self.features, new])
        return True

    def _ask_for_labelling(
        self, best: BestPoint[Array], w: Array, C: float, is_closed: Callable[[], bool] = lambda: False
    ) -> bool:
        """Ask for the labelling that is most violated between the best weights and w; whether it is a new one."""
        begin = best.point

        def at(step: float) -> tuple[float, Array, Violated]:
            here = begin + step * (w - begin)
            used = np.flatnonzero(here)
            violated = self.measure.violated(self.data.block(used).scores(here[used]))
            return float(np.abs(here).sum()) + C * max(0.0, violated.value), here, violated

        if not store_most_violated(best, at, self.labellings, share=MASTER_SHARE, is_closed=is_closed):
            return False
        # ξ + Σ_j (u_j − v_j) a_j(ȳ) ≥ Δ(ȳ)
        a = self.labellings.block(self.features)[:, -1] if self.features.size else np.empty(0)
        row = np.concatenate([[1.0], np.column_stack([a, -a]).ravel()])
        self._lp.add_cut(float(self.labellings.losses[-1]), np.arange(row.size), row)
        return True


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """The features of the bundle for F1, whose own weight decides their number, and the structural SVM on them."""
    check_weight(C)
    return of_columns(data, L1Bundle(data, MEASURE).of_size(M).ids, C, bias=bias)
