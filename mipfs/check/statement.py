"""(P) as the JSON of a result states it, on the data: loss, weights c_i, penalties, what is selected, and the set S.

    (P)  min over (σ, z) in S of  c'σ + d'z + v(σ),   v(σ) = min over w, b of ½ Σ_g ‖w_g‖²/(λ_g² σ_g) + L(y∘(Xw + b))

σ has an entry for every atom g: a set of columns with a scale λ_g, by default one column with λ = 1 each. Where a
regulariser r is named (`mipfs.check.regulariser`), its Σ σ_j r(w_j/σ_j) takes the place of ½ Σ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.check.bounded import BoundedRidge
from mipfs.check.known import rules_of, same
from mipfs.check.made import MadeAtoms, RecomputedColumns
from mipfs.check.regulariser import Stated, stated_regulariser
from mipfs.check.rounding import (
    NEAR,
    NORMAL,
    TINY,
    Array,
    Document,
    Integers,
    U,
    absent_or,
    below,
    next_float_below,
    number,
    read_rational,
    require,
)
from mipfs.check.row_ends import RowsOverWeights
from mipfs.check.scaling import ScaledData
from mipfs.check.stated import stated_loss
from mipfs.data.instance import Instance
from mipfs.data.rules import EXACT_RULES

SMALLEST_C, LARGEST_C = 1e-100, 1e100
LARGEST = 1e100
"""Numbers of rows are up to this; beyond it the allowance on a row would be infinite."""
ALLOWANCE = 2.0**-40
"""δ: what a row forgives, of its own size, so that decimals mean what they say; S is defined with it."""
TERM = 32
"""Units of round-off that the loss of a sample may be off at a given short: an exponential and a logarithm of 4 ulp
each (see `mipfs.check.tree`), products, and their sum, which is rounded once."""
ONE = np.ones(1, dtype=np.int64)
ROUNDED = Fraction(1, 2**47)
"""What is forgiven for the rounding of the values of extra variables, relative to their terms: of those that are no
whole numbers, and under rules before `EXACT_RULES` of all."""


class StatedAtoms:
    """What is selected: names, the columns of every atom (one after the other) and λ."""

    def __init__(self, stated: Any, data: Instance) -> None:
        given: Mapping[str, Any] = {} if stated is None else stated
        self.single = given.get("names") is None
        columns = None if self.single else [_positions_of_names(part, data.index) for part in given["columns"]]
        require(not self.single or given.get("columns") is None, "the atoms have columns, but no names")
        self.names = data.feature_names if self.single else list(given["names"])
        require(self.single or all(isinstance(name, str) for name in self.names), "the name of an atom is no text")
        self.count = len(self.names)
        self.index: Mapping[str, int] = data.index if self.single else {name: g for g, name in enumerate(self.names)}
        require(len(self.index) == self.count, "two atoms have one name")
        require(columns is None or len(columns) == self.count, "the atoms and their columns are not equally many")
        sizes = ONE if columns is None else np.array([part.size for part in columns])
        whole = columns is None or all(part.size == np.unique(part).size > 0 for part in columns)
        require(whole, "an atom has no columns, or one twice")
        self.sizes = np.broadcast_to(sizes, (self.count,))
        self.starts = np.cumsum(sizes) - sizes
        self.members = None if columns is None else np.concatenate(columns)
        scale = given.get("scale")
        self.scale: Array | None = None if scale is None else np.array([number(v, "a scale") for v in scale])
        fits = self.scale is None or (self.scale.shape == (self.count,) and bool(np.all(self.scale >= 0)))
        require(fits, "the scales are negative, or not one for every atom")

    def columns(self, g: int) -> Integers:
        """The columns of atom g."""
        if self.members is None:
            return np.array([g])
        return self.members[self.starts[g] : self.starts[g] + self.sizes[g]]

    def scores(self, size: Array) -> Array:
        """λ_g² Σ_{j in g} size_j², not too small, of rows of bounds size (B, p) on |ω|."""
        if self.members is None:
            scaled = size if self.scale is None else size * self.scale
            return np.asarray(scaled * scaled)
        inside = size[:, self.members]
        if self.scale is not None:
            inside = inside * np.repeat(self.scale, self.sizes)
        squares = np.add.reduceat(inside * inside, self.starts, axis=1)
        return np.asarray(squares * (1.0 + (self.sizes + 4) * 1.01 * U))

    def sums(self, terms: Array) -> Array:
        """Σ_{j in g} terms_j, not too small, of rows of terms (B, p) >= 0."""
        if self.members is None:
            return terms
        sums = np.add.reduceat(terms[:, self.members], self.starts, axis=1)
        return np.asarray(sums * (1.0 + (self.sizes + 4) * 1.01 * U))


def _positions_of_names(names: Iterable[str], index: Mapping[str, int]) -> Integers:
    """Positions of names, each of which must be there, and once."""
    require(not isinstance(names, str), f"{names!r} is one name, where a list of them is meant")
    names = list(names)
    for name in names:
        require(name in index, f"the data has no {name!r} to select")
    return np.array([index[name] for name in names], dtype=np.int64)


class Statement:
    """(P) as the JSON states it; a subclass knows losses that are no sums over the samples."""

    is_sum = True
    """Whether the loss is a sum over the samples."""
    scaled: ScaledData | None = None
    """How far the columns of `data` may be off the stated ones; None of exact ones."""
    constant: float | None = None
    """κ of an intercept b that costs ½ (b/κ)², as the weight of a constant column does; None of a free one, or none."""

    def __init__(self, document: Document, data: Instance) -> None:
        params = document["params"]
        C = document["params"]["C"]
        M = document["params"]["M"]
        columns = data.block().values
        stated = document.get("atoms") or {}
        made = isinstance(columns, RecomputedColumns)
        self.atoms: StatedAtoms | MadeAtoms = MadeAtoms(stated, columns) if made else StatedAtoms(stated, data)
        self.data, self.p, self.loss, self.bias = data, self.atoms.count, params["loss"], bool(params["bias"])
        self.params = params
        self.margin = params.get("margin", "unit")
        require(params.get("constant") is None or not self.is_sum, "a free intercept is no weight of a constant column")
        self.stated = self._stated()
        typed = type(params["bias"]) is bool and type(C) in (int, float) and type(M) in (int, type(None))
        require(typed, "bias is true or false, C a number, M a whole one or null; the parameters say otherwise")
        require(M is None or 0 <= M <= 2**53, f"M = {M!r} is no number of features")
        self.class_weights = self._class_weights(document)
        own = data.sample_weight
        weights = own if self.class_weights is None else np.where(data.y > 0, *self.class_weights[::-1]) * own
        self.c = float(C) * weights
        inside = float(self.c.min()) >= SMALLEST_C and float(self.c.max()) <= LARGEST_C
        require(inside, f"C = {C!r} is no positive number from {SMALLEST_C:g} to {LARGEST_C:g}")
        own_penalty = {name: float(value) for name, value in data.penalty.items()}
        require(same(params.get("penalty", {}), own_penalty), "the data has another [penalty] than the result")
        require(self.atoms.single or not data.penalty, "the data's penalties are about features, not about these atoms")
        self.penalty = self._penalties_of_atoms(params["lambda"])
        rho = self.margin == "rho" and self.stated.has_rho and not self.penalty.any()
        require(self.margin == "unit" or rho, f"no certificate is known for margin {self.margin!r} here")
        self.regulariser = self._regulariser()
        features = not (stated.get("names") or stated.get("scale") or stated.get("made") or made)
        plain = self.regulariser is None or (features and self.is_sum) or self._bounds_groups(made)
        require(plain, "bounds on weights, or a regulariser, are about features or groups, and sums over the samples")
        scales = self.margin == "unit" or self.regulariser is None or self.regulariser.is_homogeneous
        require(scales, "the ρ-form is that of a homogeneous regulariser")
        self.excluding = self._features_excluding_zero(document, is_plain=features and self.is_sum)
        self.ends = self._ends_of_rows(document)
        inner, outer = (self.ids(params.get(name, ())) for name in ("forced_in", "forced_out"))
        self.fixed, self.n_inside = np.union1d(inner, outer), np.unique(inner).size
        self.forced = np.broadcast_to(np.int8(-1), (self.p,))  # one entry for each atom, without memory
        if self.fixed.size:
            self.forced = self.forced.copy()
            self.forced[inner], self.forced[outer] = 1, 0
        contradict = np.intersect1d(inner, outer).size > 0  # nothing fits
        self.M = -1 if contradict else self.p if M is None else M
        self._read_rows(document)

    def _stated(self) -> Any:
        """What the loss is."""
        return stated_loss(self.loss)

    def _class_weights(self, document: Document) -> tuple[float, float] | None:
        """The stated weights of the classes -1 and +1: both stated labels, and no others, have a positive one."""
        given = self.params.get("class_weight")
        if given is None:
            return None
        require(self.is_sum, "class weights are about sums over the samples")
        names = [str(document["labels"][side]) for side in ("negative", "positive")]
        require(isinstance(given, Mapping) and {*given} == {*names}, f"class weights are not those of {names}")
        low, high = (number(given[name], "a class weight") for name in names)
        require(low > 0 and high > 0, "a class weight is not positive")
        return low, high

    def _regulariser(self) -> Stated | None:
        """What the term of a weight is, and its bounds."""
        bounds = self.params.get("weight_bounds")
        if bounds is None or (isinstance(bounds, Mapping) and not bounds):
            return stated_regulariser(self.params)
        require(self.params.get("regulariser") is None, "there are bounds on the weights, and a regulariser of its own")
        return BoundedRidge(bounds, self.data)

    def _bounds_groups(self, made: bool) -> bool:
        """Whether there are bounds on the weights of groups as they are, of columns in several groups signs alone."""
        atoms, bounds = self.atoms, self.regulariser
        if made or not self.is_sum or not isinstance(bounds, BoundedRidge) or not isinstance(atoms, StatedAtoms):
            return False
        even = atoms.scale is None or bool(np.all(atoms.scale == 1.0))
        ids = np.arange(0) if atoms.members is None else np.flatnonzero(np.bincount(atoms.members) > 1)
        return even and all(end is None or end == 0 for j in ids.tolist() for end in bounds.users.get(j, ()))

    def _features_excluding_zero(self, document: Document, *, is_plain: bool) -> frozenset[int]:
        """The features whose bounds exclude 0, and so have a weight where they are selected."""
        found = self.regulariser.excluding if isinstance(self.regulariser, BoundedRidge) else frozenset()
        require(is_plain or not found, "bounds that exclude 0 are of single features as they are")
        proven = document.get("certificate") or {"kind": "tree"}
        is_tree = proven["kind"] == "tree" and not document.get("relaxed")
        require(is_tree or not found, "bounds that exclude 0 do not go with a relaxation")
        return found

    def is_no_tie(self, g: int) -> bool:
        """Whether an atom costs something, or moves what extra variables cost, or must have a weight where it is in."""
        return bool(self.penalty[g] > 0.0 or self.priced[g] or g in self.excluding)

    def _ends_of_rows(self, document: Document) -> RowsOverWeights | None:
        """The rows over the weights, and what they are about."""
        stated = self.params.get("weight_rows")
        if stated is None:
            return None
        held = isinstance(self.atoms, StatedAtoms) and self.data.block().is_stored
        plain = self.is_sum and self.margin == "unit" and held and not self.data.exponent
        require(plain, "rows over the weights are of sums over the samples, of stored features or groups, not far ones")
        bounded = self.regulariser is None or isinstance(self.regulariser, BoundedRidge)
        single = isinstance(self.atoms, StatedAtoms) and self.atoms.members is None
        require(bounded or single, "rows over the weights go with a regulariser of single features alone")
        found = RowsOverWeights(stated, document, self.data)
        touched = self.excluding.intersection(found.columns.tolist())
        require(not touched, "a row over the weights is about a feature whose bounds exclude 0")
        return found

    def _penalties_of_atoms(self, lam: Any) -> Array:
        """The penalties of the atoms (p,); one that all have takes no memory."""
        own = self.data.penalty
        by_name = isinstance(lam, Mapping)
        given = lam.values() if by_name else lam if isinstance(lam, list) else [lam]
        values = np.array([number(value, "a penalty") for value in given])
        require(by_name or values.size in (1, self.p) or self.p == 0, "the penalties are not one for every atom")
        require(np.all(values >= 0), "a penalty is negative or no number")
        if not (by_name or own) and values.size == 1:
            return np.broadcast_to(values, (self.p,))
        penalty = np.zeros(self.p)
        penalty[self.ids(lam) if by_name else slice(None)] = values
        penalty[self.ids(own)] += list(own.values())
        require(np.all(np.isfinite(penalty) & (penalty >= 0)), "a penalty is negative or no number")
        return penalty

    def _read_rows(self, document: Document) -> None:
        self.rows = document["rows"]
        require(isinstance(self.rows, list), "the rows are no list")
        self.extra = document.get("extra", {})
        require(not any(name in self.atoms.index for name in self.extra), "an extra variable is called as a feature is")
        places = {name: self.p + k for k, name in enumerate(self.extra)}
        at = []
        values = []
        for r, row in enumerate(self.rows):
            at += [(r, places[name] if name in places else self.ids((name,))[0]) for name in row["terms"]]
            values += [number(value, "a coefficient of a row") for value in row["terms"].values()]
        i, j = np.array(at, dtype=np.int64).reshape(-1, 2).T
        kind = sparse.csc_array if self.rows or self.extra else sparse.csr_array  # csr: nothing as long as the atoms
        self.A = kind((np.array(values, dtype=float), (i, j)), shape=(len(self.rows), self.p + len(places)))
        lb, ub = _read_bounds(self.rows)
        numbers = np.abs(np.concatenate([self.A.data, lb[np.isfinite(lb)], ub[np.isfinite(ub)]]))
        inside = np.all(numbers <= LARGEST) and np.all(np.abs(self.A.data[self.A.data != 0]) >= 1.0 / LARGEST)
        require(inside, f"a row has a number that is not of a size from {1.0 / LARGEST:g} to {LARGEST:g}")
        low, high = _read_bounds(self.extra.values())
        for one in self.extra.values():
            require(type(one["integer"]) is bool, "whether an extra variable is whole is neither true nor false")
        self.whole = whole = np.array([one["integer"] for one in self.extra.values()], dtype=bool)
        self.low, self.high = np.where(whole, np.ceil(low), low), np.where(whole, np.floor(high), high)
        self.extra_costs = [_extra_unit_cost(one) for one in self.extra.values()]
        self.rules, self.forgiven = rules_of(document), dict[str, None]()
        a = largest(self.A[:, : self.p])
        if self.is_exact and whole.any():
            a = np.maximum(a, largest(self.A[:, self.p :][:, np.flatnonzero(whole)]))
        self.lb, self.ub = with_allowance(lb, ub, a)
        self.by_row = self.A.tocsr()

    @property
    def is_exact(self) -> bool:
        """Whether whole variables enter rows exactly."""
        return self.rules >= EXACT_RULES

    @property
    def has_extra_costs(self) -> bool:
        """Whether an extra variable has a cost: values may then be negative."""
        return any(self.extra_costs)

    def extra_cost(self, z: Array) -> Fraction:
        """d'z of values of the extra variables (e,)."""
        return sum((d * Fraction(value) for d, value in zip(self.extra_costs, z.tolist(), strict=True)), Fraction(0))

    @cached_property
    def priced(self) -> npt.NDArray[np.bool_]:
        """The atoms (p,) in a row with a variable that has a cost, or with one that rows join to such a one."""
        known = {self.p + k for k, d in enumerate(self.extra_costs) if d}
        rows = [
            {int(j) for j in self.by_row.indices[self.by_row.indptr[r] : self.by_row.indptr[r + 1]]}
            for r in range(len(self.rows))
        ]
        atoms = set[int]()
        grew = bool(known)
        while grew:
            met = [row for row in rows if row & known]
            atoms = {j for row in met for j in row if j < self.p}
            wider = known | {j for row in met for j in row if j >= self.p}
            grew, known = wider != known, wider
        found = np.zeros(self.p, dtype=bool)
        found[sorted(atoms)] = True
        return found

    def require_costs(self, document: Document) -> None:
        """Refuse what is not known beside costs of extra variables, and what they are said to cost in all."""
        has = self.has_extra_costs
        require(("extra_cost" in document) == has, "what the extra variables cost is stated if and only if some do")
        if not has:
            return
        plain = self.margin == "unit" and document.get("relaxed") is None and document["status"] != "RELAXED"
        require(plain, "no ρ-form and no relaxation is known with costs of extra variables")
        said, values = document["extra_cost"], [one["value"] for one in self.extra.values()]
        if document["objective"] is None:
            require(said is None, "the extra variables cost something, but there is no objective")
            return
        z = self.witness(values)
        size = sum((abs(d * Fraction(v)) for d, v in zip(self.extra_costs, z.tolist(), strict=True)), Fraction(0))
        apart = abs(Fraction(number(said, "what the extra variables cost")) - self.extra_cost(z))
        require(apart <= Fraction(NEAR) * size, f"the extra variables do not cost {said!r}")

    def forgiven_in_words(self) -> tuple[str, ...]:
        """The rows that a selection met only because whole variables are forgiven what exact rules do not forgive."""
        what = f"whether whole numbers meet it: rules {self.rules} forgive 2^-47 of the terms of whole variables"
        return tuple(f"the row {name!r} holds by its allowance; {what}" for name in self.forgiven)

    @property
    def is_balanced(self) -> bool:
        """Whether Σ v = 0 for every feasible dual vector: of a free intercept, not of one that has a cost."""
        return self.bias and self.constant is None

    def ids(self, names: Any) -> Integers:
        """Positions of the named atoms."""
        return _positions_of_names(names, self.atoms.index)

    def reported(self, value: float) -> float:
        """A lower bound of the unit margin as the problem reports it: −1/(4v) for the ρ-form, rounded down."""
        if self.margin == "unit" or math.isinf(value):
            return value
        return next_float_below(-0.25 / value) if value > 0 else -math.inf

    def unit(self, bound: float) -> float:
        """A value of the unit margin that `reported` makes at least `bound` of."""
        if self.margin == "unit" or math.isinf(bound):
            return bound
        value = -0.25 / bound if bound < 0 else math.inf
        while self.reported(value) < bound:
            value = math.nextafter(value, math.inf)
        return value

    def why_refused(self, ids: Integers, values: Mapping[str, Any] | None) -> str:
        """Why atoms are not in S at the stated values of the extra variables, by name; "" when they are."""
        given = {} if values is None else dict(values)
        if given.keys() != self.extra.keys():
            return "the extra variables do not have one value each"
        if ids.size != np.unique(ids).size:
            return "a feature stands in it twice"
        return self.holds(ids, self.witness(given[name] for name in self.extra))

    def holds(self, ids: Integers, extra: Array | None, sigma: Array | None = None) -> str:
        """Why the atoms `ids` (k,), all different, are not in S, "" when they are.

        Without values of the extra variables (e,) their rows are left out. With `sigma` (k,) in (0, 1] these are the
        σ of the atoms; rows hold then as far as numbers that were computed apart agree.
        """
        part = np.ones(ids.size) if sigma is None else sigma
        loose = 0.0 if sigma is None else NEAR
        if math.fsum(part.tolist()) > self.M * (1.0 + loose):
            return f"{math.fsum(part.tolist()):g} features are selected, {self.M} are allowed"
        sides = self.forced[ids]
        if np.any(sides == 0) or np.count_nonzero((sides == 1) & (part == 1.0)) < self.n_inside:
            return "the selected features contradict the forced ones"
        at = dict(zip(ids.tolist(), part.tolist(), strict=True))
        if extra is not None:
            at |= {self.p + k: float(value) for k, value in enumerate(extra)}
        for r, row in enumerate(self.rows):
            span = slice(self.by_row.indptr[r], self.by_row.indptr[r + 1])
            places = self.by_row.indices[span].tolist()
            values = self.by_row.data[span].tolist()
            if extra is None and any(j >= self.p for j in places):
                continue
            terms = [Fraction(a) * Fraction(at.get(j, 0.0)) for a, j in zip(values, places, strict=True)]
            exact = sum(terms, Fraction(0))
            size = sum((abs(t) for t in terms), Fraction(0))
            own = sum((abs(t) for t, j in zip(terms, places, strict=True) if self._is_real(j)), Fraction(0))
            room = (0 if self.has_extra_costs else ROUNDED * own) + Fraction(loose) * size
            if self.lb[r] - room <= exact <= self.ub[r] + room:
                continue
            whole = sum((abs(t) for t, j in zip(terms, places, strict=True) if j >= self.p), Fraction(0)) - own
            room += 0 if self.is_exact else ROUNDED * whole
            if not self.lb[r] - room <= exact <= self.ub[r] + room:
                return f"the selected features violate the row {row['name']!r}"
            self.forgiven[str(row["name"])] = None
        return ""

    def _is_real(self, j: int) -> bool:
        """Whether a column of the rows is that of an extra variable that need not be a whole number."""
        return j >= self.p and not self.whole[j - self.p]

    def target(self, rho: float) -> float:
        """What margins fall short of: ρ, or 0 for a loss of the margin itself."""
        return rho * float(self.stated.target)

    def loss_at(self, short: Array, off: Array) -> tuple[float, float, Array]:
        """L where margins fall short of `target` by `short` (n,), each off by at most `off` (n,).

        Returns
        -------
        value, error : float, error is what the value may be off in all
        doubt : (n,) what it may be off for the `off` of every sample
        """
        terms = self.c * self.stated.losses(short)
        doubt = self.c * self.stated.steepest(short + off) * off
        value = math.fsum(terms.tolist()) if np.all(np.isfinite(terms)) else math.inf
        return value, 1.01 * float(doubt.sum()) + TERM * U * value, doubt

    def witness(self, values: Iterable[Any], *, fractional: bool = False) -> Array:
        """Values of the extra variables (e,), in their order, after they were found between their ends and whole."""
        x = np.array([number(value, "an extra variable") for value in values])
        require(x.shape == self.low.shape, "the values are not one for every extra variable")
        require(np.all((x >= self.low) & (x <= self.high)), "an extra variable lies outside its bounds")
        require(np.all(fractional | ~self.whole | (x == np.rint(x))), "an extra variable is no whole number")
        return x

    def exact_loss(self, whole: Sequence[int], exponent: int) -> tuple[float, float] | None:
        """L and its error where all margins fall short by whole_i·2^exponent; None where that is not at hand."""
        return None

    def reduced(
        self, cost: Array, multipliers: Iterable[Any], ends: tuple[Array, Array], *, is_ray: bool = False
    ) -> tuple[list[float], Array]:
        """Numbers whose sum is at most y'(row bounds) + the extra variables' part, and (c − ½ s − A'y) rounded down.

        A Farkas ray is about no costs of these.

        `ends` are the bounds of the extra variables at the leaf. The multipliers are floats, or rational numbers as
        text where the extra variables need them exactly; either is exact, and so is what they make of the bounds.
        Multipliers that leave an extra variable without a bound prove nothing: the sum is -inf.
        """
        exact = [read_rational(value, "a multiplier") for value in multipliers]
        require(len(exact) == self.lb.size, f"{len(exact)} multipliers fit no rows")
        constant = Fraction(0)
        for r, value in enumerate(exact):
            if value:
                end = float(self.lb[r] if value > 0 else self.ub[r])
                exact[r] = value if math.isfinite(end) else Fraction(0)  # one to an absent bound counts for nothing
                constant += exact[r] * Fraction(end if math.isfinite(end) else 0.0)
        if not any(exact) and (is_ray or not self.has_extra_costs):
            return [], cost
        for k in range(len(self.extra)):  # one without a bound needs its reduced cost to be zero
            column = self.A[:, [self.p + k]].tocoo()
            terms = (Fraction(a) * exact[r] for r, a in zip(column.row.tolist(), column.data.tolist(), strict=True))
            left = (Fraction(0) if is_ray else self.extra_costs[k]) - sum(terms, Fraction(0))
            end = float(ends[0][k] if left > 0 else ends[1][k])
            if left and not math.isfinite(end):
                return [-math.inf], cost  # nothing is proven
            constant += left * Fraction(end) if left else 0
        return [below(constant)], self._reduced_costs_below(cost, exact) if any(exact) else cost

    def _reduced_costs_below(self, cost: Array, exact: list[Fraction]) -> Array:
        """(c − ½ s − A'y) rounded down: y is rounded to floats, relative to its size or to a multiple of `TINY`."""
        y = np.array([float(value) for value in exact])
        sizes = abs(self.A)
        rough = np.array([float(0 < abs(value) < NORMAL) for value in exact])
        reduced = cost - (self.A.T @ y)[: self.p]
        size = (sizes.T @ np.abs(y))[: self.p] + np.abs(cost)
        lost = 1.01 * (y.size + 6) * U * size + (y.size + 6 + 1.01 * (sizes.T @ rough)[: self.p]) * TINY
        return np.asarray(np.nextafter(reduced - lost, -math.inf))


def _extra_unit_cost(one: Mapping[str, Any]) -> Fraction:
    """What a unit of an extra variable costs."""
    cost = number(one.get("cost", 0.0), "the cost of an extra variable")
    inside = cost == 0.0 or 1.0 / LARGEST <= abs(cost) <= LARGEST
    require(inside, f"the cost {cost!r} is not of a size from {1.0 / LARGEST:g} to {LARGEST:g}")
    return Fraction(cost)


def largest(A: Any) -> Array:
    """The size of the largest coefficient of every row, (r,)."""
    return abs(A).max(axis=1).toarray().ravel() if min(A.shape) else np.zeros(A.shape[0])


def with_allowance(lb: Array, ub: Array, a: Array) -> tuple[Array, Array]:
    """The bounds between which a row holds: lb − δ(a + |lb|), ub + δ(a + |ub|), a its largest coefficient."""
    low = np.nextafter(lb - ALLOWANCE * (a + np.where(np.isfinite(lb), np.abs(lb), 0.0)), -math.inf)
    return low, np.nextafter(ub + ALLOWANCE * (a + np.where(np.isfinite(ub), np.abs(ub), 0.0)), math.inf)


def _read_bounds(given: Iterable[Mapping[str, Any]]) -> tuple[Array, Array]:
    ends = [(absent_or(one["lb"], -math.inf, "a bound"), absent_or(one["ub"], math.inf, "a bound")) for one in given]
    low, high = np.array(ends, dtype=float).reshape(-1, 2).T
    return low, high
