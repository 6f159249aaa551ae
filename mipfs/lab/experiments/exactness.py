"""What does exactness buy? The exact support against others' on real data, M and C chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mipfs.data.instance import Instance
from mipfs.lab.baselines.linear import plain_svm
from mipfs.lab.experiments import sets
from mipfs.lab.experiments.fits import CHOOSERS, PEERS, Choice, Place, error, f1, objective, try_choices
from mipfs.lab.experiments.study import PaperClaim, Row, Study, Unit
from mipfs.lab.experiments.tables import (
    DASH,
    STANDING,
    Heading,
    across,
    average_pairs,
    difference,
    group_rows,
    mean,
    of,
    out_of,
    pairs,
    percent,
    show_number,
    standing,
    tabulate,
    values,
    with_error,
)
from mipfs.lab.experiments.verdicts import higher, judge_claim, lower, spread
from mipfs.lab.studies.folds import Fold, fold
from mipfs.lab.studies.stability import Stability, stability
from mipfs.plumbing.clock import cpu_clock
from mipfs.report.blocks import Bar, Bars, ReportBlock, Table

METHODS = ("exact", "fgm", "fgm-hinge", "rfe", "l1", "forward", "abess", "all features")
CELL = ("data", "fold")
ENOUGH = 5
"""Sets from which on a claim is judged."""


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """Error, F1, stability, size and seconds; and the comparison at the same M and C."""
    own = at_their_own(rows)
    same = at_the_same(rows)
    return [
        Heading("Each method at its own M and C"),
        _errors_block(own),
        _totals_block(own),
        _sizes_block(own),
        _stabilities_block(own),
        Heading("All methods at the M and C of the exact one"),
        _same_place_block(same),
        _by_set(same),
        _error_differences_chart(same),
    ]


def at_their_own(rows: Sequence[Row]) -> list[Row]:
    """The rows at each method's own M and C; those of peers on the folds of which there is more than that."""
    found = of(rows, kind="chosen")
    whole = {(row["data"], row["fold"]) for row in found if row["method"] == "exact"}
    return [row for row in found if (row["data"], row["fold"]) in whole]


def at_the_same(rows: Sequence[Row]) -> list[Row]:
    """The rows at the M and C of the exact method, those of peers among them, with the excess of their objective."""
    same = of(rows, kind="same")
    exact = {
        (row["data"], row["fold"], row["M"], row["C"]): row["objective"] for row in same if row["method"] == "exact"
    }
    for row in rows:
        place = (row["data"], row["fold"], row["M"], row["C"])
        if row["kind"] == "every" and place in exact:
            same.append({**row, "kind": "same", "excess": row["objective"] / exact[place] - 1.0})
    return same


def _errors_block(rows: Sequence[Row]) -> ReportBlock:
    columns = [
        ("p", lambda some: str(some[0]["p"])),
        *across("method", METHODS, lambda mine: with_error(mine, "error", 1)),
    ]
    title = "Test error in %, mean of the outer folds ± one standard error"
    return tabulate(group_rows(rows, "data").items(), ["data"], columns, title)


def _set_means(rows: Sequence[Row], one: str, other: str, name: str) -> list[tuple[float, float]]:
    """The means over the folds of every set, for two methods, of the folds that both have."""
    return average_pairs(rows, one, other, name, CELL, ("data",))


def _totals_block(rows: Sequence[Row]) -> ReportBlock:
    lines = []
    for method in METHODS:
        mine = of(rows, method=method)
        if mine:
            cells = [
                method,
                percent(mean(mine, "error")),
                show_number(mean(mine, "f1")),
                show_number(mean(mine, "size"), "{:.1f}"),
            ]
            cells += [show_number(mean(mine, "seconds"), "{:.2f}"), show_number(mean(mine, "seconds_whole"), "{:.1f}")]
            against = _set_means(rows, "exact", method, "error")
            lines.append(cells + ([DASH] * 3 if method == "exact" else standing(against)))
    head = ["method", "error", "F1", "size", "s of the last fit", "s with the choice", *STANDING]
    title = (
        "Means over all folds of each method (abess lacks some sets, so that its means are those of others; the last "
        "three columns are of the sets that both have)"
    )
    return Table(head, lines, title)


def _sizes_block(rows: Sequence[Row]) -> ReportBlock:
    columns = [
        ("exact proven", lambda some: out_of(of(some, method="exact"))),
        *across("method", METHODS[:-1], lambda mine: show_number(mean(mine, "size"), "{:.1f}")),
    ]
    title = "Number of features that one standard error chose"
    return tabulate(group_rows(rows, "data").items(), ["data"], columns, title)


def stability_by_set(rows: Sequence[Row], method: str) -> dict[str, Stability]:
    """Nogueira's index of a method on every set that has two folds or more."""
    found = {}
    for (data,), some in group_rows(rows, "data").items():
        chosen = [row["selected"] for row in some if row["method"] == method and row["selected"] is not None]
        index = stability(chosen, some[0]["p"]) if len(chosen) > 1 else None
        if index is not None:
            found[str(data)] = index
    return found


def _stabilities_block(rows: Sequence[Row]) -> ReportBlock:
    every = {method: stability_by_set(rows, method) for method in METHODS[:-1]}
    lines = []
    for (data,), _ in group_rows(rows, "data").items():
        cells = [str(data)]
        for found in every.values():
            index = found.get(str(data))
            cells.append(f"{index.index:.2f} [{index.lower:.2f}, {index.upper:.2f}]" if index else DASH)
        lines.append(cells)
    title = "Stability of the support over the folds (Nogueira's index, 95% interval)"
    return Table(["data", *every], lines, title)


def _same_place_block(rows: Sequence[Row]) -> ReportBlock:
    lines = []
    for method in METHODS[1:-1]:
        excess = values(of(rows, method=method), "excess")
        if excess:
            optimal = f"{sum(value <= 2e-4 for value in excess)} of {len(excess)}"
            cells = [method, percent(float(np.mean(excess)), 1), percent(max(excess), 1), optimal]
            lines.append(cells + standing(_set_means(rows, "exact", method, "error")))
    head = ["method", "mean excess", "largest", "as good as exact", *STANDING]
    return Table(head, lines, "Excess: the training objective above that of the exact support")


def _by_set(rows: Sequence[Row]) -> ReportBlock:
    lines = []
    for (data,), some in group_rows(rows, "data").items():
        cells = [str(data), show_number(mean(of(some, method="exact"), "M"), "{:.1f}")]
        for method in METHODS[1:-1]:
            mine = of(some, method=method)
            points = show_number(100 * difference(pairs(some, "exact", method, "error", CELL)), "{:+.1f}")
            cells.append(f"{percent(mean(mine, 'excess'), 1)} ({points})" if mine else DASH)
        lines.append(cells)
    title = "Mean excess of the objective (in parentheses: exact's test error less the method's, points)"
    return Table(["data", "M", *METHODS[1:-1]], lines, title)


def _error_differences_chart(rows: Sequence[Row]) -> ReportBlock:
    bars = []
    for method in METHODS[1:-1]:
        found = _set_means(rows, "exact", method, "error")
        points = 100 * difference(found)
        text = spread(found, (100.0, ""))
        bars.append(Bar(method, points if found else None, text))
    note = "In points; below 0 the exact support has the smaller test error; in brackets the 95% interval over sets."
    return Bars("Test error of exact less the method's at the same M and C", bars, is_signed=True, note=note)


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """What exactness buys, and Aytug's claim on real data."""
    own = at_their_own(rows)
    same = at_the_same(rows)
    if len(group_rows(own, "data")) < ENOUGH:
        return []
    excess = of(same, method="rfe")
    first = judge_claim(
        "At the same M and C the exact support has smaller test errors than RFE's (Aytug 2015: the method is more "
        "accurate than benchmark methods)",
        [lower("mean test error of a set less RFE's", _set_means(same, "exact", "rfe", "error"))],
        f"RFE's objective is {percent(mean(excess, 'excess'), 1)} above on average",
    )
    return [first, _claim_against_best_other(own)]


def _claim_against_best_other(own: Sequence[Row]) -> PaperClaim:
    """Against the best of the others in hindsight, which is more than any one of them would reach."""
    rivals = [m for m in METHODS[1:-1] if any(row["method"] == m for row in own)]
    errors = {m: _set_means(own, "exact", m, "error") for m in rivals}
    steady = {m: stability_by_set(own, m) for m in ("exact", *rivals)}
    mean_ = {m: float(np.mean([one.index for one in found.values()])) for m, found in steady.items()}
    best = max(rivals, key=lambda m: difference(errors[m]))
    other = max(rivals, key=lambda m: mean_[m])
    both = [(one.index, steady[other][data].index) for data, one in steady["exact"].items() if data in steady[other]]
    said = "Exactness pays in test error, and in stability, where M and C are chosen by cross-validation (ours)"
    parts = [
        lower(f"mean test error of a set less that of the best of {len(rivals)} others, {best}", errors[best]),
        higher(f"stability less that of the steadiest, {other}", both, (1.0, "")),
    ]
    return judge_claim(
        said, parts, f"mean stability of the sets that each has: {', '.join(f'{m} {mean_[m]:.2f}' for m in steady)}"
    )


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
