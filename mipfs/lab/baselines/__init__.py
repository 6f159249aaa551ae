"""What the papers compare with, one method each: baselines and peers, never a source of bounds.

A baseline is a file with ``fit(data, M, C=1.0, *, bias=True, seed=0) -> Linear``, and a line in `BASELINES`. A
reference uses all features, so it selects nothing: it stands in `REFERENCES`, and its ``fit`` takes M = p alone.
Constants ``ABOUT`` say what each does. What is another one with something fixed is a line in `variants.VARIANTS`.
"""

from __future__ import annotations

import inspect
import math
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol

from mipfs.data.instance import Instance
from mipfs.data.unit import column_of_largest, is_ordinary
from mipfs.errors import UsageError
from mipfs.lab.baselines.linear import BaselineDescription
from mipfs.plumbing.declared import Positive, Seed, arguments_of
from mipfs.plumbing.registry import Registry, module_of

if TYPE_CHECKING:
    from mipfs.lab.baselines.linear import Linear

BASELINES = Registry(
    "baseline",
    {
        "arom": "mipfs.lab.baselines.arom",
        "fsv": "mipfs.lab.baselines.fsv",
        "l1-svm": "mipfs.lab.baselines.l1_svm",
        "l1-svm-own": "mipfs.lab.baselines.variants",
        "l1-bmrm": "mipfs.lab.baselines.l1_bundle",
        "group-lasso": "mipfs.lab.baselines.group_lasso",
        "information-gain": "mipfs.lab.baselines.information_gain",
        "l1-logistic": "mipfs.lab.baselines.l1_logistic",
        "l1-logistic-own": "mipfs.lab.baselines.variants",
        "lpsvm": "mipfs.lab.baselines.lpsvm",
        "nmmkl": "mipfs.lab.baselines.nmmkl",
        "onsvm": "mipfs.lab.baselines.onsvm",
        "qcqp-ssvm": "mipfs.lab.baselines.qcqp_ssvm",
        "r2w2": "mipfs.lab.baselines.r2w2",
        "rfe": "mipfs.lab.baselines.rfe",
        "rfe-hinge": "mipfs.lab.baselines.rfe_hinge",
        "rfe-tan": "mipfs.lab.baselines.rfe_tan",
        "rinaldi": "mipfs.lab.baselines.rinaldi",
        "uniform": "mipfs.lab.baselines.uniform",
    },
)
REFERENCES = Registry(
    "classifier",
    {
        "cd-svm": "mipfs.lab.baselines.variants",
        "cd-logistic": "mipfs.lab.baselines.variants",
        "svm-perf": "mipfs.lab.baselines.structural_svm",
    },
)


SEEDS = 2**32
"""Seeds of scikit-learn are below; larger ones are taken modulo."""


class Baseline(Protocol):
    """A way to select M features and to fit a linear classifier on them."""

    def __call__(self, data: Instance, M: int, C: Positive = 1.0, *, bias: bool = True, seed: Seed = 0) -> Linear:
        """Select at most M features of `data`, with loss weight C; the classifier is on the user's scale.

        Raises
        ------
        UsageError
            M or C out of range, or data that the method cannot take.
        """


def available() -> tuple[str, ...]:
    """The names of the baselines."""
    return tuple(BASELINES)


def references() -> tuple[str, ...]:
    """The names of the classifiers on all features, which the baselines are compared with."""
    return tuple(REFERENCES)


def get_baseline(name: str) -> Baseline:
    """A baseline or a reference by its name.

    Raises
    ------
    UsageError
        No baseline of that name.
    """
    fit: Baseline = _find_method(name).fit

    @wraps(fit)
    def checks(data: Instance, M: int, C: float = 1.0, **options: Any) -> Linear:
        given = arguments_of(Baseline.__call__, {"data": data, "C": C, **options})
        given["seed"] = given.get("seed", 0) % SEEDS
        _check_bounds(data, name)
        if not is_ordinary(data.largest):
            far = data.feature_names[column_of_largest(data.block().values)]
            raise UsageError(
                f"the baseline {name} takes no columns of {data.largest:g}, as {far!r} is; "
                "scale the data ('standard' or 'unit')"
            )
        return fit(M=M, **given)

    return checks


def _check_bounds(data: Instance, name: str) -> None:
    """Refuse bounds on the weights that a baseline would not keep."""
    if data.weight_rows:
        raise UsageError(f"the baseline {name} keeps no rows over the weights; leave those of the data out")
    if not data.weight_bounds:
        return
    if not about(name).signed:
        able = ", ".join(one for one in BASELINES if about(one).signed)
        raise UsageError(
            f"the baseline {name} keeps no bounds on the weights; leave those of the data out, or take {able}"
        )
    for one, ends in data.weight_bounds.items():
        if any(math.isfinite(end) and end != 0.0 for end in ends):
            raise UsageError(
                f"the baseline {name} keeps signs, and no other bounds, such as those of {one!r}; leave them out"
            )


def _find_method(name: str) -> Any:
    """The module of a baseline or a reference, or what that has under its name."""
    found = module_of("baseline", name, BASELINES | REFERENCES)
    return getattr(found, "VARIANTS", {}).get(name, found)


def about(name: str) -> BaselineDescription:
    """What there is to say about a baseline or a reference; the first line of its file where it says no more.

    Raises
    ------
    UsageError
        No baseline of that name.
    """
    module = _find_method(name)
    said = getattr(module, "ABOUT", None)
    if isinstance(said, BaselineDescription):
        return said
    return BaselineDescription((inspect.getdoc(module) or "-").splitlines()[0].rstrip("."))
