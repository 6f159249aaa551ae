"""Mutations of files: bytes, lines, numbers and words of texts, nodes of JSON, arrays of npz, what compression wraps.

Every one takes a generator of random numbers and the contents of a file, and gives other contents. None needs to
know what the file is for; `mutated` chooses by the suffix and goes on with what it made, a few times.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import random
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib import format as npy

Mutation = Callable[[random.Random, bytes], bytes]

NUMBERS = (
    b"0", b"-0", b"-1", b"1", b"2", b"1e308", b"-1e308", b"1e309", b"1e-320", b"5e-324", b"9007199254740993", b"1e15",
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"-9223372036854775809", b"4294967296",
    b"2147483648", b"1000000000000", b"99999999", b"100000001", b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"1_000",
    b"0x1p3", b"1e", b"+1", b"--1", b"1.5", b".5", b"5.", b"1,5", b"01", b"1e+5", b"9" * 400, b"0." + b"1" * 400,
    b"1" + b"0" * 5000, b"\xd9\xa1", b"true", b"null", b"1e99999999999",
)  # fmt: skip
"""Numbers at the ends of what types hold, sizes that lie, and what only looks like a number."""
WORDS = (
    b"=cmd|' /C calc'!A0", b"=1+1", b"+1+1", b"-1+1", b"@SUM(A1)", b"\x1b[31mred\x1b[0m", b"\x1b]0;title\x07",
    b"<script>alert(1)</script>", b'"><img src=x onerror=alert(1)>', b"\\input{/etc/passwd}", b"$x^2$", b"%s%n", b"{}",
    b"../../../../etc/passwd", b"/dev/zero", b"\xe2\x80\xae", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80",
    b"\xff\xfe", b"\0", b"\r", b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\xc2\x85", b"\xe2\x80\xa8", b"\x7f", b"'", b'"',
    b'""', b",", b";", b"\t", b"|", b":", b"#", b"\\", b"\n", b"\n\n", b" ", b"[", b"]", b"{", b"}", b"=", b"NA", b"?",
    b"label", b"bag", b"sample_weight", b"x1", b"qid:", b"1:", b":1", b"99999999999:1", b"__proto__", b"", b"  ",
)  # fmt: skip
"""What terminals, browsers, spreadsheets, TeX and shells obey, what separates, and names that mean something here."""
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 0.5, -0.0, 1e308, 5e-324, 10**12, 2**53 + 1, 2**63, 10**400, "", "x", "x1", "..",
    "/etc/passwd", "a\0b", "\ud800", "\x1b[2J", "=1+1", "<b>", "nan", [], [1], ["x"], [[]], {}, {"a": 1}, [None], "1",
)  # fmt: skip
"""Values that a JSON may hold where another was meant."""
SHAPES = (
    "(1000000000000,)", "(-1,)", "(0,)", "()", "(2, 3, 4)", "(1.5,)", "(9223372036854775807,)",
    "(4294967296, 4294967296)", "(1000000, 1000000)", "(True,)", "('a',)", "(" * 200, "(9" * 50, "(1000000000,)",
    "(3, 0)",
)  # fmt: skip
TYPES = (
    "'<f8'", "'>f8'", "'|O'", "'<U0'", "'<U1000000000'", "'<i8'", "'|b1'", "'<c16'", "[('a', '<f8')]", "'x'",
    "'<M8[s]'", "'|S1'", "'|V8'", "'<f2'", "'<u8'", "'|u1'",
)  # fmt: skip
NUMBER = re.compile(rb"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
WORD = re.compile(rb"[A-Za-z_]\w*")
NUMPY_DTYPES = ("f4", "f8", "i4", "i8", "u1", "u8", "b1", "S3", "U3", "c16", ">f8", "f2")
MOST_BYTES = 1 << 18
"""Of a mutated file, but for the ones that unpack to more."""
BOMB = 64 << 20
"""Bytes to which one of them unpacks."""


def _cut(r: random.Random, size: int) -> tuple[int, int]:
    """A short or a long part of so much."""
    at = r.randrange(size + 1)
    return at, min(size, at + (r.randrange(1, 9) if r.random() < 0.8 else r.randrange(size + 1)))


# --- bytes ---------------------------------------------------------------------------------------------------


def flipped(r: random.Random, content: bytes) -> bytes:
    """Some bits."""
    found = bytearray(content)
    for _ in range(r.randrange(1, 6) if found else 0):
        found[r.randrange(len(found))] ^= 1 << r.randrange(8)
    return bytes(found)


def overwritten(r: random.Random, content: bytes) -> bytes:
    """Some bytes by any others."""
    at, end = _cut(r, len(content))
    return content[:at] + r.randbytes(min(16, end - at)) + content[end:]


def inserted(r: random.Random, content: bytes) -> bytes:
    """A word of `WORDS`, here or there, in place of a little or nothing."""
    at, end = _cut(r, len(content))
    return content[:at] + r.choice(WORDS) + content[at if r.random() < 0.6 else min(end, at + 4) :]


def spliced(r: random.Random, content: bytes) -> bytes:
    """A part of it at another place."""
    at, end = _cut(r, len(content))
    to = r.randrange(len(content) + 1)
    return content[:to] + content[at:end] + content[to:]


def deleted(r: random.Random, content: bytes) -> bytes:
    """Without a part."""
    at, end = _cut(r, len(content))
    return content[:at] + content[end:]


def truncated(r: random.Random, content: bytes) -> bytes:
    """Its beginning."""
    return content[: r.randrange(len(content) + 1)]


def repeated(r: random.Random, content: bytes) -> bytes:
    """A part many times."""
    at, end = _cut(r, len(content))
    part = content[at:end]
    return content[:at] + part * min(r.choice((2, 3, 100, 5000)), 1 + MOST_BYTES // (1 + len(part))) + content[end:]


def swept(r: random.Random, content: bytes) -> bytes:
    """Every occurrence of one byte by another one."""
    if not content:
        return content
    return content.replace(
        bytes([r.choice(content)]), r.choice((b"", b"\0", b"\n", b"\r\n", b" ", b",", b"\xff", b"9"))
    )


BYTES: tuple[Mutation, ...] = flipped, overwritten, inserted, spliced, deleted, truncated, repeated, swept


# --- texts ---------------------------------------------------------------------------------------------------


def another_number(r: random.Random, content: bytes) -> bytes:
    """A number by one of `NUMBERS`."""
    places = list(NUMBER.finditer(content))
    if not places:
        return inserted(r, content)
    at = r.choice(places)
    return content[: at.start()] + r.choice(NUMBERS) + content[at.end() :]


def another_word(r: random.Random, content: bytes) -> bytes:
    """A word by one of `WORDS`, or by another word of the text."""
    places = list(WORD.finditer(content))
    if not places:
        return inserted(r, content)
    at = r.choice(places)
    new = r.choice(WORDS) if r.random() < 0.6 else r.choice(places).group()
    return content[: at.start()] + new + content[at.end() :]


def lines(r: random.Random, content: bytes) -> bytes:
    """A line gone, twice, elsewhere, joined with the next, or all in another order."""
    found = content.split(b"\n")
    k, turn = r.randrange(len(found)), r.randrange(6)
    if turn == 0:
        del found[k]
    elif turn == 1:
        found.insert(r.randrange(len(found) + 1), found[k])
    elif turn == 2:
        found.insert(r.randrange(len(found)), found.pop(k))
    elif turn == 3:
        found[k : k + 2] = [b"".join(found[k : k + 2])]
    elif turn == 4:
        found[k] *= r.choice((2, 10, 1000)) if len(found[k]) < 200 else 2
    else:
        r.shuffle(found)
    return b"\n".join(found)


def encoded(r: random.Random, content: bytes) -> bytes:
    """In another encoding, with a mark of byte order or other ends of lines."""
    text = content.decode("utf-8", "replace")
    turn = r.randrange(7)
    if turn < 4:
        return text.encode(("utf-16", "utf-16-be", "utf-32", "utf-8-sig")[turn], "replace")
    if turn == 4:
        return text.replace("e", "é").encode("latin-1", "replace")
    return content.replace(b"\n", b"\r" if turn == 5 else b"\r\n")


TEXTS: tuple[Mutation, ...] = another_number, another_number, another_word, lines, lines, inserted, inserted, encoded
LP_WORDS = (
    b"<=", b">=", b"=", b"<", b"=<", b"free", b"integer", b"binary", b"bounds", b"subject to", b"st", b"end", b"min",
    b"max", b"obj:", b"sos", b"[ x1 ^ 2 ]", b"extra_a", b"extra_b", b"infinity", b"-inf", b"+inf", b"x1", b"x2", b"x9",
    b"x99999999999999999999", b"general", b"semi-continuous", b"\\ comment", b"3 x1 x2", b"-> ", b"1e30", b"1e20",
)  # fmt: skip
TOML_LINES = (
    b'data: label = "a"', b"data: positive = nan", b'data: impute = "median"', b'data: impute = { "*" = "level" }',
    b'data: types = { a = "date" }', b'data: types = { "=1" = "percent" }', b"data: drop = ['a', 'b']",
    b"data: use = ['zz']", b"data: class_weight = 'balanced'", b"data: class_weight = { yes = 1e308 }",
    b"data: words = ['a']", b"data: source = 1", b'data: scale = "log"', b'data: types = { a = "currency", a = 1 }',
    b"data: class_weight = { yes = nan, no = -1 }", b"select: M = 2", b"select: M = 1000000000000",
    b"select: budget = nan", b"select: budget = -inf", b"select: M = true", b'select: implies = [["a"]]',
    b'select: implies = [["a", "a"]]', b'select: conflicts = [["a", "a"]]', b"select: at_most = [{ k = 1 }]",
    b"select: at_most = [{ k = 9223372036854775808, of = ['a'] }]",
    b"select: exactly = [{ k = 1.5, of = ['a', 'a'] }]", b"select: exactly = [{ k = -1, of = ['a'], x = 1 }]",
    b"select: at_least = [{ k = 9, of = [] }]", b"select: at_least = [{ k = 1e308, of = ['a'] }]",
    b"select: budget = 1e308", b'select: forced_in = ["a"]', b'select: forced_out = ["a", ""]',
    b"select: forced_in = [1979-05-27]", b'features: names = ["a", "a"]',
    b'features: names = ["=1+1", "\\u001b[31m", "<b>"]', b"features: names = []", b"features: names = [[]]",
    b'features: names = ["a\\nb", "\\u2028", " "]', b"cost: a = 1e308", b"cost: a = -0.0", b"cost: a = nan",
    b'cost: "" = 1', b"cost: a = 1979-05-27", b"cost: a.b.c = 1", b"penalty: a = 1e-320", b"penalty: a = inf",
    b"penalty: zz = 1", b"penalty: a = 9223372036854775808", b"weights: box = 0", b"weights: bounds = { a = [1, 2] }",
    b"weights: bounds = { a = [nan, 1] }", b"weights: bounds = { a = [-1e308, 1e308] }",
    b"weights: nonnegative = ['a', 'a']", b"weights: nonpositive = ['a']", b"weights: bounds = { a = [0, 0] }",
    b"weights: box = 5e-324", b"weights: box = nan", b"groups: g = []", b'groups: g = ["a", "zz"]',
    b'groups: g = ["a", "a"]', b'groups: "" = ["a"]', b'groups: a = ["a"]', b"groups: h = [1]",
    b"generator: x = [" + b"[" * 2000 + b"]" * 2000 + b"]",
)  # fmt: skip
"""Lines of a description, each with its table."""
TOML_VALUES = (
    b"[]", b"{}", b"''", b"true", b"1979-05-27T07:32:00Z", b"[['a']]", b"{ a = 1 }", b"{ a = [] }", b"['a', 1]",
    b"-1", b"0", b"1e309", b"nan", b"-inf", b"0x7fffffffffffffff", b"9223372036854775807", b"'a'", b"['a']",
    b"'=1+1'", b'"\\u202e"', b"1.0",
)  # fmt: skip


def with_lp_words(r: random.Random, content: bytes) -> bytes:
    """A word of the LP format somewhere."""
    at, end = _cut(r, len(content))
    return content[:at] + b" " + r.choice(LP_WORDS) + b" " + content[at if r.random() < 0.6 else min(end, at + 6) :]


def with_toml_lines(r: random.Random, content: bytes) -> bytes:
    """A line of a description in its table, in place of the one with the same key at times."""
    table, _, line = r.choice(TOML_LINES).partition(b": ")
    found = content.split(b"\n")
    head = b"[" + table + b"]"
    if head not in found:
        return content.rstrip(b"\n") + b"\n" + head + b"\n" + line + b"\n"
    key = line.partition(b"=")[0]
    if r.random() < 0.8:
        found = [one for one in found if not one.startswith(key)]
    found.insert(found.index(head) + 1, line)
    return b"\n".join(found)


def another_value(r: random.Random, content: bytes) -> bytes:
    """A key of a description with another value."""
    found = content.split(b"\n")
    places = [k for k, line in enumerate(found) if b"=" in line]
    if places:
        k = r.choice(places)
        key, _, value = found[k].partition(b"=")
        new = r.choice(TOML_VALUES)
        found[k] = key + b"= " + (b"[" + value + b", " + new + b"]" if r.random() < 0.2 else new)
    return b"\n".join(found)


# --- JSON ----------------------------------------------------------------------------------------------------


def tree(r: random.Random, content: bytes) -> bytes:
    """One to three nodes of a JSON, or of one line of several, by something else."""
    parts = content.split(b"\n") if content.count(b"\n{") else [content]
    k = r.randrange(len(parts))
    begin = parts[k].find(b"{")
    try:
        document = json.loads(parts[k][max(0, begin) :])
    except (ValueError, RecursionError):
        return another_number(r, content)
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        document = _changed(r, document)
    parts[k] = parts[k][: max(0, begin)] + json.dumps(document).encode("utf-8", "surrogatepass")
    return b"\n".join(parts)


def _changed(r: random.Random, document: Any) -> Any:
    """A document with one node changed."""
    holder, key = None, None
    place = document
    while isinstance(place, (dict, list)) and place and (holder is None or r.random() < 0.75):
        holder, key = place, r.choice(list(place)) if isinstance(place, dict) else r.randrange(len(place))
        place = holder[key]
    if holder is None:
        return r.choice(ODD)
    turn = r.randrange(9)
    if turn == 0:
        del holder[key]
    elif turn == 1 and isinstance(holder, list):
        holder.extend(holder[:] * r.choice((1, 50)))
    elif turn == 1:
        holder[r.choice(WORDS).decode("utf-8", "replace")] = holder.pop(key)
    elif turn == 2:
        holder[key] = [place] if r.random() < 0.5 else {"x": place}
    elif turn == 3 and isinstance(place, (int, float)) and abs(place) < 1e300:
        holder[key] = place * r.choice((-1, 0, 2, 0.5, 1 + 1e-9, 1 - 1e-9, 1e300)) + r.choice((0, 0, 1, -1))
    elif turn == 4 and isinstance(place, str):
        holder[key] = place + r.choice(WORDS).decode("utf-8", "replace")
    elif turn == 5:
        holder[key] = _nested(r)
    elif turn == 6:
        holder[key] = _some_node(r, document)
    else:
        holder[key] = r.choice(ODD)
    return document


def _nested(r: random.Random) -> Any:
    deep: Any = 1
    for _ in range(r.choice((3, 30, 500))):
        deep = [deep] if r.random() < 0.5 else {"a": deep}
    return deep


def _some_node(r: random.Random, document: Any) -> Any:
    """A copy of another node of the document."""
    place = document
    while isinstance(place, (dict, list)) and place and r.random() < 0.8:
        place = r.choice(list(place.values()) if isinstance(place, dict) else place)
    return json.loads(json.dumps(place))


def deep(r: random.Random, content: bytes) -> bytes:
    """Nested as nothing is."""
    return r.choice((b"[", b'{"a":', b'[{"b":')) * r.choice((50, 2000))


JSONS: tuple[Mutation, ...] = tree, tree, tree, tree, tree, tree, another_number, inserted, deep


# --- npz -----------------------------------------------------------------------------------------------------


def forged(header: str, body: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    """An .npy of any header."""
    text = header.encode("latin-1", "replace") + b"\n"
    size = len(text).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + version + size + text + body


def array(r: random.Random, content: bytes) -> bytes:
    """An .npy with other values, another type or shape, or a header that lies."""
    try:
        found = npy.read_array(io.BytesIO(content), allow_pickle=False)
    except Exception:
        return flipped(r, content)
    turn = r.randrange(4)
    if turn == 0:
        shape = r.choice(SHAPES) if r.random() < 0.7 else str(found.shape)
        descr = r.choice(TYPES) if r.random() < 0.5 else repr(found.dtype.str)
        order = r.choice(("False", "False", "True", "2"))
        header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
        body = found.tobytes() if r.random() < 0.7 else b""
        return forged(header, body, r.choice((b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00")))
    stream = io.BytesIO()
    try:
        with np.errstate(all="ignore"):
            npy.write_array(stream, np.asarray(_other(r, found)), allow_pickle=False)
    except (ValueError, TypeError, OverflowError, MemoryError):
        return flipped(r, content)
    return stream.getvalue()


def _other(r: random.Random, found: Any) -> Any:
    """Another array."""
    moves: tuple[Callable[[], Any], ...] = (
        lambda: found[:-1],
        lambda: np.concatenate([found, found]),
        lambda: found[::-1],
        lambda: found[None],
        lambda: found.ravel()[:0],
        lambda: found.astype(r.choice(NUMPY_DTYPES)),
        lambda: np.broadcast_to(found.ravel()[:1], found.shape),
        lambda: found.reshape(-1),
    )
    if r.random() < 0.4 or found.size == 0 or found.dtype.kind not in "fiub":
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return r.choice(moves)()
        except (ValueError, IndexError, TypeError, UnicodeEncodeError):
            return found.ravel()[:0]
    values = found.copy().reshape(-1)
    info = np.iinfo(found.dtype) if found.dtype.kind in "iu" else None
    for _ in range(r.choice((1, 1, 2, 5))):
        if info is not None:
            old = int(values[k := r.randrange(values.size)])
            new = r.choice((0, 1, -1, -2, old + 1, old - 1, old ^ (1 << r.randrange(8)), info.max, info.min, 1 << 30))
            values[k] = min(max(new, int(info.min)), int(info.max))
        else:
            values[r.randrange(values.size)] = r.choice(
                (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-200, 1e200, 1.7e308, np.inf, np.nan)
            )
    return values.reshape(found.shape)


def archive(r: random.Random, content: bytes) -> bytes:
    """An .npz with one array of another kind, gone, twice or under another name."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            members = [(name, packed.read(name)) for name in packed.namelist()]
    except Exception:
        return flipped(r, content)
    for _ in range(r.choice((1, 1, 1, 2)) if members else 0):
        k, turn = r.randrange(len(members)), r.randrange(12)
        name, held = members[k]
        if turn == 0 and len(members) > 1:
            del members[k]
        elif turn == 1:
            other = r.choice(members)[0] if r.random() < 0.5 else r.choice(WORDS).decode("utf-8", "replace") + ".npy"
            members[k] = other, held
        elif turn == 2:
            members[k] = name, r.choice(BYTES)(r, held)
        else:
            members[k] = name, array(r, held)
    return packed_as(members, r.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def packed_as(members: Sequence[tuple[str, bytes]], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file of these, always the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as packed:
        for name, held in members:
            if "\0" not in name and packed.NameToInfo.get(name) is None:
                packed.writestr(zipfile.ZipInfo(name or "x"), held, how)
    return stream.getvalue()


def bomb(r: random.Random, content: bytes) -> bytes:
    """An archive of one array that unpacks to much, or claims more."""
    size = r.choice((1 << 20, BOMB // 8))
    body = np.zeros(size).tobytes() if r.random() < 0.5 else b""
    name = r.choice(("X.npy", "y.npy", "data.npy", "about.npy", "dual_bytes.npy"))
    shape = f"({size},)" if r.random() < 0.5 else f"({size // 4}, 4)"
    return packed_as([(name, forged(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}", body))])


ARCHIVES: tuple[Mutation, ...] = (archive,) * 60 + (flipped, truncated, deleted, overwritten) * 5 + (bomb,)
ARRAYS: tuple[Mutation, ...] = (array,) * 8 + (flipped, truncated, inserted)


# --- compressed ----------------------------------------------------------------------------------------------


def unpacked(content: bytes) -> tuple[bytes, Callable[[bytes], bytes] | None]:
    """The contents of a compressed file, and what compresses."""
    try:
        if content[:2] == b"\x1f\x8b":
            return gzip.decompress(content), lambda text: gzip.compress(text, mtime=0)
        if content[:3] == b"BZh":
            return bz2.decompress(content), bz2.compress
    except (OSError, EOFError, ValueError, zlib.error):
        pass
    return content, None


def compressed(inner: Sequence[Mutation]) -> Mutation:
    """Of a compressed file: what it holds, or the file as it is, or much that is packed into little."""

    def mutation(r: random.Random, content: bytes) -> bytes:
        if r.random() < 0.3:
            return r.choice(BYTES)(r, content)
        text, pack = unpacked(content)
        if pack is None:
            return r.choice(BYTES)(r, content)
        if r.random() < 0.03:
            return pack(r.choice((b"\0" * 64, b"1" * 64, b"1 1:1\n", b"a,", b"\n" * 16)) * (BOMB >> 9))
        return pack(r.choice(inner)(r, text)) + (b"" if r.random() < 0.9 else content[:20])

    return mutation


# --- the choice ----------------------------------------------------------------------------------------------

BY_SUFFIX: dict[str, tuple[Mutation, ...]] = {
    ".svm": TEXTS,
    ".csv": TEXTS,
    ".txt": TEXTS,
    ".lp": (*TEXTS, *(with_lp_words,) * 6),
    ".toml": (*TEXTS, *(with_toml_lines,) * 16, *(another_value,) * 8),
    ".json": JSONS,
    ".jsonl": (*JSONS, lines, lines),
    ".points": (*JSONS, lines, lines),
    ".npz": ARCHIVES,
    ".npy": ARRAYS,
    ".parquet": BYTES,
    ".gz": (compressed(TEXTS),),
    ".bz2": (compressed(TEXTS),),
}
OFTEN_BYTES = 0.1
"""How often one of `BYTES` is taken, whatever the suffix."""


def mutated(r: random.Random, name: str, content: bytes) -> bytes:
    """Other contents of a file, by one mutation or several."""
    suffix = name[name.rfind(".") :] if "." in name else ".svm"
    for _ in range(r.choice((1, 1, 1, 1, 1, 2, 3))):
        kinds = BYTES if r.random() < OFTEN_BYTES else BY_SUFFIX.get(suffix, BYTES)
        content = r.choice(kinds)(r, content)
        if suffix in (".gz", ".bz2"):
            continue
        content = content[:MOST_BYTES]
    return content
