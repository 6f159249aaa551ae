"""Packages offer losses, regularisers and branching rules as entry points; what to cite is written whole."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.branching import RULES, check_rule
from mipfs.cli.options import enter
from mipfs.errors import UsageError
from mipfs.losses import LOSSES
from mipfs.plumbing import registry
from mipfs.regularisers import REGULARISERS, get_regulariser

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
