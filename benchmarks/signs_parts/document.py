"""The report of `benchmarks/signs.py`."""

from __future__ import annotations

import math
import statistics

from exact_parts.markdown import table
from exact_parts.store import Line

from signs_parts.sources import BOXES, NAMED, SETS, SIZES, SOURCES, WEIGHTS, key_of

KINDS = ("source", "marginal")
ALL_BOXES = tuple(f"box {times}" for times in BOXES)
LEAST_RATIOS = 4
"""Ratios from which on quartiles are shown."""


def document(lines: dict[str, Line]) -> str:
    """The report."""
    out = ["# Signs and boxes on the weights", ""]
    out += ["Made by `MIPFS_DATA=folder python benchmarks/signs.py` from `signs.jsonl`: the hinge loss, a free"]
    out += ["intercept, columns standardised, one thread; every result was verified.", ""]
    if not lines:
        return "\n".join(out)
    out += [*_prices(lines), *_errors(lines), *_roots(lines), *_beside(lines), *_sources()]
    last = list(lines.values())[-1]
    machine, versions = last["machine"], last["versions"]
    said = ", ".join(f"{name} {one}" for name, one in versions.items())
    out += [f"Machine: {machine['cores']} cores, {machine['cpu']}, Python {machine['python']}, {said}.", ""]
    return "\n".join(out)


def _prices(lines: dict[str, Line]) -> list[str]:
    """By how much signs raise the optimum."""
    rows = []
    for name in NAMED:
        for M in SIZES:
            for C in WEIGHTS:
                free = lines.get(key_of(name, "free", M, C))
                if free is None:
                    continue
                cells = [_price(free, lines.get(key_of(name, kind, M, C))) for kind in KINDS]
                rows.append([name, f"{M}", f"{C:g}", f"{free['objective']:.6g}", *cells])
    checked = [line for line in lines.values() if line["suite"] != "cv"]
    accepted = sum(line["verified"] for line in checked)
    return [
        "## What signs cost", "",
        "The optimum with signs over the optimum without, less one, both proven to 1e-6 (the price is known to about",
        "twice that); or, where a proof was not finished in its limit, the interval that the bounds leave. *Source*:",
        "signs that the description of the data speaks for (below). *Marginal*: the sign of each feature's own",
        "correlation with the label.", "",
        table(["set", "M", "C", "optimum", "price, source", "price, marginal"], rows), "",
        f"{accepted} of {len(checked)} certificates of this report were accepted. A proof with signs took",
        f"{_times(lines, 'price', KINDS)} times the CPU seconds of the one without (median and quartiles): with",
        "bounds on weights nodes go to the interior point, one by one, and not to the compiled subtrees of ½w².", "",
    ]  # fmt: skip


def _times(lines: dict[str, Line], suite: str, kinds: tuple[str, ...]) -> str:
    """The CPU seconds with bounds over those without, of what was proven: median and quartiles."""
    ratios = []
    for line in lines.values():
        kind = line.get("signs") if suite == "price" else f"box {line.get('times')}"
        free = lines.get(key_of(line["set"], "free" if suite == "price" else "box 0", line["M"], line["C"]))
        if (
            line["suite"] == suite
            and kind in kinds
            and free is not None
            and line["status"] == free["status"] == "OPTIMAL"
        ):
            ratios.append(line["cpu_seconds"] / max(free["cpu_seconds"], 1e-3))
    if len(ratios) < LEAST_RATIOS:
        return "–"
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"


def _price(free: Line, signed: Line | None) -> str:
    """A cell: the price, and the seconds with signs and without."""
    if signed is None:
        return "no source" if free["set"] not in SOURCES else ""
    low = max(0.0, signed["bound"] / free["objective"] - 1.0)
    high = max(0.0, signed["objective"] / free["bound"] - 1.0) if free["bound"] > 0 else math.inf
    times = f"({signed['seconds']:.1f} s, free {free['seconds']:.1f} s)"
    if high < 1e-5:
        return f"0 {times}"
    same = high - low < 1e-4
    return f"{100 * high:.3f}% {times}" if same else f"{100 * low:.2f}% to {100 * high:.2f}% {times}"


def _errors(lines: dict[str, Line]) -> list[str]:
    """Errors on held-out folds."""
    rows = []
    for name in NAMED:
        for M in SIZES:
            free = lines.get(key_of(name, "cv free", M, 1.0))
            if free is None:
                continue
            own = f"{free['against']} of {len(free['errors'])}"
            cells = [_difference(free, lines.get(key_of(name, f"cv {kind}", M, 1.0))) for kind in KINDS]
            rows.append([name, f"{M}", f"{100 * _mean(free['errors']):.2f}%", own, *cells])
    return [
        "## What signs cost in error", "",
        "Errors on held-out samples, 5 folds, 4 times, C = 1, columns standardised and signs taken on the training",
        "samples; the difference to the classifier without signs over the same folds, plus or minus twice the standard",
        "error of its mean (folds overlap, so that this is a little too small). *Against*: in how many folds the best",
        "classifier without signs has a weight against them (of the source, or for australian the marginal ones).", "",
        table(["set", "M", "error without", "against", "difference, source", "difference, marginal"], rows), "",
    ]  # fmt: skip


def _difference(free: Line, signed: Line | None) -> str:
    """A cell: the mean of paired differences."""
    if signed is None:
        return "no source" if free["set"] not in SOURCES else ""
    apart = [100 * (a - b) for a, b in zip(signed["errors"], free["errors"], strict=True)]
    mean = _mean(apart)
    spread = math.sqrt(sum((one - mean) ** 2 for one in apart) / max(1, len(apart) - 1))
    return f"{mean:+.2f} ± {2 * spread / math.sqrt(len(apart)):.2f} points"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _roots(lines: dict[str, Line]) -> list[str]:
    """The gap of the relaxation, with and without a box."""
    rows = []
    for name in SETS:
        for M in SIZES:
            free = lines.get(key_of(name, "box 0", M, 1.0))
            if free is None:
                continue
            every = [free, *(lines.get(key_of(name, f"box {times}", M, 1.0)) for times in BOXES)]
            cells = ["" if one is None else _gap(one["root"], free["objective"]) for one in every]
            state = "" if free["status"] == "OPTIMAL" else f" ({100 * free['gap']:.1f}% open)"
            rows.append([name, f"{M}", f"{free['objective']:.6g}{state}", f"{free['largest']:.3g}", *cells])
    head = ["set", "M", "optimum", "largest abs. weight", "without", *(f"box {times}×" for times in BOXES)]
    return [
        "## A box at the root", "",
        "The gap of the relaxation 0 ≤ σ ≤ 1 to the best classifier, C = 1, without a box on the weights and with one",
        "of 1, 2 and 4 times the largest weight of the optimum (on the standardised columns).", "",
        table(head, rows), "",
    ]  # fmt: skip


def _gap(root: float | None, objective: float) -> str:
    return "" if root is None else f"{100 * max(0.0, 1.0 - root / objective):.2f}%"


def _beside(lines: dict[str, Line]) -> list[str]:
    """Whole proofs within a box, and what they say without it."""
    rows = []
    for name in SETS:
        for M in SIZES:
            free = lines.get(key_of(name, "box 0", M, 1.0))
            for times in BOXES:
                one = lines.get(key_of(name, f"box {times}", M, 1.0))
                if one is None or free is None:
                    continue
                without = one["bound_without_box"]
                left = "" if without is None else f"{100 * max(0.0, 1.0 - without / free['objective']):.2f}%"
                state = "proven" if one["status"] == "OPTIMAL" else f"{100 * one['gap']:.1f}% open"
                rows.append([name, f"{M}", f"{times}×", state, f"{one['seconds']:.1f} s ({free['seconds']:.1f} s)",
                             f"{one['bound']:.6g}", "" if without is None else f"{without:.6g}", left])  # fmt: skip
    head = ["set", "M", "box", "within it", "seconds (without a box)", "bound within it", "the same leaves without it",
            "gap left without it"]  # fmt: skip
    return [
        "## What a proof within a box says without it", "",
        "That no weight reaches the box says nothing about the problem without it. What is known of that is what the",
        "same leaves prove with ½ω² in the place of the box's conjugate (`Report.bound_without_box`, `mipfs verify`).",
        "",
        table(head, rows), "",
        f"Where both were proven, the one within a box took {_times(lines, 'box', ALL_BOXES)} times the CPU seconds.",
        "",
    ]  # fmt: skip


def _sources() -> list[str]:
    """Where the signs are from."""
    rows = [[name, one, f"{sign:+d}", why] for name, signs in SOURCES.items() for one, (sign, why) in signs.items()]
    return [
        "## The signs", "",
        "Meanings are those of the descriptions of Statlog's german and heart data at UCI; a sign is what a credit",
        "officer or a cardiologist expects of it, towards good credit and towards disease. Features without an",
        "order, and those whose codes are not those of the description, are free. The description of australian says",
        "that its names and values were changed to meaningless symbols: no source gives it a sign, and the marginal",
        "ones stand alone.", "",
        table(["set", "feature", "sign", "meaning"], rows), "",
    ]  # fmt: skip
