"""Problems with bounds on their weights, and brute force over all supports, each declared and solved by Clarabel.

    min over σ in S of  c'σ + min over w, b of ½ Σ w_j² + L(y∘(Xw + b)),   l_j σ_j ≤ w_j·(1/scale_j) ≤ u_j σ_j

The reference knows the user's columns, bounds and rows, and standardises by itself; nothing of the package solves here.

    python -m tests.bounded_cases --count 1000 --seed 1      # branch and gbd on that many problems, verified, with
                                                             # the ladder of relaxations on every one of them
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

import mipfs
from mipfs.data.instance import Instance
from mipfs.problem import Problem
from tests.strategies import scaled_as

Array = npt.NDArray[np.float64]
LOSSES = ("hinge", "squared-hinge", "logistic")
SCALES = ("none", "standard", "unit")
AGREE = 1e-6
"""Relative difference at which an objective and the reference still agree."""
ABOVE = 1e-7
"""How far a bound may lie above the reference, which Clarabel solves to 1e-9."""


def declared(Z: Array, y: Array, c: Array, loss: str, bias: bool, ends: tuple[Array, Array]) -> cp.Problem:
    """½‖w‖² + L(y∘(Zw + b)) on columns Z (n, k), weights within their ends, (k,) each, declared."""
    low, high = ends
    k = Z.shape[1]
    w, b = cp.Variable(max(1, k)), cp.Variable() if bias else 0.0
    m = cp.multiply(y, (Z @ w if k else np.zeros(y.size)) + b)
    losses = {
        "hinge": c @ cp.pos(1 - m),
        "squared-hinge": 0.5 * cp.sum_squares(cp.multiply(np.sqrt(c), cp.pos(1 - m))),
        "logistic": c @ cp.logistic(-m),
    }
    fits = [w[j] >= low[j] for j in range(k) if np.isfinite(low[j])]
    fits += [w[j] <= high[j] for j in range(k) if np.isfinite(high[j])]
    return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + losses[loss]), fits)


def clarabel(tol: float) -> dict[str, Any]:
    """Clarabel to a tolerance."""
    return {"solver": "CLARABEL", "tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}


@dataclass(frozen=True, eq=False)
class BoundedCase:
    """One small problem with bounds.

    Attributes
    ----------
    X : (n, p), as a user would give it
    low, high : (p,) bounds on the user's scale, infinite for no end
    penalty : (p,)
    A, ub : (r, p) and (r,) rows Aσ ≤ ub
    """

    seed: int
    X: Array
    y: Array
    scale: Any
    loss: str
    bias: bool
    C: float
    M: int
    low: Array
    high: Array
    penalty: Array
    A: Array
    ub: Array
    weight: Array

    @property
    def names(self) -> list[str]:
        """x1, …"""
        return [f"x{j + 1}" for j in range(self.X.shape[1])]

    def problem(self) -> Problem:
        """The same as a `mipfs.Problem`."""
        data = Instance.from_arrays(self.X, self.y, scale=self.scale, sample_weight=self.weight)
        bounds = {
            name: (None if math.isinf(low) else low, high)
            for name, low, high in zip(self.names, self.low.tolist(), self.high.tolist(), strict=True)
        }
        given = Problem(
            data,
            loss=self.loss,
            bias=self.bias,
            C=self.C,
            M=self.M,
            lam=self.penalty.tolist(),
            weight_bounds=bounds,
        )
        return given.with_rows(self.A, -np.inf, self.ub) if self.ub.size else given

    def supports(self) -> list[tuple[int, ...]]:
        """All that S allows."""
        p = self.X.shape[1]
        every = itertools.chain.from_iterable(itertools.combinations(range(p), k) for k in range(self.M + 1))
        return [s for s in every if np.all(self.A[:, list(s)].sum(axis=1) <= self.ub + 1e-9)]

    def divisor(self) -> Array:
        """What every column is divided by."""
        if self.scale == "standard":
            share = self.weight / self.weight.sum()
            spread = np.sqrt(share @ (self.X - share @ self.X) ** 2)
            return np.where(np.ptp(self.X, axis=0) > 0, spread, 1.0)
        norms = np.sqrt((self.X**2).sum(axis=0))
        return np.where(norms > 0, norms, 1.0) if self.scale == "unit" else np.ones(self.X.shape[1])

    def value(self, support: tuple[int, ...]) -> float:
        """The objective of a support: w is that of the scaled columns, bounded where the user's weight is."""
        ids = [j for j in support if self.low[j] < 0.0 or self.high[j] > 0.0]  # Clarabel fails at some with w = 0
        cost = float(self.penalty[list(support)].sum())
        Z, divisor = scaled_as(self.X, self.scale, self.weight)[:, ids], self.divisor()[ids]
        ends = self.low[ids] * divisor, self.high[ids] * divisor
        return cost + declared(Z, self.y, self.C * self.weight, self.loss, self.bias, ends).solve(**clarabel(1e-9))

    def values(self) -> dict[frozenset[int], float]:
        """Of every support."""
        return {frozenset(support): self.value(support) for support in self.supports()}


def case(seed: int) -> BoundedCase:
    """A problem drawn by its seed: losses, scales and biases in turn; signs, boxes, [0, 0] and free weights mixed."""
    r = np.random.default_rng([37, seed])
    n, p = int(r.integers(8, 40)), int(r.integers(2, 6))
    X = r.normal(size=(n, p)) * 10.0 ** r.uniform(-1, 1, p) + r.normal(size=p) * (r.random() < 0.5)
    if r.random() < 0.3:
        X[:, 0] = np.round(X[:, 0])
    spread = np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    y = np.where((X / spread) @ r.normal(size=p) + r.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    # Ends of about the size that weights have on the user's scale.
    size = 10.0 ** r.uniform(-2, 0.5, (2, p)) / spread
    kind = r.integers(0, 6, p) if seed % 5 else np.full(p, r.integers(1, 4))
    low = np.select(
        [kind == 0, kind == 1, kind == 2, kind == 3, kind == 4], [-np.inf, 0.0, -np.inf, -size[0], 0.0], 0.0
    )
    high = np.select(
        [kind == 0, kind == 1, kind == 2, kind == 3, kind == 4], [np.inf, np.inf, 0.0, size[1], size[1]], 0.0
    )
    rows = int(r.integers(0, 3)) * (seed % 2)
    A = r.integers(0, 3, size=(rows, p)).astype(float)
    C = float(10.0 ** r.uniform(-2, 1.5))
    penalty = (r.random(p) < 0.5) * r.random(p) * 0.1 * C * n * (r.random() < 0.3)
    weight = r.uniform(0.5, 2.0, n) if r.random() < 0.3 else np.ones(n)
    return BoundedCase(
        seed, X, y, SCALES[seed % 3], LOSSES[seed // 3 % 3], bool(seed // 9 % 2), C, int(r.integers(1, p + 1)),
        low, high, penalty, A, r.integers(1, 4, size=rows).astype(float), weight,
    )  # fmt: skip


def faults(one: BoundedCase, driver: str, values: dict[frozenset[int], float]) -> list[str]:
    """What is wrong with a driver's answer; nothing."""
    problem = one.problem()
    best = min(values.values())
    asked: dict[str, Any] = {"gap": 1e-7} if driver != "kelley" else {"gap": 1e-4}
    found = mipfs.solve(problem, driver, **asked)
    wrong = []
    size = abs(best) or 1.0
    if found.bound > best + ABOVE * size:
        wrong.append(f"bound {found.bound!r} above {best!r}")
    if found.objective < best - ABOVE * size:
        wrong.append(f"objective {found.objective!r} below {best!r}")
    exact = driver != "kelley"
    if exact and (found.status is not mipfs.Status.OPTIMAL or found.objective > best + AGREE * size):
        wrong.append(f"{found.status}, objective {found.objective!r} for {best!r}")
    for name, w in found.weights.items():
        j = one.names.index(name)
        if not one.low[j] <= w <= one.high[j]:
            wrong.append(f"the weight {w!r} of {name} leaves [{one.low[j]!r}, {one.high[j]!r}]")
    report = mipfs.verify(found, problem.data)
    if not report.accepted:
        wrong.append(f"not verified: {report.reason}")
    return wrong


RUNGS = ("plain", "qcqp-ssvm", "boolean", "convex-hull", "exact")
"""The relaxations that carry bounds, each no weaker than the one before."""
SLACK = 1e-6
"""What a rung may lie above the next one, relatively: they are solved to about a tenth of it."""


def ladder_faults(one: BoundedCase, values: dict[frozenset[int], float]) -> list[str]:
    """What is wrong with the order of the relaxations, or with the last of them; nothing."""
    ladder = mipfs.compare(one.problem())
    found = [ladder[name].value for name in RUNGS]
    wrong = [
        f"{low} {a!r} above {high} {b!r}"
        for (low, a), (high, b) in itertools.pairwise(zip(RUNGS, found, strict=True))
        if not a <= b + SLACK * abs(b)
    ]
    best = min(values.values())
    return wrong if abs(found[-1] - best) <= 2e-4 * abs(best) else [*wrong, f"exact {found[-1]!r} for {best!r}"]


def main() -> int:
    """Compare many problems; the exit code says whether all agree."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drivers", default="branch,gbd")
    parser.add_argument("--no-ladder", action="store_true")
    given = parser.parse_args()
    tags: Counter[str] = Counter()
    bad = 0
    start = time.perf_counter()
    for seed in range(given.seed, given.seed + given.count):
        one = case(seed)
        values = one.values()
        for driver in given.drivers.split(","):
            wrong = faults(one, driver, values)
            bad += bool(wrong)
            for text in wrong:
                print(f"case {seed}, {driver}: {text}", flush=True)
        wrong = [] if given.no_ladder else ladder_faults(one, values)
        bad += bool(wrong)
        for text in wrong:
            print(f"case {seed}, ladder: {text}", flush=True)
        tags.update([one.loss, one.scale, "bias" if one.bias else "no bias", *(["rows"] if one.ub.size else [])])
        tags["supports"] += len(values)
    print(f"{given.count} problems, {bad} faults, {time.perf_counter() - start:.0f} s: {dict(tags)}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
