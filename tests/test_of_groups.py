"""Rows that name a group: what the written rows allow is what the group's own meaning allows, over all selections."""

from __future__ import annotations

import dataclasses
import itertools
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mipfs
import mipfs.atoms
from mipfs.data.instance import Row
from mipfs.errors import DataError, RowError, UsageError
from mipfs.selection.of_groups import compile_rows

NAMES = ("a", "b", "h1", "h2", "h3", "j1", "j2")
INDEX = {name: j for j, name in enumerate(NAMES)}
GROUPS = {"home": ("h1", "h2", "h3"), "job": ("j1", "j2"), "b": ("a", "h1")}
"""A feature is called b, too: it is meant."""


def allowed(row: Row, sigma: dict[str, float]) -> bool:
    value = {**{name: max(sigma[one] for one in GROUPS[name]) for name in GROUPS}, **sigma}
    return row.lb <= sum(a * value[name] for name, a in row.terms.items()) <= row.ub


@pytest.mark.parametrize("seed", range(60))
def test_rows_say_what_the_group_means(seed: int) -> None:
    r = np.random.default_rng(seed)
    chosen = r.choice(["home", "job", "a", "b", "h1"], int(r.integers(1, 5)), replace=False)
    terms = {str(name): float(r.integers(-2, 3) or 1) for name in chosen}
    low, high = sorted(r.integers(-2, 4, 2).tolist())
    lb, ub = [(-math.inf, high), (low, math.inf), (low, high)][seed % 3]
    row = Row("row", terms, float(lb), float(ub))
    rows = compile_rows([row], INDEX, GROUPS)
    for bits in itertools.product((0.0, 1.0), repeat=len(NAMES)):
        ends = itertools.product((0.0, 1.0), repeat=len(rows.extra))
        found = any(rows.hold(np.array([*bits, *z])) for z in ends)
        assert found == allowed(row, dict(zip(NAMES, bits, strict=True)))


def test_what_needs_no_variable_has_none() -> None:
    implied = Row("implies[home -> job]", {"home": 1.0, "job": -1.0}, -math.inf, 0.0)
    rows = compile_rows([implied], INDEX, GROUPS)
    assert len(rows.extra) == 0
    assert rows.names == tuple(f"implies[home -> job] ({one})" for one in GROUPS["home"])
    one = compile_rows([Row("one", {"home": 1.0}, 1.0, math.inf)], INDEX, GROUPS)
    assert one.matrix.toarray().tolist() == [[0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0]]
    two = Row("two", {"home": 1.0, "job": 1.0, "a": 1.0}, 2.0, math.inf)
    assert compile_rows([two], INDEX, GROUPS).extra.names == ("home", "job")
    with pytest.raises(RowError, match="no feature is called 'house'"):
        compile_rows([Row("row", {"house": 1.0}, 0.0, 1.0)], INDEX, GROUPS)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    r = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "a": r.normal(size=n),
            "b": r.normal(size=n),
            "home": r.choice(["own", "rent", "family"], n),
            "job": r.choice(["x", "y", "z"], n),
        }
    )
    score = frame.a + 1.5 * (frame.home == "own") - (frame.job == "x") + r.normal(0, 0.5, n)
    frame["y"] = np.where(score > 0.2, "p", "n")
    path = tmp_path_factory.mktemp("words") / "rw.csv"
    frame.to_csv(path, index=False)
    return path


def solved(path: Path, text: str, whole: bool = False, **options: Any) -> Any:
    path.with_suffix(".toml").write_text('[data]\npositive = "p"\n' + text)
    data = mipfs.read(path, label="y", checks=False)
    atoms = mipfs.atoms.make("groups", data) if whole else None
    found = mipfs.solve(mipfs.Problem(data, atoms=atoms, **({"M": 3, "C": 1.0} | options)))
    assert found.status.name == "OPTIMAL"
    assert mipfs.verify(found, data)
    return found


def test_a_column_of_words_is_paid_once_and_ruled_by_its_name(table: Path) -> None:
    cost = "[cost]\nhome = 3\njob = 2\na = 2\n[select]\nbudget = 5\n"
    columns = {name.split("=")[0] for name in solved(table, cost, M=5).selected}
    assert sum({"home": 3, "job": 2, "a": 2, "b": 0}[name] for name in columns) <= 5
    rules = '[select]\nimplies = [["home", "b"]]\nforced_in = ["home"]\nforced_out = ["job"]\n'
    found = solved(table, rules).selected
    assert "b" in found
    assert any(name.startswith("home=") for name in found)
    assert not any(name.startswith("job=") for name in found)
    signs = solved(table, '[weights]\nnonpositive = ["home"]\nbounds = { job = [0.0, 2.0] }\n', M=5)
    assert all(w <= 0 for name, w in signs.weights.items() if name.startswith("home="))
    assert all(0 <= w <= 2 for name, w in signs.weights.items() if name.startswith("job="))


def test_a_budget_is_that_of_the_best_affordable_columns(table: Path) -> None:
    """Against the problems in which the columns that are not paid are left out."""
    cost = {"home": 3, "job": 2, "a": 2}
    found = solved(table, "[cost]\nhome = 3\njob = 2\na = 2\n[select]\nbudget = 4\n", M=4).objective
    best = math.inf
    for paid in itertools.product((False, True), repeat=3):
        left = [name for name, is_paid in zip(cost, paid, strict=True) if not is_paid]
        if sum(cost.values()) - sum(cost[name] for name in left) <= 4:
            text = f"[select]\nforced_out = [{', '.join(map(repr, left))}]\n"
            best = min(best, solved(table, text, M=4).objective)
    assert found == pytest.approx(best, rel=1e-4)


def test_the_same_rules_where_columns_are_selected_whole(table: Path) -> None:
    rules = '[cost]\nhome = 3\na = 2\n[select]\nbudget = 4\nimplies = [["home", "b"]]\n'
    found = solved(table, rules, whole=True)
    assert not {"home", "a"} <= {*found.selected}
    assert "home" not in found.selected or "b" in found.selected
    with pytest.raises(UsageError, match=r"about 'home=own', which is not among the atoms"):
        solved(table, '[select]\nforced_in = ["home=own"]\n', whole=True)


@pytest.mark.parametrize("text", ["[cost]\nhouse = 3\n", '[select]\nforced_in = ["house"]\n', "[penalty]\nhome = 1\n"])
def test_names_that_are_nothing_are_refused(table: Path, text: str) -> None:
    with pytest.raises(DataError, match="no feature is called 'ho"):
        solved(table, text)


def test_an_estimator_takes_the_names(table: Path) -> None:
    frame = pd.read_csv(table)
    model = mipfs.FSPClassifier(
        M=4, C=1.0, cost={"home": 3, "a": 2}, budget=4, forced_in=["home"], monotonic_cst={"job": -1}
    )
    found = model.fit(frame.drop(columns="y"), frame.y).result_
    assert any(name.startswith("home=") for name in found.selected)
    assert "a" not in found.selected
    assert all(w <= 0 for name, w in found.weights.items() if name.startswith("job="))


def test_a_checker_finds_the_rows_of_groups_again_and_misses_one_that_is_gone(table: Path, tmp_path: Path) -> None:
    """In the statement they are over features; a variable for a group counts where it is 0 or 1 and tied to it."""
    data = mipfs.read(shutil.copy(table, tmp_path / "alone.csv"), label="y")
    budget = Row("budget", {"a": 1.0, "home": 2.0, "job": 3.0}, -math.inf, 4.0, "rw.toml:2")
    implied = Row("implies[home -> job]", {"home": 1.0, "job": -1.0}, -math.inf, 0.0, "rw.toml:3")
    for rows in ((implied,), (budget, implied)):
        asking = dataclasses.replace(data, rows=rows)
        result = mipfs.solve(mipfs.Problem(asking, M=3))
        report = mipfs.verify(result, asking)
        assert (report.accepted, report.differs) == (True, ())
        plain = mipfs.solve(mipfs.Problem(data, M=3))
        assert len(mipfs.verify(plain, asking).differs) == len(rows)
    untied = dataclasses.replace(asking, rows=tuple(budget if row is implied else row for row in rows))
    assert mipfs.verify(result, untied).differs == ()
    other = dataclasses.replace(asking, rows=(dataclasses.replace(budget, ub=3.0), implied))
    assert [said.split(":")[0] for said in mipfs.verify(result, other).differs] == ["the data asks for row 'budget'"]
