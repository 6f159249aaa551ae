"""What a run leaves behind, besides its incumbent and its bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Mask

if TYPE_CHECKING:
    from mipfs.formulation.program import Formulation
    from mipfs.proof.cuts import CutPool, Dual
    from mipfs.proof.evidence import CombinedProof
    from mipfs.proof.proof import Proof
    from mipfs.selection.derived import ChvatalGomory


@dataclass(frozen=True)
class SupportValue:
    """What is known of a support.

    Attributes
    ----------
    objective, lower : float, of (P) with the unit margin at its classifier, and what its dual vector proves
    is_padded : bool, whether it may be another one with features of weight 0
    stands_at : float, the least bound of a node that was closed since it holds this one's ties: it is listed from there
    """

    objective: float
    lower: float
    is_padded: bool
    stands_at: float = math.inf


@dataclass(frozen=True)
class NearOptimalList:
    """The list of a run: every support with what is known of it and its ties, and whether none is missing."""

    supports: Sequence[tuple[Mask, SupportValue, int | None]]
    complete: bool


@dataclass
class Outcome:
    """Filled by a driver while it runs, read when the result is made.

    Attributes
    ----------
    proof : Proof or CombinedProof, optional
        The tree that proves the bound, or what makes it when it is asked for.
    proof_kind : {"tree", "relaxation"}
        "relaxation": one dual vector at all leaves.
    proof_slack : float
        The bound that is claimed lies this much (relative) below the run's.
    relaxed : mapping, optional, {"upper", "lower", "sigma", ...} of the relaxation that was solved
    mixed : (k,) positions of the atoms that the relaxation's σ uses
    validated : mapping, optional, the classifier of lowest validation error
    found : NearOptimalList, optional, the near-optimal supports, where they were asked for
    derived : sequence of ChvatalGomory, rows that were separated, which the proof's multipliers are about as well
    beside : list of Dual, dual vectors that the certificate has beside those of the proof, for the list
    pool : CutPool, optional, the cuts at hand at the end
    alpha : (n,) ndarray, optional, the last dual vector of a relaxation
    declare : callable, optional, declares the last restricted problem as a `Formulation`
    selections : sequence of (positions, values), the selections that `kelley` generated
    held : (k,) ascending positions of atoms, optional
        Those that the proof is over, where there are too many atoms to hold; the others it rules out (`Proof.outside`).
    """

    proof: Proof | CombinedProof | None = None
    proof_kind: Literal["tree", "relaxation"] = "tree"
    proof_slack: float = 1e-11
    relaxed: Mapping[str, Any] | None = None
    mixed: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    validated: Mapping[str, Any] | None = None
    found: NearOptimalList | None = None
    derived: Sequence[ChvatalGomory] = ()
    beside: list[Dual] = field(default_factory=list)
    pool: CutPool | None = None
    alpha: npt.NDArray[np.float64] | None = None
    declare: Callable[[], Formulation] | None = None
    selections: Sequence[tuple[Any, Any]] = ()
    held: npt.NDArray[np.int64] | None = None
