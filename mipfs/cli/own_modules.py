"""``--module``: losses, regularisers, branching rules and separators of the user's own, entered by their names.

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
        help="A loss, a regulariser, a branching rule or a separator: a file, a module's name, or a plugin's.",
    ),
]

GROUPS = ("mipfs.losses", "mipfs.regularisers", "mipfs.branching", "mipfs.separators")
"""Groups of entry points in which packages offer them, each the name of a module."""


def files_of(given: Sequence[str] | None) -> list[str]:
    """Those that are files: inputs, which no output may take the place of."""
    return [text for text in given or () if text.endswith(".py")]


def enter(given: Sequence[str]) -> None:
    """Import modules: LOSS and KIND of each are entered by their names, `choose` and `separate` by that of the module.

    Raises
    ------
    UsageError
        It cannot be imported, or another module has the name.
    """
    if not given:
        return
    from mipfs.branching import RULES
    from mipfs.losses import LOSSES
    from mipfs.plumbing.registry import find_offered_module
    from mipfs.plumbing.user_file import import_user_file
    from mipfs.regularisers import REGULARISERS
    from mipfs.separators import SEPARATORS

    for text in given:
        module = import_user_file(find_offered_module(GROUPS, text) or text)
        tables = ("LOSS", LOSSES), ("KIND", REGULARISERS), ("choose", RULES), ("separate", SEPARATORS)
        for what, table in tables:
            if not hasattr(module, what):
                continue
            name = getattr(getattr(module, what), "name", module.__name__.replace("_", "-"))
            if table.setdefault(name, module.__name__) != module.__name__:
                raise UsageError(f"--module {text}: the name {name!r} is that of {table[name]}; give yours another one")
