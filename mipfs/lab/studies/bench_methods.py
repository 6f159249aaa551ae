"""What `mipfs.bench` compares: the drivers' methods, every baseline, and the references on all features.

A method is a line in `SOLVED`, in `mipfs.lab.baselines.BASELINES` or, where the sketches are there, in `SKETCHES`.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mipfs.data.instance import Instance
from mipfs.errors import NumericalError, UsageError
from mipfs.lab import baselines
from mipfs.lab.baselines.linear import Linear, check_size, check_weight
from mipfs.lab.baselines.rfe import plain_svm
from mipfs.plumbing.alarm import TimeUp

if TYPE_CHECKING:
    from mipfs.lab.studies.bench_setting import Setting
    from mipfs.result.result import Result

ACCURACY = "accuracy"


@dataclass(frozen=True)
class Fit:
    """A classifier on the features that a method chose.

    Attributes
    ----------
    linear : Linear
    status : str, of a driver: OPTIMAL, FEASIBLE or RELAXED; otherwise empty
    gap : float or None, of a driver
    stopped : str, the limit that stopped a driver, empty where none did
    """

    linear: Linear
    status: str = ""
    gap: float | None = None
    stopped: str = ""


@dataclass(frozen=True)
class Method:
    """A way to choose features and to fit a classifier on them.

    Attributes
    ----------
    name, what, source : str
    fit : takes (data, M, C, setting) and returns a `Fit`
    uses_c : bool
        False: the same features whatever C, and the SVM of `mipfs.lab.baselines.rfe.plain_svm` on them.
    selects : bool
        False: a reference, which takes all features whatever M.
    has_limit : bool, whether it keeps the setting's time limit by itself
    """

    name: str
    what: str
    source: str
    fit: Callable[[Instance, int, float, Setting], Fit]
    uses_c: bool = True
    selects: bool = True
    has_limit: bool = False


@dataclass(frozen=True)
class Solved:
    """A problem of ours and the driver that solves it: the M features that it leaves, and the SVM of its loss."""

    what: str
    source: str
    driver: str
    loss: str
    gap: float

    def __call__(self, data: Instance, M: int, C: float, setting: Setting) -> Fit:
        from mipfs.drivers import solve
        from mipfs.problem import Problem

        problem = Problem(data, loss=self.loss, bias=setting.bias, M=M, C=C)
        limits: dict[str, Any] = {"gap": self.gap, "time_limit": setting.time_limit, "seed": setting.seed}
        result = solve(problem, self.driver, **limits)
        ids = np.sort(data.columns_of(_selected(result)))
        return _fit_of(result, plain_svm(data, ids, C, setting.bias, self.loss))


@dataclass(frozen=True)
class Joint:
    """The problem of the measure itself (Mao 2013), with C n/4 for C: for the error, that is C for every sample."""

    what: str
    source: str
    driver: str
    gap: float

    def __call__(self, data: Instance, M: int, C: float, setting: Setting) -> Fit:
        from mipfs.data.constant import CONSTANT
        from mipfs.drivers import solve
        from mipfs.lab.baselines.structural_svm import structural_svm
        from mipfs.lab.joint import joint_problem, with_constant

        constant = float(setting.bias)
        joint_c = 0.25 * C * data.n_samples
        measure = "error" if setting.measure == ACCURACY else setting.measure
        given: dict[str, Any] = {"beta": setting.beta, "k": setting.k}
        wide = with_constant([data], constant)[0]
        problem = joint_problem(wide, measure, M=M, C=joint_c, constant=constant, **given)
        result = solve(problem, self.driver, gap=self.gap, time_limit=setting.time_limit)
        ids = np.sort(wide.columns_of(_selected(result)))
        fitted = structural_svm(wide, measure, joint_c, ids, tol=1e-6, **given)
        kept = fitted.ids < data.n_features
        offset = fitted.b + constant * float(fitted.w[~kept].sum())
        assert constant == 0.0 or CONSTANT in wide.index
        return _fit_of(result, Linear(fitted.ids[kept], fitted.w[kept], offset, joint_c))


SOLVED: dict[str, Solved | Joint] = {
    "fgm": Solved("feature generation: the convex relaxation, rounded", "Tan 2014", "kelley", "squared-hinge", 1e-3),
    "fgm-hinge": Solved("the same with the hinge", "Tan 2014", "kelley", "hinge", 1e-3),
    "fgm-logistic": Solved("the same with the logistic loss", "Tan 2014, section 4", "kelley", "logistic", 1e-3),
    "fsp-m": Solved("the best M features, proved by branch and bound", "Aytug 2015", "branch", "hinge", 1e-4),
    "fsp-m-squared-hinge": Solved("the same with the squared hinge", "Aytug 2015", "branch", "squared-hinge", 1e-4),
    "gbd": Solved("the best M features, by Benders decomposition", "Aytug 2015, Table 1", "gbd", "hinge", 1e-4),
    "structural": Joint("M features chosen and fitted for the measure itself, relaxed", "Mao 2013", "two_layer", 1e-3),
    "structural-branch": Joint("the same, proved", "Mao 2013", "branch", 1e-3),
}  # fmt: skip
"""Name to problem and driver."""
SKETCHES = {
    "bss": "the columns of BSS (deterministic), and the SVM on them",
    "leverage": "columns drawn by leverage scores, and the SVM on them",
    "approx-bss": "the columns of approximate BSS, and the SVM on them",
    "rrqr": "the columns of a rank-revealing QR, and the SVM on them",
}
"""Methods of the sketches, where the package has them."""


def methods() -> Mapping[str, Method]:
    """Every method that there is, by name."""
    found = {
        name: Method(name, one.what, one.source, one, has_limit=True) for name, one in SOLVED.items()
    }  # fmt: skip
    for name in (*baselines.available(), *baselines.references()):
        about = baselines.about(name)
        selects = name in baselines.available()
        found[name] = Method(name, about.what, about.source, _Baseline(name), uses_c=about.uses_c, selects=selects)
    return found | _sketches()


def get_method(name: str) -> Method:
    """A method by its name.

    Raises
    ------
    UsageError
        No method of that name.
    """
    found = methods()
    if name not in found:
        close = difflib.get_close_matches(name, found, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it is one of {', '.join(found)}"
        raise UsageError(f"method {name!r} is not known; {hint}")
    return found[name]


@dataclass(frozen=True)
class _Baseline:
    """A baseline or a reference of the registry."""

    name: str

    def __call__(self, data: Instance, M: int, C: float, setting: Setting) -> Fit:
        return Fit(baselines.get_baseline(self.name)(data, M, C, bias=setting.bias, seed=setting.seed))


@dataclass(frozen=True)
class _Sketch:
    """A sketch of M columns, and the SVM on them as they stand."""

    module: str
    name: str

    def __call__(self, data: Instance, M: int, C: float, setting: Setting) -> Fit:
        check_size(M, data.n_features)
        check_weight(C)
        found = importlib.import_module(self.module).select(data, self.name, M, seed=setting.seed)
        return Fit(plain_svm(data, np.unique(np.asarray(found.ids, dtype=np.int64)), C, setting.bias))


def _sketches() -> dict[str, Method]:
    """The sketches, where the package has them."""
    module = f"{__package__.partition('.')[0]}.sketch"
    if importlib.util.find_spec(module) is None:
        return {}
    return {
        name: Method(name, what, "Paul 2016", _Sketch(module, name), uses_c=False) for name, what in SKETCHES.items()
    }


def _selected(result: Result) -> tuple[str, ...]:
    """What a driver chose.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C: otherwise the next fit would begin.
    TimeUp
        The time limit came before there was a classifier.
    NumericalError
        There is none for another reason.
    """
    from mipfs.result.result import StopReason

    if result.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    if not result.has_classifier:
        if result.stop_reason is StopReason.TIME_LIMIT:
            raise TimeUp
        raise NumericalError(f"{result.driver} found no classifier: {result.status.name}, {result.stop_reason.name}")
    return result.selected


def _fit_of(result: Result, found: Linear) -> Fit:
    from mipfs.result.result import StopReason

    stopped = "" if result.stop_reason is StopReason.GAP_CLOSED else result.stop_reason.name
    gap = result.gap if np.isfinite(result.gap) else None
    return Fit(found, result.status.name, gap, stopped)
