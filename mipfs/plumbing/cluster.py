"""Other processes and machines: the scheduler and workers of Dask, of which nothing here is our own."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from threading import Event
from typing import Any

from mipfs.errors import MissingExtraError, UsageError
from mipfs.plumbing.declared import show_value

LOG = logging.getLogger("mipfs")
SCHEDULER_SECONDS = 5.0
"""Seconds within which a scheduler tells who its workers are; one that does not counts as one without any."""
REFRESH_SECONDS, WORKER_SECONDS = 2.0, 10.0
"""Seconds from one look at who the workers are to the next; and how long a run waits for one where there is none."""
FETCH_SECONDS, MOST_FETCHES = 30.0, 3
"""Seconds that an answer may take on its way back, and how often it is asked for before this process finds it."""
POLL_SECONDS = 0.05
"""Seconds from one look at an answer that is awaited to the next."""
LATE_SECONDS = 30.0
"""Seconds after which the scheduler is asked whether some worker has what is not back; where none has, it is asked
again."""
LOST_ERRORS = CancelledError, TimeoutError, OSError, RuntimeError, KeyError
"""What is raised where a worker or the scheduler goes away meanwhile; the last two by a client that closes just then,
and for the address of a worker that is gone."""


def client_of(address: str) -> Any:
    """A Dask client of the scheduler at an address.

    Raises
    ------
    MissingExtraError
        distributed is not installed.
    UsageError
        Nobody answers at the address.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("distributed", "dask", "a Dask client") from None
    try:
        return Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler at {address!r} ({error}); give one such as tcp://host:8786") from None


def check_client(client: Any) -> None:
    """Refuse what is no client that can be waited for.

    Raises
    ------
    MissingExtraError, UsageError
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("distributed", "dask", "client") from None
    if not isinstance(client, Client) or client.asynchronous:
        raise UsageError(f"client = {show_value(client)} is no dask.distributed.Client (one that is not asynchronous)")


def local_error(error: BaseException) -> BaseException:
    """What an error on a worker is here."""
    if isinstance(error, (ImportError, AttributeError)):
        return UsageError(f"the workers cannot load mipfs ({error}); install the same version there")
    return error


def has_killed(error: BaseException) -> bool:
    """Whether the work took one worker after the other with it."""
    from distributed import KilledWorker

    return isinstance(error, KilledWorker)


def threads_of(client: Any) -> dict[str, int]:
    """Threads of every worker by its address; none where the scheduler is gone or does not answer."""
    if client.status != "running":
        return {}
    try:
        found: dict[str, int] = client.sync(client.scheduler.ncores, callback_timeout=SCHEDULER_SECONDS)
    except (TimeoutError, OSError):  # of comms that are closed too
        return {}
    return found


class Cluster:
    """Who the workers of a client are, looked up now and then, and whether there is still somebody to work with.

    Parameters
    ----------
    client : dask.distributed.Client
    goes_on : what this process does alone, for the warning that says so, once for every reason
    """

    def __init__(self, client: Any, goes_on: str) -> None:
        self.client = client
        self._goes_on = goes_on
        self._threads: dict[str, int] = {}
        self._looked = -math.inf
        self._seen = time.monotonic()
        self._broadcasts = True
        self._said: set[str] = set()

    @property
    def is_gone(self) -> bool:
        """Whether the scheduler has left for good."""
        return self.client.status not in ("running", "connecting")

    def threads(self) -> dict[str, int]:
        """Threads of every worker by its address, as they were a moment ago."""
        now = time.monotonic()
        if self.client.status != "running":
            self._threads = {}
        elif now - self._looked >= REFRESH_SECONDS:
            self._threads = threads_of(self.client)
            self._looked = now
        if self._threads:
            self._seen = now
        return self._threads

    def failed(self) -> None:
        """Note that nothing could be handed over: there is nobody until the next look."""
        self._threads = {}
        self._looked = time.monotonic()

    def stale(self) -> None:
        """Look again before the next answer: something was lost."""
        self._looked = -math.inf

    def scatter(self, value: Any, worker: str | None = None, seconds: float = FETCH_SECONDS) -> Any:
        """The future of a value that a worker holds: the one named, or any, and the others fetch it or were sent it.

        A worker that dies in the middle of a broadcast may leave it waiting for ever, with the lock that the next one
        needs. So there is none any more after one that is late.

        Raises
        ------
        TimeoutError
            It is not there when the seconds are over.
        """
        options = {"broadcast": self._broadcasts} if worker is None else {"workers": [worker]}
        try:
            (found,) = self.client.sync(
                lambda: self.client.scatter([value], hash=False, timeout=REFRESH_SECONDS, asynchronous=True, **options),
                callback_timeout=seconds,
            )
        except TimeoutError:
            if worker is None:
                self._broadcasts = False
            raise
        return found

    def has(self, key: str) -> bool:
        """Whether some worker has a task in hand, or that cannot be told now."""
        try:
            in_hand = self.client.sync(
                self.client.scheduler.processing, workers=None, callback_timeout=SCHEDULER_SECONDS
            )
        except LOST_ERRORS:
            return True
        return any(key in keys for keys in in_hand.values())

    def is_alone(self) -> bool:
        """Whether this process must go on alone, for now or, where the scheduler is gone, for good."""
        if not self.is_gone and (self.threads() or time.monotonic() - self._seen < WORKER_SECONDS):
            return False
        why = "the Dask scheduler went away" if self.is_gone else "no Dask worker is left"
        if why not in self._said:
            self._said.add(why)
            LOG.warning("%s; nothing is lost, %s", why, self._goes_on)
        return True


class ClusterTask:
    """Something that a worker is asked, once more wherever it is lost on its way.

    Parameters
    ----------
    cluster : Cluster
    submit : hands it over, and gives its future and those that it goes with: where one of these is lost, it waits for
        nobody

    Attributes
    ----------
    found : the answer, once it is here
    failed : whether this process must find it: it killed the workers, or was lost `MOST_FETCHES` times
    """

    def __init__(self, cluster: Cluster, submit: Callable[[], tuple[Any, Sequence[Any]]]) -> None:
        self.cluster = cluster
        self._submit = submit
        self.found: Any = None
        self.failed = False
        self._future: Any = None
        self._needs: Sequence[Any] = ()
        self._done = Event()
        self._since = 0.0
        self._tries = 0
        self._submit_task()

    def settled(self) -> bool:
        """Whether it is found or failed; waits a moment for that.

        Raises
        ------
        UsageError, and what the work itself raises
        """
        if self.found is not None or self.failed:
            return True
        if self._future is None:
            self._submit_task()
        if self._future is None:
            time.sleep(POLL_SECONDS)
            return False
        if not self._done.wait(POLL_SECONDS):
            self._look_after()
            return self.failed
        future, self._future = self._future, None
        if future.status == "finished":
            try:
                self.found = future.result(timeout=FETCH_SECONDS)
                return True
            except LOST_ERRORS:
                self.cluster.stale()  # what held the answer is gone
        elif future.status == "error":
            error = future.exception()
            if not has_killed(error):
                raise local_error(error)
            self.failed = True
        self.failed = self.failed or self._tries >= MOST_FETCHES
        return self.failed

    def withdraw(self) -> None:
        """Nobody waits for it any more."""
        if self._future is not None and self.cluster.client.status == "running":
            self._future.cancel()
        self._future = None

    def _submit_task(self) -> None:
        """Hand it over, if there are workers."""
        if not self.cluster.threads():
            return
        try:
            future, self._needs = self._submit()
        except LOST_ERRORS:
            self.cluster.failed()
            return
        self._done = Event()
        self._since = time.monotonic()
        self._tries = self._tries + 1
        self._future = future
        future.add_done_callback(lambda _future, done=self._done: done.set())

    def _look_after(self) -> None:
        """Take it back where nobody has it; whether a worker does is asked anew after as long a wait."""
        late = time.monotonic() - self._since > LATE_SECONDS
        if late:
            self._since = time.monotonic()
        if any(need.status != "finished" for need in self._needs) or (late and not self.cluster.has(self._future.key)):
            self.withdraw()
            self.failed = late and self._tries >= MOST_FETCHES
