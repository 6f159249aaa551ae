"""The JSON of paths and of several classes, stated once: what `mipfs path` and `mipfs solve` write, with its kinds."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mipfs.plumbing.declared import NumberRange, Positive
from mipfs.plumbing.typed_json import JUDGED, Label, Numbers, Sha256, Texts, Whole, Written
from mipfs.result.result_document import Bound, CertificateEntry, ResultDocument
from mipfs.result.status import Status

Axis = Literal["M", "C", "lambda", "rows", "C,M", "end"]
Chosen = float | Numbers | None
"""Where a point that folds chose is: on one axis its value, on several a table."""
Inside = Annotated[dict[str, Any], Written(ResultDocument)]
"""The JSON of a result, which is read by itself."""


class ArchiveEntry(TypedDict):
    """The archive of all certificates."""

    file: Annotated[str, JUDGED]
    sha256: Annotated[Sha256, JUDGED]


class ClassifierEntry(TypedDict):
    """The classifier of a fold."""

    weights: Numbers
    intercept: float


PointEntry = TypedDict(
    "PointEntry",
    {
        "M": NotRequired[Annotated[float, Written(Whole)]],
        "C": NotRequired[float],
        "lambda": NotRequired[float],
        "rows": NotRequired[Annotated[float, Written(Whole)]],
        "end": NotRequired[float],
        "status": Annotated[Status, JUDGED],
        "stop_reason": NotRequired[Annotated[str, JUDGED]],
        "objective": Annotated[float | None, JUDGED],
        "bound": Bound,
        "gap": Annotated[float | None, JUDGED],
        "selected": Annotated[list[str], JUDGED],
        "seconds": float,
        "cuts_carried": Whole,
        "cuts": Whole,
        "subproblems": NotRequired[Annotated[Whole, JUDGED]],
        "seconds_saved": NotRequired[Annotated[float | None, JUDGED]],
        "cold_seconds": NotRequired[Annotated[float | None, JUDGED]],
        "error": NotRequired[Annotated[float | None, JUDGED]],
        "deviation": NotRequired[Annotated[float | None, JUDGED]],
        "standard_error": NotRequired[Annotated[float | None, JUDGED]],
        "start": Texts,
        "errors": tuple[float, ...],
        "added": NotRequired[str],
        "fold_classifiers": NotRequired[tuple[ClassifierEntry, ...]],
        "result": Inside,
    },
)
"""A point of a path, with the value of each axis."""


class MovedRowEntry(TypedDict):
    """The row of a frontier, and which of its ends moves."""

    name: str
    side: Literal["ub", "lb", "both"]


class BoughtEntry(TypedDict):
    """What a unit of the row bought on average between two values."""

    tight: float
    loose: float
    least: float | None
    most: float | None


class BetweenEntry(TypedDict):
    """A set at a C between two points."""

    C: float
    M: NotRequired[Annotated[float, Written(Whole)]]
    selected: Texts
    weights: Numbers
    intercept: float
    objective: float
    bound: float
    gap: Annotated[float | None, JUDGED]


class PathDocument(TypedDict):
    """What mipfs path --json writes."""

    schema: Literal[1]
    command: NotRequired[str | None]
    axis: Axis
    params: dict[str, Any]
    driver: str
    folds: int | None
    seed: Annotated[int, Written(Whole)]
    chosen: NotRequired[Chosen]
    least_error: NotRequired[Chosen]
    one_se: NotRequired[Chosen]
    rule: NotRequired[Annotated[str, JUDGED]]
    by: NotRequired[Annotated[str, JUDGED]]
    folds_by: NotRequired[Annotated[str, JUDGED]]
    interrupted: bool
    certificate: NotRequired[ArchiveEntry | None]
    row: NotRequired[MovedRowEntry | None]
    bought: NotRequired[tuple[BoughtEntry, ...]]
    between: NotRequired[tuple[BetweenEntry, ...]]
    points: tuple[PointEntry, ...]


class ClassesDocument(TypedDict):
    """What mipfs solve --json writes of data with more than two classes."""

    schema: Literal[1]
    kind: Literal["one-vs-rest"]
    command: NotRequired[Annotated[str | None, JUDGED]]
    shared_support: Annotated[bool, JUDGED]
    bias: Annotated[bool, JUDGED]
    classes: Annotated[tuple[Label, ...], NumberRange(3)]
    class_weight: NotRequired[dict[str, Positive] | None]
    status: Annotated[Status, JUDGED]
    objective: Annotated[float | None, JUDGED]
    bound: Annotated[float | None, JUDGED]
    gap: Annotated[float | None, JUDGED]
    selected: Annotated[list[str], JUDGED]
    results: Annotated[tuple[Inside, ...], NumberRange(3)]
    together: Inside | None
    certificate: NotRequired[Annotated[CertificateEntry | None, JUDGED]]
    archive: NotRequired[ArchiveEntry]
