"""The objective of (P) at the numbers of a result's JSON, in rational arithmetic: it shares no code with the package.

Every float is the rational number that it is; the logarithms of the logistic loss are taken to 60 digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from mipfs.data.instance import Instance

DIGITS = 60
"""Decimal digits of a logarithm."""
BEYOND = 2000
"""Margins beyond which log(1 + exp(−m)) is 0, or −m, to all digits."""


def margins_of(document: Mapping[str, Any], data: Instance) -> list[Fraction]:
    """y_i (x_i'w + b) on the scaled data, from weights and an intercept on the user's scale."""
    weights = {data.index[name]: Fraction(value) for name, value in document["weights"].items()}
    bias = document["params"]["bias"]
    b = Fraction(document["intercept"]) if bias else Fraction(0)
    if bias:
        b += sum((w * Fraction(float(data.shift[j])) for j, w in weights.items()), Fraction(0))
    found = [b] * data.n_samples
    for j, w in weights.items():
        if data.unscaled is None:
            column = data.X[:, [j]]
            values = np.asarray(column.toarray() if data.is_sparse else column, dtype=float).ravel()
        else:
            values = (data.unscaled[:, [j]].toarray().ravel() - data.shift[j]) / data.scale[j]
        slope = w * Fraction(float(data.scale[j]))
        found = [one + slope * Fraction(value) for one, value in zip(found, values.tolist(), strict=True)]
    return [int(y) * one for y, one in zip(data.y.tolist(), found, strict=True)]


def exact_objective(document: Mapping[str, Any], data: Instance) -> Fraction:
    """The objective; of the ρ-form at the ρ that its own value says."""
    params = document["params"]
    classes = params.get("class_weight") or {}
    of_class = [classes.get(str(label), 1.0) for label in data.labels.of(data.y)]
    pairs = zip(of_class, data.sample_weight.tolist(), strict=True)
    c = [Fraction(float(params["C"]) * (one * weight)) for one, weight in pairs]
    rho = Fraction(-2.0 * document["objective"]) if params.get("margin") == "rho" else Fraction(1)
    losses = {"hinge": _hinge, "squared-hinge": _squared, "logistic": _logistic}
    loss = sum(
        (a * losses[params["loss"]](rho, m) for a, m in zip(c, margins_of(document, data), strict=True)), Fraction()
    )
    total = loss + _regular(document, data) + _penalties(document, data)
    return total - rho if params.get("margin") == "rho" else total


def _hinge(rho: Fraction, m: Fraction) -> Fraction:
    return max(Fraction(0), rho - m)


def _squared(rho: Fraction, m: Fraction) -> Fraction:
    return _hinge(rho, m) ** 2 / 2


def _logistic(rho: Fraction, m: Fraction) -> Fraction:
    if abs(m) > BEYOND:
        return max(Fraction(0), -m)
    with localcontext() as context:
        context.prec = DIGITS
        size = Decimal(abs(m).numerator) / Decimal(abs(m).denominator)
        tail = (-size).exp()
        # log(1 + t) = 2 artanh(t/(2 + t)) keeps the digits of a small t
        u = tail / (2 + tail)
        total, power, k = Decimal(0), u, 1
        while power != 0 and (total == 0 or power / k > abs(total) * Decimal(10) ** -DIGITS):
            total, power, k = total + power / k, power * u * u, k + 2
        value = 2 * total + (size if m < 0 else 0)
    return Fraction(value)


def entropy(t: Fraction) -> Fraction:
    """−t log t − (1 − t) log(1 − t) of 0 ≤ t ≤ 1."""
    with localcontext() as context:
        context.prec = 4 * DIGITS  # 1 − t of a tiny t
        parts = [Decimal(one.numerator) / Decimal(one.denominator) for one in (t, 1 - t)]
        return Fraction(-sum(one * one.ln() for one in parts if one))


def _regular(document: Mapping[str, Any], data: Instance) -> Fraction:
    """½ Σ w²/(Σ λ_g²) over the columns of the selected atoms."""
    atoms = document.get("atoms") or {}
    names = atoms.get("names") or list(data.feature_names)
    scale = dict(zip(names, atoms.get("scale") or [1.0] * len(names), strict=True))
    members = dict(zip(names, atoms.get("columns") or [[name] for name in names], strict=True))
    total = Fraction(0)
    for name, value in document["weights"].items():
        room = sum((Fraction(scale[g]) ** 2 for g in document["selected"] if name in members[g]), Fraction(0))
        total += (Fraction(value) * Fraction(float(data.scale[data.index[name]]))) ** 2 / room / 2
    return total


def _penalties(document: Mapping[str, Any], data: Instance) -> Fraction:
    lam = document["params"]["lambda"]
    own = document["params"].get("penalty", {})
    each = lam if isinstance(lam, dict) else dict.fromkeys(document["selected"], lam)
    return sum((Fraction(each.get(g, 0)) + Fraction(own.get(g, 0)) for g in document["selected"]), Fraction(0))
