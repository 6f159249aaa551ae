"""From the user's labels to -1 and +1."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Labels
from mipfs.errors import DataError
from mipfs.readers.columns import Table
from mipfs.readers.labels import WORDS, apply_labels, map_labels

try:
    import pandas

    OF_PANDAS = [pandas.Timestamp("2024-01-01"), pandas.Period("2024"), pandas.Timedelta(1), pandas.NaT]
except ImportError:
    OF_PANDAS = []
PATH = Path("a.svm")


@pytest.mark.parametrize(
    "label",
    [
        np.datetime64("2024-01-01"), np.datetime64("2024-01-01", "ns"), np.timedelta64(1, "D"),
        datetime.date(2024, 1, 1), (1, 2), b"a", np.bytes_(b"a"), Decimal("1.5"), Fraction(1, 2), 1j, None, math.nan,
        math.inf, np.longdouble(0.1), frozenset([1]), np.array([1, 2]), *OF_PANDAS,
    ],
    ids=repr,
)  # fmt: skip
def test_a_label_that_no_file_holds_is_refused(label):
    """Dates in nanoseconds became numbers, others ended in a traceback when a result was saved or verified."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.where(np.arange(20) % 2, 1, -1)
    for pair in ((label, "other"), ("other", label)):
        with pytest.raises(DataError, match=r"a label is .*; give text, numbers or booleans") as caught:
            mipfs.Instance.from_arrays(X, y, labels=Labels(*pair))
        assert "\n" not in str(caught.value)


PAIRS = [
    ("a", "b"),
    (0, 1),
    (0.5, 1.5),
    (False, True),
    (np.False_, np.True_),
    (np.int8(1), 2**70),
    (np.float32(0.1), "é"),
]
"""Labels that JSON holds."""


@pytest.mark.parametrize("labels", PAIRS, ids=repr)
def test_labels_come_back_from_a_file(labels, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    data = mipfs.Instance.from_arrays(X, np.where(X[:, 0] > 0, 1, -1), labels=Labels(*labels))
    result = mipfs.solve(mipfs.Problem(data, M=1))
    assert mipfs.verify(result, data).accepted
    result.save(tmp_path / "r.json")
    found = mipfs.Result.load(tmp_path / "r.json").labels
    assert [found["negative"], found["positive"]] == [*labels]
    assert {type(one) for one in found.values()} <= {str, int, float, bool}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["M8[D]", "M8[ns]", "M8[us]", "m8[s]"])
def test_estimators_refuse_dates_as_labels(kind, classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % classes
    for model in (mipfs.FSPClassifier(M=1), mipfs.FGMSelector(), mipfs.MILClassifier()):
        with pytest.raises(ValueError, match=r"a label is .*; give text, numbers or booleans"):
            model.fit(X, y.astype(kind))


def test_a_table_with_dates_as_labels_is_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": range(20), "y": pandas.to_datetime(["2024-01-01", "2025-01-01"] * 10)})
    for labels in (frame["y"], frame["y"].dt.date, frame["y"].dt.to_period("Y"), [b"a", b"b"] * 10, [(1,), (2,)] * 10):
        with pytest.raises(DataError, match="give numbers or words"):
            mipfs.read(frame.assign(y=labels), label="y")


def table(labels, lines=True):
    n = len(labels)
    return Table(np.ones((n, 1)), np.array(labels), lines=np.arange(n) * 2 + 1 if lines else None)


@pytest.mark.parametrize(
    ("labels", "positive", "mapping", "y"),
    [
        ([0.0, 1.0, 0.0], None, Labels(0, 1), [-1, 1, -1]),
        ([2.0, 1.0, 1.0], None, Labels(1, 2), [1, -1, -1]),
        ([10.0, 9.0], None, Labels(9, 10), [1, -1]),
        ([0.5, -0.5], None, Labels(-0.5, 0.5), [1, -1]),
        (["10", "9"], None, Labels("9", "10"), [1, -1]),
        (["good", "bad", "bad"], None, Labels("good", "bad"), [-1, 1, 1]),
        (["Malignant", "benign", "benign"], None, Labels("benign", "Malignant"), [1, -1, -1]),
        (["TRUE", "FALSE"], None, Labels("FALSE", "TRUE"), [1, -1]),
        (["a", "b", "b"], None, Labels("b", "a"), [1, -1, -1]),  # the rarer class
        (["yes", "bad", "yes"], None, Labels("yes", "bad"), [-1, 1, -1]),  # both are words of the list
        (["b", "a"], None, Labels("a", "b"), [1, -1]),
        (["0", "bad", "bad"], None, Labels("0", "bad"), [-1, 1, 1]),
        (["no", "yes"], None, Labels("no", "yes"), [-1, 1]),
        (["no", "yes"], "no", Labels("yes", "no"), [1, -1]),
        ([0.0, 1.0], 0, Labels(1, 0), [1, -1]),
        ([0.0, 1.0], "0", Labels(1, 0), [1, -1]),
        ([0.0, 1.0], "1.0", Labels(0, 1), [-1, 1]),
    ],
)
def test_mapping(labels, positive, mapping, y):
    signs, found = map_labels(table(labels), positive, PATH)
    np.testing.assert_array_equal(signs, y)
    assert found == mapping
    assert type(found.positive) is type(mapping.positive)
    np.testing.assert_array_equal(apply_labels(table(labels), found, PATH), y)


@pytest.mark.parametrize(
    ("labels", "positive", "lines", "message"),
    [
        ([1.0, 1.0], None, True, "a.svm: one class only: every label is 1; give samples of both classes"),
        (
            [1.0, 3.0, 1.0, 2.0],
            None,
            True,
            "a.svm:7: 3 different labels (1, 2, 3); the third is 2; keep two classes",
        ),
        (
            list("abcdefg"),
            None,
            False,
            "a.svm: 7 different labels ('a', 'b', 'c', 'd', 'e', ...); the third is 'c' in row 3; keep two classes",
        ),
        (
            ["no", "yes"],
            "maybe",
            True,
            "a.svm: positive = 'maybe' is not one of the labels 'no' and 'yes'; name one of them",
        ),
        ([0.0, 1.0], "yes", True, "a.svm: positive = 'yes' is not one of the labels 0 and 1; name one of them"),
    ],
)
def test_refused(labels, positive, lines, message):
    with pytest.raises(DataError) as caught:
        map_labels(table(labels, lines), positive, PATH)
    assert str(caught.value) == message


def test_known_labels():
    known = Labels("no", "yes")
    np.testing.assert_array_equal(apply_labels(table(["no", "no"]), known, PATH), [-1, -1])
    with pytest.raises(DataError) as caught:
        apply_labels(table(["no", "y"]), known, PATH)
    assert str(caught.value) == ("a.svm:3: the label 'y' is unknown to the classifier; its labels are 'no' and 'yes'")
    with pytest.raises(DataError, match="the label 2 in row 2 is unknown"):
        apply_labels(table([1.0, 2.0], lines=False), Labels(-1, 1), PATH)


def test_the_manual_lists_the_words_of_the_positive_class():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    listed = page.partition("in upper or lower case: ")[2].partition("; otherwise")[0].replace("\n", " ")
    assert set(listed.split(", ")) == WORDS
