"""The restricted problem of feature generation: multiple kernel learning over a pool of selections (Tan 2014).

For a pool σ¹, …, σᵀ, X_t the columns of σᵗ (times √σᵗ_j where one is fractional) and c_t = cᵀσᵗ:

    dual      max over α ∈ A, θ       g(α) − θ   s.t.   ½ ‖ω_t(α)‖² − c_t ≤ θ   for all t         ω_t = X_tᵀ(α∘y)
    primal    min over w, μ, b        ½ Σ_t ‖w_t‖²/μ_t + Σ_t μ_t c_t + L(y∘(Σ_t X_t w_t + b)),    μ ≥ 0, Σμ = 1

The multiplier of row t is μ_t, and σ = Σ_t μ_t σᵗ. Without penalties, with θ = ½γ², the dual is Tan 2014 (35), which
drops the linear part of g, and the primal minimised over μ (μ_t = ‖w_t‖ / Σ_s ‖w_s‖) is Tan 2014 (31),
½ (Σ_t ‖w_t‖)² + L; the primal as it stands here is Tan 2010 (6). In the ρ-form of Tan 2010 (1) the dual has no linear
part and the row Σα = 1, whose multiplier is ρ: that is Tan 2010 (4) over the pool, and its value −1/(4v) of the unit
margin's v. The value bounds the relaxation over all of S from above, and falls towards it as the pool grows; it is no
bound on (P).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import sparse

from mipfs.data.classes import ClassWeight
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.formulation import check
from mipfs.formulation.conic import (
    AtomDesign,
    Multiplier,
    Sigma,
    attach,
    bias_of,
    cp,
    design_of,
    dual_of,
    loss_of,
    over_weights,
)
from mipfs.formulation.program import Formulation
from mipfs.plumbing.arrays import Array, Integers, scatter
from mipfs.plumbing.declared import check_arguments
from mipfs.problem import Problem

Pool = Sequence[Any] | str


@dataclass(frozen=True, eq=False)
class Margin:
    """ρ, which stands where its variable does in the primal: the multiplier of Σα = 1.

    Attributes
    ----------
    row : cvxpy constraint
    """

    row: Any

    @property
    def value(self) -> float | None:
        """What the solver found, None before it did."""
        dual = self.row.dual_value
        return None if dual is None else abs(float(dual))


def problem(
    data: Instance,
    *,
    M: int | None = None,
    C: float = 1.0,
    loss: str = "squared-hinge",
    bias: bool = False,
    margin: str = "unit",
    class_weight: ClassWeight | None = None,
) -> Problem:
    """The `Problem` alone, which can be of any size; parameters as in `build`."""
    return Problem(
        data, loss=loss, bias=bias, M=M, C=C, margin=margin, formulation="reduced-mkl", class_weight=class_weight
    )


def declare(problem: Problem, pool: Pool, form: Literal["dual", "primal"] = "dual") -> Formulation:
    """Declare the restricted problem over a pool; parameters as in `build`."""
    # the dual form is the published one, over norms of ω; the primal one is over weights, and has rows over these
    check(problem if form == "dual" else problem.replace(weight_rows=()), "reduced-mkl")
    if form not in ("dual", "primal"):
        raise UsageError(f"form = {form!r} is unknown; it is one of dual, primal")
    sigmas = np.array(selections(problem, pool))
    declared = _dual_formulation(problem, sigmas) if form == "dual" else primal(problem, sigmas)
    return attach(declared, "reduced-mkl", partial(_redeclare, pool=sigmas, form=form))


def _redeclare(problem: Problem, pool: Array, form: Literal["dual", "primal"]) -> Formulation:
    """The restricted problem under other rows: over those of the pool that satisfy them."""
    return declare(problem, allowed_selections(problem, pool), form)


def _columns_of_pool(problem: Problem, sigmas: Array) -> tuple[AtomDesign, list[tuple[Integers, Array]]]:
    """The columns of all atoms that some σᵗ uses, and for every t the positions of its own and their √σ.

    An empty selection keeps one column, times zero: the program has an entry for it then.
    """
    used = np.flatnonzero(sigmas.any(axis=0))
    design = design_of(problem, used if used.size else np.array([0]))
    weights = sigmas[:, used][:, design.atom] if used.size else np.zeros((len(sigmas), design.atom.size))
    own = [np.flatnonzero(row) if row.any() else np.array([0]) for row in weights]
    return design, [(k, np.sqrt(row[k])) for k, row in zip(own, weights, strict=True)]


def _dual_formulation(problem: Problem, sigmas: Array) -> Formulation:
    design, parts = _columns_of_pool(problem, sigmas)

    # α ∈ A,  ω = Xᵀ(α∘y)
    dual = dual_of(problem)
    omega, defines_omega = design.omega(dual.v)
    theta = cp.Variable(name="theta")
    g, margin = dual.g, dict[str, Any]()
    if problem.margin == "rho":  # Σ α = 1, and g without its linear part                Tan 2010, (2) to (4)
        total = cp.sum(dual.alpha) == 1
        g, margin = dual.g - cp.sum(dual.alpha), {"rho": Margin(total)}
        dual.rows.append(total)

    # ½ ‖ω_t‖² − c_t ≤ θ                                                          Tan 2014, (35)
    half_norms = cp.hstack([0.5 * cp.sum_squares(cp.multiply(root, omega[k])) for k, root in parts])
    cuts = half_norms - sigmas @ problem.penalty <= theta

    # max  g(α) − θ
    program = cp.Problem(cp.Maximize(g - theta), [*dual.rows, defines_omega, cuts])
    variables = {"alpha": dual.alpha, "theta": theta, "mu": Multiplier(cuts), **margin}
    return Formulation(problem, program, Sigma(problem, cuts, sigmas.T), variables)


def primal(problem: Problem, sigmas: Array) -> Formulation:
    """The primal form over vectors σᵗ (T, p), which is over weights, and so has the rows over these too."""
    design, parts = _columns_of_pool(problem, sigmas)
    w_t = [cp.Variable(k.size, name=f"w_{t}") for t, (k, _) in enumerate(parts, 1)]
    mu = cp.Variable(len(parts), nonneg=True, name="mu")
    b = bias_of(problem)

    # Σ_t X_t w_t, as one weight per column
    w = cp.Variable(problem.data.n_features, name="w")
    k = design.atom.size
    spread = [sparse.csr_array((root, (own, np.arange(own.size))), shape=(k, own.size)) for own, root in parts]
    per_column = sum(scatter @ part for scatter, part in zip(spread, w_t, strict=True))
    L = loss_of(problem, design.scores(per_column, b), rho=True)

    # r_t ≥ ‖w_t‖²/μ_t                                                            Tan 2010, (6); Tan 2014, (31)
    r = cp.Variable(len(parts), name="r")
    cones = [cp.SOC(mu[t] + r[t], cp.hstack([2 * part, mu[t] - r[t]])) for t, part in enumerate(w_t)]

    # min  ½ Σ_t r_t + Σ_t μ_t c_t + L
    objective = 0.5 * cp.sum(r) + (sigmas @ problem.penalty) @ mu + L.value
    sigma = Sigma(problem)
    mixture = [cp.sum(mu) == 1, sigma == sigmas.T @ mu, w == design.to_features @ per_column]
    over = over_weights(problem, design, per_column)
    program = cp.Problem(cp.Minimize(objective), [*cones, *L.rows, *mixture, *over.rows])
    variables = {"w_t": cp.hstack(w_t), "w": w, "b": b, "xi": L.xi, "mu": mu, "alpha": L.alpha, **L.margin}
    variables |= over.variables
    return Formulation(problem, program, sigma, variables)


def selections(problem: Problem, pool: Pool) -> list[Array]:
    """The pool as vectors σᵗ of shape (p,).

    Parameters
    ----------
    problem : Problem
    pool : sequence of selections, or text
        A selection is a sequence of feature (or atom) names or of positions, or (p,) bools or floats in [0, 1].
        In text, names are separated by commas and selections by semicolons: ``"x1, x3; x2"``.

    Raises
    ------
    UsageError
        An empty pool, an unknown feature, or an array of another shape or range.
    """
    if isinstance(pool, str):
        pool = [[name.strip() for name in part.split(",") if name.strip()] for part in pool.split(";")]
    found = [_checked_selection(problem, given) for given in pool]
    if not found:
        raise UsageError("the pool is empty: give at least one selection")
    return found


def allowed_selections(problem: Problem, sigmas: Array) -> list[Array]:
    """Those of a pool of vectors σᵗ (T, p) that satisfy the rows.

    Raises
    ------
    UsageError
        A fractional one, of which only the selections that it mixes could be asked, or none that is allowed.
    """
    if np.any((sigmas != 0.0) & (sigmas != 1.0)):
        raise UsageError("a pool with fractional selections is not restricted by rows; give a pool of selections")
    found = [sigma for sigma in sigmas if problem.selection.contains(sigma > 0.5)]
    if not found:
        raise UsageError("no selection of the pool satisfies the rows; give another pool")
    return found


def _checked_selection(problem: Problem, given: Any) -> Array:
    p = problem.atoms.count
    values = np.asarray(given)
    if values.ndim != 1 or isinstance(given, str):
        raise UsageError(f"{given!r} is no selection: give names, positions, or {p} numbers in [0, 1]")
    if values.dtype.kind in "bf" and values.size:
        if values.size != p or not np.all((values >= 0) & (values <= 1)):
            raise UsageError(f"a selection as numbers must have {p} of them in [0, 1]")
        return values.astype(float)
    if values.dtype.kind in "iu" or not values.size:
        if np.any(values < 0) or np.any(values >= p) or np.unique(values).size < values.size:
            raise UsageError(f"positions {values.tolist()} must be different ones from 0 to {p - 1}")
        ids = values.astype(np.int64)
    else:
        ids = problem.atoms_of([str(name) for name in values])
    return scatter(p, ids, 1.0)


@check_arguments
def build(
    data: Instance,
    *,
    pool: Pool,
    M: int | None = None,
    C: float = 1.0,
    loss: str = "squared-hinge",
    bias: bool = False,
    margin: str = "unit",
    form: Literal["dual", "primal"] = "dual",
    class_weight: ClassWeight | None = None,
) -> Formulation:
    """Declare the restricted problem of `data` over a pool in CVXPY.

    Parameters
    ----------
    data : Instance
        Its penalties become part of the program; its rows are the pool's business.
    pool : sequence of selections, or text
        See `selections`.
    M : int in 0 … p
        Of the problem whose relaxation it restricts; the program itself does not use it.
    C : float > 0
        Weight of the loss.
    loss : {"hinge", "squared-hinge", "logistic"}
    bias : bool
        Whether b is free; without it f(x) = w'x.
    margin : {"unit", "rho"}
        "rho": the free margin of Tan 2010, (1), for the squared hinge.
    form : {"dual", "primal"}
    class_weight : mapping of label to float > 0, "balanced" or None, optional
        Weights of the classes, as in `mipfs.Problem`.

    Returns
    -------
    Formulation
        With ``alpha`` and ``mu`` in both forms, ``theta`` in the dual, ``w_t``, ``w``, ``b`` and ``xi`` in the primal;
        with ``margin="rho"`` also ``rho``.

    Raises
    ------
    UsageError
        A bad pool, a parameter out of range, or data too large for an algebraic model.

    Source: Tan 2014, (31) and (35); Tan 2010, (6).
    """
    made = problem(data, M=M, C=C, loss=loss, bias=bias, margin=margin, class_weight=class_weight)
    return declare(made, pool, form)
