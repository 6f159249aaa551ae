"""``mipfs models``: what can be solved, and by which driver."""

from __future__ import annotations

from mipfs.cli.options import Json, Quiet, Seed


def models(json: Json = None, quiet: Quiet = False, seed: Seed = 0) -> int:
    """List the formulations, and what every driver carries."""
    from mipfs.cli.output import check_target, write_json

    check_target(json)
    formulations = formulation_lines()
    carried = driver_lines()
    atoms = atom_lines()
    write_json({"schema": 1, "formulations": formulations, "drivers": carried, "atoms": atoms}, json)
    if json != "-" and not quiet:
        _show(formulations, "Formulations")
        _show(carried, "Drivers")
        _show(atoms, "Atoms (-p atoms=NAME of fsp-m, fsp-lambda, fgm, boolean and structural)")
    return 0


def formulation_lines() -> list[dict[str, str]]:
    """The table of formulations: their defaults, and what the declared program carries."""
    from mipfs.formulation import table

    return [
        {
            "name": entry.name,
            "file": f"models/{entry.file}",
            "loss": entry.loss,
            "bias": entry.bias,
            "parameters": " ".join(entry.parameters),
            "driver": entry.driver,
            **{
                name: cell
                for name, cell in entry.capability.line().items()
                if name in ("losses", "atoms", "rows", "bound")
            },
        }
        for entry in table()
    ]


def driver_lines() -> list[dict[str, str]]:
    """The table of drivers: what each carries."""
    from mipfs.drivers import capabilities

    return [{"driver": name, **capability.line()} for name, capability in capabilities().items()]


def atom_lines() -> list[dict[str, str]]:
    """The table of what can be selected: the options of every kind, what it is, and where it is from."""
    from mipfs.atoms.registry import KINDS

    return [
        {"atoms": name, "options": " ".join(kind.options), "about": kind.about, "source": kind.source}
        for name, kind in KINDS.items()
    ]


def _show(lines: list[dict[str, str]], title: str) -> None:
    from mipfs.cli.output import show_table

    show_table(tuple(lines[0]), [tuple(line.values()) for line in lines], title=title, left=len(lines[0]))
