"""A result about columns whose squares leave floating point, in another unit: (P) is the same but for powers of two.

With columns X·2^−e, C, penalties and all values are 4^e times what is stated, dual vectors and multipliers too, and
weights 2^e times. Each of these is exact, or the result is refused: what is proven there is proven in the user's unit.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import mipfs.data.unit as unit
from mipfs.check.rounding import Arrays, CertificateError, Document, number, require
from mipfs.check.scaling import ScaledData
from mipfs.check.statement import LARGEST_C, SMALLEST_C, Statement
from mipfs.data.instance import Instance
from mipfs.errors import DataError

VALUES = ("objective", "bound")
"""What a document, a support of a list and a certificate have of values of (P)."""


class InUnit(NamedTuple):
    """A document, the arrays of its certificate and its data in the unit 2^exponent; as they are where that is 1."""

    document: Document
    arrays: Arrays
    scaled: ScaledData
    exponent: int


def in_unit(document: Document, arrays: Arrays, scaled: ScaledData) -> InUnit:
    """The result in the unit in which it can be computed with."""
    data = scaled.data
    made = (document.get("atoms") or {}).get("made")
    if made is not None or unit.is_ordinary(data.largest):
        return InUnit(document, arrays, scaled, 0)
    few = _unit_exponents(document["params"], data)
    e = next((one for one in few if unit.first_inexact_column(data.block().values, -one) is None), few[-1])
    if not e:
        return InUnit(document, arrays, scaled, 0)
    try:
        moved = data.in_unit(e)
    except DataError as error:
        raise CertificateError(f"in doubles nothing is proven of these columns: {error}") from None
    off = {name: None if one is None else np.ldexp(one, -e) for name, one in vars(scaled).items() if name != "data"}
    return InUnit(_document_in_unit(document, e), unit.in_unit(arrays, e), ScaledData(moved, **off), e)


def _unit_exponents(params: Mapping[str, Any], data: Instance) -> tuple[int, ...]:
    C, classes = number(params["C"], "C"), params.get("class_weight")
    of_class = [number(one, "a class weight") for one in classes.values()] if isinstance(classes, Mapping) else [1.0]
    require(C > 0 and min(of_class) > 0, "C or a class weight is not positive")
    weights = data.sample_weight
    least, most = (Fraction(C) * Fraction(one) for one in (min(of_class), max(of_class)))
    least, most = least * Fraction(float(weights.min())), most * Fraction(float(weights.max())) * data.n_samples
    found = unit.unit_exponents(data.largest, least, most, (SMALLEST_C, LARGEST_C * data.n_samples))
    require(found, f"C = {C:g} and columns of {data.largest:g} are beyond what doubles prove anything of")
    return found


def _scale_by_power(value: Any, exponent: int) -> Any:
    """A number, or each of several, times 2^exponent, exactly; what is no number is left to those that read it."""
    if isinstance(value, Mapping):
        return {name: _scale_by_power(one, exponent) for name, one in value.items()}
    if isinstance(value, list):
        return [_scale_by_power(one, exponent) for one in value]
    if type(value) not in (int, float):
        return value
    found = unit.times(float(value), exponent)
    exact = math.isfinite(found) and unit.times(found, -exponent) == value
    require(exact, f"{value!r} is stated of columns beside whose size it leaves floating point")
    return found


def _scale_entries(given: Any, powers: Mapping[str, int]) -> Any:
    """A mapping with some of its numbers times a power of two."""
    if not isinstance(given, Mapping):
        return given
    return {**given, **{name: _scale_by_power(given[name], power) for name, power in powers.items() if name in given}}


def _document_in_unit(document: Document, e: int) -> Document:
    """The document with its numbers in the unit 2^e."""
    values = dict.fromkeys(VALUES, 2 * e)
    found: dict[str, Any] = _scale_entries(document, values)
    found["params"] = _scale_entries(
        document["params"], {"C": 2 * e, "lambda": 2 * e, "penalty": 2 * e, "constant": -e}
    )
    found["scaling"] = _scale_entries(document["scaling"], {"scale": e, "center": -e})
    found["certificate"] = _scale_entries(document["certificate"], values)
    for name, powers in (("relaxed", {"upper": 2 * e, "lower": 2 * e}), ("near_optimal", {})):
        if document.get(name) is not None:
            found[name] = _scale_entries(document[name], powers)
    if document.get("near_optimal") is not None:
        supports = document["near_optimal"]["supports"]
        found["near_optimal"]["supports"] = [_scale_entries(one, values) for one in supports]
    return found


def in_users_words(statement: Statement, document: Document) -> Statement:
    """The statement to be put into words, with the numbers of the user's document."""
    said = copy.copy(statement)
    said.params = document["params"]
    said.constant = None if statement.constant is None else said.params["constant"]
    said.penalty = np.ldexp(statement.penalty, -2 * statement.data.exponent)
    return said


def in_users(found: dict[str, Any]) -> dict[str, Any]:
    """What a report says, with values in the user's unit."""
    e = found.pop("exponent", 0)
    for name in ("objective", "bound", "result_bound", "bound_without_box") if e else ():
        if name in found:
            found[name] = unit.times(found[name], -2 * e)
    return found
