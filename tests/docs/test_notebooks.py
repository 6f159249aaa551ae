"""The notebooks of the manual: every cell runs, in order, and what is downloaded is a notebook with these cells."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPTS = sorted((DOCS.parent / "examples" / "notebooks").glob("*.py"))


def notebooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks", DOCS / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_cell_runs_and_draws(script: Path) -> None:
    space: dict[str, Any] = notebooks().run(script)
    assert space["figure"].axes[0].has_data()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_notebook_has_the_cells_and_the_gallery_shows_it(script: Path, tmp_path: Path) -> None:
    module = notebooks()
    module.write(tmp_path)
    made = json.loads((tmp_path / f"{script.stem}.ipynb").read_text(encoding="utf-8"))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert made["cells"][0]["cell_type"] == "markdown"
    assert made["cells"][0]["source"].startswith("# ")
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    code = [cell["source"] for cell in made["cells"] if cell["cell_type"] == "code"]
    assert len(code) >= 3
    for one in code:
        compile(one, script.name, "exec")
    gallery = (DOCS / "examples.md").read_text(encoding="utf-8")
    for part in (f"notebooks/{script.stem}.ipynb", f"({script.stem}.svg)", f"notebooks/{script.stem}.md"):
        assert part in gallery
    assert (DOCS / f"{script.stem}.svg").exists()
