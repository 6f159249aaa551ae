"""The generalised intersection kernel min(|x|^β, |z|^β) of Tan 2014 (26): against its definition."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

import mipfs
from mipfs import AdditiveFGMClassifier
from mipfs.atoms import make
from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.problem import Problem
from tests.additive_cases import dense

OPTIONS: list[dict[str, Any]] = [{"beta": 0.5}, {"beta": 2.5}, {"beta": 0.5, "absolute": True}, {"absolute": True},
                                 {"beta": 0.7, "levels": 4}]  # fmt: skip


def draw(seed: int, negative: bool, n: int = 30, p: int = 4) -> np.ndarray:
    X = np.round(np.random.default_rng(seed).standard_normal((n, p)) * 3.0, 1)
    return X if negative else np.abs(X)


def kernel(x: np.ndarray, z: np.ndarray, beta: float = 1.0, **more: Any) -> np.ndarray:
    return np.minimum(np.abs(x)[:, None] ** beta, np.abs(z)[None, :] ** beta)


@pytest.mark.parametrize("options", OPTIONS)
def test_columns_and_scores_are_those_of_the_kernel(options: dict[str, Any]) -> None:
    X = draw(1, options.get("absolute", False))
    y = np.resize([1.0, -1.0], 30)
    v = np.random.default_rng(2).standard_normal(30)
    for made in (X, sparse.csc_array(X)):
        atoms = make("additive-hik", Instance.from_arrays(made, y), **options)
        for j in range(4):
            Phi = dense(atoms.expand(np.array([j])))
            x = X[:, j]
            if "levels" in options:
                top = (np.abs(x) ** options["beta"]).max()
                x = (np.rint(np.abs(x) ** options["beta"] / top * 4) / 4 * top) ** (1 / options["beta"])
            K = kernel(x, x, **options)
            np.testing.assert_allclose(Phi @ Phi.T, K, atol=1e-9)
            assert atoms.scores(v)[j] == pytest.approx(float(v @ K @ v), rel=1e-9)


def test_the_svm_is_that_of_the_summed_kernel_also_on_new_rows() -> None:
    options = {"beta": 0.5, "absolute": True}
    X, new = draw(3, True), draw(4, True, 12)
    y = np.where(np.abs(X[:, 0]) > 2.0, 1.0, -1.0)
    data = Instance.from_arrays(X, y)
    problem = Problem(data, C=2.0, atoms=make("additive-hik", data, **options))
    result = mipfs.solve(problem.replace(M=4), gap=1e-8)
    used = [data.feature_names.index(name) for name in result.selected]
    K = sum(kernel(X[:, j], X[:, j], 0.5) for j in used)
    svm = SVC(kernel="precomputed", C=2.0, tol=1e-10).fit(K, y)
    # new values are exact where they, or the training value, are training values or beyond: others interpolate
    at = np.zeros((12, 4))
    for j in used:
        known = np.abs(X[:, j])
        at[:, j] = known[np.argmin(np.abs(known[None, :] - np.abs(new[:, j])[:, None]), axis=1)]
    expected = svm.decision_function(sum(kernel(at[:, j], X[:, j], 0.5) for j in used))
    np.testing.assert_allclose(result.decision_function(at), expected, atol=2e-3)
    assert mipfs.verify(result, data).accepted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", OPTIONS)
def test_the_checker_makes_it_anew_and_refuses_another_power(options: dict[str, Any], tmp_path: Path) -> None:
    X = draw(5, options.get("absolute", False))
    data = Instance.from_arrays(X, np.where(np.abs(X[:, 1]) > 2.0, 1.0, -1.0))
    result = mipfs.solve(Problem(data, M=2, C=1.0, atoms=make("additive-hik", data, **options)))
    assert mipfs.verify(result, data).accepted
    target = tmp_path / "r.json"
    result.save(target)
    document = json.loads(target.read_text())
    for name, value in (("beta", 0.6), ("absolute", "yes"), ("beta", 0.0), ("more", 1)):
        forged = copy.deepcopy(document)
        forged["atoms"]["made"]["options"][name] = value
        target.write_text(json.dumps(forged))
        assert not mipfs.verify(mipfs.Result.load(target), data).accepted


@pytest.mark.slow
def test_refused_and_used_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = draw(6, True)
    y = np.where(np.abs(X[:, 2]) > 2.0, 1, 0)
    data = Instance.from_arrays(X, np.where(y, 1.0, -1.0))
    with pytest.raises(DataError, match="Negative values in data"):
        make("additive-hik", data, beta=0.5)
    with pytest.raises(UsageError, match="give one of them"):
        make("additive-hik", data, shift=True, absolute=True)
    with pytest.raises(UsageError, match=r"beta = 0 must be a positive number up to 64"):
        make("additive-hik", data, beta=0)
    model = AdditiveFGMClassifier("hik", M=1, C=1.0, map_options={"beta": 0.5, "absolute": True}).fit(X, y)
    assert model.support_.tolist() == [False, False, True, False]
    assert model.score(X, y) > 0.9
    file = tmp_path / "d.csv"
    file.write_text(
        "a,b,c,d,label\n" + "\n".join(",".join(map(repr, [*row, int(k)])) for row, k in zip(X.tolist(), y, strict=True))
    )
    args = ["-p", "atoms=additive-hik", "-p", "beta=0.5", "-p", "absolute=true", "-p", "M=1", "-q"]
    target = tmp_path / "r.json"
    assert main(["solve", "fsp-m", str(file), *args, "--json", str(target)]) == 0
    assert json.loads(target.read_text())["selected"] == ["c"]
    assert main(["verify", str(target), str(file)]) == 0
    assert "accepted" in capsys.readouterr().out
