"""One result: its document and the arrays of its certificate against the data, whatever its loss is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mipfs.check.joint import JOINT
from mipfs.check.rounding import Arrays, Document
from mipfs.check.tree import Report, check
from mipfs.data.instance import Instance


def check_result(
    document: Document,
    arrays: Arrays,
    data: Instance,
    *,
    given: Mapping[str, Any] | None = None,
    told: Callable[[int, int], object] | None = None,
) -> Report:
    """Check a result as `mipfs.check.tree.check` does, with its part for measures where the loss is over labellings.

    Parameters
    ----------
    document : mapping, the JSON of a result with its entry "certificate"
    arrays : mapping, what the sidecar holds
    data : Instance, as the problem was solved: the same file, scaled in the same way
    given : mapping {"rows", "extra"}, optional
        The rows that must hold beside those of the data, and no others, as the JSON of a result has them.
    told : callable, optional
        Hears how many of how many leaves are done.
    """
    params = document.get("params")
    if isinstance(params, Mapping) and params.get("loss") == "structural":
        return check(document, arrays, data, JOINT, given, told)
    return check(document, arrays, data, given=given, told=told)
