"""The second wish: every order computed again for every set of the list by other code, and judged on unseen rows."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import mipfs
from mipfs.cli import main
from mipfs.data.names import DefaultedValues
from mipfs.errors import StoppedError, UsageError
from mipfs.lab.studies import preference
from mipfs.result.charts import presence_chart

P = 6
COST = {f"f{j}": float(c) for j, c in enumerate((3, 1, 4, 1, 5, 2))}


def rows(seed: int, n: int) -> tuple[Any, Any]:
    r = np.random.default_rng(seed)
    X = np.round(r.normal(size=(n, P)) * (1, 10, 1, 1, 1, 1), 3)
    X[:, 3] = np.round(X[:, 0] + 0.3 * X[:, 3], 3)  # so that one may stand in for the other
    y = np.where(X[:, 0] + 0.1 * X[:, 1] + 0.5 * r.normal(size=n) > 0, 1.0, -1.0)
    return X, y


@pytest.fixture(scope="module")
def made() -> tuple[mipfs.Problem, mipfs.Result, mipfs.Instance, Any, Any]:
    X, y = rows(1, 60)
    named = {"feature_names": [*COST]}
    data = mipfs.Instance.from_arrays(X, y, scale="standard", cost=COST, **named)
    problem = mipfs.Problem(data, M=3)
    result = mipfs.solve(problem, pool_gap=0.2)
    held, truth = rows(2, 81)
    held_out = mipfs.Instance.from_arrays(held, truth, **named)
    assert result.near_optimal is not None
    assert len(result.near_optimal["supports"]) > 3
    return problem, result, held_out, held, truth


def scores(one: preference.Preferred, X: Any) -> Any:
    """The decision values of a listed classifier, by hand."""
    return sum(w * X[:, int(name[1:])] for name, w in one.weights.items()) + one.intercept


def test_the_cheapest(made: Any) -> None:
    problem, result, held_out, X, y = made
    found = mipfs.prefer(problem, result, "cost", held_out=held_out)
    by_hand = sorted(
        (sum(COST[name] for name in one["selected"]), one["objective"]) for one in result.near_optimal["supports"]
    )
    assert [(one.value, one.objective) for one in found.sets] == by_hand
    assert found.rows == 81
    for judged, one in zip(found.judged, (found.optimum, found.chosen), strict=True):
        assert judged.auc == pytest.approx(roc_auc_score(y > 0, scores(one, X)))
        assert judged.error == pytest.approx(np.mean((scores(one, X) > 0) != (y > 0)))
    own = found.solve(problem)
    assert {*own.selected} == {*found.chosen.selected}
    assert own.objective == pytest.approx(found.chosen.objective, rel=1e-3)


def test_a_group_costs_once(made: Any) -> None:
    """A column of words, or another group, is paid for by whichever of its features is selected first."""
    problem, result, _, _, _ = made
    groups = {"both": ("f0", "f3"), "f1": ("f1", "f2")}  # of a name that a feature has, the feature is meant
    price = {"both": 10.0, "f1": 1.0, "f5": 4.0}
    data = dataclasses.replace(problem.data, groups=groups, cost=DefaultedValues(problem.data.index, price))
    found = mipfs.prefer(problem.replace(data=data), dataclasses.replace(result, data_sha256=data.sha256), "cost")
    for one in found.sets:
        kept = {*one.selected}
        assert one.value == 10.0 * bool(kept & {"f0", "f3"}) + 1.0 * ("f1" in kept) + 4.0 * ("f5" in kept)
    assert found.chosen.value == min(one.value for one in found.sets)
    groups_alone = dataclasses.replace(data, cost=DefaultedValues(data.index, {"both": 2.0}))
    assert groups_alone.cost_of(("f3", "f1")) == 2.0
    assert groups_alone.cost_of(("f1",)) == 0.0
    found = mipfs.prefer(
        problem.replace(data=groups_alone), dataclasses.replace(result, data_sha256=groups_alone.sha256), "cost"
    )
    assert {one.value for one in found.sets} <= {0.0, 2.0}


@pytest.mark.parametrize("done", [0, 2])
def test_draws_that_a_limit_left_undone_are_told(made: Any, monkeypatch: pytest.MonkeyPatch, done: int) -> None:
    problem, result, _, _, _ = made
    whole = mipfs.stability(problem, draws=2, seed=2, jobs=1)
    monkeypatch.setattr(
        preference, "stability", lambda *_, **__: dataclasses.replace(whole, sets=whole.sets[:done], asked=20)
    )
    if not done:
        with pytest.raises(StoppedError, match="before any draw"):
            mipfs.prefer(problem, result, "stability")
        return
    found = mipfs.prefer(problem, result, "stability")
    assert (found.draws, found.asked) == (2, 20)
    assert "stopped after 2 of 20 draws" in found.summary()
    assert (found.document()["draws"], found.document()["asked"]) == (2, 20)


def test_the_best_by_area_is_judged_on_rows_that_it_was_not_chosen_by(made: Any) -> None:
    problem, result, held_out, X, y = made
    found = mipfs.prefer(problem, result, "auc", held_out=held_out, seed=3)
    chooses, judges = preference._stratified_halves(y, np.random.default_rng(3))
    assert sorted([*chooses, *judges]) == list(range(81))
    areas = [roc_auc_score(y[chooses] > 0, scores(one, X)[chooses]) for one in found.sets]
    assert [one.value for one in found.sets] == pytest.approx(areas)
    assert areas == sorted(areas, reverse=True)
    assert found.rows == judges.size
    for judged, one in zip(found.judged, (found.optimum, found.chosen), strict=True):
        assert judged.auc == pytest.approx(roc_auc_score(y[judges] > 0, scores(one, X)[judges]))


def test_the_most_stable(made: Any) -> None:
    problem, result, _, _, _ = made
    found = mipfs.prefer(problem, result, "stability", draws=3, seed=2, jobs=1)
    drawn = mipfs.stability(problem, draws=3, seed=2, jobs=1).sets
    assert len(found.sets) == len(result.near_optimal["supports"])
    for one in found.sets:
        shared = [len({*one.selected} & {*other}) for other in drawn]
        assert one.value == pytest.approx(sum(shared) / (len(drawn) * len(one.selected)))
    values = [one.value for one in found.sets]
    assert values == sorted(values, reverse=True)
    assert found.judged == ()
    assert "was not measured" in found.summary()


def test_in_all_in_some_in_none(made: Any) -> None:
    _, result, _, _, _ = made
    chart = presence_chart(result)
    assert chart is not None
    sets = [{*one["selected"]} for one in result.near_optimal["supports"]]
    every, some = set.intersection(*sets), set.union(*sets)
    assert {bar.name for bar in chart.bars if bar.role == "first"} == every
    assert {bar.name for bar in chart.bars} == some
    none = f", {P - len(some)} in none" if len(some) < P else ""
    assert f"{len(every)} in all of them, {len(some) - len(every)} in some{none}" in chart.title
    assert "has no substitute" in chart.note


def test_what_it_is_not_for_is_refused(made: Any) -> None:
    problem, result, held_out, _, _ = made
    with pytest.raises(UsageError, match="not trained on"):
        mipfs.prefer(problem, result, "auc")
    with pytest.raises(UsageError, match="cost nothing"):
        free = mipfs.Instance.from_arrays(*rows(1, 60), scale="standard", feature_names=[*COST])
        mipfs.prefer(mipfs.Problem(free, M=3), result, "cost")
    with pytest.raises(UsageError, match="pool_gap"):
        mipfs.prefer(problem, mipfs.solve(problem), "cost")
    with pytest.raises(UsageError, match="C = 1"):
        mipfs.prefer(problem.replace(C=5.0), result, "cost")
    with pytest.raises(UsageError, match="trained on"):
        mipfs.prefer(problem, result, "cost", held_out=problem.data)
    with pytest.raises(UsageError, match="digest differs"):
        mipfs.prefer(mipfs.Problem(held_out, M=3), result, "cost")
    with pytest.raises(UsageError, match="it was scaled 'standard', and this is 'none'"):
        raw = mipfs.Instance.from_arrays(*rows(1, 60), feature_names=[*COST], cost=COST)
        mipfs.prefer(mipfs.Problem(raw, M=3), result, "cost")


def test_the_command_with_words_writes_page_and_the_chosen_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    r = np.random.default_rng(0)
    files = [tmp_path / "train.csv", tmp_path / "new.csv"]
    for k, file in enumerate(files):
        X, y = rows(5 + k, 50)
        towns = r.choice(["Bonn", "Jena", "Ulm"], 50)
        lines = [
            f"{','.join(map(str, row))},{town},{'yes' if label > 0 else 'no'}"
            for row, town, label in zip(X, towns, y, strict=True)
        ]
        file.write_text("\n".join([",".join([*COST, "town", "label"]), *lines]) + "\n")
    train, new = map(str, files)
    chosen, page = tmp_path / "then.json", tmp_path / "page.html"
    asked = ["solve", "fsp-m", train, "--M", "2", "--C", "1", "--scale", "standard", "--pool-gap", "0.3"]
    more = ["--then", "auc", "--held-out", new, "--then-json", str(chosen), "--report", str(page)]
    assert main([*asked, *more]) == 0
    said = capsys.readouterr().out
    assert "The second wish, the best first" in said
    assert "rows that neither choice has seen" in said
    assert "In all, in some, in none" in page.read_text()
    assert "The second wish" in page.read_text()
    assert main(["verify", str(chosen), train, "-q"]) == 0
    document = json.loads(chosen.read_text())
    assert {*document["params"]["forced_in"]} == {*document["selected"]}
    assert main([*asked, "--held-out", new]) == 2
    assert main([*asked, "--then", "beauty"]) == 2
    assert main([*asked, "--then", "auc"]) == 2
