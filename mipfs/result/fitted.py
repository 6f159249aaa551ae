"""A certificate that fits: of the largest bound that a file of a given size in bytes proves.

A tree that a limit ended grows with the run's length, several times for every point of the gap. Each of its nodes that
was split has a dual vector that proves some bound L' of it as a whole; so the tree that ends at the nodes which prove
L' by themselves is a proof of L', and the smaller the less L' is.
"""

from __future__ import annotations

import bisect
import itertools
import math
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mipfs.proof.duals import DualStore
from mipfs.proof.evidence import CombinedProof

if TYPE_CHECKING:
    from mipfs.proof.proof import Proof
    from mipfs.result.sidecar import ProofClaim

SAMPLED_DUALS = 100
"""Dual vectors that are compressed to see what that brings."""
FULL_SHARE, AIMED_SHARE, MOST_FILES = 0.8, 0.97, 4
"""A file of this share of the limit is full enough, the next one is aimed at that share; and files that are made."""
WHOLE_LIMIT_MULTIPLE = 2.0
"""The whole proof is tried where it seems to take at most this multiple of the limit: its size is only estimated."""


def fit_claim(claim: ProofClaim, limit: float) -> tuple[ProofClaim, bytes]:
    """The claim of the largest bound that a file of at most `limit` bytes proves, about, and the file.

    The claim itself where nothing weaker can be claimed. Where not even the root's dual vector fits, the file is
    larger.
    """
    source = claim.source
    less = claim.less
    if less is None or claim.bound is None:
        return claim, claim.packed()
    tree, of_duals, ratio = _measure_source(source)
    bounds, size = [*tree.values.tolist(), math.inf], tree.size(of_duals)  # the last is the whole tree
    best, room = None, limit / ratio  # type: tuple[ProofClaim, bytes, int] | None, float
    if room < (whole := size(math.inf)) <= WHOLE_LIMIT_MULTIPLE * room:
        room = whole
    for tried in itertools.count(1):
        fits = max(1, bisect.bisect_right(bounds, room, key=size))
        bound = bounds[fits - 1]
        cut = claim
        if math.isfinite(bound):
            cut = replace(claim, source=source.copy_trimmed(bound), bound=min(claim.bound, less(bound)))
        content = cut.packed()
        if len(content) <= limit and (best is None or fits > best[2]):
            best = cut, content, fits
        at_end = fits == (len(bounds) if len(content) <= limit else 1)
        if at_end or FULL_SHARE * limit <= len(content) <= limit or (best is not None and tried >= MOST_FILES):
            return (cut, content) if best is None else best[:2]
        room *= AIMED_SHARE * limit / len(content)
    raise AssertionError


def _measure_source(source: Proof | CombinedProof) -> tuple[Proof, npt.NDArray[np.int64], float]:
    """The tree, about how many bytes each of its dual vectors takes, and what compression makes of that."""
    tree = source.tree if isinstance(source, CombinedProof) else source
    some = tree.needed[:: max(1, tree.needed.size // SAMPLED_DUALS)]
    if isinstance(source, CombinedProof):
        sample = source.some(some)
        of_duals = np.full(len(source.parts), max(1, int(sample.sizes.mean()) if some.size else 1), dtype=np.int64)
    else:
        sample = source.duals
        of_duals = source.duals.sizes
        sample = sample.part(some) if isinstance(sample, DualStore) else sample
    packed = sum(len(zlib.compress(array.tobytes(), 6)) for array in sample.arrays().values())
    return tree, of_duals, packed / max(1, int(sample.sizes.sum()))
