"""The report of a choice of columns: the chosen ones, and the promise beside what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mipfs.lab.sketch.ratio import Interval
from mipfs.report.blocks import Block, Line, Pairs, Table

if TYPE_CHECKING:
    from mipfs.lab.sketch.guarantee import Guarantee
    from mipfs.lab.sketch.select import Sketch

MOST_LISTED = 20
"""Columns that are listed."""


def sketch_blocks(sketch: Sketch) -> list[Block]:
    """The parts of the report."""
    repeated = int(np.count_nonzero(sketch.repeats > 1))
    chosen = f"{sketch.ids.size} columns by {sketch.order.size} picks" + (f", {repeated} repeated" if repeated else "")
    rows = "all samples" if sketch.support is None else f"{sketch.support.size} support vectors, C = {sketch.C:g}"
    pairs = [("method", sketch.method), ("chosen by", rows), ("chosen", chosen)]
    if sketch.guarantee.rank:
        pairs.append(("rank", str(sketch.guarantee.rank)))
    heaviest = np.argsort(-sketch.rescaling, kind="stable")[:MOST_LISTED]
    lines = [(sketch.names[k], f"{sketch.repeats[k]}", f"{sketch.rescaling[k]:.4g}") for k in heaviest]
    hidden = sketch.ids.size - len(lines)
    blocks: list[Block] = [Pairs(pairs), Table(("column", "taken", "times"), lines, "Chosen columns")]
    if hidden > 0:
        blocks.append(Line(f"  and {hidden} more, of no larger factors"))
    return [
        *blocks,
        _guarantee(sketch.guarantee, sketch.supervised),
        Line("\n" + _sentence(sketch.guarantee.about)),
        *(Line(f"Warning: {warning}.") for warning in sketch.guarantee.warnings),
    ]


def _guarantee(found: Guarantee, supervised: bool) -> Table:
    """The promise beside the measures; a dash where there is none."""
    promised = found.promised
    least, most = (None, None) if promised is None else (promised.low, promised.high)
    covered = (least, most) if found.is_whole else (None, None)
    by = "of the support vectors" if supervised else "of all samples"
    lines = [
        ("||I - V'DD'V||", "", "" if promised is None else f"{promised.epsilon:.4g}", _number(found.epsilon)),
        ("eigenvalues of V'DD'V", _number(least), _number(most), _range(found.eigenvalues)),
        (f"squared margin {by}", *map(_number, covered), _range(found.margin)),
    ]
    if supervised:
        lines.append(("squared margin of all samples", "-", "-", _range(found.margin_all)))
        lines.append(("squared radius of all samples", "-", "-", _range(found.radius)))
    else:
        lines.append(("squared radius of all samples", *map(_number, covered), _range(found.radius)))
    return Table(("on the rescaled columns, times what it was", "promised from", "to", "measured"), lines, "Guarantee")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _range(found: Interval | None) -> str:
    if found is None:
        return "-"
    low, high = f"{found.low:.4g}", f"{found.high:.4g}"
    return low if low == high else f"{low} to {high}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
