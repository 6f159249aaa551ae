"""The shared data sets, below the folder that the environment variable MIPFS_DATA names."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.errors import UsageError

VARIABLE = "MIPFS_DATA"
SMALL = (
    "heart_statlog", "australian", "pima", "german", "wdbc_sklearn", "ionosphere", "sonar", "colon_alon",
    "musk1_instances", "leukemia_golub", "spambase", "mi_elephant", "pcmac", "madelon", "usps", "sms_spam_counts",
    "w8a",
)  # fmt: skip
"""Sets of at most 10,000 features."""
FEW_FEATURES = SMALL[:7]
"""Those of at most 60."""
UNIT = ("pcmac", "sms_spam_counts", "w8a", "mi_elephant")
"""Sets whose columns are many and sparse: they are scaled to length one, the others to mean 0 and deviation 1."""


def missing(name: str) -> str:
    """Why a data set cannot be read; empty where it can."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return f"{VARIABLE} is unset"
    return "" if (Path(folder) / name).is_dir() else f"{name} is not below {VARIABLE}"


def labels(name: str) -> npt.NDArray[Any]:
    """The original labels of a set of several classes."""
    found: npt.NDArray[Any] = np.load(Path(os.environ[VARIABLE]) / name / "labels.npy", allow_pickle=False)
    return found


def feature_names(name: str) -> list[str]:
    """The names of the columns of a set that has some."""
    return (Path(os.environ[VARIABLE]) / name / "features.txt").read_text(encoding="utf-8").splitlines()


@lru_cache(maxsize=2)
def read(name: str) -> Instance:
    """A data set, scaled; what is standardised is dense, as not every method centres sparse columns.

    Raises
    ------
    UsageError
        It is not there.
    """
    from mipfs import readers

    why = missing(name)
    if why:
        raise UsageError(f"{why}; it names the folder of the shared data sets")
    path = Path(os.environ[VARIABLE]) / name / "data.svm.gz"
    if name in UNIT:
        return readers.read(path, scale="unit")
    raw = readers.read(path)
    if not raw.is_sparse:
        return readers.read(path, scale="standard")
    return Instance.from_arrays(raw.X.toarray(order="F"), raw.y, scale="standard", feature_names=raw.feature_names)
