"""Honest results of every kind on tiny problems: losses, rows, extra variables, atoms, weights, penalties, drivers.

`any_result` makes the other kinds too (`KINDS`): stopped by a limit and taken up again, of a problem that states other
rows than its data asks for, draws of the campaign, products and functions of features.

As a script it solves many and asks the checker to accept each:  python -m tests.certificate.honest 0:2000
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import mipfs
from mipfs.atoms.additive import Additive
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance, Row, SelectDefaults
from mipfs.problem import Problem
from mipfs.result.result import Result
from mipfs.selection.selection import Rows
from tests import additive_cases, draws

Rng = np.random.Generator
LOSSES = ("hinge", "squared-hinge", "logistic", "structural")
ATOMS = ("features", "features", "norm", "groups", "overlapping", "tree")
MEASURES = ("error", "f1", "prbep", "roc-auc", "average-precision")


def data_of(rng: Rng, structural: bool) -> Instance:
    """Six to fourteen samples of three to five features: dense or sparse, scaled or not, with rows of their own."""
    n, p = int(rng.integers(6, 9) if structural else rng.integers(8, 15)), int(rng.integers(3, 6))
    X: Any = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-1, 2, p) + rng.choice([0.0, 0.0, 20.0])
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=n) > np.median(X[:, 0] - X[:, 1]), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    if rng.random() < 0.3:
        X = sparse.csc_array(np.where(rng.random((n, p)) < 0.5, X, 0.0))
    names = tuple(f"f{j + 1}" for j in range(p))
    more: dict[str, Any] = {}
    if rng.random() < 0.3 and not structural:
        more["sample_weight"] = rng.uniform(0.3, 3.0, n)
    if rng.random() < 0.3:
        more["penalty"] = {names[1]: round(float(rng.uniform(0.0, 0.5)), 2)}
    if rng.random() < 0.2:
        more["rows"] = (Row("own", {names[0]: 1.0, names[2]: 1.0}, -np.inf, 1.0, "data.toml"),)
        more["select"] = SelectDefaults(None, (names[1],) if rng.random() < 0.5 else (), ())
    labels = mipfs.data.instance.Labels("no", "yes") if rng.random() < 0.5 else None
    scale = str(rng.choice(["none", "standard", "unit"]))
    return Instance.from_arrays(X, y, feature_names=names, scale=scale, labels=labels, **more)  # type: ignore[arg-type]


def atoms_of(rng: Rng, kind: str, data: Instance) -> Any:
    """What is selected."""
    p, names = data.n_features, data.feature_names
    scaling = "norm" if rng.random() < 0.4 else "none"
    if kind == "features":
        return Features(data)
    if kind == "norm":
        return Features(data, "norm")
    if kind == "groups":
        return Groups(data, {"g1": names[:2], "g2": names[2:3], "g3": names[3:] or names[:1]}, scaling)
    if kind == "overlapping":
        return Groups(data, {f"g{j}": (names[j], names[(j + 1) % p]) for j in range(p)}, scaling)
    return Tree(data, {names[0]: "left", names[1]: "left", "left": "top", names[2]: "top"}, scaling=scaling)


def problem_of(seed: int) -> Problem:
    """A tiny problem of any kind."""
    rng = np.random.default_rng(seed)
    loss, kind = str(rng.choice(LOSSES, p=[0.4, 0.25, 0.2, 0.15])), str(rng.choice(ATOMS))
    data = data_of(rng, loss == "structural")
    bare = kind in ("groups", "overlapping", "tree")
    if bare:
        data = Instance.from_arrays(
            data.X * data.scale if not data.is_sparse else data.X, data.y, feature_names=data.feature_names,
            sample_weight=data.sample_weight, labels=data.labels,
        )  # fmt: skip
    atoms = atoms_of(rng, kind, data)
    p = atoms.count
    more: dict[str, Any] = {"bias": False, "measure": str(rng.choice(MEASURES))} if loss == "structural" else {}
    if loss != "structural":
        more["bias"] = bool(rng.random() < 0.6)
    rho = loss == "squared-hinge" and not data.penalty and rng.random() < 0.4
    lam = 0.0 if rho or rng.random() < 0.6 else round(float(rng.uniform(0.0, 0.3)), 2)
    problem = Problem(
        data, loss=loss, atoms=atoms, C=10.0 ** float(rng.integers(-2, 4)), lam=lam,
        margin="rho" if rho else "unit", M=int(rng.integers(0, p + 1)) if rng.random() < 0.8 else None, **more,
    )  # fmt: skip
    if rng.random() < 0.5:
        assert problem.rows is not None
        problem = problem.replace(rows=problem.rows.stack(draws.rows_of(rng, p)))
    return problem


def drivers_of(problem: Problem) -> list[str]:
    """The drivers that carry a problem."""
    if problem.loss == "structural":
        return ["branch", "gbd", "two_layer"]
    return ["branch", "gbd", "kelley", "conic"]


def solve(seed: int, problem: Problem | None = None) -> tuple[Problem, Result]:
    """An honest result: any driver, any gap, near-optimal supports at times."""
    rng, made = np.random.default_rng([seed, 1]), problem_of(seed) if problem is None else problem
    weights = {"branch": 4.0, "gbd": 3.0, "kelley": 3.0, "conic": 0.6, "two_layer": 2.0}
    names = drivers_of(made)
    chances = np.array([weights[name] for name in names])
    driver = str(rng.choice(names, p=chances / chances.sum()))
    options: dict[str, Any] = {"gap": float(rng.choice([1e-6, 1e-4, 1e-2, 0.3]))}
    if driver in ("branch", "gbd"):
        if rng.random() < 0.3:
            options |= {"pool_gap": 0.05} if rng.random() < 0.5 else {"pool_size": 3}
        if rng.random() < 0.1:
            options["iteration_limit"] = int(rng.integers(0, 4))
    if driver == "branch":
        options["threads"] = 1
    return made, mipfs.solve(made, driver, **options)


def _stopped(rng: Rng, problem: Problem, driver: str) -> Result:
    """A run that a limit stops at any point, at times taken up again once or twice."""
    limits: tuple[dict[str, Any], ...] = (
        {"iteration_limit": int(rng.integers(0, 8))},
        {"time_limit": float(rng.choice([0.0, 1e-3, 1e-2]))},
    )
    options: dict[str, Any] = {"gap": 1e-6, **limits[int(rng.random() < 0.3)]}
    options |= {"threads": 1} if driver == "branch" else {}
    assert problem.rows is not None
    whole = driver == "branch" and bool(problem.rows.extra.integer.any())  # of which it keeps no state
    kept = driver == "two_layer" or (driver != "conic" and problem.loss != "structural" and not whole)
    stored = not isinstance(problem.atoms, Additive)  # a state and a list are of stored columns
    if not (kept and stored) or rng.random() < 0.5:
        listed = stored and driver in ("branch", "gbd") and rng.random() < 0.5
        options |= {"pool_gap": 0.2} if listed else {}
        return mipfs.solve(problem, driver, **options)
    result = mipfs.solve(problem, driver, checkpoint=True, **options)
    for _ in range(2):
        if "iteration_limit" in options:
            options["iteration_limit"] += int(rng.integers(1, 5))
        result = mipfs.solve(problem, driver, checkpoint=True, resume=result.state, **options)
    return result


def stopped(seed: int) -> tuple[Instance, Result]:
    """Of an ordinary problem, by a limit."""
    rng, problem = np.random.default_rng([seed, 3]), problem_of(seed)
    return problem.data, _stopped(rng, problem, str(rng.choice(drivers_of(problem))))


def other_statement(seed: int) -> tuple[Instance, Result]:
    """The data asks for rows, forced features and penalties; the problem states others, or none. Or C is tiny."""
    rng, problem = np.random.default_rng([seed, 4]), problem_of(seed)
    changes: dict[str, Any] = {}
    if problem.selects_features and rng.random() < 0.8:
        p = problem.data.n_features
        changes = {"rows": Rows.empty(p), "forced_in": (), "cardinality": bool(rng.random() < 0.5)}
    if rng.random() < 0.5:
        changes["C"] = 10.0 ** rng.uniform(-14, -6)
    if problem.margin == "unit" and rng.random() < 0.5:
        count = problem.atoms.count
        changes["lam"] = (10.0 ** rng.uniform(-6, 1) * rng.random(count) * (rng.random(count) < 0.7)).tolist()
    changed = problem.replace(**changes)
    return problem.data, solve(seed, changed)[1]


def extreme(seed: int) -> tuple[Instance, Result]:
    """A draw of the campaign (`tests.draws`): C to 1e12, separable data, weights over twelve orders, lists, slices."""
    draw = draws.draw(seed)
    if draw.way == "slices":
        return draw.problem.data, _stopped(np.random.default_rng([seed, 5]), draw.problem, draw.driver)
    return draw.problem.data, mipfs.solve(draw.problem, draw.driver, **draw.options)


def products(seed: int) -> tuple[Instance, Result]:
    """Over products of features."""
    from tests.certificate import monomials  # which builds on the attack, and that on these results

    rng, problem = np.random.default_rng([seed, 6]), monomials.problem_of(seed)
    limits = {"iteration_limit": int(rng.integers(0, 6))} if rng.random() < 0.2 else {}
    atoms: Any = problem.atoms
    return atoms.base, monomials.solve(seed, problem, **limits)


def functions(seed: int) -> tuple[Instance, Result]:
    """Over functions of single features: additive kernels and splines."""
    rng = np.random.default_rng([seed, 7])
    name, options = additive_cases.KINDS[int(rng.integers(len(additive_cases.KINDS)))]
    raw, _ = additive_cases.instance(seed, n=int(rng.integers(6, 20)), p=int(rng.integers(2, 5)))
    if name == "splines":
        options = options | {"degree": int(rng.integers(0, 4))}
    atoms = additive_cases.make(name, raw, **options)
    loss = str(rng.choice(("hinge", "squared-hinge", "logistic")))
    C, most = 10.0 ** rng.uniform(-3, 4), int(rng.integers(0, atoms.count + 1))
    problem = Problem(raw, loss=loss, atoms=atoms, C=C, M=most, bias=bool(rng.integers(2)))
    driver = str(rng.choice(["branch", "gbd", "kelley"]))
    if rng.random() < 0.2:
        return raw, _stopped(rng, problem, driver)
    return raw, mipfs.solve(problem, driver, gap=float(rng.choice([1e-6, 1e-4, 1e-2])))


def ordinary(seed: int) -> tuple[Instance, Result]:
    """Whole runs of ordinary problems."""
    problem, result = solve(seed)
    return problem.data, result


KINDS: Mapping[str, tuple[int, Callable[[int], tuple[Instance, Result]]]] = {
    "ordinary": (4, ordinary),
    "stopped": (3, stopped),
    "other statement": (2, other_statement),
    "extreme": (6, extreme),
    "products": (1, products),
    "functions": (2, functions),
}
"""How many of so many seeds make results of a kind, and how."""


def any_result(seed: int) -> tuple[str, Instance, Result]:
    """The kind of a seed, the data to verify on, and an honest result."""
    order = [kind for kind, (times, _) in KINDS.items() for _ in range(times)]
    kind = order[seed % len(order)]
    data, result = KINDS[kind][1](seed)
    return kind, data, result


def refusals(result: Result, data: Instance) -> list[str]:
    """Why the checker refuses an honest result, in memory and once it is saved and loaded; empty where it accepts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.json"
        result.save(path)
        reports = mipfs.verify(result, data), mipfs.verify(Result.load(path), data)
    return [words + report.reason for words, report in zip(("", "once saved: "), reports, strict=True) if report.reason]


def main(argv: list[str]) -> int:
    """Solve the seeds FROM:TO and verify each; returns how many were rejected."""
    start, stop = (int(part) for part in argv[0].split(":"))
    counts, rejected = Counter[str](), 0
    for seed in range(start, stop):
        try:
            kind, data, result = any_result(seed)
            found = [] if result.claim is None else refusals(result, data)
            counts[f"{kind}: " + ("nothing to verify" if result.claim is None else result.status.name)] += 1
            about = f"{kind}, {result.driver}, {result.params['loss']}, {result.status.name}"
        except Exception as error:  # a run that falls over has no honest result: to be named and repeated
            about, found = "error", [f"{type(error).__name__}: {error}"]
        if found:
            rejected += 1
            print(f"seed {seed}: {about}: {found[0]}", flush=True)
    print(f"{rejected} of {stop - start} rejected")
    for words, count in sorted(counts.items()):
        print(f"{count:6d}  {words}")
    return rejected


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
