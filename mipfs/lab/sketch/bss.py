"""Single-set spectral sparsification (Batson, Spielman, Srivastava 2009), as Paul 2016 chooses columns by it.

V (p, κ) has orthonormal columns, q = √(κ/r). A grows by t v_j v_j' a step between two barriers, l below its eigenvalues
and h above, which rise by 1 and δ = (1 + q)/(1 − q). Row j may be taken where 𝒰_j ≤ ℒ_j (mathematics.md, section 8),

    ℒ_j = v_j'(A − (l+1)I)⁻²v_j / (φ(l+1) − φ(l)) − v_j'(A − (l+1)I)⁻¹v_j,            φ(l) = tr (A − lI)⁻¹
    𝒰_j = v_j'((h+δ)I − A)⁻²v_j / (φ̄(h) − φ̄(h+δ)) + v_j'((h+δ)I − A)⁻¹v_j,          φ̄(h) = tr (hI − A)⁻¹

with t⁻¹ = ½(𝒰_j + ℒ_j). Both are quadratic forms in v_j, so the test is one form, v_j'(ℒ − 𝒰)v_j ≥ 0, and the tie rule
(the largest column not yet taken) asks for it from the largest column on, until one passes: most steps look at some
dozens of rows, and the worst at one matrix product over all of them. φ and φ̄ at the new barriers follow from those of
the step before by the rank-one update; a step costs two inverses and two products of order κ besides.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import lapack

from mipfs.errors import NumericalError, UsageError
from mipfs.lab.sketch.picks import Picks, Progress, Promise, gathered
from mipfs.lab.sketch.source import Source
from mipfs.plumbing.arrays import Array, Integers

FIRST_ROWS, MOST_ENTRIES = 64, 1 << 22
"""Rows of the first product of a step (each next one has twice as many), and entries of one product at most."""
COMPARED_DIGITS = 30
"""Binary digits that columns are compared by."""


class Barriers:
    """A between its two barriers.

    Parameters
    ----------
    rank : int >= 1, the κ columns of V
    r : int > rank, steps to come

    Attributes
    ----------
    A : (κ, κ)
    low, high : float, l and h
    rise : float, δ
    phi_low, phi_high : float, φ(l) and φ̄(h)
    """

    def __init__(self, rank: int, r: int) -> None:
        q = math.sqrt(rank / r)
        self.rank = rank
        self.r = r
        self.slack = (r - rank) / r / (1.0 + q)
        """1 − q, without its cancellation."""
        self.rise = (1.0 + q) / self.slack
        root = math.sqrt(r * rank)
        self.A = np.zeros((rank, rank))
        self.low, self.high = -root, self.rise * root
        self.phi_low, self.phi_high = rank / root, rank / self.high
        self._barrier_forms()

    def _barrier_forms(self) -> None:
        """The two forms of ℒ and 𝒰 at A, each (κ, κ), and what the next φ are made of."""
        eye = np.eye(self.rank)
        self._below = _positive_inverse(self.A - (self.low + 1.0) * eye)
        self._above = _positive_inverse((self.high + self.rise) * eye - self.A)
        self._traces = float(np.trace(self._below)), float(np.trace(self._above))
        self.lower = self._below @ self._below / (self._traces[0] - self.phi_low) - self._below
        self.upper = self._above @ self._above / (self.phi_high - self._traces[1]) + self._above
        self.test = self.lower - self.upper
        if not (np.all(np.isfinite(self.test)) and self._traces[0] > self.phi_low and self.phi_high > self._traces[1]):
            raise _barrier_error(self.rank, self.r)

    def step(self, v: Array) -> float:
        """Add t v v' for a row v (κ,) of V, raise the barriers, and return t."""
        size = float(v @ v)
        unit = v / math.sqrt(size)
        inverse = 0.5 * float(unit @ self.lower @ unit + unit @ self.upper @ unit)
        if not inverse > 0.0:
            raise _barrier_error(self.rank, self.r)
        t = 1.0 / inverse
        below, above = self._below @ unit, self._above @ unit
        # (M + t uu')⁻¹ has the trace of M⁻¹ less t ‖M⁻¹u‖²/(1 + t u'M⁻¹u).
        self.phi_low = self._traces[0] - t * float(below @ below) / (1.0 + t * float(unit @ below))
        self.phi_high = self._traces[1] + t * float(above @ above) / (1.0 - t * float(unit @ above))
        self.A += t * np.outer(unit, unit)
        self.low += 1.0
        self.high += self.rise
        return t / size

    def advance(self) -> None:
        """Make ready for the next step."""
        self._barrier_forms()


def _positive_inverse(M: Array) -> Array:
    """The inverse of a positive definite matrix, by Cholesky."""
    factor, failed = lapack.dpotrf(M, lower=1, overwrite_a=1)
    if failed == 0:
        half, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed != 0:
        raise _barrier_error(M.shape[0], None)
    inverse = np.tril(half)
    inverse += np.tril(half, -1).T
    return np.ascontiguousarray(inverse)


def _barrier_error(rank: int, r: int | None) -> NumericalError:
    steps = "" if r is None else f", {r} picks"
    return NumericalError(f"round-off carried an eigenvalue over a barrier (rank {rank}{steps}); ask for more picks")


def sparsify(V: Array, norms: Array, r: int, progress: Progress | None = None) -> tuple[Integers, Array]:
    """Take r rows of V one by one.

    Parameters
    ----------
    V : (p, κ) with orthonormal columns
    norms : (p,) norms of the columns that V came from, by which one of several candidates is taken (`candidate_order`)
    r : int > κ

    Returns
    -------
    order : (r,) positions as they were taken
    weight : (r,) what each adds to the diagonal of DD'

    Raises
    ------
    UsageError
        r is not above κ.
    NumericalError
        Round-off left no way on.
    """
    rank = V.shape[1]
    check_picks(r, rank)
    filled = np.einsum("ij,ij->i", V, V) > 0.0
    queue = candidate_order(V, norms)
    queue = queue[filled[queue]]
    every = queue
    taken = np.zeros(V.shape[0], dtype=bool)
    state = Barriers(rank, r)
    order = np.empty(r, dtype=np.int64)
    weight = np.empty(r)
    for step in range(r):
        if step > 0:
            state.advance()
        place = first_passing(V, queue, state.test)
        if place is not None:
            j = int(queue[place])
            queue = np.delete(queue, place)
        else:
            again = every[taken[every]]
            found = first_passing(V, again, state.test)
            j = int(again[found]) if found is not None else best(V, every, state.test)
            queue = queue[queue != j]
        order[step], weight[step], taken[j] = j, state.step(V[j]), True
        if progress is not None:
            progress(step + 1, r)
    return order, weight * (state.slack / r)


def candidate_order(V: Array, norms: Array) -> Integers:
    """The rows in the order in which candidates are taken, shape (p,): the largest column first (Paul 2016, 5.2).

    Standardised columns are all of one size: among columns that are equal up to round-off, the largest ‖v_j‖ goes
    first, and then the first position.
    """
    return np.lexsort((-_round_digits(np.einsum("ij,ij->i", V, V)), -_round_digits(norms)))


def _round_digits(values: Array) -> Array:
    """Nine significant digits of every value, so that what is equal but for round-off is equal."""
    mantissa, exponent = np.frexp(values)
    rounded: Array = np.ldexp(np.round(mantissa * 2.0**COMPARED_DIGITS), exponent - COMPARED_DIGITS)
    return rounded


def first_passing(V: Array, queue: Integers, test: Array) -> int | None:
    """The first place in a queue of rows (m,) whose form v'test v is not negative; None without one."""
    start = 0
    width = FIRST_ROWS
    most = max(FIRST_ROWS, MOST_ENTRIES // V.shape[1])
    while start < queue.size:
        rows = V[queue[start : start + width]]
        passing = np.flatnonzero(np.einsum("ij,ij->i", rows @ test, rows) >= 0.0)
        if passing.size:
            return start + int(passing[0])
        start = start + width
        width = min(2 * width, most)
    return None


def best(V: Array, queue: Integers, test: Array) -> int:
    """The row of the largest form: what is taken where round-off lets none pass."""
    most = max(FIRST_ROWS, MOST_ENTRIES // V.shape[1])
    found = -1
    largest = -math.inf
    for start in range(0, queue.size, most):
        rows = V[queue[start : start + most]]
        values = np.einsum("ij,ij->i", rows @ test, rows)
        if values.max() > largest:
            found = int(queue[start + int(values.argmax())])
            largest = float(values.max())
    return found


def check_picks(r: int, rank: int, what: str = "the rank of the matrix", remedy: str = "") -> None:
    """Refuse r <= κ, where the barriers of BSS cannot be set.

    Raises
    ------
    UsageError
    """
    if r <= rank:
        remedy = remedy or f"ask for r = {4 * rank}, or for fewer directions by rank"
        raise UsageError(f"r = {r} must be above {rank}, {what}; {remedy}")


def promise_eigenvalues(rank: int, r: int) -> Promise:
    """The eigenvalues that BSS leaves: [(1 − q)², (1 + q)²], so that ε ≤ 2q + q² ≤ 3q (Paul 2016, Lemma 2)."""
    q = math.sqrt(rank / r)
    low = ((r - rank) / r / (1.0 + q)) ** 2
    return Promise(low, (1.0 + q) ** 2, 1.0, "BSS (Paul 2016, Lemma 1)", 3.0 * q)


def picks_for(rank: int, epsilon: float) -> int:
    """The fewest picks that promise eigenvalues in [1 − ε, 1 + ε]: r ≥ κ/q² with q = √(1 + ε) − 1.

    (1 − q)² ≥ 1 − ε then too, as (1 + q)² + (1 − q)² ≥ 2. The paper's r ≥ 9κ/ε² (Lemma 2) is never fewer.
    """
    return max(rank + 1, math.ceil(rank / (math.sqrt(1.0 + epsilon) - 1.0) ** 2))


def pick(source: Source, r: int, *, seed: int, projections: int | None, progress: Progress | None) -> Picks:
    """BSS on the right singular vectors (Paul 2016, Algorithm 1); the largest column first (section 5.2).

    Raises
    ------
    UsageError
        r is not above the rank.
    """
    basis = source.basis
    order, weight = sparsify(basis.V, source.norms, r, progress)
    return gathered(order, weight, promise_eigenvalues(basis.rank, r), rank=basis.rank)
