"""The published parts that an option names and no default uses: of the laboratory, loaded when they are asked for."""

from __future__ import annotations

from types import ModuleType

from mipfs.plumbing.registry import module_of

SHELF = {
    "conic subproblem": "mipfs.lab.shelf.conic_subproblem",
    "conic tree": "mipfs.lab.shelf.conic_tree",
    "milp master": "mipfs.lab.shelf.milp_master",
    "reduced mkl": "mipfs.lab.shelf.reduced_mkl",
}


def load_published(name: str) -> ModuleType:
    """The module of a part."""
    return module_of("published part", name, SHELF)
