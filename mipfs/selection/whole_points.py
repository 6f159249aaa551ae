"""Whole values of extra variables beside a selection that meet the equations among the rows, near given values.

Among unbounded whole numbers with coefficients such as 1234, 8762 and 2348 a tree of linear programs finds none. The
points that meet the equations are z0 + Σ t_k v_k with whole t (`mipfs.selection.lattice`). With v reduced (Lenstra,
Lenstra and Lovász 1982) the point near given values is found by rounding (Babai 1986), and where bounds and other rows
forbid that one, by a MILP over t, in which no equation is left (Aardal, Hurkens and Lenstra 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from mipfs.errors import NumericalError
from mipfs.plumbing.arrays import Array, terms_of
from mipfs.selection.selection import Selection
from mipfs.solvers import highs

MOST_FREE = 20
"""Free t up to which it is tried: the reduction is in exact arithmetic."""
LARGEST = 2**53
"""Whole numbers up to this size are floats."""
LOVASZ = Fraction(3, 4)

Point = dict[int, int]


def whole_points(
    selection: Selection, low: Array, high: Array, near: Array, nodes: int, must_stop: Callable[[], bool]
) -> Iterator[Array]:
    """Values (e,) of the extra variables to be tried: whole ones that meet the equations, the others as in `near` (e,).

    Parameters
    ----------
    selection : Selection
    low, high : (p + e,) a box in which σ is fixed
    near : (e,) values of a linear program
    nodes, must_stop : of the MILP at most, and whether it should be given up
    """
    found = selection.whole_numbers.points(low, high)
    if found is None or len(found.free) > MOST_FREE:
        return
    p = selection.n_features
    steps = _reduce_basis([step for step in found.free if step])
    first = _nearest_plane_point(found.first, steps, {p + k: Fraction(float(v)) for k, v in enumerate(near)})
    yield from _with_values(near, first, p)
    yield from _by_milp(selection, low, high, first, steps, nodes, must_stop)


def _with_values(near: Array, point: Point, p: int) -> Iterator[Array]:
    """The values with those of a point in their place, where floats hold them."""
    if all(abs(value) <= LARGEST for value in point.values()):
        values = near.copy()
        for j, value in point.items():
            values[j - p] = float(value)
        yield values


def _by_milp(
    selection: Selection,
    low: Array,
    high: Array,
    first: Point,
    steps: Sequence[Point],
    nodes: int,
    must_stop: Callable[[], bool],
) -> Iterator[Array]:
    """Values by HiGHS over t and the extra variables that are in no equation; none where it finds none."""
    rows, p = selection.rows, selection.n_features
    held = sorted({*first, *(j for step in steps for j in step)})
    others = [j for j in range(p, p + len(rows.extra)) if j not in held]
    place = {j: len(steps) + k for k, j in enumerate(others)}
    far = np.full(len(steps), highs.highs_infinity())
    model = highs.HighsModel()
    try:
        model.add_columns(np.concatenate([-far, low[others]]), np.concatenate([far, high[others]]))
        model.make_whole(np.array([*range(len(steps)), *(place[j] for j in others if rows.extra.integer[j - p])]))
        model.set_option("mip_max_nodes", nodes)
        stated = [(terms_of(rows.matrix, r), float(rows.low[r]), float(rows.high[r])) for r in range(len(rows))]
        stated += [(iter([(j, 1.0)]), float(low[j]), float(high[j])) for j in held]
        for terms, least, most in stated:
            slopes, constant = [Fraction(0)] * (len(steps) + len(others)), Fraction(0)
            for j, a in terms:
                if j in place:
                    slopes[place[j]] += Fraction(a)
                    continue
                constant += Fraction(a) * (first.get(j, 0) if j >= p else Fraction(float(low[j])))
                for k, step in enumerate(steps):
                    slopes[k] += Fraction(a) * step.get(j, 0)
            size = max(map(abs, slopes), default=Fraction(0))
            if size:
                lower, upper = (
                    float((Fraction(end) - constant) / size) if np.isfinite(end) else end for end in (least, most)
                )
                model.add_row(lower, upper, np.arange(len(slopes)), np.array([float(v / size) for v in slopes]))
        solution = highs.solve(model, stop=must_stop)
    except (NumericalError, OverflowError):
        return
    if solution.values is None:
        return
    point = first
    for step, times in zip(steps, np.rint(solution.values[: len(steps)]).tolist(), strict=True):
        point = {j: point.get(j, 0) + int(times) * step.get(j, 0) for j in {*point, *step}}
    values = np.zeros(len(rows.extra))
    for j in others:
        values[j - p] = solution.values[place[j]]
    yield from _with_values(values, point, p)


def _nearest_plane_point(first: Point, steps: Sequence[Point], near: dict[int, Fraction]) -> Point:
    """The point first + Σ t_k step_k that is near others, by nearest planes."""
    columns = sorted({*first, *(j for step in steps for j in step)})
    point, (orthogonal, _) = dict(first), _gram_schmidt(steps, columns)
    for step, direction in zip(reversed(steps), reversed(orthogonal), strict=True):
        square = sum((v * v for v in direction), Fraction(0))
        off = sum(((near[j] - point.get(j, 0)) * v for j, v in zip(columns, direction, strict=True)), Fraction(0))
        times = round(off / square)
        point = {j: point.get(j, 0) + times * step.get(j, 0) for j in columns}
    return point


def _gram_schmidt(steps: Sequence[Point], columns: Sequence[int]) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """Gram and Schmidt's directions of the steps, and the coefficients of the steps on them."""
    directions: list[list[Fraction]] = []
    shares: list[list[Fraction]] = []
    for step in steps:
        row = [Fraction(step.get(j, 0)) for j in columns]
        left, mu = list(row), list[Fraction]()
        for one in directions:
            share = _exact_dot(row, one) / _exact_dot(one, one)
            mu.append(share)
            left = [a - share * b for a, b in zip(left, one, strict=True)]
        directions.append(left)
        shares.append(mu)
    return directions, shares


def _exact_dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _reduce_basis(steps: Sequence[Point]) -> list[Point]:
    """A reduced basis of the lattice that the steps, which are independent, span."""
    basis, columns, k = [dict(step) for step in steps], sorted({j for step in steps for j in step}), 1
    directions, shares = _gram_schmidt(basis, columns)
    while k < len(basis):
        for i in reversed(range(k)):
            times = round(shares[k][i])
            if times:
                basis[k] = {j: basis[k].get(j, 0) - times * basis[i].get(j, 0) for j in columns}
                for one in range(i):
                    shares[k][one] -= times * shares[i][one]
                shares[k][i] -= times
        before = _exact_dot(directions[k - 1], directions[k - 1])
        if _exact_dot(directions[k], directions[k]) >= (LOVASZ - shares[k][k - 1] ** 2) * before:
            k += 1
        else:
            basis[k - 1], basis[k] = basis[k], basis[k - 1]
            directions, shares = _gram_schmidt(basis, columns)
            k = max(k - 1, 1)
    return basis
