"""A result as people read it: the report of the command line, of `Result.summary` and of notebooks."""

from __future__ import annotations

from mipfs.check import phrases
from mipfs.report.blocks import Alarm, NamedValues, ReportBlock, Table
from mipfs.report.numbers import number, percent, with_asked
from mipfs.report.visible import escape_invisible
from mipfs.result.advice import advice_in_words, constant_words, is_idle
from mipfs.result.decided import decided_blocks
from mipfs.result.gap import relative_gap
from mipfs.result.interactions import count_selected, functions_of
from mipfs.result.near_report import near_optimal_blocks
from mipfs.result.prediction import weight_by_feature
from mipfs.result.result import Result, Status, StopReason
from mipfs.result.words import (
    bounds_in_words,
    classes_in_words,
    levels_in_words,
    missing_in_words,
    warm_in_words,
    weight_rows_in_words,
    weightless_in_words,
    weights_in_words,
)

BECAUSE = {
    StopReason.GAP_CLOSED: "the gap is closed",
    StopReason.TIME_LIMIT: "stopped by the time limit",
    StopReason.MEMORY_LIMIT: "stopped by the memory limit",
    StopReason.ITERATION_LIMIT: "stopped by the iteration limit",
    StopReason.INTERRUPTED: "interrupted",
    StopReason.VALIDATION: "the validation error no longer improves",
    StopReason.INFEASIBLE: "the rows contradict each other",
    StopReason.COMPLETED: "all was done; this method closes no gap",
    StopReason.NUMERICAL: "no further progress is possible in floating-point arithmetic",
}

UNDECIDED = "whether any selection satisfies the rows is not decided"

MOST_PAID = 6
"""Extra variables with costs that are named."""

PART = ("active", "atoms", "begun_with", "rounds")
"""Counters that have a line of their own."""


def summary_blocks(result: Result) -> list[ReportBlock]:
    """Status, numbers, what to try where the gap is open, and the selected features with their weights."""
    told = {name: value for name, value in result.counters.items() if value and name not in PART}
    counters = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in told.items())
    word = "" if result.bound_source == "dual" else "  (the solver's word)"
    relaxed = result.status is Status.RELAXED and result.stop_reason is StopReason.GAP_CLOSED
    because = "its own gap is closed" if relaxed else BECAUSE[result.stop_reason]
    if result.status is Status.NO_SOLUTION and result.stop_reason is StopReason.NUMERICAL:
        because = UNDECIDED
    pairs = [
        ("status", with_asked(f"{result.status.name} ({because})", result.status.name, result.params.get("gap"))),
        ("objective", number(result.objective)),
        *_list_costs(result),
        ("bound", number(result.bound) + word),
        ("gap", percent(result.gap)),
        ("driver", f"{result.driver}, {result.seconds:.2f} s" + (f" ({counters})" if counters else "")),
        *_list_beginning(result),
        ("selected", count_selected(result)),
        *_levels_note(result),
    ]
    if result.has_classifier:
        pairs.append(("classes", classes_in_words(result)))
    if result.params.get("class_weight"):
        pairs.append(("class weights", weights_in_words(result)))
    if missing := missing_in_words(result):
        pairs.append(("raw table", missing))
    if result.weightless:
        pairs.append(("no weight", weightless_in_words(result)))
    if words := constant_words(result):
        pairs.append(("classifier", Alarm(words)))
    if "active" in result.counters:
        pairs.append(("solved over", _solved_share(result)))
    if result.relaxed is not None:
        low, high = (result.relaxed[side] for side in ("lower", "upper"))
        if low is not None and high is not None:
            between = f"{number(low)} to {number(high)}, {percent(relative_gap(high, low))} apart"
            pairs.insert(4, ("relaxation", between))
    if result.conflict:
        pairs.append(("conflict", ", ".join(result.conflict)))
    if signs := [*bounds_in_words(result), *weight_rows_in_words(result)]:
        pairs.append(("weights", " ".join(signs)))
    if words := advice_in_words(result):
        pairs.append(("to try", words))
    blocks: list[ReportBlock] = [NamedValues(pairs)]
    if result.has_classifier:
        rows = [(name, number(size)) for name, size in weight_by_feature(result).items()]
        what = "norm of its function" if functions_of(result) is not None else "weight"
        blocks.append(Table(("feature", what), [*rows, ("(intercept)", number(result.intercept))]))
    blocks += decided_blocks(result)
    if result.near_optimal is not None:
        blocks += near_optimal_blocks(result.near_optimal)
    return blocks


def _list_costs(result: Result) -> list[tuple[str, str]]:
    """What of the objective the extra variables cost, if some do."""
    if result.extra_cost is None or not result.has_classifier:
        return []
    return [
        (
            "of which",
            f"{number(result.extra_cost)} for {escape_invisible(phrases.describe_costs(result.extra, MOST_PAID))}",
        )
    ]


def _levels_note(result: Result) -> list[tuple[str, str]]:
    """That M counts words, where several of one column are selected."""
    return [("M", words)] if (words := levels_in_words(result)) else []


def _list_beginning(result: Result) -> list[tuple[str, str]]:
    """Which earlier result it began from, if any."""
    return [("warm from", words)] if (words := warm_in_words(result)) else []


def _solved_share(result: Result) -> str:
    """Over how many of the atoms a run that grew them has solved."""
    count = result.counters
    rounds = count.get("rounds", 0)
    grown = f"{count['active']} of {count['atoms']} in {rounds} round{'s' * (rounds != 1)}, from {count['begun_with']}"
    return f"{grown}; the others are proven out" if result.status is Status.OPTIMAL else grown


def short(result: Result) -> str:
    """The result in one line."""
    parts = [result.status.name]
    if result.has_classifier:
        parts.append(f"objective {number(result.objective)}")
    parts.append(f"bound {number(result.bound)}")
    if result.has_classifier:
        parts += [f"gap {percent(result.gap)}", count_selected(result)]
        if not result.weights:
            parts.append("a constant classifier")
        elif is_idle(result):
            parts.append("worth no more than none")
    return f"<Result {', '.join(parts)}, {escape_invisible(result.driver)}, {result.seconds:.2f} s>"
