"""Classifiers of several classes: one a class, or of a shared support, and every field beside their proofs.

`check_summary` compares what the document says in several places, without data; `check_classes` proves the results.
Of a shared support one proof is about the stack of all classes, and each class's own result is computed again from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mipfs.check.dual_vectors import Duals
from mipfs.check.joint import JOINT
from mipfs.check.known import SCALING_OF_COLUMNS, is_joint, require_schema, rules_of, same
from mipfs.check.result import check_result
from mipfs.check.rounding import NEAR, Arrays, Document, gap_between, require
from mipfs.check.scaling import REMEDY, by_rules, on_stated
from mipfs.check.several import (
    Archive,
    DocumentReport,
    PartReport,
    is_number,
    judge_check,
    member_of,
    near,
    require_accepted,
    require_fields,
    unchecked_of,
)
from mipfs.check.statement import Statement
from mipfs.check.tree import Report, read_on_data
from mipfs.check.verdict import STATED_GAP_AGREEMENT
from mipfs.check.workers import ALONE, LeafWorkers
from mipfs.data.against_rest import of_many, weigh_classes
from mipfs.data.bounds import column_of
from mipfs.data.instance import Instance
from mipfs.data.rules import FIRST_RULES
from mipfs.data.stacked import INTERCEPT, bounds_of, stack_instances

KIND = "one-vs-rest"
FEWEST = 3
NEEDED = (
    *("schema", "kind", "shared_support", "bias", "classes", "status", "objective", "bound", "gap", "selected"),
    *("results", "together"),
)
PERHAPS = ("command", "class_weight", "certificate", "archive")
WORST = ("NUMERICAL", "NO_SOLUTION", "INFEASIBLE", "RELAXED", "FEASIBLE", "OPTIMAL")
NOTHING = ("relaxed", "validated", "near_optimal", "decided", "atoms", "calibration", "certificate", "bound", "gap")
"""What a class of a shared support has none of."""
UNCHECKED = "the command of the document"
OF_A_CLASS = "of each class: the history (driver, command, trace, counters, seconds, settings, stop reason, versions)"


def check_summary(document: Document) -> None:
    """Refuse a document of several classes that contradicts itself; no data is needed.

    Raises
    ------
    CertificateError
    """
    _check_form(document)
    _check_labels(document)
    _check_totals(document)
    if document["shared_support"]:
        for result, label in zip(document["results"], document["classes"], strict=True):
            _check_part(document, result, f"the class {label}")


def check_classes(
    document: Document,
    archive: Path,
    content: bytes | None,
    instances: Sequence[Instance],
    name: str | None = None,
    workers: LeafWorkers = ALONE,
) -> DocumentReport:
    """Check the classifiers of several classes, or that of one, against the data.

    Parameters
    ----------
    document : mapping, the JSON
    archive, content : the path and the contents of the file of certificates beside it
    instances : the data of every class against the rest, as it was solved on
    name : str, optional
        A class. All by default, and where they share one proof.
    workers : as in `mipfs.check.tree.check`
    """
    return judge_check(lambda: _check_classes(document, Archive(archive, content), instances, name, workers))


def _check_classes(
    document: Document, archive: Archive, instances: Sequence[Instance], name: str | None, workers: LeafWorkers
) -> DocumentReport:
    check_summary(document)
    labels = [one.labels.positive for one in instances]
    right = len(labels) == len(document["classes"]) and all(map(_is_label, document["classes"], labels))
    require(right, f"the classes are {list(document['classes'])!r:.200}, and those of the data are {labels!r:.200}")
    names = [str(label) for label in labels]
    require(name is None or name in names, f"there is no class {name!r}")
    proofs = _results_with_proofs(document)
    _check_archive(document, archive)
    archive.require_members([member_of(k) for k, one in enumerate(proofs) if one["certificate"] is not None])
    rules = rules_of(proofs[0])
    own = [by_rules(one, rules) for one in weigh_classes(instances, document.get("class_weight") or {})]
    unchecked: tuple[str, ...] = (UNCHECKED,)
    if any(one["params"]["bias"] is not document["bias"] for one in document["results"]):
        unchecked += ("'bias' of the document, which is not that of the classes: theirs is checked",)
    if document["shared_support"]:
        parts = [PartReport("all classes", proofs[0], _together(document, archive, own, workers))]
        unchecked = (UNCHECKED, OF_A_CLASS)
    else:
        asked = range(len(names)) if name is None else [names.index(name)]
        parts = [
            PartReport(names[k], proofs[k], _check_proof_of_class(archive, k, proofs[k], own[k], names[k], workers))
            for k in asked
        ]
    reports = [one.report for one in parts if one.report is not None]
    said = [("class weights", line) for line in _other_weights(document, instances)]
    return DocumentReport(True, "", tuple(parts), tuple(said), (*unchecked, *unchecked_of(reports)))


def _check_archive(document: Document, archive: Archive) -> None:
    """The archive is the one that the document names; those of earlier versions name its members alone."""
    if "archive" not in document:
        return
    entry = document["archive"]
    require_fields(entry, ("file", "sha256"), (), "'archive'")
    first = document.get("certificate")
    require(
        isinstance(first, Mapping) and same(entry["file"], first["file"]),
        "'archive' is another file than 'certificate'",
    )
    require(
        archive.sha256 == entry["sha256"], f"{archive.path.name}, the file of certificates, is missing or another one"
    )


def _check_proof_of_class(
    archive: Archive, k: int, result: Document, data: Instance, name: str, workers: LeafWorkers
) -> Report:
    require(result["certificate"] is not None, f"{name}: the result has no certificate")
    report = archive.report(k, result, data, None, workers)
    require_accepted(name, report)
    return report


def _is_label(stated: Any, label: Any) -> bool:
    """Whether a label of the JSON is one of the data: a number by its value, what JSON has no kind for by its text."""
    if isinstance(label, int | float) and not isinstance(label, bool):
        return is_number(stated) and stated == label
    return isinstance(stated, str) and stated == str(label)


def _other_weights(document: Document, instances: Sequence[Instance]) -> list[str]:
    """What the data asks for of class weights, where the document has others."""
    asked, stated = of_many(instances[0].class_weight, instances), document.get("class_weight") or {}
    return [f"the data asks for {asked}; the result has {dict(stated) or 'none'}"] if asked and asked != stated else []


def _results_with_proofs(document: Document) -> Sequence[Document]:
    """The results that have proofs."""
    return [document["together"]] if document["shared_support"] else list(document["results"])


def _check_form(document: Document) -> None:
    """The fields, and their kinds."""
    require_fields(document, NEEDED, PERHAPS, "the document")
    require_schema(document)
    require(document["kind"] == KIND, f"the kind is {document['kind']!r}")
    flags = all(type(document[name]) is bool for name in ("shared_support", "bias"))
    require(flags, "shared_support and bias are true or false")
    lists = all(isinstance(document[name], list | tuple) for name in ("classes", "results", "selected"))
    require(lists, "classes, results or selected are no lists")
    require(isinstance(document.get("command"), str | None), f"the command is {document.get('command')!r}")
    for result in (*document["results"], *_results_with_proofs(document)):
        require(isinstance(result, Mapping), "a result is no mapping")
        require_schema(result)
    alone = document["shared_support"] or document["together"] is None
    require(alone, "'together' stands there, and the classes share no support")


def _check_labels(document: Document) -> None:
    """Classes, their weights, and the labels of their results."""
    classes = document["classes"]
    texts = [str(label) for label in classes]
    require(all(isinstance(one, str) or is_number(one) for one in classes), "a class is neither a number nor a text")
    enough = len(texts) >= FEWEST and len({*texts}) == len(texts)
    require(enough, f"the classes are {list(classes)!r:.200}; there are three or more, each once")
    require(len(document["results"]) == len(texts), "there is not one result for every class")
    for label, result in zip(classes, document["results"], strict=True):
        right = {"negative": f"not {label}", "positive": label}
        require(same(result["labels"], right), f"the labels of the class {label} are {result['labels']!r:.200}")
    weights = document.get("class_weight") or {}
    require(isinstance(weights, Mapping), "class_weight is no mapping")
    positive = not weights or ({*weights} == {*texts} and all(is_number(w) and w > 0 for w in weights.values()))
    require(positive, f"class_weight is {weights!r:.200}, no positive number for every class")
    if not document["shared_support"]:
        for label, result in zip(classes, document["results"], strict=True):
            own = result["params"]["bias"]
            # by the first rules it was true there, whatever the problems had; nothing is computed from it
            agrees = own is document["bias"] or (document["bias"] is True and rules_of(result) == FIRST_RULES)
            require(agrees, f"'bias' is {document['bias']}, and {own!r} of the class {label}")


def _check_totals(document: Document) -> None:
    """Status, objective, bound, gap, selected and certificate are those of the proofs together."""
    proofs = _results_with_proofs(document)
    worst = min((one["status"] for one in proofs), key=WORST.index)
    require(document["status"] == worst, f"'status' is {document['status']!r}, and the worst of the results {worst!r}")
    for name in ("objective", "bound"):
        parts = [one[name] for one in proofs]
        total = None if None in parts else math.fsum(parts)
        stated = document[name]
        right = stated is None if total is None else is_number(stated) and near(stated, total)
        require(right, f"{name!r} is {stated!r}, and the results together have {total!r}")
    sides = [document[name] for name in ("objective", "bound")]
    gap = math.inf if None in sides else gap_between(*sides)
    stated = document["gap"]
    known = math.isfinite(gap)
    meets = known and is_number(stated) and abs(stated - gap) <= STATED_GAP_AGREEMENT * gap + NEAR * (1.0 + gap)
    require(meets if known else stated is None, f"'gap' is {stated!r}, and objective and bound give {gap!r}")
    selected = [*dict.fromkeys(name for one in proofs for name in one["selected"])]
    if document["shared_support"]:
        selected = [name for name in selected if name != INTERCEPT]
    require(same(document["selected"], selected), f"'selected' is {document['selected']!r:.200}, not {selected!r:.200}")
    first = next((one["certificate"] for one in proofs if one["certificate"] is not None), None)
    require(same(document.get("certificate"), first), "'certificate' is not that of the first proof that has one")


def _check_part(document: Document, result: Document, name: str) -> None:
    """What a class of a shared support states, but for what the data says."""
    together = document["together"]
    selected = document["selected"]
    for field in NOTHING:
        require(
            result.get(field) is None, f"{name}: {field!r} is {result.get(field)!r:.80}, and it has no proof of its own"
        )
    for field in ("rows", "extra", "conflict"):
        require(not result.get(field), f"{name}: {field!r} is {result.get(field)!r:.80}, and it has none")
    require(result["status"] == "FEASIBLE", f"{name}: 'status' is {result['status']!r}, and it has no proof of its own")
    require(
        same(result["selected"], selected), f"{name}: 'selected' is {result['selected']!r:.80}, not {selected!r:.80}"
    )
    require(same(result.get("rules"), together.get("rules")), f"{name}: 'rules' is {result.get('rules')!r}")
    said, of_all = result["params"], together["params"]
    right = {name: of_all[name] for name in ("C", "loss", "gap")}
    right |= {"M": len(selected), "lambda": 0, "bias": document["bias"]}
    right |= {"forced_in": selected} if selected else {}
    right |= {"weight_bounds": said.get("weight_bounds")}  # of which the data says what they are
    require(
        bool(of_all.get("weight_bounds")) or not right["weight_bounds"], f"{name}: 'weight_bounds' stand there alone"
    )
    odd = [field for field in said.keys() | right.keys() if not same(said.get(field), right.get(field))]
    require(not odd, f"{name}: the parameter {odd[0] if odd else ''!r} is not that of its problem")


def _together(document: Document, archive: Archive, instances: Sequence[Instance], workers: LeafWorkers) -> Report:
    """The proof of a shared support, and that every class is what it says."""
    together = document["together"]
    bias = document["bias"]
    params = together["params"]
    require(together["certificate"] is not None, "all classes: the result has no certificate")
    proof = archive.proof(0, together["certificate"])
    instances = _on_stated(together, proof, instances)
    stack = stack_instances(instances, bias)
    names = [*instances[0].feature_names, *([INTERCEPT] if bias else [])]
    atoms = together["atoms"]
    require(isinstance(atoms, Mapping) and atoms.get("made") is None, "the stack selects other things than features")
    columns = [[column_of(name, one.labels.positive) for one in instances] for name in names]
    right = same(atoms["names"], names) and same(atoms["columns"], columns)
    require(right, "what is selected of the stack is not a feature with its columns in all classes")
    even = atoms.get("scale") is None or all(one == 1 for one in atoms["scale"])
    require(even, "the features of the stack have scales other than 1")
    require(together["read"] is None, "the stack was read from no file: its 'read' is null")
    require(params["bias"] is False, "the stack has a free intercept")
    require(not bias or INTERCEPT in (params.get("forced_in") or ()), f"{INTERCEPT!r} is not in 'forced_in'")
    held = {*(params.get("weight_bounds") or {})} & {column_of(INTERCEPT, one.labels.positive) for one in instances}
    require(not (bias and held), f"'weight_bounds' are of an intercept, {[*held]!r:.80}")
    own = {name: array for name, array in proof.items() if name not in SCALING_OF_COLUMNS}  # the stack itself has none
    report = check_result(together, own, stack, workers=workers)
    require_accepted("all classes", report)
    for result, data in zip(document["results"], instances, strict=True):
        _check_class(together, result, data, bias)
    return report


def _on_stated(together: Document, proof: Arrays, instances: Sequence[Instance]) -> list[Instance]:
    """The data of the classes on the scale that the proof of all of them states of the features."""
    told = {name: array for name, array in proof.items() if name in SCALING_OF_COLUMNS}
    scaled = [on_stated(together, told, one) for one in instances]
    exact = all(one.lengths is None for one in scaled)
    require(exact, f"a shared support of features on another scale is not known: {REMEDY}")
    return [one.data for one in scaled]


def _check_class(together: Document, result: Document, data: Instance, bias: bool) -> None:
    """A class of a shared support: its weights follow from the proof, all else from the data."""
    label = data.labels.positive
    name = f"the class {label}"
    weights = {}
    of_stack = together["weights"]
    b = float(of_stack.get(column_of(INTERCEPT, label), 0.0)) if bias else 0.0
    for feature, j in data.index.items():
        w = of_stack.get(column_of(feature, label), 0.0)
        if w:
            weights[feature] = w / float(data.scale[j])
            b -= weights[feature] * float(data.shift[j])
    require(dict(result["weights"]) == weights, f"{name}: its weights are not those that were proven of all classes")
    require(result["intercept"] == b, f"{name}: its intercept is {result['intercept']!r}, not {b!r}")
    bounds = bounds_of(together["params"].get("weight_bounds") or {}, data)
    stated, wanted = result["params"].get("weight_bounds") or {}, {one: [*ends] for one, ends in bounds.items()}
    require(same(stated, wanted), f"{name}: its 'weight_bounds' are {stated!r:.80}, and those of all {wanted!r:.80}")
    if together["objective"] is None:
        return
    certificate = {"kind": "tree", "bound": None, "gap": result["params"]["gap"]}
    reading = JOINT if is_joint(result) else (Statement, Duals)
    read_on_data({**result, "certificate": certificate}, {}, data, reading, None, {})
