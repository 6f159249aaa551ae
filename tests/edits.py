"""Random chains of edits, each solved from the result before it, against solves from nothing and both checkers.

    python -m tests.edits --count 60 --seed 1
    python -m tests.edits --case 17 --seed 1 # one of them again

A chain begins with a random problem (losses, intercept, signs and boxes, rows, groups) and has five edits, each drawn
so that the last support is no longer allowed or no longer the best, where such an edit exists: a row that cuts it off,
a dearer feature, a tighter M or budget, a sign against it, a row that goes again, another C or lambda. The result
before is handed over in memory or as a file, in turn. The oracle solves the same problem from nothing: status and
objective must agree within the gaps, and both checkers accept the warm result, which names nothing of the old one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.errors import MipfsError
from mipfs.problem import Problem
from mipfs.result.result import Result

EDITS = 5
GAP = 1e-4
SECOND = Path(__file__).resolve().parents[1] / "tools" / "second_checker.py"
Rng = np.random.Generator


@lru_cache(maxsize=1)
def second() -> ModuleType:
    """The second checker, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("second_checker", SECOND)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def written(rng: Rng, folder: Path) -> tuple[Path, Instance]:
    """Random data in a file, and as it is read."""
    n, p = int(rng.integers(20, 60)), int(rng.integers(5, 11))
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.4 * rng.normal(size=(p, p)))
    X = np.round(X, 3)
    score = X[:, :3] @ rng.normal(size=3) + 0.7 * rng.normal(size=n)
    y = np.where(score > np.median(score), 1, 0)
    place = folder / "data.csv"
    lines = [",".join([f"f{j}" for j in range(p)] + ["label"])]
    lines += [",".join([*(f"{v:.3f}" for v in row), str(label)]) for row, label in zip(X, y, strict=True)]
    place.write_text("\n".join(lines) + "\n")
    return place, mipfs.read(place, scale=str(rng.choice(["none", "standard"])))


def problem_of(rng: Rng, data: Instance) -> Problem:
    """A random problem."""
    p = data.n_features
    given: dict[str, Any] = {
        "loss": str(rng.choice(["hinge", "hinge", "squared-hinge", "logistic"])),
        "bias": bool(rng.random() < 0.7),
        "C": float(np.round(10.0 ** rng.uniform(-1.5, 0.7), 4)),
        "M": int(rng.integers(2, max(3, p // 2 + 1))),
    }
    kind = rng.random()
    if kind < 0.2:
        given["weight_bounds"] = {f"f{j}": (0, None) if rng.random() < 0.5 else (None, 0) for j in range(0, p, 2)}
    elif kind < 0.3:
        given["weight_bounds"] = {f"f{j}": (-2, 2) for j in range(p)}
    elif kind < 0.45:
        parts = np.array_split(np.arange(p), (p + 1) // 2)
        given["atoms"] = Groups(data, {f"g{k}": [f"f{j}" for j in ids] for k, ids in enumerate(parts)})
        given["M"] = min(given["M"], len(parts))
    problem = Problem(data, **given)
    return problem if rng.random() < 0.5 else budgeted(rng, problem)


def budgeted(rng: Rng, problem: Problem) -> Problem:
    """With a budget on random prices."""
    prices = rng.integers(1, 6, size=problem.atoms.count).astype(float)
    top = float(np.ceil(0.6 * prices.sum()))
    return problem.with_rows([prices], -np.inf, top, [f"budget{rng.integers(1 << 20)}"])


def edited(rng: Rng, problem: Problem, support: Sequence[str]) -> tuple[str, Problem]:
    """The problem after an edit that makes the last support no longer allowed or no longer the best, where one does."""
    names, rows = list(problem.atoms.names), problem.rows
    assert rows is not None
    held = problem.atoms_of(support)
    on = np.zeros(len(names))
    on[held] = 1.0
    kinds = ["C", "lambda", "M+1"]
    kinds += ["cut", "cut", "cost", "cost", "out"] * bool(held.size)
    kinds += ["M-1"] * bool(problem.M is not None and problem.M > 1 and held.size == problem.M)
    kinds += ["drop", "loose"] * bool(len(rows))
    kinds += ["tight"] * bool(len(rows) and held.size)
    kinds += ["sign"] * bool(held.size and problem.selects_features)
    kind = str(rng.choice(kinds))
    if kind == "cut":
        chosen = rng.permutation(held)[: int(rng.integers(1, held.size + 1))]
        row = np.zeros(len(names))
        row[chosen] = 1.0
        return kind, problem.with_rows([row], -np.inf, chosen.size - 1.0, [f"cut{rng.integers(1 << 20)}"])
    if kind in ("cost", "lambda"):
        lam = dict(zip(names, problem.penalty.tolist(), strict=True))
        for name in [str(rng.choice(list(support)))] if kind == "cost" else names:
            lam[name] += float(np.round(rng.uniform(0.01, 2.0) * problem.C, 4))
        return kind, problem.replace(lam=lam)
    if kind == "out":
        return kind, problem.replace(forced_out=(str(rng.choice(list(support))),), forced_in=())
    if kind in ("M-1", "M+1"):
        assert problem.M is not None
        return kind, problem.replace(M=min(len(names), problem.M + (1 if kind == "M+1" else -1)))
    if kind == "C":
        return kind, problem.replace(C=float(problem.C * rng.choice([0.5, 0.9, 1.1, 2.0])))
    if kind == "sign":
        bounds = dict(problem.weight_bounds or {})
        bounds[str(rng.choice(list(support)))] = (0, 0) if rng.random() < 0.3 else (0, None)
        return kind, problem.replace(weight_bounds=bounds)
    at = int(rng.integers(len(rows)))
    ub = np.array(rows.ub)
    activity = float((rows.matrix @ on)[at])
    if kind == "drop":
        keep = [r for r in range(len(rows)) if r != at]
        made = [rows.matrix[keep].toarray(), rows.lb[keep], rows.ub[keep], [rows.names[r] for r in keep]]
    else:
        ub[at] = activity - 0.5 if kind == "tight" else ub[at] + 1.0
        made = [rows.matrix.toarray(), rows.lb, ub, list(rows.names)]
    bare = problem.replace(rows=type(rows).empty(len(names)))
    return kind, bare if not made[3] else bare.with_rows(*made)


def differs(warm: Result, cold: Result) -> str:
    """What is not the same of two results of a problem; empty where nothing is."""
    if warm.status is not cold.status:
        return f"status {warm.status.name}, from nothing {cold.status.name}"
    if not cold.has_classifier:
        return ""
    room = GAP * max(abs(warm.objective), abs(cold.objective)) + 1e-12
    if abs(warm.objective - cold.objective) > room:
        return f"objective {warm.objective!r}, from nothing {cold.objective!r}"
    if warm.bound > cold.objective + 1e-9 * abs(cold.objective):
        return f"bound {warm.bound!r} above the objective {cold.objective!r}"
    return ""


def checked(result: Result, data: Instance, place: Path, folder: Path) -> tuple[str, Path]:
    """What a checker has against a result, as a file; and that file."""
    path = folder / "warm.json"
    result.save(path)
    report = mipfs.verify(Result.load(path), data)
    if not report.accepted:
        return f"mipfs verify: {report.reason}", path
    word, what = second().verdict_of(lambda: second().judge(str(path), str(place)))
    if word == "rejected":
        return f"second checker: {what}", path
    assert json.loads(path.read_text())["warm_from"] is not None
    return "", path


def chain(case: int, seed: int, counts: Counter[str]) -> list[str]:
    """The faults of one chain."""
    rng, faults = np.random.default_rng([seed, case]), list[str]()
    driver = "gbd" if rng.random() < 0.25 else "branch"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place, data = written(rng, folder)
        problem = problem_of(rng, data)
        last: Result = mipfs.solve(problem, driver, threads=1) if driver == "branch" else mipfs.solve(problem, driver)
        for step in range(EDITS):
            kind, changed = edited(rng, problem, last.selected)
            options: dict[str, Any] = {"threads": 1} if driver == "branch" else {}
            cold = mipfs.solve(changed, driver, **options)
            from_file = step % 2 == 1 and (folder / "warm.json").exists()
            before: Any = folder / "warm.json" if from_file else last
            warm = mipfs.solve(changed, driver, warm=before, **options)
            counts[f"{kind}"] += 1
            counts["moved"] += set(cold.selected) != set(last.selected)
            counts["planted"] += (warm.warm_from or {}).get("leaves") is not None
            fault = differs(warm, cold)
            against, _ = checked(warm, data, place, folder)
            for said in (fault, against):
                if said:
                    faults.append(f"case {case}, edit {step} ({kind}, {driver}, {changed!r}): {said}")
            if not warm.has_classifier:
                (folder / "warm.json").unlink()
                break
            problem, last = changed, warm
            counts["edits"] += 1
    return faults


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first case, where a campaign goes on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int)
    asked = parser.parse_args(argv)
    counts, faults, began = Counter[str](), list[str](), time.perf_counter()
    for case in range(asked.first, asked.first + asked.count) if asked.case is None else [asked.case]:
        try:
            found = chain(case, asked.seed, counts)
        except MipfsError as error:
            found = [f"case {case}: {error}"]
        for fault in found:
            print(fault, flush=True)
        faults += found
        if (case + 1) % 10 == 0:
            print(f"chains {asked.first} to {case}: {len(faults)} faults, {counts['edits']} edits", flush=True)
    print(f"{len(faults)} faults; {dict(counts)}; {time.perf_counter() - began:.0f} s")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
