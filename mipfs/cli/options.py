"""The options that several commands share, and how their text becomes values.

Also here: ``--nonnegative``, ``--nonpositive``, ``--weight-bounds``, ``--box``: bounds on the weights, on the user's
scale; and ``--weight-rows``: rows over them.

Also here: ``--module``: losses, regularisers, branching rules and separators of the user's own, entered by their
names.

Importing a module runs it, which is the user's decision. What the checker believes of a loss or a regulariser is its
class `Stated` alone, run apart (`mipfs.check.stated`), and a report names whose statement that is.
"""

from __future__ import annotations

import csv
import enum
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipfs.data.unknown_words import Unknown
from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.data.instance import Instance
    from mipfs.problem import Problem


Module = Annotated[
    list[str] | None,
    typer.Option(
        "--module",
        metavar="FILE.py",
        help="A loss, a regulariser, a branching rule or a separator: a file, a module's name, or a plugin's.",
    ),
]

GROUPS = ("mipfs.losses", "mipfs.regularisers", "mipfs.branching", "mipfs.separators")
"""Groups of entry points in which packages offer them, each the name of a module."""


def files_of(given: Sequence[str] | None) -> list[str]:
    """Those that are files: inputs, which no output may take the place of."""
    return [text for text in given or () if text.endswith(".py")]


def enter(given: Sequence[str]) -> None:
    """Import modules: LOSS and KIND of each are entered by their names, `choose` and `separate` by that of the module.

    Raises
    ------
    UsageError
        It cannot be imported, or another module has the name.
    """
    if not given:
        return
    from mipfs.branching import RULES
    from mipfs.cli.errors import complain
    from mipfs.losses import LOSSES
    from mipfs.plumbing.registry import Registry, find_offered_module
    from mipfs.plumbing.user_file import import_user_file
    from mipfs.regularisers import REGULARISERS
    from mipfs.separators import SEPARATORS

    for text in given:
        module = import_user_file(find_offered_module(GROUPS, text) or text)
        tables = ("LOSS", LOSSES), ("KIND", REGULARISERS), ("choose", RULES), ("separate", SEPARATORS)
        itself = {module.__name__, *(one for one in Registry.entered if one.startswith(f"{module.__name__}."))}
        if not any(hasattr(module, what) for what, _ in tables) and not itself & Registry.entered:
            complain(
                f"--module {text}: has none of LOSS (a loss), KIND (a regulariser), choose (a branching rule) and "
                "separate (a separator), so that it enters none of these",
                "warning",
            )
        for what, table in tables:
            if not hasattr(module, what):
                continue
            name = getattr(getattr(module, what), "name", module.__name__.replace("_", "-"))
            if table.setdefault(name, module.__name__) != module.__name__:
                raise UsageError(f"--module {text}: the name {name!r} is that of {table[name]}; give yours another one")


class Scaling(enum.StrEnum):
    """How the columns are scaled before training."""

    none = "none"
    standard = "standard"
    unit = "unit"


DataFile = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="An svmlight, CSV, Parquet or npz file, or a column store.", show_default=False
    ),
]
ResultFile = Annotated[
    str,
    typer.Argument(
        metavar="RESULT.json",
        help="What `mipfs solve --json` wrote, or a point of a path: path.json#best, path.json#M=4,C=0.1.",
        show_default=False,
    ),
]
Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write JSON to FILE; - is standard output.")]
Report = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="Write an HTML page that shows all of it to FILE.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and what --json - asks for.")]
UnknownWords = Annotated[
    Unknown,
    typer.Option("--unknown", help="What a word is that training did not see: an error, or none of the known ones."),
]


def _begin_total(context: typer.Context, seconds: float | None) -> float | None:
    """Let the total of a command begin, until the command ends."""
    if seconds is not None:
        from mipfs.plumbing import total_limit

        context.call_on_close(total_limit.end)
        total_limit.begin(seconds)
    return seconds


TotalLimit = Annotated[
    float | None,
    typer.Option(
        "--total-limit",
        metavar="S",
        help="End the whole command after S seconds, as by Ctrl-C, with all that it has by then.",
        callback=_begin_total,
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of every random choice.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="N", help="Fits side by side [default: as many as there are cores].", show_default=False
    ),
]
Scale = Annotated[
    Scaling | None, typer.Option("--scale", help="Scaling of the columns; the data's own by default, or none.")
]
Label = Annotated[str | None, typer.Option("--label", metavar="COLUMN", help="The label column of a table.")]
Positive = Annotated[str | None, typer.Option("--positive", metavar="LABEL", help="The label that counts as +1.")]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="NAMES", help="Columns of a table to leave out, separated by commas."),
]
Use = Annotated[
    list[str] | None, typer.Option("--use", metavar="NAMES", help="The columns of a table that alone are features.")
]
Impute = Annotated[
    list[str] | None,
    typer.Option(
        "--impute",
        metavar="HOW",
        help="What missing values become: median, most frequent or level; also by column: median,home=level.",
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--types",
        metavar="NAME=KIND",
        help="Columns of dates, currency, percent or decimal commas, such as paid=currency,opened=date.",
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing", metavar="MARKS", help="Cells of a table that stand for a missing value too, such as -,-999."
    ),
]
Checks = Annotated[
    bool | None,
    typer.Option(
        "--checks/--no-checks",
        help="Warn of columns that separate the classes alone, are constant or copies, and of rows that repeat.",
        show_default=False,
    ),
]
FoldsBy = Annotated[
    str | None,
    typer.Option(
        "--folds-by",
        metavar="COLUMN",
        help="What belongs together, such as a patient: no fold takes it apart, and it is no feature.",
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Option(
        "--words", metavar="NAMES", help="Columns of words that stay although they tell rows apart, as IDs do."
    ),
]
Given = Sequence[str] | None
"""What an option says that may be given several times."""
Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="KEY=VALUE", help="M, C, lambda, loss, bias, class_weight, margin, measure, ..."
    ),
]
ParamM = Annotated[str | None, typer.Option("--M", metavar="M", help="At most M features, as -p M=M.")]
ParamC = Annotated[str | None, typer.Option("--C", metavar="C", help="Loss weight, as -p C=C.")]
SubjectTo = Annotated[
    str | None,
    typer.Option("--subject-to", metavar="rows.lp", help="Rows over the selection that hold too, an LP file."),
]

PARAMETERS = ("M", "C", "lam", "loss", "bias", "margin", "measure", "beta", "k", "class_weight")
"""Parameters of a problem without a formulation's name."""

MOST_DIGITS = 30
"""Digits of a whole number; Python itself refuses to read several thousand."""

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_KINDS = {
    "M": "a whole number",
    "C": "a number",
    "lambda": "a number",
    "bias": "true or false",
    "loss": "text",
    "T": "a whole number",
    "margin": "text",
    "measure": "text",
    "beta": "a number",
    "k": "a whole number",
}
"""What the parameters of our own formulations are; those of a user's formulation may be anything."""


def parse_params(given: Sequence[str]) -> dict[str, Any]:
    """Read the values of ``-p KEY=VALUE``.

    A value that looks like a number or like true/false is one, anything else is text; a parameter that we
    know must be of its kind. ``lambda`` is called ``lam`` in Python.
    """
    params: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier() or not value:
            raise UsageError(f"-p {text}: write KEY=VALUE, for example -p M=5")
        parsed, kinds = (parse_class_weight(value), ()) if key == "class_weight" else _parse(value)
        if key in _KINDS and _KINDS[key] not in kinds:
            raise UsageError(f"-p {text}: {key} must be {_KINDS[key]}")
        name = "lam" if key == "lambda" else key
        if name in params:
            raise UsageError(f"-p {text}: {key} was given twice")
        params[name] = parsed
    return params


def parse_class_weight(text: str, option: str = "-p class_weight=") -> str | dict[str, float]:
    """``balanced``, ``none``, or ``label:weight,label:weight``; `option` is for the message."""
    if text == "balanced":
        return text
    if text == "none":
        return {}
    found = dict[str, float]()
    for part in parse_names(text):
        label, colon, weight = part.rpartition(":")
        if not colon or not label or _NUMBER.fullmatch(weight.strip()) is None or label in found:
            raise UsageError(f"{option}{text}: write balanced, none, or weights such as yes:5,no:1")
        found[label] = float(weight)
    return found


def with_M_and_C(given: Sequence[str] | None, M: str | None, C: str | None) -> list[str]:
    """What ``-p`` gives, and ``--M`` and ``--C`` as that."""
    return [*(given or ()), *(f"{name}={value}" for name, value in (("M", M), ("C", C)) if value is not None)]


WHOLE = "groups"
"""The atoms that studies take by name: columns of words, and other groups of the data, are selected whole."""


def pose_problem(data: Any, params: Mapping[str, Any]) -> Any:
    """The problem of what `problem_parameters` found.

    Raises
    ------
    UsageError
        Atoms that are not `WHOLE`.
    """
    import mipfs

    atoms = params.get("atoms")
    if atoms is None:
        return mipfs.Problem(data, **params)
    if atoms != WHOLE:
        raise UsageError(
            f"atoms = {atoms!r}: a study selects features, or atoms={WHOLE}; mipfs solve takes other atoms"
        )
    return mipfs.Problem(data, **{**params, "atoms": mipfs.atoms.make(WHOLE, data)})


def problem_parameters(given: Sequence[str], command: str, *more: str) -> dict[str, Any]:
    """The keyword arguments of `mipfs.Problem`, and `more`, that ``-p`` gives; a measure brings its loss along."""
    from mipfs.formulation import ALIASES, given_twice_message
    from mipfs.plumbing.declared import shown_name

    params: dict[str, Any] = {}
    for key, value in parse_params(given).items():
        name = ALIASES.get(key, key)
        if name not in (*PARAMETERS, *more):
            known = ", ".join(shown_name(one) for one in (*PARAMETERS, *more))
            raise UsageError(f"{command} has no parameter {key!r}; it takes {known}")
        if name in params:
            raise UsageError(given_twice_message(name))
        params[name] = value
    return {"loss": "structural"} | params if "measure" in params else params


def _parse(value: str) -> tuple[Any, tuple[str, ...]]:
    """The value, and which kinds it can stand for."""
    if value in ("true", "false"):
        return value == "true", ("true or false",)
    if _INTEGER.fullmatch(value):
        return whole(value, "-p"), ("a whole number", "a number")
    if _NUMBER.fullmatch(value) and math.isfinite(float(value)):
        return float(value), ("a number",)
    return value, ("text",)


def whole(digits: str, option: str) -> int:
    """A whole number that floating point carries too."""
    if len(digits) > MOST_DIGITS:
        raise UsageError(f"{option} {digits[:MOST_DIGITS]}...: a number of {len(digits)} digits; give a smaller one")
    return int(digits)


def parse_names(text: str) -> tuple[str, ...]:
    """Feature names separated by commas; a name that holds a comma stands in double quotes."""
    try:
        return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip())
    except csv.Error as error:
        raise UsageError(f"{text!r}: write names separated by commas ({error})") from None


def read_options(
    scale: Scaling | None, label: str | None, positive: str | None, recipe: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The keyword arguments of `mipfs.read` that were given."""
    given = {"scale": scale and scale.value, "label": label, "positive": positive, **(recipe or {})}
    return {name: value for name, value in given.items() if value is not None}


def recipe_options(
    drop: Given,
    use: Given,
    impute: Given,
    types: Given,
    words: Given = None,
    missing: Given = None,
    checks: bool | None = None,
    folds_by: str | None = None,
) -> dict[str, Any]:
    """What ``--drop``, ``--use``, ``--impute``, ``--types``, ``--words`` and so on say, as `mipfs.read` takes it.

    An option that is given several times says all of it.
    """
    names = {"drop": drop, "use": use, "words": words, "missing": missing}
    found: dict[str, Any] = {key: parse_names(",".join(given)) for key, given in names.items() if given}
    for key, given in (("impute", impute), ("types", types)):
        if given:
            found[key] = _by_column(key, ",".join(given))
    more = {"checks": checks, "folds_by": folds_by}
    return found | {name: value for name, value in more.items() if value is not None}


def _by_column(option: str, text: str) -> dict[str, str]:
    """``a=x,b=y`` as a table; a value without a name is for all other columns."""
    found = dict[str, str]()
    for part in parse_names(text):
        name, equals, kind = part.rpartition("=")
        name = name.strip() if equals else "*"
        if not name or not kind.strip() or (option == "types" and not equals):
            raise UsageError(f"--{option} {text}: write NAME={'median' if option == 'impute' else 'currency'}")
        if name in found:
            raise UsageError(f"--{option} {text}: {'a kind for all columns' if name == '*' else name} is given twice")
        found[name] = kind.strip()
    return found


_RANGE = re.compile(r"(\d+):(\d+)", re.ASCII)


def parse_whole(text: str) -> Sequence[int]:
    """The values of ``--M``."""
    between = _RANGE.fullmatch(text)
    if between is not None:
        first, last = (whole(end, "--M") for end in between.groups())
        if first <= last:
            return range(first, last + 1)
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\d+", part, re.ASCII) for part in parts):
        raise UsageError(f"--M {text}: write FIRST:LAST, or whole numbers separated by commas, such as 1:30 or 1,2,5")
    return [whole(part, "--M") for part in parts]


def parse_numbers(name: str, text: str) -> list[float]:
    """The values of ``--C`` and ``--lambda``."""
    try:
        if "_" not in text:  # Python reads 1_000 as a number
            return [float(part) for part in text.split(",")]
    except ValueError:
        pass
    raise UsageError(f"--{name} {text}: write numbers separated by commas, such as 0.1,1,10")


Nonnegative = Annotated[
    str | None,
    typer.Option("--nonnegative", metavar="NAMES", help="Features whose weight is 0 or more, separated by commas."),
]
Nonpositive = Annotated[
    str | None,
    typer.Option("--nonpositive", metavar="NAMES", help="Features whose weight is 0 or less, separated by commas."),
]
WeightBounds = Annotated[
    list[str] | None,
    typer.Option(
        "--weight-bounds",
        metavar="NAME=L:U",
        help="Bounds on a weight, e.g. age=-1:2; an end may be left out; age=0.2: is 0.2 or more if selected.",
    ),
]
BoxOption = Annotated[
    float | None, typer.Option("--box", metavar="W", help="No weight is larger than W, on the scale of the data.")
]

WeightRows = Annotated[
    str | None,
    typer.Option("--weight-rows", metavar="rows.lp", help="Rows over the weights that hold too, an LP file."),
]


def with_weight_rows(problem: Problem, path: str | None) -> Problem:
    """The problem with the rows over the weights of an LP file, where one is given, on top of its own."""
    from mipfs.readers.lp_rows import read_weight_rows

    if path is None:
        return problem
    return problem.replace(weight_rows=[*problem.rows_over_weights, *read_weight_rows(path, problem.atoms.raw)])


def bound_weights(
    problem: Problem,
    nonnegative: str | None,
    nonpositive: str | None,
    bounds: Sequence[str] | None,
    box: float | None,
    *,
    positive: object,
) -> Problem:
    """The problem with the bounds that the options say, on top of the data's own.

    Raises
    ------
    UsageError
        A bound that cannot be read, or signs without `positive` where the labels are words.
    """
    from mipfs.data.bounds import both, settle_bounds
    from mipfs.readers.sidecar import DataDescription

    data = problem.data
    asked = _collect_bounds(data, nonnegative, nonpositive, bounds, box)
    if not asked:
        return problem
    if (
        isinstance(data.labels.positive, str)
        and positive is None
        and DataDescription.beside(Path(data.source)).positive is None
    ):
        raise UsageError(
            f"weights are bounded towards the class +1, and the labels are words: --positive {data.labels.positive!r} "
            f"or --positive {data.labels.negative!r} says which one that is"
        )
    checked = [settle_bounds(one, data.index, data.like, data.groups) for one in asked]
    return problem.replace(weight_bounds=both(problem.weight_bounds or {}, *checked))


def bounded_classes(
    instances: list[Instance],
    nonnegative: str | None,
    nonpositive: str | None,
    bounds: Sequence[str] | None,
    box: float | None,
) -> list[Instance]:
    """The data of every class against the rest with the bounds that the options say, on top of its own.

    A name is ``feature|class``, or that of a feature, for every class.

    Raises
    ------
    UsageError
        A bound that cannot be read.
    """
    from mipfs.data.against_rest import with_bounds

    asked = _collect_bounds(instances[0], nonnegative, nonpositive, bounds, box)
    return with_bounds(instances, *asked, on_top=True) if asked else instances


def _collect_bounds(
    data: Instance, nonnegative: str | None, nonpositive: str | None, bounds: Sequence[str] | None, box: float | None
) -> list[dict[str, tuple[float, float]]]:
    """What the options say, one after the other; nothing where there are none."""
    from mipfs.data.bounds import of_box, of_signs

    if nonnegative is None and nonpositive is None and not bounds and box is None:
        return []
    signs = of_signs(*(() if text is None else _parse_feature_names(text, data) for text in (nonnegative, nonpositive)))
    whole = {} if box is None else of_box(data.feature_names, box)
    return [signs, *map(_parse_bound, bounds or ()), whole]


def _parse_feature_names(text: str, data: Instance) -> tuple[str, ...]:
    """The names of features; the name of one that holds a comma as it is, or among others in double quotes.

    Raises
    ------
    UsageError
    """
    if text in data.index:
        return (text,)
    found = parse_names(text)
    split = [name for name in data.feature_names if "," in name and name in text and name not in found]
    if split and not all(name in data.index for name in found):
        raise UsageError(
            f"{text}: the name {split[0]!r} holds a comma; write it in double quotes, '\"{split[0]}\",...'"
        )
    return found


def _parse_bound(text: str) -> dict[str, tuple[float, float]]:
    """NAME=L:U."""
    name, equals, ends = text.rpartition("=")
    low, colon, high = ends.partition(":")
    if not (name and equals and colon):
        raise UsageError(f"--weight-bounds {text}: write NAME=L:U, for example age=-1:2, age=0: or age=:2")
    try:
        return {name.strip(): (float(low or -math.inf), float(high or math.inf))}
    except ValueError:
        raise UsageError(f"--weight-bounds {text}: {ends!r} is no pair of numbers L:U") from None
