"""Which atoms are in every selection up to a limit, which in none, and which are open, as the leaves imply it.

    limit = U + g|U|,     bound of a leaf given σ_j = v  =  (leaf) over its selections with σ_j = v

What may be out at no leaf (`mipfs.check.possible`) is in every selection of S whose value is at most the limit; what
may be in at no leaf is in none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from mipfs.check import derived
from mipfs.check import made as functions
from mipfs.check.dual_vectors import Duals
from mipfs.check.in_unit import in_unit
from mipfs.check.joint import JOINT
from mipfs.check.known import is_joint, rules_of
from mipfs.check.leaves import CoverTree
from mipfs.check.possible import possible
from mipfs.check.rounding import Arrays, Document, Integers, Mask, above, number, require
from mipfs.check.scaling import by_rules
from mipfs.check.statement import Statement
from mipfs.data.instance import Instance

SURELY = 1e-6
"""What is decided at a limit that is larger by this, relative, is not open."""
FIELDS = frozenset({"gap", "every", "none", "open"})


def limit_of(statement: Statement, objective: float, gap: float) -> float:
    """U + g|U| in the unit margin, rounded up."""
    exact = Fraction(objective)
    return statement.unit(above(exact + Fraction(gap) * abs(exact)))


def larger(level: float, by: float) -> float:
    """A limit that is larger by a share of itself."""
    return math.nextafter(level + by * abs(level), math.inf)


class StatedEntry(NamedTuple):
    """An entry as it is stated: its gap, and masks (p,)."""

    gap: float
    every: Mask
    none: Mask


def _read(entry: Any, statement: Statement) -> StatedEntry:
    require(isinstance(entry, Mapping) and entry.keys() == FIELDS, "what is decided is malformed")
    gap = number(entry["gap"], "the gap of what is decided")
    require(gap >= 0, "the gap of what is decided is negative")
    require(statement.margin == "unit" or gap < 1, "the gap of what is decided in the ρ-form is not below 1")
    rest = [name for name in ("none", "open") if entry[name] is None]
    require(len(rest) <= 1, "'none' and 'open' are both null")
    masks = {
        name: _atom_mask(() if entry[name] is None else entry[name], statement) for name in ("every", "none", "open")
    }
    require(entry["every"] is not None, "what is in every selection is not stated")
    count = np.sum([*masks.values()], axis=0)
    require(np.all(count <= 1), "a feature is decided in two ways")
    if rest:
        masks[rest[0]] = count == 0
    require(rest or np.all(count == 1), "of a feature it is not said whether it is decided")
    return StatedEntry(gap, masks["every"], masks["none"])


def _atom_mask(names: Any, statement: Statement) -> Mask:
    require(isinstance(names, list | tuple), "what is decided is no list of names")
    ids = statement.ids(names)
    require(np.unique(ids).size == ids.size, "a feature is decided twice")
    found = np.zeros(statement.p, dtype=bool)
    found[ids] = True
    return found


def check_decided(
    document: Document, statement: Statement, duals: Duals, tree: CoverTree, arrays: Arrays, chosen: Iterable[int]
) -> tuple[str, ...]:
    """Compare what is said to be decided with what the leaves imply; what was found, in words.

    What the leaves imply by a margin of `SURELY` is not called open; where extra variables have costs, which may
    cancel, nothing is said of what is called open.
    """
    given = document.get("decided")
    if given is None:
        return ()
    require(isinstance(given, list | tuple) and len(given) > 0, "what is decided is no list")
    require(document["objective"] is not None, "something is decided up to an objective that is not there")
    made = (document.get("atoms") or {}).get("made") or {}
    require("kind" not in made, "nothing is decided of products of features, of which not all are held")
    stated = [_read(entry, statement) for entry in given]
    gaps = [one.gap for one in stated]
    require(gaps == sorted({*gaps}), "the gaps of what is decided do not ascend")
    inside = np.zeros(statement.p, dtype=bool)
    inside[list(chosen)] = True
    objective = number(document["objective"], "the objective")
    levels = [limit_of(statement, objective, one.gap) for one in stated]
    names = statement.atoms.names
    may_be_in, may_be_out = possible(statement, duals, tree, arrays, levels)
    weak = list[int]()
    for k, one in enumerate(stated):
        wrong = (one.every & (may_be_out[k] | ~inside)) | (one.none & (may_be_in[k] | inside))
        what = f"{names[int(np.argmax(wrong))] if wrong.any() else ''!r}"
        require(not wrong.any(), f"the leaves do not show that {what} is decided within {one.gap:g}")
        if np.any(~may_be_out[k] & ~one.every) or np.any(~may_be_in[k] & ~one.none):
            weak.append(k)
    if weak and not statement.has_extra_costs:
        far = [larger(levels[k], SURELY) for k in weak]
        may_be_in, may_be_out = possible(statement, duals, tree, arrays, far)
        for row, k in enumerate(weak):
            more = (~may_be_out[row] & inside & ~stated[k].every) | (~may_be_in[row] & ~inside & ~stated[k].none)
            what = f"{names[int(np.argmax(more))] if more.any() else ''!r}"
            require(not more.any(), f"{what} is called open within {stated[k].gap:g}, but the leaves decide it")
    return tuple(
        f"of selections {f'within {100 * one.gap:g}% of it' if one.gap else 'as good as this one'} "
        f"{int(one.every.sum())} are in every one, {int(one.none.sum())} in none, "
        f"{int(np.sum(~(one.every | one.none)))} open"
        for one in stated
    )


class DecidedAtoms(NamedTuple):
    """What is decided at a gap, in positions of atoms: ascending."""

    gap: float
    every: Integers
    none: Integers
    open: Integers
    names: Sequence[str]


def decide_atoms(
    document: Document, arrays: Arrays, data: Instance, gaps: Sequence[float], by: float
) -> list[DecidedAtoms]:
    """What the leaves of a certificate imply, in which a limit counts as larger by a share of itself.

    Parameters
    ----------
    document, arrays, data : as for `mipfs.check.tree.check`
    gaps : relative distances above the objective
    by : float, the share
    """
    data = by_rules(data, rules_of(document))
    _, scaled = functions.on_scale(document, arrays, data)
    document, arrays, scaled, _ = in_unit(document, arrays, scaled)
    of_statement, of_duals = JOINT if is_joint(document) else (Statement, Duals)
    statement = of_statement(document, scaled.data)
    statement.scaled = scaled
    derived.append(statement, document["certificate"].get("derived", ()))
    tree = CoverTree(arrays, statement.p, statement.whole)
    duals = of_duals(statement, arrays)
    objective = number(document["objective"], "the objective")
    levels = [larger(limit_of(statement, objective, gap), by) for gap in gaps]
    may_be_in, may_be_out = possible(statement, duals, tree, arrays, levels)
    inside = np.zeros(statement.p, dtype=bool)
    inside[statement.ids(document["selected"])] = True
    every, none = ~may_be_out & inside, ~may_be_in & ~inside
    rest, names = ~(every | none), statement.atoms.names
    return [
        DecidedAtoms(gap, np.flatnonzero(every[k]), np.flatnonzero(none[k]), np.flatnonzero(rest[k]), names)
        for k, gap in enumerate(gaps)
    ]
