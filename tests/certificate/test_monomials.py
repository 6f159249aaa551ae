"""Certificates over products of features: honest ones are accepted, forged ones only where they are true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.check.tree import check
from mipfs.result.result import Result
from tests.certificate import monomials


@pytest.mark.sampled(2)
@pytest.mark.parametrize("k", range(12))
def test_honest_results_are_true_and_accepted(k: int) -> None:
    text, _, data = monomials.base(k)
    document = json.loads(text)
    shown, whole = monomials.explicit(document, data)
    assert monomials.lies(shown, shown, whole) == []


@pytest.mark.parametrize("block", [0, *(pytest.param(b, marks=pytest.mark.slow) for b in range(1, 20))])
def test_what_is_accepted_of_forged_results_is_true(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monomials, "BASES", 12)
    for seed in range(50 * block, 50 * block + 50):
        _, found, moves = monomials.judged(seed)
        assert found == [], (seed, moves)


def claims(k: int) -> tuple[dict[str, Any], Any, Any]:
    text, arrays, data = monomials.base(k)
    return json.loads(text), dict(arrays), data


def test_the_rest_must_be_bounded() -> None:
    document, arrays, data = claims(1)
    assert check(document, arrays, data).accepted
    without = {name: array for name, array in arrays.items() if name != "outside"}
    assert "no dual vector is named" in check(document, without, data).reason
    arrays["outside"] = np.array([len(arrays["dual_q"])])
    assert "no dual vector is named" in check(document, arrays, data).reason


def test_every_part_of_the_statement_is_checked() -> None:
    document, arrays, data = claims(1)
    made = document["atoms"]["made"]
    for change, word in (
        ({"kind": "words"}, "kind"), ({"degree": 4}, "degree"), ({"gamma": 0.0}, "gamma"),
        ({"heredity": "both"}, "both"),
        ({"count": made["count"] + 1}, "there are"), ({"parts": made["parts"][:-1]}, "called"),
        ({"parts": [made["parts"][0], *made["parts"][:-1]]}, "held twice"), ({"parts": []}, "held twice"),
        ({"parts": [["nothing"], *made["parts"][1:]]}, "'nothing'"),
    ):  # fmt: skip
        atoms = {**document["atoms"], "made": {**made, **change}}
        report = check({**document, "atoms": atoms}, arrays, data)
        assert not report.accepted
        assert word in report.reason, (change, report.reason)
    for change in (
        {"n_features": 99}, {"columns": {}},
        {"rows": [{"name": "r", "terms": {}, "lb": None, "ub": 0.0, "origin": ""}]},
        {"extra": {"z": {"lb": 0.0, "ub": 1.0, "integer": False, "value": 0.0}}},
        {"near_optimal": {"complete": False, "gap": 0.1, "size": None, "supports": [], "share": {}}},
        {"params": {**document["params"], "M": None}}, {"params": {**document["params"], "lambda": 1.0}},
        {"params": {**document["params"], "weight_bounds": {document["atoms"]["names"][-1]: [None, None]}}},
    ):  # fmt: skip
        assert not check({**document, **change}, arrays, data).accepted, change


def test_saved_loaded_and_used(tmp_path: Path) -> None:
    for k in (1, 2, 5, 7):
        problem = monomials.problem_of(k)
        base: Any = problem.atoms
        result = monomials.solve(k, problem)
        result.save(tmp_path / "r.json")
        loaded = Result.load(tmp_path / "r.json")
        assert mipfs.verify(loaded, base.base).accepted
        ids = problem.atoms_of(list(result.weights))
        values = problem.data.block(ids).dense() @ np.array([*result.weights.values()]) + result.intercept
        np.testing.assert_allclose(loaded.decision_function(base.base), values, rtol=1e-9, atol=1e-9)
        assert "monomials" in loaded.summary()
        for damage in (
            lambda made: made["parts"].pop(), lambda made: made.update(degree=9), lambda made: made.pop("gamma")
        ):  # fmt: skip
            document = json.loads((tmp_path / "r.json").read_text())
            damage(document["atoms"]["made"])
            (tmp_path / "bad.json").write_text(json.dumps(document))
            with pytest.raises(mipfs.MipfsError):
                Result.load(tmp_path / "bad.json")
