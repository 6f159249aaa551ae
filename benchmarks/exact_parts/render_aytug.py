"""The made problems in the report: totals, sizes, and the comparison with SCIP and gbd."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from exact_parts.aytug import SPECIAL, Made
from exact_parts.markdown import by_problem, checked, gap_cell, number, table
from exact_parts.store import Line

SHIFT = 1.0
"""Seconds added before, and taken off after, a geometric mean."""
PEERS = ("scip", "el0ps")
PANEL = 18
"""Problems of the panel; a table by sizes is for more than these."""


def aytug(lines: list[Line]) -> str:
    """All sections about the made problems."""
    parts = []
    drivers = sorted({line["solver"] for line in lines} - set(PEERS))
    for C in sorted({line["C"] for line in lines}):
        for driver in drivers:
            mine = [line for line in lines if line["solver"] == driver and line["C"] == C and not _is_special(line)]
            if len(mine) > PANEL:
                parts.append(f"## aytug-one, C = {C:g}, {driver}\n\n{totals(mine)}.\n\n{_by_size(mine)}")
    for title, chosen in (
        ("Panel: seeds 1 and 2, C = 1", [line for line in lines if _in_panel(line)]),
        ("Cases of the design notes", [line for line in lines if _is_special(line)]),
    ):
        problems = by_problem(chosen)
        if problems:
            speeds = [_speed_ups(problems, driver) for driver in drivers]
            parts.append("\n\n".join(part for part in [f"## {title}", _compared(problems), *speeds] if part))
    return "\n\n".join(parts)


def totals(lines: Sequence[Line]) -> str:
    """How many were proven, and the seconds of all together."""
    proven = sum(line["status"] == "OPTIMAL" for line in lines)
    wall, cpu = (sum(line.get(name) or 0.0 for line in lines) for name in ("seconds", "cpu_seconds"))
    text = (
        f"{proven} of {len(lines)} OPTIMAL; {wall:.1f} s of wall time together ({wall / 60:.1f} min), {cpu:.1f} s CPU"
    )
    tried = [line for line in lines if line.get("verified") is not None]
    if tried:
        accepted = sum(bool(line["verified"]) for line in tried)
        seconds = sum(line["verify_seconds"] for line in tried)
        return f"{text}; certificates: {accepted} of {len(tried)} accepted, {seconds:.1f} s together"
    return f"{text}; no certificate was checked"


def speed_ups(lines: Mapping[str, Line], driver: str) -> str:
    """SCIP and gbd against one driver, on the problems of the panel that both have been through."""
    return _speed_ups(
        by_problem(line for line in lines.values() if line["suite"] == "aytug" and _in_panel(line)), driver
    )


def _speed_ups(problems: Mapping[str, Mapping[str, Line]], driver: str) -> str:
    return "\n\n".join(text for peer in ("scip", "gbd") if (text := _against(problems, driver, peer)))


def _against(problems: Mapping[str, Mapping[str, Line]], driver: str, peer: str) -> str:
    """One paragraph; SCIP is measured in CPU seconds, everything else by the wall clock."""
    both = [row for row in problems.values() if driver in row and peer in row and driver != peer]
    if not both:
        return ""
    theirs = [_counted(row[peer], "cpu_seconds" if peer == "scip" else "seconds") for row in both]
    ours, busy = ([_counted(row[driver], clock) for row in both] for clock in ("seconds", "cpu_seconds"))
    mean, mine = shifted_mean(theirs), shifted_mean(ours)
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    shifted = [(b + SHIFT) / (a + SHIFT) for a, b in zip(ours, theirs, strict=True)]
    unproven, left = (sum(row[solver]["status"] != "OPTIMAL" for row in both) for solver in (peer, driver))
    return (
        f"{driver} against {peer} on {len(both)} problems; unproven, and counted with their time limit: {left} of "
        f"{driver}, {unproven} of {peer}. Shifted geometric means: {mean:.2f} s of {peer} "
        f"({'CPU' if peer == 'scip' else 'wall'}), {mine:.3f} s of {driver} (wall): **ratio {mean / mine:.1f}** "
        f"(CPU against CPU {mean / shifted_mean(busy):.1f}). "
        f"Geometric mean of (s + 1)/(s + 1): {statistics.geometric_mean(shifted):.1f}. "
        f"Ratios of single problems, without shift: {min(ratios):.1f} to {max(ratios):.1f}. "
        f"{_agreement(both, driver, peer)}"
    )


def _agreement(rows: Sequence[Mapping[str, Line]], driver: str, peer: str) -> str:
    """How far the objectives of the two are from each other where both are proven."""
    pairs = [(row[driver]["objective"], row[peer]["objective"]) for row in rows if _both_proven(row, driver, peer)]
    if not pairs:
        return "No problem was proven by both."
    most = max(abs(a - b) / abs(a) for a, b in pairs)
    return f"Objectives of the {len(pairs)} problems that both proved differ by at most {most:.1e}, relatively."


def _both_proven(row: Mapping[str, Line], *solvers: str) -> bool:
    return all(row[solver]["status"] == "OPTIMAL" for solver in solvers)


def shifted_mean(seconds: Sequence[float]) -> float:
    """Geometric mean with a shift of a second: exp(mean of log(s + 1)) − 1."""
    return math.exp(statistics.fmean(math.log(s + SHIFT) for s in seconds)) - SHIFT


def _counted(line: Line, clock: str) -> float:
    """Seconds of a run; one that proved nothing counts its time limit."""
    seconds = line.get(clock)
    return float(line["limit"] if line["status"] != "OPTIMAL" or seconds is None else min(seconds, line["limit"]))


def _by_size(lines: list[Line]) -> str:
    sizes: dict[tuple[int, int], list[Line]] = {}
    for line in lines:
        sizes.setdefault((line["n"], line["p"]), []).append(line)
    rows = []
    for (n, p), some in sorted(sizes.items(), key=lambda item: item[0][0] * item[0][1]):
        seconds = [line["seconds"] for line in some]
        verify = [line["verify_seconds"] for line in some if line.get("verify_seconds") is not None]
        proven = sum(line["status"] == "OPTIMAL" for line in some)
        gaps = [math.inf if line["gap"] is None else line["gap"] for line in some]
        nodes = [line["nodes"] or 0 for line in some]
        cells = [f"{n}×{p}", f"{proven} of {len(some)}", f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}"]
        cells += [f"{sum(seconds):.1f}", f"{statistics.median(nodes):g}", f"{max(nodes)}", f"{max(gaps):.1e}"]
        rows.append([*cells, f"{sum(verify):.2f}" if verify else "–"])
    head = ["n × p", "OPTIMAL", "median s", "longest s", "sum s", "median nodes", "most nodes", "largest gap"]
    return table([*head, "verify s"], rows)


def _compared(problems: Mapping[str, Mapping[str, Line]]) -> str:
    solvers = sorted({solver for row in problems.values() for solver in row}, key=lambda name: (name in PEERS, name))
    rows = []
    for problem, row in problems.items():
        for solver in solvers:
            if solver in row:
                line = row[solver]
                cells = [problem, solver, line["status"], number(line.get("objective"), "{:.6f}")]
                cells += [gap_cell(line.get("gap"))]
                cells += [number(line.get("nodes"), "{}"), number(line.get("seconds"), "{:.2f}")]
                cells += [number(line.get("cpu_seconds"), "{:.2f}"), checked(line)]
                rows.append(cells)
    head = ["problem", "solver", "status", "objective", "gap", "nodes", "wall s", "CPU s", "verify s"]
    return table(head, rows)


def _in_panel(line: Line) -> bool:
    return line["C"] == 1.0 and line["seed"] in (1, 2) and not _is_special(line)


def _is_special(line: Line) -> bool:
    return Made(line["n"], line["p"], line["M"], line["C"], line["seed"]) in SPECIAL
