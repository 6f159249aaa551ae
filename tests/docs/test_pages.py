"""Every block of code in the README and the manual runs, and prints what it says it prints.

    python      run in order, one namespace per page; the block after it without a language is what it prints
    console     lines that begin with `$ ` are run by a shell, the lines below them are what they print
    a block whose first line is a comment with a file's name is written to that file

The comparison is loose: `...` stands for any lines, short numbers (seconds, counts) for any number, and numbers of
five digits and more agree to 2%.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mipfs.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MADE = {"formulations.md"}
"""Pages that are made of the package: their code is the package's own."""
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"[#\\] ([\w.-]+\.(?:py|lp|toml|csv))\n")
NUMBER = re.compile(r"[-+<]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line where its text begins."""

    language: str
    text: str
    line: int


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = path.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text[: m.start(2)].count("\n") + 1) for m in FENCE.finditer(text)]


def numbers(line: str) -> list[float]:
    """Those of five digits and more."""
    found = [text.replace(",", "").strip("<%") for text in NUMBER.findall(line)]
    return [float(text) for text in found if len(re.sub(r"e.*|\D", "", text.lstrip("-0."))) >= 5]


def shape(line: str) -> str:
    """A line without its numbers, what stands in parentheses behind a driver, and spaces."""
    line = re.sub(r"^(driver .*?)\(.*", r"\1", line.rstrip())
    line = re.sub(r"^[ \d.%]*\|[█▏▎▍▌▋▊▉ ]*$|^ *\+-+$", "|", line)
    return re.sub(r"[\s|-]+", " ", NUMBER.sub("#", line)).strip()


def agrees(said: str, printed: str) -> bool:
    """Whether a line says what was printed."""
    mine, other = numbers(said), numbers(printed)
    close = [a == pytest.approx(b, rel=0.02) for a, b in zip(mine, other, strict=False)]
    return shape(said) == shape(printed) and len(mine) == len(other) and all(close)


def compare(said: str, printed: str, where: str) -> None:
    """Line after line; a line of dots stands for any lines, one that ends in dots for any end."""
    wanted, found = said.strip("\n").splitlines(), printed.strip("\n").splitlines()
    at, anywhere = 0, False
    for line in wanted:
        if line.strip() == "...":
            anywhere = True
            continue
        places = range(at, len(found) if anywhere else min(at + 1, len(found)))
        place = next((k for k in places if agrees(line, found[k])), None)
        assert place is not None, f"{where}: {line!r} is not what was printed:\n{printed}"
        at, anywhere = place + 1, False
    assert anywhere or at == len(found), f"{where}: more was printed: {found[at:]}\n{printed}"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block and what stands below them."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, said = part.partition("\n")
        while command.endswith("\\"):
            more, _, said = said.partition("\n")
            command = command[:-1] + more
        yield command, said


def run(command: str) -> str:
    """Standard output of a command; one of ours without a pipe runs here."""
    if re.match(r"mipfs [^|;&<>]*$", command):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            main(shlex.split(command)[1:])
        return out.getvalue()
    ours = Path.cwd() / "bin"
    if not ours.exists():
        ours.mkdir()
        (ours / "mipfs").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mipfs "$@"\n')
        (ours / "mipfs").chmod(0o755)
        (ours / "python").symlink_to(sys.executable)
    environment = os.environ | {"PATH": f"{ours}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=environment)
    return done.stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", [p for p in PAGES if p.name not in MADE and blocks(p)], ids=lambda path: path.stem)
def test_the_blocks_of_a_page_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("instances", "tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    space: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in blocks(path):
        where = f"{path.name}:{block.line}"
        if name := FILE.match(block.text):
            Path(name[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block.text, where, "exec"), space)
            printed = out.getvalue()
            continue
        elif block.language == "console":
            for command, said in commands(block.text):
                compare(said, run(command), f"{where}: {command}")
        elif block.language == "" and printed:
            compare(block.text, printed, where)
        printed = ""


def test_the_comparison_is_no_formality() -> None:
    compare("objective  53.6076\nbound 1\n...\nend", "objective   53.6077\nbound 2\nx\ny\nend\n", "here")
    for said in ("objective  54.9", "objective  55.607", "bound  53.6076", "objective  53.6076\nmore"):
        with pytest.raises(AssertionError):
            compare(said, "objective  53.6076\n", "here")
