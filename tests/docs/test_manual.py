"""The manual and the README: their links, what they must name, and the picture."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.formulation import table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MADE = {DOCS / "formulations.md", DOCS / "notebooks", DOCS / "_build"}
"""What Sphinx makes, perhaps while the tests run; it refuses a wrong link there."""
WRITTEN = [path for path in sorted(DOCS.rglob("*.md")) if not MADE & {path, *path.parents}]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md", *WRITTEN]


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_link_to_a_file_resolves(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file) if file else path
        if place.name == "formulations.md":  # made when the manual is built
            continue
        assert place.exists(), f"{path.name} links to {target}"
        assert not anchor or anchor in anchors(place), f"{path.name} links to {target}"


def test_every_page_is_in_the_contents() -> None:
    contents = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^([\w-]+)$", contents, re.MULTILINE))
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} | {"formulations"} <= listed


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    missing = [name for name in mipfs.__all__ if not re.search(rf"\bmipfs\.(\w+\.)*{name}\b", text)]
    assert not missing


def test_the_formulations_page_has_every_formulation_with_its_equations_and_code() -> None:
    spec = importlib.util.spec_from_file_location("formulations_page", DOCS / "formulations_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.page()
    for entry in table():
        part = page.split(f"\n## {entry.name}\n")[1].split("\n## ")[0]
        assert "```text\n" in part, entry.name
        assert re.search(r"```python\ndef |same code as", part), entry.name
        assert entry.module in part


def test_the_page_on_certificates_names_every_array_and_every_field() -> None:
    page = (DOCS / "certificate.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(\w+)`", page))
    r = np.random.default_rng(0)
    X = r.normal(size=(30, 4))
    data = mipfs.Instance.from_arrays(X, np.where(X[:, 0] + 0.5 * r.normal(size=30) > 0, 1, -1))
    joint = mipfs.Problem(data, loss="structural", measure="f1", bias=False, M=2, C=10.0)
    for problem in (mipfs.Problem(data, M=2), joint):
        result = mipfs.solve(problem, "branch")
        assert result.claim is not None
        assert set(result.claim.proof.arrays()) <= listed
        document = json.loads(result.to_json())
        assert set(document) <= listed
        assert set(document["params"]) - {"formulation", "time_limit", "seed"} <= listed


@pytest.mark.slow
def test_the_picture_is_what_its_script_draws(tmp_path: Path) -> None:
    shipped = DOCS / "gap.svg"
    assert shipped.stat().st_size < 100_000
    assert "<script" not in shipped.read_text(encoding="utf-8")
    command = [sys.executable, str(DOCS / "picture.py"), str(tmp_path / "gap.svg")]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr
    words = [re.findall(r">([^<>\d]+)<", p.read_text(encoding="utf-8")) for p in (shipped, tmp_path / "gap.svg")]
    assert words[0] == words[1]
