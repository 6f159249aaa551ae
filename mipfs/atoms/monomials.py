"""The monomials of the polynomial kernel (γ x'z + r)^d: their numbers, names, factors and columns, none of them stored.

With x_0 = 1, the kernel is φ(x)'φ(z) with an entry of φ for every multiset of d of the variables x_0 … x_p:

    √(d!/Π m_j! · γ^e r^(d−e)) · Π x_j        m_j: how often x_j stands in it,  e: how often others than x_0 do

For d = 2 these are r, √(2γr) x_j, γ x_j² and √2 γ x_j x_k. Without r (r = 0) the variable x_0 is left out.
A monomial is the number of its multiset j ≤ k: j + k(k + 1)/2, and i + j(j + 1)/2 + k(k + 1)(k + 2)/6 for d = 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.names import Unstored
from mipfs.plumbing.arrays import Array, Integers

TIMES = " × "
POWERS = {2: "²", 3: "³"}
ONE = "1"
"""The name of the monomial without features."""


class Monomials:
    """The monomials of degree `degree` in p features, with the factors of the kernel.

    Parameters
    ----------
    p : int, features
    degree : 2 or 3
    gamma : float > 0
    r : float >= 0
    """

    def __init__(self, p: int, degree: int, gamma: float, r: float) -> None:
        self.p = p
        self.degree = degree
        self.gamma = gamma
        self.r = r
        self.has_one = int(r > 0.0)
        self.variables = p + self.has_one
        self.count = math.comb(self.variables + degree - 1, degree)

    def members(self, ids: npt.ArrayLike) -> Integers:
        """The features of monomials, (k, degree), ascending; −1 stands for x_0 = 1."""
        left = np.array(ids, dtype=np.int64).reshape(-1)
        found = []
        for d in range(self.degree, 1, -1):
            place = _place_of_rank(left, d)
            found.append(place)
            left = left - _count_multisets_below(place, d)
        return np.stack([left, *found[::-1]], axis=1) - self.has_one

    def ids(self, members: npt.ArrayLike) -> Integers:
        """The numbers (k,) of monomials with these features (k, degree), in any order, −1 for x_0 = 1."""
        places = np.sort(np.array(members, dtype=np.int64).reshape(-1, self.degree), axis=1) + self.has_one
        return np.asarray(
            sum((_count_multisets_below(places[:, d], d + 1) for d in range(self.degree)), np.zeros(len(places), int))
        )

    def factor(self, repeats: Sequence[int]) -> float:
        """√(d!/Π m_j! · γ^e r^(d−e)) of a monomial whose features stand in it `repeats` times each."""
        e = sum(repeats)
        ways = math.factorial(self.degree)
        for m in (*repeats, self.degree - e):
            ways //= math.factorial(m)
        inner = float(ways)
        for one, times in ((self.gamma, e), (self.r, self.degree - e)):
            for _ in range(times):
                inner *= one
        return math.sqrt(inner)

    def factors(self, members: Integers) -> Array:
        """The factor of every monomial, (k,), by its `members`."""
        found = np.empty(len(members))
        equal = members[:, 1:] == members[:, :-1]
        inner = equal & (members[:, 1:] >= 0)
        kinds = np.concatenate([(members < 0), inner], axis=1)
        for kind in np.unique(kinds, axis=0):
            shown = np.all(kinds == kind, axis=1)
            found[shown] = self.factor(repeats_of(members[np.argmax(shown)].tolist()))
        return found

    def name(self, members: Sequence[int], names: Sequence[str]) -> str:
        """``area × smoothness``, ``area²``, ``area``, or ``1``."""
        features = [*dict.fromkeys(j for j in members if j >= 0)]
        repeats = repeats_of(members)
        words = (f"{names[j]}{POWERS.get(m, '')}" for j, m in zip(features, repeats, strict=True))
        return TIMES.join(words) or ONE

    def columns(self, taken: Any, ids: Integers) -> Array:
        """The columns of monomials, (n, k) in Fortran order: the factor times the product in ascending order.

        Parameters
        ----------
        taken : callable, the columns `features` (m,) of the data as an (n, m) array
        ids : (k,)
        """
        members = self.members(ids)
        used = np.unique(members[members >= 0])
        X = np.asarray(taken(used), dtype=float)
        made = np.ones((X.shape[0], len(members)), order="F")
        for d in range(self.degree):
            there = np.flatnonzero(members[:, d] >= 0)
            made[:, there] *= X[:, np.searchsorted(used, members[there, d])]
        made *= self.factors(members)
        return made


def repeats_of(members: Sequence[int]) -> list[int]:
    """How often each feature stands in a monomial, by the order in which they do."""
    features = [j for j in members if j >= 0]
    return [features.count(j) for j in dict.fromkeys(features)]


def _count_multisets_below(place: Integers, d: int) -> Integers:
    """Multisets of d of the variables 0 … place − 1."""
    if d == 1:
        return place
    pairs = place * (place + 1) // 2
    if d == 2:
        return pairs
    # place (place + 1) (place + 2) / 6, no product of which is longer than the result
    return np.asarray(np.where(pairs % 3 == 0, pairs // 3 * (place + 2), pairs * ((place + 2) // 3)), dtype=np.int64)


def _place_of_rank(left: Integers, d: int) -> Integers:
    """The largest place with `_count_multisets_below(place, d)` ≤ left."""
    guess = np.sqrt(2.0 * left) if d == 2 else np.cbrt(6.0 * left)
    place: Integers = np.maximum(guess.astype(np.int64) - 2, 0)
    while np.any(more := _count_multisets_below(place + 1, d) <= left):
        place = place + more
    return place


class MonomialNames(Unstored):
    """The names of all monomials, made when they are asked for."""

    def __init__(self, monomials: Monomials, names: Sequence[str], index: Mapping[str, int]) -> None:
        self.monomials = monomials
        self.names = names
        self._places = index

    def __len__(self) -> int:
        return self.monomials.count

    def made(self, j: int) -> str:
        """The name of one of them."""
        return self.monomials.name(self.monomials.members([j])[0].tolist(), self.names)

    def position(self, name: str) -> int | None:
        """The number of the monomial of that name, None if there is none; its features may stand in any order."""
        members = self._features_of_monomials.get(name)
        if members is None:
            return None
        padded = [-1] * (self.monomials.degree - len(members)) + members
        fits = len(padded) == self.monomials.degree and (self.monomials.has_one or -1 not in padded)
        return int(self.monomials.ids([padded])[0]) if fits else None

    @cached_property
    def _features_of_monomials(self) -> _Features:
        return _Features(self._places)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MonomialNames):
            mine = self.monomials
            its = other.monomials
            same = (mine.p, mine.degree, mine.has_one) == (its.p, its.degree, its.has_one)
            return same and (self.names == other.names or tuple(self.names) == tuple(other.names))
        return super().__eq__(other)

    __hash__ = Unstored.__hash__


class _Features:
    """The features of a monomial by its name."""

    def __init__(self, index: Mapping[str, int]) -> None:
        self.index = index

    def get(self, name: str) -> list[int] | None:
        """Positions of the features, each as often as it stands there; None where one is unknown."""
        if name == ONE:
            return []
        found: list[int] = []
        for word in name.split(TIMES):
            times = next((m for m, sign in POWERS.items() if word.endswith(sign)), 1)
            feature = word[:-1] if times > 1 else word
            if feature not in self.index:
                return None
            found += [self.index[feature]] * times
        return found
