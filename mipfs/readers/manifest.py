"""The manifest of a column store: what it says of itself, every field of the right kind, and no more than there is."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from mipfs.errors import DataError
from mipfs.plumbing import strict_json
from mipfs.plumbing.declared import Excess, NumberRange
from mipfs.plumbing.typed_json import FieldError, FileName, Such, read
from mipfs.readers.files import MANIFEST, MAX_FEATURES

FORMAT = "mipfs column store"
VERSION = 1
AGAIN = "convert the data again, or fetch the store again"
_PIECE = 1 << 20
_MOST_SAMPLES = 1 << 40
"""A larger number of samples is taken for an error."""


def crc_of_file(path: Path) -> int:
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
        return strict_json.parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", AGAIN, path=path) from None
    except ValueError as error:
        raise DataError(f"not {what}: {error}", AGAIN, path=path) from None


def _are_two(labels: dict[str, Any]) -> bool:
    return labels.keys() == {"negative", "positive"} and labels["negative"] != labels["positive"]


_Size = Annotated[int, NumberRange(0, 1 << 62)]
_Place = Annotated[int, NumberRange(0, MAX_FEATURES)]


@dataclass(frozen=True)
class Manifest:
    """What a store says of itself; fields as in manifest.json."""

    n_samples: Annotated[int, NumberRange(1, _MOST_SAMPLES)]
    n_features: Annotated[int, NumberRange(1, MAX_FEATURES)]
    nnz: _Size
    largest: Excess
    dtype: Annotated[str, Such(lambda dtype: dtype in ("float32", "float64"))]
    dense: bool
    labels: Annotated[dict[str, str | int | float], Such(_are_two)]
    label: str | None
    sha256: str
    source: dict[str, Any]
    blocks: list[tuple[_Place, _Place, Excess]]
    files: dict[FileName, tuple[_Size, _Size]]

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
        try:
            found: Manifest = read(stated, cls)
        except FieldError as error:
            raise DataError(f"not a complete manifest: {error}", AGAIN, path=place) from None
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
