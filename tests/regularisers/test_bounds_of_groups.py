"""Bounds on the weights of groups: brute force over all selections, models, lists, the ladder, and forged certificates.

Hundreds of random problems, of classes on one support too, are in `tests.kinds`.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.data.against_rest import with_bounds
from mipfs.data.instance import Instance, Labels
from mipfs.errors import UsageError
from mipfs.models import boolean_relaxation
from mipfs.models.perspective import perspective
from mipfs.problem import Problem
from mipfs.shared import shared_problem
from tests.bounded_cases import LOSSES, clarabel, declared
from tests.kinds import case, faults, of_classes
from tests.two_checkers import data_of, remembered, second, verdicts, written

R = np.random.default_rng(3)
N, P = 40, 7
X = R.normal(size=(N, P)) * np.array([1.0, 4.0, 0.5, 1.0, 1.0, 2.0, 1.0]) + 1.0
Y = np.where(X[:, 0] - 0.3 * X[:, 1] + X[:, 3] + 0.5 * R.normal(size=N) > 1.5, 1.0, -1.0)
with remembered():
    DATA = Instance.from_arrays(X, Y, scale="standard")
GROUPS = {"a": [1, 0], "b": [2, 3], "c": [4], "d": [6, 5]}
ENDS = {"x1": (0.0, 0.4), "x2": (-0.3, 0.2), "x4": (None, 0.0), "x6": (-0.05, 0.1), "x7": (0.0, None)}
LOW = np.array([0.0, -0.3, -np.inf, -np.inf, -np.inf, -0.05, 0.0])
HIGH = np.array([0.4, 0.2, np.inf, 0.0, np.inf, 0.1, np.inf])


def problem(**changes: Any) -> Problem:
    given: dict[str, Any] = {"M": 2, "C": 0.5, "atoms": Groups(DATA, GROUPS), "weight_bounds": ENDS}
    return Problem(DATA, **(given | changes))


def value(ids: list[int], loss: str, C: float = 0.5) -> float:
    """Of the SVM on some columns within their ends, by Clarabel."""
    ends = LOW[ids] * X.std(axis=0)[ids], HIGH[ids] * X.std(axis=0)[ids]
    program = declared(((X - X.mean(axis=0)) / X.std(axis=0))[:, ids], Y, C * np.ones(N), loss, True, ends)
    program.solve(**clarabel(1e-9))
    return float(program.value)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", LOSSES)
def test_exact(loss: str) -> None:
    agree(loss, ("branch", "gbd"))


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_every_driver_and_rung(loss: str) -> None:
    best = agree(loss, ("conic", "kelley"))
    values = [one.value for one in mipfs.compare(problem(loss=loss)).ladder if np.isfinite(one.value)]
    assert values == sorted(values)
    assert values[-1] <= best * (1 + 1e-9)


def agree(loss: str, drivers: tuple[str, ...]) -> float:
    """Compare drivers with all selections, of which the best value is returned."""
    pairs = itertools.combinations(GROUPS.values(), 2)
    best = min(value([*one, *other], loss) for one, other in pairs)
    asked = problem(loss=loss)
    for driver in drivers:
        found = mipfs.solve(asked, driver, gap=1e-6)
        assert found.bound <= best * (1 + 1e-9) <= found.objective * (1 + 1e-8)
        assert mipfs.verify(found, DATA).accepted
        if driver in ("branch", "gbd"):
            assert found.objective == pytest.approx(best, rel=2e-6)
    return best


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [2, 5, 9])
def test_of_the_campaign(seed: int) -> None:
    """Cases of `tests.kinds`."""
    with remembered():
        one = case(seed)
    assert not faults(one, 1, Counter())


def test_of_classes() -> None:
    """Three classes on one support, each with ends of its own."""
    assert not of_classes(case(5, 0, 0.0), 1, Counter())


def test_a_list_is_complete() -> None:
    found = mipfs.solve(problem(), "branch", gap=1e-6, pool_gap=0.4)
    listed = {frozenset(one["selected"]): one["objective"] for one in found.near_optimal["supports"]}
    every = itertools.chain.from_iterable(itertools.combinations(GROUPS, k) for k in range(3))
    for names in map(frozenset, every):
        own = value([j for name in sorted(names) for j in GROUPS[name]], "hinge")
        without = [value([j for other in names - {name} for j in GROUPS[other]], "hinge") for name in names]
        if own <= 1.4 * found.objective * (1 - 1e-6) and all(one > own * (1 + 1e-6) for one in without):
            assert listed.pop(names) == pytest.approx(own, rel=1e-5)
    assert not listed or min(listed.values()) >= 1.4 * found.objective * (1 - 1e-6)
    assert found.near_optimal["complete"]
    assert mipfs.verify(found, DATA).accepted


def test_in_models() -> None:
    """Ends that are written on the weights of a model are those of `weight_bounds`."""
    plain, want, scale = problem(weight_bounds={}), mipfs.solve(problem(), gap=1e-6), DATA.scale
    model = perspective(plain, name="groups")
    program = boolean_relaxation.declare(plain.replace(loss="squared-hinge"))
    w, rows = program.variables["w"], []
    for group, members in GROUPS.items():
        for j in members:
            low, high = (None if end is None else end * scale[j] for end in ENDS.get(f"x{j + 1}", (None, None)))
            model.svm.w[group, f"x{j + 1}"].setlb(low)
            model.svm.w[group, f"x{j + 1}"].setub(high)
            rows += [w[j] >= low] * (low is not None) + [w[j] <= high] * (high is not None)
    assert mipfs.solve(model, gap=1e-6).objective == pytest.approx(want.objective, rel=1e-6)
    assert len(perspective(problem(), name="groups").svm.ends) == 8
    smooth = mipfs.solve(problem(loss="squared-hinge"), gap=1e-6)
    again = mipfs.solve(program.with_constraints(rows), "branch", gap=1e-6)
    assert again.objective == pytest.approx(smooth.objective, rel=1e-6)


def test_a_column_of_several_groups_has_signs_alone() -> None:
    """A sign of the sum is one of every copy (the reference has the sum alone); another end is refused."""
    atoms = Groups(DATA, {"a": [0, 1], "b": [1, 3], "c": [3, 4, 6]})
    found = mipfs.solve(problem(atoms=atoms, weight_bounds={"x2": (0.0, None), "x1": (0.0, 0.4)}, M=3), gap=1e-7)
    held = np.array([1.0, 2.0, 2.0, 1.0, 1.0])  # copies of columns 0, 1, 3, 4, 6
    ids = [0, 1, 3, 4, 6]
    low, high = np.full((2, 5), np.inf) * np.array([[-1.0], [1.0]])
    low[:2], high[0] = 0.0, 0.4 * X[:, 0].std()
    Z = ((X - X.mean(axis=0)) / X.std(axis=0))[:, ids] * np.sqrt(held)
    program = declared(Z, Y, 0.5 * np.ones(N), "hinge", True, (low, high))
    program.solve(**clarabel(1e-9))
    assert found.objective == pytest.approx(float(program.value), rel=1e-6)
    assert mipfs.verify(found, DATA).accepted
    with pytest.raises(UsageError, match=r"weight_bounds of 'x2' = .* stands in several groups"):
        problem(atoms=atoms, weight_bounds={"x2": (0.0, 5.0)})


Forge = Callable[[dict[str, Any]], Any]


def put(*path: Any, to: Any) -> Forge:
    """A forgery: another value at a place of the document."""

    def forge(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = to

    return forge


FORGED: dict[str, Forge] = {
    "no bounds": put("params", "weight_bounds", to={}),
    "a sign turned": put("params", "weight_bounds", "x1", to=[None, 0.0]),
    "a weight beyond": put("params", "weight_bounds", "x1", to=[0.0, 1e-3]),
    "an end without 0": put("params", "weight_bounds", "x1", to=[1e-3, 0.4]),
    "no feature": put("params", "weight_bounds", "x9", to=[0.0, None]),
    "a scale": put("atoms", "scale", to=[1.0, 2.0, 1.0, 1.0]),
    "another column too": put("atoms", "columns", 2, to=["x1", "x5"]),
    "a box of a shared column": put("atoms", "columns", 2, to=["x2", "x5"]),
    "a column less": put("atoms", "columns", 0, to=["x2"]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_forged_ones_are_refused(loss: str) -> None:
    text, arrays = written(mipfs.solve(problem(loss=loss), gap=1e-5)) or ("", {})
    honest = json.loads(text)
    assert verdicts(honest, arrays, DATA, data_of(DATA))[:2] == ("accepted", "accepted")
    for name, forge in FORGED.items():
        document = copy.deepcopy(honest)
        forge(document)
        said = verdicts(document, arrays, DATA, data_of(DATA))
        assert "accepted" not in said[:2], f"{name}: {said}"


def test_bounds_of_classes() -> None:
    """By feature for all classes, by feature|class for one; nothing else."""
    classes = [
        Instance.from_arrays(X[:, :3], np.where(np.arange(N) % 3 == k, 1.0, -1.0), labels=Labels(f"not {k}", k))
        for k in range(3)
    ]
    found = with_bounds(classes, {"x1": (None, 2), "x1|1": (0, None), "x3|2": (-1, 1)})
    assert [one.weight_bounds.get("x1") for one in found] == [(-np.inf, 2), (0.0, 2), (-np.inf, 2)]
    assert [one.weight_bounds.get("x3") for one in found] == [None, None, (-1.0, 1.0)]
    stack = shared_problem(classes, M=1, weight_bounds={"x1|1": (0, None)})
    assert stack.weight_bounds == {"x1|1": (0.0, np.inf)}
    for name in ("x1|3", "x4", "(intercept)|1", "intercept"):
        with pytest.raises(UsageError, match="weight_bounds: "):
            with_bounds(classes, {name: (0, None)})
    names = [Instance.from_arrays(X[:, :2], one.y, feature_names=["a", "a|1"], labels=one.labels) for one in classes]
    with pytest.raises(UsageError, match=r"'a\|1' has two meanings"):
        with_bounds(names, {"a": (0, None)})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shared", [False, True])
def test_classes_on_the_command_line(
    shared: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read of options and of the .toml, in the JSON, and verified by both checkers; forged ones are refused."""
    from mipfs.cli import main

    monkeypatch.chdir(tmp_path)
    label = np.array(["low", "mid", "top"])[np.digitize(X[:, 0] - 0.3 * X[:, 1], [0.0, 1.0])]
    rows = [",".join([*(f"{x:.3f}" for x in X[i, :3]), label[i]]) for i in range(N)]
    Path("t.csv").write_text("\n".join(["x,y,z,label", *rows]) + "\n", encoding="utf-8")
    Path("t.toml").write_text('[weights]\nnonnegative = ["x|top"]\nbounds = { z = [-1.0, 2.0] }\n', encoding="utf-8")
    options = ["--nonpositive", "y|top,z|low", "--weight-bounds", "x|low=-0.013:0.017", "--quiet", "--json", "r.json"]
    more = ["--shared-support"] if shared else []
    assert main(["solve", "fsp-m", "t.csv", "-p", "M=2", "--scale", "standard", *options, *more]) == 0
    document = json.loads(Path("r.json").read_text(encoding="utf-8"))
    bounds = [one["params"].get("weight_bounds") for one in document["results"]]
    assert bounds[1] == {"z": [-1.0, 2.0]}
    assert bounds[2] == {"x": [0.0, None], "y": [None, 0.0], "z": [-1.0, 2.0]}
    assert bounds[0] == {"x": [-0.013, 0.017], "z": [-1.0, 0.0]}
    assert main(["verify", "r.json", "t.csv"]) == 0
    assert "the data asks for" not in capsys.readouterr().out
    assert second().main(["r.json", "t.csv"]) == 0
    forged = {("results", 2, "params", "weight_bounds"): {"x": [0.0, None]}}
    if shared:
        held = document["together"]["params"]["weight_bounds"]
        forged[("results", 0, "params")] = {**document["results"][0]["params"], "weight_bounds": {"z": [-1.0, 2.0]}}
        forged[("together", "params", "weight_bounds")] = held | {"(intercept)|low": [None, None]}
    for place, to in forged.items():
        other = copy.deepcopy(document)
        put(*place, to=to)(other)
        Path("r.json").write_text(json.dumps(other), encoding="utf-8")
        known = to == {"x": [0.0, None]} and not shared  # looser bounds of a class alone: the proof decides
        assert known or main(["verify", "r.json", "t.csv", "--quiet"]) != 0
        assert known or second().main(["r.json", "t.csv"]) != 0
