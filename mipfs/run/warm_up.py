"""Before the clock: the driver solves a tiny problem of the same kind, so that no run pays for compiling kernels.

numba compiles a kernel when it meets types for the first time, which takes seconds, and keeps the machine code on disk
(`mipfs.compiled`). Whatever a driver calls is met in this way, so nothing has to be listed. A driver whose runs begin
with an expensive program of another package leaves that out (``prepare`` in its module).
"""

from __future__ import annotations

import dataclasses
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, cast

import numpy as np
from numba.core import event
from scipy import sparse

from mipfs.compiled.cache import is_kept
from mipfs.data.block import Block
from mipfs.data.blocked import Blocked, Csc, split_in_memory
from mipfs.data.instance import Instance
from mipfs.data.matrix import equal_rows
from mipfs.errors import NumericalError, UsageError
from mipfs.inner.designs import meet_long
from mipfs.plumbing.cluster import Cluster, check_client
from mipfs.plumbing.locks import ProcessLock
from mipfs.plumbing.signals import handle_signals, tell
from mipfs.problem import Problem
from mipfs.proof.evidence import empty_proof, no_dual
from mipfs.regularisers.base import Regulariser
from mipfs.run.beside import FUNCTIONS, Job, Progress, compile_beside, is_beside, missing
from mipfs.run.run import Run
from mipfs.svm.projection import project

LOG = logging.getLogger("mipfs")
POLL_SECONDS = 0.02
"""How often the workers of a cluster are asked whether they are prepared."""
ONE_AT_A_TIME = ProcessLock()
ANNOUNCED = "compiling the kernels for this kind of problem, once; the clock starts afterwards"
LIMIT = 30
"""Iterations of the tiny run at most."""
FEW = 3
"""Iterations of the tiny run where another package's solver does them: they cost much, the first meets every kernel."""
NOISE = 4.0
"""Of the tiny problem's labels: enough, with its C, that it is branched on."""


@dataclass(frozen=True)
class KernelKind:
    """What the types that a run hands to its kernels depend on."""

    driver: ModuleType
    options: tuple[tuple[str, Any], ...]
    problem: tuple[tuple[str, Any], ...]
    storage: str
    index: str
    writeable: bool
    is_centred: bool
    is_plain: bool
    has_penalty: bool
    has_kernels: bool
    enumerated: int
    relax: str | None
    over_weights: bool
    regulariser: Regulariser = dataclasses.field(compare=False)


def prepare(driver: ModuleType, problem: Problem, options: Any) -> StopRequest:
    """Compile what a run of the driver will call, unless this process has done that for the kind of problem.

    Parameters
    ----------
    driver : module of a driver
    problem : Problem
    options : the driver's options

    Returns
    -------
    StopRequest
        Whether Ctrl-C (or a relative) came meanwhile, which the run that follows should hear: after its first step,
        or, where kernels were being compiled, before, as that step would compile them.
    """
    block = problem.data.block()
    names = ("loss", "bias", "margin", "measure", "beta")
    kind = KernelKind(
        driver,
        tuple((name, getattr(options, name)) for name in driver.CAPABILITY.kernel_options if hasattr(options, name)),
        tuple((name, getattr(problem, name)) for name in names),
        *_block_layout(block),
        block.is_centred,
        problem.selection.is_plain,
        problem.has_penalty,
        problem.has_kernels,
        driver.enumerated(problem) if hasattr(driver, "enumerated") else 0,
        driver.relaxes_by(problem, options) if hasattr(driver, "relaxes_by") else None,
        bool(problem.weight_rows),
        problem.regulariser,
    )
    client = getattr(options, "client", None)
    asked = StopRequest()
    if kind in _compiled and client is None:
        return asked
    with _count_preparing(), announce_compiling() as announcer, handle_signals(asked):
        if kind not in _compiled:
            _compile_beside(kind, asked, announcer)
            if not asked.came:
                _compile_kind(kind, asked)
        there = None if client is None else _Elsewhere(client, kind)  # now: on one machine they load what lies there
        while there is not None and not asked.came and there.is_at_work():
            time.sleep(POLL_SECONDS)
    asked.is_cold = announcer.said
    if not asked.came:
        _compiled.add(kind)
    return asked


_preparing = 0
_counting = ProcessLock()


@contextmanager
def _count_preparing() -> Iterator[None]:
    """A block in which this process prepares."""
    global _preparing
    with _counting:
        _preparing += 1
    try:
        yield
    finally:
        with _counting:
            _preparing -= 1


def is_at_work() -> bool:
    """Whether some thread of this process prepares a run: others would compile the same beside it."""
    return _preparing > 0


class _Elsewhere:
    """The workers of a cluster, which prepare for the same meanwhile."""

    def __init__(self, client: Any, kind: KernelKind) -> None:
        check_client(client)
        self._cluster = Cluster(client, "this process works alone")
        self._futures = {
            worker: client.submit(_compile_in_worker, kind, workers=[worker], allow_other_workers=False, pure=False)
            for worker in self._cluster.threads()
        }

    def is_at_work(self) -> bool:
        """Whether some worker is still at it."""
        threads = self._cluster.threads()
        return any(future.status == "pending" and worker in threads for worker, future in self._futures.items())


def _compile_in_worker(kind: KernelKind) -> None:
    """What a worker does, which runs threads: nobody asks it to stop."""
    with ONE_AT_A_TIME:
        if kind not in _compiled:
            _compile_kind(kind, StopRequest())
            _compiled.add(kind)


def _block_layout(block: Block) -> tuple[str, str, bool]:
    """Storage, type of the indices (in blocks: of the values) and whether they may be written to."""
    X = block.values
    if isinstance(X, Blocked):
        values = X.parts[0].values
        kind = f"sparse {X.scaling}" if isinstance(values, Csc) else "dense"
        return f"blocked {kind}", str(values[0].dtype if isinstance(values, Csc) else values.dtype), False
    if block.is_sparse:
        return "sparse", str(X.indices.dtype), bool(X.data.flags.writeable)
    if not block.is_stored:
        return ("sparse", "int32", True) if getattr(X, "is_sparse", False) else ("dense F", "", True)
    return "dense F" if X.flags.f_contiguous else "dense C", "", bool(X.flags.writeable)


class StopRequest:
    """A handler that lets the tiny run stop: an exception in the middle of numba's work would break what it holds.

    Attributes
    ----------
    came : bool, whether a signal did
    is_cold : bool, whether kernels were compiled meanwhile
    """

    def __init__(self) -> None:
        self.came = self.is_cold = False
        self.run = cast("Run | None", None)

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True
        tell()
        if self.run is not None:
            self.run.interrupted = True


@contextmanager
def announce_compiling() -> Iterator[_Announcer]:
    """Say once, at level INFO of the logger "mipfs", that kernels are being compiled, if any are.

    The log record carries the `Progress` of it, as ``progress``, for who shows more than a line.
    """
    listener = _Announcer()
    events = cast(Any, event)
    events.register("numba:compile", listener)
    try:
        yield listener
    finally:
        events.unregister("numba:compile", listener)
        listener.progress.is_over = True


class _Announcer(event.Listener):
    said = False

    def __init__(self) -> None:
        self.progress = Progress()

    def on_start(self, event: Any = None) -> None:
        """The first kernel is about to be compiled, here or beside."""
        if not self.said:
            self.said = True
            LOG.info(ANNOUNCED, extra={"progress": self.progress})

    def on_end(self, event: Any) -> None:
        """One more is compiled here."""
        self.progress.functions += 1


_compiled: set[KernelKind] = set()


def _compile_beside(kind: KernelKind, asked: StopRequest, announcer: _Announcer) -> None:
    """Where large kernels of a driver are not kept: compile these, and all else that a run calls, beside."""
    names_some = hasattr(kind.driver, "kernels") or hasattr(kind.driver, "large")
    if not names_some or not sys.executable or is_beside():
        return
    problem = tiny_problem(kind, 0.2)
    lists: list[list[Job]] = []
    large = kind.driver.large(problem, dict(kind.options)) if hasattr(kind.driver, "large") else ()
    if hasattr(kind.driver, "kernels"):
        steps = [] if kind.enumerated == 1 else [*kind.driver.kernels(problem, kind.relax)]
        lists = missing([*steps, kind.driver.completion_kernels(problem)] if kind.enumerated else steps)
    if lists or not all(is_kept(kernel) for kernel in large):
        announcer.progress.expected = FUNCTIONS * (len(lists) + 1)
        announcer.on_start()
        job = __name__, "compile_all", (kind.driver.__name__, dataclasses.replace(kind, driver=cast(Any, None)))
        compile_beside([*lists, [job]], lambda: asked.came, announcer.progress)


def compile_all(driver: str, kind: KernelKind) -> None:
    """Compile all that runs of a kind call."""
    _compile_kind(dataclasses.replace(kind, driver=import_module(driver)), StopRequest())


def _compile_kind(kind: KernelKind, asked: StopRequest) -> None:
    for share in (0.2, 0.9) if "sparse" in kind.storage else (1.0,):
        if asked.came:
            return
        problem = tiny_problem(kind, share)
        for block in (problem.data.block(), problem.data.block(np.arange(2))):
            equal_rows(block.values, problem.data.y)  # which runs with few samples leave out
        project(np.ones(problem.data.n_samples), problem.c_i, problem.data.y, problem.bias)  # and those in balance
        meet_long(problem.data.block().values)  # and those of few numbers
        duals = empty_proof(problem).duals
        duals.add(*no_dual(problem))  # as a proof does after the clock
        duals.get(0)  # and what looks for incumbents
        if kind.enumerated:
            _try_out(kind, asked, problem.replace(M=1))
        if kind.enumerated == 1:
            continue
        if hasattr(kind.driver, "prepare"):
            kind.driver.prepare(problem)
        else:
            _try_out(kind, asked, problem)


def _try_out(kind: KernelKind, asked: StopRequest, problem: Problem) -> None:
    """Solve a tiny problem."""
    limit = FEW if any(value in kind.driver.CAPABILITY.slow_values for _, value in kind.options) else LIMIT
    given = dict(kind.options) | ({} if kind.relax is None else {"relax": kind.relax})
    asked.run = Run(problem, kind.driver.Options(**given, iteration_limit=limit))
    asked.run.interrupted = asked.came
    with suppress(NumericalError, UsageError):  # the run that follows says so
        for _ in kind.driver.run(asked.run):
            pass


def tiny_problem(kind: KernelKind, share: float) -> Problem:
    """A small problem of the kind; `share` of the entries of its first columns is not zero."""
    rng = np.random.default_rng(0)
    n, p = (26, 24) if "sparse" in kind.storage else (16, 5)  # none of few features of many
    X = rng.standard_normal((n, p))
    y = np.where(X[:, :3].sum(axis=1) + NOISE * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    if "sparse" in kind.storage:
        X[:, :3] *= rng.random((n, 3)) < share
        X[:, 3:] *= rng.random((n, p - 3)) < 0.1
    stored: Any = sparse.csc_array(X) if "sparse" in kind.storage else X
    if kind.storage.startswith("blocked"):
        blocks = split_in_memory(stored.astype(kind.index), 8)
        scaling = kind.storage.split()[2] if "sparse" in kind.storage else "none"
        data = Instance.from_arrays(blocks, y, scale=scaling)  # type: ignore[arg-type]
        return _pose_problem(kind, data)
    data = Instance.from_arrays(stored, y, scale="standard" if kind.is_centred else "none")
    return _pose_problem(kind, dataclasses.replace(data, X=_as_in(data.block().values, kind)))


def _pose_problem(kind: KernelKind, data: Instance) -> Problem:
    """The problem of the kind on such data."""
    own = kind.regulariser.at(np.zeros(data.n_features, dtype=np.int64))
    first, second = data.feature_names[:2]
    over = [({first: 1.0, second: -1.0}, -1.0, 1.0)] if kind.over_weights else ()
    given: dict[str, Any] = {"regulariser": own, "weight_rows": over, **dict(kind.problem)}
    problem = Problem(data, M=2, C=10.0, lam=0.01 * kind.has_penalty, **given)
    return problem if kind.is_plain else problem.with_rows(np.ones((1, data.n_features)), -np.inf, 2.0)


def _as_in(X: Any, kind: KernelKind) -> Any:
    """The values in the memory layout of the kind."""
    if kind.storage != "sparse":
        X = np.asfortranarray(X) if kind.storage == "dense F" else np.ascontiguousarray(X)
        X.flags.writeable = kind.writeable
        return X
    X = X.copy()
    X.indices, X.indptr = X.indices.astype(kind.index), X.indptr.astype(kind.index)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = kind.writeable
    return X
