"""Axes: where ticks stand and how they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high` > `low`, logarithmic or not."""

    low: float
    high: float
    is_log: bool = False

    @classmethod
    def over(cls, values: Sequence[float], *, is_log: bool = False, pad: float = 0.0) -> Scale:
        """An axis on which all values lie, with a margin of `pad` of its length on both sides.

        A logarithmic axis of values that are not positive is a plain one.
        """
        low, high = min(values, default=0.0), max(values, default=1.0)
        if is_log and low > 0:
            a, b = math.log10(low), math.log10(high)
            short = max(0.0, 1.0 - (b - a)) / 2  # a decade at least: what hardly differs is not to look as if it did
            a, b = a - short, b + short
            return cls(10 ** max(-300.0, a - pad * (b - a)), 10 ** min(300.0, b + pad * (b - a)), True)
        if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
            half = abs(low) * 0.05 or 1.0
            low, high = low - half, high + half
        most = 1e307
        room = pad * (min(high, most) - max(low, -most))
        return cls(max(-most, low - room), min(most, high + room))

    def place(self, value: float) -> float:
        """Where a value lies, 0 to 1; beyond them outside."""
        if self.is_log:
            low, high = math.log10(self.low), math.log10(self.high)
            return (math.log10(max(value, 1e-300)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, wanted: int = 6) -> list[float]:
        """Round numbers inside the axis, at most about `wanted`."""
        if self.is_log:
            return self._decade_ticks(wanted)
        step = _round_step((self.high - self.low) / max(1, wanted))
        first = math.ceil(self.low / step - 1e-9)
        found = [step * k for k in range(first, first + 2 * wanted + 2)]
        return [0.0 if abs(value) < step * 1e-9 else value for value in found if value <= self.high + step * 1e-9]

    def _decade_ticks(self, wanted: int) -> list[float]:
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        every = max(1, math.ceil((last - first + 1) / max(1, wanted)))
        found = [10.0**k for k in range(first, last + 1, every)]
        if len(found) >= 3:
            return found
        fine = [a * 10.0**k for k in range(first - 1, last + 1) for a in (1, 2, 5)]
        return [value for value in fine if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)]


def labels(values: Sequence[float], as_they_are: bool = False) -> list[str]:
    """The ticks as text, each with as many digits as tell it from the next; or as they are."""
    if len(values) < 2 or as_they_are:
        return [f"{value:.6g}" for value in values]
    step = min(abs(b - a) for a, b in pairwise(values))
    size = max(map(abs, values))
    if not 0 < step < math.inf or not size < math.inf:
        return [f"{value:.6g}" for value in values]
    digits = min(15, max(1, math.ceil(math.log10(size) - math.log10(step) - 1e-9) + 1))
    return [f"{value:.{digits}g}" if size >= 1e6 or size < 1e-4 else _plain_decimal(value, step) for value in values]


def _plain_decimal(value: float, step: float) -> str:
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    text = f"{value:.{min(decimals, 12)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, at least `least`."""
    power = 10.0 ** math.floor(math.log10(max(least, 1e-300)))
    return next(a * power for a in (1.0, 2.0, 5.0, 10.0) if a * power >= least * (1 - 1e-9))
