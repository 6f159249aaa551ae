"""The contents of `instances/`: the credit-style instance, made here, and WDBC, taken from scikit-learn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Array

CREDIT_TOML = """\
# Twelve features of loan applicants: nine numbers, and a column of words that becomes three.
[data]
label = "repaid"
positive = "yes"
scale = "standard"
source = "made by `mipfs generate credit`; no real person"
licence = "CC0-1.0"

# What it costs to ask for each: 1 on the form, 2 with a document, 3 from the credit bureau.
[cost]
"income" = 2
"loan" = 1
"loan to income" = 1
"age" = 1
"years employed" = 2
"open accounts" = 3
"late payments" = 3
"inquiries" = 3
"history years" = 3
"housing=family" = 1
"housing=own" = 1
"housing=rent" = 1

[select]
M = 5
budget = 9
forced_in = ["income"]
implies = [["loan to income", "loan"]]
conflicts = [["age", "history years"]]
at_most = [{ k = 1, of = ["late payments", "inquiries"] }]
at_least = [{ k = 1, of = ["open accounts", "late payments", "inquiries", "history years"] }]
"""


def credit(seed: int = 0) -> str:
    """Two hundred made loan applicants as CSV: nine columns of numbers, one of words, and ``repaid``."""
    r = np.random.default_rng(seed)
    n = 200
    age = r.integers(21, 70, n)
    employed = np.minimum(r.exponential(6.0, n), age - 18).round(1)
    history = np.clip(age - 20 - r.exponential(6.0, n), 0.0, None).round(1)
    income = np.exp(3.4 + 0.02 * employed + 0.35 * r.standard_normal(n)).round(1)
    loan = np.exp(2.2 + 0.5 * np.log(income / 30.0) + 0.6 * r.standard_normal(n)).round(1)
    ratio = (loan / income).round(3)
    accounts = r.poisson(4.0, n)
    late = r.poisson(np.exp(0.2 - 0.05 * employed + 0.8 * ratio))
    inquiries = r.poisson(0.8 + 0.5 * late)
    housing = np.where(age > 35, r.choice(["own", "own", "rent"], n), r.choice(["rent", "rent", "family"], n))
    risk = 2.5 * ratio + 0.6 * late + 0.2 * inquiries - 0.03 * history - 0.4 * (housing == "own")
    repaid = risk + 0.4 * r.standard_normal(n) < np.quantile(risk, 0.7)
    columns: dict[str, Sequence[Any]] = {
        "income": income.tolist(),
        "loan": loan.tolist(),
        "loan to income": ratio.tolist(),
        "age": age.tolist(),
        "years employed": employed.tolist(),
        "open accounts": accounts.tolist(),
        "late payments": late.tolist(),
        "inquiries": inquiries.tolist(),
        "history years": history.tolist(),
        "housing": housing.tolist(),
        "repaid": ["yes" if paid else "no" for paid in repaid],
    }
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    return "\n".join(lines) + "\n"


def wdbc() -> tuple[Array, npt.NDArray[np.int64], str]:
    """The Wisconsin diagnostic breast cancer data of scikit-learn: X (569, 30), y in {-1, +1}, and the .toml."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = [str(name) for name in data.feature_names]
    cost = {name: 3 if name.startswith("worst") else 2 if name.endswith("error") else 1 for name in names}
    listed = "\n".join(f"    {json.dumps(name)}," for name in names)
    priced = "\n".join(f"{json.dumps(name)} = {price}" for name, price in cost.items())
    description = f"""\
# +1 benign (357 samples), -1 malignant (212): the target of scikit-learn's load_breast_cancer.
[data]
source = "Breast Cancer Wisconsin (Diagnostic), UCI, doi:10.24432/C5DW2B; as scikit-learn (BSD-3-Clause) ships it"
licence = "CC-BY-4.0"

[features]
names = [
{listed}
]

# Made up, for budgets: a mean costs 1, a standard error 2, a worst value 3.
[cost]
{priced}
"""
    return data.data, 2 * data.target - 1, description
