"""From the user's labels to -1 and +1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mipfs.data.instance import Labels
from mipfs.errors import DataError
from mipfs.readers.labels import WORDS, apply_labels, map_labels
from mipfs.readers.table import Table

PATH = Path("a.svm")


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
