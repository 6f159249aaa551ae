"""svmlight against scikit-learn's reader, and every error with its line."""

from __future__ import annotations

import gzip
import io
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from mipfs.errors import DataError
from mipfs.readers import svmlight
from mipfs.readers.svmlight import read_svmlight


def write(tmp_path, text: str, name: str = "a.svm"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_agrees_with_scikit_learn(tmp_path, density):
    r = np.random.default_rng(1)
    X = np.where(r.random((80, 40)) < density, r.standard_normal((80, 40)) * 10.0 ** r.integers(-30, 30, (80, 40)), 0)
    X[5] = 0.0
    y = r.integers(0, 2, 80)
    path = tmp_path / "a.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    found = read_svmlight(path, 40)
    expected, labels = load_svmlight_file(str(path), n_features=40, zero_based=False)
    assert sparse.issparse(found.X) == (density < 0.25)
    dense = found.X.toarray() if sparse.issparse(found.X) else found.X
    np.testing.assert_array_equal(dense, expected.toarray())
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_array_equal(found.lines, np.arange(1, 81))
    assert found.bags is None


def test_the_smaller_syntax(tmp_path):
    text = "# a comment\r\n\r\n+1 qid:7 2:.5 10:1e-3 # why\r\n-1.0\tqid:7\t1:-2\r\n 1 qid:9\r\n"
    found = read_svmlight(write(tmp_path, text))
    np.testing.assert_array_equal(found.X.toarray()[:, [0, 1, 9]], [[0, 0.5, 0.001], [-2, 0, 0], [0, 0, 0]])
    assert found.X.shape == (3, 10)
    np.testing.assert_array_equal(found.labels, [1, -1, 1])
    np.testing.assert_array_equal(found.bags, [7, 7, 9])
    np.testing.assert_array_equal(found.lines, [3, 4, 5])


def test_more_features_than_the_largest_index(tmp_path):
    path = write(tmp_path, "1 1:1\n-1 2:1\n")
    assert read_svmlight(path).X.shape == (2, 2)
    assert read_svmlight(path, 5).X.shape == (2, 5)


def test_stored_zeros_are_dropped(tmp_path):
    found = read_svmlight(write(tmp_path, "1 1:0 9:1\n-1 2:0\n"))
    assert found.X.nnz == 1


def test_packed(tmp_path):
    path = tmp_path / "a.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n-1 2:1\n"))
    np.testing.assert_array_equal(read_svmlight(path).X, np.eye(2))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "the file has no samples; write one per line: label index:value ..."),
        ("# only\n\n", None, "the file has no samples; write one per line: label index:value ..."),
        ("1\n-1\n", None, "no sample has a feature; write index:value after the labels"),
        (
            "1 1:1\n1:2 2:1\n",
            2,
            "the line begins with '1:2' where the label should stand; begin it with the label, a number",
        ),
        (
            "benign 1:1\n",
            1,
            "the line begins with 'benign' where the label should stand; begin it with the label, a number",
        ),
        (
            "1_0 1:1\n",
            1,
            "the line begins with '1_0' where the label should stand; begin it with the label, a number",
        ),
        (
            "1,2 1:1\n",
            1,
            "the line begins with '1,2' where the label should stand; begin it with the label, a number; "
            "of several labels write the one that is meant",
        ),
        ("1 1:1\n\nnan 1:1\n", 3, "the label is nan; give every sample a finite label"),
        ("1 1:1\ninf 1:1\n", 2, "the label is inf; give every sample a finite label"),
        (
            "1 1:1 2:\n",
            1,
            "'2:' is not index:value; the line looks truncated; write a whole number, a colon and a number",
        ),
        (
            "1 1:1 2\n",
            1,
            "'2' is not index:value; the line looks truncated; write a whole number, a colon and a number",
        ),
        ("1 1:1 2: 3:1\n", 1, "'2:' is not index:value; write a whole number, a colon and a number"),
        ("1 1:2:3 4\n", 1, "'1:2:3' is not index:value; write a whole number, a colon and a number"),
        ("1 1:1\n1 1:x 2:1\n", 2, "'1:x' is not index:value; write a whole number, a colon and a number"),
        ("1 1:1_0 2:1\n", 1, "'1:1_0' is not index:value; write a whole number, a colon and a number"),
        ("1 -1:1 2:1\n", 1, "'-1:1' is not index:value; write a whole number, a colon and a number"),
        ("1 1.5:1 2:1\n", 1, "'1.5:1' is not index:value; write a whole number, a colon and a number"),
        (
            f"1 {'9' * 40}:1 2:1\n",
            1,
            f"'{'9' * 30}...' is not index:value; write a whole number, a colon and a number",
        ),
        (
            "1 0:1 1:1\n",
            1,
            "a feature has index 0; svmlight indices begin at 1; scikit-learn writes them so with "
            "dump_svmlight_file(..., zero_based=False)",
        ),
        ("1 1:1\n1 1:1 1:2\n", 2, "index 1 stands twice; write indices in increasing order, each once"),
        ("1 1:1\n-1\n1 5:1 3:2\n", 3, "index 3 comes after 5; write indices in increasing order, each once"),
        ("1 1:1\n-1\n-1 2:nan\n", 3, "feature 2 is nan; every value must be a finite number"),
        ("1 1:-inf\n", 1, "feature 1 is -inf; every value must be a finite number"),
        ("1 1:1e999\n", 1, "feature 1 is inf; every value must be a finite number"),
        (
            "1 200000000:1\n",
            1,
            "index 200000000 is above 4194391, the most that is read of so small a file; correct the index, or allow "
            "more by MIPFS_UNPACK=8 in the environment (gigabytes)",
        ),
        ("1 qid:1 1:1\n-1 2:1\n", 2, "qid: stands on some lines only; give every sample its bag"),
        ("1 1:1\n-1 qid:1 2:1\n", 2, "qid: stands on some lines only; give every sample its bag"),
        ("1 qid:x 1:1\n", 1, "misplaced or ragged 'qid:x'; write qid: and a whole number after the label"),
        ("1 1:1 qid:3\n", 1, "misplaced or ragged 'qid:3'; write qid: and a whole number after the label"),
    ],
)
def test_damaged_files(tmp_path, text, line, message):
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_svmlight(path)
    assert caught.value.line == line
    assert str(caught.value) == f"{path}:{f'{line}:' if line else ''} {message}"


def test_index_above_the_number_of_features(tmp_path):
    path = write(tmp_path, "1 1:1\n-1 4:1\n")
    with pytest.raises(DataError) as caught:
        read_svmlight(path, 3)
    assert str(caught.value) == f"{path}:2: index 4 is above 3, the number of features; correct the index"


def test_a_byte_order_mark_is_passed_over(tmp_path, monkeypatch):
    path = tmp_path / "a.svm"
    path.write_bytes("\ufeff1 1:2\n-1 2:3\n".encode())
    for size in (1 << 22, 4):
        monkeypatch.setattr(svmlight, "PIECE", size)
        found = read_svmlight(path)
        np.testing.assert_array_equal(found.labels, [1.0, -1.0])
        np.testing.assert_array_equal(found.X, [[2.0, 0.0], [0.0, 3.0]])
        np.testing.assert_array_equal(found.lines, [1, 2])
    path.write_bytes("1 1:2\n\ufeff-1 2:3\n".encode())  # at the beginning alone
    with pytest.raises(DataError, match="where the label should stand"):
        read_svmlight(path)


def test_binary_rubbish_is_one_clear_error(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(bytes(range(1, 256)))
    with pytest.raises(DataError, match="where the label should stand"):
        read_svmlight(path)


@pytest.mark.slow
def test_a_million_non_zeros_take_seconds(tmp_path):
    n, each = 20_000, 50
    X = sparse.random_array((n, 5_000), density=each / 5_000, format="csr", rng=np.random.default_rng(2))
    stream = io.BytesIO()
    dump_svmlight_file(X, np.arange(n) % 2, stream, zero_based=False)
    path = tmp_path / "a.svm"
    path.write_bytes(stream.getvalue())
    begin = time.process_time()
    found = svmlight.read_svmlight(path, 5_000)
    assert time.process_time() - begin < 5  # about 0.4 s of CPU time
    assert abs(found.X - X.tocsc()).max() < 1e-15  # written with 16 digits
