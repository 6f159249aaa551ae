"""``mipfs solve``: the JSON, the exit codes, and options that must not change the answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import drivers
from mipfs.drivers import gbd
from mipfs.drivers.gbd import Options
from mipfs.lab.baselines.structural_svm import structural_svm
from mipfs.models import structural_dual
from mipfs.result.result import StopReason
from mipfs.run.run import Run
from tests.cli.outcome import Cli

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
WDBC, CREDIT = INSTANCES / "wdbc.svm", INSTANCES / "credit.csv"
SCHEMA = {
    "schema": int,
    "status": str,
    "stop_reason": str,
    "objective": float,
    "bound": float,
    "gap": float,
    "selected": list,
    "weights": dict,
    "intercept": float,
    "params": dict,
    "driver": str,
    "seconds": float,
    "counters": dict,
    "trace": list,
    "certificate": type(None),
    "relaxed": type(None),
    "data_sha256": str,
    "rows": list,
    "versions": dict,
    "scaling": dict,
    "labels": dict,
}


def strict(text: str) -> Any:
    """Parse JSON that must hold neither NaN nor Infinity."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in the JSON"))


def objective_of(document: Any, data: mipfs.Instance) -> float:
    """(P) on the scaled data, from what stands in the JSON and the raw data alone."""
    C, scaling = document["params"]["C"], document["scaling"]
    raw = data.X * data.scale + data.shift
    ids = [data.feature_names.index(name) for name in document["weights"]]
    weights = np.array(list(document["weights"].values()))
    margins = data.y * (raw[:, ids] @ weights + document["intercept"])
    scaled = weights * np.array([scaling["scale"][name] for name in document["weights"]])
    return float(0.5 * scaled @ scaled + C * np.maximum(0.0, 1.0 - margins).sum())


def test_the_json_on_standard_output_is_alone_and_its_objective_recomputes(cli: Cli) -> None:
    outcome = cli("solve", "fsp-m", WDBC, "--scale", "standard", "-p", "M=2", "-p", "C=0.1", "--json", "-")
    assert (outcome.code, outcome.err) == (0, "")
    document = strict(outcome.out)
    assert {name: type(document[name]) for name in SCHEMA} == SCHEMA
    assert document["schema"] == 1
    assert (document["status"], document["stop_reason"]) == ("OPTIMAL", "GAP_CLOSED")
    assert document["params"]["M"] == 2
    assert set(document["weights"]) <= set(document["selected"])
    assert len(document["selected"]) <= 2
    assert document["scaling"]["kind"] == "standard"
    for record in document["trace"]:
        assert set(record) == {"seconds", "iteration", "objective", "bound"}
    bounds = [record["bound"] for record in document["trace"] if record["bound"] is not None]
    assert bounds == sorted(bounds)
    data = mipfs.read(WDBC, scale="standard")
    assert document["data_sha256"] == data.sha256
    assert objective_of(document, data) == pytest.approx(document["objective"], rel=1e-9)
    gap = (document["objective"] - document["bound"]) / document["objective"]
    assert document["gap"] == pytest.approx(max(0.0, gap))
    assert document["gap"] <= 1e-4


def test_the_text_shows_what_the_json_holds(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    outcome = cli("solve", "fsp-m", CREDIT, "--json", target)
    document = strict(target.read_text())
    assert "OPTIMAL (the gap is closed)" in outcome.out
    assert f"{document['objective']:.8g}" in outcome.out
    assert f"written to {target}" in outcome.out
    for name in (*document["selected"], "(intercept)"):
        assert name in outcome.out
    assert outcome.err == ""


def test_quiet_prints_nothing(cli: Cli, small: Path, tmp_path: Path) -> None:
    outcome = cli("solve", "fsp-m", small, "-p", "M=1", "--quiet", "--json", tmp_path / "r.json")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert strict((tmp_path / "r.json").read_text())["status"] == "OPTIMAL"


def test_rows_of_an_lp_file_hold_like_those_of_python(cli: Cli, tmp_path: Path) -> None:
    """The best pair without the best single feature, by LP file, by Problem and by a user's Pyomo file."""
    data = mipfs.read(CREDIT)
    problem = mipfs.Problem(data, C=0.5)
    row = np.zeros(data.n_features)
    row[[data.index["late payments"], data.index["age"]]] = 1.0
    expected = mipfs.solve(problem.with_rows(row, -math.inf, 1.0)).objective
    assert expected > mipfs.solve(problem).objective * (1 + 1e-3), "the row must matter"
    (tmp_path / "rows.lp").write_text("Subject To\n one: late_payments + age <= 1\nEnd\n")
    (tmp_path / "mine.py").write_text(
        "import pyomo.environ as pyo\n"
        "from mipfs import models\n"
        "print('read')\n"
        "def build(data, C=1.0):\n"
        "    print('built')\n"
        "    model = models.fsp_m(data, C=C)\n"
        "    s = model.select.sigma\n"
        "    model.select.one = pyo.Constraint(expr=s['late payments'] + s['age'] <= 1)\n"
        "    return model\n"
    )
    by_file = cli("solve", "fsp-m", CREDIT, "-p", "C=0.5", "--subject-to", tmp_path / "rows.lp", "--json", "-")
    by_model = cli("solve", tmp_path / "mine.py", CREDIT, "-p", "C=0.5", "--json", "-")
    assert "read\nbuilt\n" in by_model.err, "standard output is the document alone"
    for outcome in (by_file, by_model):
        assert strict(outcome.out)["objective"] == pytest.approx(expected, rel=2e-4)
    rows = {row["name"]: row for row in strict(by_file.out)["rows"]}
    assert rows["one"]["terms"] == {"late payments": 1.0, "age": 1.0}
    assert rows["one"]["origin"].endswith("rows.lp:2")


def test_fsp_lambda_with_a_free_selection_costs_what_it_says(cli: Cli, small: Path) -> None:
    free = strict(cli("solve", "fsp-lambda", small, "-p", "lambda=0", "--json", "-").out)
    dear = strict(cli("solve", "fsp-lambda", small, "-p", "lambda=100", "--json", "-").out)
    plain = strict(cli("solve", "fsp-m", small, "-p", "M=2", "--json", "-").out)
    assert free["objective"] == pytest.approx(plain["objective"], rel=2e-4)
    assert dear["selected"] == []
    assert dear["objective"] == pytest.approx(4.0), "all four samples in the margin, C = 1"


def test_labels_are_the_users_own(cli: Cli) -> None:
    document = strict(cli("solve", "fsp-m", CREDIT, "--json", "-").out)
    assert document["labels"] == {"negative": "no", "positive": "yes"}
    flipped = strict(cli("solve", "fsp-m", CREDIT, "--positive", "no", "--json", "-").out)
    assert flipped["labels"] == {"negative": "yes", "positive": "no"}
    assert flipped["objective"] == pytest.approx(document["objective"], rel=2e-4)


def test_a_start_and_a_gap_are_used(cli: Cli) -> None:
    base = ("solve", "fsp-m", WDBC, "--scale", "standard", "-p", "M=2", "-p", "C=0.1", "--json", "-")
    first = strict(cli(*base, "--gap", "0.9").out)
    second = strict(cli(*base, "--gap", "0.9", "--start", "mean texture, worst perimeter").out)
    assert first["gap"] <= 0.9
    best = strict(cli(*base).out)["objective"]
    assert first["objective"] >= best * (1 - 1e-4)
    assert second["objective"] <= first["objective"] * (1 + 1e-6), "the start is a good pair"


def test_validation_data_can_stop_the_run(cli: Cli) -> None:
    base = ("solve", "fsp-m", WDBC, "--scale", "standard", "-p", "M=6", "--json", "-")
    outcome = cli(*base, "--gap", "0", "--validation", WDBC, "--time-limit", 60)
    document = strict(outcome.out)
    assert document["stop_reason"] == "VALIDATION"
    assert 0 <= document["validated"]["error"] < 0.2
    assert document["bound"] <= document["objective"]


@pytest.fixture
def fake_driver(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Run], None]], None]:
    """Put a function in the place of `gbd`."""

    def use(run: Callable[[Run], None]) -> None:
        def steps(work: Run) -> Iterator[None]:
            run(work)
            yield None

        module: Any = ModuleType("fake")
        module.Options, module.CAPABILITY, module.run = Options, gbd.CAPABILITY, steps
        module.prepare = lambda problem: None
        monkeypatch.setattr(drivers, "get_driver", lambda name: module)

    return use


def test_a_limit_before_any_incumbent_is_exit_code_4(cli: Cli, small: Path, fake_driver: Any, tmp_path: Path) -> None:
    def stop(run: Run) -> None:
        run.early = StopReason.TIME_LIMIT

    fake_driver(stop)
    outcome = cli("solve", "fsp-m", small, "-p", "M=1", "--json", tmp_path / "r.json")
    assert outcome.code == 4
    assert outcome.err == "mipfs: error: stopped by the time limit before any classifier was found; raise the limit\n"
    document = strict((tmp_path / "r.json").read_text())
    assert (document["status"], document["objective"], document["intercept"]) == ("NO_SOLUTION", None, None)


def test_a_limit_with_an_incumbent_is_exit_code_0(cli: Cli, small: Path, fake_driver: Any) -> None:
    def stop(run: Run) -> None:
        run.offer([0], np.array([0.5]), 0.0)
        run.interrupted = True

    fake_driver(stop)
    outcome = cli("solve", "fsp-m", small, "-p", "M=1")
    assert outcome.code == 0
    assert "FEASIBLE (interrupted)" in outcome.out
    assert "bound      0" in outcome.out


def test_an_internal_error_is_one_line_and_exit_code_1(
    cli: Cli, small: Path, fake_driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(run: Run) -> None:
        raise ZeroDivisionError("two\nlines")

    fake_driver(fail)
    monkeypatch.delenv("MIPFS_DEBUG", raising=False)
    outcome = cli("solve", "fsp-m", small, "-p", "M=1")
    assert outcome.code == 1
    expected = "mipfs: error: internal error: ZeroDivisionError: two lines; set MIPFS_DEBUG=1 to see the traceback\n"
    assert outcome.err == expected
    monkeypatch.setenv("MIPFS_DEBUG", "1")
    assert "Traceback" in cli("solve", "fsp-m", small, "-p", "M=1").err


def test_ctrl_c_outside_a_run_is_one_line(cli: Cli, small: Path, fake_driver: Any) -> None:
    def interrupt(run: Run) -> None:
        raise KeyboardInterrupt

    fake_driver(interrupt)
    outcome = cli("solve", "fsp-m", small, "-p", "M=1")
    assert (outcome.code, outcome.err.count("\n")) == (4, 1)


def test_the_same_seed_gives_the_same_json(cli: Cli) -> None:
    def stable(text: str) -> Any:
        document = strict(text)
        return {k: v for k, v in document.items() if k not in ("seconds", "trace")}

    args = ("solve", "fsp-m", CREDIT, "--seed", "3", "--json", "-")
    assert stable(cli(*args).out) == stable(cli(*args).out)


def test_a_relaxation_says_how_far_its_own_sides_are_apart(cli: Cli, small: Path) -> None:
    outcome = cli("solve", "structural", small, "-p", "measure=f1", "-p", "M=1", "-p", "C=30")
    result = mipfs.solve(structural_dual.problem(mipfs.read(small), measure="f1", M=1, C=30.0), "two_layer")
    assert outcome.code == 0
    assert result.relaxed is not None
    line = next(line for line in outcome.out.splitlines() if line.startswith("relaxation"))
    assert f"{result.relaxed['lower']:.8g} to {result.relaxed['upper']:.8g}" in line
    assert "the gap is closed" not in outcome.out or result.status.name == "OPTIMAL"


def test_groups_are_selected_for_a_measure(cli: Cli, tmp_path: Path) -> None:
    """The best group of the .toml by `branch`, with a certificate, is the better of the two structural SVMs."""
    r = np.random.default_rng(1)
    X = r.standard_normal((12, 4))
    y = np.where(X[:, 0] + X[:, 1] > 0.5, 1, 0)
    data = tmp_path / "grouped.csv"
    rows = [",".join([str(label), *map(repr, row)]) for label, row in zip(y, X.tolist(), strict=True)]
    data.write_text("\n".join(["label,a,b,c,d", *rows]), encoding="utf-8")
    data.with_suffix(".toml").write_text('[groups]\none = ["a", "c"]\ntwo = ["b", "d"]\n', encoding="utf-8")
    out = tmp_path / "grouped.json"
    asked = ["-p", "measure=f1", "-p", "atoms=groups", "-p", "M=1", "-p", "C=30", "-p", "bias=false"]
    assert cli("solve", "structural", data, *asked, "--driver", "branch", "--quiet", "--json", out).code == 0
    document = strict(out.read_text())
    alone = {
        g: structural_svm(mipfs.read(data), "f1", 30.0, ids).objective for g, ids in (("one", [0, 2]), ("two", [1, 3]))
    }
    assert document["status"] == "OPTIMAL"
    assert document["selected"] == [min(alone, key=lambda name: alone[name])]
    assert document["objective"] == pytest.approx(min(alone.values()), rel=1e-3)
    assert cli("verify", out, data).code == 0


def test_a_pool_has_the_free_margin_too(cli: Cli, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "rho.json"
    pool = f"pool={';'.join(mipfs.read(small).feature_names[:2])}"
    assert cli("solve", "reduced-mkl", small, "-p", pool, "-p", "margin=rho", "--quiet", "--json", out).code == 0
    document = strict(out.read_text())
    assert document["params"]["margin"] == "rho"
    assert document["objective"] < 0.0


def test_a_branching_rule_is_chosen_by_name_and_kept(cli: Cli, tmp_path: Path) -> None:
    """Another tree, the same optimum; the rule stands in the JSON, and the certificate holds."""
    documents = {}
    for rule in ("largest-weight", "most-fractional"):
        path = tmp_path / f"{rule}.json"
        model = ["solve", "fsp-m", WDBC, "--scale", "standard", "-p", "M=3", "-p", "C=0.1", "--quiet"]
        assert cli(*model, "-o", f"branching={rule}", "--json", path).code == 0
        documents[rule] = strict(path.read_text())
        assert documents[rule]["settings"]["tree"]["branching"] == rule
        assert mipfs.Result.from_json(path.read_text()).settings.tree.branching == rule
        assert cli("verify", path, WDBC).code == 0
    first, second = documents.values()
    assert first["objective"] == pytest.approx(second["objective"], rel=1e-4)
    assert first["counters"]["nodes"] != second["counters"]["nodes"]
