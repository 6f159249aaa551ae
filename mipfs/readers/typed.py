"""Cells that say a number in another way: dates, currency, percent, decimal commas.

A cell is read only as `[data] types` says, and never guessed: 1,234 is 1234 in one country and 1.234 in another. What
a column looks like (`looks_like`) is for messages.

| kind | read as |
|---|---|
| date | days since 1970-01-01, of 2026-11-25, 2026/11/25, 20261125, 25.11.2026, or ISO with a time |
| date d/m/y, date m/d/y | the same, of 25/11/2026 or 11/25/2026 |
| currency | $1,234.50, 1234.5 EUR, (20.00) or -20 as a number: commas and blanks stand between thousands |
| percent | 12.5% and 12.5 as 12.5, percent points |
| decimal comma | 3,7 as 3.7 and 1.234,5 as 1234.5; points and blanks stand between thousands |
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.recipe import CURRENCY, DATE, DAY_FIRST, DECIMAL_COMMA, MONTH_FIRST, PERCENT, TYPES
from mipfs.plumbing.arrays import Array

_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = 86400.0
_DATE = re.compile(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})", re.ASCII)
_SPACES = r"[ \u00a0\u202f'’]"
_POINT = re.compile(rf"(\d{{1,3}}(?:(?:,|{_SPACES})\d{{3}})+|\d+)?(\.\d*)?", re.ASCII)
_COMMA = re.compile(rf"(\d{{1,3}}(?:(?:\.|{_SPACES})\d{{3}})+|\d+)?(,\d*)?", re.ASCII)
_SYMBOL = r"(?:[$€£¥₹₽₩₺₴]|[A-Za-z]{1,3}\$|[A-Za-z]{2,4}\.?|CHF)"
_MONEY = re.compile(rf"([+-]?)\s*+{_SYMBOL}?+\s*+([+-]?)\s*+([\d.,\s\u00a0\u202f'’]++){_SYMBOL}?", re.ASCII)
"""Nothing of it can be read in two ways, so that a cell of many blanks is given up at once."""
SAID = re.compile(r"[$€£¥₹₽₩₺₴%]|\d[ \u00a0]?[A-Z]{3}$|^[A-Z]{3}[ \u00a0]?\d")
"""What makes a number in a cell money or a share."""
ENOUGH = 0.9
"""Share of the cells of a column that must look alike for a message to say as what."""


def parse_cell(cell: str, kind: str) -> float | None:
    """The number that a cell says, None where it says none in this way."""
    text = cell.strip()
    if kind in (DATE, DAY_FIRST, MONTH_FIRST):
        return _parse_date(text, kind)
    negative = False
    if kind.startswith(CURRENCY):
        if text.startswith("(") and text.endswith(")"):
            negative, text = True, text[1:-1].strip()
        match = _MONEY.fullmatch(text)
        if match is None or (match[1] and match[2]):
            return None
        negative ^= "-" in (match[1] + match[2])
        text = match[3].strip()
    elif kind.startswith(PERCENT):
        text = text.removesuffix("%").strip()
    if text[:1] in ("+", "-"):
        negative ^= text[0] == "-"
        text = text[1:].strip()
    value = _parse_unsigned(text, "," if kind.endswith(DECIMAL_COMMA) else ".")
    return None if value is None else -value if negative else value


def _parse_unsigned(text: str, point: str) -> float | None:
    """A number without a sign, with marks between thousands or none."""
    match = (_COMMA if point == "," else _POINT).fullmatch(text)
    if match is None or not any(c.isdigit() for c in text):
        return None
    whole = "".join(c for c in match[1] or "0" if c.isdigit())
    return float(whole + (match[2] or "").replace(",", "."))


def _parse_date(text: str, kind: str) -> float | None:
    match = _DATE.fullmatch(text)
    try:
        if match is None:
            if kind != DATE or len(text) < 8:
                return None
            found = datetime.datetime.fromisoformat(text)
            if found.tzinfo is not None:
                found = found.astimezone(datetime.UTC).replace(tzinfo=None)
            return (found - _EPOCH).total_seconds() / _DAY
        first, mark, second, third = match[1], match[2], int(match[3]), match[4]
        if len(first) == 4 and len(third) <= 2:
            year, month, day = int(first), second, int(third)
        elif len(third) != 4 or len(first) > 2 or (kind == DATE and mark != "."):
            return None
        else:
            year, month, day = int(third), second, int(first)
            if kind == MONTH_FIRST:
                month, day = day, month
        return float((datetime.datetime(year, month, day) - _EPOCH).days)
    except ValueError:
        return None


def numbers(
    values: Sequence[Any], kind: str, missing: Callable[[Any], bool], refuse: Callable[[int], Exception]
) -> Array:
    """The column that cells say, NaN where one is missing.

    Parameters
    ----------
    values : cells, text or numbers, which stand for themselves
    kind : one of `TYPES`
    missing : whether a cell stands for a missing value
    refuse : the error about the cell at a place
    """
    found = np.full(len(values), np.nan)
    known: dict[str, float | None] = {}
    for i, value in enumerate(values):
        if missing(value):
            continue
        cell = str(value)
        if cell not in known:
            known[cell] = parse_cell(cell, kind)
            if known[cell] is None and kind not in (DATE, DAY_FIRST, MONTH_FIRST) and not isinstance(value, str):
                known[cell] = float(value)
        number = known[cell]
        if number is None or not np.isfinite(number):
            raise refuse(i)
        found[i] = number
    return found


def days_since_1970(moments: npt.NDArray[Any]) -> Array:
    """Moments (n,) of NumPy's datetime64 as days since 1970-01-01, NaN where there is none."""
    since = (moments.astype("datetime64[us]") - np.datetime64("1970-01-01", "us")) / np.timedelta64(1, "us")
    return np.asarray(since / (1e6 * _DAY), dtype=float)


def type_remedy(name: str, cells: Iterable[str]) -> str:
    """What `types` to give where cells look like one kind; "" where they look like none."""
    texts = list(cells)
    kind = looks_like(texts)
    return "" if kind is None else describe_reading(name, kind, fits_both_orders(kind, texts))


def describe_reading(name: str, kind: str, is_either: bool = False) -> str:
    """How a column is read as one of `TYPES`; of dates that fit two orders, that only the user knows which."""
    said = f'say --types "{name}={kind}" (types={{{name!r}: {kind!r}}} in Python, [data] types in the .toml)'
    if not is_either:
        return said
    return f"{said}, or {MONTH_FIRST!r} in its place: all cells fit both orders, and nothing in them says which it is"


def fits_both_orders(kind: str | None, cells: Iterable[str]) -> bool:
    """Whether dates are as well of the month first as of the day first, which is what they look like."""
    texts = [cell.strip() for cell in cells if cell.strip()]
    return kind == DAY_FIRST and all(
        parse_cell(text, MONTH_FIRST) is not None for text in texts if parse_cell(text, DAY_FIRST) is not None
    )


def other_type_remedy(name: str, cells: Iterable[Any], kind: str) -> str:
    """What to do where a cell is not of the type that was given: the type that most cells are of, or all there are."""
    texts = [str(cell) for cell in cells if cell is not None]
    other = looks_like(texts)
    if other is None or other == kind or (kind == MONTH_FIRST and fits_both_orders(other, texts)):
        return f"give it another type: {', '.join(TYPES)}"
    return describe_reading(name, other, fits_both_orders(other, texts))


def looks_like(cells: Sequence[str]) -> str | None:
    """The kind that most of the cells are of, where they are no plain numbers."""
    texts = [cell.strip() for cell in list(dict.fromkeys(cells))[:200] if cell.strip()]
    if not texts:
        return None
    need = ENOUGH * len(texts)
    said = sum(SAID.search(text) is not None for text in texts)
    shares = sum(text.endswith("%") for text in texts)
    for kind in TYPES:
        if (kind.startswith(PERCENT) and shares == 0) or (kind.startswith(CURRENCY) and said == shares):
            continue
        if sum(parse_cell(text, kind) is not None for text in texts) >= need:
            return kind
    return None
