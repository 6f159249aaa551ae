"""From a finished run to the `Result` that users see: the user's names, scale and labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mipfs.atoms.features import Features
from mipfs.certificate.proof import Proof
from mipfs.certificate.sidecar import Claim
from mipfs.drivers.evidence import emptiness
from mipfs.drivers.near_optimal import near_optimal
from mipfs.drivers.run import Run, parameters
from mipfs.prediction import weights_by_name
from mipfs.result import Result, StopReason
from mipfs.selection import Rows

PACKAGES = ("mipfs", "numpy", "scipy", "numba", "highspy", "pyomo")


def result_of(run: Run, driver: str) -> Result:
    """The result of a finished run."""
    data = run.problem.data
    reason = run.stop()
    assert reason is not None
    selected: tuple[str, ...] = ()
    weights: dict[str, float] = {}
    columns: dict[str, int] = {}
    intercept = math.nan
    scaling: dict[str, Any] = {"kind": data.scaling, "shift": {}, "scale": {}}
    if run.incumbent is not None:
        ids = run.problem.atoms.columns(run.incumbent.selected).ids
        # the ρ-form's solution is ρ times the unit margin's, ρ = 1/(2v)
        rho = 0.5 / run.objective if run.problem.margin == "rho" else 1.0
        on_user_scale = rho * run.incumbent.w / data.scale[ids]
        intercept = rho * run.incumbent.b - float(on_user_scale @ data.shift[ids])
        selected = tuple(run.problem.atoms.names[g] for g in run.incumbent.selected)
        weights = weights_by_name(data, ids, on_user_scale)
        columns = {data.feature_names[j]: int(j) for j in ids}
        scaling["shift"] = {name: float(data.shift[j]) for name, j in columns.items()}
        scaling["scale"] = {name: float(data.scale[j]) for name, j in columns.items()}
    assert run.problem.rows is not None
    return Result(
        status=run.status(),
        stop_reason=StopReason.INFEASIBLE if run.infeasible else reason,
        objective=run.problem.reported(run.objective),
        bound=run.problem.reported(run.bound),
        selected=selected,
        weights=weights,
        intercept=intercept,
        params=parameters(run.problem),
        driver=driver,
        seconds=run.elapsed,
        counters=dict(run.counters),
        trace=tuple(run.trace),
        labels={"negative": _plain(data.labels.negative), "positive": _plain(data.labels.positive)},
        columns=columns,
        n_features=data.n_features,
        scaling=scaling,
        data_sha256=data.sha256,
        rows=_described(run.problem.rows, run.problem.atoms.names),
        conflict=run.conflict,
        relaxed=run.extras.get("relaxed"),
        validated=run.extras.get("validated"),
        bound_source=run.bound_source,
        versions=_versions(),
        extra=_extra(run),
        near_optimal=near_optimal(run),
        claim=claim_of(run),
    )


def claim_of(run: Run) -> Claim | None:
    """What the run's proof certifies; None without one, or where the checker could not state the problem.

    The bound claimed lies 1e-11 of itself and 1e-14 Σ c_i below the run's: the sums of the drivers and of the checker
    differ by less, for both take off the errors of g and of every ω_j, and the checker's bounds on those are smaller.
    """
    problem, proof = run.problem, run.extras.get("proof")
    assert problem.rows is not None
    names, features = problem.rows.extra.names, problem.data.index
    named = len(set(names)) == len(names) and not any(name in features for name in names)
    plain = isinstance(problem.atoms, Features) and np.all(problem.atoms.scale == 1.0) and problem.margin == "unit"
    if not plain or not named:
        return None
    if proof is None and run.infeasible:
        proof = emptiness(problem)
    if proof is None:
        return None
    kind, bound = run.extras.get("proof_kind", "tree"), run.bound
    if isinstance(proof, Proof) and proof.bound is not None:
        bound = min(bound, proof.bound)
    if run.infeasible:
        return Claim(proof, kind, None, float(run.options.gap))
    if not math.isfinite(bound):
        return None
    slack = run.extras.get("proof_slack", 1e-11) * abs(bound) + 1e-14 * float(problem.c_i.sum())
    return Claim(proof, kind, bound - slack, float(run.options.gap))


def _extra(run: Run) -> dict[str, Any]:
    """The extra variables by name: bounds, kind, and a value at which the selection satisfies the rows."""
    selection, incumbent = run.problem.selection, run.incumbent
    extra = selection.rows.extra
    values: list[float | None] = [None] * len(extra)
    if len(extra) and incumbent is not None:
        sigma = np.zeros(selection.n_features, dtype=bool)
        sigma[incumbent.selected] = True
        found = run.oracle.completion(sigma)
        assert found is not None, "the incumbent satisfies the rows"
        values = [float(value) for value in found]
    return {
        name: {
            "lb": float(extra.lb[k]) if math.isfinite(extra.lb[k]) else None,
            "ub": float(extra.ub[k]) if math.isfinite(extra.ub[k]) else None,
            "integer": bool(extra.integer[k]),
            "value": values[k],
        }
        for k, name in enumerate(extra.names)
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _described(rows: Rows, names: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    """The rows by name, as the JSON has them; infinite bounds are None."""
    if not len(rows):
        return ()
    places = (*names, *rows.extra.names)
    described = []
    for r, name in enumerate(rows.names):
        start, stop = rows.matrix.indptr[r], rows.matrix.indptr[r + 1]
        terms = {
            places[j]: float(a)
            for j, a in zip(rows.matrix.indices[start:stop], rows.matrix.data[start:stop], strict=True)
        }
        bounds = [float(b) if math.isfinite(b) else None for b in (rows.lb[r], rows.ub[r])]
        described.append({"name": name, "terms": terms, "lb": bounds[0], "ub": bounds[1], "origin": rows.origins[r]})
    return tuple(described)


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
