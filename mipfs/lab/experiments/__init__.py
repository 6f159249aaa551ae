"""The experiments of the papers, and our own, each made again by one command: `mipfs study NAME`.

A study is a file with a constant ``STUDY``, and a line in `STUDIES`. It lists units (deterministic cells: data, seed,
parameters), measures one of them at a time, and makes its report out of the rows alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mipfs.plumbing.registry import Registry, module_of

if TYPE_CHECKING:
    from mipfs.lab.experiments.study import Study

STUDIES = Registry(
    "study",
    {
        "aytug": "mipfs.lab.experiments.aytug",
        "exactness": "mipfs.lab.experiments.exactness",
        "fgm": "mipfs.lab.experiments.fgm",
        "tan-2014": "mipfs.lab.experiments.tan2014",
        "tan-2014-sparse": "mipfs.lab.experiments.tan2014_sparse",
        "measures": "mipfs.lab.experiments.measures",
        "recall": "mipfs.lab.experiments.recall",
        "gap": "mipfs.lab.experiments.gap",
        "as-good": "mipfs.lab.experiments.as_good",
        "recovery": "mipfs.lab.experiments.recovery",
        "prices": "mipfs.lab.experiments.prices",
        "rules": "mipfs.lab.experiments.rules",
        "provable": "mipfs.lab.experiments.provable",
        "sketch": "mipfs.lab.experiments.sketch",
    },
)
"""Name to file, in the order of the index."""


def available() -> tuple[str, ...]:
    """The names of the studies."""
    return tuple(STUDIES)


def get_study(name: str) -> Study:
    """A study by its name.

    Raises
    ------
    UsageError
        No study of that name.
    """
    study: Study = module_of("study", name, STUDIES).STUDY
    return study
