"""Whether the claims of a result's JSON are true, by enumeration: it shares no code with the checker or the drivers.

The problem is read from the JSON alone, every selection is tried, and v(σ) comes from the reference SVMs of the tests.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import LinearConstraint, milp

from mipfs.data.instance import Instance
from tests import oracles
from tests.structural_oracles import labellings, structural_svm

Array = npt.NDArray[np.float64]
Chosen = frozenset[int]
NEAR = 1e-6
"""What the references are trusted to, relative."""
ALLOWANCE = Fraction(1, 2**40)
_KNOWN: dict[str, tuple[float, float]] = {}
"""v(σ) of every support that was solved."""


def _plain(y: Array) -> list[float]:
    return [float(v) for v in y]


class Truth:
    """The problem that a JSON states on some data, solved by enumeration."""

    def __init__(self, document: Mapping[str, Any], data: Instance) -> None:
        self.document, self.data, params = document, data, document["params"]
        self.X = (data.X.toarray() if data.is_sparse else np.array(data.X)) - data.center
        atoms = document.get("atoms") or {}
        names = list(data.feature_names)
        self.names = list(atoms.get("names") or names)
        listed = atoms.get("columns")
        self.columns = (
            [[names.index(n) for n in part] for part in listed] if listed else [[j] for j in range(len(names))]
        )
        scale = atoms.get("scale")
        self.scale = [1.0] * len(self.names) if scale is None else [float(v) for v in scale]
        lam = params["lambda"]
        self.cost = np.zeros(len(self.names))
        if isinstance(lam, dict):
            for name, value in lam.items():
                self.cost[self.names.index(name)] = value
        else:
            self.cost[:] = lam
        for name, value in params.get("penalty", {}).items():
            self.cost[self.names.index(name)] += value
        self.params, self.rho = params, params.get("margin", "unit") == "rho"
        weights = params.get("class_weight") or {}
        labels = data.labels.of(data.y)
        self.c = float(params["C"]) * (np.array([weights.get(str(one), 1.0) for one in labels]) * data.sample_weight)

    # the set S

    def allowed(self, shrink: float = 0.0) -> Iterator[Chosen]:
        """Every selection of S; with `shrink` only those that satisfy the rows by that much, relative."""
        p, M = len(self.names), self.params["M"]
        forced = [{self.names.index(name) for name in self.params.get(key, ())} for key in ("forced_in", "forced_out")]
        for size in range((p if M is None else min(M, p)) + 1):
            for chosen in itertools.combinations(range(p), size):
                if (
                    forced[0] <= set(chosen)
                    and not forced[1] & set(chosen)
                    and self.rows_hold(frozenset(chosen), shrink)
                ):
                    yield frozenset(chosen)

    def rows_hold(self, chosen: Chosen, shrink: float = 0.0) -> bool:
        """Whether the rows hold for some value of the extra variables."""
        extra = self.document.get("extra") or {}
        left = []
        for row in self.document["rows"]:
            sizes = [abs(Fraction(a)) for a in row["terms"].values()]
            largest = max(sizes, default=Fraction(0))
            ends = []
            for side, sign in (("lb", -1), ("ub", 1)):
                end = row[side]
                ends.append(
                    None
                    if end is None
                    else Fraction(end) + sign * (ALLOWANCE - Fraction(shrink)) * (largest + abs(Fraction(end)))
                )
            fixed = sum(
                (
                    Fraction(a)
                    for name, a in row["terms"].items()
                    if name not in extra and self.names.index(name) in chosen
                ),
                Fraction(0),
            )
            if any(name in extra and a for name, a in row["terms"].items()):
                left.append((row["terms"], fixed, ends))
            elif (ends[0] is not None and fixed < ends[0]) or (ends[1] is not None and fixed > ends[1]):
                return False
        return not left or self._extras_exist(left, extra)

    @staticmethod
    def _extras_exist(left: list[Any], extra: Mapping[str, Any]) -> bool:
        matrix = np.array([[float(terms.get(name, 0.0)) for name in extra] for terms, _, _ in left])
        low = [-np.inf if ends[0] is None else float(ends[0] - fixed) for _, fixed, ends in left]
        high = [np.inf if ends[1] is None else float(ends[1] - fixed) for _, fixed, ends in left]
        bounds = [
            [-np.inf if e["lb"] is None else e["lb"] for e in extra.values()],
            [np.inf if e["ub"] is None else e["ub"] for e in extra.values()],
        ]
        kinds = np.array([int(e["integer"]) for e in extra.values()])
        answer = milp(
            np.zeros(len(extra)), integrality=kinds, bounds=bounds, constraints=LinearConstraint(matrix, low, high)
        )
        return bool(answer.status == 0)

    # values

    def value(self, chosen: Chosen) -> tuple[float, float]:
        """An interval that holds the value of a selection, as the problem reports it."""
        key = json.dumps([self.data.sha256, self.data.scaling, self.params["loss"], self.params["bias"], _plain(self.c),
                          [[self.columns[g], self.scale[g]] for g in sorted(chosen)],
                          [self.params.get(name) for name in ("measure", "beta", "k")]])  # fmt: skip
        low, high = self._unit(key, chosen)
        low, high = low + self.cost[list(chosen)].sum(), high + self.cost[list(chosen)].sum()
        return (-0.25 / low if low > 0 else -np.inf, -0.25 / high) if self.rho else (low, high)

    def _unit(self, key: str, chosen: Chosen) -> tuple[float, float]:
        if key not in _KNOWN:
            parts = [self.X[:, self.columns[g]] * self.scale[g] for g in sorted(chosen)]
            Z = np.hstack(parts) if parts else np.empty((self.X.shape[0], 0))
            _KNOWN[key] = self._solve_one(Z)
        return _KNOWN[key]

    def _solve_one(self, Z: Array) -> tuple[float, float]:
        y, loss = self.data.y, self.params["loss"]
        if loss == "structural":
            losses, V = _labellings(
                self.params["measure"], tuple(y), self.params.get("k"), self.params.get("beta") or 1.0
            )
            value = structural_svm(Z, losses, V, float(self.params["C"]))[0]
            return value - NEAR * abs(value), value + NEAR * abs(value)
        found = oracles.svm_value(Z, y, self.c, bool(self.params["bias"]), loss)
        return found.lower, found.upper

    def optimum(self, shrink: float = 0.0) -> tuple[float, float]:
        """An interval that holds the optimal value; (inf, inf) when S is empty."""
        values = [self.value(chosen) for chosen in self.allowed(shrink)]
        return min((v[0] for v in values), default=np.inf), min((v[1] for v in values), default=np.inf)

    def achieved(self) -> float:
        """The objective at the stored weights and intercept, on the data as the user gave it."""
        data, ids = self.data, [self.data.feature_names.index(name) for name in self.document["weights"]]
        chosen = [self.names.index(name) for name in self.document["selected"]]
        user = np.array(list(self.document["weights"].values()), dtype=float)
        w = user * data.scale[ids]
        b = float(self.document["intercept"] + data.shift[ids] @ user)
        m = data.y * (self.X[:, ids] @ w + b)
        room = np.zeros(self.X.shape[1])
        for g in chosen:
            room[self.columns[g]] += self.scale[g] ** 2
        half = 0.5 * float(np.sum(w**2 / room[ids])) + float(self.cost[chosen].sum())
        if self.rho:
            rho = -2.0 * self.document["objective"]
            return half + 0.5 * float(self.c @ np.maximum(0.0, rho - m) ** 2) - rho
        if self.params["loss"] == "structural":
            losses, V = _labellings(
                self.params["measure"], tuple(data.y), self.params.get("k"), self.params.get("beta") or 1.0
            )
            return half + float(self.params["C"]) * max(0.0, float(np.max(losses - V @ (data.y * m))))
        terms = {
            "hinge": np.maximum(0.0, 1.0 - m),
            "squared-hinge": 0.5 * np.maximum(0.0, 1.0 - m) ** 2,
            "logistic": np.logaddexp(0.0, -m),
        }
        return half + float(self.c @ terms[self.params["loss"]])


@lru_cache(maxsize=64)
def _labellings(measure: str, y: tuple[float, ...], k: int | None, beta: float) -> tuple[Array, Array]:
    return labellings(measure, np.array(y), beta=beta, k=k)


def lies(document: Mapping[str, Any], honest: Mapping[str, Any], data: Instance) -> list[str]:
    """The claims of a JSON that are false; `honest` is the result it was made from, for what the data says."""
    truth, found = Truth(document, data), []
    status, bound, objective = document["status"], document["bound"], document["objective"]
    low, high = truth.optimum()
    if status == "INFEASIBLE":
        return [] if truth.optimum(shrink=1e-6)[0] == np.inf else ["INFEASIBLE, but there is a selection"]
    size = max(1e-10, abs(objective if objective is not None else high if np.isfinite(high) else 1.0))
    closed = 1.1e-12 * max(1.0, float(truth.c.sum()))
    if bound is not None and bound > high + NEAR * size:
        found.append(f"the bound {bound} lies above the optimum {high}")
    if objective is not None:
        chosen = frozenset(truth.names.index(name) for name in document["selected"])
        if chosen not in set(truth.allowed()):
            found.append("the selection is not allowed")
        if abs(truth.achieved() - objective) > NEAR * size:
            found.append(f"the objective is {truth.achieved()}, not {objective}")
        if status == "OPTIMAL" and objective - low > max(document["params"]["gap"] * size, closed) + NEAR * size:
            found.append(f"OPTIMAL, but {low} is reached")
    elif status in ("OPTIMAL", "FEASIBLE"):
        found.append(f"{status} without an objective")
    labels, own = document["labels"], honest["labels"]
    if labels.keys() != own.keys() or not all(_called_alike(labels[side], own[side]) for side in own):
        found.append("other labels")
    names = list(data.feature_names)
    used = {names[j] for name in document["selected"] for j in truth.columns[truth.names.index(name)]}
    if dict(document["columns"]) != {name: names.index(name) for name in used}:
        found.append("other columns")
    for what, right in (("shift", data.shift), ("scale", data.scale)):
        if dict(document["scaling"][what]) != {name: float(right[names.index(name)]) for name in used}:
            found.append(f"other {what}")
    if document["n_features"] != len(names):
        found.append("another number of features")
    relaxed = document.get("relaxed")
    if relaxed is not None and relaxed.get("lower") is not None and relaxed["lower"] > high + NEAR * size:
        found.append("the relaxation's lower side is wrong")
    return found + _near_lies(document, truth)


def _called_alike(one: object, other: object) -> bool:
    """Whether both call one label of a file, in which 1, 1.0 and "1" are one: JSON has one number for 1 and 1.0."""
    try:
        return float(str(one)) == float(str(other))
    except ValueError:
        return str(one) == str(other)


def _near_lies(document: Mapping[str, Any], truth: Truth) -> list[str]:
    near, found = document.get("near_optimal"), []
    if near is None:
        return []
    listed, worst = set(), -np.inf
    for entry in near["supports"]:
        chosen = frozenset(truth.names.index(name) for name in entry["selected"])
        low = truth.value(chosen)[0]
        if chosen in listed or not truth.rows_hold(chosen):
            found.append("a near-optimal support stands twice or is not allowed")
        if entry["objective"] < low - NEAR * max(1e-10, abs(low)):
            found.append(f"a near-optimal support has the value {low}, not {entry['objective']}")
        listed.add(chosen)
        worst = max(worst, entry["objective"])
    if near["complete"] and document["objective"] is not None:
        best = document["objective"]
        limit = np.inf if near["gap"] is None else best + near["gap"] * abs(best)
        if near["size"] is not None and len(listed) == near["size"]:
            limit = min(limit, worst)
        for chosen in truth.allowed(shrink=1e-6):
            low, high = truth.value(chosen)
            # One that adds features of weight 0 to a listed support is counted, not listed.
            counted = any(one < chosen and low >= truth.value(one)[0] * (1.0 - NEAR) - NEAR for one in listed)
            if chosen not in listed and not counted and high < limit - NEAR * (abs(limit) if np.isfinite(limit) else 1):
                found.append("a near-optimal support is missing")
    return found
