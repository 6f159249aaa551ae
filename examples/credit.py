"""A credit score with dependencies between what is asked: german (1,000 loans) and australian (690 cards).

MIPFS_DATA=/path/to/data python examples/credit.py
"""

import os
import sys
from pathlib import Path

import pyomo.environ as pyo
from sklearn.datasets import load_svmlight_file

import mipfs
from mipfs import models

folder = Path(os.environ.get("MIPFS_DATA", ""))
if "MIPFS_DATA" not in os.environ or not (folder / "german").is_dir():
    sys.exit("skipped: set MIPFS_DATA to a folder with german/ and australian/, data.svm.gz and features.txt in each")


def read(name: str) -> mipfs.Instance:
    """A set with the names of its columns, standardised."""
    names = (folder / name / "features.txt").read_text(encoding="utf-8").split()
    X, y = load_svmlight_file(folder / name / "data.svm.gz", n_features=len(names))
    return mipfs.Instance.from_arrays(X.toarray(), y, feature_names=names, scale="standard")


def solved(title: str, data: mipfs.Instance, model: object) -> mipfs.Result:
    """The optimum under the model's rows, said in words, with its certificate checked."""
    result = mipfs.solve(model, time_limit=60)
    right = (result.predict(data) == data.y).mean()
    print(f"\n{title}: {result.status.name}, objective {result.objective:.4f}, gap {result.gap:.2%}, {right:.1%} right")
    for name, weight in result.weights.items():
        print(f"  {name:<18} {weight:10.5f}")
    checked = mipfs.verify(result, data)
    print(f"  certificate {'accepted' if checked.accepted else checked.reason}: {checked.n_leaves} leaves")
    assert checked.accepted
    return result


german = read("german")
plain = solved("german, at most 6 of 20", german, mipfs.Problem(german, M=6, C=0.1))

# The instalment means nothing without the amount, a foreigner is not to be marked down, and of the three
# questions about where the applicant lives one is enough.
model = models.fsp_m(german, M=6, C=0.1)
sigma = model.select.sigma
model.select.instalment = pyo.Constraint(expr=sigma["Installment-rate"] <= sigma["Credit"])
model.select.home = pyo.Constraint(expr=sigma["Residence-time"] + sigma["Property"] + sigma["Housing"] <= 1)
for name in ("Foreign", "Personal-status", "Age"):
    sigma[name].fix(0)
fair = solved("german, with dependencies and without personal traits", german, model)
price = fair.objective / plain.objective - 1
print(f"\nWhat the rules cost: the objective rises by {price:.2%} (both are proven to {fair.params['gap']:g})")

# The columns of the australian cards are anonymous; suppose that A8 and A9 come from one form, as A5 and A6 do.
australian = read("australian")
model = models.fsp_m(australian, M=4, C=0.1)
sigma = model.select.sigma
model.select.one_form = pyo.Constraint(expr=sigma["A8"] == sigma["A9"])
model.select.other_form = pyo.Constraint(expr=sigma["A5"] == sigma["A6"])
solved("australian, at most 4 of 14, forms come whole", australian, model)
