"""What the study `aytug` says of the claims of Aytug 2015."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mipfs.lab.experiments.aytug_report import CELL, DIFFERENCE, HALF, METHODS, STOPPED, by_set
from mipfs.lab.experiments.study import PaperClaim, Row
from mipfs.lab.experiments.tables import average_pairs, difference, group_rows, mean, of, pairs, percent, values
from mipfs.lab.experiments.verdicts import (
    LEAST,
    ClaimPart,
    above_ratio,
    below,
    describe_pairs,
    higher,
    judge_claim,
    larger,
    lower,
    no_worse,
)

ENOUGH, ENOUGH_TWO, ENOUGH_SETS = 18, 5, 7
"""Problems of data set one and two, and real sets, from which on a claim is judged."""
EASY, FEW_CONVERGE, HALF_CONVERGE = 20, 0.25, 0.75
"""Features of the problems of which half converge; the shares which "very few" and "roughly half" are below."""
TWICE = 2.0
"""What a drastic rise is, at least."""
LEAST_M, MORE_THAN_HALF = 20, 600
"""Of data set two: where the paper excepts it, and beyond half of the 800 features."""
OTHERS = {"rfe": "RFE's", "onsvm": "ONSVM's", "fsv": "FSV's"}
"""What data set one is compared with."""
TREE, ONE_TREE = "one tree", "one tree that adds cuts where it finds them (`gbd-250`), stronger than the published loop"
"""What stands for GBD-M, and how it differs from Table 1."""


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """What the paper says of its made data and of real data, judged."""
    one, two, real, loop, lam = (of(rows, set=number) for number in (1, 2, 3, 4, 5))
    found = [_table_four(real)] if len(group_rows(real, "data")) >= ENOUGH_SETS else []
    if len(group_rows(lam, "data")) >= LEAST:
        found.append(_claim_penalised([*real, *lam]))
    if len(group_rows(two, "M", "seed")) >= ENOUGH_TWO:
        found = [_figure_two(two), _figure_three(two), *found]
    if len(group_rows(one, "n", "p", "seed")) < ENOUGH:
        return found
    return [
        _claim_more_accurate(one),
        _claim_against_concave(one),
        _claim_stopped(one, loop),
        _claim_converged(one, loop),
        _claim_overlap(one),
        _claim_angle(one),
        _claim_few_features(one),
        *found,
    ]


def _paired_test_errors(rows: Sequence[Row], one: str, other: str) -> list[tuple[float, float]]:
    return pairs(rows, one, other, "test_error", CELL)


def _claim_more_accurate(rows: Sequence[Row]) -> PaperClaim:
    said = "GBD-M is more accurate than RFE: 32 better, 23 worse of 90 (Aytug 2015, section 4)"
    part = lower(
        f"{TREE}, test error after 250 cuts less RFE's, by problem", _paired_test_errors(rows, "gbd-250", "rfe")
    )
    exact = describe_pairs(_paired_test_errors(rows, "exact", "rfe"), less_is_better=True)
    return judge_claim(said, [part], f"the exact support's less RFE's: {exact}", DIFFERENCE)


def _claim_against_concave(rows: Sequence[Row]) -> PaperClaim:
    exact = _paired_test_errors(rows, "exact", "fsv")
    most = sum(row["method"] == "exact" and row["C"] == 32.0 for row in rows)
    details = (
        f"the exact support's: {describe_pairs(exact, less_is_better=True)}; it chose the largest C, 32, on {most} of "
        f"{len(exact)} problems: rows lie in the unit ball, FSV's weights are free"
    )
    said = (
        "GBD-M is more accurate than FSV: 45 better, 39 worse of 90 (Aytug 2015, section 4); here FSV has the λ that "
        "leaves M features, there λ = 1"
    )
    part = lower(
        f"{TREE}, test error after 250 cuts less FSV's, by problem", _paired_test_errors(rows, "gbd-250", "fsv")
    )
    return judge_claim(said, [part], details)


def _claim_stopped(rows: Sequence[Row], loop: Sequence[Row]) -> PaperClaim:
    """Of fits that were stopped alone: those of the published loop, which is what the paper stops, and of one tree."""
    cell = ("n", "p", "seed")
    found = average_pairs(_stopped_and_exact(loop, "gbd-milp"), "gbd-milp", "exact", "test_error", (*CELL, "C"), cell)
    fits = len(of(loop, method="gbd-milp"))
    stopped = len([row for row in of(loop, method="gbd-milp") if not row["proven"]])
    words = (
        f"published loop, the {stopped} of {fits} fits that 250 cuts stop, test error is no worse than the exact run's"
    )
    one = _stopped_and_exact([row for row in rows if row["p"] > EASY], "gbd-250")
    parts = [
        no_worse(f"{words}, by problem", found, less_is_better=True),
        no_worse(
            f"{TREE}, problems of p > {EASY} that they stop",
            _paired_test_errors(one, "gbd-250", "exact"),
            less_is_better=True,
        ),
    ]
    excess = max(values(rows, "most_excess"), default=0.0)
    proven = mean(of(one, method="exact"), "proven")
    details = (
        f"{ONE_TREE}: its objective is up to {percent(excess)} above a proven optimum; of the exact runs beside it "
        f"{percent(proven, 0)} are proven"
    )
    said = "Stopping after 250 cuts does not harm the test accuracy (Aytug 2015, section 4)"
    return judge_claim(said, parts, details, STOPPED)


def _stopped_and_exact(rows: Sequence[Row], method: str) -> list[Row]:
    """The fits of a method that were stopped before their proof, and the exact ones on the same problems."""
    key = (*CELL, "C") if method == "gbd-milp" else CELL
    stopped = {tuple(row[k] for k in key) for row in of(rows, method=method) if not row["proven"]}
    return [row for row in rows if row["method"] in (method, "exact") and tuple(row[k] for k in key) in stopped]


def _words_of_loop(rows: Sequence[Row]) -> str:
    """Which problems the published loop was run on."""
    sizes, grid = (sorted({row[name] for row in rows}) for name in ("p", "C"))
    return f"p = {', '.join(map(str, sizes))} at C = {', '.join(f'{C:g}' for C in grid)}"


def _claim_converged(rows: Sequence[Row], loop: Sequence[Row]) -> PaperClaim:
    """Of the published loop: a fit converged where it ends with its proof."""
    ended = of(loop, method="gbd-milp")
    small, large = ([row for row in ended if (row["p"] == EASY) is few] for few in (True, False))
    shares = [[mean(some, "proven") for some in group_rows(half, "n", "p", "seed").values()] for half in (small, large)]
    said = "Roughly half of the problems with p = 20 converge within 250 cuts, very few beyond (Aytug 2015, section 4)"
    parts = [
        below(
            f"published loop, {_words_of_loop(small)}, share of a problem's fits that converge",
            shares[0],
            HALF_CONVERGE,
        ),
        below(f"published loop, {_words_of_loop(large)}, very few", shares[1], FEW_CONVERGE),
    ]
    stopped = of(rows, method="gbd-250")
    tree = [_proven_share([row for row in stopped if (row["p"] == EASY) is few]) for few in (True, False)]
    proven = _proven_share([row for row in rows if row["method"] == "exact" and row["p"] > EASY])
    details = (
        f"{ONE_TREE}, converges in {percent(tree[0], 0)} of the fits with p = 20 and {percent(tree[1], 0)} beyond; "
        f"branch and bound proves {percent(proven, 0)} of the fits with p > 20"
    )
    return judge_claim(said, parts, details)


def _proven_share(rows: Sequence[Row]) -> float:
    """Of all fits over the values of C; NaN of none."""
    return sum(row["proven_of_grid"] for row in rows) / sum(row["grid"] for row in rows) if rows else math.nan


def _claim_angle(rows: Sequence[Row]) -> PaperClaim:
    """The inner product of the found and the planted unit normals, in thousandths."""
    thousandths = (1000.0, " thousandths")
    parts = [
        higher(f"{TREE}'s ŵ'w less {name}, by problem", pairs(rows, "gbd-250", one, "cosine", CELL), thousandths)
        for one, name in OTHERS.items()
    ]
    found = ", ".join(f"{name} {mean(of(rows, method=name), 'cosine'):.4f}" for name in ("gbd-250", *OTHERS))
    said = (
        "GBD-M's classifier is closest to the true hyperplane: ŵ'w 0.9966, RFE 0.9959, ONSVM 0.9939, FSV 0.9928 (Aytug "
        "2015, section 4)"
    )
    return judge_claim(said, parts, f"mean ŵ'w: {found}")


def _claim_penalised(rows: Sequence[Row]) -> PaperClaim:
    """GBD-λ against GBD-M, by set; how many features it leaves is told beside."""
    mine = of(rows, method="gbd-lambda")
    asked = {(row["data"], row["seed"]): row["M"] for row in of(rows, method="gbd-250")}
    shares = [row["features"] / asked[cell] for row in mine if (cell := (row["data"], row["seed"])) in asked]
    details = (
        f"its features over M, by split: {min(shares):.2f} to {max(shares):.2f}, fewer on "
        f"{sum(share < 1 for share in shares)} of {len(shares)}, more on {sum(share > 1 for share in shares)}"
    )
    part = no_worse(
        "mean test error of a set is no worse than GBD-M's", by_set(rows, "gbd-lambda", "gbd-250"), less_is_better=True
    )
    said = (
        "GBD-λ is competitive, but erratic in the number of features, with poor accuracy on 4 of 25 sets (Aytug 2015, "
        "abstract and Table 4)"
    )
    return judge_claim(said, [part], details)


def _claim_overlap(rows: Sequence[Row]) -> PaperClaim:
    shared = [{**row, "share": row["overlap"] / row["p"]} for row in rows]
    others = [method for method in METHODS if method not in ("exact", "gbd-250", "rfe")]
    parts = [
        higher(f"RFE's share of overlap less that of {other}, by problem", pairs(shared, "rfe", other, "share", CELL))
        for other in others
    ]
    parts.append(no_worse(f"{TREE}'s overlap is no worse than RFE's", pairs(shared, "gbd-250", "rfe", "share", CELL)))
    shares = {m: mean(of(shared, method=m), "share") for m in METHODS}
    order = sorted(shares, key=lambda method: -shares[method])
    details = "mean overlap " + ", ".join(f"{method} {percent(shares[method], 1)}" for method in order)
    said = "RFE overlaps best with the true features, GBD-M closely follows (Aytug 2015, Table 3)"
    return judge_claim(said, parts, details)


def _claim_few_features(rows: Sequence[Row]) -> PaperClaim:
    few, many = ([row for row in rows if (row["M"] <= 0.2 * row["p"]) is small] for small in (True, False))
    parts = []
    for one, name in OTHERS.items():
        found = _paired_test_errors(few, "gbd-250", one)
        words = f"{TREE}, test error after 250 cuts less {name} where M ≤ p/5, by problem"
        parts.append(ClaimPart(words, larger(found), describe_pairs(found, less_is_better=True)))
    details = (
        f"elsewhere, less RFE's: {describe_pairs(_paired_test_errors(many, 'gbd-250', 'rfe'), less_is_better=True)}"
    )
    said = "GBD-M does worse than others where few features matter, M ≤ p/5 (Aytug 2015, Figure 1, bin 1)"
    return judge_claim(said, parts, details)


def _figure_two(rows: Sequence[Row]) -> PaperClaim:
    """Errors against RFE's over M."""
    by = [
        f"M = {M}: {100 * difference(_paired_test_errors(some, 'gbd-250', 'rfe')):+.2f}"
        for (M,), some in sorted(group_rows(rows, "M").items())
    ]
    found = _paired_test_errors([row for row in rows if row["M"] > LEAST_M], "gbd-250", "rfe")
    exact = of(rows, method="exact")
    proven = f"{sum(row['proven_of_grid'] for row in exact)} of {sum(row['grid'] for row in exact)}"
    details = f"points by M: {', '.join(by)}; the exact runs prove {proven} fits"
    said = "With 800 features GBD-M beats RFE almost everywhere but at M = 20 (Aytug 2015, Figure 2)"
    return judge_claim(
        said, [lower(f"{TREE}, test error after 250 cuts less RFE's, M > 20, by problem", found)], details
    )


def _figure_three(rows: Sequence[Row]) -> PaperClaim:
    """Where the time goes: M = 400 against a larger and the least M on the same rows, which have the same seed.

    A peak at half, which is what the paper says, needs both.
    """
    times = []
    for (M,), some in sorted(group_rows(rows, "M").items()):
        mine, theirs = (mean(of(some, method=m), "seconds_of_grid") for m in ("gbd-250", "rfe"))
        times.append(f"M = {M}: {mine:.0f} and {theirs:.0f}")
    stopped = of(rows, method="gbd-250")
    half = {row["seed"]: row["seconds_of_grid"] for row in of(stopped, M=HALF)}
    parts = []
    for M, level, words in ((MORE_THAN_HALF, 1.0, ": a peak at half"), (LEAST_M, TWICE, "")):
        other = {row["seed"]: row["seconds_of_grid"] for row in of(stopped, M=M)}
        ratios = [half[seed] / other[seed] for seed in half if seed in other]
        parts.append(above_ratio(f"{TREE}'s CPU s at M = {HALF} over those at M = {M}, by draw{words}", ratios, level))
    said = "GBD-M's burden rises drastically where half of the features are selected, M = 400 (Aytug 2015, Figure 3)"
    return judge_claim(said, parts, f"CPU s over all C, GBD-M of 250 cuts and RFE: {'; '.join(times)}")


def _table_four(rows: Sequence[Row]) -> PaperClaim:
    others = {"rfe": "RFE", "fsv": "FSV", "onsvm": "ONSVM"}
    parts = [
        lower(f"{TREE}, mean test error of a set less {name}'s", by_set(rows, "gbd-250", one))
        for one, name in others.items()
    ]
    details = (
        f"{len(group_rows(rows, 'data'))} sets; the exact support against RFE: "
        f"{describe_pairs(by_set(rows, 'exact', 'rfe'), less_is_better=True)}"
    )
    said = (
        "On real data GBD-M is better than RFE on 7 sets, FSV on 17, ONSVM on 11 of 25; worse on 1, 1, 2 (Aytug 2015, "
        "Table 4)"
    )
    return judge_claim(said, parts, details)
