"""Warm starts from the values of a model: its support is taken, what is none is left out with a word."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import mipfs
from mipfs import models
from mipfs.errors import StartWarning, UsageError
from mipfs.formulation import compile
from mipfs.formulation.start_values import support_of
from tests.formulation.test_charges import NAMES, C, best, data


def pyomo_model() -> Any:
    model = models.fsp_m(data(), M=2, C=C)
    model.select.not_both = pyo.Constraint(expr=model.select.sigma["a"] + model.select.sigma["b"] <= 1)
    return model


def cvxpy_model() -> Any:
    made = models.big_m(data(), M=2, C=C, binary=True)
    return made.with_constraints([made.sigma["a"] + made.sigma["b"] <= 1])


def give(model: Any, sigma: Any = None, w: Any = None) -> None:
    if hasattr(model, "select"):
        for variables, values in ((model.select.sigma, sigma), (model.svm.w, w)):
            for v, value in zip(variables.values(), values if values is not None else [None] * 5, strict=True):
                v.set_value(value, skip_validation=True)
        return
    model.sigma.save_value(None if sigma is None else np.array(sigma, float))
    model.variables["w"].save_value(None if w is None else np.array(w, float))


OPTIMUM = best("hinge", True, np.zeros(5), 2, lambda S: not {0, 1} <= S)
MODELS = {"pyomo": pyomo_model, "cvxpy": cvxpy_model}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    ("sigma", "w", "support"),
    [
        ([0, 1e-8, 1, 0.9999999, 0], None, ("c", "d")),
        ([0, 0, 0, 0, 0], [1, 1, 1, 1, 1], ()),
        (None, [0.0, 1e-9, -0.4, 0.0, 0.2], ("c", "worst texture")),
        ([0, 0, 0, 0, 1], None, ("worst texture",)),
    ],
)
def test_the_support_is_taken(kind: str, sigma: Any, w: Any, support: tuple[str, ...]) -> None:
    model = MODELS[kind]()
    give(model, sigma, w)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert support_of(model, compile(model)) == support
        for driver in ("branch", "gbd"):
            give(model, sigma, w)
            result = mipfs.solve(model, driver, warm_start=True, gap=1e-7)
            assert result.objective == pytest.approx(OPTIMUM, rel=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    ("sigma", "w", "word"),
    [
        (None, None, "no variable has a value"),
        ([1, 1, 0, 0, 0], None, "the rows do not allow the selection of a, b"),
        ([1, 0, 1, 1, 0], None, "the rows do not allow the selection of a, c, d"),
        ([0.5, 0, 0, 0, 0], None, r"sigma\['a'\] is 0\.5, neither 0 nor 1"),
        ([2.0, 0, 0, 0, 0], None, r"sigma\['a'\] is 2, neither 0 nor 1"),
        ([float("nan"), 0, 0, 0, 0], None, r"sigma\['a'\] has no value"),
        (None, [float("inf"), 0, 0, 0, 0], r"w\['a'\] has no value"),
        (None, [1, 1, 1, 1, 1], "the rows do not allow"),
    ],
)
def test_what_is_no_start_is_left_out_with_a_word(kind: str, sigma: Any, w: Any, word: str) -> None:
    model = MODELS[kind]()
    give(model, sigma, w)
    with pytest.warns(StartWarning, match=word):
        result = mipfs.solve(model, "branch", warm_start=True, gap=1e-7)
    assert result.objective == pytest.approx(OPTIMUM, rel=1e-6)
    assert result.status.name == "OPTIMAL"


def test_a_solved_model_begins_where_it_ended() -> None:
    model = pyomo_model()
    first = mipfs.solve(model, gap=1e-7)
    first_record = []
    again = mipfs.solve(model, gap=1e-7, warm_start=True, callback=lambda record: first_record.append(record) and None)
    assert again.selected == first.selected
    assert first_record[0].objective == pytest.approx(OPTIMUM, rel=1e-6)
    assert set(first.selected) <= set(NAMES)


def test_refusals() -> None:
    with pytest.raises(UsageError, match="a Problem has none: give start"):
        mipfs.solve(mipfs.Problem(data(), M=2), warm_start=True)
    with pytest.raises(UsageError, match="start and warm_start both"):
        mipfs.solve(pyomo_model(), warm_start=True, start=["a"])
    model = pyomo_model()
    give(model, [0, 0, 1, 0, 0])
    with pytest.warns(StartWarning, match="the driver 'kelley' takes no start"):
        assert mipfs.solve(model, "kelley", warm_start=True).objective >= OPTIMUM * (1 - 1e-9)
