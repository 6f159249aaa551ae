"""``mipfs verify``: from the JSON and its sidecar to an exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from tests.cli.outcome import Cli

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
WDBC, CREDIT = INSTANCES / "wdbc.svm", INSTANCES / "credit.csv"


def solved(cli: Cli, folder: Path, *more: object, data: Path = WDBC) -> Path:
    path = folder / "r.json"
    done = cli("solve", "fsp-m", data, "-p", "M=2", "-p", "C=0.1", "--json", path, "--quiet", *more)
    assert done.code == 0, done.err
    return path


def edit(path: Path, **changes: Any) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | changes))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
def test_a_result_is_verified_with_the_scale_that_it_says(cli: Cli, tmp_path: Path, scale: str) -> None:
    path = solved(cli, tmp_path, "--driver", "branch", "--scale", scale, "--gap", "1e-3")
    assert (tmp_path / "r.cert.npz").is_file()
    done = cli("verify", path, WDBC)
    assert (done.code, done.err) == (0, "")
    assert "accepted" in done.out
    assert "dual vector" in done.out
    report = json.loads(cli("verify", path, WDBC, "--scale", scale, "--json", "-").out)
    document = json.loads(path.read_text())
    assert report["accepted"]
    assert report["bound"] == document["certificate"]["bound"]
    assert report["bound"] <= document["bound"]
    assert report["gap"] <= 1e-3 + 1e-9
    assert cli("verify", path, WDBC, "--quiet").out == ""


def test_a_rejected_certificate_is_one_line_and_exit_code_1(cli: Cli, tmp_path: Path) -> None:
    path = solved(cli, tmp_path, "--driver", "branch", "--scale", "standard")
    document = json.loads(path.read_text())
    edit(path, objective=0.99 * document["objective"])
    done = cli("verify", path, WDBC)
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1
    assert "rejected: the objective of the selected features is" in done.err
    done = cli("verify", path, WDBC, "--json", "-")
    assert done.code == 1
    assert json.loads(done.out)["accepted"] is False
    edit(path, objective=document["objective"])
    sidecar = tmp_path / "r.cert.npz"
    sidecar.write_bytes(sidecar.read_bytes() + b"\0")
    assert "SHA-256" in cli("verify", path, WDBC).err


def test_other_data_is_rejected(cli: Cli, tmp_path: Path) -> None:
    path = solved(cli, tmp_path, "--driver", "branch", "--scale", "standard")
    other = tmp_path / "other.npz"
    data = mipfs.read(WDBC)
    X = data.X.copy()
    X[0, 0] += 1e-9
    np.savez(other, X=X, y=data.y.astype(int))
    done = cli("verify", path, other)
    assert done.code == 1
    assert "other data" in done.err


def test_the_labels_of_the_result_are_taken(cli: Cli, tmp_path: Path) -> None:
    path = solved(cli, tmp_path, "--driver", "branch", "--positive", "no", data=CREDIT)
    assert cli("verify", path, CREDIT).code == 0
    good = cli("verify", path, CREDIT, "--positive", "yes")
    assert good.code == 1
    assert "other data" in good.err


def test_the_problem_is_printed_and_compared_with_the_rows_given(cli: Cli, tmp_path: Path) -> None:
    rows, other = tmp_path / "rows.lp", tmp_path / "other.lp"
    rows.write_text("minimize\n obj:\nsubject to\n some: x1 + x2 + 0.5 x3 <= 1\nend\n")
    other.write_text("minimize\n obj:\nsubject to\n some: x1 + x2 + 0.5 x3 <= 2\nend\n")
    path = solved(cli, tmp_path, "--driver", "branch", "--scale", "standard", "--subject-to", rows)
    done = cli("verify", path, WDBC, "--subject-to", rows)
    assert done.code == 0, done.err
    assert "select at most 2 of 30 features" in done.out
    assert "row 'some': mean radius + mean texture + 0.5 mean perimeter <= 1 (rows.lp:4)" in done.out
    assert "OPTIMAL to the asked gap of 0.01%" in done.out
    assert cli("verify", path, WDBC).code == 0
    done = cli("verify", path, WDBC, "--subject-to", other)
    assert (done.code, done.out) == (1, "")
    assert "neither a row of the data nor one of those given" in done.err
    report = json.loads(cli("verify", path, WDBC, "--json", "-").out)
    assert report["statement"][2] == "select at most 2 of 30 features"


def test_bad_usage(cli: Cli, tmp_path: Path) -> None:
    path = solved(cli, tmp_path, "--driver", "branch", "--scale", "standard")
    done = cli("verify", path, WDBC, "--scale", "unit")
    assert done.code == 2
    assert "scale 'standard'" in done.err
    (tmp_path / "r.cert.npz").unlink()
    done = cli("verify", path, WDBC)
    assert done.code == 2
    assert "sidecar" in done.err
    edit(path, certificate=None)
    done = cli("verify", path, WDBC)
    assert done.code == 2
    assert "stands alone" in done.err
    assert cli("verify", tmp_path / "absent.json", WDBC).code == 2


MODEL = """
import pyomo.environ as pyo
from mipfs import models

def build(data, M=2, C=0.1, room=1.0):
    model = models.fsp_m(data, M=M, C=C)
    sigma = model.select.sigma
    model.select.u = pyo.Var(bounds=(0, room))
    model.select.mine = pyo.Constraint(expr=sigma["income"] + sigma["age"] <= model.select.u)
    return model
"""


def test_rows_of_a_model_of_the_data_and_of_a_file_are_verified_together(cli: Cli, tmp_path: Path) -> None:
    model, rows, path = tmp_path / "mine.py", tmp_path / "rows.lp", tmp_path / "r.json"
    model.write_text(MODEL)
    rows.write_text("min obj: 0 age\nst\n some: loan + housing_own + extra_v <= 1\nend\n")
    given = ("-p", "M=3", "-p", "C=0.1", "--subject-to", rows)
    done = cli("solve", model, CREDIT, *given, "--json", path, "--quiet")
    assert done.code == 0, done.err
    assert len(json.loads(path.read_text())["rows"]) == 7  # five of the .toml, one of the model, one of the file
    assert cli("verify", path, CREDIT).code == 0
    done = cli("verify", path, CREDIT, "--subject-to", rows)
    assert done.code == 1
    assert "row 'mine'" in done.err
    assert "--model" in done.err
    both = cli("verify", path, CREDIT, "--subject-to", rows, "--model", model)
    assert (both.code, both.err) == (0, "")
    assert "row 'mine': income + age - u <= 0 (model.select)" in both.out
    done = cli("verify", path, CREDIT, "--model", model)
    assert (done.code, done.out) == (1, "")
    assert "row 'some'" in done.err
    done = cli("verify", path, CREDIT, "--subject-to", rows, "--model", model, "-p", "room=0.5")
    assert done.code == 1
    assert "extra variable 'u' has other bounds" in done.err
    assert cli("verify", path, CREDIT, "-p", "M=3").code == 2
    assert cli("verify", path, CREDIT, "--model", tmp_path / "absent.py").code == 2


def test_a_claim_about_the_labels_that_is_false_is_a_rejection(cli: Cli, tmp_path: Path) -> None:
    table, path = tmp_path / "t.csv", tmp_path / "r.json"
    table.write_text(CREDIT.read_text())
    done = cli("solve", "fsp-m", table, "-p", "M=2", "-p", "C=0.1", "--label", "repaid", "--json", path, "--quiet")
    assert done.code == 0, done.err
    assert cli("verify", path, table).code == 0
    honest = json.loads(path.read_text())
    for label in ("nowhere", "income", "housing", ""):
        edit(path, read=honest["read"] | {"label": label})
        done = cli("verify", path, table)
        assert (done.code, done.out) == (1, ""), (label, done.err)
        assert done.err.count("\n") == 1
        assert "rejected: its labels are not those of the data" in done.err
        report = json.loads(cli("verify", path, table, "--json", "-").out)
        assert report["accepted"] is False
        assert "labels" in report["reason"]
    assert cli("verify", path, table, "--label", "repaid").code == 1
    assert cli("verify", path, table, "--label", "income").code == 2
    edit(path, read=honest["read"], labels={"negative": "no", "positive": "maybe"})
    assert cli("verify", path, table).code == 1
    assert cli("verify", path, table, "--positive", "perhaps").code == 2
    assert cli("verify", path, tmp_path / "absent.csv").code == 2
