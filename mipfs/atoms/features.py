"""Single features as atoms: ω(α) = X'(α∘y), with the rounding error of every ω_j."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.atoms import AtomColumns, Atoms, BestSearch, Ids, check_features, stamp_of
from mipfs.data.blocked import Blocked
from mipfs.data.checks import as_numbers
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.kernels import bound
from mipfs.plumbing.arrays import Array, Integers

Scaling = Literal["none", "norm"] | npt.ArrayLike

SMALLEST_NORM = 1e-150
"""Atoms of a smaller norm count as zero when they are scaled: the square of their scale is not a number."""
_BLOCK = 1 << 20


class Features(Atoms):
    """The columns of one instance.

    Parameters
    ----------
    data : Instance
    scaling : {"none", "norm"} or (p,) array-like of finite numbers >= 0
        λ_j: 1, or 1/‖x_j‖ (of the centred column; 0 for a zero column, which is never selected), or as given.

    Raises
    ------
    UsageError
        An unknown scaling, or numbers that are no scales.
    """

    are_features = True

    def __init__(self, data: Instance, scaling: Scaling = "none") -> None:
        self.data: Instance = data
        self.scale = atom_scales(scaling, lambda: np.sqrt(centred_squares(data)), data.n_features)

    @property
    def count(self) -> int:
        """Number of atoms."""
        return self.data.n_features

    @property
    def names(self) -> Sequence[str]:
        """The names of the features."""
        return self.data.feature_names

    @property
    def is_scaled(self) -> bool:
        """Whether some λ is not 1."""
        return self.scale.strides != (0,) and bool(np.any(self.scale != 1.0))

    @property
    def kind(self) -> str:
        """What `mipfs.capability` calls them."""
        return "scaled features" if self.is_scaled else "features"

    @cached_property
    def stamp(self) -> str:
        """SHA-256 of the data and the scales; see `mipfs.atoms.Atoms`."""
        return stamp_of(self.data, "features", (), *([self.scale] if self.is_scaled else []))

    def on(self, data: Instance) -> Features:
        """The features of other data, with these scales; without scales any data will do."""
        if not self.is_scaled:
            return Features(data)
        check_features(self.data, data)
        return Features(data, self.scale)

    @cached_property
    def norms(self) -> Array:
        """Euclidean norm of every stored column, shape (p,)."""
        return np.sqrt(column_squares(self.data.X, np.broadcast_to(0.0, self.data.n_features)))

    def omega(self, v: Array) -> Array:
        """ω = X'v, shape (p,), without λ; implicit centring included."""
        omega = np.asarray(self.data.X.T @ v, dtype=float)
        shift = float(v.sum())
        return omega - self.data.center * shift if shift != 0.0 else omega

    def omega_error(self, v: Array) -> Array:
        """A bound on |computed − exact| of every ω_j, shape (p,).

        γ_n Σ_i |v_i x_ij| ≤ γ_n ‖v‖ ‖x_j‖ for any order of summation, doubled for the norms' own error. What
        `data` stands for is d = fl(fl(x − shift)/scale); an entry of a centred sparse column is fl(d + center),
        u|x_ij| off, which makes γ_(n+1) of γ_n. Where a search reads x/scale as it lies in a file, γ_(n+4) holds
        |x/scale − center − d| ≤ 3u(|x| + |shift|)/scale too; the factors n + 4 and 2 have room for both.
        """
        return omega_radius(v, self.norms, np.abs(self.data.center))

    def scores(self, v: Array) -> Array:
        """s = λ²∘ω², shape (p,)."""
        omega = self.omega(v)
        return times_squares(self.scale, np.square(omega, out=omega))

    def score_error(self, v: Array, scores: Array | None = None) -> Array:
        """A bound on |computed − exact| of every score, shape (p,); see `sum_error`."""
        return sum_error(self.scores(v) if scores is None else scores, self.scale * self.omega_error(v), np.ones(1))

    def columns(self, ids: Ids) -> AtomColumns:
        """The columns of the features `ids`: themselves."""
        chosen = np.asarray(ids, dtype=np.int64)
        return AtomColumns(chosen, np.arange(chosen.size, dtype=np.int64), self.scale[chosen])

    def name(self, atom: int) -> str:
        """The name of an atom."""
        return self.data.feature_names[atom]

    def restricted(self, ids: Integers, data: Instance | None = None) -> Features:
        """The features `ids` alone, with their scales."""
        kept = kept_scaling(self.scale)
        alone = self.data.only(ids) if data is None else data
        return Features(alone, kept if isinstance(kept, str) else self.scale[ids])

    def best_search(self, client: Any, must_stop: Callable[[], bool]) -> BestSearch | None:
        """Part after part of the matrix, by the workers of a Dask client where there is one."""
        from mipfs.atoms.spread import Spread
        from mipfs.atoms.top import TopFeatures

        return TopFeatures(self, None if client is None else Spread(self, client, must_stop))

    def document(self, ids: Integers) -> dict[str, Any] | None:
        """λ; None where all are 1."""
        return {"names": None, "columns": None, "scale": self.scale.tolist()} if self.is_scaled else None


def sum_error(scores: Array, radius: Array, sizes: npt.NDArray[np.number]) -> Array:
    """A bound on the rounding error of s = λ² Σ_j ω_j²; see `mipfs.kernels.bound.sum_error`."""
    return np.asarray(bound.sum_error(scores, radius, sizes))


def atom_scales(scaling: Scaling, norms: Callable[[], Array], count: int) -> Array:
    """λ of every atom, shape (count,), from what the user asked for; `norms` is called for "norm" only."""
    if isinstance(scaling, str):
        if scaling == "none":
            return np.broadcast_to(1.0, (count,))  # no memory, and `times_squares` knows it
        if scaling == "norm":
            size = norms()
            return np.where(size > SMALLEST_NORM, 1.0 / np.maximum(size, SMALLEST_NORM), 0.0)
        raise UsageError(f"scaling = {scaling!r} is unknown; it is 'none', 'norm' or one number for every atom")
    given = as_numbers(scaling, "scaling").copy()  # the atoms do not change with the user's array
    if given.shape != (count,) or not np.all(np.isfinite(given) & (given >= 0)):
        raise UsageError(f"scaling of shape {given.shape}; give {count} finite numbers >= 0, one for every atom")
    return given


def kept_scaling(scale: Array) -> Scaling:
    """The `scaling` that makes these scales again, on any data."""
    return "none" if scale.strides == (0,) else scale


def times_squares(scale: Array, sums: Array) -> Array:
    """λ²∘sums, without a pass where every λ is the one 1 of "none"."""
    return sums if scale.strides == (0,) else np.square(scale) * sums


def centred_squares(data: Instance) -> Array:
    """Σ_i (x_ij − center_j)² of every column, shape (p,)."""
    squares = column_squares(data.X, data.center)
    if data.is_sparse and np.any(data.center):
        stored = data.X.counts() if isinstance(data.X, Blocked) else np.diff(data.X.indptr)
        squares += (data.n_samples - stored) * np.square(data.center)
    return squares


def omega_radius(v: Array, norms: Array, centers: Array) -> Array:
    """2γ_n (‖v‖ norms + ‖v‖₁ centers): of columns, or of groups by the triangle inequality."""
    absolute = float(np.abs(v).sum()) if np.any(centers) else 0.0
    return np.asarray(bound.radius_of(v.size, float(np.linalg.norm(v)), absolute, norms, centers))


def column_squares(X: Any, center: Array) -> Array:
    """Sum of (x − center)² over the stored entries of every column, in blocks that need no copy of X."""
    if isinstance(X, Blocked):
        parts = (column_squares(M, center[start : start + M.shape[1]]) for start, M in X.pieces())
        return X.squares() if center.strides == (0,) and not center[:1].any() else np.concatenate([*parts])
    n, p = X.shape
    squares = np.zeros(p)
    if not sparse.issparse(X):
        step = max(1, _BLOCK // n)
        is_centred = np.any(center)
        for start in range(0, p, step):
            part = X[:, start : start + step]
            part = part - center[start : start + step] if is_centred else part
            squares[start : start + step] = np.einsum("ij,ij->j", part, part)
        return squares
    filled = np.flatnonzero(np.diff(X.indptr))
    ends = X.indptr[filled + 1]
    start = 0
    while start < filled.size:
        stop = max(start + 1, int(np.searchsorted(ends, X.indptr[filled[start]] + _BLOCK, "right")))
        ids = filled[start:stop]
        low = X.indptr[ids[0]]
        values = X.data[low : ends[stop - 1]] - np.repeat(center[ids], ends[start:stop] - X.indptr[ids])
        squares[ids] = np.add.reduceat(np.square(values, out=values), X.indptr[ids] - low)
        start = stop
    return squares
