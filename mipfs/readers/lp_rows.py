"""Rows over the selection from an LP file (``--subject-to rows.lp``), read by HiGHS.

A feature is its name with every character outside ``[A-Za-z0-9_]`` replaced by ``_``, or ``x<k>`` (k from 1).
Extra variables begin with ``extra_``; as always in the format they are >= 0 unless their bounds say otherwise. An
objective, which is minimised, is what they cost.

Also here: a strict scan of an LP file: what each line says, and an error for whatever HiGHS's reader would misread.

That reader drops constants on the left of a row, reads ``worst area`` as two variables, ``infant`` as infinity
times ``ant``, skips text before the first section and takes ``[x1^2]`` in an objective for nothing, all without
a word. The scan accepts the plain part of the format only and knows the line of everything.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mipfs.data.instance import Instance, Row
from mipfs.errors import DataError
from mipfs.plumbing.registry import suggest_name
from mipfs.selection.selection import Extras, Rows
from mipfs.solvers.highs import read

_TOKEN = re.compile(
    r"(?P<blank>[ \t\r\f\v]+|\\[^\n]*)|(?P<newline>\n)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![A-Za-z0-9_.]))"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)|(?P<rel>[<>]=|=[<>]|[<>](?!=)|=(?![<>=]))|(?P<sign>[+-](?!>))|(?P<colon>:(?!:))"
)

_SECTIONS = {
    **dict.fromkeys(("minimize", "minimise", "minimum", "min", "maximize", "maximise", "maximum", "max"), "objective"),
    **dict.fromkeys(("st", "s.t."), "rows"),
    **dict.fromkeys(("bounds", "bound"), "bounds"),
    **dict.fromkeys(("general", "generals", "gen", "integer", "integers"), "integer"),
    **dict.fromkeys(("binary", "binaries", "bin"), "binary"),
    "end": "end",
}
_TWO_WORDS = {("subject", "to"): "rows", ("such", "that"): "rows"}
_REFUSED = frozenset(("semi", "semis", "sos", "sos1", "sos2", "sec", "sin", "free"))
_RELATIONS = {"<": "<=", "=<": "<=", ">": ">=", "=>": ">="}
_TURNED = {"<=": ">=", ">=": "<=", "=": "="}
_INFINITY = frozenset(("inf", "infinity"))
_LARGEST = 1e15


@dataclass(frozen=True)
class ScannedRow:
    """One row ``lb <= terms <= ub``: its name (None without a label), line, coefficients by name, sides written."""

    name: str | None
    line: int
    terms: dict[str, float]
    lb: float
    ub: float
    sides: int = 1


@dataclass(frozen=True)
class Token:
    """A word, a number or a sign of an LP file, and its line."""

    kind: str
    text: str
    line: int


@dataclass
class Scan:
    """What stands in an LP file; names are the file's. `plain` is its text as HiGHS reads it: see `_Scanner.split`.

    `whole` has the lines of the names under general and binary, `joined` what begins where something else ends.
    """

    plain: str = ""
    rows: list[ScannedRow] = field(default_factory=list)
    bounds: dict[str, int] = field(default_factory=dict)
    binary: set[str] = field(default_factory=set)
    whole: dict[str, int] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    joined: list[Token] = field(default_factory=list)


def scan(path: Path) -> Scan:
    """Read the rows, bounds and kinds of variables of an LP file.

    Raises
    ------
    DataError
        With the line: text outside the plain LP format, an objective, a row that HiGHS would misread.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(str(error.strerror), "give an LP file of rows over the selection", path=path) from error
    except UnicodeDecodeError as error:
        raise DataError("is not a text file in UTF-8", "save it as plain text", path=path) from error
    scanner = _Scanner(path, list(_tokenize(text, path)))
    scanner.run()
    scanner.found.plain = scanner.plain()
    return scanner.found


def _tokenize(text: str, path: Path) -> Iterator[Token]:
    position = 0
    line = 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise DataError(*_describe_unexpected(text[position:].split("\n", 1)[0]), path=path, line=line)
        kind = str(match.lastgroup)
        word = match.group()
        if kind == "newline":
            line += 1
        elif kind != "blank":
            if kind == "name" and re.match("inf|nan", word, re.IGNORECASE) and word.lower() not in _INFINITY:
                raise DataError(
                    f"the name {word!r} cannot be read",
                    "HiGHS takes the beginning inf or nan for a number: write x<k> for feature k",
                    path=path,
                    line=line,
                )
            yield Token(kind, _RELATIONS.get(word, word), line)
        position = match.end()
    yield Token("eof", "", line)


def _describe_unexpected(rest: str) -> tuple[str, str]:
    if rest[0] in "[]^*/":
        return f"unexpected {rest[0]!r}", "only linear rows: terms like 3 x1, joined by + and -"
    if rest[0] in "<>=":
        return f"unexpected {rest.split()[0]!r}", "write <=, >= or ="
    if rest[0].isdigit() or rest[0] == ".":
        return f"unexpected {rest.split()[0]!r}", "a blank follows every number, and names do not begin with a digit"
    return f"unexpected {rest[0]!r}", "names are made of letters, digits and _ only (x<k> is feature k)"


def _interval_of_relation(relation: str, number: float) -> tuple[float, float]:
    """The interval of a row, ``terms relation number``."""
    return (-math.inf if relation == "<=" else number), (math.inf if relation == ">=" else number)


class _Scanner:
    """A recursive descent over the tokens, one method per section."""

    def __init__(self, path: Path, tokens: list[Token]) -> None:
        self.path = path
        self.tokens = tokens
        self.at = 0
        self.found = Scan()
        self.texts = [token.text for token in tokens]
        self.sides: set[tuple[str, str]] = set()

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def take(self, kind: str) -> Token | None:
        """The next token if it is of this kind."""
        token = self.token
        if token.kind != kind or (kind == "name" and self.section() is not None):
            return None
        self.at += 1
        return token

    def fail(self, problem: str, remedy: str = "", line: int | None = None) -> NoReturn:
        raise DataError(problem, remedy, path=self.path, line=self.token.line if line is None else line)

    def section(self) -> tuple[str, int] | None:
        """The section that begins here and its number of tokens; a word before a colon is a label."""
        ahead = self.tokens[self.at + 1] if self.token.kind == "name" else self.token
        words = (self.token.text.lower(), ahead.text.lower())
        if self.token.kind != "name" or ahead.kind == "colon":
            return None
        if words in _TWO_WORDS:
            return _TWO_WORDS[words], 2
        if words[0] in _REFUSED:
            self.fail(f"unexpected {self.token.text!r}", "the sections are: subject to, bounds, general, binary, end")
        return (_SECTIONS[words[0]], 1) if words[0] in _SECTIONS else None

    def run(self) -> None:
        seen: set[str] = set()
        while self.token.kind != "eof":
            section = self.section()
            if section is None:
                self.fail(f"unexpected {self.token.text!r}", "an LP file of rows begins with 'subject to'")
            name, width = section
            if name in seen and name in ("objective", "rows"):
                self.fail(f"a second section {self.token.text!r}", "put all rows under one 'subject to'")
            if name != "end" and "end" in seen:
                self.fail("text after 'end'", "remove it, or move 'end' to the last line")
            if "rows" not in seen and name not in ("objective", "rows"):
                self.fail(f"{self.token.text!r} stands before the rows", "an LP file of rows begins with 'subject to'")
            if name == "objective" and seen:
                self.fail(f"{self.token.text!r} stands after the rows", "remove it: the objective is that of the model")
            seen.add(name)
            self.at += width
            start = self.at
            getattr(self, f"read_{name}")()
            if self.at > start:
                self.note_joined()
        if not {"rows", "end"} <= seen:
            missing = "'subject to'" if "rows" not in seen else "'end'"
            self.fail(f"no {missing} in the file", "the rows stand between 'subject to' and 'end'")
        if not self.found.rows and not self.found.bounds:
            self.fail("no row in the file", "write rows like  c1: x1 + x2 <= 1  under 'subject to'")

    def note_joined(self) -> None:
        """Keep the next token if it is on the line where what was read has ended: HiGHS does not read it there."""
        if self.token.kind != "eof" and self.token.line == self.tokens[self.at - 1].line:
            self.found.joined.append(self.token)

    def read_objective(self) -> None:
        """Nothing, terms whose coefficients are zero, as writers make them, or what extra variables cost."""
        is_maximised = self.tokens[self.at - 1].text.lower().startswith("max")
        self.label()
        while self.token.kind != "eof" and self.section() is None:
            line = self.token.line
            sign = self.take("sign")
            number = self.take("number")
            name = self.take("name")
            cost = 1.0 if number is None else self.value(number)
            is_extra = name is not None and name.text.startswith("extra_")
            if (name is None and number is None) or (cost != 0.0 and not is_extra):
                remedy = "costs of features go to [penalty] in the .toml; here stand those of extra_ variables, or none"
                self.fail("an objective", remedy, line)
            if cost != 0.0 and is_maximised:
                self.fail("an objective that is maximised", "costs of extra_ variables are minimised", line)
            if name is not None and cost != 0.0:
                if name.text in self.found.costs:
                    self.fail(f"{name.text!r} twice in the objective", "add up its coefficients", line)
                self.found.costs[name.text] = -cost if sign is not None and sign.text == "-" else cost
            if name is not None:
                self.found.lines.setdefault(name.text, name.line)

    def read_end(self) -> None:
        if self.token.kind != "eof" and self.section() is None:
            self.fail("text after 'end'", "remove it, or move 'end' to the last line")

    def read_rows(self) -> None:
        labels: set[str] = set()
        while self.token.kind != "eof" and self.section() is None:
            line = self.token.line
            label = self.label()
            if label is not None and label in labels:
                self.fail(f"a second row {label!r}", "give every row its own name", line)
            labels.add(label or "")
            start = self.at
            left = self.left_number()
            first = self.at
            terms = self.terms(label or "this row", line)
            last = self.at
            relation = self.take("rel")
            if relation is None:
                self.fail(f"unexpected {self.token.text!r}", "a row is: terms, then <=, >= or =, then one number")
            rhs = self.number(f"one number must follow {relation.text!r}; variables stand on the left")
            lb, ub = _interval_of_relation(relation.text, rhs)
            if self.token.kind == "rel":
                self.fail("a row with two relations", "write the number, the terms, the number: 1 <= x1 + x2 <= 2")
            if left is not None:
                value, other = left
                if other != relation.text or other == "=":
                    self.fail(f"{other!r} and {relation.text!r} in one row", "use <= twice, or >= twice", line)
                low, high = _interval_of_relation(_TURNED[other], value)
                lb, ub = max(lb, low), min(ub, high)
                if lb > ub:
                    self.fail(f"nothing lies between {lb:g} and {ub:g}", "exchange the two numbers", line)
                self.split(start, first, last)
            else:
                self.note_joined()
            self.found.rows.append(ScannedRow(label, line, terms, lb, ub, 1 if left is None else 2))

    def left_number(self) -> tuple[float, str] | None:
        """The number on the left of a row of two sides, and the relation after it."""
        width = 2 if self.token.kind == "sign" else 1
        kinds = [token.kind for token in self.tokens[self.at : self.at + width + 1]]
        if kinds[-2:] != ["number", "rel"]:
            return None
        value = self.number("a number")
        relation = self.take("rel")
        assert relation is not None
        return value, relation.text

    def split(self, start: int, first: int, last: int) -> None:
        """Write a row of two sides as two, for HiGHS, which does not read it; its tokens end where the scanner is."""
        left = self.texts[start : first - 1]
        terms = self.texts[first:last]
        self.texts[start:first] = [""] * (first - start)
        again = " ".join([*terms, _TURNED[self.tokens[first - 1].text], *left])
        self.texts[self.at - 1] += f"\n{again}\n"

    def plain(self) -> str:
        """The text of all tokens, line by line."""
        lines: dict[int, list[str]] = {}
        for token, text in zip(self.tokens, self.texts, strict=True):
            lines.setdefault(token.line, []).append(text)
        return "\n".join(" ".join(texts) for texts in lines.values()) + "\n"

    def terms(self, row: str, line: int) -> dict[str, float]:
        terms: dict[str, float] = {}
        while self.token.kind != "rel":
            if self.token.kind == "eof" or (terms and self.section() is not None):
                self.fail("a row without <=, >= or =", "a row is: terms, then <=, >= or =, then one number", line)
            sign = self.take("sign")
            if sign is None and terms:
                self.fail(f"no + or - before {self.token.text!r}", "names have no blanks: write _ for every one")
            number = self.take("number")
            name = self.take("name")
            if name is None and number is not None:
                remedy = "one number stands on the right of a row, none on the left"
                self.fail(f"the constant {number.text} on the left", remedy, number.line)
            if name is None or name.text.lower() in _INFINITY:
                remedy = "a term is a sign, a number if it is not 1, and a name (x<k> for one like a section's)"
                self.fail(f"unexpected {(name or self.token).text!r}", remedy, (name or self.token).line)
            if name.text in terms:
                self.fail(f"{name.text!r} twice in {row}", "add up its coefficients", name.line)
            value = self.value(number) if number is not None else 1.0
            terms[name.text] = -value if sign is not None and sign.text == "-" else value
            self.found.lines.setdefault(name.text, name.line)
        if not terms:
            self.fail(f"no variable on the left of {row}", "a row is: terms, then <=, >= or =, then one number")
        return terms

    def read_bounds(self) -> None:
        while self.token.kind != "eof" and self.section() is None:
            line = self.token.line
            left = None
            if self.token.kind in ("number", "sign") or self.token.text.lower() in _INFINITY:
                self.number("a bound is a number or inf", infinite=True)
                left = self.take("rel")
                if left is None:
                    self.fail(f"unexpected {self.token.text!r}", "a bound is like  0 <= extra_u <= 3")
            name = self.take("name")
            if name is None:
                self.fail(f"unexpected {self.token.text!r}", "a bound is like  0 <= extra_u <= 3")
            self.found.lines.setdefault(name.text, name.line)
            self.found.bounds[name.text] = line
            right = None
            if left is None and self.token.text.lower() == "free":
                self.at += 1
                self.bounded(name, "=")
                self.note_joined()
                continue
            if left is None or self.token.kind == "rel":
                right = self.take("rel")
                if right is None or (left is not None and (left.text, right.text) != ("<=", "<=")):
                    self.fail(f"unexpected {self.token.text!r}", "a bound is like  0 <= extra_u <= 3")
                self.number("a bound is a number or inf", infinite=True)
            if left is not None:
                self.bounded(name, _TURNED[left.text])
            if right is not None:
                self.bounded(name, right.text)
            self.note_joined()

    def bounded(self, name: Token, relation: str) -> None:
        for side in ("<=", ">=") if relation == "=" else (relation,):
            if (name.text, side) in self.sides:
                self.fail(f"{name.text!r} has two bounds {side}", "keep one of them", name.line)
            self.sides.add((name.text, side))

    def read_integer(self) -> set[str]:
        names = set()
        while (name := self.take("name")) is not None:
            self.found.lines.setdefault(name.text, name.line)
            self.found.whole.setdefault(name.text, name.line)
            names.add(name.text)
        if self.token.kind != "eof" and self.section() is None:
            self.fail(f"unexpected {self.token.text!r}", "names only, with blanks between them")
        return names

    def read_binary(self) -> None:
        self.found.binary |= self.read_integer()

    def label(self) -> str | None:
        if self.token.kind == "name" and self.tokens[self.at + 1].kind == "colon":
            self.at += 2
            return self.tokens[self.at - 2].text
        return None

    def number(self, remedy: str, *, infinite: bool = False) -> float:
        sign = self.take("sign")
        infinity = infinite and self.token.text.lower() in _INFINITY
        token = self.take("name" if infinity else "number")
        if token is None:
            self.fail(f"unexpected {self.token.text!r}", remedy)
        value = self.value(token) if token.kind == "number" else math.inf
        return -value if sign is not None and sign.text == "-" else value

    def value(self, token: Token) -> float:
        value = float(token.text)
        if value > _LARGEST:
            self.fail(f"{token.text} is too large", f"numbers are at most {_LARGEST:g}", token.line)
        return value


def read_rows(path: str | Path, data: Instance, atoms: Sequence[str] | None = None) -> Rows:
    """Read linear rows over the features of `data`, or over what else is selected.

    Parameters
    ----------
    path : path of a file in LP format, named ``*.lp``
        Rows under ``subject to``, bounds, general and binary sections; the objective is empty, zero, or what
        extra variables cost.
    data : Instance
        Whose features the rows are over.
    atoms : sequence of str, optional
        The names of what is selected, where that is not the single features: groups, and features in no group.

    Returns
    -------
    Rows
        The file's rows and its bounds on features (or atoms), each with its origin ``FILE:LINE``.

    Raises
    ------
    DataError
        With the line: a name that is no feature (or stands for several), an objective, or anything
        that is not a plain linear row.
    """
    path = Path(path)
    scanned, lp, of = _read(path, data, atoms)
    index = data.index if atoms is None else {name: g for g, name in enumerate(atoms)}

    rows = []
    for row in scanned.rows:
        terms: dict[str, float] = defaultdict(float)
        for name, value in row.terms.items():
            terms[of[name]] += value
        rows.append(Row(row.name or f"line {row.line}", terms, row.lb, row.ub, f"{path.name}:{row.line}"))
    extra = []
    kinds = [kind != type(kind).kContinuous for kind in lp.integrality_] or [False] * len(lp.col_names_)
    for name, lb, ub, integer in zip(
        lp.col_names_, map(float, lp.col_lower_), map(float, lp.col_upper_), kinds, strict=True
    ):
        if of[name] not in index:
            # HiGHS lets a bound override `binary`.
            lb, ub = (max(lb, 0.0), min(ub, 1.0)) if name in scanned.binary else (lb, ub)
            extra.append((name, lb, ub, integer, scanned.costs.get(name, 0.0)))
        elif name in scanned.bounds and (lb > 0 or ub < 1):
            bounds = lb if lb > 0 else -math.inf, ub if ub < 1 else math.inf
            rows.append(Row(f"bounds of {of[name]}", {of[name]: 1.0}, *bounds, f"{path.name}:{scanned.bounds[name]}"))
    return Rows.of(rows, index, _make_extras(extra))


def read_weight_rows(path: str | Path, data: Instance) -> list[tuple[dict[str, float], float, float]]:
    """Read linear rows over the weights of the features of `data`, on the user's scale (``--weight-rows rows.lp``).

    The weights are of any sign whatever the format says of variables: a bound on one is no row.

    Returns
    -------
    list of (coefficients by name, lower, upper), infinite where there is no end

    Raises
    ------
    DataError
        With the line: as of `read_rows`, and bounds, whole or extra variables, and rows that weights of 0 break.
    """
    path = Path(path)
    scanned, _, of = _read(path, data)
    if scanned.bounds:
        remedy = "rows over weights are read, and no bounds; --weight-bounds NAME=L:U has these"
        raise DataError("a weight has a bound", remedy, path=path, line=min(scanned.bounds.values()))
    for name, feature in of.items():
        if feature not in data.index:
            remedy = "rows over the weights have no extra variables"
            raise DataError(f"{name!r} is no weight", remedy, path=path, line=scanned.lines[name])
    if scanned.whole:
        name, line = next(iter(scanned.whole.items()))
        remedy = "leave the sections general and binary out"
        raise DataError(f"{name!r} is to be whole here, and weights are not", remedy, path=path, line=line)
    found = []
    for row in scanned.rows:
        terms: dict[str, float] = defaultdict(float)
        for name, value in row.terms.items():
            terms[of[name]] += value
        if not row.lb <= 0.0 <= row.ub:
            remedy = "without any feature all weights are 0: give rows with lower <= 0 <= upper"
            raise DataError("weights of 0 break this row", remedy, path=path, line=row.line)
        found.append((dict(terms), row.lb, row.ub))
    return found


def _read(path: Path, data: Instance, atoms: Sequence[str] | None = None) -> tuple[Scan, Any, dict[str, str]]:
    """What stands in a file, twice read, and what its names stand for."""
    if path.suffix.lower() != ".lp":
        raise DataError("is not called *.lp", "rows are read in LP format; rename the file", path=path)
    scanned = scan(path)
    lp = _read_with_highs(path, scanned)
    _check_agreement(path, scanned, lp)
    names = _Names(path, data, atoms)
    return scanned, lp, {name: names.resolve(name, scanned.lines[name]) for name in lp.col_names_}


def _make_extras(found: list[tuple[str, float, float, bool, float]]) -> Extras:
    return Extras(
        tuple(name for name, *_ in found),
        np.array([lb for _, lb, *_ in found], float),
        np.array([ub for _, _, ub, *_ in found], float),
        np.array([integer for *_, integer, _ in found], bool),
        np.array([cost for *_, cost in found], float),
    )


def _read_with_highs(path: Path, scanned: Scan) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "plain.lp")
        plain.write_text(scanned.plain, encoding="utf-8")
        lp, complaint = read(str(plain))
    for name, lower, upper in zip(lp.col_names_, lp.col_lower_, lp.col_upper_, strict=True):
        if lower > upper:
            remedy = "variables are >= 0 unless a bound says otherwise"
            line = scanned.bounds.get(name)
            raise DataError(f"no value is within the bounds of {name!r}", remedy, path=path, line=line)
    if complaint and scanned.joined:
        token = scanned.joined[0]
        remedy = "begin every row, bound and section on a line of its own"
        raise DataError(f"unexpected {token.text!r} in the middle of a line", remedy, path=path, line=token.line)
    if complaint:
        complaint = complaint.replace(str(plain), path.name)
        raise DataError(f"HiGHS cannot read it ({complaint})", "use the plain LP format", path=path)
    return lp


def _check_agreement(path: Path, scanned: Scan, lp: Any) -> None:
    """Whatever HiGHS read differently from the scan is refused: two readers must agree on every row."""
    read: list[dict[str, float]] = [{} for _ in range(lp.num_row_)]
    matrix = lp.a_matrix_  # of whose vectors every look is a copy
    starts, index, value = (list(part) for part in (matrix.start_, matrix.index_, matrix.value_))
    row_lower, row_upper = list(lp.row_lower_), list(lp.row_upper_)
    for k, name in enumerate(lp.col_names_):
        for entry in range(starts[k], starts[k + 1]):
            read[index[entry]][name] = float(value[entry])
    at = 0
    for row in scanned.rows:
        both = slice(at, at := at + row.sides)  # a row of two sides stands as two
        lb, ub = max(row_lower[both], default=math.inf), min(row_upper[both], default=-math.inf)
        terms = {name: a for name, a in row.terms.items() if a}
        if read[both] != [terms] * row.sides or (lb, ub) != (row.lb, row.ub):
            raise DataError(f"HiGHS reads this row differently: {row.terms}", "simplify it", path=path, line=row.line)
    costs = {name: float(cost) for name, cost in zip(lp.col_names_, lp.col_cost_, strict=True) if cost}
    if costs != scanned.costs or lp.offset_:
        raise DataError(f"HiGHS reads the objective differently: {costs}", "simplify it", path=path)
    if at != len(read) or not set(lp.col_names_) <= scanned.lines.keys():
        raise DataError("HiGHS finds other rows or names in it", "use the plain LP format", path=path)


def _in_lp(name: str) -> str:
    """How a feature is called in an LP file."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


class _Names:
    """What the names of an LP file stand for."""

    def __init__(self, path: Path, data: Instance, atoms: Sequence[str] | None) -> None:
        self.path = path
        self.data = data
        self.names = data.feature_names if atoms is None else atoms
        self.are_features = atoms is None
        self.written: dict[str, list[int]] = defaultdict(list)
        for j, name in enumerate(self.names):
            self.written[_in_lp(name)].append(j)

    def resolve(self, name: str, line: int) -> str:
        """The feature (or atom) that is meant, or the name itself for an extra variable."""
        features = self.names
        meant = {*self.written.get(name, [])}
        if re.fullmatch(r"x[1-9][0-9]{0,17}", name) and int(name[1:]) <= len(self.data.feature_names):
            meant |= self._of_feature(int(name[1:]) - 1)
        if name.startswith("extra_") and not meant:
            return name
        if len(meant) == 1 and not name.startswith("extra_"):
            return features[meant.pop()]
        if meant:
            several = " and ".join(repr(features[j]) for j in sorted(meant))
            if name.startswith("extra_"):
                several += " and an extra variable"
            raise DataError(
                f"{name!r} may stand for {several}",
                "write x<k> for feature k, or rename a feature; one that is called x<k> itself must be renamed",
                path=self.path,
                line=line,
            )
        kind = "feature" if self.are_features else "atom"
        raise DataError(f"no {kind} is called {name!r}", self._name_remedy(name), path=self.path, line=line)

    def _of_feature(self, j: int) -> set[int]:
        """The position of feature j; empty where it is selected in groups alone."""
        if self.are_features:
            return {j}
        return {
            g
            for g in self.written.get(_in_lp(self.data.feature_names[j]), [])
            if self.names[g] == self.data.feature_names[j]
        }

    def _name_remedy(self, name: str) -> str:
        if not self.are_features:
            return suggest_name(name, list(self.written)[:20000], "a row names what is selected as a whole: the group")
        for column, words in self.data.words.items():
            for full in (f"{column}={word}" for word in words):
                if full not in self.data.index and _in_lp(full) == name:
                    return self.data.like(full)
        other = f"write x1 ... x{len(self.data.feature_names)}, a name with _ for blanks, or extra_NAME"
        return suggest_name(name, list(self.written)[:20000], other)
