"""`mipfs.frontier`: what a row costs. `python -m tests.frontiers` holds random ones against enumeration."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.check.paths import check_stated
from mipfs.check.rounding import CertificateError
from mipfs.cli import main
from mipfs.cli.frontier import parse_steps
from mipfs.data.weight_rows import parity
from mipfs.drivers import together
from mipfs.lab.studies import walk
from mipfs.settings import BranchSettings, SharedSettings
from tests.two_checkers import data_of, remembered, second, verdicts

DATA = "instances/credit.csv"
VALUES = [9.0, 5.0, 3.0]


@pytest.fixture(scope="module")
def data() -> mipfs.Instance:
    return mipfs.read(DATA, scale="standard")


@pytest.fixture(scope="module")
def found(data: mipfs.Instance) -> mipfs.SolutionPath:
    return mipfs.frontier(mipfs.Problem(data, C=0.1), "budget", VALUES)


def test_the_points_stand_in_the_order_that_was_asked_and_more_is_never_worse(
    data: mipfs.Instance, found: mipfs.SolutionPath
) -> None:
    assert [point.value for point in found.points] == VALUES
    loose, tight, none = found.points
    assert none.status is mipfs.Status.INFEASIBLE
    assert tight.objective >= loose.objective
    assert tight.bound >= loose.bound
    alone = mipfs.solve(mipfs.Problem(data, C=0.1))  # the data's own budget is 9
    assert loose.objective == pytest.approx(alone.objective, rel=2e-4)
    first, last = found.bought
    assert (first.tight, first.loose, last.tight, last.loose) == (3.0, 5.0, 5.0, 9.0)
    assert last.least == (tight.bound - loose.objective) / 4.0
    assert last.most == (tight.objective - loose.bound) / 4.0
    assert "what a unit of 'budget' bought" in found.summary()
    assert found.to_csv().splitlines()[0].endswith("bought_least,bought_most")


@pytest.mark.slow
def test_a_frontier_is_saved_verified_and_read_back(found: mipfs.SolutionPath, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    found.save(path)
    again = mipfs.SolutionPath.load(path)
    assert (again.row, again.bought) == (found.row, found.bought)
    assert main(["verify", str(path), DATA, "--quiet"]) == 0
    assert main(["verify", f"{path}#end=5", DATA, "--quiet"]) == 0
    document = json.loads(path.read_text())
    judge = second().judge_path
    source, content = second().Source(Path(DATA)), (tmp_path / "f.cert.npz").read_bytes()
    judge(document, content, source, None)

    def forged(change: Any) -> None:
        lie = copy.deepcopy(document)
        change(lie)
        with pytest.raises(CertificateError):
            check_stated(lie)
        with pytest.raises(second().Rejected):
            judge(lie, content, second().Source(Path(DATA)), None)

    forged(lambda lie: lie["bought"][1].update(least=lie["bought"][1]["least"] + 0.1))
    forged(lambda lie: lie["bought"].pop())
    forged(lambda lie: lie["row"].update(side="lb"))
    forged(lambda lie: lie["row"].update(name="implies"))
    forged(lambda lie: lie.pop("row"))
    forged(lambda lie: lie["points"][0].update(end=10.0))


def test_a_frontier_over_M_is_a_path_along_it(data: mipfs.Instance) -> None:
    found = mipfs.frontier(mipfs.Problem(data, C=0.1), "M", [1, 2])
    assert found.axis == "M"
    assert len(found.bought) == 1
    check_stated(json.loads(found.to_json()))


@pytest.mark.slow
def test_a_parity_has_a_frontier_over_its_ends(data: mipfs.Instance, tmp_path: Path) -> None:
    by = np.arange(data.n_samples) % 2
    rows = parity(data, by, 0.1)
    found = mipfs.frontier(mipfs.Problem(data, M=2, C=0.1, weight_rows=rows), "parity", [0.01, 0.1])
    tight, loose = found.points
    assert tight.objective >= loose.objective
    alone = mipfs.solve(mipfs.Problem(data, M=2, C=0.1, weight_rows=parity(data, by, 0.01)))
    assert tight.objective == pytest.approx(alone.objective, rel=2e-4)
    found.save(tmp_path / "f.json")
    assert main(["verify", str(tmp_path / "f.json"), DATA, "--quiet"]) == 0
    document = json.loads((tmp_path / "f.json").read_text())
    content = (tmp_path / "f.cert.npz").read_bytes()
    second().judge_path(document, content, second().Source(Path(DATA)), None)
    document["params"]["weight_rows"][0].update(lower=-0.1, upper=0.1)
    with pytest.raises(CertificateError):
        check_stated(document)
    with pytest.raises(second().Rejected):
        second().judge_path(document, content, second().Source(Path(DATA)), None)


def made(seed: int, side: str) -> tuple[mipfs.Instance, mipfs.Problem, str]:
    """A small problem with one row, which has an end on a side; its name."""
    r = np.random.default_rng(seed)
    X = r.normal(size=(40, 9))
    data = mipfs.Instance.from_arrays(X, np.where(X[:, 0] + X[:, 1] - X[:, 2] + r.normal(size=40) > 0.0, 1, -1))
    row = r.integers(0, 4, 9).astype(float) if side != "mixed" else r.integers(-2, 4, 9).astype(float)
    ends = (2.0, np.inf) if side == "lb" else (-np.inf, 2.0)
    problem = mipfs.Problem(data, M=int(r.integers(3, 9)), C=1.0, lam=float(r.choice([0.0, 0.2])))
    return data, problem.with_rows([row], *ends, ["moved"]), "moved"


@pytest.mark.parametrize(("most", "is_open"), [(SharedSettings().nodes, False), (2, True)])
@pytest.mark.parametrize("side", ["ub", "lb", "mixed"])
def test_one_tree_for_all_values_proves_what_each_value_alone_does(
    side: str, most: int, is_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, problem, name = made(5, side)
    shared = list[together.SharedTree | None]()
    settings = BranchSettings(together=SharedSettings(nodes=most))

    def share(*given: Any) -> together.SharedTree | None:
        shared.append(together.share(*given))
        return shared[-1]

    monkeypatch.setattr(walk, "share", share)
    found = mipfs.frontier(problem, name, [5.0, 3.0, 4.0], gap=1e-6, threads=1, settings=settings)
    assert shared[0] is not None
    assert any(tree.is_open for tree in shared[0].trees) is (is_open and side == "ub")  # their root closes all
    ordered = sorted(found.points, key=lambda point: point.value, reverse=side == "lb")
    assert all(one.objective >= other.objective for one, other in itertools.pairwise(ordered))
    rows = problem.rows
    assert rows is not None
    for point in found.points:
        end: Any = {"lb" if side == "lb" else "ub": np.array([point.value])}
        alone = mipfs.solve(problem.replace(rows=dataclasses.replace(rows, **end)), gap=1e-6, threads=1)
        assert point.result.status is alone.status is mipfs.Status.OPTIMAL
        assert point.objective == pytest.approx(alone.objective, rel=2e-6)
        assert mipfs.verify(point.result, data, jobs=1).accepted


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_both_checkers_accept_the_proofs_of_one_tree(seed: int, tmp_path: Path) -> None:
    with remembered():
        data, problem, name = made(seed, ("ub", "lb", "mixed")[seed % 3])
    for point in mipfs.frontier(problem, name, [5.0, 3.0, 4.0], threads=1).points:
        point.result.save(tmp_path / "r.json")
        with np.load(tmp_path / "r.cert.npz") as arrays:
            said = verdicts(json.loads((tmp_path / "r.json").read_text()), dict(arrays), data, data_of(data))
        assert said[:2] == ("accepted", "accepted"), said


def test_a_limit_ends_one_tree_and_leaves_the_rest_to_the_points() -> None:
    _, problem, name = made(7, "ub")
    assert together.share([problem] * 3, "ub", {"time_limit": 5.0}) is not None
    assert together.share([problem] * 3, "ub", {"time_limit": 4.9}) is None
    settings = BranchSettings(together=SharedSettings(seconds=0.0))
    found = mipfs.frontier(problem, name, [3.0, 4.0, 5.0], time_limit=1e-9, threads=1, settings=settings)
    assert {point.result.stop_reason.name for point in found.points} <= {"TIME_LIMIT", "GAP_CLOSED"}
    assert together.share([problem] * 3, "ub", {"branching": "most-fractional"}) is None


def test_what_is_no_frontier_is_refused(data: mipfs.Instance) -> None:
    problem = mipfs.Problem(data, C=0.1)
    with pytest.raises(mipfs.UsageError, match="there is no row 'bugdet'"):
        mipfs.frontier(problem, "bugdet", [1.0])
    with pytest.raises(mipfs.UsageError, match="has two ends"):
        mipfs.frontier(problem.with_rows([[1.0] * 12], 1.0, 2.0), "row6", [1.0])
    with pytest.raises(mipfs.UsageError, match="given twice"):
        mipfs.frontier(problem, "budget", [1.0, 1.0])
    assert parse_steps("0.1:0.5:0.1") == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert parse_steps("5:7") == [5.0, 6.0, 7.0]
    for text in ("5:1", "1:2:0", "1:2:3:4", "a", "1:9:1e-9"):
        with pytest.raises(mipfs.UsageError):
            parse_steps(text)


def test_the_command_writes_json_page_and_csv(tmp_path: Path) -> None:
    asked = ["frontier", DATA, "--row", "budget", "--values", "5,9", "-p", "C=0.1", "--quiet"]
    outputs = {option: str(tmp_path / option) for option in ("json", "csv", "report")}
    assert main([*asked, *(word for name, path in outputs.items() for word in (f"--{name}", path))]) == 0
    assert (tmp_path / "csv").read_text().count("\n") == 3
    assert "What budget costs on credit.csv" in (tmp_path / "report").read_text()
