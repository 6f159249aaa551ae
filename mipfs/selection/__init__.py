"""The set S of allowed selections: its rows, its linear oracle, bounds by multipliers, conflicts."""

from mipfs.selection.selection import Extras, Rows, Selection

__all__ = ["Extras", "Rows", "Selection"]
