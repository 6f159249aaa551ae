"""Settings of the relaxations that are solved inside the drivers: the root's, and those of `kelley` and `two_layer`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mipfs.errors import UsageError
from mipfs.plumbing.declared import Count, Declared, Excess, Natural, NumberRange, Positive
from mipfs.settings.kinds import Part, Tolerance


@dataclass(frozen=True)
class InteriorSettings(Declared):
    """The interior point of a relaxation (`mipfs.inner.interior`), and its conjugate gradients on many sparse columns
    (`mipfs.inner.iterative`)."""

    boundary: Tolerance = 0.99
    """Share of the way to the boundary that a step may go."""
    newcomer: Tolerance = 0.1
    """σ of an atom that comes in later, as a share of the mean of those that are there."""
    steps: Count = 200
    """Steps after which the numbers are taken as they are."""
    least: Natural = 500
    """Samples and columns up to which one factor is cheaper than conjugate gradients."""
    rows: Natural = 32
    """Rows of the polytope up to which there are conjugate gradients."""
    core: Excess = 10.0
    """A column is in the core, which is factored, where its part of the system is above this multiple of what the
    diagonal says."""
    core_work: Positive = 7e3
    """Multiplications of the core's factor at most, for every stored number: some dozens of products with the data."""
    products: Count = 200
    """Conjugate gradients of one solution at most."""
    residual: Tolerance = 1e-2
    """Relative residual of a solution, as a share of the mean product μ, but no less than `finest` and no more than
    `roughest`."""
    roughest: Tolerance = 1e-4
    """The largest relative residual that is asked for."""
    finest: Tolerance = 1e-9
    """The smallest relative residual that is asked for."""
    patience: Count = 10
    """Steps over which μ must fall once it is below `late`: else the numbers allow no more."""
    slow: Tolerance = 0.7
    """It must fall to this share."""
    late: Tolerance = 1e-6
    """Before μ is as small, slow steps are no sign of the end."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.finest > self.roughest:
            raise UsageError(f"finest must not exceed roughest, {self.roughest}, not {self.finest}")


@dataclass(frozen=True)
class RelaxationSettings(Declared):
    """The Boolean relaxation from nothing, which roots are: working sets and pricing (`mipfs.inner.boolean`)."""

    first: Count = 100
    """Atoms in the first working set, or four times M."""
    growth: Count = 300
    """New atoms that a round takes in at most, where the working set is small."""
    factor: Count = 2
    """New atoms that a round takes in at most, as a multiple of the working set, where this is more than `growth`."""
    cheap: Excess = 1e9
    """Multiplications of a step up to which as many atoms as samples are all in from the start: pricing would cost
    more."""
    all_numbers: Natural = 2_000_000
    """Stored numbers up to which all sparse columns come in once a crowd of them is missing."""
    crowd: Part = 0.15
    """Share of the atoms that a round finds missing which is a crowd."""
    near: Part = 0.7
    """With the atoms that a round must take in come those worth so large a share of their price: the next would be
    them."""
    used: Part = 1e-4
    """An atom whose σ is so large, relative to the largest, is in use."""
    likely: Count = 2_000
    """Atoms at most with which a relaxation that the gradients did not solve begins again."""
    rounds: Count = 40
    """Rounds of pricing at most."""
    nearly: Excess = 10.0
    """A gap of at most this multiple of the asked one is not worth factors of all that is in play."""
    loose: Tolerance = 0.25
    """Share of the gap over all atoms to which a working set is solved while it is still growing."""
    merge_above: Natural = 500
    """Samples from which on equal ones are looked for: fewer cost less than the look."""
    tall: Natural = 20
    """Samples for every column from which on the SVM on all columns comes first (`mipfs.inner.tall`), where a step of
    the interior point takes more than `cheap`, or the samples are `tall_samples`."""
    tall_samples: Natural = 500_000
    """Samples from which on the vectors of a step of the interior point take long, whatever its matrices do: at
    10⁶ × 100, two entries a sample, its root takes 13 s of processor time, and has no bound worth having in the first
    three."""
    tall_gap: Tolerance = 1e-3
    """Relative gap to which that SVM is solved."""
    interior: InteriorSettings = InteriorSettings()
    """Its interior point."""


@dataclass(frozen=True)
class SaddleSettings(Declared):
    """The interior point of the saddle over a face (`mipfs.inner.saddle`)."""

    steps: Count = 60
    """Newton steps per call at most."""
    shrink: Tolerance = 0.1
    """Factor by which the mean product μ is to fall in one step."""
    boundary: Tolerance = 0.95
    """Share of the way to the boundary that a step may go."""
    short: Tolerance = 0.1
    """After a step shorter than this μ hardly falls in the next, which leads back to the central path."""
    stuck: Tolerance = 1e-9
    """A step as short as this is round-off, or too far from the central path."""
    excess: Positive = 2.0
    """A step is halved, but not below `short`, while curvature adds more than so large a multiple of the sum of the
    products."""
    close: Annotated[float, NumberRange(1)] = 1.5
    """The mean product may be larger than what was asked for by this factor."""
    inside: Tolerance = 1e-3
    """Share of M that is left free where σ begins."""
    ridges: Count = 4
    """Tries to make the matrix of a step positive definite in floating point."""


@dataclass(frozen=True)
class ProximalSettings(Declared):
    """The accelerated proximal gradient on a restricted problem (`mipfs.inner.proximal`)."""

    steps: Count = 15
    """Proximal steps between two looks at the gap, the clock and the interrupt flag."""
    slices: Count = 400
    """Looks after which the iterate is taken as it is."""


@dataclass(frozen=True)
class LayerSettings(Declared):
    """The inner layer of `two_layer` over a face (`mipfs.inner.face_layer`) or a pool (`mipfs.inner.inner_layer`)."""

    rounds: Count = 2000
    """Rounds of the layer over a face at most: after as many only round-off is left."""
    share: Tolerance = 0.3
    """Share of the open gap to which its master is solved."""
    exact_saddle: Part = 1e-4
    """When a master solved this much tighter still yields no new labelling, round-off is all that is left."""
    drop_every: Count = 5
    """Masters between two looks for labellings that can go."""
    drop_after: Natural = 10
    """Masters in which a labelling was inactive before it goes."""
    drop_above: Count = 100
    """Labellings from which on any go; half as many stay in any case."""
    active: Excess = 3.0
    """A labelling is active whose weight is above this multiple of the smallest that the centre would give it."""
    pool_rounds: Count = 500
    """Labellings that the layer over a pool adds at most."""
    pool_drop_after: Natural = 15
    """Masters over a pool in which a labelling was inactive before it goes, in place of `drop_after`."""
    pool_drop_above: Count = 30
    """Labellings over a pool from which on any go, in place of `drop_above`: its masters are conic programs."""
    saddle: SaddleSettings = SaddleSettings()
    """The interior point of its master over a face."""
