"""Multipliers of the user's rows in compiled code: what they make of a node's penalties, and a Newton step for them.

    D(λ) = max over α of the node's bound with rows ã'σ ≤ u at multipliers λ ≥ 0 is concave, ∇D = Ãσ − u

On fixed classes (in, fractional, out; `mipfs.kernels.perspective`) the node's optimality conditions are smooth: with
G = Ã diag(sign w/τ) and W = Ã diag(|w|/τ³) Ã' over the fractional features, τ² twice their price, and H the loss's
curvature over the features that are not out, one symmetric system gives the step,

    [H + I_in  G'] [dw]   [   0   ]
    [   G     −W ] [dλ] = [u − Ãσ ]            so that  (W + G (H + I_in)⁻¹ G') dλ = Ãσ − u,

with the cardinality row among the rows, and the intercept among the weights. A row that no fractional feature meets is
held by what it would take to move its inner ones. Any step is allowed, for any prices bound: it only has to be good.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled
from mipfs.kernels.columns import add_curvature
from mipfs.kernels.earned import rounded_down
from mipfs.kernels.loss import curvature
from mipfs.kernels.newton import cholesky_in_place, cholesky_solve
from mipfs.kernels.propagation import idle_rows
from mipfs.kernels.vectors import copy_to

WHOLE = 1e-6
"""Distance from 0 or 1 up to which σ_j counts as integral, and of a row from its end up to which it binds."""


class BindingRows(NamedTuple):
    """Rows that bind, at most as many as there are.

    rows, side : numbers and sides ±1;  slack : how far σ is inside;  multipliers : theirs, ≥ 0
    equal : whether both ends are one
    """

    rows: npt.NDArray[Any]
    side: npt.NDArray[Any]
    slack: npt.NDArray[Any]
    multipliers: npt.NDArray[Any]
    equal: npt.NDArray[Any]


class PricedRelaxation(NamedTuple):
    """A node's relaxation, in the kernel's units.

    cols, forced : (q,) the columns in play, the forced ones first;  full : whether the cardinality row binds
    w, sigma : (q,) its solution;  beta, rho : (n,) its dual vector, and ρ of the smoothing
    size : unit of the objective
    """

    cols: npt.NDArray[Any]
    forced: int
    full: bool
    w: npt.NDArray[Any]
    sigma: npt.NDArray[Any]
    beta: npt.NDArray[Any]
    rho: float
    size: float


@compiled(nogil=True)
def drop_idle(sides, M, states, y, idle):  # type: ignore[no-untyped-def]
    """Set the multipliers of rows that cannot bind in a node to zero; `idle` (2·count,) is scratch."""
    if not np.any(y):
        return
    idle_rows(sides, M, states, idle)
    for r in range(y.size):
        if (y[r] < 0.0 and idle[r]) or (y[r] > 0.0 and idle[y.size + r]):
            y[r] = 0.0


@compiled(nogil=True)
def price(sides, y, penalty, priced, size):  # type: ignore[no-untyped-def]
    """Penalties c − A'y, in `priced`, and what the rows add to the bound, both rounded down.

    y that no end bounds are set to zero; `size` (k,) is scratch.
    """
    indptr, indices, data, ends = sides.indptr, sides.indices, sides.data, sides.ends
    count = indptr.size - 1
    priced[:] = 0.0
    size[:] = 0.0
    constant = 0.0
    whole = 0.0
    for r in range(count):
        # y < 0 holds the upper end of a row, y > 0 the lower one: π₊'l − π₋'h.
        end = ends[r] if y[r] < 0.0 else -ends[count + r]
        if not (np.isfinite(end) and np.isfinite(y[r])):
            y[r] = 0.0
        if y[r] == 0.0:
            continue
        constant += y[r] * end
        whole += abs(y[r] * end)
        for s in range(indptr[r], indptr[r + 1]):
            priced[indices[s]] += data[s] * y[r]
            size[indices[s]] += abs(data[s] * y[r])
    for j in range(penalty.size):
        if size[j] > 0.0:
            priced[j] = rounded_down(penalty[j] - priced[j], abs(penalty[j]) + size[j], count + 1)
        else:
            priced[j] = penalty[j]
    return rounded_down(constant, whole, count)


@compiled(nogil=True)
def measure_missed(sides, y, cols, sigma, dense):  # type: ignore[no-untyped-def]
    """What better multipliers could add at most: by how much σ misses the ends that y pays for.

    sigma (q,) of the columns `cols`; `dense` (k,) is scratch.
    """
    indptr, indices, data, ends = sides.indptr, sides.indices, sides.data, sides.ends
    count = indptr.size - 1
    dense[:] = 0.0
    for t in range(cols.size):
        dense[cols[t]] = sigma[t]
    total = 0.0
    for r in range(count):
        if y[r] != 0.0:
            activity = 0.0
            for s in range(indptr[r], indptr[r + 1]):
                activity += data[s] * dense[indices[s]]
            total += abs(y[r]) * abs((ends[r] if y[r] < 0.0 else -ends[count + r]) - activity)
    return total


@compiled(nogil=True)
def find_binding_rows(sides, y, size, at, sigma, found):  # type: ignore[no-untyped-def]
    """Write the rows that bind to `found`; returns how many. `at`: (k,) places of the columns in sigma, or −1."""
    rows, side, short, held, equal = found.rows, found.side, found.slack, found.multipliers, found.equal
    indptr, indices, data, ends = sides.indptr, sides.indices, sides.data, sides.ends
    count = indptr.size - 1
    active = 0
    for r in range(count):
        activity = 0.0
        for s in range(indptr[r], indptr[r + 1]):
            if at[indices[s]] >= 0:
                activity += data[s] * sigma[at[indices[s]]]
        # A violated row comes in without a multiplier too, so that the step can give it one.
        low = -ends[count + r]
        high = ends[r]
        room = WHOLE * (1.0 + abs(activity))
        upper = y[r] < 0.0 or activity > high + room
        lower = y[r] > 0.0 or activity < low - room
        if upper or lower:
            rows[active] = r
            side[active] = 1.0 if upper else -1.0
            short[active] = high - activity if upper else activity - low
            held[active] = -side[active] * y[r] / size
            equal[active] = low == high
            active += 1
    return active


@compiled(nogil=True)
def steps_of(S, short, held, equal, first, turns, change):  # type: ignore[no-untyped-def]
    """Changes of multipliers that stay at least zero where they must: S dλ = −short on the rows that stay positive.

    S (m, m) has the cardinality row in front, if it binds: `first` is 1 then.
    turns : solves at most to find the rows that stay
    """
    active = short.size
    kept = np.ones(active, np.bool_)
    places = np.empty(S.shape[0], np.int64)
    for _turn in range(turns):
        size = first
        places[0] = 0
        for a in range(active):
            if kept[a]:
                places[size] = first + a
                size += 1
        # Scaled to a diagonal of ones: rows may differ by many powers of ten.
        K = np.empty((size, size))
        x = np.zeros(size)
        for i in range(size):
            root = 1.0 / np.sqrt(max(S[places[i], places[i]], 1e-300))
            if i >= first:
                x[i] = -root * short[places[i] - first]
            for j in range(size):
                K[i, j] = S[places[i], places[j]] * root / np.sqrt(max(S[places[j], places[j]], 1e-300))
        for i in range(size):
            K[i, i] += 1e-12
        cholesky_in_place(K)
        cholesky_solve(K, x)
        for a in range(active):
            change[a] = -held[a]
        fell = False
        for i in range(first, size):
            a = places[i] - first
            change[a] = x[i] / np.sqrt(max(S[places[i], places[i]], 1e-300))
            # A multiplier that would become negative is released, and the others are solved anew.
            if not equal[a] and held[a] + change[a] < 0.0:
                kept[a] = False
                fell = True
        if not fell:
            return
    for a in range(active):
        if not equal[a]:
            change[a] = max(change[a], -held[a])


@compiled(nogil=True, inline="always")
def collect_features_in_play(relaxed, at, J, fractional):  # type: ignore[no-untyped-def]
    """The features that are not out, in J, and which of them are fractional; returns how many.

    `at` (k,) receives their places in J, and −1 for all other features.
    """
    cols, forced, w, sigma = relaxed.cols, relaxed.forced, relaxed.w, relaxed.sigma
    at[:] = -1
    count = 0
    for t in range(cols.size):
        fractional[count] = t >= forced and WHOLE < sigma[t] < 1.0 - WHOLE and w[t] != 0.0
        if fractional[count] or t < forced or sigma[t] >= 1.0 - WHOLE:
            J[count] = t
            at[cols[t]] = count
            count += 1
    return count


@compiled(nogil=True, inline="always")
def binding_matrix(sides, found, active, first, at, count):  # type: ignore[no-untyped-def]
    """Ã over the features that are not out: the rows that bind, after the cardinality row where `first` is 1."""
    rows = found.rows
    side = found.side
    indptr = sides.indptr
    indices = sides.indices
    data = sides.data
    A = np.zeros((first + active, count))
    if first == 1:
        A[0, :] = 1.0
    for a in range(active):
        for s in range(indptr[rows[a]], indptr[rows[a] + 1]):
            if at[indices[s]] >= 0:
                A[first + a, at[indices[s]]] = side[a] * data[s]
    return A


@compiled(nogil=True, inline="always")
def curvature_of(Z, samples, relaxed, J):  # type: ignore[no-untyped-def]
    """H: the loss's curvature over the features J, and the intercept where there is a free one."""
    label, c, loss, bias = samples.y, samples.c, samples.loss, samples.bias
    beta = relaxed.beta
    inner = np.empty(beta.size, np.int64)
    weights = np.empty(beta.size)
    sums = np.empty(2)
    curvature(loss.curvature, beta, c, relaxed.rho, inner, weights, sums)
    n_inner = np.int64(sums[0])
    for r in range(n_inner):
        # Inner rises: what is still to be read stands behind.
        weights[r] = weights[inner[r]]
    size = J.size + (1 if bias else 0)
    H = np.zeros((size, size))
    add_curvature(Z, label, relaxed.cols[J], inner[:n_inner], weights[:n_inner], bias, H)
    if bias and H[J.size, J.size] == 0.0:
        H[J.size, J.size] = 1.0
    return H


@compiled(nogil=True, inline="always")
def bend_of(relaxed, J, fractional, A, inner, H):  # type: ignore[no-untyped-def]
    """G, W's diagonal, and what it takes to move features that are in; H becomes H + I_in.

    On the fractional features σ = |w|/τ: G has the entries ±A/τ, and W's diagonal is |w|/τ³.
    """
    w = relaxed.w
    sigma = relaxed.sigma
    G = np.zeros((A.shape[0], H.shape[0]))
    bend = np.zeros(J.size)
    stiff = np.zeros(J.size)
    for r in range(J.size):
        length = abs(w[J[r]])
        # Lifted a little, so that it can be factored without curvature, too.
        H[r, r] += 1e-9 if fractional[r] else 1.0 + 1e-9
        if fractional[r]:
            tau = length / sigma[J[r]]
            bend[r] = length / max(tau**3, 1e-300)
            slope = np.sign(w[J[r]]) / max(tau, 1e-300)
            for a in range(A.shape[0]):
                G[a, r] = slope * A[a, r]
        elif J[r] >= relaxed.forced:
            stiff[r] = inner / max(length, 1e-12) ** 2
    return G, bend, stiff


@compiled(nogil=True, inline="always")
def eliminate_rows(H, G, A, bend, damping):  # type: ignore[no-untyped-def]
    """S = A diag(bend) A' + G H⁻¹ G', H a factor; the diagonal has A²·`damping` more, or 1 where that is 0."""
    m = A.shape[0]
    S = np.empty((m, m))
    x = np.empty(H.shape[0])
    for a in range(m):
        copy_to(G[a], x)
        cholesky_solve(H, x)
        for b in range(m):
            S[a, b] = (A[a] * bend * A[b]).sum() + (G[b] * x).sum()
    for a in range(m):
        more = (A[a] * A[a] * damping).sum()
        S[a, a] += more if more > 0.0 else 1.0
    return S


@compiled(nogil=True)
def newton_step_of_multipliers(Z, samples, sides, relaxed, y, steering, at, after):  # type: ignore[no-untyped-def]
    """Multipliers after a Newton step, in `after`, and by how much the bound should rise.

    Parameters
    ----------
    Z, samples, sides : as in `mipfs.kernels.structures`
    relaxed : PricedRelaxation
    y : (count,) multipliers, positive at the lower end
    steering : the part of STEERING for prices
    at : (k,) int64, scratch; after : (count,) out
    """
    cols = relaxed.cols
    size = relaxed.size
    count = y.size
    q = cols.size
    copy_to(y, after)
    at[:] = -1
    for t in range(q):
        at[cols[t]] = t
    found = BindingRows(
        np.empty(count, np.int64), np.empty(count), np.empty(count), np.empty(count), np.empty(count, np.bool_)
    )
    active = find_binding_rows(sides, y, size, at, relaxed.sigma, found)
    places = np.empty(q, np.int64)
    fractional = np.empty(q, np.bool_)
    n_part = collect_features_in_play(relaxed, at, places, fractional)
    if active == 0 or n_part == 0 or active + n_part > steering.most:
        return 0.0
    J = places[:n_part]
    first = 1 if relaxed.full else 0
    A = binding_matrix(sides, found, active, first, at, n_part)
    H = curvature_of(Z, samples, relaxed, J)
    G, bend, stiff = bend_of(relaxed, J, fractional, A, steering.inner, H)
    cholesky_in_place(H)
    S = eliminate_rows(H, G, A, bend, steering.held * bend + stiff)
    short = found.slack[:active]
    held = found.multipliers[:active]
    change = np.empty(active)
    steps_of(S, short, held, found.equal[:active], first, steering.turns, change)
    # The quadratic model of D at its maximum: ½ dλ'(Ãσ − u).
    gain = -0.5 * size * (change * short).sum()
    if not np.isfinite(gain):
        return 0.0
    for a in range(active):
        after[found.rows[a]] = -found.side[a] * size * (held[a] + change[a])
    return gain
