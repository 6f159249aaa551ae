"""Forged proofs of features and points together: both checkers refuse what is not so, whatever the tree is made of."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.check.card import check_card
from mipfs.check.card_joint import NAMES, _Vectors
from mipfs.cli import main
from mipfs.lab.scorecard.cone import in_polar, project_on_cone
from mipfs.lab.scorecard.within import CardRows, PlacedRows
from tests import two_checkers
from tests.certificate.test_second_card import signed
from tests.certificate.test_second_reading import judged
from tests.lab.test_joint_card import drawn_cut, table

Json = dict[str, Any]
Arrays = dict[str, Any]
second = two_checkers.second()
FORGERIES = 1000


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Cards with their data: of scaled columns, of cut ones, and one that leaves out what the best one has."""
    found = {}
    for name, seed, options, bins in (
        ("plain", 11, ["-p", "loss=hinge"], 0),
        ("cut", 12, ["-p", "loss=logistic"], 3),
        ("less", 11, ["-p", "loss=hinge"], 0),
        ("open", 11, ["-p", "loss=logistic"], 0),
    ):
        folder = tmp_path_factory.mktemp(name)
        data, result, card = table(folder, seed, 30, 5), str(folder / "r.json"), folder / "c.json"
        more = []
        if name == "less":
            document = json.loads(found["plain"][0].read_text())
            used = next(line["feature"] for line in document["card"] if line["points"])
            (folder / f"t{seed}.toml").write_text(f'[select]\nforced_out = ["{used}"]\n')
        solved = ["solve", "fsp-m", str(data), "--scale", "standard", "-p", "M=2", *options, *more]
        assert main([*solved, "--json", result, "-q"]) == 0
        gap = "0.1" if name == "open" else "1e-6"
        how = ["--joint", "--points", "2", "--bins", str(bins), "--gap", gap, "--json", str(card), "-q"]
        how += ["--pdo", "20"] if name == "cut" else []
        assert main(["scorecard", result, str(data), *how]) == 0
        found[name] = card, data
    for name, seed in (("rows", 25), ("steps", 13)):
        folder = tmp_path_factory.mktemp(name)
        data, rows, _ = drawn_cut(folder, seed)
        result, card = str(folder / "r.json"), folder / "c.json"
        solved = ["solve", "fsp-m", str(data), "--subject-to", str(rows), "-p", "M=3", "-p", "loss=logistic"]
        assert main([*solved, "--scale", "standard", "--positive", "yes", "--json", result, "-q"]) == 0
        how = ["--joint", "--points", "2", "--gap", "1e-6", "--json", str(card), "-q"]
        assert main(["scorecard", result, str(data), *how]) == 0
        found[name] = card, data
    return found


def of(card: Path) -> tuple[Json, Arrays]:
    """The document of a card and the arrays beside it."""
    with np.load(card.with_name("c.cert.npz")) as held:
        return json.loads(card.read_text()), dict(held)


def words(card: Path, data: Path, document: Json, arrays: Arrays) -> tuple[str, str]:
    """What both checkers say of a forged card, the first one first."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    content = stream.getvalue()
    document["result"]["certificate"] |= {"file": "f.cert.npz", "sha256": hashlib.sha256(content).hexdigest()}
    document = signed(document)
    card.with_name("f.cert.npz").write_bytes(content)
    card.with_name("f.json").write_text(json.dumps(document))
    report = check_card(document, arrays, mipfs.read(data, scale="standard"))
    word, why = judged(card.with_name("f.json"), data)
    assert "malformed" not in report.reason
    return ("accepted" if report.accepted else "rejected"), (word if word != "rejected" else f"rejected: {why}")


def test_honest_ones_are_accepted(cards: dict[str, tuple[Path, Path]]) -> None:
    for card, data in cards.values():
        document, arrays = of(card)
        assert arrays.keys() >= NAMES
        assert words(card, data, document, arrays) == ("accepted", "accepted")
    assert of(cards["less"][0])[0]["joint"]["out"]


def larger(document: Json) -> None:
    document["joint"]["M"] = 4


def more_points(document: Json) -> None:
    document["most_points"] = 7


def nothing_out(document: Json) -> None:
    document["joint"]["out"] = []


def near_its_objective(document: Json) -> None:
    """A bound that lies between the best of all cards and the objective of the card."""
    document |= {"bound": document["objective"], "gap": 0.0, "status": "OPTIMAL"}


FALSE: dict[str, tuple[str, Callable[[Json], None]]] = {
    "cards of more features": ("plain", larger),
    "cards of more features, cut": ("cut", larger),
    "cards of more points": ("plain", more_points),
    "cards of what is left out": ("less", nothing_out),
    "cards of more columns": ("rows", lambda d: d["joint"]["within"].update(columns=3)),
    "cards of more thresholds": ("steps", lambda d: d["joint"]["within"].update(each=2)),
    "cards without rows": ("rows", lambda d: d["joint"].pop("within") and None),
}


def test_the_false_claims_are_false(cards: dict[str, tuple[Path, Path]]) -> None:
    """There are better cards than these claims allow."""
    for name, (which, change) in FALSE.items():
        card, data = cards[which]
        document, _ = of(card)
        change(document)
        joint, given = document["joint"], mipfs.read(data, scale="standard")
        params = document["result"]["params"]
        asked = {"M": joint["M"], "loss": params["loss"], "C": params["C"], "forced_out": joint["out"]}
        problem = mipfs.Problem(given, **asked)
        if "within" in joint:
            placed = PlacedRows(CardRows.read(joint["within"]), given.feature_names)
            problem = problem.replace(rows=placed.rows(given.n_features))
        result = mipfs.solve(problem)
        how = {"points": document["most_points"], "bins": document["bins"]}
        better = mipfs.scorecard(result, given, **how, gap=1e-6, joint=True)
        assert better.objective < document["bound"] * (1.0 - 1e-6), name


def changed(arrays: Arrays, rng: np.random.Generator) -> None:
    """One change of the tree or of a dual vector."""
    N = arrays["joint_split"].size
    split, node = arrays["joint_split"], int(rng.integers(N))
    kind = int(rng.integers(9))
    if kind == 0:  # a branch becomes a leaf of some kind
        split[node], arrays["joint_leaf"][node] = rng.choice([-1, -2]), rng.integers(-1, 3)
        arrays["joint_children"][node] = -1
    elif kind == 1:
        split[node] = rng.integers(-2, int(split.max()) + 4)
    elif kind == 2:
        arrays["joint_value"][node] += rng.integers(-2, 3)
    elif kind == 3:
        arrays["joint_leaf"][node] = rng.integers(-1, arrays["joint_dual_q"].size)
    elif kind == 4:
        arrays["joint_children"][node] = arrays["joint_children"][node][::-1].copy()
    elif kind == 5:
        arrays["joint_children"][node] = rng.integers(-1, N, 2)
    elif kind == 6 and arrays["joint_dual_bytes"].size:
        at = int(rng.integers(arrays["joint_dual_bytes"].size))
        arrays["joint_dual_bytes"][at] ^= np.uint8(1 << rng.integers(8))
    elif kind == 7:
        arrays["joint_dual_q"] -= 1  # every vector twice as long
    else:
        leaves = np.flatnonzero(split == -1)
        split[rng.choice(leaves)] = -2


@pytest.mark.sampled(73)
@pytest.mark.parametrize("seed", range(FORGERIES))
def test_no_tree_proves_what_is_false(cards: dict[str, tuple[Path, Path]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    which, change = list(FALSE.values())[seed % len(FALSE)]
    card, data = cards[which]
    document, arrays = of(card)
    change(document)
    for _ in range(int(rng.integers(0, 4))):
        changed(arrays, rng)
    first, other = words(card, data, document, arrays)
    assert first == "rejected"
    assert other.startswith("rejected")


def twice(document: Json) -> None:
    first, *others = document["joint"]["within"]["parts"]
    others[0][1] += first[0] + first[1]


def point(document: Json) -> None:
    line = document["card"][0]
    line["points"] = line["points"] - 1 if line["points"] > -2 else line["points"] + 1


STATED: dict[str, tuple[str, Callable[[Json], None]]] = {
    "a point": ("plain", point),
    "a point of a threshold": ("cut", point),
    "a threshold": ("cut", lambda d: d["card"][-1].update(threshold=(d["card"][-1]["threshold"] or 0.0) + 0.01)),
    "the intercept": ("cut", lambda d: d.update(intercept=d["intercept"] + 1e-3)),
    "the scale": ("plain", lambda d: d.update(scale=d["scale"] * 1.001)),
    "a total": ("cut", lambda d: d["totals"][0].update(to=d["totals"][0]["to"] + 1.0)),
    "the bound": ("plain", lambda d: d.update(bound=d["objective"] * 1.0001)),
    "no proof is named": ("plain", lambda d: d.pop("joint") and None),
    "a field of joint": ("plain", lambda d: d["joint"].update(K=2)),
    "fewer features": ("plain", lambda d: d["joint"].update(M=1)),
    "no features": ("plain", lambda d: d["joint"].update(M=0)),
    "M as a double": ("plain", lambda d: d["joint"].update(M=2.0)),
    "a feature of the card is out": ("plain", lambda d: d["joint"].update(out=[d["card"][0]["feature"]])),
    "out names nothing": ("plain", lambda d: d["joint"].update(out=["nobody"])),
    "out is a text": ("plain", lambda d: d["joint"].update(out="f1")),
    "no rows but a word": ("rows", lambda d: d["joint"].update(within="x")),
    "a field of the rows": ("rows", lambda d: d["joint"]["within"].update(most=2)),
    "fewer columns": ("rows", lambda d: d["joint"]["within"].update(columns=1)),
    "no columns": ("rows", lambda d: d["joint"]["within"].update(columns=0)),
    "a threshold as a double": ("rows", lambda d: d["joint"]["within"].update(each=2.0)),
    "rows name nothing": ("rows", lambda d: d["joint"]["within"]["parts"][0][1].append("nobody")),
    "rows name one twice": ("rows", lambda d: d["joint"]["within"]["parts"][0].reverse() or twice(d)),
    "a part is no pair": ("rows", lambda d: d["joint"]["within"]["parts"][0].append([])),
}


@pytest.mark.parametrize("name", STATED)
def test_a_change_of_what_is_stated_is_refused(cards: dict[str, tuple[Path, Path]], name: str) -> None:
    which, change = STATED[name]
    card, data = cards[which]
    document, arrays = of(card)
    change(document)
    first, other = words(card, data, document, arrays)
    assert first == "rejected"
    assert other.startswith("rejected")


def another(value: float, rng: np.random.Generator) -> float:
    """A number beside this one: from a hundredth of it away to all of it."""
    away = float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-2, 0))
    return value * (1.0 + away) if value else away


def one_point(document: Json, rng: np.random.Generator) -> None:
    line, K = rng.choice(document["card"]), document["most_points"]
    line["points"] = int(rng.choice([k for k in range(-K, K + 1) if k != line["points"]]))


def one_threshold(document: Json, rng: np.random.Generator) -> None:
    line = rng.choice([line for line in document["card"] if line["threshold"] is not None])
    line["threshold"] = another(line["threshold"], rng)


def one_total(document: Json, rng: np.random.Generator) -> None:
    row, name = rng.choice(document["totals"]), str(rng.choice(["from", "to", "samples", "positives", "decision"]))
    if name == "decision":
        (row[name],) = {"yes", "no"} - {row[name]}
    elif name in ("from", "to"):
        row[name] = another(row[name], rng)
    else:
        row[name] += int(rng.choice([-1, 1]))


def one_bound(document: Json, rng: np.random.Generator) -> None:
    """Above what is proven: of the open card up to the objective, of others beyond; the gap as it says."""
    bound, objective = document["bound"], document["objective"]
    is_open = document["gap"] > 1e-3
    raised = bound + (objective - bound) * rng.uniform() if is_open else objective * (1.0 + 10.0 ** rng.uniform(-7, 0))
    document |= {"bound": raised, "gap": max(0.0, (objective - raised) / objective)}


ONE: dict[str, tuple[tuple[str, ...], Callable[[Json, np.random.Generator], None]]] = {
    "point": (("plain", "cut", "less", "rows", "steps"), one_point),
    "threshold": (("cut",), one_threshold),
    "intercept": (("cut", "rows", "steps"), lambda d, rng: d.update(intercept=another(d["intercept"], rng))),
    "total": (("plain", "cut", "steps"), one_total),
    "probability": (("cut", "rows", "steps"), lambda d, rng: d.update(scale=another(d["scale"], rng))),
    "odds": (
        ("cut",),
        lambda d, rng: (at := str(rng.choice([*d["odds"]]))) and d["odds"].update({at: another(d["odds"][at], rng)}),
    ),
    "bound": (("plain", "cut", "less", "rows", "steps", "open", "open", "open"), one_bound),
}


@pytest.mark.sampled(211)
@pytest.mark.parametrize("seed", range(FORGERIES))
def test_no_number_of_a_card_may_be_another(cards: dict[str, tuple[Path, Path]], seed: int) -> None:
    """A point, a threshold, the intercept, a total, a probability by its scale, odds, or the bound."""
    rng = np.random.default_rng([65, seed])
    of_cards, change = list(ONE.values())[seed % len(ONE)]
    card, data = cards[str(rng.choice(of_cards))]
    document, arrays = of(card)
    change(document, rng)
    first, other = words(card, data, document, arrays)
    assert first == "rejected"
    assert other.startswith("rejected")


@pytest.mark.parametrize("name", sorted(NAMES))
def test_no_array_of_the_proof_may_be_missing(cards: dict[str, tuple[Path, Path]], name: str) -> None:
    card, data = cards["plain"]
    document, arrays = of(card)
    del arrays[name]
    first, other = words(card, data, document, arrays)
    assert first == "rejected"
    assert other.startswith("rejected")


def test_a_card_of_the_first_kind_has_no_proof_beside_it(cards: dict[str, tuple[Path, Path]]) -> None:
    """A result takes none of these arrays either."""
    card, data = cards["plain"]
    document, arrays = of(card)
    report = mipfs.check.tree.check(document["result"], arrays, mipfs.read(data, scale="standard"))
    assert not report.accepted
    assert "joint_" in report.reason


def test_the_minimum_on_a_cone_is_that_of_the_search() -> None:
    """Of three codes: the search in doubles, the first checker's rational bound, the second one's exact minimum."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        k = int(rng.integers(1, 6))
        low = rng.integers(-5, 6, k)
        high = low + rng.integers(0, 4, k) * rng.integers(0, 2, k)
        q, s = rng.normal(size=k) * 3, rng.uniform(0.3, 2.0, k)
        squares = [Fraction(float(one)) ** 2 for one in s]
        terms = [
            (square, Fraction(float(at)), int(a), int(b))
            for square, at, a, b in zip(squares, q, low, high, strict=True)
        ]
        exact = float(second.least_on_cone(terms))
        v = q / s - in_polar(q / s - project_on_cone(q / s, s * low, s * high), s, low, high)
        assert -0.5 * float(v @ v) == pytest.approx(exact, abs=1e-9)
        first = -float(_Vectors._conic_minimum(q, np.zeros(k), squares, low, high))
        assert first <= exact + 1e-15
        assert first == pytest.approx(exact, abs=1e-9)
