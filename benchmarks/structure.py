"""The shape of a checkout in numbers: statements by room, functions, names, comments, arrows, circles.

    python benchmarks/structure.py [CHECKOUT ...] [--names] [--loaded]

A line a figure, a column a checkout (this one by default). Statements are those of Python's ``ast``, docstrings not
counted; a method's own object is no parameter. A room is a folder or a file directly in the package; an arrow goes
from a room to another that one of its files imports, types only included; a circle is a set of rooms (or files) of
which each leads to every other, imports inside of functions included.

With more than one checkout, what is new of each is counted against the first: statements of functions and classes
whose file or own name the first one does not have, without those that moved or were named anew, of which half of the
statements are those of one that is gone, whatever names they use.

``--names`` lists class names with more than one definition, functions named by a bare participle, circles of files
and private names of other packages. ``--loaded`` counts the modules of the package that ``mipfs verify`` and
``import mipfs.estimators`` load; the checkout's Python is the one that runs this.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LARGEST = 10
KERNEL_ROOM = "kernels"
NODE_ROOMS = "kernels", "inner", "svm", "drivers"
"""Those that a node of `branch` passes."""
COMMENTED = "kernels", "inner", "drivers"
"""Rooms whose comments are counted each."""
IRREGULAR = (
    *("held", "given", "told", "made", "kept", "shown", "found", "said", "sent", "left", "taken", "written", "drawn"),
    *("known", "begun", "done", "gone", "lent", "met", "paid", "bound", "built", "chosen", "grown", "laid", "led"),
    *("meant", "spent", "split", "stood", "thrown", "torn", "worn", "won", "within", "without"),
)
"""Participles that do not end in -ed."""
PRONOUNS = "one", "other", "others", "those", "what", "some", "own", "each", "all"
NO_PARTICIPLES = "need", "feed", "seed", "speed", "embed", "exceed", "proceed", "indeed"
SAME = 0.5
"""The share of statements that two functions have in common, names apart, from which on they are one."""
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case)


@dataclass
class Shape:
    """What is counted of a checkout."""

    files: int = 0
    statements: int = 0
    assignments: int = 0
    tuples: int = 0
    constants: int = 0
    functions: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Lines, McCabe's number and positional parameters of a function, by file and name."""
    arrows: set[tuple[str, str]] = field(default_factory=set)
    rooms: Counter[str] = field(default_factory=Counter)
    """Statements of a room."""
    imports: int = 0
    kernel_tuples: tuple[int, int] = (0, 0)
    """Assignments of tuples to tuples in kernels, and all assignments there."""
    classes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Files of the definitions of a class name."""
    participles: list[str] = field(default_factory=list)
    lines: Counter[str] = field(default_factory=Counter)
    comments: Counter[str] = field(default_factory=Counter)
    """Lines, and comments on lines of their own, of a room; "" for all."""
    edges: dict[str, set[str]] = field(default_factory=dict)
    """Files that a file imports."""
    private: list[str] = field(default_factory=list)
    """Private names of other packages, by file."""
    subjects: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    """Statements, without names, of a function or class by file and name; of a file outside of them under ""."""


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


def is_participle(name: str) -> bool:
    """Whether a function is called by what was done to something, or by a pronoun, and nothing else."""
    bare = name.strip("_")
    if "_" in bare or bare in NO_PARTICIPLES:
        return False
    return bare in IRREGULAR or bare in PRONOUNS or (bare.endswith("ed") and len(bare) > 3)


def leads_to(tree: ast.Module, files: Mapping[str, str], package: str) -> set[str]:
    """The files of the package that a file imports; `files` by their dotted names."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == package:
            for alias in node.names:  # a module of that name, or a name in the module
                found.add(files.get(f"{node.module}.{alias.name}", files.get(node.module, "")))
        elif isinstance(node, ast.Import):
            found |= {files.get(alias.name, "") for alias in node.names}
    return found - {""}


def private_names(tree: ast.Module, package: str) -> set[str]:
    """Names with a leading underscore that are imported from other packages."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] != package:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if any(part.startswith("_") and not part.startswith("__") for part in name.split(".")):
                found.add(name)
    return found


def statements(node: ast.AST) -> int:
    """Statements of a tree, docstrings not counted."""
    return sum(isinstance(one, ast.stmt) and not is_docstring(one) for one in ast.walk(node))


def nameless(node: ast.AST) -> list[str]:
    """The statements of a tree as what they are made of: kinds of expressions, no names, nor what is inside of them."""
    found = []
    for one in ast.walk(node):
        if isinstance(one, ast.stmt) and not is_docstring(one):
            own = [child for child in ast.iter_child_nodes(one) if isinstance(child, ast.expr | ast.arguments)]
            inside = [part for child in own for part in ast.walk(child)]
            found.append(" ".join(type(part).__name__ for part in (one, *inside)))
    return found


def _count_names(found: Shape, tree: ast.Module, place: str) -> None:
    """Classes, functions, and the statements of what stands at the top of a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found.classes[node.name].append(place)
        elif isinstance(node, ast.FunctionDef) and is_participle(node.name):
            found.participles.append(f"{place}:{node.name}")
    for top in tree.body:
        name = top.name if isinstance(top, ast.FunctionDef | ast.ClassDef) else ""
        found.subjects.setdefault((place, name), Counter()).update(nameless(top))


def _count_comments(found: Shape, text: str, room: str) -> None:
    lines = text.splitlines()
    own = sum(line.lstrip().startswith("#") for line in lines)
    for name in ("", room):
        found.lines[name] += len(lines)
        found.comments[name] += own


def shape_of(checkout: Path) -> Shape:
    """Count a checkout."""
    found, package = Shape(), checkout / "mipfs"
    known = {path.stem for path in package.iterdir() if path.is_dir() or path.suffix == ".py"}
    paths = sorted(package.rglob("*.py"))
    files = {dotted(path.relative_to(checkout)): str(path.relative_to(package)) for path in paths}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        found.files += 1
        found.statements += sum(isinstance(node, ast.stmt) and not is_docstring(node) for node in nodes)
        assigned = [node for node in nodes if isinstance(node, ast.Assign)]
        found.assignments += len(assigned)
        found.tuples += sum(map(is_tuple_to_tuple, assigned))
        found.constants += constants(tree)
        place = path.relative_to(package)
        room = room_of(place.with_suffix("").parts)
        found.rooms[room] += statements(tree)
        found.imports += sum(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes)
        if room == KERNEL_ROOM:
            pairs, every = found.kernel_tuples
            found.kernel_tuples = pairs + sum(map(is_tuple_to_tuple, assigned)), every + len(assigned)
        _count_names(found, tree, str(place))
        _count_comments(found, text, room)
        found.edges[str(place)] = leads_to(tree, files, package.name) - {str(place)}
        found.private += [f"{place}: {name}" for name in sorted(private_names(tree, package.name))]
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                given = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
                positional = len(given) - (given[:1] in (["self"], ["cls"]))
                found.functions[f"{place}:{node.name}:{node.lineno}"] = lines, mccabe(node), positional
        found.arrows |= {(room, to) for to in rooms(tree, package.name) if to != room and to.split(".")[0] in known}
    return found


def dotted(path: Path) -> str:
    """The name that a file is imported by."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_tuple_to_tuple(node: ast.Assign) -> bool:
    """Whether several values are assigned to several names at once."""
    return isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """The sets of rooms or files of which each leads to every other (Tarjan 1972, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []
    for root in sorted(edges):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        way = [(root, iter(sorted(edges[root])))]
        while way:
            node, waiting = way[-1]
            below = next(waiting, None)
            if below is None:
                way.pop()
                if way:
                    low[way[-1][0]] = min(low[way[-1][0]], low[node])
                if low[node] == index[node]:
                    group = stack[stack.index(node) :]
                    del stack[stack.index(node) :]
                    found += [sorted(group)] * (len(group) > 1)
            elif below not in index:
                index[below] = low[below] = len(index)
                stack.append(below)
                way.append((below, iter(sorted(edges.get(below, ())))))
            elif below in stack:
                low[node] = min(low[node], index[below])
    return found


def loaded(checkout: Path, code: str, arguments: Sequence[str] = ()) -> int:
    """Modules of the package that a process has loaded at its end."""
    last = "import sys; print(sum(name.split('.')[0] == 'mipfs' for name in sys.modules), file=sys.stderr)"
    begin = f"import atexit; atexit.register(lambda: exec({last!r})); {code}"
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
    done = subprocess.run(
        [sys.executable, "-c", begin, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return int(done.stderr.split()[-1])


def modules(checkout: Path) -> dict[str, str]:
    """What two processes load."""
    with tempfile.TemporaryDirectory() as folder:
        data, result = checkout / "mipfs/instances/wdbc.svm", Path(folder) / "r.json"
        command = [sys.executable, "-m", "mipfs", "solve", str(data), "--M", "3", "--json", str(result)]
        environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
        subprocess.run(command, env=environment, capture_output=True, check=True, cwd=folder)
        run = "import runpy; runpy.run_module('mipfs', run_name='__main__')"
        verify = loaded(checkout, run, ["verify", str(result), str(data)])
    return {
        "modules that `mipfs verify` loads": str(verify),
        "modules that `import mipfs.estimators` loads": str(loaded(checkout, "import mipfs.estimators")),
    }


def new_statements(shape: Shape, first: Shape) -> int:
    """Statements of functions and classes that the first checkout does not have under this or another name."""
    new, gone = subjects_beyond(shape, first), subjects_beyond(first, shape)
    with_statement: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key, of in gone.items():
        for statement in of:
            with_statement[statement].append(key)
    pairs = []
    for key, of in new.items():
        for old in {old for statement in of for old in with_statement[statement]}:
            share = (of & gone[old]).total() / max(of.total(), gone[old].total())
            if share >= SAME:
                pairs.append((share, key, old))
    for _, key, old in sorted(pairs, reverse=True):
        if key in new and old in gone:
            del new[key], gone[old]
    return sum(of.total() for of in new.values())


def subjects_beyond(shape: Shape, other: Shape) -> dict[tuple[str, str], Counter[str]]:
    """What has a file and a name of its own that the other checkout does not have."""
    files = {place for place, _ in other.subjects}
    names = {name for _, name in other.subjects if name}
    return {
        (place, name): of
        for (place, name), of in shape.subjects.items()
        if (place, name) not in other.subjects and (name not in names if name else place not in files)
    }


def per_thousand(shape: Shape, room: str) -> str:
    """Comments on lines of their own per 1,000 lines of a room."""
    return f"{1000 * shape.comments[room] / max(shape.lines[room], 1):.1f}"


def names_of(shape: Shape) -> str:
    """The names behind the figures."""
    several = {name: places for name, places in sorted(shape.classes.items()) if len(places) > 1}
    parts = [
        ("class names with more than one definition", [f"{name}: {', '.join(of)}" for name, of in several.items()]),
        ("functions named by a bare participle", shape.participles),
        ("circles of files", [" ".join(group) for group in circles(shape.edges)]),
        ("private names of other packages", shape.private),
    ]
    return "\n".join(f"\n{title} ({len(of)}):\n" + "\n".join(f"  {line}" for line in of) for title, of in parts)


def figures(shape: Shape) -> dict[str, str]:
    """What is printed of a checkout."""
    lines = {name: of[0] for name, of in shape.functions.items()}
    outside = [name for name in shape.functions if not name.startswith((KERNEL_ROOM, "cli"))]
    branched = sorted((of[1] for of in shape.functions.values()), reverse=True)[:LARGEST]
    longest = max(lines, key=lambda name: lines[name])
    positional = [of[2] for name, of in shape.functions.items() if not name.startswith("cli")]
    by_room: dict[str, set[str]] = {}
    for of, to in shape.arrows:
        by_room.setdefault(of, set()).add(to)
        by_room.setdefault(to, set())
    return {
        "files": str(shape.files),
        "statements": str(shape.statements),
        "statements of the rooms that a node passes": str(sum(shape.rooms[room] for room in NODE_ROOMS)),
        "assignments of tuples to tuples": f"{shape.tuples} of {shape.assignments}",
        "numbers at module level": str(shape.constants),
        "longest function": f"{lines[longest]} ({longest.split(':')[1]})",
        "longest outside kernels and cli": str(max(lines[name] for name in outside)),
        "McCabe, the ten largest": " ".join(map(str, branched)),
        "positional parameters outside cli, most": str(max(positional)),
        "functions with more than 8": str(sum(count > 8 for count in positional)),
        "arrows between rooms": str(len(shape.arrows)),
        "circles of rooms": str(len(circles(by_room))),
        "circles of files": str(len(circles(shape.edges))),
        "imports, share of statements": f"{100 * shape.imports / shape.statements:.1f}%",
        "class names with more than one definition": str(sum(len(of) > 1 for of in shape.classes.values())),
        "functions named by a bare participle": str(len(shape.participles)),
        "assignments of tuples to tuples in kernels": f"{100 * shape.kernel_tuples[0] / shape.kernel_tuples[1]:.1f}%",
        "comments on lines of their own per 1,000 lines": per_thousand(shape, ""),
        **{f"such comments in {room}": per_thousand(shape, room) for room in COMMENTED},
        "private names of other packages": str(len(shape.private)),
        **{f"statements in {room}": str(shape.rooms[room]) for room in sorted(shape.rooms)},
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[Path(__file__).parents[1]])
    parser.add_argument("--names", action="store_true", help="list the names behind the figures of the last checkout")
    parser.add_argument("--loaded", action="store_true", help="count the modules that two processes load")
    asked = parser.parse_args()
    shapes = [shape_of(checkout) for checkout in asked.checkouts]
    columns = [figures(shape) for shape in shapes]
    for column, shape, checkout in zip(columns, shapes, asked.checkouts, strict=True):
        column["of the statements, new against the first"] = str(new_statements(shape, shapes[0]))
        if asked.loaded:
            column.update(modules(checkout))
    print("| figure | " + " | ".join(checkout.resolve().name for checkout in asked.checkouts) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name in dict.fromkeys(name for column in columns for name in column):
        print(f"| {name} | " + " | ".join(column.get(name, "") for column in columns) + " |")
    if asked.names:
        print(names_of(shapes[-1]))


if __name__ == "__main__":
    main()
