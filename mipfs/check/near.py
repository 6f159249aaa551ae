"""The near-optimal supports of a result: in S, distinct, in order, with values between bounds; and none is missing.

Their weights are not stored, so their objectives are not recomputed: every dual vector of the certificate bounds them
from below, and the incumbent's weights on their columns from above. The list is complete when every leaf whose bound
lies not above the limit holds one selection only, and that is listed, or nothing but ties of a listed support: it has
that one fixed, whatever else it may take costs nothing, and its bound reaches that one's value. More features never
raise v(σ), so they have weight 0 there.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from mipfs.check import classifier
from mipfs.check.classifier import Classifier
from mipfs.check.dual_vectors import Duals
from mipfs.check.leaves import Fixings
from mipfs.check.rounding import Integers, down, number, require
from mipfs.check.statement import Statement

EXACT = 2e-7
"""The values of near-optimal supports are exact to 1e-7, relative, and so is the limit."""


class NearOptimal:
    """The list as it stands in the JSON; used as a visitor of the leaves it checks that it is complete."""

    def __init__(self, statement: Statement, stated: Any, incumbent: Classifier) -> None:
        self.statement, self.incumbent, self.complete = statement, incumbent, stated["complete"]
        self.gap, self.size, entries = stated["gap"], stated["size"], stated["supports"]
        typed = type(self.complete) is bool and type(self.size) in (int, type(None)) and isinstance(entries, list)
        require(typed, "the near-optimal supports are malformed")
        self.supports = [statement.ids(entry["selected"]) for entry in entries]
        self.values = [number(entry["objective"], "an objective") for entry in entries]
        self.sets = [frozenset(ids.tolist()) for ids in self.supports]
        self.listed = set(self.sets)
        ties = all(type(entry.get("ties")) in (int, type(None)) for entry in entries)
        require(ties, "the number of ties of a near-optimal support is no number")
        require(len(self.listed) == len(entries), "a near-optimal support is listed twice")
        require(self.values == sorted(self.values), "the near-optimal supports are not in order")
        require(
            self.size is None or len(entries) <= self.size, f"more than {self.size} near-optimal supports are listed"
        )
        self.limit = math.inf
        if entries:
            self._check_values([number(entry["gap"], "a gap") for entry in entries])
        times = Counter(statement.atoms.names[g] for ids in self.supports for g in ids.tolist())
        share = {name: count / len(entries) for name, count in times.items()}
        require(dict(stated["share"]) == share, "the shares of the features are not those of the near-optimal supports")

    def _check_values(self, gaps: list[float]) -> None:
        best, statement = self.values[0], self.statement
        size = max(1e-10, abs(best))
        same = abs(best - self.incumbent.objective) <= 1e-9 * size + self.incumbent.error
        require(same, f"the best near-optimal support has the objective {best!r}, the incumbent another")
        if self.gap is not None:
            self.limit = best + number(self.gap, "the gap of the near-optimal supports") * abs(best)
        if self.size is not None and len(self.values) == self.size:
            self.limit = min(self.limit, self.values[-1])
        for k, (ids, objective, gap) in enumerate(zip(self.supports, self.values, gaps, strict=True), 1):
            once = ids.size == np.unique(ids).size
            broken = statement.holds(ids, None) if once else "a feature stands in it twice"
            require(not broken, f"near-optimal support {k}: {broken}")
            right = abs(gap - (objective - best) / size) <= 1e-9 * max(1.0, abs(gap))
            require(right, f"near-optimal support {k}: the gap is {gap!r}, but its objective says otherwise")
            inside = objective <= self.limit + EXACT * size
            require(
                inside, f"near-optimal support {k}: its objective {objective!r} lies above the limit {self.limit!r}"
            )
            upper, error = classifier.value(statement, ids, self.incumbent)
            require(
                objective <= upper + EXACT * abs(upper) + error, f"near-optimal support {k}: worth {upper!r} at most"
            )

    def bound_below(self, duals: Duals) -> None:
        """Compare the objectives with what the dual vectors prove of these supports."""
        least = [-math.inf] * len(self.supports)
        for _, g, cost in duals.blocks():
            for k, ids in enumerate(self.supports):
                values = np.array(g) + cost[:, ids].sum(axis=1)
                d = int(np.argmax(values))
                least[k] = max(least[k], down(math.fsum([g[d], *cost[d, ids].tolist()])))
        for k, (low, objective) in enumerate(zip(least, self.values, strict=True), 1):
            low = self.statement.reported(low)
            holds = objective >= low - EXACT * max(1e-10, abs(low))
            require(holds, f"near-optimal support {k}: the objective is {objective!r}, but {low!r} at least")

    @property
    def least(self) -> float:
        """What is proven to be at least so large belongs to no complete list."""
        if not self.complete:
            return -math.inf
        return math.nextafter(self.limit - EXACT * abs(self.limit), math.inf) if self.limit < math.inf else math.inf

    def __call__(self, fixed: Fixings, bound: float) -> None:
        """See a leaf: whether it may hold a support that belongs to the list and is not in it."""
        if self.statement.reported(bound) >= self.least or self._has_ties_only(fixed, bound):
            return
        only = fixed.only
        missing = only is None or (only not in self.listed and self._may_be_allowed(only))
        require(not missing, "the near-optimal supports are called complete, but the leaves leave room for others")

    def _has_ties_only(self, fixed: Fixings, bound: float) -> bool:
        """Whether all that a leaf holds is a listed support with features of weight 0; no value is below 0."""
        inside = set(fixed.inside[: fixed.n_inside].tolist())
        free = np.flatnonzero(fixed.state < 0) if fixed.n_inside < fixed.M else ()
        dear, level = {j for j in (*inside, *free) if self.statement.penalty[j] > 0.0}, max(bound, 0.0)
        proven = self.statement.reported(level)
        return any(
            objective - EXACT * abs(objective) <= proven and dear <= one <= inside
            for one, objective in zip(self.sets, self.values, strict=True)
        )

    def _may_be_allowed(self, only: frozenset[int]) -> bool:
        ids: Integers = np.array(sorted(only), dtype=np.int64)
        return not self.statement.holds(ids, None)
