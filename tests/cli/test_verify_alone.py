"""The process that says "accepted" has loaded nothing of what found the result: no solver, laboratory or numba."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from mipfs.cli import main

MOST = 150
"""Modules of the package at most; most of them are the checker, readers and data."""
SOLVER = ("inner", "drivers", "run", "kernels", "lab", "compiled", "pointers", "models", "estimators", "svm", "atoms")
"""Rooms of which none is loaded, but for the one earned bound."""
KINDS = ("result", "point", "best", "path", "classes", "class", "shared", "card")
FORMATS = ("csv", "svm.gz", "npz", "parquet")
CODE = """
import json, sys
from mipfs.cli import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted(name for name in sys.modules if name.partition(".")[0] in ("mipfs", "numba"))]))
"""


def write(folder: Path, kind: str, classes: int) -> Path:
    """Made data of so many classes in a file of that kind."""
    r = np.random.default_rng(3)
    y = r.integers(0, classes, 60)
    X = r.standard_normal((60, 5)) + 2.0 * np.eye(classes, 5)[y]
    path = folder / f"data.{kind}"
    names = [f"v{j}" for j in range(5)]
    if kind == "svm.gz":
        dump_svmlight_file(X, y, str(folder / "data.svm"), zero_based=False)
        path.write_bytes(gzip.compress((folder / "data.svm").read_bytes()))
    elif kind == "npz":
        np.savez(path, X=X, y=y, feature_names=np.array(names))
    else:
        frame = pd.DataFrame(X, columns=names).assign(y=y)
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return path


def documented(folder: Path, kind: str, data: Path) -> str:
    """A document of that kind on the data, as the command line names it."""
    label = ["--label", "y"] if data.suffix in (".csv", ".parquet") else []
    asked, saved = [str(data), *label, "-p", "C=1", "-q"], str(folder / "r.json")
    if kind in ("point", "best", "path"):
        assert main(["path", *asked, "--M", "1:2", "--folds", "2", "--json", saved]) == 0
        return saved + {"point": "#M=2", "best": "#best", "path": ""}[kind]
    shared = ["--shared-support"] if kind == "shared" else []
    assert main(["solve", "fsp-m", *asked, "--M", "2", *shared, "--json", saved]) == 0
    if kind == "class":
        return f"{saved}#{json.loads(Path(saved).read_text())['classes'][1]}"
    if kind != "card":
        return saved
    card = str(folder / "card.json")
    assert main(["scorecard", saved, str(data), *label, "--json", card, "-q"]) == 0
    return card


def run(*argv: str) -> tuple[int, list[str], str, str]:
    """A command in a process of its own: its exit code, the modules that it loaded, and what it said."""
    done = subprocess.run([sys.executable, "-c", CODE, *argv], capture_output=True, text=True, check=True)
    said, _, last = done.stdout.rstrip("\n").rpartition("\n")
    code, modules = json.loads(last)
    return code, modules, said, done.stderr


def strangers(modules: list[str]) -> list[str]:
    """What belongs to the solver or the laboratory."""
    apart = ("mipfs.kernels", "mipfs.kernels.bound")
    rooms = tuple(f"mipfs.{room}" for room in SOLVER)
    return [
        name
        for name in modules
        if name.partition(".")[0] == "numba"
        or (name not in apart and any(name == room or name.startswith(f"{room}.") for room in rooms))
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMATS)
def test_verify_loads_no_solver(tmp_path: Path, kind: str, form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    data = write(tmp_path, form, 3 if kind in ("classes", "class", "shared") else 2)
    label = ["--label", "y"] if data.suffix in (".csv", ".parquet") else []
    code, modules, said, error = run("verify", documented(tmp_path, kind, data), str(data), *label)
    assert code == 0, error
    proofs = {"classes": 3, "path": 0}.get(kind, 1)  # a path shows a table of its points instead
    assert said.count("certificate  accepted") + said.count("certificate     accepted") == proofs
    assert proofs == 1 or "document     accepted" in said
    assert "mipfs.check.tree" in modules
    assert not strangers(modules)
    assert len([name for name in modules if name != "numba"]) <= MOST


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize("kind", ["result", "point"])
def test_what_uses_a_classifier_loads_no_solver(tmp_path: Path, command: str, kind: str) -> None:
    data = write(tmp_path, "csv", 2)
    code, modules, said, error = run(command, documented(tmp_path, kind, data), str(data), "--label", "y")
    assert code == 0, error
    assert said.count("\n") >= (59 if command == "predict" else 8)
    assert not strangers(modules)
    assert len(modules) <= MOST


def test_a_stranger_is_seen() -> None:
    """The test itself: a solve loads what verifying must not."""
    code, modules, _, error = run("solve", "fsp-m", "instances/wdbc.svm", "-p", "M=1", "-q")
    assert code == 0, error
    assert {"numba", "mipfs.inner", "mipfs.drivers"} <= {*strangers(modules)}
