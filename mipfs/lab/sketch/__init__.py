"""Columns chosen with a guarantee (Paul, Magdon-Ismail, Drineas 2016): BSS, leverage scores, and their peers.

A method is a file with ``pick(source, r, *, seed, projections, progress) -> Picks``, and a line in `METHODS`.

>>> import mipfs
>>> from mipfs import sketch
>>> data = mipfs.read("instances/wdbc.svm", scale="standard")
>>> chosen = sketch.select(data, "bss", 400)
>>> chosen.ids.size <= 30 and chosen.guarantee.epsilon <= chosen.guarantee.promised.epsilon
True
"""

from __future__ import annotations

from mipfs.lab.sketch.select import METHODS, Sketch, available, select

__all__ = ["METHODS", "Sketch", "available", "select"]
