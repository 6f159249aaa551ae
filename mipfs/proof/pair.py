"""A result and its certificate on a disk: RESULT.json and RESULT.cert.npz, paired by the SHA-256 that the JSON holds.

No system replaces two files in one step. So before the certificate is replaced, the one that stands there gets a second
name with its digest in it, RESULT.0123456789ab.cert.npz, under which a reader of the old JSON finds it until the new
JSON stands; then that name goes (docs/certificate.md, "Which file it is", tells readers). Whatever moment a process is
ended at, the JSON that stands there has its certificate. Those who save to one folder wait for one another, so that
nobody takes away what another one's JSON names.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mipfs.errors import UsageError
from mipfs.plumbing import output_file, signals

Read = TypeVar("Read")

DIGEST_DIGITS = 12
"""Digits of the digest in a second name."""
SMALL_BYTES = 1 << 20
"""Bytes up to which a certificate is read together with its result: most are smaller by far."""
MOST_ATTEMPTS, PAUSE_SECONDS = 100, 0.005
"""Times that a pair is read which others replace meanwhile, and seconds between them."""


def sidecar_of(path: Path) -> Path:
    """RESULT.cert.npz beside RESULT.json, where the file itself is if that is a link.

    Raises
    ------
    UsageError
        The path ends in no name.
    """
    if not path.name:
        raise UsageError(f"{path}: this is no file name; give one, such as result.json")
    place = Path(os.path.realpath(path)) if os.path.islink(path) else path
    return place.with_name(place.name.removesuffix(".json") + ".cert.npz")


def check_other(path: Path) -> None:
    """Refuse RESULT beside RESULT.json, and the other way round, where the certificate of that one would be replaced.

    Raises
    ------
    UsageError
    """
    other = path.with_name(path.name.removesuffix(".json") if path.name.endswith(".json") else f"{path.name}.json")
    digest = sha256(sidecar_of(path)).encode() if other.is_file() else b""
    if digest and digest in other.read_bytes():
        raise UsageError(f"{path}: the certificate of {other} would be replaced; give the output another name")


def sha256(path: Path) -> str:
    """The digest of a file; "" where there is none that can be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


@dataclass(frozen=True)
class NamedCertificate:
    """The certificate that a JSON names.

    Attributes
    ----------
    path : Path, where it is, or should be
    content : bytes, optional, of a small one
    found : bool, whether it stands there, and of a small one whether it has the digest
    """

    path: Path
    content: bytes | None = None
    found: bool = False


def find(path: Path, entry: Mapping[str, Any], *, exactly: bool = False) -> NamedCertificate:
    """The certificate of the JSON at `path` with this entry, beside it or, of a link, beside the file itself.

    Under its name, or its second one. The digest of a large one is looked at where that tells two files apart, and
    where it is asked for.
    """
    name = Path(str(entry.get("file"))).name
    wanted = str(entry.get("sha256"))
    beside = path.with_name(name or "none")
    named = beside if os.path.exists(beside) else Path(os.path.realpath(path)).with_name(beside.name)
    places = [named, _second_path(named, wanted)] if name else []
    exactly = exactly or any(os.path.exists(place) for place in places[1:])
    for place in places:
        try:
            small = place.stat().st_size <= SMALL_BYTES
            content = place.read_bytes() if small else None
        except (OSError, ValueError):
            continue
        if content is not None:
            same = hashlib.sha256(content).hexdigest() == wanted
        else:
            same = not exactly or sha256(place) == wanted
        if same:
            return NamedCertificate(place, content, found=True)
    return NamedCertificate(named)


def read(
    path: Path, parsed: Callable[[], tuple[Read, Mapping[str, Any] | None]]
) -> tuple[Read, NamedCertificate | None]:
    """Read a JSON and find its certificate, both of one moment: what is replaced meanwhile is read again.

    Parameters
    ----------
    path : Path
    parsed : callable that reads the file: what it holds, and its entry "certificate"
    """
    for _ in range(MOST_ATTEMPTS):
        before = _file_stamp(path)
        document, entry = parsed()
        sidecar = None if entry is None else find(path, entry)
        if sidecar is None or sidecar.found or (before is not None and _file_stamp(path) == before):
            break
        time.sleep(PAUSE_SECONDS)
    return document, sidecar


def save(path: Path, document: bytes, content: output_file.Content | None) -> None:
    """Write a JSON, and its certificate where there is one, or what writes that: both or neither.

    Raises
    ------
    UsageError
        A file cannot be written, or another result's certificate stands there; what stood there before is as it was.
    """
    if content is None:
        output_file.save([(path, document)])
        return
    check_other(path)
    sidecar = sidecar_of(path)
    with signals.hold_signals(), output_file.alone(sidecar.parent):
        _keep_second_name(path, sidecar)
        try:
            output_file.save([(sidecar, content), (path, document)])
        finally:
            _clear_second_names(path, sidecar)


def _second_path(sidecar: Path, digest: str) -> Path:
    """Where a certificate stands that is being replaced."""
    return sidecar.with_name(f"{sidecar.name.removesuffix('.cert.npz')}.{digest[:DIGEST_DIGITS]}.cert.npz")


def _file_stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is replaced; None where there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _wanted_digest(path: Path) -> str:
    """The digest that the JSON at `path` names: of an archive, of a certificate, a card in its result; "" for none."""
    try:
        document = json.loads(path.read_bytes())
        inside = document["result"] if document.get("kind") == "scorecard" else document
        return str((inside.get("archive") or inside["certificate"])["sha256"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""


def _keep_second_name(path: Path, sidecar: Path) -> None:
    """Give the certificate of the JSON that stands there its second name."""
    wanted = _wanted_digest(path)
    if re.fullmatch("[0-9a-f]{64}", wanted) and sha256(sidecar) == wanted:
        second = _second_path(sidecar, wanted)
        with suppress(OSError):  # it has it already: a process was ended before it took that away
            try:
                os.link(sidecar, second)
            except FileExistsError:
                pass
            except OSError:  # not every file system has hard links
                shutil.copyfile(sidecar, second)


def _clear_second_names(path: Path, sidecar: Path) -> None:
    """Take second names away, of this certificate alone, but for one that the JSON still needs."""
    wanted = _wanted_digest(path)
    stem = re.escape(sidecar.name.removesuffix(".cert.npz"))
    needed = sha256(sidecar) != wanted
    with suppress(OSError):
        for one in list(os.scandir(sidecar.parent)):
            found = re.fullmatch(rf"{stem}\.([0-9a-f]{{{DIGEST_DIGITS}}})\.cert\.npz", one.name)
            if found and not (needed and wanted.startswith(found[1])) and sha256(Path(one.path)).startswith(found[1]):
                os.unlink(one.path)
