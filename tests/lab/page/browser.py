"""A headless Chromium, spoken to over its debugging pipe: with nothing but the browser and the standard library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60.0
"""Seconds for an answer."""
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--mute-audio",
    "--remote-debugging-pipe",
)  # fmt: skip


def executable() -> str | None:
    """The browser, where one is installed."""
    named = os.environ.get("MIPFS_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of a running browser."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self.process, self._to, self._back = process, to, back
        self._next, self._held, self._session = 0, b"", None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """The answer to a command; events that come before it are kept."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._next:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def _message(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._back], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._back, 1 << 20)
            assert part, "the browser has ended"
            self._held += part
        message, _, self._held = self._held.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def size(self, width: int, height: int, scheme: str = "light") -> None:
        """The window, and whether its user likes it dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, page: Path) -> float:
        """Open a page; the seconds until all of it stood there."""
        self.events.clear()
        began = time.perf_counter()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())
        return time.perf_counter() - began

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def hover(self, selector: str, across: float, down: float, k: int = 0) -> None:
        """Move the pointer to a place (shares of width and height) of the k-th element."""
        of = f"document.querySelectorAll({json.dumps(selector)})[{k}].getBoundingClientRect()"
        box = f"(({{x, y, width, height}}) => [x, y, width, height])({of})"
        _, y, _, h = self.run(box)
        self.run(f"scrollTo(0, scrollY + {y + down * h} - innerHeight / 2)")
        x, y, w, h = self.run(box)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + across * w, y=y + down * h)

    def press(self, key: str) -> None:
        """A key of the element that has the focus."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def complaints(self) -> list[str]:
        """Console messages, exceptions, log entries and requests for anything but the page itself."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        found = [json.dumps(event["params"]) for event in self.events if event.get("method") in kinds]
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return found + [url for url in asked if not url.startswith("file:")] + asked[1:]

    def picture(self, path: Path, whole: bool = True) -> None:
        """A screenshot, of all that can be scrolled to."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser for as long as it is needed."""
    program = executable()
    assert program is not None
    ours_in, theirs_out = os.pipe()
    theirs_in, ours_out = os.pipe()

    def place() -> None:  # its end of the pipe: commands come in on 3, answers go out on 4
        import fcntl  # POSIX only, as the pipe is

        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        for fd, number in zip(high, (3, 4), strict=True):
            os.dup2(fd, number)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=place, pass_fds=(3, 4), start_new_session=True,
        )  # fmt: skip
        for fd in (theirs_in, theirs_out):
            os.close(fd)
        try:
            found = Browser(process, ours_out, ours_in)
            yield found
            os.write(ours_out, b'{"id":0,"method":"Browser.close"}\0')
        finally:
            for fd in (ours_in, ours_out):
                os.close(fd)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
