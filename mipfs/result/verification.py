"""`mipfs.verify`: a result and its certificate before the checker. Nothing that finds results is loaded for that."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy.typing as npt

from mipfs.check.card import CardReport, check_card
from mipfs.check.known import EVERY_ARRAY
from mipfs.check.result import check_result
from mipfs.check.tree import Report
from mipfs.check.workers import LeafWorkers
from mipfs.data.instance import Instance
from mipfs.errors import DataError, UnpackedError, UsageError
from mipfs.plumbing.declared import Count, check_value, show_value
from mipfs.plumbing.forked import ForkedPool
from mipfs.plumbing.machine import cores, one_blas_thread
from mipfs.proof import pair
from mipfs.readers.arrays import load_arrays
from mipfs.readers.room import PROOF_TIMES
from mipfs.report.progress import progress
from mipfs.result.saved_card import sign_document
from mipfs.result.sidecar import state_rows

if TYPE_CHECKING:
    from mipfs.result.result import Result
    from mipfs.selection.rows import Rows

Arrays = Mapping[str, npt.NDArray[Any]]
MISSING = (
    "the result stands alone: its certificate is a second file, written where the result is saved to a file; "
    "solve it again with --json FILE and without --no-certificate, or result.save(FILE)"
)
NOTHING = "there is nothing to verify: the run found neither a selection nor a bound"


class VerifiableCard(Protocol):
    """A scorecard, `mipfs.lab.scorecard.Scorecard`, as it is verified."""

    @property
    def result(self) -> Result:
        """The result inside."""

    def document(self) -> dict[str, Any]:
        """Its JSON."""


@overload
def verify(
    result: Result, data: Instance, rows: Rows | None = None, *, verbose: bool = False, jobs: int | None = None
) -> Report:
    """Check a result."""


@overload
def verify(
    result: VerifiableCard, data: Instance, rows: Rows | None = None, *, verbose: bool = False, jobs: int | None = None
) -> CardReport:
    """Check a scorecard."""


def verify(
    result: Result | VerifiableCard,
    data: Instance,
    rows: Rows | None = None,
    *,
    verbose: bool = False,
    jobs: int | None = None,
) -> Report | CardReport:
    """Check what a result claims against the raw data: status, objective, bound, and what `predict` uses.

    Of a scorecard the result inside is checked so, and all that the card says beside it: columns, objective, totals.

    Parameters
    ----------
    result : Result, of `mipfs.solve` or `Result.load`, or Scorecard, of `mipfs.scorecard` or `read_scorecard`
    data : Instance, the same data, scaled as it was
    rows : Rows, optional
        The rows that the problem must have beside those of the data, and no others (`mipfs solve --subject-to`).
    verbose : bool, default False
        Show on a terminal how many of the leaves are done.
    jobs : int >= 1, optional
        Processes that check leaves at a time, at most as many as the memory has room for; by default as many as there
        are cores. What is found does not depend on it. There is one on other systems than Linux, and in a process
        that has threads of its own; none is begun for what takes less than a second.

    Returns
    -------
    Report or CardReport
        ``accepted``, ``reason``, the certified ``bound``, ``objective``, ``gap``, the ``statement`` in words, and more.
        Of a card ``bound`` is the word of the search for points and not proven; ``result`` is the report of the result.

    Raises
    ------
    UsageError
        The result was not saved with its certificate, or there is nothing to verify.
    DataError
        The sidecar is missing or cannot be read.
    LostWorkersError
        All processes were ended from outside.
    """
    inside: Any = getattr(result, "result", result)
    if not (hasattr(inside, "to_json") and hasattr(inside, "stated")):  # a data frame has the first
        raise UsageError(f"result = {show_value(result)} must be a Result, of mipfs.solve or Result.load")
    for name, value, kind in (("data", data, Instance), ("verbose", verbose, bool), ("jobs", jobs, Count | None)):
        check_value(name, value, kind)
    if hasattr(result, "result"):
        document = result.document()
        if has_proof(document):  # which may not have been saved yet
            document = sign_document({**document, "result": {**claim_of(inside)[0], "trace": []}})
        more = getattr(getattr(result, "joint", None), "arrays", {})
        return verify_card(document, inside, data, rows, more=more, verbose=verbose, jobs=jobs)
    given = None if rows is None else given_of(rows, data, inside)
    document, arrays = claim_of(inside)
    if isinstance(arrays, str):
        return Report(False, arrays)
    with at_work(jobs, verbose) as workers:
        return check_result(document, arrays, data, given=given, workers=workers)


@contextmanager
def at_work(jobs: int | None, verbose: bool) -> Iterator[LeafWorkers]:
    """Who checks leaves: as many processes as there are cores by default; a terminal shows how many are done.

    One thread for linear algebra each: the last digits of a product depend on how many there are.
    """
    with progress("checked", "leaves", verbose) as told, one_blas_thread():
        yield LeafWorkers(ForkedPool(cores() if jobs is None else jobs), told)


def verify_card(
    document: Mapping[str, Any],
    result: Result,
    data: Instance,
    rows: Rows | None = None,
    *,
    more: Arrays | None = None,
    verbose: bool = False,
    jobs: int | None = None,
) -> CardReport:
    """Check the JSON of a card with the certificate of the result inside; the rest is as in `verify`.

    `more` are arrays of the card's own proof, where that was not saved yet.
    """
    given = None if rows is None else given_of(rows, data, result)
    arrays = claim_of(result)[1] if has_proof(document) else "a card of the first version has no certificate"
    if more and not isinstance(arrays, str):
        arrays = {**arrays, **more}
    with at_work(jobs, verbose) as workers:
        return check_card(document, arrays, data, given=given, workers=workers)


def has_proof(document: Mapping[str, Any]) -> bool:
    """Whether a certificate belongs to a card, of its JSON: not to one of the first version."""
    return "version" in document


def claim_of(result: Result) -> tuple[dict[str, Any], Arrays | str]:
    """What the checker reads of a result: its JSON with the entry "certificate", and the arrays of its certificate.

    Returns
    -------
    tuple
        Instead of the arrays the reason, in words, where what stands beside the JSON is no certificate of it.

    Raises
    ------
    UsageError
        The result was not saved with its certificate, or there is nothing to verify.
    DataError
        The sidecar is missing or cannot be read.
    """
    document = result.document() | dict(result.stated)
    if result.claim is not None:
        return document | {"certificate": result.claim.entry()}, result.claim.arrays()
    if result.certificate is None or result.path is None:
        unearned = not (math.isfinite(result.objective) or math.isfinite(result.bound))
        raise UsageError(NOTHING if unearned and result.status.name != "INFEASIBLE" else MISSING)
    if not Path(str(result.certificate.get("file"))).name:
        return document, "the certificate names no file"
    if result.sidecar is not None:
        return document, _read(result.path, result.sidecar)
    found = pair.find(result.path, result.certificate, exactly=True)
    if found.found:
        return document, _read(found.path)
    if not os.path.isfile(found.path):
        raise DataError("the sidecar of the result is missing", "keep it beside the JSON", path=found.path)
    return document, f"{found.path.name} is not the file that the result was written with: its SHA-256 differs"


def given_of(rows: Rows, data: Instance, result: Result) -> dict[str, Any]:
    """The rows that must hold, as the JSON of a result has them: of groups, or features, those behind columns too."""
    from mipfs.selection.rows import Rows as Kind

    check_value("rows", rows, Kind | None)
    raw = getattr(data.block().values, "raw", None) or data
    return state_rows(rows, groups_of(result) or raw.feature_names)


def groups_of(result: Result) -> Sequence[str] | None:
    """The names of what a result selects, None for features and functions of them."""
    names: Sequence[str] | None = (result.atoms or {}).get("names")
    return names


def _read(path: Path, content: bytes | None = None) -> Arrays:
    """The arrays of a sidecar, of its contents where these are at hand."""
    try:
        return load_arrays(path, content, known=EVERY_ARRAY, times=PROOF_TIMES)
    except UnpackedError:
        raise
    except DataError as error:
        raise DataError(
            f"not a certificate ({error.message})", "give the file that `mipfs solve --json` wrote", path=path
        ) from None
