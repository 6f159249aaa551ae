"""Scorecards against every card there is, with scale and intercept by a conic solver."""

from __future__ import annotations

import csv
import io
import itertools
import json
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import mipfs
from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.errors import DataError, MipfsError, UsageError
from mipfs.lab.scorecard import make
from mipfs.lab.scorecard.columns import between, columns_of, snap_values
from mipfs.lab.scorecard.cone import ConeProof, Ground, in_polar, project_on_cone, solve_cone
from mipfs.lab.scorecard.search import BoxSearch
from mipfs.losses import get_loss
from mipfs.problem import Problem
from mipfs.report.blocks import Sentence, Table

LOSSES = ("hinge", "squared-hinge", "logistic")
CREDIT = Path(__file__).parents[2] / "instances" / "credit.csv"


def ground(seed: int, loss: str, bias: bool, n: int = 30, k: int = 3) -> Ground:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, k))
    Z[:, 0] = Z[:, 0] > 0
    y = np.where(Z @ rng.normal(size=k) + rng.normal(size=n) > 0.2, 1.0, -1.0)
    return Ground.gather(Z, rng.uniform(0.5, 2.0, k), y, rng.uniform(0.2, 2.0, n), get_loss(loss), bias)


def least(given: Ground, low: Any, high: Any) -> float:
    """The least objective of every card in a box."""
    n = given.y.size
    totals, length, a, b = cp.Parameter(n), cp.Parameter(nonneg=True), cp.Variable(nonneg=True), cp.Variable()
    m = cp.multiply(given.y, totals * a + b)
    loss = {
        "hinge": lambda: given.c @ cp.pos(1 - m),
        "squared-hinge": lambda: 0.5 * given.c @ cp.square(cp.pos(1 - m)),
        "logistic": lambda: given.c @ cp.logistic(-m),
    }[given.loss.name]()
    problem = cp.Problem(cp.Minimize(0.5 * cp.square(length * a) + loss), [] if given.bias else [b == 0])
    values = []
    for points in itertools.product(*(range(lo, hi + 1) for lo, hi in zip(low, high, strict=True))):
        totals.value, length.value = given.Z @ np.array(points), float(np.linalg.norm(given.d * points))
        values.append(problem.solve(solver=cp.CLARABEL))
    return float(min(values))


@pytest.mark.sampled(11)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_card(loss: str, bias: bool) -> None:
    for seed, (k, most) in enumerate([(3, 1), (2, 2), (2, 3)]):
        given = ground(seed, loss, bias, k=k)
        low, high = np.full(k, -most), np.full(k, most)
        low[1] = 0 if seed == 1 else low[1]
        found = BoxSearch(given, low, high, most, 30, 1e-6, time.monotonic() + 60).run()
        best = least(given, low, high)
        assert found.status is mipfs.Status.OPTIMAL
        assert found.bound <= best * (1 + 1e-7)
        assert found.objective == pytest.approx(best, rel=2e-6)
        assert found.real <= found.objective * (1 + 1e-9)
        assert np.all((found.points >= low) & (found.points <= high))


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("loss", LOSSES)
def test_no_box_has_less_than_its_bound(loss: str) -> None:
    given = ground(5, loss, True)
    rng = np.random.default_rng(7)
    for _ in range(4):
        low = rng.integers(-2, 2, 3)
        high = low + rng.integers(0, 2, 3)
        best = least(given, low, high)
        _, _, alpha = solve_cone(given, low, high)
        for other in (alpha, rng.uniform(0, 1, alpha.size) * given.c):
            bound = ConeProof.of(given, other, 30).bound(given.d, low, high)
            assert bound <= best * (1 + 1e-8)


def test_the_projection_is_that_of_a_quadratic_program() -> None:
    rng = np.random.default_rng(0)
    for _ in range(12):
        low = rng.integers(-3, 3, 4)
        high = low + rng.integers(0, 3, 4)
        d, q = rng.uniform(0.5, 2.0, 4), rng.normal(size=4)
        v, a = cp.Variable(4), cp.Variable(nonneg=True)
        rows = [v >= cp.multiply(d * low, np.ones(4)) * a, v <= cp.multiply(d * high, np.ones(4)) * a]
        value = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v) - q @ v), rows).solve(solver=cp.CLARABEL)
        p = in_polar(q - project_on_cone(q, d * low, d * high), d, low, high)
        assert -0.5 * np.sum((q - p) ** 2) == pytest.approx(value, abs=1e-6)
        for scale in rng.uniform(0, 3, 5):
            inside = scale * d * rng.uniform(low, high)
            assert p @ inside <= 1e-12


def test_columns() -> None:
    values = {"flag": np.array([0.0, 2.0, 2.0, 0.0]), "x": np.array([1.0, 2.0, 3.0, 4.0])}
    flag, *cut = columns_of(values, {"flag": (1.0, 1.0), "x": (2.5, 1.1)}, 2)
    assert (flag.kind, flag.origin, flag.unit, flag.center, flag.size) == ("two values", 0.0, 2.0, 0.5, 0.5)
    assert [column.threshold for column in cut] == [3.0]
    assert cut[0].of(values["x"]).tolist() == [0, 0, 1, 1]
    (_, whole) = columns_of(values, {"flag": (1.0, 1.0), "x": (2.5, 1.1)}, 0)
    assert whole.condition == "per 1.1 above 2.5"
    assert between(0.0, 1.0) == 1.0
    assert 16.1999 < between(16.1999, 16.2345) <= 16.2345
    assert snap_values(np.array([16.2 * (1 + 1e-15), 0.0, -3e-8])).tolist() == [16.2, 0.0, -3e-8]


@pytest.fixture(scope="module")
def card_of(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A table of a word, a flag and numbers, solved with class weights and a sign."""
    rng = np.random.default_rng(3)
    folder = tmp_path_factory.mktemp("card")
    n = 80
    x, z, flag = rng.normal(50, 9, n).round(1), rng.normal(size=n).round(2), rng.integers(0, 2, n)
    score = 0.1 * (x - 50) + 1.5 * flag - z + rng.normal(size=n) * 0.8
    lines = [f"{a},{b},{c},{'bad' if s > 0.5 else 'good'}" for a, b, c, s in zip(x, z, flag, score, strict=True)]
    data = folder / "loans.csv"
    data.write_text("age,saved,late,class\n" + "\n".join(lines) + "\n")
    result = folder / "r.json"
    code = main(
        ["solve", "fsp-m", str(data), "--label", "class", "--positive", "bad", "--scale", "standard", "-p", "M=3",
         "-p", "class_weight=bad:2", "-p", "loss=logistic", "--nonnegative", "age,late", "--json", str(result), "-q"]
    )  # fmt: skip
    assert code == 0
    return result, data


def test_the_objective_is_that_of_the_problem(card_of: tuple[Path, Path]) -> None:
    """Without bins the card is a classifier of (P): its objective is that of the problem at its weights."""
    result = mipfs.Result.load(card_of[0])
    data = mipfs.read(card_of[1], label="class", positive="bad", scale="standard")
    card = mipfs.scorecard(result, data)
    assert card.status is mipfs.Status.OPTIMAL
    problem = mipfs.Problem(data, M=3, loss="logistic", class_weight={"bad": 2.0})
    ids = data.columns_of([column.feature for column in card.columns])
    user = card.scale * np.array(card.points) / np.array([column.unit for column in card.columns])
    origin = card.intercept - float(user @ np.array([column.origin for column in card.columns]))
    at = origin + float(user @ data.shift[ids])
    assert problem.evaluate(ids, user * data.scale[ids], at) == pytest.approx(card.objective, rel=1e-12)
    assert result.objective * (1 - 1e-3) <= card.bound <= card.objective
    assert all(p >= 0 for p, one in zip(card.points, card.columns, strict=True) if one.feature in ("age", "late"))
    assert card.error == pytest.approx(np.mean(card.predict(data) != data.labels.of(data.y)))


@pytest.mark.parametrize("bins", [0, 3])
def test_new_rows_get_the_totals_of_training(card_of: tuple[Path, Path], bins: int) -> None:
    pandas = pytest.importorskip("pandas")
    result = mipfs.Result.load(card_of[0])
    data = mipfs.read(card_of[1], label="class", positive="bad", scale="standard")
    card = mipfs.scorecard(result, data, bins=bins)
    frame = pandas.read_csv(card_of[1])
    np.testing.assert_allclose(card.totals(frame), card.totals_in_training, atol=1e-9)
    np.testing.assert_allclose(card.totals(data), card.totals_in_training, atol=1e-9)
    assert card.is_whole == (bins > 0)
    assert card.to_frame()["points"].tolist() == list(card.points)
    assert sum(row["samples"] for row in card.rates()) == 80


def test_command(card_of: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result, data = map(str, card_of)
    files = tmp_path / "c.json", tmp_path / "c.html"
    assert main(["scorecard", result, data, "--bins", "3", "--json", str(files[0]), "--report", str(files[1])]) == 0
    said = capsys.readouterr().out
    assert "the features are proven" in said
    assert "the points are the best for these features" in said
    document = json.loads(files[0].read_text())
    assert document["bound"] <= document["objective"]
    assert "Scorecard" in files[1].read_text()
    assert main(["scorecard", result, data, "--time-limit", "0", "--json", "-", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["bound"] >= 0.0


def test_a_constant_card_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a rare class: the best card may give everybody one label, whatever the solver's scale makes the threshold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] > 2.0, 1.0, -1.0)
    data = mipfs.Instance.from_arrays(X, y, scale="standard")
    result = mipfs.solve(mipfs.Problem(data, M=1, C=1.0))
    card = mipfs.scorecard(result, data, bins=2)
    assert card.always == -1
    assert (
        "constant: every sample is called -1; to try: solve with -p class_weight=balanced; other --bins, or none"
        in card.summary()
    )
    assert "everybody is -1" in card.summary()
    file = tmp_path / "card.json"
    card.save(file)
    assert mipfs.read_scorecard(file).summary() == card.summary()
    assert card.lead().startswith("Constant: ")


def test_bad_input(card_of: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result, data = map(str, card_of)
    other = tmp_path / "other.csv"
    other.write_text(Path(data).read_text().replace("\n5", "\n6", 1))
    empty = tmp_path / "empty.json"
    document = json.loads(Path(result).read_text())
    empty.write_text(json.dumps(document | {"weights": {}, "objective": None, "status": "NO_SOLUTION"}))
    for arguments, word in (
        ([result, str(other)], "digest"),
        ([str(empty), data], "no classifier"),
        ([result, data, "--points", "0"], "points"),
        ([result, data, "--bins", "1"], "bins"),
        ([result, data, "--bins", "-2"], "bins"),
        ([result, data, "--gap", "2"], "gap"),
        ([result, data, "--time-limit", "-1"], "time"),
    ):
        assert main(["scorecard", *arguments]) == 2, arguments
        said = capsys.readouterr().err
        assert word in said
        assert said.count("\n") == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bins", [0, 3])
def test_a_card_is_read_back_and_scores_by_itself(
    card_of: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], bins: int
) -> None:
    pandas = pytest.importorskip("pandas")
    result = mipfs.Result.load(card_of[0])
    data = mipfs.read(card_of[1], label="class", positive="bad", scale="standard")
    card = mipfs.scorecard(result, data, bins=bins)
    file = tmp_path / "card.json"
    card.save(file)
    back = mipfs.read_scorecard(file)
    assert back.document() == json.loads(file.read_text())
    apart = {"result", "sha256"}  # which name the certificate
    assert {k: v for k, v in back.document().items() if k not in apart} == {
        k: v for k, v in card.document().items() if k not in apart
    }
    assert [str(block) for block in back.blocks()] == [str(block) for block in card.blocks()]
    frame = pandas.read_csv(card_of[1])
    np.testing.assert_array_equal(back.totals(frame), card.totals(frame))
    np.testing.assert_array_equal(back.predict(frame), card.predict(data))
    np.testing.assert_array_equal(back.decision_function(frame) > 0, back.speaks_for(back.totals(frame)))
    new = tmp_path / "new.csv"
    frame.drop(columns="class").to_csv(new, index=False)
    assert main(["predict", str(file), str(new), "--scores"]) == 0
    said = pandas.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(said) == ["label", "total", "score"]
    assert said["label"].tolist() == card.predict(data).tolist()
    np.testing.assert_allclose(said["total"], card.totals(data), atol=1e-8)
    assert main(["evaluate", str(file), str(card_of[1]), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"] == pytest.approx(1.0 - card.error)
    assert main(["predict", str(file), str(new), "--probability"]) == 0
    sure = pandas.read_csv(io.StringIO(capsys.readouterr().out))["probability of bad"]
    scores = card.decision_function(data) - np.log(2.0)  # the class +1 was weighed twice
    np.testing.assert_allclose(sure, 1.0 / (1.0 + np.exp(-scores)), rtol=1e-12)
    assert found["brier"] == pytest.approx(np.mean((sure - (frame["class"] == "bad")) ** 2))
    np.testing.assert_allclose(card.predict_proba(data).sum(axis=1), 1.0)


def test_a_card_is_read_by_itself(card_of: tuple[Path, Path]) -> None:
    """The ranges say what the lines add up to, and what has no probability says the remedy."""
    result = mipfs.Result.load(card_of[0])
    data = mipfs.read(card_of[1], label="class", positive="bad", scale="standard")
    card = mipfs.scorecard(result, data, bins=4)
    tables = {block.title: block for block in card.blocks() if isinstance(block, Table)}
    ranges = tables["The same by ranges, of which one holds"].rows
    for value in (20.0, 41.5, 50.0, 57.2, 80.0):
        lines = [
            p for c, p in zip(card.columns, card.points, strict=True) if c.feature == "age" and value >= c.threshold
        ]
        told = [row for row in ranges if row[0] == "age" and holds(row[1], value)]
        assert len(told) == 1
        assert int(told[0][2]) == sum(lines)
    said = " ".join(block.line for block in card.blocks() if isinstance(block, Sentence))
    assert "every line that holds counts" in said
    assert "has no points: the card needs it" in said
    hinge = replace(card, result=replace(result, params={**result.params, "loss": "hinge"}))
    with pytest.raises(UsageError, match="loss=logistic"):
        hinge.predict_proba(data)


def test_the_best_card_of_the_near_optimal_sets(tmp_path: Path) -> None:
    """As each set's own card is made, one after the other."""
    data = mipfs.read(CREDIT)
    problem = mipfs.Problem(data, C=1.0, M=3)
    result = mipfs.solve(problem, pool_gap=0.05)
    card = mipfs.scorecard(result, data, bins=3)
    assert result.near_optimal is not None
    sets = [tuple(one["selected"]) for one in result.near_optimal["supports"]]
    each = {}
    for names in sets:
        alone = mipfs.solve(problem.replace(forced_in=names, M=len(names)))
        each[frozenset(names)] = mipfs.scorecard(alone, data, bins=3).objective
    assert len(each) > 1
    assert card.objective == pytest.approx(min(each.values()), rel=1e-3)
    assert card.objective == pytest.approx(each[frozenset(card.result.selected)], rel=1e-3)
    first = mipfs.scorecard(result, data, bins=3, near_optimal=False)
    assert first.objective == pytest.approx(each[frozenset(result.selected)], rel=1e-9)
    assert card.among is not None
    assert (card.among.tried, card.among.sets, card.among.first) == (len(sets), len(sets), first.objective)
    assert [one.objective for one in card.among.cards] == sorted(one.objective for one in card.among.cards)
    for one in card.among.cards:
        assert one.objective == pytest.approx(each[frozenset(one.selected)], rel=1e-3)
    best = card.among.cards[0]
    points = [f"{name} {condition} {'0' if not p else f'{p:+d}'}" for name, condition, p in card.to_frame().values]
    assert (best.objective, best.bound, [*best.lines]) == (card.objective, card.bound, points)
    with pytest.raises(UsageError, match="it was scaled 'standard', and this is 'none'"):
        mipfs.scorecard(result, mipfs.read(CREDIT, scale="none"), bins=3)  # where the sets have other SVMs
    said = " ".join(block.line for block in card.blocks() if isinstance(block, Sentence))
    assert f"those of the best card of {len(sets)} near-optimal sets" in said
    card.save(tmp_path / "card.json")
    assert mipfs.verify(mipfs.read_scorecard(tmp_path / "card.json"), data).accepted


@pytest.mark.parametrize("at", ["the first card", "the second card", "the result of the second set"])
def test_an_interrupt_of_one_card_ends_those_of_the_near_optimal_sets(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    data = mipfs.read(CREDIT)
    result = mipfs.solve(mipfs.Problem(data, C=1.0, M=3), pool_size=6)
    assert result.near_optimal is not None
    sets = len(result.near_optimal["supports"])
    made, struck_at = [], {"the first card": 1, "the second card": 2}.get(at)

    class Struck(make.BoxSearch):
        def children(self, node: Any) -> Any:
            if self.nodes == 0:
                made.append(self)
            elif len(made) == struck_at:
                signal.raise_signal(signal.SIGINT)
            return super().children(node)

    def strike(_record: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    def struck(*asked: Any, **how: Any) -> Any:
        return mipfs.drivers.solve(*asked, **how, observers=[strike] if struck_at is None else [])

    monkeypatch.setattr(make, "BoxSearch", Struck)
    monkeypatch.setattr(make, "drivers", SimpleNamespace(solve=struck))
    card = mipfs.scorecard(result, data, bins=4, gap=0.0)
    assert card.among is not None
    assert sets == 6
    assert (card.among.tried, card.among.sets) == (struck_at or 1, sets)
    if at == "the first card":
        assert (card.status, card.stop_reason) == (mipfs.Status.FEASIBLE, mipfs.StopReason.INTERRUPTED)
    assert card.bound <= card.objective
    assert mipfs.verify(card, data).accepted


def test_cards_as_tables(card_of: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of near-optimal sets, the lines of one, and what has none."""
    data, result, card = str(CREDIT), str(tmp_path / "r.json"), str(tmp_path / "c.json")
    cards, lines = tmp_path / "cards.csv", tmp_path / "lines.csv"
    assert main(["solve", "fsp-m", data, "-p", "M=2", "-p", "C=1", "--pool-size", "2", "--json", result, "-q"]) == 0
    made = ["scorecard", result, data, "--bins", "2", "--json", card]
    assert main([*made, "--cards", str(cards)]) == 0
    assert "Cards of the near-optimal sets, the best first" in capsys.readouterr().out
    listed = [*csv.DictReader(cards.open())]
    assert [row["rank"] for row in listed] == ["1", "2"]
    assert main(["table", card, "-o", str(lines), "-q"]) == 0
    found = [f"{row['feature']} {row['condition']} {int(row['points']):+d}" for row in csv.DictReader(lines.open())]
    assert "; ".join(found) == listed[0]["lines"].replace(" 0", " +0")
    assert main(["table", card, "--near-optimal"]) == 2
    assert main([*made, "-q", "--no-near-optimal", "--cards", str(cards)]) == 2
    assert main([*made, "-q", "--cards", "cards.txt"]) == 2


def holds(words: str, value: float) -> bool:
    """Whether a range in words, such as "from 40, below 56", has the value."""
    if words == "any":
        return True
    ends = dict(part.split() for part in words.split(", "))
    return float(ends.get("from", "-inf")) <= value < float(ends.get("below", "inf"))


def test_a_card_that_is_none(card_of: tuple[Path, Path], tmp_path: Path) -> None:
    result = mipfs.Result.load(card_of[0])
    data = mipfs.read(card_of[1], label="class", positive="bad", scale="standard")
    good = mipfs.scorecard(result, data, bins=2).document()
    changes: list[dict[str, Any]] = [
        {"kind": "result"}, {"scale": None}, {"points": 1, "card": []}, {"status": "BEST"}, {"totals": 3},
        {"card": [{**good["card"][0], "unit": 0.0}]}, {"card": [{**good["card"][0], "points": 1.5}]},
        {"card": [{**good["card"][0], "feature": "other"}]}, {"result": {"selected": ["age"]}}, {"schema": 2},
    ]  # fmt: skip
    file = tmp_path / "card.json"
    for change in changes:
        file.write_text(json.dumps(good | change))
        with pytest.raises(DataError, match=r"card\.json"):
            mipfs.read_scorecard(file)
    with pytest.raises(DataError):
        mipfs.read_scorecard(card_of[0])


@pytest.mark.parametrize("unit", [1e-8, 1e-9, 2.0**-300, 2.0**300])
def test_a_card_of_columns_in_any_unit_is_that_of_the_columns_near_1(unit: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X @ [1.0, -1.0] + 0.3 * rng.normal(size=40) > 0, 1, -1)
    cards = []
    for size in (1.0, unit):
        data = Instance.from_arrays(X * size, y)
        result = mipfs.solve(Problem(data, C=1.0 / size / size, loss="logistic"))
        cards.append(mipfs.scorecard(result, data, points=2, time_limit=20))
    near, far = cards
    assert far.points == near.points
    assert far.gap < 1e-2
    assert far.objective * unit * unit == pytest.approx(near.objective, rel=1e-2)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_a_card_at_a_large_C_is_there_or_one_line_says_why_not(loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X @ [1.0, -1.0] + 0.3 * rng.normal(size=40) > 0, 1, -1)
    data = Instance.from_arrays(X, y)
    result = mipfs.solve(Problem(data, C=1e12, loss=loss), time_limit=10)
    try:
        card = mipfs.scorecard(result, data, points=2, time_limit=5)
    except MipfsError as refused:
        reason = str(refused)
    else:
        assert card.points == (1, -1)
        return
    assert "take a smaller C" in reason
