"""``models.fsp_m(...)`` works however, and in whatever order, the modules are imported."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mipfs
from mipfs import models

PREPARE = "import numpy as np; from mipfs import Instance; d = Instance.from_arrays([[1.0], [2.0]], [1, -1]); "
LIGHT = (
    "from mipfs import models; import sys; assert 'fsp_m' in dir(models);"
    " loaded = {'pyomo', 'cvxpy', 'sklearn', 'numba', 'highspy'} & set(sys.modules); assert not loaded, loaded"
)
BUILDS = (
    "from mipfs import models; m = models.fsp_m(d, M=1); assert type(models.fsp_m.build(d, M=1)) is type(m)",
    "from mipfs.models.fsp_m import build; build(d, M=1); from mipfs.models import fsp_m; m = fsp_m(d, M=1)",
    "import mipfs.models.fsp_lambda as page; page.build(d, lam=0.1); m = page(d, lam=0.1)",
)
IMPORTS = (
    "import mipfs.models.fsp_m; from mipfs import models; f = models.fsp_m",
    "from mipfs.models import fsp_m as f, fsp_lambda; assert fsp_lambda.build",
    "import mipfs; f = mipfs.models.fsp_m; import mipfs.models.fsp_m; assert f is mipfs.models.fsp_m",
    "import importlib, mipfs; f = importlib.import_module('mipfs.models.fsp_m'); assert mipfs.models.fsp_m is f",
)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("code", IMPORTS)
def test_every_way_to_import_gives_something_to_call(code: str) -> None:
    check = "; import inspect; assert callable(f) and 'M' in inspect.signature(f).parameters and f.build"
    subprocess.run([sys.executable, "-c", code + check], check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("code", BUILDS)
def test_calling_a_formulation_builds_it(code: str) -> None:
    check = "; import mipfs; assert mipfs.problem_of(m).data is d"
    subprocess.run([sys.executable, "-c", PREPARE + code + check], check=True, timeout=60)


def test_the_package_itself_is_light() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True, timeout=60)


def test_unknown_formulations_are_no_attributes() -> None:
    from mipfs import models

    with pytest.raises(AttributeError, match="fsp_z"):
        _ = models.fsp_z


def test_b_of_the_papers_is_m() -> None:
    data = mipfs.Instance.from_arrays(np.eye(4), [1, -1, 1, -1])
    assert models.qcqp_relaxation(data, B=2, C=0.1).problem.M == 2
    with pytest.raises(mipfs.UsageError, match="'B' is another name of 'M', which is given too"):
        models.qcqp_relaxation(data, B=2, M=2)
