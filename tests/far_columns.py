"""Any problem with its columns times 2^j, C and penalties with them: it has the same optimum, but for powers of two.

With X·2^j, C·4^−j, λ·4^−j and bounds on weights times 2^−j, (P) at (σ, w·2^−j, b) is 4^−j times what it was. What a
solver and both checkers say of the one is what they say of the other.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np

import mipfs
from mipfs.data.instance import Instance
from mipfs.problem import Problem
from mipfs.result.result import Result
from tests import two_checkers
from tests.certificate import honest

EXPONENTS = (251, 290, 330, -252, -300, -380, -450)
"""Powers that take columns of about 1 beyond what is squared as it is."""


def times(value: Any, power: int) -> Any:
    """A number, or each of a list or mapping, times 2^power."""
    if isinstance(value, dict):
        return {name: times(one, power) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [times(one, power) for one in value]
    if value is None or isinstance(value, (str, bool)):
        return value
    with np.errstate(over="ignore"):
        return float(np.ldexp(float(value), power))


def moved(problem: Problem, j: int) -> Problem:
    """The problem over its scaled columns times 2^j, which are then called unscaled."""
    own = problem.data
    X = own.block().values if own.is_sparse and not np.any(own.center) else own.block().dense()
    far = X.copy()
    if own.is_sparse and not np.any(own.center):
        far.data = np.ldexp(far.data, j)
    else:
        far = np.ldexp(far, j)
    data = Instance.from_arrays(
        far, own.y, feature_names=own.feature_names, sample_weight=own.sample_weight, labels=own.labels,
        penalty=times(dict(own.penalty), -2 * j), rows=own.rows, select=own.select,
    )  # fmt: skip
    given = problem.lam
    lam = times(dict(given), -2 * j) if isinstance(given, dict) else np.ldexp(np.asarray(given), -2 * j).tolist()
    scaled = dict(zip(own.feature_names, own.scale.tolist(), strict=True))
    bounds = {
        name: tuple(None if not np.isfinite(end) else times(end * scaled[name], -j) for end in ends)
        for name, ends in (problem.weight_bounds or {}).items()
    }
    return problem.replace(
        data=data, atoms=problem.atoms.on(data), C=times(problem.C, -2 * j), lam=lam, weight_bounds=bounds,
        intercept_scaling=times(problem.intercept_scaling, j),
    )  # fmt: skip


def stated(result: Result, j: int) -> dict[str, Any]:
    """What a result says and proves, with its numbers moved back by 2^j."""
    relaxed, near = result.relaxed or {}, result.near_optimal or {}
    arrays = {} if result.claim is None else dict(result.claim.arrays())
    if arrays:
        arrays["dual_q"] = arrays["dual_q"] - 2 * j
        arrays["multipliers"] = np.array(
            [[float(exact(one)) for one in row] for row in arrays["multipliers"].tolist()], dtype=float
        )
        arrays["multipliers"] = np.ldexp(arrays["multipliers"], 2 * j)
        arrays |= {"dual_top": np.ldexp(arrays["dual_top"], 2 * j)} if "dual_top" in arrays else {}
    return {
        "status": result.status.name,
        "selected": result.selected,
        "values": times([result.objective, result.bound], 2 * j),
        "weights": times(dict(result.weights), j),
        "intercept": result.intercept,
        "extra": result.extra,
        "params": {name: times(result.params[name], 2 * j) for name in ("C", "lambda")},
        "scaling": result.scaling,
        "relaxed": [times(relaxed.get(side), 2 * j) for side in ("lower", "upper")],
        "mixed": [relaxed.get("sigma"), times(relaxed.get("weights"), j)],
        "list": [
            [one["selected"], times(one["objective"], 2 * j), times(one["weights"], j), one["gap"], one["ties"]]
            for one in near.get("supports", ())
        ],
        "trace": [times([one.objective, one.bound, one.upper], 2 * j) for one in result.trace],
        "claim": None if result.claim is None or result.claim.bound is None else times(result.claim.bound, 2 * j),
        "arrays": {name: (array.shape, array.tobytes()) for name, array in sorted(arrays.items())},
    }


def exact(one: Any) -> Any:
    """A multiplier, which may be text."""
    return Fraction(one.decode()) if isinstance(one, bytes) else one


def varied(seed: int) -> Problem:
    """A tiny problem, at times with bounds on weights, class weights, derived rows, or a measure's intercept."""
    rng, problem = np.random.default_rng([seed, 9]), honest.problem_of(seed)
    if problem.margin == "rho":
        problem = problem.replace(margin="unit")
    if problem.loss == "structural":
        plain = problem.atoms.kind != "trees"
        return problem.replace(bias=True, intercept_scaling=10.0 ** rng.uniform(-2, 2)) if plain else problem
    if rng.random() < 0.3:
        problem = problem.replace(class_weight={problem.data.labels.positive: 3.0})
    if problem.selects_features and not problem.atoms.is_scaled and rng.random() < 0.5:
        ends = [(None, 0.0), (0.0, None), (-abs(rng.normal()), abs(rng.normal())), (0.0, 0.0), (None, None)]
        names = problem.data.feature_names
        problem = problem.replace(weight_bounds={name: ends[rng.integers(5)] for name in names})
    assert problem.rows is not None
    if len(problem.rows.names) and not len(problem.rows.extra) and rng.random() < 0.5:
        problem = problem.strengthened(two_checkers.pairs)
    return problem


def largest(problem: Problem) -> float:
    """The largest size of a value of the columns."""
    return float(np.abs(problem.data.block().dense()).max())


def differs(seed: int, j: int, problem: Problem) -> str:
    """What of the far problem is not as of the near one, "" where all is."""
    with two_checkers.remembered(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unit = -int(np.frexp(largest(problem))[1])
        near, far = moved(problem, unit), moved(problem, unit + j)
        _, first = honest.solve(seed, near)
        _, other = honest.solve(seed, far)
    one, two = stated(first, unit), stated(other, unit + j)
    apart = [name for name in one if str(one[name]) != str(two[name])]
    if apart:
        return f"{apart[0]}: {one[apart[0]]!r:.300} and {two[apart[0]]!r:.300}"
    for result, data in ((first, near.data), (other, far.data)):
        found, known = two_checkers.written(result), two_checkers.data_of(data)
        if found is None:
            continue
        says = two_checkers.verdicts(json.loads(found[0]), found[1], data, known)
        if says[0] != "accepted" or says[1] not in ("accepted", "declined"):
            return f"{'near' if result is first else 'far'}: {says}"
    return ""


def main(argv: list[str]) -> int:
    """Compare the seeds FROM:TO; returns how many differ."""
    start, stop = (int(part) for part in argv[0].split(":"))
    counts, wrong = Counter[str](), 0
    for seed in range(start, stop):
        j = EXPONENTS[seed % len(EXPONENTS)]
        try:
            problem = varied(seed)
            found = differs(seed, j, problem)
        except mipfs.MipfsError as error:
            found = f"refused: {error}"
            if "weight_bounds" in found:  # of an end that is beyond its range in the user's unit
                counts["refused"] += 1
                continue
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        counts["differ" if found else "same"] += 1
        if found:
            wrong += 1
            print(f"seed {seed}, 2^{j}: {found}", flush=True)
    print(dict(counts))
    return wrong


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
