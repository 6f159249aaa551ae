"""How much a Parquet file unpacks to, by the headers of its pages: what its footer says of that nobody checks.

A page says before its bytes how many these are, and how many they become (the struct PageHeader of Parquet, in Thrift's
compact protocol). Headers are read one after the other; nothing is unpacked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

MOST_HEADER = 1 << 16
"""Bytes of the header of a page, with its statistics."""
MOST_DEPTH = 8
UNPACKED, PACKED = 2, 3
"""Fields of a PageHeader: the bytes that a page unpacks to, and those that it has."""
_INTEGERS = 4, 5, 6
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12


def unpacked_bytes(stream: IO[bytes], metadata: Any, columns: Iterable[int]) -> int:
    """Bytes that the pages of some columns unpack to.

    Parameters
    ----------
    stream : of the file
    metadata : pyarrow.parquet.FileMetaData
    columns : places of the columns

    Raises
    ------
    ValueError
        A page that is none, or reaches beyond its column.
    """
    wanted = [*columns]
    total = 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for k in wanted:
            one = row_group.column(k)
            starts = [one.data_page_offset]
            starts += [one.dictionary_page_offset] if one.has_dictionary_page else []
            at = min(start for start in starts if start is not None and start > 0)
            total += _of_pages(stream, at, at + one.total_compressed_size)
    return total


def _of_pages(stream: IO[bytes], at: int, end: int) -> int:
    total = 0
    while at < end:
        stream.seek(at)
        fields, length = _CompactReader(stream.read(min(MOST_HEADER, end - at))).header()
        packed, unpacked = fields.get(PACKED, -1), fields.get(UNPACKED, -1)
        if packed < 0 or unpacked < 0 or at + length + packed > end:
            raise ValueError("a page reaches beyond its column")
        total += unpacked
        at += length + packed
    return total


class _CompactReader:
    """Thrift's compact protocol, as far as the headers of pages go."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def header(self) -> tuple[dict[int, int], int]:
        """The whole numbers of a struct by field, and its length."""
        try:
            return self._read_struct(0), self.at
        except IndexError:
            raise ValueError("the header of a page is not whole") from None

    def _read_byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _read_varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._read_byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a number of a page is too long")

    def _read_zigzag(self) -> int:
        value = self._read_varint()
        return (value >> 1) ^ -(value & 1)

    def _read_struct(self, depth: int) -> dict[int, int]:
        found = dict[int, int]()
        field = 0
        while (head := self._read_byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._read_zigzag()
            kind = head & 15
            if kind in _INTEGERS:
                found[field] = self._read_zigzag()
            elif kind not in (_TRUE, _FALSE):  # whose value is their kind
                self._skip_value(kind, depth + 1)
        return found

    def _skip_value(self, kind: int, depth: int) -> None:
        if depth > MOST_DEPTH:
            raise ValueError("the header of a page is nested too deeply")
        if kind in (_TRUE, _FALSE, _BYTE):
            self.at += 1
        elif kind in _INTEGERS:
            self._read_varint()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            size = self._read_varint()  # which moves on itself
            self.at += size
        elif kind == _STRUCT:
            self._read_struct(depth)
        elif kind in (_LIST, _SET):
            head = self._read_byte()
            count = head >> 4 if head >> 4 < 15 else self._read_varint()
            for _ in range(min(count, MOST_HEADER)):
                self._skip_value(head & 15, depth + 1)
        else:
            raise ValueError("the header of a page holds what no page has")
