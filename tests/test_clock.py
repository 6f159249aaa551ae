"""CPU seconds count what a child process computed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mipfs.plumbing.clock import cpu_clock

BURNT = 0.2
BURN = f"import time\nwhile time.process_time() < {BURNT}: pass"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell what ended processes spent")
def test_the_clock_counts_this_process_and_those_that_ended() -> None:
    began = cpu_clock()
    assert cpu_clock() >= began
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert cpu_clock() - began >= 0.9 * BURNT
