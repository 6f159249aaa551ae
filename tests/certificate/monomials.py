"""Mutated results over products of features: whatever the checker accepts must be true, by enumeration of all of them.

    python -m tests.certificate.monomials 0:5000

A document over the products that its proof holds is turned into one over all products, as features of dense data that
are multiplied here, and judged by `tests.certificate.truth`.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

import mipfs
from mipfs.atoms.pairs import Pairs
from mipfs.check.tree import check
from mipfs.data.instance import Instance
from mipfs.problem import Problem
from mipfs.result.result import Result
from mipfs.settings import BranchSettings, GrowthSettings
from tests.certificate import attack
from tests.certificate.truth import lies

Json = dict[str, Any]
BASES = 36


def problem_of(seed: int) -> Problem:
    """A few samples, two to four features, some of them equal, constant or zero; every kernel, loss and storage."""
    r = np.random.default_rng([11, seed])
    degree = 2 + (seed % 6 == 5)
    n, p = int(r.integers(8, 25)), 2 if degree == 3 else int(r.integers(2, 5))
    X = r.normal(size=(n, p)) * r.uniform(0.3, 2.0, p)
    X[:, 0] = X[:, -1] if seed % 7 == 3 else 1.0 if seed % 7 == 4 else X[:, 0]
    y = np.where(X[:, 0] * X[:, -1] + 0.5 * r.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    stored = sparse.csc_array(X * (r.random(X.shape) < 0.7)) if seed % 3 == 1 else X
    scale = ("none", "unit")[seed % 2] if seed % 3 == 1 else ("none", "standard", "unit")[seed % 3]
    data = Instance.from_arrays(stored, y, scale=scale)
    heredity = (None, "weak", "strong")[seed % 3] if seed % 4 else None
    constant = float(r.choice([0.0, 0.7])) if heredity is None else 0.7
    loss = ("hinge", "squared-hinge", "logistic")[int(r.integers(3))]
    atoms = Pairs(data, float(r.choice([1.0, 0.4])), constant, degree=degree, heredity=heredity)
    return Problem(
        data, atoms=atoms, loss=loss, bias=bool(r.integers(2)), M=int(r.integers(1, 3)), C=float(10 ** r.uniform(-2, 1))
    )


def solve(seed: int, problem: Problem, **options: Any) -> Result:
    """By either driver, begun with few products."""
    atoms: Any = problem.atoms
    driver = "kelley" if seed % 4 == 0 and not atoms.heredity else "branch"
    few = BranchSettings(growth=GrowthSettings(least=1, entering=2)) if driver == "branch" else None
    return mipfs.solve(problem, driver, gap=1e-6 if driver == "branch" else 1e-4, settings=few, **options)


def everything(made: Json, data: Instance) -> tuple[list[str], list[list[int]], Any]:
    """Names, features and columns of all products of a kernel, multiplied here."""
    p, d = data.n_features, int(made["degree"])
    X = data.X.toarray() if data.is_sparse else np.asarray(data.X)
    names, parts, columns = [], [], []
    for e in range(d + 1) if made["r"] > 0 else (d,):
        for members in itertools.combinations_with_replacement(range(p), e):
            counts = Counter(members)
            ways = math.factorial(d) / math.prod(map(math.factorial, [*counts.values(), d - e]))
            factor = math.sqrt(ways * made["gamma"] ** e * made["r"] ** (d - e))
            signs = {1: "", 2: "²", 3: "³"}
            names.append(" × ".join(data.feature_names[j] + signs[m] for j, m in counts.items()) or "1")
            parts.append([*members])
            columns.append(factor * np.prod(X[:, members], axis=1) if members else np.full(X.shape[0], factor))
    return names, parts, np.array(columns).T


def explicit(document: Json, data: Instance) -> tuple[Json, Instance]:
    """The same result over all products as features."""
    made = document["atoms"]["made"]
    names, parts, columns = everything(made, data)
    whole = Instance.from_arrays(columns, data.y, feature_names=names, labels=data.labels)
    singles, rows = [part for part in parts if len(part) == 1], []
    for name, part in zip(names, parts, strict=True):
        if made["heredity"] and len(part) > 1 and singles:
            own = [data.feature_names[j] for j in dict.fromkeys(part)]
            for group in [own] if made["heredity"] == "weak" else [[one] for one in own]:
                terms = {name: 1.0, **dict.fromkeys(group, -1.0)}
                rows.append({"name": "heredity", "terms": terms, "lb": None, "ub": 0.0, "origin": ""})
    chosen = document["selected"]
    scaling = {"kind": "none", "shift": dict.fromkeys(chosen, 0.0), "scale": dict.fromkeys(chosen, 1.0)}
    about = {"columns": {name: names.index(name) for name in chosen}, "n_features": len(names), "scaling": scaling}
    return {**document, **about, "atoms": None, "rows": rows}, whole


@lru_cache(maxsize=BASES)
def base(k: int) -> tuple[str, attack.Arrays, Instance]:
    """The k-th honest result, with its arrays and the user's data."""
    problem = problem_of(k)
    result = solve(k, problem)
    atoms: Any = problem.atoms
    report = mipfs.verify(result, atoms.base)
    assert report.accepted, (k, report.reason)
    assert result.claim is not None
    document = json.loads(result.to_json()) | {"certificate": result.claim.entry()}
    return json.dumps(document), result.claim.proof.arrays(), atoms.base


def kernel(rng: attack.Rng, document: Json, data: Instance) -> None:
    """Another kernel, heredity or number M under the same proof, with the number of products that goes with it."""
    made = document["atoms"]["made"]
    turn = int(rng.integers(5))
    if turn == 0:
        made["gamma"] *= float(rng.choice([0.5, 2.0, 1 + 1e-7]))
    elif turn == 1:
        made["r"] = float(rng.choice([0.0, 0.5, 0.7, 3.0]))
    elif turn == 2:
        made["heredity"] = [None, "weak", "strong"][int(rng.integers(3))]
        document["rows"] = document["rows"] if rng.random() < 0.5 else []
    elif turn == 3:
        made["degree"] = 5 - made["degree"]
    else:
        document["params"]["M"] = int(rng.integers(0, 6))
    letters = data.n_features + (made["r"] > 0)
    made["count"] = math.comb(letters + made["degree"] - 1, made["degree"])


def fewer(rng: attack.Rng, document: Json, _: Instance) -> None:
    """Some products less, or one more, or two exchanged, under the same proof."""
    atoms = document["atoms"]
    names, parts = atoms["names"], atoms["made"]["parts"]
    k, turn = int(rng.integers(len(names))), int(rng.integers(3))
    if turn == 0:
        del names[k], parts[k]
    elif turn == 1:
        names.append(names[k] + "²")
        parts.append(parts[k] * 2)
    else:
        names[0], names[k], parts[0], parts[k] = names[k], names[0], parts[k], parts[0]


def outside(rng: attack.Rng, arrays: attack.Arrays, _: Json) -> None:
    """Another dual vector, or none, for the products that are not held."""
    if rng.random() < 0.2:
        arrays.pop("outside", None)
    else:
        arrays["outside"] = np.array([int(rng.integers(-1, len(arrays["dual_q"]) + 1))])


JSON_MOVES = (attack.one_entry, attack.one_entry, attack.two_entries, attack.bounds_together, attack.empty, attack.gone,
              kernel, kernel, fewer, fewer)  # fmt: skip
ARRAY_MOVES = (*attack.ARRAY_MOVES, outside, outside)


def judged(seed: int) -> tuple[bool, list[str], str]:
    """Whether a mutated document is accepted, the lies that stand in it then, and by which moves it was made."""
    rng = np.random.default_rng([seed, 3])
    text, kept, data = base(int(rng.integers(BASES)))
    document, arrays, moves = json.loads(text), dict(kept), []
    if rng.random() < 0.85:
        move = JSON_MOVES[int(rng.integers(len(JSON_MOVES)))]
        with suppress(OverflowError):  # a number that was made too large is changed once more
            move(rng, document, data)
        moves.append(move.__name__)
    if not moves or rng.random() < 0.3:
        change = ARRAY_MOVES[int(rng.integers(len(ARRAY_MOVES)))]
        if isinstance(document.get("rows"), list):
            change(rng, arrays, document)
            moves.append(change.__name__)
    if not check(document, arrays, data).accepted:
        return False, [], "+".join(moves)
    honest = json.loads(text)
    return True, lies(*_pair(document, honest, data)), "+".join(moves)


def _pair(document: Json, honest: Json, data: Instance) -> tuple[Json, Json, Instance]:
    shown, whole = explicit(document, data)
    return shown, explicit(honest, data)[0], whole


def main(argv: list[str]) -> int:
    first, last = map(int, argv[0].split(":"))
    accepted: Counter[str] = Counter()
    for seed in range(first, last):
        is_accepted, found, moves = judged(seed)
        accepted[moves] += is_accepted
        if found:
            print(f"seed {seed} ({moves}): {found}")
            return 1
    print(f"{last - first} documents, {sum(accepted.values())} accepted, all of them true: {dict(accepted)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
