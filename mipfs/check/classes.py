"""More than two classes: the proof of every class against the rest, or the one proof of a support that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mipfs.check.result import check_result
from mipfs.check.rounding import Arrays, Document
from mipfs.check.tree import Report
from mipfs.data.classes import of_many, weighted
from mipfs.data.instance import Instance
from mipfs.data.stacked import stacked, unstacked
from mipfs.errors import UsageError

Proof = tuple[Document, Arrays | str]
"""The JSON of a result with its entry "certificate", and the arrays of that, or why there are none."""


def check_classes(document: Document, proofs: Sequence[Proof], instances: Sequence[Instance]) -> list[Report]:
    """Check every proof against the data of the classes against the rest.

    Parameters
    ----------
    document : mapping, the JSON of classifiers of several classes
    proofs : of every class, or the one of all classes where these share a support
    instances : the data of every class against the rest, scaled as it was, in the order of the classes

    Returns
    -------
    list of Report
        One for every proof.

    Raises
    ------
    UsageError
        The classes are others than those of the data.
    """
    if document.get("together") is not None:
        ((result, arrays),) = proofs
        reports = [_check_together(document, result, arrays, weighted_as(document, instances))]
    else:
        pairs = zip(proofs, weighted_as(document, instances), strict=True)
        reports = [check_proof(proof, data) for proof, data in pairs]
    return [replace(one, differs=(*one.differs, *other_weights(document, instances))) for one in reports]


def check_class(document: Document, proof: Proof, instances: Sequence[Instance], k: int) -> Report:
    """Check the proof of the k-th class alone; parameters as those of `check_classes`."""
    report = check_proof(proof, weighted_as(document, instances)[k])
    return replace(report, differs=(*report.differs, *other_weights(document, instances)))


def check_proof(proof: Proof, data: Instance) -> Report:
    """Check one result; a report that rejects it where there is no certificate."""
    result, arrays = proof
    return Report(False, arrays) if isinstance(arrays, str) else check_result(result, arrays, data)


def weighted_as(document: Document, instances: Sequence[Instance]) -> list[Instance]:
    """The data of the classes, with the weights that the classifiers were found with.

    Raises
    ------
    UsageError
        The classes are others than those of the data.
    """
    classes, found = document["classes"], [one.labels.positive for one in instances]
    if [str(label) for label in classes] != [str(label) for label in found]:
        raise UsageError(f"the classes are {list(classes)}, and those of the data are {found}")
    return weighted(instances, document.get("class_weight") or {})


def other_weights(document: Document, instances: Sequence[Instance]) -> tuple[str, ...]:
    """What the data asks for of class weights, where the result has others."""
    asked = of_many(instances[0].class_weight, instances)
    has = document.get("class_weight") or {}
    if not asked or asked == has:
        return ()
    return (f"the data asks for the class weights {asked}; the result has {dict(has) or 'none'}",)


def _check_together(
    document: Document, together: Document, arrays: Arrays | str, instances: Sequence[Instance]
) -> Report:
    """Check the one proof, and that every class has the weights that it is about."""
    report = check_proof((together, arrays), stacked(instances, document["bias"] is True))
    if not report.accepted:
        return report
    parts = unstacked(instances, together["weights"])
    for result, label, (weights, b) in zip(document["results"], document["classes"], parts, strict=True):
        if dict(result["weights"]) != weights or result["intercept"] != b:
            reason = f"the weights of the class {label} are not those that were proven of all classes"
            return replace(report, accepted=False, reason=reason)
    return report
