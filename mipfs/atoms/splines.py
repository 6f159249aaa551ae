"""Sparse additive models: a group of B-splines for every feature, by scikit-learn's `SplineTransformer`.

    f(x) = b + Σ_j f_j(x_j),  f_j = Σ_k w_jk (B_jk − mean of B_jk over the training samples, by their weights)

B-splines of a feature add up to 1, which the intercept has too. So every column is centred: f_j averages to 0 over the
training samples, and what is constant is the intercept's. That leaves one direction of w_j without effect, which the
ridge ½‖w_j‖² sets to zero: functions and intercept are determined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, cast

import numpy as np

from mipfs.atoms.additive import Additive, dense_part
from mipfs.atoms.features import Scaling
from mipfs.atoms.groups import concatenate_ranges
from mipfs.data.instance import Instance
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import NumberRange, check_arguments

MOST_KNOTS, MOST_DEGREE = 1000, 9
CLOSE = 1e-9
"""Knots that are closer than this share of their range are one."""


class Splines(Additive):
    """knots + degree − 1 B-splines for every feature, centred; fewer where quantiles coincide.

    Parameters
    ----------
    raw : Instance
        Any values; of sparse data one feature after the other is made dense.
    knots : int >= 2, default 5
        Number of knots, at quantiles of every feature (values that it has, by the weights of the samples), from its
        least to its largest; equal ones are one. Beyond them the functions are constant. A constant feature has
        none, and is never selected.
    degree : int in 0 … 9, default 3
    scaling : {"none", "norm"} or (p,) array-like
        As of `mipfs.atoms.additive.Additive`.

    Raises
    ------
    UsageError
        An option out of its range.
    """

    name = "splines"

    @check_arguments
    def __init__(
        self,
        raw: Instance,
        *,
        knots: Annotated[int, NumberRange(2, MOST_KNOTS)] = 5,
        degree: Annotated[int, NumberRange(0, MOST_DEGREE)] = 3,
        scaling: Scaling = "none",
    ) -> None:
        self.knots = knots
        self.degree = degree
        self._base = [own for part in _quantile_knots(raw, self.knots) for own in part]
        self._means: Array | None = None
        super().__init__(raw, scaling)

    @property
    def options(self) -> dict[str, Any]:
        """`knots` and `degree`."""
        return {"knots": self.knots, "degree": self.degree}

    @property
    def is_sparse(self) -> bool:
        """They are centred."""
        return False

    def _fit(self) -> None:
        """The means, by the weights of the samples; the columns, which are centred from now on, are made anew."""
        share = self.raw.sample_weight / self.raw.sample_weight.sum()
        self._means, self.data = np.asarray(share @ self.data.block().values), self._expanded_instance()

    def _columns_per_feature(self) -> Integers:
        return np.array([base.size + self.degree - 1 if base.size else 1 for base in self._base], dtype=np.int64)

    def expand(self, features: Integers) -> Array:
        """The columns of the features, those with equally many knots at a time."""
        first = np.concatenate([[0], np.cumsum(self.sizes[features])])
        made = np.zeros((self.raw.n_samples, int(first[-1])), order="F")
        counts = np.array([self._base[j].size for j in features])
        for count in np.unique(counts[counts > 0]):
            places = np.flatnonzero(counts == count)
            d = int(count) + self.degree - 1
            base = np.stack([self._base[j] for j in features[places]], axis=1)
            values = spline_columns(dense_part(self.raw, features[places]), base, self.degree)
            made[:, (first[places][:, None] + np.arange(d)).ravel()] = values
        if self._means is not None:
            made -= self._means[concatenate_ranges(self.starts[features], self.sizes[features])]
        return np.asfortranarray(made)

    def stated(self, feature: int) -> dict[str, Any]:
        """Knots and means."""
        assert self._means is not None
        means = self._means[self.starts[feature] : self.starts[feature + 1]]
        return {"knots": self._base[feature].tolist(), "means": means.tolist()}

    @staticmethod
    def mapped(options: Mapping[str, Any], stated: Mapping[str, Any], x: Array) -> Array:
        """The columns of new values."""
        base = np.array(stated["knots"], dtype=float)
        means = np.array(stated["means"], dtype=float)
        if not base.size:
            return np.zeros((x.size, 1))
        return np.asarray(spline_columns(x[:, None], base[:, None], int(options["degree"])) - means)


def spline_columns(x: Array, base: Array, degree: int) -> Array:
    """B-splines (m, k·(knots + degree − 1)) of values (m, k), feature by feature, not centred, constant outside.

    Parameters
    ----------
    x : (m, k)
    base : (knots, k), strictly ascending
    degree : int
    """
    from sklearn.preprocessing import SplineTransformer

    if not x.size:
        return np.empty((x.shape[0], x.shape[1] * (base.shape[0] + degree - 1)))
    # divided by a power of two, which changes no bit of what comes out, so that no scale over- or underflows
    size = np.ldexp(1.0, np.frexp(np.abs(base).max(axis=0))[1].astype(int))
    made = SplineTransformer(degree=degree, knots=base / size, extrapolation="constant")
    return cast(Array, made.fit(base[[0, -1]] / size).transform(np.clip(x, base[0], base[-1]) / size))


def _quantile_knots(raw: Instance, knots: int) -> list[list[Array]]:
    """The knots of every feature: distinct quantiles, none where there is one value only."""
    step = max(1, (1 << 22) // max(1, raw.n_samples))
    found = []
    for start in range(0, raw.n_features, step):
        ids = np.arange(start, min(start + step, raw.n_features))
        X = dense_part(raw, ids)
        at = np.quantile(X, np.linspace(0.0, 1.0, knots), axis=0, weights=raw.sample_weight, method="inverted_cdf")
        found.append([drop_close_knots(column) for column in at.T])
    return found


def drop_close_knots(knots: Array) -> Array:
    """Ascending knots without those that are too close to the one before; none where fewer than two are left."""
    room = CLOSE * float(knots[-1] - knots[0])
    if not (room > 0.0 and math.isfinite(room)):
        return np.empty(0)
    kept = [float(knots[0])]
    for knot in knots[1:-1].tolist():
        if knot - kept[-1] > room and float(knots[-1]) - knot > room:
            kept.append(knot)
    return np.array([*kept, float(knots[-1])])
