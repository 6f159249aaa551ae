"""Real data at the C that people use: roots, proofs, rows, scaling, with libsvm, LIBLINEAR, Clarabel and SCIP beside.

    MIPFS_DATA=folder python benchmarks/real.py                        everything that is missing
    MIPFS_DATA=folder python benchmarks/real.py --stage roots hinge    some stages
    MIPFS_DATA=folder python benchmarks/real.py --sets sonar mine      some sets; any folder with a data file is one
    python benchmarks/real.py --render                                 reports/real.md from what is stored

Cells run one after the other, each in a process of its own with a wall limit, so a hang is a recorded failure; --here
runs them in this one. A run can be stopped and started again: what is stored in reports/real.jsonl is not measured
again, unless it had less time than is asked for now, or --renew asks for what was measured with other code; references
and peers are kept.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from exact_parts.store import ROOT, Store
from real_parts import cell, render, stages
from real_parts.stages import Cell


def main() -> None:
    """Measure what was asked for, and make the page again."""
    a = _parser().parse_args()
    store = Store(a.store, renew=a.renew)
    try:
        if not a.render:
            for stage in a.stage:
                limit = stages.LIMITS[stage] if a.limit is None else a.limit
                cells = (one for one in _possible(stage, a.sets, limit) if re.search(a.only, one.key))
                measure(store, cells, a.again, a.here)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here")
    if lines := store.lines():
        page = store.path.with_suffix(".md")
        page.write_text(render.document(lines), encoding="utf-8")
        print(f"page: {page}")


def _possible(stage: str, sets: list[str], limit: float) -> Iterable[Cell]:
    """The cells of a stage whose data are there; says what is missing."""
    folder = os.environ.get("MIPFS_DATA")
    if not folder:
        print(f"{stage}: only what needs no data set, MIPFS_DATA is unset (give the folder that holds them)")
    missing = {name for name in sets if folder and not (Path(folder) / name).is_dir()}
    if missing:
        sys.exit(f"error: {folder} has no folder {', '.join(sorted(missing))}; --sets names its folders")
    for one in stages.cells(stage, sets, limit):
        name = one.request["what"].get("set")
        if name is None or (folder and (Path(folder) / name).is_dir()):
            yield one


def measure(store: Store, cells: Iterable[Cell], again: bool = False, here: bool = False) -> None:
    """Run the cells that the store lacks (or all of ours, `again`), and store each as soon as it is there."""
    for one in cells:
        limit = None if one.lasting else one.request["limit"]
        kept = store.get(one.key, limit)
        if kept is not None and (one.lasting or not again):
            continue
        answer = cell.answered(one.request) if here else cell.run(one.request, float(one.request["limit"]))
        line = store.add(one.key, **(dict(one.facts) | answer))
        print(render.shown(line), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", nargs="+", choices=list(stages.STAGES), default=list(stages.STAGES))
    parser.add_argument("--sets", nargs="+", default=list(stages.SETS), metavar="FOLDER", help="below MIPFS_DATA")
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="cells whose name it is found in: 'M=10 C=1 .*solve'"
    )
    parser.add_argument("--limit", type=float, metavar="S", help=f"seconds a cell (default: {stages.LIMITS})")
    parser.add_argument(
        "--here",
        action="store_true",
        help="in this process: quicker for hundreds of small cells, but"
        " what hangs is not ended, and memory is not told",
    )
    parser.add_argument("--again", action="store_true", help="measure ours again, whatever is stored")
    parser.add_argument("--renew", action="store_true", help="measure ours again where the code has changed")
    parser.add_argument("--render", action="store_true", help="only make the page")
    parser.add_argument("--store", type=Path, default=ROOT / "reports" / "real.jsonl", help="where results are kept")
    return parser


if __name__ == "__main__":
    main()
