"""``python -m mipfs`` is the command ``mipfs``."""

from __future__ import annotations

import sys

from mipfs.cli import main

sys.exit(main())
