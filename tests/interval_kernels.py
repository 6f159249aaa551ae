"""Machine code of `tests.interval_oracles`: points near the optimum of a small SVM, in doubles or in double-doubles.

The interior point is written once, over `plus`, `times` and the like. Arrays of float64 run it in doubles, arrays of
complex128 in double-doubles (the real part holds the number, the imaginary part what it lacks): 32 digits, which loss
weights over twenty orders of magnitude need. Nothing that comes out is believed: the interval is computed exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

HINGE, SQUARED_HINGE, HARD, LOGISTIC = 0, 1, 2, 3
SPLITTER = 2.0**27 + 1.0
"""Dekker's constant: it halves a double into two of 26 bits, whose products are exact."""


def plus(a: Any, b: Any) -> Any:
    raise NotImplementedError


def times(a: Any, b: Any) -> Any:
    raise NotImplementedError


def over(a: Any, b: Any) -> Any:
    raise NotImplementedError


def root(a: Any) -> Any:
    raise NotImplementedError


def head(a: Any) -> Any:
    raise NotImplementedError


@overload(plus, inline="never")
def _plus(a, b):  # type: ignore[no-untyped-def]
    if not isinstance(a, types.Complex):
        return lambda a, b: a + b

    def double(a, b):  # type: ignore[no-untyped-def]
        s = a.real + b.real
        v = s - a.real
        e = (a.real - (s - v)) + (b.real - v) + (a.imag + b.imag)
        h = s + e
        return complex(h, e - (h - s))

    return double


@overload(times, inline="never")
def _times(a, b):  # type: ignore[no-untyped-def]
    if not isinstance(a, types.Complex):
        return lambda a, b: a * b

    def double(a, b):  # type: ignore[no-untyped-def]
        p = a.real * b.real
        t = SPLITTER * a.real
        ah = t - (t - a.real)
        al = a.real - ah
        t = SPLITTER * b.real
        bh = t - (t - b.real)
        bl = b.real - bh
        e = ((ah * bh - p) + ah * bl + al * bh) + al * bl + (a.real * b.imag + a.imag * b.real)
        h = p + e
        return complex(h, e - (h - p))

    return double


@overload(over, inline="never")
def _over(a, b):  # type: ignore[no-untyped-def]
    if not isinstance(a, types.Complex):
        return lambda a, b: a / b

    def double(a, b):  # type: ignore[no-untyped-def]
        q = complex(a.real / b.real, 0.0)
        r = plus(a, times(complex(-q.real, 0.0), b))
        q = plus(q, complex(r.real / b.real, 0.0))
        r = plus(a, times(complex(-q.real, -q.imag), b))
        return plus(q, complex(r.real / b.real, 0.0))

    return double


@overload(root, inline="never")
def _root(a):  # type: ignore[no-untyped-def]
    if not isinstance(a, types.Complex):
        return lambda a: np.sqrt(a)

    def double(a):  # type: ignore[no-untyped-def]
        x = np.sqrt(a.real)
        r = plus(a, times(complex(-x, 0.0), complex(x, 0.0)))
        return plus(complex(x, 0.0), complex(r.real / (2.0 * x), 0.0))

    return double


@overload(head, inline="always")
def _head(a):  # type: ignore[no-untyped-def]
    if not isinstance(a, types.Complex):
        return lambda a: a
    return lambda a: a.real


@njit(cache=True)
def solve(H, g, x):  # type: ignore[no-untyped-def]
    """x with Hx = g, by the Cholesky factor, which replaces H; a pivot that is lost becomes a tiny one."""
    m = g.size
    for j in range(m):
        pivot = H[j, j]
        least = 1e-300 + 1e-32 * abs(head(pivot))
        for k in range(j):
            pivot = plus(pivot, times(-H[j, k], H[j, k]))
        if not head(pivot) > least:
            pivot = 0.0 * pivot + least
        d = root(pivot)
        H[j, j] = d
        for i in range(j + 1, m):
            v = H[i, j]
            for k in range(j):
                v = plus(v, times(-H[i, k], H[j, k]))
            H[i, j] = over(v, d)
    for j in range(m):
        v = g[j]
        for k in range(j):
            v = plus(v, times(-H[j, k], x[k]))
        x[j] = over(v, H[j, j])
    for i in range(m):
        j = m - 1 - i
        v = x[j]
        for k in range(j + 1, m):
            v = plus(v, times(-H[k, j], x[k]))
        x[j] = over(v, H[j, j])


@njit(cache=True)
def interior(G, h, P, q, c, kind, x, alpha, start, limit, close):  # type: ignore[no-untyped-def]  # noqa: C901  # a reference in one piece, as it is published
    """min ½ Σ P x² + q'x + Σ φ(ξ), Gx + ξ ≥ h, into x and alpha; its last error, relative.

    φ is c ξ with ξ ≥ 0 (hinge), c ξ²/2 (squared hinge) or none, ξ = 0 (hard rows). Mehrotra's predictor and corrector
    from a point near the central path whose duals are at most `start`; it ends once the products sum to `close` times
    the objective, or when it stalls.
    """
    n, m = G.shape
    zero = 0.0 * h[0]
    s, xi, beta = np.empty_like(h), np.zeros_like(h), np.zeros_like(h)
    ds, dxi, dalpha, rp = np.empty_like(h), np.zeros_like(h), np.empty_like(h), np.empty_like(h)
    r1, r2, D, t = np.empty_like(h), np.zeros_like(h), np.empty_like(h), np.empty_like(h)
    dx, rd, g = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    H = np.zeros((m, m), G.dtype)
    mu = 0.0
    for i in range(n):
        ci = head(c[i])
        a = min(0.5 * ci, start) if kind != HARD else start
        alpha[i] = zero + a
        mu = max(mu, a)
    for j in range(m):
        x[j] = zero
    for i in range(n):
        s[i] = zero + mu / head(alpha[i])
        if kind == HINGE:
            beta[i] = plus(c[i], -alpha[i])
            xi[i] = zero + mu / head(beta[i])
    pairs = n + (n if kind == HINGE else 0)
    kept_x, kept_alpha, best, stalled = x.copy(), alpha.copy(), np.inf, 0
    for _ in range(limit):
        for j in range(m):
            rd[j] = plus(-times(P[j], x[j]), -q[j])
        products, objective, worst = 0.0, 0.0, 0.0
        for i in range(n):
            v = h[i]
            for j in range(m):
                v = plus(v, -times(G[i, j], x[j]))
                rd[j] = plus(rd[j], times(G[i, j], alpha[i]))
            if kind == SQUARED_HINGE:
                xi[i] = over(alpha[i], c[i])
                objective += 0.5 * head(alpha[i]) * head(xi[i])
            elif kind == HINGE:
                products += head(xi[i]) * head(beta[i])
                objective += head(c[i]) * head(xi[i])
            rp[i] = plus(v, plus(s[i], -xi[i]))
            worst = max(worst, abs(head(rp[i])) * head(alpha[i]))
            products += head(s[i]) * head(alpha[i])
        for j in range(m):
            objective += 0.5 * head(P[j]) * head(x[j]) ** 2 + head(q[j]) * head(x[j])
        error = products + n * worst
        for j in range(m):
            error += abs(head(rd[j]) * head(x[j]))
        if not np.isfinite(error):
            break
        error /= max(1e-300, abs(objective))
        if error < best:
            best, stalled = error, 0
            kept_x[:], kept_alpha[:] = x, alpha
        elif best < 1e-3:
            stalled += 1
        if error <= close or stalled > 6:
            break
        mu = products / pairs
        for i in range(n):
            D[i] = over(s[i], alpha[i])
            if kind == HINGE:
                D[i] = plus(D[i], over(xi[i], beta[i]))
            elif kind == SQUARED_HINGE:
                D[i] = plus(D[i], over(zero + 1.0, c[i]))
            D[i] = over(zero + 1.0, D[i])
        step = 1.0
        for turn in range(2):
            if turn == 0:
                for i in range(n):
                    r1[i] = -times(s[i], alpha[i])
                    r2[i] = -times(xi[i], beta[i])
            else:
                after = 0.0
                for i in range(n):
                    after += (head(s[i]) + step * head(ds[i])) * (head(alpha[i]) + step * head(dalpha[i]))
                    if kind == HINGE:
                        after += (head(xi[i]) + step * head(dxi[i])) * (head(beta[i]) - step * head(dalpha[i]))
                sigma = min(1.0, max(0.0, after / products)) ** 3
                for i in range(n):
                    r1[i] = plus(zero + sigma * mu, plus(r1[i], -times(ds[i], dalpha[i])))
                    r2[i] = plus(zero + sigma * mu, plus(r2[i], times(dxi[i], dalpha[i])))
            for j in range(m):
                g[j] = rd[j]
                for k in range(m):
                    H[j, k] = zero
                H[j, j] = P[j]
            for i in range(n):
                t[i] = plus(rp[i], over(r1[i], alpha[i]))
                if kind == HINGE:
                    t[i] = plus(t[i], -over(r2[i], beta[i]))
                for j in range(m):
                    v = times(D[i], G[i, j])
                    g[j] = plus(g[j], times(v, t[i]))
                    for k in range(j + 1):
                        H[j, k] = plus(H[j, k], times(v, G[i, k]))
            solve(H, g, dx)
            longest = 1.0e30
            for i in range(n):
                v = t[i]
                for j in range(m):
                    v = plus(v, -times(G[i, j], dx[j]))
                dalpha[i] = times(D[i], v)
                ds[i] = over(plus(r1[i], -times(s[i], dalpha[i])), alpha[i])
                if head(dalpha[i]) < 0.0:
                    longest = min(longest, -head(alpha[i]) / head(dalpha[i]))
                if head(ds[i]) < 0.0:
                    longest = min(longest, -head(s[i]) / head(ds[i]))
                if kind == HINGE:
                    dxi[i] = over(plus(r2[i], times(xi[i], dalpha[i])), beta[i])
                    if head(dxi[i]) < 0.0:
                        longest = min(longest, -head(xi[i]) / head(dxi[i]))
                    if head(dalpha[i]) > 0.0:
                        longest = min(longest, head(beta[i]) / head(dalpha[i]))
            step = min(1.0, longest if turn == 0 else (1.0 - min(0.05, max(1e-8, mu))) * longest)
        if not (step > 1e-14 and step <= 1.0):
            break
        long = zero + step
        for j in range(m):
            x[j] = plus(x[j], times(long, dx[j]))
        for i in range(n):
            alpha[i] = plus(alpha[i], times(long, dalpha[i]))
            s[i] = plus(s[i], times(long, ds[i]))
            if kind == HINGE:
                xi[i] = plus(xi[i], times(long, dxi[i]))
                beta[i] = plus(beta[i], -times(long, dalpha[i]))
    x[:], alpha[:] = kept_x, kept_alpha
    return best


@njit(cache=True)
def logistic(G, P, c, x, alpha, limit):  # type: ignore[no-untyped-def]  # noqa: C901  # a reference in one piece
    """min ½ Σ P x² + Σ c log(1 + exp(-Gx)) by Newton's method with halved steps, into x and alpha.

    Exponentials are those of doubles in either kind of arrays; double-doubles keep the margins and the steps.
    """
    n, m = G.shape
    zero = 0.0 * G[0, 0]
    H, g, dx, trial, margins = np.empty((m, m), G.dtype), np.empty_like(x), np.empty_like(x), x.copy(), np.zeros_like(c)
    value, done, small = np.inf, 0, 0
    for i in range(n):
        margins[i] = zero
    for it in range(limit):
        done = it
        for j in range(m):
            g[j] = -times(P[j], x[j])
            for k in range(m):
                H[j, k] = zero
            H[j, j] = P[j]
        if it == 0:
            value = np.log(2.0) * np.sum(c).real
        for i in range(n):
            v = head(margins[i])
            e = np.exp(-abs(v))
            a = zero + head(c[i]) * (e / (1.0 + e) if v > 0.0 else 1.0 / (1.0 + e))
            alpha[i] = a
            d = zero + head(c[i]) * e / (1.0 + e) ** 2
            for j in range(m):
                g[j] = plus(g[j], times(a, G[i, j]))
                scaled = times(d, G[i, j])
                for k in range(j + 1):
                    H[j, k] = plus(H[j, k], times(scaled, G[i, k]))
        solve(H, g, dx)
        decrement = 0.0
        for j in range(m):
            decrement += head(g[j]) * head(dx[j])
        step, better = 1.0, value
        for _ in range(60):
            better = 0.0
            for j in range(m):
                trial[j] = plus(x[j], times(zero + step, dx[j]))
                better += 0.5 * head(P[j]) * head(trial[j]) ** 2
            for i in range(n):
                total = zero
                for j in range(m):
                    total = plus(total, times(G[i, j], trial[j]))
                v = head(total)
                better += head(c[i]) * (np.log1p(np.exp(-v)) if v > 0.0 else -v + np.log1p(np.exp(v)))
            least = better <= value * (1.0 + 1e-15) and decrement <= 1e-12 * value
            if better <= value - 1e-4 * step * decrement or least:
                break
            step *= 0.5
        if not better <= value * (1.0 + 1e-15):
            break
        for i in range(n):
            total = zero
            for j in range(m):
                total = plus(total, times(G[i, j], trial[j]))
            margins[i] = total
        x[:] = trial
        small = small + 1 if value - better <= 1e-15 * value else 0
        value = better
        if small > 2:
            break
    return done


@njit(cache=True)
def balanced(alpha, y, c, bias, out):  # type: ignore[no-untyped-def]
    """Into out: alpha inside the box, on a grid of 2^-50 of its largest, the classes' sums equal if the bias is free.

    Every entry is a whole number of grid steps below 2^51, so the sums of the classes are exact in whole numbers.
    """
    n, largest = y.size, 0.0
    for i in range(n):
        out[i] = min(max(alpha[i], 0.0), c[i])
        largest = max(largest, out[i])
    if not bias or largest == 0.0:
        return
    step = 2.0 ** (np.floor(np.log2(largest)) - 50.0)
    k, surplus = np.empty(n, np.int64), 0
    for i in range(n):
        k[i] = np.int64(np.floor(out[i] / step))
        surplus += k[i] if y[i] > 0 else -k[i]
    while surplus != 0:
        top, at = np.int64(0), -1
        for i in range(n):
            if (y[i] > 0) == (surplus > 0) and k[i] > top:
                top, at = k[i], i
        if at < 0:
            break
        take = min(top, abs(surplus))
        k[at] -= take
        surplus += -take if surplus > 0 else take
    for i in range(n):
        out[i] = k[i] * step


@njit(cache=True)
def quick_lower(Z, y, c, alpha, kind):  # type: ignore[no-untyped-def]
    """A lower bound of the value from a balanced alpha, in doubles: less all that rounding can have added."""
    n, k = Z.shape
    u = (n + 8) * 2.0**-52
    gain, size = 0.0, 0.0
    for i in range(n):
        a = alpha[i]
        if kind == LOGISTIC:
            if 0.0 < a < c[i]:
                part = -a * np.log(a / c[i]) - (c[i] - a) * np.log1p(-a / c[i])
                gain += part
                size += 16.0 * (part + a)
        else:
            gain += a
            size += a
            if kind == SQUARED_HINGE:
                gain -= a * (a / c[i]) * 0.5
                size += a * (a / c[i])
    paid = 0.0
    for j in range(k):
        omega, radius = 0.0, 0.0
        for i in range(n):
            v = Z[i, j] * alpha[i]
            omega += v if y[i] > 0 else -v
            radius += abs(v)
        paid += 0.5 * (abs(omega) + u * radius) ** 2
    return gain - u * size - paid * (1.0 + u)
