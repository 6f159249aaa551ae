"""The stored results as Markdown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from exact_parts.markdown import DASH, checked, gap_cell, number, table
from exact_parts.store import Line

from real_parts.together import ON_PAPER, ROUNDS, WAYS

NEAR, PATIENCE, TIMES = 1e-4, 1.0, 3.0
"""Bars of a root: relative distance to the reference; seconds, or the plain SVM's so many times, if that is longer."""

THROUGHPUT = (
    f"Nodes per second after the root, medians of {ROUNDS} rounds in which every way has its turn; two processes of "
    "one thread each begin at the same moment, and their nodes are added. Ratios are medians of those within a round. "
    '"Outside of kernels" is the share of the CPU time of one thread that is Python, of which one thread runs at a '
    "time: by Amdahl's law it bounds what more cores bring."
)


def document(lines: Mapping[str, Line]) -> str:
    """The whole report."""
    suites: dict[str, list[Line]] = {}
    for line in lines.values():
        suites.setdefault(line["suite"], []).append(line)
    parts = ["# Real data: what was measured", _preamble(list(lines.values()))]
    parts += [section(suites[name]) for name, section in _SECTIONS.items() if name in suites]
    return "\n\n".join(part for part in parts if part) + "\n"


def shown(line: Line) -> str:
    """One line for the screen."""
    facts = [f"{line['suite']:<10} {line['problem']:<52} {_by(line):<22} {line['status']:<11}"]
    for name, form in (
        ("seconds", "{:.2f} s"),
        ("bound", "bound {:.6g}"),
        ("gap", "gap {:.1e}"),
        ("nodes", "{} nodes"),
    ):
        if line.get(name) is not None:
            facts.append(form.format(line[name]))
    return " ".join(facts)


def _by(line: Line) -> str:
    return str(line.get("driver") if line["task"] == "solve" and line.get("driver") else line["task"])


def _preamble(lines: Sequence[Line]) -> str:
    machines = sorted(
        {
            f"{m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB, Python {m['python']}"
            for m in (line["machine"] for line in lines)
        }
    )
    versions: dict[str, set[str]] = {}
    for line in lines:
        for name, version in line["versions"].items():
            versions.setdefault(name, set()).add(version)
    busy = [line["others_busy"] for line in lines if line.get("others_busy") is not None]
    text = [
        "Made by `python benchmarks/real.py`, which measures what `real.jsonl` lacks (every run with its bound, curve, "
        "counters, versions and machine) and makes this page. Every cell is a process of its own, one after the other; "
        "compiling and reading are not counted. Seconds are wall seconds.",
        "Machine: "
        + "; ".join(machines)
        + ". Versions: "
        + ", ".join(f"{name} {'/'.join(sorted(v))}" for name, v in sorted(versions.items()))
        + ".",
    ]
    usable = sorted({str(line["usable_cores"]) for line in lines if line.get("usable_cores")})
    if usable:
        text.append(f"Cores that a cell could use: {' or '.join(usable)}.")
    if busy:
        text.append(
            f"Cores busy with other work meanwhile: {statistics.fmean(busy):.2f} on average, at most {max(busy):.2f}."
        )
    failed = [line for line in lines if str(line["status"]).startswith(("FAILED", "KILLED"))]
    if failed:
        rows = [[line["suite"], line["problem"], _by(line), line["status"]] for line in failed]
        text.append(f"**{len(failed)} cells failed:**\n\n" + table(["stage", "problem", "task", "what happened"], rows))
    return "\n\n".join(text)


def _roots(lines: Sequence[Line]) -> str:
    """Root bounds beside the reference, and their seconds beside the plain SVM's."""
    roots = [line for line in lines if line["task"] == "root" and line["status"] == "MEASURED"]
    references = {line["problem"]: line for line in lines if line["task"] == "reference"}
    svms = {_plain_key(line): line for line in lines if line["task"] == "svm"}
    rows, far, slow = [], 0, 0
    for line in roots:
        reference, svm = references.get(line["problem"], {}), svms.get(_plain_key(line), {})
        off = distance(line["bound"], reference.get("low"), reference.get("high"))
        allowed = max(PATIENCE, TIMES * (svm.get("seconds") or 0.0))
        is_far, is_slow = off is not None and off > 1.001 * NEAR, line["seconds"] > allowed
        far, slow = far + is_far, slow + is_slow
        rows.append(
            [
                line["problem"],
                f"{line['n']}×{line['p']}",
                number(line["bound"], "{:.6g}"),
                number(reference.get("high"), "{:.6g}"),
                reference.get("by", DASH),
                gap_cell(off) + (" **far**" if is_far else ""),
                f"{line['seconds']:.2f}" + (" **slow**" if is_slow else ""),
                number(svm.get("seconds"), "{:.2f}"),
                number(line.get("peak_mib"), "{:.0f}"),
            ]
        )
    said = (
        f'`mipfs.solve(problem, "branch", iteration_limit=1)`: the root, its rounding and the first '
        f"incumbents. {len(roots)} roots; {far} of them further than {NEAR:g} (relative) from the reference, "
        f"{slow} slower than the longer of {PATIENCE:g} s and {TIMES:g} times the plain SVM on all features (libsvm "
        "for the hinge, LIBLINEAR else). The reference is Clarabel's value of the declared relaxation, or the upper "
        "side of ours, solved to 1e-6."
    )
    head = ["problem", "n×p", "bound", "reference", "by", "difference", "s", "SVM s", "MiB"]
    return f"## Roots\n\n{said}\n\n" + table(head, rows)


def _plain_key(line: Line) -> tuple[str, str, str, float]:
    return line["set"], line["scale"], line["loss"], line["C"]


def distance(bound: float | None, low: float | None, high: float | None) -> float | None:
    """How far a root bound is below the relaxation's value, relatively; None where either is missing."""
    if bound is None or high is None or low is None:
        return None
    return max(0.0, high - bound) / max(1e-10, abs(high))


def _hinge(lines: Sequence[Line]) -> str:
    """The default driver, and SCIP beside it."""
    best: dict[str, float] = {}
    for line in lines:
        if line.get("objective") is not None:
            best[line["problem"]] = min(line["objective"], best.get(line["problem"], math.inf))
    rows = []
    for line in lines:
        if line["status"].startswith(("FAILED", "KILLED")):
            continue
        early = line.get("objective_early")
        least = best.get(line["problem"])
        off = None if early is None or least is None else max(0.0, early - least) / max(1e-10, abs(least))
        size = line.get("certificate_bytes")
        rows.append(
            [
                line["problem"],
                line.get("driver") or DASH,
                line["status"],
                gap_cell(line.get("gap")),
                number(line.get("nodes"), "{}"),
                number(line.get("nodes_per_second"), "{:.0f}"),
                number(line.get("seconds"), "{:.2f}"),
                number(None if off is None else 100 * off, "{:.2f}%"),
                checked(line),
                number(None if size is None else size / 2**20, "{:.2f}"),
            ]
        )
    optimal = [line for line in lines if line["status"] == "OPTIMAL"]
    curves = [row for line in lines if (row := _curve(line))]
    refused = [line for line in optimal if line.get("verified") is False]
    said = f"{len(optimal)} of {len(rows)} runs are OPTIMAL; {len(refused)} certificates of them were refused."
    head = ["problem", "driver", "status", "gap", "nodes", "nodes/s", "s", "10 s above best", "verify s", "cert. MiB"]
    page = said + "\n\n" + table(head, rows)
    if curves:
        page += (
            "\n\nWhat a limit left open: the gap at a quarter, at half and at the end of the time, what one doubling "
            "of the time took off at the end, in points, and how many more doublings would close it at that pace (it "
            "slows down, so they are the least).\n\n"
            + table(["problem", "gap at 1/4", "at 1/2", "at the end", "per doubling", "doublings"], curves)
        )
    return page


def _curve(line: Line) -> list[str] | None:
    """How the gap of a run of ours moved that a limit ended."""
    points, driver = line.get("curve") or [], line.get("driver")
    if line["status"] != "FEASIBLE" or driver == "monolithic" or len(points) < 4 or not line.get("seconds"):
        return None
    gaps = []
    for share in (0.25, 0.5, 1.0):
        early = [point for point in points if point[0] <= share * line["seconds"]] or points[:1]
        bound, objective = early[-1][1], line["objective"]
        gaps.append(math.nan if bound is None else (objective - bound) / max(1e-10, abs(objective)))
    pace = gaps[1] - line["gap"]
    needed = f"{line['gap'] / pace:.0f}" if pace > 1e-4 else DASH
    return [line["problem"], *(gap_cell(gap) for gap in (*gaps[:2], line["gap"])), f"{100 * pace:.2f}", needed]


def _throughput(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        if line.get("rates") is None:
            continue
        rates = [number(line["rates"][way], "{:.0f}") for way in WAYS]
        ratios = [number(line[name], "{:.2f}") for name in ("to_processes", "crowded")]
        rows.append([line["problem"], *rates, *ratios, f"{100 * line['outside']:.1f}%", f"{line['on_paper']:.1f}"])
    head = [*WAYS, "two threads / two processes", "eight threads / two", "outside of kernels"]
    return f"## Throughput\n\n{THROUGHPUT}\n\n" + table(["problem", *head, f"{ON_PAPER} cores on paper"], rows)


def _rows(lines: Sequence[Line]) -> str:
    plain = {_without_rows(line): line for line in lines if not line.get("rows")}
    rows = []
    for line in lines:
        base = plain.get(_without_rows(line), {})
        times = line["seconds"] / base["seconds"] if line.get("seconds") and base.get("seconds") else None
        rows.append(
            [
                line["problem"],
                line["status"],
                gap_cell(line.get("gap")),
                number(line.get("nodes"), "{}"),
                number(line.get("seconds"), "{:.2f}"),
                number(times, "{:.1f}"),
                checked(line),
            ]
        )
    head = ["problem", "status", "gap", "nodes", "s", "times the plain problem", "verify s"]
    return "## With rows\n\n" + table(head, rows)


def _without_rows(line: Line) -> str:
    return str(line["problem"]).split(" + ")[0]


def _scaling(lines: Sequence[Line]) -> str:
    """Seconds and memory, and the slopes of log seconds against log size."""
    series: dict[tuple[str, str], list[Line]] = {}
    rows = []
    for line in lines:
        if line.get("seconds") is None:
            continue
        series.setdefault((line["set"], line["task"]), []).append(line)
        rows.append(
            [
                line["problem"],
                line["task"],
                line["status"],
                gap_cell(line.get("gap")),
                f"{line['seconds']:.2f}",
                number(line.get("peak_mib"), "{:.0f}"),
            ]
        )
    slopes = []
    for (name, task), some in series.items():
        which = "p" if len({line["p"] for line in some}) > 1 else "n"
        some = [line for line in some if task != "solve" or line["status"] == "OPTIMAL"]
        if len({line[which] for line in some}) > 1:
            sizes = [line[which] for line in some]
            cells = [
                slope(sizes, [line["seconds"] for line in some]),
                slope(sizes, [line["peak_mib"] for line in some]),
            ]
            slopes.append([name, task, which, *(number(cell, "{:.2f}") for cell in cells)])
    said = "Exponents of seconds and of the process's peak memory, by least squares on the logarithms:"
    return (
        "## Scaling\n\n"
        + table(["problem", "task", "status", "gap", "s", "MiB"], rows)
        + f"\n\n{said}\n\n"
        + table(["data", "task", "against", "seconds", "memory"], slopes)
    )


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of log values against log sizes, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-3)), 1)[0])


_SECTIONS: dict[str, Callable[[Sequence[Line]], str]] = {
    "roots": _roots,
    "hinge": lambda lines: "## Proofs with the hinge\n\n" + _hinge(lines),
    "throughput": _throughput,
    "rows": _rows,
    "scaling": _scaling,
    "synthetic": lambda lines: "## The peers' synthetic data, and 0/1 columns like the adult sets'\n\n" + _hinge(lines),
}
