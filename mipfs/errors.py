"""The errors that users meet: each says what was wrong, where, and what would be right."""

from __future__ import annotations

from pathlib import Path


class MipfsError(Exception):
    """Base of all errors raised on purpose; ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(MipfsError):
    """A parameter, an option or a combination of them that cannot be honoured."""

    exit_code = 2


class RowError(UsageError):
    """A row over the selection that cannot be honoured; the message names the row."""


class NumericalError(MipfsError):
    """A solver failed, or gave an answer that exact arithmetic does not bear out: nothing may be concluded from it."""

    exit_code = 2


class ContradictionError(MipfsError):
    """An earned bound lies above the objective of a feasible classifier, which no rounding explains: an internal error.

    Parameters
    ----------
    bound, objective : float, in the unit margin; the objective rounded up
    """

    def __init__(self, bound: float, objective: float) -> None:
        super().__init__(
            f"internal error: the bound {bound!r} lies above the objective {objective!r} of a feasible classifier; "
            "one of the two is wrong, so neither is given out; please report the command and the data"
        )


class UndecidedError(NumericalError):
    """Whether anything satisfies rows remains open: neither was found what does, nor a proof that nothing does."""


class StoppedError(NumericalError):
    """A limit came before an answer that a run cannot do without."""


class LostWorkersError(MipfsError):
    """All processes that shared a work were ended from outside.

    Parameters
    ----------
    count : int, of processes
    """

    exit_code = 4

    def __init__(self, count: int) -> None:
        super().__init__(
            f"all {count} processes that shared the work were ended from outside, as a system does that lacks memory; "
            "nothing was found; give fewer with --jobs"
        )


class DataError(MipfsError):
    """Bad input data.

    Parameters
    ----------
    message : str
        What is wrong, with the offending value.
    remedy : str
        What to do about it.
    path : path-like, optional
        The file it was found in.
    line : int, optional
        The 1-based line in that file.
    """

    exit_code = 2

    def __init__(
        self, message: str, remedy: str = "", *, path: str | Path | None = None, line: int | None = None
    ) -> None:
        self.message = message
        self.remedy = remedy
        self.path = path
        self.line = line
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(f"{where}{message}" + (f"; {remedy}" if remedy else ""))


class UnpackedError(DataError):
    """A file that unpacks to far more than its bytes, before memory is taken for it."""


class LabelError(DataError):
    """The labels do not stand where they are said to stand, or are not what they are said to be."""


class StartWarning(UserWarning):
    """Values of a model's variables that are no start for a run, and are left out; the message says why."""


class RelaxationWarning(UserWarning):
    """A program of one's own that is weaker than the relaxation of the problem that it states; the answer is right."""


class MoreClassesError(LabelError):
    """There are more than two classes, where two are asked for."""


class CertificateWarning(UserWarning):
    """A saved result claims less than the run found, so that its certificate stays small."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the run goes on, and what was kept before stands."""


class DataWarning(UserWarning):
    """Data that can be read, but perhaps not as it was meant; the message names the file, the column and the remedy."""


class SuspectWarning(DataWarning):
    """Data of which something is seldom meant: a column that separates the classes alone, a constant one, a copy."""


class MissingExtraError(UsageError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, what: str) -> None:
        super().__init__(f"{what} needs {package}, which is not installed; pip install 'mipfs[{extra}]'")
