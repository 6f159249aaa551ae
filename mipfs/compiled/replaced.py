"""Other attributes of numba's objects, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(owner: Any, **others: Any) -> Iterator[None]:
    """Other attributes of an object, a class or a module for a while."""
    own = {name: vars(owner)[name] for name in others if name in vars(owner)}
    for name, other in others.items():
        setattr(owner, name, other)
    try:
        yield
    finally:
        for name in others:
            if name in own:
                setattr(owner, name, own[name])
            else:
                delattr(owner, name)
