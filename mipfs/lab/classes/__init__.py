"""More than two classes: one classifier a class, against the rest, with a proof each, or all on one shared support."""

from mipfs.lab.classes.one_vs_rest import OneVsRest
from mipfs.lab.classes.solved import parts_of, solve_shared, stating_scaling

__all__ = ["OneVsRest", "parts_of", "solve_shared", "stating_scaling"]
