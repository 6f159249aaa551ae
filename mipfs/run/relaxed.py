"""What a relaxation found, as a result states it: its upper side is the value at a σ and weights that stand there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mipfs.atoms import column_shares, merge_columns
from mipfs.losses.evaluated import CompensatedWeights
from mipfs.plumbing.arrays import Array, Integers, mask_of, scatter
from mipfs.problem import Problem
from mipfs.result.prediction import weights_by_name
from mipfs.run.listed import values_by_name
from mipfs.run.run import Run
from mipfs.run.stored import on_the_data, on_users_scale

Members = Sequence[tuple[float, Integers]]
"""Selections of S with their shares: their mixture is σ."""

SAME_VALUE = 1e-10
"""How far apart, relative, the values at ρ as it was and at ρ as a reader takes it may lie."""
ROW_ALLOWANCE = 1e-7
"""How far σ may be moved so that it meets the rows: solvers meet them to 1e-9, and mixtures of their points."""


def relaxed_entry(
    run: Run, sigma: Mapping[int, float], ids: Integers, w: Array, b: float, members: Members | None = None
) -> dict[str, Any] | None:
    """The entry "relaxed" of a result, and the run's upper side, which becomes the value that is shown; None for none.

    Parameters
    ----------
    run : Run
    sigma : σ > 0 by position
    ids, w : columns, of which some may stand twice, and their weights on the scaled data
    b : float, intercept on the scaled data
    members : of a relaxation over the hull of an S with rows; by default σ itself meets the rows
    """
    problem = run.problem
    mixture = (
        None if members is None else [_mixture_member(run, share, chosen) for share, chosen in members if share > 0.0]
    )
    atoms = np.array(sorted(sigma), dtype=np.int64)
    part = np.array([min(1.0, sigma[int(g)]) for g in atoms])
    extra = None
    if members is None:
        moved = _move_to_rows(run, atoms, part)
        if moved is None:
            run.upper = np.inf
            return None
        atoms, part, extra = moved
    data = problem.data
    names = problem.atoms.names
    held = problem.atoms.columns(atoms)
    columns = merge_columns(held.ids, held.scale)[0]
    given = dict(zip(*(part.tolist() for part in merge_columns(ids, w)), strict=True))
    weights = np.array([given.get(j, 0.0) for j in columns.tolist()])  # what σ = 0 leaves no room for has none
    if problem.weight_rows:
        weights = _in_the_rows(problem, columns, weights, column_shares(held, columns, part))
        if not problem.ends.hold(columns, weights / data.scale[columns]):
            run.upper = np.inf
            return None
    rho = 1.0
    if problem.margin == "rho":  # of this very point: the value of another ρ is another one
        rho = 0.5 / problem.value_at(atoms, columns, CompensatedWeights.of(weights, b), part)[0]
    on_users = rho * weights / data.scale[columns]
    intercept = on_users_scale(problem, columns, on_users, rho * b)
    at = on_the_data(problem, columns, on_users, intercept, rho)
    run.upper = problem.value_at(atoms, columns, at, part)[0]
    run.outcome.mixed = atoms
    if problem.margin == "rho":  # a reader takes ρ from the value; where rounding takes that to another one, it is open
        there = on_the_data(problem, columns, on_users, intercept, 0.5 / run.upper)
        if problem.value_at(atoms, columns, there, part)[0] > run.upper * (1.0 + SAME_VALUE):
            run.upper = np.inf
            return None
    shown = {
        "upper": problem.reported(run.upper),
        "lower": problem.reported(run.bound),
        "sigma": {names[int(g)]: float(one) for g, one in zip(atoms, part, strict=True)},
        "weights": weights_by_name(data, columns, on_users),
        "intercept": intercept,
    }
    return shown | ({} if mixture is None else {"mixture": mixture}) | ({} if extra is None else {"extra": extra})


def _in_the_rows(problem: Problem, columns: Integers, weights: Array, share: Array) -> Array:
    """Weights of some columns with their shares Σ σ_g (k,), all different, brought into the rows over the weights."""
    room = 1.0 if problem.regulariser.is_ridge else share
    low, high = (end * room for end in problem.regulariser.at(columns).ends)
    return problem.ends.brought_in(columns, weights, (low, high))


def _move_to_rows(run: Run, atoms: Integers, part: Array) -> tuple[Integers, Array, dict[str, float] | None] | None:
    """σ > 0 of atoms, moved so that it meets the rows, and values of the extra variables; None where that fails."""
    selection = run.problem.selection
    extra = run.problem.named_rows().extra
    if selection.is_plain and not selection.forced_in and not selection.forced_out:  # of any number of atoms
        total = float(part.sum())
        M = selection.M
        return atoms, part * (1.0 if M is None else min(1.0, M / total)) if total > 0.0 else part, None
    sigma = scatter(run.problem.atoms.count, atoms, part)
    found = run.oracle.nearby(sigma, ROW_ALLOWANCE)
    if found is None:
        return None
    held: Integers = np.flatnonzero(found[0]).astype(np.int64)
    return held, found[0][held], dict(zip(extra.names, map(float, found[1]), strict=True)) if len(extra) else None


def _mixture_member(run: Run, share: float, chosen: Integers) -> dict[str, Any]:
    """A selection of the mixture as a result states it."""
    sigma = mask_of(run.problem.atoms.count, chosen)
    extra = values_by_name(run, sigma)
    stated = {"share": share, "selected": [run.problem.atoms.names[int(g)] for g in chosen]}
    return stated if extra is None else stated | {"extra": extra}
