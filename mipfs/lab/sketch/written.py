"""The chosen columns as a data file that `mipfs.read` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mipfs.data.instance import Instance
from mipfs.lab.sketch.margin import centre_columns, store_columns
from mipfs.lab.sketch.select import Sketch
from mipfs.plumbing import output_file
from mipfs.readers.arrays import csc_arrays, npz_bytes


def arrays(sketch: Sketch, data: Instance, rescaled: bool) -> dict[str, Any]:
    """The arrays of an npz file: the columns, the user's labels, names, weights and bags.

    Parameters
    ----------
    data : Instance, of the same features
    rescaled : bool
        Whether the columns are the scaled ones times `Sketch.rescaling`; otherwise as they stand in `data`.
    """
    X = (
        centre_columns(data, sketch.ids) * sketch.rescaling[None, :]
        if rescaled
        else store_columns(data, sketch.ids).values
    )
    found: dict[str, Any] = {"y": data.labels.of(data.y), "feature_names": np.array(list(sketch.names))}
    if data.is_sparse and not isinstance(X, np.ndarray):
        found |= csc_arrays(X)
    else:
        found["X"] = X
    if np.any(data.sample_weight != 1.0):
        found["sample_weight"] = data.sample_weight
    if data.bags is not None:
        found["bag"] = data.bags
    return found


def save_columns(sketch: Sketch, data: Instance, path: str | Path, rescaled: bool = False) -> None:
    """Write the chosen columns, whole or not at all.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    output_file.save([(Path(path), npz_bytes(arrays(sketch, data, rescaled)))])
