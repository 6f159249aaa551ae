"""The manifest of a column store: what it says of itself, every field of the right kind, and no more than there is."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from mipfs.errors import DataError
from mipfs.plumbing import strict_json
from mipfs.readers.files import MANIFEST, MAX_FEATURES

FORMAT = "mipfs column store"
VERSION = 1
AGAIN = "convert the data again, or fetch the store again"
_PIECE = 1 << 20
_MOST_SAMPLES = 1 << 40
"""A larger number of samples is taken for an error."""


def crc(path: Path) -> int:
    """CRC-32 of a file."""
    found = 0
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            found = zlib.crc32(piece, found)
    return found


def document(path: Path, what: str) -> Any:
    """The JSON in a file of a store.

    Raises
    ------
    DataError
        No such file, or no JSON.
    """
    try:
        return strict_json.parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", AGAIN, path=path) from None
    except ValueError as error:
        raise DataError(f"not {what}: {error}", AGAIN, path=path) from None


@dataclass(frozen=True)
class Manifest:
    """What a store says of itself; fields as in manifest.json."""

    n_samples: int
    n_features: int
    nnz: int
    largest: float
    dtype: str
    dense: bool
    labels: dict[str, Any]
    label: str | None
    sha256: str
    source: dict[str, Any]
    blocks: list[list[Any]]
    files: dict[str, list[int]]

    @classmethod
    def of(cls, path: Path) -> Manifest:
        """Read and check the manifest of a store.

        Raises
        ------
        DataError
            No manifest of this version, or one that does not hold together.
        """
        place = path / MANIFEST
        stated = document(place, "a manifest")
        if not isinstance(stated, dict) or stated.get("format") != FORMAT:
            raise DataError(f"its format is not {FORMAT!r}", "give a folder that `mipfs convert` made", path=place)
        if stated.get("version") != VERSION:
            raise DataError(f"version {stated.get('version')!r}; this reads {VERSION}", AGAIN, path=place)
        for name, holds in _KINDS.items():
            if name not in stated:
                raise DataError(f"not a complete manifest: it has no {name!r}", AGAIN, path=place)
            if not holds(stated[name]):
                raise DataError(f"{name!r} is not what a manifest has there", AGAIN, path=place)
        found = cls(**{name: stated[name] for name in _KINDS})
        if not found._holds_together():
            raise DataError("the manifest does not hold together", AGAIN, path=place)
        return found

    def _holds_together(self) -> bool:
        """Whether the blocks follow one another, and the files are large enough for what is said to be in them.

        A header may claim any number of columns: nothing is made for them before their files were found to be there.
        """
        ends = [0, *(stop for _, stop, _ in self.blocks)]
        if [start for start, _, _ in self.blocks] != ends[:-1] or ends[-1] != self.n_features:
            return False
        sizes = {name: size for name, (size, _) in self.files.items()}
        for k, (start, stop, _) in enumerate(self.blocks):
            if stop <= start or sizes.get(f"{k:05d}.statistics.npy", 0) < 4 * 8 * (stop - start):
                return False
        return sizes.get("y.npy", 0) >= 8 * self.n_samples and self.nnz <= self.n_samples * self.n_features


def _is_whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _is_size(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0 and math.isfinite(value)


def _is_label(value: Any) -> bool:
    return type(value) in (str, int, float)


def _are_labels(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() != {"negative", "positive"}:
        return False
    return all(map(_is_label, value.values())) and value["negative"] != value["positive"]


def _is_block(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 3:
        return False
    return all(_is_whole(end, 0, MAX_FEATURES) for end in value[:2]) and _is_size(value[2])


def _is_file(name: str, value: Any) -> bool:
    plain = name == PurePath(name).name and name not in ("", "..") and "\0" not in name
    return plain and isinstance(value, list) and len(value) == 2 and all(_is_whole(one, 0, 1 << 62) for one in value)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "n_samples": lambda value: _is_whole(value, 1, _MOST_SAMPLES),
    "n_features": lambda value: _is_whole(value, 1, MAX_FEATURES),
    "nnz": lambda value: _is_whole(value, 0, 1 << 62),
    "largest": _is_size,
    "dtype": lambda value: value in ("float32", "float64"),
    "dense": lambda value: isinstance(value, bool),
    "labels": _are_labels,
    "label": lambda value: value is None or isinstance(value, str),
    "sha256": lambda value: isinstance(value, str),
    "source": lambda value: isinstance(value, dict),
    "blocks": lambda value: isinstance(value, list) and all(map(_is_block, value)),
    "files": lambda value: isinstance(value, dict) and all(_is_file(name, one) for name, one in value.items()),
}
"""The fields of a manifest, and what each holds."""
