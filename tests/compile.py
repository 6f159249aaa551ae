"""Compile the large kernels before the tests, a kind of data per core: ``python -m tests.compile``.

Two workers of pytest that begin at once would both compile whatever the other has not yet finished.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from scipy import sparse

import mipfs
from mipfs import Instance, Problem

KINDS = {
    "dense": ("hinge branch", "hinge kelley", "logistic gbd"),
    "sparse": ("hinge branch", "hinge kelley", "structural two_layer"),
}
"""Losses and drivers that together call them."""


def met(kind: str) -> None:
    """Solve small problems of a kind of data."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20))
    y = np.where(X[:, :3].sum(axis=1) + rng.standard_normal(60) > 0, 1.0, -1.0)
    data = Instance.from_arrays(sparse.csc_array(X * (rng.random(X.shape) < 0.3)) if kind == "sparse" else X, y)
    for case in KINDS[kind]:
        loss, driver = case.split()
        scored = {"bias": False, "measure": "f1"} if loss == "structural" else {}
        problem = Problem(data, loss=loss, M=3, **scored)  # type: ignore[arg-type]
        several = [problem, problem.with_rows(np.ones((1, 20)), 1, 2), problem.replace(lam=0.01)]
        if case == "hinge branch" and kind == "sparse":  # the other kind takes longer
            several.append(problem.replace(weight_bounds={"x1": (0.0, None)}))
        for asked in several:
            mipfs.solve(asked, driver, iteration_limit=1)


if __name__ == "__main__":
    if sys.argv[1:]:
        met(sys.argv[1])
    else:
        running = [subprocess.Popen([sys.executable, "-m", "tests.compile", kind]) for kind in KINDS]
        sys.exit(any([process.wait() for process in running]))
