"""Documents of several results, paths and classes: what the checks of both share.

A document is checked whole: its own fields by `mipfs.check.paths` and `mipfs.check.classes`, each of its results by
`mipfs.check.tree` with the member of the archive beside it. What has no proof and cannot be computed again is named.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.check.known import EVERY_ARRAY
from mipfs.check.result import check_result
from mipfs.check.rounding import NEAR, CertificateError, Document, require
from mipfs.check.tree import Report
from mipfs.check.workers import ALONE, LeafWorkers
from mipfs.data.instance import Instance
from mipfs.errors import DataError, UnpackedError
from mipfs.readers.arrays import load_arrays, load_members
from mipfs.readers.room import PROOF_TIMES


@dataclass(frozen=True)
class PartReport:
    """What was found of a result in a document of several.

    Attributes
    ----------
    name : str, its place on a path, or its class
    result : mapping, its JSON
    report : Report or None; None where nothing of it was proven
    shown : mapping of words to words: the document's own fields beside the proof, after they were found to be right
    """

    name: str
    result: Document
    report: Report | None
    shown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DocumentReport:
    """What was found of a document of several results.

    Attributes
    ----------
    accepted, reason : bool, and what is wrong in one line, "" when accepted
    parts : tuple of PartReport, those that were asked for
    said : tuple of (name, words), what was recomputed of the document as a whole
    unchecked : tuple of str, what stands in it and was not checked
    """

    accepted: bool
    reason: str
    parts: tuple[PartReport, ...] = ()
    said: tuple[tuple[str, str], ...] = ()
    unchecked: tuple[str, ...] = ()


def judge_check(found: Callable[[], DocumentReport]) -> DocumentReport:
    """What a check finds, or why it refuses."""
    try:
        with np.errstate(all="ignore"):
            return found()
    except CertificateError as rejected:
        return DocumentReport(False, " ".join(str(rejected).split()))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, zlib.error) as error:
        return DocumentReport(False, " ".join(f"the document is malformed: {type(error).__name__}: {error}".split()))
    except (MemoryError, RecursionError) as error:
        return DocumentReport(False, f"the document is malformed: {type(error).__name__}")


def require_fields(stated: Any, needed: Collection[str], allowed: Collection[str], what: str) -> None:
    """Refuse a mapping that lacks a field, or has one that nobody knows."""
    require(isinstance(stated, Mapping), f"{what}: {stated!r:.60} stands there, no names with values")
    lacking = [name for name in needed if name not in stated]
    require(not lacking, f"{what} has no {lacking[0] if lacking else ''!r}")
    strangers = [str(name) for name in stated if name not in needed and name not in allowed]
    require(not strangers, f"{what}: {strangers[0] if strangers else ''!r} is stated, which this checker does not know")


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def is_whole(value: Any, least: int = 0) -> bool:
    """Whether a value of JSON is a whole number, `least` or more."""
    return type(value) is int and value >= least


def near(one: float, other: float) -> bool:
    """Whether two numbers that were computed apart are the same."""
    return abs(one - other) <= NEAR * max(abs(one), abs(other))


class Archive:
    """The certificates of the results of a document.

    Parameters
    ----------
    document : the JSON, whose entry "certificate" is about a whole archive where it has no "kind"
    path : Path, where the archive lies
    content : bytes, its contents
    expected : names of its members, others than the sidecars

    Attributes
    ----------
    members : mapping of names to contents
    """

    def __init__(self, path: Path, content: bytes | None) -> None:
        self.path = path
        self.sha256 = "" if content is None else hashlib.sha256(content).hexdigest()
        try:
            self.members = {} if content is None else load_members(path, content)
        except DataError as error:
            raise CertificateError(f"{path.name}: {error.message}") from None

    def require_members(self, expected: Collection[str]) -> None:
        """Refuse members that belong to nothing in the document."""
        strangers = [name for name in self.members if name not in expected]
        named = strangers[0] if strangers else ""
        require(not strangers, f"{self.path.name} holds {named!r}, which belongs to no result of the document")

    def arrays(self, name: str, content: bytes, known: Container[str]) -> Mapping[str, npt.NDArray[Any]]:
        """The arrays of a member; of one that is not `known` the name alone."""
        try:
            return load_arrays(self.path, content, known=known, times=PROOF_TIMES)
        except UnpackedError:
            raise
        except DataError as error:
            raise CertificateError(f"{name} in {self.path.name}: {error.message}") from None

    def report(
        self,
        k: int,
        result: Document,
        data: Instance,
        given: Mapping[str, Any] | None = None,
        workers: LeafWorkers = ALONE,
    ) -> Report:
        """What the checker finds of the k-th proof, with its own member."""
        return check_result(result, self.proof(k, result["certificate"]), data, given=given, workers=workers)

    def proof(self, k: int, entry: Mapping[str, Any]) -> Mapping[str, npt.NDArray[Any]]:
        """The arrays of the k-th proof, of which a result says the `entry`."""
        name = member_of(k)
        content = self.members.get(name)
        require(content is not None, f"{self.path.name}, which holds the certificates, has no {name}")
        assert content is not None
        right = hashlib.sha256(content).hexdigest() == entry["sha256"]
        require(right, f"{name} in {self.path.name} is not what the result was written with: its SHA-256 differs")
        return self.arrays(name, content, EVERY_ARRAY)


def member_of(k: int) -> str:
    """The name of the k-th sidecar in an archive."""
    return f"{k}.cert.npz"


def require_accepted(name: str, report: Report) -> None:
    """Refuse the document where one of its proofs is refused."""
    require(report.accepted, f"{name}: {report.reason}")


def unchecked_of(reports: Iterable[Report]) -> tuple[str, ...]:
    """What stands in results and was not checked, each once."""
    return tuple(dict.fromkeys(line for one in reports for line in one.unchecked))
