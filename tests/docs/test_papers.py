"""Every name on the page of the papers exists: Python names, commands, files, methods, options."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import mipfs
from mipfs import drivers, estimators, formulation
from mipfs.atoms.registry import KINDS
from mipfs.cli.app import COMMANDS
from mipfs.generators import tan_2014
from mipfs.lab import baselines, sketch
from mipfs.lab.experiments import STUDIES
from mipfs.lab.studies.bench_methods import methods
from mipfs.lab.studies.ladder import RUNGS
from mipfs.losses import LOSSES
from mipfs.measures import MEASURES

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))
OTHER = {
    ".toml", "[cost]", "[penalty]", "[generator]", "budget", "scores", "unit", "atoms=groups", "margin_all", "violated",
    "sparsity", "result.selected", "result.plot_gap", "select.cardinality",
}  # fmt: skip
"""What is no name to look up: parts of a file, a scale, attributes that stand behind the name of their class."""


@cache
def words() -> set[str]:
    """Names of the registries."""
    found = {*methods(), *baselines.available(), *baselines.references(), *drivers.DRIVERS, *KINDS, *LOSSES, *MEASURES}
    return found | {entry.name for entry in formulation.table()} | {*sketch.available(), *RUNGS, *mipfs.__all__}


@cache
def keywords() -> dict[str, str]:
    """What options of drivers, parameters of estimators and of functions are called, with what they may be."""
    found: dict[str, str] = {}
    for name in drivers.DRIVERS:
        for field in dataclasses.fields(drivers.get_driver(name).Options):
            found[field.name] = found.get(field.name, "") + str(field.type)
    makers: list[Any] = [getattr(estimators, name) for name in estimators.__all__]
    makers += [mipfs.Problem, sketch.select, mipfs.path, tan_2014, *(KINDS[k].make for k in KINDS)]
    makers += [importlib.import_module("mipfs.models.reduced_mkl").declare]
    for maker in makers:
        for name in inspect.signature(maker).parameters:
            found.setdefault(name, "")
    return found


def dotted(name: str) -> bool:
    """Whether a dotted name leads somewhere, in the package or in `mipfs.models`."""
    full = name if name.startswith("mipfs.") else f"mipfs.{name}"
    parts = full.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def exists(name: str) -> bool:
    """Whether a name on the page is one of the package, of its commands or of its files."""
    if name in OTHER or name in words():
        return True
    if name.startswith("mipfs ") and not name.startswith("mipfs."):
        typed = name.split()
        if typed[1] == "generate" and len(typed) > 2:
            text = (ROOT / "mipfs" / "generators" / "__init__.py").read_text(encoding="utf-8")
            return f'"{typed[2]}"' in text
        return typed[1] in COMMANDS and (typed[1] != "study" or len(typed) == 2 or typed[2] in STUDIES)
    if name.startswith("--"):
        option = name.split()[0]
        return any(f'"{option}"' in path.read_text(encoding="utf-8") for path in (ROOT / "mipfs" / "cli").glob("*.py"))
    given = re.fullmatch(r"(\w+)=(\S*)", name)
    if given is not None:
        key, value = given[1], given[2].strip('"')
        allowed = keywords().get(key)
        return allowed is not None and ("Literal" not in allowed or not value or f"'{value}'" in allowed)
    if "/" in name:
        return (ROOT / name).exists()
    return bool(re.fullmatch(r"[\w.]+", name)) and dotted(name)


def test_every_name_exists() -> None:
    missing = [name for name in NAMES if not exists(name)]
    assert not missing, missing
    assert len(NAMES) > 120


def test_the_check_is_one() -> None:
    for wrong in (
        "mipfs.models.fsp_z",
        "rfe-hinges",
        "mipfs slove",
        "mipfs study aytugs",
        "--lamda auto",
        "reports/none.md",
        'master="lp"',
        "Rows2",
    ):
        assert not exists(wrong), wrong


def test_every_paper_and_what_is_not_here() -> None:
    for paper in ("Aytug 2015", "Tan 2010", "Tan 2014", "Mao 2013", "Paul 2016"):
        assert f"\n## {paper}" in TEXT
    for line in TEXT.splitlines():
        if line.startswith("| ") and "not here" in line.lower():
            assert re.search(r"[Nn]ot here( yet)?( as an? \w+)?[:,]|because|: ", line), line
