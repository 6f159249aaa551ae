"""Other processes and machines: the scheduler and workers of Dask, of which nothing here is our own."""

from __future__ import annotations

import logging
import math
import time
from concurrent.futures import CancelledError
from typing import Any

from mipfs.errors import MissingExtraError, UsageError

LOG = logging.getLogger("mipfs")
ANSWER = 5.0
"""Seconds within which a scheduler tells who its workers are; one that does not counts as one without any."""
REFRESH, PATIENCE = 2.0, 10.0
"""Seconds from one look at who the workers are to the next; and how long a run waits for one where there is none."""
FETCH, TRIES = 30.0, 3
"""Seconds that an answer may take on its way back, and how often it is asked for before this process finds it."""
LOST = CancelledError, TimeoutError, OSError, RuntimeError, KeyError
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
        raise UsageError(f"client = {client!r} is no dask.distributed.Client (one that is not asynchronous)")


def refused(error: BaseException) -> BaseException:
    """What an error on a worker is here."""
    if isinstance(error, (ImportError, AttributeError)):
        return UsageError(f"the workers cannot load mipfs ({error}); install the same version there")
    return error


def killed(error: BaseException) -> bool:
    """Whether the work took one worker after the other with it."""
    from distributed import KilledWorker

    return isinstance(error, KilledWorker)


def threads_of(client: Any) -> dict[str, int]:
    """Threads of every worker by its address; none where the scheduler is gone or does not answer."""
    if client.status != "running":
        return {}
    try:
        found: dict[str, int] = client.sync(client.scheduler.ncores, callback_timeout=ANSWER)
    except (TimeoutError, OSError):  # of comms that are closed too
        return {}
    return found


def scattered(client: Any, value: Any, seconds: float = FETCH, **options: Any) -> Any:
    """The future of a value that workers hold, `seconds` from now at most; the options are those of ``client.scatter``.

    Raises
    ------
    TimeoutError
        It did not arrive: ``client.scatter`` by itself waits for ever for a worker that dies meanwhile.
    """
    (found,) = client.sync(
        lambda: client.scatter([value], hash=False, timeout=REFRESH, asynchronous=True, **options),
        callback_timeout=seconds,
    )
    return found


class Cluster:
    """Who the workers of a client are, looked up now and then, and whether there is still somebody to work with.

    Parameters
    ----------
    client : dask.distributed.Client
    goes_on : what this process does alone, for the warning that says so, once for every reason
    """

    def __init__(self, client: Any, goes_on: str) -> None:
        self.client, self._goes_on = client, goes_on
        self._threads: dict[str, int] = {}
        self._looked, self._seen = -math.inf, time.monotonic()
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
        elif now - self._looked >= REFRESH:
            self._threads, self._looked = threads_of(self.client), now
        if self._threads:
            self._seen = now
        return self._threads

    def failed(self) -> None:
        """Note that nothing could be handed over: there is nobody until the next look."""
        self._threads, self._looked = {}, time.monotonic()

    def stale(self) -> None:
        """Look again before the next answer: something was lost."""
        self._looked = -math.inf

    def has(self, key: str) -> bool:
        """Whether some worker has a task in hand, or that cannot be told now."""
        try:
            in_hand = self.client.sync(self.client.scheduler.processing, workers=None, callback_timeout=ANSWER)
        except LOST:
            return True
        return any(key in keys for keys in in_hand.values())

    def is_alone(self) -> bool:
        """Whether this process must go on alone, for now or, where the scheduler is gone, for good."""
        if not self.is_gone and (self.threads() or time.monotonic() - self._seen < PATIENCE):
            return False
        why = "the Dask scheduler went away" if self.is_gone else "no Dask worker is left"
        if why not in self._said:
            self._said.add(why)
            LOG.warning("%s; nothing is lost, %s", why, self._goes_on)
        return True
