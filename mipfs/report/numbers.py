"""Numbers as people read them, on the command line and in a notebook."""

from __future__ import annotations


def number(value: float) -> str:
    """Eight significant digits; a dash for what was not earned."""
    return f"{value:.8g}" if abs(value) < float("inf") else "-"


def percent(gap: float) -> str:
    """A relative gap as a percentage of three significant digits; only a gap of exactly zero is shown as zero."""
    if gap == float("inf"):
        return "-"
    return "<0.0001%" if 0 < gap < 1e-6 else f"{100 * gap:.3g}%"
