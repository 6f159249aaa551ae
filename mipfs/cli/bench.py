"""``mipfs bench``: methods that select features, compared by nested cross-validation."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipfs.cli.options import (
    Checks,
    DataFile,
    Drop,
    FoldsBy,
    Given,
    Impute,
    Jobs,
    Label,
    Missing,
    Positive,
    Quiet,
    Report,
    Scale,
    TotalLimit,
    Types,
    Use,
    Words,
    parse_class_weight,
    parse_names,
    parse_numbers,
    parse_whole,
    read_options,
    recipe_options,
)
from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.data.instance import Instance
    from mipfs.lab.studies.bench import Bench

WRITING_MULTIPLE = 20.0
"""The file is written when this many times as long has gone as the last writing took, so that it costs a twentieth."""
Output = Annotated[
    str | None,
    typer.Option("--json", "-o", metavar="FILE", help="Write JSON to FILE, record by record; - is standard output."),
]


def bench(
    data_file: DataFile,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="NAMES",
            help="fgm, fsp-m, gbd, ... and those of `mipfs baselines`.",
        ),
    ] = None,
    M: Annotated[str | None, typer.Option("--M", metavar="LIST", help="Numbers of features: 5,10,20 or 1:5.")] = None,
    folds: Annotated[int | None, typer.Option("--folds", metavar="K", help="Outer folds [default: 10].")] = None,
    repeats: Annotated[
        int | None, typer.Option("--repeats", metavar="R", help="Draw the outer folds R times [default: 1].")
    ] = None,
    inner: Annotated[
        int | None, typer.Option("--inner", metavar="K", help="Folds of a training part that choose C [default: 3].")
    ] = None,
    C: Annotated[
        str | None, typer.Option("--C", metavar="LIST", help="Values of C to choose from [default: 0.01,0.1,1,10].")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure", metavar="NAME", help="accuracy [default], balanced-accuracy, f1, roc-auc, log-loss, ..."
        ),
    ] = None,
    beta: Annotated[float | None, typer.Option("--beta", metavar="B", help="Of the measure fbeta.")] = None,
    k: Annotated[int | None, typer.Option("--k", metavar="K", help="Of precision-at-k and recall-at-k.")] = None,
    no_bias: Annotated[bool, typer.Option("--no-bias", help="Classifiers without an intercept.")] = False,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="S", help="Seconds for every fit [default: 60].")
    ] = None,
    ideal: Annotated[
        str | None, typer.Option("--ideal", metavar="NAMES", help="The features that matter, for the method svm-ideal.")
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option("--class-weight", metavar="W", help="balanced, yes:5,no:1, or none [default: the .toml's]."),
    ] = None,
    jobs: Jobs = None,
    dask: Annotated[
        str | None, typer.Option("--dask", metavar="ADDRESS", help="Give the fits to a Dask scheduler instead.")
    ] = None,
    output: Output = None,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE.png", help="Draw measure and seconds: .png, .svg or .pdf.")
    ] = None,
    report: Report = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what FILE holds.")] = False,
    folds_by: FoldsBy = None,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    use: Use = None,
    impute: Impute = None,
    types: Types = None,
    missing: Missing = None,
    words: Words = None,
    checks: Checks = None,
    total_limit: TotalLimit = None,
    quiet: Quiet = False,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", min=0, help="Seed [default: 0].")] = None,
) -> int:
    """Compare methods that select features by nested cross-validation."""
    from mipfs import readers
    from mipfs.cli.output import check_page, check_target, say
    from mipfs.lab.studies.bench import check_no_benchmark
    from mipfs.lab.studies.bench_plot import check_plot

    check_target(output, data_file)
    check_target(plot, data_file, outputs=(output,), option="--plot")
    check_page(report, data_file, outputs=(output, plot))
    if plot is not None:
        check_plot(Path(plot))
    if resume and output in (None, "-"):
        raise UsageError("--resume goes on with a file; name it with -o FILE")
    if output not in (None, "-") and not resume:
        check_no_benchmark(str(output))
    given = {
        "methods": methods,
        "M": M,
        "folds": folds,
        "repeats": repeats,
        "ideal": ideal,
        "inner": inner,
        "C": C,
        "measure": measure,
        "beta": beta,
        "k": k,
        "class_weight": None if class_weight is None else parse_class_weight(class_weight, "--class-weight "),
        "bias": False if no_bias else None,
        "time_limit": time_limit,
        "seed": seed,
    }
    asked = _bench_arguments(given, Path(str(output)) if resume else None)
    recipe = recipe_options(drop, use, impute, types, words, missing, checks, folds_by)
    data = readers.read(data_file, **read_options(scale, label, positive, recipe))
    if data.split is not None and folds is None and not resume:
        asked["folds"] = data.split.count
    by = None if folds_by is None else [folds_by]
    typed = {"--drop": drop, "--use": use, "--impute": impute, "--types": types, "--folds-by": by}
    again = f"mipfs bench {_show_typed_data(data_file, scale, label, positive, typed)} --resume -o "
    stood = output not in (None, "-") and not resume and os.path.isfile(str(output))
    code = _run(data, asked, (output, plot, report), quiet, {"jobs": jobs, "dask": dask}, resume, again)
    if stood and not quiet:
        say(f"what stood at {output} is replaced")
    return code


def _bench_arguments(given: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """The arguments of `mipfs.bench`; those that are not given are as the file to go on with has them.

    Methods and M are those of the file, and more where more are given.
    """
    from mipfs.lab.studies.bench_methods import methods
    from mipfs.lab.studies.bench_reading import load

    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if "methods" in asked:
        asked["methods"] = parse_names(asked["methods"])
    if "ideal" in asked:
        asked["ideal"] = parse_names(asked["ideal"])
    if "M" in asked:
        asked["M"] = list(parse_whole(asked["M"]))
    if "C" in asked:
        asked["C"] = parse_numbers("C", asked["C"])
    if file is not None and os.path.exists(file):
        said = load(file)[0].document()
        for name in {"methods", "M"} & asked.keys():  # what the file holds stays in it
            asked[name] = list(dict.fromkeys([*said[name], *asked[name]]))
        asked = {name: said[name] for name in given if name in said} | asked
    if "methods" not in asked:
        raise UsageError(f"--methods is not given; name some of {', '.join(methods())}")
    if "M" not in asked:
        raise UsageError("--M is not given; name numbers of features, such as --M 5,10,20")
    return asked


def _run(
    data: Instance,
    asked: dict[str, Any],
    targets: tuple[str | None, str | None, str | None],
    quiet: bool,
    where: dict[str, Any],
    resume: bool,
    again: str,
) -> int:
    """Do what is left, write what there is, and return the exit code."""
    import mipfs
    from mipfs.cli.streams import natives_apart
    from mipfs.lab.studies.bench import records_of
    from mipfs.plumbing.cluster import client_of
    from mipfs.plumbing.signals import hold_signals
    from mipfs.report.progress import progress

    output = targets[0]
    records = records_of(str(output), data, asked) if resume else ()
    client = None if where["dask"] is None else client_of(where["dask"])
    with hold_signals(deliver=False):
        try:
            with progress("bench:", "fits", verbose=not quiet) as tell, natives_apart():
                found = mipfs.bench(
                    data,
                    **asked,
                    jobs=where["jobs"],
                    client=client,
                    records=records,
                    on_record=_make_watcher(output, tell),
                )
        finally:
            if client is not None:
                client.close()
        return _write_and_show(found, targets, quiet, again)


def _make_watcher(output: str | None, tell: Callable[[int, int], None]) -> Callable[[Bench], None]:
    """What hears of every record: the line on a terminal, and the file, which is written whole each time."""
    began, took = time.monotonic(), 0.0

    def watch(found: Bench) -> None:
        nonlocal began, took
        tell(len(found.records), len(found.setting.units()))
        now = time.monotonic()
        if output in (None, "-") or now - began < WRITING_MULTIPLE * took:
            return
        found.save(str(output))
        began = time.monotonic()
        took = began - now

    return watch


def _write_and_show(found: Bench, targets: tuple[str | None, str | None, str | None], quiet: bool, again: str) -> int:
    """Write JSON, plot and page, show the table, and return the exit code."""
    from mipfs.cli.errors import BAD_USAGE, STOPPED_EARLY, complain
    from mipfs.cli.output import say, show_blocks, write_page

    output, plot, report = targets
    if output == "-":
        print(found.to_json(), flush=True)
    elif output is not None:
        found.save(output)
    if found.interrupted and not found.records:
        complain("interrupted before any fit was done")
        return STOPPED_EARLY
    has_any = any(row.values for row in found.rows)
    if plot is not None and has_any:
        found.plot(plot)
    if has_any:
        write_page(report, f"Methods on {Path(found.setting.source).name or 'arrays'}", found)
    if output != "-" and not quiet:
        show_blocks(found.blocks())
        written = [target for target in (output, *((plot, report) if has_any else ())) if target is not None]
        if written:
            say(f"\nwritten to {', '.join(written)}")
    if not found.complete:
        left = len(found.setting.units()) - len(found.records)
        if output in (None, "-"):
            complain(f"interrupted with {left} fits to do; with -o FILE it could go on", "warning")
        else:
            complain(f"interrupted with {left} fits to do; go on with: {again}{shlex.quote(str(output))}", "warning")
    if not has_any:
        first = next(record for record in found.records if record["message"] or record["status"])
        complain(f"no method left a classifier; the first, {first['method']}: {first['message'] or first['status']}")
        return BAD_USAGE
    return 0


def _show_typed_data(
    data_file: str, scale: Any, label: str | None, positive: str | None, recipe: Mapping[str, Given]
) -> str:
    """The data and its options as they were typed."""
    options = (("--scale", scale and scale.value), ("--label", label), ("--positive", positive))
    words = [word for name, value in options if value is not None for word in (name, value)]
    words += [word for name, values in recipe.items() for value in values or () for word in (name, value)]
    return shlex.join([data_file, *words])
