"""The price of fairness: what it costs on German credit data that two groups have mean scores at most ε apart.

    MIPFS_DATA=folder python benchmarks/fairness.py

Prints the table of docs/weight-rows.md and draws its picture, docs/fairness.svg. The groups are applicants under 26 and
the others; age, personal status and whether one is a foreign worker are no features. At most five of the other 17 are
selected, by the hinge at C = 1 on standardised columns, to proven optimality at every ε. Beside the objective and the
error on all 1,000 applicants stand those of five folds: in each the rows are made of its training part, and errors and
the distance of the mean scores are those of its test part.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pictures import write

import mipfs
from mipfs.report.blocks import Curve, LineChart

Array = npt.NDArray[np.float64]
LEFT_OUT = "Age", "Personal-status", "Foreign"
YOUNG, M, C, FOLDS, SEED, STEPS = 26, 5, 1.0, 5, 0, 8
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "fairness.svg"


@dataclass(frozen=True)
class Sample:
    """Applicants: their features (n, p), labels (n,), and who is young (n,)."""

    names: list[str]
    X: Array
    y: Array
    young: npt.NDArray[np.bool_]

    def part(self, rows: npt.NDArray[np.int64]) -> Sample:
        """Some of them."""
        return Sample(self.names, self.X[rows], self.y[rows], self.young[rows])

    @property
    def data(self) -> mipfs.Instance:
        """They as data."""
        return mipfs.Instance.from_arrays(self.X, self.y, feature_names=self.names, scale="standard")

    def apart(self, scores: Array) -> float:
        """How far the mean scores of the groups are apart."""
        return abs(float(scores[self.young].mean() - scores[~self.young].mean()))


@dataclass(frozen=True)
class Fit:
    """A classifier with its proof."""

    result: Any
    names: list[str]

    def scores(self, X: Array) -> Array:
        """f of some rows."""
        w = np.array([self.result.weights.get(name, 0.0) for name in self.names])
        return np.asarray(X @ w + self.result.intercept, dtype=float)

    def error(self, sample: Sample) -> float:
        """The share of applicants on the wrong side."""
        return float(np.mean(np.where(self.scores(sample.X) >= 0.0, 1.0, -1.0) != sample.y))


def read() -> Sample:
    """The data set without the columns that are left out."""
    if not os.environ.get("MIPFS_DATA"):
        sys.exit("error: MIPFS_DATA is unset; it names the folder that holds the data sets")
    folder = Path(os.environ["MIPFS_DATA"]) / "german"
    data = mipfs.read(folder / "data.svm.gz")
    names = (folder / "features.txt").read_text(encoding="utf-8").split()
    X = np.asarray(data.stated(np.arange(data.n_features)), dtype=float)
    kept = [j for j, name in enumerate(names) if name not in LEFT_OUT]
    return Sample([names[j] for j in kept], X[:, kept], data.y, X[:, names.index("Age")] < YOUNG)


def fitted(sample: Sample, within: float | None) -> Fit:
    """The best classifier whose mean scores differ by at most so much on a sample; without a row for None."""
    data = sample.data
    rows = () if within is None else mipfs.weight_rows.parity(data, sample.young, within)
    result = mipfs.solve(mipfs.Problem(data, M=M, C=C, weight_rows=rows), "branch")
    if result.status is not mipfs.Status.OPTIMAL:
        sys.exit(f"error: within {within} the run ended {result.status.name}")
    return Fit(result, sample.names)


def folds(sample: Sample) -> npt.NDArray[np.int64]:
    """The fold of every applicant, each with its share of both labels of both groups."""
    r = np.random.default_rng(SEED)
    found = np.zeros(sample.y.size, dtype=np.int64)
    for kind in np.unique(2 * sample.young + (sample.y > 0)):
        rows = r.permutation(np.flatnonzero(2 * sample.young + (sample.y > 0) == kind))
        found[rows] = np.arange(rows.size) % FOLDS
    return found


def main() -> int:
    """Print the table and draw the picture."""
    sample = read()
    fold = folds(sample)
    parts = [(sample.part(np.flatnonzero(fold != k)), sample.part(np.flatnonzero(fold == k))) for k in range(FOLDS)]
    free = fitted(sample, None)
    most = sample.apart(free.scores(sample.X))
    print(f"{sample.young.sum()} of {sample.y.size} are under {YOUNG}; their mean scores are {most:.3f} apart.\n")
    print("| ε | objective | error | error in folds | apart in folds | selected |\n|--:|--:|--:|--:|--:|---|")
    ends = [round(most * k / STEPS, 3) for k in range(STEPS)]
    lines = list[tuple[float, float, float, float, float]]()
    for within in [*ends, None]:
        fit = free if within is None else fitted(sample, within)
        tested = [(fitted(train, within), test) for train, test in parts]
        wrong = float(np.mean([one.error(test) for one, test in tested]))
        apart = float(np.mean([test.apart(one.scores(test.X)) for one, test in tested]))
        lines.append((most if within is None else within, fit.result.objective, fit.error(sample), wrong, apart))
        shown = "none" if within is None else f"{within:.3f}"
        numbers = f"{fit.result.objective:.2f} | {fit.error(sample):.1%} | {wrong:.1%} | {apart:.3f}"
        print(f"| {shown} | {numbers} | {', '.join(fit.result.selected)} |", flush=True)
    picture(lines)
    return 0


def picture(lines: list[tuple[float, float, float, float, float]]) -> None:
    """Objective and errors over ε, side by side."""
    x, objective, error, wrong, _ = map(list, zip(*lines, strict=True))
    said = "mean scores at most so far apart"
    write(
        PICTURE,
        LineChart("the objective, proven optimal", x, [Curve("objective", objective, "incumbent")], x_label=said),
        LineChart(
            "the error",
            x,
            [Curve("all applicants", error, "first", percent=True), Curve("in folds", wrong, "second", percent=True)],
            x_label=said,
        ),
    )


if __name__ == "__main__":
    raise SystemExit(main())
