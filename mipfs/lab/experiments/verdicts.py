"""How a verdict is reached: one rule for every claim of every study.

A claim is split into parts, each of which says that one number is larger than another on every unit (problem, split,
draw, class or set). A part is confirmed where the sign test and Student's interval of the mean
difference, both at 5%, agree that it holds; refuted where they agree on the opposite; not shown where they do not
agree; open where there are fewer pairs than the sign test needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mipfs.lab.experiments.study import PaperClaim
from mipfs.lab.experiments.tables import POINTS, bounds, count_comparisons, difference, interval, sign_test

SURE = 0.05
"""Of the sign test and of the interval."""
LEAST = 6
"""Pairs from which on the sign test can fall below 5%: six of six have p = 2 · 2⁻⁶ = 3%."""
MARGIN = 0.01
"""What counts as no worse: one percentage point."""
CONFIRMED, REFINED, REFUTED, NOT_SHOWN, OPEN = "confirmed", "refined", "refuted", "not shown", "open"
NOTHING = "nothing measured"
RULE = (
    "How a verdict is reached: a claim is split into parts, and each part compares two numbers on every unit, which is "
    "a problem, split, draw, class or set (whatever varies on one draw of the data, such as B or C, is averaged "
    "first). A part is confirmed where the sign test at 5% and the 95% interval of the mean difference (Student's t, "
    "in brackets) agree that it holds, refuted where they agree on the opposite, not shown where they do not agree on "
    f'either, and open with fewer than {LEAST} pairs, for which the sign test cannot reach 5%. "No worse" means worse '
    "by less than one percentage point, by the same two tests moved by a point; the mean that is printed is not moved. "
    "That something occurs is settled by one proven instance. The first part of a claim is what it mainly says: a "
    "claim is confirmed where all of its parts are, refined where the first one is and another is not, and otherwise "
    "has the verdict of its first part."
)
SHORT = (
    "A verdict follows the rule that the index of the studies states, one for all claims: over the units (problems, "
    "splits, draws, classes or sets), the sign test at 5% and the 95% interval of the mean difference (Student's t, in "
    "brackets) must agree."
)

Pairs = Sequence[tuple[float, float]]
Form = str | Callable[[float], str]
"""How a number is written: a format, or a function."""
BETTER = ("better", "worse")


@dataclass(frozen=True)
class ClaimPart:
    """A part of a claim.

    Attributes
    ----------
    said : str, what is asserted
    verdict : str
    figures : str, what was measured of it
    """

    said: str
    verdict: str
    figures: str


def side(found: Pairs) -> int:
    """1 where sign test and interval agree that the first is larger, -1 where they agree that it is less, else 0."""
    less, more, _ = count_comparisons(found)
    if sign_test(less, more) >= SURE:
        return 0
    low, high = bounds(found)
    return 1 if more > less and low > 0.0 else -1 if less > more and high < 0.0 else 0


def larger(found: Pairs) -> str:
    """Whether the first is larger than the second."""
    if len(found) < LEAST:
        return OPEN
    return {1: CONFIRMED, -1: REFUTED, 0: NOT_SHOWN}[side(found)]


def combine_verdicts(verdicts: Sequence[str]) -> str:
    """Of a claim: refined where its first part, which is what it mainly says, holds and another one does not."""
    if not verdicts or verdicts[0] != CONFIRMED:
        return verdicts[0] if verdicts else OPEN
    return CONFIRMED if set(verdicts) == {CONFIRMED} else REFINED


def _turn_pairs(found: Pairs) -> Pairs:
    return [(b, a) for a, b in found]


def spread(found: Pairs, scale: tuple[float, str] = POINTS) -> str:
    """The mean difference and its interval, in words where there is none."""
    return interval(found, scale) if found else NOTHING


def describe_pairs(
    found: Pairs,
    scale: tuple[float, str] = POINTS,
    *,
    less_is_better: bool = False,
    words: tuple[str, str] = BETTER,
) -> str:
    """Counts, the sign test and the mean difference of pairs, the first less the second."""
    less, more, equal = count_comparisons(found)
    better, worse = (less, more) if less_is_better else (more, less)
    ties = f", {equal} equal" if equal else ""
    return f"{better} {words[0]}, {worse} {words[1]}{ties} (p = {sign_test(less, more):.2g}), {spread(found, scale)}"


def higher(said: str, found: Pairs, scale: tuple[float, str] = POINTS) -> ClaimPart:
    """That the first is larger."""
    return ClaimPart(said, larger(found), describe_pairs(found, scale))


def lower(
    said: str,
    found: Pairs,
    scale: tuple[float, str] = POINTS,
    *,
    less_is_better: bool = True,
    words: tuple[str, str] = BETTER,
) -> ClaimPart:
    """That the first is less, as errors should be; what is counted as better says `less_is_better`."""
    return ClaimPart(
        said, larger(_turn_pairs(found)), describe_pairs(found, scale, less_is_better=less_is_better, words=words)
    )


def no_worse(said: str, found: Pairs, *, less_is_better: bool = False) -> ClaimPart:
    """That the first is worse by less than `MARGIN` at most: the same tests, moved by it."""
    turned = _turn_pairs(found) if less_is_better else found
    moved = [(a + MARGIN, b) for a, b in turned]
    less, more, _ = count_comparisons(moved)
    return ClaimPart(
        said, larger(moved), f"on {more} of {len(found)} (p = {sign_test(less, more):.2g}), mean {spread(found)}"
    )


def occurs(said: str, count: int, total: int) -> ClaimPart:
    """That something happens, which one proven instance settles."""
    return ClaimPart(said, CONFIRMED if count else REFUTED, f"{count} of {total} steps")


def above(said: str, values: Sequence[float], level: float, form: Form = "{:.0%}") -> ClaimPart:
    """That values lie above a level."""
    return ClaimPart(
        said, larger([(value, level) for value in values]), _judge_against_level(values, level, form, "above")
    )


def below(said: str, values: Sequence[float], level: float, form: Form = "{:.0%}") -> ClaimPart:
    """That values lie below a level."""
    return ClaimPart(
        said, larger([(level, value) for value in values]), _judge_against_level(values, level, form, "below")
    )


def above_ratio(said: str, ratios: Sequence[float], level: float) -> ClaimPart:
    """That ratios > 0 lie above a level, by their logarithms: their mean is the geometric one."""
    return above(said, [math.log2(ratio) for ratio in ratios], math.log2(level), _as_ratio)


def below_ratio(said: str, ratios: Sequence[float], level: float) -> ClaimPart:
    """That ratios > 0 lie below a level, as in `above_ratio`."""
    return below(said, [math.log2(ratio) for ratio in ratios], math.log2(level), _as_ratio)


def _as_ratio(power: float) -> str:
    ratio = 2.0**power
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:,.0f}"


def _judge_against_level(values: Sequence[float], level: float, form: Form, word: str) -> str:
    said = form.format if isinstance(form, str) else form
    less, more, _ = count_comparisons([(value, level) for value in values])
    count = more if word == "above" else less
    if not values:
        return NOTHING
    low, high = bounds([(value, 0.0) for value in values])
    mean = said(difference([(value, 0.0) for value in values]))
    inside = f" [{said(low)}, {said(high)}]" if math.isfinite(low) else ""
    p_value = sign_test(less, more)
    return f"{count} of {len(values)} {word} {said(level)} (p = {p_value:.2g}), mean {mean}{inside}"


def judge_claim(said: str, parts: Sequence[ClaimPart], details: str = "", figure: str = "") -> PaperClaim:
    """A claim out of its parts; where there are several, each says whether it holds."""
    verdict = combine_verdicts([part.verdict for part in parts])
    if len(parts) == 1:
        return PaperClaim(said, verdict, f"{parts[0].said}: {parts[0].figures}", details, figure)
    whole = [f"{part.said}: {part.figures} ({part.verdict})" for part in parts]
    brief = [whole[0], *(f"{part.said}: {part.verdict}" for part in parts[1:])]
    return PaperClaim(said, verdict, "; ".join(whole), details, figure, "; ".join(brief))
