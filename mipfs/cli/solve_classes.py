"""``mipfs solve`` of data with more than two classes: one classifier a class, against the rest."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mipfs.errors import MoreClassesError, SuspectWarning, UsageError

if TYPE_CHECKING:
    from mipfs.data.instance import Instance
    from mipfs.lab.classes import OneVsRest
    from mipfs.result.result import Result

FOR_TWO = (
    *("positive", "subject_to", "weight_rows", "start", "validation"),
    *("pool_gap", "pool_size", "preselect", "checkpoint", "resume", "warm", "dask", "write", "calibrate"),
    "no_certificate",
)
"""Options that are for two classes."""
SHARED_MODELS = ("fsp-m", "fsp-lambda")
"""The models that a shared support is of."""


@dataclass(frozen=True)
class ClassRequest:
    """What is asked of every class."""

    model: str
    data_file: str
    params: Mapping[str, Any]
    driver: str | None
    option: Sequence[str]
    seed: int
    gap: float
    time_limit: float | None
    memory_limit: float | None
    jobs: int | None

    def options(self, driver: str) -> dict[str, Any]:
        """The options of a run."""
        from mipfs.cli.driver_options import parse_options

        given = {"gap": self.gap, "seed": self.seed, "time_limit": self.time_limit, "memory_limit": self.memory_limit}
        return {name: one for name, one in given.items() if one is not None} | parse_options(self.option, driver)


class ClassesOutput(NamedTuple):
    """Where JSON and page go, whether nothing is shown, and the limit of the certificates in megabytes."""

    json: str | None
    report: str | None
    quiet: bool
    certificate_limit: float


def solve_classes(
    asked: ClassRequest,
    error: MoreClassesError,
    reading: Mapping[str, Any],
    options: Mapping[str, Any],
    shared: bool,
    output: ClassesOutput,
) -> int:
    """Solve every class against the rest, or all on one support; write and show it; the exit code.

    Parameters
    ----------
    asked : ClassRequest
    error : what `mipfs.read` said, which stands where an option is given that two classes need
    reading : keyword arguments of `mipfs.read`
    options : all options of the command, of which `FOR_TWO` are refused
    shared : whether there is one selection for all
    output : ClassesOutput
    """
    from mipfs import readers
    from mipfs.cli.errors import STOPPED_EARLY, complain
    from mipfs.cli.options import bounded_classes
    from mipfs.cli.output import INFEASIBLE, why_nothing
    from mipfs.cli.typed import command_line
    from mipfs.data.against_rest import of_many, weigh_classes
    from mipfs.data.suspects import warn_of_suspects
    from mipfs.lab.classes import OneVsRest
    from mipfs.plumbing.signals import hold_signals
    from mipfs.readers.sidecar import DataDescription
    from mipfs.result.result import Status

    given = [
        f"--{name.replace('_', '-')}"
        for name in FOR_TWO
        if options.get(name) is not None and options[name] is not False
    ]
    if given:
        raise UsageError(f"{given[0]} is for two classes: {error}; or leave {given[0]} out, for one classifier a class")
    parts = {name: reading[name] for name in ("drop", "use", "impute", "types", "missing") if name in reading}
    rest = {name: value for name, value in reading.items() if name not in (*parts, "checks")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown when the labels were read
        instances = readers.read_classes(asked.data_file, parts, **rest)
    if reading.get("checks", DataDescription.beside(Path(asked.data_file)).checks) is not False:
        _warn_of_quantity(instances, asked.data_file)
        warn_of_suspects(instances, asked.data_file)
    weights = of_many(asked.params.get("class_weight", instances[0].class_weight), instances)
    asked = dataclasses.replace(asked, params={k: v for k, v in asked.params.items() if k != "class_weight"})
    instances = bounded_classes(
        weigh_classes(instances, weights),
        *(options[name] for name in ("nonnegative", "nonpositive", "weight_bounds", "box")),
    )
    with hold_signals(deliver=False):
        found = _solve_shared(asked, instances) if shared else _solve_separately(asked, instances)
        if isinstance(found, OneVsRest):
            _write_classes(dataclasses.replace(found, class_weight=weights, command=command_line()), asked, output)
            return 0
    label, result = found
    if result.status is Status.INFEASIBLE:
        conflict = ", ".join(map(repr, result.conflict or ()))
        complain(f"{label}: no selection satisfies the rows; these contradict each other: {conflict}")
        return INFEASIBLE
    complain(f"{label}: {why_nothing(result)}")
    return STOPPED_EARLY


def _warn_of_quantity(instances: Sequence[Instance], where: str) -> None:
    """Say so where more than half of the rows are of a class of their own: what scikit-learn warns of in `fit`."""
    n = instances[0].n_samples
    if 2 * len(instances) > n:
        text = f"{len(instances)} different labels in {n} rows, each a class of its own; a quantity is cut into two"
        warnings.warn(f"{where}: {text} before it is a label", SuspectWarning, stacklevel=3)


def _write_classes(found: OneVsRest, asked: ClassRequest, output: ClassesOutput) -> None:
    """Write the JSON and the page where they were asked for, and show the result."""
    from mipfs.cli.output import say, show_blocks, tell_page, write_json, write_page

    if output.json == "-":
        write_json(found.document(), output.json)
    elif output.json is not None:
        found.save(output.json, certificate_limit=output.certificate_limit)
    write_page(output.report, f"{Path(asked.model).name} on {Path(asked.data_file).name}", found)
    if output.json == "-" or output.quiet:
        return
    show_blocks(found.blocks())
    if output.json is not None:
        say(f"\nwritten to {output.json}, with the certificates beside it")
    tell_page(output.report, after=output.json is not None)


def _solve_separately(asked: ClassRequest, instances: Sequence[Instance]) -> Any:
    """One result a class; or the class that has none, and what became of it."""
    from mipfs.lab.classes import OneVsRest
    from mipfs.run.side_by_side import in_order, jobs_of

    jobs = jobs_of(asked.jobs, len(instances))
    given = asked, instances, jobs
    results: list[Result] = []
    try:
        with closing(in_order(_result_of_class, given, range(len(instances)), jobs)) as found:
            for result in found:
                results.append(result)
                if not result.has_classifier:
                    break
    except KeyboardInterrupt:  # which those that are left know of, and end as soon as they have a classifier
        results += [_result_of_class(given, k) for k in range(len(results), len(instances))]
    for data, result in zip(instances, results, strict=False):
        if not result.has_classifier:
            return data.labels.positive, result
    return OneVsRest(tuple(one.labels.positive for one in instances), tuple(results))


def _result_of_class(given: tuple[ClassRequest, Sequence[Instance], int], k: int) -> Result:
    """The result of one class against the rest."""
    from mipfs import drivers, formulation
    from mipfs.drivers.default import default_driver
    from mipfs.run.side_by_side import limits_of

    asked, instances, jobs = given
    declaration = formulation.load(asked.model)
    declared = declaration(instances[k], dict(asked.params))
    problem = formulation.compile(declared)
    driver = asked.driver or default_driver(declared, problem)
    options = limits_of(asked.options(driver), jobs)
    if declaration.entry is not None and driver == declaration.entry.driver:
        options |= declaration.options(dict(asked.params))
    return dataclasses.replace(drivers.solve(declared, driver=driver, **options), declare=None)


def _solve_shared(asked: ClassRequest, instances: Sequence[Instance]) -> Any:
    """All classes on one support; or what became of it."""
    from mipfs.lab.classes import OneVsRest, parts_of, solve_shared, stating_scaling

    if asked.model not in SHARED_MODELS:
        raise UsageError(f"--shared-support is for {' and '.join(SHARED_MODELS)}, not {asked.model}")
    driver = asked.driver or "branch"
    params = dict(asked.params)
    together = solve_shared(instances, driver, options=asked.options(driver), **params)
    if not together.has_classifier:
        return "all classes", together
    together = stating_scaling(dataclasses.replace(together, declare=None), instances)
    classes = tuple(one.labels.positive for one in instances)
    bias = params.get("bias", True) is True
    return OneVsRest(classes, parts_of(together, instances, **params), together, bias)
