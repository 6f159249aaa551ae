"""Comments in a CSV file: lines that begin with #, and headers that were written as one (``# a,b,label``)."""

from __future__ import annotations

from collections.abc import Iterator

SEPARATORS = (",", ";", "\t", "|")


def without_comments(text: Iterator[str]) -> Iterator[str]:
    """The lines, empty ones in place of comments so that they keep their numbers.

    A comment begins with #, outside quotes, and has fewer separators than the header: a row whose first cell begins so
    is none. Where the first line that is no comment holds numbers only, and the comment above it names as many
    columns, that comment is the header.
    """
    above = ""
    for line in text:
        if not line.startswith("#"):
            if line.strip():
                break
            yield "\n"
            continue
        if above:
            yield "\n"
        above = line
    else:
        if above:
            yield "\n"
        return
    header = line
    if above:
        names = above.lstrip("#").strip()
        if _count_cells(names) == _count_cells(line) > 1 and _is_numeric(line) and not _is_numeric(names):
            header = names + "\n"
            yield header
        else:
            yield "\n"
    yield line
    counts = {separator: header.count(separator) for separator in SEPARATORS if separator in header}
    is_open = (header.count('"') + (line.count('"') if header is not line else 0)) % 2 == 1
    for line in text:
        if not is_open and line.startswith("#") and all(line.count(s) < most for s, most in counts.items()):
            yield "\n"
            continue
        is_open ^= line.count('"') % 2 == 1
        yield line


def _count_cells(line: str) -> int:
    return 1 + max(line.count(separator) for separator in SEPARATORS)


def _is_numeric(line: str) -> bool:
    """Whether every cell of a line is a number."""
    separator = max(SEPARATORS, key=line.count)
    try:
        return bool([float(cell) for cell in line.split(separator)])
    except ValueError:
        return False
