"""Problem: instance + loss + selection set + penalty, the one (P) of every driver.

    (P)  min over sigma in S of  c'sigma + v(sigma),   v(sigma) = min over w, b of ½ Σ w_j²/σ_j + L(y∘(Xw + b))

(Aytug 2015, FSP-M and FSP-λ, in perspective form.)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import RowError, UsageError
from mipfs.instance import Instance
from mipfs.losses import get_loss
from mipfs.selection import Rows, Selection

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be solved. Immutable; `replace` and `with_rows` return new problems.

    Parameters
    ----------
    data : Instance
    loss : {"hinge", "squared-hinge", "logistic"}
    bias : bool, default True
        Whether the intercept is free (unpenalised); without it f(x) = w'x.
    M : int or None
        At most M features; None takes the data's own ``[select] M``, or no cardinality row.
    C : float > 0
        Loss weight; sample i has C_i = C * sample_weight_i.
    lam : float, sequence of p floats, or mapping of name to float, >= 0
        Fixed cost of selecting a feature (lambda of Aytug's FSP-λ), on top of the data's ``[penalty]``.
    rows : Rows or None
        Linear rows over the selection; None takes the data's own.
    forced_in, forced_out : tuple of str or None
        Features that must (not) be selected; None takes the data's own.
    cardinality : bool, default True
        False drops the cardinality row even where the data asks for one.

    Raises
    ------
    UsageError
        A parameter out of its range, or a combination that cannot be honoured.
    """

    data: Instance
    loss: str = "hinge"
    bias: bool = True
    M: int | None = None
    C: float = 1.0
    lam: float | Sequence[float] | Mapping[str, float] = 0.0
    rows: Rows | None = None
    forced_in: tuple[str, ...] | None = None
    forced_out: tuple[str, ...] | None = None
    cardinality: bool = True

    def __post_init__(self) -> None:
        get_loss(self.loss)
        p = self.data.n_features
        if not isinstance(self.C, (int, float, np.number)) or not (math.isfinite(self.C) and self.C > 0):
            raise UsageError(f"C = {self.C!r} must be a positive number")
        M = self.data.select.M if self.M is None else self.M
        if M is not None and self.cardinality:
            if isinstance(M, bool) or not isinstance(M, (int, np.integer)):
                raise UsageError(f"M = {M!r} must be an integer from 0 to {p}, the number of features")
            if not 0 <= M <= p:
                raise UsageError(f"M = {M} must lie between 0 and {p}, the number of features")
        rows = Rows.of(self.data.rows, self.data.index) if self.rows is None else self.rows
        if rows.matrix.shape[1] != p + len(rows.extra):
            raise UsageError(f"rows over {rows.matrix.shape[1]} columns, but the data has {p} features")
        object.__setattr__(self, "M", int(M) if M is not None and self.cardinality else None)
        object.__setattr__(self, "C", float(self.C))
        object.__setattr__(self, "rows", rows)
        for name in ("forced_in", "forced_out"):
            given = getattr(self, name)
            object.__setattr__(self, name, tuple(getattr(self.data.select, name) if given is None else given))
        _ = self.selection, self.penalty

    def replace(self, **changes: Any) -> Problem:
        """A copy with some parameters changed."""
        return dataclasses.replace(self, **changes)

    def with_rows(self, A: Any, lb: npt.ArrayLike, ub: npt.ArrayLike, names: Sequence[str] | None = None) -> Problem:
        """A copy with more rows ``lb <= A sigma <= ub``.

        Parameters
        ----------
        A : (r, p) array-like or sparse matrix
        lb, ub : (r,) array-like or scalar
        names : sequence of r str, optional
        """
        matrix = sparse.csr_array(np.atleast_2d(A) if not sparse.issparse(A) else A, dtype=float)
        r, p = matrix.shape
        if p != self.data.n_features:
            raise RowError(f"rows over {p} columns, but the data has {self.data.n_features} features")
        lower = np.broadcast_to(np.asarray(lb, dtype=float), (r,)).copy()
        upper = np.broadcast_to(np.asarray(ub, dtype=float), (r,)).copy()
        if not np.all(np.isfinite(matrix.data)) or np.any(np.isnan(lower) | np.isnan(upper)):
            raise RowError("rows with a coefficient that is not finite, or a bound that is not a number")
        assert self.rows is not None
        start = len(self.rows)
        labels = tuple(names) if names is not None else tuple(f"row{start + i + 1}" for i in range(r))
        if len(labels) != r:
            raise RowError(f"{len(labels)} names for {r} rows")
        return self.replace(rows=self.rows.stack(Rows(matrix, lower, upper, labels, ("",) * r)))

    @cached_property
    def selection(self) -> Selection:
        """The compiled set S."""
        assert self.rows is not None
        assert self.forced_in is not None
        assert self.forced_out is not None
        inside = self.data.columns_of(self.forced_in)
        outside = self.data.columns_of(self.forced_out)
        return Selection(
            self.data.n_features,
            self.M,
            tuple(int(j) for j in inside),
            tuple(int(j) for j in outside),
            self.rows,
            self.data.feature_names,
        )

    @cached_property
    def penalty(self) -> Array:
        """c of (P), shape (p,): `lam` plus the data's ``[penalty]``."""
        p = self.data.n_features
        c = np.zeros(p)
        if isinstance(self.lam, Mapping):
            c[self.data.columns_of(list(self.lam))] = [float(v) for v in self.lam.values()]
        else:
            given = np.asarray(self.lam, dtype=float)
            if given.shape not in ((), (p,)):
                raise UsageError(f"lambda has shape {given.shape}; it must be one number or {p} of them")
            c += given
        if self.data.penalty:
            c[self.data.columns_of(list(self.data.penalty))] += list(self.data.penalty.values())
        if not np.all(np.isfinite(c)) or np.any(c < 0):
            worst = int(np.flatnonzero(~(c >= 0) | ~np.isfinite(c))[0])
            raise UsageError(
                f"lambda of {self.data.feature_names[worst]!r} is {c[worst]:g}; penalties must be finite and >= 0"
            )
        return c

    @cached_property
    def c_i(self) -> Array:
        """Loss weight of every sample, shape (n,)."""
        return self.C * self.data.sample_weight

    def evaluate(self, selected: npt.ArrayLike, w: npt.ArrayLike, b: float) -> float:
        """The objective of (P) at a binary selection, recomputed from the scaled data in float64.

        Parameters
        ----------
        selected : (k,) positions with sigma = 1
        w : (k,) weights on the scaled data
        b : float, intercept on the scaled data
        """
        ids = np.asarray(selected, dtype=np.int64)
        weights = np.asarray(w, dtype=float)
        scores = np.full(self.data.n_samples, float(b) - float(self.data.center[ids] @ weights))
        if ids.size:
            scores += self.data.X[:, ids] @ weights
        loss = get_loss(self.loss).value(self.data.y * scores, self.c_i)
        return float(self.penalty[ids].sum() + 0.5 * weights @ weights + loss)
