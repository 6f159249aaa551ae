"""The checker: recomputes from the raw data all that a result and its certificate claim.

It shares no code with what found them: nothing of the package but `mipfs.instance` and `mipfs.readers` may be imported
here. Rounding: α = k·2^−q is exact; every sum of n products is off by at most γ_n Σ|terms| in whatever order it was
taken, γ_n = n·u/(1 − n·u), u = 2^−53; leaf sums are `math.fsum`, rounded down. Assumed: sqrt is correctly rounded, and
NumPy's log is within 4 ulp. The incumbent satisfies the rows as `mipfs.rows` defines it.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import xlogy

from mipfs.instance import Instance
from mipfs.readers import duals as stored

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Arrays = Mapping[str, npt.NDArray[Any]]
Document = Mapping[str, Any]

U = 2.0**-53
ROWS_HOLD, VALUES_HOLD, OBJECTIVE, GAP = Fraction(1, 2**39), Fraction(1, 2**47), 1e-9, 1e-9
"""Allowances, relative: on a row at the incumbent (to its coefficients and bound; to its terms of extra variables), on
its recomputed objective, on an asked gap."""
CLOSED, ROUNDING = 1.03e-12, 2e-14
"""objective − bound ≤ CLOSED·max(1, Σ c_i) counts as no gap (3% for rounding); a claim may round off ROUNDING·Σ c_i."""
BLOCK = 1 << 22
"""Numbers in a block of dual vectors."""
REFUTED = -2


class Rejected(Exception):
    """What a certificate does not prove, in one line."""


def require(holds: Any, reason: str) -> None:
    """Reject unless it holds."""
    if not holds:
        raise Rejected(reason)


@dataclass(frozen=True)
class Report:
    """What the checker found.

    Attributes
    ----------
    accepted, reason : bool, and what is wrong in one line, "" when accepted
    bound : float, the certified lower bound: that of the certificate, after all leaves were found to reach it
    objective, gap : float, of (P) at the selected features, recomputed, inf without any; relative to the bound
    result_bound : float, the result's own; it may exceed the certified one only for a relaxation over rows
    """

    accepted: bool
    reason: str
    bound: float = -math.inf
    objective: float = math.inf
    gap: float = math.inf
    result_bound: float = -math.inf
    n_leaves: int = 0
    n_duals: int = 0
    seconds: float = 0.0


def check(document: Document, arrays: Arrays, data: Instance, reading: type[Statement] | None = None) -> Report:
    """Check a result and its proof against the data.

    Parameters
    ----------
    document : mapping, the JSON of a result with its entry "certificate"
    arrays : mapping, what the sidecar holds
    data : Instance, as the problem was solved: the same file, scaled in the same way
    reading : subclass of Statement, optional, for a loss that is none of `Statement.LOSSES`
    """
    begin = time.perf_counter()
    try:
        found = _check(document, arrays, data, reading or Statement)
    except Rejected as reason:
        found = {"accepted": False, "reason": str(reason)}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        found = {"accepted": False, "reason": f"the certificate is malformed: {type(error).__name__}: {error}"}
    return Report(**found, seconds=time.perf_counter() - begin)


def _check(document: Document, arrays: Arrays, data: Instance, reading: type[Statement]) -> dict[str, Any]:
    status, kind, certificate = document["status"], document["scaling"]["kind"], document["certificate"]
    require(document["data_sha256"] == data.sha256, "this is other data than the result was found on")
    require(kind == data.scaling, f"the result is about data with scale {kind!r}, not {data.scaling!r}")
    require(certificate["kind"] in ("tree", "relaxation"), f"no certificate of kind {certificate['kind']!r} is known")
    statement, bound = reading(document, data), _or(certificate["bound"], math.inf)
    objective, tree = statement.objective(document), Tree(arrays, data.n_features)
    proven, leaf = least_bound(statement, tree, arrays)
    require(proven >= bound, f"leaf {leaf} proves only {proven!r}, less than the claimed bound {bound!r}")
    require((status == "INFEASIBLE") == (bound == math.inf), f"the status is {status}, but the bound {bound!r}")
    size = max(1e-10, abs(objective)) if math.isfinite(objective) else 1.0
    closed, slack = CLOSED * max(1.0, float(statement.c.sum())), GAP * size + ROUNDING * float(statement.c.sum())
    require(not bound - objective > slack, f"the bound {bound!r} lies above the objective {objective!r}")
    require(status not in ("OPTIMAL", "FEASIBLE") or objective < math.inf, f"{status}, but without an objective")
    asked, left = float(certificate["gap"]), objective - bound
    meets = status != "OPTIMAL" or (0 <= asked < 1 and left <= max((asked + GAP) * size, closed + 2 * statement.error))
    require(meets, f"OPTIMAL to a gap of {asked:g}, but only {left / size:g} is certified")
    said = _or(document["bound"], -math.inf)
    waived = certificate["kind"] == "relaxation" and status != "OPTIMAL" and len(statement.rows) > 0
    limit = objective if waived else bound
    covered = said == -math.inf or said - limit <= slack + GAP * abs(said)
    require(covered, f"the result's bound {said!r} lies above the certified one, {limit!r}")
    report = {"accepted": True, "reason": "", "bound": bound, "objective": objective, "gap": max(0.0, left) / size}
    return report | {"result_bound": said, "n_leaves": (len(tree.dual) + 1) // 2, "n_duals": len(arrays["dual_q"])}


def _or(value: Any, absent: float) -> float:
    return absent if value is None else float(value)


class Statement:
    """(P) as the JSON states it, on the data: loss, weights c_i, penalties and S."""

    LOSSES: tuple[str, ...] = ("hinge", "squared-hinge", "logistic")

    def __init__(self, document: Document, data: Instance) -> None:
        params, C, M = document["params"], document["params"]["C"], document["params"]["M"]
        self.data, self.p, self.loss, self.bias = data, data.n_features, params["loss"], bool(params["bias"])
        known = self.loss in self.LOSSES and params.get("margin", "unit") == "unit"
        require(known, f"no certificate is known for the loss {self.loss!r} with this margin")
        typed = type(params["bias"]) is bool and type(C) in (int, float) and type(M) in (int, type(None))
        require(typed, "bias is true or false, C a number, M a whole one or null; the parameters say otherwise")
        self.c, self.error = float(C) * data.sample_weight, 0.0
        require(0 < float(self.c.min()) <= float(self.c.sum()) < math.inf, f"C = {C!r} is no positive number")
        require(dict(params.get("penalty", {})) == dict(data.penalty), "the data has another [penalty] than the result")
        lam, self.penalty = params["lambda"], np.zeros(self.p)
        by_name = isinstance(lam, Mapping)
        self.penalty[self.ids(lam) if by_name else slice(None)] = list(lam.values()) if by_name else lam
        self.penalty[self.ids(data.penalty)] += list(data.penalty.values())
        require(np.all(np.isfinite(self.penalty) & (self.penalty >= 0)), "a penalty is negative or no number")
        self.forced, out = np.full(self.p, -1, dtype=np.int8), self.ids(params.get("forced_out", ()))
        self.forced[self.ids(params.get("forced_in", ()))] = 1
        self.M = -1 if np.any(self.forced[out] == 1) else self.p if M is None else M  # forced in and out: nothing fits
        self.forced[out] = 0
        self.rows, self.extra = document["rows"], document.get("extra", {})
        require(not any(name in data.index for name in self.extra), "an extra variable is called as a feature is")
        places, at, values = {name: self.p + k for k, name in enumerate(self.extra)}, [], []
        for r, row in enumerate(self.rows):
            at += [(r, places[name] if name in places else self.ids((name,))[0]) for name in row["terms"]]
            values += list(row["terms"].values())
        i, j = np.array(at, dtype=np.int64).reshape(-1, 2).T
        self.A = sparse.csc_array((np.array(values, dtype=float), (i, j)), shape=(len(self.rows), self.p + len(places)))
        require(np.all(np.isfinite(self.A.data)), "a row has a coefficient that is no number")
        self.lb, self.ub = _ends(self.rows)
        self.low, self.high = _ends(self.extra.values())

    def ids(self, names: Any) -> Integers:
        """Positions of the named features."""
        for name in names:
            require(name in self.data.index, f"the data has no feature {name!r}")
        return np.array([self.data.index[name] for name in names], dtype=np.int64)

    def objective(self, document: Document) -> float:
        """The objective at the selected features with the stored weights, after their membership in S."""
        if document["objective"] is None:
            return math.inf
        data, claimed, total = self.data, float(document["objective"]), float(self.c.sum())
        chosen, ids, sigma = self.ids(document["selected"]), self.ids(document["weights"]), np.zeros(self.p)
        sigma[chosen] = 1.0
        require(chosen.size == sigma.sum() <= self.M, f"{chosen.size} features are selected, {self.M} are allowed")
        require(np.all((self.forced < 0) | (self.forced == sigma)), "the selected features contradict the forced ones")
        x = np.array([one["value"] for one in self.extra.values()], dtype=float)
        whole = np.array([bool(one["integer"]) for one in self.extra.values()], dtype=bool)
        slack = float(ROWS_HOLD) * np.abs(x)
        require(np.all((x >= self.low - slack) & (x <= self.high + slack)), "an extra variable lies outside its bounds")
        require(np.all(~whole | (x == np.rint(x))), "an extra variable is no whole number")
        at, A = np.concatenate([sigma, x]), self.A.tocsr()
        require(np.all(np.isfinite(x)), "an extra variable has no value")
        for row, low, high, start, stop in zip(self.rows, self.lb, self.ub, A.indptr, A.indptr[1:], strict=False):
            columns, a = A.indices[start:stop], A.data[start:stop]
            pairs = zip(a.tolist(), at[columns].tolist(), strict=True)
            terms = [Fraction(one) * Fraction(value) for one, value in pairs]
            size = float(np.abs(a[columns < self.p]).max(initial=0.0))
            room = VALUES_HOLD * sum(abs(term) for term, j in zip(terms, columns, strict=True) if j >= self.p)
            holds = low == -math.inf or sum(terms) >= Fraction(low) - room - ROWS_HOLD * Fraction(size + abs(low))
            holds &= high == math.inf or sum(terms) <= Fraction(high) + room + ROWS_HOLD * Fraction(size + abs(high))
            require(holds, f"the selected features violate the row {row['name']!r}")
        require(np.all(sigma[ids] == 1.0), "a feature that is not selected has a weight")
        weights, b = np.array(list(document["weights"].values()), dtype=float), float(document["intercept"])
        w, moved = weights * data.scale[ids], weights * data.shift[ids]
        far = abs(b) + float(np.abs(moved).sum())
        b += math.fsum(moved)
        none = self.bias or abs(b) * total <= 16 * U * total * far + OBJECTIVE * max(1e-10, abs(claimed))
        require(none, "there is an intercept, but the problem has no bias")
        b, far, center = (b, far, data.center[ids]) if self.bias else (0.0, 0.0, data.center[ids])
        Z, far = data.X[:, ids], far + float(np.abs(center) @ np.abs(w))
        m = data.y * (np.asarray(Z @ w).ravel() + (b - float(center @ w)))
        off = (ids.size + 16) * U * (np.asarray(abs(Z) @ np.abs(w)).ravel() + far)
        require(np.all(np.isfinite(m + off)), "a margin is beyond floating point")
        loss, self.error = self.loss_at(m, off)
        value = float(self.penalty[chosen].sum() + 0.5 * w @ w + loss)
        meets = abs(value - claimed) <= OBJECTIVE * max(1e-10, abs(value)) + self.error
        require(meets, f"the objective of the selected features is {value!r}, not {claimed!r}")
        return max(value, claimed)

    def loss_at(self, m: Array, off: Array) -> tuple[float, float]:
        """L at margins m (n,), and how far it is off when they are off by at most `off` (n,)."""
        short = np.maximum(0.0, 1.0 - m)
        losses = {"hinge": short, "squared-hinge": 0.5 * short * short, "logistic": np.logaddexp(0.0, -m)}
        return float(self.c @ losses[self.loss]), float(self.c @ (np.maximum(1.0, short + off) * off))

    def duals(self, arrays: Arrays) -> Duals:
        """The dual vectors of the sidecar."""
        return Duals(self, arrays)

    def reduced(self, cost: Array, y: Array) -> tuple[list[float], Array]:
        """Numbers whose sum is at most y'(row bounds) + the extra variables' part, and (c − ½ s − A'y) rounded down."""
        require(y.shape == self.lb.shape and np.all(np.isfinite(y)), f"multipliers of shape {y.shape} fit no rows")
        limit = np.where(y > 0, self.lb, self.ub)
        y = np.where(np.isfinite(limit), y, 0.0)  # one that points to an absent bound counts for nothing
        parts = y * np.where(np.isfinite(limit), limit, 0.0)
        constants = [*parts, -2 * U * float(np.abs(parts).sum())]
        reduced = cost - (self.A.T @ y)[: self.p]
        size = (abs(self.A).T @ np.abs(y))[: self.p] + np.abs(cost)
        for k in range(len(self.extra)):  # exactly: one without a bound needs its reduced cost to be zero
            column = self.A[:, [self.p + k]].toarray().ravel().tolist()
            exact = -sum((Fraction(a) * Fraction(b) for a, b in zip(column, y.tolist(), strict=True)), Fraction(0))
            end = float(self.low[k] if exact > 0 else self.high[k])
            require(exact == 0 or math.isfinite(end), "multipliers leave an extra variable without a bound")
            constants.append(math.nextafter(float(exact * Fraction(end)), -math.inf) if exact else 0.0)
        return constants, np.nextafter(reduced - 1.01 * (y.size + 4) * U * size, -math.inf)


def _ends(given: Iterable[Mapping[str, Any]]) -> tuple[Array, Array]:
    ends = [(_or(one["lb"], -math.inf), _or(one["ub"], math.inf)) for one in given]
    low, high = np.array(ends, dtype=float).reshape(-1, 2).T
    return low, high


class Tree:
    """The tree of fixings: every node reached once, two children on a feature that is not fixed above."""

    def __init__(self, arrays: Arrays, p: int) -> None:
        require(int(arrays["version"][0]) == 1, "a certificate of another version; this checks version 1")
        for name, array in arrays.items():
            require(array.dtype.kind in "iu" or name in ("multipliers", "dual_top"), f"{name!r} holds no integers")
        feature, children = arrays["feature"].tolist(), arrays["children"].tolist()
        self.dual, self.multiplier = arrays["dual"].tolist(), arrays["multiplier"].tolist()
        require({*map(len, (children, self.dual, self.multiplier))} == {len(feature)}, "a node is incomplete")
        n_duals, n_multipliers = len(arrays["dual_q"]), len(arrays["multipliers"])
        self.steps: list[tuple[int, int]] = []  # (feature, value) fixes, (feature, value - 2) undoes, (-1, node): leaf
        reached, on_path, stack = [False] * len(feature), [False] * p, [(-1, 0, 0)]
        hole = "the leaves do not cover all selections: node"
        while stack:
            j, value, node = stack.pop()
            if value < 0:
                on_path[j] = False
                self.steps.append((j, value))
                continue
            require(0 <= node < len(feature) and not reached[node], f"{hole} {node} is absent or reached twice")
            reached[node] = True
            if j >= 0:
                require(j < p and not on_path[j], f"a split on feature {j}, which does not exist or is fixed above")
                on_path[j] = True
                self.steps.append((j, value))
                stack.append((j, value - 2, -1))
            if feature[node] >= 0:
                stack += [(feature[node], 1, children[node][1]), (feature[node], 0, children[node][0])]
                continue
            require(self.dual[node] == REFUTED or 0 <= self.dual[node] < n_duals, f"{hole} {node} has no dual vector")
            require(-1 <= self.multiplier[node] < n_multipliers, f"leaf {node} has multipliers that do not exist")
            self.steps.append((-1, node))
        require(all(reached), "a node is not part of the tree")


class Fixings:
    """The features fixed on the way to a leaf, and the minimum over what they leave."""

    def __init__(self, statement: Statement) -> None:
        self.forced, self.state, self.M = statement.forced.tolist(), statement.forced.copy(), statement.M
        self.inside = np.concatenate([np.flatnonzero(self.state == 1), np.zeros(statement.p + 1, dtype=np.int64)])
        self.n_inside, self.conflicts = int((self.state == 1).sum()), 0

    def step(self, j: int, code: int) -> None:
        """Fix feature j to 0 or 1, or undo that: -2 or -1."""
        change, value = -1 if code < 0 else 1, code % 2
        if self.forced[j] >= 0:
            self.conflicts += change * (self.forced[j] != value)
            return
        self.state[j] = value if change > 0 else -1
        self.inside[self.n_inside] = j
        self.n_inside += change * value

    def terms(self, cost: Array, order: Integers) -> Array:
        """Terms of min over the selections left, Σσ ≤ M, of cost'σ; `order` sorts the negative costs."""
        free = order[self.state[order] < 0][: self.M - self.n_inside]
        return np.concatenate([cost[self.inside[: self.n_inside]], cost[free]])


class Duals:
    """The dual vectors: feasible as integers, and what they prove before anything is fixed."""

    def __init__(self, statement: Statement, arrays: Arrays) -> None:
        self.statement, self.arrays, self.count = statement, arrays, len(arrays["dual_q"])
        X, self.y, self.n = statement.data.X, statement.data.y, statement.data.n_samples
        step, self.gamma = max(1, BLOCK // self.n), 1.01 * (self.n + 8) * U
        self.norms = np.concatenate([_norms(X[:, j : j + step]) for j in range(0, statement.p, step)])
        self.transposed = X.T.tocsr() if sparse.issparse(X) else None

    def blocks(self) -> Iterator[tuple[range, list[float], Array]]:
        """Positions, g(α) rounded down and c − ½ s(α) rounded down (B, p) of block after block."""
        size = max(1, BLOCK // max(self.n, self.statement.p))
        for start in range(0, self.count, size):
            ids = range(start, min(start + size, self.count))
            q = self.arrays["dual_q"][ids.start : ids.stop].astype(np.int64)
            require(np.all(np.abs(q) <= 900), "a dual vector lies on a grid that floating point does not reach")
            g, v, total = self.block(ids, q)
            yield ids, [math.nextafter(value, -math.inf) for value in g], self._costs(v, total)

    def block(self, ids: range, q: Integers) -> tuple[Array, Array, Array]:
        """g(α), not too large by more than an ulp, v (B, n) up to 4 ulp, and Σ_i v_i."""
        k = np.array([stored.decoded(self.arrays, d, self.n) for d in ids])
        wide = np.any((k < 0) | (k > min(2**53, 2**62 // self.n)), axis=1)
        require(not wide.any(), f"dual vector {ids[wide.argmax()]} is negative somewhere, or too wide for exact sums")
        if self.statement.loss != "squared-hinge":
            for row, i in np.argwhere(k > np.floor(np.ldexp(self.statement.c, q[:, None])))[:1]:
                raise Rejected(
                    f"dual vector {ids[row]} leaves its box at sample {i + 1}: it exceeds C times the weight"
                )
        balance = k @ self.y.astype(np.int64)
        off = int(np.argmax(balance != 0))
        feasible = not (self.statement.bias and balance.any())
        require(feasible, f"dual vector {ids[off]} does not satisfy y'alpha = 0: it is {balance[off]}·2^-{q[off]}")
        alpha, sums = np.ldexp(k.astype(float), -q[:, None]), np.ldexp(k.sum(axis=1).astype(float), -q)
        return self._values(alpha, sums), alpha * self.y, np.ldexp(balance.astype(float), -q)

    def _values(self, alpha: Array, sums: Array) -> Array:
        """g(α), less its rounding error; `sums` is Σα, correctly rounded."""
        c, n = self.statement.c, self.n
        if self.statement.loss == "hinge":
            return sums
        if self.statement.loss == "squared-hinge":  # Σα − Σα²/(2c)
            squares = np.sum(alpha * alpha / (2.0 * c), axis=1)
            return np.asarray(sums - squares - 1.01 * (n + 8) * U * (sums + squares))
        rest = c - alpha  # c·(entropy of α/c): c − α, both quotients and both logs are off by a few ulp each
        terms = -xlogy(alpha, alpha / c), -xlogy(rest, rest / c)
        size = (np.abs(terms[0]) + np.abs(terms[1])).sum(axis=1)
        return np.asarray((terms[0] + terms[1]).sum(axis=1) - 1.01 * (n + 16) * U * size - 8 * U * c.sum())

    def _costs(self, v: Array, total: Array) -> Array:
        """c − ½ s, rounded down, (B, p): |computed ω − exact ω| ≤ γ_n ‖v‖ ‖x_j‖, and the centre's part."""
        X, center = self.statement.data.X, self.statement.data.center
        omega = v @ X if self.transposed is None else np.ascontiguousarray((self.transposed @ v.T).T)
        radius = self.gamma * np.outer(_norms(v.T), self.norms) + self.n * 2.0**-1074
        if np.any(center) and not self.statement.bias:  # with a bias the total is zero
            shift, most = np.outer(total, center), np.outer(np.abs(v).sum(axis=1), np.abs(center))
            radius += 4 * U * (np.abs(omega) + np.abs(shift)) + self.gamma * most
            omega -= shift
        size = np.abs(omega) + radius
        lifted = 0.5 * size * size * (1.0 + 8 * U) + 2.0**-1060  # the last for what underflows
        return np.asarray(np.nextafter(self.statement.penalty - lifted, -math.inf))


def _norms(X: Any) -> Array:
    """Euclidean norms of the columns, not too small by more than the 1% that γ leaves for it, even with underflow."""
    largest = float(np.abs(X.data if sparse.issparse(X) else X).max(initial=0.0)) or 1.0
    squares = np.asarray((abs(X / largest) ** 2).sum(axis=0), dtype=float).ravel()
    return np.asarray(largest * (np.sqrt(squares) + math.sqrt(X.shape[0]) * 2.0**-500))


def least_bound(statement: Statement, tree: Tree, arrays: Arrays) -> tuple[float, int]:
    """The least bound of all leaves, and its leaf; inf when no leaf holds a selection."""
    least, where = math.inf, -1
    refuted = range(REFUTED, REFUTED + 1), [0.0], np.zeros((1, statement.p))  # a Farkas ray bounds no cost at all
    for ids, g, cost in itertools.chain([refuted], statement.duals(arrays).blocks()):
        fixed = Fixings(statement)
        sorted_once: dict[tuple[int, int], tuple[list[float], Array, Integers]] = {}
        for j, value in tree.steps:
            if j >= 0:
                fixed.step(j, value)
                continue
            key = dual, multiplier = tree.dual[value], tree.multiplier[value]
            if dual not in ids or fixed.conflicts or fixed.n_inside > fixed.M:  # or it holds no selection
                continue
            if key not in sorted_once:
                if len(sorted_once) * statement.p > BLOCK:
                    sorted_once.clear()
                row, y = cost[dual - ids.start], arrays["multipliers"]
                constants, row = statement.reduced(row, y[multiplier]) if multiplier >= 0 else ([], row)
                row = np.where(
                    np.isnan(row), -np.inf, row
                )  # of forged multipliers, or of columns beyond floating point
                negative = np.flatnonzero(row < 0)
                sorted_once[key] = constants, row, negative[np.argsort(row[negative], kind="stable")]
            constants, reduced, order = sorted_once[key]
            bound = math.fsum([g[dual - ids.start], *constants, *fixed.terms(reduced, order).tolist()])
            bound = math.nextafter(bound, -math.inf) if bound == bound else -math.inf
            require(dual != REFUTED or bound > 0.0, f"nothing shows that leaf {value} holds no selection, as it says")
            if dual != REFUTED and bound < least:
                least, where = bound, value
    return least, where
