"""Branch-and-bound on the selection, with the Boolean relaxation at every node.

    take the open nodes of least bound; solve their relaxations (each earns a bound from a feasible dual vector)
    in order: close the nodes whose bound reaches the cutoff; fix what screening fixes in the others, round them to
    incumbents, and split them on the fractional feature of largest |w_j|

Nodes are taken in batches, and cut into units of work, whose size depends on the tree alone; units are explored by as
many threads as there are, and merged in order, so the tree and the answer do not depend on the number of threads
(`mipfs.drivers.tree`). While a batch is explored the one before is merged, and incumbents are looked for. Now and then
all that is out is waited for: a run that goes on from a state that was kept there goes the same way to the bit.

For structural losses, and where the user's own variables are whole numbers, on which the tree must split too, or have
costs, nodes are LPs over shared cuts (`mipfs.drivers.gbd`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, cast

import numpy as np

from mipfs.capability import ATOMS, PAIRS, needs_ridge
from mipfs.drivers import gbd, growing, tree_state
from mipfs.drivers.anchors import UnitCutter
from mipfs.drivers.common_options import SupportOptions
from mipfs.drivers.earlier import EarlierTree, better, is_asked_for_more, own_arrays, split_by_prefix
from mipfs.drivers.executor import Executor, Exploration, PendingUnit
from mipfs.drivers.pacing import PacedSearch
from mipfs.drivers.replanted import Replanting
from mipfs.drivers.shelf import load_published
from mipfs.drivers.together import SharedTree
from mipfs.drivers.tree import SearchTree
from mipfs.errors import UsageError
from mipfs.formulation.program import check_size
from mipfs.inner.batch import Batch
from mipfs.inner.completions import NodeEnumerator, are_few, first_places
from mipfs.inner.rows_node import RowsRelaxation, choose_relaxation
from mipfs.inner.unit import NodeUnit
from mipfs.plumbing.arrays import Arrays
from mipfs.plumbing.declared import Count, Names
from mipfs.pointers import Step
from mipfs.problem import Problem
from mipfs.proof import saved as proofs
from mipfs.run.carry import adapt_cuts
from mipfs.run.heuristics import Supports
from mipfs.run.run import Run, Steps, refusing_broken_state, restore_run
from mipfs.run.ties import near_optimal_list
from mipfs.run.warm import OldTree
from mipfs.separators import get_separator
from mipfs.settings import BranchSettings, CompletionSettings

LOG = logging.getLogger("mipfs")
CAPABILITY = replace(
    gbd.CAPABILITY,
    atoms=(*ATOMS, *PAIRS),
    excluding=True,
    no_state=tree_state.why_none,
    kernel_options=("threads", "nodes", "branching"),
    slow_values=("conic",),
)

WAYS = {
    "kernels": "Newton's steps in compiled code",
    "batch": "ADMM, many at a time",
    "interior": "the interior point, one after the other",
    "array": "ADMM in arrays, many at a time",
}
"""What the log says of the option `relax`."""
ONE_MASTER = (
    "takes neither the structural loss nor extra variables that are whole or have costs, whose tree is one master "
    "problem; leave it out"
)


@dataclass(frozen=True)
class Options(SupportOptions):
    """Options of `branch`.

    Parameters
    ----------
    gap : float in [0, 1), default 1e-4
        Relative gap at which the incumbent counts as optimal.
    time_limit : float, optional, in seconds
    memory_limit : float, optional, in gigabytes that the process may hold
    iteration_limit : int, optional, number of nodes
    start : tuple of str, optional
        A support to begin from; it must satisfy the rows.
    certificate : bool, default True
        Keep what proves the bound. Without it the tree is the same, and of nodes that are done nothing is kept; nobody
        can check the result (`mipfs.verify`).
    validation : Instance, optional
        Stop when the error on it has not improved for `patience` classifiers.
    patience : int, default 20
    pool : CutPool, optional
        Cuts of an earlier run (`Result.pool`) on the same data, atoms, loss and bias; C, M and rows may differ. It is
        not changed: where one is given, also an empty ``CutPool(problem)``, the result has all cuts at hand.
    threads : int, optional
        By default all cores that the process may use, and no more work at a time in any case: threads beyond the cores
        would only be in each other's way. The tree and the answer do not depend on it.
    nodes : {"newton", "conic"}
        How the relaxation of a node is solved: by the kernels of this package, or declared in CVXPY and solved by
        Clarabel (`mipfs.lab.shelf.conic_tree`), one at a time: for losses that are a sum over the samples.
    pool_gap : float >= 0, optional
        Find all supports whose objective is within this relative gap of the optimum.
    pool_size : int >= 1, optional
        Number of best supports to find (with `pool_gap`: the best of those).
    active : tuple of str, optional
        Atoms to begin with: the problem over these is solved first, then they are grown until the rest is proven out
        (`mipfs.drivers.growing`). Columns that are computed are solved in this way in any case.
    batch : int >= 1, optional
        Nodes that are handed out at a time: by default a share of those that are open, at least 8, and of small nodes
        up to some hundreds. The tree depends on this number, and not on who explores it.
    branching : str, optional
        The rule by which a node's atom is chosen, of `mipfs.branching`: "largest-weight" (default), "most-fractional",
        "pseudo-costs", "reliability".
    separate : str, optional
        A separator, of `mipfs.separators`: "covers". It adds rows that hold for all of S and that a relaxed σ breaks,
        at the root and during the search; for problems with rows.
    relax : {"kernels", "batch", "interior", "array"}, optional
        What relaxes the nodes below the root: Newton's method in compiled code, for single features with ½w²; ADMM on
        many nodes at once (`mipfs.inner.batch`), for groups and boxes too; or the interior point. The first two take
        rows without extra variables. By default the first of these that takes the problem, and the second where dense
        data have 400 to 2,048 columns of like size, and as many samples. "array" is the second in arrays of a library,
        without rows, see `device`.
    device : {"cpu", "cuda"}, optional
        With ``relax="array"``: where arrays lie, with NumPy, or with CuPy on a GPU (``pip install 'mipfs[gpu]'``).
    client : dask.distributed.Client, optional
        Its workers explore the nodes (`mipfs.drivers.workers`), not threads of this process.
    executor : Executor, optional
        Whoever else explores the nodes (`mipfs.drivers.executor`), for one run at a time.
    shared : SharedTree, optional
        What `mipfs.frontier` searches for all its points (`mipfs.drivers.together`): it is asked first.
    """

    certificate: bool = True
    threads: Count | None = None
    active: Names | None = None
    nodes: Literal["newton", "conic"] = "newton"
    batch: Count | None = None
    branching: str | None = None
    separate: str | None = None
    relax: Literal["kernels", "batch", "interior", "array"] | None = None
    device: Literal["cpu", "cuda"] | None = None
    client: Any = field(default=None, repr=False, compare=False)
    executor: Executor | None = field(default=None, repr=False, compare=False)
    shared: SharedTree | None = field(default=None, repr=False, compare=False)
    SETTINGS: ClassVar = BranchSettings

    def steering(self, settings: BranchSettings) -> BranchSettings:
        """The settings with what these options say of them.

        Raises
        ------
        UsageError
            There is no branching rule, or no separator, of that name.
        """
        if self.separate is not None:
            get_separator(self.separate)
        if self.branching is None:
            return settings
        return replace(settings, tree=replace(settings.tree, branching=self.branching))


def refuse(problem: Problem, options: Options) -> None:
    """Refuse what a cluster or another executor cannot take, before anything is begun.

    Raises
    ------
    UsageError
    """
    if options.client is not None and options.executor is not None:
        raise UsageError("client and executor both say who explores the nodes; leave one of them out")
    name = "client" if options.executor is None else "executor"
    if options.nodes == "conic":
        raise UsageError(f"nodes = 'conic' are solved one at a time, by Clarabel; leave {name} or nodes out")
    if problem.is_one_master:
        raise UsageError(f"{name} {ONE_MASTER}")


def _check_over_weights(problem: Problem, options: Options) -> None:
    """Refuse options whose parts of the search know no rows over the weights, and no bounds that exclude 0."""
    for name, asked in (("active", options.active is not None), ("nodes = 'conic'", options.nodes == "conic")):
        if asked and problem.weight_rows:
            raise UsageError(f"{name} knows no rows over the weights; leave it, or weight_rows, out")
        if asked and not problem.regulariser.is_monotone:
            raise UsageError(f"{name} knows no bounds on weights that exclude 0; leave it, or these bounds, out")


def _check_separate(problem: Problem, options: Options) -> None:
    """Refuse a separator beside searches that know no more rows than they begin with."""
    if grows_over_atoms(problem, options.active):
        raise UsageError("separate takes all atoms at once; leave it, or active and atoms that are computed, out")
    if options.nodes == "conic":
        raise UsageError("nodes = 'conic' knows no rows that are separated; leave it, or separate, out")


def _make_tree(run: Run, supports: Supports, tol: float) -> SearchTree:
    """The tree with the node solver that was asked for, and that carries the problem."""
    if run.options.device is not None and run.options.relax != "array":
        raise UsageError("device says where arrays lie; it takes relax = 'array' beside it, or leave it out")
    if run.options.nodes == "conic":
        needs_ridge(run.problem, "nodes = 'conic'")
        check_size(run.problem.data, "CVXPY program")
        return cast(SearchTree, load_published("conic tree").ConicTree(run, supports, tol))
    return SearchTree(run, supports, tol)


def _batch_size(run: Run, tree: SearchTree, out: Sequence[PendingUnit], enumerates: bool) -> int:
    """How many nodes are handed out next, as the tree alone decides: a share of the open ones.

    Many in a large tree, so that there is work for many cores; those of least bound all the same. A limit of nodes
    counts what is out, too.
    """
    if run.options.batch is not None:
        return int(run.options.batch)
    settings = tree.settings
    most = max(settings.least_most, int(settings.numbers // tree.relaxation.most_numbers))
    if tree.pace:
        grown = min(settings.batch_most, settings.batch_share * tree.relaxed_work)
        most = max(most, int(max(settings.batch_work, grown) / tree.per_node))
    least = max(settings.batch, tree.relaxation.handed, run.settings.completions.batch if enumerates else 1)
    batch = max(least, min(most, tree.n_open // settings.share, tree.within_reach))
    limit, budget = run.options.iteration_limit, tree.relaxation.budget
    taken = sum(part.unit.size * (1 if part.unit.is_enumerated else budget) for part in out)
    left = math.inf if limit is None else (limit - tree.n_nodes - taken) // budget
    return int(max(settings.batch, min(batch, left)))


def _count_nodes_left(run: Run, tree: SearchTree, out: Sequence[PendingUnit]) -> float:
    """How many nodes a limit of nodes leaves, those that are out taken off."""
    limit = run.options.iteration_limit
    return math.inf if limit is None else limit - tree.n_nodes - sum(part.unit.size for part in out)


def _merge_exploration(
    tree: SearchTree, exploration: Exploration, out: Sequence[PendingUnit], before: Callable[[], None] = lambda: None
) -> None:
    """Take over, in order, what was found below some nodes; those that nobody came to are open as before."""
    for part in out[-1:]:
        # The last first: what is waited for once wakes this thread once.
        exploration.result(part)
    tree.merge([part.unit for part in out], [exploration.result(part) for part in out], before)


def _report_progress(run: Run, tree: SearchTree, bound: float, anchors: UnitCutter) -> None:
    """Take over the bound, and tell how far the tree is."""
    if anchors.is_on:
        run.count(enumerated=tree.enumerated, completions=tree.svms)
    run.iteration = tree.n_nodes
    run.raise_bound(min(bound, run.objective))
    run.reserve(tree.to_write)
    totals = {"subproblems": tree.supports.subproblem.count, "cuts": len(tree.supports.pool)}
    if run.options.separate is not None:
        totals["rows_added"] = len(tree.derived)
    run.count(nodes=tree.n_nodes, newton_steps=tree.steps, stalled=tree.stalled, rescued=tree.rescued, **totals)
    run.record()


@dataclass(eq=False)
class BranchAndBound:
    """One search: a tree, what proves more as yet, incumbents beside it, and nodes that are closed by enumeration.

    Attributes
    ----------
    run, supports, tree : Run, Supports, Tree
    earlier : EarlierTree, optional, the tree that this one began anew after
    units : handed out where a state stood
    """

    run: Run
    supports: Supports
    tree: SearchTree
    earlier: EarlierTree | None
    units: Sequence[NodeUnit] = ()

    def __post_init__(self) -> None:
        self.beside = PacedSearch(self.tree)
        self.anchors = UnitCutter(self.tree)

    def begin(self, is_new: bool) -> None:
        """Open the root, or go on where a state stood."""
        run, anchors = self.run, self.anchors
        run.is_exact = is_new
        if not is_new:
            assert run.resume is not None
            self._take_up(own_arrays(run.resume.arrays))
            run.closed = not self.tree.n_open and not self.units
            return
        if run.warm is not None and run.warm.tree is not None and self._try_replant(run.warm.tree):
            _report_progress(run, self.tree, self.tree.bound, anchors)
            return
        self.beside.before_root(not anchors.has_one_place)
        if anchors.has_one_place:
            anchors.open_root()
        else:
            self.tree.open_root()
        self.beside.after_root()
        _report_progress(run, self.tree, self.tree.bound, anchors)

    def _try_replant(self, old: OldTree) -> bool:
        """Go on where an earlier tree ends, if that promises less work than a new one."""
        one = Replanting(self.tree, old)
        is_used = one.plant()
        assert self.run.warm is not None
        self.run.warm.used(one.leaves, one.open if is_used else None)
        return is_used

    def step(self, exploration: Exploration, out: Sequence[PendingUnit]) -> Sequence[PendingUnit]:
        """Hand out the nodes of least bound, take over those of the batch before, `out`; returns what is out then."""
        run, tree, beside = self.run, self.tree, self.beside
        if not out and (level := self.anchors.level()) < math.inf:
            tree.above, tree.level = tree_state.of_tree(tree), level
        batch = _batch_size(run, tree, out, self.anchors.is_on)
        popped = tree.pop(batch)
        tree.separate_at(popped)
        enumerated, others = self.anchors.units(popped, tree.cutoff, _count_nodes_left(run, tree, out))
        # The longest units come first, so that no core works alone at the end of a batch.
        units = tree.units(others, tree.cutoff) + enumerated
        searched = exploration.beside(beside.take_jobs())
        handed = exploration.begin(units)
        _merge_exploration(tree, exploration, out, lambda: beside.collect(searched))
        run.is_exact = beside.comes_to_rest
        if handed and tree.n_open < (min(batch, tree.settings.batch) if self.anchors.is_on else batch):
            _merge_exploration(tree, exploration, handed)
            handed = []
        if not handed:
            beside.round()
        run.closed = not tree.n_open and not handed and not self._try_rise()
        self.supports.reduce()
        if run.is_exact:
            beside.restart_search()
        if tree.is_littered:
            tree.forget([part.unit for part in handed])
        least = [float(part.unit.nodes.heads["bound"].min()) for part in handed]
        _report_progress(run, tree, min([tree.bound, *least]), self.anchors)
        return handed

    def _try_rise(self) -> bool:
        """Whether a tree that is closed was so up to a level alone: then the tree above it goes on."""
        run, tree = self.run, self.tree
        is_less = tree.level < self.supports.cutoff
        if is_less:
            run.raise_bound(min(tree.bound, run.objective))
            arrays = tree_state.of_tree(tree)
            self.earlier = better(self.earlier, EarlierTree(tree.bound, tree.finish(), arrays))
            tree_state.go_on_above_level(tree)
        else:
            tree.level, tree.above = math.inf, {}
        return is_less

    def finish(self) -> None:
        """Leave in the run what was proven, and found."""
        run, earlier = self.run, self.earlier
        is_less = earlier is not None and earlier.outlives(min(self.tree.bound, run.objective), run)
        run.outcome.proof = earlier.proof if earlier is not None and is_less else self.tree.finish()
        run.outcome.derived = self.tree.derived
        if run.outcome.proof is not None:
            run.outcome.proof.widen(self.tree.n_rows)
        run.outcome.pool = self.supports.pool
        run.outcome.found = near_optimal_list(self.supports)

    def saved(self, out: Sequence[PendingUnit] = ()) -> Arrays:
        """What a run needs to go on: its tree, the supports it has seen, and how far its search for others is."""
        supports = self.supports
        kept = {**supports.arrays(), **{f"sub_{name}": array for name, array in supports.subproblem.kept()().items()}}
        kept |= {f"cuts_{name}": array for name, array in proofs.saved_cuts(supports.pool).items()}
        taken = [part.unit for part in out]
        return {**tree_state.save_tree(self.tree, self.earlier, taken), **kept, **self.beside.arrays()}

    @refusing_broken_state
    def _take_up(self, kept: Arrays) -> None:
        """Give the supports and the search what `saved` kept; the tree has its own."""
        self.supports.subproblem.take_up(split_by_prefix(kept, "sub_")[0])
        proofs.restored_cuts(self.supports.pool, split_by_prefix(kept, "cuts_")[0])
        self.beside.take_up(kept)


def _plant_search(run: Run, supports: Supports) -> BranchAndBound:
    """The search with its root, or where a state stood."""
    make = partial(_make_tree, run, supports, max(1e-10, 0.02 * run.options.gap))
    tree, earlier, units = (None, None, ()) if run.resume is None else _resume_tree(run, supports, make)
    found = BranchAndBound(run, supports, make() if tree is None else tree, earlier, units)
    LOG.debug("nodes are relaxed by %s", ", those left by ".join(WAYS[way] for way in found.tree.relaxation.ways))
    found.begin(is_new=tree is None)
    return found


def _by_one_master(run: Run) -> Steps:
    """Solve a problem whose tree is one master problem."""
    if run.options.nodes == "conic":
        raise UsageError("nodes = 'conic' takes neither the structural loss nor whole extra variables; leave it out")
    for name in ("branching", "separate"):
        if getattr(run.options, name) is not None:
            raise UsageError(f"{name} {ONE_MASTER}")
    return gbd.search(run)


@refusing_broken_state
def _resume_tree(
    run: Run, supports: Supports, make: Callable[[], SearchTree]
) -> tuple[SearchTree | None, EarlierTree | None, Sequence[NodeUnit]]:
    """The tree that a run goes on with, None where it begins anew; an earlier one that proves more; its units."""
    assert run.resume is not None
    restore_run(run, run.resume)

    def of(arrays: Arrays) -> SearchTree:
        tree = make()
        tree_state.restore_tree(tree, arrays)
        return tree

    arrays = own_arrays(run.resume.arrays)
    supports.take_up(arrays)
    tree_state.check_kept(arrays, run.options.certificate)
    earlier = EarlierTree.among(run.resume.arrays, lambda arrays: of(arrays).finish())
    tree = of(arrays)
    if tree.above:
        # Made only so that a broken state is refused now: this tree goes on once the level is proven.
        of(tree.above)
    bound = min(tree.bound, run.objective)
    run.raise_bound(max(bound, -math.inf if earlier is None else earlier.bound))
    # A state has the supports of leaves that are done only where its run listed all.
    lacks_supports = run.wants_all and not arrays["tree_listed"]
    if is_asked_for_more(tree.cutoff, tree.closed_at) or lacks_supports:
        of_tree = {name: array for name, array in arrays.items() if name.startswith(tree_state.NAMES)}
        return None, better(earlier, EarlierTree(bound, tree.finish(), of_tree)), ()
    return tree, earlier, tree_state.handed_out(tree, arrays)


def kernels(problem: Problem, relax: str | None = None) -> Sequence[Sequence[Step]]:
    """The kernels of its nodes, which take long to compile, in lists that take about as long each."""
    if problem.is_one_master:
        return ()
    everything, stop = np.arange(problem.atoms.count), np.zeros(1, dtype=np.int8)
    relaxation = RowsRelaxation(problem, everything, lambda: False, stop, relax=relax)
    own = relaxation.footpath.kernels(relaxation.propagation.sides)
    if relaxation.kernel is None:
        return [own]
    if isinstance(relaxation.kernel, Batch):
        others = [] if relaxation.newton is None else relaxation.newton().kernels(not problem.selection.is_plain)
        first, second = relaxation.kernel.kernels()
        return [first, [*second, *own], *others]
    first, second = relaxation.kernel.kernels(not problem.selection.is_plain)
    return [first, [*second, *own]]


def relaxes_by(problem: Problem, options: Any) -> str | None:
    """How the option `relax` would read if it were given, where data does not say it: "batch" or "array"; else None."""
    if problem.is_one_master or options.nodes == "conic" or not problem.data.block().is_stored:
        return None
    how = choose_relaxation(problem, options.relax)
    return how if how in ("batch", "array") else None


def enumerated(problem: Problem) -> int:
    """How many places the root has, 2 for any more, where nodes are closed by enumeration; 0 where none is."""
    if not are_few(problem, CompletionSettings()):
        return 0
    return min(2, first_places(problem))


def completion_kernels(problem: Problem) -> Sequence[Step]:
    """The kernels of nodes that are closed by enumeration."""
    return NodeEnumerator(problem, np.arange(problem.atoms.count)).kernels()


def grows_over_atoms(problem: Problem, active: Sequence[str] | None) -> bool:
    """Whether a problem is solved over growing parts of its atoms (`mipfs.drivers.growing`), which take no pool."""
    return active is not None or not problem.data.block().is_stored


def run(run: Run) -> Steps:
    """Solve the problem of `run`; what is found is left in it."""
    _check_over_weights(run.problem, run.options)
    if run.options.separate is not None:
        _check_separate(run.problem, run.options)
    if grows_over_atoms(run.problem, run.options.active):
        return growing.run(run, search)
    return search(run)


def _executor_of(options: Options) -> Executor | None:
    """Who explores in place of threads of this process, if anyone: the workers of a client, or what the user gave."""
    if options.client is None:
        return options.executor
    from mipfs.drivers.workers import DaskExecutor

    return DaskExecutor(options.client)


def search(run: Run) -> Steps:
    """Solve the problem of `run` with all its atoms in play."""
    if run.problem.is_one_master:
        yield from _by_one_master(run)
        return
    if run.options.shared is not None and run.options.shared.settle(run):
        yield None
        return
    begun = gbd.begin(run)
    if begun is None:
        return
    supports = begun[0]
    if run.options.pool is not None:
        supports.pool = adapt_cuts(run.options.pool, run.problem)
    one = _plant_search(run, supports)
    yield one.saved
    with Exploration(one.tree, _executor_of(run.options)) as exploration:
        out: Sequence[PendingUnit] = exploration.begin(one.units)
        while run.stop() is None:
            out = one.step(exploration, out)
            yield partial(one.saved, out)
        # A unit is merged as a whole, unless the run must stop: whatever the moment, one answer.
        _merge_exploration(one.tree, exploration, out)
        one.beside.round()
    run.raise_bound(min(one.tree.bound, run.objective))
    yield one.saved
    one.finish()
