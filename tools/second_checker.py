#!/usr/bin/env python3
"""A second checker of mipfs certificates, which shares nothing with the package: one file, exact arithmetic.

    python second_checker.py RESULT.json DATA
    python second_checker.py PATH.json[#M=4,C=0.1|#best] DATA
    python second_checker.py CLASSES.json[#LABEL] DATA
    python second_checker.py CARD.json DATA

It says "accepted" with the bound, the gap and the status that are proven and with how the file became columns (exit
code 0), "rejected: why" (1), or "declined: why" (2) where it is not made for what it is given. It takes svmlight and
CSV text, raw tables with a recipe; the hinge, the squared hinge, the logistic loss and those of measures; features,
groups, trees, functions and products of features; rows, penalties, bounds and rows on weights, near-optimal lists,
paths, several classes, and scorecards (the word of their search where their features and points are not proven
together). It declines

- other files (Parquet, npz, column stores), other losses and other regularisers;
- scaled data whose scaling does not stand in the sidecar (early versions), but for functions and products of features,
  whose scaling it computes where the page knows a bound of the error;
- waves that NumPy draws (additive-gaussian with a seed), and errors of folds of functions and products;
- what would take it very long or much memory (`MOST_PRODUCTS`, `MOST_NUMBERS`), and files that unpack to far more than
  they are (`FREE`).

Everything is computed in integers and fractions, so there is no rounding error to argue about: the numbers of the file
are doubles, doubles are fractions, the two logarithms that the logistic loss needs are enclosed (`log_above`), and
scores are rounded to 200 binary digits where a measure is taken of them. Only columns that are made by roots, powers,
logarithms and cosines, and the totals of scorecards, are computed in doubles, as the pages say. It was written from
docs/certificate.md alone, and for scorecards from docs/scorecard.md; names of sections there stand in the docstrings
here. Python 3.11 or newer, nothing to install.

How to read it. `need` and `Rejected` are all there is to a refusal. Whoever wants to know what is proven reads `check`
(part "The verdict") first, which is a page long, and then what it calls, which stands above it in this order:

1. numbers, and the archive: bytes become fractions and arrays, or a refusal;
2. the data: a file becomes columns (`Source`, `Data`), tables by the rules that the document names (`Reading`);
3. the statement: the JSON over the data becomes the problem (`Statement`), with columns that are made (`Functions`,
   `Products`), values of classifiers (`value_of`) and measures (`Measure`);
4. the proof: dual vectors (`Duals`, `Combinations`), leaves (`Line`) and the tree (`Tree.walk`), near-optimal lists,
   relaxations, and the verdict (`check`);
5. documents that hold results: a path (`Course`), several classes (`Classes`), a scorecard (`Card`, `Together`);
6. the command line (`judge`).
"""

import bisect
import bz2
import csv
import datetime
import gzip
import hashlib
import io
import itertools
import json
import lzma
import math
import os
import re
import struct
import sys
import tomllib
import zipfile
import zlib
from collections import Counter
from fractions import Fraction
from pathlib import Path

MOST_PRODUCTS = 400_000_000
"""Products of numbers (samples · columns · dual vectors) that it takes on: some minutes."""
FREE, TIMES, PROOF_TIMES = 1 << 26, 100, 32
"""What a file may unpack to: section "How large it may be". PROOF_TIMES is of a certificate, TIMES of data."""
ALLOW = "MIPFS_UNPACK=8 in the environment allows 8 GB"
MOST_DOTS = 16
"""Of a key of a .toml."""
MOST_NUMBERS = 1 << 24
"""Numbers of one array, or of the data."""
ALLOWANCE = Fraction(1, 2**40)
"""δ: how far a row may be missed, and how far an end of a weight is forgiven in a bound."""
ROUNDED = Fraction(1, 2**47)
"""What stated values of extra variables that need not be whole are forgiven, relative to their terms; of all before
rules 3."""
CLOSE = Fraction(1, 10**9)
"""Relative allowance of a recomputed objective, a stated bound and an asked gap."""
LISTED = Fraction(1, 10**6)
"""Relative distance to which a listed support is to be bounded from below."""
SAME = Fraction(2, 10**7)
"""Relative distance up to which the values of two supports are not told apart."""
SCREENED = 1 << 30
FREE = 2
"""In a state, beside 0 and 1: the atom is not fixed."""


class Rejected(Exception):
    """What the document claims is wrong, or not shown."""


class Declined(Exception):
    """Nothing is said: this checker does not carry what it was given."""


def need(holds, why):
    """Reject unless something holds."""
    if not holds:
        raise Rejected(why)


# --- Numbers -------------------------------------------------------------------------------------------------


def number(value, what):
    """A finite double of the JSON as a fraction."""
    need(isinstance(value, (int, float)) and not isinstance(value, bool), f"{what} is no number")
    try:
        need(math.isfinite(float(value)) and float(value) == value, f"{what} is not finite, or no double")
    except OverflowError:
        raise Rejected(f"{what} is too large") from None
    return Fraction(value)


def number_or_none(value, what):
    return None if value is None else number(value, what)


def whole(value, what, least=0):
    need(isinstance(value, int) and not isinstance(value, bool) and value >= least, f"{what} is no whole number")
    return value


def ratio(value, what):
    """A fraction that is written as text, p or p/q."""
    need(isinstance(value, str) and re.fullmatch(r"-?\d{1,4000}(/\d{1,4000})?", value), f"{what} is no fraction")
    need(not re.search(r"/0+$", value), f"{what} divides by 0")
    return Fraction(value)


def near(a, b, allowance=CLOSE):
    """Whether two numbers agree, relative to the first."""
    return abs(a - b) <= allowance * abs(a)


BITS = 160
ONE = 1 << BITS
SLACK = 1 << 24
"""Bound on the error of `_log` and `_exp`, in units of 2^−BITS: some hundred roundings of at most one unit each, which
enter with factors below 2, and ln 2 times an exponent below 2^15."""


def _log(x):
    """About ln(x/ONE)·ONE for a whole x > 0; off by less than SLACK."""
    shift = x.bit_length() - 1 - BITS
    m = x >> shift if shift >= 0 else x << -shift  # from ONE to 2·ONE
    if m > ONE + ONE // 2:
        m, shift = m // 2, shift + 1
    z = ((m - ONE) << BITS) // (m + ONE)  # ln m = 2 artanh z, |z| ≤ 1/5
    square, power, total, k = (z * z) >> BITS, z, 0, 1
    while abs(power) > 1:
        total += power // k
        power, k = (power * square) >> BITS, k + 2
    return 2 * total + shift * LN2


def _exp(t):
    """About exp(−t/ONE)·ONE for a whole t ≥ 0; off by less than SLACK."""
    k, r = divmod(t, LN2)
    term, total, i = ONE, ONE, 1
    while term:
        term = ((term * r) >> BITS) // i
        total += -term if i % 2 else term
        i += 1
    return total >> min(k, 2 * BITS)


def _ln2():
    """ln 2 = 2 artanh(1/3)."""
    power, total, k = ONE // 3, 0, 1
    while power:
        total, power, k = total + power // k, power // 9, k + 2
    return 2 * total


LN2 = _ln2()


def log_above(a, b):
    """A number of units 2^−BITS that is at least ln(a/b), for whole a, b > 0: ln(a 2^s/b) − s ln 2."""
    s = b.bit_length() - a.bit_length() + 1
    x = (a << (BITS + s)) // b if BITS + s >= 0 else a // (b << -(BITS + s))
    return _log(x) - s * LN2 + SLACK


def log_one_plus_exp(m):
    """ln(1 + e^m) of a fraction, to within 2^−120; where that is small, to within 2^−100 of itself."""
    t = abs(m.numerator) * ONE // m.denominator
    if -1000 < m < -40:
        k, r = divmod(t, LN2)
        v = Fraction(_exp(r), ONE << k)
        return v - v * v / 2
    v = 0 if t > 400 * ONE else _exp(t)
    return Fraction(_log(ONE + v), ONE) + max(m, 0)


# --- The archive ---------------------------------------------------------------------------------------------

BROKEN = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError, NotImplementedError, RuntimeError,
    ValueError, OverflowError,
)  # fmt: skip
"""What Python's readers of archives raise over bytes that are none."""
HEADER = re.compile(
    r"\{\s*'descr'\s*:\s*'([<|])([iufbS])(\d{1,6})'\s*,\s*'fortran_order'\s*:\s*(True|False)\s*,"
    r"\s*'shape'\s*:\s*\(((?:\s*\d{1,18}\s*,)*\s*(?:\d{1,18}\s*)?)\)\s*,?\s*\}\s*"
)
"""The header of an .npy file as NumPy writes it; nothing else is read, and no text is run through Python's parser."""
LETTERS = {"i1": "b", "i2": "h", "i4": "i", "i8": "q", "u2": "H", "u4": "I", "u8": "Q", "f8": "d"}


class Array:
    """An array of the sidecar: its numbers one after the other (bytes of uint8), shape, kind (i, f or S) and type."""

    def __init__(self, values, shape, kind, stored=""):
        self.values, self.shape, self.kind, self.stored = values, shape, kind, stored


def read_npy(content, name):
    """One member of the archive: the format of NumPy's .npy files, version 1 to 3."""
    need(content[:6] == b"\x93NUMPY" and len(content) >= 12, f"{name} is no array")
    wide = content[6] > 1
    (size,) = struct.unpack_from("<I" if wide else "<H", content, 8)
    start = (12 if wide else 10) + size
    need(size <= 4096 and len(content) >= start, f"{name} has no header")
    found = HEADER.fullmatch(content[start - size : start].decode("latin-1"))
    need(found, f"{name} has no header, or a type that no certificate has")
    kind, each, order = found[2], int(found[3]), found[4] == "True"
    shape = tuple(int(n) for n in found[5].split(",") if n.strip())
    need(not order or len(shape) < 2 or 0 in shape or 1 in shape, f"{name} is stored by columns")
    count, body = math.prod(shape), content[start:]
    need(each > 0 or count == 0, f"{name} has no type")
    need(len(body) == count * each, f"{name} has {len(body)} bytes in place of {count * each}")
    if kind == "u" and each == 1:
        return Array(body, shape, "i")
    if count > MOST_NUMBERS:
        raise Declined(f"too large: {name} has {count} numbers")
    if kind == "S":
        return Array([body[i * each : (i + 1) * each].rstrip(b"\0") for i in range(count)], shape, "S")
    letter = LETTERS.get(kind + found[3])
    need(letter, f"{name} has a type that no certificate has")
    return Array(list(struct.unpack(f"<{count}{letter}", body)), shape, "f" if kind == "f" else "i", f"{kind}{each}")


def most_bytes(size, times):
    """What a file of `size` bytes may unpack to, or what the user allows."""
    said = os.environ.get("MIPFS_UNPACK", "").strip()
    try:
        return max(FREE + times * size, 1e9 * float(said or 0))
    except ValueError:
        raise Declined("MIPFS_UNPACK is no number of gigabytes") from None


def unpacked(content, known, what, stored=False):
    """The members of a zip archive, bytes by name, all of which `known` names; `stored`: as they are.

    No more is read of a member than it says, and a little at a time, whatever it holds.
    """
    members, total = {}, 0
    most = len(content) if stored else most_bytes(len(content), PROOF_TIMES)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                need(known(member.filename), f"{what} has a member {member.filename[:60]!r}, which it may not have")
                need(member.filename not in members, f"{what} has {member.filename} twice")
                how = {zipfile.ZIP_STORED} if stored else {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
                need(member.compress_type in how, f"{what} has {member.filename} compressed in another way")
                total += member.file_size
                if total > most:
                    raise Declined(f"too large: {what} unpacks to more than {most / 1e6:.4g} MB; {ALLOW}")
                with archive.open(member) as stream:
                    members[member.filename] = b"".join(iter(lambda: stream.read(1 << 20), b""))
    except BROKEN as error:
        raise Rejected(f"{what} cannot be read: {type(error).__name__} {error}") from None
    return members


def read_archive(content, more=frozenset()):
    """The arrays of a sidecar by name; `more` are names that this one may have beside those of any."""
    names = {f"{name}.npy" for name in ARRAYS | more}
    members = unpacked(content, names.__contains__, "the sidecar")
    return {name.removesuffix(".npy"): read_npy(body, name) for name, body in members.items()}


# --- The data ------------------------------------------------------------------------------------------------


class Data:
    """Raw data: names, columns (p lists of n doubles), y (±1), sample weights, and what its .toml asks for.

    `named` says whether the names are given; those that the readers make are x1 … xp. `asked` has the rows (terms, lb,
    ub), `forced_in` and `forced_out` that its .toml has, and the `penalty` that a statement must have. `labels` are
    what −1 and +1 are called, None where the document was believed as the file was read. `reading` is how a table
    became columns (`Reading`), None where it is no table; `raw` says whether a file was read.
    """

    def __init__(self, names, columns, y, weights=None, named=True, bags=None, asked=None, labels=None, label=None,
                 reading=None, raw=False):  # fmt: skip
        self.names, self.columns, self.y, self.named, self.bags = names, columns, y, named, bags
        self.weights = [1.0] * len(y) if weights is None else weights
        self.asked, self.labels, self.label, self.reading, self.raw = asked or {}, labels, label, reading, raw

    def matrix_sha256(self):
        """Of the values that are not zero, column by column."""
        n, p = len(self.y), len(self.names)
        parts = [hashlib.sha256(str((n, p)).encode()) for _ in range(3)]
        for column in self.columns:
            held = [(i, x) for i, x in enumerate(column) if x != 0]
            parts[0].update(struct.pack("<q", len(held)))
            parts[1].update(struct.pack(f"<{len(held)}q", *(i for i, _ in held)))
            parts[2].update(struct.pack(f"<{len(held)}d", *(x for _, x in held)))
        return hashlib.sha256(b"".join(part.digest() for part in parts)).hexdigest()

    def sha256(self, matrix=None, p=None):
        """Section "The data's digest"; with `matrix`, a digest in place of this data's matrix, of p columns."""
        n, names = len(self.y), list(self.names) if self.named and matrix is None else None
        stated = json.dumps([[n, len(self.names) if p is None else p], names], ensure_ascii=False).encode()
        rest = [struct.pack(f"<{n}d", *self.y), struct.pack(f"<{n}d", *self.weights)]
        rest += [] if self.bags is None else [struct.pack(f"<{n}q", *self.bags)]
        rest += [] if self.reading is None or matrix is not None else self.reading.digested()
        parts = [stated, (matrix or self.matrix_sha256()).encode(), *rest]
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


APART = re.compile(r'"""(?:[^\\]|\\.)*?"""|' r"'''.*?'''" r'|"(?:[^"\\\n]|\\.)*+"' r"|'[^'\n]*+'|#[^\n]*+", re.DOTALL)
"""Texts and comments of TOML, in which a dot separates nothing."""
DOTTED = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MOST_DOTS + 1}}}")


def read_toml(text):
    """A .toml, if no key has more than MOST_DOTS dots: Python's reader keeps every beginning of a key."""
    if DOTTED.search(APART.sub(lambda found: "" if found[0].startswith("#") else "s", text)):
        raise Declined(f"too large: a key of the .toml has more than {MOST_DOTS} dots")
    return tomllib.loads(text)


class Source:
    """A text file and the .toml beside it, read once; `data` makes of it what a document states."""

    def __init__(self, path):
        path = Path(path)
        stem = path.with_suffix("") if path.suffix in (".gz", ".bz2") else path
        opener = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
        kind = stem.suffix.lower()
        self.is_table = kind in (".csv", ".tsv")
        if not self.is_table and kind not in (".svm", ".txt", ".svmlight", ".libsvm", ""):
            raise Declined(f"a kind of data that I do not carry: {kind}")
        try:
            most = most_bytes(path.stat().st_size, TIMES)
            with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
                text = stream.read(int(most) + 1)
            if len(text) > most:
                raise Declined(f"too large: the data unpacks to more than {most / 1e6:.4g} MB; {ALLOW}")
            beside = stem.with_suffix(".toml")
            self.described = read_toml(beside.read_text("utf-8-sig")) if beside.exists() else {}
            names = path.parent / "names.txt"
            self.names = names.read_text("utf-8").splitlines() if names.exists() else None
            self.cells = cells_of(text) if self.is_table else None
            self.lines = None if self.is_table else read_svmlight(text)
        except (*BROKEN, tomllib.TOMLDecodeError, csv.Error, IndexError) as error:
            raise Declined(f"the data cannot be read: {error}") from None
        self.kept = {}

    def labels(self, document):
        """The labels of the samples, as `document` has them read."""
        return self._raw(document).labels

    def _raw(self, document):
        read = reading_of(document)
        read.pop("words")  # which words are listed depends on the selection, how the file is read does not
        key = json.dumps([read, width_stated(document)], sort_keys=True)
        if key not in self.kept:
            self.kept[key] = self._table(read) if self.is_table else self._svmlight(document)
        return self.kept[key]

    def data(self, document, of=None):
        """The data of a document: of its two labels, or of class `of` against the rest."""
        known = self._raw(document)
        if of is None:
            y = signs(known.labels, document["labels"])
        else:
            y = [1.0 if label == of else -1.0 for label in known.labels]
        made = Data(
            known.names, known.columns, y, known.weights, known.named, known.bags, reading=known.reading, raw=True
        )
        made.asked = asked_of(self.described, made.names)
        return made

    def _table(self, read):
        need(read["rules"] == 1 or read["left_out"] is not None, "read of a table is missing")
        if read["rules"] == 1 and read["label"] is None:  # which says nothing there
            read = read | {"label": self.described.get("data", {}).get("label")}
        found = Reading(self.cells, read, self.described.get("data", {}).get("words", []))
        weights, bags = found.weights(), found.bags()
        return Data(
            found.names, found.columns, None, weights or [1.0] * len(found.y), bags=bags, labels=found.y, reading=found
        )

    def _svmlight(self, document):
        p = whole(width_stated(document), "n_features", 1)
        labels, entries, bags = self.lines
        if p * max(1, len(labels)) > MOST_NUMBERS:
            raise Declined(f"too large: {len(labels)} samples of {p} features")
        columns = [[0.0] * len(labels) for _ in range(p)]
        for i, j, x in entries:
            need(j < p, "the data has more columns than n_features")
            columns[j][i] = x
        own = [f"x{j + 1}" for j in range(p)]
        names = self.described.get("features", {}).get("names") or self.names or own
        need(len(names) == p, "the data's names are not as many as its columns")
        return Data(names, columns, None, [1.0] * len(labels), named=names != own, bags=bags, labels=labels)


def width_stated(document):
    """How many columns the raw data has by a document: of functions of features `n_features` counts their columns."""
    made = (document.get("atoms") or {}).get("made") or {}
    return made.get("n_features") if "name" in made else document.get("n_features")


def signs(labels, stated):
    """y of the labels of a file, by what the document calls the two."""
    need(isinstance(stated, dict) and set(stated) == {"negative", "positive"}, "labels are not two")
    check_labels(stated)
    found = {}
    for label in set(labels):
        for side, sign in (("negative", -1.0), ("positive", 1.0)):
            if calls(stated[side], label):
                found[label] = sign
        need(label in found, f"the data has a label {label!r} that the document does not name")
    return [found[label] for label in labels]


def check_labels(stated):
    """The labels of a document are two, each a text, a number or a boolean."""
    two = [stated[side] for side in ("negative", "positive")]
    need(all(isinstance(name, (str, int, float)) for name in two), "a label is no text, number or boolean")
    need(not calls(*two), "both labels have one name")


def calls(name, label):
    """Whether a document calls a label of the data so: by an equal text, or a number of equal value."""
    one, other = str(name), str(label)
    if one.startswith("not ") and other.startswith("not "):  # of a class against the rest
        one, other = one[4:], other[4:]
    if one == other:
        return True
    numbers = [float(text) for text in (one, other) if is_number(text)]
    return len(numbers) == 2 and numbers[0] == numbers[1] and math.isfinite(numbers[0])


def as_labels(cells):
    """Labels as numbers if all of them are numbers, otherwise as stripped texts."""
    cells = [cell.strip() for cell in cells]
    return [float(cell) for cell in cells] if all(map(is_number, cells)) else cells


def read_svmlight(text):
    """Lines of a label, perhaps qid:bag, and index:value, indices from 1: (labels, entries (i, j, x), bags)."""
    entries, labels, bags = [], [], []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        labels.append(words[0])
        for word in words[1:]:
            index, value = word.split(":")
            if index == "qid":
                bags.append(int(value))
            else:
                entries.append((len(labels) - 1, int(index) - 1, float(value)))
                need(entries[-1][1] >= 0 and math.isfinite(entries[-1][2]), "an entry of the data is none")
    need(not bags or len(bags) == len(labels), "a sample has no bag")
    return as_labels(labels), entries, bags or None


# --- Tables: sections "Rules" and "Raw tables" ---------------------------------------------------------------

SEPARATORS = ",;\t|"
MISSING = ("", "?", "na", "n/a", "nan", "null")
B = "[ \u00a0\u202f'\u2019]"
SYMBOL = r"(?:[$€£¥₹₽₩₺₴]|[A-Za-z]{1,3}\$|[A-Za-z]{2,4}\.?|CHF)"
MONEY = re.compile(rf"([+-]?)\s*+{SYMBOL}?+\s*+([+-]?)\s*+((?:[\d.,\s]|{B})++){SYMBOL}?", re.ASCII)
DATE = re.compile(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})", re.ASCII)
LOOKS = ("date", "date d/m/y", "date m/d/y", "currency", "percent", "decimal comma", "currency decimal comma",
         "percent decimal comma")  # fmt: skip
TYPES = set(LOOKS)


def is_number(cell):
    """Whether Python's `float` reads a cell, and it has no underscore."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def is_missing(cell, marks=()):
    """Whether a cell says that there is none, in the words of every table or by a mark: its text, or its number."""
    cell = cell.strip()
    if cell.lower() in MISSING:
        return True
    numbers = [float(mark) for mark in marks if is_number(mark)] if is_number(cell) else []
    return cell.lower() in [mark.lower() for mark in marks] or any(float(cell) == value for value in numbers)


def is_header(line, first):
    """Whether a comment is the header of the line of numbers that follows."""
    rows = []
    for one in (line, first):
        rows.append([is_float(cell) for cell in one.split(max(SEPARATORS, key=one.count))])
    return len(rows[0]) == len(rows[1]) >= 2 and all(rows[1]) and not all(rows[0])


def is_float(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def records(lines, separator):
    """The records of a table, the header first, without empty lines and comments; a quote may hold line ends."""
    header = {mark: lines[0].count(mark) for mark in SEPARATORS if mark in lines[0]}
    fresh = True

    def feed():
        nonlocal fresh
        for i, line in enumerate(lines):
            comment = i and line.startswith("#") and all(line.count(mark) < k for mark, k in header.items())
            if not (fresh and (comment or not line.strip("\r\n"))):
                fresh = False
                yield line

    reader = csv.reader(feed(), delimiter=separator, strict=True)
    while (record := next(reader, None)) is not None:
        yield record
        fresh = True


def width_of(lines, separator):
    """Into how many cells a separator splits both of the first two records; 0 where they differ."""
    try:
        found = [len(record) for record, _ in zip(records(lines, separator), range(2), strict=False)]
    except csv.Error:
        return 0
    return found[0] if len(found) == 2 and found[0] == found[1] else 0


def cells_of(text):
    """The cells of a table by the name of their column, in the order of the columns."""
    lines = list(io.StringIO(text, newline=""))
    place = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), None)
    need(place is not None, "the data has no lines")
    above = [line.lstrip("#").strip() for line in lines[:place] if line.startswith("#")]
    lines = lines[place:]
    if above and is_header(above[-1], lines[0].strip("\r\n")):
        lines.insert(0, above[-1] + "\n")
    separator = max(SEPARATORS, key=lambda mark: width_of(lines, mark))
    separator = separator if width_of(lines, separator) >= 2 else ","
    header, *table = records(lines, separator)
    header = [name.strip() for name in header]
    need(table and all(len(row) == len(header) for row in table), "a record of the data has another number of cells")
    need(len(set(header)) == len(header) and all(header[1:]), "two columns have one name, or one has none")
    cells = dict(zip(header, (list(column) for column in zip(*table, strict=True)), strict=True))
    if header[0] in ("", "Unnamed: 0"):
        numbers = [cell.strip() for cell in cells[header[0]]]
        counted = len(set(numbers)) == len(numbers) and all(cell.isascii() and cell.isdigit() for cell in numbers)
        need(counted or header[0], "the first column has no name")
        if counted:
            del cells[header[0]]
    return cells


def rules_of(document):
    """The version of the rules that a document names; 1 if it names none."""
    rules = document.get("rules", 1)
    need(type(rules) is int and rules in (1, 2, 3, 4, 5, 6), f"rules {rules!r}, which I do not know")
    return rules


def reading_of(document):
    """What a document says in `read`, its fields looked at; `left_out` is None where it is missing or null."""
    rules, read = rules_of(document), document.get("read")
    given = {
        "label": None,
        "words": {},
        "left_out": None,
        "kept": [],
        "recipe": None,
        "rules": rules,
    }
    if read is None:  # under rules 2 of data that is no table (`Source._table`)
        return given
    fields = {"label", "words", "left_out"} | ({"kept"} if rules > 1 else set())
    need(isinstance(read, dict) and set(read) <= fields | {"recipe"}, "read has unknown fields")
    lacking = fields - set(read)
    need(rules == 1 or lacking in (set(), {"left_out", "kept"}), "a field of read is missing")
    given |= read
    need(given["label"] is None or isinstance(given["label"], str), "read.label is no name")
    need(isinstance(given["words"], dict), "read.words is no mapping")
    need(rules == 1 or "left_out" in lacking or given["left_out"] is not None, "read.left_out is missing")
    for key in ("left_out", "kept"):
        need(given[key] is None or are_names(given[key]), f"read.{key} is no list of names, each once")
    if "recipe" in read:
        check_recipe(read["recipe"])
    return given


def are_names(value):
    """Whether a value of the JSON is a list of different texts."""
    return isinstance(value, list) and all(isinstance(s, str) for s in value) and len(set(value)) == len(value)


def check_recipe(recipe):
    """The form of `read.recipe`."""
    fields = {"drop", "use", "impute", "types", "filled", "missing"}
    need(isinstance(recipe, dict) and set(recipe) - {"marks"} == fields, "read.recipe has other fields")
    marks = recipe.get("marks", ["-"])
    need(are_names(marks) and marks, "read.recipe.marks is no list of different texts")
    need(all(mark.strip() == mark != "" for mark in marks), "a mark of missing cells is empty, or has blanks around it")
    need(are_names(recipe["drop"]) and (recipe["use"] is None or are_names(recipe["use"])), "a recipe names no columns")
    for key in ("impute", "types", "filled", "missing"):
        need(isinstance(recipe[key], dict), f"read.recipe.{key} is no mapping")
    need(all(how in ("median", "most frequent", "level") for how in recipe["impute"].values()), "an unknown impute")
    need(all(isinstance(kind, str) and kind in TYPES for kind in recipe["types"].values()), "an unknown type")
    asks = recipe["drop"] or recipe["impute"] or recipe["types"] or recipe["use"] is not None or "marks" in recipe
    need(asks, "read.recipe has nothing that was done")


class Reading:
    """A table as columns, by the rules and the recipe that a document names.

    `names` and `columns` are the features, `y` the labels. `words` are the words of every column of words that stays
    (`made_of` those of which it makes a feature each: since rules 5 of two words the second alone),
    `rule` what the rule leaves out, `left_out` what is left out by it, `dropped` what options leave out, and `kept`
    what stays although the rule would leave it out; `gaps` are the rows of missing cells by column.
    """

    def __init__(self, cells, read, listed):
        self.read, self.cells = read, cells
        self.recipe = read["recipe"] or {
            "drop": [],
            "use": None,
            "impute": {},
            "types": {},
            "filled": {},
            "missing": {},
        }
        self.label = "label" if read["label"] is None else read["label"]
        need(self.label in cells, f"the data has no column of labels {self.label!r}")
        self.roles = {self.label} | ({"bag", "sample_weight"} & set(cells))
        self._check_names()
        drop, use = self.recipe["drop"], self.recipe["use"]
        self.dropped = [s for s in cells if s not in self.roles and (s in drop or (use is not None and s not in use))]
        for name in self.roles:
            need(not any(map(is_missing, cells[name])), f"column {name!r} has a missing cell")
        self.y = as_labels(cells[self.label])
        need(all(math.isfinite(v) for v in self.y if isinstance(v, float)), "a label is not finite")
        self.found = {s: self._column(s) for s in cells if s not in self.roles and s not in self.dropped}
        self._leave_out(listed)
        self._make()

    def _check_names(self):
        recipe, roles = self.recipe, self.roles
        named = [*recipe["drop"], *recipe["types"], *(name for name in recipe["impute"] if name != "*")]
        need(not roles & set(named), "a recipe names a column that has a role")
        unknown = [name for name in [*named, *(recipe["use"] or [])] if name not in self.cells]
        need(not unknown, f"a recipe names {unknown[:3]}, which the data does not have")

    def _column(self, name):
        """(values, rows of missing cells, what they are filled with): numbers or texts, filled."""
        cells = [cell.strip() for cell in self.cells[name]]
        marks = self.recipe.get("marks", ())
        gaps = [i for i, cell in enumerate(cells) if is_missing(cell, marks)]
        how = self.recipe["impute"].get(name, self.recipe["impute"].get("*"))
        need(how is not None or not gaps, f"column {name!r} has a missing cell, and nothing to fill it with")
        absent = set(gaps)
        held = values_of(
            name, [cell for i, cell in enumerate(cells) if i not in absent], self.recipe["types"].get(name)
        )
        need(held, f"column {name!r} has no values")
        says = {"true": 1.0, "false": 0.0}
        if self.read["rules"] >= 6 and name not in self.read["kept"] and all(str(v).lower() in says for v in held):
            held = [says[v.lower()] for v in held]
        fill = None if how is None else filling(held, how)
        rest = iter(held)
        return [fill if i in absent else next(rest) for i in range(len(cells))], gaps, fill

    def _leave_out(self, listed):
        """Which columns of words are left out, held against what `read` says."""
        read, use = self.read, self.recipe["use"] or []
        texts = {name: column for name, (column, _, _) in self.found.items() if isinstance(column[0], str)}
        self.rule = [name for name, column in texts.items() if tells_rows_apart(column)]
        own = [name for name in self.rule if name not in use]
        if read["rules"] == 1:
            own = [name for name in own if name not in listed]
        stated = own if read["left_out"] is None else read["left_out"]
        need(set(stated) <= set(texts), f"read.left_out has {sorted(set(stated) - set(texts))[:3]}: no column of words")
        need(set(stated) <= set(own), f"{sorted(set(stated) - set(own))[:3]} is left out, which the rule keeps")
        need(stated == [name for name in texts if name in stated], "read.left_out is not in the order of the file")
        need(set(read["kept"]) <= set(texts), "read.kept has what is no column of words")
        if read["rules"] > 1:
            own = [name for name in own if name not in read["kept"]]
            need(stated == own, f"the columns of words that are left out are {own}, not {stated}")
        self.left_out = stated
        self.kept = [name for name in self.rule if name not in stated]
        self.words = {name: sorted(set(column)) for name, column in texts.items() if name not in stated}
        is_one = {name: read["rules"] >= 5 and len(words) == 2 for name, words in self.words.items()}
        self.made_of = {name: words[1:] if is_one[name] else words for name, words in self.words.items()}

    def _make(self):
        """Names and columns of the features; what missing cells were filled with is compared."""
        self.names, self.columns, filled, self.gaps = [], [], {}, {}
        for name, (column, gaps, fill) in self.found.items():
            if name in self.left_out:
                continue
            if fill is not None:
                filled[name] = fill
            if gaps:
                self.gaps[name] = gaps
            for word in self.made_of.get(name, []):
                self.names.append(f"{name}={word}")
                self.columns.append([float(one == word) for one in column])
            if name not in self.words:
                self.names.append(name)
                self.columns.append(column)
                if gaps and self.recipe["impute"].get(name, self.recipe["impute"].get("*")) == "level":
                    absent = set(gaps)
                    self.names.append(f"{name}=missing")
                    self.columns.append([float(i in absent) for i in range(len(column))])
        need(same(self.recipe["filled"], filled), "read.recipe.filled is not what missing cells are filled with")
        counts = {name: len(gaps) for name, gaps in self.gaps.items()}
        need(same(self.recipe["missing"], counts), "read.recipe.missing is not how many cells are missing")

    def digested(self):
        """What a recipe adds to the data's digest."""
        recipe = {key: self.recipe[key] for key in ("drop", "use", "impute", "types", "marks") if key in self.recipe}
        if not any(recipe[key] for key in recipe if key != "use") and recipe["use"] is None:
            return []
        counts = [[name, len(gaps)] for name, gaps in self.gaps.items()]
        said = json.dumps([recipe, counts], sort_keys=True).encode("ascii")
        return [said, *(struct.pack(f"<{len(gaps)}q", *gaps) for gaps in self.gaps.values())]

    def weights(self):
        if "sample_weight" not in self.roles:
            return None
        need(all(is_number(cell.strip()) for cell in self.cells["sample_weight"]), "a sample weight is no number")
        values = [float(cell) for cell in self.cells["sample_weight"]]
        need(all(0 < v < math.inf for v in values), "a sample weight is not above 0")
        return values

    def bags(self):
        """Their numbers if all are whole, otherwise their positions among the different ones."""
        if "bag" not in self.roles:
            return None
        values = as_labels(self.cells["bag"])
        if all(isinstance(v, float) and v.is_integer() and abs(v) < 2**53 for v in values):
            return [int(v) for v in values]
        place = {v: k for k, v in enumerate(sorted(set(values)))}
        return [place[v] for v in values]

    def used(self, names):
        """The words of the columns of words that names of features, words or columns refer to."""
        names = set(names)
        return {
            column: words
            for column, words in self.words.items()
            if column in names or any(f"{column}={word}" in names for word in words)
        }

    def refilled(self, rows):
        """Columns by name in which missing cells of some rows are filled with what the other rows say."""
        made = {}
        for name, gaps in self.gaps.items():
            column, absent = self.found[name][0], set(gaps)
            how = self.recipe["impute"].get(name, self.recipe["impute"].get("*"))
            held = [v for i, v in enumerate(column) if i not in absent and i not in rows]
            if not held:
                raise Declined(f"column {name!r} has no value outside a fold")
            fill = filling(held, how)
            column = [fill if i in absent and i in rows else v for i, v in enumerate(column)]
            for word in self.made_of.get(name, []):
                made[f"{name}={word}"] = [float(one == word) for one in column]
            if name not in self.words:
                made[name] = column
        return made

    def notes(self):
        """What a verdict says about the columns."""
        lines = []
        for what, names in (
            ("left out by the rule for columns of words", self.left_out),
            ("left out by options", self.dropped),
            ("kept by options, although the rule would leave it out", self.kept),
        ):
            lines += [f"{what}: {', '.join(map(repr, names))}"] if names else []
        return lines


def alike(one, other):
    """Whether two values of the JSON are the same, of the same kinds: true is no 1, and 1.0 is 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    numbers = type(one) in (int, float) and type(other) in (int, float)
    return (numbers or type(one) is type(other)) and one == other


def same(stated, found):
    """Whether a mapping of the JSON has exactly these numbers and texts."""
    return set(stated) == set(found) and all(
        stated[name] == value
        and not isinstance(stated[name], bool)
        and isinstance(stated[name], str) == isinstance(value, str)
        for name, value in found.items()
    )


def values_of(name, cells, kind):
    """The cells of a column that are not missing, as numbers or as texts."""
    if kind is not None:
        values = [typed(cell, kind) for cell in cells]
        need(None not in values, f"column {name!r} has a cell that is no {kind}")
        return values
    numbers = [is_number(cell) for cell in cells]
    if not all(numbers) and any("," in cell for cell in cells):
        marked = [cell for cell in cells if "," in cell]
        thousands = all(re.fullmatch(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", cell, re.ASCII) for cell in marked)
        rest = all(is_it for is_it, cell in zip(numbers, cells, strict=True) if "," not in cell)
        need(not (thousands and rest), f"column {name!r} has commas between thousands")
        if all(re.fullmatch(r"[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?", cell, re.ASCII) for cell in cells):
            cells, numbers = [cell.replace(",", ".") for cell in cells], [True] * len(cells)
    if not all(numbers):
        need(not any(numbers), f"column {name!r} has numbers and words")
        return cells
    values = [float(cell) for cell in cells]
    need(all(map(math.isfinite, values)), f"column {name!r} has a number that is not finite")
    return values


def filling(held, how):
    """What fills the missing cells of a column."""
    if isinstance(held[0], str) and how == "level":
        return "missing"
    if how == "most frequent" or isinstance(held[0], str):
        times = Counter(held)
        return min(value for value, k in times.items() if k == max(times.values()))
    held, k = sorted(held), len(held) // 2
    return held[k] if len(held) % 2 else (held[k - 1] + held[k]) / 2


def tells_rows_apart(words):
    """Section "Columns of words that are left out"."""
    different, n = sorted(set(words)), len(words)
    d = len(different)
    if d <= 20:
        return False
    return n < 2 * d or (d > 50 and n < 5 * d) or looks_typed(different[:200])


def looks_typed(words):
    percent = sum(word.endswith("%") for word in words)
    pattern = re.compile("[$€£¥₹₽₩₺₴%]|\\d[ \u00a0]?[A-Z]{3}$|^[A-Z]{3}[ \u00a0]?\\d")
    marked = sum(pattern.search(word) is not None for word in words)
    for kind in LOOKS:
        if ("percent" in kind and not percent) or ("currency" in kind and percent == marked):
            continue
        if sum(typed(word, kind) is not None for word in words) >= 0.9 * len(words):
            return True
    return False


def typed(cell, kind):
    """What a cell means under a type, None if it does not read it."""
    if kind.startswith("date"):
        return date_of(cell, kind)
    comma = kind.endswith("decimal comma")
    if kind.startswith("currency"):
        sign = 1.0
        if cell.startswith("(") and cell.endswith(")"):
            cell, sign = cell[1:-1].strip(), -1.0
        found = MONEY.fullmatch(cell)
        if found is None or (found[1] and found[2]):
            return None
        value = plain(found[3].strip(), comma)
        return None if value is None else sign * (-value if "-" in (found[1], found[2]) else value)
    if kind.startswith("percent"):
        cell = cell.removesuffix("%").strip()
    sign, cell = (cell[0], cell[1:].lstrip()) if cell[:1] in ("+", "-") else ("", cell)
    value = plain(cell, comma)
    return -value if value is not None and sign == "-" else value


def plain(text, comma):
    """Digits, with thousands apart or not, and a point or a comma before the fraction."""
    mark, point = (r"\.", ",") if comma else (",", r"\.")
    found = re.fullmatch(rf"(\d{{1,3}}((?:{mark}|{B})\d{{3}})+|\d+)?({point}\d*)?", text, re.ASCII)
    if found is None or not re.search(r"\d", text, re.ASCII):
        return None
    front = re.sub(r"\D", "", found[1] or "", flags=re.ASCII)
    return float(f"{front or 0}.{(found[3] or '.')[1:] or 0}")


def date_of(cell, kind):
    """Days since 1970-01-01."""
    found = DATE.fullmatch(cell)
    if found is None:
        if kind != "date" or len(cell) < 8:
            return None
        try:
            moment = datetime.datetime.fromisoformat(cell)
        except ValueError:
            return None
        offset = moment.utcoffset()
        passed = moment.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
        passed -= offset or datetime.timedelta(0)
        return float(Fraction(passed // datetime.timedelta(microseconds=1), 10**6)) / 86400
    a, mark, b, c = found.groups()
    if kind == "date":
        if len(a) == 4 and len(c) <= 2:
            year, month, day = a, b, c
        elif len(c) == 4 and len(a) <= 2 and mark == ".":
            day, month, year = a, b, c
        else:
            return None
    elif len(a) == 4 and len(c) <= 2:
        year, month, day = a, b, c
    elif len(c) == 4 and len(a) <= 2:
        (day, month), year = (a, b) if kind == "date d/m/y" else (b, a), c
    else:
        return None
    try:
        return float((datetime.date(int(year), int(month), int(day)) - datetime.date(1970, 1, 1)).days)
    except ValueError:
        return None


def asked_of(described, names):
    """What the .toml beside the data asks of every statement: rows, forced features, penalties."""
    select = described.get("select", {})
    rows = []
    if "budget" in select:
        terms = {name: value for name, value in described.get("cost", {}).items() if value > 0}
        rows.append((terms, None, select["budget"]))
    rows += [({a: 1.0, b: -1.0}, None, 0) for a, b in select.get("implies", [])]
    rows += [(dict.fromkeys(pair, 1.0), None, 1) for pair in select.get("conflicts", [])]
    for key in ("at_most", "at_least", "exactly"):
        for entry in select.get(key, []):
            k = entry["k"]
            terms = dict.fromkeys(entry["of"], 1.0)
            rows.append((terms, None if key == "at_most" else k, None if key == "at_least" else k))
    over = [
        ({name: a for name, a in one.get("coefficients", {}).items() if a},
         *(None if end is None or math.isinf(end) else end for end in (one.get("lower"), one.get("upper"))))
        for one in described.get("weights", {}).get("rows", [])
    ]  # fmt: skip
    return {
        "weight_rows": [row for row in over if row[0] and row[1:] != (None, None)],
        "rows": [row for row in rows if set(row[0]) <= set(names)],
        "forced_in": select.get("forced_in", []),
        "forced_out": select.get("forced_out", []),
        "penalty": described.get("penalty", {}),
    }


# --- The statement -------------------------------------------------------------------------------------------


def names_in(text):
    return set(text.split())


ARRAYS = names_in(
    "version column_shift column_scale column_center feature children dual multiplier whole multipliers dual_q "
    "dual_start dual_bytes dual_level dual_width dual_top outside dual_label dual_whole labelling "
    "integer_start integer_row integer_value"
)
"""All arrays of a sidecar that the page names."""
OF_BYTES, OF_LABELLINGS = (
    names_in("dual_bytes dual_level dual_width dual_top"),
    names_in("dual_label dual_whole labelling"),
)
NEEDED = names_in(
    "schema "
    "status objective bound gap selected weights intercept params labels columns n_features scaling data_sha256 rows "
    "certificate"
)
FIELDS = NEEDED | names_in(
    "stop_reason driver seconds counters trace conflict relaxed validated bound_source versions extra "
    "near_optimal atoms read command settings calibration rules weightless extra_cost "
    "decided warm_from"
)
PARAMS = names_in("M C lambda loss bias penalty margin forced_in forced_out gap weight_bounds class_weight weight_rows")
RELAXED = names_in("upper lower sigma weights intercept extra mixture selections")
LARGEST = Fraction(10) ** 100
"""C times a weight, and numbers of rows, are from its reciprocal to this; of far columns the former to its cube."""
OF_MEASURES = {"measure", "beta", "k", "constant"}
CARRIED_ELSEWHERE = {"regulariser"}
"""Parameters of problems that this checker declines."""


class Row:
    """lb ≤ Aσ + Bz ≤ ub with the ends that its allowance leaves; None is an absent end.

    `rounded` are the extra variables that are not whole, whose terms are forgiven a part; `lenient`: of whole ones it
    is forgiven too, and `used` says whether that was needed.
    """

    def __init__(self, terms, extra, low, high, rounded=(), lenient=False):
        self.terms, self.extra, self.low, self.high = terms, extra, low, high
        self.rounded, self.lenient, self.used = set(rounded), lenient, False

    def holds(self, sigma, z, loose=0):
        """Whether it holds; `z` None leaves out rows of extra variables."""
        if z is None and self.extra:
            return True
        own, other = [a * sigma[j] for j, a in self.terms.items()], {k: b * z[k] for k, b in self.extra.items()}
        total, sizes = sum(own) + sum(other.values()), sum(map(abs, own)) + sum(map(abs, other.values()))
        room = ROUNDED * sum(abs(v) for k, v in other.items() if k in self.rounded) + loose * sizes
        if self._within(total, room):
            return True
        room += ROUNDED * sum(abs(v) for k, v in other.items() if k not in self.rounded)
        needed = self.lenient and self._within(total, room)
        self.used = self.used or needed
        return needed

    def _within(self, total, room):
        return (self.low is None or total >= self.low - room) and (self.high is None or total <= self.high + room)


class OverWeights:
    """A row over the weights: low − e ≤ Σ a_j w_j ≤ high + e on the user's scale; None is an absent end."""

    def __init__(self, stated, one):
        fields = {"coefficients", "lower", "upper", "allowance"}
        need(isinstance(one, dict) and set(one) - {"parity"} == fields, "a row over the weights has other fields")
        need(
            isinstance(one["coefficients"], dict) and one["coefficients"], "a row over the weights has no coefficients"
        )
        need(set(one["coefficients"]) <= set(stated.place), "a row over the weights names what is no feature")
        self.terms = {name: number(a, "a coefficient") for name, a in one["coefficients"].items()}
        self.low, self.high = (number_or_none(one[end], "an end of a row") for end in ("lower", "upper"))
        need(self.low is not None or self.high is not None, "a row over the weights has no end")
        need((self.low or 0) <= 0 <= (self.high or 0), "a row over the weights leaves out 0")
        sizes = [abs(a) for a in self.terms.values()] + [abs(end) for end in (self.low, self.high) if end]
        need(
            all(1 / LARGEST <= a <= LARGEST for a in sizes), "a number of a row over the weights is too small or large"
        )
        self.allowance, self.place = number(one["allowance"], "an allowance"), stated.place
        scaled = {stated.place[name]: a / stated.scale[stated.place[name]] for name, a in self.terms.items()}
        self.unit = power_above(max(abs(a) for a in scaled.values()))
        self.scaled = {j: a / self.unit for j, a in scaled.items()}
        if "parity" in one:
            self._check_parity(one["parity"], stated.data)

    def _check_parity(self, given, data):
        """Section "Rows over the weights": the coefficients are the differences of the means of two groups."""
        need(isinstance(given, dict) and set(given) == {"groups", "samples"}, "parity has other fields")
        groups, marks, n = given["groups"], given["samples"], len(data.y)
        need(isinstance(groups, list) and len(groups) == 2 and groups[0] != groups[1], "parity is not of two groups")
        need(all(isinstance(name, str) for name in groups), "parity: a group has no name")
        need(isinstance(marks, str) and len(marks) == n and set(marks) <= set("012"), "parity: other samples")
        need(self.high is not None and self.low is not None and self.low == -self.high, "parity: other ends")
        need({"1", "2"} <= set(marks), "parity: a group without samples")
        inside = [[(i, data.weights[i]) for i, mark in enumerate(marks) if mark == one] for one in "12"]
        totals = [math.fsum(weight for _, weight in group) for group in inside]
        for name, column in zip(data.names, data.columns, strict=True):
            first, second = (
                math.fsum(weight * column[i] for i, weight in group) / total
                for group, total in zip(inside, totals, strict=True)
            )
            room = 2.0**-50 * (n + 64) * max(map(abs, column)) + 1 / LARGEST
            need(abs(float(self.terms.get(name, 0)) - (first - second)) <= room, f"parity: {name!r} has other means")

    def check_allowance(self, largest):
        """`allowance` is the least double that the formula does not exceed."""
        ends = [abs(end) for end in (self.low, self.high) if end is not None]
        exact = Fraction(1, 2**40) * (max(ends) + largest * sum(abs(a) for a in self.terms.values()))
        before = Fraction(math.nextafter(float(self.allowance), -math.inf))
        need(before < exact <= self.allowance, "the allowance of a row over the weights is another one")

    def ends(self):
        """(o, d by column) of the lower end and of the upper one, as far as they are there."""
        if self.low is not None:
            yield (self.allowance - self.low) / self.unit, self.scaled
        if self.high is not None:
            yield (self.allowance + self.high) / self.unit, {j: -a for j, a in self.scaled.items()}

    def keeps(self, weights):
        """Whether weights by name keep the row."""
        total = sum((a * number(weights.get(name, 0.0), "a weight") for name, a in self.terms.items()), Fraction(0))
        low = self.low is None or total >= self.low - self.allowance
        return low and (self.high is None or total <= self.high + self.allowance)


def power_above(most):
    """The least power of two that is no less than a number above 0."""
    found = Fraction(2) ** (most.numerator.bit_length() - most.denominator.bit_length() - 1)
    while found < most:
        found *= 2
    return found


class Statement:
    """The problem that the JSON states, over the data: sections "What is proven" and "The JSON"."""

    def __init__(self, document, arrays, data):
        self.document, self.made = document, made_of(document, data, arrays)
        self.data = self.made.data if self.made else data
        params = document["params"]
        known = PARAMS | CARRIED_ELSEWHERE | (OF_MEASURES if params.get("loss") == "structural" else set())
        need(set(params) <= known, f"unknown parameters {sorted(set(params) - known)}")
        self.rules = rules_of(document)
        self.loss, self.bias = params["loss"], params.get("bias")
        need(isinstance(self.bias, bool), "bias is neither true nor false")
        need({"M", "C", "lambda", "gap"} <= set(params), "a parameter is missing")
        margin = params.get("margin", "unit")
        need(margin in ("unit", "rho"), "the margin is neither unit nor rho")
        self.rho = margin == "rho"
        need(not self.rho or self.loss == "squared-hinge", "the ρ-form is one of the squared hinge")
        self.y = [int(v) for v in data.y]
        self.C = number(params.get("C"), "C")
        need(self.C > 0, "C is not above 0")
        products = [float(self.C) * w for w in self._weights(params.get("class_weight"))]
        need(all(math.isfinite(c) for c in products), "C times a weight is too large")
        self.c = [Fraction(c) for c in products]  # fl(C · fl(class weight · weight))
        self.asked_gap = number(params.get("gap"), "params.gap")
        need(0 <= self.asked_gap < 1, "the asked gap is not from 0 to 1")
        data = self.data
        width = self.made.width if self.made else len(data.names)
        need(whole(document["n_features"], "n_features") == width, "n_features is not the width of the data")
        need(len(set(data.names)) == len(data.names), "two features have one name")
        self.place = {name: j for j, name in enumerate(data.names)}
        self._atoms(document.get("atoms"))
        self._scaling(arrays)
        self.far = self.made is None and self._is_far()
        room = LARGEST**3 if self.far else LARGEST
        need(all(1 / room <= c <= room for c in self.c), "C times a weight is too small or large")
        self._selection(params)
        self._rows()
        self._box({} if params.get("weight_bounds") is None else params["weight_bounds"])
        self.over = self._rows_over_weights(params.get("weight_rows"))
        self.measure = Measure(self, params) if self.loss == "structural" else None

    def _is_far(self):
        """Whether the largest |value| lies from 2^(E - 1) up to 2^E with |E| > 250."""
        tops = [max(abs(k) for _, k in entries).bit_length() - e for entries, e in self.integers if entries]
        return bool(tops) and abs(max(tops)) > 250

    def _weights(self, by_class):
        """The weights of the samples, times those of their classes."""
        if by_class is None:
            return self.data.weights
        low, high = (str(self.document["labels"][side]) for side in ("negative", "positive"))
        need(isinstance(by_class, dict) and set(by_class) == {low, high}, "class weights are not those of both labels")
        of = {-1: number(by_class[low], "a class weight"), 1: number(by_class[high], "a class weight")}
        need(min(of.values()) > 0, "a class weight is not positive")
        return [float(of[y]) * w for y, w in zip(self.y, self.data.weights, strict=True)]

    def _atoms(self, atoms):
        """Names, columns and squared scales of what is selected."""
        need(atoms is None or isinstance(atoms, dict), "atoms is no mapping")
        atoms = atoms or {}
        need(set(atoms) <= {"names", "columns", "scale", "made"}, "atoms has an unknown field")
        names, columns, scale = (atoms.get(key) for key in ("names", "columns", "scale"))
        if self.made:
            names, columns = self.made.names, [[self.data.names[i] for i in group] for group in self.made.groups]
        self.names = list(self.data.names) if names is None else names
        need(isinstance(self.names, list) and all(isinstance(s, str) for s in self.names), "atoms.names are no names")
        need(len(set(self.names)) == len(self.names), "two atoms have one name")
        self.single = columns is None
        if columns is None:
            need(names is None, "atoms have names, but no columns")
            self.columns = [[j] for j in range(len(self.names))]
        else:
            need(isinstance(columns, list) and len(columns) == len(self.names), "atoms.columns are not one an atom")
            need(names is not None, "atoms have columns, but no names")
            odd = any(not isinstance(one, list) or not one or len({*map(str, one)}) != len(one) for one in columns)
            need(not odd, "an atom has no columns, or one twice")
            need(all(isinstance(s, str) and s in self.place for one in columns for s in one), "an unknown column")
            self.columns = [[self.place[name] for name in one] for one in columns]
        scale = [1.0] * len(self.names) if scale is None else scale
        need(isinstance(scale, list) and len(scale) == len(self.names), "atoms.scale is not one number an atom")
        self.lam2 = [number(one, "a scale") ** 2 for one in scale]
        need(all(number(one, "a scale") >= 0 for one in scale), "a scale is below 0")
        self.p = len(self.names)
        self.atom = {name: j for j, name in enumerate(self.names)}

    def _scaling(self, arrays):
        """Shift and scale of every column, checked against the columns, and the scaled columns as integers."""
        of_products = isinstance(self.made, Products)  # whose scaling is that of the raw data
        kind = "none" if of_products else self.document["scaling"].get("kind")
        need(kind in ("none", "standard", "unit"), "an unknown kind of scaling")
        need(not self.made or kind == "none", "functions of features are scaled")
        p = len(self.data.names)
        if self.rules > 1:
            none = "column_center" not in arrays and "center" not in self.document["scaling"]
            need(none, f"a center, which rules {self.rules} do not have")
        if kind == "none":
            shift, scale, center = [0.0] * p, [1.0] * p, [0.0] * p
        elif not {"column_shift", "column_scale"} <= set(arrays):
            raise Declined("a certificate of an earlier version, in which the scaling of the columns does not stand")
        else:
            shift, scale, center = column_scaling(arrays, kind, self.data, self.rules)
        self.shift, self.scale, self.center = [Fraction(v) for v in shift], [Fraction(v) for v in scale], center
        for what, values in (("shift", shift), ("scale", scale), ("center", center)):
            stated = {} if of_products else self.document["scaling"].get(what) or {}
            need(isinstance(stated, dict), f"scaling.{what} is no mapping")
            for name, value in stated.items():
                need(name in self.place, f"scaling.{what} names {name!r}, which is no feature")
                need(number(value, what) == values[self.place[name]], f"scaling.{what} of {name!r} is another one")
        self.integers = []
        for j, column in enumerate(self.data.columns):
            off = Fraction(center[j])
            if off:
                column = [Fraction(x / scale[j]) - off for x in column]
            elif kind != "none":
                column = [(x - shift[j]) / scale[j] for x in column]
            self.integers.append(as_integers(column))

    def _selection(self, params):
        """M, the forced atoms and what an atom costs."""
        M = params.get("M")
        need(M is None or whole(M, "M") <= 2**53, "M is too large")
        self.M = self.p if M is None else min(M, self.p)
        self.forced = {}
        for key, value in (("forced_in", 1), ("forced_out", 0)):
            names = params.get(key, [])
            need(isinstance(names, list), f"{key} is no list")
            for name in names:
                need(isinstance(name, str) and name in self.atom, f"{key} has {name!r}, which cannot be selected")
                if self.forced.setdefault(self.atom[name], value) != value:
                    self.M = -1  # forced in and out: nothing fits
        lam, penalty = params.get("lambda", 0.0), params.get("penalty", {})
        if isinstance(lam, list):
            need(len(lam) == self.p, "lambda is not one number an atom")
            self.cost = [number(v, "lambda") for v in lam]
        elif isinstance(lam, dict):
            need(all(name in self.atom for name in lam), "lambda names what cannot be selected")
            self.cost = [number(lam.get(name, 0.0), "lambda") for name in self.names]
        else:
            self.cost = [number(lam, "lambda")] * self.p
        need(isinstance(penalty, dict) and all(name in self.atom for name in penalty), "penalty names no atoms")
        need(self.single or not penalty, "the data's penalties are about features, not about atoms")
        need(penalty == self.data.asked.get("penalty", {}), "the penalties are not those of the data's .toml")
        for name, value in penalty.items():
            both = float(self.cost[self.atom[name]]) + float(number(value, "penalty"))
            need(math.isfinite(both), "a penalty is too large")
            self.cost[self.atom[name]] = Fraction(both)  # fl(λ + penalty)
        need(all(c >= 0 for c in self.cost), "a penalty is below 0")
        need(not self.rho or not any(self.cost), "the ρ-form has no penalties")

    def _rows(self):
        """The user's rows and extra variables."""
        given = self.document.get("extra", {})
        need(isinstance(given, dict), "extra is no mapping")
        self.extra = list(given)
        need(not set(self.extra) & set(self.names), "an extra variable has the name of an atom")
        self.ends, self.integer, self.extra_cost = [], [], []
        for name, one in given.items():
            need(
                isinstance(one, dict) and set(one) <= {"lb", "ub", "integer", "value", "cost"},
                f"{name} has unknown fields",
            )
            need(isinstance(one.get("integer"), bool), f"{name} is whole or not?")
            low, high = number_or_none(one["lb"], name), number_or_none(one["ub"], name)
            if one["integer"]:
                low, high = (None if low is None else math.ceil(low)), (None if high is None else math.floor(high))
            self.ends.append((low, high))
            self.integer.append(one["integer"])
            cost = number(one.get("cost", 0), f"the cost of {name}")
            need(not cost or 1 / LARGEST <= abs(cost) <= LARGEST, f"the cost of {name} is too small or large")
            self.extra_cost.append(cost)
        self.signed = any(self.extra_cost)  # values may be below 0
        self.rows = []
        need(isinstance(self.document.get("rows"), list), "rows is no list")
        for one in self.document["rows"]:
            need(isinstance(one, dict) and isinstance(one.get("terms"), dict), "a row has no terms")
            need(set(one) <= {"name", "terms", "lb", "ub", "origin"} and "name" in one, "a row has an unknown field")
            terms, extra = {}, {}
            for name, value in one["terms"].items():
                need(name in self.atom or name in given, f"a row names {name!r}, which is nothing")
                known = terms if name in self.atom else extra
                known[self.atom[name] if known is terms else self.extra.index(name)] = number(value, "a coefficient")
            low, high = (number_or_none(one[end], "an end of a row") for end in ("lb", "ub"))
            sizes = [abs(v) for v in (*terms.values(), *extra.values(), low, high) if v]
            need(all(v <= LARGEST for v in sizes), "a row has a number that is too large")
            need(all(abs(v) >= 1 / LARGEST for v in (*terms.values(), *extra.values()) if v), "a row has a tiny number")
            counted = [v for k, v in extra.items() if self.integer[k]] if self.rules >= 3 else []
            a = max((abs(v) for v in (*terms.values(), *counted)), default=Fraction(0))
            rounded = [] if self.signed else [k for k in extra if not self.integer[k]]
            self.rows.append(
                Row(terms, extra, moved(low, a, -1), moved(high, a, 1), rounded, self.rules < 3 and not self.signed)
            )
        self.priced = self._priced()
        self._check_costs()

    def _priced(self):
        """The atoms on which the costs of extra variables depend: section "Costs of extra variables"."""
        known, atoms = {k for k, d in enumerate(self.extra_cost) if d}, set()
        for _ in range(len(self.extra) + 1):  # as many rounds as it takes to join them all
            for row in self.rows:
                linked = {k for k, b in row.extra.items() if b}
                if linked & known:
                    known |= linked
                    atoms |= {j for j, a in row.terms.items() if a}
        return atoms

    def _check_costs(self):
        """What costs of extra variables go with, and what they come to."""
        document = self.document
        need(("extra_cost" in document) == self.signed, "extra_cost is there if and only if a variable has a cost")
        if not self.signed:
            return
        need(not self.rho and not isinstance(self.made, Products), "the ρ-form, or products, with costs of variables")
        need(not self.far, "far columns with costs of variables")
        need(
            document["status"] != "RELAXED" and document.get("relaxed") is None, "a relaxation with costs of variables"
        )
        said = number_or_none(document["extra_cost"], "extra_cost")
        need(
            (said is None) == (document["objective"] is None), "extra_cost without an objective, or the other way round"
        )
        if said is not None:
            z = self.extras({name: one["value"] for name, one in document["extra"].items()}, "an extra variable")
            size = sum(abs(d * v) for d, v in zip(self.extra_cost, z, strict=True))
            need(abs(said - self.costs(z)) <= CLOSE * size, "extra_cost is another one")

    def costs(self, z):
        """d'z."""
        return sum((d * v for d, v in zip(self.extra_cost, z, strict=True)), Fraction(0))

    def _box(self, bounds):
        """Bounds on the weights, by column, on the user's scale."""
        need(isinstance(bounds, dict), "weight_bounds is no mapping")
        self.bounds = {}
        for name, ends in bounds.items():
            need(name in self.place and isinstance(ends, list) and len(ends) == 2, "weight_bounds are no pairs by name")
            low, high = (number_or_none(end, "a bound of a weight") for end in ends)
            need(low is None or high is None or low <= high, "bounds of a weight cross")
            self.bounds[self.place[name]] = (low, high)
        self.excluding = {j for j, (low, high) in self.bounds.items() if (low or 0) > 0 or (high or 0) < 0}
        sums = self.loss != "structural" and not self.rho and not self.document.get("atoms")
        need(not self.excluding or (sums and self._is_tree()), "bounds that exclude 0, where they cannot be")
        need(not bounds or (not self.made and all(one == 1 for one in self.lam2)), "bounds of scaled or made columns")
        shared = {j for j, k in Counter(j for one in self.columns for j in one).items() if k > 1}
        signs = all(end in (None, 0) for j in shared for end in self.bounds.get(j, ()))
        need(signs, "a bound that is no sign, of a column in several atoms")
        need(not self.rho or all(end in (None, 0) for pair in self.bounds.values() for end in pair), "a box in ρ-form")

    def _is_tree(self):
        """Whether the certificate is no relaxation."""
        kind = (self.document.get("certificate") or {}).get("kind")
        return not self.document.get("relaxed") and kind != "relaxation"

    def _rows_over_weights(self, given):
        """Section "Rows over the weights"."""
        if given is None:
            return []
        need(isinstance(given, list) and given, "weight_rows is no list of rows")
        sums = self.loss != "structural" and not self.rho and not self.made and not self.far
        need(sums, "rows over the weights, where they cannot be")
        rows = [OverWeights(self, one) for one in given]
        named = {name for row in rows for name in row.terms}
        free = not any(self.place[name] in self.excluding for name in named)
        need(free, "a row over the weights is about a feature whose bounds exclude 0")
        near, relaxed = (self.document.get(name) or {} for name in ("near_optimal", "relaxed"))
        need(isinstance(relaxed, dict), "relaxed is no mapping")
        stated = [self.document["weights"], *(one["weights"] for one in near.get("supports", ()))]
        stated += [] if relaxed.get("weights") is None else [relaxed["weights"]]
        need(all(isinstance(weights, dict) for weights in stated), "weights is no mapping")
        sizes = [abs(number(w, "a weight")) for weights in stated for name, w in weights.items() if name in named]
        most = max(sizes, default=Fraction(0))
        for row in rows:
            row.check_allowance(power_above(most) if most else most)
        return rows

    def differs(self):
        """What the data's .toml asks for and the statement does not have, in words: its user may have taken it out."""
        asked, found, rows = self.data.asked, [], self.document["rows"]
        stated = [({k: v for k, v in one["terms"].items() if v}, one["lb"], one["ub"]) for one in rows]
        for terms, low, high in asked.get("rows", []):
            if ({k: v for k, v in terms.items() if v}, low, high) not in stated:
                found.append(f"a row {low} <= {terms} <= {high}")
        for key, value in (("forced_in", 1), ("forced_out", 0)):
            found += [f"{key} {name}" for name in asked.get(key, []) if self.forced.get(self.atom.get(name)) != value]
        held = [(row.terms, row.low, row.high) for row in self.over]
        for terms, low, high in asked.get("weight_rows", []):
            if (terms, low, high) not in held:
                found.append(f"a row over the weights {low} <= {terms} <= {high}")
        return found

    def allows(self, chosen, z):
        """Whether a selection (positions) with values of the extra variables is one of S."""
        sigma = [0] * self.p
        for j in chosen:
            sigma[j] = 1
        inside = len(chosen) <= self.M and all(sigma[j] == value for j, value in self.forced.items())
        return inside and all(row.holds(sigma, z) for row in self.rows)

    def unit(self, value):
        """A value as one of the unit margin: of the ρ-form, −1/(4v), it is v. None: no value is so large."""
        if not self.rho:
            return value
        return -1 / (4 * value) if value < 0 else None

    def reported(self, value):
        """A value of the unit margin as the problem has it; None: −∞."""
        if not self.rho:
            return value
        return -1 / (4 * value) if value > 0 else None

    def extras(self, values, what, fractional=False):
        """Values of the extra variables, found within their ends."""
        need(isinstance(values, dict) and set(values) == set(self.extra), f"{what}: an extra variable has no value")
        z = [number(values[name], what) for name in self.extra]
        for value, (low, high), integer in zip(z, self.ends, self.integer, strict=True):
            need((low is None or value >= low) and (high is None or value <= high), f"{what} is beyond its ends")
            need(fractional or not integer or value.denominator == 1, f"{what} is not whole")
        return z


def moved(end, a, sign):
    """An end of a row with its allowance: computed in doubles, and from there to the next double outward."""
    if end is None:
        return None
    found = float(end) + sign * float(ALLOWANCE) * (float(a) + abs(float(end)))
    return Fraction(math.nextafter(found, sign * math.inf))


def column_scaling(arrays, kind, data, rules):
    """Shift, scale and center of all columns as the sidecar states them, held against the columns."""
    p, names = len(data.names), ("shift", "scale", "center")
    centred = "column_center" in arrays and kind == "standard"
    shift, scale = (hexadecimals(arrays[f"column_{name}"], p, name) for name in names[:2])
    center = hexadecimals(arrays["column_center"], p, "center") if centred else [0.0] * p
    counts = counts_of(data, rules)
    for j, column in enumerate(data.columns):
        check_scaling(kind, data.names[j], column, Fraction(shift[j]), Fraction(scale[j]), counts)
        right = not centred or near(Fraction(shift[j]) / Fraction(scale[j]), Fraction(center[j]), Fraction(1, 2**50))
        need(right, "a center is not shift/scale")
    return shift, scale, center


def counts_of(data, rules):
    """How often the samples count in means and deviations: by their weights since rules 5, once before."""
    return [Fraction(w) if rules >= 5 else Fraction(1) for w in data.weights]


def check_scaling(kind, name, column, shift, scale, counts):
    """Whether shift and scale are mean and deviation, or 0 and norm, up to rounding; or 0 and 1."""
    if len(set(column)) == 1 if kind == "standard" else not any(column):  # it stays as it is
        need(shift == 0 and scale == 1, f"a constant column {name!r} is scaled")
        return
    exact, n = [Fraction(x) for x in column], len(column)
    counts, total = (counts, sum(counts)) if kind == "standard" else ([1] * n, n)
    mean = sum(c * x for c, x in zip(counts, exact, strict=True)) / total if kind == "standard" else 0
    size = sum(c * abs(x) for c, x in zip(counts, exact, strict=True)) / total
    need(abs(shift - mean) <= size * n / 2**48, f"the shift of column {name!r} is not its mean")
    square = sum(c * (x - mean) ** 2 for c, x in zip(counts, exact, strict=True)) / (total if kind == "standard" else 1)
    room = square * n / 2**46 + (size * n / 2**48) ** 2 * n
    need(scale > 0 and abs(scale**2 - square) <= room, f"the scale of column {name!r} is another")


def hexadecimals(array, p, what):
    """Hexadecimal floats, one a column."""
    need(array.kind == "S" and array.shape == (p,), f"column_{what} is not one text a column")
    try:
        found = [float.fromhex(text.decode("ascii")) for text in array.values]
    except (ValueError, UnicodeDecodeError, OverflowError):
        raise Rejected(f"column_{what} has what is no hexadecimal float") from None
    need(all(math.isfinite(v) for v in found), f"column_{what} is not finite")
    return found


def as_integers(column):
    """A column of dyadic numbers as (entries (i, k) that are not 0, e): the numbers are k · 2^−e."""
    need(all(math.isfinite(x) for x in column), "a scaled value is not finite")
    pairs = [(i, *x.as_integer_ratio()) for i, x in enumerate(column) if x != 0]
    e = max((d.bit_length() - 1 for _, _, d in pairs), default=0)
    return [(i, m << (e - d.bit_length() + 1)) for i, m, d in pairs], e


# --- Columns that are made: sections "Functions of features" and "Products of features" ----------------------


def made_of(document, raw, arrays):
    """The columns that a document makes of the raw data, None where it selects the raw columns themselves."""
    atoms = document.get("atoms")
    made = atoms.get("made") if isinstance(atoms, dict) else None
    if made is None:
        return None
    need(isinstance(made, dict), "atoms.made is no mapping")
    need(len(set(raw.names)) == len(raw.names), "two features have one name")
    kind = Functions if "name" in made else Products
    return kind(document, raw, atoms, made, arrays)


def scaled_raw(raw, kind, stated, arrays, rules):
    """Columns of raw data as they are scaled, how far each entry may be off, and (shift, scale) of each column.

    The sidecar has shift and scale of all; `stated` has (shift, scale, center) of some by name. Where the sidecar
    lacks them, the others are computed as the doubles nearest to the exact mean and deviation, or 0 and norm.
    """
    need(kind in ("none", "standard", "unit"), "an unknown kind of scaling")
    if kind != "none" and {"column_shift", "column_scale"} <= set(arrays):
        known = list(zip(*column_scaling(arrays, kind, raw, rules), strict=True))
        for name, own in zip(raw.names, known, strict=True):
            need(stated.get(name, own) == own, f"shift or scale of {name!r} is not that of the sidecar")
        off = [None] * len(known)
    else:
        known, off = computed_scaling(raw, kind, stated, rules)
    columns = []
    for column, (shift, scale, center) in zip(raw.columns, known, strict=True):
        if center:
            column = [x / scale - center for x in column]
        elif kind != "none":
            column = [(x - shift) / scale for x in column]
        columns.append(column)
    sizes = zip(columns, off, strict=True)
    off = [None if size is None else [size * (1 + abs(Fraction(x))) for x in column] for column, size in sizes]
    return columns, off, [(shift, scale) for shift, scale, _ in known]


def computed_scaling(raw, kind, stated, rules):
    """(shift, scale, center) of all columns where the sidecar does not say it, and τ/(1 + |x|), None if it is exact."""
    found, off, n, u = [], [], len(raw.y), Fraction(1, 2**53)
    for name, column in zip(raw.names, raw.columns, strict=True):
        shift, scale = scaling_of(column, kind, counts_of(raw, rules))
        center = 0.0
        if name in stated:
            own, (shift, scale, center) = (Fraction(shift), Fraction(scale)), stated[name]
            flat = kind == "none" or own == (0, 1)
            room = 0 if flat else (n + 8) * u * own[1]
            near_shift = abs(Fraction(shift) - own[0]) <= room + (0 if flat else 2 * u * abs(own[0]))
            near_scale = abs(Fraction(scale) - own[1]) <= room + (0 if flat else (2 * u * own[0]) ** 2 / own[1])
            need(near_shift and near_scale and scale > 0, f"shift or scale of {name!r} is another")
        exact = kind == "none" or name in stated or (shift, scale) == (0.0, 1.0)
        found.append((shift, scale, center))
        off.append(None if exact else (n + 8) * 2 * u + 4 * u * abs(Fraction(shift) / Fraction(scale)))
    return found, off


def scaling_of(column, kind, counts):
    """The doubles nearest to mean and deviation, or to 0 and norm; 0 and 1 of a column that stays as it is."""
    if kind == "none" or (len(set(column)) == 1 if kind == "standard" else not any(column)):
        return 0.0, 1.0
    exact, total = [Fraction(x) for x in column], sum(counts)
    if kind == "unit":
        return 0.0, root(sum(x * x for x in exact))
    mean = sum(c * x for c, x in zip(counts, exact, strict=True)) / total
    return float(mean), root(sum(c * (x - mean) ** 2 for c, x in zip(counts, exact, strict=True)) / total)


def root(value):
    """The double nearest to the square root of a fraction (to a few more bits)."""
    value = Fraction(value)
    shift = max(0, 240 - value.numerator.bit_length() + value.denominator.bit_length()) // 2 * 2
    return float(Fraction(math.isqrt((value.numerator << shift) // value.denominator), 1 << (shift // 2)))


def dotted(signed, entries):
    """Σ |v_i| η_i in units of the grid of v."""
    return sum(abs(v) * e for v, e in zip(signed, entries, strict=True))


class Functions:
    """Functions of features: every feature is an atom whose columns are φ of its scaled values."""

    def __init__(self, document, raw, atoms, made, arrays):
        fields = {"name", "options", "data_sha256", "n_features", "scaling", "features"}
        need(set(made) == fields, "atoms.made has other fields")
        need(atoms.get("names") is None and atoms.get("columns") is None, "functions of features have names or columns")
        need(made["data_sha256"] == raw.sha256(), "the raw data is other data (data_sha256), or read in another way")
        need(whole(made["n_features"], "made.n_features") == len(raw.names), "made.n_features is another")
        need(isinstance(made["features"], dict) and set(made["features"]) <= set(raw.names), "made.features")
        self.made, self.raw, self.names, self.width = made, raw, raw.names, None
        self.features, stated = made["features"], {}
        for name, one in self.features.items():
            need(isinstance(one, dict), "a feature of made is no mapping")
            need(
                {"column", "shift", "scale", "map"} <= set(one) <= {"column", "shift", "scale", "map", "center"}, "made"
            )
            need(type(one["column"]) is int and raw.names.index(name) == one["column"], f"{name!r} is another column")
            need("center" not in one or rules_of(document) == 1, "a center, which these rules do not have")
            stated[name] = tuple(float(number(one.get(key, 0.0), key)) for key in ("shift", "scale", "center"))
        columns, off, _ = scaled_raw(raw, made["scaling"], stated, arrays, rules_of(document))
        self.map = mapping_of(made, columns, raw.weights)
        self.parts = []
        for name, column, moved_by in zip(raw.names, columns, off, strict=True):
            part = self.map.part(column, moved_by)
            self.parts.append(part)
            if name in self.features:
                part.compare(self.features[name]["map"], name)
        self._data(raw)

    def _data(self, raw):
        """The made columns as data, and which of them are whose."""
        names, columns, self.groups = [], [], []
        for name, part in zip(raw.names, self.parts, strict=True):
            self.groups.append(list(range(len(columns), len(columns) + len(part.columns))))
            names += [f"{name}[{k}]" for k in range(len(part.columns))]
            columns += part.columns
        self.width = len(columns)
        if self.width * len(raw.y) > MOST_NUMBERS:
            raise Declined("too large: the columns of the functions")
        self.data = Data(names, columns, raw.y, raw.weights, False, raw.bags, raw.asked, raw.labels, raw.label,
                         raw.reading, raw.raw)  # fmt: skip

    def sha256(self):
        """The digest that the document has of its data."""
        said = {key: value for key, value in self.made.items() if key != "features"}
        matrix = hashlib.sha256(json.dumps(said, sort_keys=True).encode("ascii")).hexdigest()
        return self.raw.sha256(matrix, self.width)

    def used(self, chosen):
        """Columns by name that the selected atoms use, after `made.features` was found to be of these atoms."""
        need({self.names[j] for j in chosen} == set(self.features), "made.features are not those that are selected")
        return {self.data.names[i]: i for j in chosen for i in self.groups[j]}

    def terms(self, stated, signed, q):
        """½ λ² v'Kv of every feature, lowered by how far it may be off."""
        unit = Fraction(2) ** -q
        found = []
        for part, group, lam2 in zip(self.parts, self.groups, stated.lam2, strict=True):
            total = part.score(signed, [stated.integers[i] for i in group]) * unit * unit
            if part.eps:
                total -= 3 * part.eps * (sum(abs(v) * s for v, s in zip(signed, part.norms, strict=True)) * unit) ** 2
            found.append(lam2 * max(total, Fraction(0)) / 2)
        return found


class Part:
    """The columns of one feature. `made` is what `map` must say; `eps` and `norms`: how far they may be off."""

    def __init__(self, columns, made, eps=0, off=None, mean_off=0):
        self.columns, self.made, self.eps, self.off, self.mean_off = columns, made, eps, off, mean_off
        squares = ([x * x for x in row] for row in zip(*columns, strict=True)) if eps else []
        self.norms = [Fraction(math.sqrt(math.fsum(row))) for row in squares]
        self.knots_off = Fraction(0)

    def compare(self, stated, name):
        need(isinstance(stated, dict) and set(stated) == set(self.made), f"the map of {name!r} has other fields")
        for key, value in self.made.items():
            said = stated[key] if isinstance(stated[key], list) else [stated[key]]
            own = value if isinstance(value, list) else [value]
            need(
                isinstance(stated[key], list) == isinstance(value, list) and len(said) == len(own), f"{key} of {name!r}"
            )
            for a, b in zip(said, own, strict=True):
                room = (
                    Fraction(1, 10**12)
                    if key == "means"
                    else self.knots_off * abs(Fraction(b))
                    if key == "knots"
                    else 0
                )
                need(abs(number(a, key) - Fraction(b)) <= room, f"{key} of {name!r} is another")

    def score(self, signed, integers):
        """v'Kv in units of the grid of v, squared."""
        total, sum_v = Fraction(0), abs(sum(signed))
        for k, (entries, e) in enumerate(integers):
            omega = abs(Fraction(sum(signed[i] * x for i, x in entries), 1 << e))
            omega -= self.mean_off * sum_v + (dotted(signed, self.off[k]) if self.off else 0)
            total += max(omega, Fraction(0)) ** 2
        return total


class Minima(Part):
    """Of additive-hik: v'Kv by the kernel min(z, z') itself."""

    def __init__(self, columns, made, values, eps, moved_by):
        super().__init__(columns, made)
        self.eps, self.norms, self.moved_by = eps, [Fraction(math.sqrt(z)) for z in values], moved_by
        self.knots_off, self.values = Fraction(eps), values
        self.order = sorted(range(len(values)), key=lambda i: -values[i])

    def score(self, signed, _):
        total, above, least = Fraction(0), 0, None
        for place, i in enumerate(self.order):
            above += signed[i]
            after = self.order[place + 1] if place + 1 < len(self.order) else None
            least = self.values[after] if after is not None else 0.0
            if self.values[i] > least:
                total += (Fraction(self.values[i]) - Fraction(least)) * above * above
        if self.moved_by is not None:
            total -= 2 * max(self.moved_by) * sum(map(abs, signed)) ** 2
        return total


def mapping_of(made, columns, weights):
    """The function that is meant, after its options were looked at."""
    options, name = made["options"], made["name"]
    need(isinstance(options, dict), "options are no mapping")
    if name == "additive-hik":
        return Intersection(options, columns)
    if name in ("additive-chi2", "additive-intersection", "additive-jensen-shannon"):
        return Homogeneous(name, options, columns)
    if name == "additive-gaussian":
        return Gaussian(options)
    need(name == "splines", f"functions {name!r}, which I do not know")
    return Splines(options, weights)


def need_options(options, required, optional=()):
    need(set(required) <= set(options) <= set(required) | set(optional), "the options of the functions are others")


def counted(column, shift, all_columns, absolute=False):
    """Values from 0 on, and the least one."""
    if shift:
        least = min(column)
        return [x - least for x in column], least
    need(absolute or all(x >= 0 for one in all_columns for x in one), "a value is negative")
    return column, 0.0


class Intersection:
    """additive-hik."""

    def __init__(self, options, columns):
        need_options(options, ("levels", "shift"), ("beta", "absolute"))
        self.levels, self.shift, self.absolute = options["levels"], options["shift"], options.get("absolute", False)
        need(isinstance(self.shift, bool) and isinstance(self.absolute, bool), "an option is neither true nor false")
        need(not (self.shift and self.absolute), "shift with absolute")
        need(self.levels is None or whole(self.levels, "levels", 1) <= 1 << 20, "levels are too many")
        self.beta, self.all = float(number(options.get("beta", 1.0), "beta")), columns
        need(0 < self.beta <= 64, "beta is not above 0 and at most 64")

    def part(self, column, moved_by):
        if moved_by is not None and (self.beta != 1 or self.levels is not None):
            raise Declined("additive-hik of scaled data, with beta or levels")
        z, least = counted(column, self.shift, self.all, self.absolute)
        z = [abs(x) for x in z] if self.absolute else z
        z = [x**self.beta for x in z] if self.beta != 1 else z
        top = max(z)
        if self.levels is not None and top > 0:
            z = [float(round(min(x / top, 1.0) * self.levels)) / self.levels * top for x in z]
        knots = sorted({x for x in z if x > 0}) or [1.0]
        if len(knots) * len(z) > MOST_NUMBERS:
            raise Declined("too large: the columns of additive-hik")
        columns = [[0.0] * len(z) for _ in knots]
        for i, x in enumerate(z):
            for k, value in chords(x, [0.0, *knots]):
                columns[k][i] = value
        eps = Fraction(1, 10**14) if self.beta != 1 else 0
        return Minima(columns, {"least": least, "knots": knots}, z, eps, moved_by)


def chords(z, u):
    """The entries (k, φ_k(z)) of additive-hik that are not 0."""
    if z == 0:
        return
    yield 0, z / math.sqrt(u[-1])
    low, high = 0, len(u) - 1
    while high - low > 1 and u[low] < z < u[high]:
        middle = (low + high) // 2
        a, p, r = u[low], u[middle], u[high]
        share = (z - a) / (p - a) if z <= p else (r - z) / (r - p)
        yield middle, share * math.sqrt((p - a) * ((r - p) / (r - a)))
        low, high = (low, middle) if z <= p else (middle, high)


class Homogeneous:
    """Kernels of counts, by waves of the logarithm."""

    def __init__(self, name, options, columns):
        need_options(options, ("steps", "interval", "shift"))
        self.name, self.all, self.shift = name, columns, options["shift"]
        need(isinstance(self.shift, bool) and whole(options["steps"], "steps", 1) <= 50, "steps are too many")
        L = float(number(options["interval"], "interval"))
        need(L > 0, "the interval is not above 0")
        self.waves = [k * L for k in range(options["steps"])]
        self.heights = [math.sqrt(L * self.kappa(f) * (2 if f > 0 else 1)) for f in self.waves]

    def kappa(self, f):
        if self.name == "additive-intersection":
            return (2 / math.pi) / (1 + 4 * f * f)
        if math.pi * f > 700:
            raise Declined("waves that are too short")
        if self.name == "additive-chi2":
            return 1 / math.cosh(math.pi * f)
        return (2 / math.log(4)) / (math.cosh(math.pi * f) * (1 + 4 * f * f))

    def part(self, column, moved_by):
        if moved_by is not None:
            raise Declined("homogeneous kernels of scaled data")
        z, least = counted(column, self.shift, self.all)
        logs = [math.log(x) if x > 0 else 0.0 for x in z]
        columns = [[math.sqrt(x) * self.heights[0] for x in z]]
        for f, a in zip(self.waves[1:], self.heights[1:], strict=True):
            columns.append([math.sqrt(x) * a * math.cos(f * y) for x, y in zip(z, logs, strict=True)])
            columns.append([math.sqrt(x) * a * math.sin(f * y) for x, y in zip(z, logs, strict=True)])
        theta = max(self.waves) * max(map(abs, logs))
        return Part(columns, {"least": least}, Fraction(1 + theta) / 2**48)


class Gaussian:
    """additive-gaussian, by the nodes of Gauss and Hermite."""

    def __init__(self, options):
        need_options(options, ("pairs", "width", "seed"))
        if options["seed"] is not None:
            raise Declined("additive-gaussian with a seed, whose waves NumPy draws")
        pairs, width = whole(options["pairs"], "pairs", 1), float(number(options["width"], "width"))
        need(pairs <= 50 and width > 0, "pairs are too many, or the width is not above 0")
        nodes = hermite(2 * pairs + 1)
        self.first = math.sqrt(nodes[0][1])
        self.waves = [(math.sqrt(2) * t / width, math.sqrt(2 * u)) for t, u in nodes[1:]]

    def part(self, column, moved_by):
        columns, off = [[self.first] * len(column)], [[Fraction(0)] * len(column)]
        for wave, height in self.waves:
            columns.append([height * math.cos(wave * x) for x in column])
            columns.append([height * math.sin(wave * x) for x in column])
            slope = Fraction(wave * height)
            off += [[slope * t for t in moved_by or []]] * 2
        theta = self.waves[-1][0] * max(map(abs, column))
        return Part(columns, {}, Fraction(1 + theta) / 2**44, None if moved_by is None else off)


def hermite(N):
    """The roots t ≥ 0 of Hermite's polynomial H_N (N odd) in ascending order, each with 2^(N−1) N!/(N² H_(N−1)(t)²)."""
    bits = 120

    def values(a):  # H_N and H_(N−1) at a/2^bits, times 2^(bits·degree)
        before, last = 1, 2 * a
        for k in range(1, N):
            before, last = last, 2 * a * last - (2 * k << (2 * bits)) * before
        return last, before

    step = (1 << bits) // 64
    found, a, sign = [0], step // 2, values(step // 2)[0] > 0
    while len(found) < (N + 1) // 2:
        other = values(a + step)[0] > 0
        if other != sign:
            low, high = a, a + step
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if (values(middle)[0] > 0) == sign else (low, middle)
            found.append(low)
        a, sign = a + step, other
    top = (math.factorial(N) << (N - 1)) << (2 * bits * (N - 1))
    return [(a / (1 << bits), float(Fraction(top, (N * values(a)[1]) ** 2))) for a in found]


class Splines:
    """B-splines over quantiles."""

    def __init__(self, options, weights):
        need_options(options, ("knots", "degree"))
        self.K, self.degree, self.weights = (
            whole(options["knots"], "knots", 2),
            whole(options["degree"], "degree"),
            weights,
        )
        need(self.K <= 1000 and self.degree <= 9, "knots or degree are too large")

    def knots(self, column):
        order = sorted(range(len(column)), key=column.__getitem__)
        sums = list(itertools.accumulate(self.weights[i] for i in order))
        shares = [r / sums[-1] for r in sums]
        step, quantiles = 1 / (self.K - 1), []
        for k in range(self.K):
            least = 1.0 if k == self.K - 1 else k * step
            quantiles.append(column[order[next(i for i, r in enumerate(shares) if r >= least)]])
        e, last = 1e-9 * (quantiles[-1] - quantiles[0]), quantiles[-1]
        if e == 0 or math.isinf(e):
            return []
        knots = [quantiles[0]]
        for value in quantiles[1:-1]:
            if value > knots[-1] + e and last > value + e:
                knots.append(value)
        return [*knots, last]

    def part(self, column, moved_by):
        b, q, n = self.knots(column), self.degree, len(column)
        if not b:
            return Part([[0.0] * n], {"knots": [], "means": [0.0]})
        t = [b[0] - (b[1] - b[0]) * k for k in range(q, 0, -1)] + b
        t += [b[-1] + (b[-1] - b[-2]) * k for k in range(1, q + 1)]
        rows = [splines_at(x, t, q, len(b)) for x in column]
        total, means, columns = sum(map(Fraction, self.weights)), [], []
        for values in zip(*rows, strict=True):
            mean = float(sum(Fraction(w) * Fraction(v) for w, v in zip(self.weights, values, strict=True)) / total)
            means.append(mean)
            columns.append([v - mean for v in values])
        off = None
        if moved_by is not None:
            nearest = min(Fraction(v) - Fraction(u) for u, v in itertools.pairwise(b))
            off = [[4 * (q + 1) ** 2 * move / nearest for move in moved_by]] * len(columns)
        return Part(columns, {"knots": b, "means": means}, off=off, mean_off=Fraction(n + 8, 2**53))


def splines_at(x, t, q, m):
    """All splines of degree q at x, over the knots t."""
    place = min(max(max((i for i, knot in enumerate(t) if knot <= x), default=0), q), q + m - 2)
    found = [float(i == place) for i in range(len(t) - 1)]
    for o in range(1, q + 1):
        found = [
            (x - t[i]) / (t[i + o] - t[i]) * found[i] + (t[i + o + 1] - x) / (t[i + o + 1] - t[i + 1]) * found[i + 1]
            for i in range(len(found) - 1)
        ]
    return found


class Products:
    """Products of features: the monomials that are listed, as columns, and a bound of those that are not."""

    def __init__(self, document, raw, atoms, made, arrays):
        fields = {"kind", "degree", "gamma", "r", "heredity", "count", "parts"}
        need(made.get("kind") == "monomials" and set(made) == fields, "atoms.made has other fields")
        need(atoms.get("columns") is None and atoms.get("scale") is None, "products have columns or scales")
        self.raw, self.made, self.width, params = raw, made, len(raw.names), document["params"]
        self.degree, self.gamma, self.r = made["degree"], number(made["gamma"], "gamma"), number(made["r"], "r")
        need(type(self.degree) is int and self.degree in (2, 3), "the degree is neither 2 nor 3")
        small, large = Fraction(1, 10**30), 10**30
        need(small <= self.gamma <= large and (self.r == 0 or small <= self.r <= large), "gamma or r is out of range")
        count = math.comb(self.width + (self.r > 0) + self.degree - 1, self.degree)
        need(type(made["count"]) is int and made["count"] == count, "made.count is another number")
        self._check_statement(document, params)
        self._parts(atoms)
        self.listed = set(self.parts)
        scaling, stated = document["scaling"], {}
        for name in scaling.get("shift", {}):
            need(name in raw.names, "scaling names what is no feature")
            stated[name] = (*tuple(float(number(scaling[key][name], key)) for key in ("shift", "scale")), 0.0)
        self.scaled, self.off, _ = scaled_raw(raw, scaling.get("kind"), stated, arrays, rules_of(document))
        self.groups = [[j] for j in range(len(self.parts))]
        columns = [self.column(part) for part in self.parts]
        self.data = Data(self.names, columns, raw.y, raw.weights, True, raw.bags, raw.asked, raw.labels, raw.label,
                         raw.reading, raw.raw)  # fmt: skip

    def _check_statement(self, document, params):
        """What a statement about products may have."""
        need(params.get("M") is not None, "M of products is no number")
        need(not params.get("forced_in") and not params.get("forced_out"), "products have forced atoms")
        need(params.get("lambda") == 0 and not params.get("penalty"), "products have penalties")
        need(
            not document.get("extra") and document.get("near_optimal") is None,
            "products have extra variables or a list",
        )
        need(
            params.get("loss") != "structural" and "center" not in document["scaling"],
            "products have a measure or center",
        )

    def _parts(self, atoms):
        """The monomials as positions of features, with powers, in the order of the columns; their names."""
        place = {name: j for j, name in enumerate(self.raw.names)}
        need(isinstance(self.made["parts"], list), "made.parts is no list")
        self.parts = []
        for part in self.made["parts"]:
            need(
                isinstance(part, list) and all(isinstance(s, str) and s in place for s in part), "a part is no product"
            )
            fits = len(part) == self.degree or (self.r > 0 and len(part) < self.degree)
            need(fits, "a part has another degree")
            self.parts.append(tuple(sorted(place[s] for s in part)))
        need(len(set(self.parts)) == len(self.parts), "a product is listed twice")
        self.names = [self.name(part) for part in self.parts]
        need(atoms.get("names") == self.names, "the names of the products are others")

    def name(self, part):
        powers = Counter(part)
        return " × ".join(self.raw.names[j] + {1: "", 2: "²", 3: "³"}[m] for j, m in powers.items()) or "1"

    def factor(self, part):
        e, ways = len(part), math.factorial(self.degree)
        for m in (*Counter(part).values(), self.degree - e):
            ways //= math.factorial(m)
        value = float(ways)
        for one in [float(self.gamma)] * e + [float(self.r)] * (self.degree - e):
            value *= one
        return math.sqrt(value)

    def column(self, part):
        f, columns = self.factor(part), [self.scaled[j] for j in part]
        if not columns:
            return [f] * len(self.raw.y)
        found = columns[0]
        for other in columns[1:]:
            found = [a * b for a, b in zip(found, other, strict=True)]
        return [a * f for a in found]

    def moved(self, part):
        """How far the entries of a column may be off; None where they are exact."""
        if not any(self.off[j] for j in part):
            return None
        if len(part) > 2:
            raise Declined("products of three features of scaled data")
        f, zero = Fraction(self.factor(part)), [Fraction(0)] * len(self.raw.y)
        moves = [self.off[j] or zero for j in part]
        if len(part) == 1:
            return [f * t for t in moves[0]]
        x, z = ([abs(Fraction(v)) for v in self.scaled[j]] for j in part)
        return [f * (a * t + b * s + s * t) for a, b, s, t in zip(x, z, *moves, strict=True)]

    def sha256(self):
        return self.raw.sha256()

    def used(self, chosen):
        return {self.raw.names[j]: j for k in chosen for j in self.parts[k]}

    def rows(self):
        """The rows of `made.heredity`, as the document has them."""
        rule, singles = self.made["heredity"], {part[0]: name for part, name in zip(self.parts, self.names, strict=True)
                                                if len(part) == 1}  # fmt: skip
        need(rule in (None, "weak", "strong"), "an unknown heredity")
        found = []
        for part, name in zip(self.parts, self.names, strict=True):
            if rule is None or len(part) < 2:
                continue
            features = sorted(set(part))
            own = [singles[j] for j in features if j in singles]
            if rule == "weak":
                found.append({name: 1.0} | dict.fromkeys(own, -1.0))
            elif len(own) == len(features):
                found += [{name: 1.0, one: -1.0} for one in own]
            else:
                found.append({name: 1.0})
        return [{"terms": terms, "lb": None, "ub": 0.0} for terms in found]

    def check_rows(self, document):
        found, wanted = (sorted(json.dumps(row, sort_keys=True) for row in rows) for rows in (
            [{"terms": {s: float(v) for s, v in row["terms"].items()}, "lb": row["lb"], "ub": float(row["ub"])}
             for row in rows_in(document)], self.rows()))  # fmt: skip
        need(found == wanted, "the rows are not those of the heredity")

    def terms(self, stated, signed, q):
        """½ s_j of the products that are listed."""
        unit = Fraction(2) ** -q
        return [
            (self.omega(signed, entries, e, part) * unit) ** 2 / 2
            for (entries, e), part in zip(stated.integers, self.parts, strict=True)
        ]

    def omega(self, signed, entries, e, part):
        """|ω| of a column, lowered by how far it may be off, in units of the grid of v."""
        found, moves = abs(Fraction(sum(signed[i] * x for i, x in entries), 1 << e)), self.moved(part)
        return found if moves is None else max(Fraction(0), found - dotted(signed, moves))

    def largest_outside(self, signed):
        """The largest |ω| among the products that are not listed, in units of the grid of v."""
        if self.made["count"] * len(signed) > MOST_PRODUCTS // 20:
            raise Declined("too large: so many products are not listed")
        v = [float(s) for s in signed]
        best, found = 0.0, []
        degrees = range(self.degree + 1) if self.r > 0 else [self.degree]
        for part in itertools.chain(*(itertools.combinations_with_replacement(range(self.width), e) for e in degrees)):
            if part not in self.listed:
                products = [a * b for a, b in zip(v, self.column(part), strict=True)]
                value, room = abs(math.fsum(products)), 1e-12 * math.fsum(map(abs, products)) + 1e-290
                best = max(best, value - room)
                found.append((value + room, part))
        exact = [self.omega(signed, *as_integers(self.column(part)), part) for top, part in found if top >= best]
        return max(exact, default=Fraction(0)), bool(found)

    def check_outside(self, stated, tree, outside, bound, status):
        """(outside): every selection with a product that is not listed reaches the bound."""
        if outside is not None:
            place = outside.values[0] if outside.kind == "i" and outside.shape == (1,) else -1
            need(0 <= place < tree.duals.count, "outside is no dual vector")
        if self.made["count"] == len(self.parts) or stated.M == 0:
            return
        need(status != "INFEASIBLE", "infeasible, where products are not listed")
        if bound is None or (not stated.rho and bound <= 0):
            return
        need(outside is not None, "the sidecar has no outside")
        g, terms = tree.duals.get(place)
        k, q = tree.duals.decoded(place)
        rho, _ = self.largest_outside([v * s for v, s in zip(k, stated.y, strict=True)])
        half = (rho * Fraction(2) ** -q) ** 2 / 2
        most = sorted([*terms, *[half] * (stated.M - 1)], reverse=True)[: stated.M - 1]
        level = stated.unit(bound)
        need(level is not None and g - half - sum(most) >= level, "a product that is not listed may be better")


# --- Values of classifiers -----------------------------------------------------------------------------------


def value_of(stated, weights, intercept, sigma, what, objective=None, outward=1):
    """The value of (P), or of a relaxation, at weights and σ (by position, above 0): section "Values".

    On the scaled data: w_j · scale_j is the weight of the scaled column, b + Σ w_j · shift_j the intercept. Where a
    column stands in several atoms its weight is split among them at least cost. ρ of the ρ-form is −2 · `objective`.
    Bounds on weights are those stated times `outward`.
    """
    need(isinstance(weights, dict), f"{what}: weights is no mapping")
    need(all(row.keeps(weights) for row in stated.over), f"{what}: the weights break a row over them")
    share = {}
    for j, part in sigma.items():
        for column in stated.columns[j]:
            share[column] = share.get(column, 0) + part * stated.lam2[j]
    total = sum((stated.cost[j] * part for j, part in sigma.items()), Fraction(0))
    b = size = number(intercept, f"{what}: intercept")
    used, size = [], abs(size)
    named = {stated.place.get(name) for name in weights}
    need(all(j in named for j in stated.excluding if j in share), f"{what}: a weight of 0 beyond its bounds")
    for name, value in weights.items():
        need(name in stated.place, f"{what}: a weight of {name!r}, which is no feature")
        j, w = stated.place[name], number(value, f"{what}: a weight")
        need(j in share, f"{what}: {name!r} has a weight and is not selected")
        low, high = stated.bounds.get(j, (None, None))
        part = share[j]
        inside = (low is None or w >= low * part * outward) and (high is None or w <= high * part * outward)
        need(inside, f"{what}: a weight beyond its bounds")
        if w == 0:
            continue
        need(part > 0, f"{what}: a weight on an atom of scale 0")
        used.append((j, w * stated.scale[j]))
        total += (w * stated.scale[j]) ** 2 / (2 * part)
        b, size = b + w * stated.shift[j], size + abs(w * stated.shift[j])
    if not stated.bias:
        need(abs(b) <= (len(used) + 8) * size / 2**53, f"{what}: an intercept where the problem has none")
        b = Fraction(0)
    if stated.measure:
        cost = (b / stated.measure.constant) ** 2 / 2 if stated.bias else 0
        return total + cost + stated.C * stated.measure.loss(scores(stated, used, b))
    margins = [m * sign for m, sign in zip(scores(stated, used, b), stated.y, strict=True)]
    if not stated.rho:
        return total + loss_of(stated, margins, 1)
    need(objective is not None and objective < 0, f"{what}: a value of the ρ-form is below 0")
    return total + loss_of(stated, margins, -2 * objective) + 2 * objective


def scores(stated, used, b):
    """Σ_j w_j x_ij + b of all samples, exactly: integers over one power of two."""
    whole = [(j, *w.as_integer_ratio()) for j, w in used]
    exponent = max((d.bit_length() - 1 + stated.integers[j][1] for j, _, d in whole), default=0)
    found = [0] * len(stated.y)
    for j, w, d in whole:
        entries, e = stated.integers[j]
        w <<= exponent - e - d.bit_length() + 1
        for i, x in entries:
            found[i] += w * x
    return [Fraction(v, 1 << exponent) + b for v in found]


def loss_of(stated, margins, target):
    """The sum of the losses of what margins fall short of 1, or of ρ."""
    if stated.loss == "logistic":
        return sum(c * log_one_plus_exp(-m) for c, m in zip(stated.c, margins, strict=True))
    short = [(c, target - m) for c, m in zip(stated.c, margins, strict=True) if m < target]
    if stated.loss == "hinge":
        return sum((c * s for c, s in short), Fraction(0))
    return sum((c * s * s / 2 for c, s in short), Fraction(0))


# --- Measures: section of this name --------------------------------------------------------------------------

FINE = 1 << 200
"""Scores are rounded to multiples of 1/FINE where a measure is taken of them."""
TABLES = ("error", "f1", "fbeta", "precision-at-k", "recall-at-k", "prbep")
ORDERS = ("roc-auc", "average-precision")


class Measure:
    """The measure of a statement: what a labelling or an order loses, and the loss of scores."""

    def __init__(self, stated, params):
        self.name, self.y, self.n = params.get("measure"), stated.y, len(stated.y)
        need(self.name in (*TABLES, *ORDERS), f"a measure {self.name!r}, which I do not know")
        self.P = sum(v > 0 for v in self.y)
        self.N = self.n - self.P
        need(self.P >= 1 or self.name == "error", "a measure of data without positive samples")
        need(self.N >= 1 or self.name not in ORDERS, "an order of data without negative samples")
        self.pairs = Fraction(self.P * self.N if self.name in ORDERS else self.n)  # D
        need(("beta" in params) == (self.name == "fbeta"), "beta, of another measure or missing")
        self.B = Fraction(1)
        if self.name == "fbeta":
            beta = number(params["beta"], "beta")
            need(0 < beta < LARGEST, "beta is not above 0, or too large")
            self.B = Fraction(float(beta) * float(beta))
        at_k = self.name in ("precision-at-k", "recall-at-k")
        need("k" not in params or at_k, "k, of another measure")
        self.k = self.P if params.get("k") is None else whole(params["k"], "k", 1)
        need(self.k <= self.n, "k is more than the samples")
        need(("constant" in params) == stated.bias, "constant, without an intercept or missing")
        self.constant = number(params.get("constant", 1.0), "constant")
        room = 10 ** (300 if stated.far else 50)
        need(Fraction(1, room) <= self.constant <= room, "constant is too small or large")
        need(all(w == 1 for w in stated.data.weights), "a measure has no sample weights")
        need(params.get("class_weight") is None and not stated.bounds, "a measure has no class weights, and no box")
        need(stated.single or not stated.bounds, "bounds are of features")

    def allows(self, a, b):
        """Whether a labelling of a positives and b negatives as +1 is admissible."""
        return self.name in ("error", "f1", "fbeta") or a + b == self.k

    def table(self, a, b):
        """Δ of a labelling."""
        if self.name == "error":
            return Fraction(self.P - a + b, self.n)
        if self.name in ("f1", "fbeta"):
            return 1 - (1 + self.B) * a / (a + b + self.B * self.P)
        return 1 - Fraction(a, self.k if self.name == "precision-at-k" else self.P)

    def lost(self, counts):
        """Δ of a row of `labelling`, which is found to be one."""
        own = sorted(k for k, y in zip(counts, self.y, strict=True) if y > 0)
        other = sorted((k for k, y in zip(counts, self.y, strict=True) if y < 0), reverse=True)
        if self.name in TABLES:
            need(all(k in (0, 1) for k in counts), "a labelling has a count that is not 0 or 1")
            a, b = self.P - sum(own), sum(other)
            need(self.allows(a, b), "a labelling is not admissible")
            return self.table(a, b)
        need(own[0] >= 0 and own[-1] <= self.N, "an order has counts that none has")
        need(
            other == [self.P - bisect.bisect_right(own, t) for t in range(self.N)], "the counts of an order do not fit"
        )
        if self.name == "roc-auc":
            return sum(own) / self.pairs
        return sum(Fraction(k, r + k) for r, k in enumerate(own, 1)) / self.P

    def of_scores(self, scores, good):
        """Δ of the labelling or order that scores give, what is equal (or 0) counted for it if `good`, or not."""
        own = sorted((v for v, y in zip(scores, self.y, strict=True) if y > 0), reverse=True)
        other = sorted(v for v, y in zip(scores, self.y, strict=True) if y < 0)
        above = [len(other) - (bisect.bisect_right if good else bisect.bisect_left)(other, v) for v in own]
        if self.name == "roc-auc":
            return sum(above) / self.pairs
        if self.name == "average-precision":
            return sum(Fraction(k, r + k) for r, k in enumerate(above, 1)) / self.P
        if self.name in ("error", "f1", "fbeta"):
            a = sum(v >= 0 if good else v > 0 for v in own)
            b = sum(v > 0 if good else v >= 0 for v in other)
        else:  # of the k with the largest scores: a positive is among them by how many negatives stand above it
            a = sum(r + k <= self.k for r, k in enumerate(above, 1))
            b = self.k - a
        if self.name in ("f1", "fbeta") and a + b + self.P == 0:
            raise Declined("F of a fold without positives, in which nothing is labelled so")
        return self.table(a, b)

    def loss(self, found):
        """max(0, the largest Δ − (2/D) Σ y_i k_i f_i) of scores f, by the closed forms, to within 2^−150."""
        if self.P * self.N > MOST_PRODUCTS // 100:
            raise Declined("too large: a measure of so many pairs")
        fixed = [v.numerator * FINE // v.denominator for v in found]
        own = sorted((v for v, y in zip(fixed, self.y, strict=True) if y > 0), reverse=True)
        other = sorted((v for v, y in zip(fixed, self.y, strict=True) if y < 0), reverse=True)
        if self.name in TABLES:
            best = self._largest_table(own, other)
        elif self.name == "roc-auc":
            best = Fraction(sum(max(0, FINE - 2 * (v - u)) for v in own for u in other), FINE) / self.pairs
        else:
            best = sum(self._lifted(own, j, u) for j, u in enumerate(other, 1))
        return max(Fraction(0), best)

    def _largest_table(self, own, other):
        before = [0, *itertools.accumulate(other)]
        after = [*itertools.accumulate(own[::-1], initial=0)][::-1]  # of a: the sum of those beyond the a-th
        best = None
        for a in range(self.P + 1):
            fitting = range(self.N + 1) if self.name in ("error", "f1", "fbeta") else [self.k - a]
            for b in fitting:
                if 0 <= b <= self.N:
                    value = self.table(a, b) + 2 * Fraction(before[b] - after[a], FINE) / self.pairs
                    best = value if best is None or value > best else best
        need(best is not None, "no labelling is admissible")
        return best

    def _lifted(self, own, j, u):
        """The part of a negative, the j-th, of average precision: over how many of the last positives it is lifted."""
        total, best, P = Fraction(0), Fraction(0), self.P
        for i in range(P, 0, -1):
            total += Fraction(i, P * (i + j) * (i + j - 1)) - 2 * Fraction(own[i - 1] - u, FINE) / self.pairs
            best = max(best, total)
        return best


# --- Dual vectors and leaves ---------------------------------------------------------------------------------


class Duals:
    """The dual vectors of the sidecar, decoded when they are used: section "Dual vectors"."""

    def __init__(self, arrays, stated):
        self.stated, self.n = stated, len(stated.y)
        self.ends = [end for row in stated.over for end in row.ends()]
        names = ("dual_q", "dual_start", "dual_bytes", "dual_level", "dual_width", "dual_top")
        self.q, self.start, self.bytes, self.level, self.width, self.top = (array_of(arrays, name) for name in names)
        self.count = len(self.q)
        shapes = (len(self.start) == self.count + 1, len(self.level) == self.count, len(self.width) == self.count)
        need(all(shapes) and len(self.top) in (0, self.n + len(self.ends)), "the dual arrays do not belong together")
        ends = self.start[0] == 0 and self.start[-1] == len(self.bytes) and self.start == sorted(self.start)
        need(ends and all(0 <= width <= 7 for width in self.width), "the bytes of the dual vectors do not add up")
        self.kept = {}

    def get(self, d):
        """(g, the terms ½ s_j or h_j of all atoms) of dual vector d, found feasible."""
        need(0 <= d < self.count, "a dual vector that is not there")
        if d not in self.kept:
            whole, q = self.decoded(d)
            k, nu = whole[: self.n], whole[self.n :]
            unit = Fraction(1, 1 << q) if q >= 0 else Fraction(1 << -q)
            self._check(k, q)
            need(all(0 <= v <= 2**53 for v in nu), "a multiplier of a row over the weights is below 0, or too wide")
            signed = [v * s for v, s in zip(k, self.stated.y, strict=True)]
            g, pulled = self._g(k, q, unit), {}
            for v, (o, d_j) in zip(nu, self.ends, strict=True):
                g -= v * unit * o
                for j, a in d_j.items():
                    pulled[j] = pulled.get(j, 0) + v * unit * a
            self.kept[d] = (g, terms_of(self.stated, signed, q, pulled))
        return self.kept[d]

    def decoded(self, d):
        """Integers k (n,), behind them those of the ends of rows over the weights, and q."""
        a, b, q, width = self.start[d], self.start[d + 1], self.q[d], self.width[d]
        n = self.n + len(self.ends)
        need(abs(q) <= (1600 if self.stated.far else 900), "a dual vector on a grid that floating point does not reach")
        body, flags = bytes(self.bytes[a:b]), -(-n // 8)
        held = [i for i in range(n) if i // 8 < len(body) and body[i // 8] >> (7 - i % 8) & 1]
        tops = -(-len(held) // 8)
        need(len(body) >= flags + tops, "a dual vector has too few bytes")
        at_top = [body[flags + i // 8] >> (7 - i % 8) & 1 for i in range(len(held))]
        need(len(body) == flags + tops + width * (len(held) - sum(at_top)), "a dual vector has a wrong number of bytes")
        k, place = [0] * n, flags + tops
        for i, top in zip(held, at_top, strict=True):
            if not top:
                k[i] = int.from_bytes(body[place : place + width], "little")
                place += width
            elif self.top:
                need(math.isfinite(self.top[i]), "dual_top is not finite")
                k[i] = math.floor(Fraction(self.top[i]) * Fraction(2) ** q)
            else:
                k[i] = self.level[d]
        return k, q

    def _check(self, k, q):
        """The box and y'α = 0, as integers."""
        stated = self.stated
        most = min(2**53, 2**62 // self.n)
        need(all(0 <= v <= most for v in k), "a dual vector is below 0, or too wide")
        if stated.loss != "squared-hinge":
            grid = Fraction(2) ** q
            need(all(v <= c * grid for v, c in zip(k, stated.c, strict=True)), "a dual vector is above C")
        if stated.bias:
            need(sum(v * s for v, s in zip(k, stated.y, strict=True)) == 0, "a dual vector has y'α ≠ 0")

    def _g(self, k, q, unit):
        """g(α), or a lower bound of it for the logistic loss."""
        stated = self.stated
        if stated.loss == "hinge":
            return sum(k) * unit
        if stated.loss == "squared-hinge":
            need(all(c > 0 for c, v in zip(stated.c, k, strict=True) if v), "a dual vector where the weight is 0")
            return sum(k) * unit - sum(v * v / (2 * c) for v, c in zip(k, stated.c, strict=True) if v) * unit * unit
        total = Fraction(0)
        for v, c in zip(k, stated.c, strict=True):
            alpha = v * unit
            for part in (alpha, c - alpha):
                if part > 0:
                    r = part / c
                    total -= part * Fraction(log_above(r.numerator, r.denominator), ONE)
        return total


class Combinations:
    """The dual vectors of a measure, combinations of labellings or orders: sections "Dual vectors" and "Measures"."""

    def __init__(self, arrays, stated):
        self.stated, self.n, self.kept = stated, len(stated.y), {}
        names = ("dual_q", "dual_start", "dual_label", "dual_whole")
        self.q, self.start, self.label, self.whole = (array_of(arrays, name) for name in names)
        self.count = len(self.q)
        ends = len(self.start) == self.count + 1 and self.start[0] == 0 and self.start == sorted(self.start)
        need(ends and self.start[-1] == len(self.label) == len(self.whole), "the dual arrays do not belong together")
        need("labelling" in arrays and arrays["labelling"].kind == "i", "the sidecar has no labelling")
        shape, values = arrays["labelling"].shape, arrays["labelling"].values
        need(len(shape) == 2 and shape[1] == self.n, "labelling is not one count a sample")
        self.rows = [list(values[i * self.n : (i + 1) * self.n]) for i in range(shape[0])]
        self.lost = [stated.measure.lost(row) for row in self.rows]
        need(all(0 <= one < len(self.rows) for one in self.label), "a labelling that is not there")

    def get(self, d):
        """(g, the terms ½ s_j of all atoms) of dual vector d, found feasible."""
        need(0 <= d < self.count, "a dual vector that is not there")
        if d not in self.kept:
            self.kept[d] = self._get(d)
        return self.kept[d]

    def _get(self, d):
        stated, measure, q = self.stated, self.stated.measure, self.q[d]
        need(abs(q) <= (1600 if stated.far else 900), "a dual vector on a grid that floating point does not reach")
        labels, parts = (values[self.start[d] : self.start[d + 1]] for values in (self.label, self.whole))
        need(all(0 <= part <= 2**53 for part in parts), "a part of a dual vector is below 0, or too wide")
        need(sum(parts) <= stated.C * Fraction(2) ** q, "a dual vector is above C")
        largest = (max(1, *self.rows[label]) for label in labels)
        need(sum(part * top for part, top in zip(parts, largest, strict=True)) < 2**62, "a dual vector is too wide")
        counts = [0] * self.n
        for label, part in zip(labels, parts, strict=True):
            counts = [c + part * k for c, k in zip(counts, self.rows[label], strict=True)]
        signed = [c * y for c, y in zip(counts, stated.y, strict=True)]
        unit, factor = Fraction(2) ** -q, 2 / measure.pairs
        g = sum((part * self.lost[label] for label, part in zip(labels, parts, strict=True)), Fraction(0)) * unit
        if stated.bias:
            g -= (measure.constant * factor * sum(signed) * unit) ** 2 / 2
        return g, [term * factor**2 for term in terms_of(stated, signed, q)]


def terms_of(stated, signed, q, pulled=None):
    """½ λ² Σ ω² of every atom, or h_j where its weight has bounds; v is `signed` · 2^−q.

    `pulled` is what rows over the weights add to ω, by column.
    """
    if stated.made:
        return stated.made.terms(stated, signed, q)
    half, pulled = [], pulled or {}
    for j, (entries, e) in enumerate(stated.integers):
        dot = sum(signed[i] * x for i, x in entries)
        shift = q + e
        if j not in stated.bounds and j not in pulled:
            power = 2 * shift + 1
            half.append(Fraction(dot * dot, 1 << power) if power >= 0 else Fraction(dot * dot << -power))
            continue
        omega = Fraction(dot) * Fraction(2) ** -shift + pulled.get(j, 0)
        low, high = stated.bounds.get(j, (None, None))
        t = omega if low is None else max(omega, (low - ALLOWANCE * abs(low)) * stated.scale[j])
        t = t if high is None else min(t, (high + ALLOWANCE * abs(high)) * stated.scale[j])
        half.append(omega * t - t * t / 2)
    if stated.single and all(one == 1 for one in stated.lam2):
        return half
    return [lam2 * sum(half[j] for j in columns) for lam2, columns in zip(stated.lam2, stated.columns, strict=True)]


def array_of(arrays, name, kinds="if"):
    need(name in arrays, f"the sidecar has no {name}")
    array = arrays[name]
    need(array.kind in kinds, f"{name} has the wrong type")
    need((array.kind == "f") == (name == "dual_top"), f"{name} has the wrong type")
    need(len(array.shape) == 1, f"{name} is not one-dimensional")
    return array.values


class Line:
    """base + cost'σ, the minorant that one dual vector and multipliers give: costs as integers over one denominator."""

    def __init__(self, base, cost, slopes):
        self.base, self.slopes = base, slopes
        self.unit = math.lcm(*(v.denominator for v in cost))
        self.cost = [v.numerator * (self.unit // v.denominator) for v in cost]
        self.order = sorted((j for j, v in enumerate(self.cost) if v < 0), key=self.cost.__getitem__)

    def start(self, ends):
        """The part without σ at ends of the extra variables; None where it is −∞."""
        total = self.base
        for slope, (low, high) in zip(self.slopes, ends, strict=True):
            end = low if slope > 0 else high
            if slope and end is None:
                return None
            total += slope * end if slope else 0
        return total

    def least(self, state, ends, room):
        """The minimum over the selections of a state, and the free atoms that it takes; None: −∞."""
        start = self.start(ends)
        if start is None:
            return None, []
        taken = []
        for j in self.order:
            if len(taken) == room:
                break
            if state[j] == FREE:
                taken.append(j)
        total = sum(self.cost[j] for j in taken) + sum(v for v, s in zip(self.cost, state, strict=True) if s == 1)
        return start + Fraction(total, self.unit), taken


# --- The tree ------------------------------------------------------------------------------------------------


class Tree:
    """The tree of the sidecar: sections "The arrays" and "Leaves"."""

    def __init__(self, document, arrays, stated):
        self.stated = stated
        need(array_of(arrays, "version") in ([1], [2]), "a version of the sidecar that I do not know")
        self.feature, self.dual, self.multiplier = (array_of(arrays, n) for n in ("feature", "dual", "multiplier"))
        self.count = len(self.feature)
        arrays = {"whole": Array([], (0, 2), "i")} | arrays
        for name in ("children", "whole"):
            need(name in arrays and arrays[name].kind == "i", f"the sidecar has no {name}")
            need(len(arrays[name].shape) == 2 and arrays[name].shape[1] == 2, f"{name} has a wrong shape")
        pairs = [list(zip(a.values[::2], a.values[1::2], strict=True)) for a in (arrays["children"], arrays["whole"])]
        self.children, found = pairs
        need(self.count > 0 and len(self.children) == len(self.dual) == len(self.multiplier) == self.count, "no tree")
        self.whole = dict(found)
        need(len(self.whole) == len(found), "two values for one split")
        need(all(abs(value) < 2**52 for value in self.whole.values()), "a split at a number that is too large")
        derived = document["certificate"].get("derived", [])
        need(isinstance(derived, list), "certificate.derived is no list")
        self.rows = stated.tree_rows = stated.rows + [derived_row(stated, one) for one in derived]
        self._multipliers(arrays)
        self._combinations(arrays)
        self.duals = (Combinations if stated.measure else Duals)(arrays, stated)
        work = max(1, sum(len(entries) for entries, _ in stated.integers)) * max(1, self.duals.count)
        work += 20 * self.count * stated.p
        work += 200 * self.duals.count * len(stated.y) if stated.loss == "logistic" else 0
        work += len(self.duals.label) * len(stated.y) if stated.measure else 0
        if work > MOST_PRODUCTS:
            raise Declined(f"too large: about {work:.0e} products of exact numbers")
        self.lines, self.rays = {}, {}
        self._check_shape()

    def _multipliers(self, arrays):
        need("multipliers" in arrays, "the sidecar has no multipliers")
        array = arrays["multipliers"]
        need(array.kind in "fS" and len(array.shape) == 2, "multipliers are no rows")
        m, r = array.shape
        need(m == 0 or r == len(self.rows), "multipliers of another number of rows")
        values = array.values
        if array.kind == "S":
            values = [ratio(text.decode("latin-1"), "a multiplier") for text in values]
        need(all(math.isfinite(v) for v in values), "a multiplier is not finite")
        self.pi = [[Fraction(v) for v in values[i * r : (i + 1) * r]] for i in range(m)]

    def _combinations(self, arrays):
        """Combinations of rows, each a list of (row, multiplier): −1 is Σσ, −2 − k the k-th extra variable."""
        names = ("integer_start", "integer_row", "integer_value")
        self.combined, self.sums = [], {}
        if not any(name in arrays for name in names):
            return
        need(self.stated.rules >= 3, "combinations of rows, which only rules 3 have")
        need(all(name in arrays for name in names), "combinations of rows are incomplete")
        start, row, value = (arrays[name] for name in names)
        need(start.kind == row.kind == "i" and value.kind == "S", "combinations of rows are of other types")
        need(all(len(one.shape) == 1 for one in (start, row, value)), "combinations of rows are no lists")
        ends, rows, texts = list(start.values), list(row.values), value.values
        need(ends and ends[0] == 0 and ends[-1] == len(rows) == len(texts), "combinations of rows leave something over")
        need(all(a <= b for a, b in itertools.pairwise(ends)), "combinations of rows overlap")
        least, most = -2 - len(self.stated.extra), len(self.stated.rows)
        need(all(least < r < most for r in rows), "a combination of rows that are not there")
        need(all(len(text) <= 1000 for text in texts), "a multiplier of a combination is too long")
        found = [(r, ratio(text.decode("latin-1"), "a multiplier")) for r, text in zip(rows, texts, strict=True)]
        self.combined = [found[a:b] for a, b in itertools.pairwise(ends)]
        need(all(len(dict(one)) == len(one) for one in self.combined), "a row stands twice in a combination")

    def combination(self, number):
        """Σ u·row of a combination: coefficients of all atoms and extra variables, and (u, low, high) of each row."""
        if number not in self.sums:
            stated = self.stated
            atoms, extra, parts = [Fraction(0)] * stated.p, [Fraction(0)] * len(stated.extra), []
            for r, u in self.combined[number]:
                if r == -1:
                    atoms = [a + u for a in atoms]
                    parts.append((u, 0, stated.M))
                elif r >= 0:
                    row = stated.rows[r]
                    parts.append((u, row.low, row.high))
                    for j, v in row.terms.items():
                        atoms[j] += u * v
                    for k, v in row.extra.items():
                        extra[k] += u * v
                else:
                    extra[-2 - r] += u
            self.sums[number] = atoms, extra, parts
        return self.sums[number]

    def without_whole(self, node, state, ends):
        """Whether a combination shows that no whole numbers fit a leaf: section "Leaves"."""
        atoms, extra, parts = self.combination(self.multiplier[node])
        bounds = parts + [(u, *ends[-2 - r]) for r, u in self.combined[self.multiplier[node]] if r < -1]
        low = high = Fraction(0)
        for u, least, most in bounds:
            if u and (least is None or most is None):
                return False
            low += u * (least if u > 0 else most) if u else 0
            high += u * (most if u > 0 else least) if u else 0
        known = sum(a for a, s in zip(atoms, state, strict=True) if s == 1)
        is_full = state.count(1) >= self.stated.M  # the others are fixed to 0
        if not is_full and any(s == FREE and a.denominator != 1 for a, s in zip(atoms, state, strict=True)):
            return False
        for a, (least, most), is_whole in zip(extra, ends, self.stated.integer, strict=True):
            if least is not None and least == most:
                known += a * least
            elif a and not (is_whole and a.denominator == 1):
                return False
        return math.ceil(low - known) > math.floor(high - known)

    def _check_shape(self):
        """Every node is reached once, children are where they belong, and no atom is split twice on a way down."""
        p, stated = self.stated.p, self.stated
        reached, split, stack = [False] * self.count, set(), [(0, False)]
        while stack:
            node, leaving = stack.pop()
            on = self.feature[node]
            if leaving:
                split.discard(on)
                continue
            need(not reached[node], "a node is reached twice")
            reached[node] = True
            low, high = self.children[node]
            if on in (-1, SCREENED):
                empty = on == -1 and self.dual[node] in (-2, -3)
                need(empty or 0 <= self.dual[node] < self.duals.count, "a leaf without a dual vector")
                if empty and self.dual[node] == -3:
                    need(0 <= self.multiplier[node] < len(self.combined), "a combination that is not there")
                else:
                    need(-1 <= self.multiplier[node] < len(self.pi), "multipliers that are not there")
            if on == -1:
                need(low == high == -1, "a leaf has children")
                continue
            if on == SCREENED:
                need(0 <= low < self.count and high == -1, "a screened node goes on in one child")
                stack.append((low, False))
                continue
            need(0 <= on < p + len(stated.extra), "a split on nothing")
            need(0 <= low < self.count and 0 <= high < self.count, "a split has two children")
            if on < p:
                need(on not in split, "an atom is split twice")
                split.add(on)
                stack.append((node, True))
            else:
                need(stated.integer[on - p] and node in self.whole, "a split on an extra variable that is not whole")
            stack += [(low, False), (high, False)]
        need(all(reached), "a node is not reached")
        need(all(0 <= node < self.count and p <= self.feature[node] < SCREENED for node in self.whole), "odd splits")

    def ends(self, pi):
        """Σ π_i · (lower end where π > 0, upper end where π < 0); the parts of the atoms and of the extra variables."""
        base, atoms, extra = Fraction(0), [Fraction(0)] * self.stated.p, [Fraction(0)] * len(self.stated.extra)
        for value, row in zip(pi, self.rows, strict=True):
            if value:
                end = row.low if value > 0 else row.high
                if end is None:
                    continue  # counts for nothing
                base += value * end
                for j, a in row.terms.items():
                    atoms[j] -= value * a
                for k, a in row.extra.items():
                    extra[k] -= value * a
        return base, atoms, extra

    def line(self, d, m):
        """The minorant of a dual vector (None: a Farkas ray) and multipliers."""
        if (d, m) not in self.lines:
            need(-1 <= m < len(self.pi), "multipliers that are not there")
            base, atoms, extra = self.ends(self.pi[m] if m >= 0 else [0] * len(self.rows))
            if d is not None:
                g, terms = self.duals.get(d)
                base += g
                extra = [a + cost for a, cost in zip(extra, self.stated.extra_cost, strict=True)]
                atoms = [a + c - t for a, c, t in zip(atoms, self.stated.cost, terms, strict=True)]
            self.lines[d, m] = Line(base, atoms, extra)
        return self.lines[d, m]

    def root(self):
        state = bytearray([FREE] * self.stated.p)
        for j, value in self.stated.forced.items():
            state[j] = value
        return bytes(state), tuple(self.stated.ends)

    def walk(self, level, strict, open_leaf):
        """Go through all leaves that may hold a selection, with `open_leaf(node, state, ends, value)` below `level`.

        `level` is a fraction, or None: no number reaches it; `strict`: it is to be exceeded. Screening fixes at it.
        """
        reaches = (lambda value: value > level) if strict else (lambda value: value >= level)
        stack = [(0, *self.root())]
        while stack:
            node, state, ends = stack.pop()
            on, (low, high) = self.feature[node], self.children[node]
            room = self.stated.M - state.count(1)
            if room < 0 or any(a is not None and b is not None and a > b for a, b in ends):
                continue
            if 0 <= on < self.stated.p:
                for child, value in ((low, 0), (high, 1)):
                    if state[on] in (FREE, value):
                        stack.append((child, state[:on] + bytes([value]) + state[on + 1 :], ends))
            elif 0 <= on < SCREENED:
                stack += self.narrowed(node, state, ends)
            elif on == SCREENED:
                found = self.screened(node, state, ends, room, level, strict)
                if found is not None:
                    stack.append((low, found, ends))
            elif not self.refuted(node, state, ends, room):
                value, _ = self.line(self.dual[node], self.multiplier[node]).least(state, ends, room)
                if value is None or level is None or not reaches(value):
                    open_leaf(node, state, ends, value)

    def narrowed(self, node, state, ends):
        """Both children of a split on an extra variable."""
        k, value = self.feature[node] - self.stated.p, Fraction(self.whole[node])
        (a, b), (low, high) = ends[k], self.children[node]
        low_ends = (a, value if b is None else min(b, value))
        high_ends = (value + 1 if a is None else max(a, value + 1), b)
        return [
            (low, state, (*ends[:k], low_ends, *ends[k + 1 :])),
            (high, state, (*ends[:k], high_ends, *ends[k + 1 :])),
        ]

    def refuted(self, node, state, ends, room):
        """Whether a leaf that says that it is empty is."""
        if self.dual[node] == -3:
            need(self.without_whole(node, state, ends), "a combination of rows does not show that a leaf is empty")
            return True
        if self.dual[node] != -2:
            need(self.dual[node] >= 0, "a leaf without a dual vector")
            return False
        need(self.multiplier[node] >= 0, "a leaf that is said to be empty is not")
        value, _ = self.line(None, self.multiplier[node]).least(state, ends, room)
        need(value is not None and value > 0, "multipliers do not show that a leaf is empty")
        return True

    def screened(self, node, state, ends, room, level, strict):
        """The state below a screened node; None where nothing is left."""
        need(self.dual[node] >= 0, "a screened node without a dual vector")
        line = self.line(self.dual[node], self.multiplier[node])
        value, taken = line.least(state, ends, room)
        if value is None or level is None:
            return state if room or FREE not in state else bytes(0 if s == FREE else s for s in state)
        if value > level or (value == level and not strict):
            return None
        gap, cost, full = (level - value) * line.unit, line.cost, len(taken) == room
        inside = set(taken)
        spare = next((j for j in line.order if state[j] == FREE and j not in inside), None)
        comes = cost[spare] if spare is not None and full else 0  # what a place that is given up goes to
        leaves = cost[taken[-1]] if full and taken else 0
        found = bytearray(state)
        for j, s in enumerate(state):
            if s != FREE:
                continue
            if j in inside:
                if comes - cost[j] > gap or (comes - cost[j] == gap and not strict):
                    found[j] = 1
            elif room == 0 or cost[j] - leaves > gap or (cost[j] - leaves == gap and not strict):
                found[j] = 0
        return bytes(found)


def derived_row(stated, one):
    """A derived row, derived again: section "Derived rows"."""
    need(isinstance(one, dict) and one.get("kind") == "chvatal-gomory", "a derived row of an unknown kind")
    fields = {"kind", "terms", "ub", "rows", "cardinality", "bounds"}
    need(set(one) == fields, "a derived row lacks a field, or has an unknown one")
    need(isinstance(one["rows"], list) and isinstance(one["bounds"], dict), "a derived row is incomplete")
    card = ratio(one["cardinality"], "a multiplier")
    need(card >= 0, "a multiplier of the cardinality row is below 0")
    a, extra, b = [card] * stated.p, [Fraction(0)] * len(stated.extra), card * stated.M
    for pair in one["rows"]:
        need(isinstance(pair, list) and len(pair) == 2 and whole(pair[0], "a row") < len(stated.rows), "no such row")
        row, value = stated.rows[pair[0]], ratio(pair[1], "a multiplier")
        end = row.high if value > 0 else row.low
        need(value == 0 or end is not None, "a multiplier at an end that a row does not have")
        b += value * end if value else 0
        for j, v in row.terms.items():
            a[j] += value * v
        for k, v in row.extra.items():
            extra[k] += value * v
    for name, text in one["bounds"].items():
        value = ratio(text, "a multiplier")
        need(name in stated.atom and value >= 0, "a multiplier of a bound")
        a[stated.atom[name]] += value
        b += value
    need(not any(extra), "an extra variable is left in a derived row")
    need(isinstance(one["terms"], dict) and set(one["terms"]) <= set(stated.atom), "terms of a derived row")
    whole_ones = all(type(v) is int and abs(v) <= 2**53 for v in (*one["terms"].values(), one["ub"]))
    need(whole_ones, "a number of a derived row is no whole one up to 2^53")
    terms = {stated.atom[name]: number(v, "a coefficient") for name, v in one["terms"].items()}
    need(all(terms.get(j, 0) == math.floor(v) for j, v in enumerate(a)), "a derived row has other terms")
    end = number(one["ub"], "the end of a derived row")
    need(end >= math.floor(b), "a derived row has a smaller end")
    return Row(terms, {}, None, end)


# --- Near-optimal lists --------------------------------------------------------------------------------------


def check_list(stated, tree, best, bound):
    """Section "Near-optimal lists"; `best` is the objective of the classifier."""
    listed, least, strict = listing(stated, best)
    for one, (chosen, said) in zip(stated.document["near_optimal"]["supports"], listed.items(), strict=True):
        proven = stated.reported(
            best_of(tree, chosen) + stated.costs(stated.extras(values_in(one), "a listed support"))
        )
        shown = said == proven or (proven is not None and said and said - proven <= LISTED * abs(said))
        need(shown, "a listed objective is not bounded from below")
    if stated.document["near_optimal"]["complete"]:
        check_complete(stated, tree, listed, least, strict, bound)


def listing(stated, best):
    """What a list states, without its proof: objectives by support, what others are to be worth, and whether more."""
    given = stated.document["near_optimal"]
    need(isinstance(given, dict) and set(given) <= {"complete", "gap", "size", "supports", "share"}, "near_optimal")
    need(isinstance(given["complete"], bool), "near_optimal.complete is neither true nor false")
    supports, gap, size = given["supports"], number_or_none(given["gap"], "near_optimal.gap"), given["size"]
    need(isinstance(supports, list), "near_optimal.supports is no list")
    need(gap is None or gap >= 0, "near_optimal.gap is below 0")
    need(size is None or len(supports) <= whole(size, "near_optimal.size", 1), "more supports than near_optimal.size")
    listed, limit, least, strict = {}, None, None, False
    if supports:
        values = [number(one["objective"], "a listed objective") for one in supports]
        need(values == sorted(values), "the listed supports are not in order")
        need(near(values[0], best), "the best listed support has another objective than the classifier")
        limit, least, strict = limits(values, gap, len(supports) == size)
    for one in supports:
        chosen, said = check_listed(stated, one, values[0], limit)
        need(chosen not in listed, "a support is listed twice")
        listed[chosen] = said
    times = [name for one in supports for name in one["selected"]]
    share = {name: times.count(name) / len(supports) for name in times}
    need(given["share"] == share, "the shares of the features are others")
    return listed, least, strict


def screening(stated, bound):
    """At what nodes are screened, and whether it is to be exceeded: that of a complete list, where it is higher."""
    given, level = stated.document.get("near_optimal"), -(LARGEST**4) if bound is None else stated.unit(bound)
    if not isinstance(given, dict) or not given.get("complete"):
        return level, False
    values = [number(one["objective"], "a listed objective") for one in given["supports"]]
    if not values:
        return None, False
    least, strict = limits(values, number_or_none(given["gap"], "gap"), len(values) == given["size"])[1:]
    least = None if least is None else stated.unit(least)
    return (level, False) if level is not None and least is not None and least < level else (least, strict)


def limits(values, gap, full):
    """The limit, what a support that is missing is worth at least (None: infinite), and whether it must be more."""
    limit = least = None
    strict = True
    if gap is not None:
        limit = least = values[0] + gap * abs(values[0])
    if full and (limit is None or values[-1] <= limit):
        limit, least, strict = values[-1], values[-1] - SAME * abs(values[-1]), False
    return limit, least, strict


def check_listed(stated, one, best, limit):
    """One listed support: (its positions, its stated objective)."""
    need(isinstance(one, dict), "a listed support is no mapping")
    need(set(one) <= {"selected", "objective", "gap", "weights", "intercept", "extra", "ties"}, "a listed support")
    chosen, said = chosen_of(stated, one["selected"]), number(one["objective"], "a listed objective")
    z = stated.extras(values_in(one), "a listed support")
    need(stated.allows(chosen, z), "a listed support is not in S")
    if one.get("ties") is not None:
        whole(one["ties"], "ties")
    value = value_of(stated, one["weights"], one["intercept"], dict.fromkeys(chosen, 1), "a listed support", said)
    value += stated.costs(z)
    need(near(value, said), "a listed objective is another one")
    need(limit is None or said <= limit + SAME * abs(limit), "a listed support lies above the limit")
    gap = number_or_none(one["gap"], "a listed gap")
    exact = Fraction(0) if said == best else None if best == 0 else (said - best) / abs(best)
    right = gap is None if exact is None else gap is not None and abs(gap - exact) <= exact / 1000 + Fraction(1, 2**50)
    need(right, "a listed gap is another one")
    return chosen, said


def best_of(tree, chosen):
    """The most that a dual vector proves of one selection; at least 0, unless variables have costs."""
    found = -(LARGEST**4) if tree.stated.signed else Fraction(0)
    for d in range(tree.duals.count):
        g, terms = tree.duals.get(d)
        found = max(found, g + sum(tree.stated.cost[j] - terms[j] for j in chosen))
    return found


def check_complete(stated, tree, listed, least, strict, bound):
    """What no leaf lifts to `least` is one selection that is listed, or nothing but ties of one that is."""
    level = None if least is None else stated.unit(least)

    def judge(_node, state, _ends, value):
        if not stated.signed:
            value = max(value or Fraction(0), Fraction(0))
        value = -(LARGEST**4) if value is None else value
        if level is not None and (value > level or (value == level and not strict)):
            return
        inside = frozenset(j for j, s in enumerate(state) if s == 1)
        free = [j for j, s in enumerate(state) if s == FREE] if len(inside) < stated.M else []
        if not free and (inside in listed or not stated.allows(inside, None)):
            return
        dear = {j for j in (*inside, *free) if stated.cost[j] > 0 or j in stated.priced or j in stated.excluding}
        proven = stated.reported(value)
        ties = (dear <= one <= inside and said - SAME * abs(said) <= proven for one, said in listed.items())
        need(proven is not None and any(ties), "a support within the limit may be missing")

    tree.walk(*screening(stated, bound), judge)


def chosen_of(stated, names):
    """Positions of selected atoms."""
    need(isinstance(names, list), "a selection is no list")
    need(all(isinstance(s, str) and s in stated.atom for s in names), "a selection of what is not there")
    need(len(set(names)) == len(names), "an atom is selected twice")
    return frozenset(stated.atom[name] for name in names)


# --- What is decided of single features ----------------------------------------------------------------------


def check_decided(stated, tree):
    """What is said to be in every selection up to a limit, in none, or open: section "What is decided …"."""
    given = stated.document.get("decided")
    if given is None:
        return
    need(isinstance(given, list) and given, "decided is no list")
    need(stated.document["objective"] is not None, "something is decided, and there is no objective")
    need(not isinstance(stated.made, Products), "something is decided of products of features")
    best = number(stated.document["objective"], "objective")
    selected = chosen_of(stated, stated.document["selected"])
    before = None
    for one in given:
        need(isinstance(one, dict) and set(one) == {"gap", "every", "none", "open"}, "an entry of decided")
        gap = number(one["gap"], "decided.gap")
        need(gap >= 0 and (before is None or gap > before) and not (stated.rho and gap >= 1), "decided.gap")
        before = gap
        every, none = decided_names(stated, one)
        need(every <= selected and not none & selected, "the selection contradicts what is decided")
        level = stated.unit(best + gap * abs(best))
        may_be_in, may_be_out = Possible(tree, level).found
        need(not every & may_be_out, "a feature is not shown to be in every selection")
        need(not none & may_be_in, "a feature is not shown to be in no selection")


def decided_names(stated, one):
    """The sets of positions that an entry lists; what is null has the rest."""
    need(one["every"] is not None and not (one["none"] is None and one["open"] is None), "decided: too much is null")
    every, none, rest = (
        None if one[name] is None else set(chosen_of(stated, one[name])) for name in ("every", "none", "open")
    )
    listed = [part for part in (every, none, rest) if part is not None]
    known = set().union(*listed)
    need(sum(map(len, listed)) == len(known), "decided: a feature stands there twice")
    others = set(range(stated.p)) - known
    need(not others or None in (none, rest), "decided: a feature is missing")
    return every, others if none is None else none


class Possible:
    """The atoms that may be in and that may be out, as the leaves have it up to a level (None: everything is)."""

    def __init__(self, tree, level):
        self.tree, self.stated, self.level = tree, tree.stated, level
        self.found = set(), set()
        self.rows = [(row.terms, row.low, row.high) for row in tree.rows if row.terms and not any(row.extra.values())]
        if self.rows:
            self.rows.append((dict.fromkeys(range(self.stated.p), 1), None, self.stated.M))
        stack = [(0, *tree.root())]
        while stack:
            node, state, ends = stack.pop()
            room = self.stated.M - state.count(1)
            if room < 0 or any(a is not None and b is not None and a > b for a, b in ends):
                continue
            on, (low, high) = tree.feature[node], tree.children[node]
            if on == -1:
                self.leaf(node, state, ends)
            elif on == SCREENED:
                found = tree.screened(node, state, ends, room, level, True)
                if found is not None:
                    stack.append((low, found, ends))
            elif on < self.stated.p:
                stack += [
                    (child, state[:on] + bytes([value]) + state[on + 1 :], ends)
                    for child, value in ((low, 0), (high, 1))
                    if state[on] in (FREE, value)
                ]
            else:
                stack += tree.narrowed(node, state, ends)

    def reach(self, state):
        """The least and the largest sum of every row, beside its coefficients and ends."""
        for terms, low, high in self.rows:
            least = sum(a for j, a in terms.items() if state[j] == 1 or (state[j] == FREE and a < 0))
            most = sum(a for j, a in terms.items() if state[j] == 1 or (state[j] == FREE and a > 0))
            yield terms, least, most, low, high

    def row_by_row(self, state):
        """What the rows fix, each by itself, until nothing changes; None where one of them leaves no selection."""
        found, before = bytearray(state), None
        while found != before:
            before = bytes(found)
            for terms, least, most, low, high in self.reach(found):
                if (low is not None and most < low) or (high is not None and least > high):
                    return None
                for j, a in terms.items():
                    if found[j] == FREE and low is not None and most - abs(a) < low:
                        found[j] = a > 0
                        least += abs(a)
                    elif found[j] == FREE and high is not None and least + abs(a) > high:
                        found[j] = a < 0
                        most -= abs(a)
        return bytes(found)

    def hold(self, ones):
        """Whether these atoms alone satisfy all rows: then `row_by_row` finds a selection left wherever they may be."""
        sums = ((sum(terms.get(j, 0) for j in ones), low, high) for terms, low, high in self.rows)
        return all((low is None or low <= value) and (high is None or value <= high) for value, low, high in sums)

    def untouched(self, state):
        """Whether rows are so far from their ends that `row_by_row` fixes no more once a free atom j has a value."""
        rows = [
            (terms, least, most, max((abs(a) for j, a in terms.items() if state[j] == FREE), default=0), low, high)
            for terms, least, most, low, high in self.reach(state)
        ]

        def is_untouched(j, value):
            for terms, least, most, step, low, high in rows:
                a = terms.get(j, 0)
                is_least_larger = (a > 0) == bool(value)
                if a and is_least_larger and high is not None and least + abs(a) + step > high:
                    return False
                if a and not is_least_larger and low is not None and most - abs(a) - step < low:
                    return False
            return True

        return is_untouched

    def leaf(self, node, state, ends):
        """What may be in or out at a leaf."""
        state = self.row_by_row(state)
        if state is None:
            return
        may_be_in, may_be_out = self.found
        dual = self.tree.dual[node]
        if dual == -3 and self.tree.without_whole(node, state, ends):
            return
        line = None if dual == -3 else self.tree.line(None if dual == -2 else dual, self.tree.multiplier[node])
        level = 0 if dual == -2 else self.level
        inside = [j for j, s in enumerate(state) if s == 1]
        is_untouched = self.untouched(state)

        def fits(j, value):
            one = state[:j] + bytes([value]) + state[j + 1 :]
            ones = [*inside, j] if value == 1 and state[j] == FREE else inside
            room = self.stated.M - len(ones)
            if room < 0 or not (self.hold(ones) or is_untouched(j, value) or self.row_by_row(one) is not None):
                return False
            least = None if line is None else line.least(one, ends, room)[0]
            return least is None or level is None or least <= level

        for j, s in enumerate(state):
            if s != 0 and j not in may_be_in and fits(j, 1):
                may_be_in.add(j)
            if s != 1 and j not in may_be_out and fits(j, 0):
                may_be_out.add(j)


# --- Relaxations ---------------------------------------------------------------------------------------------


def check_relaxed(stated, status, bound):
    """Section "Relaxations": `lower` is proven, `upper` no less than the value at σ and the weights, and both meet."""
    given, claimed = stated.document.get("relaxed"), status == "RELAXED"
    need(given is not None or not claimed, "RELAXED, without a relaxation")
    if given is None:
        return
    need(isinstance(given, dict), "relaxed is no mapping")
    need(set(given) <= RELAXED, "an unknown field of relaxed")
    for key in ("sigma", "weights"):
        need(given.get(key) is None or isinstance(given[key], dict), f"relaxed.{key} is no mapping")
    mixture = [] if given.get("mixture") is None else given["mixture"]
    need(isinstance(mixture, list), "relaxed.mixture is no list")
    for one in mixture:
        need(isinstance(one, dict) and set(one) <= {"share", "selected", "extra"}, "an unknown field of the mixture")
    for one in (given, *mixture):
        values_in(one)
    lower, upper = (number_or_none(given[key], f"relaxed.{key}") for key in ("lower", "upper"))
    need(lower is None or (bound is not None and lower <= bound + CLOSE * abs(bound)), "relaxed.lower is not proven")
    shown = given.get("weights") is not None and given.get("intercept") is not None and upper is not None
    need(shown or not claimed, "RELAXED, and nothing shows the upper side")
    if not shown:
        return
    need(isinstance(given["sigma"], dict) and set(given["sigma"]) <= set(stated.atom), "relaxed.sigma names no atoms")
    sigma = {stated.atom[name]: number(v, "relaxed.sigma") for name, v in given["sigma"].items()}
    need(all(0 < v <= 1 for v in sigma.values()), "relaxed.sigma is not above 0 and up to 1")
    if given.get("mixture") is not None:
        sigma = mixed(stated, given["mixture"], sigma)
    else:
        z = stated.extras(values_in(given), "relaxed", fractional=True)
        full = [sigma.get(j, Fraction(0)) for j in range(stated.p)]
        need(sum(full) <= stated.M * (1 + CLOSE), "relaxed.sigma is more than M")
        need(all(full[j] == value for j, value in stated.forced.items()), "relaxed.sigma: a forced atom")
        need(all(row.holds(full, z, CLOSE) for row in stated.tree_rows), "relaxed.sigma breaks a row")
    value = value_of(stated, given["weights"], given["intercept"], sigma, "relaxed", upper, 1 + ALLOWANCE)
    need(value <= upper + CLOSE * abs(upper), "relaxed.upper is less than its σ and weights have")
    meets = bound is not None and closed(max(value, upper), bound, stated.asked_gap)
    need(meets or not claimed, "the relaxation is not solved to the asked gap")


def mixed(stated, mixture, sigma):
    """σ as the mixture of selections of S that is stated, after both were compared."""
    shares = [number(one["share"], "a share") for one in mixture]
    need(all(part >= 0 for part in shares) and sum(shares) > 0, "the shares of the mixture are no shares")
    found = {}
    for part, one in zip(shares, mixture, strict=True):
        chosen = chosen_of(stated, one["selected"])
        z = stated.extras(values_in(one), "the mixture")
        need(stated.allows(chosen, z), "a selection of the mixture is not in S")
        for j in chosen:
            found[j] = found.get(j, 0) + part / sum(shares)
    found = {j: part for j, part in found.items() if part > 0}
    need(found.keys() == sigma.keys(), "σ is not the mixture")
    need(all(abs(part - sigma[j]) <= CLOSE * part for j, part in found.items()), "σ is not the mixture")
    return found


def closed(upper, lower, gap):
    """Whether the gap is at most the asked one."""
    if upper == 0 or upper == lower:
        return upper == lower
    return (upper - lower) / abs(upper) <= gap * (1 + CLOSE) + Fraction(1, 2**50)


# --- The verdict ---------------------------------------------------------------------------------------------

STATUSES = ("OPTIMAL", "FEASIBLE", "RELAXED", "INFEASIBLE", "NO_SOLUTION", "NUMERICAL")


def check(document, arrays, data):
    """Check a document with the arrays of its sidecar against data; returns (status, objective, bound, gap, notes).

    Raises `Rejected` or `Declined`.
    """
    stated = statement(document, arrays, data)
    status, claimed = document["status"], document["certificate"]
    tree = Tree(document, arrays, stated)
    bound = number_or_none(claimed["bound"], "certificate.bound")
    if claimed["kind"] == "relaxation":
        need(len({d for d, on in zip(tree.dual, tree.feature, strict=True) if on in (-1, SCREENED) and d >= 0}) <= 1,
             "a relaxation has one dual vector")  # fmt: skip
    objective = check_classifier(stated)
    prove(stated, tree, status, bound)
    if isinstance(stated.made, Products):
        stated.made.check_rows(document)
        stated.made.check_outside(stated, tree, arrays.get("outside"), bound, status)
    found = concluded(stated, objective, bound)
    if document.get("near_optimal") is not None:
        need(objective is not None, "near-optimal supports without an optimum")
        check_list(stated, tree, objective, bound)
    check_decided(stated, tree)
    return found


def concluded(stated, objective, bound):
    """The verdict on a result whose bound is taken for proven: status, objective, bound, gap, notes."""
    status = stated.document["status"]
    gap = verdict(stated, status, objective, bound)
    check_relaxed(stated, status, bound)
    return status, *(None if v is None else float(v) for v in (objective, bound, gap)), notes_of(stated)


def statement(document, arrays, data):
    """What a document states over its data, after its form was looked at."""
    need(isinstance(document, dict) and set(document) >= NEEDED, "a field of the document is missing")
    need(isinstance(document.get("warm_from"), dict | None), "what a run began from is no mapping")
    need(set(document) <= FIELDS, f"unknown fields {sorted(set(document) - FIELDS)}")
    check_schema(document)
    need(set(arrays) <= ARRAYS, f"unknown arrays {sorted(set(arrays) - ARRAYS)}")
    for key in ("params", "scaling", "labels", "columns", "certificate", "weights"):
        need(isinstance(document[key], dict), f"{key} is no mapping")
    status, claimed = document["status"], document["certificate"]
    need(status in STATUSES, "an unknown status")
    known = {"kind", "bound", "gap", "file", "sha256", "found", "derived"}
    need(set(claimed) <= known, "an unknown field of the certificate")
    need(claimed["kind"] in ("tree", "relaxation"), "an unknown kind of certificate")
    decline(document)
    check_arrays(document, arrays)
    reading_of(document)
    is_other = "the data is other data (data_sha256), or read in another way"
    need((document.get("atoms") or {}).get("made") or document["data_sha256"] == data.sha256(), is_other)
    stated = Statement(document, arrays, data)
    need(not stated.made or document["data_sha256"] == stated.made.sha256(), is_other)
    need(number(claimed["gap"], "certificate.gap") == stated.asked_gap, "the certificate was asked for another gap")
    return stated


def notes_of(stated):
    """What is said beside the verdict: rules, labels, columns that are left out, and what the .toml asks for."""
    labels = stated.document["labels"]
    two = f"{labels['negative']!r} (-1), {labels['positive']!r} (+1)"
    asked = [f"the data's .toml asks for {one}; the problem does not have it" for one in stated.differs()]
    names = [one["name"] for one, row in zip(stated.document["rows"], stated.rows, strict=True) if row.used]
    forgiven = f"only as rules {stated.rules} forgive 2^-47 of the terms of whole variables, which rules 3 take exactly"
    asked += [f"the row {name!r} holds {forgiven}" for name in names]
    return reading_notes(stated.rules, stated.data, two) + asked


def reading_notes(rules, data, labels):
    """How the data became columns, in words."""
    where = f"column {data.reading.label!r} has the labels" if data.reading else "the labels are"
    notes = [f"read and scaled by rules {rules}; {where} {labels}"]
    notes += [] if data.raw else ["there is no raw file: how the data became columns is unchecked"]
    return notes + (data.reading.notes() if data.reading else [])


def check_schema(document):
    need(isinstance(document, dict), "the document is no mapping")
    need(type(document.get("schema")) is int and document["schema"] == 1, "schema is not the whole number 1")


def check_arrays(document, arrays):
    """No array belongs to another loss or to another kind of atoms."""
    made = (document.get("atoms") or {}).get("made")
    of_products = isinstance(made, dict) and "name" not in made
    others = OF_BYTES if document["params"].get("loss") == "structural" else OF_LABELLINGS
    others = set(arrays) & (others if of_products else others | {"outside"})
    need(not others, f"arrays of another loss or other atoms: {sorted(others)}")


def decline(document):
    """Decline the kinds that this checker does not carry, before anything else is said of them."""
    params, atoms = document["params"], document.get("atoms")
    losses = ("hinge", "squared-hinge", "logistic", "structural")
    if CARRIED_ELSEWHERE & set(params) or params.get("loss") not in losses:
        raise Declined("a kind that I do not carry: another loss or another regulariser")
    need(atoms is None or isinstance(atoms, dict), "atoms is no mapping")


def prove(stated, tree, status, bound):
    """Every leaf reaches the claimed bound. A value of the unit margin is at least 0 whatever the leaves say, unless
    extra variables have costs."""

    def too_low(_node, _state, _ends, value):
        reached = bound is not None and value is not None and value >= stated.unit(bound)
        need(reached, "a leaf does not reach the bound")

    for d in range(tree.duals.count):
        tree.duals.get(d)
    if bound is None and status != "INFEASIBLE":
        tree.walk(-(LARGEST**4), False, lambda *_: None)  # nothing is claimed, but what is said to be empty is to be
    elif bound is None:
        tree.walk(None, False, too_low)
    else:
        is_shown = stated.rho or stated.signed or bound > 0
        tree.walk(*screening(stated, bound), too_low if is_shown else lambda *_: None)


def check_classifier(stated):
    """The selection is one of S, its weights have the stated objective, and predictions use what the data has.

    Returns the larger of the stated and the recomputed objective, None where there is none.
    """
    document, data = stated.document, stated.data
    need(set(document["labels"]) == {"negative", "positive"}, "labels are not two")
    check_labels(document["labels"])
    if data.labels is not None:
        for side, name in data.labels.items():
            need(calls(document["labels"][side], name), "the labels are others in the data")
    chosen = chosen_of(stated, document["selected"])
    place = {data.names[column]: column for j in chosen for column in stated.columns[j]}
    place = stated.made.used(chosen) if stated.made else place
    used, columns, scaling = set(place), document["columns"], document["scaling"]
    check_read(document, data)
    need(all(type(j) is int and place.get(name) == j for name, j in columns.items()), "columns are others")
    need(set(columns) == used, "the columns are not those of the selected features")
    check_weightless(stated, {column for j in chosen for column in stated.columns[j]})
    need(set(scaling) <= {"kind", "shift", "scale", "center"}, "scaling has an unknown field")
    for key, values in scaling.items():
        need(key == "kind" or isinstance(values, dict), f"scaling.{key} is no mapping")
    need(set(scaling["shift"]) == used == set(scaling["scale"]), "shift and scale are not of the selected features")
    centred = {name for name in used if name in stated.place and stated.center[stated.place[name]]}
    need(set(scaling.get("center", {})) == centred, "center is not of the selected features")
    if document["objective"] is None:
        need(not chosen and not document["weights"] and document["intercept"] is None, "a classifier without a value")
        return None
    given = document.get("extra") or {}
    z = stated.extras({name: one["value"] for name, one in given.items()}, "an extra variable")
    need(stated.allows(chosen, z), "the selection is none of S")
    said = number(document["objective"], "objective")
    sigma = dict.fromkeys(chosen, 1)
    value = value_of(stated, document["weights"], document["intercept"], sigma, "the classifier", said)
    value += stated.costs(z)
    need(near(value, said), "the objective is another one")
    return max(value, said)


def values_in(one):
    """The values of extra variables that a support, a selection or a relaxation has, a mapping or nothing."""
    found = {} if one.get("extra") is None else one["extra"]
    need(isinstance(found, dict), "extra is no mapping")
    return found


def check_weightless(stated, own):
    """`weightless`, where it is stated: exactly the columns of what is selected that have no weight but 0."""
    said = stated.document.get("weightless")
    if said is None:
        return
    need(isinstance(said, list) and all(isinstance(name, str) for name in said), "weightless is no list of names")
    need(len(set(said)) == len(said), "a name stands twice in weightless")
    held = {stated.place[name] for name, w in stated.document["weights"].items() if w and name in stated.place}
    need({stated.place.get(name) for name in said} == own - held, "weightless are others")


def check_read(document, data):
    """`read`, beside what the digest shows: the words, and that data without columns of names has nothing to read."""
    read = reading_of(document)
    if data.reading is None:
        need(read["label"] is None or data.label is None or read["label"] == data.label, "the labels stand elsewhere")
        need(not data.raw or document.get("read") is None, "read, of data that is no table")
        return
    names = [*document["columns"], *document["selected"]]
    need(read["words"] == data.reading.used(names), "read.words are not the words of the selected columns")


def verdict(stated, status, objective, bound):
    """Status and gap by what was proven; returns the gap."""
    document = stated.document
    said, told = number_or_none(document["bound"], "bound"), number_or_none(document["gap"], "gap")
    if status == "INFEASIBLE":
        need(objective is None and bound is None and said is None, "infeasible, with a value")
        need(told is None and not document.get("relaxed"), "infeasible, with a gap or a relaxation")
        return None
    proven = said is None or (bound is not None and said <= bound + CLOSE * abs(bound))
    need(proven, "the bound is above the proven one")
    need(status not in ("OPTIMAL", "FEASIBLE") or objective is not None, "a solution without a value")
    need(status != "NO_SOLUTION" or objective is None, "no solution, with a value")
    gap = None
    if objective is not None and bound is not None:
        need(bound <= objective, "the bound is above the objective")
        gap = Fraction(0) if objective == bound else None if objective == 0 else (objective - bound) / abs(objective)
    if status == "OPTIMAL":
        shown = bound is not None and said is not None
        need(shown and all(closed(objective, one, stated.asked_gap) for one in (bound, said)), "the gap is open")
    if told is not None:
        need(gap is not None, "a gap between what is not there")
        size = abs(objective)
        room = gap / 1000 + (CLOSE * (1 + abs(bound) / size) if size else 0)
        need(abs(told - gap) <= room, "the gap is another one")
    return gap


# --- Several results in one document -------------------------------------------------------------------------


def members_of(content, count, more=()):
    """The members of an archive of `count` sidecars, bytes by name."""
    names = {f"{k}.cert.npz" for k in range(count)} | set(more)
    return unpacked(content, names.__contains__, "the archive of certificates", stored=True)


def sidecar(members, k, result):
    """The arrays of the k-th sidecar, after its digest was compared with what its result says."""
    need(isinstance(result, dict) and isinstance(result.get("certificate"), dict), f"result {k} has no certificate")
    file = result["certificate"].get("file")
    need(isinstance(file, str) and file not in ("", "..") and Path(file).name == file, f"result {k} names no file")
    content = members.get(f"{k}.cert.npz")
    need(content is not None, f"the archive has no {k}.cert.npz")
    need(hashlib.sha256(content).hexdigest() == result["certificate"].get("sha256"), f"{k}.cert.npz is another file")
    return read_archive(content)


def gap_agrees(told, upper, lower):
    """Whether a stated gap is that of two values, as section "The verdict" has it."""
    if upper is None or lower is None or (upper == 0 != lower):
        return told is None
    gap = Fraction(0) if upper == lower else (upper - lower) / abs(upper)
    room = abs(gap) / 1000 + (CLOSE * (1 + abs(lower / upper)) if upper else 0)
    return told is None or abs(told - gap) <= room


AXES = {"M": ("M",), "C": ("C",), "lambda": ("lambda",), "rows": ("rows",), "C,M": ("C", "M"), "end": ("end",)}
PATH_NEEDED = names_in("schema axis params driver folds seed chosen interrupted points")
PATH_FIELDS = PATH_NEEDED | names_in("command rule by folds_by least_error one_se certificate row bought between")
BY = names_in("error balanced-accuracy f1 roc-auc average-precision log-loss")
POINT_NEEDED = names_in("result status objective gap selected bound errors error deviation standard_error")
POINT_FIELDS = POINT_NEEDED | names_in(
    "stop_reason fold_classifiers subproblems seconds cuts_carried cuts seconds_saved cold_seconds start added"
)


class Course:
    """A document of a path: section "A path"."""

    def __init__(self, document, content, source):
        self.document, self.source, self.kept = document, source, {}
        need(set(document) >= PATH_NEEDED, "a field of the path is missing")
        need(set(document) <= PATH_FIELDS, f"unknown fields {sorted(set(document) - PATH_FIELDS)}")
        need(isinstance(document["axis"], str) and document["axis"] in AXES, "an unknown axis")
        self.axes, self.points, self.folds = AXES[document["axis"]], document["points"], document["folds"]
        need(isinstance(self.points, list) and self.points, "the path has no points")
        need(
            isinstance(document["params"], dict) and isinstance(document["interrupted"], bool), "the path is malformed"
        )
        need(self.folds is None or whole(self.folds, "folds", 2) > 1, "folds is no number of them")
        whole(document["seed"], "seed")
        self.by = document.get("by")
        need(self.by is None or (isinstance(self.by, str) and self.by in BY), "by is none of what errors may be of")
        need(isinstance(document.get("folds_by", ""), str), "folds_by is no text")
        need(self.folds is not None or not {"by", "folds_by"} & set(document), "by or folds_by without folds")
        self.members = members_of(content, len(self.points), ["folds.npz"])
        for k, point in enumerate(self.points):
            need(isinstance(point, dict) and set(point) >= POINT_NEEDED | set(self.axes), f"point {k} lacks a field")
            need(set(point) <= POINT_FIELDS | set(self.axes), f"point {k} has an unknown field")
            need(isinstance(point["result"], dict) and isinstance(point["result"].get("params"), dict), "no result")
            for axis in self.axes:
                need(number(point[axis], axis) >= 0 or axis == "end", f"{axis} is no value")
        self.places = [tuple(point[axis] for axis in self.axes) for point in self.points]
        need(len(set(self.places)) == len(self.places), "two points are at the same place")
        self.row = document.get("row")
        need((self.row is None) == ("bought" not in document), "a row without what it bought, or the reverse")
        need(self.row is not None or "end" not in self.axes, "a frontier without its row")
        if self.row is not None:
            need(isinstance(self.row, dict) and set(self.row) == {"name", "side"}, "row is malformed")
            need(isinstance(self.row["name"], str) and self.row["side"] in ("ub", "lb", "both"), "row is malformed")
            need((self.row["side"] == "both") <= (self.row["name"] == "parity"), "both ends of another row than parity")
            along_M = self.axes == ("M",) and self.row == {"name": "M", "side": "ub"}
            need(self.axes == ("end",) or along_M, "a path that is no frontier has a row")

    def proven(self, k):
        """The bound that the k-th result proves, after it was checked; None where it proves none."""
        if k not in self.kept:
            result = self.points[k]["result"]
            check_schema(result)
            try:
                found = check(result, sidecar(self.members, k, result), self.source.data(result))
            except Rejected as error:
                raise Rejected(f"point {self.name(k)}: {error}") from None
            self.kept[k] = number_or_none(result["certificate"]["bound"], "certificate.bound"), found
        return self.kept[k][0]

    def name(self, k):
        return ",".join(f"{axis}={value}" for axis, value in zip(self.axes, self.places[k], strict=True))

    def find(self, text):
        """The position of a point by its name, such as M=4,C=0.1, or of the chosen one (best)."""
        if text == "best":
            chosen = self.document["chosen"]
            need(chosen is not None, "the path chose nothing")
            wanted = tuple(chosen[axis] for axis in self.axes) if isinstance(chosen, dict) else (chosen,)
        else:
            given = dict(part.partition("=")[::2] for part in text.split(","))
            need(set(given) == set(self.axes), f"a point is named by {','.join(self.axes)}")
            wanted = tuple(None if given[axis] in ("None", "null") else float(given[axis]) for axis in self.axes)
        need(wanted in self.places, f"the path has no point {text}")
        return self.places.index(wanted)

    def is_below(self, i, k):
        """Whether the optimum of point i is at most that of point k by their places."""
        for axis, a, b in zip(self.axes, self.places[i], self.places[k], strict=True):
            if axis == "M" or (axis == "end" and self.row["side"] != "lb"):
                a, b = (-math.inf if v is None else -v for v in (a, b))
            if a > b:
                return False
        wide, rows = (self.points[at]["result"]["params"].get("weight_rows") or [] for at in (i, k))
        return len(wide) == len(rows) and all(
            one[side] is not None and reach(one, side) <= reach(other, side) if other[side] is not None else True
            for other, one in zip(wide, rows, strict=True)
            for side in ("lower", "upper")
        )

    def over_weights(self, k):
        """Rows over the weights as all points have them: without allowances, and without ends that move."""
        params = self.points[k]["result"]["params"]
        if params.get("weight_rows") is None:
            return params
        stated = self.document["params"].get("weight_rows")
        own = params["weight_rows"]
        need(isinstance(stated, list) and len(stated) == len(own), "the path has other rows over the weights")
        moved = [one.get("lower") is None and one.get("upper") is None for one in stated]
        is_parity = self.row is not None and self.row["side"] == "both"
        need(any(moved) == is_parity, "rows over the weights move, and the frontier is not theirs, or the reverse")
        found = []
        for one, moves in zip(own, moved, strict=True):
            ends = (one["lower"], one["upper"])
            value = self.points[k].get("end")
            need(not moves or alike(list(ends), [-value, value]), "a row of parity ends elsewhere")
            lower, upper = (None, None) if moves else ends
            found.append({"coefficients": one["coefficients"], "lower": lower, "upper": upper})
        return params | {"weight_rows": found}

    def check_alike(self, k, first):
        """Two points state one problem, but for the axes."""
        pair = [self.points[i]["result"] | {"params": self.over_weights(i)} for i in (k, first)]
        own, other = (statement_of(result, self.axes) for result in pair)
        for what in own:
            need(alike(own[what], other[what]), f"point {self.name(k)} has other {what}")
        params = self.points[k]["result"]["params"]
        for axis in self.axes:
            need(
                axis in ("rows", "end") or alike(params.get(axis), self.points[k][axis]),
                f"{axis} of point {self.name(k)} is another",
            )
        need(self.points[k]["result"].get("driver") == self.document["driver"], "a result is of another driver")
        if "end" in self.axes and self.row["side"] != "both":
            need(alike(self.rest_of_rows(k), self.rest_of_rows(first)), f"point {self.name(k)} has other rows")
        elif "end" in self.axes:
            both = (rows_in(self.points[i]["result"]) for i in (k, first))
            need(alike(*both), f"point {self.name(k)} has other rows")

    def rest_of_rows(self, k):
        """The rows of a point without the end that moves, which is the value of the point."""
        rows, name, side = self.points[k]["result"]["rows"], self.row["name"], self.row["side"]
        at = [r for r, row in enumerate(rows) if row.get("name") == name]
        need(len(at) == 1, f"not one row of point {self.name(k)} has the name of the frontier's")
        own = rows[at[0]]
        need(alike(own[side], self.points[k]["end"]), "the row of the frontier ends elsewhere")
        need(own["lb" if side == "ub" else "ub"] is None, "the row of the frontier has two ends")
        rest = rows_in(self.points[k]["result"])
        rest[at[0]][side] = None
        return rest

    def check_bought(self):
        """What a unit bought between each two neighbours, from the tightest to the loosest."""
        if self.row is None:
            return
        order = sorted(range(len(self.points)), key=lambda k: self.places[k], reverse=self.row["side"] == "lb")
        said = self.document["bought"]
        need(isinstance(said, list) and len(said) == len(order) - 1, "bought is not one between two neighbours")
        for one, (i, k) in zip(said, itertools.pairwise(order), strict=True):
            need(isinstance(one, dict) and set(one) == {"tight", "loose", "least", "most"}, "an entry of bought")
            tight, loose = (number(self.places[at][0], "end") for at in (i, k))
            need(
                number(one["tight"], "tight") == tight and number(one["loose"], "loose") == loose,
                "bought between other values",
            )
            for field, a, b, sign in (("least", k, i, -1), ("most", i, k, 1)):
                upper = number_or_none(self.points[a]["objective"], "objective")
                lower = number_or_none(self.points[b]["bound"], "bound")
                told = number_or_none(one[field], field)
                if upper is None or lower is None:
                    need(told is None, "something was bought between unknown values")
                    continue
                need(told is not None, "what was bought is not stated")
                found, room = (
                    sign * (upper - lower) / abs(loose - tight),
                    CLOSE * (abs(upper) + abs(lower)) / abs(loose - tight),
                )
                need(abs(told - found) <= room, "what a unit bought is another number")

    def check_between(self):
        """Sets at values of C between two points: allowed, of the stated value, and a bound below the chord."""
        said = self.document.get("between", [])
        need(isinstance(said, list) and (not said or "C" in self.axes), "between, of a path that is not along C")
        fields = {"selected", "weights", "intercept", "objective", "bound", "gap", *self.axes}
        for one in said:
            need(isinstance(one, dict) and set(one) == fields, "a set between two points has other fields")
            C, upper, lower = (number(one[key], f"{key} between two points") for key in ("C", "objective", "bound"))
            known = [
                (number(point["C"], "C"), number(point["bound"], "bound"), k)
                for k, point in enumerate(self.points)
                if None not in (point["bound"], point["objective"]) and point.get("M") == one.get("M")
            ]
            below, above = [end for end in known if end[0] <= C], [end for end in known if end[0] >= C]
            need(below and above, "a set that is not between two points")
            (a, left, k), (b, right, _) = max(below), min(above)
            need(lower <= upper, "the bound of a set between two points lies above its objective")
            need((lower - left) * (b - a) <= (right - left) * (C - a) and (a < b or lower <= left),
                 "the bound of a set between two points lies above the chord")  # fmt: skip
            need(gap_agrees(number_or_none(one["gap"], "gap"), upper, lower), "the gap between two points is another")
            self._check_set(one, self.points[k]["result"], k, upper)

    def _check_set(self, one, result, k, objective):
        """A set between two points, as an incumbent of the problem of point k at another C."""
        moved = result | {"params": result["params"] | {"C": one["C"]}}
        stated = Statement(moved, sidecar(self.members, k, result), self.source.data(result))
        need(not stated.extra and not stated.over, "a set between two points, under rows that say nothing of it")
        chosen, what = chosen_of(stated, one["selected"]), "a set between two points"
        need(stated.allows(chosen, []), "a set between two points is none of S")
        value = value_of(stated, one["weights"], one["intercept"], dict.fromkeys(chosen, 1), what, objective)
        need(near(value, objective), "the objective of a set between two points is another one")

    def check_point(self, k):
        """What stands beside a result: its summary, and a bound that may come from another point."""
        point, result = self.points[k], self.points[k]["result"]
        self.proven(k)
        if "end" in self.axes:
            self.over_weights(k) if self.row["side"] == "both" else self.rest_of_rows(k)
        file = self.document["certificate"]["file"]
        need(result["certificate"].get("file") == file, f"the certificate of point {self.name(k)} is another file")
        for key in ("objective", "selected"):
            need(alike(point[key], result[key]), f"{key} of point {self.name(k)} is not that of its result")
        need(point.get("stop_reason") == result.get("stop_reason"), f"stop_reason of point {self.name(k)} is another")
        counters = result.get("counters") or {}
        need(alike(point.get("subproblems", 0), counters.get("subproblems", 0)), "subproblems are others")
        upper, lower = (number_or_none(point[key], key) for key in ("objective", "bound"))
        self._check_bound(k, lower)
        is_closed = None not in (upper, lower) and closed(upper, lower, number(result["params"].get("gap"), "gap"))
        status = "OPTIMAL" if is_closed else result["status"]
        need(point["status"] == status, f"the status of point {self.name(k)} is {status}")
        need(
            None in (upper, lower) or lower <= upper + CLOSE * abs(upper),
            f"a bound above the objective: {self.name(k)}",
        )
        need(
            gap_agrees(number_or_none(point["gap"], "gap"), upper, lower), f"the gap of point {self.name(k)} is another"
        )

    def _check_bound(self, k, bound):
        if bound is None:
            return
        known = [i for i in range(len(self.points)) if i != k and self.is_below(i, k)]
        claimed = {i: number_or_none(self.points[i]["result"]["certificate"]["bound"], "bound") for i in known}
        for i in [k, *sorted((i for i in known if claimed[i] is not None), key=lambda i: -claimed[i])]:
            found = self.proven(i) if i == k or bound <= claimed[i] + CLOSE * abs(claimed[i]) else None
            if found is not None and bound <= found + CLOSE * abs(found):
                self.check_alike(i, k)
                self._check_rows(i, k)
                return
        raise Rejected(f"no point proves the bound of point {self.name(k)}")

    def _check_rows(self, i, k):
        """All rows of point i are rows of point k (which come to the same but along `rows`)."""
        if "rows" not in self.axes:
            return
        rest = rows_in(self.points[k]["result"])
        for row in rows_in(self.points[i]["result"]):
            need(row in rest, f"point {self.name(k)} lacks a row of point {self.name(i)}")
            rest.remove(row)

    def check_all(self):
        """The parameters of the path, its rows step by step, the errors, and what is chosen."""
        for k in range(len(self.points)):
            self.check_alike(k, 0)
            self.check_point(k)
        if "rows" in self.axes:
            order = sorted(range(len(self.points)), key=lambda k: self.places[k])
            need([self.places[k][0] for k in order] == list(range(len(order))), "a step of the rows is missing")
            for i, k in zip([None, *order], order, strict=False):
                if i is not None:
                    self._check_rows(i, k)
                before = 0 if i is None else len(self.points[i]["result"]["rows"])
                new = [row.get("name", "") for row in self.points[k]["result"]["rows"][before:]]
                said = ", ".join(new) if i is not None else ""
                need(self.points[k].get("added", "") == said, "`added` names other rows")
        params, shared = self.document["params"], self.over_weights(0)
        need("gap" not in params, "params of a path have a gap")
        for key in set(params) | set(shared) - {"gap"}:
            if key in self.axes:
                continue
            need(
                key in params and key in shared and alike(params[key], shared[key]),
                f"params.{key} is not that of the points",
            )
        lists = [params.get(axis) for axis in self.axes]
        need(all(isinstance(values, list) for values in lists), "params do not have the values of every axis")
        for axis, values in zip(self.axes, lists, strict=True):
            found = {number(v, f"params.{axis}") for v in values}
            need(len(found) == len(values), f"params.{axis} has a value twice")
        wanted = set(itertools.product(*lists))
        need(set(self.places) <= wanted, "a point is at a value that params do not have")
        need(self.document["interrupted"] or wanted == set(self.places), "a point is missing")
        self.check_bought()
        self.check_between()

    def check_errors(self):
        """Errors, what they come to, and what is chosen by them; returns what is said of them."""
        known = [point["errors"] for point in self.points]
        for point, errors in zip(self.points, known, strict=True):
            need(isinstance(errors, list) and len(errors) in (0, self.folds or 0), "errors are not one a fold")
            stated = [point[key] for key in ("error", "deviation", "standard_error")]
            if not errors:
                need(stated == [None] * 3, "a mean of errors without errors")
                continue
            values = [number(e, "an error") for e in errors]
            mean = sum(values) / len(values)
            square = sum((e - mean) ** 2 for e in values) / (len(values) - 1)
            found = [float(mean), math.sqrt(square), math.sqrt(square / len(values))]
            need(all(abs(number(a, "an error") - Fraction(b)) <= CLOSE for a, b in zip(stated, found, strict=True)),
                 "the errors have another mean or deviation")  # fmt: skip
        self._check_choice()
        if not any(known):
            return []
        if all("fold_classifiers" in point for point in self.points if point["errors"]):
            fold = self._fold()
            for k in range(len(self.points)):
                self._check_folds(k, fold)
            return ["the errors are those of the classifiers of the folds, which are not proven"]
        return ["the errors of the folds are unchecked: their classifiers do not stand in the document"]

    def _fold(self):
        """Fold by fold, where every sample is: 0 trained on, 1 tested on, 2 neither."""
        need("folds.npz" in self.members, "classifiers of folds, without the folds")
        found = unpacked(self.members["folds.npz"], {"fold.npy", "part.npy"}.__contains__, "folds.npz")
        need(len(found) == 1, "folds.npz has another array, or none")
        n = len(self.source.data(self.points[0]["result"]).y)
        if "part.npy" in found:
            array = read_npy(found["part.npy"], "part")
            need(array.stored == "i1" and array.shape == (self.folds, n), "the folds are not one byte a sample")
            part = [list(array.values[f * n : (f + 1) * n]) for f in range(self.folds)]
            need(all({0, 1} <= set(row) <= {0, 1, 2} for row in part), "a fold trains or tests on nothing, or on what")
            return part
        array = read_npy(found["fold.npy"], "fold")
        need(array.stored == "i4" and array.shape == (n,), "the folds are not one number of 32 bits a sample")
        need(set(array.values) == set(range(self.folds)), "a fold is empty, or a sample is in none")
        return [[int(one == f) for one in array.values] for f in range(self.folds)]

    def _check_folds(self, k, part):
        """The errors of a point, computed again from the classifiers of the folds."""
        point = self.points[k]
        given = point.get("fold_classifiers", [])
        need(isinstance(given, list) and len(given) == len(point["errors"]), "not one classifier a fold")
        data = self.source.data(point["result"])
        params, atoms = point["result"]["params"], point["result"].get("atoms") or {}
        if atoms.get("made"):
            raise Declined("errors of folds of functions or products of features, whose columns nobody states")
        for f, (one, said) in enumerate(zip(given, point["errors"], strict=True)):
            need(isinstance(one, dict) and set(one) == {"weights", "intercept"}, "a classifier of a fold")
            rows = [i for i, where in enumerate(part[f]) if where == 1]
            found = scores_of_fold(data, one, rows, {i for i, where in enumerate(part[f]) if where})
            least, most = self._lost(params, [int(data.y[i]) for i in rows], found)
            room = CLOSE * max(1, most)
            right = least - room <= number(said, "an error") <= most + room
            need(right, f"error {f} of point {self.name(k)} is another")

    def _lost(self, params, y, found):
        """The error of a fold, at least and at most."""
        if self.by is None:
            return lost(params, y, found) if params.get("loss") == "structural" else wrong_side(y, found)
        if self.by == "error":
            return wrong_side(y, found)
        if self.by == "log-loss":
            ends = ([-sign * total + s * room for (total, room), sign in zip(found, y, strict=True)] for s in (-1, 1))
            return tuple(sum(map(log_one_plus_exp, margins)) / len(y) for margins in ends)
        if self.by == "balanced-accuracy":
            need(len(set(y)) == 2, "the balanced accuracy of a fold of one class")
            sides = [wrong_side([sign] * y.count(sign), [one for one, own in zip(found, y, strict=True) if own == sign])
                     for sign in (1, -1)]  # fmt: skip
            return tuple(sum(ends) / 2 for ends in zip(*sides, strict=True))
        return lost({"measure": self.by, "bias": False}, y, found)

    def _check_choice(self):
        """What the errors choose."""
        document, rule = self.document, self.document.get("rule", "least-error")
        need(rule in ("least-error", "one-se"), "an unknown rule")
        order = [k for k, point in enumerate(self.points) if point["errors"] and point["objective"] is not None]
        order.sort(key=lambda k: [simplicity(axis, v) for axis, v in zip(self.axes, self.places[k], strict=True)])
        least = one = None
        if order and not document["interrupted"]:
            errors = {k: round(self.points[k]["error"], 12) for k in order}
            least = min(order, key=errors.__getitem__)
            limit = round(self.points[least]["error"] + self.points[least]["standard_error"], 12)
            one = None if "rows" in self.axes else next(k for k in order if errors[k] <= limit)
        said = {"least_error": least, "one_se": one, "chosen": one if rule == "one-se" else least}
        for key, k in said.items():
            if key in document or (rule == "one-se" and k is not None):
                need(alike(document.get(key), self.choice(k)), f"{key} is not what the errors say")

    def choice(self, k):
        """A point as the document names it: null, a number, or a mapping by axis."""
        if k is None:
            return None
        return self.places[k][0] if len(self.axes) == 1 else dict(zip(self.axes, self.places[k], strict=True))


def reach(row, side):
    """How far a row over the weights reaches on a side, with its allowance."""
    return abs(number(row[side], "an end")) + number(row["allowance"], "an allowance")


def simplicity(axis, value):
    """A number that is smaller for the simpler of two values of an axis."""
    value = math.inf if value is None else value
    return -value if axis == "lambda" else value


def rows_in(result):
    """The rows of a result without what is history."""
    need(isinstance(result.get("rows"), list) and all(isinstance(row, dict) for row in result["rows"]), "rows are none")
    return [{key: row.get(key) for key in ("terms", "lb", "ub")} for row in result["rows"]]


def statement_of(result, axes):
    """What all points of a path agree in."""
    read, atoms = reading_of(result), dict(result.get("atoms") or {})
    made = dict(atoms.get("made") or {})
    listed = made.get("kind") == "monomials"  # which products are listed depends on the point
    if listed:
        atoms.pop("names", None)
    atoms["made"] = {key: value for key, value in made.items() if key not in ("features", "parts")}
    extra = result.get("extra") or {}
    return {
        "data": result.get("data_sha256"),
        "labels": result.get("labels"),
        "n_features": result.get("n_features"),
        "reading": {key: value for key, value in read.items() if key != "words"},
        "scaling": result["scaling"].get("kind"),
        "atoms": atoms,
        "parameters": {key: value for key, value in result["params"].items() if key not in axes},
        "rows": None if listed or "rows" in axes or "end" in axes else rows_in(result),
        "variables": {name: {key: v for key, v in one.items() if key != "value"} for name, one in extra.items()},
    }


def scores_of_fold(data, classifier, rows, without):
    """What a classifier of a fold says of its rows, and how far rounding of doubles may be from that.

    `without`: the rows that say nothing of missing values.
    """
    columns = dict(zip(data.names, data.columns, strict=True))
    if data.reading is not None:
        columns |= data.reading.refilled(without)
    need(isinstance(classifier["weights"], dict) and set(classifier["weights"]) <= set(columns), "weights of a fold")
    weights = [(columns[name], number(w, "a weight")) for name, w in classifier["weights"].items()]
    b, found = number(classifier["intercept"], "an intercept"), []
    for i in rows:
        terms = [b, *(w * Fraction(column[i]) for column, w in weights)]
        found.append((sum(terms), (len(terms) + 2) * sum(map(abs, terms)) / 2**52))
    return found


def wrong_side(y, found):
    """The share of rows on the wrong side, at least and at most: a score may round to 0."""
    least = most = 0
    for (total, room), sign in zip(found, y, strict=True):
        wrong = (total > 0) != (sign > 0)
        least += wrong and abs(total) > room
        most += wrong or abs(total) <= room
    return Fraction(least, len(y)), Fraction(most, len(y))


def lost(params, y, found):
    """Δ of a measure of the scores of a fold, at least and at most: scores that are equal may stand in any order."""
    if params.get("measure") != "error" and (len(set(y)) < 2 or (params.get("k") or 0) > len(y)):
        raise Declined("a measure of a fold without positive or negative samples, or of fewer than k")
    measure = Measure(Fold(y, params.get("bias")), params)
    ends = []
    for sign in (1, -1):  # every score as good as it can be, then as bad
        ends.append([total + sign * v * room for (total, room), v in zip(found, y, strict=True)])
    return tuple(measure.of_scores(scores, good) for scores, good in zip(ends, (True, False), strict=True))


class Fold:
    """The rows of a fold, as a measure takes a statement."""

    def __init__(self, y, bias):
        self.y, self.bias, self.bounds, self.single, self.far = y, bias, {}, True, False
        self.data = Data([], [], y)


def judge_path(document, content, source, place):
    """The lines of the verdict on a path, or on one of its points."""
    course = Course(document, content, source)
    if place:
        k = course.find(place)
        course.check_alike(k, k)
        course.check_point(k)
        checked, notes = [k], []
    else:
        course.check_all()
        checked, notes = range(len(course.points)), course.check_errors()
    lines = [f"accepted: {len(checked)} of {len(course.points)} points of a path along {document['axis']}"]
    for k in checked:
        point = course.points[k]
        values = (None if point[key] is None else float(point[key]) for key in ("objective", "bound", "gap"))
        lines.append(f"{course.name(k)}: {summary(point['status'], *values)}")
    return lines + course.kept[checked[0]][1][4] + notes


CLASSES_NEEDED = names_in(
    "schema kind shared_support bias classes status objective bound gap selected results together certificate"
)
CLASSES_FIELDS = CLASSES_NEEDED | {"command", "class_weight", "archive"}
WORST = ("NUMERICAL", "NO_SOLUTION", "INFEASIBLE", "RELAXED", "FEASIBLE", "OPTIMAL")


class Classes:
    """A document of several classes: section of this name."""

    def __init__(self, document, content, source):
        self.document, self.source = document, source
        need(set(document) >= CLASSES_NEEDED, "a field of the document is missing")
        need(set(document) <= CLASSES_FIELDS, f"unknown fields {sorted(set(document) - CLASSES_FIELDS)}")
        need(document["kind"] == "one-vs-rest", "an unknown kind")
        need(isinstance(document["shared_support"], bool) and isinstance(document["bias"], bool), "no yes or no")
        self.names, self.results, self.together = (document[key] for key in ("classes", "results", "together"))
        need(isinstance(self.results, list) and self.results, "there are no results")
        need(all(isinstance(one, dict) for one in self.results), "a result is no mapping")
        self.shared = document["shared_support"]
        need(
            isinstance(self.together, dict) if self.shared else self.together is None, "`together` of a shared support"
        )
        self.proofs = [self.together] if self.shared else self.results
        self.bias, first = document["bias"], self.results[0]
        self.said_by_rules = 2 if all(rules_of(one) > 1 for one in self.results) else 1
        if self.said_by_rules == 1 and isinstance(first.get("params"), dict):
            self.bias = first["params"].get("bias")
            need(self.bias is document["bias"] or document["bias"], "a bias in place of none")
        self.members = members_of(content, len(self.proofs))
        known = [one["certificate"] for one in self.proofs if one.get("certificate") is not None]
        need(known and document["certificate"] == known[0], "the certificate is not that of the first proof")
        self._classes()
        for k, one in enumerate(self.results):
            check_schema(one)
            labels = {"negative": f"not {self.names[k]}", "positive": self.names[k]}
            need(alike(one.get("labels"), labels), f"the labels of class {self.names[k]!r} are others")
            need(isinstance(one.get("params"), dict), "a result has no params")
            said = self.bias is one["params"].get("bias")
            need(said, f"class {self.names[k]!r} has another bias")

    def _classes(self):
        """The classes are the labels of the data, in order; their weights."""
        labels, by_class = sorted(set(self.source.labels(self.results[0]))), self.document.get("class_weight") or {}
        need(isinstance(self.names, list) and len(self.names) == len(labels) == len(self.results) >= 3,
             "the classes are not those of the data, or not one a result")  # fmt: skip
        for label, name in zip(labels, self.names, strict=True):
            need(alike(label, name), "the classes are others")
        self.labels, texts = labels, [str(name) for name in self.names]
        need(
            isinstance(by_class, dict) and (not by_class or set(by_class) == set(texts)), "class_weight: other classes"
        )
        need(all(number(v, "a class weight") > 0 for v in by_class.values()), "a class weight is not above 0")
        self.weight = {label: float(by_class.get(text, 1.0)) for label, text in zip(labels, texts, strict=True)}

    def data(self, k):
        """The data of the k-th class."""
        made = self.source.data(self.results[k], of=self.labels[k])
        labels = self.source.labels(self.results[k])
        made.weights = [w * self.weight[label] for w, label in zip(made.weights, labels, strict=True)]
        return made

    def place(self, text):
        """The position of a class by its label."""
        found = [k for k, name in enumerate(self.names) if str(name) == text]
        need(found, f"there is no class {text}")
        return found[0]

    def check_proofs(self, wanted):
        """Check the proofs of the classes at these positions, or the one of a shared support; what each comes to."""
        if self.shared:
            arrays = sidecar(self.members, 0, self.together)
            stack, scaling = self.stack(arrays)
            self._check_atoms(stack)
            found = [check(self.together, arrays, stack)]
            for k in wanted:
                self._check_entry(k, scaling)
            return found
        found = []
        for k in wanted:
            try:
                found.append(check(self.results[k], sidecar(self.members, k, self.results[k]), self.data(k)))
            except Rejected as error:
                raise Rejected(f"class {self.names[k]!r}: {error}") from None
        return found

    def stack(self, arrays):
        """The data of all classes, one block after the other, and the scaling of its columns (shift, scale)."""
        kind = self.results[0]["scaling"].get("kind")
        need(all(one["scaling"].get("kind") == kind for one in self.results), "the classes are scaled in two ways")
        if any("center" in one["scaling"] for one in self.results):
            raise Declined("a shared support of sparse data that is centred")
        blocks, first = [self.data(k) for k in range(len(self.names))], self.results[0]["scaling"]
        need(all(one.names == blocks[0].names for one in blocks), "the classes are read in two ways")
        stated = {}
        for name in first.get("shift", {}):
            stated[name] = (*(float(number(first[key][name], key)) for key in ("shift", "scale")), 0.0)
        columns, _, scaling = scaled_raw(blocks[0], kind, stated, arrays, rules_of(self.results[0]))
        made = self._stacked(blocks, columns)
        if made.sha256() != self.together.get("data_sha256"):
            if kind != "none" and "column_shift" not in arrays:
                raise Declined("a shared support of scaled data: the scaling of its columns does not stand in it")
            raise Rejected("the data is other data (data_sha256 of the stack)")
        return made, scaling

    def _stacked(self, blocks, scaled):
        n, names, columns = len(blocks[0].y), [], []
        for feature, column in zip(blocks[0].names, scaled, strict=True):
            names += [f"{feature}|{name}" for name in self.names]
            columns += [[0.0] * (n * k) + column + [0.0] * (n * (len(blocks) - k - 1)) for k in range(len(blocks))]
        if self.bias:
            names += [f"(intercept)|{name}" for name in self.names]
            columns += [[float(i // n == k) for i in range(n * len(blocks))] for k in range(len(blocks))]
        y, weights = [v for one in blocks for v in one.y], [v for one in blocks for v in one.weights]
        return Data(names, columns, y, weights, labels={"negative": "the rest", "positive": "its class"})

    def _check_atoms(self, stack):
        """The atoms of `together` are the features with their columns, and the intercept is always selected."""
        together, K = self.together, len(self.names)
        check_schema(together)
        names = [name.rpartition(f"|{self.names[0]}")[0] for name in stack.names[::K]]
        columns = [stack.names[i : i + K] for i in range(0, len(stack.names), K)]
        atoms, params = together.get("atoms"), together["params"]
        need(isinstance(atoms, dict) and atoms.get("names") == names, "the atoms of `together` are not the features")
        need(atoms.get("columns") == columns and not atoms.get("made"), "an atom has other columns than its feature")
        need(atoms.get("scale") in (None, [1.0] * len(names)), "an atom of `together` has a scale")
        need(
            params.get("bias") is False and together["scaling"].get("kind") == "none",
            "`together` has a bias or scaling",
        )
        forced = "(intercept)" in params.get("forced_in", [])
        need(forced or not self.bias, "(intercept) is not in forced_in of `together`")
        bounds = params.get("weight_bounds") or {}
        need(not self.bias or not any(f"(intercept)|{one}" in bounds for one in self.names), "bounds of an intercept")

    def _check_entry(self, k, scaling):
        """The classifier of a class, which follows from the shared support."""
        one, together, name = self.results[k], self.together, self.names[k]
        what = f"class {name!r}"
        need(one.get("certificate") is None and one.get("bound") is None and one.get("gap") is None, f"{what}: a proof")
        need(
            one.get("status") == "FEASIBLE" and one.get("rows") == [] and not one.get("extra"),
            f"{what}: a status, or rows",
        )
        need(not (one.get("relaxed") or one.get("near_optimal") or one.get("atoms")), f"{what}: more than a classifier")
        need(one.get("decided") is None, f"{what}: what is decided of features, without a proof")
        need(one.get("rules") == together.get("rules"), f"{what}: another version of the rules than the proof has")
        selected = [s for s in together["selected"] if s != "(intercept)"]
        need(one["selected"] == selected, f"{what}: another selection than the shared one")
        data, weights = self.data(k), {}
        intercept = float(together["weights"].get(f"(intercept)|{name}", 0.0))
        for feature, (shift, scale) in zip(data.names, scaling, strict=True):
            w = together["weights"].get(f"{feature}|{name}", 0.0) / scale
            if w != 0:
                weights[feature] = w
                intercept -= w * shift
        need(one["weights"] == weights and one["intercept"] == intercept, f"{what}: the classifier is another one")
        params = {key: value for key, value in together["params"].items() if key not in ("M", "forced_in", "bias")}
        params |= {"M": len(selected), "forced_in": selected, "bias": self.bias}
        if params.pop("weight_bounds", None):  # those of the stack, by column, divided by the scale of the feature
            ends = ((feature, together["params"]["weight_bounds"].get(f"{feature}|{name}")) for feature in data.names)
            of = {feature: pair[1] for feature, pair in zip(data.names, scaling, strict=True)}
            own = {one: [None if v is None else v / of[one] for v in pair] for one, pair in ends if pair is not None}
            params |= {"weight_bounds": own} if own else {}
        own = {"forced_in": []} | one["params"]
        need(set(own) == set(params) and all(alike(own[key], params[key]) for key in params if key != "forced_in"),
             f"{what}: other params")  # fmt: skip
        need(sorted(own["forced_in"]) == sorted(selected), f"{what}: other features are forced in")
        need(one["data_sha256"] == data.sha256(), f"{what}: the data is other data (data_sha256)")
        p, arrays = len(data.names), {}
        for i, key in enumerate(("column_shift", "column_scale")):
            arrays[key] = Array([pair[i].hex().encode() for pair in scaling], (p,), "S")
        stated = Statement(one | {"certificate": {}}, arrays, data)
        check_classifier(stated)

    def check_summary(self):
        """Status, objective, bound, gap and selection of the whole."""
        document, proofs = self.document, self.proofs
        need(document["status"] == min((one["status"] for one in proofs), key=WORST.index), "the status is another")
        for key in ("objective", "bound"):
            values = [number_or_none(one[key], key) for one in proofs]
            total = None if None in values else sum(values)
            said = number_or_none(document[key], key)
            need((said is None) == (total is None) and (total is None or near(total, said)), f"the {key} is no sum")
        upper, lower = (number_or_none(document[key], key) for key in ("objective", "bound"))
        need(gap_agrees(number_or_none(document["gap"], "gap"), upper, lower), "the gap is another")
        names = dict.fromkeys(s for one in proofs for s in one["selected"] if not (self.shared and s == "(intercept)"))
        need(document["selected"] == list(names), "the selected features are not those of the classes")


def judge_classes(document, content, source, label):
    """The lines of the verdict on several classes, or on one of them."""
    several = Classes(document, content, source)
    wanted = [several.place(label)] if label else range(len(several.names))
    found = several.check_proofs(wanted)
    first = several.results[0]
    notes = reading_notes(rules_of(first), several.data(0), ", ".join(repr(name) for name in several.names))
    notes += dict.fromkeys(note for one in found for note in one[4] if ".toml" in note)
    notes += ["`bias` of the document is unchecked: it is not compared under rules 1"] * (several.said_by_rules == 1)
    if label:
        one = several.results[wanted[0]]
        values = (None if one[key] is None else float(one[key]) for key in ("objective", "bound", "gap"))
        return [f"accepted: class {several.names[wanted[0]]}, {summary(one['status'], *values)}", *notes]
    several.check_summary()
    values = (None if document[key] is None else float(document[key]) for key in ("objective", "bound", "gap"))
    kind = "with a shared support" if several.shared else "one against the rest"
    lines = [f"accepted: {len(several.names)} classes, {kind}, {summary(document['status'], *values)}"]
    for k, one in enumerate(several.results):
        values = (None if one[key] is None else float(one[key]) for key in ("objective", "bound", "gap"))
        lines.append(f"class {several.names[k]}: {summary(one['status'], *values)}")
    return [*lines, *notes]


# --- A scorecard: section of this name, and the rule on the page of scorecards --------------------------------

CARD_FIELDS = names_in(
    "schema kind status stop_reason objective bound gap unrounded asked most_points scale intercept card totals error "
    "roc_auc labels result data_sha256 nodes seconds"
)
CARD_OF_2 = names_in("version bins sha256")
JOINT_ARRAYS = {
    f"joint_{name}"
    for name in names_in("split value children leaf dual_q dual_start dual_bytes dual_level dual_width dual_top")
}
LINE_FIELDS = names_in("feature kind origin unit threshold points")
TOTALS_FIELDS = names_in("from to samples positives decision")


def exponent(v):
    """⌊log₁₀|v|⌋, and 0 for v = 0."""
    if v == 0:
        return 0
    exact = abs(Fraction(v))
    e = math.floor(math.log10(abs(v)))
    while Fraction(10) ** e > exact:
        e -= 1
    while Fraction(10) ** (e + 1) <= exact:
        e += 1
    return e


def to_decimals(v, P):
    """A double to P decimals, in doubles: step 1 of the rule, for a given P."""
    if abs(P) > 300:
        raise Declined("a number that is too small or large to be rounded by the rule of scorecards")
    power = float(10 ** abs(P))
    return round(v * power) / power if P >= 0 else round(v / power) * power


def to_12_digits(v):
    """v₁₂."""
    return to_decimals(v, 11 - exponent(v))


class ScoreLine:
    """A column of a card: how it counts a row, its points, and s²."""

    def __init__(self, feature, kind, origin, unit, threshold, s2):
        self.feature, self.kind, self.origin, self.unit = feature, kind, origin, unit
        self.threshold, self.s2, self.points = threshold, s2, 0

    def counts(self, raw, cut):
        """x of every row, of the values of the feature and these to 12 digits: step 2."""
        if self.kind == "threshold":
            return [float(v >= self.threshold) for v in cut]
        return [(v - self.origin) / self.unit for v in (cut if self.kind == "two values" else raw)]

    def states(self, said):
        """Whether an entry of the document is this line."""
        need(isinstance(said, dict) and set(said) == LINE_FIELDS, "a line of the card has other fields")
        need(said["feature"] == self.feature, f"a line of the card is about {said['feature']!r}, not {self.feature!r}")
        need(said["kind"] == self.kind, f"a line about {self.feature!r} is of another kind than {self.kind!r}")
        for key, own in (("origin", self.origin), ("unit", self.unit), ("threshold", self.threshold)):
            value = number_or_none(said[key], f"{key} of {self.feature!r}")
            need(value == own, f"{key} of {self.feature!r} is not {own}")
        need(type(said["points"]) is int, f"the points of {self.feature!r} are not whole")


class Card:
    """A scorecard over the statement of the result inside it: everything that does not need its search."""

    def __init__(self, document, stated):
        self.document, self.stated, self.data = document, stated, stated.data
        self.version, self.result = document.get("version", 1), document["result"]
        self.most = whole(document["most_points"], "most_points", 1)
        need(self.most <= 1000, "most_points is above 1000")
        bins = whole(document.get("bins", 0), "bins")
        need(bins == 0 or 2 <= bins <= 1000, "bins is neither 0 nor from 2 to 1000")
        self.scale, self.intercept = (number(document[key], key) for key in ("scale", "intercept"))
        need(self.scale > 0, "the scale of the card is not above 0")
        self.raw, self.cut = {}, {}
        for name in self.result["weights"]:
            self._take(name)
        given = document["card"]
        need(isinstance(given, list) and given and all(isinstance(one, dict) for one in given), "the card has no lines")
        self.lines = [line for name in self.raw for line in self._lines(name, bins, given)]
        need(len(given) == len(self.lines), f"the card has {len(given)} lines in place of {len(self.lines)}")
        for line, said in zip(self.lines, given, strict=True):
            line.states(said)
            line.points = said["points"]
        if self.version == 1:
            cut = {line.feature for line in self.lines if line.kind == "threshold"}
            many = {name for name, values in self.cut.items() if len(set(values)) > 2}
            need(not cut or cut == many, "some features of more than two values are cut, and some are not")
        self._check_points()
        self._score()

    def _take(self, name):
        """The values of a feature, and these to 12 digits."""
        self.raw[name] = self.data.columns[self.stated.place[name]]
        self.cut[name] = [to_12_digits(v) for v in self.raw[name]]

    def due(self, name):
        """The lines of any feature, on a card of version 2."""
        if name not in self.cut:
            self._take(name)
        return self._lines(name, self.document["bins"], [])

    def _lines(self, name, bins, given):
        """The lines that are due for a feature."""
        j = self.stated.place[name]
        shift, scale = float(self.stated.shift[j]), float(self.stated.scale[j])
        values = sorted(set(self.cut[name]))
        if len(values) == 2:
            unit = values[1] - values[0]
            return [ScoreLine(name, "two values", values[0], unit, None, (Fraction(scale) / Fraction(unit)) ** 2)]
        said = [one.get("threshold") for one in given if one.get("feature") == name and one.get("kind") == "threshold"]
        if self.version == 1 and said and len(values) > 1:
            thresholds = [float(number(t, f"a threshold of {name!r}")) for t in said]
            need(thresholds == sorted(set(thresholds)), f"the thresholds of {name!r} do not ascend")
            inside = values[0] < thresholds[0] and thresholds[-1] <= values[-1]
            need(inside, f"a threshold of {name!r} lies beyond the values")
        elif self.version > 1 and bins and len(values) > 1:
            thresholds = thresholds_due(self.cut[name], values, bins)
        else:
            unit, origin = scale, shift
            if self.version > 1:  # to six digits, and to as many decimals as these
                unit = float(f"{scale:.5e}")
                origin = float(round(Fraction(shift), 5 - exponent(unit)))
            s = 1 if self.version == 1 else Fraction(scale) / Fraction(unit)
            return [ScoreLine(name, "scaled", origin, unit, None, s**2)]
        found = []
        for t in thresholds:
            q = Fraction(sum(v >= t for v in self.cut[name]), len(self.data.y))
            found.append(ScoreLine(name, "threshold", 0.0, 1.0, t, q * (1 - q) if scale != 1 else 1))
        return found

    def _check_points(self):
        for line in self.lines:
            need(abs(line.points) <= self.most, f"the points of {line.feature!r} are more than {self.most}")
            need(not self.stated.over, "points keep no rows over the weights")
            need(not self.stated.excluding, "points keep no bounds that exclude 0")
            low, high = self.stated.bounds.get(self.stated.place[line.feature], (None, None))
            need(low != 0 or line.points >= 0, f"{line.feature!r} has points below 0, which its weight may not be")
            need(high != 0 or line.points <= 0, f"{line.feature!r} has points above 0, which its weight may not be")

    def _score(self):
        """By the rule, in doubles: S, A, T, the totals, and which rows are positive; and the exact sums."""
        n = len(self.data.y)
        S, A, self.sums = [0.0] * n, [0.0] * n, [Fraction(0)] * n
        for line in self.lines:
            for i, x in enumerate(line.counts(self.raw[line.feature], self.cut[line.feature])):
                term = line.points * x
                S[i] += term
                A[i] += abs(term)
                self.sums[i] += line.points * Fraction(x)
        need(all(map(math.isfinite, A)), "a total is not finite")
        self.T, self.S = -float(self.intercept) / float(self.scale), S
        need(math.isfinite(self.T), "-intercept/scale is not finite")
        if self.version == 1:
            self.totals = [round(s, 9) for s in S]
            self.room = Fraction(1, 10**9) + Fraction(max(A)) / 10**12
        else:
            self.totals = [to_decimals(s, 12 - exponent(a + abs(self.T))) for s, a in zip(S, A, strict=True)]
            self.room = Fraction(max(A) + abs(self.T)) / 10**12
        self.positive = [t > self.T for t in self.totals]

    def check_objective(self):
        """The objective, the intercept where the result has none, gap and status; returns the objective."""
        document, stated, a, b = self.document, self.stated, self.scale, self.intercept
        own = [line for line in self.lines if line.kind != "threshold"]
        if not stated.bias:
            shift = self.result["scaling"]["shift"]
            terms = [line.points * (Fraction(shift[line.feature]) - Fraction(line.origin)) / Fraction(line.unit)
                     for line in own]  # fmt: skip
            need(abs(b + a * sum(terms)) <= CLOSE * a * sum(map(abs, terms)), "the intercept is not what none comes to")
        value = sum(line.s2 * (a * line.points) ** 2 for line in self.lines) / 2
        margins = [sign * (a * t + b) for sign, t in zip(stated.y, self.sums, strict=True)]
        value += loss_of(stated, margins, 1)
        said, bound, told, asked = (number(document[key], key) for key in ("objective", "bound", "gap", "asked"))
        need(near(value, said), "the objective of the card is another one")
        need(bound <= said, "the bound of the card is above its objective")
        need(0 <= asked < 1, "asked is not from 0 to below 1")
        need(said != 0 or bound == 0, "a gap that is infinite")
        gap = (said - bound) / abs(said) if said != bound else Fraction(0)
        need(abs(told - gap) <= CLOSE * (1 + gap), "the gap of the card is another one")
        status = document["status"]
        need(status in ("OPTIMAL", "FEASIBLE"), "a card is OPTIMAL or FEASIBLE")
        at_edge = abs(gap - asked) <= CLOSE * (1 + gap)
        need(at_edge or (status == "OPTIMAL") == (gap <= asked), "the status of the card is another one")
        return float(value)

    def check_odds(self):
        """How totals are scores of odds, if that is stated."""
        if "odds" not in self.document:
            return
        said, params = self.document["odds"], self.result["params"]
        need(
            isinstance(said, dict) and set(said) == names_in("score odds double origin per_point"), "odds is malformed"
        )
        told = {key: float(number(value, f"odds.{key}")) for key, value in said.items()}
        need(params["loss"] == "logistic" and told["odds"] > 0 and told["double"] != 0, "odds of a card that has none")
        weights, names = (
            params.get("class_weight") or {},
            [str(self.document["labels"][k]) for k in ("positive", "negative")],
        )
        up, down = (float(number(weights.get(name, 1), "a class weight")) for name in names)
        per_nat = told["double"] / math.log(2)
        parts = [told["score"], per_nat * float(self.intercept), per_nat * math.log(down / up),
                 -per_nat * math.log(told["odds"])]  # fmt: skip
        need(abs(told["origin"] - sum(parts)) <= CLOSE * sum(map(abs, parts)), "the origin of the odds is another one")
        each = per_nat * float(self.scale)
        need(abs(told["per_point"] - each) <= CLOSE * abs(each), "what a point is worth in odds is another number")

    def check_totals(self):
        """The ranges of totals, the error and the area."""
        given, y = self.document["totals"], self.stated.y
        known = {}
        for t, sign, positive in zip(self.totals, y, self.positive, strict=True):
            samples, above, _ = known.get(t, (0, 0, positive))
            known[t] = samples + 1, above + (sign > 0), positive
        ranges = []
        for part in parted(sorted(known), min(16, len(known))):
            for side in (False, True):
                own = [t for t in part if known[t][2] is side]
                ranges += [(own, side)] if own else []
        need(isinstance(given, list) and len(given) == len(ranges), f"the totals are not in {len(ranges)} ranges")
        for said, (own, side) in zip(given, ranges, strict=True):
            need(isinstance(said, dict) and set(said) == TOTALS_FIELDS, "a range of totals has other fields")
            for key, end in (("from", own[0]), ("to", own[-1])):
                need(abs(number(said[key], key) - Fraction(end)) <= self.room, f"a range of totals is {key} {end}")
            counts = {"samples": sum(known[t][0] for t in own), "positives": sum(known[t][1] for t in own)}
            for key, k in counts.items():
                need(type(said[key]) is int and said[key] == k, f"{key} of the totals from {own[0]} are {k}")
            name = self.document["labels"]["positive" if side else "negative"]
            need(type(said["decision"]) is type(name) and said["decision"] == name, f"a total of {own[0]} is {name!r}")
        wrong = sum((sign > 0) != positive for sign, positive in zip(y, self.positive, strict=True))
        need(abs(number(self.document["error"], "error") - Fraction(wrong, len(y))) <= CLOSE, "the error is another")
        area = area_of(self.S if self.version == 1 else self.totals, y)
        said = number_or_none(self.document["roc_auc"], "roc_auc")
        need((said is None) == (area is None), "an area where a class is missing, or none where both are there")
        need(area is None or abs(said - area) <= CLOSE, "the area is another one")


OPEN, OUT, IN = -1, 0, 1
"""States of a candidate."""


class Together:
    """The proof of a card whose bound is about all of at most M features: section "Features and points together"."""

    def __init__(self, card, arrays):
        said, stated, self.card, self.stated = card.document["joint"], card.stated, card, card.stated
        fields = isinstance(said, dict) and set(said) - {"within"} == {"M", "out"}
        need(fields, "joint has other fields than M, out and within")
        out = said["out"]
        need(isinstance(out, list) and all(isinstance(name, str) for name in out), "joint.out is no list of names")
        need(len(set(out)) == len(out) and set(out) <= set(card.data.names), "joint.out names a feature twice, or none")
        need(not stated.far, "features and points together, of far columns")
        used = {line.feature for line in card.lines if line.points}
        need(len(used) <= whole(said["M"], "joint.M", 1), "the card gives points to more than M features")
        need(not used & set(out), "the card gives points to a feature that is left out")
        names = [name for name in card.data.names if name not in set(out)]
        self.F, self.M = len(names), min(said["M"], len(names))
        self.rows = self._rows(said["within"], names) if "within" in said else None
        chosen = [IN if name in used else OUT for name in names]
        need(self.rows is None or self._may(chosen), "the card does not keep the rows of joint.within")
        self.lines = [(f, line) for f, name in enumerate(names) for line in card.due(name)]
        self.of = [[j for j, (owner, _) in enumerate(self.lines) if owner == f] for f in range(self.F)]
        self.root = [self._ends(line.feature) for _, line in self.lines]
        self.columns = [self._column(line) for _, line in self.lines]
        need(set(arrays) == JOINT_ARRAYS, "the arrays of the card's proof are not all there")
        arrays = {name.removeprefix("joint_"): array for name, array in arrays.items()}
        self.split, self.value, self.leaf = (array_of(arrays, name, "i") for name in ("split", "value", "leaf"))
        pairs = arrays["children"]
        need(pairs.kind == "i" and pairs.shape == (len(self.split), 2), "joint_children has another shape or type")
        self.children = pairs.values
        self.duals = Duals(arrays, stated)
        work = self.duals.count * len(stated.y) * len(self.lines)
        if work > MOST_PRODUCTS:
            raise Declined(f"too large: {work} products for the card's proof")
        self.known = {}

    def _rows(self, said, names):
        """K, T and the parts of joint.within, by positions of candidates."""
        need(isinstance(said, dict) and set(said) == {"columns", "each", "parts"}, "joint.within has other fields")
        K, T = (None if said[name] is None else whole(said[name], name, 1) for name in ("columns", "each"))
        parts, met = [], set()
        need(isinstance(said["parts"], list), "joint.within.parts is no list")
        for part in said["parts"]:
            need(isinstance(part, list) and len(part) == 2, "a part of joint.within is no pair")
            for half in part:
                need(isinstance(half, list), "a part of joint.within has no lists")
                for name in half:
                    need(isinstance(name, str) and name in names and name not in met, "joint.within names another one")
                    met.add(name)
            parts.append(tuple([names.index(name) for name in half] for half in part))
        free = [f for f, name in enumerate(names) if name not in met]
        return len(parts) if K is None else K, self.F if T is None else T, parts, free

    def _may(self, state):
        """Whether a card is left, by the number of candidates that are in and the rows."""
        if state.count(IN) > self.M or self.rows is None:
            return state.count(IN) <= self.M
        K, T, parts, _ = self.rows
        few = all(sum(state[f] == IN for f in steps) <= T for steps, _ in parts)
        return few and sum(any(state[f] == IN for half in part for f in half) for part in parts) <= K

    def _without(self, state):
        """The states where every open candidate that may not come in is out: it is tried alone."""
        more = [f for f in range(self.F) if state[f] == OPEN and not self._may([*state[:f], IN, *state[f + 1 :]])]
        return [OUT if f in more else one for f, one in enumerate(state)] if more else state

    def _most(self, sums, state):
        """The largest sum over open candidates: the R largest, and by the rows, of which the smaller one."""

        def top(values, count):
            return sum(sorted(values, reverse=True)[: max(count, 0)])

        found = top([sums[f] for f in range(self.F) if state[f] == OPEN], self.M - state.count(IN))
        if self.rows is None:
            return found
        K, T, parts, free = self.rows
        total, others = sum(sums[f] for f in free if state[f] == OPEN), []
        for steps, rest in parts:
            value = top([sums[f] for f in steps if state[f] == OPEN], T - sum(state[f] == IN for f in steps))
            value += sum(sums[f] for f in rest if state[f] == OPEN)
            if any(state[f] == IN for f in (*steps, *rest)):
                total += value
            else:
                others.append(value)
        return min(found, total + top(others, K - (len(parts) - len(others))))

    def _ends(self, name):
        """The ends of the points of a feature."""
        K = self.card.most
        low, high = self.stated.bounds.get(self.stated.place[name], (None, None))
        return (0 if low is not None and low >= 0 else -K), (0 if high is not None and high <= 0 else K)

    def _column(self, line):
        """x_ij less (shift − origin)/unit, which is (v − shift)/unit: whole numbers, their exponent, and the unit."""
        name, unit = line.feature, Fraction(1)
        if line.kind == "threshold":
            values = [Fraction(v >= line.threshold) for v in self.card.cut[name]]
        else:
            held = self.card.cut if line.kind == "two values" else self.card.raw
            shift, unit = self.stated.shift[self.stated.place[name]], Fraction(line.unit)
            values = [Fraction(v) - shift for v in held[name]]
        entries, e = as_integers(values)
        return entries, e, unit

    def vector(self, d):
        """g, q of all columns, and Σ (q/s)² of every candidate, of dual vector d, found feasible."""
        if d not in self.known:
            need(0 <= d < self.duals.count, "a dual vector that is not there")
            whole, q = self.duals.decoded(d)
            k = whole[: len(self.stated.y)]
            unit = Fraction(2) ** -q
            self.duals._check(k, q)
            signed = [v * s for v, s in zip(k, self.stated.y, strict=True)]
            own = []
            for entries, e, size in self.columns:
                total = sum(signed[i] * x for i, x in entries)
                own.append(Fraction(total) / Fraction(2) ** e * unit / size)
            sums = [sum(self._square(j, own[j]) for j in part) for part in self.of]
            self.known[d] = self.duals._g(k, q, unit), own, sums
        return self.known[d]

    def _square(self, j, q):
        """(q_j/s_j)², or 0 where no weight has that sign."""
        low, high = self.root[j]
        return q * q / self.lines[j][1].s2 if (q > 0 and high > 0) or (q < 0 and low < 0) else Fraction(0)

    def bound(self, d, state, boxes):
        """The bound of a leaf."""
        g, q, sums = self.vector(d)
        inside = [(self.lines[j][1].s2, q[j], *boxes[j]) for f in range(self.F) if state[f] == IN for j in self.of[f]]
        return g - Fraction(self._most(sums, state)) / 2 + least_on_cone(inside)

    def check(self, bound):
        """Every leaf reaches the bound, and every dual vector is feasible."""
        N, F = len(self.split), self.F
        sizes = len(self.value), len(self.leaf)
        need(N >= 1 and all(one == N for one in sizes), "the arrays of the card's proof are not of the same nodes")
        enough = bound - CLOSE * abs(bound)
        met, stack = [], [(0, [OPEN] * F, self.root)]
        while stack:
            node, state, boxes = stack.pop()
            met.append(node)
            need(len(met) <= N, "the card's proof is no tree")
            s, below = self.split[node], [*self.children[2 * node : 2 * node + 2]]
            need(s < F + len(self.lines) and s >= -2, "a split on nothing")
            need(all(0 < child < N for child in below) if s >= 0 else below == [-1, -1], "children that are not there")
            if s >= F:
                j, at = s - F, self.value[node]
                need(state[self.lines[j][0]] == IN, "a split on points of a candidate that is not in")
                low, high = boxes[j]
                for child, box in zip(below, ((low, min(high, at)), (max(low, at + 1), high)), strict=True):
                    stack.append((child, state, [*boxes[:j], box, *boxes[j + 1 :]]))
            elif s >= 0:
                need(state[s] == OPEN, "a split on a candidate that is not open")
                stack += [
                    (child, [*state[:s], v, *state[s + 1 :]], boxes) for child, v in zip(below, (OUT, IN), strict=True)
                ]
            elif self._may(state) and all(low <= high for low, high in boxes):
                state = self._without(state)
                if s == -2:
                    need(self._doubled(state, boxes), "a leaf whose points may not be doubled")
                else:
                    proven = max(Fraction(0), self.bound(self.leaf[node], state, boxes))  # no card is worth less than 0
                    need(proven >= enough, "a leaf lies below the bound of the card")
        need(sorted(met) == list(range(N)), "the nodes of the card's proof are not each met once")
        for d in range(self.duals.count):
            self.vector(d)

    def _doubled(self, state, boxes):
        """Whether all points of a leaf may be doubled."""
        half, inside = self.card.most // 2, state.count(IN)
        own = [boxes[j] for f in range(self.F) if state[f] == IN for j in self.of[f]]
        return inside > 0 and OPEN not in state and all(low >= -half and high <= half for low, high in own)


def least_on_cone(terms):
    """min over a ≥ 0 and l a ≤ w ≤ u a of Σ ½ s² w² − q w, of (s², q, l, u): its slope in a rises, piece by piece."""

    def slope(a):
        """The slope at a, and how fast it rises behind it."""
        total, rise = Fraction(0), Fraction(0)
        for s2, q, low, high in terms:
            for end, side in ((low, 1), (high, -1)):
                past = side * (s2 * end * a - q)  # above 0 where this end binds, and at 0 where it will
                if past > 0 or (past == 0 and side * end > 0):
                    total, rise = total + end * (s2 * end * a - q), rise + s2 * end * end
        return total, rise

    turns = sorted({Fraction(0), *(q / s2 / end for s2, q, *ends in terms for end in ends if end and q / end > 0)})
    a = Fraction(0)
    for turn in turns:
        at, _ = slope(turn)
        if at >= 0:
            break
        a = turn
    else:
        turn = None
    at, rise = slope(a)
    if at < 0:  # between this turn and the next one, or behind the last
        if turn is not None and turn > a:
            behind, _ = slope(turn)
            a += (turn - a) * at / (at - behind)
        else:
            a -= at / rise
    found = Fraction(0)
    for s2, q, low, high in terms:
        w = min(max(q / s2, low * a), high * a)
        found += s2 * w * w / 2 - q * w
    return found


def thresholds_due(cut, values, bins):
    """The thresholds of a feature, from its values to 12 digits and the different ones of these in ascending order."""
    ordered, found = sorted(cut), []
    for k in range(1, bins):
        h = ordered[math.ceil((len(cut) - 1) * (k / bins))]
        h = values[1] if h == values[0] else h
        low = values[bisect.bisect_left(values, h) - 1]
        m = 0.5 * low + 0.5 * h
        m = float(math.ceil(m)) if low.is_integer() and h.is_integer() else m
        shorter = (float(f"{m:.{d}e}") for d in range(16))
        found.append(next((t for t in shorter if low < t <= h), h))
    return sorted(set(found))


def parted(values, count):
    """Parts of equal length, of which the first have one more where it does not divide."""
    size, more = divmod(len(values), count)
    ends = list(itertools.accumulate((size + (k < more) for k in range(count)), initial=0))
    return [values[a:b] for a, b in itertools.pairwise(ends)]


def area_of(totals, y):
    """The area under the ROC curve, ties counted half; None where one class is missing."""
    P = sum(v > 0 for v in y)
    if P in (0, len(y)):
        return None
    below, found = 0, Fraction(0)
    for _, group in itertools.groupby(sorted(zip(totals, y, strict=True)), key=lambda pair: pair[0]):
        signs_of = [sign for _, sign in group]
        own = sum(sign > 0 for sign in signs_of)
        found += own * (below + Fraction(len(signs_of) - own, 2))
        below += len(signs_of) - own
    return found / (P * (len(y) - P))


def check_card_form(document):
    """The fields of a card, its version and its digest; returns the version."""
    check_schema(document)
    version = document.get("version", 1)
    need("version" not in document or (type(version) is int and version == 2), f"a card of version {version!r}")
    fields = CARD_FIELDS | (CARD_OF_2 | (set(document) & {"joint", "odds"}) if version == 2 else set())
    need(set(document) == fields, f"fields that a card lacks or does not have: {sorted(fields ^ set(document))}")
    if version == 2:
        rest = {key: value for key, value in document.items() if key != "sha256"}
        text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        need(hashlib.sha256(text.encode()).hexdigest() == document["sha256"], "the card's text was changed (sha256)")
    number_or_none(document["unrounded"], "unrounded")
    need(isinstance(document["stop_reason"], str), "stop_reason is no text")
    need(type(document["nodes"]) is int, "nodes is no whole number")
    number(document["seconds"], "seconds")
    result = document["result"]
    need(isinstance(result, dict) and set(result) >= NEEDED, "the result of the card lacks a field")
    for key in ("labels", "data_sha256"):
        need(alike(document[key], result[key]), f"{key} of the card is not that of its result")
    need(result.get("trace") == [], "the result of a card has a trace")
    need(result.get("atoms") is None, "a card is of single features")
    params = result["params"]
    need(isinstance(params, dict), "params is no mapping")
    need(params.get("loss") in ("hinge", "squared-hinge", "logistic"), "the loss is no sum over the samples")
    need(params.get("margin", "unit") == "unit" and "regulariser" not in params, "a margin or a regulariser")
    need(result["objective"] is not None and isinstance(result["weights"], dict), "the result has no classifier")
    return version


def class_of(result, source):
    """The class of a result that is of one against the rest; None where the data has its two labels."""
    labels = result["labels"]
    need(isinstance(labels, dict) and set(labels) == {"negative", "positive"}, "labels are not two")
    if not calls(labels["negative"], f"not {labels['positive']}"):
        return None
    known = set(source.labels(result))
    own = [label for label in known if calls(labels["positive"], label)]
    return own[0] if len(known) > 2 and own and not any(calls(labels["negative"], v) for v in known) else None


def without_proof(result, data):
    """What `check` finds of a result whose certificate is not there, and its statement: all but the proof.

    Of columns that are not in use the scaling, which does not stand in the JSON, is computed.
    """
    if result["certificate"] is None:
        raise Declined("a card of a result that never had a certificate")
    kind, arrays = result["scaling"].get("kind"), {}
    if kind != "none":
        named, center = result["scaling"], result["scaling"].get("center", {})
        counts = counts_of(data, rules_of(result))
        scaling = [scaling_of(column, kind, counts) for column in data.columns]
        for j, name in enumerate(data.names):
            if name in named["shift"]:
                scaling[j] = tuple(float(number(named[key][name], key)) for key in ("shift", "scale"))
        values = {"shift": [t for t, _ in scaling], "scale": [r for _, r in scaling]}
        if center:
            pairs = zip(data.names, scaling, strict=True)
            values["center"] = [float(center.get(name, t / r)) for name, (t, r) in pairs]
        for key, own in values.items():
            arrays[f"column_{key}"] = Array([v.hex().encode() for v in own], (len(own),), "S")
    stated = statement(result, arrays, data)
    objective = check_classifier(stated)
    if result.get("near_optimal") is not None:
        listing(stated, objective)
    return concluded(stated, objective, number_or_none(result["certificate"]["bound"], "certificate.bound")), stated


def judge_card(document, path, source):
    """The lines of the verdict on a scorecard."""
    version, result = check_card_form(document), document["result"]
    data = source.data(result, of=class_of(result, source))
    if version == 1:
        found, stated = without_proof(result, data)
    else:
        arrays = read_archive(beside(path, result), JOINT_ARRAYS)
        own = {name: arrays.pop(name) for name in sorted(JOINT_ARRAYS & set(arrays))}
        need("joint" in document or not own, "a proof of features and points that the card does not name")
        found, stated = check(result, arrays, data), Statement(result, arrays, data)
    card = Card(document, stated)
    objective = card.check_objective()
    card.check_totals()
    card.check_odds()
    values = objective, float(document["bound"]), float(document["gap"])
    lines = [f"accepted: a scorecard by rule {version}, {summary(document['status'], *values)}"]
    if "joint" in document:
        Together(card, own).check(number(document["bound"], "the bound of the card"))
        lines += [f"its bound is proven for every card of at most {document['joint']['M']} features"]
    else:
        lines += ["that no other points are better (the bound of the card) is the word of its search"]
    lines += [f"its features: {summary(*found[:4])}"]
    if version == 1:
        lines += ["the certificate of the features is not beside a card of rule 1: their bound is unchecked"]
    return lines + found[4]


# --- The command line ----------------------------------------------------------------------------------------

BAD = (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, struct.error)
"""What a malformed document raises where nothing looked at it before."""


def guarded(document, arrays, data):
    """("accepted", the numbers), ("rejected", why) or ("declined", why)."""
    return verdict_of(lambda: check(document, arrays, data))


def verdict_of(judge):
    """("accepted", what a judge found), ("rejected", why) or ("declined", why)."""
    try:
        return "accepted", judge()
    except Rejected as error:
        return "rejected", str(error)
    except Declined as error:
        return "declined", str(error)
    except BAD as error:
        return "rejected", f"the document is malformed: {type(error).__name__} {error}"
    except OSError as error:
        return "declined", f"cannot be read: {error}"
    except (MemoryError, RecursionError):
        return "declined", "too large"


def load(text):
    """A JSON text without NaN, Infinity, a number beyond doubles or a name that stands twice."""

    def once(pairs):
        need(len({name for name, _ in pairs}) == len(pairs), "the JSON has a name twice")
        return dict(pairs)

    def never(word):
        raise Rejected(f"the JSON has {word}")

    def doubles(kind):
        def read(word):
            need(
                (kind is float or len(word) < 311) and math.isfinite(float(word)),
                "the JSON has a number beyond doubles",
            )
            return kind(word)

        return read

    numbers = {"parse_int": doubles(int), "parse_float": doubles(float)}
    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=never, **numbers)
    except (ValueError, RecursionError) as error:
        raise Rejected(f"not JSON: {error}") from None


def beside(path, document):
    """The bytes of the archive that a document names, by its name or its second one: section "The arrays"."""
    entry = document.get("certificate")
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        raise Declined("the document has no certificate beside it")
    place, wanted = path.parent / Path(entry["file"]).name, entry.get("sha256")
    if "classes" in document:
        if "archive" not in document:  # the digest is that of the first proof, compared when that is read
            return place.read_bytes()
        named = document["archive"]
        need(isinstance(named, dict) and set(named) == {"file", "sha256"}, "archive: other fields than file, sha256")
        need(named["file"] == entry["file"], "the archive is another file than the certificate's")
        wanted = named["sha256"]
    need(isinstance(wanted, str) and re.fullmatch("[0-9a-f]{64}", wanted), "the sidecar's digest is none")
    second = place.with_name(f"{place.name.removesuffix('.cert.npz')}.{wanted[:12]}.cert.npz")
    for one in [place, second] if second.exists() else [place]:
        content = one.read_bytes()
        if hashlib.sha256(content).hexdigest() == wanted:
            return content
    raise Rejected("the sidecar is another file (sha256)")


def judge(where, data):
    """The lines of the verdict on RESULT.json, PATH.json#POINT, CLASSES.json#LABEL or CARD.json, over a data file."""
    name, mark, place = str(where).partition("#")
    path = Path(name)
    document = load(path.read_text("utf-8"))
    check_schema(document)
    need(document.get("kind") in (None, "one-vs-rest", "scorecard"), "an unknown kind of document")
    if document.get("kind") == "scorecard":
        need(not mark, "a card has no parts")
        return judge_card(document, path, Source(data))
    content = beside(path, document)
    if "points" in document or "classes" in document:
        several = judge_path if "points" in document else judge_classes
        return several(document, content, Source(data), place)
    need(not mark, "a result has no parts")
    source = Source(data)
    return said_of(check(document, read_archive(content), source.data(document, of=class_of(document, source))))


def said_of(found):
    """The lines of an accepted result."""
    status, objective, bound, gap, notes = found
    return [f"accepted: {summary(status, objective, bound, gap)}", *notes]


def summary(status, objective, bound, gap):
    values = [("objective", objective, ".10g"), ("bound", bound, ".10g"), ("gap", gap, ".3g")]
    return ", ".join([status, *(f"{name} {'none' if v is None else format(v, form)}" for name, v, form in values)])


def main(argv):
    """The command line; see the module."""
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    word, what = verdict_of(lambda: judge(*argv))
    print("\n".join(what) if word == "accepted" else f"{word}: {what}")
    return {"accepted": 0, "rejected": 1, "declined": 2}[word]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
