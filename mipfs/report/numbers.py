"""Numbers as people read them, on the command line and in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mipfs.report.blocks import Alarm


def number(value: float) -> str:
    """Eight significant digits; a dash for what was not earned."""
    return f"{value:.8g}" if abs(value) < float("inf") else "-"


def percent(gap: float | None) -> str:
    """A relative gap as a percentage of three significant digits; only a gap of exactly zero is shown as zero.

    None stands for an infinite one, as JSON has it.
    """
    if gap is None or gap == float("inf"):
        return "-"
    return "<0.0001%" if 0 < gap < 1e-6 else f"{100 * gap:.3g}%"


WIDE_GAP = 0.01
"""An asked gap above this is shown in red: OPTIMAL then says little."""


def with_asked(words: str, status: str, asked: Any) -> str:
    """What is said of a status, and the gap that was asked for where that decides it, in red where it is wide."""
    if status not in ("OPTIMAL", "RELAXED", "FEASIBLE") or not isinstance(asked, (int, float)):
        return words
    said = f"{words}, asked: {percent(asked)}"
    return Alarm(said) if asked > WIDE_GAP else said


def time_text(seconds: float) -> str:
    """Seconds of three digits, or whole ones."""
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:,.0f} s"


MOST_NAMES = 40
"""Names that a cell lists."""


def many(count: int, one: str, more: str) -> str:
    """``1 leaf``, or ``2 leaves``."""
    return f"{count} {one if count == 1 else more}"


def family_words(M: int, within: Mapping[str, Any] | None) -> str:
    """Of how many features cards are, and where a table was cut of how many of its columns and thresholds."""
    said, rows, limits = f"at most {many(M, 'feature', 'features')}", within or {}, []
    if rows.get("columns") is not None:
        limits.append(f"at most {many(rows['columns'], 'column', 'columns')} of the table")
    if rows.get("each") is not None:
        limits.append(f"at most {many(rows['each'], 'threshold', 'thresholds')} of each column")
    return f"{said} ({', '.join(limits)})" if limits else said


def first_of(names: Sequence[Any], most: int, form: Callable[[Any], str] = str) -> str:
    """The first `most` of names, each in `form`, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(form, names[:most])) + more


def list_names(names: Sequence[str]) -> str:
    """Names in a cell of a table, the first `MOST_NAMES` of them."""
    return first_of(names, MOST_NAMES) if names else "(none)"


def state_parameters(params: Mapping[str, Any], without: Sequence[str] = ()) -> str:
    """The parameters of a problem in one line, without those that it does not have."""
    shown = [name for name in ("M", "C", "lambda", "loss", "bias") if name not in without]
    shown += [name for name in ("measure", "beta", "k") if name in params]
    return ", ".join(f"{name} = {_setting_text(params[name])}" for name in shown if name in params)


def _setting_text(value: Any) -> str:
    if isinstance(value, list):
        return "one per feature"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
