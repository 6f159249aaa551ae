"""Honest certificates are accepted, and what they certify agrees with the oracle."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.check.dual_vectors import Duals
from mipfs.check.leaves import CoverTree, least_bound
from mipfs.check.result import check_result
from mipfs.check.statement import Statement
from mipfs.check.tree import check, check_unproven
from mipfs.data.instance import Instance, Row, SelectDefaults
from mipfs.errors import DataError, UsageError
from mipfs.losses import get_loss
from mipfs.problem import Problem
from mipfs.proof.proof import Proof
from mipfs.result.result import Result, Status
from tests.certificate.trees import LOSSES, arrays_of, checked, directly, document_of, make_data, solve
from tests.oracles import allowed_supports, brute_force


def assert_accepted(problem: Problem, result: Result, lower: float | None = None) -> None:
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason
    assert report.bound <= report.objective * (1 + 1e-12)
    data = problem.data
    rows = [mipfs_row(row) for row in result.rows]
    allowed = allowed_supports(data.feature_names, problem.M, rows, problem.forced_in or (), problem.forced_out or ())
    X = (data.X.toarray() if data.is_sparse else data.X) - data.center
    best = brute_force(X, data.y, problem.c_i, allowed, problem.penalty, problem.bias, loss=problem.loss)
    scale = abs(best.value.upper)
    assert report.bound <= best.value.upper + 1e-9 * scale
    assert report.bound >= best.value.lower * (1 - 1e-5)
    assert report.objective == pytest.approx(best.value.upper, rel=1e-5)


def mipfs_row(row: Any) -> Any:
    from tests.oracles import LinearRow

    low = -np.inf if row["lb"] is None else row["lb"]
    return LinearRow(row["name"], row["terms"], low, np.inf if row["ub"] is None else row["ub"])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("M", [0, 2, 6])
def test_an_honest_certificate_is_accepted(loss: str, bias: bool, M: int) -> None:
    data = make_data(np.random.default_rng(M), scale="standard")
    problem = Problem(data, loss=loss, bias=bias, M=M, C=0.3)
    assert_accepted(problem, solve(problem))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_penalties_forced_features_and_rows(loss: str, bias: bool, weighted: bool) -> None:
    rng = np.random.default_rng(5)
    data = make_data(
        rng, sample_weight=rng.uniform(0.2, 3.0, 40), penalty={"x2": 0.25}, scale="unit",
        rows=[Row("pair", {"x1": 1.0, "x3": 1.0}, -np.inf, 1.0)], select=SelectDefaults(3, ("x4",), ("x5",)),
    )  # fmt: skip
    problem = Problem(data, loss=loss, bias=bias, C=2.0, lam={"x1": 0.125, "x2": 1.0})
    result = solve(problem, weighted=weighted)
    assert "x4" in result.selected
    assert_accepted(problem, result)


@pytest.mark.parametrize("bias", [True, False])
def test_sparse_columns_with_an_implicit_centre(bias: bool) -> None:
    rng = np.random.default_rng(3)
    X = sparse.csc_array(np.where(rng.random((40, 6)) < 0.3, rng.normal(2.0, 1.0, (40, 6)), 0.0))
    data = make_data(rng, X=X, scale="standard")
    assert data.is_sparse and np.any(data.center)  # noqa: PT018
    problem = Problem(data, bias=bias, M=3)
    assert_accepted(problem, solve(problem))


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_with_a_large_mean(loss: str) -> None:
    rng = np.random.default_rng(4)
    data = make_data(rng, X=rng.normal(size=(60, 6)) + 1e5)
    problem = Problem(data, loss=loss, M=2)
    result = solve(problem)
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
    assert report.gap <= 2e-6


def test_without_cardinality_row_the_leaves_sum_over_all_features() -> None:
    data = make_data(np.random.default_rng(8))
    problem = Problem(data, lam=0.4)
    assert_accepted(problem, solve(problem))


def test_an_empty_selection_set_is_certified_by_refuted_leaves() -> None:
    data = make_data(np.random.default_rng(9), p=3)
    rows = Problem(data).with_rows(np.eye(3), 1.0, 1.0)
    result = solve(rows.replace(M=2))
    assert result.status is Status.INFEASIBLE
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
    assert report.bound == np.inf


def test_a_stopped_run_certifies_the_bound_that_it_has() -> None:
    data = make_data(np.random.default_rng(10))
    result = solve(Problem(data, M=3))
    worse = dataclasses.replace(result, status=Status.FEASIBLE)
    assert mipfs.verify(worse, data).accepted


def test_the_json_and_its_sidecar_are_enough(tmp_path: Path) -> None:
    data = make_data(np.random.default_rng(11), scale="standard")
    result = solve(Problem(data, M=2))
    assert result.certificate is None
    result.save(tmp_path / "a.json")
    back = Result.load(tmp_path / "a.json")
    assert back.certificate is not None
    assert back.certificate == result.certificate
    assert set(back.certificate) == {"kind", "bound", "gap", "file", "sha256"}
    assert back.certificate["file"] == "a.cert.npz"
    assert back.to_json() == result.to_json()
    report = mipfs.verify(back, data)
    assert report.accepted
    assert report.bound == back.certificate["bound"]
    again = solve(Problem(data, M=2))
    again.save(tmp_path / "b.json")
    assert (tmp_path / "a.cert.npz").read_bytes() == (tmp_path / "b.cert.npz").read_bytes()


def test_what_is_missing_is_one_clear_error(tmp_path: Path) -> None:
    data = make_data(np.random.default_rng(12))
    result = solve(Problem(data, M=2))
    with pytest.raises(UsageError, match="stands alone"):
        mipfs.verify(dataclasses.replace(result, claim=None), data)
    result.save(tmp_path / "a.json")
    sidecar = tmp_path / "a.cert.npz"
    kept = sidecar.read_bytes()
    sidecar.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    report = mipfs.verify(Result.load(tmp_path / "a.json"), data)
    assert not report.accepted
    assert "SHA-256" in report.reason
    sidecar.unlink()
    with pytest.raises(DataError, match="sidecar"):
        mipfs.verify(Result.load(tmp_path / "a.json"), data)


def test_extra_variables_are_checked_and_carry_multipliers(tmp_path: Path) -> None:
    from mipfs.selection.selection import Extras, Rows

    data = make_data(np.random.default_rng(14), p=4)
    # x1 + x2 + x3 + x4 = 2 z with a whole number z >= 0: an even number of features
    extra = Extras(("extra_z",), np.zeros(1), np.array([np.inf]), np.array([True]))
    matrix = sparse.csr_array(np.array([[1.0, 1.0, 1.0, 1.0, -2.0]]))
    rows = Rows(matrix, np.zeros(1), np.zeros(1), ("even",), ("",), extra)
    problem = Problem(data, rows=rows, M=3)
    result = solve_with_extras(problem)
    assert result.extra["extra_z"] == {"lb": 0.0, "ub": None, "integer": True, "value": 1.0}
    assert checked(result, data, tmp_path).accepted
    for value, reason in ((0.5, "is no whole number"), (2.0, "violate the row 'even'"), (-1.0, "outside its bounds")):
        entry = result.extra["extra_z"] | {"value": value}
        report = directly(result, data, extra={"extra_z": entry})
        assert not report.accepted
        assert reason in report.reason
    # the multiplier 1 leaves -A'y = 2 on z >= 0 (allowed), -1 leaves -2: no bound
    arrays = result.claim.proof.arrays() if result.claim else {}
    statement = Statement(document_of(result), data)
    for y, proves in ((0.0, True), (1e-9, True), (-1e-9, False)):
        constants, _ = statement.reduced(np.zeros(4), [y], (statement.low, statement.high))
        assert (-np.inf not in constants) is proves
        for claimed in (-1e-6, 1e-6):  # no value is below 0, whatever the leaves prove
            report = directly(result, data, arrays | {"multipliers": np.full((1, 1), y)}, status="FEASIBLE", bound=None,
                              certificate={"kind": "tree", "bound": claimed, "gap": 0.9})  # fmt: skip
            assert report.accepted is (claimed < 0), report.reason
    assert document_of(result)["rows"][0]["terms"]["extra_z"] == -2.0


def solve_with_extras(problem: Problem) -> Result:
    """One leaf with zero multipliers is enough for a check of the selection: a bound of the root."""
    from mipfs.drivers.branch import Options
    from mipfs.inner.subproblem import Subproblem
    from mipfs.proof.proof import Proof
    from mipfs.run.finish import result_of
    from mipfs.run.run import Run

    run = Run(problem, Options(gap=0.9))
    proof = Proof(problem.data.n_samples, problem.atoms.count)
    solved = Subproblem(problem).solve(np.array([1.0, 1.0, 0.0, 0.0]), 1e-9)
    run.offer(solved.ids, solved.svm.w, solved.svm.b)
    k = np.zeros(problem.data.n_samples, dtype=np.int64)
    proof.close(proof.root, proof.add_dual(k, 10), np.zeros(1))
    run.raise_bound(0.0)
    run.interrupted = True
    run.outcome.proof = proof
    return result_of(run, "branch")


OUTSIDE = sys.stdlib_module_names | {"numpy", "scipy"}


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [str(node.module)] if isinstance(node, ast.ImportFrom) else []


def test_the_checker_shares_no_code_with_what_it_checks() -> None:
    for path in (Path(mipfs.__file__).parent / "check").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for one in itertools.chain.from_iterable(imported(node) for node in ast.walk(ast.parse(text))):
            own = one.startswith(("mipfs.check", "mipfs.data.", "mipfs.readers", "mipfs.errors"))
            tables = ("stated.py", "mipfs.losses"), ("stated.py", "mipfs.regularisers")  # their names alone
            own = own or (path.name, one) in tables or one == "mipfs.stated"
            assert own or one.split(".")[0] in OUTSIDE, (path.name, one)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_bounds_lie_below_those_of_exact_arithmetic(seed: int, bias: bool, loss: str) -> None:
    """lower(α) in rationals, on columns of large mean, of very different sizes, sparse and centred."""
    rng, n, p, M = np.random.default_rng(seed), 24, 5, 2
    X: Any = (rng.normal(size=(n, p)) + rng.choice([0.0, 1e8], p)) * 10.0 ** rng.integers(-9, 4, p)
    if seed % 2:
        X = sparse.csc_array(np.where(rng.random((n, p)) < 0.6, X, 0.0))
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    data = Instance.from_arrays(X, y, scale="standard" if seed % 3 else "none", sample_weight=rng.uniform(0.5, 2.0, n))
    problem = Problem(data, loss=loss, bias=bias, M=M, C=0.7, lam=0.3)
    k, q = get_loss(loss).feasible_dual(problem.c_i * rng.random(n), problem.c_i, y, bias)
    proof = Proof(n, p)
    leaf = proof.fix(proof.root, np.array([3]), np.array([1]), proof.add_dual(k, q))
    proof.close(leaf, 0)
    params = {"M": M, "C": 0.7, "lambda": 0.3, "loss": loss, "bias": bias}
    statement = Statement({"params": params, "rows": []}, data)
    arrays = proof.arrays()
    found, _ = least_bound(statement, Duals(statement, arrays), CoverTree(arrays, p, statement.whole), arrays)

    alpha = [Fraction(int(v)) / Fraction(2) ** q for v in k]
    g = sum(alpha, Fraction())
    if loss == "squared-hinge":
        g -= sum((a * a / (2 * Fraction(float(c))) for a, c in zip(alpha, problem.c_i, strict=True)), Fraction())
    dense = data.X.toarray() if data.is_sparse else data.X
    costs = []
    for j in range(p):
        centred = [Fraction(float(x)) - Fraction(float(data.center[j])) for x in dense[:, j]]
        omega = sum((a * int(s) * x for a, s, x in zip(alpha, y, centred, strict=True)), Fraction())
        costs.append(Fraction(0.3) - omega * omega / 2)
    sets = [chosen for size in range(M + 1) for chosen in itertools.combinations(range(p), size)]
    exact = g + min(sum((costs[j] for j in chosen), Fraction()) for chosen in sets)
    size = float(g) + sum(abs(float(c)) for c in costs)
    assert Fraction(found) <= exact
    assert float(exact - Fraction(found)) <= 1e-4 * size  # the price of columns of large mean


@pytest.mark.parametrize("schema", [0, 2, {}, True, 1.0, "1", None, "missing"])
def test_another_schema_is_refused(schema: Any) -> None:
    data = make_data(np.random.default_rng(4))
    result = solve(Problem(data, M=2, C=1.0, loss="hinge"))
    document, arrays = document_of(result), arrays_of(result)
    assert check_result(document, arrays, data).accepted
    document |= {"schema": schema}
    if schema == "missing":
        del document["schema"]
    for report in (check(document, arrays, data), check_result(document, arrays, data), check_unproven(document, data)):
        assert not report.accepted
        assert "schema" in report.reason


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_a_dual_vector_that_nothing_refers_to_is_feasible_too(loss: str) -> None:
    """As with the leaves' own: y'alpha = 0 is an identity of integers."""
    data = make_data(np.random.default_rng(4))
    result = solve(Problem(data, M=2, C=1.0, loss=loss))
    assert result.claim is not None
    proof = result.claim.proof
    for change, accepted in ((0, True), (1, False)):  # y'alpha = change
        other = Proof(data.n_samples, data.n_features)
        for d in proof.needed:
            other.add_dual(*proof.dual(int(d)))
        k = np.zeros(data.n_samples, dtype=np.int64)
        k[0], k[1] = 5, 5 + change
        other.add_dual(k, 20)
        report = directly(result, data, arrays_of(result) | other.duals.arrays())
        assert report.accepted == accepted, report.reason
        assert accepted or "y'alpha" in report.reason
