"""Tan 2010: noise, sample size and small data sets, and the question how good FGM was, by supports that are proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from mipfs.data.instance import Instance
from mipfs.generators import tan_2010
from mipfs.lab.baselines.linear import Linear, plain_svm
from mipfs.lab.baselines.lpsvm import lpsvm
from mipfs.lab.baselines.nmmkl import nmmkl
from mipfs.lab.baselines.qcqp_ssvm import qcqp_weights
from mipfs.lab.baselines.rfe import eliminate
from mipfs.lab.experiments import sets
from mipfs.lab.experiments.fgm_report import claims, report
from mipfs.lab.experiments.fits import error, fit_by_driver, relaxed_predictor, scale_rows, solve_by
from mipfs.lab.experiments.study import Row, Study, Unit
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.clock import cpu_clock
from mipfs.problem import Problem

LOSS: Final = "squared-hinge"
C_MADE, M_MADE = 0.1, 2
"""C and B of section 3.3."""
NOISE = (100, 500, 1000, 2000, 4000, 6000, 8000, 10_000)
SAMPLES = (500, 1000, 2000, 4000)
"""Training rows of the second experiment, of 2000 features."""
SEEDS, SPLITS = range(5), range(30)
RIVAL_SEEDS = range(6)
"""Splits of every set, and draws of noise, on which the convex rivals are run: a verdict needs six."""
GRID = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
SHARES, COUNTS = (0.1, 0.2, 0.3, 0.4), (2, 5, 10, 20)
"""B of wdbc and usps, as shares of the features, and of the gene sets."""
NODES, GAP, FOLDS = 5000, 1e-3, 5
USPS_ROWS = 1500
GENES_C = 0.01
TAN_ENTRIES, COARSE_DROP = 1_100_000, 0.05
"""Entries up to which RFE drops ten features a round, as the paper has it, and the share that it drops beyond."""
DATA = {"wdbc_sklearn": "wdbc", "colon_alon": "breast cancer", "leukemia_golub": "leukemia", "usps": "usps"}
"""The shared set, and the paper's that it stands for."""

DESIGN = (
    "Section 3.3: the made problem of a composite pair, a strong single feature and noise (the paper refers for its "
    "numbers to another one; ours are those of `mipfs generate tan-2010`, chosen so that FGM-B finds the pair and "
    "the SVM on all features fails, as the paper says: how the other methods do is what is open; draws of one seed "
    "have the same pair whatever the noise), 500 training and 500 test rows, C = 0.1, B = 2, six seeds (a verdict "
    "needs six; the last adds noise alone); then 2000 features and 500 to 4000 training rows. Section 3.4: 60/40 "
    "splits of wdbc (the same data), of 1500 rows of usps (256 features, the paper's variant has 241), of leukaemia "
    "(the same genes, 72 samples) and of the colon data, which stand for breast cancer (not at hand); columns "
    "standardised by their training rows. C is chosen once for all methods, on wdbc by 5-fold cross-validation of "
    "`fgm-spliced`; it is 0.1 on usps and 0.01 on genes. `exact` is branch and bound on the problem that FGM relaxes "
    f"(squared hinge, no intercept, at most {NODES} nodes); `fgm` is the relaxation's own predictor on all the "
    "features it uses; `fgm-b` the SVM on the B features of largest c_j at the relaxation's last alpha, as published "
    '(`rounding="scores"`; where the relaxation has converged, all features with 0 < sigma < 1 have one c_j, so that '
    "rounding errors of the solver choose among them: other settings, other sets); `fgm-spliced` what this package "
    "rounds to by default, the best of several rankings, improved by exchanges "
    "(`fgm-b` was added on 29 November 2026, with the other rows seen); `rfe` drops ten "
    f"features a round as in the paper, on data of more than {TAN_ENTRIES:,} entries a twentieth (one elimination "
    "serves all B). Sparsity and time (Figures 2(b), "
    "2(c), 3(b) and 3(c), Tables 2 and 4) are columns of the tables. The convex rivals on six of the splits, at the "
    "same C, and on the noise: `qcqp-ssvm` is the program's own classifier, whose features are counted from a 10^-4 "
    "of the largest weight on, as there; `nmmkl` keeps the B features of largest kernel weights, found by the "
    "interior point for any number of features, where the paper's program had to be given up; `lpsvm` knows no B, "
    "and has the least C of the grid, from the others' on, that leaves it a feature: at theirs on genes it has none. "
    "Figures 4 and 5 are not here: of their sets, of up to millions of features, none is "
    "at hand; `reports/scale.md` and the study `tan-2014-sparse` have FGM on sets of that kind."
)


def units() -> list[Unit]:
    """The convex rivals; some splits of every set, then noise and samples of a seed, in turn."""
    found = []
    for seed in RIVAL_SEEDS:
        found += [Unit({"part": "rivals", "data": name, "seed": seed}, needs=name) for name in DATA]
        found += [
            Unit({"part": "rivals on noise", "noise": noise, "seed": seed}, noise == NOISE[0] and seed == 0)
            for noise in NOISE
        ]
    each = len(SPLITS) // len(SEEDS)
    for seed in SEEDS:
        for name in DATA:
            mine = SPLITS[each * seed : each * (seed + 1)]
            found += [Unit({"part": "splits", "data": name, "seed": split}, needs=name) for split in mine]
        found += [Unit({"part": "noise", "noise": noise, "seed": seed}, noise <= 500 and seed < 1) for noise in NOISE]
        found += [Unit({"part": "samples", "n": n, "seed": seed}) for n in SAMPLES]
    found += [Unit({"part": "noise", "noise": noise, "seed": len(SEEDS)}) for noise in NOISE]
    return found


def measure(unit: Unit) -> list[Row]:
    """All methods on one draw or split."""
    asked = unit.params
    if asked["part"] in SPLIT_METHODS:
        return _measure_split(asked["data"], asked["seed"], SPLIT_METHODS[asked["part"]])
    drawn = tan_2010(asked.get("n", 500), asked.get("noise", 1997), asked["seed"])
    (X, y), (X_test, y_test) = drawn["train"], drawn["test"]
    cell = ScaledSplit(X, np.asarray(y, dtype=float), X_test, np.asarray(y_test, dtype=float))
    truth = {int(j) for j in drawn["S"]}
    rows = list(_measure_cell(cell, M_MADE, C_MADE, RIVALS if asked["part"] == "rivals on noise" else MADE_METHODS))
    for row in rows:
        row["recovers"] = set(row.pop("ids")) == truth
    return rows


@dataclass(frozen=True, eq=False)
class ScaledSplit:
    """Training and test rows, scaled."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    sizes: tuple[int, ...] = (M_MADE,)

    @property
    def data(self) -> Instance:
        return Instance.from_arrays(self.X, self.y)


def _measure_split(name: str, seed: int, methods: Sequence[str]) -> list[Row]:
    """One 60/40 split of a data set, for every B."""
    data = sets.read(name)
    random = np.random.default_rng(seed)
    X, y = data.block().values, data.y
    rows = random.permutation(y.size)[: USPS_ROWS if name == "usps" else y.size]
    cut = round(0.6 * rows.size)
    p = X.shape[1]
    genes = p > 1000
    sizes = COUNTS if genes else tuple(round(share * p) for share in SHARES)
    cell = replace(_scale_split(X, y, rows[:cut], rows[cut:]), sizes=sizes)
    found: list[Row] = []
    for B in sizes:
        C = GENES_C if genes else 0.1 if name == "usps" else _choose_price(cell, B, seed)
        found += [{"B": B, **row} for row in _measure_cell(cell, B, C, methods)]
    for row in found:
        del row["ids"]
    return found


def _scale_split(X: Array, y: Array, train: Integers, test: Integers) -> ScaledSplit:
    """Columns of mean 0 and deviation 1 on the training rows."""
    X = scale_rows(X, train)
    return ScaledSplit(np.asfortranarray(X[train]), y[train], np.asfortranarray(X[test]), y[test])


def _choose_price(cell: ScaledSplit, B: int, seed: int) -> float:
    """C of least error of the spliced FGM over five folds, of equal ones the smallest."""
    part = np.random.default_rng([seed, 1]).permutation(cell.y.size) % FOLDS
    errors = np.zeros(len(GRID))
    for k in range(FOLDS):
        inner = _scale_split(cell.X, cell.y, np.flatnonzero(part != k), np.flatnonzero(part == k))
        for number, C in enumerate(GRID):
            fitted, _ = _fit_rounded_best(inner, B, C)
            errors[number] += error(fitted, inner.X_test, inner.y_test)
    return GRID[int(np.argmin(np.round(errors, 12)))]


def _measure_cell(cell: ScaledSplit, B: int, C: float, names: Sequence[str]) -> Iterator[Row]:
    """Methods on a cell; `excess` is the objective of a support of at most B features above the best one known."""
    found = []
    for name in names:
        began = cpu_clock()
        made = METHODS[name](cell, B, C)
        if made is None:
            continue
        fitted, facts = made
        spent = cpu_clock() - began
        used = fitted.ids[fitted.w != 0.0]
        row: Row = {"method": name, "C": C, "size": int(used.size), "seconds": spent}
        row["accuracy"] = 1.0 - error(fitted, cell.X_test, cell.y_test)
        row |= {"proven": None, "objective": None, **facts, "ids": used.tolist()}
        if row["objective"] is None and 0 < used.size <= B:
            row["objective"] = _svm_optimum(cell.data, used, C)
        found.append(row)
    if "exact" in names:  # else none is known to be the best
        best = min(row["objective"] for row in found if row["objective"] is not None)
        for row in found:
            row["excess"] = None if row["objective"] is None else max(0.0, row["objective"] / best - 1.0)
    yield from found


def _svm_optimum(data: Instance, ids: Integers, C: float) -> float:
    """The optimum of the squared hinge SVM without intercept on some columns."""
    fitted = plain_svm(data, ids, C, False, LOSS)
    short = np.maximum(0.0, 1.0 - data.y * fitted.scores(data))
    return float(0.5 * fitted.w @ fitted.w + 0.5 * C * short @ short)


Made = tuple[Linear, dict[str, Any]]


def _fit_exact(cell: ScaledSplit, B: int, C: float) -> Made:
    return _solve_support(cell, B, C, "branch", iteration_limit=NODES)


def _solve_support(cell: ScaledSplit, B: int, C: float, driver: str, **options: Any) -> Made:
    """The SVM on the best B features that a driver finds."""
    fit = fit_by_driver(Problem(cell.data, loss=LOSS, bias=False, M=B, C=C), driver, **options)
    return fit.linear, fit.facts


def _round_relaxation(cell: ScaledSplit, B: int, C: float, rounding: str = "scores") -> Made:
    """The SVM on B features of a relaxation: as published those of largest c_j (FGM-B, Tan 2010, section 3.2)."""
    fitted, facts = _solve_support(cell, B, C, "kelley", gap=GAP, rounding=rounding)
    return fitted, facts | {"proven": None}


def _fit_rounded_best(cell: ScaledSplit, B: int, C: float) -> Made:
    return _round_relaxation(cell, B, C, "best")


def _fit_relaxation(cell: ScaledSplit, B: int, C: float) -> Made:
    """The relaxation's own predictor, on all the features that it uses."""
    data = cell.data
    result = solve_by(Problem(data, loss=LOSS, bias=False, M=B, C=C), "kelley", gap=GAP)
    return relaxed_predictor(data, result, C), {}


@lru_cache(maxsize=len(GRID))
def _elimination_supports(cell: ScaledSplit, C: float) -> dict[int, Integers]:
    """What SVM-RFE leaves for every B, by one elimination."""
    drop: Any = "tan" if cell.X.size <= TAN_ENTRIES else COARSE_DROP
    return eliminate(cell.data, cell.sizes, C, bias=False, drop=drop)


def _fit_elimination(cell: ScaledSplit, B: int, C: float) -> Made:
    data = cell.data
    return plain_svm(data, _elimination_supports(cell, C)[B], C, False, LOSS), {}


@lru_cache(maxsize=len(GRID))
def _solve_linear_program(cell: ScaledSplit, C: float) -> tuple[Linear, float]:
    """LPSVM, which knows no B; at the least C from the others' on that leaves it a feature."""
    for one in (C, *(one for one in GRID if one > C)):
        found = lpsvm(cell.data, one, bias=False)
        if found.ids.size:
            break
    return found, one


def _fit_lpsvm(cell: ScaledSplit, B: int, C: float) -> Made | None:
    if cell.X.shape[1] > 5000 and cell.X.shape[0] > 100:
        return None  # a dense system of that order in every step
    fitted, own = _solve_linear_program(cell, C)
    return fitted, {"C": own}


def _fit_qcqp(cell: ScaledSplit, B: int, C: float) -> Made:
    return qcqp_weights(cell.data, B, C, bias=False, loss=LOSS), {}


def _fit_nmmkl(cell: ScaledSplit, B: int, C: float) -> Made:
    return nmmkl(cell.data, B, C, bias=False, loss=LOSS), {}


def _use_all(cell: ScaledSplit, B: int, C: float) -> Made:
    return plain_svm(cell.data, np.arange(cell.X.shape[1]), C, False, LOSS), {}


def _fit_ideal(cell: ScaledSplit, B: int, C: float) -> Made:
    return plain_svm(cell.data, np.arange(B), C, False, LOSS), {}


METHODS: dict[str, Callable[[ScaledSplit, int, float], Made | None]] = {
    "exact": _fit_exact,
    "fgm": _fit_relaxation,
    "fgm-b": _round_relaxation,
    "fgm-spliced": _fit_rounded_best,
    "rfe": _fit_elimination,
    "lpsvm": _fit_lpsvm,
    "qcqp-ssvm": _fit_qcqp,
    "nmmkl": _fit_nmmkl,
    "all": _use_all,
    "ideal": _fit_ideal,
}
"""The first M_MADE features of the made problem are the ideal ones."""

MADE_METHODS = "exact", "fgm", "fgm-b", "fgm-spliced", "rfe", "lpsvm", "all", "ideal"
RIVALS = "qcqp-ssvm", "nmmkl"
SPLIT_METHODS = {"splits": ("exact", "fgm", "fgm-b", "fgm-spliced", "rfe"), "rivals": (*RIVALS, "lpsvm")}

STUDY = Study(
    "fgm",
    "Tan 2010: how good was FGM?",
    "Tan 2010, sections 3.3 and 3.4, Figures 2 and 3, Tables 2 to 4",
    DESIGN,
    units,
    measure,
    report,
    claims,
)
