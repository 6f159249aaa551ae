"""Result, Status, StopReason and the iteration record."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt

from mipfs.data.rules import FIRST_RULES
from mipfs.data.unknown_words import Unknown
from mipfs.errors import CertificateWarning, DataError, UsageError
from mipfs.plumbing import output_file, strict_json
from mipfs.plumbing.declared import NumberRange, check_arguments
from mipfs.plumbing.typed_json import plain
from mipfs.report.blocks import ReportBlock
from mipfs.report.visible import as_json
from mipfs.result import result_json
from mipfs.result.cut_data import HasCuts
from mipfs.result.gap import relative_gap
from mipfs.result.judged import Judged
from mipfs.result.plotted import Plotted
from mipfs.result.status import Status as Status
from mipfs.result.status import StopReason as StopReason
from mipfs.settings import DriverSettings

if TYPE_CHECKING:
    from mipfs.formulation.program import Formulation
    from mipfs.proof.cuts import CutPool
    from mipfs.result.decided import Decided, DecisionMaker
    from mipfs.result.sidecar import ProofClaim
    from mipfs.result.state import RunState
    from mipfs.result.tables import What

SCHEMA = 1
"""Version of the JSON; a reader refuses any other."""
CERTIFICATE_LIMIT = 50.0
"""Megabytes that the certificate of a run takes at most which a limit stopped, unless the user asks for more."""
Megabytes = Annotated[float, NumberRange(above=0, of="megabytes", finite=False)]
"""A limit on a size, infinite where there is none."""
_IN_MEMORY = ("claim", "path", "pool", "alpha", "declare", "state", "stated", "sidecar", "deciding")
"""Fields that are not in the JSON."""


@dataclass(frozen=True)
class Record:
    """The iteration record that every observer receives.

    Attributes
    ----------
    seconds : float, since the run began
    iteration : int
    objective : float, of the incumbent; inf before there is one
    bound : float, best earned lower bound; -inf before there is one
    n_selected : int, features selected by the incumbent
    counters : mapping of str to int (cuts, subproblems, ...)
    upper : float, best upper bound on the relaxation being solved; inf for an exact driver
    """

    seconds: float
    iteration: int
    objective: float
    bound: float
    n_selected: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    upper: float = math.inf

    @property
    def gap(self) -> float:
        """(objective − bound)/|objective|: 0 where both are equal, infinite at an objective of 0 otherwise."""
        return relative_gap(self.objective, self.bound)


class Trace(tuple[Record, ...]):
    """The iteration records of a run, in order of time."""

    __slots__ = ()

    def to_frame(self) -> Any:
        """The trace as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            Columns ``seconds, iteration, objective, bound, gap``, and ``upper`` where a relaxation was solved; what was
            not earned yet is NaN.

        Raises
        ------
        UsageError
            pandas is not installed.
        """
        from mipfs.report.frame import pandas_for

        pandas = pandas_for("trace.to_frame()")
        names = ["seconds", "iteration", "objective", "bound", "gap"]
        names += ["upper"] if any(math.isfinite(record.upper) for record in self) else []
        columns = {name: np.array([getattr(record, name) for record in self]) for name in names}
        for name in set(names) - {"iteration"}:
            columns[name] = np.where(np.isfinite(columns[name]), columns[name], math.nan)
        return pandas.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class Result(Judged, Plotted, HasCuts):
    """What a driver returns.

    Attributes
    ----------
    status, stop_reason : Status, StopReason
    objective : float, of (P) on the scaled data, recomputed from raw data; inf if there is no incumbent
    bound : float, earned lower bound; -inf if none
    selected : tuple of str, names with sigma = 1
    weights : mapping of name to float, non-zeros, on the user's scale
    intercept : float, on the user's scale
    params : mapping, what was asked
    driver : str
    seconds : float
    counters : mapping of str to int
    trace : Trace, a tuple of Record, with `Trace.to_frame`
    labels : mapping {"negative": ..., "positive": ...}
    columns : mapping of name to int, the 0-based column of every selected feature and weight
    n_features : int, features of the data
    atoms : mapping or None, {"names", "columns", "scale"} of what is selected; None for single features with λ = 1
        Of products of features {"names", "made"}, those that the proof is over, with the features of each; weights
        are then those of products of scaled columns.
    scaling : mapping {"kind": str, "shift": {name: float}, "scale": {name: float}} of the selected features
    data_sha256 : str
    rows : tuple of dict, the user's rows ({"name", "terms", "lb", "ub", "origin"})
    conflict : tuple of str, a smallest conflicting set of rows when INFEASIBLE
    relaxed : mapping or None, {"upper", "lower", "sigma"}
    validated : mapping or None, the classifier of lowest validation error
    bound_source : str, "dual" when earned by us, "solver" when it is a solver's word
    certificate : mapping or None, {"kind", "bound", "gap", "file", "sha256"} once it is saved
    versions : mapping of package to version
    extra : mapping of name to {"lb", "ub", "integer", "value"}, the user's extra variables at the selection;
        and "cost" of those that have one, whose values are then the cheapest
    read : mapping or None, how the data was read: {"label": the column of the labels or None, "words": {column: its
        words}} for the columns of words that weights belong to; of a table "left_out", the columns of words that are no
        features, and "kept", those that an option kept; and of a raw one "recipe" (`mipfs.data.recipe`)
    command : str or None, the command line that it came from, without where its outputs went
    near_optimal : mapping or None, {"complete", "gap", "size", "supports", "share"}: see `mipfs.run.near_optimal`
    settings : DriverSettings or None, the record that steered the run; None in files of versions that had none
    calibration : mapping or None, from scores to probabilities (`mipfs.result.probability`); not proven
    weightless : tuple of str, or None
        Names of the columns of what is selected whose weight is 0, or was no more than rounding (`mipfs.run.stored`);
        a row, or a column of the same group, keeps them. None where there is no classifier, and in files of versions
        that did not say so.
    warm_from : mapping or None
        The earlier result that this run began from: {"file", "objective", "bound", "changed", "start", "cuts",
        "leaves", "opened"}; None where it began from nothing. History: nothing of it is part of the proof.
    rules : int, the version of the rules by which the data was read and scaled, and rows hold (`mipfs.data.rules`)
    claim : ProofClaim or None, what the run proves, in memory; not part of the JSON, `save` writes it beside it
    path : Path or None, the file that it was saved to or loaded from; not part of the JSON
    pool : CutPool or None, the cuts at hand at the end, where a pool was given; not part of the JSON
    state : RunState or None
        Where the run stands, for ``resume=``; where `checkpoint` asked for it; not part of the JSON.
    alpha : (n,) ndarray or None
        The last dual vector of `kelley` and `two_layer` (there y∘v of its labellings), to rank features by their score
        (X'(y∘α))² on the scaled data, FGM-B of Tan 2010; not part of the JSON.
    declare : callable or None, what `formulation` calls; it holds the data, and is not part of the JSON
    stated : mapping
        What the file that it was loaded from has beside these fields, its gap and what is unknown; for `verify`.
    sidecar : bytes or None, a small certificate as it was loaded with the JSON; not part of that
    deciding : DecisionMaker or None
        What derives `decided`; it holds the data, and neither is pickled nor part of the JSON.
    """

    status: Status
    stop_reason: StopReason
    objective: float
    bound: float
    selected: tuple[str, ...]
    weights: Mapping[str, float]
    intercept: float
    params: Mapping[str, Any]
    driver: str
    seconds: float
    counters: Mapping[str, int]
    trace: Trace
    labels: Mapping[str, Any]
    columns: Mapping[str, int]
    n_features: int
    scaling: Mapping[str, Any]
    data_sha256: str
    rows: tuple[Mapping[str, Any], ...] = ()
    conflict: tuple[str, ...] = ()
    relaxed: Mapping[str, Any] | None = None
    validated: Mapping[str, Any] | None = None
    bound_source: str = "dual"
    certificate: Mapping[str, Any] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    near_optimal: Mapping[str, Any] | None = None
    atoms: Mapping[str, Any] | None = None
    read: Mapping[str, Any] | None = None
    command: str | None = None
    settings: DriverSettings | None = field(default=None, repr=False)
    calibration: Mapping[str, Any] | None = field(default=None, repr=False)
    weightless: tuple[str, ...] | None = None
    warm_from: Mapping[str, Any] | None = None
    rules: int = FIRST_RULES
    claim: ProofClaim | None = field(default=None, repr=False)
    path: Path | None = field(default=None, repr=False)
    pool: CutPool | None = field(default=None, repr=False)
    state: RunState | None = field(default=None, repr=False)
    alpha: npt.NDArray[np.float64] | None = field(default=None, repr=False)
    declare: Callable[[], Formulation] | None = field(default=None, repr=False)
    stated: Mapping[str, Any] = field(default_factory=dict, repr=False)
    sidecar: bytes | None = field(default=None, repr=False)
    deciding: DecisionMaker | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "trace", Trace(self.trace))

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.bound)

    @property
    def decided(self) -> tuple[Decided, ...] | None:
        """What the proof decides of every feature: in every selection as good as this one, in none of them, or open.

        One entry (`mipfs.result.decided.Decided`) for the selections whose objective is at most that of the incumbent,
        and one for those up to 1% above it, each with the names ``every``, ``none`` and ``open``. A run that a limit
        stopped has it too: it is what the leaves of the certificate imply, open nodes included, and it is recomputed by
        `verify`. It is derived when it is first asked for.

        None without a certificate or a classifier, for products of features, and for trees so large that it would take
        more than seconds.
        """
        return None if self.deciding is None else self.deciding.known(self)

    def decided_within(self, gap: float = 0.0) -> Decided:
        """`decided` for the selections whose objective is at most U + gap·|U|, U that of the incumbent.

        Parameters
        ----------
        gap : float, default 0

        Raises
        ------
        UsageError
            Nothing is decided, or the gap is none of those in the JSON and the data is not at hand.
        """
        from mipfs.result.decided import at

        return at(self, gap)

    def __getstate__(self) -> dict[str, Any]:
        """Without the data, which `deciding` holds: what is decided is derived before."""
        held = self.deciding
        return {**self.__dict__, "deciding": None if held is None else held.alone(self)}

    @property
    def extra_cost(self) -> float | None:
        """d'z, what the extra variables cost at the selection, a part of the objective; None where none costs anything.

        NaN without a classifier.
        """
        costed = [one for one in self.extra.values() if one.get("cost")]
        if not costed:
            return None
        if any(one.get("value") is None for one in costed):
            return math.nan
        return float(sum((Fraction(one["cost"]) * Fraction(one["value"]) for one in costed), Fraction(0)))

    def __repr__(self) -> str:
        from mipfs.result.summary import short

        return short(self)

    def to_frame(self, what: What = "weights") -> Any:
        """The weights, the largest first and the intercept last, or the near-optimal sets, as a pandas data frame.

        Parameters
        ----------
        what : {"weights", "near-optimal"}

        Raises
        ------
        UsageError
            pandas is not installed, there is no classifier, or no near-optimal sets were asked for.
        """
        from mipfs.report.frame import pandas_for
        from mipfs.result.tables import table_of

        return table_of(self, what).frame(pandas_for("result.to_frame()"))

    def to_latex(self, what: What = "weights") -> str:
        """What `to_frame` has as a LaTeX ``tabular`` with the rules of the package booktabs, for a paper."""
        from mipfs.result.tables import table_of

        return table_of(self, what).latex()

    def blocks(self) -> list[ReportBlock]:
        """Of the report: status, objective, bound, gap, features and weights."""
        from mipfs.result.summary import summary_blocks

        return summary_blocks(self)

    @property
    def label_column(self) -> str | None:
        """The column of the data that held the labels, where it has a name."""
        return None if self.read is None else self.read["label"]

    @property
    def recipe(self) -> Mapping[str, Any] | None:
        """What was done to the raw table before training, as the JSON states it; None where nothing was."""
        return None if self.read is None else self.read.get("recipe")

    def formulation(self) -> Formulation:
        """The last restricted problem of `kelley` or `two_layer` as a CVXPY program, to print, change and solve.

        Of `kelley` the reduced MKL over the selections that it generated (Tan 2014, (35)), of `two_layer` the master
        over its selections and labellings (Mao 2013, (16)).

        Raises
        ------
        UsageError
            Another driver, a result that was read from a file, or data too large for such a program.
        """
        if self.declare is None:
            raise UsageError(
                f"a result of {self.driver!r} has no restricted problem at hand; solve with 'kelley' or 'two_layer'"
            )
        return self.declare()

    @property
    def has_classifier(self) -> bool:
        """Whether there is an incumbent, and with it weights to predict with."""
        return math.isfinite(self.objective) and math.isfinite(self.intercept)

    def decision_function(self, X: Any, unknown: Unknown = "refuse") -> npt.NDArray[np.float64]:
        """w'x + b of every row, shape (n,).

        Parameters
        ----------
        X : Instance, data frame, or (n, p) array or sparse matrix
            On the user's scale, whatever `scaling` the training used. Columns of an instance or a data
            frame are matched by name, those of an array by position. In a data frame columns of words may stand
            as they did in training; other columns are not looked at. A row may also be a mapping of names to cells.
        unknown : {"refuse", "none"}
            What a word is that training did not see: an error, or none of the words that it saw, with a `DataWarning`
            that counts the rows.

        Raises
        ------
        UsageError
            No classifier was found, a selected feature is missing, or a column holds a word that training did not see.
        DataError
            A column of a data frame that is used has a missing value, or one of another kind.
        """
        from mipfs.result.prediction import decision_values

        if not self.has_classifier:
            raise UsageError(f"there is no classifier to predict with: the status is {self.status.name}")
        return decision_values(self, X, unknown)

    def predict(self, X: Any, unknown: Unknown = "refuse") -> npt.NDArray[Any]:
        """The predicted labels, as the user called them, shape (n,); see `decision_function`."""
        positive, negative = np.asarray(self.labels["positive"]), np.asarray(self.labels["negative"])
        return np.where(self.decision_function(X, unknown) > 0, positive, negative)

    def load_into(self, model: Any) -> None:
        """Put the incumbent into the variables of the model that it solves; `mipfs.solve` does it by itself.

        Parameters
        ----------
        model : Pyomo model of `mipfs.models`, or Formulation
            σ, weights and intercept on the scale of its data, slacks, and the user's extra variables.

        Raises
        ------
        UsageError
            No classifier was found, or it is one of other features than the model's.
        """
        from mipfs.result.loaded import load_into

        load_into(self, model)

    def document(self) -> dict[str, Any]:
        """The result in JSON's own types, schema 1: a value that was not earned is None, never NaN or infinite."""
        found: dict[str, Any] = plain({
            "schema": SCHEMA,
            "gap": self.gap,
            **({} if self.extra_cost is None else {"extra_cost": self.extra_cost}),
            **{name: getattr(self, name) for name in self.__dataclass_fields__ if name not in _IN_MEMORY},
            "decided": self.decided,
            "settings": None if self.settings is None else self.settings.stated(),
            "trace": [
                {"seconds": r.seconds, "iteration": r.iteration, "objective": r.objective, "bound": r.bound}
                | ({"upper": r.upper} if math.isfinite(r.upper) else {})
                for r in self.trace
            ],
        })  # fmt: skip
        return found

    def to_json(self) -> str:
        """`document` as JSON."""
        return as_json(self.document())

    @classmethod
    @check_arguments
    def from_json(cls, text: str, *, path: str | Path | None = None) -> Result:
        """Read what `to_json` wrote; `path` is named in the messages.

        Raises
        ------
        DataError
            No JSON, another schema, or a field that is missing or of the wrong kind.
        """
        remedy = "give a file written by `mipfs solve --json`"
        try:
            document = strict_json.parse_json(text)
        except ValueError as error:
            line = error.lineno if isinstance(error, json.JSONDecodeError) else None
            raise DataError(f"not a JSON document ({error})", remedy, path=path, line=line) from None
        try:
            values = result_json.checked_fields(document, SCHEMA)
        except ValueError as error:
            raise DataError(str(error), remedy, path=path) from None
        values["trace"] = Trace(
            Record(r["seconds"], r["iteration"], r["objective"], r["bound"], upper=r.get("upper", math.inf))
            for r in values["trace"]
        )
        if values.get("settings") is None:  # none, or a record of another version, which is kept as it stands
            values.pop("settings", None)
        told = values.pop("decided", None)
        if told is not None:
            from mipfs.result.decided import DecisionMaker

            values["deciding"] = DecisionMaker(None, told)
        stated = {name: value for name, value in document.items() if name not in {*values, "schema", "decided"}}
        return cls(**values, path=None if path is None else Path(path), stated=stated)

    @check_arguments
    def save(self, path: str | Path, *, certificate_limit: Megabytes = CERTIFICATE_LIMIT) -> None:
        """Write the JSON to a file and, where there is one, the certificate beside it as ``RESULT.cert.npz``.

        Both or neither, whatever moment it is ended at, and whoever else saves there (`mipfs.proof.pair`).
        `certificate` and `path` are set then. A pipe or a device gets the JSON alone.

        Parameters
        ----------
        path : str or Path
        certificate_limit : float, default 50, in megabytes (10⁶ bytes)
            Where a limit stopped the run and its certificate would be larger, the file claims the largest bound whose
            certificate fits: bound, gap and trace of the JSON are what is certified, and ``certificate["found"]`` is
            the bound that the run itself found, which this object keeps. An OPTIMAL result is always saved whole;
            ``math.inf`` keeps every certificate whole.

        Raises
        ------
        UsageError
            A file cannot be written; what stood there before is as it was. Or the limit is not positive.

        Warns
        -----
        CertificateWarning
            The file claims less than the run found.
        """
        from mipfs.proof import pair
        from mipfs.result.sidecar import SpooledSidecar, spool_sidecar

        path = Path(path)
        if output_file.is_stream(path):
            output_file.save([(path, f"{self.to_json()}\n".encode())])
            return
        beside = pair.sidecar_of(path)
        content, certificate = spool_sidecar(self, beside.name, 1e6 * certificate_limit, beside.parent)
        try:
            claimed = self._with_certified_bound(certificate)
            pair.save(path, f"{claimed.to_json()}\n".encode(), content)
        finally:
            if isinstance(content, SpooledSidecar):
                content.close()
        object.__setattr__(self, "certificate", certificate)
        object.__setattr__(self, "path", path)
        if claimed.bound < self.bound:
            gaps = f"{claimed.bound:.8g} (gap {claimed.gap:.2%})", f"{self.bound:.8g} (gap {self.gap:.2%})"
            warnings.warn(
                f"to keep its certificate below {certificate_limit:g} MB, {path.name} claims the bound {gaps[0]} where "
                f"the run found {gaps[1]}; a larger certificate limit, or inf, keeps more of the proof",
                CertificateWarning,
                stacklevel=2,
            )

    def _with_certified_bound(self, certificate: Mapping[str, Any] | None) -> Result:
        """This result as its certificate has it: with the bound that is certified, where that was cut to a size."""
        if certificate is None or "found" not in certificate:
            return replace(self, certificate=certificate)
        bound = float(certificate["bound"])
        relaxed = self.relaxed
        if relaxed is not None:
            relaxed = {**relaxed, "lower": min(relaxed["lower"], bound)}
        trace = Trace(replace(record, bound=min(record.bound, bound)) for record in self.trace)
        deciding = None if self.deciding is None else self.deciding.of_cut(str(certificate["sha256"]))
        return replace(self, certificate=certificate, bound=bound, trace=trace, relaxed=relaxed, deciding=deciding)

    @classmethod
    @check_arguments
    def load(cls, path: str | Path) -> Result:
        """Read a JSON file, with the certificate that belongs to it; see `from_json`."""
        from mipfs.proof import pair

        def parsed() -> tuple[Result, Mapping[str, Any] | None]:
            found = cls.from_json(result_json.read(path), path=path)
            return found, found.certificate

        result, sidecar = pair.read(Path(path), parsed)
        return result if sidecar is None else replace(result, sidecar=sidecar.content if sidecar.found else None)
