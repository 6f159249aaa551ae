"""One unit of a benchmark: choose C on the inner folds of a training part, fit and test; what fails is a record too."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from mipfs.data.instance import Instance
from mipfs.errors import DataError, MipfsError, UsageError
from mipfs.lab.baselines.linear import Linear
from mipfs.lab.baselines.rfe import plain_svm
from mipfs.lab.studies.bench_method import BenchMethod, MethodFit
from mipfs.lab.studies.bench_methods import get_method
from mipfs.lab.studies.bench_setting import FitUnit, Setting
from mipfs.lab.studies.folds import Fold, fold, inner_folds
from mipfs.plumbing.alarm import TimeUp, raise_after
from mipfs.plumbing.clock import cpu_clock
from mipfs.plumbing.memory import measure_peak

Record = dict[str, Any]
DONE, REFUSED, TOO_LARGE, TIME_LIMIT, FAILED, DIED = "done", "refused", "too large", "time limit", "failed", "died"
"""What became of a unit: a classifier, or why there is none."""
WARM_N, WARM_P, WARM_M = 24, 6, 2
"""The tiny problem on which a method compiles and imports what it needs, before a clock runs."""
WARM_SECONDS = 120.0
"""Compiling all kernels of a method may take half a minute."""
SEEDS = 2**31
"""Seeds of methods are below: the libraries take no larger ones."""
COUNTED_DIGITS = 12
"""Decimals of a mean of the measure that count: below them the same shares differ by the order of their sum."""


def run(data: Instance, setting: Setting, unit: FitUnit) -> Record:
    """Do one unit.

    Parameters
    ----------
    data : Instance, of `mipfs.lab.studies.bench_setting.comparable_data`
    setting : Setting
    unit : FitUnit

    Returns
    -------
    dict of plain values
        ``method``, ``M``, ``fold``, ``status``, ``message``; where it is done ``value``, ``n_features``, ``selected``
        (positions; None for a reference), ``C``, ``seconds``, ``cpu_seconds`` and ``memory_bytes`` of the fit at the
        chosen C, ``choice_seconds`` of the choice, and of drivers ``proof``, ``gap``, ``stopped``.
    """
    record: Record = {"method": unit.method, "M": unit.M, "fold": unit.fold, "status": DONE, "message": ""}
    began = time.perf_counter()
    try:
        with threadpool_limits(1), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            method = get_method(unit.method)
            part = setting.part(data, unit.fold)
            M = data.n_features if unit.M is None else unit.M
            _warm_up(unit.method, data.is_sparse, setting)
            splitter = None if data.split is None else data.split.splitter
            record |= _measure_unit(method, part, M, replace(setting, seed=seed_of(setting, unit.fold)), splitter)
        if said:
            record["message"] = _on_one_line(said[0].message)
    except (UsageError, DataError) as error:
        record |= {"status": REFUSED, "message": _on_one_line(error)}
    except MemoryError as error:
        record |= {"status": TOO_LARGE, "message": _on_one_line(error) or "not enough memory"}
    except TimeUp:
        limit = f"no classifier within {setting.time_limit:g} s"
        record |= {"status": TIME_LIMIT, "message": limit, "seconds": time.perf_counter() - began}
    except Exception as error:  # a method that falls over is a row of the table, not the end of it
        kind = "" if isinstance(error, MipfsError) else f"{type(error).__name__}: "
        record |= {"status": FAILED, "message": kind + _on_one_line(error)}
    return record


def seed_of(setting: Setting, number: int) -> int:
    """The seed of the methods on a fold: one for all folds would make the draws of any of them look stable."""
    return int(np.random.SeedSequence((setting.seed, number)).generate_state(1)[0] % SEEDS)


def lost_record(unit: FitUnit, why: str) -> Record:
    """The record of a unit whose process ended without one."""
    return {"method": unit.method, "M": unit.M, "fold": unit.fold, "status": DIED, "message": why}


def _measure_unit(method: BenchMethod, part: Fold, M: int, setting: Setting, splitter: Any) -> Record:
    """Choose C, fit, test."""
    began = time.perf_counter()
    C = setting.C[0] if len(setting.C) == 1 else _choose_price(method, part.train, M, setting, splitter)
    chosen = began if len(setting.C) == 1 else time.perf_counter()
    with measure_peak() as memory:
        cpu = cpu_clock()
        with _limit_time(method, setting):
            fitted = method.fit(_weigh_classes(method, part.train, setting), M, C, setting)
        seconds = time.perf_counter() - chosen
        cpu_seconds = cpu_clock() - cpu
    return {
        "value": setting.value(part, scores(fitted.linear, part.X)),
        "n_features": int(fitted.linear.ids.size),
        "selected": [int(j) for j in fitted.linear.ids] if method.selects else None,
        "C": C,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "choice_seconds": chosen - began,
        "memory_bytes": memory.bytes,
        "proof": fitted.status,
        "gap": fitted.gap,
        "stopped": fitted.stopped,
    }


def _choose_price(method: BenchMethod, train: Instance, M: int, setting: Setting, splitter: Any) -> float:
    """The C of best mean value over the inner folds, of equal ones the smallest; one that takes too long is out."""
    grid = sorted(setting.C)
    train, count = inner_folds(train, splitter, setting.inner)
    values = np.zeros((count, len(grid)))
    for number in range(count):
        part = fold(train, count, setting.seed, number)
        fit = _make_fitter(method, _weigh_classes(method, part.train, setting), M, setting)
        for k, C in enumerate(grid):
            try:
                with _limit_time(method, setting):
                    fitted = fit(C)
                values[number, k] = setting.sign * setting.value(part, scores(fitted, part.X))
            except TimeUp:
                values[number, k] = -math.inf
    means = np.round(values.mean(axis=0), COUNTED_DIGITS)
    if not np.any(np.isfinite(means)):
        raise TimeUp
    return float(grid[int(np.argmax(means))])


def _make_fitter(method: BenchMethod, train: Instance, M: int, setting: Setting) -> Callable[[float], Linear]:
    """What fits at a C; a choice that does not depend on it is made once."""
    if method.uses_c:
        return lambda C: method.fit(train, M, C, setting).linear

    @cache
    def ids() -> Any:
        return method.fit(train, M, setting.C[0], setting).linear.ids

    return lambda C: plain_svm(train, ids(), C, setting.bias)


def _weigh_classes(method: BenchMethod, train: Instance, setting: Setting) -> Instance:
    """A training part under the class weights, which a method that fits for a measure leaves out, and says so."""
    if not setting.class_weight or not method.is_joint:
        return setting.weighted(train)
    warnings.warn("it fits for a measure of all samples at once: without the class weights", UserWarning, stacklevel=2)
    return train


@contextmanager
def _limit_time(method: BenchMethod, setting: Setting) -> Iterator[None]:
    """The time limit, for methods that do not keep it by themselves."""
    with raise_after(None if method.has_limit else setting.time_limit):
        yield


def scores(found: Linear, X: Any) -> Any:
    """f of rows on the scale that the training part takes for the user's."""
    columns = X[:, found.ids] if found.ids.size < X.shape[1] else X
    return np.asarray(columns @ found.w + found.b)


@cache
def _warm_up(name: str, is_sparse: bool, setting: Setting) -> MethodFit | None:
    """Let a method meet its kernels and libraries on a tiny problem; what it refuses there it says later."""
    r = np.random.default_rng(0)
    X = r.normal(size=(WARM_N, WARM_P))
    y = np.where(X[:, 0] + r.normal(size=WARM_N) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    data = Instance.from_arrays(sparse.csc_array(np.where(X > 0, X, 0.0)) if is_sparse else X, y)
    method = get_method(name)
    try:
        with raise_after(WARM_SECONDS):
            return method.fit(data, WARM_M if method.selects else WARM_P, 1.0, setting)
    except Exception:  # the unit meets it again, and says it
        return None


def _on_one_line(said: Any) -> str:
    return " ".join(str(said).split())
