"""``mipfs models``: what can be solved, and by which driver."""

from __future__ import annotations

from mipfs.cli.options import Json, Quiet, Seed


def models(json: Json = None, quiet: Quiet = False, seed: Seed = 0) -> int:
    """List the formulations, and what every driver carries."""
    from mipfs.cli.output import check_target, write_json
    from mipfs.drivers import DRIVERS, get_driver
    from mipfs.formulation import table

    check_target(json)
    formulations = [
        {
            "name": entry.name,
            "file": f"models/{entry.file}",
            "loss": entry.loss,
            "bias": entry.bias,
            "parameters": " ".join(entry.parameters),
            "driver": entry.driver,
        }
        for entry in table()
    ]
    carried = [
        {
            "driver": name,
            "losses": " ".join(sorted(get_driver(name).LOSSES)),
            "rows": "any linear rows, extra variables",
            "atoms": get_driver(name).ATOMS,
            "bound": "the solver's word" if name == "monolithic" else "earned",
        }
        for name in DRIVERS
    ]
    if json is not None:
        write_json({"schema": 1, "formulations": formulations, "drivers": carried}, json)
    if json != "-" and not quiet:
        _show(formulations, "Formulations")
        _show(carried, "Drivers")
    return 0


def _show(lines: list[dict[str, str]], title: str) -> None:
    from mipfs.cli.text import show_table

    show_table(tuple(lines[0]), [tuple(line.values()) for line in lines], title=title, left=len(lines[0]))
