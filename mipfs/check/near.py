"""The near-optimal supports of a result: in S, distinct, in order, with values between bounds; and none is missing.

Every support has the weights, and values of the extra variables, that show its objective and that it is allowed; the
dual vectors of the certificate bound it from below. The limit is U + g|U|, rounded up, U the incumbent's objective; or
the last objective listed, where the list has as many supports as were asked for.

The list is complete when every leaf proves more than the limit, or holds one selection only, and that is listed, or
holds nothing but ties of a listed support: it has that one fixed, whatever else it may take costs nothing, also in no
extra variable, and may have the weight 0, and its bound reaches that one's value. More features of that kind never
raise v(σ), so they have weight 0 there: the run counts them (`ties`), and lists them not. An objective that is told
from another one by less than `SAME_VALUE` is not told from it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from mipfs.check.classifier import StatedClassifier, evaluate_stated
from mipfs.check.dual_vectors import Duals
from mipfs.check.known import same
from mipfs.check.leaves import Fixings
from mipfs.check.rounding import (
    NEAR,
    Array,
    Integers,
    U,
    above,
    absent_or,
    below,
    gap_between,
    number,
    require,
    sum_below,
)
from mipfs.check.statement import Statement
from mipfs.check.verdict import STATED_GAP_AGREEMENT
from mipfs.check.workers import ALONE, LeafWorkers

SAME_VALUE = 2e-7
"""Up to here, relative, the values of two supports are not told apart: SVMs are solved to 1e-7."""
LISTED_ACCURACY = 1e-6
"""An objective is its support's value to this, relative: what the dual vectors must prove of it."""


def gap_above(objective: float, best: float) -> float:
    """(objective − best)/|best|: 0 where they are equal, inf at a best one of 0 otherwise."""
    return 0.0 if objective == best else (objective - best) / abs(best) if best else math.inf


class NearOptimal:
    """The list as it stands in the JSON; used as a visitor of the leaves it checks that it is complete.

    Parameters
    ----------
    statement : Statement
    stated : the entry of the JSON
    incumbent : StatedClassifier

    Attributes
    ----------
    limit : float, what belongs to the list is worth that at most; inf where none is asked for
    least : float, what is proven to be worth that at least is rightly not in the list
    """

    def __init__(self, statement: Statement, stated: Any, incumbent: StatedClassifier) -> None:
        self.statement = statement
        self.incumbent = incumbent
        self.complete = stated["complete"]
        self.gap = stated["gap"]
        self.size = stated["size"]
        entries = stated["supports"]
        typed = type(self.complete) is bool and type(self.size) in (int, type(None)) and isinstance(entries, list)
        require(typed, "the near-optimal supports are malformed")
        require(self.size is None or self.size >= 1, f"a list of {self.size} near-optimal supports was asked for")
        require(self.gap is None or number(self.gap, "the gap of the list") >= 0, "the gap of the list is negative")
        self.supports = [statement.ids(entry["selected"]) for entry in entries]
        self.values = [number(entry["objective"], "an objective") for entry in entries]
        self.sets = [frozenset(ids.tolist()) for ids in self.supports]
        self.listed = set(self.sets)
        require(len(self.listed) == len(entries), "a near-optimal support is listed twice")
        require(self.values == sorted(self.values), "the near-optimal supports are not in order")
        full = self.size is not None and len(entries) >= self.size
        require(not full or len(entries) == self.size, f"more than {self.size} near-optimal supports are listed")
        self.limit = self.least = math.inf
        self.extra_costs = list[Fraction]()
        if entries:
            self._set_limit(full)
            for k, entry in enumerate(entries):
                self._check(k, entry)
        self._check_share(stated["share"])

    def _set_limit(self, full: bool) -> None:
        """The limit, and what a support that is missing must be proven to be worth."""
        best = self.values[0]
        last = self.values[-1]
        same = abs(best - self.incumbent.objective) <= NEAR * abs(best) + self.incumbent.error
        require(same, f"the best near-optimal support has the objective {best!r}, the incumbent another")
        if self.gap is not None:
            self.limit = above(Fraction(best) + Fraction(self.gap) * abs(Fraction(best)))
            self.least = math.nextafter(self.limit, math.inf)
        if full and last <= self.limit:
            self.limit = last
            self.least = last - SAME_VALUE * abs(last)

    def _check(self, k: int, entry: Mapping[str, Any]) -> None:
        """One support: allowed, worth what it says by its weights, below the limit, and as far above the best."""
        whose = f"near-optimal support {k + 1}"
        ids = self.supports[k]
        best = self.values[0]
        objective = self.values[k]
        broken = self.statement.why_refused(ids, entry.get("extra"))
        require(not broken, f"{whose}: {broken}")
        extra = self._extra_cost(entry)
        self.extra_costs.append(extra)
        ties = entry.get("ties")
        require(ties is None or (type(ties) is int and ties >= 0), f"{whose}: {ties!r} supports add nothing to it")
        for name in ("weights", "intercept"):
            require(entry.get(name) is not None, f"{whose}: its {name} are not stated, so nothing shows its objective")
        found = evaluate_stated(self.statement, ids, entry, whose, extra)
        require(found.error <= LISTED_ACCURACY * abs(objective), f"{whose}: rounding leaves its objective in doubt")
        inside = objective <= self.limit + SAME_VALUE * abs(self.limit)
        require(inside, f"{whose}: its objective {objective!r} lies above the limit {self.limit!r}")
        gap = absent_or(entry["gap"], math.inf, "a gap")
        exact = gap_above(objective, best)
        right = gap == exact or abs(gap - exact) <= STATED_GAP_AGREEMENT * exact + 8 * U
        require(right, f"{whose}: the gap is {gap!r}, but its objective says otherwise")

    def _extra_cost(self, entry: Mapping[str, Any]) -> Fraction:
        """What the stated values of the extra variables cost; of a support that has one of each."""
        statement = self.statement
        if not statement.has_extra_costs:
            return Fraction(0)
        return statement.extra_cost(statement.witness(entry["extra"][name] for name in statement.extra))

    def _check_share(self, stated: Any) -> None:
        """In which share of the supports a feature stands."""
        times = Counter(self.statement.atoms.names[g] for ids in self.supports for g in ids.tolist())
        share = {name: count / len(self.supports) for name, count in times.items()}
        require(same(stated, share), "the shares of the features are not those of the near-optimal supports")

    def _bounds_of_supports(self, g: list[float], cost: Array) -> list[float]:
        """What a block of dual vectors proves of every support."""
        found = list[float]()
        for ids in self.supports:
            d = int(np.argmax(np.array(g) + cost[:, ids].sum(axis=1)))
            found.append(sum_below([g[d], *cost[d, ids].tolist()]))
        if self.statement.has_extra_costs:
            found = [sum_below([one, below(extra)]) for one, extra in zip(found, self.extra_costs, strict=True)]
        return found

    def bound_below(self, duals: Duals, workers: LeafWorkers = ALONE) -> tuple[str, ...]:
        """Compare the objectives with what the dual vectors prove of these supports; what was found, in words."""
        blocks = workers.each(
            lambda k: self._bounds_of_supports(*duals.block_of(k)), duals.n_blocks, duals.bytes_at_once
        )
        least = [-math.inf] * len(self.supports)
        for found in blocks:
            least = [max(pair) for pair in zip(least, found, strict=True)]
        worst = 0.0
        for k, (low, objective) in enumerate(zip(least, self.values, strict=True), 1):
            low = self.statement.reported(low if self.statement.has_extra_costs else max(low, 0.0))
            gap = gap_between(objective, low)
            shown = gap <= LISTED_ACCURACY
            require(
                shown, f"near-optimal support {k}: its objective is {objective!r}, but only {low!r} is proven of it"
            )
            worst = max(worst, gap)
        count = len(self.supports)
        complete = "no other is missing" if self.complete else "others may be missing"
        supports = (
            "1 near-optimal support, its objective" if count == 1 else f"{count} near-optimal supports, objectives"
        )
        return (f"{supports} within {worst:.2g} of what is proven; {complete}",)

    def __call__(self, fixed: Fixings, bound: float) -> None:
        """See a leaf: whether it may hold a support that belongs to the list and is not in it."""
        if not self.complete:
            return
        proven = self.statement.reported(bound)
        only = fixed.only
        if proven >= self.least or only in self.listed:
            return
        if only is not None and not self._may_be_allowed(only):
            return
        missing = not self._has_ties_only(fixed, bound)
        require(not missing, "the near-optimal supports are called complete, but the leaves leave room for others")

    def _has_ties_only(self, fixed: Fixings, bound: float) -> bool:
        """Whether all that a leaf holds is a listed support with features of weight 0; no value is below 0."""
        inside = set(fixed.inside[: fixed.n_inside].tolist())
        free = np.flatnonzero(fixed.state < 0) if fixed.n_inside < fixed.M else ()
        statement = self.statement
        dear = {j for j in (*inside, *free) if statement.is_no_tie(j)}
        proven = statement.reported(bound if statement.has_extra_costs else max(bound, 0.0))
        return any(
            objective - SAME_VALUE * abs(objective) <= proven and dear <= one <= inside
            for one, objective in zip(self.sets, self.values, strict=True)
        )

    def _may_be_allowed(self, only: frozenset[int]) -> bool:
        ids: Integers = np.array(sorted(only), dtype=np.int64)
        return not self.statement.holds(ids, None)
