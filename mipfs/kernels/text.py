"""Lines of svmlight to numbers, and entries sorted by column: the numba kernels of `mipfs convert`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled

_EXACT = 9007199254740992
"""2^53: whole numbers up to this, times or by a power of ten up to 10^22, are rounded once, as Python rounds them."""
POWERS = np.array([10.0**k for k in range(23)])
RADIX_BITS = 11
DONE = 0
ODD = 1


class ParsedLines(NamedTuple):
    """Of every sample.

    labels, bags, lines, ends : (r,) its label; its bag, −1 without qid:; its line; where its entries end
    """

    labels: npt.NDArray[Any]
    bags: npt.NDArray[Any]
    lines: npt.NDArray[Any]
    ends: npt.NDArray[Any]


class Entries(NamedTuple):
    """Of every entry that is not zero.

    columns, values : its 0-based column, and its number
    hard : (h, 3) entry, begin and end of numbers that Python has to read; a zero among them stays
    """

    columns: npt.NDArray[Any]
    values: npt.NDArray[Any]
    hard: npt.NDArray[Any]


@compiled(inline="always")
def _is_blank(c):  # type: ignore[no-untyped-def]
    return c == 32 or (9 <= c <= 13 and c != 10)


@compiled()
def _parse_number(text, at, powers):  # type: ignore[no-untyped-def]
    """(end, value, kind) of the number at `at`: kind 0 read, 1 one for Python to read, 2 none."""
    negative = False
    mantissa = 0
    digits = 0
    exponent = 0
    if text[at] == 45 or text[at] == 43:
        negative = text[at] == 45
        at += 1
    wide = False
    point = False
    while True:
        c = text[at]
        if 48 <= c <= 57:
            digits += 1
            if mantissa < 100000000000000000:
                mantissa = mantissa * 10 + (c - 48)
                exponent -= point
            else:
                wide = True
        elif c == 46 and not point:
            point = True
        else:
            break
        at += 1
    if digits == 0:
        return at, 0.0, 2
    c = text[at]
    if c == 101 or c == 69:
        at += 1
        sign = 1
        if text[at] == 45 or text[at] == 43:
            sign = -1 if text[at] == 45 else 1
            at += 1
        shown = 0
        power = 0
        while 48 <= text[at] <= 57:
            power = min(power * 10 + (text[at] - 48), 100000)
            shown += 1
            at += 1
        if shown == 0:
            return at, 0.0, 2
        exponent += sign * power
    c = text[at]
    if not (_is_blank(c) or c == 10 or c == 35):
        return at, 0.0, 2
    if wide or mantissa > _EXACT or exponent > 22 or exponent < -22:
        return at, 0.0, 1
    value = float(mantissa)
    value = value * powers[exponent] if exponent >= 0 else value / powers[-exponent]
    return at, -value if negative else value, 0


@compiled()
def parse(text, at, limit, powers, samples, entries, state):  # type: ignore[no-untyped-def]
    """Read whole lines of svmlight until the end of `text`, or until one that is not plain.

    Parameters
    ----------
    text : (m,) uint8, ends with a line feed
    at : where to begin
    limit : the largest index allowed
    powers : POWERS
    samples, entries : ParsedLines and Entries, out
    state : (6,) in and out: samples, entries, hard numbers, lines passed, largest index, where the text was left

    Returns
    -------
    int
        DONE, or ODD: the line at state[5] is for Python to read.
    """
    labels, bags, lines, ends = samples
    columns, values, hard = entries
    size = text.size
    while at < size:
        begin = at
        row = state[0]
        entry = state[1]
        difficult = state[2]
        largest = state[4]
        while _is_blank(text[at]):
            at += 1
        if text[at] != 10 and text[at] != 35:
            at, label, kind = _parse_number(text, at, powers)
            if kind != 0:
                state[5] = begin
                return ODD
            bag = -1
            last = 0
            first = True
            while True:
                while _is_blank(text[at]):
                    at += 1
                c = text[at]
                if c == 10 or c == 35:
                    break
                # Qid: is for Python unless it is plain.
                if first and c == 113:
                    if not (text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == 58):
                        state[5] = begin
                        return ODD
                    at += 4
                    bag = 0
                    shown = 0
                    while 48 <= text[at] <= 57 and shown < 19:
                        bag = bag * 10 + (text[at] - 48)
                        at += 1
                        shown += 1
                    c = text[at]
                    if shown == 0 or shown > 18 or not (_is_blank(c) or c == 10 or c == 35):
                        state[5] = begin
                        return ODD
                    first = False
                    continue
                first = False
                index = 0
                shown = 0
                while 48 <= text[at] <= 57 and shown < 19:
                    index = index * 10 + (text[at] - 48)
                    at += 1
                    shown += 1
                if shown == 0 or shown > 18 or text[at] != 58 or index <= last or index > limit:
                    state[5] = begin
                    return ODD
                at += 1
                start = at
                at, value, kind = _parse_number(text, at, powers)
                if kind == 2:
                    state[5] = begin
                    return ODD
                last = index
                if kind == 1:
                    hard[difficult, 0] = entry
                    hard[difficult, 1] = start
                    hard[difficult, 2] = at
                    difficult += 1
                if kind == 1 or value != 0.0:
                    columns[entry] = index - 1
                    values[entry] = value
                    entry += 1
            labels[row] = label
            bags[row] = bag
            lines[row] = state[3] + 1
            ends[row] = entry
            state[0] = row + 1
            state[1] = entry
            state[2] = difficult
            state[4] = max(largest, last)
        while text[at] != 10:
            at += 1
        at += 1
        state[3] += 1
        state[5] = at
    return DONE


@compiled()
def sort_by_column(columns, rows, values, columns_to, rows_to, values_to, largest):  # type: ignore[no-untyped-def]
    """Sort entries by column, those of a column as they stand; whether they lie in the second arrays afterwards."""
    shift = 0
    there = False
    mask = (1 << RADIX_BITS) - 1
    while shift == 0 or (largest >> shift) > 0:
        # One pass of a radix sort, stable, over RADIX_BITS bits of the column.
        places = np.zeros((1 << RADIX_BITS) + 1, np.int64)
        for s in range(columns.size):
            places[((columns[s] >> shift) & mask) + 1] += 1
        for k in range(1 << RADIX_BITS):
            places[k + 1] += places[k]
        for s in range(columns.size):
            key = (columns[s] >> shift) & mask
            to = places[key]
            columns_to[to] = columns[s]
            rows_to[to] = rows[s]
            values_to[to] = values[s]
            places[key] = to + 1
        columns, columns_to = columns_to, columns
        rows, rows_to = rows_to, rows
        values, values_to = values_to, values
        shift = shift + RADIX_BITS
        there = not there
    return there


@compiled()
def count(columns, counts):  # type: ignore[no-untyped-def]
    """Add up the entries of every column."""
    for s in range(columns.size):
        counts[columns[s]] += 1


@compiled()
def place_entries(columns, start, rows, values, heads, indices, data):  # type: ignore[no-untyped-def]
    """Put entries of the columns from `start` on where their columns go on; heads (w,) move."""
    for s in range(columns.size):
        to = heads[columns[s] - start]
        indices[to] = rows[s]
        data[to] = values[s]
        heads[columns[s] - start] = to + 1
