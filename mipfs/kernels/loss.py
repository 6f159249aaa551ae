"""A loss in compiled code: functions over all samples that stand in its own file and are called by address.

The kernels are compiled once for all losses, and have no branch on the loss: a call per vector over the samples, never
one inside a loop over them. A new loss compiles its four functions only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from numba import types

from mipfs.pointers import Step, StepType, caller

_VECTOR = types.Array(types.float64, 1, "C")
_GIVEN = types.Array(types.float64, 1, "C", readonly=True)
_PLACES = types.Array(types.int64, 1, "C")
_NARROW = types.Array(types.float32, 1, "C")
_NARROW_GIVEN = types.Array(types.float32, 1, "C", readonly=True)
AT_MARGINS = StepType((_VECTOR, _VECTOR, _GIVEN, types.float64, _VECTOR, _VECTOR))
SLOPE = StepType((types.float64, _VECTOR, _VECTOR, _VECTOR, _GIVEN, types.float64, _VECTOR))
CURVATURE = StepType((_VECTOR, _GIVEN, types.float64, _PLACES, _VECTOR, _VECTOR))
DUAL = StepType((_VECTOR, _GIVEN, _VECTOR))
PROXIMAL = StepType((_NARROW, _NARROW, _NARROW_GIVEN, types.float32, types.float32, _NARROW))
at_margins, slope, curvature, dual = caller(AT_MARGINS), caller(SLOPE), caller(CURVATURE), caller(DUAL)
proximal = caller(PROXIMAL)
"""What kernels call: with the address of `LossSteps`, then with the arguments that `LossKernels` describes."""


class LossSteps(NamedTuple):
    """The addresses of a loss's functions, 0 where they are not compiled, and what steers the kernels.

    The same type for every loss. `LossKernels` says what each is.
    """

    at_margins: int
    slope: int
    curvature: int
    dual: int
    proximal: int
    is_smoothed: bool
    is_steady: bool


@dataclass(frozen=True)
class ArrayLoss:
    """A loss in whole arrays of a library over B nodes, for the relaxation on a device (`mipfs.inner.array_batch`).

    xp is NumPy, or a library with its functions; sums are in float64.

    Attributes
    ----------
    proximal : proximal(xp, v, weight, m)
        The minimiser h of weight·ℓ(h) + ½ (h − v)², from the last margins m; all (B, n).
    value : value(xp, m, c)
        L(m), (B,).
    dual : dual(xp, alpha, c)
        g(α), (B,), for α in its box.
    """

    proximal: Callable[..., Any]
    value: Callable[..., Any]
    dual: Callable[..., Any]


@dataclass(frozen=True)
class LossKernels:
    """The functions that make a loss known to the kernels, decorated with `mipfs.compiled.compiled`.

    All vectors have an entry for every sample; c are the loss weights. A function returns nothing: what it finds of
    every sample it writes to vectors, and one or two sums over the samples to `sums` (2,), in the order given below. α
    and ρ are for losses that are smoothed: others do not read them.

    Attributes
    ----------
    at_margins : at_margins(m, alpha, c, rho, beta, sums)
        β = −L'(m) of the loss, or of the smoothed one; sums: L(m), not smoothed, and g(β).
    slope : slope(t, m, move, alpha, c, rho, sums)
        sums: the derivative of t ↦ L(m + t·move), or of the smoothed one.
    curvature : curvature(beta, c, rho, inner, curve, sums)
        Writes the samples with L'' > 0 where −L' = β to `inner`, in rising order, and L'' of these to curve[i]; sums:
        how many. A β on the dyadic grid is as near to the ends of its box as that lets it be.
    dual : dual(alpha, c, sums)
        sums: g(α), and the sum of the absolute terms that it is the sum of. No fastmath: the bound rests on it.
    proximal : proximal(m, d, c, part, relax, alpha), optional
        The proximal step of `mipfs.kernels.batch`, in float32: h = the minimiser of part·c ℓ(h) + ½ (h − v)² at
        v = 2m − d; α ← h − v, d ← d + relax (h − m). Without it nodes are not relaxed many at a time.
    arrays : ArrayLoss, optional
        The proximal step and both values in arrays. Without it nodes are not relaxed on a device.
    is_smoothed : bool
        Whether ℓ' jumps: then β, of an augmented Lagrangian, is the nearest to α + ρ(target − m) of what may be −cℓ' at
        a kink; of the hinge clip(α + ρ(1 − m), 0, c).
    is_steady : bool
        Whether the curvature hardly changes from one Newton step to the next.
    """

    at_margins: Any
    slope: Any
    curvature: Any
    dual: Any
    proximal: Any = None
    arrays: ArrayLoss | None = None
    is_smoothed: bool = False
    is_steady: bool = False

    @property
    def steps(self) -> list[Step]:
        """The functions, not compiled yet."""
        functions = self.at_margins, self.slope, self.curvature, self.dual, self.proximal
        types = AT_MARGINS, SLOPE, CURVATURE, DUAL, PROXIMAL
        return [Step(*one) for one in zip(functions, types, strict=True) if one[0] is not None]

    @property
    def unmade(self) -> LossSteps:
        """What tells the kernels' types."""
        return LossSteps(0, 0, 0, 0, 0, self.is_smoothed, self.is_steady)

    @property
    def made(self) -> LossSteps:
        """The functions in machine code, which is compiled at the first call where none is kept."""
        return _look_up_steps(self)


@cache
def _look_up_steps(kernels: LossKernels) -> LossSteps:
    """The addresses of a loss's functions, looked up once a process: that takes numba's lock and 150 µs."""
    at_margins, slope, curvature, dual, *more = (step.made().address for step in kernels.steps)
    proximal = more[0] if more else 0
    return LossSteps(at_margins, slope, curvature, dual, proximal, kernels.is_smoothed, kernels.is_steady)
