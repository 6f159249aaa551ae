"""Where a relaxation begins whose samples are many times its columns: at the SVM on all of them.

A step of the interior point takes as many passes over the data as there are columns; the SVM takes few passes at all,
for only the samples near the margin enter its systems. With C Σ ℓ far above the ridge, as samples in millions have it,
its value is nearly that of the relaxation, so that whatever limit strikes later leaves a bound worth having.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.inner.boolean import Boolean, Known
from mipfs.inner.subproblem import Subproblem


def known(whole: Boolean, high: npt.NDArray[Any]) -> Known | None:
    """The SVM on all atoms that may be selected; None where it does not pay, or there was no time for it.

    Parameters
    ----------
    whole : Boolean
    high : (count,) upper ends of σ
    """
    problem, settings = whole.problem, whole.settings
    open_atoms = np.flatnonzero(high > 0.5)
    columns = problem.atoms.columns(open_atoms)
    is_tall = whole.first.size >= settings.tall * columns.ids.size
    if not (is_tall and problem.data.block().is_stored and whole.work(open_atoms.size) > settings.cheap):
        return None
    sigma = np.zeros(problem.atoms.count)
    sigma[open_atoms] = 1.0
    svm = Subproblem(problem, whole.must_stop).solve(sigma, settings.tall_gap).svm
    if not np.any(svm.alpha):
        return None
    alpha = np.bincount(whole.kind, svm.alpha, minlength=whole.first.size) / whole.size
    return Known(alpha, columns.ids, open_atoms[columns.atom], svm.w, svm.b)
