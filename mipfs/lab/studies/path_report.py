"""A path as people read it: the report of the command line, of `SolutionPath.summary` and of notebooks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mipfs.lab.studies.between import between_table
from mipfs.lab.studies.steps import place_text
from mipfs.measures.judged import SMALLER_IS_BETTER
from mipfs.report.blocks import Alarm, NamedValues, ReportBlock, Sentence, Table
from mipfs.report.numbers import number, percent, state_parameters
from mipfs.result.advice import constant_words

if TYPE_CHECKING:
    from mipfs.lab.studies.solution_path import PathPoint, SolutionPath

BETWEEN = "between the points no set is better than the chord through their bounds: the gap to it is proven"


def path_blocks(found: SolutionPath) -> list[ReportBlock]:
    """What was asked, a line for every point, the supports, and what was chosen."""
    total = sum(point.seconds for point in found.points)
    pairs = [
        ("problem", state_parameters(found.params, without=found.axes)),
        ("driver", f"{found.driver}, {total:.2f} s"),
    ]
    if found.points and all(point.cold is not None for point in found.points):
        saved = sum(point.seconds_saved or 0.0 for point in found.points)
        pairs += [("cold", f"{total + saved:.2f} s, so the path saved {saved:.2f} s")]
    if found.interrupted:
        pairs += [("stopped", "interrupted, or its total limit was up: these are the points that were reached")]
    supports = [(*_place_cells(p), _support_text(p)) for p in found.points]
    header, lines = cells(found)
    blocks: list[ReportBlock] = [
        NamedValues(pairs),
        Table(header, lines, title="The path", left=0),
        Table((*found.axes, "features"), supports, title="The supports", left=len(found.axes) + 1),
    ]
    blocks += [] if found.row is None else _bought_blocks(found)
    table = between_table(found)
    blocks += [] if table is None else [Sentence(f"\n{BETWEEN}"), table]
    blocks += [] if found.best is None else _choice_blocks(found, found.best)
    if found.best is not None and (words := constant_words(found.best.result)):
        blocks.append(NamedValues([("classifier", Alarm(words))]))
    return blocks


def _bought_blocks(found: SolutionPath) -> list[ReportBlock]:
    """What a unit of the row bought between two values, and the words for it."""
    assert found.row is not None
    words = f"\nwhat a unit of {found.row.name!r} bought on average, from one value to the next: proven, no derivative"
    table = bought_table(found)
    return [] if table is None else [Sentence(words), table]


def bought_table(found: SolutionPath) -> Table | None:
    """What a unit of the row bought between two values; None where nothing was."""
    rows = [(f"{one.tight:g}", f"{one.loose:g}", _show_value(one.least), _show_value(one.most)) for one in found.bought]
    return Table(("from", "to", "at least", "at most"), rows, left=0) if rows else None


def _show_value(value: float) -> str:
    return number(value) if math.isfinite(value) else "-"


def _support_text(point: PathPoint) -> str:
    """The features of a point; that its classifier is constant where it has none."""
    is_constant = point.result.has_classifier and not point.result.weights
    return (", ".join(point.selected) or "-") + (" (a constant classifier)" if is_constant else "")


def short(point: PathPoint) -> str:
    """A point in one line."""
    parts = [
        point.status.name,
        f"objective {number(point.objective)}",
        f"bound {number(point.bound)}",
        f"gap {percent(point.gap)}",
        f"{len(point.selected)} features",
        *([f"error {point.error:.4f} ± {point.standard_error:.4f} std error"] if point.errors else []),
    ]
    return f"<Point {place_text(point.place)}: {', '.join(parts)}>"


def error_of(found: SolutionPath) -> str:
    """What the error is: what the folds chose by; else of labels, or Δ of the measure that is selected for."""
    measure = found.by or found.params.get("measure")
    if measure in (None, *SMALLER_IS_BETTER):
        return measure or "error"
    return f"1 − {measure}"


def folds_of(found: SolutionPath) -> str:
    """How many folds there are, and what they keep together, or what gave them."""
    return f"{found.folds} folds" + ("" if found.folds_by is None else f" by {found.folds_by}")


def _choice_blocks(found: SolutionPath, best: PathPoint) -> list[ReportBlock]:
    """What cross-validation chose; by the one-standard-error rule beside the point of least error."""
    if found.rule == "least-error":
        error = f"{error_of(found)} {best.error:.4f} ± {best.standard_error:.4f}; ± is one standard error"
        return [Sentence(f"\nchosen by {folds_of(found)}: {place_text(best.place)}, {error}")]
    least = best if found.least_error is None else found[found.least_error]
    most = least.error + least.standard_error
    line = f"\nchosen by {folds_of(found)}: the simplest whose error is at most {most:.4f}; ± is one standard error"
    pairs = []
    for name, p in (("least error", least), ("one-se, chosen", best)):
        error = f"{error_of(found)} {p.error:.4f} ± {p.standard_error:.4f}"
        pairs.append((name, f"{place_text(p.place)}, {error}, {p.status.name.lower()}, gap {percent(p.gap)}"))
    return [Sentence(line), NamedValues(pairs)]


def _place_cells(point: PathPoint) -> tuple[str, ...]:
    return tuple(f"{value:g}" for value in point.place.values())


def cells(found: SolutionPath) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and lines of the path's table."""
    is_cold = any(point.cold is not None for point in found.points)
    is_marked = found.rule == "one-se" and found.chosen is not None
    header = (
        *found.axes,
        *("status", "objective", "bound", "gap", "size", "seconds", "carried", "cuts", "subproblems"),
        *(("cold s", "saved s") if is_cold else ()),
        *((error_of(found), "std error") if found.chosen is not None else ()),
        *(("choice",) if is_marked else ()),
    )
    lines = []
    for p in found.points:
        line = [*_place_cells(p), p.status.name.lower(), number(p.objective), number(p.bound), percent(p.gap)]
        line += [str(len(p.selected)), f"{p.seconds:.2f}", str(p.cuts_carried), str(p.cuts), str(p.subproblems)]
        if is_cold:
            saved = p.seconds_saved
            line += ["-", "-"] if p.cold is None or saved is None else [f"{p.cold.seconds:.2f}", f"{saved:.2f}"]
        if found.chosen is not None:
            line += [f"{p.error:.4f}", f"{p.standard_error:.4f}"] if p.errors else ["-", "-"]
        if is_marked:
            marks = (("least error", found.least_error), ("one-se", found.one_se))
            line.append(", ".join(name for name, value in marks if p.value == value))
        lines.append(tuple(line))
    return header, lines
