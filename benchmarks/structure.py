"""The shape of a checkout in numbers: statements, long and branched functions, constants, parameters, rooms and arrows.

    python benchmarks/structure.py [CHECKOUT ...]

A line a figure, a column a checkout (this one by default). Statements are those of Python's ``ast``, docstrings not
counted; a method's own object is no parameter. A room is a folder or a file directly in the package; an arrow goes
from a room to another that one of its files imports, types only included; a circle is a set of rooms of which each
leads to every other.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LARGEST = 10
KERNEL_ROOM = "kernels"
NODE_ROOMS = "kernels", "inner", "svm", "drivers"
"""Those that a node of `branch` passes."""
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case)


@dataclass
class Shape:
    """What is counted of a checkout."""

    files: int = 0
    statements: int = 0
    of_nodes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NODE_ROOMS, 0))
    """Statements of the rooms that a node passes."""
    assignments: int = 0
    tuples: int = 0
    constants: int = 0
    functions: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Lines, McCabe's number and positional parameters of a function, by file and name."""
    arrows: set[tuple[str, str]] = field(default_factory=set)


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is a string that stands alone: docstrings, and what is said of a constant or a field."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, ast.UnaryOp) and is_number(node.operand)


def mccabe(function: ast.FunctionDef) -> int:
    """One more than the branches of a function; of a nested one, these and it count too."""
    inside = list(ast.walk(function))
    tests = sum(isinstance(node, BRANCHES) for node in inside)
    return 1 + tests + sum(len(node.values) - 1 for node in inside if isinstance(node, ast.BoolOp))


def constants(tree: ast.Module) -> int:
    """Names at module level that stand for a number."""
    count = 0
    for node in tree.body:
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            is_pair = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            count += sum(map(is_number, node.value.elts)) if is_pair else is_number(node.value)
    return count


def rooms(tree: ast.Module, package: str) -> Iterator[str]:
    """The rooms that a file imports."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if "." in node.module else [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (room_of(name.split(".")[1:]) for name in names if name.startswith(f"{package}."))


def room_of(parts: Sequence[str]) -> str:
    """The room that a dotted name leads to; those of the laboratory are rooms of their own."""
    return ".".join(parts[:2]) if parts[0] == "lab" and len(parts) > 1 else parts[0]


def shape_of(checkout: Path) -> Shape:
    """Count a checkout."""
    found, package = Shape(), checkout / "mipfs"
    known = {path.stem for path in package.iterdir() if path.is_dir() or path.suffix == ".py"}
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        found.files += 1
        statements = sum(isinstance(node, ast.stmt) and not is_docstring(node) for node in nodes)
        found.statements += statements
        assigned = [node for node in nodes if isinstance(node, ast.Assign)]
        found.assignments += len(assigned)
        found.tuples += sum(
            isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple) for node in assigned
        )
        found.constants += constants(tree)
        place = path.relative_to(package)
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                given = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
                positional = len(given) - (given[:1] in (["self"], ["cls"]))
                found.functions[f"{place}:{node.name}:{node.lineno}"] = lines, mccabe(node), positional
        room = room_of(place.with_suffix("").parts)
        if room in found.of_nodes:
            found.of_nodes[room] += statements
        found.arrows |= {(room, to) for to in rooms(tree, package.name) if to != room and to.split(".")[0] in known}
    return found


def circles(arrows: set[tuple[str, str]]) -> int:
    """How many sets of rooms there are of which each leads to every other."""
    reach = {room: {to for of, to in arrows if of == room} for arrow in arrows for room in arrow}
    for through in reach:
        for room in reach:
            if through in reach[room]:
                reach[room] |= reach[through]
    together = {frozenset(other for other in reach[room] if room in reach[other]) for room in reach}
    return sum(len(group) > 1 for group in together)


def figures(shape: Shape) -> dict[str, str]:
    """What is printed of a checkout."""
    lines = {name: of[0] for name, of in shape.functions.items()}
    outside = [name for name in shape.functions if not name.startswith((KERNEL_ROOM, "cli"))]
    branched = sorted((of[1] for of in shape.functions.values()), reverse=True)[:LARGEST]
    longest = max(lines, key=lambda name: lines[name])
    positional = [of[2] for name, of in shape.functions.items() if not name.startswith("cli")]
    return {
        "files": str(shape.files),
        "statements": str(shape.statements),
        "of the rooms of nodes": f"{sum(shape.of_nodes.values())} ({' + '.join(map(str, shape.of_nodes.values()))})",
        "assignments of tuples to tuples": f"{shape.tuples} of {shape.assignments}",
        "numbers at module level": str(shape.constants),
        "longest function": f"{lines[longest]} ({longest.split(':')[1]})",
        "longest outside kernels and cli": str(max(lines[name] for name in outside)),
        "McCabe, the ten largest": " ".join(map(str, branched)),
        "positional parameters outside cli, most": str(max(positional)),
        "functions with more than 8": str(sum(count > 8 for count in positional)),
        "arrows between rooms": str(len(shape.arrows)),
        "circles of rooms": str(circles(shape.arrows)),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[Path(__file__).parents[1]])
    checkouts = parser.parse_args().checkouts
    columns = [figures(shape_of(checkout)) for checkout in checkouts]
    print("| figure | " + " | ".join(checkout.resolve().name for checkout in checkouts) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(column[name] for column in columns) + " |")


if __name__ == "__main__":
    main()
