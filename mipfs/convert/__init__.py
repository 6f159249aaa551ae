"""From a data file to a column store (`mipfs.readers.store`): an external transpose that never holds the data."""

from mipfs.convert.transpose import convert

__all__ = ["convert"]
