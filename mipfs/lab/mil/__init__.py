"""Multiple-instance learning: rows come in bags, a bag is positive when one of its rows is (Mao 2013, section 7)."""

from __future__ import annotations

from mipfs.lab.mil.algorithm import BagClassifier, embedded, solve_bags
from mipfs.lab.mil.bags import Bags
from mipfs.lab.mil.miles import Miles, mean_distance

__all__ = ["BagClassifier", "Bags", "Miles", "embedded", "mean_distance", "solve_bags"]
