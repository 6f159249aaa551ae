"""svmlight: ``label [qid:bag] index:value ...`` per line, with 1-based increasing indices and # comments.

scikit-learn's reader is faster but does not say on which line a file is damaged, so the lines are parsed here.
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.matrix import compact
from mipfs.errors import DataError
from mipfs.readers.files import MAX_FEATURES, opened
from mipfs.readers.table import Table

# Possessive groups: a line that does not match is given up at once.
_LINE = re.compile(rb"([^\s:_]++)(?:\s++qid:(\d{1,18}))?+((?:\s++\d{1,18}:[^\s:_]++)*+)")
_PAIR = re.compile(rb"\d{1,18}:[^\s:_]++")
_INCREASE = "write indices in increasing order, each once"


def read_svmlight(path: Path, n_features: int | None = None) -> Table:
    """Read an svmlight file, packed by gzip or bzip2 or not.

    Parameters
    ----------
    path : Path
    n_features : int, optional
        Default: the largest index.

    Raises
    ------
    DataError
        With the line: a label or value that is no finite number, a truncated or ragged pair, an index
        below 1, above `n_features`, repeated or out of order, `qid:` on some lines only; an empty file.
    """
    labels, values = array("d"), array("d")
    indices, bags, starts, lines = array("q"), array("q"), array("q", [0]), array("q")
    with opened(path) as stream:
        for number, raw in enumerate(stream, 1):
            found = _parsed(raw, path, number, indices, values)
            if found is None:
                continue
            label, bag = found
            labels.append(label)
            starts.append(len(indices))
            lines.append(number)
            if bag is not None:
                bags.append(int(bag))
            if bags and len(bags) < len(lines):
                raise DataError("qid: stands on some lines only", "give every sample its bag", path=path, line=number)
    if not lines:
        raise DataError("the file has no samples", "write one per line: label index:value ...", path=path)
    table = Table(
        _matrix(_ints(indices), _floats(values), _ints(starts), _ints(lines), n_features, path),
        _floats(labels),
        bags=_ints(bags) if bags else None,
        lines=_ints(lines),
    )
    bad = np.flatnonzero(~np.isfinite(_floats(labels)))
    if bad.size:
        message = f"the label is {labels[bad[0]]}"
        raise DataError(message, "give every sample a finite label", path=path, line=lines[bad[0]])
    return table


def read_line(
    raw: bytes, path: Path, number: int, limit: int, is_open: bool
) -> tuple[float, int, npt.NDArray[np.int64], npt.NDArray[np.float64]] | None:
    """Label, bag (-1 without one), indices and values of one line; None for a blank one.

    Parameters
    ----------
    limit : the largest index allowed
    is_open : whether that is the most that is read, not the number of features

    Raises
    ------
    DataError
        As `read_svmlight`.
    """
    read, given = array("q"), array("d")
    found = _parsed(raw, path, number, read, given)
    if found is None:
        return None
    label, bag = found
    if not np.isfinite(label):
        raise DataError(f"the label is {label}", "give every sample a finite label", path=path, line=number)
    indices, values = _ints(read), _floats(given)
    _check_entries(indices, values, np.array([0, len(indices)]), np.array([number]), limit, is_open, path)
    return label, -1 if bag is None else int(bag), indices, values


def _parsed(
    raw: bytes, path: Path, number: int, indices: array[int], values: array[float]
) -> tuple[float, bytes | None] | None:
    """Label and bag of one line, whose pairs are put behind others; None for a blank one."""
    line = raw.partition(b"#")[0].strip()
    if not line:
        return None
    match = _LINE.fullmatch(line)
    if match is None:
        raise _diagnosis(line, path, number)
    label, bag, pairs = match.groups()
    fields = pairs.replace(b":", b" ").split()
    try:
        found = float(label)
        values.extend(map(float, fields[1::2]))
    except ValueError:
        raise _diagnosis(line, path, number) from None
    indices.extend(map(int, fields[::2]))
    return found, bag


def _matrix(
    indices: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    starts: npt.NDArray[np.int64],
    lines: npt.NDArray[np.int64],
    n_features: int | None,
    path: Path,
) -> object:
    """The checked matrix, dense or CSC."""

    limit = MAX_FEATURES if n_features is None else n_features
    _check_entries(indices, values, starts, lines, limit, n_features is None, path)
    p = int(indices.max(initial=0)) if n_features is None else n_features
    if p == 0:
        raise DataError("no sample has a feature", "write index:value after the labels", path=path)
    return compact(sparse.csr_array((values, indices - 1, starts), shape=(len(lines), p)).tocsc())


def _check_entries(
    indices: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    starts: npt.NDArray[np.int64],
    lines: npt.NDArray[np.int64],
    limit: int,
    is_open: bool,
    path: Path,
) -> None:
    """Refuse what is no finite value, and indices that are repeated, out of order or out of range."""

    def line(k: int) -> int:
        return int(lines[np.searchsorted(starts, k, "right") - 1])

    steps = np.diff(indices, prepend=0)
    inner = np.ones(len(indices), dtype=bool)
    inner[starts[:-1][starts[:-1] < len(indices)]] = False
    for k in np.flatnonzero(~np.isfinite(values))[:1]:
        message = f"feature {indices[k]} is {values[k]}"
        raise DataError(message, "every value must be a finite number", path=path, line=line(k))
    for k in np.flatnonzero(indices < 1)[:1]:
        raise DataError("a feature has index 0", "svmlight indices begin at 1", path=path, line=line(k))
    for k in np.flatnonzero(inner & (steps <= 0))[:1]:
        twice = f"index {indices[k]} stands twice"
        message = twice if steps[k] == 0 else f"index {indices[k]} comes after {indices[k - 1]}"
        raise DataError(message, _INCREASE, path=path, line=line(k))
    for k in np.flatnonzero(indices > limit)[:1]:
        message = f"index {indices[k]} is above {limit}"
        what = "the most that is read" if is_open else "the number of features"
        raise DataError(f"{message}, {what}", "correct the index", path=path, line=line(k))


def _diagnosis(line: bytes, path: Path, number: int) -> DataError:
    """The first thing that is wrong with a line."""
    label, *tokens = line.split()
    if not _is_number(label):
        message = f"the line begins with {_shown(label)} where the label should stand"
        return DataError(message, "begin it with the label, a number", path=path, line=number)
    for place, token in enumerate(tokens):
        if token.startswith(b"qid:"):
            if place == 0 and re.fullmatch(rb"qid:\d{1,18}", token):
                continue
            message, remedy = f"misplaced or ragged {_shown(token)}", "write qid: and a whole number after the label"
            return DataError(message, remedy, path=path, line=number)
        if not _PAIR.fullmatch(token) or not _is_number(token.partition(b":")[2]):
            last = "; the line looks truncated" if place == len(tokens) - 1 else ""
            message = f"{_shown(token)} is not index:value{last}"
            return DataError(message, "write a whole number, a colon and a number", path=path, line=number)
    raise AssertionError("unreachable: every token is sound")


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return b"_" not in token


def _shown(token: bytes) -> str:
    text = token.decode("ascii", "replace")
    return repr(text if len(text) <= 30 else text[:30] + "...")


def _ints(values: array[int]) -> npt.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def _floats(values: array[float]) -> npt.NDArray[np.float64]:
    return np.array(values, dtype=np.float64)
