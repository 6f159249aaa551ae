"""The campaign: draws in the order of their seeds, judged, and a table of what was met. Run by `tests.differential`."""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests import draws
from tests.declared_draws import declared
from tests.judge import Verdict, judged

DRIVERS = tuple(dict.fromkeys(name for chances in draws.DRIVERS.values() for name in chances))
"""The drivers that are drawn."""
FAULTS = ("wrong", "above gap", "wrong gap", "list", "weights", "refused", "endless", "slow", "error")
"""Columns of the table that must be empty."""
COUNTS = ("OPTIMAL", "numerical", "unsure")
"""Columns that are counted: proofs, what rounding did not let it prove, and what the reference cannot judge."""
EVERY = 20
"""With neighbours, they solve once before this many problems."""


class Table:
    """Counts of what was met, by tag."""

    def __init__(self) -> None:
        self.cells: dict[str, Counter[str]] = {}

    def add(self, tags: tuple[str, ...], verdict: Verdict) -> None:
        """Count one run."""
        for tag in ("all", *dict.fromkeys(tags)):
            self.cells.setdefault(tag, Counter()).update({"runs", *verdict.counts})

    def __str__(self) -> str:
        columns = ("runs", *COUNTS, *FAULTS)
        rows = [("", *columns)]
        for tag, counts in sorted(self.cells.items(), key=lambda item: (item[0] != "all", -item[1]["runs"])):
            rows.append((tag, *(str(counts[name]) if counts[name] else "." for name in columns)))
        wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join(
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, wide, strict=True))
            )
            for row in rows
        )


def main(arguments: argparse.Namespace, solve: Callable[..., Any]) -> int:
    """Go through the draws; returns 0 when no fault was found, else 1.

    Parameters
    ----------
    arguments : of `tests.differential`
    solve : callable, `mipfs.solve`
    """
    from mipfs import verify

    seeds = itertools.count(arguments.seed) if arguments.case is None else iter([arguments.case])
    seeds = seeds if arguments.count is None else itertools.islice(seeds, arguments.count)
    began, busy = time.monotonic(), time.process_time()
    until = began + (math.inf if arguments.seconds is None else arguments.seconds)
    table, printed, failed, done = Table(), 0, 0, 0
    drivers = tuple(arguments.driver or ())
    for seed in seeds:
        if time.monotonic() > until:
            break
        if arguments.neighbours and done % EVERY == 0:
            from tests.neighbours import all_solve

            all_solve(done // EVERY)
        draw = declared(draws.draw(seed, drivers))
        verdict = judged(draw, solve, verify)
        table.add(draw.tags, verdict)
        done += 1
        failed += bool(verdict.faults)
        for column, words in verdict.faults[:1]:
            printed += 1
            if printed <= arguments.failures:
                again = "".join(f" --driver {name}" for name in drivers)
                print(f"FAILED ({column}) {draw.line}\n  {words}")
                print(f"  again: python -m tests.differential --case {seed}{again}", flush=True)
    print(table)
    rate = done / max(1e-9, time.monotonic() - began), done / max(1e-9, time.process_time() - busy)
    print(f"{rate[0]:.1f} problems a second, {rate[1]:.1f} a second of processor time")
    print(f"{done - failed} passed, {failed} failed")
    return int(failed > 0)
