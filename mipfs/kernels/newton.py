"""The SVM on some columns by Newton's method, for every loss that the kernels know; with ends and rows over weights.

    min ½‖w‖² + L(A u),  u = (w, b),  low ≤ w ≤ high,  least ≤ D w ≤ most

With the rows a_i = y_i (z_i, 1) and m = Au, Newton's matrix is diag(1, …, 1, 0) + Σ_J h_i a_i a_i' over the rows J
whose loss has a curvature h_i = c_i ℓ''(m_i): a step costs two passes over the rows and the smaller of two systems, or
conjugate gradients where those cost more than their passes over J. A is dense and row-major, or the triple (data,
indices, indptr) of a CSR matrix.

A loss whose slope jumps is smoothed by multipliers α and a step ρ, of the hinge to β_i = clip(α_i + ρ(1 − m_i), 0,
c_i); between minimisations α ← β and ρ grows (augmented Lagrangian: Hestenes 1969, Powell 1969; for machine learning
Li, Sun, Toh 2018). So is a row over the weights, with a multiplier λ that is positive at its lower end and negative at
its upper one, and a step of its own, which is large from the start: with z = Dw − λ/step it pulls by step·(clip(z,
least, most) − z), the next λ. A weight is held at an end where the gradient leads out of the box; Newton's step is
over the others, and ends where it meets a new end, or where the function is least along it.

Throughout, m (n,) are the margins, beta (n,) = −L'(m) of the loss, or of the smoothed one, c (n,) loss weights, g (d,)
a gradient, `rows` and `inner` positions of rows, H (d, d) a lower triangle, `given` an `SvmRows`, `ends` an `Ends`,
and `at` an `Iterate`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

from mipfs.compiled import compiled
from mipfs.compiled.lent import hold_until_here, lend_arrays
from mipfs.kernels.loss import at_margins, curvature
from mipfs.kernels.loss import slope as slope_of_loss
from mipfs.kernels.vectors import copy_to

ROWS_PER_BLOCK = 512
"""Rows gathered at a time for A_J'A_J: they stay in the cache."""
FLAT, SEARCHES = 0.1, 40
"""A step ends where the slope is at most this share of the first one; points of a line search at most."""
EASY, HARD = 12, 30
"""A minimisation of at most EASY steps lets ρ grow; one of more than HARD takes it back."""
EXACTNESS = 1e-3
"""Conjugate gradients end where the residual of Newton's system is at most this share of the gradient, in lengths by
the diagonal."""
GRADIENTS, GRADIENTS_SHARE = 20, 0.1
"""Conjugate gradients are tried where that many of their passes cost at most this share of the direct solution, and
given up at it."""
STALE = 20
"""Newton's steps of a smooth loss that leave no less to gain than an earlier one: rounding lets no more be gained."""
NOTHING, NOTHING_OF_ROWS = 1e-3, 1e-9
"""What is left to gain that is nothing, of what is asked: no step is taken for it. With rows over the weights it is
less: their multipliers would move twice for one step, and go to and fro."""
STIFF = 100.0
"""The step of a row over the weights, in units of a bound on the curvature of all else along it."""
STIFFEST, STIFFEST_OF_ROWS = 1e3, 1e7
"""ρ is at most STIFFEST times the largest multiplier, or STIFFEST_OF_ROWS through the mean of ‖a_i‖²: beyond that the
steps that are left are too short for the digits of the margins. Of separable samples multipliers are like 1/‖a_i‖²."""
DRIFT = 8.0
"""Sums that follow the steps are made anew after moving by DRIFT times their size: what rounding leaves is small."""
DEAR = 2.0
"""What breaking a row counts in the gap, in units of its multiplier."""


class SvmRows(NamedTuple):
    """The rows of an SVM.

    A : (n, d) row-major array or CSR triple of y_i (z_i, 1);  c : (n,) loss weights
    k : number of weights; d = k + 1 with a free bias, else k;  loss : LossSteps
    """

    A: Any
    c: npt.NDArray[Any]
    k: int
    loss: Any


class Ends(NamedTuple):
    """What the weights are held by.

    low, high : (k,), or (0,) where no weight has ends
    D, least, most : (r, k), (r,) rows over the weights, each of length 1
    bend : a bound on the curvature of the loss, for ρ = 1 where it is smoothed, along any of them
    """

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    D: npt.NDArray[Any]
    least: npt.NDArray[Any]
    most: npt.NDArray[Any]
    bend: float


class NewtonPace(NamedTuple):
    """How far a call goes.

    tol : relative gap to reach;  until : dual value that is enough, where the loss is smoothed
    steps : Newton's steps at most;  grow : factor of ρ from one minimisation to the next
    """

    tol: float
    until: float
    steps: int
    grow: float


class Iterate(NamedTuple):
    """Where `minimise` is.

    u, alpha, multipliers : in and out
    m, beta, q, curve : (n,) margins, β, how a step moves the margins, and ψ'';  inner : (n,) rows with curvature
    held, pulled : (n,) and (d,), β as it was last, and Σ β_i a_i of it
    drift : (2,), how far β and the margins have moved since all was added up, in sums over the rows
    g, way : (d,) the gradient, and the step;  free : (d,) coordinates that may move;  sums : (2,)
    pull : (r,) of the rows over the weights;  block : (·, d) rows that are gathered at a time
    """

    u: npt.NDArray[Any]
    alpha: npt.NDArray[Any]
    multipliers: npt.NDArray[Any]
    m: npt.NDArray[Any]
    beta: npt.NDArray[Any]
    q: npt.NDArray[Any]
    curve: npt.NDArray[Any]
    inner: npt.NDArray[Any]
    held: npt.NDArray[Any]
    pulled: npt.NDArray[Any]
    drift: npt.NDArray[Any]
    g: npt.NDArray[Any]
    way: npt.NDArray[Any]
    free: npt.NDArray[Any]
    sums: npt.NDArray[Any]
    pull: npt.NDArray[Any]
    block: npt.NDArray[Any]


def n_rows(A: Any) -> int:
    """The number of rows of A."""
    raise NotImplementedError


def n_stored(A: Any) -> int:
    """The numbers that A stores."""
    raise NotImplementedError


def dot_row(A: Any, i: int, u: Any) -> float:
    """a_i'u."""
    raise NotImplementedError


def add_row(A: Any, i: int, scale: float, out: Any) -> None:
    """out += scale * a_i."""
    raise NotImplementedError


def add_squares(A: Any, i: int, scale: float, out: Any) -> None:
    """out += scale * a_i∘a_i."""
    raise NotImplementedError


def copy_row(A: Any, i: int, scale: float, out: Any) -> None:
    """out = scale * a_i, dense."""
    raise NotImplementedError


@overload(n_rows, inline="always")
def _n_rows(A):  # type: ignore[no-untyped-def]
    if isinstance(A, types.Array):
        return lambda A: A.shape[0]
    return lambda A: A[2].size - 1


@overload(n_stored, inline="always")
def _n_stored(A):  # type: ignore[no-untyped-def]
    if isinstance(A, types.Array):
        return lambda A: A.size
    return lambda A: A[0].size


@overload(dot_row, inline="always", jit_options={"fastmath": True})
def _dot_row(A, i, u):  # type: ignore[no-untyped-def]
    if isinstance(A, types.Array):

        def dense(A, i, u):  # type: ignore[no-untyped-def]
            total = 0.0
            for j in range(u.size):
                total += A[i, j] * u[j]
            return total

        return dense

    def csr(A, i, u):  # type: ignore[no-untyped-def]
        data, indices, indptr = A
        total = 0.0
        for s in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += data[s] * u[np.uint64(indices[s])]
        return total

    return csr


@overload(add_row, inline="always")
def _add_row(A, i, scale, out):  # type: ignore[no-untyped-def]
    if isinstance(A, types.Array):

        def dense(A, i, scale, out):  # type: ignore[no-untyped-def]
            for j in range(out.size):
                out[j] += scale * A[i, j]

        return dense

    def csr(A, i, scale, out):  # type: ignore[no-untyped-def]
        data, indices, indptr = A
        for s in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            out[np.uint64(indices[s])] += scale * data[s]

    return csr


@overload(add_squares, inline="always")
def _add_squares(A, i, scale, out):  # type: ignore[no-untyped-def]
    if isinstance(A, types.Array):

        def dense(A, i, scale, out):  # type: ignore[no-untyped-def]
            for j in range(out.size):
                out[j] += scale * A[i, j] * A[i, j]

        return dense

    def csr(A, i, scale, out):  # type: ignore[no-untyped-def]
        data, indices, indptr = A
        for s in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            out[np.uint64(indices[s])] += scale * data[s] * data[s]

    return csr


@overload(copy_row, inline="always")
def _copy_row(A, i, scale, out):  # type: ignore[no-untyped-def]
    if isinstance(A, types.Array):

        def dense(A, i, scale, out):  # type: ignore[no-untyped-def]
            for j in range(out.size):
                out[j] = scale * A[i, j]

        return dense

    def csr(A, i, scale, out):  # type: ignore[no-untyped-def]
        out[:] = 0.0
        for s in range(A[2][i], A[2][i + 1]):
            out[A[1][s]] = scale * A[0][s]

    return csr


@compiled()
def gather(X, ids, y, off, scale, out):  # type: ignore[no-untyped-def]
    """out_i = y_i (scale∘(x_i[ids] − off), 1) from column-major X; the 1 where out has one more column."""
    k = ids.size
    for i in range(out.shape[0]):
        for r in range(k):
            out[i, r] = (X[i, ids[r]] - off[r]) * scale[r] * y[i]
        if out.shape[1] > k:
            out[i, k] = y[i]


@compiled(fastmath=True)
def margins(A, u, out):  # type: ignore[no-untyped-def]
    """out_i = a_i'u."""
    for i in range(out.size):
        out[i] = dot_row(A, i, u)


@compiled(fastmath=True)
def dot_rows(A, rows, u, out):  # type: ignore[no-untyped-def]
    """out_r = a_i'u of the rows i = `rows`[r]."""
    for r in range(rows.size):
        out[r] = dot_row(A, rows[r], u)


@compiled(fastmath=True)
def add_curved(A, rows, curve, u, out):  # type: ignore[no-untyped-def]
    """out += Σ over `rows` of h_i a_i a_i'u, h = `curve`."""
    for r in range(rows.size):
        i = rows[r]
        add_row(A, i, curve[i] * dot_row(A, i, u), out)


@compiled()
def combine_rows(A, rows, beta, out):  # type: ignore[no-untyped-def]
    """out = Σ over `rows` of β_i a_i."""
    out[:] = 0.0
    for r in range(rows.size):
        i = rows[r]
        if beta[i] != 0.0:
            add_row(A, i, beta[i], out)


@compiled(fastmath=True)
def add_gram(R, count, H):  # type: ignore[no-untyped-def]
    """Lower triangle of H += R'R over the first `count` rows of R, four rows at a time."""
    d = H.shape[0]
    whole = count - count % 4
    for r in range(0, whole, 4):
        for i in range(d):
            a = R[r, i]
            b = R[r + 1, i]
            c = R[r + 2, i]
            e = R[r + 3, i]
            for j in range(i + 1):
                H[i, j] += a * R[r, j] + b * R[r + 1, j] + c * R[r + 2, j] + e * R[r + 3, j]
    for r in range(whole, count):
        for i in range(d):
            for j in range(i + 1):
                H[i, j] += R[r, i] * R[r, j]


@compiled(fastmath=True)
def dot(x, y):  # type: ignore[no-untyped-def]
    """x'y, shorter of the two lengths."""
    total = 0.0
    for j in range(min(x.size, y.size)):
        total += x[j] * y[j]
    return total


@compiled(nogil=True, fastmath=True)
def cholesky_in_place(H):  # type: ignore[no-untyped-def]
    """Overwrite the lower triangle of H by its factor; a pivot lost to rounding is lifted.

    Four rows at a time share every load of the rows above: five times faster than one at a time.
    """
    n = H.shape[0]
    for top in range(0, n, 4):
        if top + 4 <= n:
            for j in range(top):
                a = 0.0
                b = 0.0
                c = 0.0
                e = 0.0
                for t in range(j):
                    h = H[j, t]
                    a += H[top, t] * h
                    b += H[top + 1, t] * h
                    c += H[top + 2, t] * h
                    e += H[top + 3, t] * h
                H[top, j] = (H[top, j] - a) / H[j, j]
                H[top + 1, j] = (H[top + 1, j] - b) / H[j, j]
                H[top + 2, j] = (H[top + 2, j] - c) / H[j, j]
                H[top + 3, j] = (H[top + 3, j] - e) / H[j, j]
        for i in range(top, min(top + 4, n)):
            # Of four rows at once the columns left of `top` are done above.
            for j in range(top if top + 4 <= n else 0, i):
                total = 0.0
                for t in range(j):
                    total += H[i, t] * H[j, t]
                H[i, j] = (H[i, j] - total) / H[j, j]
            # L_ii² = H_ii − Σ_t L_it², and 1e-14 of H_ii where rounding leaves nothing positive.
            size = H[i, i]
            total = 0.0
            for t in range(i):
                total += H[i, t] * H[i, t]
            H[i, i] = np.sqrt(max(size - total, 1e-14 * size + 1e-300))


@compiled()
def cholesky_solve(L, x):  # type: ignore[no-untyped-def]
    """Overwrite x by (LL')⁻¹x."""
    n = x.size
    for i in range(n):
        x[i] = (x[i] - dot(L[i, :i], x[:i])) / L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]


@compiled()
def newton_matrix(A, inner, curve, k, H, rows):  # type: ignore[no-untyped-def]
    """H = diag(1…1, 0) + Σ_J h_i a_i a_i'."""
    H[:, :] = 0.0
    count = inner.size
    # Rows times √h_i have the sum as their Gram matrix; a block of them stays in the cache until it is added.
    for start in range(0, count, ROWS_PER_BLOCK):
        size = min(ROWS_PER_BLOCK, count - start)
        for r in range(size):
            i = inner[start + r]
            copy_row(A, i, np.sqrt(curve[i]), rows[r])
        add_gram(rows, size, H)
    for i in range(k):
        H[i, i] += 1.0


@compiled()
def direction_by_columns(A, inner, curve, g, k, out, rows):  # type: ignore[no-untyped-def]
    """Solve (diag(1…1, 0) + Σ_J h_i a_i a_i') out = −g by Cholesky's method on this d×d matrix."""
    H = np.empty((g.size, g.size))
    newton_matrix(A, inner, curve, k, H, rows)
    for i in range(g.size):
        out[i] = -g[i]
    cholesky_in_place(H)
    cholesky_solve(H, out)


@compiled()
def direction_by_rows(A, inner, curve, g, k, out):  # type: ignore[no-untyped-def]
    """The direction of `direction_by_columns`, from a |J|×|J| system.

    (diag(1/h) + A_w A_w') λ − y_J db = −A_w g_w,   y_J'λ = −g_b,   dw = −g_w − A_w'λ
    """
    d = g.size
    count = inner.size
    row = np.empty(d)
    K = np.empty((count, count))
    lam = np.empty(count)
    y = np.empty(count)
    for r in range(count):
        copy_row(A, inner[r], 1.0, row)
        y[r] = row[d - 1]
        row[k:] = 0.0
        dot_rows(A, inner[: r + 1], row, K[r])
        K[r, r] += 1.0 / curve[inner[r]]
        lam[r] = -dot(row, g)
    cholesky_in_place(K)
    cholesky_solve(K, lam)
    db = 0.0
    if d > k:
        # λ is affine in db; y_J'λ = −g_b says what db is.
        second = y.copy()
        cholesky_solve(K, second)
        db = (-g[k] - dot(y, lam)) / dot(y, second)
        for r in range(count):
            lam[r] += db * second[r]
    for j in range(k):
        out[j] = -g[j]
    for r in range(count):
        add_row(A, inner[r], -lam[r], out)
    out[k:] = db


@compiled()
def direction_by_gradients(A, inner, curve, g, k, out, most):  # type: ignore[no-untyped-def]
    """The direction of `direction_by_columns` by conjugate gradients; False where `most` steps do not lead to it.

    They are preconditioned by the diagonal (Hestenes and Stiefel 1952); z is the residual r divided by it.
    """
    d = g.size
    diagonal = np.zeros(d)
    diagonal[:k] = 1.0
    for r in range(inner.size):
        add_squares(A, inner[r], curve[inner[r]], diagonal)
    residual = -g
    z = residual / diagonal
    way = z.copy()
    product = np.empty(d)
    out[:] = 0.0
    size = dot(residual, z)
    enough = EXACTNESS**2 * size
    for _ in range(most):
        if size <= enough:
            return True
        product[:k] = way[:k]
        product[k:] = 0.0
        add_curved(A, inner, curve, way, product)
        t = size / dot(way, product)
        before = size
        for j in range(d):
            out[j] += t * way[j]
            residual[j] -= t * product[j]
            z[j] = residual[j] / diagonal[j]
        size = dot(residual, z)
        for j in range(d):
            way[j] = z[j] + size / before * way[j]
    return size <= enough


@compiled()
def gradients_at_most(A, n_inner, d):  # type: ignore[no-untyped-def]
    """How many conjugate gradients may be tried: their passes cost a share of what the direct solution does, or none.

    In multiplications: |J|d²/2 + d³/6 by columns, half of |J| times the numbers of J's rows and |J|³/6 by rows.
    """
    numbers = n_stored(A) / n_rows(A) * n_inner
    direct = n_inner * d * d / 2 + d**3 / 6 if n_inner >= d else n_inner * numbers / 2 + n_inner**3 / 6
    most = np.int64(GRADIENTS_SHARE * direct / (2.0 * numbers + 8.0 * d + 1.0))
    return most if most >= GRADIENTS else 0


@compiled()
def newton_direction(A, inner, curve, g, k, out, rows, is_easy):  # type: ignore[no-untyped-def]
    """Solve (diag(1…1, 0) + Σ_J h_i a_i a_i') out = −g, h = `curve`, by the way that costs least.

    Conjugate gradients are for what is easy: where a minimisation has gone on for long, its steps are to be exact.
    """
    if inner.size == 0:
        # No row has curvature: the matrix is the identity in w, and b takes a step of the gradient.
        for j in range(g.size):
            out[j] = -g[j]
        return
    most = gradients_at_most(A, inner.size, g.size) if is_easy else 0
    if most > 0 and direction_by_gradients(A, inner, curve, g, k, out, most):
        return
    if inner.size >= g.size:
        direction_by_columns(A, inner, curve, g, k, out, rows)
    else:
        direction_by_rows(A, inner, curve, g, k, out)


@compiled(nogil=True)
def newton(given, u, alpha, state, pace):  # type: ignore[no-untyped-def]
    """`minimise` without ends and rows over the weights."""
    none = np.empty(0)
    ends = Ends(none, none, np.empty((0, given.k)), none, none, 0.0)
    minimise(given, ends, u, alpha, none, state, pace)


@compiled(nogil=True)
def minimise(given, ends, u, alpha, multipliers, state, pace):  # type: ignore[no-untyped-def]
    """Take at most `pace.steps` Newton steps; call again to go on.

    Parameters
    ----------
    given, ends : SvmRows, Ends
    u : (d,) in and out
    alpha : (n,) in and out, in the box; of a loss that is not smoothed −L'(Au), out
    multipliers : (r,) in and out, λ
    state : (3,) in and out: ρ, 1.0 when converged, Newton's steps so far
    pace : NewtonPace
    """
    n = alpha.size
    d = u.size
    own = Iterate(
        u, alpha, multipliers, np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64), np.zeros(n),
        np.zeros(d), np.zeros(2), np.empty(d), np.empty(d), np.empty(d, np.bool_), np.empty(2),
        np.empty(multipliers.size), np.empty((min(ROWS_PER_BLOCK, n), d)),
    )  # fmt: skip
    given, ends, at = lend_arrays((given, ends, own))
    last = state[2] + pace.steps
    is_smoothed = given.loss.is_smoothed or multipliers.size > 0
    nothing = NOTHING_OF_ROWS if multipliers.size > 0 else NOTHING
    margins(given.A, u, at.m)
    gap = least_error = np.inf
    moves = stale = 0
    while state[2] < last:
        at_margins(given.loss.at_margins, at.m, at.alpha, given.c, state[0], at.beta, at.sums)
        _follow_beta(given.A, at)
        primal, dual, error, slack = _gradient_and_free_set(given, ends, at, state[0])
        if gap == np.inf:
            gap = abs(primal - dual)
        # Inexact minimisation: to a share of the gap that the last multipliers left.
        enough = max(0.1 * gap, 0.2 * pace.tol * primal) if is_smoothed else 0.1 * pace.tol * primal
        stale = 0 if error < least_error else stale + 1
        least_error = min(least_error, error)
        is_least = (moves > 0 and error <= enough) if is_smoothed else (error <= enough or stale > STALE)
        if not (is_least or error <= nothing * pace.tol * primal) and _newton_step(given, ends, at, state[0], moves):
            state[2] += 1.0
            moves += 1
            continue
        gap = abs(primal - dual) + _violation_cost(ends, at)
        if not is_smoothed or gap + slack <= pace.tol * primal or dual - slack >= pace.until:
            state[1] = 1.0
            break
        copy_to(at.beta, at.alpha)
        copy_to(at.pull, at.multipliers)
        state[0] *= pace.grow if moves <= EASY else 1.0 / pace.grow if moves > HARD else 1.0
        state[0] = min(state[0], _stiffest(given.A, at, state[0]))
        state[2] += moves == 0
        moves = 0
    if state[1] == 1.0 or not given.loss.is_smoothed:
        copy_to(at.beta, at.alpha)
        copy_to(at.pull, at.multipliers)
    hold_until_here(own)


@compiled(nogil=True)
def _stiffest(A, at, rho):  # type: ignore[no-untyped-def]
    """How far ρ may grow from one minimisation to the next, or ρ itself if that is less."""
    most = STIFFEST * np.max(at.alpha)
    if rho <= most:
        return rho
    squares = 0.0
    for i in range(at.m.size):
        copy_row(A, i, 1.0, at.way)
        squares += dot(at.way, at.way)
    return max(most, STIFFEST_OF_ROWS * at.m.size / max(squares, 1e-300))


@compiled(nogil=True)
def _follow_beta(A, at):  # type: ignore[no-untyped-def]
    """Σ β_i a_i, of which from one step to the next few terms change; added up anew where rounding would be left."""
    beta = at.beta
    held = at.held
    size = 0.0
    moved = 0.0
    for i in range(beta.size):
        size += abs(beta[i])
        moved += abs(beta[i] - held[i])
    at.drift[0] += moved
    if at.drift[0] > DRIFT * size:
        held[:] = 0.0
        at.pulled[:] = 0.0
        at.drift[0] = size
    for i in range(beta.size):
        if beta[i] != held[i]:
            add_row(A, i, beta[i] - held[i], at.pulled)
            held[i] = beta[i]


@compiled(nogil=True)
def _row_penalty(given, ends, rho):  # type: ignore[no-untyped-def]
    """The step of rows over the weights, where that of the samples is ρ."""
    return STIFF * (1.0 + ends.bend * (rho if given.loss.is_smoothed else 1.0))


@compiled(nogil=True)
def _row_pull(given, ends, at, rho):  # type: ignore[no-untyped-def]
    """By how much the rows over the weights pull at u; what their multipliers add to the dual value then."""
    D = ends.D
    step = _row_penalty(given, ends, rho)
    value = 0.0
    for r in range(D.shape[0]):
        z = -at.multipliers[r] / step
        for j in range(D.shape[1]):
            z += D[r, j] * at.u[j]
        end = min(max(z, ends.least[r]), ends.most[r])
        at.pull[r] = step * (end - z)
        value += at.pull[r] * end if at.pull[r] != 0.0 else 0.0
    return value


@compiled(nogil=True)
def _violation_cost(ends, at):  # type: ignore[no-untyped-def]
    """What it costs, about, to bring u into the rows that it breaks."""
    lost = 0.0
    for r in range(ends.D.shape[0]):
        at_row = 0.0
        for j in range(ends.D.shape[1]):
            at_row += ends.D[r, j] * at.u[j]
        away = at_row - min(max(at_row, ends.least[r]), ends.most[r])
        lost += DEAR * abs(at.pull[r] * away)
    return lost


@compiled(nogil=True)
def _gradient_and_free_set(given, ends, at, rho):  # type: ignore[no-untyped-def]
    """The gradient, and which coordinates may move; both values at u and β, what is left to gain, and what y'β charges.

    ½‖w‖² + L(m)  and  g(β) + Σ λ·(its end) − Σ_j max over low ≤ t ≤ high of (ωt − ½t²), ω = A'β + D'λ
    """
    low, high, u, g = ends.low, ends.high, at.u, at.g
    primal = at.sums[0]
    dual = at.sums[1] + _row_pull(given, ends, at, rho)
    error = 0.0
    slack = 0.0
    copy_to(at.pulled, g)
    for r in range(ends.D.shape[0]):
        for j in range(ends.D.shape[1]):
            g[j] += at.pull[r] * ends.D[r, j]
    for j in range(u.size):
        at.free[j] = True
        if j >= given.k:
            slack += abs(g[j]) * (1.0 + abs(u[j]))
            g[j] = -g[j]
            continue
        t = min(max(g[j], low[j]), high[j]) if low.size > 0 else g[j]
        dual -= t * (g[j] - 0.5 * t)
        primal += 0.5 * u[j] * u[j]
        g[j] = u[j] - g[j]
        if low.size > 0:
            at.free[j] = not ((u[j] <= low[j] and g[j] >= 0.0) or (u[j] >= high[j] and g[j] <= 0.0))
        error += 0.5 * g[j] * g[j] if at.free[j] else 0.0
    return primal, dual, error + slack, slack


@compiled(nogil=True)
def _newton_step(given, ends, at, rho, moves):  # type: ignore[no-untyped-def]
    """Take Newton's step, number `moves` of a minimisation, where coordinates may move; False where none descends."""
    low, high, u, way = ends.low, ends.high, at.u, at.way
    curvature(given.loss.curvature, at.beta, given.c, rho, at.inner, at.curve, at.sums)
    inner = at.inner[: np.int64(at.sums[0])]
    most = np.inf
    first = -1
    if low.size > 0 or ends.D.shape[0] > 0:
        most, first = _projected_direction(given, ends, at, inner, rho)
    else:
        newton_direction(given.A, inner, at.curve, at.g, given.k, way, at.block, moves < EASY)
    f0 = dot(at.g, way)
    if not f0 < 0.0:
        return False
    margins(given.A, way, at.q)
    t = _line_search(given, ends, at, rho, most, f0)
    for j in range(u.size):
        u[j] += t * way[j]
        if j < low.size:
            u[j] = min(max(u[j], low[j]), high[j])
    if t == most:
        u[first] = high[first] if way[first] > 0.0 else low[first]
    size = 0.0
    moved = 0.0
    for i in range(at.m.size):
        at.m[i] += t * at.q[i]
        moved += abs(t * at.q[i])
        size += 1.0 + abs(at.m[i])
    at.drift[1] += moved
    if at.drift[1] > DRIFT * size:
        margins(given.A, u, at.m)
        at.drift[1] = size
    return True


@compiled(nogil=True)
def _projected_direction(given, ends, at, inner, rho):  # type: ignore[no-untyped-def]
    """Newton's direction over the coordinates that may move, without those that it would push out of the box at once.

    Returns how far it may be followed, and which coordinate meets its end there.
    """
    low, high, u, way = ends.low, ends.high, at.u, at.way
    H = np.empty((u.size, u.size))
    newton_matrix(given.A, inner, at.curve, given.k, H, at.block)
    _add_rows(ends, at, _row_penalty(given, ends, rho), H)
    most = np.inf
    first = -1
    for _ in range(u.size + 1):
        _direction_of_free(H, at.g, at.free, way)
        most = np.inf
        for j in range(low.size):
            if way[j] != 0.0:
                room = ((high[j] if way[j] > 0.0 else low[j]) - u[j]) / way[j]
                if room < most:
                    most = room
                    first = j
        if most > 1e-12 or not dot(at.g, way) < 0.0:
            break
        at.free[first] = False
    return most, first


@compiled(nogil=True)
def _add_rows(ends, at, step, H):  # type: ignore[no-untyped-def]
    """H += step·Σ d_r d_r' over the rows over the weights that pull, or have no width."""
    D = ends.D
    for r in range(D.shape[0]):
        if at.pull[r] != 0.0 or ends.least[r] == ends.most[r]:
            for j in range(D.shape[1]):
                for t in range(j + 1):
                    H[j, t] += step * D[r, j] * D[r, t]


@compiled(nogil=True)
def _direction_of_free(H, g, free, way):  # type: ignore[no-untyped-def]
    """Newton's direction over the free coordinates, 0 elsewhere."""
    d = g.size
    L = H.copy()
    for j in range(d):
        way[j] = -g[j] if free[j] else 0.0
        for t in range(j):
            if not (free[j] and free[t]):
                L[j, t] = 0.0
        # No row bends, and the intercept takes a step of the gradient.
        L[j, j] = L[j, j] * (1.0 + 1e-12) if free[j] and L[j, j] > 1e-290 else 1.0
    cholesky_in_place(L)
    cholesky_solve(L, way)


@compiled(nogil=True)
def _line_search(given, ends, at, rho, most, f0):  # type: ignore[no-untyped-def]
    """Where the slope along the direction is small, `most` at most; f0 is the slope at the start."""
    a0 = 0.0
    a1 = 0.0
    for j in range(given.k):
        a0 += at.u[j] * at.way[j]
        a1 += at.way[j] * at.way[j]
    low = 0.0
    high = np.inf
    f_low = f0
    f_high = 0.0
    t = min(1.0, most)
    for _ in range(SEARCHES):
        slope_of_loss(given.loss.slope, t, at.m, at.q, at.alpha, given.c, rho, at.sums)
        first = a0 + a1 * t + at.sums[0] - _pull_along(given, ends, at, rho, t)
        if (first <= 0.0 and t >= most) or abs(first) <= FLAT * abs(f0):
            break
        if first > 0.0:
            high = t
            f_high = first
        else:
            low = t
            f_low = first
        between = low + (high - low) * min(max(f_low / (f_low - f_high), 0.1), 0.9) if high < np.inf else 4.0 * t
        t = min(most, between)
    return t


@compiled(nogil=True)
def _pull_along(given, ends, at, rho, t):  # type: ignore[no-untyped-def]
    """What the rows over the weights add to the slope along a step, negated, at t."""
    D = ends.D
    step = _row_penalty(given, ends, rho)
    total = 0.0
    for r in range(D.shape[0]):
        z = -at.multipliers[r] / step
        along = 0.0
        for j in range(D.shape[1]):
            z += D[r, j] * (at.u[j] + t * at.way[j])
            along += D[r, j] * at.way[j]
        total += step * (min(max(z, ends.least[r]), ends.most[r]) - z) * along
    return total
