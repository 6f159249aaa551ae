"""Proven optima against brute force and against values found before with another solver."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mipfs
from mipfs import models
from tests import differential, oracles, strategies

Array = npt.NDArray[np.float64]

KINDS = list(
    itertools.islice(
        zip(itertools.count(1), itertools.cycle(strategies.ROWS), itertools.cycle(strategies.DATA), strict=False), 60
    )
)
"""60 cases: with 12 kinds of rows and 11 of data the two cycles pair up differently every time."""


def the_case(kind: tuple[int, str, str]) -> strategies.Case:
    """A case of the given seed, rows and data."""
    seed, rows, data = kind
    return strategies.case(900_000 + seed, rows=rows, data=data)


@pytest.mark.sampled(47)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind)).replace(" ", "_"))
def test_gbd_equals_brute_force(kind: tuple[int, str, str]) -> None:
    differential.check(the_case(kind), differential.DRIVERS["gbd"], mipfs.solve)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS[::6], ids=lambda kind: "-".join(map(str, kind)).replace(" ", "_"))
def test_monolithic_equals_brute_force(kind: tuple[int, str, str]) -> None:
    pytest.importorskip("pyscipopt", reason="the monolithic driver needs SCIP (extra 'scip')")
    differential.check(the_case(kind), differential.DRIVERS["monolithic"], mipfs.solve)


@pytest.mark.slow
def test_enough_instances_have_a_solution() -> None:
    assert sum(bool(the_case(kind).allowed) for kind in KINDS) >= 40


# Published optima -----------------------------------------------------------------------------------------


def aytug_one(n: int, p: int, M: int, seed: int = 1) -> tuple[Array, Array]:
    """Aytug 2015, section 4: points in the unit ball, labelled by a hyperplane through M of the features."""
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    X /= np.linalg.norm(X, axis=1).max()
    w = np.zeros(p)
    S = r.choice(p, M, False)
    w[S] = r.standard_normal(M)
    return X, np.where(X @ w > 0, 1.0, -1.0)


def wdbc() -> tuple[Array, Array]:
    """Wisconsin diagnostic breast cancer, as scikit-learn ships it."""
    from sklearn.datasets import load_breast_cancer

    loaded = load_breast_cancer()
    return np.asarray(loaded.data, dtype=float), np.where(loaded.target > 0, 1.0, -1.0)


def proves(problem: mipfs.Problem, optimum: float, digits: float) -> mipfs.Result:
    """Solve to the default gap, and compare with an optimum known to `digits`: no bound above, no objective below."""
    result: mipfs.Result = mipfs.solve(problem, driver="gbd", time_limit=120)
    assert result.status is mipfs.Status.OPTIMAL
    assert optimum - digits <= result.objective <= (optimum + digits) * (1 + 1.01e-4)
    assert result.bound >= result.objective * (1 - 1e-4)
    assert max(record.bound for record in result.trace) <= optimum + digits
    return result


@pytest.mark.sampled(11)
@pytest.mark.parametrize(
    ("p", "M", "C", "optimum", "digits"),
    [
        (20, 5, 1.0, 172.176, 1e-3),
        (20, 10, 1.0, 174.809, 1e-3),
        (50, 10, 1.0, 204.504, 1e-3),
        # Found by trying all 15,504 supports; the value published was a solver's, 1e-5 lower.
        (20, 5, 32.0, 1614.217737, 1e-6),
        (20, 10, 32.0, 1660.786, 1e-3),
        (50, 10, 32.0, 1867.432, 1e-3),
        pytest.param(50, 25, 32.0, 1434.125, 1e-3, marks=pytest.mark.slow),
    ],
)
def test_aytug_one(p: int, M: int, C: float, optimum: float, digits: float) -> None:
    X, y = aytug_one(500, p, M)
    problem = mipfs.Problem(mipfs.Instance.from_arrays(X, y), M=M, C=C)
    result = proves(problem, optimum, digits)
    columns = [int(name[1:]) - 1 for name in result.selected]
    assert len(columns) <= M
    own = oracles.svm_value(X[:, columns], y, np.full(500, C), True)
    assert result.objective == pytest.approx(own.upper, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("M", "C", "optimum"),
    [
        # Found by trying all 4,060 supports. The value published, 53.602661, was a solver's at its own tolerance of
        # integrality: no support reaches it.
        (3, 1.0, 53.60762206),
        (10, 0.1, 5.15963909),
    ],
)
def test_wdbc(M: int, C: float, optimum: float) -> None:
    X, y = wdbc()
    result = proves(mipfs.Problem(mipfs.Instance.from_arrays(X, y, scale="standard"), M=M, C=C), optimum, 2e-8)
    columns = [int(name[1:]) - 1 for name in result.selected]
    own = oracles.svm_value(strategies.scaled_as(X, "standard")[:, columns], y, np.full(len(y), C), True)
    assert own.lower <= result.objective <= own.upper * (1 + 1e-6)


WDBC_M5 = 44.257777, 44.26010463
"""C = 1, M = 5: the value published (a solver's, at its own tolerances), and that of x14, x22, x24, x28, x29."""


@pytest.mark.slow
def test_a_time_limit_leaves_a_valid_bound_and_a_classifier_that_recomputes() -> None:
    X, y = wdbc()
    names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
    problem = mipfs.Problem(mipfs.Instance.from_arrays(X, y, scale="standard"), M=5, C=1.0)
    result = mipfs.solve(problem, driver="gbd", time_limit=1.0, gap=1e-6)
    assert (result.status, result.stop_reason) == (mipfs.Status.FEASIBLE, mipfs.StopReason.TIME_LIMIT)
    assert 0 < result.bound <= WDBC_M5[1]
    document = json.loads(result.to_json())
    again, _ = oracles.objective_of_json(document, X, y, np.ones(len(y)), np.zeros(X.shape[1]), names)
    assert again == pytest.approx(document["objective"], rel=1e-9)
    assert again >= WDBC_M5[0]
    assert 0 < len(result.selected) <= 5


# Identities between the formulations ----------------------------------------------------------------------


def sample(n: int = 60, p: int = 10, seed: int = 4) -> tuple[Array, Array]:
    """A small problem that no feature separates."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.where(X @ rng.standard_normal(p) + rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("C", [0.25, 1.0, 32.0])
def test_with_all_features_both_formulations_are_the_plain_svm(C: float) -> None:
    X, y = sample()
    data = mipfs.Instance.from_arrays(X, y)
    plain = oracles.svm_value(X, y, np.full(len(y), C), True)
    for model in (models.fsp_m(data, M=10, C=C), models.fsp_lambda(data, lam=0.0, C=C)):
        result = mipfs.solve(model, driver="gbd", gap=1e-7)
        assert result.status is mipfs.Status.OPTIMAL
        assert result.objective == pytest.approx(plain.upper, rel=1e-6)
        assert result.bound <= plain.upper * (1 + 1e-9)
        weights = np.array([result.weights.get(f"x{j + 1}", 0.0) for j in range(10)])
        np.testing.assert_allclose(weights, plain.w, atol=1e-3 * np.abs(plain.w).max())


@pytest.mark.slow
def test_fsp_lambda_picks_the_support_of_fsp_m_for_the_same_number_of_features() -> None:
    X, y = sample()
    data = mipfs.Instance.from_arrays(X, y)
    sizes = set()
    for lam in (0.05, 0.5, 2.0, 8.0):
        priced = mipfs.solve(models.fsp_lambda(data, lam=lam, C=1.0), driver="gbd", gap=1e-7)
        M = len(priced.selected)
        counted = mipfs.solve(models.fsp_m(data, M=M, C=1.0), driver="gbd", gap=1e-7)
        assert set(counted.selected) == set(priced.selected)
        assert counted.objective + lam * M == pytest.approx(priced.objective, rel=1e-6)
        sizes.add(M)
    assert len(sizes) >= 3


# One budget, given in three ways --------------------------------------------------------------------------

COST = (3.0, 1.5, 2.0, 2.5, 1.0, 4.0, 0.5, 2.0, 3.5, 1.0)
BUDGET = 6.0


def write_data(folder: Path, beside: str = "") -> Path:
    """The sample as svmlight, with costs and more text in the .toml beside it."""
    X, y = sample()
    lines = [
        f"{int(label):+d} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
        for label, row in zip(y, X.tolist(), strict=True)
    ]
    path = folder / "sample.svm"
    path.write_text("\n".join(lines) + "\n")
    cost = "\n".join(f"x{j + 1} = {c}" for j, c in enumerate(COST))
    path.with_suffix(".toml").write_text(f"[cost]\n{cost}\n{beside}")
    return path


def from_command_line(path: Path, *more: str) -> dict[str, Any]:
    """What ``mipfs solve fsp-m`` writes, M = 6."""
    command = [sys.executable, "-m", "mipfs", "solve", "fsp-m", str(path), "-p", "M=6", "-p", "C=1"]
    command += ["--driver", "gbd", "--gap", "1e-7", "--quiet", "--json", "-", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.slow
def test_a_budget_in_pyomo_in_the_toml_and_in_an_lp_file_give_the_same_optimum(tmp_path: Path) -> None:
    import pyomo.environ as pyo

    X, y = sample()
    names = [f"x{j + 1}" for j in range(10)]
    row = oracles.LinearRow("budget", dict(zip(names, COST, strict=True)), -np.inf, BUDGET)
    exact = oracles.brute_force(
        X, y, np.ones(len(y)), oracles.allowed_supports(names, 6, [row]), np.zeros(10), True, tie=1e-6
    )
    free = oracles.brute_force(X, y, np.ones(len(y)), oracles.allowed_supports(names, 6), np.zeros(10), True)
    assert exact.value.lower > free.value.upper * 1.01  # the budget matters
    assert len(exact.optimal) == 1
    expected = {names[j] for j in exact.optimal[0]}

    plain, beside = tmp_path / "plain", tmp_path / "toml"
    plain.mkdir()
    beside.mkdir()
    data = mipfs.read(write_data(plain))
    model = models.fsp_m(data, M=6, C=1.0)
    sigma = model.select.sigma
    model.select.budget = pyo.Constraint(expr=sum(data.cost[j] * sigma[j] for j in sigma) <= BUDGET)
    result = mipfs.solve(model, driver="gbd", gap=1e-7)

    in_toml = mipfs.read(write_data(beside, f"[select]\nbudget = {BUDGET}\n"))
    toml = mipfs.solve(models.fsp_m(in_toml, M=6, C=1.0), driver="gbd", gap=1e-7)

    rows = tmp_path / "rows.lp"
    terms = " + ".join(f"{c} {name}" for name, c in zip(names, COST, strict=True))
    rows.write_text(f"Minimize\nobj:\nSubject To\nbudget: {terms} <= {BUDGET}\nEnd\n")
    documents = [
        json.loads(result.to_json()),
        json.loads(toml.to_json()),
        from_command_line(plain / "sample.svm", "--subject-to", str(rows)),
        from_command_line(beside / "sample.svm"),
    ]
    for document in documents:
        assert document["status"] == "OPTIMAL"
        assert document["objective"] == pytest.approx(exact.value.upper, rel=1e-6)
        assert document["bound"] == pytest.approx(exact.value.upper, rel=1e-6)
        assert set(document["selected"]) == expected
