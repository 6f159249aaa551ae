"""A sample of the attack on whole documents: honest ones are accepted and true, forged ones that are accepted are true.

The whole of it is run by hand: `python -m tests.certificate.attack_documents`.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np
import pytest

import mipfs
from tests.certificate import attack_documents, documents, forger, raw_tables, whole_truth


@pytest.mark.sampled(11)
@pytest.mark.parametrize("kind", documents.KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_honest_documents_are_accepted_and_true(kind: str, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    counts = Counter[str]()
    k = 4 * (seed + 2) + documents.KINDS.index(kind)
    assert not attack_documents.honest(k, counts), capsys.readouterr().out
    assert counts[f"{kind}: accepted and true"] == 1


@pytest.mark.sampled(31)
@pytest.mark.parametrize("block", range(30))
def test_what_is_accepted_of_forged_documents_is_true(
    block: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(documents, "BASES", 5)
    counts = Counter[str]()
    wrong = sum(attack_documents.attacked(seed, counts, both=True) for seed in range(12 * block, 12 * block + 12))
    assert not wrong, capsys.readouterr().out
    assert sum(n for what, n in counts.items() if "true" not in what and "unchanged" not in what) == 12


@pytest.mark.parametrize("k", range(5))
def test_the_oracle_reads_tables_as_they_are_read(k: int) -> None:
    """The digest, the features and the values; that both of the digests agree says the same of y and the gaps."""
    found = documents.base("table", k)
    table = raw_tables.read(found.text, found.document)
    assert table.digest() == found.document["data_sha256"]
    options: dict[str, Any] = {}
    for name, value in zip(found.asked, found.asked[1:], strict=False):
        if name in ("--label", "--impute", "--words"):
            options[name.removeprefix("--")] = [value] if name == "--words" else value
        if name in ("--drop", "--use"):
            options[name.removeprefix("--")] = value.split(",")
        if name == "--types":
            options["types"] = dict([value.split("=")])
    data = mipfs.read(found.folder / "d.csv", **options)
    assert list(data.feature_names) == table.names
    np.testing.assert_array_equal(np.asarray(data.X, dtype=float), table.raw)


LIES = {
    "table": ("bound", "objective", "data_sha256", "n_features"),
    "path": ("chosen",),
    "classes": ("status", "objective", "bound", "selected", "classes"),
    "card": ("objective", "error", "gap", "status"),
}


def another(kind: str, name: str, old: Any) -> Any:
    """A false value of a field."""
    given = {"chosen": None, "status": "INFEASIBLE" if kind == "classes" else "FEASIBLE", "data_sha256": "0" * 64}
    if name in given:
        return given[name]
    return old[:-1] if isinstance(old, list) else 1.5 * old + 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", documents.KINDS)
def test_the_oracle_names_lies(kind: str) -> None:
    """What no checker has seen: an oracle that finds nothing would let everything pass."""
    found = next(one for one in (documents.base(kind, k) for k in range(9)) if kind != "path" or one.document["folds"])
    said = documents.first(
        documents.put(found, found.document, documents.signed(kind, found.document, found.members)),
        found.folder / "d.csv",
    )[1]
    assert not whole_truth.lies(found, found.document, found.members, said)
    for name in LIES[kind]:
        forged = copy.deepcopy(found.document)
        forged[name] = another(kind, name, forged[name])
        if forged != found.document:
            assert whole_truth.lies(found, forged, found.members, said), name
    if kind == "path":
        forged, members = copy.deepcopy(found.document), dict(found.members)
        forger.put_fold(members, np.roll(forger.fold_of(members), 1))
        assert whole_truth.lies(found, forged, members, said)
