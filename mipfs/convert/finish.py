"""The second half of `mipfs convert`: from runs to blocks of columns, and the manifest."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.convert.kept import save, save_state, write_text
from mipfs.convert.prepared import ConversionRequest, document
from mipfs.convert.spill import SortedRuns
from mipfs.data import checks
from mipfs.data.blocked import MOST_COLUMNS, Csc, split_ranges, summary
from mipfs.data.matrix import DENSE_ABOVE, Digest
from mipfs.errors import DataError
from mipfs.plumbing.arrays import Integers
from mipfs.readers import check_description
from mipfs.readers.columns import Table
from mipfs.readers.files import DESCRIPTION, MANIFEST, description_of
from mipfs.readers.labels import map_labels
from mipfs.readers.manifest import FORMAT, VERSION, Manifest, crc_of_file
from mipfs.readers.sidecar import DataDescription
from mipfs.readers.store import RECIPE
from mipfs.readers.table_chunks import name_columns

MB = 1 << 20
CODES_AT_ONCE = 1 << 20
"""Rows whose classes are counted together."""


def finish(
    source: Path,
    folder: Path,
    place: Path,
    state: dict[str, Any],
    dtype: str,
    block: int,
    asked: ConversionRequest,
    progress: Callable[[int, int], None],
) -> Path:
    """Write the blocks of columns and the manifest, and move the store to its place."""
    store = folder / "store"
    n = int(state["rows"])
    store.mkdir(exist_ok=True)
    order, names, groups, apart = _name_columns(source, state, asked)
    check_description(DataDescription.beside(source), names, len(order), groups, asked.survey.recipe)
    runs = SortedRuns(folder / "spill", state["runs"])
    p = len(order)
    if p == 0:
        raise DataError("no sample has a feature", "write index:value after the labels", path=source)
    counts = runs.counts(max(int(state["width"]), 1))
    counts = counts[order] if isinstance(order, np.ndarray) else counts
    dense = state["position"].get("dense") if state["kind"] == "npz" else None
    dense = int(counts.sum()) > DENSE_ABOVE * n * p if dense is None else dense
    item = np.dtype(dtype).itemsize
    ranges = _dense_ranges(n, p, block // item) if dense else split_ranges(counts, max(1, block // (item + 4)))
    plan = [dense, ranges]
    digest = Digest((n, p))
    files = state["blocks"]
    if state.get("plan") != json.loads(json.dumps(plan)):  # another size of blocks was asked for
        files = {}
        state |= {"plan": plan, "blocks": {}, "most": []}
    for k, (start, stop) in enumerate(ranges):
        chosen = order[start:stop]
        values = runs.block(chosen, counts[start:stop], dtype)
        digest.add(sparse.csc_array(tuple(values), shape=(n, stop - start)))
        if f"{k:05d}" not in files:
            files[f"{k:05d}"], most = _write_block(store, k, _dense_columns(values, n) if dense else values, n)
            state |= {"most": [*state["most"][:k], most], "blocks": files}
            save_state(folder, state)
        progress(stop, p)
    labels, y_files = _write_samples(source, folder, store, state)
    listed = {name: one for block_files in files.values() for name, one in block_files.items()} | y_files
    if names is not None:
        write_text(store / "names.json", json.dumps({"names": names, "groups": groups, **apart}, ensure_ascii=False))
        listed["names.json"] = _size_and_crc(store / "names.json")
    if asked.survey.recipe:
        write_text(store / RECIPE, json.dumps(document(asked.survey, groups), ensure_ascii=False))
        listed[RECIPE] = _size_and_crc(store / RECIPE)
    description = DataDescription.beside(source)
    if text := description.text if asked.scale is None else description.with_scale(asked.scale):
        write_text(store / DESCRIPTION, text)
    about = {"file": source.name, "bytes": state["stamp"]["about"][1], "sha256": state["sha256"]}
    label = state["position"].get("label")
    manifest = Manifest(
        n, p, int(counts.sum()), float(state["largest"]), dtype, bool(dense), labels, label, digest.hexdigest(), about,
        [(start, stop, state["most"][k]) for k, (start, stop) in enumerate(ranges)], listed,
    )  # fmt: skip
    stated = {"format": FORMAT, "version": VERSION} | dataclasses.asdict(manifest)
    write_text(store / MANIFEST, json.dumps(stated, indent=1, ensure_ascii=False))
    os.replace(store, place)
    shutil.rmtree(folder, ignore_errors=True)
    return place


def _name_columns(
    source: Path, state: dict[str, Any], asked: ConversionRequest
) -> tuple[Integers | range, list[str] | None, dict[str, list[str]], dict[str, Any]]:
    """Provisional columns in the order of the features, what these are called, and what was kept and left out."""
    position = state["position"]
    given = state["given"]
    if state["kind"] == "svmlight":
        return range(int(state["width"])), given, {}, {}
    if state["kind"] == "npz":
        names = position["names"] or given
        if names is not None and len(names) != int(state["width"]):
            raise DataError(
                f"{len(names)} names for {state['width']} features", "give one name per feature", path=source
            )
        return range(int(state["width"])), None if names is None else [*names], {}, {}
    columns = position["names"]
    words = {
        name: [f"{name}={word}" for word in position["words"][name]] for name in columns if name in position["words"]
    }
    described = DataDescription.beside(source)
    if [*asked.words] == described.words:
        described.check_words(words)
    gone = asked.without_ids(words, int(state["rows"]), source)
    order, names, groups, others = name_columns(position, [name for name in columns if name not in gone])
    if not names:
        raise DataError("no feature column", "give at least one column beside the labels", path=source)
    if given is not None and given != names:
        raise DataError(
            "[features] names differ from those in the data file",
            "leave the list out: the data file names its features",
            path=description_of(source),
        )
    checks.feature_names(names, len(names), str(source))
    apart: dict[str, Any] = {"kept": [*dict.fromkeys(asked.words)], "left_out": gone}
    apart |= {"others": others} if others else {}
    return np.array(order, dtype=np.int64), names, groups, apart


def _dense_ranges(n: int, p: int, most: int) -> list[tuple[int, int]]:
    width = min(max(1, most // n), MOST_COLUMNS)
    return [(start, min(start + width, p)) for start in range(0, p, width)]


def _dense_columns(values: Csc, n: int) -> Any:
    """The columns as an array in Fortran order."""
    w = values.indptr.size - 1
    full = np.zeros((n, w), dtype=values.data.dtype, order="F")
    full[values.indices, np.repeat(np.arange(w), np.diff(values.indptr))] = values.data
    return full


def _write_block(store: Path, number: int, values: Any, n: int) -> tuple[dict[str, list[int]], float]:
    """The files of a block, name to size and checksum; and the largest Σx² of its columns."""
    sums, known = summary(values, n)
    arrays = values._asdict() if isinstance(values, Csc) else {"data": values}
    arrays |= {"sums": sums, "statistics": np.array(dataclasses.astuple(known))}
    found = {}
    for name, array in arrays.items():
        path = store / f"{number:05d}.{name}.npy"
        save(path, array)
        found[path.name] = _size_and_crc(path)
    return found, min(float(known.squares.max(initial=0.0)), sys.float_info.max)


def _size_and_crc(path: Path) -> list[int]:
    return [os.path.getsize(path), crc_of_file(path)]


def _write_samples(
    source: Path, folder: Path, store: Path, state: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """y, bags and weights; the labels."""
    n = int(state["rows"])
    given = np.array(state["labels"])
    lines = None if None in state["first"] else np.array(state["first"])
    codes = np.memmap(folder / "codes.bin", dtype="i1", mode="r")
    counts = np.zeros(given.size, dtype=np.int64)
    for at in range(0, n, CODES_AT_ONCE):
        counts += np.bincount(codes[at : at + CODES_AT_ONCE], minlength=given.size)
    signs, labels = map_labels(Table(None, given, lines=lines), state["positive"], source, counts)
    found = {}
    arrays = {"y": signs[codes]}
    has_bags, has_weights = state["has"]
    if has_bags:
        arrays["bags"] = np.memmap(folder / "bags.bin", dtype="<i8", mode="r")
    if has_weights:
        weights = np.memmap(folder / "weights.bin", dtype="<f8", mode="r")
        arrays["sample_weight"] = checks.sample_weights(weights, n, str(source))
    for name, array in arrays.items():
        save(store / f"{name}.npy", array)
        found[f"{name}.npy"] = _size_and_crc(store / f"{name}.npy")
    return dataclasses.asdict(labels), found
