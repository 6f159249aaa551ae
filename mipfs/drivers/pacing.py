"""How much of a run of `branch` goes to the search for incumbents: by counts of work, never by the clock.

A proof gains little from more SVMs once the optimum is found, and that is soon where the tree can be closed. Where it
cannot, the incumbent is what the user gets: there the search goes on, at most for a multiple of the nodes' work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from mipfs.drivers.tree import LARGE, UNIT, Tree
from mipfs.result.gap import relative_gap
from mipfs.run.swaps import FEW

SEARCH_AFTER, WORK = 20, 1.0
"""Nodes, or units of work (`Tree.work`), after which a climb from the incumbent pays; it goes to its end."""
SEARCHED = 9
"""SVMs of the search that goes on from there, per square root of the tree's work: most of them early."""
HOPEFUL, FAR, SHARE = 0.1, 100.0, 2.0
"""Above this relative gap there are more of them: so many times what the gap is above it, up to such a share of the
tree's work."""
FRUITLESS, FIRST = 4, 100.0
"""They end at so many times the SVMs that the last improvement took, which are taken for this much work at least."""
CALL, NUMBER, ROW = 1e6, 4.0, 40.0
"""What an SVM costs, about, in the multiplications of `UNIT`: the call, each stored number, and numbers that a row is
like; measured on sonar (0.6 ms), musk1 (0.7), sms (1.7), w8a and usps (6)."""
LEAST, PAUSE = 40, 40.0
"""SVMs that may come at once beside a batch of the first size, and units of work where these are more SVMs."""
SPLICED, CLIMBED = 100, 300
"""SVMs at most of the splicing and of the climb before the root, so that a short limit sees a root."""


class Search:
    """The search beside the nodes: a climb once that pays, then on in slices.

    Parameters
    ----------
    tree : Tree
    """

    def __init__(self, tree: Tree) -> None:
        data = tree.run.problem.data
        self._tree, self._count, self._improved, self._work = tree, 0, 0, 0.0
        self._cost = (CALL + NUMBER * (data.block().nnz + ROW * data.n_samples)) / UNIT
        self._climbs: Iterator[None] | None = None

    def before_root(self) -> None:
        """Find an incumbent before the root, which may take all the time that there is."""
        run, supports = self._tree.run, self._tree.supports
        if supports.validator is not None:  # its patience is for what the tree finds
            return
        if run.options.start is None:
            supports.grow()
        if min(run.problem.data.n_samples, run.problem.atoms.count) >= LARGE:  # a climb costs a small part of the root
            supports.splice(most=SPLICED)
            supports.search(supports.pool, (FEW,), CLIMBED)

    def go_on(self, batches: float) -> None:
        """Solve as many SVMs as the tree's work allows, beside so many batches of the first size."""
        tree = self._tree
        if self._climbs is None:
            if tree.n_nodes > SEARCH_AFTER or tree.work > WORK:
                tree.supports.search(tree.supports.pool)
                self._climbs, self._work = tree.searching(), tree.work
            return
        last, self._work = self._work, tree.work
        at_once = max(LEAST, PAUSE / self._cost, SHARE * (self._work - last) / self._cost)
        most, best = min(batches * at_once, self._allowed - self._count), tree.run.objective
        before, subproblem = self._count, tree.supports.subproblem
        begun = subproblem.count
        for _ in islice(self._climbs, max(0, int(most))):  # what is in hand already costs none
            self._count = before + subproblem.count - begun
            if tree.run.objective < best:
                best, self._improved = tree.run.objective, self._count

    @property
    def _allowed(self) -> float:
        """SVMs by now."""
        work, run = self._tree.work, self._tree.run
        usual = SEARCHED * math.sqrt(work)
        gap = min(1.0, relative_gap(run.objective, run.bound))
        more = usual * FAR * max(0.0, gap - HOPEFUL)
        return usual + min(more, SHARE * work / self._cost, FRUITLESS * max(FIRST / self._cost, self._improved))
