"""Text with few words: the accuracy of FGM's 10 and 50 features beside those of the l1-SVM, each refitted alike.

    MIPFS_DATA=folder python benchmarks/texts.py [--sets pcmac sms_spam_counts] [--M 10 50] [--seeds 1 2 3]

    fgm     FGMClassifier(M, C): feature generation and its default rounding; C from 0.1, 1, 10 by two inner folds
    l1      LIBLINEAR's l1-SVM (squared hinge) at the largest C that leaves at most M words

Both choose on 70% of the rows (stratified, by seed); a squared-hinge SVM (C = 1) on the chosen words is what is tested
on the others. A set with an official split (is_test.npy) is tested on that, once.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.svm import LinearSVC

import mipfs
from mipfs.estimators import FGMClassifier

Chosen = npt.NDArray[np.int64]
SETS = ("pcmac", "sms_spam_counts", "reuters21578_acq_unigram", "farm_ads", "news20_bigram")
GRID = (0.1, 1.0, 10.0)
HALVINGS = 25


def by_fgm(X: Any, y: Any, M: int, seed: int) -> Chosen:
    """C by the accuracy of two inner folds."""
    folds = list(StratifiedKFold(2, shuffle=True, random_state=seed).split(np.zeros(y.size), y))

    def chosen(rows: Any, C: float) -> Chosen:
        return np.flatnonzero(FGMClassifier(M=M, C=C).fit(X[rows], y[rows]).get_support())

    scores = [np.mean([tested(X, y, chosen(a, C), a, b) for a, b in folds]) for C in GRID]
    return chosen(np.arange(y.size), GRID[int(np.argmax(scores))])


def by_l1(X: Any, y: Any, M: int, seed: int) -> Chosen:
    """The largest C that leaves at most M words, by halving."""
    low, high, best = 1e-4, 1e3, np.empty(0, dtype=np.int64)
    for _ in range(HALVINGS):
        C = float(np.sqrt(low * high))
        model = LinearSVC(penalty="l1", dual=False, C=C, random_state=seed).fit(X, y)
        found = np.flatnonzero(model.coef_.ravel())
        low, high, best = (C, high, found) if found.size <= M else (low, C, best)
    return best


def tested(X: Any, y: Any, ids: Chosen, train: Any, test: Any) -> float:
    """Accuracy on `test` of an SVM on the words `ids` of `train`."""
    if ids.size == 0:
        return float(max(np.mean(y[test] == 1), np.mean(y[test] == -1)))
    words = X[:, ids]
    return float(LinearSVC(C=1.0).fit(words[train], y[train]).score(words[test], y[test]))


def loaded(place: Path) -> tuple[Any, Any]:
    """The words (CSR) and labels of a set: an svmlight file, or X.npz with y.npy."""
    if (place / "X.npz").is_file():
        data = mipfs.Instance.from_arrays(sparse.load_npz(place / "X.npz"), np.load(place / "y.npy"))
    else:
        data = mipfs.read(place / "data.svm.gz")
    return data.X.tocsr(), data.y


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--M", nargs="+", type=int, default=[10, 50])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    given = parser.parse_args()
    folder = os.environ.get("MIPFS_DATA")
    if not folder:
        sys.exit("error: MIPFS_DATA is unset; it names the folder that holds the data sets")
    warnings.simplefilter("ignore", ConvergenceWarning)
    packages = ", ".join(f"{name} {version(name)}" for name in ("mipfs", "scikit-learn", "numpy"))
    print(f"{packages}; Python {platform.python_version()}, {platform.machine()}\n")
    print("| set | M | method | words | accuracy | s |\n| --- | --- | --- | --- | --- | --- |")
    for name in given.sets:
        X, y = loaded(Path(folder) / name)
        official = Path(folder) / name / "is_test.npy"
        for M in given.M:
            for method, choose in (("fgm", by_fgm), ("l1", by_l1)):
                scores, sizes, seconds = [], [], []
                for seed in given.seeds[:1] if official.is_file() else given.seeds:
                    if official.is_file():
                        mask = np.load(official).astype(bool)
                        train, test = np.flatnonzero(~mask), np.flatnonzero(mask)
                    else:
                        train, test = train_test_split(np.arange(y.size), test_size=0.3, stratify=y, random_state=seed)
                    begin = time.perf_counter()
                    ids = choose(X[train], y[train], M, seed)
                    seconds.append(time.perf_counter() - begin)
                    scores.append(tested(X, y, ids, train, test))
                    sizes.append(ids.size)
                spread = f" ± {np.std(scores):.3f}" if len(scores) > 1 else ""
                figures = f"{np.mean(scores):.3f}{spread} | {np.mean(seconds):.1f}"
                print(f"| {name} | {M} | {method} | {np.mean(sizes):.0f} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
