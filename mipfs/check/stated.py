"""What a loss or a regulariser is to the checker: the class `Stated` of its own file, of which nothing else is run.

The class is taken out of the file's text, with what the file imports of `math`, `numpy`, `fractions` and
`mipfs.stated`, and is run apart: a statement that uses anything else of its file, or of the package, meets a name
that is not there, and nothing is accepted. So the file is one, is not imported, and its checker shares no code with
its solver.
"""

from __future__ import annotations

import ast
import importlib.util
from functools import lru_cache
from typing import Any

import numpy as np

from mipfs.check.rounding import CertificateError, require
from mipfs.losses import LOSSES
from mipfs.regularisers import REGULARISERS
from mipfs.stated import Array, StatedLoss

TABLES = {"loss": LOSSES, "regulariser": REGULARISERS}
"""The files, by kind and name."""
VOCABULARY = ("__future__", "typing", "math", "fractions", "numpy", "numpy.typing", "mipfs.stated")
"""What a statement may be written in: modules that a file imports, as they are or names of them."""

MARGINS = (-1e6, -1e3, -30.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0, 30.0, 1e3)
SHARES, OPEN = (0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0), 64.0
"""Where a statement is tried: margins, and shares of the top of its box, or of a number where it is open."""
AGREEMENT = 1e-8
"""What rounding may change, relative to the terms."""


def stated_loss(name: str) -> StatedLoss:
    """The statement of a loss by its name, whose dual was found to lie below it at a few numbers."""
    stated: StatedLoss = statement_of("loss", name)()
    _test_conjugate(stated, name)
    return stated


def _test_conjugate(stated: StatedLoss, name: str) -> None:
    """Reject a loss that is negative, rises with the margin, or states g(α) > ℓ(m) + αm in its box: no proof.

    A box that is too large does the last.
    """
    t, m = stated.max_slope, np.array(MARGINS)
    require(t > 0, f"the steepest slope of the loss {name!r} is stated as {t!r}")
    alpha = (t if t < np.inf else OPEN) * np.array(SHARES)[:, None]
    losses, size = stated.losses(stated.target - m), np.abs(alpha * m)
    wrong = ~(losses >= -AGREEMENT) | np.append(False, losses[1:] > losses[:-1] + AGREEMENT * (1.0 + losses[:-1]))
    for k in np.flatnonzero(wrong)[:1]:
        raise CertificateError(
            f"the loss {name!r} is stated wrongly: it is {losses[k]:g} at margin {m[k]:g}, c = 1; a loss is at least 0 "
            "and does not rise with the margin"
        )
    g = stated.dual_below(alpha, alpha[:, 0], np.ones(1))[:, None]
    above = np.argwhere(~(g <= losses + alpha * m + AGREEMENT * (losses + size + np.abs(g))))
    if len(above):
        a, k = above[0]
        raise CertificateError(
            f"the loss {name!r} is stated wrongly: its dual is {g[a, 0]:g} at alpha = {alpha[a, 0]:g}, c = 1, "
            f"but loss + alpha·margin {losses[k] + alpha[a, 0] * m[k]:g} at margin {m[k]:g}; see max_slope = {t!r}"
        )


def statement_of(kind: str, name: str) -> Any:
    """The class that states a loss or a regulariser, from the file that its table names."""
    table = TABLES[kind]
    unknown = f"no certificate is known for the {kind} {name!r}"
    if name not in table:
        raise CertificateError(f"{unknown}; a {kind} of your own is entered first, on the command line by --module")
    spec = importlib.util.find_spec(table[name])
    source = spec.loader.get_source(spec.name) if spec is not None and spec.loader is not None else None  # type: ignore[attr-defined]
    found = None if source is None else _class_of(source, table[name])
    if found is None:
        raise CertificateError(f"{unknown}: {table[name]} has no class Stated")
    return found


def list_believed(params: Any) -> list[str]:
    """What a problem names that does not come with the package, and is believed as its file states it, in words."""
    given = {"loss": params["loss"], "regulariser": (params.get("regulariser") or {}).get("name")}
    files = [(kind, name, TABLES[kind].get(name, "mipfs.")) for kind, name in given.items()]
    return [f"the {kind} {name!r}, as {file} states it" for kind, name, file in files if not file.startswith("mipfs.")]


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
