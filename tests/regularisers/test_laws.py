"""What proofs ask of a regulariser, of every one that is registered and of the manual's: in rational numbers."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mipfs import regularisers
from mipfs.check.regulariser import stated_regulariser, terms_above, twice_above
from mipfs.check.rounding import CertificateError
from tests.test_one_file import EXAMPLES

CASES: list[tuple[str, dict[str, Any]]] = [
    ("ridge", {}), ("shrunk", {"mu": 0.0}), ("shrunk", {"mu": 0.37}),
    ("box", {}), ("box", {"low": 0.0}), ("box", {"high": 0.37}), ("box", {"low": -0.37, "high": 2.5}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manual's regulariser, in the table."""
    (tmp_path / "toy_regulariser.py").write_text(EXAMPLES["toy_regulariser"])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "toy_regulariser", raising=False)
    monkeypatch.setitem(regularisers.REGULARISERS, "shrunk", "toy_regulariser")


def numbers(seed: int, count: int = 60) -> Any:
    """Numbers of all sizes, and some about where the manual's has its kink."""
    r = np.random.default_rng(seed)
    wide = r.choice([-1.0, 1.0], count) * 10.0 ** r.uniform(-12, 8, count)
    near = 0.37 + r.uniform(-1, 1, 20) * 10.0 ** r.uniform(-16, -1, 20)
    return np.concatenate([wide, near, -near, [0.0, 0.37, -0.37]])


def each() -> Iterator[tuple[Any, Any]]:
    for name, parameters in CASES:
        made = regularisers.get_regulariser(name, **parameters)
        exact = stated_regulariser({"regulariser": made.stated})
        assert exact is not None
        yield made, exact


def held(made: Any, x: Any) -> Any:
    """Weights that the regulariser allows."""
    return np.clip(x, *made.ends)


def test_both_classes_of_a_file_say_the_same() -> None:
    for made, exact in each():
        x = numbers(1)
        for values, exactly in ((made.value(x), exact.value), (made.conjugate(x), exact.conjugate)):
            for found, one in zip(values.tolist(), x.tolist(), strict=True):
                right = exactly(0, Fraction(one))
                assert (right is None) == (found == np.inf)
                room = 0 if right is None else Fraction(2.0**-53) * Fraction(made.rounding) * right + Fraction(1e-300)
                assert right is None or abs(Fraction(found) - right) <= room


def test_the_conjugate_is_that_of_the_value() -> None:
    """h(ω) ≥ ωw − r(w) for all w that are allowed, with equality at w = h'(ω)."""
    for made, exact in each():
        points = [Fraction(one) for one in numbers(2, 30)[::3].tolist()]
        weights = [Fraction(one) for one in held(made, numbers(2, 30)[::3]).tolist()]
        for omega, w in itertools.product(points, weights):
            assert exact.conjugate(0, omega) >= omega * w - exact.value(0, w)
        x = numbers(3)
        w = made.weight(x)
        assert np.all(np.abs(made.conjugate(x) - (x * w - made.value(w))) <= 1e-14 * np.abs(x * w))


def test_the_laws() -> None:
    """r(0) = 0; r − ½w² is convex and not negative; h'' lies between 0 and 1 and is the slope of h'."""
    for made, exact in each():
        assert exact.value(0, Fraction(0)) == exact.conjugate(0, Fraction(0)) == 0
        points = [Fraction(one) for one in held(made, numbers(4, 30)[::2]).tolist()]
        more = {w: exact.value(0, w) - w * w / 2 for w in points}
        assert min(more.values()) >= 0
        for one, other in itertools.combinations(points, 2):
            middle = (one + other) / 2
            assert exact.value(0, middle) - middle * middle / 2 <= (more[one] + more[other]) / 2
        x = numbers(5)
        x = x[np.abs(np.abs(x) - 0.37) > 1e-5 * np.abs(x)]
        step = 1e-7 * np.abs(x)
        slope = (made.weight(x + step) - made.weight(x - step)) / np.where(step > 0, 2 * step, 1.0)
        assert np.all((made.curvature(x) >= 0.0) & (made.curvature(x) <= 1.0))
        np.testing.assert_allclose(slope[x != 0], made.curvature(x)[x != 0], atol=1e-6)


def test_the_conjugate_is_rounded_up() -> None:
    """Nowhere within the radius is h above what bounds take, of the solver and of the checker."""
    r = np.random.default_rng(6)
    for made, exact in each():
        omega = numbers(7, 200)
        radius = np.abs(omega) * 10.0 ** r.uniform(-17, 0, omega.size)
        above, other = made.conjugate_above(omega, radius), twice_above(exact, 3, omega[None], radius[None])[0]
        for x, far, ours, theirs in zip(*(a.tolist() for a in (omega, radius, above, other)), strict=True):
            for share in (-1, Fraction(-1, 3), 0, Fraction(1, 2), 1):
                right = exact.conjugate(3, Fraction(x) + share * Fraction(far))
                assert right <= Fraction(ours)
                assert 2 * right <= Fraction(theirs)


def test_scaling_and_perspective() -> None:
    """(P) divided by a number, over columns times its root; and σr(w/σ)."""
    r = np.random.default_rng(8)
    for made, exact in each():
        size, x, sigma = 7.3, numbers(9), r.uniform(0.01, 1.0, numbers(9).size)
        scaled = made.scaled(size)
        root = np.sqrt(size)
        np.testing.assert_allclose(scaled.value(x), made.value(root * x) / size, rtol=1e-14)
        np.testing.assert_allclose(scaled.conjugate(x), made.conjugate(root * x) / size, rtol=1e-14)
        w = scaled.weight(x)
        assert np.all(np.abs(scaled.conjugate(x) - (x * w - scaled.value(w))) <= 1e-14 * np.abs(x * w))
        assert (scaled is made) == made.is_homogeneous
        if made.is_homogeneous:
            np.testing.assert_allclose(made.conjugate(3.0 * x), 9.0 * made.conjugate(x), rtol=1e-14)
        w = sigma * held(made, x)
        exactly = terms_above(exact, np.arange(x.size), [Fraction(one) for one in w.tolist()], sigma)
        assert float(made.perspective(w, sigma).sum()) == pytest.approx(exactly, rel=1e-12)
        assert made.perspective(np.array([0.0, 1.0]), 0.0).tolist() == [0.0, np.inf]


def test_what_is_not_stated_as_it_must_be_is_refused() -> None:
    for given in (
        3,
        {},
        {"name": 3},
        {"name": "none"},
        {"name": "ridge", "mu": 1.0},
        {"name": "shrunk", "mu": float("nan")},
    ):
        with pytest.raises(CertificateError):
            stated_regulariser({"regulariser": given})
    assert stated_regulariser({}) is None
    assert stated_regulariser({"regulariser": {"name": "shrunk", "mu": 1.0}})
