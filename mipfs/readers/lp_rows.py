"""Rows over the selection from an LP file (``--subject-to rows.lp``), read by HiGHS.

A feature is its name with every character outside ``[A-Za-z0-9_]`` replaced by ``_``, or ``x<k>`` (k from 1).
Extra variables begin with ``extra_``; as always in the format they are >= 0 unless their bounds say otherwise. An
objective, which is minimised, is what they cost.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from mipfs.data.instance import Instance, Row
from mipfs.errors import DataError
from mipfs.plumbing.registry import suggest_name
from mipfs.readers.lp_scan import Scan, scan
from mipfs.selection.selection import Extras, Rows
from mipfs.solvers.highs import read


def read_rows(path: str | Path, data: Instance) -> Rows:
    """Read linear rows over the features of `data`.

    Parameters
    ----------
    path : path of a file in LP format, named ``*.lp``
        Rows under ``subject to``, bounds, general and binary sections; the objective is empty, zero, or what
        extra variables cost.
    data : Instance
        Whose features the rows are over.

    Returns
    -------
    Rows
        The file's rows and its bounds on features, each with its origin ``FILE:LINE``.

    Raises
    ------
    DataError
        With the line: a name that is no feature (or stands for several), an objective, or anything
        that is not a plain linear row.
    """
    path = Path(path)
    scanned, lp, of = _read(path, data)

    rows = []
    for row in scanned.rows:
        terms: dict[str, float] = defaultdict(float)
        for name, value in row.terms.items():
            terms[of[name]] += value
        rows.append(Row(row.name or f"line {row.line}", terms, row.lb, row.ub, f"{path.name}:{row.line}"))
    extra = []
    kinds = [kind != type(kind).kContinuous for kind in lp.integrality_] or [False] * len(lp.col_names_)
    for name, lb, ub, integer in zip(
        lp.col_names_, map(float, lp.col_lower_), map(float, lp.col_upper_), kinds, strict=True
    ):
        if of[name] not in data.index:
            # HiGHS lets a bound override `binary`.
            lb, ub = (max(lb, 0.0), min(ub, 1.0)) if name in scanned.binary else (lb, ub)
            extra.append((name, lb, ub, integer, scanned.costs.get(name, 0.0)))
        elif name in scanned.bounds and (lb > 0 or ub < 1):
            bounds = lb if lb > 0 else -math.inf, ub if ub < 1 else math.inf
            rows.append(Row(f"bounds of {of[name]}", {of[name]: 1.0}, *bounds, f"{path.name}:{scanned.bounds[name]}"))
    return Rows.of(rows, data.index, _make_extras(extra))


def read_weight_rows(path: str | Path, data: Instance) -> list[tuple[dict[str, float], float, float]]:
    """Read linear rows over the weights of the features of `data`, on the user's scale (``--weight-rows rows.lp``).

    The weights are of any sign whatever the format says of variables: a bound on one is no row.

    Returns
    -------
    list of (coefficients by name, lower, upper), infinite where there is no end

    Raises
    ------
    DataError
        With the line: as of `read_rows`, and bounds, whole or extra variables, and rows that weights of 0 break.
    """
    path = Path(path)
    scanned, lp, of = _read(path, data)
    bounded = [*scanned.bounds.values(), *(scanned.lines[name] for name in scanned.binary)]
    if bounded:
        remedy = "rows over weights are read, and no bounds; --weight-bounds NAME=L:U has these"
        raise DataError("a weight has a bound", remedy, path=path, line=min(bounded))
    for name, kind in zip(lp.col_names_, lp.integrality_, strict=False):
        if kind != type(kind).kContinuous:
            raise DataError("a weight is no whole number", "leave it out", path=path, line=scanned.lines[name])
    for name, feature in of.items():
        if feature not in data.index:
            remedy = "rows over the weights have no extra variables"
            raise DataError(f"{name!r} is no weight", remedy, path=path, line=scanned.lines[name])
    found = []
    for row in scanned.rows:
        terms: dict[str, float] = defaultdict(float)
        for name, value in row.terms.items():
            terms[of[name]] += value
        if not row.lb <= 0.0 <= row.ub:
            remedy = "without any feature all weights are 0: give rows with lower <= 0 <= upper"
            raise DataError("weights of 0 break this row", remedy, path=path, line=row.line)
        found.append((dict(terms), row.lb, row.ub))
    return found


def _read(path: Path, data: Instance) -> tuple[Scan, Any, dict[str, str]]:
    """What stands in a file, twice read, and what its names stand for."""
    if path.suffix.lower() != ".lp":
        raise DataError("is not called *.lp", "rows are read in LP format; rename the file", path=path)
    scanned = scan(path)
    lp = _read_with_highs(path, scanned)
    _check_agreement(path, scanned, lp)
    names = _Names(path, data)
    return scanned, lp, {name: names.resolve(name, scanned.lines[name]) for name in lp.col_names_}


def _make_extras(found: list[tuple[str, float, float, bool, float]]) -> Extras:
    return Extras(
        tuple(name for name, *_ in found),
        np.array([lb for _, lb, *_ in found], float),
        np.array([ub for _, _, ub, *_ in found], float),
        np.array([integer for *_, integer, _ in found], bool),
        np.array([cost for *_, cost in found], float),
    )


def _read_with_highs(path: Path, scanned: Scan) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "plain.lp")
        plain.write_text(scanned.plain, encoding="utf-8")
        lp, complaint = read(str(plain))
    for name, lower, upper in zip(lp.col_names_, lp.col_lower_, lp.col_upper_, strict=True):
        if lower > upper:
            remedy = "variables are >= 0 unless a bound says otherwise"
            line = scanned.bounds.get(name)
            raise DataError(f"no value is within the bounds of {name!r}", remedy, path=path, line=line)
    if complaint:
        raise DataError(f"HiGHS cannot read it ({complaint})", "use the plain LP format", path=path)
    return lp


def _check_agreement(path: Path, scanned: Scan, lp: Any) -> None:
    """Whatever HiGHS read differently from the scan is refused: two readers must agree on every row."""
    read: list[dict[str, float]] = [{} for _ in range(lp.num_row_)]
    matrix = lp.a_matrix_  # of whose vectors every look is a copy
    starts, index, value = (list(part) for part in (matrix.start_, matrix.index_, matrix.value_))
    row_lower, row_upper = list(lp.row_lower_), list(lp.row_upper_)
    for k, name in enumerate(lp.col_names_):
        for entry in range(starts[k], starts[k + 1]):
            read[index[entry]][name] = float(value[entry])
    at = 0
    for row in scanned.rows:
        both = slice(at, at := at + row.sides)  # a row of two sides stands as two
        lb, ub = max(row_lower[both], default=math.inf), min(row_upper[both], default=-math.inf)
        terms = {name: a for name, a in row.terms.items() if a}
        if read[both] != [terms] * row.sides or (lb, ub) != (row.lb, row.ub):
            raise DataError(f"HiGHS reads this row differently: {row.terms}", "simplify it", path=path, line=row.line)
    costs = {name: float(cost) for name, cost in zip(lp.col_names_, lp.col_cost_, strict=True) if cost}
    if costs != scanned.costs or lp.offset_:
        raise DataError(f"HiGHS reads the objective differently: {costs}", "simplify it", path=path)
    if at != len(read) or not set(lp.col_names_) <= scanned.lines.keys():
        raise DataError("HiGHS finds other rows or names in it", "use the plain LP format", path=path)


def _in_lp(name: str) -> str:
    """How a feature is called in an LP file."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


class _Names:
    """What the names of an LP file stand for."""

    def __init__(self, path: Path, data: Instance) -> None:
        self.path = path
        self.data = data
        self.written: dict[str, list[int]] = defaultdict(list)
        for j, name in enumerate(data.feature_names):
            self.written[_in_lp(name)].append(j)

    def resolve(self, name: str, line: int) -> str:
        """The feature that is meant, or the name itself for an extra variable."""
        features = self.data.feature_names
        meant = {*self.written.get(name, [])}
        if re.fullmatch(r"x[1-9][0-9]{0,17}", name) and int(name[1:]) <= len(features):
            meant.add(int(name[1:]) - 1)
        if name.startswith("extra_") and not meant:
            return name
        if len(meant) == 1 and not name.startswith("extra_"):
            return features[meant.pop()]
        if meant:
            several = " and ".join(repr(features[j]) for j in sorted(meant))
            if name.startswith("extra_"):
                several += " and an extra variable"
            raise DataError(
                f"{name!r} may stand for {several}",
                "write x<k> for feature k, or rename a feature",
                path=self.path,
                line=line,
            )
        raise DataError(f"no feature is called {name!r}", self._name_remedy(name), path=self.path, line=line)

    def _name_remedy(self, name: str) -> str:

        for column, words in self.data.words.items():
            for full in (f"{column}={word}" for word in words):
                if full not in self.data.index and _in_lp(full) == name:
                    return self.data.like(full)
        other = f"write x1 ... x{len(self.data.feature_names)}, a name with _ for blanks, or extra_NAME"
        return suggest_name(name, list(self.written)[:20000], other)
