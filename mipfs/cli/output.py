"""How a result is shown, written and turned into an exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mipfs.cli.errors import BAD_USAGE, STOPPED_EARLY, complain
from mipfs.cli.text import show_blocks
from mipfs.errors import DataError, UsageError
from mipfs.plumbing import output_file
from mipfs.plumbing.signals import held
from mipfs.proof.sidecar import sidecar_of
from mipfs.readers.files import description_of
from mipfs.result.result import CERTIFICATE_LIMIT, Result, Status
from mipfs.result.summary import BECAUSE, summary_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping

INFEASIBLE = 3


def finish(result: Result, target: str | None, quiet: bool, certificate_limit: float = CERTIFICATE_LIMIT) -> int:
    """Write the JSON where it was asked for, show the result to people, and return the exit code.

    What cannot be written is still shown, so that a full disk does not take it.
    """
    if target == "-":
        print(result.to_json(), flush=True)
    elif target is not None:
        try:
            result.save(target, certificate_limit=certificate_limit)
        except UsageError:
            if not quiet and (result.has_classifier or result.relaxed is not None):
                show_result(result)
                sys.stdout.flush()
            raise
    if result.status is Status.INFEASIBLE:
        culprits = ", ".join(repr(name) for name in result.conflict)
        complain(f"no selection satisfies the rows; these contradict each other: {culprits}; drop or relax one of them")
        return INFEASIBLE
    if not result.has_classifier and result.relaxed is None:
        return _explain_nothing(result)
    if target != "-" and not quiet:
        show_result(result)
        if target is not None:
            certificate = "" if result.certificate is None else f", its certificate to {result.certificate['file']}"
            print(f"\nwritten to {target}{certificate}")
    return 0


def show_result(result: Result) -> None:
    """Print status, numbers and the selected features with their weights."""
    show_blocks(summary_blocks(result))


def check_target(target: str | None, *inputs: str | None, pair: bool = False, option: str = "--json") -> None:
    """Refuse a JSON target that cannot be written or is one of the inputs, before hours of work are lost to it.

    Parameters
    ----------
    target : the value of the option
    inputs : files that the command reads; beside data its description is read too, beside a result its certificate
    pair : whether a certificate is written beside the target
    option : its name, for the message
    """
    if target is None or target == "-":
        return
    path = Path(target)
    read = [other for name in inputs if name is not None for other in (Path(name), *_read_beside(Path(name)))]
    try:
        output_file.check(path, read)
        if pair and not output_file.is_stream(path):
            output_file.check(sidecar_of(path), read)
    except UsageError as error:
        raise UsageError(f"{option} {error}") from None


def _read_beside(path: Path) -> list[Path]:
    """What is read along with a data file or a result."""
    try:
        return [description_of(path), sidecar_of(path)]
    except (DataError, ValueError):
        return []  # no data file at all: its reader will say so


def write_json(document: Mapping[str, Any], target: str) -> None:
    """Write any other JSON document to a file, or to standard output for ``-``."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    with held(deliver=False):
        if target == "-":
            print(text, flush=True)
        else:
            output_file.save([(Path(target), f"{text}\n".encode())])


def _explain_nothing(result: Result) -> int:
    if result.status is Status.NUMERICAL:
        complain("the numbers are too large or too ill-scaled for a trustworthy answer; try --scale standard")
        return BAD_USAGE
    complain(f"{BECAUSE[result.stop_reason]} before any classifier was found; raise the limit")
    return STOPPED_EARLY
