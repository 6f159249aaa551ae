"""The relaxed master over cuts, in HiGHS: what bounds v(σ) from below by what is known of it.

min c'σ + d'z + η   s.t.   (σ, z) ∈ S,   η ≥ g(α_s) − ½ s(α_s)'σ  for every cut s                (Aytug 2015, (10), RMP)
"""

from __future__ import annotations

import numpy as np

from mipfs.plumbing.arrays import Array
from mipfs.selection.model import selection_model
from mipfs.selection.selection import Selection
from mipfs.solvers import highs


class Epigraph:
    """S and the cuts as a model that is kept alive; its objective is in units of `scale`.

    Parameters
    ----------
    selection : Selection
    penalty : (p,) c
    scale : float > 0, size of the objective
    relaxed : bool, whether 0 ≤ σ ≤ 1 is all that is asked of σ, beside the rows

    Attributes
    ----------
    model : SelectionModel
    program : highs.HighsModel, the same with the cuts
    eta : int, the column of η; those of σ are the first
    first : int, the row of the first cut
    """

    def __init__(self, selection: Selection, penalty: Array, scale: float, *, relaxed: bool) -> None:
        self.model = selection_model(selection, relaxed=relaxed, presolve=not relaxed)
        self.scale = scale
        self.program = self.model.program
        self.eta, self.first = self.program.n_columns, self.program.n_rows
        self.program.add_column(1.0, -highs.highs_infinity(), highs.highs_infinity())
        self.program.set_costs(np.append(penalty, selection.rows.extra.cost * self.model.columns) / scale)

    def add(self, constant: float, slopes: Array) -> float:
        """Add a cut as a row, divided by its largest coefficient.

        Parameters
        ----------
        constant, slopes : g and s (p,)

        Returns
        -------
        float
            By what it was divided: a multiplier of the row is this multiple of one of the cut.
        """
        p = slopes.size
        halves = slopes * (0.5 / self.scale)
        g = constant / self.scale
        largest = max(1.0, float(halves.max(initial=0.0)))
        self.program.add_cut(g / largest, np.append(np.arange(p), self.eta), np.append(halves, 1.0) / largest)
        return largest

    def add_all(self, constants: Array, slopes: Array) -> Array:
        """Add cuts (k,) and (k, p) as rows, as `add` does one; by what they were divided, (k,)."""
        halves = slopes * (0.5 / self.scale)
        largest = np.maximum(1.0, halves.max(axis=1, initial=0.0))
        between = np.zeros((largest.size, self.eta - slopes.shape[1]))
        entries = np.hstack([halves, between, np.ones((largest.size, 1))]) / largest[:, None]
        self.program.add_cuts(constants / self.scale / largest, entries)
        return np.asarray(largest)
