"""The additive Gaussian map against its kernel, its columns against scikit-learn's SVM, and as the checker makes it."""

from __future__ import annotations

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
from mipfs.errors import UsageError
from mipfs.problem import Problem
from tests.additive_cases import dense

R = np.random.default_rng(4)
X = R.standard_normal((60, 4))
Y = np.where(np.abs(X[:, 1]) > 0.8, 1.0, -1.0)


def gauss(x: np.ndarray, z: np.ndarray, width: float = 1.0) -> np.ndarray:
    return np.exp(-((x[:, None] - z[None, :]) ** 2) / (2.0 * width**2))


def test_the_rule_meets_the_kernel_and_draws_do_on_average() -> None:
    x = np.linspace(-2.0, 2.0, 41)
    data = Instance.from_arrays(x[:, None], np.resize([1.0, -1.0], 41))
    exact = gauss(x, x)
    errors = []
    for pairs in (2, 5, 9):
        Z = make("additive-gaussian", data, pairs=pairs).expand(np.array([0]))
        assert Z.shape == (41, 2 * pairs + 1)
        np.testing.assert_allclose(np.square(Z).sum(axis=1), 1.0, atol=1e-12)
        errors.append(float(np.abs(Z @ Z.T - exact).max()))
    assert errors[0] > errors[1] > errors[2]
    assert errors[1] < 0.02
    assert errors[2] < 1e-5
    drawn = [make("additive-gaussian", data, pairs=40, seed=s).expand(np.array([0])) for s in range(60)]
    assert drawn[0].shape == (41, 80)
    assert np.abs(np.mean([Z @ Z.T for Z in drawn], axis=0) - exact).max() < 0.06
    wide = make("additive-gaussian", data, width=3.0).expand(np.array([0]))
    assert np.abs(wide @ wide.T - gauss(x, x, 3.0)).max() < 1e-5


@pytest.mark.parametrize("options", [{}, {"pairs": 3, "seed": 7, "width": 0.5}])
def test_the_problem_is_that_of_the_columns_and_is_verified(options: dict[str, Any], tmp_path: Path) -> None:
    thin = np.where(np.abs(X) > 0.3, X, 0.0)
    for values, scale in ((X, "standard"), (sparse.csc_array(thin), "unit")):
        data = Instance.from_arrays(values, Y, scale=scale)
        atoms = make("additive-gaussian", data, **options)
        result = mipfs.solve(Problem(data, M=1, C=2.0, atoms=atoms), gap=1e-7)
        assert result.selected == ("x2",)
        Z = dense(atoms.expand(np.array([1])))
        svm = SVC(kernel="linear", C=2.0, tol=1e-9).fit(Z, Y)
        lost = np.maximum(0.0, 1.0 - Y * svm.decision_function(Z)).sum()
        assert result.objective == pytest.approx(0.5 * float(svm.coef_[0] @ svm.coef_[0]) + 2.0 * lost, rel=1e-5)
        assert mipfs.verify(result, data).accepted
    target = tmp_path / "r.json"
    result.save(target)
    document = json.loads(target.read_text())
    for name, value in (("width", 2.0), ("pairs", 4), ("seed", 8), ("pairs", "five"), ("more", 1)):
        forged = json.loads(json.dumps(document))
        forged["atoms"]["made"]["options"][name] = value
        target.write_text(json.dumps(forged))
        assert not mipfs.verify(mipfs.Result.load(target), data).accepted


@pytest.mark.slow
def test_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = AdditiveFGMClassifier("gaussian", M=1, C=2.0, map_options={"width": 0.7}).fit(X, Y)
    assert model.support_.tolist() == [False, True, False, False]
    assert model.score(X, Y) > 0.9
    file, target = tmp_path / "d.csv", tmp_path / "r.json"
    lines = [",".join(map(repr, [*row, int(y > 0)])) for row, y in zip(X.tolist(), Y, strict=True)]
    file.write_text("a,b,c,d,label\n" + "\n".join(lines))
    args = ["-p", "atoms=additive-gaussian", "-p", "width=0.7", "-p", "M=1", "-q", "--json", str(target)]
    assert main(["solve", "fsp-m", str(file), *args]) == 0
    assert main(["verify", str(target), str(file)]) == 0
    assert "accepted" in capsys.readouterr().out
    assert main(["predict", str(target), str(file)]) == 0
    for given in ({"width": 0.0}, {"pairs": 0}, {"seed": -1}):
        with pytest.raises(UsageError, match=next(iter(given))):
            make("additive-gaussian", Instance.from_arrays(X, Y), **given)
