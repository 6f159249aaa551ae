"""Kinds of numbers that settings take, beside those of `mipfs.plumbing.declared`."""

from __future__ import annotations

from typing import Annotated

from mipfs.plumbing.declared import NumberRange

Part = Annotated[float, NumberRange(0, 1)]
"""A share, both ends included."""
Tolerance = Annotated[float, NumberRange(above=0, below=1)]
"""A relative gap or distance that is asked for."""
