"""`select`: the columns of an instance, chosen by a method by its name, with a guarantee that was checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, cast

import numpy as np

from mipfs.data.bounds import excluding_0
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.linear import check_weight
from mipfs.lab.sketch.guarantee import Guarantee, measure_choice, promise_alone
from mipfs.lab.sketch.margin import HingeSolution, Interval, solve_svm
from mipfs.lab.sketch.picks import Picks, Progress
from mipfs.lab.sketch.source import Source
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import Declared, NumberRange, Seed, check_arguments
from mipfs.plumbing.machine import one_blas_thread
from mipfs.plumbing.registry import Registry, module_of
from mipfs.report.blocks import NamedValues, ReportBlock, Reported, Sentence, Table

METHODS = Registry(
    "method",
    {
        "bss": "mipfs.lab.sketch.bss",
        "leverage": "mipfs.lab.sketch.leverage",
        "approx-bss": "mipfs.lab.sketch.approximate_bss",
        "approx-leverage": "mipfs.lab.sketch.approximate_leverage",
        "rrqr": "mipfs.lab.sketch.rank_revealing_qr",
        "uniform": "mipfs.lab.sketch.uniform",
    },
)

BY_RANK = ("bss", "leverage")
"""The methods that are told by the singular directions, of which `rank` may ask for the leading ones."""
BY_PROJECTIONS = ("approx-bss", "approx-leverage")
"""The methods that project at random, onto `projections` rows."""
MOST_NUMBER = 2**31 - 1
"""The most picks, draws or directions that may be asked for: arrays of this length are made of them."""
Number = Annotated[int, NumberRange(1, MOST_NUMBER)]
Epsilon = Annotated[float, NumberRange(above=0, below=1)]
MOST_LISTED = 20
"""Columns that are listed in the report."""
PICKS_PER_RANK = 4
"""Picks by default, in ranks: q = ½."""


class SketchMethod(Protocol):
    """How a method takes columns."""

    def __call__(
        self, source: Source, r: int, *, seed: int, projections: int | None, progress: Progress | None
    ) -> Picks:
        """Take r columns, repeats included.

        Raises
        ------
        UsageError
            An r that the method cannot take.
        """


@dataclass(frozen=True, eq=False)
class Sketch(Reported):
    """Chosen columns.

    Attributes
    ----------
    method : str
    r : int, the picks or draws that were asked for
    ids : (k,) ascending positions of the chosen columns, k <= r
    names : sequence of k str
    rescaling : (k,) what each column is multiplied by, the diagonal of D: the guarantee is about the rescaled columns
    repeats : (k,) how often each was taken
    order : (draws,) positions in the order in which they were taken
    seed : int
    rank, projections : int or None, as they were asked for
    support : (s,) positions of the support vectors that they were chosen by, None where it was by all samples
    C, bias : of the SVM whose support vectors and margin are meant
    guarantee : Guarantee
    """

    method: str
    r: int
    ids: Integers
    names: Sequence[str]
    rescaling: Array
    repeats: Integers
    order: Integers
    seed: int
    rank: int | None
    projections: int | None
    support: Integers | None
    C: float
    bias: bool
    guarantee: Guarantee

    @property
    def supervised(self) -> bool:
        """Whether the columns were chosen by the support vectors alone."""
        return self.support is not None

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "schema": 1,
            "method": self.method,
            "r": self.r,
            "seed": self.seed,
            "rank": self.rank,
            "projections": self.projections,
            "supervised": self.supervised,
            "n_support": None if self.support is None else int(self.support.size),
            "params": {"C": self.C, "bias": self.bias},
            "selected": list(self.names),
            "positions": self.ids.tolist(),
            "rescaling": self.rescaling.tolist(),
            "repeats": self.repeats.tolist(),
            "order": self.order.tolist(),
            "guarantee": self.guarantee.document(),
        }

    def blocks(self) -> list[ReportBlock]:
        """The report of the command line."""
        return sketch_blocks(self)


def sketch_blocks(sketch: Sketch) -> list[ReportBlock]:
    """The parts of the report."""
    repeated = int(np.count_nonzero(sketch.repeats > 1))
    chosen = f"{sketch.ids.size} columns by {sketch.order.size} picks" + (f", {repeated} repeated" if repeated else "")
    rows = "all samples" if sketch.support is None else f"{sketch.support.size} support vectors, C = {sketch.C:g}"
    pairs = [("method", sketch.method), ("chosen by", rows), ("chosen", chosen)]
    if sketch.guarantee.rank:
        pairs.append(("rank", str(sketch.guarantee.rank)))
    heaviest = np.argsort(-sketch.rescaling, kind="stable")[:MOST_LISTED]
    lines = [(sketch.names[k], f"{sketch.repeats[k]}", f"{sketch.rescaling[k]:.4g}") for k in heaviest]
    hidden = sketch.ids.size - len(lines)
    blocks: list[ReportBlock] = [NamedValues(pairs), Table(("column", "taken", "times"), lines, "Chosen columns")]
    if hidden > 0:
        blocks.append(Sentence(f"  and {hidden} more, of no larger factors"))
    return [
        *blocks,
        _guarantee_table(sketch.guarantee, sketch.supervised),
        Sentence("\n" + _as_sentence(sketch.guarantee.about)),
        *(Sentence(f"Warning: {warning}.") for warning in sketch.guarantee.warnings),
    ]


def _guarantee_table(found: Guarantee, supervised: bool) -> Table:
    """The promise beside the measures; a dash where there is none."""
    promised = found.promised
    least, most = (None, None) if promised is None else (promised.low, promised.high)
    covered = (least, most) if found.is_whole else (None, None)
    by = "of the support vectors" if supervised else "of all samples"
    lines = [
        ("||I - V'DD'V||", "", "" if promised is None else f"{promised.epsilon:.4g}", _number_text(found.epsilon)),
        ("eigenvalues of V'DD'V", _number_text(least), _number_text(most), _interval_text(found.eigenvalues)),
        (f"squared margin {by}", *map(_number_text, covered), _interval_text(found.margin)),
    ]
    if supervised:
        lines.append(("squared margin of all samples", "-", "-", _interval_text(found.margin_all)))
        lines.append(("squared radius of all samples", "-", "-", _interval_text(found.radius)))
    else:
        lines.append(("squared radius of all samples", *map(_number_text, covered), _interval_text(found.radius)))
    return Table(("on the rescaled columns, times what it was", "promised from", "to", "measured"), lines, "Guarantee")


def _number_text(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _interval_text(found: Interval | None) -> str:
    if found is None:
        return "-"
    low, high = f"{found.low:.4g}", f"{found.high:.4g}"
    return low if low == high else f"{low} to {high}"


def _as_sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def available() -> tuple[str, ...]:
    """The names of the methods."""
    return tuple(METHODS)


def get_method(name: str) -> SketchMethod:
    """A method by its name.

    Raises
    ------
    UsageError
        No method of that name.
    """
    return cast(SketchMethod, module_of("method", name, METHODS).pick)


@check_arguments
def select(
    data: Instance,
    method: str = "bss",
    r: int | None = None,
    *,
    supervised: bool = False,
    rank: int | None = None,
    projections: int | None = None,
    C: float = 1.0,
    bias: bool = True,
    seed: int = 0,
    check: bool = True,
    epsilon: Epsilon | None = None,
    progress: Progress | None = None,
) -> Sketch:
    """Choose columns of the (scaled) data.

    Parameters
    ----------
    data : Instance
        Without labels (``training=False``, y all NaN) no margin is measured, and `supervised` is refused.
    method : {"bss", "leverage", "approx-bss", "approx-leverage", "rrqr", "uniform"}
        Single-set spectral sparsification, which is deterministic; draws by leverage scores; BSS on Gaussian
        projections of the rows; draws by approximate scores, without a decomposition of the matrix; the pivots of
        LAPACK's QR; draws without replacement.
    r : int >= 1
        Picks or draws; a column may be taken again by the first four, so that fewer different ones are chosen. BSS
        needs r above the rank. By default four times the rank, which leaves a quarter of the squared margin at least.
    supervised : bool
        Choose by the support vectors of the hinge SVM on all features only (Paul 2016, section 4.1).
    rank : int >= 1, optional
        Of the singular directions the leading ones only, by ARPACK where a sparse matrix has many more. The guarantee
        then says nothing of the others.
    projections : int >= 1, optional
        Of approx-bss, r/4 by default, and of approx-leverage, 32 by default.
    C, bias : float > 0, bool
        The hinge SVM whose support vectors and margin are meant.
    seed : int >= 0, of the draws and projections
    check : bool
        Whether the guarantee is measured: two to four SVMs, two enclosing balls and, for approx-bss, approx-leverage,
        rrqr and uniform, a singular value decomposition that the choice itself does without.
    epsilon : float in (0, 1), optional
        In place of r, of bss and leverage: the fewest picks that promise γ̃²/γ² and R̃²/R² in [1 − ε, 1 + ε], of
        leverage with probability 99%.
    progress : callable, optional
        Told how many picks of r are made.

    Returns
    -------
    Sketch

    Raises
    ------
    UsageError
        An unknown method, a parameter out of its range or one that the method does not have.
    DataError
        A matrix of zeros, or one that the method cannot hold in memory.

    Source: Paul 2016, Algorithms 1 and 2, sections 3 and 5; the guarantee is derived in `mipfs.lab.sketch.guarantee`.
    """
    how = Choice(method, r, rank, projections, C, bias, seed, check, epsilon)
    if not supervised:
        return choose(data, how, progress=progress)
    if np.any(np.isnan(data.y)):
        raise UsageError("supervised = True chooses by support vectors, and these data have no labels; give them")
    solved = solve_svm(data, C, bias)
    return choose(data, how, rows=solved.support, solved=solved, progress=progress)


@dataclass(frozen=True)
class Choice(Declared):
    """The parameters of `select` that say how to choose, validated."""

    method: str
    r: Number | None
    rank: Number | None
    projections: Number | None
    C: float
    bias: bool
    seed: Seed
    check: bool
    epsilon: Epsilon | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        get_method(self.method)
        check_weight(self.C)
        if self.projections is not None and self.method not in BY_PROJECTIONS:
            able = " or ".join(BY_PROJECTIONS)
            raise UsageError(f"projections = {self.projections} has no meaning for {self.method}; choose by {able}")
        if self.rank is not None and self.method not in BY_RANK:
            raise UsageError(f"rank = {self.rank} has no meaning for {self.method}; choose by {' or '.join(BY_RANK)}")
        if self.epsilon is not None and self.method not in BY_RANK:
            able = " or ".join(BY_RANK)
            raise UsageError(f"epsilon = {self.epsilon} is promised by no choice of {self.method}; choose by {able}")
        if self.epsilon is not None and self.r is not None:
            raise UsageError(f"r = {self.r} and epsilon = {self.epsilon}: r follows from epsilon; give one of them")
        known = self.method in BY_RANK or (self.projections is not None and self.method == "approx-bss")
        if self.r is None and not known:
            raise UsageError(f"{self.method} has no r of its own; give r, the number of picks")


def choose(
    data: Instance,
    how: Choice,
    *,
    rows: Integers | None = None,
    solved: HingeSolution | None = None,
    progress: Progress | None = None,
) -> Sketch:
    """Choose by some rows of the data (all where `rows` is None), and measure what came of it.

    Parameters
    ----------
    rows : (m,) ascending positions
    solved : HingeSolution, the SVM on all samples and features, where it was solved already
    """
    if data.weight_rows:
        raise UsageError("a sketch keeps no rows over the weights; leave those of the data out")
    if held := excluding_0(data.weight_bounds):
        raise UsageError(f"a sketch keeps no bounds on weights that exclude 0, as {held[0]!r} has; leave them out")
    with one_blas_thread():  # matrices of the rank's order are too small for more
        return _choose_columns(data, how, rows, solved, progress)


def _choose_columns(
    data: Instance, how: Choice, rows: Integers | None, solved: HingeSolution | None, progress: Progress | None
) -> Sketch:
    source = Source(data, rows, how.rank)
    r = _count(how, source)
    picks = get_method(how.method)(source, r, seed=how.seed, projections=how.projections, progress=progress)
    if how.check:
        guarantee = measure_choice(data, source, picks, solved, how.C, how.bias)
    else:
        guarantee = promise_alone(data, source, picks, source.basis if how.method in BY_RANK else None)
    return Sketch(
        how.method,
        r,
        picks.ids,
        [data.feature_names[j] for j in picks.ids.tolist()],
        np.sqrt(picks.weight),
        picks.repeats,
        picks.order,
        how.seed,
        how.rank,
        how.projections,
        rows,
        how.C,
        how.bias,
        guarantee,
    )


def _count(how: Choice, source: Source) -> int:
    """r, or what follows from ε or from the rank."""
    if how.r is not None:
        return int(how.r)
    if how.epsilon is None:
        return PICKS_PER_RANK * (how.projections or source.basis.rank)
    r: int = module_of("method", how.method, METHODS).picks_for(source.basis.rank, how.epsilon)
    if r > MOST_NUMBER:
        raise UsageError(f"epsilon = {how.epsilon} takes {r} picks (at most {MOST_NUMBER}); give a larger one")
    return r
