"""Small data and atoms for the tests of functions of single features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs import atoms
from mipfs.atoms.additive import Additive
from mipfs.data.instance import Instance

Array = npt.NDArray[np.float64]
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("additive-hik", {}),
    ("additive-hik", {"levels": 5}),
    ("additive-chi2", {}),
    ("additive-intersection", {"steps": 4}),
    ("additive-jensen-shannon", {"steps": 2}),
    ("splines", {"knots": 4}),
]


def draw(seed: int, n: int | None = None, p: int | None = None) -> tuple[Array, Array]:
    """Values >= 0 of any scale, rounded so that some repeat, zeros and zero columns among them; labels."""
    r = np.random.default_rng(seed)
    n, p = n or int(r.integers(2, 40)), p or int(r.integers(1, 6))
    X = np.round(r.gamma(1.0, 1.0, size=(n, p)), int(r.integers(0, 4)))
    X[r.random((n, p)) < 0.3] = 0.0
    X[:, r.random(p) < 0.1] = 0.0
    y = np.where(r.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X * 10.0 ** float(r.integers(-6, 7)), y


def instance(seed: int, **shape: int) -> tuple[Instance, Array]:
    X, y = draw(seed, **shape)
    return Instance.from_arrays(sparse.csc_array(X) if seed % 2 else X, y), X


def dense(made: Any) -> Array:
    return np.asarray(made.toarray() if sparse.issparse(made) else made)


def make(name: str, data: Instance, **options: Any) -> Additive:
    made = atoms.make(name, data, **options)
    assert isinstance(made, Additive)
    return made
