"""Records of the kernels whose fields are read and written by name in plain Python, whatever numpy calls its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Named(np.record):
    """A record whose fields go before the attributes of a numpy scalar, of which `sum` and `base` are two."""

    def __getattribute__(self, name: str) -> Any:
        get = super().__getattribute__
        fields = get("dtype").fields
        return self[name] if fields is not None and name in fields else get(name)


def named(records: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same records, of the kind above."""
    return records.view(np.dtype((Named, records.dtype)))
