"""Selecting functions of features: enumeration over scikit-learn, certificates from the raw data, saved results."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from sklearn.svm import SVC

import mipfs
from mipfs import atoms
from mipfs.atoms.additive import Additive
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.structural_svm import structural_svm
from mipfs.models import structural_dual
from tests.additive_cases import KINDS, dense, make

Array = npt.NDArray[np.float64]


def wavy(seed: int, n: int = 60, p: int = 5, **options: Any) -> tuple[Instance, Array]:
    """Labels that no linear function of the features gives; the features."""
    r = np.random.default_rng(seed)
    X = np.round(r.gamma(2.0, 0.5, size=(n, p)), 1)
    X[r.random((n, p)) < 0.2] = 0.0
    y = np.where(np.abs(X[:, 0] - 1.0) + np.abs(X[:, 2] - 0.8) + 0.3 * r.standard_normal(n) < 0.9, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(sparse.csc_array(X) if seed % 2 else X, y, **options), X


def best(made: Additive, M: int, C: float) -> tuple[float, tuple[str, ...]]:
    """The least objective of all selections of M features, by libsvm on sums of dense kernel matrices (hinge, bias)."""
    y, kernels = made.raw.y, []
    for j in range(made.count):
        Z = dense(made.expand(np.array([j]))) * made.scale[j]
        kernels.append(Z @ Z.T)
    found = []
    for chosen in itertools.combinations(range(made.count), M):
        K = sum(kernels[j] for j in chosen)
        svm = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y)
        alpha = svm.dual_coef_.ravel()
        size = alpha @ K[np.ix_(svm.support_, svm.support_)] @ alpha
        loss = np.maximum(0.0, 1.0 - y * svm.decision_function(K)).sum()
        found.append((0.5 * size + C * loss, tuple(made.names[j] for j in chosen)))
    return min(found)


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("name", "options"), [*KINDS, ("additive-hik", {"scaling": "norm"})])
def test_the_proven_best_is_that_of_enumeration(name: str, options: dict[str, Any]) -> None:
    for seed in range(2):
        data, _ = wavy(seed)
        made = make(name, data, **options)
        C = 1.0 if "scaling" not in options else 50.0
        result = mipfs.solve(mipfs.Problem(data, atoms=made, M=2, C=C), "branch", gap=1e-7)
        value, chosen = best(made, 2, C)
        assert result.status is mipfs.Status.OPTIMAL
        assert result.objective == pytest.approx(value, rel=1e-5)
        assert result.selected == chosen
        report = mipfs.verify(result, data)
        assert report.accepted, report.reason
        assert mipfs.verify(result, made.data).accepted, "the data of the problem knows its raw data"
        assert report.bound == pytest.approx(value, rel=1e-5)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("driver", ["kelley", "branch", "gbd", "conic"])
@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_bounds_of_every_driver_and_loss_hold_on_the_raw_data(driver: str, loss: str) -> None:
    for seed, (name, options) in enumerate(KINDS[:1] + KINDS[-1:]):
        data, _ = wavy(seed)
        problem = mipfs.Problem(data, atoms=atoms.make(name, data, **options), M=2, C=1.0, loss=loss, bias=seed == 0)
        result = mipfs.solve(problem, driver, gap=1e-6)
        exact = mipfs.solve(problem, "branch", gap=1e-7)
        assert result.bound <= exact.objective * (1 + 1e-9) <= result.objective * (1 + 1e-6)
        report = mipfs.verify(result, data)
        assert report.accepted, report.reason


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "options"), KINDS)
@pytest.mark.parametrize("scale", ["none", "unit"])
def test_a_saved_result_predicts_from_raw_values(
    tmp_path: Path, name: str, options: dict[str, Any], scale: Any
) -> None:
    data, X = wavy(3, scale=scale)
    problem = mipfs.Problem(data, atoms=atoms.make(name, data, **options), M=2, C=1.0 if scale == "none" else 30.0)
    result = mipfs.solve(problem, "branch")
    result.save(tmp_path / "r.json")
    loaded = mipfs.Result.load(tmp_path / "r.json")
    assert mipfs.verify(loaded, data).accepted
    own = result.decision_function(problem.data)
    for given in (X, sparse.csr_array(X), data):
        np.testing.assert_allclose(loaded.decision_function(given), own, atol=1e-9)
    new = np.random.default_rng(0).gamma(2.0, 0.7, size=(8, X.shape[1]))
    np.testing.assert_array_equal(loaded.decision_function(new), result.decision_function(new))
    moved = new.copy()
    unused = [j for j in range(X.shape[1]) if f"x{j + 1}" not in result.selected]
    moved[:, unused] = 99.0
    np.testing.assert_array_equal(loaded.decision_function(moved), loaded.decision_function(new))
    assert loaded.to_json() == result.to_json() or json.loads(loaded.to_json())["weights"] == dict(result.weights)
    assert "norm of its function" in loaded.summary()
    assert f"2 of {X.shape[1]} features" in repr(loaded)


def test_data_frames_and_words() -> None:
    pandas = pytest.importorskip("pandas")
    colours = ["red", "blue", "green"] * 4
    frame = pandas.DataFrame({"size": np.arange(12.0), "colour": colours, "y": [1, 1, 1, 0, 0, 0] * 2})
    data = mipfs.read(frame, label="y")
    result = mipfs.solve(mipfs.Problem(data, atoms=atoms.make("additive-hik", data), M=3, C=1.0), "branch")
    assert mipfs.verify(result, data).accepted
    np.testing.assert_allclose(result.decision_function(frame), result.decision_function(data), atol=1e-12)


def test_rows_and_forced_names_are_about_features() -> None:
    data, _ = wavy(0)
    free = mipfs.solve(mipfs.Problem(data, atoms=atoms.make("additive-hik", data), M=2, C=1.0), "branch")
    first = free.selected[0]
    row = mipfs.Row("not both", {free.selected[0]: 1.0, free.selected[1]: 1.0}, -np.inf, 1.0, "rows.toml")
    own = Instance.from_arrays(data.block().dense(), data.y, rows=[row])
    problem = mipfs.Problem(own, atoms=atoms.make("additive-hik", own), M=2, C=1.0, forced_in=(first,))
    result = mipfs.solve(problem, "branch")
    assert first in result.selected
    assert free.selected[1] not in result.selected
    assert mipfs.verify(result, own).accepted
    assert problem.rows is not None
    without = mipfs.solve(problem.replace(rows=problem.rows.take([])), "branch")
    report = mipfs.verify(without, own)  # the model leaves a row of the data out: said, and what it states is proven
    assert report.accepted
    assert any("not both" in one for one in report.differs)
    penalised = Instance.from_arrays(data.block().dense(), data.y, penalty={"x1": 1.0})
    with pytest.raises(UsageError, match="give lam instead"):
        mipfs.Problem(penalised, atoms=atoms.make("additive-hik", penalised))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "options"), KINDS)
def test_forgeries_are_rejected(name: str, options: dict[str, Any]) -> None:
    from mipfs.check.tree import check

    data, _ = wavy(1)
    result = mipfs.solve(mipfs.Problem(data, atoms=atoms.make(name, data, **options), M=2, C=1.0), "branch")
    assert result.claim is not None
    arrays, document = result.claim.proof.arrays(), json.loads(result.to_json())
    document["certificate"] = result.claim.entry()
    assert check(document, arrays, data).accepted
    first = result.selected[0]

    def forged(*path: Any, value: Any) -> bool:
        other = json.loads(json.dumps(document))
        place = other
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        return check(other, arrays, data).accepted

    made = document["atoms"]["made"]
    assert not forged("atoms", "made", "name", value="additive-other")
    assert not forged("atoms", "made", "data_sha256", value="0" * 64)
    assert not forged("atoms", "made", "n_features", value=99)
    assert not forged("atoms", "made", "features", first, "column", value=4 - made["features"][first]["column"])
    assert not forged("atoms", "made", "features", first, "shift", value=0.5)
    assert not forged("atoms", "made", "features", value={})
    key = "knots" if "knots" in made["features"][first]["map"] else "least"
    changed = [k + 0.01 for k in made["features"][first]["map"][key]] if key == "knots" else 0.01
    assert not forged("atoms", "made", "features", first, "map", key, value=changed)
    for option, value in made["options"].items():
        wrong = not value if isinstance(value, bool) else 3 if value is None else value + 1
        assert not forged("atoms", "made", "options", option, value=wrong), option
    assert not forged("bound", value=document["bound"] * 1.01)
    weight = next(iter(document["weights"]))
    assert not forged("weights", weight, value=document["weights"][weight] + 0.5)
    assert not forged("selected", value=[*document["selected"], "x9"])
    other, _ = wavy(5)
    assert not check(document, arrays, other).accepted


def test_a_measure_over_functions_is_the_structural_svm_on_their_map() -> None:
    """Every function of a feature by the eigenvectors of its kernel min(x, z); the tree says who solves it."""
    r = np.random.default_rng(0)
    X = r.random((20, 3))
    y = np.where(X[:, 0] + X[:, 1] + 0.3 * r.standard_normal(20) > 1.0, 1, -1)
    data = Instance.from_arrays(X, y)
    alone = {}
    for j, name in enumerate(data.feature_names):
        values, vectors = np.linalg.eigh(np.minimum.outer(X[:, j], X[:, j]))
        mapped = Instance.from_arrays(vectors * np.sqrt(np.maximum(values, 0.0)), y)
        alone[name] = structural_svm(mapped, "f1", 20.0, tol=1e-6).objective
    made = atoms.make("additive-hik", data)
    problem = structural_dual.problem(data, measure="f1", M=1, C=20.0, bias=False, atoms=made)
    result = mipfs.solve(problem, "gbd")
    assert result.status is mipfs.Status.OPTIMAL
    assert list(result.selected) == [min(alone, key=lambda name: alone[name])]
    assert result.objective == pytest.approx(min(alone.values()), rel=1e-5)
    with pytest.raises(UsageError, match=r"takes neither the structural loss nor .*; take driver 'gbd'"):
        mipfs.solve(problem, "branch")


def test_feature_generation_makes_no_wide_dense_matrix() -> None:
    import tracemalloc

    r = np.random.default_rng(0)
    X = r.random((1200, 60))
    data = Instance.from_arrays(X, np.where(np.abs(X[:, 0] - 0.5) < 0.25, 1.0, -1.0))
    problem = mipfs.Problem(data, atoms=atoms.make("additive-hik", data), loss="squared-hinge", M=3, C=1.0)
    mipfs.solve(problem, "kelley", T=1, refit=False)
    tracemalloc.start()
    result = mipfs.solve(problem, "kelley", T=3, refit=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    n, K = problem.data.block().shape
    assert K == 60 * 1200
    assert peak < 0.2 * 8 * n * K
    assert result.relaxed is not None
    assert "x1" in result.relaxed["sigma"]
    assert mipfs.verify(result, data).accepted


def test_odd_data() -> None:
    r = np.random.default_rng(1)
    X = np.zeros((20, 4))
    X[:, 1], X[:, 2] = 3.0, r.random(20)
    X[:, 3] = X[:, 2]
    y = np.where(X[:, 2] > 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    for name, options in KINDS:
        data = Instance.from_arrays(X, y)
        made = make(name, data, **options)
        result = mipfs.solve(mipfs.Problem(data, atoms=made, M=1, C=1.0), "branch", gap=1e-7)
        assert result.objective == pytest.approx(best(made, 1, 1.0)[0], rel=1e-5)
        assert mipfs.verify(result, data).accepted
        one = Instance.from_arrays(X[:, 2:3], y)
        for M in (0, 1):
            result = mipfs.solve(mipfs.Problem(one, atoms=atoms.make(name, one, **options), M=M, C=1.0), "kelley")
            assert mipfs.verify(result, one).accepted
