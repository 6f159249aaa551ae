"""Atoms belong to the data that they were made on: a stamp, the refusal of others, and the same atoms on other data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.problem import Problem
from tests.oracles import allowed_supports, brute_force

P = 6
NAMES = tuple(f"x{j + 1}" for j in range(P))
SCALE = np.array([1.0, 0.5, 3.0, 0.2, 1.0, 2.0])
MAKE: dict[str, Callable[[Instance], Any]] = {
    "features": Features,
    "scaled": lambda data: Features(data, SCALE),
    "norm": lambda data: Features(data, "norm"),
    "groups": lambda data: Groups(data, {"a": ["x1", "x2"], "b": ["x2", "x3"], "c": ["x4"]}, "norm"),
    "tree": lambda data: Tree(data, {"x1": "u", "x2": "u", "u": "v", "x3": "v"}),
}


def draw(seed: int, **more: Any) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((30, P))
    return Instance.from_arrays(X, np.where(X @ r.standard_normal(P) + r.standard_normal(30) > 0, 1.0, -1.0), **more)


@pytest.mark.parametrize("kind", MAKE)
def test_atoms_of_other_data_are_refused_and_made_again_by_on(kind: str) -> None:
    one, other = draw(1), draw(2)
    atoms = MAKE[kind](one)
    with pytest.raises(UsageError, match=r"made on other data.*atoms\.on\(data\)"):
        Problem(other, atoms=atoms)
    moved = atoms.on(other)
    assert moved.data is other
    assert type(moved) is type(atoms)
    assert np.array_equal(moved.scale, atoms.scale), "scaled atoms keep their scale"
    assert tuple(moved.names) == tuple(atoms.names)
    every = np.arange(atoms.count)
    assert np.array_equal(moved.columns(every).ids, atoms.columns(every).ids)
    v = np.random.default_rng(0).standard_normal(30)
    exact = [SCALE[j] ** 2 * float(other.X[:, j] @ v) ** 2 for j in range(P)]
    if kind == "scaled":
        assert moved.scores(v) == pytest.approx(exact)
    there = Problem(one, M=2, atoms=atoms).replace(data=other)
    assert mipfs.solve(there).objective == mipfs.solve(Problem(other, M=2, atoms=moved)).objective


@pytest.mark.parametrize("kind", MAKE)
def test_a_stamp_says_which_data_and_which_atoms(kind: str) -> None:
    one, again, other = draw(1), draw(1), draw(2)
    atoms = MAKE[kind](one)
    assert atoms.stamp == MAKE[kind](again).stamp == atoms.on(again).stamp
    assert Problem(again, M=2, atoms=atoms).atoms is atoms, "the same data, read twice"
    stamps = {make(data).stamp for make in MAKE.values() for data in (one, other, draw(1, scale="standard"))}
    assert len(stamps) == 3 * len(MAKE)
    dense, stored = Instance.from_arrays(one.X, one.y), Instance.from_arrays(sparse.csc_array(one.X), one.y)
    assert MAKE[kind](dense).stamp == MAKE[kind](stored).stamp


def test_scaled_features_keep_the_problem_on_other_data() -> None:
    """`replace(data=)` against enumeration of the scaled columns."""
    there = Problem(draw(1), loss="squared-hinge", M=2, atoms=Features(draw(1), SCALE)).replace(data=draw(3))
    data = there.data
    allowed = allowed_supports(NAMES, 2, ())
    exact = brute_force(data.X * SCALE, data.y, np.ones(30), allowed, np.zeros(P), True, loss="squared-hinge")
    for driver in ("branch", "gbd"):
        assert mipfs.solve(there, driver, gap=1e-8).objective == pytest.approx(exact.value.upper, rel=1e-7)


def test_other_features_are_refused_by_scaled_atoms_only() -> None:
    r = np.random.default_rng(0)
    wider = Instance.from_arrays(r.standard_normal((10, P + 1)), np.where(np.arange(10) % 2, 1.0, -1.0))
    assert Problem(draw(1), M=2).replace(data=wider, rows=None).atoms.count == P + 1
    for kind in ("scaled", "groups", "tree"):
        with pytest.raises(UsageError, match="made of other features"):
            MAKE[kind](draw(1)).on(wider)


def test_the_scales_are_not_the_users_array() -> None:
    given = SCALE.copy()
    atoms = Features(draw(1), given)
    given[:] = 100.0
    assert np.array_equal(atoms.scale, SCALE)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley"])
def test_a_zero_column_has_the_scale_0_and_no_weight(driver: str) -> None:
    data = draw(1)
    X = data.X.copy()
    X[:, 2] = 0.0
    held = Instance.from_arrays(X, data.y)
    atoms = Features(held, "norm")
    assert atoms.scale[2] == 0.0
    result = mipfs.solve(Problem(held, M=3, loss="squared-hinge", atoms=atoms), driver)
    assert "x3" not in result.weights
    assert np.isfinite(result.objective)
