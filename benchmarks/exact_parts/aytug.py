"""The problems made after Aytug (2015), data set one, and the solvers that are measured on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exact_parts import ours, scip
from exact_parts.ours import measure
from exact_parts.store import Line, Store, clocks, relative_gap
from mipfs.data.instance import Instance
from mipfs.generators import aytug_one
from mipfs.problem import Problem

SAMPLES, FEATURES = (500, 1000, 5000), (20, 50, 100)
GAP = 1e-4


@dataclass(frozen=True)
class Made:
    """One problem; M = None is drawn uniformly from 1 to p, by the seed alone, as the stored lines have it."""

    n: int
    p: int
    M: int | None
    C: float
    seed: int

    def build(self) -> Problem:
        """FSP-M on the training rows: hinge, free bias, at most M features."""
        M = self.M or int(np.random.default_rng([self.seed, 1]).integers(1, self.p + 1))
        X, y = aytug_one(self.n, self.p, M, self.seed)["train"]
        return Problem(Instance.from_arrays(X, y), M=M, C=self.C)

    def name(self, problem: Problem) -> str:
        return f"{self.n}x{self.p} M={problem.M} C={self.C:g} seed={self.seed}"


SPECIAL = (
    Made(500, 20, 10, 1.0, 1),
    Made(500, 50, 25, 1.0, 1),
    Made(500, 50, 25, 32.0, 1),
    Made(500, 100, 20, 1.0, 1),
    Made(500, 100, 20, 32.0, 1),
)
"""The cases that the design notes report, C = 32 among them."""


def made(samples: Sequence[int], features: Sequence[int], seeds: Sequence[int], C: float) -> list[Made]:
    """All combinations, small problems first."""
    every = [Made(n, p, None, C, seed) for n in samples for p in features for seed in seeds]
    return sorted(every, key=lambda one: (one.n * one.p, one.seed))


def panel(samples: Sequence[int], features: Sequence[int], seeds: Sequence[int], C: float) -> list[Made]:
    """The same, seed by seed: an early look is a look at all sizes."""
    return [one for seed in seeds for one in made(samples, features, [seed], C)]


def run(
    problems: Iterable[Made],
    solvers: Iterable[str],
    store: Store,
    limits: Callable[[Made, str], float],
    proofs: Path | None = None,
    client: Any = None,
) -> list[Line]:
    """Measure what is not stored yet, problem by problem; returns all the lines.

    Parameters
    ----------
    problems : in the order in which they are measured
    solvers : names of drivers, or "scip"
    store : Store
    limits : the time limit in seconds of a problem and a solver
    proofs : Path, optional, a folder that keeps the results as `mipfs solve --json` would write them
    client : dask.distributed.Client, optional
        Its workers solve the problems, each in one of its threads; the lines are added here, as they come.
    """
    lines = []
    if client is not None:
        problems, solvers = list(problems), list(solvers)
        spread(problems, solvers, store, limits, client)
    for one in problems:
        problem = one.build()
        for solver in solvers:
            key, limit = f"{one.name(problem)} | {solver}", limits(one, solver)
            line = store.get(key, limit)
            if line is None:
                facts = told(one, problem, solver, limit)
                line = store.add(key, **facts, **measured(one, problem, solver, limit, proofs))
            lines.append(line)
            print(shown(line), flush=True)
    return lines


def told(one: Made, problem: Problem, solver: str, limit: float) -> dict[str, Any]:
    """What a line says of the problem."""
    facts: dict[str, Any] = {"suite": "aytug", "problem": one.name(problem), "solver": solver, "limit": limit}
    return facts | {"n": one.n, "p": one.p, "M": problem.M, "C": one.C, "seed": one.seed, "asked_gap": GAP}


def measured(one: Made, problem: Problem, solver: str, limit: float, proofs: Path | None = None) -> dict[str, Any]:
    """What a line says of the run."""
    if solver == "scip":
        return with_scip(problem, limit)
    return measure(problem, solver, limit=limit, gap=GAP, keep=proofs, name=one.name(problem))


def _closed(problem: Problem, driver: str, limit: float, gap: float) -> Callable[[], tuple[Any, float, float]]:
    """A run as a function that needs nothing of this folder, which the workers lack: it is pickled by value."""

    def there() -> tuple[Any, float, float]:
        import time

        import mipfs

        wall, cpu = time.perf_counter(), time.process_time()
        result = mipfs.solve(problem, driver, time_limit=limit, gap=gap)
        return result, time.perf_counter() - wall, time.process_time() - cpu

    return there


def spread(
    problems: Sequence[Made], solvers: Sequence[str], store: Store, limits: Callable[[Made, str], float], client: Any
) -> None:
    """Let the workers of a Dask client measure what is not stored yet, of our drivers."""
    import cloudpickle
    from distributed import as_completed

    import exact_parts

    cloudpickle.register_pickle_by_value(exact_parts)
    asked: dict[Any, tuple[str, dict[str, Any], Problem]] = {}
    for one in problems:
        problem = one.build()
        for solver in solvers:
            key, limit = f"{one.name(problem)} | {solver}", limits(one, solver)
            if store.get(key, limit) is None:
                future = client.submit(_closed(problem, solver, limit, GAP), pure=False)
                asked[future] = key, told(one, problem, solver, limit), problem
    for future in as_completed(list(asked)):
        key, facts, problem = asked[future]
        result, seconds, cpu = future.result()
        facts |= {"seconds": seconds, "cpu_seconds": cpu, **ours.told(result), **ours.verify(result, problem.data)}
        print(shown(store.add(key, **facts)), flush=True)


def with_scip(problem: Problem, limit: float) -> dict[str, Any]:
    """SCIP on the perspective form, with the rows |w_j| ≤ W σ_j: it is faster with them."""
    assert problem.M is not None
    with clocks() as spent:
        data = problem.data
        answer = scip.solve(data.X, data.y, problem.M, problem.C, time_limit=limit, gap=GAP, link=True)
    answer["gap"] = relative_gap(answer.get("objective"), answer.get("bound"))
    return answer | {"others_busy": spent.get("others_busy")}


def shown(line: Line) -> str:
    """One line for the screen."""
    gap = "–" if line.get("gap") is None else f"{line['gap']:.1e}"
    seconds, cpu = (line.get(name) or 0.0 for name in ("seconds", "cpu_seconds"))
    verify = "" if line.get("verify_seconds") is None else f", verified in {line['verify_seconds']:.2f} s"
    return (
        f"{line['problem']:<34} {line['solver']:<8} {line['status']:<11} gap {gap:>8} "
        f"nodes {line.get('nodes') or 0:>7} {seconds:>9.2f} s wall {cpu:>9.2f} s CPU{verify}"
    )
