"""Whether what a whole document says is true: its table is read, its optima enumerated, its errors counted, once more.

The table comes from `tests.certificate.raw_tables`, optima from `tests.certificate.truth`; nothing of the checkers or
the drivers is used. `lies` is asked of documents that a checker accepted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.certificate import forger, raw_tables
from tests.certificate.documents import Base, Json, Members, predicted
from tests.certificate.truth import NEAR, Truth
from tests.certificate.truth import lies as lies_of_result

CLOSE = 1e-9
SAID_OF_ERRORS = "the classifiers of the folds are not in the document"
SAID_OF_CARDS = "a card of the first version has no certificate"
SAID_OF_BIAS = "intercepts"
HISTORY = {"driver", "command", "trace", "counters", "seconds", "settings", "stop_reason", "versions", "bound_source"}


def close(one: float | None, other: float | None, room: float = CLOSE) -> bool:
    """Whether two numbers are the same, or both are missing."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= room * max(1e-10, abs(one), abs(other))


def on_scale(table: raw_tables.Table, result: Json, found: list[str]) -> Any:
    """A table as the data of `Truth`, on the scale that a result states, after this was found to be the right one."""
    shift, scale = table.scaling(result["scaling"]["kind"])
    for what, own in (("shift", shift), ("scale", scale)):
        for name, value in result["scaling"][what].items():
            j = table.names.index(name)
            sizes = np.abs(table.raw[:, j]).mean() if what == "shift" else own[j]
            if abs(value - own[j]) > 1e-12 * max(sizes, abs(own[j])):
                found.append(f"the {what} of {name} is {own[j]}")
            own[j] = value
    labels = SimpleNamespace(**result["labels"], of=lambda y: [*table.labels])
    return SimpleNamespace(
        X=(table.raw - shift) / scale, y=table.y, shift=shift, scale=scale, center=np.zeros(len(table.names)),
        is_sparse=False, feature_names=list(table.names), labels=labels, sample_weight=table.weight,
        sha256=table.digest(), scaling=result["scaling"]["kind"], n_features=len(table.names),
    )  # fmt: skip


def reading_lies(table: raw_tables.Table, result: Json) -> list[str]:
    """What is said of how a table was read and does not follow from it."""
    found, read = [], result["read"] or {}
    label = read.get("label")
    for one in ("words", "left_out", "kept") if result.get("rules") in (2, 3, 4, 5, 6) else ():
        if one not in read:
            found.append(f"rules 2 without {one}")
    if result.get("rules") not in (None, 1, 2, 3, 4, 5, 6):
        found.append("unknown rules")
    if "left_out" in read and sorted(read["left_out"] or []) != sorted(table.left_out) and read["left_out"] is not None:
        found.append(f"left_out is {read['left_out']}, and follows to be {table.left_out}")
    used = {name for name in (*result["columns"], *result["selected"])}
    of_words = {name: own for name, own in table.words.items() if any(f"{name}={word}" in used for word in own)}
    if dict(read.get("words") or {}) != of_words:
        found.append(f"words are {read.get('words')}, and of the columns that are used {of_words}")
    recipe = read.get("recipe")
    if recipe is not None:
        for name, own in (("filled", table.filled), ("missing", table.missing)):
            if recipe[name] != own:
                found.append(f"{name} is {recipe[name]}, and of this table {own}")
    if result["data_sha256"] != table.digest():
        found.append("another digest")
    if label is not None and not isinstance(label, str):
        found.append("the label's column")
    return found


def result_lies(
    text: str,
    result: Json,
    honest: Json,
    of: Any = None,
    by_class: Mapping[str, float] | None = None,
    proven: bool = True,
) -> list[str]:
    """The lies of one result of single features about a table."""
    try:
        table = raw_tables.read(text, result, of=of)
    except raw_tables.Unreadable as error:
        return [f"the table cannot be read so: {error}"]
    if of is not None:
        weigh(table, text, result, by_class or {})
    found = reading_lies(table, result)
    data = on_scale(table, result, found)
    if set(result["labels"].values()) != set(honest["labels"].values()):
        found.append("other labels")
    turned = dict(honest) | {"labels": result["labels"]}  # the labels the other way round are another problem
    if proven:
        return found + lies_of_result(result, turned, data)
    truth = Truth(result, data)
    if not close(truth.achieved(), result["objective"], NEAR):
        found.append(f"the objective is {truth.achieved()}")
    names = list(table.names)
    if result["columns"] != {name: names.index(name) for name in result["selected"]}:
        found.append("other columns")
    return found


def weigh(table: raw_tables.Table, text: str, result: Json, by_class: Mapping[str, float]) -> None:
    """Multiply the weights of samples by those of their own classes."""
    if by_class:
        label = (result["read"] or {}).get("label") or "label"
        header, *rows = [line.split(",") for line in text.splitlines()]
        at = header.index(label)
        table.weight = table.weight * np.array([by_class[_key(row[at], by_class)] for row in rows])


def _key(cell: str, by_class: Mapping[str, float]) -> str:
    return cell.strip() if cell.strip() in by_class else str(float(cell))


# --- paths ---------------------------------------------------------------------------------------------------


def path_lies(found: Base, document: Json, members: Members, said: str) -> list[str]:
    """The lies of a path."""
    lies: list[str] = []
    axes, points = forger.axes_of(document), document["points"]
    honest = found.document["points"][0]["result"]
    places = [tuple(point[axis] for axis in axes) for point in points]
    if len({*places}) != len(places):
        lies.append("a place twice")
    if not document["interrupted"]:
        due = math.prod(len(document["params"][axis]) for axis in axes)
        if len(places) != due:
            lies.append("a point is missing")
    fold = forger.fold_of(members) if "folds.npz" in members else None
    for point in points:
        result = point["result"]
        lies += [f"{places}: {one}" for one in result_lies(found.text, result, honest)]
        lies += _point_lies(found, axes, point, result)
        lies += _error_lies(found, point, fold, said)
    least, simple = forger.choice(document)
    for name, right in (("least_error", least), ("one_se", simple)):
        if document.get(name) is not None and document[name] != right:
            lies.append(f"{name} is {document[name]}, and follows to be {right}")
    right = simple if document.get("rule") == "one-se" else least
    if document["chosen"] != right:
        lies.append(f"chosen is {document['chosen']}, and follows to be {right}")
    return lies


def _point_lies(found: Base, axes: list[str], point: Json, result: Json) -> list[str]:
    lies = []
    for axis in axes:
        own = len(result["rows"]) if axis == "rows" else result["params"][axis]
        if own != point[axis]:
            lies.append(f"{axis} is {point[axis]}, and {own} in the result")
    for name in ("objective", "selected", "stop_reason"):
        if point[name] != result[name]:
            lies.append(f"{name} of a point is not that of its result")
    if point["bound"] is not None:
        table = raw_tables.read(found.text, result)
        high = Truth(result, on_scale(table, result, lies)).optimum()[1]
        if point["bound"] > high + NEAR * max(1e-10, abs(high)):
            lies.append(f"the bound of a point is {point['bound']}, above {high}")
    gap = forger.gap_of(point["objective"], point["bound"])
    if point["status"] in ("OPTIMAL", "FEASIBLE") and not (gap is None or abs(point["gap"] - gap) <= 1e-8 * (1 + gap)):
        lies.append(f"the gap of a point is {gap}")
    best = forger.gap_of(result["objective"], result["bound"])
    small = gap is not None and best is not None and min(gap, best) <= result["params"]["gap"] + NEAR
    if point["status"] == "OPTIMAL" and not small:
        lies.append("OPTIMAL with a larger gap")
    return lies


def _error_lies(found: Base, point: Json, fold: Any, said: str) -> list[str]:
    lies: list[str] = []
    errors = point["errors"]
    if not errors:
        return ["an error without errors"] if point["error"] is not None else []
    if point.get("fold_classifiers") is not None:
        own = forger.errors_of(found.text, point, fold)
        if not np.allclose(own, errors, atol=1e-8):
            lies.append(f"the errors of the folds are {own}, not {errors}")
    elif SAID_OF_ERRORS not in said:
        lies.append("nothing says that the errors are unchecked")
    spread = float(np.std(errors, ddof=1))
    right = {"error": float(np.mean(errors)), "deviation": spread, "standard_error": spread / len(errors) ** 0.5}
    lies += [f"{name} is {right[name]}" for name in right if abs(right[name] - point[name]) > 1e-8]
    return lies


# --- several classes -----------------------------------------------------------------------------------------


def classes_lies(found: Base, document: Json, said: str) -> list[str]:
    """The lies of a document of several classes."""
    lies: list[str] = []
    if document["classes"] != found.document["classes"]:
        return ["other classes"]
    by_class = document.get("class_weight") or {}
    for k, (result, of) in enumerate(zip(document["results"], document["classes"], strict=True)):
        honest = found.document["results"][k]
        if result["labels"] != {"negative": f"not {of}", "positive": of}:
            lies.append(f"other labels of {of}")
        proven = not document["shared_support"]
        lies += [f"{of}: {one}" for one in result_lies(found.text, result, honest, of, by_class, proven)]
        if proven and result["params"]["bias"] != document["bias"] and SAID_OF_BIAS not in said:
            lies.append("another bias")
    proofs = document["results"]
    if document["shared_support"]:
        lies += shared_lies(found, document, by_class)
        proofs = [document["together"]]
    for name in ("objective", "bound"):
        values = [one[name] for one in proofs]
        if not close(document[name], None if None in values else math.fsum(values)):
            lies.append(f"{name} is no sum")
    gap = forger.gap_of(document["objective"], document["bound"])
    if gap is not None and abs(document["gap"] - gap) > 1e-8 * (1 + gap):
        lies.append(f"the gap is {gap}")
    worst = ("NUMERICAL", "NO_SOLUTION", "INFEASIBLE", "RELAXED", "FEASIBLE", "OPTIMAL")
    if document["status"] != min((one["status"] for one in proofs), key=worst.index):
        lies.append("another status")
    names = dict.fromkeys(name for one in proofs for name in one["selected"])
    if document["selected"] != [name for name in names if name != "(intercept)"]:
        lies.append("another selection")
    return lies


def stack_of(found: Base, document: Json, by_class: Mapping[str, float]) -> Any:
    """The data of all classes, one block after the other."""
    blocks, names, first = [], [], document["results"][0]
    classes = document["classes"]
    for of, result in zip(classes, document["results"], strict=True):
        table = raw_tables.read(found.text, result, of=of)
        weigh(table, found.text, result, by_class)
        shift, scale = table.scaling(first["scaling"]["kind"])
        blocks.append((table, (table.raw - shift) / scale))
    table = blocks[0][0]
    n, K = len(table.raw), len(classes)
    columns = []
    for feature in (*range(len(table.names)), *(["(intercept)"] if document["bias"] else [])):
        for k, of in enumerate(classes):
            column = np.zeros(n * K)
            column[k * n : (k + 1) * n] = 1.0 if feature == "(intercept)" else blocks[k][1][:, feature]
            columns.append(column)
            names.append(f"{feature if feature == '(intercept)' else table.names[feature]}|{of}")
    p = len(names)
    y, weight = (np.concatenate([getattr(one, what) for one, _ in blocks]) for what in ("y", "weight"))
    return SimpleNamespace(
        X=np.column_stack(columns), y=y, shift=np.zeros(p), scale=np.ones(p), center=np.zeros(p), is_sparse=False,
        feature_names=names, labels=SimpleNamespace(of=lambda y: [None] * len(y)), sample_weight=weight,
        sha256=f"{found.folder} {by_class} {first['scaling']['kind']} {first['read']}", scaling="none", n_features=p,
    )  # fmt: skip


def shared_lies(found: Base, document: Json, by_class: Mapping[str, float]) -> list[str]:
    """The lies of the proof of a shared support."""
    together, data = document["together"], stack_of(found, document, by_class)
    lies = [f"together: {one}" for one in lies_of_result(together, found.document["together"], data)]
    K = len(document["classes"])
    atoms = together["atoms"]
    if atoms["columns"] != [data.feature_names[i : i + K] for i in range(0, data.n_features, K)]:
        lies.append("the atoms are no features")
    if document["bias"] and "(intercept)" not in together["params"]["forced_in"]:
        lies.append("the intercept is not forced in")
    for of, result in zip(document["classes"], document["results"], strict=True):
        for name, w in result["weights"].items():
            if not close(together["weights"].get(f"{name}|{of}", 0.0), w * result["scaling"]["scale"][name]):
                lies.append(f"another weight of {name} for {of}")
        if result["selected"] != document["selected"]:
            lies.append(f"another selection of {of}")
    return lies


# --- cards ---------------------------------------------------------------------------------------------------


def card_lies(found: Base, document: Json, said: str) -> list[str]:
    """The lies of a card."""
    version, result = document.get("version", 1), document["result"]
    lies = [f"inside: {one}" for one in result_lies(found.text, result, found.document["result"], proven=version == 2)]
    if version == 1 and SAID_OF_CARDS not in said:
        lies.append("nothing says that the proof is missing")
    if lies:
        return lies
    table = raw_tables.read(found.text, result)
    for line, own in zip(document["card"], found.document["card"], strict=version == 2):
        names = ("feature", "kind", "origin", "unit", "threshold")
        if version == 2 and result == found.document["result"] and any(line[one] != own[one] for one in names):
            lies.append(f"a line is {line}, and was {own}")
    if not close(forger.card_value(table, document), document["objective"], 1e-8):
        lies.append(f"the objective is {forger.card_value(table, document)}")
    totals, error = forger.card_totals(table, document)
    if abs(error - document["error"]) > 1e-9:
        lies.append(f"the error is {error}")
    if len(totals) != len(document["totals"]):
        lies.append("other ranges")
    for one, right in zip(document["totals"], totals, strict=False):
        room = 1e-9 * (1 + abs(right["from"]) + abs(right["to"]))
        same = all(one[name] == right[name] for name in ("samples", "positives", "decision"))
        if not same or any(abs(one[name] - right[name]) > room for name in ("from", "to")):
            lies.append(f"a range is {right}, not {one}")
    gap = forger.gap_of(document["objective"], document["bound"])
    assert gap is not None
    if document["bound"] > document["objective"] or abs(gap - document["gap"]) > 1e-8 * (1 + gap):
        lies.append("the gap")
    if (document["status"] == "OPTIMAL") != (gap <= document["asked"]) and abs(gap - document["asked"]) > 1e-8:
        lies.append("the status")
    if any(abs(line["points"]) > document["most_points"] for line in document["card"]):
        lies.append("points beyond the most")
    return lies


# --- what is predicted ---------------------------------------------------------------------------------------


def own_labels(found: Base, document: Json) -> tuple[list[str | None], str]:
    """The labels that the stated classifiers give the rows of the table, None where it is close; and its place."""
    place, result = "", document.get("result", document)
    if found.kind == "classes":
        scores = [
            raw_tables.read(found.text, one, of=of).scores(one)
            for one, of in zip(document["results"], document["classes"], strict=True)
        ]
        ranked = np.sort(scores, axis=0)
        best, sure = np.argmax(scores, axis=0), ranked[-1] - ranked[-2] > 1e-9 * (1 + np.abs(ranked[-1]))
        names = [str(document["classes"][k]) for k in best]
        return [name if one else None for name, one in zip(names, sure, strict=True)], place
    if found.kind == "path":
        point = document["points"][0]
        result = point["result"]
        place = "#" + ",".join(f"{axis}={point[axis]}" for axis in forger.axes_of(document))
    table = raw_tables.read(found.text, result)
    scores_ = table.scores(result) if found.kind != "card" else forger.card_scores(table, document)
    two = [str(result["labels"][side]) for side in ("negative", "positive")]
    return [two[int(s > 0)] if abs(s) > 1e-9 * (1 + np.abs(scores_).max()) else None for s in scores_], place


def prediction_lies(found: Base, document: Json, path: Path) -> list[str]:
    """Rows of the table that the package labels otherwise than the stated classifiers do."""
    if found.kind == "path" and document["points"][0]["result"]["intercept"] is None:
        return []
    if found.kind == "table" and document["intercept"] is None:
        return []
    own, place = own_labels(found, document)
    given = predicted(path, found.folder / "d.csv", place)
    if isinstance(given, str):  # what reads a changed file may be stricter than what verifies it
        return [] if "not a complete" in given and document != found.document else [f"nothing is predicted: {given}"]
    pairs = zip(given, own, strict=True)
    off = [i for i, (one, right) in enumerate(pairs) if right is not None and not _same_label(one, right)]
    return [f"predict says {given[off[0]]} of row {off[0]}, and {own[off[0]]} follows"] if off else []


def _same_label(one: str, right: str) -> bool:
    try:
        return float(one) == float(right)
    except ValueError:
        return one == right


def lies(found: Base, document: Json, members: Members, said: str) -> list[str]:
    """What is false of a document that was accepted with these words."""
    if found.kind == "path":
        return path_lies(found, document, members, said)
    if found.kind == "classes":
        return classes_lies(found, document, said)
    if found.kind == "card":
        return card_lies(found, document, said)
    return result_lies(found.text, document, found.document)
