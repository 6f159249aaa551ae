"""What a loss is to the checker: a class `Stated` in the loss's own file, of which the checker runs nothing else.

The class is taken out of the file's text, with what the file imports of `math`, `numpy`, `fractions` and
`mipfs.stated`, and is run apart: a statement that uses anything else of its file, or of the package, meets a name
that is not there, and nothing is accepted. So the file of a loss is one, and its checker still shares no code with
its solver.
"""

from __future__ import annotations

import ast
import importlib.util
from functools import lru_cache
from typing import Any

from mipfs.check.rounding import Rejected, require
from mipfs.losses import LOSSES
from mipfs.stated import Array, StatedLoss

VOCABULARY = ("__future__", "typing", "math", "fractions", "numpy", "numpy.typing", "mipfs.stated")
"""What a statement may be written in: modules that a file imports, as they are or names of them."""


def stated_loss(name: str) -> StatedLoss:
    """The statement of a loss by its name, from the file that `mipfs.losses.LOSSES` names."""
    require(name in LOSSES, f"no certificate is known for the loss {name!r}")
    spec = importlib.util.find_spec(LOSSES[name])
    source = spec.loader.get_source(spec.name) if spec is not None and spec.loader is not None else None  # type: ignore[attr-defined]
    found = None if source is None else _class_of(source, str(LOSSES[name]))
    if found is None:
        raise Rejected(f"no certificate is known for the loss {name!r}")
    stated: StatedLoss = found()
    return stated


@lru_cache
def _class_of(source: str, module: str) -> Any:
    """The class `Stated` of a file's text, run apart from the rest of it; None where there is none."""
    kept = [node for node in ast.parse(source).body if _is_vocabulary(node)]
    if not any(isinstance(node, ast.ClassDef) for node in kept):
        return None
    names: dict[str, Any] = {"__name__": f"{module}, as the checker states it", "Array": Array}
    exec(compile(ast.Module(kept, []), module, "exec"), names)
    return names["Stated"]


def _is_vocabulary(node: ast.stmt) -> bool:
    """Whether a statement is the class, or imports what it may be written in."""
    if isinstance(node, ast.Import):
        return all(one.name in VOCABULARY for one in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module in VOCABULARY
    return isinstance(node, ast.ClassDef) and node.name == "Stated"
