"""``[select] words = "groups"``: a column of words is one atom in whatever the data are asked for."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mipfs
from mipfs import FSPClassifier
from mipfs.cli import main
from mipfs.data.instance import Row
from mipfs.errors import DataError, UsageError
from tests import two_checkers

ROOT = Path(__file__).parents[1]
M, C = 2, 0.05


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Credit with its column of words, 60 rows, two of its numbers and a column of two words."""
    frame = pd.read_csv(ROOT / "instances" / "credit.csv").iloc[:60]
    frame = frame[["housing", "late payments", "history years", "repaid"]]
    frame.insert(1, "phone", np.where(np.arange(60) % 3 == 0, "N", "Y"))
    path = tmp_path_factory.mktemp("words") / "credit.csv"
    frame.to_csv(path, index=False)
    return path


def described(path: Path, more: str = "") -> Any:
    """The table as a description with `words = "groups"` has it read."""
    text = f'[data]\nlabel = "repaid"\npositive = "yes"\nscale = "standard"\n[select]\nwords = "groups"\n{more}'
    path.with_suffix(".toml").write_text(text)
    return mipfs.read(path, checks=False)


def test_the_optimum_is_that_of_enumeration_over_whole_columns(table: Path) -> None:
    data = described(table)
    whole = {"housing": data.groups["housing"], "phone": data.groups["phone"]}
    columns = {**whole, "late payments": ("late payments",), "history years": ("history years",)}
    assert len(columns["housing"]) == 3
    assert len(columns["phone"]) == 1
    problem = mipfs.Problem(data, M=M, C=C)
    assert problem.atoms.names == tuple(columns)
    values = {}
    for pair in itertools.combinations(columns, M):
        ids = sorted(data.columns_of([name for one in pair for name in columns[one]]))
        named = tuple(data.feature_names[j] for j in ids)
        single = mipfs.Problem(data, atoms=mipfs.atoms.make("features", data), C=C, forced_in=named, M=len(ids))
        values[pair] = mipfs.solve(single).objective
    best = min(values, key=values.__getitem__)
    found = mipfs.solve(problem)
    assert found.status.name == "OPTIMAL"
    assert set(found.selected) == set(best)
    assert found.objective == pytest.approx(values[best], rel=1e-6)
    assert mipfs.verify(found, data).accepted


def test_without_columns_of_words_it_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("a,b,repaid\n1,2,yes\n2,1,no\n3,5,yes\n4,4,no\n")
    assert mipfs.Problem(described(path), M=1).selects_features


def test_a_rule_on_a_word_names_the_column_and_another_value_is_refused(table: Path) -> None:
    data = described(table, 'forced_in = ["housing=own"]\n')
    with pytest.raises(UsageError, match=r"'housing=own'.*a column of words by its own name"):
        mipfs.Problem(data, M=M)
    table.with_suffix(".toml").write_text('[data]\nlabel = "repaid"\n[select]\nwords = "whole"\n')
    with pytest.raises(DataError, match=r'words is .whole.*write "groups"'):
        mipfs.read(table, checks=False)


def test_a_card_of_groups_has_every_column_of_them_and_both_checkers_accept_it(table: Path, tmp_path: Path) -> None:
    data = described(table, 'forced_in = ["housing"]\n')
    result = mipfs.solve(mipfs.Problem(data, M=M, C=C))
    assert "housing" in result.selected
    card = mipfs.scorecard(result, data, points=2)
    columns = {*data.groups["housing"]} | ({*result.selected} - {"housing"})
    assert set(card.result.selected) == columns
    assert {column.feature for column in card.columns} <= columns
    assert mipfs.verify(card, data).accepted
    card.save(tmp_path / "card.json")
    assert two_checkers.second().main([str(tmp_path / "card.json"), str(table)]) == 0
    with pytest.raises(UsageError, match="joint counts single features"):
        mipfs.scorecard(result, data, joint=True)


def test_a_card_of_scaled_or_shared_groups_is_refused(table: Path) -> None:
    data = described(table)
    for groups, scaling in (({"a": ["phone=Y"], "b": ["housing=own", "phone=Y"]}, "none"), (data.groups, "norm")):
        atoms = mipfs.atoms.groups.Groups(data, groups, scaling)
        result = mipfs.solve(mipfs.Problem(data, M=2, C=C, atoms=atoms, forced_in=atoms.names[:2]))
        with pytest.raises(UsageError, match="share no feature and are not scaled"):
            mipfs.scorecard(result, data)


def test_a_card_of_groups_keeps_to_no_row_over_single_features() -> None:
    """A conflict with a group is none with its features: the group that is selected shares some with it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    rows = [Row("conflict", {"both": 1.0, "d": 1.0}, -np.inf, 1.0, "")]
    data = mipfs.Instance.from_arrays(
        X,
        np.where(X[:, 0] + X[:, 3] > 0.0, 1.0, -1.0),
        feature_names=["a", "b", "c", "d"],
        groups={"both": ["a", "b"], "three": ["a", "b", "c"]},
        rows=rows,
    )
    result = mipfs.solve(mipfs.Problem(data, M=2, C=1.0, atoms="groups"))  # type: ignore[arg-type]
    assert result.selected == ("three", "d")
    card = mipfs.scorecard(result, data, points=2)
    assert [one.feature for one in card.columns] == ["a", "b", "c", "d"]


def test_paths_choose_among_columns_of_words(table: Path) -> None:
    data = described(table)
    path = mipfs.path(mipfs.Problem(data, C=C), M=[1, 2, 3], folds=3)
    assert [len(point.result.selected) for point in path.points] == [1, 2, 3]
    assert "housing" in path.points[-1].result.selected
    assert path.one_se is not None
    assert path[path.one_se].result.atoms is not None


def test_a_benchmark_counts_columns_and_refuses_what_counts_words(table: Path, tmp_path: Path) -> None:
    data = described(table)
    with pytest.raises(UsageError, match="rfe selects features one by one"):
        mipfs.bench(data, ["fsp-m", "rfe"], [2], C=[C], folds=2)
    found = mipfs.bench(data, ["fsp-m"], [3], C=[1.0], folds=2, jobs=1, time_limit=None)
    housing = {*data.columns_of(data.groups["housing"]).tolist()}
    chosen = [{*record["selected"]} for record in found.records]
    assert any(housing <= one for one in chosen), found.records
    assert all(one & housing in (housing, set()) and len(one - housing) <= 3 for one in chosen)
    found.save(tmp_path / "bench.json")
    assert json.loads((tmp_path / "bench.json").read_text())["params"]["words"] == "groups"


def test_of_several_classes_the_words_of_a_selected_column_have_their_weights(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame, path = pd.read_csv(table), table.with_name("three.csv")
    frame["repaid"] = np.where(frame["late payments"] > 1, "late", frame["repaid"])
    frame.to_csv(path, index=False)
    path.with_suffix(".toml").write_text(
        '[data]\nlabel = "repaid"\nchecks = false\n[select]\nwords = "groups"\nforced_in = ["housing"]\n'
    )
    assert main(["solve", "fsp-m", str(path), "--M", "1", "--C", "1"]) == 0
    weights = capsys.readouterr().out.partition("The weights")[2].splitlines()
    rows = [line.split("  ")[1].strip() for line in weights if line.startswith("  ")]
    assert rows == ["feature", *(f"housing={word}" for word in ("family", "own", "rent")), "(intercept)"]


def test_estimators_select_columns_of_words_whole(table: Path) -> None:
    frame = pd.read_csv(table)
    y = frame.pop("repaid")
    options = {"M": M, "C": C, "scale": "standard", "forced_in": ["housing"]}
    model = FSPClassifier(atoms="groups", **options).fit(frame, y)
    same = mipfs.solve(mipfs.Problem(described(table, 'forced_in = ["housing"]\n'), M=M, C=C))
    assert set(model.atoms_) == set(same.selected)
    assert model.result_.objective == pytest.approx(same.objective, rel=1e-6)
