"""Samples that are alike on the columns of a restricted problem: one weighted sample of every kind stands for them.

In kddb a row has 29 of thirty million features: of the hundred columns that a restricted problem sees most rows have
none or few, and 19 million rows are some ten thousand kinds. v(σ), its weights and its dual values are the same,
    min over w of Σ_i c_i ℓ(m_i) = Σ_K (Σ_{i in K} c_i) ℓ(m_K),    α_i = c_i / c_K · α_K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.data.matrix import by_label, refine_kinds
from mipfs.plumbing.arrays import Array, Integers
from mipfs.problem import Problem
from mipfs.svm.dyadic import pieces
from mipfs.svm.solver import MERGE_ABOVE, MERGE_BELOW

AT_A_TIME = 8
"""Columns that are looked at together, all samples of which are in memory at once."""


class SampleKinds:
    """The kinds of samples on columns that become more.

    Parameters
    ----------
    data : Instance of sparse columns

    Attributes
    ----------
    kind : (n,) int32, the kind of every sample
    columns : (k,) the columns so far, ascending
    rows : (m, k) csc_array, what the samples of a kind have in them
    first : (m,) a sample of every kind
    """

    def __init__(self, data: Instance) -> None:
        self.data = data
        self.columns = np.empty(0, dtype=np.int64)
        self.kind = np.zeros(data.n_samples, dtype=np.int32)
        self._sizes = by_label(data.y, self.kind)
        self.first = np.array([0, int(np.argmax(self.kind))])[: self._sizes.size]
        self.rows: Any = sparse.csc_array((self._sizes.size, 0))

    def take(self, columns: Integers) -> bool:
        """Tell the samples apart by further columns too; whether so few kinds are left that they are worth it."""
        most = int(MERGE_BELOW * self.kind.size)
        fresh = np.setdiff1d(columns, self.columns)
        for start in range(0, fresh.size, AT_A_TIME):
            ids = fresh[start : start + AT_A_TIME]
            part = sparse.csc_array(self.data.block(ids).values)
            first, parent = refine_kinds(part, self.kind, self._sizes, most)
            if not first.size:
                return False
            self._sizes = self._count_per_kind(first.size)
            self.first = first
            # The shorter one is gone before the wider one is made.
            self.rows = self.rows[parent]
            self.rows = sparse.csc_array(sparse.hstack([self.rows, part[first]]))
            self.columns = np.concatenate([self.columns, ids])
        order = np.argsort(self.columns, kind="stable")
        if fresh.size:
            self.columns, self.rows = self.columns[order], sparse.csc_array(self.rows[:, order])
        return True

    def forget(self) -> None:
        """Drop what the kinds have in the columns: what is told over the kinds can be `spread` without."""
        self.columns, self.rows = self.columns[:0], self.rows[:, :0]

    def instance(self, weights: Array) -> Instance:
        """The kinds as samples of `columns`, with the weights (n,) of theirs added up."""
        data = self.data
        ids = self.columns
        return data.over(
            self.rows,
            [data.feature_names[j] for j in ids.tolist()],
            y=np.array(data.y[self.first]),
            sample_weight=self.sum_weights(weights),
            center=data.center[ids],
            shift=data.shift[ids],
            scale=data.scale[ids],
            bags=None,
            values_sha256="",
        )

    def _count_per_kind(self, m: int) -> Integers:
        """Samples (m,) of every kind; piece by piece, for NumPy widens the kinds of all samples at once."""
        sizes = np.zeros(m, dtype=np.int64)
        for at in pieces(self.kind.size):
            sizes += np.bincount(self.kind[at], minlength=m)
        return sizes

    def sum_weights(self, weights: Array) -> Array:
        """Sums (m,) of numbers (n,) over every kind; the same number of all is one product."""
        if weights.strides == (0,):
            return np.asarray(self._sizes * float(weights[0]), dtype=float)
        return np.bincount(self.kind, weights, self.first.size).astype(float)

    def spread(self, alpha: Array, c: Array) -> Array:
        """α (n,) of a dual vector (m,) over the kinds, for weights c (n,)."""
        of_kind = alpha / self.sum_weights(c)
        found = np.empty(self.kind.size)
        for at in pieces(found.size):
            np.multiply(of_kind[self.kind[at]], c[at], out=found[at])
        return found


def group_alike_samples(problem: Problem, columns: Integers) -> SampleKinds | None:
    """The kinds of samples on some columns; None where there are too many, or nothing is known of equal ones."""
    data = problem.data
    if not data.is_sparse or data.n_samples < MERGE_ABOVE or np.any(data.center):
        return None
    found = SampleKinds(data)
    return found if found.take(columns) else None
