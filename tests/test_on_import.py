"""What is done once another package is imported, in whatever order."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from mipfs.plumbing.on_import import once_imported

ORDERS = {
    "before": "from mipfs import models\nimport pyomo.environ as pyo",
    "after": "import pyomo.environ as pyo\nfrom mipfs import models",
    "of a part": "from mipfs.models import fsp_m\nfrom pyomo import environ as pyo",
    "by a file of ours": (
        "from mipfs import models\nfrom mipfs.formulation import pyomo_values, canonical\nimport pyomo.environ as pyo"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_pyomo_knows_the_solver_whatever_was_imported_first(order: str) -> None:
    program = f"{ORDERS[order]}\nprint(pyo.SolverFactory('mipfs').available())"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "FullLicense" in ran.stdout or "True" in ran.stdout, ran.stdout


def test_it_is_done_once_after_the_module_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "comes_late.py").write_text("there = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = list[int]()
    before = list(sys.meta_path)
    once_imported("comes_late", lambda: seen.append(sys.modules["comes_late"].there))
    assert seen == []
    for _ in range(2):
        import_module("comes_late")
    assert seen == [1]
    assert sys.meta_path == before
    once_imported("comes_late", lambda: seen.append(2))
    assert seen == [1, 2]
    del sys.modules["comes_late"]


def test_whoever_asks_twice_is_told_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a module that asks is loaded again: watches do not ask one another."""
    (tmp_path / "comes_later.py").write_text("there = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen, before = list[str](), list(sys.meta_path)
    for word in ("first", "second"):
        once_imported("comes_later", lambda word=word: seen.append(word))  # type: ignore[misc]
    import_module("comes_later")
    assert sorted(seen) == ["first", "second"]
    assert sys.meta_path == before
    del sys.modules["comes_later"]


def test_an_action_that_fails_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "comes_hard.py").write_text("there = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    left, before = [1], list(sys.meta_path)
    once_imported("comes_hard", lambda: 1 // (1 - left.pop()) if left else None)
    with pytest.raises(ZeroDivisionError):
        import_module("comes_hard")
    import_module("comes_hard")
    assert sys.meta_path == before
    del sys.modules["comes_hard"]


def test_what_is_not_installed_is_not_found_as_before() -> None:
    before = list(sys.meta_path)
    once_imported("is_nowhere_to_be_found", lambda: None)
    try:
        with pytest.raises(ModuleNotFoundError, match="is_nowhere_to_be_found"):
            import_module("is_nowhere_to_be_found")
    finally:
        sys.meta_path[:] = before
