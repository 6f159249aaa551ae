"""Both checkers on the same documents: the package's (`mipfs.check`) and `tools/second_checker.py`.

    python -m tests.two_checkers --count 2000 --mutated 20000 --seed 1     # both parts, with the table
    python -m tests.two_checkers --case 17 --honest                        # one of them again
    python -m tests.two_checkers --count 0 --documents 160 --forged 5000   # tables, paths, classes and cards, as files

Honest results of every kind, and mutated ones: fields of the JSON and entries of the sidecar changed at random and by
what a forger would do (`tests.certificate.attack`, and the moves here). A difference is one checker that accepts where
the other rejects: every one is printed, with what repeats it. What the second one declines is counted apart.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import io
import json
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from mipfs.data.instance import Instance
from mipfs.selection.derived import ChvatalGomory
from tests.certificate import attack, attack_documents, honest

Rng = np.random.Generator
BASES = 240
"""Honest results that are mutated, each many times."""
SECOND = Path(__file__).resolve().parents[1] / "tools" / "second_checker.py"


@lru_cache(maxsize=1)
def second() -> ModuleType:
    """The second checker, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("second_checker", SECOND)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


# --- the data as the second checker has it -------------------------------------------------------------------

_RAW: dict[int, tuple[Instance, Any]] = {}


@contextmanager
def remembered() -> Iterator[None]:
    """Keep the values that every instance was made of: an instance itself has the scaled ones only."""
    known = Instance.__dict__["from_arrays"]

    def from_arrays(cls: type[Instance], X: Any, y: Any, *args: Any, **options: Any) -> Instance:
        made = known.__get__(None, cls)(X, y, *args, **options)
        _RAW[id(made)] = (made, X.toarray() if hasattr(X, "toarray") else np.array(X, dtype=float))
        return made

    Instance.from_arrays = classmethod(from_arrays)  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Instance.from_arrays = known  # type: ignore[method-assign]


def data_of(data: Instance) -> Any | None:
    """An instance as data of the second checker; None where its raw values are not known."""
    if id(data) not in _RAW:
        return None
    X = _RAW[id(data)][1]
    rows = [
        (dict(row.terms), *(float(end) if np.isfinite(end) else None for end in (row.lb, row.ub))) for row in data.rows
    ]
    forced = {"forced_in": list(data.select.forced_in), "forced_out": list(data.select.forced_out)}
    names = list(data.feature_names)
    return second().Data(
        names, [X[:, j].tolist() for j in range(X.shape[1])], data.y.tolist(), data.sample_weight.tolist(),
        named=names != [f"x{j + 1}" for j in range(len(names))],
        bags=None if data.bags is None else data.bags.tolist(),
        asked={"rows": rows, **forced, "penalty": dict(data.penalty)},
        labels={"negative": data.labels.negative, "positive": data.labels.positive}, label=data.label,
    )  # fmt: skip


def arrays_of(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as the second checker reads them from a file."""
    found = {}
    for name, array in arrays.items():
        stream = io.BytesIO()
        np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
        found[name] = second().read_npy(stream.getvalue(), name)
    return found


def verdicts(document: Any, arrays: Mapping[str, Any], data: Instance, known: Any) -> tuple[str, str, str]:
    """What the two say, "accepted", "rejected" or "declined", and why."""
    report = attack.judge(document, dict(arrays), data)
    try:
        theirs, why = second().guarded(document, arrays_of(arrays), known)
    except second().Rejected as error:
        theirs, why = "rejected", str(error)
    if not report.accepted and theirs == "accepted" and rounded(document, arrays, data):
        return "rejected by rounding", "accepted", ""
    if theirs == "accepted" and report.reason == attack_documents.STORED_OTHERWISE:
        return "rejected by storage, not rounding", "accepted", ""
    return "accepted" if report.accepted else "rejected", theirs, f"first: {report.reason!r}; second: {why!r}"


# --- honest results ------------------------------------------------------------------------------------------


def bounded(seed: int) -> tuple[Instance, Any]:
    """With bounds on the weights, of every shape."""
    rng, problem = np.random.default_rng([seed, 8]), honest.problem_of(seed)
    while (
        problem.loss == "structural"
        or problem.atoms.kind not in ("features", "groups")
        or np.any(problem.atoms.scale != 1.0)
    ):
        seed += 100_003
        problem = honest.problem_of(seed)
    shared = problem.atoms.shared if problem.atoms.kind == "groups" else ()
    ends = {}
    for name in problem.data.feature_names:
        low, high = -abs(rng.normal()), abs(rng.normal())
        ends[name] = [(None, 0.0), (0.0, None), (low, high), (low, None), (0.0, 0.0), (None, None)][rng.integers(6)]
    signs = {name: tuple(end if end == 0 else None for end in pair) for name, pair in ends.items()}
    ends = signs if problem.margin == "rho" else ends | {name: signs[name] for name in shared}
    problem = problem.replace(weight_bounds=ends)
    return problem.data, honest.solve(seed, problem)[1]


def pairs(selection: Any) -> Iterator[ChvatalGomory]:
    """Half the sum of two rows at their upper ends, and half a row."""
    rows = selection.rows
    above = [r for r in range(len(rows.names)) if np.isfinite(rows.ub[r]) and not rows.extra.integer.size]
    for r, s in combinations(above[:3], 2):
        yield ChvatalGomory({r: Fraction(1, 2), s: Fraction(1, 3)})
    for r in above[:2]:
        yield ChvatalGomory(
            {r: Fraction(2, 5)}, Fraction(1, 7) if selection.M is not None else Fraction(0), {0: Fraction(1, 3)}
        )


def strengthened(seed: int) -> tuple[Instance, Any]:
    """With rows that are derived."""
    problem = honest.problem_of(seed)
    while (
        problem.rows is None or not len(problem.rows.names) or len(problem.rows.extra) or problem.loss == "structural"
    ):
        seed += 100_003
        problem = honest.problem_of(seed)
    return problem.data, honest.solve(seed, problem.strengthened(pairs))[1]


KINDS: Mapping[str, tuple[int, Callable[[int], tuple[Instance, Any]]]] = {
    "ordinary": (6, honest.ordinary),
    "stopped": (3, honest.stopped),
    "other statement": (3, honest.other_statement),
    "extreme": (6, honest.extreme),
    "bounds on weights": (3, bounded),
    "derived rows": (2, strengthened),
    "products": (1, honest.products),
    "functions": (1, honest.functions),
}


def any_result(seed: int) -> tuple[str, Instance, Any]:
    """Kind, data and result of a seed."""
    order = [kind for kind, (times, _) in KINDS.items() for _ in range(times)]
    kind = order[seed % len(order)]
    with remembered(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data, result = KINDS[kind][1](seed)
    return kind, data, result


def written(result: Any) -> tuple[str, dict[str, Any]] | None:
    """The JSON text with its entry "certificate", and the arrays; None where there is nothing to verify."""
    if result.claim is None:
        return None
    document = json.loads(result.to_json()) | dict(result.stated) | {"certificate": result.claim.entry()}
    return json.dumps(document), result.claim.arrays()


def judged(seed: int, counts: Counter[str]) -> bool:
    """An honest result before both; whether they differ, or one refuses it."""
    kind, data, result = any_result(seed)
    found, known = written(result), data_of(data)
    if found is None or known is None:
        counts[f"{kind}: nothing to verify"] += 1
        return False
    first, other, why = verdicts(json.loads(found[0]), found[1], data, known)
    return entered(f"honest {seed}", kind, (first, other, why), counts, honest=True)


def rounded(document: Any, arrays: Mapping[str, Any], data: Instance) -> bool:
    """Whether the first checker accepts a bound that is a billionth less: then only rounding stood in its way."""
    sizes = [abs(v) for v in arrays["multipliers"].ravel().tolist() if v and not isinstance(v, bytes)]
    if sizes and not 1e-290 < min(sizes) <= max(sizes) < 1e290:
        return True  # products with these are lost in floating point, or infinite
    less, claimed = copy.deepcopy(document), document["certificate"]["bound"]
    if claimed is None:
        return False
    less["certificate"]["bound"] = less["bound"] = claimed - 1e-9 * abs(claimed)
    less["gap"] = None
    return attack.judge(less, dict(arrays), data).accepted


def entered(case: str, kind: str, found: tuple[str, str, str], counts: Counter[str], honest: bool = False) -> bool:
    """Count a pair of verdicts; whether they differ."""
    first, other, why = found
    if other == "declined":
        word = f"declined ({first} by the first)"
    else:
        word = f"both {first}" if first == other else f"DIFFER: first {first}, second {other}"
    if first == "rejected" and other == "accepted" and "is called open within" in why:
        word = "what is decided is called open, which the first one alone refuses"  # docs/certificate.md
    counts[f"{kind}: {word}"] += 1
    wrong = (word.startswith("DIFFER") and "rounding" not in word) or (honest and "rejected" in (first, other))
    if wrong:
        print(f"{case} ({kind}): {word}; {why}", flush=True)
    return wrong


# --- mutated ones --------------------------------------------------------------------------------------------


@lru_cache(maxsize=BASES)
def base(k: int) -> tuple[str, dict[str, Any], Instance, Any]:
    """The k-th honest result that both accept."""
    seed = 7919 * k + 11
    while True:
        _, data, result = any_result(seed)
        found, known = written(result), data_of(data)
        if found is not None and known is not None:
            first, other, _ = verdicts(json.loads(found[0]), found[1], data, known)
            if first == other == "accepted":
                return *found, data, known
        seed += 1


def scaling(rng: Rng, arrays: Any, document: Any) -> None:
    """Another shift or scale of a column, in the sidecar, and at times in the JSON too."""
    names = [name for name in ("column_shift", "column_scale", "column_center") if name in arrays]
    if not names:
        return
    name = str(rng.choice(names))
    values = [float.fromhex(text.decode()) for text in arrays[name].tolist()]
    j = int(rng.integers(len(values)))
    if rng.random() < 0.2:  # as if the column were constant
        arrays["column_shift"] = np.array([*arrays["column_shift"][:j], b"0x0.0p+0", *arrays["column_shift"][j + 1 :]])
        name, values = "column_scale", [float.fromhex(text.decode()) for text in arrays["column_scale"].tolist()]
        values[j] = 1.0
    else:
        values[j] *= float(rng.choice([2.0, 0.5, 1 + 1e-12, 1 + 1e-6, 0.0, -1.0, 1e3]))
    arrays[name] = np.array([float(v).hex().encode() for v in values])


def taken(rng: Rng, arrays: Any, document: Any) -> None:
    """The tree of this proof with the dual vectors in another order, or one in place of all."""
    size = arrays["dual_q"].size
    if size < 2:
        return
    order = rng.permutation(size) if rng.random() < 0.5 else np.full(size, rng.integers(size))
    arrays["dual"] = np.where(arrays["dual"] >= 0, order[np.maximum(arrays["dual"], 0)], arrays["dual"]).astype(
        np.int32
    )


def nearly(rng: Rng, document: Any, data: Instance) -> None:
    """A bound that is a very little higher than what is proven, where it counts."""
    claimed = document["certificate"]["bound"]
    if claimed is not None:
        value = claimed + abs(claimed) * 10.0 ** rng.uniform(-13, -3)
        document["certificate"]["bound"] = value
        document["bound"] = value
        if document["objective"] and rng.random() < 0.7:
            document["gap"] = max(0.0, (document["objective"] - value) / abs(document["objective"]))


def loosened(rng: Rng, document: Any, data: Instance) -> None:
    """A statement that is a little another one: C, M, the loss, the bias, bounds on weights, ends of rows."""
    params, turn = document["params"], int(rng.integers(6))
    if turn == 0:
        params["C"] *= float(rng.choice([1 + 1e-15, 1 - 1e-15, 1 + 1e-8, 0.999, 1.001]))
    elif turn == 1:
        params["loss"] = str(rng.choice(["hinge", "squared-hinge", "logistic"]))
    elif turn == 2:
        params["bias"] = not params["bias"]
    elif turn == 3:
        names = [str(name) for name in rng.choice(data.feature_names, 1)]
        choices = (None, 0.0), (0.0, None), (-1e-3, 1e-3), (-1e9, 1e9), (None, None), (1e-3, None), (None, -0.2)
        ends = choices[rng.integers(len(choices))]
        params["weight_bounds"] = {**(params.get("weight_bounds") or {}), **{name: list(ends) for name in names}}
    elif turn == 4 and document["rows"]:
        row = document["rows"][int(rng.integers(len(document["rows"])))]
        end = str(rng.choice(["lb", "ub"]))
        row[end] = (
            float(rng.choice([-1.0, 0.0, 1.0, 2.0]))
            if row[end] is None
            else row[end] * (1 + 10.0 ** rng.uniform(-14, 0))
        )
    else:
        params["margin"] = "rho" if params.get("margin", "unit") == "unit" else "unit"


def edge(rng: Rng, document: Any, arrays: Mapping[str, Any], known: Any) -> None:
    """The largest bound that the leaves prove, exactly, and a hair more: what rounding would have to let through."""
    sharp, claimed, objective = second(), document["certificate"]["bound"], document["objective"]
    if claimed is None or objective is None or claimed >= objective:
        return
    with suppress(sharp.Declined, sharp.Rejected):
        read = arrays_of(arrays)
        stated = sharp.Statement(document, read, known)
        tree = sharp.Tree(document, read, stated)
        low, high = claimed, objective
        for _ in range(60):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            try:
                sharp.prove(stated, tree, document["status"], Fraction(middle))
                low = middle
            except sharp.Rejected:
                high = middle
        value = high + abs(high) * float(rng.choice([0.0, 1e-16, 1e-15, 1e-14, 1e-12, 1e-10]))
        document["certificate"]["bound"] = document["bound"] = value
        document["gap"] = None


JSON_MOVES = (*attack.JSON_MOVES, attack.one_entry, attack.two_entries, nearly, nearly, loosened, loosened, edge)
ARRAY_MOVES = (*attack.ARRAY_MOVES, attack.one_number, attack.tree, scaling, taken)


def mutated(seed: int, counts: Counter[str], bases: int = BASES, only: str = "") -> bool:
    """A mutated document before both; whether they differ."""
    rng = np.random.default_rng([seed, 9])
    text, kept, data, known = base(int(rng.integers(bases)))
    document, arrays = json.loads(text), dict(kept)
    how = ""
    if rng.random() < 0.75 or only:
        move = JSON_MOVES[int(rng.integers(len(JSON_MOVES)))]
        move = next((one for one in JSON_MOVES if one.__name__ == only), move)
        with suppress(KeyError, TypeError, AttributeError, ValueError, IndexError, AssertionError):
            if move is edge:
                edge(rng, document, arrays, known)
            else:
                move(rng, document, data)  # some are about other kinds of documents
        how = move.__name__
    if not how or (rng.random() < 0.25 and not only):
        change = ARRAY_MOVES[int(rng.integers(len(ARRAY_MOVES)))]
        if isinstance(document.get("rows"), list):
            with suppress(ValueError):  # texts are no numbers
                change(rng, arrays, document)
            how = f"{how} " if how else ""
            how += change.__name__
    return entered(f"mutated {seed}", how.split()[0], verdicts(document, arrays, data, known), counts)


def table(counts: Counter[str]) -> str:
    """What was met, one line a kind."""
    kinds = sorted({line.split(": ")[0] for line in counts})
    words = sorted({line.split(": ", 1)[1] for line in counts})
    lines = [f"{'':22}" + "".join(f"{word[:38]:>40}" for word in words)]
    for kind in [*kinds, "all"]:
        found = [
            sum(
                n
                for line, n in counts.items()
                if line == f"{kind}: {word}" or (kind == "all" and line.endswith(f": {word}"))
            )
            for word in words
        ]
        lines.append(f"{kind:22}" + "".join(f"{n:>40}" for n in found))
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run both parts; returns 1 where the checkers differ, or an honest result was refused."""
    parser = argparse.ArgumentParser(prog="python -m tests.two_checkers", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="honest results (200)")
    parser.add_argument("--mutated", type=int, help="mutated ones (ten times as many)")
    parser.add_argument("--bases", type=int, default=BASES, help=f"honest results that are mutated ({BASES})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="of each part at most, less what is begun")
    parser.add_argument("--move", default="", help="mutated by this move alone, such as edge or nearly")
    parser.add_argument("--documents", type=int, default=0, help="honest whole documents, beside the others (0)")
    parser.add_argument("--forged", type=int, default=0, help="forged whole documents (0)")
    parser.add_argument("--case", type=int, help="one mutated document only")
    parser.add_argument("--honest", action="store_true", help="of --case: one honest result")
    given = parser.parse_args(argv)
    parts: Mapping[str, Callable[[int, Counter[str]], int]] = {
        "honest": judged,
        "mutated": lambda seed, counts: mutated(seed, counts, given.bases, given.move),
        "honest whole": lambda seed, counts: attack_documents.honest(seed - given.seed, counts),
        "forged whole": lambda seed, counts: attack_documents.attacked(seed, counts, both=True),
    }
    sizes = {"honest": given.count, "mutated": 10 * given.count if given.mutated is None else given.mutated}
    sizes |= {"honest whole": given.documents, "forged whole": given.forged}
    wrong, together = 0, Counter[str]()
    for part, judge in parts.items():
        counts = Counter[str]()
        seeds = range(given.seed, given.seed + sizes[part])
        if given.case is not None:
            asked = ("honest" in part) == given.honest and ("whole" in part) == (given.documents + given.forged > 0)
            seeds = range(given.case, given.case + asked)
        until = time.monotonic() + given.seconds
        for seed in seeds:
            wrong += judge(seed, counts)
            if time.monotonic() > until:
                break
        if counts:
            print(f"\n{part} results\n{table(counts)}", flush=True)
            of_all = sum(n for line, n in counts.items() if "both" in line or "declined" in line)
            declined = sum(n for line, n in counts.items() if "declined" in line)
            together |= {f"{part} all": of_all, f"{part} declined": declined}
            print(f"declined by the second: {declined} of {of_all}, {declined / max(1, of_all):.1%}")
    if given.count and given.documents:
        of_all = together["honest all"] + together["honest whole all"]
        declined = together["honest declined"] + together["honest whole declined"]
        print(f"honest of both parts together: declined {declined} of {of_all}, {declined / max(1, of_all):.1%}")
    print(f"{wrong} to be settled")
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
