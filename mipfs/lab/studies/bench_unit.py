"""One unit of a benchmark: choose C on the inner folds of a training part, fit and test; what fails is a record too.

Also here: what a benchmark is asked to do: its data, methods, sizes and folds, and the units of work that these are.
"""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from mipfs.data.classes import BALANCED, ClassWeight, by_sample, checked_weights, of_classes
from mipfs.data.instance import Instance, SelectDefaults
from mipfs.errors import DataError, MipfsError, UsageError
from mipfs.lab.baselines.linear import Linear, check_size, check_weight, plain_svm
from mipfs.lab.studies.bench_method import BenchMethod, MethodFit
from mipfs.lab.studies.bench_methods import get_method
from mipfs.lab.studies.folds import Fold, fold, inner_folds
from mipfs.measures.judged import ACCURACY, SMALLER_IS_BETTER, check_judge, judged
from mipfs.plumbing.alarm import TimeUp, raise_after
from mipfs.plumbing.clock import cpu_clock
from mipfs.plumbing.declared import Count, Declared, Natural, NumberRange, Positive, Seed
from mipfs.plumbing.digest import digest
from mipfs.plumbing.memory import measure_peak
from mipfs.problem import Problem

C_DEFAULT = (0.01, 0.1, 1.0, 10.0)
FREE = ("methods", "M", "source")
"""Fields that two settings may differ in and still share their records."""


@dataclass(frozen=True)
class FitUnit:
    """One fit to be made: a method at M on one fold; M is None for a reference on all features."""

    method: str
    M: int | None
    fold: int


@dataclass(frozen=True)
class Setting(Declared):
    """What a benchmark does.

    Attributes
    ----------
    methods : tuple of names of `mipfs.lab.studies.bench_methods.methods`
    M : tuple of int, numbers of features
    C : tuple of float > 0, of which the inner folds choose
    repeats : int >= 1, how often the outer folds are drawn anew; fold f of repetition r has the number r·folds + f
    ideal : tuple of str, the features of "svm-ideal"
    folds, inner : int >= 2, outer folds, and folds of each training part by which C is chosen
    measure : one of `mipfs.measures.judged.JUDGES`
    beta, k : of the measure
    bias : bool
    seed : int
    time_limit : float or None, seconds for every fit
    source, data_sha256, scaling : of the data
    class_weight : "balanced", tuple of (label, weight), or None; those of every training part, with which it is fitted
    split : str, what no outer fold takes apart, or what gave the folds, with a digest of it; "" of stratified folds
    words : "features" or "groups", what M counts of a column of words: its words, or the column
    """

    methods: tuple[str, ...]
    M: tuple[Natural, ...]
    C: tuple[Positive, ...] = C_DEFAULT
    folds: int = 10
    inner: int = 3
    measure: str = ACCURACY
    beta: float | None = None
    k: Natural | None = None
    bias: bool = True
    seed: Seed = 0
    time_limit: Annotated[float, NumberRange(above=0, of="seconds")] | None = 60.0
    source: str = ""
    data_sha256: str = ""
    scaling: str = "none"
    repeats: Count = 1
    ideal: tuple[str, ...] = ()
    class_weight: tuple[tuple[str, float], ...] | str | None = None
    split: str = ""
    words: str = "features"

    @classmethod
    def of(cls, data: Instance, methods: Sequence[str], M: Sequence[int], **given: Any) -> Setting:
        """A setting for data, checked.

        Raises
        ------
        UsageError
            An unknown method or measure, no values, one twice, or one out of its range.
        """
        about = {"source": data.source, "data_sha256": data.sha256, "scaling": data.scaling, "split": _split_of(data)}
        about["words"] = data.select.words
        fields: dict[str, Any] = {**given, "C": tuple(given.get("C", C_DEFAULT)), **about}
        fields["ideal"] = tuple(given.get("ideal", ()))
        fields["class_weight"] = _settle_weights(given.get("class_weight"), data)
        made = cls(tuple(methods), tuple(M), **fields)
        data.columns_of(list(made.ideal))
        if "svm-ideal" in made.methods and not made.ideal:
            raise UsageError(
                "svm-ideal is the SVM on the features that matter, which you know; name them by ideal (--ideal)"
            )
        for what, values in (("methods", made.methods), ("M", made.M), ("C", made.C)):
            if not values or len(set(values)) < len(values):
                raise UsageError(f"{what} = {list(values)!r}: give at least one, and each once")
        made._check_methods()
        for M_ in made.M:
            check_size(M_, data.n_features if made.words == "features" else Problem(data).atoms.count)
        for C in made.C:
            check_weight(C)
        fold(data, made.folds, made.seed, 0)
        made._check_repeats(data)
        made._check_inner(data)
        made._check_measure(data)
        return made

    def _check_methods(self) -> None:
        single = [name for name in self.methods if not get_method(name).is_whole]
        if single and self.words == "groups":
            raise UsageError(
                f"{single[0]} selects features one by one, and [select] words = 'groups' counts a column of words as "
                "one; leave the method or the line out"
            )

    def _check_repeats(self, data: Instance) -> None:
        if data.split is not None and self.repeats > 1 and (data.split.pairs or data.split.count == self.folds):
            raise UsageError(
                f"repeats = {self.repeats}: the folds by {data.split.by} are the same each time; give a splitter that "
                "repeats, or fewer folds than there are values"
            )

    def _check_inner(self, data: Instance) -> None:
        smaller = int(min((data.y > 0).sum(), (data.y < 0).sum()))
        least = smaller - math.ceil(smaller / self.folds)
        number = isinstance(self.inner, (int, np.integer)) and not isinstance(self.inner, bool)
        if len(self.C) > 1 and not (number and 2 <= self.inner <= least):
            raise UsageError(
                f"inner folds = {self.inner!r} must be an integer from 2 to {least}, the size of the smaller class in "
                "a training part; with one C there are none"
            )

    def _check_measure(self, data: Instance) -> None:
        share = data.n_samples // self.folds
        least = share if len(self.C) == 1 else min(share, (data.n_samples - share - 1) // self.inner)
        try:  # on as many samples as the smallest part has
            check_judge(self.measure, beta=self.beta, k=self.k, n=max(2, least))
        except DataError as error:
            raise UsageError(str(error)) from None

    def units(self) -> list[FitUnit]:
        """The work, fold by fold, so that what an interrupt leaves compares every method."""
        sizes = {name: self.M if get_method(name).selects else (None,) for name in self.methods}
        parts = range(self.folds * self.repeats)
        return [FitUnit(name, M, number) for number in parts for name in self.methods for M in sizes[name]]

    def part(self, data: Instance, number: int) -> Fold:
        """The outer fold of a number: those of a repetition beyond the first have a seed of their own."""
        again, place = divmod(number, self.folds)
        if again == 0:
            return fold(data, self.folds, self.seed, place)
        drawn = np.random.SeedSequence((self.seed, self.folds, again)).generate_state(1)[0]
        return fold(data, self.folds, int(drawn), place)

    def value(self, fold_: Fold, scores: Any) -> float:
        """The measure of the scores of a fold's test rows."""
        return judged(self.measure, fold_.y, scores, beta=self.beta, k=self.k)

    def weighted(self, train: Instance) -> Instance:
        """A training part with the class weights as weights of its samples; "balanced" is so on this part."""
        given = self.class_weight
        weights = of_classes(dict(given) if isinstance(given, tuple) else given, train)
        if weights is None:
            return train
        return dataclasses.replace(train, sample_weight=by_sample(weights, train.y) * train.sample_weight)

    @property
    def sign(self) -> float:
        """1 where larger values of the measure are better, otherwise −1."""
        return -1.0 if self.measure in SMALLER_IS_BETTER else 1.0

    def check_shared(self, other: Setting, where: str) -> None:
        """Refuse records that were made for another setting.

        Raises
        ------
        UsageError
            Names the first field that differs, and both values.
        """
        for field in dataclasses.fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if field.name in FREE or mine == theirs:
                continue
            if field.name == "data_sha256":
                raise UsageError(f"{where} is of other data than {self.source or 'these'}; give another file")
            raise UsageError(
                f"{where} was made with {field.name} = {_show_setting(theirs)}, and {_show_setting(mine)} is asked "
                f"for; "
                "give the same, or another file"
            )

    def document(self) -> dict[str, Any]:
        """The fields as JSON."""
        return {field.name: _as_plain_value(getattr(self, field.name)) for field in dataclasses.fields(self)}


def comparable_data(data: Instance) -> Instance:
    """The data as every method gets it: no rows, forced features, penalties or bounds, which baselines cannot keep."""
    select = SelectDefaults(words=data.select.words)
    return dataclasses.replace(data, rows=(), select=select, penalty={}, weight_bounds={}, weight_rows=())


COLUMN = "column "
"""What stands before the name of a column that says what belongs together."""


def _split_of(data: Instance) -> str:
    """What says how the folds are made, with a digest of it."""
    if data.split is None:
        return ""
    of = [] if data.split.of is None else [data.split.of]
    kind = "" if data.split.pairs else COLUMN
    return f"{kind}{data.split.by} ({digest([*of, *(one for pair in data.split.pairs for one in pair)])[:16]})"


def _settle_weights(given: Any, data: Instance) -> tuple[tuple[str, float], ...] | str | None:
    """Class weights as a setting has them: the data's own where none are given; an empty tuple leaves these out."""
    own: ClassWeight | None = data.class_weight
    asked = own if given is None else given
    if isinstance(asked, (list, tuple)) and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in asked):
        asked = dict(asked)  # as a saved benchmark has them
    found = checked_weights(asked)
    of_classes(found, data)
    if found is None:
        return None if own is None else ()
    return BALANCED if isinstance(found, str) else tuple(sorted((str(label), float(w)) for label, w in found.items()))


def _as_plain_value(found: Any) -> Any:
    if isinstance(found, tuple):
        return [_as_plain_value(one) for one in found]
    return found.item() if isinstance(found, np.generic) else found


def _show_setting(found: Any) -> str:
    return ", ".join(map(str, found)) if isinstance(found, tuple) else str(found)


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
    data : Instance, of `mipfs.lab.studies.bench_unit.comparable_data`
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
