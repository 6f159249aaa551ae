"""What the estimators of the convex relaxation share: feature generation (Tan 2010, 2014), then what to keep of it."""

from __future__ import annotations

from typing import Any

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.estimators.allowed import over_weights
from mipfs.estimators.atoms import AtomClassifier, AtomSelector, FittedAtoms, fitted_atoms, sigma_rows
from mipfs.estimators.base import at_most, solve_problem
from mipfs.problem import Problem

KEEP = ("M", "all", "scores")
HELD = 1 << 24
"""Atoms up to which `sigma_` has a number for each."""


class Relaxation(AtomSelector):
    """Base of the estimators that solve the convex relaxation by cutting planes (`mipfs.drivers.kelley`)."""

    debias: Any = None
    weight_rows: Any = None

    def _fit_binary(self, data: Instance) -> FittedAtoms:
        if self.keep not in KEEP:
            raise UsageError(f"keep = {self.keep!r} is unknown; it is 'M', 'all' or 'scores'")
        atoms = self._make_atoms(data)
        everything = self.keep == "all"
        problem = Problem(
            data,
            loss=self.loss,
            bias=self.bias,
            M=at_most(self.M, atoms.count),
            C=self.C,
            margin=self.margin,
            atoms=atoms,
            weight_bounds=self._sign_bounds(data, atoms),
            weight_rows=over_weights(self.weight_rows, data),
            **self._selection_parameters(atoms.names, data.groups if atoms.kind == "features" else {}),
        )
        # what the estimator throws away is not polished
        polish = False if everything else None
        stops = {"T": self.T, "eps_c": self.eps_c, "eps_apg": self.eps_apg}
        rounding = "scores" if self.keep == "scores" else "best"
        given = {"polish": polish, "rounding": rounding, **stops}
        found = solve_problem(problem, "kelley", self, **given)
        classifier = isinstance(self, AtomClassifier)
        return fitted_atoms(problem, found, everything=everything, debias=self.debias, classifier=classifier)

    def _store_fits(self, fits: list[Any]) -> None:
        super()._store_fits(fits)
        if len(fits[0].names) <= HELD:
            self.sigma_ = sigma_rows(fits)


class RelaxationClassifier(Relaxation, AtomClassifier):
    """Base of the classifiers among them."""
