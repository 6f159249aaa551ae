"""What a solve has, and why it stopped."""

from __future__ import annotations

import enum


class Status(enum.Enum):
    """What we have."""

    OPTIMAL = "OPTIMAL"
    """An incumbent whose gap to an earned bound is at most the asked gap."""
    FEASIBLE = "FEASIBLE"
    """An incumbent, with a larger gap."""
    RELAXED = "RELAXED"
    """A solved relaxation: its value is a bound."""
    INFEASIBLE = "INFEASIBLE"
    """No selection satisfies the rows."""
    NO_SOLUTION = "NO_SOLUTION"
    """Nothing was found before the run stopped."""
    NUMERICAL = "NUMERICAL"
    """Numbers too large or ill-scaled for a trustworthy answer."""


class StopReason(enum.Enum):
    """Why we stopped."""

    GAP_CLOSED = "GAP_CLOSED"
    """The gap reached the asked one."""
    TIME_LIMIT = "TIME_LIMIT"
    """The time limit passed."""
    MEMORY_LIMIT = "MEMORY_LIMIT"
    """The memory limit was reached."""
    ITERATION_LIMIT = "ITERATION_LIMIT"
    """The driver's iterations were used up."""
    INTERRUPTED = "INTERRUPTED"
    """Ctrl-C, or a callback asked to stop."""
    VALIDATION = "VALIDATION"
    """The validation error did not improve for the asked number of iterations (Aytug 2015, section 3.4)."""
    INFEASIBLE = "INFEASIBLE"
    """The rows were shown to contradict each other."""
    COMPLETED = "COMPLETED"
    """The driver did all that it does, and it closes no gap (a baseline, a fixed pool)."""
    NUMERICAL = "NUMERICAL"
    """What is left of the gap cannot be told from rounding errors, or a solver failed."""
