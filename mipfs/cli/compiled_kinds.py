"""The kinds of runs whose machine code differs, so that `mipfs compile` can make all of it before anything is solved.

A kind is a driver or what else calls kernels, and how the data is stored; losses, rows and penalties share most code,
and are met one after the other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.atoms.registry import KINDS
from mipfs.capability import POINTWISE
from mipfs.data.instance import Instance
from mipfs.drivers import branch, capabilities, solve
from mipfs.errors import MipfsError
from mipfs.losses import is_joint
from mipfs.problem import Problem
from mipfs.run.beside import Job, compile_beside, missing

STORAGES = ("dense", "sparse")
ATOMS = ("pairs", "groups")
N, P = 60, 20
"""Samples and features of the problems that are solved."""


def kinds() -> list[str]:
    """The names of all kinds, each a word for what runs and one for how the data is stored."""
    what = (*capabilities(), *ATOMS, "estimators", "readers")
    return [f"{name} {storage}" for name in what for storage in STORAGES]


def make_instance(storage: str) -> Instance:
    """A small instance, stored so."""
    r = np.random.default_rng(0)
    X = r.standard_normal((N, P))
    y = np.where(X[:, :3].sum(axis=1) + r.standard_normal(N) > 0, 1.0, -1.0)
    groups = {"first": (0, 1), "second": (2, 3, 4), "third": (5,)}
    stored: Any = sparse.csc_array(X * (r.random(X.shape) < 0.3)) if storage == "sparse" else np.asfortranarray(X)
    names = [f"x{j + 1}" for j in range(P)]
    return Instance.from_arrays(
        stored, y, feature_names=names, groups={g: tuple(names[j] for j in ids) for g, ids in groups.items()}
    )


def compile_kind(kind: str) -> None:
    """Run what the kind is, once with each loss, with rows and with penalties, so that all it calls is compiled."""
    name, storage = kind.split()
    data = make_instance(storage)
    if name in ("estimators", "readers"):
        (_fit if name == "estimators" else _read)(data)
        return
    driver, atoms = (None, name) if name in ATOMS else (name, None)
    losses = capabilities()[driver].losses if driver is not None else POINTWISE
    for loss in losses:
        given: dict[str, Any] = {"bias": False, "measure": "f1"} if is_joint(loss) else {}
        with suppress(MipfsError):  # what a driver does not carry has no code
            if atoms is not None:
                given["atoms"] = KINDS[atoms].make(data)
            _solve_variants(Problem(data, loss=loss, M=3, **given), driver)


def _solve_variants(problem: Problem, driver: str | None) -> None:
    """Solve a problem, with a row, with penalties, and without a bias."""
    row = np.ones((1, problem.atoms.count))
    asked: tuple[Callable[[], Problem], ...] = (
        lambda: problem, lambda: problem.with_rows(row, 1, 2), lambda: problem.replace(lam=0.01),
        lambda: problem.replace(bias=False),
    )  # fmt: skip
    for make in asked:
        with suppress(MipfsError):
            solve(make(), driver, iteration_limit=1)


def _fit(data: Instance) -> None:
    """Fit the classifiers that have kernels of their own."""
    from mipfs.estimators.fgm import FGMClassifier
    from mipfs.estimators.fsp import FSPClassifier

    X: Any = data.block().values
    X = sparse.csr_array(X) if data.block().is_sparse else np.ascontiguousarray(X)
    for estimator in (FGMClassifier(), FSPClassifier()):
        estimator.fit(X, data.y).predict(X)


def _read(data: Instance) -> None:
    """Read a file as text, scale it, and make a column store of it."""
    from mipfs.convert import convert
    from mipfs.readers import read

    values = data.block().values
    rows = np.asarray(values.todense() if data.block().is_sparse else values)
    lines = (
        f"{label:g} " + " ".join(f"{j + 1}:{value:g}" for j, value in enumerate(row) if value)
        for label, row in zip(data.y, rows, strict=True)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.svm"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        for scale in ("none", "standard", "unit"):
            read(path, scale=scale)
        read(convert(path, Path(folder) / "store"), scale="standard").block()


def compile_kinds(names: list[str], must_stop: Callable[[], bool], on_end: Callable[[str, bool], None]) -> None:
    """Compile all kinds of these names in processes beside; `on_end` is told of each, and whether that succeeded.

    The large kernels come first, in processes of their own.
    """
    large: list[list[Job]] = []
    for storage in STORAGES if any(name.startswith("branch") for name in names) else ():
        problem = Problem(make_instance(storage), M=3)
        for asked in (problem, problem.with_rows(np.ones((1, P)), 1, 2)):
            large += [jobs for jobs in missing(branch.kernels(asked)) if jobs not in large]
    compile_beside(large, must_stop)
    lists = [[(__name__, "compile_kind", (name,))] for name in names]
    compile_beside(lists, must_stop, on_end=lambda k, code: on_end(names[k], code == 0))
