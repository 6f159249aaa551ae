"""The last result of a model, from which its next solve goes on: a model that was edited is solved again and again.

A Pyomo model and a CVXPY formulation keep theirs, one each and no larger than `MOST_BYTES`; a `Problem`, which never
changes, keeps none. It is held beside the model, by a weak reference to it: it goes with the model, and copies and
pickles of that have none.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Collection
from pathlib import Path
from typing import Any

from mipfs.errors import UsageError
from mipfs.problem import Problem
from mipfs.proof.duals import DualStore
from mipfs.proof.evidence import CombinedProof
from mipfs.result.result import Result
from mipfs.run.warm import RunStart, warm_of, why_cold

LOG = logging.getLogger("mipfs")
MOST_BYTES = 64e6
"""What the proof of a result may take that is kept with a model; of a larger one nothing is kept."""
NODE_BYTES = 28
"""Of a node of the tree."""
_KEPT: dict[int, tuple[weakref.ref[Any], Result]] = {}


def keep(model: Any, result: Result) -> None:
    """Keep a result with its model, in place of the one before."""
    holder = _result_holder(model)
    if holder is None or result.claim is None or not result.has_classifier:
        return
    if _proof_bytes(result) > MOST_BYTES:
        _KEPT.pop(id(holder), None)
        return
    key = id(holder)
    _KEPT[key] = weakref.ref(holder, lambda _: _KEPT.pop(key, None)), result


def last_result(model: Any) -> Result | None:
    """The last result of a model, if it is kept."""
    holder = _result_holder(model)
    found = None if holder is None else _KEPT.get(id(holder))
    return found[1] if found is not None and found[0]() is holder else None


def warm_for(
    model: Any,
    compiled: Problem,
    problem: Problem,
    able: Collection[str],
    driver: str,
    given: Result | str | Path | bool | None,
    *,
    is_resumed: bool,
) -> RunStart | None:
    """What a run begins from: a result that is given, or the model's last one; None for nothing.

    `able` : the drivers that go on from a result.

    Raises
    ------
    UsageError
        A result was given that says nothing of the problem, or cannot be had with what else was asked.
    """
    if given is False or (is_resumed and given is None):
        return None
    if given is not None and given is not True:
        if is_resumed:
            raise UsageError("warm and resume both say where to go on; leave one of them out")
        if driver not in able:
            raise UsageError(f"warm is for the drivers {', '.join(able)}, not {driver!r}; leave it out")
        result = given if isinstance(given, Result) else Result.load(given)
        return warm_of(result, compiled, problem)
    found = usable_last_result(model, compiled) if driver in able else None
    return None if found is None else warm_of(found, compiled, problem)


def usable_last_result(model: Any, compiled: Problem) -> Result | None:
    """The last result of a model, where it says something of what the model is now; the log says why it does not."""
    result = last_result(model)
    if result is None:
        return None
    reason = why_cold(result, compiled)
    if reason:
        LOG.info("the last result of the model is not gone on from, for %s", reason)
    return None if reason else result


def _result_holder(model: Any) -> Any:
    """What a result is held beside: a Pyomo model, or σ of a formulation, which its edited copies share."""
    if isinstance(model, Problem):
        return None
    sigma = getattr(model, "sigma", None)
    return model if sigma is None or not hasattr(model, "cvxpy") else sigma


def _proof_bytes(result: Result) -> float:
    """About how many bytes the proof of a result takes."""
    assert result.claim is not None
    source = result.claim.source
    tree, duals = source.tree if isinstance(source, CombinedProof) else source, source.duals
    held = duals.n_bytes if isinstance(duals, DualStore) else 0
    return float(NODE_BYTES * tree.n_nodes + held)
