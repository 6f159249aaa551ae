"""Which words find spam, if F1 is what counts? 5,574 text messages, 13% spam, 8,890 words.

MIPFS_DATA=/path/to/data python examples/spam.py
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import f1_score

import mipfs

folder = Path(os.environ.get("MIPFS_DATA", "")) / "sms_spam_counts"
if "MIPFS_DATA" not in os.environ or not folder.is_dir():
    sys.exit("skipped: set MIPFS_DATA to a folder with sms_spam_counts/data.svm.gz and features.txt")

words = (folder / "features.txt").read_text(encoding="utf-8").splitlines()
X, y = load_svmlight_file(folder / "data.svm.gz", n_features=len(words))
kept = np.asarray((X > 0).sum(axis=0)).ravel() >= 20  # a word of fewer messages is not worth a rule
X, words = (X[:, kept] > 0).astype(float), [word for word, keep in zip(words, kept, strict=True) if keep]
is_test = np.random.default_rng(0).random(len(y)) < 0.3
train, test = (
    mipfs.Instance.from_arrays(X[part].tocsc(), y[part], feature_names=words) for part in (~is_test, is_test)
)
print(f"{train.n_samples} messages to learn from, {test.n_samples} to test on, {len(words)} words")

# The structural loss bounds 1 - F1 of all messages at once; the hinge counts errors one by one.
f1 = mipfs.Problem(train, loss="structural", measure="f1", bias=False, M=5, C=10.0)
hinge = mipfs.Problem(train, M=5, C=0.01)
for title, problem in (("chosen for F1", f1), ("chosen by the hinge", hinge)):
    result = mipfs.solve(problem, "branch", time_limit=30)
    score = f1_score(test.y > 0, result.decision_function(test) > 0)
    print(f"\n{title}: {result.status.name}, objective {result.objective:.4f}, gap {result.gap:.2%}")
    print(f"  {', '.join(result.selected)}")
    print(f"  F1 on new messages {score:.3f}")
    checked = mipfs.verify(result, train)
    print(f"  certificate {'accepted' if checked.accepted else checked.reason}, bound {checked.bound:.4f}")
    assert checked.accepted
