"""Models declared in CVXPY and Pyomo: the views of a `Problem`, found by name or in a user's file.

The engine never imports `mipfs.models`; whatever it needs from there it loads here.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from mipfs import capability
from mipfs.atoms import Atoms, registry
from mipfs.capability import ATOMS, BOXES, POINTWISE, PRICED, RIDGE, STORED, Capability
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.formulation.program import Formulation, check_size
from mipfs.plumbing import user_file
from mipfs.plumbing.declared import arguments_of, shown_name
from mipfs.plumbing.registry import suggest_name
from mipfs.problem import Problem

ALIASES = {"lambda": "lam", "B": "M"}
"""Names of the papers for parameters of the same meaning (`lambda` is no Python name)."""


def given_twice_message(name: str) -> str:
    """What is wrong where a parameter is given by both of its names, in whatever order."""
    alias = next(one for one, other in ALIASES.items() if other == name)
    return f"{alias!r} is another name of {name!r}, which is given too; leave one of them out"


def own_name(given: str, known: Container[str]) -> str:
    """The parameter that a name stands for, among those that are known: M for B where there is an M."""
    name = ALIASES.get(given, given)
    return name if name in known else given


@dataclass(frozen=True)
class FormulationEntry:
    """One line of the table of formulations (``mipfs models``).

    Attributes
    ----------
    name : str, e.g. ``fsp-m``
    file : str, in ``mipfs/models/``
    loss, bias : str, the defaults
    parameters : tuple of str, as on the command line
    driver : str, the default driver
    capability : Capability
        What the declared program carries; a `Problem` of the same name is solved by any driver that carries it.
    options : tuple of str
        Those of the parameters that are options of the default driver, such as the T of ``fgm``.
    declared : tuple of str
        Those of the parameters that `declare` of the module takes, such as the pool of ``reduced-mkl``.
    needs_M : bool
        Whether it makes no sense without a cardinality row.
    preset : tuple of (name, value)
        Options that the default driver gets where nothing else is said.
    atoms : bool
        Whether it takes ``atoms=NAME`` (`mipfs.atoms.registry`) and the options of that kind.
    """

    name: str
    file: str
    loss: str
    bias: str
    parameters: tuple[str, ...]
    driver: str
    capability: Capability
    options: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    needs_M: bool = False
    preset: tuple[tuple[str, Any], ...] = ()
    atoms: bool = False

    @property
    def module(self) -> str:
        """The name of its module in `mipfs.models`."""
        return self.file.removesuffix(".py")


_BASE = ("M", "C", "loss", "bias")
_WEIGHTS = "class_weight"
_USUAL = (*_BASE, _WEIGHTS)
_PYOMO = Capability(
    losses=POINTWISE, bound="exact", regularisers=BOXES, selection=PRICED, weight_rows=True, excluding=True
)
_RELAXED = Capability(losses=POINTWISE, bound="a relaxation", regularisers=BOXES, weight_rows=True)
_ON_FEATURES = replace(_RELAXED, atoms=("features",))
_ON_RIDGE = replace(_ON_FEATURES, regularisers=RIDGE)
_PRICED = replace(_ON_RIDGE, selection=PRICED)
_WITHOUT_ROWS = replace(_ON_FEATURES, selection=(), leaves_out=True)
_TABLE = (
    FormulationEntry("fsp-m", "fsp_m.py", "hinge", "free", _USUAL, "branch", _PYOMO, atoms=True),
    FormulationEntry(
        "fsp-lambda", "fsp_lambda.py", "hinge", "free", ("lambda", *_USUAL[1:]), "branch", _PYOMO, atoms=True
    ),
    FormulationEntry(
        "fgm",
        "qcqp_relaxation.py",
        "squared-hinge",
        "none",
        (*_BASE, "margin", _WEIGHTS, "T"),
        "kelley",
        replace(_RELAXED, bound="a relaxation: the hull"),
        ("T",),
        atoms=True,
    ),
    FormulationEntry(
        "boolean",
        "boolean_relaxation.py",
        "squared-hinge",
        "none",
        (*_BASE, "margin", _WEIGHTS),
        "kelley",
        replace(_RELAXED, bound="a relaxation: the box", selection=PRICED),
        preset=(("relaxation", "box"),),
        atoms=True,
    ),
    FormulationEntry(
        "reduced-mkl",
        "reduced_mkl.py",
        "squared-hinge",
        "none",
        ("pool", *_BASE, "margin", "form", _WEIGHTS),
        "conic",
        replace(_RELAXED, bound="of its pool alone", regularisers=RIDGE, weight_rows=False),
        declared=("pool", "form"),
    ),
    FormulationEntry(
        "structural",
        "structural_dual.py",
        "structural",
        "a constant column",
        ("measure", "M", "C", "beta", "k", "bias"),
        "two_layer",
        Capability(
            losses=("structural",),
            bound="of its pool alone",
            atoms=STORED,
            bias=("none",),
            margins=("unit",),
            weights=False,
        ),
        atoms=True,
    ),
    FormulationEntry("nmmkl", "nmmkl.py", "hinge", "free", _USUAL, "conic", _ON_RIDGE),
    FormulationEntry("qcqp-ssvm", "qcqp_ssvm.py", "hinge", "free", _USUAL, "conic", _WITHOUT_ROWS, needs_M=True),
    FormulationEntry("sdp-ssvm", "sdp_ssvm.py", "hinge", "free", _USUAL, "conic", _WITHOUT_ROWS, needs_M=True),
    FormulationEntry("decomposed-sdp", "decomposed_sdp.py", "hinge", "free", _USUAL, "conic", _PRICED),
    FormulationEntry(
        "big-m",
        "big_m.py",
        "hinge",
        "free",
        (*_BASE, "U", "binary", _WEIGHTS),
        "conic",
        _PRICED,
        declared=("U", "binary"),
    ),
    FormulationEntry(
        "plain-svm", "plain_svm.py", "hinge", "free", _USUAL, "conic", replace(_WITHOUT_ROWS, atoms=ATOMS)
    ),
    FormulationEntry(
        "onsvm",
        "onsvm.py",
        "hinge",
        "free",
        _USUAL,
        "conic",
        replace(_WITHOUT_ROWS, losses=("hinge",), bound="none: a baseline", regularisers=RIDGE, weight_rows=False),
    ),
)


def table() -> tuple[FormulationEntry, ...]:
    """The formulations that come with the package."""
    return _TABLE


def capabilities() -> dict[str, Capability]:
    """What the program of every formulation declares that it can carry."""
    return {entry.name: entry.capability for entry in _TABLE}


def check(problem: Problem, name: str) -> None:
    """Refuse a problem that the program of a formulation cannot carry, and data that is too large for any program.

    Raises
    ------
    UsageError
    """
    capability.check(problem, "formulation", name, capabilities()[name], capabilities)
    check_size(problem.data, "Pyomo model" if name == "fsp-m" else "CVXPY program")


@dataclass(frozen=True, eq=False)
class LoadedFormulation:
    """A formulation that is ready to be built.

    Attributes
    ----------
    name : str, as it was asked for
    path : Path of its file
    build : callable ``build(data, **params)``
    problem : callable ``problem(data, **params)``, or None for a user's file
        Makes the Problem alone, which can be of any size.
    entry : FormulationEntry, or None for a user's file
    declare : callable ``declare(problem)``, or None
        Declares the formulation of a Problem, of those in CVXPY.
    """

    name: str
    path: Path
    build: Callable[..., Any]
    problem: Callable[..., Problem] | None = None
    entry: FormulationEntry | None = None
    declare: Callable[..., Formulation] | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that it takes by name, as on the command line, where bounds on weights have options."""
        shown = {"lam": "lambda"}
        given = [name for name in self._build_keywords() if self.entry is None or name != "weight_bounds"]
        return tuple(shown.get(name, name) for name in [*given, *self._driver_options])

    @property
    def _driver_options(self) -> tuple[str, ...]:
        return () if self.entry is None else self.entry.options

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
        params, atoms = self._split_off_atoms(params)
        weights = None if self.problem is None else params.pop("class_weight", None)
        arguments = self._check(params)
        if self.problem is not None:
            if atoms is not None:
                arguments["atoms"] = atoms(data)
            apart = () if self.entry is None else self.entry.options + self.entry.declared
            made = self.problem(data, **{name: value for name, value in arguments.items() if name not in apart})
            return made if weights is None else made.replace(class_weight=weights)
        with user_file.running(self.path):
            built = self.build(data, **arguments)
        try:
            problem_of(built)
        except UsageError as error:
            raise UsageError(f"{self.path}: build returned {type(built).__name__}; {error}") from None
        return built

    def options(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The options that the default driver gets: parameters that are no part of the Problem.

        Parameters
        ----------
        params : mapping of name to value, as for a call
        """
        if self.entry is None:
            return {}
        arguments = self._check({k: v for k, v in self._split_off_atoms(params)[0].items() if k != "class_weight"})
        options = {name: arguments[name] for name in self.entry.options if name in arguments}
        if self.entry.driver == "conic":
            assert self.declare is not None
            given = {name: arguments[name] for name in self.entry.declared if name in arguments}
            options["declare"] = partial(self.declare, **given)
        return options

    def _build_keywords(self) -> dict[str, inspect.Parameter]:
        parameters = list(inspect.signature(self.build).parameters.values())[1:]
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return {q.name: q for q in parameters if q.kind in kinds}

    def _split_off_atoms(self, params: Mapping[str, Any]) -> tuple[dict[str, Any], Callable[[Instance], Atoms] | None]:
        """The parameters without ``atoms`` and the options of that kind, and what makes these atoms of data."""
        own = dict(params)
        if self.entry is None or "atoms" not in own:
            return own, None
        if not self.entry.atoms:
            others = ", ".join(entry.name for entry in _TABLE if entry.atoms)
            raise UsageError(f"{self.name} selects single features; atoms= is a parameter of {others}")
        name = own.pop("atoms")
        known = [one for one in registry.kind_of(name).options if one not in self.parameters]
        options = {one: own.pop(one) for one in known if one in own}
        for one in own:
            if one not in (*self.parameters, *ALIASES.values(), *ALIASES):
                every = [*self.parameters, *known]
                hint = suggest_name(one, every, f"it takes {', '.join(every)}")
                raise UsageError(f"{self.name} with atoms={name} has no parameter {one!r}; {hint}")
        return own, partial(registry.make, name, **options)

    def _check(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `build`: aliases resolved, unknown and missing names refused."""
        known = self._build_keywords()
        takes_any = any(q.kind is q.VAR_KEYWORD for q in inspect.signature(self.build).parameters.values())
        arguments: dict[str, Any] = {}
        for given, value in params.items():
            name = own_name(given, known)
            if name not in (*known, *self._driver_options) and not takes_any:
                takes = f"it takes {', '.join(self.parameters) or 'none'}"
                hint = suggest_name(given, self.parameters, "")
                raise UsageError(f"{self.name} has no parameter {shown_name(given)!r}; {f'{hint} {takes}'.strip()}")
            if name in arguments:
                raise UsageError(f"{self.name}: {given_twice_message(name)}")
            arguments[name] = value
        for name, parameter in known.items():
            if parameter.default is parameter.empty and name not in arguments:
                shown = shown_name(name)
                raise UsageError(f"{self.name} needs a value for {shown}: -p {shown}=...")
        return arguments_of(self.build, arguments)


def _model_module(name: str) -> ModuleType:
    """A file of `mipfs.models`: nothing below the registry imports them."""
    return importlib.import_module(f"mipfs.models.{name}")


def load(name: str | Path) -> LoadedFormulation:
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
            module = _model_module(entry.module)
            path = Path(str(module.__file__))
            return LoadedFormulation(
                entry.name, path, module.build, module.problem, entry, getattr(module, "declare", None)
            )
    if text.endswith(".py"):
        path = Path(text)
        return LoadedFormulation(text, path, user_file.build_of(path))
    names = [entry.name for entry in _TABLE]
    hint = suggest_name(text.replace("_", "-").lower(), names, f"it is one of {', '.join(names)}, or a .py file")
    raise UsageError(f"no formulation is called {text!r}; {hint}")


def declare(name: str, problem: Problem, *args: Any) -> Formulation:
    """Declare a formulation of the table for a problem; further arguments as its `declare` takes them."""
    declare = load(name).declare
    assert declare is not None, f"{name} is not declared in CVXPY"
    return declare(problem, *args)


def problem_of(model: Any) -> Problem:
    """The immutable `Problem` that was attached to a formulation when it was built, at its parameters' present values.

    C, lambda and M of a Pyomo model are parameters of it, of a formulation those in `Formulation.parameters`. Rows
    that a user added to a Pyomo model since then are not in it; `compile` has them.

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
    if isinstance(model, Formulation) and model.parameters:
        from mipfs.formulation.parameters import with_present_parameters

        return with_present_parameters(model.problem, model.parameters)
    if isinstance(model, Formulation):
        return model.problem
    problem = getattr(getattr(model, "_mipfs", None), "problem", None)
    if isinstance(problem, Problem):
        return problem
    raise UsageError(
        f"{type(model).__name__} is no problem to solve: give a mipfs.Problem, a Pyomo model built by mipfs.models, "
        "or a mipfs.Formulation"
    )


def compile(model: Any) -> Problem:
    """The `Problem` that a formulation stands for now, with the user's rows and fixings.

    For a Pyomo model that is the attached problem with the rows, extra variables, fixings and
    cardinality that stand under ``model.select`` at this moment, for a CVXPY formulation its problem with the
    constraints over σ that were added to it; otherwise it is `problem_of`.

    Raises
    ------
    RowError
        Something in the model cannot be honoured; the message names the component.
    UsageError
        `model` is no formulation.
    """
    problem = problem_of(model)
    if isinstance(model, Problem):
        return problem
    if isinstance(model, Formulation):
        from mipfs.formulation import cvxpy_rows

        return cvxpy_rows.compile(model)
    from mipfs.formulation import pyomo_rows

    return pyomo_rows.compile(model)


def algebraic_model(problem: Problem) -> Any:
    """The Pyomo model of a problem, in perspective form.

    Raises
    ------
    UsageError
        A loss that has no such form, or data too large for an algebraic model.
    """
    return _model_module("perspective").perspective(problem)
