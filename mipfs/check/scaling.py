"""How the columns are scaled: what a result states is compared with the data, which is put on the stated scale.

Shift and scale are sums of n terms, whose last bits depend on their order, and so on how the data is stored; those that
are stated define the problem, where they are within γ_n. Where the data has the user's values, the columns are made of
these anew. Of scaled values d alone (of dense data) they are ((d·r' + (t' − t))/r) for their own t', r' and the stated
t, r. With x − t' = r'd(1 + ε)², |ε| ≤ u, and as many roundings of the stated fl(fl(x − t)/r) and of our three
operations, that is off by less than 8u(|value| + |t' − t|/r), and by what underflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.check.rounding import Array, Arrays, Document, U, require
from mipfs.data.instance import Instance
from mipfs.data.rules import FIRST_RULES, scaling_of

REMEDY = "give the data stored as it was when the problem was solved"
SMALLEST_MOVED = 2.0**-800
"""Smallest scale of columns that are put on another: what underflows is below 2^-270 of them."""


@dataclass(frozen=True, eq=False)
class ScaledData:
    """Data on the stated scale, and how far its columns may be off the stated ones.

    Attributes
    ----------
    data : Instance
    lengths, sizes : (p,) Euclidean length of what a column is off, and the largest entry of it, not too small; None of
        data that is not
    """

    data: Instance
    lengths: Array | None = None
    sizes: Array | None = None


def by_rules(data: Instance, rules: int) -> Instance:
    """The data, or what its columns are made of, scaled by a version of the rules."""
    raw = getattr(data.block().values, "raw", None) or data
    if scaling_of(raw.rules) == scaling_of(rules):
        return data
    found = raw.by_rules(rules)
    again = f"read it by these: mipfs.read(…, rules={rules})"
    require(found.rules == rules, f"this data is not scaled by the rules {rules} of the result; {again}")
    return data if found.X is raw.X else found


def on_stated(document: Document, arrays: Arrays, data: Instance) -> ScaledData:
    """The data on the scale that the certificate states of all columns."""
    names = ("shift", "scale", "center") if data.rules == FIRST_RULES else ("shift", "scale")
    told = {name.removeprefix("column_") for name in arrays if name.startswith("column_")}
    require(told <= {*names}, "the certificate states of the columns' scaling what its rules do not know")
    require(not told or told >= {"shift", "scale"}, "the certificate has half of the columns' scaling")
    if data.rules == FIRST_RULES:
        need = "center" in told or not told or not np.any(data.center)
        require(need, "the certificate lacks the columns' centres")
    own = {"shift": data.shift, "scale": data.scale, "center": data.center}
    stated = {name: _decode_floats(arrays[f"column_{name}"], name, own[name]) for name in sorted(told)}
    moved = [name for name, values in stated.items() if not np.array_equal(values, own[name])]
    if not moved:
        return ScaledData(data)
    require(data.rules != FIRST_RULES, f"the {moved[0]} of the columns in the certificate is not that of the data")
    return _shift_data(data, stated["shift"], stated["scale"])


def _decode_floats(texts: Array, name: str, own: Array) -> Array:
    require(texts.shape == own.shape and texts.dtype.kind == "S", f"the columns' {name} is malformed")
    found = np.array([float.fromhex(text.decode("ascii")) for text in texts.tolist()])
    require(np.all(np.isfinite(found)), f"the columns' {name} is not finite")
    return found


def _shift_data(data: Instance, shift: Array, scale: Array) -> ScaledData:
    gamma = (2.02 if data.counts is None else 4.04) * (data.n_samples + 16) * U  # of two sums each, with weights
    near = np.abs(shift - data.shift) <= (gamma * (np.abs(data.shift) + data.scale) if data.scaling != "unit" else 0.0)
    near &= np.abs(scale - data.scale) <= gamma * data.scale
    where = "" if near.all() else f" of {data.feature_names[int(np.argmin(near))]!r}"
    require(near.all(), f"the shift or scale{where} in the certificate is not that of the data")
    if data.unscaled is not None:
        return ScaledData(data.with_scaling(shift, scale))
    block = data.block()
    known = block.is_stored and not block.is_centred
    require(known, f"the stated scaling differs from that of the data by its last bits: {REMEDY}")
    return _approximate_scaled(data, block.values.copy(), shift, scale)


def _approximate_scaled(data: Instance, X: Any, shift: Array, scale: Array) -> ScaledData:
    """Of scaled values X alone, which are changed."""
    n, p = X.shape
    changed = np.flatnonzero((shift != data.shift) | (scale != data.scale))
    require(np.all(scale[changed] >= SMALLEST_MOVED), f"a scale is too small to be moved; {REMEDY}")
    lengths, sizes = np.zeros(p), np.zeros(p)
    for j in changed.tolist():
        part = slice(X.indptr[j], X.indptr[j + 1]) if sparse.issparse(X) else (slice(None), j)
        held = X.data if sparse.issparse(X) else X
        off = data.shift[j] - shift[j]
        values = (held[part] * data.scale[j] + off) / scale[j]
        require(np.all(np.isfinite(values)), f"a column is too large to be moved; {REMEDY}")
        held[part] = values
        largest = float(np.abs(values).max(initial=0.0)) or 1.0
        sizes[j] = 8.1 * U * (largest + abs(off) / scale[j]) + 2.0**-260
        length = largest * math.sqrt(float(np.square(values / largest).sum()))
        lengths[j] = 8.2 * U * (length + math.sqrt(n) * abs(off) / scale[j]) + math.sqrt(n) * 2.0**-260
    return ScaledData(replace(data, X=X, shift=shift, scale=scale), lengths, sizes)
