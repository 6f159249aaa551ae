"""Settings of the compiled nodes of `branch`: of the Newton steps on a relaxation, and of when a node is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mipfs.plumbing.declared import Count, Declared, Excess, Natural, NumberRange, Positive
from mipfs.settings.kinds import Part, Tolerance

Factor = Annotated[float, NumberRange(above=1)]
"""What something is multiplied by, more than 1."""
Bits = Annotated[int, NumberRange(8, 50)]
"""Bits of the largest entry of a dual vector."""


@dataclass(frozen=True)
class ModelSettings(Declared):
    """The model of a Newton step: by an active set (`mipfs.kernels.model_step`), or where all features share one price
    by sweeps over the coordinates (`mipfs.kernels.face_descent`)."""

    steps: Count = 4
    """Active-set steps on one model at most: the next Newton step has a better model. 3 to 6 are best, 40 take three
    times as long."""
    wide: Natural = 64
    """Features from which on another model costs more than active-set steps on it."""
    wide_steps: Count = 16
    """Active-set steps on so wide a model at most."""
    shorten: Tolerance = 0.5
    """A step that does not pay is shortened by this factor."""
    shortest: Tolerance = 0.02
    """Down to so short a one; then it ends at the first change of sign."""
    jam: Part = 0.05
    """After a step that ends before this, features enter one at a time, and only where the face is solved."""
    blocked: Part = 1e-9
    """A weight that is at most this share of its direction leaves at once, at no cost, where it is led to zero."""
    sweeps: Natural = 3
    """Sweeps before every step on a face, and one more for every 32 features."""
    rounds: Count = 3
    """Rounds of sweeps and a step on the face at most: the next Newton step has a better model."""
    tight: Tolerance = 0.3
    """Share of the asked accuracy to which sweeps minimise a model: its steps cost less than those of the function."""


@dataclass(frozen=True)
class PriceSettings(Declared):
    """A step of the prices of the user's rows (`mipfs.kernels.prices`)."""

    held: Excess = 0.2
    """Share of a row's curvature over its fractional features that damps its multiplier."""
    inner: Excess = 0.3
    """That share over the features that are in: a row that meets no fractional one is held by what moves these."""
    turns: Count = 3
    """Solves at most to find the rows whose multipliers stay positive."""
    most: Natural = 512
    """Features, and rows that bind, of a step at most: its time is their number cubed."""


@dataclass(frozen=True)
class NodeSettings(Declared):
    """The relaxation of a node in compiled code (`mipfs.kernels.boolean_newton`, `node`, `subtree`)."""

    slice: Count = 30
    """Newton steps of a call, after which the caller may look elsewhere."""
    slices: Count = 4
    """Calls per node at most."""
    growth: Factor = 2.0
    """Factor of the smoothing ρ from one minimisation to the next, and of the proximal weight back."""
    easy: Natural = 6
    """A minimisation of at most so few steps lets ρ grow and the proximal term fall."""
    hard: Natural = 15
    """A minimisation of more steps turns back."""
    aim: Tolerance = 0.1
    """Share of the gap at which a minimisation ends."""
    aim_fall: Tolerance = 0.1
    """Factor of that share where the bound does not rise."""
    aim_least: Tolerance = 2e-3
    """That share falls no further."""
    entering: Count = 40
    """Features of weight zero in a working set at most."""
    most: Part = 0.25
    """A node that must rise is left once it has this share of what it can still rise to."""
    little: Part = 1e-2
    """It is left, too, within this share of its distance to the cutoff."""
    steady: Natural = 64
    """Features from which on a curvature that hardly changes is made once for the steps on a working set."""
    stalls: Natural = 2
    """Directions that do not descend, in a call, until it gives up."""
    prox_least: Positive = 1e-9
    """The proximal weight falls no further."""
    searches: Count = 12
    """Points of a line search at most."""
    smooth_steps: Count = 3
    """Steps on one working set where nothing is smoothed."""
    proximal: Positive = 0.1
    """The proximal weight that a warm start begins with."""
    back: Tolerance = 0.5
    """Share of the last ρ that a warm start begins with."""
    rho_least: Positive = 0.5
    """A warm start begins with a ρ of at least this: a smaller one smooths the hinge away."""
    exact: Tolerance = 1e-10
    """Relative gap to which a node is solved whose relaxation is integral and whose fate is not clear; a leaf, to a
    tenth of it."""
    worth: Part = 0.03
    """A step of the prices must promise to close this share of a node's distance to the cutoff; a second brings
    nothing."""
    coarse: Bits = 16
    """Bits of the dual vector of a node that is left open far below the cutoff."""
    far_below: Part = 3e-3
    """How far: so far that fewer bits cost at most this share of the distance."""
    aged: Natural = 4
    """Nodes on the way down that inherit prices at least, until these may be found anew."""
    lost: Excess = 60.0
    """They are found anew once they seem to lose this multiple of a node's distance to the cutoff."""
    far: Excess = 0.5
    """A stalled node is solved elsewhere where upper − lower is more than this share of the distance to the cutoff."""
    dust: Excess = 1e-3
    """Among features of like weight the one of larger σ is offered first: σ counts this much beside |w|."""
    model: ModelSettings = ModelSettings()
    """The model of a Newton step."""
    prices: PriceSettings = PriceSettings()
    """A step of the prices of the user's rows."""
