"""Monomials of degree 2 (or 3) of the features as atoms: squares and interactions, none of which is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mipfs.atoms import check_features
from mipfs.atoms.implicit import Implicit
from mipfs.atoms.monomials import POWERS, TIMES, MonomialNames, Monomials
from mipfs.atoms.pair_search import PairSearch
from mipfs.atoms.triple_search import TripleSearch
from mipfs.data.instance import Instance
from mipfs.data.names import Numbered
from mipfs.data.unit import EDGE, column_of_largest
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import check_arguments

Heredity = Literal["weak", "strong"] | None

LEAST, MOST = 1e-20, 1e20
"""Range of γ and of r where it is not 0."""
COUNTED = 1 << 53
"""Monomials at most: their numbers are exact as floats too."""


class Pairs(Implicit):
    """The monomials of the polynomial kernel (γ x'z + r)²: r, √(2γr) x_j, γ x_j² and √2 γ x_j x_k (Tan 2014).

    ``Problem(data, atoms=Pairs(data), M=3)`` selects among them. With r = 0 there are squares and products alone. A
    column is made when it is selected or polished; the best ones for a dual vector are found by
    `mipfs.atoms.pair_search`, so p(p + 1)/2 may be a million million. Drivers `branch` and `kelley` carry them, with
    M as the only condition; certificates are about the user's own data.

    Parameters
    ----------
    data : Instance
        Its values as they are stored: scaled, if it was read so. Sparse data must not be centred.
    gamma : float > 0, default 1
    r : float >= 0, default 1
    degree : {2, 3}, default 2
        Of degree 3 a search that bounds do not make short is refused with its cost.
    heredity : {None, "weak", "strong"}, default None
        "strong": a monomial of degree 2 or more may be selected only with all of its features as single ones, "weak":
        with at least one of them. For `branch`; r must not be 0.

    Raises
    ------
    UsageError
        Numbers out of their range, centred sparse data, names that could be those of products, too many monomials.
    """

    is_checkable = True
    called = "products of features"

    @check_arguments
    def __init__(
        self,
        data: Instance,
        gamma: float = 1.0,
        r: float = 1.0,
        *,
        degree: int = 2,
        heredity: Heredity = None,
    ) -> None:
        _check(data, gamma, r, degree, heredity)
        self.base = data
        self.gamma = gamma
        self.r = r
        self.degree = degree
        self.heredity: Heredity = heredity
        self.monomials = Monomials(data.n_features, self.degree, self.gamma, self.r)
        if self.monomials.count > COUNTED:
            raise UsageError(
                f"{data.n_features} features have {self.monomials.count:.3g} monomials of degree {degree}; at most "
                f"{COUNTED:.3g} can be numbered: take degree 2 or fewer features"
            )
        self._check_size()
        names = MonomialNames(self.monomials, data.feature_names, data.index)
        super().__init__(data, names, f"monomials {data.sha256} {data.scaling} {gamma!r} {r!r} {degree}")

    def _check_size(self) -> None:
        X = self.base.X
        values = X.data if self.base.is_sparse else X
        most = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)), 1.0)
        if self.monomials.factor([1] * self.degree) * most**self.degree >= 2.0**EDGE:
            raise UsageError(
                f"values up to {most:g}, those of {self.base.feature_names[column_of_largest(X)]!r}, make monomials "
                f"beyond {2.0**EDGE:g}, which floating point does not square; scale the data: 'standard' or 'unit'"
            )

    def made(self, ids: Integers) -> Array:
        """The columns of monomials, (n, k) in Fortran order."""
        return self.monomials.columns(lambda used: self.base.block(used).dense(), ids)

    @property
    def kind(self) -> str:
        """What `mipfs.capability` calls them."""
        return "pairs with heredity" if self.heredity else "pairs"

    @cached_property
    def stamp(self) -> str:
        """See `mipfs.atoms.Atoms`."""
        return hashlib.sha256(f"{self.kind} {self.heredity} {self.data.values_sha256}".encode()).hexdigest()

    def on(self, data: Instance) -> Pairs:
        """The monomials of other data with the same features."""
        check_features(self.base, data)
        return Pairs(data, self.gamma, self.r, degree=self.degree, heredity=self.heredity)

    def search(self) -> PairSearch:
        """Finds the best of them; for one thread."""
        kind = PairSearch if self.degree == 2 else TripleSearch
        return kind(self.base.block().values, self.monomials)

    def single(self, ids: Integers) -> Integers:
        """The numbers of the single features of which monomials are made, ascending."""
        used = np.unique(self.monomials.members(ids))
        padded = np.full((used.size, self.degree), -1, dtype=np.int64)
        padded[:, -1] = used
        return np.unique(self.monomials.ids(padded[used >= 0]))

    def closed(self, ids: Integers) -> Integers:
        """These with the single features of which they are made, where heredity asks for them."""
        return np.union1d(ids, self.single(ids)) if self.heredity else ids

    def parts(self, ids: Integers) -> list[list[str]]:
        """The names of the features of monomials, each as often as it stands there."""
        names = self.base.feature_names
        return [[names[j] for j in members if j >= 0] for members in self.monomials.members(ids).tolist()]

    def document(self, ids: Integers) -> dict[str, Any]:
        """The monomials `ids` for the JSON of a result, with what says which others there are."""
        names = [self.names[int(g)] for g in ids]
        made = {
            "kind": "monomials",
            "degree": self.degree,
            "gamma": self.gamma,
            "r": self.r,
            "heredity": self.heredity,
            "count": self.count,
            "parts": self.parts(ids),
        }
        return {"names": names, "columns": None, "scale": None, "made": made}


def pairs(data: Instance, **options: Any) -> Pairs:
    """The monomials of degree 2 of the features of `data`; see `Pairs` for the options.

    >>> import mipfs
    >>> atoms = pairs(mipfs.read("instances/wdbc.svm", scale="standard"), r=0.0)
    >>> atoms.count, atoms.names[1]
    (465, 'mean radius × mean texture')
    """
    return Pairs(data, **options)


def _check(data: Instance, gamma: Any, r: Any, degree: Any, heredity: Any) -> None:
    """Refuse what has no monomials.

    Raises
    ------
    UsageError
    """
    for name, value, may in (("gamma", gamma, False), ("r", r, True)):
        if not (LEAST <= value <= MOST or (may and value == 0)):
            zero = "0 or " if may else ""
            raise UsageError(f"{name} = {value!r} must be {zero}a number from {LEAST:g} to {MOST:g}")
    if degree not in (2, 3):
        raise UsageError(
            f"degree = {degree!r} must be 2 or 3; the cost of degree d grows with the number of features^d"
        )
    if heredity and r == 0:
        raise UsageError("heredity asks for single features beside the products, which r = 0 leaves out; give r > 0")
    if not data.block().is_stored:
        raise UsageError("the data's own columns are computed; make the products of stored data")
    if data.is_sparse and data.block().is_centred:
        raise UsageError("products of centred sparse columns are not sparse; read the data with scale 'none' or 'unit'")
    if data.rows or data.penalty or data.select.forced_in or data.select.forced_out:
        raise UsageError("the data's rows, penalties and forced features are about single features, not about products")
    _check_names(data.feature_names)


def _check_names(names: Sequence[str]) -> None:
    if isinstance(names, Numbered):
        return
    odd = next((name for name in names if TIMES in name or name == "1" or name.endswith(tuple(POWERS.values()))), None)
    if odd is not None:
        raise UsageError(f"feature {odd!r} is called as a product of features would be; rename it")
