"""``--nonnegative``, ``--nonpositive``, ``--weight-bounds``, ``--box``: bounds on the weights, on the user's scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipfs.cli.options import parse_names
from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.problem import Problem

Nonnegative = Annotated[
    str | None,
    typer.Option("--nonnegative", metavar="NAMES", help="Features whose weight is 0 or more, separated by commas."),
]
Nonpositive = Annotated[
    str | None,
    typer.Option("--nonpositive", metavar="NAMES", help="Features whose weight is 0 or less, separated by commas."),
]
WeightBounds = Annotated[
    list[str] | None,
    typer.Option(
        "--weight-bounds", metavar="NAME=L:U", help="Bounds on a weight, e.g. age=-1:2; an end may be left out."
    ),
]
BoxOption = Annotated[
    float | None, typer.Option("--box", metavar="W", help="No weight is larger than W, on the scale of the data.")
]


def bounded(
    problem: Problem,
    nonnegative: str | None,
    nonpositive: str | None,
    bounds: Sequence[str] | None,
    box: float | None,
    *,
    positive: object,
) -> Problem:
    """The problem with the bounds that the options say, on top of the data's own.

    Raises
    ------
    UsageError
        A bound that cannot be read, or signs without `positive` where the labels are words.
    """
    from mipfs.data.bounds import both, of_box, of_signs, settled
    from mipfs.readers.sidecar import Sidecar

    if nonnegative is None and nonpositive is None and not bounds and box is None:
        return problem
    data = problem.data
    if (
        isinstance(data.labels.positive, str)
        and positive is None
        and Sidecar.beside(Path(data.source)).positive is None
    ):
        raise UsageError(
            f"weights are bounded towards the class +1, and the labels are words: --positive {data.labels.positive!r} "
            f"or --positive {data.labels.negative!r} says which one that is"
        )
    signs = of_signs(*(() if text is None else parse_names(text) for text in (nonnegative, nonpositive)))
    whole = {} if box is None else of_box(data.feature_names, box)
    asked = [signs, *map(_parsed, bounds or ()), whole]
    checked = [settled(one, data.index, data.like) for one in asked]
    return problem.replace(weight_bounds=both(problem.weight_bounds or {}, *checked))


def _parsed(text: str) -> dict[str, tuple[float, float]]:
    """NAME=L:U."""
    name, equals, ends = text.rpartition("=")
    low, colon, high = ends.partition(":")
    if not (name and equals and colon):
        raise UsageError(f"--weight-bounds {text}: write NAME=L:U, for example age=-1:2, age=0: or age=:2")
    try:
        return {name.strip(): (float(low or -math.inf), float(high or math.inf))}
    except ValueError:
        raise UsageError(f"--weight-bounds {text}: {ends!r} is no pair of numbers L:U") from None
