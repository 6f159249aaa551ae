"""The perspective regulariser with a cardinality row, for the kernels.

    Φ(w) = min over σ in [0, 1]^F, Σσ ≤ K  of  Σ_j (½ w_j²/σ_j + c_j σ_j),   plus ½‖w‖² of forced features

At multiplier μ of the cardinality row feature j has the price κ_j = c_j + μ, the threshold τ_j = √(2κ_j), and falls
into one of three classes: *in* (|w_j| ≥ τ_j, σ_j = 1, Φ'_j = w_j), *fractional* (0 < |w_j| < τ_j, σ_j = |w_j|/τ_j,
Φ'_j = ±τ_j) and *out* (w_j = 0, |ω_j| ≤ τ_j). Where c = 0 this is half the squared M-support norm. Multipliers of
rows make negative penalties: where κ_j ≤ 0 the feature is *in* whatever its weight, and takes one of the K places.

The functions take weights w (d,) and penalties c (d,), those of the `forced` features first, and K, how many of the
others may be in; cls (d,) int64 and tau (d,) receive classes and thresholds. `size` are the |w| of the free features.
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.kernels.order import sum_of_largest

OUT, IN, FRACTIONAL = 0, 1, 2
"""Classes of a feature."""


@compiled(nogil=True)
def sum_sigma(size, c, mu):  # type: ignore[no-untyped-def]
    """Σσ of features of the given |w| at multiplier μ, of that the fractional part, and by how much μ lowers this part.

    The last is −∂part/∂μ = Σ |w_j|/τ_j³ over the fractional features.
    """
    total = 0.0
    part = 0.0
    bend = 0.0
    for t in range(size.size):
        price = c[t] + mu
        if price <= 0.0:
            total += 1.0
        elif size[t] > 0.0:
            tau = np.sqrt(2.0 * price)
            if size[t] >= tau:
                total += 1.0
            else:
                part += size[t] / tau
                bend += size[t] / (tau * tau * tau)
    return total + part, part, bend


@compiled(nogil=True)
def multiplier(size, c, K):  # type: ignore[no-untyped-def]
    """The least μ ≥ 0 at which Σσ ≤ K: Newton on (Σσ of the fractional ones)⁻², linear where c is one number."""
    total, part, bend = sum_sigma(size, c, 0.0)
    if total <= K:
        return 0.0
    # From here on τ_j ≥ Σ|w|/K for all j, so that Σσ ≤ Σ|w_j|/τ_j ≤ K; doubled where rounding says otherwise.
    low = 0.0
    high = max(0.5 * (size.sum() / max(K, 1)) ** 2 - c.min(), 0.0)
    while sum_sigma(size, c, high)[0] > K:
        low = high
        high = 2.0 * high + 1e-300
    mu = low
    total, part, bend = sum_sigma(size, c, mu)
    for _ in range(200):
        # Newton on part(μ)⁻² = rest⁻², whose derivative is 2·bend·part⁻³; by bisection where that leaves the bracket.
        rest = K - (total - part)
        step = mu + 0.5 * (rest**-2 - part**-2) * part**3 / bend if rest > 0.0 and bend > 0.0 else high
        mu = step if low < step < high else 0.5 * (low + high)
        total, part, bend = sum_sigma(size, c, mu)
        if total > K:
            low = mu
        else:
            high = mu
        if abs(total - K) <= 1e-14 * K or high - low <= 1e-15 * high:
            break
    return mu


@compiled(nogil=True, forceinline=True)
def even_level(w, forced, K, rest):  # type: ignore[no-untyped-def]
    """The τ at which Σ min(1, |w_j|/τ) = K over the free features; `rest` is the sum of all their |w_j|.

    With the largest m of them in, τ = (sum of the others)/(K − m): those above it come in, which lowers it.
    """
    level = rest / K
    inside = 0
    while True:
        outside = 0.0
        more = 0
        for t in range(forced, w.size):
            if abs(w[t]) > level:
                more += 1
            else:
                outside += abs(w[t])
        if more == inside or more >= K:
            return level
        inside = more
        level = min(level, outside / (K - inside))


@compiled(nogil=True)
def classify_weights(w, c, forced, K, cls, tau):  # type: ignore[no-untyped-def]
    """Classes and thresholds of weights w (forced features first, always in); returns μ.

    `c` are the penalties of all, `K` is how many free features may be in. Where at most K weights are non-zero and
    no penalty holds them back, every non-zero one is in and the thresholds are those of μ = 0.
    """
    d = w.size
    count = 0
    rest = 0.0
    uniform = True
    least = 0.0
    for t in range(forced, d):
        least = min(least, c[t])
        uniform = uniform and c[t] == c[forced]
        count += w[t] != 0.0
        rest += abs(w[t])
    mu = 0.0
    # One price c ≥ 0: all thresholds are one τ, the level at which Σσ = K, and c + μ = ½τ².
    if uniform and least == 0.0 and K > 0 and count >= K:
        mu = max(0.0, 0.5 * even_level(w, forced, K, rest) ** 2 - c[forced])
    # With different or negative prices Σσ(μ) = K has no closed form: Newton's method within a bracket finds μ.
    elif (not uniform or least < 0.0) and K > 0 and d - forced > K:
        mu = multiplier(np.abs(w[forced:]), c[forced:], K)
    # No place is left: μ lifts the least price to zero.
    elif K <= 0:
        mu = -least
    for t in range(d):
        tau[t] = np.sqrt(2.0 * max(0.0, c[t] + mu))
        if t < forced or (c[t] < 0.0 and c[t] + mu <= 0.0):
            cls[t] = IN
        elif w[t] == 0.0:
            cls[t] = OUT
        elif abs(w[t]) > tau[t]:
            cls[t] = IN
        else:
            cls[t] = FRACTIONAL
    return mu


@compiled(nogil=True)
def threshold_level(tau, c, forced):  # type: ignore[no-untyped-def]
    """μ, read off thresholds; 0 where no free feature has one."""
    mu = 0.0
    for t in range(forced, tau.size):
        if tau[t] > 0.0:
            mu = max(mu, 0.5 * tau[t] * tau[t] - c[t])
    return mu


@compiled(nogil=True)
def phi(w, c, forced, K, cls, tau):  # type: ignore[no-untyped-def]
    """½‖w‖² of the forced features + Φ of the free ones, and their derivative's parts from `classify_weights`."""
    mu = classify_weights(w, c, forced, K, cls, tau)
    # By duality at μ: the sum over j of the least ½w²/σ + (c + μ)σ, less μK.
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
def phi_slope(w, d, c, forced, K, cls, tau):  # type: ignore[no-untyped-def]
    """Derivative along d of Φ at w, from the right."""
    classify_weights(w, c, forced, K, cls, tau)
    total = 0.0
    for j in range(w.size):
        if cls[j] == IN:
            total += w[j] * d[j]
        elif cls[j] == FRACTIONAL:
            total += tau[j] * d[j] if w[j] > 0.0 else -tau[j] * d[j]
        else:
            # From zero, Φ grows at τ to either side.
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
    return total + sum_of_largest(gains, K)
