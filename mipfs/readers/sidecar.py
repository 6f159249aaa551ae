"""The .toml beside the data: what it is, what its features are called and cost, what a selection must obey."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Never, cast

from mipfs.data.bounds import WeightBounds, both, of_box, of_signs, settle_bounds
from mipfs.data.classes import ClassWeight, checked_weights
from mipfs.data.instance import SCALINGS, Scaling, misspelling_hint
from mipfs.data.over_weights import WeightRow
from mipfs.data.over_weights import check_weight_rows as rows_over
from mipfs.data.recipe import Recipe
from mipfs.errors import DataError, UsageError
from mipfs.readers.columns import which_words
from mipfs.readers.files import description_of, opened

TABLES: dict[str, tuple[str, ...] | None] = {
    "data": (
        "label",
        "positive",
        "scale",
        "words",
        "drop",
        "use",
        "impute",
        "types",
        "missing",
        "checks",
        "class_weight",
        "source",
        "licence",
    ),
    "features": ("names",),
    "cost": None,
    "penalty": None,
    "groups": None,
    "select": (
        *("M", "words", "budget", "forced_in", "forced_out"),
        *("implies", "conflicts", "at_most", "at_least", "exactly"),
    ),
    "weights": ("nonnegative", "nonpositive", "bounds", "box", "rows"),
    "generator": None,  # how a made instance was made: for the reader of the file, not for us
}
"""The tables of a description and their keys; None where the keys are names."""


_APART = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|'
    r"'''.*?'''"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'|#[^\n]*+",
    re.DOTALL,
)
"""Texts and comments of TOML, in which a dot separates nothing."""
MOST_DOTS = 16
"""Of a key. TOML's reader keeps every beginning of a dotted key, so that one of 60 kB takes gigabytes."""
_DOTTED = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MOST_DOTS + 1}}}")


def nameable_items(features: Mapping[str, int], groups: Mapping[str, tuple[str, ...]]) -> Mapping[str, Any]:
    """What a rule may name: a feature or, where none is called so, a group."""
    return ChainMap({}, features, groups)  # type: ignore[arg-type]  # ChainMap writes to the first alone


def _check_dots(text: str) -> None:
    """Refuse keys of more parts than any table has, before they are read.

    Raises
    ------
    ValueError
    """
    if _DOTTED.search(_APART.sub(lambda found: "" if found[0].startswith("#") else "s", text)):
        raise ValueError(f"a key has more than {MOST_DOTS} dots")


def _check_numbers(tables: dict[str, Any]) -> None:
    """Refuse whole numbers beyond floating point, of which Python does not even write the digits.

    Raises
    ------
    ValueError
    """
    left: list[Any] = [tables]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list):
            left += one
        elif isinstance(one, int) and abs(one) > sys.float_info.max:
            raise ValueError(f"a number of {one.bit_length()} bits is beyond floating point")


@dataclass(frozen=True)
class DataDescription:
    """A description, checked as far as it can be without the names of the features.

    Attributes
    ----------
    path : Path
    text : str, the file as it stands, to find lines in
    tables : mapping of table name to its contents
    left_out : sequence of str, columns that are no features because somebody drops them
    folds_by : str or None, the column that is no feature because it says what belongs together
    used : sequence of str, or None: the columns that alone are features, where somebody says so
    """

    path: Path
    text: str = ""
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: Sequence[str] = ()
    folds_by: str | None = None
    used: Sequence[str] | None = None

    @classmethod
    def beside(cls, data: Path) -> DataDescription:
        """The description of a data file; an empty one where there is no file.

        Raises
        ------
        DataError
            Not TOML, an unknown table or key, a value of the wrong kind; with the line where it is found.
        """
        path = description_of(data)
        if not os.path.exists(path):
            return cls(path)
        with opened(path) as stream:
            raw = stream.read()
        try:
            text = raw.decode("utf-8-sig")
            _check_dots(text)
            tables = tomllib.loads(text)
            _check_numbers(tables)
        except UnicodeDecodeError:
            raise DataError("not a text file in UTF-8", "save it as UTF-8", path=path) from None
        except tomllib.TOMLDecodeError as error:
            place = re.search(r"\(at line (\d+), column \d+\)", str(error))
            reason = str(error) if place is None else str(error)[: place.start()].strip()
            line = text.count("\n") + 1 if place is None else int(place[1])
            raise DataError(f"not TOML: {reason}", "correct the line", path=path, line=line) from None
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, a list of thousands of lists
            raise DataError(f"not TOML: {error}", "write ordinary values", path=path) from None
        found = cls(path, text, tables)
        found._check()
        return found

    @property
    def label(self) -> str | None:
        """The name of the label column."""
        return cast(str | None, self._entry_of("data", "label"))

    @property
    def positive(self) -> str | float | None:
        """The label that becomes +1."""
        return cast(str | float | None, self._entry_of("data", "positive"))

    @property
    def scale(self) -> Scaling | None:
        """The scaling that the data asks for."""
        return cast(Scaling | None, self._entry_of("data", "scale"))

    def with_scale(self, scale: Scaling) -> str:
        """The text of this description with `scale` as that of the data.

        Raises
        ------
        DataError
            `[data]` is written in a way in which no line can be changed by itself.
        """
        stated = self.tables.get("data", {})
        line = f'scale = "{scale}"'
        if "scale" in stated:
            text = re.sub(r"(?m)^[ \t]*scale[ \t]*=[^\r\n]*", line, self.text, count=1)
        elif "data" in self.tables:
            text = re.sub(r"(?m)^[ \t]*\[[ \t]*data[ \t]*\][^\r\n]*", rf"\g<0>\n{line}", self.text, count=1)
        else:
            text = f"{self.text}\n[data]\n{line}\n".lstrip()
        try:
            is_meant = tomllib.loads(text) == self.tables | {"data": stated | {"scale": scale}}
        except tomllib.TOMLDecodeError:
            is_meant = False
        if not is_meant:
            self.fail("the scale cannot be written into it", f"write {line} into its [data]", "data", "scale")
        return text

    @property
    def words(self) -> list[str]:
        """The columns of words that are features although they tell rows apart."""
        return cast(list[str], self._entry_of("data", "words") or [])

    @property
    def checks(self) -> bool | None:
        """Whether it is said what is suspect of the data."""
        return cast(bool | None, self._entry_of("data", "checks"))

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """What it says of a raw table: drop, use, impute, types and missing, as `Recipe.of` takes them."""
        found = {key: self._entry_of("data", key) for key in ("drop", "use", "impute", "types", "missing")}
        for key, value in found.items():
            try:
                Recipe.of(**{key: value})
            except UsageError as error:
                self.fail(f"[data] {error}", "correct it", "data", key)
        return found

    @cached_property
    def class_weight(self) -> ClassWeight | None:
        """The weights of the classes."""
        try:
            return checked_weights(self._entry_of("data", "class_weight"))
        except UsageError as error:
            self.fail(f"[data] {error}", "correct it", "data", "class_weight")

    @property
    def names(self) -> list[str] | None:
        """The names of the features, where the data does not carry them itself."""
        return cast(list[str] | None, self._entry_of("features", "names"))

    def amounts(self, table: str, features: Mapping[str, Any]) -> dict[str, float]:
        """The numbers >= 0 of ``[cost]`` or ``[penalty]``, by the names that may stand there."""
        found = {}
        for name, value in self.tables.get(table, {}).items():
            if isinstance(value, dict):
                self.fail(f"[{table}] {name!r} is a table", "quote a name that has a dot", table, name)
            self.check_features([name], features, table, name)
            found[name] = self.number(value, f"[{table}] {name!r}", table, name)
        return found

    def costs(self, features: Mapping[str, int], groups: Mapping[str, tuple[str, ...]]) -> dict[str, float]:
        """The numbers >= 0 of ``[cost]``, by feature or group."""
        return self.amounts("cost", nameable_items(features, groups))

    def groups(self, features: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
        """The lists of feature names of ``[groups]``."""
        found = {}
        for name, value in self.tables.get("groups", {}).items():
            members = self.name_list(value, f"[groups] {name!r}", "groups", name)
            self.check_features(members, features, "groups", name)
            found[name] = tuple(members)
        return found

    def weight_bounds(
        self, features: Mapping[str, int], groups: Mapping[str, tuple[str, ...]], named: bool
    ) -> WeightBounds:
        """The bounds of ``[weights]``; `named`: whether the labels are words of which nobody said which one is +1."""
        content = self.tables.get("weights", {})
        if content and named:
            self.fail(
                "[weights] bounds weights towards the class +1, and the labels are words",
                "write under [data] positive = the word that is +1",
                "weights",
            )
        known = nameable_items(features, groups)
        signs = {key: self.feature_list(known, "weights", key) for key in ("nonnegative", "nonpositive")}
        given = content.get("bounds", {})
        if not isinstance(given, dict):
            self.fail(f"[weights] bounds is {given!r}", "write bounds = { age = [0.0, 2.0] }", "weights", "bounds")
        try:
            parts = of_signs(**signs), given
            asked = [
                settle_bounds(one, features, lambda name: self._unknown_hint(name, known), groups) for one in parts
            ]
            whole = of_box(list(features), content["box"]) if "box" in content else {}
            return both(*asked, whole)
        except UsageError as error:
            self.fail(f"[weights] {error}", "correct it", "weights", "bounds" if "bounds" in content else "box")

    def weight_rows(self, features: Mapping[str, int]) -> tuple[WeightRow, ...]:
        """The rows over the weights of ``[[weights.rows]]``."""
        given = self.tables.get("weights", {}).get("rows", [])
        shown = "write [[weights.rows]] coefficients = { a = 1.0, b = -1.0 }, lower = 0.0, upper = 1.0"
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            self.fail(f"[weights] rows is {given!r}", shown, "weights", "rows")
        for one in given:
            if "coefficients" not in one or not {*one} <= {"coefficients", "lower", "upper"}:
                self.fail(f"[[weights.rows]] has the keys {[*one]}", shown, "weights", "rows")
        asked = [(one["coefficients"], one.get("lower"), one.get("upper")) for one in given]
        try:
            return rows_over(asked, features, lambda name: self._unknown_hint(name, features))
        except UsageError as error:
            self.fail(f"[[weights.rows]]: {error}", "correct it", "weights", "coefficients")

    def feature_list(self, features: Mapping[str, Any], table: str, key: str) -> list[str]:
        """A list of features, empty where there is none."""
        given = self.tables.get(table, {}).get(key, [])
        found = [] if given == [] else self.name_list(given, f"[{table}] {key}", table, key)
        self.check_features(found, features, table, key)
        return found

    def check_features(self, names: Sequence[str], features: Mapping[str, Any], table: str, key: str) -> None:
        """Refuse a name that is no feature."""
        for name in names:
            if name in features:
                continue
            self.fail(f"[{table}] no feature is called {name!r}", self._unknown_hint(name, features), table, key, name)

    def check_words(self, groups: Collection[str]) -> None:
        """Refuse a name under ``words`` of ``[data]`` that is no column of words."""
        for name in self.words:
            if name not in groups:
                is_gone = name in (*self.left_out, self.folds_by) or (self.used is not None and name not in self.used)
                hint = self._unknown_hint(name, {}) if is_gone else which_words(groups)
                self.fail(f"[data] words: no column of words is called {name!r}", hint, "data", "words", name)

    def _unknown_hint(self, name: str, features: Mapping[str, Any]) -> str:
        """What to do about a name that is no feature: one of a column that is left out, or a misspelt one."""
        columns = [name, *(name[:at] for at, sign in enumerate(name) if sign == "=")]
        if any(one in self.left_out for one in columns):
            return "that column is dropped; take it out here, or keep it"
        if self.folds_by in columns and self.used is None:
            return (
                "that column is no feature, since folds are made by it; take it out here, or name the features by use"
            )
        if self.used is not None and not any(one in self.used for one in columns):
            return "that column is not among the used ones; take it out here, or use it too"
        return misspelling_hint(name, list(features))

    def number(self, value: Any, what: str, table: str, *words: str) -> float:
        """A finite number >= 0, or an error that says `what` it should be."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= sys.float_info.max:
            self.fail(f"{what} is {value!r}", "write a finite number >= 0", table, *words)
        return float(value)

    def name_list(self, value: Any, what: str, table: str, *words: str) -> list[str]:
        """A list of distinct strings that is not empty."""
        if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
            self.fail(f"{what} is {value!r}", "write a list of names in quotes", table, *words)
        seen: set[str] = set()
        for name in value:
            if name in seen:
                self.fail(f"{what} names {name!r} twice", "name each once", table, *words)
            seen.add(name)
        return list(value)

    def fail(self, message: str, remedy: str, table: str = "", *words: str) -> Never:
        """Raise the error, with the line where the words are found."""
        raise DataError(message, remedy, path=self.path, line=self.line(table, *words))

    def line(self, table: str, key: str = "", *words: str) -> int | None:
        """The line in a table that has all of `words` in quotes, from the one that sets `key` on.

        The TOML reader of Python keeps no lines; this search finds them in files as people write them.
        """
        sets = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]")
        best = None
        at_key = not key
        for number, (section, text) in enumerate(self._numbered_lines, 1):
            if section != table:
                continue
            if best is None and table:
                best = number
            if not at_key and sets.match(text):
                at_key = True
                best = number
            if at_key and words and all(f'"{word}"' in text or f"'{word}'" in text for word in words):
                return number
        return best

    @cached_property
    def _numbered_lines(self) -> list[tuple[str, str]]:
        """Every line, with the table that it stands in ("" before the first)."""
        found = []
        section = ""
        for text in self.text.splitlines():
            header = re.fullmatch(r"\s*\[+\s*[\"']?([\w-]+)[\"']?\s*(\.[^\],]*)?\]+\s*(#.*)?", text)
            section = header[1] if header else section
            found.append((section, text))
        return found

    def _entry_of(self, table: str, key: str) -> Any:
        return self.tables.get(table, {}).get(key)

    def _check(self) -> None:
        for table, content in self.tables.items():
            if table not in TABLES:
                what = f"table [{table}]" if isinstance(content, dict) else f"key {table!r}"
                words = (table,) if isinstance(content, dict) else ("", table)
                self.fail(f"unknown {what}", self._spelling_hint(table, tuple(TABLES), "tables"), *words)
            if not isinstance(content, dict):
                self.fail(f"{table!r} is {content!r}", f"write it as a table, [{table}]", "", table)
            keys = TABLES[table]
            for key in content:
                if keys is not None and key not in keys:
                    self.fail(f"unknown key {key!r} in [{table}]", self._spelling_hint(key, keys, "keys"), table, key)
        for key in ("label", "scale", "source", "licence"):
            value = self._entry_of("data", key)
            if value is not None and not isinstance(value, str):
                self.fail(f"[data] {key} is {value!r}", "write a text in quotes", "data", key)
        if self.scale is not None and self.scale not in SCALINGS:
            self.fail(f"[data] scale is {self.scale!r}", f"write one of {', '.join(SCALINGS)}", "data", "scale")
        if not isinstance(self.checks, (bool, type(None))):
            self.fail(f"[data] checks is {self.checks!r}", "write true or false", "data", "checks")
        if not isinstance(self.positive, (str, int, float, type(None))):
            self.fail(f"[data] positive is {self.positive!r}", "write one of the two labels", "data", "positive")
        if self._entry_of("data", "words") is not None:
            self.name_list(self._entry_of("data", "words"), "[data] words", "data", "words")
        _ = self.recipe, self.class_weight
        if self.names is not None:
            self.name_list(self.names, "[features] names", "features", "names")

    @staticmethod
    def _spelling_hint(word: str, known: tuple[str, ...], what: str) -> str:
        hint = misspelling_hint(word, known)
        return hint if hint.startswith("did you mean") else f"the {what} are {', '.join(known)}"
