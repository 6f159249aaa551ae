"""The commands, each loaded by its name."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from mipfs import __version__
from mipfs.cli.errors import command
from mipfs.errors import UsageError

COMMANDS = (
    "demo",
    "solve",
    "resume",
    "compare",
    "path",
    "frontier",
    "bench",
    "study",
    "stability",
    "sketch",
    "bags",
    "models",
    "baselines",
    "generate",
    "convert",
    "predict",
    "evaluate",
    "verify",
    "refit",
    "bins",
    "scorecard",
    "report",
    "table",
    "cite",
    "compile",
)
"""In the order of the help; each is the function of its name in the file of its name."""
# Plain help keeps rich out of `mipfs --help`, which then starts at once.
PLAIN: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class Commands(TyperGroup):
    """The commands, each loaded when it is asked for: `mipfs verify` loads the file of no other command."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, and those of commands that somebody else entered."""
        return list(dict.fromkeys([*COMMANDS, *super().list_commands(ctx)]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name; None where there is none."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _load_command(cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments begin with; where there is none, all are loaded to name the nearest."""
        if args and args[0] not in COMMANDS:
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


RESTRICTING = {"--subject-to", "--weight-rows", "--nonnegative", "--nonpositive"}
"""Options that ask for more of the problem: of others given twice the last value counts, as on any command line."""


class OneCommand(TyperCommand):
    """A command that refuses twice what restricts the problem: the first of them would be passed over."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments, read.

        Raises
        ------
        UsageError
            One of `RESTRICTING` stands there twice.
        """
        given: list[Any] = list(self.make_parser(ctx).parse_args(list(args))[2])
        named = [option for param in given for option in param.opts if option in RESTRICTING]
        twice = [option for option in named if named.count(option) > 1]
        if twice:
            raise UsageError(f"{twice[0]} is given twice, and takes one value; give it once")
        return list(super().parse_args(ctx, args))


def _load_command(name: str) -> Any:
    function = getattr(import_module(f"mipfs.cli.{name}"), name)
    alone = typer.Typer(**PLAIN)
    alone.command(name, cls=OneCommand)(command(function))
    return typer.main.get_command(alone)


app = typer.Typer(name="mipfs", cls=Commands, **PLAIN)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"mipfs {__version__}")
        raise typer.Exit


EXIT_CODES = (
    "Exit codes: 0 done, 1 internal error or certificate rejected, 2 bad usage or data, 3 infeasible rows, "
    "4 stopped too early."
)


@app.callback(epilog=EXIT_CODES)
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Feature selection for support vector machines, solved to proven optimality."""
