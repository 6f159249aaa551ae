"""The pictures of the examples: the features that each selects, with their weights, beside what it compares them with.

MIPFS_DATA=/path/to/data python docs/gallery.py [genes credit spam interactions]
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from picture import STYLE, text

import mipfs

HERE = Path(__file__).resolve().parent
TITLES = {
    "genes": ("at most 5 genes", "… that cost at most 12 together"),
    "credit": ("german loans, at most 6 features", "… with dependencies, nothing personal"),
    "spam": ("5 words, chosen for F1", "5 words, chosen by the hinge"),
    "interactions": ("any six columns and products", "products only with both factors"),
}
WIDTH, LINE, TOP = 860, 24, 56
PANEL, NAMES, REACH = 430, 215, 85
LONGEST = 31
"""Characters of a name."""
MORE = ".pos{fill:#0969da;fill-opacity:.75}.neg{fill:#bf3989;fill-opacity:.75}"


def results(example: str) -> list[mipfs.Result]:
    """What an example solves, in its order."""
    found: list[mipfs.Result] = []
    solve = mipfs.solve

    def kept(*args: Any, **options: Any) -> mipfs.Result:
        found.append(solve(*args, **options))
        return found[-1]

    mipfs.solve = kept
    try:
        runpy.run_path(str(HERE.parent / "examples" / f"{example}.py"), run_name="__main__")
    finally:
        mipfs.solve = solve
    return found


def panel(result: mipfs.Result, title: str, left: float) -> list[str]:
    """Features and weights, the largest first."""
    scale = result.scaling.get("scale", {})
    worth = {name: weight * scale.get(name, 1.0) for name, weight in result.weights.items()}
    ordered = sorted(worth, key=lambda name: -abs(worth[name]))
    most = max(map(abs, worth.values()), default=1.0)
    proven = "proven optimal" if result.status is mipfs.Status.OPTIMAL else f"gap {result.gap:.1%}"
    parts = [text(left, 20, title, "t"), text(left, 38, proven, "s")]
    zero = left + NAMES + REACH
    for k, name in enumerate(ordered):
        y = TOP + LINE * k
        shown = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        wide = REACH * abs(worth[name]) / most
        start = zero if worth[name] >= 0 else zero - wide
        kind = "pos" if worth[name] >= 0 else "neg"
        parts.append(text(left + NAMES - 8, y + 13, shown, "e"))
        parts.append(f'<rect x="{start:.1f}" y="{y}" width="{wide:.1f}" height="16" class="{kind}"/>')
    low = TOP + LINE * len(ordered)
    parts.append(f'<path d="M{zero} {TOP - 4}V{low}" class="axis"/>')
    return parts


def drawn(found: list[mipfs.Result], titles: tuple[str, str]) -> str:
    """Two results side by side."""
    height = TOP + LINE * max(len(result.weights) for result in found[:2]) + 8
    parts = [one for k in range(2) for one in panel(found[k], titles[k], 10 + k * PANEL)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
        f"<style>{STYLE}{MORE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or TITLES:
        solved = results(name)
        (HERE / f"{name}.svg").write_text(drawn(solved, TITLES[name]), encoding="utf-8")
