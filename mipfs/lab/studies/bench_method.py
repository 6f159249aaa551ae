"""What a method of a benchmark is: of data, M, C and a setting it makes a choice of features and a classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mipfs.data.instance import Instance
from mipfs.lab.baselines.linear import Linear


class MethodSetting(Protocol):
    """What a method is told beside data, M and C (`mipfs.lab.studies.bench_unit.Setting`)."""

    @property
    def bias(self) -> bool:
        """Whether there is an intercept."""

    @property
    def time_limit(self) -> float | None:
        """Seconds of a fit."""

    @property
    def seed(self) -> int:
        """Of what is drawn."""

    @property
    def measure(self) -> str:
        """What is measured, `ACCURACY` or one of `mipfs.measures`."""

    @property
    def beta(self) -> float | None:
        """Of the F-measure."""

    @property
    def k(self) -> int | None:
        """Of precision and recall at k."""

    @property
    def ideal(self) -> tuple[str, ...]:
        """The features that an ideal method chooses."""


@dataclass(frozen=True)
class MethodFit:
    """A classifier on the features that a method chose.

    Attributes
    ----------
    linear : Linear
    status : str, of a driver: OPTIMAL, FEASIBLE or RELAXED; otherwise empty
    gap : float or None, of a driver
    stopped : str, the limit that stopped a driver, empty where none did
    """

    linear: Linear
    status: str = ""
    gap: float | None = None
    stopped: str = ""


@dataclass(frozen=True)
class BenchMethod:
    """A way to choose features and to fit a classifier on them.

    Attributes
    ----------
    name, what, source : str
    fit : takes (data, M, C, setting) and returns a `MethodFit`
    uses_c : bool
        False: the same features whatever C, and the SVM of `mipfs.lab.baselines.linear.plain_svm` on them.
    selects : bool
        False: a reference, which takes all features whatever M.
    has_limit : bool, whether it keeps the setting's time limit by itself
    is_joint : bool, whether it fits for a measure of all samples at once, which knows no class weights
    is_whole : bool, whether it takes columns of words as one where the data ask it
    """

    name: str
    what: str
    source: str
    fit: Callable[[Instance, int, float, MethodSetting], MethodFit]
    uses_c: bool = True
    selects: bool = True
    has_limit: bool = False
    is_joint: bool = False
    is_whole: bool = False
