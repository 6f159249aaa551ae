"""A program of one's own in CVXPY is evaluated: the answer is its optimum, by enumeration, or it is refused by name."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import cvxpy
import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Instance
from mipfs.errors import RelaxationWarning, UsageError
from mipfs.formulation import Formulation
from mipfs.formulation.own_program import Evaluation, ProgramPoint, _FixedProgram, make_evaluation
from mipfs.problem import Problem
from mipfs.result.loaded import point_of

cp: Any = cvxpy
N, P, M, C = 24, 4, 2, 0.5
Parts = dict[str, Any]


@lru_cache
def data() -> Instance:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, P)) + 0.4
    y = np.where(X[:, 0] + 0.7 * X[:, 2] + 0.5 * rng.normal(size=N) > 0.6, 1.0, -1.0)
    return Instance.from_arrays(X, y, scale="standard")


def loss_of(loss: str, margins: Any, xi: Any) -> tuple[Any, list[Any]]:
    if loss == "logistic":
        return C * cp.sum(cp.logistic(-margins)), []
    rows = [margins + xi >= 1, xi >= 0]
    return (C * cp.sum(xi) if loss == "hinge" else 0.5 * C * cp.sum_squares(xi)), rows


def perspective(loss: str = "hinge", *, boolean: bool = True, U: float | None = None) -> Parts:
    """(P) by hand: w_j²/σ_j ≤ t_j, or with U the big-M rows |w_j| ≤ U σ_j and ½‖w‖²."""
    X, y = data().X, data().y
    w, b, xi, t = cp.Variable(P, name="w"), cp.Variable(name="b"), cp.Variable(N, name="xi"), cp.Variable(P, name="t")
    sigma = cp.Variable(P, boolean=boolean, name="sigma")
    value, rows = loss_of(loss, cp.multiply(y, X @ w + b), xi)
    link = [cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(P)] if U is None else [cp.abs(w) <= U * sigma]
    size = 0.5 * (cp.sum(t) if U is None else cp.sum_squares(w))
    box = [] if boolean else [sigma >= 0, sigma <= 1]
    return {
        "objective": size + value,
        "rows": [*rows, *box, cp.sum(sigma) <= M],
        "link": link,
        "sigma": sigma,
        "w": w,
        "b": b,
        "xi": xi,
    }


def stated(parts: Parts, problem: Problem, named: tuple[str, ...] = ("w", "b")) -> Formulation:
    program = cp.Problem(cp.Minimize(parts["objective"]), [*parts["rows"], *parts["link"]])
    return Formulation(problem, program, parts["sigma"], {name: parts[name] for name in named})


def optimum(parts: Parts) -> tuple[float, tuple[int, ...]]:
    """The best of the program by enumeration: σ fixed by equations, what is 0 left out of the cones, by Clarabel."""
    best = math.inf, ()
    sigma = parts["sigma"]
    free = cp.Variable(P)
    known = {id(sigma): free}
    goal = parts["objective"].tree_copy(known)
    rows = [one.tree_copy(known) for one in parts["rows"]]
    for chosen in itertools.product((0, 1), repeat=P):
        at = np.array(chosen, float)
        link = [
            one.tree_copy(known) if len(parts["link"]) < P or at[j] else parts["w"][j] == 0
            for j, one in enumerate(parts["link"])
        ]
        t = [v for v in goal.variables() if v.name() == "t"]
        link += [t[0] >= 0] if t else []
        value = cp.Problem(cp.Minimize(goal), [*rows, *link, free == at]).solve(solver=cp.CLARABEL)
        if value < best[0]:
            best = float(value), tuple(np.flatnonzero(at).tolist())
    return best


@lru_cache
def best_of(loss: str) -> tuple[float, tuple[int, ...]]:
    """`optimum` of (P) by hand, whose selections are fixed there whether they are whole or not."""
    return optimum(perspective(loss))


def charge(parts: Parts) -> None:
    parts["objective"] += 0.5 * parts["sigma"][0]


def sign(parts: Parts) -> None:
    parts["rows"].append(parts["w"][0] <= 0)


def ones(parts: Parts) -> None:
    parts["objective"] += cp.norm(parts["w"], 1)


def constant(parts: Parts) -> None:
    parts["objective"] += 1.0


def dearer(parts: Parts) -> None:
    parts["objective"] += 0.5 * C * cp.sum(parts["xi"][:3])


def no_link(parts: Parts) -> None:
    parts["link"] = parts["link"][1:]
    parts["objective"] += 0.5 * cp.square(parts["w"][0])


def more_features(parts: Parts) -> None:
    parts["rows"] = [*parts["rows"][:-1], cp.sum(parts["sigma"]) <= M + 1]


def free_samples(parts: Parts) -> None:
    X, y = data().X[12:], data().y[12:]
    parts["rows"][0] = cp.multiply(y, X @ parts["w"] + parts["b"]) + parts["xi"][12:] >= 1


def device(parts: Parts) -> None:
    used = cp.Variable(boolean=True, name="used")
    parts["objective"] += 3 * used
    parts["rows"].append(parts["sigma"][:2] <= used)


WRONG: dict[str, tuple[Callable[[Parts], None], str]] = {
    "charge": (charge, "its objective charges 'x1' 0.5, and the problem 0"),
    "sign": (sign, r"leaves out the selection of .* \(by 'w\[0\] <= 0"),
    "norm1": (ones, "is more at"),
    "constant": (constant, "is more at"),
    "weights of samples": (dearer, "is more at"),
    "a weight without sigma": (no_link, "is (less|more) at|lets weights be other than 0"),
    "another M": (more_features, "allows the selection"),
    "samples that are missing": (free_samples, "is less at"),
    "a device that costs": (device, "whole variables .*used"),
}


@pytest.mark.sampled(11)
@pytest.mark.parametrize("kind", WRONG)
def test_another_problem_is_refused_by_name(kind: str) -> None:
    change, message = WRONG[kind]
    problem = Problem(data(), M=M, C=C)
    parts = perspective()
    change(parts)
    with pytest.raises(UsageError, match=message) as raised:
        mipfs.solve(stated(parts, problem), "branch")
    assert "\n" not in str(raised.value)
    if kind != "a device that costs":  # another optimum, or none that (P)'s would be
        assert optimum(parts)[0] != pytest.approx(mipfs.solve(problem, gap=1e-8).objective, rel=1e-4)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("named", [("w", "b"), ()])
@pytest.mark.parametrize("boolean", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_the_problem_itself_is_answered(loss: str, boolean: bool, named: tuple[str, ...]) -> None:
    problem = Problem(data(), M=M, C=C, loss=loss)
    parts = perspective(loss, boolean=boolean)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = mipfs.solve(stated(parts, problem, named), "branch", gap=1e-7)
    value, chosen = best_of(loss)
    assert result.objective == pytest.approx(value, rel=1e-6)
    assert tuple(np.flatnonzero(np.isin(data().feature_names, result.selected)).tolist()) == chosen


@pytest.mark.sampled(2)
@pytest.mark.parametrize("named", [("w", "b"), ()])
@pytest.mark.parametrize("kind", ["charge", "sign", "norm1"])
def test_it_is_found_without_named_weights_too(kind: str, named: tuple[str, ...]) -> None:
    for boolean in (True, False):
        parts = perspective(boolean=boolean)
        WRONG[kind][0](parts)
        with pytest.raises(UsageError, match="is not the problem that it states"):
            mipfs.solve(stated(parts, Problem(data(), M=M, C=C), named), "branch")


UNITS = 10.0 ** np.array([-3.0, 0.0, 1.5, 3.0])
"""Of the columns, as those of raw measurements are."""


def unscaled(loss: str, strength: float, factor: float, named: tuple[str, ...]) -> Formulation:
    """(P) by hand, times a factor, on columns of unlike units with means."""
    rng = np.random.default_rng(5)
    X = (rng.normal(size=(60, P)) + 3.0) * UNITS
    y = np.where((X / UNITS) @ np.array([1.0, -0.5, 0.7, 0.0]) + rng.normal(size=60) > 3.6, 1.0, -1.0)
    raw = Instance.from_arrays(X, y)
    w, b, t = cp.Variable(P, name="w"), cp.Variable(name="b"), cp.Variable(P, name="t")
    sigma = cp.Variable(P, boolean=True, name="sigma")
    margins, rows = cp.multiply(y, X @ w + b), [cp.sum(sigma) <= M]
    rows += [cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(P)]
    if loss == "logistic":
        value = cp.sum(cp.logistic(-margins))
    else:
        xi = cp.Variable(60, nonneg=True)
        rows.append(margins + xi >= 1)
        value = cp.sum(xi) if loss == "hinge" else 0.5 * cp.sum_squares(xi)
    program = cp.Problem(cp.Minimize(factor * (0.5 * cp.sum(t) + strength * value)), rows)
    every = {"w": w, "b": b}
    return Formulation(Problem(raw, M=M, C=strength, loss=loss), program, sigma, {name: every[name] for name in named})


@pytest.mark.sampled(37)
@pytest.mark.parametrize("named", [("w", "b"), ()])
@pytest.mark.parametrize("strength", [1e-4, 1e-2, 1.0, 100.0, 1e4, 1e6])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_unscaled_data_are_no_reason_to_refuse(loss: str, strength: float, named: tuple[str, ...]) -> None:
    for factor, words in ((1.0, ""), (1 + 1e-5, "is more at"), (1 - 1e-5, "is less at")):
        made = unscaled(loss, strength, factor, named)
        if words:
            with pytest.raises(UsageError, match=words):
                make_evaluation(made, made.problem)
        else:
            assert make_evaluation(made, made.problem) is not None


@pytest.mark.slow
def test_bounds_that_big_m_implies_may_cut_off_what_is_worse() -> None:
    problem = Problem(data(), M=M, C=C)
    wide = perspective(U=3.0)
    value, _ = optimum(wide)
    assert mipfs.solve(stated(wide, problem), "branch", gap=1e-7).objective == pytest.approx(value, rel=1e-6)
    tight = perspective(U=0.05)
    assert optimum(tight)[0] > value * 1.01
    for named in (("w", "b"), ()):
        with pytest.raises(UsageError, match=r"leaves out the selection|is more at"):
            mipfs.solve(stated(tight, problem, named), "branch")


def test_a_weaker_relaxation_is_named() -> None:
    problem = Problem(data(), M=M, C=C)
    parts = perspective(boolean=False, U=3.0)
    with pytest.warns(RelaxationWarning, match="is a weaker relaxation"):
        result = mipfs.solve(stated(parts, problem), "branch", gap=1e-7)
    assert result.objective == pytest.approx(optimum(parts)[0], rel=1e-6)


@pytest.mark.filterwarnings("ignore::mipfs.errors.RelaxationWarning")
def test_a_big_m_may_be_above_the_problem_where_sigma_is_small() -> None:
    strength = 100.0
    problem = Problem(data(), C=strength)
    X, y = data().X, data().y
    w, b, xi = cp.Variable(P, name="w"), cp.Variable(name="b"), cp.Variable(N, nonneg=True)
    sigma = cp.Variable(P, name="sigma")
    wide = math.sqrt(2.0 * strength * N)  # ½ w_j² is at most what w = 0 is worth
    rows = [cp.multiply(y, X @ w + b) + xi >= 1, cp.abs(w) <= wide * sigma, sigma >= 0, sigma <= 1]
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + strength * cp.sum(xi)), rows)
    made = Formulation(problem, program, sigma, {})
    at_small = np.full(P, 1e-3)
    found = Evaluation(made, problem, _FixedProgram(made, problem))
    place = ProgramPoint(at_small, np.zeros(P), 0.0)
    assert found._fixed.at(place)[1] > 1.01 * found._value_interval(place)[1]  # type: ignore[union-attr]
    found._compare_values(place, exact=False)
    result = mipfs.solve(problem, "branch", gap=1e-7)
    found.check(point_of(result, problem), result.objective)
    with pytest.raises(UsageError, match=r"is more at the selection of 0.001 "):
        found.check(point_of(result, problem), 100.0 * found._value_interval(place)[1])
    assert mipfs.solve(made, "branch", gap=1e-7).objective == pytest.approx(result.objective, rel=1e-6)


@pytest.mark.slow
def test_a_row_that_stands_in_the_program_is_no_difference() -> None:
    problem = Problem(data(), M=M, C=C)
    parts = perspective()
    pick = cp.Variable(boolean=True, name="pick")
    parts["rows"] += [parts["sigma"][0] <= pick, parts["sigma"][1] <= 1 - pick]
    result = mipfs.solve(stated(parts, problem), "branch", gap=1e-7)
    parts["rows"] = [one for one in parts["rows"] if pick.id not in {v.id for v in one.variables()}]
    parts["rows"].append(parts["sigma"][0] + parts["sigma"][1] <= 1)
    assert result.objective == pytest.approx(optimum(parts)[0], rel=1e-6)


def test_what_cannot_be_evaluated_is_refused() -> None:
    problem = Problem(data(), M=M, C=C)
    parts = perspective()
    parts["rows"].append(cp.multiply(parts["w"], 1 - parts["sigma"]) == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(UsageError, match="is not convex by the rules of CVXPY"):
            mipfs.solve(stated(parts, problem), "branch")


def test_a_program_without_sigma_is_no_more_than_the_answer() -> None:
    problem = Problem(data(), M=M, C=C)
    parts = perspective(U=3.0)
    weak = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(parts["w"]) + C * cp.sum(parts["xi"])), parts["rows"][:2])
    right = Formulation(problem, weak, None, {"w": parts["w"]})
    assert mipfs.solve(right, "branch", gap=1e-7).objective == pytest.approx(optimum(parts)[0], rel=1e-6)
    more = cp.Problem(cp.Minimize(weak.objective.expr + 100.0), parts["rows"][:2])
    with pytest.raises(UsageError, match="it is no relaxation of that"):
        mipfs.solve(Formulation(problem, more, None, {"w": parts["w"]}), "branch")
    mipfs.solve(Formulation(problem, more, None, {"w": parts["w"]}, is_relaxation=False), "branch")


def test_a_sigma_that_may_be_two_is_refused() -> None:
    """It was compared at selections alone, and where σ = 2 was the program's best, another one was called OPTIMAL."""
    X = np.random.default_rng(1).normal(size=(60, 6))
    known, C = Instance.from_arrays(X, np.where(X[:, 0] > 0, 1, -1)), 0.002
    w, b, xi, t = cvxpy.Variable(6), cvxpy.Variable(), cvxpy.Variable(60, nonneg=True), cvxpy.Variable(6)

    def made(sigma: Any, C: Any = C) -> Formulation:
        rows = [cvxpy.multiply(known.y, X @ w + b) + xi >= 1, cvxpy.sum(sigma) <= 2]
        rows += [cvxpy.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(6)]
        program = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum(t) + C * cvxpy.sum(xi)), rows)
        return Formulation(Problem(known, M=2, C=0.002), program, sigma, {"w": w, "b": b})

    with pytest.raises(UsageError, match="integer=True, which allows 2; declare it with boolean=True"):
        mipfs.solve(made(cvxpy.Variable(6, integer=True)), "branch")
    found = mipfs.solve(made(cvxpy.Variable(6, boolean=True)))
    assert (found.driver, found.status) == ("branch", mipfs.Status.OPTIMAL)
    weight = cvxpy.Parameter(nonneg=True, name="weight")
    with pytest.raises(UsageError, match="has parameters without a value: weight; set them"):
        mipfs.solve(made(cvxpy.Variable(6, boolean=True), weight))
    for parts, message in (
        ((known, None, None, {}), "Formulation: problem = <Instance .*> must be a mipfs.Problem"),
        ((found, None, None, {}), "problem = .* must be a mipfs.Problem"),
        ((Problem(known, M=2), 3, None, {}), "cvxpy = 3 must be a cvxpy.Problem"),
        ((Problem(known, M=2), None, None, [w]), "variables = .* must be a mapping of names to variables"),
    ):
        with pytest.raises(UsageError, match=message):
            Formulation(*parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["part", "complement", "several", "none", "another"])
def test_a_program_whose_sigma_is_no_variable_of_it_is_refused(kind: str) -> None:
    """Neither its rows were read nor its values compared: OPTIMAL with a selection that the program forbids."""
    whole = cvxpy.Variable(P + 1, boolean=True)
    several = [cvxpy.Variable(boolean=True) for _ in range(P)]
    sigma: Any = {"part": whole[:P], "complement": 1 - whole[:P], "several": cvxpy.hstack(several)}.get(kind, whole[:P])
    w, b, xi = cvxpy.Variable(P), cvxpy.Variable(), cvxpy.Variable(N, nonneg=True)
    rows = [cvxpy.multiply(data().y, data().X @ w + b) + xi >= 1, cvxpy.sum(sigma) <= M, sigma[0] <= sigma[1]]
    rows += [cvxpy.abs(w) <= 100 * sigma]
    program = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + C * cvxpy.sum(xi)), rows)
    sigma = {"none": None, "another": cvxpy.Variable(P, boolean=True)}.get(kind, sigma)
    what = "no variable" if kind in ("none", "another") else "an expression, not a variable,"
    with pytest.raises(UsageError, match=f"sigma is {what} of the program, whose rows over the selection cannot"):
        mipfs.solve(Formulation(Problem(data(), M=M, C=C), program, sigma, {"w": w, "b": b}), "branch")


@pytest.mark.parametrize("kind", ["joint", "reward", "charge", "stated"])
def test_terms_of_sigma_alone_are_compared_whatever_is_drawn(kind: str) -> None:
    """A reward for one pair of thirty features was met by none of the selections drawn: OPTIMAL, at twice the best."""
    r, p = np.random.default_rng(1), 30
    X = r.normal(size=(60, p))
    known = Instance.from_arrays(X, np.where(X[:, 0] - X[:, 2] + 0.6 * r.normal(size=60) > 0, 1, -1))
    w, b, xi, t = cp.Variable(p), cp.Variable(), cp.Variable(60, nonneg=True), cp.Variable(p)
    sigma = cp.Variable(p, boolean=True)
    rows = [cp.multiply(known.y, X @ w + b) + xi >= 1, cp.sum(sigma) <= 2]
    rows += [cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(p)]
    added = {"joint": 3 * cp.maximum(-sigma[10], -sigma[11]), "reward": -3 * sigma[10]}.get(kind, 0.2 * sigma[7])
    program = cp.Problem(cp.Minimize(0.5 * cp.sum(t) + 0.1 * cp.sum(xi) + added), rows)
    problem = Problem(known, M=2, C=0.1, lam={"x8": 0.2} if kind == "stated" else 0.0)
    made = Formulation(problem, program, sigma, {"w": w, "b": b})
    if kind == "stated":
        found, wanted = (mipfs.solve(one, "branch", gap=1e-7).objective for one in (made, problem))
        assert found == pytest.approx(wanted, rel=1e-7)
        return
    message = {"joint": "over sigma alone, which is not linear", "reward": "charges 'x11' -3, and the problem 0;"}
    with pytest.raises(UsageError, match=message.get(kind, "charges 'x8' 0.2, and the problem 0; state")):
        mipfs.solve(made, "branch")
