"""The classifiers of more than two classes, each against the rest, and what is so of all of them: status, sums, names.

The checker computes these sums anew, of what it proved (`mipfs.check.classes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mipfs.data.stacked import features_among
from mipfs.errors import UsageError
from mipfs.plumbing.registry import suggest_name
from mipfs.result.gap import relative_gap
from mipfs.result.result import Result, Status

WORST = (Status.NUMERICAL, Status.NO_SOLUTION, Status.INFEASIBLE, Status.RELAXED, Status.FEASIBLE, Status.OPTIMAL)


@dataclass(frozen=True, eq=False)
class ClassResults:
    """One classifier a class, as solved or as a file holds them.

    Attributes
    ----------
    classes : tuple of K labels
    classifiers : tuple of K Results
        With a proof of its own each; of a shared support what each class has of it, without one.
    together : Result or None
        Of a shared support: the problem of all classes as one, and its proof (`mipfs.data.stacked`).
    bias : bool, whether the classes of a shared support have intercepts
    class_weight : mapping of class, as text, to the weight of its samples in every problem; {} for none
    command : str or None, the command line that it came from
    file : str or None
    """

    classes: tuple[Any, ...]
    classifiers: tuple[Result, ...]
    together: Result | None = None
    bias: bool = True
    class_weight: Mapping[str, float] = field(default_factory=dict)
    command: str | None = None
    file: str | None = None

    @property
    def proofs(self) -> tuple[Result, ...]:
        """The results that have proofs: one of each class, or the one of all."""
        return self.classifiers if self.together is None else (self.together,)

    @property
    def status(self) -> Status:
        """The worst of the proofs."""
        return min((one.status for one in self.proofs), key=WORST.index)

    @property
    def objective(self) -> float:
        """The sum over the classes."""
        return math.fsum(one.objective for one in self.proofs)

    @property
    def bound(self) -> float:
        """The sum over the classes, which no selection, or no selections, are below."""
        return math.nextafter(math.fsum(one.bound for one in self.proofs), -math.inf)

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.bound)

    @property
    def selected(self) -> tuple[str, ...]:
        """The features of any class."""
        if self.together is not None:
            return features_among(self.together.selected)
        return tuple(dict.fromkeys(name for one in self.classifiers for name in one.selected))

    def number_of(self, name: str) -> int:
        """Which class a name is of.

        Raises
        ------
        UsageError
            No such class.
        """
        names = [str(label) for label in self.classes]
        if name not in names:
            like = f"classes are called like {names[0]!r}"
            raise UsageError(f"{self.file or 'the result'}#{name}: no such class; {suggest_name(name, names, like)}")
        return names.index(name)

    def named(self, name: str) -> Result:
        """The classifier of a class against the rest; a `UsageError` says that there is no such class."""
        return self.classifiers[self.number_of(name)]
