"""What tests on a Dask cluster share: how it is started, and how two results are compared byte by byte."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mipfs.result.result import Result


def start(count: int = 2, within: bool = False) -> Any:
    """A client of a cluster of its own, of processes with one thread each, or of threads of this process."""
    from distributed import Client

    where = {"protocol": "tcp"} if within else {}
    return Client(n_workers=count, threads_per_worker=1, processes=not within, dashboard_address=":0", **where)


def document(result: Result, folder: Path) -> dict[str, Any]:
    """What is written, the arrays of the certificate too, but for what tells the time."""
    folder.mkdir()
    result.save(folder / "r.json")
    found: dict[str, Any] = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    for record in (found, *found["trace"]):
        del record["seconds"]
    del found["certificate"]["sha256"]  # of a zip file, which has a date in it
    with np.load(folder / "r.cert.npz") as arrays:
        return found | {"arrays": {name: arrays[name].tolist() for name in arrays.files}}


def compiled_here() -> bool:
    """Whether this process compiled a kernel, and did not load it."""
    kernels = [module for name, module in sys.modules.items() if name.startswith("mipfs.kernels")]
    found = [getattr(one, "stats", None) for module in kernels for one in vars(module).values()]
    return any(one is not None and sum(getattr(one, "cache_misses", {}).values()) for one in found)


def compare(there: Result, here: Result, folder: Path, client: Any = None) -> None:
    """The same in every byte; to round-off where kernels were compiled in this minute.

    A kernel that is compiled now and the same one when it is loaded from numba's cache may differ in the last bit of a
    sum, whose order is left to the compiler.
    """
    first, second = document(there, folder / "there"), document(here, folder / "here")
    workers = client.run(compiled_here).values() if client is not None and client.status == "running" else ()
    if not compiled_here() and not any(workers):
        assert first == second
        return
    for found in (first, second):
        del found["arrays"]
    near(first, second)


def near(first: Any, second: Any) -> None:
    """The same, numbers to round-off."""
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        first, second = list(first.values()), [second[name] for name in first]
    if isinstance(first, list):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            near(one, other)
    elif isinstance(first, float):
        assert first == pytest.approx(second, rel=1e-9, abs=1e-9)
    else:
        assert first == second
