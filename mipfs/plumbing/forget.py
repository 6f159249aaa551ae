"""Properties that keep what they found, to be found anew."""

from __future__ import annotations

from functools import cached_property
from typing import Any


def forget(owner: object, *properties: cached_property[Any]) -> None:
    """Have an object find some of its cached properties anew when they are next asked for.

    Parameters
    ----------
    owner : the object
    properties : as its class has them, ``type(owner).name``; those that were not asked for yet are left alone
    """
    for one in properties:
        vars(owner).pop(str(one.attrname), None)
