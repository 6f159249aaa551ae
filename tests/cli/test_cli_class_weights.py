"""Weights of the classes on the command line and in the description."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from tests.cli.outcome import Cli
from tests.test_class_weights import rare


@pytest.mark.slow
def test_the_description_asks_for_them_and_a_result_without_is_said_to_differ(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    data = rare(40)
    rows = zip(data.X.tolist(), data.labels.of(data.y), strict=True)
    path.write_text("a,b,c,d,e,label\n" + "\n".join(",".join(map(str, [*x, y])) for x, y in rows) + "\n")
    (tmp_path / "t.toml").write_text("[data]\nclass_weight = { bad = 3 }\n")
    saved = tmp_path / "r.json"
    asked = ("solve", "fsp-m", path, "--M", "2", "--json", saved)
    assert cli(*asked).code == 0
    assert json.loads(saved.read_text())["params"]["class_weight"] == {"good": 1.0, "bad": 3.0}
    checked_ = cli("verify", saved, path)
    assert checked_.code == 0, checked_.err
    assert "differs" not in checked_.out
    for given, stated in (("none", None), ("balanced", "balanced"), ("bad:2.5,good:1", {"good": 1.0, "bad": 2.5})):
        assert cli(*asked, "-p", f"class_weight={given}").code == 0
        found = json.loads(saved.read_text())["params"].get("class_weight")
        if stated == "balanced":
            balanced = compute_class_weight("balanced", classes=np.array([-1.0, 1.0]), y=data.y)
            assert found == pytest.approx({"good": balanced[0], "bad": balanced[1]})
        else:
            assert found == stated
        assert "the data asks for class weights: C times 1 for good, 3 for bad" in cli("verify", saved, path).out
    path_json = tmp_path / "p.json"
    walked = cli("path", path, "--M", "1:2", "-p", "class_weight=balanced", "--folds", "2", "--json", path_json)
    assert walked.code == 0, walked.err
    assert cli("verify", f"{path_json}#M=2", path).code == 0
    for given, message in (
        ("bad", "write balanced, none, or weights such as yes:5,no:1"),
        ("ugly:2", "class_weight names 'ugly', which is no label: these are 'good' and 'bad'"),
        ("bad:0", "class_weight of 'bad' is 0.0; it must be a finite number > 0"),
    ):
        refused = cli(*asked, "-p", f"class_weight={given}")
        assert refused.code == 2
        assert message in refused.err
        assert len(refused.err.splitlines()) == 1
    (tmp_path / "t.toml").write_text("[data]\nclass_weight = { worse = 3 }\n")
    refused = cli(*asked)
    assert refused.code == 2
    assert "t.toml:2: [data] class_weight names 'worse'" in refused.err
