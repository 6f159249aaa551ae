"""Packages offer losses, regularisers and branching rules as entry points; what to cite is written whole."""

from __future__ import annotations

import copy
import pickle
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.branching import RULES, check_rule, get_rule
from mipfs.cli.options import enter
from mipfs.drivers import DRIVERS
from mipfs.errors import UsageError
from mipfs.lab.baselines import BASELINES
from mipfs.lab.experiments import STUDIES
from mipfs.lab.sketch.select import METHODS
from mipfs.losses import LOSSES, get_loss
from mipfs.measures import MEASURES
from mipfs.plumbing import registry
from mipfs.plumbing.registry import Registry
from mipfs.regularisers import REGULARISERS, get_regulariser
from mipfs.regularisers.ridge import Ridge
from mipfs.separators import SEPARATORS, get_separator

ROOT = Path(__file__).resolve().parents[1]
OFFERED = (
    EntryPoint("hinge-again", "plugged.loss", "mipfs.losses"),
    EntryPoint("ridge-again", "mipfs.regularisers.ridge", "mipfs.regularisers"),
    EntryPoint("rule-again", "mipfs.branching.largest_weight", "mipfs.branching"),
    EntryPoint("hinge", "plugged.bad", "mipfs.losses"),
)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package that offers all of them, as if it were installed."""

    def found(*, group: str, name: str) -> list[EntryPoint]:
        return [one for one in OFFERED if one.group == group and one.name == name]

    (tmp_path / "plugged").mkdir()
    (tmp_path / "plugged" / "__init__.py").write_text("")
    (tmp_path / "plugged" / "loss.py").write_text("from mipfs.losses.hinge import LOSS\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "entry_points", found)
    for table in (LOSSES, REGULARISERS, RULES):
        for name in dict(table):
            monkeypatch.setitem(table, name, table[name])
        for one in OFFERED[:3]:
            monkeypatch.delitem(table, one.name, raising=False)


@pytest.mark.usefixtures("installed")
def test_entry_points_are_found_by_their_names() -> None:
    r = np.random.default_rng(0)
    data = mipfs.Instance.from_arrays(r.normal(size=(20, 3)), np.resize([1.0, -1.0], 20))
    assert mipfs.Problem(data, loss="hinge-again", M=1).loss == "hinge-again"
    assert LOSSES["hinge-again"] == "plugged.loss"
    assert get_regulariser("ridge-again") is not None
    check_rule("rule-again")
    assert LOSSES["hinge"] == "mipfs.losses.hinge"  # a name that is taken stays as it is
    enter(["rule-again"])
    for given in ("hinge-once-more", 3):
        with pytest.raises(UsageError):
            mipfs.Problem(data, loss=given, M=1)
    for name in ("hinge-again", "ridge-again", "rule-again"):
        for table in (LOSSES, REGULARISERS, RULES):
            table.pop(name, None)
    sys.modules.pop("plugged.loss", None)


TABLES = (LOSSES, REGULARISERS, RULES, SEPARATORS, MEASURES, DRIVERS, BASELINES, METHODS, STUDIES)


@pytest.mark.parametrize("table", TABLES, ids=lambda one: one.kind)
def test_a_name_of_the_package_keeps_its_module(table: Registry) -> None:
    """However it is entered; a name of one's own may be given another module, and copies are refused the same."""
    name, home = next(iter(table.items()))
    before = dict(table)
    for copied in (table, pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        for enters in (
            lambda t: t.__setitem__(name, "mine"),
            lambda t: t.update({name: "mine"}),
            lambda t: t.__ior__({name: "mine"}),
        ):
            with pytest.raises(
                UsageError, match=rf"the {table.kind} '{name}' is that of {home}, which 'mine' does not"
            ):
                enters(copied)
        assert dict(copied) == before
    other = copy.deepcopy(table)
    assert other.setdefault(name, "mine") == home
    other[name] = home
    other["of-mine"] = "mine"
    other["of-mine"] = "mine again"
    with pytest.raises(UsageError, match=f"{table.kind} 'of-mine' is entered by the name of its module, .* not as 3"):
        other["of-mine"] = 3  # type: ignore[assignment]
    del other[name]
    with pytest.raises(UsageError, match="give yours another name"):
        other.setdefault(name, "mine")
    assert dict(copy.deepcopy(other)) == dict(other)
    joined = {**before, "a": "b"}
    assert (type(table | {"a": "b"}), table | {"a": "b"}, {"a": "b"} | table) == (dict, joined, joined)
    assert dict(table) == before


def test_processes_are_told_what_a_program_has_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every registry, also of those that are loaded later: measures and drivers were not known there."""
    monkeypatch.setattr(Registry, "_told", {})
    monkeypatch.setattr(Registry, "_by_kind", dict(Registry._by_kind))
    before = Registry.all_entries()
    monkeypatch.setitem(MEASURES, "mine", "my_measure")
    monkeypatch.setitem(DRIVERS, "mine", "my_driver")
    entries = Registry.all_entries()
    assert entries["measure"] == before.get("measure", {}) | {"mine": "my_measure"}
    assert entries["driver"] == before.get("driver", {}) | {"mine": "my_driver"}
    for table in (MEASURES, DRIVERS):
        monkeypatch.delitem(table, "mine")
    Registry.enter_all(entries | {"of later": {"a": "b"}})
    assert (MEASURES["mine"], DRIVERS["mine"]) == ("my_measure", "my_driver")
    assert dict(Registry("of later", {"own": "x"})) == {"own": "x", "a": "b"}
    for table in (MEASURES, DRIVERS):
        table.pop("mine", None)


def test_a_regulariser_of_ones_own_by_a_name_of_the_package_is_refused() -> None:
    r = np.random.default_rng(0)
    data = mipfs.Instance.from_arrays(r.normal(size=(20, 3)), np.resize([1.0, -1.0], 20))
    with pytest.raises(UsageError, match=r"the regulariser 'ridge' of .*test_plugins has the name of that of mipfs"):
        mipfs.solve(mipfs.Problem(data, M=1, regulariser=OwnRidge()), "gbd")


class OwnRidge(Ridge):
    """A regulariser by a name that is taken."""

    name = "ridge"


def test_a_module_that_enters_nothing_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """But not of one that enters itself, or a module in it, when it is imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    texts = {
        "enters_nothing": "x = 1\n",
        "enters_itself": "from mipfs.measures import MEASURES\nMEASURES['of-itself'] = __name__\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    enter([str(tmp_path / "enters_nothing.py")])
    assert "enters_nothing.py: has none of LOSS (a loss), KIND (a regulariser), choose" in capsys.readouterr().err
    enter([str(tmp_path / "enters_itself.py")])
    assert capsys.readouterr().err == ""
    assert MEASURES.pop("of-itself") == "enters_itself"


def test_a_file_without_its_part_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "without_part.py").write_text("x = 1\n")
    (tmp_path / "of_class.py").write_text("from mipfs.losses.hinge import Hinge as LOSS\n")
    for table in (LOSSES, REGULARISERS, RULES, SEPARATORS):
        monkeypatch.setitem(table, "mine", "without_part")
    for get, message in (
        (get_loss, "loss 'mine': without_part has no LOSS, an object of"),
        (get_regulariser, "regulariser 'mine': without_part has no KIND, a class of"),
        (get_rule, "branching = 'mine': without_part has no choose, a compiled function choose"),
        (get_separator, "separate = 'mine': without_part has no separate, a function separate"),
    ):
        with pytest.raises(UsageError, match=message):
            get("mine")
    monkeypatch.setitem(LOSSES, "mine", "of_class")
    with pytest.raises(UsageError, match=r"LOSS of of_class is a class; it is an object: LOSS = Hinge\(\)"):
        get_loss("mine")
    (tmp_path / "of_number.py").write_text("LOSS = 3\n")
    monkeypatch.setitem(LOSSES, "mine", "of_number")
    with pytest.raises(UsageError, match=r"LOSS of of_number is no object of a class of mipfs.losses.base.Loss"):
        get_loss("mine")
    text = "from dataclasses import dataclass\nfrom mipfs.losses.hinge import Hinge\n\n\n"
    (tmp_path / "of_fields.py").write_text(f"{text}@dataclass\nclass Mine(Hinge):\n    a: int = 1\n\n\nLOSS = Mine()\n")
    monkeypatch.setitem(LOSSES, "mine", "of_fields")
    with pytest.raises(UsageError, match=r"LOSS of of_fields has no hash: @dataclass\(frozen=True\)"):
        get_loss("mine")
    monkeypatch.setitem(LOSSES, "mine", "nowhere_at_all")
    with pytest.raises(UsageError, match="loss 'mine': Python finds no module 'nowhere_at_all'"):
        get_loss("mine")


def test_what_to_cite_is_whole() -> None:
    yaml = pytest.importorskip("yaml")
    said: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert said["version"] == mipfs.__version__
    assert len(said["references"]) == 5
    page = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    for one in said["references"]:
        assert {"title", "authors", "year", "start", "end", "type"} <= one.keys()
        assert f"{one['start']}--{one['end']}" in page
        assert f"{one['authors'][0]['family-names']}, {one['authors'][0]['given-names'][0]}" in page
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "Programming Language :: Python :: 3.11" in project["classifiers"]
