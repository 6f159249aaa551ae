"""``mipfs study``: the list, a quick run, the index, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mipfs.lab.experiments import available
from mipfs.lab.experiments.run import PAGE
from tests.cli.outcome import Cli


@pytest.mark.slow
def test_the_command_lists_runs_and_indexes(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("study", "--list", "--json", tmp_path / "list.json")
    assert (outcome.code, outcome.err) == (0, "")
    listed = json.loads((tmp_path / "list.json").read_text(encoding="utf-8"))["studies"]
    assert tuple(one["name"] for one in listed) == available()
    folder = tmp_path / "out" / "aytug"
    outcome = cli("study", "aytug", "--quick", "-o", folder, "--json", "-")
    assert (outcome.code, outcome.err) == (0, "")
    document = json.loads(outcome.out)
    assert (document["kind"], document["name"], document["done"]) == ("study", "aytug", 2)
    exact = [row for row in document["rows"] if row["method"] == "exact"]
    assert all(row["proven"] for row in exact)
    assert [row["overlap"] for row in exact] == [20, 16]  # of 20 features, in or out as they should be
    outcome = cli("study", "--index", "-o", folder.parent)
    assert (outcome.code, outcome.out) == (0, f"written to {folder.parent / PAGE}\n")
    named = json.loads(cli("study", "--index", "-o", folder.parent, "--json", "-").out)
    assert named == {"schema": 1, "index": str(folder.parent / PAGE)}
    assert "[aytug](aytug/README.md)" in (folder.parent / PAGE).read_text(encoding="utf-8")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "give the name of a study"),
        (("aytug", "--list"), "give the name of a study"),
        (("aitug",), "aytug"),
        (("--index", "-o", "nowhere"), "holds no study's rows"),
        (("aytug", "-o", "FILE"), "the folder cannot be made"),
        (("aytug", "--json", "no/such/folder.json"), "cannot be written"),
        (("aytug", "--time-limit", "-1"), "--time-limit -1 must be"),
        (("aytug", "--time-limit", "nan"), "--time-limit nan must be"),
        (("aytug", "-o", ""), "-o is empty"),
        (("recovery", "--quick", "--seed", "77", "-o", "FOLDER"), "--seed 77: the units have seed 0"),
    ],
)
def test_what_the_command_refuses(cli: Cli, tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    (tmp_path / "file").write_text("")
    places = {"FILE": str(tmp_path / "file"), "FOLDER": str(tmp_path / "folder")}
    outcome = cli("study", *(places.get(arg, arg) for arg in args))
    assert outcome.code == 2
    assert said in outcome.err
