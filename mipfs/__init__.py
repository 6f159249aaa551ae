"""Feature selection for support vector machines, solved to proven optimality.

>>> import mipfs
>>> data = mipfs.read("instances/wdbc.svm", scale="standard")
>>> result = mipfs.solve(mipfs.Problem(data, M=1, C=0.01))
>>> result.status.name, result.selected
('OPTIMAL', ('worst concave points',))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mipfs.certificate.sidecar import verify
    from mipfs.drivers import solve
    from mipfs.errors import DataError, DataWarning, MipfsError, MissingExtraError, RowError, UsageError
    from mipfs.estimators import (
        FGMClassifier,
        FGMSelector,
        FSPClassifier,
        GroupFGMClassifier,
        MeasureClassifier,
        MILClassifier,
    )
    from mipfs.formulation import Formulation, problem_of
    from mipfs.instance import Instance, Row
    from mipfs.ladder import Comparison, compare
    from mipfs.problem import Problem
    from mipfs.readers import read
    from mipfs.result import Record, Result, Status, StopReason
    from mipfs.solution_path import SolutionPath
    from mipfs.walk import path

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "DataError",
    "DataWarning",
    "FGMClassifier",
    "FGMSelector",
    "FSPClassifier",
    "Formulation",
    "GroupFGMClassifier",
    "Instance",
    "MILClassifier",
    "MeasureClassifier",
    "MipfsError",
    "MissingExtraError",
    "Problem",
    "Record",
    "Result",
    "Row",
    "RowError",
    "SolutionPath",
    "Status",
    "StopReason",
    "UsageError",
    "compare",
    "path",
    "problem_of",
    "read",
    "solve",
    "verify",
]

# `import mipfs` loads none of these: a script pays only for what it uses (PEP 562).
_HOME = {
    "Comparison": "mipfs.ladder",
    "DataError": "mipfs.errors",
    "DataWarning": "mipfs.errors",
    "FGMClassifier": "mipfs.estimators",
    "FGMSelector": "mipfs.estimators",
    "FSPClassifier": "mipfs.estimators",
    "Formulation": "mipfs.formulation",
    "GroupFGMClassifier": "mipfs.estimators",
    "Instance": "mipfs.instance",
    "MILClassifier": "mipfs.estimators",
    "MeasureClassifier": "mipfs.estimators",
    "MipfsError": "mipfs.errors",
    "MissingExtraError": "mipfs.errors",
    "Problem": "mipfs.problem",
    "Record": "mipfs.result",
    "Result": "mipfs.result",
    "Row": "mipfs.instance",
    "RowError": "mipfs.errors",
    "SolutionPath": "mipfs.solution_path",
    "Status": "mipfs.result",
    "StopReason": "mipfs.result",
    "UsageError": "mipfs.errors",
    "compare": "mipfs.ladder",
    "path": "mipfs.walk",
    "problem_of": "mipfs.formulation",
    "read": "mipfs.readers",
    "solve": "mipfs.drivers",
    "verify": "mipfs.certificate.sidecar",
}

_SUBPACKAGES = ("errors", "models")


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"mipfs.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'mipfs' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
