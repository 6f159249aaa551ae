"""Features and points together: against every card there is, and both checkers on the proof."""

from __future__ import annotations

import itertools
import json
import math
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mipfs
from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.scorecard import together
from mipfs.lab.scorecard.columns import columns_of
from mipfs.lab.scorecard.cone import numbered_rows
from mipfs.lab.scorecard.within import largest_sum
from tests.certificate.test_second_reading import judged

Array = npt.NDArray[np.float64]
LOSSES = ("hinge", "squared-hinge", "logistic")
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
ROUGH, NARROWED = 16, 42
"""Steps of golden section: an interval of 1 becomes 5e-4, and 2e-9."""
NEAR = 1.3
"""Times the least rough value: cards that are looked at closely."""
PROBLEMS = 300


def loss_of(margins: Array, loss: str) -> Array:
    if loss == "logistic":
        return np.logaddexp(0.0, -margins)
    short = np.maximum(0.0, 1.0 - margins)
    return 0.5 * short * short if loss == "squared-hinge" else short


def narrowed(value: Any, low: Array, high: Array, steps: int) -> Array:
    """The least value of convex functions, one for every entry of low and high, by golden section."""
    for _ in range(steps):
        step = GOLDEN * (high - low)
        left, right = high - step, low + step
        lower = value(left) <= value(right)
        low, high = np.where(lower, low, left), np.where(lower, right, high)
    return np.asarray(value(0.5 * (low + high)))


def least_of_all(
    Z: Array,
    s: Array,
    owner: Any,
    y: Array,
    c: Array,
    loss: str,
    bias: bool,
    K: int,
    M: int,
    allowed: Callable[[set[int]], bool] = lambda used: True,
) -> float:
    """The least objective of every card, each at its own best scale and intercept: no code of the package."""
    cards = []
    for card in itertools.product(range(-K, K + 1), repeat=Z.shape[1]):
        used = {owner[j] for j, points in enumerate(card) if points}
        if len(used) <= M and math.gcd(*card) == 1 and allowed(used):
            cards.append(card)
    points = np.array(cards, dtype=float)
    rough = least_by_card(points, Z, s, y, c, loss, bias, ROUGH)
    near = rough <= NEAR * rough.min()
    return float(least_by_card(points[near], Z, s, y, c, loss, bias, NARROWED).min())


def least_by_card(points: Array, Z: Array, s: Array, y: Array, c: Array, loss: str, bias: bool, steps: int) -> Array:
    """The least objective of every card (N,) over its scale and intercept."""
    totals, lengths = points @ Z.T, np.sqrt(np.square(points * s).sum(axis=1))
    margins_at = totals * y

    def at(a: Array, b: Array) -> Array:
        found = loss_of(margins_at * a[:, None] + y * b[:, None], loss) @ c
        return np.asarray(0.5 * (lengths * a) ** 2 + found)

    def best_intercept(a: Array) -> Array:
        if not bias:
            return at(a, np.zeros_like(a))
        most = 12.0 + a * np.abs(totals).max(axis=1)
        return narrowed(lambda b: at(a, b), -most, most, steps)

    zero = np.zeros(len(points))
    nothing = best_intercept(zero)
    return np.minimum(narrowed(best_intercept, zero, np.sqrt(2.0 * nothing) / lengths, steps), nothing)


def drawn(seed: int) -> tuple[Instance, dict[str, Any]]:
    """A small problem with numbers of two values and of many, and what is asked of it."""
    rng = np.random.default_rng(seed)
    bins = int(rng.choice([0, 0, 2, 3]))
    n, p = int(rng.integers(16, 40)), 3 if bins == 3 else int(rng.integers(3, 6))
    X = np.round(rng.normal(size=(n, p)), 2) * rng.choice([0.1, 1.0, 30.0], p)
    X[:, 0] = rng.choice([0.3, 2.5], n)
    lean = X / np.abs(X).max(axis=0) @ rng.normal(size=p) + 0.4 * rng.normal(size=n)
    y = np.where(lean > np.median(lean), 1.0, -1.0)
    scale = "standard" if bins or rng.random() < 0.7 else "none"
    weights = None if rng.random() < 0.6 else rng.choice([0.5, 1.0, 3.0], n)
    asked = {
        "loss": LOSSES[seed % 3],
        "bias": bool(rng.random() < 0.8),
        "C": float(rng.choice([0.1, 1.0, 10.0])),
        "M": int(rng.integers(1, 3 if bins != 3 else 2) + 0),
        "bins": bins,
        "K": int(rng.choice([2, 3])) if not bins else 2,
    }
    return Instance.from_arrays(X, y, scale=scale, sample_weight=weights), asked


def best_card(data: Instance, asked: dict[str, Any]) -> float:
    raw = data.block().values * data.scale + data.shift
    scales = {name: (data.shift[j], data.scale[j]) for j, name in enumerate(data.feature_names)}
    raw = np.round(raw, 6)
    columns = list(columns_of({name: raw[:, j] for j, name in enumerate(data.feature_names)}, scales, asked["bins"]))
    Z = np.column_stack([column.of(raw[:, data.index[column.feature]]) - column.center for column in columns])
    s, owner = np.array([column.size for column in columns]), [data.index[column.feature] for column in columns]
    c = asked["C"] * data.sample_weight
    return least_of_all(Z, s, owner, data.y, c, asked["loss"], asked["bias"], asked["K"], asked["M"])


@pytest.mark.sampled(307)
@pytest.mark.filterwarnings("ignore::mipfs.DataWarning")
@pytest.mark.parametrize("seed", range(PROBLEMS))
def test_every_card_of_every_set(seed: int) -> None:
    """The card is the best of all to its gap, no card lies below its bound, and the proof is accepted."""
    data, asked = drawn(seed)
    result = mipfs.solve(mipfs.Problem(data, **{name: asked[name] for name in ("loss", "bias", "C", "M")}))
    if not result.weights:
        return
    plain = mipfs.scorecard(result, data, points=asked["K"], bins=asked["bins"], gap=1e-6)
    card = mipfs.scorecard(result, data, points=asked["K"], bins=asked["bins"], gap=1e-6, joint=True)
    best = best_card(data, asked)
    assert card.bound <= best * (1.0 + 1e-9)
    if card.stop_reason is mipfs.StopReason.COMPLETED:  # no result carries the best card: its gap is shown
        assert card.objective == pytest.approx(plain.objective, rel=1e-5)
        assert (card.status is mipfs.Status.OPTIMAL) == (card.gap <= 1e-6)
    else:
        assert card.status is mipfs.Status.OPTIMAL
        assert card.objective == pytest.approx(best, rel=3e-6)
    assert card.objective <= plain.objective * (1.0 + 1e-12)
    used = {column.feature for column, points in zip(card.columns, card.points, strict=True) if points}
    assert len(used) <= asked["M"]
    report = mipfs.verify(card, data)
    assert report.accepted, report.reason
    assert report.joint == min(asked["M"], data.n_features)


@pytest.mark.parametrize(("rows", "most"), [(1, 3), (150, 1), (150, 3), (150, 8), (150, 9), (150, 12), (150, 0)])
def test_the_largest_costs_are_those_of_sorting(rows: int, most: int) -> None:
    costs = np.random.default_rng(most).exponential(size=(rows, 12)).round(1)
    wanted = np.sort(costs, axis=1)[:, ::-1][:, :most].sum(axis=1)
    np.testing.assert_allclose(largest_sum(costs, most), wanted, rtol=1e-14)


def test_alike_rows_have_one_number_in_the_order_of_rows() -> None:
    rng = np.random.default_rng(0)
    for columns in (rng.choice([0.0, 1.0], (60, 3)), rng.normal(size=(60, 4)).round(), rng.normal(size=(40, 12))):
        rows = np.repeat(np.vstack([columns, columns]), 6, axis=1)
        wanted = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        np.testing.assert_array_equal(np.unique(numbered_rows(rows), return_inverse=True)[1], wanted)


def drawn_cut(folder: Path, seed: int) -> tuple[Path, Path, dict[str, Any]]:
    """A cut table with its rows: a column of three thresholds with a code, one of two, and one of two values."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 40))
    x, z, u = np.round(rng.normal(size=n), 2), np.round(rng.normal(size=n), 2), rng.choice([0, 1], n)
    lean = rng.normal() * x + rng.normal() * np.abs(z) + rng.normal() * u + 0.4 * rng.normal(size=n)
    x[rng.random(n) < 0.15] = -9.0
    y = np.where(lean > np.median(lean), "yes", "no")
    raw = folder / "raw.csv"
    lines = [f"{a},{b},{v},{label}" for a, b, v, label in zip(x, z, u, y, strict=True)]
    raw.write_text("\n".join(["x,z,u,label", *lines]) + "\n")
    asked = {"columns": int(rng.integers(1, 4)), "each": int(rng.integers(1, 3)), "M": int(rng.integers(2, 5))}
    cut = folder / "cut.csv"
    how = ["--thresholds", "2", "--special", "x=-9", "--features", str(asked["columns"]), "--each", str(asked["each"])]
    assert main(["bins", str(raw), "-o", str(cut), *how, "-q"]) == 0
    return cut, folder / "cut.lp", asked


def keeps(names: list[str], used: set[int], columns: int, each: int) -> bool:
    """Whether the lines of a card keep the rows: by the words of their names."""
    chosen = [names[j] for j in used]
    steps = [name.split()[0] for name in chosen if " from " in name]
    few = all(steps.count(one) <= each for one in steps)
    return few and len({name.split()[0] for name in chosen}) <= columns


@pytest.mark.sampled(41)
@pytest.mark.filterwarnings("ignore::mipfs.DataWarning")
@pytest.mark.parametrize("seed", range(40))
def test_every_card_of_few_columns_and_thresholds(tmp_path: Path, seed: int) -> None:
    """Rows of a table that was cut: the best card of all that keep them, and both checkers accept its proof."""
    cut, rows, asked = drawn_cut(tmp_path, seed)
    loss, result, card = LOSSES[seed % 3], str(tmp_path / "r.json"), tmp_path / "c.json"
    solved = ["solve", "fsp-m", str(cut), "--subject-to", str(rows), "-p", f"M={asked['M']}", "-p", f"loss={loss}"]
    assert main([*solved, "--positive", "yes", "--json", result, "-q"]) == 0
    document = json.loads(Path(result).read_text())
    if not document["weights"]:
        return
    assert (
        main(["scorecard", result, str(cut), "--joint", "--points", "2", "--gap", "1e-6", "--json", str(card), "-q"])
        == 0
    )
    found, data = json.loads(card.read_text()), mipfs.read(cut, positive="yes")
    X, names = data.block().values * data.scale + data.shift, list(data.feature_names)
    best = least_of_all(
        X, np.ones(len(names)), range(len(names)), data.y, np.ones(len(X)), loss, True, 2, asked["M"],
        lambda used: keeps(names, used, asked["columns"], asked["each"]),
    )  # fmt: skip
    assert found["bound"] <= best * (1.0 + 1e-9)
    if found["stop_reason"] != "COMPLETED":
        assert found["status"] == "OPTIMAL"
        assert found["objective"] == pytest.approx(best, rel=3e-6)
    word, said = judged(card, cut)
    assert word == "accepted", said
    assert main(["verify", str(card), str(cut), "-q"]) == 0


def table(folder: Path, seed: int, n: int = 36, p: int = 5) -> Path:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, p)), 2)
    X[:, 0] = rng.choice([0.0, 3.0], n)
    y = np.where(X @ rng.normal(size=p) + rng.normal(size=n) > 0, "yes", "no")
    path = folder / f"t{seed}.csv"
    rows = [",".join([*(repr(float(v)) for v in row), label]) for row, label in zip(X, y, strict=True)]
    path.write_text("\n".join([",".join([*(f"f{j}" for j in range(p)), "label"]), *rows]) + "\n")
    return path


@pytest.mark.sampled(13)
@pytest.mark.parametrize("bins", [0, 3])
@pytest.mark.parametrize("bias", ["true", "false"])
@pytest.mark.parametrize("loss", LOSSES)
def test_both_checkers_take_what_the_command_writes(tmp_path: Path, loss: str, bias: str, bins: int) -> None:
    data = table(tmp_path, len(loss) + bins)
    result, card = str(tmp_path / "r.json"), tmp_path / "c.json"
    options = ["-p", "M=2", "-p", f"loss={loss}", "-p", f"bias={bias}", "--scale", "standard"]
    signs = ["--nonnegative", "f1", "--positive", "yes"]
    assert main(["solve", "fsp-m", str(data), *options, *signs, "--json", result, "-q"]) == 0
    more = ["--joint", "--points", "3", "--bins", str(bins), "--json", str(card), "-q"]
    assert main(["scorecard", result, str(data), *more]) == 0
    word, said = judged(card, data)
    assert word == "accepted", said
    assert said[1] == "its bound is proven for every card of at most 2 features"
    assert main(["verify", str(card), str(data), "-q"]) == 0
    document = json.loads(card.read_text())
    assert document["joint"] == {"M": 2, "out": []}
    assert all(line["points"] >= 0 for line in document["card"] if line["feature"] == "f1")


def test_a_card_that_is_read_says_the_same_and_saves_its_proof(tmp_path: Path) -> None:
    data = mipfs.read(table(tmp_path, 4), scale="standard")
    result = mipfs.solve(mipfs.Problem(data, M=2, loss="logistic"))
    card = mipfs.scorecard(result, data, points=3, joint=True)
    card.save(tmp_path / "c.json")
    again = mipfs.read_scorecard(tmp_path / "c.json")
    assert again.joint is not None
    assert again.joint.M == 2
    again.save(tmp_path / "d.json")
    report = mipfs.verify(mipfs.read_scorecard(tmp_path / "d.json"), data)
    assert report.accepted, report.reason
    assert report.joint == 2
    assert "features and points are proven together (gap" in again.summary()
    assert "word of the search" not in " ".join(report.unchecked)
    again.result.save(tmp_path / "r.json")  # of which the card's own proof is no part
    with np.load(tmp_path / "r.cert.npz") as arrays:
        assert "dual_q" in arrays
        assert not [name for name in arrays if name.startswith("joint_")]
    assert mipfs.verify(mipfs.Result.load(tmp_path / "r.json"), data).accepted
    assert mipfs.verify(again.result, data).accepted


def test_words_of_which_the_result_uses_none(tmp_path: Path) -> None:
    plain = table(tmp_path, 4).read_text().splitlines()
    towns = ["town", *(["Bonn", "Jena", "Ulm"] * len(plain))]
    file = tmp_path / "words.csv"
    file.write_text("\n".join(f"{town},{line}" for town, line in zip(towns, plain, strict=False)) + "\n")
    data = mipfs.read(file, scale="standard")
    result = mipfs.solve(mipfs.Problem(data, M=1))
    assert not result.selected[0].startswith("town")
    assert mipfs.verify(mipfs.scorecard(result, data, points=2, joint=True), data).accepted


def unfinished() -> tuple[Instance, mipfs.Result]:
    """Data on which a card takes longer than a moment, and the result on them."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 24))
    y = np.where(X @ rng.normal(size=24) + rng.normal(size=120) > 0, 1.0, -1.0)
    data = Instance.from_arrays(X, y, scale="standard")
    result = mipfs.solve(mipfs.Problem(data, M=5, loss="logistic"))
    return data, result


def test_a_stopped_search_shows_the_gap_that_it_proved(tmp_path: Path) -> None:
    data, result = unfinished()
    for limit in (0.2, 1e-3):  # within the second no dual vector proves more than 0 at the root
        card = mipfs.scorecard(result, data, joint=True, gap=0.0, time_limit=limit)
        assert card.status is mipfs.Status.FEASIBLE
        assert card.stop_reason is mipfs.StopReason.TIME_LIMIT
        assert 0.0 <= card.bound < card.objective
        assert "features and points are not proven to be the best together" in card.summary()
        report = mipfs.verify(card, data)
        assert report.accepted, report.reason
        card.save(tmp_path / "c.json")
    assert card.bound == 0.0


def test_an_interrupt_of_the_real_weights_ends_the_card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data, result = unfinished()
    runs = []

    def strike(_record: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    def struck(*asked: Any, **how: Any) -> Any:
        runs.append(mipfs.drivers.solve(*asked, **how, observers=[strike]))
        return runs[-1]

    monkeypatch.setattr(together, "drivers", SimpleNamespace(solve=struck))
    card = mipfs.scorecard(result, data, joint=True, gap=0.0, time_limit=10.0)
    assert [run.stop_reason for run in runs] == [mipfs.StopReason.INTERRUPTED]
    assert (card.status, card.stop_reason) == (mipfs.Status.FEASIBLE, mipfs.StopReason.INTERRUPTED)
    assert card.nodes == 0
    assert mipfs.verify(card, data).accepted
    card.save(tmp_path / "c.json")


@pytest.mark.parametrize(
    "name", ["_points_on_candidates", "_centre_intercept", "_solve_guide", "JointSearch", "_card_of_search"]
)
def test_an_interrupt_between_two_searches_loses_no_card(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    data, result = unfinished()
    whole = getattr(together, name)

    def struck(*given: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return whole(*given)

    monkeypatch.setattr(together, name, struck)
    card = mipfs.scorecard(result, data, joint=True, gap=0.0)
    # After the search nothing is left to stop, and rounding leaves a gap of more than 0.
    is_late = name == "_card_of_search"
    reason = mipfs.StopReason.NUMERICAL if is_late else mipfs.StopReason.INTERRUPTED
    assert (card.status, card.stop_reason) == (mipfs.Status.FEASIBLE, reason)
    assert mipfs.verify(card, data).accepted


def test_what_is_left_out_stays_out(tmp_path: Path) -> None:
    data = mipfs.read(table(tmp_path, 5), scale="standard")
    free = mipfs.scorecard(mipfs.solve(mipfs.Problem(data, M=2)), data, points=3, joint=True)
    out = free.columns[0].feature
    card = mipfs.scorecard(mipfs.solve(mipfs.Problem(data, M=2, forced_out=[out])), data, points=3, joint=True)
    assert card.joint is not None
    assert card.joint.out == (out,)
    assert out not in {column.feature for column in card.columns}
    assert card.objective >= free.bound
    assert mipfs.verify(card, data).accepted


@pytest.mark.parametrize(
    ("what", "changes"),
    [("forced features", {"forced_in": ["f1"]}), ("a price of features", {"lam": 0.1}), ("rows", {})],
)
def test_what_it_does_not_carry_is_refused(tmp_path: Path, what: str, changes: dict[str, Any]) -> None:
    data = mipfs.read(table(tmp_path, 6), scale="standard")
    problem = mipfs.Problem(data, M=3, **changes)
    if what == "rows":
        problem = problem.with_rows(np.ones((1, 5)), [0.0], [2.0])
    with pytest.raises(UsageError, match=what):
        mipfs.scorecard(mipfs.solve(problem), data, joint=True)
