"""How far from the best a set is at a C between two points of a path: by the chord through their proven bounds.

    v_S(C) = min over w, b of ½‖w‖² + C Σ c_i ℓ_i + the cost of S,        V(C) = min over S of v_S(C)

Of one w each is linear in C, so V is concave: between C₁ and C₂ it lies above the chord through V(C₁) and V(C₂), and so
above the one through bounds L₁ ≤ V(C₁) and L₂ ≤ V(C₂). The value of a set at C less that chord is a proven gap. A set
may be the best, not, and the best again as C grows: nothing is said of where it is the best.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mipfs import drivers
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.losses import is_joint
from mipfs.plumbing.declared import Positive, check_value
from mipfs.report.blocks import Curve, LineChart, Table
from mipfs.report.numbers import list_names, number, percent
from mipfs.report.visible import finite_or_none
from mipfs.result.gap import relative_gap
from mipfs.result.posed import posed_again, why_other_data
from mipfs.result.result import Result
from mipfs.run.parameters import parameters

if TYPE_CHECKING:
    from mipfs.lab.studies.solution_path import PathPoint, SolutionPath
    from mipfs.lab.studies.steps import Place
    from mipfs.problem import Problem

WHAT = "a value between the points of a path"


@dataclass(frozen=True)
class Between:
    """A set at a C between two points of a path.

    Attributes
    ----------
    place : mapping of axis to number, with the C, and of a path over C and M the M
    selected : tuple of str, the set
    weights, intercept : mapping of feature to weight and float, its SVM at this C, on the user's scale
    objective : float, of these
    bound : float, of every set: on the chord through the bounds of the two points
    """

    place: Place
    selected: tuple[str, ...]
    weights: dict[str, float]
    intercept: float
    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """(objective − bound)/|objective|: the set is at most so far from the best one at this C."""
        return relative_gap(self.objective, self.bound)

    def document(self) -> dict[str, Any]:
        """As the JSON has it."""
        return {
            **self.place,
            "selected": [*self.selected],
            "weights": dict(self.weights),
            "intercept": self.intercept,
            "objective": self.objective,
            "bound": self.bound,
            "gap": finite_or_none(self.gap),
        }


def chord(low: tuple[float, float], high: tuple[float, float], C: float) -> float:
    """The height at C of the chord through two points (C, bound), rounded down.

    Parameters
    ----------
    low, high : (C, bound), of C₁ < C₂
    C : float in [C₁, C₂]
    """
    (a, left), (b, right), at = (Fraction(v) for v in low), (Fraction(v) for v in high), Fraction(C)
    exact = left if a == b else left + (right - left) * (at - a) / (b - a)
    found = float(exact)
    return found if Fraction(found) <= exact else math.nextafter(found, -math.inf)


def at(path: SolutionPath, C: float, data: Instance, selected: Sequence[str] | None, M: int | None) -> Between:
    """A set at C, by default the better one of those of the points on both sides (`SolutionPath.at`)."""
    C = check_value("C", C, Positive)
    low, high = _neighbouring_points(path, C, M)
    check_carried(low.result, data)
    if selected is not None:
        selected = _checked_names(selected)
        _check_allowed(low.result, selected)
    sets = dict.fromkeys([low.selected, high.selected] if selected is None else [selected])
    best = min((_of_set(low.result, data, names, C) for names in sets), key=lambda found: found.objective)
    first, last = ((float(point.place["C"]), point.bound) for point in (low, high))
    bound = min(chord(first, last, C), best.objective)
    place = {axis: C if axis == "C" else low.place[axis] for axis in path.axes}
    weights = {name: float(w) for name, w in best.weights.items()}
    return Between(place, best.selected, weights, float(best.intercept), best.objective, bound)


def between_points(path: SolutionPath, data: Instance, count: int) -> tuple[Between, ...]:
    """Between each two neighbours along C `count` values of C in equal ratios, with the better of their sets."""
    found = []
    for points in _bounded_points_by_M(path):
        for low, high in itertools.pairwise(points):
            first, ratio = float(low.place["C"]), float(high.place["C"]) / float(low.place["C"])
            M = low.place.get("M")
            for k in range(1, count + 1):
                C = first * ratio ** (k / (count + 1))
                found.append(at(path, C, data, None, None if M is None else int(M)))
    return tuple(found)


NO_SUM = f"{WHAT} is for a loss that is a sum over the samples, and the unit margin"
OVER_WEIGHTS = f"{WHAT} is for problems without rows over the weights"
EXTRA = f"{WHAT} is for rows without variables of their own"
NO_FEATURES = f"{WHAT} is for single features and the squared norm"


def check_carried(result: Result, data: Instance) -> None:
    """Refuse what no set can be solved again of, at another C.

    Raises
    ------
    UsageError
    """
    params = result.params
    if is_joint(params["loss"]) or params.get("margin", "unit") != "unit":
        raise UsageError(NO_SUM)
    if params.get("weight_rows"):  # which hold within allowances that are each point's own
        raise UsageError(OVER_WEIGHTS)
    if result.extra:
        raise UsageError(EXTRA)
    if result.atoms is not None or params.get("regulariser") is not None:
        raise UsageError(NO_FEATURES)
    if why := why_other_data(result, data):
        raise UsageError(f"the data is other data than the path was solved on ({why})")
    if dict(data.penalty) != (params.get("penalty") or {}):
        raise UsageError("the data has other penalties than the path was solved with; give the data of the path")


def check_asked(problem: Problem, C: object) -> None:
    """Refuse, before anything is solved, a path without values of C, and what `check_carried` would refuse of it.

    Raises
    ------
    UsageError
    """
    if C is None:
        raise UsageError("between is of values of C: the optimum is concave in C; give several, or leave between out")
    if is_joint(problem.loss) or problem.margin != "unit":
        raise UsageError(NO_SUM)
    if problem.rows_over_weights:
        raise UsageError(OVER_WEIGHTS)
    if problem.rows is not None and len(problem.rows.extra):
        raise UsageError(EXTRA)
    if problem.atoms.kind != "features" or parameters(problem).get("regulariser") is not None:
        raise UsageError(NO_FEATURES)


def between_table(path: SolutionPath) -> Table | None:
    """The values between the points; None where there are none."""
    rows = [
        (
            *(f"{value:.6g}" for value in one.place.values()),
            number(one.objective),
            number(one.bound),
            percent(one.gap),
            list_names(one.selected) if one.selected else "-",
        )
        for one in path.between
    ]
    head = (*path.axes, "objective", "chord", "gap", "the better set of both sides")
    return Table(head, rows, left=len(head)) if rows else None


def between_chart(path: SolutionPath) -> LineChart | None:
    """Objective and bound at the points and between them, along C; None of several M, or without values."""
    if not path.between or len(_bounded_points_by_M(path)) != 1:
        return None
    known = [(float(p.place["C"]), p.objective, p.bound) for p in path.points if p.result.has_classifier]
    known += [(float(one.place["C"]), one.objective, one.bound) for one in path.between]
    ordered = sorted(known)
    gaps = [finite_or_none(relative_gap(objective, bound)) for _, objective, bound in ordered]
    return LineChart(
        "Objective and bound between the points",
        x=[C for C, _, _ in ordered],
        curves=[
            Curve("the better set", [finite_or_none(objective) for _, objective, _ in ordered], "incumbent"),
            Curve("bound, between points the chord", [finite_or_none(bound) for _, _, bound in ordered], "bound"),
        ],
        between=(0, 1),
        x_label="C",
        y_label="objective",
        before="C = ",
        is_log=True,
        hover=[Curve("gap", gaps, "third", percent=True)],
        table=between_table(path),
    )


def _bounded_points_by_M(path: SolutionPath) -> list[list[PathPoint]]:
    """The points that have a bound and a classifier, ascending in C, of every M."""
    if "C" not in path.axes:
        raise UsageError(f"{WHAT} is for paths along C; this one goes along {', '.join(path.along)}")
    lines: dict[Any, list[PathPoint]] = {}
    for point in sorted(path.points, key=lambda point: float(point.place["C"])):
        if math.isfinite(point.bound) and point.result.has_classifier:
            lines.setdefault(point.place.get("M"), []).append(point)
    return [*lines.values()]


def _neighbouring_points(path: SolutionPath, C: float, M: int | None) -> tuple[PathPoint, PathPoint]:
    """The points on both sides of C."""
    if (M is not None) != ("M" in path.axes):
        raise UsageError("give M of a path over C and M, and of no other path")
    points = [point for line in _bounded_points_by_M(path) for point in line if M is None or point.place["M"] == M]
    below = [point for point in points if float(point.place["C"]) <= C]
    above = [point for point in points if float(point.place["C"]) >= C]
    if not (below and above):
        raise UsageError(f"C = {C:g} does not lie between two solved points of the path: no chord goes there")
    return below[-1], above[0]


def _checked_names(selected: Sequence[str]) -> tuple[str, ...]:
    """The names of a set, each once: of fewer features than M allows others would be added."""
    if isinstance(selected, str) or not all(isinstance(name, str) for name in selected):
        raise UsageError(f"selected = {selected!r}: give the names of the features, such as ['age', 'income']")
    if twice := [name for name, count in Counter(selected).items() if count > 1]:
        raise UsageError(f"the set names {twice[0]!r} twice; give every feature once")
    return tuple(selected)


def _check_allowed(result: Result, selected: tuple[str, ...]) -> None:
    """Refuse a set that the problem does not allow: its value would be compared with that of others."""
    params, chosen = result.params, {*selected}
    M = params.get("M")
    if M is not None and len(chosen) > M:
        raise UsageError(f"{len(chosen)} features are more than M = {M}")
    forced, left_out = {*params.get("forced_in", ())}, {*params.get("forced_out", ())}
    if forced - chosen or left_out & chosen:
        raise UsageError(
            f"the set breaks forced_in or forced_out: {sorted((forced - chosen) | (left_out & chosen))[0]}"
        )
    for row in result.rows:
        total = sum(Fraction(a) for name, a in row["terms"].items() if name in chosen)
        low, high = (end if row[side] is None else row[side] for side, end in (("lb", -math.inf), ("ub", math.inf)))
        if not low <= total <= high:
            raise UsageError(f"the set breaks the row {row['name']!r}")


def _of_set(result: Result, data: Instance, names: tuple[str, ...], C: float) -> Result:
    """The SVM of exactly these features at C."""
    given = {"C": C, "forced_in": names, "M": len(names), "lam": result.params["lambda"]}
    return drivers.solve(posed_again(result, data, WHAT, **given))
