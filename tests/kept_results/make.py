"""Write a result of every kind, with its data: `python -m tests.kept_results.make tests/kept_results/VERSION`.

Once for every version that writes something new; what is there stays as it is.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo

import mipfs
from mipfs import models
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.atoms.pairs import Pairs
from mipfs.atoms.tree import Tree
from mipfs.cli import main
from mipfs.problem import Problem
from tests import additive_cases
from tests.two_checkers import pairs

TOML = """[data]
label = "sick"
positive = "yes"
[cost]
a = 1
b = 2
c = 2
d = 1.5
e = 1
[penalty]
b = 0.25
[select]
budget = 6
implies = [["a", "b"]]
at_most = [{ k = 2, of = ["c", "d", "e"] }]
"""


def data(folder: Path) -> None:
    """Small text data: a table with rows and penalties in a .toml, one with weights and words, and a sparse file."""
    rng = np.random.default_rng(7)
    X = np.round(rng.normal(size=(24, 5)) * [1, 10, 0.1, 3, 1] + [0, 50, 0, 0, 2], 3)
    score = X[:, 0] - 0.1 * (X[:, 1] - 50) + 8 * X[:, 2] + 0.7 * rng.normal(size=24)
    y = np.where(score > np.median(score), "yes", "no")
    lines = [",".join([*map(str, row), label]) for row, label in zip(X.tolist(), y, strict=True)]
    (folder / "table.csv").write_text("a,b,c,d,e,sick\n" + "\n".join(lines) + "\n", encoding="utf-8")
    (folder / "table.toml").write_text(TOML, encoding="utf-8")
    words = rng.choice(["red", "green", "blue"], 24)
    weights = np.round(rng.uniform(0.5, 2.0, 24), 2)
    lines = [f"{row[0]};{word};{w};{label}" for row, word, w, label in zip(X, words, weights, y, strict=True)]
    (folder / "words.csv").write_text("a;colour;sample_weight;label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    sparse = np.where(rng.random((24, 9)) < 0.2, np.round(rng.normal(size=(24, 9)), 2), 0.0)
    sparse[-1, -1] = 1.5
    lines = [
        f"{1 if label == 'yes' else -1} " + " ".join(f"{j + 1}:{row[j]:g}" for j in np.flatnonzero(row))
        for row, label in zip(sparse, y, strict=True)
    ]
    (folder / "sparse.svm").write_text("\n".join(lines) + "\n", encoding="utf-8")


COMMANDS: dict[str, list[str]] = {
    "hinge": ["fsp-m", "table.csv", "-p", "M=3", "-p", "C=1"],
    "standard": ["fsp-m", "table.csv", "-p", "M=2", "-p", "C=1", "--scale", "standard"],
    "unit": ["fsp-m", "table.csv", "-p", "M=2", "-p", "C=10", "--scale", "unit", "-p", "loss=squared-hinge"],
    "logistic": ["fsp-m", "table.csv", "-p", "M=2", "-p", "C=1", "-p", "loss=logistic", "--scale", "standard"],
    "no-bias": ["fsp-m", "sparse.svm", "-p", "M=3", "-p", "C=1", "-p", "bias=false", "--scale", "standard"],
    "sparse": ["fsp-m", "sparse.svm", "-p", "M=3", "-p", "C=1", "-p", "loss=logistic"],
    "words": ["fsp-m", "words.csv", "-p", "M=2", "-p", "C=1", "--scale", "standard"],
    "penalties": ["fsp-lambda", "table.csv", "-p", "lambda=0.5", "-p", "C=1", "--scale", "standard"],
    "list": ["fsp-m", "table.csv", "-p", "M=3", "-p", "C=1", "--scale", "standard", "--pool-gap", "0.2"],
    "best-three": ["fsp-m", "sparse.svm", "-p", "M=2", "-p", "C=1", "--pool-size", "3"],
    "signs": ["fsp-m", "table.csv", "-p", "M=3", "-p", "C=1", "--nonnegative", "a", "--weight-bounds", "c=-1:0.5"],
    "gbd": ["fsp-m", "table.csv", "-p", "M=3", "-p", "C=1", "--scale", "standard", "--driver", "gbd"],
    "relaxed": ["fgm", "table.csv", "-p", "M=3", "-p", "C=1", "--scale", "standard"],
    "rho": ["fgm", "sparse.svm", "-p", "M=2", "-p", "C=1", "-p", "margin=rho"],
    "measure": ["structural", "table.csv", "-p", "measure=f1", "-p", "M=2", "-p", "C=10", "--scale", "standard"],
    "stopped": ["fsp-m", "table.csv", "-p", "M=3", "-p", "C=100", "--scale", "standard", "--time-limit", "0"],
}
"""Of `mipfs solve`."""


def forbidden(read: Callable[..., Any]) -> Any:
    problem = Problem(read("table.csv"), M=4, C=1.0)
    return mipfs.solve(problem.with_rows(np.ones((1, 5)), 5.0, np.inf, ["all of them"]))


def with_variables(read: Callable[..., Any]) -> Any:
    model = models.fsp_m(read("sparse.svm"), M=5, C=1.0)
    sigma = model.select.sigma
    model.select.half = pyo.Var(domain=pyo.NonNegativeIntegers)
    model.select.any = pyo.Var()
    model.select.even = pyo.Constraint(expr=sum(sigma[j] for j in sigma) == 2 * model.select.half)
    model.select.more = pyo.Constraint(expr=sigma["x1"] + model.select.any >= 1)
    return mipfs.solve(model)


def derived(read: Callable[..., Any]) -> Any:
    problem = Problem(read("table.csv", scale="standard"), M=4, C=1.0)
    return mipfs.solve(problem.strengthened(pairs), "gbd")


def groups(read: Callable[..., Any]) -> Any:
    raw = read("sparse.svm", scale="unit")
    members = {"one": [0, 1, 2], "two": [2, 3, 4], "three": [5], "four": [6, 7, 8]}
    return mipfs.solve(Problem(raw, M=2, C=5.0, atoms=Groups(raw, members, "norm")))


def tree(read: Callable[..., Any]) -> Any:
    raw = read("sparse.svm")
    parents = {"x1": "low", "x2": "low", "low": "top", "x3": "top"}
    return mipfs.solve(Problem(raw, M=2, C=5.0, loss="squared-hinge", atoms=Tree(raw, parents)), pool_gap=0.1)


def norms(read: Callable[..., Any]) -> Any:
    raw = read("sparse.svm")
    return mipfs.solve(Problem(raw, M=2, C=5.0, loss="logistic", bias=False, atoms=Features(raw, "norm")))


def products(read: Callable[..., Any]) -> Any:
    raw = read("sparse.svm")
    return mipfs.solve(Problem(raw, M=2, C=1.0, atoms=Pairs(raw), loss="squared-hinge", bias=False))


def functions(read: Callable[..., Any]) -> Any:
    raw = read("words.csv")
    return mipfs.solve(Problem(raw, M=1, C=1.0, atoms=additive_cases.make("splines", raw)))


MADE: dict[str, tuple[str, Callable[[Callable[..., Any]], Any]]] = {
    "infeasible": ("table.csv", forbidden),
    "variables": ("sparse.svm", with_variables),
    "derived": ("table.csv", derived),
    "groups": ("sparse.svm", groups),
    "tree": ("sparse.svm", tree),
    "norms": ("sparse.svm", norms),
    "products": ("sparse.svm", products),
    "functions": ("words.csv", functions),
}
"""Of Python, with their data."""
STUDIES: dict[str, list[str]] = {
    "path": ["path", "table.csv", "--C", "1", "--M", "2:4", "--scale", "standard"],
    "bench": ["bench", "words.csv", "--methods", "fsp-m,rfe", "--M", "1,2", "--folds", "2", "--inner", "2", "--C", "1"],
    "compare": ["compare", "table.csv", "-p", "M=3", "-p", "C=1", "--scale", "standard"],
}


def make(folder: Path) -> None:
    """Write all of it."""
    folder.mkdir(parents=True)
    data(folder)
    for name, (command, file, *more) in COMMANDS.items():
        written = ["--json", str(folder / f"{name}.json"), "--quiet", "--seed", "0"]
        code = main(["solve", command, str(folder / file), *more, *written])
        assert code == 0, (name, code)
    for name, (_, solve) in MADE.items():
        solve(lambda file, **options: mipfs.read(folder / file, **options)).save(folder / f"{name}.json")
    for name, (command, file, *more) in STUDIES.items():
        assert main([command, str(folder / file), *more, "--json", str(folder / f"{name}.json"), "--quiet"]) == 0, name


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if target.exists():
        sys.exit(f"{target} is there: what a version wrote stays as it is")
    try:
        make(target)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
