"""Roots of many samples: the SVM that they begin at, and what a limit leaves of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import Instance, Problem
from mipfs.drivers import gbd, kelley
from mipfs.inner import rows_node, tall
from mipfs.inner.boolean import Boolean
from mipfs.inner.subproblem import Subproblem
from mipfs.result.result import StopReason
from mipfs.run.run import Run
from mipfs.settings import BranchSettings, RelaxationSettings
from mipfs.svm import solver

ALWAYS = RelaxationSettings(cheap=1.0)
GAP = ALWAYS.tall_gap


def problem(kind: str = "dense", n: int = 3000, p: int = 8, **params: Any) -> Problem:
    """Samples of which a fifth lie on the wrong side; columns of large mean where they are dense."""
    r = np.random.default_rng(4)
    X = r.standard_normal((n, p)) + 3.0
    score = (X[:, :4] - 3.0) @ np.array([1.0, -2.0, 0.5, 1.5])
    y = np.where(score + 1.5 * r.standard_normal(n) > 0, 1.0, -1.0)
    values = sparse.csc_array(X * (r.random((n, p)) < 0.1)) if kind == "sparse" else X
    return Problem(Instance.from_arrays(values, y), **{"M": 3, "C": 0.5, **params})


def relaxation(of: Problem, must_stop: Any = bool) -> tuple[Boolean, Any, Any]:
    low, high = of.selection.sigma_bounds()
    return Boolean(of, must_stop, ALWAYS), low, high


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_svm_on_all_columns(kind: str, loss: str, bias: bool) -> None:
    asked = problem(kind, loss=loss, bias=bias)
    whole, _, high = relaxation(asked)
    found = tall.known_classifier(whole, high)
    assert found is not None
    other = Subproblem(asked).solve(np.ones(8), 1e-7)
    margins = asked.data.y * asked.data.block(found.ids).scores(found.w, found.b)
    value = 0.5 * float(found.w @ found.w) + whole.loss.value(margins, asked.c_i)
    assert other.lower * (1 - 1e-9) <= value <= other.value * (1 + 10 * GAP)
    alpha = found.alpha[whole.kind] * asked.c_i / whole.c[whole.kind] * whole.size
    assert np.all(alpha >= 0)
    assert np.all(alpha <= whole.loss.top(asked.c_i) * (1 + 1e-12))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_what_a_limit_leaves_is_a_bound_near_the_relaxation(loss: str) -> None:
    asked = problem(loss=loss)
    whole, low, high = relaxation(asked)
    solved = whole.solve(low, high, 1e-6)
    known = tall.known_classifier(whole, high)
    begun = whole.solve(low, high, 1e-6, known=known)
    assert begun.lower <= solved.upper * (1 + 1e-9)
    assert begun.upper == pytest.approx(solved.upper, rel=1e-5)
    whole.must_stop = lambda: True
    stopped = whole.solve(low, high, 1e-6, known=known)
    assert 0.95 * solved.lower < stopped.lower <= solved.upper
    assert stopped.upper == np.inf
    assert stopped.sigma.sum() <= 3 + 1e-9
    assert not stopped.solved


def test_a_stop_at_any_moment_leaves_a_bound_that_holds() -> None:
    asked = problem(n=400, p=6)
    whole, low, high = relaxation(asked)
    upper = whole.solve(low, high, 1e-6).upper
    for after in range(0, 60, 3):
        left = [after]

        def must_stop(left: list[int] = left) -> bool:
            left[0] -= 1
            return left[0] < 0

        whole, low, high = relaxation(asked, must_stop)
        known = tall.known_classifier(whole, high)
        assert whole.solve(low, high, 1e-6, known=known).lower <= upper * (1 + 1e-9)


def test_where_it_does_not_pay() -> None:
    whole, _, high = relaxation(problem(n=100))  # few samples
    assert tall.known_classifier(whole, high) is None
    whole, _, high = relaxation(problem())
    whole.settings = RelaxationSettings()  # a cheap root
    assert tall.known_classifier(whole, high) is None
    assert tall.known_classifier(relaxation(problem())[0], np.zeros(8)) is None


@pytest.mark.parametrize("driver", ["branch", "gbd"])
def test_a_run_with_it_proves_what_one_without_proves(driver: str) -> None:
    asked = problem(n=600, p=6)
    settings: Any = mipfs.settings.GbdSettings() if driver == "gbd" else BranchSettings()
    plain = mipfs.solve(asked, driver)
    found = mipfs.solve(asked, driver, settings=replace(settings, relaxation=ALWAYS))
    assert found.selected == plain.selected
    assert found.bound <= plain.objective * (1 + 1e-9)
    assert mipfs.verify(found, asked.data).accepted


def test_calls_of_kernels_are_short_on_large_data() -> None:
    assert solver.steps_per_call(50, 1000) == 50
    assert solver.steps_per_call(50, 10**7) == 5
    assert solver.steps_per_call(50, 10**10) == 1
    assert solver.steps_per_call(50, 0) == 50


def test_a_part_of_the_samples_says_which_way_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem(loss="logistic")
    whole, _, high = relaxation(asked)
    monkeypatch.setattr(tall, "SYSTEM_ROWS", 20)
    found = tall.known_classifier(whole, high)
    assert found is not None
    other = Subproblem(asked).solve(np.ones(8), 1e-7)
    margins = asked.data.y * asked.data.block(found.ids).scores(found.w, found.b)
    value = 0.5 * float(found.w @ found.w) + whole.loss.value(margins, asked.c_i)
    assert value <= other.value * (1 + 10 * GAP)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_kelley_has_a_bound_before_its_first_round(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem(loss=loss)
    plain = mipfs.solve(asked, "kelley")
    monkeypatch.setattr(kelley, "RelaxationSettings", partial(RelaxationSettings, cheap=1.0))
    found = mipfs.solve(asked, "kelley")
    assert found.trace[0].bound > 0.95 * plain.bound
    assert found.bound <= plain.trace[-1].upper * (1 + 1e-9)
    assert found.trace[-1].upper == pytest.approx(plain.trace[-1].upper, rel=1e-3)
    assert mipfs.verify(found, asked.data).accepted


@pytest.mark.parametrize("bias", [True, False])
def test_branch_has_a_bound_and_a_classifier_before_it_climbs(bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem(bias=bias)
    whole, low, high = relaxation(asked)
    solved = whole.solve(low, high, 1e-6)
    whole_run = mipfs.solve(asked, "branch")
    plain, struck = tall.known_classifier, list[str]()

    def known(boolean: Boolean, high: Any) -> Any:
        found = plain(boolean, high)
        struck.append("a limit")
        return found

    monkeypatch.setattr(rows_node, "known_classifier", known)
    monkeypatch.setattr(Run, "_is_late", property(lambda _: bool(struck)))
    found = mipfs.solve(asked, "branch", settings=BranchSettings(relaxation=ALWAYS))
    assert found.stop_reason is StopReason.TIME_LIMIT
    assert 0.95 * solved.lower < found.bound <= found.objective
    assert found.objective == pytest.approx(whole_run.objective, rel=0.1 if bias else 0.3)
    assert mipfs.verify(found, asked.data).accepted


def test_gbd_has_a_bound_and_a_classifier_before_its_root(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem()
    whole, low, high = relaxation(asked)
    solved = whole.solve(low, high, 1e-6)
    plain = tall.known_classifier

    def known(boolean: Boolean, high: Any) -> Any:
        found = plain(boolean, high)
        boolean.must_stop = lambda: True  # a limit strikes
        return found

    monkeypatch.setattr(gbd.tall, "known_classifier", known)
    settings = mipfs.settings.GbdSettings(relaxation=ALWAYS)
    found = mipfs.solve(asked, "gbd", settings=settings, iteration_limit=0)
    assert 0.95 * solved.lower < found.bound <= found.objective
    assert found.objective == pytest.approx(mipfs.solve(asked, "gbd").objective, rel=0.05)
    assert mipfs.verify(found, asked.data).accepted
