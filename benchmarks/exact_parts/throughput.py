"""Microseconds per node, and where they go."""

from __future__ import annotations

import cProfile
import os
import pstats
from dataclasses import fields
from typing import Any

import mipfs
from exact_parts.aytug import Made
from exact_parts.ours import warm
from exact_parts.store import Store, clocks, code
from mipfs.drivers import get_driver

CASES = (Made(500, 50, 25, 1.0, 1), Made(5000, 100, 50, 1.0, 1))
FUNCTIONS = 12


def run(store: Store, driver: str, limit: float, cases: tuple[Made, ...] = CASES) -> None:
    """Each case twice: by the clock alone, then on one thread under cProfile; the second tells only the shares."""
    for one in cases:
        problem = one.build()
        name = one.name(problem)
        key = f"{name} throughput | {driver}"
        if (line := store.get(key)) is None or line.get("code") != code():
            warm(driver, problem.loss, problem.bias)
            watch = _Watch()
            with clocks() as spent:
                result = mipfs.solve(
                    problem,
                    driver,
                    time_limit=limit,
                    observers=[watch],
                )
            line = store.add(
                key,
                suite="profile",
                problem=name,
                solver=driver,
                limit=limit,
                status=result.status.name,
                gap=result.gap,
                nodes=result.counters.get("nodes"),
                counters=dict(result.counters),
                code=code(),
                **per_node(watch.seen),
                **spent,
                where=_profiled(problem, driver, limit),
            )
        each = "–" if line["microseconds"] is None else f"{line['microseconds']:.0f} µs per node"
        print(f"{name}: {line['nodes']} nodes in {line['seconds']:.2f} s, root {line['root_seconds']:.2f} s, {each}")
        for place, share in line["where"]:
            print(f"  {share:6.1%}  {place}")


class _Watch:
    """An observer that keeps the clock and the number of nodes."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, int]] = []

    def __call__(self, record: mipfs.Record) -> None:
        self.seen.append((record.seconds, record.counters.get("nodes", 0)))


def per_node(seen: list[tuple[float, int]]) -> dict[str, float | None]:
    """Seconds until the root was done, and microseconds per node from then on; None for a tree of one node."""
    root = [item for item in seen if item[1] <= 1]
    first, last = (root or seen or [(0.0, 0)])[-1 if root else 0], (seen or [(0.0, 0)])[-1]
    if last[1] == first[1]:
        return {"root_seconds": last[0], "microseconds": None}
    return {"root_seconds": first[0], "microseconds": 1e6 * (last[0] - first[0]) / (last[1] - first[1])}


def _profiled(problem: Any, driver: str, limit: float) -> list[tuple[str, float]]:
    """The functions of most own time, with their share of the whole. Compiled kernels count for their caller."""
    options: dict[str, Any] = (
        {"threads": 1} if "threads" in {f.name for f in fields(get_driver(driver).Options)} else {}
    )
    profile = cProfile.Profile()
    profile.enable()
    mipfs.solve(problem, driver, time_limit=limit, **options)
    profile.disable()
    stats: dict[Any, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(row[2] for row in stats.values())
    ranked = sorted(((row[2], place) for place, row in stats.items()), key=lambda item: -item[0])[:FUNCTIONS]
    return [(_place(*place), own / total) for own, place in ranked]


def _place(file: str, line: int, function: str) -> str:
    parts = file.split(os.sep)
    return function if file == "~" else f"{'/'.join(parts[-2:])}:{line} {function}"
