"""A slice of the campaign of `tests.same_tree`: the same bytes from threads, processes, and a cluster that is hit."""

from __future__ import annotations

import sys

import pytest

from tests import same_tree

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'mipfs[dask]'")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="kills, forkserver")
def test_the_bytes_of_random_problems_do_not_depend_on_who_explores() -> None:
    ways = ("1 threads", "8 threads", "2 processes", same_tree.KILLED)
    assert same_tree.campaign([2, 31, 45], ways) == []


def test_problems_are_of_every_kind() -> None:
    """And the problem of a seed is the same each time."""
    tags = set[str]()
    for seed in range(1, 90):
        tags |= set(same_tree.draw(seed).tags)
    assert tags >= {"hinge", "squared-hinge", "logistic", "rho", "sparse", "groups", "nested", "enumeration", "free"}
    assert tags >= {"words as groups", "pairs", "rows over weights", "bounds exclude 0", "separate", "reliability"}
    assert tags >= {"batch", "interior", "array"}
    assert tags >= {"rows", "infeasible", "extra variable", "penalties", "signs", "sample weights", "class weights"}
    assert tags >= {"whole", "list", "limit", "unproven", "another rule", "large units", "many rests", "no bias"}
    first, again = same_tree.draw(7), same_tree.draw(7)
    assert first.problem.data.sha256 == again.problem.data.sha256
    assert first.options == again.options
