"""The inner master of a bundle method: a small concave quadratic program over the simplex, by an active set.

    max over β ≥ 0, Σβ = 1 of  d'β − ½ β'Gβ,   G = B'B, often singular

A proximal term ½ δ ‖β − β̄‖² makes it strictly concave; β̄ ← β until nothing moves. Within a proximal step the free set
starts from the last one (warm), is solved by Cholesky, loses the entries that would turn negative and gains the one
that violates its optimality condition most.
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.kernels.vectors import copy_to

PROXIMAL_WEIGHT = 1e-9
"""δ, relative to the largest diagonal entry of G."""
LEAST_MOVEMENT = 1e-9
"""Movement of β at which the proximal steps end."""
MOST_PROXIMAL_STEPS = 40
"""Proximal steps at most."""


@compiled()
def _newton_step_of_free_set(G, slope, free, size, delta, L, x, one):  # type: ignore[no-untyped-def]
    """The Newton step of the free set under Σ(step) = 0, in x; returns the multiplier of the sum, NaN on failure.

    The slopes are taken about their mean: near the optimum they are equal, and G + δ may be nearly singular.
    """
    mean = 0.0
    for i in range(size):
        mean += slope[free[i]] / size
    for i in range(size):
        for j in range(i + 1):
            # Cholesky's factor of G + δ on the free set.
            total = G[free[i], free[j]]
            if i == j:
                total += delta
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                if total <= 0.0:
                    return np.nan
                L[i, i] = np.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    for i in range(size):
        # Two right sides at once: the slopes about their mean, and ones.
        a = slope[free[i]] - mean
        b = 1.0
        for k in range(i):
            a -= L[i, k] * x[k]
            b -= L[i, k] * one[k]
        x[i] = a / L[i, i]
        one[i] = b / L[i, i]
    for i in range(size - 1, -1, -1):
        a = x[i]
        b = one[i]
        for k in range(i + 1, size):
            a -= L[k, i] * x[k]
            b -= L[k, i] * one[k]
        x[i] = a / L[i, i]
        one[i] = b / L[i, i]
    total = 0.0
    ones = 0.0
    for i in range(size):
        total += x[i]
        ones += one[i]
    # The multiplier at which the step adds up to zero.
    level = total / ones
    for i in range(size):
        x[i] -= level * one[i]
    return mean + level


@compiled()
def _gradient_entry(G, d, beta, centre, free, size, delta, k):  # type: ignore[no-untyped-def]
    """Entry k of the gradient d − Gβ − δ(β − β̄)."""
    total = d[k] - delta * (beta[k] - centre[k])
    for i in range(size):
        total -= G[k, free[i]] * beta[free[i]]
    return total


@compiled()
def maximise_on_simplex(G, d, beta, relative):  # type: ignore[no-untyped-def]
    """Maximise over β in place, from a feasible β; returns the active-set steps.

    Parameters
    ----------
    G : (K, K) positive semidefinite
    d : (K,)
    beta : (K,) point of the simplex
    relative : proximal δ relative to max G_kk (`PROXIMAL_WEIGHT`)
    """
    K = d.size
    top = 0.0
    size_d = 0.0
    for k in range(K):
        top = max(top, G[k, k])
        size_d = max(size_d, abs(d[k]))
    delta = max(relative * top, 1e-12 * size_d, 1e-300)
    tol = 1e-15 * (top + size_d)
    free = np.empty(K, dtype=np.int64)
    is_free = np.zeros(K, dtype=np.bool_)
    L = np.empty((K, K))
    x = np.empty(K)
    one = np.empty(K)
    slope = np.empty(K)
    centre = np.empty(K)
    size = 0
    steps = 0
    for k in range(K):
        if beta[k] > 0.0:
            free[size] = k
            is_free[k] = True
            size += 1
    for _ in range(MOST_PROXIMAL_STEPS):
        beta /= beta.sum()
        copy_to(beta, centre)
        entered = -1
        for _inner in range(10 * K + 50):
            steps += 1
            for i in range(size):
                slope[free[i]] = _gradient_entry(G, d, beta, centre, free, size, delta, free[i])
            level = _newton_step_of_free_set(G, slope, free, size, delta, L, x, one)
            if np.isnan(level):
                return steps
            # The longest step that leaves β non-negative, and the entry that ends it.
            step = 1.0
            leaving = -1
            for i in range(size):
                old = beta[free[i]]
                if old + x[i] < 0.0:
                    ratio = -old / x[i]
                    if ratio < step:
                        step = ratio
                        leaving = i
            for i in range(size):
                k = free[i]
                beta[k] = max(0.0, beta[k] + step * x[i])
            if leaving >= 0:
                stalled = free[leaving] == entered and step == 0.0
                beta[free[leaving]] = 0.0
                is_free[free[leaving]] = False
                size -= 1
                free[leaving] = free[size]
                # Round-off: what was to enter leaves at once.
                if stalled:
                    break
                continue
            # Optimality of the step: no entry outside has a slope above the common one of the free set.
            worst = level + tol
            entering = -1
            for k in range(K):
                if not is_free[k]:
                    slope[k] = _gradient_entry(G, d, beta, centre, free, size, delta, k)
                    if slope[k] > worst:
                        worst = slope[k]
                        entering = k
            if entering < 0:
                break
            free[size] = entering
            is_free[entering] = True
            entered = entering
            size += 1
        moved = 0.0
        for k in range(K):
            moved = max(moved, abs(beta[k] - centre[k]))
        if moved <= LEAST_MOVEMENT:
            break
    return steps
