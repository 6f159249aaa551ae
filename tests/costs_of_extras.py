"""Small problems whose extra variables cost something, against brute force, and both checkers.

    python -m tests.costs_of_extras --count 300 --seed 1
    python -m tests.costs_of_extras --case 17
    python -m tests.costs_of_extras --count 30 --seed 1 --scip    # the Pyomo model, by SCIP
    python -m tests.costs_of_extras --count 200 --seed 1 --forged # certificates that both checkers must refuse

A case has some of: devices that are paid once for several features, capacities that money extends, packs, rebates for
two features together, variables without any end that a row defines; budgets, conflicts, exactly so many, forced
features; penalties; costs of either sign, and objectives below 0; a loss, an intercept or none. The reference solves
the SVM of every selection (`tests.oracles.svm_value`), and the extra variables beside it as a MILP of their own
(`scipy.optimize.milp`). A result must be OPTIMAL, its value that of the reference, and its bound not above it; a list
has every support up to its limit, but for those that only add features of weight 0 which no cost depends on.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

import mipfs
from mipfs.selection.rows import Extras, Rows
from tests.oracles import svm_value
from tests.over_weights import campaign
from tests.two_checkers import data_of, remembered, verdicts, written

Array = npt.NDArray[np.float64]
LOSSES = "hinge", "squared-hinge", "logistic"
GAP, AGREE = 1e-6, 3e-6
"""What is asked, and by how much values may differ, relatively."""
BLURRED = 1e-5
"""Supports whose value is this near a list's limit, relatively, may be on it or not."""
OF_SCIP = 1e-3
"""SCIP lets w² ≤ tσ be broken by 1e-6, so that a weight of 1e-3 costs nothing."""


@dataclass
class Made:
    """Extra variables and rows [σ; z], as they are drawn."""

    p: int
    lb: list[float] = field(default_factory=list)
    ub: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)

    def variable(self, lb: float, ub: float, whole: bool, cost: float) -> int:
        """One more, its column."""
        self.lb.append(lb)
        self.ub.append(ub)
        self.integer.append(whole)
        self.cost.append(cost)
        return self.p + len(self.lb) - 1

    def row(self, terms: dict[int, float], lb: float = -math.inf, ub: float = math.inf) -> None:
        """One more."""
        self.rows.append((terms, lb, ub))

    def compiled(self) -> Rows:
        """As the package has them."""
        A = np.zeros((len(self.rows), self.p + len(self.lb)))
        for r, (terms, _, _) in enumerate(self.rows):
            A[r, list(terms)] = list(terms.values())
        names = tuple(f"z{k}" for k in range(len(self.lb)))
        extra = Extras(names, np.array(self.lb), np.array(self.ub), np.array(self.integer, bool), np.array(self.cost))
        sides = (np.array([one[k] for one in self.rows]) for k in (1, 2))
        labels = tuple(f"r{r}" for r in range(len(self.rows)))
        return Rows(sparse.csr_array(A), *sides, labels, ("",) * len(labels), extra)


@dataclass(frozen=True, eq=False)
class Case:
    """A problem, and what the reference knows of it."""

    seed: int
    kinds: tuple[str, ...]
    problem: Any
    made: Made
    X: Array
    penalty: Array
    forced: tuple[int, ...]

    def extra_cost(self, chosen: Sequence[int]) -> float:
        """min d'z beside a selection; inf where nothing fits."""
        sigma = np.zeros(self.made.p)
        sigma[list(chosen)] = 1.0
        rows, extra = self.made.compiled(), len(self.made.lb)
        A = rows.matrix.toarray()
        beside = A[:, : self.made.p] @ sigma
        limits = LinearConstraint(A[:, self.made.p :], rows.lb - beside - 1e-9, rows.ub - beside + 1e-9)
        found = milp(
            np.array(self.made.cost), integrality=np.array(self.made.integer, int), constraints=limits,
            bounds=Bounds(np.array(self.made.lb), np.array(self.made.ub)), options={"mip_rel_gap": 0.0},
        )  # fmt: skip
        assert found.status in (0, 2), (self.seed, found.message, extra)
        return float(found.fun) if found.status == 0 else math.inf

    @cached_property
    def values(self) -> dict[frozenset[int], float]:
        """The value of every selection of S."""
        found, data = {}, self.problem.data
        for size in range(self.problem.M + 1):
            for one in itertools.combinations(range(self.made.p), size):
                if {*self.forced} <= {*one} and (extra := self.extra_cost(one)) < math.inf:
                    v = svm_value(self.X[:, one], data.y, self.problem.c_i, self.problem.bias, self.problem.loss)
                    found[frozenset(one)] = v.upper + extra + float(self.penalty[list(one)].sum())
        return found


KINDS = "device", "capacity", "packs", "rebate", "defined", "loose"
OTHERS = "budget", "conflict", "exactly", "forced", "penalties", "no intercept"


def case(seed: int) -> Case:
    """A problem drawn by its seed."""
    r = np.random.default_rng([61, seed])
    kinds = [str(kind) for kind in r.permutation(KINDS)[: int(r.integers(1, 4))]]
    kinds += [kind for kind in OTHERS if r.random() < 0.3]
    n, p = int(r.integers(12, 41)), int(r.integers(3, 7))
    X = r.normal(size=(n, p))
    y = np.where(X[:, : 1 + p // 2].sum(axis=1) + r.normal(size=n) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    data = mipfs.Instance.from_arrays(X, y, scale="none")
    C = 10.0 ** r.uniform(-1.5, 0.5)
    M = int(r.integers(1, min(4, p) + 1))
    unit = C * n * float(r.choice([0.03, 0.15, 1.5]))  # what a device costs: little, or more than all the loss
    made = Made(p)
    for kind in [kind for kind in kinds if kind in KINDS]:
        _ADDS[kind](made, r, unit)
    inside = r.permutation(p)[:M]
    if "budget" in kinds:
        cost = r.uniform(0.2, 2.0, p).round(1)
        made.row(dict(enumerate(cost.tolist())), ub=float(cost[inside].sum()))
    if "conflict" in kinds and p > 2:
        a, b = (int(j) for j in r.permutation(p)[:2])
        made.row({a: 1.0, b: 1.0}, ub=1.0)
    forced = (int(inside[0]),) if "forced" in kinds else ()
    if "exactly" in kinds:
        made.row(dict.fromkeys(range(p), 1.0), M, M)
    penalty = r.uniform(0.0, 0.1, p) * unit * (r.random(p) < 0.5) if "penalties" in kinds else np.zeros(p)
    names = data.feature_names
    problem = mipfs.Problem(
        data, M=M, C=C, loss=str(r.choice(LOSSES)), bias="no intercept" not in kinds, lam=penalty.tolist(),
        rows=made.compiled(), forced_in=tuple(names[j] for j in forced),
    )  # fmt: skip
    return Case(seed, tuple(kinds), problem, made, X, penalty, forced)


def _device(made: Made, r: np.random.Generator, unit: float) -> None:
    """z ≥ σ_j for some j, whole or real, with an upper end or without."""
    z = made.variable(0.0, 1.0 if r.random() < 0.5 else math.inf, bool(r.random() < 0.5), unit * r.uniform(0.2, 1.0))
    for j in r.permutation(made.p)[: int(r.integers(2, made.p + 1))].tolist():
        made.row({z: 1.0, j: -1.0}, lb=0.0)


def _capacity(made: Made, r: np.random.Generator, unit: float) -> None:
    """Σ a_j σ_j ≤ capacity + z."""
    z = made.variable(0.0, math.inf, False, unit * r.uniform(0.05, 0.5))
    a = r.uniform(0.2, 2.0, made.p).round(1)
    made.row({**dict(enumerate(a.tolist())), z: -1.0}, ub=float(r.uniform(0.0, 2.0)))


def _packs(made: Made, r: np.random.Generator, unit: float) -> None:
    """Σ σ_j ≤ k z, z whole: bought k at a time; or a number that pays, as far as features allow it."""
    k = float(r.integers(2, 4))
    z = made.variable(-math.inf if r.random() < 0.3 else 0.0, math.inf, True, unit * r.uniform(0.1, 0.5))
    made.row({**dict.fromkeys(range(made.p), 1.0), z: -k}, ub=0.0)
    if r.random() < 0.5:
        more = made.variable(-4.0, 4.0, True, -unit * r.uniform(0.1, 0.5))
        made.row({**dict.fromkeys(range(made.p), 1.0), more: -2.0}, lb=-1.0)


def _rebate(made: Made, r: np.random.Generator, unit: float) -> None:
    """z ≤ σ_a, z ≤ σ_b, which pays."""
    z = made.variable(0.0, math.inf, False, -unit * r.uniform(0.2, 2.0))
    for j in r.permutation(made.p)[:2].tolist():
        made.row({z: 1.0, int(j): -1.0}, ub=0.0)


def _defined(made: Made, r: np.random.Generator, unit: float) -> None:
    """z = Σ a_j σ_j + t, t in an interval: no end of its own."""
    z = made.variable(-math.inf, math.inf, False, unit * r.uniform(-0.5, 0.5))
    t = made.variable(-1.0, 1.0, bool(r.random() < 0.5), unit * r.uniform(-0.2, 0.2))
    a = r.normal(size=made.p).round(2)
    made.row({**dict(enumerate(a.tolist())), z: -1.0, t: 1.0}, 0.0, 0.0)


def _loose(made: Made, r: np.random.Generator, unit: float) -> None:
    """A variable in no row, which goes to its cheapest end."""
    made.variable(-2.0, 3.0, bool(r.random() < 0.5), unit * r.uniform(-0.5, 0.5))


_ADDS = {
    "device": _device,
    "capacity": _capacity,
    "packs": _packs,
    "rebate": _rebate,
    "defined": _defined,
    "loose": _loose,
}


def faults(one: Case, counts: Counter[str], driver: str = "branch") -> list[str]:
    """What is wrong with the answer to a case; nothing."""
    values, problem = one.values, one.problem
    result = mipfs.solve(problem, driver, gap=GAP, time_limit=60.0)
    counts[result.status.name] += 1
    if not values:
        return [] if result.status is mipfs.Status.INFEASIBLE else [f"{result.status.name}, but nothing is allowed"]
    best = min(values.values())
    size = max(abs(best), 1e-3 * float(problem.c_i.sum()))
    counts["negative"] += best < 0.0
    wrong = [] if result.status is mipfs.Status.OPTIMAL else [f"{result.status.name}, gap {result.gap:.1e}"]
    if result.bound > best + AGREE * size:
        wrong.append(f"bound {result.bound!r} above {best!r}")
    if abs(result.objective - best) > AGREE * size:
        wrong.append(f"objective {result.objective!r} for {best!r}")
    return wrong + refused(one, result)


def list_faults(one: Case, counts: Counter[str]) -> list[str]:
    """What is wrong with a list of near-optimal supports."""
    values, problem, gap = one.values, one.problem, 0.1
    if not values:
        return []
    result = mipfs.solve(problem, "branch", gap=GAP, pool_gap=gap, time_limit=60.0)
    near, names = result.near_optimal, problem.data.feature_names
    counts["lists"] += 1
    if near is None or not near["complete"]:
        counts["lists not complete"] += 1
        return ["the list is not complete", *refused(one, result)]
    best = min(values.values())
    limit, blur = best + gap * abs(best), BLURRED * max(abs(best), 1e-2 * float(problem.c_i.sum()))
    listed = {frozenset(names.index(name) for name in entry["selected"]): entry for entry in near["supports"]}
    wrong = [
        f"{sorted(ids)} listed at {entry['objective']!r}, worth {values.get(ids)!r}"
        for ids, entry in listed.items()
        if ids not in values or abs(values[ids] - entry["objective"]) > blur or values[ids] > limit + blur
    ]
    priced = {j for j in range(one.made.p) if problem.selection.priced[j]} | {*np.flatnonzero(one.penalty).tolist()}
    for ids, value in values.items():
        ties = any(
            small < ids and not (ids - small) & priced and abs(values[small] - value) <= blur for small in listed
        )
        if value < limit - blur and ids not in listed and not ties:
            wrong.append(f"{sorted(ids)}, worth {value!r}, is missing below {limit!r}")
    return wrong + refused(one, result)


def refused(one: Case, result: Any) -> list[str]:
    """What the checkers say against a result; nothing."""
    found = written(result)
    if found is None:
        return ["no certificate"]
    said = verdicts(json.loads(found[0]), found[1], one.problem.data, data_of(one.problem.data))
    return [f"checkers: {said}"] if said[0] != "accepted" or said[1] != "accepted" else []


def by_scip(one: Case, counts: Counter[str]) -> list[str]:
    """What SCIP says of the declared Pyomo model against the reference: Pyomo hands it on to pyscipopt."""
    import pyomo.environ as pyo

    from mipfs.formulation import algebraic_model

    if not one.values or one.problem.loss == "logistic":  # which has no quadratic form
        return []
    model = algebraic_model(one.problem)
    pyo.SolverFactory("scip_direct").solve(model)
    found = float(pyo.value(next(model.component_data_objects(pyo.Objective, active=True))))
    chosen = frozenset(j for j, name in enumerate(model.select.sigma) if pyo.value(model.select.sigma[name]) > 0.5)
    best, loss = min(one.values.values()), float(one.problem.c_i.sum())
    counts["SCIP"] += 1
    wrong = []
    if abs(found - best) > OF_SCIP * max(abs(best), loss):
        wrong.append(f"SCIP {found!r} for {best!r}")
    if one.values.get(chosen, math.inf) > best + OF_SCIP * max(abs(best), 1e-1 * loss):
        wrong.append(f"SCIP selects {sorted(chosen)}, worth {one.values.get(chosen)!r}, for {best!r}")
    return wrong


def forgeries(
    document: dict[str, Any], arrays: dict[str, Any], r: np.random.Generator
) -> Iterator[tuple[str, Any, Any]]:
    """Changed documents and arrays that claim what is not so."""
    costed = [name for name, one in document["extra"].items() if one.get("cost") and one["value"]]
    if not costed:  # what costs nothing here is paid by nobody: less of it is another problem with the same optimum
        return
    name = str(r.choice(costed))
    size = 1e-3 * max(abs(document["objective"]), 1e-3)

    def changed() -> tuple[Any, Any]:
        return copy.deepcopy(document), dict(arrays)

    said, held = changed()
    said["extra"][name]["cost"] *= 1.01
    yield "another cost", said, held
    said, held = changed()
    del said["extra"][name]["cost"]
    yield "no cost", said, held
    said, held = changed()
    said["extra_cost"] -= size
    yield "another part", said, held
    said, held = changed()
    step = -1.0 if said["extra"][name]["cost"] > 0 else 1.0
    step *= 1.0 if said["extra"][name]["integer"] else 1e-3
    said["extra"][name]["value"] += step
    moved = step * said["extra"][name]["cost"]
    said["objective"], said["extra_cost"] = said["objective"] + moved, said["extra_cost"] + moved
    yield "a cheaper value", said, held
    said, held = changed()
    said["objective"] -= size
    yield "another objective", said, held
    said, held = changed()
    for place in (said, said["certificate"]):
        place["bound"] += size
    said["gap"] = max(0.0, (said["objective"] - said["bound"]) / abs(said["objective"]))
    yield "a higher bound", said, held
    if held["multipliers"].size and held["multipliers"].dtype.kind == "f" and np.any(held["multipliers"]):
        said, held = changed()
        held["multipliers"] = held["multipliers"] * 0.5
        for place in (said, said["certificate"]):
            place["bound"] = said["objective"]
        said["gap"] = 0.0
        yield "halved multipliers", said, held


def forged_faults(one: Case, counts: Counter[str]) -> list[str]:
    """Forged certificates of a case that a checker accepts."""
    if not one.values:
        return []
    result = mipfs.solve(one.problem, "branch", gap=GAP, time_limit=60.0)
    found = written(result)
    assert found is not None
    wrong = []
    for what, said, held in forgeries(json.loads(found[0]), found[1], np.random.default_rng(one.seed)):
        verdict = verdicts(said, held, one.problem.data, data_of(one.problem.data))
        counts["forged"] += 1
        if "accepted" in verdict[:2]:
            wrong.append(f"{what}: {verdict}")
    return wrong


def main(argv: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.costs_of_extras", description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--scip", action="store_true")
    parser.add_argument("--forged", action="store_true")
    asked = parser.parse_args(argv)
    counts = Counter[str]()

    def judged(seed: int) -> tuple[tuple[str, ...], list[str]]:
        with remembered():
            one = case(seed)
        counts.update(one.kinds)
        if asked.forged:
            return one.kinds, forged_faults(one, counts)
        return one.kinds, faults(one, counts) + list_faults(one, counts) + (by_scip(one, counts) if asked.scip else [])

    return int(campaign(asked, counts, judged) > 0)


if __name__ == "__main__":
    sys.exit(main())
