"""What a driver or a formulation can carry: declared where it is written, checked before anything is built.

The tables of ``mipfs models`` and of the README are made of these declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mipfs.errors import UsageError
from mipfs.losses import LOSSES, get_loss, is_joint, laws
from mipfs.losses import trial as loss_trial
from mipfs.plumbing.extension import told_by_name
from mipfs.regularisers import REGULARISERS
from mipfs.regularisers import laws as regulariser_laws
from mipfs.regularisers import trial as regulariser_trial

if TYPE_CHECKING:
    from mipfs.problem import Problem


class Registered(Collection[str]):
    """What is registered, now and later: all of it, or all but some, as losses that are a sum over the samples are."""

    def __init__(self, table: Mapping[str, str], but: Callable[[object], bool] = lambda name: False) -> None:
        self._table = table
        self._but = but

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._table if not self._but(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._table and not self._but(name)


ALL_LOSSES = Registered(LOSSES)
POINTWISE = Registered(LOSSES, but=is_joint)
ALL_REGULARISERS = Registered(REGULARISERS)
RIDGE = ("ridge",)
BOXES = ("ridge", "box")
"""A box is what bounds on the weights are, too."""
STORED = ("features", "scaled features", "groups", "trees")
ATOMS = (*STORED, "made groups")
"""What can be selected, `Atoms.kind`; groups may overlap, and be made when they are asked for."""
PAIRS = ("pairs", "pairs with heredity", "searched atoms")
"""Monomials of features, and others that are too many to hold: a driver that carries them says so."""
SELECTION = ("rows", "extra variables", "forced features", "penalties")
"""What a problem may say about its selection beside M."""
COSTS = "costs of extra variables"
"""What a relaxation of v(σ) does not have in its values: it is carried where it is named, and never left out."""
PRICED = (*SELECTION, COSTS)


@dataclass(frozen=True)
class Capability:
    """What one driver or formulation carries of (P).

    Attributes
    ----------
    losses : collection of str
    bound : str, in a few words what its bound is worth
    atoms : tuple of str, of `ATOMS` and `PAIRS`
    selection : tuple of str, of `PRICED`
    leaves_out : bool
        Whether it may be given what is not in `selection`, and leaves it out: a relaxation of the problem then. Costs
        of extra variables are not left out, for some of them may pay.
    bias : tuple of str, of "free" and "none"
    margins : tuple of str, of "unit" and "rho"
    weights : bool, whether samples may have weights of their own
    regularisers : collection of str
    weight_rows : bool, whether there may be rows over the weights
    excluding : bool, whether bounds on the weights may exclude 0: more features may make it worse then
    is_exact : bool, whether it proves the best selection, and not a relaxation of it
    is_declared : bool, whether it solves the program that a formulation declares, of which a result's JSON has nothing
    no_state : callable, optional
        Of a problem and options: why a run has no state to go on from, "" where it has one. None: no run has.
    goes_on : bool, whether it begins from the result of a problem that was edited since (`warm=`)
    kernel_options : tuple of str, the options that decide which kernels a run calls
    slow_values : tuple of str, values of these with which a solver of another package does the work
    papers : tuple of str, whose method it is, by the keys of `mipfs cite`
    """

    losses: Collection[str]
    bound: str
    atoms: tuple[str, ...] = ATOMS
    selection: tuple[str, ...] = SELECTION
    leaves_out: bool = False
    bias: tuple[str, ...] = ("free", "none")
    margins: tuple[str, ...] = ("unit", "rho")
    weights: bool = True
    regularisers: Collection[str] = RIDGE
    weight_rows: bool = False
    excluding: bool = False
    is_exact: bool = False
    is_declared: bool = False
    no_state: Callable[[Problem, Any], str] | None = None
    goes_on: bool = False
    kernel_options: tuple[str, ...] = ()
    slow_values: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()

    @property
    def is_certified(self) -> bool:
        """Whether its bound is what a certificate shows, and nothing beyond that is to be reported."""
        return "certified" in self.bound

    def lacking(self, problem: Problem) -> list[str]:
        """What of a problem it cannot carry, in words; empty when it carries all of it."""
        wanted = {
            f"the loss {problem.loss!r}": problem.loss in self.losses,
            problem.atoms.kind: problem.atoms.kind in self.atoms,
            "a free bias" if problem.bias else "a missing bias": ("free" if problem.bias else "none") in self.bias,
            f"margin = {problem.margin!r}": problem.margin in self.margins,
            problem.term: problem.regulariser.name in self.regularisers,
            "sample weights": self.weights or not np.any(problem.sample_weight != 1.0),
        }
        wanted["rows over the weights"] = self.weight_rows or not problem.weight_rows
        wanted["bounds on weights that exclude 0"] = self.excluding or problem.regulariser.is_monotone
        beside = not problem.regulariser.is_monotone and problem.is_one_master
        wanted["such bounds beside extra variables that are whole or cost something"] = not beside
        wanted |= {
            what: what in self.selection or (self.leaves_out and what != COSTS) for what in list_priced_parts(problem)
        }
        return [what for what, carried in wanted.items() if not carried]

    def left_out(self, problem: Problem) -> list[str]:
        """What a problem says about its selection, but for extra variables, that is left out."""
        return [what for what in list_priced_parts(problem) if what not in self.selection and what != "extra variables"]

    def line(self) -> dict[str, str]:
        """Its line in the tables, by column."""
        rows = "any linear rows, extra variables" if "extra variables" in self.selection else "any linear rows"
        rows += " with costs" if COSTS in self.selection else ""
        return {
            "losses": ", ".join(self.losses),
            "atoms": ", ".join(("any", *self.atoms[len(ATOMS) :]) if self.atoms[: len(ATOMS)] == ATOMS else self.atoms),
            "rows": rows if "rows" in self.selection else "left out",
            "weights": "yes" if self.weights else "no",
            "bias": " or ".join(self.bias),
            "margin": " or ".join(self.margins),
            "regulariser": ", ".join(self.regularisers) if self.regularisers in (RIDGE, BOXES) else "any",
            "bound": self.bound,
        }


def needs_ridge(problem: Problem, option: str) -> None:
    """Refuse an option that is about the ridge ½w² where the problem has another regulariser.

    Raises
    ------
    UsageError
    """
    if not problem.regulariser.is_ridge:
        raise UsageError(f"{option} is about the ridge ½w² alone; leave it out with {problem.term}")


def list_priced_parts(problem: Problem) -> list[str]:
    """What of `PRICED` a problem makes use of."""
    rows = problem.selection.rows
    selection = problem.selection
    asked = {
        "rows": len(rows) > 0,
        "extra variables": len(rows.extra) > 0,
        "forced features": bool(selection.forced_in or selection.forced_out),
        "penalties": problem.has_penalty,
        COSTS: problem.has_extra_costs,
    }
    return [what for what in PRICED if asked[what]]


def check(
    problem: Problem, kind: str, name: str, own: Capability, all_of: Callable[[], Mapping[str, Capability]]
) -> None:
    """Refuse a problem that cannot be carried, with those of the same kind that can.

    Parameters
    ----------
    problem : Problem
    kind : str, "driver" or "formulation"
    name : str
    own : Capability, its declaration
    all_of : callable, makes the declarations of all of its kind by name

    Raises
    ------
    UsageError
        What is lacking, or a loss or a regulariser that breaks its laws.
    """
    loss = get_loss(problem.loss)
    if loss.pointwise:
        with told_by_name(f"the loss {problem.loss!r}", type(loss)):
            loss_trial.check(loss)
            laws.check(loss)
            loss_trial.check_kernels(loss)
    term = problem.regulariser
    with told_by_name(f"the regulariser {term.name!r}", type(term)):
        regulariser_trial.check(term, problem.atoms.count)
        regulariser_laws.check(term, problem.atoms.count)
    home = type(term).__module__
    if REGULARISERS.own.get(term.name, home) != home:
        raise UsageError(
            f"the regulariser {term.name!r} of {home} has the name of that of {REGULARISERS.own[term.name]}, which a "
            "certificate would be about; give yours another name"
        )
    if term.name not in REGULARISERS:
        raise UsageError(
            f"the regulariser {term.name!r} is not registered, so that no checker finds what it states: "
            f"mipfs.regularisers.REGULARISERS[{term.name!r}] = {home!r}"
        )
    lacking = own.lacking(problem)
    if not lacking:
        return
    able = [other for other, capability in all_of().items() if not capability.lacking(problem)]
    remedy = f"{', '.join(able)} can" if able else f"no {kind} can"
    raise UsageError(f"{kind} {name!r} cannot carry {' and '.join(lacking)}; {remedy} (see `mipfs models`)")
