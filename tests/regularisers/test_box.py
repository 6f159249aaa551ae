"""Signs and boxes on the weights: against all supports, each by Clarabel; certified; a forged box is refused."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.check.tree import check
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.problem import Problem
from mipfs.regularisers import get_regulariser
from mipfs.regularisers.box import Box
from tests.inner.test_regularised import LOSSES, clarabel

P = 5
BOXES: dict[str, Box] = {
    "signs": Box((0.0, None, 0.0, None, 0.0), (None, 0.0, None, None, 0.0)),
    "box": Box(-0.2, 0.3),
    "mixed": Box((-0.1, None, 0.0, -0.5, None), (0.05, 0.4, None, 0.2, None)),
}


def make(seed: int, scale: str) -> Instance:
    r = np.random.default_rng(seed)
    X = r.normal(size=(30, P)) * np.array([1.0, 10.0, 0.3, 1.0, 2.0]) + 3.0
    y = np.where(X[:, 0] - 0.2 * X[:, 1] + X[:, 3] - 4.0 + 0.7 * r.normal(size=30) > 0, 1, -1)
    return Instance.from_arrays(X, y, scale=scale)


def brute(problem: Problem, M: int) -> float:
    supports = [np.array(s) for size in range(1, M + 1) for s in itertools.combinations(range(P), size)]
    return min(clarabel(problem, ids, np.ones(ids.size)) for ids in supports)


@pytest.mark.slow
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_box(loss: str, name: str, bias: bool) -> None:
    data = make(len(loss) + bias, "standard" if bias else "none")
    problem = Problem(data, loss=loss, bias=bias, M=2, C=0.6, regulariser=BOXES[name])
    best = brute(problem, 2)
    low, high = (np.broadcast_to(end, P) for end in BOXES[name].ends)
    for driver in ("branch", "gbd", "kelley"):
        found = mipfs.solve(problem, driver, gap=1e-7 if driver != "kelley" else 1e-4)
        assert found.bound <= best * (1 + 1e-7)
        assert found.objective >= best * (1 - 1e-7)
        if driver != "kelley":
            assert found.status is mipfs.Status.OPTIMAL
            assert found.objective == pytest.approx(best, rel=1e-6)
        for feature, weight in found.weights.items():
            j = data.index[feature]
            assert low[j] * (1 + 1e-12) <= weight * data.scale[j] <= high[j] * (1 + 1e-12)
        report = mipfs.verify(found, data)
        assert report.accepted, report.reason
        assert found.claim is not None
        document = json.loads(found.to_json()) | dict(found.stated) | {"certificate": found.claim.entry()}
        stated = document["params"]["regulariser"]
        for other in (
            {"low": None, "high": None},
            {"low": -1e-3, "high": 1e-3},
            {"low": 0.5},
            {"high": [1.0]},
            {"low": "0"},
        ):
            forged = document | {"params": document["params"] | {"regulariser": stated | other}}
            refused = not check(forged, found.claim.proof.arrays(), data).accepted
            assert refused or (other == {"low": None, "high": None} and is_slack(problem, found)), other


def is_slack(problem: Problem, found: Any) -> bool:
    """Whether the same bound holds without any box: then the wider problem is proven, too."""
    wider = mipfs.solve(problem.replace(regulariser=get_regulariser("ridge")), "gbd", gap=1e-8)
    return bool(wider.objective >= found.bound * (1 - 1e-9))


def test_signs_with_a_free_margin() -> None:
    """−1/(4v) is true of signs, which are cones, and refused of a box."""
    data = make(4, "standard")
    problem = Problem(data, loss="squared-hinge", bias=False, M=2, C=0.6, regulariser=BOXES["signs"])
    best = -0.25 / brute(problem, 2)
    found = mipfs.solve(problem.replace(margin="rho"), gap=1e-7)
    assert found.objective == pytest.approx(best, rel=1e-6)
    assert mipfs.verify(found, data).accepted
    assert found.claim is not None
    document = json.loads(found.to_json()) | dict(found.stated) | {"certificate": found.claim.entry()}
    boxed = {"name": "box", "low": -50.0, "high": 50.0}
    forged = document | {"params": document["params"] | {"regulariser": boxed}}
    assert "homogeneous" in check(forged, found.claim.proof.arrays(), data).reason
    with pytest.raises(UsageError, match="'rho' is"):
        problem.replace(margin="rho", regulariser=BOXES["box"])


def test_a_box_that_does_not_bind_is_the_ridge() -> None:
    data = make(5, "standard")
    for loss in LOSSES:
        ridge = mipfs.solve(Problem(data, loss=loss, M=2), gap=1e-7)
        boxed = mipfs.solve(Problem(data, loss=loss, M=2, regulariser=Box(-1e6, 1e6)), gap=1e-7)
        assert boxed.selected == ridge.selected
        assert boxed.objective == pytest.approx(ridge.objective, rel=1e-6)


@pytest.mark.parametrize(
    "wrong", [{"low": 1.0}, {"high": -1.0}, {"low": "0"}, {"high": float("nan")}, {"high": [1.0, True]}]
)
def test_what_is_no_box_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be a number of at"):
        get_regulariser("box", **wrong)


def test_ends_of_another_number_of_features_are_refused() -> None:
    with pytest.raises(UsageError, match="high has 2 ends, for 5 features"):
        Problem(make(0, "none"), M=2, regulariser=get_regulariser("box", high=(1.0, 2.0)))
