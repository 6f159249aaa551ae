"""What the proof of a result says of every feature: it is in every selection as good as this one, in none, or open.

`mipfs.check.decided` derives it from the leaves of the certificate, as `mipfs verify` does once more; no node is
explored for it. It is derived when it is first asked for (a report, the JSON, `Result.decided`), since it takes a way
through the tree for what many runs are never asked.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.report.blocks import ReportBlock, Table
from mipfs.report.numbers import percent
from mipfs.report.visible import escape_invisible

if TYPE_CHECKING:
    from mipfs.check.decided import DecidedAtoms
    from mipfs.result.result import Result
    from mipfs.result.sidecar import ProofClaim

GAPS = 0.0, 0.01
"""Relative distances above the objective at which it stands in the JSON."""
SHOWN = 1e-9
"""A limit counts as larger by this share of itself here, so that a checker whose sums are rounded otherwise agrees."""
MOST_NUMBERS = 1 << 29
"""Nodes times features, and dual vectors times numbers of the data over 64, up to which it is derived: seconds."""
MOST_FEATURES = 1 << 20
"""Features up to which it is derived: a checker then needs memory for each, and none otherwise."""
MOST_NAMED = 200
"""Features up to which all are named: of more the longer one of `none` and `open` is "all others"."""
MOST_WORDS = 10
"""Names that a report writes out."""
UNKNOWN = (
    "the proof says nothing of single features: there is no certificate or no classifier, it is about products of "
    "features, or its tree is too large for that"
)


@dataclass(frozen=True)
class Decided:
    """What the leaves imply of the selections whose objective is at most U + gap·|U|, U the objective of the result.

    Attributes
    ----------
    gap : float, 0 for selections that are as good as the incumbent
    every : tuple of str, what all of them select
    none, open : tuple of str or None
        What none of them selects, and of what the proof does not say; None for "all others": of more than 200 features
        the longer one of the two is not listed.
    """

    gap: float
    every: tuple[str, ...]
    none: tuple[str, ...] | None
    open: tuple[str, ...] | None

    def of(self, name: str) -> str:
        """ "every", "none" or "open" for a feature (of groups, an atom) of the problem.

        A name that is no feature is what all others are.
        """
        for word in ("every", "none", "open"):
            if name in (getattr(self, word) or ()):
                return word
        return "none" if self.none is None else "open"

    @classmethod
    def found(cls, one: DecidedAtoms) -> Decided:
        """From positions to names."""
        every, none, rest = (tuple(one.names[int(j)] for j in part) for part in (one.every, one.none, one.open))
        if len(one.names) <= MOST_NAMED:
            return cls(one.gap, every, none, rest)
        return cls(one.gap, every, None, rest) if len(none) > len(rest) else cls(one.gap, every, none, None)


class DecisionMaker:
    """Derives what is decided of a result once it is asked for.

    Parameters
    ----------
    data : Instance, optional, the user's; held until the result is pickled
    stated : what a file states, in place of what would be derived
    """

    def __init__(self, data: Instance | None, stated: Sequence[Mapping[str, Any]] | None = None) -> None:
        self._data = data
        self._is_known = data is None
        self._known = None if stated is None else tuple(Decided(**one) for one in stated)
        self._cut = dict[str, "tuple[Decided, ...] | None"]()

    def known(self, result: Result) -> tuple[Decided, ...] | None:
        """At `GAPS`; None where nothing is."""
        if not self._is_known:
            self._known, self._is_known = self._derive_decided(result, result.claim, GAPS), True
        return self._known

    def at(self, result: Result, gap: float) -> Decided | None:
        """At a gap; None where that cannot be derived."""
        here = [one for one in self.known(result) or () if one.gap == gap]
        found = here or self._derive_decided(result, result.claim, (gap,))
        return found[0] if found else None

    def note(self, result: Result, cut: ProofClaim, sha256: str) -> None:
        """Derive what a certificate that was cut to a size implies: less."""
        self._cut[sha256] = self._derive_decided(result, cut, GAPS)

    def of_cut(self, sha256: str) -> DecisionMaker:
        """That of the result with the certificate of this digest."""
        other = DecisionMaker(None)
        other._known = self._cut.get(sha256)
        return other

    def alone(self, result: Result) -> DecisionMaker:
        """Without the data: what can be pickled."""
        other = DecisionMaker(None)
        other._known = self.known(result)
        return other

    def _derive_decided(
        self, result: Result, claim: ProofClaim | None, gaps: Sequence[float]
    ) -> tuple[Decided, ...] | None:
        if self._data is None or claim is None or not _is_decidable(result, claim, self._data):
            return None
        from mipfs.check.decided import decide_atoms
        from mipfs.check.rounding import refusal_reason

        bare = dataclasses.replace(result, deciding=None, trace=type(result.trace)())
        document, arrays, data = bare.document() | {"certificate": claim.entry()}, claim.arrays(), self._data
        found: list[DecidedAtoms] = []
        # A proof of which the checker says that nothing can be said (it is refused there) says nothing here.
        refusal_reason(lambda: found.extend(decide_atoms(document, arrays, data, gaps, SHOWN)))
        return tuple(map(Decided.found, found)) or None


def _is_decidable(result: Result, claim: ProofClaim, data: Instance) -> bool:
    """Whether there is something to decide, of a tree that is not too large."""
    made = (result.atoms or {}).get("made") or {}
    if not result.has_classifier or "kind" in made:
        return False
    proof: Any = claim.source
    tree, n_duals = (proof.tree, len(proof.parts)) if hasattr(proof, "parts") else (proof, len(proof.duals))
    count = max(result.n_features, tree.n_features)
    return bool(count <= MOST_FEATURES and tree.n_nodes * count + n_duals * data.n_samples * count / 64 <= MOST_NUMBERS)


def at(result: Result, gap: float) -> Decided:
    """What `Result.decided_within` returns.

    Raises
    ------
    UsageError
    """
    if not 0.0 <= gap < math.inf:
        raise UsageError(f"gap = {gap!r} must be 0 or more, for example 0.01")
    found = None if result.deciding is None else result.deciding.at(result, gap)
    if found is not None:
        return found
    known = result.decided
    if known is None:
        raise UsageError(UNKNOWN)
    there = ", ".join(f"{one.gap:g}" for one in known)
    raise UsageError(f"gap = {gap!r}: without the data at hand only {there} can be asked for; solve again for others")


def decided_blocks(result: Result) -> list[ReportBlock]:
    """The table of a report; nothing where nothing is known."""
    known = result.decided
    if known is None:
        return []
    rows = [
        (_describe_gap(one.gap), _list_names(one.every), _count_names(one.none), _count_names(one.open))
        for one in known
    ]
    title = "What the proof decides of the features"
    return [Table(("of selections", "in every one", "in none", "open"), rows, title=title, left=2)]


def _describe_gap(gap: float) -> str:
    return f"within {percent(gap)} of it" if gap else "as good as this one"


def _count_names(names: Sequence[str] | None) -> str:
    return "all others" if names is None else str(len(names))


def _list_names(names: Sequence[str]) -> str:
    few = 0 < len(names) <= MOST_WORDS
    return f"{len(names)}: {', '.join(map(escape_invisible, names))}" if few else str(len(names))
