"""Results, paths and ladders as one self-contained page.

>>> from mipfs import page
>>> import mipfs
>>> data = mipfs.read("instances/wdbc.svm", scale="standard")
>>> result = mipfs.solve(mipfs.Problem(data, M=1, C=0.01))
>>> page.html([page.Item("wdbc", result)]).startswith("<!DOCTYPE html>")
True
"""

from mipfs.lab.page.document import Item, html, write

__all__ = ["Item", "html", "write"]
