"""True and False, as features and as labels, are the same whatever carries them, and labels come back as they came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mipfs
from mipfs.convert import convert
from mipfs.data.instance import Labels
from mipfs.readers import read_new, table_chunks
from tests import two_checkers

second = two_checkers.second()
N = 60


def frame(seed: int = 0) -> pd.DataFrame:
    """A number, a boolean and boolean labels."""
    r = np.random.default_rng(seed)
    found = pd.DataFrame({"a": r.normal(size=N).round(3), "flag": r.random(N) < 0.5})
    return found.assign(label=found.a + found.flag + r.normal(0, 0.3, N) > 0.5)


def carried(table: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The table in the ways that Python, R and polars write it, and in memory."""
    ways: dict[str, Any] = {"frame": table, "objects": table.astype(object), "nullable": table.convert_dtypes()}
    ways |= {"rows": table.to_dict("records"), "text": table.astype(str), "parquet": folder / "t.parquet"}
    table.to_parquet(folder / "t.parquet", index=False)
    for spell in (str, str.upper, str.lower):
        ways[spell("True")] = folder / f"{spell('True')}.csv"
        columns = {name: table[name].map(lambda one: spell(str(one))) for name in ("flag", "label")}  # noqa: B023
        table.assign(**columns).to_csv(ways[spell("True")], index=False)
    return ways


def test_features_labels_and_predictions_whatever_carries_them(tmp_path: Path) -> None:
    table = frame()
    ways = carried(table, tmp_path)
    right = mipfs.read(table, scale="standard")
    for given in ways.values():
        data = mipfs.read(given, scale="standard")
        assert list(data.feature_names) == ["a", "flag"]
        assert data.sha256 == right.sha256
        result = mipfs.solve(mipfs.Problem(data, M=2, C=1.0))
        expected = (result.decision_function(table) > 0).tolist()
        for other in ways.values():
            known = Labels(**result.labels) if isinstance(result.labels["positive"], bool) else None
            new = other
            if isinstance(other, Path):
                new = read_new(other, names=data.feature_names, labels=known, remembered="label")
            found = [str(one).lower() == "true" for one in result.predict(new)]
            assert found == expected
            if known is not None:  # of text the spelling counts
                assert result.evaluate(new)["accuracy"] == np.mean(np.equal(expected, table.label))


def test_labels_come_back_as_they_came(tmp_path: Path) -> None:
    ways = carried(frame(), tmp_path)
    of = {"TRUE": "TRUE", "true": "true", "True": "True", "text": "True"}
    for name, given in ways.items():
        result = mipfs.solve(mipfs.Problem(mipfs.read(given), M=2, C=1.0))
        result.save(tmp_path / "r.json")
        result = mipfs.Result.load(tmp_path / "r.json")
        found = result.predict(frame()).tolist()
        assert result.labels["positive"] == of.get(name, True)
        assert {type(one) for one in found} == ({str} if name in of else {bool})
    for positive in (False, "False", 0):
        assert mipfs.read(frame(), positive=positive).labels == Labels(True, False)


def test_earlier_rules_are_solved_and_verified_by_these(tmp_path: Path) -> None:
    path, parquet = (carried(frame(), tmp_path)[name] for name in ("True", "parquet"))
    assert mipfs.read(parquet, rules=5).labels == Labels(0, 1)
    for rules, name in ((5, "flag=True"), (6, "flag")):
        data = mipfs.read(path, scale="standard", rules=rules)
        assert data.feature_names[1] == name
        result = mipfs.solve(mipfs.Problem(data, M=2, C=0.1))
        result.save(tmp_path / "r.json")
        assert mipfs.verify(result, data).accepted
        assert second.verdict_of(lambda: second.judge(tmp_path / "r.json", path))[0] == "accepted"
        forged = json.loads((tmp_path / "r.json").read_text(encoding="utf-8")) | {"rules": 11 - rules}
        (tmp_path / "forged.json").write_text(json.dumps(forged), encoding="utf-8")
        assert second.verdict_of(lambda: second.judge(tmp_path / "forged.json", path))[0] == "rejected"
        assert list(result.predict(frame())) == list(result.predict(data))  # where training knew the words of text


def test_words_that_are_meant_stay_words(tmp_path: Path) -> None:
    path = carried(frame(), tmp_path)["TRUE"]
    data = mipfs.read(path, words=["flag"])
    assert list(data.feature_names) == ["a", "flag=TRUE"]
    result = mipfs.solve(mipfs.Problem(data, M=2, C=0.1))
    result.save(tmp_path / "r.json")
    assert mipfs.verify(result, data).accepted
    assert second.verdict_of(lambda: second.judge(tmp_path / "r.json", path))[0] == "accepted"
    document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    document["read"]["kept"] = []
    (tmp_path / "r.json").write_text(json.dumps(document), encoding="utf-8")
    assert second.verdict_of(lambda: second.judge(tmp_path / "r.json", path))[0] == "rejected"


@pytest.mark.parametrize("impute", [None, "median", "level"])
@pytest.mark.parametrize("third", [None, 50])
def test_a_store_has_the_same(
    impute: str | None, third: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third word may stand in the last piece of the file, and missing values in any."""
    table = frame().astype({"flag": object})
    if third is not None:
        table.loc[third, "flag"] = "unknown"
    if impute is not None:
        table.loc[[3, 30], "flag"] = ""
    table.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr(table_chunks, "CELLS", 3 * 16)
    asked = {} if impute is None else {"impute": impute}
    right = mipfs.read(tmp_path / "t.csv", **asked)  # type: ignore[arg-type]
    found = mipfs.read(convert(tmp_path / "t.csv", tmp_path / "t.store", **asked))  # type: ignore[arg-type]
    assert list(found.feature_names) == list(right.feature_names)
    assert ("flag" in right.feature_names) == (third is None)
    assert found.sha256 == right.sha256


@pytest.mark.parametrize("spell", [str, str.upper])
def test_new_rows_without_the_third_word(spell: Any) -> None:
    """Read by pandas they are booleans, where training met words."""
    table = frame()
    table["flag"] = ["unknown" if k < 10 else spell(str(one)) for k, one in enumerate(table.flag)]
    new = frame().iloc[10:]
    result = mipfs.solve(mipfs.Problem(mipfs.read(table), M=2, C=1.0))
    assert result.predict(new).tolist() == result.predict(table.iloc[10:]).tolist()
    X, y = table.drop(columns="label"), table.label
    model = mipfs.FSPClassifier(M=2).fit(X, y)
    assert model.predict(new.drop(columns="label")).tolist() == model.predict(X.iloc[10:]).tolist()
    assert model.classes_.dtype == bool


def test_true_is_no_weight(tmp_path: Path) -> None:
    frame().assign(sample_weight="True").to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(mipfs.errors.DataError, match="'sample_weight' holds words"):
        mipfs.read(tmp_path / "t.csv")
