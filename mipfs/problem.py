"""Problem: instance + loss + selection set + penalty, the one (P) of every driver.

    (P)  min over sigma in S of  c'sigma + v(sigma),   v(sigma) = min over w, b of ½ Σ w_j²/σ_j + L(y∘(Xw + b))

(Aytug 2015, FSP-M and FSP-λ, in perspective form.) Another regulariser r has Σ σ_j r(w_j/σ_j) in place of ½ Σ w_j²/σ_j.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms import Atoms, merged, same_data, split_squares
from mipfs.atoms.features import Features
from mipfs.data.block import Block
from mipfs.data.bounds import settled
from mipfs.data.checks import anywhere
from mipfs.data.classes import ClassWeight, Weighted
from mipfs.data.instance import Instance, nearest
from mipfs.data.ranges import check_M, exponent_of, penalties
from mipfs.data.unit import column_of_largest, times
from mipfs.errors import UsageError
from mipfs.kernels.bound import U
from mipfs.losses import LOSSES, get_loss, loss_of
from mipfs.losses.evaluated import Weights, evaluated
from mipfs.measures.asked import check_asked
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import check_fields, checked, shown
from mipfs.plumbing.registry import entered
from mipfs.regularisers import get_regulariser
from mipfs.regularisers.base import Regulariser
from mipfs.regularisers.box import Bounds, check_atoms
from mipfs.regularisers.ridge import RIDGE
from mipfs.selection.derived import ChvatalGomory, Family
from mipfs.selection.heredity import implied
from mipfs.selection.selection import Rows, Selection
from mipfs.svm.dyadic import SAMPLES_PER_SLICE, pieces

if TYPE_CHECKING:
    from mipfs.measures import Measure


SMALLEST_REPORTED = 2.0**-1022
"""A value that is smaller in the user's unit is reported as 0: there only some of its digits are left."""


def reported(value: float, margin: str, exponent: int = 0) -> float:
    """A value of the unit margin as it is reported: −1/(4v) for the ρ-form; of data in the unit 2^e 4^−e v.

    No ρ-form is one of data in another unit than the user's.
    """
    if exponent:
        found = times(value, -2 * exponent)
        return found if abs(found) >= SMALLEST_REPORTED else 0.0
    if margin == "unit" or math.isinf(value):
        return value
    return -0.25 / value if value > 0 else -math.inf


@dataclass(frozen=True, eq=False)
class Problem(Weighted):
    """What is to be solved. Immutable; `replace` and `with_rows` return new problems.

    Parameters
    ----------
    data : Instance
    loss : {"hinge", "squared-hinge", "logistic", "structural"}
        "structural" is that of a `measure` of all samples at once; it has no sample weights.
    bias : bool, default True
        Whether the intercept is free (unpenalised); without it f(x) = w'x. With the structural loss it is the weight of
        a constant column, penalised as any weight, always selected and not counted in M (`mipfs.widened`).
    M : int or None
        At most M features; None takes the data's own ``[select] M``, or no cardinality row.
    C : float > 0
        Loss weight; sample i has C_i = C * class weight * sample_weight_i.
    lam : float, sequence of p floats, or mapping of name to float, >= 0
        Fixed cost of selecting a feature (lambda of Aytug's FSP-λ), on top of the data's ``[penalty]``.
    rows : Rows or None
        Linear rows over the selection; None takes the data's own.
    forced_in, forced_out : tuple of str or None
        Features that must (not) be selected; None takes the data's own.
    cardinality : bool, default True
        False drops the cardinality row even where the data asks for one.
    atoms : Atoms, optional
        What can be selected: the single features by default, or `mipfs.atoms.groups.Groups`, or
        `mipfs.atoms.tree.Tree`; columns that are computed (`mipfs.atoms.made.Made`, and
        `mipfs.atoms.additive.Additive`, functions of single features) are then the features of `data`,
        as are products of features (`mipfs.atoms.pairs.Pairs`), of which M is all that can be said.
        M, `lam`, rows and forced names are about those. They belong to the data that they were made on;
        ``atoms.on(data)`` makes the same ones on other data.
    margin : {"unit", "rho"}
        "rho" is Tan 2010 (1), min ½‖w‖² + (C/2) Σ max(0, ρ − m_i)² − ρ, for the squared hinge without
        penalties. Minimising over the length of (w, ρ) gives −1/(4v) of the unit margin's v, so it is solved
        as that and reported in its own (negative) values.
    measure : str, optional
        Of the structural loss: one of `mipfs.measures.MEASURES`.
    beta : float > 0, optional
        β of the measure "fbeta".
    k : int in 1 … n, optional
        k of "precision-at-k" and "recall-at-k"; by default the number of positives.
    intercept_scaling : float > 0, default 1
        Of the structural loss with a bias: the value of the constant column, on the scaled data.
    formulation : str, optional
        The name of the formulation as which it was declared (`mipfs.formulation.table`): it is solved by that one's
        driver where none is named.
    regulariser : Regulariser or str
        The term of a weight, ½w² by default: one of `mipfs.regularisers.REGULARISERS`, by its name or made by
        `mipfs.regularisers.get_regulariser`. Another one is about single features, as they are.
    weight_bounds : mapping of feature name to (lower, upper), lower <= 0 <= upper, or None
        Bounds on the weights, on the user's scale; None or infinity for no end. ``(0, None)`` says that more of a
        feature can only raise the score of the class +1. None takes the data's own, ``{}`` leaves these out.
    class_weight : mapping of label to float > 0, "balanced", or None
        Weights of the classes, 1 where none is given. "balanced" is n/(2 n_k), the samples counted by their weights.
        None takes the data's own, ``{}`` none. Not of the structural loss.
    derived : sequence of ChvatalGomory, rows that follow from the others (`strengthened`), no part of the problem

    Raises
    ------
    UsageError
        A parameter out of its range, or a combination that cannot be honoured.
    """

    data: Instance
    loss: str = "hinge"
    bias: bool = True
    M: int | None = None
    C: float = 1.0
    lam: float | Sequence[float] | Mapping[str, float] = 0.0
    rows: Rows | None = None
    forced_in: tuple[str, ...] | None = None
    forced_out: tuple[str, ...] | None = None
    cardinality: bool = True
    atoms: Atoms = None  # type: ignore[assignment]  # None is replaced by the features in __post_init__
    margin: str = "unit"
    measure: str | None = None
    beta: float | None = None
    k: int | None = None
    intercept_scaling: float = 1.0
    formulation: str | None = None
    regulariser: Regulariser = RIDGE
    weight_bounds: Mapping[str, Any] | None = None
    derived: Sequence[ChvatalGomory] = ()
    class_weight: ClassWeight | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.data, Instance):
            kind = type(self.data).__name__
            raise UsageError(f"the data is a {kind}; mipfs.read(FILE or data frame, label=...) makes an Instance of it")
        check_fields(
            self, "loss", "bias", "rows", "forced_in", "forced_out", "cardinality", "margin", "formulation", "derived"
        )
        entered("mipfs.losses", self.loss, LOSSES)
        get_loss(self.loss)
        source = self._take_atoms()
        self._take_regulariser(source)
        p = self.atoms.count
        what = "features" if self.selects_features else "atoms"
        self._take_class_weight(source)
        _ = self.exponent
        M = source.select.M if self.M is None else self.M
        if M is not None and self.cardinality:
            check_M(M, p, what)
        if source.penalty and not self.selects_features:
            raise UsageError("the data's penalties are about single features, not about atoms; give lam instead")
        rows = self._rows_of(source) if self.rows is None else self.rows
        if rows.matrix.shape[1] != p + len(rows.extra):
            raise UsageError(f"rows over {rows.matrix.shape[1]} columns, but there are {p} {what}")
        object.__setattr__(self, "M", int(M) if M is not None and self.cardinality else None)
        object.__setattr__(self, "C", float(self.C))
        object.__setattr__(self, "rows", rows)
        for name in ("forced_in", "forced_out"):
            given = getattr(self, name)
            object.__setattr__(self, name, tuple(getattr(source.select, name) if given is None else given))
        _ = self.selection, self.penalty
        if len(rows) or len(rows.extra):
            _ = self.selection.scaled
        if self.margin not in ("unit", "rho"):
            raise UsageError(f"margin = {self.margin!r} is unknown; it is 'unit' or 'rho'")
        if self.margin == "rho" and (not get_loss(self.loss).has_rho or self.has_penalty):
            raise UsageError("margin = 'rho' is an option of the squared hinge without penalties")
        if self.margin != "unit":
            self.require_near("margin = 'rho'")
        if not (self.regulariser.is_ridge or self.weight_bounds):
            self.require_near(f"the regulariser {self.regulariser.name!r}")
        if self.margin == "rho" and not self.regulariser.is_homogeneous:
            are = "that are no signs are" if self.weight_bounds else "is"
            raise UsageError(f"margin = 'rho' is −1/(4v) where r(tw) = t²r(w); {self.term} {are} not so")
        if self.loss == "structural":
            check_asked(self)
            _ = self.measured
        elif any(given is not None for given in (self.measure, self.beta, self.k)):
            raise UsageError(f"measure, beta and k belong to the loss 'structural', not to {self.loss!r}")

    def require_near(self, what: str) -> None:
        """Refuse what cannot be had of columns whose squares leave floating point."""
        if self.exponent:
            name = self.data.feature_names[column_of_largest(self.data.block().values)]
            raise UsageError(
                f"{what} cannot be had of columns of {self.data.largest:g}, as {name!r} is, whose squares leave "
                "floating point; scale the data ('standard' or 'unit'), or divide all columns by one number"
            )

    @cached_property
    def exponent(self) -> int:
        """e where drivers compute with columns in the unit 2^e (`in_unit`); 0 unless a square leaves 2^±500."""
        return exponent_of(self.C, self.sample_weight, self.data)

    @cached_property
    def in_unit(self) -> Problem:
        """The problem as it is computed: its columns in the unit 2^exponent, C and penalties with them; mostly itself.

        Its values are 4^exponent times those of this one, its weights 2^exponent times; `reported` undoes that.
        """
        e = self.exponent
        if not e:
            return self
        data = self.data.in_unit(e)
        lam = self.lam
        if isinstance(lam, Mapping):
            own: Any = {name: times(float(one), 2 * e) for name, one in lam.items()}
        else:
            own = np.ldexp(np.asarray(lam, dtype=float), 2 * e).tolist()
        return dataclasses.replace(
            self,
            data=data,
            atoms=self.atoms.on(data),
            C=times(self.C, 2 * e),
            lam=own,
            intercept_scaling=times(float(self.intercept_scaling), -e),
        )

    def __repr__(self) -> str:
        known = {"M": self.M, "C": self.C, "loss": self.loss, "measure": self.measure}
        stated = ", ".join(f"{name} = {value}" for name, value in known.items() if value is not None)
        rows = f", {len(self.rows)} rows" if self.rows is not None and len(self.rows) else ""
        return f"<Problem {stated}{rows}, on {self.data!r}>"

    def __getstate__(self) -> dict[str, Any]:
        """What was declared; what is compiled from it is compiled again in a copy."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def _take_atoms(self) -> Instance:
        """Settle atoms and data; whose rows and forced names hold: of functions of features those of the features."""
        given: Any = Features(self.data) if self.atoms is None else self.atoms
        if not isinstance(given, Atoms):
            raise UsageError(f"atoms = {shown(given)} must be atoms, as mipfs.atoms.make makes them")
        if not (same_data(given.raw, self.data) or same_data(given.data, self.data)):
            raise UsageError("the atoms were made on other data than the problem's; give atoms.on(data)")
        source = self.data if given.raw is given.data else given.raw
        atoms = given.settled
        if not same_data(atoms.data, self.data):
            object.__setattr__(self, "data", atoms.data)
        object.__setattr__(self, "atoms", atoms)
        if not atoms.is_held:
            self._check_searched(atoms)
        return source

    def _take_regulariser(self, source: Instance) -> None:
        """Settle the regulariser, which is one of single features unless it is the ridge; bounds are one, too."""
        given = source.weight_bounds if self.weight_bounds is None else self.weight_bounds
        index = self.data.index if self.selects_features else source.index
        bounds = {} if given is None else settled(given, index, source.like)
        object.__setattr__(self, "weight_bounds", bounds)
        found = get_regulariser(RIDGE if isinstance(self.regulariser, Bounds) else self.regulariser)
        check_atoms(found, bounds, self.atoms.kind)
        found = Bounds.of(bounds, self.data.index, self.data.scale) if bounds else found
        found.check(self.atoms.count)
        object.__setattr__(self, "regulariser", found)

    @property
    def term(self) -> str:
        """What the term of a weight is called in messages."""
        return "weight bounds" if self.weight_bounds else f"the regulariser {self.regulariser.name!r}"

    def _rows_of(self, source: Instance) -> Rows:
        """The data's own rows."""
        if self.selects_features or source is not self.data:
            return Rows.of(source.rows, source.index) if source.rows else Rows.empty(self.atoms.count)
        if self.data.rows or self.data.select.forced_in or self.data.select.forced_out:
            raise UsageError("the data's rows and forced features are about single features, not about atoms")
        return Rows.empty(self.atoms.count)

    def _check_searched(self, atoms: Atoms) -> None:
        """Nothing is said, one by one, of atoms that nobody holds all of."""
        zero = isinstance(self.lam, (int, float)) and self.lam == 0
        if not zero or (self.rows is not None and len(self.rows)) or (self.forced_in or self.forced_out):
            raise UsageError(
                f"{atoms.called} are too many for rows, penalties and forced ones; give M alone, or, where they take "
                "it, heredity='strong' or 'weak' to the atoms"
            )
        if not self.cardinality or (self.M is None and self.data.select.M is None):
            raise UsageError(f"{atoms.called} are selected by their number; give M")

    def replace(self, **changes: Any) -> Problem:
        """A copy with some parameters changed; the atoms are made again on other data (`Atoms.on`)."""
        if "data" in changes and "atoms" not in changes:
            changes["atoms"] = self.atoms.on(checked("data", changes["data"], Instance))
        unknown = [name for name in changes if name not in self.__dataclass_fields__]
        if unknown:
            known = [name for name, one in self.__dataclass_fields__.items() if one.init]
            raise UsageError(f"a problem has no parameter {unknown[0]!r}; {nearest(unknown[0], known)}")
        return dataclasses.replace(self, **changes)

    def restricted(self, ids: npt.NDArray[np.int64], atoms: Atoms | None = None) -> Problem:
        """The problem where only the atoms `ids` (k,), ascending, may be selected; the forced ones must be among them.

        `atoms` are these where they are at hand already, on data that v(σ) is the same of.
        v(σ), rows and penalties are those of this problem with σ = 0 elsewhere. Atoms that are no features become
        `mipfs.atoms.groups.Groups` of the same columns.
        """
        assert self.rows is not None
        assert self.forced_in is not None
        assert self.forced_out is not None
        atoms = self.atoms.restricted(ids) if atoms is None else atoms
        names = set(atoms.names)
        if self.atoms.is_held:
            rows = self.selection.rows.of_features(ids)  # what is derived is given to the part
        else:
            rows = implied(atoms.names, self.atoms.parts(ids), self.atoms.heredity)
        assert names.issuperset(self.forced_in), "a forced atom is left out"
        return dataclasses.replace(
            self,
            data=atoms.data,
            atoms=atoms,
            regulariser=self.regulariser if self.weight_bounds else self.regulariser.at(ids),
            weight_bounds={name: ends for name, ends in (self.weight_bounds or {}).items() if name in names},
            class_weight=self.class_weights_on(atoms.data),
            M=None if self.M is None else min(self.M, ids.size),
            lam=self.penalty[ids].tolist() if self.has_penalty else 0.0,
            rows=rows,
            forced_out=tuple(name for name in self.forced_out if name in names),
            cardinality=self.M is not None,
            formulation=None,
            derived=(),
        )

    @property
    def is_one_master(self) -> bool:
        """Whether exact search is one master problem over shared cuts: structural loss, or whole extra variables."""
        return self.loss == "structural" or (self.rows is not None and bool(self.rows.extra.integer.any()))

    @property
    def has_constant(self) -> bool:
        """Whether its intercept is the weight of a constant column, which drivers get by `mipfs.widened`."""
        return self.loss == "structural" and self.bias

    @property
    def has_kernels(self) -> bool:
        """Whether the compiled kernels know its loss and its regulariser; interior points take its place else."""
        return get_loss(self.loss).kernels is not None and self.regulariser.has_kernels

    @property
    def single_features(self) -> Features:
        """The atoms, of a problem that is about single features."""
        assert isinstance(self.atoms, Features)
        return self.atoms

    @property
    def selects_features(self) -> bool:
        """Whether the atoms are the single features."""
        return self.atoms.are_features

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return self.data.index if self.selects_features else {name: g for g, name in enumerate(self.atoms.names)}

    def atoms_of(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """Positions of the named atoms; an unknown name is a `UsageError`."""
        for name in names:
            if name not in self._places:
                kind = "feature" if self.selects_features else "atom"
                raise UsageError(f"no {kind} is called {name!r}; {nearest(name, self.atoms.names)}")
        return np.array([self._places[name] for name in names], dtype=np.int64)

    def with_rows(self, A: Any, lb: npt.ArrayLike, ub: npt.ArrayLike, names: Sequence[str] | None = None) -> Problem:
        """A copy with more rows ``lb <= A sigma <= ub``.

        Parameters
        ----------
        A : (r, p) array-like or sparse matrix
        lb, ub : (r,) array-like or scalar
        names : sequence of r str, optional

        Raises
        ------
        RowError
            A number that cannot be computed with, by the name of its row; parts that do not fit together.
        """
        assert self.rows is not None
        return self.replace(rows=self.rows.stack(Rows.given(A, lb, ub, names, self.atoms.count, len(self.rows))))

    def strengthened(self, family: Family) -> Problem:
        """A copy with the rows that a family of cuts derives from the set S of this one (`mipfs.selection.derived`)."""
        return self.replace(derived=(*self.derived, *checked("family", family, Family)(self.selection.given)))

    def named_rows(self) -> Rows:
        """The rows, with extra variables called by names that neither a feature nor another of them has."""
        assert self.rows is not None
        return self.rows.named_apart(self.atoms.names)

    @cached_property
    def selection(self) -> Selection:
        """The compiled set S."""
        assert self.rows is not None
        assert self.forced_in is not None
        assert self.forced_out is not None
        inside, outside = (tuple(self.atoms_of(names).tolist()) for names in (self.forced_in, self.forced_out))
        given = Selection(self.atoms.count, self.M, inside, outside, self.rows, self.atoms.names)
        return given.with_derived(self.derived)

    @cached_property
    def penalty(self) -> Array:
        """c of (P), shape (p,): `lam` plus the data's ``[penalty]``."""
        own = self.data.penalty
        if isinstance(self.lam, (int, float)) and self.lam == 0 and not own:
            return np.broadcast_to(0.0, (self.atoms.count,))  # costs no memory
        by_name = [(self.atoms_of(list(self.lam)), self.lam)] if isinstance(self.lam, Mapping) else []
        by_name += [(self.data.columns_of(list(own)), own)] if own else []
        return penalties(self.lam, self.atoms.names, by_name, self.exponent)

    @cached_property
    def has_penalty(self) -> bool:
        """Whether some atom costs something."""
        return anywhere(self.penalty)

    @cached_property
    def measured(self) -> Measure:
        """The measure of the structural loss on the data's labels."""
        from mipfs.measures import get_measure

        assert self.measure is not None
        return get_measure(self.measure, self.data.y, beta=self.beta, k=self.k)

    @cached_property
    def c_i(self) -> Array:
        """Loss weight of every sample, shape (n,)."""
        weights = self.sample_weight
        if weights.strides == (0,) and weights.size > SAMPLES_PER_SLICE:
            return np.broadcast_to(self.C, weights.shape)  # costs no memory
        return self.C * self.sample_weight

    def reported(self, value: float) -> float:
        """A value of the unit margin as this problem reports it: −1/(4v) for the ρ-form, and in the user's unit."""
        return reported(value, self.margin, self.data.exponent)

    def unit_margin(self, value: float) -> float:
        """The value of the unit margin that is reported as `value`: the inverse of `reported`."""
        if self.data.exponent:
            return times(value, 2 * self.data.exponent)
        if self.margin == "unit" or math.isinf(value):
            return value
        return -0.25 / value if value < 0 else math.inf

    def evaluate(self, selected: npt.ArrayLike, w: npt.ArrayLike, b: float) -> float:
        """The objective of (P) at a binary selection (unit margin), recomputed from the scaled data.

        Parameters
        ----------
        selected : positions of the atoms with sigma = 1
        w : (k,) weights on the scaled data, of the columns that these atoms use (`Atoms.columns`); a column that
            several of them use has the sum of its weights, which is split among them as costs least
        b : float, intercept on the scaled data
        """
        return self._evaluated(selected, w, b)[0]

    def evaluate_above(self, selected: npt.ArrayLike, w: npt.ArrayLike, b: float) -> float:
        """The objective rounded up: no less than the exact one at these very numbers; `evaluate` has the parameters."""
        return sum(self._evaluated(selected, w, b))

    def _evaluated(self, selected: npt.ArrayLike, w: npt.ArrayLike, b: float) -> tuple[float, float]:
        """The objective, and what it may be too small by."""
        if self.exponent:
            moved = np.ldexp(np.asarray(w, dtype=float), self.exponent)
            value, error = self.in_unit._evaluated(selected, moved, b)
            return times(value, -2 * self.exponent), times(error, -2 * self.exponent)
        chosen = np.asarray(selected, dtype=np.int64)
        ids, weights = merged(self.atoms.columns(chosen).ids, np.asarray(w, dtype=float))
        return self.value_at(chosen, ids, Weights.of(weights, float(b)))

    def value_at(
        self, chosen: npt.NDArray[np.int64], ids: npt.NDArray[np.int64], at: Weights, sigma: Array | None = None
    ) -> tuple[float, float]:
        """The objective at weights of the columns `ids` (k,), those of the atoms, all different, and what it may be
        too small by; `sigma` is that of the atoms chosen, by default 1."""
        n = self.data.n_samples
        loss = loss_of(self)
        block, of = self.data.exactly(ids)
        spread = Weights(at.w[of], at.b, at.w_rest[of], at.b_rest)
        part = np.ones(chosen.size) if sigma is None else sigma
        if self.regulariser.is_ridge:
            term = 0.5 * split_squares(self.atoms.columns(chosen), ids, at.w, part)
        else:
            term = float(self.regulariser.at(ids).perspective(at.w, part).sum())
        if self.has_constant:
            term += 0.5 * (at.b / self.intercept_scaling) ** 2
        beside = float(self.penalty[chosen] @ part + term)
        total = error = 0.0
        for piece in pieces(n) if self.loss != "structural" else [slice(None)]:
            values = block if n <= SAMPLES_PER_SLICE else Block(block.values[piece], block.center)
            value, off = evaluated(loss, values, self.data.y[piece], self.c_i[piece], spread, beside)
            total = total + value
            error = error + off
        return beside + total, error + 2.0 * (chosen.size + ids.size + 16) * U * (beside + total)
