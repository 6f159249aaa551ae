"""One result: its document and the arrays of its certificate against the data, whatever its loss is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mipfs.check.joint import JOINT
from mipfs.check.known import is_joint
from mipfs.check.rounding import Arrays, Document
from mipfs.check.tree import Report, check
from mipfs.check.workers import ALONE, LeafWorkers
from mipfs.data.instance import Instance


def check_result(
    document: Document,
    arrays: Arrays,
    data: Instance,
    *,
    given: Mapping[str, Any] | None = None,
    workers: LeafWorkers = ALONE,
) -> Report:
    """Check a result as `mipfs.check.tree.check` does, with its part for measures where the loss is over labellings.

    Parameters
    ----------
    document : mapping, the JSON of a result with its entry "certificate"
    arrays : mapping, what the sidecar holds
    data : Instance, as the problem was solved: the same file, scaled in the same way
    given : mapping {"rows", "extra"}, optional
        The rows that must hold beside those of the data, and no others, as the JSON of a result has them.
    workers : as in `mipfs.check.tree.check`
    """
    if is_joint(document):
        return check(document, arrays, data, JOINT, given, workers)
    return check(document, arrays, data, given=given, workers=workers)
