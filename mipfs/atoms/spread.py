"""Step 1 of `kelley` on the workers of a Dask cluster: columns live there, v goes to all, their best come back.

Every worker holds some parts of the matrix (`mipfs.atoms.parts`) and returns its B best columns and a bound on its
others; what is merged of them is what one process finds, to the bit. Columns in memory are sent once, those of a store
(`mipfs convert`) are mapped by the worker, from a file system that it shares. The data stay known here too: what a
worker held when it died goes to another one, and where none is left this process scores.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mipfs.atoms import parts, top
from mipfs.atoms.features import Features
from mipfs.atoms.parts import BestColumns, LocalParts, Scores
from mipfs.compiled import kept
from mipfs.data.blocked import Blocked, MemoryPart
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.cluster import SCHEDULER_SECONDS, Cluster, ClusterTask
from mipfs.plumbing.locks import ProcessLock

ANSWER_SECONDS = 1.0
"""Seconds that a worker has for its answer once the run must stop; then this process scores."""
LEAST_BYTES_PER_SECOND = 1e7
"""Bytes a second that a network carries at least: a dual vector that takes longer is sent again."""
MAKING = ProcessLock()


class Share:
    """The parts of one worker: what scores them is made where they are, when it is first asked.

    Parameters
    ----------
    made : sequence of the arguments of `Scores`
    threads : of the worker, on which a kernel may run
    version : of the kernels, `kept.version`
    """

    def __init__(self, made: Sequence[tuple[Any, ...]], threads: int, version: str) -> None:
        self.made = made
        self.threads = threads
        self.version = version
        self._here: LocalParts | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_here": None}

    def here(self) -> LocalParts:
        """The search over these parts."""
        if kept.version() != self.version:
            raise UsageError("a worker has another version of mipfs or numba than this process; install the same there")
        with MAKING:
            if self._here is None:
                self._here = LocalParts([Scores(*(*arguments, self.threads)) for arguments in self.made])
        return self._here


def describe_share(share: Share) -> tuple[float, float, bool]:
    """What a worker knows of its parts: the largest norm and centre, and what its keys are."""
    found = share.here()
    return found.norm, found.center, found.squared


def best(share: Share, B: int, v: Array) -> BestColumns:
    """The best of a worker's parts."""
    return share.here().best(v, B)


@dataclass(eq=False)
class Group:
    """Parts that go to one worker.

    Attributes
    ----------
    first, last : columns first … last − 1, or the same of parts
    worker : who has them; there : the future of its `Share`, None before and after
    """

    first: int
    last: int
    worker: str = ""
    there: Any = None


class Spread:
    """The search over the columns of some features, on the workers of a client.

    Parameters
    ----------
    features : Features, over data that are stored
    client : dask.distributed.Client
    must_stop : whether the run should come to its end

    Raises
    ------
    UsageError
        Columns that are computed, which are made in one process.
    """

    def __init__(self, features: Features, client: Any, must_stop: Callable[[], bool]) -> None:
        self.features = features
        self.client = client
        self.must_stop = must_stop
        X = features.data.X
        if not (
            isinstance(X, Blocked) or features.data.is_sparse or (isinstance(X, np.ndarray) and X.flags.f_contiguous)
        ):
            raise UsageError("client takes columns that are stored; the columns of these atoms are computed here")
        self.cluster = Cluster(client, "this process scores the columns")
        self._groups = [Group(*ends) for ends in self._group_ends(max(1, len(self.cluster.threads())))]
        told = self._ask_groups(describe_share)
        if told is None:
            told = [(self._local_search.norm, self._local_search.center, self._local_search.squared)]
        self.norm = max(one[0] for one in told)
        self.center = max(one[1] for one in told)
        self.squared = bool(told[0][2])

    def best(self, v: Array, B: int) -> BestColumns:
        """At most B columns of largest positive key."""
        found = self._ask_groups(best, B, vector=v)
        return self._local_search.best(v, B) if found is None else parts.merge_best(found, B)

    @cached_property
    def _local_search(self) -> parts.ColumnSearch:
        """The search of this process alone."""
        found = top.search_of(self.features)
        assert found is not None
        return found

    def _ask_groups(self, function: Callable[..., Any], *given: Any, vector: Array | None = None) -> list[Any] | None:
        """What all groups answer; None where this process must find it."""
        there = [] if vector is None else [Vector(self.cluster, vector)]
        out = [self._task_of_group(group, function, given, there) for group in self._groups]
        late = None
        while not all(task.settled() for task in out):
            if self.cluster.is_alone():
                return None
            if self.must_stop():
                late = late or time.monotonic() + ANSWER_SECONDS
                if time.monotonic() > late:
                    return None
        return None if any(task.failed for task in out) else [task.found for task in out]

    def _task_of_group(
        self, group: Group, function: Callable[..., Any], given: tuple[Any, ...], there: Sequence[Vector]
    ) -> ClusterTask:
        """A question to the worker that has a group, and to another one where that dies."""

        def submit() -> tuple[Any, Sequence[Any]]:
            share, *more = needs = [self.place_share(group), *(vector.there() for vector in there)]
            ask = function, share, *given, *more
            return self.client.submit(*ask, workers=[group.worker], pure=False, retries=0), needs

        return ClusterTask(self.cluster, submit)

    def place_share(self, group: Group) -> Any:
        """The share of a group where it lives; on another worker where it is lost."""
        threads = self.cluster.threads()
        if group.there is None or group.there.status != "finished" or group.worker not in threads:
            load = dict.fromkeys(threads, 0)
            for other in self._groups:
                if other is not group and other.worker in load:
                    load[other.worker] += 1
            group.worker = min(load, key=lambda worker: (load[worker], worker))
            share = Share(self._scores_arguments(group), threads[group.worker], kept.version())
            group.there = self.cluster.scatter(share, group.worker)
        return group.there

    def _group_ends(self, count: int) -> list[tuple[int, int]]:
        """Groups of about equal size, each of neighbours: columns of data in memory, parts of those in blocks."""
        X = self.features.data.X
        if isinstance(X, Blocked):
            widths = np.array([part.width for part in X.parts])
        else:
            widths = np.diff(X.indptr) if self.features.data.is_sparse else np.ones(X.shape[1])
        whole = np.cumsum(widths + 1.0)
        cuts = np.searchsorted(whole, whole[-1] * np.arange(1, count) / count)
        return list(itertools.pairwise(np.unique(np.concatenate([[0], cuts, [widths.size]])).tolist()))

    def _scores_arguments(self, group: Group) -> list[tuple[Any, ...]]:
        """The arguments of `Scores` for the parts of a group."""
        features = self.features
        X = self.features.data.X
        if isinstance(X, Blocked):
            heads = max(parts.LEVEL_COLUMNS, parts.KEPT_COLUMNS // len(X.parts))
            return [top.told_of(features, k, heads) for k in range(group.first, group.last)]
        at = slice(group.first, group.last)
        center = features.data.center[at] if np.any(features.data.center * features.scale) else None
        return [(MemoryPart(group.first, X[:, at]), features.scale[at], None, center, parts.KEPT_COLUMNS)]


class Vector:
    """v on all workers.

    Parameters
    ----------
    cluster : Cluster
    v : (n,)
    """

    def __init__(self, cluster: Cluster, v: Array) -> None:
        self._cluster = cluster
        self._v = v
        self._there: Any = None

    def there(self) -> Any:
        """Its future, sent again where it is lost."""
        if self._there is None or self._there.status != "finished":
            self._there = self._cluster.scatter(
                self._v, seconds=SCHEDULER_SECONDS + self._v.nbytes / LEAST_BYTES_PER_SECOND
            )
        return self._there
