"""The kernels of nodes that are relaxed many at a time, beside NumPy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize, minimize_scalar

from mipfs.inner.batch import Batch
from mipfs.inner.boolean_node import FREE, INSIDE, NO_ROWS, OUTSIDE
from mipfs.inner.propagation import Propagation
from mipfs.kernels import batch, subtree, units, weights_step
from mipfs.kernels.batch_structures import Lanes
from mipfs.kernels.structures import LIMITS, ExploredPiece, RowSides, only_read
from mipfs.kernels.weights_step import SigmaRows
from mipfs.losses import get_loss
from mipfs.pointers import run
from mipfs.proof.cuts import scores_above
from tests.inner.test_batched_nodes import KINDS, LOSSES, NEVER, problem_of, unit_of

Array = npt.NDArray[np.float64]


def plain(count: int) -> SigmaRows:
    """No rows over `count` atoms without costs."""
    return SigmaRows(NO_ROWS, np.zeros(count), 1.0)


def sides_of(A: Array, low: Array, high: Array) -> RowSides:
    """The rows low ≤ A σ ≤ high."""
    at = [np.flatnonzero(row) for row in A]
    indptr = np.append(0, np.cumsum([one.size for one in at]))
    data = np.concatenate([row[one] for row, one in zip(A, at, strict=True)])
    none = np.zeros(2 * A.shape[0])
    return RowSides(indptr, np.concatenate(at), data, np.concatenate([high, -low]), none, none, none)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_proximal_step_of_a_loss_is_the_least_of_its_function(loss: str) -> None:
    r = np.random.default_rng(0)
    kernels = get_loss(loss).kernels
    m, d = r.normal(size=60).astype(np.float32), (3.0 * r.normal(size=60)).astype(np.float32)
    c, part, relax = r.uniform(0.1, 2.0, 60).astype(np.float32), np.float32(5.0), np.float32(1.6)
    c.flags.writeable = False
    v, before, alpha = 2.0 * m.astype(float) - d, d.copy(), np.empty(60, np.float32)
    kernels.proximal(m, d, c, part, relax, alpha)
    one = np.ones(1)
    for i in range(60):
        value = get_loss(loss).value
        exact = minimize_scalar(
            lambda h: 5.0 * c[i] * value(np.array([h]), one) + 0.5 * (h - v[i]) ** 2,  # noqa: B023
            bounds=(v[i] - 1.0, v[i] + 5.0 * c[i] + 6.0 * abs(v[i]) + 1.0), method="bounded", options={"xatol": 1e-9},
        ).x  # fmt: skip
        assert alpha[i] == pytest.approx(exact - v[i], abs=3e-3)
        assert d[i] == pytest.approx(before[i] + 1.6 * (exact - m[i]), abs=5e-3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["plain", "signs", "box", "groups", "costs"])
def test_the_proximal_step_of_the_weights_is_the_least_of_its_function(kind: str) -> None:
    """No other (σ, w) has a smaller ½ Σ‖w‖²/σ + c'σ + ½ρ‖w − v‖²: compared with points around and at random."""
    r = np.random.default_rng(1)
    problem = problem_of(kind, "hinge", 2)
    k = problem.atoms.count
    solver = Batch(problem, np.arange(k), NEVER)
    own = solver.handed(1)[-1]
    shape, lanes = solver.given.shape, own.lanes
    q, rx, M = lanes.x.shape[1], 3.0, 3
    v = r.normal(size=q) * (0.3 if kind != "costs" else 3.0)
    lanes.x[0], lanes.c[0] = 0.0, -v
    lanes.states[0], lanes.room[0], lanes.threshold_start[0], lanes.rx[0] = FREE, M, 0.0, rx
    lanes.costs[0], lanes.cardinality_multiplier[0] = shape.costs, 0.0
    weights_step.weights_step(shape, plain(k), lanes, 1)
    w, sigma = lanes.w[0].astype(float), lanes.sigma[0].astype(float)
    owner = np.repeat(np.arange(k), np.diff(shape.first))

    def value(w: Array, sigma: Array) -> float:
        squares = np.bincount(owner, np.square(w), k)
        term = np.divide(squares, sigma, out=np.where(squares > 0.0, np.inf, 0.0), where=sigma > 0.0)
        return float(0.5 * term.sum() + shape.costs @ sigma + 0.5 * rx * np.square(w - v).sum())

    assert sigma.sum() <= M + 1e-3
    low, high = np.maximum(shape.low, -1e6), np.minimum(shape.high, 1e6)
    assert np.all(w >= low * sigma[owner] - 1e-6)
    assert np.all(w <= high * sigma[owner] + 1e-6)
    least = value(w, sigma)
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(300):
            other = np.clip(sigma + scale * r.normal(size=k) * (r.random(k) < 0.4), 1e-6, 1.0)
            if other.sum() > M:
                other *= M / other.sum()
            for point in (rx * v * other[owner] / (1.0 + rx * other[owner]), w + scale * r.normal(size=q)):
                inside = np.clip(point, low * other[owner], high * other[owner])
                assert value(inside, other) >= least - 2e-4 * (1.0 + abs(least))


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_cuts(kind: str) -> None:
    """The compiled scores of dual vectors equal those of `mipfs.proof.cuts`, which the checkers agree with."""
    problem = problem_of(kind, "hinge", 3)
    k = problem.atoms.count
    solver = Batch(problem, np.arange(k), NEVER)
    given, own = solver.given, solver.handed(0)[-1]
    v = np.random.default_rng(0).normal(size=(5, problem.data.n_samples))
    own.earned.v[:5] = v
    batch.scores_above(given.scoring, given.shape.first, own.earned, 5)
    for f in range(5):
        np.testing.assert_allclose(own.earned.s[f], scores_above(problem, v[f]), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kind", ["plain over weights", "groups over weights", "box over weights"])
def test_scores_with_rows_over_the_weights_hold_exactly(kind: str) -> None:
    """No score is below the rational one, of rows before they are rounded; g has the ends' costs taken off."""
    problem = problem_of(kind, "hinge", 3)
    k, n = problem.atoms.count, problem.data.n_samples
    solver = Batch(problem, np.arange(k), NEVER)
    given, own = solver.given, solver.handed(0)[-1]
    v = np.random.default_rng(0).normal(size=problem.dual_size)
    v[n:] = np.abs(v[n:])
    own.earned.v[0] = v
    batch.scores_above(given.scoring, given.shape.first, own.earned, 1)
    np.testing.assert_allclose(own.earned.s[0], scores_above(problem, v), rtol=1e-11, atol=1e-15)
    columns = problem.atoms.columns(np.arange(k))
    X, scale, total = problem.data.block(), problem.data.scale, sum(map(Fraction, v[:n].tolist()))
    exact = [Fraction(0)] * k
    for g, j, factor in zip(columns.atom.tolist(), columns.ids.tolist(), columns.scale.tolist(), strict=True):
        terms = zip(X.values[:, j].tolist(), v.tolist(), strict=False)
        omega = sum((Fraction(a) * Fraction(b) for a, b in terms), -Fraction(float(X.center[j])) * total)
        for nu, (r, sign) in zip(v[n:].tolist(), problem.ends.of, strict=True):
            a = problem.ends.rows[r].terms.get(problem.data.feature_names[j], 0.0)
            omega += Fraction(nu) * int(sign) * Fraction(a) / Fraction(float(scale[j])) / problem.ends.units[r]
        if problem.regulariser.is_ridge:
            exact[g] += (omega * Fraction(factor)) ** 2
        else:
            low, high = (Fraction(float(np.broadcast_to(end, X.shape[1])[j])) for end in problem.regulariser.ends)
            t = min(max(omega, low), high)
            exact[g] += 2 * t * omega - t * t
    assert all(Fraction(s) >= one for s, one in zip(own.earned.s[0].tolist(), exact, strict=True))


@pytest.mark.parametrize("room", [1, 2, 5])
def test_sigma_adds_up_to_the_room(room: int) -> None:
    r = np.random.default_rng(room)
    for start in (0.0, 1.0, 1e9):
        norm = r.exponential(size=9).astype(np.float32)
        norm[:2] = 0.0
        s = weights_step.scale_for(norm, room, np.float32(0.2), np.float32(start))
        assert np.clip(norm * s - 0.2, 0.0, 1.0).sum() == pytest.approx(room, abs=1e-3)
    norm[3:] = 1e-20  # one that is not 0, at most: it has σ = 1
    assert weights_step.scale_for(norm, room, np.float32(0.2), np.float32(0.0)) == np.float32(1e18)


def test_sigma_solves_the_price_of_an_atom() -> None:
    """h(σ) = ρ (v − σt) t − ½t² is the multiplier and the cost, unless σ is 0 or 1."""
    r = np.random.default_rng(0)
    rx = 2.5
    seen = set()
    for _ in range(300):
        value, size, end, cost = r.exponential(size=4).astype(np.float32)
        end = np.float32(3e38) if r.random() < 0.3 else end
        sigma = float(weights_step.sigma_at(value, size, end, cost, np.float32(rx)))
        t = min(rx * size / (1.0 + rx * sigma), float(end))
        price = rx * (size - sigma * t) * t - 0.5 * t * t - value - cost
        where = 0 if sigma == 0.0 else 1 if sigma == 1.0 else 2
        seen.add(where)
        assert [price <= 1e-4, price >= -1e-4, abs(price) <= 1e-3 * (1.0 + size)][where]
    assert seen == {0, 1, 2}
    norm, end, cost = (r.exponential(size=8).astype(np.float32) for _ in range(3))
    norm, end, cost = (r.exponential(size=8).astype(np.float32) for _ in range(3))
    for start in (0.0, 0.3, 1e9):
        found = weights_step.multiplier_for(norm, end, cost, 2, np.float32(20.0), np.float32(start))
        total = sum(weights_step.sigma_at(found, norm[g], end[g], cost[g], np.float32(20.0)) for g in range(8))
        assert total == pytest.approx(2.0, abs=1e-3)
        assert weights_step.multiplier_for(norm, end, cost, 8, np.float32(20.0), np.float32(start)) == 0.0


def test_the_bend_of_an_atom_is_its_derivative() -> None:
    for end, size in ((3e38, 1.0), (0.2, 1.14)):
        value, size, cost, rx = (np.float32(one) for one in (0.4, size, 0.1, 2.5))
        at = [weights_step.sigma_at(value + np.float32(h), size, np.float32(end), cost, rx) for h in (-1e-2, 1e-2)]
        assert 0.0 < at[1] < at[0] < 1.0
        bend = weights_step.bend_at(value, size, np.float32(end), cost, rx)
        assert bend == pytest.approx((at[0] - at[1]) / 2e-2, rel=1e-2)


@pytest.mark.slow
def test_prices_are_costs_less_what_rows_pay_and_a_miss_costs_its_multiplier() -> None:
    A = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
    sides = sides_of(A, np.array([-np.inf, 0.0]), np.array([1.5, np.inf]))
    lanes = Lanes.of_size(1, 2, 3, 3, 2)
    lanes.y[0] = [-4.0, 6.0]
    rows = SigmaRows(sides, np.array([1.0, 0.0, 3.0]), 2.0)
    weights_step.reprice_atoms(rows, lanes, 0, np.empty(3), np.empty(3))
    np.testing.assert_allclose(lanes.costs[0], (rows.penalty - lanes.y[0] @ A) / 2.0)
    assert lanes.constant[0] == pytest.approx(-4.0 * 1.5 / 2.0)
    sigma = np.array([1.0, 0.5, 0.75], np.float32)  # 2.0 for at most 1.5, and −0.25 for at least 0
    assert batch.missed_by(sides, lanes.y[0], sigma, False) == pytest.approx(3.0 * (4.0 * 0.5 + 6.0 * 0.25))
    assert batch.missed_by(sides, lanes.y[0], sigma, True) == np.inf
    assert batch.missed_by(sides, lanes.y[0], np.array([0.5, 0.5, 0.5], np.float32), True) == 0.0


@pytest.mark.parametrize("ends", ["no ends", "ends"])
@pytest.mark.parametrize("seed", range(6))
def test_the_prices_of_rows_are_those_of_the_proximal_step(seed: int, ends: str) -> None:
    """Once through all rows an iteration, σ ends where Clarabel finds it: two-sided rows, an equality, all places."""
    r = np.random.default_rng(seed)
    k, M, rx = 12, 4, 2.0
    problem = problem_of("box" if ends == "ends" else "plain", "hinge", seed, p=k)
    solver = Batch(problem, np.arange(k), NEVER)
    shape = solver.given.shape
    low, high = (only_read(3.0 * end) for end in (shape.low, shape.high))
    shape = shape._replace(low=low, high=high)
    A = np.where(r.random((3, k)) < 0.6, r.normal(size=(3, k)).round(2), 0.0)
    inner = np.minimum(r.uniform(0.0, 1.0, k), M / k)
    high, low = A @ inner + [0.1, 0.3, 0.0], A @ inner - [np.inf, 0.05, 0.0]
    sides = sides_of(A, low, high)
    v = r.normal(size=k)
    lanes = Lanes.of_size(1, 5, k, k, 3)
    lanes.states[0], lanes.room[0], lanes.threshold_start[0], lanes.cardinality_multiplier[0], lanes.rx[0] = (
        FREE,
        M,
        0.0,
        0.0,
        rx,
    )
    lanes.costs[0] = 0.0
    for _ in range(60):
        lanes.x[0], lanes.c[0] = 0.0, -v
        weights_step.weights_step(shape, SigmaRows(sides, np.zeros(k), 1.0), lanes, 1)
    w, sigma = cp.Variable(k), cp.Variable(k)
    parts = [0.5 * cp.quad_over_lin(w[g], sigma[g]) for g in range(k)]
    fits = [sigma >= 0.0, sigma <= 1.0, cp.sum(sigma) <= M, A[0] @ sigma <= high[0]]
    fits += [A[1:] @ sigma <= high[1:], A[1:] @ sigma >= low[1:]]
    t = [shape.low.astype(float), shape.high.astype(float)]
    fits += [w >= cp.multiply(sigma, t[0]), w <= cp.multiply(sigma, t[1])] if ends == "ends" else []
    least = cp.Problem(cp.Minimize(sum(parts) + 0.5 * rx * cp.sum_squares(w - v)), fits).solve(solver=cp.CLARABEL)
    found = lanes.sigma[0].astype(float)
    own = np.square(lanes.w[0].astype(float))
    value = 0.5 * np.divide(own, found, out=np.zeros(k), where=found > 1e-9).sum()
    value += 0.5 * rx * np.square(lanes.w[0] - v).sum()
    assert value == pytest.approx(least, rel=2e-3)
    assert np.all(A @ found <= high + 2e-3)
    assert np.all(A @ found >= low - 2e-3)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("n", [40, 6])
def test_an_iteration_is_that_of_numpy(n: int, bias: bool) -> None:
    """x solves (κI + A'A) x = κc + A'd, m = A x + b y, b = y'd/n; with fewer samples than columns too."""
    r = np.random.default_rng(n)
    problem = problem_of("groups", "hinge", 1, n=n, bias=bias)
    solver = Batch(problem, np.arange(problem.atoms.count), NEVER)
    handed = samples, _, rows, _, given, _, own = solver._prepare_exploration(1, NO_ROWS)
    lanes, B = own.lanes, 3
    for array in (lanes.x, lanes.c, lanes.m, lanes.d):
        array[:B] = 0.3 * r.normal(size=array[:B].shape)
    lanes.states[:B], lanes.room[:B], lanes.threshold_start[:B], lanes.used[:B] = FREE, 3, 0.0, 0
    lanes.rx[:B], lanes.rm[:B], lanes.intercept[:B] = [1.0, 2.0, 7.0], [0.2, 0.5, 0.1], 0.0
    c, d, m = (array[:B].astype(float) for array in (lanes.c, lanes.d, lanes.m))
    x = lanes.x[:B].astype(float)
    lanes.costs[:B], lanes.cardinality_multiplier[:B] = 0.0, 0.0
    run(solver.made(handed).advance, (given, rows, own, samples.loss, B, 1))
    A, y = given.factor.A.astype(float), problem.data.y
    for b in range(B):
        v = 2.0 * m[b] - d[b]
        h = np.maximum(v, np.minimum(v + given.shape.c / lanes.rm[b], 1.0))
        np.testing.assert_allclose(lanes.alpha[b], h - v, atol=1e-5)
        d_next = d[b] + 1.6 * (h - m[b])
        c_next = c[b] + 1.6 * (lanes.w[b] - x[b])
        kappa = float(lanes.rx[b] / lanes.rm[b])
        exact = np.linalg.solve(kappa * np.eye(A.shape[1]) + A.T @ A, kappa * c_next + A.T @ d_next)
        intercept = float(y @ d_next) / y.size if bias else 0.0
        np.testing.assert_allclose(lanes.x[b], exact, atol=1e-4)
        np.testing.assert_allclose(lanes.m[b], A @ exact + intercept * y, atol=3e-4)
    assert lanes.used[:B].tolist() == [1, 1, 1]


def test_new_penalties_leave_the_multipliers_as_they_are() -> None:
    r = np.random.default_rng(0)
    lanes = Lanes.of_size(3, 20, 5, 5, 0)
    for array in (lanes.x, lanes.c, lanes.m, lanes.d):
        array[:] = r.normal(size=array.shape)
    lanes.rx[:], lanes.rm[:], lanes.used[:] = 2.0, 0.2, [10, 30, 80]
    before = lanes.rx[:, None] * (lanes.c - lanes.x), lanes.rm[:, None] * (lanes.d - lanes.m)
    batch.adapt_penalties(lanes, 20, 10, 3)
    assert lanes.rx[1] == 2.0
    assert lanes.rx[0] == pytest.approx(np.linalg.norm(before[0][0]) / np.linalg.norm(lanes.x[0]), rel=1e-4)
    assert lanes.rm[2] == pytest.approx(
        min(2.0, np.linalg.norm(before[1][2]) / np.linalg.norm(lanes.m[2] - 1.0)), rel=1e-4
    )
    np.testing.assert_allclose(lanes.rx[:, None] * (lanes.c - lanes.x), before[0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(lanes.rm[:, None] * (lanes.d - lanes.m), before[1], rtol=1e-3, atol=1e-5)


def test_lanes_are_closed_up() -> None:
    lanes = Lanes.of_size(6, 2, 2, 2, 0)
    lanes.used[:] = np.arange(6)
    done = np.array([1, 3, 4, 0])
    assert batch.close_up(lanes, done, 3, 6) == 3
    assert sorted(lanes.used[:3].tolist()) == [0, 2, 5]


@pytest.mark.slow
def test_the_next_nodes_are_those_of_least_bound() -> None:
    """Below their levels, of no piece more than it has room for; those beyond the cutoff are closed."""
    r = np.random.default_rng(0)
    for _ in range(50):
        pieces = ExploredPiece.of(3, 6, 2, 0, 40, 10)
        limits = np.zeros(3, LIMITS)
        limits["cutoff"], limits["level"] = 10.0, 8.0
        pieces.nodes["place"], pieces.totals["nodes"], pieces.totals["solved"] = -1, 4, 1
        pieces.nodes["place"][:, :4], pieces.nodes["bound"] = 0, r.integers(0, 12, (3, 6))
        pieces.totals["places"][:, 0] = [3, 34, 37]  # room for many, for two and for one
        wanted = int(r.integers(1, 8))
        of, node = np.zeros(wanted, dtype=np.int64), np.zeros(wanted, dtype=np.int64)
        bounds = pieces.nodes["bound"].copy()
        found = batch.claim_next_nodes(NO_ROWS, limits, pieces, of, node)
        best = [sorted(b for b in bounds[i, :4] if b <= 8.0)[:room] for i, room in enumerate((4, 2, 1))]
        exact = sorted(b for each in best for b in each)[:wanted]
        assert sorted(bounds[of[:found], node[:found]].tolist()) == exact
        assert np.all(pieces.nodes["why"][of[:found], node[:found]] == batch.OUT)
        assert np.all(pieces.nodes["place"][:, :4][bounds[:, :4] >= 10.0] == -1)


@pytest.mark.parametrize("kind", ["groups", "signs with rows"])
def test_an_exploration_is_its_parts(kind: str) -> None:
    """Choose, iterate, look, earn and settle, as whoever iterates elsewhere calls them: the same bytes."""
    problem = problem_of(kind, "hinge", 2)
    k = problem.atoms.count
    unit = unit_of(problem, [np.full(k, FREE, dtype=np.int8)] * 3, cutoff=1e9)
    solver = Batch(problem, np.arange(k), NEVER)
    sides = Propagation(problem.selection, np.arange(k)).sides
    found = []
    for whole in (True, False):
        handed = solver.laid_out(unit.nodes, unit.duals, unit.limits, sides, unit.prices)
        if whole:
            batch.explore(solver.made(handed), handed)
        else:
            _by_parts(solver, handed)
        found.append([one.tobytes() for one in units.gather_pieces(handed[5])[:5]])
    assert found[0] == found[1]


def _by_parts(solver: Batch, handed: Any) -> None:
    samples, grid, rows, limits, held, pieces, own = handed
    steps, lanes = solver.made(handed), own.lanes
    subtree.plant_all(pieces)
    count = 0
    while True:
        count = run(steps.begin, (held, grid, rows, limits, pieces, own, count))
        if count == 0:
            break
        run(steps.advance, (held, rows, own, samples.loss, count, solver.settings.steps))
        run(steps.evaluate_bounds, (held, samples, rows, own, count))
        done = batch.are_done(limits, pieces, grid.size, held.rules, own, count)
        if done:
            run(steps.end, (steps.branch, samples, grid, rows.sides, limits, held, pieces, own))
            count = batch.close_up(lanes, own.room.done, done, count)
        batch.adapt_penalties(lanes, solver.problem.data.n_samples, solver.settings.adapt, count)
    batch.give_back(pieces)


def test_explorations_leave_the_pieces_of_a_proof() -> None:
    """Nodes of a whole subtree: solved, closed, split or open, none lost; each split has both values of one atom."""
    problem = problem_of("groups", "hinge", 2)
    k = problem.atoms.count
    states = [np.full(k, FREE, dtype=np.int8) for _ in range(2)]
    states[0][0], states[1][0] = INSIDE, OUTSIDE
    unit = unit_of(problem, states, cutoff=1e9)
    solver = Batch(problem, np.arange(k), NEVER)
    handed = _, _, _, _, _, pieces, _ = solver.laid_out(unit.nodes, unit.duals, unit.limits, NO_ROWS, unit.prices)
    batch.explore(solver.made(handed), handed)
    for of in range(2):
        total = pieces.totals[of, 0]
        assert total["solved"] > 1
        places = pieces.places[of, : total["places"]]
        split = places[(places["feature"] >= 0) & (places["inside"] >= 0)]
        assert np.all((split["outside"] > 0) & (split["inside"] > 0))
        still = pieces.nodes[of, : total["nodes"]]
        open_ones = still["place"] >= 0
        leaves = (places["outside"] < 0) & (places["inside"] < 0)
        closed = leaves & (places["dual"] >= 0)
        assert np.count_nonzero(leaves) == np.count_nonzero(open_ones) + np.count_nonzero(closed)


def test_one_node_relaxed_to_its_end_is_an_svm_where_all_are_in() -> None:
    """With room for every feature the perspective is ½‖w‖²: SciPy solves that; called in two parts it is the same."""
    problem = problem_of("plain", "logistic", 3, M=8)
    solver = Batch(problem, np.arange(8), NEVER)
    X, y, c = np.asarray(problem.data.X), problem.data.y, problem.c_i
    Z = X - X.mean(axis=0)

    def value(point: Array) -> float:
        margins = y * (Z @ point[:-1] + (point[-1] if problem.bias else 0.0))
        return float(0.5 * point[:-1] @ point[:-1] + c @ np.logaddexp(0.0, -margins))

    exact = minimize(value, np.zeros(9), method="BFGS", options={"gtol": 1e-9}).fun
    found = []
    for parts, tol in (((100,), -1.0), ((20, 80), -1.0), ((200,), 1e-4)):
        handed = solver.of_one(np.full(8, FREE, dtype=np.int8), NO_ROWS)
        own = handed[-1]
        meets = [bool(batch.relax(solver.made(handed), handed, tol, part)) for part in parts]
        assert meets[-1] == (tol > 0.0)
        assert own.lanes.lower[0] * solver.size == pytest.approx(exact, rel=max(tol, 1e-5))
        assert own.lanes.upper[0] * solver.size == pytest.approx(exact, rel=max(tol, 1e-5))
        found.append((own.lanes.used[0], own.lanes.lower[0], own.lanes.w[0].tobytes()))
    assert found[0] == found[1]
    assert found[2][0] < found[0][0]
