"""Functions of single features, written anew from their definitions: the columns φ_j(x_j), and v'K_j v rounded up.

additive-hik              K_j[i, k] = min(x_ij, x_kj): sums over the samples with x_ij >= u, for every value u;
                          with beta and absolute of |x|^β
additive-intersection, -chi2, -jensen-shannon
                          φ(x) = √(xL) (√κ(0), √(2κ(jL)) (cos, sin)(jL log x)), j = 1 … steps − 1; φ(0) = 0
additive-gaussian         φ(x) = √u_k (cos, sin)(ω_k x), the frequencies those of Gauss and Hermite's rule, or drawn
splines                   B-splines by Cox and de Boor's recursion, less their means over the samples
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.check.known import same
from mipfs.check.rounding import Array, Integers, U, number, require
from mipfs.data.instance import Instance

CLOSE_KNOTS = 1e-9
"""Knots of splines that are closer than this share of their range are one."""
POWER_ALLOWANCE = 1e-14
"""What a power may be off by, relative, from one library to another."""
MEANS_ALLOWANCE = 1e-12
"""What the means of B-splines may be off by in a result: their values are at most 1."""


class Map:
    """What is made of every feature of the raw data.

    Attributes
    ----------
    sizes : (p,) columns of every feature
    """

    absolute = False

    def __init__(self, raw: Instance, options: Mapping[str, Any]) -> None:
        self.raw, self.n = raw, raw.n_samples
        self.least = np.zeros(raw.n_features)
        if "shift" in options:
            self._count_from(options["shift"])
        self.sizes = np.array([self.size(j) for j in range(raw.n_features)], dtype=np.int64)

    def _count_from(self, shift: Any) -> None:
        """Values must be >= 0, or are counted from the least one."""
        require(type(shift) is bool, "shift is neither true nor false")
        least = np.array([self.of_data(j).min() for j in range(self.raw.n_features)])
        require(shift or self.absolute or np.all(least >= 0), "the kernel is for values >= 0, and the data has others")
        self.least = least if shift else np.zeros(least.size)

    def of_data(self, j: int) -> Array:
        """The values (n,) of feature j as the data stands for them."""
        return self.raw.stated(np.array([j])).ravel()

    def size(self, j: int) -> int:
        """How many columns feature j has."""
        raise NotImplementedError

    def columns(self, j: int) -> Any:
        """φ_j of the samples, (n, size) ndarray or csc_array."""
        raise NotImplementedError

    def stated(self, j: int) -> dict[str, Any]:
        """What a result must say of feature j for others to predict with."""
        return {"least": float(self.least[j])}

    def agrees(self, j: int, said: Mapping[str, Any]) -> bool:
        """Whether it says that."""
        return same(said, self.stated(j))

    def score(self, j: int, v: Array, size: Array, gamma: float) -> Array:
        """v'K_j v of rows of v (B, n), not too small; `size` (B,) are their norms, `gamma` is γ_n and a percent."""
        Z = self.columns(j)
        omega = np.abs(np.asarray(v @ Z, dtype=float))
        squares = np.asarray((Z.power(2) if sparse.issparse(Z) else np.square(Z)).sum(axis=0)).ravel()
        high = omega + gamma * np.outer(size, np.sqrt(squares)) + self.n * 2.0**-1074
        return np.array(np.square(high).sum(axis=1) * (1.0 + (high.shape[1] + 4) * 1.01 * U))


class IntersectionMap(Map):
    """min(x, z); the columns are integrals of Haar's functions over the distinct values."""

    def __init__(self, raw: Instance, options: Mapping[str, Any]) -> None:
        self.levels = options["levels"]
        fits = self.levels is None or (type(self.levels) is int and 1 <= self.levels <= 1 << 20)
        known = {"levels", "shift", "beta", "absolute"}
        require(
            fits and {"levels", "shift"} <= set(options) <= known, "the options of the intersection kernel are others"
        )
        self.beta = number(options.get("beta", 1.0), "beta")
        self.absolute = options.get("absolute", False)
        sized = type(self.absolute) is bool and not (self.absolute and options["shift"])
        require(
            sized and 0.0 < self.beta <= 64.0, "beta and absolute of the intersection kernel are out of their range"
        )
        super().__init__(raw, options)

    def values(self, j: int) -> Array:
        """What the kernel is of: counted from the least value, and rounded to levels."""
        x: Array = self.of_data(j) - self.least[j]
        x = np.abs(x) if self.absolute else x
        x = x if self.beta == 1.0 else np.power(x, self.beta)
        top = float(x.max())
        if self.levels is None or top <= 0.0:
            return x
        return np.asarray(np.rint(np.minimum(x / top, 1.0) * self.levels) / self.levels * top)

    def knots(self, j: int) -> Array:
        """The distinct positive values; 1 for a feature that has none."""
        x = self.values(j)
        return np.unique(x[x > 0.0]) if np.any(x > 0.0) else np.ones(1)

    def size(self, j: int) -> int:
        """As many as there are distinct positive values, at least one."""
        return int(self.knots(j).size)

    def stated(self, j: int) -> dict[str, Any]:
        """These values."""
        return {**super().stated(j), "knots": self.knots(j).tolist()}

    def agrees(self, j: int, said: Mapping[str, Any]) -> bool:
        """Whether it says that; powers may be off by a few units of rounding."""
        if self.beta == 1.0:
            return super().agrees(j, said)
        mine = self.stated(j)
        if set(said) != set(mine) or not same(said["least"], mine["least"]) or len(said["knots"]) != len(mine["knots"]):
            return False
        knots = [number(value, "a knot") for value in said["knots"]]
        return bool(np.allclose(knots, mine["knots"], rtol=POWER_ALLOWANCE, atol=0.0))

    def columns(self, j: int) -> sparse.csc_array:
        """Level by level: at the split (low, mid, high) the hat with its peak at value number mid."""
        x = self.values(j)
        knots = self.knots(j)
        edges = np.concatenate([[0.0], knots])
        d = knots.size
        inside = np.flatnonzero(x > 0.0)
        parts = [(inside, np.zeros(inside.size, dtype=np.int64), x[inside] / math.sqrt(knots[-1]))]
        low, high = np.zeros(inside.size, dtype=np.int64), np.full(inside.size, d)
        while True:
            at = x[inside]
            going = (high - low > 1) & (at > edges[low]) & (at < edges[high])
            inside = inside[going]
            low = low[going]
            high = high[going]
            at = at[going]
            if not inside.size:
                break
            mid = (low + high) // 2
            left, peak, right = edges[low], edges[mid], edges[high]
            share = np.where(at <= peak, (at - left) / (peak - left), (right - at) / (right - peak))
            parts.append((inside, mid, share * np.sqrt((peak - left) * ((right - peak) / (right - left)))))
            low, high = np.where(at <= peak, low, mid), np.where(at <= peak, mid, high)
        rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        return sparse.csc_array(sparse.coo_array((values, (rows, columns)), shape=(self.n, d)))

    def score(self, j: int, v: Array, size: Array, gamma: float) -> Array:
        """Σ_k (u_k − u_{k−1}) (Σ of v_i over x_ij >= u_k)², from the largest value down.

        A sum of m_k terms is off by γ ‖v‖ √m_k, and Σ (u_k − u_{k−1}) m_k = Σ_i x_ij.
        """
        x = self.values(j)
        inside = np.flatnonzero(x > 0.0)
        order = inside[np.argsort(-x[inside], kind="stable")]
        if not order.size:
            return np.zeros(v.shape[0])
        at = x[order]
        last = np.flatnonzero(np.append(np.diff(at) != 0.0, True))
        sums = np.cumsum(v[:, order], axis=1)[:, last]
        gaps = at[last] - np.append(at[last][1:], 0.0)
        roots = np.sqrt(np.square(sums) @ gaps * (1.0 + (last.size + 8) * 1.01 * U))
        return np.asarray(np.square(roots + gamma * size * math.sqrt(float(at.sum()))) * (1.0 + 8 * U))


class HomogeneousMap(Map):
    """Sampled spectra κ of homogeneous kernels."""

    def __init__(self, raw: Instance, options: Mapping[str, Any], name: str) -> None:
        steps = options["steps"]
        interval = number(options["interval"], "the interval")
        fits = type(steps) is int and 1 <= steps <= 50 and interval > 0.0
        require(fits and set(options) == {"steps", "interval", "shift"}, "the options of the map are others")
        at = np.arange(steps) * interval
        decay = 1.0 / np.cosh(math.pi * at) if name != "additive-intersection" else np.ones(steps)
        tail = 1.0 / (1.0 + 4.0 * at * at) if name != "additive-chi2" else np.ones(steps)
        factor = {"additive-chi2": 1.0, "additive-intersection": 2.0 / math.pi}.get(name, 2.0 / math.log(4.0))
        self.at = at
        self.weight = np.sqrt(interval * factor * decay * tail * np.where(at > 0, 2.0, 1.0))
        super().__init__(raw, options)

    def size(self, j: int) -> int:
        """2 steps − 1."""
        return 2 * self.at.size - 1

    def columns(self, j: int) -> Array:
        """The constant frequency, then a cosine and a sine of every other one."""
        x = self.of_data(j) - self.least[j]
        logs = np.log(np.where(x > 0.0, x, 1.0))
        waves = [np.sqrt(x) * self.weight[0]]
        for frequency, weight in zip(self.at[1:], self.weight[1:], strict=True):
            waves += [np.sqrt(x) * weight * wave(frequency * logs) for wave in (np.cos, np.sin)]
        return np.stack(waves, axis=1)


class GaussianMap(Map):
    """Frequencies of Gauss and Hermite's rule for N(0, 1/h²), or drawn from it."""

    def __init__(self, raw: Instance, options: Mapping[str, Any]) -> None:
        require(set(options) == {"pairs", "width", "seed"}, "the options of the Gaussian map are others")
        m, seed = options["pairs"], options["seed"]
        width = number(options["width"], "the width")
        fits = type(m) is int and 1 <= m <= 50 and width > 0.0 and (seed is None or (type(seed) is int and seed >= 0))
        require(fits, "the options of the Gaussian map are out of their range")
        if seed is None:
            nodes, weights = np.polynomial.hermite.hermgauss(2 * m + 1)
            self.at, self.share = nodes[m:] * math.sqrt(2.0) / width, weights[m:] / math.sqrt(math.pi)
            self.share[1:] *= 2.0
        else:
            self.at, self.share = np.random.default_rng(seed).standard_normal(m) / width, np.full(m, 1.0 / m)
        self.constant = seed is None
        super().__init__(raw, options)

    def size(self, j: int) -> int:
        """A cosine and a sine of every frequency, 0 once."""
        return 2 * int(self.at.size) - int(self.constant)

    def columns(self, j: int) -> Array:
        """Every frequency in turn."""
        x = self.of_data(j)
        waves = []
        for k, (frequency, share) in enumerate(zip(self.at, self.share, strict=True)):
            root = math.sqrt(share)
            if self.constant and k == 0:
                waves.append(np.full(self.n, root))
            else:
                waves += [root * np.cos(x * frequency), root * np.sin(x * frequency)]
        return np.stack(waves, axis=1)

    def stated(self, j: int) -> dict[str, Any]:
        """Nothing: the options say it all."""
        return {}


class SplineMap(Map):
    """Centred B-splines on quantiles."""

    def __init__(self, raw: Instance, options: Mapping[str, Any]) -> None:
        self.knots = options["knots"]
        self.degree = options["degree"]
        fits = type(self.knots) is int and 2 <= self.knots <= 1000 and type(self.degree) is int
        require(fits and 0 <= self.degree <= 9 and set(options) == {"knots", "degree"}, "the options are others")
        super().__init__(raw, options)

    def base(self, j: int) -> Array:
        """The distinct quantiles, the first values with so large a share of the weight; none of a constant feature."""
        x = self.of_data(j)
        order = np.argsort(x, kind="stable")
        reached = np.cumsum(self.raw.sample_weight[order])
        reached /= reached[-1]
        places = np.searchsorted(reached, np.linspace(0.0, 1.0, self.knots), side="left")
        at = x[order][np.minimum(places, self.n - 1)]
        room = CLOSE_KNOTS * float(at[-1] - at[0])
        kept = [float(at[0])]
        if not 0.0 < room < math.inf:
            return np.empty(0)
        for knot in at[1:-1].tolist():
            if knot > kept[-1] + room and at[-1] > knot + room:
                kept.append(knot)
        return np.array([*kept, float(at[-1])])

    def size(self, j: int) -> int:
        """knots + degree − 1, one of a constant feature."""
        knots = int(self.base(j).size)
        return knots + int(self.degree) - 1 if knots else 1

    def raw_columns(self, j: int) -> Array:
        """Cox and de Boor: B of degree q from those of degree q − 1."""
        base = self.base(j)
        x = self.of_data(j)
        q = self.degree
        if not base.size:
            return np.zeros((self.n, 1))
        # Beyond both ends the knots go on at the first and at the last distance.
        before = base[0] - (base[1] - base[0]) * np.arange(q, 0, -1)
        after = base[-1] + (base[-1] - base[-2]) * np.arange(1, q + 1)
        t = np.concatenate([before, base, after])
        # Of degree 0: the piece that holds x, beyond the ends the outermost one.
        piece = np.clip(np.searchsorted(t, x, "right") - 1, q, q + base.size - 2)
        B = np.zeros((self.n, t.size - 1))
        B[np.arange(self.n), piece] = 1.0
        for order in range(1, q + 1):
            count = t.size - 1 - order
            up = (x[:, None] - t[:count]) / (t[order : order + count] - t[:count])
            down = (t[order + 1 : order + 1 + count] - x[:, None]) / (
                t[order + 1 : order + 1 + count] - t[1 : count + 1]
            )
            B = up * B[:, :count] + down * B[:, 1 : count + 1]
        return B

    def columns(self, j: int) -> Array:
        """Less their means."""
        B = self.raw_columns(j)
        return np.asarray(B - self.means(B))

    def means(self, B: Array) -> Array:
        """Means by the weights of the samples."""
        weights = self.raw.sample_weight
        return np.asarray(weights @ B / weights.sum())

    def stated(self, j: int) -> dict[str, Any]:
        """Knots and means."""
        return {"knots": self.base(j).tolist(), "means": self.means(self.raw_columns(j)).tolist()}

    def agrees(self, j: int, said: Mapping[str, Any]) -> bool:
        """Exactly for knots, up to `MEANS_ALLOWANCE` for means."""
        own = self.stated(j)
        means = [number(value, "a mean") for value in said["means"]]
        close = len(means) == len(own["means"]) and all(
            abs(a - b) <= MEANS_ALLOWANCE for a, b in zip(means, own["means"], strict=True)
        )
        return set(said) == set(own) and same(said["knots"], own["knots"]) and close


def map_of(name: Any, raw: Instance, options: Mapping[str, Any]) -> Map:
    """The maps of a result, by their name."""
    require(isinstance(name, str), "the atoms have no name")
    if name == "additive-hik":
        return IntersectionMap(raw, options)
    if name == "splines":
        return SplineMap(raw, options)
    if name == "additive-gaussian":
        return GaussianMap(raw, options)
    known = name in ("additive-chi2", "additive-intersection", "additive-jensen-shannon")
    require(known, f"no certificate is known for the atoms {name!r}")
    return HomogeneousMap(raw, options, name)


def pick_columns(maps: Map, starts: Integers, ids: Integers) -> sparse.csc_array:
    """Some columns of all features together, as sparse ones."""
    owner = np.searchsorted(starts, ids, "right") - 1
    parts = []
    for j in np.unique(owner):
        parts.append(sparse.csc_array(maps.columns(int(j)))[:, ids[owner == j] - starts[j]])
    together = sparse.csc_array(sparse.hstack(parts, format="csc")) if parts else sparse.csc_array((maps.n, 0))
    place = np.empty(ids.size, dtype=np.int64)
    place[np.argsort(owner, kind="stable")] = np.arange(ids.size)
    return together[:, place]
