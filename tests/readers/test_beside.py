"""Labels in y.npy and names in names.txt, beside data that does not carry them."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

import mipfs
from mipfs.convert import convert
from mipfs.errors import DataError
from mipfs.estimators import FGMClassifier

DOCUMENTS = ["the cat sat", "a dog ran off", "the cat ran", "a dog sat down", "cat and cat", "dog eats dog"] * 3
LABELS = np.array(["cats", "dogs"] * 9)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a scikit-learn user leaves behind."""
    vectorizer = TfidfVectorizer()
    X = vectorizer.fit_transform(DOCUMENTS)
    sparse.save_npz(tmp_path / "X.npz", X)
    np.save(tmp_path / "y.npy", LABELS)
    (tmp_path / "names.txt").write_text("\n".join(vectorizer.get_feature_names_out()) + "\n")
    return tmp_path


def test_read_as_it_was_stored(folder: Path) -> None:
    data = mipfs.read(folder / "X.npz")
    X = TfidfVectorizer().fit(DOCUMENTS)
    assert list(data.feature_names) == list(X.get_feature_names_out())
    np.testing.assert_array_equal(data.X.toarray(), sparse.load_npz(folder / "X.npz").toarray())
    assert (data.labels.negative, data.labels.positive) == ("cats", "dogs")
    np.testing.assert_array_equal(data.y, np.where(LABELS == "dogs", 1.0, -1.0))
    assert mipfs.read(folder / "X.npz", positive="cats").y[0] == 1.0


@pytest.mark.parametrize("kind", ["int64", "bool", "float32", "U1"])
def test_labels_of_any_kind(folder: Path, kind: str) -> None:
    np.save(folder / "y.npy", np.array([0, 1] * 9).astype(kind))
    np.testing.assert_array_equal(mipfs.read(folder / "X.npz").y, np.array([-1.0, 1.0] * 9))


def test_what_the_file_holds_comes_first(folder: Path) -> None:
    with np.load(folder / "X.npz") as arrays:
        held = dict(arrays)
    p = held["shape"][1]
    np.savez(folder / "X.npz", y=np.array([1, 0] * 9), feature_names=[f"w{j}" for j in range(p)], **held)
    data = mipfs.read(folder / "X.npz")
    assert data.y[0] == 1.0
    assert data.feature_names[0] == "w0"
    np.savez(folder / "X.npz", **held)
    np.save(folder / "target.npy", LABELS)
    assert mipfs.read(folder / "X.npz", label="target").labels.positive == "dogs"


def test_names_of_svmlight_too(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:2\n-1 2:1\n")
    (tmp_path / "names.txt").write_bytes("\ufeffWörter\r\nund so\r\nnie".encode())
    data = mipfs.read(tmp_path / "a.svm")
    assert tuple(data.feature_names) == ("Wörter", "und so", "nie")  # the last of them is zero throughout
    (tmp_path / "a.toml").write_text('[features]\nnames = ["a", "b"]\n')
    assert tuple(mipfs.read(tmp_path / "a.svm").feature_names) == ("a", "b")


def test_too_few_names_are_what_is_wrong(tmp_path: Path) -> None:
    data = tmp_path / "a.svm"
    data.write_text("1 1:2\n-1 2:1 3:1\n")
    (tmp_path / "names.txt").write_text("a\nb\n")
    message = f"{data}:2: index 3, and names.txt has 2 names; write the names of all features there"
    for read in (mipfs.read, lambda path: convert(path, tmp_path / "s")):
        with pytest.raises(DataError, match=re.escape(message)):
            read(data)
    (tmp_path / "a.toml").write_text('[features]\nnames = ["a"]\n')
    message = f"{data}:2: index 2, and [features] names of a.toml has 1 name; write the names of all features there"
    for read in (mipfs.read, lambda path: convert(path, tmp_path / "s")):
        with pytest.raises(DataError, match=re.escape(message)):
            read(data)
    assert not (tmp_path / "s.unfinished").exists()


OBJECTS = io.BytesIO()
np.save(OBJECTS, np.array(["a", 1] * 9, dtype=object), allow_pickle=True)
SHORT = io.BytesIO()
np.save(SHORT, np.arange(18) % 2)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("y.npy", OBJECTS.getvalue(), "Python objects, which are not loaded; save numbers or strings"),
        ("y.npy", np.arange(17) % 2, "'y' has shape (17,) beside a matrix of shape (18, 9); give 18 entries"),
        ("y.npy", LABELS[:, None], "'y' has shape (18, 1) beside a matrix"),
        ("y.npy", np.arange(18), "18 different labels"),
        ("y.npy", np.ones(18), "one class only"),
        ("y.npy", np.where(np.arange(18) == 4, np.nan, 1.0), "'y' is nan in row 5; give every sample a finite label"),
        ("y.npy", np.arange(18) % 2 + 1j, "'y' holds values of type complex128; give numbers or strings"),
        ("y.npy", b"no array", "not a readable npy file: the magic string is not correct"),
        ("y.npy", SHORT.getvalue()[:-3], "not a readable npy file: "),
        ("y.npy", SHORT.getvalue() + b"x", "there is something behind its array; write it with numpy.save"),
        ("y.npy", b"", "not a readable npy file: "),
        ("names.txt", b"a\nb\n", "2 names for the 9 features of X.npz; write one name of a feature a line"),
        ("names.txt", b"a\n\nb\n", "names.txt:2: the line has no name"),
        ("names.txt", b"a\nb\na\n", "names.txt:3: 'a' stands on line 1 already"),
        ("names.txt", b"\xff\xfe", "not a text file in UTF-8"),
        ("names.txt", b"", "names.txt:1: the line has no name"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(folder: Path, name: str, content: Any, message: str) -> None:
    if isinstance(content, bytes):
        (folder / name).write_bytes(content)
    else:
        np.save(folder / name, content)
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        mipfs.read(folder / "X.npz")
    assert "\n" not in str(caught.value)
    assert name in str(caught.value) or "different labels" in message or "one class" in message


def test_names_out_of_an_estimator(folder: Path) -> None:
    data = mipfs.read(folder / "X.npz")
    model = FGMClassifier(M=2, C=10.0).fit(data.X, LABELS)
    assert set(model.get_feature_names_out(data.feature_names)) <= set(data.feature_names)
    np.testing.assert_array_equal(model.predict(data.X), LABELS)
