"""Instance: the validated data of one problem (X, y, names, costs, groups, rows, bags)."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data import checks, matrix, unit
from mipfs.data.block import Block
from mipfs.data.blocked import Blocked
from mipfs.data.bounds import settle_bounds as bounds_of
from mipfs.data.classes import ClassWeight, of_classes
from mipfs.data.frames import as_frame, names_of
from mipfs.data.names import DefaultedValues, NumberedIndex, Unstored
from mipfs.data.over_weights import WeightRow
from mipfs.data.over_weights import check_weight_rows as rows_over
from mipfs.data.recipe import MISSING_LEVEL, Prepared
from mipfs.data.rules import FIRST_RULES, RULES, STATED_RULES, WEIGHED_RULES, scaling_of
from mipfs.data.split import Split
from mipfs.data.table_reading import TableReading
from mipfs.errors import DataError, UsageError
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import check_arguments, check_fields, check_value
from mipfs.plumbing.digest import digest
from mipfs.plumbing.registry import suggest_name

Scaling = Literal["none", "standard", "unit"]
SCALINGS: tuple[Scaling, ...] = ("none", "standard", "unit")


@dataclass(frozen=True)
class Row:
    """One linear row ``lb <= sum of terms <= ub`` over features (and extra variables), by name.

    Parameters
    ----------
    name : str
        How messages refer to it.
    terms : mapping of str to float
        Coefficient of each feature or extra variable.
    lb, ub : float
        Bounds; -inf and inf when absent.
    origin : str
        Where it was written, e.g. ``wdbc.toml`` or ``rows.lp:3``.
    """

    name: str
    terms: Mapping[str, float]
    lb: float
    ub: float
    origin: str = ""

    def __post_init__(self) -> None:
        check_fields(self, "name", "terms", "origin")

    @classmethod
    def forced(cls, what: str, group: str, origin: str = "") -> Row:
        """What ``forced_in`` or ``forced_out`` says of a group of features: some of them is selected, or none is."""
        lb, ub = {"forced_in": (1.0, math.inf), "forced_out": (-math.inf, 0.0)}[what]
        return cls(f"{what}[{group}]", {group: 1.0}, lb, ub, origin)


@dataclass(frozen=True)
class SelectDefaults:
    """The part of ``[select]`` that is no row: ``M``, the forced features by name, and what a column of words counts.

    `words` is "features", every word of a column by itself, or "groups": a column of words is selected whole.
    """

    M: int | None = None
    forced_in: tuple[str, ...] = ()
    forced_out: tuple[str, ...] = ()
    words: str = "features"


@dataclass(frozen=True)
class Labels:
    """What the two classes were called in the user's data: text, numbers or booleans, which a result's JSON holds.

    Raises
    ------
    DataError
        A label of another kind, such as a date.
    """

    negative: Any = -1
    positive: Any = 1

    def __post_init__(self) -> None:
        checks.label(self.negative)
        checks.label(self.positive)

    @property
    def is_rest(self) -> bool:
        """Whether the negative class is all that is not the positive one, as where one of several is told apart."""
        return bool(self.negative == f"not {self.positive}")

    def of(self, sign: npt.ArrayLike) -> npt.NDArray[Any]:
        """Map values to the user's labels: positive where ``sign > 0``."""
        return np.where(np.asarray(sign) > 0, np.asarray(self.positive), np.asarray(self.negative))


@dataclass(frozen=True, eq=False)
class Instance:
    """Validated data. Build it with `mipfs.read` or `Instance.from_arrays`.

    Attributes
    ----------
    X : (n, p) ndarray (Fortran order) or csc_array of float64, or `mipfs.data.blocked.Blocked`
        The scaled data; of a CSC matrix columns with implicit zeros are not centred (see `center`).
    y : (n,) ndarray of {-1.0, +1.0}
    feature_names : sequence of p str, unique
    center : (p,) ndarray
        Column j stands for ``X[:, j] - center[j]`` (implicit centring; zero for dense data), and exactly for
        fl(fl(x − shift)/scale), which `exactly` has.
    shift, scale : (p,) ndarray
        user's value = scaled value * scale + shift.
    labels : Labels
    sample_weight : (n,) ndarray > 0; C_i = C * sample_weight_i
    cost : mapping of name to float >= 0, for every feature (used by budgets)
    penalty : mapping of name to float >= 0 (the fixed cost c of selecting it), given ones only
    groups : mapping of name to tuple of feature names
    rows : tuple of Row, from the .toml beside the data
    select : SelectDefaults
    weight_bounds : mapping of name to (lower, upper), of the weights on the user's scale (`mipfs.data.bounds`)
    weight_rows : tuple of WeightRow, rows over the weights on the user's scale (`mipfs.data.over_weights`)
    bags : (n,) ndarray of int, or None
    source : str, the file it was read from
    scaling : {"none", "standard", "unit"}
    values_sha256 : str, digest of the user's values where `X` holds scaled ones (see `sha256`)
    label : str, or None, the column of the file that the labels stood in, where it has a name
    words : mapping of a column of words to its distinct words; feature ``column=word`` is one of them
    constant : float, the value of a last column that stands for the intercept (`mipfs.data.constant`); 0 without one
    bare_sha256 : str, digest of the data without that column
    prepared : Prepared or None, what was done to a raw table: columns left out, missing values that were filled in
    reading : TableReading or None, which columns of words of a table are no features, and why; None of other data
    class_weight : mapping of label to weight, "balanced" or None, that the description asks for (`mipfs.data.classes`)
    unscaled : csc_array of the user's values, where implicit zeros are centred, or None
    rules : int, the version of the rules by which the data was read and the columns are scaled (`mipfs.data.rules`)
    drawn : ((n,) ndarray of int, (p,) ndarray) or None
        Of a `part` the positions of its samples in the whole, and the whole's `scale`: the user's columns of a part are
        the scaled ones of the whole.
    exponent : int, e where all columns, and `scale` with them, are in the unit 2^e (`in_unit`); 0 of data as it is read
    counts : (n,) ndarray or None, how often samples count in means and deviations (`matrix.uneven_weights`): by the
    weights of
        samples alone, whatever a class weighs; None where all count the same
    split : Split or None, which samples belong together, so that no fold or draw takes them apart
    """

    DECLARED_AS: ClassVar[str] = "an Instance: mipfs.read(FILE or data frame, label=...) makes one"
    """What a parameter that is to be one must be, for messages."""

    X: Any
    y: Array
    feature_names: Sequence[str]
    center: Array
    shift: Array
    scale: Array
    labels: Labels = field(default_factory=Labels)
    sample_weight: Array = field(default_factory=lambda: np.empty(0))
    cost: Mapping[str, float] = field(default_factory=dict)
    penalty: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    select: SelectDefaults = field(default_factory=SelectDefaults)
    bags: npt.NDArray[np.int64] | None = None
    source: str = ""
    scaling: Scaling = "none"
    values_sha256: str = ""
    label: str | None = None
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    constant: float = 0.0
    bare_sha256: str = ""
    weight_bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    prepared: Prepared | None = None
    reading: TableReading | None = None
    class_weight: ClassWeight | None = None
    unscaled: Any = None
    rules: int = RULES
    exponent: int = 0
    weight_rows: tuple[WeightRow, ...] = ()
    counts: Array | None = None
    drawn: tuple[npt.NDArray[np.int64], Array] | None = None
    split: Split | None = None

    def __repr__(self) -> str:
        about = f"{self.n_samples} samples, {self.n_features} features, scale {self.scaling}"
        return f"<Instance {self.source}{': ' if self.source else ''}{about}>"

    @property
    def n_samples(self) -> int:
        """The number n of samples."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """The number p of features."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether only the entries that are not zero are stored."""
        return bool(sparse.issparse(self.X)) or (isinstance(self.X, Blocked) and self.X.is_sparse)

    @property
    def is_in_files(self) -> bool:
        """Whether the columns are those of a column store."""
        return isinstance(self.X, Blocked)

    def block(self, ids: npt.NDArray[np.int64] | None = None) -> Block:
        """The columns `ids` (k,), copied; by default, and where these are all as they stand, all without a copy."""
        whole = Block(self.X, self.center)
        if ids is None or (
            whole.is_stored and ids.size == self.n_features and np.array_equal(ids, np.arange(ids.size))
        ):
            return whole
        return Block(self.X[:, ids], self.center[ids])

    def exactly(self, ids: npt.NDArray[np.int64]) -> tuple[Block, npt.NDArray[np.int64]]:
        """The columns `ids` (k,), and after them what was rounded off some of these.

        Returns
        -------
        block : Block (n, m), m ≥ k
        of : (m,) which of `ids` a column belongs to; the sum of those of one is fl(fl(x − shift)/scale), exactly
        """
        block = self.block(ids)
        own = np.arange(ids.size)
        centred = np.flatnonzero(block.center)
        if not centred.size or self.rules == FIRST_RULES:
            return block, own
        at = ids[centred]
        user = self.unscaled_of(at)
        if user is None:
            return block, own
        Z = sparse.csc_array(block.values[:, centred])
        rest = matrix.scaling_remainders(user, Z, block.center[centred], self.shift[at], self.scale[at])
        lossy = np.flatnonzero(abs(rest).max(axis=0).toarray())
        values = sparse.csc_array(sparse.hstack([block.values, rest[:, lossy]], format="csc"))
        return Block(values, np.append(block.center, np.zeros(lossy.size))), np.append(own, centred[lossy])

    def stated(self, ids: npt.NDArray[np.int64]) -> Array:
        """fl(fl(x − shift)/scale) of the columns `ids`, (n, k) in Fortran order, however they are stored."""
        user = self.unscaled_of(ids) if self.rules != FIRST_RULES and np.any(self.center[ids]) else None
        if user is None:
            return self.block(ids).dense()
        return np.asfortranarray(matrix.scaled_user_values(user.toarray(order="F"), self.shift[ids], self.scale[ids]))

    def unscaled_of(self, ids: npt.NDArray[np.int64]) -> Any:
        """Sparse columns as the user has them; None where that is not known."""
        if isinstance(self.X, Blocked):
            return self.X.as_stored(ids) if self.is_sparse else None
        return None if self.unscaled is None else self.unscaled[:, ids]

    def by_rules(self, rules: int) -> Instance:
        """The data scaled by a version of the rules: its own, or one of which its user's values are at hand."""
        one, other = scaling_of(self.rules), scaling_of(rules)
        weighs = self.counts is not None and WEIGHED_RULES in (one, other)
        is_moved = weighs or (self.is_sparse and bool(np.any(self.shift)))
        if one == other or self.scaling != "standard" or not is_moved:
            return replace(self, rules=rules)
        counts = self.counts if rules >= WEIGHED_RULES else None
        if isinstance(self.X, Blocked):
            X, center, shift, scale = self.X.by_rules(rules, counts)
        elif self.unscaled is None:
            return self
        elif rules == FIRST_RULES:
            X, center, shift, scale = matrix.first_scaled(self.unscaled, self.scaling)
        else:
            X, center, shift, scale = matrix.scale_columns(self.unscaled, self.scaling, counts)
        return replace(self, X=X, center=center, shift=shift, scale=scale, rules=rules)

    def with_scaling(self, shift: Array, scale: Array) -> Instance:
        """Sparse data by another shift and scale (p,), which differ from its own by the rounding of sums."""
        X, center = matrix.place_columns(self.unscaled, shift, scale)
        return replace(self, X=X, center=center, shift=shift, scale=scale)

    def only(self, ids: npt.NDArray[np.int64]) -> Instance:
        """The features `ids` (k,) alone, on the same scale; costs, groups, rows and defaults are left out."""
        values = self.block(ids).values
        return self.over(
            values if sparse.issparse(values) else np.asfortranarray(values),
            [self.feature_names[j] for j in ids],
            center=self.center[ids],
            shift=self.shift[ids],
            scale=self.scale[ids],
            values_sha256="",
            unscaled=self.unscaled_of(ids),
        )

    def over(self, X: Any, names: Sequence[str], **changes: Any) -> Instance:
        """The samples with other columns, without what was said of the old ones by name."""
        bare: dict[str, Any] = {"cost": {}, "penalty": {}, "groups": {}, "words": {}, "rows": ()}
        bare |= {
            "weight_rows": (),
            "weight_bounds": {},
            "constant": 0.0,
            "prepared": None,
            "reading": None,
            "unscaled": None,
        }
        return replace(self, X=X, feature_names=names, select=SelectDefaults(), **(bare | changes))

    def part(self, rows: npt.NDArray[np.int64]) -> Instance:
        """Some samples, scaled anew as the whole is: scaling twice is scaling once, so it starts from scaled columns.

        Missing values of a raw table are filled in anew, by what these samples say. Costs, groups and rows over the
        features are left out.
        """
        found = Instance.from_arrays(
            self.refill(rows).X[rows],
            self.y[rows],
            feature_names=self.feature_names,
            scale=self.scaling,
            sample_weight=self.sample_weight[rows],
            labels=self.labels,
            penalty=self.penalty,
            counts=np.ones(rows.size) if self.counts is None else self.counts[rows],
            rules=self.rules,
        )
        found = replace(found, drawn=(rows, self.scale), split=None if self.split is None else self.split.part(rows))
        bounds, over = found.over_part(self.weight_bounds, self.weight_rows)
        found = replace(found, weight_bounds=bounds, weight_rows=over)
        return found if self.prepared is None else replace(found, prepared=self.prepared.part(rows))

    def over_part(
        self, bounds: Mapping[str, tuple[float, float]], rows: Sequence[WeightRow]
    ) -> tuple[dict[str, tuple[float, float]], tuple[WeightRow, ...]]:
        """Bounds and rows over the weights that are stated on the whole, as this part of it has them.

        A weight of the user's is one here divided by the whole's scale. Parity is of the samples of the part.
        """
        assert self.drawn is not None, "no part of other data"
        samples, whole = self.drawn
        scale = {name: float(whole[self.index[name]]) for name in {*bounds, *(n for row in rows for n in row.terms)}}
        moved = {name: (low * scale[name], high * scale[name]) for name, (low, high) in bounds.items()}
        found = (row.on(self, samples, scale) for row in rows)
        return moved, tuple(row for row in found if row.coefficients)

    def refill(self, rows: npt.NDArray[np.int64]) -> Instance:
        """The data with missing values of a raw table filled in by what the samples `rows` alone say; same scale."""
        if self.prepared is None:
            return self
        if not self.block().is_stored and any(one.rows.size for one in self.prepared.filled):
            raise UsageError(
                f"{self.source or 'the data'}: missing values of a column store are filled in for good, and folds fill "
                "them in anew; give the raw table, or leave the folds out"
            )
        X = self.prepared.refill(self.X, self.index, rows)
        return self if X is self.X else replace(self, X=X, values_sha256="", unscaled=None)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Position of each feature by name."""
        if isinstance(self.feature_names, Unstored):
            return NumberedIndex(self.feature_names)
        return {name: j for j, name in enumerate(self.feature_names)}

    def columns_of(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """Positions of the named features; an unknown name is a `UsageError`."""
        unknown = [name for name in names if name not in self.index]
        if unknown:
            raise UsageError(f"no feature is called {unknown[0]!r}; {misspelling_hint(unknown[0], self.feature_names)}")
        return np.array([self.index[name] for name in names], dtype=np.int64)

    def cost_of(self, names: Collection[str]) -> float:
        """What some features cost together: a group, or a column of words, once for whichever of its features."""
        whole = {group: members for group, members in self.groups.items() if group not in self.index}
        priced = self.given_costs.items()
        return math.fsum(value for name, value in priced if not {name, *whole.get(name, ())}.isdisjoint(names))

    @property
    def given_costs(self) -> Mapping[str, float]:
        """The costs as they were given, by the names of features and groups."""
        return getattr(self.cost, "given", self.cost)

    @classmethod
    @check_arguments
    def from_arrays(
        cls,
        X: Any,
        y: npt.ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        scale: Scaling = "none",
        sample_weight: npt.ArrayLike | None = None,
        labels: Labels | None = None,
        cost: Mapping[str, float] | None = None,
        penalty: Mapping[str, float] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        rows: Sequence[Row] = (),
        select: SelectDefaults | None = None,
        bags: npt.ArrayLike | None = None,
        source: str = "",
        training: bool = True,
        label: str | None = None,
        words: Mapping[str, tuple[str, ...]] | None = None,
        weight_bounds: Mapping[str, Any] | None = None,
        weight_rows: Sequence[Any] = (),
        counts: npt.ArrayLike | None = None,
        rules: int = RULES,
    ) -> Instance:
        """Validate arrays and scale them; see `Instance` for the meaning of the parameters.

        Parameters
        ----------
        X : (n, p) array-like, data frame or SciPy sparse matrix of finite values
            Kept without a copy where nothing has to be changed.
        y : (n,) array-like of {-1, +1}
        feature_names : sequence of p str, optional
            Default: the columns of a data frame, otherwise x1 ... xp.
        source : str
            The file, named in the messages.
        training : bool, default True
            False: data to predict or evaluate, which may hold one class only, and NaN for an unknown label.
        counts : (n,) array-like > 0, optional
            How often each sample counts in means and deviations under ``scale="standard"``. Default: `sample_weight`.
        rules : int, the version of the rules by which columns are scaled: before 5 every sample counts once

        Raises
        ------
        DataError
            Shapes that disagree, no rows or columns, NaN or infinity, labels other than -1 and +1,
            one class only, duplicate names, weights that are not positive.
        UsageError
            An unknown scaling, or a name that is no feature.
        """
        path = source or None
        X = as_frame(X)
        feature_names = names_of(X) if feature_names is None else feature_names
        X = matrix.as_matrix(X, path=path)
        n, p = X.shape
        names = checks.feature_names(feature_names, p, path)
        signs = checks.signs(y, n, training, path)
        none = sample_weight is None and isinstance(X, Blocked)  # of many rows even ones take memory
        weights = np.broadcast_to(1.0, (n,)) if none else checks.sample_weights(sample_weight, n, path)
        bag = _checked_bags(bags, n, path)
        own = matrix.uneven_weights(weights if counts is None else checks.sample_weights(counts, n, path))
        values, center, shift, divisor = matrix.scale_columns(X, scale, own if rules >= WEIGHED_RULES else None)
        most = None if isinstance(values, matrix.StoredMatrix) else matrix.largest(values)
        if training:
            _check_largest(values, most, names, path)
            _check_smallest(matrix.too_small(X, scale, shift, divisor), names, path)
        instance = cls(
            values,
            signs,
            names,
            center,
            shift,
            divisor,
            labels=labels or Labels(),
            sample_weight=weights,
            cost=_checked_numbers("cost", cost),
            penalty=_checked_numbers("penalty", penalty),
            groups={name: check_value(f"group {name!r}", one, tuple[str, ...]) for name, one in (groups or {}).items()},
            rows=tuple(rows),
            select=select or SelectDefaults(),
            bags=bag,
            source=source,
            scaling=scale,
            values_sha256="" if scale == "none" else matrix.digest(X),
            label=label,
            words=dict(words or {}),
            unscaled=X if sparse.issparse(X) and np.any(shift) else None,
            counts=own,
            rules=max(rules, STATED_RULES),
        )
        forced = (*instance.select.forced_in, *instance.select.forced_out)
        costly = (name for name in instance.cost if name not in instance.groups)
        instance.columns_of([*costly, *instance.penalty, *forced])
        for name, members in instance.groups.items():
            if not members or len(set(members)) < len(members):
                raise DataError(f"group {name!r} is empty or names a feature twice", "list each once", path=path)
            instance.columns_of(members)
        for what, table in (("cost", instance.cost), ("penalty", instance.penalty)):
            for name, number in table.items():
                if not 0 <= number < math.inf:
                    raise DataError(f"{what} of {name!r} is {number:g}", "give a finite number >= 0", path=path)
        bounds = bounds_of(weight_bounds or {}, instance.index, instance.like)
        over = rows_over(weight_rows, instance.index, instance.like)
        found = replace(
            instance, cost=DefaultedValues(instance.index, instance.cost), weight_bounds=bounds, weight_rows=over
        )
        if most is not None:
            found.__dict__["largest"] = most  # as the property has it, without another pass
        return found

    @cached_property
    def largest(self) -> float:
        """The largest |value| of the columns as they are stored; 0 of columns that do not lie in memory."""
        return matrix.largest(self.X) if self.block().is_stored else 0.0

    def in_unit(self, exponent: int) -> Instance:
        """Data whose columns are in the unit 2^exponent, with its penalties in theirs (`mipfs.data.unit`).

        A weight on the user's scale is still one on this data's over `scale`, and bounds on it are on the user's.

        Raises
        ------
        DataError
            A column with values so much smaller than the largest one that floating point does not hold both.
        """
        lost = unit.first_inexact_column(self.X, -exponent)
        if lost is not None:
            small, far = (self.feature_names[j] for j in (lost, unit.column_of_largest(self.X)))
            raise DataError(
                f"feature {small!r} has values too small beside those of {far!r}, of {self.largest:g}",
                "leave one of them out, or scale the data: 'standard' or 'unit'",
                path=self.source or None,
            )
        scale = np.ldexp(self.scale, exponent)
        if self.constant:  # in its own unit: its weight is that of an intercept, not of a value of the user's
            scale[-1] = 1.0
        return replace(
            self,
            X=unit.scale_by_power(self.X, -exponent),
            center=np.ldexp(self.center, -exponent),
            scale=scale,
            penalty={name: unit.times(one, 2 * exponent) for name, one in self.penalty.items()},
            constant=unit.times(self.constant, -exponent),
            values_sha256=self.values_sha256 or matrix.digest(self.X),
            bare_sha256=self.bare_sha256,
            exponent=exponent,
        )

    def class_weights(self, given: Any) -> tuple[float, float] | None:
        """The weights of the classes -1 and +1 that `given`, by label or "balanced", says; None where it says none."""
        return of_classes(given, self)

    def like(self, name: str) -> str:
        """Which feature may have been meant by a name that none has."""
        return misspelling_hint(name, self.feature_names)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the data as the user gave it, before scaling and however it is stored.

        It covers the non-zero values and their places, the shape, y, the names, the sample weights and the bags; of a
        raw table also its recipe, and which cells were missing.
        """
        names = None if isinstance(self.feature_names, Unstored) else list(self.feature_names)
        constant = [self.constant] if self.constant else []
        stated = json.dumps([list(self.X.shape), names, *constant], ensure_ascii=False).encode()
        values = (self.values_sha256 or matrix.digest(self.X)).encode()
        bags = [] if self.bags is None else [self.bags]
        prepared = [] if self.prepared is None else self.prepared.digest_parts()
        return digest([stated, values, self.y, self.sample_weight, *bags, *prepared])


def _check_largest(values: Any, most: float | None, names: Sequence[str], path: str | None) -> None:
    """Refuse scaled columns that are too large; `most` is their largest |value| where they lie in memory."""
    beyond = matrix.too_large(values, most)
    if beyond is not None:
        limit = 2.0**unit.EDGE if most is None else matrix.LARGEST
        raise DataError(
            f"feature {names[beyond]!r} has values beyond {limit:g}, too large to be squared and summed",
            "divide the column, or scale it: 'standard' or 'unit'",
            path=path,
        )


def _check_smallest(below: int | None, names: Sequence[str], path: str | None) -> None:
    """Refuse a column that is too small to be scaled; None for none."""
    if below is not None:
        raise DataError(
            f"feature {names[below]!r} is too small to be scaled: its scale is below {matrix.SMALLEST:g}",
            "multiply the column, or leave it out",
            path=path,
        )


def _checked_bags(bags: npt.ArrayLike | None, n: int, path: str | None) -> npt.NDArray[np.int64] | None:
    bag = None if bags is None else np.asarray(bags)
    if bag is not None and (bag.shape != (n,) or bag.dtype.kind not in "iu"):
        raise DataError(f"bags of shape {bag.shape} and type {bag.dtype}", f"give {n} integers", path=path)
    return None if bag is None else bag.astype(np.int64)


def _checked_numbers(what: str, given: Mapping[str, float] | None) -> dict[str, float]:
    return {name: check_value(f"{what} of {name!r}", number, float) for name, number in (given or {}).items()}


def misspelling_hint(name: str, names: Sequence[str]) -> str:
    """A hint for a misspelt name, or one of a word that has no feature, as its column has two words (rules 5)."""
    parts, some = str(name).split("="), names[:20000]
    for column in ("=".join(parts[:k]) for k in range(len(parts) - 1, 0, -1)):
        own = [one for one in some if one.startswith(f"{column}=")]
        beside = [f"{column}={MISSING_LEVEL}"] if column in some else []  # where a column of numbers is missing
        if len(own) == 1 and own != beside:
            word = own[0][len(column) + 1 :]
            return (
                f"{own[0]!r} is the one feature of the column {column!r}, 1 where its word is {word!r}: name that one, "
                "and where a sign or a bound of the other word is meant the opposite one"
            )
    return suggest_name(name, some, f"features are called like {names[0]!r}" if names else "there are none")
