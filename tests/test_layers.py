"""Imports go down the list of rooms only: in every file, lazy ones and names in strings included."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import mipfs
from tests.sources import nodes, tree

PACKAGE = Path(mipfs.__file__).parent
CORE = (
    "errors", "stated", "compiled", "pointers", "plumbing", "branching", "regularisers", "settings", "report",
    "kernels", "data", "measures", "svm", "losses", "atoms", "solvers", "selection", "separators", "readers", "convert",
    "generators", "problem", "widened", "shared", "capability", "check", "proof", "inner", "formulation", "result",
    "run", "drivers", "models",
)  # fmt: skip
LABORATORY = (
    "lab", "lab.shelf", "lab.baselines", "lab.sketch", "lab.mil", "lab.scorecard", "lab.classes",
    "lab.studies", "lab.page", "lab.experiments",
)  # fmt: skip
ROOMS = (*CORE, *LABORATORY, "estimators", "__init__", "cli", "__main__")
"""From the ground up; CONTRIBUTING says in a line what each is."""
REGISTRIES = {"formulation": "mipfs.models.", "drivers": "mipfs.lab.shelf."}
"""Rooms that find others by name, and what such a name, a string, begins with."""
OF_THE_LABORATORY = ("baseline.py", "measure.py", "mil.py", "sketch.py")
"""The estimators of it."""
LOOSE = 10
LONGEST_FUNCTION = 60


def files() -> Iterator[tuple[str, Path]]:
    """The room and the path of every file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield room_of(".".join(["mipfs", *path.relative_to(PACKAGE).with_suffix("").parts])), path


def sources(only: str = "") -> Iterator[tuple[str, Path, ast.Module]]:
    """The room, the path and the tree of every file, or of those in one room."""
    for room, path in files():
        if only in ("", room):
            yield room, path, tree(path)


@cache
def every_import() -> list[tuple[str, Path, int, str]]:
    """Room, path, line and name of whatever any file imports of the package."""
    return [(room, path, line, name) for room, path, _ in sources() for line, name in imported(nodes(path))]


def imported(of: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and dotted name of what a file imports of the package, at any depth, and of modules that strings name.

    Imports for types count, too: a room whose types are those of a room above it cannot be read without that.
    """
    for node in of:
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
    parts = name.split(".")
    inner = ".".join(parts[1:3])
    if inner in LABORATORY:
        return inner
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else "__init__"


def test_every_file_is_in_a_room() -> None:
    assert {room for room, _ in files()} == set(ROOMS)
    loose = [path.name for path in PACKAGE.glob("*.py")]
    assert len(loose) < LOOSE, loose


@pytest.mark.slow
def test_imports_go_down() -> None:
    rank, wrong = {room: k for k, room in enumerate(ROOMS)}, []
    for room, path, line, name in every_import():
        to = room_of(name)
        if to == room or (room in REGISTRIES and name.startswith(REGISTRIES[room])):
            continue
        if rank[to] >= rank[room]:
            wrong.append(f"{path.relative_to(PACKAGE)}:{line} {room} -> {to} ({name})")
    assert not wrong, "\n".join(wrong)


def test_strings_are_seen_too() -> None:
    module = ast.parse("def f():\n    import mipfs.cli.app\n    return importlib.import_module('mipfs.drivers.gbd')\n")
    assert sorted(name for _, name in imported(ast.walk(module))) == ["mipfs.cli.app", "mipfs.drivers.gbd"]
    module = ast.parse("if TYPE_CHECKING:\n    from mipfs.cli import app\nfrom mipfs import solve\n")
    assert sorted(name for _, name in imported(ast.walk(module))) == ["mipfs.cli.app", "mipfs.solve"]
    names = ("solve", "lab.page.write", "lab.shelf.conic", "lab", "svm.solver")
    assert [room_of(f"mipfs.{name}") for name in names] == ["__init__", "lab.page", "lab.shelf", "lab", "svm"]


def test_the_core_imports_nothing_of_the_laboratory() -> None:
    """Beside what is found by a name: an option's part of the published shelf. Nor do the solver's own estimators."""
    seen = [
        f"{path.relative_to(PACKAGE)}:{line} {name}"
        for room, path, line, name in every_import()
        if name.startswith("mipfs.lab")
        and (room in CORE or (room == "estimators" and path.name not in OF_THE_LABORATORY))
        and not (room == "drivers" and path.name == "shelf.py")
    ]
    assert not seen, seen


def test_the_checker_shares_nothing_with_what_it_checks() -> None:
    for _, path, _ in sources("check"):
        tables = {"mipfs.losses.LOSSES", "mipfs.regularisers.REGULARISERS"} if path.name == "stated.py" else set()
        used = {room_of(name) for _, name in imported(nodes(path)) if name not in tables} - {"check"}
        assert used <= {"data", "readers", "errors", "stated"}, path


def test_what_the_checker_has_of_a_regulariser_is_rational_numbers_alone() -> None:
    """Its file is the solver's but for one class; the room, which the checker's table is in, imports no solver."""
    free = {*dir(builtins), "Fraction"}
    for _, path, module in sources("regularisers"):
        assert {room_of(name) for _, name in imported(nodes(path))} <= {"regularisers", "errors", "plumbing"}, path
        for kind in (node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Stated"):
            own = {node.arg for node in ast.walk(kind) if isinstance(node, ast.arg)}
            own |= {
                node.id for node in ast.walk(kind) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            used = {node.id for node in ast.walk(kind) if isinstance(node, ast.Name)}
            assert used <= own | free, f"{path}: {used - own - free}"
            assert not kind.bases, path
    loads = "import sys, mipfs.check.regulariser as r\nr.stated_regulariser({'regulariser': {'name': 'ridge'}}).words\n"
    loads += "print(*{name for name in sys.modules if name.startswith('mipfs.')})"
    found = {*subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True).stdout.split()}
    assert {room_of(name) for name in found} == {"check", "errors", "losses", "plumbing", "regularisers", "stated"}
    assert not [name for name in found if name.startswith(("mipfs.losses.", "mipfs.regularisers."))], "tables alone"


def test_functions_are_short() -> None:
    long = {}
    for room, path, _ in sources():
        if room == "kernels":
            continue
        for node in nodes(path):
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
        for room, path, _ in sources()
        for node in nodes(path)
        if room not in ("data", "atoms") and isinstance(node, ast.Attribute) and node.attr == "X"
        and re.search(r"(data|instance|first|train|view)$", ast.unparse(node.value))
    ]  # fmt: skip
    assert not seen, seen


@pytest.mark.parametrize("room", ROOMS)
def test_contributing_says_what_a_room_is(room: str) -> None:
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    name = room.replace(".", "/")
    assert f"`{name}/`" in text or f"`{name}.py`" in text
