"""What tests on a Dask cluster share: how it is started, and how two results are compared byte by byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

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


def compare(there: Result, here: Result, folder: Path) -> None:
    """The same in every byte."""
    assert document(there, folder / "there") == document(here, folder / "here")
