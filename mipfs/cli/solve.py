"""``mipfs solve``: one formulation on one data set."""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipfs.cli.driver_options import Option, parse_options
from mipfs.cli.options import (
    BoxOption,
    Checks,
    DataFile,
    Drop,
    FoldsBy,
    Impute,
    Jobs,
    Json,
    Label,
    Missing,
    Module,
    Nonnegative,
    Nonpositive,
    ParamC,
    ParamM,
    Positive,
    Quiet,
    Report,
    Scale,
    Seed,
    SubjectTo,
    TotalLimit,
    Types,
    Use,
    WeightBounds,
    WeightRows,
    Words,
    bound_weights,
    enter,
    files_of,
    parse_names,
    parse_params,
    read_options,
    recipe_options,
    with_M_and_C,
    with_weight_rows,
)
from mipfs.cli.solve_classes import ClassesOutput, ClassRequest, solve_classes
from mipfs.errors import MoreClassesError, UsageError

if TYPE_CHECKING:
    from mipfs.data.instance import Instance
    from mipfs.problem import Problem
    from mipfs.report.blocks import Reported
    from mipfs.result.result import Result
    from mipfs.selection.rows import Rows

WISHES = ("cost", "auc", "stability")
WITHIN = 0.01
"""The gap of the list that a second wish chooses among, where none is given."""
FOLDS_SHARE = 1 / 3
"""Of a limit of time: what is left for the folds of a calibration at least."""


def solve(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A name that `mipfs models` lists, or a .py file.", show_default=False),
    ],
    data_file: DataFile,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="KEY=VALUE", help="A parameter of MODEL, e.g. -p M=5.")
    ] = None,
    M: ParamM = None,
    C: ParamC = None,
    driver: Annotated[
        str | None, typer.Option("--driver", metavar="NAME", help="The algorithm; by default the model's.")
    ] = None,
    option: Option = None,
    subject_to: SubjectTo = None,
    nonnegative: Nonnegative = None,
    nonpositive: Nonpositive = None,
    weight_bounds: WeightBounds = None,
    box: BoxOption = None,
    weight_rows: WeightRows = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="S",
            help="Stop after S seconds with the best found; --calibrate counts in, for a third at least.",
        ),
    ] = None,
    memory_limit: Annotated[
        float | None,
        typer.Option("--memory-limit", metavar="GB", help="Stop with the best found before more gigabytes are held."),
    ] = None,
    gap: Annotated[
        float, typer.Option("--gap", metavar="GAP", help="Relative gap at which the answer counts as optimal.")
    ] = 1e-4,
    start: Annotated[
        str | None, typer.Option("--start", metavar="NAMES", help="Features to begin from, separated by commas.")
    ] = None,
    validation: Annotated[
        str | None,
        typer.Option("--validation", metavar="FILE", help="Stop when the error on this data no longer improves."),
    ] = None,
    pool_gap: Annotated[
        float | None,
        typer.Option("--pool-gap", metavar="GAP", help="Find all supports within this relative gap of the optimum."),
    ] = None,
    pool_size: Annotated[
        int | None,
        typer.Option("--pool-size", metavar="K", help="Find the best K supports; with --pool-gap the best of those."),
    ] = None,
    then: Annotated[
        str | None,
        typer.Option(
            "--then",
            metavar="WISH",
            help="Of the sets within --pool-gap (0.01 by default) the best by cost, auc or stability.",
        ),
    ] = None,
    then_json: Annotated[
        str | None,
        typer.Option("--then-json", metavar="FILE", help="Write the result of the set that --then chose."),
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option("--held-out", metavar="FILE", help="Rows by which --then chooses (auc), and is judged."),
    ] = None,
    preselect: Annotated[
        str | None,
        typer.Option(
            "--preselect",
            metavar="HOW",
            help="Begin with these features, e.g. bss:300 or rfe:300, and grow them until the rest is proven out.",
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="FILE", help="Keep the state of the run there, to go on with --resume."),
    ] = None,
    checkpoint_every: Annotated[
        float | None,
        typer.Option("--checkpoint-every", metavar="S", help="Write it every S seconds [default: 30], and at the end."),
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="FILE", help="Go on with the run whose state is in FILE.")
    ] = None,
    warm: Annotated[
        str | None,
        typer.Option(
            "--warm",
            metavar="RESULT.json",
            help="Begin from the result of a problem on the same data whose rows, costs, M, lambda or C were others.",
        ),
    ] = None,
    certificate_limit: Annotated[
        float,
        typer.Option(
            "--certificate-limit",
            metavar="MB",
            help="Megabytes into which the certificate of a run that a limit stopped must fit; inf certifies all.",
        ),
    ] = 50.0,
    no_certificate: Annotated[
        bool,
        typer.Option("--no-certificate", help="Keep no proof, which saves memory; nobody can check the result."),
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Give the work to the workers of a Dask scheduler."),
    ] = None,
    write: Annotated[
        list[str] | None,
        typer.Option(
            "--write", metavar="FILE", help="Write the declared model too: FILE.lp, FILE.mps or FILE.nl; also several."
        ),
    ] = None,
    shared_support: Annotated[
        bool,
        typer.Option("--shared-support", help="Of more than two classes: one selection for all of them."),
    ] = False,
    calibrate: Annotated[
        int | None,
        typer.Option("--calibrate", metavar="K", help="Estimate probabilities by K folds, for predict --probability."),
    ] = None,
    jobs: Jobs = None,
    module: Module = None,
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
    json: Json = None,
    report: Report = None,
    total_limit: TotalLimit = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Select the features of DATA with a proven bound."""
    written_out = dict(locals())
    from mipfs import drivers, formulation, readers
    from mipfs.cli import written
    from mipfs.cli.live import live_table
    from mipfs.cli.output import finish
    from mipfs.cli.typed import command_line
    from mipfs.drivers.default import default_driver, redeclare_for
    from mipfs.plumbing.signals import hold_signals

    if not certificate_limit > 0:
        raise UsageError(f"--certificate-limit {certificate_limit:g} must be a number of megabytes > 0, or inf")
    params = parse_params(with_M_and_C(param, M, C))
    own_file = model if model.endswith(".py") else None
    inputs = (data_file, subject_to, weight_rows, validation, own_file, warm, held_out, *files_of(module))
    pool_gap = _check_then(then, then_json, held_out, pool_gap, pool_size)
    _check_outputs(inputs, json, report, write or (), checkpoint, resume, then_json)
    enter(module or ())
    declaration = formulation.load(model)
    more = types, words, missing, checks, folds_by
    given = read_options(scale, label, positive, recipe_options(drop, use, impute, *more))
    try:
        data = readers.read(data_file, **given)
    except MoreClassesError as error:
        asked = ClassRequest(model, data_file, params, driver, option or (), seed, gap, time_limit, memory_limit, jobs)
        to = ClassesOutput(json, report, quiet, certificate_limit)
        return solve_classes(asked, error, given, written_out, shared_support, to)
    if shared_support:
        raise UsageError(f"--shared-support: {data_file} has two classes; leave it out")
    declared = declaration(data, params)
    compiled = formulation.compile(declared)
    problem = with_weight_rows(with_lp_rows(compiled, subject_to), weight_rows)
    problem = bound_weights(problem, nonnegative, nonpositive, weight_bounds, box, positive=positive)
    declared = declared if problem is compiled else redeclare_for(declared, problem)
    _check_made(problem, validation, preselect, calibrate, jobs)
    limits: dict[str, Any] = {"gap": gap, "seed": seed, "time_limit": time_limit, "memory_limit": memory_limit}
    limits["validation"] = None if validation is None else _read_validation(validation, data, label)
    options: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    options |= {} if start is None else {"start": parse_names(start)}
    driver = default_driver(declared, problem) if driver is None else driver
    if declaration.entry is not None and driver == declaration.entry.driver:
        options |= declaration.options(params)
    options |= parse_options(option or (), drivers.DEFAULT if driver is None else driver)
    options |= _pool_options({"pool_gap": pool_gap, "pool_size": pool_size}, driver)
    options |= {"certificate": False} if no_certificate else {}
    options |= {} if preselect is None else {"active": _preselect(problem, driver, preselect, seed)}
    rows = _held_out_rows(problem, then, held_out, label)
    for place in write or ():
        written.write(declared, place, options)
    with hold_signals(deliver=False):  # from here on only the driver hears Ctrl-C: what it found is written and shown
        with live_table(quiet, unkept=checkpoint is None) as observers, _cluster_options(dask, driver) as where:
            options |= _kept_options(checkpoint, checkpoint_every, resume, quiet) | {"observers": observers}
            options["warm"], begun = None if resume else warm, time.monotonic()
            result = drivers.solve(declared, driver=driver, **_without_folds(options, calibrate), **where)
            if calibrate is not None and result.has_classifier:
                result = _calibrate(problem, result, calibrate, options, jobs, begun=begun, quiet=quiet)
        result = dataclasses.replace(result, command=command_line())
        second = _prefer_near_optimal(problem, result, (then, then_json), rows, seed, jobs)
        title = f"{Path(model).name} on {Path(data_file).name}"
        return finish(result, json, quiet, certificate_limit, report, title, second, data)


def _check_then(
    then: str | None, then_json: str | None, held_out: str | None, pool_gap: float | None, pool_size: int | None
) -> float | None:
    """The gap of the list that a second wish chooses among; what belongs to one is refused without it."""
    if then is None:
        if then_json is not None or held_out is not None:
            option = "--held-out" if then_json is None else "--then-json"
            raise UsageError(f"{option} belongs to a second wish; give --then cost, auc or stability")
        return pool_gap
    if then not in WISHES:
        raise UsageError(f"--then {then}: the second wish is one of {', '.join(WISHES)}")
    if then == "auc" and held_out is None:
        raise UsageError("--then auc needs rows that were not trained on; give --held-out FILE")
    return WITHIN if pool_gap is None and pool_size is None else pool_gap


def _held_out_rows(problem: Problem, then: Any, held_out: str | None, label: str | None) -> Instance | None:
    """The rows that a second wish is judged on; a wish that no result could fulfil is refused before the solve."""
    rows = None if held_out is None else _read_validation(held_out, problem.data, label)
    if then is not None:
        from mipfs.lab.studies.preference import check_wish

        check_wish(problem, then, rows)
    return rows


def _prefer_near_optimal(
    problem: Problem, result: Result, asked: tuple[Any, str | None], held_out: Instance | None, seed: int,
    jobs: int | None,
) -> Reported | None:  # fmt: skip
    """The best of the near-optimal sets by the second wish, if there is one; its own result is written where asked."""
    if asked[0] is None or not result.has_classifier:
        return None
    from mipfs.cli.errors import complain
    from mipfs.cli.output import save_somewhere
    from mipfs.errors import StoppedError
    from mipfs.lab.studies.preference import prefer

    try:
        found = prefer(problem, result, asked[0], held_out=held_out, seed=seed, jobs=jobs)
    except StoppedError as error:
        complain(str(error), "warning")
        return None
    if asked[1] is not None:
        own = found.solve(problem, gap=result.params["gap"], seed=seed)
        save_somewhere(asked[1], own.save)
    return found


def _check_outputs(
    inputs: tuple[str | None, ...],
    json: str | None,
    report: str | None,
    write: Sequence[str],
    checkpoint: str | None,
    resume: str | None,
    then_json: str | None,
) -> None:
    """Refuse an output that is an input, or another output."""
    from mipfs.cli import written
    from mipfs.cli.output import check_page, check_target

    check_target(json, *inputs, pair=True)
    check_page(report, *inputs, resume, outputs=(json, *write, checkpoint))
    for k, place in enumerate(write):
        written.check_suffix(Path(place))
        check_target(place, *inputs, outputs=(json,), option="--write")
        if os.path.realpath(place) in map(os.path.realpath, write[:k]):
            raise UsageError(f"--write {place} is given twice; give every model its own file")
    if checkpoint is not None:
        check_target(checkpoint, *inputs, outputs=(json, *write), option="--checkpoint")
    check_target(then_json, *inputs, outputs=(json, report, checkpoint, *write), pair=True, option="--then-json")


def _kept_options(checkpoint: str | None, every: float | None, resume: str | None, quiet: bool) -> dict[str, Any]:
    """What the run goes on with, and who keeps its state, with the command that `mipfs resume` goes on with."""
    from mipfs.cli.errors import complain
    from mipfs.cli.typed import ARGUMENTS
    from mipfs.result.state import StartCommand
    from mipfs.run.run import EVERY, Keeper

    if every is not None and not every > 0:
        raise UsageError(f"--checkpoint-every {every:g} must be a number of seconds > 0")
    if checkpoint is None:
        return {"checkpoint": None, "resume": resume}
    is_other = resume is None or Path(resume).resolve() != Path(checkpoint).resolve()
    if is_other and not quiet and os.path.exists(checkpoint):
        complain(
            f"this run begins anew, and its state replaces what is in {checkpoint}; `mipfs resume {checkpoint}` "
            "goes on with that",
            "note",
        )
    began = StartCommand(tuple(ARGUMENTS.get()), os.getcwd())
    keeper = Keeper(checkpoint, EVERY if every is None else every, began=began)
    return {"checkpoint": keeper, "resume": resume}


def _without_folds(options: Mapping[str, Any], calibrate: int | None) -> dict[str, Any]:
    """The options of the solve alone, where the folds of a calibration share its limit of time."""
    if calibrate is None or not options.get("time_limit", 0.0) > 0.0:
        return dict(options)
    return {**options, "time_limit": (1.0 - FOLDS_SHARE) * options["time_limit"]}


def _calibrate(
    problem: Problem,
    result: Result,
    folds: int,
    options: Mapping[str, Any],
    jobs: int | None,
    *,
    begun: float,
    quiet: bool,
) -> Result:
    """The result with a calibration; without one, and with a word, where a fold has no classifier or at Ctrl-C.

    The folds share what the solve left of the limit of time.
    """
    from mipfs.cli.errors import complain
    from mipfs.lab.studies.calibration import calibrate
    from mipfs.run.side_by_side import jobs_of

    given = {name: options[name] for name in ("gap", "seed", "memory_limit") if name in options}
    each = ""
    if "time_limit" in options:
        turns = math.ceil(folds / jobs_of(jobs, folds))
        limit, spent = options["time_limit"], time.monotonic() - begun
        given["time_limit"] = max(limit - spent, FOLDS_SHARE * limit) / turns
        each = f", at most {given['time_limit']:.2g} s each: what the solve left of --time-limit"
    if not quiet:
        complain(f"calibrating on {folds} folds{each}", "note")
    try:
        return calibrate(problem, result, folds=folds, jobs=jobs, **given)
    except (UsageError, KeyboardInterrupt) as error:
        complain(f"no calibration: {str(error) or 'interrupted'}", "warning")
        return result


def with_lp_rows(problem: Problem, path: str | None) -> Problem:
    """The problem with the rows of an LP file, where one is given, on top of its own."""
    if path is None:
        return problem
    rows = lp_rows_over(problem, path)
    return problem.replace(rows=rows if problem.rows is None else problem.rows.stack(rows))


def lp_rows_over(problem: Problem, path: str) -> Rows:
    """The rows of an LP file over what a problem selects: its features, or groups and nodes of them by their names.

    Raises
    ------
    UsageError
        It selects products of features, which have no place in a row.
    """
    from mipfs.readers.lp_rows import read_rows

    atoms = problem.atoms
    if atoms.raw is atoms.data:
        return read_rows(path, atoms.raw, None if atoms.are_features else atoms.names)
    if atoms.count != atoms.raw.n_features:
        raise UsageError(f"{path}: rows are over features or groups, and {atoms.called} are selected; leave it out")
    return read_rows(path, atoms.raw)  # of functions of features the features


def _check_made(
    problem: Problem, validation: str | None, preselect: str | None, calibrate: int | None, jobs: int | None
) -> None:
    """Refuse what needs the columns of single features, where others are selected, and folds out of their range."""
    if calibrate is not None:
        from mipfs.lab.studies.folds import check_folds, require_columns
        from mipfs.run.side_by_side import jobs_of

        require_columns(problem, "--calibrate is", "-p loss=logistic says probabilities without it")
        jobs_of(jobs, check_folds(problem.data, calibrate))
    elif problem.data.split is not None:
        raise UsageError("--folds-by is for the folds of --calibrate K; give that too, or leave it out")
    for option, given in (("--validation", validation), ("--preselect", preselect)):
        if given is None or problem.data.block().is_stored:
            continue
        if problem.data.is_in_files:
            raise UsageError(
                f"{option} is for columns that lie in memory, and those of a column store lie in files; give the file "
                "that the store was made of, or leave it out"
            )
        raise UsageError(f"{option} is for features of the data, not for atoms that are made of them; leave it out")


def _preselect(problem: Problem, driver: str, how: str, seed: int) -> tuple[str, ...]:
    """The features to begin with."""
    from mipfs.drivers import get_driver
    from mipfs.lab.sketch.front import preselect

    if "active" not in get_driver(driver).Options.__dataclass_fields__:
        raise UsageError(f"--preselect: driver {driver!r} takes all features at once; give --driver branch")
    return preselect(problem, how, seed=seed)


@contextmanager
def _cluster_options(address: str | None, driver: str) -> Iterator[dict[str, Any]]:
    """A client of the scheduler at an address, for a driver that has work for it, as an option."""
    from mipfs import drivers
    from mipfs.plumbing.cluster import client_of

    if address is None:
        yield {}
        return
    able = [name for name in drivers.DRIVERS if hasattr(drivers.get_driver(name).Options, "client")]
    if driver not in able:
        raise UsageError(f"--dask: driver {driver!r} works in one process; {' and '.join(able)} can use a cluster")
    client = client_of(address)
    try:
        yield {"client": client}
    finally:
        client.close()


def _pool_options(given: Mapping[str, Any], driver: str) -> dict[str, Any]:
    """What is asked of a list, which the driver is to carry."""
    asked = {name: value for name, value in given.items() if value is not None}
    if asked:
        _check_pool(asked, driver)
    return asked


def _check_pool(asked: Mapping[str, float], driver: str) -> None:
    """Refuse a driver that finds no near-optimal supports, and 2 where 2% is meant."""
    from mipfs import drivers

    if asked.get("pool_gap", 0.0) >= 1.0:
        raise UsageError(f"--pool-gap {asked['pool_gap']:g}: it is a relative gap below 1, and 0.02 is 2%")
    if not hasattr(drivers.get_driver(driver).Options, "pool_gap"):
        names = " and ".join("--" + name.replace("_", "-") for name in asked)
        raise UsageError(f"{names}: driver {driver!r} finds no near-optimal supports; give --driver branch")


def _read_validation(path: str, data: Instance, label: str | None) -> Instance:
    """Validation data, with the labels of the training data."""
    from mipfs.readers import read_new

    names = data.feature_names
    n_features = data.n_features
    prepared = data.prepared
    recipe = None if prepared is None else prepared.document()
    known: dict[str, Any] = {"labels": data.labels, "remembered": data.label, "recipe": recipe}
    return read_new(path, names=names, n_features=n_features, label=label, **known)
