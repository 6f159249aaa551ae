"""The model of a proximal Newton step where all prices are one: sweeps over the coordinates, and Newton on the face.

    repeat  a few sweeps: every coordinate to its minimum, the others held; they find the face (who is non-zero)
            Newton's step on that face, once more without those whose sign it would change

A sweep is exact in the multiplier of the cardinality row too: with m others *in* and S = Σ|w_j| of the fractional
others, Φ as a function of one |w_r| = t is (S + t)²/(2(K − m)), or ½t² where that puts r *in*. So the model falls from
coordinate to coordinate, whatever the start; alone, Newton's steps on a face stand still where weights cross zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled
from mipfs.compiled.lent import hold_until_here, lend_arrays
from mipfs.kernels.newton import cholesky_in_place, cholesky_solve
from mipfs.kernels.perspective import FRACTIONAL, IN, OUT, classify_weights, phi, threshold_level
from mipfs.kernels.vectors import copy_to


class FaceModel(NamedTuple):
    """g'd + ½d'Hd + Φ(w + d_w) over a working set of k features, the forced ones first.

    H, g : (k, k) and (k,), with one more place at the end for b where `bias` says so;  w, b : the point
    c, forced, K : prices, how many features are forced in, and how many of the others may be in
    damping : added to the diagonal of a face's system;  steering : STEERING
    """

    H: npt.NDArray[Any]
    g: npt.NDArray[Any]
    w: npt.NDArray[Any]
    b: float
    c: npt.NDArray[Any]
    forced: int
    K: int
    bias: bool
    damping: float
    steering: Any


@compiled(nogil=True, fastmath=True, forceinline=True)
def multiply(H, v, out):  # type: ignore[no-untyped-def]
    """out = Hv, four rows at a time."""
    n = v.size
    whole = n - n % 4
    for r in range(0, whole, 4):
        a = 0.0
        b = 0.0
        c = 0.0
        e = 0.0
        for t in range(n):
            x = v[t]
            a += H[r, t] * x
            b += H[r + 1, t] * x
            c += H[r + 2, t] * x
            e += H[r + 3, t] * x
        out[r] = a
        out[r + 1] = b
        out[r + 2] = c
        out[r + 3] = e
    for r in range(whole, n):
        total = 0.0
        for t in range(n):
            total += H[r, t] * v[t]
        out[r] = total


@compiled(nogil=True, fastmath=True, forceinline=True)
def linear(g, pulled, d):  # type: ignore[no-untyped-def]
    """(g + ½ pulled)'d."""
    total = 0.0
    for r in range(d.size):
        total += (g[r] + 0.5 * pulled[r]) * d[r]
    return total


@compiled(nogil=True)
def face_direction(model, grad, x, cls, tau, sign, mu, out):  # type: ignore[no-untyped-def]
    """Newton's direction on the face where *out* stays at zero; `out` is over the working set and b."""
    H = model.H
    damping = model.damping
    k = x.size
    size = grad.size
    active = np.empty(size, np.int64)
    rank = np.empty(size)
    count = 0
    spread = 0.0
    for r in range(size):
        out[r] = 0.0
        if r == k or cls[r] != OUT:
            active[count] = r
            rank[count] = 0.0
            if r < k and cls[r] == FRACTIONAL and mu > 0.0:
                # Φ'' over fractional weights is aa'/Σ|w_j|τ_j⁻³ with a_j = ±1/τ_j: μ moves with them.
                rank[count] = sign[r] / tau[r]
                spread += abs(x[r]) / tau[r] ** 3
            count += 1
    inverse = 1.0 / spread if spread > 0.0 else 0.0
    G = np.empty((count, count))
    rhs = np.empty(count)
    for a in range(count):
        r = active[a]
        row = H[r]
        share = rank[a] * inverse
        for e in range(a + 1):
            G[a, e] = row[active[e]] + share * rank[e]
        G[a, a] += damping
        rhs[a] = -grad[r]
        if r < k and cls[r] == IN:
            # In, Φ is ½w²: curvature 1, slope w; fractional, its slope is ±τ.
            G[a, a] += 1.0
            rhs[a] -= x[r]
        elif r < k:
            rhs[a] -= sign[r] * tau[r]
    cholesky_in_place(G)
    cholesky_solve(G, rhs)
    for a in range(count):
        out[active[a]] = rhs[a]


@compiled(nogil=True, fastmath=True, forceinline=True)
def pull(H, r, delta, pulled):  # type: ignore[no-untyped-def]
    """pulled += delta h_r."""
    row = H[r]
    for t in range(pulled.size):
        pulled[t] += delta * row[t]


@compiled(nogil=True)
def coordinate_sweep(model, x, level, cls, moved, pulled):  # type: ignore[no-untyped-def]
    """Every coordinate to its minimum, one after the other; `cls` are the classes of x, and are kept up."""
    H, g, forced, K, bias = model.H, model.g, model.forced, model.K, model.bias
    k = x.size
    inside = 0
    held = 0.0
    for r in range(forced, k):
        if cls[r] == IN:
            inside += 1
        elif cls[r] == FRACTIONAL:
            held += abs(x[r])
    for r in range(k):
        h = H[r, r]
        old = x[r]
        # Along this coordinate the quadratic is ½h t² − z t but for a constant.
        z = h * old - g[r] - pulled[r]
        if r < forced:
            new = z / (h + 1.0)
        else:
            if cls[r] == IN:
                inside -= 1
            elif cls[r] == FRACTIONAL:
                held = max(0.0, held - abs(old))
            rest = K - inside
            size = abs(z)
            t = 0.0
            cls[r] = OUT
            # It leaves zero where |z| is above its threshold: √(2c), or S/(K − m) where the cardinality row binds.
            if rest > 0 and size > max(level, held / rest):
                # As if the row were slack; where Σσ would exceed K − m, the least ½h t² − |z|t + (S + t)²/(2(K − m)).
                t = (size - level) / h if h > 0.0 else np.inf
                if held + t > level * rest:
                    t = max((size - held / rest) / (h + 1.0 / rest), level * rest - held)
                # Above its own threshold it is in: there Φ is ½t², and t = |z|/(h + 1).
                if t > max(level, (held + t) / rest):
                    t = size / (h + 1.0)
                    inside += 1
                    cls[r] = IN
                else:
                    held += t
                    cls[r] = FRACTIONAL
            new = t if z > 0.0 else -t
        if new != old:
            x[r] = new
            moved[r] += new - old
            pull(H, r, new - old, pulled)
    if bias and H[k, k] > 0.0:
        step = -(g[k] + pulled[k]) / H[k, k]
        moved[k] += step
        pull(H, k, step, pulled)


@compiled(nogil=True)
def stationarity_gap(g, pulled, x, cls, tau, b, grad, sign):  # type: ignore[no-untyped-def]
    """The gradient of the smooth part and the signs; returns how far it is from −∂Φ, in units of the objective."""
    k = x.size
    error = 0.0
    for r in range(g.size):
        total = g[r] + pulled[r]
        grad[r] = total
        if r == k:
            error += abs(total) * (1.0 + abs(b))
            continue
        sign[r] = 1.0 if x[r] > 0.0 else -1.0
        if cls[r] == IN:
            error += 0.5 * (total + x[r]) ** 2
        elif cls[r] == FRACTIONAL:
            error += abs(x[r]) * abs(total + sign[r] * tau[r])
        else:
            over = max(0.0, abs(total) - tau[r])
            error += over * (tau[r] + over)
    return error


@compiled(nogil=True)
def minimise_face(model, tol, out):  # type: ignore[no-untyped-def]
    """Minimise a `FaceModel` over d, the prices c of the free features all one number ≥ 0; d goes to `out`."""
    H, g, w, b, c, bias = model.H, model.g, model.w, model.b, model.c, model.bias
    forced = model.forced
    K = model.K
    steering = model.steering
    limits = steering.model
    k = w.size
    size = g.size
    own = (
        (w.copy(), np.empty(k, np.int64), np.empty(k), np.empty(k)),
        (np.zeros(size), np.zeros(size), np.empty(size), np.empty(size)),
    )
    (x, cls, tau, sign), (moved, pulled, grad, d) = lend_arrays(own)
    # without a free feature Newton's step is the minimum
    level = 0.0
    sweeps = 0
    if forced < k:
        level = np.sqrt(2.0 * c[forced])
        sweeps = limits.sweeps + size // 32
    best = phi(x, c, forced, K, cls, tau)
    out[:] = 0.0
    for turn in range(limits.rounds):
        for _ in range(sweeps):
            classify_weights(x, c, forced, K, cls, tau)
            coordinate_sweep(model, x, level, cls, moved, pulled)
        value = phi(x, c, forced, K, cls, tau) + linear(g, pulled, moved)
        # A step on a face may lead upwards: the best point after the sweeps of a round is what counts.
        if value < best:
            best = value
            copy_to(moved, out)
        error = stationarity_gap(g, pulled, x, cls, tau, b, grad, sign)
        if error <= limits.tight * tol or turn == limits.rounds - 1:
            break
        mu = threshold_level(tau, c, forced)
        for attempt in range(2):
            face_direction(model, grad, x, cls, tau, sign, mu, d)
            crossed = 0
            for t in range(forced, k):
                if cls[t] != OUT and (x[t] + d[t]) * sign[t] < 0.0:
                    crossed += 1
                    d[t] = -x[t]
                    # It leaves the face, and the others move without it.
                    if attempt == 0:
                        pull(H, t, -x[t], grad)
                        moved[t] -= x[t]
                        x[t] = 0.0
                        cls[t] = OUT
            if crossed == 0:
                break
        for t in range(k):
            x[t] += d[t]
            moved[t] = x[t] - w[t]
        if bias:
            moved[k] += d[k]
        multiply(H, moved, pulled)
    hold_until_here(own)
