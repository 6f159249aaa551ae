"""Made data of which few samples are positive: what a fraud, a churn or a default table looks like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def rare(seed: int = 0, n: int = 300, p: int = 8, positive: int = 6) -> tuple[Array, npt.NDArray[np.int64]]:
    """Standard normal columns, of which the first three lie 2 higher for the few positives."""
    r = np.random.default_rng(seed)
    y = np.zeros(n, dtype=np.int64)
    y[r.permutation(n)[:positive]] = 1
    X = r.standard_normal((n, p))
    X[y == 1, :3] += 2.0
    return X, y


def write_csv(path: Path, X: Array, y: npt.NDArray[np.int64], label: str = "is_fraud") -> Path:
    """A table with a header."""
    names = [f"v{j}" for j in range(X.shape[1])]
    lines = [",".join([*names, label])]
    lines += [",".join([*(f"{v:.6f}" for v in row), str(one)]) for row, one in zip(X, y, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
