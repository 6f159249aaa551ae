"""Rows over features and groups of them (`mipfs.data.over_groups`), compiled for S."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mipfs.data.instance import Row
from mipfs.data.over_groups import over_features
from mipfs.selection.rows import Extras, Rows


def compile_rows(rows: Sequence[Row], index: Mapping[str, int], groups: Mapping[str, Sequence[str]]) -> Rows:
    """`Rows.of` rows whose names are features or, where no feature has that name, groups of them.

    Raises
    ------
    RowError
        A name that is neither; a coefficient that is none.
    """
    found = over_features(rows, index, groups)
    count = len(found.counted)
    extra = Extras(found.counted, np.zeros(count), np.ones(count), np.ones(count, bool))
    return Rows.of(found.rows, index, extra)
