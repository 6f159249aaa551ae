"""What the estimators of the convex relaxation share: feature generation (Tan 2010, 2014), then what to keep of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms import Atoms
from mipfs.atoms.features import Features
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.estimators.base import Fitted, LinearClassifier, SupportSelector, at_most, solved, stacked
from mipfs.estimators.refit import refit
from mipfs.lab.baselines.linear import Weight
from mipfs.plumbing.declared import Positive, checked
from mipfs.problem import Problem
from mipfs.result.result import Result

Array = npt.NDArray[np.float64]

KEEP = ("M", "all")


class Generation(SupportSelector):
    """Base of the estimators that solve the convex relaxation by cutting planes (`mipfs.drivers.kelley`)."""

    M: Any
    C: Any
    T: Any
    loss: Any
    bias: Any
    margin: Any
    keep: Any
    gap: Any
    time_limit: Any

    def _solved(self, data: Instance, atoms: Atoms, **allowed: Any) -> tuple[Problem, Result, int]:
        """Solve the relaxation over some atoms; also returns the number of iterations."""
        if self.keep not in KEEP:
            raise UsageError(f"keep = {self.keep!r} is unknown; it is 'M' or 'all'")
        problem = Problem(
            data,
            loss=self.loss,
            bias=self.bias,
            M=at_most(self.M, atoms.count),
            C=self.C,
            margin=self.margin,
            atoms=atoms,
            **allowed,
        )
        # what the estimator throws away is not polished
        polish = False if self.keep == "all" else None
        return problem, *solved(problem, "kelley", gap=self.gap, T=self.T, time_limit=self.time_limit, polish=polish)


class Relaxation(Generation):
    """Base of those whose atoms are few enough for arrays over all of them."""

    def _atoms(self, data: Instance) -> Atoms:
        """What is selected: single features here."""
        return Features(data)

    def _fit_binary(self, data: Instance) -> Fitted:
        atoms = self._atoms(data)
        problem, result, n_iter = self._solved(data, atoms, **self._allowed(atoms.names))
        sigma = kept_sigma(problem, result, everything=self.keep == "all")
        support = np.zeros(data.n_features, dtype=bool)
        support[atoms.columns(np.flatnonzero(sigma)).ids] = True
        coef, intercept = self._weights(problem, sigma)
        return Fitted(result, support, coef, intercept, n_iter, atoms.names, sigma)

    def _weights(self, problem: Problem, sigma: Array) -> tuple[Array, float]:
        """The classifier on the kept atoms; a selector needs none."""
        return np.zeros(problem.data.n_features), 0.0

    def _keep(self, fits: list[Fitted]) -> None:
        super()._keep(fits)
        self.sigma_ = stacked([fitted.sigma for fitted in fits])


class RelaxationClassifier(Relaxation, LinearClassifier):
    """Base of the classifiers among them."""

    debias: Any

    def _weights(self, problem: Problem, sigma: Array) -> tuple[Array, float]:
        return classifier_at(problem, sigma, self.debias)


def classifier_at(problem: Problem, sigma: Array, debias: Any) -> tuple[Array, float]:
    """The SVM of (P) at σ, or the plain one on its columns with the loss weight `debias` (Tan 2014).

    Returns weights (p,) of the columns of the problem's data and the intercept, both on the user's scale.
    """
    data, chosen = problem.data, np.flatnonzero(sigma)
    columns = problem.atoms.columns(chosen)
    if debias is None:
        perspective = sigma[chosen][columns.atom] * np.square(columns.scale)
        return refit(data, columns.ids, problem.loss, problem.C, problem.bias, perspective)
    return refit(data, np.unique(columns.ids), problem.loss, plain_C(debias), problem.bias)


def plain_C(debias: Any) -> float:
    """C of the plain SVM on what is kept.

    Raises
    ------
    UsageError
        No positive number.
    """
    return float(checked("debias", checked("debias", debias, Positive), Weight))


def kept_sigma(problem: Problem, result: Result, everything: bool) -> Array:
    """σ of the atoms that are kept, shape (count,): 1 for the selected ones, or the relaxed σ."""
    relaxed: Mapping[str, float] = (result.relaxed or {}).get("sigma", {})
    values = relaxed if everything else dict.fromkeys(result.selected, 1.0)
    sigma = np.zeros(problem.atoms.count)
    sigma[problem.atoms_of(list(values))] = list(values.values())
    return sigma
