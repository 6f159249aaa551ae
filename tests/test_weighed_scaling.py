"""Means and deviations by the weights of samples: a weight of 2 is a row that stands there twice (rules 5)."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

import mipfs
from mipfs import FSPClassifier, Problem
from mipfs.check.rounding import CertificateError
from mipfs.check.scaling import by_rules
from mipfs.data import matrix
from mipfs.data.blocked import split_in_memory
from mipfs.data.instance import Instance
from tests import two_checkers

second = two_checkers.second()
STORED = ["dense", "sparse", "blocked", "blocked sparse"]


def drawn(seed: int, is_sparse: bool, n: int = 60, p: int = 7) -> tuple[Any, Any, Any]:
    """Values, labels and whole weights; a constant column, one without zeros and one of large mean."""
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, p)) * 10.0 ** r.integers(-3, 4, p)
    if is_sparse:
        X[r.random((n, p)) < 0.7] = 0.0
    X[:, 0], X[:, 1] = 3.0, 1e6 + r.normal(size=n)
    y = np.where(r.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y, r.integers(1, 6, n)


def values(data: Instance) -> Any:
    """All columns, dense, wherever they lie."""
    return data.block(np.arange(data.n_features)).dense()


def stored_as(X: Any, kind: str) -> Any:
    found = sparse.csc_array(X) if "sparse" in kind else np.asfortranarray(X)
    return split_in_memory(found, 3) if "blocked" in kind else found


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("seed", range(4))
def test_a_weight_of_two_is_a_row_that_stands_there_twice(kind: str, seed: int) -> None:
    X, y, w = drawn(seed, "sparse" in kind)
    twice = np.repeat(np.arange(y.size), w)
    one = Instance.from_arrays(stored_as(X, kind), y, scale="standard", sample_weight=w)
    other = Instance.from_arrays(stored_as(X[twice], kind), y[twice], scale="standard")
    np.testing.assert_allclose(one.shift, other.shift, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-10)
    np.testing.assert_allclose(values(one)[:, 2:], values(other)[np.cumsum(w) - 1][:, 2:], atol=1e-9)
    known = StandardScaler().fit(X, sample_weight=w)
    np.testing.assert_allclose(one.shift[1:], known.mean_[1:], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.scale[2:], np.sqrt(known.var_[2:]), rtol=1e-9)
    assert (one.shift[0], one.scale[0]) == (0.0, 1.0)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("spread", [0, 8, 30])
def test_moments_are_those_of_rationals(is_sparse: bool, spread: int) -> None:
    """Also where weights are of sizes far apart, so that the weight on the zeros of a column is a difference."""
    X, y, _ = drawn(11, is_sparse)
    w = 10.0 ** np.random.default_rng(5).uniform(-spread, 0, y.size)
    found = Instance.from_arrays(stored_as(X, "sparse" if is_sparse else "dense"), y, scale="standard", sample_weight=w)
    exact = [Fraction(float(v)) for v in w]
    for j in range(1, X.shape[1]):
        column = [Fraction(float(v)) for v in X[:, j]]
        mean = sum(a * x for a, x in zip(exact, column, strict=True)) / sum(exact)
        square = sum(a * (x - mean) ** 2 for a, x in zip(exact, column, strict=True)) / sum(exact)
        size = abs(float(mean)) + float(square) ** 0.5
        assert abs(found.shift[j] - float(mean)) <= 1e-14 * size
        assert found.scale[j] == pytest.approx(float(square) ** 0.5, rel=1e-9, abs=1e-15 * size)


@pytest.mark.parametrize("kind", STORED)
def test_equal_weights_and_other_scales_are_as_before_to_the_bit(kind: str) -> None:
    X, y, w = drawn(2, "sparse" in kind)
    plain = Instance.from_arrays(stored_as(X, kind), y, scale="standard")
    for given, scale in ((np.full(y.size, 3.7), "standard"), (w, "unit"), (w, "none")):
        one = Instance.from_arrays(stored_as(X, kind), y, scale=scale, sample_weight=given)  # type: ignore[arg-type]
        other = plain if scale == "standard" else Instance.from_arrays(stored_as(X, kind), y, scale=scale)  # type: ignore[arg-type]
        assert np.array_equal(one.shift, other.shift)
        assert np.array_equal(one.scale, other.scale)
        assert np.array_equal(values(one), values(other))
    earlier = Instance.from_arrays(stored_as(X, kind), y, scale="standard", sample_weight=w, rules=4)
    assert np.array_equal(earlier.shift, plain.shift)
    assert np.array_equal(earlier.scale, plain.scale)


@pytest.mark.parametrize("kind", STORED)
def test_data_goes_from_one_version_of_the_rules_to_another(kind: str) -> None:
    X, y, w = drawn(3, "sparse" in kind)
    data = {
        rules: Instance.from_arrays(stored_as(X, kind), y, scale="standard", sample_weight=w, rules=rules)
        for rules in (4, 5)
    }
    for one, other in ((4, 5), (5, 4)):
        if kind == "dense":
            with pytest.raises(CertificateError, match=f"rules={other}"):
                by_rules(data[one], other)
            continue
        found = by_rules(data[one], other)
        assert np.array_equal(found.scale, data[other].scale)
        assert np.array_equal(found.shift, data[other].shift)
        assert np.array_equal(values(found), values(data[other]))


def test_a_part_counts_its_own_samples() -> None:
    X, y, w = drawn(4, False)
    data, rows = Instance.from_arrays(X, y, scale="standard", sample_weight=w), np.arange(40)
    part = data.part(rows)
    own = Instance.from_arrays(X[:40], y[:40], scale="standard", sample_weight=w[:40])
    np.testing.assert_allclose(values(part)[:, 2:], values(own)[:, 2:], atol=1e-9)


def test_class_weights_do_not_count() -> None:
    X, y, w = drawn(5, False)
    plain = FSPClassifier(M=2, scale="standard", C=0.1).fit(X, y, sample_weight=w)
    heavy = FSPClassifier(M=2, scale="standard", C=0.1, class_weight={-1.0: 1.0, 1.0: 7.0}).fit(X, y, sample_weight=w)
    for name in ("_shift", "_scale"):
        assert np.array_equal(getattr(plain, name), getattr(heavy, name))
    data = Instance.from_arrays(X, y, scale="standard", sample_weight=w)
    weighed = Problem(data, M=2, C=0.1, class_weight={-1: 1.0, 1: 7.0}).data
    assert np.array_equal(weighed.scale, data.scale)
    assert np.array_equal(weighed.part(np.arange(50)).shift, data.part(np.arange(50)).shift)


def test_weights_and_repeated_rows_have_one_optimum() -> None:
    X, y, w = drawn(6, False)
    twice = np.repeat(np.arange(y.size), w)
    for bias in (True, False):
        o: dict[str, Any] = {"M": 3, "C": 0.05, "scale": "standard", "gap": 1e-8, "bias": bias}
        one, other = FSPClassifier(**o).fit(X, y, sample_weight=w), FSPClassifier(**o).fit(X[twice], y[twice])
        assert one.result_.objective == pytest.approx(other.result_.objective, rel=1e-7)
        assert one.result_.selected == other.result_.selected
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-5)


def test_both_checkers_weigh(tmp_path: Path) -> None:
    X, y, w = drawn(7, False)
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as stream:
        names = [f"v{j}" for j in range(X.shape[1])]
        csv.writer(stream).writerows([[*names, "sample_weight", "label"]])
        csv.writer(stream).writerows([*map(float, x), int(c), int(s)] for x, c, s in zip(X, w, y, strict=True))
    for rules in (4, 5):
        data = mipfs.read(tmp_path / "t.csv", scale="standard", rules=rules)
        result = mipfs.solve(Problem(data, M=2, C=0.1))
        assert result.rules == rules
        assert mipfs.verify(result, data).accepted
        result.save(tmp_path / "r.json")
        assert second.verdict_of(lambda: second.judge(tmp_path / "r.json", tmp_path / "t.csv"))[0] == "accepted"
        document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8")) | {"rules": 9 - rules}
        (tmp_path / "forged.json").write_text(json.dumps(document), encoding="utf-8")
        assert second.verdict_of(lambda: second.judge(tmp_path / "forged.json", tmp_path / "t.csv"))[0] == "rejected"
        forged = mipfs.Result.load(tmp_path / "forged.json")
        assert not mipfs.verify(forged, mipfs.read(tmp_path / "t.csv", scale="standard", rules=9 - rules)).accepted


def test_uneven_keeps_what_counts() -> None:
    assert matrix.uneven_weights(np.broadcast_to(1.0, (4,))) is None
    assert matrix.uneven_weights(np.full(3, 2.0)) is None
    found = matrix.uneven_weights(np.array([1e308, 5e307, 1.0]))
    assert found is not None
    assert found.max() < 1.0
    assert found[0] == 2 * found[1]
    assert np.isfinite(found.sum())
