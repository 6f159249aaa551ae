"""Malformed files and options as command lines, drawn from a seed, and the exit codes that are right for them."""

from __future__ import annotations

import io
import json
import random
import string
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

SVM = "+1 1:1 2:0.5\n-1 1:-1 2:0.25\n+1 1:2 2:1\n-1 1:-2\n"
CSV = "age,home,label\n30,own,yes\n41.5,rent,no\n22,own,no\n35,rent,yes\n"
TOML = '[data]\nscale = "standard"\n[cost]\nx1 = 1\nx2 = 2\n[select]\nM = 1\nbudget = 2\nconflicts = [["x1", "x2"]]\n'
LP = "Subject To\n few: x1 + x2 <= 1\nEnd\n"


@dataclass(frozen=True)
class Case:
    """A command line in a folder of its own.

    Attributes
    ----------
    name : str
    args : the arguments after ``mipfs``
    codes : exit codes that are right
    files : name to contents, written beside the standard files
    kept : names of files that must not change
    """

    name: str
    args: tuple[str, ...]
    codes: tuple[int, ...] = (2,)
    files: dict[str, bytes] = field(default_factory=dict)
    kept: tuple[str, ...] = ("d.svm", "d.csv", "d.npz", "g.json", "g.cert.npz", "rows.lp", "mine.py")
    one_line: bool = True


def standard_files(result: bytes, certificate: bytes) -> dict[str, bytes]:
    """The sound files that every case begins with."""
    return {
        "d.svm": SVM.encode(),
        "d.csv": CSV.encode(),
        "d.npz": _npz(X=np.array([[1.0, 0.5], [-1.0, 0.25], [2.0, 1.0], [-2.0, 0.0]]), y=np.array([1, -1, 1, -1])),
        "g.json": result,
        "g.cert.npz": certificate,
        "rows.lp": LP.encode(),
        "mine.py": b"import mipfs\ndef build(data, M=1):\n    return mipfs.Problem(data, M=M)\n",
    }


def cases(seed: int, count: int, result: bytes) -> Iterator[Case]:
    """So many cases, of every family in turn."""
    rng = random.Random(seed)
    families = (_options, _svmlight, _table, _archive, _matrix, _document, _toml, _rows, _targets, _user_file, _paths)
    for number in range(count):
        family = families[number % len(families)]
        yield family(rng, number, result)


# --- the families ----------------------------------------------------------------------------------------------------

_NUMBERS = ("", "nan", "inf", "-inf", "1e999", "-1", "0", "1e300", "1e-300", "9" * 5000, "0x10", "1_0", "x", "1e400")


def _options(rng: random.Random, number: int, result: bytes) -> Case:  # noqa: C901  # a case for each option
    value = rng.choice((*_NUMBERS, _noise(rng)))
    solve = ("solve", "fsp-m", "d.svm", "-p", "M=1")
    choice = rng.randrange(17)
    any_code = (0, 2, 3, 4)
    match choice:
        case 0:
            return Case("C", (*solve, "-p", f"C={value}"), (2,))
        case 1:
            return Case("M", ("solve", "fsp-m", "d.svm", "-p", f"M={value}"), (0, 2) if value in ("0",) else (2,))
        case 2:
            return Case("lambda", ("solve", "fsp-lambda", "d.svm", "-p", f"lambda={value}"), any_code)
        case 3:
            return Case("time limit", (*solve, f"--time-limit={value}"), any_code)
        case 4:
            return Case("gap", (*solve, f"--gap={value}"), any_code)
        case 5:
            name = rng.choice(("", "gdb", _noise(rng), "9" * 400))
            return Case("driver", (*solve, "--driver", name))
        case 6:
            return Case("path driver", ("path", "d.svm", "--M", "1", "--driver", rng.choice(("", "x", _noise(rng)))))
        case 7:
            return Case("rungs", ("compare", "d.svm", "-p", "M=1", "--rungs", rng.choice(("", ",", "x", _noise(rng)))))
        case 8:
            M = rng.choice(
                ("", "1:1000000", f"1:{10**25}", f"0:{'9' * 5000}", "2:1", "1:2:3", "-1:2", "1,1", ":", value)
            )
            return Case("path M", ("path", "d.svm", f"--M={M}"), (0, 2) if M == "0" else (2,))
        case 9:
            axis = rng.choice(("C", "lambda"))
            return Case("path C", ("path", "d.svm", "-p", "M=1", f"--{axis}={value},{value}"), (2,))
        case 10:
            return Case("seed", (*solve, f"--seed={value}"), any_code)
        case 11:
            given = {"size": rng.choice(("-1", "0", "x", "9" * 30)), "gap": value}
            kind = rng.choice(("size", "gap"))
            return Case("pool", (*solve, f"--pool-{kind}={given[kind]}"), any_code)
        case 12:
            return Case("start", (*solve, "--start", rng.choice(("x9", '"', "x1,x1", _noise(rng)))), any_code)
        case 13:
            return Case("noise", tuple(_noise(rng) for _ in range(rng.randrange(1, 6))))
        case 14:
            command = rng.choice(
                ("solve", "path", "compare", "predict", "verify", "evaluate", "generate", "demo", "models", "report")
            )
            return Case("a stranger", (command, f"--{_noise(rng, string.ascii_lowercase)}"))
        case 15:
            size = rng.choice(("0", "-5", "9" * 30, "1000000000", "x", "9" * 5000))
            return Case("generate", ("generate", "aytug-one", "--n-samples", "50000", f"--n-features={size}"))
        case _:
            positive = rng.choice((value, _noise(rng)))
            return Case("positive", (*solve, "--positive", positive), (0, 2))


def _svmlight(rng: random.Random, number: int, result: bytes) -> Case:
    text = bytearray(SVM.encode())
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(text) + 1)
        text[at : at + rng.randrange(3)] = rng.choice(
            (
                b"\0",
                b":",
                b" ",
                b"\n",
                b"nan",
                b"1e999",
                b"9" * 400,
                b"#",
                b"qid:",
                b"\xff",
                b"-",
                b"99999999999:1",
                b"_",
            )
        )
    name = rng.choice(("m.svm", "m.txt", "m"))
    return Case("svmlight", ("solve", "fsp-m", name, "-p", "M=1"), (0, 2), {name: bytes(text)})


def _table(rng: random.Random, number: int, result: bytes) -> Case:
    text = bytearray(CSV.encode())
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(text) + 1)
        text[at : at + rng.randrange(3)] = rng.choice(
            (
                b'"',
                b",",
                b";",
                b"\t",
                b"|",
                b"\n",
                b"\r",
                b"nan",
                b"inf",
                b"\0",
                b"\xff",
                b"$5.20",
                b"1e400",
                b"'",
                b"9" * 400,
            )
        )
    files = {"m.csv": bytes(text)}
    if rng.random() < 0.3:
        import bz2
        import gzip

        packed = (gzip.compress if rng.random() < 0.5 else bz2.compress)(bytes(text))
        cut = packed[: rng.randrange(len(packed) + 1)]
        files = {"m.csv.gz" if packed[:1] == b"\x1f" else "m.csv.bz2": cut if rng.random() < 0.7 else bytes(text)}
    return Case("table", ("solve", "fsp-m", next(iter(files)), "-p", "M=1"), (0, 2), files)


def _archive(rng: random.Random, number: int, result: bytes) -> Case:
    """A damaged archive, as data or as certificate."""
    whole = bytearray(_npz(X=np.eye(4, 2), y=np.array([1, -1, 1, -1])))
    kind = rng.randrange(5)
    if kind == 0:
        whole = whole[: rng.randrange(len(whole))]
    elif kind == 1:
        for _ in range(rng.randrange(1, 20)):
            whole[rng.randrange(len(whole))] = rng.randrange(256)
    elif kind == 2:
        shape = rng.choice(("(1000000000000,)", "(-1,)", "(2, 3, 4)", "(1.5,)", "(" * 200, "(10**9,)", "(9" * 50, "()"))
        descr = rng.choice(("'<f8'", "'|O'", "'<U0'", "'<i8'", "[('a', '<f8')]", "'x'"))
        whole = bytearray(_forged(X=f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"))
    elif kind == 3:
        whole = bytearray(_npz(X=np.zeros((rng.randrange(2), rng.randrange(2))), y=np.zeros(rng.randrange(2))))
    else:
        values: Any = rng.choice((np.array(["a", None], dtype=object), np.array([1j, 2]), np.array([b"a", b"b"])))
        whole = bytearray(_npz(X=np.eye(2), y=values, allow_pickle=True))
    if rng.random() < 0.3:
        return Case("certificate", ("verify", "g.json", "d.svm"), (0, 1, 2), {"g.cert.npz": bytes(whole)}, ("d.svm",))
    return Case("archive", ("solve", "fsp-m", "m.npz", "-p", "M=1"), (0, 2), {"m.npz": bytes(whole)})


def _matrix(rng: random.Random, number: int, result: bytes) -> Case:
    """A sparse matrix whose arrays do not fit together."""
    X = sparse.random_array((6, 5), density=0.5, rng=np.random.default_rng(number))
    kind = rng.choice(("csr", "csc", "coo", "bsr", "dia"))
    stream = io.BytesIO()
    sparse.save_npz(stream, X.asformat(kind))
    with np.load(io.BytesIO(stream.getvalue())) as loaded:
        arrays = dict(loaded)
    keys = ("shape", "indices", "indptr", "row", "col", "offsets", "data", "format")
    name = rng.choice([key for key in keys if key in arrays])
    if name == "format":
        arrays[name] = np.array(rng.choice((b"csr", b"xyz", b"\xff", "dok", 3, "csc", "bsr", "coo", "dia")))
    elif name == "shape":
        arrays[name] = np.array(
            rng.choice(([20, 10**12], [6], [-1, 5], [6, 5, 1], [10**12, 5], [0, 0], [2**62, 2**62]))
        )
    else:
        old = arrays[name]
        new = [
            lambda: np.full_like(old, 10**6),
            lambda: -np.ones_like(old),
            lambda: old[:-1],
            lambda: np.append(old.ravel(), old.ravel()[:1]),
            lambda: old.astype(object).astype(str),
            lambda: old.astype(np.complex128),
            lambda: old.astype(np.int64) + 2**40,
            lambda: old[None],
            lambda: old[::-1],
        ]
        arrays[name] = rng.choice(new)()
    arrays["y"] = np.array([1, -1, 1, -1, 1, -1])
    return Case(f"matrix {kind} {name}", ("solve", "fsp-m", "m.npz", "-p", "M=1"), (0, 2), {"m.npz": _npz(**arrays)})


_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**400, "", "x", "\ud800", [], [1], {}, {"a": []}, [[[]]], "..", "/etc/passwd", "a\0b",
    1e308,
)  # fmt: skip


def _document(rng: random.Random, number: int, result: bytes) -> Case:
    """A result with something odd in it, read by each command that reads results."""
    document = json.loads(result)
    kind = rng.randrange(10)
    if kind == 0:
        text = ("[" * rng.choice((50, 5000, 10**6))) if rng.random() < 0.5 else '{"a":' * rng.choice((50, 10**5))
    elif kind == 1:
        text = result.decode()[: rng.randrange(len(result))]
    elif kind == 2:
        noisy = bytearray(result)
        noisy[rng.randrange(len(noisy))] = rng.randrange(256)
        return _reading(rng, bytes(noisy))
    elif kind == 3:
        text = result.decode().replace(
            '"bound":', f'"bound": {rng.choice(("1e999", "NaN", "Infinity", "9" * 5000))}, "x":', 1
        )
    else:
        place: Any = document
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = rng.choice(keys)
            if not isinstance(place[key], (dict, list)) or not place[key] or rng.random() < 0.4:
                break
            place = place[key]
            key = rng.choice(list(place) if isinstance(place, dict) else list(range(len(place))))
        if rng.random() < 0.2:
            del place[key]
        else:
            odd = rng.choice(_ODD)
            place[key] = odd
            if rng.random() < 0.1:
                deep: Any = []
                for _ in range(rng.choice((30, 300))):
                    deep = [deep]
                place[key] = deep
        text = json.dumps(document)
    return _reading(rng, text.encode("utf-8", "surrogatepass"))


def _reading(rng: random.Random, content: bytes) -> Case:
    command = rng.choice(("verify", "predict", "evaluate"))
    target = rng.choice(((), ("--json", "out.json"), ("--json", "-")))
    return Case(command, (command, "g.json", "d.svm", *target), (0, 1, 2), {"g.json": content}, ("d.svm", "g.cert.npz"))


def _toml(rng: random.Random, number: int, result: bytes) -> Case:
    text = TOML
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(text) + 1)
        odd = rng.choice(
            (
                '"',
                "[",
                "]",
                "=",
                "\n",
                "9" * 400,
                "9" * 5000,
                "nan",
                "-1",
                "1e999",
                "[" * 3000,
                "1979-05-27",
                "true",
                "x = 1",
                "{",
            )
        )
        text = text[:at] + odd + text[at + rng.randrange(3) :]
    kind = rng.random()
    if kind < 0.3:
        key, k = rng.choice(("at_most", "at_least", "exactly")), rng.choice(("9" * 400, "-1", "1.5"))
        text = f"[select]\n{key} = [{{k = {k}, of = ['x1']}}]\n"
    elif kind < 0.5:
        text = f"[{rng.choice(('cost', 'penalty'))}]\nx1 = {rng.choice(('9' * 400, 'inf', '-1', 'true'))}\n"
    return Case("toml", ("solve", "fsp-m", "d.svm", "-p", "M=1"), (0, 2, 3), {"d.toml": text.encode()})


def _rows(rng: random.Random, number: int, result: bytes) -> Case:
    text = LP
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(text) + 1)
        odd = rng.choice(
            ("<", ">=", "+", "^", "[", "9" * 400, "1e999", "x9", "\0", ":", "é", "\n", "obj", "extra_a", "/", "*")
        )
        text = text[:at] + odd + text[at + rng.randrange(3) :]
    args = ("solve", "fsp-m", "d.svm", "-p", "M=1", "--subject-to", "m.lp")
    return Case("rows", args, (0, 2, 3), {"m.lp": text.encode()})


def _targets(rng: random.Random, number: int, result: bytes) -> Case:
    """Outputs that are inputs, or that cannot be written."""
    solve = ("solve", "fsp-m", "d.svm", "-p", "M=1", "--subject-to", "rows.lp")
    bad = ("", ".", "no/such/r.json", "d.svm/r.json", "a" * 300, "/", "/dev/full", "/proc/self/x", "sub")
    choice = rng.randrange(8)
    if choice == 0:
        place = rng.choice(("d.svm", "./d.svm", "link.svm", "rows.lp", "d.toml"))
        files = {"d.toml": b'[data]\nscale = "none"\n'}
        return Case("json over data", (*solve, "--json", place), files=files, kept=("d.svm", "rows.lp", "d.toml"))
    if choice == 1:
        return Case("certificate over data", ("solve", "fsp-m", "d.cert.npz", "-p", "M=1", "--json", "d.json"),
                    files={"d.cert.npz": standard_files(b"", b"")["d.npz"]}, kept=("d.cert.npz",))  # fmt: skip
    if choice == 2:
        command = rng.choice(("verify", "predict", "evaluate"))
        return Case(
            "json over result", (command, "g.json", "d.svm", "--json", rng.choice(("g.json", "g.cert.npz", "d.svm")))
        )
    if choice == 3:
        command = rng.choice((("compare", "d.svm", "-p", "M=1"), ("path", "d.svm", "--M", "1")))
        return Case("json over data", (*command, "--json", "d.svm"))
    if choice == 4:
        return Case("generate over a file", ("generate", "credit", "--out", "credit.csv"),
                    files={"credit.csv": b"mine"}, kept=("credit.csv",))  # fmt: skip
    if choice == 5:
        return Case("json over a model", ("solve", "mine.py", "d.svm", "--json", "mine.py"))
    target = rng.choice(bad)
    return Case("no place", (*solve, "--json", target), one_line=True)


def _user_file(rng: random.Random, number: int, result: bytes) -> Case:
    text = rng.choice(
        (
            b"def build(data):\n    return 3\n", b"def build():\n    pass\n", b"import sys\nsys.exit(0)\n", b"x = (",
            b"def build(data):\n    raise SystemExit(0)\n", b"\xff\xfe", b"raise ValueError('a\\nb')\n", b"\0",
            b"def build(data):\n    return build(data)\n", b"def build(data):\n    return None\n", b"build = 3\n",
            b"import nosuchmodule\n",
        )
    )  # fmt: skip
    return Case("user file", ("solve", "m.py", "d.svm"), files={"m.py": text})


def _paths(rng: random.Random, number: int, result: bytes) -> Case:
    """Names that lead nowhere."""
    name = rng.choice(
        ("a" * 300, "a/" * 3000, "d.svm/x", "sub", "nope.svm", "", "/dev/null", "/dev/zero", "/proc/self/mem", "..")
    )
    name += rng.choice(("", "", ".svm", ".csv", ".npz", ".parquet", ".json", ".svm.gz", ".xyz"))
    command = rng.choice(
        (
            ("solve", "fsp-m", name, "-p", "M=1"), ("solve", "fsp-m", "d.svm", "-p", "M=1", "--subject-to", name),
            ("solve", "fsp-m", "d.svm", "-p", "M=1", "--validation", name), ("solve", name, "d.svm"),
            ("solve", f"{name}.py", "d.svm"), ("predict", name, "d.svm"), ("verify", "g.json", name),
            ("evaluate", name, name), ("compare", name, "-p", "M=1"), ("path", name, "--M", "1"),
        )
    )  # fmt: skip
    return Case("path", command)


def _noise(rng: random.Random, letters: str = string.printable + "é\u2028") -> str:
    return "".join(rng.choice(letters) for _ in range(rng.randrange(1, 12))).replace("\0", "")


def _npz(allow_pickle: bool = False, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=allow_pickle, **arrays)
    return stream.getvalue()


def _forged(**headers: str) -> bytes:
    """An archive of arrays that are nothing but a header."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, header in headers.items():
            text = header.encode() + b"\n"
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    return stream.getvalue()
