"""Pieces of a tree: they are all of it, none depends on another, and who goes through them changes no digit."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from mipfs.check import leaves
from mipfs.check.dual_vectors import Duals
from mipfs.check.joint import JOINT
from mipfs.check.leaves import CoverTree, Fixings, TreeWalk
from mipfs.check.statement import Statement
from mipfs.check.steps import LEAF, RELEASE, RESTORE, SCREEN, TreePieces
from mipfs.check.tree import Report, check
from mipfs.check.workers import ALONE, LeafWorkers
from mipfs.plumbing import forked
from mipfs.plumbing.forked import ForkedPool
from mipfs.readers.duals import decode_dual, decoded_rows
from tests.certificate import attack

SEEDS = range(120)


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node or two a piece, and no second alone."""
    monkeypatch.setattr(leaves, "LEAST_NODES", 1)
    monkeypatch.setattr(leaves, "MOST_NODES", 1)
    monkeypatch.setattr(forked, "ALONE_SECONDS", 0.0)
    monkeypatch.setattr(forked, "is_safe", lambda: True)


def report(seed: int, workers: LeafWorkers) -> Report:
    document, arrays, _, _, data = attack.attacked(seed)
    params = document.get("params")
    joint = isinstance(params, dict) and params.get("loss") == "structural"
    found = check(document, arrays, data, *((JOINT,) if joint else ()), workers=workers)
    return dataclasses.replace(found, seconds=0.0)


@pytest.mark.sampled(29)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_report_is_that_of_one_process(seed: int, in_pieces: None) -> None:
    alone = repr(report(seed, ALONE))
    for jobs in (2, 3):
        assert repr(report(seed, LeafWorkers(ForkedPool(jobs)))) == alone


@pytest.mark.slow
def test_forged_and_honest_ones_are_among_them() -> None:
    found = [report(seed, ALONE) for seed in SEEDS]
    said = " ".join(one.reason for one in found)
    assert sum(one.accepted for one in found) > 10
    for words in ("proves only", "nothing shows that leaf", "do not cover all selections", "is negative somewhere"):
        assert words in said, words


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(30))
def test_the_first_of_several_forged_vectors_is_named(seed: int, in_pieces: None) -> None:
    rng = np.random.default_rng([seed, 5])
    forged = np.empty(0, dtype=np.uint8)
    while not forged.size:  # of a base without dual vectors there is nothing to change
        text, arrays, data = attack.base(int(rng.integers(attack.BASES)))
        name = "dual_whole" if "dual_label" in arrays else "dual_bytes"
        forged = arrays[name].copy()
    document = json.loads(text)
    at = rng.integers(0, forged.size, 3)
    forged[at] = rng.integers(0, 256, 3)
    kinds = (JOINT,) if name == "dual_whole" else ()
    found = [
        dataclasses.replace(check(document, dict(arrays) | {name: forged}, data, *kinds, workers=workers), seconds=0.0)
        for workers in (ALONE, LeafWorkers(ForkedPool(2)), LeafWorkers(ForkedPool(3)))
    ]
    assert len({repr(one) for one in found}) == 1


def walked(seed: int) -> tuple[TreeWalk, CoverTree, Statement]:
    """A walk through the certificate of a base, with its claim as the level of screening."""
    text, arrays, data = attack.base(seed)
    document = json.loads(text)
    kinds = JOINT if document["params"]["loss"] == "structural" else (Statement, Duals)
    statement = kinds[0](document, data)
    tree = CoverTree(arrays, statement.p, statement.whole)
    level = statement.unit(document["certificate"]["bound"])
    return TreeWalk(statement, kinds[1](statement, arrays), tree, arrays, None, level), tree, statement


def plain(part: leaves.PieceFindings) -> Any:
    return part._replace(seen=tuple(part.seen.tolist()))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(24))
def test_a_piece_does_not_depend_on_those_before_it(seed: int, in_pieces: None) -> None:
    walk, tree, _ = walked(seed)
    count = len(walk.pieces)
    in_order = [plain(walk(k)) for k in range(count)]
    assert sum(part.n_leaves for part in in_order) == tree.n_leaves
    other = walked(seed)[0]
    for k in np.random.default_rng(seed).permutation(count).tolist():
        assert plain(other(k)) == in_order[k]
        assert plain(walked(seed)[0](k)) == in_order[k] or count > 12


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(24))
def test_the_way_to_a_piece_is_what_was_not_taken_back(seed: int, in_pieces: None) -> None:
    _, tree, statement = walked(seed)
    pieces, p = TreePieces(tree.steps, statement.p, 1), statement.p
    assert pieces.ends[0] == 0
    assert np.all(np.diff(pieces.ends) > 0)
    assert all(j not in (LEAF, SCREEN) for j, _ in list(tree.steps)[int(pieces.ends[-1]) :])
    open_steps, ways = list[int](), dict[int, list[int]]()
    for at, (j, code) in enumerate(tree.steps):
        ways[at] = [*open_steps]
        if j in (RELEASE, RESTORE) or (0 <= j < p and code < 0):
            open_steps.pop()
        elif j != LEAF:
            open_steps.append(at)
    for at in [*pieces.ends.tolist(), *pieces.ends[::-1].tolist()]:
        assert pieces.path(at).tolist() == ways.get(at, ways[at - 1] if at else [])
    for at in pieces.ends[1:-1].tolist():  # never within or under a chain
        assert tree.steps[at - 1][0] != SCREEN
        assert tree.steps[at][0] != RESTORE


@pytest.mark.parametrize("seed", range(12))
def test_dual_vectors_are_read_together_as_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    _, arrays, data = attack.base(seed)
    n, count = data.n_samples, len(arrays["dual_q"])
    if "dual_label" in arrays:
        return
    ids = rng.integers(0, count, 2 * count)
    expected = np.array([decode_dual(arrays, d, n) for d in ids.tolist()])
    np.testing.assert_array_equal(decoded_rows(arrays, ids, n), expected)
    assert decoded_rows(arrays, ids[:0], n).shape == (0, n)
    longer = arrays["dual_start"].copy()
    longer[-1] += 1
    damaged = dict(arrays, dual_bytes=np.append(arrays["dual_bytes"], np.uint8(0)), dual_start=longer)
    with pytest.raises(ValueError, match="bytes in place of"):
        decoded_rows(damaged, np.arange(count), n)


@pytest.mark.parametrize("seed", range(40))
def test_dual_vectors_of_any_form_are_read_together_as_one_by_one(seed: int) -> None:
    """Vectors of any width, with and without entries at the top, for weights that are equal or not."""
    rng = np.random.default_rng([seed, 59])
    n, count = int(rng.integers(1, 40)), int(rng.integers(1, 9))
    parts, width = list[Any](), rng.integers(0, 8, count)
    for d in range(count):
        held = rng.random(n) < rng.choice([0.0, 0.5, 1.0])
        at_top = rng.random(int(held.sum())) < rng.choice([0.0, 0.5, 1.0])
        values = rng.integers(0, 256, int((~at_top).sum()) * int(width[d]))
        parts.append(np.concatenate([np.packbits(held), np.packbits(at_top), values]).astype(np.uint8))
    arrays = {
        "dual_bytes": np.concatenate(parts),
        "dual_start": np.concatenate([[0], np.cumsum([part.size for part in parts])]),
        "dual_q": rng.integers(-3, 40, count),
        "dual_level": rng.integers(0, 1 << 50, count),
        "dual_width": width.astype(np.uint8),
        "dual_top": rng.random(n) if seed % 2 else np.empty(0),
    }
    expected = np.array([decode_dual(arrays, d, n) for d in range(count)])
    np.testing.assert_array_equal(decoded_rows(arrays, np.arange(count), n), expected)
    backwards = np.arange(count)[::-1]
    np.testing.assert_array_equal(decoded_rows(arrays, backwards, n), expected[::-1])


def test_fixings_are_as_before_when_all_is_taken_back(in_pieces: None) -> None:
    for seed in range(12):
        walk, _, statement = walked(seed)
        for k in range(len(walk.pieces)):
            walk(k)
        walk._go_to(0)
        fresh, used = Fixings(statement), walk._fixed
        assert used.forced == fresh.forced
        np.testing.assert_array_equal(used.state, fresh.state)
        assert (used.n_inside, used.conflicts, used.n_free, used._screened, used._before) == (
            (fresh.n_inside, fresh.conflicts, fresh.n_free, [], [])
        )
