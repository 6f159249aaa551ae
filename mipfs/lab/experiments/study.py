"""What a study is: units, a function that measures one of them, and a function that makes the report of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mipfs.report.blocks import ReportBlock

Row = dict[str, Any]
"""Numbers and words by name: a line of the CSV."""


@dataclass(frozen=True)
class Unit:
    """A cell of a design, which gives the same rows whenever it is measured (seconds apart).

    Attributes
    ----------
    params : mapping of str to a number or a word
    quick : bool, whether it belongs to the small subset that ``--quick`` runs
    needs : str, a data set below the folder of MIPFS_DATA that it reads; empty where it reads none
    package : str, a package that is no dependency of this one and that it calls; empty where it calls none
    """

    params: Mapping[str, Any]
    quick: bool = False
    needs: str = ""
    package: str = ""

    @property
    def key(self) -> str:
        """The parameters as a text, by which the store knows the unit."""
        return " ".join(f"{name}={value}" for name, value in self.params.items())


@dataclass(frozen=True)
class PaperClaim:
    """Something that a paper says, and what was measured of it.

    Attributes
    ----------
    said : str, the claim, and where it stands
    verdict : str
        As `mipfs.lab.experiments.verdicts` has it: "confirmed", "refined" (some of its parts hold), "refuted", "not
        shown" (chance may explain it), or "open" where too little was measured.
    measured : str, the figures that decide
    details : str, more figures, which the study's report has and the index leaves out
    figure : str
        The title of the chart that shows it, of one of the ten claims at the top of the index; empty for the others.
    brief : str, the figures in short, for the index; empty where `measured` is short
    """

    said: str
    verdict: str
    measured: str
    details: str = ""
    figure: str = ""
    brief: str = ""


def no_claims(_: Sequence[Row]) -> list[PaperClaim]:
    """Of a study that judges no paper."""
    return []


@dataclass(frozen=True)
class Study:
    """An experiment.

    Attributes
    ----------
    name, title : str
    source : str, the paper and its tables and figures
    design : str
        The design in sentences: what is as in the paper and what is not.
    units : callable without arguments, all units of the full design, in the order in which they are measured
    measure : callable, a unit's rows
    report : callable, the blocks of the report of some rows
    claims : callable, what the rows say of the paper's claims
    """

    name: str
    title: str
    source: str
    design: str
    units: Callable[[], Sequence[Unit]]
    measure: Callable[[Unit], Sequence[Row]]
    report: Callable[[Sequence[Row]], Sequence[ReportBlock]]
    claims: Callable[[Sequence[Row]], Sequence[PaperClaim]] = field(default=no_claims)
