"""Lines to other processes: whole messages in order, and nobody who does not know the key."""

from __future__ import annotations

import pickle
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mipfs.plumbing import lines
from mipfs.plumbing.lines import Connection, Listener, seen_from


@pytest.fixture
def door() -> Iterator[Listener]:
    found = Listener("127.0.0.1")
    yield found
    found.close()


def both(door: Listener) -> tuple[Connection, Connection]:
    """The two ends of a line."""
    there: list[Connection] = []
    thread = threading.Thread(target=lambda: there.append(Connection.to(door.address, door.key)))
    thread.start()
    here = door.enter()
    thread.join()
    assert here is not None
    return here, there[0]


def test_messages_come_whole_and_in_order(door: Listener) -> None:
    here, there = both(door)
    sent = [b"", b"a", bytes(3_000_000), b"last"]
    thread = threading.Thread(target=lambda: [there.send(one) for one in sent])
    thread.start()
    assert [here.receive() for _ in sent] == sent
    thread.join()
    here.send(b"back")
    assert there.receive() == b"back"


def test_who_ends_is_heard(door: Listener) -> None:
    here, there = both(door)
    there.close()
    with pytest.raises(EOFError):
        here.receive()
    with pytest.raises(OSError):  # noqa: PT011  # whichever it is of the system's
        [here.send(bytes(100_000)) for _ in range(100)]


def test_who_is_silent_in_the_middle_of_a_message_is_lost(door: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PATIENCE_SECONDS", 0.2)
    here, there = both(door)
    there._connection.sendall(lines.LENGTH.pack(100) + b"half")
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        here.receive()
    assert time.monotonic() - began < 20.0


class Bomb:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n\r\n" + bytes(100), bytes(64), "pickle"])
def test_who_does_not_know_the_key_is_not_let_in(
    door: Listener, said: bytes | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "HELLO_SECONDS", 0.2)
    bomb = pickle.dumps(Bomb(tmp_path / "touched"))
    with socket.create_connection(door.address) as stranger:
        stranger.sendall(said if isinstance(said, bytes) else bomb + bytes(100))
        assert door.enter() is None
    assert not (tmp_path / "touched").exists()


def test_a_door_that_does_not_know_the_key_is_none(door: Listener) -> None:
    other = Listener("127.0.0.1")
    thread = threading.Thread(target=door.enter)
    thread.start()
    with pytest.raises(OSError, match="does not know the key"):
        Connection.to(door.address, other.key)
    thread.join()
    other.close()
    with pytest.raises(OSError):  # noqa: PT011  # nobody is there
        Connection.to(other.address, other.key)


def test_what_was_said_once_shows_nothing_again(door: Listener) -> None:
    """What a visitor showed is of the number that it was asked with."""
    heard: list[bytes] = []

    def visit(address: tuple[str, int]) -> None:
        with pytest.raises(OSError, match="does not know the key"):
            Connection.to(address, door.key)

    with socket.create_server(("127.0.0.1", 0)) as between:
        visitor = threading.Thread(target=visit, args=(between.getsockname()[:2],))
        visitor.start()
        taken = between.accept()[0]
        taken.sendall(bytes(lines.KEY_BYTES))
        heard.append(taken.recv(2 * lines.KEY_BYTES))
        taken.close()
        visitor.join()
    with socket.create_connection(door.address) as replayed:
        replayed.sendall(heard[0])
        assert door.enter() is None


def test_how_this_machine_is_seen() -> None:
    assert seen_from("tcp://127.0.0.1:8786") == "127.0.0.1"
    assert seen_from("inproc://10.0.0.1/4/1") == "127.0.0.1"
    assert seen_from("tcp://[::1]:8786") in ("::1", None)
    assert seen_from("tls://127.0.0.1:8786") is None
    assert seen_from("gateway://127.0.0.1:8786") is None
