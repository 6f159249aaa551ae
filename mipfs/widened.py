"""A measure's problem with an intercept, as the drivers solve it: the intercept is the weight of a constant column.

The structural loss has no bias of its own. In

    min over σ in S, w, b of  c'σ + ½ Σ w_j²/σ_j + ½ (b/κ)² + C max over ȳ of [Δ(ȳ) − Σ_i v_i(ȳ) (w'x_i + b)]₊

b = κu is the weight u of a column of κ that is always selected and not counted in M: a problem of the structural loss
without a bias, over one feature more. A driver solves that, and `mipfs.run.finish` says what it found of the problem
that was asked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.atoms import Atoms
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.data.constant import CONSTANT, with_constant
from mipfs.errors import UsageError
from mipfs.problem import Problem


def widen_problem(problem: Problem) -> Problem:
    """The problem over the features and a constant column; any problem without such a bias as it is.

    Raises
    ------
    UsageError
        What is selected takes no constant column.
    """
    if not problem.has_constant:
        return problem
    atoms = _with_constant(problem)
    rows = problem.rows
    assert rows is not None
    assert problem.forced_in is not None
    p = problem.atoms.count
    parts = [rows.matrix[:, :p], sparse.csr_array((len(rows), 1)), rows.matrix[:, p:]]
    return dataclasses.replace(
        problem,
        data=atoms.data,
        atoms=atoms,
        bias=False,
        M=None if problem.M is None else problem.M + 1,
        cardinality=problem.M is not None,
        lam=_widened_penalties(problem),
        rows=dataclasses.replace(rows, matrix=sparse.hstack(parts, format="csr")),
        forced_in=(*problem.forced_in, CONSTANT),
        derived=(),
    )


def _with_constant(problem: Problem) -> Atoms:
    """The atoms, and the constant column as a last one."""
    atoms = problem.atoms
    wide = with_constant(problem.data, float(problem.intercept_scaling))
    if isinstance(atoms, Features):
        return Features(wide, np.append(atoms.scale, 1.0) if atoms.is_scaled else "none")
    if type(atoms) is Groups:
        members: dict[str, Any] = {name: atoms.columns(np.array([g])).ids for g, name in enumerate(atoms.names)}
        return Groups(wide, members | {CONSTANT: [CONSTANT]}, np.append(atoms.scale, 1.0))
    raise UsageError(f"{atoms.kind} take no constant column as an intercept; give bias=False (-p bias=false)")


def _widened_penalties(problem: Problem) -> Any:
    """λ, 0 for the constant column."""
    lam = problem.lam
    if isinstance(lam, Mapping) or not np.any(np.asarray(lam, dtype=float)):
        return lam if isinstance(lam, Mapping) else 0.0
    return [*np.broadcast_to(np.asarray(lam, dtype=float), problem.atoms.count).tolist(), 0.0]
