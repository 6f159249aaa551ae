"""Pieces of units in the proof's numbering: beside plain loops, with multipliers of rows, and pieces that go on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mipfs.kernels.merge import Left, ProofPlaces, Shown, merge_pieces
from mipfs.kernels.structures import PLACE, TOTALS
from mipfs.kernels.subtree import REFUTED
from mipfs.kernels.units import OPEN_NODE

ROWS = 3


def test_pieces_carry_multipliers_and_go_on_where_the_one_before_ends() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        B = int(rng.integers(1, 5))
        heads, totals = np.zeros(B, OPEN_NODE), np.zeros(B, TOTALS)
        totals["places"], totals["duals"] = rng.integers(1, 6, B), rng.integers(1, 4, B)
        counts = rng.integers(1, 4, B)
        goes_on = (rng.random(B) < 0.4) & (np.arange(B) > 0)
        heads["place"], heads["dual"] = rng.permutation(20)[:B], rng.integers(100, 200, B)
        places = np.zeros(int(totals["places"].sum()), PLACE)
        own = np.repeat(totals["duals"], totals["places"])
        places["dual"] = rng.integers(REFUTED, own)
        places["cause"] = np.where(places["dual"] == REFUTED, rng.integers(0, 2 * ROWS, places.size), -1)
        places["feature"], places["outside"], places["inside"] = rng.integers(-1, 5, (3, places.size))
        places["value"] = rng.random(places.size)
        back = np.zeros(int(counts.sum()), OPEN_NODE)
        back["place"] = rng.integers(0, np.repeat(totals["places"], counts))
        back["dual"] = rng.integers(0, np.repeat(totals["duals"], counts))
        back["start"], back["bound"] = rng.integers(0, 50, back.size), rng.random(back.size)
        fresh = int(totals["duals"].sum()) - B
        shown = Shown(*(rng.integers(0, 1000, size) for size in (B, fresh, B, fresh, 2 * ROWS)))
        words, features = rng.integers(0, 90, B), np.array([7, 3, 5, 1, 1 << 30])
        room = 20 + places.size
        proof = ProofPlaces(
            *(np.full((room, 2) if k == 1 else room, -9, np.int32) for k in range(4)), np.full(room, -9.0)
        )
        left = Left(heads.copy(), goes_on, totals, places, counts, back.copy(), words, features)
        wanted, open_nodes = plainly(left, shown)
        kept = merge_pieces(left, shown, 20, 300, proof)
        assert [tuple(one) for one in left.back[:kept][["place", "dual", "prices", "start"]].tolist()] == open_nodes
        for to, (feature, outside, inside, dual, multiplier, value) in wanted.items():
            assert (proof.feature[to], *proof.children[to]) == (feature, outside, inside)
            assert (proof.dual[to], proof.multiplier[to], proof.value[to]) == (dual, multiplier, value)
        untouched = np.setdiff1d(np.arange(room), list(wanted))
        assert np.all(proof.feature[untouched] == -9)


def plainly(left: Left, shown: Shown) -> tuple[dict[int, tuple[float, ...]], list[tuple[int, ...]]]:
    """What every place holds, and place, dual vector, multipliers and first word of the open nodes."""
    wanted, open_nodes = dict[int, tuple[float, ...]](), list[tuple[int, ...]]()
    begin = new = fresh = returned = 0
    for of in range(left.heads.size):
        at_head = open_nodes.pop()[0] if left.goes_on[of] else int(left.heads["place"][of])
        count, duals = int(left.totals["places"][of]), int(left.totals["duals"][of])
        where = [at_head, *range(20 + new, 20 + new + count - 1)]
        vectors = [int(left.heads["dual"][of]), *range(300 + fresh, 300 + fresh + duals - 1)]
        numbers = np.append(shown.first_shown[of], shown.others_shown[fresh : fresh + duals - 1])
        prices = np.append(shown.first[of], shown.others[fresh : fresh + duals - 1])
        for t, to in enumerate(where):
            wanted[to] = entered(left.places[begin + t], left.features, 19 + new, vectors, numbers, shown)
        for one in left.back[returned : returned + int(left.counts[of])]:
            ids = where[one["place"]], vectors[one["dual"]], int(prices[one["dual"]])
            open_nodes.append((*ids, int(one["start"] + left.words[of])))
        begin, new, fresh = begin + count, new + count - 1, fresh + duals - 1
        returned += int(left.counts[of])
    return wanted, open_nodes


def entered(
    one: npt.NDArray[np.void],
    features: npt.NDArray[np.int64],
    first: int,
    vectors: list[int],
    numbers: npt.NDArray[np.int64],
    shown: Shown,
) -> tuple[float, ...]:
    """A place in the proof's numbering: feature, children, dual vector, multipliers and value."""
    is_split, dual = one["feature"] >= 0, int(one["dual"])
    below = [first + one[side] if is_split and one[side] >= 0 else -1 for side in ("outside", "inside")]
    by = vectors[dual] if dual >= 0 else dual
    number = numbers[dual] if dual >= 0 else shown.rays[one["cause"]] if dual == REFUTED else -1
    return features[one["feature"]] if is_split else -1, *below, by, number, one["value"] if is_split else -np.inf
