"""A seeded generator of small problems, of every kind that a driver must solve exactly.

A `Case` is plain data: the references work from it directly (`Case.scaled`, `Case.allowed`), the code under test
from `Case.problem`. A new kind of data or of row joins with one function and one line in a table below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tests.oracles import ExtraVariable, LinearRow, Support, allowed_supports

Array = npt.NDArray[np.float64]
Rng = np.random.Generator
Scaling = Literal["none", "standard", "unit"]
Route = Literal["data", "problem", "matrix"]
RowSet = tuple[list[LinearRow], list[ExtraVariable]]

LOSSES: tuple[str, ...] = ("hinge", "squared-hinge", "logistic")
"""The losses that cases draw from."""


def scaled_as(X: Array, scale: Scaling, weight: Array | None = None) -> Array:
    """The contract's scalings, written again: weighted mean 0 and variance 1, or unit norm; constant columns stay."""
    if scale == "standard":
        share = np.full(len(X), 1.0 / len(X)) if weight is None else weight / weight.sum()
        centred = X - share @ X
        varies = np.ptp(X, axis=0) > 0
        deviation = np.sqrt(share @ centred**2)
        return np.where(varies, centred / np.where(varies, deviation, 1.0), X)
    if scale == "unit":
        norms = np.sqrt((X**2).sum(axis=0))
        return np.asarray(X / np.where(norms > 0, norms, 1.0))
    return X


@dataclass(frozen=True, eq=False)
class Case:
    """One small problem.

    Attributes
    ----------
    X : (n, p) ndarray, as a user would give it
    y : (n,) ndarray of {-1.0, +1.0}
    names : tuple of p str
    penalty : (p,) ndarray, the whole fixed cost c
    data_penalty : mapping, the part of it that comes with the data
    lam : float, sequence or mapping, the rest
    route : how the rows reach the problem: with the data, as `Rows`, or through `with_rows`
    start : whether the driver is given an allowed support to begin from
    factors : tuple of float, what the problem's rows are multiplied by; the references see the plain rows
    units : tuple of float, the units in which the problem has the continuous extra variables
    tags : what it is made of, for the count at the end
    """

    seed: int
    X: Array
    y: Array
    names: tuple[str, ...]
    scale: Scaling
    storage: Literal["dense", "csc"]
    sample_weight: Array | None
    C: float
    M: int | None
    bias: bool
    loss: str
    lam: Any
    data_penalty: Mapping[str, float]
    penalty: Array
    forced_in: tuple[str, ...]
    forced_out: tuple[str, ...]
    rows: tuple[LinearRow, ...]
    extras: tuple[ExtraVariable, ...]
    route: Route
    start: bool
    tags: tuple[str, ...]
    factors: tuple[float, ...] = ()
    units: tuple[float, ...] = ()

    @cached_property
    def scaled(self) -> Array:
        """X after the scaling and centring, (n, p), dense."""
        return scaled_as(self.X, self.scale, self.sample_weight)

    @cached_property
    def c_i(self) -> Array:
        """C times the sample weights, (n,)."""
        return self.C * (np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight)

    @cached_property
    def allowed(self) -> list[Support]:
        """Every allowed support."""
        return allowed_supports(self.names, self.M, self.rows, self.forced_in, self.forced_out, self.extras)

    def problem(self) -> Any:
        """The same as a `mipfs.Problem`."""
        from mipfs.data.instance import Instance, Row, SelectDefaults
        from mipfs.problem import Problem
        from mipfs.selection.selection import Extras, Rows

        rows = [Row(row.name, row.terms, row.lb, row.ub, f"case {self.seed}") for row in self._written()]
        with_data = self.route == "data" and not self.extras
        data = Instance.from_arrays(
            sparse.csc_array(self.X) if self.storage == "csc" else self.X,
            self.y,
            feature_names=self.names,
            scale=self.scale,
            sample_weight=self.sample_weight,
            penalty=self.data_penalty,
            rows=rows if with_data else (),
            select=SelectDefaults(self.M, self.forced_in, self.forced_out) if with_data else None,
        )
        plain: dict[str, Any] = {"loss": self.loss, "bias": self.bias, "C": self.C, "lam": self.lam}
        if with_data:
            return Problem(data, **plain)
        forced: dict[str, Any] = {"M": self.M, "forced_in": self.forced_in, "forced_out": self.forced_out}
        if self.route == "matrix" and self.rows and not self.extras:
            A = np.array([[row.terms.get(name, 0.0) for name in self.names] for row in rows])
            lb, ub = np.array([row.lb for row in rows]), np.array([row.ub for row in rows])
            given = _unsummed(A) if self.factors else A
            return Problem(data, **plain, **forced).with_rows(given, lb, ub, [row.name for row in rows])
        extra = Extras(
            tuple(e.name for e in self.extras),
            np.array([e.lb * self._unit(e) for e in self.extras]),
            np.array([e.ub * self._unit(e) for e in self.extras]),
            np.array([e.integer for e in self.extras], dtype=bool),
        )
        compiled = Rows.of(rows, data.index, extra if self.extras else None)
        return Problem(data, **plain, **forced, rows=compiled)

    def _unit(self, extra: ExtraVariable) -> float:
        return dict(zip((e.name for e in self.extras), self.units, strict=False)).get(extra.name, 1.0)

    def _written(self) -> list[LinearRow]:
        """The rows as the problem has them, in factors and units."""
        units = {extra.name: self._unit(extra) for extra in self.extras}
        factors = self.factors or (1.0,) * len(self.rows)
        return [
            LinearRow(
                row.name,
                {name: a * factor / units.get(name, 1.0) for name, a in row.terms.items()},
                row.lb * factor,
                row.ub * factor,
            )
            for row, factor in zip(self.rows, factors, strict=True)
        ]


def badly_scaled(seed: int) -> Case:
    """`case` with rows multiplied by 1e-9 … 1e12, extra variables in other units, and entries that are not summed."""
    plain, rng = case(seed), np.random.default_rng([10, seed])
    units = [1.0 if extra.integer else 10.0 ** int(rng.integers(-10, 11)) for extra in plain.extras]
    factors = tuple((10.0 ** rng.integers(-9, 13, len(plain.rows))).tolist())
    route: Route = "problem" if rng.random() < 0.5 or plain.extras else "matrix"
    return replace(plain, factors=factors, units=tuple(units), route=route, tags=(*plain.tags, "badly scaled"))


def _unsummed(A: Array) -> Any:
    """A as a sparse matrix with every entry in two parts."""
    r, p = A.shape
    columns = np.tile(np.repeat(np.arange(p), 2), r)
    parts = np.stack([1.5 * A, -0.5 * A], axis=2).reshape(-1)
    return sparse.csr_array((parts, columns, 2 * p * np.arange(r + 1)), shape=A.shape)


# Data: each function returns (n, p) values and the scores whose signs become labels ------------------------


def _gaussian(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    X = rng.standard_normal((n, p))
    return X, X @ rng.standard_normal(p) + rng.standard_normal(n)


def _separable(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    X = rng.standard_normal((n, p))
    w = rng.standard_normal(p) * (rng.random(p) < 0.6)
    return X, X @ w


def _noise(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    return rng.standard_normal((n, p)), rng.standard_normal(n)


def _duplicates(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    """Some columns repeated, negated or doubled; some samples repeated, with labels of their own."""
    X, scores = _gaussian(rng, n, p)
    for _ in range(1 + p // 3):
        a, b = rng.integers(p, size=2)
        X[:, a] = X[:, b] * rng.choice([1.0, 1.0, -1.0, 2.0])
    for _ in range(n // 5):
        a, b = rng.integers(n, size=2)
        X[a] = X[b]
    return X, scores


def _constants(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    """Constant and zero columns among others."""
    X, scores = _gaussian(rng, n, p)
    for j in rng.integers(p, size=1 + p // 3):
        X[:, j] = rng.choice([0.0, 0.0, 1.0, -2.5, 0.1])
    return X, scores


def _binary(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    X = (rng.random((n, p)) < rng.uniform(0.1, 0.6, p)).astype(float)
    return X, X @ rng.standard_normal(p) + 0.5 * rng.standard_normal(n)


def _integers(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    """Small integers, full of ties, labelled by an integer rule."""
    X = rng.integers(-2, 3, size=(n, p)).astype(float)
    return X, X @ rng.integers(-1, 2, size=p).astype(float) + rng.choice([0.0, 0.5])


def _offsets(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    """Columns with large means and different units, as raw measurements have."""
    X, scores = _gaussian(rng, n, p)
    return X * 10.0 ** rng.uniform(-1, 1, p) + rng.uniform(-100, 100, p), scores


def _correlated(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    rank = int(rng.integers(1, p + 1))
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p)) + 1e-3 * rng.standard_normal((n, p))
    return X, X[:, 0] + 0.3 * rng.standard_normal(n)


def _imbalanced(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    X, scores = _gaussian(rng, n, p)
    return X, scores - np.sort(scores)[-min(n, int(rng.integers(1, 4)))] + 1e-9


def _sparse(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.3)
    return X, X @ rng.standard_normal(p) + 0.2 * rng.standard_normal(n)


DATA: Mapping[str, Callable[[Rng, int, int], tuple[Array, Array]]] = {
    "gaussian": _gaussian,
    "separable": _separable,
    "noise": _noise,
    "duplicates": _duplicates,
    "constants": _constants,
    "binary": _binary,
    "integers": _integers,
    "offsets": _offsets,
    "correlated": _correlated,
    "imbalanced": _imbalanced,
    "sparse": _sparse,
}


# Rows: each function returns rows and extra variables over the given names --------------------------------


def _some(rng: Rng, names: Sequence[str], least: int = 1, most: int = 4) -> list[str]:
    size = int(rng.integers(min(least, len(names)), min(most, len(names)) + 1))
    return [str(name) for name in rng.choice(np.array(names), size=size, replace=False)]


def _no_rows(rng: Rng, names: Sequence[str]) -> RowSet:
    return [], []


def _budget(rng: Rng, names: Sequence[str]) -> RowSet:
    """Costs in tenths, and a budget that some subset meets exactly: a sum that rounds up must still fit."""
    costs = rng.integers(1, 30, size=len(names)) / 10
    limit = round(float(costs[rng.random(len(names)) < 0.5].sum()), 1)
    return [LinearRow("budget", dict(zip(names, costs.tolist(), strict=True)), -np.inf, limit)], []


def _implies(rng: Rng, names: Sequence[str]) -> RowSet:
    pairs = [_some(rng, names, 2, 2) for _ in range(int(rng.integers(1, 4)))]
    return [
        LinearRow(f"implies {i}", {a: 1.0, b: -1.0}, -np.inf, 0.0)
        for i, (a, b) in enumerate(pair for pair in pairs if len(pair) == 2)
    ], []


def _conflicts(rng: Rng, names: Sequence[str]) -> RowSet:
    pairs = [_some(rng, names, 2, 2) for _ in range(int(rng.integers(1, 4)))]
    return [
        LinearRow(f"conflict {i}", {a: 1.0, b: 1.0}, -np.inf, 1.0)
        for i, (a, b) in enumerate(pair for pair in pairs if len(pair) == 2)
    ], []


def _count(rng: Rng, names: Sequence[str], name: str, lower: bool, upper: bool) -> RowSet:
    members = _some(rng, names, 2, 5)
    k = float(rng.integers(0 if upper else 1, len(members) + 1))
    return [LinearRow(name, dict.fromkeys(members, 1.0), k if lower else -np.inf, k if upper else np.inf)], []


def _at_most(rng: Rng, names: Sequence[str]) -> RowSet:
    return _count(rng, names, "at most", False, True)


def _at_least(rng: Rng, names: Sequence[str]) -> RowSet:
    return _count(rng, names, "at least", True, False)


def _exactly(rng: Rng, names: Sequence[str]) -> RowSet:
    return _count(rng, names, "exactly", True, True)


def _linear(rng: Rng, names: Sequence[str]) -> RowSet:
    """Rows with coefficients of both signs in halves, of one or two sides, that one drawn selection satisfies."""
    sigma = rng.random(len(names)) < 0.4
    rows = []
    for i in range(int(rng.integers(1, 4))):
        coefficients = rng.integers(-6, 7, size=len(names)) / 2
        value = float(coefficients @ sigma)
        lb, ub = value - float(rng.integers(0, 4)) / 2, value + float(rng.integers(0, 4)) / 2
        side = rng.integers(3)
        terms = {name: float(a) for name, a in zip(names, coefficients, strict=True) if a}
        rows.append(LinearRow(f"linear {i}", terms, -np.inf if side == 0 else lb, np.inf if side == 1 else ub))
    return rows, []


def _parity(rng: Rng, names: Sequence[str]) -> RowSet:
    """An even (or odd) number of features, by an integer extra variable."""
    half = ExtraVariable("extra_half", 0.0, float(len(names)), integer=True)
    odd = float(rng.integers(2))
    return [LinearRow("parity", {**dict.fromkeys(names, 1.0), half.name: -2.0}, odd, odd)], [half]


def _modules(rng: Rng, names: Sequence[str]) -> RowSet:
    """Features come in modules, and at most one module may be bought: binary extra variables."""
    module = rng.integers(0, 3, size=len(names))
    extras = [ExtraVariable(f"extra_module_{k}", 0.0, 1.0, integer=True) for k in range(3)]
    rows = [
        LinearRow(f"needs module of {name}", {name: 1.0, extras[k].name: -1.0}, -np.inf, 0.0)
        for name, k in zip(names, module, strict=True)
    ]
    return [*rows, LinearRow("one module", {e.name: 1.0 for e in extras}, -np.inf, float(rng.integers(1, 3)))], extras


def _level(rng: Rng, names: Sequence[str]) -> RowSet:
    """A continuous extra variable between two sums: Σ a σ <= t <= Σ b σ + slack."""
    level = ExtraVariable("extra_level", 0.0, 4.0)
    a, b = rng.integers(0, 5, size=len(names)) / 2, rng.integers(0, 5, size=len(names)) / 2
    below = {**dict(zip(names, a.tolist(), strict=True)), level.name: -1.0}
    above = {**dict(zip(names, b.tolist(), strict=True)), level.name: -1.0}
    return [LinearRow("below level", below, -np.inf, 0.0), LinearRow("above level", above, -1.0, np.inf)], [level]


def _contradiction(rng: Rng, names: Sequence[str]) -> RowSet:
    """Rows that no selection satisfies; half of them have a fractional solution, which an LP would accept."""
    a, *others = _some(rng, names, 3, 4)
    members = [a, *others]
    doubled = LinearRow("half of a feature", dict.fromkeys(members, 2.0), 1.0, 1.0)
    above = LinearRow("too many", dict.fromkeys(members, 1.0), len(members) + 1.0, np.inf)
    pairs = [
        LinearRow(f"not both {i}", {u: 1.0, v: 1.0}, -np.inf, 1.0)
        for i, (u, v) in enumerate(zip(members, members[1:] + members[:1], strict=True))
        if u != v
    ]
    several = LinearRow("most of them", dict.fromkeys(members, 1.0), len(members) // 2 + 1.0, np.inf)
    idle = _at_most(rng, names)[0]
    kinds: list[list[LinearRow]] = [[doubled], [above], [*pairs, several]]
    return [*idle, *kinds[int(rng.integers(3))]], []


ROWS: Mapping[str, Callable[[Rng, Sequence[str]], RowSet]] = {
    "no rows": _no_rows,
    "budget": _budget,
    "implies": _implies,
    "conflicts": _conflicts,
    "at most": _at_most,
    "at least": _at_least,
    "exactly": _exactly,
    "linear": _linear,
    "parity": _parity,
    "modules": _modules,
    "level": _level,
    "contradiction": _contradiction,
}


# Putting a case together ----------------------------------------------------------------------------------


@dataclass
class _Draft:
    """What `case` has drawn so far: a place for the tags."""

    rng: Rng
    tags: list[str] = field(default_factory=list)

    def one_of(self, options: Sequence[str], weights: Sequence[float] | None = None) -> str:
        """Draw one option and remember it as a tag."""
        chances = None if weights is None else np.array(weights) / np.sum(weights)
        chosen = options[int(self.rng.choice(len(options), p=chances))]
        self.tags.append(chosen)
        return chosen


def _labels(scores: Array, rng: Rng) -> Array:
    """Signs of the scores, with at least one of each class."""
    y = np.where(scores > 0, 1.0, -1.0)
    if np.all(y == y[0]):
        y[rng.integers(len(y))] *= -1.0
    return y


def _names(rng: Rng, p: int) -> tuple[str, ...]:
    """Plain names, or names as data has them: with spaces, brackets and signs."""
    if rng.random() < 0.7:
        return tuple(f"x{j + 1}" for j in range(p))
    return tuple(f"mean area ({j})" if j % 2 else f"ratio-{j}%" for j in range(p))


def _penalties(draft: _Draft, names: Sequence[str], y: Array, C: float) -> tuple[Any, dict[str, float], Array]:
    """(lam, the data's penalties, their sum) of sizes at which some features pay and others do not."""
    rng, p = draft.rng, len(names)
    unit = 0.3 * C * float(min((y > 0).sum(), (y < 0).sum())) / p
    kind = draft.one_of(["no penalty", "one lambda", "lambda each", "lambda named", "data penalty"], [5, 2, 1, 1, 1])
    each = rng.uniform(0, unit, p) * (rng.random(p) < 0.8)
    if kind == "one lambda":
        return float(each[0]), {}, np.full(p, each[0])
    if kind == "lambda each":
        return each.tolist(), {}, each
    if kind == "lambda named":
        return {name: float(v) for name, v in zip(names, each, strict=True) if v}, {}, each
    if kind == "data penalty":
        common = 0.3 * unit * rng.integers(2)
        return common, {name: float(v) for name, v in zip(names, each, strict=True) if v}, each + common
    return 0.0, {}, np.zeros(p)


def case(seed: int, *, rows: str | None = None, data: str | None = None) -> Case:
    """The case of a seed: the same seed always gives the same case.

    Parameters
    ----------
    seed : int >= 0
    rows, data : str, optional
        Keys of `ROWS` and `DATA` to use instead of drawn ones.
    """
    rng = np.random.default_rng([20150, seed])
    draft = _Draft(rng)
    drawn_rows = draft.one_of(list(ROWS), [4.0] + [1.0] * (len(ROWS) - 1)) if rows is None else rows
    drawn_data = draft.one_of(list(DATA)) if data is None else data
    # Each support with extra variables is a MILP for the reference, so those problems are smaller.
    largest = 7 if drawn_rows in ("parity", "modules", "level") else 12 if rng.random() < 0.1 else 9
    n, p = int(rng.integers(2, 61)), int(rng.integers(1, largest + 1, size=2).max())
    X, scores = DATA[drawn_data](rng, n, p)
    y, names = _labels(scores, rng), _names(rng, p)
    C = float(rng.choice([0.25, 1.0, 32.0])) if rng.random() < 0.3 else float(2.0 ** rng.uniform(-2, 5))
    lam, data_penalty, penalty = _penalties(draft, names, y, C)
    linear, extras = ROWS[drawn_rows](rng, names)
    cardinality = draft.one_of(["no M", "M = 0", "M = p", "some M"], [4, 1, 2, 13])
    M = {"no M": None, "M = 0": 0, "M = p": p}.get(cardinality, int(rng.integers(1, max(2, p))))
    forced_in: tuple[str, ...] = ()
    forced_out: tuple[str, ...] = ()
    if rng.random() < 0.2:
        split = _some(rng, names, 1, 3)
        cut = int(rng.integers(len(split) + 1))
        forced_in, forced_out = tuple(split[:cut]), tuple(split[cut:])
        draft.tags.append("forced")
    weighted = draft.one_of(["weights", "no weights"], [3, 7]) == "weights"
    scalings: dict[str, Scaling] = {"as given": "none", "standard": "standard", "unit": "unit"}
    scale = scalings[draft.one_of(list(scalings), [5, 4, 2])]
    routes: tuple[Route, ...] = ("data", "problem", "matrix")
    return Case(
        seed=seed,
        X=X,
        y=y,
        names=names,
        scale=scale,
        storage="csc" if draft.one_of(["csc", "dense"]) == "csc" else "dense",
        sample_weight=rng.uniform(0.3, 3.0, n) if weighted else None,
        C=C,
        M=M,
        bias=draft.one_of(["free bias", "no bias"], [2, 1]) == "free bias",
        loss=draft.one_of(LOSSES),
        lam=lam,
        data_penalty=data_penalty,
        penalty=penalty,
        forced_in=forced_in,
        forced_out=forced_out,
        rows=tuple(linear),
        extras=tuple(extras),
        route=routes[int(rng.integers(len(routes)))],
        start=bool(rng.random() < 0.2),
        tags=tuple(draft.tags),
    )
