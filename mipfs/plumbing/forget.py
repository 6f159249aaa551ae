"""Properties that keep what they found, to be found anew."""

from __future__ import annotations

from typing import Any


def forget(owner: object, *properties: Any) -> None:
    """Have an object find some of its cached properties anew when they are next asked for.

    Parameters
    ----------
    owner : the object
    properties : cached_property, as its class has them, ``type(owner).name``; one that was not asked for is left alone
    """
    for one in properties:
        vars(owner).pop(one.attrname, None)
