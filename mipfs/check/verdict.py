"""The verdict: status, objective, bound and gap of a result against what is proven.

    gap = (objective − bound)/|objective|, 0 where both are equal, infinite at an objective of 0 otherwise

in the user's units, whatever their size: nothing here is compared to an absolute allowance. What rounding may change is
relative to the numbers compared, or the error of the objective, which was computed with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mipfs.check.classifier import StatedClassifier
from mipfs.check.rounding import NEAR, Document, U, absent_or, gap_between, number, require

STATUSES = ("OPTIMAL", "FEASIBLE", "RELAXED", "INFEASIBLE", "NO_SOLUTION", "NUMERICAL")
STATED_GAP_AGREEMENT = 1e-3
"""The gap that a result states agrees with the checker's to this, relative."""
DOUBTFUL_GAP_SHARE = 1e-3
"""The share of the asked gap up to which rounding may leave the objective in doubt."""


def judge_result(document: Document, incumbent: StatedClassifier, bound: float) -> dict[str, Any]:
    """Compare what a result states with a proven bound; what the report has of it.

    Parameters
    ----------
    document : mapping, the JSON
    incumbent : StatedClassifier, with the objective that its weights have, inf where there is none
    bound : float, the certified one; inf where no selection is allowed
    """
    status = document["status"]
    objective = incumbent.objective
    params = document["params"]
    said = absent_or(document["bound"], -math.inf, "the bound")
    asked = number(params["gap"], "the asked gap")
    require(document["certificate"]["gap"] == asked, "the asked gap of the certificate is not that of the parameters")
    require(0 <= asked < 1, f"the asked gap is {asked!r}, it must lie in [0, 1)")
    gap = gap_between(objective, bound)
    found = {"asked": asked, "result_bound": said, "gap": gap, "bound": bound}
    if status == "INFEASIBLE":
        require(bound == math.inf, f"INFEASIBLE, but the certified bound is {bound!r}: nothing shows that it is empty")
        nothing = objective == math.inf and said == -math.inf and not document.get("relaxed")
        require(nothing, "no selection is allowed, but the result has an objective, a bound or a relaxation")
        _stated_gap(document, gap, incumbent, bound)
        return found
    require(not (bound > objective + incumbent.error), f"the bound {bound!r} lies above the objective {objective!r}")
    whose = "is the solver's own word" if document.get("bound_source") == "solver" else "is not proven"
    shown = 0.0 if -1e-200 < bound < 0.0 else bound  # zero, rounded down
    require(
        is_below_within_rounding(said, bound), f"the result's bound {said!r} {whose}: the certificate shows {shown!r}"
    )
    require(status not in ("OPTIMAL", "FEASIBLE") or objective < math.inf, f"{status}, but without an objective")
    require(status != "NO_SOLUTION" or objective == math.inf, "NO_SOLUTION, but with an objective")
    if status == "OPTIMAL":
        for name, one in (("certified", bound), ("stated", said)):
            require_closed_gap("OPTIMAL", objective, incumbent.error, one, asked, name)
    _stated_gap(document, gap, incumbent, bound)
    return found


def is_below_within_rounding(said: float, proven: float) -> bool:
    """Whether a stated bound lies above a proven one by no more than computing it apart may change."""
    return said == -math.inf or (proven > -math.inf and said <= proven + NEAR * abs(proven))


def require_closed_gap(status: str, upper: float, error: float, lower: float, asked: float, name: str) -> None:
    """Reject unless upper and lower meet up to the asked gap, whatever the rounding error of the upper one is.

    An upper side that rounding leaves in doubt by no more than a thousandth of that gap is taken for what it is.
    """
    gap = gap_between(upper, lower)
    size = abs(upper)
    exact = error == 0 or lower >= upper + error or gap_between(upper + error, lower) <= asked
    told = exact or error <= DOUBTFUL_GAP_SHARE * asked * size
    lost = f": rounding leaves {upper!r} in doubt by {error:.2g}, more than a thousandth of that gap"
    require(
        gap < math.inf and told, f"{status} to a gap of {asked:g}, but only {gap:g} is {name}{'' if told else lost}"
    )
    reached = asked * (1.0 + NEAR) + (8 * U + error / size if size else 0.0)
    require(gap <= reached, f"{status} to a gap of {asked:g}, but only {gap:g} is {name}")


def _stated_gap(document: Mapping[str, Any], gap: float, incumbent: StatedClassifier, bound: float) -> None:
    """The gap that the result states is the checker's: to `STATED_GAP_AGREEMENT`, and to what rounding may change."""
    require("gap" in document, "the result does not state its gap")
    if document["gap"] is None:
        return
    stated = number(document["gap"], "the gap")
    size = abs(incumbent.objective)
    known = math.isfinite(gap)
    require(known, f"the gap of the result is {document['gap']!r}, but there is none between {size!r} and {bound!r}")
    apart = NEAR * (1.0 + abs(bound) / size) + incumbent.error / size if size else 0.0
    same = abs(stated - gap) <= STATED_GAP_AGREEMENT * gap + apart
    require(same, f"the gap of the result is {stated!r}, but its objective and the certified bound give {gap!r}")
