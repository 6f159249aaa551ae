"""What is a mapping, a list, a number or a label in a document is one: both checkers have the rules of the page."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mipfs
from mipfs.check.known import names_label
from mipfs.cli import main
from mipfs.data.instance import Instance, Labels
from mipfs.estimators.fsp import FSPClassifier
from tests import two_checkers
from tests.certificate import attack
from tests.certificate.truth import lies

SEEDS = {"infeasible": 9, "list of nothing": 6, "relaxation": 12, "derived rows": 21, "products": 23, "functions": 149,
         "functions of nothing": 174}  # fmt: skip
"""Honest results that have what is changed below."""
PLAIN = ("infeasible", "list of nothing", "relaxation")
HISTORY = ("settings", "seconds", "command", "driver", "stop_reason", "validated", "conflict", "calibration",
           "bound_source")  # fmt: skip
FREE = ("name", "origin", "found", "ties", "file", "sha256", "selections")
"""Of another kind, these may be refused, or not."""


@lru_cache(maxsize=len(SEEDS))
def base(name: str) -> tuple[str, dict[str, Any], Instance, Any]:
    """An honest result that both accept: its JSON and arrays, and the data for both."""
    _, data, result = two_checkers.any_result(SEEDS[name])
    found, known = two_checkers.written(result), two_checkers.data_of(data)
    assert found is not None
    assert known is not None
    assert two_checkers.verdicts(json.loads(found[0]), found[1], data, known)[:2] == ("accepted", "accepted")
    return *found, data, known


def judged(name: str, path: tuple[Any, ...], value: Any) -> tuple[str, str]:
    """What both say with another value at a place."""
    text, arrays, data, known = base(name)
    document = json.loads(text)
    attack.at(document, path[:-1])[path[-1]] = value
    return two_checkers.verdicts(document, dict(arrays), data, known)[:2]


def twins(value: Any) -> list[Any]:
    """What Python takes for it, or for as empty, and is of another kind."""
    if isinstance(value, bool) or value is None:
        return [int(value), float(value)] if value is not None else [False, 0, "", [], {}]
    if isinstance(value, (int, float)):
        other = [float(value)] if isinstance(value, int) else [int(value)] if value.is_integer() else []
        return [*other, *([bool(value)] if value in (0, 1) else []), str(value)]
    if isinstance(value, str):
        return [[value], {value: 0}]
    if isinstance(value, list):
        return [{str(k): one for k, one in enumerate(value)}, *([] if value else ["", None, False])]
    return [list(value), *([] if value else ["", None, False])]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", SEEDS)
def test_both_say_the_same_of_what_is_of_another_kind(name: str) -> None:
    rng, document = np.random.default_rng(SEEDS[name]), json.loads(base(name)[0])
    places = [path for path in attack.places(document) if path[0] not in HISTORY and path[-1] not in FREE]
    shapes = {tuple("*" if isinstance(key, int) else key for key in path): path for path in places}  # one row of many
    for path in rng.permutation(np.array([*shapes.values()], dtype=object)).tolist():
        for value in twins(attack.at(document, path)):
            first, other = judged(name, path, value)
            assert other in (first, "declined") or "rounding" in first, (path, value, first, other)


MADE, DERIVED = ("atoms", "made"), ("certificate", "derived", 0)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("functions of nothing", (*MADE, "features"), []),
        ("functions of nothing", (*MADE, "features"), ""),
        ("functions", (*MADE, "features", "x1", "shift"), False),
        ("functions", (*MADE, "features", "x1", "map", "knots", 0), False),
        ("products", ("atoms", "scale"), True),
        ("products", ("atoms", "scale"), [1.0, 1.0, 1.0]),
        ("products", ("atoms", "columns"), []),
        ("products", ("columns", "x2"), True),
        ("products", ("columns", "x2"), 1.0),
        ("products", ("scaling", "shift", "x2"), False),
        ("infeasible", ("weights",), []),
        ("infeasible", ("scaling", "shift"), []),
        ("infeasible", ("params", "penalty"), []),
        ("infeasible", ("params", "penalty"), None),
        ("list of nothing", ("near_optimal", "share"), []),
        ("relaxation", ("relaxed", "extra"), 0),
        ("relaxation", ("params", "beta"), None),
        ("relaxation", ("certificate", "derived"), ""),
        ("derived rows", (*DERIVED, "ub"), 1.0),
        ("derived rows", (*DERIVED, "rows"), {}),
        *((name, ("read",), {}) for name in PLAIN),
        *((name, ("labels", "positive"), value) for name in PLAIN for value in (True, None, [1], "1_", 2)),
    ],
)
def test_both_refuse_another_kind(name: str, path: tuple[Any, ...], value: Any) -> None:
    assert judged(name, path, value) == ("rejected", "rejected")


@pytest.mark.parametrize("field", ["cardinality", "bounds", "rows"])
def test_both_refuse_a_derived_row_that_lacks_a_multiplier(field: str) -> None:
    text, arrays, data, known = base("derived rows")
    document = json.loads(text)
    del document["certificate"]["derived"][0][field]
    assert two_checkers.verdicts(document, dict(arrays), data, known)[:2] == ("rejected", "rejected")


def test_a_label_is_called_by_its_text_or_its_number() -> None:
    assert all(
        names_label(stated, label) for stated, label in [(1, 1), (1.0, 1), ("1", 1), ("+1", 1), ("1.0", 1), (-1, "-1")]
    )
    assert all(names_label(stated, label) for stated, label in [(True, "True"), ("not 1.0", "not 1"), ("a", "a")])
    others = [(True, 1), (1, True), (1, -1), ("A", "a"), ("nan", "NaN"), ("1_0", 10), ("inf", "Infinity"), (None, 0)]
    assert not any(names_label(stated, label) for stated, label in others)


@pytest.mark.parametrize("labels", [(-1, 1.0), (-1.0, 1.0), ("-1", "+1"), (-1, True), (-1, "x"), (1, -1), (-1, -1.0)])
def test_the_oracle_has_the_rule_of_labels(labels: tuple[Any, Any]) -> None:
    """A result of labels that were doubles, or texts, in memory says of its file what one of whole numbers says."""
    text, arrays, data, known = base("relaxation")
    document = json.loads(text) | {"labels": dict(zip(("negative", "positive"), labels, strict=True))}
    is_true = labels[:2] in [(-1, 1.0), (-1.0, 1.0), ("-1", "+1")] and labels[1] is not True
    word = "accepted" if is_true else "rejected"
    assert two_checkers.verdicts(document, dict(arrays), data, known)[:2] == (word, word)
    assert ("other labels" not in lies(document, json.loads(text), data)) == is_true


def test_class_weights_are_by_the_labels_that_the_document_has() -> None:
    rng = np.random.default_rng(5)
    y = np.where(rng.normal(size=20) > 0, 1.0, -1.0)
    with two_checkers.remembered():
        data = Instance.from_arrays(rng.normal(size=(20, 3)), y, labels=Labels(0.0, 1.0))
        again = Instance.from_arrays(data.X, y, labels=Labels(0, 1))
    result = mipfs.solve(mipfs.Problem(data, M=2, C=1.0, class_weight={1.0: 2.0}))
    found = two_checkers.written(result)
    assert found is not None
    document = json.loads(found[0])
    assert document["params"]["class_weight"] == {"0.0": 1.0, "1.0": 2.0}
    for one in (data, again):  # as the file has them, whole numbers
        known = two_checkers.data_of(one)
        assert two_checkers.verdicts(document, found[1], one, known)[:2] == ("accepted", "accepted")
    document["params"]["class_weight"] = {"0": 1.0, "1": 2.0}
    both = two_checkers.verdicts(document, found[1], again, two_checkers.data_of(again))
    assert both[:2] == ("rejected", "rejected")


IN_MEMORY: Mapping[str, tuple[Any, Any, Any]] = {
    "whole": (0, 1, 2), "doubles": (0.0, 1.0, 2.0), "texts": ("0", "1", "2"), "signs": ("-1", "+0", "+1"),
    "points": ("0.0", "1.0", "2.0"), "booleans": (False, True, None),
}  # fmt: skip


KINDS = [(kind, classes) for kind, names in IN_MEMORY.items() for classes in (2, 3) if names[classes - 1] is not None]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kind", "classes"), KINDS)
def test_a_classifier_of_labels_in_memory_is_one_of_their_file(
    kind: str, classes: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(36, 3))
    places = (X[:, 0] + 0.3 * rng.normal(size=36) > 0).astype(int) + (X[:, 1] > 0.4) * (classes == 3)
    y = np.array([IN_MEMORY[kind][k] for k in places])
    with (tmp_path / "d.csv").open("w", newline="", encoding="utf-8") as stream:
        rows = [[*x, one] for x, one in zip(X.tolist(), y.tolist(), strict=True)]
        csv.writer(stream).writerows([["a", "b", "c", "label"], *rows])
    model = FSPClassifier(M=2, C=1.0).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    result = model.result_ if classes == 2 else model.result_[1]
    result.save(str(tmp_path / "r.json"))
    assert main(["verify", str(tmp_path / "r.json"), str(tmp_path / "d.csv")]) == 0, capsys.readouterr().err
    second = two_checkers.second()
    word, why = second.verdict_of(lambda: second.judge(tmp_path / "r.json", tmp_path / "d.csv"))
    assert word == "accepted", why
