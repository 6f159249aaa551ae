"""``--module``: losses, regularisers and branching rules of the user's own, entered by their names.

Importing a module runs it, which is the user's decision. What the checker believes of a loss or a regulariser is its
class `Stated` alone, run apart (`mipfs.check.stated`), and a report names whose statement that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from mipfs.errors import UsageError

Module = Annotated[
    list[str] | None,
    typer.Option(
        "--module",
        metavar="FILE.py",
        help="A loss, a regulariser or a branching rule: a file, a module's name, or a plugin's.",
    ),
]

GROUPS = ("mipfs.losses", "mipfs.regularisers", "mipfs.branching")
"""Groups of entry points in which packages offer them, each the name of a module."""


def files_of(given: Sequence[str] | None) -> list[str]:
    """Those that are files: inputs, which no output may take the place of."""
    return [text for text in given or () if text.endswith(".py")]


def enter(given: Sequence[str]) -> None:
    """Import modules, and enter the LOSS and the KIND that each of them has by their names, `choose` by the module's.

    Raises
    ------
    UsageError
        It cannot be imported, or another module has the name.
    """
    from mipfs.branching import RULES
    from mipfs.losses import LOSSES
    from mipfs.plumbing.registry import offered
    from mipfs.plumbing.user_file import imported
    from mipfs.regularisers import REGULARISERS

    for text in given:
        module = imported(offered(GROUPS, text) or text)
        for what, table in (("LOSS", LOSSES), ("KIND", REGULARISERS), ("choose", RULES)):
            if not hasattr(module, what):
                continue
            name = getattr(getattr(module, what), "name", module.__name__.replace("_", "-"))
            if table.setdefault(name, module.__name__) != module.__name__:
                raise UsageError(f"--module {text}: the name {name!r} is that of {table[name]}; give yours another one")
