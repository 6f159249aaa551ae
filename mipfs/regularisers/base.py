"""What a regulariser is: one object that alone knows the term of a weight. A new one is a file and a line in the table.

    v(σ) = min over w, b of Σ_j σ_j r_j(w_j/σ_j) + L(m) = max over α ∈ A of g(α) − Σ_j σ_j h_j(ω_j)
    h(ω) = max over w of ωw − r(w),   w_j = σ_j h'(ω_j)

Laws that proofs rest on: r(0) = 0, r(w) − ½w² is convex, and r ≥ ½w² (a tilt, ½w² + μw, breaks that), so that
0 ≤ h(ω) ≤ ½ω² and 0 ≤ h'' ≤ 1. So no value of (P) is negative, v falls in σ, and a feature of weight w is worth ½w² at
least. Where some weight may not be 0 (`is_monotone` is false) r(0) is infinite, h may be negative, and v may rise with
a feature.

A file has two classes that know nothing of one another: ``KIND``, a `Regulariser`, is the solver's; `Stated` says the
same to the checker in rational numbers, and uses nothing but them. This room imports nothing of the solver's.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from mipfs.plumbing.arrays import Array, Integers

U = 2.0**-53
ROUNDING = 8.0
"""Units of rounding that `Regulariser.conjugate` may be off, relative, unless it says more."""


def widen(omega: Any, radius: Any) -> Any:
    """How far [ω − radius, ω + radius] may reach: its ends are a few roundings of their own size off."""
    return radius + 4.0 * U * (abs(omega) + radius)


def raise_by_rounding(value: Any, rounding: float) -> Any:
    """A value that is some units of rounding off, and no less."""
    return value * (1.0 + 2.0 * rounding * U)


class Regulariser(ABC):
    """The term of the weights; a frozen dataclass whose fields are its parameters.

    Attributes
    ----------
    name : str, as it stands in the table and in results
    formula : str, r(w) in words
    has_kernels : bool, whether the compiled kernels know it; nodes and SVMs are interior points else
    is_ridge : bool, whether it is ½w²: then the scores ω² of atoms say all, and their searches serve
    rounding : float, units of rounding that `conjugate` may be off, relative
    """

    name: ClassVar[str]
    formula: ClassVar[str]
    has_kernels: ClassVar[bool] = False
    is_ridge: ClassVar[bool] = False
    rounding: ClassVar[float] = ROUNDING

    @property
    def stated(self) -> dict[str, Any]:
        """Its name and parameters, as a result states them."""
        given = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {"name": self.name} | {name: [*one] if isinstance(one, tuple) else one for name, one in given.items()}

    @property
    def is_homogeneous(self) -> bool:
        """Whether r(tw) = t²r(w) for t ≥ 0, and h so too: v scales with the square of the margin that is asked for (the
        ρ-form), and the best multiple of a dual vector has a closed form."""
        return False

    @property
    def is_monotone(self) -> bool:
        """Whether every weight may be 0, so that h ≥ 0 and more features never raise v(σ)."""
        return True

    @abstractmethod
    def value(self, w: Array) -> Array:
        """r of every weight, (k,); inf where a weight is not allowed."""

    @abstractmethod
    def conjugate(self, omega: Array) -> Array:
        """h(ω) = max over w of ωw − r(w), (k,)."""

    @abstractmethod
    def weight(self, omega: Array) -> Array:
        """h'(ω), where that maximum is taken, (k,)."""

    @abstractmethod
    def curvature(self, omega: Array) -> Array:
        """h''(ω), of one side where h' has a kink, (k,)."""

    @property
    def ends(self) -> tuple[Array | float, Array | float]:
        """The least and the largest weight that is allowed."""
        return -np.inf, np.inf

    def at(self, ids: Integers) -> Regulariser:
        """That of some of the features alone."""
        return self

    def check(self, count: int) -> None:  # noqa: B027  (nothing to refuse is a default)
        """Refuse, with a `UsageError`, parameters that are not those of `count` features."""

    def scaled(self, size: float) -> Regulariser:
        """r(w·√size)/size: that of (P) divided by `size`, over columns that are multiplied by its root."""
        return self if self.is_homogeneous else ScaledRegulariser(self, size)

    def perspective(self, w: Array, sigma: Array | float) -> Array:
        """σ r(w/σ), (k,), with its limit at σ = 0: 0 for w = 0, else inf."""
        part = np.broadcast_to(sigma, w.shape)
        held = part > 0.0
        found = part * self.value(np.divide(w, part, out=np.zeros(w.shape), where=held))
        return np.asarray(np.where(held | (w == 0.0), found, np.inf))

    def conjugate_above(self, omega: Array, radius: Array) -> Array:
        """No less than h anywhere in [ω − radius, ω + radius], (k,): h is convex, and largest at an end.

        `conjugate` is `rounding` units of its value off.
        """
        wider = widen(omega, radius)
        largest = np.maximum(self.conjugate(omega - wider), self.conjugate(omega + wider))
        return np.asarray(raise_by_rounding(largest, self.rounding))


@dataclasses.dataclass(frozen=True)
class ScaledRegulariser(Regulariser):
    """r(w·√size)/size of another regulariser: its h is h(ω·√size)/size."""

    own: Regulariser
    size: float

    @property
    def root(self) -> float:
        """√size."""
        return math.sqrt(self.size)

    @property
    def is_monotone(self) -> bool:
        """As the other one is."""
        return self.own.is_monotone

    def value(self, w: Array) -> Array:
        """r(w·√size)/size."""
        return self.own.value(self.root * w) / self.size

    def conjugate(self, omega: Array) -> Array:
        """h(ω·√size)/size."""
        return self.own.conjugate(self.root * omega) / self.size

    def weight(self, omega: Array) -> Array:
        """h'(ω·√size)/√size."""
        return self.own.weight(self.root * omega) / self.root

    def curvature(self, omega: Array) -> Array:
        """h''(ω·√size)."""
        return self.own.curvature(self.root * omega)

    @property
    def ends(self) -> tuple[Array | float, Array | float]:
        """Those of the other one, over √size."""
        low, high = self.own.ends
        return low / self.root, high / self.root
