"""One rule for the verdicts of all studies."""

from __future__ import annotations

import pytest

from mipfs.lab.experiments.aytug_claims import _claim_converged, _claim_stopped
from mipfs.lab.experiments.verdicts import (
    CONFIRMED,
    LEAST,
    MARGIN,
    NOT_SHOWN,
    OPEN,
    REFINED,
    REFUTED,
    ClaimPart,
    above,
    below,
    below_ratio,
    combine_verdicts,
    describe_pairs,
    higher,
    judge_claim,
    larger,
    lower,
    no_worse,
    occurs,
)

SURE = [(0.8 + 0.01 * k, 0.7) for k in range(8)]


def test_a_part_holds_where_sign_test_and_interval_agree() -> None:
    assert larger(SURE) == CONFIRMED
    assert larger([(b, a) for a, b in SURE]) == REFUTED  # equal evidence counts alike on both sides
    one_large = [(0.01, 0.0)] * 6 + [(1.0, 0.0), (0.0, 0.0)]  # sign test 1.6%, the interval of the mean holds 0
    assert larger(one_large) == NOT_SHOWN
    one_below = [(1.0, 0.0)] * 5 + [(0.9, 0.0), (-0.01, 0.0)]  # the interval is above 0, sign test 12%
    assert larger(one_below) == NOT_SHOWN
    assert larger(SURE[: LEAST - 1]) == OPEN
    assert larger(SURE[:LEAST]) == CONFIRMED


def test_errors_are_judged_as_accuracies_are() -> None:
    up, down = higher("accuracy", SURE), lower("error", [(1 - a, 1 - b) for a, b in SURE])
    assert (up.verdict, down.verdict) == (CONFIRMED, CONFIRMED)
    assert up.figures.startswith("8 better, 0 worse (p = 0.0078), +13.50 points [")
    assert down.figures.startswith("8 better, 0 worse (p = 0.0078), -13.50 points [")


@pytest.mark.parametrize(("shift", "verdict"), [(0.0, CONFIRMED), (-0.5, CONFIRMED), (-1.5, REFUTED)])
def test_no_worse_is_the_same_rule_moved_by_a_point(shift: float, verdict: str) -> None:
    found = [(0.8 + shift * MARGIN, 0.8)] * 8
    assert no_worse("accuracy", found).verdict == verdict
    errors = [(1 - a, 1 - b) for a, b in found]
    assert no_worse("error", errors, less_is_better=True).verdict == verdict


def test_levels_and_instances() -> None:
    shares = [0.9, 0.8, 1.0, 0.95, 0.9, 0.85]
    assert above("share", shares, 0.5).verdict == CONFIRMED
    assert below("share", shares, 0.5).verdict == REFUTED
    assert above("share", shares, 0.5).figures.startswith("6 of 6 above 50% (p = 0.031), mean 90% [")
    assert above("share", [], 0.5).verdict == OPEN
    ratios = below_ratio("seconds", [0.5, 0.25, 0.125], 2.0)
    assert ratios.figures.startswith("3 of 3 below 2 (p = 0.25), mean 0.25 [")
    assert describe_pairs([(1.0, 2.0)] * 2, words=("narrower", "wider"), less_is_better=True).startswith(
        "2 narrower, 0 wider"
    )
    assert [occurs("it happens", k, 9).verdict for k in (0, 1)] == [REFUTED, CONFIRMED]


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([CONFIRMED, CONFIRMED], CONFIRMED),
        ([CONFIRMED, NOT_SHOWN], REFINED),
        ([CONFIRMED, REFUTED], REFINED),
        ([REFUTED, NOT_SHOWN], REFUTED),
        ([REFUTED, OPEN], REFUTED),
        ([NOT_SHOWN, CONFIRMED], NOT_SHOWN),
        ([CONFIRMED, OPEN], REFINED),
        ([NOT_SHOWN], NOT_SHOWN),
        ([], OPEN),
    ],
)
def test_a_claim_is_as_good_as_its_parts(parts: list[str], verdict: str) -> None:
    assert combine_verdicts(parts) == verdict


def test_a_claim_of_several_parts_says_which_of_them_hold() -> None:
    one, two = ClaimPart("a is", CONFIRMED, "1 of 1"), ClaimPart("b is", REFUTED, "0 of 1")
    assert judge_claim("a and b", [one, two]).measured == "a is: 1 of 1 (confirmed); b is: 0 of 1 (refuted)"
    assert judge_claim("a and b", [one, two]).brief == "a is: 1 of 1 (confirmed); b is: refuted"
    assert judge_claim("a", [one]).measured == "a is: 1 of 1"


def test_the_published_loop_converges_where_it_has_its_proof_and_is_judged_where_it_was_stopped() -> None:
    """One tree comes second: what is refuted of it, as here, refines the claim."""
    cells = [
        {"set": 4, "n": 500, "p": p, "C": C, "seed": seed, "M": 5}
        for p in (20, 50)
        for C in (0.25, 2.0)
        for seed in range(6)
    ]
    loop = [
        {**cell, "method": "gbd-milp", "proven": proven, "test_error": 0.1 if not proven else 0.9}
        for cell in cells
        for proven in (cell["p"] == 20 and cell["C"] == 0.25,)
    ]
    loop += [{**cell, "method": "exact", "proven": True, "test_error": 0.1} for cell in cells]
    tree = [
        {**cell, "method": name, "test_error": error, "proven": name == "exact", "proven_of_grid": 8, "grid": 8}
        for cell in cells
        if cell["C"] == 0.25
        for name, error in (("gbd-250", 0.2), ("exact", 0.1))
    ]
    assert _claim_converged(tree, loop).verdict == CONFIRMED
    every = [{**row, "proven": row["p"] == 20} if row["method"] == "gbd-milp" else row for row in loop]
    assert _claim_converged(tree, every).verdict == REFUTED
    found = _claim_stopped(tree, loop)
    assert found.verdict == REFINED
    assert "the 18 of 24 fits that 250 cuts stop" in found.measured
    assert _claim_stopped(tree, loop[:3]).verdict == OPEN
