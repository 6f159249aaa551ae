"""Problem: instance + loss + selection set + penalty, the one (P) of every driver.

    (P)  min over (sigma, z) in S of  c'sigma + d'z + v(sigma)
         v(sigma) = min over w, b of  ½ Σ w_j²/σ_j + L(y∘(Xw + b))

(Aytug 2015, FSP-M and FSP-λ, in perspective form.) Another regulariser r has Σ σ_j r(w_j/σ_j) in place of ½ Σ w_j²/σ_j.
z are the extra variables of the rows, whose costs d are those of `Extras`: mostly there are none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from mipfs.atoms import AtomColumns, Atoms, column_shares, merge_columns, same_data, split_squares
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups, words_whole
from mipfs.atoms.registry import make as make_atoms
from mipfs.data.block import Block
from mipfs.data.bounds import excluding_0, settle_bounds
from mipfs.data.checks import any_nonzero
from mipfs.data.classes import ClassWeight, ClassWeighted
from mipfs.data.instance import Instance, misspelling_hint
from mipfs.data.over_weights import RowEnds, WeightRow, power_above
from mipfs.data.over_weights import check_weight_rows as settled_rows
from mipfs.data.ranges import check_M, exponent_of, penalties
from mipfs.data.unit import column_of_largest, times
from mipfs.errors import UsageError
from mipfs.kernels.bound import U
from mipfs.losses import LOSSES, get_loss, loss_of
from mipfs.losses.evaluated import CompensatedWeights, evaluate_loss
from mipfs.measures import Measure
from mipfs.measures.asked import check_asked
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import check_fields, check_value, show_value
from mipfs.plumbing.registry import enter_offers
from mipfs.regularisers import get_regulariser
from mipfs.regularisers.base import Regulariser
from mipfs.regularisers.box import Bounds, Box, check_atoms
from mipfs.regularisers.ridge import RIDGE
from mipfs.selection.derived import ChvatalGomory, Family
from mipfs.selection.extra_costs import refuse_endless
from mipfs.selection.heredity import heredity_rows
from mipfs.selection.of_groups import compile_rows
from mipfs.selection.selection import Rows, Selection
from mipfs.svm.dyadic import SAMPLES_PER_SLICE, pieces

SMALLEST_REPORTED = 2.0**-1022
"""A value that is smaller in the user's unit is reported as 0: there only some of its digits are left."""


def report_value(value: float, margin: str, exponent: int = 0) -> float:
    """A value of the unit margin as it is reported: −1/(4v) for the ρ-form; of data in the unit 2^e 4^−e v.

    No ρ-form is one of data in another unit than the user's.
    """
    if exponent:
        found = times(value, -2 * exponent)
        return found if abs(found) >= SMALLEST_REPORTED else 0.0
    if margin == "unit" or math.isinf(value):
        return value
    return -0.25 / value if value > 0 else -math.inf


def _default_atoms(data: Instance) -> Atoms:
    """What is selected where nothing else is said: single features, or columns of words whole where the data ask it."""
    whole = words_whole(data) if data.select.words == "groups" else None
    return Features(data) if whole is None else whole


@dataclass(frozen=True, eq=False)
class Problem(ClassWeighted):
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
        Linear rows over the selection and extra variables, which may have costs (`Extras`); None takes the data's own.
    forced_in, forced_out : tuple of str or None
        Features that must (not) be selected; None takes the data's own.
    cardinality : bool, default True
        False drops the cardinality row even where the data asks for one.
    atoms : Atoms or str, optional
        What can be selected, or its name, as `mipfs.atoms.make` knows it: the single features by default (with
        ``[select] words = "groups"`` of the data a column of words whole), or `mipfs.atoms.groups.Groups`, or
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
    weight_bounds : mapping of feature name to (lower, upper), or None
        Bounds on the weights, on the user's scale; None or infinity for no end. ``(0, None)`` says that more of a
        feature can only raise the score of the class +1. Bounds that exclude 0, as ``(0.2, None)``, hold for a feature
        that is selected, and do not force it in. None takes the data's own, ``{}`` leaves these out.
    weight_rows : sequence of ({name: coefficient}, lower, upper), lower <= 0 <= upper, or None
        Rows over the weights, on the user's scale; None or infinity for no end. The intercept stands in none, and a
        feature that is not selected has the weight 0. A row holds within an allowance of about 2^−40 of its numbers,
        which the result states. None takes the data's own, ``()`` leaves these out. See `mipfs.weight_rows`.
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
    atoms: Atoms = None  # type: ignore[assignment]  # None is replaced by the features in __post_init__, a name by its atoms
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
    weight_rows: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.data, Instance):
            kind = type(self.data).__name__
            raise UsageError(f"the data is a {kind}; mipfs.read(FILE or data frame, label=...) makes an Instance of it")
        check_fields(
            self, "loss", "bias", "rows", "forced_in", "forced_out", "cardinality", "margin", "formulation", "derived"
        )
        enter_offers("mipfs.losses", self.loss, LOSSES)
        get_loss(self.loss)
        source = self._take_atoms()
        self._take_regulariser(source)
        self._take_weight_rows(source)
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
        if self.margin == "rho" and (not get_loss(self.loss).has_rho or self.has_penalty or self.has_extra_costs):
            raise UsageError("margin = 'rho' is an option of the squared hinge without penalties")
        if self.margin != "unit":
            self.require_near("margin = 'rho'")
        if self.has_extra_costs:
            self.require_near("costs of extra variables")
            refuse_endless(self.selection)
        if not (self.regulariser.is_ridge or self.weight_bounds):
            self.require_near(f"the regulariser {self.regulariser.name!r}")
        if self.margin == "rho" and not self.regulariser.is_homogeneous:
            are = "that are no signs are" if self.weight_bounds else "is"
            raise UsageError(f"margin = 'rho' is −1/(4v) where r(tw) = t²r(w); {self.term} {are} not so")
        self._check_weight_rows()
        self._check_excluding()
        if self.is_joint:
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

    @property
    def in_unit(self) -> Problem:
        """The problem as it is computed: its columns in the unit 2^exponent, C and penalties with them; mostly itself.

        Its values are 4^exponent times those of this one, its weights 2^exponent times; `report_value` undoes that.
        """
        return self._in_other_unit if self.exponent else self

    @cached_property
    def _in_other_unit(self) -> Problem:
        e = self.exponent
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
        given: Any = _default_atoms(self.data) if self.atoms is None else self.atoms
        if isinstance(given, str):
            given = make_atoms(given, self.data)
        if not isinstance(given, Atoms):
            raise UsageError(
                f"atoms = {show_value(given)} must be atoms of mipfs.atoms.make, or their name, like 'groups'"
            )
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
        """Settle the regulariser, which is one of columns as they are unless it is the ridge; bounds are one, too."""
        given = source.weight_bounds if self.weight_bounds is None else self.weight_bounds
        index = self.data.index if self.selects_features else source.index
        bounds = {} if given is None else settle_bounds(given, index, source.like, source.groups)
        object.__setattr__(self, "weight_bounds", bounds)
        found = get_regulariser(RIDGE if isinstance(self.regulariser, Bounds) else self.regulariser)
        check_atoms(found, bounds, self.atoms)
        found = Bounds.of(bounds, self.data.index, self.data.scale) if bounds else found
        found.check(self.data.n_features)
        object.__setattr__(self, "regulariser", found)

    def _take_weight_rows(self, source: Instance) -> None:
        """Settle the rows over the weights, which are about the columns of the data as they are."""
        given = source.weight_rows if self.weight_rows is None else self.weight_rows
        has_any = given is not None and not (isinstance(given, (list, tuple)) and not given)
        if has_any and self.data is not source:
            raise UsageError(f"weight_rows are about the columns of the data as they are, not {self.atoms.kind}")
        object.__setattr__(self, "weight_rows", settled_rows(given, self.data.index, self.data.like) if has_any else ())

    def on_part(self, part: Instance) -> Problem:
        """The problem on a part of its data (`Instance.part`), with its bounds and rows over the weights as these are.

        Parameters
        ----------
        part : Instance, made of this problem's data
        """
        if not self.weight_bounds and not self.weight_rows:
            return self.replace(data=part)
        bounds, rows = part.over_part(self.weight_bounds or {}, self.rows_over_weights)
        return self.replace(data=part, weight_bounds=bounds, weight_rows=rows)

    def _check_weight_rows(self) -> None:
        """Refuse rows over the weights beside what cannot be stated with them."""
        if not self.weight_rows:
            return
        self.require_near("weight_rows")
        if self.margin != "unit":
            raise UsageError("margin = 'rho' is −1/(4v) where the weights may be of any length; weight_rows bind that")
        if self.is_joint:
            raise UsageError("weight_rows go with losses that are a sum over the samples, not with 'structural'")
        if not self.data.block().is_stored:
            raise UsageError("weight_rows are for data in memory; give the file that the store was made of")
        named = {name for row in self.rows_over_weights for name in row.terms}
        if held := [name for name in excluding_0(self.weight_bounds or {}) if name in named]:
            raise UsageError(
                f"weight_rows name {held[0]!r}, whose weight_bounds exclude 0, and weights of 0 must keep every row; "
                "let 0 be between these bounds, or leave the feature out of the rows"
            )
        if self.atoms.kind not in ("features", "scaled features", "groups"):
            raise UsageError(f"weight_rows are about single features and groups of them, not {self.atoms.kind}")
        if not self.regulariser.is_ridge and self.atoms.kind == "scaled features":
            raise UsageError(f"weight_rows go with {self.term} on features and groups as they are, not scaled ones")

    def _check_excluding(self) -> None:
        """Refuse bounds that exclude 0 beside what they are not stated with."""
        if self.regulariser.is_monotone:
            return
        self.require_near("bounds on weights that exclude 0")
        if not self.data.block().is_stored:
            raise UsageError(
                "weight_bounds that exclude 0 are for data in memory; give the file that the store was made of"
            )

    @cached_property
    def excluding(self) -> npt.NDArray[np.bool_]:
        """The atoms (count,) whose bounds exclude 0: they have a weight wherever they are selected."""
        own = isinstance(self.regulariser, Box) and not self.regulariser.is_monotone and self.regulariser.excluding
        return np.broadcast_to(np.asarray(own, dtype=bool), (self.atoms.count,))  # costs no memory

    @property
    def rows_over_weights(self) -> tuple[WeightRow, ...]:
        """`weight_rows` as they were settled."""
        return cast("tuple[WeightRow, ...]", self.weight_rows)

    @cached_property
    def ends(self) -> RowEnds:
        """The ends of the rows over the weights, which are entries of a dual vector behind those of the samples."""
        rows = self.rows_over_weights
        return RowEnds(rows, self.data.index, self.data.scale, self._largest_weight() if rows else 0.0)

    def _largest_weight(self) -> float:
        """W, no less than the weight of any feature of a row at an optimum, on the user's scale.

        All weights 0 keep every row, so that Σ_j w_j²/(2λ_j²) ≤ L(0) there, of each of the copies of a column. Where
        bounds exclude 0 those features, which stand in no row, are at their ends nearest 0 instead.
        """
        whole = self.all_columns
        most, copies = np.zeros(self.data.n_features), np.zeros(self.data.n_features)
        np.maximum.at(most, whole.ids, whole.scale)
        np.add.at(copies, whole.ids, 1.0)
        named = self.data.columns_of(sorted({name for row in self.rows_over_weights for name in row.terms}))
        margins, term = self._margins_of_least()
        loss = term + float(get_loss(self.loss).value(margins, self.c_i))
        reach = np.sqrt(2.0 * loss * copies[named]) * most[named] / self.data.scale[named]
        return 2.0 * power_above(reach.tolist())

    def _margins_of_least(self) -> tuple[Array, float]:
        """Margins (n,) no larger than those of any selection whose weights are as near to 0 as they may be, b = 0; and
        no less than ½‖w‖² there."""
        if self.regulariser.is_monotone:
            return np.zeros(self.data.n_samples), 0.0
        low, high = self.regulariser.ends
        nearest_0 = np.broadcast_to(np.maximum(0.0, np.maximum(low, -np.asarray(high))), self.data.n_features)
        ids = np.flatnonzero(nearest_0)
        values = np.abs(self.data.block(ids).dense())
        return -(values @ nearest_0[ids]), 0.5 * float(np.square(nearest_0).sum())

    @property
    def dual_size(self) -> int:
        """How many numbers a dual vector has: one of every sample, and one of every end of a row over the weights."""
        return self.data.n_samples + self.ends.count

    @cached_property
    def dual_signs(self) -> Array:
        """y of the samples, and 1 of every end of a row over the weights, (dual_size,): v = α∘these."""
        return np.append(self.data.y, np.ones(self.ends.count)) if self.weight_rows else self.data.y

    @cached_property
    def all_columns(self) -> AtomColumns:
        """The columns of all atoms."""
        return self.atoms.columns(np.arange(self.atoms.count))

    @property
    def term(self) -> str:
        """What the term of a weight is called in messages."""
        return "weight bounds" if self.weight_bounds else f"the regulariser {self.regulariser.name!r}"

    def _rows_of(self, source: Instance) -> Rows:
        """The data's own rows."""
        if self.selects_features or source is not self.data:
            return (
                compile_rows(source.rows, source.index, source.groups) if source.rows else Rows.empty(self.atoms.count)
            )
        select = self.data.select
        named = {*select.forced_in, *select.forced_out, *(name for row in self.data.rows for name in row.terms)}
        if not named:
            return Rows.empty(self.atoms.count)
        inside = sorted(named - {*self.atoms.names}) if isinstance(self.atoms, Groups) else sorted(named)
        if inside:
            raise UsageError(
                f"the data's rows or forced features are about {inside[0]!r}, which is not among the atoms; "
                "name what is selected as a whole (a column of words by its own name), or select single features"
            )
        return Rows.of(self.data.rows, {name: k for k, name in enumerate(self.atoms.names)})

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
            changes["atoms"] = self.atoms.on(check_value("data", changes["data"], Instance))
        if "atoms" in changes and not (self.rows or self.data.rows):
            changes.setdefault("rows", None)  # which are over the new atoms
        unknown = [name for name in changes if name not in self.__dataclass_fields__]
        if unknown:
            known = [name for name, one in self.__dataclass_fields__.items() if one.init]
            raise UsageError(f"a problem has no parameter {unknown[0]!r}; {misspelling_hint(unknown[0], known)}")
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
        names, held = set(atoms.names), atoms.data.index
        if self.atoms.is_held:
            rows = self.selection.rows.of_features(ids)  # what is derived is given to the part
        else:
            rows = heredity_rows(atoms.names, self.atoms.parts(ids), self.atoms.heredity)
        assert names.issuperset(self.forced_in), "a forced atom is left out"
        return dataclasses.replace(
            self,
            data=atoms.data,
            atoms=atoms,
            regulariser=self.regulariser if self.weight_bounds else self.regulariser.at(ids),
            weight_bounds={name: ends for name, ends in (self.weight_bounds or {}).items() if name in held},
            weight_rows=self._rows_over(atoms.data),
            class_weight=self.class_weights_on(atoms.data),
            M=None if self.M is None else min(self.M, ids.size),
            lam=self.penalty[ids].tolist() if self.has_penalty else 0.0,
            rows=rows,
            forced_out=tuple(name for name in self.forced_out if name in names),
            cardinality=self.M is not None,
            formulation=None,
            derived=(),
        )

    def _rows_over(self, data: Instance) -> tuple[WeightRow, ...]:
        """The rows over the weights where all that is not in `data` has the weight 0."""
        kept = [
            dataclasses.replace(row, coefficients=tuple(one for one in row.coefficients if one[0] in data.index))
            for row in self.rows_over_weights
        ]
        return tuple(row for row in kept if row.coefficients)

    @property
    def is_joint(self) -> bool:
        """Whether its loss is one of all samples at once, a measure's, and no sum over them."""
        return not get_loss(self.loss).pointwise

    @property
    def is_one_master(self) -> bool:
        """Whether exact search is one master problem over shared cuts: structural loss, or extra variables that are
        whole numbers or have costs."""
        has_whole = self.rows is not None and bool(self.rows.extra.integer.any())
        return self.is_joint or has_whole or self.has_extra_costs

    @property
    def has_extra_costs(self) -> bool:
        """Whether some extra variable has a cost: values of the problem may then be negative."""
        return self.rows is not None and self.rows.extra.is_costed

    @property
    def has_constant(self) -> bool:
        """Whether its intercept is the weight of a constant column, which drivers get by `mipfs.widened`."""
        return self.is_joint and self.bias

    @property
    def has_kernels(self) -> bool:
        """Whether the compiled kernels know its loss and its regulariser; interior points take its place else."""
        known = get_loss(self.loss).kernels is not None and self.regulariser.has_kernels
        return known and not self.weight_rows

    @property
    def single_features(self) -> Features:
        """The atoms, of a problem that is about single features."""
        assert isinstance(self.atoms, Features)
        return self.atoms

    @property
    def groups(self) -> Groups:
        """The atoms, of a problem that is about groups."""
        assert isinstance(self.atoms, Groups)
        return self.atoms

    @cached_property
    def columns_alone(self) -> Features:
        """The columns of the data, one by one, whatever atoms are made of them."""
        if self.selects_features:
            return self.single_features
        return self.atoms.features if isinstance(self.atoms, Groups) else Features(self.data)

    def of_atoms(self, each: Array) -> Array:
        """Sums of one number for every column (p,) over the columns of every feature or group."""
        return each if self.selects_features else self.groups.sums(each)

    @property
    def selects_features(self) -> bool:
        """Whether the atoms are the single features."""
        return self.atoms.are_features

    @cached_property
    def _position_by_name(self) -> Mapping[str, int]:
        return self.data.index if self.selects_features else {name: g for g, name in enumerate(self.atoms.names)}

    def atoms_of(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """Positions of the named atoms; an unknown name is a `UsageError`."""
        for name in names:
            if name not in self._position_by_name:
                kind = "feature" if self.selects_features else "atom"
                raise UsageError(f"no {kind} is called {name!r}; {misspelling_hint(name, self.atoms.names)}")
        return np.array([self._position_by_name[name] for name in names], dtype=np.int64)

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
        found = check_value("family", family, Family)(self.selection.given)
        if not isinstance(found, Iterable):
            raise UsageError(f"the family of cuts returns {show_value(found)}; it yields derivations (ChvatalGomory)")
        return self.replace(derived=(*self.derived, *found))

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
        return any_nonzero(self.penalty)

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
        return report_value(value, self.margin, self.data.exponent)

    def unit_margin(self, value: float) -> float:
        """The value of the unit margin that is reported as `value`: the inverse of `report_value`."""
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
        return self._objective_and_error(selected, w, b)[0]

    def evaluate_above(self, selected: npt.ArrayLike, w: npt.ArrayLike, b: float) -> float:
        """The objective rounded up: no less than the exact one at these very numbers; `evaluate` has the parameters."""
        return sum(self._objective_and_error(selected, w, b))

    def _objective_and_error(self, selected: npt.ArrayLike, w: npt.ArrayLike, b: float) -> tuple[float, float]:
        """The objective, and what it may be too small by."""
        if self.exponent:
            moved = np.ldexp(np.asarray(w, dtype=float), self.exponent)
            value, error = self.in_unit._objective_and_error(selected, moved, b)
            return times(value, -2 * self.exponent), times(error, -2 * self.exponent)
        chosen = np.asarray(selected, dtype=np.int64)
        ids, weights = merge_columns(self.atoms.columns(chosen).ids, np.asarray(w, dtype=float))
        if self.weight_rows and not self.ends.hold(ids, weights / self.data.scale[ids]):
            return math.inf, 0.0
        return self.value_at(chosen, ids, CompensatedWeights.of(weights, float(b)))

    def value_at(
        self,
        chosen: npt.NDArray[np.int64],
        ids: npt.NDArray[np.int64],
        at: CompensatedWeights,
        sigma: Array | None = None,
        *,
        beside: bool = True,
    ) -> tuple[float, float]:
        """The objective at weights of the columns `ids` (k,), those of the atoms, all different, and what it may be
        too small by; `sigma` is that of the atoms chosen, by default 1. Without what is `beside` it is v(σ) alone:
        no penalties, and nothing of extra variables."""
        n = self.data.n_samples
        loss = loss_of(self)
        block, of = self.data.exactly(ids)
        spread = CompensatedWeights(at.w[of], at.b, at.w_rest[of], at.b_rest)
        part = np.ones(chosen.size) if sigma is None else sigma
        if self.regulariser.is_ridge:
            term = 0.5 * split_squares(self.atoms.columns(chosen), ids, at.w, part)
        else:
            room = part if self.selects_features else column_shares(self.atoms.columns(chosen), ids, part)
            term = float(self.regulariser.at(ids).perspective(at.w, room).sum())
        if self.has_constant:
            term += 0.5 * (at.b / self.intercept_scaling) ** 2
        own = float(self.penalty[chosen] @ part + term) if beside else float(term)
        size, costs = own, self.selection.extra_costs if beside else None
        if costs is not None:
            assert sigma is None, "what extra variables cost is known at selections"
            extra = costs.of(chosen)
            own += extra
            size += abs(extra)
        total = error = 0.0
        for piece in pieces(n) if not self.is_joint else [slice(None)]:
            values = block if n <= SAMPLES_PER_SLICE else Block(block.values[piece], block.center)
            value, off = evaluate_loss(loss, values, self.data.y[piece], self.c_i[piece], spread, abs(own))
            total = total + value
            error = error + off
        return own + total, error + 2.0 * (chosen.size + ids.size + 16) * U * (size + total)
