"""Readers: from a file, and the .toml beside it, to an `Instance`. Errors name file and line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data import checks
from mipfs.data.bounds import WeightBounds, by_class, of_class
from mipfs.data.frames import as_frame, as_rows, is_frame
from mipfs.data.instance import SCALINGS, Instance, Labels, Scaling
from mipfs.data.names import Numbered, NumberedIndex
from mipfs.data.over_weights import WeightRow
from mipfs.data.recipe import Prepared, Recipe
from mipfs.data.rules import KNOWN_RULES, RULES
from mipfs.data.table_reading import StatedWords
from mipfs.errors import DataError, UsageError
from mipfs.plumbing.declared import check_arguments
from mipfs.readers.beside import check_count, read_names, where_named
from mipfs.readers.columns import BAG, LABEL, PLAIN, Label, RecipeInUse, Table, again, without_ids
from mipfs.readers.csv_file import read_csv
from mipfs.readers.files import Width, format_of
from mipfs.readers.frames import FRAME, from_frame
from mipfs.readers.labels import EveryClass, KnownLabels, apply_known, apply_labels, map_labels, sign_labels
from mipfs.readers.select_rows import read_select
from mipfs.readers.sidecar import DataDescription
from mipfs.readers.store import open_store
from mipfs.readers.together import column_alone, read_quietly, split_of

__all__ = ["read", "read_as", "read_classes", "read_new"]


# Who checks a file of one format needs no other's reader.
def _read_npz(*given: Any) -> Table:
    from mipfs.readers.npz import read_npz

    return read_npz(*given)


def _read_parquet(*given: Any) -> Table:
    from mipfs.readers.parquet import read_parquet

    return read_parquet(*given)


READERS: dict[str, Callable[..., Table]] = {"csv": read_csv, "parquet": _read_parquet, "npz": _read_npz}
"""What reads a file whose labels stand in a column: path, label, and whether it must have labels. By `format_of`."""
PREPARED = "csv", "parquet"
"""Formats of raw tables, whose readers are also told what is done to these."""


@check_arguments
def read(
    path: Any,
    scale: Scaling | None = None,
    label: Any = None,
    positive: str | float | bool | None = None,
    n_features: Width | None = None,
    words: Sequence[str] | None = None,
    *,
    drop: Any = None,
    use: Any = None,
    impute: Any = None,
    types: Mapping[str, str] | None = None,
    missing: Any = None,
    checks: bool | None = None,
    folds_by: str | None = None,
    rules: int | None = None,
) -> Instance:
    """Read a data file and the .toml of the same stem beside it, or a data frame.

    Parameters
    ----------
    path : path-like, or a data frame of pandas, polars, Arrow or another kind that has `to_pandas`
        Rows as a list of dicts, and a dict of columns, are a data frame too. It is read as a CSV file is: a column of
        words (or of pandas's categories) makes a feature of each word, a column ``bag`` or ``sample_weight`` is none. A
        file is svmlight (.svm, .svmlight, .libsvm, .txt, .binary or no suffix) or CSV (.csv, .tsv), each also with .gz
        or .bz2; Parquet (needs the extra ``parquet``); npz, with its labels inside or in ``y.npy`` beside it; or the
        folder that `mipfs convert` made, of which nothing is read before it is needed. Names of features that svmlight
        and npz lack are the lines of ``names.txt`` in the same folder, where there is one.
    scale : {"none", "standard", "unit"}, optional
        Default: ``[data] scale`` of the .toml, otherwise ``none``. ``standard``: mean 0, divisor n, constant
        columns left as they are; ``unit``: each column divided by its norm.
    label : str, optional
        The label column of a data frame (whose names may be numbers), CSV and Parquet (default ``label``) or array of
        npz (default ``y``), which may stand in a file of its own, ``y.npy``.
    positive : str or number, optional
        The label that becomes +1. Default: ``[data] positive`` of the .toml; else the larger number; else a word such
        as yes, true, bad, default or malignant (`mipfs.readers.labels.WORDS`); else the rarer class; else the last in
        sorted order.
    n_features : int, optional
        For svmlight: how many features there are, when the largest index is not the last of them.
    words : sequence of str, optional
        Columns of words that are features although they differ in most rows, as IDs do, which are left out otherwise;
        default: ``[data] words`` of the .toml.
    drop : sequence of str, optional
        Columns of a table that are left out. Default: ``[data] drop`` of the .toml.
    use : sequence of str, optional
        Columns of a table that alone are features, all others being left out. Default: ``[data] use`` of the .toml.
    impute : {"median", "most frequent", "level"}, or mapping of a column, or "*" for the others, to one; optional
        What missing values of a table become: the median of a column of numbers (of one of words the most frequent
        word), the most frequent value, or, of words, a level of their own, ``missing``, and of numbers the median with
        a feature ``column=missing`` beside. They are an error elsewhere. Folds fill in by their training part alone.
        Default: ``[data] impute`` of the .toml.
    types : mapping of column to kind, optional
        Columns of which cells are read as numbers: "date" (days since 1970), "date d/m/y", "date m/d/y", "currency",
        "percent", "decimal comma" (`mipfs.readers.typed`). Default: ``[data] types`` of the .toml.
    missing : sequence of str or numbers, optional
        Cells of features that stand for a missing value too, such as "-" and -999, in any case; empty, ?, NA, n/a, NaN
        and null always do. Default: ``[data] missing`` of the .toml.
    checks : bool, optional
        Whether a `SuspectWarning` says what is seldom meant: a column that separates the classes alone, constant and
        duplicate columns, duplicate rows. Default: ``[data] checks`` of the .toml, otherwise True.
    folds_by : str, optional
        A column that says which samples belong together, such as those of a patient: no fold, and no draw of
        `mipfs.stability`, takes them apart. It is no feature, but where `use` names it; of svmlight, npz and stores it
        is one of the features, or ``bag``.
    rules : int, optional
        The version of the rules of reading, `Result.rules` of an earlier one that is to be verified. Default: today's.

    Returns
    -------
    Instance

    Raises
    ------
    DataError
        Anything wrong with the files: it names file, line and remedy.
    MissingExtraError
        A Parquet file without pyarrow.
    UsageError
        A parameter that is unknown, or that the format does not take.

    Warns
    -----
    DataWarning
        Columns that are hardly features, decimal commas; or no scale was asked for, and the norms of the columns are
        a thousandfold apart. A `SuspectWarning`, which is one too: see `checks`.

    Examples
    --------
    >>> data = read("instances/wdbc.svm", scale="standard")
    >>> data.n_samples, data.n_features, data.feature_names[0]
    (569, 30, 'mean radius')
    """
    given = {"drop": drop, "use": use, "impute": impute, "types": types, "missing": missing}
    if rules is not None and rules not in KNOWN_RULES:
        raise UsageError(f"rules = {rules!r} are unknown; they are one of {', '.join(map(str, KNOWN_RULES))}")
    looks = True, checks
    return _read(path, given, scale, label, positive, n_features, words, looks=looks, rules=rules, folds_by=folds_by)


def read_as(path: Any, recipe: Recipe, **given: Any) -> Instance:
    """Read data that was prepared by a recipe, whatever the .toml beside it asks for; else as `read`.

    ``words`` may be what a result says of its columns of words (`StatedWords`), which the rules are applied to.
    """
    return _read(path, recipe, **given)


def read_classes(path: Any, recipe: Recipe | Mapping[str, Any], **given: Any) -> list[Instance]:
    """The data of every class against the rest; else as `read`, `recipe` as of `read_as`, or in parts as of `read`.

    Raises
    ------
    UsageError
        Two classes only, or a column store, which has two.
    """
    path = _rows_of(path)
    if not is_frame(path) and format_of(Path(path)) == "store":
        raise UsageError(f"{path}: a column store has two classes")
    parts = {"drop": None, "use": None, "impute": None, "types": None, "missing": None}
    every = EveryClass()
    asked = recipe if isinstance(recipe, Recipe) else {**parts, **recipe}
    first = _read(path, asked, **{**given, "positive": every})
    if len(every.classes) < 3:
        raise UsageError(f"{path}: the labels are of two classes; one against the rest is for more")
    labels = [every.labels(k) for k in range(len(every.classes))]
    return [
        replace(first, y=every.signs(k), labels=one, weight_bounds=of_class(every.bounds, first.index, one.positive))
        for k, one in enumerate(labels)
    ]


def _read(
    path: Any,
    recipe: Recipe | Mapping[str, Any],
    scale: Scaling | None = None,
    label: Any = None,
    positive: Any = None,
    n_features: int | None = None,
    words: Sequence[str] | StatedWords | None = None,
    *,
    looks: tuple[bool, bool | None] = (False, None),
    rules: int | None = None,
    folds_by: str | None = None,
) -> Instance:
    """What `read` says; of a recipe in parts the .toml says what is None, `words` as of `read_as`.

    `looks`: whether it is looked for what is suspect where nobody says, and what is said. `rules`: None for today's.
    """
    frame, path, label = _resolve_source(path, label)
    _check_asked(frame, path, scale, n_features)
    sidecar = DataDescription(path) if frame is not None else DataDescription.beside(path)
    asked_words = sidecar.words if words is None else words
    meant = asked_words.kept if isinstance(asked_words, StatedWords) else tuple(asked_words)
    if frame is None and format_of(path) == "store":
        asked_recipe = _of_store(path, recipe)
    else:
        asked_recipe = recipe if isinstance(recipe, Recipe) else _combined_recipe(recipe, sidecar)
    is_table = frame is not None or format_of(path) in PREPARED
    other, sidecar = None, replace(sidecar, left_out=asked_recipe.drop, used=asked_recipe.use)
    if folds_by is not None and is_table and folds_by != BAG:
        alone = column_alone(folds_by, RULES if rules is None else rules)
        other = read_quietly(lambda: _read_table(frame, path, sidecar, label, None, alone)[0], path)
        asked_recipe, sidecar = asked_recipe.without(folds_by), replace(sidecar, folds_by=folds_by)
    preparing = RecipeInUse(asked_recipe, meant=meant, rules=RULES if rules is None else rules)
    table, names = _read_table(frame, path, sidecar, label, n_features, preparing)
    reading = table.reading
    if is_table:
        if words is None:
            sidecar.check_words(table.groups)
        table, names, reading = without_ids(table, names, asked_words, preparing.recipe.use or (), path)
    index = NumberedIndex(names) if isinstance(names, Numbered) else {name: j for j, name in enumerate(names)}
    asked = sidecar.positive if positive is None else positive
    y, labels = map_labels(table, asked, path) if table.signs is None else sign_labels(table, positive, path)
    groups = _column_groups(table.groups, sidecar, index)
    cost = sidecar.costs(index, groups)
    select, rows = read_select(sidecar, index, cost, groups)
    instance = Instance.from_arrays(
        table.X,
        y,
        feature_names=names,
        scale=scale or sidecar.scale or "none",
        sample_weight=table.sample_weight,
        labels=labels,
        cost=cost,
        penalty=sidecar.amounts("penalty", index),
        weight_bounds=_weight_bounds(sidecar, index, groups, asked, labels),
        weight_rows=_weight_rows(sidecar, index, asked),
        groups=groups,
        rows=rows,
        select=select,
        bags=table.bags,
        source=str(path),
        label=table.label,
        words=table.words,
        rules=preparing.rules,
    )
    recipe = table.recipe or preparing.recipe
    instance = _describe_instance(
        replace(instance, reading=reading), sidecar, recipe, table, isinstance(positive, EveryClass)
    )
    if folds_by is not None:
        instance = replace(instance, split=split_of(instance, other, folds_by))
    if scale is None and sidecar.scale is None and instance.block().is_stored:
        _advise_scale(instance, names, path)
    _say_suspects(instance, path, sidecar.checks, *looks)
    return instance


def _say_suspects(instance: Instance, path: Any, stated: bool | None, is_looked: bool, said: bool | None) -> None:
    """Say what is suspect of the data, where it is looked for that and neither the .toml nor the caller forbids it."""
    if is_looked and (stated if said is None else said) is not False:
        from mipfs.data.suspects import warn_of_suspects  # what verifies looks for none

        warn_of_suspects([instance], str(path), stacklevel=6)  # through `read` and what declares it


def _advise_scale(instance: Instance, names: Sequence[str], path: Any) -> None:
    from mipfs.readers.advice import advise_scale

    advise_scale(instance.block().values, names, path)


def _resolve_source(path: Any, label: Any) -> tuple[Any, Any, str | None]:
    """The data frame, or None; the path, or what stands for one; and the name of the column of labels as a string."""
    path = _rows_of(path)
    frame, path = (path, FRAME) if is_frame(path) else (None, _path_of(path))
    if label is not None and not isinstance(label, (str, int, np.integer)):
        raise UsageError(f"label is a {type(label).__name__}; give the name of the column of labels")
    return frame, path, None if label is None else str(label)  # pandas numbers columns without names


def _rows_of(given: Any) -> Any:
    """A data frame of whatever has rows and columns by name; a pandas series, which has one row, as it is."""
    return as_rows(given) if isinstance(given, (Mapping, list, tuple)) else as_frame(given)


def _check_asked(frame: Any, path: Any, scale: Scaling | None, n_features: int | None) -> None:
    """Refuse a scaling that is none, and a number of features for what says its own."""
    if scale is not None and scale not in SCALINGS:
        raise UsageError(f"scale = {scale!r} is unknown; it is one of {', '.join(SCALINGS)}")
    if n_features is not None and (frame is not None or format_of(path) != "svmlight"):
        raise UsageError(f"n_features = {n_features}: only svmlight leaves the number of features open")


def _read_table(
    frame: Any, path: Any, sidecar: DataDescription, label: str | None, n_features: int | None, preparing: RecipeInUse
) -> tuple[Table, Sequence[str]]:
    """The table of a data frame or a file with its labels, and the names of its features."""
    if frame is None:
        return _load(path, sidecar, label, n_features, labelled=True, preparing=preparing)
    table = from_frame(frame, label, preparing=preparing)
    assert table.names is not None
    return table, checks.feature_names(table.names, table.X.shape[1], str(path))


def _weight_bounds(
    sidecar: DataDescription,
    index: Mapping[str, int],
    groups: Mapping[str, tuple[str, ...]],
    asked: Any,
    labels: Labels,
) -> WeightBounds:
    """The bounds of the .toml; of the classes one against the rest they stand in `asked`, each with its own."""
    if not isinstance(asked, EveryClass):
        return sidecar.weight_bounds(index, groups, asked is None and isinstance(labels.positive, str))
    if sidecar.tables.get("weights"):
        asked.bounds = sidecar.weight_bounds(by_class(index, asked.classes), groups, False)
    return {}


def _weight_rows(sidecar: DataDescription, index: Mapping[str, int], asked: Any) -> tuple[WeightRow, ...]:
    """The rows over the weights of the .toml, which are about two classes."""
    found = sidecar.weight_rows(index)
    if found and isinstance(asked, EveryClass):
        remedy = "leave them out, or give weight_rows to FSPClassifier, where they hold for every class"
        sidecar.fail("[[weights.rows]] are about two classes, and there are more", remedy, "weights", "rows")
    return found


def _path_of(given: Any) -> Path:
    """The path of a file that is to be read."""
    if isinstance(given, (str, os.PathLike)):
        return Path(given)
    kind = type(given).__name__
    raise UsageError(f"a {kind} cannot be read, only a file or a data frame; Instance.from_arrays(X, y) takes arrays")


def check_description(
    sidecar: DataDescription, names: Sequence[str] | None, p: int, columns: Mapping[str, Sequence[str]], recipe: Recipe
) -> None:
    """Refuse a description that does not fit the features of a table, before these are written as a store.

    Parameters
    ----------
    sidecar : DataDescription
    names : of the features; None where they have numbers alone
    p : how many there are
    columns : the columns of words, each with its features
    recipe : what was done to the table, which says what became of a column that is no feature

    Raises
    ------
    DataError
        As `read` of the store would, but for what the labels have to do with.
    """
    sidecar = replace(sidecar, left_out=recipe.drop, used=recipe.use)
    found = checks.feature_names(names, p, str(sidecar.path))
    index = NumberedIndex(found) if isinstance(found, Numbered) else {name: j for j, name in enumerate(found)}
    groups = _column_groups({name: tuple(members) for name, members in columns.items()}, sidecar, index)
    read_select(sidecar, index, sidecar.costs(index, groups), groups)
    sidecar.amounts("penalty", index)
    sidecar.weight_bounds(index, groups, False)
    sidecar.weight_rows(index)


def _column_groups(
    columns: Mapping[str, tuple[str, ...]], sidecar: DataDescription, index: Mapping[str, int]
) -> dict[str, tuple[str, ...]]:
    """The columns of words, and what the description groups."""
    groups = dict(columns)
    for name, members in sidecar.groups(index).items():
        if name in groups:
            sidecar.fail(f"[groups] {name!r} is a column of words, a group already", "rename it", "groups", name)
        groups[name] = members
    return groups


def _describe_instance(
    instance: Instance, sidecar: DataDescription, recipe: Recipe, table: Table, several: bool
) -> Instance:
    """With class weights that the description asks for, of `several` classes unchecked, and what was done to it."""
    try:
        if not several:
            instance.class_weights(sidecar.class_weight)
    except UsageError as error:
        sidecar.fail(f"[data] {error}", "name one of them", "data", "class_weight")
    prepared = Prepared(recipe, table.filled).over(instance.index) if recipe else None
    if prepared is None and sidecar.class_weight is None:
        return instance
    return replace(instance, class_weight=sidecar.class_weight, prepared=prepared)


def read_new(
    path: Any,
    *,
    names: Sequence[str] = (),
    n_features: int | None = None,
    labels: Labels | KnownLabels | None = None,
    label: str | None = None,
    remembered: str | None = None,
    recipe: Mapping[str, Any] | None = None,
) -> Instance:
    """Read data to predict or to evaluate with a classifier that was trained before.

    Nothing is scaled, no rows are read, and one class alone will do.

    Parameters
    ----------
    path : path-like, or a data frame
    names : sequence of str
        The features the classifier uses: ``column=word`` becomes a column of zeros where the file has the
        column of words but never that word.
    n_features : int, optional
        For svmlight: the number of features in training; larger indices are an error.
    labels : Labels, optional
        The classes of the classifier, for an evaluation; without it labels are ignored and y is NaN.
    label : str, optional
        As in `read`.
    remembered : str, optional
        The label column of the training data: that of this file too, if it has one of that name.
    recipe : mapping, optional
        What was done to the training data, as the JSON of a result states it: it is done to this table too.

    Raises
    ------
    DataError
        As in `read`; also a label that is neither of the two.
    """
    preparing, path = again(recipe, names), as_rows(path)
    asked = label, remembered, labels is not None, n_features
    try:
        path, table, found = _new_table(path, *asked, preparing)
    except DataError:  # what the classifier does not look at may hold anything
        path, table, found = _new_table(path, *asked, replace(preparing, narrow=True))
    if isinstance(labels, KnownLabels):
        if table.signs is not None:
            raise UsageError(f"{path}: a column store has two classes")
        labels.take(table, Path(path))
        labels = None
    if labels is None:
        y = np.full(table.X.shape[0], np.nan)
    else:
        y = apply_labels(table, labels, path) if table.signs is None else apply_known(table, labels, path)
    known = set(found)
    absent = [name for name in names if name not in known and "=" in name and name.partition("=")[0] in table.groups]
    X = table.X
    if absent:
        zeros = sparse.csc_array((X.shape[0], len(absent)))
        X = sparse.hstack([X, zeros], format="csc") if sparse.issparse(X) else np.hstack([X, zeros.toarray()])
    return Instance.from_arrays(
        X,
        y,
        feature_names=[*found, *absent],
        labels=labels,
        sample_weight=table.sample_weight,
        bags=table.bags,
        source=str(path),
        training=False,
        label=table.label,
        words=table.words,
    )


def _new_table(
    given: Any,
    label: str | None,
    remembered: str | None,
    labelled: bool,
    n_features: int | None,
    preparing: RecipeInUse,
) -> tuple[Path, Table, Sequence[str]]:
    """The path of new rows, or what stands for one, their table, and the names of its features."""
    if is_frame(given):
        table = from_frame(given, remembered if label is None else label, labelled, preparing)
        return FRAME, table, checks.feature_names(table.names, table.X.shape[1], str(FRAME))
    path = Path(given)
    return path, *_load(path, DataDescription.beside(path), label, n_features, labelled, remembered, preparing)


def _combined_recipe(given: Mapping[str, Any], sidecar: DataDescription) -> Recipe:
    """The recipe that is asked for, in parts, on top of what the .toml says."""
    return Recipe.of(**{name: sidecar.recipe[name] if value is None else value for name, value in given.items()})


def _of_store(path: Path, recipe: Recipe | Mapping[str, Any]) -> Recipe:
    """The recipe of a store, which `mipfs convert` has carried out; another one is refused."""
    prepared = open_store(path).prepared
    done = Recipe() if prepared is None else prepared.recipe
    asked = recipe if isinstance(recipe, Recipe) else Recipe.of(**recipe)
    named = [name for name, value in asked.document().items() if value and value != done.document().get(name)]
    if named:
        raise UsageError(
            f"{named[0]}: {path.name} is a column store, whose table was prepared when it was made; give it to "
            "`mipfs convert`, or leave it out"
        )
    return done


def _open_store(path: Path, label: str | None) -> tuple[Table, Sequence[str]]:
    """The contents of a column store, and the names of its features."""
    store = open_store(path)
    if label not in (None, store.label):
        raise UsageError(f"label = {label!r}: the labels of a store were chosen by `mipfs convert --label`")
    p = store.X.shape[1]
    names = None if store.names is None else tuple(store.names)
    table = Table(
        store.X, None, names, store.groups, store.bags, store.sample_weight, label=store.label,
        signs=(store.y, store.labels), filled=() if store.prepared is None else store.prepared.filled,
        recipe=None if store.prepared is None else store.prepared.recipe, reading=store.reading, others=store.others,
    )  # fmt: skip
    return table, checks.feature_names(names, p, str(path))


def _load(
    path: Path,
    sidecar: DataDescription,
    label: str | None,
    n_features: int | None,
    labelled: bool,
    remembered: str | None = None,
    preparing: RecipeInUse = PLAIN,
) -> tuple[Table, Sequence[str]]:
    """The contents of a file and the names of its features."""
    kind = format_of(path)
    given = sidecar.names
    stated = None
    if preparing.recipe and preparing.known is None and kind not in (*PREPARED, "store"):
        what = next((name for name, value in preparing.recipe.document().items() if value), "use")
        raise UsageError(f"{what}: {path.name} is no table of named columns; CSV, Parquet and data frames are prepared")
    if kind == "store":
        return _open_store(path, label)
    column: Label = label
    if label is None:
        default = sidecar.label or ("y" if kind == "npz" else LABEL)
        column = default if remembered is None else (remembered, default)
    if kind == "svmlight":
        from mipfs.readers.svmlight import read_svmlight

        if label is not None:
            raise UsageError(f"label = {label!r}: the labels of an svmlight file stand first on each line")
        if given is not None and n_features is not None and len(given) != n_features:
            message = f"[features] has {len(given)} names, but {n_features} features are asked for"
            sidecar.fail(message, "make the two agree", "features", "names")
        stated = read_names(path) if given is None else None
        if stated is not None and n_features is not None:
            check_count(path, stated, n_features)
        asked = given if given is not None else stated
        width = n_features if asked is None else len(asked)
        named_in = where_named(path, given, stated)
        table = read_svmlight(path, width, beyond=preparing.is_new, named_in=named_in, labelled=labelled)
    else:
        table = READERS[kind](path, column, labelled, *([preparing] if kind in PREPARED else []))
        stated = read_names(path) if kind == "npz" and given is None and table.names is None else None
    if stated is not None:
        check_count(path, stated, table.X.shape[1])
        table = replace(table, names=stated)
    if given is not None and table.names is not None and tuple(given) != table.names:
        message = "[features] names differ from those in the data file"
        sidecar.fail(message, "leave the list out: the data file names its features", "features", "names")
    names = tuple(given) if given is not None else table.names
    p = table.X.shape[1]
    if given is not None and len(given) != p:
        message = f"[features] has {len(given)} names for {p} features"
        sidecar.fail(message, "give one name per feature", "features", "names")
    return table, checks.feature_names(names, p, str(path))
