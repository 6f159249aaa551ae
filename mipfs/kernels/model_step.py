"""The model of a proximal Newton step: a quadratic plus Φ (`mipfs.kernels.perspective`).

Where the free features share one price: `mipfs.kernels.face_descent`. Else by an active set, as follows.
On fixed classes Φ is quadratic: the identity on *in*, and on *fractional* the rank one a a'/Σ|w_j|τ_j⁻³,
a_j = ±1/τ_j, because μ moves with w. So a step of the active set is one Cholesky factor of the face's size.

    repeat  lack        how far the point is from stationary, on its face and outside
            enter       features that are out come in where |gradient| > τ
            direct      Newton's direction on the face; who would cross zero at once leaves it
            backtrack   the step is halved until the model falls, weights that change sign cut off at zero
            stop_short  where no length pays, it ends at the least of the model before the first change of sign

Throughout, model is a `FaceModel` over k features, `here` and `there` are a `ModelPoint` each, `way` is a
`ModelDirection`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled
from mipfs.compiled.lent import hold_until_here, lend_arrays
from mipfs.kernels.face_descent import face_direction, linear, minimise_face, multiply
from mipfs.kernels.perspective import FRACTIONAL, IN, OUT, classify_weights, phi, phi_slope, threshold_level
from mipfs.kernels.vectors import along, copy_to


class ModelPoint(NamedTuple):
    """A point of a model.

    x, cls, tau : (k,) weights, their classes and thresholds
    moved, pulled : d and Hd, d = x − w and what the intercept has moved by
    """

    x: npt.NDArray[Any]
    cls: npt.NDArray[Any]
    tau: npt.NDArray[Any]
    moved: npt.NDArray[Any]
    pulled: npt.NDArray[Any]


class ModelDirection(NamedTuple):
    """A step from a point: gradient of the quadratic, direction, and (k,) the signs that the weights are to have."""

    grad: npt.NDArray[Any]
    d: npt.NDArray[Any]
    sign: npt.NDArray[Any]


@compiled(nogil=True)
def has_even_prices(c, forced, K):  # type: ignore[no-untyped-def]
    """Whether the free features have one price, which is not negative."""
    for t in range(forced, c.size):
        if c[t] != c[forced] or c[t] < 0.0:
            return False
    return K > 0 or forced == c.size


@compiled(nogil=True)
def minimise_model(model, tol, count, out):  # type: ignore[no-untyped-def]
    """Minimise a `FaceModel`, made of `count` samples, about to the accuracy `tol`; its step goes to `out`."""
    if has_even_prices(model.c, model.forced, model.K):
        minimise_face(model, tol, out)
    else:
        minimise_by_active_set(model, tol, count, out)


@compiled(nogil=True)
def is_firm(price, tau):  # type: ignore[no-untyped-def]
    """Whether a free feature is in whatever its weight, which may then change its sign."""
    return tau == 0.0 and price < 0.0


@compiled(nogil=True, inline="always")
def stationarity_gap(model, here, way):  # type: ignore[no-untyped-def]
    """The gradient and the signs, in `way`; how far the point is from stationary, in units of the objective.

    Returns that of the face and that outside; the feature that is out whose gradient exceeds τ most (−1 for none), and
    by how much; how many free features are not out.
    """
    x, cls, tau, pulled = here.x, here.cls, here.tau, here.pulled
    grad = way.grad
    sign = way.sign
    g = model.g
    k = x.size
    face = 0.0
    outside = 0.0
    best = -1
    excess = 0.0
    count = 0
    for r in range(g.size):
        total = g[r] + pulled[r]
        grad[r] = total
        if r == k:
            face += abs(total) * (1.0 + abs(model.b))
        elif cls[r] == OUT:
            over = abs(total) - tau[r]
            if over > 0.0:
                outside += over * (tau[r] + over)
            if over > excess:
                best = r
                excess = over
        else:
            count += r >= model.forced
            sign[r] = 1.0 if x[r] > 0.0 else -1.0
            if cls[r] == IN:
                face += 0.5 * (total + x[r]) ** 2
            else:
                face += abs(x[r]) * abs(total + sign[r] * tau[r])
    return face, outside, best, excess, count


@compiled(nogil=True, inline="always")
def enter_features(forced, here, way, best, least, room):  # type: ignore[no-untyped-def]
    """Take in the feature `best`, and the others that are out where |gradient| − τ > `least`, in `room` places.

    Those with a threshold are fractional, and take no whole place.
    """
    x = here.x
    cls = here.cls
    tau = here.tau
    grad = way.grad
    sign = way.sign
    entered = 0
    for t in range(forced, x.size):
        if cls[t] != OUT:
            continue
        is_wanted = abs(grad[t]) - tau[t] > least and (tau[t] > 0.0 or entered + 1 < room)
        if t == best or is_wanted:
            cls[t] = IN if tau[t] <= 0.0 else FRACTIONAL
            sign[t] = -1.0 if grad[t] > 0.0 else 1.0
            entered += 1


@compiled(nogil=True, inline="always")
def newton_direction(model, here, way, mu, best, keeps):  # type: ignore[no-untyped-def]
    """Newton's direction on the face, without the features that it would push through zero at once.

    The feature `best` stays where `keeps` says so; after three turns all that have weight zero leave, but for it.
    """
    x = here.x
    cls = here.cls
    tau = here.tau
    grad = way.grad
    d = way.d
    sign = way.sign
    c = model.c
    forced = model.forced
    share = model.steering.model.blocked
    for attempt in range(x.size + 1):
        face_direction(model, grad, x, cls, tau, sign, mu, d)
        blocked = 0
        for t in range(forced, x.size):
            stays = (t == best and keeps) or is_firm(c[t], tau[t])
            if cls[t] != OUT and not stays and d[t] * sign[t] <= 0.0 and abs(x[t]) <= share * abs(d[t]):
                x[t] = 0.0
                cls[t] = OUT
                blocked += 1
        if blocked == 0:
            return
        if attempt == 2:
            for t in range(forced, x.size):
                if x[t] == 0.0 and t != best and not is_firm(c[t], tau[t]):
                    cls[t] = OUT


@compiled(nogil=True)
def evaluate_further(model, here, there, way, length):  # type: ignore[no-untyped-def]
    """The model's value at the weights of a place a step further, whose other parts are filled in."""
    x, cls, tau, moved, pulled = there.x, there.cls, there.tau, there.moved, there.pulled
    w = model.w
    k = x.size
    for t in range(k):
        moved[t] = x[t] - w[t]
    if model.bias:
        moved[k] = here.moved[k] + length * way.d[k]
    multiply(model.H, moved, pulled)
    return phi(x, model.c, model.forced, model.K, cls, tau) + linear(model.g, pulled, moved)


@compiled(nogil=True, inline="always")
def cut_off(model, here, there, way, length):  # type: ignore[no-untyped-def]
    """Weights a step further, those that change sign cut off at zero; the length at which the first one does, or 1."""
    x = here.x
    cls = here.cls
    tau = here.tau
    d = way.d
    sign = way.sign
    c = model.c
    forced = model.forced
    y = there.x
    end = 1.0
    for t in range(x.size):
        y[t] = x[t] + length * d[t]
        if t < forced or is_firm(c[t], tau[t]):
            continue
        if y[t] * sign[t] < 0.0 or cls[t] == OUT:
            if x[t] != 0.0 and cls[t] != OUT:
                end = min(end, -x[t] / d[t])
            y[t] = 0.0
    return end


@compiled(nogil=True, inline="always")
def backtrack_step(model, here, there, way, value, asked):  # type: ignore[no-untyped-def]
    """Shorten the step until the model falls by 1e-3 of what was `asked` for a whole one.

    Returns the value there, whether it fell by that, and up to where no weight changes its sign.
    """
    end = 1.0
    length = 1.0
    found = value
    while length > max(end, model.steering.model.shortest) or length == 1.0:
        end = min(end, cut_off(model, here, there, way, length))
        found = evaluate_further(model, here, there, way, length)
        if found < value - 1e-3 * length * asked:
            break
        length *= model.steering.model.shorten
    return found, found < value - 1e-3 * length * asked, end


@compiled(nogil=True, inline="always")
def minimum_before_sign_change(model, here, there, way, end):  # type: ignore[no-untyped-def]
    """How far along the direction the model falls, at most up to `end`, before which no weight changes its sign."""
    point, cls, tau, pulled = there.x, there.cls, there.tau, there.pulled
    grad = way.grad
    d = way.d
    x, c, forced, K = here.x, model.c, model.forced, model.K
    multiply(model.H, d, pulled)
    base = 0.0
    bend = 0.0
    for r in range(d.size):
        base += grad[r] * d[r]
        bend += pulled[r] * d[r]
    low = 0.0
    high = end
    t = end
    for attempt in range(8):
        along(x, d, t, point)
        slope = base + t * bend + phi_slope(point, d, c, forced, K, cls, tau)
        if slope <= 0.0:
            low = t
        else:
            high = t
        if high - low <= 0.1 * high or (slope <= 0.0 and t == end):
            break
        if attempt == 0:
            # The zero of the straight line through the slopes at 0 and at the end.
            first = base + phi_slope(x, d, c, forced, K, cls, tau)
            t = end * min(0.9, max(0.05, first / (first - slope)))
        else:
            t = 0.5 * (low + high)
    return low if low > 0.0 else t


@compiled(nogil=True, inline="always")
def stop_short(model, here, there, way, length):  # type: ignore[no-untyped-def]
    """Go so far along the direction; weights that reach zero there leave. Returns the value, and whether any left."""
    x = here.x
    cls = here.cls
    tau = here.tau
    d = way.d
    sign = way.sign
    c = model.c
    forced = model.forced
    y = there.x
    dropped = False
    for t in range(x.size):
        y[t] = x[t] + length * d[t] if cls[t] != OUT else 0.0
        reaches = cls[t] != OUT and x[t] != 0.0 and y[t] * sign[t] <= 1e-12 * abs(x[t])
        if reaches and t >= forced and not is_firm(c[t], tau[t]):
            y[t] = 0.0
            dropped = True
    return evaluate_further(model, here, there, way, length), dropped


@compiled(nogil=True)
def place_of(k, size):  # type: ignore[no-untyped-def]
    """Room for a point of k weights, and one more entry in `size` for an intercept."""
    return ModelPoint(np.empty(k), np.empty(k, np.int64), np.empty(k), np.zeros(size), np.zeros(size))


@compiled(nogil=True)
def most_steps(steering, k, count):  # type: ignore[no-untyped-def]
    """Steps on a model of k features and `count` samples at most; where these are many, another model costs more."""
    if k < steering.wide:
        return steering.steps
    return max(steering.steps, min(steering.wide_steps, 2 * count // k))


@compiled(nogil=True)
def minimise_by_active_set(model, tol, count, out):  # type: ignore[no-untyped-def]
    """Minimise a `FaceModel` by a monotone active set on the classes, whatever the prices."""
    k = model.w.size
    size = model.g.size
    own = place_of(k, size), place_of(k, size), ModelDirection(np.empty(size), np.empty(size), np.empty(k))
    model, (here, there, way) = lend_arrays((model, own))
    copy_to(model.w, here.x)
    value = phi(here.x, model.c, model.forced, model.K, here.cls, here.tau)
    # After a jam, a step that is cut short, features enter one at a time, and only where the face is solved.
    many = True
    for _ in range(most_steps(model.steering.model, k, count)):
        mu = threshold_level(here.tau, model.c, model.forced)
        face, outside, best, excess, taken = stationarity_gap(model, here, way)
        if face + outside <= tol:
            break
        is_solved = face <= 0.1 * outside
        if best >= 0 and (many or is_solved):
            enter_features(model.forced, here, way, best, 0.01 * excess if many else np.inf, model.K - taken)
        else:
            best = -1
        newton_direction(model, here, way, mu, best, is_solved)
        found, pays, end = backtrack_step(model, here, there, way, value, face + outside)
        if not pays:
            length = minimum_before_sign_change(model, here, there, way, end)
            many = many and length > model.steering.model.jam
            found, dropped = stop_short(model, here, there, way, length)
            if not (found < value or (dropped and found <= value + 1e-13 * abs(value))):
                if not many:
                    break
                many = False
                classify_weights(here.x, model.c, model.forced, model.K, here.cls, here.tau)
                continue
        here, there = there, here
        value = found
    copy_to(here.moved, out)
    hold_until_here(own)
