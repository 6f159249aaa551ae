"""How a result is shown, written and turned into an exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mipfs.cli.errors import BAD_USAGE, STOPPED_EARLY, complain
from mipfs.cli.text import number, percent, show_pairs, show_table
from mipfs.errors import UsageError
from mipfs.result import Result, Status, StopReason, relative_gap

if TYPE_CHECKING:
    from collections.abc import Mapping

INFEASIBLE = 3

_BECAUSE = {
    StopReason.GAP_CLOSED: "the gap is closed",
    StopReason.TIME_LIMIT: "stopped by the time limit",
    StopReason.MEMORY_LIMIT: "stopped by the memory limit",
    StopReason.ITERATION_LIMIT: "stopped by the iteration limit",
    StopReason.INTERRUPTED: "interrupted",
    StopReason.VALIDATION: "the validation error no longer improves",
    StopReason.INFEASIBLE: "the rows contradict each other",
    StopReason.COMPLETED: "all was done; this method closes no gap",
    StopReason.STALLED: "no further progress is possible in floating-point arithmetic",
}


def finish(result: Result, target: str | None, quiet: bool) -> int:
    """Write the JSON where it was asked for, show the result to people, and return the exit code."""
    if target == "-":
        print(result.to_json())
    elif target is not None:
        result.save(target)
    if result.status is Status.INFEASIBLE:
        culprits = ", ".join(repr(name) for name in result.conflict)
        complain(f"no selection satisfies the rows; these contradict each other: {culprits}; drop or relax one of them")
        return INFEASIBLE
    if not result.has_classifier and result.relaxed is None:
        return _explain_nothing(result)
    if target != "-" and not quiet:
        show_result(result)
        if target is not None:
            certificate = "" if result.certificate is None else f", its certificate to {result.certificate['file']}"
            print(f"\nwritten to {target}{certificate}")
    return 0


def show_result(result: Result) -> None:
    """Print status, numbers and the selected features with their weights."""
    counters = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in result.counters.items())
    word = "" if result.bound_source == "dual" else "  (the solver's word)"
    relaxed = result.status is Status.RELAXED and result.stop_reason is StopReason.GAP_CLOSED
    pairs = [
        ("status", f"{result.status.name} ({'its own gap is closed' if relaxed else _BECAUSE[result.stop_reason]})"),
        ("objective", number(result.objective)),
        ("bound", number(result.bound) + word),
        ("gap", percent(result.gap)),
        ("driver", f"{result.driver}, {result.seconds:.2f} s" + (f" ({counters})" if counters else "")),
        ("selected", f"{len(result.selected)} of {result.n_features} features"),
    ]
    if result.relaxed is not None:
        low, high = (result.relaxed[side] for side in ("lower", "upper"))
        if low is not None and high is not None:
            between = f"{number(low)} to {number(high)}, {percent(relative_gap(high, low))} apart"
            pairs.insert(4, ("relaxation", between))
    show_pairs(pairs)
    if result.has_classifier:
        rows = [(name, number(result.weights.get(name, 0.0))) for name in result.selected]
        show_table(("feature", "weight"), [*rows, ("(intercept)", number(result.intercept))])
    if result.near_optimal is not None:
        from mipfs.cli.near_optimal import show_near_optimal

        show_near_optimal(result.near_optimal)


def check_target(target: str | None) -> None:
    """Refuse a JSON target that cannot be written, before hours of work are lost to it."""
    if target is None or target == "-":
        return
    path = Path(target)
    there = path if path.exists() else path.absolute().parent
    if path.is_dir() or not os.access(there, os.W_OK):
        raise UsageError(f"--json {target}: no file can be written there; give a file in a folder that is yours")


def write_json(document: Mapping[str, Any], target: str) -> None:
    """Write any other JSON document to a file, or to standard output for ``-``."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    if target == "-":
        print(text)
        return
    try:
        Path(target).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from None


def _explain_nothing(result: Result) -> int:
    if result.status is Status.NUMERICAL:
        complain("the numbers are too large or too ill-scaled for a trustworthy answer; try --scale standard")
        return BAD_USAGE
    complain(f"{_BECAUSE[result.stop_reason]} before any classifier was found; raise the limit")
    return STOPPED_EARLY
