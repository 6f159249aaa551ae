"""What a card prints, read back and added up by hand, against what it decides."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.lab import page
from mipfs.result.prediction import as_given

pandas = pytest.importorskip("pandas")

SPREADS = ((0.0, 1.0), (1.7e9, 900.0), (1.7e18, 1e12), (-4e5, 0.3), (0.0, 1e-9), (0.0, 3e-5), (3e4, 2e8), (1.0, 1e-4))
"""Where the values of a column lie, and how far apart: time stamps in seconds and nanoseconds, tiny and huge units."""


def table(seed: int) -> Any:
    """Columns of random sizes, one of them of two values, with labels."""
    rng = np.random.default_rng(seed)
    n = 120
    kinds = rng.choice(len(SPREADS), 3, replace=False)
    raw = rng.normal(size=(n, 4))
    raw[:, 3] = raw[:, 3] > 0
    y = np.where(raw @ rng.normal(size=4) + 0.3 * rng.normal(size=n) > 0.2, "yes", "no")
    columns = {f"c{j}": SPREADS[k][0] + SPREADS[k][1] * raw[:, j] for j, k in enumerate(kinds)}
    if seed % 2:
        columns = {name: np.array([float(f"{value:.7g}") for value in column]) for name, column in columns.items()}
    place, size = SPREADS[kinds[0]]
    return pandas.DataFrame({**columns, "two": place + size * raw[:, 3], "label": y})


def card_of(frame: Any, seed: int, bins: int) -> mipfs.Scorecard:
    scale = ("standard", "unit")[seed % 3 == 2]
    data = mipfs.read(frame, label="label", scale=scale)
    result = mipfs.solve(mipfs.Problem(data, M=4, C=1.0 if scale == "standard" else 100.0), time_limit=20)
    return mipfs.scorecard(result, data, points=3, bins=bins, gap=0.05, time_limit=5)


def counted(condition: str, values: Any) -> Any:
    """What a line of a card gives points for, of the values (n,) that stand in the table."""
    if found := re.fullmatch(r"at least (\S+)", condition):
        return (values >= float(found[1])).astype(float)
    if found := re.fullmatch(r"is (\S+?)(?:, not (\S+))?", condition):
        return np.isclose(values, float(found[1]), rtol=1e-11, atol=0.0).astype(float)
    found = re.fullmatch(r"per (\S+)(?: above (\S+))?", condition)
    assert found
    return (values - float(found[2] or 0.0)) / float(found[1])


def added(lines: Any, frame: Any) -> Any:
    return sum(float(points) * counted(condition, frame[name].to_numpy()) for name, condition, points in lines)


def lines_of(text: str) -> list[tuple[str, str, str]]:
    """The card in a summary."""
    body = text.split("points\n", 1)[1].split("\n\n")[0]
    return [tuple(re.split(r"\s{2,}", line.strip())) for line in body.splitlines()]  # type: ignore[misc]


def decided(text: str, totals: Any) -> Any:
    """What the rule under a card says of totals."""
    if found := re.search(r"a total of (\S+) or more is (\w+), a lower one (\w+)", text):
        return np.where(totals >= float(found[1]), found[2], found[3])
    if found := re.search(r"a total above (\S+) is (\w+), a lower one (\w+)", text):
        return np.where(totals > float(found[1]), found[2], found[3])
    found = re.search(r"everybody is (\w+)", text)
    assert found
    return np.full(len(totals), found[1])


@pytest.mark.parametrize("bins", [0, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_printed_card_adds_up_to_its_totals(seed: int, bins: int) -> None:
    frame = table(seed)
    card = card_of(frame, seed, bins)
    totals, said = card.totals(frame), card.summary()
    cells = card.to_frame().itertuples(index=False)
    html = page.html([page.Item("card", card)])
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)]
    lined = [tuple(map(unescape, row)) for row in rows if len(row) == 3 and row[0] in frame.columns]
    tables = [row for row in lined if not row[1].startswith(("below ", "from ", "any"))]  # those are ranges
    sizes = 1e-11 * (1.0 + np.abs(totals) + abs(card.threshold))
    for lines in (cells, lines_of(said), tables):
        by_hand = added(lines, frame)
        assert np.all(np.abs(by_hand - totals) <= sizes)
        for text in (said, unescape(re.sub(r"<[^>]+>", "", html))):
            rule = decided(text, by_hand if bins else totals)
            np.testing.assert_array_equal(rule, card.predict(frame))
    score = re.search(r"score\s+(\S+) · total (\S+)", said)
    assert score
    np.testing.assert_array_equal(float(score[1]) * totals + float(score[2]) > 0, card.predict(frame) == "yes")
    assert np.mean(card.predict(frame) != frame["label"]) == card.error
    assert sum(row["samples"] for row in card.rates()) == len(frame)
    told = re.search(r"labelled yes\s*\n(.*?)\n\n", said, re.DOTALL)
    assert told
    ends = [re.match(r"\s*(\S+)(?: to (\S+))?", line) for line in told[1].splitlines()]
    printed = [float(one[k] or one[1]) for one in ends if one for k in (1, 2)]
    assert all(b < a for a, b in zip(printed[2::2], printed[1::2], strict=False))  # no two lines meet


@pytest.mark.parametrize("seed", range(3))
def test_a_card_is_scored_as_its_document_says(seed: int, tmp_path: Path) -> None:
    """Rule 2 of docs/scorecard.md, computed with fractions of the decimals from the JSON alone."""
    from fractions import Fraction

    frame = table(seed)
    card = card_of(frame, seed, 0)
    card.save(tmp_path / "c.json")
    stated = json.loads((tmp_path / "c.json").read_text())
    assert stated["version"] == 2
    threshold = -stated["intercept"] / stated["scale"]
    for i, (total, label) in enumerate(zip(card.totals(frame), card.predict(frame), strict=True)):
        exact, size = Fraction(0), abs(Fraction(threshold))
        for one in stated["card"]:
            value, origin, unit = (Fraction(x) for x in (frame[one["feature"]][i], one["origin"], one["unit"]))
            if one["kind"] == "two values":
                value = Fraction(float(f"{float(value):.11e}"))
            exact += one["points"] * (value - origin) / unit
            size += abs(one["points"] * (value - origin) / unit)
        assert abs(Fraction(total) - exact) <= size * Fraction(1, 10**12)
        assert label == ("yes" if total > threshold else "no")


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-9, 1e-11, 1e8])
def test_totals_of_any_size_decide_as_their_rule_says(unit: float) -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(40, 2))
    score = base @ [1.0, -1.0] + 0.3 * rng.normal(size=40)
    y = np.where(score > np.median(score), 1, -1)
    X = base * unit
    data = mipfs.Instance.from_arrays(X, y)
    result = mipfs.solve(mipfs.Problem(data, C=min(1.0 / unit**2, 1e17), loss="logistic"), time_limit=10)
    card = mipfs.scorecard(result, data, points=2, time_limit=5)
    total = sum(p * X[:, int(c.feature[1:]) - 1] for p, c in zip(card.points, card.columns, strict=True))
    np.testing.assert_array_equal(card.predict(X), np.where(total > -card.intercept / card.scale, 1, -1))
    assert card.error == np.mean(card.predict(X) != y)


def test_a_card_without_a_version_is_scored_by_the_first_rule(tmp_path: Path) -> None:
    """Totals to 9 decimals, whatever their size: those of 1e-11 are all 0 there, and decide so for ever."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    score = X @ [1.0, -1.0] + 0.3 * rng.normal(size=40)
    X, y = X * 1e-11, np.where(score > np.median(score), 1, -1)
    data = mipfs.Instance.from_arrays(X, y)
    result = mipfs.solve(mipfs.Problem(data, C=1e17, loss="logistic"), time_limit=10)
    card = mipfs.scorecard(result, data, points=2, time_limit=5)
    document = card.document()
    for name in ("version", "bins", "sha256"):
        del document[name]
    file = tmp_path / "c.json"
    file.write_text(json.dumps(document))
    old = mipfs.read_scorecard(file)
    assert "version" not in old.document()
    totals = sum(p * X[:, int(c.feature[1:]) - 1] for p, c in zip(card.points, card.columns, strict=True))
    np.testing.assert_array_equal(old.totals(X), totals)
    expected = np.where(np.round(totals, 9) > -card.intercept / card.scale, 1, -1)
    np.testing.assert_array_equal(old.predict(X), expected)
    assert len(set(expected.tolist())) == 1
    assert len(set(card.predict(X).tolist())) == 2
    file.write_text(json.dumps(document | {"version": 3}))
    with pytest.raises(mipfs.errors.DataError, match="later version"):
        mipfs.read_scorecard(file)


def test_values_that_were_scaled_are_those_of_the_table() -> None:
    rng = np.random.default_rng(1)
    for place, spread in SPREADS:
        X = np.array(
            [float(f"{value:.13g}") for value in place + spread * rng.normal(size=200)] + [place, place + spread]
        )
        shift, scale = X.mean(), X.std()
        divided = (X - shift) / scale
        back = as_given(divided[:, None], np.array([shift]), np.array([scale]))[:, 0]
        np.testing.assert_array_equal((back - shift) / scale, divided)
        assert np.mean(back == X) > 0.97
