"""Markdown: tables and cells."""

from __future__ import annotations

from collections.abc import Iterable

from exact_parts.store import Line

DASH = "–"


def by_problem(lines: Iterable[Line]) -> dict[str, dict[str, Line]]:
    """The lines by problem, and by solver within it."""
    found: dict[str, dict[str, Line]] = {}
    for line in lines:
        found.setdefault(line["problem"], {})[line["solver"]] = line
    return found


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def number(value: float | None, form: str) -> str:
    """A number in the given form, a dash for none."""
    return DASH if value is None else form.format(value)


def gap_cell(value: float | None) -> str:
    """A relative gap."""
    return number(value, "{:.1e}")


def checked(line: Line) -> str:
    """Seconds of the check of the certificate; one that was not accepted says so."""
    if line.get("verify_seconds") is None:
        return DASH
    return f"{line['verify_seconds']:.2f}" + ("" if line["verified"] else " REJECTED")
