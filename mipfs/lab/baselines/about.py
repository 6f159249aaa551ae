"""What `mipfs baselines` says of a method: a constant ``ABOUT`` in its file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BaselineDescription:
    """A baseline in words.

    Attributes
    ----------
    what : str, what it does, in a line
    source : str, the papers it is from
    sparse : str, whether it takes sparse data: "yes", "yes, not centred", "no", "made dense"
    limits : str, what it cannot take, or where it becomes slow
    library : str, who does the work
    uses_c : bool, whether the choice of features depends on C
    weighted : bool, whether it takes sample weights on any data
    grouped : bool, whether it selects the data's groups whole
    signed : bool, whether its weights keep the signs that the data's bounds on them are
    """

    what: str
    source: str = "-"
    sparse: str = "-"
    limits: str = "-"
    library: str = "-"
    uses_c: bool = True
    weighted: bool = True
    grouped: bool = False
    signed: bool = False
