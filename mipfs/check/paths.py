"""A path: every point's result with its proof, and every field of the document beside them.

`StatedPath` compares what the document says in several places, without data: nothing in it may contradict the results
that stand in it. `check_path` proves the results, and with them the bounds that points take from one another; the
errors are computed again from the classifiers of the folds (`mipfs.check.folds`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from mipfs.check.classifier import evaluate_stated
from mipfs.check.folds import FOLDS, Folds
from mipfs.check.in_unit import in_unit
from mipfs.check.known import require_schema, same
from mipfs.check.rounding import NEAR, Document, gap_between, require
from mipfs.check.scaling import ScaledData
from mipfs.check.several import (
    Archive,
    DocumentReport,
    PartReport,
    is_number,
    is_whole,
    judge_check,
    member_of,
    require_accepted,
    require_fields,
    unchecked_of,
)
from mipfs.check.statement import Statement
from mipfs.check.tree import Report
from mipfs.check.verdict import STATED_GAP_AGREEMENT, is_below_within_rounding
from mipfs.check.workers import ALONE, LeafWorkers
from mipfs.data.instance import Instance

AXES = ("M", "C", "lambda", "rows", "C,M", "end")
NEEDED = ("schema", "axis", "params", "driver", "folds", "seed", "chosen", "interrupted", "points")
PERHAPS = ("command", "rule", "by", "folds_by", "least_error", "one_se", "certificate", "row", "bought", "between")
BETWEEN = ("selected", "weights", "intercept", "objective", "bound", "gap")
"""Fields of a set at a C between two points, beside its place."""
SIDES = ("ub", "lb", "both")
"""Which end of the row of a frontier moves."""
RULES = ("least-error", "one-se")
COPIED = ("objective", "selected", "stop_reason")
"""Fields of a point that are those of its result."""
COMPUTED = ("status", "bound", "gap", "errors", "error", "deviation", "standard_error", "subproblems")
HISTORY = ("seconds", "cuts_carried", "cuts", "seconds_saved", "cold_seconds", "start")
LATER = "fold_classifiers"
OF_ONE_SELECTION = frozenset({"parts", "names", "columns", "features"})
"""What is said of atoms that depends on which are selected, or were met."""
DECIMALS = 12
"""Decimals of an error that count where points are compared."""
CHOSEN = {"best": "chosen", "one-se": "one_se", "least-error": "least_error"}
"""What a point that folds chose is called, and the field that has its place."""
UNCHECKED = "of the path: seconds, cuts, starts, the seed, the command, and whether it was interrupted"


def check_stated(document: Document) -> None:
    """Refuse a path that contradicts itself; no data is needed.

    Raises
    ------
    CertificateError
    """
    StatedPath(document).check()


def check_path(
    document: Document,
    archive: Path,
    content: bytes | None,
    data: Instance,
    name: str | None = None,
    given: Mapping[str, Any] | None = None,
    workers: LeafWorkers = ALONE,
) -> DocumentReport:
    """Check a path, or one point of it, against the data.

    Parameters
    ----------
    document : mapping, the JSON
    archive, content : the path and the contents of the file of certificates beside it
    data : Instance, as it was solved on
    name : str, optional
        A point: its place, such as "M=4,C=0.1", or "best", "one-se", "least-error". All by default.
    given, workers : as in `mipfs.check.tree.check`
    """
    return judge_check(lambda: _check_path(document, Archive(archive, content), data, name, given, workers))


def _check_path(
    document: Document,
    archive: Archive,
    data: Instance,
    name: str | None,
    given: Mapping[str, Any] | None,
    workers: LeafWorkers,
) -> DocumentReport:
    path = StatedPath(document)
    path.check()
    _check_archive(document, archive, path.count)
    folds = Folds(document, archive, data)
    asked = range(path.count) if name is None else [path.position(name)]
    proofs = _Proofs(path, archive, data, asked, given, workers)
    parts = [_check_part(path, folds, proofs, k) for k in asked]
    reports = [one.report for one in parts if one.report is not None]
    if name is None:
        _check_sets(path, data)
    others = [] if name is None else [path.name(k) for k in proofs.reports if k not in asked]
    said = [("bound from", f"the point {one}, whose optimum is not larger (proven)") for one in others]
    return DocumentReport(
        True, "", tuple(parts), (*path.said(), *said), (*folds.unchecked, UNCHECKED, *unchecked_of(reports))
    )


def _check_archive(document: Document, archive: Archive, count: int) -> None:
    """The archive is the one that the document names, and holds nothing else."""
    entry = document.get("certificate") or {}
    require(entry, "the path stands alone: it names no file of certificates")
    require(archive.sha256, f"{archive.path.name}, the file of certificates, is missing")
    right = archive.sha256 == entry["sha256"]
    require(right, f"{archive.path.name} is not the file that the path was written with: its SHA-256 differs")
    files = [point["result"]["certificate"] for point in document["points"] if point["result"].get("certificate")]
    require(all(one["file"] == entry["file"] for one in files), "a point names another file of certificates")
    proven = [k for k in range(count) if document["points"][k]["result"].get("certificate") is not None]
    archive.require_members([*(member_of(k) for k in proven), FOLDS])


class _Proofs:
    """The proofs of the points, each checked once, when it is needed."""

    def __init__(
        self,
        path: StatedPath,
        archive: Archive,
        data: Instance,
        asked: Sequence[int],
        given: Mapping[str, Any] | None,
        workers: LeafWorkers,
    ) -> None:
        self.path, self.archive, self.data, self.workers = path, archive, data, workers
        self.asked, self.given = asked, given
        self.reports: dict[int, Report | None] = {}

    def of(self, k: int) -> Report | None:
        """What is proven of a point; None of one that claims nothing."""
        if k not in self.reports:
            self.reports[k] = self._report_of_point(k)
        return self.reports[k]

    def _report_of_point(self, k: int) -> Report | None:
        result = self.path.points[k]["result"]
        if result.get("certificate") is None:
            nothing = result["objective"] is None and result["bound"] is None and not result.get("relaxed")
            nothing = nothing and result.get("decided") is None
            empty = (
                not result["selected"] and not result["weights"] and result["status"] in ("NO_SOLUTION", "NUMERICAL")
            )
            require(nothing and empty, f"{self.path.name(k)}: the result claims something, and has no certificate")
            return None
        given = self.given if k in self.asked else None  # a bound may come from a point with fewer rows
        report = self.archive.report(k, result, self.data, given, self.workers)
        require_accepted(self.path.name(k), report)
        return report

    def bound(self, k: int) -> float:
        """The proven bound of a point by itself."""
        report = self.of(k)
        return -math.inf if report is None else report.bound

    def reaches(self, k: int, bound: float) -> bool:
        """Whether that point, or one whose optimum is not larger, proves a bound; the most hopeful ones first."""
        hopeful = [k, *sorted(self.path.below(k), key=self.path.claimed, reverse=True)]
        enough = (one for one in hopeful if one == k or is_below_within_rounding(bound, self.path.claimed(one)))
        return any(is_below_within_rounding(bound, self.bound(one)) for one in enough)


def _check_part(path: StatedPath, folds: Folds, proofs: _Proofs, k: int) -> PartReport:
    """What is found of a point: its proof, its bound, and its errors."""
    point = path.points[k]
    report = proofs.of(k)
    bound = -math.inf if point["bound"] is None else float(point["bound"])
    require(proofs.reaches(k, bound), f"{path.name(k)}: nothing proves the bound {bound!r}, at any point below it")
    folds.check_errors(point, path.name(k))
    errors = f"{point['error']:.4f}" if point["errors"] else "-"
    shown = {"status": point["status"], "bound": "" if point["bound"] is None else repr(bound), "error": errors}
    return PartReport(path.name(k), point["result"], report, shown)


class StatedPath:
    """The document of a path, after its form was found to be right.

    Attributes
    ----------
    axes : tuple of str
    points : sequence of mappings
    places : list of tuples of numbers, in the order of the axes
    count : int, of points
    """

    def __init__(self, document: Document) -> None:
        require_fields(document, NEEDED, PERHAPS, "the path")
        require_schema(document)
        require(document["axis"] in AXES, f"a path has no axis {document['axis']!r}")
        self.document = document
        self.axes: tuple[str, ...] = tuple(document["axis"].split(","))
        self.points: Sequence[Mapping[str, Any]] = document["points"]
        require(isinstance(self.points, list | tuple), "the points are no list")
        self.count = len(self.points)
        for point in self.points:
            self._check_form(point)
        self.places = [tuple(point[axis] for axis in self.axes) for point in self.points]
        self.row = self._row_moved()

    def _row_moved(self) -> Mapping[str, str] | None:
        """The row of a frontier; None of any other path."""
        row, is_frontier = self.document.get("row"), self.axes == ("end",)
        require(
            is_frontier <= (row is not None) <= (self.axes in (("end",), ("M",))), "a frontier has a row, and no other"
        )
        require(
            (row is None) == ("bought" not in self.document), "what a unit bought stands in a frontier, and there alone"
        )
        if row is None:
            return None
        require_fields(row, ("name", "side"), (), "the row of the frontier")
        require(isinstance(row["name"], str) and row["side"] in SIDES, "the row of the frontier is malformed")
        require(is_frontier or dict(row) == {"name": "M", "side": "ub"}, "along M the row is that of M")
        return dict(row)

    def _is_optimum_falling(self, axis: str) -> bool:
        """Whether the optimum falls where the value on an axis grows."""
        return axis == "M" or (axis == "end" and self.row is not None and self.row["side"] != "lb")

    def _check_form(self, point: Any) -> None:
        is_rows = self.axes == ("rows",)
        named = "result", *self.axes, *COPIED, *COMPUTED, *HISTORY, *(("added",) if is_rows else ())
        require_fields(point, named, (LATER,), "a point")
        require_schema(point["result"])
        for axis in self.axes:
            right = is_whole(point[axis]) if axis in ("M", "rows") else is_number(point[axis])
            require(right, f"a point has {axis} = {point[axis]!r}")
        for field in ("seconds", "seconds_saved", "cold_seconds"):
            absent = point[field] is None and field != "seconds"
            require(absent or is_number(point[field]), f"{field} of a point is {point[field]!r}")
        for field in ("cuts_carried", "cuts"):
            require(type(point[field]) is int, f"{field} of a point is {point[field]!r}")
        texts = isinstance(point["start"], list | tuple) and all(isinstance(one, str) for one in point["start"])
        require(texts, f"start of a point is {point['start']!r:.60}")

    def check(self) -> None:
        """Refuse what contradicts itself."""
        self._check_head()
        self._check_places()
        for k in range(self.count):
            self._check_point(k)
        self._check_params()
        self._check_agreement()
        self._check_rows()
        self._check_bought()
        self._check_between()
        self._check_chosen()

    def name(self, k: int) -> str:
        """The name of a point: M=4,C=0.1."""
        return ",".join(f"{axis}={value:g}" for axis, value in zip(self.axes, self.places[k], strict=True))

    def position(self, name: str) -> int:
        """Where a point stands that is named by its place, or by what chose it."""
        if name in CHOSEN:
            by_rule = name == "least-error" and self.document.get("rule", RULES[0]) == name
            place = self._named_place("chosen" if by_rule else CHOSEN[name])
            require(place is not None, f"folds chose no point {name!r}")
            return self.places.index(place or ())
        said = dict(part.partition("=")[::2] for part in name.split(","))
        asked = {axis.strip(): float(value) for axis, value in said.items()}
        found = [k for k, place in enumerate(self.places) if asked == dict(zip(self.axes, place, strict=True))]
        require(found, f"the path has no point {name!r}")
        return found[0]

    def below(self, k: int) -> list[int]:
        """The other points whose optima are not larger: M larger, all else smaller, or the same."""
        here = self.places[k]
        return [
            i
            for i, place in enumerate(self.places)
            if i != k
            and _is_wider(self.points[i]["result"], self.points[k]["result"])
            and all(
                other >= one if self._is_optimum_falling(axis) else other <= one
                for axis, one, other in zip(self.axes, here, place, strict=True)
            )
        ]

    def claimed(self, k: int) -> float:
        """The bound that the result of a point states."""
        result = self.points[k]["result"]
        if result["status"] == "INFEASIBLE":
            return math.inf
        return -math.inf if result["bound"] is None else float(result["bound"])

    def _check_head(self) -> None:
        said = self.document
        require(isinstance(said["driver"], str), f"the driver is {said['driver']!r}")
        require(type(said["interrupted"]) is bool, f"interrupted is {said['interrupted']!r}")
        require(is_whole(said["seed"]), f"the seed is {said['seed']!r}")
        require(said["folds"] is None or is_whole(said["folds"], 2), f"the folds are {said['folds']!r}")
        require(said.get("rule", RULES[0]) in RULES, f"the rule is {said.get('rule')!r}")
        require(isinstance(said.get("command"), str | None), f"the command is {said.get('command')!r}")
        for name in ("by", "folds_by"):
            told = said.get(name, "")
            require(isinstance(told, str) and (not told or said["folds"] is not None), f"{name!r} is {told!r}")
        entry = said.get("certificate")
        if entry is not None:
            require_fields(entry, ("file", "sha256"), (), "the certificate of the path")
            texts = all(isinstance(entry[name], str) for name in ("file", "sha256"))
            require(texts, "the certificate of the path names no file, or no digest of it")

    def _check_places(self) -> None:
        """Every point is at a place of its own, one of those that were asked; all are there unless interrupted."""
        params = self.document["params"]
        require(isinstance(params, Mapping), "the parameters are no mapping")
        values: list[Any] = [params.get(axis) for axis in self.axes]
        for axis, listed in zip(self.axes, values, strict=True):
            right = isinstance(listed, list | tuple) and all(map(is_number, listed)) and len({*listed}) == len(listed)
            require(right, f"the parameters do not list the values of {axis}, each once")
        asked = {*itertools.product(*values)}
        require(len({*self.places}) == self.count, "two points are at the same place")
        strangers = [k for k, place in enumerate(self.places) if place not in asked]
        require(
            not strangers, f"{self.name(strangers[0]) if strangers else ''} is not among the values that were asked"
        )
        missing = len(asked) - self.count
        require(not missing or self.document["interrupted"], f"{missing} of the points that were asked are missing")

    def _check_point(self, k: int) -> None:
        """The summary of a point is that of its result, and follows from it."""
        point, result, name = self.points[k], self.points[k]["result"], self.name(k)
        for field in COPIED:
            right = same(point[field], result[field])
            require(right, f"{name}: {field!r} is {point[field]!r:.80}, and {result[field]!r:.80} in its result")
        solved = (result.get("counters") or {}).get("subproblems", 0)
        require(
            same(point["subproblems"], solved), f"{name}: 'subproblems' is {point['subproblems']!r}, not {solved!r}"
        )
        require(same(result["driver"], self.document["driver"]), f"{name}: its driver is {result['driver']!r}")
        for axis in self.axes:
            stated = point[axis] if axis in ("rows", "end") else result["params"].get(axis)
            require(same(stated, point[axis]), f"{name}: its result has {axis} = {stated!r}")
        bound = self._checked_number(point, "bound", name, -math.inf)
        objective = self._checked_number(point, "objective", name, math.inf)
        most = max([self.claimed(k), *map(self.claimed, self.below(k))])
        lies = f"{name}: the bound {bound!r} is more than any point states whose optimum is not larger"
        require(is_below_within_rounding(bound, most), lies)
        require(not bound > objective + NEAR * abs(objective), f"{name}: the bound {bound!r} lies above the objective")
        self._check_gap(k, gap_between(objective, bound))
        self._check_errors(k)

    def _checked_number(self, point: Mapping[str, Any], field: str, name: str, absent: float) -> float:
        value = point[field]
        require(value is None or is_number(value), f"{name}: {field!r} is {value!r}")
        return absent if value is None else float(value)

    def _check_gap(self, k: int, gap: float) -> None:
        """Gap and status follow from objective and bound."""
        point, result, name = self.points[k], self.points[k]["result"], self.name(k)
        asked = result["params"]["gap"]
        require(is_number(asked), f"{name}: the asked gap is {asked!r}")
        allowed = {"OPTIMAL"} if gap <= asked else {result["status"]}
        if asked < gap <= asked * (1.0 + NEAR):
            allowed |= {"OPTIMAL"}
        right = f"{name}: 'status' is {point['status']!r}, and its result and its bound say {sorted(allowed)[0]!r}"
        require(point["status"] in allowed, right)
        if not math.isfinite(gap):
            require(point["gap"] is None, f"{name}: 'gap' is {point['gap']!r}, and there is none")
            return
        stated = self._checked_number(point, "gap", name, math.nan)
        apart = STATED_GAP_AGREEMENT * gap + NEAR * (1.0 + gap)
        require(abs(stated - gap) <= apart, f"{name}: 'gap' is {point['gap']!r}, and objective and bound give {gap!r}")

    def _check_errors(self, k: int) -> None:
        """One error a fold, or none; their mean, deviation and standard error; classifiers of as many folds."""
        point, name, folds = self.points[k], self.name(k), self.document["folds"]
        errors = point["errors"]
        is_list = isinstance(errors, list | tuple) and all(map(is_number, errors))
        require(is_list, f"{name}: 'errors' is {errors!r:.80}")
        require(not errors or len(errors) == folds, f"{name}: there are {len(errors)} errors, of {folds} folds")
        of_folds = point.get(LATER)
        listed = of_folds is None or (isinstance(of_folds, list | tuple) and len(of_folds) == len(errors) > 0)
        require(listed, f"{name}: the classifiers of the folds are not one for each error")
        for one in of_folds or ():
            require_fields(one, ("weights", "intercept"), (), f"{name}: a classifier of a fold")
        for field, value in _error_summary(errors).items():
            stated = point[field]
            right = stated is None if value is None else is_number(stated) and abs(stated - value) <= NEAR
            require(right, f"{name}: {field!r} is {stated!r}, and its errors give {value!r}")

    def _check_params(self) -> None:
        """The parameters of the path are those of its points, but for the axes and the asked gap."""
        params = self.document["params"]
        for k, point in enumerate(self.points):
            own = point["result"]["params"]
            for name in (params.keys() | own.keys()) - {*self.axes, "gap"}:
                right = name in params and name in own
                right = right and (
                    self._are_over_weights(k) if name == "weight_rows" else same(params[name], own[name])
                )
                require(right, f"{self.name(k)}: the parameter {name!r} is {own.get(name)!r}, not {params.get(name)!r}")
        require("gap" not in params, "the parameters of a path have no gap: its results state it")

    def _are_over_weights(self, k: int) -> bool:
        """Whether a point has the rows over the weights of the path, and its own ends where they move.

        The path states no end of rows that move, which are those of parity; there is at least one.
        """
        stated, own = (self.document["params"]["weight_rows"], self.points[k]["result"]["params"]["weight_rows"])
        is_parity = self.row is not None and self.row["side"] == "both"
        moved = [row["lower"] is None and row["upper"] is None for row in stated]
        require(any(moved) == is_parity, "rows over the weights move if and only if the frontier is one of them")
        end = self.points[k]["end"] if is_parity else None
        for row, moves, there in zip(stated, moved, own, strict=True):
            require_fields(row, ("coefficients", "lower", "upper"), (), "a row over the weights of the path")
            ends = {"lower": -end, "upper": end} if moves and end is not None else {}
            if not same({**row, **ends}, {name: there.get(name) for name in row}):
                return False
        return True

    def _check_agreement(self) -> None:
        """All points are about one problem."""
        for k, point in enumerate(self.points):
            first, own = _problem_of_result(self.points[0]["result"]), _problem_of_result(point["result"])
            odd = [name for name in first if not same(first[name], own[name])]
            require(not odd, f"{self.name(k)}: {odd[0] if odd else ''} is not that of {self.name(0)}")

    def _check_rows(self) -> None:
        """Along rows every step has those of the step before and more; otherwise all points have the same."""
        rows = [point["result"].get("rows") or [] for point in self.points]
        if self.axes == ("end",) and self.row is not None and self.row["side"] != "both":
            rows = [self._without_end(k, own) for k, own in enumerate(rows)]
        if self.axes != ("rows",):
            for k, own in enumerate(rows):
                require(same(own, rows[0]), f"{self.name(k)}: its rows are not those of {self.name(0)}")
                extra = [_without_values(point["result"].get("extra")) for point in (self.points[0], self.points[k])]
                require(same(*extra), f"{self.name(k)}: its extra variables are not those of {self.name(0)}")
            return
        order = sorted(range(self.count), key=lambda k: self.places[k])
        require([self.places[k][0] for k in order] == [*range(self.count)], "a step of the rows is missing")
        costs = [_without_values(point["result"].get("extra")) for point in self.points]
        if any(one.get("cost") for variables in costs for one in variables.values()):
            alike = all(same(one, costs[0]) for one in costs)
            require(alike, "variables that cost something are not those of every step: no step bounds another one then")
        before: list[Any] | None = None
        for k in order:
            here, stated, name = list(rows[k]), self.points[k]["added"], self.name(k)
            there = here if before is None else before
            require(same(here[: len(there)], there), f"{name}: it lacks rows of the step before")
            added = ", ".join(str(row["name"]) for row in here[len(there) :])
            require(stated == added, f"{name}: 'added' is {stated!r}, and its rows say {added!r}")
            before = here

    def _without_end(self, k: int, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The rows of a point of a frontier, after the one that moves was found to end where the point is."""
        assert self.row is not None
        name, side = self.row["name"], self.row["side"]
        own = [row for row in rows if row["name"] == name]
        require(len(own) == 1, f"{self.name(k)}: not one row is called {name!r}")
        ends = own[0][side], own[0]["lb" if side == "ub" else "ub"]
        right = same(ends[0], self.points[k]["end"]) and ends[1] is None
        require(right, f"{self.name(k)}: the row {name!r} has other ends")
        return [{**row, side: None} if row is own[0] else row for row in rows]

    def _check_bought(self) -> None:
        """What a unit bought between two neighbours follows from their objectives and bounds."""
        if self.row is None:
            return
        sign = -1.0 if self.row["side"] == "lb" else 1.0
        order = sorted(range(self.count), key=lambda k: sign * self.places[k][0])
        stated = self.document["bought"]
        right = isinstance(stated, list | tuple) and len(stated) == max(0, self.count - 1)
        require(right, "what a unit bought is not stated once between each two neighbours")
        for (i, k), one in zip(itertools.pairwise(order), stated, strict=True):
            require_fields(one, ("tight", "loose", "least", "most"), (), "what a unit bought")
            tight, loose = (self.places[at][0] for at in (i, k))
            require(same([one["tight"], one["loose"]], [tight, loose]), "a unit was bought between other values")
            for field, upper, lower, turn in (("least", k, i, -1.0), ("most", i, k, 1.0)):
                U, L = self.points[upper]["objective"], self.points[lower]["bound"]
                value = None if U is None or L is None else turn * (U - L) / abs(loose - tight)
                near = value is not None and is_number(one[field])
                near = near and abs(one[field] - value) <= NEAR * (abs(U) + abs(L)) / abs(loose - tight)
                require(
                    near or value is one[field] is None,
                    f"{field!r} that a unit bought is {one[field]!r}, not {value!r}",
                )

    def _check_between(self) -> None:
        """A set at a C between two points has a bound on the chord through theirs, or below it, and the gap of that.

        The optimum is concave in C: of one classifier (P) is linear in it.
        """
        stated = self.document.get("between", ())
        require(isinstance(stated, list | tuple), "'between' is no list")
        require(not stated or "C" in self.axes, "'between' is of paths along C")
        for one in stated:
            require_fields(one, (*self.axes, *BETWEEN), (), "a set between two points")
            names = one["selected"]
            listed = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
            require(listed and len({*names}) == len(names), f"between: 'selected' is {names!r:.80}")
            require(isinstance(one["weights"], Mapping), f"between: 'weights' is {one['weights']!r:.80}")
            U, L, C = (self._checked_number(one, field, "between", math.nan) for field in ("objective", "bound", "C"))
            require(math.isfinite(U) and math.isfinite(L) and L <= U, f"between, C={C:g}: objective or bound is none")
            low, high = self.around(one)
            (a, left), (b, right) = (self._chord_end(k) for k in (low, high))
            most = left if a == b else left + (right - left) * (Fraction(C) - a) / (b - a)
            require(Fraction(L) <= most, f"between, C={C:g}: the bound {L!r} lies above the chord, {float(most)!r}")
            gap = gap_between(U, L)
            wrong = f"between, C={C:g}: 'gap' is {one['gap']!r}, and objective and bound give {gap!r}"
            require(one["gap"] is None if math.isinf(gap) else same_gap(one["gap"], gap), wrong)

    def _chord_end(self, k: int) -> tuple[Fraction, Fraction]:
        """C and bound of a point, an end of a chord."""
        bound = self.points[k]["bound"]
        require(bound is not None, f"{self.name(k)}: a chord begins at a point without a bound")
        return Fraction(self.points[k]["C"]), Fraction(bound)

    def around(self, one: Mapping[str, Any]) -> tuple[int, int]:
        """The points on both sides of a place along C: those nearest to it that have a bound and a classifier."""
        known = [
            k
            for k, point in enumerate(self.points)
            if point.get("M") == one.get("M") and point["bound"] is not None and point["objective"] is not None
        ]
        below = [k for k in known if self.points[k]["C"] <= one["C"]]
        above = [k for k in known if self.points[k]["C"] >= one["C"]]
        require(bool(below and above), f"between: C = {one['C']!r} does not lie between two points")
        return max(below, key=lambda k: self.points[k]["C"]), min(above, key=lambda k: self.points[k]["C"])

    def _check_chosen(self) -> None:
        """What is chosen follows from the errors."""
        said = self.document
        rule = said.get("rule", RULES[0])
        least, simplest = (None, None) if said["interrupted"] else self._recomputed_choice()
        chosen = simplest if rule == "one-se" else least
        right = {"chosen": chosen, "one_se": simplest, "least_error": least}
        for field, place in right.items():
            if field != "chosen" and field not in said and not (rule == "one-se" and place is not None):
                continue  # an older path, or one that did not ask for it
            stated = self._named_place(field)
            shown = None if place is None else dict(zip(self.axes, place, strict=True))
            require(stated == place, f"{field!r} is {said.get(field)!r}, and the errors choose {shown}")

    def _recomputed_choice(self) -> tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]:
        """The places of the least error, and of the simplest point that is hardly worse."""
        order = sorted(range(self.count), key=lambda k: self._simplicity_key(self.places[k]))
        compared = [k for k in order if self.points[k]["errors"] and self.points[k]["result"]["objective"] is not None]
        if not compared:
            return None, None
        errors = {k: _error_summary(self.points[k]["errors"]) for k in compared}
        rounded = {k: round(errors[k]["error"] or 0.0, DECIMALS) for k in compared}
        best = min(compared, key=lambda k: rounded[k])
        most = round((errors[best]["error"] or 0.0) + (errors[best]["standard_error"] or 0.0), DECIMALS)
        simplest = next((k for k in compared if rounded[k] <= most), best)
        return self.places[best], None if self.axes == ("rows",) else self.places[simplest]

    def _simplicity_key(self, place: tuple[Any, ...]) -> tuple[float, ...]:
        """What sorts places from simple to complex: smaller C, then smaller M, larger lambda, fewer rows."""
        return tuple(-value if axis == "lambda" else value for axis, value in zip(self.axes, place, strict=True))

    def _named_place(self, field: str) -> tuple[Any, ...] | None:
        """The place that a field names."""
        value = self.document.get(field)
        if value is None:
            return None
        by_axis = isinstance(value, Mapping)
        require(by_axis == (len(self.axes) > 1), f"{field!r} is {value!r}")
        require(not by_axis or {*value} == {*self.axes}, f"{field!r} is {value!r}")
        place = tuple(value[axis] for axis in self.axes) if by_axis else (value,)
        require(
            all(map(is_number, place)) and place in self.places, f"{field!r} is {value!r}: the path has no such point"
        )
        return place

    def said(self) -> list[tuple[str, str]]:
        """What is chosen, in words."""
        rule = "the simplest within one standard error" if self.document.get("rule") == "one-se" else "the least error"
        place = self._named_place("chosen")
        if place is None:
            return []
        said = f"{rule} of {self.document['folds']} folds"
        said += f" by {by}" if (by := self.document.get("folds_by")) else ""
        said += f", the error by {by}" if (by := self.document.get("by")) else ""
        return [("chosen", f"{self.name(self.places.index(place))}, {said}")]


def same_gap(stated: Any, gap: float) -> bool:
    """Whether a stated gap is a computed one, to what the verdict allows."""
    return is_number(stated) and abs(stated - gap) <= STATED_GAP_AGREEMENT * gap + NEAR * (1.0 + gap)


def _check_sets(path: StatedPath, data: Instance) -> None:
    """The sets between points are allowed, and their classifiers have the stated objectives."""
    for one in path.document.get("between", ()):
        result = path.points[path.around(one)[0]]["result"]
        whose = f"the set between two points at C={one['C']:g}"
        own = {name: one[name] for name in BETWEEN[:-2]}
        there = in_unit(
            {**result, **own, "params": {**result["params"], "C": one["C"]}, "certificate": {}}, {}, ScaledData(data)
        )
        statement = Statement(there.document, there.scaled.data)
        over = result["params"].get("weight_rows")
        require(not statement.extra and not over, f"{whose}: its rows have variables of their own, or are over weights")
        chosen = statement.ids(there.document["selected"])
        broken = statement.holds(chosen, statement.witness(()))
        require(not broken, f"{whose}: {broken}")
        evaluate_stated(statement, chosen, there.document, whose)


def _is_wider(other: Document, one: Document) -> bool:
    """Whether the rows over the weights of one result allow, within their allowances, no more than another's.

    The allowances go with the weights that were found; where they allow more, the other's bound says nothing.
    """
    wide, rows = (result["params"].get("weight_rows") or () for result in (other, one))
    if len(wide) != len(rows):
        return False
    return all(
        _forgiven_end(a, side) >= _forgiven_end(b, side)
        for a, b in zip(wide, rows, strict=True)
        for side in ("lower", "upper")
    )


def _forgiven_end(row: Mapping[str, Any], side: str) -> Fraction | float:
    """How far a row over the weights reaches on a side, with its allowance."""
    if row[side] is None:
        return math.inf
    return abs(Fraction(row[side])) + Fraction(row["allowance"])


def _error_summary(errors: Sequence[float]) -> dict[str, float | None]:
    """Mean, deviation and standard error of errors."""
    if not errors:
        return dict.fromkeys(("error", "deviation", "standard_error"))
    k = len(errors)
    mean = math.fsum(errors) / k
    require(k > 1, "one error has no deviation")
    deviation = math.sqrt(math.fsum((one - mean) ** 2 for one in errors) / (k - 1))
    return {"error": mean, "deviation": deviation, "standard_error": deviation / math.sqrt(k)}


def _problem_of_result(result: Document) -> dict[str, Any]:
    """What of a result is that of the problem, at every point of a path."""
    read = result.get("read")
    atoms = result.get("atoms")
    made = None if atoms is None else atoms.get("made")
    grows = made is not None and "kind" in made
    return {
        "the asked gap": result["params"].get("gap"),
        "the digest of the data": result["data_sha256"],
        "the scaling": result["scaling"]["kind"],
        "the version of the rules": result.get("rules"),
        "the labels": result["labels"],
        "the width of the data": result["n_features"],
        "how the data was read": None if read is None else {k: v for k, v in read.items() if k != "words"},
        "what is selected": None
        if atoms is None
        else {k: v for k, v in atoms.items() if k != "made" and not (grows and k in (*OF_ONE_SELECTION, "scale"))},
        "how columns are made": None if made is None else {k: v for k, v in made.items() if k not in OF_ONE_SELECTION},
    }


def _without_values(extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """Extra variables without their values."""
    return {name: {k: v for k, v in one.items() if k != "value"} for name, one in (extra or {}).items()}
