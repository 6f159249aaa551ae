"""Trees by name: nested groups of the data, against the same nodes as overlapping groups; where it is named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs import FGMClassifier, FSPClassifier
from mipfs.atoms import make
from mipfs.atoms.groups import Groups
from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.problem import Problem

NODES = {"left": ["x1", "x2"], "all": ["x1", "x2", "x3", "x4"], "right": ["x3", "x4"], "pair": ["x5", "x6"]}


def draw(seed: int, **given: object) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((40, 7))
    return Instance.from_arrays(
        X, np.where(X[:, 0] + X[:, 1] - X[:, 4] + r.standard_normal(40) > 0, 1.0, -1.0), **given
    )


@pytest.mark.parametrize("scaling", ["none", "norm"])
def test_it_is_every_node_as_a_group(scaling: str) -> None:
    data = draw(1, groups=NODES)
    tree = make("tree", data, scaling=scaling)
    every = {**{name: [name] for name in data.feature_names}, **NODES}
    groups = Groups(data, every, scaling)
    assert list(tree.names) == list(groups.names)
    v = np.random.default_rng(2).standard_normal(40)
    np.testing.assert_allclose(tree.scores(v), groups.scores(v), rtol=1e-12)
    for M in (1, 2):
        a, b = (mipfs.solve(Problem(data, M=M, C=0.5, atoms=atoms)) for atoms in (tree, groups))
        assert a.objective == pytest.approx(b.objective, rel=1e-4)
        assert a.selected == b.selected
        assert mipfs.verify(a, data).accepted


def test_equal_groups_and_groups_that_cross() -> None:
    tree = make("tree", draw(1), groups={"a": [0, 1], "b": ["x1", "x2"]})
    assert list(tree.sizes) == [1] * 7 + [2, 2]
    with pytest.raises(UsageError, match=r"the groups 'a' and 'b' share features, and none holds the other"):
        make("tree", draw(1), groups={"a": [0, 1], "b": [1, 2, 3]})
    with pytest.raises(UsageError, match="the data has none; list them under"):
        make("tree", draw(1))
    with pytest.raises(UsageError, match="node 'x1' has the name of a feature"):
        make("tree", draw(1), groups={"x1": [0, 1]})


def test_on_the_command_line_and_in_estimators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = draw(3)
    file = tmp_path / "d.csv"
    rows = [",".join([*data.feature_names, "label"])]
    rows += [",".join([*(repr(v) for v in x), str(int(y))]) for x, y in zip(data.X.tolist(), data.y, strict=True)]
    file.write_text("\n".join(rows))
    listed = "".join(f"{name} = {json.dumps(members)}\n" for name, members in NODES.items())
    file.with_suffix(".toml").write_text(f"[groups]\n{listed}")
    target = tmp_path / "r.json"
    args = ["-p", "atoms=tree", "-p", "M=2", "-p", "C=0.5", "--json", str(target), "-q"]
    assert main(["solve", "fsp-m", str(file), *args]) == 0
    found = json.loads(target.read_text())
    exact = mipfs.solve(Problem(data, M=2, C=0.5, atoms=make("tree", data, groups=NODES)))
    assert found["selected"] == list(exact.selected)
    assert main(["verify", str(target), str(file)]) == 0
    assert "accepted" in capsys.readouterr().out
    model = FSPClassifier(M=2, C=0.5, atoms="tree", atom_options={"groups": NODES}).fit(data.X, data.y)
    assert model.atoms_.tolist() == sorted(exact.selected) or set(model.atoms_) == set(exact.selected)
    relaxed = FGMClassifier(M=2, C=0.5, loss="hinge", atoms="tree", atom_options={"groups": NODES}).fit(data.X, data.y)
    assert relaxed.result_.bound <= exact.objective
