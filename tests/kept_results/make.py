"""Write a document of every kind, with its data: `python -m tests.kept_results.make tests/kept_results/VERSION`.

Once for every version that writes something new, of which the folder then keeps what no earlier one has; what is there
stays as it is. `kinds.py` is the table of what is
written, `files.py` makes the data. Beside the documents stands kept.json: of what data each of them is, and what the
version that wrote it said of it (of 0.1.0 the next one did): verdict, predictions, and how good these are.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import mipfs
from mipfs.cli import main
from mipfs.errors import MipfsError
from tests.kept_results import files, kinds

DIGITS = 8
"""Of the numbers in kept.json."""


def make(folder: Path) -> None:
    """Write all of it, and keep the kinds that no folder beside it has."""
    earlier = [json.loads(path.read_text(encoding="utf-8")) for path in folder.parent.glob("*/kept.json")]
    before = set[str]().union(*earlier)
    folder.mkdir(parents=True)
    with chdir(folder):
        files.write(Path())
        for line in kinds.FILES.values():
            called(line)
        for name, line in kinds.COMMANDS.items():
            called(f"{line} --json {name}.json")
        for name, one in kinds.MADE.items():
            one.solved(mipfs.read(one.file, **one.read)).save(f"{name}.json")
        new = {name: data for name, data in sources().items() if name not in before}
        lines = (f'"{name}": {json.dumps(kept(name, data), ensure_ascii=False)}' for name, data in new.items())
        Path("kept.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        for name in before:
            for path in Path().glob(f"{name}.*json*"):
                path.unlink()
            Path(f"{name}.cert.npz").unlink(missing_ok=True)


def called(line: str) -> None:
    """A command, which must succeed; after --types and --impute an underscore stands for a blank."""
    words = line.split()
    spaced = {k + 1 for k, word in enumerate(words) if word in ("--types", "--impute")}
    words = [word.replace("_", " ") if k in spaced else word for k, word in enumerate(words)]
    code = main([*words, "--quiet", "--seed", "0"])
    assert code == 0, (line, code)


def sources() -> dict[str, str]:
    """The data of every document."""
    words = {name: line.split() for name, line in kinds.COMMANDS.items()}
    found = {name: each[2 if each[0] in ("solve", "scorecard") else 1] for name, each in words.items()}
    return found | {name: one.file for name, one in kinds.MADE.items()}


def kept(name: str, data: str) -> dict[str, Any]:
    """Of what data a document is, and what this version says of each of its parts."""
    document = json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))
    options = kinds.VERIFIED_WITH.get(name, {})
    parts = {part: judged(f"{name}.json{part}", data, options) for part in parts_of(document)}
    return {"data": data, "options": options, "parts": rounded(parts)}


def parts_of(document: Any) -> list[str]:
    """What follows the name of a document for `verify` and `predict`: "" for all of it, "#best", "#M=2", "#low"."""
    if "points" in document:
        axes = document["axis"].split(",")
        places = [",".join(f"{axis}={point[axis]:g}" for axis in axes) for point in document["points"]]
        return [f"#{one}" for one in (*places, *(["best", "one-se"] if document["folds"] else []))]
    if document.get("kind") == "one-vs-rest":
        return ["", *(f"#{label}" for label in document["classes"])]
    return [""] if "weights" in document or document.get("kind") == "scorecard" else []


def judged(file: str, data: str, options: dict[str, Any]) -> dict[str, Any]:
    """What `verify`, `predict` and `evaluate` say of a part; None for what they refuse."""
    verdict = said("verify", file, data, **options)
    likely = said("predict", file, data, scores=True, probability=True)
    return {
        "verdict": verdict and [verdict_of(one) for one in verdict.get("reports", [verdict])],
        "predicted": likely or said("predict", file, data, scores=True),
        "evaluated": said("evaluate", file, data),
    }


def verdict_of(report: Any) -> dict[str, Any]:
    """Whether a proof was accepted, and what of."""
    return {name: report[name] for name in ("accepted", "status", "objective", "bound")}


def said(command: str, *arguments: str, **options: Any) -> Any | None:
    """The JSON that a command writes, None where it refuses; called without its parser, whose making takes long."""
    run = getattr(importlib.import_module(f"mipfs.cli.{command}"), command)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "said.json"
        try:
            run(*arguments, json=str(file), quiet=True, **options)
        except MipfsError:
            return None
        return json.loads(file.read_text(encoding="utf-8"))


def rounded(value: Any) -> Any:
    """A value of JSON with numbers of few digits."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if target.exists():
        sys.exit(f"{target} is there: what a version wrote stays as it is")
    try:
        make(target)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
