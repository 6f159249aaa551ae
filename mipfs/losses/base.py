"""What a loss is: one object that says all that the package asks of it. A new one is a file and a line in `LOSSES`.

L(m) = Σ c_i ℓ(m_i),   g(α) = min over m of Σ α_i m_i + L(m),   A = {0 ≤ α ≤ tc}, t the steepest slope of ℓ, and y'α = 0
with a free bias
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers
from mipfs.svm.dyadic import balance_dual

if TYPE_CHECKING:
    from mipfs.kernels.loss import LossKernels
    from mipfs.losses.terms import Terms
    from mipfs.svm.solver import SvmSolver


class Loss(ABC):
    """A loss that is a sum over the samples.

    What has a default may be left out: then the methods that need it refuse the loss by name, or take a slower way.

    Attributes
    ----------
    name : str, as users write it
    pointwise : bool, whether it is a sum over the samples
    max_slope : float, t = sup −ℓ': the dual box is 0 ≤ α ≤ tc; inf where ℓ grows without a steepest slope
    dual_depends_on_c : bool, whether g does, beside α
    has_rho : bool, whether the problem has a ρ-form (Tan 2010, (1)): ℓ must be homogeneous of degree 2 in 1 − m
    is_smooth : bool, whether ℓ' is continuous
    vanishes : bool, whether ℓ(m) = 0 from m = 1 on: on separable data a multiple of any separating (w, b) has no loss
    says_odds : bool, whether f(x) is the logarithm of the odds of class +1 where ℓ is least on average
    slack_degree : int or None, the k of a loss ℓ(m) = max(0, 1 − m)^k/k
    kernels : LossKernels or None, its compiled functions: without them branch's nodes are interior points
    terms : class of `mipfs.losses.terms.Terms`, the loss as an interior point sees it
    solver_class : class of `mipfs.svm.solver.SvmSolver`, the SVM on selected columns
    target, has_free_slacks, says_sign : y_i f(x_i) + ξ_i ≥ target, whether ξ may be negative, and whether ξ ≥ 0 must be
        said: of the declared forms
    """

    name: str
    pointwise = True
    max_slope = 1.0
    dual_depends_on_c = True
    has_rho = False
    is_smooth = True
    vanishes = False
    says_odds = False
    slack_degree: int | None = None
    kernels: LossKernels | None = None
    terms: type[Terms]
    target = 1.0
    has_free_slacks = False
    says_sign = True

    @property
    def has_top(self) -> bool:
        """Whether the dual box is closed above."""
        return self.max_slope < np.inf

    @property
    def solver_class(self) -> type[SvmSolver]:
        """The SVM on selected columns: by default Newton's method, compiled where the kernels know the loss."""
        from mipfs.svm import compiled_newton, plain

        return plain.PlainSolver if self.kernels is None else compiled_newton.NewtonSolver

    def Solver(self, data: Instance, c: Array, bias: bool) -> SvmSolver:
        """The SVM on any columns of an instance, with loss weights c (n,)."""
        return self.solver_class(self, data, c, bias)

    def of_problem(self, problem: Any) -> Any:
        """The loss of a `mipfs.problem.Problem`: itself, but for losses that have parameters."""
        return self

    @abstractmethod
    def value(self, margins: Array, c: Array) -> float:
        """L(m) for margins (n,) and loss weights c (n,)."""

    def at_slacks(self, slacks: Array, c: Array) -> float:
        """L where the margins fall short of `target` by ξ (n,), which holds digits of it that 1 − ξ has not."""
        return self.value(self.target - slacks, c)

    @abstractmethod
    def dual_value(self, alpha: Array, c: Array) -> float:
        """g(α)."""

    @abstractmethod
    def dual_magnitude(self, alpha: Array, c: Array) -> float:
        """Sum of the absolute terms of g(α), which bounds its rounding error."""

    def derivatives(self, margins: Array, c: Array) -> tuple[Array, Array]:
        """−L'(m) and L''(m) (of one side where it jumps), both (n,)."""
        raise UsageError(f"the loss {self.name!r} has neither kernels nor derivatives: its SVMs cannot be solved")

    def top(self, c: Array) -> Array:
        """The upper ends of the dual box, (n,): tc, inf where it is open; never above the exact product."""
        if not self.has_top:
            return np.broadcast_to(np.inf, c.shape)
        if self.max_slope == 1.0:
            return c
        top = self.max_slope * c
        return top if np.frexp(self.max_slope)[0] == 0.5 else np.nextafter(top, 0.0)  # powers of two round nothing

    def middle(self, c: Array) -> Array:
        """An α (n,) inside the box: half of c, or of its top where that is less."""
        return 0.5 * min(1.0, self.max_slope) * c

    def terms_at(self, c: Array, alpha: Array | None = None) -> Terms:
        """Its terms at a dual vector (n,) inside the box, by default the middle."""
        return self.terms(c, self.middle(c) if alpha is None else alpha, self.top(c))

    def feasible_dual(self, alpha: Array, c: Array, y: Array, bias: bool) -> tuple[Integers, int]:
        """α on a grid on which its box and y'α = 0 are integer identities; see `mipfs.svm.dyadic`."""
        return balance_dual(alpha, self.top(c), y, bias)

    def best_multiple(self, alpha: Array, c: Array, squares: float) -> float | None:
        """The t ≥ 0 of largest g(tα) − ½ t² squares with tα in the box (but for dust); None where no formula says."""
        return None

    def assumed_error(self, c: Array) -> float:
        """What is assumed of functions whose rounding error no standard bounds, such as logarithms."""
        return 0.0

    def slacks(self, margins: Array, rho: float) -> Array:
        """ξ of the declared forms at margins (n,)."""
        return -margins if self.has_free_slacks else np.maximum(0.0, rho - margins)

    def intercept(self, values: Array, y: Array, c: Array, b: float) -> float:
        """The intercept to report of those that are as good, for f = values (n,) + b."""
        return b

    def conic(self, cp: Any, xi: Any, c: Array) -> Any:
        """L as a CVXPY expression of the slacks."""
        raise UsageError(f"the loss {self.name!r} has no conic form; drivers branch, gbd and kelley take it")

    def conic_dual(self, cp: Any, alpha: Any, c: Array) -> Any:
        """g as a CVXPY expression."""
        raise UsageError(f"the loss {self.name!r} has no conic form; drivers branch, gbd and kelley take it")

    @property
    def algebraic(self) -> Callable[[Any, Any], Any]:
        """ℓ as a Pyomo expression of (ξ, ℓ), where ℓ is a variable at least log(1 + e^ξ) if slacks are free."""
        raise UsageError(f"the loss {self.name!r} has no algebraic form; drivers branch, gbd and kelley take it")
