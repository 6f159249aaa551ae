"""Settings of nodes of `branch` that are closed by enumeration: where that is done, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mipfs.plumbing.declared import Count, Declared, Excess, Natural, Positive, Within
from mipfs.settings.kinds import Tolerance
from mipfs.settings.nodes import Bits, Factor


@dataclass(frozen=True)
class CompletionSettings(Declared):
    """Nodes with one or two free places (`mipfs.drivers.anchors`, `mipfs.kernels.completions`)."""

    most: Annotated[int, Within(0, 3)] = 3
    """Problems with a larger M are left to relaxations alone; 0 has no node enumerated."""
    pairs: Excess = 5e6
    """Pairs up to which a node with two free places is enumerated; the root of M = 2 always is."""
    anchors: Count = 32
    """Columns of a node with two free places that are closed at a time, the most promising first."""
    part: Count = 4096
    """Candidates of one compiled call: threads share the parts of a node that has more."""
    bytes: Count = 2**25
    """Bytes of the dual vectors of one compiled call at most; it is called again where they are more."""
    leaves: Natural = 256
    """Completions of one selection that are looked at one by one; a node with more goes on as any other."""
    bits: Bits = 8
    """Bits of the largest entry of a dual vector; one that proves too little with so few has all."""
    tol: Tolerance = 1e-3
    """Relative gap of an SVM that ends nowhere before; it is tightened tenfold where that decides nothing."""
    attempts: Count = 40
    """Calls of the SVM's steps at most."""
    hinge_steps: Count = 50
    """Newton steps of one call."""
    smooth_steps: Count = 2
    """Newton steps of one call for a smooth loss, which asks no cutoff itself."""
    rho: Positive = 1.0
    """The hinge's smoothing ρ that every SVM begins with."""
    grow: Factor = 5.0
    """Factor of ρ from one minimisation to the next."""
    beyond: Tolerance = 0.01
    """An SVM ends this far beyond the target, relatively, if it gets there: the grid takes some of it."""
    probed: Count = 64
    """Candidates that a dual vector is tried on first."""
    worth: Count = 100
    """It is tried on all where it rules out one in this number: an SVM costs about as much as that number of scores."""
