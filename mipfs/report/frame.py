"""Data frames for those who have pandas: nothing else needs it."""

from __future__ import annotations

from typing import Any

from mipfs.errors import UsageError


def pandas_for(method: str) -> Any:
    """The module pandas.

    Parameters
    ----------
    method : what the user called, for the message

    Raises
    ------
    UsageError
        pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise UsageError(f"{method} needs pandas, which is not installed; pip install pandas") from None
    return pandas
