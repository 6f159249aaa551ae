"""What the checker is told of a loss: right beside the loss itself, and run apart from all else in its file."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mipfs import losses
from mipfs.check.rounding import CertificateError
from mipfs.check.stated import stated_loss
from mipfs.losses import LOSSES, get_loss
from mipfs.stated import U

NAMES = [name for name in LOSSES if name != "structural"]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_loss(name: str) -> None:
    """Values as the loss has them; slopes that differences do not exceed; g not above that of the loss."""
    stated, loss, r = stated_loss(name), get_loss(name), np.random.default_rng(0)
    short = np.concatenate([3.0 * r.standard_normal(200), [0.0, 1.0, -1.0, 2.0, 40.0, -40.0]])
    one = np.array([loss.at_slacks(short[i : i + 1], np.ones(1)) for i in range(short.size)])
    np.testing.assert_allclose(stated.losses(short), one, rtol=1e-14, atol=0)
    h = 1e-6
    assert np.all(stated.losses(short) - stated.losses(short - h) <= h * stated.steepest(short) + 1e-14 * (1 + one))
    assert (stated.target, stated.max_slope, stated.has_rho) == (loss.target, loss.max_slope, loss.has_rho)
    c = np.exp(r.standard_normal(50))
    alpha = c * r.random((7, 50)) * (1.0 if loss.has_top else 2.0)
    sums = np.array([float(sum(map(Fraction, row.tolist()), Fraction(0))) for row in alpha])
    g = stated.dual_below(alpha, sums, c)
    wanted = np.array([loss.dual_value(row, c) for row in alpha])
    size = np.array([loss.dual_magnitude(row, c) for row in alpha])
    assert np.all(g <= wanted + 2 * U * 58 * size)
    assert np.all(g >= wanted - 1e-13 * size)


def test_the_checker_loads_nothing_of_the_solver() -> None:
    """In a process of its own: statements of all losses are read, and no file of a loss is imported."""
    lines = [
        "import sys", "from mipfs.check import tree", "from mipfs.check.stated import stated_loss",
        f"print([stated_loss(name).words for name in {NAMES!r}])",
        "seen = [m for m in sys.modules if m.startswith('mipfs.losses.') or m in ('mipfs.problem', 'mipfs.compiled')]",
        "print(seen)",
    ]  # fmt: skip
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    words, seen = done.stdout.splitlines()
    assert words == str([stated_loss(name).words for name in NAMES])
    assert [m for m in eval(seen) if m.startswith("mipfs.losses.")] == []


FILE = """
from mipfs.stated import StatedLoss
import numpy as np
import mipfs.losses.hinge as solver
from scipy.special import expit

def helper(short):
    return np.maximum(0.0, short)

class Stated(StatedLoss):
    words = "w"
    def losses(self, short):
        return {body}
    def steepest(self, short):
        return short
    def dual_below(self, alpha, sums, c):
        return sums
"""


@pytest.mark.parametrize("body", ["helper(short)", "solver.LOSS.value(short, short)", "expit(short)"])
def test_a_statement_cannot_call_what_it_checks(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The helpers of its file, and what that imports of anything else, are not there when the checker runs it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "stated_case.py").write_text(FILE.format(body=body))
    monkeypatch.setitem(losses.LOSSES, "case", "stated_case")
    with pytest.raises(NameError):
        stated_loss("case").losses(np.ones(2))
    (tmp_path / "stated_case.py").write_text(FILE.format(body="np.maximum(0.0, short)"))
    assert stated_loss("case").losses(np.array([-1.0, 2.0])).tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("max_slope = 1.5", "its dual is 1.125 at alpha = 1.125, c = 1, but loss .* at margin -1e.06"),
        ("max_slope = float('inf')", "its dual is"),
        ("max_slope = float('nan')", "is stated as nan"),
        ("max_slope = 0.0", "is stated as 0.0"),
        ("target = 0.0", "its dual is"),
    ],
)
def test_a_dual_that_lies_above_its_loss_is_refused(
    change: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    text = FILE.format(body="np.maximum(0.0, short)").replace('words = "w"', f'words = "w"\n    {change}')
    (tmp_path / "stated_wrong.py").write_text(text)
    monkeypatch.setitem(losses.LOSSES, "case", "stated_wrong")
    with pytest.raises(CertificateError, match=message):
        stated_loss("case")


@pytest.mark.parametrize("text", [None, "x = 1\n"])
def test_what_states_nothing_is_refused(text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    if text is not None:
        (tmp_path / "stated_none.py").write_text(text)
    monkeypatch.setitem(losses.LOSSES, "case", "stated_none")
    for name in ("case", "structural", "unheard of"):
        with pytest.raises(CertificateError, match="no certificate is known"):
            stated_loss(name)
