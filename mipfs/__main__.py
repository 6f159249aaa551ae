"""``python -m mipfs`` is the command ``mipfs``."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, where Python looks for `-m`, and of which a command imports nothing
    from mipfs.cli import main

    sys.exit(main())
