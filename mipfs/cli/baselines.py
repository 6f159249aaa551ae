"""``mipfs baselines``: what there is to compare with."""

from __future__ import annotations

from mipfs.cli.options import Json, Quiet, Seed


def baselines(json: Json = None, quiet: Quiet = False, seed: Seed = 0) -> int:
    """List the baselines: what they do, where they are from, what they take."""
    from mipfs.cli.output import check_target, show_table, write_json

    check_target(json)
    lines = baseline_lines()
    write_json({"schema": 1, "baselines": lines}, json)
    if json != "-" and not quiet:
        for title, names in (("What they do", ("name", "what", "source")), ("What they take", TAKEN)):
            show_table(names, [tuple(line[name] for name in names) for line in lines], title=title, left=len(names))
    return 0


TAKEN = ("name", "features", "sparse", "weights", "groups", "limits", "library")


def baseline_lines() -> list[dict[str, str]]:
    """The table of baselines, the references on all features last."""
    from mipfs.lab import baselines

    lines = []
    for name in (*baselines.available(), *baselines.references()):
        said = baselines.about(name)
        lines.append(
            {
                "name": name,
                "what": said.what,
                "source": said.source,
                "features": "at most M" if name in baselines.available() else "all",
                "sparse": said.sparse,
                "weights": "any data" if said.weighted else "some data",
                "groups": "whole" if said.grouped else "no",
                "limits": said.limits,
                "library": said.library,
            }
        )
    return lines
