"""``[select]`` of a description, compiled to rows over the selection.

budget          Σ cost_j σ_j ≤ budget              (Aytug 2015, section 3: the budget in place of Σσ ≤ M)
implies a, b    σ_a − σ_b ≤ 0
conflicts a, b  σ_a + σ_b ≤ 1
at_most k, of   Σ σ_j ≤ k     (at_least: ≥ k, exactly: = k)

A name may be that of a group, such as a column of words: it counts as one, selected where some of its features is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mipfs.data.instance import Row, SelectDefaults
from mipfs.readers.sidecar import DataDescription, nameable_items

INF = math.inf

_MOST = 2**53
"""The largest count that floating point carries."""
_LOCATED = 200  # the search for a line is linear, and is made for each entry


def read_select(
    sidecar: DataDescription,
    features: Mapping[str, int],
    cost: Mapping[str, float],
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> tuple[SelectDefaults, tuple[Row, ...]]:
    """The defaults and the rows of ``[select]``.

    Parameters
    ----------
    sidecar : DataDescription
    features : mapping of name to position
    cost : mapping of name to cost, as ``[cost]`` gives them
    groups : mapping of a group's name, which may stand for one of its features, to these

    Raises
    ------
    DataError
        With the line where it is found: M out of range, a budget without costs, an unknown feature, a pair or
        a list that is none, a feature both forced in and forced out.
    """
    content = sidecar.tables.get("select", {})
    known = nameable_items(features, groups)
    rows: list[Row] = []
    if "budget" in content:
        limit = sidecar.number(content["budget"], "[select] budget", "select", "budget")
        terms = {name: value for name, value in cost.items() if value > 0}
        if not terms:
            what = "a budget, and all costs are 0" if cost else "a budget without costs"
            more = " above 0" if cost else ""
            sidecar.fail(what, f"give features a cost{more} in a table [cost]", "select", "budget")
        rows.append(Row("budget", terms, -INF, limit, _row_origin(sidecar, "budget")))
    for a, b in _feature_lists(sidecar, content, known, "implies", pairs=True):
        rows.append(Row(f"implies[{a} -> {b}]", {a: 1.0, b: -1.0}, -INF, 0.0, _row_origin(sidecar, "implies", a, b)))
    for names in _feature_lists(sidecar, content, known, "conflicts"):
        terms = dict.fromkeys(names, 1.0)
        rows.append(Row(f"conflicts[{', '.join(names)}]", terms, -INF, 1.0, _row_origin(sidecar, "conflicts", *names)))
    for key in ("at_most", "at_least", "exactly"):
        rows += _count_rows(sidecar, content, known, key)
    select, forced = _select_defaults(sidecar, content, features, known)
    return select, (*rows, *forced)


def _select_defaults(
    sidecar: DataDescription, content: Mapping[str, Any], features: Mapping[str, int], known: Mapping[str, Any]
) -> tuple[SelectDefaults, list[Row]]:
    """M and the forced features, and the rows of forced groups."""
    M = content.get("M")
    if M is not None and (isinstance(M, bool) or not isinstance(M, int) or not 0 <= M <= len(features)):
        sidecar.fail(
            f"[select] M is {M!r}",
            f"write a whole number from 0 to {len(features)}, the number of features",
            "select",
            "M",
        )
    words = content.get("words", "features")
    if words not in ("features", "groups"):
        sidecar.fail(
            f"[select] words is {words!r}",
            'write "groups" to select a column of words whole, or "features" to select its words one by one',
            "select",
            "words",
        )
    forced = {key: sidecar.feature_list(known, "select", key) for key in ("forced_in", "forced_out")}
    for name in forced["forced_in"]:
        if name in forced["forced_out"]:
            sidecar.fail(
                f"[select] {name!r} is both forced_in and forced_out",
                "keep one of the two",
                "select",
                "forced_out",
                name,
            )
    single = {key: tuple(name for name in names if name in features) for key, names in forced.items()}
    rows = [
        Row.forced(key, name, _row_origin(sidecar, key, name))
        for key, names in forced.items()
        for name in names
        if name not in features
    ]
    return SelectDefaults(M, **single, words=words), rows


def _feature_lists(
    sidecar: DataDescription, content: Mapping[str, Any], features: Mapping[str, Any], key: str, pairs: bool = False
) -> list[list[str]]:
    """A list of lists of at least two features; of exactly two if `pairs`."""
    found = content.get(key, [])
    if not isinstance(found, list) or not all(isinstance(names, list) for names in found):
        sidecar.fail(f"[select] {key} is {found!r}", f'write {key} = [["a", "b"], ...]', "select", key)
    for names in found:
        sidecar.name_list(names, f"[select] an entry of {key}", "select", key)
        if len(names) < 2 or (pairs and len(names) > 2):
            sidecar.fail(f"[select] {key} has {names!r}", "write two features in each entry", "select", key, *names)
        sidecar.check_features(names, features, "select", key)
    return list(found)


def _count_rows(
    sidecar: DataDescription, content: Mapping[str, Any], features: Mapping[str, Any], key: str
) -> list[Row]:
    """``at_most``, ``at_least`` or ``exactly``: a list of {k, of}."""
    found = content.get(key, [])
    form = f'write {key} = [{{k = 1, of = ["a", "b"]}}, ...]'
    if not isinstance(found, list):
        sidecar.fail(f"[select] {key} is {found!r}", form, "select", key)
    rows = []
    for place, entry in enumerate(found, 1):
        what = f"[select] entry {place} of {key}"
        if not isinstance(entry, dict) or set(entry) != {"k", "of"}:
            sidecar.fail(f"{what} is {entry!r}", form, "select", key)
        k = entry["k"]
        names = sidecar.name_list(entry["of"], f"{what}: of", "select", key)
        if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= _MOST:
            sidecar.fail(f"{what}: k is {k!r}", "write a whole number >= 0 and at most 2^53", "select", key, *names)
        sidecar.check_features(names, features, "select", key)
        lower = -INF if key == "at_most" else float(k)
        upper = INF if key == "at_least" else float(k)
        terms = dict.fromkeys(names, 1.0)
        rows.append(Row(f"{key}[{place}]", terms, lower, upper, _row_origin(sidecar, key, *names)))
    return rows


def _row_origin(sidecar: DataDescription, key: str, *names: str) -> str:
    """Where a row was written: by its line in a list of ordinary length, by the line of its key in a long one."""
    entries = sidecar.tables["select"][key]
    words = names if isinstance(entries, list) and len(entries) <= _LOCATED else ()
    line = sidecar.line("select", key, *words)
    return sidecar.path.name if line is None else f"{sidecar.path.name}:{line}"
