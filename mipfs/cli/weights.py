"""``--nonnegative``, ``--nonpositive``, ``--weight-bounds``, ``--box``: bounds on the weights, on the user's scale; and
``--weight-rows``: rows over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipfs.cli.options import parse_names
from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.data.instance import Instance
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
        "--weight-bounds",
        metavar="NAME=L:U",
        help="Bounds on a weight, e.g. age=-1:2; an end may be left out; age=0.2: is 0.2 or more if selected.",
    ),
]
BoxOption = Annotated[
    float | None, typer.Option("--box", metavar="W", help="No weight is larger than W, on the scale of the data.")
]

WeightRows = Annotated[
    str | None,
    typer.Option("--weight-rows", metavar="rows.lp", help="Rows over the weights that hold too, an LP file."),
]


def with_weight_rows(problem: Problem, path: str | None) -> Problem:
    """The problem with the rows over the weights of an LP file, where one is given, on top of its own."""
    from mipfs.readers.lp_rows import read_weight_rows

    if path is None:
        return problem
    return problem.replace(weight_rows=[*problem.rows_over_weights, *read_weight_rows(path, problem.atoms.raw)])


def bound_weights(
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
    from mipfs.data.bounds import both, settle_bounds
    from mipfs.readers.sidecar import DataDescription

    data = problem.data
    asked = _collect_bounds(data, nonnegative, nonpositive, bounds, box)
    if not asked:
        return problem
    if (
        isinstance(data.labels.positive, str)
        and positive is None
        and DataDescription.beside(Path(data.source)).positive is None
    ):
        raise UsageError(
            f"weights are bounded towards the class +1, and the labels are words: --positive {data.labels.positive!r} "
            f"or --positive {data.labels.negative!r} says which one that is"
        )
    checked = [settle_bounds(one, data.index, data.like, data.groups) for one in asked]
    return problem.replace(weight_bounds=both(problem.weight_bounds or {}, *checked))


def bounded_classes(
    instances: list[Instance],
    nonnegative: str | None,
    nonpositive: str | None,
    bounds: Sequence[str] | None,
    box: float | None,
) -> list[Instance]:
    """The data of every class against the rest with the bounds that the options say, on top of its own.

    A name is ``feature|class``, or that of a feature, for every class.

    Raises
    ------
    UsageError
        A bound that cannot be read.
    """
    from mipfs.data.against_rest import with_bounds

    asked = _collect_bounds(instances[0], nonnegative, nonpositive, bounds, box)
    return with_bounds(instances, *asked, on_top=True) if asked else instances


def _collect_bounds(
    data: Instance, nonnegative: str | None, nonpositive: str | None, bounds: Sequence[str] | None, box: float | None
) -> list[dict[str, tuple[float, float]]]:
    """What the options say, one after the other; nothing where there are none."""
    from mipfs.data.bounds import of_box, of_signs

    if nonnegative is None and nonpositive is None and not bounds and box is None:
        return []
    signs = of_signs(*(() if text is None else _parse_feature_names(text, data) for text in (nonnegative, nonpositive)))
    whole = {} if box is None else of_box(data.feature_names, box)
    return [signs, *map(_parse_bound, bounds or ()), whole]


def _parse_feature_names(text: str, data: Instance) -> tuple[str, ...]:
    """The names of features; the name of one that holds a comma as it is, or among others in double quotes.

    Raises
    ------
    UsageError
    """
    if text in data.index:
        return (text,)
    found = parse_names(text)
    split = [name for name in data.feature_names if "," in name and name in text and name not in found]
    if split and not all(name in data.index for name in found):
        raise UsageError(
            f"{text}: the name {split[0]!r} holds a comma; write it in double quotes, '\"{split[0]}\",...'"
        )
    return found


def _parse_bound(text: str) -> dict[str, tuple[float, float]]:
    """NAME=L:U."""
    name, equals, ends = text.rpartition("=")
    low, colon, high = ends.partition(":")
    if not (name and equals and colon):
        raise UsageError(f"--weight-bounds {text}: write NAME=L:U, for example age=-1:2, age=0: or age=:2")
    try:
        return {name.strip(): (float(low or -math.inf), float(high or math.inf))}
    except ValueError:
        raise UsageError(f"--weight-bounds {text}: {ends!r} is no pair of numbers L:U") from None
