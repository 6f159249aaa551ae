"""The commands, gathered."""

from __future__ import annotations

from typing import Annotated

import typer

from mipfs import __version__
from mipfs.cli.bags import bags
from mipfs.cli.baselines import baselines
from mipfs.cli.bench import bench
from mipfs.cli.compare import compare
from mipfs.cli.compile import compile
from mipfs.cli.convert import convert
from mipfs.cli.demo import demo
from mipfs.cli.errors import command
from mipfs.cli.evaluate import evaluate
from mipfs.cli.generate import generate
from mipfs.cli.models import models
from mipfs.cli.path import path
from mipfs.cli.predict import predict
from mipfs.cli.refit import refit
from mipfs.cli.report import report
from mipfs.cli.resume import resume
from mipfs.cli.scorecard import scorecard
from mipfs.cli.sketch import sketch
from mipfs.cli.solve import solve
from mipfs.cli.stability import stability
from mipfs.cli.study import study
from mipfs.cli.verify import verify

# Plain help keeps rich out of `mipfs --help`, which then starts at once.
app = typer.Typer(
    name="mipfs",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for function in (
    *(
        demo,
        solve,
        resume,
        compare,
        path,
        bench,
        study,
        stability,
        sketch,
        bags,
        models,
        baselines,
        generate,
        convert,
        predict,
        evaluate,
        verify,
        refit,
        scorecard,
        report,
        compile,
    ),
):
    app.command()(command(function))


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"mipfs {__version__}")
        raise typer.Exit


EXIT_CODES = (
    "Exit codes: 0 done, 1 internal error or certificate rejected, 2 bad usage or data, 3 infeasible rows, "
    "4 stopped too early."
)


@app.callback(epilog=EXIT_CODES)
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Feature selection for support vector machines, solved to proven optimality."""
