"""The command ``mipfs``: one file per command, and one place that turns errors into exit codes.

Exit codes: 0 done (also when a limit or Ctrl-C left an incumbent), 1 internal error, 2 bad usage or bad
data, 3 no selection satisfies the rows, 4 stopped before there was any incumbent.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of this process by default. None of them: the help.
    """
    import sys

    import typer

    from mipfs.cli.app import app
    from mipfs.cli.errors import report

    for stream in (sys.stdout, sys.stderr):
        # A feature name that the terminal cannot show must not end a run.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    args = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        code = typer.main.get_command(app).main(args=args, prog_name="mipfs", standalone_mode=False)
    except Exception as error:
        return report(error)
    return int(code or 0)
