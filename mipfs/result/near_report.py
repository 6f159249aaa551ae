"""The near-optimal supports as people read them: is this set the answer, or one of forty?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mipfs.report.blocks import ReportBlock, Sentence, Table
from mipfs.report.numbers import number, percent

MOST_LISTED = 20
"""Supports, and features, that are listed; all of them stand in the JSON."""


def near_optimal_blocks(found: Mapping[str, Any]) -> list[ReportBlock]:
    """How many supports are near-optimal, the best of them, and the share of them that a feature stands in."""
    supports = found["supports"]
    share = found["share"]
    blocks: list[ReportBlock] = [
        Sentence(f"\n{answer_sentence(found)}"),
        Table(
            ("features", "objective", "above"),
            [
                (_support_text(one["selected"]), number(one["objective"]), percent(one["gap"]))
                for one in supports[:MOST_LISTED]
            ],
            title="Near-optimal supports",
        ),
        *_more_sentence(len(supports), "supports"),
    ]
    if len(supports) > 1:
        blocks += [
            Table(
                ("feature", "stands in"),
                [(name, f"{100 * part:.3g}%") for name, part in list(share.items())[:MOST_LISTED]],
                title="The share of them in which a feature stands",
            ),
            *_more_sentence(len(share), "features"),
        ]
    return blocks


def answer_sentence(found: Mapping[str, Any]) -> str:
    """The sentence above the tables."""
    count = len(found["supports"])
    gap = found["gap"]
    size = found["size"]
    within = "" if gap is None else f" within {percent(gap)} of the optimum"
    if not found["complete"]:
        what = f"{count} supports were" if count > 1 else "one support was"
        return f"{what} found before the run stopped; there may be others, and better ones"
    if size is not None and count >= size:
        what = f"these are the best {count} supports" if count > 1 else "this is the best support"
        return what + within + "; whether there are more was not asked"
    if count == 1:
        return f"this set is the only one{within or ' that the rows allow'}"
    return f"this set is one of {count}{within or ', all that the rows allow'}"


def _support_text(selected: list[str]) -> str:
    return ", ".join(selected) or "(none)"


def _more_sentence(count: int, what: str) -> list[ReportBlock]:
    return (
        [Sentence(f"  and {count - MOST_LISTED} {what} more: all of them stand in the JSON")]
        if count > MOST_LISTED
        else []
    )
