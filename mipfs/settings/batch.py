"""Settings of nodes that are relaxed many at a time (`mipfs.inner.batch`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from mipfs.plumbing.declared import Count, Declared, Excess, NumberRange, Positive
from mipfs.settings.kinds import Tolerance

Relaxed = Annotated[float, NumberRange(1, 2)]
"""An over-relaxation."""


@dataclass(frozen=True)
class BatchSettings(Declared):
    """The relaxation of many nodes at once by ADMM (`mipfs.inner.batch`, `mipfs.kernels.batch`)."""

    lanes: Count = 64
    """Nodes that are relaxed at once."""
    handed: Count = 64
    """Nodes that are handed out at a time at least, where as many are open."""
    least: Count = 16
    """Nodes of a unit of work at least, where there are as many: few nodes fill few lanes."""
    units: Count = 8
    """Units of work that a batch is cut into at least, where each has `least` nodes."""
    below: Count = 64
    """Nodes that are solved below one at most."""
    budget: Count = 512
    """Nodes that a unit of work begins to solve in all, about."""
    steps: Count = 10
    """Iterations between two looks at the values."""
    step: Positive = 0.2
    """What an iteration counts for, in Newton steps, where the search for incumbents is measured by the tree's work."""
    most: Count = 200
    """Iterations after which a node is left as it is."""
    adapt: Count = 10
    """Penalties are adapted to a node after this many iterations, and after twice, four and eight times as many. At
    C = 1, german as groups of one takes 39 iterations a node, with the same penalties for all 65."""
    over: Relaxed = 1.6
    """Over-relaxation."""
    of_weights: Positive = 0.5
    """ρ_x, times the atoms for each that may be selected: the curvature of the regulariser where σ is spread out."""
    of_margins: Positive = 0.2
    """ρ_m, times the largest loss weight."""
    near: Excess = 25.0
    """A node whose fate is not clear is left once upper − lower is at most this multiple of the tolerance, relatively:
    5e-5 at a gap of 1e-4."""
    rough: Tolerance = 1e-3
    """Or at most this, relatively, where nothing is known yet to prune nodes by."""
    stuck: Tolerance = 1e-2
    """A node that takes too long goes to the interior point where that is more than this, relatively; else it is
    split."""
    integral: Tolerance = 1e-3
    """Distance from 0 or 1 up to which a relaxed σ counts as integral."""
    most_root: Count = 1000
    """Iterations after which the root is left to the interior point, where its values are far apart still."""
    near_root: Tolerance = 2e-4
    """Relative gap to which the root is relaxed: its children begin with it, and are relaxed further."""
    alone_from: Count = 500
    """Features from which on the root of dense data is relaxed by this iteration where kernels relax the nodes
    (`mipfs.inner.long_root`): 0.1 to 0.9 of the interior point's time."""
    alone_samples: Count = 1000
    """Samples from which on it is."""
    alone_wide: Positive = 4.0
    """Features, in units of samples, up to which it is: 1,200 samples of 8,000 features take twice as long."""
    long: Count = 400
    """Samples, and columns, from which on dense data are long on two sides: there the root is relaxed in this way too.
    Whether nodes of a plain problem are is a rule on shapes with this number at its default."""
    long_lanes: Count = 128
    """Nodes that are relaxed at once there: matrices come from memory once an iteration, for all of them. Half as many
    are a unit of work at least, and twice as many are begun in one: a second of one core at n = p = 2,000."""

    array_lanes: Count = 1024
    """Nodes that are relaxed at once in arrays (``relax="array"``); half as many are a unit of work at least, and four
    times as many are begun in one."""

    def of_arrays(self) -> BatchSettings:
        """The settings for arrays on a device, which is at work on many nodes or waits."""
        return replace(self._at_once(self.array_lanes, 4), long_lanes=self.array_lanes)

    def of_long(self) -> BatchSettings:
        """The settings for dense data that are long on two sides."""
        return self._at_once(self.long_lanes, 2)

    def _at_once(self, lanes: int, begun: int) -> BatchSettings:
        """The settings with a number of lanes, and `begun` times as many nodes in a unit."""
        return replace(self, lanes=lanes, least=max(1, lanes // 2), handed=2 * lanes, budget=begun * lanes)
