"""The additive Gaussian kernel by an explicit map of few columns: approximations (Tan 2014, sections 4.4 and 7.3).

    k(x, z) = exp(−(x − z)²/(2h²)) = E cos(ω (x − z)),  ω ~ N(0, 1/h²)
    φ(x)    = (√u_0, √(2u_k) cos(ω_k x), √(2u_k) sin(ω_k x) for k = 1 … m)

with the nodes ω_0 = 0, ±ω_1, …, ±ω_m and the weights u of Gauss and Hermite's rule: 2m + 1 columns for a feature, 11 by
default, as many as the paper takes. With a seed ω_k are drawn and u_k = 1/(2m): random Fourier features (Rahimi and
Recht 2007), 2m columns. The ANOVA kernel of section 4.4, Σ_j exp(−θ (x_j − z_j)²)^d, is this one with h² = 1/(2θd).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from mipfs.atoms.additive import Additive, dense_part
from mipfs.atoms.features import Scaling
from mipfs.data.instance import Instance
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import NumberRange, Positive, Seed, check_arguments

MOST_PAIRS = 50


class Gaussian(Additive):
    """The Gaussian kernel of every feature.

    Parameters
    ----------
    raw : Instance, of any values; the map of zero is not zero, so that columns of sparse data are dense
    pairs : int >= 1, default 5
        Frequencies, m: the rule is good to 2% for |x − z| up to 4h at 5, up to 6h at 9.
    width : float > 0, default 1
        h, on the scale of the data: give data of scale "standard".
    seed : int >= 0, optional
        Draw the frequencies, once for all features, in place of the rule.
    scaling : {"none", "norm"} or (p,) array-like
        As of `mipfs.atoms.additive.Additive`.

    Raises
    ------
    UsageError
        An option out of its range.
    """

    name = "additive-gaussian"

    @check_arguments
    def __init__(
        self,
        raw: Instance,
        *,
        pairs: Annotated[int, NumberRange(1, MOST_PAIRS)] = 5,
        width: Positive = 1.0,
        seed: Seed | None = None,
        scaling: Scaling = "none",
    ) -> None:
        self.pairs = pairs
        self.width = float(width)
        self.seed = seed
        super().__init__(raw, scaling)

    @property
    def options(self) -> dict[str, Any]:
        """`pairs`, `width` and `seed`."""
        return {"pairs": self.pairs, "width": self.width, "seed": self.seed}

    @property
    def is_sparse(self) -> bool:
        """They are not."""
        return False

    def _columns_per_feature(self) -> Integers:
        return np.full(self.raw.n_features, 2 * self.pairs + (self.seed is None), dtype=np.int64)

    def expand(self, features: Integers) -> Array:
        """The columns of the features."""
        values = dense_part(self.raw, features)
        made = self.mapped(self.options, {}, values.ravel())
        return np.asfortranarray(made.reshape(values.shape[0], -1))

    def stated(self, feature: int) -> dict[str, Any]:
        """Nothing: all features have one map."""
        return {}

    @staticmethod
    def mapped(options: Mapping[str, Any], stated: Mapping[str, Any], x: Array) -> Array:
        """The columns of new values."""
        frequencies, sizes, constant = frequency_weights(options)
        angles = np.multiply.outer(np.asarray(x, dtype=float), frequencies)
        first = int(constant > 0.0)
        made = np.empty((angles.shape[0], 2 * frequencies.size + first))
        made[:, :first] = constant
        made[:, first::2], made[:, first + 1 :: 2] = sizes * np.cos(angles), sizes * np.sin(angles)
        return made


def frequency_weights(options: Mapping[str, Any]) -> tuple[Array, Array, float]:
    """ω_k > 0 (m,) with √(2u_k) (m,), and √u_0, 0 where the frequencies are drawn."""
    m, width = int(options["pairs"]), float(options["width"])
    if options["seed"] is not None:
        drawn = np.random.default_rng(int(options["seed"])).standard_normal(m)
        return drawn / width, np.full(m, np.sqrt(1.0 / m)), 0.0
    nodes, weights = np.polynomial.hermite.hermgauss(2 * m + 1)
    u = weights[m:] / np.sqrt(np.pi)
    return nodes[m + 1 :] * np.sqrt(2.0) / width, np.sqrt(2.0 * u[1:]), float(np.sqrt(u[0]))
