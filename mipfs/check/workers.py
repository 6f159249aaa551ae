"""Who does pieces of work: the process that checks, one after the other, or several, which the checker knows not of.

What pieces there are depends on the certificate alone, and a piece does not depend on those that were done before it.
So whoever does them, what is found, every digit of it, and the first refusal are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

Found = TypeVar("Found")


class PieceRunner(Protocol):
    """What has the pieces of a work done."""

    def __call__(self, work: Callable[[int], Found], count: int, size: int) -> Iterator[Found]:
        """work(0), …, work(count - 1) in this order, or the first one's error; a piece takes `size` bytes."""


def one_by_one(work: Callable[[int], Found], count: int, size: int) -> Iterator[Found]:
    """Every piece by this process."""
    return map(work, range(count))


def ignore_progress(done: int, total: int) -> None:
    """Nobody hears it."""


@dataclass(frozen=True)
class LeafWorkers:
    """Who does pieces of work, and who hears how many of how many leaves are done."""

    each: PieceRunner = one_by_one
    told: Callable[[int, int], object] = ignore_progress


ALONE = LeafWorkers()
