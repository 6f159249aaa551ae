"""``mipfs sketch``: columns, the table, the JSON, the file of columns, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.lab import sketch
from tests.cli.outcome import Cli

INSTANCES = Path(__file__).parents[2] / "instances"
WDBC = INSTANCES / "wdbc.svm"


def test_the_table_shows_the_promise_beside_what_was_measured(cli: Cli) -> None:
    outcome = cli("sketch", WDBC, "--scale", "standard", "--method", "bss", "--r", "120")
    assert (outcome.code, outcome.err) == (0, "")
    found = sketch.select(mipfs.read(WDBC, scale="standard"), "bss", 120)
    assert outcome.out.startswith(found.summary())
    for words in ("bss", "all samples", "||I - V'DD'V||", "squared radius of all samples", "Warning: 120 picks are"):
        assert words in outcome.out
    assert f"{found.guarantee.promised.epsilon:.4g}" in outcome.out
    supervised = cli("sketch", WDBC, "--scale", "standard", "--r", "60", "--supervised", "--C", "0.1")
    assert "support vectors, C = 0.1" in supervised.out
    assert "nothing is promised of the margin on the others" in supervised.out


def test_epsilon_in_place_of_the_number_of_picks(cli: Cli) -> None:
    outcome = cli("sketch", WDBC, "--scale", "standard", "--epsilon", "0.9", "--json", "-", "-q")
    document = json.loads(outcome.out)
    q = 1.9**0.5 - 1.0
    assert document["r"] == -(-30 // q**2)
    assert document["guarantee"]["promised"]["epsilon"] <= 0.9
    for args, said in ((["--epsilon", "1.5"], "below 1"), (["--epsilon", "0.5", "--r", "99"], "give one of them")):
        outcome = cli("sketch", WDBC, "--scale", "standard", *args)
        assert (outcome.code, outcome.err.count("\n")) == (2, 1)
        assert said in outcome.err


def test_the_json_is_the_document_and_quiet_prints_nothing(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "sketch.json"
    outcome = cli("sketch", WDBC, "--scale", "unit", "--method", "leverage", "--seed", "4", "-q", "--json", target)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    document = json.loads(target.read_text())
    data = mipfs.read(WDBC, scale="unit")
    expected = sketch.select(data, "leverage", seed=4).document()
    assert {key: document[key] for key in expected} == expected
    assert document["data_sha256"] == data.sha256
    assert (document["scaling"], document["r"], document["seed"]) == ("unit", 120, 4)
    piped = cli("sketch", WDBC, "--scale", "unit", "--method", "leverage", "--seed", "4", "--json", "-")
    assert json.loads(piped.out) == document


@pytest.mark.parametrize("rescaled", [False, True])
def test_the_columns_are_written_as_data(cli: Cli, tmp_path: Path, rescaled: bool) -> None:
    target = tmp_path / "columns.npz"
    args = ("sketch", INSTANCES / "credit.csv", "--scale", "standard", "--r", "14", "-o", target)
    outcome = cli(*args, *(["--rescaled"] if rescaled else []))
    assert outcome.code == 0
    assert f"written to {target}" in outcome.out
    scaled, raw = (mipfs.read(INSTANCES / "credit.csv", scale=kind) for kind in ("standard", "none"))
    found, again = sketch.select(scaled, "bss", 14), mipfs.read(target)
    assert tuple(again.feature_names) == tuple(found.names)
    X = scaled.X[:, found.ids] * found.rescaling if rescaled else raw.X[:, found.ids]
    np.testing.assert_array_equal(again.X, X)
    np.testing.assert_array_equal(again.y, raw.y)
    assert again.labels == raw.labels
    first = target.read_bytes()
    cli(*args, *(["--rescaled"] if rescaled else []))
    assert target.read_bytes() == first


def test_sparse_columns_stay_sparse_in_the_file(cli: Cli, tmp_path: Path) -> None:
    r = np.random.default_rng(0)
    X = sparse.random_array((40, 300), density=0.05, rng=r, format="csc")
    lines = [
        f"{2 * (i % 2) - 1:+d} " + " ".join(f"{j + 1}:{row[j]!r}" for j in np.flatnonzero(row).tolist())
        for i, row in enumerate(X.toarray().tolist())
    ]
    source, target = tmp_path / "d.svm", tmp_path / "columns.npz"
    source.write_text("\n".join(lines) + "\n")
    outcome = cli("sketch", source, "--r", "90", "-o", target)
    assert outcome.code == 0, outcome.err
    data, again = mipfs.read(source), mipfs.read(target)
    assert again.is_sparse
    assert (data.X[:, data.columns_of(again.feature_names)] != again.X).nnz == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--r", "20"], "r = 20 must be above 30, the rank of the matrix; ask for r = 120"),
        (["--method", "rqrr", "--r", "5"], "method 'rqrr' is not known; did you mean 'rrqr'?"),
        (["--projections", "5"], "projections = 5 has no meaning for bss; choose by approx-bss"),
        (["--rescaled"], "--rescaled says how the columns are written; give -o FILE.npz too"),
        (["-o", "columns.svm"], "-o columns.svm: the columns are written as npz; give a name that ends so"),
        (["-o", "no/such/columns.npz"], "-o no/such/columns.npz"),
        (["--C", "-1"], "C = -1.0 must be a positive number"),
        (["--json", str(WDBC)], "is read here, and would be overwritten"),
    ],
)
def test_refused_in_one_line(cli: Cli, args: list[str], message: str) -> None:
    outcome = cli("sketch", WDBC, "--scale", "standard", *args)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_the_two_outputs_are_two_files(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "one.npz"
    outcome = cli("sketch", WDBC, "--scale", "standard", "-o", target, "--json", target)
    assert outcome.code == 2
    assert "another output of this command goes there; give it another name" in outcome.err
    assert not target.exists()
