"""Formats by suffix, compression, and files that cannot be read."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest

from mipfs.errors import DataError
from mipfs.readers import read
from mipfs.readers.files import description_of, format_of, opened


@pytest.mark.parametrize(
    ("name", "kind", "description"),
    [
        ("a.svm", "svmlight", "a.toml"),
        ("a.TXT", "svmlight", "a.toml"),
        ("a.svm.gz", "svmlight", "a.toml"),
        ("a.gz", "svmlight", "a.toml"),
        ("a.libsvm.bz2", "svmlight", "a.toml"),
        ("news20.binary", "svmlight", "news20.toml"),
        ("a9a", "svmlight", "a9a.toml"),
        ("a.csv", "csv", "a.toml"),
        ("a.csv.gz", "csv", "a.toml"),
        ("a.parquet", "parquet", "a.toml"),
        ("a-M5.seed.npz", "npz", "a-M5.seed.toml"),
    ],
)
def test_what_a_name_says(name, kind, description):
    assert format_of(Path(name)) == kind
    assert description_of(Path("in") / name) == Path("in") / description


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "a.what",
            "a.what: no data format has the suffix '.what'; use one of .svm, .svmlight, .libsvm, .txt, .binary, .csv, "
            ".tsv, .parquet, .npz, .t, .tr, .val, .test, .scale, .pq, .parq",
        ),
        ("a.npz.gz", "a.npz.gz: .npz is compressed in itself; unpack it to a.npz"),
    ],
)
def test_unknown_formats(name, message):
    with pytest.raises(DataError) as caught:
        format_of(Path(name))
    assert str(caught.value) == message


def contents(path: Path) -> bytes:
    with opened(path) as stream:
        return stream.read()


@pytest.mark.parametrize(("suffix", "pack"), [(".svm", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_compression_is_undone(tmp_path, suffix, pack):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(pack(b"1 1:2\n"))
    assert contents(path) == b"1 1:2\n"


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_truncated_compression(tmp_path, suffix, pack):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(pack(bytes(range(256)) * 40)[:-12])
    with pytest.raises(DataError, match="the compressed file is truncated or damaged; fetch or pack it again"):
        contents(path)


def test_not_compressed_at_all(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(b"1 1:2\n")
    with pytest.raises(DataError) as caught:
        contents(path)
    assert str(caught.value).startswith(f"{path}: cannot be read: Not a gzipped file")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(DataError) as caught:
        contents(tmp_path / "none.svm")
    assert str(caught.value) == f"{tmp_path / 'none.svm'}: no such file; check the path"
    with pytest.raises(DataError, match="cannot be read: Is a directory; check the file"):
        contents(tmp_path)


def test_a_folder_is_no_data(tmp_path: Path) -> None:
    for folder in (Path(), tmp_path):
        with pytest.raises(
            DataError, match=r"this is a folder without manifest\.json; give a data file or a column store"
        ):
            read(folder)
