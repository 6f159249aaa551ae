"""A result's problem in words, and what its answer means: made from the JSON alone, without the data.

`mipfs verify` states the problem anew from the data; this is what the run says of itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mipfs.check import phrases
from mipfs.check.regulariser import stated_regulariser
from mipfs.check.rounding import CertificateError
from mipfs.check.stated import statement_of
from mipfs.report.numbers import number, percent
from mipfs.report.visible import escape_invisible
from mipfs.result.interactions import functions_of, made_of
from mipfs.result.prediction import count_of
from mipfs.result.result import Result, Status, StopReason

MOST_TERMS = 10
"""Terms of a row, or names, that are written out."""
BINDING_DISTANCE = 1e-9
"""A row whose two sides are this close, relative to its numbers, binds."""
CUT_DISTANCE = 1e-7
"""How far (relative) a certificate's bound lies below the run's where its file was cut."""
BECAUSE = {
    StopReason.TIME_LIMIT: "the time limit",
    StopReason.MEMORY_LIMIT: "the memory limit",
    StopReason.ITERATION_LIMIT: "the iteration limit",
    StopReason.INTERRUPTED: "an interrupt",
    StopReason.VALIDATION: "the validation error, which no longer improved,",
    StopReason.NUMERICAL: "round-off",
}


def status_in_words(result: Result) -> str:
    """What the status means, in a sentence or two that say no more than what was proven."""
    bound = number(result.bound)
    gap = percent(result.gap)
    stop = BECAUSE.get(result.stop_reason, "its method")
    if result.status is Status.OPTIMAL:
        whose = "" if result.bound_source == "dual" else ", by the word of the solver"
        return f"No allowed selection has an objective below {bound}{whose}. This one has {number(result.objective)}."
    if result.status is Status.FEASIBLE:
        if not math.isfinite(result.bound):
            return f"A classifier was found, and no bound: how good it is was not proven. {_describe_stop(stop)}"
        return (
            f"A better selection may exist, but none below {bound}: this one has {number(result.objective)}, at most "
            f"{gap} of it above the optimum. {_describe_stop(stop)}"
        )
    if result.status is Status.INFEASIBLE:
        return "No selection satisfies the rows." + (" These contradict each other:" if result.conflict else "")
    if result.status is Status.RELAXED:
        solved = result.stop_reason in (StopReason.GAP_CLOSED, StopReason.COMPLETED)
        what = (
            "A relaxation was solved"
            if solved
            else f"A relaxation was begun, and not solved out: {_describe_stop(stop)[:-1]}"
        )
        if not math.isfinite(result.bound):
            return f"{what}; no bound was proven."
        return f"{what}. No allowed selection has an objective below {bound}."
    if result.status is Status.NUMERICAL:
        return "The numbers are too large or too ill-scaled for a trustworthy answer."
    if result.stop_reason is StopReason.NUMERICAL:
        return "No selection was found that satisfies the rows, nor a proof that none does."
    return f"{_describe_stop(stop, ' before any classifier was found')}"


def ended_words(result: Result) -> str:
    """What ended the run, as a sentence."""
    return _describe_stop(BECAUSE.get(result.stop_reason, "its method"))


def _describe_stop(stop: str, more: str = "") -> str:
    return f"{stop[0].upper()}{stop[1:]} ended the run{more}."


def certificate_words(result: Result) -> str:
    """What stands behind the status: the certificate's file, or why there is none."""
    if result.certificate is not None:
        bound = result.certificate["bound"]
        proves = "no bound" if bound is None else f"the bound {number(bound)}"
        if bound is not None and result.bound - bound > CUT_DISTANCE * abs(result.bound):
            proves += ", less than the run found, so that the file is not too large"
        proves = "that no selection is allowed" if result.status is Status.INFEASIBLE else proves
        return f"{result.certificate['file']} ({result.certificate['kind']}) proves {proves}; `mipfs verify` checks it."
    if result.claim is not None:
        return "at hand, but not saved: --json FILE, or result.save(FILE), writes it beside the result."
    if result.bound_source != "dual":
        return "none: the bound is the word of the solver."
    return "none was saved with this result."


def problem_words(result: Result) -> list[str]:
    """The problem without its rows, a line for each of its parts."""
    params = result.params
    single = result.atoms is None or result.atoms.get("names") is None
    what = (
        "features" if single else "atoms" if made_of(result) is None else f"monomials of {result.n_features} features"
    )
    bias = phrases.intercept(bool(params.get("bias")), params.get("constant"))
    lines = [phrases.objective(_regulariser_in_words(params), _loss_in_words(params), params.get("C"), bias)]
    if params.get("measure") is not None:
        lines.append(phrases.measure(params))
    always, never = (params.get(name) or () for name in ("forced_in", "forced_out"))
    lines.append(phrases.selection(params.get("M"), f"{count_of(result)} {what}", always, never, MOST_TERMS))
    if params.get("class_weight"):
        lines.append(f"class weights: {weights_in_words(result)}")
    if penalties := _penalties_in_words(params):
        lines.append(f"penalties: {penalties}")
    made = functions_of(result)
    if made is not None:
        lines.append(phrases.describe_functions(made))
    said = [*map(phrases.as_sentence, lines), *bounds_in_words(result), *weight_rows_in_words(result)]
    kind = result.scaling.get("kind") if made is None else made["scaling"]
    ways = {"none": "as they are", "standard": "scaled to mean 0 and variance 1", "unit": "divided by their norms"}
    said.append(f"The columns of the data are {ways.get(str(kind), str(kind))}.")
    if missing := missing_in_words(result):
        said.append(f"Of the raw table {missing}.")
    return said + ([f"W{classes_in_words(result)[1:]}."] if result.has_classifier else [])


def weightless_in_words(result: Result) -> str:
    """Which of what is selected has no weight, for what was found of it was rounding."""
    names = list(result.weightless or ())
    return f"{_list_names(names)}: no more than rounding was found, and the objective is no larger without it"


def weights_in_words(result: Result) -> str:
    """The weights of the classes."""
    return phrases.class_weights(result.params["class_weight"].items())


def missing_in_words(result: Result) -> str:
    """What was missing of a raw table, and which columns of words were left out for too many words; "" for none."""
    counts = {} if result.recipe is None else result.recipe["missing"]
    gone = (result.read or {}).get("left_out") or []
    total = sum(counts.values())
    said = [f"{total} missing values were filled in, of {_list_names([*counts])}"] if total else []
    said += [f"{_list_names(gone)} {'was' if len(gone) == 1 else 'were'} left out (too many words)"] if gone else []
    return "; ".join(said)


def levels_in_words(result: Result) -> str:
    """That M counts every word where several of one column of words are selected, and what counts columns; or ""."""
    if result.atoms is not None or result.params.get("M") is None:
        return ""
    seen = (result.read or {}).get("words", {})
    counts = {column: sum(f"{column}={word}" in result.selected for word in words) for column, words in seen.items()}
    said = [f"{count} are words of {escape_invisible(column)}" for column, count in counts.items() if count > 1]
    if not said:
        return ""
    column = 'atoms=groups, or words = "groups" under [select] of the .toml, counts a column once'
    return f"every word counts: {', '.join(said)}; {column}"


def classes_in_words(result: Result) -> str:
    """Which class a positive weight speaks for."""
    return f"weights above 0 speak for {result.labels['positive']}, below 0 for {result.labels['negative']}"


UNSAID = (
    "That no weight reaches its bound says nothing about the problem without these bounds; "
    "`mipfs verify` shows what the same proof says of that."
)


def weight_rows_in_words(result: Result) -> list[str]:
    """The rows over the weights, in at most a few lines, each with what it holds within."""
    rows = list(result.params.get("weight_rows") or [])
    said = [
        phrases.weight_row(
            one["coefficients"],
            one["lower"],
            one["upper"],
            one["allowance"],
            MOST_TERMS,
            groups=(one.get("parity") or {}).get("groups"),
        )
        for one in rows[:MOST_TERMS]
    ]
    more = [f"{len(rows) - MOST_TERMS} more rows over the weights."] if len(rows) > MOST_TERMS else []
    return [f"Row over the weights: {one}." for one in said] + more


def bounds_in_words(result: Result) -> list[str]:
    """What the bounds on the weights say, in at most four lines: which features can only help, and which only hurt."""
    bounds = dict(result.params.get("weight_bounds") or {})
    if not bounds:
        return []
    towards = f" (towards {result.labels['positive']!r})"
    helps = [name for name, (low, high) in bounds.items() if low == 0.0 != high]
    hurts = [name for name, (low, high) in bounds.items() if high == 0.0 != low]
    others = {name: ends for name, ends in bounds.items() if any(ends) or not any(end is None for end in ends)}
    given = [phrases.describe_bound(name, *ends) for name, ends in others.items()]
    if len(others) > MOST_TERMS and len({tuple(ends) for ends in others.values()}) == 1:
        given = [phrases.describe_bound(f"the weight of each of {len(others)} features", *next(iter(others.values())))]
    lines = [f"{_list_names(helps)} can only help{towards}."] if helps else []
    lines += [f"{_list_names(hurts)} can only hurt{towards}."] if hurts else []
    if given:
        lines.append(f"Bounds on the weights: {_list_names(given)}.")
    if any(end for ends in others.values() for end in ends):
        lines.append(UNSAID)
    return lines


def _regulariser_in_words(params: Mapping[str, Any]) -> str:
    """The term of the weights, as the file of a regulariser states it for the checker."""
    named = params.get("regulariser")
    if named is None:
        return phrases.PLAIN_TERM
    try:
        own = stated_regulariser(params)
    except CertificateError:
        own = None
    return phrases.describe_regulariser(f"the regulariser {named!r}" if own is None else own.words)


def _loss_in_words(params: Mapping[str, Any]) -> str:
    """The loss, as its file states it for the checker; one that is not entered here by its name."""
    if params.get("margin") == "rho":
        return phrases.RHO
    if params.get("measure") is not None:
        return phrases.LABELLINGS
    name = str(params.get("loss"))
    try:
        words: str = statement_of("loss", name).words
    except (CertificateError, AttributeError):
        return f"C times the loss {name}"
    return words


def _has_penalty(lam: Any) -> bool:
    values = lam.values() if isinstance(lam, Mapping) else lam if isinstance(lam, (list, tuple)) else [lam]
    return any(isinstance(value, (int, float)) and value != 0 for value in values)


def _penalties_in_words(params: Mapping[str, Any]) -> str:
    lam = params.get("lambda")
    own = params.get("penalty") or {}
    parts = []
    if isinstance(lam, (int, float)) and lam != 0:
        parts.append(f"{phrases.number(lam)} each")
    elif _has_penalty(lam):
        parts.append("λ, one for each")
    if own:
        named = [f"{name} {phrases.number(value)}" for name, value in own.items()]
        parts.append(f"{_list_names(named)} from the data's description")
    return ", and ".join(parts)


def _list_names(names: Sequence[str]) -> str:
    return phrases.list_names(names, MOST_TERMS)


@dataclass(frozen=True)
class RowWords:
    """A row in words.

    Attributes
    ----------
    name, text, origin : str
    activity : float or None, its sum at the selection; None without one
    binds : bool, whether the selection leaves it no room
    conflicts : bool, whether it is one of the rows that contradict each other
    """

    name: str
    text: str
    origin: str
    activity: float | None
    binds: bool
    conflicts: bool


def rows_in_words(result: Result) -> list[RowWords]:
    """Every row of the problem, that of M first, and whether it binds at the selection."""
    found = []
    M = result.params.get("M")
    selected = len(result.selected) if result.has_classifier else None
    if M is not None:
        text = f"at most {M} selected"
        full = selected is not None and selected >= M
        found.append(RowWords("M", text, "", selected, full, "cardinality" in result.conflict))
    at = dict.fromkeys(result.selected, 1.0)
    at |= {name: one["value"] for name, one in result.extra.items() if isinstance(one.get("value"), (int, float))}
    for row in result.rows:
        activity = sum(a * at.get(name, 0.0) for name, a in row["terms"].items()) if result.has_classifier else None
        name = row["name"]
        text, binds = phrases.row(row, MOST_TERMS), _is_binding(row, activity)
        found.append(RowWords(name, text, row["origin"], activity, binds, name in result.conflict))
    return found


def _is_binding(row: Mapping[str, Any], activity: float | None) -> bool:
    if activity is None:
        return False
    size = max(map(abs, row["terms"].values()), default=0.0)
    ends = [end for end in (row["lb"], row["ub"]) if end is not None]
    return any(abs(activity - end) <= BINDING_DISTANCE * (size + abs(end)) for end in ends)


def warm_in_words(result: Result) -> str:
    """Which earlier result a run began from, and what was used of it; empty where it began from nothing."""
    document = result.warm_from
    if document is None:
        return ""
    used = ["its selection"] * bool(document["start"])
    if document["cuts"]:
        used.append(f"{document['cuts']} cuts")
    if document["leaves"] is not None:
        used.append(f"{document['leaves']} leaves of its tree, of which {document['opened']} opened again")
    whose = document["file"] or "the result before"
    changed = ", ".join(document["changed"]) or "nothing"
    return f"{escape_invisible(whose)}, with {changed} changed: {', '.join(used) or 'nothing of it was of use'}"
