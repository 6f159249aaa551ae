"""A formulation that is declared in CVXPY, and how large a declared model may be.

Also here: a classifier as the variables of a model hold it.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import show_value
from mipfs.problem import Problem


@dataclass(frozen=True, eq=False)
class ClassifierPoint:
    """A classifier on the scale of a problem's data.

    Attributes
    ----------
    sigma : (count,) of 0 and 1
    v : (k,) weights of the columns of all atoms (`Atoms.columns`), times their λ; zero where σ = 0
    t : (count,) ‖v_g‖² of every atom
    w : (p,) weights of the features
    b, rho : float, the intercept, and the margin that is asked for: 1, or ρ of the ρ-form
    margins : (n,) y∘(Xw + b)
    extra : tuple of float or None, the values of the user's extra variables
    """

    sigma: Array
    v: Array
    t: Array
    w: Array
    b: float
    rho: float
    margins: Array
    extra: tuple[float | None, ...]

    def unit(self) -> ClassifierPoint:
        """The point divided by ρ (its t by ρ²), so that the margin is 1."""
        scaled = {name: getattr(self, name) / self.rho for name in ("v", "w", "b", "margins")}
        return replace(self, t=self.t / self.rho**2, rho=1.0, **scaled)

    def slacks(self, loss: str) -> Array:
        """ξ, shape (n,): y_i f(x_i) + ξ_i ≥ ρ, for the logistic loss ≥ 0."""
        found: Array = get_loss(loss).slacks(self.margins, self.rho)
        return found


def shared_values(problem: Problem, point: ClassifierPoint) -> Mapping[str, Any]:
    """What most formulations have of a classifier: the variables ``w``, ``b``, ``rho`` and ``xi``."""
    return {"w": point.w, "b": point.b, "rho": point.rho, "xi": point.slacks(problem.loss)}


MAX_FEATURES = 3_000
MAX_TERMS = 2_000_000
"""Beyond these a Pyomo model takes gigabytes, and no general solver gets anywhere with it."""


class TooLargeError(UsageError):
    """Data, or a program made of it, that a general solver cannot take."""


@dataclass(frozen=True, eq=False)
class Formulation:
    """A formulation declared in CVXPY.

    Parameters
    ----------
    problem : Problem
        What it stands for; its rows are the rows of the formulation.
    cvxpy : cvxpy.Problem
    sigma : cvxpy.Variable of shape (p,), or None
        The selection; None where the program has none. Constraints over it and variables of your own are its rows
        (`compile`). It may be anything with a ``value`` after a solve, but then rows are the problem's alone.
    variables : mapping of str to cvxpy.Variable (or likewise)
        The other variables, under the names of the paper. From ``alpha``, shape (n,), a bound is earned; without
        sigma, the sizes of ``w``, shape (p,), are what is rounded.
    solver : {"clarabel", "highs"}
        Who solves it; HiGHS for linear programs, whose vertices have exact zeros.
    lagrangian : callable, optional
        ``lagrangian(omega)``, with omega >= |ω(α)| of shape (p,), returns (r, cost) such that
        g(α) − r + min of costᵀσ over the rows of S bounds (P) from below. By default (0, c − ½ ω²).
    is_relaxation : bool
        Whether its value bounds (P), or the relaxation over all of S, from one side; False for a baseline, which
        solves another problem.
    hull : bool
        Whether it is over the convex hull of S rather than over the rows with 0 ≤ σ ≤ 1: its bound then takes the
        minimum over S itself.
    parameters : mapping of "C", "lam" and "M" to cvxpy.Parameter
        Of a program that allows it (the Boolean relaxation, and FGM's where it is that): a new ``value`` is solved
        with the next solve. Empty where other numbers of the program follow from C or M.
    """

    problem: Problem
    cvxpy: Any
    sigma: Any
    variables: Mapping[str, Any]
    solver: str = "clarabel"
    lagrangian: Callable[[npt.NDArray[np.float64]], tuple[float, npt.NDArray[np.float64]]] | None = None
    is_relaxation: bool = True
    hull: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wanted = {
            "problem": ("a mipfs.Problem", isinstance(self.problem, Problem)),
            "cvxpy": ("a cvxpy.Problem", self.cvxpy is None or hasattr(self.cvxpy, "constraints")),
            "variables": ("a mapping of names to variables", isinstance(self.variables, Mapping)),
        }
        for name, (what, fits) in wanted.items():
            if not fits:
                raise UsageError(f"Formulation: {name} = {show_value(getattr(self, name))} must be {what}")

    def __repr__(self) -> str:
        said = "a program of your own"
        if self.cvxpy is not None:
            said = importlib.import_module("mipfs.formulation.cvxpy_added").relaxation(self)
        return f"<Formulation {self.problem.formulation or 'of your own'}, {said}, in CVXPY; {self.problem}>"

    def with_constraints(self, constraints: Any, extra_cost: Any = None) -> Formulation:
        """A copy with more constraints, affine in σ and in variables of your own: rows of the selection.

        Where σ is no variable of the program (NMMKL, the dual forms), or the program is over a pool of selections, it
        is declared anew with the rows: its `cvxpy` and its `sigma` are others then.

        Parameters
        ----------
        constraints : cvxpy constraint, or list of them
        extra_cost : cvxpy expression, optional
            What variables of your own that stand in constraints cost, linear in them: ``3 * device`` joins the
            objective.

        Raises
        ------
        UsageError
            Something else, a formulation whose program has no place for such costs, or rows that no selection of the
            program's pool satisfies.
        """
        import cvxpy

        several = constraints if isinstance(constraints, (list, tuple)) else [constraints]
        for one in several:
            if not isinstance(one, cvxpy.constraints.constraint.Constraint):
                raise UsageError(
                    f"{show_value(one)} is no constraint of CVXPY; write one such as sigma[0] + sigma[1] <= 1"
                )
        if extra_cost is not None and not isinstance(extra_cost, cvxpy.Expression):
            raise UsageError(
                f"extra_cost = {show_value(extra_cost)} is no expression of CVXPY; write one such as 3 * device"
            )
        from mipfs.formulation.cvxpy_added import with_rows

        return with_rows(self, several, extra_cost)

    def __getstate__(self) -> dict[str, Any]:
        """What was declared, without what a solver of CVXPY has kept of it, of which some cannot be pickled."""
        state = dict(vars(self))
        if self.cvxpy is not None:
            import cvxpy

            state["cvxpy"] = cvxpy.Problem(self.cvxpy.objective, self.cvxpy.constraints)
        return state

    def __deepcopy__(self, memo: dict[int, Any]) -> Formulation:
        """A copy by way of a pickle: CVXPY's own renumbers the variables and loses those of the constraints."""
        return cast(Formulation, pickle.loads(pickle.dumps(self)))


def check_size(data: Instance, kind: str = "Pyomo model") -> None:
    """Refuse data that is too large for an algebraic model, before any of it is built; `kind` is for the message.

    Raises
    ------
    TooLargeError
    """
    terms = data.block().nnz
    if data.n_features > MAX_FEATURES or terms > MAX_TERMS:
        raise TooLargeError(
            f"{data.n_samples} samples x {data.n_features} features is too large for a {kind} (at most "
            f"{MAX_FEATURES} features and {MAX_TERMS} values); mipfs.Problem(data, ...) takes any size"
        )
