"""Settings of nodes of `branch` that are closed by enumeration: where that is done, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mipfs.plumbing.declared import Count, Declared, Excess, Natural, NumberRange, Positive
from mipfs.settings.kinds import Part, Tolerance
from mipfs.settings.nodes import Bits, Factor


@dataclass(frozen=True)
class CompletionSettings(Declared):
    """Nodes with one or two free places (`mipfs.drivers.anchors`, `mipfs.kernels.completions`)."""

    most: Annotated[int, NumberRange(0, 3)] = 3
    """Problems with a larger M are left to relaxations alone; 0 has no node enumerated."""
    pairs: Excess = 5e6
    """Pairs up to which a node with two free places is enumerated; the root of M = 2 always is."""
    columns: Natural = 4
    """Columns that the relaxation of a node with three free places puts in, one after the other, where the cutoff is
    far: each leaves a node with two, whose enumeration takes some ten times as long, and is work for many cores. Nearer
    there are fewer, since a relaxation more may close what is left. With eight the best incumbents come later."""
    most_columns: Natural = 16
    """In a large tree, where some for nothing are little of it, that is how many there are at most."""
    column_worth: Count = 20_000
    """Selections that were enumerated to each of these."""
    block: Count = 10_000_000
    """Samples times candidates of the columns of one unit of work: some hundredths of a second."""
    front: Count = 32
    """Units of a node with two free places that are handed out after its first one: where they find better selections,
    the others are spared work."""
    batch: Count = 48
    """Nodes that are handed out at a time at least: one with two free places is some ten units, and one that is relaxed
    takes as long as ten of these, which many workers must not wait for."""
    units: Count = 256
    """Units that are handed out at a time at most, about: their answers lie in memory until all are there."""
    level: Part = 0.4
    """Share of the incumbent's value up to which all pairs are proven first, where there are many, then twice that, and
    so on: so a limit does not leave the bound of the root alone."""
    levels: Natural = 2
    """How often; what is proven up to a level is proven anew beyond it."""
    many: Positive = 1e9
    """Samples times pairs from which on that is done."""
    bytes: Count = 2**25
    """Bytes of the dual vectors of one compiled call at most; it is called again where they are more."""
    apart: Count = 16
    """Completions of one selection that are not ruled out and are looked at one by one before the others are gone on
    with: they may lower the cutoff."""
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
    """The hinge's smoothing ρ that an SVM begins with at most."""
    soft: Positive = 2.0
    """It begins with this multiple of the value that is to be proven, over the loss of all samples at margin 0."""
    slack: Positive = 2.0
    """The SVM on the selection alone ends at this multiple of the value that is to be proven of its completions."""
    grow: Factor = 2.0
    """Factor of ρ from one minimisation to the next."""
    beyond: Tolerance = 0.01
    """An SVM ends this far beyond the target, relatively, if it gets there: the grid takes some of it."""
    together: Count = 8
    """Candidates whose SVM is solved together at first: a dual vector that rules out eight that are hard rules out many
    more; with 4 or 16 of them enumerations take a tenth longer."""
    ordered: Count = 64
    """Candidates that are put in order at a time, the hardest first: most are ruled out before their turn comes."""
    probed: Count = 64
    """Candidates that a dual vector is tried on first."""
    worth: Count = 100
    """It is tried on all where it rules out one in this number: an SVM costs about as much as that number of scores."""
