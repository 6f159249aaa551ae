"""How good are the features that other packages choose, and what do they say about it?

python benchmarks/peers.py            # writes reports/peers.md; what is not installed is named and left out
pip install skglm abess l0bnb         # the peers beside scikit-learn, which are no dependency of this package

Every package chooses M of the 30 standardised features of WDBC by its own criterion, on its defaults. What its set is
worth is the least objective of FSP-M (hinge, free bias) on those features, and is compared with the proven optimum over
all sets of M. Most optimise another criterion, so that they lose here by that difference too. L0BnB has ten
seconds for each of its λ0.
"""

from __future__ import annotations

import importlib
import platform
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import mipfs

ROOT = Path(__file__).resolve().parents[1]
PROBLEMS = ((3, 0.1), (5, 0.1), (3, 1.0))
"""M and C."""
Array = npt.NDArray[np.float64]
Choice = Callable[[Array, Array, int, float], npt.NDArray[Any]]


def least_penalty(fitted: Callable[[float], Array], M: int) -> npt.NDArray[Any]:
    """What is left at the weakest ℓ1 penalty that leaves at most M weights, by bisection over its logarithm."""
    low, high = -6.0, 6.0  # of log10 of the strength: at low too many weights are left, at high none
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.count_nonzero(fitted(10.0**middle)) > M else (low, middle)
    return np.flatnonzero(fitted(10.0**high))


def sklearn_rfe(X: Array, y: Array, M: int, C: float) -> npt.NDArray[Any]:
    """SVM-RFE with libsvm's linear SVM."""
    from sklearn.feature_selection import RFE
    from sklearn.svm import SVC

    return np.flatnonzero(RFE(SVC(kernel="linear", C=C), n_features_to_select=M).fit(X, y).support_)


def sklearn_forward(X: Array, y: Array, M: int, C: float) -> npt.NDArray[Any]:
    """Forward selection by the accuracy in five folds."""
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.svm import SVC

    search = SequentialFeatureSelector(SVC(kernel="linear", C=C), n_features_to_select=M)
    return np.flatnonzero(search.fit(X, y).support_)


def sklearn_l1(X: Array, y: Array, M: int, C: float) -> npt.NDArray[Any]:
    """LIBLINEAR's ℓ1-penalised squared hinge."""
    from sklearn.svm import LinearSVC

    def fitted(strength: float) -> Array:
        model = LinearSVC(penalty="l1", dual=False, C=1.0 / strength, max_iter=20000, random_state=0)
        return np.ravel(model.fit(X, y).coef_)

    return least_penalty(fitted, M)


def skglm_l1(X: Array, y: Array, M: int, C: float) -> npt.NDArray[Any]:
    """Logistic regression with an ℓ1 penalty."""
    from skglm import SparseLogisticRegression

    return least_penalty(lambda strength: np.ravel(SparseLogisticRegression(alpha=strength).fit(X, y).coef_), M)


def abess_splicing(X: Array, y: Array, M: int, C: float) -> npt.NDArray[Any]:
    """Best subset of M for logistic regression, by splicing."""
    from abess.linear import LogisticRegression

    return np.flatnonzero(np.ravel(LogisticRegression(support_size=M).fit(X, (y > 0).astype(int)).coef_))


def l0bnb_path(X: Array, y: Array, M: int, C: float) -> npt.NDArray[Any]:
    """Least squares on the labels with an ℓ0 and a ridge penalty, along λ0, up to M; ten seconds for each λ0."""
    from l0bnb import fit_path

    setattr(np, "Inf", np.inf)  # noqa: B010  # version 1.0.0 uses the name that NumPy 2 dropped

    path = fit_path(X, y.astype(float), lambda_2=0.01, max_nonzeros=M, intercept=True, time_limit=10)
    fitting = [one["B"] for one in path if np.count_nonzero(one["B"]) <= M]
    return np.flatnonzero(fitting[-1])


PEERS: dict[str, tuple[str, str, Choice]] = {
    "scikit-learn, SVM-RFE": ("sklearn", "scikit-learn", sklearn_rfe),
    "scikit-learn, forward selection": ("sklearn", "scikit-learn", sklearn_forward),
    "scikit-learn, ℓ1-SVM": ("sklearn", "scikit-learn", sklearn_l1),
    "skglm, ℓ1 logistic": ("skglm", "skglm", skglm_l1),
    "abess, logistic": ("abess", "abess", abess_splicing),
    "L0BnB, least squares": ("l0bnb", "l0bnb", l0bnb_path),
}


def measured(data: mipfs.Instance, choice: Choice, best: dict[tuple[int, float], float]) -> list[str]:
    """What the sets of one package are worth, for every problem."""
    cells = []
    for M, C in PROBLEMS:
        begin = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ids = choice(data.X, data.y, M, C)
        except Exception as error:  # a peer's failure is a finding
            cells += [f"failed: {type(error).__name__}", "–"]
            continue
        seconds = time.process_time() - begin
        if not 0 < ids.size <= M:
            cells += [f"{ids.size} features", f"{seconds:.2f}"]
            continue
        value = mipfs.solve(mipfs.Problem(data.only(ids), M=ids.size, C=C), gap=1e-6).objective
        above, held = max(0.0, value / best[M, C] - 1), "" if ids.size == M else f" ({ids.size})"
        cells += [f"{above:+.1%}{held}", f"{seconds:.2f}"]
    return cells


def report() -> str:
    """The page."""
    data = mipfs.read(ROOT / "instances" / "wdbc.svm", scale="standard")
    ours, best = [], dict[tuple[int, float], float]()
    for M, C in PROBLEMS:
        mipfs.solve(mipfs.Problem(data, M=M, C=C), iteration_limit=1)  # what runs once is not counted
        begin = time.process_time()
        result = mipfs.solve(mipfs.Problem(data, M=M, C=C))
        best[M, C] = result.objective
        ours += [f"optimum {result.objective:.4f}, gap {result.gap:.2%}", f"{time.process_time() - begin:.2f}"]
    lines, missing, versions = [("mipfs, branch", *ours)], list[str](), [f"mipfs {mipfs.__version__}"]
    for title, (module, package, choice) in PEERS.items():
        try:
            importlib.import_module(module)
        except ImportError as error:
            missing.append(f"{package} ({error})")
            continue
        versions += [one for one in [f"{package} {version(package)}"] if one not in versions]
        lines.append((title, *measured(data, choice, best)))
    head = [cell for M, C in PROBLEMS for cell in (f"M = {M}, C = {C:g}", "CPU s")]
    table = [("method", *head), tuple("---" for _ in range(len(head) + 1)), *lines]
    rows = "\n".join(f"| {' | '.join(cells)} |" for cells in table)
    about = (__doc__ or "").split("\n\n", 2)[2].strip()
    gone = f"\nNot installed, and left out: {'; '.join(missing)}.\n" if missing else ""
    return (
        f"# What other packages choose\n\nMade by `python benchmarks/peers.py`.\n\n{about}\n\n"
        f"A figure is how far the best classifier on the chosen features is above the proven optimum; in parentheses "
        f"the number of features where it is not M. CPU seconds of one call, bisections included.\n\n{rows}\n{gone}\n"
        f"Python {platform.python_version()}; {', '.join(versions)}.\n"
    )


if __name__ == "__main__":
    page = report()
    (ROOT / "reports" / "peers.md").write_text(page, encoding="utf-8")
    print(page)
