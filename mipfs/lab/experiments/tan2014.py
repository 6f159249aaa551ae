"""Tan 2014, sections 6.2, 6.4 and 7: recovery and bias on made data, products of features, groups, functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mipfs.atoms import Atoms
from mipfs.atoms.groups import Groups
from mipfs.atoms.pairs import Pairs
from mipfs.atoms.registry import make
from mipfs.data.instance import Instance
from mipfs.generators import tan_2014, tan_2014_groups
from mipfs.lab.baselines.group_lasso import ALGORITHMS, GroupLasso
from mipfs.lab.baselines.l1_logistic import l1_logistic_of_size
from mipfs.lab.baselines.l1_svm import l1_svm_of_size
from mipfs.lab.baselines.linear import Linear, plain_svm
from mipfs.lab.experiments import sets
from mipfs.lab.experiments.fits import error, relaxed_gap, relaxed_predictor, scale_rows, solve_by
from mipfs.lab.experiments.study import Row, Study, Unit
from mipfs.lab.experiments.tan2014_report import INFORMATIVE_GROUPS, claims, report
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.clock import cpu_clock
from mipfs.problem import Problem

KINDS, SEEDS = ("I", "II", "III"), range(6)
"""Of fewer draws than six the sign test can judge nothing."""
ROWS_MADE, COLUMNS, INFORMATIVE = 1024, 1024, 100
"""A quarter of the paper's 4096, 4096 and 400."""
WIDE = 8192
RIVALS = {"squared-hinge": ("fgm", "l1", l1_svm_of_size), "logistic": ("slr", "l1-lr", l1_logistic_of_size)}
"""FGM's name for a loss, that of the ℓ1-regularised counterpart, and the latter."""
SOLVERS = {"prox-fgm": "proximal", "mkl-fgm": "simple-mkl"}
"""How FGM solves its restricted problems."""
SOLVER_BUDGETS = (2, 5, 10, 20, 40)
"""B there: at 40 MKL-FGM takes over a minute."""
BUDGETS, T, EPS_C, C, UNBIASED = (2, 5, 10, 20), 15, 1e-2, 10.0, 20.0
GROUP_SIZE, GROUP_ROWS, GROUP_COLUMNS = 10, 1024, 5000
"""A quarter of the paper's 4096 rows and 20,000 features."""
WIDE_GROUP_COLUMNS, WIDE_BUDGETS = 50_000, (5, 10)
"""Figure 16: an eighth of the paper's 400,000 features, with as many rows and groups that matter as above."""
GROUP_BUDGETS, GROUP_GRID, GROUP_T = (2, 5, 8, 10), (0.01, 0.1, 1.0), 50
"""As in the paper C is varied, which decides how many groups there are, and T is large."""
SHOWN_C, STEP_BUDGETS = 0.01, (2, 5, 10)
"""Where the three algorithms of the group lasso are compared: the C that leaves as many groups as Figure 15 shows; and
B of the steps."""
PAIRED = {"usps": (3, 8), "ionosphere": None, "sonar": None, "wdbc_sklearn": None}
"""Sets of the expansions; of usps two digits, as the paper takes 3 and 8 of mnist."""
STORED = ("ionosphere", "sonar", "wdbc_sklearn")
"""Sets whose products are few enough to be stored, as the ℓ1-SVM needs them."""
PAIR_BUDGETS, PAIR_C, LEVELS, STEP_C = (2, 5, 10, 20), 1.0, 16, 0.1
SHARE = 0.6

DESIGN = (
    f"Section 6.2: made data of types I, II and III with {ROWS_MADE} training rows, {COLUMNS} features and "
    f"{INFORMATIVE} informative ones, a quarter of the paper's (and type I once more with {WIDE} features, as in "
    f"Figure 6); squared hinge, no intercept, C = {C:g}, at most {T} iterations or a relative change of {EPS_C:g}, as "
    "in the paper; B from 2 to 20. `fgm` is the relaxation's own predictor on all features that it uses, `l1` the "
    f"ℓ1-SVM with as many; `unbias` is the SVM of C = {UNBIASED:g} on the same features; `all` the SVM on all. "
    f"PROX-SLR (`slr`) and ℓ1-LR (`l1-lr`), the same with the logistic loss, and on type I MKL-FGM (`mkl-fgm`, a "
    "reduced gradient with an SVM a step for every restricted problem, stopped by the same rule) beside PROX-FGM "
    f"(`prox-fgm`) for B up to {SOLVER_BUDGETS[-1]}, {len(SEEDS)} draws of {COLUMNS} features each (added on 29 "
    "November 2026, B = 20 and 40 on 1 December). Section "
    "6.4: products of features (degree 2, r = 1, γ = 1) and functions of features (histogram intersection kernel of "
    f"{LEVELS} levels, section 7.3) against the features themselves, the best B of each, on 3 against 8 of usps in "
    f"place of mnist and on three small sets; {len(SEEDS)} splits of 60 and 40 percent, columns standardised, "
    f"C = {PAIR_C:g}; `l1 products` is ℓ1-PSVM, the ℓ1-SVM with at most B products, on the three small sets, whose "
    "products can be stored. "
    f"Section 7.2: groups of {GROUP_SIZE}, {GROUP_ROWS} rows, {GROUP_COLUMNS} features, {INFORMATIVE_GROUPS} groups "
    f"that matter (the paper: 4096, 20,000 and 100), and once more {WIDE_GROUP_COLUMNS:,} features as in "
    "Figure 16 (the paper: 400,000), logistic loss, B of 2 to 10 groups, C from 0.01 to 1 and up "
    f"to {GROUP_T} iterations (a gap of {EPS_C:g}), against the group lasso with as many groups, each with its own "
    "weights and with those of a logistic fit on its groups. Made data of one seed have the same rows for all three "
    "types. FISTA, BCD and ACTIVE (`fista`, `bcd`, `active`: three algorithms for one function, so that what they give "
    f"differs by where they stop; added on 29 November 2026, their claims were written before) on the same groups at C "
    f"= {SHOWN_C:g}, where FGM leaves as many groups as Figure 15 shows, and on the histogram intersection kernel "
    f"(section 7.3), each feature {LEVELS} columns of steps that FGM over groups has too, B of "
    f"{', '.join(map(str, STEP_BUDGETS))} and C = {STEP_C:g}, on the four sets above in place of aut and rcv1. Each of "
    f"them begins at zero with the C of the group lasso that leaves as many groups as FGM does, which is not in its "
    f"time, and ends at a gap of {EPS_C:g}, as FGM does. Not run: Figure 1 (the progress of the objective, which "
    "`result.plot_gap` draws of any fit; the table has the iterations), products of real-sim and kddb, and of Figures "
    "17 and 18 the additive Gaussian map. The times of Figures 5, 6, 13, 15, 16 and 18 are columns of the tables. "
    "Figures 7 to 12 are the study `tan-2014-sparse`."
)


def units() -> list[Unit]:
    """Seed by seed: groups, expansions, types."""
    found: list[Unit] = []
    for seed in SEEDS:
        found += [Unit({"part": "groups", "B": B, "seed": seed}) for B in GROUP_BUDGETS]
        for name in PAIRED:
            quick = name == "wdbc_sklearn" and seed == 0
            found += [Unit({"part": "expansions", "data": name, "seed": seed}, quick, needs=name)]
        found += [Unit({"part": "l1-products", "data": name, "seed": seed}, needs=name) for name in STORED]
        found += [Unit({"part": "lasso", "B": B, "seed": seed}) for B in GROUP_BUDGETS]
        found += [Unit({"part": "lasso-steps", "data": name, "seed": seed}, needs=name) for name in PAIRED]
        for B in BUDGETS:
            found += [Unit({"part": "logistic", "kind": kind, "p": COLUMNS, "B": B, "seed": seed}) for kind in KINDS]
        for B in SOLVER_BUDGETS:
            found.append(Unit({"part": "solvers", "kind": "I", "p": COLUMNS, "B": B, "seed": seed}))
        for kind in KINDS:
            found += [Unit({"part": "types", "kind": kind, "p": COLUMNS, "B": B, "seed": seed}) for B in BUDGETS]
        found += [Unit({"part": "types", "kind": "I", "p": WIDE, "B": B, "seed": seed}) for B in BUDGETS]
        found += [Unit({"part": "groups", "p": WIDE_GROUP_COLUMNS, "B": B, "seed": seed}) for B in WIDE_BUDGETS]
    return found


def measure(unit: Unit) -> list[Row]:
    """One B on one draw, or all B on a split of a set."""
    asked = unit.params
    if asked["part"] in ("types", "logistic", "solvers"):
        made = _plant_data(asked["kind"], asked["p"], asked["seed"])
        if asked["part"] == "solvers":
            return _measure_solvers(made, asked["B"])
        return _measure_types(made, asked["B"], "logistic" if asked["part"] == "logistic" else "squared-hinge")
    if asked["part"] == "groups":
        return _measure_groups(asked.get("p", GROUP_COLUMNS), asked["B"], asked["seed"])
    if asked["part"] == "lasso":
        return _measure_lasso(_plant_groups(GROUP_COLUMNS, asked["seed"]), asked["B"], SHOWN_C, GROUP_SIZE)
    if asked["part"] == "lasso-steps":
        made = _split_into_steps(asked["data"], asked["seed"])
        return [row for B in STEP_BUDGETS for row in _measure_lasso(made, B, STEP_C, LEVELS, bias=True)]
    if asked["part"] == "l1-products":
        return _one_norm(asked["data"], asked["seed"])
    return _measure_expansions(asked["data"], asked["seed"])


@dataclass(frozen=True, eq=False)
class PlantedData:
    """Training data, test rows, and the positions (or groups) that matter."""

    data: Instance
    X_test: Array
    y_test: Array
    truth: frozenset[int]
    groups: Mapping[str, Any] | None = None

    def judged(self, method: str, linear: Linear, began: float) -> Row:
        """A classifier on the test rows, and how many of its features matter."""
        ids = linear.ids[linear.w != 0.0].tolist()
        return {
            "method": method,
            "size": len(ids),
            "recovered": len(self.truth & set(ids)),
            "accuracy": 1.0 - error(linear, self.X_test, self.y_test),
            "seconds": cpu_clock() - began,
        }

    def judge_groups(self, method: str, linear: Linear, began: float, size: int) -> Row:
        """A classifier on the test rows, its groups of `size` columns counted, and how many of them matter."""
        row = self.judged(method, linear, began)
        chosen = set((linear.ids[linear.w != 0.0] // size).tolist())
        return row | {"size": len(chosen), "recovered": len(chosen & {j // size for j in self.truth})}


@lru_cache(maxsize=1)
def _plant_data(kind: str, p: int, seed: int) -> PlantedData:
    drawn = tan_2014(ROWS_MADE, p, INFORMATIVE, seed, kind=kind, n_test=2000)
    (X, y), (X_test, y_test) = drawn["train"], drawn["test"]
    truth = frozenset(int(j) for j in drawn["S"])
    return PlantedData(
        Instance.from_arrays(X, np.asarray(y, dtype=float)), X_test, np.asarray(y_test, dtype=float), truth
    )


def _measure_types(made: PlantedData, B: int, loss: str) -> list[Row]:
    """FGM and its ℓ1-regularised counterpart on as many features, each with its own weights and refitted."""
    data = made.data
    mine, theirs, fit_of_size = RIVALS[loss]
    began = cpu_clock()
    result = solve_by(Problem(data, loss=loss, bias=False, M=B, C=C), "kelley", T=T, eps_c=EPS_C)
    found = relaxed_predictor(data, result, C)
    rounds = {"rounds": result.relaxed["selections"] if result.relaxed else None}
    rows: list[Row] = [made.judged(mine, found, began) | rounds]
    rows.append(made.judged(f"{mine} unbias", _refit_support(data, found), began))
    began = cpu_clock()
    thin = fit_of_size(data, int(np.count_nonzero(found.w)), bias=False)
    rows.append(made.judged(theirs, thin, began))
    rows.append(made.judged(f"{theirs} unbias", _refit_support(data, thin), began))
    if BUDGETS[0] == B and loss == "squared-hinge":
        began = cpu_clock()
        whole = plain_svm(data, np.arange(data.n_features), C, False)
        rows.append(made.judged("all", whole, began))
    return rows


def _measure_solvers(made: PlantedData, B: int) -> list[Row]:
    """FGM by each way of solving its restricted problems; `upper` is the relaxation's value that it ends with."""
    rows: list[Row] = []
    for method, restricted in SOLVERS.items():
        began = cpu_clock()
        problem = Problem(made.data, loss="squared-hinge", bias=False, M=B, C=C)
        result = solve_by(problem, "kelley", T=T, eps_c=EPS_C, restricted=restricted)
        row = made.judged(method, relaxed_predictor(made.data, result, C), began)
        assert result.relaxed is not None
        rows.append({**row, "rounds": result.relaxed["selections"], "upper": result.relaxed["upper"]})
    return rows


def _refit_support(data: Instance, found: Linear) -> Linear:
    return plain_svm(data, np.sort(found.ids[found.w != 0.0]), UNBIASED, False)


@lru_cache(maxsize=1)
def _plant_groups(p: int, seed: int) -> PlantedData:
    drawn = tan_2014_groups(GROUP_ROWS, p, INFORMATIVE_GROUPS, seed)
    (X, y), (X_test, y_test) = drawn["train"], drawn["test"]
    data = Instance.from_arrays(X, np.asarray(y, dtype=float))
    truth = frozenset(int(j) for j in drawn["S"])
    return PlantedData(data, X_test, np.asarray(y_test, dtype=float), truth, drawn["groups"])


def _measure_groups(p: int, B: int, seed: int) -> list[Row]:
    """FGM over groups, and the group lasso with as many of them."""
    made = _plant_groups(p, seed)
    data, groups = made.data, made.groups
    assert groups is not None
    atoms, lasso = Groups(data, groups), GroupLasso(data, groups, bias=False)
    rows: list[Row] = []
    for weight in GROUP_GRID:
        began = cpu_clock()
        problem = Problem(data, loss="logistic", bias=False, atoms=atoms, M=B, C=weight)
        found = relaxed_predictor(data, solve_by(problem, "kelley", T=GROUP_T, gap=EPS_C), weight)
        mine = [made.judged("fgm", found, began)]
        count = np.unique(found.ids[found.w != 0.0] // GROUP_SIZE).size
        began = cpu_clock()
        thin = lasso.of_size(count, count=lasso.n_groups)
        mine.append(made.judged("group lasso", thin, began))
        for name, linear in (("fgm unbias", found), ("group lasso unbias", thin)):
            ids = np.sort(linear.ids[linear.w != 0.0])
            mine.append(made.judged(name, plain_svm(data, ids, UNBIASED, False, "logistic"), began))
        rows += [{"C": weight, **row} for row in mine]
    for row in rows:
        row |= {"size": row["size"] // GROUP_SIZE, "recovered": row["recovered"] // GROUP_SIZE}
    return rows


def _measure_lasso(made: PlantedData, B: int, weight: float, size: int, *, bias: bool = False) -> list[Row]:
    """FGM over groups, and the group lasso with as many by each of its algorithms, from nothing to the same gap."""
    data, groups = made.data, made.groups
    assert groups is not None
    began = cpu_clock()
    problem = Problem(data, loss="logistic", bias=bias, atoms=Groups(data, groups), M=B, C=weight)
    result = solve_by(problem, "kelley", T=GROUP_T, gap=EPS_C)
    found = relaxed_predictor(data, result, weight)
    rows = [made.judge_groups("fgm", found, began, size) | {"gap": relaxed_gap(result)}]
    lasso = GroupLasso(data, groups, bias=bias)
    at = lasso.of_size(rows[0]["size"], count=lasso.n_groups).C
    for algorithm in ALGORITHMS:
        began = cpu_clock()
        thin = GroupLasso(data, groups, bias=bias).solve(at, algorithm=algorithm, tol=EPS_C)
        rows.append(made.judge_groups(algorithm, thin, began, size) | {"gap": 1.0 - thin.bound / thin.objective})
    return [{"B": B, "C": weight, **row} for row in rows]


@lru_cache(maxsize=1)
def _split_scaled(name: str, seed: int) -> PlantedData:
    """A split of a set, scaled by its training rows."""
    data = sets.read(name)
    X, y = data.block().values, data.y
    digits = PAIRED[name]
    if digits is not None:
        labels = sets.labels(name)
        rows = np.flatnonzero(np.isin(labels, digits))
        X, y = X[rows], np.where(labels[rows] == digits[0], 1.0, -1.0)
    order = np.random.default_rng(seed).permutation(y.size)
    train, test = np.split(order, [round(SHARE * y.size)])
    X = scale_rows(X, train)
    return PlantedData(Instance.from_arrays(np.asfortranarray(X[train]), y[train]), X[test], y[test], frozenset())


def stored_steps(X: Array, Z: Array) -> Array:
    """Columns of Z, `LEVELS` a feature, whose products are the histogram intersection kernel between X's ends."""
    width = np.ptp(X, axis=0) / LEVELS
    level = np.rint((Z - X.min(axis=0)) / np.where(width > 0.0, width, 1.0))
    reached = level[:, :, None] >= np.arange(1, LEVELS + 1)
    return np.asfortranarray((reached * np.sqrt(width)[:, None]).reshape(Z.shape[0], -1))


@lru_cache(maxsize=1)
def _split_into_steps(name: str, seed: int) -> PlantedData:
    """A split whose features are groups of columns, one for each step."""
    made = _split_scaled(name, seed)
    X = made.data.block().values
    groups = {str(j): list(range(LEVELS * j, LEVELS * (j + 1))) for j in range(X.shape[1])}
    data = Instance.from_arrays(stored_steps(X, X), made.data.y)
    return PlantedData(data, stored_steps(X, made.X_test), made.y_test, frozenset(), groups)


def _feature_atoms(data: Instance) -> Atoms:
    return make("features", data)


def _product_atoms(data: Instance) -> Atoms:
    return Pairs(data, gamma=1.0, r=1.0)


def _function_atoms(data: Instance) -> Atoms:
    return make("additive-hik", data, levels=LEVELS, shift=True)


EXPANSIONS: dict[str, Callable[[Instance], Atoms]] = {
    "features": _feature_atoms,
    "products": _product_atoms,
    "functions": _function_atoms,
}


def _measure_expansions(name: str, seed: int) -> list[Row]:
    """Features, their products and functions of them, the best B of each."""
    made = _split_scaled(name, seed)
    rows: list[Row] = []
    for B in PAIR_BUDGETS:
        for method, atoms in EXPANSIONS.items():
            began = cpu_clock()
            problem = Problem(made.data, loss="squared-hinge", atoms=atoms(made.data), M=B, C=PAIR_C)
            result = solve_by(problem, "kelley", T=T, gap=1e-3)
            wrong = float(np.mean(made.y_test * result.decision_function(made.X_test) <= 0.0))
            row = {"method": method, "B": B, "size": len(result.selected), "accuracy": 1.0 - wrong}
            row["products"] = sum(bool(re.search("[×²]", one)) for one in result.selected)
            rows.append({**row, "seconds": cpu_clock() - began})
    return rows


def stored_products(X: Array) -> Array:
    """The columns of `Pairs` with γ = r = 1, but for the constant: √2 x_j, x_j² and √2 x_j x_k."""
    one, other = np.triu_indices(X.shape[1], 1)
    root = np.sqrt(2.0)
    return np.asfortranarray(np.hstack([root * X, X**2, root * X[:, one] * X[:, other]]))


def _one_norm(name: str, seed: int) -> list[Row]:
    """ℓ1-PSVM: the ℓ1-SVM with at most B of the stored products, with its own weights and refitted."""
    made = _split_scaled(name, seed)
    p = made.data.n_features
    data = Instance.from_arrays(stored_products(made.data.block().values), made.data.y)
    X_test = stored_products(made.X_test)
    rows: list[Row] = []
    for B in PAIR_BUDGETS:
        began = cpu_clock()
        thin = l1_svm_of_size(data, B)
        ids = np.sort(thin.ids[thin.w != 0.0])
        refitted = plain_svm(data, ids, PAIR_C, True, "squared-hinge")
        for method, linear in (("l1 products", thin), ("l1 products unbias", refitted)):
            row = {"part": "expansions", "method": method, "B": B, "size": ids.size, "products": int(np.sum(ids >= p))}
            rows.append({**row, "accuracy": 1.0 - error(linear, X_test, made.y_test), "seconds": cpu_clock() - began})
    return rows


STUDY = Study(
    "tan-2014",
    "Tan 2014: bias, products and groups",
    "Tan 2014, sections 6.2, 6.4 and 7, Figures 2 to 6 and 13 to 18",
    DESIGN,
    units,
    measure,
    report,
    claims,
)
