"""The stages of `tools/versions.py`, and that one number stands wherever the version does."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import mipfs
from mipfs.plumbing import about
from mipfs.run.finish import PACKAGES, package_versions

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def versions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("versions_tool", ROOT / "tools" / "versions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_oldest_are_the_lower_bounds(versions: ModuleType, tmp_path: Path) -> None:
    lines = versions.constraints(tmp_path).read_text(encoding="utf-8").split()
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in lines)
    for stated in PROJECT["dependencies"]:
        assert stated.replace(">=", "==") in lines
    assert {"pytest", "pandas", "hypothesis", "pyarrow", "dask"} <= {line.partition("==")[0] for line in lines}


def test_stages_name_tests_and_interpreters(versions: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert all((ROOT / place).exists() for place in versions.TESTS)
    assert versions.main(["python2.7"]) == versions.main([]) == 2
    assert "python3.12" in capsys.readouterr().err
    named = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)}
    assert named <= {name.removeprefix("python") for name in versions.PYTHONS}
    assert PROJECT["requires-python"] == f">={versions.PYTHONS[0].removeprefix('python')}"


def test_a_missing_interpreter_is_said(versions: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "found_of", lambda _name: iter(()))
    assert versions.main(["python3.11"]) == 1
    monkeypatch.setattr(versions, "STAGES", ["python3.11"])
    assert versions.main(["all"]) == 0


def test_a_bare_machine_has_no_compiler(versions: ModuleType, tmp_path: Path) -> None:
    path = versions.bare(tmp_path)["PATH"]
    assert not [name for name in ("gcc", "cc", "clang", "make") if shutil.which(name, path=path)]


@pytest.mark.skipif(
    not (ROOT / ".ci").is_dir() or shutil.which("bash") is None, reason="needs bash, and the repository"
)
def test_ci_refuses_a_stage_that_there_is_not() -> None:
    done = subprocess.run(["bash", ROOT / ".ci" / "run", "nothing"], capture_output=True, text=True, check=False)
    assert (done.returncode, "no stage nothing" in done.stderr) == (2, True)


def test_the_version_is_one_number_everywhere() -> None:
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(mipfs.__version__)}$", cited, re.MULTILINE)
    assert f"version = {{{mipfs.__version__}}}" in (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    first, second, *_ = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert (first, second) == ("Unreleased", mipfs.__version__)
    assert sys.version_info >= (3, 11)


def test_a_result_states_the_version_of_the_code_that_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mipfs, "__version__", "9.8.7")  # what was installed before says something else
    asked = about.versions.__wrapped__(*PACKAGES)  # past what was kept
    assert asked["mipfs"] == "9.8.7"
    assert package_versions().keys() == asked.keys()
