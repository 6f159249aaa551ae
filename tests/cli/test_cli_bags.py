"""``mipfs bags``: the embedded bags as a file, solved on, and new bags predicted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy import sparse

import mipfs
from mipfs import MILClassifier
from tests.cli.outcome import Cli


def table(path: Path, seed: int, labelled: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bags of up to three rows in a CSV; in every second one a row lies near (4, 4)."""
    r = np.random.default_rng(seed)
    names = np.repeat([f"b{k:02d}" for k in range(20)], r.integers(1, 4, 20))
    X, y = np.round(r.standard_normal((names.size, 2)), 3), np.zeros(names.size, dtype=int)
    for name in np.unique(names)[::2]:
        row = r.choice(np.flatnonzero(names == name))
        X[row], y[row] = np.round(4.0 + 0.2 * r.standard_normal(2), 3), 1
    lines = ["bag,first,second" + (",label" if labelled else "")]
    lines += [
        f"{b},{a!r},{c!r}" + (f",{k}" if labelled else "") for b, (a, c), k in zip(names, X.tolist(), y, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    path.with_suffix(".toml").write_text(
        "[data]\nchecks = false\n"
    )  # each column separates the classes, as it is meant
    return X, y, names


def test_from_bags_to_predictions(cli: Cli, tmp_path: Path) -> None:
    """The predictions of the commands are those of the estimator on the rows."""
    train, new, bare = (tmp_path / f"{name}.csv" for name in ("train", "new", "bare"))
    X, y, bags = table(train, 1)
    Z, truth, new_bags = table(new, 2)
    table(bare, 2, labelled=False)
    outcome = cli("bags", train, "-o", tmp_path / "train.npz", "--json", tmp_path / "about.json")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"{np.unique(bags).size}" in outcome.out
    about = json.loads((tmp_path / "about.json").read_text())
    assert about["bags"] == np.unique(bags).size
    embedded = mipfs.read(tmp_path / "train.npz")
    row, k = embedded.X[3], 3
    rows = X[bags == np.unique(bags)[k]]
    squared = ((rows[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    np.testing.assert_allclose(row, np.exp(-squared / about["width"] ** 2).max(axis=0), rtol=1e-9)
    numbered = tmp_path / "numbered.csv"
    numbered.write_text(train.read_text().replace("\nb", "\n"))  # a store has whole numbers for bags
    assert cli("convert", numbered, tmp_path / "store", "-q").code == 0
    assert cli("bags", tmp_path / "store", "-o", tmp_path / "of_store.npz", "-q").code == 0
    np.testing.assert_array_equal(mipfs.read(tmp_path / "of_store.npz").X, embedded.X)
    args = ("-p", "measure=f1", "-p", "M=3", "-p", "C=100", "-p", "bias=false", "--json", tmp_path / "model.json", "-q")
    assert cli("solve", "structural", tmp_path / "train.npz", *args).code == 0
    for file in (new, bare):
        assert cli("bags", file, "--concepts", train, "-o", tmp_path / "new.npz").code == 0
        outcome = cli("predict", tmp_path / "model.json", tmp_path / "new.npz")
        assert outcome.code == 0
        model = MILClassifier(3, C=100.0).fit(X, y, bags=bags)
        said = [line.split(",")[0] for line in outcome.out.split()]
        assert [int(float(one)) for one in said if one[0].isdigit()] == model.predict(Z, new_bags).tolist()
    assert cli("bags", new, "--concepts", train, "-o", tmp_path / "new.npz").code == 0
    assert "evaluate" not in cli("evaluate", tmp_path / "model.json", tmp_path / "new.npz").err
    assert truth.any()


def test_the_nearest_are_sparse(cli: Cli, tmp_path: Path) -> None:
    table(tmp_path / "train.csv", 3)
    assert cli("bags", tmp_path / "train.csv", "-o", tmp_path / "t.npz", "--nearest", "2", "--width", "1.5").code == 0
    found = mipfs.read(tmp_path / "t.npz")
    assert sparse.issparse(found.X)
    assert np.all(np.diff(sparse.csr_array(found.X).indptr) <= 2)


def test_new_bags_of_svmlight_need_no_label(cli: Cli, tmp_path: Path) -> None:
    train, new = tmp_path / "train.svm", tmp_path / "new.svm"
    train.write_text("1 qid:1 1:1 2:2\n1 qid:1 1:0.5\n-1 qid:2 2:3\n-1 qid:2 1:1 2:1\n")
    new.write_text("qid:7 1:1 2:2\nqid:7 1:0.5\n")
    assert cli("bags", new, "--concepts", train, "-o", tmp_path / "n.npz", "--quiet").code == 0
    with np.load(tmp_path / "n.npz") as found:
        assert found["X"].shape == (1, 4)
        assert "y" not in found.files
    assert cli("bags", new, "-o", tmp_path / "o.npz").code == 2


def test_refused(cli: Cli, tmp_path: Path) -> None:
    train = tmp_path / "train.csv"
    table(train, 4)
    bare = tmp_path / "bare.csv"
    bare.write_text("first,label\n1.0,0\n2.0,1\n")
    other = tmp_path / "other.csv"
    other.write_text("bag,first,label\na,1.0,0\nb,2.0,1\n")
    out = tmp_path / "o.npz"
    for args, said in (
        ((bare, "-o", out), "the data have no bags"),
        ((train, "-o", tmp_path / "o.csv"), "embedded bags are written as npz"),
        ((train, "-o", train), "are written as npz"),
        ((other, "--concepts", train, "-o", out), "the feature 'second' of the training data is missing"),
        ((train, "-o", out, "--width", "-1"), "width"),
        ((train, "-o", out, "--nearest", "0"), "nearest"),
    ):
        outcome = cli("bags", *args)
        assert outcome.code == 2, outcome
        assert outcome.err.count("\n") == 1
        assert said in outcome.err
    assert not out.exists()
