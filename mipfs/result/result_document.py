"""The JSON of a result, stated once: what `Result.to_json` writes, every entry with its kind.

`mipfs.result.result_json` reads it, and ``docs/schemas/result-1.json`` is made from it. What a checker alone judges is
not looked at when a result is read (`JUDGED`), so that `mipfs verify` says what is wrong with it.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mipfs.data.recipe import Recipe
from mipfs.errors import UsageError
from mipfs.plumbing.declared import NumberRange, Positive
from mipfs.plumbing.typed_json import (
    JUDGED,
    FileName,
    Label,
    Null,
    Numbers,
    Pattern,
    Sha256,
    Sizes,
    Such,
    Texts,
    Whole,
    Written,
    read,
)
from mipfs.result.status import Status, StopReason

Objective = Annotated[float, Null(math.inf)]
"""Infinite, null in JSON, where there is no classifier."""
Bound = Annotated[float, Null(-math.inf)]
"""Minus infinity, null in JSON, where none was proven."""
Ends = Annotated[list[float | None], NumberRange(2, 2)]
Share = Annotated[float, NumberRange(0, below=1)]
Fraction = Annotated[str, Pattern("^-?[0-9]+(/[0-9]+)?$")]
Cost = Annotated[float, NumberRange(0)]
Version = Literal[1, 2, 3, 4, 5, 6]


class TraceEntry(TypedDict):
    """An iteration."""

    seconds: float
    iteration: Whole
    objective: Objective
    bound: Bound
    upper: NotRequired[Objective]


class LabelsEntry(TypedDict):
    """What the classes are called."""

    negative: Label
    positive: Label


def _has_name(stated: Any) -> bool:
    return isinstance(stated["name"], str)


class ParityEntry(TypedDict):
    """Two groups of samples: their names, and of every sample 1, 2, or 0 where it is in neither."""

    groups: Annotated[list[str], NumberRange(2, 2)]
    samples: Annotated[str, Pattern("^[012]*$")]


class WeightRowEntry(TypedDict):
    """A row over the weights, and within what it holds."""

    coefficients: Numbers
    lower: float | None
    upper: float | None
    allowance: float
    parity: NotRequired[ParityEntry]


ParamsEntry = TypedDict(
    "ParamsEntry",
    {
        "M": NotRequired[Annotated[float | None, Written(Whole | None, always=True)]],
        "C": Annotated[Positive, JUDGED],
        "lambda": Annotated[Cost | list[Cost] | dict[str, Cost], JUDGED],
        "loss": NotRequired[Annotated[str | None, Written(str, always=True)]],
        "bias": Annotated[bool, JUDGED],
        "gap": NotRequired[Annotated[float | None, Written(Share, always=True)]],
        "penalty": NotRequired[Numbers | None],
        "margin": NotRequired[Annotated[str | None, Written(Literal["unit", "rho"])]],
        "forced_in": NotRequired[list[str] | None],
        "forced_out": NotRequired[list[str] | None],
        "measure": NotRequired[str | None],
        "beta": NotRequired[Annotated[float | None, JUDGED]],
        "k": NotRequired[Annotated[int | None, JUDGED]],
        "constant": NotRequired[Annotated[float, JUDGED]],
        "regulariser": NotRequired[
            Annotated[dict[str, Any], Such(lambda stated: isinstance(stated["name"], str))] | None
        ],
        "weight_bounds": NotRequired[dict[str, Ends] | None],
        "weight_rows": NotRequired[list[WeightRowEntry] | None],
        "class_weight": NotRequired[Annotated[Numbers | None, Written(dict[str, Positive] | None)]],
    },
)
"""What was asked: the statement of the problem, which the checker judges."""


class ScalingEntry(TypedDict):
    """How the columns of the data were shifted and divided."""

    kind: Literal["none", "standard", "unit"]
    shift: Numbers
    scale: dict[str, Positive]
    center: NotRequired[Numbers]


class RowEntry(TypedDict):
    """A row of the user's over what is selected."""

    name: str
    terms: Numbers
    lb: float | None
    ub: float | None
    origin: str


class MixtureEntry(TypedDict):
    """A selection of a convex combination."""

    share: float
    selected: list[str]
    extra: NotRequired[Numbers]


class RelaxedEntry(TypedDict):
    """What is known of the relaxation."""

    upper: float | None
    lower: float | None
    sigma: Annotated[Numbers, JUDGED]
    weights: NotRequired[Annotated[Numbers | None, JUDGED]]
    intercept: NotRequired[Annotated[float | None, JUDGED]]
    extra: NotRequired[Annotated[Numbers | None, JUDGED]]
    mixture: NotRequired[Annotated[list[MixtureEntry] | None, JUDGED]]
    selections: NotRequired[Annotated[Whole, JUDGED]]


class ValidatedEntry(TypedDict):
    """The classifier of lowest validation error."""

    error: float
    iteration: NotRequired[Whole]
    selected: list[str]
    weights: NotRequired[Numbers]
    intercept: NotRequired[float]


class DerivedEntry(TypedDict):
    """A row that follows from others."""

    kind: Literal["chvatal-gomory"]
    terms: dict[str, int]
    ub: int
    rows: list[tuple[Any, Any]]
    cardinality: NotRequired[Fraction]
    bounds: NotRequired[dict[str, Fraction]]


class CertificateEntry(TypedDict):
    """The entry certificate of a result."""

    kind: Annotated[str, Written(Literal["tree", "relaxation"])]
    bound: float | None
    gap: Annotated[float, Written(Share)]
    file: FileName
    sha256: Sha256
    found: NotRequired[Annotated[float | None, JUDGED]]
    derived: NotRequired[Annotated[list[DerivedEntry], JUDGED]]


class ExtraEntry(TypedDict):
    """A variable of the user's."""

    lb: Annotated[float | None, JUDGED]
    ub: Annotated[float | None, JUDGED]
    integer: Annotated[bool, JUDGED]
    value: NotRequired[Annotated[float | None, JUDGED]]
    cost: NotRequired[Annotated[float, JUDGED]]


class MonomialsEntry(TypedDict):
    """Products of features, with the features of each."""

    kind: Literal["monomials"]
    degree: Literal[2, 3]
    gamma: float
    r: float
    heredity: str | None
    count: Whole
    parts: list[list[str]]


class FunctionEntry(TypedDict):
    """The functions of a feature: its column and the numbers of their map."""

    column: Whole
    shift: float
    scale: Positive
    map: dict[str, list[float] | float]


class FunctionsEntry(TypedDict):
    """Functions of single features."""

    name: str
    options: dict[str, Any]
    n_features: Whole
    scaling: str
    data_sha256: Sha256
    features: dict[str, FunctionEntry]


def _are_atoms(stated: Any) -> bool:
    """Whether products of features have names, and a list of features each."""
    made = stated.get("made") or {}
    return "kind" not in made or len(made["parts"]) == len(stated["names"])


class AtomsEntry(TypedDict):
    """What is selected, where that is not single features with λ = 1."""

    names: list[str] | None
    columns: NotRequired[Annotated[list[list[str]] | None, JUDGED]]
    scale: NotRequired[Annotated[list[Cost] | None, JUDGED]]
    made: NotRequired[MonomialsEntry | Annotated[FunctionsEntry, Such(lambda stated: "kind" not in stated)] | None]


class SupportEntry(TypedDict):
    """A selection of a list."""

    selected: list[str]
    objective: float
    gap: float | None
    weights: Annotated[Numbers, JUDGED]
    intercept: Annotated[float, JUDGED]
    ties: NotRequired[Annotated[Whole | None, JUDGED]]
    extra: NotRequired[Annotated[Numbers, JUDGED]]


class NearEntry(TypedDict):
    """The near-optimal selections."""

    complete: bool
    gap: Annotated[float | None, Written(Cost | None)]
    size: Whole | None
    supports: list[SupportEntry]
    share: Numbers


class RecipeCounts(TypedDict):
    """What was missing of a raw table, by column, and what stands for it."""

    filled: dict[str, Label]
    missing: Sizes


def _is_recipe(stated: Any) -> bool:
    read(stated, RecipeCounts)
    try:
        Recipe.of_document(stated)
    except UsageError:
        return False
    return True


class ReadEntry(TypedDict):
    """How the data was read."""

    label: str | None
    words: dict[str, Texts]
    left_out: NotRequired[list[str]]
    kept: NotRequired[list[str]]
    recipe: NotRequired[Annotated[dict[str, Any], Such(_is_recipe)] | None]


class SigmoidEntry(TypedDict):
    """A logistic map from scores to probabilities."""

    method: Literal["sigmoid"]
    samples: Whole
    folds: Whole
    a: float
    b: float


class IsotonicEntry(TypedDict):
    """A map from scores to probabilities that rises by steps."""

    method: Literal["isotonic"]
    samples: Whole
    folds: Whole
    x: Annotated[tuple[float, ...], NumberRange(1), Such(lambda x: list(x) == sorted(x))]
    y: tuple[float, ...]


Isotonic = Annotated[IsotonicEntry, Such(lambda stated: len(stated["x"]) == len(stated["y"]))]
Settings = Annotated[dict[str, Any], Such(lambda stated: isinstance(stated["record"], str))]


class DecidedEntry(TypedDict):
    """What the proof decides of the features, up to a gap above the objective; null for all others."""

    gap: Annotated[float, NumberRange(0)]
    every: Texts
    none: Texts | None
    open: Texts | None


class WarmEntry(TypedDict):
    """The earlier result that a run began from: its file, what it had found, and what was used of it."""

    file: str | None
    objective: float | None
    bound: float | None
    changed: list[str]
    start: bool
    cuts: Whole
    leaves: Whole | None
    opened: Whole | None


class ResultDocument(TypedDict):
    """What mipfs solve --json writes."""

    schema: Literal[1]
    status: Status
    stop_reason: StopReason
    objective: Objective
    bound: Bound
    gap: float | None
    selected: Texts
    weights: Numbers
    intercept: Annotated[float, Null(math.nan)]
    params: ParamsEntry
    driver: str
    seconds: float
    counters: Numbers
    trace: tuple[TraceEntry, ...]
    labels: Annotated[LabelsEntry, NumberRange(2, 2)]
    columns: Sizes
    n_features: Whole
    scaling: ScalingEntry
    data_sha256: Sha256
    rows: tuple[RowEntry, ...]
    conflict: Texts
    relaxed: RelaxedEntry | None
    validated: ValidatedEntry | None
    bound_source: str
    certificate: CertificateEntry | None
    versions: dict[str, str]
    extra: NotRequired[dict[str, ExtraEntry]]
    extra_cost: NotRequired[Annotated[float | None, JUDGED]]
    atoms: NotRequired[AtomsEntry | None]
    near_optimal: NotRequired[NearEntry | None]
    read: NotRequired[ReadEntry | None]
    command: NotRequired[str | None]
    settings: NotRequired[Settings | None]
    calibration: NotRequired[SigmoidEntry | Isotonic | None]
    weightless: NotRequired[Texts | None]
    decided: NotRequired[Annotated[tuple[DecidedEntry, ...], NumberRange(1)] | None]
    warm_from: NotRequired[WarmEntry | None]
    rules: NotRequired[Annotated[Whole, Written(Version)]]
