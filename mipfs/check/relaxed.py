"""The relaxation of a result: its upper side is the value of (P) at a σ that the relaxation allows, recomputed.

    cᵀσ + ½ Σ w_j²/(Σ_g λ_g² σ_g) + L(m)   ≥   the value of the relaxation, for every w and b

σ is a mixture of selections of S, each with values of the extra variables that allow it: then the value is one over the
hull of S. Or it meets the rows of S itself, 0 ≤ σ ≤ 1; of a row of cardinality and forced atoms alone that is the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mipfs.check.classifier import place_weights, require_certain, value
from mipfs.check.rounding import NEAR, Array, Document, Integers, absent_or, number, require
from mipfs.check.statement import Statement
from mipfs.check.verdict import is_below_within_rounding, require_closed_gap
from mipfs.data.unit import times


def check_relaxation(document: Document, statement: Statement, bound: float) -> tuple[str, ...]:
    """Both sides of the relaxation of a result, and whether they meet where it says RELAXED; in words."""
    relaxed = document.get("relaxed")
    is_claimed = document["status"] == "RELAXED"
    require(not is_claimed or relaxed is not None, "RELAXED, but no relaxation stands in the result")
    if relaxed is None:
        return ()
    lower = absent_or(relaxed["lower"], -math.inf, "the relaxation's lower side")
    upper = absent_or(relaxed["upper"], math.inf, "the relaxation's upper side")
    require(
        is_below_within_rounding(lower, bound), f"the relaxation's lower side {lower!r} is not proven: it is {bound!r}"
    )
    shown = relaxed.get("weights") is not None and relaxed.get("intercept") is not None
    require(shown or not is_claimed, "RELAXED, but nothing shows the relaxation's upper side: no weights stand there")
    if upper == math.inf or not shown:
        require(not is_claimed, "RELAXED, but the relaxation has no upper side")
        return ()
    ids, sigma, over = _stated_sigma(statement, relaxed)
    at = place_weights(statement, ids, relaxed, upper)
    least, error = require_certain(*value(statement, ids, at, sigma), "the relaxation")
    holds = least <= upper + NEAR * abs(upper) + error
    require(holds, f"the relaxation's upper side is {upper!r}, but {least!r} where its σ and weights are")
    if is_claimed:
        require_closed_gap(
            "RELAXED", max(upper, least), error, bound, number(document["params"]["gap"], "the asked gap"), "shown"
        )
    lower, upper = (times(end, -2 * statement.data.exponent) for end in (lower, upper))
    return (f"{'no value' if lower == -math.inf else f'{lower:.8g}'} to {upper:.8g}, {over}  (recomputed)",)


def unshown_upper_side(document: Document) -> tuple[str, ...]:
    """What is said of a relaxation whose upper side nothing shows."""
    relaxed = document.get("relaxed")
    if relaxed is None or relaxed.get("upper") is None or relaxed.get("weights") is not None:
        return ()
    return ("the upper side of the relaxation, which is the word of the solver of its program",)


def _stated_sigma(statement: Statement, relaxed: Mapping[str, Any]) -> tuple[Integers, Array, str]:
    """Positions of the atoms with σ > 0, σ there, and what it is allowed by."""
    ids = statement.ids(relaxed["sigma"])
    sigma = np.array([number(one, "σ") for one in relaxed["sigma"].values()])
    require(np.all((sigma > 0.0) & (sigma <= 1.0)), "a σ of the relaxation is not above 0 and at most 1")
    if relaxed.get("mixture") is not None:
        return (*_mix_selections(statement, relaxed["mixture"], ids, sigma), "over the hull of all selections")
    values = {} if relaxed.get("extra") is None else dict(relaxed["extra"])
    require(values.keys() == statement.extra.keys(), "the relaxation lacks values of the extra variables")
    x = statement.witness((values[name] for name in statement.extra), fractional=True)
    broken = statement.holds(ids, x, sigma)
    require(not broken, f"the relaxation's σ is not allowed: {broken}")
    plain = not (statement.lb.size or statement.extra)
    derived = ", and what is derived from them," if statement.lb.size > len(statement.rows) else ""
    return ids, sigma, "over the hull of all selections" if plain else f"over the rows{derived} with 0 ≤ σ ≤ 1"


def _mix_selections(statement: Statement, mixture: Any, ids: Integers, sigma: Array) -> tuple[Integers, Array]:
    """σ = Σ share · selection, after every selection was found in S; it is the σ that is stated."""
    shares = np.array([number(one["share"], "a share") for one in mixture])
    total = math.fsum(shares.tolist())
    require(np.all(shares >= 0.0) and total > 0.0, "the shares of the relaxation's selections are no shares")
    mixed: dict[int, float] = {}
    for share, one in zip((shares / total).tolist(), mixture, strict=True):
        chosen = statement.ids(one["selected"])
        broken = statement.why_refused(chosen, one.get("extra"))
        require(not broken, f"a selection of the relaxation is not allowed: {broken}")
        for g in chosen.tolist():
            mixed[g] = mixed.get(g, 0.0) + share
    found = dict(zip(ids.tolist(), sigma.tolist(), strict=True))
    held = {g: part for g, part in mixed.items() if part > 0.0}
    same = held.keys() == found.keys() and all(abs(part - found[g]) <= NEAR * part for g, part in held.items())
    require(same, "the relaxation's σ is not the mixture of its selections")
    return np.array(sorted(held), dtype=np.int64), np.array([min(1.0, held[g]) for g in sorted(held)])
