"""Every public kernel is called by a test of this folder, under its own name or as the Python that it is written in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import mipfs.kernels

HERE, KERNELS = Path(__file__).parent, Path(mipfs.kernels.__file__).parent


def kernels() -> Iterator[tuple[str, str]]:
    """Module and name of every compiled function without a leading underscore."""
    for path in sorted(KERNELS.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            is_public = isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
            if is_public and any(ast.unparse(one).startswith("compiled(") for one in node.decorator_list):
                yield f"mipfs.kernels.{path.stem}", node.name


def called(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Module and name of what a file calls of the kernels: `name(…)`, `module.name(…)`, `….py_func(…)`; of
    `run(steps.name, …)` the name in every module that it takes."""
    origin = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("mipfs.kernels"):
            origin |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            words = ast.unparse(node.func).removesuffix(".py_func").split(".")
            if words[0] in origin:
                module, name = origin[words[0]]
                yield (module, name) if len(words) == 1 else (f"{module}.{name}", words[1])
            if words == ["run"]:
                yield from (
                    (f"{module}.{name}", ast.unparse(node.args[0]).split(".")[-1]) for module, name in origin.values()
                )


def test_every_public_kernel_has_a_test() -> None:
    found = {one for path in HERE.glob("test_*.py") for one in called(ast.parse(path.read_text(encoding="utf-8")))}
    missing = [f"{module}.{name}" for module, name in kernels() if (module, name) not in found]
    assert not missing, "no test calls " + ", ".join(missing)


def test_calls_are_seen_by_whatever_name() -> None:
    text = (
        "from mipfs.kernels import a as b\nfrom mipfs.kernels.c import d as e\nb.f(1)\ne(2)\nb.g.py_func()\nother.h()"
        "\nfrom mipfs.pointers import run\nrun(steps.i, 3)"
    )
    wanted = {("mipfs.kernels.a", "f"), ("mipfs.kernels.c", "d"), ("mipfs.kernels.a", "g")}
    assert {*called(ast.parse(text))} == wanted | {("mipfs.kernels.a", "i"), ("mipfs.kernels.c.d", "i")}
