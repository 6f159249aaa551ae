"""A run that goes on from a state is the run that was never stopped: to the byte, but for seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance
from mipfs.errors import DataError
from mipfs.problem import Problem
from mipfs.result.result import Result
from mipfs.result.state import RunState
from mipfs.settings import BranchSettings, CompletionSettings, SearchSettings

MEASURED: dict[str, Any] = {"loss": "structural", "measure": "f1", "bias": False}
OFTEN = {"settings": BranchSettings(search=SearchSettings(rest=1e-3, rest_share=10**6, after_nodes=0))}
"""The tree comes to rest after every few batches."""
DEAR = {"settings": BranchSettings(search=SearchSettings(rest=1e-3, rest_share=10**6, after_nodes=0, dear=1e-9))}
"""And SVMs count as dear: those of leaves are solved beside the next batch, by many strands from the start."""
PAIRS = {
    "settings": BranchSettings(
        search=SearchSettings(rest=1e-9, rest_share=10**9, after_nodes=0),
        completions=CompletionSettings(block=3000, front=3, units=4, many=1.0),
    )
}
"""Pairs in small units, a level before the rest."""
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "face": ("kelley", {"loss": "squared-hinge"}, {}),
    "interior": ("kelley", {}, {}),
    "selections": ("kelley", {"loss": "squared-hinge"}, {"T": 12}),
    "cutting": ("kelley", {"loss": "logistic"}, {"restricted": "cutting", "T": 6}),
    "conic": ("kelley", {"loss": "squared-hinge"}, {"restricted": "conic", "T": 4}),
    "simple-mkl": ("kelley", {"loss": "squared-hinge", "bias": False}, {"restricted": "simple-mkl", "T": 5}),
    "rows": ("kelley", {"rows": True}, {"T": 6}),
    "box": ("kelley", {"rows": True, "loss": "squared-hinge"}, {"relaxation": "box"}),
    "costs": ("kelley", {"lam": 0.05}, {}),
    "sparse": ("kelley", {"loss": "squared-hinge", "n": 700, "p": 60, "binary": True}, {}),
    "tree": ("kelley", {"loss": "squared-hinge", "tree": True}, {}),
    "columns of all sizes": ("kelley", {"loss": "squared-hinge", "far": True, "C": 10.0}, {}),
    "measure": ("two_layer", MEASURED, {}),
    "measure, rows": ("two_layer", {**MEASURED, "rows": True, "p": 20}, {}),
    "measure, conic": ("two_layer", {**MEASURED, "p": 20}, {"inner": "conic"}),
    "tree of relaxations": ("branch", {"p": 30, "M": 8}, OFTEN),
    "tree of relaxations, rows": ("branch", {"p": 30, "M": 8, "rows": True}, OFTEN),
    "tree of relaxations, logistic": ("branch", {"p": 24, "M": 6, "loss": "logistic", "C": 8.0}, OFTEN),
    "tree of relaxations, dear": ("branch", {"p": 30, "M": 8}, DEAR),
    "tree of relaxations, dear, list": ("branch", {"p": 20, "M": 6}, {**DEAR, "pool_gap": 0.05}),
    "tree of relaxations, dear, rows": ("branch", {"p": 20, "M": 6, "rows": True}, {**DEAR, "certificate": False}),
    "tree of relaxations, list": ("branch", {"p": 24, "M": 6}, {**OFTEN, "pool_gap": 0.05}),
    "tree of relaxations, list, rows": ("branch", {"p": 20, "M": 6, "rows": True}, {**OFTEN, "pool_size": 8}),
    "tree of relaxations, penalties": ("branch", {"p": 24, "M": None, "lam": 0.2}, OFTEN),
    "tree of relaxations, groups": ("branch", {"p": 24, "groups": True, "M": 6, "C": 10.0}, OFTEN),
    "enumerations": ("branch", {"p": 60, "M": 3}, PAIRS),
    "pairs up to a level, then all": ("branch", {"p": 80, "M": 2}, PAIRS),
    "pairs up to a level, list, rows": ("branch", {"p": 60, "M": 2, "rows": True}, {**PAIRS, "pool_size": 5}),
    "tree without a certificate": ("branch", {"p": 30, "M": 8}, {**OFTEN, "certificate": False}),
    "Benders": ("gbd", {"p": 14}, {}),
    "Benders, rows": ("gbd", {"p": 12, "rows": True}, {}),
    "Benders, list": ("gbd", {"p": 12, "loss": "logistic"}, {"pool_size": 4}),
    "Benders, MILP": ("gbd", {"p": 8}, {"master": "milp"}),
}


def made(
    n: int = 50, p: int = 120, rows: bool = False, binary: bool = False, tree: bool = False, far: bool = False,
    groups: bool = False, C: float = 1.0, M: int | None = 4, **more: Any,
) -> Problem:  # fmt: skip
    r = np.random.default_rng([58, n, p])
    X = (r.random(size=(n, p)) < 0.03).astype(float) if binary else r.normal(size=(n, p))
    y = np.where(X[:, :6].sum(axis=1) + r.normal(size=n) * (0.5 if binary else 2.0) > 0.0, 1, -1)
    X = X * np.where(np.arange(p) % 2, 1e4, 1e-3) if far else X
    if binary:
        from scipy import sparse

        X = sparse.csc_array(X)
    data = Instance.from_arrays(X, y)
    atoms: Any = Tree(data, {name: f"n{k % 10}" for k, name in enumerate(data.feature_names)}) if tree else None
    atoms = Groups(data, {f"g{k}": [k, (k + 5) % p] for k in range(p)}, scaling="norm") if groups else atoms
    problem = Problem(data, M=M, C=C, atoms=atoms, **more)
    return problem.with_rows(r.integers(0, 2, size=(2, p)).astype(float), -np.inf, [1.0, 2.0]) if rows else problem


def written(result: Result, folder: Path) -> tuple[str, bytes]:
    """The JSON but for seconds, and the certificate, if there is one."""
    folder.mkdir(exist_ok=True)
    result.save(folder / "r.json")
    document = json.loads((folder / "r.json").read_text())
    for entry in (document, *document["trace"]):
        del entry["seconds"]
    counters = document["counters"]
    document["counters"] = {name: total for name, total in counters.items() if not name.endswith("_ms")}
    certificate = folder / "r.cert.npz"
    return json.dumps(document), certificate.read_bytes() if certificate.exists() else b""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_resumed_run_is_the_uninterrupted_one(case: str, tmp_path: Path) -> None:
    driver, kind, options = CASES[case]
    problem = made(**kind)
    whole = written(mipfs.solve(problem, driver, gap=1e-5, **options), tmp_path / "whole")
    places, handed_out, turns = [], 0, 0
    with mipfs.start(problem, driver, gap=1e-5, **options) as session:
        for step, _ in enumerate(session, 1):
            run = session._run
            is_new = run.resting is not None and run.resting.iteration == run.iteration
            is_at_rest = run.is_exact if driver == "branch" else is_new
            if is_at_rest and (step in (1, 2, 3, 6) or driver in ("branch", "gbd")):
                places.append(tmp_path / f"{step}.npz")
                state = session.state
                state.save(places[-1])
                handed_out += driver == "branch" and state.arrays["tree_units"].size
                turns += driver == "branch" and np.count_nonzero(state.arrays["tree_units"] == 0)
    assert places
    assert handed_out or case != "tree of relaxations", "no run rests while units are out"
    assert turns or case != "enumerations", "no run rests while columns of a node are out in several units"
    for place in places[:3] + places[-1:] if driver != "branch" else places[:: -(-len(places) // 6)]:
        again = mipfs.solve(problem, driver, gap=1e-5, resume=place, **options)
        assert written(again, tmp_path / "again") == whole, place.name


@pytest.mark.sampled(11)
@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("case", ["face", "cutting", "measure"])
def test_a_step_that_is_cut_off_is_done_again(
    case: str, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, kind, options = CASES[case]
    problem = made(**kind)
    whole = written(mipfs.solve(problem, driver, gap=1e-5, **options), tmp_path / "whole")
    session = mipfs.start(problem, driver, gap=1e-5, **options)
    for _ in range(steps):
        session.step()
    run = session._run
    before, after = run.lower_upper, run.iteration

    def strikes(value: float) -> None:
        run.interrupted = True  # the restricted problem is just solved, and would not be believed
        before(value)

    monkeypatch.setattr(run, "lower_upper", strikes)
    result = session.finish()
    if session.record is None or result.stop_reason.name != "INTERRUPTED":
        pytest.skip("it was done before")
    assert run.iteration == after + 1
    assert result.state is not None
    assert int(result.state.arrays["run_numbers"][2]) == after
    result.state.save(tmp_path / "cut.npz")
    again = mipfs.solve(problem, driver, gap=1e-5, resume=tmp_path / "cut.npz", **options)
    assert written(again, tmp_path / "again") == whole


def of_few_features(seed: int, p: int) -> Problem:
    r = np.random.default_rng([60, p, seed])
    X = r.normal(size=(60, p)) * r.uniform(0.3, 2.0, p)
    y = np.where(X[:, :8] @ r.normal(size=8) + 2.0 * r.normal(size=60) > 0.0, 1, -1)
    return Problem(Instance.from_arrays(X, y), M=4)


def test_a_list_that_was_done_is_done_again_without_work(tmp_path: Path) -> None:
    problem = of_few_features(243095, 16)
    listed = {"gap": 1e-6, "pool_gap": 0.1, "settings": BranchSettings(search=SearchSettings(rest=1e-3))}
    with mipfs.start(problem, "branch", **listed) as session:
        states = [session.state for _ in session if not session.is_over and session._run.is_exact]
    whole = written(session.result(), tmp_path / "whole")
    assert states
    assert written(mipfs.solve(problem, "branch", resume=states[-1], **listed), tmp_path / "again") == whole


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 3, 9])
def test_a_state_between_rests_has_the_nodes_that_wait_for_their_one_svm(seed: int) -> None:
    """And those that are being explored: whatever the moment, the rest is proven, and the list is whole."""
    problem, listed = of_few_features(seed, 10), {"gap": 1e-6, "pool_gap": 0.1}
    whole = mipfs.solve(problem, "branch", **listed)
    assert whole.near_optimal is not None
    with mipfs.start(problem, "branch", **listed) as session:
        states = [session.state for _ in session if not session.is_over]
    for state in states:
        again = mipfs.solve(problem, "branch", resume=state, **listed)
        assert again.near_optimal is not None
        found, wanted = (
            {tuple(one["selected"]) for one in a["supports"]} for a in (again.near_optimal, whole.near_optimal)
        )
        assert found == wanted
        assert mipfs.verify(again, problem.data).accepted


@pytest.mark.sampled(5)
@pytest.mark.parametrize("most", [3, 30, 45, 77])
def test_a_tree_that_a_limit_stops_goes_on_where_it_last_rested(most: int, tmp_path: Path) -> None:
    problem = made(p=14)
    whole = mipfs.solve(problem, "gbd", gap=1e-5)
    assert whole.counters["cuts"] > 77
    first = mipfs.solve(problem, "gbd", gap=1e-5, iteration_limit=most, checkpoint=True)
    assert first.state is not None
    assert int(first.state.arrays["run_numbers"][2]) <= most
    first.state.save(tmp_path / "s.npz")
    again = mipfs.solve(problem, "gbd", gap=1e-5, resume=tmp_path / "s.npz")
    assert written(again, tmp_path / "again") == written(whole, tmp_path / "whole")


@pytest.mark.slow
def test_a_tree_whose_runs_never_come_to_rest_still_gets_on() -> None:
    problem, state, iterations = made(p=14), None, []
    for _ in range(10):
        session = mipfs.start(problem, "gbd", gap=1e-7, resume=state)
        session.step()
        session.step()
        result = session.result()  # as if interrupted
        state = result.state
        assert state is not None
        iterations.append(int(state.arrays["run_numbers"][2]))
        assert mipfs.verify(result, problem.data).accepted
    assert iterations == sorted(iterations)
    assert iterations[-1] > 2, "what little every run does is lost"


def test_what_a_cut_step_found_counts_in_the_end_and_runs_that_end_no_step_still_get_on(tmp_path: Path) -> None:
    problem = made(loss="squared-hinge")
    state, iterations = None, []
    for _ in range(6):
        session = mipfs.start(problem, "kelley", gap=1e-7, resume=state)
        run = session._run
        before = run.lower_upper

        def strikes(value: float, run: Any = run, before: Any = before) -> None:
            run.interrupted = run.interrupted or bool(run.upper < np.inf or run.resume is None)
            before(value)

        run.lower_upper = strikes  # type: ignore[method-assign]
        result = session.finish()
        state = result.state
        assert state is not None
        iterations.append(int(state.arrays["run_numbers"][2]))
        assert mipfs.verify(result, problem.data).accepted
    assert iterations[-1] > iterations[0], "a run whose steps are all cut off comes no further"


def test_the_state_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    problem = made(loss="squared-hinge")
    mipfs.solve(problem, "kelley", T=2, checkpoint=tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as kept:
        arrays = {name: kept[name] for name in kept.files}
    about = json.loads(arrays["about"].tobytes())
    about[3] -= 1
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    np.savez(tmp_path / "old.npz", **arrays)
    with pytest.raises(DataError, match="another version of mipfs"):
        RunState.load(tmp_path / "old.npz")


@pytest.mark.parametrize("name", ["trace", "counts", "own_point", "own_point_taken", "best_numbers", "last_w"])
def test_a_state_whose_parts_do_not_fit_is_refused(name: str) -> None:
    problem = made(loss="squared-hinge")
    state = mipfs.solve(problem, "kelley", gap=1e-7, iteration_limit=2, checkpoint=True).state
    assert state is not None
    arrays = dict(state.arrays)
    arrays[name] = np.full_like(arrays[name], -5) if name == "own_point_taken" else arrays[name][:-1]
    with pytest.raises(DataError, match="does not hold together"):
        mipfs.solve(problem, "kelley", resume=RunState(state.driver, state.stamp, arrays))
