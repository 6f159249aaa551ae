"""The cells of every stage: a key, what a child process is asked, and the facts that the line keeps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from real_parts.problems import ANSWERS

SETS = [
    "australian",
    "german",
    "heart_statlog",
    "ionosphere",
    "pima",
    "sonar",
    "spambase",
    "musk1_instances",
    "usps",
    "w8a",
    "madelon",
    "pcmac",
    "sms_spam_counts",
    "wdbc_sklearn",
    "mi_elephant",
    "colon_alon",
    "leukemia_golub",
    "prostate_singh",
]
"""The panel."""
UNSCALED = ("wdbc_sklearn", "spambase", "german")
"""Sets that are measured as they are, too."""
M, C, LOSSES = (5, 10), (0.01, 0.1, 1.0), ("hinge", "squared-hinge", "logistic")
SCIP_SETS = ("sonar", "ionosphere", "heart_statlog", "german", "wdbc_sklearn", "musk1_instances", "spambase")
"""Sets on which SCIP runs beside, at C = 0.1 and 1 and M = 5."""
CLARABEL_SIZE = 400_000
"""n·p up to which Clarabel gives the reference."""
ROWS = ((), ("budget",), ("conflicts",), ("implications",), ("budget", "conflicts", "implications"))
N_SCALE, P_SCALE = (1_000, 10_000, 100_000, 1_000_000), (10, 100, 1_000, 10_000)
CLEAR = 3.16
"""Strength of the peers' data whose ten weights are one."""
LIMITS = {"roots": 120.0, "hinge": 60.0, "throughput": 200.0, "rows": 120.0, "scaling": 300.0, "synthetic": 60.0}
"""Seconds of a cell, unless --limit says otherwise."""


@dataclass(frozen=True)
class Cell:
    """One measurement: its key in the store, the request of the child, facts of the line."""

    key: str
    request: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    lasting: bool = False
    """Whether it is measured once for all: a reference does not change with our code."""


def cells(stage: str, sets: Sequence[str], limit: float) -> Iterator[Cell]:
    """The cells of a stage."""
    yield from STAGES[stage](sets, limit)


def _cell(stage: str, task: str, what: Mapping[str, Any], limit: float, lasting: bool = False, **more: Any) -> Cell:
    name = named(what)
    by = "/".join(
        [task, *(f"{key}={value}" for key, value in more.items() if value is not None and key != "clarabel_size")]
    )
    facts = {"suite": stage, "problem": name, "task": task, "limit": limit, **more}
    facts |= {key: value for key, value in what.items() if key not in ("n", "p")}
    return Cell(f"{stage} | {name} | {by}", {"task": task, "what": what, "limit": limit, **more}, facts, lasting)


def named(what: Mapping[str, Any]) -> str:
    """A problem's name."""
    size = f" {what['n']}x{what['p']}" if "n" in what else ""
    of = what.get("set", "aytug-one" if what["from"] == "aytug" else what["from"])
    rows = " + " + "+".join(what["rows"]) if what.get("rows") else ""
    scale = f" {what['scale']}" if "scale" in what else ""
    clear = f" strength {what['strength']:g}" if "strength" in what else ""
    return f"{of}{size}{scale}{clear} {what['loss']} M={what['M']} C={what['C']:g}{rows}"


def _of(name: str, scale: str, loss: str, M: int, C: float) -> dict[str, Any]:
    return {"from": "set", "set": name, "scale": scale, "loss": loss, "M": M, "C": C}


def _scaled(sets: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in sets:
        yield name, "standard"
        if name in UNSCALED:
            yield name, "none"


def roots(sets: Sequence[str], limit: float) -> Iterator[Cell]:
    """Every root, its reference, and the plain SVM beside."""
    for name, scale in _scaled(sets):
        for loss, c in itertools.product(LOSSES, C):
            yield _cell("roots", "svm", _of(name, scale, loss, 0, c), limit, lasting=True)
            for m in M:
                what = _of(name, scale, loss, m, c)
                yield _cell("roots", "root", what, limit)
                yield _cell("roots", "reference", what, limit, lasting=True, clarabel_size=CLARABEL_SIZE)


def hinge(sets: Sequence[str], limit: float) -> Iterator[Cell]:
    """The default driver on the hinge, and SCIP beside it on some."""
    for name, scale in _scaled(sets):
        for c, m in itertools.product(C, M):
            what = _of(name, scale, "hinge", m, c)
            yield _cell("hinge", "solve", what, limit)
            if name in SCIP_SETS and m == M[0] and c >= 0.1 and scale == "standard":
                yield _cell("hinge", "solve", what, limit, driver="monolithic")


def throughput(sets: Sequence[str], limit: float) -> Iterator[Cell]:
    """Nodes per second, on one thread and two, in two processes, and on more threads than cores."""
    aytug = {"from": "aytug", "n": 500, "p": 100, "seed": 101, "loss": "hinge", "M": 20, "C": 1.0}
    large = {**aytug, "seed": 1, "M": 52}  # a tree in which the root and the first search do not count
    for what in (_of("sonar", "standard", "hinge", 5, 1.0), aytug, large):
        yield _cell("throughput", "throughput", what, limit)


def rows(sets: Sequence[str], limit: float) -> Iterator[Cell]:
    """The same problems with rows."""
    aytug = {"from": "aytug", "n": 500, "p": 100, "seed": 101, "loss": "hinge", "M": 20, "C": 1.0}
    small = {"from": "aytug", "n": 500, "p": 50, "seed": 1, "loss": "hinge", "M": 25, "C": 1.0}
    for what in (
        small,
        aytug,
        _of("sonar", "standard", "hinge", 5, 0.1),
        _of("wdbc_sklearn", "standard", "hinge", 5, 1.0),
    ):
        for kinds in ROWS:
            yield _cell("rows", "solve", {**what, "rows": list(kinds)}, limit)


def scaling(sets: Sequence[str], limit: float) -> Iterator[Cell]:
    """Roots, proofs and LIBLINEAR against n and p."""
    sizes = [("spambase", n, 57, 0.1) for n in N_SCALE] + [("w8a", n, 300, 0.1) for n in N_SCALE]
    sizes += [("madelon", 2_000, p, 0.01) for p in P_SCALE]
    for name, n, p, c in sizes:
        scale = "none" if name == "w8a" else "standard"
        what = {"from": "resampled", "set": name, "n": n, "p": p, "scale": scale, "loss": "hinge", "M": 5, "C": c}
        yield _cell("scaling", "svm", what, limit, lasting=True, by="liblinear")
        yield _cell("scaling", "root", what, limit)
        # C times n stays what it is at n = 1,000: the loss outweighs the ridge no more as rows are added
        proof = {**what, "C": c * 1_000 / n} if name != "madelon" else what
        yield _cell("scaling", "solve", proof, limit)


def synthetic(sets: Sequence[str], limit: float) -> Iterator[Cell]:
    """The peers' data, and 0/1 columns like those of the adult sets."""
    for size, c in ((2_000, 0.02), (2_000, 0.1), (2_000, 1.0), (6_000, 0.02), (6_000, 1.0)):
        what = {"from": "peers", "n": size, "p": size, "seed": 1, "loss": "logistic", "bias": False, "M": 10, "C": c}
        yield _cell("synthetic", "root", what, limit)
        yield _cell("synthetic", "solve", what, limit)
        if size == 2_000:
            yield _cell("synthetic", "solve", {**what, "strength": CLEAR}, limit)
    for c in C:
        what = {"from": "census", "n": 20_000, "p": sum(ANSWERS), "seed": 1, "loss": "hinge", "M": 5, "C": c}
        yield _cell("synthetic", "solve", what, limit)


STAGES = {
    "roots": roots,
    "hinge": hinge,
    "throughput": throughput,
    "rows": rows,
    "scaling": scaling,
    "synthetic": synthetic,
}
