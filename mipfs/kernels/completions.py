"""All completions of a selection S by one more feature, ruled out by as few dual vectors as will do.

    value of S ∪ {j} ≥ g(α) − Σ over S of γ_i − γ_j,   γ = ½ s(α) − c,   for any feasible α

The SVM on S gives a first α, and one pass over the columns rules out each j whose value by it reaches the target. The
one that it is furthest from ruling out gets an SVM on S ∪ {j}, from that of S on, which ends as soon as its dual vector
reaches the target: feasible, on the dyadic grid, its value rounded down. This vector is tried on the others too, as far
as that rules out enough of them, and so on until none is left.

Several of the others are taken together first: the SVM on S and on j_1, …, j_m, each of weight 1/m, has a dual vector
that lifts the mean of their values, and one that rules out most of them rules out many more like them. Where it does
not, fewer are taken together, at last one.

Which vector reaches the target matters: one of few large entries, an optimum, rules out hardly any other column, for
their scores under it are large; one that is spread over the samples rules out many. So the hinge is smoothed as far as
the target allows: from α = 0 on, a minimisation at a small ρ leaves α = clip(ρ(1 − m), 0, c), and ρ grows from there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

from mipfs.compiled import compiled
from mipfs.kernels.earned import gains, pack_dual, rounded_down, scores_above, value_below
from mipfs.kernels.loss import at_margins
from mipfs.kernels.newton import NewtonPace, SvmRows, margins
from mipfs.kernels.node import round_dual
from mipfs.kernels.order import first_up
from mipfs.kernels.vectors import copy_to
from mipfs.pointers import Step, call_step

DONE, ABOVE, STOPPED, FULL = 0, 1, 2, 3
"""Why a call ends: no candidate is left; the first one that is left is not ruled out; it was told to stop; no room for
another dual vector."""


class CompletionColumns(NamedTuple):
    """The columns that S and its completions are made of.

    X : as the data has them;  center, norms, penalty : (k,), of them
    off : (k,) what the SVMs take off a column
    """

    X: Any
    center: npt.NDArray[Any]
    norms: npt.NDArray[Any]
    penalty: npt.NDArray[Any]
    off: npt.NDArray[Any]


class CompletionProblem(NamedTuple):
    """What every call is about.

    newton : the SVM's Newton steps, called by their address
    columns : CompletionColumns;  samples, grid : as in `mipfs.kernels.structures`
    steering : a record of `mipfs.settings.CompletionSettings`
    """

    newton: Step
    columns: CompletionColumns
    samples: Any
    grid: Any
    steering: Any


class SelectionBound(NamedTuple):
    """What a dual vector proves of a selection of `held` features: value, not rounded, and the size of its terms.

    target : what is to be proven of it with one more
    """

    value: float
    size: float
    held: int
    target: float


class CompletedSelection(NamedTuple):
    """The selection S whose completions are ruled out.

    inside : (d,) int64, its columns;  held : what they cost;  target : as of `complete`
    first : SvmPoint of the SVM on them;  keys : (m,) minus the gains of the candidates under its dual vector
    """

    inside: npt.NDArray[Any]
    held: float
    target: float
    first: Any
    keys: npt.NDArray[Any]


class RuledOut(NamedTuple):
    """What a call finds.

    left : (m,) int64, in and out: the candidates, those that are left in front
    used : the numbers of the dual vectors that this call ruled something out by, in order
    above : (A,) int64, candidates that are not ruled out and put aside, at most A
    packed : the bytes of the dual vectors;  duals : (D,) DUAL
    totals : (1,) RULED
    """

    left: npt.NDArray[Any]
    used: npt.NDArray[Any]
    above: npt.NDArray[Any]
    packed: npt.NDArray[Any]
    duals: npt.NDArray[Any]
    totals: npt.NDArray[Any]


RULED = np.dtype(
    [(name, np.int64) for name in ("left", "duals", "bytes", "why", "empty", "solved", "steps", "used", "above")]
)
"""Candidates that are left; dual vectors and their bytes; why the call ended; the dual vector that rules out S alone,
−1 for none; SVMs, and their Newton steps; dual vectors that the call ruled something out by; candidates not ruled out
that were put aside."""


class SvmPoint(NamedTuple):
    """Where an SVM on some columns is, over n samples.

    A : (n, d) rows;  u, alpha, state : of `mipfs.kernels.newton`;  k : weights among u
    whole, dual, v : (n,) the dual vector on the grid: integers, α, and α∘y
    m, beta : (n,) scratch;  sums : (2,);  s : scores
    q : (1,) exponent of the grid
    """

    A: npt.NDArray[Any]
    u: npt.NDArray[Any]
    alpha: npt.NDArray[Any]
    state: npt.NDArray[Any]
    k: int
    whole: npt.NDArray[Any]
    dual: npt.NDArray[Any]
    v: npt.NDArray[Any]
    m: npt.NDArray[Any]
    beta: npt.NDArray[Any]
    sums: npt.NDArray[Any]
    s: npt.NDArray[Any]
    q: npt.NDArray[Any]


def write_column(X: Any, j: int, off: float, scale: float, y: Any, out: Any) -> None:
    """out_i = y_i (x_ij − off)·scale."""
    raise NotImplementedError


@overload(write_column)
def _write_column(X, j, off, scale, y, out):  # type: ignore[no-untyped-def]
    if isinstance(X, types.Array):

        def dense(X, j, off, scale, y, out):  # type: ignore[no-untyped-def]
            for i in range(y.size):
                out[i] = y[i] * (X[i, j] - off) * scale

        return dense

    def csc(X, j, off, scale, y, out):  # type: ignore[no-untyped-def]
        for i in range(y.size):
            out[i] = -off * scale * y[i]
        for s in range(X[2][j], X[2][j + 1]):
            i = X[1][s]
            out[i] = y[i] * (X[0][s] - off) * scale

    return csc


@compiled(nogil=True)
def place_of(samples, k, count):  # type: ignore[no-untyped-def]
    """Room for an SVM on k columns, and for the scores of `count` candidates."""
    n = samples.y.size
    d = k + samples.bias
    return SvmPoint(
        np.empty((n, d)), np.zeros(d), np.zeros(n), np.zeros(3), k, np.empty(n, np.int64),
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(2), np.empty(count), np.zeros(1, np.int64),
    )  # fmt: skip


@compiled(nogil=True)
def write_rows(columns, ids, samples, size, at):  # type: ignore[no-untyped-def]
    """Write the rows y_i (x_i − off, 1) of some columns, scaled by √size."""
    root = np.sqrt(size)
    for r in range(ids.size):
        write_column(columns.X, ids[r], columns.off[ids[r]], root, samples.y, at.A[:, r])
    if samples.bias:
        copy_to(samples.y, at.A[:, ids.size])


@compiled(nogil=True)
def _advance_newton(given, at, tol, until):  # type: ignore[no-untyped-def]
    """Some Newton steps on an SVM, towards a relative gap or a dual value."""
    newton, _, samples, _, steering = given
    steps = steering.hinge_steps if samples.loss.is_smoothed else steering.smooth_steps
    rows = SvmRows(at.A, samples.c, at.k, samples.loss)
    call_step(newton, rows, at.u, at.alpha, at.state, NewtonPace(tol, until, steps, steering.grow))


@compiled(nogil=True)
def advance_to_end(given, at):  # type: ignore[no-untyped-def]
    """Newton steps on an SVM, to the usual gap."""
    _advance_newton(given, at, given.steering.tol, np.inf)


@compiled(nogil=True)
def evaluate_rounded_dual(given, ids, at, bits):  # type: ignore[no-untyped-def]
    """Put the dual vector on a grid; what it proves of the selection `ids`, not rounded, and the size of its terms."""
    _, columns, samples, grid, _ = given
    at.q[0] = round_dual(samples, grid, at.alpha, bits, at.whole, at.dual, at.v)
    value = value_below(at.dual, grid.c, samples.loss)
    size = abs(value)
    scores_above(columns.X, columns.center, columns.norms, ids, at.v, at.s)
    for t in range(ids.size):
        gain = gains(at.s[t], columns.penalty[ids[t]])
        value -= gain
        size += abs(gain)
    return value, size


@compiled(nogil=True)
def _rule_out(given, ids, at, target, until):  # type: ignore[no-untyped-def]
    """Solve the SVM on `ids` until its dual vector proves the target: its value and size; (−∞, 0) where it does not.

    until : dual value, in the solver's unit, at which the steps may end
    """
    _, columns, samples, grid, steering = given
    cost = 0.0
    for t in range(ids.size):
        cost += columns.penalty[ids[t]]
    tol = steering.tol
    for _attempt in range(steering.attempts):
        _advance_newton(given, at, tol, until)
        value, size = evaluate_rounded_dual(given, ids, at, steering.bits)
        if rounded_down(value, size, ids.size + 2) >= target:
            return value, size
        value, size = evaluate_rounded_dual(given, ids, at, grid.bits)
        if rounded_down(value, size, ids.size + 2) >= target:
            return value, size
        margins(at.A, at.u, at.m)
        at_margins(samples.loss.at_margins, at.m, at.alpha, samples.c, 1.0, at.beta, at.sums)
        primal = at.sums[0]
        for r in range(at.k):
            primal += 0.5 * at.u[r] * at.u[r]
        if primal * grid.size + cost < target:
            break
        if at.state[1] != 0.0:
            at.state[1] = 0.0
            tol = 0.1 * tol
            until += max(2.0 * (target - value), 1e-6 * abs(target)) / grid.size
    return -np.inf, 0.0


@compiled(nogil=True)
def _mark_ruled_out(columns, ids, at, claim, out):  # type: ignore[no-untyped-def]
    """Which candidates `ids` the dual vector rules out beside what is held: 1 in `out`, their gains in `at.s`."""
    value, size, held, target = claim
    scores_above(columns.X, columns.center, columns.norms, ids, at.v, at.s)
    count = 0
    for t in range(ids.size):
        gain = gains(at.s[t], columns.penalty[ids[t]])
        at.s[t] = gain
        out[t] = rounded_down(value - gain, size + abs(gain), held + 3) >= target
        count += out[t]
    return count


@compiled(nogil=True)
def keep(grid, at, ruled):  # type: ignore[no-untyped-def]
    """Store the dual vector; returns its number."""
    total = ruled.totals[0]
    dual = ruled.duals[total.duals]
    dual.grid = at.q[0]
    dual.end, dual.top, dual.width = pack_dual(at.whole, grid.c, at.q[0], grid.weighted, ruled.packed, total.bytes)
    total.bytes = dual.end
    total.duals += 1
    return total.duals - 1


@compiled(nogil=True)
def _drop_marked(keys, ruled, out):  # type: ignore[no-untyped-def]
    """Drop the candidates that `out` marks; the others stay in their order."""
    total = ruled.totals[0]
    kept = 0
    for t in range(total.left):
        if not out[t]:
            ruled.left[kept] = ruled.left[t]
            keys[kept] = keys[t]
            kept += 1
    total.left = kept


@compiled(nogil=True)
def _note_use(ruled, dual):  # type: ignore[no-untyped-def]
    """Note that a dual vector rules something out."""
    total = ruled.totals[0]
    ruled.used[total.used] = dual
    total.used += 1


@compiled(nogil=True)
def _begin_smoothed(given, value, at):  # type: ignore[no-untyped-def]
    """Let an SVM with the hinge begin at α = 0, smoothed so far that it reaches little more than a value at first."""
    _, _, samples, grid, steering = given
    if not samples.loss.is_smoothed:
        return
    at.alpha[:] = 0.0
    at.state[0] = steering.rho
    if 0.0 < value < np.inf:
        at.state[0] = min(steering.rho, steering.soft * value / (grid.size * samples.y.size))


@compiled(nogil=True)
def _rule_out_by_selection(given, inside, target, ruled):  # type: ignore[no-untyped-def]
    """Rule out what the dual vector of the SVM on S alone does, and leave the others with their gains in ``at.s``."""
    _, columns, samples, grid, steering = given
    total = ruled.totals[0]
    at = place_of(samples, inside.size, max(ruled.left.size, inside.size))
    write_rows(columns, inside, samples, grid.size, at)
    at.state[0] = steering.rho
    until = np.inf
    if samples.loss.is_smoothed and target > 0.0:
        _begin_smoothed(given, steering.slack * target, at)
        until = steering.slack * target / grid.size
    value, size = _rule_out(given, inside, at, target, until)
    total.steps += np.int64(at.state[2])
    is_empty = value > -np.inf
    if not is_empty:
        value, size = evaluate_rounded_dual(given, inside, at, grid.bits)
    out = np.zeros(ruled.left.size, np.int8)
    left = ruled.left[: total.left]
    found = _mark_ruled_out(columns, left, at, SelectionBound(value, size, inside.size, target), out)
    total.empty = -1
    if is_empty or found > 0:
        kept_as = keep(grid, at, ruled)
        if is_empty:
            total.empty = kept_as
        if found > 0:
            _note_use(ruled, kept_as)
    kept = 0
    for t in range(left.size):
        if not out[t]:
            left[kept] = left[t]
            at.s[kept] = -at.s[t]
            kept += 1
    total.left = kept
    return at


@compiled(nogil=True)
def _try_dual_vector(given, at, claim, ruled, keys, ids, out, known):  # type: ignore[no-untyped-def]
    """Try a dual vector on the candidates behind the first `known`: on a few, and if it pays on all.

    Those that it rules out are dropped, with what `out` marks of the first ones; returns how many they are.
    """
    columns = given.columns
    steering = given.steering
    count = ruled.totals[0].left
    left = ruled.left[:count]
    out[known:count] = 0
    step = max(1, (count - known) // steering.probed)
    few = 0
    for t in range(known, count, step):
        ids[few] = left[t]
        few += 1
    marks = np.empty(few, np.int8)
    found = _mark_ruled_out(columns, ids[:few], at, claim, marks)
    if step > 1 and found * steering.worth >= few:
        _mark_ruled_out(columns, left[known:], at, claim, out[known:])
    else:
        for t in range(few):
            out[known + t * step] = marks[t]
    _drop_marked(keys, ruled, out)
    return count - ruled.totals[0].left


@compiled(nogil=True)
def _write_wider_rows(first, inside, samples, at):  # type: ignore[no-untyped-def]
    """Write the rows of S where an SVM on some columns more is solved, those columns apart."""
    d = inside.size
    for i in range(samples.y.size):
        for r in range(d):
            at.A[i, r] = first.A[i, r]
        if samples.bias:
            at.A[i, at.k] = first.A[i, d]


@compiled(nogil=True)
def _begin_from_selection(first, d, bias, rho, at):  # type: ignore[no-untyped-def]
    """Begin an SVM on S and some columns more where that of S ended."""
    at.u[:] = 0.0
    for r in range(d):
        at.u[r] = first.u[r]
    if bias:
        at.u[at.k] = first.u[d]
    copy_to(first.alpha, at.alpha)
    at.state[0] = rho
    at.state[1] = 0.0
    at.state[2] = 0.0


@compiled(nogil=True)
def _solve_averaged_svm(given, about, at, ruled, out, wide):  # type: ignore[no-untyped-def]
    """Solve the SVM on S and the first `wide` candidates, each of weight 1/wide; marks which of them it rules out.

    Returns what its dual vector claims of S and one more, and how many are marked.
    """
    _, columns, samples, grid, steering = given
    d = about.inside.size
    cost = about.held
    scale = np.sqrt(grid.size / wide)
    for r in range(steering.together):
        if r < wide:
            j = ruled.left[r]
            write_column(columns.X, j, columns.off[j], scale, samples.y, at.A[:, d + r])
            cost += columns.penalty[j] / wide
        else:
            at.A[:, d + r] = 0.0
    _begin_from_selection(about.first, d, samples.bias, steering.rho, at)
    aim = (about.target - cost) * (1.0 + steering.beyond)
    _begin_smoothed(given, aim, at)
    found = 0
    claim = SelectionBound(-np.inf, 0.0, d, about.target)
    for _attempt in range(steering.attempts):
        _advance_newton(given, at, steering.tol, aim / grid.size)
        value, size = evaluate_rounded_dual(given, about.inside, at, steering.bits)
        claim = SelectionBound(value, size, d, about.target)
        found = _mark_ruled_out(columns, ruled.left[:wide], at, claim, out[:wide])
        if found == wide or at.state[1] != 0.0:
            break
    ruled.totals[0].solved += 1
    ruled.totals[0].steps += np.int64(at.state[2])
    return claim, found


@compiled(nogil=True)
def _solve_first_candidate(given, about, at, ruled, ids):  # type: ignore[no-untyped-def]
    """Solve the SVM on S and the first candidate; returns what its dual vector claims of S and one more.

    The value of that is −∞ where it does not rule out the candidate.
    """
    _, columns, samples, grid, steering = given
    d = about.inside.size
    j = ruled.left[0]
    copy_to(about.inside, ids)
    ids[d] = j
    write_column(columns.X, j, columns.off[j], np.sqrt(grid.size), samples.y, at.A[:, d])
    _begin_from_selection(about.first, d, samples.bias, steering.rho, at)
    aim = (about.target - about.held - columns.penalty[j]) * (1.0 + steering.beyond)
    _begin_smoothed(given, aim, at)
    value, size = _rule_out(given, ids, at, about.target, aim / grid.size)
    ruled.totals[0].solved += 1
    ruled.totals[0].steps += np.int64(at.state[2])
    if value > -np.inf:
        value += gains(at.s[d], columns.penalty[j])
    return SelectionBound(value, size, d, about.target)


@compiled(nogil=True)
def _count_unmarked(out, ready):  # type: ignore[no-untyped-def]
    """How many of the first `ready` are not marked."""
    kept = 0
    for t in range(ready):
        kept += out[t] == 0
    return kept


@compiled(nogil=True)
def _begin_ruling(given, inside, target, ruled):  # type: ignore[no-untyped-def]
    """Rule out what the SVM on S alone does; returns S, and room for SVMs on one column more and on several."""
    _, columns, samples, grid, steering = given
    d = inside.size
    first = _rule_out_by_selection(given, inside, target, ruled)
    write_rows(columns, inside, samples, grid.size, first)
    at = place_of(samples, d + 1, max(ruled.left.size, d + 1))
    many = place_of(samples, d + steering.together, max(ruled.left.size, d + 1))
    _write_wider_rows(first, inside, samples, at)
    _write_wider_rows(first, inside, samples, many)
    held = 0.0
    for r in range(d):
        held += columns.penalty[inside[r]]
    return CompletedSelection(inside, held, target, first, first.s), at, many


@compiled(nogil=True)
def _solve_next(given, about, places, ruled, scratch, count):  # type: ignore[no-untyped-def]
    """Solve an SVM on S and the first `count` candidates; returns how many are done with, −1 where none fits aside."""
    at, many = places
    ids, few, out = scratch
    total = ruled.totals[0]
    if count > 1:
        claim, marked = _solve_averaged_svm(given, about, many, ruled, out, count)
        if marked == 0:
            return 0
        _note_use(ruled, keep(given.grid, many, ruled))
        return _try_dual_vector(given, many, claim, ruled, about.keys, few, out, count)
    claim = _solve_first_candidate(given, about, at, ruled, ids)
    out[0] = 1
    if claim.value > -np.inf:
        _note_use(ruled, keep(given.grid, at, ruled))
        return _try_dual_vector(given, at, claim, ruled, about.keys, few, out, 1)
    if total.above == ruled.above.size:
        return -1
    ruled.above[total.above] = ruled.left[0]
    total.above += 1
    out[1 : total.left] = 0
    _drop_marked(about.keys, ruled, out)
    return 1


@compiled(nogil=True)
def complete(given, inside, target, ruled, stop):  # type: ignore[no-untyped-def]
    """Rule out the completions of a selection S by one more column.

    Parameters
    ----------
    given : CompletionProblem
    inside : (d,) int64, the columns of S
    target : a completion is ruled out once its value is proven to be this at least
    ruled : RuledOut, with ``totals.left`` candidates, none of them in S; dual vectors go behind those that it has
    stop : (1,) int8, set from outside to give up
    """
    steering = given.steering
    total = ruled.totals[0]
    total.used = 0
    total.above = 0
    about, at, many = _begin_ruling(given, inside, target, ruled)
    few = np.empty(ruled.left.size, np.int64)
    out = np.empty(ruled.left.size, np.int8)
    scratch = np.empty(inside.size + 1, np.int64), few, out
    ready = 0
    wide = steering.together
    while total.left > 0:
        if stop[0] != 0 or total.duals == ruled.duals.size:
            total.why = STOPPED if stop[0] != 0 else FULL
            return
        count = min(wide, total.left)
        if ready < count:
            ready = min(steering.ordered, total.left)
            first_up(about.keys[: total.left], ruled.left[: total.left], ready)
        found = _solve_next(given, about, (at, many), ruled, scratch, count)
        if found < 0:
            total.why = ABOVE
            return
        if found > 0:
            ready = _count_unmarked(out, ready)
        if found >= 2 * count:
            wide = min(2 * count, steering.together)
        elif found < count:
            wide = max(1, count // 2)
    total.why = DONE
