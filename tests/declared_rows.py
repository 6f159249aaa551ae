"""Random rows over σ in every declared program: what CVXPY, Pyomo and the drivers make of them.

    python -m tests.declared_rows --count 300            # rows 1, 2, 3, …, each in the next formulation
    python -m tests.declared_rows --case 17              # one of them again

Each set of rows moves the optimum of the program that it is added to. The value of the program must then be that of the
relaxation that `repr` names, by programs that are written here from the definitions, or by enumeration; and the driver
that proves that relaxation, and those that solve the problem, must have the same.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy
import numpy as np
import numpy.typing as npt

from tests import structural_oracles
from tests.declared_draws import add_rows, constraints, rows_over_extras
from tests.exact_rows import rows_hold
from tests.oracles import svm_value

cp: Any = cvxpy
Array = npt.NDArray[np.float64]
P = 5
AGREE = 1e-6
"""How far, relative, two values may be apart."""
MOVED = 1e-4
"""How far, relative, rows must move the optimum of the program that they are added to."""
TRIES = 60
FORMULATIONS = (
    "fsp-m", "fsp-lambda", "fgm", "fgm over the hull", "boolean", "nmmkl", "decomposed-sdp", "big-m", "big-m binary",
    "reduced-mkl dual", "reduced-mkl primal", "structural dual", "structural primal", "structural pool dual",
    "structural pool primal", "qcqp-ssvm", "sdp-ssvm", "plain-svm", "onsvm",
)  # fmt: skip
LEAVE_OUT = ("qcqp-ssvm", "sdp-ssvm", "plain-svm", "onsvm")
"""Formulations without σ, which leave rows out: the rows are the problem's."""


def budget(rng: np.random.Generator) -> list[tuple[list[float], float, float]]:
    """Σ β_j σ_j ≤ B."""
    costs = rng.integers(1, 4, P).astype(float)
    return [(costs.tolist(), -math.inf, float(rng.integers(1, int(costs.sum()))) + float(rng.choice([0.0, 0.5])))]


def pairs(rng: np.random.Generator) -> list[tuple[list[float], float, float]]:
    """Conflicts, precedences, equal pairs, and half of a pair."""
    found = []
    for _ in range(int(rng.integers(1, 3))):
        row = np.zeros(P)
        a, b = rng.choice(P, 2, replace=False)
        kind = int(rng.integers(4))
        row[[a, b]] = 1.0, -1.0 if kind in (1, 2) else 1.0
        found.append((row.tolist(), 0.0 if kind == 2 else -math.inf, (1.0, 0.0, 0.0, 0.5)[kind]))
    return found


def forced(rng: np.random.Generator) -> list[tuple[list[float], float, float]]:
    """One in, or one out, or both."""
    ids = rng.choice(P, int(rng.integers(1, 3)), replace=False)
    ends = [float(rng.integers(2)) for _ in ids]
    return [(np.eye(P)[j].tolist(), end, end) for j, end in zip(ids, ends, strict=True)]


def counts(rng: np.random.Generator) -> list[tuple[list[float], float, float]]:
    """Exactly, or at least, so many of some."""
    some = (rng.random(P) < 0.7).astype(float)
    k = float(rng.integers(0, 3))
    return [(some.tolist(), k, k if rng.random() < 0.5 else math.inf)]


KINDS: Mapping[str, Callable[[np.random.Generator], list[tuple[list[float], float, float]]]] = {
    "budget": budget,
    "pairs": pairs,
    "forced": forced,
    "counts": counts,
}


def drawn_rows(rng: np.random.Generator) -> tuple[Any, str]:
    """Rows, and of which kinds: one or two, at times over extra variables."""
    from scipy import sparse

    from mipfs.selection.selection import Rows

    if rng.random() < 0.35:
        return rows_over_extras(rng, P), "extra variables"
    kinds = sorted(rng.choice(list(KINDS), int(rng.integers(1, 3)), replace=False).tolist())
    found = [row for kind in kinds for row in KINDS[kind](rng)]
    matrix = sparse.csr_array(np.array([row for row, _, _ in found]))
    ends = (np.array([one[k] for one in found]) for k in (1, 2))
    return Rows(matrix, *ends, tuple(f"r{i}" for i in range(len(found))), ("",) * len(found)), " and ".join(kinds)


@dataclass(frozen=True)
class References:
    """Values of a problem with rows by other code.

    Attributes
    ----------
    problem : Problem, of which the data and parameters are read
    rows : Rows, all that restrict σ beside M
    pool : selections, of programs over a pool
    labels : Δ (K,) and v (K, n) of the structural loss, all of them or those of a pool
    """

    problem: Any
    rows: Any
    pool: Sequence[frozenset[int]] = ()
    labels: tuple[Array, Array] | None = None

    @cached_property
    def allowed(self) -> list[frozenset[int]]:
        """Every selection of S."""
        most = P if self.problem.M is None else self.problem.M
        sets = (frozenset(s) for k in range(most + 1) for s in itertools.combinations(range(P), k))
        return [one for one in sets if rows_hold(self.rows, one, P)]

    @cached_property
    def exact(self) -> float:
        """The problem itself, by enumeration."""
        return min((self.at(one) for one in self.allowed), default=math.inf)

    def at(self, chosen: frozenset[int]) -> float:
        """The value of a selection."""
        problem, ids = self.problem, sorted(chosen)
        fixed = float(problem.penalty[ids].sum())
        if self.labels is not None:
            return fixed + self._structural([chosen], without_costs=True)
        Z = np.asarray(problem.data.X)[:, ids]
        c = np.full(problem.data.n_samples, problem.C)
        return self._reported(svm_value(Z, problem.data.y, c, problem.bias, problem.loss).upper + fixed)

    def over(self, sets: Sequence[frozenset[int]]) -> float:
        """min over w_t, μ of ½ Σ ‖w_t‖²/μ_t + Σ μ_t c_t + L: kernel learning over selections, Tan 2010, (6)."""
        if not sets:
            return math.inf
        if self.labels is not None:
            return self._structural(sets)
        problem, X = self.problem, np.asarray(self.problem.data.X)
        mu, b = cp.Variable(len(sets), nonneg=True), cp.Variable()
        parts = [(cp.Variable(len(one)), sorted(one), t) for t, one in enumerate(sets) if one]
        scores = sum((X[:, ids] @ w for w, ids, _ in parts), np.zeros(len(X))) + (b if problem.bias else 0.0)
        size = 0.5 * sum((cp.quad_over_lin(w, mu[t]) for w, _, t in parts), 0.0)
        fixed = np.array([problem.penalty[sorted(one)].sum() for one in sets])
        loss, rows = self._loss(scores)
        return self._reported(_value(size + fixed @ mu + loss, [*rows, cp.sum(mu) == 1]))

    def _structural(self, sets: Sequence[frozenset[int]], *, without_costs: bool = False) -> float:
        problem, X = self.problem, np.asarray(self.problem.data.X)
        assert self.labels is not None
        sigmas = np.array([[float(j in one) for j in range(P)] for one in sets])
        costs = 0.0 * problem.penalty if without_costs else problem.penalty
        if problem.bias:  # the constant column is in every selection
            X, sigmas = np.column_stack([X, np.ones(len(X))]), np.column_stack([sigmas, np.ones(len(sets))])
            costs = np.append(costs, 0.0)
        return structural_oracles.relaxation(X, *self.labels, problem.C, sigmas, costs)

    def box(self, W: Array | None = None) -> float:
        """(P) over 0 ≤ σ ≤ 1 and the rows, whole variables relaxed; with W by |w_j| ≤ W_j σ_j."""
        problem, X = self.problem, np.asarray(self.problem.data.X)
        rows, extra = self.rows, self.rows.extra
        sigma, w, b, t = cp.Variable(P), cp.Variable(P), cp.Variable(), cp.Variable(P)
        u = cp.Variable(len(extra)) if len(extra) else np.zeros(0)
        loss, given = self._loss(X @ w + (b if problem.bias else 0.0))
        given += [sigma >= 0, sigma <= 1] + ([] if problem.M is None else [cp.sum(sigma) <= problem.M])
        A = rows.matrix.toarray()
        body = A[:, :P] @ sigma + (A[:, P:] @ u if len(extra) else 0.0)
        ends = [(body, rows.lb, rows.ub)]
        if len(extra):
            low, high = extra.lb, extra.ub
            ends.append((u, np.where(extra.integer, np.ceil(low), low), np.where(extra.integer, np.floor(high), high)))
        for what, least, most in ends:
            given += [what[i] >= least[i] for i in np.flatnonzero(np.isfinite(least)).tolist()]
            given += [what[i] <= most[i] for i in np.flatnonzero(np.isfinite(most)).tolist()]
        if W is None:
            given += [cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(P)]
            size = 0.5 * cp.sum(t)
        else:
            given += [w <= cp.multiply(W, sigma), -w <= cp.multiply(W, sigma)]
            size = 0.5 * cp.sum_squares(w)
        return self._reported(_value(size + problem.penalty @ sigma + loss, given))

    def without_sigma(self, name: str) -> float:
        """The relaxations by norms, the plain SVM, and the ℓ1 baseline, none of which sees rows or costs."""
        problem, X = self.problem, np.asarray(self.problem.data.X)
        w, b, t = cp.Variable(P), cp.Variable(), cp.Variable()
        loss, rows = self._loss(X @ w + (b if problem.bias else 0.0))
        if name == "plain-svm":
            return _value(0.5 * cp.sum_squares(w) + loss, rows)
        if name == "onsvm":
            return _value(cp.norm1(w) + loss, rows)
        if name == "qcqp-ssvm":
            rows += [cp.sum_squares(w) <= t, cp.square(cp.norm1(w)) <= problem.M * t]
            return _value(0.5 * t + loss, rows)
        whole = cp.Variable((P + 1, P + 1), PSD=True)
        W = whole[:P, :P]
        rows += [whole[P, P] == 1, whole[:P, P] == w, cp.sum(cp.abs(W)) <= problem.M * cp.trace(W)]
        return _value(0.5 * cp.trace(W) + loss, rows)

    def _loss(self, scores: Any) -> tuple[Any, list[Any]]:
        problem = self.problem
        margins = cp.multiply(problem.data.y, scores)
        if problem.loss == "logistic":
            return problem.C * cp.sum(cp.logistic(-margins)), []
        xi = cp.Variable(problem.data.n_samples, nonneg=True)
        value = cp.sum(xi) if problem.loss == "hinge" else 0.5 * cp.sum_squares(xi)
        return problem.C * value, [margins + xi >= 1]

    def _reported(self, value: float) -> float:
        """In the ρ-form −1/(4v), of v the value of the unit margin."""
        return -0.25 / value if self.problem.margin == "rho" and math.isfinite(value) else value


def _value(goal: Any, rows: list[Any]) -> float:
    return float(cp.Problem(cp.Minimize(goal), rows).solve(solver=cp.CLARABEL))


# The programs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A declared program, and what its value is compared with.

    Attributes
    ----------
    name : str, of `FORMULATIONS`
    problem : Problem
    made : Formulation or Pyomo model
    own : Rows, those that the problem has already
    pool, labels : as in `References`
    """

    name: str
    problem: Any
    made: Any
    own: Any
    pool: Sequence[frozenset[int]] = ()
    labels: tuple[Array, Array] | None = None

    @property
    def labellings(self) -> tuple[Array, Array]:
        """All labellings of a structural problem."""
        return structural_oracles.labellings(self.problem.measure, self.problem.data.y)

    def references(self, rows: Any = None) -> References:
        """Of the problem, with more rows or without."""
        return References(self.problem, self.own if rows is None else self.own.stack(rows), self.pool, self.labels)

    def named(self, refer: References, said: str, made: Any) -> float:
        """The value of the relaxation that is named, by other code."""
        if "leaves" in said or "baseline" in said:
            return refer.without_sigma(self.name)
        if "over its pool" in said:
            return refer.over([one for one in self.pool if one in set(refer.allowed)])
        if "over the hull" in said:
            return refer.over(refer.allowed)
        if "the problem itself" in said:
            return refer.exact
        assert "over the box" in said, said
        return refer.box(links_of(made) if "big-M" in said else None)


def links_of(made: Any) -> Array:
    """W of −Wσ ≤ w ≤ Wσ, as it stands in a big-M program."""
    link = made.cvxpy.constraints[0]
    before = made.sigma.value
    made.sigma.save_value(np.ones(P))
    W = np.asarray(link.args[1].value, dtype=float)
    made.sigma.save_value(before)
    return W


def subject(name: str, rng: np.random.Generator) -> Subject:
    """A program of random data and parameters."""
    from mipfs import formulation
    from mipfs.problem import Problem
    from mipfs.selection.selection import Rows

    kind, *form = name.split(" ")
    is_structural = kind == "structural"
    n, M = (6 if is_structural else 14), int(rng.integers(2, 4))
    data = _data(rng, n)
    given: dict[str, Any] = {"M": M, "C": float(rng.choice([0.5, 2.0, 8.0])), "formulation": kind}
    has_costs = kind == "fsp-lambda" or (rng.random() < 0.3 and name != "structural primal" and "primal" not in form)
    if has_costs and kind not in LEAVE_OUT:
        given["lam"] = np.round(rng.uniform(0.0, 0.5, P), 2).tolist()
    if is_structural:
        given |= {"loss": "structural", "measure": str(rng.choice(["f1", "error", "prbep"])), "C": given["C"] * 4}
    else:
        losses = ["hinge"] if kind == "onsvm" else ["hinge", "squared-hinge", "logistic"]
        given |= {"loss": str(rng.choice(losses))}
        if kind in ("fgm", "boolean", "reduced-mkl") and given["loss"] == "squared-hinge" and "lam" not in given:
            given["margin"] = str(rng.choice(["unit", "rho"]))
    given["bias"] = bool(rng.random() < 0.5)
    if kind == "fsp-lambda":
        given["M"] = None
    problem = Problem(data, **given)
    own = Rows.empty(P)
    if name == "fgm over the hull":
        own = drawn_hull(rng)
        problem = problem.replace(rows=own)
    pool, labels, more = _pool(name, rng, problem)
    if kind in ("fsp-m", "fsp-lambda"):
        made: Any = formulation.algebraic_model(problem)
    elif name == "big-m binary":
        made = formulation.declare(kind, problem, None, True)
    else:
        made = formulation.declare(kind, problem, *more)
    return Subject(name, problem, made, own, pool, labels)


def _data(rng: np.random.Generator, n: int) -> Any:
    from mipfs.data.instance import Instance

    X = rng.normal(size=(n, P)) + 0.3
    y = np.where(X @ rng.normal(size=P) + 0.5 * rng.normal(size=n) > 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y, scale="standard")


def drawn_hull(rng: np.random.Generator) -> Any:
    """A budget whose box is not its hull."""
    from scipy import sparse

    from mipfs.selection.selection import Rows

    costs = rng.integers(2, 5, P).astype(float)
    return Rows(sparse.csr_array(costs[None, :]), np.array([-np.inf]), np.array([7.0]), ("own",), ("",))


def _pool(name: str, rng: np.random.Generator, problem: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    """The pool and labellings of a program, and the arguments of its `declare`."""
    sets = [frozenset(s) for k in range(problem.M + 1 if problem.M else 1) for s in itertools.combinations(range(P), k)]
    picked = [sets[int(k)] for k in rng.choice(len(sets), 9, replace=False)] if len(sets) > 9 else sets
    form = "primal" if name.endswith("primal") else "dual"
    if name.startswith("reduced-mkl"):
        return picked, None, ([sorted(one) for one in picked], form)
    if not name.startswith("structural"):
        return (), None, ()
    losses, V = structural_oracles.labellings(problem.measure, problem.data.y)
    if "pool" not in name:
        return (), (losses, V), (None, None, None, form)
    some = rng.choice(losses.size, min(12, losses.size), replace=False)
    wrong = (V[some] != 0.0).astype(float)
    return picked, (losses[some], V[some]), (wrong, losses[some], [sorted(one) for one in picked], form)


def same(one: float, other: float, room: float = AGREE) -> bool:
    """Whether two values agree."""
    return abs(one - other) <= room * max(abs(one), abs(other)) + 1e-12


def check(name: str, seed: int) -> tuple[str, list[str]]:
    """Put random rows into a program: what they are, and what was found wrong."""
    rng = np.random.default_rng([seed, FORMULATIONS.index(name)])
    for _ in range(TRIES):
        one = subject(name, rng)
        rows, kind = drawn_rows(rng)
        refer, before = one.references(rows), one.references()
        if not refer.allowed or same(refer.exact, before.exact, MOVED):
            continue
        if name in ("fsp-m", "fsp-lambda"):
            return kind, list(_pyomo(one, rows, refer))
        said = repr(one.made)
        if name in LEAVE_OUT:
            return kind, list(_left_out(one, rows))
        if not set(one.pool) <= set(refer.allowed) and not set(one.pool) & set(refer.allowed):
            continue
        free = one.named(before, said, one.made)
        if "the problem itself" not in said and same(one.named(refer, said, one.made), free, MOVED):
            continue
        return kind, list(_cvxpy(one, rows, refer, seed))
    return "", ["no rows were found that move its optimum"]


def _cvxpy(one: Subject, rows: Any, refer: References, seed: int) -> Iterator[str]:
    import mipfs

    made = one.made
    changed = made.with_constraints(constraints(one.problem.replace(rows=rows), made.sigma))
    said = repr(changed)
    value = one.named(refer, said, changed)
    if one.name == "big-m binary":
        got = float(changed.cvxpy.solve(method="mipfs", gap=1e-8))
        if seed % 2 == 0 and one.problem.loss != "logistic":
            other = float(changed.cvxpy.solve(solver=cp.SCIP))
            if not same(other, value, 1e-5):
                yield f"SCIP has {other!r}, enumeration {value!r}"
    else:
        got = float(_whole_relaxed(changed).solve(solver=cp.CLARABEL))
    if not same(got, value):
        yield f"cvxpy.solve() has {got!r}, {said.split(',')[1]} by other code {value!r}"
    whole = one.references(rows) if one.labels is None else References(refer.problem, refer.rows, (), one.labellings)
    for driver in ("branch",) if seed % 4 else ("branch", "gbd"):
        result = mipfs.solve(changed, driver, gap=1e-7)
        if not same(result.objective, whole.exact):
            yield f"{driver} has {result.objective!r}, enumeration {whole.exact!r}"
    yield from _proven(one, changed, said, value)


def _proven(one: Subject, changed: Any, said: str, value: float) -> Iterator[str]:
    """The driver that proves the relaxation that is named."""
    import mipfs

    if "the problem itself" in said:
        return
    if "over the hull" in said:
        driver = "two_layer" if one.labels is not None else "kelley"
        bound = mipfs.solve(changed, driver, gap=1e-8).bound
        what = driver
    elif "big-M" in said or "over its pool" in said:
        if one.labels is not None:
            return  # no driver solves it over given labellings
        relaxed = mipfs.solve(changed, "conic", gap=1e-7).relaxed
        bound = math.nan if relaxed is None else relaxed["upper"]
        what = "conic"
    else:
        bound = mipfs.solve(changed, "kelley", relaxation="box", gap=1e-8).bound
        what = "kelley over the box"
    if not same(bound, value):
        yield f"{what} has {bound!r}, {said.split(',')[1]} is {value!r}"


def _whole_relaxed(changed: Any) -> Any:
    """The program without the integrality of the user's own variables."""
    program = changed.cvxpy
    whole = {v.id: v for v in program.variables() if v.attributes["integer"] or v.attributes["boolean"]}
    if not whole:
        return program
    free = {}
    for key, v in whole.items():
        low, high = v.attributes["bounds"]
        free[key] = cp.Variable(v.shape, bounds=[np.ceil(low), np.floor(high)])
    known = {id(v): free[v.id] for v in program.variables() if v.id in free}
    known |= {id(v): free[v.id] for one in program.constraints for v in one.variables() if v.id in free}
    goal = program.objective.tree_copy(known)
    return cp.Problem(goal, [constraint.tree_copy(known) for constraint in program.constraints])


def _left_out(one: Subject, rows: Any) -> Iterator[str]:
    import mipfs
    from mipfs import formulation

    problem = one.problem.replace(rows=rows)
    refer = References(problem, rows)
    made = formulation.declare(one.name, problem)
    said, got, value = repr(made), float(made.cvxpy.solve(solver=cp.CLARABEL)), refer.without_sigma(one.name)
    if "leaves out" not in said and "baseline" not in said:
        yield f"repr does not say that rows are left out: {said}"
    if not same(got, value):
        yield f"cvxpy.solve() has {got!r}, without rows it is {value!r}"
    result = mipfs.solve(made, "branch", gap=1e-7)
    if not same(result.objective, refer.exact):
        yield f"branch has {result.objective!r}, enumeration {refer.exact!r}"


def _pyomo(one: Subject, rows: Any, refer: References) -> Iterator[str]:
    import pyomo.environ as pyo

    import mipfs

    model = one.made
    add_rows(model, rows)
    for driver in ("branch", "gbd"):
        result = mipfs.solve(model, driver, gap=1e-7)
        if not same(result.objective, refer.exact):
            yield f"{driver} has {result.objective!r}, enumeration {refer.exact!r}"
        stands = float(pyo.value(model.objective))
        if not same(stands, refer.exact, 1e-5):
            yield f"the model's objective is {stands!r} at what {driver} loaded, enumeration {refer.exact!r}"
    found = pyo.SolverFactory("mipfs").solve(model, options={"gap": 1e-7})
    if str(found.solver.termination_condition) != "optimal":
        yield f"SolverFactory('mipfs') says {found.solver.termination_condition}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the test; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.declared_rows", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="how many sets of rows (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="the first (default 1)")
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--formulation", choices=FORMULATIONS, help="all in this formulation")
    arguments = parser.parse_args(argv)
    first, count = (arguments.seed, arguments.count) if arguments.case is None else (arguments.case, 1)
    began, passed, failed, kinds = time.monotonic(), Counter[str](), 0, Counter[str]()
    for seed in range(first, first + count):
        name = arguments.formulation or FORMULATIONS[seed % len(FORMULATIONS)]
        try:
            kind, faults = check(name, seed)
        except Exception as error:  # whatever went wrong is a fault of this program, to be named and repeated
            kind, faults = "", [f"{type(error).__name__}: {error}"]
        kinds[kind] += 1
        passed[name] += not faults
        failed += bool(faults)
        for words in faults:
            print(f"FAILED {name} with {kind or 'rows'}: {words}")
            again = f" --formulation {name!r}" if arguments.formulation else ""
            print(f"  again: python -m tests.declared_rows --case {seed}{again}", flush=True)
    print(", ".join(f"{name}: {number}" for name, number in passed.items()))
    print(", ".join(f"{kind}: {number}" for kind, number in kinds.items()))
    print(f"{sum(passed.values())} passed, {failed} failed in {time.monotonic() - began:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
