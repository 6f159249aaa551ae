"""What a result has as tables for a paper: the weights, and the near-optimal sets; as CSV, LaTeX or a data frame."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.result.result import Result

What = Literal["weights", "near-optimal"]

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
DIGITS = 6
"""Significant digits of a number in LaTeX; CSV and data frames have all of them."""


@dataclass(frozen=True)
class PrintedTable:
    """A table: its columns, and rows of text, numbers and None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def csv(self) -> str:
        """As CSV, every number with all its digits."""
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows([self.columns, *self.rows])
        return stream.getvalue()

    def latex(self) -> str:
        """As a ``tabular`` with the rules of the package booktabs, numbers to six digits."""
        kinds = (next((row[k] for row in self.rows if row[k] is not None), "") for k in range(len(self.columns)))
        sides = "".join("l" if isinstance(one, str) else "r" for one in kinds)
        lines = [" & ".join(map(_tex_number, row)) + r" \\" for row in (self.columns, *self.rows)]
        head = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", lines[0], r"\midrule"]
        return "\n".join([*head, *lines[1:], r"\bottomrule", r"\end{tabular}", ""])

    def frame(self, pandas: Any) -> Any:
        """As a data frame of `pandas`."""
        return pandas.DataFrame(list(self.rows), columns=list(self.columns))


def table_of(result: Result, what: What = "weights") -> PrintedTable:
    """The weights by size, or the near-optimal sets from the best on.

    Raises
    ------
    UsageError
        There is no classifier, or no list was asked for.
    """
    if not result.has_classifier:
        raise UsageError(f"the result has no classifier: its status is {result.status.name}")
    if what == "weights":
        return _weights_table(result)
    if result.near_optimal is None:
        raise UsageError("the result has no near-optimal sets; solve with --pool-gap 0.01 (pool_gap=0.01 in Python)")
    return _near_optimal(result.near_optimal["supports"])


def _weights_table(result: Result) -> PrintedTable:
    """Selected features, which may have no weight, and columns of what else was selected; the intercept last."""
    single = dict.fromkeys(name for name in result.selected if name in result.weights)
    names = [*single, *(name for name in result.weights if name not in single)]
    rows = [(name, float(result.weights[name])) for name in sorted(names, key=lambda name: -abs(result.weights[name]))]
    rows += [(name, 0.0) for name in result.selected if name not in single and not _has_columns(result, name)]
    return PrintedTable(("feature", "weight"), (*rows, ("(intercept)", float(result.intercept))))


def _has_columns(result: Result, name: str) -> bool:
    """Whether the weights of what is selected as a whole stand under its columns' names."""
    return any(one.startswith((f"{name}=", f"{name}[")) for one in result.weights)


def _near_optimal(supports: Sequence[Mapping[str, Any]]) -> PrintedTable:
    """From the best on: its place, value, how far above the best it is, its size and its features."""
    ordered = sorted(supports, key=lambda one: float(one["objective"]))
    least = float(ordered[0]["objective"]) if ordered else 0.0
    rows = []
    for place, one in enumerate(ordered, 1):
        value = float(one["objective"])
        over = 100.0 * (value - least) / abs(least) if least else None
        rows.append((place, value, over, len(one["selected"]), ", ".join(one["selected"])))
    return PrintedTable(("rank", "objective", "percent above the best", "size", "features"), tuple(rows))


def _tex_number(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"${value:.{DIGITS}g}$" if "e" not in f"{value:.{DIGITS}g}" else _tex_power(value)
    return "".join(_LATEX.get(one, one) for one in str(value))


def _tex_power(value: float) -> str:
    digits, _, exponent = f"{value:.{DIGITS}g}".partition("e")
    return rf"${digits} \cdot 10^{{{int(exponent)}}}$"
