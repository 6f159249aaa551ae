"""Clarabel and HiGHS on what CVXPY makes of a program: sizes, time limits, and an end to it at any moment.

Clarabel cannot be interrupted, so a program that may take longer than a second is solved in a process of its own,
``python -m mipfs.solvers.cones``, which the caller ends when it wants to.

What Clarabel says is looked at: vectors that are no answer, infeasibility without multipliers that show it, and any
other status are no answer. It is asked once more with safer settings, and has then failed.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from scipy import sparse

from mipfs.errors import NumericalError, UsageError
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.machine import process_of
from mipfs.solvers.reduced import NoSolutionError, Reduction, ends_of
from mipfs.solvers.vectors import is_whole

TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10, "max_iter": 500}
"""As tight as Clarabel goes; what it then calls "almost solved" is still far below the tolerances of any test."""
SAFER = {
    "tol_gap_abs": 1e-8,
    "tol_gap_rel": 1e-8,
    "tol_feas": 1e-8,
    "max_iter": 2000,
    "max_step_fraction": 0.9,
    "static_regularization_constant": 1e-7,
    "iterative_refinement_max_iter": 50,
}
"""What a solve that failed is tried with again: Clarabel's own tolerances, shorter steps, a stronger regularisation."""
STATUSES = {
    "Solved": "solved",
    "AlmostSolved": "solved",
    "PrimalInfeasible": "infeasible",
    "AlmostPrimalInfeasible": "infeasible",
    "DualInfeasible": "unbounded",
    "AlmostDualInfeasible": "unbounded",
}
SHOWN = 1e-6
"""How far multipliers that show infeasibility, or a direction that shows unboundedness, may miss that, relatively."""
IN_PROCESS_WORK = 3e6
"""Multiplications per factorisation up to which a program is solved in this process: a tenth of a second in all."""
CLOSE = 1e-8
"""How close, relatively, the ends of a value are when it is not tried again."""
FIRST_ORDER = 1e-3
"""How close, relatively, they must be to say anything: they are right in first order."""
SMALL = 1e-9
"""The least unit of a variable, relative to the largest."""
REPEATED_WORK = 3e8
"""As `IN_PROCESS_WORK`, for programs solved by the hundred: a process of its own would cost each of them a second."""
POLL_SECONDS = 0.02
"""How often the clock and the interrupt flag are looked at while the process works."""


Answer = dict[str, Any]
Ask = Callable[..., Answer | None]


@dataclass(frozen=True)
class Size:
    """The size of a program as its solver gets it."""

    variables: int
    constraints: int
    nonzeros: int


class Canonical:
    """A CVXPY program in the solver's form: min ½ x'Px + q'x, Ax + s = b, s in a product of cones.

    Parameters
    ----------
    program : cvxpy.Problem

    Raises
    ------
    UsageError
        A program that is not convex, or has integer variables.
    """

    def __init__(self, program: Any) -> None:
        import cvxpy

        if program.is_mixed_integer() or not program.is_dcp():
            raise UsageError(
                "a conic solver takes convex programs without integer variables; name a driver that solves the problem "
                "itself, such as 'branch', or give this one's `cvxpy` to another solver"
            )
        self.program = program
        self.data, self._chain, self._inverse = program.get_problem_data(cvxpy.CLARABEL, solver_opts={})
        dims = self.data["dims"]
        self.cones: dict[str, Any] = {
            "zero": int(dims.zero),
            "nonneg": int(dims.nonneg),
            "soc": [int(size) for size in dims.soc],
            "psd": [int(size) for size in dims.psd],
            "exp": int(dims.exp),
        }

    @property
    def size(self) -> Size:
        """Variables, rows and nonzeros."""
        rows, variables = self.data["A"].shape
        return Size(variables, rows, int(self.data["A"].nnz))

    @property
    def offset(self) -> float:
        """The constant of the objective, in the sense of the solver's minimisation."""
        known = (getattr(part, "inverse_data", part) for part in self._inverse)  # from 1.9 on CVXPY wraps the solver's
        return float(sum(part["offset"] for part in known if isinstance(part, dict) and "offset" in part))

    @property
    def work(self) -> float:
        """A rough upper estimate of the multiplications of one factorisation.

        The rows of a positive semidefinite cone of order k all meet each other: (k²/2)³/3 multiplications;
        of the rest, the dense part of the normal equations has the order of the smaller side.
        """
        rows, variables = self.data["A"].shape
        dense = sum((size * (size + 1) / 2) ** 3 / 3 for size in self.cones["psd"])
        return float(dense + self.data["A"].nnz * min(rows, variables))

    def solve(
        self,
        *,
        deadline: float | None = None,
        stop: Callable[[], bool] | None = None,
        in_process: float | None = None,
    ) -> str:
        """Solve, and leave the values in the program's variables.

        Parameters
        ----------
        deadline : float, on the clock of ``time.monotonic``
        stop : callable, whether to give up
        in_process : float, up to this `work` it is solved here, deaf to the two meanwhile; by default `IN_PROCESS_WORK`

        Returns
        -------
        str
            "solved", "infeasible", "unbounded", "failed" (the numbers are too hard for Clarabel) or "stopped".

        Raises
        ------
        NumericalError
            Clarabel raised an error or its process died, twice.
        """
        if deadline is not None and deadline <= time.monotonic():
            return "stopped"
        request = (
            self._upper_or_zero_matrix("P"),
            self.data["c"],
            self._upper_or_zero_matrix("A"),
            self.data["b"],
            self.cones,
        )
        if self.work <= (IN_PROCESS_WORK if in_process is None else in_process):
            answer = _ask_clarabel(request)
        else:
            answer = _ask_clarabel(request, lambda *asked: _in_process(asked, deadline, stop))
        return "stopped" if answer is None else self._store_answer(answer)

    def solve_linear(self, *, deadline: float | None = None, stop: Callable[[], bool] | None = None) -> str:
        """Solve a linear program by HiGHS, which finds a vertex with all its zeros; it returns what `solve` does.

        That the program has no solution is not HiGHS's to say: then `solve` decides, which asks for what shows it.
        """
        from mipfs.solvers import highs

        A = sparse.csr_array(self.data["A"])
        b = self.data["b"]
        q = self.data["c"]
        A.data[np.abs(A.data) <= highs.SMALLEST_ENTRY] = 0.0
        A.eliminate_zeros()
        program = highs.HighsModel()
        equal = self.cones["zero"]
        infinity = highs.highs_infinity()
        program.add_columns(np.full(q.size, -infinity), np.full(q.size, infinity))
        program.set_costs(q)
        program.add_rows(np.where(np.arange(b.size) < equal, b, -infinity), b, A)
        solution = highs.solve(program, deadline=deadline, stop=stop)
        if solution.status in ("infeasible", "unbounded"):
            return self.solve(deadline=deadline, stop=stop)
        if solution.status != "optimal":
            return solution.status
        answer = {"status": "Solved", "x": solution.values, "z": -program.multipliers(), "obj_val": solution.bound}
        return self._store_answer({**answer, "solve_time": 0.0, "iterations": 0})

    def solve_fixed(self, at: Mapping[Any, Array]) -> tuple[str, float, float]:
        """Solve with variables fixed, in this process; what stands in the program's variables stays.

        Parameters
        ----------
        at : mapping of variable, one without attributes, to its entries, column by column

        Returns
        -------
        str, float, float
            As `solve` says; and what the value lies between, in the sense of the solver's minimisation: infinite where
            there is none, and -inf and inf where it "failed".
        """
        size = self.data["c"].size
        first = self.data["param_prob"].var_id_to_col
        x = np.zeros(size)
        is_fixed = np.zeros(size, dtype=bool)
        for variable, values in at.items():
            place = slice(first[variable.id], first[variable.id] + values.size)
            x[place], is_fixed[place] = values, True
        left = np.flatnonzero(~is_fixed)
        half, A = self._upper_or_zero_matrix("P"), sparse.csc_matrix(self.data["A"])
        P, q = half + sparse.triu(half, 1).T, self.data["c"]
        try:
            reduced = Reduction(P[left][:, left], (q + P @ x)[left], A[:, left], self.data["b"] - A @ x, self.cones)
        except NoSolutionError:
            return "infeasible", np.inf, np.inf
        offset = reduced.offset + float(0.5 * x @ (P @ x) + q @ x) + self.offset
        return _value_interval(reduced.request(), offset)

    def _upper_or_zero_matrix(self, name: str) -> Any:
        size = self.data["c"].size
        matrix = self.data[name] if name in self.data else sparse.csc_array((size, size))
        return sparse.csc_matrix(sparse.triu(matrix) if name == "P" else matrix)

    def _store_answer(self, answer: Answer) -> str:
        """Put the answer into the program's variables, and say in one word what it is."""
        said = STATUSES.get(answer["status"], "failed")
        if said == "failed":
            return said
        with warnings.catch_warnings():
            # "Almost solved" is no secret to our callers: they earn their bounds from what they get.
            warnings.simplefilter("ignore", UserWarning)
            self.program.unpack_results(SimpleNamespace(**answer), self._chain, self._inverse)
        return said


def solve(program: Any) -> str:
    """Solve a CVXPY program by Clarabel; the values are in its variables then. Returns the status."""
    return Canonical(program).solve()


def conic_solution(P: Any, q: Array, A: Any, b: Array, cones: dict[str, Any]) -> tuple[Array, Array] | None:
    """min ½ x'Px + q'x, Ax + s = b, s in the cones, by Clarabel in this process: x and the multipliers z, or None.

    For small programs that are made by hand, over and over; `cones` as in `Canonical`.
    """
    answer = _ask_clarabel((P, q, A, b, cones))
    return (answer["x"], answer["z"]) if answer is not None and STATUSES.get(answer["status"]) == "solved" else None


def _value_interval(request: tuple[Any, Array, Any, Array, dict[str, Any]], offset: float) -> tuple[str, float, float]:
    """What a program is, as `Canonical.solve` says, and what its value and an offset lie between: the closest try."""
    P, q, A, b, cones = request
    if not q.size:
        return "solved", offset, offset
    best = "failed", -np.inf, np.inf
    # a direction that "shows" that there is no bound is small beside large costs
    dear, curved = float(np.abs(q).max()) or 1.0, float(np.abs(P.data).max(initial=0.0))
    for first in dict.fromkeys((dear, max(dear, curved))):
        unit, sizes = first, np.ones(q.size)
        for settings in (TIGHT, TIGHT, TIGHT, SAFER):
            D = sparse.diags_array(sizes)
            scaled = (sparse.csc_matrix(D @ P @ D) / unit, sizes * q / unit, sparse.csc_matrix(A @ D), b, cones)
            try:
                answer = _verify_answer(_solve_by_clarabel(*scaled, settings), *scaled)
            except NumericalError:
                continue
            said = STATUSES.get(answer["status"], "failed")
            if said in ("infeasible", "unbounded") and best[0] == "failed" and unit == first:
                end = np.inf if said == "infeasible" else -np.inf
                return said, end, end
            if said != "solved":
                continue
            low, high = sorted(unit * end for end in ends_of(scaled, answer["x"], answer["z"]))
            least, most = low + offset, high + offset
            x, size = np.abs(sizes * answer["x"]), max(abs(least), abs(most))
            if most - least < min(best[2] - best[1], FIRST_ORDER * size):
                best = said, least, most
            if best[0] == "solved" and best[2] - best[1] <= CLOSE * abs(best[1]):
                return best
            if x.any():  # again in units of the answer: tolerances are absolute where a value is small
                unit, sizes = max(abs(low), abs(high), 1e-300), np.maximum(x, SMALL * x.max())
    return best


def _ask_clarabel(request: tuple[Any, ...], ask: Ask | None = None) -> Answer | None:
    """What Clarabel says to a program, as far as it is believed: once more with safer settings where it is not.

    Parameters
    ----------
    request : P, q, A, b, cones
    ask : called with those and the settings; `_solve_by_clarabel` by default

    Raises
    ------
    NumericalError
        An error came instead of an answer, twice.
    """
    call: Ask = _solve_by_clarabel if ask is None else ask
    answer: Answer | None = None
    for settings in (TIGHT, SAFER):
        try:
            answer = call(*request, settings)
        except NumericalError:
            if settings is SAFER:
                raise
            continue
        if answer is None:
            return None
        answer = _verify_answer(answer, *request)
        if answer["status"] in STATUSES:
            break
    return answer


def _verify_answer(answer: Answer, P: Any, q: Array, A: Any, b: Array, cones: dict[str, Any]) -> Answer:
    """An answer, its status "Failed" where what comes with it does not show what it says."""
    said = STATUSES.get(answer["status"])
    if said == "solved":
        whole = is_whole(answer["x"], q.size) and is_whole(answer["z"], b.size)
        is_shown = whole and bool(np.isfinite(answer["obj_val"]))
    elif said == "infeasible":  # A'z = 0 and b'z < 0 with z in the dual cone, which is the cone itself but for "zero"
        is_shown = is_whole(answer["z"], b.size) and _is_certificate(answer["z"], b, A.T, cones, lambda z: z, free=True)
    elif said == "unbounded":  # Px = 0 and q'x < 0 with −Ax in the cone
        whole_P = P + sparse.triu(P, 1).T
        is_shown = is_whole(answer["x"], q.size) and _is_certificate(answer["x"], q, whole_P, cones, lambda x: -(A @ x))
    else:
        is_shown = False
    return answer if is_shown else {**answer, "status": "Failed"}


def _is_certificate(
    x: Array, cost: Array, vanishing: Any, cones: dict[str, Any], slack: Callable[[Array], Array], *, free: bool = False
) -> bool:
    """Whether cost'x < 0, vanishing @ x is zero and slack(x) lies in the cones, up to `SHOWN`.

    Of positive semidefinite and exponential cones it is not looked at; `free` where the rows of "zero" are.
    """
    value = float(cost @ x)
    if not value < 0.0:
        return False
    x = x / -value
    room = SHOWN * max(1.0, float(np.abs(x).max(initial=0.0)))
    s, first = slack(x), cones["zero"]
    least = [s[first : first + cones["nonneg"]]]
    if not free:
        least.append(-np.abs(s[:first]))
    place = first + cones["nonneg"]
    for size in cones["soc"]:
        least.append(np.array([s[place] - float(np.linalg.norm(s[place + 1 : place + size]))]))
        place += size
    is_inside = float(np.concatenate(least).min(initial=0.0)) >= -room
    return is_inside and float(np.abs(vanishing @ x).max(initial=0.0)) <= room


def _solve_by_clarabel(
    P: Any, q: Array, A: Any, b: Array, cones: dict[str, Any], chosen: dict[str, Any] = TIGHT
) -> Answer:
    """Clarabel's answer.

    Raises
    ------
    NumericalError
        It raises an error, or gives nothing.
    """
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for name, value in chosen.items():
        setattr(settings, name, value)
    kinds = [
        *([clarabel.ZeroConeT(cones["zero"])] if cones["zero"] else []),
        *([clarabel.NonnegativeConeT(cones["nonneg"])] if cones["nonneg"] else []),
        *map(clarabel.SecondOrderConeT, cones["soc"]),
        *map(clarabel.PSDTriangleConeT, cones["psd"]),
        *(clarabel.ExponentialConeT() for _ in range(cones["exp"])),
    ]
    try:
        found = clarabel.DefaultSolver(P, q, A, b, kinds, settings).solve()
        return {
            "status": str(found.status),
            "x": np.array(found.x, dtype=float),
            "z": np.array(found.z, dtype=float),
            "obj_val": float(found.obj_val),
            "solve_time": float(found.solve_time),
            "iterations": int(found.iterations),
        }
    except BaseException as error:  # a panic of Rust is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        raise NumericalError(f"Clarabel fails: {type(error).__name__}: {error}") from error


def _in_process(request: Any, deadline: float | None, stop: Callable[[], bool] | None) -> Answer | None:
    """The answer of a process of its own, or None if it was ended."""
    process = process_of(__name__, subprocess.DEVNULL)
    answers: list[bytes] = []
    pipes = threading.Thread(target=lambda: answers.append(process.communicate(pickle.dumps(request))[0]), daemon=True)
    pipes.start()
    try:
        while pipes.is_alive():
            pipes.join(POLL_SECONDS)
            if (deadline is not None and time.monotonic() >= deadline) or (stop is not None and stop()):
                return None
    finally:
        process.kill()
        pipes.join()
    if process.returncode != 0 or not answers or not answers[0]:
        raise NumericalError(f"Clarabel's process ended without an answer (exit code {process.returncode})")
    return cast(Answer, pickle.loads(answers[0]))


def main() -> None:
    """Read a program from standard input and write the answer to standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a solver prints must not mix with the answer
    answers.write(pickle.dumps(_solve_by_clarabel(*pickle.load(sys.stdin.buffer))))
    answers.close()
