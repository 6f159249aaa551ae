"""How a scorecard is shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mipfs.lab.scorecard.columns import PRINTED_DIGITS
from mipfs.report.blocks import Alarm, Block, Line, Pairs, Table
from mipfs.report.numbers import many, number, percent
from mipfs.result.result import Status
from mipfs.result.saved_card import exact
from mipfs.result.summary import BECAUSE

if TYPE_CHECKING:
    from mipfs.lab.scorecard.card import Scorecard

EVERY_DIGIT = 17
"""Significant digits that tell all doubles apart."""


def blocks(card: Scorecard) -> list[Block]:
    """Of the report: the card, what a total says, and how good the points are."""
    positive, negative = (str(card.result.labels[side]) for side in ("positive", "negative"))
    rows = [
        (column.feature, column.condition, f"{points:+d}" if points else "0")
        for column, points in zip(card.columns, card.points, strict=True)
    ]
    found: list[Block] = [
        Table(("feature", "condition", "points"), rows, title="Scorecard", left=2),
        Line(f"\nadd the points up: {_rule(card, positive, negative)}"),
        *map(Line, _reading(card)),
        *([Pairs([("scorecard", Alarm(constant))])] if (constant := constant_words(card)) else []),
        *_ranges(card),
        _totals(card, positive),
        Line(""),
        Pairs(_numbers(card)),
        Line(f"\n{words(card)}"),
        Line(others(card)),
    ]
    if not card.is_whole:
        found.append(Line("columns of more than two values count by their size; --bins 4 cuts them into ranges"))
    return found


def _reading(card: Scorecard) -> list[str]:
    """What a reader of the card alone has to know: which lines count, and what a missing value is."""
    said = []
    if _ends(card):
        said.append("every line that holds counts: of a feature with several lines their points are added up")
    filled = (card.result.recipe or {}).get("filled", {})
    columns = dict.fromkeys(column_of(column.feature, filled) for column in card.columns)
    known = [f"a missing {name} counts as {_value(filled[name])}" for name in columns if name in filled]
    needed = [name for name in columns if name not in filled]
    if known:
        said.append("; ".join(known))
    if needed:
        which = " or ".join([", ".join(needed[:-1]), needed[-1]] if len(needed) > 1 else needed)
        said.append(f"a missing value of {which} has no points: the card needs it")
    return said


def column_of(feature: str, filled: Mapping[str, Any]) -> str:
    """The column of the table that a feature is of: of a word the column of words."""
    if feature in filled:
        return feature
    return next((name for name in filled if feature.startswith(f"{name}=")), feature)


def _value(value: Any) -> str:
    return exact(value) if isinstance(value, (int, float)) else repr(value)


def _ends(card: Scorecard) -> dict[str, list[tuple[float, int]]]:
    """The thresholds of each feature that has several, ascending, with the points of their lines."""
    found: dict[str, list[tuple[float, int]]] = {}
    for column, points in zip(card.columns, card.points, strict=True):
        if column.threshold is not None:
            found.setdefault(column.feature, []).append((column.threshold, points))
    return {feature: sorted(ends) for feature, ends in found.items() if len(ends) > 1}


def _ranges(card: Scorecard) -> list[Block]:
    """The features of several lines once more, so that one line holds for each of them."""
    rows = []
    for feature, ends in _ends(card).items():
        steps = [(exact(threshold), points) for threshold, points in ends if points]
        edges = [edge for edge, _ in steps]
        rows.append((feature, f"below {edges[0]}" if edges else "any", "0"))
        total = 0
        for k, (edge, points) in enumerate(steps):
            total += points
            until = f", below {edges[k + 1]}" if k + 1 < len(edges) else ""
            rows.append((feature, f"from {edge}{until}", f"{total:+d}" if total else "0"))
    if not rows:
        return []
    return [Table(("feature", "range", "points"), rows, title="The same by ranges, of which one holds", left=2)]


def _totals(card: Scorecard, positive: str) -> Table:
    """What the totals say of the training data, and where the loss says it the probability of each."""
    head, rows = ("total", "decision", "samples", f"labelled {positive}"), _rates(card)
    if not card.has_probabilities:
        return Table(head, rows, title="Totals in these data", left=2)
    ends = np.array([[row["from"], row["to"]] for row in card.rates()])
    sure = card.probabilities(ends)
    cells = [f"{low:.1%}" if f"{low:.1%}" == f"{high:.1%}" else f"{low:.1%} to {high:.1%}" for low, high in sure]
    told = [(*row, cell) for row, cell in zip(rows, cells, strict=True)]
    return Table((*head, f"probability of {positive}"), told, title="Totals in these data", left=2)


def constant_words(card: Scorecard) -> str:
    """That a card gives all of the training data one label, and what to try; "" where it tells them apart."""
    if card.always is None:
        return ""
    ways = ["solve with -p class_weight=balanced"] if not card.result.params.get("class_weight") else []
    ways.append("other --bins, or none" if any(column.kind == "threshold" for column in card.columns) else "--bins 4")
    return f"constant: every sample is called {card.always}; to try: {'; '.join(ways)}"


def lead(card: Scorecard) -> str:
    """How the card is used, and what is proven, in two sentences."""
    positive, negative = (str(card.result.labels[side]) for side in ("positive", "negative"))
    proven = words(card)
    if constant := constant_words(card):
        return f"{constant[0].upper()}{constant[1:]}. {proven[0].upper()}{proven[1:]}."
    added = "Add up the points of every line that holds" if _ends(card) else "Add the points up"
    rest = others(card)
    return f"{added}: {_rule(card, positive, negative)}. {proven[0].upper()}{proven[1:]}; {rest}."


def words(card: Scorecard) -> str:
    """What is proven of what."""
    if card.joint is not None:
        return _together(card)
    params, chosen = card.result.params, {*card.result.selected}
    is_given = {*params.get("forced_in", ())} == chosen and params.get("M") == len(chosen)
    features = "the features were given" if is_given else _proven_features(card)
    if card.among is not None:
        of = f"{card.among.tried} of {card.among.sets}" if card.among.tried < card.among.sets else f"{card.among.sets}"
        features += f", those of the best card of {of} near-optimal sets"
        if card.objective < card.among.first:
            features += f" (that of the proven features has an objective of {number(card.among.first)})"
    if card.status is Status.OPTIMAL:
        return f"{features}; the points are the best for these features (gap {percent(card.gap)})"
    return f"{features}; the points are the best found for these features (gap {percent(card.gap)})"


def _together(card: Scorecard) -> str:
    """What is proven of a card whose features and points were chosen together."""
    assert card.joint is not None
    said = f"of all cards of at most {many(card.joint.M, 'feature', 'features')} this is"
    if card.status is Status.OPTIMAL:
        return f"features and points are proven together (gap {percent(card.gap)}): {said} the best"
    return (
        f"features and points are not proven to be the best together: {said} the best found (gap {percent(card.gap)})"
    )


def _proven_features(card: Scorecard) -> str:
    """What the proof of the result says of its features."""
    return {
        Status.OPTIMAL: f"the features are proven (gap {percent(card.result.gap)})",
        Status.FEASIBLE: f"the features are the best found (gap {percent(card.result.gap)})",
    }.get(card.result.status, "the features are not proven to be the best")


def others(card: Scorecard) -> str:
    """What is not proven of the card, which a reader may take for granted."""
    if card.joint is not None:
        first = card.joint.first
        if card.objective < first:
            return f"the card of the features that are the best for real weights has an objective of {number(first)}"
        return (
            "the thresholds that could be chosen are quantiles of these data"
            if _ends(card)
            else "what it says of rows that it has not seen is not proven"
        )
    return "other features may have a better card: that these are the best for points, too, is not proven"


def _rule(card: Scorecard, positive: str, negative: str) -> str:
    if not any(card.points):
        return f"no points help; everybody is {positive if card.intercept > 0 else negative}"
    if card.always is not None:
        return f"no total in these data is on the other side; everybody is {card.always}"
    at = card.threshold
    if card.is_whole:
        return f"a total of {math.floor(at) + 1} or more is {positive}, a lower one {negative}"
    return f"a total above {_shortest(card, (at,), lambda at: at)[0]} is {positive}, a lower one {negative}"


def _shortest(card: Scorecard, numbers: tuple[float, ...], threshold: Callable[..., float]) -> list[str]:
    """Numbers to the digits, six at least, by which their threshold decides the training data as the card does."""
    ends = np.array([row[end] for row in card.rates() for end in ("from", "to")])
    for digits in range(PRINTED_DIGITS, EVERY_DIGIT):
        texts = [f"{value:.{digits}g}" for value in numbers]
        if np.array_equal(ends > threshold(*map(float, texts)), card.speaks_for(ends)):
            return texts
    return [exact(value) for value in numbers]


def _rates(card: Scorecard) -> list[tuple[str, str, str, str]]:
    totals = card.rates()
    ends = _told_apart([row[end] for row in totals for end in ("from", "to")])
    rows = []
    for row, low, high in zip(totals, ends[::2], ends[1::2], strict=True):
        rate = f"{row['positives'] / row['samples']:.1%}"
        rows.append((low if low == high else f"{low} to {high}", str(row["decision"]), str(row["samples"]), rate))
    return rows


def _told_apart(totals: list[float]) -> list[str]:
    """Totals to the digits, four at least, by which they differ."""
    for digits in range(4, EVERY_DIGIT):
        texts = [f"{value:.{digits}g}" for value in totals]
        if len(set(map(float, texts))) == len(set(totals)):
            return texts
    return [exact(value) for value in totals]


def _numbers(card: Scorecard) -> list[tuple[str, str]]:
    scale, intercept = _shortest(card, (card.scale, card.intercept), lambda scale, intercept: -intercept / scale)
    pairs = [
        ("status", f"{card.status.name} ({BECAUSE[card.stop_reason]})"),
        ("objective", f"{number(card.objective)}, with real numbers for points {number(card.unrounded)}"),
        ("bound", number(card.bound)),
        ("gap", f"{percent(card.gap)}, asked: {percent(card.asked)}"),
        ("score", f"{scale} · total {'' if intercept.startswith('-') else '+'}{intercept}"),
        ("error", f"{card.error:.2%} of these data"),
        ("area under ROC", f"{card.auc:.4f} on these data"),
        ("search", f"{many(card.nodes, 'node', 'nodes')}, {card.seconds:.2f} s"),
    ]
    if card.is_whole and any(column.kind == "threshold" for column in card.columns):
        return pairs
    return [*pairs[:2], ("of the result", f"objective {number(card.result.objective)}"), *pairs[2:]]
