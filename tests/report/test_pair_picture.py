"""The picture of a classifier of two features: points, the line and its margins, on the page and with matplotlib."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import mipfs
from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.result.pair import pair_chart

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)).round(2)
    lean = X[:, 1] - 2.0 * X[:, 3] + 0.3 * rng.normal(size=30)
    rows = [",".join([*map(str, x), "yes" if one > 0 else "no"]) for x, one in zip(X, lean, strict=True)]
    path = tmp_path_factory.mktemp("pair") / "four.csv"
    path.write_text("\n".join(["a,<b>,c,d,label", *rows]) + "\n")
    return path


def solved(table: Path, M: int) -> tuple[mipfs.Result, Instance]:
    data = mipfs.read(table, scale="standard")
    return mipfs.solve(mipfs.Problem(data, M=M)), data


def test_lines_are_where_the_scores_are_and_points_are_the_table(table: Path) -> None:
    result, data = solved(table, 2)
    chart = pair_chart(result, data)
    assert chart is not None
    raw = np.genfromtxt(table, delimiter=",", skip_header=1, usecols=(1, 3))
    label = np.array([row.split(",")[-1] for row in table.read_text().split()[1:]])
    yes, no, *lines = chart.marks
    assert [chart.x_label, chart.y_label] == ["<b>", "d"]
    for cloud, name in ((yes, "yes"), (no, "no")):
        assert cloud.name == name
        np.testing.assert_allclose(np.column_stack([cloud.x, cloud.y]), raw[label == name], atol=1e-12)
    assert [line.name for line in lines] == ["score 0", "score -1", "score 1"]
    for line, score in zip(lines, (0.0, -1.0, 1.0), strict=True):
        rows = np.zeros((2, 4))
        rows[:, 1], rows[:, 3] = line.x, line.y
        np.testing.assert_allclose(result.decision_function(rows), score, atol=1e-9)
        assert line.x != line.y
    axes = result.plot_pair(data)
    assert len(axes.lines) == 3
    assert [len(one.get_offsets()) for one in axes.collections] == [np.sum(label == "yes"), np.sum(label == "no")]
    assert chart.table is not None
    assert sum(int(row[2]) for row in chart.table.rows) == np.sum(result.predict(data) == label)


def test_other_numbers_of_features_have_no_picture(table: Path) -> None:
    result, data = solved(table, 3)
    assert pair_chart(result, data) is None
    with pytest.raises(UsageError, match="solve with M=2"):
        result.plot_pair(data)
    with pytest.raises(UsageError, match="give data with labels"):
        result.plot_pair(data.X)


def test_the_page_of_a_solve_and_of_held_out_data_have_it(table: Path) -> None:
    found, page = table.parent / "r.json", table.parent / "r.html"
    assert main(["solve", "fsp-m", str(table), "-p", "M=2", "-p", "C=1", "--json", str(found), "--report", str(page),
                 "--quiet"]) == 0  # fmt: skip
    pages = [page.read_text()]
    for more in (["--data", str(table)], []):
        assert main(["report", str(found), *more, "-o", str(page), "--quiet"]) == 0
        pages.append(page.read_text())
    assert [one.count('data-kind="scatter"') for one in pages] == [1, 1, 0]
    assert len(re.findall('class="sample r-', pages[0])) == 2
    assert "&lt;b&gt;" in pages[0]
    assert "<b>" not in pages[0]
