"""Bags against plain loops over their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mipfs.errors import DataError
from mipfs.lab.mil.bags import Bags


@pytest.mark.parametrize("kind", ["integers", "strings", "objects"])
def test_rows_labels_and_classes_equal_loops(kind: str) -> None:
    r = np.random.default_rng(3)
    for n in (1, 2, 7, 60):
        numbers = r.integers(-4, 5, n)
        given: Any = numbers if kind == "integers" else np.array([f"bag{i}" for i in numbers], dtype=object)
        given = given.astype(str) if kind == "strings" else given
        bags, codes = Bags.of(given, n), r.integers(0, 2, n)
        names = sorted(set(given.tolist()))
        assert bags.names.tolist() == names
        assert (len(bags), bags.n_rows) == (len(names), n)
        positive = [any(codes[i] for i in range(n) if given[i] == name) for name in names]
        assert bags.largest(codes).tolist() == [int(one) for one in positive]
        assert [int(i) for name in names for i in range(n) if given[i] == name] == bags.order.tolist()
        if not all(positive):
            assert bags.classes(codes, np.array(["no", "yes"])).tolist() == [int(one) for one in positive]


def test_without_bags_every_row_is_one() -> None:
    bags = Bags.of(None, 4)
    assert len(bags) == bags.n_rows == 4
    assert bags.largest(np.array([3, 1, 2, 5])).tolist() == [3, 1, 2, 5]


def test_more_than_two_classes_need_one_per_bag() -> None:
    names = np.array(["ash", "birch", "cedar"])
    bags = Bags.of([7, 7, 8, 9], 4)
    assert bags.classes(np.array([2, 2, 0, 1]), names).tolist() == [2, 0, 1]
    message = "^bag 7 has rows of class 'ash' and of class 'cedar'; of more than two classes a bag must have one$"
    with pytest.raises(DataError, match=message):
        bags.classes(np.array([2, 0, 0, 1]), names)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 2], r"bags has shape \(2,\) for 3 rows; give every row the name of its bag"),
        ([[1], [2], [3]], r"bags has shape \(3, 1\) for 3 rows"),
        ([1.0, np.nan, 2.0], "row 2 has no bag; give every row the name of its bag"),
        (np.array(["a", "b", None], dtype=object), "row 3 has no bag"),
        (np.array(["a", float("nan"), "b"], dtype=object), "row 2 has no bag"),
        (np.array(["a", 1, "b"], dtype=object), "mixes names that cannot be sorted; give integers or strings"),
    ],
)
def test_bad_bags_are_one_line(given: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Bags.of(given, 3)
    assert "\n" not in str(caught.value)


def test_positive_bags_alone_are_an_error_in_training_only() -> None:
    bags, codes, names = Bags.of([1, 1, 2], 3), np.array([0, 1, 1]), np.array([-1, 1])
    with pytest.raises(DataError, match="every bag has a row of class 1, which makes it positive; give negative bags"):
        bags.classes(codes, names)
    assert bags.classes(codes, names, training=False).tolist() == [1, 1]
