"""How much of a run of `branch` goes to the search for incumbents: by counts of work, never by the clock.

A proof gains little from more SVMs once the optimum is found, and that is soon where the tree can be closed. Where it
cannot, the incumbent is what the user gets: there the search goes on, at most for a multiple of the nodes' work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import numpy as np
import numpy.typing as npt

from mipfs.drivers.tree import Tree
from mipfs.plumbing.arrays import Arrays
from mipfs.result.gap import relative_gap
from mipfs.settings import SearchSettings

Offer = tuple[npt.NDArray[np.float32], float]
"""Sizes of weights that are to be rounded, and what their relaxed σ add up to."""


class Search:
    """The search beside the nodes: a climb once that pays, to its end, then on; all in slices.

    Parameters
    ----------
    tree : Tree
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._count = 0
        self._improved = 0
        self._nodes = 0
        self._is_due = False
        self._work = 0.0
        self.settings: SearchSettings = tree.run.settings.search
        self._cost = tree.svm_work
        self._first: Iterator[None] | None = None
        self._climbs: Iterator[None] | None = None
        self._rest = float(self.settings.rest)

    @property
    def comes_to_rest(self) -> bool:
        """Whether enough was done since the last rest; the first climb goes to its end before."""
        return self._tree.work >= self._rest and (self._first is None or self._climbs is not None) and not self._is_due

    def rest(self) -> None:
        """Begin the search anew where it stands: a run that goes on from a state goes the same way to the bit."""
        work = self._tree.work
        self._rest = work + max(self.settings.rest, work / self.settings.rest_share)
        self._tree.run.oracle.rest()
        if self._climbs is not None:
            self._climbs = self._tree.searching()

    def arrays(self) -> Arrays:
        """How far it is, at a rest, and what waits to be rounded."""
        totals = self._count, self._improved, self._work, self._rest, self._climbs is not None
        sizes = np.empty((len(self._tree.offers), self._tree.relaxation.alive.size), dtype=np.float32)
        for at, (size, _) in enumerate(self._tree.offers):
            sizes[at] = size
        sums = np.array([total for _, total in self._tree.offers], dtype=float)
        return {"search_totals": np.array(totals, dtype=float), "search_sizes": sizes, "search_sums": sums}

    def take_up(self, kept: Arrays) -> None:
        """Go on where `arrays` says."""
        count, improved, work, rest, climbs = kept["search_totals"].tolist()
        self._count, self._improved, self._work, self._rest = int(count), int(improved), work, rest
        sizes, sums = kept["search_sizes"], kept["search_sums"]
        if sizes.shape != (sums.size, self._tree.relaxation.alive.size) or not np.isfinite(sums).all():
            raise ValueError("weights to be rounded of other atoms")
        self._tree.offers = [*zip(np.asarray(sizes, dtype=np.float32), sums.tolist(), strict=True)]
        self._tree.run.oracle.rest()
        self._climbs = self._tree.searching() if climbs else None

    def before_root(self, is_relaxed: bool) -> None:
        """Find an incumbent before the root, which may take all the time that there is.

        Of very many samples a dual vector comes first, if the root's relaxation is solved: incumbents may take it too.
        """
        run = self._tree.run
        if is_relaxed:
            self._tree.relaxation.begin_root(self._tree.first)
        supports = self._tree.supports
        if supports.validator is not None:  # its patience is for what the tree finds
            return
        if run.options.start is None and run.warm is None:
            supports.grow()
        if min(run.problem.data.n_samples, run.problem.atoms.count) >= run.settings.root.large:
            # a climb costs a small part of the root
            supports.splice(most=self.settings.spliced)
            supports.search(supports.pool, (run.settings.swaps.few,), self.settings.climbed)

    def round(self) -> None:
        """Round the weights that explorations left for it, to incumbents."""
        self._round(self._taken())

    def begin(self) -> Callable[[], None]:
        """What is done next beside a batch, in any thread, while the tree takes over more.

        It rounds, then solves as many SVMs as the tree's relaxations allow: an enumeration finds the best selection by
        itself. All that it needs of the tree is taken now.
        """
        tree = self._tree
        done = tree.relaxed_work - self._work
        self._work, self._nodes = tree.relaxed_work, tree.n_nodes
        if self._is_due:
            self._climbs, self._is_due = tree.searching(), False
        return partial(self._go_on, self._taken(), done)

    def _taken(self) -> list[Offer]:
        offers, self._tree.offers = self._tree.offers, []
        return offers

    def _round(self, offers: list[Offer]) -> None:
        for sizes, total in offers:
            self._tree.round_sizes(sizes, total)

    def _go_on(self, offers: list[Offer], done: float) -> None:
        self._round(offers)
        tree = self._tree
        most = self._at_once(done)
        if self._climbs is None:
            self._is_due = self._has_climbed(most)
            return
        most = min(most, int(self._allowed - self._count))
        best = tree.run.objective
        before = self._count
        subproblem = tree.supports.subproblem
        begun = subproblem.count
        for _ in islice(self._climbs, max(0, most)):  # what is in hand already costs none
            self._count = before + subproblem.count - begun
            if tree.run.objective < best:
                best = tree.run.objective
                self._improved = self._count

    def _at_once(self, done: float) -> int:
        """How many SVMs come beside a batch, by the work done since the one before.

        They come one after the other, and the nodes on all cores: few, unless the incumbent is what the user gets. Of
        the first climb there are more, for small trees are smaller with what it finds.
        """
        settings, run = self.settings, self._tree.run
        if relative_gap(run.objective, run.bound) <= settings.hopeful:
            least = settings.brief if self._climbs is None else 0.0
            return int(max(settings.few, max(least, settings.beside * done) / self._cost))
        return int(max(settings.at_once, max(settings.pause, settings.share * done) / self._cost))

    def _has_climbed(self, most: int) -> bool:
        """Go on with the climb from the incumbent by `most` SVMs; whether it is at its end."""
        tree = self._tree
        if self._first is None:
            if self._nodes <= self.settings.after_nodes and self._work <= self.settings.after_work:
                return False
            self._first = tree.supports.climbing(tree.supports.pool)
        return sum(1 for _ in islice(self._first, most)) < most

    @property
    def _allowed(self) -> float:
        """How many SVMs the work done so far allows."""
        work = self._work
        run = self._tree.run
        settings = self.settings
        usual = settings.solves * math.sqrt(work)
        gap = min(1.0, relative_gap(run.objective, run.bound))
        more = usual * settings.eager * max(0.0, gap - settings.hopeful)
        fruitless = settings.fruitless * max(settings.patience / self._cost, self._improved)
        return usual + min(more, settings.share * work / self._cost, fruitless)
