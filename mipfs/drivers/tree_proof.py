"""What a tree of `branch` proves: nodes fixed, refuted and pruned, by which dual vectors and multipliers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.drivers.pieces import WITHOUT_ROWS, ProofPieces
from mipfs.inner.boolean_node import INSIDE, OUTSIDE, States, WarmStart
from mipfs.inner.propagation import PropagatedFixings
from mipfs.inner.rows_node import RowsRelaxation
from mipfs.kernels.merge import Shown
from mipfs.kernels.subtree import OPEN
from mipfs.kernels.units import FirstDuals, OpenNodes
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.tape import Tape
from mipfs.proof.duals import DualStore
from mipfs.proof.evidence import empty_proof
from mipfs.proof.multipliers import cancel_multipliers
from mipfs.proof.proof import REFUTED, Multipliers, Proof
from mipfs.proof.saved import proof_without_tree
from mipfs.result.result import CERTIFICATE_LIMIT
from mipfs.run.run import Run
from mipfs.selection.derived import ChvatalGomory

LITTER, LEAST_LITTER = 2, 1 << 24
"""A proof that nobody wants begins anew once it takes this multiple of what open nodes needed last, and more bytes."""

HELD_BYTES = 28
"""Of a place of the proof."""
WRITTEN_BYTES, CERTIFICATE_COPIES = 64, 1
"""Of a place of the proof, while it is trimmed and written; how often a certificate of the usual limit is held then."""


@dataclass(frozen=True, eq=False)
class OpenNode:
    """An open node.

    Attributes
    ----------
    bound : float, earned by a dual vector and by multipliers of the rows
    place, dual : its place in the proof, and the number of the dual vector
    states : (k,) FREE, INSIDE or OUTSIDE of the alive atoms
    warm : WarmStart, where its solve begins
    y : (r,) multipliers of the rows
    age : nodes above it that only stepped the multipliers, since the interior point found some
    why : what is done with it, of `mipfs.kernels.subtree`: it is explored (`OPEN`), solved by the interior point
        (`DEAR`), or explored, for it holds too much for an enumeration (`GIVEN_BACK`)
    atom, share : the split that made it, until its first solve; as of `mipfs.kernels.structures.NODE`
    """

    bound: float
    place: int
    dual: int
    states: States
    warm: WarmStart
    y: Array = field(default_factory=lambda: np.zeros(0))
    age: int = 0
    why: int = OPEN
    atom: int = 0
    share: float = 0.0


class TreeProof:
    """The proof of the nodes that are done.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    floor, closed_at : float, the least bound of the nodes that are done, and of those that more could be said of
    lost : bool, whether something was used that no multipliers show exactly: there is no certificate
    """

    relaxation: RowsRelaxation

    def __init__(self, run: Run) -> None:
        self.run = run
        self.lost = False
        self.derived: tuple[ChvatalGomory, ...] = ()
        self.begin_proof()

    def begin_proof(self) -> None:
        """Begin with an empty proof."""
        self.proof = empty_proof(self.run.problem, tape=Tape(self.run.room))
        self.floor = math.inf
        self.closed_at = math.inf
        self.prices = MultiplierStore(self.n_rows)
        self._needed = 0
        self._shown = dict[int, int]()
        self._rays = np.empty((2, 0), dtype=np.int64)

    @property
    def n_rows(self) -> int:
        """The rows that multipliers are about: the user's, those derived before, and those that were separated."""
        return len(self.run.problem.selection.rows) + len(self.derived)

    def strengthen(self, derived: Sequence[ChvatalGomory]) -> None:
        """Go on with more rows, behind the others; multipliers that are kept get zeros for them."""
        self.derived = (*self.derived, *derived)
        self.relaxation = self.relaxation.strengthen(self.derived)
        self.prices.widen(self.n_rows)
        self.proof.widen(self.n_rows)

    def screen(
        self,
        place: int,
        dual: int,
        y: Array,
        states: States,
        goes_in: Integers,
        goes_out: Integers,
        cutoff: float,
    ) -> tuple[int, States]:
        """Fix atoms whose other value the dual vector and prices rule out at a cutoff."""
        atoms = np.concatenate([goes_in, goes_out])
        if atoms.size == 0:
            return place, states
        place = self.proof.screen(place, dual, self.shown(y))
        self.done(cutoff)
        states = states.copy()
        states[goes_in], states[goes_out] = INSIDE, OUTSIDE
        return place, states

    def take(self, place: int, after: PropagatedFixings) -> tuple[int, States]:
        """Fix what propagation fixed: the other sides hold no selection, as the row behind each shows."""
        start = 0
        for cause, group in itertools.groupby(after.rays):
            stop = start + len(list(group))
            atoms = after.atoms[start:stop]
            values = (after.states[atoms] == INSIDE).astype(np.int8)
            ray = self.relaxation.propagation.ray(cause)
            place = self.proof.fix(place, self.relaxation.alive[atoms], values, REFUTED, ray)
            start = stop
        return place, after.states

    def refute(self, place: int, ray: Multipliers | None) -> None:
        """Close a node that holds no selection, by a Farkas ray; without one there is no certificate."""
        self.lost = self.lost or ray is None
        self.proof.refute(place, None if ray is None else self._pad_multipliers(ray))

    def _pad_multipliers(self, y: Multipliers) -> Multipliers:
        """Multipliers of whoever knew fewer rows, with zeros for the others."""
        return np.append(np.asarray(y, dtype=float), np.zeros(self.n_rows - len(y))) if len(y) < self.n_rows else y

    def first_duals(self, heads: npt.NDArray[Any]) -> FirstDuals:
        """The dual vectors that earned the bounds of some nodes."""
        assert isinstance(self.proof.duals, DualStore)
        return FirstDuals.of_store(*self.proof.duals.packed(heads["dual"]))

    def attach(self, pieces: ProofPieces) -> OpenNodes:
        """Enter pieces into the proof; returns the nodes that are open still."""
        shown = WITHOUT_ROWS
        if self.relaxation.propagation.count:
            first, others = pieces.heads["prices"].copy(), self.prices.add_all(pieces.prices)
            rays = self.rays(pieces.places["cause"], pieces.prices.shape[1])
            shown = Shown(first, others, self.numbers(first), self.numbers(others), rays)
        return pieces.merge(self.proof, self.relaxation.alive, shown)

    def close(self, node: OpenNode, bound: float, *, is_final: bool = False) -> None:
        """Prune a node, and keep its bound; `is_final` where nothing can lift it further."""
        self.proof.close(node.place, node.dual, self.shown(node.y))
        self.done(bound, is_final=is_final)

    def close_all(self, heads: npt.NDArray[Any]) -> None:
        """Prune open nodes with what they have."""
        if heads.size:
            self.proof.close_all(heads["place"], heads["dual"], self.numbers(heads["prices"]))
            self.done(float(heads["bound"].min()))

    def done(self, bound: float, *, is_final: bool = False) -> None:
        """Keep the bound of what is done."""
        self.floor = min(self.floor, bound)
        if not is_final:
            self.closed_at = min(self.closed_at, bound)

    def numbers(self, prices: Integers) -> Integers:
        """The proof's numbers of multipliers by those of `self.prices`; −1 where the rows play no part."""
        wanted, place = np.unique(prices, return_inverse=True)
        return np.array([self.number(k) for k in wanted.tolist()], dtype=np.int64)[place]

    def number(self, price: int) -> int:
        """The proof's number of multipliers by that of `self.prices`; −1 where the rows play no part."""
        if price < 0:
            return -1
        if price not in self._shown:
            shown = self.shown(self.prices[price])
            self._shown[price] = -1 if shown is None else self.proof.keep(shown)
        return self._shown[price]

    def rays(self, causes: Integers, count: int) -> Integers:
        """The proof's numbers of multipliers that show sides of rows to be broken, (2·count,): of those in `causes`.

        Sides are numbered as by whoever knows the first `count` rows: those of the lower ends, then those of the upper.
        """
        propagation = self.relaxation.propagation
        if self._rays.shape[1] < propagation.count:
            new = np.full((2, propagation.count - self._rays.shape[1]), -1)
            self._rays = np.concatenate([self._rays, new], axis=1)
        for side in np.unique(causes[causes >= 0]).tolist():
            end, row = divmod(side, count)
            if self._rays[end, row] < 0:
                ray = propagation.ray(propagation.cause(end * propagation.count + row))
                self._rays[end, row] = self.proof.keep(ray)
        return np.asarray(self._rays[:, :count].ravel())

    def shown(self, y: Array) -> Multipliers | None:
        """The multipliers as the proof keeps them; None where the rows play no part."""
        if not y.any():
            return None
        if len(self.run.problem.selection.rows.extra) == 0:
            return self._pad_multipliers(y)
        mended = cancel_multipliers(self.run.problem.selection, y)
        self.lost = self.lost or mended is None
        return mended

    def finish_proof(self, heads: npt.NDArray[Any]) -> Proof | None:
        """The proof of the bound: open nodes are closed with what they have; None when that was lost."""
        if self.run.options.certificate:
            self.proof.close_all(heads["place"], heads["dual"], self.numbers(heads["prices"]))
        # Of a list of near-optimal supports all leaves count.
        if not self.run.wants_all:
            self.proof.trim(self.run.bound)
        return None if self.lost or not self.run.options.certificate else self.proof

    @property
    def n_bytes(self) -> int:
        """About how many bytes the proof takes, in memory or in a file."""
        duals = self.proof.duals
        return HELD_BYTES * self.proof.n_nodes + (duals.n_bytes if isinstance(duals, DualStore) else 0)

    @property
    def to_write(self) -> float:
        """About how many bytes of memory writing the certificate and the state takes."""
        copies = WRITTEN_BYTES * self.proof.n_nodes if self.run.options.certificate else 0
        return copies + CERTIFICATE_COPIES * min(self.n_bytes, 1e6 * CERTIFICATE_LIMIT)

    @property
    def is_littered(self) -> bool:
        """Whether most of what is kept belongs to nodes that are done, and nobody wants a certificate."""
        return not self.run.options.certificate and self.n_bytes > LITTER * self._needed + LEAST_LITTER

    def moved(self, duals: Integers) -> Integers:
        """Begin the proof anew with open nodes 0, 1, … and the dual vectors of each, which get new numbers."""
        used, place = np.unique(duals, return_inverse=True)
        self.proof = proof_without_tree(self.proof, duals.size, used)
        self._needed = self.n_bytes
        self._shown = {}
        self._rays = np.empty((2, 0), dtype=np.int64)
        return np.asarray(place, dtype=np.int64)


class MultiplierStore:
    """Multipliers of the user's rows by number, each once; −1 stands for none.

    Parameters
    ----------
    rows : int, how many rows there are
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._held = list[Array]()
        self._known = dict[bytes, int]()

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, number: int) -> Array:
        return self._held[number] if number >= 0 else np.zeros(self.rows)

    def widen(self, rows: int) -> None:
        """Let them be about more rows: those that are new have the multiplier 0."""
        self.rows = rows
        self._held = [self._pad_multipliers(y) for y in self._held]
        self._known = {y.tobytes(): k for k, y in enumerate(self._held)}

    def _pad_multipliers(self, y: Array) -> Array:
        return np.append(y, np.zeros(self.rows - y.size)) if y.size < self.rows else y

    def add(self, y: Array) -> int:
        """The number of multipliers (rows,), or of fewer rows; −1 where all are 0."""
        if not y.any():
            return -1
        y = self._pad_multipliers(y)
        key = y.tobytes()
        if key not in self._known:
            self._known[key] = len(self._held)
            self._held.append(y.copy())
        return self._known[key]

    def add_all(self, ys: Array) -> Integers:
        """The numbers of multipliers (m, rows)."""
        return np.array([self.add(y) for y in ys], dtype=np.int64)

    def of(self, numbers: Integers) -> Array:
        """Multipliers (m, rows) by their numbers."""
        if not self.rows:
            return np.zeros((numbers.size, 0))
        return np.array([self[k] for k in numbers.tolist()]).reshape(numbers.size, self.rows)

    def only(self, numbers: Integers) -> Integers:
        """Forget all but these; returns their new numbers."""
        wanted, place = np.unique(numbers[numbers >= 0], return_inverse=True)
        held = [self._held[k] for k in wanted.tolist()]
        self._held, self._known = held, {y.tobytes(): k for k, y in enumerate(held)}
        found = np.full(numbers.size, -1)
        found[numbers >= 0] = place
        return found

    def array(self) -> Array:
        """All of them, (m, rows)."""
        return np.array(self._held).reshape(len(self._held), self.rows)
