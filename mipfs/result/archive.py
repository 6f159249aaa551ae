"""The certificates of several results in one file: the points of a path, or the classes against the rest."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mipfs.errors import DataError
from mipfs.readers.arrays import load_members
from mipfs.result.result import Result
from mipfs.result.sidecar import pack_sidecar

FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""Of every member: the same results give the same bytes."""


def packed_together(
    results: Iterable[Result], name: str, limit: float, beside: Mapping[str, bytes] | None = None
) -> tuple[bytes | None, list[Mapping[str, Any] | None]]:
    """The contents of the file called `name`, None without a certificate, and the entry of every result about its own.

    Parameters
    ----------
    limit : float, bytes into which the certificate of a result must fit that a limit stopped
    beside : mapping, optional, names and contents of further members
    """
    stream = io.BytesIO()
    entries: list[Mapping[str, Any] | None] = []
    with zipfile.ZipFile(stream, "w") as file:
        for k, result in enumerate(results):
            content, entry = pack_sidecar(result, name, limit)
            if content is not None:
                file.writestr(zipfile.ZipInfo(_member_name(k), FIRST_DAY), content)
            entries.append(entry)
        for member, content in (beside or {}).items():
            file.writestr(zipfile.ZipInfo(member, FIRST_DAY), content)
    return stream.getvalue() if any(entry is not None for entry in entries) else None, entries


def attach_certificates(results: Iterable[Result], content: bytes | None) -> list[Result]:
    """The results, each with its certificate out of the contents of their file; `verify` names one that is missing."""
    held = members(content)
    return [replace(one, sidecar=_own_certificate(held.get(_member_name(k)), one)) for k, one in enumerate(results)]


def with_certificate(result: Result, k: int, content: bytes | None) -> Result:
    """The k-th of the results alone, with its certificate."""
    return replace(result, sidecar=_own_certificate(members(content).get(_member_name(k)), result))


def members(content: bytes | None) -> dict[str, bytes]:
    """What an archive holds, by name; nothing where it cannot be read."""
    if content is None:
        return {}
    try:
        return load_members(Path("certificates"), content)
    except DataError:
        return {}


def _own_certificate(content: bytes | None, result: Result) -> bytes | None:
    """A certificate that is the one of a result."""
    entry = result.certificate
    if content is None or entry is None or hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        return None
    return content


def _member_name(k: int) -> str:
    return f"{k}.cert.npz"
