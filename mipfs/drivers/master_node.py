"""What passes through the master of Benders' decomposition: nodes of its tree, and points where cuts are wanted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Array
from mipfs.proof.evidence import Evidence


@dataclass(eq=False)
class MasterNode:
    """A subproblem of the tree: fixings, its bound and what that rests on, and the point that stabilises its cuts."""

    bound: float
    lb: npt.NDArray[np.int8]
    ub: npt.NDArray[np.int8]
    inner: Array
    depth: int = 0
    rounds: int = 0
    previous: float = -math.inf
    upper: float = math.inf
    weights: Array = field(default_factory=lambda: np.empty(0))
    settled: bool = False
    place: int = 0
    evidence: Evidence | None = None

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """Features that are not fixed, shape (p,)."""
        return self.lb < self.ub


@dataclass(frozen=True, eq=False)
class CutPoint:
    """Where the next cut is wanted.

    Attributes
    ----------
    sigma : (p,) solution of the node's LP
    separate : (p,) point between it and the node's inner point (the LP's own σ when that is integral)
    is_integral : bool
    """

    sigma: Array
    separate: Array
    is_integral: bool
