"""Random rows in every declared program, by `tests.declared_rows`; and that it finds what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests import declared_rows
from tests.declared_rows import FORMULATIONS

SEEDS = 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
@pytest.mark.parametrize("name", FORMULATIONS)
def test_rows_bind_in_every_program(name: str, seed: int) -> None:
    kind, faults = declared_rows.check(name, seed)
    assert kind
    assert not faults


def test_a_program_that_passes_rows_over_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from mipfs.formulation import Formulation

    def nothing_added(made: Formulation, rows: Any) -> Formulation:
        return made

    monkeypatch.setattr(Formulation, "with_constraints", nothing_added)
    faults = declared_rows.check("boolean", 1)[1]
    assert any("by other code" in words for words in faults)
    assert any("enumeration" in words for words in faults)
