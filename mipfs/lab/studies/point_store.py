"""The solves of a path on disk: a line for every one, appended when it is done, so that what was killed goes on.

A line is the SHA-256 of its JSON, a space, and the JSON; one that a kill has torn or a disk has damaged has another
digest, and its problem is solved again. The first line says what the path is of. Every other has the stamp of its
problem (`mipfs.result.state.stamp_of`), so that a longer path, other folds or a larger limit take what fits them.
"""

from __future__ import annotations

import base64
import json
import os
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from mipfs.errors import CheckpointWarning, DataError, UsageError
from mipfs.plumbing import output_file, strict_json, typed_json
from mipfs.plumbing.digest import digest
from mipfs.plumbing.typed_json import plain as plain_json
from mipfs.problem import Problem
from mipfs.proof.cuts import CutPool
from mipfs.proof.duals import DualStore
from mipfs.proof.saved import restored_cuts, saved_cuts
from mipfs.readers.arrays import load_arrays, npz_bytes
from mipfs.result.result import CERTIFICATE_LIMIT, Result, Status
from mipfs.result.sidecar import pack_sidecar
from mipfs.result.state import StartCommand, stamp_of

KIND = "points of a path"
VERSION = 1
"""Version of the lines."""
LIMITS = ("gap", "time_limit", "memory_limit", "iteration_limit", "threads")
"""Options that change how far a solve goes, and not what it is of: what is proven to the asked gap stays so."""
REMEDY = "give what `mipfs path --checkpoint FILE` has kept"
SIDECAR = "point.cert.npz"
"""The name of a certificate in its line: where the path is written it gets its own."""
_DIGEST = 64


@dataclass(frozen=True, eq=False)
class StoredSolve:
    """A solve that stands in a store.

    Attributes
    ----------
    result : Result, with its certificate
    about : mapping, what a point says besides: seconds, cuts_carried, cuts, start
    pool : CutPool or None, the cuts that it leaves to the next point
    """

    result: Result
    about: Mapping[str, Any] = field(default_factory=dict)
    pool: CutPool | None = None


class PointStore:
    """What was solved of a path, in a file that grows.

    Parameters
    ----------
    path : path-like
    base : Problem
    axes : what the path runs over, of M, C, lambda and rows: its values there do not count
    driver : str
    options : mapping, of the driver
    began : StartCommand, how the path began on the command line
    goes_on : bool
        Whether the file is there, of the same path; otherwise there must be none.

    Raises
    ------
    UsageError
        The file is there and should not be, or cannot be written.
    DataError
        It is missing, none of a path, or one of other data, of another problem, driver or version.
    """

    def __init__(
        self,
        path: str | Path,
        base: Problem,
        axes: Collection[str],
        driver: str,
        options: Mapping[str, Any],
        *,
        began: StartCommand | None = None,
        goes_on: bool = False,
    ) -> None:
        self.path = Path(path)
        self._options = {name: _option_as_json(value) for name, value in options.items()}
        self._kept: dict[tuple[str, bool], Mapping[str, Any]] = {}
        self._is_dead = False
        head = {"kind": KIND, "version": VERSION, "driver": driver, "data": base.atoms.stamp}
        head["problem"] = stamp_of(_fix_axes(base, axes))
        if goes_on:
            lines = _read_valid_lines(self.path)
            _check(lines[0], head, self.path)
            self._kept = {(line["problem"], line["cold"]): line for line in lines[1:] if _is_solve(line)}
            return
        began = StartCommand() if began is None else began
        head |= {"arguments": list(began.arguments), "folder": began.folder}
        with output_file.alone(self.path.absolute().parent):
            if os.path.lexists(self.path):
                raise UsageError(
                    f"{self.path} is there already; go on with it by `mipfs resume {self.path}` or --resume, or name "
                    "another file"
                )
            output_file.save([(self.path, _encode_line(head))])

    def find(self, problem: Problem, *, cold: bool = False) -> StoredSolve | None:
        """What was found of a problem; None where nothing was, or not to the gap and options that are asked now."""
        line = self._kept.get((stamp_of(problem), cold))
        if line is None:
            return None
        try:
            result = Result.from_json(json.dumps(line["result"]), path=self.path)
            content = None if line["certificate"] is None else base64.b64decode(line["certificate"])
        except (DataError, ValueError, TypeError):
            return None
        if not self._is_reusable(line["options"], result):
            return None
        pool = _pool_of(problem, line.get("cuts"))
        return StoredSolve(replace(result, sidecar=content, path=self.path), line["about"], pool)

    def add(
        self,
        problem: Problem,
        result: Result,
        about: Mapping[str, Any],
        *,
        pool: CutPool | None = None,
        cold: bool = False,
    ) -> None:
        """Append a solve. A file that cannot be written is warned about once, and the path goes on without it."""
        if self._is_dead:
            return
        content, entry = pack_sidecar(result, SIDECAR, 1e6 * CERTIFICATE_LIMIT)
        line = {
            "problem": stamp_of(problem),
            "cold": cold,
            "options": self._options,
            "about": dict(about),
            "result": result._with_certified_bound(entry).document(),
            "certificate": None if content is None else base64.b64encode(content).decode("ascii"),
            **_cuts_of(pool),
        }
        try:
            _append_line(self.path, _encode_line(line))
        except OSError as error:
            self._is_dead = True
            warnings.warn(
                f"{self.path}: cannot be written ({error.strerror or error}); the path goes on, and what it solves "
                "from here on is not kept there",
                CheckpointWarning,
                stacklevel=2,
            )

    def _is_reusable(self, options: Mapping[str, Any], result: Result) -> bool:
        """Whether a solve is what would come of it now: the same options, or proven with others that only limit."""
        if options == self._options:
            return True
        if _drop_limits(options) != _drop_limits(self._options):
            return False
        asked = self._options.get("gap")
        return result.status is Status.INFEASIBLE or (
            result.status is Status.OPTIMAL and asked is not None and result.gap <= float(asked)
        )


def is_store(path: str | Path) -> bool:
    """Whether a file begins as these do."""
    try:
        with open(path, "rb") as stream:
            start = stream.read(_DIGEST + 40)
    except OSError:
        return False
    return start[_DIGEST:].startswith(f' {{"kind": "{KIND}"'.encode())


def began_of(path: str | Path) -> StartCommand:
    """How a path began whose solves are in a file.

    Raises
    ------
    DataError
    """
    head = _read_valid_lines(Path(path))[0]
    arguments, folder = head.get("arguments"), head.get("folder")
    _require_known(isinstance(arguments, list) and isinstance(folder, str), Path(path))
    return StartCommand(tuple(map(str, arguments or ())), str(folder))


def _read_valid_lines(path: Path) -> list[Mapping[str, Any]]:
    """The lines whose digest fits, the first of which must be one."""
    try:
        texts = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError("cannot be read", (error.strerror or str(error)).lower(), path=path) from None
    found = [_parse_line(text) for text in texts]
    _require_known(found[0] is not None and found[0].get("kind") == KIND, path)
    return [line for line in found if line is not None]


def _parse_line(text: bytes) -> Mapping[str, Any] | None:
    said, space, body = text.partition(b" ")
    if not space or said != digest([body]).encode():
        return None
    try:
        line = strict_json.parse_json(body.decode("utf-8"))
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _encode_line(document: Mapping[str, Any]) -> bytes:
    body = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    return digest([body]).encode() + b" " + body + b"\n"


def _append_line(path: Path, line: bytes) -> None:
    """Append a line, on disk when it returns; on an error the file ends where it ended.

    Two that append at once, such as paths that go on with one file, wait for one another.
    """
    with output_file.alone(path.absolute().parent), open(path, "r+b", buffering=0) as stream:
        end = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, end - 1))
        torn = end > 0 and stream.read(1) != b"\n"
        left = memoryview(b"\n" * torn + line)
        try:
            while left:
                left = left[stream.write(left) or 0 :]
            os.fsync(stream.fileno())
        except OSError:
            stream.truncate(end)
            raise


def _check(there: Mapping[str, Any], here: Mapping[str, Any], path: Path) -> None:
    """Refuse what another path has kept, and say in what they differ."""
    if there.get("version") != here["version"]:
        raise DataError("kept by another version of mipfs", "begin the path anew, in another file", path=path)
    for name, what in (
        ("driver", f"driver {there.get('driver')!r}, not {here['driver']!r}"),
        ("data", "other data, scaling or atoms"),
        ("problem", "another problem: loss, rows, costs or what else stays the same along the path differ"),
    ):
        if there.get(name) != here[name]:
            raise DataError(f"kept of {what}", "begin the path anew, in another file", path=path)


def _require_known(holds: bool, path: Path) -> None:
    if not holds:
        raise DataError("is no store of a path", REMEDY, path=path)


class AboutEntry(TypedDict):
    """What a point says beside its result."""

    seconds: float
    cuts_carried: float
    cuts: float
    start: list[str]


class SolveEntry(TypedDict):
    """The line of a solve; its result is read when it is asked for."""

    problem: str
    cold: bool
    options: dict[str, Any]
    about: AboutEntry
    result: dict[str, Any]
    certificate: str | None
    cuts: NotRequired[str]


def _cuts_of(pool: CutPool | None) -> dict[str, Any]:
    """What a pool is made of again, as a field of a line; nothing where a pool has no cuts, or those of labellings."""
    if pool is None or not isinstance(pool.duals, DualStore):
        return {}
    content = npz_bytes(saved_cuts(pool))
    return {"cuts": base64.b64encode(content).decode("ascii")}


def _pool_of(problem: Problem, cuts: str | None) -> CutPool | None:
    """The pool of a line, for its problem; None where it has none."""
    if cuts is None:
        return None
    pool = CutPool(problem)
    try:
        restored_cuts(pool, load_arrays(Path("cuts.npz"), base64.b64decode(cuts)))
    except (DataError, ValueError, TypeError, LookupError):
        return None
    return pool


def _is_solve(line: Mapping[str, Any]) -> bool:
    try:
        typed_json.read(line, SolveEntry)
    except typed_json.FieldError:
        return False
    return True


def _fix_axes(base: Problem, axes: Collection[str]) -> Problem:
    """The problem at fixed values of what a path runs over; along rows the first point is the problem itself."""
    fixed = {"M": ("M", None), "C": ("C", 1.0), "lambda": ("lam", 0.0)}
    return base.replace(**dict(fixed[axis] for axis in axes if axis in fixed))


def _drop_limits(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in LIMITS}


def _option_as_json(value: Any) -> Any:
    """An option as JSON has it: data by its digest, other objects by their type."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return plain_json(value)
    if isinstance(value, (list, tuple, Mapping)):
        return json.loads(json.dumps(plain_json(value), default=lambda one: type(one).__qualname__))
    return getattr(value, "sha256", type(value).__qualname__)
