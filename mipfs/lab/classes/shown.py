"""How classifiers of more than two classes are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mipfs.report.blocks import Block, Line, Pairs, Table
from mipfs.report.numbers import number, percent

if TYPE_CHECKING:
    from mipfs.lab.classes.one_vs_rest import OneVsRest


def blocks(found: OneVsRest) -> list[Block]:
    """Of the report: status, what every class has, and the weights."""
    seconds = sum(one.seconds for one in found.proofs)
    how = "one selection for all classes" if found.together is not None else "one selection a class, against the rest"
    pairs = [
        ("status", f"{found.status.name}: {how}"),
        ("objective", f"{number(found.objective)}, the sum over {len(found.classes)} classes"),
        ("bound", number(found.bound)),
        ("gap", percent(found.gap)),
        ("driver", f"{found.proofs[0].driver}, {seconds:.2f} s"),
        ("selected", f"{len(found.selected)} features"),
    ]
    if found.together is not None and found.bias:
        pairs.append(("intercepts", "one a class, penalised as a weight is"))
    made: list[Block] = [Pairs(pairs)]
    if found.together is None:
        rows = [
            (str(label), one.status.name, number(one.objective), number(one.bound), percent(one.gap))
            for label, one in zip(found.classes, found.classifiers, strict=True)
        ]
        made.append(Table(("class", "status", "objective", "bound", "gap"), rows, title="The classes", left=2))
    names = found.selected
    weights = [
        (name, *(number(one.weights[name]) if name in one.weights else "-" for one in found.classifiers))
        for name in names
    ]
    ends = ("(intercept)", *(number(one.intercept) for one in found.classifiers))
    header = ("feature", *(str(label) for label in found.classes))
    made += [Table(header, [*weights, ends], title="The weights", left=1)]
    made.append(Line("a row is of the class whose value is the largest"))
    return made
