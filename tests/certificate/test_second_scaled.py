"""The second checker over scaled measures, made columns and stacks, whose scaling the sidecar states; and folds."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, fbeta_score, roc_auc_score

from mipfs.cli import main
from tests import two_checkers
from tests.certificate.test_second_reading import judged, npy, packed

second = two_checkers.second()
SOLVED = {
    "f1": ["structural", "two.csv", "-p", "measure=f1"],
    "area": ["structural", "two.csv", "-p", "measure=roc-auc", "-p", "bias=false"],
    "hik": ["fsp-m", "two.csv", "-p", "atoms=additive-hik", "-p", "shift=true", "-p", "levels=5", "-p", "beta=0.5"],
    "splines": ["fsp-m", "two.csv", "-p", "atoms=splines"],
    "chi2": ["fsp-m", "two.csv", "-p", "atoms=additive-chi2", "-p", "shift=true"],
    "pairs": ["fsp-m", "two.csv", "-p", "atoms=pairs"],
    "shared": ["fsp-m", "three.csv", "--shared-support"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two classes and one of three, of columns of other sizes."""
    folder, rng = tmp_path_factory.mktemp("scaled"), random.Random(11)
    lines: dict[str, list[str]] = {"two": ["a,b,c,label"], "three": ["a,b,c,label"]}
    for _ in range(45):
        a, b, c = rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 1)
        good = a - b + rng.gauss(0, 0.6)
        cells = f"{100 + 10 * a:.2f},{b:.3f},{0.01 * c:.5f}"
        lines["two"].append(f"{cells},{'yes' if good > 0.3 else 'no'}")
        lines["three"].append(f"{cells},{'lo' if good < -0.6 else 'mid' if good < 0.8 else 'hi'}")
    for name, rows in lines.items():
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def solved(folder: Path, into: Path, name: str, scale: str) -> Path:
    model, data, *options = SOLVED[name]
    path = into / f"{name}.json"
    more = ["-p", "M=2", "--scale", scale, "--json", str(path), "--quiet"]
    assert main(["solve", model, str(folder / data), *options, *more]) == 0
    return path


def replaced(path: Path, name: str, text: str) -> None:
    """The last entry of an array of the scaling, in the archive and in what names its digest."""
    archive = path.with_suffix(".cert.npz")
    with zipfile.ZipFile(archive) as found:
        members = {member: found.read(member) for member in found.namelist()}
    inner = "0.cert.npz" if "0.cert.npz" in members else None
    if inner is not None:
        archive.with_name("inner.npz").write_bytes(members[inner])
    with np.load(archive.with_name("inner.npz") if inner else archive) as arrays:
        values = [*arrays[name].tolist()[:-1], text.encode()]
    width = max(map(len, values))
    head = f"{{'descr': '|S{width}', 'fortran_order': False, 'shape': ({len(values)},), }}"
    array = npy(head, b"".join(v.ljust(width, b"\0") for v in values))
    document = json.loads(path.read_text(encoding="utf-8"))
    if inner is None:
        content = packed(members | {f"{name}.npy": array})
        document["certificate"]["sha256"] = hashlib.sha256(content).hexdigest()
    else:
        with zipfile.ZipFile(archive.with_name("inner.npz")) as found:
            own = {member: found.read(member) for member in found.namelist()}
        members[inner] = packed(own | {f"{name}.npy": array})
        content = packed(members)
        digest = hashlib.sha256(members[inner]).hexdigest()
        document["together"]["certificate"]["sha256"] = document["certificate"]["sha256"] = digest
    archive.write_bytes(content)
    path.write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.sampled(17)
@pytest.mark.parametrize("scale", ["standard", "unit"])
@pytest.mark.parametrize("name", SOLVED)
def test_scaled_data_is_taken_by_its_sidecar(folder: Path, tmp_path: Path, name: str, scale: str) -> None:
    if name == "chi2" and scale == "unit":
        pytest.skip("the same")
    path, data = solved(folder, tmp_path, name, scale), folder / SOLVED[name][1]
    word, said = judged(path, data)
    assert word == "accepted", said
    other = tmp_path / "other"
    other.mkdir()
    for file in (path, path.with_suffix(".cert.npz")):
        shutil.copy(file, other)
    replaced(other / path.name, "column_scale", "0x1.0p+3")
    word, why = judged(other / path.name, data)
    assert (word, "scale" in str(why) or "another" in str(why)) == ("rejected", True), why


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", ["f1", "precision-at-k", "roc-auc", "average-precision"])
def test_errors_of_folds_of_a_measure(folder: Path, tmp_path: Path, name: str) -> None:
    path, data = tmp_path / "p.json", folder / "two.csv"
    options = ["-p", "loss=structural", "-p", f"measure={name}", "--scale", "standard", "--M", "1:2", "--folds", "3"]
    assert main(["path", str(data), *options, "--json", str(path), "--quiet"]) == 0
    word, said = judged(path, data)
    assert word == "accepted", said
    assert said[-1] == "the errors are those of the classifiers of the folds, which are not proven"
    document = json.loads(path.read_text(encoding="utf-8"))
    point = document["points"][1]
    weights = point["fold_classifiers"][0]["weights"]
    point["fold_classifiers"][0]["weights"] = {feature: -w for feature, w in weights.items()}
    point["fold_classifiers"][0]["intercept"] *= -1
    path.write_text(json.dumps(document), encoding="utf-8")
    assert judged(path, data) == ("rejected", "error 0 of point M=2 is another")


@pytest.mark.parametrize("seed", range(8))
def test_errors_of_scores_are_those_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = [1, -1, *rng.choice([-1, 1], 9).tolist()]
    scores = rng.permutation(11) - 4.5
    truth, guess = [v > 0 for v in y], scores > 0
    top = np.argsort(-scores)[: sum(truth)]
    for name, error in (
        ("error", float(np.mean(guess != truth))),
        ("f1", 1 - f1_score(truth, guess)),
        ("fbeta", 1 - fbeta_score(truth, guess, beta=2.0)),
        ("prbep", 1 - float(np.mean([truth[i] for i in top]))),
        ("roc-auc", 1 - roc_auc_score(truth, scores)),
        ("average-precision", 1 - average_precision_score(truth, scores)),
    ):
        params: dict[str, Any] = {"measure": name, "bias": False} | ({"beta": 2.0} if name == "fbeta" else {})
        least, most = second.lost(params, y, [(Fraction(v), Fraction(0)) for v in scores.tolist()])
        assert least == most
        assert float(least) == pytest.approx(error, abs=1e-12)
        least, most = second.lost(params, y, [(Fraction(0), Fraction(1))] * 11)  # nothing is known
        assert 0 <= least <= error <= most <= 1
