"""A loss of one's own, called on a few samples before it is first used: what its methods return, and its kernels.

The kernels run in Python, which looks where they read and write, and are compared with the methods. What the methods
return is looked at by `mipfs.losses.laws`.
"""

from __future__ import annotations

import inspect
import numbers
from functools import cache
from typing import Any

import numpy as np

from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.extension import file_of, is_own, told_by_name

MARGINS = (-2.0, -0.3, 0.4, 0.9, 1.7)
WEIGHTS = (0.5, 1.0, 2.0, 0.7, 3.0)
SHARES = (0.5, 0.3, 0.9, 0.01, 0.7)
"""Of the top of the dual box, or of the weights where it is open."""
RHO = 0.5
AGREEMENT = 1e-7
"""What rounding may change, relative to the terms, in fastmath too."""


@cache
def check(loss: Any) -> None:
    """Refuse a loss whose methods fail or return no numbers, once a process; those of the package are tested instead.

    Raises
    ------
    UsageError
    """
    if is_own(type(loss).__module__):
        return
    said = f"the loss {loss.name!r}"
    m, c, alpha = _samples(loss)
    with np.errstate(all="ignore"):
        for name, given in (("value", m), ("dual_value", alpha), ("dual_magnitude", alpha)):
            _number(said, loss, name, given, c)
        if loss.derivatives.__module__ != "mipfs.losses.base":  # which only says that there are none
            _check_derivatives(said, loss, m, c)


@cache
def check_kernels(loss: Any) -> None:
    """Refuse a loss whose kernels fail, or contradict its methods, once a process; the package's are tested instead.

    Raises
    ------
    UsageError
    """
    if is_own(type(loss).__module__) or loss.kernels is None:
        return
    said = f"the loss {loss.name!r}"
    with np.errstate(all="ignore"):
        _check_sums(said, loss, *_samples(loss))
        _check_curvature(said, loss, *_samples(loss))


def _samples(loss: Any) -> tuple[Array, Array, Array]:
    """Margins, loss weights, and a dual vector inside the box."""
    c = np.array(WEIGHTS)
    return np.array(MARGINS), c, np.array(SHARES) * c * (loss.max_slope if loss.has_top else 1.0)


def _number(said: str, loss: Any, name: str, *given: Array) -> float:
    """What a method returns, which is one number."""
    method = getattr(loss, name)
    with told_by_name(f"{said}: {name}", method):
        found = method(*given)
    if not isinstance(found, numbers.Real) and not (isinstance(found, np.ndarray) and found.shape == ()):
        what = f"an array of shape {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
        raise UsageError(f"{said}: {name} of {file_of(method)} returns {what}; it returns one number, of all samples")
    return float(found)


def _check_derivatives(said: str, loss: Any, m: Array, c: Array) -> None:
    """Two arrays over the samples."""
    with told_by_name(f"{said}: derivatives", loss.derivatives):
        found = loss.derivatives(m, c)
    if not isinstance(found, tuple) or [np.shape(one) for one in found] != [m.shape] * 2:
        raise UsageError(
            f"{said}: derivatives of {file_of(loss.derivatives)} returns two arrays with a number for every sample"
        )


def _check_sums(said: str, loss: Any, m: Array, c: Array, alpha: Array) -> None:
    """The sums of `at_margins` and `dual` are those of the methods; `slope` runs."""
    value, dual = _number(said, loss, "value", m, c), _number(said, loss, "dual_value", alpha, c)
    beta, sums = np.empty(m.size), np.zeros(2)
    if _ran(said, loss, "at_margins", m.copy(), alpha, c, RHO, beta, sums):
        _compare(said, loss, "at_margins", "sums[0]", sums[0], "value", value, abs(value))
        if not loss.kernels.is_smoothed:
            g, terms = _number(said, loss, "dual_value", beta, c), abs(value) + float(np.abs(m) @ beta)
            _compare(said, loss, "at_margins", "sums[1] = g(beta)", sums[1], "dual_value(beta)", g, terms)
    if _ran(said, loss, "dual", alpha.copy(), c, sums):
        size = _number(said, loss, "dual_magnitude", alpha, c)
        _compare(said, loss, "dual", "sums[0]", sums[0], "dual_value", dual, size)
    _ran(said, loss, "slope", 0.1, m.copy(), np.ones(m.size), alpha, c, RHO, sums)


def _check_curvature(said: str, loss: Any, m: Array, c: Array, alpha: Array) -> None:
    """`curvature` finds positive numbers, at samples in rising order."""
    inner, curve, sums = np.zeros(m.size, dtype=np.int64), np.zeros(m.size), np.zeros(2)
    if not _ran(said, loss, "curvature", alpha, c, RHO, inner, curve, sums):
        return
    found = inner[: int(sums[0])] if 0 <= sums[0] <= m.size else inner
    right = (
        0 <= sums[0] <= m.size
        and np.all(np.diff(found) > 0)
        and 0 <= found.min(initial=0) <= found.max(initial=0) < m.size
    )
    if not right or not np.all((curve[found] > 0.0) & np.isfinite(curve[found])):
        raise UsageError(
            f"{said}: kernels.curvature of {_file(loss, 'curvature')} finds {curve.tolist()} at the samples "
            f"{found.tolist()}; it writes those with L'' > 0 in rising order, and L'' of these, which is positive"
        )


def _ran(said: str, loss: Any, name: str, *given: Any) -> bool:
    """Whether Python runs one of the compiled functions; what it cannot run is left to the compiler."""
    kernel = getattr(loss.kernels, name)
    what = f"{said}: kernels.{name}"
    if not hasattr(kernel, "py_func"):
        raise UsageError(f"{what} of {file_of(kernel)}: decorate it with mipfs.compiled.compiled")
    try:
        inspect.signature(kernel.py_func).bind(*given)
    except TypeError as error:
        raise UsageError(f"{what} of {_file(loss, name)} takes other arguments than it is given: {error}") from None
    try:
        kernel.py_func(*given)
    except IndexError as error:
        raise UsageError(f"{what} of {_file(loss, name)} reads or writes beyond an array ({error})") from None
    except Exception:
        return False
    return True


def _compare(said: str, loss: Any, name: str, what: str, found: float, method: str, right: float, size: float) -> None:
    """Refuse what a kernel says other than the method of the loss does."""
    if not abs(found - right) <= AGREEMENT * max(size, abs(right)):
        raise UsageError(
            f"{said}: kernels.{name} of {_file(loss, name)} says {what} = {found:.6g} where {method} says {right:.6g}"
        )


def _file(loss: Any, name: str) -> str:
    """The file of a compiled function of a loss."""
    return file_of(getattr(loss.kernels, name).py_func)
