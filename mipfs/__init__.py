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
    from mipfs.data.instance import Instance, Row
    from mipfs.drivers import solve, start
    from mipfs.drivers.session import Session
    from mipfs.errors import DataError, DataWarning, MipfsError, MissingExtraError, RowError, SuspectWarning, UsageError
    from mipfs.estimators import (
        AdditiveFGMClassifier,
        BaselineSelector,
        BSSSelector,
        FGMClassifier,
        FGMSelector,
        FSPClassifier,
        GroupFGMClassifier,
        LeverageSelector,
        MeasureClassifier,
        MILClassifier,
        PolynomialFGMClassifier,
    )
    from mipfs.formulation import problem_of
    from mipfs.formulation.program import Formulation
    from mipfs.lab.scorecard import Scorecard, read_scorecard, scorecard
    from mipfs.lab.sketch.front import preselect
    from mipfs.lab.studies.bench import Bench, bench
    from mipfs.lab.studies.calibration import calibrate
    from mipfs.lab.studies.ladder import Comparison, compare
    from mipfs.lab.studies.preference import Preference, prefer
    from mipfs.lab.studies.selection_stability import SelectionStability, stability
    from mipfs.lab.studies.solution_path import SolutionPath
    from mipfs.lab.studies.walk import frontier, path
    from mipfs.problem import Problem
    from mipfs.readers import read
    from mipfs.result.result import Record, Result, Status, StopReason
    from mipfs.result.verification import verify

__version__ = "0.3.0"

__all__ = [
    "AdditiveFGMClassifier",
    "BSSSelector",
    "BaselineSelector",
    "Bench",
    "Comparison",
    "DataError",
    "DataWarning",
    "FGMClassifier",
    "FGMSelector",
    "FSPClassifier",
    "Formulation",
    "GroupFGMClassifier",
    "Instance",
    "LeverageSelector",
    "MILClassifier",
    "MeasureClassifier",
    "MipfsError",
    "MissingExtraError",
    "PolynomialFGMClassifier",
    "Preference",
    "Problem",
    "Record",
    "Result",
    "Row",
    "RowError",
    "Scorecard",
    "SelectionStability",
    "Session",
    "SolutionPath",
    "Status",
    "StopReason",
    "SuspectWarning",
    "UsageError",
    "bench",
    "calibrate",
    "compare",
    "frontier",
    "path",
    "prefer",
    "preselect",
    "problem_of",
    "read",
    "read_scorecard",
    "scorecard",
    "solve",
    "stability",
    "start",
    "verify",
]

# `import mipfs` loads none of these: a script pays only for what it uses (PEP 562).
_HOME = {
    "AdditiveFGMClassifier": "mipfs.estimators",
    "BSSSelector": "mipfs.estimators",
    "BaselineSelector": "mipfs.estimators",
    "Bench": "mipfs.lab.studies.bench",
    "Comparison": "mipfs.lab.studies.ladder",
    "DataError": "mipfs.errors",
    "DataWarning": "mipfs.errors",
    "FGMClassifier": "mipfs.estimators",
    "FGMSelector": "mipfs.estimators",
    "FSPClassifier": "mipfs.estimators",
    "Formulation": "mipfs.formulation.program",
    "GroupFGMClassifier": "mipfs.estimators",
    "Instance": "mipfs.data.instance",
    "LeverageSelector": "mipfs.estimators",
    "MILClassifier": "mipfs.estimators",
    "MeasureClassifier": "mipfs.estimators",
    "MipfsError": "mipfs.errors",
    "MissingExtraError": "mipfs.errors",
    "PolynomialFGMClassifier": "mipfs.estimators",
    "Preference": "mipfs.lab.studies.preference",
    "Problem": "mipfs.problem",
    "Record": "mipfs.result.result",
    "Result": "mipfs.result.result",
    "Row": "mipfs.data.instance",
    "RowError": "mipfs.errors",
    "Scorecard": "mipfs.lab.scorecard",
    "SelectionStability": "mipfs.lab.studies.selection_stability",
    "Session": "mipfs.drivers.session",
    "SolutionPath": "mipfs.lab.studies.solution_path",
    "Status": "mipfs.result.result",
    "StopReason": "mipfs.result.result",
    "SuspectWarning": "mipfs.errors",
    "UsageError": "mipfs.errors",
    "bench": "mipfs.lab.studies.bench",
    "calibrate": "mipfs.lab.studies.calibration",
    "compare": "mipfs.lab.studies.ladder",
    "frontier": "mipfs.lab.studies.walk",
    "path": "mipfs.lab.studies.walk",
    "prefer": "mipfs.lab.studies.preference",
    "preselect": "mipfs.lab.sketch.front",
    "problem_of": "mipfs.formulation",
    "read": "mipfs.readers",
    "read_scorecard": "mipfs.lab.scorecard",
    "scorecard": "mipfs.lab.scorecard",
    "solve": "mipfs.drivers",
    "stability": "mipfs.lab.studies.selection_stability",
    "start": "mipfs.drivers",
    "verify": "mipfs.result.verification",
}

_SUBPACKAGES = {
    "atoms": "mipfs.atoms",
    "baselines": "mipfs.lab.baselines",
    "errors": "mipfs.errors",
    "mil": "mipfs.lab.mil",
    "models": "mipfs.models",
    "page": "mipfs.lab.page",
    "settings": "mipfs.settings",
    "sketch": "mipfs.lab.sketch",
    "weight_rows": "mipfs.data.weight_rows",
}


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(_SUBPACKAGES[name])
    if name not in _HOME:
        raise AttributeError(f"module 'mipfs' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
