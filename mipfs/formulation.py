"""Formulations: the algebraic views of a `Problem`, found by name or in a user's file.

The engine never imports `mipfs.models`; whatever it needs from there it loads here.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipfs import user_file
from mipfs.errors import MipfsError, UsageError
from mipfs.instance import Instance
from mipfs.problem import Problem

ALIASES = {"lambda": "lam", "B": "M"}
"""Names of the papers for parameters of the same meaning (`lambda` is no Python name)."""

MAX_FEATURES = 3_000
MAX_TERMS = 2_000_000
"""Beyond these a Pyomo model takes gigabytes, and no general solver gets anywhere with it."""


@dataclass(frozen=True, eq=False)
class Formulation:
    """A formulation declared in CVXPY.

    Parameters
    ----------
    problem : Problem
        What it stands for; its rows are the rows of the formulation.
    cvxpy : cvxpy.Problem
    sigma : cvxpy.Variable of shape (p,)
        The selection.
    variables : mapping of str to cvxpy.Variable
        The other variables, under the names of the paper.
    """

    problem: Problem
    cvxpy: Any
    sigma: Any
    variables: Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """One line of the table of formulations (``mipfs models``).

    Attributes
    ----------
    name : str, e.g. ``fsp-m``
    file : str, in ``mipfs/models/``
    loss, bias : str, the defaults
    parameters : tuple of str, as on the command line
    driver : str, the default driver
    """

    name: str
    file: str
    loss: str
    bias: str
    parameters: tuple[str, ...]
    driver: str

    @property
    def module(self) -> str:
        """The name of its module in `mipfs.models`."""
        return self.file.removesuffix(".py")


_TABLE = (
    Entry("fsp-m", "fsp_m.py", "hinge", "free", ("M", "C", "loss", "bias"), "gbd"),
    Entry("fsp-lambda", "fsp_lambda.py", "hinge", "free", ("lambda", "C", "loss", "bias"), "gbd"),
)


def table() -> tuple[Entry, ...]:
    """The formulations that come with the package."""
    return _TABLE


@dataclass(frozen=True, eq=False)
class Loaded:
    """A formulation that is ready to be built.

    Attributes
    ----------
    name : str, as it was asked for
    path : Path of its file
    build : callable ``build(data, **params)``
    problem : callable ``problem(data, **params)``, or None for a user's file
        Makes the Problem alone, which can be of any size.
    entry : Entry, or None for a user's file
    """

    name: str
    path: Path
    build: Callable[..., Any]
    problem: Callable[..., Problem] | None = None
    entry: Entry | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that `build` takes by name, as on the command line."""
        shown = {"lam": "lambda"}
        return tuple(shown.get(name, name) for name in self._keywords())

    def __call__(self, data: Instance, params: Mapping[str, Any]) -> Any:
        """Declare the problem of `data`; of a user's file, build the formulation.

        Parameters
        ----------
        data : Instance
        params : mapping of name to value
            As on the command line: ``lambda`` is accepted for ``lam`` and ``B`` for ``M``.

        Returns
        -------
        Problem, or what a user's file built: a Problem, a Pyomo model or a Formulation

        Raises
        ------
        UsageError
            An unknown or missing parameter, or whatever went wrong in a user's file.
        """
        arguments = self._check(params)
        if self.problem is not None:
            return self.problem(data, **arguments)
        try:
            built = self.build(data, **arguments)
        except MipfsError:
            raise
        except Exception as error:
            raise user_file.one_line(error, self.path) from error
        try:
            problem_of(built)
        except UsageError as error:
            raise UsageError(f"{self.path}: build returned {type(built).__name__}; {error}") from None
        return built

    def _keywords(self) -> dict[str, inspect.Parameter]:
        parameters = list(inspect.signature(self.build).parameters.values())[1:]
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return {q.name: q for q in parameters if q.kind in kinds}

    def _check(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `build`: aliases resolved, unknown and missing names refused."""
        known = self._keywords()
        takes_any = any(q.kind is q.VAR_KEYWORD for q in inspect.signature(self.build).parameters.values())
        arguments: dict[str, Any] = {}
        for given, value in params.items():
            name = ALIASES.get(given, given)
            name = name if name in known else given
            if name not in known and not takes_any:
                close = difflib.get_close_matches(given, self.parameters, n=1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                raise UsageError(
                    f"{self.name} has no parameter {given!r}; {hint}it takes {', '.join(self.parameters) or 'none'}"
                )
            if name in arguments:
                raise UsageError(f"{self.name}: {given!r} is another name of {name!r}, which is given too")
            arguments[name] = value
        for name, parameter in known.items():
            if parameter.default is parameter.empty and name not in arguments:
                shown = "lambda" if name == "lam" else name
                raise UsageError(f"{self.name} needs a value for {shown}: -p {shown}=...")
        return arguments


def load(name: str | Path) -> Loaded:
    """Find a formulation by its name in the table, or in a user's ``.py`` file.

    Parameters
    ----------
    name : str or path
        A name of `table`, or the path of a file that defines ``build(data, **params)``.

    Raises
    ------
    UsageError
        No such name or file, or a file that cannot be run or has no `build`.
    """
    text = str(name)
    for entry in _TABLE:
        if text == entry.name:
            module = importlib.import_module(f"mipfs.models.{entry.module}")
            return Loaded(entry.name, Path(str(module.__file__)), module.build, module.problem, entry)
    if text.endswith(".py"):
        path = Path(text)
        return Loaded(text, path, user_file.build_of(path))
    names = [entry.name for entry in _TABLE]
    close = difflib.get_close_matches(text.replace("_", "-").lower(), names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it is one of {', '.join(names)}, or a .py file"
    raise UsageError(f"no formulation is called {text!r}; {hint}")


def problem_of(model: Any) -> Problem:
    """The immutable `Problem` that was attached to a formulation when it was built.

    Rows that a user added to a Pyomo model since then are not in it; `compile` has them.

    Parameters
    ----------
    model : Problem, Formulation, or Pyomo model of `mipfs.models`

    Raises
    ------
    UsageError
        Anything else.
    """
    if isinstance(model, Problem):
        return model
    if isinstance(model, Formulation):
        return model.problem
    attached = getattr(model, "_mipfs", None)
    problem = getattr(attached, "problem", None)
    if isinstance(problem, Problem):
        return problem
    raise UsageError(
        f"{type(model).__name__} is no problem to solve: give a mipfs.Problem, a Pyomo model built by mipfs.models, "
        "or a mipfs.Formulation"
    )


def compile(model: Any) -> Problem:
    """The `Problem` that a formulation stands for now, with the user's rows and fixings.

    For a Pyomo model that is the attached problem with the rows, extra variables, fixings and
    cardinality that stand under ``model.select`` at this moment; otherwise it is `problem_of`.

    Raises
    ------
    RowError
        Something in the model cannot be honoured; the message names the component.
    UsageError
        `model` is no formulation.
    """
    problem = problem_of(model)
    if isinstance(model, (Problem, Formulation)):
        return problem
    from mipfs.backends import pyomo_rows

    return pyomo_rows.compile(model)


def check_size(data: Instance) -> None:
    """Refuse data that is too large for an algebraic model, before any of it is built.

    Raises
    ------
    UsageError
    """
    terms = data.X.nnz if data.is_sparse else data.X.size
    if data.n_features > MAX_FEATURES or terms > MAX_TERMS:
        raise UsageError(
            f"{data.n_samples} samples x {data.n_features} features is too large for a Pyomo model (at most "
            f"{MAX_FEATURES} features and {MAX_TERMS} values); mipfs.Problem(data, ...) takes any size"
        )


def algebraic(problem: Problem) -> Any:
    """The Pyomo model of a problem, in perspective form.

    Raises
    ------
    UsageError
        A loss that has no such form, or data too large for an algebraic model.
    """
    return importlib.import_module("mipfs.models.perspective").perspective(problem)
