#!/usr/bin/env python3
"""A second checker of mipfs certificates, which shares nothing with the package: one file, exact arithmetic.

    python second_checker.py RESULT.json DATA

It says "accepted" with the bound, the gap and the status that are proven (exit code 0), "rejected: why" (1), or
"declined: why" (2) where it is not made for what it is given: it takes svmlight and CSV text, sums over the samples
(hinge, squared hinge, logistic), features, groups and trees, rows, penalties, bounds on weights and near-optimal lists;
not measures, products or functions of features, other regularisers, other formats, nor what would take it very long.

Everything is computed in integers and fractions, so there is no rounding error to argue about: the numbers of the file
are doubles, doubles are fractions, and the two logarithms that the logistic loss needs are enclosed (`log_above`). It
was written from docs/certificate.md alone; names of sections there stand in the docstrings here. Python 3.11 or newer,
nothing to install.

The order below: numbers, the archive, the data, the statement, values of classifiers, dual vectors and leaves, the
tree, near-optimal lists, relaxations, the verdict.
"""

import bz2
import csv
import gzip
import hashlib
import json
import math
import re
import struct
import sys
import tomllib
import zipfile
from ast import literal_eval
from fractions import Fraction
from itertools import combinations
from pathlib import Path

MOST_PRODUCTS = 400_000_000
"""Products of numbers (samples · columns · dual vectors) that it takes on: some minutes."""
MOST_BYTES = 1 << 28
"""Bytes of the unpacked archive."""
MOST_SELECTIONS = 20_000
"""Selections of one leaf that are looked at one by one."""
ALLOWANCE = Fraction(1, 2**40)
"""δ: how far a row may be missed, and how far an end of a weight is forgiven in a bound."""
CLOSE = Fraction(1, 10**9)
"""Relative allowance of a recomputed objective, a stated bound and an asked gap."""
TIED = Fraction(1, 10**6)
"""Relative distance to which a listed support is to be bounded from below."""
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
        need(math.isfinite(float(value)), f"{what} is not finite")
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
        term = -((term * r) >> BITS) // i if i % 2 else ((-term * r) >> BITS) // i
        total, i = total + term, i + 1
        if i > 80:
            break
    return total >> min(k, 2 * BITS)


def _ln2():
    """ln 2 = 2 artanh(1/3)."""
    power, total, k = ONE // 3, 0, 1
    while power:
        total, power, k = total + power // k, power // 9, k + 2
    return 2 * total


LN2 = _ln2()


def log_above(a, b):
    """A number of units 2^−BITS that is at least ln(a/b), for whole a, b > 0."""
    spread = b.bit_length() - a.bit_length()
    if spread > 64:  # a small quotient loses its digits: ln(a/b) = ln(a 2^spread/b) − spread ln 2
        return _log((a << (spread + BITS)) // b) - spread * LN2 + 2 * SLACK
    return _log((a << BITS) // b) + SLACK


def log_one_plus_exp(m):
    """ln(1 + e^m) of a fraction, to within 2^−120."""
    t = abs(m.numerator) * ONE // m.denominator
    v = 0 if t > 400 * ONE else _exp(t)
    return Fraction(_log(ONE + v), ONE) + max(m, 0)


# --- The archive ---------------------------------------------------------------------------------------------


class Array:
    """An array of the sidecar: its numbers one after the other (bytes of uint8), shape and kind (i, f or S)."""

    def __init__(self, values, shape, kind):
        self.values, self.shape, self.kind = values, shape, kind

    def __len__(self):
        return self.shape[0] if self.shape else 0


def read_npy(content, name):
    """One member of the archive: the format of NumPy's .npy files, version 1 to 3."""
    need(content[:6] == b"\x93NUMPY" and len(content) >= 12, f"{name} is no array")
    wide = content[6] > 1
    (size,) = struct.unpack_from("<I" if wide else "<H", content, 8)
    start = (12 if wide else 10) + size
    try:
        head = literal_eval(content[start - size : start].decode("latin-1").strip())
        descr, order, shape = head["descr"], head["fortran_order"], head["shape"]
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError):
        raise Rejected(f"{name} has no header") from None
    found = re.fullmatch(r"[<|]([iufbS])(\d{1,6})", descr) if isinstance(descr, str) else None
    need(found and isinstance(shape, tuple), f"{name} has a type {descr!r} that no certificate has")
    need(all(isinstance(n, int) and n >= 0 for n in shape), f"{name} has no shape")
    need(not order or len(shape) < 2 or 0 in shape or 1 in shape, f"{name} is stored by columns")
    kind, each, count = found[1], int(found[2]), math.prod(shape)
    need(each > 0 or count == 0 or kind == "S", f"{name} has no type")
    body = content[start:]
    need(len(body) == count * each, f"{name} has {len(body)} bytes in place of {count * each}")
    if kind == "S":
        values = [body[i * each : (i + 1) * each].rstrip(b"\0") for i in range(count)] if each else [b""] * count
        return Array(values, shape, "S")
    if kind == "u" and each == 1:
        return Array(body, shape, "i")
    letter = {"i1": "b", "i2": "h", "i4": "i", "i8": "q", "u2": "H", "u4": "I", "u8": "Q", "f8": "d"}.get(kind + found[2])
    need(letter, f"{name} has a type {descr!r} that no certificate has")
    return Array(list(struct.unpack(f"<{count}{letter}", body)), shape, "f" if kind == "f" else "i")


def read_archive(path):
    """The arrays of a sidecar by name."""
    arrays, total = {}, 0
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                total += member.file_size
                if total > MOST_BYTES:
                    raise Declined("too large: the certificate has more than 256 MB")
                need(member.filename.removesuffix(".npy") not in arrays, "the sidecar has an array twice")
                arrays[member.filename.removesuffix(".npy")] = read_npy(archive.read(member), member.filename)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise Rejected(f"the sidecar cannot be read: {error}") from None
    return arrays


# --- The data ------------------------------------------------------------------------------------------------


class Data:
    """Raw data: names, columns (p lists of n doubles), y (±1), sample weights, and what its .toml asks for.

    `named` says whether the names are given; those that the readers make are x1 … xp. `asked` has the rows (terms, lb,
    ub), `forced_in`, `forced_out` and `penalty` that a statement about this data must have.
    """

    def __init__(self, names, columns, y, weights=None, named=True, bags=None, asked=None):
        self.names, self.columns, self.y, self.named, self.bags = names, columns, y, named, bags
        self.weights = [1.0] * len(y) if weights is None else weights
        self.asked = asked or {}

    def sha256(self):
        """Section "The data's digest"."""
        n, p = len(self.y), len(self.names)
        parts = [hashlib.sha256(str((n, p)).encode()) for _ in range(3)]
        for column in self.columns:
            held = [(i, x) for i, x in enumerate(column) if x != 0]
            parts[0].update(struct.pack("<q", len(held)))
            parts[1].update(struct.pack(f"<{len(held)}q", *(i for i, _ in held)))
            parts[2].update(struct.pack(f"<{len(held)}d", *(x for _, x in held)))
        stated = json.dumps([[n, p], list(self.names) if self.named else None], ensure_ascii=False).encode()
        values = hashlib.sha256(b"".join(part.digest() for part in parts)).hexdigest().encode()
        rest = [struct.pack(f"<{n}d", *self.y), struct.pack(f"<{n}d", *self.weights)]
        rest += [] if self.bags is None else [struct.pack(f"<{n}q", *self.bags)]
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in [stated, values, *rest])).hexdigest()


def read_data(path, document):
    """A text file and the .toml beside it; labels, the label column and the width are taken from the document."""
    path = Path(path)
    stem = path.with_suffix("") if path.suffix in (".gz", ".bz2") else path
    opener = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            text = stream.read()
        beside = stem.with_suffix(".toml")
        described = tomllib.loads(beside.read_text("utf-8-sig")) if beside.exists() else {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, EOFError) as error:
        raise Declined(f"the data cannot be read: {error}") from None
    kind = stem.suffix.lower()
    if kind not in (".csv", ".tsv", ".svm", ".txt", ".svmlight", ".libsvm", ""):
        raise Declined(f"a kind of data that I do not carry: {kind}")
    try:
        data = read_csv(text, document, described) if kind in (".csv", ".tsv") else read_svmlight(text, document)
    except (ValueError, IndexError, KeyError, TypeError, csv.Error) as error:
        raise Declined(f"data that I cannot read as plain text: {error}") from None
    names = described.get("features", {}).get("names")
    if names is None and not data.named and (path.parent / "names.txt").exists():
        names = (path.parent / "names.txt").read_text("utf-8").splitlines()
    if names and kind not in (".csv", ".tsv"):
        need(len(names) == len(data.names), "the data's names are not as many as its columns")
        data.names, data.named = names, names != data.names
    data.asked = asked_of(described, data.names)
    return data


def sign_of(cell, labels):
    """+1 or −1 of a label as the file has it, by what the document calls the two."""
    for sign, name in ((1.0, labels["positive"]), (-1.0, labels["negative"])):
        if str(name) == cell.strip():
            return sign
        try:
            if float(name) == float(cell):
                return sign
        except (TypeError, ValueError):
            pass
    raise Rejected(f"the data has a label {cell.strip()!r} that the document does not name")


def read_svmlight(text, document):
    """Lines of a label, perhaps qid:bag, and index:value, indices from 1."""
    p = whole(document.get("n_features"), "n_features", 1)
    entries, y, bags = [], [], []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        y.append(sign_of(words[0], document["labels"]))
        for word in words[1:]:
            index, value = word.split(":")
            if index == "qid":
                bags.append(int(value))
            else:
                entries.append((len(y) - 1, int(index) - 1, float(value)))
    columns = [[0.0] * len(y) for _ in range(p)]
    for i, j, x in entries:
        columns[j][i] = x
    return Data([f"x{j + 1}" for j in range(p)], columns, y, named=False, bags=bags or None)


def read_csv(text, document, described):
    """A table with a header; a column of words becomes one of 0 and 1 for each word, in sorted order."""
    lines = [line for line in text.splitlines(keepends=True) if line.strip() and not line.startswith("#")]
    separator = max(",;\t|", key=lines[0].count)
    table = list(csv.reader(lines, delimiter=separator))
    header = [name.strip() for name in table[0]]
    cells = dict(zip(header, zip(*table[1:], strict=True), strict=True))
    if header[0] in ("", "Unnamed: 0"):
        del cells[header[0]]
    label = (document.get("read") or {}).get("label") or described.get("data", {}).get("label") or "label"
    y = [sign_of(cell, document["labels"]) for cell in cells.pop(label)]
    weights = [float(cell) for cell in cells.pop("sample_weight")] if "sample_weight" in cells else None
    bags = [int(cell) for cell in cells.pop("bag")] if "bag" in cells else None
    names, columns = [], []
    for name, column in cells.items():
        try:
            columns.append([float(cell) for cell in column])
            names.append(name)
        except ValueError:
            words = [cell.strip() for cell in column]
            for word in sorted(set(words)):
                columns.append([float(one == word) for one in words])
                names.append(f"{name}={word}")
    return Data(names, columns, y, weights, bags=bags)


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
    return {
        "rows": [row for row in rows if set(row[0]) <= set(names)],
        "forced_in": select.get("forced_in", []),
        "forced_out": select.get("forced_out", []),
        "penalty": {name: value for name, value in described.get("penalty", {}).items() if value},
    }


# --- The statement -------------------------------------------------------------------------------------------

FIELDS = set(
    "schema gap status stop_reason objective bound selected weights intercept params driver seconds counters trace "
    "labels columns n_features scaling data_sha256 rows conflict relaxed validated bound_source certificate versions "
    "extra near_optimal atoms read command settings bags constant note preselect stability".split()
)
PARAMS = set(
    "M C lambda loss bias penalty margin forced_in forced_out gap weight_bounds T tol class_weight".split()
)
CARRIED_ELSEWHERE = {"measure", "beta", "k", "constant", "regulariser"}
"""Parameters of problems that this checker declines."""


class Row:
    """lb ≤ Aσ + Bz ≤ ub with the ends that its allowance leaves; None is an absent end."""

    def __init__(self, terms, extra, low, high):
        self.terms, self.extra, self.low, self.high = terms, extra, low, high

    def holds(self, sigma, z):
        total = sum(a * sigma[j] for j, a in self.terms.items()) + sum(b * z[k] for k, b in self.extra.items())
        return (self.low is None or total >= self.low) and (self.high is None or total <= self.high)


class Statement:
    """The problem that the JSON states, over the data: sections "What is proven" and "The JSON"."""

    def __init__(self, document, arrays, data):
        self.document, self.data = document, data
        params = document["params"]
        need(set(params) <= PARAMS | CARRIED_ELSEWHERE, f"unknown parameters {sorted(set(params) - PARAMS)}")
        made = isinstance(document.get("atoms"), dict) and document["atoms"].get("made")
        if CARRIED_ELSEWHERE & set(params) or params.get("loss") == "structural" or made:
            raise Declined("a kind that I do not carry: measures, other regularisers, or made features")
        if params.get("loss") not in ("hinge", "squared-hinge", "logistic"):
            raise Declined(f"a loss that I do not carry: {params.get('loss')!r}")
        self.loss, self.bias = params["loss"], params.get("bias")
        need(isinstance(self.bias, bool), "bias is neither true nor false")
        margin = params.get("margin", "unit")
        need(margin in ("unit", "rho"), "the margin is neither unit nor rho")
        self.rho = margin == "rho"
        need(not self.rho or self.loss == "squared-hinge", "the ρ-form is one of the squared hinge")
        self.y = [int(v) for v in data.y]
        self.C = number(params.get("C"), "C")
        need(self.C > 0, "C is not above 0")
        self.c = [Fraction(float(self.C) * w) for w in data.weights]  # fl(C · weight)
        self.asked_gap = number(params.get("gap"), "params.gap")
        need(self.asked_gap >= 0, "the asked gap is below 0")
        need(document.get("n_features") == len(data.names), "n_features is not the width of the data")
        need(len(set(data.names)) == len(data.names), "two features have one name")
        self.place = {name: j for j, name in enumerate(data.names)}
        self._atoms(document.get("atoms"))
        self._scaling(arrays)
        self._selection(params)
        self._rows()
        self._box(params.get("weight_bounds") or {})

    def _atoms(self, atoms):
        """Names, columns and squared scales of what is selected."""
        need(atoms is None or isinstance(atoms, dict), "atoms is no mapping")
        atoms = atoms or {}
        need(set(atoms) <= {"names", "columns", "scale", "made"}, "atoms has an unknown field")
        names, columns, scale = (atoms.get(key) for key in ("names", "columns", "scale"))
        self.names = list(self.data.names) if names is None else names
        need(isinstance(self.names, list) and all(isinstance(s, str) for s in self.names), "atoms.names are no names")
        need(len(set(self.names)) == len(self.names), "two atoms have one name")
        self.single = columns is None
        if columns is None:
            need(self.names == list(self.data.names), "single features have the names of the data")
            self.columns = [[j] for j in range(len(self.names))]
        else:
            need(isinstance(columns, list) and len(columns) == len(self.names), "atoms.columns are not one an atom")
            need(all(isinstance(one, list) and len({*map(str, one)}) == len(one) for one in columns), "odd columns")
            need(all(isinstance(s, str) and s in self.place for one in columns for s in one), "an unknown column")
            self.columns = [[self.place[name] for name in one] for one in columns]
        scale = [1.0] * len(self.names) if scale is None else scale
        need(isinstance(scale, list) and len(scale) == len(self.names), "atoms.scale is not one number an atom")
        self.lam2 = [number(one, "a scale") ** 2 for one in scale]
        need(all(number(one, "a scale") > 0 for one in scale), "a scale is not above 0")
        self.p = len(self.names)
        self.atom = {name: j for j, name in enumerate(self.names)}

    def _scaling(self, arrays):
        """Shift and scale of every column, checked against the columns, and the scaled columns as integers."""
        kind = self.document["scaling"].get("kind")
        need(kind in ("none", "standard", "unit"), "an unknown kind of scaling")
        p = len(self.data.names)
        if kind == "none":
            shift, scale, center = [0.0] * p, [1.0] * p, [0.0] * p
        elif not {"column_shift", "column_scale"} <= set(arrays):
            raise Declined("a certificate of an earlier version, in which the scaling of the columns does not stand")
        else:
            shift, scale = (hexadecimals(arrays[f"column_{name}"], p, name) for name in ("shift", "scale"))
            centred = "column_center" in arrays
            center = hexadecimals(arrays["column_center"], p, "center") if centred else [0.0] * p
        self.shift, self.scale = [Fraction(v) for v in shift], [Fraction(v) for v in scale]
        for what, values in (("shift", shift), ("scale", scale), ("center", center)):
            stated = self.document["scaling"].get(what) or {}
            need(isinstance(stated, dict), f"scaling.{what} is no mapping")
            for name, value in stated.items():
                need(name in self.place, f"scaling.{what} names {name!r}, which is no feature")
                need(number(value, what) == values[self.place[name]], f"scaling.{what} of {name!r} is another one")
        self.integers = []
        for j, column in enumerate(self.data.columns):
            self._check_scaling(kind, j, column)
            need(center[j] == 0 or abs(Fraction(center[j]) - self.shift[j] / self.scale[j]) <= abs(Fraction(center[j])) / 2**50,
                 "a center is not shift/scale")
            if center[j] != 0:
                column = [x / scale[j] - center[j] for x in column]
            elif kind != "none":
                column = [(x - shift[j]) / scale[j] for x in column]
            self.integers.append(as_integers(column))

    def _check_scaling(self, kind, j, column):
        """Whether shift and scale are mean and deviation, or 0 and norm, up to rounding; or 0 and 1."""
        shift, scale = self.shift[j], self.scale[j]
        if kind == "none" or (shift == 0 and scale == 1 and (kind == "unit" or len(set(column)) == 1)):
            return
        if kind == "unit" or shift != 0 or scale != 1:
            exact = [Fraction(x) for x in column]
            n = len(exact)
            mean = sum(exact) / n if kind == "standard" else 0
            size = sum(abs(x) for x in exact) / n
            need(abs(shift - mean) <= size * n / 2**48, f"the shift of column {self.data.names[j]!r} is not its mean")
            square = sum((x - mean) ** 2 for x in exact) / (n if kind == "standard" else 1)
            room = square / 10**6 + (size * n / 2**48) ** 2 * n
            need(scale > 0 and abs(scale**2 - square) <= room, f"the scale of column {self.data.names[j]!r} is another")

    def _selection(self, params):
        """M, the forced atoms and what an atom costs."""
        M = params.get("M")
        self.M = self.p if M is None else min(whole(M, "M"), self.p)
        self.forced = {}
        for key, value in (("forced_in", 1), ("forced_out", 0)):
            names = params.get(key) or []
            need(isinstance(names, list), f"{key} is no list")
            for name in names:
                need(isinstance(name, str) and name in self.atom, f"{key} has {name!r}, which cannot be selected")
                need(self.forced.setdefault(self.atom[name], value) == value, f"{name!r} is forced in and out")
        lam, penalty = params.get("lambda", 0.0), params.get("penalty") or {}
        if isinstance(lam, list):
            need(len(lam) == self.p, "lambda is not one number an atom")
            self.cost = [number(v, "lambda") for v in lam]
        elif isinstance(lam, dict):
            need(all(name in self.atom for name in lam), "lambda names what cannot be selected")
            self.cost = [number(lam.get(name, 0.0), "lambda") for name in self.names]
        else:
            self.cost = [number(lam, "lambda")] * self.p
        need(isinstance(penalty, dict) and all(name in self.atom for name in penalty), "penalty names no atoms")
        for name, value in penalty.items():
            self.cost[self.atom[name]] += number(value, "penalty")
        need(all(c >= 0 for c in self.cost), "a penalty is below 0")
        need(not self.rho or not any(self.cost), "the ρ-form has no penalties")

    def _rows(self):
        """The user's rows and extra variables."""
        given = self.document.get("extra") or {}
        need(isinstance(given, dict), "extra is no mapping")
        self.extra = list(given)
        need(not set(self.extra) & set(self.names), "an extra variable has the name of an atom")
        self.ends, self.integer = [], []
        for name, one in given.items():
            need(isinstance(one, dict) and set(one) <= {"lb", "ub", "integer", "value"}, f"{name} has unknown fields")
            self.ends.append((number_or_none(one.get("lb"), name), number_or_none(one.get("ub"), name)))
            need(isinstance(one.get("integer"), bool), f"{name} is whole or not?")
            self.integer.append(one["integer"])
        self.rows = []
        need(isinstance(self.document.get("rows"), list), "rows is no list")
        for one in self.document["rows"]:
            need(isinstance(one, dict) and isinstance(one.get("terms"), dict), "a row has no terms")
            need(set(one) <= {"name", "terms", "lb", "ub", "origin"}, "a row has an unknown field")
            terms, extra = {}, {}
            for name, value in one["terms"].items():
                need(name in self.atom or name in given, f"a row names {name!r}, which is nothing")
                known = terms if name in self.atom else extra
                known[self.atom[name] if known is terms else self.extra.index(name)] = number(value, "a coefficient")
            low, high = (number_or_none(one.get(end), "an end of a row") for end in ("lb", "ub"))
            a = max((abs(v) for v in terms.values()), default=Fraction(0))
            low = None if low is None else low - ALLOWANCE * (a + abs(low))
            high = None if high is None else high + ALLOWANCE * (a + abs(high))
            self.rows.append(Row(terms, extra, low, high))

    def _box(self, bounds):
        """Bounds on the weights, by column, on the user's scale."""
        need(isinstance(bounds, dict), "weight_bounds is no mapping")
        self.bounds = {}
        for name, ends in bounds.items():
            need(name in self.place and isinstance(ends, list) and len(ends) == 2, "weight_bounds are no pairs by name")
            low, high = (number_or_none(end, "a bound of a weight") for end in ends)
            need((low is None or low <= 0) and (high is None or high >= 0), "bounds of a weight leave out 0")
            self.bounds[self.place[name]] = (low, high)
        need(not bounds or (self.single and all(one == 1 for one in self.lam2)), "bounds are of single features")
        need(not self.rho or all(end in (None, 0) for pair in self.bounds.values() for end in pair), "a box in ρ-form")

    def check_asked(self):
        """Whether the statement has all that the data's own description asks for."""
        asked, params = self.data.asked, self.document["params"]
        if not asked or not self.single:
            return
        stated = [
            ({k: v for k, v in one["terms"].items() if v}, one.get("lb"), one.get("ub")) for one in self.document["rows"]
        ]
        for terms, low, high in asked["rows"]:
            need(({k: v for k, v in terms.items() if v}, low, high) in stated, "a row of the data's .toml is missing")
        for key in ("forced_in", "forced_out"):
            need(set(asked[key]) <= set(params.get(key) or []), f"{key} of the data's .toml is missing")
        need(asked["penalty"] == {k: v for k, v in (params.get("penalty") or {}).items() if v}, "penalties differ")

    def allows(self, chosen, z):
        """Whether a selection (positions) with values of the extra variables is one of S."""
        sigma = [0] * self.p
        for j in chosen:
            sigma[j] = 1
        inside = len(chosen) <= self.M and all(sigma[j] == value for j, value in self.forced.items())
        return inside and all(row.holds(sigma, z) for row in self.rows)

    def extras(self, values, what):
        """Values of the extra variables, found within their ends."""
        need(isinstance(values, dict) and set(values) >= set(self.extra), f"{what}: an extra variable has no value")
        z = [number(values[name], what) for name in self.extra]
        for value, (low, high), integer in zip(z, self.ends, self.integer, strict=True):
            need((low is None or value >= low) and (high is None or value <= high), f"{what} is beyond its ends")
            need(not integer or value.denominator == 1, f"{what} is not whole")
        return z


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
    """A column of doubles as (entries (i, k) that are not 0, e): the numbers are k · 2^−e."""
    need(all(math.isfinite(x) for x in column), "a scaled value is not finite")
    pairs = [(i, *x.as_integer_ratio()) for i, x in enumerate(column) if x != 0]
    e = max((d.bit_length() - 1 for _, _, d in pairs), default=0)
    return [(i, m << (e - d.bit_length() + 1)) for i, m, d in pairs], e


# --- Values of classifiers -----------------------------------------------------------------------------------


def value_of(stated, weights, intercept, sigma, what):
    """The value of (P), or of a relaxation, at weights and σ (by position, above 0): section "Values".

    The weights are those of the user's scale, margins those of the raw data, as they are; the term of a weight is that
    of the scaled column. Where a column stands in several atoms its weight is split among them at least cost.
    """
    need(isinstance(weights, dict), f"{what}: weights is no mapping")
    data, share = stated.data, {}
    for j, part in sigma.items():
        for column in stated.columns[j]:
            share[column] = share.get(column, 0) + part * stated.lam2[j]
    total = sum((stated.cost[j] * part for j, part in sigma.items()), Fraction(0))
    b = number(intercept, f"{what}: intercept")
    margins, shifted, size = [b] * len(data.y), b, abs(b)
    for name, value in weights.items():
        need(name in stated.place, f"{what}: a weight of {name!r}, which is no feature")
        j, w = stated.place[name], number(value, f"{what}: a weight")
        if w == 0:
            continue
        need(j in share, f"{what}: {name!r} has a weight and is not selected")
        low, high = stated.bounds.get(j, (None, None))
        part = share[j]
        need((low is None or w >= low * part) and (high is None or w <= high * part), f"{what}: beyond weight_bounds")
        total += (w * stated.scale[j]) ** 2 / (2 * part)
        shifted += w * stated.shift[j]
        size += abs(w * stated.shift[j])
        margins = [m + w * Fraction(x) for m, x in zip(margins, data.columns[j], strict=True)]
    need(stated.bias or abs(shifted) <= CLOSE * size, f"{what}: an intercept where the problem has none")
    margins = [m * sign for m, sign in zip(margins, stated.y, strict=True)]
    return total + (rho_loss if stated.rho else loss_of)(stated, margins)


def loss_of(stated, margins):
    """The sum of the losses."""
    if stated.loss == "logistic":
        return sum(c * log_one_plus_exp(-m) for c, m in zip(stated.c, margins, strict=True))
    short = [(c, 1 - m) for c, m in zip(stated.c, margins, strict=True) if m < 1]
    if stated.loss == "hinge":
        return sum((c * s for c, s in short), Fraction(0))
    return sum((c * s * s / 2 for c, s in short), Fraction(0))


def rho_loss(stated, margins):
    """min over ρ of Σ c_i/2 max(0, ρ − m_i)² − ρ: its slope Σ c_i (ρ − m_i)⁺ − 1 grows, and is 0 on one piece."""
    ordered = sorted(zip(margins, stated.c, strict=True))
    weight = moment = square = Fraction(0)
    for k, (m, c) in enumerate(ordered):
        weight, moment, square = weight + c, moment + c * m, square + c * m * m
        if weight == 0:
            continue
        rho = (1 + moment) / weight
        if k + 1 == len(ordered) or rho <= ordered[k + 1][0]:
            return (weight * rho * rho - 2 * rho * moment + square) / 2 - rho
    raise Rejected("no sample has a weight")


# --- Dual vectors and leaves ---------------------------------------------------------------------------------


class Duals:
    """The dual vectors of the sidecar, decoded when they are used: section "Dual vectors"."""

    def __init__(self, arrays, stated):
        self.stated, self.n = stated, len(stated.y)
        names = ("dual_q", "dual_start", "dual_bytes", "dual_level", "dual_width", "dual_top")
        self.q, self.start, self.bytes, self.level, self.width, self.top = (array_of(arrays, name) for name in names)
        self.count = len(self.q)
        shapes = (len(self.start) == self.count + 1, len(self.level) == self.count, len(self.width) == self.count)
        need(all(shapes) and len(self.top) in (0, self.n), "the dual arrays do not belong together")
        self.kept = {}

    def get(self, d):
        """(g, the terms ½ s_j or h_j of all atoms) of dual vector d, found feasible."""
        need(0 <= d < self.count, "a dual vector that is not there")
        if d not in self.kept:
            k, q = self.decoded(d)
            unit = Fraction(1, 1 << q) if q >= 0 else Fraction(1 << -q)
            self._check(k, q)
            self.kept[d] = (self._g(k, q, unit), self._terms(k, q, unit))
        return self.kept[d]

    def decoded(self, d):
        """Integers k (n,) and q."""
        a, b, q, width, n = self.start[d], self.start[d + 1], self.q[d], self.width[d], self.n
        need(0 <= a <= b <= len(self.bytes) and 0 <= width <= 7 and abs(q) <= 2000, "a dual vector has no bytes")
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
        need(all(v >= 0 for v in k), "a dual vector is below 0")
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

    def _terms(self, k, q, unit):
        """½ λ² Σ ω² of every atom, or h_j where its weight has bounds."""
        stated = self.stated
        signed = [v * s for v, s in zip(k, stated.y, strict=True)]
        half = []
        for j, (entries, e) in enumerate(stated.integers):
            dot = sum(signed[i] * x for i, x in entries)
            shift = q + e
            if j not in stated.bounds:
                power = 2 * shift + 1
                half.append(Fraction(dot * dot, 1 << power) if power >= 0 else Fraction(dot * dot << -power))
                continue
            omega = Fraction(dot) * Fraction(2) ** -shift
            low, high = stated.bounds[j]
            outward = stated.scale[j] * (1 + ALLOWANCE)
            t = omega if low is None else max(omega, low * outward)
            t = t if high is None else min(t, high * outward)
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

    def at(self, chosen, ends):
        """Its value at one selection."""
        start = self.start(ends)
        return None if start is None else start + Fraction(sum(self.cost[j] for j in chosen), self.unit)


# --- The tree ------------------------------------------------------------------------------------------------


class Tree:
    """The tree of the sidecar: sections "The arrays" and "Leaves"."""

    def __init__(self, document, arrays, stated):
        self.stated = stated
        need(array_of(arrays, "version") in ([1], [2]), "a version of the sidecar that I do not know")
        self.feature, self.dual, self.multiplier = (array_of(arrays, n) for n in ("feature", "dual", "multiplier"))
        self.count = len(self.feature)
        for name, columns in (("children", 2), ("whole", 2)):
            need(name in arrays and arrays[name].kind == "i", f"the sidecar has no {name}")
            need(len(arrays[name].shape) == 2 and arrays[name].shape[1] == columns, f"{name} has a wrong shape")
        pairs = [list(zip(a.values[::2], a.values[1::2], strict=True)) for a in (arrays["children"], arrays["whole"])]
        self.children, found = pairs
        need(self.count > 0 and len(self.children) == len(self.dual) == len(self.multiplier) == self.count, "no tree")
        self.whole = dict(found)
        need(len(self.whole) == len(found), "two values for one split")
        self.rows = stated.rows + [derived_row(stated, one) for one in document["certificate"].get("derived") or []]
        self._multipliers(arrays)
        self.duals = Duals(arrays, stated)
        work = max(1, sum(len(entries) for entries, _ in stated.integers)) * max(1, self.duals.count)
        work += 20 * self.count * stated.p + (200 * self.duals.count * len(stated.y) if stated.loss == "logistic" else 0)
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
                need(end is not None, "a multiplier at an end that a row does not have")
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
                atoms = [a + c - t for a, c, t in zip(atoms, self.stated.cost, terms, strict=True)]
            self.lines[d, m] = Line(base, atoms, extra)
        return self.lines[d, m]

    def root(self):
        state = bytearray([FREE] * self.stated.p)
        for j, value in self.stated.forced.items():
            state[j] = value
        return bytes(state), tuple(self.stated.ends)

    def walk(self, level, open_leaf):
        """Go through all leaves that may hold a selection; `open_leaf(node, state, ends, value)` of those below `level`.

        `level` is a fraction, or None: no number reaches it. Screening fixes what it fixes at this level.
        """
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
                k, value = on - self.stated.p, Fraction(self.whole[node])
                a, b = ends[k]
                low_ends = (a, value if b is None else min(b, value))
                high_ends = (value + 1 if a is None else max(a, value + 1), b)
                stack.append((low, state, (*ends[:k], low_ends, *ends[k + 1 :])))
                stack.append((high, state, (*ends[:k], high_ends, *ends[k + 1 :])))
            elif on == SCREENED:
                found = self.screened(node, state, ends, room, level)
                if found is not None:
                    stack.append((low, found, ends))
            elif not self.refuted(node, state, ends, room):
                value, _ = self.line(self.dual[node], self.multiplier[node]).least(state, ends, room)
                if value is None or level is None or value < level:
                    open_leaf(node, state, ends, value)

    def refuted(self, node, state, ends, room):
        """Whether a leaf that says that it is empty is."""
        if self.dual[node] != -2:
            need(self.dual[node] >= 0, "a leaf without a dual vector")
            return False
        need(self.multiplier[node] >= 0, "a leaf that is said to be empty is not")
        value, _ = self.line(None, self.multiplier[node]).least(state, ends, room)
        need(value is not None and value > 0, "multipliers do not show that a leaf is empty")
        return True

    def screened(self, node, state, ends, room, level):
        """The state below a screened node; None where nothing is left."""
        need(self.dual[node] >= 0, "a screened node without a dual vector")
        line = self.line(self.dual[node], self.multiplier[node])
        value, taken = line.least(state, ends, room)
        if value is None or level is None:
            return state if room or FREE not in state else bytes(0 if s == FREE else s for s in state)
        if value >= level:
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
                if comes - cost[j] >= gap:
                    found[j] = 1
            elif room == 0 or cost[j] - leaves >= gap:
                found[j] = 0
        return bytes(found)


def derived_row(stated, one):
    """A derived row, derived again: section "Derived rows"."""
    need(isinstance(one, dict) and one.get("kind") == "chvatal-gomory", "a derived row of an unknown kind")
    need(set(one) <= {"kind", "terms", "ub", "rows", "cardinality", "bounds"}, "a derived row has an unknown field")
    need(isinstance(one.get("rows"), list) and isinstance(one.get("bounds", {}), dict), "a derived row is incomplete")
    card = ratio(one.get("cardinality", "0"), "a multiplier")
    need(card == 0 or (card > 0 and stated.document["params"].get("M") is not None), "no row of the cardinality")
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
    for name, text in one.get("bounds", {}).items():
        value = ratio(text, "a multiplier")
        need(name in stated.atom and value >= 0, "a multiplier of a bound")
        a[stated.atom[name]] += value
        b += value
    need(not any(extra), "an extra variable is left in a derived row")
    need(isinstance(one.get("terms"), dict) and set(one["terms"]) <= set(stated.atom), "terms of a derived row")
    terms = {stated.atom[name]: number(v, "a coefficient") for name, v in one["terms"].items()}
    need(all(terms.get(j, 0) == math.floor(v) for j, v in enumerate(a)), "a derived row has other terms")
    end = number(one.get("ub"), "the end of a derived row")
    need(end >= math.floor(b), "a derived row has a smaller end")
    return Row(terms, {}, None, end)


# --- Near-optimal lists --------------------------------------------------------------------------------------


def check_list(stated, tree, best):
    """Section "Near-optimal lists"; `best` is the recomputed objective."""
    given = stated.document["near_optimal"]
    need(isinstance(given, dict), "near_optimal is no mapping")
    need(set(given) <= {"complete", "gap", "size", "supports", "share"}, "near_optimal has an unknown field")
    need(isinstance(given.get("complete"), bool), "near_optimal.complete is neither true nor false")
    supports, gap, size = given.get("supports"), number_or_none(given.get("gap"), "gap"), given.get("size")
    need(isinstance(supports, list), "near_optimal.supports is no list")
    need(gap is None or gap >= 0, "near_optimal.gap is below 0")
    need(size is None or len(supports) <= whole(size, "near_optimal.size"), "more supports than near_optimal.size")
    listed = {}
    for one in supports:
        need(isinstance(one, dict), "a listed support is no mapping")
        chosen = chosen_of(stated, one.get("selected"))
        need(chosen not in listed, "a support is listed twice")
        z = stated.extras(one.get("extra") or {}, "a listed extra variable")
        need(stated.allows(chosen, z), "a listed support is none of S")
        value = value_of(stated, one.get("weights"), one.get("intercept"), dict.fromkeys(chosen, 1), "a listed support")
        said = number(one.get("objective"), "a listed objective")
        need(near(value, said), "the objective of a listed support is another one")
        need(near_gap(number(one.get("gap"), "gap"), said, best), "the gap of a listed support is another one")
        listed[chosen] = value
    need(chosen_of(stated, stated.document["selected"]) in listed or not supports, "the solution is not listed")
    times = [name for one in supports for name in one["selected"]]
    share = given.get("share")
    need(isinstance(share, dict) and set(share) == set(times), "shares of other features")
    need(all(near(Fraction(times.count(name), len(supports)), number(v, "share")) for name, v in share.items()), "shares")
    levels = {}
    for chosen, value in listed.items():
        levels[chosen] = best_line(tree, chosen)
        need(in_units(stated, value) - levels[chosen][0] <= TIED * abs(in_units(stated, value)), "a listed support is not bounded")
    if given["complete"]:
        check_complete(stated, tree, listed, levels, limit_of(stated, listed, gap, size, best))


def near_gap(said, value, best):
    """Whether a listed gap is (value − best)/|best|."""
    if best == 0:
        return value == best and said == 0
    return abs(said - (value - best) / abs(best)) <= 2 * CLOSE * (1 + abs(said))


def limit_of(stated, listed, gap, size, best):
    """The limit below which a complete list misses nothing, in the unit margin; None: all of S."""
    limits = [] if gap is None else [best + gap * abs(best)]
    if size is not None and len(listed) == size:
        limits.append(max(listed.values()) * (1 if max(listed.values()) == 0 else 1 - TIED / 1000))
    if not limits or (stated.rho and min(limits) >= 0):
        return None
    return in_units(stated, min(limits))


def in_units(stated, value):
    """A value of the ρ-form, −1/(4v), as v; any other as it is."""
    if not stated.rho:
        return value
    need(value < 0, "a value of the ρ-form is not below 0")
    return -1 / (4 * value)


def best_line(tree, chosen):
    """The most that a dual vector proves of one selection, and which."""
    found = []
    for d in range(tree.duals.count):
        g, terms = tree.duals.get(d)
        found.append((g + sum(tree.stated.cost[j] - terms[j] for j in chosen), d))
    need(found, "no dual vector bounds a listed support")
    return max(found)


def check_complete(stated, tree, listed, levels, limit):
    """Every selection that no leaf lifts above the limit is listed, or is as good as a smaller one that is."""

    def judge(node, state, ends, _):
        inside = [j for j, s in enumerate(state) if s == 1]
        free = [j for j, s in enumerate(state) if s == FREE]
        room = min(len(free), stated.M - len(inside))
        if sum(math.comb(len(free), k) for k in range(room + 1)) > MOST_SELECTIONS:
            raise Declined("too large: a leaf with very many selections")
        line = tree.line(tree.dual[node], tree.multiplier[node])
        for k in range(room + 1):
            for more in combinations(free, k):
                chosen = frozenset(inside + list(more))
                value = line.at(chosen, ends)
                if chosen in listed or (value is not None and limit is not None and value > limit):
                    continue
                if not stated.extra and not stated.allows(chosen, []):
                    continue
                need(any(is_tie(one, chosen) for one in listed), "a support within the limit is not listed")

    def is_tie(one, chosen):
        if not one < chosen:
            return False
        bound, d = levels[one]
        g, terms = tree.duals.get(d)
        value = g + sum(stated.cost[j] - terms[j] for j in chosen)
        return all(stated.cost[j] == 0 for j in chosen - one) and in_units(stated, listed[one]) - value <= TIED * abs(bound)

    tree.walk(limit if limit is None else limit + abs(limit) / 2**200, judge)


def chosen_of(stated, names):
    """Positions of selected atoms."""
    need(isinstance(names, list) and all(isinstance(s, str) and s in stated.atom for s in names), "an unknown selection")
    need(len(set(names)) == len(names), "an atom is selected twice")
    return frozenset(stated.atom[name] for name in names)


# --- Relaxations ---------------------------------------------------------------------------------------------


def check_relaxed(stated, bound):
    """Section "Relaxations": `lower` is proven, `upper` is the value at σ and the weights; returns whether it closed."""
    given = stated.document["relaxed"]
    need(isinstance(given, dict), "relaxed is no mapping")
    lower, upper = (number_or_none(given.get(key), f"relaxed.{key}") for key in ("lower", "upper"))
    need(lower is None or (bound is not None and lower <= bound + CLOSE * abs(bound)), "relaxed.lower is not proven")
    if upper is None:
        return False
    sigma = given.get("sigma")
    need(isinstance(sigma, dict) and set(sigma) <= set(stated.atom), "relaxed.sigma names no atoms")
    values = {stated.atom[name]: number(v, "relaxed.sigma") for name, v in sigma.items()}
    need(all(0 <= v <= 1 for v in values.values()), "relaxed.sigma is not from 0 to 1")
    if "mixture" in given:
        need(isinstance(given["mixture"], list), "relaxed.mixture is no list")
        total = dict.fromkeys(values, Fraction(0))
        shares = Fraction(0)
        for one in given["mixture"]:
            part, chosen = number(one.get("share"), "a share"), chosen_of(stated, one.get("selected"))
            need(part >= 0, "a share is below 0")
            z = stated.extras(one.get("extra") or {}, "an extra variable of a mixture") if stated.extra else []
            need(stated.allows(chosen, z), "a selection of the mixture is none of S")
            shares += part
            for j in chosen:
                total[j] = total.get(j, Fraction(0)) + part
        need(abs(shares - 1) <= CLOSE, "the shares of the mixture are not 1 in all")
        need(all(abs(total[j] - values.get(j, 0)) <= CLOSE for j in total), "σ is not the mixture")
    else:
        full = [values.get(j, Fraction(0)) for j in range(stated.p)]
        need(sum(full) <= stated.M + CLOSE * max(1, stated.M), "relaxed.sigma is more than M")
        need(all(abs(full[j] - value) <= CLOSE for j, value in stated.forced.items()), "relaxed.sigma: a forced atom")
        z = stated.extras(given.get("extra") or {}, "relaxed.extra") if stated.extra and False else None
        for row in stated.rows:
            if row.extra and z is None:
                continue
            slack = CLOSE * (1 + sum(abs(a) for a in row.terms.values()))
            total = sum(a * full[j] for j, a in row.terms.items())
            need(row.low is None or total >= row.low - slack, "relaxed.sigma breaks a row")
            need(row.high is None or total <= row.high + slack, "relaxed.sigma breaks a row")
    positive = {j: v for j, v in values.items() if v > 0}
    value = value_of(stated, given.get("weights"), given.get("intercept"), positive, "relaxed")
    need(near(value, upper), "relaxed.upper is another value")
    return lower is not None and closed(value, lower, stated.asked_gap)


def closed(upper, lower, gap):
    """Whether the gap is at most the asked one."""
    if upper == 0:
        return lower >= 0
    return (upper - lower) / abs(upper) <= gap + CLOSE * (1 + gap)


# --- The verdict ---------------------------------------------------------------------------------------------

STATUSES = ("OPTIMAL", "FEASIBLE", "RELAXED", "INFEASIBLE", "NO_SOLUTION", "NUMERICAL")


def check(document, arrays, data):
    """Check a document with the arrays of its sidecar against data; returns (status, objective, bound, gap) as floats.

    Raises `Rejected` or `Declined`.
    """
    need(isinstance(document, dict), "the document is no mapping")
    need(set(document) <= FIELDS, f"unknown fields {sorted(set(document) - FIELDS)}")
    need(document.get("schema") == 1 and not isinstance(document["schema"], bool), "an unknown schema")
    for key in ("params", "scaling", "labels", "columns", "certificate", "weights"):
        need(isinstance(document.get(key), dict), f"{key} is missing")
    status = document.get("status")
    need(status in STATUSES, "an unknown status")
    claimed = document["certificate"]
    need(set(claimed) <= {"kind", "bound", "gap", "file", "sha256", "found", "derived"}, "an unknown field of the certificate")
    need(claimed.get("kind") in ("tree", "relaxation"), "an unknown kind of certificate")
    need(document.get("data_sha256") == data.sha256(), "the data is other data (data_sha256), or read in another way")
    stated = Statement(document, arrays, data)
    stated.check_asked()
    need(number(claimed.get("gap"), "certificate.gap") == stated.asked_gap, "the certificate was asked for another gap")
    tree = Tree(document, arrays, stated)
    bound = number_or_none(claimed.get("bound"), "certificate.bound")
    if claimed["kind"] == "relaxation":
        used = {tree.dual[i] for i in range(tree.count) if tree.feature[i] == -1 and tree.dual[i] >= 0}
        need(len(used) <= 1 and SCREENED not in tree.feature, "a relaxation has one dual vector")
    prove(stated, tree, status, bound)
    check_columns(stated)
    objective = check_incumbent(stated, status)
    shut = check_relaxed(stated, bound) if document.get("relaxed") is not None else False
    if document.get("near_optimal") is not None:
        need(objective is not None, "near-optimal supports without an optimum")
        check_list(stated, tree, objective)
    return verdict(stated, status, objective, bound, shut)


def prove(stated, tree, status, bound):
    """Every leaf reaches the claimed bound."""

    def too_low(_node, _state, _ends, _value):
        raise Rejected("a leaf does not reach the bound")

    if bound is None and status != "INFEASIBLE":
        need(stated.document.get("bound") is None, "a bound that the certificate does not claim")
        return
    tree.walk(None if bound is None else in_units(stated, bound), too_low)


def check_columns(stated):
    """Where the features of the classifier stand."""
    document = stated.document
    needed = {stated.data.names[j] for name in document["selected"] if name in stated.atom for j in stated.columns[stated.atom[name]]}
    columns = document["columns"]
    need(all(stated.place.get(name, -1) == j and not isinstance(j, bool) for name, j in columns.items()), "columns are others")
    need(needed <= set(columns), "a selected feature has no column")
    for what in ("shift", "scale"):
        need(needed <= set(document["scaling"].get(what) or {}), f"a selected feature has no {what}")


def check_incumbent(stated, status):
    """The selection is one of S, and its weights have the stated objective; returns that, recomputed."""
    document = stated.document
    chosen = chosen_of(stated, document.get("selected"))
    if document.get("objective") is None:
        need(not chosen and not document["weights"] and document.get("intercept") is None, "a classifier without a value")
        return None
    values = {name: one.get("value") for name, one in (document.get("extra") or {}).items()}
    need(stated.allows(chosen, stated.extras(values, "an extra variable")), "the selection is none of S")
    value = value_of(stated, document["weights"], document.get("intercept"), dict.fromkeys(chosen, 1), "the classifier")
    need(near(value, number(document["objective"], "objective")), "the objective is another one")
    return value


def verdict(stated, status, objective, bound, shut):
    """Status and gap by what was proven."""
    document = stated.document
    said = number_or_none(document.get("bound"), "bound")
    need(said is None or (bound is not None and said <= bound + CLOSE * abs(bound)), "the bound is above the proven one")
    gap = None
    if objective is not None and bound is not None:
        shown = objective if said is None else said
        gap = Fraction(0) if objective == bound else None if objective == 0 else (objective - bound) / abs(objective)
        need(bound - objective <= CLOSE * abs(objective), "the bound is above the objective")
        own = None if objective == 0 else (objective - shown) / abs(objective)
        told = number_or_none(document.get("gap"), "gap")
        need(said is None or told is None or own is None or abs(told - own) <= max(abs(own) / 1000, 3 * CLOSE), "the gap is another one")
    if status == "OPTIMAL":
        need(objective is not None and bound is not None and closed(objective, bound, stated.asked_gap), "not optimal: the gap is open")
    elif status == "RELAXED":
        need(shut, "the relaxation is not solved to the asked gap")
    elif status == "INFEASIBLE":
        need(objective is None and bound is None and said is None, "infeasible, with a value")
    elif status == "FEASIBLE":
        need(objective is not None, "feasible, without a value")
    else:
        need(objective is None, "no solution, with a value")
    return status, *(None if v is None else float(v) for v in (objective, bound, gap))


def guarded(document, arrays, data):
    """("accepted", the numbers), ("rejected", why) or ("declined", why)."""
    try:
        return "accepted", check(document, arrays, data)
    except Rejected as error:
        return "rejected", str(error)
    except Declined as error:
        return "declined", str(error)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError) as error:
        return "rejected", f"the document is malformed: {type(error).__name__} {error}"
    except (MemoryError, RecursionError):
        return "declined", "too large"


def load(text):
    """A JSON text without NaN, Infinity or a name that stands twice."""

    def once(pairs):
        need(len({name for name, _ in pairs}) == len(pairs), "the JSON has a name twice")
        return dict(pairs)

    def never(word):
        raise Rejected(f"the JSON has {word}")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=never)
    except (ValueError, RecursionError) as error:
        raise Rejected(f"not JSON: {error}") from None


def main(argv):
    """The command line; see the module."""
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    path = Path(argv[0])
    try:
        document = load(path.read_text("utf-8"))
        entry = document.get("certificate") if isinstance(document, dict) else None
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            raise Declined("the document has no certificate beside it")
        content = (path.parent / Path(entry["file"]).name).read_bytes()
        need(hashlib.sha256(content).hexdigest() == entry.get("sha256"), "the sidecar is another file (sha256)")
        found = guarded(document, read_archive(path.parent / Path(entry["file"]).name), read_data(argv[1], document))
    except (OSError, UnicodeDecodeError) as error:
        found = "declined", f"cannot be read: {error}"
    except Rejected as error:
        found = "rejected", str(error)
    except Declined as error:
        found = "declined", str(error)
    word, what = found
    if word != "accepted":
        print(f"{word}: {what}")
        return 1 if word == "rejected" else 2
    status, objective, bound, gap = what
    print(f"accepted: {status}, objective {objective}, bound {bound}, gap {gap}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
