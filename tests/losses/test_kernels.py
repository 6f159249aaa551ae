"""The compiled functions of every registered loss, beside its NumPy forms, differences and exact arithmetic."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mipfs.compiled import compiled
from mipfs.kernels import loss as kernel
from mipfs.kernels.earned import value_below
from mipfs.kernels.structures import only_read
from mipfs.losses import LOSSES, get_loss

NAMES = [name for name in LOSSES if get_loss(name).kernels is not None]
U = 2.0**-53


@compiled()
def all_at(loss, t, m, move, alpha, c, rho, beta, inner, curve, sums):  # type: ignore[no-untyped-def]
    """Every function by its address; `sums` (3, 2)."""
    kernel.at_margins(loss.at_margins, m, alpha, c, rho, beta, sums[0])
    kernel.slope(loss.slope, t, m, move, alpha, c, rho, sums[1])
    kernel.curvature(loss.curvature, beta, c, rho, inner, curve, sums[2])


def drawn(name: str, seed: int, n: int = 203) -> Any:
    """A loss and margins, a step, multipliers and weights."""
    r = np.random.default_rng(seed)
    m = np.where(r.random(n) < 0.3, r.choice([1.0, 0.0, -1.0, 2.0], n), 2.0 * r.standard_normal(n))
    c = only_read(np.exp(r.standard_normal(n)))
    return get_loss(name), m, r.standard_normal(n), c * r.random(n), c, float(np.exp(r.standard_normal()))


def met(name: str, seed: int, t: float) -> Any:
    loss, m, move, alpha, c, rho = drawn(name, seed)
    beta, curve, inner, sums = np.empty(m.size), np.empty(m.size), np.empty(m.size, np.int64), np.empty((3, 2))
    all_at(loss.kernels.made, t, m, move, alpha, c, rho, beta, inner, curve, sums)
    return loss, m, move, alpha, c, rho, beta, curve, inner[: int(sums[2, 0])], sums


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_values_at_margins(name: str, seed: int) -> None:
    loss, m, _, alpha, c, rho, beta, *_, sums = met(name, seed, 0.0)
    assert sums[0, 0] == pytest.approx(loss.value(m, c), rel=1e-12)
    assert sums[0, 1] == pytest.approx(loss.dual_value(beta, c), rel=1e-10)
    if loss.kernels.is_smoothed:
        np.testing.assert_allclose(beta, np.clip(alpha + rho * (1.0 - m), 0.0, c), rtol=1e-13, atol=1e-15)
        return
    h = 1e-6
    one = np.array(
        [loss.value(m[i : i + 1] - h, c[i : i + 1]) - loss.value(m[i : i + 1] + h, c[i : i + 1]) for i in range(m.size)]
    )
    np.testing.assert_allclose(beta, one / (2 * h), atol=2e-6 * c.max())
    assert np.all((beta >= 0.0) & (beta <= loss.top(c)))
    assert sums[0, 1] == pytest.approx(sums[0, 0] + m @ beta, rel=1e-9), "Fenchel and Young"


@pytest.mark.parametrize("t", [0.0, 0.37, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_slopes_along_a_step(name: str, t: float) -> None:
    loss, m, move, alpha, c, rho, *_, sums = met(name, 7, t)
    at, b, s = m + t * move, np.empty(m.size), np.empty((3, 2))
    rest = np.empty(m.size, np.int64), np.empty(m.size), s
    all_at(loss.kernels.made, 0.0, at, move, alpha, c, rho, b, *rest)
    assert sums[1, 0] == pytest.approx(-float(b @ move), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_curvature_is_that_of_the_slope(name: str) -> None:
    loss, m, _, alpha, c, rho, beta, curve, inner, _ = met(name, 3, 0.0)
    assert np.all(np.diff(inner) > 0)
    h, found = 1e-6, np.zeros(m.size)
    found[inner] = curve[inner]
    lower, upper = np.empty(m.size), np.empty(m.size)
    for out, moved in ((lower, m - h), (upper, m + h)):
        all_at(
            loss.kernels.made,
            0.0,
            moved,
            m,
            alpha,
            c,
            rho,
            out,
            np.empty(m.size, np.int64),
            np.empty(m.size),
            np.empty((3, 2)),
        )
    wanted = (lower - upper) / (2 * h)
    smooth = np.abs((beta - lower) - (upper - beta)) < 1e-3 * h * np.maximum(c, rho)  # no kink within h
    smooth &= np.abs(lower - beta + (upper - beta)) < 1e-3 * h * np.maximum(c, rho)
    assert smooth.mean() > 0.5
    np.testing.assert_allclose(found[smooth], wanted[smooth], atol=1e-4 * np.maximum(c, rho).max())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", [name for name in NAMES if name != "logistic"])
def test_the_dual_value_is_rounded_down(name: str, seed: int) -> None:
    """Below g(α) in rationals, and by no more than some units of rounding of its terms."""
    loss, *_, c, _ = drawn(name, seed)
    alpha = c * np.random.default_rng(seed).random(c.size) * (1.0 if loss.has_top else 3.0)
    exact = sum(map(Fraction, alpha.tolist()), Fraction(0))
    if loss.dual_depends_on_c:
        exact -= sum(
            (Fraction(a) ** 2 / (2 * Fraction(w)) for a, w in zip(alpha.tolist(), c.tolist(), strict=True)), Fraction(0)
        )
    found = Fraction(float(value_below(alpha, c, loss.kernels.made)))
    assert found <= exact
    assert exact - found <= Fraction(8 * (c.size + 8) * U * loss.dual_magnitude(alpha, c))


def test_the_dual_value_of_the_logistic_loss_is_rounded_down() -> None:
    """The same in 60 digits."""
    loss, *_, c, _ = drawn("logistic", 1)
    alpha = c * np.random.default_rng(1).random(c.size)
    alpha[:3] = 0.0, c[1], 1e-300
    with localcontext(prec=60):
        terms = [(Decimal(a), Decimal(w)) for a, w in zip(alpha.tolist(), c.tolist(), strict=True)]
        exact = -sum((x * (x / w).ln() for a, w in terms for x in (a, w - a) if x), Decimal(0))
        found = float(value_below(alpha, c, loss.kernels.made))
        assert Decimal(found) <= exact
        assert float(exact - Decimal(found)) <= 8 * (c.size + 8) * U * loss.dual_magnitude(alpha, c)
