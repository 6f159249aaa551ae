"""What can be selected, by name: ``mipfs.atoms.make("splines", data, knots=7)``, ``-p atoms=splines -p knots=7``.

A kind of atoms is a line here. Where predictions and certificates are to be about the raw data, its class has
`options`, `made` and `mapped` as `mipfs.atoms.additive.Additive` has them, and `mipfs.check.made` knows it by its name.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mipfs.atoms import Atoms
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import check_value
from mipfs.plumbing.registry import suggest_name


@dataclass(frozen=True)
class AtomKind:
    """A kind of atoms.

    Attributes
    ----------
    module, factory : str
        Where ``factory(data, **options)`` is, which makes them.
    about : str, one line
    source : str, papers
    decision : str
        The function of the module that predicts, ``decision(made, weights, values)``: see
        `mipfs.atoms.registry.decision`. By default that of the additive maps.
    """

    module: str
    factory: str
    about: str
    source: str
    decision: str = ""

    @property
    def make(self) -> Callable[..., Atoms]:
        """The factory."""
        return cast(Callable[..., Atoms], getattr(importlib.import_module(self.module), self.factory))

    @property
    def options(self) -> tuple[str, ...]:
        """The options that the factory takes by name."""
        named = list(inspect.signature(self.make).parameters.values())[1:]
        return tuple(one.name for one in named if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY))


KINDS: dict[str, AtomKind] = {
    "features": AtomKind("mipfs.atoms.features", "Features", "single features, as without atoms=", "Aytug 2015"),
    "groups": AtomKind(
        "mipfs.atoms.groups",
        "Groups",
        "the groups of the data; a feature in none is one itself",
        "Tan 2014, 4.2",
    ),
    "tree": AtomKind(
        "mipfs.atoms.tree",
        "nested",
        "the features, and the groups of the data as nodes above them: two are disjoint or one holds the other",
        "Tan 2014, 2.4 and 4.3",
    ),
    "additive-hik": AtomKind(
        "mipfs.atoms.intersection",
        "Intersection",
        "functions of single features: the (generalised) intersection kernel, exactly",
        "Maji and Berg 2009; Tan 2014, (26); with levels=: Wu 2010",
    ),
    "additive-intersection": AtomKind(
        "mipfs.atoms.homogeneous",
        "SampledIntersection",
        "functions of single features: the intersection kernel by a map of few columns",
        "Vedaldi and Zisserman 2010",
    ),
    "additive-chi2": AtomKind(
        "mipfs.atoms.homogeneous",
        "Chi2",
        "functions of single features: the χ² kernel by scikit-learn's AdditiveChi2Sampler",
        "Vedaldi and Zisserman 2010",
    ),
    "additive-jensen-shannon": AtomKind(
        "mipfs.atoms.homogeneous",
        "JensenShannon",
        "functions of single features: the Jensen–Shannon kernel by a map of few columns",
        "Vedaldi and Zisserman 2010",
    ),
    "additive-gaussian": AtomKind(
        "mipfs.atoms.gaussian",
        "Gaussian",
        "functions of single features: the Gaussian kernel by a map of few columns, or random features with seed=",
        "Tan 2014, 4.4 and 7.3; Rahimi and Recht 2007",
    ),
    "splines": AtomKind(
        "mipfs.atoms.splines",
        "Splines",
        "functions of single features: B-splines, sparse additive models",
        "scikit-learn's SplineTransformer",
    ),
    "pairs": AtomKind(
        "mipfs.atoms.pairs",
        "Pairs",
        "squares and products of features, as many as there are: the polynomial kernel",
        "Tan 2014, 6.4",
    ),
}


def kind_of(name: Any) -> AtomKind:
    """The kind of atoms of that name.

    Raises
    ------
    UsageError
        No such name.
    """
    if isinstance(name, str) and name in KINDS:
        return KINDS[name]
    hint = suggest_name(str(name).replace("_", "-"), KINDS, f"it is one of {', '.join(KINDS)}")
    raise UsageError(f"no atoms are called {name!r}; {hint}")


def make(name: str, data: Instance, /, **options: Any) -> Atoms:
    """What can be selected, by its name.

    Parameters
    ----------
    name : str, one of `KINDS`
    data : Instance
    **options
        Of that kind, such as ``knots=7`` of "splines".

    Returns
    -------
    Atoms, for ``Problem(data, atoms=...)``

    Raises
    ------
    UsageError
        An unknown name or option, or an option out of its range.
    DataError
        Data that the kind is not for.
    """
    kind = kind_of(name)
    check_value("data", data, Instance)
    known = kind.options
    for option in options:
        if option not in known:
            hint = suggest_name(option, known, f"they take {', '.join(known)}")
            raise UsageError(f"the atoms {name!r} have no option {option!r}; {hint}")
    return kind.make(data, **options)


def decision(made: Mapping[str, Any], weights: Mapping[str, float], values: Mapping[str, Array]) -> Array:
    """The classifier of a result on new rows, without its intercept.

    Parameters
    ----------
    made : the entry ``made`` of the result's atoms
    weights : mapping of a made column's name to its weight
    values : (m,) values by the name of every feature of ``made["features"]``, as the scaled training data has them

    Returns
    -------
    (m,) ndarray
    """
    kind = kind_of(made["name"])
    module = importlib.import_module(kind.module)
    if kind.decision:
        return cast(Array, getattr(module, kind.decision)(made, weights, values))
    from mipfs.atoms.additive import decision as additive

    return additive(made, weights, values, getattr(module, kind.factory))
