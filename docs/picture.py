"""The picture of the README: incumbent and bound closing on WDBC, beside the ladder of relaxations.

python docs/picture.py [docs/gap.svg]

The horizontal axis counts nodes, not seconds, so the picture is the same on every machine.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from pathlib import Path

import mipfs

RUNGS = {
    "plain": "no selection at all",
    "qcqp-ssvm": "norms (Chan 2007)",
    "boolean": "0 ≤ σ ≤ 1 (Tan 2014)",
    "exact": "proven optimum",
}
WIDTH, HEIGHT = 860, 300
STYLE = """
text{font:13px system-ui,sans-serif;fill:#24292f}
.t{font-weight:600;font-size:14px}.s{fill:#57606a;font-size:12px}.e{text-anchor:end}.m{text-anchor:middle}
.axis{stroke:#8c959f;fill:none}.grid{stroke:#8c959f;stroke-opacity:.25}
.inc{stroke:#bf3989;fill:none;stroke-width:2.2}.bnd{stroke:#0969da;fill:none;stroke-width:2.2}
.gap{fill:#0969da;fill-opacity:.12}.bar{fill:#0969da;fill-opacity:.75}.open{fill:#bf3989;fill-opacity:.22}
.ti{fill:#bf3989}.tb{fill:#0969da}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9da7b1}.inc{stroke:#f778ba}.bnd{stroke:#58a6ff}
.ti{fill:#f778ba}.tb{fill:#58a6ff}.bar{fill:#58a6ff}.gap{fill:#58a6ff}.open{fill:#f778ba}}
"""


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words at a place."""
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{words}</text>'


def line(points: Iterable[tuple[float, float]], kind: str) -> str:
    """A line through points."""
    return f'<polyline class="{kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def closing(result: mipfs.Result, top: float) -> list[str]:
    """The left half: incumbent and bound against the nodes."""
    left, right, base, ceiling = 60.0, 440.0, 270.0, 55.0
    last = result.trace[-1].iteration

    def place(at: float, value: float) -> tuple[float, float]:
        return left + (right - left) * at / last, base - (base - ceiling) * min(value, top) / top

    curves = []
    for values in ([r.objective for r in result.trace], [max(0.0, r.bound) for r in result.trace]):
        points = [place(r.iteration, value) for r, value in zip(result.trace, values, strict=True)]
        curves.append([p for one, two in itertools.pairwise(points) for p in (one, (two[0], one[1]))])
        curves[-1].append(points[-1])
    upper, lower = curves
    shade = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*upper, *reversed(lower)])
    drawn = [text(left, 26, "How the gap closes", "t"), text(left, 43, "WDBC: which 3 of 30 features? C = 1", "s")]
    for value in range(0, int(top) + 1, 20):
        y = place(0, value)[1]
        drawn += [line([(left, y), (right, y)], "grid"), text(left - 8, y + 4, str(value), "s e")]
    drawn += [f'<polygon class="gap" points="{shade}"/>', line(upper, "inc"), line(lower, "bnd")]
    drawn += [line([(left, base), (right, base)], "axis"), text(right, base + 20, f"{last} nodes", "s e")]
    x, y = place(last * 0.42, result.objective)
    drawn += [text(x, y - 9, "best classifier found", "ti"), text(x, place(0, 39)[1] + 24, "proven lower bound", "tb")]
    end = f"at {result.objective:.2f} no three features are {result.gap:.2%} better"
    return [*drawn, text(left, base + 20, end, "s")]


def ladder(comparison: mipfs.Comparison) -> list[str]:
    """The right half: what each relaxation leaves open."""
    left, right, y = 500.0, 830.0, 80.0
    best = comparison.incumbent
    drawn = [
        text(left, 26, "What relaxations leave open", "t"),
        text(left, 43, "lower bounds on the same problem", "s"),
    ]
    for rung in comparison.ladder:
        share = rung.value / best
        edge = left + (right - left) * share
        said = "proven" if rung.name == "exact" else f"{1 - share:.0%} open"
        drawn += [
            text(left, y, RUNGS[rung.name]),
            text(right, y, said, "s e"),
            f'<rect class="open" x="{left}" y="{y + 7:.1f}" width="{right - left}" height="16"/>',
            f'<rect class="bar" x="{left}" y="{y + 7:.1f}" width="{edge - left:.1f}" height="16"/>',
        ]
        y += 52
    return drawn


def drawn() -> str:
    """The picture."""
    data = mipfs.read(Path(__file__).resolve().parents[1] / "instances" / "wdbc.svm", scale="standard")
    problem = mipfs.Problem(data, M=3, C=1.0)
    result = mipfs.solve(problem, "branch")
    parts = closing(result, 100.0) + ladder(mipfs.compare(problem, rungs=tuple(RUNGS)))
    title = "Incumbent and proven bound meet; the relaxations stay below"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
    return "\n".join([head, f"<title>{title}</title><style>{STYLE}</style>", *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("gap.svg")
    target.write_text(drawn(), encoding="utf-8")
