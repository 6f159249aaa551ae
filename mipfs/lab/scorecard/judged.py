"""What a card says on labelled data: of every range of totals the share that it predicts, and the share that is so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mipfs.lab.scorecard.card import Scorecard, rate_cells
from mipfs.plumbing.arrays import Array
from mipfs.report.blocks import Table


def judged_totals(card: Scorecard, totals: Array, signs: Array) -> list[dict[str, Any]]:
    """As `Scorecard.rates`, of other rows: totals (n,) and their labels as signs.

    Where the loss says probabilities each range has their mean as ``predicted``, of the card's positive class.
    """
    rows = card.rates_of(totals, signs)
    if card.has_probabilities:
        chances, compared = card.probabilities(totals), card.compared(totals)
        for row in rows:
            inside = (compared >= row["from"]) & (compared <= row["to"])
            row["predicted"] = float(chances[inside].mean())
    return rows


def judged_table(rows: Sequence[Mapping[str, Any]], labels: Mapping[str, Any]) -> Table:
    """What `judged_totals` found, as a table."""
    head = ("total", "decision", "samples", f"labelled {labels['positive']}")
    cells = rate_cells(rows)
    if not all("predicted" in row for row in rows):
        return Table(head, cells, title="By total", left=2)
    told = [(*cell, f"{row['predicted']:.1%}") for cell, row in zip(cells, rows, strict=True)]
    return Table((*head, f"probability of {labels['positive']}"), told, title="By total", left=2)
