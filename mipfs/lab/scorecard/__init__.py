"""Whole points for the features of a result: a card to print, the best for these features by its own gap."""

from mipfs.lab.scorecard.card import Scorecard
from mipfs.lab.scorecard.make import scorecard
from mipfs.lab.scorecard.saved import read_scorecard

__all__ = ["Scorecard", "read_scorecard", "scorecard"]
