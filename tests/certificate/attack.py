"""Mutated documents and sidecars, thousands of them: whatever the checker accepts must be true, by enumeration.

    python -m tests.certificate.attack 0:20000

A forger changes the JSON and the arrays as he likes: one entry at random, several that fit together, or a whole claim.
"""

from __future__ import annotations

import copy
import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

import mipfs
from mipfs.check.joint import JOINT
from mipfs.check.tree import Report, check
from mipfs.data.instance import Instance
from tests.certificate import honest
from tests.certificate.trees import no_incumbent
from tests.certificate.truth import Truth, lies

Rng = np.random.Generator
Json = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]
BASES = 60
"""Honest results that are mutated."""
ODD: tuple[Any, ...] = (None, True, False, 0, 1, -1, 0.5, 1e-300, 5e-324, -1e300, 1e308, 10**400, "", "x", [], {}, [[]])


@lru_cache(maxsize=BASES)
def base(k: int) -> tuple[str, Arrays, Instance]:
    """The k-th honest result that the reference can enumerate, with its arrays and data."""
    seed = 1000 * k
    while True:
        problem = honest.problem_of(seed)
        small = problem.loss != "structural" or problem.measure in ("error", "f1", "prbep")
        if small and problem.C <= 100:
            _, result = honest.solve(seed, problem)
            if result.claim is not None and mipfs.verify(result, problem.data).accepted:
                document = json.loads(result.to_json()) | {"certificate": result.claim.entry()}
                return json.dumps(document), result.claim.arrays(), problem.data
        seed += 1


# --- the JSON ------------------------------------------------------------------------------------------------


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything in a JSON, the history left out."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [] if not path else [path]
    for key, item in pairs:
        if not path and key in ("trace", "versions", "counters"):
            continue
        found += places(item, (*path, key))
    return found


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def one_entry(rng: Rng, document: Json, _: Instance) -> None:
    """Change one entry: a number by little or much, a name to another one, anything to something odd."""
    paths = places(document)
    path = paths[int(rng.integers(len(paths)))]
    holder, key, old = at(document, path[:-1]), path[-1], at(document, path)
    turn = rng.random()
    if turn < 0.1 and isinstance(holder, dict):
        del holder[key]
    elif turn < 0.25:
        holder[key] = ODD[int(rng.integers(len(ODD)))]
    elif isinstance(old, bool):
        holder[key] = not old
    elif isinstance(old, (int, float)):
        factors = (-1.0, 0.0, 0.5, 2.0, 1 + 1e-6, 1 - 1e-6, 1 + 1e-3, 1 - 1e-3, 1.1, 0.9)
        new = old * factors[int(rng.integers(len(factors)))] + float(rng.choice([0.0, 0.0, 1.0, -1.0, 1e-7]))
        holder[key] = round(new) if isinstance(old, int) and rng.random() < 0.8 else new
    elif isinstance(old, str):
        texts = [at(document, other) for other in paths if isinstance(at(document, other), str)]
        holder[key] = texts[int(rng.integers(len(texts)))]
    elif isinstance(old, list) and old:
        change = int(rng.integers(3))
        if change == 0:
            old.pop(int(rng.integers(len(old))))
        elif change == 1:
            old.append(copy.deepcopy(old[int(rng.integers(len(old)))]))
        else:
            rng.shuffle(old)
    elif isinstance(old, dict) and len(old) > 1:
        names = list(old)
        first, second = names[0], names[1]
        old[first], old[second] = old[second], old[first]
    else:
        holder[key] = ODD[int(rng.integers(len(ODD)))]


def two_entries(rng: Rng, document: Json, data: Instance) -> None:
    one_entry(rng, document, data)
    one_entry(rng, document, data)


def bounds_together(rng: Rng, document: Json, _: Instance) -> None:
    """A higher bound, everywhere where it stands."""
    value = document["bound"]
    if value is None:
        return
    new = value + abs(value) * 10.0 ** rng.uniform(-9, 0.5) if rng.random() < 0.7 else float(rng.choice([1e300, 1e-5]))
    if rng.random() < 0.5 and document["objective"] is not None:
        new = document["objective"]
    document["bound"] = new
    if rng.random() < 0.5:
        document["certificate"]["bound"] = new
    if rng.random() < 0.5:
        document["certificate"]["kind"] = "relaxation"
    if rng.random() < 0.3:
        document["status"] = str(rng.choice(["OPTIMAL", "FEASIBLE", "RELAXED", "NO_SOLUTION"]))


def empty(rng: Rng, document: Json, _: Instance) -> None:
    """Nothing is allowed, it says."""
    document |= no_incumbent(document, "INFEASIBLE") | {"bound": None, "near_optimal": None, "relaxed": None}
    if rng.random() < 0.5:
        document["certificate"]["bound"] = None


def gone(rng: Rng, document: Json, _: Instance) -> None:
    """No selection was found, it says, but a bound."""
    document |= no_incumbent(document, str(rng.choice(["NO_SOLUTION", "RELAXED", "OPTIMAL", "FEASIBLE"])))
    if rng.random() < 0.7:
        document["bound"] = float(rng.choice([1e300, 1e5, 10.0, 1.0]))


def another_support(rng: Rng, document: Json, data: Instance) -> None:
    """A worse selection with its own best weights, everything about it consistent, under the same claims."""
    if document["objective"] is None or document["params"]["loss"] == "structural":
        return
    truth = Truth(document, data)
    allowed = [chosen for chosen in truth.allowed() if len(chosen)]
    if not allowed or truth.rho:
        return
    chosen = sorted(allowed[int(rng.integers(len(allowed)))])
    ids = [j for g in chosen for j in truth.columns[g]]
    lam = np.array([truth.scale[g] for g in chosen for _ in truth.columns[g]])
    from tests.oracles import svm_value

    found = svm_value(truth.X[:, ids] * lam, data.y, truth.c, bool(truth.params["bias"]), truth.params["loss"])
    w = np.zeros(data.n_features)
    np.add.at(w, ids, np.asarray(found.w) * lam)
    names, used = data.feature_names, sorted(set(ids))
    user = {names[j]: float(w[j] / data.scale[j]) for j in used}
    document["selected"] = [truth.names[g] for g in chosen]
    document["weights"] = user
    document["intercept"] = found.b - sum(user[names[j]] * float(data.shift[j]) for j in used)
    document["columns"] = {names[j]: j for j in used}
    for what, values in (("shift", data.shift), ("scale", data.scale)):
        document["scaling"][what] = {names[j]: float(values[j]) for j in used}
    document["objective"] = truth.achieved()
    if rng.random() < 0.5:
        gap = float(rng.choice([0.5, 0.99, 1e-4]))
        document["params"]["gap"] = gap
        document["certificate"]["gap"] = gap if rng.random() < 0.8 else 0.99


def another_problem(rng: Rng, document: Json, data: Instance) -> None:
    """Rows, forced atoms, M, C or the scales of other atoms under the same proof."""
    names = Truth(document, data).names
    turn = int(rng.integers(6))
    if turn == 0:
        terms = {str(name): 1.0 for name in rng.choice(names, 2, replace=False)} if len(names) > 1 else {names[0]: 1.0}
        row = {"name": "new", "terms": terms, "lb": None, "ub": float(rng.integers(-1, 3)), "origin": ""}
        document["rows"] = [*document["rows"], row]
    elif turn == 1 and document["rows"]:
        document["rows"].pop(int(rng.integers(len(document["rows"]))))
    elif turn == 2:
        document["params"][str(rng.choice(["forced_in", "forced_out"]))] = [str(rng.choice(names))]
    elif turn == 3:
        document["params"]["M"] = int(rng.integers(0, len(names) + 1)) if rng.random() < 0.8 else None
    elif turn == 4:
        document["params"]["C"] *= float(rng.choice([0.5, 2.0, 1 + 1e-6]))
    elif document.get("atoms"):
        scale = document["atoms"]["scale"]
        scale[int(rng.integers(len(scale)))] *= float(rng.choice([0.0, 0.5, 2.0]))


def near(rng: Rng, document: Json, data: Instance) -> None:
    """Near-optimal supports with consistent gaps and shares: invented, or the honest ones without an entry."""
    best = document["objective"]
    if best is None:
        return
    truth, given = Truth(document, data), document.get("near_optimal")
    if given and len(given["supports"]) > 1 and rng.random() < 0.6:
        supports = given["supports"]
        supports.pop(int(rng.integers(1, len(supports))))
        gap, size = given["gap"], given["size"]
    else:
        sets = list(truth.allowed())[:6]
        supports = [{"objective": best, "gap": 0.0, "selected": list(document["selected"])}]
        for chosen in sets:
            value = truth.value(chosen)[1] * float(rng.choice([1.0, 0.9, 1.1]))
            above = (value - best) / max(1e-10, abs(best))
            selected = [truth.names[g] for g in sorted(chosen)]
            if rng.random() < 0.5 and selected != document["selected"] and 0 <= above < 5 and np.isfinite(above):
                supports.append({"objective": value, "gap": above, "selected": selected})
        supports.sort(key=lambda entry: float(entry["objective"]))
        gap, size = float(rng.choice([0.01, 0.1, 5.0])), None
    times = Counter(name for entry in supports for name in entry["selected"])
    share = {name: count / len(supports) for name, count in times.items()}
    complete = bool(rng.random() < 0.8)
    document["near_optimal"] = {"complete": complete, "gap": gap, "size": size, "supports": supports, "share": share}


# --- the sidecar ---------------------------------------------------------------------------------------------


def one_number(rng: Rng, arrays: Arrays, _: Json) -> None:
    """Change numbers of one array."""
    name = str(rng.choice(sorted(arrays)))
    array = arrays[name] = arrays[name].copy()
    if array.size == 0 or array.dtype.kind == "S":
        return
    flat = array.reshape(-1)
    for i in rng.integers(0, flat.size, int(rng.integers(1, 4))):
        if array.dtype.kind == "f":
            flat[i] = float(rng.choice([0.0, 5e-324, 1e-310, 1e-200, 1.0, -1.0, 1e200, 1.7e308, np.inf, np.nan]))
        else:
            info = np.iinfo(array.dtype)
            flat[i] = int(rng.choice([0, 1, 2, int(flat[i]) ^ 1, info.max, max(info.min, -2), max(info.min, -1)]))


def shape(rng: Rng, arrays: Arrays, _: Json) -> None:
    """Cut an array, repeat it, change its type, or take it away."""
    name = str(rng.choice(sorted(arrays)))
    turn = int(rng.integers(5))
    if turn == 0:
        del arrays[name]
    elif turn == 1:
        arrays[name] = arrays[name][:-1]
    elif turn == 2:
        arrays[name] = np.concatenate([arrays[name], arrays[name]])
    elif turn == 3:
        arrays[name] = arrays[name].astype(float)
    else:
        arrays[name] = arrays[name].reshape(-1)


def tree(rng: Rng, arrays: Arrays, _: Json) -> None:
    """Other duals at the leaves, leaves refuted, sides swapped, one leaf only."""
    turn = int(rng.integers(4))
    dual, leaves = arrays["dual"].copy(), np.flatnonzero(arrays["feature"] < 0)
    if turn == 0:
        dual[leaves] = rng.permutation(dual[leaves])
    elif turn == 1:
        dual[rng.choice(leaves, min(3, leaves.size), replace=False)] = -2
    elif turn == 2:
        arrays["children"] = arrays["children"][:, ::-1].copy()
    else:
        one = {"feature": [-1], "children": [[-1, -1]], "multiplier": [arrays["multiplier"][leaves[0]]]}
        arrays |= {name: np.array(value, dtype=arrays[name].dtype) for name, value in one.items()}
        dual = dual[leaves[:1]]
    arrays["dual"] = dual


def screened(rng: Rng, arrays: Arrays, document: Json) -> None:
    """Nodes screened by any dual vector, in any place, and half of the leaves taken away; or a higher claim."""
    for _ in range(int(rng.integers(1, 4))):
        feature, size = arrays["feature"], arrays["feature"].size
        node = int(rng.integers(size))
        dual = arrays["dual"][rng.integers(size)]
        moved = {"feature": feature[node], "dual": arrays["dual"][node], "multiplier": arrays["multiplier"][node]}
        put = {"feature": 1 << 30, "dual": dual, "multiplier": arrays["multiplier"][rng.integers(size)]}
        arrays["children"] = np.concatenate([arrays["children"], arrays["children"][node : node + 1]])
        for name, value in moved.items():
            array = np.append(arrays[name], value).astype(arrays[name].dtype)
            array[node] = put[name]
            arrays[name] = array
        arrays["children"][node] = size, -1
    if rng.random() < 0.5:
        cut = np.flatnonzero(arrays["feature"] < 0)
        arrays["dual"] = arrays["dual"].copy()
        arrays["dual"][cut] = rng.choice(arrays["dual"][cut], cut.size)
    known = isinstance(document.get("bound"), float) and isinstance(document.get("certificate"), dict)
    if rng.random() < 0.5 and known:
        lifted = document["bound"] + float(rng.choice([1e-6, 1e-3, 0.1])) * abs(document["bound"])
        document["bound"] = lifted
        document["certificate"] = dict(document["certificate"]) | {"bound": lifted}
        if isinstance(document.get("objective"), float):
            document["gap"] = max(0.0, document["objective"] - lifted) / max(1e-10, abs(document["objective"]))


def ray(rng: Rng, arrays: Arrays, document: Json) -> None:
    """The root refuted by multipliers of any size."""
    r = len(document["rows"])
    size = float(rng.choice([5e-324, 1e-320, 1e-310, 1e-200, 1e-100, 1.0, 1e100, 1.7e308]))
    arrays |= {"feature": np.array([-1]), "children": np.array([[-1, -1]]), "dual": np.array([-2])}
    arrays["multiplier"] = np.array([0])
    arrays["multipliers"] = size * rng.choice([-1.0, 0.0, 1.0, 1.0, 0.3], (1, r))


JSON_MOVES: tuple[Callable[[Rng, Json, Instance], None], ...] = (
    one_entry, one_entry, one_entry, one_entry, two_entries, bounds_together, empty, gone, another_support,
    another_problem, near,
)  # fmt: skip
ARRAY_MOVES: tuple[Callable[[Rng, Arrays, Json], None], ...] = (
    one_number,
    one_number,
    shape,
    tree,
    screened,
    screened,
    ray,
)


def attacked(seed: int) -> tuple[Json, Arrays, str, Json, Instance]:
    """A mutated document and its arrays, by which moves, and what it was made from."""
    rng = np.random.default_rng([seed, 2])
    text, kept, data = base(int(rng.integers(BASES)))
    document, arrays, moves = json.loads(text), dict(kept), []
    if rng.random() < 0.85:
        move = JSON_MOVES[int(rng.integers(len(JSON_MOVES)))]
        move(rng, document, data)
        moves.append(move.__name__)
    if not moves or rng.random() < 0.3 or moves == ["empty"]:
        change = ray if moves == ["empty"] and rng.random() < 0.8 else ARRAY_MOVES[int(rng.integers(len(ARRAY_MOVES)))]
        if isinstance(document.get("rows"), list):
            change(rng, arrays, document)
            moves.append(change.__name__)
    return document, arrays, "+".join(moves), json.loads(text), data


def judge(document: Json, arrays: Arrays, data: Instance) -> Report:
    """What the checker says of a document as a forger writes it."""
    params = document.get("params")
    joint = isinstance(params, dict) and params.get("loss") == "structural"
    return check(document, arrays, data, JOINT) if joint else check(document, arrays, data)


def main(argv: list[str]) -> int:
    """Attack with the seeds FROM:TO; returns how many accepted documents hold a lie."""
    start, stop = (int(part) for part in argv[0].split(":"))
    moves, reasons, wrong = Counter[str](), Counter[str](), 0
    for seed in range(start, stop):
        document, arrays, how, original, data = attacked(seed)
        report = judge(document, arrays, data)
        moves[f"{how.split('+')[0]} {'accepted' if report.accepted else 'rejected'}"] += 1
        if "\n" in report.reason or bool(report.reason) == report.accepted:
            wrong += 1
            print(f"seed {seed} ({how}): the reason is {report.reason!r}")
        if not report.accepted:
            reasons[report.reason[:40]] += 1
            continue
        found = lies(document, original, data)
        if found:
            wrong += 1
            print(f"seed {seed} ({how}): accepted, but {found}")
    print(f"{wrong} wrong of {stop - start}", dict(sorted(moves.items())))
    return wrong


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
