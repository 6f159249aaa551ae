"""Where the units of a benchmark are done: here one after the other, in processes, or by a Dask client."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

from mipfs.data.instance import Instance
from mipfs.lab.studies import bench_unit
from mipfs.lab.studies.bench_setting import FitUnit, Setting
from mipfs.lab.studies.bench_unit import Record
from mipfs.plumbing.cluster import check_client
from mipfs.run.side_by_side import LostFit, run_tasks

ENDED = "its process was ended by the system, mostly for lack of memory"


def records(
    data: Instance, setting: Setting, units: Sequence[FitUnit], *, jobs: int | None = None, client: Any = None
) -> Generator[Record, None, None]:
    """The record of every unit, as they come.

    Parameters
    ----------
    data, setting : as for `mipfs.lab.studies.bench_unit.run`
    units : sequence of FitUnit
    jobs : int >= 1, optional
        Processes, by default as many as there are cores, of which this is one. Where 2 or more are asked for, a process
        that dies (out of memory) is a record of the unit that it was at.
    client : dask.distributed.Client, optional
        Takes the units instead; what its workers run in threads keeps no time limit but that of the drivers.

    Raises
    ------
    UsageError
        `jobs` out of its range, or a client that is none.
    """
    if client is not None:
        check_client(client)
        yield from _of_client(data, setting, units, client)
        return
    with closing(run_tasks(_run_unit, (data, setting), units, jobs, here=jobs is None)) as found:
        for k, record in found:
            yield bench_unit.lost_record(units[k], ENDED) if isinstance(record, LostFit) else record


def _run_unit(given: tuple[Instance, Setting], unit: FitUnit) -> Record:
    return bench_unit.run(*given, unit)


def _of_client(
    data: Instance, setting: Setting, units: Sequence[FitUnit], client: Any
) -> Generator[Record, None, None]:
    from distributed import as_completed

    there = client.scatter(data, broadcast=True)
    futures = {client.submit(bench_unit.run, there, setting, unit, pure=False): unit for unit in units}
    try:
        for future in as_completed(list(futures)):
            error = future.exception()
            yield (
                future.result()
                if error is None
                else bench_unit.lost_record(futures[future], f"the worker failed: {error}")
            )
    finally:
        client.cancel(list(futures))
