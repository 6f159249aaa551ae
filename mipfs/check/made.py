"""Atoms whose columns are made of features: the checker makes them anew from the raw data that it is given.

What a result says of them stands in ``atoms["made"]``: a name, options, the digest of the raw data, and for every
selected feature what `predict` needs. Its weights are about the columns ``feature[k]``; the raw data never has them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from mipfs.check.known import rules_of, same
from mipfs.check.maps import Map, map_of, pick_columns
from mipfs.check.rounding import Array, Arrays, Document, Integers, number, require
from mipfs.check.scaling import REMEDY, ScaledData, on_stated
from mipfs.data.instance import Instance
from mipfs.data.made import GroupNames, MadeMatrix
from mipfs.data.rules import FIRST_RULES

OTHER_DATA = "this is other data than the result was found on"
DECLARED = ("name", "options", "data_sha256", "n_features", "scaling")


class RecomputedColumns(MadeMatrix):
    """The columns, made by the checker.

    Attributes
    ----------
    maps : Map
    starts : (p + 1,) columns of feature j are starts[j] : starts[j + 1]
    """

    def __init__(self, raw: Instance, maps: Map) -> None:
        self.maps, self.starts = maps, np.concatenate([[0], np.cumsum(maps.sizes)]).astype(np.int64)
        shape = raw.n_samples, int(self.starts[-1])
        super().__init__(shape, lambda ids: pick_columns(maps, self.starts, ids), is_sparse=True, raw=raw)


class MadeAtoms:
    """One atom for every feature of the raw data, its columns side by side; as `mipfs.check.statement.StatedAtoms`."""

    members = None

    def __init__(self, stated: Mapping[str, Any], columns: RecomputedColumns) -> None:
        raw = columns.raw
        self.raw = columns.raw
        self.made = stated["made"]
        self.maps = columns.maps
        self.starts = columns.starts
        self.single, self.names, self.index = False, raw.feature_names, raw.index
        self.sizes, self.count = columns.maps.sizes, raw.n_features
        require(stated.get("names") is None and stated.get("columns") is None, "the atoms are made, and are listed too")
        scale = stated.get("scale")
        self.scale = None if scale is None else np.array([number(v, "a scale") for v in scale])
        fits = self.scale is None or (self.scale.shape == (self.count,) and bool(np.all(self.scale >= 0)))
        require(fits, "the scales are negative, or not one for every atom")

    def columns(self, g: int) -> Integers:
        """The columns of atom g."""
        return np.arange(self.starts[g], self.starts[g + 1])

    def scores_of(self, v: Array, size: Array, gamma: float) -> Array:
        """λ_g² v'K_g v of rows of v (B, n), not too small but for the product with λ_g²; see `Map.score`."""
        found = np.stack([self.maps.score(g, v, size, gamma) for g in range(self.count)], axis=1)
        return found if self.scale is None else found * np.square(self.scale)


def table_of(data: Instance) -> Instance:
    """The user's data: `data`, or what its columns are made of."""
    return getattr(data.block().values, "raw", None) or data


def require_data(document: Document, data: Instance) -> None:
    """Refuse other data than a result, or what its columns are made of, states by digest and kind of scale.

    `data` may be the raw data, or the data of the problem that was solved, which knows its raw data.
    """
    made = functions_of(document)
    data = data if made is None else table_of(data)
    stated, kind = (document, document["scaling"]["kind"]) if made is None else (made, made["scaling"])
    require(stated["data_sha256"] == data.sha256, OTHER_DATA)
    require(kind == data.scaling, f"the result is about data with scale {kind!r}, not {data.scaling!r}")
    right = made is None or (type(made["n_features"]) is int and made["n_features"] == data.n_features)
    require(right, f"the data has {data.n_features} features")


def functions_of(document: Document) -> Any:
    """What a result says of columns that are functions of features; None where they are none."""
    made = (document.get("atoms") or {}).get("made")
    return None if made is None or "kind" in made else made


def on_scale(document: Document, arrays: Arrays, data: Instance) -> tuple[Instance, ScaledData]:
    """The user's data on the scale that the certificate states, and the data that the result's columns belong to."""
    raw, made = table_of(data), functions_of(document)
    if made is None:
        scaled = on_stated(document, arrays, data)
        return (scaled.data if raw is data else raw), scaled
    scaled = on_stated(document, arrays, raw)
    require(scaled.lengths is None, f"functions of features on another scale are not known: {REMEDY}")
    found = _made_data(made, scaled.data)
    require(document["data_sha256"] == found.sha256, OTHER_DATA)
    require(document["scaling"]["kind"] == "none", "the columns that are made are not scaled, and 'scaling' is stated")
    return scaled.data, ScaledData(found)


def _made_data(made: Mapping[str, Any], raw: Instance) -> Instance:
    """What is made of the raw data."""
    columns = RecomputedColumns(raw, map_of(made["name"], raw, made["options"]))
    K = columns.shape[1]
    declared = json.dumps({name: made[name] for name in DECLARED}, sort_keys=True)
    return dataclasses.replace(
        raw,
        X=columns,
        feature_names=GroupNames(raw.feature_names, columns.starts),
        center=np.broadcast_to(0.0, K),
        shift=np.broadcast_to(0.0, K),
        scale=np.broadcast_to(1.0, K),
        scaling="none",
        prepared=None,  # a recipe is in the digest of `raw`, which `declared` has
        values_sha256=hashlib.sha256(declared.encode()).hexdigest(),
    )


def check_inputs(document: Document, data: Instance, chosen: Integers) -> None:
    """What `predict` needs of the selected features is that of the raw data."""
    columns = data.block().values
    if not isinstance(columns, RecomputedColumns):
        return
    raw = columns.raw
    features = document["atoms"]["made"]["features"]
    names = {raw.feature_names[int(j)]: int(j) for j in chosen}
    require(dict(features).keys() == names.keys(), "the features that are used are not the selected ones")
    for name, j in names.items():
        said = features[name]
        center = {"center"} & set(said) if rules_of(document) == FIRST_RULES else set()
        require({*said} == {"column", "shift", "scale", "map"} | center, f"feature {name!r} says what is not known")
        require(type(said["column"]) is int and said["column"] == j, f"feature {name!r} is column {j} of the data")
        right = same(said["shift"], float(raw.shift[j])) and same(said["scale"], float(raw.scale[j]))
        right = right and (raw.rules != FIRST_RULES or same(said.get("center", 0.0), float(raw.center[j])))
        require(right, f"shift, scale or center of {name!r} are not those of the data")
        require(columns.maps.agrees(j, said["map"]), f"the function of {name!r} is not made of the data's values")
