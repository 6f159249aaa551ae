"""A regulariser of one's own that breaks what proofs rest on is refused by name before it is used."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.check.regulariser import twice_above
from mipfs.check.rounding import CertificateError
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers
from mipfs.regularisers import laws
from mipfs.regularisers.base import Regulariser


@dataclass(frozen=True)
class Kinked(Regulariser):
    """½w² + μ|w|, with h(ω) = ½ max(0, |ω| − μ)²; each field after μ breaks a law."""

    mu: Any = 0.5
    ridge: float = 1.0
    offset: float = 0.0
    lower: float = 1.0
    shift: float = 0.0
    bump: float = 0.0
    name = "kinked"
    formula = "½w² + μ|w|"

    def value(self, w: Array) -> Array:
        return 0.5 * self.ridge * w**2 + self.mu * np.abs(w) + self.offset + self.bump * (np.abs(w) > 0.5)

    def conjugate(self, omega: Array) -> Array:
        return self.lower * 0.5 * np.maximum(0.0, np.abs(omega) - self.mu) ** 2

    def weight(self, omega: Array) -> Array:
        return np.sign(omega) * np.maximum(0.0, np.abs(omega) - self.mu) + self.shift

    def curvature(self, omega: Array) -> Array:
        return (np.abs(omega) > self.mu).astype(float)


@dataclass(frozen=True)
class OfEach(Kinked):
    """μ one number for every feature."""

    def at(self, ids: Integers) -> OfEach:
        return OfEach(tuple(np.asarray(self.mu)[ids]))

    def check(self, count: int) -> None:
        if len(self.mu) != count:
            raise UsageError(f"mu has {len(self.mu)} numbers")

    def value(self, w: Array) -> Array:
        return 0.5 * w**2 + np.asarray(self.mu) * np.abs(w)

    def conjugate(self, omega: Array) -> Array:
        return 0.5 * np.maximum(0.0, np.abs(omega) - np.asarray(self.mu)) ** 2

    def weight(self, omega: Array) -> Array:
        return np.sign(omega) * np.maximum(0.0, np.abs(omega) - np.asarray(self.mu))


@dataclass(frozen=True)
class Bent(Regulariser):
    """½w² + μH(w; 0.1), whose conjugate and weight change their form at `end` times where they should."""

    mu: float = 1.0
    end: float = 1.0
    name = "bent"
    formula = "½w² + μH(w)"

    def value(self, w: Array) -> Array:
        size = np.abs(w)
        return 0.5 * w**2 + self.mu * np.where(size <= 0.1, 5.0 * w**2, size - 0.05)

    def conjugate(self, omega: Array) -> Array:
        return np.where(
            self.is_near(omega), 0.5 * omega * self.near(omega), 0.5 * self.far(omega) ** 2 + 0.05 * self.mu
        )

    def weight(self, omega: Array) -> Array:
        return np.where(self.is_near(omega), self.near(omega), np.sign(omega) * self.far(omega))

    def curvature(self, omega: Array) -> Array:
        return np.where(self.is_near(omega), 1.0 / (1.0 + 10.0 * self.mu), 1.0)

    def is_near(self, omega: Array) -> Array:
        return np.asarray(np.abs(omega) <= self.end * (self.mu + 0.1))

    def near(self, omega: Array) -> Array:
        return np.asarray(omega / (1.0 + 10.0 * self.mu))

    def far(self, omega: Array) -> Array:
        return np.asarray(np.abs(omega) - self.mu)


def data() -> mipfs.Instance:
    r = np.random.default_rng(1)
    X = r.standard_normal((30, 5))
    return mipfs.Instance.from_arrays(X, np.where(X[:, 0] + 0.3 * r.standard_normal(30) > 0, 1.0, -1.0))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"ridge": 0.9}, "below ½w²"),
        ({"offset": 0.1}, "its value at 0 is not 0"),
        ({"lower": 0.99}, "no bound would hold"),
        ({"lower": 1.01}, "that weight is to be the best one"),
        ({"shift": 0.01}, "that weight is to be the best one"),
        ({"bump": 1.0}, "not convex"),
        ({"mu": np.nan}, "its value"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_a_law_that_is_broken_is_named(broken: dict[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=f"the regulariser 'kinked'.*{said}"):
        laws.check(Kinked(**broken), 5)


@pytest.mark.parametrize("claim", ["is_ridge", "has_kernels", "is_homogeneous"])
def test_a_claim_that_the_values_contradict_is_refused(claim: str) -> None:
    """A subclass of the ridge with a value of its own was answered, and verified, as the ridge."""
    said = f"the regulariser 'kinked' says {claim}, but its value at w = .* and .*: say {claim} = False"
    with pytest.raises(UsageError, match=said):
        laws.check(type("Claims", (Kinked,), {claim: True})(mu=0.5), 5)
    laws.check(type("Claims", (Kinked,), {claim: True})(mu=0.0), 5)


class Huber:
    """½w² + μH(w; δ) in rational numbers, whose conjugate changes its form at `end` times where it should."""

    words, is_homogeneous = "Huber's function beside a ridge", False

    def __init__(self, end: Fraction = Fraction(1)) -> None:
        self.mu, self.delta, self.end = Fraction(20), Fraction(3, 10), end

    def value(self, j: int, w: Fraction) -> Fraction | None:
        size = abs(w)
        bent = w * w / (2 * self.delta) if size <= self.delta else size - self.delta / 2
        return w * w / 2 + self.mu * bent

    def conjugate(self, j: int, omega: Fraction) -> Fraction:
        if abs(omega) <= self.end * (self.mu + self.delta):
            return omega * omega / 2 * self.delta / (self.mu + self.delta)
        return (abs(omega) - self.mu) ** 2 / 2 + self.mu * self.delta / 2


def test_the_checker_refuses_a_conjugate_below_what_some_weight_has() -> None:
    """A threshold that is wrong in both halves of a file: a proven bound lay 0.3% above the optimum."""
    omega = np.array([[1.0, -25.0, 0.0], [40.0, 20.4, -0.1]])
    found = twice_above(Huber(), 0, omega, np.zeros(omega.shape))
    assert np.all(found >= 0.0)
    for end in (Fraction(3, 2), Fraction(101, 100)):
        with pytest.raises(CertificateError, match="stated wrongly: of feature 2 its conjugate at"):
            twice_above(Huber(end), 0, omega, np.zeros(omega.shape))
    nowhere = np.array([[np.inf, 1.0, np.nan]])
    assert twice_above(Huber(), 0, nowhere, np.zeros((1, 3)))[0, 0] == np.inf


def test_a_threshold_that_is_wrong_is_found_at_whatever_size() -> None:
    for mu in (0.003, 0.2, 7.0, 60.0):
        laws.check(Bent(mu), 3)
        with pytest.raises(UsageError, match="no bound would hold"):
            laws.check(Bent(mu, 1.5), 3)


def test_what_keeps_them_is_taken() -> None:
    for mu in (0.0, 1e-6, 0.5, 30.0, 1e6):
        laws.check(Kinked(mu), 5)
    laws.check(OfEach((0.0, 0.1, 2.0, 3.0, 1e3)), 5)
    with pytest.raises(UsageError, match="3 numbers"):
        laws.check(OfEach((0.0, 0.1, 2.0)), 5)


@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley", "monolithic"])
def test_a_solve_refuses_what_breaks_them(driver: str) -> None:
    problem = mipfs.Problem(data(), M=2, regulariser=Kinked(lower=0.9))
    with pytest.raises(UsageError, match="no bound would hold"):
        mipfs.solve(problem, driver)


def test_one_that_is_not_registered_is_told_how() -> None:
    with pytest.raises(UsageError, match=r"REGULARISERS\['kinked'\] = "):
        mipfs.solve(mipfs.Problem(data(), M=2, regulariser=Kinked()))
