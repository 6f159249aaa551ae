"""`mipfs.bench`: its numbers against a plain nested cross-validation, its records, and what fails in it."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import linalg
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mipfs
from mipfs.data.instance import Instance
from mipfs.errors import DataError, NumericalError, UsageError
from mipfs.lab import baselines
from mipfs.lab.baselines.l1_bundle import L1Bundle
from mipfs.lab.baselines.linear import Linear, plain_svm
from mipfs.lab.baselines.structural_svm import of_columns
from mipfs.lab.studies import bench, bench_methods, bench_unit
from mipfs.lab.studies.bench import check_no_benchmark, records_of
from mipfs.lab.studies.bench_reading import load
from mipfs.lab.studies.bench_unit import seed_of
from mipfs.lab.studies.folds import fold
from mipfs.lab.studies.stability import stability
from mipfs.measures import value as measured
from mipfs.plumbing.alarm import TimeUp, raise_after
from mipfs.plumbing.memory import measure_peak
from mipfs.result.result import StopReason

TIMES = ("seconds", "cpu_seconds", "choice_seconds", "memory_bytes")
C = (0.05, 2.0)


def raw(seed: int = 0, n: int = 60, p: int = 8) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, p)) * r.uniform(0.5, 3.0, p) + 1.0
    return X, np.where(X[:, 0] - X[:, 3] + 1.5 * r.normal(size=n) > 0.0, 1.0, -1.0)


def data(seed: int = 0, **given: Any) -> Instance:
    return Instance.from_arrays(*raw(seed), **{"scale": "standard", **given})


@pytest.mark.parametrize("name", ["SelectKBest", "RFE", "SelectFromModel", "SequentialFeatureSelector"])
def test_selectors_of_scikit_learn_by_name(name: str) -> None:
    from sklearn import feature_selection
    from sklearn.svm import LinearSVC

    given = data(1)
    found = mipfs.bench(given, [f"sklearn:{name}"], [2], C=[1.0], folds=2, jobs=1)
    assert [record["status"] for record in found.records] == ["done", "done"]
    for number, record in enumerate(found.records):
        part = found.setting.part(given, number).train
        svm = LinearSVC(C=0.5, dual=False)
        own = {
            "SelectKBest": lambda: feature_selection.SelectKBest(k=2),
            "RFE": lambda svm=svm: feature_selection.RFE(svm, n_features_to_select=2),
            "SelectFromModel": lambda svm=svm: feature_selection.SelectFromModel(
                svm, threshold=-np.inf, max_features=2
            ),
            "SequentialFeatureSelector": lambda svm=svm: feature_selection.SequentialFeatureSelector(
                svm, n_features_to_select=2
            ),
        }[name]()
        ids = np.flatnonzero(own.fit(part.block().values, part.y).get_support())
        assert record["selected"] == ids.tolist()


def test_what_is_no_peer_is_refused() -> None:
    for name, said in (
        ("sklearn:VarianceThreshold", "takes no number of features"),
        ("sklearn:os", "is no selector"),
        ("sklearn:SelectKBst", "SelectKBest"),
    ):
        with pytest.raises(UsageError, match=said):
            mipfs.bench(data(1), [name], [2], C=[1.0], folds=2)
    weighed = data(1, sample_weight=np.linspace(1.0, 2.0, 60))
    found = mipfs.bench(weighed, ["sklearn:SelectKBest"], [2], C=[1.0], folds=2, jobs=1)
    assert {record["status"] for record in found.records} == {"refused"}


def without_times(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: without_times(one) for name, one in found.items() if name not in TIMES}
    return [without_times(one) for one in found] if isinstance(found, list) else found


@pytest.mark.sampled(11)
@pytest.mark.parametrize("measure", ["accuracy", "f1", "error"])
@pytest.mark.parametrize("method", ["rfe", "l1-svm"])
def test_the_numbers_are_those_of_a_plain_nested_cross_validation(method: str, measure: str) -> None:
    X, y = raw()
    found = mipfs.bench(data(), [method], [3], C=C, folds=4, inner=3, measure=measure, seed=5)

    def value(truth: np.ndarray, scores: np.ndarray) -> float:
        if measure == "f1":
            return float(f1_score(truth > 0, scores > 0))
        return float(
            np.mean((scores > 0) == (truth > 0)) if measure == "accuracy" else np.mean((scores > 0) != (truth > 0))
        )

    def fitted(train: np.ndarray, test: np.ndarray, C: float, seed: int) -> tuple[float, Linear]:
        scaler = StandardScaler().fit(X[train])
        part = Instance.from_arrays(scaler.transform(X[train]), y[train])
        one = baselines.get_baseline(method)(part, 3, C, seed=seed)
        return value(y[test], one.scores(Instance.from_arrays(scaler.transform(X[test]), y[test], training=False))), one

    sets, values = [], []
    for number, (train, test) in enumerate(StratifiedKFold(4, shuffle=True, random_state=5).split(X, y)):
        seed = seed_of(found.setting, number)
        inner = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(X[train], y[train]))
        means = [np.mean([fitted(train[a], train[b], c, seed)[0] for a, b in inner]) for c in C]
        best = int(np.argmin(means) if measure == "error" else np.argmax(means))
        one, chosen = fitted(train, test, C[best], seed)
        values.append(one)
        sets.append(chosen.ids)
        record = found.records[number]
        assert (record["fold"], record["C"], record["selected"]) == (number, C[best], chosen.ids.tolist())
    (row,) = found.rows
    assert row.values == pytest.approx(values, abs=1e-12)
    assert row.value == pytest.approx(np.mean(values))
    assert row.deviation == pytest.approx(np.std(values, ddof=1))
    assert row.standard_error == pytest.approx(np.std(values, ddof=1) / np.sqrt(len(values)))
    assert row.stability == stability(sets, 8)
    assert dict(row.shares) == {j: np.mean([j in ids for ids in sets]) for j in set(np.concatenate(sets).tolist())}


def test_inner_folds_are_the_splitters_too() -> None:
    """In the order of time no C is chosen by what comes before."""
    from sklearn.model_selection import TimeSeriesSplit

    X, y = raw(3)
    found = mipfs.bench(data(3), ["rfe"], [2], C=C, folds=TimeSeriesSplit(3), inner=2, jobs=1)

    def value(train: np.ndarray, test: np.ndarray, C: float, seed: int) -> float:
        scaler = StandardScaler().fit(X[train])
        one = baselines.get_baseline("rfe")(Instance.from_arrays(scaler.transform(X[train]), y[train]), 2, C, seed=seed)
        scores = one.scores(Instance.from_arrays(scaler.transform(X[test]), y[test], training=False))
        return float(np.mean((scores > 0) == (y[test] > 0)))

    chosen = []
    for number, (train, test) in enumerate(TimeSeriesSplit(3).split(X)):
        seed = seed_of(found.setting, number)
        inner = list(TimeSeriesSplit(2).split(train))
        means = [np.mean([value(train[a], train[b], c, seed) for a, b in inner]) for c in C]
        chosen.append(C[int(np.argmax(means))])
        assert found.records[number]["C"] == chosen[-1]
        assert found.records[number]["value"] == pytest.approx(value(train, test, chosen[-1], seed))
    assert len({*chosen}) == 2, "another rule would choose the same"


@pytest.mark.every
@pytest.mark.slow
def test_every_method_is_there_and_leaves_a_classifier() -> None:
    names = list(bench_methods.methods())
    ours = {*bench_methods.SKETCHES, *bench_methods.WHOLE}
    assert {*baselines.available(), *baselines.references(), *ours} <= set(names)
    assert {"fgm", "fsp-m", "gbd", "structural"} <= set(names)
    found = mipfs.bench(data(), names, [2], C=[0.3], folds=3, ideal=["x1", "x4"])
    for row in found.rows:
        if row.method in ("bss", "bss-sv"):  # which need more columns than the rank
            assert next(iter(row.notes)).startswith("refused: r = 2 must be above")
            continue
        assert row.done == 3, (row.method, row.notes)
        everything = 2 if row.method == "svm-ideal" else 8
        assert row.n_features == (everything if row.M is None else pytest.approx(row.n_features, abs=0))
        assert row.sparsity == pytest.approx(1.0 - row.n_features / 8)
        assert row.M is None or row.n_features <= 2 or row.method in bench_methods.WHOLE
        assert row.M is not None or (row.stability is None and not row.shares)
    by_name = {row.method: row for row in found.rows}
    assert by_name["fsp-m"].proofs == by_name["gbd"].proofs == {"OPTIMAL": 3}
    assert by_name["fgm"].proofs == {"RELAXED": 3}
    assert by_name["fsp-m"].values == by_name["gbd"].values
    assert found.complete
    assert "<Bench of" in repr(found)
    assert found.summary().count("\n") > len(names)
    assert "<table>" in found._repr_html_()


@pytest.mark.slow
def test_the_same_wherever_it_runs_and_with_the_records_of_before(tmp_path: Path) -> None:
    methods, sizes = ["uniform", "rfe", "cd-svm"], [2, 3]
    whole = mipfs.bench(data(), methods, sizes, C=C, folds=3)
    assert len(whole.records) == 15
    target, seen = tmp_path / "bench.json", []

    def stop(so_far: mipfs.Bench) -> None:
        so_far.save(target)
        seen.append(len(so_far.records))
        if len(seen) == 4:
            raise KeyboardInterrupt

    some = mipfs.bench(data(), methods, sizes, C=C, folds=3, on_record=stop)
    assert some.interrupted
    assert not some.complete
    with pytest.raises(UsageError, match="holds an unfinished benchmark of 4 fits; go on with --resume"):
        check_no_benchmark(target)
    asked = {"methods": methods, "M": sizes, "C": C, "folds": 3}
    rest = mipfs.bench(data(), methods, sizes, C=C, folds=3, records=records_of(target, data(), asked))
    assert without_times(rest.document()) == without_times(whole.document())
    rest.save(target)
    with pytest.raises(UsageError, match=r"holds a finished benchmark of .* fits; name another file, or remove it"):
        check_no_benchmark(target)
    assert without_times(list(load(target)[1])) == without_times(list(whole.records))
    wider = mipfs.bench(data(), ["rfe"], [2, 4], C=C, folds=3, records=records_of(target, data(), asked))
    assert wider.rows[0].values == next(r.values for r in whole.rows if (r.method, r.M) == ("rfe", 2))
    strict = json.loads(target.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert strict["rows"][0]["stability"]["level"] == 0.95


@pytest.mark.every
@pytest.mark.slow
def test_the_same_in_processes_and_one_that_dies_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    methods, sizes = ["uniform", "rfe", "cd-svm"], [2, 3]
    whole = mipfs.bench(data(), methods, sizes, C=C, folds=3)
    spread = mipfs.bench(data(), methods, sizes, C=C, folds=3, jobs=2)
    assert without_times(spread.document()) == without_times(whole.document())
    monkeypatch.setattr(bench, "_run_unit", dying)
    some = mipfs.bench(data(), ["rfe", "uniform"], [2], C=C, folds=2, jobs=2)
    assert some.complete
    dead, alive = some.rows
    assert list(dead.notes.values()) == [2]
    assert next(iter(dead.notes)).startswith("died: its process was ended by the system")
    assert alive.done == 2


def dying(given: Any, unit: Any) -> Any:
    """A unit whose process the system ends."""
    if unit.method == "rfe":
        os.kill(os.getpid(), signal.SIGKILL)
    return bench_unit.run(*given, unit)


def test_the_baselines_of_a_measure_are_fitted_for_that_of_the_benchmark() -> None:
    found = mipfs.bench(data(), ["l1-bmrm", "svm-perf"], [2], C=[0.5], folds=2, measure="prbep", seed=3)
    for record in found.records:
        part = fold(data(), 2, 3, record["fold"])
        M = None if record["method"] == "svm-perf" else 2
        ids = np.arange(8) if M is None else L1Bundle(part.train, "prbep").of_size(M).ids
        fitted = of_columns(part.train, ids, 0.5, "prbep")
        assert record["n_features"] == ids.size
        assert record["value"] == pytest.approx(measured("prbep", part.y, part.X[:, ids] @ fitted.w + fitted.b))


@pytest.mark.parametrize("name", ["rfe-sv", "rrqr-sv"])
def test_supervised_methods_see_the_support_vectors_alone(name: str) -> None:
    """Paul 2016, section 5: scikit-learn's SVM on all features, its support vectors, the method, the SVM on these."""
    raw_ones = data(scale="none")
    found = mipfs.bench(raw_ones, [name], [3], C=[0.5], folds=2, seed=1)
    for record in found.records:
        part = fold(raw_ones, 2, 1, record["fold"])
        X, y = part.train.X, part.train.y
        svs = SVC(kernel="linear", C=0.5, tol=1e-8).fit(X, y).support_
        small = Instance.from_arrays(X[svs], y[svs])
        if name == "rfe-sv":
            ids = baselines.get_baseline("rfe")(small, 3, 0.5, seed=seed_of(found.setting, record["fold"])).ids
        else:
            ids = np.sort(linalg.qr(X[svs], mode="r", pivoting=True)[1][:3])
        assert record["selected"] == ids.tolist()
        again = SVC(kernel="linear", C=0.5, tol=1e-8).fit(X[svs][:, ids], y[svs])
        assert record["value"] == pytest.approx(again.score(part.X[:, ids], part.y))


def test_all_features_of_the_relaxation_and_their_refit() -> None:
    """fgm-all is the estimator's keep="all" with T = 15, and fgm-unbias its debias=20."""
    raw_ones = data(scale="none")
    found = mipfs.bench(raw_ones, ["fgm-all", "fgm-unbias"], [2], C=[0.5], folds=2)
    for record in found.records:
        part = fold(raw_ones, 2, 0, record["fold"])
        debias = 20.0 if record["method"] == "fgm-unbias" else None
        model = mipfs.FGMClassifier(M=2, C=0.5, T=15, keep="all", debias=debias, gap=1e-3, time_limit=None)
        model.fit(part.train.X, part.train.y)
        assert record["selected"] == np.flatnonzero(model.support_).tolist()
        assert record["n_features"] > 2
        assert record["value"] == pytest.approx(model.score(part.X, part.y))


def test_repeated_folds_and_the_features_that_matter() -> None:
    """Fold f of repetition r is that of a plain split by its own seed; ± is that of one repetition; draws are anew."""
    found = mipfs.bench(data(), ["svm-ideal", "uniform"], [3], C=[0.5], folds=3, repeats=2, ideal=["x4", "x1"], seed=5)
    assert len(found.records) == 12
    X, y = raw()
    seeds = [5, int(np.random.SeedSequence((5, 3, 1)).generate_state(1)[0])]
    values = []
    for seed in seeds:
        for train, test in StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y):
            scaler = StandardScaler().fit(X[train])
            part = Instance.from_arrays(scaler.transform(X[train]), y[train])
            one = plain_svm(part, np.array([0, 3]), 0.5, True)
            values.append(np.mean((scaler.transform(X[test])[:, [0, 3]] @ one.w + one.b > 0) == (y[test] > 0)))
    ideal, uniform = found.rows
    assert ideal.values == pytest.approx(values)
    assert (ideal.folds, ideal.done, ideal.M, ideal.n_features, ideal.sparsity) == (6, 6, None, 2.0, 0.75)
    assert ideal.standard_error == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))
    assert len({tuple(one["selected"]) for one in found.records if one["method"] == "uniform"}) > 2
    once = mipfs.bench(data(), ["uniform"], [3], C=[0.5], folds=3, seed=5)
    assert once.rows[0].values == uniform.values[:3]
    assert "3 folds, 2 times" in found.summary()
    for given, said in (
        ({"repeats": 0}, "repeats = 0 must be a whole number >= 1"),
        ({"ideal": ["x9"]}, "no feature is called 'x9'"),
        ({"methods": ["svm-ideal"]}, "name them by ideal"),
    ):
        with pytest.raises(UsageError, match=said):
            mipfs.bench(data(), **{"methods": ["rfe"], "M": [2], "folds": 3, **given})


def test_draws_differ_between_folds() -> None:
    found = mipfs.bench(data(), ["uniform"], [3], C=[1.0], folds=5)
    assert len({tuple(record["selected"]) for record in found.records}) > 1
    again = mipfs.bench(data(), ["uniform"], [3], C=[1.0], folds=5)
    assert without_times(again.document()) == without_times(found.document())


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (UsageError("cannot take this; do that"), "refused", "cannot take this; do that"),
        (MemoryError("Unable to allocate 3 TiB"), "too large", "Unable to allocate 3 TiB"),
        (ZeroDivisionError("division by zero"), "failed", "ZeroDivisionError: division by zero"),
        (TimeUp(), "time limit", "no classifier within 60 s"),
    ],
)
def test_a_method_that_fails_is_a_row(
    error: Exception, status: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fall(part: Instance, M: int, C: float, setting: Any) -> Any:
        raise error

    broken = bench_methods.BenchMethod("broken", "falls over", "-", fall)
    kept = bench_methods.methods()
    monkeypatch.setattr(bench_methods, "methods", lambda: {**kept, "broken": broken})
    found = mipfs.bench(data(), ["broken", "rfe"], [2], C=[1.0], folds=3, jobs=1)
    bad, good = found.rows
    assert (bad.done, good.done, bad.folds) == (0, 3, 3)
    assert bad.notes == {f"{status}: {said}": 3}
    assert math.isnan(bad.value)
    assert found.rows[0].document(found.names)["value"] is None
    assert said in found.summary()


@pytest.mark.slow
def test_a_limit_that_strikes(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(part: Instance, M: int, C: float, setting: Any) -> Any:
        while (
            C > 0.1 and part.n_samples > 24
        ):  # but for the tiny problem before the clock; one C is fast enough, so that it is chosen
            time.sleep(0.01)
        return bench_methods.MethodFit(baselines.get_baseline("rfe")(part, M, C))

    method = bench_methods.BenchMethod("slow", "waits", "-", slow)
    kept = bench_methods.methods()
    monkeypatch.setattr(bench_methods, "methods", lambda: {**kept, "slow": method})
    large = Instance.from_arrays(*raw(0, 160))
    found = mipfs.bench(large, ["slow"], [2], C=C, folds=2, inner=2, time_limit=0.2, jobs=1)
    assert found.rows[0].C == (0.05, 0.05), found.records
    found = mipfs.bench(data(), ["slow"], [2], C=[1.0], folds=2, time_limit=0.2, jobs=1)
    assert found.rows[0].notes == {"time limit: no classifier within 0.2 s": 2}
    with pytest.raises(TimeUp), raise_after(0.05):
        time.sleep(5.0)
    with raise_after(None):
        pass


@pytest.mark.slow
def test_a_driver_that_a_limit_stops_keeps_its_classifier() -> None:
    r = np.random.default_rng(0)
    X = r.normal(size=(120, 40))
    hard = Instance.from_arrays(X, np.where(X @ r.normal(size=40) + r.normal(size=120) > 0, 1.0, -1.0))
    found = mipfs.bench(hard, ["fsp-m"], [12], C=[10.0], folds=2, time_limit=0.3)
    (row,) = found.rows
    assert (row.done, row.proofs) == (2, {"FEASIBLE": 2})
    assert row.notes == {"stopped by time limit": 2}


def test_a_driver_without_a_classifier_says_why() -> None:
    def left(reason: StopReason) -> Any:
        return SimpleNamespace(stop_reason=reason, has_classifier=False, driver="gbd", status=mipfs.Status.NO_SOLUTION)

    for reason, error in (
        (StopReason.TIME_LIMIT, TimeUp),
        (StopReason.INTERRUPTED, KeyboardInterrupt),
        (StopReason.MEMORY_LIMIT, NumericalError),
    ):
        with pytest.raises(error):
            bench_methods._selected_names(left(reason))


def test_memory_is_what_the_system_gave() -> None:
    with measure_peak() as found:
        block = np.ones(30_000_000)
        del block
    if found.bytes is not None:
        assert 2.2e8 < found.bytes < 4e8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": ["rfee"]}, "method 'rfee' is not known; did you mean 'rfe'"),
        ({"methods": []}, "methods = .*: give at least one, and each once"),
        ({"M": [2, 2]}, "each once"),
        ({"M": [9]}, "M = 9 must be an integer from 1 to 8"),
        ({"C": [0.0]}, r"C = 0\.0 must be a positive number"),
        ({"folds": 1}, "folds = 1 must be an integer from 2"),
        ({"inner": 40}, "inner folds = 40 must be an integer from 2 to"),
        ({"measure": "f2"}, "measure 'f2' is not known"),
        ({"measure": "fbeta"}, "needs beta"),
        ({"beta": 2.0}, "the accuracy has no beta"),
        ({"measure": "recall-at-k", "k": 50}, "k = 50"),
        ({"time_limit": 0.0}, r"time_limit = 0\.0 must be a positive number of seconds"),
        ({"seed": -1}, "seed = -1 must be a whole number >= 0"),
        ({"jobs": 0}, "jobs = 0 must be a whole number >= 1"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"methods": ["rfe"], "M": [2], "folds": 3, **given}
    with pytest.raises(UsageError, match=message):
        mipfs.bench(data(), **arguments)


def test_records_of_another_setting_are_refused(tmp_path: Path) -> None:
    target = tmp_path / "bench.json"
    asked: dict[str, Any] = {"methods": ["uniform"], "M": [2], "C": (1.0,), "folds": 3}
    mipfs.bench(data(), **asked).save(target)
    for changed, message in (
        ({"seed": 1}, "was made with seed = 0, and 1 is asked for"),
        ({"C": (1.0, 2.0)}, r"was made with C = 1\.0, and 1\.0, 2\.0 is asked for"),
        ({"measure": "f1"}, "measure = accuracy, and f1"),
    ):
        with pytest.raises(UsageError, match=message):
            records_of(target, data(), {**asked, **changed})
    with pytest.raises(UsageError, match="is of other data"):
        records_of(target, data(1), asked)
    with pytest.raises(UsageError, match="scaling = standard, and none"):
        records_of(target, data(scale="none"), asked)
    assert records_of(tmp_path / "other.json", data(), asked) == ()
    whole = json.loads(target.read_text())
    others = [json.dumps({**whole, "schema": schema}) for schema in (True, 1.0, 2, None, {})]
    bad = "{", "[]", '{"schema": 1, "kind": "path"}', '{"schema": 1, "kind": "bench", "records": [3]}'
    for text in (*bad, *others):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(DataError, match="is no benchmark"):
            load(tmp_path / "bad.json")


def test_rows_and_penalties_are_left_out_for_every_method() -> None:
    costly = data(penalty={"x1": 100.0}, rows=[mipfs.Row("none", {"x4": 1.0}, 0.0, 0.0)])
    found, plain = (mipfs.bench(one, ["fsp-m"], [2], C=[1.0], folds=2) for one in (costly, data()))
    assert [r["selected"] for r in found.records] == [r["selected"] for r in plain.records]


@pytest.mark.slow
def test_the_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = mipfs.bench(data(), ["rfe", "uniform", "cd-svm"], [2, 3], C=[1.0], folds=3)
    for suffix, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        found.plot(tmp_path / f"plot{suffix}")
        assert (tmp_path / f"plot{suffix}").read_bytes().startswith(magic)
    from mipfs.lab.studies.bench_plot import draw_figure

    left, right = draw_figure(found).axes
    assert [text.get_text() for text in left.figure.legends[0].get_texts()] == [
        "rfe", "uniform", "cd-svm (all features)",
    ]  # fmt: skip
    (line,) = [one for one in right.lines if list(one.get_xdata()) == [2.0, 3.0]][:1]
    assert list(line.get_ydata()) == pytest.approx([row.seconds for row in found.rows[:2]])
    with pytest.raises(UsageError, match=r"a plot is one of \.png, \.svg, \.pdf"):
        found.plot(tmp_path / "plot.jpg")


def test_a_dask_client() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        found = mipfs.bench(data(), ["rfe"], [2], C=[1.0], folds=3, client=client)
    here = mipfs.bench(data(), ["rfe"], [2], C=[1.0], folds=3)
    assert without_times(found.document()) == without_times(here.document())
