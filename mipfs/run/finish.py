"""From a finished run to the `Result` that users see: the user's names, scale and labels.

Also here: what was found over a constant column (`mipfs.widened`), in the words of the problem that was asked:
without it.

Its weight is the intercept (`mipfs.run.stored`); it is no feature, nobody selected it, and M does not count it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms import Atoms
from mipfs.data.constant import CONSTANT
from mipfs.data.instance import Instance
from mipfs.data.over_weights import power_above
from mipfs.data.over_weights import rows_document as written_rows
from mipfs.data.rules import EXACT_RULES
from mipfs.plumbing.about import versions
from mipfs.problem import Problem
from mipfs.proof.proof import Proof
from mipfs.proof.single import at_hand, prove_emptiness
from mipfs.result.result import Result, StopReason, Trace
from mipfs.result.sidecar import ProofClaim, hexadecimal_scaling, state_rows, stated_extra
from mipfs.run.finish_pairs import bare_proof
from mipfs.run.finish_pairs import describe_pairs as of_pairs
from mipfs.run.listed import values_by_name
from mipfs.run.near_optimal import near_optimal
from mipfs.run.parameters import parameters
from mipfs.run.restored import restore_unit
from mipfs.run.run import Run
from mipfs.run.stored import StoredClassifier
from mipfs.run.stored import store_classifier as stored_classifier


def narrow_result(result: Result, problem: Problem) -> Result:
    """The result of a problem that `widened` made as one of the problem that it was made of; any other as it is."""
    data = problem.data
    if data.constant == 0.0:
        return result
    scaling = {
        key: value if isinstance(value, str) else _mapping_without_constant(value)
        for key, value in result.scaling.items()
    }
    return dataclasses.replace(
        result,
        selected=_without_constant(result.selected),
        weightless=None if result.weightless is None else _without_constant(result.weightless),
        columns=_mapping_without_constant(result.columns),
        n_features=result.n_features - 1,
        scaling=scaling,
        data_sha256=data.bare_sha256,
        near_optimal=_narrow_list(result.near_optimal),
        relaxed=_narrow_relaxed(result.relaxed),
        validated=_selected_without_constant(result.validated),
        atoms=_atoms_without_constant(result.atoms),
    )


def _without_constant(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name != CONSTANT)


def _mapping_without_constant(by_name: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in by_name.items() if name != CONSTANT}


def _selected_without_constant(one: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if one is None else {**one, "selected": list(_without_constant(one["selected"]))}


def _narrow_list(near: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if near is None:
        return None
    return {
        **near,
        "supports": [_selected_without_constant(one) for one in near["supports"]],
        "share": _mapping_without_constant(near["share"]),
    }


def _narrow_relaxed(relaxed: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if relaxed is None:
        return None
    found = {**relaxed, "sigma": _mapping_without_constant(relaxed["sigma"])}
    return (
        found
        if "mixture" not in found
        else {**found, "mixture": [_selected_without_constant(one) for one in found["mixture"]]}
    )


def _atoms_without_constant(atoms: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Of atoms that are listed all but the last one."""
    return None if atoms is None else {key: None if one is None else one[:-1] for key, one in atoms.items()}


PACKAGES = ("mipfs", "numpy", "scipy", "numba", "highspy", "pyomo")


def _wants_cuts(options: Any) -> bool:
    """Whether the user asked for the cuts."""
    return getattr(options, "pool", None) is not None or getattr(options, "keep_cuts", False)


def result_of(run: Run, driver: str) -> Result:
    """The result of a finished run."""
    data = run.problem.data
    near = near_optimal(run)  # first: it may improve on the incumbent
    classifier = stored_classifier(run)
    claim = claim_of(run)
    bound = run.claimed(run.bound)
    # What is claimed may leave open a gap that the run had closed.
    reason = run.stop() or StopReason.NUMERICAL
    chosen = () if run.incumbent is None else run.incumbent.selected
    selected = tuple(run.problem.atoms.names[int(g)] for g in chosen)
    atoms = run.problem.atoms
    described = described_at(run.problem, chosen) if atoms.is_held or not atoms.is_checkable else of_pairs(run)
    found = Result(
        status=run.status(),
        stop_reason=reason,
        objective=run.problem.reported(run.objective),
        bound=bound,
        selected=selected,
        weights=classifier.weights,
        intercept=classifier.intercept,
        weightless=classifier.weightless,
        warm_from=None if run.warm is None else run.warm.document(),
        params=_state_parameters(run, classifier, near),
        driver=driver,
        seconds=run.seconds,
        counters=dict(run.counters),
        trace=Trace(dataclasses.replace(record, bound=min(record.bound, bound)) for record in run.trace),
        labels=class_names_for_json(data),
        conflict=run.conflict,
        relaxed=_relaxed_entry(run, bound),
        validated=run.outcome.validated,
        bound_source=run.bound_source,
        versions=package_versions(),
        extra=_extra_variables(run),
        near_optimal=near,
        read=reading(atoms, described["columns"], selected),
        claim=claim,
        pool=run.outcome.pool if _wants_cuts(run.options) else None,
        alpha=run.outcome.alpha,
        settings=run.settings,
        rules=max(data.rules, EXACT_RULES),
        declare=run.outcome.declare,
        **described,
    )
    return narrow_result(restore_unit(found, run.problem), run.problem)


def _state_parameters(run: Run, classifier: StoredClassifier, near: Any) -> dict[str, Any]:
    """The parameters; rows over the weights with the allowance that the largest weight makes of all that are shown."""
    problem = run.problem
    params = {**parameters(problem), "gap": float(run.options.gap)}
    if not problem.weight_rows:
        return params
    relaxed = (run.outcome.relaxed or {}).get("weights") or {}
    shown = [classifier.weights, relaxed, *(one["weights"] for one in (() if near is None else near["supports"]))]
    named = {name for row in problem.rows_over_weights for name in row.terms}
    largest = power_above(w for weights in shown for name, w in weights.items() if name in named)
    return params | {"weight_rows": written_rows(problem.rows_over_weights, largest, problem.data)}


def described_at(problem: Problem, chosen: Sequence[int] | npt.NDArray[np.int64]) -> dict[str, Any]:
    """The fields of a `Result` about the data and the chosen atoms, whose columns are the data's own."""
    data = problem.data
    atoms = problem.atoms
    selected = np.asarray(chosen, dtype=np.int64)
    columns = {data.feature_names[j]: int(j) for j in atoms.columns(selected).ids}
    return {
        "columns": columns,
        "n_features": data.n_features,
        "scaling": {
            "kind": data.scaling,
            "shift": {name: float(data.shift[j]) for name, j in columns.items()},
            "scale": {name: float(data.scale[j]) for name, j in columns.items()},
        },
        "data_sha256": data.sha256,
        "rows": tuple(state_rows(problem.named_rows(), atoms.names)["rows"]),
        "atoms": atoms.document(selected),
    }


def claim_of(run: Run) -> ProofClaim | None:
    """What the run's proof certifies; None when it found neither a selection nor a bound, or nobody wants to check it.

    The claim lies below the run's bound (`mipfs.run.claimed`), and so does all that the result says. A run that kept
    no proof claims what its best dual vector shows; one whose proof shows less than its bound has that bound from here.
    """
    problem = run.problem
    outcome = run.outcome
    proof = run.outcome.proof
    unearned = run.incumbent is None and not run.infeasible and not math.isfinite(run.bound)
    if unearned or not getattr(run.options, "certificate", True):
        return None
    gap = float(run.options.gap)
    stronger = problem.replace(derived=(*problem.derived, *outcome.derived)) if outcome.derived else problem
    derived = stronger.selection.stated_derived()
    if run.infeasible:
        empty = proof or prove_emptiness(problem, run.late())
        if empty is not None:
            return ProofClaim(
                empty, outcome.proof_kind, None, gap, None, derived, scaling(problem), problem.data.exponent
            )
        run.infeasible, run.conflict, run.closed = False, (), True  # nobody could check it: none was found, no more
        if not math.isfinite(run.bound):
            return None
    if not problem.atoms.is_checkable:
        return None
    if not problem.atoms.is_held:
        proof = bare_proof(run) if proof is None or not math.isfinite(run.bound) else proof
    elif proof is None or not math.isfinite(run.bound):
        proof = at_hand(problem, outcome.pool, run.late())
    bound = run.bound
    (proof if isinstance(proof, Proof) else proof.tree).beside = outcome.beside
    if isinstance(proof, Proof) and proof.bound is not None:
        bound = min(bound, proof.bound) if math.isfinite(bound) else proof.bound
    if run.bound_source == "dual" and (outcome.proof is not None or run.failed or run.is_certified):
        run.bound = bound
    claimed = run.claimed(bound)
    return ProofClaim(
        proof, outcome.proof_kind, claimed, gap, run.claimed, derived, scaling(problem), problem.data.exponent
    )


def scaling(problem: Problem) -> dict[str, npt.NDArray[Any]]:
    """How the columns of the user's data are scaled, of which those of the problem may be made."""
    return hexadecimal_scaling(problem.atoms.raw)


def reading(atoms: Atoms, columns: Collection[str], selected: Collection[str]) -> dict[str, Any] | None:
    """How the data was read, for whoever uses the classifier; None for arrays."""
    data = atoms.raw
    names = {*columns, *selected}
    used = {
        column: words
        for column, words in data.words.items()
        if column in names or any(f"{column}={word}" in names for word in words)
    }
    table = data.reading
    if data.label is None and not used and table is None and data.prepared is None:
        return None
    recipe = {} if data.prepared is None else {"recipe": data.prepared.document()}
    gone = {} if table is None else {"left_out": list(table.left_out), "kept": list(table.kept)}
    return {"label": data.label, "words": used, **gone, **recipe}


def _relaxed_entry(run: Run, bound: float) -> Mapping[str, Any] | None:
    """What a relaxation found; its lower side is no more than what is shown as the bound."""
    relaxed = run.outcome.relaxed
    return None if relaxed is None else {**relaxed, "lower": min(relaxed["lower"], bound)}


def _extra_variables(run: Run) -> dict[str, Any]:
    """The extra variables by name: bounds, kind, and a value at which the selection satisfies the rows."""
    incumbent = run.incumbent
    extra = run.problem.named_rows().extra
    if not len(extra):  # of a million million products no vector is held
        return {}
    values = None if incumbent is None else values_by_name(run, incumbent.sigma(run.problem.atoms.count))
    return {name: {**one, "value": (values or {}).get(name)} for name, one in stated_extra(extra).items()}


def package_versions() -> dict[str, str]:
    """The versions that a result states."""
    return dict(versions(*PACKAGES))


def class_names_for_json(data: Instance) -> dict[str, Any]:
    """What the classes are called, as JSON has it."""
    return {"negative": _as_plain_value(data.labels.negative), "positive": _as_plain_value(data.labels.positive)}


def _as_plain_value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
