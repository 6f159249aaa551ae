"""Every kind of document that this version writes: a command, or a problem in Python, by the name of its JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyomo.environ as pyo

import mipfs
from mipfs import models
from mipfs.problem import Problem
from tests.two_checkers import pairs

FILES: dict[str, str] = {
    "store": "convert plain.csv store",
    "thin-store": "convert sparse.svm thin-store --dtype float32",
    "raw-store": "convert recipe.csv raw-store",
    "embedded": "bags bags.csv -o embedded.npz",
    "embedded-sparse": "bags bags.svm -o embedded-sparse.npz --nearest 4",
}
"""Commands that write data."""
PLAIN: dict[str, str] = {
    "hinge": "fsp-m table.csv -p M=3 -p C=1",
    "standard": "fsp-m table.csv -p M=2 -p C=1 --scale standard",
    "unit": "fsp-m table.csv -p M=2 -p C=10 --scale unit -p loss=squared-hinge",
    "logistic": "fsp-m table.csv -p M=2 -p C=1 -p loss=logistic --scale standard",
    "no-bias": "fsp-m sparse.svm -p M=3 -p C=1 -p bias=false --scale standard",
    "sparse": "fsp-m sparse.svm -p M=3 -p C=1 -p loss=logistic",
    "words": "fsp-m words.csv -p M=2 -p C=1 --scale standard",
    "penalties": "fsp-lambda table.csv -p lambda=0.5 -p C=1 --scale standard",
    "list": "fsp-m table.csv -p M=3 -p C=1 --scale standard --pool-gap 0.2",
    "best-three": "fsp-m sparse.svm -p M=2 -p C=1 --pool-size 3",
    "signs": "fsp-m table.csv -p M=3 -p C=1 --nonnegative a --weight-bounds c=-1:0.5",
    "gbd": "fsp-m table.csv -p M=3 -p C=1 --scale standard --driver gbd",
    "relaxed": "fgm table.csv -p M=3 -p C=1 --scale standard",
    "rho": "fgm sparse.svm -p M=2 -p C=1 -p margin=rho",
    "stopped": "fsp-m table.csv -p M=3 -p C=100 --scale standard --time-limit 0",
    "squared-hinge": "fsp-m plain.csv -p M=2 -p C=1 -p loss=squared-hinge -p bias=false",
    "rho-exact": "fgm plain.csv -p M=2 -p C=1 -p margin=rho --driver branch",
    "balanced": "fsp-m plain.csv -p M=2 -p C=1 -p class_weight=balanced --positive no",
    "class-weights": "fsp-m plain.csv -p M=2 -p C=1 -p class_weight=yes:5,no:0.5 -p loss=logistic",
    "nonpositive": "fsp-m plain.csv --positive yes -p M=2 -p C=1 --nonpositive u,v --nonnegative x",
    "box": "fsp-m plain.csv --positive yes -p M=3 -p C=10 --box 0.4",
    "box-scaled": "fsp-m plain.csv --positive yes -p M=3 -p C=10 --box 0.5 --weight-bounds u=-0.2: --scale standard",
    "box-logistic": "fsp-m plain.csv --positive yes -p M=2 -p C=10 --box 0.3 -p loss=logistic -p bias=false",
    "box-squared": "fsp-m plain.csv --positive yes -p M=2 -p C=10 -p loss=squared-hinge"
    " --weight-bounds u=0:0.3 --weight-bounds x=-0.1:1",
    "box-list": "fsp-m plain.csv --positive yes -p M=2 -p C=10 --box 0.4 --pool-gap 0.3",
    "described": "fsp-m described.csv -p C=1",
    "lp-rows": "fsp-m plain.csv -p M=2 -p C=1 --subject-to rows.lp",
    "list-stopped": "fsp-m sparse.svm -p M=4 -p C=10 --pool-gap 0.2 -o iteration_limit=8",
    "list-logistic": "fsp-m plain.csv -p M=2 -p C=1 --pool-gap 0.3 -p loss=logistic",
    "preselected": "fsp-m sparse.svm -p M=2 -p C=1 --preselect rfe:4",
    "validated": "fsp-m plain.csv -p M=2 -p C=1 --driver gbd --validation more.csv -o patience=1",
    "validated-branch": "fsp-m sparse.svm -p M=3 -p C=10 --validation sparse.svm -o patience=1",
    "small-certificate": "fsp-m sparse.svm -p M=4 -p C=10 -o iteration_limit=8 --certificate-limit 0.0015",
    "stopped-nodes": "fsp-m sparse.svm -p M=4 -p C=10 -o iteration_limit=3",
    "stopped-cuts": "fsp-m sparse.svm -p M=4 -p C=10 -o iteration_limit=2 --driver gbd",
    "stopped-kelley": "fgm sparse.svm -p M=2 -p C=10 -o iteration_limit=1",
    "stopped-measure": "structural sparse.svm -p M=2 -p C=100 -p measure=f1 -o iteration_limit=1",
    "stopped-area": "structural plain.csv -p M=2 -p C=10 -p measure=roc-auc --driver branch -o iteration_limit=1",
    "calibrated": "fsp-m plain.csv -p M=2 -p C=1 --calibrate 3",
    "start": "fsp-m plain.csv -p M=2 -p C=1 -p loss=hinge --start u,y --driver branch",
    "nothing": "fsp-m plain.csv -p M=0 -p C=1",
}
"""Of `mipfs solve`: losses, weights, bounds, lists, limits."""
DRIVERS: dict[str, str] = {
    "kelley": "fsp-m plain.csv -p M=2 -p C=1 --driver kelley -p loss=logistic -p bias=false",
    "conic": "fsp-m plain.csv -p M=2 -p C=1 --driver conic",
    "monolithic": "fsp-m plain.csv -p M=2 -p C=1 --driver monolithic",
    "measure-branch": "structural plain.csv -p measure=f1 -p M=2 -p C=10 --driver branch",
    "measure-gbd": "structural plain.csv -p measure=f1 -p M=2 -p C=10 --driver gbd -p bias=false",
    "measure-groups": "structural groups.csv -p measure=f1 -p M=1 -p C=10 -p atoms=groups -p bias=false",
    "measure": "structural table.csv -p measure=f1 -p M=2 -p C=10 --scale standard --driver two_layer",
    "model-reduced-mkl": "reduced-mkl plain.csv -p M=2 -p C=1 -p pool=u;v",
    **{
        f"model-{name}": f"{name} plain.csv -p M=2 -p C=1"
        for name in (
            *("fgm", "boolean", "nmmkl", "qcqp-ssvm", "sdp-ssvm", "decomposed-sdp", "big-m", "plain-svm", "onsvm"),
        )
    },
}
"""Of `mipfs solve`: every driver, and every formulation by its own."""
MEASURES: dict[str, str] = {
    f"{name}{'' if bias else '-no-bias'}": (
        f"structural plain.csv -p measure={name.removesuffix('-3')} -p M=2 -p C=10"
        f"{' -p beta=2' if name == 'fbeta' else ''}{' -p k=3' if name.endswith('-3') else ''}"
        f"{'' if bias else ' -p bias=false --scale standard'}"
    )
    for name in (*("error", "f1", "fbeta", "precision-at-k", "recall-at-k-3", "prbep", "roc-auc", "average-precision"),)
    for bias in (True, False)
}
"""Of `mipfs solve`."""
ATOMS: dict[str, str] = {
    "features-norm": "fsp-m plain.csv -p M=2 -p C=1 -p atoms=features -p scaling=norm",
    "groups-beside": "fsp-m groups.csv -p M=1 -p C=1 -p atoms=groups",
    "groups-norm": "fsp-m groups.csv -p M=1 -p C=1 -p atoms=groups -p scaling=norm -p loss=squared-hinge",
    "groups-overlap": "fsp-m overlap.csv -p M=2 -p C=1 -p atoms=groups --scale standard",
    "groups-words": "fsp-m words.csv -p M=1 -p C=1 -p atoms=groups",
    "tree-beside": "fsp-m groups.csv -p M=2 -p C=1 -p atoms=tree",
    "tree-norm": "fsp-m groups.csv -p M=2 -p C=1 -p atoms=tree -p scaling=norm -p bias=false",
    "pairs": "fsp-m plain.csv -p M=2 -p C=1 -p atoms=pairs --scale standard",
    "pairs-no-singles": "fsp-m plain.csv -p M=2 -p C=1 -p atoms=pairs -p r=0 -p gamma=0.5",
    "pairs-three": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=pairs -p degree=3",
    "pairs-weak": "fsp-m plain.csv -p M=2 -p C=1 -p atoms=pairs -p heredity=weak",
    "pairs-strong": "fsp-m plain.csv -p M=3 -p C=1 -p atoms=pairs -p heredity=strong",
    "hik": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=additive-hik",
    "hik-norm": "fgm plain.csv -p M=2 -p C=1 -p atoms=additive-hik -p scaling=norm",
    "hik-levels": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=additive-hik -p levels=5",
    "hik-beta": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=additive-hik -p beta=0.5",
    "hik-absolute": "fsp-m sparse.svm -p M=1 -p C=1 -p atoms=additive-hik -p absolute=true",
    "hik-shift": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=additive-hik -p shift=true --scale standard",
    "hik-words": "fsp-m columns.parquet -p M=2 -p C=1 -p atoms=additive-hik",
    "intersection": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=additive-intersection",
    "chi2": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=additive-chi2 -p steps=2 -p scaling=norm",
    "jensen-shannon": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=additive-jensen-shannon -p interval=0.5",
    "gaussian": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=additive-gaussian --scale standard",
    "gaussian-seed": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=additive-gaussian -p seed=3 -p pairs=2 -p width=0.7",
    "splines": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=splines",
    "splines-degree": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=splines -p knots=4 -p degree=2 --scale standard",
    "splines-logistic": "fsp-m plain.csv -p M=1 -p C=1 -p atoms=splines -p knots=3 -p loss=logistic",
}
"""Of `mipfs solve`: what can be selected."""
RAW = "fsp-m raw.csv --label defaulted -p C=1"
READINGS: dict[str, str] = {
    "tabs": "fsp-m tabs.csv -p M=2 -p C=1",
    "decimals": "fsp-m decimals.csv -p M=2 -p C=1",
    "numbered": "fsp-m numbered.csv -p M=2 -p C=1 --scale unit",
    "left-out": "fsp-m ids.csv -p M=2 -p C=1",
    "kept-words": "fsp-m ids.csv -p M=2 -p C=1 --words id",
    "pressed-svmlight": "fsp-m pressed.svm.gz -p M=2 -p C=1 --scale unit",
    "arrays": "fsp-m arrays.npz -p M=2 -p C=1 --scale standard",
    "named": "fsp-m named/X.npz -p M=2 -p C=1 --scale standard",
    "parquet": "fsp-m columns.parquet -p M=2 -p C=1 --scale standard",
    "stored": "fsp-m store -p M=2 -p C=1 --scale standard",
    "stored-sparse": "fgm thin-store -p M=2 -p C=1 --scale standard -p bias=true",
    "stored-recipe": "fsp-m raw-store -p M=2 -p C=1 --scale standard",
    "bags": "structural embedded.npz -p measure=f1 -p M=2 -p C=100",
    "bags-sparse": "fsp-m embedded-sparse.npz -p M=1 -p C=10",
    "bag-column": "fsp-m bags.csv -p M=1 -p C=1",
    "recipe": "fsp-m recipe.csv -p M=2 -p C=1 --scale standard",
    "raw-use": f"{RAW} -p M=2 --scale standard --use rate,late --types rate=percent --impute median",
    "raw-frequent": f"{RAW} -p M=2 --use home,late --impute home=most_frequent,late=median",
    "raw-level": f"{RAW} -p M=2 --use home,late --impute level -p loss=logistic",
    "raw-median": f"{RAW} -p M=2 --use home,late --impute median",
    "raw-drop": f"{RAW} -p M=3 --drop id,opened,paid,closed,ratio,fee,share,income --scale unit"
    " --types rate=percent --impute rate=median,home=level,late=median",
    "raw-types": f"{RAW} -p M=3 --drop id,home,late --impute median --scale standard"
    " --types opened=date,paid=date_d/m/y,closed=date_m/d/y,income=currency,rate=percent,ratio=decimal_comma"
    " --types fee=currency_decimal_comma,share=percent_decimal_comma",
    "raw-groups": f"{RAW} -p M=1 --use home,late --impute level -p atoms=groups",
    "raw-functions": f"{RAW} -p M=1 --use rate,late --types rate=percent --impute median -p atoms=splines -p knots=3",
}
"""Of `mipfs solve`; an underscore stands for a blank."""
SEVERAL: dict[str, str] = {
    "classes": "solve fsp-m kinds.csv -p M=2 -p C=1 --scale standard",
    "classes-weights": "solve fsp-m kinds.csv -p M=1 -p C=1 -p class_weight=low:3 -p loss=logistic -p bias=false",
    "classes-balanced": "solve fsp-m kinds.csv -p M=1 -p C=1 -p class_weight=balanced -p loss=squared-hinge",
    "classes-measure": "solve structural kinds.csv -p measure=f1 -p M=1 -p C=10 --scale standard",
    "shared": "solve fsp-m kinds.csv -p M=1 -p C=1 --scale standard --shared-support",
    "shared-no-bias": "solve fsp-m kinds.csv -p M=2 -p C=1 --shared-support -p bias=false -p loss=squared-hinge",
    "shared-weights": "solve fsp-m kinds.csv -p M=1 -p C=1 --shared-support -p class_weight=low:3 -p loss=logistic",
}
"""Of more than two classes."""
STUDIES: dict[str, str] = {
    "path": "path table.csv --C 1 --M 2:4 --scale standard",
    "path-C": "path plain.csv -p M=2 --C 0.1,1",
    "path-best": "path plain.csv --M 1,2 --C 0.1,1 --folds 3 --scale standard",
    "path-one-se": "path plain.csv --M 1:2 -p C=1 --folds 3 --one-se -p class_weight=balanced",
    "path-lambda": "path plain.csv --lambda 0.5,2 -p C=1",
    "path-rows": "path plain.csv --rows rows.lp -p M=2 -p C=1 -p loss=squared-hinge",
    "path-gbd": "path plain.csv --M 1,2 -p C=1 --driver gbd -p class_weight=balanced",
    "path-raw": "path raw.csv --label defaulted --M 1,2 -p C=1 --folds 2 --use home,late --impute median",
    "bench": "bench words.csv --methods fsp-m,rfe --M 1,2 --folds 2 --inner 2 --C 1",
    "bench-measure": "bench plain.csv --methods fgm,structural --M 1 --folds 2 --inner 2 --C 1,10 --measure f1",
    "compare": "compare table.csv -p M=3 -p C=1 --scale standard",
    "compare-rungs": "compare plain.csv -p M=2 -p C=1 --rungs boolean,exact",
    "stability": "stability plain.csv -p M=2 -p C=1 --draws 4 --bootstrap",
}
"""Of many solves."""
CARDS: dict[str, str] = {
    "card": "scorecard start.json plain.csv",
    "card-bins": "scorecard start.json plain.csv --bins 3 --points 3",
    "card-squared-hinge": "scorecard squared-hinge.json plain.csv --bins 3",
    "card-logistic": "scorecard logistic.json table.csv",
    "card-logistic-bins": "scorecard class-weights.json plain.csv --bins 3 --gap 0.05",
    "card-signs": "scorecard nonpositive.json plain.csv --points 2",
    "card-raw": "scorecard recipe.json recipe.csv",
    "card-raw-bins": "scorecard recipe.json recipe.csv --bins 3",
    "card-of-path": "scorecard path-best.json#best plain.csv",
    "card-of-class": "scorecard classes.json#low kinds.csv",
}
"""Of results that stand above."""
SINCE_0_3: dict[str, str] = {
    "decided": "solve fsp-m sparse.svm -p M=4 -p C=10 -o iteration_limit=2",
    "warm": "solve fsp-m table.csv -p M=2 -p C=2 --scale standard --warm standard.json",
    "least": "solve fsp-m plain.csv --positive yes -p M=2 -p C=10 --weight-bounds u=0.1: --weight-bounds x=0:0.3",
    "groups-signs": "solve fsp-m groups.csv -p M=1 -p C=1 -p atoms=groups --positive yes --nonnegative u,x",
    "classes-signs": "solve fsp-m kinds.csv -p M=2 -p C=1 --scale standard --nonnegative length",
    "weight-rows": "solve fsp-m plain.csv --positive yes -p M=2 -p C=10 --weight-rows rows.lp",
    "raw-dates": f"solve {RAW} -p M=2 --scale standard --use opened,income --impute median"
    " --types opened=date,income=currency",
    "frontier": "frontier table.csv --row budget --values 4:6:1 -p M=4 -p C=1 --scale standard",
    "path-between": "path plain.csv -p M=2 --C 0.1,1 --between 1",
    "card-joint": "scorecard start.json plain.csv --bins 3 --joint",
}
"""What 0.3.0 was the first to write: edits, frontiers, decided features, rows over weights, cards chosen as a whole."""
COMMANDS = {
    **{name: f"solve {line}" for name, line in (PLAIN | DRIVERS | MEASURES | ATOMS | READINGS).items()},
    **SEVERAL,
    **STUDIES,
    **CARDS,
    **SINCE_0_3,
}
VERIFIED_WITH: dict[str, dict[str, str]] = {"lp-rows": {"subject_to": "rows.lp"}}
"""Options that `mipfs verify` is given with a document."""


@dataclass(frozen=True)
class InPython:
    """A result that no command writes: ``solve(change(Problem(read(file), atoms, problem)), **run)``."""

    file: str
    problem: Mapping[str, Any]
    atoms: str = "features"
    options: Mapping[str, Any] = field(default_factory=dict)
    read: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    change: Callable[[Problem], Any] = lambda problem: problem

    def solved(self, data: mipfs.Instance) -> mipfs.Result:
        """The result on `data`, which is `file` read by `read`."""
        atoms = mipfs.atoms.make(self.atoms, data, **self.options)
        return mipfs.solve(self.change(Problem(data, atoms=atoms, **self.problem)), **self.run)


def forbidden(problem: Problem) -> Problem:
    """More features than may be selected."""
    return problem.with_rows(np.ones((1, 5)), 5.0, np.inf, ["all of them"])


def with_variables(problem: Problem) -> Any:
    """In Pyomo, with a whole variable and a real one: an even number of features, the first or the real one."""
    model = models.fsp_m(problem.data, M=problem.M, C=problem.C)
    sigma = model.select.sigma
    model.select.half = pyo.Var(domain=pyo.NonNegativeIntegers)
    model.select.any = pyo.Var()
    model.select.even = pyo.Constraint(expr=sum(sigma[j] for j in sigma) == 2 * model.select.half)
    model.select.more = pyo.Constraint(expr=sigma["x1"] + model.select.any >= 1)
    return model


def derived(problem: Problem) -> Problem:
    """With rows that follow from its own."""
    return problem.strengthened(pairs)


OVERLAPPING = {"one": [0, 1, 2], "two": [2, 3, 4], "three": [5], "four": [6, 7, 8]}
DISJOINT = {"one": [0, 1, 2], "two": [3, 4], "three": [5, 6, 7, 8]}
NESTED = {"low": ["x1", "x2"], "top": ["x1", "x2", "x3"]}
UNIT, STANDARD = {"scale": "unit"}, {"scale": "standard"}
SQUARED = {"M": 2, "C": 5.0, "loss": "squared-hinge"}
MADE: dict[str, InPython] = {
    "infeasible": InPython("table.csv", {"M": 4, "C": 1.0}, change=forbidden),
    "variables": InPython("sparse.svm", {"M": 5, "C": 1.0}, change=with_variables),
    "derived": InPython("table.csv", {"M": 4, "C": 1.0}, read=STANDARD, change=derived, run={"driver": "gbd"}),
    "groups": InPython("sparse.svm", {"M": 2, "C": 5.0}, "groups", {"groups": OVERLAPPING, "scaling": "norm"}, UNIT),
    "groups-disjoint": InPython("sparse.svm", SQUARED, "groups", {"groups": DISJOINT}),
    "groups-given-scales": InPython(
        "sparse.svm", {"M": 2, "C": 5.0}, "groups", {"groups": DISJOINT, "scaling": [1.0, 0.5, 2.0]}
    ),
    "groups-rows": InPython(
        "sparse.svm",
        {"M": 2, "C": 5.0, "lam": 0.1, "forced_in": ("one",), "forced_out": ("three",)},
        *("groups", {"groups": OVERLAPPING}),
    ),
    "tree": InPython("sparse.svm", SQUARED, "tree", {"groups": NESTED}, run={"pool_gap": 0.1}),
    "norms": InPython("sparse.svm", {"M": 2, "C": 5.0, "loss": "logistic", "bias": False}, options={"scaling": "norm"}),
    "given-scales": InPython("plain.csv", {"M": 2, "C": 1.0}, options={"scaling": [1.0, 0.5, 0.0, 2.0]}),
    "products": InPython("sparse.svm", {"M": 2, "C": 1.0, "loss": "squared-hinge", "bias": False}, "pairs"),
    "functions": InPython("words.csv", {"M": 1, "C": 1.0}, "splines"),
    "forced": InPython("plain.csv", {"M": 2, "C": 1.0, "forced_in": ("y",), "forced_out": ("u",)}),
    "measure-tree": InPython(
        "sparse.svm",
        {"M": 2, "C": 50.0, "loss": "structural", "measure": "f1", "bias": False},
        *("tree", {"groups": NESTED}),
    ),
    "measure-scaled-constant": InPython(
        "plain.csv", {"M": 2, "C": 50.0, "loss": "structural", "measure": "roc-auc", "intercept_scaling": 2.0}
    ),
}
"""Of Python."""
