"""Folds against a plain re-computation from the raw data."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score, balanced_accuracy_score, f1_score, log_loss, roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler

import mipfs
from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.data.split import Split
from mipfs.drivers import solve
from mipfs.errors import DataError, UsageError
from mipfs.lab.studies import folds
from mipfs.measures.judged import BY, error_by
from mipfs.problem import Problem
from tests.edits import second


def raw(seed: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    X = np.where(r.random((70, 5)) < 0.4, 0.0, 3.0 + 5.0 * r.standard_normal((70, 5)))
    return X, np.where(X @ r.standard_normal(5) + 4 * r.standard_normal(70) > 1, 1.0, -1.0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stored", [np.asarray, sparse.csc_array])
def test_every_fold_is_scaled_by_its_training_part_alone(stored: type) -> None:
    X, y = raw(0)
    data = Instance.from_arrays(stored(X), y, scale="standard", penalty={"x2": 0.1})
    found = folds.stratify(data, 4, seed=3)
    parts = list(StratifiedKFold(4, shuffle=True, random_state=3).split(X, y))
    for fold, (train, test) in zip(found, parts, strict=True):
        scaler = StandardScaler().fit(X[train])
        dense = fold.train.X.toarray() if sparse.issparse(fold.train.X) else fold.train.X
        assert dense - fold.train.center == pytest.approx(scaler.transform(X[train]), abs=1e-10)
        assert fold.train.y.tolist() == y[train].tolist()
        assert dict(fold.train.penalty) == {"x2": 0.1}
        result = solve(Problem(fold.train, M=2, C=0.3), gap=1e-8)
        alone = Instance.from_arrays(scaler.transform(X[train]), y[train])
        again = solve(Problem(alone, M=2, C=0.3), gap=1e-8)
        scores = again.decision_function(scaler.transform(X[test]))
        assert result.selected == again.selected
        assert fold.error(result, Problem(data)) == np.mean((scores > 0) != (y[test] > 0))
    assert sorted(int(i) for _, test in parts for i in test) == list(range(70))


def test_the_seed_decides() -> None:
    data = Instance.from_arrays(*raw(1))
    first, again, other = (folds.stratify(data, 3, seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a.X, b.X) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a.X, b.X) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("k", [1, 0, 40, 2.0, True])
def test_a_number_of_folds_that_cannot_be(k: int) -> None:
    with pytest.raises(UsageError, match=r"folds = .* the size of the smaller class"):
        folds.stratify(Instance.from_arrays(*raw(1)), k, 0)


def grouped(seed: int) -> tuple[Instance, np.ndarray]:
    X, y = raw(seed)
    of = np.arange(70) // 7
    return dataclasses.replace(Instance.from_arrays(X, y, scale="standard"), split=Split("patient", of)), of


@pytest.mark.parametrize("k", [3, 10])
def test_what_belongs_together_is_never_taken_apart(k: int) -> None:
    data, of = grouped(2)
    found = folds.stratify(data, k, seed=1)
    assert sorted(int(i) for fold in found for i in fold.rows) == list(range(70))
    for fold in found:
        assert fold.train.split is not None
        assert fold.train.drawn is not None
        assert not set(of[fold.rows]) & set(of[fold.train.drawn[0]])
        inner = folds.fold(fold.train, 2, 0, 0)  # of a training part too
        assert fold.train.split.of is not None
        assert inner.train.drawn is not None
        assert not set(fold.train.split.of[inner.rows]) & set(fold.train.split.of[inner.train.drawn[0]])


def test_folds_of_a_splitter_and_what_the_archive_says_of_them() -> None:
    X, y = raw(3)
    data = Instance.from_arrays(X, y)
    splitters = TimeSeriesSplit(3), RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0)
    for splitter in (*splitters, StratifiedKFold(3)):
        whole, k = folds.settle_folds(data, splitter)
        found, said = folds.stratify(whole, k, 0), list(splitter.split(X, y))
        assert k == len(said) == len(found)
        where = folds.fold_of(found, 70)
        assert where.shape == ((70,) if splitter not in splitters else (k, 70))
        for fold, again, (train, test) in zip(found, folds.parts_in(data, where), said, strict=True):
            assert np.array_equal(fold.rows, test)
            assert np.array_equal(again.rows, test)
            assert np.array_equal(fold.train.y, y[np.sort(train)])
            assert np.array_equal(again.train.X, fold.train.X)


def test_folds_that_cannot_be_are_named() -> None:
    X, y = raw(1)
    data = Instance.from_arrays(X, y)
    rare = np.flatnonzero(y > 0)
    with pytest.raises(UsageError, match=f"trains on no sample of class 1, of which there are {rare.size}"):
        folds.stratify(folds.settle_folds(data, [(np.flatnonzero(y < 0), rare)] * 2)[0], 2, 0)
    with pytest.raises(UsageError, match="fold 1 tests on a sample that it is trained on"):
        folds.settle_folds(data, [([0, 1], [1, 2])] * 2)
    for none in ([], [(range(60), range(60, 70))]):
        with pytest.raises(UsageError, match=rf"folds: given parts: {len(none)} in number; give two at least"):
            folds.settle_folds(data, none)
    with pytest.raises(UsageError, match="from 2 to 10: of 'patient'"):
        folds.check_folds(grouped(1)[0], 11)
    assert folds.settle_folds(grouped(1)[0], None)[1] == 10


def test_a_column_of_folds_that_the_description_speaks_of(tmp_path: Path) -> None:
    """The column is no feature: the message says so, and does not take its name for a misspelt one."""
    file = tmp_path / "visits.csv"
    file.write_text("a,patient,label\n" + "".join(f"{k % 5},p{k % 3},{k % 2}\n" for k in range(24)))
    (tmp_path / "visits.toml").write_text('[cost]\n"patient=p1" = 2\n')
    with pytest.raises(DataError, match=r"visits.toml:2: .*'patient=p1'; that column is no feature, since folds"):
        mipfs.read(file, folds_by="patient")
    (tmp_path / "visits.toml").unlink()
    with pytest.raises(DataError, match=r"folds_by names 'label', which is no feature; name another column"):
        mipfs.read(file, folds_by="label")


@pytest.mark.parametrize("name", BY)
def test_errors_are_those_of_scikit_learn(name: str) -> None:
    r = np.random.default_rng(0)
    y, f = np.where(r.random(50) < 0.3, 1.0, -1.0), r.normal(size=50)
    label, p = np.where(f > 0, 1, -1), 1 / (1 + np.exp(-f))
    right = {
        "error": np.mean(label != y),
        "balanced-accuracy": 1 - balanced_accuracy_score(y, label),
        "f1": 1 - f1_score(y, label),
        "roc-auc": 1 - roc_auc_score(y, f),
        "average-precision": 1 - average_precision_score(y, f),
        "log-loss": log_loss(y, p),
    }
    assert error_by(name, y, f) == pytest.approx(right[name], abs=1e-12)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    X, y = raw(4)
    X += 0.1 * np.random.default_rng(4).normal(size=X.shape)  # equal scores may stand in any order
    file = tmp_path_factory.mktemp("folds") / "visits.csv"
    rows = enumerate(zip(X.tolist(), y, strict=True))
    lines = [",".join([*map(repr, row), f"p{k // 7}", "yes" if one > 0 else "no"]) for k, (row, one) in rows]
    file.write_text("\n".join(["a,b,c,d,e,patient,label", *lines]))
    return file


def test_a_column_of_the_command_line(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["path", str(table), "--M", "1:2", "--C", "1", "--folds-by", "patent"]) == 2
    assert "folds_by names the column 'patent'" in capsys.readouterr().err
    assert main(["solve", "fsp-m", str(table), "--M", "1", "--folds-by", "patient"]) == 2
    assert (
        main(["path", str(table), "--M", "1", "--C", "1", "--folds-by", "patient", "--by", "error", "--jobs", "1"]) == 0
    )
    assert "chosen by 10 folds by patient" in capsys.readouterr().out
    stable = mipfs.stability(Problem(mipfs.read(table, folds_by="patient"), M=1, C=0.1), draws=2, share=0.6, jobs=1)
    assert len(stable.sets) == 2


@pytest.mark.parametrize("by", BY)
def test_both_checkers_compute_the_errors_again(by: str, table: Path, tmp_path: Path) -> None:
    data = mipfs.read(table, scale="standard", folds_by="patient")
    assert tuple(data.feature_names) == ("a", "b", "c", "d", "e")
    assert data.split is not None
    assert data.split.count == 10
    given = 3 if by in ("error", "f1") else TimeSeriesSplit(2)
    file = tmp_path / "path.json"
    mipfs.path(Problem(data, C=1.0), M=[1], folds=given, by=by, jobs=1).save(file)

    def verdicts() -> tuple[bool, bool]:
        return main(["verify", str(file), str(table), "--quiet"]) == 0, second().main([str(file), str(table)]) == 0

    assert verdicts() == (True, True)
    document = json.loads(file.read_text())
    document["by"] = BY[BY.index(by) - 1]
    file.write_text(json.dumps(document))
    assert verdicts() == (False, False)
