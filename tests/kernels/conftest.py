"""Steps that are inlined into their one caller, run as the plain Python that they are written in.

Compiled alone each of them would be compiled a second time, with all that it calls.
"""

from __future__ import annotations

from typing import Any

import pytest

from mipfs.kernels import boolean_newton
from mipfs.kernels.columns import lines
from mipfs.losses import get_loss
from mipfs.pointers import Step
from tests.kernels.loss_cases import NAMES, made


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a relaxation, what is inlined is its Python, and a step that is called by its address is called by name.

    Dense columns are added and multiplied by NumPy.
    """

    def call(step: Step, *arguments: Any) -> Any:
        return step.function(*arguments)

    def add_columns(Z: Any, cols: Any, scale: Any, out: Any) -> None:
        out += scale @ lines.py_func(Z)[cols]

    def dot_columns(Z: Any, cols: Any, v: Any, out: Any) -> None:
        out[:] = lines.py_func(Z)[cols] @ v

    def by_address(name: str) -> Any:
        """A function of the losses, found among them by its address."""

        def called(address: int, *arguments: Any) -> None:
            found = {getattr(made(kind), name): kind for kind in range(len(NAMES))}
            getattr(get_loss(NAMES[found[address]]).kernels, name)(*arguments)

        return called

    for name in ("slope", "curvature", "dual"):
        monkeypatch.setattr(boolean_newton, name, by_address(name))
    monkeypatch.setattr(boolean_newton, "add_columns", add_columns)
    monkeypatch.setattr(boolean_newton, "dot_columns", dot_columns)
    monkeypatch.setattr(boolean_newton, "update_scores", boolean_newton.update_scores.py_func)
    monkeypatch.setattr(boolean_newton, "call_step", call)
    for name, value in vars(boolean_newton).copy().items():
        if getattr(value, "targetoptions", {}).get("inline") == "always":
            monkeypatch.setattr(boolean_newton, name, value.py_func)
