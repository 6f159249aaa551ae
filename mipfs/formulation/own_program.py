"""A CVXPY program of a user's own, evaluated: whether it is the problem that its `Formulation` states.

The program is a function of what it shares with (P). With σ, w and b fixed (σ alone where w or b is not named) Clarabel
minimises over all its other variables, and what it is worth there is compared with (P): at selections and weights that
are drawn, before the run, and at the answer, after it.

    σ in S              (P)'s value; infeasible only where that exceeds the answer's, as bounds that big-M implies are
    w_j ≠ 0 = σ_j       infeasible, as (P) is, and so at a σ that is not in S
    fractional σ        above (P) only where that exceeds the answer's value, as |w_j| ≤ W σ_j is at a small σ_j; below
                        it, the program is a weaker relaxation, and a `RelaxationWarning` says so

Rows over σ alone are no part of this: they are read (`cvxpy_rows`), and hold in S. A program without a variable σ is
minimised as a whole: a relaxation is worth no more than the answer.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression

from mipfs.errors import NumericalError, RelaxationWarning, UsageError
from mipfs.formulation.conic import built_of, text_of
from mipfs.formulation.cvxpy_rows import apart_from_selection, selection_of
from mipfs.formulation.program import ClassifierPoint, Formulation
from mipfs.inner.subproblem import Subproblem
from mipfs.losses.evaluated import CompensatedWeights
from mipfs.plumbing.arrays import Array
from mipfs.problem import Problem
from mipfs.solvers.cones import Canonical
from mipfs.widened import widen_problem

SAME = 1e-6
"""By how much, relative to (P)'s value, the program's may differ."""
ROUGH = 1e-4
"""How much is missing, relatively, where a weaker relaxation is named; how sure a value is where (P) has none."""
SMALLEST = 1e-15
"""By how much it may differ at a value of nearly 0, relative to the loss where all weights are 0."""
TIGHT = 1e-9
"""The gap of the SVM that says v(σ)."""
DRAWN, STRANGE = 20, 5
"""How many points are drawn, half of them mixtures where σ may be fractional, and at how many (P) has no value."""
LARGE = 100.0
"""½w² of a weight that is not selected, in the loss where all weights are 0."""
FAR = 2.0
"""A value that is this many times what (P) would have without the link σ_j = 0 ⇒ w_j = 0 is Clarabel's infinity."""


@dataclass(frozen=True, eq=False)
class ProgramPoint:
    """A point that the program is evaluated at, on the scale of the data.

    Attributes
    ----------
    sigma : (count,) ndarray
    w : (p,) ndarray, b : float
        Weights and intercept, where both are fixed.
    rho : float, the margin, 1 but in the ρ-form
    """

    sigma: Array
    w: Array
    b: float
    rho: float = 1.0


def make_evaluation(formulation: Formulation, problem: Problem) -> Evaluation | None:
    """The evaluation of a program of a user's own, at what is drawn; None for anything that is declared by the package.

    Parameters
    ----------
    formulation : Formulation
    problem : Problem, the compiled formulation

    Raises
    ------
    UsageError
        The program is not the problem; the message says where.
    """
    if formulation.cvxpy is None or not formulation.is_relaxation or built_of(formulation) is not None:
        return None
    sigma = formulation.sigma
    _check_declared(formulation.cvxpy, sigma)
    if not isinstance(sigma, cvxpy.Variable) or all(v.id != sigma.id for v in formulation.cvxpy.variables()):
        _check_without_sigma(formulation.cvxpy, sigma)
        return Evaluation(formulation, problem, None)
    _check_charges(formulation, problem)
    found = Evaluation(formulation, problem, _FixedProgram(formulation, problem))
    found.compare_drawn()
    return found


def _check_declared(program: Any, sigma: Any) -> None:
    """Refuse a program that has no values yet, and a σ that may be 2: at such points it is not compared.

    Raises
    ------
    UsageError
    """
    unset = [one.name() for one in program.parameters() if one.value is None]
    if unset:
        raise UsageError(f"the program of the formulation has parameters without a value: {', '.join(unset)}; set them")
    if isinstance(sigma, cvxpy.Variable) and sigma.attributes["integer"]:
        raise UsageError("sigma is declared with integer=True, which allows 2; declare it with boolean=True")


def _check_charges(formulation: Formulation, problem: Problem) -> None:
    """Refuse terms of the objective over σ alone that are not the problem's costs: few selections that are drawn may
    meet them.

    Raises
    ------
    UsageError
    """
    goal, sigma = formulation.cvxpy.objective, formulation.sigma
    alone = [one for one in _addends(goal.args[0]) if one.variables() and {v.id for v in one.variables()} == {sigma.id}]
    for one in alone:
        if not one.is_affine():
            raise UsageError(
                "the program of the formulation is not the problem that it states: its objective has the term "
                f"{text_of(one)!r} over sigma alone, which is not linear; costs are linear, and stated by lam="
            )
    if not alone or "rho" in formulation.variables or problem.exponent:
        return
    kept, sigma.value = sigma.value, np.zeros(sigma.shape)
    found = np.asarray(sum(one.grad[sigma].toarray().ravel() for one in alone))
    sigma.value = kept
    found = found if isinstance(goal, cvxpy.Minimize) else -found
    wrong = np.flatnonzero(np.abs(found - problem.penalty) > SAME * np.abs(found))
    if wrong.size:
        j = int(wrong[0])
        raise UsageError(
            "the program of the formulation is not the problem that it states: its objective charges "
            f"{problem.atoms.names[j]!r} {found[j]:.6g}, and the problem {problem.penalty[j]:.6g}; "
            "state charges by lam="
        )


def _addends(expression: Any) -> Iterator[Any]:
    """The terms of a sum."""
    if isinstance(expression, AddExpression):
        for one in expression.args:
            yield from _addends(one)
    else:
        yield expression


def _check_without_sigma(program: Any, sigma: Any) -> None:
    """Refuse a program without a variable σ whose rows would be passed over: it is more than a relaxation of the data.

    Raises
    ------
    UsageError
    """
    known = {v.id for v in program.variables()}
    is_part = isinstance(sigma, cvxpy.Expression) and any(v.id in known for v in sigma.variables())
    if is_part or program.is_mixed_integer():
        what = "an expression, not a variable," if is_part else "no variable"
        raise UsageError(
            f"sigma is {what} of the program, whose rows over the selection cannot be read then; name one variable "
            "sigma = cvxpy.Variable(p, boolean=True), and tie others to it by linear rows"
        )
    if not program.is_dcp():
        raise UsageError("the program of the formulation is not convex by the rules of CVXPY, and cannot be evaluated")


class Evaluation:
    """A program beside the problem that it is said to be.

    Parameters
    ----------
    formulation : Formulation
    problem : Problem, the compiled formulation
    fixed : what evaluates the program at a point; None where it has no variable σ
    """

    def __init__(self, formulation: Formulation, problem: Problem, fixed: _FixedProgram | None) -> None:
        self.formulation = formulation
        self.problem = problem
        self._fixed = fixed
        self._cut_off: list[tuple[ProgramPoint, str, float, float]] = []
        self._unsure = 0
        self._rng = np.random.default_rng(0)

    def compare_drawn(self) -> None:
        """Evaluate the program at points that are drawn.

        Raises
        ------
        UsageError
        """
        assert self._fixed is not None
        weaker = math.inf
        is_whole = bool(self.formulation.sigma.attributes["boolean"])
        half = DRAWN // 2
        chosen = list(self._draw_selections(DRAWN if is_whole else half))
        for sigma in chosen:
            self._compare_values(self._draw_point(sigma), exact=True)
        if 2 * self._unsure > len(chosen):
            raise self._too_rough_error()
        if not is_whole and len(chosen) > 1:
            for _ in range(half):
                picked = self._rng.choice(len(chosen), size=2, replace=False)
                mixed = self._draw_point(
                    np.average([chosen[k] for k in picked], axis=0, weights=self._rng.dirichlet([1, 1]))
                )
                weaker = min(weaker, self._compare_values(mixed, exact=False))
        self._compare_impossible(chosen)
        if weaker < 1.0 - ROUGH:
            warnings.warn(
                f"the program of the formulation is a weaker relaxation than (P) with 0 <= sigma <= 1: where sigma is "
                f"fractional it is worth {weaker:.3g} of that",
                RelaxationWarning,
                stacklevel=5,
            )

    def check(self, point: ClassifierPoint, objective: float) -> None:
        """Evaluate the program at the answer, whose value is `objective`.

        Raises
        ------
        UsageError
            The program has another value there, or leaves it out.
        """
        if self._fixed is None:
            self._compare_whole(objective)
            return
        has_rho = "rho" in self.formulation.variables
        point = point if has_rho else point.unit()
        self._compare_values(ProgramPoint(point.sigma, point.w, point.b, point.rho), exact=True, is_answer=True)
        for place, what, value, worth in self._cut_off:
            unit = self.problem.unit_margin(objective) if self.problem.margin == "rho" else objective
            if value < (objective if has_rho else unit) * (1.0 - SAME):
                raise self._other_problem_error(place, what, value, worth)

    def _compare_whole(self, objective: float) -> None:
        program = self.formulation.cvxpy
        sign = 1.0 if isinstance(program.objective, cvxpy.Minimize) else -1.0
        said, least, most = Canonical(program).solve_fixed({})
        if said == "failed":
            raise self._too_rough_error()
        value = min(sign * least, sign * most)
        most_of_it = self.problem.unit_margin(objective)
        if "rho" in self.formulation.variables and math.isfinite(value):
            value = self.problem.unit_margin(value)
        if value > most_of_it * (1.0 + SAME) + SMALLEST * self._at_nothing:
            raise UsageError(
                f"the program of the formulation is worth {value:.6g} and the best selection of its problem "
                f"{objective:.6g}: it is no relaxation of that; say is_relaxation=False, or state its own problem"
            )

    def _draw_selections(self, number: int) -> Iterator[Array]:
        """Selections of S: where costs are drawn, the cheapest."""
        selection = self.problem.selection
        oracle = selection.oracle()
        count = selection.n_features
        least = self._rng.uniform(-1.0, 1.0, size=number)
        for shift in least:
            try:
                found = oracle.minimise(self._rng.normal(size=count) - shift)[0]
            except NumericalError:
                continue
            if found is not None:
                yield found.astype(float)

    def _draw_point(self, sigma: Array) -> ProgramPoint:
        """Weights that are drawn at a σ: within their boxes, and smaller where σ is."""
        problem = self.problem
        owned = problem.atoms.columns(np.flatnonzero(sigma))
        share = np.bincount(owned.ids, sigma[np.flatnonzero(sigma)][owned.atom], minlength=problem.data.n_features)
        share = np.minimum(share, 1.0)
        low, high = problem.regulariser.ends
        drawn = self._rng.normal(size=share.size) * self._unit_weights
        size = 0.5 * float(np.sum(share * np.square(drawn)))
        drawn *= min(1.0, math.sqrt(self._at_nothing / size)) if size > 0.0 else 1.0  # no term hides the other
        w = share * np.clip(drawn, low, high)
        return ProgramPoint(
            sigma, np.asarray(w, dtype=float), float(self._rng.normal()) if problem.bias else 0.0, self._draw_margin()
        )

    def _draw_margin(self) -> float:
        return float(self._rng.uniform(0.1, 1.0)) if "rho" in self.formulation.variables else 1.0

    @cached_property
    def _at_nothing(self) -> float:
        """The loss where all weights are 0."""
        nothing = np.empty(0, dtype=np.int64)
        return float(self.problem.value_at(nothing, nothing, CompensatedWeights.of(np.empty(0), 0.0))[0])

    @cached_property
    def _unit_weights(self) -> Array:
        """The weight of every feature that moves scores by 1."""
        values = self.problem.data.block().values
        squares = np.asarray(
            (values.multiply(values) if hasattr(values, "multiply") else values**2).sum(axis=0)
        ).ravel()
        spread = np.sqrt(np.maximum(squares / values.shape[0] - self.problem.data.center**2, 0.0))
        return np.asarray(np.divide(1.0, spread, out=np.ones(spread.size), where=spread > 0.0))

    def _value_interval(self, place: ProgramPoint, sigma: Array | None = None) -> tuple[float, float]:
        """What (P) is worth at a point, from below and above, S apart; with `sigma` as if that were the selection."""
        problem = self.problem
        assert self._fixed is not None
        at = place.sigma if sigma is None else sigma
        has_rho = "rho" in self.formulation.variables
        if not self._fixed.has_weights:
            wide = widen_problem(problem)
            whole = at if wide is problem else np.append(at, 1.0)
            solved = Subproblem(wide).solve(whole, TIGHT)
            ends = solved.lower, solved.value
            return (problem.reported(ends[0]), problem.reported(ends[1])) if has_rho else ends
        chosen = np.flatnonzero(at)
        ids = np.unique(problem.atoms.columns(chosen).ids)
        rho = place.rho
        weights = CompensatedWeights.of(place.w[ids] / rho, place.b / rho)
        value = problem.value_at(chosen, ids, weights, at[chosen])[0]
        value = rho**2 * value - rho if has_rho else value
        return value, value

    def _compare_values(self, place: ProgramPoint, *, exact: bool, is_answer: bool = False) -> float:
        """The program's share of (P)'s value at a point at which that is finite.

        Raises
        ------
        UsageError
            The two differ.
        """
        assert self._fixed is not None
        least, value = self._value_interval(place)
        if not math.isfinite(value):
            return 1.0
        said, low, high = self._fixed.at(place)
        if said == "infeasible":
            if is_answer:
                raise self._other_problem_error(place, "leaves out", value)
            self._cut_off.append((place, "leaves out", value, math.inf))
            return 1.0
        room = SAME * abs(value) + SMALLEST * self._at_nothing
        if low > value + room:
            if exact:
                raise self._other_problem_error(place, "is more at", value, low)
            self._cut_off.append((place, "is more at", value, low))
            return 1.0
        if high < least - room:
            if exact:
                raise self._other_problem_error(place, "is less at", value, high)
            return high / least if least > 0.0 else 1.0
        if not max(high - low, value - least) <= room:
            if is_answer:
                raise self._too_rough_error()
            self._unsure += exact
        return 1.0

    def _compare_impossible(self, chosen: list[Array]) -> None:
        """Evaluate the program where (P) has no value: beside S, and at weights of what is not selected.

        Raises
        ------
        UsageError
            It has one.
        """
        assert self._fixed is not None
        for sigma in self._selections_outside():
            self._refuse_if_worth(self._draw_point(sigma), sigma, "allows the selection at")
        if not self._fixed.has_weights or not self.problem.selects_features:
            return
        large = math.sqrt(2.0 * LARGE * self._at_nothing)  # of a size that no tolerance of Clarabel's hides
        high = np.broadcast_to(self.problem.regulariser.ends[1], self.problem.data.n_features)
        for sigma in chosen[:STRANGE]:
            out = np.flatnonzero((sigma == 0.0) & (high >= large))
            if out.size:
                more, j = sigma.copy(), int(self._rng.choice(out))
                more[j] = 1.0
                place = self._draw_point(sigma)
                place.w[j] = large
                self._refuse_if_worth(place, more, "lets weights be other than 0 at sigma = 0, at")

    def _refuse_if_worth(self, place: ProgramPoint, as_if: Array, what: str) -> None:
        assert self._fixed is not None
        said, low, high = self._fixed.at(place)
        is_sure = high - low <= ROUGH * abs(high)  # of Clarabel's infinity it is not
        if said == "unbounded" or (is_sure and high < FAR * abs(self._value_interval(place, as_if)[1])):
            raise self._other_problem_error(place, what, math.inf, high)

    def _selections_outside(self) -> Iterator[Array]:
        """Selections that the rows of the program allow, and the problem does not."""
        rows = selection_of(self.formulation)
        theirs, ours = rows.oracle(), self.problem.selection.oracle()
        for _ in range(STRANGE):
            try:
                found = theirs.minimise(self._rng.normal(size=rows.n_features) - 1.0)[0]
                if found is not None and not ours.contains(found):
                    yield found.astype(float)
            except NumericalError:
                continue

    def _too_rough_error(self) -> UsageError:
        """The error that says that Clarabel's numbers are too rough to say anything."""
        return UsageError(
            "the program of the formulation cannot be evaluated to 1e-6 by Clarabel, so nothing is said of it; name "
            "its weights w and its intercept b, scale its data, or give mipfs.solve the Problem itself"
        )

    def _other_problem_error(self, place: ProgramPoint, what: str, value: float, worth: float = math.inf) -> UsageError:
        """The error that says where the program is another problem, and in which part of it that shows."""
        names = self.problem.atoms.names
        parts = [(names[int(g)], float(place.sigma[g])) for g in np.flatnonzero(place.sigma)]
        at = ", ".join(name if part == 1.0 else f"{part:.3g} {name}" for name, part in parts[:5]) or "nothing"
        at += ", …" if len(parts) > 5 else ""
        assert self._fixed is not None
        violated = "" if math.isfinite(worth) else self._fixed.violated(place)
        more = "" if self._fixed.has_weights else "; with w and b named it is evaluated more exactly"
        said = (
            f"it is worth {worth:.6g} there and the problem {_show_value(value)}" if math.isfinite(worth) else violated
        )
        return UsageError(
            f"the program of the formulation is not the problem that it states: it {what} the selection of {at}"
            f"{f' ({said})' if said else ''}; state charges by lam=, bounds by weight_bounds=, rows over sigma alone"
            f"{more}"
        )


def _show_value(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "has no value"


class _FixedProgram:
    """A program with its σ, and where both are named w and b, fixed at points."""

    def __init__(self, formulation: Formulation, problem: Problem) -> None:
        named = formulation.variables
        w, b = named.get("w"), named.get("b")
        p = problem.data.n_features
        self._tied = apart_from_selection(formulation)
        self._formulation = formulation
        sigma = formulation.sigma
        is_named = getattr(w, "size", None) == p and isinstance(w, cvxpy.Expression)
        self.has_weights = is_named and (isinstance(b, cvxpy.Expression) or not problem.bias)
        parts = [("sigma", sigma, problem.atoms.count)]
        if self.has_weights:
            parts.append(("w", w, p))
            for name in ("b", "rho"):
                if isinstance(named.get(name), cvxpy.Expression) and named[name].variables():
                    parts.append((name, named[name], 1))
        self._fixed = {name: cvxpy.Variable(size) for name, _, size in parts}
        ties = [self._fixed[name] == _flat_entries(part) for name, part, size in parts]
        program = _relax_sigma(cvxpy.Problem(formulation.cvxpy.objective, [*self._tied, *ties]), sigma)
        if not program.is_dcp():
            raise UsageError(
                "the program of the formulation is not convex by the rules of CVXPY (`is_dcp`), so nothing can be said "
                "of it; give mipfs.solve the Problem itself"
            )
        whole = [v.name() for v in program.variables() if v.attributes["boolean"] or v.attributes["integer"]]
        if whole:
            raise UsageError(
                f"the program of the formulation has whole variables that its weights or its objective depend on "
                f"({', '.join(whole)}), and cannot be evaluated; tie whole variables to sigma alone, by linear rows"
            )
        self._program = Canonical(program)
        self._sign = 1.0 if isinstance(formulation.cvxpy.objective, cvxpy.Minimize) else -1.0

    def at(self, place: ProgramPoint) -> tuple[str, float, float]:
        """The status of the program with what is fixed at a point, and what its value lies between."""
        values = self._variable_values(place)
        said, *ends = self._program.solve_fixed({variable: values[name] for name, variable in self._fixed.items()})
        low, high = sorted(self._sign * end for end in ends)
        return said, low, high

    def violated(self, place: ProgramPoint) -> str:
        """The constraint over what is fixed alone that a point violates most, in words; empty where there is none."""
        held = {"sigma": self._formulation.sigma, **{k: self._formulation.variables.get(k) for k in ("w", "b", "rho")}}
        values = self._variable_values(place)
        leaves = {v.id: (v, values[name]) for name, v in held.items() if name in values and hasattr(v, "save_value")}
        before = [(v, v._value) for v, _ in leaves.values()]
        found = ""
        try:
            for v, value in leaves.values():
                v._value = np.reshape(value, v.shape, order="F")
            for one in self._tied:
                if one.variables() and all(v.id in leaves for v in one.variables()):
                    off = float(np.max(one.violation(), initial=0.0))
                    if off > SAME:
                        found = f"by {text_of(one)!r}"
                        break
        finally:
            for v, value in before:
                v._value = value
        return found

    def _variable_values(self, place: ProgramPoint) -> dict[str, Array]:
        return {"sigma": place.sigma, "w": place.w, "b": np.array([place.b]), "rho": np.array([place.rho])}


def _flat_entries(expression: Any) -> Any:
    """The entries of an expression, column by column."""
    return expression.flatten(order="F") if expression.ndim != 1 else expression


def _relax_sigma(program: Any, sigma: Any) -> Any:
    """The program with a σ that need not be whole."""
    given = {name: value for name, value in sigma.attributes.items() if name not in ("boolean", "integer") and value}
    if not sigma.attributes["boolean"] and not sigma.attributes["integer"]:
        return program
    other = cvxpy.Variable(sigma.shape, **given)
    known = {id(v): other for v in program.variables() if v.id == sigma.id}
    goal = program.objective.tree_copy(known)
    return cvxpy.Problem(goal, [one.tree_copy(known) for one in program.constraints])
