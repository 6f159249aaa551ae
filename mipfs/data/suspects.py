"""Columns and rows that are seldom meant: a leak of the labels, a constant column, a copy of a column or of a row.

One pass over the data, some columns at a time: of a column the range in each class, and a hash; of a row a hash. What
hashes say is equal is compared. What chance makes often is not named: a column separates three rows of each class by
chance, two rare words stand in the same rows, and short rows of words repeat.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import gammaln

from mipfs.data.instance import Instance
from mipfs.data.names import Numbered
from mipfs.errors import SuspectWarning
from mipfs.plumbing.arrays import Array, Integers
from mipfs.report.numbers import first_of

Hashes = npt.NDArray[np.uint64]
AT_ONCE = 1 << 21
"""Numbers that are looked at together."""
CHANCE = 1e-3
"""What would be so of independent columns with a larger probability than this is not named."""
SHOWN = 3
"""Columns that a warning names."""
ASKED = 8
"""Rows that stand there twice, of which it is asked whether chance made them."""
COPIES = 100
"""Columns that may be copies and are compared."""
SAMPLE = 2000
"""Rows that mostly show that chance made no copy of a column."""


@dataclass
class Suspects:
    """What a look at the data found.

    Attributes
    ----------
    separating : columns that separate the classes alone
    constant : columns that have one value
    copies : pairs of a column and an earlier one that it equals
    rows : how many rows stand there before, with their label
    pair : two of these
    """

    separating: list[int] = field(default_factory=list)
    constant: list[int] = field(default_factory=list)
    copies: list[tuple[int, int]] = field(default_factory=list)
    rows: int = 0
    pair: tuple[int, int] = (0, 0)


def warn_of_suspects(instances: Sequence[Instance], where: str, stacklevel: int = 3) -> None:
    """Say what is seldom meant of the data: of several classes' data, which share their columns, once.

    Parameters
    ----------
    instances : sequence of Instance
    where : what they are called, a file or an argument
    stacklevel : as `warnings.warn` takes it

    Warns
    -----
    SuspectWarning
        One for every kind.
    """
    first = instances[0]
    if not first.block().is_stored:
        return
    found = find_suspects(first)
    apart = {j: first.labels.positive for j in found.separating} if len(instances) > 1 else {}
    for one in instances[1:]:
        apart |= {j: one.labels.positive for j in find_suspects(one, only_separating=True).separating}
    for text in _describe_suspects(found, first, apart):
        warnings.warn(f"{where}: {text}", SuspectWarning, stacklevel=stacklevel)


def _describe_suspects(found: Suspects, data: Instance, apart: dict[int, Any]) -> Iterator[str]:
    """One text for every kind that was found; `apart`: of several classes, the class that a column separates."""
    names = data.feature_names
    columns = {f"{name}={word}": name for name, words in data.words.items() for word in words}
    separating = [*apart] or found.separating
    if separating:
        one, it = ("separates", "it") if len(separating) == 1 else ("separate", "each")
        told = [
            f"{names[j]!r} ({_plain_label(apart[j])!r} from the rest)" if j in apart else repr(names[j])
            for j in separating
        ]
        drop = "drop"
        if any(names[j] in columns for j in separating):
            whole = list(dict.fromkeys(columns.get(names[j], names[j]) for j in separating))
            drop += f" {first_of(whole, SHOWN, repr)}"
        yield (
            f"{first_of(told, SHOWN, str)} {one} the classes alone: no value of one class lies among those of the "
            f"other. Leave {it} out ({drop}) if the value is known only once the label is"
        )
    if found.constant:
        gone = list(dict.fromkeys(columns.get(names[j], names[j]) for j in found.constant))
        have = "is constant" if len(gone) == 1 else "are constant"
        yield f"{first_of(gone, SHOWN, repr)} {have}, one value in all rows, which tells nothing; leave out (drop)"
    if found.copies:
        told = [f"{names[j]!r} of {names[k]!r}" for j, k in found.copies]
        what = "a duplicate" if len(told) == 1 else "duplicates"
        drop = "drop, by its column" if any(names[j] in columns for pair in found.copies for j in pair) else "drop"
        yield f"{what}, equal in all rows: {first_of(told, SHOWN, str)}; leave one of the two out ({drop})"
    if found.rows:
        count = "1 row is a duplicate" if found.rows == 1 else f"{found.rows} rows are duplicates"
        before, again = (i + 1 for i in found.pair)
        yield (
            f"{count} of an earlier one, all values and the label alike, as row {again} is of row {before}: "
            "where these are copies, a fold is tested on what it was trained on"
        )


def _plain_label(label: Any) -> Any:
    """A label in a message: 'b' rather than np.str_('b')."""
    return label.item() if isinstance(label, np.generic) else label


def find_suspects(data: Instance, only_separating: bool = False) -> Suspects:
    """What is suspect of data whose columns lie in memory.

    Parameters
    ----------
    data : Instance
    only_separating : whether nothing else is looked for
    """
    values = data.block().values
    n, p = data.n_samples, data.n_features
    above = data.y > 0
    found = Suspects()
    rows = np.zeros(n, dtype=np.uint64)
    keys, ids = list[Hashes](), list[Integers]()
    may_separate = _log_ways(n, int(above.sum())) > np.log(2 * p / CHANCE)
    for part in _column_parts(values, above):
        if may_separate:
            found.separating += part.ids[part.separates()].tolist()
        if only_separating:
            continue
        same = part.is_constant()
        found.constant += part.ids[same].tolist()
        keys.append(part.hash_rows(rows)[~same])
        ids.append(part.ids[~same])
    if only_separating:
        return found
    if sparse.issparse(values) and not isinstance(data.feature_names, Numbered):
        found.constant = np.union1d(found.constant, np.flatnonzero(np.diff(values.indptr) == 0)).astype(int).tolist()
    if keys:
        found.copies = _find_copies(values, np.concatenate(keys), np.concatenate(ids))
    found.rows, found.pair = _find_repeated(
        values, rows + _hash_numbers(above.astype(np.uint64) + np.uint64(1)), data.y
    )
    return found


def _log_ways(n: int, k: Any) -> Any:
    """The logarithm of the number of ways to choose k of n."""
    return gammaln(n + 1) - gammaln(np.add(k, 1)) - gammaln(np.subtract(n, k) + 1)


def _hash_numbers(numbers: Hashes) -> Hashes:
    """A hash of each whole number (splitmix64), odd."""
    z = numbers * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((z ^ (z >> np.uint64(31))) | np.uint64(1))


def _float_bits(values: Array) -> Hashes:
    """The bits of numbers, 0 of both zeros; what lies high lies low too, where products keep it."""
    bits = np.ascontiguousarray(values.T + 0.0).view(np.uint64).T
    bits ^= bits >> np.uint64(32)
    return np.asarray(bits)


@dataclass(frozen=True, eq=False)
class _Dense:
    """Some columns (n, k) that are stored in full."""

    ids: Integers
    values: Array
    above: npt.NDArray[np.bool_]

    def is_constant(self) -> npt.NDArray[np.bool_]:
        """Whether all rows have one value."""
        return np.asarray(self.values.min(axis=0) == self.values.max(axis=0))

    def separates(self) -> npt.NDArray[np.bool_]:
        """Whether no value of one class lies among those of the other."""
        one, other = (np.take(self.values.T, np.flatnonzero(of), axis=1) for of in (self.above, ~self.above))
        return np.asarray((one.min(axis=1) > other.max(axis=1)) | (one.max(axis=1) < other.min(axis=1)))

    def hash_rows(self, rows: Hashes) -> Hashes:
        """The hashes of the columns; what they add to those of the rows is added."""
        bits = _float_bits(self.values)
        rows += (bits * _hash_numbers(self.ids.astype(np.uint64))).sum(axis=1)
        return np.asarray(_hash_numbers(np.arange(rows.size, dtype=np.uint64)) @ bits)


@dataclass(frozen=True, eq=False)
class _Sparse:
    """Some columns of which each has an entry: entry by entry the value, its row and its column's place."""

    ids: Integers
    starts: Integers
    data: Array
    rows: Integers
    above: npt.NDArray[np.bool_]

    def _column_ranges(self, of: npt.NDArray[np.bool_], count: int) -> tuple[Array, Array]:
        """The smallest and the largest value of every column in `count` rows, those of the entries `of` among them."""
        low = np.minimum.reduceat(np.where(of, self.data, np.inf), self.starts)
        high = np.maximum.reduceat(np.where(of, self.data, -np.inf), self.starts)
        full = np.add.reduceat(of.astype(np.int64), self.starts) == count
        return np.where(full, low, np.minimum(low, 0.0)), np.where(full, high, np.maximum(high, 0.0))

    def is_constant(self) -> npt.NDArray[np.bool_]:
        """Whether all rows have one value."""
        low, high = self._column_ranges(np.ones(self.data.size, dtype=bool), self.above.size)
        return np.asarray(low == high)

    def separates(self) -> npt.NDArray[np.bool_]:
        """Whether no value of one class lies among those of the other."""
        of = self.above[self.rows]
        one = self._column_ranges(of, int(self.above.sum()))
        other = self._column_ranges(~of, int(self.above.size - self.above.sum()))
        return np.asarray((one[0] > other[1]) | (one[1] < other[0]))

    def hash_rows(self, rows: Hashes) -> Hashes:
        """The hashes of the columns; what they add to those of the rows is added."""
        bits = _float_bits(self.data)
        counts = np.diff(np.append(self.starts, self.data.size))
        np.add.at(rows, self.rows, bits * np.repeat(_hash_numbers(self.ids.astype(np.uint64)), counts))
        return np.asarray(np.add.reduceat(bits * _hash_numbers(self.rows.astype(np.uint64)), self.starts))


def _column_parts(values: Any, above: npt.NDArray[np.bool_]) -> Iterator[_Dense | _Sparse]:
    """The columns, some at a time; of sparse ones those with entries."""
    if not sparse.issparse(values):
        step = max(1, AT_ONCE // values.shape[0])
        for start in range(0, values.shape[1], step):
            part = values[:, start : start + step]
            yield _Dense(np.arange(start, start + part.shape[1]), part, above)
        return
    ends = values.indptr
    used = np.flatnonzero(np.diff(ends))
    cuts = np.flatnonzero(np.diff(ends[used] // AT_ONCE, prepend=-1))
    for first, last in zip(cuts, [*cuts[1:], used.size], strict=True):
        ids = used[first:last]
        span = slice(ends[ids[0]], ends[ids[-1] + 1])
        yield _Sparse(ids, ends[ids] - ends[ids[0]], values.data[span], values.indices[span], above)


def _find_copies(values: Any, keys: Hashes, ids: Integers) -> list[tuple[int, int]]:
    """Columns `ids` that equal an earlier one, with it; of `COPIES` at most that have the same hash."""
    _, first, of, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    later = np.flatnonzero((counts[of] > 1) & (first[of] != np.arange(of.size)))[:COPIES]
    found = []
    for k in later:
        j, earlier = int(ids[k]), int(ids[first[of[k]]])
        pair = values[:, [earlier, j]]
        pair = pair.toarray() if sparse.issparse(pair) else pair
        if np.array_equal(pair[:, 0], pair[:, 1]) and not _by_chance(pair[:, 0], ids.size):
            found.append((j, earlier))
    return found


def _by_chance(column: Array, p: int) -> bool:
    """Whether two of `p` independent columns with the values of this one are equal with more than a small chance."""
    for some in (column[:: max(1, column.size // SAMPLE)], column):  # of fewer rows there are fewer ways
        ways = gammaln(some.size + 1) - gammaln(np.unique(some, return_counts=True)[1] + 1.0).sum()
        if ways >= 2 * np.log(p) - np.log(CHANCE):
            return False
    return True


def _find_repeated(values: Any, keys: Hashes, y: Array) -> tuple[int, tuple[int, int]]:
    """How many rows stand there before with their label, and two of them; none where chance makes such rows.

    Chance does not where a row has a value that no row but its copies has, as measured numbers are.
    """
    _, first, of, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    later = np.flatnonzero(first[of] != np.arange(of.size))
    if not later.size:
        return 0, (0, 0)
    asked = later[np.linspace(0, later.size - 1, min(ASKED, later.size)).astype(int)]
    pairs = [(int(first[of[i]]), int(i)) for i in asked]
    told = [pair for pair in pairs if _is_copy(values, y, *pair, int(counts[of[pair[1]]]))]
    return (int(later.size), told[0]) if 2 * len(told) > len(pairs) else (0, (0, 0))


def _is_copy(values: Any, y: Array, one: int, other: int, count: int) -> bool:
    """Whether two rows are equal with their label, and have a value in common that no more than `count` rows have."""
    if sparse.issparse(values):
        values = values[:, np.unique(values[[one, other]].tocoo().col)]
        values = values if values.shape[1] else np.zeros((y.size, 1))
    if y[one] != y[other]:
        return False
    step = max(1, AT_ONCE // y.size)
    parts = [slice(start, start + step) for start in range(0, values.shape[1], step)]
    if not all(np.array_equal(*_as_dense(values[[one, other], part])) for part in parts):
        return False
    held = (_as_dense(values[:, part]) for part in parts)
    return any(bool(np.any(np.count_nonzero(part == part[one], axis=0) <= count)) for part in held)


def _as_dense(part: Any) -> Array:
    """A few columns, or two rows, as an array."""
    return np.asarray(part.toarray() if sparse.issparse(part) else part)
