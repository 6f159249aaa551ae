"""``mipfs cite``: BibTeX of the package, and of the papers whose methods it has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mipfs.cli.options import Json, Quiet, Seed


def cite(
    result_file: Annotated[
        str | None,
        typer.Argument(metavar="[RESULT.json]", help="Of what this result used alone.", show_default=False),
    ] = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Print how to cite mipfs and the papers of its methods, as BibTeX."""
    from mipfs.cli.output import check_target, write_json
    from mipfs.drivers import DRIVERS, get_driver
    from mipfs.losses import is_joint
    from mipfs.result import documents

    check_target(json, result_file and documents.split_point(result_file)[0])
    entries = _bibtex_entries()
    if result_file is not None:
        result = documents.load(result_file)
        wanted = {"mipfs", *(get_driver(result.driver).CAPABILITY.papers if result.driver in DRIVERS else ())}
        wanted |= {"mao2013"} if is_joint(result.params.get("loss")) else set()
        entries = {name: text for name, text in entries.items() if name in wanted}
    write_json({"schema": 1, "entries": entries}, json)
    if json != "-":
        print("\n\n".join(entries.values()))
    return 0


def _bibtex_entries() -> dict[str, str]:
    """The entries by their keys, in order."""
    import mipfs

    text = Path(__file__).with_name("cite.bib").read_text(encoding="utf-8").strip()
    entries = text.replace("VERSION", mipfs.__version__).split("\n\n")
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in entries}
