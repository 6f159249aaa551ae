"""The constraints that were added to a CVXPY formulation, compiled to sparse rows over the selection.

What is affine in σ and in variables of the user's own is a row, wherever it was added; everything else is a
`RowError` that names the constraint.

Also here: what a user changed in the objective of a CVXPY formulation: charges of features, and costs of the user's
variables.

An objective that is the declared one and further terms, each linear in σ alone, is that of the problem with these
costs, where σ is a variable of the program. In a dual program σ is a multiplier: a term in it would be another problem.
A term that is linear in variables of the user's own, which rows tie to σ, is what these cost:
`Formulation.with_constraints` puts it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import cvxpy
import numpy as np
import numpy.typing as npt
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.constraints.nonpos import Inequality, NonNeg, NonPos
from cvxpy.constraints.zero import Equality, Zero
from scipy import sparse

from mipfs.data.bounds import WeightBounds
from mipfs.data.names import make_unique
from mipfs.errors import RowError
from mipfs.formulation.charges import REMEDY, with_charges
from mipfs.formulation.conic import BuiltFormulation, added_constraints, built_of, text_of
from mipfs.formulation.parameters import with_present_parameters
from mipfs.formulation.program import Formulation
from mipfs.formulation.weight_ends import ModelRow, named_in, on_users_scale, together, with_bounds
from mipfs.formulation.weight_ends import with_rows as with_weight_rows
from mipfs.plumbing.arrays import Array, row_of
from mipfs.plumbing.locks import ProcessLock
from mipfs.problem import Problem
from mipfs.selection.selection import Extras, Rows, Selection


def with_costs(
    formulation: Formulation, built: BuiltFormulation, problem: Problem, extras: Sequence[tuple[Any, int]]
) -> tuple[Problem, Array]:
    """The problem with the fixed charges that the objective of the program has now; costs (e,) of the user's variables.

    Raises
    ------
    RowError
        The objective is not the declared one plus charges >= 0 on sigma, and costs of variables that rows are about.
    """
    own_costs = np.zeros(len(extras))
    goal: Any = formulation.cvxpy.objective
    kind, declared = built.objective
    expression = goal.args[0]
    if expression is declared and type(goal) is kind:
        return problem, own_costs
    said = f"the objective of {built.name}"
    sigma = built.formulation.sigma
    if type(goal) is not kind:
        raise RowError(f"{said} was changed from {kind.__name__} to {type(goal).__name__}; {REMEDY}")
    own = {v.id for v in built.formulation.cvxpy.variables()}
    if kind is not cvxpy.Minimize or not isinstance(sigma, cvxpy.Variable) or sigma.id not in own:
        raise RowError(
            f"{said} was changed, and sigma is no variable of that program: declare fixed charges as [penalty] of the "
            ".toml, or by lam= of Problem"
        )
    costs = np.zeros(problem.atoms.count)
    for term in _added_terms(expression, declared, said):
        if term.variables() and not any(v.id in own for v in term.variables()):
            own_costs += extra_costs(term, extras, said)
        else:
            costs += _sigma_coefficients(term, sigma, said)
    totals = problem.penalty + costs
    charges = {problem.atoms.names[int(g)]: float(totals[g]) for g in np.flatnonzero(costs)}
    return with_charges(problem, charges, said), own_costs


def extra_costs(term: Any, extras: Sequence[tuple[Any, int]], said: str) -> Array:
    """The coefficients (e,) of a term that is linear in variables of the user's own, which rows are about.

    Raises
    ------
    RowError
        It is not, or it has a constant.
    """

    text = " ".join(str(term).split())
    if not term.is_affine() or term.size != 1:
        raise RowError(f"{said} has the term {text}, which is not linear in variables of your own")
    if any(parameter.value is None for parameter in term.parameters()):
        raise RowError(f"{said} has the term {text} with a parameter without a value; give it one")
    places = {v.id: at for at, (v, k) in reversed([*enumerate(extras)]) if k == 0}
    strange = [v.name() for v in term.variables() if v.id not in places]
    if strange:
        tied = f"no constraint ties {', '.join(strange)} to sigma, as one of an extra variable does"
        raise RowError(f"{said} has the term {text}, which is not linear in sigma alone; {tied}")
    row, constant = read_linear(term, places, len(extras), said)
    if constant:
        raise RowError(f"{said} has the constant {constant:g}, which moves no optimum; leave it out")
    return row


def _added_terms(now: Any, before: Any, said: str) -> list[Any]:
    """The terms that a sum has beyond those of another.

    Raises
    ------
    RowError
        One of the others is missing.
    """
    left = list(_summands(now))
    for term in _summands(before):
        place = next((k for k, one in enumerate(left) if one is term), None)
        if place is None:
            raise RowError(f"{said} was changed; {REMEDY}")
        del left[place]
    return left


def _summands(expression: Any) -> Iterator[Any]:
    if isinstance(expression, AddExpression):
        for one in expression.args:
            yield from _summands(one)
    else:
        yield expression


def _sigma_coefficients(term: Any, sigma: Any, said: str) -> Any:
    """The coefficients (count,) of a term.

    Raises
    ------
    RowError
        It is not affine in σ alone, or has a constant.
    """

    text = " ".join(str(term).split())
    if any(v.id != sigma.id for v in term.variables()) or not term.is_affine() or term.size != 1:
        raise RowError(f"{said} has the term {text}, which is not linear in sigma alone; {REMEDY}")
    if any(parameter.value is None for parameter in term.parameters()):
        raise RowError(f"{said} has the term {text} with a parameter without a value; give it one")
    row, constant = read_affine(term, sigma, said)
    if constant:
        raise RowError(f"{said} has the constant {constant:g}, which moves no optimum; leave it out")
    return row


ORIGIN = "cvxpy"
UPPER = "upper"
LOWER = "lower"
EQUAL = "equal"
KINDS: dict[type, str] = {
    Inequality: UPPER,
    NonPos: UPPER,
    NonNeg: LOWER,
    Equality: EQUAL,
    Zero: EQUAL,
}
"""Constraints that are linear where their expression is affine: on which side of zero it is."""
_CARRIED = frozenset({"nonneg", "nonpos", "pos", "neg", "boolean", "integer", "bounds"})
"""Attributes of a variable that are bounds or integrality."""
_EVALUATING = ProcessLock()
"""CVXPY evaluates an expression at the values of its variables: one thread at a time puts zeros there."""


@dataclass(frozen=True, eq=False)
class RowsReading:
    """The constraints of a formulation as rows.

    Attributes
    ----------
    rows : Rows, those that were added
    extras : tuple of (cvxpy.Variable, int), the entry (in column-major order) of every extra variable
    bounds : mapping of feature name to the ends of its weight, on the user's scale
    over : rows over the weights alone, on the scale of the data
    """

    rows: Rows
    extras: tuple[tuple[Any, int], ...]
    bounds: WeightBounds = field(default_factory=dict)
    over: Sequence[ModelRow] = ()


def compile(formulation: Formulation) -> Problem:
    """The problem of a formulation with the rows, and the bounds on weights, that were added to its program.

    Raises
    ------
    RowError
        A change that is no row over σ and variables of the user's own, and no bound on weights; the message names it.
    """
    read = read_added(formulation)
    declared = (
        with_present_parameters(formulation.problem, formulation.parameters)
        if formulation.parameters
        else formulation.problem
    )
    problem = with_weight_rows(with_bounds(declared, read.bounds, "w"), read.over)
    built = None if formulation.cvxpy is None else built_of(formulation)
    rows = read.rows
    if built is not None:
        problem, costs = with_costs(formulation, built, problem, read.extras)
        rows = replace(rows, extra=replace(rows.extra, cost=costs)) if costs.any() else rows
    assert problem.rows is not None
    return problem if not len(rows) else problem.replace(rows=problem.rows.stack(rows))


def read_affine(expression: Any, sigma: Any, said: str) -> tuple[Array, float]:
    """The coefficients (count,) of σ in a scalar that is affine in σ alone, and its constant.

    Raises
    ------
    RowError
        One of them is not finite.
    """
    return read_linear(expression, {sigma.id: 0}, sigma.size, said)


def read_linear(expression: Any, places: Mapping[int, int], size: int, said: str) -> tuple[Array, float]:
    """The coefficients (size,) of a scalar that is affine in some variables, of which `places` are the first columns.

    Raises
    ------
    RowError
        One of them is not finite.
    """
    with _EVALUATING, np.errstate(over="ignore", invalid="ignore"):
        matrix, constant = _affine_entries(expression, places, size)
    row = matrix.toarray().ravel()
    if not (np.all(np.isfinite(row)) and np.all(np.isfinite(constant))):
        raise RowError(f"{said} has a coefficient that is not finite")
    return row, float(constant[0])


def read_added(formulation: Formulation) -> RowsReading:
    """What was added to a formulation of the package, or what a program of a user's own says about σ."""
    problem = formulation.problem
    built = None if formulation.cvxpy is None else built_of(formulation)
    reader = _Reader(problem, formulation.sigma)
    if formulation.cvxpy is None:
        return reader.read([])
    if built is None:
        size = getattr(formulation.sigma, "size", problem.atoms.count)
        if size != problem.atoms.count:
            raise RowError(f"sigma has {size} entries, but there are {problem.atoms.count} to select from")
        return _without_known(reader.read(_about_selection(formulation)), problem)
    constraints, ends = _split_off_weight_constraints(formulation, added_constraints(formulation, built))
    for one in constraints:
        own = {v.id: v for v in one.variables() if v.id in built.variables and v is not formulation.sigma}
        if own:
            names = ", ".join(sorted(v.name() for v in own.values()))
            remedy = "only sigma and variables of your own may be in it, or w alone"
            if names == "b":
                remedy = "the intercept has no bounds; bias=False leaves it out"
            if formulation.sigma is None:
                remedy = f"{built.name} has no sigma: add rows over the selection with Problem.with_rows"
            raise RowError(f"the constraint {text_of(one)!r} is about {names}; {remedy}")
    bounds, over = _of_weights(problem, formulation.variables.get("w"), ends)
    return replace(reader.read(constraints), bounds=bounds, over=over)


def _split_off_weight_constraints(formulation: Formulation, constraints: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Constraints that are about other variables, and those about the weights alone."""
    w = _own_weights(formulation.variables.get("w"))
    is_bound = [w is not None and {v.id for v in one.variables()} == {w.id} for one in constraints]
    return [one for one, about_w in zip(constraints, is_bound, strict=True) if not about_w], [
        one for one, about_w in zip(constraints, is_bound, strict=True) if about_w
    ]


def _own_weights(w: Any) -> Any:
    """The variable that the weights of a program are made of; None where there is none."""
    own = w.variables() if isinstance(w, cvxpy.Expression) else []
    return own[0] if len(own) == 1 else None


def _of_weights(problem: Problem, w: Any, constraints: Sequence[Any]) -> tuple[WeightBounds, list[ModelRow]]:
    """What constraints over the weights alone say: of one weight its ends on the user's scale, and rows of several."""
    found: WeightBounds = {}
    over = list[ModelRow]()
    if not constraints:
        return found, over
    columns = problem.atoms.columns(np.arange(problem.atoms.count))
    reader = _Reader(problem, _own_weights(w))
    reader.size = columns.ids.size
    for one in constraints:
        reader.check(one)
        with _EVALUATING:
            matrix, constant = reader.linear(one)
        said = f"the constraint {text_of(one)!r}"
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        for r, rest in enumerate(constant.tolist()):
            ids, factors = (part.tolist() for part in row_of(matrix, r))
            kind = KINDS[type(one)]
            if len(ids) > 1 and problem.atoms.kind == "features":
                low, high = (-np.inf if kind == UPPER else -rest), (np.inf if kind == LOWER else -rest)
                terms = {problem.data.feature_names[j]: a for j, a in zip(ids, factors, strict=True)}
                over.append((terms, float(low), float(high), said))
                continue
            if len(ids) != 1:
                raise RowError(f"{said} is about {len(ids)} weights in one row; such rows are about single features")
            end = -Fraction(rest) / Fraction(factors[0])
            below = kind == EQUAL or (kind == UPPER) == (factors[0] < 0)
            above = kind == EQUAL or (kind == UPPER) == (factors[0] > 0)
            name = problem.data.feature_names[columns.ids[ids[0]]]
            if not problem.selects_features:
                name = named_in(problem, (problem.atoms.names[columns.atom[ids[0]]], name), said)
            ends = on_users_scale(problem, name, end if below else None, end if above else None, said)
            found = together(found, {name: ends})
    return found, over


def _about_selection(formulation: Formulation) -> list[Any]:
    """Of a user's own program the constraints over σ and variables that nothing else in it is about."""
    return _part_constraints(formulation)[0]


def apart_from_selection(formulation: Formulation) -> list[Any]:
    """Of a user's own program the constraints that are no rows over the selection."""
    return _part_constraints(formulation)[1]


def selection_of(formulation: Formulation) -> Selection:
    """The set that the rows of a user's own program alone describe, whatever its problem says."""
    problem = formulation.problem
    read = _Reader(problem, formulation.sigma).read(_about_selection(formulation))
    return Selection(problem.atoms.count, None, (), (), read.rows, problem.atoms.names)


def _part_constraints(formulation: Formulation) -> tuple[list[Any], list[Any]]:
    """The constraints over σ and variables that nothing else in a program is about, and the others."""
    sigma = formulation.sigma
    program = formulation.cvxpy
    if not isinstance(sigma, cvxpy.Variable):
        return [], list(program.constraints)
    tied = {v.id for v in program.objective.variables()} - {sigma.id}
    parts = [(one, {v.id for v in one.variables()} - {sigma.id}) for one in program.constraints]
    grew = True
    while grew:
        grew = False
        for _, ids in parts:
            if ids & tied and not ids <= tied:
                tied |= ids
                grew = True
    return [one for one, ids in parts if not ids & tied], [one for one, ids in parts if ids & tied]


def _without_known(read: RowsReading, problem: Problem) -> RowsReading:
    """Less what the problem says already: rows that always hold, its cardinality, its own rows."""
    rows = read.rows
    selection = problem.selection
    if not len(rows):
        return read
    p = selection.n_features
    low, high = selection.sigma_bounds()
    least, most = rows.activities(*(np.concatenate(ends) for ends in zip((low, high), rows.extra.box, strict=True)))
    known = {_row_signature(problem.rows, r) for r in range(len(problem.rows))} if problem.rows is not None else set()
    cardinality = np.ones(p)
    keep = []
    for r in range(len(rows)):
        row = rows.matrix[[r]].toarray().ravel()
        holds = least[r] >= rows.low[r] and most[r] <= rows.high[r]
        plain = not row[p:].any()
        counts = selection.M is not None and plain and np.array_equal(row[:p], cardinality) and rows.lb[r] <= 0
        if holds or (plain and _row_signature(rows, r) in known) or (counts and rows.ub[r] >= selection.M):
            continue
        keep.append(r)
    return RowsReading(rows.take(keep), read.extras)


def _row_signature(rows: Rows, r: int) -> tuple[Any, ...]:
    columns, values = row_of(rows.matrix, r)
    return (*columns.tolist(), *values.tolist(), rows.lb[r], rows.ub[r])


class _Reader:
    """Reads constraints as rows over [σ; extra variables]."""

    def __init__(self, problem: Problem, sigma: Any) -> None:
        self.p = problem.atoms.count
        self.sigma = sigma
        self.places: dict[int, int] = {} if sigma is None or not hasattr(sigma, "id") else {sigma.id: 0}
        self.own: list[Any] = []
        self.size = self.p

    def read(self, constraints: Sequence[Any]) -> RowsReading:
        """Every constraint as one or more rows."""
        for one in constraints:
            self.check(one)
        with _EVALUATING:
            parts = [self.linear(one) for one in constraints]
        names: list[str] = []
        matrices = []
        lower = []
        upper = []
        for one, (matrix, constant) in zip(constraints, parts, strict=True):
            kind = KINDS[type(one)]
            text = text_of(one)
            m = constant.size
            names += [text] if m == 1 else [f"{text} [{k}]" for k in range(m)]
            matrices.append(matrix)
            lower.append(np.full(m, -np.inf) if kind == UPPER else -constant)
            upper.append(np.full(m, np.inf) if kind == LOWER else -constant)
        extras, entries = self._read_extras()
        stacked = sparse.vstack([self._widen_matrix(matrix) for matrix in matrices], format="csr") if matrices else None
        rows = Rows(
            sparse.csr_array((0, self.size)) if stacked is None else stacked,
            np.concatenate([np.empty(0), *lower]) + 0.0,
            np.concatenate([np.empty(0), *upper]) + 0.0,
            tuple(make_unique(names)),
            (ORIGIN,) * len(names),
            extras,
        )
        idle = (np.diff(rows.matrix.indptr) == 0) & (rows.lb <= 0.0) & (rows.ub >= 0.0)  # 0 <= 1
        return RowsReading(rows.take(np.flatnonzero(~idle).tolist()), entries)

    def check(self, one: Any) -> None:
        """Refuse what is no linear row, and take its own variables up."""
        text = text_of(one)
        if type(one) not in KINDS:
            raise RowError(f"the constraint {text!r} ({type(one).__name__}) is no linear row over sigma")
        if not one.expr.is_affine():
            raise RowError(f"the constraint {text!r} is not linear; rows over sigma are linear")
        if any(parameter.value is None for parameter in one.parameters()):
            raise RowError(f"the constraint {text!r} has a parameter without a value; give it one")
        for v in one.variables():
            if v.id in self.places:
                continue
            if v.is_complex():
                raise RowError(f"the constraint {text!r} is about {v.name()}, which is complex; rows are real")
            strange = [name for name, value in v.attributes.items() if _is_set(value) and name not in _CARRIED]
            if strange:
                raise RowError(
                    f"the constraint {text!r} is about {v.name()}, which is {', '.join(strange)}; an extra variable is "
                    "real, integer or boolean, with bounds"
                )
            self.places[v.id] = self.size
            self.own.append(v)
            self.size += v.size

    def linear(self, one: Any) -> tuple[Any, Array]:
        """Matrix (m, columns so far) and constant (m,) of an affine constraint."""
        matrix, constant = _affine_entries(one.expr, self.places, self.size)
        if not (np.all(np.isfinite(matrix.data)) and np.all(np.isfinite(constant))):
            raise RowError(f"the constraint {text_of(one)!r} has a coefficient or a bound that is not finite")
        return matrix, constant

    def _widen_matrix(self, matrix: Any) -> Any:
        return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], self.size))

    def _read_extras(self) -> tuple[Extras, tuple[tuple[Any, int], ...]]:
        names: list[str] = []
        bounds: list[tuple[Array, Array, npt.NDArray[np.bool_]]] = []
        entries: list[tuple[Any, int]] = []
        for number, v in enumerate(self.own, 1):
            name = (
                v.name() if v.name() != f"var{v.id}" else f"extra{number}"
            )  # CVXPY's own numbers differ from run to run
            names += [name] if v.size == 1 else [f"{name}[{k}]" for k in range(v.size)]
            bounds.append(_variable_bounds(v))
            entries += [(v, k) for k in range(v.size)]
        if not names:
            return Extras(), ()
        lb, ub, integer = (np.concatenate(side) for side in zip(*bounds, strict=True))
        return Extras(tuple(names), lb, ub, integer), tuple(entries)


def _affine_entries(expression: Any, places: Mapping[int, int], size: int) -> tuple[Any, Array]:
    """Matrix (m, size) and constant (m,) of an affine expression; `places` are the first columns of its variables."""
    variables = expression.variables()
    before = [v._value for v in variables]
    try:
        for v in variables:
            v._value = np.zeros(v.shape)
        with _plain(variables):
            constant = np.asarray(_as_dense(expression.value), dtype=float).ravel(order="F")
            gradient = expression.grad if variables else {}
    finally:
        for v, value in zip(variables, before, strict=True):
            v._value = value
    rows: list[Any] = []
    columns: list[Any] = []
    data: list[Any] = []
    for v, part in gradient.items():
        entries = sparse.coo_array(sparse.csc_array(np.atleast_2d(part) if not sparse.issparse(part) else part))
        rows.append(entries.coords[1])
        columns.append(entries.coords[0] + places[v.id])
        data.append(entries.data)
    index = (np.concatenate([np.empty(0, int), *rows]), np.concatenate([np.empty(0, int), *columns]))
    return sparse.csr_array((np.concatenate([np.empty(0), *data]), index), shape=(constant.size, size)), constant


class _plain:
    """σ of a dual program shows its multiplier: while expressions are evaluated it shows what is in it."""

    def __init__(self, variables: Iterable[Any]) -> None:
        self.held = [(v, v._row) for v in variables if getattr(v, "_row", None) is not None]

    def __enter__(self) -> None:
        for v, _ in self.held:
            v._row = None

    def __exit__(self, *_: object) -> None:
        for v, row in self.held:
            v._row = row


def _is_set(value: Any) -> bool:
    return value is not None and not (isinstance(value, (bool, list, tuple)) and not value)


def _as_dense(value: Any) -> Any:
    return value.toarray() if sparse.issparse(value) else value


def _variable_bounds(v: Any) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Bounds (size,), (size,) and integrality of a variable's entries, in column-major order."""
    lb, ub = np.full(v.shape, -np.inf), np.full(v.shape, np.inf)
    given = v.attributes.get("bounds")
    if given is not None:
        if any(isinstance(end, cvxpy.Expression) for end in given):
            raise RowError(f"the bounds of {v.name()} are expressions; give numbers, or constraints")
        lb, ub = (np.broadcast_to(np.asarray(_as_dense(end), dtype=float), v.shape).copy() for end in given)
    if v.attributes["nonneg"] or v.attributes["pos"]:
        lb = np.maximum(lb, 0.0)
    if v.attributes["nonpos"] or v.attributes["neg"]:
        ub = np.minimum(ub, 0.0)
    integer = np.zeros(v.shape, dtype=bool)
    for name in ("boolean", "integer"):
        which: Any = v.attributes[name]
        mask = np.full(v.shape, which is True)
        if which and which is not True:
            if len(v.shape) != 1:
                raise RowError(f"{v.name()} is {name} in some of its entries; write these as a variable of their own")
            mask[np.ravel(getattr(v, f"{name}_idx"))] = True
        integer |= mask
        if name == "boolean":
            lb, ub = np.where(mask, np.maximum(lb, 0.0), lb), np.where(mask, np.minimum(ub, 1.0), ub)
    return lb.ravel(order="F"), ub.ravel(order="F"), integer.ravel(order="F")
