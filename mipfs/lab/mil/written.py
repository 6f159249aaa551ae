"""Embedded bags as a data file that every command takes: ``mipfs bags`` (Mao 2013, Algorithm 3, step 1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import DataError
from mipfs.lab.mil.algorithm import own_bags, user_values
from mipfs.lab.mil.bags import Bags
from mipfs.lab.mil.miles import Miles
from mipfs.plumbing import output_file
from mipfs.readers.arrays import csc_arrays, npz_bytes


def like(new: Instance, concepts: Instance, miles: Miles) -> tuple[Any, Bags]:
    """New bags as their similarities to the rows of other data.

    Parameters
    ----------
    new : Instance with bags, of data that were read to predict (``mipfs.readers.read_new``)
    concepts : Instance, the training data
    miles : Miles, the embedding of `embedded` on these

    Raises
    ------
    DataError
        New data without bags, or without a feature of the training data.
    """
    missing = [name for name in concepts.feature_names if name not in new.index]
    if missing:
        raise DataError(f"the feature {missing[0]!r} of the training data is missing", "give the same columns")
    X = user_values(new)
    places = new.columns_of(list(concepts.feature_names))
    return miles(X[:, places], own_bags(new)), own_bags(new)


def arrays(E: Any, labels: Any) -> dict[str, Any]:
    """The arrays of an npz file: the similarities (B, n), and the label of every bag where it is known."""
    found: dict[str, Any] = {} if labels is None else {"y": np.asarray(labels)}
    return found | (csc_arrays(E) if sparse.issparse(E) else {"X": np.asarray(E)})


def save_bags(E: Any, labels: Any, path: str | Path) -> None:
    """Write embedded bags, whole or not at all.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    output_file.save([(Path(path), npz_bytes(arrays(E, labels)))])


def bag_labels(data: Instance) -> Any:
    """The label of every bag in the user's words, (B,); None where the rows have none."""
    if np.any(np.isnan(data.y)):
        return None
    return data.labels.of(own_bags(data).largest(data.y))
