"""The ladder of relaxations as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mipfs.report.blocks import Block, Pairs, Table
from mipfs.report.numbers import number, percent, stated

if TYPE_CHECKING:
    from mipfs.lab.studies.ladder import Comparison


def ladder_blocks(comparison: Comparison, n_rows: int | None = None) -> list[Block]:
    """The problem, the best classifier, and every rung with its bound; `n_rows` is the number of the user's rows."""
    pairs = [
        ("problem", stated(comparison.params)),
        ("incumbent", f"{number(comparison.incumbent)} with {len(comparison.selected)} features"),
        *([] if n_rows is None else [("rows", str(n_rows))]),
    ]
    lines = [
        (rung.name, rung.status, number(rung.value), percent(rung.gap), f"{rung.seconds:.2f}", _size(rung.size))
        for rung in comparison.ladder
    ]
    header = ("rung", "status", "bound", "gap", "seconds", "size")
    return [Pairs(pairs), Table(header, lines, title="The ladder", left=2)]


def _size(size: Any) -> str:
    return "-" if size is None else f"{size['constraints']} x {size['variables']}"
