"""Multivariate measures: their value on scores, and the labelling or ranking that a training step must look at.

The structural loss of a measure with loss Δ is (Mao 2013, (2) and section 5.4; Joachims 2005)

    L(f) = C max over ȳ of [Δ(ȳ) − w'a(ȳ)]₊,   w'a(ȳ) = Σ_i v_i(ȳ) f_i,   v_i = (2/D) y_i k_i

where k_i counts what ȳ gets wrong about sample i: 1 if it is mislabelled (D = n), or, for measures of a ranking, the
number of samples of the other class on the wrong side of it (D = P·N). A measure is one file here and a line below.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mipfs.errors import UsageError
from mipfs.measures import laws
from mipfs.measures.base import Measure, Violated
from mipfs.plumbing.registry import Registry, part_of

__all__ = ["MEASURES", "Measure", "Violated", "get_measure", "value"]

MEASURES = Registry(
    "measure",
    {
        "error": "mipfs.measures.error",
        "f1": "mipfs.measures.fbeta",
        "fbeta": "mipfs.measures.fbeta",
        "precision-at-k": "mipfs.measures.at_k",
        "recall-at-k": "mipfs.measures.at_k",
        "prbep": "mipfs.measures.at_k",
        "roc-auc": "mipfs.measures.roc_area",
        "average-precision": "mipfs.measures.average_precision",
    },
)
WITH_BETA = ("fbeta",)
MAX_BETA = 1e100
"""β² must be a number."""
WITH_K = ("precision-at-k", "recall-at-k")


def get_measure(name: str, y: npt.ArrayLike, *, beta: float | None = None, k: int | None = None) -> Measure:
    """A measure on given labels.

    Parameters
    ----------
    name : str, one of `MEASURES`
    y : (n,) labels, -1 or +1
    beta : float > 0, for ``fbeta`` only
    k : int in 1 … n, for ``precision-at-k`` and ``recall-at-k``; by default the number of positives

    Raises
    ------
    UsageError
        An unknown measure, or a parameter that it does not have, lacks, or that is out of range.
    DataError
        Labels on which it is not defined.
    """
    if not isinstance(name, str) or name not in MEASURES:
        raise UsageError(f"measure {name!r} is not known; it is one of {', '.join(MEASURES)}")
    arguments: dict[str, float | int] = {}
    if name in WITH_BETA:
        if beta is None:
            raise UsageError("measure 'fbeta' needs beta, for example beta=2; beta=1 is the measure 'f1'")
        if isinstance(beta, bool) or not isinstance(beta, (int, float, np.number)) or not 0 < beta < MAX_BETA:
            raise UsageError(f"beta = {beta!r} must be a positive number below {MAX_BETA:g}")
        arguments["beta"] = float(beta)
    elif beta is not None:
        raise UsageError(f"measure {name!r} has no beta; leave it out, or ask for 'fbeta'")
    if name in WITH_K:
        if k is not None:
            if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
                raise UsageError(f"k = {k!r} must be an integer from 1 to the number of samples")
            arguments["k"] = int(k)
    elif k is not None:
        raise UsageError(f"measure {name!r} has no k; leave it out, or ask for one of {', '.join(WITH_K)}")
    create = part_of(f"the measure {name!r}", MEASURES[name], "create", "a function create(name, y)")
    laws.check(create, name)
    found: Measure = create(name, np.asarray(y, dtype=float), **arguments)
    return found


def value(
    name: str, y: npt.ArrayLike, scores: npt.ArrayLike, *, beta: float | None = None, k: int | None = None
) -> float:
    """The value of a measure on scores (or labels -1 and +1); parameters as in `get_measure` and `Measure.value`.

    Raises
    ------
    UsageError
        As `get_measure`, or scores that are not one finite number per sample.
    """
    measure = get_measure(name, y, beta=beta, k=k)
    given = np.asarray(scores, dtype=float)
    if given.shape != (measure.n,) or not np.all(np.isfinite(given)):
        raise UsageError(f"scores of shape {given.shape}; give {measure.n} finite numbers, one for every sample")
    return measure.value(given)
