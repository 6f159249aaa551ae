"""What a driver declares it carries: it does, against enumeration; what it does not is refused with those that can."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import formulation
from mipfs.atoms import make
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree
from mipfs.capability import ATOMS
from mipfs.data.instance import Instance
from mipfs.drivers import capabilities, get_driver
from mipfs.errors import UsageError
from mipfs.problem import Problem
from mipfs.selection.selection import Extras, Rows
from tests import readme_tables, strategies
from tests.oracles import brute_force

P = 5
EXACT = ("branch", "gbd", "monolithic")


def draw(seed: int, weights: bool = False) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((24, P))
    y = np.where(X @ r.standard_normal(P) + r.standard_normal(24) > 0, 1.0, -1.0)
    return Instance.from_arrays(X, y, sample_weight=r.uniform(0.3, 3.0, 24) if weights else None)


def atoms_on(data: Instance, kind: str) -> Any:
    made = {
        "features": lambda: Features(data),
        "scaled features": lambda: Features(data, np.array([0.5, 2.0, 1.0, 0.3, 1.5])),
        "groups": lambda: Groups(data, {"a": ["x1", "x2"], "b": ["x2", "x3"], "c": ["x4"], "d": ["x5", "x1"]}, "norm"),
        "trees": lambda: Tree(data, {"x1": "u", "x2": "u", "u": "v", "x3": "v"}),
        "made groups": lambda: make("splines", data, knots=3, degree=1),
    }[kind]()
    assert made.kind == kind
    return made


def enumerated(problem: Problem, at_most: int | None = None) -> float:
    """min over the allowed sets of atoms of the SVM on their own copies of the columns, times their scales."""
    atoms, data = problem.atoms, problem.data
    best, most = np.inf, atoms.count if problem.M is None else problem.M
    for size in range(most + 1):
        for chosen in itertools.combinations(range(atoms.count), size):
            sigma = np.zeros(atoms.count, dtype=bool)
            sigma[list(chosen)] = True
            if at_most is not None and sigma.sum() > at_most:
                continue
            columns = atoms.columns(np.array(chosen, dtype=np.int64))
            Z = data.X[:, columns.ids] * columns.scale
            whole = [frozenset(range(Z.shape[1]))]
            found = brute_force(Z, data.y, problem.c_i, whole, np.zeros(Z.shape[1]), problem.bias, loss=problem.loss)
            best = min(best, found.value.upper + float(problem.penalty[sigma].sum()))
    return best


def exact_cases() -> list[Any]:
    """Drivers, atoms and losses; of SCIP's, a process for each, one, and the rest slow."""
    made = []
    for driver in EXACT:
        for (i, loss), (k, kind) in itertools.product(enumerate(strategies.LOSSES), enumerate(ATOMS)):
            marks = [pytest.mark.slow] if driver == "monolithic" and (i != k % 3 or k != 0) else []
            made.append(pytest.param(driver, kind, loss, marks=marks))
    return made


@pytest.mark.sampled(47)
@pytest.mark.parametrize(("driver", "kind", "loss"), exact_cases())
def test_atoms_are_solved_as_enumeration_has_them_or_refused(driver: str, kind: str, loss: str) -> None:
    if driver == "monolithic":
        pytest.importorskip("pyscipopt", reason="the monolithic driver needs SCIP (extra 'scip')")
    declared = capabilities()[driver]
    weighted = (False, True) if driver != "monolithic" else (kind != "features",)  # a process for each
    assert loss in declared.losses
    for weights in weighted:
        data = draw(3, weights)
        problem = Problem(data, loss=loss, M=2, lam=0.05, atoms=atoms_on(data, kind))
        if kind not in declared.atoms:
            with pytest.raises(UsageError, match=rf"driver '{driver}' cannot carry {kind}; branch, .* can"):
                mipfs.solve(problem, driver)
            continue
        assert mipfs.solve(problem, driver, gap=1e-7).objective == pytest.approx(enumerated(problem), rel=1e-6)


def problems() -> list[Problem]:
    """One for every aspect of a capability."""
    plain, weighted = draw(1), draw(1, weights=True)
    joint: dict[str, Any] = {"loss": "structural", "bias": False, "measure": "f1", "C": 20.0}
    extra = Extras(("extra_t",), np.zeros(1), np.ones(1), np.zeros(1, bool))
    level = sparse.csr_array(np.array([[1.0, 1, 1, 1, 1, -2.0]]))  # Σσ ≤ 2t, t ≤ 1
    shared = Rows(level, np.array([-np.inf]), np.zeros(1), ("level",), ("",), extra)
    some: list[dict[str, Any]] = [
        {},
        {"bias": False},
        {"lam": 0.1},
        {"forced_in": ("x2",), "forced_out": ("x1",)},
        {"rows": shared},
    ]
    made = [Problem(plain, M=3, loss=loss, **more) for loss in ("hinge", "squared-hinge", "logistic") for more in some]
    made += [Problem(plain, M=3, **joint, **more) for more in some if "bias" not in more]
    made += [Problem(weighted, M=3), Problem(plain, M=3, loss="squared-hinge", margin="rho")]
    return [*made, *(Problem(plain, M=2, atoms=atoms_on(plain, kind)) for kind in ATOMS)]


@cache
def optimum(place: int) -> mipfs.Result:
    """What `gbd` finds for one of `problems`."""
    return mipfs.solve(problems()[place], "gbd", gap=1e-7)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("driver", [name for name in capabilities() if name != "monolithic"])
def test_a_driver_carries_what_it_declares_and_refuses_the_rest(driver: str) -> None:
    """Against `gbd`, which enumeration has checked: a bound below its optimum, an incumbent that is allowed."""
    declared = capabilities()
    for place, problem in enumerate(problems()):
        if declared[driver].lacking(problem):
            with pytest.raises(UsageError, match=f"driver '{driver}' cannot carry"):
                mipfs.solve(problem, driver)
            continue
        result, exact = mipfs.solve(problem, driver), optimum(place)
        assert result.bound <= exact.objective + 1e-7 * abs(exact.objective)
        assert result.objective >= exact.bound - 1e-7 * abs(exact.bound)
        sigma = np.zeros(problem.atoms.count, dtype=bool)
        sigma[problem.atoms_of(result.selected)] = True
        assert problem.selection.contains(sigma)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [entry.name for entry in formulation.table()])
def test_a_formulation_declares_what_it_carries_and_refuses_the_rest(name: str) -> None:
    declare = formulation.load(name).declare
    for problem in problems():
        lacking = formulation.capabilities()[name].lacking(problem)
        if name in ("fsp-m", "fsp-lambda"):
            build, name_of = formulation.algebraic_model, "fsp-m"
        elif name in ("reduced-mkl", "structural") or declare is None:
            if lacking and declare is not None:
                more = (np.zeros((1, 24)), np.zeros(1)) if name == "structural" else ()
                with pytest.raises(UsageError, match=f"formulation '{name}' cannot carry"):
                    declare(problem, *more, [["x1"]])
            continue
        else:
            build, name_of = declare, name
        if lacking:
            with pytest.raises(UsageError, match=f"formulation '{name_of}' cannot carry"):
                build(problem)
        else:
            build(problem)


def test_the_message_names_what_is_missing_and_who_can() -> None:
    data = draw(1)
    problem = Problem(data, M=2, loss="logistic", atoms=Features(data, "norm"))
    with pytest.raises(UsageError) as said:
        mipfs.solve(problem, "two_layer")
    assert str(said.value) == (
        "driver 'two_layer' cannot carry the loss 'logistic' and a free bias; branch, conic, gbd, kelley, monolithic "
        "can (see `mipfs models`)"
    )
    assert not hasattr(get_driver("branch"), "LOSSES")


def test_the_tables_of_the_manual_are_what_the_code_prints() -> None:
    for page in (readme_tables.PAGE, readme_tables.ADDITIVE):
        text = page.read_text(encoding="utf-8")
        assert readme_tables.rendered(text) == text, "run: python -m tests.readme_tables"
