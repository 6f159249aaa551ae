"""The stored results as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping

from exact_parts.genes import LEFT
from exact_parts.markdown import DASH, by_problem, checked, gap_cell, number, table
from exact_parts.peer_el0ps import OPTIMA
from exact_parts.render_aytug import aytug
from exact_parts.store import Line


def document(lines: Mapping[str, Line]) -> str:
    """The whole report."""
    groups: dict[str, list[Line]] = {}
    for line in lines.values():
        groups.setdefault(line["suite"], []).append(line)
    parts = ["# Exact feature selection: what was measured", _preamble(list(lines.values()))]
    parts += [section(groups[name]) for name, section in _SECTIONS.items() if name in groups]
    return "\n\n".join(part for part in parts if part) + "\n"


def _preamble(lines: list[Line]) -> str:
    text = [
        "Made by `python benchmarks/exact.py` with `aytug --C 1`, `aytug --C 0.25`, `panel`, `genes`, `el0ps` and "
        "`profile`; `python benchmarks/exact.py table` makes this page again from `exact.jsonl`, which has every run "
        "with its bound, support, counters, versions and machine. Gap asked for: 1e-4 unless said otherwise."
    ]
    for said in sorted({_machine(line["machine"]) for line in lines}):
        text.append(said)
    packages: dict[str, set[str]] = {}
    for line in lines:
        for name, version in line["versions"].items():
            packages.setdefault(name, set()).add(version)
    text.append("Versions: " + ", ".join(f"{name} {'/'.join(sorted(v))}" for name, v in packages.items()) + ".")
    text.append(
        "SCIP is given the perspective form with the rows |w_j| ≤ W σ_j, which make it faster, and is on its defaults. "
        "Its seconds are CPU seconds of its own process by its own clock, on one thread, without the building of the "
        "model; those of our drivers are wall seconds of `mipfs.solve` with whatever threads they use, compiled before."
    )
    busy: dict[str, list[float]] = {}
    for line in lines:
        if line.get("others_busy") is not None:
            busy.setdefault(line["solver"], []).append(line["others_busy"])
    if busy:
        shares = ", ".join(
            f"{statistics.fmean(v):.2f} (at most {max(v):.2f}) during {name}" for name, v in busy.items()
        )
        text.append(
            f"Cores busy with other work, on average over a run: {shares}. Other work lengthens wall seconds, and CPU "
            "seconds too where caches are shared; `--calm 0.2` measures the disturbed runs again."
        )
    codes = {line["code"] for line in lines if line.get("code")}
    if len(codes) > 1:
        text.append(
            f"Ours were measured with {len(codes)} states of the code; `--renew` measures the older ones again."
        )
    return "\n\n".join(text)


def _machine(facts: Line) -> str:
    return f"Machine: {facts['cores']} cores, {facts['cpu']}, {facts['memory_gib']} GiB, Python {facts['python']}."


def _genes(lines: list[Line]) -> str:
    rows = []
    for line in sorted(lines, key=lambda one: (one["C"], one["set"], one["M"], one["solver"])):
        left = line["counters"].get(LEFT)
        cells = [
            line["set"],
            f"{line['n']}×{line['p']}",
            f"{line['C']:g}",
            str(line["M"]),
            line["solver"],
            line["status"],
        ]
        cells += [number(line["objective"], "{:.8f}"), gap_cell(line["gap"]), number(left, "{}")]
        rows.append([*cells, number(line["nodes"], "{}"), f"{line['seconds']:.2f}", checked(line)])
    head = [
        "set",
        "n × p",
        "C",
        "M",
        "solver",
        "status",
        "objective",
        "gap",
        "genes left at the root",
        "nodes",
        "wall s",
    ]
    return "## Genes\n\nStandardised, squared hinge, no bias.\n\n" + table([*head, "verify s"], rows)


def _el0ps(lines: list[Line]) -> str:
    rows, ratios = [], []
    for row in by_problem(lines).values():
        peer = row.get("el0ps")
        for solver, line in sorted(row.items()):
            optimum = OPTIMA.get((line["loss"], line["lambda"]))
            known = optimum is not None and line.get("objective") is not None
            error = f"{abs(line['objective'] - optimum[0]) / optimum[0]:.1e}" if known and optimum else DASH
            ratio = DASH
            if peer is not None and solver != "el0ps" and peer.get("seconds") and line["seconds"]:
                theirs = min(peer["seconds"], peer.get("cpu_seconds") or peer["seconds"])
                ratios.append(theirs / line["seconds"])
                ratio = f"{ratios[-1]:.1f}" + ("" if peer["status"] == "OPTIMAL" else " at least")
            support = DASH if line["support"] is None else " ".join(map(str, line["support"]))
            cells = [line["loss"], f"{line['lambda']:g}", f"{line['asked_gap']:g}", solver, line["status"]]
            cells += [number(line["objective"], "{:.10f}"), error, support, number(line["nodes"], "{}")]
            cells += [f"{line['seconds']:.3f}", number(line.get("cpu_seconds"), "{:.3f}"), checked(line), ratio]
            rows.append(cells)
    head = ["loss", "λ", "gap asked", "solver", "status", "objective", "from the optimum", "support (from 0)", "nodes"]
    text = (
        "Objective Σ loss + ‖w‖² + λ‖w‖₀ = 2·(P); the optima that it is compared with are by brute force. Ratio: "
        "CPU or wall seconds of El0ps, whichever are fewer, to wall seconds of ours, where ours is proven. "
        "El0ps states no bound."
    )
    least = f"\n\nLeast ratio: {min(ratios):.1f}." if ratios else ""
    return f"## El0ps on WDBC\n\n{text}\n\n{table([*head, 'wall s', 'CPU s', 'verify s', 'ratio'], rows)}{least}"


def _profile(lines: list[Line]) -> str:
    parts = ["## Time per node"]
    for line in lines:
        each = (
            "one node only"
            if line["microseconds"] is None
            else f"{line['microseconds']:.0f} µs per node after the root"
        )
        parts.append(
            f"**{line['problem']}**, {line['solver']}: {line['status']}, gap {gap_cell(line['gap'])}, {line['nodes']} "
            f"nodes in {line['seconds']:.2f} s, of which {line['root_seconds']:.2f} s at the root; {each}. Own time by "
            "function on one thread, another run under cProfile (compiled kernels count for their caller):"
        )
        parts.append(table(["share", "function"], [[f"{share:.1%}", f"`{place}`"] for place, share in line["where"]]))
    return "\n\n".join(parts)


_SECTIONS: dict[str, Callable[[list[Line]], str]] = {
    "aytug": aytug,
    "genes": _genes,
    "el0ps": _el0ps,
    "profile": _profile,
}
