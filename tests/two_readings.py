"""Both checkers on the same tables: how a file became columns is derived by each of them, and has to come to the same.

    python -m tests.two_readings --count 500 --seed 1

Random tables (separators, quotes, comments, gaps, words, keys, dates, amounts), read with random options and solved:
both have to accept the honest result, and to say the same of what is changed in `read`, `rules` and `labels`.
"""

from __future__ import annotations

import argparse
import copy
import csv
import io
import json
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import mipfs
from mipfs.cli import main as command
from tests import two_checkers

WORDS = ("Ulm", "Bonn", "Jena", "Köln", "New, York", 'say "x"', "a b", " Rom")
TYPES = {
    "amount": "currency", "share": "percent", "day": "date", "european": "date d/m/y", "decimals": "decimal comma",
}  # fmt: skip
KINDS = ("number", "number", "comma", "word", "pair", "key", *TYPES)


def cell(rng: random.Random, kind: str, i: int) -> str:
    """A cell of a column of this kind."""
    a, b = rng.randint(1, 28), rng.randint(1, 12)
    return {
        "number": [f"{rng.gauss(0, 1):.2f}", str(a - 9), f"{rng.gauss(0, 10):.1e}", " 1.5 "],
        "comma": [f"{b},{a}", str(b), ",5", "3,"],
        "word": WORDS,
        "pair": ("Y", "N", "Y", " N"),
        "key": [f"k{i}"],
        "amount": [f"$ {b},{a + 100}.50", f"({a})", f"-€{b}", f"{a} USD", "1 234.5 kr.", "R$ 3", "CHF 7", "1’000"],
        "share": [f"{a}%", f"{a} %", "0.5", "-3%"],
        "day": [f"20{b + 10}-{b:02d}-{a}", f"{a}.{b}.19{a + 60}", "2020-01-01T12:30:05.25+02:00", "20240229"],
        "european": [f"{a}/{b}/20{a + 10}", f"{a}-{b}-2020", "2020/3/4"],
        "decimals": ["1.234,5", "-7", f"{b},{a}", "- 3,5", "1 000,25", "1'234'567,1"],
    }[kind][rng.randrange(8) % {"word": 8, "amount": 8, "key": 1, "european": 3, "decimals": 6}.get(kind, 4)]


def options_of(rng: random.Random, kinds: list[str], names: list[str], gaps: bool) -> dict[str, Any]:
    """How the table is read."""
    found: dict[str, Any] = {}
    if gaps or rng.random() < 0.2:
        found["impute"] = rng.choice(["median", "most frequent", "level"])
    if rng.random() < 0.3:
        found["missing"] = rng.choice([["-"], ["-", "-999"], ["ULM", "k3"], [" 1.50"]])
        found.setdefault("impute", rng.choice(["median", "level"]))
    types = {name: TYPES[kind] for name, kind in zip(names, kinds, strict=True) if kind in TYPES and rng.random() < 0.8}
    if types:
        found["types"] = types
    if rng.random() < 0.2:
        found["drop"] = [rng.choice(names)]
    elif rng.random() < 0.15:
        found["use"] = rng.sample(names, 2)
    keys = [name for name, kind in zip(names, kinds, strict=True) if kind == "key"]
    if keys and rng.random() < 0.3:
        found["words"] = keys
    return found


def table_of(rng: random.Random, path: Path) -> dict[str, Any]:
    """Write a table; returns how it is read."""
    kinds = [rng.choice(KINDS) for _ in range(rng.randint(2, 5))] + ["number"]
    names, gaps = [f"c{j}" if rng.random() < 0.7 else f"n {j} é" for j in range(len(kinds))], rng.random() < 0.4
    rows = [[cell(rng, kind, i) for kind in kinds] for i in range(rng.choice([12, 30, 60]))]
    if gaps:
        rows = [
            [rng.choice(["", "NA", "?", " n/a ", "-", "-999.0"]) if rng.random() < 0.1 else v for v in row]
            for row in rows
        ]
    header = [*names, "label"]
    rows = [[*row, ("no", "yes")[i % 2 if rng.random() < 0.8 else rng.randrange(2)]] for i, row in enumerate(rows)]
    for role, values in (("sample_weight", ["0.5", "1", "2.25"]), ("bag", ["q", "p", "1"])):
        if rng.random() < 0.2:
            header.append(role)
            rows = [[*row, rng.choice(values)] for row in rows]
    if rng.random() < 0.2:
        header.insert(0, rng.choice(["", "Unnamed: 0"]))
        rows = [[str(i), *row] for i, row in enumerate(rows)]
    stream, end = io.StringIO(), rng.choice(["\n", "\r\n"])
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    csv.writer(stream, delimiter=rng.choice(",;\t|"), lineterminator=end, quoting=quoting).writerows([header, *rows])
    lines = stream.getvalue().splitlines(keepends=True)
    for more in ("# a comment\n", "\n"):
        if rng.random() < 0.3:
            lines.insert(rng.randint(more == "\n", len(lines)), more)
    path.write_bytes(("\ufeff" * (rng.random() < 0.2) + "".join(lines)).encode("utf-8"))
    return options_of(rng, kinds, names, gaps)


def changed(rng: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """A document that says something else of how its file was read."""
    document = copy.deepcopy(document)
    read, turn = document["read"], rng.randrange(9)
    words, recipe = list(read["words"]), read.get("recipe")
    if turn == 0:
        left = read["left_out"]
        read["left_out"] = rng.choice([[], left[::-1], [*left, "c0"], ["c0"], ["c1"]])
    elif turn == 1:
        read["kept"] = rng.choice([[], ["c0"], ["c1"], read["left_out"]])
    elif turn in (2, 3) and words:
        read["words"] |= {words[0]: read["words"].pop(words[0])[::-1]} if turn == 3 else {}
        if turn == 2:
            del read["words"][words[0]]
    elif turn == 4 and recipe:
        recipe[rng.choice([*recipe, "marks"])] = rng.choice(
            [None, ["-"], ["-", "Ulm"], [], {}, ["c0"], {"c0": 1}, {"*": "median"}, {"c0": "date"}]
        )
    elif turn == 5:
        read["label"] = rng.choice([None, "c0", "label", "bag"])
    elif turn == 6:
        document["rules"] = rng.choice([1, 2, 3, 4, 5, 6, None, "2"])
    elif turn == 7:
        read.pop(rng.choice(list(read)))
    else:
        names = [("yes", "no"), ("no", "yes"), ("no", "no")]
        document["labels"] = dict(zip(("negative", "positive"), rng.choice(names), strict=True))
    return document


def words_on(result: Path, data: Path) -> tuple[bool, bool, str]:
    """Whether the first and the second checker accept, and what the second one says."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        first = command(["verify", str(result), str(data), "--quiet"]) == 0
    word, why = two_checkers.second().verdict_of(lambda: two_checkers.second().judge(result, data))
    return first, word == "accepted", f"first: {said.getvalue()[-200:]!r}; second: {word} {why!r}"


def judged(seed: int, counts: Counter[str], changes: int = 4) -> int:
    """One table before both, and changes of what is said of it; how many differ, or are refused though honest."""
    rng, wrong = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data, result = Path(name) / "d.csv", Path(name) / "r.json"
        options = table_of(rng, data)
        try:
            table = mipfs.read(data, scale=rng.choice(["none", "standard", "unit"]), **options)
            mipfs.solve(mipfs.Problem(table, M=min(2, table.n_features), C=1.0)).save(result)
        except mipfs.MipfsError:
            counts["no table"] += 1
            return 0
        honest = json.loads(result.read_text(encoding="utf-8"))
        for k in range(changes + 1):
            document = changed(rng, honest) if k else honest
            result.write_text(json.dumps(document), encoding="utf-8")
            first, other, why = words_on(result, data)
            counts[f"{'changed' if k else 'honest'}: {first} and {other}"] += 1
            if first != other or (document == honest and not first):
                wrong += 1
                print(f"{seed}: {why}; {options}; {document['read']}, rules {document.get('rules')}", flush=True)
    return wrong


def main(argv: list[str] | None = None) -> int:
    """Returns 1 where the checkers differ, or an honest result was refused."""
    parser = argparse.ArgumentParser(prog="python -m tests.two_readings", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="tables (200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args(argv)
    counts, wrong, until = Counter[str](), 0, time.monotonic() + given.seconds
    for seed in range(given.seed, given.seed + given.count):
        wrong += judged(seed, counts)
        if time.monotonic() > until:
            break
    print("\n".join(f"{n:8} {what}" for what, n in sorted(counts.items())))
    print(f"{wrong} to be settled")
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
