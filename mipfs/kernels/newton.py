"""Newton's method on an SVM: its rows, its linear algebra, and the whole of it for a smooth loss.

With the rows a_i = y_i (z_i, 1), u = (w, b) and m = Au, the SVM is min ½‖w‖² + Σ c_i ℓ(m_i). Newton's matrix is
diag(1, …, 1, 0) + Σ_J h_i a_i a_i' over the rows J whose loss has a curvature h_i = c_i ℓ''(m_i): a step costs one pass
over the rows and the smaller of two systems. The hinge has none and is smoothed first
(`mipfs.kernels.augmented_lagrangian`). A is dense and row-major, or the triple (data, indices, indptr) of a CSR matrix.

Throughout, m (n,) are the margins, q (n,) how a direction moves them, alpha, beta and c (n,) multipliers, dual vector
and loss weights, g (d,) a gradient, `rows` and `inner` positions of rows, and H (d, d) a lower triangle.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

from mipfs.compiled import compiled
from mipfs.kernels.loss import at_margins, curvature
from mipfs.kernels.loss import slope as slope_of_loss

ROWS_PER_BLOCK = 512
"""Rows gathered at a time for A_J'A_J: they stay in the cache."""
FLAT, SEARCH_STEPS = 0.1, 60
"""A line search ends where the slope is at most FLAT of the first one, or after SEARCH_STEPS steps."""


class SvmRows(NamedTuple):
    """The rows of an SVM.

    A : (n, d) row-major array or CSR triple of y_i (z_i, 1);  c : (n,) loss weights
    k : number of weights; d = k + 1 with a free bias, else k
    """

    A: Any
    c: npt.NDArray[Any]
    k: int


def n_rows(A: Any) -> int:
    """The number of rows of A."""
    raise NotImplementedError


def dot_row(A: Any, i: int, u: Any) -> float:
    """a_i'u."""
    raise NotImplementedError


def add_row(A: Any, i: int, scale: float, out: Any) -> None:
    """out += scale * a_i."""
    raise NotImplementedError


def copy_row(A: Any, i: int, scale: float, out: Any) -> None:
    """out = scale * a_i, dense."""
    raise NotImplementedError


@overload(n_rows, inline="always")
def _n_rows(A):  # type: ignore[no-untyped-def]
    if isinstance(A, types.Array):
        return lambda A: A.shape[0]
    return lambda A: A[2].size - 1


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
def direction_by_columns(A, inner, curve, g, k, out, rows):  # type: ignore[no-untyped-def]
    """Solve (diag(1…1, 0) + Σ_J h_i a_i a_i') out = −g by Cholesky's method on this d×d matrix."""
    d = g.size
    count = inner.size
    H = np.zeros((d, d))
    # Rows times √h_i have the sum as their Gram matrix; a block of them stays in the cache until it is added.
    for start in range(0, count, ROWS_PER_BLOCK):
        size = min(ROWS_PER_BLOCK, count - start)
        for r in range(size):
            i = inner[start + r]
            copy_row(A, i, np.sqrt(curve[i]), rows[r])
        add_gram(rows, size, H)
    for i in range(d):
        if i < k:
            H[i, i] += 1.0
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
    R = np.empty((count, d))
    K = np.empty((count, count))
    lam = np.empty(count)
    y = np.empty(count)
    for r in range(count):
        copy_row(A, inner[r], 1.0, R[r])
        for s in range(r + 1):
            K[r, s] = dot(R[r, :k], R[s, :k])
        K[r, r] += 1.0 / curve[inner[r]]
        lam[r] = -dot(R[r, :k], g[:k])
        y[r] = R[r, d - 1]
    cholesky_in_place(K)
    cholesky_solve(K, lam)
    if d > k:
        # λ is affine in db; y_J'λ = −g_b says what db is.
        second = y.copy()
        cholesky_solve(K, second)
        out[k] = (-g[k] - dot(y, lam)) / dot(y, second)
        for r in range(count):
            lam[r] += out[k] * second[r]
    for j in range(k):
        out[j] = -g[j]
    for r in range(count):
        for j in range(k):
            out[j] -= lam[r] * R[r, j]


@compiled()
def newton_direction(A, inner, curve, g, k, out, rows):  # type: ignore[no-untyped-def]
    """Solve (diag(1…1, 0) + Σ_J h_i a_i a_i') out = −g, h = `curve`; by the smaller of the d×d and |J|×|J| systems."""
    if inner.size == 0:
        # No row has curvature: the matrix is the identity in w, and b takes a step of the gradient.
        for j in range(g.size):
            out[j] = -g[j]
    elif inner.size >= g.size:
        direction_by_columns(A, inner, curve, g, k, out, rows)
    else:
        direction_by_rows(A, inner, curve, g, k, out)


@compiled(inline="always")
def safeguard_step(t, low, high, first, second):  # type: ignore[no-untyped-def]
    """The next step of a line search at t, where the function has these derivatives, and between what it then is.

    Newton's step on the first derivative; without a point beyond the minimum it at least doubles t, with one it stays
    between both.
    """
    if first > 0:
        high = t
    else:
        low = t
    step = t - first / max(second, 1e-300)
    if high == np.inf:
        step = min(max(step, 2.0 * t), 10.0 * t)
    elif not low < step < high:
        step = 0.5 * (low + high)
    return step, low, high


@compiled()
def smooth_search(loss, m, q, c, a0, a1, f0):  # type: ignore[no-untyped-def]
    """A step at which the slope is at most `FLAT` of the first one, f0, by safeguarded Newton.

    loss : LossSteps;  m, q : (n,) margins, and how the direction moves them;  a0, a1 : slope and curvature of the rest
    """
    t = 1.0
    low = 0.0
    high = np.inf
    sums = np.empty(2)
    for _ in range(SEARCH_STEPS):
        slope_of_loss(loss.slope, t, m, q, m, c, 0.0, sums)
        first = a0 + a1 * t + sums[0]
        second = a1 + sums[1]
        if abs(first) <= FLAT * abs(f0):
            break
        t, low, high = safeguard_step(t, low, high, first, second)
    return t


@compiled()
def newton(given, loss, u, alpha, state, tol, max_steps, work):  # type: ignore[no-untyped-def]
    """Newton's method on ½‖w‖² + L(Au) for a smooth loss; call again to go on.

    Parameters
    ----------
    given : SvmRows
    loss : LossSteps of `mipfs.kernels.loss`
    u : (d,) in and out
    alpha : (n,) out, α = −L'(Au)
    state : (3,) in and out: unused, 1.0 when converged, Newton steps so far
    tol : relative gap to reach; Newton's steps are taken until the gradient alone would allow it
    work : (7, n + d) scratch
    """
    A, c, k = given
    n = n_rows(A)
    d = u.size
    m = work[0, :n]
    q = work[1, :n]
    curve = work[2, :n]
    g = work[4, :d]
    direction = work[5, :d]
    inner = np.empty(n, np.int64)
    everything = np.arange(n)
    sums = np.empty(2)
    block = np.empty((min(ROWS_PER_BLOCK, n), d))
    margins(A, u, m)
    for _ in range(max_steps):
        at_margins(loss.at_margins, m, m, c, 0.0, alpha, sums)
        value = sums[0]
        combine_rows(A, everything, alpha, g)
        # The objective is 1-strongly convex in w: ½‖∇_w‖² bounds what w can still gain.
        size = 0.0
        f0 = 0.0
        for j in range(d):
            g[j] = -g[j]
            if j < k:
                g[j] += u[j]
                size += 0.5 * g[j] * g[j]
                value += 0.5 * u[j] * u[j]
            else:
                size += abs(g[j]) * (1.0 + abs(u[j]))
        if size <= 0.1 * tol * value:
            state[1] = 1.0
            return
        curvature(loss.curvature, alpha, c, 0.0, inner, curve, sums)
        newton_direction(A, inner[: np.int64(sums[0])], curve, g, k, direction, block)
        margins(A, direction, q)
        a0 = 0.0
        a1 = 0.0
        for j in range(d):
            f0 += g[j] * direction[j]
            if j < k:
                a0 += u[j] * direction[j]
                a1 += direction[j] * direction[j]
        if not f0 < 0.0:
            state[1] = 1.0
            return
        t = smooth_search(loss, m, q, c, a0, a1, f0)
        for j in range(d):
            u[j] += t * direction[j]
        margins(A, u, m)
        state[2] += 1
