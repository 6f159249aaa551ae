"""`mipfs convert`: one pass over a data file into runs sorted by column, and one over the runs into blocks of columns.

    1  read a piece, remember its labels, put its entries into a buffer; when that is full, sort it and write a run
    2  decide on blocks; for each gather its entries from the runs and write values, rows, sums and statistics
    3  write labels, names and manifest, and move the whole folder to its place

Every run and every block is on disk before the state says so. A conversion that was killed goes on behind the last of
them when it is called again, and ends with the same bytes; a source that changed meanwhile begins anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import numpy as np

from mipfs.convert.finish import finish
from mipfs.convert.kept import GrowingFile, has_runs, load_state, save_state
from mipfs.convert.prepared import ConversionRequest, survey_table
from mipfs.convert.spill import EntryBuffer
from mipfs.data.checks import memory as of_machine
from mipfs.data.instance import Scaling
from mipfs.data.recipe import Recipe
from mipfs.errors import DataError, LabelError, UsageError
from mipfs.plumbing.declared import NumberRange, check_arguments, show_value
from mipfs.readers import PREPARED, chunks
from mipfs.readers.beside import read_names, where_named
from mipfs.readers.chunks import Chunk
from mipfs.readers.columns import BAG, LABEL, WEIGHT
from mipfs.readers.files import MANIFEST, Width, format_of, plainly_opened
from mipfs.readers.memory_chunks import memory_chunks
from mipfs.readers.sidecar import DataDescription
from mipfs.readers.svmlight import svmlight_chunks
from mipfs.readers.table_chunks import table_chunks

MB = 1 << 20
LEAST_MEMORY = 16
"""Megabytes that a buffer takes at least."""
MOST_MEGABYTES = 1 << 24
"""Of a block or the memory that is asked for: more than any machine has, and no overflow in bytes."""
Progress = Callable[[int, int], None]


@check_arguments
def convert(
    data: str | Path,
    store: str | Path,
    *,
    dtype: Literal["float64", "float32"] = "float64",
    block: Annotated[int, NumberRange(1, MOST_MEGABYTES, of="megabytes")] = 32,
    memory: Annotated[int, NumberRange(LEAST_MEMORY, MOST_MEGABYTES, of="megabytes")] = 1024,
    label: str | None = None,
    positive: str | float | bool | None = None,
    n_features: Width | None = None,
    scale: Scaling | None = None,
    words: Sequence[str] | None = None,
    drop: Any = None,
    use: Any = None,
    impute: Any = None,
    types: Mapping[str, str] | None = None,
    missing: Any = None,
    progress: Progress | None = None,
) -> Path:
    """Write a column store, which `mipfs.read` opens without reading it.

    Parameters
    ----------
    data : svmlight, CSV (both also .gz, .bz2), Parquet; or npz, which is read into memory
    store : the folder to be made
    dtype : {"float64", "float32"}
        Of the stored values. The data is then these values, exactly; all sums are in float64.
    block : int >= 1
        Megabytes of a block of columns.
    memory : int >= 16
        Megabytes for the entries that are sorted at a time.
    label, positive, n_features, words, drop, use, impute, types, missing : as of `mipfs.read`
        What stands for missing values is found in passes over the table of its own, and the store remembers it.
    scale : {"none", "standard", "unit"}, optional
        What the store's description says of its scale, which commands and `mipfs.read` follow where they are told no
        other; the values are stored as they are. By default what the description of the data says.
    progress : callable, optional
        Hears how many megabytes of how many are done.

    Raises
    ------
    DataError
        What `mipfs.read` refuses; where more is wrong, the first that is met.
    UsageError
        The folder exists, or a description beside it that a scale would have to be written into; an option out of its
        range.
    """
    source = Path(data)
    place = Path(store)
    if not place.name or "\0" in str(place):
        raise UsageError(
            f"{show_value(str(store))} is no name of a folder that can be made; give one, such as data.store"
        )
    if os.path.isdir(source):
        raise DataError("this is a folder", "give a data file", path=source)
    kind = format_of(source)
    folder = place.with_name(place.name + ".unfinished")
    done, begun, is_half = (os.path.exists(path) for path in (place / MANIFEST, folder, folder / "store"))
    if done and begun and not is_half:
        shutil.rmtree(folder, ignore_errors=True)  # it was killed after the last step, or is about to do this itself
        return place
    if os.path.lexists(place):
        raise UsageError(f"{place}: exists already; remove it, or give another place")
    if scale is not None and os.path.lexists(beside := place.with_name(f"{place.name}.toml")):
        raise UsageError(f'{beside}: describes the store; write scale = "{scale}" into its [data] instead')
    parts = {"drop": drop, "use": use, "impute": impute, "types": types, "missing": missing}
    with plainly_opened(source):  # one that is not there leaves no folder
        pass
    with _locked_folder(folder, place), _nothing_left_of_nothing(folder):
        asked = replace(_request_of(source, kind, parts, words, label, memory * MB), scale=scale)
        state = _read(
            source, kind, folder, dtype, memory, (label, positive, n_features), asked, progress or _ignore_progress
        )
        made = finish(source, folder, place, state, dtype, block * MB, asked, progress or _ignore_progress)
    # What was open until now: Windows removes no such file, and the folder that held it was left.
    shutil.rmtree(folder, ignore_errors=True)
    return made


def _request_of(
    source: Path, kind: str, given: Mapping[str, Any], words: Sequence[str] | None, label: str | None, room: int
) -> ConversionRequest:
    """What is asked for, and what the .toml says where nothing is."""
    sidecar = DataDescription.beside(source)
    recipe = Recipe.of(**{name: sidecar.recipe[name] if value is None else value for name, value in given.items()})
    column = label if label is not None else sidecar.label or ("y" if kind == "npz" else LABEL)
    meant = tuple(sidecar.words if words is None else words)
    found = survey_table(source, kind, column, recipe, room, (column, BAG, WEIGHT), meant)
    return ConversionRequest(found, meant, column)


def _ignore_progress(done: int, total: int) -> None:
    """Nobody listens."""


@contextmanager
def _nothing_left_of_nothing(folder: Path) -> Iterator[None]:
    """Take the folder away after an error that leaves nothing to go on with.

    Nothing is where no run was written, and where the data or its description is wrong: they will be other ones. What
    the system does, such as a disk that is gone for a while, is gone on after.
    """
    try:
        yield
    except BaseException as error:
        is_wrong = isinstance(error, DataError) and not isinstance(error.__context__, OSError)
        if is_wrong or not has_runs(folder):
            shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def _locked_folder(folder: Path, place: Path) -> Iterator[None]:
    """The folder of what is unfinished, for this process only: the lock goes with it, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise UsageError(f"{place}: cannot be written: {error.strerror}; give another place for it") from None
    try:
        with suppress(ImportError):  # not every system has it
            import fcntl

            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{place}: another process is writing it; wait for that one") from None
            except OSError:  # a file system that knows no locks
                pass
        if os.path.lexists(place):  # whoever had the lock until now has written it, and has taken its folder away
            shutil.rmtree(folder, ignore_errors=True)
            raise UsageError(f"{place}: exists already; remove it, or give another place")
        yield
    finally:
        os.close(handle)


def _read(
    source: Path,
    kind: str,
    folder: Path,
    dtype: str,
    memory: int,
    options: tuple[Any, ...],
    asked: ConversionRequest,
    progress: Progress,
) -> dict[str, Any]:
    """The first pass: runs in `folder`, and what is known of the samples."""
    label, positive, n_features = options
    sidecar = DataDescription.beside(source)
    given = _stated_names(sidecar, kind, source)
    n_features = _feature_count(given, kind, n_features, source)
    with chunks.unpack_file(source) as (stream, hashed):
        size = os.path.getsize(source)
        about = [str(source.resolve()), size, os.stat(source).st_mtime_ns, dtype, label, positive, n_features]
        about += [asked.survey.recipe.document(), [*asked.words]] if asked.survey.recipe or asked.words else []
        state = load_state(folder, stamp := {"version": 1, "about": about})
        if state is None:
            for name in ("spill", "store"):
                shutil.rmtree(folder / name, ignore_errors=True)
            (folder / "spill").mkdir()
            state = {
                "stamp": stamp,
                "stage": "reading",
                "runs": 0,
                "rows": 0,
                "nnz": 0,
                "width": 0,
                "position": None,
                "labels": [],
                "first": [],
                "has": None,
                "blocks": {},
                "largest": 0.0,
            }
            save_state(folder, state)
        if state["stage"] != "reading":
            return state
        named_in = where_named(source, sidecar.names, given)
        found = _read_chunks(kind, source, stream, asked, n_features, state["position"], named_in)
        samples = SampleFiles(folder, source, state)
        buffer = EntryBuffer(min(memory * MB, of_machine()), dtype)
        for chunk in found:
            values = _as_stored_type(chunk, dtype, source)
            buffer.add(chunk.columns, samples.take(chunk), values)
            largest = max(state["largest"], float(np.abs(values).max(initial=0.0)))
            state |= {"largest": largest, "position": chunk.position, "width": chunk.width}
            if buffer.is_full:
                _write_run(folder, buffer, samples, state)
            progress(hashed.bytes // MB, size // MB)
        if buffer.size:
            _write_run(folder, buffer, samples, state)
        samples.close()
        if not state["rows"]:
            raise DataError("the file has no samples", "give at least one sample of each class", path=source)
        state |= {
            "sha256": hashed.digest(),
            "kind": kind,
            "width": max(state["width"], n_features or 0),
            "positive": positive if positive is not None else sidecar.positive,
            "given": given,
            "stage": "merging",
        }
        save_state(folder, state)
        return state


def _stated_names(sidecar: DataDescription, kind: str, source: Path) -> Sequence[str] | None:
    """The names of the features that stand beside the data: those of the .toml, else the lines of ``names.txt``."""
    if sidecar.names is not None or kind not in ("svmlight", "npz"):
        return sidecar.names
    return read_names(source)


def _feature_count(given: Sequence[str] | None, kind: str, n_features: int | None, source: Path) -> int | None:
    """How many features there are, where svmlight leaves that open."""
    if kind != "svmlight":
        if n_features is not None:
            raise UsageError(f"n_features = {n_features}: only svmlight leaves the number of features open")
        return None
    if given is None or n_features is None:
        return n_features if given is None else len(given)
    if len(given) != n_features:
        message = f"{len(given)} names are given for the features, but {n_features} features are asked for"
        raise DataError(message, "make the two agree", path=source)
    return n_features


def _read_chunks(
    kind: str,
    source: Path,
    stream: IO[bytes],
    asked: ConversionRequest,
    n_features: int | None,
    position: dict[str, Any] | None,
    named_in: str | None,
) -> Iterator[Chunk]:
    if kind == "svmlight":
        return svmlight_chunks(source, stream, n_features, position, named_in)
    if kind in PREPARED:
        found = asked.survey
        return table_chunks(kind, source, stream, asked.label, position, found.reading, found.fill)
    if kind == "npz":
        return memory_chunks(source, asked.label, position)
    raise DataError(f"{kind} files are read as a whole alone", "write it as CSV, Parquet, svmlight or npz", path=source)


def _as_stored_type(chunk: Chunk, dtype: str, source: Path) -> Any:
    """The values as they are stored; one that is beyond float32 is refused."""
    if dtype == "float64":
        return chunk.values
    with np.errstate(over="ignore"):
        values = chunk.values.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row = int(np.searchsorted(np.cumsum(chunk.sizes), bad[0], "right"))
        message = f"the value {chunk.values[bad[0]]} is beyond float32"
        line = None if chunk.lines is None else int(chunk.lines[row])
        raise DataError(message, "give --dtype float64", path=source, line=line)
    return values


def _write_run(folder: Path, buffer: EntryBuffer, samples: SampleFiles, state: dict[str, Any]) -> None:
    """Write a run, and say so."""
    buffer.write(folder / "spill", state["runs"])
    samples.settle()
    state["runs"] += 1
    save_state(folder, state)


class SampleFiles:
    """Labels, bags and weights of the samples, in files that grow."""

    def __init__(self, folder: Path, source: Path, state: dict[str, Any]) -> None:
        self.state = state
        self.source = source
        self.rows = int(state["rows"])
        self.nnz = int(state["nnz"])
        kinds = (("codes", "i1"), ("bags", "<i8"), ("weights", "<f8"))
        self._files = {name: GrowingFile(folder / f"{name}.bin", kind, self.rows) for name, kind in kinds}
        self._labels = list(state["labels"])
        self._first = list(state["first"])

    def take(self, chunk: Chunk) -> Any:
        """Take in samples; the row of every entry."""
        assert chunk.labels is not None
        n = chunk.labels.size
        if self.rows + n > np.iinfo(np.int32).max:
            raise DataError(f"more than {np.iinfo(np.int32).max} samples", "leave some out", path=self.source)
        found, first, codes = np.unique(chunk.labels, return_index=True, return_inverse=True)
        for k in np.argsort(first).tolist():
            value = found[k].item()
            if value not in self._labels:
                self._labels.append(value)
                self._first.append(None if chunk.lines is None else int(chunk.lines[first[k]]))
                self._check_labels(self.rows + int(first[k]))
        self._files["codes"].add(np.array([self._labels.index(value.item()) for value in found])[codes])
        self.state["has"] = [chunk.bags is not None, chunk.weights is not None]
        if chunk.bags is not None:
            self._files["bags"].add(chunk.bags)
        if chunk.weights is not None:
            self._files["weights"].add(chunk.weights)
        rows = np.repeat(np.arange(self.rows, self.rows + n, dtype=np.int32), chunk.sizes)
        self.rows, self.nnz = self.rows + n, self.nnz + chunk.values.size
        self.state |= {"rows": self.rows, "nnz": self.nnz, "labels": self._labels, "first": self._first}
        return rows

    def _check_labels(self, row: int) -> None:
        if len(self._labels) > 2:
            *others, third = map(_show_value, self._labels)
            where = f" in row {row + 1}" if self._first[-1] is None else ""
            raise LabelError(
                f"more than two labels: {third}{where} after {' and '.join(others)}",
                "keep two classes",
                path=self.source,
                line=self._first[-1],
            )
        if len({type(value) for value in self._labels}) > 1:
            raise LabelError(
                f"the labels are numbers and words: {' and '.join(map(_show_value, self._labels))}",
                "write both alike",
                path=self.source,
                line=self._first[-1],
            )

    def settle(self) -> None:
        """What was taken in is on disk."""
        for file in self._files.values():
            file.settle()

    def close(self) -> None:
        """No more samples come."""
        for file in self._files.values():
            file.close()


def _show_value(value: Any) -> str:
    whole = isinstance(value, float) and value == int(value) and abs(value) < 2**53
    return repr(int(value) if whole else value)
