"""What to try when a run stops before its gap is closed, in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mipfs.losses import is_joint
from mipfs.report.numbers import percent
from mipfs.result.result import Record, Result, Status, StopReason

LIMITS = (StopReason.TIME_LIMIT, StopReason.MEMORY_LIMIT, StopReason.ITERATION_LIMIT, StopReason.INTERRUPTED)
CUT_SHORT = (*LIMITS, StopReason.NUMERICAL)

MOST_NAMES = 5
"""Names of rows and variables that are written out."""
IDLE = 1e-9
"""Relative distance from the objective of w = 0 within which a measure's classifier is worth no more than that."""


def ends_all(result: Result) -> bool:
    """Whether nothing that was to follow a run begins: Ctrl-C ended it, or the total limit of the command."""
    from mipfs.plumbing import total_limit

    return result.stop_reason is StopReason.INTERRUPTED or total_limit.is_up()


def advice_in_words(result: Result) -> str:
    """More time (or memory) and what it may bring, scaled columns, a smaller C, a relaxation; "" where it ended.

    Where no selection was found it is about the rows, on which alone that depends.
    """
    if result.status not in (Status.FEASIBLE, Status.NO_SOLUTION, Status.NUMERICAL):
        return ""
    if result.stop_reason not in CUT_SHORT:
        return ""
    ways = []
    if result.stop_reason is not StopReason.NUMERICAL:
        what = "memory" if result.stop_reason is StopReason.MEMORY_LIMIT else "time"
        ways.append(f"more {what}{gap_trend(result.trace, result.seconds)}")
    if result.status is Status.NO_SOLUTION:
        return " or ".join([*ways, *_other_rows(result)])
    if result.scaling.get("kind") == "none":
        ways.append("scale standard")
    C = result.params.get("C")
    if isinstance(C, (int, float)):
        ways.append(f"a smaller C (say {C / 10:g})")
    if result.relaxed is None and not is_joint(result.params.get("loss")):
        ways.append("the relaxation alone (fgm)")
    return ", ".join(ways[:-1]) + (" or " if len(ways) > 1 else "") + ways[-1] if ways else ""


def _other_rows(result: Result) -> list[str]:
    """What makes it easier to find a selection that satisfies the rows, or to show that there is none."""
    ways = []
    open_ended = [name for name, one in result.extra.items() if one["integer"] and None in (one["lb"], one["ub"])]
    if open_ended:
        ways.append(f"bounds on {_list_names(open_ended)}")
    ends = [(row["name"], row["lb"], row["ub"]) for row in result.rows if None not in (row["lb"], row["ub"])]
    narrow = [name for name, low, high in ends if high - low < max(1.0, 1e-6 * abs(high))]
    if narrow:
        ways.append(f"more room between the two ends of {_list_names(narrow)}")
    return ways


def _list_names(names: Sequence[str]) -> str:
    """Some of the names, quoted."""
    shown = ", ".join(repr(name) for name in names[:MOST_NAMES])
    return f"{shown}, …" if len(names) > MOST_NAMES else shown


def is_idle(result: Result) -> bool:
    """Whether a measure's classifier is worth no more than none at all: its objective is that of w = 0, C · 1.

    What its weights are is then rounding, whatever their number.
    """
    C = result.params.get("C")
    if not result.has_classifier or result.params.get("measure") is None or not isinstance(C, (int, float)):
        return False
    return result.objective >= C * (1.0 - IDLE)


def constant_words(result: Result) -> str:
    """That a classifier has no weight that counts, and what to try; "" of one that tells samples apart."""
    params = result.params
    idle = is_idle(result)
    if not result.has_classifier or (result.weights and not idle):
        return ""
    said = result.labels["positive" if result.intercept > 0 else "negative"]
    words = f"constant: every sample is called {said}"
    if idle and result.weights:
        words = "worth no more than none: its objective is that of no classifier, and its weights are rounding"
    if params.get("M") == 0:
        return f"{words}; M = 0 allows no other"
    if result.status is Status.FEASIBLE and result.stop_reason in LIMITS:
        return f"{words}; no better one was found before the run stopped"
    ways = []
    if not params.get("bias"):
        ways.append("an intercept (without bias=false)")
    C = params.get("C")
    if isinstance(C, (int, float)):
        ways.append(f"a larger C (say {10 * C:g})")
    if params.get("lambda"):
        ways.append("a smaller lambda")
    if idle:
        ways.append("where that changes nothing, fsp-m with -p class_weight=balanced")
    return f"{words}; to try: {' or '.join(ways)}" if ways else words


def gap_trend(trace: Sequence[Record], seconds: float) -> str:
    """How the gap moved in the second half of a run, in brackets."""
    if not trace or not math.isfinite(trace[-1].gap):
        return ""
    before = [record.gap for record in trace if record.seconds <= seconds / 2]
    if not before or not math.isfinite(before[-1]):
        return ""
    then = before[-1]
    now = trace[-1].gap
    if now >= then * 0.98:
        return f" (but the gap stood at {percent(now)} in the second half of the run)"
    return f" (the gap fell from {percent(then)} to {percent(now)} in the second half of the run)"
