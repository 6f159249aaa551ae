"""The drivers: one algorithm box each, chosen by name, over the relaxed problems of `mipfs.inner`.

A driver is a module with ``Options`` (a frozen dataclass), ``CAPABILITY`` (what it can carry) and ``run(run)``, a
generator that leaves what it finds in the run and yields where it can pause (`mipfs.drivers.session`): what
makes its part of a state (`mipfs.result.state`), or None.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

from mipfs.capability import Capability, check
from mipfs.drivers import last
from mipfs.drivers.default import default_driver, options_of, refuse_changes
from mipfs.drivers.session import Session
from mipfs.errors import StartWarning, UsageError
from mipfs.formulation.program import Formulation
from mipfs.plumbing.cluster import check_client
from mipfs.plumbing.declared import NumberRange, Seed, check_arguments
from mipfs.plumbing.registry import Registry, module_of, suggest_name
from mipfs.problem import Problem
from mipfs.result.result import Record, Result
from mipfs.result.state import RunState
from mipfs.run.run import EVERY, Keeper, Observer, settings_of
from mipfs.settings import DriverSettings
from mipfs.widened import widen_problem

if TYPE_CHECKING:
    from mipfs.formulation.own_program import Evaluation

DRIVERS = Registry(
    "driver",
    {
        "branch": "mipfs.drivers.branch",
        "conic": "mipfs.drivers.conic",
        "gbd": "mipfs.drivers.gbd",
        "kelley": "mipfs.drivers.kelley",
        "monolithic": "mipfs.drivers.monolithic",
        "two_layer": "mipfs.drivers.two_layer",
    },
)


def get_driver(name: str) -> ModuleType:
    """The module of a driver.

    Raises
    ------
    UsageError
        No driver of that name.
    """
    return module_of("driver", name, DRIVERS)


def capabilities() -> dict[str, Capability]:
    """What every driver declares that it can carry."""
    return {name: get_driver(name).CAPABILITY for name in DRIVERS}


def going_on() -> list[str]:
    """The drivers that go on from an earlier result."""
    return [name for name, one in capabilities().items() if one.goes_on]


def is_exact(name: str) -> bool:
    """Whether a name is that of a driver that proves the best selection, and not a relaxation of it."""
    return name in DRIVERS and bool(get_driver(name).CAPABILITY.is_exact)


def exact_drivers() -> list[str]:
    """All of these: it loads every driver."""
    return [*filter(is_exact, DRIVERS)]


@check_arguments
def solve(
    model: Any,
    driver: str | None = None,
    *,
    callback: Callable[[Record], object] | None = None,
    stop: Callable[[], bool] | None = None,
    start: Sequence[str] | None = None,
    warm_start: bool = False,
    observers: Iterable[Observer] = (),
    verbose: bool = False,
    seed: Seed = 0,
    checkpoint: str | Path | bool | Keeper | None = None,
    checkpoint_every: Annotated[float, NumberRange(above=0, of="seconds", finite=False)] = EVERY,
    resume: RunState | str | Path | None = None,
    warm: Result | str | Path | bool | None = None,
    settings: DriverSettings | None = None,
    **options: Any,
) -> Result:
    """Solve a problem or a model.

    Parameters
    ----------
    model : Problem, Pyomo model of a formulation, or Formulation
        Rows, extra variables and fixings that were added under ``model.select`` hold.
    driver : {"branch", "gbd", "kelley", "two_layer", "conic", "monolithic"}, optional
        By default the one that `mipfs models` names for the formulation; for any other problem branch, for the
        structural loss two_layer, and for a CVXPY program of your own conic.
    callback : callable, optional
        Receives every iteration record; a true return value stops the run.
    stop : callable, optional
        Where it says so the run ends as by Ctrl-C. It is asked inside an iteration too, often, and so should be quick.
    start : sequence of str, optional
        A support to begin from.
    warm_start : bool, default False
        Begin from the values of the model's σ, or where it has none from its weights that are not 0. Values that are no
        support which the rows allow are left out, with a `StartWarning`; no value makes the answer another.
    observers : iterable of callables that receive every iteration record
    verbose : bool, default False
        Print incumbent, bound and gap on standard error while the driver works, twice a second at most.
    seed : int >= 0, default 0
        Of the drivers that draw something (monolithic: SCIP's); the others have nothing random.
    checkpoint : path-like or bool, optional
        Where to keep the state of the run, at its end and every `checkpoint_every` seconds (30); True: only as
        ``result.state``. Drivers branch, gbd and kelley, for losses that are a sum over the samples, and
        two_layer.
    resume : RunState or path-like, optional
        Go on with that run, of the same problem and driver. Its iterations count; its seconds too, but for limits.
    warm : Result, path of its JSON, or bool, optional
        Begin from the result of a problem on the same data that was edited since: rows, costs, bounds on weights, M,
        lambda or C are others. Its tree and dual vectors are evaluated on this problem, so the answer and its
        certificate are this problem's alone. Drivers branch, gbd and kelley. By default a Pyomo model or a CVXPY
        formulation goes on from its own last solve, a `Problem` from nothing; False: from nothing.
    settings : DriverSettings, optional
        What steers the driver, for experts: its own record of `mipfs.settings`, such as `BranchSettings`.
    **options
        Fields of the driver's ``Options``, such as ``gap=1e-4``, ``time_limit=60`` (seconds).

    Returns
    -------
    Result
        Its incumbent stands in the variables of a Pyomo model or a `Formulation` too (`Result.load_into`).

    Raises
    ------
    UsageError
        An unknown driver or option, or a combination that the driver cannot carry.
    RowError
        A row or a change of the model that cannot be honoured.
    KeyboardInterrupt
        A second Ctrl-C before the run had an incumbent.

    Notes
    -----
    In the main thread Ctrl-C, SIGTERM and SIGHUP end the run after its current step and leave the best found; a
    second one does not wait for that step.
    """
    keeper = _make_keeper(checkpoint, checkpoint_every)
    if start is not None:
        options["start"] = start
        if warm_start:
            raise UsageError("start and warm_start both say where to begin; give one of them")
    heard: dict[str, Any] = {"callback": callback, "stop": stop, "observers": observers, "verbose": verbose}
    given: dict[str, Any] = {"keeper": keeper, "resume": resume, "warm_start": warm_start, "warm": warm}
    with _open_session(model, driver, options, seed=seed, settings=settings, **given, **heard) as session:
        result = session.finish()
    if warm is not False:
        last.keep(model, result)
    return result


def _make_keeper(checkpoint: str | Path | bool | Keeper | None, every: float) -> Keeper | None:
    """Who keeps the state of a run, if anybody does."""
    if isinstance(checkpoint, Keeper):
        return checkpoint
    if checkpoint is None or checkpoint is False:
        return None
    return Keeper(None if checkpoint is True else checkpoint, every)


@check_arguments
def start(
    model: Any,
    driver: str | None = None,
    *,
    callback: Callable[[Record], object] | None = None,
    stop: Callable[[], bool] | None = None,
    observers: Iterable[Observer] = (),
    verbose: bool = False,
    seed: Seed = 0,
    resume: RunState | str | Path | None = None,
    settings: DriverSettings | None = None,
    **options: Any,
) -> Session:
    """Begin to solve a problem or a model, step by step.

    Parameters
    ----------
    model, driver, callback, stop, observers, verbose, seed, resume, settings, **options
        Those of `solve`; a support to begin from is the option ``start``.

    Returns
    -------
    Session
        Before its first step. Used in a ``with`` it lets go of its solvers at the end of the block.

    Raises
    ------
    UsageError, RowError
        As `solve`.

    Examples
    --------
    >>> import mipfs
    >>> problem = mipfs.Problem(mipfs.read("instances/wdbc.svm", scale="standard"), M=3, C=0.1)
    >>> session = mipfs.start(problem, "branch", gap=1e-6)
    >>> session.step(), session.record.iteration
    (True, 1)
    >>> kept = session.state  # arrays and numbers: another process goes on with resume=kept
    >>> session.result().stop_reason.name  # it ends here
    'INTERRUPTED'
    >>> mipfs.solve(problem, "branch", gap=1e-6, resume=kept).status.name
    'OPTIMAL'
    """
    heard: dict[str, Any] = {"callback": callback, "stop": stop, "observers": observers, "verbose": verbose}
    return _open_session(model, driver, options, seed=seed, stepwise=True, resume=resume, settings=settings, **heard)


def _open_session(
    model: Any,
    driver: str | None,
    options: dict[str, Any],
    *,
    resume: RunState | str | Path | None,
    seed: int,
    keeper: Keeper | None = None,
    stepwise: bool = False,
    warm_start: bool = False,
    warm: Result | str | Path | bool | None = False,
    **asked: Any,
) -> Session:
    """The session of what was asked, once it is clear that the driver can carry it."""
    compiled = model if isinstance(model, Problem) else _compile_model(model)
    problem = widen_problem(compiled.in_unit)
    name = default_driver(model, problem) if driver is None else driver
    module = get_driver(name)
    if "declare" in options and callable(options["declare"]):
        options["declare"] = refuse_changes(options["declare"])
    options = {**options_of(model, problem, name, options), **options}
    if warm_start:
        options |= _start_option(model, compiled, name, module)
    checked = _driver_options(module, name, options, seed)
    _check_settings(asked["settings"], name, checked)
    check(problem, "driver", name, module.CAPABILITY, capabilities)
    if getattr(checked, "client", None) is not None:
        check_client(checked.client)
    if any(getattr(checked, name, None) is not None for name in ("client", "executor")):
        module.refuse(problem, checked)
    why_no_state = _why_no_state(problem, module, checked)
    if why_no_state and (keeper is not None or resume is not None):
        raise UsageError(why_no_state)
    own = _make_evaluation(model, compiled)
    state = RunState.load(resume) if isinstance(resume, (str, Path)) else resume
    if state is not None:
        state.check(problem, name)
    keeper = Keeper() if stepwise and not why_no_state else keeper
    kept: dict[str, Any] = {"keeper": keeper, "resume": state, "why_no_state": why_no_state}
    kept["warm"] = last.warm_for(model, compiled, problem, going_on(), name, warm, is_resumed=state is not None)
    # What `widen_problem` or `in_unit` made is no data of the user's, of which the result will be.
    data = None if compiled.data.constant or compiled.data.exponent else compiled.atoms.raw
    return Session(model, problem, name, module, checked, own=own, data=data, **kept, **asked)


def _make_evaluation(model: Any, problem: Problem) -> Evaluation | None:
    """A program of a user's own beside its problem, at points that are drawn; None for any other model."""
    if not isinstance(model, Formulation) or model.cvxpy is None:
        return None
    from mipfs.formulation.own_program import make_evaluation  # loads CVXPY

    return make_evaluation(model, problem)


def _start_option(model: Any, problem: Problem, driver: str, module: ModuleType) -> dict[str, Any]:
    """The option of a driver that begins from the values of a model; none where they are no start."""
    from mipfs.formulation.start_values import support_of

    found = support_of(model, problem)
    if found is None or any(field.name == "start" for field in dataclasses.fields(module.Options)):
        return {} if found is None else {"start": found}
    warnings.warn(f"warm start: the driver {driver!r} takes no start; it is left out", StartWarning, stacklevel=2)
    return {}


def _check_settings(settings: DriverSettings | None, driver: str, options: Any) -> None:
    """Refuse the settings of another driver."""
    own = type(settings_of(options))
    if settings is not None and type(settings) is not own:
        raise UsageError(f"settings: driver {driver!r} takes {own.__name__}, not {type(settings).__name__}")


def _why_no_state(problem: Problem, module: ModuleType, options: Any) -> str:
    """Why a run has no state that can be kept; empty where it has one."""
    if module.CAPABILITY.no_state is None:
        able = [name for name, one in capabilities().items() if one.no_state is not None]
        return f"checkpoint and resume are for the drivers {', '.join(able)}"
    return str(module.CAPABILITY.no_state(problem, options))


def _compile_model(model: Any) -> Problem:
    from mipfs.formulation import compile as compile_model

    return compile_model(model)


def _driver_options(module: ModuleType, driver: str, given: dict[str, Any], seed: int) -> Any:
    known = [field.name for field in dataclasses.fields(module.Options)]
    for name in given:
        if name not in known:
            others = [other for other in DRIVERS if name in get_driver(other).Options.__dataclass_fields__]
            if others:
                raise UsageError(f"driver {driver!r} has no option {name!r}, {', '.join(others)} have it; leave it out")
            hint = suggest_name(name, [*known, "verbose", "callback", "observers"], f"it has {', '.join(known)}")
            raise UsageError(f"driver {driver!r} has no option {name!r}; {hint}")
    return module.Options(**given, **({"seed": seed} if "seed" in known else {}))
