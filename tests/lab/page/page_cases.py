"""Results to show: closed, open, infeasible, hostile, a path, a ladder, and a trace of any length."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from pathlib import Path

import numpy as np

import mipfs
from mipfs.lab.studies.ladder import Comparison
from mipfs.lab.studies.solution_path import SolutionPath
from mipfs.result.result import Record, Result, Status, StopReason, Trace

INSTANCES = Path(__file__).resolve().parents[3] / "instances"
EVIL = "</script><img src=x onerror=\"document.title='owned'\">&'<!--"


@cache
def credit() -> mipfs.Instance:
    return mipfs.read(INSTANCES / "credit.csv")


@cache
def closed() -> Result:
    return mipfs.solve(mipfs.Problem(credit()), pool_gap=0.03)


@cache
def path() -> SolutionPath:
    return mipfs.path(mipfs.Problem(credit(), C=1.0), M=range(2, 6), folds=3, time_limit=20)


@cache
def ladder() -> Comparison:
    return mipfs.compare(mipfs.Problem(credit()), rungs=["plain", "big-m", "exact"])


@cache
def long(records: int, supports: int = 50) -> Result:
    """An open run with many records, all of them steps, and many near-optimal supports."""
    rng = np.random.default_rng(0)
    seconds = np.sort(rng.uniform(0.0, 3600.0, records))
    objective = 200 - 100 * np.cumsum(rng.exponential(1 / records, records))
    bound = 20 + 60 * np.cumsum(rng.exponential(1 / records, records))
    rows = zip(seconds.tolist(), objective.tolist(), bound.tolist(), strict=True)
    names = [f"gene {k} <i>" for k in range(400)]
    found = [
        {"objective": 100.0 + k, "gap": 0.01 * k, "selected": rng.choice(names, 30, replace=False).tolist()}
        for k in range(supports)
    ]
    share = {name: sum(name in one["selected"] for one in found) / supports for name in names}
    return dataclasses.replace(
        closed(),
        status=Status.FEASIBLE,
        stop_reason=StopReason.TIME_LIMIT,
        objective=float(objective[-1]),
        bound=float(bound[-1]),
        seconds=3600.5,
        trace=Trace(Record(s, k, o, b) for k, (s, o, b) in enumerate(rows)),
        near_optimal={
            "complete": False,
            "gap": 0.05,
            "size": None,
            "supports": found,
            "share": dict(sorted(share.items(), key=lambda item: -item[1])),
        },
    )


def infeasible() -> Result:
    names = credit().feature_names
    rows = np.zeros((2, len(names)))
    rows[:, :3] = 1.0
    return mipfs.solve(mipfs.Problem(credit()).with_rows(rows, [-np.inf, 2.0], [1.0, np.inf]))


def hostile(evil: str = EVIL) -> Result:
    """A result in which every text of the data is an attack."""
    names = {name: f"{evil}{k}" for k, name in enumerate(credit().feature_names)}
    result, near = closed(), closed().near_optimal
    assert near is not None
    supports = [{**one, "selected": [names[name] for name in one["selected"]]} for one in near["supports"]]
    return dataclasses.replace(
        result,
        selected=tuple(names[name] for name in result.selected),
        weights={names[name]: value for name, value in result.weights.items()},
        columns={names[name]: value for name, value in result.columns.items()},
        rows=tuple(
            {**row, "name": evil, "origin": evil, "terms": {names[name]: a for name, a in row["terms"].items()}}
            for row in result.rows
        ),
        params={**result.params, "forced_in": [evil]},
        labels={"negative": evil, "positive": f"not {evil}"},
        near_optimal={**near, "supports": supports, "share": {names[n]: v for n, v in near["share"].items()}},
        conflict=(evil,),
        extra={evil: {"lb": 0.0, "ub": 1.0, "integer": True, "value": 1.0}},
        versions={evil: evil},
        command=evil,
        driver=evil,
        data_sha256=evil,
    )


def nothing() -> Result:
    """A run that ended before anything was found."""
    return dataclasses.replace(
        closed(),
        status=Status.NO_SOLUTION,
        stop_reason=StopReason.TIME_LIMIT,
        objective=math.inf,
        bound=-math.inf,
        selected=(),
        weights={},
        trace=Trace(),
        near_optimal=None,
    )
