"""Scores of odds: from the probabilities of the card, from the page alone, and forged."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.cli import main
from mipfs.errors import UsageError
from mipfs.result.saved_card import sign_document
from tests.certificate.test_second_reading import judged
from tests.lab.test_joint_card import table

pytestmark = pytest.mark.filterwarnings("ignore::mipfs.SuspectWarning")


@pytest.fixture(scope="module", params=["plain", "balanced"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A card with scores of odds that the command wrote, and its data."""
    folder = tmp_path_factory.mktemp("odds")
    data = table(folder, 7, n=60)
    lines = data.read_text().splitlines()
    data.write_text("\n".join([*lines, *(line for line in lines[1:] if line.endswith("no"))]) + "\n")
    result, card = str(folder / "r.json"), folder / "card.json"
    weights = ["-p", "class_weight=balanced"] if request.param == "balanced" else []
    asked = ["-p", "M=3", "-p", "C=1", "-p", "loss=logistic", "--scale", "standard", *weights]
    assert main(["solve", "fsp-m", str(data), *asked, "--json", result, "-q"]) == 0
    more = ["--bins", "3", "--pdo", "-20", "--base-score", "500", "--base-odds", "4"]
    page = ["--report", str(card.with_suffix(".html")), "-q"]
    assert main(["scorecard", result, str(data), *more, "--json", str(card), *page]) == 0
    return card, data


def test_scores_are_those_of_the_probabilities(written: tuple[Path, Path]) -> None:
    card, data = mipfs.read_scorecard(written[0]), mipfs.read(written[1])
    totals = card.totals(data)
    sure = card.probabilities(totals)
    by_hand = 500.0 - 20.0 * np.log2(sure / (1.0 - sure) / 4.0)
    far = np.abs(card.scores(totals)) > 1e-9
    assert card.odds_scores(totals)[far] == pytest.approx(by_hand[far])


def test_a_reader_of_the_page_has_them(written: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    file, data = written
    page = re.sub(r"<[^>]+>", "", file.with_suffix(".html").read_text())
    found = re.search(r"(-?[\d.]+) ([-+]) ([\d.]+) · total: 500 at odds of 4 to 1 for yes", page)
    assert found is not None
    assert "20 less where the odds are doubled" in page
    origin, each = float(found[1]), float(found[3]) * (-1.0 if found[2] == "-" else 1.0)
    capsys.readouterr()
    assert main(["predict", str(file), str(data), "--scores"]) == 0
    head, *lines = capsys.readouterr().out.strip().splitlines()
    assert head == "label,total,score,score of odds"
    for line in lines:
        _, total, _, score = line.split(",")
        assert float(score) == pytest.approx(origin + each * float(total), abs=1e-3)


def test_both_checkers_take_them_and_refuse_others(written: tuple[Path, Path], tmp_path: Path) -> None:
    file, data = written
    assert judged(file, data)[0] == "accepted"
    assert main(["verify", str(file), str(data), "-q"]) == 0
    (tmp_path / "card.cert.npz").write_bytes(file.with_name("card.cert.npz").read_bytes())
    changes: list[dict[str, Any]] = [
        *({name: 1.001} for name in ("score", "double", "origin", "per_point")),
        *({"odds": value} for value in (1.5, 0.0, -1.0, "x")),
        {"more": 1.0},
    ]
    if "class_weight" not in json.loads(file.read_text())["result"]["params"]:
        changes = [{"origin": 1.001}]  # the others are of the other card
    for change in changes:
        document = json.loads(file.read_text())
        ((name, value),) = change.items()
        own = document["odds"].get(name, 1.0)
        document["odds"][name] = value * own if isinstance(value, float) else value
        (tmp_path / "card.json").write_text(json.dumps(sign_document(document)))
        assert judged(tmp_path / "card.json", data)[0] == "rejected", change
        assert main(["verify", str(tmp_path / "card.json"), str(data), "-q"]) != 0, change


def test_what_has_no_odds_is_refused(tmp_path: Path) -> None:
    data = mipfs.read(table(tmp_path, 3), scale="standard")
    hinge = mipfs.solve(mipfs.Problem(data, M=2))
    with pytest.raises(UsageError, match="loss=logistic"):
        mipfs.scorecard(hinge, data, pdo=20.0)
    card = mipfs.scorecard(mipfs.solve(mipfs.Problem(data, M=2, loss="logistic")), data)
    with pytest.raises(UsageError, match="--pdo 20"):
        card.odds_scores(np.zeros(1))
    for double, odds in ((0.0, 50.0), (20.0, 0.0), (math.inf, 50.0)):
        with pytest.raises(UsageError, match="pdo not 0"):
            card.scaled_to_odds(double, odds=odds)
