"""``mipfs report``: results, paths, ladders and benchmarks as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipfs.cli.options import Json, Label, Quiet, Seed
from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.data.instance import Instance
    from mipfs.lab.scorecard.card import Scorecard
    from mipfs.lab.studies.reading import Study
    from mipfs.report.blocks import Chart
    from mipfs.result.result import Result


def report(
    result_files: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT.json...",
            help="What `mipfs solve` or another command wrote with --json; several stand side by side.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="The page; by default RESULT.html.", show_default=False),
    ] = None,
    title: Annotated[
        str, typer.Option("--title", metavar="TEXT", help="The heading of the page.", show_default=False)
    ] = "",
    data: Annotated[
        str | None, typer.Option("--data", metavar="TEST", help="Labelled data to judge the classifiers on, too.")
    ] = None,
    label: Label = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Show results as one HTML page that needs no network."""
    from mipfs.cli.output import check_page, check_target, say, write_json
    from mipfs.lab import page
    from mipfs.lab.studies import reading
    from mipfs.plumbing.signals import hold_signals
    from mipfs.result import documents
    from mipfs.result.result import Result

    files = [documents.split_point(path)[0] for path in result_files]
    target = str(Path(files[0]).with_suffix(".html")) if output is None else output
    inputs = (*files, data)
    check_target(json, *inputs)
    check_page(target, *inputs, outputs=(json,), option="-o" if output is not None else "the page")
    if data is None and label is not None:
        raise UsageError(f"--label {label}: it names the label column of --data TEST, which is not given")
    studies: list[Study] = [
        reading.load(path) if file == path else documents.load(path)
        for path, file in zip(result_files, files, strict=True)
    ]
    judged = [_judge_study(study, path, data, label) for study, path in zip(studies, result_files, strict=True)]
    scores = [score for score, _ in judged]
    names = _distinct_file_names(result_files)
    items = [page.Item(name, study, *one) for name, study, one in zip(names, studies, judged, strict=True)]
    with hold_signals(deliver=False):
        size = page.write(target, items, title)
        kinds = [type(study).__name__ for study in studies]
        statuses = [study.status.name if isinstance(study, Result) else None for study in studies]
        parts = zip(result_files, kinds, statuses, scores, strict=True)
        shown = [{"file": f, "kind": k, "status": s, "score": score} for f, k, s, score in parts]
        write_json({"schema": 1, "page": target, "bytes": size, "items": shown}, json)
    if json != "-" and not quiet:
        say(f"page written to {target} ({size / 1000:,.0f} kB)")
    return 0


def _distinct_file_names(paths: Sequence[str]) -> list[str]:
    """The files by name, or as they were given where names are the same."""
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def _judge_study(study: Study, path: str, data: str | None, label: str | None) -> tuple[Any, Chart | None]:
    """How the classifiers of a study do on data, and the picture of the data where it is one of two features of them.

    None without data, or of what has no classifier.
    """
    from mipfs.cli.evaluate import new_rows
    from mipfs.result import documents
    from mipfs.result.pair import pair_chart
    from mipfs.result.result import Result

    if data is None:
        return None, None
    if not isinstance(study, Result) or documents.split_point(path)[1] is not None:
        return _score_study(study, path, data, label), None
    if not study.has_classifier:
        return None, None
    rows = new_rows(study, data, label, labelled=True)
    return _judge_result(study, rows, data), pair_chart(study, rows)


def _score_study(study: Study, path: str, data: str, label: str | None) -> Any:
    """How the classifiers of a study do on data; None of what has no classifier."""
    from mipfs.lab.classes import OneVsRest, judged
    from mipfs.lab.classes.one_vs_rest import classes_or_none
    from mipfs.lab.scorecard import Scorecard
    from mipfs.lab.studies.bench import Bench
    from mipfs.lab.studies.selection_stability import SelectionStability
    from mipfs.lab.studies.solution_path import SolutionPath
    from mipfs.result import documents
    from mipfs.result.result import Result

    file, name = documents.split_point(path)
    if isinstance(study, Result) and name is not None and (several := classes_or_none(file)) is not None:
        return _judge_result(study, judged.rows_of_class(several, name, data, label), data)
    if isinstance(study, Result):
        return _score_result(study, data, label) if study.has_classifier else None
    if isinstance(study, OneVsRest):
        return {**judged.score(study, data, label), "source": Path(data).name}
    if isinstance(study, SolutionPath):
        return [_score_result(p.result, data, label) if p.result.has_classifier else {} for p in study.points]
    if isinstance(study, Scorecard):
        return _score_result(study.result, data, label, study)
    what = {Bench: "a benchmark", SelectionStability: "a stability report"}.get(type(study), "a ladder")
    raise UsageError(f"--data: {path} is {what}, which has no classifier to judge; leave it out")


def _score_result(result: Result, path: str, label: str | None, card: Scorecard | None = None) -> dict[str, Any]:
    from mipfs.cli.evaluate import new_rows

    return _judge_result(result, new_rows(result, path, label, labelled=True), path, card)


def _judge_result(result: Result, data: Instance, path: str, card: Scorecard | None = None) -> dict[str, Any]:
    from mipfs.cli.evaluate import judge

    return {
        **judge(result, data, card),
        "source": Path(path).name,
        "trained_on": data.sha256 == result.data_sha256,
    }
