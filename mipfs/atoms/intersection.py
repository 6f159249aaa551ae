"""The additive intersection kernel, exactly: K_j[i, k] = min(|x_ij|^β, |x_kj|^β) (Tan 2014, (26)); of histograms β = 1.

Maji and Berg (2009) sort every feature: a score is then one pass over the non-zeros. The columns of a selected feature
are those of a finite factorisation that is exact at the distinct values of the training data
(`mipfs.kernels.intersection`): f_j is the function that is linear between them and constant beyond the last,
Σ_k α_k y_k min(x, x_kj) for any new x.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import numpy as np
from scipy import sparse

from mipfs.atoms.additive import Additive, counted_from, dense_part, not_negative
from mipfs.atoms.features import Scaling
from mipfs.data.instance import Instance
from mipfs.data.made import NUMBERS_PER_BLOCK
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import NumberRange, check_arguments

WHAT = "the histogram intersection kernel"
MOST_LEVELS = 1 << 20
MOST_BETA = 64.0
"""Powers beyond it leave the range of numbers."""


class Intersection(Additive):
    """The histogram intersection kernel of every feature.

    Parameters
    ----------
    raw : Instance with values >= 0 (zeros of sparse data cost nothing)
    levels : int >= 1, optional
        Round x_ij to a multiple of (largest x_j)/levels first: then no feature has more columns than this. It is the
        kernel of Wu's expansion of a feature into `levels` steps (Wu 2010; Tan 2014, section 7.3, takes 100 of them).
    beta : float > 0, default 1
        Of min(x^β, z^β): below 1 large values are drawn together.
    absolute : bool, default False
        Take |x| of every value, as (26) does, so that negative ones have a kernel too; not with `shift`.
    shift : bool, default False
        Count every feature from its least value; new values below that count as it, and zeros of sparse data are then
        entries like others. Without it negative values are refused: min(x, z) is no kernel there.
    scaling : {"none", "norm"} or (p,) array-like
        As of `mipfs.atoms.additive.Additive`.

    Raises
    ------
    DataError, UsageError
        Negative values; an option out of its range.
    """

    name = "additive-hik"

    @check_arguments
    def __init__(
        self,
        raw: Instance,
        *,
        levels: Annotated[int, NumberRange(1, MOST_LEVELS)] | None = None,
        shift: bool = False,
        beta: Annotated[float, NumberRange(above=0, most=MOST_BETA)] = 1.0,
        absolute: bool = False,
        scaling: Scaling = "none",
    ) -> None:
        if absolute and shift:
            raise UsageError("absolute takes |x| and shift counts from the least value; give one of them")
        self.levels = levels
        self.shift = shift
        self.beta = float(beta)
        self.absolute = absolute
        self._least = np.zeros(raw.n_features) if absolute else not_negative(raw, self.shift, WHAT)
        self._sort(raw)
        super().__init__(raw, scaling)

    @property
    def options(self) -> dict[str, Any]:
        """`levels` and `shift`; `beta` and `absolute` where they say something."""
        more = {"beta": self.beta} if self.beta != 1.0 else {}
        return {"levels": self.levels, "shift": self.shift, **more, **({"absolute": True} if self.absolute else {})}

    @property
    def is_sparse(self) -> bool:
        """They are: a sample has log₂ d + 1 of d columns."""
        return True

    def _sort(self, raw: Instance) -> None:
        """Distinct positive values of every feature, and the samples that have each: one sort for every block."""
        found = [
            _sort_values(owner, rows, raise_to_power(x - self._least[owner], self.options), self.levels)
            for owner, rows, x in _nonzero_entries(raw, self.shift)
        ]
        knots, counts, rows, owner = (np.concatenate(parts) for parts in zip(*found, strict=True))
        sizes = np.bincount(owner, minlength=raw.n_features)
        empty = np.flatnonzero(sizes == 0)  # a feature of zeros has one column, of zeros
        at = np.searchsorted(owner, empty)
        self._knots = np.insert(knots, at, 1.0)
        self._rows = rows.astype(np.int32)
        self._levels = np.concatenate([[0], np.cumsum(np.insert(counts, at, 0))]).astype(np.int64)
        self._own_sizes = np.maximum(sizes, 1).astype(np.int64)

    def _columns_per_feature(self) -> Integers:
        return self._own_sizes

    def _kernel_traces(self) -> Array:
        """Σ_i x_ij."""
        return np.add.reduceat(self._knots * np.diff(self._levels), self.starts[:-1])

    def _squared_scores(self, v: Array) -> Array:
        from mipfs.kernels.intersection import intersection_scores

        out = np.empty(self.count)
        intersection_scores(self._knots, self.starts, self._rows, self._levels, v, out)
        return out

    def expand(self, features: Integers) -> sparse.csc_array:
        """The columns of the features."""
        return sparse.csc_array(sparse.hstack([self._hat_columns(int(j)) for j in features], format="csc"))

    def _hat_columns(self, j: int) -> sparse.csc_array:
        first, last = self.starts[j], self.starts[j + 1]
        x = np.zeros(self.raw.n_samples)
        low = self._levels[first]
        counts = np.diff(self._levels[first : last + 1])
        x[self._rows[low : self._levels[last]]] = np.repeat(self._knots[first:last], counts)
        return hat_columns(x, self._knots[first:last])

    def stated(self, feature: int) -> dict[str, Any]:
        """The distinct values."""
        part = slice(self.starts[feature], self.starts[feature + 1])
        return {"least": float(self._least[feature]), "knots": self._knots[part].tolist()}

    @staticmethod
    def mapped(options: Mapping[str, Any], stated: Mapping[str, Any], x: Array) -> sparse.csc_array:
        """The columns of new values; of rounded ones where the training data was rounded."""
        knots = np.array(stated["knots"], dtype=float)
        at = raise_to_power(x if options.get("absolute") else counted_from(x, stated["least"], WHAT), options)
        return hat_columns(quantise(at, options["levels"], float(knots[-1])), knots)


def hat_columns(x: Array, knots: Array) -> sparse.csc_array:
    """φ(x) of values >= 0, (m, d): φ(x)'φ(z) = min(x, z) where x or z is a knot, and both are at most the last."""
    from mipfs.kernels.intersection import hat_coordinates

    depth = int(knots.size).bit_length() + 1
    columns, values = np.zeros((x.size, depth), dtype=np.int32), np.zeros((x.size, depth))
    counts = np.empty(x.size, dtype=np.int64)
    hat_coordinates(
        np.ascontiguousarray(x, dtype=float), np.ascontiguousarray(knots, dtype=float), columns, values, counts
    )
    kept = np.arange(depth) < counts[:, None]
    pointer = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    made = sparse.csc_array(sparse.csr_array((values[kept], columns[kept], pointer), shape=(x.size, knots.size)))
    made.sort_indices()
    return made


def raise_to_power(x: Array, options: Mapping[str, Any]) -> Array:
    """|x|^β, of what is counted from 0."""
    size = np.abs(x) if options.get("absolute") else x
    beta = options.get("beta", 1.0)
    return size if beta == 1.0 else np.power(size, beta)


def quantise(x: Array, levels: int | None, top: Array | float) -> Array:
    """x rounded to the nearest multiple of top/levels, at most top; without levels x."""
    return x if levels is None else np.asarray(np.rint(np.minimum(x / top, 1.0) * levels) / levels * top)


def _nonzero_entries(raw: Instance, shift: bool) -> Iterator[tuple[Integers, Integers, Array]]:
    """Features, samples and values of the entries that may not be zero, block after block of whole features."""
    n, p = raw.n_samples, raw.n_features
    if raw.is_sparse and not shift and not np.any(raw.center):
        ends = raw.X.indptr
        cuts = [0, *(np.flatnonzero(np.diff(ends[1:] // NUMBERS_PER_BLOCK)) + 1).tolist(), p]
        for first, last in itertools.pairwise(cuts):
            part = slice(ends[first], ends[last])
            owner = np.repeat(np.arange(first, last), np.diff(ends[first : last + 1]))
            yield owner, raw.X.indices[part], raw.X.data[part]
        return
    step = max(1, NUMBERS_PER_BLOCK // n)
    for first in range(0, p, step):
        block = dense_part(raw, slice(first, first + step))
        features = np.arange(first, first + block.shape[1])
        yield np.repeat(features, n), np.tile(np.arange(n), features.size), block.T.ravel()


def _sort_values(
    owner: Integers, rows: Integers, x: Array, levels: int | None
) -> tuple[Array, Integers, Integers, Integers]:
    """Distinct positive values, how many samples have each, these samples in order, and the feature of every value."""
    if levels is not None and x.size:
        tops = np.zeros(int(owner[-1]) + 1)
        np.maximum.at(tops, owner, x)
        x = quantise(x, levels, np.where(tops > 0.0, tops, 1.0)[owner])
    kept = np.flatnonzero(x > 0.0)
    order = kept[np.lexsort((x[kept], owner[kept]))]
    ids, values = owner[order], x[order]
    new = np.flatnonzero(np.diff(ids, prepend=-1) | (np.diff(values, prepend=0.0) != 0.0))
    return values[new], np.diff(np.append(new, order.size)), rows[order], ids[new]
