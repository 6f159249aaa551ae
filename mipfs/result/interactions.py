"""Results over products of features: what they are made of, and their values on new data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mipfs.data.stacked import INTERCEPT
from mipfs.plumbing.arrays import Array

if TYPE_CHECKING:
    from mipfs.result.result import Result


def made_of(result: Result) -> Mapping[str, Any] | None:
    """What the atoms of a result are made of, where they are products of features."""
    made: Mapping[str, Any] | None = (result.atoms or {}).get("made")
    return made if made is not None and "kind" in made else None


def functions_of(result: Result) -> Mapping[str, Any] | None:
    """What the atoms of a result are made of, where they are functions of single features."""
    made: Mapping[str, Any] | None = (result.atoms or {}).get("made")
    return made if made is not None and "kind" not in made else None


def groups_of(result: Result) -> dict[str, list[str]] | None:
    """The columns of every atom by its name, where the atoms are groups of features."""
    atoms = result.atoms or {}
    if atoms.get("made") is not None or not atoms.get("columns") or not atoms.get("names"):
        return None
    found = dict(zip(atoms["names"], map(list, atoms["columns"]), strict=False))
    return None if all(columns == [name] for name, columns in found.items()) else found


def group_counts(result: Result) -> tuple[int, int, int]:
    """How many groups are selected, of how many, of how many features; the group of a shared intercept is none."""
    groups = groups_of(result) or {}
    columns = groups.get(INTERCEPT, [])
    if not columns or not all(column.startswith(f"{INTERCEPT}|") for column in columns):
        return len(result.selected), len(groups), result.n_features
    selected = sum(name != INTERCEPT for name in result.selected)
    return selected, len(groups) - 1, result.n_features - len(columns)


def count_selected(result: Result) -> str:
    """What is selected, and of how many: ``2 of 30 features``, ``1 of 3 groups of 5 features``."""
    if groups_of(result) is not None:
        selected, groups, columns = group_counts(result)
        return f"{selected} of {groups} groups of {columns} features"
    made = made_of(result)
    functions = functions_of(result)
    features = f"{result.n_features if functions is None else functions['n_features']} features"
    of = features if made is None else f"{made['count']} monomials of {features}"
    return f"{len(result.selected)} of {of}"


def used_columns(result: Result) -> tuple[str, ...]:
    """The names of the features that the classifier looks at."""
    if made_of(result) is None:
        return tuple(result.weights)
    return tuple(dict.fromkeys(name for part in _monomial_parts(result).values() for name in part))


def _monomial_parts(result: Result) -> dict[str, list[str]]:
    """The features of every monomial that has a weight."""
    assert result.atoms is not None
    parts = dict(zip(result.atoms["names"], result.atoms["made"]["parts"], strict=True))
    return {name: parts[name] for name in result.weights}


def sum_functions(result: Result, scaled: Mapping[str, Array], n: int) -> Array:
    """w'φ(x) + b of n rows, shape (n,): products of the scaled columns that have a weight, and of no others.

    Parameters
    ----------
    result : Result over products
    scaled : (n,) values of `used_columns` by name, as the scaled training data has them
    n : int
    """
    from mipfs.atoms.monomials import Monomials

    made = made_of(result)
    assert made is not None
    kernel = Monomials(max(1, result.n_features), int(made["degree"]), float(made["gamma"]), float(made["r"]))
    total = np.zeros(n)
    for name, part in _monomial_parts(result).items():
        product = np.ones(n)
        for feature in part:
            product *= scaled[feature]
        product *= kernel.factor([part.count(feature) for feature in dict.fromkeys(part)])
        total += result.weights[name] * product
    return total + result.intercept
