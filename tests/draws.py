"""Problems where nobody draws: what the random tests of the whole package are put through.

C from 1e-6 to 1e12, separable data, the ρ-form, sample weights over twelve orders of magnitude, ties, optima of 0,
extra variables, lists of near-optimal supports, runs that a limit cuts into slices, columns with large means and unlike
scales, penalties, groups, trees and overlaps, every loss, every driver that carries the problem. A draw holds the
problem as the package gets it and, apart from it, all that the reference needs (`tests.interval_oracles`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tests.interval_oracles import Chosen, Enumerated, Svm

Array = npt.NDArray[np.float64]
Rng = np.random.Generator

ALLOWANCE = Fraction(1, 2**40)
"""How far a row may be missed, relative to its largest coefficient and its bound (the documented rule)."""
LOSSES = ("hinge", "squared-hinge", "logistic", "rho", "structural")
MEASURES = ("error", "f1", "fbeta", "precision-at-k", "recall-at-k", "prbep", "roc-auc", "average-precision")
DRIVERS: Mapping[str, Mapping[str, float]] = {
    "sums over the samples": {"branch": 0.6, "gbd": 0.17, "kelley": 0.17, "conic": 0.06},
    "structural": {"branch": 0.45, "gbd": 0.3, "two_layer": 0.25},
}
"""How often a driver is drawn."""
PATIENCE = 20.0
"""Time limit in seconds of every run that has none of its own; a small problem takes a small part of it anywhere."""
GAPS = (1e-4, 1e-6, 1e-8, 1e-2, 0.3)


@dataclass(frozen=True, eq=False)
class Draw:
    """One problem, how it is run, and what the reference needs.

    Attributes
    ----------
    seed : int
    problem : mipfs.Problem
    names : tuple of str, of what is selected
    members : tuple of lists, the columns of each
    penalty : (count,) ndarray, fixed costs
    driver : str
    options : mapping, of the driver
    way : {"whole", "list", "limit", "slices"}, how it is run
    step : int, iterations of a slice
    tags : tuple of str, what it is made of
    """

    seed: int
    problem: Any
    names: tuple[str, ...]
    members: tuple[list[int], ...]
    penalty: Array
    driver: str
    options: Mapping[str, Any]
    way: str
    step: int
    tags: tuple[str, ...]

    @cached_property
    def exact(self) -> Enumerated:
        """All selections of S with their values."""
        problem, data = self.problem, self.problem.data
        X = data.X.toarray() if data.is_sparse else np.array(data.X)
        svm = Svm(
            X, np.array(data.center), data.y, self.c, self.members, np.array(problem.atoms.scale, dtype=float),
            problem.loss, problem.bias, problem.measure, problem.beta or 1.0, problem.k,
        )  # fmt: skip
        return Enumerated(svm, self.allowed, self.penalty, problem.margin == "rho")

    @cached_property
    def c(self) -> Array:
        """C times the sample weights."""
        return np.array(self.problem.C * self.problem.data.sample_weight)

    @cached_property
    def allowed(self) -> list[Chosen]:
        """Every selection of S, by trying all."""
        problem, count = self.problem, len(self.names)
        needed = {self.names.index(name) for name in problem.forced_in}
        banned = {self.names.index(name) for name in problem.forced_out}
        most = count if problem.M is None else min(count, problem.M)
        return [
            frozenset(chosen)
            for size in range(most + 1)
            for chosen in itertools.combinations(range(count), size)
            if needed <= set(chosen) and not banned & set(chosen) and rows_hold(problem.rows, frozenset(chosen), count)
        ]

    @property
    def line(self) -> str:
        """It in one line."""
        n, p = self.problem.data.n_samples, self.problem.data.n_features
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return (
            f"{self.driver}({options}) {self.way}: n={n} p={p} M={self.problem.M} C={self.problem.C:.3g}: "
            + ", ".join(self.tags)
        )


def rows_hold(rows: Any, chosen: Chosen, count: int) -> bool:
    """Whether the rows hold for some value of the extra variables (one at most), in exact arithmetic."""
    A = rows.matrix.toarray()
    low, high, whole = Fraction(-(10**400)), Fraction(10**400), False
    if A.shape[1] > count:
        whole = bool(rows.extra.integer[0])
        low = max(low, Fraction(float(rows.extra.lb[0]))) if math.isfinite(rows.extra.lb[0]) else low
        high = min(high, Fraction(float(rows.extra.ub[0]))) if math.isfinite(rows.extra.ub[0]) else high
    for i in range(A.shape[0]):
        counted = A[i] if whole else A[i, :count]
        largest = max((abs(Fraction(v)) for v in counted.tolist()), default=Fraction(0))
        total = sum((Fraction(float(A[i, j])) for j in chosen), Fraction(0))
        ends = []
        for end, sign in ((float(rows.lb[i]), -1), (float(rows.ub[i]), 1)):
            free = not math.isfinite(end)
            ends.append(None if free else Fraction(end) + sign * ALLOWANCE * (largest + abs(Fraction(end))) - total)
        a = Fraction(float(A[i, count])) if A.shape[1] > count else Fraction(0)
        if a == 0:
            if (ends[0] is not None and ends[0] > 0) or (ends[1] is not None and ends[1] < 0):
                return False
            continue
        sides = [None if end is None else end / a for end in (ends if a > 0 else ends[::-1])]
        low = low if sides[0] is None else max(low, sides[0])
        high = high if sides[1] is None else min(high, sides[1])
    return (math.ceil(low) <= math.floor(high)) if whole else low <= high


# Data: (n, p) values and the scores whose signs become labels ---------------------------------------------


def _noise(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=p) + rng.normal(size=n) * 2.0


def _separable(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    """By one or two columns, of which others are noisy copies."""
    X = rng.normal(size=(n, p))
    scores = X[:, 0] + (X[:, 1] if p > 1 and rng.random() < 0.6 else 0.0)
    for j in range(2, p):
        if rng.random() < 0.6:
            X[:, j] = scores + rng.choice([0.1, 0.3, 0.6]) * np.where(scores > 0, 1.0, -1.0)
    return X, scores


def _ties(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    """Repeated, negated and zero columns."""
    X = rng.normal(size=(n, p))
    for _ in range(1 + p // 3):
        a, b = rng.integers(p, size=2)
        X[:, a] = X[:, b] * rng.choice([1.0, 1.0, -1.0, 0.0])
    return X, X @ rng.normal(size=p) + rng.normal(size=n)


def _binary(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    X = (rng.random((n, p)) < rng.uniform(0.2, 0.7, p)).astype(float)
    return X, X @ rng.normal(size=p) + rng.choice([0.0, 0.5]) * rng.normal(size=n)


def _integers(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    X = rng.integers(-2, 3, size=(n, p)).astype(float)
    return X, X @ rng.integers(-1, 2, size=p).astype(float) + rng.choice([0.0, 0.5])


def _means(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    """Columns with means of 1e3 to 1e5 and unlike scales, as raw measurements have."""
    X = rng.normal(size=(n, p))
    scores = X @ rng.normal(size=p) + rng.choice([0.0, 1.0]) * rng.normal(size=n)
    return X * 10.0 ** rng.uniform(-2, 2, p) + rng.choice([-1.0, 1.0], p) * 10.0 ** rng.uniform(3, 5, p), scores


def _unlike(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    X = rng.normal(size=(n, p))
    return X * 10.0 ** rng.uniform(-5, 5, p), X @ rng.normal(size=p) + rng.normal(size=n)


def _factors(rng: Rng, n: int, p: int) -> tuple[Array, Array]:
    F = rng.normal(size=(n, 2))
    X = F @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))
    return X, X @ rng.normal(size=p) + rng.normal(size=n)


DATA: Mapping[str, Callable[[Rng, int, int], tuple[Array, Array]]] = {
    "noise": _noise,
    "separable": _separable,
    "ties": _ties,
    "0/1": _binary,
    "integers": _integers,
    "large means": _means,
    "unlike scales": _unlike,
    "factors": _factors,
}
ATOMS = ("features", "norm", "groups", "overlapping", "tree")


# Putting a draw together ----------------------------------------------------------------------------------


@dataclass
class _Drafting:
    """The random numbers, and the tags so far."""

    rng: Rng
    tags: list[str] = field(default_factory=list)

    def one_of(self, chances: Mapping[str, float]) -> str:
        """One of some words, by their chances; it becomes a tag."""
        share = np.array(list(chances.values()))
        chosen = list(chances)[int(self.rng.choice(len(share), p=share / share.sum()))]
        self.tags.append(chosen)
        return chosen

    def chance(self, share: float, tag: str) -> bool:
        """Whether something of that chance happens; it becomes a tag where it does."""
        happens = bool(self.rng.random() < share)
        if happens:
            self.tags.append(tag)
        return happens


def _data(draft: _Drafting, loss: str) -> tuple[Any, float]:
    """An instance, and C."""
    from mipfs.data.instance import Instance

    rng, joint = draft.rng, loss == "structural"
    kind = draft.one_of(dict.fromkeys(DATA, 1.0) | {"separable": 2.0})
    n = int(rng.integers(4, 7) if joint else rng.integers(6, 41) if rng.random() < 0.2 else rng.integers(6, 19))
    p = int(rng.integers(7, 9)) if rng.random() < 0.08 and not joint else int(rng.integers(2, 7))
    X, scores = DATA[kind](rng, n, p)
    y = np.where(scores > np.median(scores) * (rng.random() < 0.5), 1.0, -1.0)
    if np.all(y == y[0]):
        y[rng.integers(n)] *= -1.0
    more: dict[str, Any] = {}
    if not joint:
        weights = draft.one_of({"even": 0.5, "weights": 0.2, "weights 1e±6": 0.3})
        if weights != "even":
            more["sample_weight"] = 10.0 ** rng.uniform(-6, 6, n) if "6" in weights else rng.uniform(0.3, 3.0, n)
    C = 10.0 ** rng.uniform(-6, 12) if rng.random() < 0.7 else 10.0 ** rng.uniform(-2, 3)
    draft.tags.append("C < 1e-2" if C < 1e-2 else "C < 1e3" if C < 1e3 else "C < 1e7" if C < 1e7 else "C >= 1e7")
    scale = draft.one_of({"as given": 0.6, "standard": 0.25, "unit": 0.15})
    stored = sparse.csc_array(X) if rng.random() < 0.2 else X
    names = tuple(f"f{j + 1}" for j in range(p))
    kept: Any = "none" if scale == "as given" else scale
    return Instance.from_arrays(stored, y, feature_names=names, scale=kept, **more), C


def _atoms(draft: _Drafting, data: Any) -> tuple[Any, tuple[str, ...], tuple[list[int], ...]]:
    """What is selected, its names, and the columns of each."""
    from mipfs.atoms.features import Features
    from mipfs.atoms.groups import Groups
    from mipfs.atoms.tree import Tree

    rng, p, names = draft.rng, data.n_features, tuple(data.feature_names)
    kind = draft.one_of({"features": 0.62, "norm": 0.08, "groups": 0.1, "overlapping": 0.1, "tree": 0.1})
    leaves = tuple([j] for j in range(p))
    if kind in ("features", "norm"):
        return Features(data, "norm" if kind == "norm" else "none"), names, leaves
    scaling: Any = "norm" if rng.random() < 0.4 else "none"
    if kind == "tree":
        cut = int(rng.integers(1, p + 1))
        parents = {names[j]: "low" for j in range(cut)}
        below = {"low": list(range(cut))}
        if cut < p:
            parents |= {"low": "top", names[cut]: "top"}
            below["top"] = list(range(cut + 1))
        return Tree(data, parents, scaling=scaling), (*names, *below), (*leaves, *below.values())
    if kind == "groups":
        owner = rng.integers(0, max(2, p - 1), size=p)
        members = {f"g{g}": np.flatnonzero(owner == g).tolist() for g in np.unique(owner)}
    else:
        drawn = [
            rng.choice(p, int(rng.integers(1, min(p, 3) + 1)), replace=False) for _ in range(int(rng.integers(2, 6)))
        ]
        members = {f"g{g}": ids.tolist() for g, ids in enumerate(drawn)}
    return Groups(data, members, scaling), tuple(members), tuple(members.values())


def rows_of(rng: Rng, p: int) -> Any:
    """One to three rows with decimal coefficients, at times over an extra variable with one bound, both or none."""
    from mipfs.selection.selection import Extras, Rows

    r, e = int(rng.integers(1, 4)), int(rng.random() < 0.4)
    A = np.round(rng.uniform(-1.0, 3.0, (r, p + e)), 1)
    lb, ub = np.full(r, -np.inf), np.full(r, np.inf)
    for i in range(r):
        if e and i == 0 and rng.random() < 0.3:  # a sum that must be even, or a multiple of three
            A[i], A[i, p], lb[i], ub[i] = 1.0, -float(rng.integers(2, 4)), 0.0, 0.0
        elif rng.random() < 0.3:
            lb[i] = round(float(rng.uniform(0.0, 2.5)), 1)
        else:
            ub[i] = round(float(rng.uniform(0.0, 3.0)), 1)
    extra = Extras()
    if e:
        low, high = rng.choice([0.0, -np.inf]), rng.choice([1.5, np.inf])
        extra = Extras(("extra_z",), np.array([low]), np.array([high]), np.array([rng.random() < 0.5]))
    return Rows(sparse.csr_array(A), lb, ub, tuple(f"r{i}" for i in range(r)), ("",) * r, extra)


def _problem(draft: _Drafting) -> tuple[Any, tuple[str, ...], tuple[list[int], ...], Array]:
    """The problem; names, members and penalties of what is selected."""
    from mipfs.problem import Problem

    rng = draft.rng
    drawn = draft.one_of({"hinge": 0.36, "squared-hinge": 0.18, "logistic": 0.15, "rho": 0.19, "structural": 0.12})
    data, C = _data(draft, drawn)
    atoms, names, members = _atoms(draft, data)
    count, more = len(names), dict[str, Any]()
    if drawn == "structural":
        measure = draft.one_of(dict.fromkeys(MEASURES, 1.0))
        more |= {"bias": False, "measure": measure}
        if measure == "fbeta":
            more["beta"] = float(rng.choice([0.25, 2.0]))
        if measure in ("precision-at-k", "recall-at-k") and rng.random() < 0.7:
            more["k"] = int(rng.integers(1, data.n_samples + 1))
    else:
        more["bias"] = bool(rng.random() < 0.6)
        draft.tags.append("bias" if more["bias"] else "no bias")
    penalty = np.zeros(count)
    if drawn != "rho" and draft.chance(0.25, "penalty"):
        unit = 10.0 ** rng.uniform(-3, 1) if rng.random() < 0.5 else 0.1 * float(np.median(data.sample_weight)) * C
        penalty = rng.uniform(0, unit, count) * (rng.random(count) < 0.8)
        more["lam"] = penalty.tolist()
    M = draft.one_of({"no M": 0.1, "M = 1": 0.3, "some M": 0.6})
    loss, margin = ("squared-hinge", "rho") if drawn == "rho" else (drawn, "unit")
    most = {"no M": None, "M = 1": min(1, count)}.get(M, int(rng.integers(0, count + 1)))
    problem = Problem(data, loss=loss, atoms=atoms, C=C, margin=margin, M=most, **more)
    if draft.chance(0.3, "rows"):
        rows = rows_of(rng, count)
        problem = problem.replace(rows=rows)
        if len(rows.extra):
            draft.tags.append("extra variable")
    if draft.chance(0.1, "forced"):
        name = str(rng.choice(np.array(names)))
        problem = problem.replace(**{str(rng.choice(["forced_in", "forced_out"])): (name,)})
    return problem, names, members, penalty


def draw(seed: int, drivers: Sequence[str] = ()) -> Draw:
    """The draw of a seed: the same seed always gives the same draw.

    Parameters
    ----------
    seed : int >= 0
    drivers : sequence of str, optional
        Only one of these runs it, where one of them carries it.
    """
    draft = _Drafting(np.random.default_rng([35, seed]))
    rng = draft.rng
    problem, names, members, penalty = _problem(draft)
    chances = DRIVERS["structural" if problem.loss == "structural" else "sums over the samples"]
    chances = {name: share for name, share in chances.items() if name in drivers} or chances
    driver = draft.one_of(chances)
    options: dict[str, Any] = {"gap": float(rng.choice(GAPS, p=[0.4, 0.25, 0.15, 0.1, 0.1]))}
    if driver == "branch":
        options["threads"] = 1
    ways = {"whole": 0.5, "limit": 0.15}
    ways |= {"list": 0.25} if driver in ("branch", "gbd") else {}
    whole = driver == "branch" and bool(problem.rows.extra.integer.any())  # of which it keeps no state
    resumable = driver == "two_layer" or (driver != "conic" and problem.loss != "structural" and not whole)
    ways |= {"slices": 0.08} if resumable else {}
    way, step = draft.one_of(ways), 1
    if way == "list":
        gaps = [0.0, 1e-9, 1e-6, 0.05, 0.5, 0.9 if problem.margin == "rho" else 2.0]
        kind = int(rng.integers(3))
        options |= {"pool_gap": float(rng.choice(gaps))} if kind < 2 else {}
        options |= {"pool_size": int(rng.choice([1, 2, 3, 7]))} if kind > 0 else {}
        if rng.random() < 0.2:
            options["iteration_limit"] = int(rng.integers(1, 9))
    elif way == "limit":
        if rng.random() < 0.8:
            options["iteration_limit"] = int(rng.integers(0, 6))
        else:
            options["time_limit"] = float(rng.choice([0.0, 1e-3, 1e-2]))
    if "time_limit" not in options:
        options["time_limit"] = PATIENCE
    if way == "slices":
        step = int(rng.choice([1, 3, 10, 20]))
    return Draw(seed, problem, names, members, penalty, driver, options, way, step, tuple(draft.tags))
