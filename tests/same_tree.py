"""Whoever explores the nodes of `branch`, the result is the same bytes: random problems of every kind.

    python -m tests.same_tree --problems 50 --seed 1
    python -m tests.same_tree --case 7 --way "dask, a worker killed"

Every problem is solved with 1, 2, 3, 8 and 16 threads, by two and by four processes, which live for the whole campaign
and so have loaded kernels in another order than this one, and by two workers of Dask of which one is killed in the
middle. Compared are the JSON but for seconds, and the certificate; the first one is verified. A fault is printed with
the line that repeats it.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from tests.drivers.test_resumed import written

THREADS = 1, 2, 3, 8, 16
PROCESSES = 2, 4
KILLED = "dask, a worker killed"
WAYS = (*(f"{count} threads" for count in THREADS), *(f"{count} processes" for count in PROCESSES), KILLED)
LIMIT = 800
"""Nodes after which a tree ends: every way must end there alike."""
SLOW = {"interior": 40, "array": 200}
"""And of nodes that are relaxed in these ways."""
NO_BATCH = {"extra variable", "bounds exclude 0", "nested"}
"""Problems whose nodes are not relaxed many at a time."""
LEVELS = 4
"""Of a word."""


@dataclass(frozen=True)
class Drawn:
    """A problem, the options of `branch`, and what it is made of."""

    problem: Any
    options: dict[str, Any]
    tags: tuple[str, ...]


class Draft:
    """Random numbers, and the tags so far."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([59, seed])
        self.tags = list[str]()

    def one_of(self, **chances: float) -> str:
        """One of some words, by their chances; it becomes a tag."""
        share = np.array(list(chances.values()))
        self.tags.append(list(chances)[int(self.rng.choice(share.size, p=share / share.sum()))])
        return self.tags[-1]

    def chance(self, share: float, tag: str) -> bool:
        """Whether something happens; it becomes a tag where it does."""
        happens = bool(self.rng.random() < share)
        self.tags += [tag] if happens else []
        return happens


def _data(draft: Draft, n: int, p: int) -> Any:
    """Noisy labels of some columns that are dense, sparse, 0/1, tied, or levels of words."""
    from scipy import sparse

    from mipfs.data.instance import Instance

    r, kind = draft.rng, draft.one_of(dense=0.5, sparse=0.15, binary=0.1, ties=0.1, words=0.15)
    X = r.normal(size=(n, p)) * r.uniform(0.3, 2.0, p)
    if kind == "words":  # a column a level, of which one is 1
        X = (r.integers(0, LEVELS, size=(n, -(-p // LEVELS)))[:, np.arange(p) // LEVELS] == np.arange(p) % LEVELS) * 1.0
    if kind in ("sparse", "binary"):
        X = np.where(r.random((n, p)) < 0.3, 1.0 if kind == "binary" else X, 0.0)
    if kind == "ties":
        X[:, p // 2 :] = X[:, : p - p // 2] * r.choice([1.0, -1.0, 2.0], p - p // 2)
    noise = r.uniform(1.0, 6.0)
    scores = X[:, :8] @ r.normal(size=min(8, p))
    y = np.where(scores + noise * np.std(scores) * r.normal(size=n) > np.median(scores), 1.0, -1.0)
    weights = r.uniform(0.5, 2.0, n) if draft.chance(0.2, "sample weights") else None
    stored = sparse.csc_array(X) if kind in ("sparse", "binary", "words") else X
    scale: Any = "none" if kind in ("sparse", "binary", "words") else str(r.choice(["none", "standard", "unit"]))
    return Instance.from_arrays(stored, y, sample_weight=weights, scale=scale)


def _atoms(draft: Draft, data: Any) -> Any:
    """What is selected: features, scaled or not, groups that overlap, pairs, whole words, or a tree."""
    from mipfs.atoms.features import Features
    from mipfs.atoms.groups import Groups
    from mipfs.atoms.tree import Tree

    p, names = data.n_features, data.feature_names
    if "words" in draft.tags and draft.chance(0.6, "words as groups"):
        return Groups(data, {f"w{k}": [*range(k, min(p, k + LEVELS))] for k in range(0, p, LEVELS)})
    kind = draft.one_of(features=0.62, norm=0.1, groups=0.12, pairs=0.11, nested=0.05)
    if kind == "pairs":
        return Groups(data, {f"h{k}": [k, k + 1] for k in range(0, p - 1, 2)})
    if kind == "groups":
        return Groups(data, {f"g{k}": [k, (k + 5) % p] for k in range(min(p, 12))}, scaling="norm")
    if kind == "nested":
        return Tree(data, {name: f"n{k % 5}" for k, name in enumerate(names)})
    return Features(data, "norm" if kind == "norm" else "none")


def _size(draft: Draft) -> tuple[int, int, int | None]:
    """Samples, features, and M: a tree, an enumeration, or no cardinality row."""
    r = draft.rng
    match draft.one_of(tree=0.55, enumeration=0.3, free=0.15):
        case "enumeration":
            return int(r.integers(25, 45)), int(r.integers(45, 110)), int(r.integers(1, 4))
        case "free":
            return int(r.integers(50, 120)), int(r.integers(10, 18)), None
    return int(r.integers(60, 150)), int(r.integers(20, 60)), int(r.integers(4, 9))


def _with_rows(draft: Draft, problem: Any) -> Any:
    """One to three rows, that leave something to select, or nothing at all."""
    from scipy import sparse

    from mipfs.selection.selection import Extras, Rows

    r, p = draft.rng, problem.atoms.count
    if draft.chance(0.12, "infeasible"):
        A = np.ones((2, p))
        A[1, p // 2 :] = 0.0
        return problem.with_rows(A, [(problem.M or 3) - 1.0, (problem.M or 3) + 1.0], [np.inf, np.inf])
    if draft.chance(0.15, "extra variable"):
        A = np.hstack([r.integers(0, 3, (2, p)).astype(float), [[-1.0], [1.0]]])
        extra = Extras(("z",), np.array([0.0]), np.array([2.0]), np.array([False]))
        return problem.replace(
            rows=Rows(sparse.csr_array(A), np.full(2, -np.inf), np.array([1.0, 5.0]), ("a", "b"), ("", ""), extra)
        )
    count = int(r.integers(1, 4))
    A = r.integers(0, 3, size=(count, p)).astype(float) * (r.random((count, p)) < 0.6)
    return problem.with_rows(A, -np.inf, r.integers(2, 6, count).astype(float))


def _problem(draft: Draft) -> Any:
    from mipfs.problem import Problem

    r = draft.rng
    n, p, M = _size(draft)
    loss = draft.one_of(**{"hinge": 0.4, "squared-hinge": 0.2, "logistic": 0.25, "rho": 0.15})
    data = _data(draft, n, p)
    atoms = _atoms(draft, data)
    more: dict[str, Any] = {"loss": "squared-hinge" if loss == "rho" else loss, "C": 10.0 ** r.uniform(-0.5, 1.5)}
    more |= {"margin": "rho"} if loss == "rho" else {}
    is_near = loss != "rho" and not {"features", "pairs", "words as groups"}.isdisjoint(draft.tags)
    names = r.permutation(np.array(data.feature_names)).tolist()
    if is_near and draft.chance(0.25, "signs"):
        ends = [(0.0, None), (None, 0.0), (-0.5, 0.5)]
        half = names[: data.n_features // 2]
        more["weight_bounds"] = {name: ends[int(r.integers(3 if draft.rng.random() < 0.3 else 2))] for name in half}
        if "features" in draft.tags and draft.chance(0.3, "bounds exclude 0"):
            more["weight_bounds"] |= dict.fromkeys(half[:3], (0.02, 1.0))
    if is_near and draft.chance(0.25, "rows over weights"):
        order, total = dict(zip(names[-2:], (1.0, -1.0), strict=True)), dict.fromkeys(names[-6:-2], 1.0)
        more["weight_rows"] = [(order, 0.0, None), (total, -0.05, 0.05)][int(r.integers(2)) :]
    if loss != "rho" and (M is None or draft.chance(0.2, "penalties")):
        more["lam"] = (more["C"] * r.uniform(0.0, 0.2, atoms.count)).tolist()
    if draft.chance(0.2, "class weights"):
        more["class_weight"] = "balanced" if r.random() < 0.5 else {"1": 3.0, "-1": 0.5}
    M = M and min(M, atoms.count)
    problem = Problem(data, M=M, atoms=atoms, bias=not draft.chance(0.25, "no bias"), **more)
    return _with_rows(draft, problem) if draft.chance(0.35, "rows") else problem


def draw(seed: int) -> Drawn:
    """The problem of a seed, and how it is solved."""
    from mipfs.settings import BranchSettings, SearchSettings, TreeSettings

    draft = Draft(seed)
    problem, r = _problem(draft), draft.rng
    options: dict[str, Any] = {"gap": float(r.choice([1e-4, 1e-6, 1e-8])), "iteration_limit": LIMIT}
    match draft.one_of(whole=0.5, list=0.25, limit=0.15, unproven=0.1):
        case "list":
            options |= {"pool_gap": float(r.choice([0.01, 0.1]))} if r.random() < 0.5 else {"pool_size": 6}
        case "limit":
            options["iteration_limit"] = int(r.integers(5, 400))
        case "unproven":
            options["certificate"] = False
    if draft.chance(0.3, "another rule"):
        options["branching"] = draft.one_of(**{"most-fractional": 0.4, "pseudo-costs": 0.3, "reliability": 0.3})
    if "rows" in draft.tags and draft.chance(0.3, "separate") and "extra variable" not in draft.tags:
        options["separate"] = "covers"
    if NO_BATCH.isdisjoint(draft.tags) and draft.chance(0.3, "another relaxation"):
        relax = draft.one_of(batch=0.6, interior=0.2, array=0.2 * {"rows", "rows over weights"}.isdisjoint(draft.tags))
        options |= {"relax": relax, "iteration_limit": min(options["iteration_limit"], SLOW.get(relax, LIMIT))}
    tree, search = TreeSettings(), SearchSettings()
    if draft.chance(0.3, "large units"):
        tree, options["batch"] = TreeSettings(least_units=2), int(r.integers(20, 60))
    if draft.chance(0.3, "many rests"):
        search = SearchSettings(rest=1e-3, rest_share=10**6, after_nodes=0)
    return Drawn(problem, {**options, "settings": BranchSettings(tree=tree, search=search)}, tuple(draft.tags))


# Who explores ---------------------------------------------------------------------------------------------


_HELD = dict[int, Any]()
"""In a process of a pool: the node solver of the run that is at work."""


def explore(number: int, kept: str, unit: Any) -> Any:
    """In a process of a pool: explore a unit by the solver that lies in a file."""
    import pickle

    if number not in _HELD:
        _HELD.clear()
        _HELD[number] = pickle.loads(Path(kept).read_bytes())
    return _HELD[number].explore(unit, None)


def processes(count: int) -> Any:
    """An executor of processes that live on from run to run."""
    from mipfs.drivers.executor import Executor, Lost

    class Processes(Executor):
        """Processes of this machine, from a server that never had threads."""

        def __init__(self) -> None:
            self.pool = ProcessPoolExecutor(count, get_context("forkserver"))
            self.folder = tempfile.TemporaryDirectory()
            self.runs = 0

        def open(self, tree: Any) -> None:
            """Leave the solver where all find it."""
            import pickle

            self.runs += 1
            self.kept = Path(self.folder.name, f"{self.runs}.solver")
            self.kept.write_bytes(pickle.dumps(tree.solver()))

        def submit(self, unit: Any, seconds: float | None) -> Any:
            """Hand it to the next free process."""
            return self.pool.submit(explore, self.runs, str(self.kept), unit)

        def result(self, handle: Any, seconds: float) -> Any:
            """What came of it, if it is there."""
            try:
                return handle.result(seconds)
            except BrokenExecutor:
                raise Lost from None
            except NotYet:
                return None

        def withdraw(self, handle: Any) -> None:
            """Nobody waits for it."""
            handle.cancel()

        def close(self) -> None:
            """The processes stay."""

    return Processes()


class Ways:
    """Pools of processes and a cluster, begun when they are first needed."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._pools = dict[int, Any]()
        self._client: Any = None
        self.killed = 0

    def __enter__(self) -> Ways:
        return self

    def __exit__(self, *error: object) -> None:
        if self._client is not None:
            with contextlib.suppress(TimeoutError):  # a nanny that restarts its worker takes long to close
                self._client.wait_for_workers(2, timeout=60)
        self._stack.close()

    def options(self, way: str, seed: int, n_nodes: int) -> dict[str, Any]:
        """What `solve` is told, of a run whose tree is known to have some nodes."""
        if way == KILLED:
            return {"client": self.client, "callback": self._kills(random.Random(seed), n_nodes)}
        count, who = int(way.split()[0]), way.split()[1]
        if who == "threads":
            return {"threads": count}
        if count not in self._pools:
            self._pools[count] = processes(count)
            self._stack.callback(self._pools[count].pool.shutdown)
        return {"executor": self._pools[count]}

    @property
    def client(self) -> Any:
        """A client of two workers."""
        from tests.dask_cases import start

        if self._client is None:
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
            self._client = self._stack.enter_context(start())
        try:
            self._client.wait_for_workers(2, timeout=60)
        except TimeoutError:  # a nanny whose worker was killed as it began has given up
            self._client = None
            return self.client
        return self._client

    def _kills(self, rng: random.Random, n_nodes: int) -> Callable[[Any], None]:
        """Kill a worker somewhere within the run."""
        after, done, client = rng.uniform(0.0, 0.8) * n_nodes, list[int](), self.client

        def look(record: Any) -> None:
            if done or record.iteration < after:
                return
            nannies = [one for one in client.cluster.workers.values() if one.process and one.process.is_alive()]
            if nannies:  # a number of a process that is gone may be another's by now
                done.append(rng.choice(nannies).pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(done[0], signal.SIGKILL)
                    self.killed += 1

        return look


@contextlib.contextmanager
def many_cores() -> Iterator[None]:
    """As many threads as are asked for work, whatever the machine has."""
    from mipfs.plumbing import machine

    before, machine.cores = machine.cores, lambda: max(THREADS)
    try:
        yield
    finally:
        machine.cores = before


def differs(seed: int, ways: Ways, asked: Sequence[str], tally: Counter[str]) -> Iterator[str]:
    """What is wrong with the results of a problem."""
    import mipfs

    drawn = draw(seed)
    wanted, n_nodes = None, 0
    with tempfile.TemporaryDirectory() as name:
        for number, way in enumerate(asked):
            result = mipfs.solve(drawn.problem, "branch", **drawn.options, **ways.options(way, seed, n_nodes))
            found = written(result, Path(name, str(number)))
            if wanted is None:
                wanted, n_nodes = found, result.counters.get("nodes", 0)
                tally.update(("problems", result.status.name, *dict.fromkeys(drawn.tags)))
                tally["nodes"] += n_nodes
                if drawn.options.get("certificate", True):
                    report = mipfs.verify(result, drawn.problem.data)
                    if not report.accepted:
                        yield f"{way} is not accepted: {report.reason}"
            for part, one, other in zip(("JSON", "certificate"), found, wanted, strict=True):
                if one != other:
                    yield f"{way}: another {part} than {asked[0]}" + _where(one, other)


def _where(one: str | bytes, other: str | bytes) -> str:
    """What two texts have where they begin to differ."""
    at = next((k for k, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
    return f": {one[max(0, at - 40) : at + 40]!r}, not {other[max(0, at - 40) : at + 40]!r}"


def campaign(seeds: Sequence[int], asked: Sequence[str] = WAYS, say: Callable[[str], object] = print) -> list[str]:
    """All problems in all ways; returns what is wrong."""
    faults, tally, began = list[str](), Counter[str](), time.monotonic()
    with many_cores(), Ways() as ways:
        for number, seed in enumerate(seeds):
            if number and number % 10 == 0:
                say(f"{number} problems, {len(faults)} faults, {time.monotonic() - began:.0f} s")
            for fault in differs(seed, ways, asked, tally):
                faults.append(f"problem {seed} ({', '.join(draw(seed).tags)}): {fault}")
                say(f"{faults[-1]}\n  again: python -m tests.same_tree --case {seed}")
        tally["killed workers"] = ways.killed
    say(", ".join(f"{count} {name}" for name, count in tally.most_common()))
    say(f"{len(faults)} faults, {time.monotonic() - began:.0f} s")
    return faults


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="the first problem (default 1)")
    parser.add_argument("--case", type=int, help="only this problem")
    parser.add_argument("--way", choices=WAYS, action="append", help="compare these with one thread, not all")
    asked = parser.parse_args(argv)
    seeds = range(asked.seed, asked.seed + asked.problems) if asked.case is None else [asked.case]
    ways = WAYS if asked.way is None else (WAYS[0], *(way for way in asked.way if way != WAYS[0]))
    return 1 if campaign(seeds, ways, lambda line: print(line, flush=True)) else 0


if __name__ == "__main__":
    sys.exit(main())
