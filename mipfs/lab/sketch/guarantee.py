"""The guarantee of a choice of columns: what a theorem promises, and what was measured of it.

Measured are the eigenvalues of V'DD'V, γ̃²/γ² of the margins (`mipfs.lab.sketch.margin`) and R̃²/R² of the radii
(below), D rescaling the chosen columns. The measured eigenvalues [a, b] are a certificate of their
own, for any method: a ≤ γ̃²/γ² ≤ b and a ≤ R̃²/R² ≤ b on the rows that columns were chosen from (Paul 2016, Theorems 1, 3
and 5 rest on nothing else).

Also here: the radius of the smallest ball that encloses some points, between two earned bounds.

    R² = min over c of max over i ‖x_i − c‖² = max over β ≥ 0, Σβ = 1 of Σ β_i ‖x_i‖² − ‖Σ β_i x_i‖²

Any β earns a lower bound, its centre c = Σ β_i x_i an upper one. β is optimised on a core set of points (Bădoiu and
Clarkson 2003), a small program for Clarabel; the points farthest from its centre join until none is outside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import DataError
from mipfs.lab.sketch.margin import HingeSolution, Interval, columns, rows_of, solve_svm, store_columns
from mipfs.lab.sketch.picks import Picks, Promise
from mipfs.lab.sketch.source import Basis, Source
from mipfs.plumbing.arrays import Array
from mipfs.report.visible import finite_or_none
from mipfs.solvers.cones import conic_solution
from mipfs.solvers.vectors import in_simplex

TOL = 1e-8
"""Relative distance of the two bounds on R² at which the search ends."""
MOST_CORE_SETS, LEAST_JOINING = 200, 8
"""Core sets at most; points that join at a time at least, as many as there are once they are more."""
NEGLIGIBLE_SHARE = 1e-10
"""Entries of β below this share of the largest are dropped."""


def enclosing_ball(X: Any) -> Interval:
    """R² of the rows of X, as an interval.

    Parameters
    ----------
    X : (n, p) ndarray or SciPy sparse matrix of finite values

    Returns
    -------
    Interval
        Of R², which holds up to the round-off of the distances.
    """
    top = float(abs(X).max())
    if top == 0.0:
        return Interval(0.0, 0.0)
    exponent = int(np.frexp(top)[1])  # a power of two: no square over- or underflows
    if sparse.issparse(X):
        points = sparse.csr_array(X)
        points = sparse.csr_array((np.ldexp(points.data, -exponent), points.indices, points.indptr), points.shape)
        squares = np.asarray(points.multiply(points).sum(axis=1)).ravel()
    else:
        points = np.ldexp(X, -exponent)
        points = points - points.mean(axis=0)  # near the centre the distances lose no digits
        squares = np.einsum("ij,ij->i", points, points)
    found = _enclosing_ball_interval(points, squares)
    return Interval(float(np.ldexp(found.low, 2 * exponent)), float(np.ldexp(found.high, 2 * exponent)))


def _enclosing_ball_interval(points: Any, squares: Array) -> Interval:
    core = np.array([int(squares.argmax())])
    beta = np.ones(1)
    low, high = 0.0, np.inf
    for _ in range(MOST_CORE_SETS):
        center = np.asarray(points[core].T @ beta).ravel()
        own = float(center @ center)
        away = squares - 2.0 * np.asarray(points @ center).ravel() + own
        low, high = max(low, float(beta @ squares[core]) - own), min(high, float(away.max()))
        if high - low <= TOL * high:
            break
        far = np.argsort(-away, kind="stable")[: max(LEAST_JOINING, core.size)]
        joining = np.setdiff1d(far[away[far] > low], core)
        if joining.size == 0:  # round-off: no point is left to tell the two apart
            break
        core = np.union1d(core[beta > 0.0], joining)
        solved = _core_set_weights(points, squares, core)
        if solved is None:
            break
        beta = solved
    return Interval(max(0.0, low), max(low, high, 0.0))


def _core_set_weights(points: Any, squares: Array, core: npt.NDArray[np.int64]) -> Array | None:
    """β of the core set's own ball; None where Clarabel does not find it."""
    part = points[core]
    gram = part @ part.T
    gram = gram.toarray() if sparse.issparse(gram) else np.asarray(gram)
    size = float(squares[core].max())
    m = core.size
    A = sparse.csc_matrix(np.vstack([np.ones((1, m)), -np.eye(m)]))
    cones = {"zero": 1, "nonneg": m, "soc": [], "psd": [], "exp": 0}
    P = sparse.csc_matrix(np.triu(2.0 * gram / size))
    answer = conic_solution(P, -squares[core] / size, A, np.concatenate([[1.0], np.zeros(m)]), cones)
    if answer is None:
        return None
    beta = np.maximum(answer[0], 0.0)
    return in_simplex(np.where(beta < NEGLIGIBLE_SHARE * beta.max(), 0.0, beta))


PROMISE_SLACK = 1e-6
"""Relative distance at which a measured number counts as below its promise."""
ZERO_EIGENVALUE = 1e-12
"""An eigenvalue below this is zero."""
NO_SLACK, SOME_SLACK = 1e-6, 1e-3
"""Shares of the SVM's value up to which its loss counts as none, and from which on as some."""


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What is promised of the rescaled columns, and what was measured.

    Attributes
    ----------
    rank : int, directions of the rows that columns were chosen from; 0 where they were not decomposed
    promised : Promise or None
    is_whole : bool, whether it is about margins and radii; otherwise about the leading directions alone
    eigenvalues : Interval, the least and the largest eigenvalue of V'DD'V, or None where it was not measured
    margin : Interval of γ̃²/γ² on the rows that columns were chosen from, or None
    margin_all : Interval of γ̃²/γ² on all samples; where columns were chosen from all, the same as `margin`
    radius : Interval of R̃²/R², of all samples, or None
    about : str, what the promise speaks of
    warnings : tuple of str, what a reader could take it for, and what it does not say
    """

    rank: int
    promised: Promise | None
    is_whole: bool
    eigenvalues: Interval | None
    margin: Interval | None
    margin_all: Interval | None
    radius: Interval | None
    about: str
    warnings: tuple[str, ...]

    @property
    def epsilon(self) -> float | None:
        """Measured ‖I − V'DD'V‖₂."""
        return None if self.eigenvalues is None else max(1.0 - self.eigenvalues.low, self.eigenvalues.high - 1.0)

    def document(self) -> dict[str, Any]:
        """For JSON: what is not known is null."""
        promised = None
        if self.promised is not None:
            one = self.promised
            promised = {
                "epsilon": one.epsilon,
                "least": one.low,
                "largest": one.high,
                "probability": one.probability,
                "source": one.source,
                "paper_epsilon": finite_or_none(one.paper),
            }
        return {
            "rank": self.rank,
            "promised": promised,
            "of_margins": self.promised is not None and self.is_whole,
            "epsilon": self.epsilon,
            "eigenvalues": _interval_for_json(self.eigenvalues),
            "margin": _interval_for_json(self.margin),
            "margin_all": _interval_for_json(self.margin_all),
            "radius": _interval_for_json(self.radius),
            "about": self.about,
            "warnings": list(self.warnings),
        }


def eigenvalues(basis: Basis, picks: Picks) -> Interval:
    """The least and the largest eigenvalue of V'DD'V."""
    rows = basis.V[picks.ids] * np.sqrt(picks.weight)[:, None]
    found = np.linalg.eigvalsh(rows.T @ rows)
    return Interval(max(0.0, float(found[0])), float(found[-1]))


def promise_alone(data: Instance, source: Source, picks: Picks, basis: Basis | None) -> Guarantee:
    """The promise alone; `basis` is that of the source where it was made for the choice."""
    promised = picks.promise if picks.sure else None
    is_whole = basis is None or basis.left_out == 0.0
    about = _promise_subject(promised, is_whole, 0 if source.rows is None else source.rows.size, data.n_samples)
    warnings = (*picks.remarks, *_of_the_promise(promised, picks, basis), "nothing was measured")
    return Guarantee(picks.rank, promised, is_whole, None, None, None, None, about, warnings)


def measure_choice(
    data: Instance, source: Source, picks: Picks, solved: HingeSolution | None, C: float, bias: bool
) -> Guarantee:
    """Measure a choice.

    Parameters
    ----------
    data : Instance
    source : Source, the rows that columns were chosen from
    picks : Picks
    solved : HingeSolution, the SVM on all samples and features where it was solved already
    C, bias : of the hinge SVM whose margin is measured
    """
    rows = source.rows
    basis, unmeasured = _singular_basis(source)
    if basis is None:
        found = None
        promised = picks.promise if picks.sure else None
    else:
        found = eigenvalues(basis, picks)
        promised = picks.promise if picks.rank == basis.rank else None
    is_whole = basis is None or basis.left_out == 0.0
    ids = picks.ids
    factors = np.sqrt(picks.weight)
    margin = margin_all = None
    lost = False
    if not np.any(np.isnan(data.y)):
        full = solve_svm(data, C, bias) if solved is None else solved
        small = columns(data, ids, factors)
        on_all = solve_svm(small, C, bias)
        margin_all = margin = full.value.over(on_all.value)
        lost = full.slack <= NO_SLACK * full.value.high and on_all.slack > SOME_SLACK * on_all.value.high
        if rows is not None:
            before, after = (solve_svm(rows_of(one, rows), C, bias).value for one in (data, small))
            margin = before.over(after)
    # A ball does not care where 0 is: sparse columns need not be centred.
    radius = enclosing_ball(store_columns(data, ids).values * factors[None, :]).over(
        enclosing_ball(store_columns(data).values)
    )
    warnings = [*picks.remarks, *unmeasured, *_of_the_promise(promised, picks, basis)]
    measured = {"eigenvalues": found}
    if is_whole:
        measured |= {"squared margin": margin, "squared radius": radius if rows is None else None}
    warnings += _of_the_measures(promised, measured)
    if rows is not None:
        warnings += _of_supervision(found, margin_all, lost, radius, rows.size, data.n_samples)
    about = _promise_subject(promised, is_whole, 0 if rows is None else rows.size, data.n_samples)
    rank = picks.rank if basis is None else basis.rank
    return Guarantee(rank, promised, is_whole, found, margin, margin_all, radius, about, tuple(warnings))


def _singular_basis(source: Source) -> tuple[Basis | None, list[str]]:
    """The rows' singular vectors; where a method did without them and they are too many, why they were left out."""
    try:
        return source.basis, []
    except DataError as error:
        return None, [f"the eigenvalues were not measured: {error.message}"]


def _promise_subject(promised: Promise | None, is_whole: bool, n_support: int, n: int) -> str:
    """What the promise speaks of, in a sentence."""
    if promised is None:
        return "nothing is promised for this choice; what was measured stands for itself"
    chance = "" if promised.probability == 1.0 else f"with probability {promised.probability:g}, "
    if not is_whole:
        return f"{chance}the eigenvalues of the leading directions are promised, nothing of margins or radii"
    if n_support:
        whom = f"the squared margin of the {n_support} support vectors among {n} samples lies"
        were = "it was"
    else:
        whom = f"the squared margin and the squared radius of all {n} samples lie"
        were = "they were"
    return (
        f"{chance}{whom} between {promised.low:.4g} and {promised.high:.4g} times what {were}, on the chosen columns "
        "when rescaled; on the columns as they stand nothing is promised"
    )


def _of_the_promise(promised: Promise | None, picks: Picks, basis: Basis | None) -> list[str]:
    """What the promise does not say."""
    r = picks.order.size
    rank = picks.rank
    said = []
    if picks.promise is not None and promised is None:
        of_rows = "a rank that is not known to be the same" if basis is None else f"rank {basis.rank}"
        said.append(
            f"the projections have rank {rank} and the rows {of_rows}: the guarantee of BSS does not carry over; "
            "it does with as many projections as the rows have directions, and more picks than that"
        )
    if basis is not None and basis.left_out > 0.0:
        said.append(
            f"rank = {basis.rank} leaves out directions that carry {basis.left_out:.2%} of the squared norm: what is "
            "promised and measured of the eigenvalues says nothing of them, nor of the margins and radii that need them"
        )
    if promised is not None and promised.low <= 0.0:
        said.append(f"the promise is empty: {r} draws are too few for {rank} directions, a margin may vanish")
    elif promised is not None and math.isfinite(promised.paper) and promised.paper >= 1.0:
        said.append(
            f"{r} picks are at most nine times the rank {rank}: the paper's bound ε <= 3 sqrt(rank/r) = "
            f"{promised.paper:.3g} is empty, what stands is the sharp one: at least {promised.low:.3g} of the squared "
            "margin"
        )
    return said


def _of_the_measures(promised: Promise | None, measured: dict[str, Interval | None]) -> list[str]:
    """Where what was measured leaves nothing, or is not what was promised."""
    said = []
    found = measured["eigenvalues"]
    if found is not None and found.low < ZERO_EIGENVALUE:
        said.append("the chosen columns miss some directions altogether (least eigenvalue 0): a margin may vanish")
    if promised is None:
        return said
    low, high = promised.low * (1.0 - PROMISE_SLACK), promised.high * (1.0 + PROMISE_SLACK)
    if promised.probability < 1.0:
        cause = f"which {1.0 - promised.probability:.0%} of the draws may do"
    else:
        cause = "round-off, or directions below the rank threshold (columns of very different scales): scale them"
    for name, one in measured.items():
        if one is not None and (
            one.high < low or one.low > high or (one is found and not low <= one.low <= one.high <= high)
        ):
            said.append(
                f"measured {name} {one.low:.4g} to {one.high:.4g}, promised {promised.low:.4g} to {promised.high:.4g}: "
                f"{cause}"
            )
    return said


def _of_supervision(
    found: Interval | None, margin: Interval | None, lost: bool, radius: Interval | None, n_support: int, n: int
) -> list[str]:
    """What a choice by the support vectors leaves open."""
    said = (
        f"the columns were chosen by {n_support} of {n} samples: nothing is promised of the margin on the others, nor "
        "of the radius"
    )
    if found is not None and margin is not None and margin.high < found.low * (1.0 - PROMISE_SLACK):
        said += f"; on all samples {margin.high:.3g} of the squared margin is left, on the support vectors at least "
        said += f"{found.low:.3g}"
        said += ", and samples that the SVM separated without slack need some now" if lost else ""
    if found is not None and radius is not None and radius.low > found.high * (1.0 + PROMISE_SLACK):
        said += f"; the squared radius is {radius.low:.3g} times what it was"
    return [said]


def _interval_for_json(interval: Interval | None) -> dict[str, float | None] | None:
    """An interval for JSON."""
    return None if interval is None else {"low": finite_or_none(interval.low), "high": finite_or_none(interval.high)}
