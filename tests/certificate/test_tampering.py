"""Certificates that were tampered with: each is rejected with the reason, the right SHA-256 put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mipfs.data.instance import Instance
from mipfs.problem import Problem
from mipfs.proof.proof import REFUTED
from mipfs.result.result import Result
from tests.certificate.trees import (
    LOSSES,
    Arrays,
    checked,
    damages,
    directly,
    document_of,
    make_data,
    no_incumbent,
    rewritten,
    solve,
)


def case(loss: str = "hinge", bias: bool = True, seed: int = 1, M: int = 3) -> tuple[Result, Instance]:
    data = make_data(np.random.default_rng(seed), scale="standard")
    return solve(Problem(data, loss=loss, bias=bias, M=M, C=0.5)), data


def assert_rejected(report: Any, *words: str) -> None:
    assert not report.accepted
    assert all(word in report.reason for word in words), report.reason
    assert "\n" not in report.reason


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_dual_one_unit_out_of_its_box(loss: str, tmp_path: Path) -> None:
    result, data = case(loss, bias=False)
    assert result.claim is not None
    q = result.claim.proof.dual(0)[1]
    top = int(np.floor(np.ldexp(0.5, q)))

    def lift(amount: int) -> Any:
        def change(k: Any) -> None:
            k[3] = top + amount

        return change

    assert_rejected(checked(result, data, tmp_path, rewritten(result, 0, lift(1))), "leaves its box at sample 4")
    report = checked(result, data, tmp_path, rewritten(result, 0, lift(0)))
    assert report.accepted or "leaf" in report.reason  # in the box: only the bound can suffer


@pytest.mark.parametrize("loss", LOSSES)
def test_a_dual_one_unit_off_its_sum(loss: str, tmp_path: Path) -> None:
    result, data = case(loss)

    def change(k: Any) -> None:
        inside = np.flatnonzero(k > 0)
        k[inside[0]] -= 1

    report = checked(result, data, tmp_path, rewritten(result, 0, change))
    assert_rejected(report, "dual vector 0", "y'alpha = 0")
    free, data = case(loss, bias=False)
    assert checked(free, data, tmp_path, rewritten(free, 0, change)).accepted


def test_a_negative_entry(tmp_path: Path) -> None:
    result, data = case(bias=False)

    def tamper(arrays: Arrays) -> None:
        arrays["dual_level"][:] = -5

    assert_rejected(checked(result, data, tmp_path, tamper), "negative")


def test_a_missing_leaf(tmp_path: Path) -> None:
    result, data = case()

    def cut_off(arrays: Arrays) -> None:
        arrays["children"][0, 0] = -1

    def drop(arrays: Arrays) -> None:
        leaf = int(np.flatnonzero(arrays["feature"] < 0)[-1])
        for name in ("feature", "children", "dual", "multiplier"):
            arrays[name] = np.delete(arrays[name], leaf, axis=0)

    def open_it(arrays: Arrays) -> None:
        arrays["dual"][np.flatnonzero(arrays["feature"] < 0)[0]] = -1

    def refute(arrays: Arrays) -> None:
        arrays["dual"][np.flatnonzero(arrays["feature"] < 0)[0]] = REFUTED

    for tamper in (cut_off, drop, open_it):
        assert_rejected(checked(result, data, tmp_path, tamper), "do not cover")
    assert_rejected(checked(result, data, tmp_path, refute), "holds no selection")


def test_a_moved_leaf(tmp_path: Path) -> None:
    result, data = case()

    def swap_sides(arrays: Arrays) -> None:
        arrays["children"][0] = arrays["children"][0][::-1].copy()

    def other_dual(arrays: Arrays) -> None:
        leaves = np.flatnonzero(arrays["feature"] < 0)
        arrays["dual"][leaves] = np.roll(arrays["dual"][leaves], 1)

    def twice(arrays: Arrays) -> None:
        arrays["children"][0, 0] = arrays["children"][0, 1]

    def same_feature(arrays: Arrays) -> None:
        inner = np.flatnonzero(arrays["feature"] >= 0)
        arrays["feature"][inner[1]] = arrays["feature"][inner[0]]

    def spare_node(arrays: Arrays) -> None:
        for name in ("feature", "children", "dual", "multiplier"):
            arrays[name] = np.concatenate([arrays[name], arrays[name][-1:]])

    assert_rejected(checked(result, data, tmp_path, swap_sides), "leaf", "proves only")
    assert_rejected(checked(result, data, tmp_path, other_dual), "leaf", "proves only")
    assert_rejected(checked(result, data, tmp_path, twice), "reached twice")
    assert_rejected(checked(result, data, tmp_path, same_feature), "fixed above")
    assert_rejected(checked(result, data, tmp_path, spare_node), "not part of the tree")


def test_a_changed_support(tmp_path: Path) -> None:
    result, data = case(M=2)
    one, other = result.selected[0], next(name for name in data.feature_names if name not in result.selected)

    def renamed(document: dict[str, Any]) -> None:
        document["selected"] = [other, *document["selected"][1:]]
        document["weights"][other] = document["weights"].pop(one)
        document["columns"].pop(one)
        document["columns"][other] = data.index[other]
        for part in ("shift", "scale"):
            document["scaling"][part][other] = document["scaling"][part].pop(one)

    def forgotten(document: dict[str, Any]) -> None:
        document["selected"] = document["selected"][1:]

    def one_more(document: dict[str, Any]) -> None:
        document["selected"].append(other)

    assert_rejected(checked(result, data, tmp_path, edit=renamed), "objective")
    assert_rejected(checked(result, data, tmp_path, edit=forgotten), "not selected has a weight")
    assert_rejected(checked(result, data, tmp_path, edit=one_more), "3 features are selected, 2 are allowed")


def test_other_numbers_in_the_json(tmp_path: Path) -> None:
    result, data = case()

    def edited(**changes: Any) -> Any:
        return checked(result, data, tmp_path, edit=lambda document: document.update(changes))

    def params(**changes: Any) -> Any:
        return checked(result, data, tmp_path, edit=lambda document: document["params"].update(changes))

    assert_rejected(edited(objective=result.objective * (1 - 1e-7)), "objective of the selected features")
    assert_rejected(edited(intercept=result.intercept + 1e-6), "objective of the selected features")
    assert_rejected(edited(bound=result.bound * (1 + 1e-7)), "is not proven")
    assert_rejected(edited(status="INFEASIBLE"), "INFEASIBLE")
    assert_rejected(params(C=0.5 * (1 + 1e-7)), "objective of the selected features")
    assert_rejected(params(C=0.25), "objective of the selected features")
    assert_rejected(params(**{"lambda": 0.01}), "objective of the selected features")
    assert_rejected(params(M=2), "3 features are selected, 2 are allowed")
    assert_rejected(params(M=4), "proves only")
    assert_rejected(params(loss="squared-hinge"), "objective of the selected features")
    assert_rejected(params(forced_out=list(result.selected[:1])), "contradict the forced")
    assert_rejected(params(penalty={"x1": 1.0}), "[penalty]")
    row = {"name": "none", "terms": {result.selected[0]: 1.0}, "lb": None, "ub": 0.0, "origin": ""}
    assert_rejected(edited(rows=[row]), "violate the row 'none'")

    def claimed(amount: float) -> Any:
        def edit(document: dict[str, Any]) -> None:
            document["certificate"]["bound"] += amount * result.objective

        return checked(result, data, tmp_path, edit=edit)

    assert_rejected(claimed(1e-9), "proves only")
    assert_rejected(claimed(-1e-3), "the result's bound", "is not proven")


def test_another_C_without_an_incumbent_still_meets_the_box() -> None:
    result, data = case()
    params = dict(result.params) | {"C": 0.25}
    gone = no_incumbent(document_of(result))
    assert_rejected(directly(result, data, params=params, **gone), "leaves its box")


def test_other_data(tmp_path: Path) -> None:
    result, data = case()
    X = data.X.copy()
    X[0, 0] += 1e-12
    assert_rejected(checked(result, Instance.from_arrays(X, data.y), tmp_path), "other data")
    raw = make_data(np.random.default_rng(1))
    assert_rejected(checked(result, raw, tmp_path), "scale 'standard'")


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", ["feature", "children", "dual", "dual_bytes", "dual_start", "dual_q", "version"])
def test_a_damaged_sidecar_is_rejected_and_never_crashes(name: str, tmp_path: Path) -> None:
    result, data = case()

    for tamper in damages(name):
        report = checked(result, data, tmp_path, tamper)
        assert not report.accepted
        assert report.reason
