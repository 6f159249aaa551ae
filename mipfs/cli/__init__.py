"""The command ``mipfs``: one file per command, and one place that turns errors into exit codes.

Exit codes: 0 done (also when a limit or Ctrl-C left an incumbent), 1 internal error, 2 bad usage or bad
data, 3 no selection satisfies the rows, 4 stopped before there was any incumbent. SIGTERM and SIGHUP are a Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Sequence

_INTERRUPTED = 130
"""What typer returns for Ctrl-C before a command began."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of this process by default. None of them: the help.
    """
    import gc

    from mipfs.cli.errors import report
    from mipfs.cli.streams import sound_streams
    from mipfs.plumbing import signals
    from mipfs.plumbing.machine import begin_lightly, safe_path

    if argv is None:  # the process is this command's
        begin_lightly()
    # Only a command that is at work hears a signal: before it one waits, after it none changes the exit code.
    with sound_streams(), safe_path(), signals.silence_interrupts(), signals.hold_signals(deliver=False):
        try:
            code = _run_app(argv)
        except (Exception, KeyboardInterrupt) as error:
            code = report(error)
        if argv is None:
            signals.ignore()
    if argv is None:
        gc.freeze()  # the process ends: its objects need not be looked through for garbage once more
        signals.exit_after_strike(code)
    return code


def _run_app(argv: Sequence[str] | None) -> int:
    import sys

    import typer

    from mipfs.cli.app import app
    from mipfs.cli.typed import ARGUMENTS
    from mipfs.errors import UsageError

    args = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    if any("\0" in argument for argument in args):
        raise UsageError("an argument holds a NUL character, which no name has; leave it out")
    typed = ARGUMENTS.set(args)
    try:
        code = typer.main.get_command(app).main(args=args, prog_name="mipfs", standalone_mode=False)
    except SystemExit:  # how typer takes the end of its reader, and nothing else
        raise BrokenPipeError from None
    finally:
        ARGUMENTS.reset(typed)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    if not code:
        sys.stdout.flush()
    return int(code or 0)
