"""How much of a run of `branch` goes to the search for incumbents: by counts of work, never by the clock.

A proof gains little from more SVMs once the optimum is found, and that is soon where the tree can be closed. Where it
cannot, the incumbent is what the user gets: there the search goes on, at most for a multiple of the nodes' work.

The search is done by some strands, which round and climb by themselves beside a batch of nodes, each in any thread.
How many there are, and what each is asked, depends on the problem and the tree alone; what they find is put together
in their order when the batch before is merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np

from mipfs.drivers.pieces import Offer
from mipfs.drivers.tree import Leaf, SearchTree
from mipfs.plumbing.arrays import Arrays
from mipfs.plumbing.forget import forget
from mipfs.result.gap import relative_gap
from mipfs.run.aside import Climb, SearchStrand
from mipfs.run.heuristics import Supports
from mipfs.run.swaps import climb
from mipfs.settings import SearchSettings


class PacedSearch:
    """The search beside the nodes: a climb once that pays, to its end, then on; all in slices.

    Parameters
    ----------
    tree : SearchTree
    """

    def __init__(self, tree: SearchTree) -> None:
        self._tree = tree
        self._count = 0
        self._improved = 0
        self._nodes = 0
        self._is_due = False
        self._work = 0.0
        self.settings: SearchSettings = tree.run.settings.search
        self._is_on = False
        self._climb: Climb | None = None
        self._turn = 0
        self._rest = float(self.settings.rest)

    @cached_property
    def _strands(self) -> list[SearchStrand]:
        """The searches that go on at once: one where selections are looked at in the order in which they are found.

        That is so where a list of them is asked for, or a stop once they get no better. Rows have one solver for all.
        One is enough for a small tree, unless SVMs are dear: what each finds out for itself, the others find out too.
        """
        tree = self._tree
        run, supports = tree.run, tree.supports
        numbers = run.settings.swaps.recent * run.problem.atoms.count
        most = self.settings.strands if tree.is_dear else max(1, int(tree.work / self.settings.work_per_strand))
        most = min(most, self.settings.strands, max(1, run.settings.swaps.most_numbers // numbers))
        is_one = run.wants_all or supports.validator is not None or not run.problem.selection.is_plain
        is_apart = most > 1 and not is_one and run.options.nodes == "newton"
        return [SearchStrand(supports, is_apart) for _ in range(most if is_apart else 1)]

    @property
    def comes_to_rest(self) -> bool:
        """Whether enough was done since the last rest; the first climb goes to its end before."""
        return self._tree.work >= self._rest and (self._climb is None or self._is_on) and not self._is_due

    def restart_search(self) -> None:
        """Begin the search anew where it stands: a run that goes on from a state goes the same way to the bit."""
        work = self._tree.work
        self._rest = work + max(self.settings.rest, work / self.settings.rest_share)
        self._tree.run.oracle.drop_solvers()
        self._begin_anew(self._is_on)

    def arrays(self) -> Arrays:
        """How far it is, at a rest, and what waits to be rounded."""
        totals = self._count, self._improved, self._work, self._rest, self._is_on
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
        self._tree.run.oracle.drop_solvers()
        self._begin_anew(bool(climbs))

    def before_root(self, is_relaxed: bool) -> None:
        """Find an incumbent before the root, which may take all the time that there is.

        Of very many samples a dual vector comes first, if the root's relaxation is solved: incumbents may take it too.
        """
        run = self._tree.run
        if is_relaxed:
            self._tree.relaxation.begin_root(self._tree.first)
        supports = self._tree.supports
        # The validator's patience is for what the tree finds.
        if supports.validator is not None:
            return
        if run.options.start is None and run.warm is None:
            supports.grow()
        is_large = min(run.problem.data.n_samples, run.problem.atoms.count) >= run.settings.root.large
        is_long = run.incumbent is not None and run.incumbent.selected.size >= self.settings.long
        if is_large and not is_long:
            # a climb costs a small part of the root
            supports.splice(most=self.settings.spliced)
            climb(supports, supports.pool, (run.settings.swaps.few,), self.settings.climbed)

    def after_root(self) -> None:
        """Splice the support that the root points to, and the incumbent, unless they are near the bound."""
        run, supports = self._tree.run, self._tree.supports
        is_near = relative_gap(run.objective, self._tree.bound) <= self.settings.spliced_gap
        if supports.validator is None and not run.is_optimal and not is_near:
            for begin in (self._tree.pointed_to(), None):
                supports.splice(begin, self.settings.spliced)

    def round(self) -> None:
        """Round the weights that explorations left for it, to incumbents; where nothing is out, leaves are closed."""
        self._tree.close_leaves()
        self._evaluate(self._take_offers(), (), self._tree.supports)

    def take_jobs(self) -> Sequence[Callable[[], None]]:
        """What is done next beside a batch, in any threads, while the tree takes over more; then `collect` is called.

        Strands round, solve the SVMs of leaves, then as many as the tree's relaxations allow: an enumeration finds the
        best selection by itself. All that they need of the tree is taken now.
        """
        tree = self._tree
        tree.measure_svm()
        done = tree.relaxed_work - self._work
        self._work, self._nodes = tree.relaxed_work, tree.n_nodes
        if self._is_due:
            self._begin_anew(True)
            self._is_due = False
        shares, offers, leaves = self._svms_per_strand(done), self._take_offers(), tree.leaves
        count = len(self._strands)
        asked = [(offers[at::count], leaves[at::count], share) for at, share in enumerate(shares)]
        return [
            partial(strand.work, partial(self._evaluate, own, alone), share)
            for strand, (own, alone, share) in zip(self._strands, asked, strict=True)
            if own or alone or share > 0
        ]

    def collect(self, searched: Callable[[], None]) -> None:
        """Wait until all that `take_jobs` said is done, and take over what was found."""
        searched()
        best = self._tree.run.objective
        climbed = sum(strand.collect() for strand in self._strands)
        if self._is_on:
            self._count += climbed
            if self._tree.run.objective < best:
                self._improved = self._count
        elif self._climb is not None:
            self._is_due = not self._climb.goes_on()

    def _begin_anew(self, is_on: bool) -> None:
        """Make the strands anew, which climb from the incumbent shaken; the first from where the tree points to."""
        self._tree.measure_svm()
        forget(self, PacedSearch._strands)
        self._is_on, self._turn = is_on, 0
        seed, sigma = self._tree.n_nodes, self._tree.pointed_to() if is_on else None
        for at, strand in enumerate(self._strands if is_on else ()):
            strand.climbs = strand.own.searching(None if at else sigma, np.random.default_rng((seed, at)))

    def _take_offers(self) -> list[Offer]:
        offers, self._tree.offers = self._tree.offers, []
        return offers

    def _evaluate(self, offers: Sequence[Offer], leaves: Sequence[Leaf], supports: Supports) -> None:
        for sizes, total in offers:
            self._tree.round_sizes(sizes, total, supports)
        for leaf in leaves:
            if leaf.node.bound < supports.cutoff:
                self._tree.solve_leaf(leaf, supports)

    def _svms_per_strand(self, done: float) -> list[int]:
        """How many SVMs of climbs each strand is asked for; of what cannot be shared equally, each has some in turn."""
        count = len(self._strands)
        most = self._at_once(done)
        if self._is_on:
            most = min(most, int(self._svm_budget - self._count))
        elif not self._climbs_first():
            most = 0
        each, more = divmod(max(0, most), count)
        shares = [each + ((at - self._turn) % count < more) for at in range(count)]
        self._turn = (self._turn + more) % count
        return shares

    def _at_once(self, done: float) -> int:
        """How many SVMs come beside a batch, by the work done since the one before.

        They come one after the other, and the nodes on all cores: few, unless the incumbent is what the user gets. Of
        the first climb there are more, for small trees are smaller with what it finds.
        """
        settings, run = self.settings, self._tree.run
        if relative_gap(run.objective, run.bound) <= settings.hopeful:
            least = settings.brief if not self._is_on else 0.0
            return int(max(settings.few, max(least, settings.beside * done) / self._tree.svm_work))
        return int(max(settings.at_once, max(settings.pause, settings.share * done) / self._tree.svm_work))

    def _climbs_first(self) -> bool:
        """Whether the climb from the incumbent goes on, which begins after some work."""
        warm = self._tree.run.warm
        late, opened = self.settings.late if self._tree.run.is_near else 1, 0 if warm is None else warm.opened or 0
        nodes = opened + late * self.settings.after_nodes  # there was a climb before the leaves of an earlier tree
        is_late = self._nodes > nodes or self._work > late * self.settings.after_work
        if self._climb is None and is_late:
            self._climb = Climb(self._tree.run, self._strands)
            self._climb.goes_on()
        return self._climb is not None

    @property
    def _svm_budget(self) -> float:
        """How many SVMs the work done so far allows."""
        work = self._work
        run = self._tree.run
        settings = self.settings
        usual = settings.solves * math.sqrt(work)
        gap = min(1.0, relative_gap(run.objective, run.bound))
        more = usual * settings.eager * max(0.0, gap - settings.hopeful)
        fruitless = settings.fruitless * max(settings.patience / self._tree.svm_work, self._improved)
        return usual + min(more, settings.share * work / self._tree.svm_work, fruitless)
