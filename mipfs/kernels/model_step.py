"""The model of a proximal Newton step: a quadratic plus Φ (`mipfs.kernels.perspective`).

Where the free features share one price: `mipfs.kernels.face_descent`. Else by an active set, as follows.
On fixed classes Φ is quadratic: the identity on *in*, and on *fractional* the rank one a a'/Σ|w_j|τ_j⁻³,
a_j = ±1/τ_j, because μ moves with w. So a step of the active set is one Cholesky factor of the face's size.
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.kernels.face_descent import descend, face_direction, linear, multiply
from mipfs.kernels.perspective import FRACTIONAL, IN, OUT, classify, phi, phi_slope, threshold_level
from mipfs.kernels.vectors import copy_to

MODEL_STEPS = 4
"""Active-set steps on one model at most: the next Newton step has a better model. 3 to 6 are
best, 40 take three times as long."""
WIDE, WIDE_STEPS = 64, 16
"""Features from which on another model costs more than active-set steps on it, and these steps at most."""
HALF, SHORT = 0.5, 0.02
"""A step that does not pay is shortened by this factor, cut off at zero again, down to so short a one."""
JAM = 0.05
"""After a shorter step features enter one at a time, and only where the face is solved."""
BLOCKED = 1e-9
"""A step to zero shorter than this share of the direction is made at once, at no cost."""


@compiled(nogil=True)
def even(c, forced, K):  # type: ignore[no-untyped-def]
    """Whether the free features have one price, which is not negative."""
    for t in range(forced, c.size):
        if c[t] != c[forced] or c[t] < 0.0:
            return False
    return K > 0 or forced == c.size


@compiled(nogil=True)
def minimise_model(model, tol, count, out):  # type: ignore[no-untyped-def]
    """Minimise a `Model`, made of `count` samples, about to the accuracy `tol`; its step goes to `out`."""
    if even(model.c, model.forced, model.K):
        descend(model, tol, out)
    else:
        by_classes(model, tol, count, out)


@compiled(nogil=True)
def by_classes(model, tol, count, out):  # type: ignore[no-untyped-def]  # noqa: C901  # one state of ten arrays
    """Minimise a `Model` by a monotone active set on the classes, whatever the prices.

    A step that changes signs is cut off at zero; where no length pays, it ends at the first change.
    """
    H, g, w, b, c, forced, K, bias, damping = model
    k, size = w.size, g.size
    x, cls, tau = w.copy(), np.empty(k, np.int64), np.empty(k)
    trial, trial_cls, trial_tau = np.empty(k), np.empty(k, np.int64), np.empty(k)
    moved, trial_moved, pulled, trial_pulled = np.zeros(size), np.zeros(size), np.zeros(size), np.empty(size)
    grad, d, sign = np.empty(size), np.empty(size), np.empty(k)
    value = phi(x, c, forced, K, cls, tau)
    many = True
    most = MODEL_STEPS if k < WIDE else max(MODEL_STEPS, min(WIDE_STEPS, 2 * count // k))
    for _ in range(most):
        mu = threshold_level(tau, c, forced)
        nonzero, error, outside, best, excess = 0, 0.0, 0.0, -1, 0.0
        for r in range(size):
            total = g[r] + pulled[r]
            grad[r] = total
            if r == k:
                error += abs(total) * (1.0 + abs(b))
            elif cls[r] == OUT:
                over = abs(total) - tau[r]
                if over > 0.0:
                    outside += over * (tau[r] + over)
                if over > excess:
                    best, excess = r, over
            else:
                nonzero += r >= forced
                sign[r] = 1.0 if x[r] > 0.0 else -1.0
                if cls[r] == IN:
                    error += 0.5 * (total + x[r]) ** 2
                else:
                    error += abs(x[r]) * abs(total + sign[r] * tau[r])
        if error + outside <= tol:
            break
        # After a jam the face is solved before a feature enters.
        if not many and error > 0.1 * outside:
            best = -1
        room = K - nonzero
        entered = 0
        for t in range(forced, k):
            # Features that are out come in where |gradient| > τ, unless that is far less than the largest excess.
            wanted = best >= 0 and cls[t] == OUT and abs(grad[t]) - tau[t] > 0.01 * excess
            if wanted and (t == best or (many and (tau[t] > 0.0 or entered + 1 < room))):
                cls[t] = IN if tau[t] <= 0.0 else FRACTIONAL
                sign[t] = -1.0 if grad[t] > 0.0 else 1.0
                entered += 1
        # features that the direction would push through zero at once leave the face (of the entering: all but the best)
        for attempt in range(k + 1):
            face_direction(H, grad, x, cls, tau, sign, mu, damping, d)
            blocked = 0
            for t in range(forced, k):
                held = (t == best and error <= 0.1 * outside) or (tau[t] == 0.0 and c[t] < 0.0)
                if cls[t] != OUT and not held and d[t] * sign[t] <= 0.0 and abs(x[t]) <= BLOCKED * abs(d[t]):
                    x[t] = 0.0
                    cls[t] = OUT
                    blocked += 1
            if blocked == 0:
                break
            if attempt == 2:
                for t in range(forced, k):
                    if x[t] == 0.0 and t != best and not (tau[t] == 0.0 and c[t] < 0.0):
                        cls[t] = OUT
        # Backtracking on the model, weights that change sign cut off at zero; `end`: where the first one would.
        end, length, found = 1.0, 1.0, value
        while length > max(end, SHORT) or length == 1.0:
            for t in range(k):
                trial[t] = x[t] + length * d[t]
                if t < forced or (tau[t] == 0.0 and c[t] < 0.0):  # in whatever the weight: it may change its sign
                    continue
                if trial[t] * sign[t] < 0.0 or cls[t] == OUT:
                    if x[t] != 0.0 and cls[t] != OUT:
                        end = min(end, -x[t] / d[t])
                    trial[t] = 0.0
            for t in range(k):
                trial_moved[t] = trial[t] - w[t]
            if bias:
                trial_moved[k] = moved[k] + length * d[k]
            multiply(H, trial_moved, trial_pulled)
            found = phi(trial, c, forced, K, trial_cls, trial_tau) + linear(g, trial_pulled, trial_moved)
            if found < value - 1e-3 * length * (error + outside):
                break
            length *= HALF
        if not found < value - 1e-3 * length * (error + outside):
            # No length pays: along d the model's slope is followed to its zero, up to the first change of sign.
            multiply(H, d, trial_pulled)
            base, bend = 0.0, 0.0
            for r in range(size):
                base += grad[r] * d[r]
                bend += trial_pulled[r] * d[r]
            low, high, t_step = 0.0, end, end
            for attempt in range(8):
                slope = base + t_step * bend + phi_slope(x, d, t_step, c, forced, K, trial_cls, trial_tau, trial)
                if slope <= 0.0:
                    low = t_step
                else:
                    high = t_step
                if high - low <= 0.1 * high or (slope <= 0.0 and t_step == end):
                    break
                if attempt == 0:
                    first = base + phi_slope(x, d, 0.0, c, forced, K, trial_cls, trial_tau, trial)
                    t_step = end * min(0.9, max(0.05, first / (first - slope)))
                else:
                    t_step = 0.5 * (low + high)
            t_step = low if low > 0.0 else t_step
            many = many and t_step > JAM
            dropped = 0
            for t in range(k):
                trial[t] = x[t] + t_step * d[t] if cls[t] != OUT else 0.0
                firm = t < forced or (tau[t] == 0.0 and c[t] < 0.0)
                if not firm and cls[t] != OUT and x[t] != 0.0 and trial[t] * sign[t] <= 1e-12 * abs(x[t]):
                    trial[t] = 0.0
                    dropped += 1
                trial_moved[t] = trial[t] - w[t]
            if bias:
                trial_moved[k] = moved[k] + t_step * d[k]
            multiply(H, trial_moved, trial_pulled)
            found = phi(trial, c, forced, K, trial_cls, trial_tau) + linear(g, trial_pulled, trial_moved)
            if not (found < value or (dropped and found <= value + 1e-13 * abs(value))):
                if not many:
                    break
                many = False
                classify(x, c, forced, K, cls, tau)
                continue
        copy_to(trial, x)
        copy_to(trial_cls, cls)
        copy_to(trial_tau, tau)
        copy_to(trial_moved, moved)
        copy_to(trial_pulled, pulled)
        value = found
    copy_to(moved, out)
