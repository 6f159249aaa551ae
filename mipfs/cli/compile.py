"""``mipfs compile``: the machine code of everything, made before anything is solved, as when an image is built."""

from __future__ import annotations

from typing import Annotated

import typer

from mipfs.cli.options import Json, Quiet, Seed

WHERE = "Say where machine code is read from and written to, and compile nothing."
BESIDE = "Put it beside the package's sources, where whoever uses them finds it: for images and shared installations."


def compile(
    where: Annotated[bool, typer.Option("--where", help=WHERE)] = False,
    beside_sources: Annotated[bool, typer.Option("--beside-sources", help=BESIDE)] = False,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Compile the kernels for every kind of problem, so that no first run has to."""
    from mipfs.cli.errors import complain
    from mipfs.cli.output import check_target, say, write_json
    from mipfs.compiled import kept
    from mipfs.errors import UsageError

    check_target(json)
    if beside_sources:
        kept.use_beside()
    folder = kept.home()
    read = [str(one) for one in kept.cache_folders()]
    found = {"schema": 1, "key": kept.key(), "read": read, "written": None if folder is None else str(folder)}
    lines = [*(f"read from   {one}" for one in read), f"written to  {folder or 'nowhere'}"]
    failed = list[str]()
    if not where:
        if folder is None:
            raise UsageError("compiled code can be kept nowhere; name a folder with NUMBA_CACHE_DIR")
        seconds, ended, failed = _compile_kinds(quiet or json == "-")
        size = sum(path.stat().st_size for path in folder.iterdir())
        found |= {"seconds": seconds, "kinds": ended, "failed": failed, "bytes": size}
        lines = [f"{len(ended)} kinds are compiled, after {seconds:.0f} s: {size / 1e6:.0f} MB in {folder}"]
    write_json(found, json)
    if json != "-" and not quiet:
        for line in lines:
            say(line)
    if failed:
        complain(f"not compiled: {', '.join(failed)}; is there enough memory, and room on the disk? Run it again")
    return 1 if failed else 0


def _compile_kinds(quiet: bool) -> tuple[float, list[str], list[str]]:
    """Compile all kinds: the seconds, and the names of those that are compiled and that failed."""
    import time

    from mipfs.cli.compiled_kinds import compile_kinds, kinds
    from mipfs.plumbing.signals import handle_signals
    from mipfs.report.progress import progress
    from mipfs.run.warm_up import StopRequest

    names, asked, began = kinds(), StopRequest(), time.monotonic()
    ended: dict[str, bool] = {}
    with progress("compiling:", "kinds", not quiet) as tell, handle_signals(asked):

        def must_stop() -> bool:
            tell(len(ended), len(names))
            return asked.came

        compile_kinds(names, must_stop, ended.__setitem__)
    if asked.came:
        raise KeyboardInterrupt
    kinds_of = {ok: [name for name in names if ended.get(name, False) is ok] for ok in (True, False)}
    return time.monotonic() - began, kinds_of[True], kinds_of[False]
