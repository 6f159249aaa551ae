"""What a test file has beyond training is left out where it cannot change the answer; the remedy of others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.cli import main
from mipfs.errors import DataError, DataWarning
from mipfs.readers import read_new
from mipfs.readers import svmlight as svmlight_reader


def raw() -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(0)
    X = r.normal(size=(30, 3)).round(3)
    return X, np.where(X[:, 0] + 0.3 * r.normal(size=30) > 0, 1, -1)


def svmlight(file: Path, X: np.ndarray, y: np.ndarray) -> Path:
    rows = (" ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1)) for row in X.tolist())
    file.write_text("\n".join(f"{label} {row}" for label, row in zip(y, rows, strict=True)))
    return file


def test_larger_indices_of_a_test_file_are_left_out_with_a_note(tmp_path: Path) -> None:
    X, y = raw()
    train = svmlight(tmp_path / "a.svm", X, y)
    wide = svmlight(tmp_path / "a.t", np.hstack([X, X[:, :2]]), y)
    result = mipfs.solve(mipfs.Problem(mipfs.read(train), M=1, C=1.0))
    result.save(tmp_path / "r.json")
    assert main(["predict", str(tmp_path / "r.json"), str(wide), "-q"]) == 0
    with pytest.warns(DataWarning, match="2 features beyond the 3 of training"):
        rows = read_new(wide, n_features=3)
    assert list(result.predict(rows)) == list(result.predict(X))


def test_new_rows_of_svmlight_need_no_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = raw()
    train = svmlight(tmp_path / "a.svm", X, y)
    result = mipfs.solve(mipfs.Problem(mipfs.read(train), M=1, C=1.0))
    result.save(tmp_path / "r.json")
    bare = tmp_path / "b.svm"
    bare.write_text("".join(f"{line.partition(' ')[2]}\n" for line in train.read_text().splitlines()) + "# end\n")
    for size in (1 << 22, 100):  # the second reads all but its first lines by the kernel
        monkeypatch.setattr(svmlight_reader, "PIECE", size)
        assert list(result.predict(read_new(bare, n_features=3))) == list(result.predict(X))
    assert main(["predict", str(tmp_path / "r.json"), str(bare), "-q"]) == 0
    assert main(["evaluate", str(tmp_path / "r.json"), str(bare), "-q"]) == 2
    with pytest.raises(DataError, match=f"b.svm:1: the line begins with '1:{X[0, 0]}' where the label should stand"):
        mipfs.read(bare)


def test_columns_that_no_classifier_looks_at_may_hold_anything(tmp_path: Path) -> None:
    X, y = raw()
    head = "a,b,c,label\n"
    lines = [",".join([*map(repr, row), str(label)]) for row, label in zip(X.tolist(), y, strict=True)]
    train, new = tmp_path / "a.csv", tmp_path / "b.csv"
    train.write_text(head + "\n".join(lines))
    new.write_text("note," + head + "\n".join(f"{'' if k else 'x 1'},{line}" for k, line in enumerate(lines)))
    result = mipfs.solve(mipfs.Problem(mipfs.read(train), M=1, C=1.0))
    assert result.selected == ("a",)
    result.save(tmp_path / "r.json")
    for file in (train, new):
        assert (
            main(["evaluate", str(tmp_path / "r.json"), str(file), "--json", str(file.with_suffix(".json")), "-q"]) == 0
        )
    found = [json.loads(file.with_suffix(".json").read_text())["confusion"] for file in (train, new)]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("name", "content", "remedy"),
    [
        ("a.csv", '"a","label"\n"1",0.5,"p"\n', "row.names = FALSE"),
        ("b.csv", '"","a","label"\n"Fiat",0.5,"p"\n"Audi",1,"n"\n', "row.names = FALSE"),
        ("c.tsv", 'a b label\n"1" 0.5 "p"\n', "not by blanks"),
        ("d.xlsx", "", "save the sheet as CSV"),
        ("e.csv.xz", "", "unpack it first"),
        ("f.svm", "1,3 1:1\n2 1:2\n", "several labels"),
        ("g.npy", "", "numpy.savez"),
    ],
)
def test_files_of_others_are_refused_with_the_remedy(name: str, content: str, remedy: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=remedy):
        mipfs.read(tmp_path / name)


def test_the_names_of_libsvm_and_of_parquet_are_read(tmp_path: Path) -> None:
    X, y = raw()
    for name in ("w8a.t", "w8a.val", "heart.scale", "w8a.tr"):
        assert mipfs.read(svmlight(tmp_path / name, X, y)).n_samples == 30
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(X, columns=["a", "b", "c"]).assign(label=y).to_parquet(tmp_path / "a.pq")
    assert mipfs.read(tmp_path / "a.pq").n_features == 3
