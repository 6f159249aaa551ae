"""Additive homogeneous kernels by explicit maps of few columns (Vedaldi and Zisserman 2010): approximations.

    k(x, z) = √(xz) 𝒦(log x − log z),   𝒦(ω) = ∫ κ(λ) e^{iλω} dλ,   κ sampled at 0, L, 2L, …, (m − 1)L:
    φ(x) = √(xL) (√κ(0), √(2κ(jL)) cos(jL log x), √(2κ(jL)) sin(jL log x) for j = 1 … m − 1),  φ(0) = 0

| kernel | k(x, z) | κ(λ) |
|---|---|---|
| χ² | 2xz/(x + z) | 1/cosh(πλ) |
| intersection | min(x, z) | 2/(π(1 + 4λ²)) |
| Jensen–Shannon | ½x log₂((x + z)/x) + ½z log₂((x + z)/z) | 2/(log 4 · cosh(πλ)(1 + 4λ²)) |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, cast

import numpy as np
from scipy import sparse

from mipfs.atoms.additive import Additive, counted_from, dense_part, not_negative
from mipfs.atoms.features import Scaling
from mipfs.data.instance import Instance
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import NumberRange, Positive, check_arguments

MOST_STEPS = 50


class Homogeneous(Additive):
    """2m − 1 columns for every feature, m = `steps`.

    Parameters
    ----------
    raw : Instance with values >= 0 (zeros of sparse data cost nothing)
    steps : int >= 1, default 3
        Samples of the spectrum, m.
    interval : float > 0, optional
        L. By default what brings the map closest to its kernel, by least squares over x/z from 1/100 to 100
        (`INTERVALS`); that of scikit-learn for its χ².
    shift : bool, default False
        Count every feature from its least value; without it negative values are refused.
    scaling : {"none", "norm"} or (p,) array-like
        As of `mipfs.atoms.additive.Additive`.

    Raises
    ------
    DataError, UsageError
        Negative values; an option out of its range.
    """

    what: ClassVar[str]
    INTERVALS: ClassVar[tuple[float, ...]]
    """L for 1, 2, … steps; the last holds for more, times its number of steps and divided by theirs."""

    @check_arguments
    def __init__(
        self,
        raw: Instance,
        *,
        steps: Annotated[int, NumberRange(1, MOST_STEPS)] = 3,
        interval: Positive | None = None,
        shift: bool = False,
        scaling: Scaling = "none",
    ) -> None:
        self.steps = steps
        self.shift = shift
        known = len(self.INTERVALS)
        usual = self.INTERVALS[min(self.steps, known) - 1] * min(1.0, known / self.steps)
        self.interval = usual if interval is None else interval
        self._least = not_negative(raw, self.shift, self.what)
        super().__init__(raw, scaling)

    @staticmethod
    def spectrum(frequency: Array) -> Array:
        """κ at frequencies >= 0."""
        raise NotImplementedError

    @property
    def options(self) -> dict[str, Any]:
        """`steps`, `interval` and `shift`."""
        return {"steps": self.steps, "interval": self.interval, "shift": self.shift}

    @property
    def is_sparse(self) -> bool:
        """Where zeros stay zeros."""
        return self.raw.is_sparse and not self.shift

    def _columns_per_feature(self) -> Integers:
        return np.full(self.raw.n_features, 2 * self.steps - 1, dtype=np.int64)

    def expand(self, features: Integers) -> Any:
        """The columns of the features: of sparse data as sparse ones, with its pattern."""
        X = self.raw.X
        d = 2 * self.steps - 1
        if not self.is_sparse:
            values = dense_part(self.raw, features) - self._least[features]
            made = self.mapped(self.options, {"least": 0.0}, values.ravel())
            return np.asfortranarray(made.reshape(X.shape[0], features.size * d))
        part = sparse.csc_array(X[:, features])
        values = self.mapped(self.options, {"least": 0.0}, part.data)
        places = np.repeat(np.arange(features.size) * d, np.diff(part.indptr))
        columns = (places[:, None] + np.arange(d)).ravel()
        triples = values.ravel(), (np.repeat(part.indices, d), columns)
        return sparse.csc_array(sparse.coo_array(triples, shape=(X.shape[0], features.size * d)))

    def stated(self, feature: int) -> dict[str, Any]:
        """The value that counts as 0."""
        return {"least": float(self._least[feature])}

    @classmethod
    def _feature_map(cls, options: Mapping[str, Any], x: Array) -> Array:
        steps = int(options["steps"])
        interval = float(options["interval"])
        at: Array = np.arange(steps, dtype=float) * interval
        sizes = np.sqrt(interval * cls.spectrum(at) * np.where(at > 0.0, 2.0, 1.0))
        root = np.sqrt(x)
        angles = np.multiply.outer(np.log(np.where(x > 0.0, x, 1.0)), at[1:])
        made = np.empty((x.size, 2 * steps - 1))
        made[:, 0] = root * sizes[0]
        made[:, 1::2], made[:, 2::2] = np.cos(angles), np.sin(angles)
        made[:, 1:] *= root[:, None] * np.repeat(sizes[1:], 2)
        return made


class Chi2(Homogeneous):
    """The additive χ² kernel by scikit-learn's `AdditiveChi2Sampler`, its columns feature by feature.

    Parameters are those of `Homogeneous`.
    """

    name = "additive-chi2"
    what = "the additive χ² kernel"
    INTERVALS = (0.8, 0.5, 0.4, 0.42, 0.38)

    @staticmethod
    def mapped(options: Mapping[str, Any], stated: Mapping[str, Any], x: Array) -> Array:
        """The columns of new values."""
        from sklearn.kernel_approximation import AdditiveChi2Sampler

        sampler = AdditiveChi2Sampler(sample_steps=options["steps"], sample_interval=options["interval"])
        at = counted_from(x, stated["least"], Chi2.what)
        if not at.size:
            return np.empty((0, 2 * options["steps"] - 1))
        return cast(Array, sampler.fit_transform(at[:, None]))


class SampledIntersection(Homogeneous):
    """The intersection kernel by a map of few columns; `mipfs.atoms.intersection.Intersection` is exact.

    Parameters are those of `Homogeneous`.
    """

    name = "additive-intersection"
    what = "the intersection kernel"
    INTERVALS = (0.61, 0.70, 0.59, 0.55, 0.54)

    @staticmethod
    def spectrum(frequency: Array) -> Array:
        """2/(π(1 + 4λ²))."""
        return np.asarray(2.0 / (math.pi * (1.0 + 4.0 * np.square(frequency))))

    @staticmethod
    def mapped(options: Mapping[str, Any], stated: Mapping[str, Any], x: Array) -> Array:
        """The columns of new values."""
        return SampledIntersection._feature_map(options, counted_from(x, stated["least"], SampledIntersection.what))


class JensenShannon(Homogeneous):
    """The additive Jensen–Shannon kernel by a map of few columns.

    Parameters are those of `Homogeneous`.
    """

    name = "additive-jensen-shannon"
    what = "the Jensen–Shannon kernel"
    INTERVALS = (0.52, 0.41, 0.36, 0.32, 0.29)

    @staticmethod
    def spectrum(frequency: Array) -> Array:
        """2/(log 4 · cosh(πλ)(1 + 4λ²))."""
        return np.asarray(2.0 / (math.log(4.0) * np.cosh(math.pi * frequency) * (1.0 + 4.0 * np.square(frequency))))

    @staticmethod
    def mapped(options: Mapping[str, Any], stated: Mapping[str, Any], x: Array) -> Array:
        """The columns of new values."""
        return JensenShannon._feature_map(options, counted_from(x, stated["least"], JensenShannon.what))
