"""A benchmark read back from its JSON, to be shown again: `mipfs report bench.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mipfs.data.names import Numbered
from mipfs.errors import DataError
from mipfs.lab.studies.bench import Bench
from mipfs.lab.studies.bench_reading import KIND, load
from mipfs.lab.studies.bench_rows import rows_of
from mipfs.plumbing import strict_json


class Remembered(Numbered):
    """The names of the features that were chosen in any fold, which the JSON has; the others are numbered."""

    def __init__(self, count: int, known: Mapping[int, str]) -> None:
        super().__init__(count)
        self._known = dict(known)

    def made(self, j: int) -> str:
        """Name j."""
        return self._known.get(j) or super().made(j)


def is_bench(document: Any) -> bool:
    """Whether a JSON document is of a benchmark."""
    return isinstance(document, Mapping) and document.get("kind") == KIND


def bench_of(path: str | Path) -> Bench:
    """The benchmark in a file.

    Raises
    ------
    DataError
        No such file, or no benchmark.
    """
    setting, records, complete = load(path)
    document = strict_json.parsed(Path(path).read_text(encoding="utf-8"))
    try:
        p = int(document["n_features"])
        rows = rows_of(setting, records, p)
        shares = [[*line["shares"]] for line in document["rows"]]  # by name, in the order of the positions
        pairs = zip(rows, shares, strict=True)
        known = {j: name for row, own in pairs for (j, _), name in zip(row.shares, own, strict=True)}
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"is no benchmark ({error})", "give what `mipfs bench -o FILE` wrote", path=Path(path)
        ) from None
    return Bench(setting, Remembered(p, known), records, not complete)
