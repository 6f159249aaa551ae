"""What `mipfs.bench` compares: the drivers' methods, every baseline, and the references on all features.

A method is a line in `SOLVED`, in `WHOLE`, in `mipfs.lab.baselines.BASELINES` or in `SKETCHES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipfs.data.instance import Instance
from mipfs.errors import NumericalError, UsageError
from mipfs.lab import baselines
from mipfs.lab.baselines.l1_bundle import L1Bundle
from mipfs.lab.baselines.linear import Linear, check_size, check_weight, linear, plain_svm
from mipfs.lab.baselines.structural_svm import of_columns
from mipfs.lab.studies.bench_method import BenchMethod, MethodFit, MethodSetting
from mipfs.losses import get_loss
from mipfs.measures import MEASURES
from mipfs.plumbing.alarm import TimeUp
from mipfs.plumbing.arrays import Integers
from mipfs.plumbing.registry import suggest_name
from mipfs.problem import Problem
from mipfs.result.result import Result, StopReason


@dataclass(frozen=True)
class DriverMethod:
    """A problem of ours and the driver that solves it: the M features that it leaves, and the SVM of its loss."""

    what: str
    source: str
    driver: str
    loss: str
    gap: float

    def __call__(self, data: Instance, M: int, C: float, setting: MethodSetting) -> MethodFit:
        from mipfs.drivers import solve

        problem = Problem(data, loss=self.loss, bias=setting.bias, M=M, C=C)
        limits: dict[str, Any] = {"gap": self.gap, "time_limit": setting.time_limit, "seed": setting.seed}
        result = solve(problem, self.driver, **limits)
        ids = _selected_columns(problem, result)
        return _fit_of(result, plain_svm(data, ids, C, setting.bias, self.loss))


@dataclass(frozen=True)
class StructuralMethod:
    """The problem of the measure itself (Mao 2013), with C n/4 for C: for the error, that is C for every sample."""

    what: str
    source: str
    driver: str
    gap: float

    def __call__(self, data: Instance, M: int, C: float, setting: MethodSetting) -> MethodFit:
        from mipfs.drivers import solve

        asked = measure_of(setting)
        C_joint = 0.25 * C * data.n_samples
        problem = Problem(data, loss="structural", bias=setting.bias, M=M, C=C_joint, **asked)
        result = solve(problem, self.driver, gap=self.gap, time_limit=setting.time_limit)
        ids = _selected_columns(problem, result)
        return _fit_of(result, of_columns(data, ids, C, bias=setting.bias, **asked))


@dataclass(frozen=True)
class ByMeasure:
    """A baseline that fits for the benchmark's own measure: on features that the ℓ1 bundle chooses, or on all."""

    selects: bool

    def __call__(self, data: Instance, M: int, C: float, setting: MethodSetting) -> MethodFit:
        asked = measure_of(setting)
        ids = L1Bundle(data, **asked).of_size(M).ids if self.selects else np.arange(data.n_features)
        return MethodFit(of_columns(data, ids, C, bias=setting.bias, **asked))


@dataclass(frozen=True)
class RelaxationMethod:
    """All features that the relaxation uses (Tan's FGM): with its own weights, or refitted at a C of their own.

    Attributes
    ----------
    debias : float or None, C of the plain SVM on them (20 in Tan 2014, Figures 4 and 9)
    T : int, iterations at most (15 in Tan 2014, section 6.2.2)
    """

    debias: float | None
    T: int = 15

    def __call__(self, data: Instance, M: int, C: float, setting: MethodSetting) -> MethodFit:
        from mipfs.drivers import solve

        problem = Problem(data, loss="squared-hinge", bias=setting.bias, M=M, C=C)
        result = solve(problem, "kelley", gap=1e-3, T=self.T, time_limit=setting.time_limit, seed=setting.seed)
        _selected_names(result)
        mixed = (result.relaxed or {}).get("sigma", {})
        ids = data.columns_of(list(mixed))
        if self.debias is not None:
            return _fit_of(result, plain_svm(data, np.sort(ids), self.debias, setting.bias))
        solver = get_loss("squared-hinge").Solver(data, problem.c_i, setting.bias)
        svm = solver.solve(ids, np.array([*mixed.values()], dtype=float), tol=1e-9)
        return _fit_of(result, linear(data, ids, svm.w, svm.b, C))


def measure_of(setting: MethodSetting) -> dict[str, Any]:
    """The benchmark's measure with its parameters; the error for the accuracy."""
    measure = setting.measure if setting.measure in MEASURES else "error"
    return {"measure": measure, "beta": setting.beta, "k": setting.k}


SOLVED: dict[str, DriverMethod | StructuralMethod] = {
    "fgm": DriverMethod(
        "feature generation: the convex relaxation, rounded", "Tan 2014", "kelley", "squared-hinge", 1e-3
    ),
    "fgm-hinge": DriverMethod("the same with the hinge", "Tan 2014", "kelley", "hinge", 1e-3),
    "fgm-logistic": DriverMethod(
        "the same with the logistic loss", "Tan 2014, section 5.2", "kelley", "logistic", 1e-3
    ),
    "fsp-m": DriverMethod("the best M features, proved by branch and bound", "Aytug 2015", "branch", "hinge", 1e-4),
    "fsp-m-squared-hinge": DriverMethod(
        "the same with the squared hinge", "Aytug 2015", "branch", "squared-hinge", 1e-4
    ),
    "gbd": DriverMethod("the best M features, by Benders decomposition", "Aytug 2015, Table 1", "gbd", "hinge", 1e-4),
    "structural": StructuralMethod(
        "M features chosen and fitted for the measure itself, relaxed", "Mao 2013", "two_layer", 1e-3
    ),
    "structural-branch": StructuralMethod("the same, proved", "Mao 2013", "branch", 1e-3),
}
"""Name to problem and driver."""
WHOLE = {
    "fgm-all": ("all features that 15 rounds of M generate, with the relaxation's weights", RelaxationMethod(None)),
    "fgm-unbias": ("the same features, and the SVM with C = 20 on them", RelaxationMethod(20.0)),
}
"""Methods that keep more than M features."""
BY_MEASURE = {"l1-bmrm": ByMeasure(selects=True), "svm-perf": ByMeasure(selects=False)}
"""Baselines that are fitted for the benchmark's measure, not for F1."""
SKETCHES = {
    "bss": "the columns of BSS (deterministic), and the SVM on them",
    "leverage": "columns drawn by leverage scores, and the SVM on them",
    "approx-bss": "the columns of approximate BSS, and the SVM on them",
    "rrqr": "the columns of a rank-revealing QR, and the SVM on them",
    "approx-leverage": "columns drawn by approximate leverage scores, and the SVM on them",
}
"""Methods of the sketches."""
BY_SUPPORT_VECTORS = ("bss", "leverage", "rrqr", "rfe", "lpsvm")
"""Methods that NAME-sv applies to the support vectors of the SVM on all features alone, and fits on them again."""


def methods() -> Mapping[str, BenchMethod]:
    """Every method that there is, by name."""
    found = {
        name: BenchMethod(
            name, one.what, one.source, one, has_limit=True, is_joint=isinstance(one, StructuralMethod), is_whole=True
        )
        for name, one in SOLVED.items()
    }
    for name, (what, whole) in WHOLE.items():
        found[name] = BenchMethod(name, what, "Tan 2014, section 6", whole, has_limit=True)
    for name in (*baselines.available(), *baselines.references()):
        about = baselines.about(name)
        selects = name in baselines.available()
        fit = BY_MEASURE.get(name) or _Baseline(name)
        joint = name in BY_MEASURE
        kind: dict[str, Any] = {"is_joint": joint, "is_whole": not selects}
        found[name] = BenchMethod(name, about.what, about.source, fit, about.uses_c, selects, **kind)
    known = "the SVM on the features that matter, named by --ideal: a reference"
    found["svm-ideal"] = BenchMethod(
        "svm-ideal", known, "Tan 2010, section 3.3", _fit_ideal, selects=False, is_whole=True
    )
    return found | _sketch_methods()


def get_method(name: str) -> BenchMethod:
    """A method by its name.

    Raises
    ------
    UsageError
        No method of that name.
    """
    found = methods()
    if name not in found:
        from mipfs.lab.studies.peers import is_peer, peer

        if is_peer(name):
            return peer(name)
        hint = suggest_name(name, found, f"it is one of {', '.join(found)}")
        raise UsageError(f"method {name!r} is not known; {hint}")
    return found[name]


@dataclass(frozen=True)
class _Baseline:
    """A baseline or a reference of the registry."""

    name: str

    def __call__(self, data: Instance, M: int, C: float, setting: MethodSetting) -> MethodFit:
        return MethodFit(baselines.get_baseline(self.name)(data, M, C, bias=setting.bias, seed=setting.seed))


@dataclass(frozen=True)
class _Sketch:
    """A sketch of M columns, and the SVM on them as they stand."""

    name: str

    def __call__(self, data: Instance, M: int, C: float, setting: MethodSetting) -> MethodFit:
        from mipfs.lab.sketch.select import select

        check_size(M, data.n_features)
        check_weight(C)
        found = select(data, self.name, M, seed=setting.seed, check=False)
        return MethodFit(plain_svm(data, np.unique(np.asarray(found.ids, dtype=np.int64)), C, setting.bias))


def _fit_ideal(data: Instance, M: int, C: float, setting: MethodSetting) -> MethodFit:
    """The SVM on the features that matter: SVM(IDEAL) of Tan 2010, section 3.3."""
    return MethodFit(plain_svm(data, np.sort(data.columns_of(list(setting.ideal))), C, setting.bias))


@dataclass(frozen=True)
class _Supervised:
    """A method on the support vectors alone, which the hinge SVM on its columns is recalibrated on (Paul 2016, 5)."""

    name: str

    def __call__(self, data: Instance, M: int, C: float, setting: MethodSetting) -> MethodFit:
        from mipfs.lab.sketch.margin import rows_of, solve_svm
        from mipfs.lab.sketch.select import select

        check_size(M, data.n_features)
        check_weight(C)
        part = rows_of(data, solve_svm(data, C, setting.bias).support)
        if self.name in SKETCHES:
            ids = np.unique(np.asarray(select(part, self.name, M, seed=setting.seed, check=False).ids, dtype=np.int64))
        else:
            ids = baselines.get_baseline(self.name)(part, M, C, bias=setting.bias, seed=setting.seed).ids
        return MethodFit(plain_svm(part, ids, C, setting.bias, "hinge"))


def _sketch_methods() -> dict[str, BenchMethod]:
    """The sketches, and what chooses by support vectors."""
    found = {name: BenchMethod(name, what, "Paul 2016", _Sketch(name), uses_c=False) for name, what in SKETCHES.items()}
    what = "on the support vectors alone, and the SVM fitted on them"
    sv = {f"{name}-sv": BenchMethod(f"{name}-sv", f"{name} {what}", "Paul 2016, section 5", _Supervised(name))
          for name in BY_SUPPORT_VECTORS}  # fmt: skip
    return found | sv


def _selected_names(result: Result) -> tuple[str, ...]:
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
    from mipfs.result.advice import ends_all

    if ends_all(result):
        raise KeyboardInterrupt
    if not result.has_classifier:
        if result.stop_reason is StopReason.TIME_LIMIT:
            raise TimeUp
        raise NumericalError(f"{result.driver} found no classifier: {result.status.name}, {result.stop_reason.name}")
    return result.selected


def _selected_columns(problem: Problem, result: Result) -> Integers:
    """The columns of what a driver chose, ascending."""
    atoms = problem.atoms_of([*_selected_names(result)])
    return np.unique(problem.atoms.columns(np.asarray(atoms, dtype=np.int64)).ids)


def _fit_of(result: Result, found: Linear) -> MethodFit:
    stopped = "" if result.stop_reason is StopReason.GAP_CLOSED else result.stop_reason.name
    gap = result.gap if np.isfinite(result.gap) else None
    return MethodFit(found, result.status.name, gap, stopped)
