"""npz in pieces of rows. Its arrays are packed column by column or row by row, so it is read into memory first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.matrix import as_matrix
from mipfs.readers.chunks import Chunk
from mipfs.readers.columns import Label
from mipfs.readers.npz import read_npz

ROWS_AT_ONCE = 1 << 16


def memory_chunks(path: Path, label: Label, position: dict[str, Any] | None) -> Iterator[Chunk]:
    """The samples of an npz file."""
    table = read_npz(path, label)
    X = as_matrix(table.X, path=str(path))
    dense = not sparse.issparse(X)
    rows = sparse.csr_array(X)
    rows.eliminate_zeros()
    assert table.labels is not None
    begin = 0 if position is None else int(position["rows"])
    for start in range(begin, rows.shape[0], ROWS_AT_ONCE):
        at = slice(start, min(start + ROWS_AT_ONCE, rows.shape[0]))
        part = rows[at]
        yield Chunk(
            table.labels[at],
            np.diff(part.indptr).astype(np.int64),
            part.indices.astype(np.int32),
            part.data,
            int(X.shape[1]),
            None if table.bags is None else np.asarray(table.bags)[at].astype(np.int64),
            None if table.sample_weight is None else np.asarray(table.sample_weight, dtype=float)[at],
            None,
            {
                "rows": at.stop,
                "dense": dense,
                "label": table.label,
                "names": None if table.names is None else list(table.names),
            },
        )
