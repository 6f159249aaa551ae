"""Which genes, if the laboratory may cost no more than 12? Leukemia (Golub 1999): 72 patients, 7,129 genes.

MIPFS_DATA=/path/to/data python examples/genes.py
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

import mipfs

folder = Path(os.environ.get("MIPFS_DATA", "")) / "leukemia_golub_split"
if "MIPFS_DATA" not in os.environ or not folder.is_dir():
    sys.exit("skipped: set MIPFS_DATA to a folder with leukemia_golub_split/data.svm.gz and is_test.npy")

X, y = load_svmlight_file(folder / "data.svm.gz", n_features=7129)
is_test = np.load(folder / "is_test.npy").astype(bool)
genes = [f"gene {j + 1}" for j in range(X.shape[1])]
train = mipfs.Instance.from_arrays(X[~is_test].toarray(), y[~is_test], feature_names=genes, scale="standard")
test = mipfs.Instance.from_arrays(X[is_test].toarray(), y[is_test], feature_names=genes)

# What a laboratory charges for each gene: made up, and the same every time.
cost = np.random.default_rng(0).integers(1, 6, size=len(genes)).astype(float)
free = mipfs.Problem(train, M=5, C=0.01)
bound_by_budget = free.with_rows(cost[None, :], -np.inf, 12.0, ["laboratory budget"])

print(f"{train.n_samples} patients to learn from, {test.n_samples} to test on, {len(genes)} genes")
for title, problem in (("at most 5 genes", free), ("at most 5 genes that cost at most 12", bound_by_budget)):
    result = mipfs.solve(problem, time_limit=60)
    spent = sum(cost[train.index[name]] for name in result.selected)
    wrong = int(np.sum(result.predict(test) != y[is_test]))
    print(f"\n{title}: {result.status.name}, objective {result.objective:.5f}, gap {result.gap:.2%}")
    for name in result.selected:
        print(f"  {name:<10} costs {cost[train.index[name]]:g}")
    print(f"  together {spent:g}; {wrong} of {test.n_samples} new patients wrong")
    checked = mipfs.verify(result, train)
    print(f"  certificate {'accepted' if checked.accepted else checked.reason}: {checked.n_leaves} leaves")
    assert checked.accepted
