"""A test of the design: a new loss, measure, driver, baseline, reader, command … is one file and a line in a registry.

The files are the examples of docs/extend.md.
"""

from __future__ import annotations

import importlib
import itertools
import json
import math
import os
import pickle
import re
import signal
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

import mipfs
from mipfs import branching, drivers, formulation, losses, measures, readers, regularisers, separators
from mipfs.atoms.groups import Groups
from mipfs.check.tree import check
from mipfs.convert import convert
from mipfs.data.instance import Instance
from mipfs.data.made import MadeMatrix
from mipfs.errors import DataError, UsageError
from mipfs.inner.boolean import Boolean
from mipfs.lab import baselines, sketch
from mipfs.losses.base import Loss
from mipfs.losses.hinge import Hinge
from mipfs.problem import Problem
from mipfs.proof.cuts import CutPool
from mipfs.readers import files
from mipfs.selection.derived import ChvatalGomory

Array = npt.NDArray[np.float64]

EXAMPLES = dict(
    re.findall(
        r"```python\n# (toy_\w+)\.py\n(.*?)```",
        (Path(__file__).parents[1] / "docs" / "extend.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, from which modules are imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in EXAMPLES.items():
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def make(n: int = 40, p: int = 7, seed: int = 0) -> Instance:
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, p))
    return Instance.from_arrays(X, np.where(X[:, 0] - X[:, 3] + 0.7 * r.normal(size=n) > 0, 1, -1))


def huber(Z: Array, y: Array, C: float) -> float:
    """The least ½‖w‖² + C Σ ℓ(y(Zw + b)), by L-BFGS."""

    def value(u: Array) -> float:
        short = np.maximum(0.0, 1.0 - y * (Z @ u[1:] + u[0]))
        return 0.5 * float(u[1:] @ u[1:]) + C * float(np.where(short < 1, 0.5 * short**2, short - 0.5).sum())

    return float(minimize(value, np.zeros(Z.shape[1] + 1), method="BFGS", tol=1e-10).fun)


@pytest.mark.slow
@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_loss(place: Path, monkeypatch: pytest.MonkeyPatch, is_compiled: bool) -> None:
    """With its compiled functions no node but the root is an interior point; without them all are."""
    monkeypatch.setitem(losses.LOSSES, "huber-hinge", "toy_loss")
    if not is_compiled:
        monkeypatch.setattr(importlib.import_module("toy_loss").Huber, "kernels", None)
    by_interior_point: list[int] = []
    solve = Boolean.solve

    def counted(self: Boolean, *args: Any, **options: Any) -> Any:
        by_interior_point.append(1)
        return solve(self, *args, **options)

    data, C, M = make(), 2.0, 2
    supports = [s for size in range(M + 1) for s in itertools.combinations(range(7), size)]
    best = min(huber(data.X[:, list(s)], data.y, C) for s in supports)
    problem = Problem(data, loss="huber-hinge", M=M, C=C)
    mipfs.solve(problem, gap=1e-7)  # kernels are met
    monkeypatch.setattr(Boolean, "solve", counted)
    result = mipfs.solve(problem, gap=1e-7)
    assert result.counters["nodes"] > 1
    assert (len(by_interior_point) <= 1) == is_compiled
    for driver in ("branch", "gbd"):
        result = mipfs.solve(problem, driver, gap=1e-7)
        assert result.status is mipfs.Status.OPTIMAL, driver
        checked = mipfs.verify(result, data)
        assert checked.accepted, checked.reason
        assert "where 0 < m_i < 1" in checked.statement[0]
        assert checked.objective == pytest.approx(best, rel=1e-6)
        assert result.objective == pytest.approx(best, rel=1e-6)
        assert result.bound <= best * (1 + 1e-7)
    relaxed = mipfs.solve(problem, "kelley", gap=1e-6)
    assert relaxed.bound <= best * (1 + 1e-7)
    assert relaxed.status is mipfs.Status.RELAXED
    assert mipfs.verify(relaxed, data).accepted
    rows = problem.with_rows(np.ones((1, 7)), 0.0, 1.0)
    assert mipfs.solve(rows, gap=1e-7).objective == pytest.approx(min(
        huber(data.X[:, list(s)], data.y, C) for s in supports if len(s) < 2
    ), rel=1e-6)  # fmt: skip
    with pytest.raises(UsageError, match="no conic form"):
        mipfs.solve(problem, "conic")


def test_the_process_of_scip_knows_a_loss_of_ones_own(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyscipopt", reason="the monolithic driver needs SCIP (extra 'scip')")
    monkeypatch.setitem(losses.LOSSES, "again", "again_loss")
    made = "class Again(SquaredHinge):\n    name = 'again'\n\n\nLOSS = Again()\n"
    (place / "again_loss.py").write_text(f"from mipfs.losses.squared_hinge import SquaredHinge\n\n\n{made}")
    one, other = (mipfs.solve(Problem(make(), M=1, loss=loss), "monolithic") for loss in ("again", "squared-hinge"))
    assert one.status is mipfs.Status.OPTIMAL
    assert one.objective == pytest.approx(other.objective, rel=1e-7)


STEEP = {
    "0.0 < beta[i] < (1.0 - 1e-9) * c[i]": "0.0 < beta[i] < (1.0 - 1e-9) * T * c[i]",
    "beta[i] = c[i] * steep": "beta[i] = T * c[i] * steep",
    "total -= c[i]": "total -= T * c[i]",
    "curve[i] = c[i]": "curve[i] = T * c[i]",
    "(2.0 * c[i])": "(2.0 * T * c[i])",
    "(2.0 * c)": "(2.0 * T * c)",
    "1.0 - self.alpha / self.c, 1.0 / self.c": "1.0 - self.alpha / (T * self.c), 1.0 / (T * self.c)",
    "float(c @ ": "float(T * c @ ",
    "return c * np.minimum(short, 1.0), c *": "return T * c * np.minimum(short, 1.0), T * c *",
    "return np.where(short < 1.0": "return T * np.where(short < 1.0",
    "return np.clip": "return T * np.clip",
    'words = "': 'max_slope = T\n    words = "T times ',
    'name, terms = "huber-hinge",': 'max_slope = T\n    name, terms = "huber-hinge",',
}
"""The toy loss times T: L(m) = T Σ c ℓ(m), 0 ≤ α ≤ Tc, g(α) = Σ α − α²/(2Tc)."""


def steep(place: Path, T: float, *, left: str = "") -> None:
    """The file of that loss; what contains `left` stays as it was."""
    text = EXAMPLES["toy_loss"]
    for old, new in STEEP.items():
        assert old in text, old
        text = text if left and left in new else text.replace(old, re.sub(r"\bT\b", repr(T), new))
    (place / "toy_loss.py").write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize(("T", "is_compiled"), [(2.0, True), (2.0, False), (0.7, True)])
def test_a_loss_of_another_slope(place: Path, monkeypatch: pytest.MonkeyPatch, T: float, is_compiled: bool) -> None:
    """Tℓ at C is ℓ at TC: exact by every driver, with a regulariser of its own and with weights; certified."""
    monkeypatch.setitem(losses.LOSSES, "huber-hinge", "toy_loss")
    steep(place, T)
    loss = importlib.import_module("toy_loss").LOSS
    if not is_compiled:
        monkeypatch.setattr(type(loss), "kernels", None)
    weights = np.where(np.arange(40) % 3, 1.0, 2.0)
    data, C, M = make(), 0.3, 2
    twice = np.repeat(np.arange(40), weights.astype(int))
    heavy = Instance.from_arrays(data.X, data.y, sample_weight=weights)
    supports = [[*s] for size in range(M + 1) for s in itertools.combinations(range(7), size)]
    best = min(huber(data.X[:, s], data.y, T * C) for s in supports)
    of_heavy = min(huber(data.X[twice][:, s], data.y[twice], T * C) for s in supports)
    for driver, given, right in (("branch", data, best), ("gbd", data, best), ("branch", heavy, of_heavy)):
        result = mipfs.solve(Problem(given, loss="huber-hinge", M=M, C=C), driver, gap=1e-7)
        assert result.status is mipfs.Status.OPTIMAL, driver
        assert result.objective == pytest.approx(right, rel=1e-6)
        assert result.bound <= right * (1 + 1e-7)
        report = mipfs.verify(result, given)
        assert report.accepted, report.reason
        assert f"{T!r} times C Σ" in report.statement[0]
        assert "the loss 'huber-hinge', as toy_loss states it" in report.unchecked
        assert result.claim is not None
        document = json.loads(result.to_json()) | dict(result.stated) | {"certificate": result.claim.entry()}
        arrays = result.claim.proof.arrays()
        higher = document["bound"] * 1.001
        raised = document | {"bound": higher, "gap": 0.0, "certificate": document["certificate"] | {"bound": higher}}
        assert not check(raised, arrays, given).accepted
        lifted = arrays | {"dual_level": np.where(arrays["dual_level"] > 0, arrays["dual_level"] * 2, -1)}
        assert not check(document, lifted, given).accepted or given is heavy  # of weights the level is not read
    relaxed = mipfs.solve(Problem(data, loss="huber-hinge", M=M, C=C), "kelley", gap=1e-6)
    assert relaxed.bound <= best * (1 + 1e-7)
    assert mipfs.verify(relaxed, data).accepted
    signed = Problem(data, loss="huber-hinge", M=M, C=C, regulariser=regularisers.get_regulariser("box", low=0.0))
    found = mipfs.solve(signed, "branch", gap=1e-7)
    assert found.status is mipfs.Status.OPTIMAL
    assert mipfs.verify(found, data).accepted
    # The file that states less of its box to the checker has no certificate that holds there.
    if T > 1.0:
        monkeypatch.setitem(sys.modules, "toy_loss", sys.modules["toy_loss"])
        steep(place, T, left="times")
        importlib.invalidate_caches()
        assert "leaves its box" in mipfs.verify(result, given).reason


def test_the_top_of_a_dual_box_is_exact() -> None:
    """The checker's is the largest float that is not above tc; the solver's is not above that."""
    from mipfs.check.dual_vectors import Duals

    c = np.exp(np.random.default_rng(0).normal(0.0, 20.0, 200))
    for t in (1.0, 2.0, 0.7, 3.0, 1e-3, np.inf):
        loss: Any = type("Case", (Hinge,), {"max_slope": t})()
        case: Any = type("Case", (), {"statement": type("S", (), {"c": c, "stated": loss})})()
        top = Duals.top.func(case)  # type: ignore[attr-defined]
        if t == np.inf:
            assert top is None
            assert np.all(loss.top(c) == np.inf)
            continue
        for one, own, weight in zip(top.tolist(), loss.top(c).tolist(), c.tolist(), strict=True):
            exact = Fraction(t) * Fraction(weight)
            assert Fraction(own) <= Fraction(one) <= exact < Fraction(math.nextafter(one, math.inf))
            assert own >= one * (1 - 1e-15)


def test_a_loss_that_breaks_its_laws_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(losses.LOSSES, "huber-hinge", "toy_loss")
    problem = Problem(make(), M=2)
    steep(place, 2.0, left="terms =")
    for change, message in (
        (
            {},
            "'huber-hinge' falls with a slope of 2, above max_slope = 1: .* say max_slope = 2, in its class",
        ),
        ({"max_slope": math.inf}, "dual_value is .* above value .* at margin -1e.06: no bound would hold"),
        (
            {"max_slope": 2.0, "dual_value": lambda self, alpha, c: float(alpha.sum())},
            "dual_value is 1 at alpha = 1 .* 0.75 at margin 0.5",
        ),
        ({"max_slope": 2.0, "derivatives": Loss.derivatives, "kernels": None}, "neither kernels nor derivatives"),
    ):
        monkeypatch.delitem(sys.modules, "toy_loss", raising=False)
        Huber = importlib.import_module("toy_loss").Huber
        for name, value in change.items():
            setattr(Huber, name, value)
        with pytest.raises(UsageError, match=message):
            mipfs.solve(problem.replace(loss="huber-hinge"), "gbd")


def test_a_state_is_of_the_code_of_the_loss_that_it_ran(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an edit of a loss between two commands `resume` ended OPTIMAL, 5% above the optimum."""
    monkeypatch.setitem(losses.LOSSES, "huber-hinge", "toy_loss")
    problem = Problem(make(), loss="huber-hinge", M=2)

    def loaded(text: str) -> None:
        (place / "toy_loss.py").write_text(text)
        monkeypatch.delitem(sys.modules, "toy_loss", raising=False)
        importlib.invalidate_caches()
        monkeypatch.setattr(importlib.import_module("toy_loss").Huber, "kernels", None)

    text = "\n".join([EXAMPLES["toy_loss"], "from scale import T", "Huber.scale = lambda self: T"])
    (place / "scale.py").write_text("T = 1.0")
    loaded(text)
    session = mipfs.start(problem, "branch")
    session.step()
    state = session.state
    loaded(text.replace("The Huberised hinge", "This hinge"))
    assert mipfs.solve(problem, "branch", resume=state).status is mipfs.Status.OPTIMAL
    changes = [
        (text.replace("0.5 * short**2", "0.6 * short**2"), 1.0),
        (text.replace("self.c, 1.0", "self.c, 1.1"), 1.0),
    ]
    for changed, T in (*changes, (text, 2.0)):
        (place / "scale.py").write_text(f"T = {T}")
        monkeypatch.delitem(sys.modules, "scale", raising=False)
        loaded(changed)
        with pytest.raises(UsageError, match="or the file of a loss, a regulariser, a measure or atoms of your own"):
            mipfs.solve(problem, "branch", resume=state)


def shrunk(Z: Array, y: Array, C: float, loss: str, bias: bool, mu: float) -> float:
    """The least ½‖w‖² + mu‖w‖₁ + C Σ ℓ(y(Zw + b)), by Clarabel."""
    w, b = cp.Variable(Z.shape[1]), cp.Variable() if bias else 0.0
    m = cp.multiply(y, (Z @ w if Z.shape[1] else np.zeros(y.size)) + b)
    losses = {
        "hinge": cp.sum(cp.pos(1 - m)),
        "squared-hinge": 0.5 * cp.sum_squares(cp.pos(1 - m)),
        "logistic": cp.sum(cp.logistic(-m)),
    }
    term = 0.5 * cp.sum_squares(w) + mu * cp.norm1(w) if Z.shape[1] else 0.0
    program = cp.Problem(cp.Minimize(term + C * losses[loss]))
    return float(program.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9))


REGULARISED = [
    (loss, bias, penalised, has_rows)
    for loss in ("hinge", "squared-hinge", "logistic")
    for bias in (True, False)
    for penalised, has_rows in ((False, False), (True, False), (False, True), (True, True))
]


@pytest.fixture
def registered(place: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The toy regulariser, in the table."""
    monkeypatch.setitem(regularisers.REGULARISERS, "shrunk", "toy_regulariser")
    return importlib.import_module("toy_regulariser").Shrunk


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "bias", "penalised", "has_rows"), REGULARISED)
def test_a_regulariser(registered: Any, loss: str, bias: bool, penalised: bool, has_rows: bool) -> None:
    """Exact by three drivers, against all supports; certified, and what is forged is refused."""
    r = np.random.default_rng(len(loss) + 2 * bias + 4 * penalised + 8 * has_rows)
    C, mu, M, p = float(10 ** r.uniform(-0.5, 0.5)), float(10 ** r.uniform(-1.5, 0.5)), 2, 5
    data = make(n=30, p=p, seed=int(r.integers(99)))
    lam = r.uniform(0.0, 0.5, p) if penalised else np.zeros(p)
    row = r.integers(-1, 3, p).astype(float)
    problem = Problem(data, loss=loss, bias=bias, M=M, C=C, lam=lam.tolist(), regulariser=registered(mu))
    problem = problem.with_rows(row[None], -np.inf, 1.0) if has_rows else problem
    supports = [s for size in range(M + 1) for s in itertools.combinations(range(p), size)]
    allowed = [[*s] for s in supports if not has_rows or row[[*s]].sum() <= 1.0]
    best = min(shrunk(data.X[:, s], data.y, C, loss, bias, mu) + lam[s].sum() for s in allowed)
    for driver in ("branch", "gbd", "kelley"):
        found = mipfs.solve(problem, driver, gap=1e-7 if driver != "kelley" else 1e-4)
        assert found.bound <= best * (1 + 1e-7)
        assert found.objective >= best * (1 - 1e-7)
        if driver == "kelley":
            assert found.status in (mipfs.Status.RELAXED, mipfs.Status.OPTIMAL)
        else:
            assert found.status is mipfs.Status.OPTIMAL
            assert found.objective == pytest.approx(best, rel=1e-6)
        report = mipfs.verify(found, data)
        assert report.accepted, report.reason
        assert f"½w² + {mu!r}·|w|" in report.statement[0]
        assert found.claim is not None
        document = json.loads(found.to_json()) | dict(found.stated) | {"certificate": found.claim.entry()}
        for forged in forgeries(document):
            refused = check(forged, found.claim.proof.arrays(), data)
            assert not refused.accepted, forged["params"]


def forgeries(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Another mu, another regulariser, none, one that no one knows, and a bound that is a little higher."""
    mu = document["params"]["regulariser"]["mu"]
    others: list[Any] = [{"name": "shrunk", "mu": other} for other in (0.9 * mu, 1.1 * mu, -1.0, math.inf, "1")]
    others += [None, {"name": "ridge"}, {"name": "shrunken", "mu": mu}, {"name": "shrunk"}, "shrunk"]
    others.append({"name": "shrunk", "mu": mu, "nu": 1.0})
    for other in others:
        yield document | {"params": document["params"] | {"regulariser": other}}
    higher = document["bound"] * 1.001
    gap = max(0.0, (document["objective"] - higher) / abs(document["objective"]))
    yield document | {"bound": higher, "gap": gap, "certificate": document["certificate"] | {"bound": higher}}


def test_what_rests_on_the_ridge_refuses_another_regulariser(registered: Any) -> None:
    data, mine = make(), registered(0.3)
    problem = Problem(data, M=2, regulariser=mine)
    for driver in ("conic", "monolithic"):
        with pytest.raises(UsageError, match=r"cannot carry the regulariser 'shrunk'; branch, gbd, kelley can"):
            mipfs.solve(problem, driver)
    with pytest.raises(UsageError, match=r"'rho' is .* regulariser 'shrunk' is not so"):
        Problem(data, M=2, loss="squared-hinge", bias=False, margin="rho", regulariser=mine)
    for atoms in (
        mipfs.atoms.groups.Groups(data, {"a": [0, 1], "b": [2]}),
        mipfs.atoms.features.Features(data, "norm"),
    ):
        with pytest.raises(UsageError, match="'shrunk' is about single features as they are, not"):
            Problem(data, M=1, atoms=atoms, regulariser=mine)
    with pytest.raises(UsageError, match="structural loss goes with ½w² alone; leave the regulariser 'shrunk' out"):
        Problem(data, loss="structural", measure="f1", bias=False, M=2, regulariser=mine)
    for driver, option in (
        ("kelley", {"restricted": "proximal"}), ("kelley", {"restricted": "face"}), ("kelley", {"restricted": "conic"}),
        ("kelley", {"restricted": "simple-mkl"}), ("branch", {"nodes": "conic"}), ("gbd", {"subproblem": "conic"}),
    ):  # fmt: skip
        smooth = problem.replace(loss="squared-hinge", bias=False)
        with pytest.raises(
            UsageError, match="is about the ridge ½w² alone; leave it out with the regulariser 'shrunk'"
        ):
            mipfs.solve(smooth, driver, **option)
    for wrong in ("shrunken", 3):
        with pytest.raises(UsageError, match="is not known; it is one of ridge"):
            Problem(data, M=2, regulariser=wrong)
    with pytest.raises(UsageError, match="mu"):
        regularisers.get_regulariser("shrunk", mu=-1.0)
    with pytest.raises(UsageError, match="nu"):
        regularisers.get_regulariser("shrunk", nu=1.0)
    for others in (Problem(data, M=2), problem.replace(regulariser=registered(0.4))):
        with pytest.raises(UsageError, match="its cuts are of regulariser"):
            mipfs.solve(problem, "gbd", pool=CutPool(others))


def test_a_driver(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(drivers.DRIVERS, "enumerate", "toy_driver")
    problem = Problem(make(), M=2)
    found, other = mipfs.solve(problem, "enumerate"), mipfs.solve(problem, "branch", gap=1e-8)
    assert found.status is mipfs.Status.OPTIMAL
    assert found.objective == pytest.approx(other.objective, rel=1e-7)
    assert found.selected == other.selected
    with pytest.raises(UsageError, match=r"cannot carry .*forced features"):
        mipfs.solve(problem.replace(forced_in=("x1",)), "enumerate")
    assert mipfs.solve(problem.with_rows(np.ones((1, 7)), 3.0, np.inf), "enumerate").status is mipfs.Status.INFEASIBLE
    assert mipfs.solve(problem, "enumerate", iteration_limit=3).stop_reason is mipfs.StopReason.ITERATION_LIMIT
    assert found.bound_source == "solver", "it says of its bound that it is enumerated, and leaves no proof"
    assert "is the solver's own word" in mipfs.verify(found, problem.data).reason


@pytest.mark.slow
def test_modules_of_ones_own_on_the_command_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Solved by a loss and a rule of their own, verified with the loss; without it refused, with the remedy."""
    from mipfs.cli import main

    data = make()
    samples = ["label," + ",".join(data.feature_names)]
    samples += [",".join(map(repr, [int(y), *x])) for x, y in zip(data.X.tolist(), data.y.tolist(), strict=True)]
    (place / "data.csv").write_text("\n".join(samples))
    source, saved = str(place / "data.csv"), str(place / "r.json")
    loss, rule = str(place / "toy_loss.py"), str(place / "toy_branching.py")
    solve = [
        "solve",
        "fsp-m",
        source,
        "-p",
        "M=2",
        "-p",
        "C=2",
        "-p",
        "loss=huber-hinge",
        "--gap",
        "1e-6",
        "--json",
        saved,
    ]
    entered = (losses.LOSSES, "huber-hinge"), (branching.RULES, "toy-branching")
    try:
        assert main(solve) == 2
        assert "'huber-hinge' is not known" in capsys.readouterr().err
        assert main([*solve, "--module", loss, "--module", rule, "-o", "branching=toy-branching"]) == 0
        assert main(["verify", saved, source, "--module", loss]) == 0
        assert "the loss 'huber-hinge', as toy_loss states it" in capsys.readouterr().out
        found = json.loads(Path(saved).read_text())
        supports = [[*s] for size in range(3) for s in itertools.combinations(range(7), size)]
        assert found["objective"] == pytest.approx(min(huber(data.X[:, s], data.y, 2.0) for s in supports), rel=1e-6)
        del losses.LOSSES["huber-hinge"]
        given = [source, "-p", "C=2", "-p", "loss=huber-hinge", "--module", loss, "--quiet", "--json", saved + ".2"]
        for command, more in (("path", ["--M", "2", "--gap", "1e-6"]), ("compare", ["-p", "M=2", "--rungs", "exact"])):
            assert main([command, *given, *more]) == 0
            text = Path(saved + ".2").read_text()
            assert "huber-hinge" in text
            assert f"{found['objective']:.4f}"[:-1] in text
            del losses.LOSSES["huber-hinge"]
        of_result = ["refit", saved, source, "--C", "3"], ["scorecard", saved, source, "--points", "1"]
        for again in (*of_result, ["stability", *given[:-3], "-p", "M=2", "--draws", "2", "--jobs", "1"]):
            assert main([*again, "--module", loss, "--quiet", "--json", loss]) == 2  # an input
            assert main([*again, "--module", loss, "--quiet", "--json", saved + ".3"]) == 0
            assert "huber-hinge" in Path(saved + ".3").read_text()
            del losses.LOSSES["huber-hinge"]
        assert main([command, *given[:-3], "--quiet", "--json", loss, *more, "--module", loss]) == 2  # an input
        losses.LOSSES.pop("huber-hinge", None)
        capsys.readouterr()
        assert main(["verify", saved, source]) == 1
        assert "entered first, on the command line by --module" in capsys.readouterr().err
        (place / "hinge_again.py").write_text("class LOSS:\n    name = 'hinge'\n")
        (place / "broken.py").write_text("x = 1 / 0\n")
        (place / "json.py").write_text("")
        for given, message in (
            (str(place / "hinge_again.py"), "the name 'hinge' is that of mipfs.losses.hinge"),
            (str(place / "broken.py"), "broken.py:1: ZeroDivisionError"),
            (str(place / "json.py"), "Python knows another module 'json'; rename the file"),
            (str(place / "none.py"), "no such file"),
            ("no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ):
            assert main(["verify", saved, source, "--module", given]) == 2
            error = capsys.readouterr().err
            assert message in error
            assert error.count("\n") == 1
    finally:
        for table, name in entered:
            table.pop(name, None)


def best_of_all(problem: Problem, C: float, M: int) -> float:
    """The least hinge objective over all supports, by Clarabel."""
    from tests.oracles import brute_force

    p = problem.data.n_features
    allowed = [frozenset(s) for size in range(M + 1) for s in itertools.combinations(range(p), size)]
    X = problem.data.block().dense()
    return brute_force(X, problem.data.y, problem.c_i, allowed, problem.penalty, True).value.upper


@pytest.mark.slow
def test_a_branching_rule(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled subtrees, with rows, nodes by Clarabel, groups by the interior point: the optimum of all supports."""
    monkeypatch.setitem(branching.RULES, "first", "toy_branching")
    data = make(p=9)
    problem = Problem(data, M=3, C=0.5)
    best, nodes = best_of_all(problem, 0.5, 3), {}
    rows = problem.with_rows(np.ones((1, 9)), 0.0, 3.0)
    pairs = {f"g{j}": [j, (j + 4) % 9] for j in range(6)}
    groups = Problem(data, atoms=Groups(data, pairs), M=2, C=0.5)
    usual = mipfs.solve(groups, "branch", gap=1e-8)
    for name, (asked, options, value) in {
        "plain": (problem, {}, best),
        "rows": (rows, {}, best),
        "conic": (problem, {"nodes": "conic"}, best),
        "groups": (groups, {}, usual.objective),
    }.items():
        for rule in branching.RULES:
            found = mipfs.solve(asked, "branch", gap=1e-6, branching=rule, **options)
            nodes[name, rule] = found.counters["nodes"], found.counters["newton_steps"]
            assert found.status is mipfs.Status.OPTIMAL
            assert found.objective == pytest.approx(value, rel=1e-6)
            assert found.bound <= value * (1 + 1e-8)
            assert found.settings.tree.branching == rule
            report = mipfs.verify(found, data)
            assert report.accepted, report.reason
        assert len({nodes[name, rule] for rule in branching.RULES}) > 1, f"{name}: the rules did not matter"
    monkeypatch.setitem(branching.RULES, "plain", "toy_baseline")
    monkeypatch.setattr(importlib.import_module("toy_baseline"), "choose", max, raising=False)
    with pytest.raises(UsageError, match="decorate choose of toy_baseline"):
        mipfs.solve(problem, "branch", branching="plain")
    monkeypatch.delitem(branching.RULES, "plain")
    for number, (body, message) in enumerate((
        ("0", "choose of wrong_rule_0 must return int64, not Literal"),
        ("relaxed.w[places[0]]", "choose of wrong_rule_1 must return int64, not float64"),
        ("relaxed.weights[places[0]]", "choose of wrong_rule_2 does not compile: .*'weights'.*wrong_rule_2.py"),
        ("places[0] + 1000", "must return one of the places that it is given"),
    )):  # fmt: skip
        text = EXAMPLES["toy_branching"].replace("return first", f"return {body}")
        (place / f"wrong_rule_{number}.py").write_text(text)
        monkeypatch.setitem(branching.RULES, "wrong", f"wrong_rule_{number}")
        with pytest.raises(UsageError, match=message):
            mipfs.solve(problem, "branch", branching="wrong")
    monkeypatch.delitem(branching.RULES, "wrong")
    known = f"one of {', '.join(branching.RULES)}"
    with pytest.raises(UsageError, match=f"branching = 'best' is not known; it is {known}"):
        mipfs.solve(problem, "branch", branching="best")


@pytest.mark.slow
def test_an_executor(place: Path) -> None:
    """Processes, of which one is killed in the middle: status, value and certificate are those of threads."""
    Processes = importlib.import_module("toy_executor").Processes
    data = make(n=100, p=20, seed=1)
    problem = Problem(data, M=5)
    here = mipfs.solve(problem, "branch", gap=1e-6, batch=4)
    assert here.counters["nodes"] > 40
    processes, killed = Processes(2), list[int]()

    def watch(record: mipfs.Record) -> None:
        if record.iteration >= strike_at and not killed:
            killed.append(next(iter(processes.pool._processes)))
            os.kill(killed[0], signal.SIGKILL)

    for strike_at in (math.inf, here.counters["nodes"] // 3):  # noqa: B007 (`watch` reads it)
        there = mipfs.solve(problem, "branch", gap=1e-6, batch=4, executor=processes, callback=watch)
        assert (there.status, there.selected) == (here.status, here.selected)
        assert there.objective == pytest.approx(here.objective, rel=1e-9)
        assert there.counters["nodes"] == here.counters["nodes"]
        assert mipfs.verify(there, data).accepted
    assert processes.broken == len(killed) == 1
    with pytest.raises(UsageError, match="executor = 2 must be of the kind Executor or None"):
        mipfs.solve(problem, "branch", executor=2)
    with pytest.raises(UsageError, match="leave executor or nodes out"):
        mipfs.solve(problem, "branch", executor=processes, nodes="conic")


def test_a_measure(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(measures.MEASURES, "missed", "toy_measure")
    problem = Problem(make(), loss="structural", measure="missed", bias=False, M=2, C=50.0)
    found = mipfs.solve(problem, "gbd", gap=1e-6)
    assert found.status is mipfs.Status.OPTIMAL
    values = []
    for chosen in itertools.combinations(range(7), 2):
        only = problem.replace(forced_in=tuple(f"x{j + 1}" for j in chosen))
        values.append(mipfs.solve(only, "gbd", gap=1e-6).objective)
    assert found.objective == pytest.approx(min(values), rel=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("self.y * scores < 0.5", "self.y * scores < 0.3", r"it is not the most violated one, and no bound would hold"),
        ("/ self.n, scores)", "/ self.n + 0.1, scores)", r"the loss of the true labels is 0.1, and must be 0"),
        ("/ self.n, scores)", "* self.n, scores)", r"violated says a loss of 12, and a loss is from 0 to 1"),
        ("return self.made(counts,", "return self.made(-counts.astype(int),", r"counts are from 0 to 1"),
        ("return self.made(counts,", "return self.made(counts[1:],", r"toy_measure.py:\d+: ValueError"),
        ("return self.made(", "return (", r"violated returns no Violated with a whole number for every sample"),
        ("return Missed(name, y)", "return 3", r"create of toy_measure.py returns int, which is no object of"),
        ("def create(", "def made(", r"toy_measure has no create, a function create\(name, y\)"),
    ],
)
def test_a_measure_that_contradicts_itself_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    """One whose labelling was not the most violated was answered OPTIMAL, at a wrong value."""
    text = EXAMPLES["toy_measure"]
    assert old in text
    (place / "toy_measure.py").write_text(text.replace(old, new))
    monkeypatch.setitem(measures.MEASURES, "missed", "toy_measure")
    with pytest.raises(UsageError, match=f"the measure 'missed': .*{message}"):
        mipfs.solve(Problem(make(), loss="structural", measure="missed", bias=False, M=2, C=50.0), "gbd")


@pytest.mark.slow
def test_a_baseline(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(baselines.BASELINES, "correlation", "toy_baseline")
    data = make()
    assert "correlation" in baselines.available()
    for name in baselines.available():
        found = baselines.get_baseline(name)(data, 2, 0.5)
        assert found.ids.size <= 2
        least = 0.5 if name == "uniform" else 0.6  # which looks at nothing
        assert float(np.mean((found.scores(data) > 0) == (data.y > 0))) > least, name
    for M in (-1, 0, 8):
        with pytest.raises(UsageError, match=f"M = {M} must be an integer from 1 to 7"):
            baselines.get_baseline("correlation")(data, M)
    with pytest.raises(UsageError, match="did you mean 'rfe'"):
        baselines.get_baseline("rfee")


def test_a_method_of_choosing_columns(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sketch.METHODS, "largest", "toy_sketch")
    data = make(p=12)
    assert "largest" in sketch.available()
    found = sketch.select(data, "largest", 5)
    assert set(found.ids.tolist()) == set(np.argsort(-np.linalg.norm(data.X, axis=0))[:5].tolist())
    assert found.guarantee.promised is None
    assert found.guarantee.epsilon == pytest.approx(1.0), "5 of 12 independent columns miss directions"
    assert found.guarantee.margin is not None


@pytest.mark.slow
def test_an_atom(place: Path) -> None:
    """Columns that are never stored: solved exactly, by every driver, with a certificate, and used on new data."""
    Squares = importlib.import_module("toy_atom").Squares
    r = np.random.default_rng(3)
    X = r.normal(size=(60, 6))
    y = np.where(X[:, 1] ** 2 + X[:, 4] ** 2 + 0.3 * r.normal(size=60) > 2.0, 1, -1)
    data, new = (Instance.from_arrays(X[part], y[part]) for part in (slice(45), slice(45, 60)))
    stored = Instance.from_arrays(np.square(data.X), data.y, feature_names=Squares(data).names)
    for driver, loss in itertools.product(("branch", "gbd", "kelley", "conic"), ("hinge", "squared-hinge", "logistic")):
        made = mipfs.solve(Problem(data, atoms=Squares(data), M=2, C=3.0, loss=loss), driver, gap=1e-6)
        same = mipfs.solve(Problem(stored, M=2, C=3.0, loss=loss), driver, gap=1e-6)
        assert (made.status, made.selected) == (same.status, same.selected)
        assert made.objective == pytest.approx(same.objective, rel=1e-6)
        assert made.bound == pytest.approx(same.bound, rel=1e-5)
        assert mipfs.verify(made, Squares(data).view).accepted
    best = mipfs.solve(Problem(data, atoms=Squares(data), M=2, C=3.0), gap=1e-8)
    assert best.selected == ("x2²", "x5²")
    assert np.mean((best.decision_function(Squares(new).view) > 0) == (new.y > 0)) > 0.8
    rows = Problem(data, atoms=Squares(data), M=3).with_rows(np.ones((1, 6)), 0.0, 1.0)
    assert len(mipfs.solve(rows).selected) == 1
    assert not mipfs.verify(best, Squares(new).view).accepted


MADE = {
    "np.full(self.data.X[:, ids].shape, np.nan)": "Squares.make of toy_atom.py makes nan in row 1 of atom 0",
    "self.data.X[:, ids].T": r"returns ndarray of shape \(7, 40\) and type float64; it returns a dense array",
    "sparse.csc_array(self.data.X[:, ids])": r"returns csc_array of shape \(40, 7\)",
    "self.data.X[:, ids] * 1j": r"type complex128; it returns a dense array of real numbers, \(n, k\) = \(40, 7\)",
    "self.data.X[:, ids] / nothing": r"Squares.make of toy_atom.py:\d+: NameError",
}


@pytest.mark.parametrize("made", MADE)
def test_columns_of_ones_own_that_are_no_numbers_are_refused(place: Path, made: str) -> None:
    """NaN was answered OPTIMAL, with no feature."""
    text = EXAMPLES["toy_atom"].replace("np.square(self.data.X[:, ids])", made)
    (place / "toy_atom.py").write_text("from scipy import sparse\n" + text)
    Squares = importlib.import_module("toy_atom").Squares
    with pytest.raises(UsageError, match=MADE[made]):
        mipfs.solve(Problem(make(), atoms=Squares(make()), M=2))


def test_names_of_made_atoms_are_all_different(place: Path) -> None:
    Squares = importlib.import_module("toy_atom").Squares
    assert pickle.loads(pickle.dumps(Squares(make()).view)).feature_names == tuple(f"x{j}²" for j in range(1, 8))
    for names, message in ((["a"] * 7, "two features are called 'a'"), ([1, 2], "1 is no feature name")):
        with pytest.raises(DataError, match=message):
            _ = type("Named", (Squares,), {"names": names})(make()).view


@pytest.mark.slow
def test_atoms_that_are_searched(place: Path) -> None:
    """Never held, and found by their search: the optimum and the relaxation of all of them as stored columns."""
    Distances = importlib.import_module("toy_implicit").Distances
    r = np.random.default_rng(5)
    X = r.normal(size=(130, 24))
    y = np.where(np.abs(X[:, 1] - X[:, 4]) + np.abs(X[:, 2] - X[:, 9]) + 0.1 * r.normal(size=130) > 2.2, 1, -1)
    data, new = (Instance.from_arrays(X[part], y[part]) for part in (slice(120), slice(120, 130)))
    atoms = Distances(data)
    left, right = np.triu_indices(24, 1)
    stored = Instance.from_arrays(np.abs(data.X[:, left] - data.X[:, right]), data.y, feature_names=atoms.names)
    for loss in ("hinge", "squared-hinge", "logistic"):
        searched, held = Problem(data, atoms=atoms, M=2, C=0.1, loss=loss), Problem(stored, M=2, C=0.1, loss=loss)
        exact, wanted = mipfs.solve(searched, gap=1e-7), mipfs.solve(held, gap=1e-7)
        assert (exact.status, exact.driver, exact.selected) == (wanted.status, "branch", wanted.selected)
        assert exact.status is mipfs.Status.OPTIMAL
        assert exact.objective == pytest.approx(wanted.objective, rel=1e-6)
        assert exact.bound <= wanted.objective * (1 + 1e-9)
        assert exact.counters["active"] < exact.counters["atoms"] == 276
        relaxed, same = (mipfs.solve(one, "kelley", gap=1e-5) for one in (searched, held))
        assert relaxed.status is same.status
        assert relaxed.bound == pytest.approx(same.bound, rel=3e-5)
        assert relaxed.bound <= wanted.objective * (1 + 1e-9)
    names, places = list(exact.selected), [atoms.names.index(name) for name in exact.selected]
    scores = atoms.on(new).made(np.array(places)) @ [exact.weights[name] for name in names] + exact.intercept
    np.testing.assert_allclose(exact.decision_function(atoms.on(new).data), scores, rtol=1e-12)
    assert exact.claim is None, "no checker searches them anew"
    with pytest.raises(UsageError, match="too many for rows"):
        Problem(data, atoms=atoms, M=2, forced_in=(names[0],))
    with pytest.raises(UsageError, match="made on other data"):
        Problem(new, atoms=atoms, M=2)


def test_columns_that_are_made_are_those_of_the_stored_matrix() -> None:
    r = np.random.default_rng(0)
    X = np.asfortranarray(r.normal(size=(30, 50)))
    made = MadeMatrix(X.shape, lambda ids: X[:, ids])
    made._step = 7
    v, w, V = r.normal(size=30), r.normal(size=50) * (r.random(50) < 0.3), r.normal(size=(4, 30))
    for found, wanted in (
        (made.T @ v, X.T @ v), (made.T @ V.T, X.T @ V.T), (V @ made, V @ X), (made @ w, X @ w),
        (made.mean(axis=0), X.mean(axis=0)), (made[:, 3:9], X[:, 3:9]), (made[:, [4, 2]], X[:, [4, 2]]),
    ):  # fmt: skip
        np.testing.assert_allclose(found, wanted, atol=1e-14)
    assert made.size == X.size


def test_a_formulation(place: Path) -> None:
    built = formulation.load(place / "toy_formulation.py")(make(), {"M": 1})
    found = mipfs.solve(built, gap=1e-8)
    other = mipfs.solve(Problem(make(), M=1, forced_out=("x1",)), gap=1e-8)
    assert found.objective == pytest.approx(other.objective, rel=1e-7)
    assert mipfs.verify(found, make()).accepted


def conflicting(seed: int = 0) -> Problem:
    """The five best features are pairwise in conflict, and so are three others."""
    r = np.random.default_rng(seed)
    X = r.normal(size=(60, 9))
    y = np.where(X[:, :5].sum(axis=1) + 0.5 * r.normal(size=60) > 0, 1, -1)
    edges = [*itertools.combinations(range(5), 2), (5, 6), (6, 7), (5, 7)]
    A = np.array([np.isin(np.arange(9), edge) for edge in edges], dtype=float)
    return Problem(Instance.from_arrays(X, y), M=4, C=1.0).with_rows(A, -np.inf, 1.0)


@pytest.mark.slow
def test_a_family_of_cuts(place: Path, tmp_path: Path) -> None:
    problem = conflicting()
    strong = problem.strengthened(importlib.import_module("toy_cuts").cuts)
    rows = strong.selection.rows
    assert (len(problem.selection.rows), len(rows)) == (13, 13 + 11)
    for r in range(13, len(rows)):
        assert sorted(rows.matrix[[r]].toarray().ravel().tolist()) == [0.0] * 6 + [1.0] * 3
        assert (rows.lb[r], rows.ub[r]) == (-np.inf, 1.0)
    for sigma in itertools.product([False, True], repeat=9):  # they restrict nothing
        chosen = np.array(sigma)
        assert problem.selection.contains(chosen) == strong.selection.contains(chosen)
    least = min(
        mipfs.solve(Problem(data_on(problem, s), M=len(s), C=1.0), "gbd", gap=1e-9).objective
        for size in range(1, 5)
        for s in itertools.combinations(range(9), size)
        if problem.selection.contains(np.isin(np.arange(9), s))
    )
    for driver in ("branch", "gbd"):
        plain, result = (mipfs.solve(one, driver, gap=1e-7) for one in (problem, strong))
        assert result.status is mipfs.Status.OPTIMAL, driver
        assert result.selected == plain.selected
        assert result.objective == pytest.approx(least, rel=1e-6)
        report = mipfs.verify(result, problem.data)
        assert report.accepted, report.reason
        assert not any("derived" in line for line in report.statement)
        result.save(tmp_path / f"{driver}.json")
        loaded = mipfs.Result.load(tmp_path / f"{driver}.json")
        assert loaded.certificate is not None
        assert len(loaded.certificate["derived"]) == 11
        assert mipfs.verify(loaded, problem.data).accepted
    weak, tight = (mipfs.solve(one, "kelley", relaxation="box", gap=1e-7).bound for one in (problem, strong))
    assert tight > weak * (1 + 1e-3)


@pytest.mark.slow
def test_a_separator(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triangles of conflicts are found where a relaxation breaks them; answer and proof as without."""
    monkeypatch.setitem(separators.SEPARATORS, "triangles", "toy_separator")
    for seed in range(3):
        problem = conflicting(seed)
        plain = mipfs.solve(problem, "branch", gap=1e-7)
        found = mipfs.solve(problem, "branch", gap=1e-7, separate="triangles")
        assert found.objective == pytest.approx(plain.objective, rel=1e-6)
        assert found.selected == plain.selected
        report = mipfs.verify(found, problem.data)
        assert report.accepted, report.reason
        assert found.claim is not None
        derived = found.claim.entry().get("derived", [])
        assert 0 < len(derived) <= 11
        at_root = [mipfs.solve(problem, "branch", iteration_limit=1, separate=one) for one in (None, "triangles")]
        assert at_root[1].bound > at_root[0].bound * (1 + 1e-3)
        assert all(sorted(one["terms"].values()) == [1, 1, 1] and one["ub"] == 1 for one in derived)


@pytest.mark.slow
def test_a_rule_with_a_state(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory makes the tree another one than that of the rule which it falls back to; threads do not."""
    monkeypatch.setitem(branching.RULES, "stateful", "toy_stateful")
    problem = Problem(make(n=60, p=14), M=5, C=1.0)
    usual = mipfs.solve(problem, "branch", gap=1e-7)
    found = [mipfs.solve(problem, "branch", gap=1e-7, branching="stateful", threads=count) for count in (1, 2)]
    for one in found:
        assert one.status is mipfs.Status.OPTIMAL
        assert one.objective == pytest.approx(usual.objective, rel=1e-6)
        assert mipfs.verify(one, problem.data).accepted
        assert one.counters == found[0].counters
    assert found[0].counters["nodes"] != usual.counters["nodes"]
    text = EXAMPLES["toy_stateful"].replace("MEMORY = 2", "MEMORY = 0")
    (place / "toy_forgetful.py").write_text(text)
    monkeypatch.setitem(branching.RULES, "forgetful", "toy_forgetful")
    with pytest.raises(UsageError, match="a rule has both MEMORY, a whole number, and learn, or none of them"):
        mipfs.solve(problem, "branch", branching="forgetful")


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "mu", "delta"), [("hinge", 1.0, 0.1), ("logistic", 0.3, 0.5), ("hinge", 0.2, 5.0)])
def test_a_second_regulariser(place: Path, monkeypatch: pytest.MonkeyPatch, loss: str, mu: float, delta: float) -> None:
    """Every support against a program of CVXPY; certified, and another mu or delta is refused."""
    monkeypatch.setitem(regularisers.REGULARISERS, "hubered", "toy_huber")
    data, C, M = make(n=30, p=5), 1.0, 2
    term = importlib.import_module("toy_huber").Hubered(mu, delta)
    problem = Problem(data, loss=loss, M=M, C=C, regulariser=term)
    best = min(
        hubered(data.X[:, [*s]], data.y, C, loss, mu, delta)
        for size in range(M + 1)
        for s in itertools.combinations(range(5), size)
    )
    for driver in ("branch", "gbd"):
        found = mipfs.solve(problem, driver, gap=1e-7)
        assert found.objective == pytest.approx(best, rel=1e-6)
        assert found.bound <= best * (1 + 1e-7)
        assert mipfs.verify(found, data).accepted
        assert found.claim is not None
        document = json.loads(found.to_json()) | dict(found.stated) | {"certificate": found.claim.entry()}
        for other in ({"mu": 0.9 * mu, "delta": delta}, {"mu": mu, "delta": 1.1 * delta}, {"mu": mu}):
            stated = {"name": "hubered", **other}
            lie = document | {"params": document["params"] | {"regulariser": stated}}
            assert not check(lie, found.claim.proof.arrays(), data).accepted, other


def hubered(X: Any, y: Any, C: float, loss: str, mu: float, delta: float) -> float:
    """min over w, b of Σ ½w² + (mu/delta)·H_delta(w) + L, in CVXPY: its huber is 2H."""
    w, b = cp.Variable(max(1, X.shape[1])), cp.Variable()
    scores = (X @ w if X.shape[1] else np.zeros(y.size)) + b
    margins = cp.multiply(y, scores)
    total = cp.sum(cp.pos(1 - margins)) if loss == "hinge" else cp.sum(cp.logistic(-margins))
    term = 0.5 * cp.sum_squares(w) + mu / (2.0 * delta) * cp.sum(cp.huber(w, delta))
    program = cp.Problem(cp.Minimize(term + C * total), [] if X.shape[1] else [w == 0])
    program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value)


def data_on(problem: Problem, chosen: tuple[int, ...]) -> Instance:
    """The data with some of its columns."""
    return Instance.from_arrays(problem.data.X[:, list(chosen)], problem.data.y)


FORGED = {
    "rhs": ("ub", lambda value: value - 1),
    "coefficient": ("terms", lambda terms: {name: value + 1 for name, value in terms.items()}),
    "another feature": ("terms", lambda terms: {"x9": 1, **terms}),
    "a term less": ("terms", lambda terms: dict([*terms.items()][1:])),
    "multiplier": ("rows", lambda rows: [[r, "2/3"] for r, _ in rows]),
    "negative": ("rows", lambda rows: [[r, "-1/2"] for r, _ in rows]),
    "no row": ("rows", lambda rows: [[99, "1/2"] for r, _ in rows]),
    "a row less": ("rows", lambda rows: rows[1:]),
    "no number": ("rows", lambda rows: [[r, "half"] for r, _ in rows]),
    "a float": ("rows", lambda rows: [[r, 0.5] for r, _ in rows]),
    "cardinality": ("cardinality", lambda value: "-1/9"),
    "bounds": ("bounds", lambda value: {"x1": "-1/2"}),
    "kind": ("kind", lambda value: "split"),
    "fraction": ("ub", lambda value: 0.5),
}


@pytest.mark.sampled(17)
@pytest.mark.parametrize("how", FORGED)
def test_a_forged_derivation_is_refused(place: Path, how: str) -> None:
    problem = conflicting()
    result = mipfs.solve(problem.strengthened(importlib.import_module("toy_cuts").cuts), "branch", gap=1e-7)
    assert result.claim is not None
    document, (name, change) = json.loads(result.to_json()) | dict(result.stated), FORGED[how]
    arrays, entry = result.claim.proof.arrays(), result.claim.entry()
    for k in (0, 10):
        forged = [dict(one) for one in entry["derived"]]
        assert check(document | {"certificate": entry}, arrays, problem.data).accepted
        forged[k][name] = change(forged[k][name])
        report = check(document | {"certificate": entry | {"derived": forged}}, arrays, problem.data)
        assert not report.accepted
        assert f"derived row {k + 1}" in report.reason
    weaker = [one | {"ub": one["ub"] + 1} for one in entry["derived"]]  # follows too, but proves less
    assert "derived" not in check(document | {"certificate": entry | {"derived": weaker}}, arrays, problem.data).reason


def exact_row(A: Array, ub: Array, derivation: ChvatalGomory, M: int) -> tuple[list[int], int]:
    """⌊Σ⌋ of rows, of the cardinality row and of bounds, in rational arithmetic."""
    a = [Fraction(derivation.cardinality) + derivation.bounds.get(j, 0) for j in range(A.shape[1])]
    end = derivation.cardinality * M + sum(derivation.bounds.values())
    for r, value in derivation.rows.items():
        a = [v + value * Fraction(entry) for v, entry in zip(a, A[r].tolist(), strict=True)]
        end += value * Fraction(ub[r])
    return [math.floor(v) for v in a], math.floor(end)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("seed", range(30))
def test_derived_rows_hold_for_every_selection(seed: int) -> None:
    """Of random rows and multipliers: enumerated, derived again, and read by the checker."""
    r = np.random.default_rng(seed)
    p, M, A = 6, int(r.integers(1, 6)), r.integers(-3, 6, (3, 6)) / r.choice([1.0, 2.0, 3.0, 10.0])
    ub = np.array([A.sum(axis=1) * r.uniform(0.3, 0.9, 3)]).ravel()
    data = Instance.from_arrays(r.normal(size=(12, p)), np.where(np.arange(12) % 2, 1, -1))
    problem = Problem(data, M=M).with_rows(A, -np.inf, ub)
    third = [Fraction(int(v), 6) for v in r.integers(0, 13, 10)]
    given = [
        ChvatalGomory({0: third[0], 1: third[1]}, third[2], {int(r.integers(p)): third[3]}),
        ChvatalGomory({2: third[4]}, bounds={j: third[5] for j in range(p)}),
    ]
    strong = problem.strengthened(lambda selection: given)
    rows = strong.selection.rows
    for k, one in enumerate(given):
        a, end = exact_row(A, problem.selection.rows.high, one, M)
        assert (rows.matrix[[3 + k]].toarray().ravel().tolist(), rows.ub[3 + k]) == (a, end)
    for sigma in itertools.product([False, True], repeat=p):
        if problem.selection.contains(np.array(sigma)):
            assert strong.selection.contains(np.array(sigma))
    result = mipfs.solve(strong, "branch", gap=1e-6)
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason


@pytest.mark.sampled(23)
@pytest.mark.parametrize("seed", range(20))
def test_a_cover_is_a_derived_row(seed: int) -> None:
    """Σ over a cover ≤ its size less one: t times the row, and 1 − t·a times σ ≤ 1."""
    r = np.random.default_rng(seed)
    a, p = r.integers(1, 30, 6) / 10.0, 6
    limit = float(r.uniform(0.3, 0.9) * a.sum())
    X = r.normal(size=(12, p))
    data = Instance.from_arrays(X, np.where(np.arange(12) % 2, 1, -1))
    problem = Problem(data, M=p).with_rows(a[None, :], -np.inf, limit)
    high = Fraction(problem.selection.rows.high[0])
    cover = next(s for n in range(1, p + 1) for s in itertools.combinations(range(p), n) if a[list(s)].sum() > limit)
    excess = sum(Fraction(a[j]) for j in cover) - high
    t = min(1 / excess, 1 / Fraction(a.max())) / 2
    strong = problem.strengthened(lambda _: [ChvatalGomory({0: t}, bounds={j: 1 - t * Fraction(a[j]) for j in cover})])
    rows = strong.selection.rows
    assert rows.matrix[[1]].toarray().ravel().tolist() == [float(j in cover) for j in range(p)]
    assert rows.ub[1] == len(cover) - 1
    for driver in ("branch", "gbd"):
        report = mipfs.verify(mipfs.solve(strong, driver, gap=1e-6), data)
        assert report.accepted, report.reason


def test_derivations_that_do_not_fit_are_refused() -> None:
    problem = conflicting()
    for wrong in (
        ChvatalGomory({0: Fraction(-1)}),
        ChvatalGomory({99: Fraction(1)}),
        ChvatalGomory({0: Fraction(1)}, Fraction(-1)),
        ChvatalGomory({}, bounds={0: Fraction(-1)}),
        ChvatalGomory({}, bounds={9: Fraction(1)}),
        ChvatalGomory({}, bounds={-1: Fraction(1)}),
        ChvatalGomory({0: Fraction(2) ** 60}),
    ):
        with pytest.raises(UsageError, match="derived row"):
            problem.strengthened(lambda selection, wrong=wrong: [wrong])  # type: ignore[misc]
    with pytest.raises(UsageError, match="the family of cuts returns None; it yields derivations"):
        problem.strengthened(lambda selection: None)  # type: ignore[arg-type, return-value]


def test_a_reader(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(files.FORMATS, ".json", "json")
    monkeypatch.setitem(readers.READERS, "json", importlib.import_module("toy_reader").read_json)
    data = make()
    samples = [{"label": int(y), **dict(zip("abcdefg", x, strict=True))} for x, y in zip(data.X, data.y, strict=True)]
    (place / "data.json").write_text(json.dumps(samples))
    found = mipfs.read(place / "data.json", scale="standard")
    assert found.feature_names == tuple("abcdefg")
    same = Instance.from_arrays(data.X, data.y, scale="standard", feature_names=list("abcdefg"))
    np.testing.assert_array_equal(found.X, same.X)
    solved, wanted = (mipfs.solve(Problem(one, M=2)) for one in (found, same))
    assert (solved.selected, solved.objective) == (wanted.selected, pytest.approx(wanted.objective))
    assert mipfs.verify(solved, found).accepted
    with pytest.raises(DataError, match="json files are read as a whole alone"):
        convert(place / "data.json", place / "store")
    for wrong in ("{", "[]", '[{"label": 1, "a": 2}, {"label": -1}]'):
        (place / "data.json").write_text(wrong)
        with pytest.raises(DataError, match="not a list of samples"):
            mipfs.read(place / "data.json")


@pytest.mark.slow
def test_a_command(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from mipfs.cli import main
    from mipfs.cli.app import app
    from mipfs.cli.errors import command

    monkeypatch.setattr(app, "registered_commands", [*app.registered_commands])
    app.command()(command(importlib.import_module("toy_command").classes))
    (place / "data.csv").write_text("label,a,b\n1,2,3\n0,1,5\n1,3,3\n")
    assert main(["classes", str(place / "data.csv"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == {"positive": 2, "negative": 1}
    assert main(["classes", str(place / "data.csv")]) == 0
    assert "positive" in capsys.readouterr().out
    assert main(["classes", str(place / "none.csv")]) == 2, "errors become one line and an exit code"
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["classes", str(place / "data.csv"), "--json", str(place / "data.csv")]) == 2, "an output is an input"


def test_all_examples_are_run() -> None:
    kinds = (
        "loss", "regulariser", "measure", "atom", "implicit", "driver", "formulation", "baseline", "reader", "command",
        "sketch", "branching", "stateful", "executor", "cuts", "separator", "huber",
    )  # fmt: skip
    assert {*EXAMPLES} == {f"toy_{kind}" for kind in kinds}
