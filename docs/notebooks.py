"""The notebooks of the manual, scripts in `examples/notebooks` whose cells begin with `# %%`, and their pictures.

Every build writes them as .ipynb for readers to download (`write`). `python docs/notebooks.py` runs them and draws the
figure that each calls `figure` into docs/NAME.svg.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCRIPTS = sorted((HERE.parent / "examples" / "notebooks").glob("*.py"))
CELL = re.compile(r"^# %%(?: \[(markdown)\])?\n", re.MULTILINE)


def cells(script: Path) -> list[tuple[str, str]]:
    """Kind (`markdown` or `code`) and text of every cell."""
    parts = CELL.split(script.read_text(encoding="utf-8"))[1:]
    found = []
    for kind, text in zip(parts[::2], parts[1::2], strict=True):
        said = re.sub(r"^# ?", "", text, flags=re.MULTILINE) if kind else text
        found.append((kind or "code", said.strip()))
    return found


def notebook(script: Path) -> dict[str, Any]:
    """The script as a notebook of format 4.5, without outputs."""
    made = []
    for k, (kind, text) in enumerate(cells(script)):
        empty = {"execution_count": None, "outputs": []} if kind == "code" else {}
        made.append({"cell_type": kind, "id": f"cell-{k}", "metadata": {}, "source": text, **empty})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def run(script: Path) -> dict[str, Any]:
    """The names that the cells leave, each cell run after the one before, as in Jupyter; figures are not shown."""
    import matplotlib

    matplotlib.use("Agg")
    space: dict[str, Any] = {"__name__": "__main__"}
    for kind, text in cells(script):
        if kind == "code":
            exec(compile(text, str(script), "exec"), space)
    return space


def page(script: Path) -> str:
    """The cells below the title as a part of a page."""
    parts = [text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in cells(script)]
    return re.sub(r"\A# .*\n+", "", "\n\n".join(parts)) + "\n"


def write(folder: Path) -> None:
    """Every notebook into a folder, to be downloaded and, as Markdown, to be included by the gallery."""
    folder.mkdir(exist_ok=True)
    for script in SCRIPTS:
        text = json.dumps(notebook(script), indent=1, ensure_ascii=False)
        (folder / f"{script.stem}.ipynb").write_text(f"{text}\n", encoding="utf-8")
        (folder / f"{script.stem}.md").write_text(page(script), encoding="utf-8")


if __name__ == "__main__":
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "mipfs"
    for one in SCRIPTS:
        drawn = run(one)["figure"]
        drawn.savefig(HERE / f"{one.stem}.svg", metadata={"Date": None}, facecolor="white")
