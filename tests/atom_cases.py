"""Problems over atoms for the differential test: scaled features, groups, trees; sample weights, rows, threads.

The reference knows no atoms: every atom brings its own copies of its columns, times its scale, and a selection of
atoms is a support of those. Two atoms that share a column bring it twice, as their halves of its weight are penalised
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tests import oracles, strategies
from tests.oracles import LinearRow, Support

Array = npt.NDArray[np.float64]
Members = dict[str, list[int]]

KINDS = ("scaled", "disjoint", "overlapping", "tree")
SCALES = ("none", "norm", "given")
ROWS = ("no rows", "budget", "implies", "conflicts", "at least", "linear", "parity")
THREADS = ("default", "one and two", "shared")
"""As many threads as there are cores; one, then two, which must agree; two Python threads on one Problem."""


@dataclass(frozen=True, eq=False)
class AtomCase:
    """One small problem over atoms.

    Attributes
    ----------
    X : (n, p) ndarray, as a user would give it
    members : mapping of the name of every atom to its columns
    inner : mapping of node to parent, of a tree
    scales : (count,) ndarray λ, or "norm"
    penalty : (count,) ndarray
    threads : one of `THREADS`
    """

    seed: int
    kind: str
    X: Array
    y: Array
    members: Members
    inner: Mapping[str, str]
    scales: Any
    scale: strategies.Scaling
    stored: bool
    sample_weight: Array | None
    C: float
    M: int | None
    bias: bool
    loss: str
    penalty: Array
    rows: tuple[LinearRow, ...]
    extras: tuple[oracles.ExtraVariable, ...]
    threads: str
    tags: tuple[str, ...]

    @cached_property
    def c_i(self) -> Array:
        """C times the sample weights, (n,)."""
        return self.C * (np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight)

    @cached_property
    def allowed(self) -> list[Support]:
        """Every allowed set of atoms."""
        return oracles.allowed_supports(tuple(self.members), self.M, self.rows, (), (), self.extras)

    def columns_of(self, atoms: Support) -> Support:
        """Their columns in the matrix of the reference."""
        sizes = [len(ids) for ids in self.members.values()]
        first = np.cumsum([0, *sizes])
        return frozenset(k for g in atoms for k in range(first[g], first[g + 1]))

    @cached_property
    def exact(self) -> oracles.BruteForce:
        """Brute force over copies of the columns, each with its atom's scale; the penalty stands on the first one."""
        scaled = strategies.scaled_as(self.X, self.scale, self.sample_weight)
        parts, costs = [], []
        for g, ids in enumerate(self.members.values()):
            block = scaled[:, ids]
            size = float(np.sqrt((block**2).sum()))
            factor = (1.0 / size if size > 0 else 0.0) if isinstance(self.scales, str) else float(self.scales[g])
            parts.append(factor * block)
            costs += [float(self.penalty[g]), *[0.0] * (len(ids) - 1)]
        supports = [self.columns_of(atoms) for atoms in self.allowed]
        return oracles.brute_force(
            np.hstack(parts), self.y, self.c_i, supports, np.array(costs), self.bias, loss=self.loss, tie=1e-6
        )

    def problem(self) -> Any:
        """The same as a `mipfs.Problem`."""
        from mipfs.atoms.features import Features
        from mipfs.atoms.groups import Groups
        from mipfs.atoms.tree import Tree
        from mipfs.data.instance import Instance, Row
        from mipfs.problem import Problem
        from mipfs.selection.selection import Extras, Rows

        data = Instance.from_arrays(
            sparse.csc_array(self.X) if self.stored else self.X,
            self.y,
            scale=self.scale,
            sample_weight=self.sample_weight,
        )
        if self.kind == "scaled":
            atoms: Any = Features(data, self.scales)
        elif self.kind == "tree":
            atoms = Tree(data, self.inner, scaling=self.scales)
        else:
            atoms = Groups(data, self.members, self.scales)
        index = {name: g for g, name in enumerate(self.members)}
        assert list(atoms.names) == list(index)
        extra = Extras(
            tuple(e.name for e in self.extras),
            np.array([e.lb for e in self.extras]),
            np.array([e.ub for e in self.extras]),
            np.array([e.integer for e in self.extras], dtype=bool),
        )
        rows = Rows.of([Row(r.name, r.terms, r.lb, r.ub) for r in self.rows], index, extra if self.extras else None)
        more: dict[str, Any] = {"rows": rows} if self.rows else {}
        return Problem(
            data, loss=self.loss, bias=self.bias, M=self.M, C=self.C, lam=self.penalty.tolist(), atoms=atoms, **more
        )


def case(seed: int) -> AtomCase:
    """The case of a seed: the same seed always gives the same case."""
    rng = np.random.default_rng([20151, seed])
    draft = strategies._Draft(rng)
    kind, drawn = draft.one_of(KINDS), draft.one_of(list(strategies.DATA))
    n, p = int(rng.integers(3, 41)), int(rng.integers(2, 7))
    X, scores = strategies.DATA[drawn](rng, n, p)
    y = strategies._labels(scores, rng)
    members, inner = _atoms(rng, kind, p)
    count = len(members)
    given = draft.one_of(SCALES[1:] if kind == "scaled" else SCALES)
    scales: Any = {"none": np.ones(count), "norm": "norm"}.get(given, 10.0 ** rng.uniform(-1, 1, count))
    C = float(2.0 ** rng.uniform(-2, 5))
    unit = 0.3 * C * float(min((y > 0).sum(), (y < 0).sum())) / count
    penalised = draft.one_of(["no penalty", "penalty"], [2, 1]) == "penalty"
    rows, extras = strategies.ROWS[draft.one_of(ROWS, [5.0] + [1.0] * (len(ROWS) - 1))](rng, tuple(members))
    scalings: dict[str, strategies.Scaling] = {"as given": "none", "standard": "standard", "unit": "unit"}
    return AtomCase(
        seed=seed,
        kind=kind,
        X=X,
        y=y,
        members=members,
        inner=inner,
        scales=scales,
        scale=scalings[draft.one_of(list(scalings), [5, 4, 2])],
        stored=draft.one_of(["csc", "dense"]) == "csc",
        sample_weight=rng.uniform(0.3, 3.0, n) if draft.one_of(["weights", "no weights"]) == "weights" else None,
        C=C,
        M=int(rng.integers(1, count + 1)) if rng.random() < 0.8 else None,
        bias=draft.one_of(["free bias", "no bias"], [2, 1]) == "free bias",
        loss=draft.one_of(strategies.LOSSES),
        penalty=rng.uniform(0, unit, count) if penalised else np.zeros(count),
        rows=tuple(rows),
        extras=tuple(extras),
        threads=draft.one_of(THREADS, [3, 1, 1]),
        tags=tuple(draft.tags),
    )


def _atoms(rng: np.random.Generator, kind: str, p: int) -> tuple[Members, dict[str, str]]:
    """Atoms over p columns x1 … xp, and the parents of a tree."""
    leaves = {f"x{j + 1}": [j] for j in range(p)}
    if kind == "scaled":
        return leaves, {}
    if kind == "disjoint":
        owner = rng.integers(0, max(2, p - 1), size=p)
        return {f"group {g}": np.flatnonzero(owner == g).tolist() for g in np.unique(owner)}, {}
    if kind == "overlapping":
        count = int(rng.integers(2, 7))
        drawn = [rng.choice(p, size=int(rng.integers(1, p + 1)), replace=False).tolist() for _ in range(count)]
        return {f"group {g}": ids for g, ids in enumerate(drawn)}, {}
    cut = int(rng.integers(1, p + 1))
    inner = {f"x{j + 1}": "low" for j in range(cut)}
    below = {"low": list(range(cut))}
    if rng.random() < 0.5:
        inner |= {"low": "top"} | {f"x{j + 1}": "top" for j in range(cut, p) if rng.random() < 0.5}
        below["top"] = below["low"] + [j for j in range(cut, p) if inner.get(f"x{j + 1}") == "top"]
    return leaves | below, inner


def check(case: AtomCase, driver: Any, solve: Callable[..., Any]) -> str:
    """Put one driver through one case; see `tests.differential.check`."""
    problem = case.problem()
    options = [dict(driver.options)]
    if case.threads == "one and two" and driver.name == "branch":
        options = [{**driver.options, "threads": count} for count in (1, 2)]
    if case.threads == "shared":
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(solve, problem, driver=driver.name, **driver.options) for _ in range(2)]
            results = [one.result() for one in waiting]
    else:
        results = [solve(problem, driver=driver.name, **chosen) for chosen in options]
    for result in results:
        _is_right(case, result)
    if len(results) == 2:
        same = [(r.objective, r.bound, r.selected) for r in results]
        if same[0] != same[1]:
            raise AssertionError(f"two runs of one problem differ: {same[0]} and {same[1]}")
    return "feasible" if case.allowed else "infeasible"


def _is_right(case: AtomCase, result: Any) -> None:
    """OPTIMAL, with objective and bound as brute force has them and an optimal selection; or INFEASIBLE."""
    status = result.status.name
    if not case.allowed:
        if status != "INFEASIBLE":
            raise AssertionError(f"{status} where no selection is allowed")
        return
    exact = case.exact
    optimum, unit = exact.value, max(1e-10, abs(exact.value.upper))
    if status != "OPTIMAL":
        raise AssertionError(f"{status}, {result.stop_reason.name}, gap {result.gap:.1e}")
    for name, value in (("objective", result.objective), ("bound", result.bound)):
        if abs(value - optimum.upper) > 1e-6 * unit:
            raise AssertionError(f"{name} {value!r} is not the optimum {optimum.upper!r}")
    if result.bound - optimum.upper > 1e-9 * unit:
        raise AssertionError(f"bound {result.bound!r} is above the optimum {optimum.upper!r}")
    chosen = frozenset(list(case.members).index(name) for name in result.selected)
    if chosen not in case.allowed:
        raise AssertionError(f"{sorted(result.selected)} is not allowed")
    own = exact.of(case.columns_of(chosen))
    if own.lower > optimum.upper + 1e-6 * unit:
        raise AssertionError(f"{sorted(result.selected)} has the value {own.upper!r}, the optimum is {optimum.upper!r}")
