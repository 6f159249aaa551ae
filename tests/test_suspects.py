"""What is suspect of data, against a brute force over columns and rows."""

from __future__ import annotations

import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import mipfs
from mipfs.cli import main
from mipfs.data import suspects as looked
from mipfs.data.suspects import find_suspects


def drawn(seed: int) -> tuple[Any, Any]:
    """Random columns, some of which separate, are constant or copies, and rows that repeat."""
    r = np.random.default_rng(seed)
    n = int(r.integers(30, 90))
    y = np.where(np.arange(n) % 3 > 0, 1.0, -1.0)
    X = r.normal(size=(n, 8)) * (r.random((n, 8)) < r.choice([0.2, 1.0]))
    X[:, 0] = np.where(y > 0, r.random(n) + 1, -0.0 if seed % 2 else r.random(n) + 0.99 - 0.99 * (seed % 4 > 1))
    X[:, 3] = r.choice([0.0, 7.0])
    X[:, 5] = X[:, 1] if r.random() < 0.5 else -X[:, 1]
    X[:, 7] = r.normal(size=n)  # so that no two rows are alike by chance
    copies = r.permutation(n)[: r.integers(0, 6)]
    return np.concatenate([X, X[copies]]), np.concatenate([y, y[copies]])


def brute(X: Any, y: Any) -> tuple[set[int], set[int], set[tuple[int, int]], int]:
    p = X.shape[1]
    one, other = X[y > 0], X[y < 0]
    separating = {j for j in range(p) if one[:, j].min() > other[:, j].max() or one[:, j].max() < other[:, j].min()}
    constant = {j for j in range(p) if np.ptp(X[:, j]) == 0}
    equal = {(k, j) for j, k in combinations(range(p), 2) if not {j, k} & constant and np.array_equal(X[:, j], X[:, k])}
    rows = len(X) - len({(*row, label) for row, label in zip((X + 0.0).tolist(), y.tolist(), strict=True)})
    return separating, constant, equal, rows


@pytest.mark.sampled(2)
@pytest.mark.parametrize("of", [np.asarray, sparse.csc_array], ids=["dense", "sparse"])
def test_what_is_suspect_is_what_a_brute_force_finds(of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    met = np.zeros(4)
    for seed in range(60):
        monkeypatch.setattr(looked, "AT_ONCE", [1, 200, 1 << 21][seed % 3])
        X, y = drawn(seed)
        found = find_suspects(mipfs.Instance.from_arrays(of(X), y, feature_names=[f"f{j}" for j in range(X.shape[1])]))
        separating, constant, equal, rows = brute(X, y)
        assert set(found.separating) == separating
        assert set(found.constant) == constant
        assert set(found.copies) == equal
        assert found.rows == rows
        if rows:
            assert np.array_equal(*X[list(found.pair)])
        met += [bool(separating), bool(constant), bool(equal), bool(rows)]
    assert np.all(met > 10)


def test_what_chance_makes_is_not_named() -> None:
    r = np.random.default_rng(3)
    short = mipfs.Instance.from_arrays(r.normal(size=(8, 300)), np.repeat([-1.0, 1.0], 4))  # a few separate them
    assert not find_suspects(short).separating
    words = sparse.csc_array((r.random((400, 3000)) < 0.003).astype(float))  # rare words stand in one row each, often
    found = find_suspects(mipfs.Instance.from_arrays(words, np.where(np.arange(400) % 2, 1.0, -1.0)))
    assert not found.copies
    assert not found.constant
    votes = (r.random((500, 4)) < 0.5).astype(float)
    assert find_suspects(mipfs.Instance.from_arrays(votes, np.where(np.arange(500) % 2, 1.0, -1.0))).rows == 0


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    r = np.random.default_rng(0)
    frame = pd.DataFrame({"a": r.normal(size=60), "b": r.normal(size=60), "const": 7, "country": "DE"})
    frame = frame.assign(copy=frame.a, y=r.choice(["bad", "good"], 60))
    frame["later"] = np.where(frame.y == "bad", r.random(60) + 3, 0)
    pd.concat([frame, frame.head(5)]).to_csv(tmp_path / "d.csv", index=False)
    return tmp_path / "d.csv"


SAID = (
    "'later' separates the classes alone",
    "'const', 'country' are constant",
    "equal in all rows: 'copy' of 'a'",
    "5 rows are duplicates of an earlier one",
)


def heard(said: list[warnings.WarningMessage]) -> list[str]:
    return [str(one.message) for one in said if issubclass(one.category, mipfs.SuspectWarning)]


def each_once(texts: list[str], told: tuple[str, ...] = SAID) -> bool:
    return len(texts) == len(told) and all(any(part in text for text in texts) for part in told)


def test_one_warning_each_in_every_interface(leaky: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        data = mipfs.read(leaky, label="y", scale="standard")
    assert each_once(heard(said))
    assert said[0].filename == __file__
    frame = pd.read_csv(leaky)
    model = mipfs.FSPClassifier(M=1, C=1.0, scale="standard")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(frame.drop(columns="y"), frame.y)
    assert each_once(heard(said))
    command = ["solve", "fsp-m", str(leaky), "--label", "y", "--M", "1", "--C", "1", "--scale", "standard"]
    assert main([*command, "--json", str(leaky.with_suffix(".json"))]) == 0
    assert each_once([line for line in capsys.readouterr().err.splitlines() if "warning" in line])
    assert data.n_features == 6


def test_it_can_be_switched_off(leaky: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        mipfs.read(leaky, label="y", scale="standard", checks=False)
        leaky.with_suffix(".toml").write_text("[data]\nchecks = false\n", encoding="utf-8")
        mipfs.read(leaky, label="y", scale="standard")
        assert not heard(said)
        mipfs.read(leaky, label="y", scale="standard", checks=True)
        assert each_once(heard(said))
    command = ["path", str(leaky), "--label", "y", "--M", "1", "--C", "1", "--scale", "standard"]
    for options in ([], ["--checks", "--quiet"], ["--no-checks"]):
        assert main([*command, *options]) == 0
        assert "warning" not in capsys.readouterr().err


def test_of_several_classes_it_is_said_which_one(tmp_path: Path) -> None:
    r = np.random.default_rng(1)
    y = np.repeat(["a", "b", "c"], 20)
    with pytest.warns(mipfs.SuspectWarning, match=r"'x2' \('b' from the rest\) separates the classes alone"):
        mipfs.FSPClassifier(M=1, C=1.0).fit(np.column_stack([r.normal(size=60), 5 * (y == "b") + r.random(60)]), y)


def test_of_a_word_the_column_is_what_is_dropped(tmp_path: Path) -> None:
    """The features of a column of words cannot be dropped one by one."""
    r = np.random.default_rng(1)
    kinds = r.choice(["x", "z"], 60)
    y = np.where(np.arange(60) % 2 == 0, "p", "n")
    frame = pd.DataFrame({"w": np.where(y == "p", "v", kinds), "a": r.normal(size=60), "y": y})
    frame["u"] = frame["w"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(mipfs.SuspectWarning) as said:
        mipfs.read(tmp_path / "t.csv", label="y", scale="standard")
    texts = heard(list(said))
    assert any("'w=v', 'u=v' separate the classes alone" in one and "out (drop 'w', 'u') if" in one for one in texts)
    assert any("leave one of the two out (drop, by its column)" in one for one in texts)
    assert mipfs.read(tmp_path / "t.csv", label="y", scale="standard", drop=["w", "u"]).n_features == 1
