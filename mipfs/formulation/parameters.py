"""C, λ and M of a declared CVXPY program as its parameters: a new value is that of the next solve, by whomever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipfs.errors import UsageError
from mipfs.formulation.conic import cp
from mipfs.problem import Problem


@dataclass(frozen=True, eq=False)
class Parameters:
    """The parameters of a program: ``C``, ``lam``, one number or one of every atom, and ``M`` where S has one."""

    C: Any
    lam: Any
    M: Any
    own: Any

    @classmethod
    def of(cls, problem: Problem) -> Parameters:
        """Those of a problem, with its values."""
        lam = np.asarray(_lambda_value(problem), dtype=float)
        own = np.zeros(problem.atoms.count)
        for name, cost in problem.data.penalty.items():
            own[problem.atoms_of([name])] = cost
        return cls(
            cp.Parameter(pos=True, name="C", value=problem.C),
            cp.Parameter(lam.shape, nonneg=True, name="lam", value=lam if lam.shape else float(lam)),
            None if problem.M is None else cp.Parameter(nonneg=True, name="M", value=problem.M),
            own,
        )

    def charges(self, sigma: Any) -> Any:
        """c'σ."""
        charged = self.lam @ sigma if self.lam.ndim else self.lam * cp.sum(sigma)
        return charged + self.own @ sigma if self.own.any() else charged

    @property
    def by_name(self) -> dict[str, Any]:
        """As a formulation has them."""
        return {name: one for name in ("C", "lam", "M") if (one := getattr(self, name)) is not None}


def _lambda_value(problem: Problem) -> Any:
    """λ as one number, or as one of every atom."""
    lam = problem.lam
    return [float(lam.get(g, 0.0)) for g in problem.atoms.names] if isinstance(lam, Mapping) else lam


def with_present_parameters(problem: Problem, parameters: Mapping[str, Any]) -> Problem:
    """The problem with the values that its program's parameters have now; itself where they are as declared.

    Raises
    ------
    UsageError
        A parameter without a value, or out of its range.
    """
    changed: dict[str, Any] = {}
    for name, one in parameters.items():
        before = np.asarray(_lambda_value(problem) if name == "lam" else getattr(problem, name), dtype=float)
        if one.value is None:
            raise UsageError(f"the parameter {name} has no value; give it one, as in parameters[{name!r}].value = 2")
        now = np.asarray(one.value, dtype=float)
        if not np.array_equal(now, before):
            changed[name] = now.tolist()
    if changed.get("M") is not None:
        if not float(changed["M"]).is_integer():
            raise UsageError(f"M = {changed['M']:g} is no whole number")
        changed["M"] = int(changed["M"])
    return problem.replace(**changed) if changed else problem
