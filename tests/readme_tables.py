"""The tables of the manual's pages between their markers, made of what the code declares.

python -m tests.readme_tables        # write them anew
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "drivers.md"
ADDITIVE = PAGE.with_name("additive.md")


def markdown(lines: Sequence[Mapping[str, str]]) -> str:
    """A table of lines by column."""
    header, *rows = (f"| {' | '.join(cells)} |\n" for cells in (lines[0], *(line.values() for line in lines)))
    return header + "|---" * len(lines[0]) + "|\n" + "".join(rows)


def rendered(text: str) -> str:
    """The page with its tables as the code prints them."""
    from mipfs.cli.models import atom_lines, driver_lines, formulation_lines

    tables = (("formulations", formulation_lines()), ("drivers", driver_lines()), ("atoms", atom_lines()))
    for name, lines in tables:
        if f"<!-- {name} -->" not in text:
            continue
        before, marker, rest = text.partition(f"<!-- {name} -->\n")
        text = f"{before}{marker}{markdown(lines)}{rest[rest.index('<!-- end -->') :]}"
    return text


if __name__ == "__main__":
    for page in (PAGE, ADDITIVE):
        page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")
