"""Whoever has the page of a card, and nothing else, scores raw rows by hand and has the program's totals."""

from __future__ import annotations

import csv
import html.parser
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.cli import main

ROWS = 20
RANGE = re.compile(r"(?:from (?P<low>\S+?))?(?:, )?(?:below (?P<high>\S+))?(?: but not (?P<but>.*))?")


class PageTables(html.parser.HTMLParser):
    """The tables of a page, each a list of rows of texts, and all of its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self.is_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        self.is_cell = tag in ("td", "th") or (self.is_cell and tag not in ("tr", "table"))
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.is_cell = self.is_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.is_cell:
            self.tables[-1][-1][-1] += data.strip()


def number_of(text: str) -> int:
    return int(text.replace("−", "-"))


def table_of(page: PageTables, head: list[str]) -> list[list[str]]:
    (found,) = [table[1:] for table in page.tables if table[0] == head]
    return found


def holds(said: str, cell: str) -> bool:
    """Whether a range of the page holds for a raw cell, as its words say."""
    if said.startswith("is "):
        return cell == "" if said == "is missing" else cell != "" and float(cell) == float(said[3:])
    named = RANGE.fullmatch("" if said == "any" else said)
    assert named, said
    if cell == "" or (named["but"] and float(cell) in map(float, named["but"].split(" or "))):
        return False
    return float(named["low"] or "-inf") <= float(cell) < float(named["high"] or "inf")


def by_lines(page: PageTables, row: dict[str, str], codes: dict[str, list[float]]) -> int:
    """Every line that holds counts; a missing cell or a special code counts in its own line alone."""
    total = 0
    for feature, condition, points in table_of(page, ["feature", "condition", "points"]):
        assert condition == "is 1"
        name, _, said = feature.partition(" ")
        said = said.partition(" but not ")[0]
        is_code = row[name] != "" and float(row[name]) in codes.get(name, [])
        total += number_of(points) if holds(said, row[name]) and (said.startswith("is ") or not is_code) else 0
    return total


def by_ranges(page: PageTables, row: dict[str, str]) -> dict[str, int]:
    """Of every column that is shown by ranges the points of the one that holds; none holds for what has no points."""
    found: dict[str, int] = {}
    for feature, said, points in table_of(page, ["feature", "range", "points"]):
        if holds(said, row[feature]):
            assert feature not in found, "two ranges hold"
            found[feature] = number_of(points)
    return found


def loans(path: Path, seed: int) -> list[dict[str, str]]:
    """A raw table with empty cells, a code below all numbers and one above them."""
    draw, found = random.Random(seed), []
    for _ in range(150):
        income, age, late = round(draw.gauss(35, 12), 1), draw.randint(18, 79), draw.randint(0, 3)
        lean = 0.05 * (income - 35) + 0.03 * (age - 45) - (late - 1) + draw.gauss(0, 0.7)
        cells, odd = [str(income), str(age), str(late)], draw.random()
        if odd < 0.3:
            cells[0], lean = [("", lean - 2), ("-9", lean + 1), ("999", lean - 1)][int(odd * 10)]
        found.append(dict(zip(["income", "age", "late", "risk"], [*cells, "good" if lean > 0 else "bad"], strict=True)))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, found[0])
        writer.writeheader()
        writer.writerows(found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_twenty_rows(tmp_path: Path, seed: int) -> None:
    rows = loans(tmp_path / "loans.csv", seed)
    raw, cut, result, card, page = (
        str(tmp_path / name) for name in ("loans.csv", "cut.csv", "r.json", "c.json", "p.html")
    )
    special = ["--special", "income=-9,999", "--features", "3", "--each", "2"]
    assert main(["bins", raw, "-o", cut, "--thresholds", "3", *special, "--label", "risk", "-q"]) == 0
    solved = ["solve", "fsp-m", cut, "-p", "M=8", "-p", "loss=logistic", "--subject-to", str(tmp_path / "cut.lp")]
    assert main([*solved, "--positive", "good", "--json", result, "-q"]) == 0
    assert main(["scorecard", result, cut, "--json", card, "-q"]) == 0
    assert main(["report", card, "-o", page, "-q"]) == 0
    read = PageTables()
    read.feed(Path(page).read_text())
    assert "a missing cell or a special code counts in its own line alone" in read.text
    found, data = mipfs.read_scorecard(card), mipfs.read(cut, positive="good")
    totals = found.totals(data.block().values * data.scale + data.shift)
    odd = [i for i, row in enumerate(rows) if row["income"] in ("", "-9", "999")][: ROWS // 2]
    plain = [i for i in range(len(rows)) if i not in odd][: ROWS - len(odd)]
    assert {rows[i]["income"] for i in odd} >= {"", "-9", "999"}
    shown = {line[0] for line in table_of(read, ["feature", "range", "points"])}
    decisions = dict.fromkeys(totals.tolist(), "")
    for total, decision, *_ in table_of(read, ["total", "decision", "samples", "labelled good", "probability of good"]):
        ends = [number_of(one) for one in total.split(" to ")]
        decisions |= {one: decision for one in decisions if ends[0] <= one <= ends[-1]}
    predicted = found.predict(data.block().values * data.scale + data.shift)
    for i in (*odd, *plain):
        total = by_lines(read, rows[i], {"income": [-9.0, 999.0]})
        assert total == totals[i], rows[i]
        assert decisions[total] == predicted[i]
        ranges = by_ranges(read, rows[i])
        assert {*ranges} | {name for name in shown if rows[i][name] == ""} == shown
        others = [
            line for line in json.loads(Path(card).read_text())["card"] if line["feature"].split()[0] not in shown
        ]
        rest = sum(
            line["points"]
            for line in others
            if holds(line["feature"].partition(" ")[2], rows[i][line["feature"].split()[0]])
        )
        assert sum(ranges.values()) + rest == total
    assert np.unique(totals).size > 3
