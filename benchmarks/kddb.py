"""The shape of kddb, 19,264,097 × 29,890,095 with 29 non-zeros a row: convert, fit (squared hinge, B = T = 10), verify.

    python benchmarks/kddb.py FOLDER --rows 0.25           a quarter of the rows, all columns
    python benchmarks/kddb.py FOLDER --rows 0.25 --stage fit    one stage: generate, convert, fit, passes, verify
    python benchmarks/kddb.py FOLDER --memory       peak memory of converting, fitting and verifying 100,000 rows, for
                                                    p = 10⁵ … 3·10⁷; with --plot FILE.svg a picture of it

Columns are drawn by the law of Zipf and Mandelbrot, 1/(rank + 100), and scattered over the indices; values are 1, as of
indicators. Labels are the sign of a rule over ten planted columns where a row has one of them, and random elsewhere.
Every stage runs in a process of its own, so that its peak of anonymous memory is its own; mapped pages are the store's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

N, P, PER_ROW, SHIFT = 19_264_097, 29_890_095, 29, 100.0
PLANTED, FIRST_RANK, LAST_RANK = 10, 20, 400
BATCH = 1 << 15
ROWS, MANY = 100_000, (100_000, 1_000_000, 10_000_000, 30_000_000)
"""Of the runs that show memory against the number of features."""
STRIDE = 12_345_677
"""Scatters the ranks over the columns: it has no divisor in common with P."""


def columns_of(rank: npt.NDArray[np.int64], p: int) -> npt.NDArray[np.int64]:
    """The 0-based column of every rank."""
    assert math.gcd(STRIDE, p) == 1
    return (rank * STRIDE + 7) % p


def rule() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The planted ranks, and their weights."""
    ranks = np.unique(np.geomspace(FIRST_RANK, LAST_RANK, PLANTED).astype(np.int64))
    return ranks, np.where(np.arange(ranks.size) % 2 == 0, 1.0, -1.0)


def batch(r: np.random.Generator, rows: int, p: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Sorted 0-based columns (rows, 29), all different in a row, and labels."""
    span = np.log1p(p / SHIFT)
    wanted = PER_ROW + 6  # some are drawn twice
    rank = np.minimum((SHIFT * np.expm1(r.random((rows, wanted)) * span)).astype(np.int64), p - 1)
    rank.sort(axis=1)
    fresh = np.ones(rank.shape, dtype=bool)
    fresh[:, 1:] = rank[:, 1:] != rank[:, :-1]
    key = np.where(fresh, r.random(rank.shape), 2.0)
    kept = np.take_along_axis(rank, np.argsort(key, axis=1)[:, :PER_ROW], axis=1)
    ranks, weights = rule()
    score = np.zeros(rows)
    for one, weight in zip(ranks.tolist(), weights.tolist(), strict=True):
        score += weight * np.any(kept == one, axis=1)
    y = np.where(score != 0, np.sign(score), r.choice([-1.0, 1.0], rows))
    y = np.where(r.random(rows) < 0.05, -y, y)
    columns = columns_of(kept, p)
    columns.sort(axis=1)
    return columns, y


def generate(path: Path, rows: int, p: int, seed: int) -> None:
    """Write svmlight, some rows at a time; digits are made by NumPy, for that is what takes the time."""
    from numba import njit

    @njit
    def write(columns, y, out):  # type: ignore[no-untyped-def]
        at, digits = 0, np.empty(12, np.uint8)
        for i in range(columns.shape[0]):
            if y[i] < 0:
                out[at] = 45
                at += 1
            out[at] = 49
            at += 1
            for k in range(columns.shape[1]):
                out[at] = 32
                at += 1
                j, count = columns[i, k] + 1, 0
                while j > 0:
                    digits[count] = 48 + j % 10
                    j //= 10
                    count += 1
                for d in range(count - 1, -1, -1):
                    out[at] = digits[d]
                    at += 1
                out[at], out[at + 1] = 58, 49
                at += 2
            out[at] = 10
            at += 1
        return at

    r, left = np.random.default_rng(seed), rows
    out = np.empty(BATCH * (PER_ROW * 12 + 4), dtype=np.uint8)
    with path.open("wb") as stream:
        while left:
            columns, y = batch(r, min(BATCH, left), p)
            stream.write(out[: write(columns, y, out)].data)
            left -= y.size


def anonymous() -> int:
    """Anonymous memory of this process, bytes."""
    with open("/proc/self/status", encoding="ascii") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))


class Peak:
    """The largest `anonymous` while a block runs, looked at every 5 ms."""

    def __enter__(self) -> Peak:
        self.bytes, self._stop = anonymous(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.bytes = max(self.bytes, anonymous())

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.bytes = max(self.bytes, anonymous())


def convert_stage(folder: Path, p: int) -> dict[str, object]:
    """Convert, with the peak of memory."""
    from mipfs.convert import convert

    begin, cpu = time.perf_counter(), time.process_time()
    with Peak() as peak:
        convert(folder / "kddb.svm", folder / "store", dtype="float32", n_features=p)
    return {
        "seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "anonymous_mb": peak.bytes / 2**20,
        "text_mb": os.path.getsize(folder / "kddb.svm") / 2**20,
    }  # fmt: skip


def passes(store: Path, count: int) -> tuple[float, float]:
    """Wall and CPU seconds of so many bare passes X'v over the mapped data: the least that reads every number once."""
    import mipfs
    from mipfs.kernels.scores import magnitudes_in_reach

    data = mipfs.read(store)
    v, seconds, cpu = data.y.copy(), 0.0, 0.0
    for number in range(count + 1):  # the first compiles, and checks the blocks
        begin, before = time.perf_counter(), time.process_time()
        for part in data.block().values.parts:
            sums, one = part.sums, np.broadcast_to(1.0, part.width)
            out, ids = np.empty(part.width), np.arange(part.width, dtype=np.int32)
            magnitudes_in_reach(*part.values, np.ones(1), False, ids, sums, one, 1.0, 0.0, v, out, 0, part.width)
        seconds += (time.perf_counter() - begin) * (number > 0)
        cpu += (time.process_time() - before) * (number > 0)
    return seconds, cpu


def fit_stage(folder: Path, T: int) -> dict[str, object]:
    """Read and fit; what of the planted rule is found."""
    import mipfs

    store = folder / "store"
    base = anonymous()
    with Peak() as peak:
        begin, cpu = time.perf_counter(), time.process_time()
        data = mipfs.read(store)
        opened = time.perf_counter() - begin
        problem = mipfs.Problem(data, loss="squared-hinge", bias=False, M=10, C=1.0)
        result = mipfs.solve(problem, "kelley", T=T)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    result.save(folder / "result.json")
    parts = data.block().values.parts
    stored = sum(sum(array.nbytes for array in part.values) for part in parts)
    planted = {f"x{j + 1}" for j in columns_of(rule()[0], data.n_features)}
    assert result.relaxed is not None
    return {
        "n": data.n_samples, "p": data.n_features, "nnz": data.block().values.nnz, "csc_mb": stored / 2**20,
        "opened": opened, "seconds": seconds, "run_seconds": result.seconds, "cpu": cpu,
        "anonymous_mb": peak.bytes / 2**20, "before_mb": base / 2**20, "quarter_mb": stored / 2**22,
        "planted_selected": len(planted & set(result.selected)), "planted": len(planted),
        "planted_in_relaxation": len(planted & set(result.relaxed["weights"])),
        "objective": result.objective, "bound": result.bound, "gap": result.gap,
    }  # fmt: skip


def verify_stage(folder: Path) -> dict[str, object]:
    """Check the certificate against the store."""
    import mipfs
    from mipfs.result.result import Result

    begin = time.perf_counter()
    with Peak() as peak:
        report = mipfs.verify(Result.load(folder / "result.json"), mipfs.read(folder / "store"), verbose=False)
    return {
        "seconds": time.perf_counter() - begin, "accepted": report.accepted, "reason": report.reason,
        "anonymous_mb": peak.bytes / 2**20,
    }  # fmt: skip


def memory(folder: Path, picture: Path | None) -> None:
    """Peak memory of every stage against the number of features, as lines, as a table and as a picture."""
    found: dict[str, list[float]] = {"csc": [], "convert": [], "fit": [], "verify": []}
    for p in MANY:
        for stage in ("generate", "convert", "fit", "verify"):
            about = ["--rows", str(ROWS / N), "--features", str(p), "--stage", stage]
            command = [sys.executable, __file__, str(folder / str(p)), *about]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            print(done, end="", flush=True)
            line = json.loads(done)
            if stage in found:
                found[stage].append(line["anonymous_mb"])
            if stage == "fit":
                found["csc"].append(line["csc_mb"])
        shutil.rmtree(folder / str(p))
    print("| features | CSC arrays | convert | fit | verify |\n|---|---|---|---|---|")
    for p, *sizes in zip(MANY, *found.values(), strict=True):
        print(f"| {p:,} | {' | '.join(f'{size:,.0f}' for size in sizes)} |")
    if picture is None:
        return
    from pictures import write

    from mipfs.report.blocks import Curve, LineChart

    roles = {"convert": "first", "fit": "second", "verify": "third", "csc": "fourth"}
    curves = [Curve("CSC arrays" if name == "csc" else name, found[name], role) for name, role in roles.items()]
    about = {"x_label": "features", "y_label": "peak of anonymous memory, MB", "is_log": True, "is_log_y": True}
    write(picture, LineChart(f"{ROWS:,} rows, {ROWS * PER_ROW:,} non-zeros", MANY, tuple(curves), False, **about))


def main() -> None:
    """Run the stages, each in its own process, and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=float, default=1.0, help="share of the rows")
    parser.add_argument("--features", type=int, default=P)
    parser.add_argument("--memory", action="store_true", help="peak memory against the number of features")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="a picture of --memory")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--T", type=int, default=10)
    parser.add_argument("--stage", choices=("generate", "convert", "fit", "passes", "verify"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.memory:
        memory(given.folder, given.plot)
        return
    if given.stage is None:
        for stage in ("generate", "convert", "fit", "passes", "verify"):
            subprocess.run([sys.executable, __file__, *sys.argv[1:], "--stage", stage], check=True)
        return
    rows, begin = int(N * given.rows), time.perf_counter()
    if given.stage == "generate":
        generate(given.folder / "kddb.svm", rows, given.features, given.seed)
        found: dict[str, object] = {"rows": rows, "seconds": time.perf_counter() - begin}
    elif given.stage == "convert":
        found = convert_stage(given.folder, given.features)
    elif given.stage == "passes":
        seconds, cpu = passes(given.folder / "store", given.T)
        found = {"passes": given.T, "seconds": seconds, "cpu": cpu}
    elif given.stage == "verify":
        found = verify_stage(given.folder)
    else:
        found = fit_stage(given.folder, given.T)
    print(json.dumps({"stage": given.stage} | found), flush=True)


if __name__ == "__main__":
    main()
