"""Heredity: a product of features only with its features, as rows over the selection (Chipman 1996; Bien 2013).

    strong:  σ_g ≤ σ_j for every feature j of g        weak:  σ_g ≤ Σ_{j of g} σ_j

g is a monomial of degree 2 or more, a square included; σ_j is that of the single feature j.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mipfs.data.instance import Row
from mipfs.selection.rows import Rows


def heredity_rows(names: Sequence[str], parts: Sequence[Sequence[str]], heredity: str | None) -> Rows:
    """The rows of heredity over some monomials.

    Parameters
    ----------
    names : (k,) of the monomials, unique
    parts : (k,) the features of each, as often as they stand in it
    heredity : {"weak", "strong"} or None

    Returns
    -------
    Rows
        A feature that is no monomial of `names` counts as one that is not selected.
    """
    index = {name: g for g, name in enumerate(names)}
    rows = list[Row]()
    for name, members in zip(names, parts, strict=True):
        if len(members) < 2 or heredity is None:
            continue
        features = [feature for feature in dict.fromkeys(members) if feature in index]
        absent = len(set(members)) > len(features)
        if heredity == "weak":
            rows.append(_heredity_row(f"{name} only with one of its features", name, features))
        elif absent:
            rows.append(_heredity_row(f"{name} only with its features", name, []))
        else:
            rows += [_heredity_row(f"{name} only with {feature}", name, [feature]) for feature in features]
    return Rows.of(rows, index) if rows else Rows.empty(len(names))


def _heredity_row(text: str, name: str, features: Sequence[str]) -> Row:
    return Row(text, {name: 1.0, **dict.fromkeys(features, -1.0)}, -math.inf, 0.0, "heredity")
