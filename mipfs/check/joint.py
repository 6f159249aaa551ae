"""The checker's part for measures: structural losses, whose dual vectors are combinations of labellings.

Like all of the checker it shares no code with what found them; it knows the measures by their definitions and finds
the most violated labelling by a search of its own. α = whole·2^−q ≥ 0 and Σα ≤ C are integer identities,
v_i = (2/D) y_i Σ_k α_k counts_ki is off by 4 ulp at most, and Δ is rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mipfs.check import exact_joint
from mipfs.check.dual_vectors import Duals
from mipfs.check.measure import StatedMeasure
from mipfs.check.phrases import LABELLINGS
from mipfs.check.rounding import Array, Arrays, Document, Integers, U, below, number, require
from mipfs.check.statement import Statement
from mipfs.data.instance import Instance
from mipfs.data.unit import times

CONSTANTS, FAR_CONSTANTS = (1e-50, 1e50), (1e-300, 1e300)


class JointStatement(Statement):
    """(P) with a structural loss."""

    is_sum = False
    words = LABELLINGS
    has_rho = False

    def __init__(self, document: Document, data: Instance) -> None:
        super().__init__(document, data)
        require(bool(np.all(data.sample_weight == 1.0)), "a structural loss has no sample weights")
        given = document["params"].get("constant")
        require(given is not None or "constant" not in document["params"], "the value of the constant column is null")
        require(
            (given is not None) == self.bias, "the intercept of a structural loss is the weight of a constant column"
        )
        if given is not None:
            self.constant = number(given, "the value of the constant column")
            low, high = FAR_CONSTANTS if data.exponent else CONSTANTS
            inside = low <= times(self.constant, data.exponent) <= high
            require(inside, f"the constant column {given!r} is not from {low:g} to {high:g}")
        self.C = float(document["params"]["C"])
        self.measure = StatedMeasure(document["params"], data.y)

    def _stated(self) -> JointStatement:
        """It is itself what its loss is."""
        require(self.loss == "structural", f"no certificate is known for the loss {self.loss!r}")
        return self

    def target(self, rho: float) -> float:
        """0: what matters of a margin is itself."""
        return 0.0

    def loss_at(self, short: Array, off: Array) -> tuple[float, float, Array]:
        """L at margins −short (n,), each off by at most `off`; its error, and what of that is for every sample's `off`.

        The sum of |v_i| is at most 2, of a ranking 4.
        """
        worst, error = self.measure.worst(-self.data.y * short, float(off.max()))
        require(math.isfinite(worst), "a loss is beyond floating point")
        value = self.C * worst
        return value, self.C * error + 4 * U * value, 4.0 * self.C * off

    def exact_loss(self, whole: Sequence[int], exponent: int) -> tuple[float, float] | None:
        """L and its error at margins −whole_i·2^exponent, in rational arithmetic; None where too many values tie."""
        signs = (-self.data.y).astype(int).tolist()
        worst = exact_joint.worst(self.measure, [sign * one for sign, one in zip(signs, whole, strict=True)], exponent)
        if worst is None:
            return None
        value = self.C * float(worst)
        return value, 4 * U * value


class JointDuals(Duals):
    """Dual vectors over labellings: feasible as integers."""

    is_exact = False

    def __init__(self, statement: Statement, arrays: Arrays) -> None:
        assert isinstance(statement, JointStatement)
        super().__init__(statement, arrays)
        self.C = statement.C
        self.measure = statement.measure
        self.labellings = arrays["labelling"]
        require(
            self.labellings.ndim == 2 and self.labellings.shape[1] == self.n, "a labelling is not about these samples"
        )
        self.losses = self.measure.losses(self.labellings)

    def _check_stored(self) -> None:
        """The labellings of the dual vectors lie one behind the other, with a number each."""
        start, labels, whole = (self.arrays[name] for name in ("dual_start", "dual_label", "dual_whole"))
        require(labels.ndim == 1 and labels.shape == whole.shape, "the labellings do not have one number each")
        ends = start.size and start[0] == 0 and start[-1] == labels.size
        right = ends and np.all(start[1:] >= start[:-1])
        require(right, "the labellings of the dual vectors do not add up")

    def block(self, ids: Integers, q: Integers) -> tuple[Array, Array, Array]:
        """g(α), not too large by more than an ulp, v (B, n) up to 4 ulp, and Σ_i v_i."""
        g = np.empty(len(ids))
        counts = np.empty((len(ids), self.n))
        start, labels, whole = (self.arrays[name] for name in ("dual_start", "dual_label", "dual_whole"))
        largest = max(1, int(self.labellings.max(initial=0)))
        for row, d in enumerate(ids.tolist()):
            part = slice(int(start[d]), int(start[d + 1]))
            used = labels[part]
            k = whole[part].astype(np.int64)
            require(np.all((used >= 0) & (used < self.losses.size)), f"dual vector {d} uses an unknown labelling")
            require(np.all((k >= 0) & (k <= 2**53)), f"dual vector {d} is negative somewhere, or too wide")
            total = sum(k.tolist())
            require(total * largest < 2**62, f"dual vector {d} is too wide for exact sums")
            inside = total <= math.floor(math.ldexp(self.C, int(q[row])))
            require(inside, f"dual vector {d} leaves its simplex: the sum of alpha exceeds C")
            exact = np.zeros(self.n, dtype=np.int64)
            for whole_k, label in zip(k, used, strict=True):  # one after the other: they may be long
                exact += whole_k * self.labellings[label].astype(np.int64)
            counts[row] = np.ldexp(exact.astype(float), -int(q[row]))
            g[row] = math.fsum(np.ldexp(k.astype(float), -int(q[row])) * self.losses[used])
            if self.statement.constant is not None:
                least = Fraction(math.nextafter(g[row], -math.inf))  # an ulp of what g is before
                g[row] = below(least - self._of_intercept(exact, int(q[row])))
        v = self.statement.data.y * (counts * (2.0 / self.measure.D))
        return g, v, v.sum(axis=1)

    def _of_intercept(self, counts: Integers, q: int) -> Fraction:
        """½ κ² (Σ_i v_i)², exactly: what b of cost ½ (b/κ)² takes off g, v_i = (2/D) y_i counts_i 2^−q."""
        assert self.statement.constant is not None
        signs = self.statement.data.y.astype(np.int64)
        total = Fraction(sum((signs * counts).tolist())) * 2 / Fraction(self.measure.D) / Fraction(2) ** q
        return (Fraction(self.statement.constant) * total) ** 2 / 2


JOINT = (JointStatement, JointDuals)
"""How `mipfs.check.tree.check` reads a result with a structural loss."""
