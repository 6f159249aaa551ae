"""A process in which others use HiGHS, Clarabel, SCIP and threads too: nobody sees the others in what they find."""

from __future__ import annotations

import json

import pytest

from tests.other_users import others, ours


@pytest.mark.every
@pytest.mark.slow
def test_what_we_find_does_not_depend_on_others_nor_they_on_us() -> None:
    found = {}
    for mode in ("first", "amid"):
        done = others.run(mode)
        assert done.returncode == 0, done.stderr
        found[mode] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert set(found["first"]) == set(ours.cases())
    for name, alone in found["first"].items():
        assert found["amid"][name] == alone, name
    for drawn in ours.RELAXATIONS:
        value, status, _, _, lower, upper = found["first"][f"qcqp_relaxation {drawn}"]
        assert status == "RELAXED"
        assert (lower, upper) == pytest.approx((value, value), rel=2e-4), "Clarabel says otherwise"
