"""SCIP on a Pyomo model, through Pyomo's ``scip_direct``, in a process of its own.

The process reports every incumbent and the bound as they come, so the caller may end it at any moment, even
inside a long linear program, and keep what was found. ``python -m mipfs.solvers.scip`` is that process.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from mipfs.errors import MipfsError, MissingExtraError, NumericalError, UsageError
from mipfs.plumbing.machine import process_of
from mipfs.plumbing.registry import Registry

Make = Callable[[], tuple[Any, list[Any]]]

FEASIBILITY_TOLERANCE = 1e-9
"""SCIP's feasibility tolerance: at its default 1e-6, w_j may be 1e-3 where σ_j = 0, for nothing."""
NO_POINT = ("infeasible", "unbounded", "inforunbd")
"""Statuses of SCIP that say that its model has no best point."""
REPORT_SECONDS = 0.1
"""How often the bound is reported at most; new incumbents are reported at once."""


@dataclass(frozen=True)
class ScipReport:
    """What SCIP knows at one moment.

    Attributes
    ----------
    selected : tuple of int, or None
        Positions of the watched binary variables that are 1 in its incumbent; None before there is one.
    bound : float, SCIP's dual bound, within its tolerances
    nodes : int
    status : str or None
        SCIP's status once it has ended.
    """

    selected: tuple[int, ...] | None
    bound: float
    nodes: int
    status: str | None = None


class ScipProcess:
    """SCIP at work on a model.

    Parameters
    ----------
    make : callable, which is pickled
        Makes the Pyomo model and the list of its binary variables that are watched.
    gap : float, the relative gap at which SCIP ends
    seed : int

    Raises
    ------
    MissingExtraError
        PySCIPOpt is not installed.
    """

    def __init__(self, make: Make, *, gap: float, seed: int = 0) -> None:
        import importlib.util

        if importlib.util.find_spec("pyscipopt") is None:
            raise MissingExtraError("pyscipopt", "scip", "solving with SCIP")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._process = process_of(__name__, self._errors)
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._server = threading.Thread(
            target=self._serve_request, args=(pickle.dumps((Registry.all_entries(), make, gap, seed)),), daemon=True
        )
        self._server.start()

    def receive(self, timeout: float) -> ScipReport | None:
        """The next report, or None when there is none within `timeout` seconds.

        Raises
        ------
        MipfsError
            The process failed; a `NumericalError` where what it says is no report.
        """
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            return None
        if line is None:
            code = self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip().splitlines()
            raise MipfsError(
                f"SCIP's process ended without an answer (exit code {code})" + (f": {said[-1]}" if said else "")
            )
        try:
            message = json.loads(line)
            if "usage" not in message and "error" not in message:
                selected = None if message["selected"] is None else tuple(int(j) for j in message["selected"])
                bound = -math.inf if message["bound"] is None else float(message["bound"])
                return ScipReport(selected, bound, int(message["nodes"]), message["status"])
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise NumericalError(f"SCIP's process says what is no report: {line[:200]!r}") from error
        if "usage" in message:
            raise UsageError(message["usage"])
        raise MipfsError(f"SCIP failed: {message['error']}")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._server.join()
        self._errors.close()

    def __enter__(self) -> ScipProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve_request(self, request: bytes) -> None:
        stdin = self._process.stdin
        stdout = self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(request)
            stdin.close()
        except BrokenPipeError:
            pass  # the process is gone already; the end of its output says so below
        for line in stdout:
            self._lines.put(line)
        self._lines.put(None)
        stdout.close()


def main() -> None:
    """Read what makes a model from standard input, solve it, and write reports as lines of JSON to standard output."""
    # SCIP and Pyomo print to standard output: the reports get a copy of it, and they the null device.
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    entries, make, gap, seed = pickle.load(sys.stdin.buffer)
    Registry.enter_all(entries)
    try:
        _solve(make, gap, seed, lambda report: _send_message(reports, report))
    except UsageError as error:
        _send_message(reports, {"usage": str(error)})
    except Exception as error:
        _send_message(reports, {"error": f"{type(error).__name__}: {error}"})


def _send_message(reports: TextIO, message: dict[str, Any]) -> None:
    try:
        reports.write(json.dumps(message) + "\n")
        reports.flush()
    except BrokenPipeError:
        os._exit(1)  # nobody listens any more


def _solve(make: Make, gap: float, seed: int, send: Callable[[dict[str, Any]], None]) -> None:
    from pyomo.contrib.solver.solvers.scip.scip_direct import ScipDirect

    class Watched(ScipDirect):  # type: ignore[misc]
        """``scip_direct`` with a reporter inside."""

        def _create_solver_model(self, model: Any, config: Any) -> Any:
            created = super()._create_solver_model(model, config)
            self.scip = created[0]
            columns = [self._pyomo_var_to_solver_var_map[s] for s in watched]
            self.report = _make_reporter(self.scip, columns, send)
            return created

    model, watched = make()
    solver = Watched()
    solver.solve(
        model,
        rel_gap=gap,
        load_solutions=False,
        raise_exception_on_nonoptimal_result=False,
        solver_options={"numerics/feastol": FEASIBILITY_TOLERANCE, "randomization/randomseedshift": seed % (2**31)},
    )
    solver.report(solver.scip.getStatus())


def _make_reporter(
    scip: Any, columns: list[Any], send: Callable[[dict[str, Any]], None]
) -> Callable[[str | None], None]:
    """Have SCIP report what it finds; returns the function that reports now."""
    from pyscipopt.scip import PY_SCIP_EVENTTYPE as EVENT
    from pyscipopt.scip import Eventhdlr

    events = (EVENT.BESTSOLFOUND, EVENT.NODESOLVED, EVENT.LPSOLVED)

    def report(status: str | None = None) -> None:
        selected = None
        if scip.getNSols() > 0:
            best = scip.getBestSol()
            selected = [int(j) for j in np.flatnonzero([scip.getSolVal(best, s) > 0.5 for s in columns])]
        bound = float(scip.getDualbound())
        known = bound if abs(bound) < scip.infinity() else None
        send({"selected": selected, "bound": known, "nodes": int(scip.getNNodes()), "status": status})

    class Watcher(Eventhdlr):
        def eventinit(self) -> None:
            self.last = 0.0
            for event in events:
                self.model.catchEvent(event, self)

        def eventexit(self) -> None:
            for event in events:
                self.model.dropEvent(event, self)

        def eventexec(self, event: Any) -> None:
            now = time.monotonic()
            if event.getType() == EVENT.BESTSOLFOUND or now - self.last >= REPORT_SECONDS:
                self.last = now
                report()

    scip.includeEventhdlr(Watcher(), "mipfs", "reports incumbents and bounds")
    return report
