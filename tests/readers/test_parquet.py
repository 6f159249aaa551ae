"""Parquet: the same roles as CSV; a clear word when pyarrow is missing."""

from __future__ import annotations

import builtins
import datetime

import numpy as np
import pytest

from mipfs.errors import DataError, MissingExtraError
from mipfs.readers.parquet import read_parquet

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(tmp_path, columns, name="a.parquet"):
    path = tmp_path / name
    pq.write_table(pa.table(columns), path)
    return path


def test_types_and_roles(tmp_path):
    columns = {
        "i": pa.array([1, 2, 3], pa.int32()),
        "f": pa.array([0.5, 1.5, 2.5], pa.float32()),
        "flag": [True, False, True],
        "word": ["b", "a", "b"],
        "coded": pa.array(["u", "v", "u"]).dictionary_encode(),
        "bag": [4, 4, 9],
        "sample_weight": [1.0, 2.0, 3.0],
        "__index_level_0__": [10, 20, 30],
        "bad": ["yes", "no", "no"],
    }
    found = read_parquet(write(tmp_path, columns), "bad")
    assert found.names == ("i", "f", "flag", "word=b", "coded=v")
    assert found.groups == {"word": ("word=b",), "coded": ("coded=v",)}
    expected = [[1, 0.5, 1, 1, 0], [2, 1.5, 0, 0, 1], [3, 2.5, 1, 1, 0]]
    np.testing.assert_array_equal(found.X, expected)
    np.testing.assert_array_equal(found.labels, ["yes", "no", "no"])
    np.testing.assert_array_equal(found.bags, [4, 4, 9])
    np.testing.assert_array_equal(found.sample_weight, [1, 2, 3])
    assert found.lines is None


def test_chunks_are_joined(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": np.arange(10.0), "label": np.arange(10) % 2}), path, row_group_size=3)
    np.testing.assert_array_equal(read_parquet(path).X[:, 0], np.arange(10.0))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [1.0, None], "label": [0, 1]}, "column 'x' has no value in row 2"),
        ({"x": ["a", None], "label": [0, 1]}, "column 'x' has no value in row 2"),
        ({"x": [np.nan, 1.0], "label": [0, 1]}, "column 'x' is nan in row 1; every value must be a finite number"),
        ({"x": [1.0, -np.inf], "label": [0, 1]}, "column 'x' is -inf in row 2; every value must be a finite number"),
        (
            {"x": [datetime.date(2020, 1, 1)] * 2, "label": [0, 1]},
            "column 'x' has the type date32[day]; store numbers or words",
        ),
        (
            {"x": [1.0, 2.0], "lable": [0, 1]},
            "no column is called 'label'; say which column holds the labels by --label",
        ),
        ({"x": pa.array([], pa.float64()), "label": pa.array([], pa.int8())}, "the file has no samples"),
        ({"label": [0, 1]}, "no feature column"),
    ],
)
def test_refused(tmp_path, columns, message):
    path = write(tmp_path, columns)
    with pytest.raises(DataError) as caught:
        read_parquet(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_two_columns_of_one_name(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["x", "x"]), path)
    with pytest.raises(DataError, match="two columns are called 'x'; give each its own name"):
        read_parquet(path)


def test_not_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"x,label\n1,0\n")
    with pytest.raises(DataError) as caught:
        read_parquet(path)
    assert str(caught.value).startswith(f"{path}: not a Parquet file: ")
    assert "\n" not in str(caught.value)


def test_without_pyarrow(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError) as caught:
        read_parquet(tmp_path / "a.parquet")
    assert str(caught.value) == (
        f"reading {tmp_path / 'a.parquet'} needs pyarrow, which is not installed; pip install 'mipfs[parquet]'"
    )
