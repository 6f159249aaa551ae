"""Proven optima of the shipped and generated instances: makes ``instances/optima.toml``, or checks it again.

    python instances/make_optima.py                       what is missing; stop it at any moment and start it again
    python instances/make_optima.py --renew               everything again
    python instances/make_optima.py --check NAME [...]    solve these again and compare; `all` for all of them
    python instances/make_optima.py --list                their names

Every entry is what one `mipfs solve` said, and that command stands in it, to be run in the root of the repository;
where the data are made, `generate` of the instance comes first. Each certificate was checked by `mipfs verify`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipfs.cli import main as mipfs

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "instances" / "optima.toml"
MADE = "build/optima"
GAP, WITHIN, LISTED = 1e-6, 1e-3, 20
"""Asked gap; the pool: supports within this relative distance of the optimum, at most so many."""
AGREE = 2e-6
"""Two runs may differ by this much (relative): the gap of each."""
HEAD = f"""\
# Proven optima of (P) on the shipped and generated instances. Made by `python instances/make_optima.py`; one of them
# is checked again by `python instances/make_optima.py --check NAME`, or by its own `solve` in the root of the
# repository (after the instance's `generate`, where it has one). Every certificate was accepted by `mipfs verify`.
#
# objective   of the support, exact to about 1e-9; bound: proven, at most {GAP:g} (relative) below it
# support     the features of the best selection
# unique      whether no other selection comes within {WITHIN:g} (relative) of it; otherwise
# near        how many do, itself included ({LISTED}: that many or more), and
# next        the relative distance of the second best
# seconds     of the solve, one run on two cores that others used too
"""
LOSSES = ("hinge", "squared-hinge", "logistic")


@dataclass(frozen=True)
class Data:
    """An instance: how it is made (empty when it is shipped), its file, and options to read it."""

    name: str
    generate: str
    file: str
    options: str = ""


@dataclass(frozen=True)
class Asked:
    """One problem: its name, its instance, and MODEL and parameters of `mipfs solve`."""

    name: str
    data: Data
    model: str
    params: str

    @property
    def solve(self) -> str:
        """The command that proves the optimum."""
        options = f"{self.data.options} {self.params}".strip()
        limits = f"--driver branch --gap {GAP:g} --pool-gap {WITHIN:g} --pool-size {LISTED}"
        return f"mipfs solve {self.model} {self.data.file} {options} {limits}"


WDBC = Data("wdbc", "", "instances/wdbc.svm", "--scale standard")
CREDIT = Data("credit", "", "instances/credit.csv")


def made(kind: str, n: int, p: int, M: int | None, seed: int) -> Data:
    """A generated instance; M = None where the generator takes none."""
    sizes = "" if kind == "aytug-two" else f" --n-samples {n} --n-features {p}"
    stem = f"{kind}-{n}x{p}" + ("" if M is None else f"-M{M}") + f"-seed{seed}"
    take = "" if M is None else f" --M {M}"
    suffix = "npz" if kind.startswith("tan") else "svm"
    return Data(stem, f"mipfs generate {kind}{sizes}{take} --seed {seed} --out {MADE}", f"{MADE}/{stem}.{suffix}")


def asked(data: Data, loss: str, bias: bool, C: float, *, rows: str = "", **size: float | None) -> Asked:
    """A problem; ``M=5`` is FSP-M, ``lam=2`` FSP-λ, ``M=None`` leaves M to the data."""
    ((key, value),) = size.items()
    key = "lambda" if key == "lam" else key
    given = [] if value is None else [f"{key}={value:g}"]
    short = [loss, "bias" if bias else "no-bias", ",".join([*given, f"C={C:g}"]), *([Path(rows).stem] if rows else [])]
    params = [*given, f"C={C:g}", f"loss={loss}", f"bias={str(bias).lower()}"]
    text = " ".join(f"-p {one}" for one in params) + (f" --subject-to {rows}" if rows else "")
    return Asked("/".join([data.name, *short]), data, "fsp-lambda" if key == "lambda" else "fsp-m", text)


def grid() -> Iterator[Asked]:  # noqa: C901  # a table of cases
    """The problems of the library."""
    for loss in LOSSES:
        for bias in (True, False):
            for M in (3, 5, 10):
                for C in (0.01, 0.1, 1.0):
                    yield asked(WDBC, loss, bias, C, M=M)
            for C in (0.1, 1.0):
                if (loss, C) != ("hinge", 1.0) or bias:
                    yield asked(WDBC, loss, bias, C, M=5, rows="instances/wdbc-budget.lp")
                yield asked(CREDIT, loss, bias, C, M=None)
            yield asked(CREDIT, loss, bias, 10.0, M=3)
            yield asked(WDBC, loss, bias, 0.1, lam=0.1)
    for lam in (10.0, 5.0, 2.5):  # λ = 20, 10, 5 of El0ps, whose objective is twice ours (C = ½ for the logistic loss)
        yield asked(WDBC, "squared-hinge", False, 1.0, lam=lam)
        yield asked(WDBC, "logistic", False, 0.5, lam=lam)
    yield asked(WDBC, "hinge", True, 1.0, lam=2.0)
    kinds = (("hinge", True, 1.0), ("hinge", True, 32.0), ("squared-hinge", False, 1.0), ("logistic", True, 1.0))
    for loss, bias, C in kinds:
        for seed in (1, 2, 3):
            for M in (5, 10):
                yield asked(made("aytug-one", 500, 20, M, seed), loss, bias, C, M=M)
        for seed in (1, 2):
            for M in (10, 25):
                if (M, C) != (25, 32.0):
                    yield asked(made("aytug-one", 500, 50, M, seed), loss, bias, C, M=M)
        yield asked(made("aytug-one", 500, 20, 10, 1), loss, bias, C, M=10, rows="instances/pairs-20.lp")
    for loss, bias, C in (("hinge", True, 0.25), ("logistic", True, 0.25), ("squared-hinge", False, 0.25)):
        yield asked(made("aytug-two", 1000, 800, 20, 1), loss, bias, C, M=20)
    for loss, bias in (("squared-hinge", False), ("hinge", True), ("logistic", True)):
        for seed in (1, 2):
            for M in (2, 3, 5):
                yield asked(made("tan-2010", 500, 103, None, seed), loss, bias, 0.1, M=M)
            yield asked(made("tan-2014", 256, 256, 10, seed), loss, bias, 0.01, M=10)


def call(command: str, *more: str) -> None:
    """Run a command of mipfs in this process; it must succeed."""
    code = mipfs([*shlex.split(command)[1:], *more, "--quiet"])
    if code:
        sys.exit(f"exit code {code}: {command}")


def solved(one: Asked) -> dict[str, Any]:
    """Solve, verify, and say what the library keeps."""
    if one.data.generate and not Path(one.data.file).exists():
        call(one.data.generate)
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        call(one.solve, "--json", str(result))
        call(f"mipfs verify {result} {one.data.file}")
        document = json.loads(result.read_text(encoding="utf-8"))
    found = document["near_optimal"]
    if document["status"] != "OPTIMAL" or not found["complete"]:
        sys.exit(f"{one.name}: {document['status']}, {document['stop_reason']}; nothing is listed that is not proven")
    near = found["supports"]
    entry = {"name": one.name, "instance": one.data.name, "solve": one.solve, "objective": document["objective"]}
    entry |= {"bound": document["bound"], "support": document["selected"], "unique": len(near) == 1}
    if len(near) > 1:
        entry |= {"near": len(near), "next": float(f"{near[1]['gap']:.3g}")}
    return entry | {"seconds": round(document["seconds"], 2), "data_sha256": document["data_sha256"]}


def write(entries: Sequence[dict[str, Any]], problems: Sequence[Asked]) -> None:
    """Write the library: the instances, then the problems, in the order of the grid."""
    order = {one.name: (place, one.data) for place, one in enumerate(problems)}
    entries = sorted(entries, key=lambda entry: order[entry["name"]][0])
    parts, listed = [HEAD], set[str]()
    for entry in entries:
        data = order[entry["name"]][1]
        if data.name not in listed:
            listed.add(data.name)
            generate = {"generate": data.generate} if data.generate else {}
            parts.append(_table("[[instance]]", {"name": data.name} | generate | {
                "file": data.file, "data_sha256": entry["data_sha256"]}))  # fmt: skip
    hidden = ("data_sha256",)
    parts += [_table("[[problem]]", {k: v for k, v in entry.items() if k not in hidden}) for entry in entries]
    beside = LIBRARY.with_suffix(".part")
    beside.write_text("\n".join(parts), encoding="utf-8", newline="\n")
    beside.replace(LIBRARY)


def _table(head: str, values: dict[str, Any]) -> str:
    lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
    return f"{head}\n" + "".join(lines)


def read() -> dict[str, dict[str, Any]]:
    """The problems of the library by name, each with the digest of its data."""
    if not LIBRARY.exists():
        return {}
    library = tomllib.loads(LIBRARY.read_text(encoding="utf-8"))
    digests = {data["name"]: data["data_sha256"] for data in library["instance"]}
    return {one["name"]: one | {"data_sha256": digests[one["instance"]]} for one in library["problem"]}


def make(problems: Sequence[Asked], renew: bool) -> None:
    """Solve what the library lacks."""
    known = {} if renew else read()
    kept = {one.name: known[one.name] for one in problems if known.get(one.name, {}).get("solve") == one.solve}
    for one in problems:
        if one.name in kept:
            continue
        began = time.monotonic()
        kept[one.name] = entry = solved(one)
        write(list(kept.values()), problems)
        near = "unique" if entry["unique"] else f"{entry['near']} near, next {entry['next']:.1e}"
        print(f"{one.name:<60} {entry['objective']:.10g}  {near}  {time.monotonic() - began:.2f} s", flush=True)
    write(list(kept.values()), problems)
    print(f"{len(kept)} problems in {LIBRARY.relative_to(ROOT)}")


def check(problems: Sequence[Asked], names: Sequence[str]) -> int:
    """Solve again and compare; the number of those that differ."""
    known, wrong = read(), 0
    for one in problems:
        if one.name not in names and "all" not in names:
            continue
        listed, now = known[one.name], solved(one)
        same = abs(now["objective"] - listed["objective"]) <= AGREE * abs(listed["objective"])
        agrees = same and (now["support"] == listed["support"] or listed.get("next", 1.0) <= AGREE)
        wrong += not agrees
        print(f"{'ok    ' if agrees else 'DIFFERS'} {one.name}: {now['objective']!r}, listed {listed['objective']!r}")
    return wrong


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renew", action="store_true", help="solve everything again")
    parser.add_argument("--check", nargs="+", metavar="NAME", help="solve these again and compare with the library")
    parser.add_argument("--list", action="store_true", help="the names")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    problems = list(grid())
    if arguments.list:
        print("\n".join(one.name for one in problems))
    elif arguments.check:
        unknown = set(arguments.check) - {one.name for one in problems} - {"all"}
        if unknown:
            sys.exit(f"no problem is called {sorted(unknown)[0]!r}; --list shows the names")
        sys.exit(1 if check(problems, arguments.check) else 0)
    else:
        make(problems, arguments.renew)


if __name__ == "__main__":
    main()
