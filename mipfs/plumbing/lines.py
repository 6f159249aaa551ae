"""Lines between this process and others, over which messages of bytes go: who connects must show that it knows a key.

A message is its length in eight bytes, and itself. Who is silent in the middle of one for `PATIENCE_SECONDS`, or whose
machine is gone, counts as lost.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
from contextlib import suppress
from types import TracebackType
from urllib.parse import urlsplit

PATIENCE_SECONDS, HELLO_SECONDS = 30.0, 5.0
"""How long a message may rest in its middle, and how long who connects may take to show its key."""
KEY_BYTES = 32
LENGTH = struct.Struct("<Q")
ALIVE = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""After 10 s of silence the system asks the other side every 5 s whether it is there, three times."""
DOOR, VISITOR = b"door", b"visitor"


class Connection:
    """One end of a connection.

    Parameters
    ----------
    connection : socket, which is closed with it
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(PATIENCE_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in ALIVE:
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    @classmethod
    def to(cls, address: tuple[str, int], key: bytes) -> Connection:
        """Connect to a `Listener`.

        Raises
        ------
        OSError
            Nobody is there, or somebody who does not know the key.
        """
        line = cls(socket.create_connection(address, timeout=HELLO_SECONDS))
        nonce = secrets.token_bytes(KEY_BYTES)
        try:
            theirs = line._read(KEY_BYTES)
            line._connection.sendall(_prove_key(key, VISITOR, theirs) + nonce)
            if not hmac.compare_digest(line._read(KEY_BYTES), _prove_key(key, DOOR, nonce)):
                raise ConnectionRefusedError
        except (OSError, EOFError):
            line.close()
            raise ConnectionRefusedError(f"who listens at {address} does not know the key") from None
        return line

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def fileno(self) -> int:
        """For a selector."""
        return self._connection.fileno()

    def send(self, message: bytes) -> None:
        """Send a message; OSError where the other side is gone."""
        self._connection.sendall(LENGTH.pack(len(message)) + message)

    def receive(self, patience: float | None = PATIENCE_SECONDS) -> bytes:
        """The next message; waits for its beginning for some seconds.

        Raises
        ------
        EOFError, OSError
            The other side has ended, or is gone.
        """
        self._connection.settimeout(patience)
        first = self._connection.recv(1)
        self._connection.settimeout(PATIENCE_SECONDS)
        if not first:
            raise EOFError
        return self._read(LENGTH.unpack(first + self._read(LENGTH.size - 1))[0])

    def close(self) -> None:
        """End it: the other side hears of it."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _read(self, count: int) -> bytes:
        found = bytearray(count)
        rest = memoryview(found)
        while rest:
            size = self._connection.recv_into(rest)
            if size == 0:
                raise EOFError
            rest = rest[size:]
        return bytes(found)


class Listener:
    """Where others connect to this process.

    Parameters
    ----------
    host : str, the name or number of this machine for them

    Attributes
    ----------
    address : (host, port); key : what they must know
    """

    def __init__(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self.key = secrets.token_bytes(KEY_BYTES)

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def enter(self) -> Connection | None:
        """The line of who has just connected; None where it does not know the key."""
        nonce = secrets.token_bytes(KEY_BYTES)
        try:
            connection = self._socket.accept()[0]
        except OSError:
            return None
        try:
            line = Connection(connection)
            connection.settimeout(HELLO_SECONDS)
            connection.sendall(nonce)
            shown, theirs = line._read(KEY_BYTES), line._read(KEY_BYTES)
            if not hmac.compare_digest(shown, _prove_key(self.key, VISITOR, nonce)):
                raise ConnectionRefusedError
            connection.sendall(_prove_key(self.key, DOOR, theirs))
        except (OSError, EOFError):
            connection.close()
            return None
        connection.settimeout(PATIENCE_SECONDS)
        return line

    def close(self) -> None:
        """Let nobody in any more."""
        self._socket.close()


def _prove_key(key: bytes, who: bytes, nonce: bytes) -> bytes:
    """What shows that the key is known, once."""
    return hmac.digest(key, who + nonce, "sha256")


def seen_from(address: str) -> str | None:
    """The name of this machine for those who are reached as ``tcp://host:port`` is; None for other kinds of address."""
    parts = urlsplit(address)
    if parts.scheme == "inproc":
        return "127.0.0.1"
    if parts.scheme != "tcp" or parts.hostname is None:
        return None
    family = socket.AF_INET6 if ":" in parts.hostname else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asked:  # nothing is sent
            asked.connect((parts.hostname, parts.port or 1))
            return str(asked.getsockname()[0])
    except OSError:
        return None
