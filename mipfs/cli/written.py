"""The declared model as a file that other solvers read: LP (.lp), MPS (.mps) or AMPL's .nl.

A Pyomo model is written as it stands. A CVXPY program is written as its solver gets it, cones and all: a second-order
cone as ‖s‖² ≤ s_0², an exponential cone by exp or by t + y log y ≤ 0, a semidefinite one by its factor, V = LLᵀ.
What has an exponential or a logarithm in it, the logistic loss, fits into .nl alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mipfs.errors import UsageError
from mipfs.formulation import algebraic_model, compile, load
from mipfs.formulation.program import Formulation
from mipfs.plumbing import output_file
from mipfs.problem import Problem

SUFFIXES = (".lp", ".mps", ".nl")


def write(model: Any, path: str | Path, options: Mapping[str, Any] | None = None) -> None:
    """Write the declared model of a problem or a formulation to a file.

    Parameters
    ----------
    model : Problem, Pyomo model or Formulation
        Of a `Problem` it is (P) in perspective form, or the program of the formulation that it was declared as.
    path : str or Path, ending in .lp, .mps or .nl
    options : mapping, optional
        Those of the driver; its ``declare`` makes the program of a formulation.

    Raises
    ------
    UsageError
        Another ending, a place that cannot be written to, a model that the format does not hold, or a change of the
        model that cannot be honoured.
    """
    target = Path(path)
    check_suffix(target)
    output_file.save([(target, _pyomo_content(declared_model(model, options), target.suffix.lower()))])


def check_suffix(path: Path) -> None:
    """Refuse a file whose ending says no format.

    Raises
    ------
    UsageError
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path}: a model is written as {', '.join(SUFFIXES)}; give a file of such a name")


def declared_model(model: Any, options: Mapping[str, Any] | None = None) -> Any:
    """The Pyomo model that states what a model declares.

    Parameters
    ----------
    model : Problem, Pyomo model or Formulation
    options : mapping, optional, as for `write`
    """
    problem = compile(model)
    if isinstance(model, Formulation):
        from mipfs.drivers.default import redeclare_for
        from mipfs.formulation.canonical import pyomo_of

        return pyomo_of(model if problem is model.problem else redeclare_for(model, problem))
    if not isinstance(model, Problem):
        return model
    declare = (options or {}).get("declare") or _cvxpy_declaration(problem)
    return algebraic_model(problem) if declare is None else declared_model(declare(problem))


def _cvxpy_declaration(problem: Problem) -> Any:
    """What declares the program of a problem's formulation in CVXPY; None for those in Pyomo and for plain problems."""
    from mipfs.drivers.default import entry_of

    if problem.is_joint:
        return load("structural").declare
    entry = entry_of(problem, problem)
    if entry is None:
        return None
    if "pool" in entry.declared:
        raise UsageError(f"{entry.name} needs a pool: give models.{entry.module}(data, pool=...)")
    return load(entry.name).declare


def _pyomo_content(model: Any, suffix: str) -> bytes:
    """What Pyomo writes of a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{suffix}"
        # the user's names where the format and their characters allow it, numbers otherwise
        for options in [{}] if suffix == ".nl" else [{"symbolic_solver_labels": True}, {}]:
            try:
                model.write(str(path), io_options=options)
                break
            except (ValueError, RuntimeError) as error:
                failure = error
        else:
            raise UsageError(
                f"the model does not fit into {suffix}, which holds no exponentials and logarithms; write it as .nl"
            ) from failure
        return path.read_bytes()
