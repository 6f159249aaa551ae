"""Cards of at most K features with points in -5 … 5: the joint proof beside the two steps, FasterRisk and RiskSLIM.

    MIPFS_DATA=folder python benchmarks/cards.py [steps] [peers] [--only NAME ...] [--K 4 5] [--fasterrisk PYTHON]
    python benchmarks/cards.py published --tables FOLDER

The table ``steps`` has the ridge and loss of docs/scorecard.md (logistic, C = 1, standardised, three ranges of every
column): the card of the features that are the best for real weights, and the one whose features and points are chosen
together. The table ``peers`` cuts every column at its quartiles first, so that each threshold is a feature of 0 and 1
and a card has K lines: the logistic loss on four fifths of the rows, without ridge, at the best scale and intercept of
each card, and errors there and on the others. Ours is solved with `STRONG` for C, where the ridge is next to nothing,
and does not begin from the peer's card. It proves that of every card of that size loss and ridge together are at least
*proven*, the peer's among them, and the program ends with an error where one is not. FasterRisk (Liu et al. 2022;
``pip install fasterrisk``) wants older packages than these, so PYTHON may be that of an environment of its own.

The table ``published`` has cards that their authors show (`PUBLISHED`), on the whole tables of RiskSLIM's repository:
FOLDER is its ``examples/data``. Ours has at most as many features, points to 5, and is not told of theirs. Seconds are
CPU seconds of one process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
NAMES = "credit", "german", "pima", "wdbc", "spambase", "heart_statlog", "australian"
POINTS, BINS, QUARTERS, LIMIT, STRONG = 5, 3, 4, 60.0, 100.0
HELD_OUT = 5
"""Every fifth row, of a drawn order."""
HEAD = f"{'':39} {'loss':>10} {'ridge':>7} {'proven':>10} {'error':>7} {'others':>7} {'CPU s':>7}"
PUBLISHED = (
    ("RiskSLIM", "breastcancer", {"UniformityOfCellShape": 1, "Mitoses": 1}),
    ("FasterRisk", "mammo", {"OvalShape": -2, "IrregularShape": 4, "CircumscribedMargin": -5, "SpiculatedMargin": 2,
                             "Age_geq_60": 3}),
)  # fmt: skip
"""Who, of which table, points: the report in RiskSLIM's repository (its branch dev, report.html) and the first table of
Liu et al. (2022), made on four fifths of these rows."""
PEER = """
import json, sys, time, numpy as np
from fasterrisk.fasterrisk import RiskScoreOptimizer
asked = np.load(sys.argv[1])
begin = time.process_time()
run = RiskScoreOptimizer(asked["X"], asked["y"], k=int(asked["K"]), lb=-5, ub=5)
run.optimize()
multiplier, intercept, points = run.get_models(model_index=0)
spent = time.process_time() - begin
print(json.dumps({"points": [int(one) for one in points], "seconds": spent}))
"""


def read(name: str) -> Any:
    """A data set by its name, standardised; credit without the rows of its .toml."""
    import mipfs

    if name in ("credit", "wdbc"):
        data = mipfs.read(ROOT / "instances" / ("credit.csv" if name == "credit" else "wdbc.svm"), scale="standard")
        return mipfs.Instance.from_arrays(values(data), data.y, feature_names=data.feature_names, scale="standard")
    if not os.environ.get("MIPFS_DATA"):
        sys.exit("error: MIPFS_DATA is unset; it names the folder that holds the data sets")
    return mipfs.read(Path(os.environ["MIPFS_DATA"]) / name / "data.svm.gz", scale="standard")


def values(data: Any) -> Any:
    """The values that the user has, to nine decimals."""
    X = np.asarray(data.stated(np.arange(data.n_features)), dtype=float)
    return np.round(X * data.scale + data.shift, 9)


def spent(what: Any) -> tuple[float, Any]:
    """CPU seconds, and what came of it."""
    begin = time.process_time()
    found = what()
    return time.process_time() - begin, found


def steps(name: str, K: int) -> None:
    """A row of the table of two steps and of one."""
    import mipfs

    data = read(name)
    solving, result = spent(lambda: mipfs.solve(mipfs.Problem(data, M=K, loss="logistic"), time_limit=LIMIT))
    own, two = spent(lambda: mipfs.scorecard(result, data, points=POINTS, bins=BINS))
    both, card = spent(lambda: mipfs.scorecard(result, data, points=POINTS, bins=BINS, joint=True, time_limit=LIMIT))
    size = f"{name}, {data.n_samples} × {data.n_features}"
    end = "closed" if card.status is mipfs.Status.OPTIMAL else f"gap {card.gap:.2%}"
    told = f"{card.objective:10.3f} {end:>12} {card.error:7.1%} {both:7.1f}"
    print(f"{size:24} {K} {two.objective:10.3f} {two.error:7.1%} {solving + own:7.1f} {told}", flush=True)


def cut(data: Any) -> tuple[Any, list[str]]:
    """Every column as its thresholds, of 0 and 1."""
    from mipfs.lab.scorecard.columns import columns_of

    given = dict(zip(data.feature_names, values(data).T, strict=True))
    found = list(columns_of(given, dict.fromkeys(given, (0.0, 1.0)), QUARTERS))
    names = [f"{one.feature} {one.condition}" for one in found]
    return np.column_stack([one.of(given[one.feature]) for one in found]), names


def fitted(totals: Any, y: Any) -> tuple[float, float]:
    """The best scale and intercept of some totals for the logistic loss, by Newton's method on what is no card yet."""
    Z = np.column_stack([totals, np.ones(len(y))])
    w = np.zeros(2)
    for _ in range(100):
        p = 1.0 / (1.0 + np.exp(y * (Z @ w)))
        step = np.linalg.lstsq((Z.T * (p * (1.0 - p))) @ Z + 1e-12 * np.eye(2), Z.T @ (y * p), rcond=None)[0]
        size = 1.0
        while loss(Z @ (w + size * step), y) > loss(Z @ w, y) and size > 1e-9:
            size *= 0.5
        w = w + size * step
    return float(w[0]), float(w[1])


def loss(scores: Any, y: Any) -> float:
    """The logistic loss."""
    return float(np.logaddexp(0.0, -y * scores).sum())


def fasterrisk(python: str, X: Any, y: Any, K: int) -> dict[str, Any] | None:
    """The first card of FasterRisk; None where it is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "asked.npz", X=X, y=y, K=K)
        command = [python, "-W", "ignore", "-c", PEER, str(Path(folder) / "asked.npz")]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode and "No module named 'fasterrisk'" in ran.stderr:
        return None
    if ran.returncode:
        sys.exit(f"error: FasterRisk ended with\n{ran.stderr}")
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def peers(name: str, K: int, python: str) -> None:
    """Two lines of the table beside FasterRisk: ours and theirs."""
    import mipfs

    data = read(name)
    X, names = cut(data)
    held = np.zeros(len(X), dtype=bool)
    held[np.random.default_rng(0).permutation(len(X))[::HELD_OUT]] = True
    X, names = X[:, X[~held].any(axis=0)], [one for one, used in zip(names, X[~held].any(axis=0), strict=True) if used]
    training = mipfs.Instance.from_arrays(X[~held], data.y[~held], feature_names=names)
    problem = mipfs.Problem(training, M=K, C=STRONG, loss="logistic")

    seconds, card, points = joint_card(problem, names)
    lines = [("joint", points, seconds)]
    theirs = fasterrisk(python, X[~held], data.y[~held], K)
    if theirs is not None:
        lines.append(("FasterRisk", np.array(theirs["points"], dtype=float), theirs["seconds"]))
    for who, given, cpu in lines:
        show_judged(f"{name}, {(~held).sum()} × {len(names)}", K, who, (given, cpu), card, (X, data.y, held))


def joint_card(problem: Any, names: list[str]) -> tuple[float, Any, Any]:
    """CPU seconds, the card that is proven, and its points on all columns."""
    import mipfs

    def found() -> Any:
        result = mipfs.solve(problem, time_limit=LIMIT)
        return mipfs.scorecard(result, problem.data, points=POINTS, joint=True, time_limit=LIMIT)

    seconds, card = spent(found)
    points = np.zeros(len(names))
    for column, one in zip(card.columns, card.points, strict=True):
        points[names.index(column.feature)] = one
    return seconds, card, points


def show_judged(size: str, K: int, who: str, made: tuple[Any, float], card: Any, rows: tuple[Any, Any, Any]) -> None:
    """A line of the table: a card at its best scale and intercept, beside what is proven of every card."""
    (given, cpu), (X, y, held) = made, rows
    a, b = fitted(X[~held] @ given, y[~held])
    own = loss(a * (X[~held] @ given) + b, y[~held])
    wrong = (a * (X @ given) + b) * y <= 0.0
    ridge = 0.5 * a * a * float(given @ given) / STRONG
    if own + ridge < card.bound / STRONG * (1.0 - 1e-9):
        sys.exit(f"error: a card of {size} lies below what is proven, {own + ridge} and {card.bound / STRONG}")
    others = f"{wrong[held].mean():7.1%}" if held.any() else f"{'-':>7}"
    errors = f"{wrong[~held].mean():7.1%} {others}"
    print(
        f"{size:24} {K} {who:12} {own:10.3f} {ridge:7.3f} {card.bound / STRONG:10.3f} {errors} {cpu:7.1f}", flush=True
    )


def published(folder: Path) -> None:
    """The lines of the cards that their authors show, each below ours of as many features."""
    import mipfs

    for who, name, points in PUBLISHED:
        table = np.genfromtxt(folder / f"{name}_data.csv", delimiter=",", names=True)
        label, *names = table.dtype.names or ()
        X, y = np.column_stack([table[one] for one in names]), np.where(table[label] > 0, 1.0, -1.0)
        data = mipfs.Instance.from_arrays(X, y, feature_names=names)
        K = len(points)
        seconds, card, own = joint_card(mipfs.Problem(data, M=K, C=STRONG, loss="logistic"), names)
        rows = X, y, np.zeros(len(y), dtype=bool)
        theirs = np.array([float(points.get(one, 0)) for one in names])
        for whose, made in (("joint", (own, seconds)), (who, (theirs, np.nan))):
            show_judged(f"{name}, {len(y)} × {len(names)}", K, whose, made, card, rows)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "tables_of", metavar="TABLE", nargs="*", choices=["steps", "peers", "published"], default=["steps", "peers"]
    )
    parser.add_argument("--only", nargs="*", default=list(NAMES))
    parser.add_argument("--K", type=int, nargs="*", default=[4, 5])
    parser.add_argument("--fasterrisk", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="breastcancer_data.csv and others")
    asked = parser.parse_args()
    if "published" in asked.tables_of and asked.tables is None:
        parser.error("published needs --tables FOLDER: examples/data of github.com/ustunb/risk-slim")
    if "steps" in asked.tables_of:
        print(f"{'':26} {'two steps':>10} {'error':>7} {'CPU s':>7} {'joint':>10} {'':>12} {'error':>7} {'CPU s':>7}")
        for name in asked.only:
            for K in asked.K:
                steps(name, K)
    if "peers" in asked.tables_of:
        if fasterrisk(asked.fasterrisk, np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]), 1) is None:
            print("FasterRisk is not installed in that Python: its lines are left out (pip install fasterrisk)")
        print(HEAD)
        for name in asked.only:
            for K in asked.K:
                peers(name, K, asked.fasterrisk)
    if "published" in asked.tables_of:
        print(HEAD)
        published(asked.tables)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
