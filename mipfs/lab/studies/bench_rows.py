"""From the records of a benchmark to a line for every method and M."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.lab.studies.bench_methods import get_method
from mipfs.lab.studies.bench_unit import DONE, Record, Setting
from mipfs.lab.studies.stability import Stability, selection_shares, stability
from mipfs.report.visible import finite_or_none


@dataclass(frozen=True, eq=False)
class BenchRow:
    """A method at one M, over the folds.

    Attributes
    ----------
    method : str
    M : int or None, None for a reference on all features
    folds : int, that were asked for, in all repetitions; done : int, of them with a classifier
    repeats : int, how often the folds were drawn anew
    p : int, the features there are
    values : tuple of float, the measure on every fold that is done
    n_features : float, mean number of features
    seconds, choice_seconds : float, means of the fit at the chosen C, and of the choice
    memory_bytes : int or None, the most of any fit, above what its process held before
    C : tuple of float, chosen on every fold that is done
    stability : Stability or None
    shares : pairs of a feature's position and the share of the done folds in which it was chosen, most often first
    proofs : mapping of a driver's status to the folds that have it
    notes : mapping of what failed or was said to the folds of it
    """

    method: str
    M: int | None
    folds: int
    done: int
    values: tuple[float, ...]
    n_features: float
    seconds: float
    choice_seconds: float
    memory_bytes: int | None
    C: tuple[float, ...]
    stability: Stability | None
    shares: tuple[tuple[int, float], ...] = ()
    proofs: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    repeats: int = 1
    p: int = 0

    @property
    def sparsity(self) -> float:
        """The share of features that the classifier does not use (Tan 2010, section 3.2)."""
        return 1.0 - self.n_features / self.p if self.p else math.nan

    @property
    def value(self) -> float:
        """Mean of the measure over the folds; nan where none is done."""
        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation of the measure over the folds (divisor k − 1); nan with fewer than two."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else math.nan

    @property
    def standard_error(self) -> float:
        """Of the mean, as if the folds were independent: the deviation divided by √k.

        k is the folds of one repetition: the same samples, split anew, make the mean no surer.
        """
        return self.deviation / math.sqrt(len(self.values) / self.repeats) if self.values else math.nan

    def document(self, names: Sequence[str]) -> dict[str, Any]:
        """The line as JSON; what is not defined is None."""
        found = self.stability
        index = None if found is None else {name: getattr(found, name) for name in ("index", "lower", "upper", "level")}
        return {
            "method": self.method,
            "M": self.M,
            "folds": self.folds,
            "done": self.done,
            "value": finite_or_none(self.value),
            "deviation": finite_or_none(self.deviation),
            "standard_error": finite_or_none(self.standard_error),
            "values": list(self.values),
            "n_features": finite_or_none(self.n_features),
            "sparsity": finite_or_none(self.sparsity),
            "C": list(self.C),
            "seconds": finite_or_none(self.seconds),
            "choice_seconds": finite_or_none(self.choice_seconds),
            "memory_bytes": self.memory_bytes,
            "stability": index,
            "shares": {names[j]: share for j, share in self.shares},
            "proofs": self.proofs,
            "notes": self.notes,
        }


def rows_of(setting: Setting, records: Sequence[Record], p: int) -> tuple[BenchRow, ...]:
    """A line for every method and M of a setting, in the order that was asked."""
    cells: dict[tuple[str, int | None], list[Record]] = {}
    for name in setting.methods:
        for M in setting.M if get_method(name).selects else (None,):
            cells[name, M] = []
    for record in records:
        key = (record["method"], record["M"])
        if key in cells:
            cells[key].append(record)
    ordered = {key: sorted(found, key=lambda record: record["fold"]) for key, found in cells.items()}
    return tuple(_summarise_records(method, M, setting, found, p) for (method, M), found in ordered.items())


def _summarise_records(method: str, M: int | None, setting: Setting, records: Sequence[Record], p: int) -> BenchRow:
    done = [record for record in records if record["status"] == DONE]
    sets = [np.array(record["selected"], dtype=np.int64) for record in done if record["selected"] is not None]
    memory = [record["memory_bytes"] for record in done if record["memory_bytes"] is not None]
    notes = Counter(_record_note(record) for record in records)
    del notes[""]
    return BenchRow(
        method,
        M,
        setting.folds * setting.repeats,
        len(done),
        tuple(float(record["value"]) for record in done),
        _mean_or_nan([record["n_features"] for record in done]),
        _mean_or_nan([record["seconds"] for record in done]),
        _mean_or_nan([record["choice_seconds"] for record in done]),
        max(memory) if memory else None,
        tuple(float(record["C"]) for record in done),
        stability(sets, p) if sets else None,
        _selection_shares(sets),
        dict(Counter(record["proof"] for record in done if record["proof"])),
        dict(notes),
        setting.repeats,
        p,
    )


def _selection_shares(sets: Sequence[npt.NDArray[np.int64]]) -> tuple[tuple[int, float], ...]:
    if not sets:
        return ()
    ids, share = selection_shares(sets)
    return tuple(zip(ids.tolist(), share.tolist(), strict=True))


def _record_note(record: Record) -> str:
    """What a record says beside its numbers."""
    if record["status"] != DONE:
        return f"{record['status']}: {record['message']}" if record["message"] else str(record["status"])
    if record["stopped"]:
        return f"stopped by {record['stopped'].lower().replace('_', ' ')}"
    return str(record["message"])


def _mean_or_nan(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan
