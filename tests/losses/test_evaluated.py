"""The loss of a classifier beside exact rational arithmetic, on columns whose margins floats cannot tell."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.block import Block
from mipfs.losses import evaluated as module
from mipfs.losses import hinge, squared_hinge
from mipfs.losses.evaluated import CompensatedWeights, evaluate_loss


def exactly(loss, X, center, y, c, at: CompensatedWeights) -> Fraction:
    """Σ c_i max(0, 1 − y_i((x_i − center)'w + b)), or of the square, of rational numbers."""
    w = [Fraction(high) + Fraction(low) for high, low in zip(at.w, at.w_rest, strict=True)]
    total = Fraction(0)
    for row, label, weight in zip(X, y, c, strict=True):
        score = sum(((Fraction(x) - Fraction(m)) * one for x, m, one in zip(row, center, w, strict=True)), Fraction(0))
        slack = max(Fraction(0), 1 - Fraction(label) * (score + Fraction(at.b) + Fraction(at.b_rest)))
        total += Fraction(weight) * (slack if loss is hinge else slack * slack / 2)
    return total


@pytest.mark.parametrize("loss", [hinge, squared_hinge], ids=["hinge", "squared"])
@pytest.mark.parametrize("stored", ["dense", "sparse"])
@pytest.mark.parametrize("k", [1, 7, 200])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_within_its_own_error_of_the_exact_loss(loss, stored, k, seed):
    r = np.random.default_rng([k, seed, 5])
    n, mean = 30, 10.0 ** r.integers(0, 7)
    X = mean * (r.random((n, k)) < 0.7) + r.standard_normal((n, k))
    X[r.random((n, k)) < 0.2] = 0.0
    center = X.mean(axis=0) if stored == "dense" else np.zeros(k)
    w, y, c = r.standard_normal(k) / k**0.5, r.choice([-1.0, 1.0], n), 10.0 ** r.uniform(-3, 8, n)
    at = CompensatedWeights(w, float(r.standard_normal()), 2.0**-54 * w * r.random(k))
    # columns without a mean are divided so that every margin is 1 but for a rounding: what doubles cannot tell from 1
    margin = (X - center) @ w + at.b
    keep = np.abs(margin) > 1e-3
    X, y = X[keep] / np.where(stored == "dense", 1.0, margin[keep, None]), y[keep]
    c, block = c[keep], Block(sparse.csc_array(X) if stored == "sparse" else np.asfortranarray(X), center)
    value, error = evaluate_loss(loss.LOSS, block, y, c, at, 1e-30)
    exact = exactly(loss, X, center, y, c, at)
    assert abs(Fraction(value) - exact) <= Fraction(error)
    assert error <= 1e-12 * value + 1e-20 * float(c.sum()) * float(np.abs(X).sum(axis=1).max() + 1.0) ** 2


def test_scores_of_no_feature_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_EXACT_NUMBERS", 10)
    block = Block(np.zeros((11, 0)), np.zeros(0))
    assert module._of_measure(None, block, CompensatedWeights.of(np.zeros(0), 0.0)) is None
