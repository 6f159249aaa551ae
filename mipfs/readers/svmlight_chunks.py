"""svmlight in pieces: plain lines are read by a kernel, any other one as `read_svmlight` reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import DataError
from mipfs.readers.chunks import PIECE, Chunk, skip
from mipfs.readers.files import MAX_FEATURES
from mipfs.readers.svmlight import read_line

RAGGED = "qid: stands on some lines only"


def svmlight_chunks(
    path: Path, stream: IO[bytes], n_features: int | None, position: dict[str, Any] | None
) -> Iterator[Chunk]:
    """The samples of an svmlight file.

    Parameters
    ----------
    path : named in messages
    stream : of the unpacked bytes
    n_features : the largest index allowed, `MAX_FEATURES` by default
    position : where an earlier reading was left, None at the beginning

    Raises
    ------
    DataError
        As `read_svmlight`, with the line; the first one that is wrong.
    """
    at = position or {"bytes": 0, "line": 0, "width": 0, "bags": None}
    skip(stream, at["bytes"], path)
    passed, line, width, has_bags, rest = at["bytes"], at["line"], at["width"], at["bags"], b""
    while True:
        read = stream.read(PIECE)
        whole, rest = _cut(rest + read, not read)
        if not whole:
            if not read:
                return
            continue
        piece = _Piece(path, whole, n_features or MAX_FEATURES, n_features is None, line)
        passed, line, width = passed + len(whole) - piece.added, piece.line, max(width, piece.width)
        if piece.labels.size:
            known = piece.bags >= 0
            has_bags = bool(known[0]) if has_bags is None else has_bags
            if np.any(known != has_bags):
                where = int(piece.lines[np.argmax(known != has_bags)])
                raise DataError(RAGGED, "give every sample its bag", path=path, line=where)
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


def _cut(text: bytes, at_end: bool) -> tuple[bytes, bytes]:
    """Whole lines, and what is left."""
    if at_end:
        return text, b""
    end = text.rfind(b"\n") + 1
    return text[:end], text[end:]


class _Piece:
    """Some whole lines, read.

    Attributes
    ----------
    added : 1 where the last line had no end
    line : lines up to here; width : the largest index
    """

    def __init__(self, path: Path, text: bytes, limit: int, is_open: bool, line: int) -> None:
        from mipfs.kernels.text import DONE, POWERS, Entries, Lines, parse

        self.added = int(not text.endswith(b"\n"))
        text = text + b"\n" * self.added
        raw = np.frombuffer(text, dtype=np.uint8)
        rows, most = int(np.count_nonzero(raw == 10)), raw.size // 4 + 2
        self.labels, self.bags = np.empty(rows), np.empty(rows, dtype=np.int64)
        self.lines, self.ends = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
        self.columns, self.values = np.empty(most, dtype=np.int32), np.empty(most)
        hard, state = np.empty((raw.size // 20 + 2, 3), dtype=np.int64), np.array([0, 0, 0, line, 0, 0])
        samples = Lines(self.labels, self.bags, self.lines, self.ends)
        entries = Entries(self.columns, self.values, hard)
        while parse(raw, int(state[5]), limit, POWERS, samples, entries, state) != DONE:
            end = text.index(b"\n", state[5])
            number = int(state[3]) + 1
            found = read_line(text[state[5] : end], path, number, limit, is_open)
            if found is not None:
                self._take(state, found, number)
            state[3], state[5] = number, end + 1
        n, e, h = (int(k) for k in state[:3])
        self.line, self.width = int(state[3]), int(state[4])
        self.labels, self.bags = self.labels[:n], self.bags[:n]
        self.lines, self.ends = self.lines[:n], self.ends[:n]
        self.columns, self.values = self.columns[:e], self.values[:e]
        self._read_hard(path, text, hard[:h])

    def _take(self, state: npt.NDArray[np.int64], found: tuple[float, int, Any, Any], number: int) -> None:
        """A line that Python has read."""
        label, bag, indices, values = found
        n, e, kept = int(state[0]), int(state[1]), values != 0.0
        end = e + int(np.count_nonzero(kept))
        self.columns[e:end], self.values[e:end] = indices[kept] - 1, values[kept]
        self.labels[n], self.bags[n], self.lines[n], self.ends[n] = label, bag, number, end
        state[0], state[1], state[4] = n + 1, end, max(int(state[4]), int(indices.max(initial=0)))

    def _read_hard(self, path: Path, text: bytes, hard: npt.NDArray[np.int64]) -> None:
        """Numbers of many digits, by Python; those that come out zero go."""
        if not hard.size:
            return
        self.values[hard[:, 0]] = [float(text[a:b]) for a, b in hard[:, 1:].tolist()]
        bad = hard[~np.isfinite(self.values[hard[:, 0]]), 0]
        if bad.size:
            line = int(self.lines[np.searchsorted(self.ends, bad[0], "right")])
            message = f"feature {self.columns[bad[0]] + 1} is {self.values[bad[0]]}"
            raise DataError(message, "every value must be a finite number", path=path, line=line)
        zero = self.values == 0.0
        if zero.any():
            self.ends = self.ends - np.concatenate([[0], np.cumsum(zero)])[self.ends]
            self.columns, self.values = self.columns[~zero], self.values[~zero]
