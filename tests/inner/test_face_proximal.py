"""Faces by proximal gradient: the prox against CVXPY, the relaxation against pools and interior points."""

from __future__ import annotations

import itertools
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import Instance, Problem
from mipfs.atoms.groups import Groups
from mipfs.errors import UsageError
from mipfs.inner.face_layer import FacePool
from mipfs.inner.proximal import FaceProximal
from mipfs.kernels.proximal import filling_level, half_square, shrink


@pytest.mark.parametrize("seed", range(12))
def test_the_prox_and_the_value_are_those_of_the_declared_programs(seed: int) -> None:
    r = np.random.default_rng(seed)
    sizes = r.integers(1, 3, 7)
    pointer = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    x = r.standard_normal(pointer[-1]) * 10.0 ** r.integers(-2, 2)
    if seed % 3 == 0:
        x[pointer[2] : pointer[4]] = 0.0
    M, step = int(r.integers(1, 8)), float(10.0 ** r.uniform(-2, 1))
    z, sigma = cp.Variable(x.size), cp.Variable(7)
    parts = [z[pointer[t] : pointer[t + 1]] for t in range(7)]
    size = sum(cp.quad_over_lin(part, sigma[t]) for t, part in enumerate(parts))
    S = [sigma >= 0, sigma <= 1, cp.sum(sigma) <= M]
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(z - x) + 0.5 * step * size), S)
    program.solve(solver=cp.CLARABEL)
    found, norms = x.copy(), np.empty(7)
    value = shrink(found, pointer, step, float(M), norms)
    np.testing.assert_allclose(found, z.value, atol=2e-4 * max(1.0, float(np.abs(x).max())))
    reached = 0.5 * np.sum(np.square(found - x)) + step * value
    assert reached <= program.value * (1 + 1e-7) + 1e-12
    np.testing.assert_allclose(norms, [np.linalg.norm(found[a:b]) for a, b in itertools.pairwise(pointer)])
    # and the value at the prox, with the best σ anew
    assert half_square(norms, float(M)) == pytest.approx(value, rel=1e-9, abs=1e-15)


def test_sigma_fills_what_there_is_room_for() -> None:
    r = np.random.default_rng(0)
    for _ in range(300):
        norms = np.abs(r.standard_normal(r.integers(1, 40))) * 10.0 ** r.uniform(-8, 8)
        norms[r.random(norms.size) < 0.2] = 0.0
        room, step = float(r.integers(0, norms.size + 1)), float(r.choice([0.0, 1e-6, 1.0, 1e4]))
        level = filling_level(norms, step, room)
        if np.count_nonzero(norms) <= room:
            assert level == np.inf
        else:
            assert np.clip(level * norms - step, 0.0, 1.0).sum() == pytest.approx(room, rel=1e-9)


def drawn(seed: int, loss: str, bias: bool, kind: str) -> Problem:
    r = np.random.default_rng(seed)
    n, p = 60, 40
    X: Any = r.standard_normal((n, p)) * np.exp(r.standard_normal(p))
    if kind != "dense":
        X *= r.random((n, p)) < 0.15
        X[:, 3], X[:, 7] = X[:, 5], 0.0  # twins, and a word that no row has
    y = np.where(X[:, :4].sum(axis=1) + 0.5 * r.standard_normal(n) > 0, 1.0, -1.0)
    data = Instance.from_arrays(X if kind == "dense" else sparse.csc_array(X), y)
    if kind != "groups":
        return Problem(data, loss=loss, bias=bias, M=4, C=2.0)
    groups = {f"g{k}": [f"x{3 * k + i + 1}" for i in range(4)] for k in range(12)}  # each shares a feature
    return Problem(data, loss=loss, bias=bias, M=3, C=2.0, atoms=Groups(data, groups, "norm"))


@pytest.mark.sampled(13)
@pytest.mark.parametrize("kind", ["dense", "sparse", "groups"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_a_face_ends_where_the_pool_and_the_interior_point_end(loss: str, bias: bool, kind: str) -> None:
    problem = drawn(1, loss, bias, kind)
    found = {way: mipfs.solve(problem, "kelley", gap=1e-6, restricted=way) for way in ("face", "proximal", "interior")}
    uppers = {way: one.relaxed["upper"] for way, one in found.items() if one.relaxed is not None}
    for one in found.values():
        assert one.bound <= min(uppers.values()) * (1 + 1e-12)
        assert one.bound == pytest.approx(uppers["proximal"], rel=2e-6)
        assert mipfs.verify(one, problem.data).accepted
    relaxed = found["face"].relaxed
    assert relaxed is not None
    assert sum(relaxed["sigma"].values()) <= (problem.M or 0) * (1 + 1e-9)
    assert found["face"].counters["selections"] <= found["proximal"].counters["selections"]


@pytest.mark.slow
def test_the_restricted_value_and_its_dual_meet_on_a_face() -> None:
    problem = drawn(3, "squared-hinge", True, "sparse")
    face, method = FacePool(), FaceProximal(problem)
    face.add(np.arange(6), np.ones(6))
    first = method.solve(face, 1e-9, lambda: False)
    face.take_in(np.arange(10, 22))
    solved = method.solve(face, 1e-9, lambda: False)
    assert solved.upper <= first.upper
    assert abs(float(problem.data.y @ solved.alpha)) == 0.0
    top = np.sort(problem.atoms.scores(solved.alpha * problem.data.y)[face.atoms])[-4:]
    dual = np.sum(solved.alpha - np.square(solved.alpha) / (2 * problem.c_i)) - 0.5 * top.sum()
    assert -1e-9 <= solved.upper - dual <= 1e-7 * dual  # α is known to half as many digits as the value
    small = problem.restricted(np.sort(face.atoms))
    reference = mipfs.solve(small, "kelley", gap=1e-9, restricted="interior")
    assert reference.relaxed is not None
    assert solved.upper == pytest.approx(reference.relaxed["upper"], rel=1e-8)


@pytest.mark.slow
def test_one_feature_and_room_for_all() -> None:
    y = np.array([1.0, -1.0, 1.0, -1.0])
    for M, X in ((1, y[:, None] * 2.0), (3, np.eye(4)[:, :3]), (0, np.eye(4)[:, :3])):
        data = Instance.from_arrays(X, y)
        result = mipfs.solve(Problem(data, loss="squared-hinge", M=M, C=3.0), "kelley", gap=1e-8)
        exact = mipfs.solve(Problem(data, loss="squared-hinge", M=M, C=3.0), "gbd", gap=1e-9)
        assert result.bound <= exact.objective * (1 + 1e-9)
        assert result.objective >= exact.objective * (1 - 1e-9)


def test_a_face_is_refused_where_it_cannot_be() -> None:
    problem = drawn(1, "squared-hinge", True, "dense")
    with pytest.raises(UsageError, match="without rows"):
        mipfs.solve(problem.with_rows(np.ones((1, 40)), -np.inf, 3.0), "kelley", restricted="face")
    with pytest.raises(UsageError, match="smooth loss"):
        mipfs.solve(problem.replace(loss="hinge"), "kelley", restricted="face")
