"""The words for the parts of a problem, of plain values: what the checker says of it, and reports of a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, SupportsFloat

MOST_NAMED = 8
"""Names that a line lists."""
PLAIN_TERM = "½‖w‖²"
RHO = "(C/2) Σ max(0, ρ − m_i)² − ρ, ρ free"
LABELLINGS = "C max over labellings of Δ − w'a"


def objective(term: str, loss: str, C: Any, bias: str) -> str:
    """What is minimised."""
    return f"minimise {term} + {loss}, C = {C!r}, with {bias}"


def describe_regulariser(words: str) -> str:
    """The term of the weights where they have a regulariser."""
    return f"Σ r(w_j), r(w) = {words}"


def intercept(is_free: bool, constant: float | None) -> str:
    """The intercept; of a `constant` column its weight."""
    if constant is not None:
        return f"an intercept b = {number(constant)} u, the weight u penalised by ½u²"
    return "a free intercept" if is_free else "no intercept"


def measure(params: Mapping[str, Any]) -> str:
    """The measure of a structural loss, with its parameters."""
    given = "".join(f", {name} = {params[name]!r}" for name in ("beta", "k") if params.get(name) is not None)
    return f"measure: {params['measure']}{given}"


def selection(M: int | None, among: str, always: Sequence[str], never: Sequence[str], most: int = MOST_NAMED) -> str:
    """How many are selected, and which always or never."""
    line = f"select {'any number' if M is None else f'at most {M}'} of {among}"
    for names, word in ((always, "always"), (never, "never")):
        line += f"; {word} {list_names(names, most)}" if names else ""
    return line


def class_weights(weights: Iterable[tuple[Any, float]]) -> str:
    """What C is multiplied by, of pairs of a label and a weight."""
    return "C times " + ", ".join(f"{number(weight)} for {label}" for label, weight in weights)


def describe_functions(made: Mapping[str, Any]) -> str:
    """Which functions of single features are selected, of the entry `made` of the atoms."""
    given = ", ".join(f"{name} = {value!r}" for name, value in made["options"].items())
    return f"an atom is a function of one feature: {made['name']}, {given}"


def describe_bound(name: str, low: Any, high: Any) -> str:
    """The ends of a weight, None for none, of which there is one; with every digit, so that others are told apart."""
    least, most = (None if end is None else number(end) for end in (low, high))
    where = " where it is selected" if (low is not None and low > 0) or (high is not None and high < 0) else ""
    if least is None or most is None:
        return (f"{name} >= {least}" if most is None else f"{name} <= {most}") + where
    return (f"{least} <= {name} <= {most}" if low != high else f"{name} = {least}") + where


def weight_row(
    terms: Mapping[str, float], low: Any, high: Any, allowance: Any, most: int | None = None, *,
    groups: Sequence[str] | None = None,
) -> str:  # fmt: skip
    """A row over the weights, and within what it holds; one of parity by the names of its groups."""
    said = row({"terms": {f"w({name})": a for name, a in terms.items()}, "lb": low, "ub": high}, most)
    if groups is not None:
        first, second = groups
        apart = f"differ by at most {number(high)}" if high else "are equal"
        said = f"the mean scores of {first!r} and {second!r} {apart}"
    return f"{said}, to {float(allowance):.2g}" if allowance else said


def row(one: Mapping[str, Any], most: int | None = None) -> str:
    """A row of its entry, without its name: all of its terms, or the first `most`."""
    terms, low, high = row_sum(one["terms"], most), one["lb"], one["ub"]
    if low is None and high is None:
        return f"{terms}, free"
    if low == high:
        return f"{terms} = {number(high)}"
    least = "" if low is None else f"{number(low)} <= "
    return f"{least}{terms}" + ("" if high is None else f" <= {number(high)}")


def row_sum(terms: Mapping[str, float], most: int | None = None) -> str:
    """A sum of names with coefficients."""
    parts = [
        f"{'-' if a < 0 else '+'} {'' if abs(a) == 1 else f'{number(abs(a))} '}{name}"
        for name, a in islice(terms.items(), most)
    ]
    more = f" + … ({len(terms)} terms)" if most is not None and len(terms) > most else ""
    return (" ".join(parts).removeprefix("+ ") or "0") + more


def extra(name: str, one: Mapping[str, Any]) -> str:
    """A variable of the user's, of its entry."""
    low = "-inf" if one["lb"] is None else number(one["lb"])
    high = "inf" if one["ub"] is None else number(one["ub"])
    cost = f", costs {number(one['cost'])} each" if one.get("cost") else ""
    return f"extra variable {name} in [{low}, {high}]{', whole' if one['integer'] else ''}{cost}"


def describe_costs(variables: Mapping[str, Mapping[str, Any]], most: int | None = None) -> str:
    """What extra variables are and cost, of their entries: those that cost something."""
    costed = [(name, one) for name, one in variables.items() if one.get("cost")]
    said = []
    for name, one in islice(costed, most):
        value = "" if one.get("value") is None else f" = {one['value']:.6g}"
        said.append(f"{name}{value} at {one['cost']:.6g} each")
    more = f", and {len(costed) - len(said)} more" if len(said) < len(costed) else ""
    return ", ".join(said) + more


def number(value: Any) -> str:
    """Every digit of it: rows and penalties that differ are told apart; what is no number, in a file, as it stands."""
    return repr(float(value)).removesuffix(".0") if isinstance(value, SupportsFloat) else str(value)


def list_names(names: Iterable[str], most: int = MOST_NAMED) -> str:
    """The first names, and how many more there are."""
    shown = list(names)
    return ", ".join(shown) if len(shown) <= most else f"{', '.join(shown[:most])} and {len(shown) - most} more"


def as_sentence(line: str) -> str:
    """A line as a sentence."""
    return f"{line[0].upper()}{line[1:]}."
