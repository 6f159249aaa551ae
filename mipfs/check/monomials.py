"""Products of features, made anew: those that a certificate is over, and what bounds all the others.

The monomial with the factor f = √(ways · γ^e · r^(d−e)) has the column f·(x_i·x_j·…), as floats, from the left and in
the order of the features; "ways" is how many words of d letters it has, the letter 1 filling it up. So the tree is over
columns that are exact, and is checked as over any others. Of those that are not held,

    |ω_jk| = f |Σ_i v_i x_ij x_ik| ≤ f q_j q_k,    q_j² = Σ_i |v_i| x_ij²

and a selection with one of them is worth at least g − ½ρ² − ½(the M − 1 largest of ρ² and of the scores of those held),
ρ the largest |ω| among them. Only pairs whose bound exceeds the ρ that the claim allows are computed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.check.dual_vectors import Duals
from mipfs.check.known import is_joint, same
from mipfs.check.rounding import Array, Arrays, Document, U, number, require, sum_below
from mipfs.check.statement import Statement
from mipfs.data.instance import Instance, SelectDefaults

HIGHER = {2: "²", 3: "³"}
UNDERFLOW_ALLOWANCE = 2.0**-900
"""More than what products that underflow lose."""
FEATURES_PER_PRODUCT, PARTNERS_PER_PRODUCT = 256, 4096
"""Features and partners in one product."""
Key = tuple[int, ...]


class StatedMonomials:
    """What a result says of its monomials, checked against the data.

    Parameters
    ----------
    document : mapping, the JSON of the result
    data : Instance, the user's own

    Attributes
    ----------
    data : Instance whose features are the monomials held
    document : mapping, the same result over these features
    """

    def __init__(self, document: Document, data: Instance) -> None:
        self.base = data
        atoms = document["atoms"]
        params = document["params"]
        made: Mapping[str, Any] = atoms["made"]
        require(made["kind"] == "monomials", f"no atoms of kind {made['kind']!r} are known")
        self.degree = made["degree"]
        self.heredity = made["heredity"]
        M = params["M"]
        require(type(self.degree) is int and self.degree in (2, 3), "monomials are of degree 2 or 3")
        require(self.heredity in (None, "weak", "strong"), f"the heredity {self.heredity!r} is unknown")
        self.gamma = number(made["gamma"], "gamma")
        self.r = number(made["r"], "r")
        require(1e-30 <= self.gamma <= 1e30 and (self.r == 0 or 1e-30 <= self.r <= 1e30), "gamma or r is out of range")
        alone = not is_joint(document) and document.get("near_optimal") is None
        require(alone, "monomials go with neither the structural loss nor a list of near-optimal supports")
        require(not params.get("weight_bounds"), "bounds on weights are of single features, not of monomials")
        require(not params.get("weight_rows"), "rows over the weights are of stored features, not of monomials")
        plain = params["lambda"] == 0 and not any(params.get(name) for name in ("forced_in", "forced_out", "penalty"))
        require(plain and type(M) is int and M >= 0, "monomials are selected by their number M alone")
        own = data.rows or data.penalty or data.select.forced_in or data.select.forced_out
        require(not own, "the data's rows, penalties and forced features are not about monomials")
        require(not np.any(data.center), "monomials of implicitly centred data are not known")
        listed = atoms.get("columns") is None and atoms.get("scale") is None
        require(listed, "monomials are listed by 'names' and 'parts' alone: their columns and scale are null")
        self.M, letters = M, data.n_features + (self.r > 0)
        self.count = math.comb(letters + self.degree - 1, self.degree)
        require(
            type(made["count"]) is int and made["count"] == self.count,
            f"there are {self.count} monomials, not {made['count']!r}",
        )
        self.held = [self._monomial_key(part) for part in made["parts"]]
        self.places = {key: g for g, key in enumerate(self.held)}
        require(len(self.places) == len(self.held) > 0, "a monomial is held twice, or none is")
        self.names = list(atoms["names"])
        require(
            self.names == [self._monomial_name(key) for key in self.held],
            "the monomials are not called by their features",
        )
        self._check_rows(document)
        self._check_columns(document)
        self.data = self._over_held()
        self.document = self._about_held(document)

    def _monomial_key(self, part: Sequence[str]) -> Key:
        for name in part:
            require(name in self.base.index, f"the data has no {name!r} to make products of")
        fits = len(part) == self.degree or (self.r > 0 and len(part) < self.degree)
        require(fits, f"{list(part)} is no monomial of this kernel")
        return tuple(sorted(self.base.index[name] for name in part))

    def _monomial_name(self, key: Key) -> str:
        words = (self.base.feature_names[j] + HIGHER.get(m, "") for j, m in Counter(key).items())
        return " × ".join(words) or "1"

    def factor(self, repeats: Sequence[int]) -> float:
        """f of a monomial in which features stand so often each."""
        e = sum(repeats)
        ways = math.factorial(self.degree)
        for m in (*repeats, self.degree - e):
            ways //= math.factorial(m)
        square = float(ways)
        for _ in range(e):
            square *= self.gamma
        for _ in range(self.degree - e):
            square *= self.r
        return math.sqrt(square)

    def _over_held(self) -> Instance:
        used = sorted({j for key in self.held for j in key})
        X = self.base.block(np.array(used, dtype=np.int64)).dense()
        at = {j: k for k, j in enumerate(used)}
        columns = np.ones((X.shape[0], len(self.held)), order="F")
        for g, key in enumerate(self.held):
            for j in key:
                columns[:, g] *= X[:, at[j]]
            columns[:, g] *= self.factor([*Counter(key).values()])
        require(np.all(np.isfinite(columns)), "a monomial is beyond floating point")
        none, one = np.zeros(len(self.held)), np.ones(len(self.held))
        held = self.base.over(columns, self.names, center=none, shift=none, scale=one, values_sha256="made")
        return replace(held, select=SelectDefaults(M=self.base.select.M))

    def _about_held(self, document: Document) -> dict[str, Any]:
        places = {name: g for g, name in enumerate(self.names)}
        kind = document["scaling"]["kind"]
        selected = list(document["selected"])
        require(all(name in places for name in selected), "a monomial is selected that is not held")
        scaling = {"kind": kind, "shift": dict.fromkeys(selected, 0.0), "scale": dict.fromkeys(selected, 1.0)}
        about = {"columns": {name: places[name] for name in selected}, "n_features": len(self.names)}
        return {**document, **about, "atoms": None, "scaling": scaling, "read": None}

    def _check_rows(self, document: Document) -> None:
        """The rows are those of heredity over the monomials held, and no others."""
        require(not document.get("extra"), "monomials are selected without extra variables")
        wanted = Counter[tuple[tuple[str, float], ...]]()
        for key, name in zip(self.held, self.names, strict=True) if self.heredity else ():
            if len(key) < 2:
                continue
            singles = [self._monomial_name((j,)) for j in sorted({*key}) if (j,) in self.places]
            whole = len(singles) == len({*key})
            sets = [singles] if self.heredity == "weak" else [[one] for one in singles] if whole else [[]]
            wanted.update(tuple(sorted([(name, 1.0), *((one, -1.0) for one in single)])) for single in sets)
        stated = Counter[tuple[tuple[str, float], ...]]()
        for row in document["rows"]:
            require(row["lb"] is None and row["ub"] == 0, f"the row {row['name']!r} is none of heredity")
            stated[tuple(sorted(row["terms"].items()))] += 1
        require(stated == wanted, "the rows are not those of heredity over the monomials held")

    def _check_columns(self, document: Document) -> None:
        """Places, shift and scale of the features in selected monomials are those of the data."""
        base = self.base
        at = {name: key for name, key in zip(self.names, self.held, strict=True)}
        require(all(name in at for name in document["selected"]), "a monomial is selected that is not held")
        said = document["n_features"]
        require(type(said) is int and said == base.n_features, "the data has another number of features")
        used = {base.feature_names[j]: j for name in document["selected"] for j in at[name]}
        places = document["columns"]
        is_whole = all(type(place) is int for place in places.values())
        require(is_whole and dict(places) == used, "the columns are not those of the selected monomials")
        for what, values in (("shift", base.shift), ("scale", base.scale)):
            right = {name: float(values[j]) for name, j in used.items()}
            require(same(document["scaling"][what], right), f"the {what} is not that of the data")
        require("center" not in document["scaling"], "monomials of implicitly centred data are not known")

    def in_words(self, lines: Sequence[str]) -> tuple[str, ...]:
        """The statement over the monomials held, with what it is over in truth."""
        kernel = f"({self.gamma:g} x'z + {self.r:g})^{self.degree}"
        kept = [line for line in lines if not line.startswith(("data:", "select ", "row "))]
        data = self.base
        kept.insert(1, f"data: {data.n_samples} samples, {data.n_features} features, scale {data.scaling!r}")
        what = f"select at most {self.M} of the {self.count} monomials of {kernel}, of which {len(self.held)} are held"
        kept.insert(2, what)
        if self.heredity:
            which = "its" if self.heredity == "strong" else "one of its"
            kept.append(f"{self.heredity} heredity: a product only with {which} features")
        return tuple(kept)

    def bound(self, statement: Statement, duals: Duals, arrays: Arrays, level: float) -> float:
        """What is proven of every selection with a monomial that is not held (unit margin), as far as `level`."""
        needed = len(self.held) < self.count and self.M > 0
        d = int(arrays["outside"][0]) if "outside" in arrays else -1
        named = 0 <= d < duals.count or not (needed or "outside" in arrays)
        require(named, "no dual vector is named that bounds the monomials which are not held")
        if not needed:
            return math.inf
        (g,), cost = duals.rows(np.array([d]))
        row = np.sort(cost[0])
        q = arrays["dual_q"][d : d + 1].astype(np.int64)
        v, total = duals.block(np.array([d]), q)[1:]

        def value(rho: float) -> float:
            """Of selections whose atoms outside have scores up to ρ², one of them at least."""
            each = -0.5 * rho * rho * (1.0 + 8 * U) - (UNDERFLOW_ALLOWANCE if rho > 0.0 else 0.0)
            others = np.sort(np.concatenate([row[: self.M - 1], np.full(self.M - 1, each)]))[: self.M - 1]
            return sum_below([g, each, *np.minimum(others, 0.0).tolist()])

        allowed = _largest_radius(value, level)
        return value(max(allowed, LargestOutside(self, v[0], float(total[0]), allowed).largest()))


def _largest_radius(value: Any, level: float) -> float:
    """A ρ ≥ 0 with value(ρ) ≥ level that is nearly the largest; 0 where there is none."""
    if not math.isfinite(level) or value(0.0) < level:
        return 0.0
    low, high = 0.0, 1.0
    while value(high) >= level and high < 1e150:
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if value(middle) >= level else (low, middle)
    return low


class LargestOutside:
    """The largest |ω| among monomials that are not held, as far as it exceeds ρ.

    Parameters
    ----------
    monomials : StatedMonomials
    v : (n,), total : Σ v
    rho : float, what need not be told apart
    """

    def __init__(self, monomials: StatedMonomials, v: Array, total: float, rho: float) -> None:
        self.of = monomials
        self.v = v
        self.total = total
        self.rho = rho
        self.X, self.n = monomials.base.block().values, v.size
        self.gamma = 2.02 * (self.n + 24) * U
        self.squared = abs(self.X).power(2) if sparse.issparse(self.X) else None

    def largest(self) -> float:
        """An upper bound on that |ω|; ρ or less where none exceeds it."""
        of = self.of
        found = 0.0
        if not self.v.any():
            return found
        for prefix, v in self._weighted_prefixes():
            for keys, sizes in self._candidates_above(prefix, v):
                outside = [tuple(sorted((*prefix, *key))) not in of.places for key in keys]
                found = max(found, float(sizes[outside].max(initial=0.0)))
        return found

    def _weighted_prefixes(self) -> Iterator[tuple[Key, Array]]:
        """The first feature of monomials of degree 3, with v∘x: of degree 2 none is taken off."""
        yield (), self.v
        for i in range(self.of.base.n_features if self.of.degree == 3 else 0):
            x = self.X[:, [i]]
            yield (i,), self.v * np.asarray(x.toarray() if sparse.issparse(x) else x).ravel()

    def _candidates_above(self, prefix: Key, v: Array) -> Iterator[tuple[list[Key], Array]]:
        """Keys and |ω|, rounded up, of what may exceed ρ, of the prefix and one or two features (or none)."""
        of = self.of
        weight = np.abs(v)
        q = np.sqrt(self._column_products(weight, squares=True)) * (1.0 + self.gamma) + UNDERFLOW_ALLOWANCE
        mass = math.sqrt(float(weight.sum())) * (1.0 + self.gamma) + UNDERFLOW_ALLOWANCE
        require(max(float(q.max(initial=0.0)), mass) < 1e150, "the monomials are beyond floating point")
        if not prefix and of.r > 0:
            most = (abs(self.total) + self.gamma * mass * mass) * of.factor([]) + UNDERFLOW_ALLOWANCE
            yield ([()], np.array([most])) if most > self.rho else ([], np.empty(0))
            sizes = (np.abs(self._column_products(v)) + self.gamma * q * mass) * of.factor([1]) * (
                1.0 + self.gamma
            ) + UNDERFLOW_ALLOWANCE
            high = np.flatnonzero(sizes > self.rho)
            yield [(int(j),) for j in high], sizes[high]
        if prefix or of.degree == 2 or of.r > 0:
            yield from self._pairs_above(prefix, v, q)

    def _largest_factor(self, prefix: Key) -> float:
        """The largest factor of the prefix and two features."""
        repeats = ([1, 1, 1], [2, 1], [3]) if prefix else ([1, 1], [2])
        return max(self.of.factor(one) for one in repeats)

    def _pairs_above(self, prefix: Key, v: Array, q: Array) -> Iterator[tuple[list[Key], Array]]:
        """Of the prefix and two features, which may be equal."""
        factor = self._largest_factor(prefix) * (1.0 + self.gamma)
        order = np.argsort(-q, kind="stable")
        order = order[factor * q[order] * q.max(initial=0.0) > self.rho]
        for start in range(0, order.size, FEATURES_PER_PRODUCT):
            block = order[start : start + FEATURES_PER_PRODUCT]
            end = int(np.searchsorted(-q[order], -self.rho / (factor * q[block[0]]), "left"))
            end = min(max(end, 0), start + block.size)
            weighed = self.X[:, block] * v[:, None]
            for first in range(0, end, PARTNERS_PER_PRODUCT):
                others = order[first : min(first + PARTNERS_PER_PRODUCT, end)]
                sums = self.X[:, others].T @ weighed
                sums = np.abs(sums.toarray() if sparse.issparse(sums) else sums)
                sums += self.gamma * np.outer(q[others], q[block])
                for a, b in np.argwhere(factor * sums + UNDERFLOW_ALLOWANCE > self.rho):
                    key = tuple(sorted((int(others[a]), int(block[b]))))
                    repeats = [*Counter((*prefix, *key)).values()]
                    size = self.of.factor(repeats) * (1.0 + self.gamma) * float(sums[a, b]) + UNDERFLOW_ALLOWANCE
                    if size > self.rho:
                        yield [key], np.array([size])

    def _column_products(self, v: Array, squares: bool = False) -> Array:
        """X'v, or (X∘X)'v."""
        if self.squared is not None:
            return np.asarray((self.squared if squares else self.X).T @ v, dtype=float)
        if not squares:
            return np.asarray(self.X.T @ v, dtype=float)
        step = max(1, (1 << 22) // self.n)
        parts = [v @ np.square(self.X[:, j : j + step]) for j in range(0, self.X.shape[1], step)]
        return np.concatenate([np.empty(0), *parts])
