"""One classifier a class, against the rest: what `mipfs solve` writes of data with more than two classes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.data.classes import of_many, weighted
from mipfs.data.instance import Instance, nearest
from mipfs.data.stacked import stacked, unstacked
from mipfs.errors import DataError, UsageError
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import declared
from mipfs.proof import pair
from mipfs.report.blocks import Block, Reported
from mipfs.report.visible import finite_or_none
from mipfs.result import archive, result_json
from mipfs.result.gap import relative_gap
from mipfs.result.result import CERTIFICATE_LIMIT, Result, Status
from mipfs.result.sidecar import verify
from mipfs.shared import features_among

if TYPE_CHECKING:
    from mipfs.check.tree import Report

SCHEMA = 1
KIND = "one-vs-rest"
REMEDY = "give what `mipfs solve --json` wrote of data with more than two classes"
WORST = (Status.NUMERICAL, Status.NO_SOLUTION, Status.INFEASIBLE, Status.RELAXED, Status.FEASIBLE, Status.OPTIMAL)


@dataclass(frozen=True, eq=False)
class OneVsRest(Reported):
    """One classifier a class; a row is of the class whose classifier has the largest value.

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

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Values of every class, (n, K)."""
        return np.column_stack([one.decision_function(X) for one in self.classifiers])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of every row, (n,)."""
        return self.labels_of(self.decision_function(X))

    def labels_of(self, values: Array) -> npt.NDArray[Any]:
        """The classes of the largest values (n, K)."""
        best: npt.NDArray[Any] = np.asarray(self.classes)[values.argmax(axis=1)]
        return best

    def verify(self, instances: Sequence[Instance]) -> list[Report]:
        """Check every proof against the data of the classes against the rest.

        Raises
        ------
        UsageError
            The classes are others than those of the data.
        """
        weighted = self._weighted(instances)
        if self.together is None:
            found = [verify(result, data) for result, data in zip(self.classifiers, weighted, strict=True)]
        else:
            found = [self._verify_together(self.together, weighted)]
        return [replace(one, differs=(*one.differs, *self._other_weights(instances))) for one in found]

    def verify_class(self, name: str, instances: Sequence[Instance]) -> Report:
        """Check the proof of one class.

        Raises
        ------
        UsageError
            No such class, other classes than those of the data, or one proof for all.
        """
        k = self._place(name)
        if self.together is not None:
            raise UsageError(f"{name}: all classes have one selection and one proof; verify the file without #{name}")
        found = verify(self.classifiers[k], self._weighted(instances)[k])
        return replace(found, differs=(*found.differs, *self._other_weights(instances)))

    def named(self, name: str) -> Result:
        """The classifier of a class against the rest.

        Raises
        ------
        UsageError
            No such class.
        """
        return self.classifiers[self._place(name)]

    def _place(self, name: str) -> int:
        names = [str(label) for label in self.classes]
        if name not in names:
            raise UsageError(f"{self.file or 'the result'}#{name}: no such class; {nearest(name, names)}")
        return names.index(name)

    def _weighted(self, instances: Sequence[Instance]) -> list[Instance]:
        """The data of the classes, with the weights that the classifiers were found with."""
        found = [one.labels.positive for one in instances]
        if [str(label) for label in self.classes] != [str(label) for label in found]:
            raise UsageError(f"the classes are {list(self.classes)}, and those of the data are {found}")
        return weighted(instances, self.class_weight)

    def _other_weights(self, instances: Sequence[Instance]) -> tuple[str, ...]:
        """What the data asks for of class weights, where the result has others."""
        asked = of_many(instances[0].class_weight, instances)
        if not asked or asked == self.class_weight:
            return ()
        return (f"the data asks for the class weights {asked}; the result has {dict(self.class_weight) or 'none'}",)

    def _verify_together(self, together: Result, instances: Sequence[Instance]) -> Report:
        """Check the one proof, and that every class has the weights that it is about."""
        report = verify(together, stacked(instances, self.bias))
        if report.accepted:
            for result, (weights, b) in zip(self.classifiers, unstacked(instances, together.weights), strict=True):
                if dict(result.weights) != weights or result.intercept != b:
                    label = result.labels["positive"]
                    reason = f"the weights of the class {label} are not those that were proven of all classes"
                    return replace(report, accepted=False, reason=reason)
        return report

    def document(self, certificates: Sequence[Mapping[str, Any] | None] | None = None) -> dict[str, Any]:
        """What ``--json`` writes."""
        entries = certificates or [one.certificate for one in self.proofs]
        proofs = [_stated(replace(one, certificate=entry)) for one, entry in zip(self.proofs, entries, strict=True)]
        shared = self.together is not None
        return {
            "schema": SCHEMA,
            "kind": KIND,
            "command": self.command,
            "shared_support": shared,
            "bias": self.bias,
            "classes": list(self.classes),
            "class_weight": dict(self.class_weight),
            "status": self.status.name,
            "objective": finite_or_none(self.objective),
            "bound": finite_or_none(self.bound),
            "gap": finite_or_none(self.gap),
            "selected": list(self.selected),
            "results": [_stated(one) for one in self.classifiers] if shared else proofs,
            "together": proofs[0] if shared else None,
            "certificate": next((entry for entry in entries if entry is not None), None),
        }

    def save(self, path: str | Path, *, certificate_limit: float = CERTIFICATE_LIMIT) -> None:
        """Write the JSON, and the certificates beside it as ``NAME.cert.npz``; both or neither."""
        path = Path(path)
        name = pair.sidecar_of(path).name
        content, entries = archive.packed_together(self.proofs, name, 1e6 * certificate_limit)
        pair.save(path, f"{json.dumps(self.document(entries), ensure_ascii=False)}\n".encode(), content)
        object.__setattr__(self, "file", str(path))

    @classmethod
    @declared
    def load(cls, path: str | Path) -> OneVsRest:
        """Read a JSON that `save` wrote, with its certificates.

        Raises
        ------
        DataError
            The file holds something else.
        """
        found = classes_or_none(path)
        if found is None:
            raise DataError("it holds no classifiers of more than two classes", REMEDY, path=Path(path))
        return found

    def blocks(self) -> list[Block]:
        """Of the report."""
        from mipfs.lab.classes.shown import blocks

        return blocks(self)


def _stated(result: Result) -> dict[str, Any]:
    return dict(json.loads(result.to_json()))


def classes_or_none(path: str | Path) -> OneVsRest | None:
    """What a file holds, where it is of more than two classes; None otherwise, or where it cannot be read."""
    path = Path(path)
    document = result_json.of_kind(path, KIND)
    if document is None:
        return None
    try:
        found = _of(document, path)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"not complete: {error!r}", REMEDY, path=path) from None
    return _certified(found, path)


def _of(document: Mapping[str, Any], path: Path) -> OneVsRest:
    if not strict_json.is_schema(document["schema"], SCHEMA):
        raise ValueError(f"schema {document['schema']!r}")
    results = tuple(Result.from_json(json.dumps(one), path=path) for one in document["results"])
    classes = tuple(document["classes"])
    shared = document["together"]
    if len(results) != len(classes) or len(classes) < 3 or len({str(label) for label in classes}) < len(classes):
        raise ValueError("one result for each of three classes or more is needed")
    if [str(one.labels["positive"]) for one in results] != [str(label) for label in classes]:
        raise ValueError("the results are those of other classes")
    together = None if shared is None else Result.from_json(json.dumps(shared), path=path)
    weights = {str(label): float(weight) for label, weight in (document.get("class_weight") or {}).items()}
    if weights and not (weights.keys() == set(map(str, classes)) and all(0 < w < math.inf for w in weights.values())):
        raise ValueError("class_weight is no positive number for every class")
    said = document.get("command")
    command = said if isinstance(said, str) else None
    return OneVsRest(
        classes,
        results,
        together,
        document["bias"] is True,
        weights,
        command,
        str(path),
    )


def _certified(found: OneVsRest, path: Path) -> OneVsRest:
    """With the certificates out of the file beside it; `verify` says where one is missing or another."""
    try:
        content = pair.sidecar_of(path).read_bytes()
    except (OSError, ValueError):
        content = None
    proofs = archive.certified(found.proofs, content)
    return replace(found, classifiers=tuple(proofs)) if found.together is None else replace(found, together=proofs[0])
