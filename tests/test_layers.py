"""Imports go down the list of rooms only: in every file, lazy ones and names in strings included."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mipfs

PACKAGE = Path(mipfs.__file__).parent
ROOMS = (
    "errors", "compiled", "pointers", "plumbing", "settings", "report", "kernels", "data", "measures", "losses",
    "atoms", "solvers", "selection", "readers", "convert", "generators", "problem", "capability", "check", "proof",
    "inner", "backends", "formulation", "result", "run", "drivers", "models", "baselines", "sketch", "mil",
    "estimators", "studies", "page", "__init__", "cli", "__main__",
)  # fmt: skip
"""From the ground up; CONTRIBUTING says in a line what each is."""
REGISTRIES = {"formulation": "mipfs.models."}
"""Rooms that find others by name, and what such a name begins with."""
VOCABULARY = {"losses": "mipfs.check.stated."}
"""Rooms that may import one file of a room further down: a loss's file the words that its statement is written in."""
LOOSE = 10
LONGEST_FILE, LONGEST_FUNCTION = 450, 60


def sources() -> Iterator[tuple[str, Path, ast.Module]]:
    """The room, the path and the tree of every file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).parts[0].removesuffix(".py"), path, ast.parse(path.read_text(encoding="utf-8"))


def for_types(tree: ast.Module) -> set[int]:
    """What stands under ``if TYPE_CHECKING``: no import when the package runs."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and getattr(n.test, "id", "") == "TYPE_CHECKING"]
    return {id(node) for block in blocks for node in ast.walk(block)}


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and dotted name of what a file imports of the package, at any depth, and of modules that strings name."""
    skipped = for_types(tree)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value] if re.fullmatch(r"mipfs(\.\w+)+\.?", node.value) else []
        yield from ((getattr(node, "lineno", 0), name) for name in names if name.split(".")[0] == "mipfs")


def room_of(name: str) -> str:
    """The room that a dotted name leads to."""
    part = [*name.split("."), ""][1]
    return part if part in ROOMS else "__init__"


def test_every_file_is_in_a_room() -> None:
    assert {room for room, _, _ in sources()} == set(ROOMS)
    loose = [path.name for path in PACKAGE.glob("*.py")]
    assert len(loose) < LOOSE, loose


def test_imports_go_down() -> None:
    rank, wrong = {room: k for k, room in enumerate(ROOMS)}, []
    for room, path, tree in sources():
        for line, name in imported(tree):
            to = room_of(name)
            if to == room or any(name.startswith(of[room]) for of in (REGISTRIES, VOCABULARY) if room in of):
                continue
            if rank[to] >= rank[room]:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} {room} -> {to} ({name})")
    assert not wrong, "\n".join(wrong)


def test_strings_are_seen_too() -> None:
    tree = ast.parse("def f():\n    import mipfs.cli.app\n    return importlib.import_module('mipfs.drivers.gbd')\n")
    assert sorted(name for _, name in imported(tree)) == ["mipfs.cli.app", "mipfs.drivers.gbd"]
    tree = ast.parse("if TYPE_CHECKING:\n    from mipfs.cli import app\nfrom mipfs import solve\n")
    assert [name for _, name in imported(tree)] == ["mipfs.solve"]
    assert room_of("mipfs.solve") == "__init__"


def test_the_checker_shares_nothing_with_what_it_checks() -> None:
    for room, path, tree in sources():
        if room == "check":
            names = [name for _, name in imported(tree) if (path.name, name) != ("stated.py", "mipfs.losses.LOSSES")]
            used = {room_of(name) for name in names} - {"check"}
            assert used <= {"data", "readers", "errors"}, path


def test_files_and_functions_are_short() -> None:
    long = {}
    for room, path, tree in sources():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines >= LONGEST_FILE and room != "kernels":
            long[str(path.relative_to(PACKAGE))] = lines
        if room == "kernels":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = length(node)
                if size > LONGEST_FUNCTION and not compiled(node):
                    long[f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"] = size
    assert not long, long


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    documented = ast.get_docstring(node, clean=False) is not None
    start = node.body[0].end_lineno if documented else node.lineno
    assert node.end_lineno is not None
    assert start is not None
    return node.end_lineno - start


def compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a kernel."""
    return any("compiled" in ast.unparse(one) or "overload" in ast.unparse(one) for one in node.decorator_list)


def test_values_come_through_the_door() -> None:
    """`Instance.block` is the only way to values outside `data` and `atoms`."""
    seen = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for room, path, tree in sources()
        for node in ast.walk(tree)
        if room not in ("data", "atoms") and isinstance(node, ast.Attribute) and node.attr == "X"
        and re.search(r"(data|instance|first|train|view)$", ast.unparse(node.value))
    ]  # fmt: skip
    assert not seen, seen


@pytest.mark.parametrize("room", ROOMS)
def test_contributing_says_what_a_room_is(room: str) -> None:
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"`{room}/`" in text or f"`{room}.py`" in text
