"""How classifiers of more than two classes are shown."""

from __future__ import annotations

from dataclasses import replace

from mipfs.report.blocks import NamedValues, ReportBlock, Sentence, Table
from mipfs.report.numbers import number, percent
from mipfs.result.class_results import ClassResults
from mipfs.result.interactions import groups_of
from mipfs.result.words import UNSAID, bounds_in_words


def blocks(found: ClassResults) -> list[ReportBlock]:
    """Of the report: status, what every class has, and the weights."""
    seconds = sum(one.seconds for one in found.proofs)
    how = "one selection for all classes" if found.together is not None else "one selection a class, against the rest"
    pairs = [
        ("status", f"{found.status.name}: {how}"),
        ("objective", f"{number(found.objective)}, the sum over {len(found.classes)} classes"),
        ("bound", number(found.bound)),
        ("gap", percent(found.gap)),
        ("driver", f"{found.proofs[0].driver}, {seconds:.2f} s"),
        ("selected", f"{len(found.selected)} {'features' if groups_of(found.classifiers[0]) is None else 'groups'}"),
    ]
    if found.together is not None and found.bias:
        pairs.append(("intercepts", "one a class, penalised as a weight is"))
    made: list[ReportBlock] = [NamedValues(pairs)]
    if found.together is None:
        made.append(replace(classes_table(found), title="The classes"))
    made += [replace(weights_table(found), title="The weights")]
    made += map(Sentence, bounds_of_classes(found))
    made.append(Sentence("a row is of the class whose value is the largest"))
    return made


def bounds_of_classes(found: ClassResults) -> list[str]:
    """What the bounds on the weights of every class say, once where all say it, else with the name of the class."""
    said = [bounds_in_words(one) for one in found.classifiers]
    everywhere = set[str]().union(*said).intersection(*said)
    named = [
        line if line in everywhere or line == UNSAID or "(towards" in line else f"{label}: {line}"
        for label, lines in zip(found.classes, said, strict=True)
        for line in lines
    ]
    return [*dict.fromkeys(line for line in named if line != UNSAID), *[UNSAID] * (UNSAID in named)]


def classes_table(found: ClassResults) -> Table:
    """What is proven of every class."""
    rows = [
        (str(label), one.status.name, number(one.objective), number(one.bound), percent(one.gap))
        for label, one in zip(found.classes, found.classifiers, strict=True)
    ]
    return Table(("class", "status", "objective", "bound", "gap"), rows, left=2)


def weights_table(found: ClassResults) -> Table:
    """The weights of every class, a column each."""
    of_columns = [name for one in found.classifiers for name in one.weights]
    names = found.selected if {*of_columns} <= {*found.selected} else [*dict.fromkeys(of_columns)]  # of whole groups
    weights = [
        (name, *(number(one.weights[name]) if name in one.weights else "-" for one in found.classifiers))
        for name in names
    ]
    ends = ("(intercept)", *(number(one.intercept) for one in found.classifiers))
    return Table(("feature", *(str(label) for label in found.classes)), [*weights, ends], left=1)
