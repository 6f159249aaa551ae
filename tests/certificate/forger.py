"""What a forger does to whole documents: one entry anywhere, or a claim with all that goes with it, digests included.

A move changes the document and the members of its archive in place; `forged` signs what came of it, most times.
"""

from __future__ import annotations

import copy
import io
import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from tests.certificate import attack, documents, raw_tables
from tests.certificate.documents import Base, Json, Members

Rng = np.random.Generator
Move = Callable[[Rng, Base, Json, Members], None]
BROKEN = (KeyError, TypeError, AttributeError, ValueError, IndexError, AssertionError, OverflowError, StopIteration)
"""What a move raises where a document has not what it changes."""


def results_of(kind: str, document: Json) -> list[Json]:
    """Every result in a document, those without proofs too."""
    if kind == "path":
        return [point["result"] for point in document["points"]]
    if kind == "classes":
        return [*document["results"], *([document["together"]] if document["together"] else [])]
    return [document["result"]] if kind == "card" else [document]


def any_result(rng: Rng, found: Base, document: Json) -> Json:
    """One of its results."""
    every = results_of(found.kind, document)
    return every[int(rng.integers(len(every)))]


def read_again(found: Base, result: Json, of: Any = None) -> None:
    """Put in a result what follows of the table as it now says to have been read: digest, width, columns, words."""
    with suppress(raw_tables.Unreadable):
        table = raw_tables.read(found.text, result, of=of)
        result["n_features"] = len(table.names)
        result["columns"] = {name: table.names.index(name) for name in result["columns"] if name in table.names}
        recipe = (result["read"] or {}).get("recipe")
        if recipe:
            recipe["filled"], recipe["missing"] = table.filled, table.missing
        result["data_sha256"] = table.digest()


# --- any document --------------------------------------------------------------------------------------------


def entry(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """One entry, deep down or not."""
    place: Any = document
    while rng.random() < 0.75:
        inner = [v for k, v in place.items() if k not in ("trace", "versions", "counters", "settings")]
        inner = [v for v in inner if isinstance(v, dict) and v] + [
            one for v in inner if isinstance(v, list) for one in v if isinstance(one, dict) and one
        ]
        if not inner:
            break
        place = inner[int(rng.integers(len(inner)))]
    attack.one_entry(rng, place, None)  # type: ignore[arg-type]


def entries(rng: Rng, found: Base, document: Json, members: Members) -> None:
    """Two or three."""
    for _ in range(int(rng.integers(2, 4))):
        entry(rng, found, document, members)


def arrays(rng: Rng, found: Base, document: Json, members: Members) -> None:
    """An array of a sidecar, as the attack on results changes them."""
    names = sorted(members)
    name = names[int(rng.integers(len(names)))]
    inside = found.kind in ("path", "classes")
    own = documents.unpacked(members[name]) if inside else members
    held = {one: np.load(io.BytesIO(content)) for one, content in own.items()}
    change = attack.ARRAY_MOVES[int(rng.integers(len(attack.ARRAY_MOVES)))]
    result = any_result(rng, found, document)
    change(rng, held, result)
    new = {one.removesuffix(".npy") + ".npy": _npy(values) for one, values in held.items()}
    if inside:
        members[name] = documents.packed(new)
    else:
        members.clear()
        members.update(new)


def _npy(values: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(values), allow_pickle=False)
    return stream.getvalue()


def swapped_members(rng: Rng, found: Base, _: Json, members: Members) -> None:
    """Two members of the archive exchanged, one in place of another, one gone, or one more."""
    names = sorted(members)
    one, other = (names[int(k)] for k in rng.integers(len(names), size=2))
    turn = int(rng.integers(4))
    if turn == 0:
        members[one], members[other] = members[other], members[one]
    elif turn == 1:
        members[one] = members[other]
    elif turn == 2:
        del members[one]
    else:
        members["9.cert.npz" if found.kind in ("path", "classes") else "more.npy"] = members[one]


# --- how the table was read ----------------------------------------------------------------------------------


def rules(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """The version deleted, lowered or raised, with the fields that the other one has or has not."""
    turn = int(rng.integers(4))
    for result in results_of(found.kind, document):
        if turn == 0:
            result.pop("rules", None)
        else:
            result["rules"] = [None, 1, 4, 0][turn]
        if rng.random() < 0.8 and result.get("read") and turn < 2:
            result["read"].pop("kept", None)
        if rng.random() < 0.2 and result.get("read") and turn < 2:
            result["read"].pop("left_out", None)


def left_out(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """Another column of words is left out, or none, in all results alike; the digest follows, most times."""
    header = found.text.splitlines()[0].split(",")
    names = [str(one) for one in rng.choice(header, int(rng.integers(0, 3)), replace=False)]
    kept = [str(one) for one in rng.choice(header, int(rng.integers(0, 2)), replace=False)]
    old, fits = rng.random() < 0.3, rng.random() < 0.7
    for result in results_of(found.kind, document):
        if result.get("read") is None:
            continue
        own = result["read"].get("left_out") or []
        turn = names if rng.random() < 0.9 else [*own, *names]
        result["read"]["left_out"] = turn
        if rng.random() < 0.5:
            result["read"]["kept"] = kept
        if old:
            result.pop("rules", None)
            result["read"].pop("kept", None)
        if fits and found.kind != "classes":
            read_again(found, result)


def without_a_column(rng: Rng, found: Base, document: Json, members: Members) -> None:
    """What was solved without a column, as if this had been left out by the rule, or by nothing."""
    if found.other is None:
        entry(rng, found, document, members)
        return
    name, other, own = found.other
    digest, recipe = document["data_sha256"], document["read"].get("recipe")
    document.clear()
    document.update(copy.deepcopy(other))
    members.clear()
    members.update(own)
    read, turn = document["read"], int(rng.integers(5))
    if turn < 4:
        read["recipe"] = recipe
    if turn in (1, 2):
        read["left_out"] = [*read["left_out"], name]
    if turn == 2:
        document.pop("rules", None)
        read.pop("kept", None)
    if turn == 3:
        read.pop("left_out")
    if rng.random() < 0.4:
        document["data_sha256"] = digest
    elif rng.random() < 0.5:
        read_again(found, document)


def words(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """Words of a column deleted, in another order, one more or less, or of another column."""
    turn = int(rng.integers(6))
    for result in results_of(found.kind, document):
        held = (result.get("read") or {}).get("words")
        if held is None:
            continue
        if not held or turn == 5:
            held["town"] = ["Bonn", "Jena", "Ulm"]
            continue
        name = next(iter(held))
        if turn == 0:
            del held[name]
        elif turn == 1:
            held[name] = held[name][::-1]
        elif turn == 2:
            held[name] = held[name][1:]
        elif turn == 3:
            held[name] = [*held[name], "Rom"]
        else:
            result["read"].pop("words")


def recipe(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """Another recipe in all results alike, with the digest that it has; or a part of it that does not fit."""
    header = found.text.splitlines()[0].split(",")
    name = str(rng.choice(header))
    changes: list[tuple[str, Any]] = [
        ("drop", []), ("drop", [name]), ("use", None), ("use", [name]), ("impute", {}), ("impute", {"*": "median"}),
        ("impute", {"*": "most frequent"}), ("impute", {"*": "level"}), ("types", {}), ("types", {name: "percent"}),
        ("marks", []), ("marks", ["-"]), ("marks", ["0"]),
        ("filled", {name: 0.0}), ("missing", {}), ("missing", {name: 1}),
    ]  # fmt: skip
    part, value = changes[int(rng.integers(len(changes)))]
    fits = rng.random() < 0.8
    for result in results_of(found.kind, document):
        if result.get("read") is None:
            continue
        own = result["read"].get("recipe")
        if own is None or rng.random() < 0.02:
            own = {"drop": [], "use": None, "impute": {}, "types": {}, "filled": {}, "missing": {}}
        own = copy.deepcopy(own)
        if part in ("filled", "missing") and rng.random() < 0.7 and own[part]:
            first = next(iter(own[part]))
            own[part][first] = own[part][first] + 1 if isinstance(own[part][first], (int, float)) else "Bonn"
        else:
            own[part] = value
        result["read"]["recipe"] = own if rng.random() < 0.97 else None
        if fits and part not in ("filled", "missing") and found.kind != "classes":
            read_again(found, result)


def label(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """Another column of labels, the labels the other way round, or the sides of the weights with them."""
    turn = int(rng.integers(4))
    header = found.text.splitlines()[0].split(",")
    for result in results_of(found.kind, document):
        if turn == 0 and result.get("read"):
            result["read"]["label"] = [None, *header][int(rng.integers(len(header) + 1))]
        else:
            one = result["labels"]
            one["negative"], one["positive"] = one["positive"], one["negative"]
        if turn > 1:
            result["weights"] = {name: -w for name, w in result["weights"].items()}
            result["intercept"] = -result["intercept"]
        if turn > 2 and found.kind != "classes":
            read_again(found, result)
    if found.kind == "card" and turn:
        document["labels"] = dict(document["result"]["labels"])


def another_column(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """The positions of columns exchanged, or scales of others: what other rows would be read with."""
    result = any_result(rng, found, document)
    columns = result["columns"]
    name = list(columns)[int(rng.integers(len(columns)))]
    turn = int(rng.integers(4))
    if turn == 0:
        columns[name] = int(rng.integers(result["n_features"]))
    elif turn == 1 and len(columns) > 1:
        other = next(one for one in columns if one != name)
        columns[name], columns[other] = columns[other], columns[name]
    elif turn == 2:
        result["scaling"]["scale"][name] *= float(rng.choice([2.0, 1 + 1e-9, -1.0]))
    else:
        result["scaling"]["shift"][name] += float(rng.choice([1.0, 1e-9]))


# --- objective and bound that agree --------------------------------------------------------------------------


def gap_of(upper: Any, lower: Any) -> float | None:
    if upper is None or lower is None:
        return None
    return max(0.0, float(upper - lower)) / max(1e-10, abs(upper))


def beside(found: Base, document: Json) -> None:
    """Make what stands beside the results what they say."""
    if found.kind == "path":
        for point in document["points"]:
            result = point["result"]
            point |= {name: copy.deepcopy(result[name]) for name in ("status", "objective", "bound", "selected")}
            point["gap"] = gap_of(point["objective"], point["bound"])
    elif found.kind == "classes":
        proofs = documents.proofs(document)
        for name in ("objective", "bound"):
            values = [one[name] for one in proofs]
            document[name] = None if None in values else math.fsum(values)
        document["gap"] = gap_of(document["objective"], document["bound"])
        worst = ("NUMERICAL", "NO_SOLUTION", "INFEASIBLE", "RELAXED", "FEASIBLE", "OPTIMAL")
        document["status"] = min((one["status"] for one in proofs), key=worst.index)
        names = dict.fromkeys(name for one in proofs for name in one["selected"])
        document["selected"] = [name for name in names if name != "(intercept)"]


def higher(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """A higher bound or a lower objective of one result, and all that follows of it."""
    result = any_result(rng, found, document)
    size = 10.0 ** rng.uniform(-8, -0.5)
    if rng.random() < 0.6:
        result["bound"] = result["bound"] * (1 + size) if rng.random() < 0.7 else result["objective"]
        if rng.random() < 0.8:
            result["certificate"]["bound"] = result["bound"]
    else:
        result["objective"] *= 1 - size
    result["gap"] = gap_of(result["objective"], result["bound"])
    if rng.random() < 0.3:
        result["status"] = str(rng.choice(["OPTIMAL", "FEASIBLE", "RELAXED"]))
    beside(found, document)


def other_weights(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """Other weights with the objective that they have; the status follows, or does not."""
    result = any_result(rng, found, document)
    of = result["labels"]["positive"] if found.kind == "classes" else None
    if found.kind == "classes" and result is document["together"]:
        of, result = document["results"][0]["labels"]["positive"], document["results"][0]
    factor = float(rng.choice([1.001, 0.9, -1.0, 2.0]))
    result["weights"] = {name: w * factor for name, w in result["weights"].items()}
    if result["params"]["bias"]:
        result["intercept"] += float(rng.choice([0.0, 0.1]))
    table = raw_tables.read(found.text, result, of=of)
    value = value_of(table, result, class_weight_of(found, document))
    if rng.random() < 0.7:
        result["objective"] = value
        result["gap"] = gap_of(value, result["bound"])
        if rng.random() < 0.6 and result["status"] == "OPTIMAL":
            result["status"] = "FEASIBLE"
    if rng.random() < 0.7:
        beside(found, document)


def class_weight_of(found: Base, document: Json) -> dict[str, float]:
    """The weights of classes of a document of several."""
    return document.get("class_weight") or {} if found.kind == "classes" else {}


def value_of(table: raw_tables.Table, result: Json, by_class: dict[str, float]) -> float:
    """The objective of a classifier of single features, in doubles."""
    scale = dict(zip(table.names, table.scaling(result["scaling"]["kind"])[1], strict=True))
    half = 0.5 * sum((w * scale[name]) ** 2 for name, w in result["weights"].items())
    m = table.y * table.scores(result)
    losses = {
        "hinge": np.maximum(0.0, 1.0 - m),
        "squared-hinge": 0.5 * np.maximum(0.0, 1.0 - m) ** 2,
        "logistic": np.logaddexp(0.0, -m),
    }
    own = result["params"].get("class_weight") or {}
    c = table.weight * np.array([own.get(str(one), 1.0) for one in table.labels])
    lam = result["params"]["lambda"]
    each = lam if isinstance(lam, (int, float)) else 0.0
    return float(half + result["params"]["C"] * c @ losses[result["params"]["loss"]] + each * len(result["selected"]))


# --- paths ---------------------------------------------------------------------------------------------------


def axes_of(document: Json) -> list[str]:
    return str(document["axis"]).split(",")


def another_place(rng: Rng, found: Base, document: Json, members: Members) -> None:
    """Results at places of others, with or without their members; a place renamed everywhere; a point less or twice."""
    points, axes, turn = document["points"], axes_of(document), int(rng.integers(6))
    i, j = (int(k) for k in rng.integers(len(points), size=2))
    if turn == 0:
        points[i]["result"], points[j]["result"] = points[j]["result"], points[i]["result"]
        _exchange(members, i, j)
        beside(found, document)
    elif turn == 1:
        for axis in axes:
            points[i][axis], points[j][axis] = points[j][axis], points[i][axis]
    elif turn == 2:
        axis, old = axes[0], points[i][axes[0]]
        new = old + 1 if axis in ("M", "rows") else 2.0 * old
        for point in points:
            if point[axis] == old:
                point[axis] = new
                if axis != "rows":
                    point["result"]["params"][axis] = new
        listed = document["params"].get(axis)
        if isinstance(listed, list):
            document["params"][axis] = sorted(new if v == old else v for v in listed)
        choose(document)
    elif turn == 3:
        gone = points.pop()
        members.pop(f"{len(points)}.cert.npz", None)
        document["interrupted"] = bool(rng.random() < 0.7)
        if document["interrupted"] and rng.random() < 0.7:
            document |= {name: None for name in ("chosen", "least_error", "one_se") if name in document}
        elif rng.random() < 0.5 and len(axes) == 1 and axes[0] != "rows":
            document["params"][axes[0]] = [v for v in document["params"][axes[0]] if v != gone[axes[0]]]
            choose(document)
    elif turn == 4:
        points.append(copy.deepcopy(points[i]))
    else:
        points.reverse()
        for k in range(len(points) // 2):
            _exchange(members, k, len(points) - 1 - k)


def _exchange(members: Members, i: int, j: int) -> None:
    one, other = f"{i}.cert.npz", f"{j}.cert.npz"
    members[one], members[other] = members[other], members[one]


def borrowed(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """A point takes the bound of another one, which may be none below it; status and gap follow."""
    points = document["points"]
    point, other = (points[int(k)] for k in rng.integers(len(points), size=2))
    point["bound"] = min(other["bound"] * float(rng.choice([1.0, 1.0, 1.001])), point["objective"])
    point["gap"] = gap_of(point["objective"], point["bound"])
    if rng.random() < 0.6:
        asked = point["result"]["params"]["gap"]
        point["status"] = "OPTIMAL" if point["gap"] <= asked else "FEASIBLE"


def fold_of(members: Members) -> Any:
    return np.load(io.BytesIO(members["folds.npz"]))["fold"]


def put_fold(members: Members, fold: Any) -> None:
    stream = io.BytesIO()
    np.savez(stream, fold=fold)
    members["folds.npz"] = stream.getvalue()


def errors_of(text: str, point: Json, fold: Any) -> list[float]:
    """The errors of the folds' classifiers, on rows filled by what the other folds have."""
    found = []
    for k, one in enumerate(point["fold_classifiers"]):
        table = raw_tables.read(text, point["result"], rest=np.flatnonzero(fold != k).tolist())
        off = ((table.scores(one) > 0) != (table.y > 0))[fold == k]
        found.append(float(off.mean()) if off.size else 0.0)  # no fold is empty where a checker accepts
    return found


def summed(point: Json) -> None:
    """Mean, deviation and standard error of the errors of a point."""
    errors = np.array(point["errors"])
    spread = float(np.std(errors, ddof=1))
    point |= {"error": float(errors.mean()), "deviation": spread, "standard_error": spread / len(errors) ** 0.5}


def choice(document: Json) -> tuple[Any, Any]:
    """The places of the least error and of the simplest within one standard error, as the page says."""
    axes = axes_of(document)

    def simplicity(point: Json) -> list[float]:
        order = {"C": 1, "M": 1, "lambda": -1, "rows": 1}
        return [order[axis] * point[axis] for axis in axes]

    def place(point: Json | None) -> Any:
        if point is None:
            return None
        return point[axes[0]] if len(axes) == 1 else {axis: point[axis] for axis in axes}

    points = [one for one in document["points"] if one["errors"] and one["result"]["objective"] is not None]
    if not points or document["interrupted"]:
        return None, None
    points.sort(key=simplicity)
    least = min(points, key=lambda one: round(one["error"], 12))
    limit = round(least["error"] + least["standard_error"], 12)
    simple = next(one for one in points if round(one["error"], 12) <= limit)
    return place(least), None if axes == ["rows"] else place(simple)


def choose(document: Json) -> None:
    """Choose by the errors that stand there."""
    least, simple = choice(document)
    document["chosen"] = simple if document.get("rule") == "one-se" else least
    for name, value in (("least_error", least), ("one_se", simple)):
        if name in document:
            document[name] = value


def folds(rng: Rng, found: Base, document: Json, members: Members) -> None:
    """Other folds, classifiers or errors; what follows of them is computed again, or some of it."""
    if not document["folds"]:
        entry(rng, found, document, members)
        return
    turn, fold = int(rng.integers(6)), fold_of(members)
    points = document["points"]
    point = points[int(rng.integers(len(points)))]
    if turn == 0:
        put_fold(members, rng.permutation(fold))
    elif turn == 1:
        one = point["fold_classifiers"][int(rng.integers(3))]
        one["intercept"] += float(rng.choice([-1.0, 0.3, 1.0]))
    elif turn == 2:
        point["errors"] = [max(0.0, error - 0.1) for error in point["errors"]]
    elif turn == 3:
        for one in points:
            one.pop("fold_classifiers")
        members.pop("folds.npz")
        point["errors"] = [0.0, 0.01, 0.0]
    elif turn == 4:
        point["fold_classifiers"] = point["fold_classifiers"][::-1]
    else:
        put_fold(members, np.asarray(fold, dtype=rng.choice(["int64", "int32"])) % int(rng.integers(2, 4)))
    if turn != 3 and turn != 2 and rng.random() < 0.7:
        for one in points:
            one["errors"] = errors_of(found.text, one, fold_of(members))
    for one in points:
        if rng.random() < 0.9:
            summed(one)
    if rng.random() < 0.8:
        choose(document)


def chosen(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """Another rule, or another point that is chosen."""
    points, axes = document["points"], axes_of(document)
    point = points[int(rng.integers(len(points)))]
    place = point[axes[0]] if len(axes) == 1 else {axis: point[axis] for axis in axes}
    turn = int(rng.integers(4))
    if turn == 0:
        document["rule"] = "one-se" if document.get("rule") != "one-se" else "least-error"
        if rng.random() < 0.7:
            choose(document)
    elif turn == 1:
        document[str(rng.choice(["chosen", "least_error", "one_se"]))] = place
    elif turn == 2:
        document |= dict.fromkeys(("chosen", "least_error", "one_se"), place)
    else:
        document.pop(str(rng.choice(["rule", "least_error", "one_se"])), None)


def errors_beside(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """An error, a deviation, a standard error, a count."""
    point = document["points"][int(rng.integers(len(document["points"])))]
    name = str(rng.choice(["error", "deviation", "standard_error", "subproblems", "status", "stop_reason"]))
    value = point[name]
    if isinstance(value, str):
        point[name] = str(rng.choice(["OPTIMAL", "FEASIBLE", "TIME_LIMIT", "GAP_CLOSED"]))
    else:
        point[name] = (value or 0) + type(value or 0)(rng.choice([1.0, 1.0, -1.0]))


# --- several classes -----------------------------------------------------------------------------------------


def summary(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """What stands at the top."""
    name = str(rng.choice(["status", "objective", "bound", "gap", "selected", "bias", "classes", "class_weight"]))
    other: dict[str, Any] = {
        "status": str(rng.choice(["OPTIMAL", "FEASIBLE", "INFEASIBLE"])),
        "objective": document["objective"] * float(rng.choice([0.9, 1.001, 1 + 1e-8])),
        "bound": float(rng.choice([document["objective"], 1.001 * document["bound"], 0.0])),
        "gap": 0.0, "selected": document["selected"][::-1] if rng.random() < 0.5 else document["selected"][:-1],
        "bias": not document["bias"], "classes": document["classes"][::-1],
        "class_weight": {str(one): 1.0 + k for k, one in enumerate(document["classes"])},
    }  # fmt: skip
    document[name] = other[name]
    if name in ("objective", "bound") and rng.random() < 0.5:
        document["gap"] = gap_of(document["objective"], document["bound"])
    if name == "bias" and rng.random() < 0.5:
        for one in document["results"]:
            one["params"]["bias"] = document["bias"]


def exchanged(rng: Rng, found: Base, document: Json, members: Members) -> None:
    """What two classes say is exchanged, in whole or in part, with or without their members."""
    results = document["results"]
    i, j = (int(k) for k in rng.choice(len(results), 2, replace=False))
    name = str(rng.choice(["*", "weights", "intercept", "columns", "labels", "objective", "data_sha256", "scaling"]))
    if name == "*":
        results[i], results[j] = results[j], results[i]
        if rng.random() < 0.5:
            results[i]["labels"], results[j]["labels"] = results[j]["labels"], results[i]["labels"]
        elif rng.random() < 0.5:
            classes = document["classes"]
            classes[i], classes[j] = classes[j], classes[i]
        if not document["shared_support"] and rng.random() < 0.7:
            _exchange(members, i, j)
    else:
        results[i][name], results[j][name] = results[j][name], results[i][name]
    if rng.random() < 0.5:
        beside(found, document)


def together(rng: Rng, found: Base, document: Json, members: Members) -> None:
    """What is said of all classes: another weight in both places, atoms, what is forced, what is shared."""
    if not document["shared_support"]:
        document["shared_support"] = bool(rng.random() < 0.5)
        if rng.random() < 0.5:
            document["together"] = copy.deepcopy(document["results"][0])
        return
    whole, turn = document["together"], int(rng.integers(7))
    names = list(whole["weights"])
    name = names[int(rng.integers(len(names)))]
    if turn == 0:
        whole["weights"][name] *= 1.5
        feature, _, of = name.rpartition("|")
        for one in document["results"]:
            if str(one["labels"]["positive"]) == of and feature in one["weights"]:
                one["weights"][feature] *= 1.5
    elif turn == 1:
        whole["atoms"]["names"] = whole["atoms"]["names"][::-1]
    elif turn == 2:
        whole["atoms"]["columns"] = whole["atoms"]["columns"][::-1]
    elif turn == 3:
        whole["params"]["forced_in"] = []
    elif turn == 4:
        whole["params"]["M"] += 1
    elif turn == 5:
        whole["selected"] = whole["selected"][:-1]
        beside(found, document)
        for one in document["results"]:
            one["selected"] = document["selected"]
    else:
        whole["atoms"]["scale"] = [2.0] * len(whole["atoms"]["names"])


# --- cards ---------------------------------------------------------------------------------------------------


def columns_of(table: raw_tables.Table, card: Json) -> list[Any]:
    """What every line of a card counts on the rows, as it stands there."""
    found = []
    for line in card["card"]:
        values = table.raw[:, table.names.index(line["feature"])]
        if line["kind"] != "scaled":
            values = np.array([float(f"{v:.12g}") for v in values])
        if line["threshold"] is not None:
            found.append((values >= line["threshold"]).astype(float))
        else:
            found.append((values - line["origin"]) / line["unit"])
    return found


def card_value(table: raw_tables.Table, card: Json) -> float:
    """The objective of a card, by hand."""
    result, total, half = card["result"], np.zeros(len(table.raw)), 0.0
    scale = dict(zip(table.names, table.scaling(result["scaling"]["kind"])[1], strict=True))
    for line, counts in zip(card["card"], columns_of(table, card), strict=True):
        size = scale[line["feature"]] / line["unit"]
        if line["threshold"] is not None:
            size = float(np.std(counts)) if scale[line["feature"]] != 1.0 else 1.0
        half += 0.5 * (size * card["scale"] * line["points"]) ** 2
        total = total + line["points"] * counts
    m = table.y * (card["scale"] * total + card["intercept"])
    losses = {
        "hinge": np.maximum(0.0, 1.0 - m),
        "squared-hinge": 0.5 * np.maximum(0.0, 1.0 - m) ** 2,
        "logistic": np.logaddexp(0.0, -m),
    }
    own = result["params"].get("class_weight") or {}
    c = table.weight * np.array([own.get(str(one), 1.0) for one in table.labels])
    return float(half + result["params"]["C"] * c @ losses[result["params"]["loss"]])


def card_scores(table: raw_tables.Table, card: Json) -> Any:
    """How far the totals of the rows lie above the threshold, relative to what was added up."""
    found, size = np.zeros(len(table.raw)), np.zeros(len(table.raw))
    for line, counts in zip(card["card"], columns_of(table, card), strict=True):
        found, size = found + line["points"] * counts, size + abs(line["points"] * counts)
    limit = -card["intercept"] / card["scale"]
    return (found - limit) / np.maximum(size + abs(limit), 1e-300)


def card_totals(table: raw_tables.Table, card: Json) -> tuple[list[Json], float]:
    """The ranges of the totals, and the error, in doubles."""
    found, size = np.zeros(len(table.raw)), np.zeros(len(table.raw))
    for line, counts in zip(card["card"], columns_of(table, card), strict=True):
        found, size = found + line["points"] * counts, size + abs(line["points"] * counts)
    limit = -card["intercept"] / card["scale"]
    size = size + abs(limit)
    found = np.array([round(t, 12 - math.floor(math.log10(s)) if s else 12) for t, s in zip(found, size, strict=True)])
    each, rows, up = np.unique(found), [], table.y > 0
    for part in np.array_split(each, min(16, each.size)):
        for side, decision in ((part[part <= limit], "negative"), (part[part > limit], "positive")):
            if side.size:
                inside = (found >= side[0]) & (found <= side[-1])
                counts = {"samples": int(inside.sum()), "positives": int((inside & up).sum())}
                rows.append(
                    {"from": float(side[0]), "to": float(side[-1]), **counts, "decision": card["labels"][decision]}
                )
    return rows, float(np.mean((found > limit) != up))


def points(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """Other points, threshold, scale or intercept, with all or some of what follows of them."""
    line, turn = document["card"][int(rng.integers(len(document["card"])))], int(rng.integers(6))
    if turn < 3:
        line["points"] += int(rng.choice([-1, 1]))
    elif turn == 3:
        document["scale"] *= float(rng.choice([1.001, 0.5, 2.0]))
    elif turn == 4:
        document["intercept"] += float(rng.choice([0.1, -0.5, 1e-7]))
    elif line["threshold"] is not None:
        line["threshold"] += float(rng.choice([0.01, 1.0, -0.5]))
    else:
        line["origin"] += 0.5
    table = raw_tables.read(found.text, document["result"])
    if rng.random() < 0.8:
        document["objective"] = card_value(table, document)
    if rng.random() < 0.8:
        document["totals"], document["error"] = card_totals(table, document)
        ups, downs = table.y > 0, table.y < 0
        total = sum(
            line["points"] * one for line, one in zip(document["card"], columns_of(table, document), strict=True)
        )
        total = np.round(total, 9)
        pairs = total[ups][:, None] - total[downs][None, :]
        document["roc_auc"] = float(np.mean((pairs > 0) + 0.5 * (pairs == 0)))
    if rng.random() < 0.8:
        document["bound"] = min(document["bound"], document["objective"])
        document["gap"] = gap_of(document["objective"], document["bound"])
        document["status"] = "OPTIMAL" if document["gap"] <= document["asked"] else "FEASIBLE"


def card_beside(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """A count, an end, a decision, an error; a better word of the search."""
    turn = int(rng.integers(7))
    row = document["totals"][int(rng.integers(len(document["totals"])))]
    if turn == 0:
        row[str(rng.choice(["samples", "positives"]))] += int(rng.choice([-1, 1]))
    elif turn == 1:
        row[str(rng.choice(["from", "to"]))] += float(rng.choice([1e-9, 1e-6, 1.0]))
    elif turn == 2:
        row["decision"] = document["labels"][str(rng.choice(["negative", "positive"]))]
    elif turn == 3:
        document["error"] = max(0.0, document["error"] - 0.02)
    elif turn == 4:
        document["roc_auc"] = 1.0
    elif turn == 5:
        document |= {"bound": document["objective"], "gap": 0.0, "status": "OPTIMAL"}
    else:
        document["objective"] *= 1 - 10.0 ** rng.uniform(-10, -2)
        document["bound"] = min(document["bound"], document["objective"])
        document["gap"] = gap_of(document["objective"], document["bound"])


def card_version(rng: Rng, found: Base, document: Json, _: Members) -> None:
    """The version deleted or lowered, with what came with it or without."""
    turn = int(rng.integers(4))
    if turn < 2:
        document.pop("version")
    else:
        document["version"] = [1, 3][turn - 2]
    for name in ("bins", "sha256"):
        if turn != 1 and rng.random() < 0.7:
            document.pop(name, None)
    if rng.random() < 0.5:
        document["result"]["bound"] = document["result"]["objective"]
        document["result"]["gap"] = 0.0


OF_ANY: tuple[Move, ...] = (entry, entry, entry, entries, arrays, arrays, swapped_members, higher, other_weights)
OF_READING: tuple[Move, ...] = (rules, left_out, words, recipe, label, another_column)
MOVES: dict[str, tuple[Move, ...]] = {
    "table": (*OF_ANY, *OF_READING, *OF_READING, without_a_column, without_a_column),
    "path": (
        *OF_ANY, *OF_READING, another_place, another_place, another_place, borrowed, borrowed, folds, folds, folds,
        folds, chosen, errors_beside,
    ),
    "classes": (*OF_ANY, *OF_READING, summary, summary, summary, exchanged, exchanged, together, together),
    "card": (*OF_ANY, *OF_READING, points, points, points, card_beside, card_beside, card_beside, card_version),
}  # fmt: skip


def forged(seed: int) -> tuple[Base, Json, Members, bytes, str]:
    """The base, the document, members and archive that a forger makes of it with a seed, and how."""
    rng = np.random.default_rng([seed, 57])
    kind = documents.KINDS[int(rng.integers(len(documents.KINDS)))]
    found = documents.base(kind, int(rng.integers(documents.BASES)))
    document, members = copy.deepcopy(found.document), dict(found.members)
    hows = []
    for _ in range(1 if rng.random() < 0.8 else 2):
        move = MOVES[kind][int(rng.integers(len(MOVES[kind])))]
        with suppress(*BROKEN, raw_tables.Unreadable):
            move(rng, found, document, members)
        hows.append(move.__name__)
    content = documents.packed(members)
    if rng.random() < 0.9:
        with suppress(*BROKEN):
            content = documents.signed(kind, document, members)
    elif found.kind == "card" and rng.random() < 0.5:
        with suppress(*BROKEN):
            documents.sign_card(document)
    return found, json.loads(json.dumps(document)), members, content, "+".join(hows)
