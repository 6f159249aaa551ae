"""The benchmark of signs: what it measures on a drawn set, what its page shows, and that its sources name features."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import signs

    return signs


def drawn(folder: Path, names: list[str]) -> None:
    """A set of the form of those that the benchmark reads; age counts against what its source says."""
    r = np.random.default_rng(3)
    X = np.round(r.normal(size=(80, len(names))), 3) + 3.0
    y = np.where(X[:, 1] - X[:, names.index("Age")] + 0.3 * r.normal(size=80) > 0, 1, -1)
    lines = [f"{label} " + " ".join(f"{j}:{x}" for j, x in enumerate(row, 1)) for label, row in zip(y, X, strict=True)]
    (folder / "german").mkdir()
    with gzip.open(folder / "german" / "data.svm.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    (folder / "german" / "features.txt").write_text("\n".join(names))


@pytest.mark.slow
def test_what_is_measured_and_shown(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from exact_parts.store import Store

    names = ["Status", "Savings-account", "Age", "Duration", "Credit", "Job"]
    drawn(tmp_path, names)
    monkeypatch.setenv("MIPFS_DATA", str(tmp_path))
    monkeypatch.setattr(bench, "SIZES", (2,))
    monkeypatch.setattr(bench, "WEIGHTS", (1.0,))
    monkeypatch.setattr(bench, "REPEATS", 1)
    store = Store(tmp_path / "signs.jsonl")
    for stage in (bench.price, bench.errors, bench.boxes):
        stage(store, "german", 20.0)
        stage(store, "german", 20.0)  # what is stored is not measured again
    lines = store.lines()
    assert len(store.path.read_text().splitlines()) == len(lines) == 3 + 3 + 4
    at = lines.__getitem__
    free, source, marginal = (at(f"german {kind} M=2 C=1") for kind in ("free", "source", "marginal"))
    assert all(line["verified"] and line["status"] == "OPTIMAL" for line in (free, source, marginal))
    assert source["objective"] > 1.1 * free["objective"]  # age has the other sign
    assert marginal["objective"] == pytest.approx(free["objective"], rel=1e-5)
    assert source["weights"].get("x3", 0.0) >= 0.0
    assert at("german cv source M=2 C=1")["against"] == 0
    assert at("german cv free M=2 C=1")["against"] == 5
    assert at("german box 1 M=2 C=1")["objective"] == pytest.approx(free["objective"], rel=1e-3)
    assert at("german box 1 M=2 C=1")["root"] >= at("german box 0 M=2 C=1")["root"] * (1 - 1e-5)
    assert at("german box 1 M=2 C=1")["bound_without_box"] <= free["objective"] * (1 + 1e-9)
    for name, value in (("SIZES", (2,)), ("WEIGHTS", (1.0,))):
        monkeypatch.setitem(bench.document.__globals__, name, value)
    page = bench.document(lines)
    price = 100 * (source["objective"] / free["objective"] - 1)
    assert f"{price:.3f}%" in page
    assert "5 of 5" in page
    assert f"{free['objective']:.6g}" in page


def test_the_sources_name_features(bench: Any) -> None:
    folder = os.environ.get("MIPFS_DATA")
    if folder is None:
        pytest.skip("MIPFS_DATA is not set; it names the folder of the data sets")
    for name, signs in bench.SOURCES.items():
        known = Path(folder, name, "features.txt").read_text(encoding="utf-8").split()
        assert signs.keys() <= set(known)
        assert {sign for sign, _ in signs.values()} <= {-1, 1}


def test_a_page_of_nothing(bench: Any) -> None:
    assert bench.document({}).startswith("# Signs and boxes")
