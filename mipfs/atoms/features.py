"""Single features as atoms: ω(α) = X'(α∘y), with the rounding error of every ω_j."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from mipfs.instance import Instance

Array = npt.NDArray[np.float64]

UNIT_ROUNDOFF = 2.0**-53


class Features:
    """The columns of one instance.

    Parameters
    ----------
    data : Instance
    """

    def __init__(self, data: Instance) -> None:
        self.data = data

    @property
    def count(self) -> int:
        """Number of atoms."""
        return self.data.n_features

    @cached_property
    def norms(self) -> Array:
        """Euclidean norm of every stored column, shape (p,)."""
        X = self.data.X
        squares = X.multiply(X).sum(axis=0) if self.data.is_sparse else np.einsum("ij,ij->j", X, X)
        norms: Array = np.sqrt(np.asarray(squares, dtype=float).ravel())
        return norms

    def omega(self, v: Array) -> Array:
        """ω = X'v, shape (p,); implicit centring included."""
        omega = np.asarray(self.data.X.T @ v, dtype=float)
        shift = float(v.sum())
        return omega - self.data.center * shift if shift != 0.0 else omega

    def omega_error(self, v: Array) -> Array:
        """A bound on |computed − exact| of every ω_j, shape (p,).

        γ_n Σ_i |v_i x_ij| ≤ γ_n ‖v‖ ‖x_j‖ for any order of summation, doubled for the norms' own error.
        """
        gamma = (v.size + 4) * UNIT_ROUNDOFF
        error = self.norms * float(np.linalg.norm(v))
        if np.any(self.data.center):
            error = error + np.abs(self.data.center) * float(np.abs(v).sum())
        return 2.0 * gamma * error

    def scores(self, v: Array) -> Array:
        """s = ω², shape (p,)."""
        return np.square(self.omega(v))

    def name(self, atom: int) -> str:
        """The name of an atom."""
        return self.data.feature_names[atom]
