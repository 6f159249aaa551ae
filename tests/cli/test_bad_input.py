"""Whatever is wrong with the input: one line on standard error, the exit code of the contract, no traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.outcome import Cli, Outcome


def one_line(outcome: Outcome, code: int = 2) -> str:
    """Assert the form of an error and return its text."""
    assert outcome.code == code, outcome.err
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err
    assert outcome.err.startswith("mipfs: error: ")
    return outcome.err.removeprefix("mipfs: error: ").rstrip("\n")


BAD_DATA = {
    "nan": ("d.svm", "+1 1:1\n-1 1:nan\n", r"d\.svm:2: .*nan.*finite"),
    "infinity": ("d.svm", "+1 1:1\n-1 1:inf\n", r"d\.svm:2: .*inf.*finite"),
    "nan in a table": ("d.csv", "a,label\n1,x\nnan,y\n", r"d\.csv:3: .*'a'"),
    "one class": ("d.svm", "+1 1:1\n+1 1:2\n", r"d\.svm: one class only.*both classes"),
    "empty file": ("d.svm", "", r"d\.svm: .*no samples.*write"),
    "empty table": ("d.csv", "", r"d\.csv.*"),
    "ragged line": ("d.svm", "+1 1:1 2:3\n-1 1:2 2\n", r"d\.svm:2: '2' is not index:value.*write"),
    "truncated line": ("d.svm", "+1 1:1 2:3\n-1 1:2 2:", r"d\.svm:2: '2:' is not index:value.*write"),
    "ragged table": ("d.csv", "a,b,label\n1,2,x\n3,y\n", r"d\.csv:3: 2 cells under 3 columns; give"),
    "missing value": ("d.csv", "a,b,label\n1,2,x\n3,,y\n", r"d\.csv:3: column 'b' has no value.*fill it in"),
    "zero columns": ("d.svm", "+1\n-1\n", r"d\.svm: no sample has a feature; write"),
    "no feature columns": ("d.csv", "label\nx\ny\n", r"d\.csv: no feature column; give"),
    "no label column": (
        "d.csv",
        "a,b\n1,2\n3,4\n",
        r"d\.csv: no column is called 'label'; say which column holds the labels by --label NAME",
    ),
    "duplicate names": ("d.csv", "a,a,label\n1,2,x\n3,4,y\n", r"d\.csv.*'a'"),
    "binary file": ("d.svm", "\0\1\2", r"d\.svm.*"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_names_the_file_the_line_and_the_remedy(cli: Cli, tmp_path: Path, case: str) -> None:
    name, text, message = BAD_DATA[case]
    (tmp_path / name).write_text(text)
    outcome = cli("solve", "fsp-m", tmp_path / name, "-p", "M=1")
    assert re.search(message, one_line(outcome)), outcome.err


@pytest.mark.parametrize("name", ["absent.svm", "absent.csv", "absent.npz", "absent.xyz", "folder"])
def test_a_path_that_is_no_data_file(cli: Cli, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    assert name in one_line(cli("solve", "fsp-m", tmp_path / name, "-p", "M=1"))


@pytest.mark.parametrize(
    ("param", "message"),
    [
        ("M=-1", "M = -1 must lie between 0 and 2"),
        ("M=3", "M = 3 must lie between 0 and 2, the number of features"),
        ("M=1.5", "-p M=1.5: M must be a whole number"),
        ("M=one", "-p M=one: M must be a whole number"),
        ("M", "-p M: write KEY=VALUE"),
        ("M=", "-p M=: write KEY=VALUE"),
        ("=1", "-p =1: write KEY=VALUE"),
        ("m=1", "no parameter 'm'"),
    ],
)
def test_bad_parameters(cli: Cli, small: Path, param: str, message: str) -> None:
    assert message in one_line(cli("solve", "fsp-m", small, "-p", param))


@pytest.mark.parametrize(
    ("param", "message"),
    [
        ("C=0", "C = 0.0 must be a positive number"),
        ("C=-1", "C = -1.0 must be a positive number"),
        ("C=nan", "-p C=nan: C must be a number"),
        ("C=1e999", "-p C=1e999: C must be a number"),
        ("loss=cubic", "loss 'cubic' is not known"),
        ("bias=2", "-p bias=2: bias must be true or false"),
        ("M=2", "-p M=2: M was given twice"),
    ],
)
def test_bad_parameters_beside_a_good_one(cli: Cli, small: Path, param: str, message: str) -> None:
    assert message in one_line(cli("solve", "fsp-m", small, "-p", "M=1", "-p", param))


def test_a_parameter_that_is_needed(cli: Cli, small: Path) -> None:
    assert "-p M=" in one_line(cli("solve", "fsp-m", small))
    assert "-p lambda=" in one_line(cli("solve", "fsp-lambda", small))
    assert "penalties must be" in one_line(cli("solve", "fsp-lambda", small, "-p", "lambda=-1"))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--gap", "-1"], "gap = -1"),
        (["--gap", "small"], "--gap"),
        (["--time-limit", "-3"], "time_limit = -3.0"),
        (["--time-limit", "nan"], "time_limit = nan"),
        (["--driver", "gdb"], "driver 'gdb' is not known; did you mean 'gbd'?"),
        (["-o", "branching=best"], "branching = 'best' is not known; it is one of largest-weight, most-fractional"),
        (["--driver", "gbd", "-o", "branching=most-fractional"], "driver 'gbd' has no such option"),
        (["--start", "x3"], "'x3'"),
        (["--start", "x1,x2"], "x1, x2 does not satisfy the rows"),
        (["--scale", "log"], "--scale"),
        (["--positive", "7"], "'7' is not one of the labels"),
        (["--label", "y"], "label"),
        (["--bogus"], "No such option: --bogus"),
        (["--loss", "logistic"], "; write -p loss=VALUE"),
        (["--lambda", "1"], "write -p lambda=VALUE"),
        (["--seed", "-1"], "--seed"),
        (["--json", "no/such/folder/r.json"], "--json no/such/folder/r.json"),
        (["--json", "."], "--json ."),
        (["--validation", "absent.svm"], "absent.svm"),
        (["--subject-to", "absent.lp"], "absent.lp"),
    ],
)
def test_bad_options(cli: Cli, small: Path, args: list[str], message: str) -> None:
    assert message in one_line(cli("solve", "fsp-m", small, "-p", "M=1", *args))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["sovle"], "No such command 'sovle'"),
        (["solve"], "MODEL"),
        (["solve", "fsp-m"], "DATA"),
        (["solve", "fspm", "d.svm"], "did you mean 'fsp-m'?"),
        (["solve", "absent.py", "d.svm"], "absent.py: no such file"),
        (["predict", "absent.json", "d.svm"], "absent.json: no such file"),
        (["generate", "aytug-three"], "aytug-three"),
        (["generate", "aytug-one", "--n-samples", "0"], "must be a whole number >= 1"),
        (["generate", "aytug-one", "--M", "99"], "M = 99"),
    ],
)
def test_bad_usage(cli: Cli, args: list[str], message: str) -> None:
    assert message in one_line(cli(*args))


ROWS = {
    "unknown feature": ("budget: x1 + income <= 1", r"rows\.lp:2: no feature is called 'income'; write"),
    "nonlinear row": ("curve: [ x1 ^ 2 ] <= 1", r"rows\.lp:2: .*linear"),
    "a row cut short": ("budget: x1 + x2 <=", r"rows\.lp:3: unexpected 'End'"),
}


@pytest.mark.parametrize("case", ROWS)
def test_bad_rows_name_the_file_and_the_line(cli: Cli, small: Path, tmp_path: Path, case: str) -> None:
    row, message = ROWS[case]
    (tmp_path / "rows.lp").write_text(f"Subject To\n {row}\nEnd\n")
    outcome = cli("solve", "fsp-m", small, "-p", "M=1", "--subject-to", tmp_path / "rows.lp")
    assert re.search(message, one_line(outcome)), outcome.err


def test_a_row_of_the_toml_over_an_unknown_feature_names_its_line(cli: Cli, small: Path) -> None:
    small.with_suffix(".toml").write_text('[select]\nM = 1\nimplies = [["x1", "x9"]]\n')
    assert re.search(r"small\.toml:3: .*'x9'", one_line(cli("solve", "fsp-m", small)))


def test_a_nonlinear_row_in_pyomo_is_named(cli: Cli, small: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from mipfs import models\n"
        "import pyomo.environ as pyo\n"
        "def build(data, M=1):\n"
        "    model = models.fsp_m(data, M=M)\n"
        "    s = model.select.sigma\n"
        "    model.select.both = pyo.Constraint(expr=s['x1'] * s['x2'] <= 0)\n"
        "    return model\n"
    )
    assert "select.both is not linear" in one_line(cli("solve", tmp_path / "mine.py", small))


def test_an_error_in_a_users_formulation_names_its_line(cli: Cli, small: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def build(data):\n    return 1 / 0\n")
    assert re.search(r"mine\.py:2: ZeroDivisionError", one_line(cli("solve", tmp_path / "mine.py", small)))


def test_infeasible_rows_name_a_smallest_conflicting_set_with_exit_code_3(
    cli: Cli, small: Path, tmp_path: Path
) -> None:
    rows = "both: x1 + x2 >= 2\n idle: x1 - x2 <= 5\n few: x1 + x2 <= 1\n"
    (tmp_path / "rows.lp").write_text(f"Subject To\n {rows}End\n")
    outcome = cli("solve", "fsp-m", small, "-p", "M=2", "--subject-to", tmp_path / "rows.lp")
    text = one_line(outcome, code=3)
    assert "'both'" in text
    assert "'few'" in text
    assert "'idle'" not in text


def test_a_result_that_does_not_fit_the_data(cli: Cli, small: Path, tmp_path: Path) -> None:
    assert cli("solve", "fsp-m", small, "-p", "M=1", "--json", tmp_path / "r.json").code == 0
    (tmp_path / "named.csv").write_text("height,width,weight\n1,2,3\n")
    assert "has no feature 'x1'" in one_line(cli("predict", tmp_path / "r.json", tmp_path / "named.csv"))
    (tmp_path / "other.svm").write_text("3 1:1\n4 1:2\n")
    assert "other.svm" in one_line(cli("evaluate", tmp_path / "r.json", tmp_path / "other.svm"))
    assert "small.svm:1: not a JSON document" in one_line(cli("predict", small, small))


def test_three_classes_are_refused_where_one_classifier_is_made(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "d.svm").write_text("1 1:1\n2 1:2\n3 1:3\n")
    outcome = cli("path", tmp_path / "d.svm", "--M", "1:1")
    assert re.search(r"d\.svm:3: 3 different labels.*keep two", one_line(outcome)), outcome.err
