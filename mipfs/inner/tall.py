"""Where a relaxation begins whose samples are many times its columns: at the SVM on all of them.

A step of the interior point takes as many passes over the data as there are columns. Newton's method on the SVM takes
three: only samples near the margin enter its systems, and it begins where it ended on a few of the samples. With a loss
far above the ridge, as millions of samples have it, the SVM's value is nearly that of the relaxation, so that whatever
limit strikes later leaves a bound worth having. Nothing rests on it but time: its dual vector earns what it is worth.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.inner.boolean import Boolean, KnownClassifier
from mipfs.inner.designs import BLOCK_NUMBERS
from mipfs.inner.reduced_system import CholeskyFactor
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.blocks import count_of, cut, run_each
from mipfs.problem import Problem
from mipfs.settings import RelaxationSettings

WIDTHS = (1.0, 0.3, 0.05)
"""Width over which a hinge is rounded, on the sample, one after the other; all samples have the last."""
STEPS, HALVINGS = 30, 30
"""Newton steps on a width at most, and halvings of a step."""
DESCENT = 1e-4
"""Share of the slope by which a step must descend."""
SYSTEM_ROWS = 500
"""Samples for every column that a Newton system is summed over: more say the same."""
FEWEST = 2_000
"""Samples that are begun with at least."""


class SampleSvm:
    """The SVM on all columns over some of the samples, in the units of the data.

    Parameters
    ----------
    whole : Boolean
    ids : (k,) columns
    rows : (n,) samples, or None for all
    """

    def __init__(self, whole: Boolean, ids: Integers, rows: Integers | None) -> None:
        data = whole.problem.data
        block = data.block() if ids.size == data.n_features else data.block(ids)
        X = sparse.csr_array(block.values) if block.is_sparse else block.values
        every = slice(None) if rows is None else rows
        self.X = X if rows is None else X[rows]
        self.y, self.c = data.y[every], whole.problem.c_i[every]
        if rows is not None:
            self.c = self.c * (data.n_samples / rows.size)
        self.off = whole.off[ids]
        self.loss, self.bias = whole.loss, whole.problem.bias
        self.must_stop = whole.must_stop
        stored = self.X.indptr if sparse.issparse(self.X) else ids.size * np.arange(self.y.size + 1)
        ends = cut(stored, count_of(self.y.size, ids.size, stored[-1] // BLOCK_NUMBERS))
        self.own = [slice(low, high) for low, high in pairwise(ends.tolist())]
        self.parts = [_row_slice(self.X, own) for own in self.own]

    def margins(self, u: Array) -> Array:
        """y∘((X − z)w + b) for u = (w, b)."""
        w, found = u[:-1], np.empty(self.y.size)
        b = u[-1] - float(self.off @ w)

        def score(block: int) -> None:
            found[self.own[block]] = self.y[self.own[block]] * (self.parts[block] @ w + b)

        run_each(score, len(self.own))
        return found

    def pulled(self, v: Array) -> Array:
        """X'v, (k,)."""
        found = np.empty((len(self.own), self.off.size))

        def pull(block: int) -> None:
            found[block] = self.parts[block].T @ v[self.own[block]]

        run_each(pull, len(self.own))
        return np.asarray(found.sum(axis=0))

    def slopes(self, m: Array, rho: float) -> tuple[float, Array]:
        """The loss at margins m (n,), smoothed by ρ where it has kinks, and its α = −L'."""
        kernels, sums, alpha, zero = self.loss.kernels, np.empty((len(self.own), 2)), np.empty(m.size), np.zeros(m.size)

        def judge(block: int) -> None:
            own = self.own[block]
            kernels.at_margins(m[own], zero[own], self.c[own], rho, alpha[own], sums[block])

        run_each(judge, len(self.own))
        value = float(sums[:, 1].sum()) - float(m @ alpha)
        return value - (0.5 / rho * float(alpha @ alpha) if kernels.is_smoothed else 0.0), alpha

    def curvature(self, alpha: Array, rho: float) -> tuple[Integers, Array]:
        """The samples with curvature where −L' = α, and how much."""
        near, curve, sums = np.empty(alpha.size, dtype=np.int64), np.zeros(alpha.size), np.empty(2)
        self.loss.kernels.curvature(alpha, self.c, rho, near, curve, sums)
        return near[: int(sums[0])], curve

    def minimise(self, u: Array, width: float, gap: float) -> tuple[Array, Array, bool]:
        """Newton's method from u = (w, b); where it ended, its α, and whether what is left to gain is below the gap."""
        m = self.margins(u)
        rho = float(self.c.max()) / width
        for _ in range(STEPS):
            value, alpha = self.slopes(m, rho)
            value += 0.5 * float(u[:-1] @ u[:-1])
            signed = self.y * alpha
            g = np.append(u[:-1] - self.pulled(signed) + self.off * signed.sum(), -signed.sum() if self.bias else 0.0)
            left = 0.5 * float(g[:-1] @ g[:-1]) + abs(float(g[-1])) * (1.0 + abs(float(u[-1])))
            if left <= gap * abs(value) or self.must_stop():
                return u, alpha, left <= gap * abs(value)
            factor = CholeskyFactor.of(self._newton_system(*self.curvature(alpha, rho)))
            if factor is None or self.must_stop():
                break
            step = -factor.solve(g)
            q = self.margins(step)
            length = self._armijo_length(u, step, m, q, rho, value, float(g @ step))
            u, m = u + length * step, m + length * q
            if length == 0.0:
                break
        return u, alpha, False

    def _newton_system(self, near: Integers, curve: Array) -> Array:
        """diag(1 … 1, 0) + Σ h_i a_i a_i' over the samples `near`, whose rows end with a 1 for the intercept."""
        step = max(1, near.size // (SYSTEM_ROWS * self.off.size))
        near, share = near[::step], near.size / max(1, near[::step].size)
        d = self.off.size + 1
        ends = cut(np.arange(near.size + 1), count_of(near.size, d, near.size * d // BLOCK_NUMBERS))
        sums = np.empty((ends.size - 1, d, d))

        def add(block: int) -> None:
            own = near[ends[block] : ends[block + 1]]
            part = self.X[own]
            rows = np.asarray(part.toarray() if sparse.issparse(part) else part, dtype=float) - self.off
            rows = np.column_stack([rows, np.full(own.size, float(self.bias))])
            sums[block] = (rows * (share * curve[own, None])).T @ rows

        run_each(add, sums.shape[0])
        H = np.asarray(sums.sum(axis=0))
        ridge = np.ones(d)
        ridge[-1] = 0.0 if self.bias and near.size else 1.0
        H[np.diag_indices_from(H)] += ridge
        return H

    def _armijo_length(
        self, u: Array, step: Array, m: Array, q: Array, rho: float, value: float, slope: float
    ) -> float:
        """The largest of 1, ½, ¼ … at which the step descends; 0 where none does."""
        length = 1.0
        for _ in range(HALVINGS):
            w = u[:-1] + length * step[:-1]
            found = self.slopes(m + length * q, rho)[0] + 0.5 * float(w @ w)
            if found <= value + DESCENT * length * slope:
                return length
            length *= 0.5
        return 0.0


def _row_slice(X: Any, own: slice) -> Any:
    """Some rows of an array, dense or CSR, that share its numbers."""
    if not sparse.issparse(X):
        return X[own]
    low, high = own.start, own.stop
    at = slice(X.indptr[low], X.indptr[high])
    shape = high - low, X.shape[1]
    return sparse.csr_array((X.data[at], X.indices[at], X.indptr[low : high + 1] - X.indptr[low]), shape=shape)


def is_tall(samples: int, columns: int, settings: RelaxationSettings) -> bool:
    """Whether samples are many times as many as the columns, of which there is one at least."""
    return columns > 0 and samples >= settings.tall * columns


def known_classifier_may_pay(problem: Problem, settings: RelaxationSettings) -> bool:
    """Whether `known_classifier` may pay, as far as this is seen without a look for samples that are equal."""
    return _is_plain(problem) and is_tall(problem.data.n_samples, problem.atoms.count, settings)


def _is_plain(problem: Problem) -> bool:
    is_stored = problem.selects_features and problem.data.block().is_stored
    return bool(is_stored and problem.regulariser.is_ridge and problem.has_kernels)


def known_classifier(whole: Boolean, high: npt.NDArray[Any]) -> KnownClassifier | None:
    """The SVM on all atoms that may be selected; None where it does not pay, or there was no time for it.

    Parameters
    ----------
    whole : Boolean
    high : (count,) upper ends of σ
    """
    problem, settings = whole.problem, whole.settings
    atoms = np.flatnonzero(high > 0.5)
    n = problem.data.n_samples
    is_long = whole.work(atoms.size) > settings.cheap or whole.first.size >= settings.tall_samples
    pays = is_long and is_tall(whole.first.size, atoms.size, settings) and _is_plain(problem)
    if not pays or whole.must_stop():
        return None
    columns = problem.atoms.columns(atoms)
    rows = np.arange(0, n, max(1, n // max(FEWEST, settings.tall * atoms.size)))
    some = SampleSvm(whole, columns.ids, rows)
    u = np.zeros(columns.ids.size + 1)
    for width in WIDTHS:
        u, _, _ = some.minimise(u, width, settings.tall_gap)
    every = SampleSvm(whole, columns.ids, None)
    u, alpha, is_met = every.minimise(u, WIDTHS[-1], settings.tall_gap)
    # What a limit cuts short is a classifier, and all that it leaves.
    if not is_met and not whole.must_stop():
        return None
    w = u[:-1]
    b = float(u[-1]) - float((every.off - problem.data.center[columns.ids]) @ w)
    spread = np.bincount(whole.kind, alpha, minlength=whole.first.size) / whole.size
    return KnownClassifier(spread, columns.ids, atoms[columns.atom], w, b)
