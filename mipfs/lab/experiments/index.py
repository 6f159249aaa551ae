"""The index of all studies: what each asks, how much of it was measured, and the claims that were judged."""

from __future__ import annotations

from pathlib import Path

from mipfs.errors import UsageError
from mipfs.lab import page
from mipfs.lab.experiments import available, get_study
from mipfs.lab.experiments.document import table
from mipfs.lab.experiments.run import PAGE, ROWS, Found, stored
from mipfs.plumbing import output_file
from mipfs.report.blocks import Table

TITLE = "# The studies"
HTML = "report.html"
"""The page of a study, in its folder."""
HEAD = f"""{TITLE}

Each folder is written by one command, `mipfs study NAME`: its report, its pictures, `rows.csv` (every number), and
`rows.jsonl`, to which the command appends what is not measured yet. `mipfs study --index` writes this page out of the
rows, and `report.html` into each folder: the report as one page that needs nothing else. Seconds are CPU seconds of
one process on a machine that other work shared. What a study leaves out of a paper's design stands at the top of its
report.
"""
VERDICTS = (
    "A verdict is computed from the rows: confirmed; refuted; refined, true with a limit; not shown, as chance may "
    "explain the difference (sign test at 5%); open, as too little was measured."
)


def write_index(folder: Path) -> Path:
    """Write the index of the studies below a folder, an HTML page of each beside its rows, and the path of the index.

    Raises
    ------
    UsageError
        No study has rows there.
    """
    found = [stored(get_study(name), folder / name) for name in available() if (folder / name / ROWS).is_file()]
    found = [one for one in found if one.lines]
    if not found:
        raise UsageError(f"{folder} holds no study's rows; run `mipfs study NAME -o {folder}/NAME` first")
    target = folder / PAGE
    if target.exists() and not target.read_text(encoding="utf-8", errors="replace").startswith(TITLE):
        raise UsageError(f"{target} is no index of studies, and would be replaced; move it, or name another folder")
    output_file.save([(target, index(found).encode())])
    for one in found:
        page.write(folder / one.study.name / HTML, [page.Item(one.study.title, one)])
    return target


def index(found: list[Found]) -> str:
    """The page, Markdown."""
    lines = []
    claims = []
    for one in found:
        name = one.study.name
        cpu = sum(line["cpu_seconds"] for line in one.lines)
        lines.append([f"[{name}]({name}/{PAGE})", one.study.title, f"{len(one.lines)} of {one.total}", f"{cpu:,.0f}"])
        claims += [[c.said, f"**{c.verdict}**", c.measured, f"[{name}]({name}/{PAGE})"] for c in one.claims]
    cpu = sum(line["cpu_seconds"] for one in found for line in one.lines)
    units = f"{sum(len(one.lines) for one in found)} of {sum(one.total for one in found)}"
    lines.append(["all", "", units, f"{cpu:,.0f}"])
    numbered = [[str(number), *cells] for number, cells in enumerate(claims, 1)]
    studies = table(Table(["study", "what", "units measured", "CPU s"], lines, left=2))
    judged = table(Table(["", "claim", "verdict", "measured", "study"], numbered, left=5))
    return f"{HEAD}\n## Claims\n\n{VERDICTS}\n\n{judged}\n\n## Studies\n\n{studies}\n"
