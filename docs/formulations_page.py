"""The page `formulations.md`, made from `mipfs/models` at every build: equations beside the code that states them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from mipfs.formulation import FormulationEntry, table

MODELS = Path(__file__).resolve().parents[1] / "mipfs" / "models"
STATED_BY = {
    "fsp-m": ("perspective.py", ("perspective", "svm_block")),
    "fsp-lambda": ("perspective.py", ()),
    "fgm": ("qcqp_relaxation.py", ("declare",)),
    "boolean": ("boolean_relaxation.py", ("program_of",)),
    "reduced-mkl": ("reduced_mkl.py", ("_dual_formulation", "primal")),
    "structural": ("structural_dual.py", ("_dual_program", "_primal_program")),
}
"""The functions that state a program, where that is not `declare` of the file of its name."""
HEAD = """# The formulations

<!-- made by docs/formulations_page.py from mipfs/models; do not edit -->

Every formulation is one file in `mipfs/models`, in its paper's notation, with the equations at its head and the code
that states them below. This page is made of those files at every build, so it says what runs.
`models.fsp_m(data, M=5)` builds one in Python, `mipfs solve fsp-m DATA -p M=5` on the command line. All are about one
problem,

```text
(P)   min over σ ∈ S, w, b   cᵀσ + ½ Σ_j w_j²/σ_j + L(y∘(Xw + b))
```

and [which relaxation](relaxations.md) says how their values are ordered.
"""


def _body(text: str) -> str:
    """A docstring as Markdown: what is indented is a formula and stays as it is, one backtick is code already."""
    parts, formula = list[str](), list[str]()
    for line in [*text.splitlines(), "."]:
        if line.startswith("    ") or (formula and not line.strip()):
            formula.append(line[4:])
            continue
        if formula:
            block = "\n".join(formula).rstrip()
            parts += ["```text", block, "```", ""]
            formula = []
        parts.append(line.replace("_", r"\_").replace("*", r"\*").replace("|", r"\|") if "`" not in line else line)
    return "\n".join(parts[:-1])


def _source(path: Path, name: str) -> str:
    """A function as it stands in a file, without its docstring."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = next(node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name)
    start, end = found.lineno - 1, found.end_lineno
    first = found.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        kept = lines[start : first.lineno - 1] + lines[first.end_lineno : end]
    else:
        kept = lines[start:end]
    return "\n".join(kept)


def section(entry: FormulationEntry) -> str:
    """The part of the page about one formulation."""
    path = MODELS / entry.file
    title, _, body = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")
    file, names = STATED_BY.get(entry.name, (entry.file, ("declare",)))
    about = (
        f"`models.{entry.module}`, file `mipfs/models/{entry.file}`; loss {entry.loss}, bias {entry.bias}, "
        f"parameters {', '.join(f'`{name}`' for name in entry.parameters)}; driver `{entry.driver}`; "
        f"bound: {entry.capability.bound}."
    )
    code = "\n\n\n".join(_source(MODELS / file, name) for name in names)
    stated = f"As it is stated in `mipfs/models/{file}`:\n\n```python\n{code}\n```\n" if names else (
        f"It is stated by the same code as `fsp-m`, `perspective` in `mipfs/models/{file}`.\n"
    )  # fmt: skip
    return f"## {entry.name}\n\n{_body(title)}\n\n{about}\n{_body(body)}\n\n{stated}"


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *map(section, table())])


def _write(app: Any) -> None:
    path = Path(app.srcdir) / "formulations.md"
    made = page()
    if not path.exists() or path.read_text(encoding="utf-8") != made:
        path.write_text(made, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True}
