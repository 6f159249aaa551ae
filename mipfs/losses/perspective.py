"""The perspective regulariser with a cardinality row, for the kernels.

    Φ(w) = min over σ in [0, 1]^F, Σσ ≤ K  of  Σ_j (½ w_j²/σ_j + c_j σ_j),   plus ½‖w‖² of forced features

At multiplier μ of the cardinality row feature j has the threshold τ_j = √(2(c_j + μ)) and falls into one of
three classes: *in* (|w_j| ≥ τ_j, σ_j = 1, Φ'_j = w_j), *fractional* (0 < |w_j| < τ_j, σ_j = |w_j|/τ_j, Φ'_j = ±τ_j) and
*out* (w_j = 0, |ω_j| ≤ τ_j). Where c = 0 this is half the squared M-support norm.
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled

OUT, IN, FRACTIONAL = 0, 1, 2
"""Classes of a feature."""


@compiled(nogil=True)
def classify(w, c, forced, K, cls, tau):  # type: ignore[no-untyped-def]
    """Classes and thresholds of weights w (forced features first, always in); returns μ.

    `c` are the penalties of all, `K` is how many free features may be in. Where at most K weights are non-zero and
    no penalty holds them back, every non-zero one is in and the thresholds are those of μ = 0.
    """
    d = w.size
    size = np.abs(w[forced:])
    level = 0.0
    count = np.count_nonzero(size)
    uniform = True
    for t in range(forced + 1, d):
        if c[t] != c[forced]:
            uniform = False
            break
    mu = 0.0
    if count > 0 and count >= K:
        if uniform:
            order = np.sort(size)[::-1]
            rest = order.sum()
            for i in range(min(K, order.size)):
                level = rest / (K - i)
                if order[i] <= level:
                    break
                rest -= order[i]
            if K > 0:
                mu = max(0.0, 0.5 * level * level - c[forced])
        else:
            held = 0.0
            for t in range(forced, d):
                if size[t - forced] > 0.0:
                    held += min(1.0, size[t - forced] / max(1e-300, np.sqrt(2.0 * c[t])))
            if held > K:
                low, high = 0.0, 0.5 * (size.sum() / max(K, 1)) ** 2
                for _ in range(100):
                    mu = 0.5 * (low + high)
                    held = 0.0
                    for t in range(forced, d):
                        held += min(1.0, size[t - forced] / max(1e-300, np.sqrt(2.0 * (c[t] + mu))))
                    if held > K:
                        low = mu
                    else:
                        high = mu
                    if high - low <= 1e-15 * high:
                        break
    for t in range(d):
        tau[t] = np.sqrt(2.0 * (c[t] + mu))
        if t < forced:
            cls[t] = IN
        elif w[t] == 0.0:
            cls[t] = OUT
        elif abs(w[t]) > tau[t]:
            cls[t] = IN
        else:
            cls[t] = FRACTIONAL
    return mu


@compiled(nogil=True)
def phi(w, c, forced, K, cls, tau):  # type: ignore[no-untyped-def]
    """½‖w‖² of the forced features + Φ of the free ones, and their derivative's parts from `classify`."""
    mu = classify(w, c, forced, K, cls, tau)
    total = -mu * K
    for t in range(w.size):
        if t < forced:
            total += 0.5 * w[t] * w[t]
        elif cls[t] == IN:
            total += 0.5 * w[t] * w[t] + c[t] + mu
        elif cls[t] == FRACTIONAL:
            total += tau[t] * abs(w[t])
    return total


@compiled(nogil=True)
def phi_slope(w, d, t, c, forced, K, cls, tau, point):  # type: ignore[no-untyped-def]
    """Derivative along d of Φ at w + td, from the right."""
    for j in range(w.size):
        point[j] = w[j] + t * d[j]
    classify(point, c, forced, K, cls, tau)
    total = 0.0
    for j in range(w.size):
        if cls[j] == IN:
            total += point[j] * d[j]
        elif cls[j] == FRACTIONAL:
            total += tau[j] * d[j] if point[j] > 0.0 else -tau[j] * d[j]
        else:
            total += tau[j] * abs(d[j])
    return total


@compiled(nogil=True)
def best_gain(omega, c, forced, K):  # type: ignore[no-untyped-def]
    """½ Σ ω² of the forced features + the sum of the K largest positive ½ω_j² − c_j of the free ones."""
    total = 0.0
    gains = np.empty(omega.size - forced)
    for t in range(omega.size):
        if t < forced:
            total += 0.5 * omega[t] * omega[t]
        else:
            gains[t - forced] = max(0.0, 0.5 * omega[t] * omega[t] - c[t])
    if 0 < K < gains.size:
        gains = -np.partition(-gains, K - 1)[:K]
    if K > 0:
        total += gains.sum()
    return total
