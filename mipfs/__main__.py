"""``python -m mipfs`` is the command ``mipfs``."""

import sys

from mipfs.cli import main

sys.exit(main())
