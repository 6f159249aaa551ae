"""Where the units of a benchmark are done: here one after the other, in processes of joblib, or by a Dask client."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from mipfs.data.instance import Instance
from mipfs.lab.studies import bench_unit
from mipfs.lab.studies.bench_setting import Setting, Unit
from mipfs.lab.studies.bench_unit import Record
from mipfs.plumbing.cluster import check_client
from mipfs.plumbing.declared import Count, checked
from mipfs.plumbing.machine import safe_path

UNITS_PER_PROCESS = 2
"""Units that are handed out for every process."""


def records(
    data: Instance, setting: Setting, units: Sequence[Unit], *, jobs: int = 1, client: Any = None
) -> Generator[Record, None, None]:
    """The record of every unit, as they come.

    Parameters
    ----------
    data, setting : as for `mipfs.lab.studies.bench_unit.run`
    units : sequence of Unit
    jobs : int >= 1
        Processes. From 2 on a process that dies (out of memory) is a record of the unit that it was at.
    client : dask.distributed.Client, optional
        Takes the units instead; what its workers run in threads keeps no time limit but that of the drivers.

    Raises
    ------
    UsageError
        `jobs` out of its range, or a client that is none.
    """
    jobs = min(checked("jobs", jobs, Count), max(1, len(units)))
    if client is not None:
        check_client(client)
        yield from _of_client(data, setting, units, client)
    elif jobs == 1 or len(units) < 2:
        yield from (bench_unit.run(data, setting, unit) for unit in units)
    else:
        with tempfile.TemporaryDirectory(prefix="mipfs-bench-") as folder:
            stored = Path(folder) / "data.pickle"
            stored.write_bytes(pickle.dumps(data, protocol=pickle.HIGHEST_PROTOCOL))
            yield from _of_processes(str(stored), setting, units, jobs)


def _of_client(data: Instance, setting: Setting, units: Sequence[Unit], client: Any) -> Generator[Record, None, None]:
    from distributed import as_completed

    there = client.scatter(data, broadcast=True)
    futures = {client.submit(bench_unit.run, there, setting, unit, pure=False): unit for unit in units}
    try:
        for future in as_completed(list(futures)):
            error = future.exception()
            yield future.result() if error is None else bench_unit.died(futures[future], f"the worker failed: {error}")
    finally:
        client.cancel(list(futures))


def _of_processes(stored: str, setting: Setting, units: Sequence[Unit], jobs: int) -> Generator[Record, None, None]:
    """Joblib's processes. When one dies all do: what may have been at work is done alone, to know at what."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    left = list(units)
    while left:
        try:
            for record in _pool(stored, setting, tuple(left), jobs):
                left.remove(Unit(record["method"], record["M"], record["fold"]))
                yield record
        except TerminatedWorkerError:
            for unit in left[: UNITS_PER_PROCESS * jobs]:
                left.remove(unit)
                try:
                    yield from _pool(stored, setting, (unit,), 2)
                except TerminatedWorkerError:
                    yield bench_unit.died(unit, "its process was ended by the system, mostly for lack of memory")


def _pool(stored: str, setting: Setting, units: Sequence[Unit], jobs: int) -> Generator[Record, None, None]:
    from joblib import Parallel, delayed

    pool = Parallel(
        jobs, backend="loky", return_as="generator_unordered", batch_size=1, pre_dispatch=UNITS_PER_PROCESS * jobs
    )
    with safe_path(), closing(pool(delayed(_stored_unit)(stored, setting, unit) for unit in units)) as found:
        yield from found


@lru_cache(maxsize=1)
def _loaded(stored: str) -> Instance:
    """The data of this process."""
    return cast(Instance, pickle.loads(Path(stored).read_bytes()))


def _stored_unit(stored: str, setting: Setting, unit: Unit) -> Record:
    return bench_unit.run(_loaded(stored), setting, unit)
