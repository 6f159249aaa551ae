"""Problems, models, results and estimators come back whole from a pickle and a deep copy, for every driver and loss."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import models
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance
from mipfs.problem import Problem

COPIES: tuple[Callable[[Any], Any], ...] = (lambda made: pickle.loads(pickle.dumps(made)), copy.deepcopy)
CARRIED = [
    (driver, loss)
    for driver, losses in {
        "branch": ("hinge", "squared-hinge", "logistic", "structural"),
        "gbd": ("hinge", "squared-hinge", "logistic", "structural"),
        "kelley": ("hinge", "squared-hinge", "logistic"),
        "conic": ("hinge", "squared-hinge", "logistic"),
        "two_layer": ("structural",),
        "monolithic": ("hinge",),
    }.items()
    for loss in losses
]


def data(seed: int = 0, n: int = 30, p: int = 6) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    return Instance.from_arrays(X, np.where(X[:, 0] + X[:, 1] + r.standard_normal(n) > 0, 1.0, -1.0))


def problem(loss: str, rows: bool) -> Problem:
    more = {"bias": False, "measure": "f1", "C": 30.0} if loss == "structural" else {}
    made = Problem(data(), loss=loss, M=3, **more)
    return made.with_rows(np.ones((1, 6)), 1, 2) if rows else made


@pytest.mark.sampled(37)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize(("driver", "loss"), CARRIED)
def test_a_problem_and_its_result_after_the_solve(driver: str, loss: str, rows: bool) -> None:
    if driver == "monolithic":
        pytest.importorskip("pyscipopt", reason="the monolithic driver needs SCIP (extra 'scip')")
    made = problem(loss, rows)
    result = mipfs.solve(made, driver)
    for copied in COPIES if driver != "monolithic" else COPIES[:1]:  # a process for each
        again = copied(result)
        assert again.to_json() == result.to_json()
        if result.claim is not None:
            report = mipfs.verify(again, data())
            earned = result.bound_source != "solver"  # of a solver's word there is no proof
            assert report.accepted == earned, report.reason
        assert mipfs.solve(copied(made), driver).objective == result.objective
    if again.claim is not None:
        assert mipfs.verify(copied(again), data()).accepted == earned, "after the proof was made too"


@pytest.mark.parametrize("kind", ["scaled", "groups", "tree"])
def test_problems_over_atoms(kind: str) -> None:
    held = data()
    atoms: Any = {
        "scaled": lambda: Features(held, "norm"),
        "groups": lambda: Groups(held, {"a": ["x1", "x2"], "b": ["x2", "x3"], "c": ["x4"]}),
        "tree": lambda: Tree(held, {"x1": "u", "x2": "u", "u": "v", "x3": "v"}),
    }[kind]()
    made = Problem(held, M=2, atoms=atoms)
    result = mipfs.solve(made)
    for copied in COPIES:
        assert mipfs.solve(copied(made)).objective == result.objective
        assert copied(result).to_json() == result.to_json()


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("fsp_m", {"M": 2}),
        ("fsp_lambda", {"lam": 0.2}),
        ("qcqp_relaxation", {"M": 2}),
        ("reduced_mkl", {"pool": [["x1", "x2"], ["x3"]]}),
        ("nmmkl", {"M": 2}),
        ("qcqp_ssvm", {"M": 2}),
        ("sdp_ssvm", {"M": 2}),
        ("decomposed_sdp", {"M": 2}),
        ("big_m", {"M": 2}),
        ("plain_svm", {}),
        ("onsvm", {}),
    ],
)
def test_every_formulation(name: str, params: dict[str, Any]) -> None:
    made = getattr(models, name)(data(), **params)
    copies = [copied(made) for copied in COPIES]
    found = mipfs.solve(made).objective
    copies += [copied(made) for copied in COPIES]  # the solver's values stand in it now
    for again in copies:
        assert mipfs.solve(again).objective == pytest.approx(found, rel=1e-7)


def test_estimators_that_prove() -> None:
    held = data()
    for estimator in (mipfs.FSPClassifier(M=2, driver="gbd"), mipfs.MeasureClassifier(M=2, driver="branch")):
        fitted = estimator.fit(held.X, held.y)
        for copied in COPIES:
            assert np.array_equal(copied(fitted).predict(held.X), fitted.predict(held.X))


def test_a_declared_program_is_copied_after_a_solve_of_cvxpys_own() -> None:
    """CVXPY keeps Clarabel's solver with its problem, which cannot be pickled."""
    data = mipfs.Instance.from_arrays(np.random.default_rng(0).normal(size=(20, 4)), np.resize([1.0, -1.0], 20))
    declared = mipfs.models.boolean_relaxation(data, M=2, C=0.1)
    value = declared.cvxpy.solve(solver="CLARABEL")
    for copied in (pickle.loads(pickle.dumps(declared)), copy.deepcopy(declared), copy.copy(declared)):
        assert copied.cvxpy.solve(solver="CLARABEL") == pytest.approx(value, rel=1e-9)
        assert mipfs.solve(copied).objective == mipfs.solve(declared).objective
