"""The cuts of Benders' decomposition as data: what `gbd` learnt about the value of every selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.proof.cuts import CutPool


@dataclass(frozen=True, eq=False)
class CutArrays:
    """Cuts on the value of (P) in the unit margin: value(σ) ≥ constant_k + Σ_j coefficient_kj σ_j for all binary σ.

    They are earned: constants are rounded down and coefficients too, so that each holds exactly (Aytug 2015, (10), with
    the fixed costs of features in the coefficients, as (15) there).

    Attributes
    ----------
    names : sequence of p str, of what is selected
    constants : (k,) g(α)
    coefficients : (k, p) c_j − ½ ω_j(α)², of a regulariser other than the ridge c_j − h(ω_j(α))
    alphas : (k, n) the dual vectors α, or None for measures, whose duals are over labellings
    """

    names: Sequence[str]
    constants: npt.NDArray[np.float64]
    coefficients: npt.NDArray[np.float64]
    alphas: npt.NDArray[np.float64] | None

    def __len__(self) -> int:
        return int(self.constants.size)

    def values(self, selected: Sequence[str]) -> npt.NDArray[np.float64]:
        """What every cut says of the value of a selection, shape (k,).

        Parameters
        ----------
        selected : sequence of names

        Raises
        ------
        UsageError
            A name that is none.
        """
        place = {name: j for j, name in enumerate(self.names)}
        unknown = [name for name in selected if name not in place]
        if unknown:
            raise UsageError(f"no feature is called {unknown[0]!r}; cuts.names has them all")
        chosen = sorted({place[name] for name in selected})
        found: npt.NDArray[np.float64] = self.constants + self.coefficients[:, chosen].sum(axis=1)
        return found

    def to_frame(self) -> Any:
        """The cuts as a pandas data frame: ``constant``, and a column of coefficients for every name.

        Raises
        ------
        UsageError
            pandas is not installed.
        """
        from mipfs.report.frame import pandas_for

        pandas = pandas_for("cuts.to_frame()")
        frame = pandas.DataFrame(self.coefficients, columns=list(self.names))
        frame.insert(0, "constant", self.constants, allow_duplicates=True)
        return frame


class HasCuts:
    """What a result has of cuts: those of its `pool`."""

    pool: CutPool | None

    @property
    def cuts(self) -> CutArrays:
        """The cuts of a run of `gbd` with ``keep_cuts=True``, as arrays.

        Raises
        ------
        UsageError
            None are at hand.
        """
        if self.pool is None:
            raise UsageError("no cuts are at hand; solve with 'gbd' and keep_cuts=True (they are not in the JSON)")
        return cuts_of(self.pool)


def cuts_of(pool: CutPool) -> CutArrays:
    """The cuts of a pool, with the costs of its problem."""
    from mipfs.proof.cuts import decode_dual

    problem = pool.problem
    penalty = np.asarray(problem.penalty, dtype=float)
    halves = 0.5 * pool.slopes
    coefficients = penalty[None, :] - halves
    if penalty.any():  # the difference is rounded: down, so that the cut holds
        coefficients = np.where(penalty[None, :] != 0.0, np.nextafter(coefficients, -np.inf), coefficients)
    alphas = None
    if not problem.is_joint and pool.duals is not None:
        alphas = np.array([decode_dual(pool.duals.get(i)) for i in pool.dual_of])
    power = -2 * problem.data.exponent  # from the unit of the columns to the user's
    alphas = None if alphas is None else np.ldexp(alphas, power)
    return CutArrays(tuple(problem.atoms.names), np.ldexp(pool.constants, power), np.ldexp(coefficients, power), alphas)
