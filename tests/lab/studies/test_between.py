"""How far from the best a set is between two points of a path: against every set at every C, and both checkers."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mipfs
from mipfs.atoms.pairs import Pairs
from mipfs.cli import main
from mipfs.errors import UsageError
from mipfs.lab.studies.between import between_chart, chord
from mipfs.lab.studies.solution_path import SolutionPath
from tests.certificate.test_second_reading import judged
from tests.oracles import svm_value

Array = npt.NDArray[np.float64]
P, M = 5, 2
EVERY = [support for k in (0, 1, 2) for support in itertools.combinations(range(P), k)]
GRID = (0.01, 0.2, 3.0, 100.0)
VALUES = np.geomspace(GRID[0], GRID[-1], 20).tolist()
WIN_LOSE_WIN = (12, 31, 87)
"""Seeds of draws with the logistic loss where a set is the best, not, and the best again as C grows."""


def draw(seed: int) -> tuple[Array, Array]:
    r = np.random.default_rng(seed)
    X = r.normal(size=(24, P)) * r.choice([0.3, 1, 3], P)
    y = np.where(X @ (r.normal(size=P) / np.abs(X).mean(0)) + 1.5 * r.normal(size=24) > 0, 1.0, -1.0)
    return X, y


def logistic(X: Array, y: Array, C: float) -> float:
    """The value of a support by Newton's method, without an intercept: no code of the package."""
    if not X.shape[1]:
        return float(C * y.size * np.log(2.0))
    w = np.zeros(X.shape[1])

    def value(w: Array) -> float:
        return float(0.5 * w @ w + C * np.logaddexp(0.0, -y * (X @ w)).sum())

    for _ in range(80):
        s = 1.0 / (1.0 + np.exp(y * (X @ w)))
        slope = w - C * X.T @ (y * s)
        step = np.linalg.solve(np.eye(w.size) + C * (X.T * (s * (1.0 - s))) @ X, -slope)
        t = 1.0
        while t > 1e-12 and value(w + t * step) > value(w) + 1e-4 * t * float(slope @ step):
            t /= 2.0
        w = w + t * step
        if np.abs(slope).max() < 1e-11:
            break
    return value(w)


def values(X: Array, y: Array, C: float, loss: str) -> dict[tuple[int, ...], float]:
    """The value of every support at C."""
    if loss == "logistic":
        return {one: logistic(X[:, one], y, C) for one in EVERY}
    c_i = np.full(y.size, C)
    return {one: svm_value(X[:, one], y, c_i, True, loss).upper for one in EVERY}


def check(seed: int, loss: str, step: int = 1) -> list[tuple[int, ...]]:
    """At 20 values of C, every `step`-th, no gap is below the truth; returns the best sets."""
    X, y = draw(seed)
    data = mipfs.Instance.from_arrays(X, y)
    problem = mipfs.Problem(data, M=M, loss=loss, bias=loss != "logistic")
    found = mipfs.path(problem, C=GRID)
    order = []
    for k, C in enumerate(VALUES):
        truth = values(X, y, C, loss)
        best = min(truth, key=truth.__getitem__)
        order.append(best)
        least = truth[best]
        for selected in () if k % step else (None, [data.feature_names[j] for j in EVERY[1 + seed % (len(EVERY) - 1)]]):
            one = found.at(C, data, selected=selected)
            own = truth[tuple(data.index[name] for name in one.selected)]
            assert one.objective >= own - 1e-6 * own
            assert one.objective == pytest.approx(own, rel=1e-3)
            assert one.bound <= least + 1e-6 * least
            assert one.gap >= (own - least) / own - 2e-6
    return order


@pytest.mark.parametrize("seed", WIN_LOSE_WIN[:1])
def test_a_set_that_wins_loses_and_wins_again(seed: int) -> None:
    order = check(seed, "logistic", step=5)
    runs = [key for key, _ in itertools.groupby(order)]
    assert len({*runs}) < len(runs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*WIN_LOSE_WIN[1:], *range(200, 247)])
def test_no_gap_is_below_the_truth(seed: int) -> None:
    check(seed, "logistic" if seed in WIN_LOSE_WIN else ("hinge", "squared-hinge", "logistic")[seed % 3])


def test_the_chord_is_rounded_down() -> None:
    rng = np.random.default_rng(0)
    for a, b, left, right, t in rng.random((200, 5)).tolist():
        low, high = sorted((a, b))
        at = min(high, low + t * (high - low))
        exact = Fraction(left) + (Fraction(right) - Fraction(left)) * (
            (Fraction(at) - Fraction(low)) / (Fraction(high) - Fraction(low))
        )
        found = chord((low, left), (high, right), at)
        assert Fraction(found) <= exact
        assert found == pytest.approx(float(exact), rel=1e-15)
    assert chord((2.0, 5.0), (2.0, 5.0), 2.0) == 5.0


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What the command writes, and its data."""
    folder = tmp_path_factory.mktemp("between")
    X, y = draw(12)
    data = folder / "t.csv"
    rows = [",".join([*(repr(float(v)) for v in row), str(int(one))]) for row, one in zip(X, y, strict=True)]
    data.write_text("\n".join([",".join([*(f"f{j}" for j in range(P)), "label"]), *rows]) + "\n")
    asked = ["--C", "0.1,1,10", "--M", "1:2", "--between", "2", "--scale", "standard", "-q"]
    assert main(["path", str(data), *asked, "--json", str(folder / "p.json"), "--report", str(folder / "p.html")]) == 0
    return folder / "p.json", data


def test_both_checkers_take_it_and_page_and_file_have_it(written: tuple[Path, Path]) -> None:
    file, data = written
    assert main(["verify", str(file), str(data), "-q"]) == 0
    assert judged(file, data)[0] == "accepted"
    found = SolutionPath.load(file)
    assert len(found.between) == 2 * 2 * 2
    assert [one.document() for one in found.between] == json.loads(file.read_text())["between"]
    page = file.with_suffix(".html").read_text()
    assert "Between the points" in page
    assert "between the points no set is better" in found.summary()


def test_the_picture_has_points_and_values_between_them() -> None:
    X, y = draw(3)
    data = mipfs.Instance.from_arrays(X, y)
    found = mipfs.path(mipfs.Problem(data, M=M), C=[0.1, 1.0, 10.0], between=1)
    chart = between_chart(found)
    assert chart is not None
    assert [*chart.x] == sorted([*(p.place["C"] for p in found.points), *(one.place["C"] for one in found.between)])
    upper, lower = (curve.y for curve in chart.curves)
    assert lower[1] == found.between[0].bound
    assert all(a >= b for a, b in zip(upper, lower, strict=True))  # type: ignore[operator]
    assert between_chart(mipfs.path(mipfs.Problem(data, M=M), C=[0.1, 1.0])) is None


def forged(change: str, entry: dict[str, Any]) -> None:
    """One thing of a set between two points, changed."""
    if change == "bound":
        entry["bound"] = entry["objective"]
    elif change == "objective":
        entry["objective"] *= 0.999
    elif change == "gap":
        entry["gap"] = 0.0
    elif change == "C":
        entry["C"] *= 1.1
    elif change == "outside":
        entry["C"] = 100.0
    elif change == "weight":
        entry["weights"] = {name: 1.01 * w for name, w in entry["weights"].items()}
    elif change == "selected":
        entry["selected"] = ["f0", "f1", "f2", "f3", "f4"]
    else:
        entry["more"] = 1


@pytest.mark.parametrize("change", ["bound", "objective", "gap", "C", "outside", "weight", "selected", "more"])
def test_a_forged_set_is_refused(written: tuple[Path, Path], tmp_path: Path, change: str) -> None:
    file, data = written
    document = json.loads(file.read_text())
    forged(change, next(one for one in document["between"] if one["gap"] > 1e-3))
    other = tmp_path / "p.json"
    other.write_text(json.dumps(document))
    (tmp_path / "p.cert.npz").write_bytes(file.with_name("p.cert.npz").read_bytes())
    assert main(["verify", str(other), str(data), "-q"]) != 0
    assert judged(other, data)[0] == "rejected"


def test_what_it_does_not_carry_is_refused() -> None:
    X, y = draw(0)
    data = mipfs.Instance.from_arrays(X, y)
    with pytest.raises(UsageError, match="concave in C"):
        mipfs.path(mipfs.Problem(data), M=[1, 2], between=2)
    found = mipfs.path(mipfs.Problem(data, M=M), C=[0.1, 1.0])
    for given, said in (
        ({"C": 2.0}, "no chord goes there"),
        ({"C": 0.5, "M": 1}, "over C and M"),
        ({"C": 0.5, "selected": data.feature_names[:3]}, "more than M = 2"),
    ):
        with pytest.raises(UsageError, match=said):
            found.at(data=data, **given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="digest differs"):
        found.at(0.5, mipfs.Instance.from_arrays(X, -y))


def test_data_on_another_scale_is_refused_where_a_set_would_be_solved_again() -> None:
    """The digest is that of the raw data: unscaled, a set of value 29.6 had a bound of 29.6 taken off another chord."""
    data = mipfs.read("instances/credit.csv")
    raw = mipfs.read("instances/credit.csv", scale="none")
    assert data.sha256 == raw.sha256
    found = mipfs.path(mipfs.Problem(data), C=[0.1, 1.0])
    assert found.at(0.5, data).gap > 0.0
    with pytest.raises(UsageError, match="it was scaled 'standard', and this is 'none'"):
        found.at(0.5, raw)


def test_other_penalties_are_refused() -> None:
    X, y = draw(0)
    data = mipfs.Instance.from_arrays(X, y)
    dear = mipfs.Instance.from_arrays(X, y, penalty={"x1": 2.0})
    found = mipfs.path(mipfs.Problem(dear, M=M), C=[0.1, 1.0])
    assert found.at(0.5, dear, selected=["x1"]).objective > 2.0
    with pytest.raises(UsageError, match="other penalties"):
        found.at(0.5, data)


def test_a_set_is_the_one_that_is_named() -> None:
    X, y = draw(0)
    data = mipfs.Instance.from_arrays(X, y)
    found = mipfs.path(mipfs.Problem(data, M=M), C=[0.1, 1.0])
    with pytest.raises(UsageError, match="C = 'x1' must be a positive number"):
        found.at("x1", data)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'x2' twice"):
        found.at(0.5, data, selected=["x2", "x2"])
    with pytest.raises(UsageError, match="give the names of the features"):
        found.at(0.5, data, selected="x2")


def test_what_it_does_not_carry_is_refused_before_anything_is_solved() -> None:
    X, y = draw(0)
    data = mipfs.Instance.from_arrays(X, y)
    begun: list[str] = []
    for problem, said in (
        (mipfs.Problem(data, M=M, loss="squared-hinge", margin="rho"), "the unit margin"),
        (mipfs.Problem(data, M=M, weight_rows=mipfs.weight_rows.ordered(["x1", "x2"])), "rows over the weights"),
        (mipfs.Problem(data, M=M, atoms=Pairs(data)), "single features"),
    ):
        with pytest.raises(UsageError, match=said):
            mipfs.path(problem, C=[0.1, 1.0], between=1, on_begin=begun.append)
    assert not begun
