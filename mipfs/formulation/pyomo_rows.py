"""What stands under ``model.select`` of a Pyomo model, compiled to sparse rows over the selection.

Rows over the selection may stand elsewhere in the model, too. Everything that a user can write there and that is linear
is honoured; everything else is a `RowError` that names the component.

Also here: bounds and fixings that a user put on the weights ``svm.w`` of a Pyomo model.

Also here: what a user changed in the objective of a Pyomo model: fixed charges of features, as costs of its problem.

An objective that is the one that was built plus Σ_j c_j σ_j is that of the problem with these costs, c of (P), which
every driver and the certificate have. It is compared coefficient by coefficient; what else differs is refused by name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.base.var import VarData
from pyomo.core.expr.relational_expr import RelationalExpression
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn
from scipy import sparse

from mipfs.data.bounds import FREE, WeightBounds, excluding_0
from mipfs.errors import RowError
from mipfs.formulation.charges import REMEDY, with_charges
from mipfs.formulation.pyomo_attach import PASSIVE, TRANSFORM, AttachedProblem, is_under, refuse_changes, rows_outside
from mipfs.formulation.pyomo_weight_rows import is_over_weights, read_added_weight_rows
from mipfs.formulation.weight_ends import named_in, on_users_scale, part_rows, together, with_bounds, with_rows
from mipfs.problem import Problem
from mipfs.selection.selection import Extras, Rows

Terms = dict[tuple[int, ...], float]
"""Ids of the variables of a monomial (none for the constant), and its coefficient."""


def with_costs(model: Any, attached: AttachedProblem, problem: Problem) -> Problem:
    """The problem with the fixed charges that the objective of the model has now.

    Raises
    ------
    RowError
        The objective is not the one that was built plus charges >= 0 on sigma; the message names what differs.
    """
    goals = list(model.component_data_objects(pyo.Objective, active=True, descend_into=True))
    if attached.goal is None and not goals:
        return problem
    if len(goals) != 1 or attached.goal is None:
        names = " and ".join(goal.name for goal in goals) or "none"
        raise RowError(f"the model must have one active objective, and has {names}; {REMEDY}")
    (goal,) = goals
    if goal.sense != pyo.minimize:
        raise RowError(f"{goal.name} is maximised; the objective is minimised")
    if goal.expr is attached.goal:
        return problem
    sigma = list(attached.sigma.values())
    column = {id(s): j for j, s in enumerate(sigma)}
    named: dict[int, Any] = {}
    before, now = (_monomials_of(goal.name, expression, named) for expression in (attached.goal, goal.expr))
    for key in before.keys() | now.keys():
        if len(key) == 1 and key[0] in column:
            continue
        if before.get(key, 0.0) != now.get(key, 0.0):
            raise RowError(_refusal_message(goal.name, key, named, attached, before.get(key, 0.0), now.get(key, 0.0)))
    changed = {}
    for name, s in zip(problem.atoms.names, sigma, strict=True):
        cost = now.get((id(s),), 0.0)
        if cost != before.get((id(s),), 0.0):
            changed[name] = cost
    return with_charges(problem, changed, goal.name)


def _monomials_of(name: str, expression: Any, named: dict[int, Any]) -> Terms:
    """A polynomial of degree two at most as its monomials; fixed variables count as variables."""
    try:
        fixed = []
        for v in identify_variables(expression, include_fixed=True):
            named[id(v)] = v
            if v.fixed:
                fixed.append(v)
        for v in fixed:
            v.fixed = False
        try:
            repn = generate_standard_repn(expression, compute_values=True, quadratic=True)
        finally:
            for v in fixed:
                v.fixed = True
    except (ValueError, TypeError, ZeroDivisionError, OverflowError, AttributeError) as error:
        raise RowError(f"{name} cannot be evaluated: {' '.join(str(error).split())}") from error
    if repn.nonlinear_expr is not None:
        raise RowError(f"{name} is not that which was built plus charges that are linear in sigma; {REMEDY}")
    found: Terms = {(): float(repn.constant)}
    monomials: list[tuple[tuple[int, ...], Any]] = [
        ((id(v),), a) for v, a in zip(repn.linear_vars, repn.linear_coefs, strict=True)
    ]
    pairs = zip(repn.quadratic_vars, repn.quadratic_coefs, strict=True)
    monomials += [(tuple(sorted((id(u), id(v)))), a) for (u, v), a in pairs]
    for key, a in monomials:
        found[key] = found.get(key, 0.0) + float(a)
    if not all(map(math.isfinite, found.values())):
        raise RowError(f"{name} has a coefficient that is not finite; {REMEDY}")
    return {key: a for key, a in found.items() if a}


def _refusal_message(
    goal: str, key: tuple[int, ...], named: dict[int, Any], attached: AttachedProblem, before: float, now: float
) -> str:
    """What is said of a monomial that differs."""
    if not key:
        return f"{goal} has the constant {now:g}, which moves no optimum; leave it out"
    variables = [named[one] for one in key]
    text = " * ".join(v.name for v in variables)
    own = [v for v in variables if v.name.startswith("select.") and v.parent_component() is not attached.sigma]
    if own and len(key) == 1:
        return (
            f"{goal} charges {text}: state what extra variables cost as "
            f"model.select.extra_cost.set_value({now:g}*model.{text}), which stands in the objective already"
        )
    changed = f"now {now:g}, {before:g} as built"
    return f"the coefficient of {text} in {goal} was changed ({changed}); {REMEDY}"


def bounds_of(attached: AttachedProblem) -> WeightBounds:
    """The bounds on the weights of a model, on the user's scale; those of the problem that it was built of are not.

    Raises
    ------
    RowError
        Ends that cross, a weight that is fixed at what is no number, is no real number, or of no feature or group.
    """
    found: WeightBounds = {}
    problem = attached.problem
    for key, w in {} if attached.weights is None else attached.weights.items():
        if w.fixed:
            value = w.value
            said = f"{w.name} is fixed at {value}, which"
            if value is None or not math.isfinite(value):
                raise RowError(f"{w.name} is fixed at {value}; a weight is fixed at a number, or has bounds")
            ends: tuple[Any, Any] = (value, value)
        else:
            if not w.is_continuous():
                raise RowError(f"{w.name} has the domain {w.domain}; a weight is a real number")
            ends = w.bounds
            said = f"the interval {tuple(ends)} of {w.name}"
        if _is_free(ends):
            continue
        name = named_in(problem, key, f"{w.name} has bounds")
        low, high = (None if end is None or end == none else end for end, none in zip(ends, FREE, strict=True))
        if not all(end is None or math.isfinite(end) for end in (low, high)):
            raise RowError(f"{said} has an end that is no number")
        low, high = (None if end is None else Fraction(float(end)) for end in (low, high))
        found[name] = on_users_scale(problem, name, low, high, said)
    return found


def _is_free(ends: Any) -> bool:
    """Whether there is no end."""
    return all(end is None or end == none for end, none in zip(ends, FREE, strict=True))


INTEGRALITY = 1e-6
"""How far from 0 or 1 a fixed binary may be: general solvers return such values."""

_HONOURED = PASSIVE | {pyo.Var, pyo.Constraint, pyo.Block, pyo.Objective}


def compile(model: Any) -> Problem:
    """The attached problem with what stands under ``model.select`` now.

    Parameters
    ----------
    model : Pyomo model with an attached problem

    Returns
    -------
    Problem
        Its rows are all active rows under ``select``; its forced features the fixed and bounded
        ``sigma``; its M that of ``select.cardinality``, None when that was deactivated. Bounds on the weights
        ``svm.w``, and those that are fixed, are its `weight_bounds`, and force features in where they exclude 0; rows
        over these weights alone, wherever they stand, are among its `weight_rows`.

    Raises
    ------
    RowError
        A row that is not linear or uses variables outside ``select``, a component that is no row,
        variable or data, a ``sigma`` fixed between 0 and 1 or beyond its bounds, bounds on a weight that cross, or any
        other change outside ``select``.
    """
    compiler = read(model)
    problem = compiler.attached.problem
    M = compiler.M
    names = problem.atoms.names
    bounds = bounds_of(compiler.attached)
    alone, over = part_rows(
        problem, read_added_weight_rows(model, compiler.attached.weights, compiler.attached.outside)
    )
    ends = together(bounds, alone)
    inside = [names[j] for j in compiler.forced[1]]
    bounded = with_bounds(with_costs(model, compiler.attached, problem), ends, "svm.w")
    return with_rows(bounded, over).replace(
        rows=compiler.rows(),
        M=M,
        cardinality=M is not None,
        forced_in=tuple(dict.fromkeys([*inside, *excluding_0(ends)])),
        forced_out=tuple(names[j] for j in compiler.forced[0]),
    )


def read(model: Any) -> _Compiler:
    """What stands under ``model.select``: rows, forced features, M and extra variables."""
    attached: AttachedProblem = model._mipfs
    refuse_changes(model, attached)
    refuse_expressions(model)
    compiler = _Compiler(model.select, attached)
    compiler.M = compiler.read_rows(rows_outside(model, attached))
    compiler.read_costs()
    compiler.read_sigma()
    return compiler


def refuse_expressions(model: Any) -> None:
    """Refuse relations that were assigned as they are: Pyomo keeps them as attributes, and no solver sees them.

    Raises
    ------
    RowError
    """
    for block in model.block_data_objects(active=True, descend_into=True):
        for name, value in vars(block).items():
            parts = (
                value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
            )
            if not name.startswith("_") and any(isinstance(part, RelationalExpression) for part in parts):
                place = name if block is model else f"{block.name}.{name}"
                raise RowError(
                    f"{place} is an expression, which adds nothing to a model; write pyo.Constraint(expr=...)"
                )


class _Compiler:
    """Collects rows as (name, origin, {column: coefficient}, lb, ub); columns are sigma, then extra variables."""

    def __init__(self, select: Any, attached: AttachedProblem) -> None:
        self.select = select
        self.attached = attached
        self.M: int | None = None
        self.names = frozenset(attached.problem.atoms.names)
        self.sigma = list(attached.sigma.values())
        self.column = {id(v): j for j, v in enumerate(self.sigma)}
        self.extras: list[Any] = []
        self.found: list[tuple[str, str, dict[int, float], float, float]] = []
        self.forced: tuple[list[int], list[int]] = ([], [])
        self.costs: dict[int, float] = {}

    def read_rows(self, outside: Iterable[Any] = ()) -> int | None:
        """Read every active constraint, and those elsewhere in the model; returns the M of ``select.cardinality``."""
        M = None
        for component in self.select.component_objects(active=True, descend_into=True):
            if component.ctype not in _HONOURED:
                kind = component.ctype.__name__
                hint = TRANSFORM if kind in ("Disjunct", "Disjunction") else "select is for linear rows and variables"
                raise RowError(f"{component.name} ({kind}) cannot be honoured; {hint}")
        under = self.select.component_data_objects(pyo.Constraint, active=True, descend_into=True)
        for con in itertools.chain(under, outside):
            if is_over_weights(con, self.attached.weights):
                continue
            terms, lb, ub = self._linear_row(con)
            cardinality = self._as_cardinality(con, terms, lb, ub)
            if cardinality is not None:
                M = cardinality
            elif terms or lb > 0 or ub < 0:
                self.found.append((*self._row_name_and_origin(con), terms, lb, ub))
        return M

    def read_costs(self) -> None:
        """Read what ``select.extra_cost`` says that the extra variables cost, by column.

        A variable that is fixed keeps its cost: as one whose two ends are its value.
        """
        expression = self.attached.extra_cost
        if expression is None:
            return
        held = [v for v in identify_variables(expression.expr, include_fixed=True) if v.fixed]
        try:
            for v in held:
                v.fixed = False
            repn = generate_standard_repn(expression.expr, compute_values=True, quadratic=False)
        except (ValueError, TypeError, ZeroDivisionError, OverflowError) as error:
            raise RowError(f"{expression.name} cannot be evaluated: {' '.join(str(error).split())}") from error
        finally:
            for v in held:
                v.fixed = True
        if repn.nonlinear_expr is not None:
            raise RowError(f"{expression.name} is not linear: {expression.expr}")
        if float(repn.constant) != 0.0:
            raise RowError(
                f"{expression.name} has the constant {repn.constant:g}, which moves no optimum; leave it out"
            )
        for v, cost in zip(repn.linear_vars, repn.linear_coefs, strict=True):
            if id(v) in self.column and self.column[id(v)] < len(self.sigma):
                remedy = "charge features in the objective, as c*sigma[name], or by lam= of Problem"
                raise RowError(f"{expression.name} uses {v.name}, which is no extra variable; {remedy}")
            if not is_under(v, self.select):
                raise RowError(
                    f"{expression.name} uses {v.name}, which is not under select; costs are of variables there"
                )
            if not math.isfinite(cost):
                raise RowError(f"{expression.name} has a coefficient that is not finite: {expression.expr}")
            if cost:
                k = self._find_or_add_column(v)
                self.costs[k] = self.costs.get(k, 0.0) + float(cost)
        for v in identify_variables(expression.expr, include_fixed=False):
            if is_under(v, self.select):
                self._find_or_add_column(v)  # one whose cost is 0 today has a value in the solved model, too

    def read_sigma(self) -> None:
        """Fixed and bounded binaries become forced features."""
        for j, s in enumerate(self.sigma):
            if s.domain is not pyo.Binary:
                raise RowError(f"{s.name} is no longer binary ({s.domain}); every feature is selected or not")
            lb, ub = s.bounds
            if s.fixed:
                value = s.value
                if value is None or not abs(value - round(value)) <= INTEGRALITY or round(value) not in (0, 1):
                    raise RowError(f"{s.name} is fixed at {value}; a selection variable is 0 or 1")
                if not lb - INTEGRALITY <= round(value) <= ub + INTEGRALITY:
                    raise RowError(
                        f"{s.name} is fixed at {value:g}, beyond its bounds [{lb:g}, {ub:g}]: that is inconsistent; "
                        "fix it within them, or change the bounds"
                    )
                self.forced[round(value)].append(j)
                continue
            low, high = math.ceil(max(lb, 0.0) - INTEGRALITY), math.floor(min(ub, 1.0) + INTEGRALITY)
            if low > high:
                self._bounds_row(s, j, lb, ub)
            elif low == high:
                self.forced[low].append(j)

    def rows(self) -> Rows:
        """All that was read, as sparse rows."""
        bounds = [self._extra_bounds(len(self.sigma) + k, u) for k, u in enumerate(self.extras)]
        extra = Extras(
            tuple(self._local_name(u) for u in self.extras),
            np.array([lb for lb, _ in bounds], float),
            np.array([ub for _, ub in bounds], float),
            np.array([u.is_integer() for u in self.extras], bool),
            np.array([self.costs.get(len(self.sigma) + k, 0.0) for k in range(len(self.extras))], float),
        )
        columns = [k for _, _, terms, _, _ in self.found for k in terms]
        data = [a for _, _, terms, _, _ in self.found for a in terms.values()]
        pointer = np.cumsum([0, *(len(terms) for _, _, terms, _, _ in self.found)])
        shape = (len(self.found), len(self.sigma) + len(self.extras))
        return Rows(
            sparse.csr_array((np.array(data, float), np.array(columns, np.int64), pointer), shape=shape),
            np.array([lb for *_, lb, _ in self.found], float),
            np.array([ub for *_, ub in self.found], float),
            tuple(row[0] for row in self.found),
            tuple(row[1] for row in self.found),
            extra,
        )

    def _linear_row(self, con: Any) -> tuple[dict[int, float], float, float]:
        """A constraint as lb <= terms <= ub, constants and fixed extra variables taken to the bounds."""
        try:
            lower, body, upper = con.to_bounded_expression(evaluate_bounds=True)
            for v in identify_variables(body, include_fixed=True):
                if not is_under(v, self.select):
                    raise RowError(f"{con.name} uses {v.name}, which is not under select; rows are over the selection")
            repn = self._standard_form(body)
        except (ValueError, TypeError, ZeroDivisionError, OverflowError) as error:
            raise RowError(f"{con.name} cannot be evaluated: {' '.join(str(error).split())}") from error
        if repn.nonlinear_expr is not None:
            raise RowError(f"{con.name} is not linear: {con.expr}")
        terms: dict[int, float] = {}
        for v, a in zip(repn.linear_vars, repn.linear_coefs, strict=True):
            if a:
                k = self._find_or_add_column(v)
                terms[k] = terms.get(k, 0.0) + float(a)
        constant = float(repn.constant)
        lb = -math.inf if lower is None else float(lower) - constant
        ub = math.inf if upper is None else float(upper) - constant
        if not all(map(math.isfinite, terms.values())) or math.isnan(lb) or math.isnan(ub):
            raise RowError(f"{con.name} has a coefficient or a bound that is not finite: {con.expr}")
        return terms, lb, ub

    def _standard_form(self, body: Any) -> Any:
        """Fixed features keep their coefficients (a conflict must name them), unless only fixing makes it linear."""
        fixed = [v for v in identify_variables(body, include_fixed=True) if v.fixed and id(v) in self.column]
        if fixed:
            for v in fixed:
                v.fixed = False
            try:
                repn = generate_standard_repn(body, compute_values=True, quadratic=False)
            finally:
                for v in fixed:
                    v.fixed = True
            if repn.nonlinear_expr is None:
                return repn
        return generate_standard_repn(body, compute_values=True, quadratic=False)

    def _find_or_add_column(self, v: Any) -> int:
        if id(v) not in self.column:
            if not (v.is_integer() or v.is_continuous()):
                raise RowError(f"{v.name} has the domain {v.domain}; an extra variable is binary, integer or real")
            self.column[id(v)] = len(self.sigma) + len(self.extras)
            self.extras.append(v)
        return self.column[id(v)]

    def _as_cardinality(self, con: Any, terms: dict[int, float], lb: float, ub: float) -> int | None:
        """M if this is ``select.cardinality`` and still says that at most M features are selected."""
        if con.parent_component() is not self.select.component("cardinality") or con.parent_block() is not self.select:
            return None
        plain = len(terms) == len(self.sigma) and all(k < len(self.sigma) and a == 1.0 for k, a in terms.items())
        if not plain or lb > 0 or not 0 <= ub < math.inf:
            return None
        return min(math.floor(ub + INTEGRALITY), len(self.sigma))

    def _bounds_row(self, v: Any, column: int, lb: float, ub: float) -> None:
        # Two rows, because solvers refuse one whose lower bound is above its upper one.
        name = f"bounds of {self._local_name(v)}"
        self.found.append((name, "model.select", {column: 1.0}, lb, math.inf))
        self.found.append((name, "model.select", {column: 1.0}, -math.inf, ub))

    def _extra_bounds(self, column: int, v: Any) -> tuple[float, float]:
        if v.fixed:  # of which only its cost is read: in rows it is a number
            return float(v.value), float(v.value)
        lb, ub = (float(x) if x is not None else s for x, s in zip(v.bounds, (-math.inf, math.inf), strict=True))
        if lb > ub:
            self._bounds_row(v, column, lb, ub)
            return -math.inf, math.inf
        return lb, ub

    def _row_name_and_origin(self, con: Any) -> tuple[str, str]:
        """The row's name and origin: the data's own where it came from there and was not changed."""
        if con.parent_component() is self.select.component("rows") and con.index() in self.attached.origins:
            expr, name, origin = self.attached.origins[con.index()]
            if expr is con.expr:
                return name, origin
        if not is_under(con, self.select):
            return con.name, "model"
        return self._local_name(con), "model.select"

    def _local_name(self, component: Any) -> str:
        """The name without ``select.``; an extra variable of our own, or of a feature's name, is told apart."""
        if component.parent_component() is self.select.component("extra"):
            return str(component.index())
        name = str(component.getname(fully_qualified=True, relative_to=self.select))
        return component.name if isinstance(component, VarData) and name in self.names else name
