"""Some atoms alone, over the columns that they use: what an exact driver works on where there are too many to hold."""

from __future__ import annotations

import numpy as np

from mipfs.atoms import Atoms, Integers
from mipfs.atoms.features import Features, kept_scaling
from mipfs.atoms.groups import Groups


def restricted(atoms: Atoms, ids: Integers) -> Features | Groups:
    """The atoms `ids`, with the columns, scales and names that they have, on data of these columns alone.

    Parameters
    ----------
    atoms : Atoms
    ids : (k,) ascending positions of atoms

    Returns
    -------
    Features or Groups
        A tree's nodes become groups of the same columns; one that two of them hold is shared in either.
    """
    if isinstance(atoms, Features):
        scale = kept_scaling(atoms.scale)
        return Features(atoms.data.only(ids), scale if isinstance(scale, str) else atoms.scale[ids])
    if not ids.size:  # which may be of any kind
        return Features(atoms.data.only(ids))
    columns = atoms.columns(ids)
    used, place = np.unique(columns.ids, return_inverse=True)
    parts = np.split(place, np.cumsum(np.bincount(columns.atom, minlength=ids.size)))[:-1]
    scale = np.zeros(ids.size)
    scale[columns.atom] = columns.scale
    members = dict(zip((atoms.names[g] for g in ids), parts, strict=True))
    return Groups(atoms.data.only(used), members, scale)
