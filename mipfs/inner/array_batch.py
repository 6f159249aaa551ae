"""The relaxation of many nodes at once in arrays of a library: NumPy's, or CuPy's on a GPU (``relax="array"``).

The iteration is that of `mipfs.kernels.batch`, in whole arrays over B nodes, whose names are those there; which nodes
are begun, what they earn and what becomes of them is the compiled code of that module. Bounds are earned on the
processor, in float64, so that none rests on what a device computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import MissingExtraError, UsageError
from mipfs.inner.batch import Batch, Handed
from mipfs.kernels import batch, subtree
from mipfs.kernels.batch_structures import BatchShape, Lanes
from mipfs.kernels.loss import ArrayLoss
from mipfs.kernels.propagation import FREE, INSIDE
from mipfs.plumbing.arrays import Array
from mipfs.pointers import Step, run

SEARCHES, LOOKED, EXACT = 32, 4, 1e-4
"""Steps at most of the search for the multiplier of the cardinality row, from that of the iteration before; after how
many it is asked whether all nodes have theirs; by how much Σσ may miss its room."""
TINY, HUGE = 1e-15, 1e18
"""Norms that count as 0, and ends that are none."""
AFTER = 1, 2, 4, 8
"""Penalties are adapted after these multiples of `BatchSettings.adapt` iterations."""


def array_library(device: str) -> Any:
    """The array library of a device, "cpu" or "cuda".

    Raises
    ------
    UsageError
        There is no GPU.
    MissingExtraError
        CuPy is not installed.
    """
    if device == "cpu":
        return np
    try:
        import cupy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise MissingExtraError("CuPy", "gpu", "device = 'cuda'") from None
    if not cupy.cuda.is_available():
        raise UsageError("device = 'cuda' finds no GPU; leave it out, or take device = 'cpu'")
    return cupy


@dataclass(eq=False)
class ArrayState:
    """Nodes that are being relaxed, on the device.

    x, c, w : (B, q);  m, d, alpha, best : (B, n);  sigma, free, inside : (B, G)
    value, rx, rm, intercept, room, lower : (B, 1)
    """

    x: Any
    c: Any
    w: Any
    m: Any
    d: Any
    alpha: Any
    best: Any
    sigma: Any
    free: Any
    inside: Any
    value: Any
    rx: Any
    rm: Any
    intercept: Any
    room: Any
    lower: Any

    def of(self, rows: Any) -> ArrayState:
        """Some of them."""
        return ArrayState(**{name: array[rows] for name, array in vars(self).items()})

    def followed_by(self, other: ArrayState, xp: Any) -> ArrayState:
        """These, and others behind them."""
        return ArrayState(**{name: xp.concatenate([array, vars(other)[name]]) for name, array in vars(self).items()})


class Iteration:
    """The iteration on a device.

    Parameters
    ----------
    xp : the array library
    solver : Batch, whose columns and eigenvectors are copied to the device
    loss : ArrayLoss
    """

    def __init__(self, xp: Any, solver: Batch, loss: ArrayLoss) -> None:
        given = solver.given
        self.xp, self.loss, self.shape = xp, loss, given.shape
        self.A, self.V, self.back, self.across, self.values = (xp.asarray(one) for one in given.factor)
        shape: BatchShape = given.shape
        self.low, self.high, self.costs, self.c, self.top, self.y = (
            xp.asarray(one) for one in (shape.low, shape.high, shape.costs, shape.c, shape.top, shape.y)
        )
        first = np.asarray(shape.first)
        self.owner = xp.asarray(np.repeat(np.arange(first.size - 1), np.diff(first)))
        self.starts = xp.asarray(first[:-1])
        self.is_single = bool(np.all(np.diff(first) == 1))

    def sums(self, values: Any) -> Any:
        """Sums of (B, q) over the columns of every atom."""
        return values if self.is_single else self.xp.add.reduceat(values, self.starts, axis=1)

    def enter(self, lanes: Lanes, begin: int, end: int) -> ArrayState:
        """The nodes of some lanes, from where they begin."""
        xp, own = self.xp, slice(begin, end)
        x, c, m, d, best = (xp.array(one[own]) for one in (lanes.x, lanes.c, lanes.m, lanes.d, lanes.best))
        w, alpha, sigma = xp.empty_like(x), xp.empty_like(m), xp.empty(lanes.sigma[own].shape, xp.float32)
        states = xp.asarray(lanes.states[own])
        free = states == FREE
        room = np.where(lanes.room[own] < 0, lanes.states.shape[1], lanes.room[own]).astype(np.float32)
        rx, rm, intercept = (xp.array(one[own])[:, None] for one in (lanes.rx, lanes.rm, lanes.intercept))
        none = xp.zeros((end - begin, 1), xp.float32)
        lower = xp.full((end - begin, 1), -np.inf)
        return ArrayState(
            x, c, w, m, d, alpha, best, sigma, free, states == INSIDE, none, rx, rm, intercept,
            xp.asarray(room)[:, None], lower,
        )  # fmt: skip

    def advance(self, s: ArrayState, steps: int) -> None:
        """Some iterations."""
        xp, relax = self.xp, self.shape.over_relaxation
        for _ in range(steps):
            self._weights_step(s)
            v = 2.0 * s.m - s.d
            h = self.loss.proximal(xp, v, self.c / s.rm, s.m)
            s.alpha = h - v
            s.d = s.d + relax * (h - s.m)
            s.x, s.m = self.point_on_graph(s, s.rx / s.rm)
            if self.shape.bias:
                s.intercept = xp.mean(s.d * self.y, axis=1, keepdims=True)
                s.m = s.m + s.intercept * self.y

    def point_on_graph(self, s: ArrayState, kappa: Any) -> tuple[Any, Any]:
        """x = (κI + A'A)⁻¹(κc + A'd) and A x."""
        if self.across.size == 0:
            part = ((kappa * s.c + s.d @ self.A) @ self.V) / (kappa + self.values)
            x = part @ self.V.T
            return x, x @ self.A.T
        e = s.c + (s.d @ self.A) / kappa
        t = e @ self.A.T
        part = (t @ self.V) / (kappa + self.values)
        return e - part @ self.back, t - part @ self.across

    def _weights_step(self, s: ArrayState) -> None:
        """w = prox_R(2x − c), σ, and c ← c + r (w − x)."""
        xp = self.xp
        v = 2.0 * s.x - s.c
        v = xp.where(((v > 0.0) & (self.high <= 0.0)) | ((v < 0.0) & (self.low >= 0.0)), xp.zeros_like(v), v)
        norm = xp.sqrt(self.sums(v * v))
        end = xp.full_like(norm, HUGE)
        if self.shape.has_ends:
            first = v[:, self.starts]
            end = xp.where(first > 0.0, self.high[self.starts], -self.low[self.starts])
        s.sigma = self._sigma_of_nodes(s, norm, end)
        sigma = s.sigma if self.is_single else s.sigma[:, self.owner]
        t = v * (s.rx / (1.0 + s.rx * sigma))
        s.w = sigma * (xp.clip(t, self.low, self.high) if self.shape.has_ends else t)
        s.c = s.c + self.shape.over_relaxation * (s.w - s.x)

    def _sigma_of_nodes(self, s: ArrayState, norm: Any, end: Any) -> Any:
        """σ at the multiplier of the cardinality row, where the free ones add up to the room that there is."""
        xp = self.xp
        zero = xp.zeros_like(s.value)
        high = xp.maximum(0.5 * (s.rx * norm) ** 2 - self.costs, -self.costs + xp.zeros_like(norm))
        high = xp.max(xp.where(s.free, high, 0.0), axis=1, keepdims=True)
        high = xp.maximum(high, zero)
        fits = xp.sum(self._sigma_at_multiplier(s, zero, norm, end)[0], axis=1, keepdims=True) <= s.room
        low, at = zero, xp.where((s.value > 0.0) & (s.value < high), s.value, 0.5 * high)
        for step in range(1, SEARCHES + 1):
            sigma, bend = self._sigma_at_multiplier(s, at, norm, end)
            over = xp.sum(sigma, axis=1, keepdims=True) - s.room
            slope = xp.sum(bend, axis=1, keepdims=True)
            low, high = xp.where(over > 0.0, at, low), xp.where(over > 0.0, high, at)
            after = at + over / xp.maximum(slope, TINY)
            after = xp.where((after > low) & (after < high), after, 0.5 * (low + high))
            meets = (xp.abs(over) <= EXACT) | fits
            at = xp.where(meets, at, after)
            if step % LOOKED == 0 and bool(xp.all(meets)):
                break
        s.value = xp.where(fits, zero, xp.where(meets, at, high))
        sigma = xp.where(s.inside, xp.ones_like(norm), self._sigma_at_multiplier(s, s.value, norm, end)[0])
        return xp.where(s.room <= 0.0, xp.where(s.inside, 1.0, 0.0).astype(norm.dtype), sigma)

    def _sigma_at_multiplier(self, s: ArrayState, value: Any, norm: Any, end: Any) -> tuple[Any, Any]:
        """σ of the free atoms at a multiplier (B, 1), 0 of others, and by how much it falls where 0 < σ < 1."""
        xp = self.xp
        price = value + self.costs
        tau = xp.sqrt(2.0 * xp.maximum(price, TINY * TINY))
        is_short = tau <= end
        near = norm / tau - 1.0 / s.rx
        bend = norm / xp.maximum(tau * tau * tau, TINY * TINY)
        if self.shape.has_ends:
            width = xp.maximum(end, TINY)
            far = (norm - (price + 0.5 * width * width) / (s.rx * width)) / width
            near = xp.where(is_short, near, xp.where(end > TINY, far, 0.0))
            bend = xp.where(is_short, bend, 1.0 / (s.rx * width * width))
        sigma = xp.where(price <= TINY * TINY, 1.0, xp.clip(near, 0.0, 1.0))
        sigma = xp.where(s.free, sigma, 0.0).astype(norm.dtype)
        return sigma, xp.where((sigma > 0.0) & (sigma < 1.0), bend, 0.0)

    def evaluate_bounds(self, s: ArrayState) -> tuple[Array, Array]:
        """Both values at the iterates, (B,), on the processor; the best dual vectors are kept."""
        xp = self.xp
        a = xp.clip(s.rm * s.alpha, 0.0, self.top)
        if self.shape.bias:
            up = xp.sum(xp.where(self.y > 0.0, a, 0.0), axis=1, keepdims=True)
            down = xp.sum(a, axis=1, keepdims=True) - up
            least = xp.minimum(up, down)
            a = a * xp.where(self.y > 0.0, least / xp.maximum(up, TINY), least / xp.maximum(down, TINY))
        lower = self.loss.dual(xp, a, self.c) - self._best_gains(s, a @ self.A)
        margins = s.w @ self.A.T + (s.intercept * self.y if self.shape.bias else 0.0)
        squares = self.sums(xp.square(s.w.astype(xp.float64)))
        term = xp.where(s.sigma > TINY, 0.5 * squares / xp.maximum(s.sigma, TINY), 0.0) + self.costs * s.sigma
        upper = self.loss.value(xp, margins, self.c) + xp.sum(term, axis=1)
        better = lower[:, None] > s.lower
        s.best, s.lower = xp.where(better, a, s.best), xp.maximum(s.lower, lower[:, None])
        return self.home(s.lower)[:, 0], self.home(upper)

    def _best_gains(self, s: ArrayState, omega: Any) -> Any:
        """What the forced atoms and the best of the free ones take off g, (B,)."""
        xp = self.xp
        t = xp.clip(omega, self.low, self.high)
        gain = self.sums((t * (omega - 0.5 * t)).astype(xp.float64)) - self.costs
        forced = xp.sum(xp.where(s.inside, gain, 0.0), axis=1)
        ranked = -xp.sort(-xp.where(s.free, xp.maximum(gain, 0.0), 0.0), axis=1)
        return forced + xp.sum(xp.where(xp.arange(ranked.shape[1]) < s.room, ranked, 0.0), axis=1)

    def adapt(self, s: ArrayState, now: npt.NDArray[np.bool_]) -> None:
        """New penalties for the nodes `now`, see `mipfs.kernels.batch.adapt_penalties`."""
        if not now.any():
            return
        xp, chosen = self.xp, self.xp.asarray(now)[:, None]
        for x, c, away, rho in (("x", "c", 0.0, "rx"), ("m", "d", 1.0, "rm")):
            at, held, old = (getattr(s, name) for name in (x, c, rho))
            up, down = (xp.sum(xp.square(one), axis=1, keepdims=True) for one in (held - at, at - away))
            is_known = (up > TINY**2) & (up < HUGE**2) & (down > TINY**2) & (down < HUGE**2) & chosen
            factor = xp.clip(xp.sqrt(up / xp.maximum(down, TINY**2)), 0.1, 10.0)
            new = xp.where(is_known, old * factor, old).astype(old.dtype)
            setattr(s, c, at + (old / new) * (held - at))
            setattr(s, rho, new)

    def home(self, array: Any) -> Any:
        """An array on the processor."""
        return array if self.xp is np else self.xp.asnumpy(array)

    def leave(self, s: ArrayState, lanes: Lanes, rows: npt.NDArray[np.int64]) -> None:
        """Put what nodes that are done have found into their lanes."""
        for name in ("w", "best", "sigma"):
            getattr(lanes, name)[rows] = self.home(getattr(s, name)[rows])
        lanes.intercept[rows] = self.home(s.intercept[rows])[:, 0]


class ArrayBatch(Batch):
    """The node solver whose iterations are arrays of a library; see `Batch`, whose problems without rows it takes."""

    device = "cpu"

    @cached_property
    def _device_iteration(self) -> Iteration:
        """Its columns and eigenvectors on the device; copies share them, if they were made before."""
        assert self.loss.kernels is not None
        assert self.loss.kernels.arrays is not None
        return Iteration(array_library(self.device), self, self.loss.kernels.arrays)

    def on(self, device: str) -> ArrayBatch:
        """The solver on a device, "cpu" or "cuda"."""
        self.device = device
        _ = self._device_iteration
        return self

    def kernels(self) -> tuple[list[Step], list[Step]]:
        """The parts of the batch's kernels that it calls, and what `Batch.kernels` has beside `explore`."""
        _, grid, _, limits, given, pieces, own = self.handed(0)
        (_, *steps), others = super().kernels()
        return steps, [Step.of(batch.are_done, limits, pieces, grid.size, given.rules, own, 0), *others]

    def _explore_compiled(self, handed: Handed) -> None:
        samples, grid, rows, limits, given, pieces, own = handed
        steps = self.made(handed)
        lanes, one, count, solved = own.lanes, self._device_iteration, 0, 0
        subtree.plant_all(pieces)
        state: ArrayState | None = None
        while not self.stop[0]:
            begun = count
            if solved < self.settings.budget:
                count = run(steps.begin, (given, grid, rows, limits, pieces, own, count))
            if count == 0:
                break
            if count > begun:
                fresh = one.enter(lanes, begun, count)
                state = fresh if state is None or begun == 0 else state.followed_by(fresh, one.xp)
            assert state is not None
            one.advance(state, self.settings.steps)
            lanes.used[:count] += self.settings.steps
            lanes.lower[:count], upper = one.evaluate_bounds(state)
            lanes.upper[:count] = np.minimum(lanes.upper[:count], upper)
            found = batch.are_done(limits, pieces, grid.size, given.rules, own, count)
            if found:
                one.leave(state, lanes, own.room.done[:found])
                run(steps.end, (steps.branch, samples, grid, rows.sides, limits, given, pieces, own))
                state = state.of(one.xp.asarray(find_lanes_left(own.room.done[:found], count)))
                count = batch.close_up(lanes, own.room.done, found, count)
                solved += found
            used = lanes.used[:count]
            one.adapt(state, np.isin(used, self.settings.adapt * np.array(AFTER)))
        batch.give_back(pieces)


def find_lanes_left(done: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Where the lanes come from that `mipfs.kernels.batch.close_up` leaves."""
    order = np.arange(count)
    for lane in done[::-1].tolist():
        count -= 1
        order[lane] = order[count]
    return order[:count]
