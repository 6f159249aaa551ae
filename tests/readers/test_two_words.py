"""A column of two words makes one feature: whatever carries the table, and for both checkers."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import Problem
from mipfs.atoms.groups import Groups
from mipfs.convert import convert
from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.readers.lp_rows import read_rows
from tests import two_checkers

pandas = pytest.importorskip("pandas")
second = two_checkers.second()
N = 80


def frame(seed: int = 0, n: int = N) -> Any:
    """A number, a column of two words, one of three, and labels that follow the first two."""
    r = np.random.default_rng(seed)
    found = pandas.DataFrame({"a": r.normal(size=n).round(3), "phone": r.choice(["Y", "N"], n)})
    found["home"] = r.choice(["own", "rent", "free"], n)
    score = found.a + 1.2 * (found.phone == "Y") + r.normal(0, 0.4, n)
    return found.assign(label=np.where(score > 0.6, "yes", "no"))


def written(table: Any, folder: Path, kind: str) -> Any:
    """The table carried in a way."""
    if kind == "frame":
        return table
    if kind == "text":
        return table.astype(str)
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(folder / "t.parquet")
        return folder / "t.parquet"
    separator = {"csv": ",", "tsv": "\t", "bars": "|"}[kind]
    table.to_csv(folder / f"{kind}.csv", sep=separator, index=False)
    return folder / f"{kind}.csv"


@pytest.mark.parametrize("kind", ["frame", "text", "parquet", "csv", "tsv", "bars"])
def test_same_features_whatever_carries_them(tmp_path: Path, kind: str) -> None:
    table = frame()
    data = mipfs.read(written(table, tmp_path, kind), scale="standard")
    assert list(data.feature_names) == ["a", "phone=Y", "home=free", "home=own", "home=rent"]
    assert data.words["phone"] == ("N", "Y")
    assert data.groups["phone"] == ("phone=Y",)
    assert data.sha256 == mipfs.read(table, scale="standard").sha256
    raw = mipfs.read(written(table, tmp_path, kind))
    np.testing.assert_array_equal(raw.block(np.array([1])).dense()[:, 0], table.phone == "Y")


@pytest.mark.parametrize("rules", [1, 2, 3, 4])
def test_earlier_rules_make_two(tmp_path: Path, rules: int) -> None:
    data = mipfs.read(written(frame(), tmp_path, "csv"), rules=rules)
    assert list(data.feature_names[1:3]) == ["phone=N", "phone=Y"]


def test_earlier_rules_are_solved_and_verified_by_these(tmp_path: Path) -> None:
    path = written(frame(), tmp_path, "csv")
    for rules, width in ((4, 6), (5, 5)):
        data = mipfs.read(path, scale="standard", rules=rules)
        result = mipfs.solve(Problem(data, M=2, C=0.1))
        assert (result.rules, result.n_features) == (rules, width)
        result.save(tmp_path / "r.json")
        assert mipfs.verify(result, data).accepted
        assert second.verdict_of(lambda: second.judge(tmp_path / "r.json", path))[0] == "accepted"
        document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
        (tmp_path / "forged.json").write_text(json.dumps(document | {"rules": 9 - rules}), encoding="utf-8")
        assert second.verdict_of(lambda: second.judge(tmp_path / "forged.json", path))[0] == "rejected"


REFUSED = "'phone=Y' is the one feature of the column 'phone'"


def test_name_of_the_other_word_is_refused_in_the_description(tmp_path: Path) -> None:
    path = written(frame(), tmp_path, "csv")
    for text in (
        '[cost]\n"phone=N" = 2\n',
        '[penalty]\n"phone=N" = 2\n',
        '[select]\nforced_in = ["phone=N"]\n',
        '[select]\nimplies = [["phone=N", "a"]]\n',
        '[data]\npositive = "yes"\n[weights]\nnonnegative = ["phone=N"]\n',
        '[data]\npositive = "yes"\n[weights]\nbounds = { "phone=N" = [0.0, 1.0] }\n',
        '[data]\npositive = "yes"\n[[weights.rows]]\ncoefficients = { "phone=N" = 1.0, a = -1.0 }\nlower = 0.0\n',
        '[groups]\nboth = ["phone=N", "a"]\n',
    ):
        path.with_suffix(".toml").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=REFUSED):
            mipfs.read(path)


def test_name_of_the_other_word_is_refused_elsewhere(tmp_path: Path) -> None:
    data = mipfs.read(frame())
    for asked in (
        {"forced_in": ["phone=N"]},
        {"weight_bounds": {"phone=N": (0.0, None)}},
        {"weight_rows": [({"phone=N": 1.0}, 0.0, None)]},
    ):
        with pytest.raises(UsageError, match=REFUSED):
            Problem(data, M=2, C=1.0, **asked)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=REFUSED):
        Groups(data, {"g": ["phone=N", "a"]})
    (tmp_path / "rows.lp").write_text("Minimize\n obj: 0 a\nSubject To\n r: phone_N + a <= 1\nEnd\n", encoding="utf-8")
    with pytest.raises(DataError, match=REFUSED):
        read_rows(tmp_path / "rows.lp", data)
    from mipfs import FSPClassifier

    X, y = frame().drop(columns="label"), frame().label
    for given in ({"forced_in": ["phone=N"]}, {"monotonic_cst": {"phone=N": 1}}, {"cost": {"phone=N": 1.0}}):
        with pytest.raises(ValueError, match=REFUSED):
            FSPClassifier(M=2, **given).fit(X, y)


def test_rows_are_predicted_whatever_words_they_have(tmp_path: Path) -> None:
    table = frame()
    result = mipfs.solve(Problem(mipfs.read(table, scale="standard"), M=2, C=0.1))
    assert set(result.selected) == {"a", "phone=Y"}
    assert result.read is not None
    assert list(result.read["words"]["phone"]) == ["N", "Y"]
    whole = result.decision_function(table)
    np.testing.assert_array_equal(result.decision_function(mipfs.read(table)), whole)
    for word in ("Y", "N"):
        part = table[table.phone == word]
        at = np.flatnonzero(table.phone == word)
        np.testing.assert_array_equal(result.decision_function(part), whole[at])
        path = written(part, tmp_path, "csv")
        from mipfs.readers import read_new

        new = read_new(path, names=list(result.weights), labels=result_labels(result))
        np.testing.assert_array_equal(result.decision_function(new), whole[at])
        np.testing.assert_array_equal(result.decision_function(part.to_dict("records")), whole[at])


def result_labels(result: Any) -> Any:
    from mipfs.data.instance import Labels

    return Labels(result.labels["negative"], result.labels["positive"])


def test_other_reading_of_the_same_rows_predicts_the_same() -> None:
    """A result of earlier rules on data of today's, where the other word's feature is not there, and the reverse."""
    table = frame()
    earlier, today = mipfs.read(table, rules=4), mipfs.read(table)
    old = mipfs.solve(Problem(earlier, M=2, C=0.1, forced_in=["phone=N"]))
    assert "phone=N" in old.weights
    np.testing.assert_allclose(old.decision_function(today), old.decision_function(earlier), atol=1e-12)
    new = mipfs.solve(Problem(today, M=2, C=0.1))
    np.testing.assert_allclose(new.decision_function(earlier), new.decision_function(today), atol=1e-12)
    three = table.assign(phone=np.where(np.arange(N) % 5 == 0, "?!", table.phone))
    wide = mipfs.solve(Problem(mipfs.read(three), M=2, C=0.1, forced_in=["phone=N"]))
    np.testing.assert_allclose(wide.decision_function(today), wide.decision_function(table), atol=1e-12)


def test_unknown_word_is_not_the_other_one(tmp_path: Path) -> None:
    table = frame()
    result = mipfs.solve(Problem(mipfs.read(table, scale="standard"), M=2, C=0.1))
    strange = table.assign(phone=["maybe", *table.phone[1:]])
    with pytest.raises(UsageError, match="'maybe'"):
        result.predict(strange)
    path = written(strange, tmp_path, "csv")
    for rows in (strange, strange.to_dict("records")):
        with pytest.raises(UsageError, match="one feature says which of 'N' and 'Y' it is"):
            result.predict(rows, unknown="none")
    result.save(tmp_path / "r.json")
    from mipfs.cli import main

    assert main(["predict", str(tmp_path / "r.json"), str(path), "--unknown", "none", "--quiet"]) == 2
    from mipfs import FSPClassifier

    model = FSPClassifier(M=2, unknown="none").fit(table.drop(columns="label"), table.label)
    with pytest.raises(ValueError, match="one feature says which of 'N' and 'Y' it is"):
        model.predict(strange.drop(columns="label"))


def test_estimators_have_the_features_of_read() -> None:
    from mipfs import FSPClassifier

    table = frame()
    X, y = table.drop(columns="label"), table.label
    model = FSPClassifier(M=2, C=0.1, scale="standard").fit(X, y)
    assert model.feature_names_in_.tolist() == list(X.columns)
    assert model.columns_.tolist() == list(mipfs.read(table).feature_names)
    assert model.result_.data_sha256 == mipfs.read(table, scale="standard").sha256
    same = mipfs.solve(Problem(mipfs.read(table, scale="standard"), M=2, C=0.1))
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(table), atol=1e-4)
    assert model.verify(X, y).accepted


def test_stores_have_the_features_of_read(tmp_path: Path) -> None:
    table = frame()
    path = written(table, tmp_path, "csv")
    whole, store = mipfs.read(path, scale="standard"), mipfs.read(convert(path, tmp_path / "s"), scale="standard")
    assert (list(store.feature_names), store.words, store.sha256) == (
        list(whole.feature_names),
        whole.words,
        whole.sha256,
    )
    result = mipfs.solve(Problem(store, M=2, C=0.1))
    np.testing.assert_allclose(
        result.decision_function(table), mipfs.solve(Problem(whole, M=2, C=0.1)).decision_function(table), atol=1e-6
    )


@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_gaps_are_filled_by_the_more_frequent_word_of_a_part(scale: str, is_sparse: bool) -> None:
    table = frame(3)
    table.loc[[0, 5, 9], "phone"] = None
    if is_sparse:
        extra = {f"z{k}": np.where(np.arange(N) == k, 1.0, 0.0) for k in range(40)}
        table = pandas.concat([table, pandas.DataFrame(extra)], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = mipfs.read(table, scale=scale, impute="median")  # type: ignore[arg-type]
    assert data.is_sparse is is_sparse
    j = data.index["phone=Y"]
    for word in ("Y", "N"):
        fit = np.flatnonzero(table.phone == word)[:9]
        other = np.flatnonzero((table.phone != word) & table.phone.notna())[:4]
        found = data.refill(np.concatenate([fit, other])).X[:, [j]]
        values = np.asarray(found.toarray() if is_sparse else found).ravel()
        assert np.all(values[[0, 5, 9]] == values[fit[0]])
        assert values[fit[0]] != values[other[0]]


def test_one_word_and_three_are_as_before() -> None:
    table = frame().assign(one="same")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = mipfs.read(table)
    assert [name for name in data.feature_names if name.startswith(("one", "home"))] == [
        "home=free", "home=own", "home=rent", "one=same",
    ]  # fmt: skip
    assert isinstance(data, Instance)
