"""The process that says "accepted" has loaded nothing of what found the result: no solver, laboratory or numba."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
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
OF_TWO, OF_THREE = ("result", "point", "best", "path", "card"), ("classes", "class", "shared")
"""Kinds of documents on data of so many classes."""
FORMATS = ("csv", "svm.gz", "npz", "parquet")
CODE = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from mipfs.cli import main
found = []
for argv in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(argv)
    modules = sorted(name for name in sys.modules if name.partition(".")[0] in ("mipfs", "numba"))
    found.append([code, modules, out.getvalue(), err.getvalue()])
print(json.dumps(found))
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


def documented(folder: Path, data: Path, kinds: Sequence[str]) -> dict[str, str]:
    """Documents of these kinds on the data, as the command line names them; those of one file are made once."""
    label = ["--label", "y"] if data.suffix in (".csv", ".parquet") else []
    asked = [str(data), *label, "-p", "C=1", "-q"]
    found = {}

    def saved(name: str, *command: str) -> str:
        path = folder / f"{name}.json"
        if not path.exists():
            assert main([*command, "--json", str(path)]) == 0
        return str(path)

    for kind in kinds:
        if kind in ("point", "best", "path"):
            path = saved("path", "path", *asked, "--M", "1:2", "--folds", "2")
            found[kind] = path + {"point": "#M=2", "best": "#best", "path": ""}[kind]
            continue
        shared = ["--shared-support"] if kind == "shared" else []
        solved = saved("shared" if shared else "solved", "solve", "fsp-m", *asked, "--M", "2", *shared)
        found[kind] = solved
        if kind == "class":
            found[kind] = f"{solved}#{json.loads(Path(solved).read_text())['classes'][1]}"
        if kind == "card":
            found[kind] = saved("card", "scorecard", solved, str(data), *label, "-q")
    return found


def run(*commands: Sequence[str]) -> list[tuple[int, list[str], str, str]]:
    """Commands in a process of their own: exit codes, the modules that it had loaded by then, and what they said."""
    argv = [sys.executable, "-c", CODE, json.dumps(commands)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return [(code, modules, said, error) for code, modules, said, error in json.loads(done.stdout)]


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


@pytest.mark.sampled(11)
@pytest.mark.parametrize("kinds", [OF_TWO, OF_THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("form", FORMATS)
def test_verify_loads_no_solver(tmp_path: Path, form: str, kinds: Sequence[str]) -> None:
    """One process checks them all: it has loaded no less than each alone would have."""
    if form == "parquet":
        pytest.importorskip("pyarrow")
    data = write(tmp_path, form, 3 if kinds is OF_THREE else 2)
    label = ["--label", "y"] if data.suffix in (".csv", ".parquet") else []
    documents = documented(tmp_path, data, kinds)
    found = run(*(["verify", one, str(data), *label] for one in documents.values()))
    for kind, (code, modules, said, error) in zip(documents, found, strict=True):
        assert code == 0, error
        proofs = {"classes": 3, "path": 0}.get(kind, 1)  # a path shows a table of its points instead
        assert said.count("certificate  accepted") + said.count("certificate     accepted") == proofs, kind
        assert proofs == 1 or "document     accepted" in said
        assert "mipfs.check.tree" in modules
        assert not strangers(modules), kind
        assert len([name for name in modules if name != "numba"]) <= MOST


@pytest.mark.slow
def test_what_uses_a_classifier_loads_no_solver(tmp_path: Path) -> None:
    data = write(tmp_path, "csv", 2)
    documents = documented(tmp_path, data, ["result", "point"])
    commands = [[how, one, str(data), "--label", "y"] for how in ("predict", "evaluate") for one in documents.values()]
    for (how, *_), (code, modules, said, error) in zip(commands, run(*commands), strict=True):
        assert code == 0, error
        assert said.count("\n") >= (60 if how == "predict" else 8)
        assert not strangers(modules), how
        assert len(modules) <= MOST


@pytest.mark.slow
def test_a_stranger_is_seen() -> None:
    """The test itself: a solve loads what verifying must not."""
    ((code, modules, _, error),) = run(["solve", "fsp-m", "instances/wdbc.svm", "-p", "M=1", "-q"])
    assert code == 0, error
    assert {"numba", "mipfs.inner", "mipfs.drivers"} <= {*strangers(modules)}
