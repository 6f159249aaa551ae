"""Other processes and machines: the scheduler and workers of Dask, of which nothing here is our own."""

from __future__ import annotations

from typing import Any

from mipfs.errors import MissingExtraError, UsageError

ANSWER = 5.0
"""Seconds within which a scheduler tells who its workers are; one that does not counts as one without any."""


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


def threads_of(client: Any) -> dict[str, int]:
    """Threads of every worker by its address; none where the scheduler is gone or does not answer."""
    if client.status != "running":
        return {}
    try:
        found: dict[str, int] = client.sync(client.scheduler.ncores, callback_timeout=ANSWER)
    except (TimeoutError, OSError):  # of comms that are closed too
        return {}
    return found
