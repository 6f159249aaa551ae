"""A document of several classes and its archive belong together, also where a process was ended between two moves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mipfs.cli import main
from mipfs.proof import pair


@pytest.mark.parametrize("shared", [False, True])
def test_the_old_document_finds_its_archive_beside_a_new_one(
    shared: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.two_checkers import second

    r = np.random.default_rng(58)
    y = r.integers(0, 3, size=60)
    X = r.normal(size=(60, 4)) + 2.0 * np.eye(3, 4)[y]
    data = tmp_path / "d.csv"
    lines = [f"c{c}," + ",".join(f"{v:.4g}" for v in x) for c, x in zip(y, X, strict=True)]
    data.write_text("label,a,b,c,d\n" + "\n".join(lines) + "\n")
    more = ["--shared-support"] if shared else []
    for name, M in (("old", "2"), ("new", "3")):
        place = str(tmp_path / f"{name}.json")
        assert main(["solve", "fsp-m", str(data), "-p", f"M={M}", "-p", "C=1", "--json", place, "-q", *more]) == 0
    document = tmp_path / "old.json"
    pair._keep_second_name(document, tmp_path / "old.cert.npz")
    (tmp_path / "new.cert.npz").replace(tmp_path / "old.cert.npz")  # and the process is ended here
    assert main(["verify", str(document), str(data), "-q"]) == 0
    checker = second()
    assert checker.verdict_of(lambda: checker.judge(document, data))[0] == "accepted"
    stated = json.loads(document.read_text())
    stated["archive"]["sha256"] = "0" * 64
    document.write_text(json.dumps(stated))
    capsys.readouterr()
    assert main(["verify", str(document), str(data), "-q"]) == 1
    assert "the file of certificates" in "".join(capsys.readouterr())
    assert checker.verdict_of(lambda: checker.judge(document, data))[0] == "rejected"
