"""Certificates of runs that a limit stopped are cut to a size, and claim no more than they prove."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.errors import CertificateWarning, UsageError
from mipfs.problem import Problem
from mipfs.result import sidecar
from mipfs.result.result import Result, Status

Options = dict[str, Any]
LEAST = 5500
"""Bytes of a file with hardly a dual vector in it."""


def wdbc(kind: str) -> tuple[Problem, str, Options]:
    """Problems on which a run of so many nodes leaves a gap, and a tree of some hundred leaves."""
    data = mipfs.read("instances/wdbc.svm", scale="standard")
    if kind == "rho":
        return Problem(data, M=5, loss="squared-hinge", margin="rho"), "branch", {"iteration_limit": 800}
    problem = Problem(data, M=5, loss="logistic" if kind == "logistic" else "hinge")
    if kind in ("rows", "gbd"):
        A = np.zeros((6, 30))
        A[np.arange(6), np.arange(6)], A[np.arange(6), np.arange(6) + 20] = 1.0, 1.0
        problem = problem.with_rows(A, -np.inf, 1.0)
    if kind == "gbd":
        return problem, "gbd", {"iteration_limit": 400}
    return problem, "branch", {"iteration_limit": 150 if kind == "logistic" else 800}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", ["plain", "logistic", "rho", "rows", "gbd"])
def test_what_is_saved_fits_and_is_what_its_certificate_proves(kind: str, tmp_path: Path) -> None:
    problem, driver, limits = wdbc(kind)
    result = mipfs.solve(problem, driver, gap=1e-9, **limits)
    assert result.status is Status.FEASIBLE
    path = tmp_path / "result.json"
    result.save(path, certificate_limit=math.inf)
    whole, found = (tmp_path / "result.cert.npz").stat().st_size, result.bound
    bounds = []
    for share in (1.01, 0.6, 0.3, 0.1):
        limit = share * whole + (1.0 - min(share, 1.0)) * LEAST
        if share > 1.0:
            result.save(path, certificate_limit=limit / 1e6)
        else:
            with pytest.warns(CertificateWarning, match="certificate limit, or inf, keeps more"):
                result.save(path, certificate_limit=limit / 1e6)
        assert (tmp_path / "result.cert.npz").stat().st_size <= limit
        loaded, document = Result.load(path), json.loads(path.read_text())
        report = mipfs.verify(loaded, problem.data)
        assert report.accepted, report.reason
        assert report.bound == pytest.approx(loaded.bound, rel=2e-9)
        assert document["gap"] == pytest.approx((loaded.objective - loaded.bound) / abs(loaded.objective), rel=1e-9)
        assert max(record.bound for record in loaded.trace) <= loaded.bound
        assert document["certificate"].get("found", found) == found == result.bound
        assert ("found" in document["certificate"]) == (share < 1.0)
        assert any("the run itself found" in text for text in report.unchecked) == (share < 1.0)
        bounds.append(loaded.bound)
        # the bound that the run found stands in the file, but not as one that is proven
        if share < 1.0:
            path.write_text(json.dumps({**document, "bound": found}))
            assert not mipfs.verify(Result.load(path), problem.data).accepted
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == found
    assert bounds[1] > bounds[3]
    again = pickle.loads(pickle.dumps(result))
    for one in (result, again):  # at hand everything is there
        assert one.bound == found
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.cert.npz").stat().st_size == whole
    assert mipfs.verify(result, problem.data).bound == pytest.approx(found, rel=2e-9)


def test_the_root_is_left_of_a_limit_that_nothing_fits(tmp_path: Path) -> None:
    problem, driver, limits = wdbc("plain")
    result = mipfs.solve(problem, driver, gap=1e-9, **limits)
    with pytest.warns(CertificateWarning):
        result.save(tmp_path / "result.json", certificate_limit=1e-6)
    loaded = Result.load(tmp_path / "result.json")
    report = mipfs.verify(loaded, problem.data)
    assert report.accepted, report.reason
    assert report.n_leaves <= 2
    assert 0.0 < loaded.bound < result.bound


@pytest.mark.parametrize("options", [{}, {"pool_size": 5}])
def test_what_was_proven_is_saved_whole(options: Options, tmp_path: Path) -> None:
    problem, driver, _ = wdbc("plain")
    result = mipfs.solve(problem.replace(M=3, C=0.1), driver, **options)
    assert result.status is Status.OPTIMAL
    result.save(tmp_path / "result.json", certificate_limit=1e-6)
    loaded = Result.load(tmp_path / "result.json")
    assert loaded.bound == result.bound
    report = mipfs.verify(loaded, problem.data)
    assert report.accepted, report.reason


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan])
def test_a_limit_is_a_positive_number(limit: float, tmp_path: Path) -> None:
    problem, driver, _ = wdbc("plain")
    result = mipfs.solve(problem, driver, iteration_limit=1)
    with pytest.raises(UsageError, match=r"certificate_limit = .* must be a positive number of megabytes"):
        result.save(tmp_path / "result.json", certificate_limit=limit)


def test_a_whole_certificate_is_made_in_a_file_beside_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(mipfs.read("instances/wdbc.svm", scale="standard"), M=3)
    result = mipfs.solve(problem, "branch", threads=1)
    assert result.status is Status.OPTIMAL
    plain, folders, path = sidecar.tempfile.SpooledTemporaryFile, [], tmp_path / "result.json"

    def made(size: int, dir: str) -> Any:
        folders.append(dir)
        return plain(size, dir=dir)

    def none(_size: int, dir: str) -> Any:
        raise OSError(28, "no space", dir)

    monkeypatch.setattr(sidecar, "SMALL", 10)
    contents = []
    for maker in (made, none):
        monkeypatch.setattr(sidecar.tempfile, "SpooledTemporaryFile", maker)
        result.save(path)
        assert sorted(one.name for one in tmp_path.iterdir()) == ["result.cert.npz", "result.json"]
        assert mipfs.verify(Result.load(path), problem.data).accepted
        contents.append((tmp_path / "result.cert.npz").read_bytes())
    assert folders == [str(tmp_path)]
    assert contents[0] == contents[1]
