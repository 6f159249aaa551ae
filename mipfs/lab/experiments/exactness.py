"""What does exactness buy? The exact support against others' on real data, M and C chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mipfs.data.instance import Instance
from mipfs.lab.baselines.rfe import plain_svm
from mipfs.lab.experiments import sets
from mipfs.lab.experiments.choosers import CHOOSERS, PEERS, Choice, Place, try_choices
from mipfs.lab.experiments.exactness_report import claims, report
from mipfs.lab.experiments.fits import error, f1, objective
from mipfs.lab.experiments.study import Row, Study, Unit
from mipfs.lab.studies.folds import Fold, fold
from mipfs.plumbing.clock import cpu_clock

SIZES = (1, 2, 3, 5, 8, 12)
"""Values of M that are chosen from; those below p."""
GRID = (0.01, 0.1, 1.0)
OUTER, INNER, SEED = 5, 3, 1
INNER_NODES, NODES = 300, 10_000
"""Nodes of an exact fit on an inner fold, and of the last one: limits that are the same on every machine."""

DESIGN = (
    f"Nested cross-validation on the shared sets of at most 10,000 features: {OUTER} outer folds; on the training part "
    f"of each, {INNER} inner folds choose M of {', '.join(map(str, SIZES))} and C of {', '.join(map(str, GRID))} by "
    "one standard error (the smallest M, then the smallest C, whose error is at most the least plus its standard "
    "error). A method only chooses features: the classifier is always the hinge SVM of weight C with a free intercept "
    "on them, so that what differs is the support. `exact` is branch and bound with at most "
    f"{INNER_NODES} nodes on inner folds and {NODES} for the last fit; `fgm` is the relaxation with the squared hinge, "
    "rounded, `fgm-hinge` that with the hinge; `rfe` drops a fifth of the features a round; `l1` takes the features of "
    "the ℓ1-SVM whose own C leaves M of them; `forward` adds the feature of the steepest gradient. A second table "
    "compares the methods at the M and C that the exact method chose, where the objective is comparable, too. `abess` "
    "is the best subset for logistic regression by splicing, of the package of that name, which is no dependency: its "
    "units are left out where it is not installed. F1 is that of the class +1."
)


def units() -> list[Unit]:
    """Set by set, the small ones first, and their folds; the folds of a peer on the dense sets come at the end."""
    quick = {("heart_statlog", 0)}
    places = [(name, k) for name in sets.SMALL for k in range(OUTER)]
    found = [Unit({"data": name, "fold": k}, quick=(name, k) in quick, needs=name) for name, k in places]
    return found + [
        Unit({"data": name, "fold": k, "peer": peer}, needs=name, package=peer)
        for peer in PEERS
        for name, k in places
        if name not in sets.UNIT
    ]


def measure(unit: Unit) -> list[Row]:
    """Every method on one outer fold, or a peer alone."""
    part = fold(sets.read(unit.params["data"]), OUTER, SEED, unit.params["fold"])
    if "peer" in unit.params:
        return _measure_peer(part, unit.params["peer"])
    p = part.train.n_features
    rows: list[Row] = []
    place: Place | None = None
    for name in CHOOSERS:
        began = cpu_clock()
        best = choose_place(name, part.train)
        if best is None:
            continue
        M, C = best
        choices = try_choices(name, part.train, [min(M, p)], [C], NODES)
        if best not in choices:
            continue
        whole = cpu_clock() - began
        rows.append(
            {"kind": "chosen", "method": name, **_judge_choice(part, best, choices[best]), "seconds_whole": whole}
        )
        if name == "exact":
            place = best
    return rows + (_methods_at_same_place(part, place, rows[0]) if place is not None else [])


def _measure_peer(part: Fold, name: str) -> list[Row]:
    """A peer at its own M and C, and at every place where the exact method may be: the report takes that one."""
    began = cpu_clock()
    best = choose_place(name, part.train)
    sizes = [M for M in SIZES if part.train.n_features > M]
    every = try_choices(name, part.train, sizes, GRID, NODES)
    whole = cpu_clock() - began
    if best is None or best not in every:
        return []
    own = {"kind": "chosen", "method": name, **_judge_choice(part, best, every[best]), "seconds_whole": whole}
    return [own, *({"kind": "every", "method": name, **_judge_choice(part, at, every[at])} for at in every)]


def choose_place(name: str, train: Instance) -> Place | None:
    """M and C of a method by one standard error over the inner folds."""
    sizes = [M for M in SIZES if train.n_features > M]
    errors: dict[Place, list[float]] = {}
    for number in range(INNER):
        part = fold(train, INNER, SEED, number)
        for place, (ids, _) in try_choices(name, part.train, sizes, GRID, INNER_NODES).items():
            fitted = plain_svm(part.train, ids, place[1], True, "hinge")
            errors.setdefault(place, []).append(error(fitted, part.X, part.y))
    return one_standard_error({place: found for place, found in errors.items() if len(found) == INNER})


def one_standard_error(errors: Mapping[Place, Sequence[float]]) -> Place | None:
    """The least (M, C) whose mean error is at most the least one plus its standard error; None of nothing."""
    if not errors:
        return None
    means = {place: round(float(np.mean(found)), 12) for place, found in errors.items()}
    best = min(sorted(means), key=lambda place: means[place])
    most = means[best] + float(np.std(errors[best], ddof=1)) / float(np.sqrt(len(errors[best])))
    return min(place for place in means if means[place] <= most + 1e-12)


def _judge_choice(part: Fold, place: Place, choice: Choice) -> Row:
    """A choice on the test rows of the fold."""
    ids, facts = choice
    fitted = plain_svm(part.train, ids, place[1], True, "hinge")
    selected = ids.tolist() if ids.size < part.train.n_features else None
    return {
        "p": part.train.n_features,
        "M": place[0],
        "C": place[1],
        "size": int(ids.size),
        "error": error(fitted, part.X, part.y),
        "f1": f1(fitted, part.X, part.y),
        "objective": objective(part.train, fitted, place[1]),
        "proven": facts.get("proven"),
        "gap": facts.get("gap"),
        "seconds": facts["seconds"],
        "selected": selected,
    }


def _methods_at_same_place(part: Fold, place: Place, exact: Row) -> list[Row]:
    """All selecting methods at the place that the exact one chose."""
    rows: list[Row] = [{**exact, "kind": "same", "seconds_whole": None, "excess": 0.0}]
    for name in CHOOSERS:
        if name in ("exact", "all features"):
            continue
        choices = try_choices(name, part.train, [place[0]], [place[1]], NODES)
        if place in choices:
            row = _judge_choice(part, place, choices[place])
            rows.append({"kind": "same", "method": name, **row, "excess": row["objective"] / exact["objective"] - 1.0})
    return rows


STUDY = Study(
    "exactness",
    "What does exactness buy?",
    "ours; the real data sets of Aytug 2015, Tables 4 and 5, by those that are at hand",
    DESIGN,
    units,
    measure,
    report,
    claims,
)
