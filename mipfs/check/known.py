"""What a result may state: a name that is not here may change the problem, or claim something, and is refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mipfs.check.rounding import Document, require
from mipfs.data.rules import FIRST_RULES, KNOWN_RULES

SCHEMA = 1


def _split_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


RESULT = _split_names(
    "schema status stop_reason objective bound gap selected weights intercept params driver seconds counters trace "
    "labels columns n_features scaling data_sha256 rows conflict relaxed validated bound_source certificate versions "
    "extra extra_cost near_optimal atoms read command settings calibration rules weightless "
    "decided warm_from"
)
PARAMS = _split_names(
    "M C lambda loss bias gap margin penalty forced_in forced_out measure beta k regulariser weight_bounds constant "
    "class_weight weight_rows"
)
OF_MEASURES = _split_names("measure beta k constant")
ROW, EXTRA = _split_names("name terms lb ub origin"), _split_names("lb ub integer value cost")
SCALING, READ, LABELS = (
    _split_names("kind shift scale center"),
    _split_names("label words left_out kept recipe"),
    _split_names("negative positive"),
)
RECIPE = _split_names("drop use impute types marks filled missing")
ATOMS = _split_names("names columns scale made")
FUNCTIONS = _split_names("name options data_sha256 n_features scaling features")
MONOMIALS = _split_names("kind degree gamma r count parts heredity")
CERTIFICATE = _split_names("kind bound gap file sha256 found derived")
LIST = _split_names("complete gap size supports share")
SUPPORT = _split_names("selected objective gap weights intercept extra ties")
RELAXED = _split_names("upper lower sigma weights intercept extra mixture selections")
MEMBER = _split_names("share selected extra")


def require_schema(document: Document) -> None:
    """Refuse any schema but the whole number 1: true and 1.0 are others."""
    schema = document.get("schema")
    require(type(schema) is int and schema == SCHEMA, f"the schema is {schema!r:.60}, not {SCHEMA}")


def rules_of(document: Document) -> int:
    """The version of the rules by which a result was read and scaled: the first, where it names none."""
    rules = document.get("rules", FIRST_RULES)
    require(type(rules) is int and rules in KNOWN_RULES, f"rules {rules!r} are none that this checker knows")
    return int(rules)


def same(one: Any, other: Any) -> bool:
    """Whether two values of JSON are the same, of the same kinds: true is no 1, and 1.0 is 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if type(one) in (int, float) and type(other) in (int, float):
        return bool(one == other)
    return type(one) is type(other) and bool(one == other)


REST = "not "
"""How the name of all classes but one begins; that of the one follows."""


def names_label(stated: Any, label: Any) -> bool:
    """Whether a label of the JSON is what a label of the data is called: by an equal text, or a number of equal value.

    Cells of a file have no kinds, so that a classifier of labels that were 1.0, "1" or 1 in memory is one of its file.
    """
    one, other = (str(float(name) if isinstance(name, np.floating) else name) for name in (stated, label))
    if one.startswith(REST) and other.startswith(REST):
        one, other = one.removeprefix(REST), other.removeprefix(REST)
    value = _value_of(one)
    return one == other or (value is not None and value == _value_of(other))


def _value_of(text: str) -> float | None:
    """The finite number that a text is as a cell; None of words."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def check_labels(stated: Mapping[str, Any]) -> None:
    """Refuse labels that are not two, or neither text nor number nor boolean."""
    for side in ("negative", "positive"):
        plain = isinstance(stated[side], str | int | float | np.generic)
        require(plain, f"the {side} label is {stated[side]!r}, neither a text nor a number nor a boolean")
    two = not names_label(stated["negative"], stated["positive"])
    require(two, f"both labels are called {stated['negative']!r}")


def check_known(document: Document) -> None:
    """Refuse a document that states something under a name that the checker does not know."""
    require_schema(document)
    read = READ if rules_of(document) > FIRST_RULES else READ - {"kept"}
    _require_known_names(document, RESULT, "the result")
    _require_list([document, document["params"]], "selected", "forced_in", "forced_out")
    if document.get("weightless") is not None:
        _require_list([document], "weightless")
    if document.get("warm_from") is not None:
        _require_mapping([document], "warm_from")
    _require_mapping([document], "weights", "columns", "extra")
    _require_mapping([document["params"]], "penalty")
    _require_mapping([document["scaling"]], "shift", "scale", "center")
    _require_mapping(document["rows"], "terms")
    for name, value in (("atoms", document.get("atoms")), ("relaxed", document.get("relaxed"))):
        require(value is None or isinstance(value, Mapping), f"{name!r} is neither null nor a mapping")
    is_sum = not is_joint(document)
    _require_known_names(document["params"], PARAMS - OF_MEASURES if is_sum else PARAMS, "the parameters")
    _require_known_names(
        document["scaling"], SCALING if rules_of(document) == FIRST_RULES else SCALING - {"center"}, "the scaling"
    )
    _require_known_names(document["labels"], LABELS, "the labels")
    check_labels(document["labels"])
    _require_known_names(document["certificate"], CERTIFICATE, "the certificate")
    _require_list([document["certificate"]], "derived")
    _require_each(document["rows"], ROW, "a row")
    _require_each(document.get("extra", {}).values(), EXTRA, "an extra variable")
    _require_known_names(document.get("read") or {}, read, "what was read")
    _require_known_names((document.get("read") or {}).get("recipe") or {}, RECIPE, "how the table was prepared")
    _check_atoms(document.get("atoms") or {})
    near = document.get("near_optimal")
    relaxed = document.get("relaxed")
    if near is not None:
        _require_known_names(near, LIST, "the list of near-optimal supports")
        _require_each(near["supports"], SUPPORT, "a near-optimal support")
        _require_list(near["supports"], "selected")
        _require_mapping(near["supports"], "weights")
        _mapped_or_null(near["supports"], "extra")
        _require_mapping([near], "share")
    if relaxed is not None:
        _require_known_names(relaxed, RELAXED, "the relaxation")
        mixture = () if relaxed.get("mixture") is None else relaxed["mixture"]
        require(isinstance(mixture, list | tuple), "the mixture of the relaxation is no list")
        _require_each(mixture, MEMBER, "a selection of the relaxation")
        _require_list(mixture, "selected")
        _mapped_or_null([relaxed, *mixture], "extra", "weights", "sigma")


def _check_atoms(atoms: Mapping[str, Any]) -> None:
    _require_known_names(atoms, ATOMS, "what is selected")
    for name in ("names", "columns", "scale"):
        require(atoms.get(name) is None or isinstance(atoms[name], list | tuple), f"{name!r} of the atoms is no list")
    for part in atoms.get("columns") or ():
        require(isinstance(part, list | tuple), f"the columns of an atom are {part!r:.60}, no list of names")
    made = {} if atoms.get("made") is None else atoms["made"]
    _require_known_names(made, MONOMIALS if "kind" in made else FUNCTIONS, "how columns are made")
    _require_mapping([made], "features")


def _require_known_names(stated: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    require(isinstance(stated, Mapping), f"{what}: {stated!r} stands there, no names with values")
    strangers = [str(name) for name in stated if name not in known]
    require(not strangers, f"{what}: {strangers[0] if strangers else ''!r} is stated, which this checker does not know")


def _require_list(stated: Iterable[Mapping[str, Any]], *names: str) -> None:
    """Refuse what is no list where names of features are listed."""
    for one in stated:
        for name in names:
            require(isinstance(one.get(name, []), list | tuple), f"{name!r} is {one.get(name)!r}, no list of names")


def _require_mapping(stated: Iterable[Mapping[str, Any]], *names: str) -> None:
    """Refuse what is no mapping where values stand by name: an empty list is none."""
    for one in stated:
        for name in names:
            require(isinstance(one.get(name, {}), Mapping), f"{name!r} is {one.get(name)!r:.60}, no values by name")


def _mapped_or_null(stated: Iterable[Mapping[str, Any]], *names: str) -> None:
    """Refuse what is neither a mapping nor null, which stands for nothing."""
    for one in stated:
        _require_mapping([one], *(name for name in names if one.get(name) is not None))


def _require_each(stated: Iterable[Mapping[str, Any]], known: frozenset[str], what: str) -> None:
    for one in stated:
        _require_known_names(one, known, what)


SCALING_OF_COLUMNS = _split_names("column_shift column_scale column_center")
INTEGERS = _split_names("integer_start integer_row integer_value")
ARRAYS = (
    _split_names("version feature children dual multiplier whole multipliers dual_q dual_start")
    | SCALING_OF_COLUMNS
    | INTEGERS
)
VECTORS = _split_names("dual_bytes dual_level dual_width dual_top")
LABELLINGS = _split_names("dual_label dual_whole labelling")
OF_CARDS = {f"joint_{name}" for name in _split_names("split value children leaf dual_q dual_start") | VECTORS}
"""Of a card whose features and points are proven together, beside those of its result."""
EVERY_ARRAY = ARRAYS | {"outside"} | VECTORS | LABELLINGS | OF_CARDS
"""What any certificate may hold; nothing else is read of one."""


def is_joint(document: Document) -> bool:
    """Whether the loss is one over the labellings of all samples together, whose certificates are of another kind."""
    params = document.get("params")
    return isinstance(params, Mapping) and params.get("loss") == "structural"


def check_arrays(document: Document, arrays: Iterable[str]) -> None:
    """Refuse a sidecar with an array that belongs to no certificate of its kind."""
    made = (document.get("atoms") or {}).get("made") or {}
    known = ARRAYS | ({"outside"} if "kind" in made else set())
    known |= LABELLINGS if is_joint(document) else VECTORS
    strangers = [name for name in arrays if name not in known]
    named = strangers[0] if strangers else ""
    require(not strangers, f"the certificate has an array {named!r}, which this checker does not know")
