"""Dense and sparse data are one problem: fl(fl(x − shift)/scale), whatever is stored and however large a mean is."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.data import matrix
from mipfs.data.blocked import split_in_memory
from mipfs.data.instance import Instance
from mipfs.result.result import Result


def drawn(seed: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Full columns of mean 1e4 … 1e15 and spreads down to a few ulps, columns with one zero, and sparse ones."""
    r = np.random.default_rng(seed)
    size = 10.0 ** r.integers(4, 16)
    z = r.normal(size=n)
    y = np.where(z + 0.7 * r.normal(size=n) > 0, 1.0, -1.0)
    ulps = size + np.spacing(size) * r.integers(-4, 5, n)
    spread = size * (1.0 + 10.0 ** r.uniform(-12, 0) * (z + r.normal(size=n)))
    lacks = size * (1.0 + 1e-9 * z)
    lacks[r.integers(n)] = 0.0
    few = np.where(r.random(n) < 0.2, r.normal(size=n) + y, 0.0)
    one = np.where(r.random(n) < 0.8, 1.0 + z, 0.0)
    return np.column_stack([ulps, spread, lacks, few, one, -spread[::-1]]), y


STORED: dict[str, Any] = {
    "dense": np.asfortranarray,
    "sparse": sparse.csc_array,
    "blocked": lambda X: split_in_memory(sparse.csc_array(X), 2),
    "dense blocks": lambda X: split_in_memory(np.asfortranarray(X), 2),
}


def exactly(result: Result, X: np.ndarray, y: np.ndarray, C: float) -> Fraction:
    """½ Σ (w_j scale_j)² + C/q Σ max(0, 1 − y_i(Σ_j w_j scale_j d_ij + b))^q in rational arithmetic, of stated d."""
    places, scaling = result.columns, result.scaling
    d, slopes, b = [], [], Fraction(result.intercept)
    for name, w in result.weights.items():
        shift, scale = scaling["shift"][name], scaling["scale"][name]
        values = X[:, places[name]] - shift
        values /= scale
        d.append([Fraction(value) for value in values.tolist()])
        slopes.append(Fraction(w) * Fraction(scale))
        b += Fraction(w) * Fraction(shift)
    power = 2 if result.params["loss"] == "squared-hinge" else 1
    total = sum((one * one for one in slopes), Fraction(0)) / 2
    for i, label in enumerate(y.tolist()):
        score = b + sum((slope * column[i] for slope, column in zip(slopes, d, strict=True)), Fraction(0))
        total += Fraction(C) / power * max(Fraction(0), 1 - int(label) * score) ** power
    return total


@pytest.mark.sampled(67)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("seed", range(8))
def test_they_are_one_problem(seed: int, loss: str, C: float) -> None:
    X, y = drawn(seed)
    data = {name: Instance.from_arrays(store(X), y, scale="standard") for name, store in STORED.items()}
    found = {name: mipfs.solve(mipfs.Problem(one, M=2, C=C, loss=loss)) for name, one in data.items()}
    for name, one in found.items():
        exact = exactly(one, X, y, C)
        assert abs(Fraction(one.objective) - exact) <= Fraction(1e-11) * exact, name
        assert "center" not in one.scaling
        for other in found.values():
            assert one.bound <= other.objective * (1 + 1e-11)
        for where in ("dense", "sparse"):
            report = mipfs.verify(one, data[where])
            assert report.accepted, (name, where, report.reason)
            assert report.objective == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("kind", ["standard", "unit"])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_stored_and_what_is_rounded_off_add_up(seed: int, kind: Any) -> None:
    X, y = drawn(seed)
    for name, store in STORED.items():
        data = Instance.from_arrays(store(X), y, scale=kind)
        block, of = data.exactly(np.arange(X.shape[1]))
        values = block.values.toarray() if block.is_sparse else block.values
        stated = matrix.scaled_user_values(X, data.shift, data.scale)
        np.testing.assert_array_equal(data.stated(np.arange(X.shape[1])), stated)
        for j, column in enumerate(stated.T.tolist()):
            mine = np.flatnonzero(of == j)
            for i, value in enumerate(column):
                parts = [Fraction(float(values[i, k])) - Fraction(float(block.center[k])) for k in mine]
                assert sum(parts, Fraction(0)) == Fraction(value), (name, j, i)


def test_full_columns_have_the_bits_of_dense_ones() -> None:
    for seed in range(6):
        X, _ = drawn(seed)
        full = np.all(X != 0, axis=0)
        dense, _, *moments = matrix.scale_columns(np.asfortranarray(X), "standard")
        for stored in (sparse.csc_array(X), split_in_memory(sparse.csc_array(X), 2)):
            values, center, *found = matrix.scale_columns(stored, "standard")
            whole = values.toarray() if sparse.issparse(values) else values[:, :].toarray()
            np.testing.assert_array_equal(whole[:, full], dense[:, full])
            assert not np.any(center[full])
            assert np.all(center[~full])
            for one, other in zip(found, moments, strict=True):
                np.testing.assert_array_equal(one[full], other[full])


def test_another_scale_than_that_of_the_data_is_refused() -> None:
    X, y = drawn(3)
    for store in (np.asfortranarray, sparse.csc_array):
        data = Instance.from_arrays(store(X), y, scale="standard")
        found = mipfs.solve(mipfs.Problem(data, M=2, C=1.0))
        assert found.claim is not None
        j = next(j for j in (2, 3, 4) if data.feature_names[j] not in found.selected)
        for name, values in (("shift", data.shift), ("scale", data.scale)):
            for factor, accepted in ((1 + 1e-15, True), (1 + 1e-9, False)):
                moved = values.copy()
                moved[j] *= factor
                texts = np.array([float(value).hex().encode() for value in moved])
                scaling = {**found.claim.scaling, f"column_{name}": texts}
                report = mipfs.verify(replace(found, claim=replace(found.claim, scaling=scaling)), data)
                assert report.accepted == accepted, report.reason


def test_the_first_rules_know_a_centre_and_the_second_do_not() -> None:
    X, y = drawn(3)
    data = Instance.from_arrays(sparse.csc_array(X), y, scale="standard")
    found = mipfs.solve(mipfs.Problem(data, M=2, C=1.0))
    document = json.loads(found.to_json())
    assert document["rules"] == 6
    document["scaling"]["center"] = {}
    changed = replace(Result.from_json(json.dumps(document)), claim=found.claim)
    assert "center" in mipfs.verify(changed, data).reason
    first = data.by_rules(1)
    divided = X / first.scale
    np.testing.assert_array_equal(first.X.toarray(), divided)
    np.testing.assert_array_equal(first.center, first.shift / first.scale)
    assert np.all(first.center)
    assert not mipfs.verify(replace(found, rules=1), data).accepted


KINDS_OF_PROBLEM: dict[str, dict[str, Any]] = {
    "a measure": {"loss": "structural", "measure": "f1", "bias": False},
    "a measure with an intercept": {"loss": "structural", "measure": "roc-auc", "bias": True},
    "functions": {"loss": "squared-hinge", "atoms": "splines"},
    "products": {"loss": "squared-hinge", "atoms": "pairs"},
}


def problem_of(data: Instance, kind: str) -> Any:
    given = dict(KINDS_OF_PROBLEM[kind])
    if "atoms" in given:
        given["atoms"] = mipfs.atoms.make(given["atoms"], data)
    return mipfs.Problem(data, M=2, C=0.1, **given)


def restated(result: Result, data: Instance, j: int, factor: float) -> list[Result]:
    """A result whose certificate has another shift, or another scale, of feature j."""
    assert result.claim is not None
    found = []
    for name, values in (("shift", data.shift), ("scale", data.scale)):
        moved = values.copy()
        moved[j] *= factor
        if moved[j] == values[j] == 0.0:  # of scale "unit"
            continue
        texts = np.array([float(value).hex().encode() for value in moved])
        scaling = {**result.claim.scaling, f"column_{name}": texts}
        found.append(replace(result, claim=replace(result.claim, scaling=scaling)))
    return found


def mild(seed: int, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Columns with means that are not 0, a third of them zeros."""
    r = np.random.default_rng(seed)
    X = np.where(r.random((n, 5)) < 0.3, 0.0, r.normal(3.0, 1.0, (n, 5)))
    return X, np.where(X[:, 0] - X[:, 1] + r.normal(size=n) > 0, 1.0, -1.0)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", KINDS_OF_PROBLEM)
def test_the_certificate_states_the_scaling_of_all_features_whatever_is_made_of_them(kind: str) -> None:
    """What is stated defines the problem; of scaled values alone what is made of them cannot be made again."""
    apart = 0
    scale: Any = "unit" if kind == "products" else "standard"  # of no implicitly centred columns
    for seed in range(4):
        X, y = mild(seed)
        data = {
            "dense": Instance.from_arrays(np.asfortranarray(X), y, scale=scale),
            "sparse": Instance.from_arrays(sparse.csc_array(X), y, scale=scale),
        }
        same = all(
            np.array_equal(getattr(data["dense"], name), getattr(data["sparse"], name)) for name in ("shift", "scale")
        )
        apart += not same
        for name, one in data.items():
            found = mipfs.solve(problem_of(one, kind))
            assert found.claim is not None
            for what, values in (("shift", one.shift), ("scale", one.scale)):
                stated = [float.fromhex(text.decode()) for text in found.claim.scaling[f"column_{what}"]]
                assert stated == values.tolist()
            assert mipfs.verify(found, one).accepted
            assert mipfs.verify(replace(found, claim=replace(found.claim, scaling={})), one).accepted
            other = "sparse" if name == "dense" else "dense"
            report = mipfs.verify(found, data[other])
            carried = same or kind.startswith("a measure") or (kind == "functions" and other == "sparse")
            assert report.accepted == carried, (name, report.reason)
            assert carried or "give the data stored as it was" in report.reason
            unused = next(j for j, feature in enumerate(one.feature_names) if feature not in "".join(found.selected))
            for forged in restated(found, one, unused, 1 + 1e-9):
                reason = mipfs.verify(forged, one).reason
                assert "in the certificate is not that of the data" in reason, reason
            for near in restated(found, one, unused, 1 + 4e-16):
                report = mipfs.verify(near, data["sparse"])
                unmoved = kind == "products" and (not same or near.claim.scaling != found.claim.scaling)
                assert report.accepted or (unmoved and "stored as it was" in report.reason), report.reason
    assert apart
