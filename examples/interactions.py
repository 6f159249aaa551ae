"""Products of features, each only together with both of its factors (strong heredity). scikit-learn's breast cancer.

python examples/interactions.py
"""

import itertools

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import mipfs
from mipfs.atoms.made import Made

MAIN = 10


class Products(Made):
    """The ten means, and their 45 products; no column of them is stored."""

    pairs = tuple(itertools.combinations(range(MAIN), 2))

    @property
    def names(self):
        main = list(self.data.feature_names)
        return main + [f"{main[a]} × {main[b]}" for a, b in self.pairs]

    def make(self, ids):
        a, b = np.array([(j, -1) if j < MAIN else self.pairs[j - MAIN] for j in ids], dtype=int).reshape(-1, 2).T
        X = self.data.X
        return np.where(b < 0, X[:, a], X[:, a] * X[:, np.maximum(b, 0)])


X, y = load_breast_cancer(return_X_y=True)
names = [str(name).removeprefix("mean ") for name in load_breast_cancer().feature_names[:MAIN]]
known, new, y_known, y_new = train_test_split(X[:, :MAIN], np.where(y == 1, 1, -1), random_state=0, stratify=y)
mean, deviation = known.mean(axis=0), known.std(axis=0)
train, test = (
    mipfs.Instance.from_arrays((part - mean) / deviation, labels, feature_names=names)
    for part, labels in ((known, y_known), (new, y_new))
)

atoms = Products(train)
problem = mipfs.Problem(train, atoms=atoms, M=6, C=0.1)
# A row for every product and factor: σ(product) − σ(factor) ≤ 0.
pairs = np.arange(len(Products.pairs))
A = sparse.lil_array((2 * pairs.size, atoms.count))
for k, factors in enumerate(Products.pairs):
    for side, factor in enumerate(factors):
        A[2 * k + side, MAIN + k], A[2 * k + side, factor] = 1.0, -1.0
implies = [f"{atoms.names[MAIN + k]} needs {names[j]}" for k, pair in enumerate(Products.pairs) for j in pair]
inherited = problem.with_rows(A.tocsr(), -np.inf, 0.0, implies)

print(f"{train.n_samples} tumours to learn from, {test.n_samples} to test on, {atoms.count} atoms")
for title, one in (("any six", problem), ("products only with both factors", inherited)):
    result = mipfs.solve(one, time_limit=60)
    right = np.mean((result.decision_function(Products(test).view) > 0) == (test.y > 0))
    print(f"\n{title}: {result.status.name}, objective {result.objective:.4f}, gap {result.gap:.2%}")
    for name, weight in result.weights.items():
        print(f"  {name:<40} {weight:8.4f}")
    print(f"  {right:.1%} of the new tumours are classified correctly")
    checked = mipfs.verify(result, one.data)
    print(f"  certificate {'accepted' if checked.accepted else checked.reason}: {checked.n_leaves} leaves")
    assert checked.accepted
