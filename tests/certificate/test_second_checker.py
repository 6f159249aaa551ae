"""The second checker (`tools/second_checker.py`): it imports nothing, and agrees with the first one."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.check.tree import check
from mipfs.cli import main
from tests import two_checkers, two_readings

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: object) -> tuple[int, str]:
    """It as a user runs it, without this package on the path."""
    done = subprocess.run(
        [sys.executable, "-I", str(two_checkers.SECOND), *map(str, arguments)],
        capture_output=True, text=True, check=False, env={},
    )  # fmt: skip
    return done.returncode, done.stdout


def test_it_imports_nothing_but_what_python_brings() -> None:
    tree = ast.parse(two_checkers.SECOND.read_text(encoding="utf-8"))
    names = {name.name.split(".")[0] for one in ast.walk(tree) if isinstance(one, ast.Import) for name in one.names}
    names |= {str(one.module).split(".")[0] for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)}
    assert names <= set(sys.stdlib_module_names)


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("second")
    for name in ("credit.csv", "credit.toml", "wdbc.svm", "wdbc.toml"):
        shutil.copy(ROOT / "instances" / name, folder)
    for name, data, more in (
        ("credit", "credit.csv", ["-p", "M=4", "--pool-gap", "0.1"]),
        ("wdbc", "wdbc.svm", ["-p", "M=2", "-p", "loss=logistic"]),
    ):
        options = ["--scale", "standard", "-p", "C=1", "--json", str(folder / f"{name}.json"), "--quiet"]
        assert main(["solve", "fsp-m", str(folder / data), *more, *options]) == 0
    return folder


@pytest.mark.slow
def test_it_accepts_what_the_command_line_writes(solved: Path) -> None:
    for name, data in (("credit", "credit.csv"), ("wdbc", "wdbc.svm")):
        code, said = run(solved / f"{name}.json", solved / data)
        assert (code, said[:18]) == (0, "accepted: OPTIMAL,"), said


@pytest.mark.slow
def test_it_rejects_a_higher_bound_other_data_and_another_sidecar(solved: Path, tmp_path: Path) -> None:
    for name in ("credit.json", "credit.cert.npz", "credit.csv", "credit.toml"):
        shutil.copy(solved / name, tmp_path)
    honest = json.loads((solved / "credit.json").read_text(encoding="utf-8"))
    higher = json.loads(json.dumps(honest))
    higher["bound"] = higher["certificate"]["bound"] = higher["objective"]
    (tmp_path / "credit.json").write_text(json.dumps(higher), encoding="utf-8")
    assert run(tmp_path / "credit.json", tmp_path / "credit.csv")[0] == 1
    (tmp_path / "credit.json").write_text(json.dumps(honest), encoding="utf-8")
    text = (tmp_path / "credit.csv").read_text(encoding="utf-8")
    (tmp_path / "credit.csv").write_text(text.replace("59.9", "59.8", 1), encoding="utf-8")
    code, said = run(tmp_path / "credit.json", tmp_path / "credit.csv")
    assert (code, "other data" in said) == (1, True)
    (tmp_path / "credit.cert.npz").write_bytes(b"PK")
    code, said = run(tmp_path / "credit.json", solved / "credit.csv")
    assert (code, "another file" in said) == (1, True)


@pytest.mark.slow
def test_it_declines_what_it_does_not_carry(solved: Path, tmp_path: Path) -> None:
    assert run(solved / "credit.json", tmp_path / "none.csv")[0] == 2
    assert run(solved / "credit.json", tmp_path / "x.parquet")[0] == 2
    document = json.loads((solved / "credit.json").read_text(encoding="utf-8"))
    document["params"]["regulariser"] = {"name": "huber", "width": 1.0}
    shutil.copy(solved / "credit.cert.npz", tmp_path)
    (tmp_path / "credit.json").write_text(json.dumps(document), encoding="utf-8")
    code, said = run(tmp_path / "credit.json", solved / "credit.csv")
    assert (code, said.startswith("declined: a kind")) == (2, True)


def test_scales_are_those_of_the_columns(solved: Path) -> None:
    data = mipfs.read(solved / "credit.csv", scale="standard")
    with np.load(solved / "credit.cert.npz") as arrays:
        for name, values in (("shift", data.shift), ("scale", data.scale)):
            stated = [float.fromhex(text.decode()) for text in arrays[f"column_{name}"].tolist()]
            assert stated == values.tolist()


def test_its_logarithm_lies_above() -> None:
    second, rng = two_checkers.second(), np.random.default_rng(0)
    for _ in range(300):
        a, b = (int(10.0 ** rng.uniform(0, 15)) ** int(rng.integers(1, 8)) + 1 for _ in range(2))
        above = Fraction(second.log_above(a, b), second.ONE)
        exact = float(np.log(np.longdouble(a)) - np.log(np.longdouble(b))) if max(a, b) < 10**300 else float(above)
        assert abs(float(above) - exact) <= 1e-14 * max(1.0, abs(exact))
        assert second.log_above(a, b) + second.log_above(b, a) >= 0  # ln x + ln 1/x = 0


@pytest.mark.slow
def test_both_checkers_agree_on_a_sample() -> None:
    honest, mutated = Counter[str](), Counter[str]()
    assert not any([two_checkers.judged(seed, honest) for seed in range(900, 925)])
    assert not any([two_checkers.mutated(seed, mutated, bases=8) for seed in range(150)])
    assert sum(n for line, n in honest.items() if line.endswith("both accepted")) >= 12
    assert sum(n for line, n in mutated.items() if line.endswith("both rejected")) >= 50


@pytest.mark.every
@pytest.mark.slow
def test_both_checkers_read_tables_alike() -> None:
    assert two_readings.main(["--count", "60", "--seed", "7000"]) == 0


@pytest.mark.every
@pytest.mark.slow
def test_both_checkers_agree_on_many() -> None:
    assert two_checkers.main(["--count", "100", "--mutated", "800", "--bases", "30", "--seed", "50000"]) == 0


def test_certificates_without_the_scaling_of_columns_are_older_ones(solved: Path) -> None:
    document = json.loads((solved / "credit.json").read_text(encoding="utf-8"))
    with np.load(solved / "credit.cert.npz") as stored:
        arrays = {name: stored[name] for name in stored.files if not name.startswith("column_")}
    data = mipfs.read(solved / "credit.csv", scale="standard")
    assert check(document, arrays, data).accepted
    known = two_checkers.second().Source(solved / "credit.csv").data(document)
    found, why = two_checkers.second().guarded(document, two_checkers.arrays_of(arrays), known)
    assert (found, "earlier version" in why) == ("declined", True)


@pytest.mark.parametrize("name", ["column_shift", "column_scale"])
def test_both_refuse_other_scales_in_the_certificate(solved: Path, name: str) -> None:
    document = json.loads((solved / "credit.json").read_text(encoding="utf-8"))
    with np.load(solved / "credit.cert.npz") as stored:
        arrays = dict(stored)
    arrays[name] = np.array([*arrays[name][:-1], b"0x1.0p+1"])
    data = mipfs.read(solved / "credit.csv", scale="standard")
    assert name[7:] in check(document, arrays, data).reason
    known = two_checkers.second().Source(solved / "credit.csv").data(document)
    assert two_checkers.second().guarded(document, two_checkers.arrays_of(arrays), known)[0] == "rejected"


def test_a_leaf_that_is_empty_only_within_a_box_is_no_reason_to_refuse() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 3))
    data = mipfs.Instance.from_arrays(X, np.where(X[:, 0] > 0, 1, -1))
    tight = dict.fromkeys(data.feature_names, (-0.1, 0.1))
    result = mipfs.solve(mipfs.Problem(data, M=1, C=1.0, weight_bounds=tight))
    assert result.claim is not None
    document = json.loads(result.to_json()) | dict(result.stated) | {"certificate": result.claim.entry()}
    arrays = result.claim.arrays()
    root = int(arrays["dual"][0]) if arrays["feature"][0] in (-1, 1 << 30) else 0
    closed = {"feature": [1 << 30, -1], "children": [[1, -1], [-1, -1]], "dual": [root, -2], "multiplier": [-1, -1]}
    arrays |= {name: np.array(value, dtype=arrays[name].dtype) for name, value in closed.items()}
    low = 1e-3 * float(result.bound)  # the root alone proves it, so that screening leaves nothing
    document |= {"status": "FEASIBLE", "bound": low, "gap": None}
    document["certificate"]["bound"] = low
    report = check(document, arrays, data)
    assert (report.accepted, report.reason) == (True, "")
    assert report.bound_without_box == 0.0


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", [881, 1807, 2265, 3669])
def test_what_they_differed_in_is_settled(seed: int) -> None:
    """A list for a mapping, a scale of products, and multipliers that prove nothing where nothing is to be proven."""
    assert not two_checkers.mutated(seed, Counter(), bases=60)
