"""The ladder of relaxations as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mipfs.report.blocks import NamedValues, ReportBlock, Table
from mipfs.report.numbers import number, percent, state_parameters

if TYPE_CHECKING:
    from mipfs.lab.studies.ladder import Comparison


def ladder_blocks(comparison: Comparison, n_rows: int | None = None) -> list[ReportBlock]:
    """The problem, the best classifier, and every rung with its bound; `n_rows` is the number of the user's rows."""
    pairs = [
        ("problem", state_parameters(comparison.params)),
        ("incumbent", f"{number(comparison.incumbent)} with {len(comparison.selected)} features"),
        *([] if n_rows is None else [("rows", str(n_rows))]),
    ]
    lines = [
        (
            rung.name,
            rung.status,
            number(rung.value),
            percent(rung.gap),
            f"{rung.seconds:.2f}",
            _program_size_text(rung.size),
        )
        for rung in comparison.ladder
    ]
    header = ("rung", "status", "bound", "gap", "seconds", "size")
    return [NamedValues(pairs), Table(header, lines, title="The ladder", left=2)]


def _program_size_text(size: Any) -> str:
    return "-" if size is None else f"{size['constraints']} x {size['variables']}"
