"""Files that would take far more memory or time than their bytes and their data need: what any reader may be given.

Every one is a folder, as of `tests.fuzz_targets`, with the command line that reads it. `tests/test_bombs.py` runs them,
and the fuzzer puts them among its inputs.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests.fuzz_targets import (
    Files,
    checkpoint_seeds,
    kept,
    npz_bytes,
    points_seeds,
    sealed_points,
    store_seeds,
)

MUCH = 1 << 30
"""Bytes that a small file unpacks to."""
PIECE = 1 << 22
SMALL = b"a,b,label\n1,2,x\n3,4,y\n0,1,y\n"
SOLVE = ("solve", "fsp-m", "-p", "M=2", "-p", "C=1", "--time-limit", "2", "--gap", "1e-2")


@dataclass(frozen=True)
class Bomb:
    """A folder, what reads it, and how that ends.

    Attributes
    ----------
    target : of `tests.fuzz_targets`, whose reader takes such a folder
    command : tuple of str
    files : callable, makes the folder
    code : exit code
    says : what stands in the message
    """

    target: str
    command: tuple[str, ...]
    files: Callable[[], Files]
    code: int = 2
    says: str = ""


# --- archives ------------------------------------------------------------------------------------------------


def header(shape: str, descr: str = "|u1") -> bytes:
    """The header of an .npy file, whatever it claims."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@cache
def zeros(size: int, head: bytes = b"", how: int = zipfile.ZIP_DEFLATED) -> tuple[bytes, int, int]:
    """A head and zeros, compressed as a member of an archive is: its bytes, CRC-32 and size."""
    crc = zlib.crc32(head)
    for at in range(0, size, PIECE):
        crc = zlib.crc32(bytes(min(PIECE, size - at)), crc)
    if how == zipfile.ZIP_DEFLATED:  # what is flushed stands for itself, and may stand again and again
        parts = [_deflated(head), _deflated(bytes(PIECE)) * (size // PIECE), _deflated(bytes(size % PIECE))]
        return b"".join([*parts, b"\x03\x00"]), crc, len(head) + size
    pack = bz2.BZ2Compressor()
    body = [pack.compress(head), *(pack.compress(bytes(PIECE)) for _ in range(size // PIECE)), pack.flush()]
    return b"".join(body), crc, len(head) + size


def _deflated(content: bytes) -> bytes:
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    return pack.compress(content) + pack.flush(zlib.Z_FULL_FLUSH)


def archive(members: Mapping[str, bytes | tuple[bytes, int, int]], said: int | None = None, how: int = 8) -> bytes:
    """A zip of members; a compressed one is a tuple of `zeros`, whose size may be `said` to be another."""
    stream = io.BytesIO()
    entries = []
    for name, member in members.items():
        body, crc, size = member if isinstance(member, tuple) else (member, zlib.crc32(member), len(member))
        method = how if isinstance(member, tuple) else 0
        size = said if said is not None and isinstance(member, tuple) else size
        fields = struct.pack("<HHHHHIII", 20, 0, method, 0, 33, crc, len(body), size)
        start = stream.tell()
        stream.write(b"PK\x03\x04" + fields + struct.pack("<HH", len(name), 0) + name.encode() + body)
        entries.append(
            b"PK\x01\x02" + struct.pack("<H", 20) + fields
            + struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, start) + name.encode()
        )  # fmt: skip
    directory = stream.tell()
    stream.write(b"".join(entries))
    size = stream.tell() - directory
    stream.write(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), size, directory, 0))
    return stream.getvalue()


def members_of(content: bytes) -> dict[str, bytes]:
    """What an archive holds."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def _result(content: Callable[[bytes], bytes]) -> Files:
    """The kept result of a table with another certificate, whose digest the JSON names."""
    files = kept("table.csv", "table.toml", r__json="hinge.json", r__cert__npz="hinge.cert.npz")
    made = content(files["r.cert.npz"])
    document = json.loads(files["r.json"])
    document["certificate"] |= {"file": "r.cert.npz", "sha256": hashlib.sha256(made).hexdigest()}
    return files | {"r.cert.npz": made, "r.json": json.dumps(document).encode()}


def _path(content: Callable[[bytes], bytes]) -> Files:
    """The kept path with another archive, whose digest and those of its members the JSON names."""
    files = kept("table.csv", "table.toml", r__json="path.json", r__cert__npz="path.cert.npz")
    made = content(files["r.cert.npz"])
    document = json.loads(files["r.json"])
    document["certificate"] |= {"file": "r.cert.npz", "sha256": hashlib.sha256(made).hexdigest()}
    with zipfile.ZipFile(io.BytesIO(made)) as held:
        for k, point in enumerate(document["points"]):
            entry = point["result"]["certificate"]
            entry["file"] = "r.cert.npz"
            if held.getinfo(f"{k}.cert.npz").compress_type == zipfile.ZIP_STORED:
                entry["sha256"] = hashlib.sha256(held.read(f"{k}.cert.npz")).hexdigest()
    return files | {"r.cert.npz": made, "r.json": json.dumps(document).encode()}


def stranger(old: bytes) -> bytes:
    """A gigabyte of zeros beside what belongs there."""
    return archive(members_of(old) | {"zz.npy": zeros(MUCH, header(f"({MUCH},)"))})


def many_nodes(old: bytes) -> bytes:
    """A tree of 50 million nodes, all of them zeros."""
    n = MUCH // 20
    large = {"feature": f"({n},)", "children": f"({n}, 2)", "dual": f"({n},)", "multiplier": f"({n},)"}
    return archive(
        members_of(old)
        | {
            f"{name}.npy": zeros(n * (8 if name == "children" else 4), header(shape, "<i4"))
            for name, shape in large.items()
        }
    )


def many_vectors(old: bytes) -> bytes:
    """Dual vectors without end, each zero."""
    held = {name.removesuffix(".npy"): np.load(io.BytesIO(one)) for name, one in members_of(old).items()}
    n = 300_000
    size = 3  # of 24 samples, none of them in it
    held |= {
        "dual_q": np.zeros(n, np.int32),
        "dual_start": size * np.arange(n + 1, dtype=np.int64),
        "dual_bytes": np.zeros(size * n, np.uint8),
        "dual_level": np.zeros(n, np.int64),
        "dual_width": np.zeros(n, np.uint8),
    }
    return npz_bytes(**held)


# --- checkpoints and others ----------------------------------------------------------------------------------


def _state(content: Callable[[bytes], bytes]) -> Files:
    files = dict(checkpoint_seeds()["branch"])
    return files | {"s.npz": content(files["s.npz"])}


def _points() -> Files:
    """A certificate in a line that unpacks to a gigabyte."""
    made = dict(points_seeds()["points"])
    lines = made["p.points"].split(b"\n")
    found = []
    for line in lines[:-1]:
        said, _, body = line.partition(b" ")
        document = json.loads(body)
        if document.get("certificate"):
            document["certificate"] = base64.b64encode(stranger(base64.b64decode(document["certificate"]))).decode()
        found.append(said + b" " + json.dumps(document).encode())
    files = sealed_points({"p.points": b"\n".join(found) + b"\n"})
    return kept("table.csv", "table.toml") | dict(files)


def _store(change: Callable[[dict[str, Any]], object], names: bytes | None = None) -> Files:
    files = dict(store_seeds()["words"])
    document = json.loads(files["s/manifest.json"])
    change(document)
    return files | {"s/manifest.json": json.dumps(document).encode()}


# --- data ----------------------------------------------------------------------------------------------------


def _gz(text: bytes, size: int = MUCH) -> bytes:
    """A text again and again, in gzip, of which a file may hold many one after the other."""
    return gzip.compress(text * (PIECE // len(text)), mtime=0) * (size // PIECE)


def _bz2(text: bytes, size: int = MUCH) -> bytes:
    return bz2.compress(text * (PIECE // len(text))) * (size // PIECE)


def wide_cell() -> bytes:
    """One long word in a column of short ones."""
    rows = [f"{k % 7},{'abc'[k % 3]},{k % 2}" for k in range(20_000)]
    rows[7] = f"1,{'w' * 100_000},1"
    return ("a,b,label\n" + "\n".join(rows) + "\n").encode()


def wide_label() -> bytes:
    """One long word among the labels."""
    return b"a,b,label\n" + b"1,2,x\n2,1,y\n" * 10_000 + b"3,3," + b"x" * 100_000 + b"\n"


def many_columns(p: int = 200_000) -> bytes:
    """A table of more columns than anyone looks at."""
    names = ",".join(f"c{k}" for k in range(p))
    rows = (f"{','.join(['1', '0'] * (p // 2))},{label}" for label in "xyxy")
    return f"{names},label\n{chr(10).join(rows)}\n".encode()


def blanks() -> bytes:
    """A cell that says no amount, in a way that takes long to see."""
    cell = "1" + " " * 60_000 + "x"
    return f"a,b,label\n{cell},1,x\n{cell}y,2,y\n3,1,x\n".encode()


def dense_npz() -> bytes:
    """A matrix of zeros."""
    y = npz_bytes(y=np.array([1, -1, 1, -1], dtype=np.int8))
    return archive({"X.npy": zeros(MUCH, header(f"(4, {MUCH // 32})", "<f8"))} | members_of(y))


def narrow_npz(p: int) -> bytes:
    """A sparse matrix of two entries and columns that nobody has."""
    arrays = {"format": np.array("coo"), "shape": np.array([4, p]), "data": np.ones(4)}
    return npz_bytes(**arrays, row=np.arange(4), col=np.array([0, 1, 0, p - 1]), y=np.array([1, -1, 1, -1]))


def wide_names() -> bytes:
    """Names of two features with room for a gigabyte."""
    size = MUCH // 8
    arrays = members_of(npz_bytes(X=np.eye(4)[:, :2], y=np.array([1, -1, 1, -1])))
    return archive(arrays | {"feature_names.npy": zeros(MUCH, header("(2,)", f"<U{size}"))})


def _parquet(**columns: Any) -> bytes:
    import pyarrow
    import pyarrow.parquet

    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream, compression="zstd", use_dictionary=True)
    return stream.getvalue()


def long_word_parquet() -> bytes:
    """A dictionary of two words, one of them long, and many rows."""
    import pyarrow as pa

    n = 200_000
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1] * (n // 2), pa.int32()), pa.array(["w" * 10_000, "a"]))
    return _parquet(a=words, b=np.arange(n) % 3, label=np.arange(n) % 2)


def many_rows_parquet() -> bytes:
    """Very many rows of the same number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    n = 1 << 22
    part = pa.table({f"c{k}": np.zeros(n, np.int8) for k in range(15)} | {"label": np.arange(n, dtype=np.int8) % 2})
    with pq.ParquetWriter(stream, part.schema, compression="zstd") as writer:
        for _ in range(2):
            writer.write_table(part, row_group_size=n)
    return stream.getvalue()


def large_page_parquet() -> bytes:
    """Pages of text that compress to nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    words = pa.array([chr(97 + k) * (1 << 23) for k in range(26)] * 3)
    part = pa.table({"a": words, "b": np.arange(78) % 3, "label": np.arange(78) % 2})
    pq.write_table(part, stream, compression="zstd", use_dictionary=False, write_statistics=False)
    return stream.getvalue()


def lying_page_parquet() -> bytes:
    """As `large_page_parquet`, and the footer says that it is small."""
    content = large_page_parquet()
    import pyarrow.parquet as pq

    column = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)
    said = _varint(column.total_uncompressed_size)
    at = content.rindex(said)
    return content[:at] + _varint(1000, len(said)) + content[at + len(said) :]


def _varint(value: int, length: int = 0) -> bytes:
    """A number as Parquet's footer has it, of so many bytes at least."""
    value <<= 1
    found = bytearray()
    while value >= 128 or len(found) + 1 < length:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def many_columns_parquet(p: int = 20_000) -> bytes:
    """A table of very many columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    columns = {f"c{k}": [k % 2, 1, 0, 1] for k in range(p)} | {"label": [0, 1, 0, 1]}
    pq.write_table(pa.table(columns), stream, compression="none", use_dictionary=False, write_statistics=False)
    return stream.getvalue()


def _toml(text: str | bytes) -> Callable[[], Files]:
    raw = text.encode() if isinstance(text, str) else text
    return lambda: {"d.csv": SMALL, "d.toml": raw}


def long_row_lp(terms: int = 100_000) -> bytes:
    """A row that names its features again and again under other names."""
    body = " + ".join(f"{k + 1} extra_{k}" for k in range(terms))
    return f"subject to\n c: {body} <= 4\nend\n".encode()


def _gz_json() -> Files:
    """A document of 4 MB that is nothing but brackets."""
    return kept("table.csv", "table.toml") | {"r.json": b"[" + b"[]," * 1_300_000 + b"[]]"}


def _data(name: str, content: Callable[[], bytes], toml: bytes = b"") -> Callable[[], Files]:
    beside = {"d.toml": toml} if toml else {}
    return lambda: {name: content(), **beside}


def solve(name: str, *more: str) -> tuple[str, ...]:
    return (*SOLVE[:2], name, *SOLVE[2:], *more)


ALLOW = "MIPFS_UNPACK=8"
VERIFY = ("verify", "r.json", "table.csv")
ROWS = (*solve("table.csv"), "--subject-to", "rows.lp")
DEEP = b"[" * 200_000 + b"]" * 200_000
BOMBS: Mapping[str, Bomb] = {
    "certificate: an array nobody names": Bomb("certificate", VERIFY, lambda: _result(stranger), 1, "an array 'zz'"),
    "certificate: many nodes": Bomb("certificate", VERIFY, lambda: _result(many_nodes), says=ALLOW),
    "certificate: many vectors": Bomb("certificate", VERIFY, lambda: _result(many_vectors), 1),
    "certificate: a size that lies": Bomb(
        "certificate",
        VERIFY,
        lambda: _result(
            lambda old: archive(members_of(old) | {"dual_bytes.npy": zeros(MUCH, header("(8,)"))}, said=136)
        ),
        says="Bad CRC",
    ),
    "certificate: bzip2": Bomb(
        "certificate",
        VERIFY,
        lambda: _result(
            lambda old: archive(members_of(old) | {"dual_bytes.npy": zeros(MUCH, header("(8,)"), 12)}, said=136, how=12)
        ),
        says="that NumPy does not write",
    ),
    "path: an array nobody names": Bomb(
        "study",
        ("verify", "r.json#C=1,M=2", "table.csv"),
        lambda: _path(lambda old: archive(members_of(old) | {"zz": zeros(MUCH)})),
        1,
        "is compressed in it",
    ),
    "path: predict": Bomb(
        "study",
        ("predict", "r.json#C=1,M=2", "table.csv"),
        lambda: _path(lambda old: archive(members_of(old) | {"zz": zeros(MUCH)})),
        0,
    ),
    "path: a size that lies": Bomb(
        "study",
        ("verify", "r.json#C=1,M=2", "table.csv"),
        lambda: _path(lambda old: archive(members_of(old) | {"0.cert.npz": zeros(MUCH)}, said=100)),
        1,
        "is compressed in it",
    ),
    "path: a certificate in it": Bomb(
        "study",
        ("verify", "r.json#C=1,M=2", "table.csv"),
        lambda: _path(lambda old: archive(members_of(old) | {"0.cert.npz": stranger(members_of(old)["0.cert.npz"])})),
        1,
        "an array 'zz'",
    ),
    "state: an array nobody names": Bomb(
        "checkpoint", solve("sparse.svm", "--resume", "s.npz"), lambda: _state(stranger), says=ALLOW
    ),
    "points: a certificate": Bomb(
        "points",
        ("path", "table.csv", "--M", "1:2", "-p", "C=1", "--scale", "standard", "--resume", "p.points"),
        _points,
        0,
    ),
    "toml: a dotted key": Bomb("toml", solve("d.csv"), _toml("a" + ".a" * 20_000 + "=1\n"), says="more than 16 dots"),
    "toml: a dotted table": Bomb(
        "toml",
        solve("d.csv"),
        _toml("[a" + ".a" * 10_000 + "]\n" + "".join(f"b{k}.c=1\n" for k in range(5_000))),
        says="more than 16 dots",
    ),
    "toml: quoted dots": Bomb(
        "toml", solve("d.csv"), _toml('"a"' + " . 'b' " * 10_000 + "=1\n"), says="more than 16 dots"
    ),
    "toml: dots in a table": Bomb(
        "toml", solve("d.csv"), _toml("[data]\nx = { a" + ".a" * 20_000 + "=1 }\n"), says="more than 16 dots"
    ),
    "toml: a number without end": Bomb(
        "toml", solve("d.csv"), _toml("[data]\npositive = 0x" + "f" * 60_000 + "\n"), says="beyond floating point"
    ),
    "toml: deep": Bomb("toml", solve("d.csv"), _toml(b"[data]\nx = " + DEEP + b"\n")),
    "toml: a long name": Bomb("toml", solve("d.csv"), _toml("[data]\n" + "a" * 1_000_000 + " = 1\n")),
    "csv: gzip": Bomb(
        "csv",
        solve("d.csv.gz"),
        _data("d.csv.gz", lambda: gzip.compress(b"a,label\n") + _gz(b"1,x\n0,y\n")),
        says=ALLOW,
    ),
    "csv: bzip2": Bomb("csv", solve("d.csv.bz2"), _data("d.csv.bz2", lambda: _bz2(b"a,label\n1,x\n2,y\n")), says=ALLOW),
    "csv: a long word": Bomb("csv", solve("d.csv"), _data("d.csv", wide_cell), 0),
    "csv: a long label": Bomb("csv", solve("d.csv"), _data("d.csv", wide_label), 0),
    "csv: many columns": Bomb("csv", solve("d.csv"), _data("d.csv", many_columns), 0),
    "csv: an amount of blanks": Bomb(
        "csv", solve("d.csv"), _data("d.csv", blanks, b'[data]\ntypes = { a = "currency" }\n')
    ),
    "svmlight: gzip": Bomb("svmlight", solve("d.svm.gz"), _data("d.svm.gz", lambda: _gz(b"\0")), says=ALLOW),
    "svmlight: gzip of lines": Bomb(
        "svmlight", solve("d.svm.gz"), _data("d.svm.gz", lambda: _gz(b"1 1:1\n-1 1:2\n")), says=ALLOW
    ),
    "svmlight: bzip2": Bomb("svmlight", solve("d.svm.bz2"), _data("d.svm.bz2", lambda: _bz2(b" 1:1")), says=ALLOW),
    "svmlight: convert": Bomb(
        "svmlight", ("convert", "d.svm.gz", "new"), _data("d.svm.gz", lambda: _gz(b" 1:1")), says=ALLOW
    ),
    "svmlight: columns nobody has": Bomb(
        "svmlight",
        solve("d.svm"),
        _data("d.svm", lambda: b"1 1:1 2:1\n-1 1:2 100000000:1\n1 1:2\n-1 2:1\n"),
        says=ALLOW,
    ),
    "npz: a matrix of zeros": Bomb("npz", solve("d.npz"), _data("d.npz", dense_npz), says=ALLOW),
    "npz: columns nobody has": Bomb("npz", solve("d.npz"), _data("d.npz", lambda: narrow_npz(100_000_000)), says=ALLOW),
    "npz: wide names": Bomb("npz", solve("d.npz"), _data("d.npz", wide_names), says=ALLOW),
    "npz: labels that are not there": Bomb(
        "npz", solve("d.npz"), lambda: {"d.npz": npz_bytes(X=np.eye(4)), "y.npy": header("(1000000000000,)", "<f8")}
    ),
    "parquet: a long word": Bomb("parquet", solve("d.parquet"), _data("d.parquet", long_word_parquet), says=ALLOW),
    "parquet: many rows": Bomb("parquet", solve("d.parquet"), _data("d.parquet", many_rows_parquet), says=ALLOW),
    "parquet: large pages": Bomb("parquet", solve("d.parquet"), _data("d.parquet", large_page_parquet), says=ALLOW),
    "parquet: large pages, and a footer that lies": Bomb(
        "parquet", solve("d.parquet"), _data("d.parquet", lying_page_parquet), says=ALLOW
    ),
    "parquet: many columns": Bomb("parquet", solve("d.parquet"), _data("d.parquet", many_columns_parquet), 0),
    "store: rows nobody has": Bomb("store", solve("s"), lambda: _store(lambda one: one.update(n_samples=1 << 39))),
    "json: brackets": Bomb("result", ("report", "r.json"), _gz_json),
    "json: deep": Bomb("result", VERIFY, lambda: kept("table.csv", "table.toml") | {"r.json": DEEP}),
    "json: a number without end": Bomb(
        "result", VERIFY, lambda: kept("table.csv", "table.toml") | {"r.json": b'{"schema": ' + b"9" * 1_000_000 + b"}"}
    ),
    "lp: a long row": Bomb("lp", ROWS, lambda: kept("table.csv", "table.toml") | {"rows.lp": long_row_lp()}, 0),
    "lp: blanks": Bomb(
        "lp", ROWS, lambda: kept("table.csv", "table.toml") | {"rows.lp": b"subject to\n" + b" " * 1_000_000 + b"?"}
    ),
}
"""By name."""
_MADE: dict[str, Files] = {}


def of_target(target: str) -> list[str]:
    """The bombs that the reader of a target takes."""
    return [name for name, one in BOMBS.items() if one.target == target]


def made(name: str) -> Files:
    """The files of a bomb, made once."""
    if name not in _MADE:
        _MADE[name] = BOMBS[name].files()
    return _MADE[name]
