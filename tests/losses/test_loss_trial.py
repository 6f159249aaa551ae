"""A loss of one's own that fails, or whose parts contradict one another, is refused by name before its first solve."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mipfs.check.rounding import CertificateError
from mipfs.check.stated import _test_conjugate
from mipfs.errors import UsageError
from mipfs.losses import LOSSES, get_loss, laws, trial
from mipfs.losses.base import Loss
from mipfs.losses.terms import Terms
from mipfs.stated import StatedLoss

PAGE = Path(__file__).parents[2] / "docs" / "extend.md"


def toy(*changes: tuple[str, str]) -> Any:
    """The loss of the manual, some of its lines changed; its kernels run in Python alone."""
    (text,) = re.findall(r"```python\n# toy_loss\.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    names: dict[str, Any] = {"__name__": "toy_changed"}
    exec(compile(text, "toy_changed.py", "exec"), names)
    return names["LOSS"]


def tried(loss: Any) -> None:
    """Its methods, then its kernels."""
    trial.check(loss)
    trial.check_kernels(loss)


VALUE = "return float(c @ np.where(short < 1.0, 0.5 * short**2, short - 0.5))"
DUAL = "return float(np.sum(alpha - alpha * alpha / (2.0 * c)))"
DERIVATIVES = "return c * np.minimum(short, 1.0), c * ((short > 0.0) & (short < 1.0))"
WRONG = [
    ([(VALUE, "return c * short")], r"value of toy_changed.py returns an array of shape \(5,\); it returns one number"),
    ([(VALUE, "return None")], "value of toy_changed.py returns NoneType"),
    ([(DUAL, "return alpha - alpha * alpha / (2.0 * c)")], "dual_value of toy_changed.py returns an array"),
    ([(DUAL, "return alpha[7]")], r"dual_value of toy_changed.py:\d+: IndexError: index 7"),
    ([("def dual_value(self, alpha, c)", "def dual_value(self, alpha)")], "dual_value of toy_changed.py.*: TypeError"),
    ([(DERIVATIVES, "return c")], "derivatives of toy_changed.py returns two arrays"),
    ([("curve[i] = c[i]", "curve[i] = -c[i]")], r"kernels.curvature of toy_changed.py finds \[-.* is positive"),
    ([("inner[count] = i", "inner[count] = 4 - i")], "kernels.curvature of toy_changed.py finds"),
    ([("range(m.size):\n        short", "range(m.size + 1):\n        short")], "kernels.at_margins .* beyond an array"),
    ([("total += alpha[i] - bend", "total += alpha[i]")], "kernels.dual of .* where dual_value says"),
    ([("sums[1] = loss + total", "sums[1] = loss - total")], r"kernels.at_margins .*g\(beta\) = .* where dual_value"),
    ([("def slope(t, m, move, ", "def slope(t, m, ")], "kernels.slope of toy_changed.py takes other arguments"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_a_loss_that_fails_is_refused_by_name(changes: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"the loss 'huber-hinge': {message}"):
        tried(toy(*changes))


def test_a_right_loss_passes_and_one_that_python_cannot_run() -> None:
    loss = toy()
    tried(loss)

    def only_compiled(beta: Any, c: Any, rho: Any, inner: Any, curve: Any, sums: Any) -> None:
        raise NotImplementedError

    type(loss).kernels = replace(loss.kernels, curvature=SimpleNamespace(py_func=only_compiled))
    trial.check_kernels.__wrapped__(loss)
    type(loss).kernels = replace(loss.kernels, curvature=only_compiled)
    with pytest.raises(UsageError, match=r"kernels.curvature of test_loss_trial.py: decorate it with mipfs.compiled"):
        trial.check_kernels.__wrapped__(loss)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "structural"])
def test_the_losses_of_the_package_pass_as_they_would_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "is_own", lambda module: False)
    trial.check.__wrapped__(get_loss(name))
    trial.check_kernels.__wrapped__(get_loss(name))


STATED = """
class Stated(StatedLoss):
    words = "C Σ ℓ"

    def losses(self, short):
        return LOSSES

    def steepest(self, short):
        return np.ones_like(short)

    def dual_below(self, alpha, sums, c):
        return DUAL
"""


@pytest.mark.parametrize(
    ("value", "dual", "stated", "message"),
    [
        ("c @ (np.maximum(0, 1 - m) - 1)", "a.sum() - c.sum()", ("np.maximum(0.0, short) - 1.0", "sums - c.sum()"),
         r"its value is -0.5 at margin 0.5 and c = 1; a loss is a number of at least 0"),
        ("c @ np.abs(1.0 - m)", "a.sum()", ("np.abs(short)", "sums"),
         r"its value is 0.5 at margin 1.5 and c = 1, more than the 0 at 1; a loss never rises with the margin"),
        ("c @ np.where(m > 2, np.nan, np.maximum(0, 1 - m))", "a.sum()", ("np.where(short < -1, np.nan, 0)", "sums"),
         r"its value is nan at margin 3 and c = 1; a loss is a number"),
        ("c @ np.exp(-m)", "float(np.sum(a * (1.0 - np.log(a / c))))", None,
         r"falls with a slope of inf, above max_slope = 1: .* say max_slope = math.inf"),
    ],
)  # fmt: skip
def test_a_loss_that_is_negative_or_rises_is_refused_by_solver_and_checker(
    value: str, dual: str, stated: Any, message: str
) -> None:
    """One of negative values was answered OPTIMAL, at a wrong value, or divided by an objective of 0."""
    methods = {"value": lambda self, m, c: eval(value), "dual_value": lambda self, a, c: eval(dual)}
    methods["dual_magnitude"] = lambda self, a, c: float(np.abs(a).sum() + c.sum())
    loss = type("Wrong", (Loss,), methods | {"name": "wrong", "terms": Terms})()
    with pytest.raises(UsageError, match=f"the loss 'wrong':? {message}"):
        laws.check(loss)
    if stated is not None:
        names: dict[str, Any] = {"StatedLoss": StatedLoss, "np": np}
        exec(STATED.replace("LOSSES", stated[0]).replace("DUAL", stated[1]), names)
        with pytest.raises(CertificateError, match=r"'wrong' is stated wrongly: it is .* at least 0 and does not rise"):
            _test_conjugate(names["Stated"](), "wrong")
