"""Options that drivers share: what ends a run, and of those that search supports, where to begin and what to find."""

from __future__ import annotations

from dataclasses import dataclass, field

from mipfs.data.instance import Instance
from mipfs.plumbing.declared import Count, Declared, Excess, Gap, Gigabytes, Names, Natural, Seconds
from mipfs.proof.cuts import CutPool


@dataclass(frozen=True)
class EndOptions(Declared):
    """What ends a run of any driver."""

    gap: Gap = 1e-4
    time_limit: Seconds | None = None
    iteration_limit: Natural | None = None


@dataclass(frozen=True)
class MemoryOptions(EndOptions):
    """What ends a run of a driver that looks at the memory of the process, too."""

    memory_limit: Gigabytes | None = None


@dataclass(frozen=True)
class GenerationOptions(MemoryOptions):
    """Options of a driver that generates selections."""

    T: Count | None = None
    refit: bool = True


@dataclass(frozen=True)
class SupportOptions(MemoryOptions):
    """Options of a driver that proves the best supports."""

    start: Names | None = None
    validation: Instance | None = None
    patience: Count = 20
    pool: CutPool | None = field(default=None, repr=False)
    pool_gap: Excess | None = None
    pool_size: Count | None = None
