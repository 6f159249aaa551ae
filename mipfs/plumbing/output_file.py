"""Output files: written beside their place, and moved there when whole. All files of the package go through `save`.

An error, a full disk or an interrupt leaves what stood there before. Of several files that belong together all are
whole before the first is moved, and the last one is the one that names the others: who reads it finds them.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mipfs.errors import UsageError
from mipfs.plumbing import signals

_STREAM = re.compile(r"/dev/(stdout|stderr|fd/\d+)|/proc/.*")
"""What stands for an open stream, even where that leads to a file."""
WAIT_SECONDS = 10.0
"""Seconds that a block waits for those before it (`alone`)."""
_NAME = 40
"""Characters of a name that its temporary file repeats: names end at 255 bytes."""


Content = bytes | Callable[[IO[bytes]], object]
"""What a file is to hold, or what writes that to it."""


def save(files: Iterable[tuple[Path, Content]]) -> None:
    """Write files, all of them or none.

    Parameters
    ----------
    files : pairs of a path and its contents, or of a path and what writes them
        Taken one by one, so that a generator need not hold all contents at once. A link keeps its target, an existing
        file its permissions; a pipe or a device is written to as it is. The last file is moved last.

    Raises
    ------
    UsageError
        A file cannot be written; everything is as it was.
    """
    with signals.hold_signals():
        parts: list[_Part] = []
        try:
            for path, content in files:
                if is_stream(path):
                    _write_to_device(path, content)
                else:
                    parts.append(_Part.of(path, content))
            _move_parts(parts)
        finally:
            for part in parts:
                part.remove_unfinished()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let nobody else of this package into a folder's block meanwhile, thread or process, as far as its system can.

    Whoever waits does so for `WAIT_SECONDS` seconds, and then goes on: a block is short.
    """
    with ExitStack() as stack:
        try:
            import fcntl

            handle = os.open(folder, os.O_RDONLY)
        except (ImportError, OSError):
            yield
            return
        stack.callback(os.close, handle)  # which lets go of the lock
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:  # a file system that knows no locks
                break
            else:
                break
        yield


def is_stream(path: Path) -> bool:
    """Whether a path leads to a pipe, a terminal or a device, where nothing can stand beside it."""
    try:
        if _STREAM.fullmatch(os.path.abspath(path)):
            return True
    except FileNotFoundError:
        raise _writing_error(path, "the current folder was removed") from None
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def has_folder(path: Path) -> bool:
    """Whether the folder of a file is there."""
    try:
        return os.path.isdir(os.path.dirname(os.path.abspath(path)))
    except FileNotFoundError:  # the current folder was removed
        return False


def check(path: Path, inputs: Sequence[str | Path] = ()) -> None:
    """Refuse a place where nothing can be written, or that is one of the inputs, before hours of work are lost to it.

    Raises
    ------
    UsageError
    """
    for read in inputs:
        if _same_file(path, Path(read)):
            raise UsageError(f"{path} is read here, and would be overwritten; give the output another name")
    if not is_stream(path):
        place = _final_path(path)
        if not os.access(place.parent, os.W_OK):
            reason = "no such folder" if not os.path.exists(place.parent) else "the folder is not yours to write in"
            raise _writing_error(path, reason)


@dataclass(frozen=True)
class _Part:
    """A file that is whole, beside its place; `lock` says to others that whoever made it is alive, where it can."""

    path: Path
    place: Path
    beside: Path
    kept: Path
    lock: int | None

    @classmethod
    def of(cls, path: Path, content: Content) -> _Part:
        place = _final_path(path)
        _clear_abandoned_parts(place)
        try:
            part, handle = cls._begin_part(path, place)
        except OSError as error:
            raise _writing_error(path, error) from None
        try:
            with os.fdopen(handle, "wb") as stream:
                if place.exists():
                    _take_over(handle, place.stat())
                _write(content, stream)
                stream.flush()
                os.fsync(handle)
        except BaseException as error:
            part.remove_unfinished()
            if isinstance(error, OSError):
                raise _writing_error(path, error) from None
            raise
        return part

    @classmethod
    def _begin_part(cls, path: Path, place: Path) -> tuple[_Part, int]:
        """An empty part that is locked, and its handle; once more where another one cleared it before it was locked."""
        while True:
            token = secrets.token_hex(4)
            beside, kept = (place.with_name(f".{place.name[:_NAME]}.{token}.{end}") for end in ("part", "kept"))
            # As `open` would: the umask decides, unless there is a file whose permissions it takes over.
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
            part = cls(path, place, beside, kept, _lock_file(handle))
            if part.lock is None or beside.exists():
                return part, handle
            os.close(handle)
            part.remove_unfinished()

    def remove_unfinished(self) -> None:
        """Remove what is not in its place."""
        for left in (self.beside, self.kept):
            with suppress(OSError):
                left.unlink()
        if self.lock is not None:
            os.close(self.lock)


def _lock_file(handle: int) -> int | None:
    """Lock a file that is being written as long as this process lives, or until what is returned is closed."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_SH)
        return os.dup(handle)
    except (ImportError, OSError):  # a system or a file system that knows no locks
        return None


def _clear_abandoned_parts(place: Path) -> None:
    """Remove what killed processes left beside a file: names that `_Part` gives, whose `.part` nobody has locked.

    Where there are no locks nothing is removed: its owner may be at work, on this machine or another one. A `.kept`
    goes with the `.part` of its token; one without is what a kill after the last move has left, and goes too, unless
    a lock on the file itself, which was a `.part`, says that its owner is still there.
    """
    begins = f".{place.name[:_NAME]}."
    left = re.compile(re.escape(begins) + "([0-9a-f]{8})[.](part|kept)")
    with suppress(OSError):
        found = [match for name in os.listdir(place.parent) if (match := left.fullmatch(name))]
        for token in sorted({match[1] for match in found}):
            part, kept = (place.with_name(f"{begins}{token}.{end}") for end in ("part", "kept"))
            if _is_dead(part if os.path.lexists(part) else place):
                for one in (part, kept):
                    one.unlink(missing_ok=True)


def _is_dead(path: Path) -> bool:
    """Whether nobody holds the lock of a file, on a file system that has locks; also where there is no file."""
    try:
        import fcntl

        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return True
    except (ImportError, OSError):
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _final_path(path: Path) -> Path:
    """Where the file itself is or will be, at the end of all links."""
    try:
        place = Path(os.path.realpath(path))
        if not path.name:
            raise _writing_error(path, "this is no file name")
        mode = os.stat(place).st_mode
    except FileNotFoundError:
        return place
    except (OSError, ValueError) as error:
        raise _writing_error(path, error) from None
    if stat.S_ISDIR(mode):
        raise _writing_error(path, "this is a folder")
    if not os.access(place, os.W_OK):
        raise _writing_error(path, "the file is write-protected")
    return place


def _take_over(handle: int, old: os.stat_result) -> None:
    """Permissions and, where that is allowed, the owner of the file that is replaced."""
    if hasattr(os, "fchown"):
        with suppress(PermissionError):
            os.fchown(handle, old.st_uid, old.st_gid)
        os.fchmod(handle, stat.S_IMODE(old.st_mode))


def _move_parts(parts: Sequence[_Part]) -> None:
    """Move every part to its place; when one cannot be moved, those before it go back."""
    moved: list[tuple[_Part, bool]] = []
    try:
        for part in parts:
            is_new = not part.place.exists()
            with suppress(OSError):  # not every file system has hard links
                os.link(part.place, part.kept)
            os.replace(part.beside, part.place)
            moved.append((part, is_new))
    except OSError as error:
        for done, is_new in reversed(moved):
            with suppress(OSError):
                done.place.unlink() if is_new else os.replace(done.kept, done.place)
        raise _writing_error(part.path, error) from None
    for folder in {part.place.parent for part in parts}:
        with suppress(OSError):  # not every system can do this with a folder
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _write_to_device(path: Path, content: Content) -> None:
    """Write to a pipe or device; who waits for its reader hears Ctrl-C."""
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        with signals.hearing_signals():
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "wb") as stream:
            _write(content, stream)
    except BrokenPipeError:
        raise  # its reader has seen enough
    except (OSError, ValueError) as error:
        raise _writing_error(path, error) from None


def _write(content: Content, stream: IO[bytes]) -> None:
    if callable(content):
        content(stream)
    else:
        stream.write(content)


def _same_file(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    try:
        return os.path.samefile(path, other) and not is_stream(path)
    except (OSError, ValueError):
        return False


def _writing_error(path: Path, error: OSError | ValueError | str) -> UsageError:
    reason = error if isinstance(error, str) else getattr(error, "strerror", None) or str(error)
    return UsageError(f"{path}: cannot be written: {reason}; give another place for it")
