"""How to get a result again: the command line that it came from, or the lines of Python that say the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mipfs import drivers
from mipfs.lab.page.parts import code
from mipfs.report.visible import escape_invisible, escape_text
from mipfs.result.result import Result, StopReason

NAMES = {"lambda": "lam"}
DEFAULTS = {"loss": "hinge", "bias": True, "lambda": 0.0, "margin": "unit"}
AS_STATED = (
    "M", "C", "lambda", "loss", "bias", "margin", "measure", "beta", "k", "forced_in", "forced_out", "class_weight",
    "weight_bounds", "weight_rows",
)  # fmt: skip
"""Parameters that `Problem` takes as a result states them."""
NOT_OF_PROBLEM = ("gap",)
MOST_CHARACTERS = 400
"""Characters of a value that is written out."""


def reproduce(result: Result) -> str:
    """Commands, the data that they need, and the versions."""
    saved = "RESULT.json" if result.path is None else result.path.name
    parts = []
    if result.command is not None:
        parts += ["<p>The command line that it came from:</p>", code(escape_invisible(result.command))]
    else:
        parts += ["<p>In Python:</p>", code(python(result))]
    if result.certificate is not None or result.path is not None:
        parts += ["<p>Its check, and its use on other data:</p>", code(_check_commands(result, saved))]
    return "".join([*parts, *facts(result)])


def facts(result: Result) -> list[str]:
    """The data's fingerprint and the versions."""
    found = [f"data, SHA-256 of its samples: <code>{escape_text(result.data_sha256)}</code>"]
    if result.certificate is not None:
        name = result.certificate["file"]
        sha = result.certificate["sha256"]
        found.append(f"certificate {escape_text(name)}, SHA-256: <code>{escape_text(sha)}</code>")
    if result.versions:
        found.append(
            ", ".join(f"{escape_text(name)} {escape_text(version)}" for name, version in result.versions.items())
        )
    return [f'<p class="facts">{line}</p>' for line in found]


def _check_commands(result: Result, saved: str) -> str:
    lines = [f"mipfs verify {saved} DATA"] if result.certificate is not None else []
    return "\n".join([*lines, f"mipfs evaluate {saved} TEST"] if result.has_classifier else lines)


def python(result: Result) -> str:
    """The problem and the call of `solve`."""
    options = [f"driver={result.driver!r}"]
    if isinstance(result.params.get("gap"), (int, float)):
        options.append(f"gap={result.params['gap']:g}")
    if result.stop_reason is StopReason.TIME_LIMIT:
        options.append(f"time_limit={math.ceil(result.seconds)}")
    near = result.near_optimal or {}
    options += [f"pool_{name}={near[name]!r}" for name in ("gap", "size") if near.get(name) is not None]
    lines = problem_lines(result.params, result.scaling.get("kind"))
    if result.atoms is not None:
        lines.append("# over the atoms that the JSON names")
    if any(".toml" not in row["origin"] for row in result.rows):
        lines.append("# and the rows above that are not the data's own: problem.with_rows(A, lb, ub)")
    if result.driver in drivers.DRIVERS and drivers.get_driver(result.driver).CAPABILITY.is_declared:
        lines.append("# the formulation that was declared is not in the JSON")
    return "\n".join([*lines, f"result = mipfs.solve(problem, {', '.join(options)})"])


def problem_lines(params: Mapping[str, Any], scale: Any) -> list[str]:
    """The lines of Python up to the `Problem`."""
    told = {
        name: value for name, value in params.items() if value != DEFAULTS.get(name, ...) and value not in (None, [])
    }
    if "weight_rows" in told:
        told["weight_rows"] = [(row["coefficients"], row["lower"], row["upper"]) for row in told["weight_rows"]]
    given = [f"{NAMES.get(name, name)}={_shorten_repr(told[name])}" for name in AS_STATED if name in told]
    odd = [name for name in told if name not in (*AS_STATED, *NOT_OF_PROBLEM)]
    head = ["import mipfs", "", f'data = mipfs.read("DATA", scale={scale!r})']
    more = [f"# and what params of the JSON state beside: {', '.join(odd)}"] if odd else []
    return [*head, f"problem = mipfs.Problem(data, {', '.join(given)})", *more]


def _shorten_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_CHARACTERS else "..."
