"""Exact feature selection: ours, gbd, SCIP and El0ps on the same problems, with results kept in reports/.

    python benchmarks/exact.py aytug --C 1            the 90 problems of Aytug (2015), data set one
    python benchmarks/exact.py panel                  18 of them and five cases more: ours, gbd and SCIP
    python benchmarks/exact.py genes                  microarray data sets (MIPFS_DATA names their folder)
    python benchmarks/exact.py el0ps --el0ps-python P  El0ps on WDBC; P is an interpreter that has el0ps and mpich
    python benchmarks/exact.py profile                microseconds per node
    python benchmarks/exact.py table                  reports/exact.md from what is stored

A run can be stopped at any moment and started again: what is stored in reports/exact.jsonl is not measured again,
unless it had less time than is asked for now, or was measured with other code and --renew is given.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from exact_parts import aytug, genes, peer_el0ps, render, render_aytug, throughput
from exact_parts.store import ROOT, Store

from mipfs.errors import MipfsError
from mipfs.plumbing.cluster import client_of


def main() -> None:
    """Run what was asked for, and make the table again."""
    arguments = _parser().parse_args()
    store = Store(arguments.store, renew=arguments.renew, calm=arguments.calm)
    try:
        _run(arguments, store)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here")
    except MipfsError as error:
        sys.exit(f"error: {error}")
    if lines := store.lines():
        table = store.path.with_suffix(".md")
        table.write_text(render.document(lines), encoding="utf-8")
        print(f"table: {table}")


def _run(a: argparse.Namespace, store: Store) -> None:
    if a.command == "aytug":
        chosen = aytug.made(a.samples, a.features, a.seeds, a.C)
        with contextlib.ExitStack() as open_now:
            client = None if a.dask is None else client_of(a.dask)
            if client is not None:
                open_now.callback(client.close)
            lines = aytug.run(chosen, [a.driver], store, lambda one, solver: a.time_limit, a.proofs, client)
        print(render_aytug.totals(lines))
    elif a.command == "panel":
        chosen = aytug.panel(a.samples, a.features, a.seeds, a.C)
        if not a.no_special:
            chosen += aytug.SPECIAL
        solvers = dict.fromkeys(a.driver if solver == "ours" else solver for solver in a.solvers)
        aytug.run(chosen, solvers, store, lambda one, solver: a.time_limit, a.proofs)
        print(render_aytug.speed_ups(store.lines(), a.driver))
    elif a.command == "genes":
        genes.run(store, a.driver, tuple(a.sets), tuple(a.M), 0.01, a.time_limit, a.proofs)
        genes.run(store, a.driver, tuple(a.sets[:1]), tuple(a.M), 0.1, a.gap_limit, a.proofs)
    elif a.command == "el0ps":
        peer_el0ps.run(store, a.driver, a.el0ps_python, a.time_limit, tuple(a.gaps))
    elif a.command == "profile":
        throughput.run(store, a.driver, a.time_limit)


def _ours(limit: float) -> argparse.ArgumentParser:
    """What a run of our driver takes."""
    ours = argparse.ArgumentParser(add_help=False)
    ours.add_argument("--driver", default="branch", help="our driver (default: branch)")
    ours.add_argument("--time-limit", type=float, default=limit, metavar="S", help=f"per problem (default: {limit:g})")
    ours.add_argument("--proofs", type=Path, metavar="FOLDER", help="keep the results with their certificates here")
    return ours


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--store", type=Path, default=ROOT / "reports" / "exact.jsonl", help="where results are kept")
    common.add_argument("--renew", action="store_true", help="measure ours again where the code has changed")
    common.add_argument(
        "--calm", type=float, metavar="CORES", help="measure again what ran while more cores than this had other work"
    )
    sizes = argparse.ArgumentParser(add_help=False)
    sizes.add_argument("--samples", type=int, nargs="+", default=aytug.SAMPLES, metavar="N")
    sizes.add_argument("--features", type=int, nargs="+", default=aytug.FEATURES, metavar="P")
    sizes.add_argument("--C", type=float, default=1.0)

    commands = parser.add_subparsers(dest="command", required=True)
    ninety = commands.add_parser("aytug", parents=[common, _ours(600.0), sizes], help="the 90 problems")
    ninety.add_argument("--seeds", type=int, nargs="+", default=list(range(1, 11)))
    ninety.add_argument("--dask", metavar="ADDRESS", help="let the workers of a Dask scheduler solve them")
    panel = commands.add_parser("panel", parents=[common, _ours(600.0), sizes], help="against gbd and SCIP")
    panel.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    panel.add_argument("--solvers", nargs="+", default=["ours", "gbd", "scip"], help="ours, gbd, scip")
    panel.add_argument("--no-special", action="store_true", help="without the five cases of the design notes")
    gene = commands.add_parser("genes", parents=[common, _ours(120.0)], help="microarray data")
    gene.add_argument("--sets", nargs="+", default=genes.SETS)
    gene.add_argument("--M", type=int, nargs="+", default=genes.CARDINALITIES)
    gene.add_argument("--gap-limit", type=float, default=600.0, metavar="S", help="seconds at C = 0.1 (first set)")
    el0ps = commands.add_parser("el0ps", parents=[common, _ours(120.0)], help="against El0ps on WDBC")
    el0ps.add_argument("--el0ps-python", metavar="PYTHON", help="interpreter with el0ps==0.0.4; none: ours only")
    el0ps.add_argument("--gaps", type=float, nargs="+", default=peer_el0ps.GAPS)
    commands.add_parser("profile", parents=[common, _ours(60.0)], help="microseconds per node")
    commands.add_parser("table", parents=[common], help="make reports/exact.md again")
    return parser


if __name__ == "__main__":
    main()
