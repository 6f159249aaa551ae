"""What a page says first: a heading and a plain sentence, which say no more than what was proven."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from mipfs.lab.classes import OneVsRest
from mipfs.lab.page import of_classes
from mipfs.lab.page.parts import describe_selected, size_words
from mipfs.lab.studies.bench import Bench
from mipfs.lab.studies.ladder import Comparison
from mipfs.lab.studies.path_report import error_of, folds_of
from mipfs.lab.studies.solution_path import PathPoint, SolutionPath
from mipfs.lab.studies.steps import place_text
from mipfs.measures.judged import LOG_LOSS
from mipfs.report.blocks import Reported
from mipfs.report.numbers import first_of, percent
from mipfs.result.result import Result, Status
from mipfs.result.words import ended_words, status_in_words

MOST_GIVEN = 3
"""Names of features that were asked for that a heading has."""


def heading(study: Reported, name: str) -> str:
    """The heading of a page about one study that nobody gave a title."""
    if isinstance(study, Result):
        return _of_result(study, name)
    if isinstance(study, SolutionPath):
        best = study.best
        return name if best is None else f"Chosen by {study.folds} folds: {place_text(best.place)}"
    if isinstance(study, Bench):
        return f"Methods on {study.setting.source.rsplit('/', 1)[-1] or 'arrays'}"
    if isinstance(study, OneVsRest):
        return of_classes.heading(study)
    if isinstance(study, Comparison):
        return f"What each relaxation proves{_about_cardinality(study.params.get('M'))}"
    return name


def _about_cardinality(M: Any) -> str:
    return f" of the best {M} features" if isinstance(M, int) else ""


def _of_result(result: Result, name: str) -> str:
    if not result.has_classifier:
        return name
    size = f"{size_words(result)} {describe_selected(result)}"
    found = {
        Status.OPTIMAL: _of_optimal(result, size),
        Status.FEASIBLE: f"{size}, the best found",
        Status.RELAXED: f"{size}, by a relaxation",
    }.get(result.status, name)
    return f"{result.label_column}: {found[0].lower()}{found[1:]}" if result.label_column else found


def _of_optimal(result: Result, size: str) -> str:
    """What is the best of its kind: features that were asked for are no choice."""
    given = list(result.params.get("forced_in") or ())
    if not given:
        return f"The best {size}"
    return f"{size}, as given" if _are_all_given(result) else f"The best {size} with {first_of(given, MOST_GIVEN)}"


def _are_all_given(result: Result) -> bool:
    """Whether there was nothing to choose: all that is selected was asked for."""
    return bool(result.selected) and {*(result.params.get("forced_in") or ())} == {*result.selected}


def plainly(result: Result) -> str:
    """What was found, and how sure that is, without a symbol; the exact words where there is no gap to speak of."""
    if not result.has_classifier or not math.isfinite(result.gap):
        return status_in_words(result)
    if result.status is Status.OPTIMAL and _are_all_given(result):
        return f"All of these {describe_selected(result)} were given (forced_in): how good others are was not asked."
    most = re.sub("^<", "", percent(result.gap))
    sure = "It is proven" if result.bound_source == "dual" else "The solver says, and no certificate shows,"
    rest = f"{sure} that no allowed choice of {describe_selected(result)} is better by more than {most}."
    if result.status is Status.OPTIMAL:
        return rest
    if result.status is Status.FEASIBLE:
        return f"This is the best choice that was found, and not proven to be the best. {rest} {ended_words(result)}"
    if result.status is Status.RELAXED:
        return f"A relaxation of the problem was solved, and this choice made from it. {rest}"
    return status_in_words(result)


def of_path(path: SolutionPath) -> str:
    """The point that was chosen, and how many points are proven."""
    return "" if path.best is None else f"{_describe_choice(path, path.best)} "


def _describe_choice(path: SolutionPath, best: PathPoint) -> str:
    rule = "the simplest within one standard error of the least" if path.rule == "one-se" else "the least of all points"
    error = f"{100 * best.error:.3g}% ± {100 * best.standard_error:.2g}%"
    if path.by == LOG_LOSS:
        error = f"{best.error:.3g} ± {best.standard_error:.2g}"
    size = len(best.selected)
    has = "has" if size == 1 else "have"
    return (
        f"{size} feature{'s' * (size != 1)} at {place_text(best.place)} {has} {_with_article(error_of(path))} of "
        f"{error} (one "
        f"standard error) on samples held out in {folds_of(path)}, {rule}."
    )


def _with_article(word: str) -> str:
    return f"an {word}" if word[:1] in "aeiou" else f"a {word}"


def of_score(score: Mapping[str, Any]) -> str:
    """The confusion in a sentence."""
    counts = score["confusion"]
    right = counts["true_positive"] + counts["true_negative"]
    is_, called = (counts["true_positive"] + counts[name] for name in ("false_negative", "false_positive"))
    positive = score["labels"]["positive"]
    where = f" of {score['source']}" if score.get("source") else ""
    found, n = counts["true_positive"], score["n_samples"]
    said = [f"Right on {right:,} of {n:,} samples{where}{_share_in_brackets(right, n)}"]
    if is_:
        said.append(f"it finds {found:,} of the {is_:,} that are {positive}{_share_in_brackets(found, is_)}")
    if called:
        said.append(f"of the {called:,} that it calls {positive}, {found:,} are{_share_in_brackets(found, called)}")
    return f"{'; '.join(said)}."


def _share_in_brackets(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.1f}%)" if whole else ""
