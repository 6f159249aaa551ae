"""The fuzzer guided by atheris, which is no dependency: `python -m tests.fuzz --atheris --inputs 20000 --targets csv`.

libFuzzer sees which branches of the readers an input takes, and mutates by itself and by `tests.mutations` in turn. Its
input is three bytes, of the seed, the file and whether checksums are mended, and the contents of that file. What a
reader may do is judged as without it.
"""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GUIDING = ["mipfs.readers", "mipfs.result", "mipfs.lab.studies", "mipfs.check", "mipfs.proof.pair", "mipfs.plumbing"]
"""Packages whose branches count; kernels are compiled, and must stay as they are."""
HEAD = 3
MOST_LENGTH = 1 << 16


def guided(names: Sequence[str], inputs: int, seed: int, corpus: Path | None) -> int:
    """Each target in a process of its own, as libFuzzer ends it; how many had faults."""
    faulty = 0
    for name in names:
        line = [sys.executable, "-m", "tests.fuzz_atheris", name, str(inputs), str(seed), str(corpus or "")]
        faulty += subprocess.run(line, check=False).returncode != 0
    return faulty


def run(name: str, inputs: int, seed: int, corpus: Path | None) -> None:
    """Let libFuzzer choose the inputs; does not return."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=GUIDING):
        from tests import fuzz, mutations
    target = fuzz.TARGETS[name]
    seeds = sorted(fuzz.cached_seeds(target).items())
    campaign = fuzz.Campaign(name, seed, corpus, guided=False)
    home = Path(tempfile.mkdtemp())

    def place(data: bytes) -> tuple[str, fuzz.Files, str]:
        start, files = seeds[data[0] % len(seeds)]
        names = [file for file in sorted(files) if target.mutates(file)]
        return start, files, names[data[1] % len(names)]

    def one(data: bytes) -> None:
        if len(data) < HEAD:
            return
        start, files, file = place(data)
        changed: fuzz.Files = {**files, file: data[HEAD:]}
        changed = target.sealed(changed) if data[2] % 4 else changed
        verdict = fuzz.judged(target, changed, files, home / "input")
        campaign.counts[verdict.kind] += 1
        number = sum(campaign.counts.values())
        if verdict.is_fault:
            campaign.fault(number, start, changed, verdict)
        if number % 1000 == 0 or number == inputs:
            print(f"{name}: {dict(campaign.counts)}", flush=True)

    def mutate(data: bytes, most: int, drawn: int) -> bytes:
        r = random.Random(drawn)
        if len(data) < HEAD or r.random() < 0.3:
            return bytes(atheris.Mutate(data, most))
        return data[:HEAD] + mutations.mutated(r, place(data)[2], data[HEAD:])[: most - HEAD]

    begun = home / "seeds"
    begun.mkdir()
    for k, (_, files) in enumerate(seeds):
        for j, file in enumerate(file for file in sorted(files) if target.mutates(file)):
            (begun / f"{k}-{j}").write_bytes(bytes([k, j, 1]) + files[file])
    flags = [f"-runs={inputs}", f"-seed={seed}", f"-max_len={MOST_LENGTH}", "-timeout=600", "-rss_limit_mb=0"]
    atheris.Setup([sys.argv[0], *flags, str(begun)], one, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]) if sys.argv[4] else None)
