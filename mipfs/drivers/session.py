"""A driver's loop, one step at a time: what holds everything that is live while a problem is solved.

    session = start(problem)     the loop stands before its first step
    session.step()               on to where the loop can pause next: after its next iteration record
    session.state                arrays and numbers: where it stands; another process can go on from there
    session.result()             what was found, with its earned bound; a loop that is not done ends here

`mipfs.solve` is such a session that is worked off at once. A driver is a generator, so its loop is written like the
paper's box and yet can wait: it yields what makes the driver's part of its state.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from mipfs.data.instance import Instance
from mipfs.errors import NumericalError, StoppedError, UndecidedError, UsageError
from mipfs.plumbing.signals import is_any_interrupted
from mipfs.problem import Problem
from mipfs.result.decided import DecisionMaker
from mipfs.result.loaded import point_of
from mipfs.result.result import Record, Result
from mipfs.result.state import RunState
from mipfs.run.finish import result_of
from mipfs.run.live_lines import live_lines
from mipfs.run.outcome import Outcome
from mipfs.run.run import Keeper, Observer, Run, Steps, interruptible, restore_run, settings_of, state_of
from mipfs.run.warm import RunStart
from mipfs.run.warm_up import prepare
from mipfs.settings import DriverSettings

if TYPE_CHECKING:
    from mipfs.formulation.own_program import Evaluation

LOG = logging.getLogger("mipfs")


class Session:
    """A run of a driver on a problem, which goes on when it is told to; made by `mipfs.start`.

    It owns what is live (linear programs, open nodes, threads, a solver's process), which is why it is neither copied
    nor pickled: its `state` is. Between two steps its clock stands still, and signals are as they were; threads may
    finish what they were given. It is for one thread at a time.

    Parameters
    ----------
    model : Problem, or the model that was compiled to `problem`, into which the incumbent is loaded at the end
    problem : Problem
    driver : str, the name of `module`
    module : module of a driver
    options : the driver's options
    callback, stop, observers, verbose : see `mipfs.solve`
    keeper : Keeper, optional, keeps states as it goes
    resume : RunState, optional, to go on with
    warm : RunStart, optional, what an earlier result leaves to this problem
    why_no_state : str, why the driver has no state for this problem; empty where it has
    settings : DriverSettings, optional, the driver's
    own : Evaluation, optional, of a program of a user's own, which is evaluated at the answer too
    data : Instance, optional, the user's, of which `problem` is a view: what the proof says of it is derived from it

    Attributes
    ----------
    is_over : bool, whether the loop has ended
    """

    def __init__(
        self,
        model: Any,
        problem: Problem,
        driver: str,
        module: ModuleType,
        options: Any,
        *,
        callback: Callable[[Record], object] | None = None,
        stop: Callable[[], bool] | None = None,
        observers: Iterable[Observer] = (),
        verbose: bool = False,
        keeper: Keeper | None = None,
        resume: RunState | None = None,
        warm: RunStart | None = None,
        why_no_state: str = "",
        settings: DriverSettings | None = None,
        own: Evaluation | None = None,
        data: Instance | None = None,
    ) -> None:
        self.problem = problem
        self._data = data
        self.driver = driver
        self.is_over = False
        self._model = model
        self._own = own
        self._keeper = keeper
        self._why_no_state = why_no_state
        self._result: Result | None = None
        self._error: BaseException | None = None
        if warm is not None:
            LOG.info("%s", warm.line())
        settings = settings_of(options, settings)
        with ExitStack() as stack:
            lines = stack.enter_context(live_lines(verbose, settings.line()))
            asked = prepare(module, problem, options)
            if problem.data.block().is_stored:
                # The result needs the digest: a pass over the data, which a limit should not wait for.
                _ = problem.data.sha256
            self._run = Run(problem, options, observers=(*observers, *lines), callback=callback, settings=settings)
            self._run.is_certified = module.CAPABILITY.is_certified
            self._run.bound_source = "dual" if self._run.is_certified else "solver"
            self._run.resume, self._run.warm = resume, warm
            self._run.is_over = stop or self._run.is_over
            self._run.room = None if keeper is None else keeper.room
            self._run.is_kept = keeper is not None
            self._run.asked = asked.came or is_any_interrupted()
            self._run.interrupted = asked.came and asked.is_cold
            self._steps: Steps = _none_of(self._run) if self._run.interrupted else module.run(self._run)
            self._run.pause()
            self._shown = stack.pop_all()

    @property
    def record(self) -> Record | None:
        """What the loop last said: incumbent, bound, gap, iteration; None before the first."""
        return self._run.last_record

    @property
    def outcome(self) -> Outcome:
        """What the driver leaves besides incumbent and bound; complete once the loop has ended."""
        return self._run.outcome

    @property
    def state(self) -> RunState:
        """Where the loop stands, to be saved or handed to ``resume=``; after its end, where it last stood.

        `gbd` goes on to the bit from where its LP was made anew alone: its state is the last of these, some tens of
        cuts before.

        Raises
        ------
        UsageError
            Before the first step, or the driver has no state for this problem and these options.
        """
        if self._why_no_state:
            raise UsageError(self._why_no_state)
        kept = self._keeper.state if self.is_over and self._keeper is not None else None
        if self._run.resting is not None and not self.is_over:
            return state_of(self._run, self.driver)
        if kept is None:
            raise UsageError("a session has a state from its first step on; call step() before")
        return kept

    def step(self) -> bool:
        """Work on until the loop can pause again, mostly for one iteration.

        Returns
        -------
        bool
            False once the loop has ended: by its gap, a limit, a signal, a `callback` or `stop`.

        Raises
        ------
        KeyboardInterrupt
            A second Ctrl-C before there was an incumbent.
        """
        return not self.is_over and self._advance_by(1) == 1

    def __iter__(self) -> Iterator[Record]:
        """Step by step to the end: the record after every step."""
        while self.step():
            if self.record is not None:
                yield self.record

    def finish(self) -> Result:
        """Work until the loop ends by itself; what was found."""
        self._advance_by()
        return self.result()

    def result(self) -> Result:
        """What was found, with the bound as far as it is earned; a loop that is not done ends here, as if interrupted.

        Raises
        ------
        Exception
            What ended the loop, where that was an error.
        """
        self.close()
        if self._error is not None:
            raise self._error
        if self._result is None:
            found = result_of(self._run, self.driver)
            if self._own is not None and found.has_classifier:
                self._own.check(point_of(found, self._own.problem), found.objective)
            deciding = None if found.claim is None else DecisionMaker(self._data)
            found = dataclasses.replace(found, deciding=deciding)
            self._result = found if self._keeper is None else dataclasses.replace(found, state=self._keeper.state)
            if not isinstance(self._model, Problem) and found.has_classifier:
                self._result.load_into(self._model)
        return self._result

    def close(self) -> None:
        """End the loop, if it has not ended, and let go of everything that is live; the result stays."""
        if not self.is_over:
            self._run.asked = True
            self._run.interrupted = bool(self._run.trace)
            self._advance_by()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a session holds live solvers and is neither copied nor pickled; keep its state instead")

    def _advance_by(self, most: int = sys.maxsize) -> int:
        """Take at most `most` steps under the handlers of signals; returns how many there were."""
        done = 0
        if not self.is_over:
            with interruptible(self._run):
                while done < most and self._advance_once():
                    done += 1
        return done

    def _advance_once(self) -> bool:
        """One step; False once the loop has ended."""
        run = self._run
        goes_on = False
        run.go_on()
        try:
            goes_on = self._goes_on()
        except KeyboardInterrupt as struck:
            # A second Ctrl-C cuts the driver short; the incumbent and the bound that it has left stand.
            run.interrupted = run.interrupted or run.asked
            if not run.interrupted or run.incumbent is None:
                self._error = struck
                raise
        except BaseException as error:
            self._error = error
            raise
        finally:
            run.pause()
            if not goes_on:
                self.is_over = True
                self._run.resting = None
                self._steps.close()
                self._shown.close()
        return goes_on

    def _goes_on(self) -> bool:
        """Have the driver take its next step, and keep its state where it is time."""
        run = self._run
        keeper = self._keeper
        try:
            made = next(self._steps)
        except (StopIteration, StoppedError):
            # Status and stop reason follow from the gap and from the limit that struck.
            pass
        except UndecidedError:
            # The gap is closed as far as it can be.
            run.closed = True
        except NumericalError:
            run.failed = True
        else:
            if made is not None and run.is_kept:
                run.take_snapshot(made)
            is_due = keeper is not None and ((run.is_exact and keeper.due()) or run.stop() is not None)
            if keeper is not None and is_due and run.resting is not None:
                keeper.keep(lambda: self.state)
            return True
        run.offer_spare()
        run.record()
        return False


def _none_of(run: Run) -> Steps:
    """The steps of a run that was interrupted before its kernels were compiled: what it was to go on with stands."""
    if run.resume is not None:
        restore_run(run, run.resume)
    yield from ()
