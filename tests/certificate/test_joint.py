"""Certificates of structural losses: accepted, as strong as the result, and rejected when tampered with."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.check import exact_joint
from mipfs.check.joint import JointDuals, JointStatement
from mipfs.check.leaves import CoverTree, least_bound
from mipfs.check.measure import StatedMeasure
from mipfs.check.result import check_result
from mipfs.check.rounding import CertificateError
from mipfs.data.instance import Instance
from mipfs.measures import get_measure
from mipfs.problem import Problem
from mipfs.proof.labelled import LabelledStore
from mipfs.proof.proof import Proof
from mipfs.result.result import Result, Status
from tests.certificate.trees import Arrays, arrays_of, checked, damages, document_of, make_data
from tests.structural_oracles import cases, labellings, structural_svm

DRIVERS = ("gbd", "branch", "two_layer")


def labels(rng: np.random.Generator, n: int) -> Any:
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return y


def counts_of(V: Any, y: Any, divisor: float) -> Any:
    return np.rint(V * y * divisor / 2.0).astype(np.int64)


# --- the checker's own measures ---------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "given"), cases())
@pytest.mark.parametrize("seed", range(4))
def test_measures_equal_their_definition_over_all_labellings(name: str, given: dict[str, float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = labels(rng, 5 if name in ("roc-auc", "average-precision") else 7)
    losses, V = labellings(name, y, **given)  # type: ignore[arg-type]
    measure = StatedMeasure({"measure": name, **given}, y)
    scores = (rng.normal(size=y.size), rng.integers(-1, 2, y.size) * 0.5, np.zeros(y.size))
    for f in scores:
        assert measure.worst(f)[0] == pytest.approx(float(np.max(losses - V @ f)), abs=1e-12)
    divisor = measure.P * measure.N if name in ("roc-auc", "average-precision") else y.size
    counts = counts_of(V, y, divisor)
    kept = range(len(losses))
    if name == "roc-auc":  # only those that a ranking leaves: an odd set of pairs is never most violated
        kept = [k for k in kept if fits(measure, counts[k])]
        assert len(kept) >= 6
    found = measure.losses(counts[kept])
    assert np.all(found <= losses[kept] + 1e-16)
    assert found == pytest.approx(losses[kept], abs=1e-14)


def fits(measure: StatedMeasure, counts: Any) -> bool:
    try:
        measure.losses(counts[None, :])
    except CertificateError:
        return False
    return True


@pytest.mark.parametrize("name", ["roc-auc", "average-precision"])
def test_every_most_violated_ranking_is_one_to_the_checker(name: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        y = labels(rng, int(rng.integers(2, 40)))
        ours, measure = get_measure(name, y), StatedMeasure({"measure": name}, y)
        f = rng.normal(size=y.size).round(int(rng.integers(0, 3)))
        violated = ours.violated(f)
        assert measure.losses(violated.counts[None, :])[0] == pytest.approx(violated.loss, abs=1e-13)
        assert measure.worst(f)[0] == pytest.approx(violated.value, abs=1e-11)


@pytest.mark.parametrize(
    ("name", "counts", "reason"),
    [
        ("f1", [[2, 0, 0, 0]], "mislabelled or not"),
        ("prbep", [[1, 0, 0, 0]], "does not label 2"),
        ("roc-auc", [[1, 0, 0, 0]], "does not fit together"),
        ("roc-auc", [[3, 0, 1, 1]], "does not fit together"),
        ("average-precision", [[-1, 0, 0, 0]], "does not fit together"),
    ],
)
def test_counts_of_no_labelling_are_rejected(name: str, counts: Any, reason: str) -> None:
    with pytest.raises(CertificateError, match=reason):
        StatedMeasure({"measure": name}, np.array([1.0, 1.0, -1.0, -1.0])).losses(np.array(counts))


@pytest.mark.parametrize(
    ("params", "y"),
    [
        ({"measure": "mean"}, [1.0, -1.0]),
        ({"measure": "f1"}, [-1.0, -1.0]),
        ({"measure": "roc-auc"}, [1.0, 1.0]),
        ({"measure": "fbeta", "beta": 0.0}, [1.0, -1.0]),
        ({"measure": "precision-at-k", "k": 3}, [1.0, -1.0]),
    ],
)
def test_measures_that_are_not_defined_are_rejected(params: dict[str, Any], y: Any) -> None:
    with pytest.raises(CertificateError):
        StatedMeasure(params, np.array(y))


# --- certificates of the drivers --------------------------------------------------------------------------------------


def drawn(name: str, given: dict[str, float], seed: int) -> Problem:
    """A small problem: dense or sparse, scaled in every way, with penalties, rows and forced features."""
    rng = np.random.default_rng(seed)
    n, p = (6 if name in ("roc-auc", "average-precision") else 9), 5
    X: Any = rng.normal(size=(n, p)) + 0.5
    if seed % 2:
        X = sparse.csc_array(np.where(rng.random((n, p)) < 0.6, X, 0.0))
    data = Instance.from_arrays(X, labels(rng, n), scale=("none", "standard", "unit")[seed % 3])
    problem = Problem(
        data, loss="structural", bias=False, measure=name, M=2, C=10.0 ** rng.uniform(0, 2),
        lam=0.05 * (seed % 2), forced_out=("x5",) if seed == 1 else (), **given,  # type: ignore[arg-type]
    )  # fmt: skip
    return problem.with_rows(rng.integers(-1, 3, (2, p)), -np.inf, 2.0) if seed >= 2 else problem


def best_of(problem: Problem, given: dict[str, float]) -> float:
    """The optimum, by an SVM over all labellings on every support."""
    data, selection = problem.data, problem.selection
    X = (data.X.toarray() if data.is_sparse else data.X) - data.center
    losses, V = labellings(str(problem.measure), data.y, **given)  # type: ignore[arg-type]
    best = np.inf
    for bits in itertools.product((False, True), repeat=data.n_features):
        sigma = np.array(bits)
        if selection.contains(sigma):
            paid = float(problem.penalty @ sigma)
            best = min(best, paid + structural_svm(X[:, sigma], losses, V, problem.C)[0])
    return best


@pytest.mark.sampled(59)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("name", "given"), [case for case in cases() if case[1].get("beta") != 0.7 and case[1] != {"k": 5}]
)
def test_certificates_bear_the_bound_and_agree_with_brute_force(name: str, given: dict[str, float], seed: int) -> None:
    problem = drawn(name, given, seed)
    best = best_of(problem, given)
    for driver in DRIVERS:
        result = mipfs.solve(problem, driver, gap=1e-6)
        report = mipfs.verify(result, problem.data)
        assert report.accepted, report.reason
        assert report.bound == pytest.approx(result.bound, rel=1e-6, abs=1e-7)
        assert report.bound <= best * (1 + 1e-7)
        if driver != "two_layer":
            assert result.status is Status.OPTIMAL
            assert report.objective == pytest.approx(best, rel=3e-6)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("name", ["f1", "prbep", "roc-auc", "average-precision"])
def test_files_are_enough(driver: str, name: str, tmp_path: Path) -> None:
    data = make_data(np.random.default_rng(3), n=40, p=7, scale="standard")
    result = mipfs.solve(Problem(data, loss="structural", bias=False, measure=name, M=2, C=30.0), driver)
    report = checked(result, data, tmp_path)
    assert report.accepted, report.reason
    assert report.bound == pytest.approx(result.bound, rel=1e-6)


def test_a_run_that_was_stopped_closes_its_open_nodes() -> None:
    data = make_data(np.random.default_rng(1), n=60, p=15)
    problem = Problem(data, loss="structural", bias=False, measure="f1", M=4, C=100.0)
    result = mipfs.solve(problem, "gbd", iteration_limit=25)
    assert result.status is Status.FEASIBLE
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
    assert report.gap > 1e-3


def test_cuts_carried_along_a_path_certify_at_the_next_point() -> None:
    data = make_data(np.random.default_rng(3), n=50, p=8)
    problem = Problem(data, loss="structural", bias=False, measure="f1", M=3)
    found = mipfs.path(problem, C=[5.0, 20.0, 80.0], driver="gbd", gap=1e-6)
    assert sum(point.cuts_carried for point in found.points) > 0
    for point in found.points:
        report = mipfs.verify(point.result, data)
        assert report.accepted, report.reason
        assert report.gap <= 1e-6 + 1e-9


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_empty_selection_set_is_certified(driver: str) -> None:
    data = make_data(np.random.default_rng(2), n=20, p=5)
    problem = Problem(data, loss="structural", bias=False, measure="f1", M=2)
    problem = problem.with_rows([[2.0, 2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0]], [1.0, 2.0], [1.0, 2.0])
    result = mipfs.solve(problem, driver)
    assert result.status is Status.INFEASIBLE
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
    assert report.bound == np.inf


@pytest.mark.parametrize("name", ["f1", "roc-auc"])
@pytest.mark.parametrize("centred", [False, True])
def test_bounds_lie_below_those_of_exact_arithmetic(name: str, centred: bool) -> None:
    rng, n, p, M = np.random.default_rng(7), 10, 4, 2
    X = (rng.normal(size=(n, p)) + rng.choice([0.0, 1e6], p)) * 10.0 ** rng.integers(-6, 3, p)
    X = sparse.csc_array(np.where(rng.random((n, p)) < 0.7, X, 0.0)) if centred else X
    y = labels(rng, n)
    data = Instance.from_arrays(X, y, scale="standard" if centred else "none")
    measure = get_measure(name, y)
    counts = np.array([measure.violated(rng.normal(size=n)).counts for _ in range(3)])
    store = LabelledStore(n)
    proof = Proof(n, p, duals=store)
    whole, q = np.array([3 << 38, 1 << 36, 12345]), 40
    proof.close(proof.root, store.add(counts, whole, q))
    params = {"M": M, "C": 1.0, "lambda": 0.01, "loss": "structural", "bias": False, "measure": name}
    arrays = proof.arrays()
    statement = JointStatement({"params": params, "rows": []}, data)
    found, _ = least_bound(statement, JointDuals(statement, arrays), CoverTree(arrays, p, statement.whole), arrays)

    P, N = int((y > 0).sum()), int((y < 0).sum())
    alpha = [Fraction(int(value), 2**q) for value in whole]
    g, D = Fraction(), Fraction(P * N if name == "roc-auc" else n)
    for one, row in zip(alpha, counts, strict=True):
        missed, lifted = int(row[y > 0].sum()), int(row[y < 0].sum())
        f1 = Fraction(2 * (P - missed), 2 * P - missed + lifted)
        g += one * (Fraction(missed, P * N) if name == "roc-auc" else 1 - f1)
    v = [
        sum(a * int(k) for a, k in zip(alpha, column, strict=True)) * 2 * int(s) / D
        for column, s in zip(counts.T, y, strict=True)
    ]
    dense = data.X.toarray() if data.is_sparse else data.X
    costs = []
    for j in range(p):
        shift = Fraction(float(data.center[j]))
        omega = sum((one * (Fraction(float(x)) - shift) for one, x in zip(v, dense[:, j], strict=True)), Fraction())
        costs.append(Fraction(0.01) - omega * omega / 2)
    sets = [chosen for size in range(M + 1) for chosen in itertools.combinations(range(p), size)]
    exact = g + min(sum((costs[j] for j in chosen), Fraction()) for chosen in sets)
    assert Fraction(found) <= exact
    assert float(exact - Fraction(found)) <= 1e-7 * (float(g) + sum(abs(float(c)) for c in costs))


# --- tampering --------------------------------------------------------------------------------------------------------


def solved() -> tuple[Result, Instance]:
    data = make_data(np.random.default_rng(1), n=30, p=6)
    return mipfs.solve(Problem(data, loss="structural", bias=False, measure="f1", M=2, C=20.0), "gbd"), data


def change(name: str, how: Callable[[Any], None]) -> Callable[[Arrays], None]:
    def tamper(arrays: Arrays) -> None:
        how(arrays[name])

    return tamper


def one_unit_more(arrays: Arrays) -> None:
    """The first dual vector's sum, one unit above C on its grid."""
    start, stop = arrays["dual_start"][:2]
    top = int(np.floor(np.ldexp(20.0, int(arrays["dual_q"][0]))))
    arrays["dual_whole"][start] += top + 1 - int(arrays["dual_whole"][start:stop].sum())


def negative(whole: Any) -> None:
    whole[0] = -1


def other_labelling(counts: Any) -> None:
    counts[:] = 1 - counts


def no_labelling(counts: Any) -> None:
    counts[0, 0] = 2


def unknown(index: Any) -> None:
    index[0] = 10_000


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        (one_unit_more, "leaves its simplex"),
        (change("dual_whole", negative), "negative"),
        (change("labelling", other_labelling), "proves only"),
        (change("labelling", no_labelling), "mislabelled or not"),
        (change("dual_label", unknown), "unknown labelling"),
    ],
)
def test_a_changed_dual_vector(tamper: Callable[[Arrays], None], reason: str, tmp_path: Path) -> None:
    result, data = solved()
    report = checked(result, data, tmp_path, tamper)
    assert not report.accepted
    assert reason in report.reason, report.reason


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"measure": "error"}, "objective of the selected features"),
        ({"measure": "fbeta", "beta": 2.0}, "objective of the selected features"),
        ({"C": 19.0}, "objective of the selected features"),
        ({"bias": True}, "weight of a constant column"),
        ({"M": 3}, "proves only"),
        ({"loss": "hinge"}, "does not know"),
    ],
)
def test_another_problem(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    result, data = solved()
    report = checked(result, data, tmp_path, edit=lambda document: document["params"].update(changes))
    assert not report.accepted
    assert reason in report.reason, report.reason


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["labelling", "dual_label", "dual_whole", "dual_start", "dual_q"])
def test_a_damaged_sidecar_is_rejected_and_never_crashes(name: str, tmp_path: Path) -> None:
    result, data = solved()

    for tamper in damages(name):
        report = checked(result, data, tmp_path, tamper)
        assert not report.accepted
        assert report.reason


def vector(n: int, **other: Any) -> Arrays:
    """One dual vector over one labelling that nothing refers to, feasible but for what is said."""
    kept = {"dual_q": np.array([4]), "dual_start": np.array([0, 1]), "dual_label": np.array([0])}
    kept |= {"dual_whole": np.array([1]), "labelling": np.zeros((1, n), dtype=np.int64)}
    return {name: array if name == "dual_q" else array.astype(np.int64) for name, array in {**kept, **other}.items()}


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({}, ""),
        ({"dual_whole": np.array([-1])}, "negative"),
        ({"dual_whole": np.array([2**20])}, "leaves its simplex"),
        ({"dual_whole": np.array([1, 1])}, "one number each"),
        ({"dual_label": np.array([1])}, "unknown labelling"),
        ({"dual_start": np.array([1, 1])}, "do not add up"),
        ({"dual_start": np.array([0, 0])}, "do not add up"),
        ({"dual_q": np.array([901])}, "grid"),
        ({"dual_q": np.array([[4]])}, "does not belong"),
        ({"outside": np.array([0])}, "does not know"),
    ],
)
def test_vectors_that_nothing_refers_to_are_checked_where_no_leaf_holds_a_selection(
    other: dict[str, Any], reason: str
) -> None:
    data = make_data(np.random.default_rng(2), n=20, p=5)
    problem = Problem(data, loss="structural", bias=False, measure="f1", M=2)
    problem = problem.with_rows([[2.0, 2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0]], [1.0, 2.0], [1.0, 2.0])
    result = mipfs.solve(problem, "gbd")
    document, arrays = document_of(result), arrays_of(result)
    assert check_result(document, arrays, data).accepted
    bare = arrays | vector(20)
    report = check_result(document, bare | vector(20, **other), data)
    assert report.accepted == (not reason), report.reason
    assert reason in report.reason
    for name in ("dual_whole", "dual_label", "labelling", "dual_start", "dual_q"):
        lacking = {key: array for key, array in bare.items() if key != name}
        assert not check_result(document, lacking, data).accepted


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "given"), cases())
@pytest.mark.parametrize("seed", range(6))
def test_the_largest_excess_is_that_of_rational_arithmetic(name: str, given: dict[str, float], seed: int) -> None:
    """Ours, the checker's, and within its error that of floats: as over all labellings, which none of them lists."""
    rng = np.random.default_rng(seed)
    y = labels(rng, 5 if name in ("roc-auc", "average-precision") else 7)
    ours, measure = get_measure(name, y, **given), StatedMeasure({"measure": name, **given}, y)  # type: ignore[arg-type]
    losses, V = labellings(name, y, **given)  # type: ignore[arg-type]
    for f in (rng.normal(size=y.size), rng.integers(-1, 2, y.size) * 0.5, np.zeros(y.size), 1e6 + rng.random(y.size)):
        whole = [int(Fraction(value) * 2**60) for value in f.tolist()]
        scores = [Fraction(one, 2**60) for one in whole]
        exact, checkers = ours.excess(scores), exact_joint.worst(measure, whole, -60)
        assert exact is not None
        assert checkers is not None
        assert abs(exact - checkers) <= Fraction(1, 2**200)
        near = max(0.0, float(np.max(losses - V @ f)))
        assert float(exact) == pytest.approx(near, abs=1e-13 * (1 + np.abs(f).max()))
        found, error = measure.worst(f)
        assert abs(Fraction(found) - exact) <= Fraction(error)
        assert error <= 1e-13 * (1 + np.abs(f).max())
    far = 1e3 * y
    if measure.k == measure.P:  # the labels themselves are admissible
        assert measure.worst(far) == (0.0, 0.0)


@pytest.mark.parametrize("name", ["f1", "roc-auc", "average-precision", "prbep", "error"])
def test_exact_excesses_agree_on_some_hundred_samples(name: str) -> None:
    rng = np.random.default_rng(6)
    y = labels(rng, 150)
    f = rng.normal(size=150).round(2) + 0.3 * y
    whole = [int(Fraction(value) * 2**60) for value in f.tolist()]
    measure = StatedMeasure({"measure": name}, y)
    exact = exact_joint.worst(measure, whole, -60)
    ours = get_measure(name, y).excess([Fraction(one, 2**60) for one in whole])
    assert exact is not None
    assert ours is not None
    assert abs(exact - ours) <= Fraction(1, 2**200)
    assert float(exact) == pytest.approx(measure.worst(f)[0], abs=1e-12)
