"""svmlight: ``label [qid:bag] index:value ...`` per line, with 1-based increasing indices and # comments.

A file is read in pieces of whole lines. The first is read by Python, so that a small file compiles nothing; of the
others a kernel (`mipfs.kernels.text`) reads the plain lines, and Python the odd ones, of which it says what is wrong.
"""

from __future__ import annotations

import codecs
import re
import warnings
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.matrix import compact_storage
from mipfs.errors import DataError, DataWarning
from mipfs.plumbing.arrays import Array, Integers
from mipfs.readers.chunks import Chunk, skip_bytes
from mipfs.readers.columns import Table
from mipfs.readers.files import features_limit, opened
from mipfs.readers.room import MORE

PIECE = 1 << 22
"""Bytes of text that are read at a time: Python takes some 0.2 s for them, and the kernel is compiled for 2 s."""
LONG = 20
"""Bytes of text for an entry, on average, from which on its number has more digits than the kernel reads exactly."""

# Possessive groups: a line that does not match is given up at once.
_LINE = re.compile(rb"([^\s:_]++)(?:\s++qid:(\d{1,18}))?+((?:\s++\d{1,18}:[^\s:_]++)*+)")
_PAIR = re.compile(rb"\d{1,18}:[^\s:_]++")
_INCREASE = "write indices in increasing order, each once"


def read_svmlight(
    path: Path,
    n_features: int | None = None,
    *,
    beyond: bool = False,
    named_in: str | None = None,
    labelled: bool = True,
) -> Table:
    """Read an svmlight file, packed by gzip or bzip2 or not.

    Parameters
    ----------
    path : Path
    n_features : int, optional
        Default: the largest index.
    beyond : bool
        Whether larger indices are left out, with a note: of rows that a classifier of these features is used on.
    named_in : str, optional
        Where the names of the features stand, of which there are `n_features`.
    labelled : bool
        Whether every line must have a label; otherwise one that begins with ``index:value`` has the label 0.

    Raises
    ------
    DataError
        With the line: a label or value that is no finite number, a truncated or ragged pair, an index
        below 1, above `n_features`, repeated or out of order, `qid:` on some lines only; an empty file. More features
        are said to be there than are read of a file of its size.
    """
    limit = features_limit(path)
    if n_features is not None and n_features > limit:
        raise DataError(
            f"{n_features} features are said to be there, and at most {limit} are read of so small a file",
            f"correct n_features, here or in the result that names it, {MORE}",
            path=path,
        )
    parts: dict[str, list[Any]] = {"labels": [], "lines": [], "bags": [], "sizes": [], "columns": [], "values": []}
    width = 0
    with opened(path) as stream:
        for chunk in svmlight_chunks(path, stream, None if beyond else n_features, None, named_in, labelled):
            width = chunk.width
            for name, found in parts.items():
                found.append(getattr(chunk, name))
    if not parts["labels"]:
        raise DataError("the file has no samples", "write one per line: label index:value ...", path=path)
    p = width if n_features is None else n_features
    if p == 0:
        raise DataError("no sample has a feature", "write index:value after the labels", path=path)
    # each is let go of before the next is joined
    bags = None if parts["bags"][0] is None else np.concatenate(parts["bags"])
    labels, lines, sizes, columns, values = (
        np.concatenate(parts.pop(name)) for name in ("labels", "lines", "sizes", "columns", "values")
    )
    starts = np.concatenate([[0], np.cumsum(sizes)])
    starts = starts.astype(np.int32) if starts[-1] < 2**31 else starts  # SciPy's indices are as wide as these
    X = sparse.csr_array((values, columns, starts), shape=(labels.size, max(p, width))).tocsc()
    if width > p:
        many = "a feature" if width == p + 1 else f"{width - p} features"
        said = f"{many} beyond the {p} of training, which the classifier does not look at; left out"
        warnings.warn(f"{path}: there {'is' if width == p + 1 else 'are'} {said}", DataWarning, stacklevel=2)
        X = X[:, :p]
    del columns, values
    return Table(compact_storage(X), labels, bags=bags, lines=lines)


def svmlight_chunks(
    path: Path,
    stream: IO[bytes],
    n_features: int | None,
    position: dict[str, Any] | None,
    named_in: str | None = None,
    labelled: bool = True,
) -> Iterator[Chunk]:
    """The samples of an svmlight file.

    Parameters
    ----------
    path : named in messages
    stream : of the unpacked bytes
    n_features : the largest index allowed, by default what the size of the file allows
    position : where an earlier reading was left, None at the beginning
    named_in, labelled : as of `read_svmlight`

    Raises
    ------
    DataError
        As `read_svmlight`, with the line; the first one that is wrong.
    """
    at = position or {"bytes": 0, "line": 0, "width": 0, "bags": None}
    skip_bytes(stream, at["bytes"], path)
    reader = _Lines(path, n_features or features_limit(path), n_features is None, named_in, labelled)
    passed = at["bytes"]
    line = at["line"]
    width = at["width"]
    has_bags = at["bags"]
    rest = b""
    read_by = reader.read
    while True:
        read = stream.read(PIECE)
        whole, rest = _split_whole_lines(rest + read, not read)
        if whole:
            text = whole if passed else whole.removeprefix(codecs.BOM_UTF8)
            piece = read_by(text, line)
            read_by = reader.read if len(whole) > LONG * piece.values.size else reader.compiled
            passed = passed + len(whole)
            line = piece.line
            width = max(width, piece.width)
            if piece.labels.size:
                known = piece.bags >= 0
                has_bags = bool(known[0]) if has_bags is None else has_bags
                for k in np.flatnonzero(known != has_bags)[:1]:
                    raise DataError(
                        "qid: stands on some lines only",
                        "give every sample its bag",
                        path=path,
                        line=int(piece.lines[k]),
                    )
                yield Chunk(
                    piece.labels,
                    np.diff(piece.ends, prepend=0),
                    piece.columns,
                    piece.values,
                    width,
                    piece.bags if has_bags else None,
                    None,
                    piece.lines,
                    {"bytes": passed, "line": line, "width": width, "bags": has_bags},
                )
        if not read:
            return


def _split_whole_lines(text: bytes, at_end: bool) -> tuple[bytes, bytes]:
    """Whole lines, and what is left."""
    if at_end:
        return text, b""
    end = text.rfind(b"\n") + 1
    return text[:end], text[end:]


class _Piece(NamedTuple):
    """Some whole lines, read.

    labels, bags, lines, ends : (r,) of every sample its label, its bag (-1 without one), its line, its entries' end
    columns, values : (e,) 0-based column and number of every entry that is not zero
    line, width : lines up to here, and the largest index
    """

    labels: Array
    bags: Integers
    lines: Integers
    ends: Integers
    columns: npt.NDArray[np.int32]
    values: Array
    line: int
    width: int


class _Lines:
    """Whole lines to samples.

    Parameters
    ----------
    path : named in messages
    limit : the largest index allowed
    is_open : whether that is the most that is read, not the number of features
    named_in : where the names of the features stand, where that says how many there are
    labelled : whether every line must have a label
    """

    def __init__(
        self, path: Path, limit: int, is_open: bool, named_in: str | None = None, labelled: bool = True
    ) -> None:
        self.path = path
        self.limit = limit
        self.is_open = is_open
        self.named_in = named_in
        self.labelled = labelled

    def above(self, index: int, line: int) -> DataError:
        """An index above the limit, and who set that."""
        if self.named_in is not None and not self.is_open:
            names = "1 name" if self.limit == 1 else f"{self.limit} names"
            message = f"index {index}, and {self.named_in} has {names}"
            return DataError(message, "write the names of all features there", path=self.path, line=line)
        what = "the most that is read of so small a file" if self.is_open else "the number of features"
        remedy = f"correct the index, {MORE}" if self.is_open else "correct the index"
        return DataError(f"index {index} is above {self.limit}, {what}", remedy, path=self.path, line=line)

    def read(self, text: bytes, line: int) -> _Piece:
        """Read lines of which `line` came before, by Python.

        Raises
        ------
        DataError
            As `read_svmlight`.
        """
        labels = array("d")
        bags = array("q")
        lines = array("q")
        starts = array("q", [0])
        indices = array("q")
        values = array("d")
        for number, raw in enumerate(text.removesuffix(b"\n").split(b"\n"), line + 1):
            found = _parse_line(raw, self, number, indices, values)
            if found is not None:
                labels.append(found[0])
                bags.append(-1 if found[1] is None else int(found[1]))
                lines.append(number)
                starts.append(len(indices))
            line = number
        ids = _as_integers(indices)
        given = _as_floats(values)
        ends = _as_integers(starts)
        where = _as_integers(lines)
        _check_entries(ids, given, ends, where, self)
        for k in np.flatnonzero(~np.isfinite(_as_floats(labels)))[:1]:
            raise DataError(
                f"the label is {labels[k]}", "give every sample a finite label", path=self.path, line=lines[k]
            )
        kept = given != 0.0
        width = int(ids.max(initial=0))
        ends = np.concatenate([[0], np.cumsum(kept)])[ends[1:]]
        return _Piece(
            _as_floats(labels),
            _as_integers(bags),
            where,
            ends,
            (ids[kept] - 1).astype(np.int32),
            given[kept],
            line,
            width,
        )

    def compiled(self, text: bytes, line: int) -> _Piece:
        """As `read`, by the kernel as far as lines are plain."""
        from mipfs.kernels.text import DONE, POWERS, Entries, ParsedLines, parse

        text = text if text.endswith(b"\n") else text + b"\n"
        raw = np.frombuffer(text, dtype=np.uint8)
        rows = int(np.count_nonzero(raw == 10))
        most = raw.size // 4 + 2
        samples = ParsedLines(np.empty(rows), *(np.empty(rows, dtype=np.int64) for _ in range(3)))
        hard = np.empty((raw.size // 20 + 2, 3), dtype=np.int64)
        state = np.array([0, 0, 0, line, 0, 0])
        entries = Entries(np.empty(most, dtype=np.int32), np.empty(most), hard)
        while parse(raw, int(state[5]), self.limit, POWERS, samples, entries, state) != DONE:
            end = text.index(b"\n", state[5]) + 1
            odd = self.read(text[state[5] : end], int(state[3]))
            n = int(state[0])
            e = int(state[1])
            r = odd.labels.size
            more = odd.values.size
            for room, found in zip(samples, odd[:4], strict=True):
                room[n : n + r] = found
            samples.ends[n : n + r] += e
            entries.columns[e : e + more], entries.values[e : e + more] = odd.columns, odd.values
            state[[0, 1, 3, 4, 5]] = n + r, e + more, odd.line, max(int(state[4]), odd.width), end
        n, e, h = (int(k) for k in state[:3])
        # copies, so that the room is let go of
        labels, bags, lines, ends = (room[:n].copy() for room in samples)
        columns, values = (room[:e].copy() for room in entries[:2])
        piece = _Piece(labels, bags, lines, ends, columns, values, int(state[3]), int(state[4]))
        return _with_hard(piece, self.path, text, hard[:h])


def _with_hard(piece: _Piece, path: Path, text: bytes, hard: Integers) -> _Piece:
    """The piece with its numbers of many digits, by Python; those that come out zero go."""
    if not hard.size:
        return piece
    values = piece.values
    values[hard[:, 0]] = [float(text[a:b]) for a, b in hard[:, 1:].tolist()]
    for k in hard[~np.isfinite(values[hard[:, 0]]), 0][:1]:
        line = int(piece.lines[np.searchsorted(piece.ends, k, "right")])
        raise _not_finite(piece.columns[k] + 1, values[k], path, line)
    kept = values != 0.0
    if kept.all():
        return piece
    ends = np.concatenate([[0], np.cumsum(kept)])[piece.ends]
    return piece._replace(ends=ends, columns=piece.columns[kept], values=values[kept])


def _parse_line(
    raw: bytes, reader: _Lines, number: int, indices: array[int], values: array[float]
) -> tuple[float, bytes | None] | None:
    """Label and bag of one line, whose pairs are put behind others; None for a blank one."""
    line = raw.partition(b"#")[0].strip()
    if not line:
        return None
    if not reader.labelled and b":" in line.split(None, 1)[0]:
        line = b"0 " + line
    match = _LINE.fullmatch(line)
    if match is None:
        raise _diagnose_line(line, reader.path, number)
    label, bag, pairs = match.groups()
    fields = pairs.replace(b":", b" ").split()
    try:
        found = float(label)
        values.extend(map(float, fields[1::2]))
    except ValueError:
        raise _diagnose_line(line, reader.path, number) from None
    indices.extend(map(int, fields[::2]))
    return found, bag


def _check_entries(
    indices: Integers,
    values: Array,
    starts: Integers,
    lines: Integers,
    reader: _Lines,
) -> None:
    """Refuse what is no finite value, and indices that are repeated, out of order or out of range."""
    path = reader.path
    limit = reader.limit

    def line(k: int) -> int:
        return int(lines[np.searchsorted(starts, k, "right") - 1])

    steps = np.diff(indices, prepend=0)
    inner = np.ones(len(indices), dtype=bool)
    inner[starts[:-1][starts[:-1] < len(indices)]] = False
    for k in np.flatnonzero(~np.isfinite(values))[:1]:
        raise _not_finite(indices[k], values[k], path, line(k))
    for k in np.flatnonzero(indices < 1)[:1]:
        cure = "svmlight indices begin at 1; scikit-learn writes them so with dump_svmlight_file(..., zero_based=False)"
        raise DataError("a feature has index 0", cure, path=path, line=line(k))
    for k in np.flatnonzero(inner & (steps <= 0))[:1]:
        twice = f"index {indices[k]} stands twice"
        message = twice if steps[k] == 0 else f"index {indices[k]} comes after {indices[k - 1]}"
        raise DataError(message, _INCREASE, path=path, line=line(k))
    for k in np.flatnonzero(indices > limit)[:1]:
        raise reader.above(int(indices[k]), line(k))


def _diagnose_line(line: bytes, path: Path, number: int) -> DataError:
    """The first thing that is wrong with a line."""
    label, *tokens = line.split()
    if not _is_number(label):
        return DataError(
            f"the line begins with {_show_token(label)} where the label should stand",
            "begin it with the label, a number" + ("; of several labels write the one that is meant" * (b"," in label)),
            path=path,
            line=number,
        )
    for place, token in enumerate(tokens):
        if token.startswith(b"qid:"):
            if place == 0 and re.fullmatch(rb"qid:\d{1,18}", token):
                continue
            return DataError(
                f"misplaced or ragged {_show_token(token)}",
                "write qid: and a whole number after the label",
                path=path,
                line=number,
            )
        if not _PAIR.fullmatch(token) or not _is_number(token.partition(b":")[2]):
            last = "; the line looks truncated" if place == len(tokens) - 1 else ""
            return DataError(
                f"{_show_token(token)} is not index:value{last}",
                "write a whole number, a colon and a number",
                path=path,
                line=number,
            )
    raise AssertionError("unreachable: every token is sound")


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return b"_" not in token


def _show_token(token: bytes) -> str:
    text = token.decode("ascii", "replace")
    return repr(text if len(text) <= 30 else text[:30] + "...")


def _not_finite(index: int, value: float, path: Path, line: int) -> DataError:
    return DataError(f"feature {index} is {value}", "every value must be a finite number", path=path, line=line)


def _as_integers(values: array[int]) -> Integers:
    return np.array(values, dtype=np.int64)


def _as_floats(values: array[float]) -> Array:
    return np.array(values, dtype=np.float64)
