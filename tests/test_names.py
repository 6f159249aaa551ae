"""Every ``mipfs.…`` that a docstring, a comment or a page names is there."""

from __future__ import annotations

import importlib
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import mipfs

HOME = Path(mipfs.__file__).parents[1]
DOTTED = re.compile(r"(?<![\w./-])mipfs(?:\.[A-Za-z_]\w*)+")
NO_MODULES = re.compile(r"mipfs\.(toml|json|log|db|py|cert|svg|no_such_module)\b")
"""Names of files, which begin alike."""
PAGES = [HOME / "README.md", HOME / "CONTRIBUTING.md", *(HOME / "docs").rglob("*.md"), *(HOME / "docs").glob("*.py")]


def said(path: Path) -> Iterator[str]:
    """What a file says in prose: a page whole, of code its comments and all its strings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield text
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.string


@cache
def is_there(name: str) -> bool:
    """Whether a dotted name leads to something: modules as far as there are some, then attributes."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for part in parts[k:]:
            if not hasattr(found, part) and part not in getattr(found, "__annotations__", {}):
                return False
            found = getattr(found, part, None)
        return True
    return False


def wrong(path: Path) -> set[str]:
    """The names of a file that lead nowhere; where all do lead somewhere, it need not be told what is prose."""
    text = path.read_text(encoding="utf-8")
    if all(is_there(name) for name in DOTTED.findall(text) if not NO_MODULES.match(name)):
        return set()
    names = {name for part in said(path) for name in DOTTED.findall(part) if not NO_MODULES.match(name)}
    return {name for name in names if not is_there(name)}


@pytest.mark.parametrize("folder", ["mipfs", "benchmarks", "examples", "pages"])
def test_what_is_named_exists(folder: str) -> None:
    files = PAGES if folder == "pages" else sorted((HOME / folder).rglob("*.py"))
    files = [path for path in files if "_build" not in path.parts]
    assert files
    found = {str(path.relative_to(HOME)): names for path in files if (names := wrong(path))}
    assert not found, found


def test_what_leads_nowhere_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text('"""Of `mipfs.solve`, `mipfs.certificate` and `mipfs.drivers.gbd.run`."""\n# mipfs.sketch.select\n')
    assert wrong(file) == {"mipfs.certificate"}
