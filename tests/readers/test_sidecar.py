"""The .toml beside the data: its keys, its rows, and every error with the line where it is found."""

from __future__ import annotations

import math

import pytest

from mipfs.data.instance import Row, SelectDefaults
from mipfs.errors import DataError
from mipfs.readers.select_rows import read_select
from mipfs.readers.sidecar import DataDescription

FEATURES = {name: j for j, name in enumerate(["mean area", "worst area", "age", "b.c"])}
INF = math.inf

FULL = """\
# what it is
[data]
label = "bad"
positive = 1
scale = "unit"
source = "somewhere"
licence = "CC0-1.0"

[features]
names = ["mean area", "worst area", "age", "b.c"]

[cost]
"mean area" = 1
age = 2.5
"b.c" = 0

[penalty]
"worst area" = 0.5

[groups]
sizes = ["mean area",
         "worst area"]

[select]
M = 3
budget = 3
forced_in = ["age"]
forced_out = []
implies = [["worst area", "mean area"],
           ['age', 'b.c']]
conflicts = [["mean area", "age"], ["mean area", "worst area", "b.c"]]
at_most = [
    { k = 1, of = ["mean area", "age"] },
    { k = 2, of = ["mean area", "age", "b.c"] },
]
at_least = [{ k = 0, of = ["age"] }]
exactly = [{ k = 1, of = ["age", "b.c"] }]

[generator]
anything = [1, 2]
"""


def sidecar(tmp_path, text):
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    return DataDescription.beside(tmp_path / "a.svm.gz")


def read_all(found):
    """Everything a description can say, once the features are known."""
    cost = found.amounts("cost", FEATURES)
    return cost, found.amounts("penalty", FEATURES), found.groups(FEATURES), *read_select(found, FEATURES, cost)


def test_no_description(tmp_path):
    found = DataDescription.beside(tmp_path / "a.svm")
    assert found.label is found.positive is found.scale is found.names is None
    assert read_all(found) == ({}, {}, {}, SelectDefaults(), ())


def test_everything(tmp_path):
    found = sidecar(tmp_path, FULL)
    assert (found.label, found.positive, found.scale) == ("bad", 1, "unit")
    assert found.names == list(FEATURES)
    cost, penalty, groups, select, rows = read_all(found)
    assert cost == {"mean area": 1.0, "age": 2.5, "b.c": 0.0}
    assert penalty == {"worst area": 0.5}
    assert groups == {"sizes": ("mean area", "worst area")}
    assert select == SelectDefaults(3, ("age",), ())
    one = dict.fromkeys
    assert rows == (
        Row("budget", {"mean area": 1.0, "age": 2.5}, -INF, 3.0, "a.toml:26"),
        Row("implies[worst area -> mean area]", {"worst area": 1.0, "mean area": -1.0}, -INF, 0.0, "a.toml:29"),
        Row("implies[age -> b.c]", {"age": 1.0, "b.c": -1.0}, -INF, 0.0, "a.toml:30"),
        Row("conflicts[mean area, age]", one(["mean area", "age"], 1.0), -INF, 1.0, "a.toml:31"),
        Row(
            "conflicts[mean area, worst area, b.c]",
            one(["mean area", "worst area", "b.c"], 1.0),
            -INF,
            1.0,
            "a.toml:31",
        ),
        Row("at_most[1]", one(["mean area", "age"], 1.0), -INF, 1.0, "a.toml:33"),
        Row("at_most[2]", one(["mean area", "age", "b.c"], 1.0), -INF, 2.0, "a.toml:34"),
        Row("at_least[1]", {"age": 1.0}, 0.0, INF, "a.toml:36"),
        Row("exactly[1]", {"age": 1.0, "b.c": 1.0}, 1.0, 1.0, "a.toml:37"),
    )


def test_long_lists_are_located_by_their_key(tmp_path):
    pairs = ",\n".join('["age", "b.c"]' for _ in range(300))
    rows = read_all(sidecar(tmp_path, f"[select]\n\nimplies = [\n{pairs}]\n"))[-1]
    assert {row.origin for row in rows} == {"a.toml:3"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[data\n", 1, "not TOML: Expected ']' at the end of a table declaration; correct the line"),
        ('[data]\nscale = "none"\nlabel = "a\n', 3, "not TOML: Illegal character"),
        ('[data]\nlabel = """a\n', 3, "not TOML: "),
        ("[date]\n", 1, "unknown table [date]; did you mean 'data'?"),
        (
            "[zzz]\n",
            1,
            "unknown table [zzz]; the tables are data, features, cost, penalty, groups, select, weights, generator",
        ),
        (
            "\nM = 3\n",
            2,
            "unknown key 'M'; the tables are data, features, cost, penalty, groups, select, weights, generator",
        ),
        ("select = 3\n", 1, "'select' is 3; write it as a table, [select]"),
        ("[cost]\na = 1\n[data]\nlicense = 'x'\n", 4, "unknown key 'license' in [data]; did you mean 'licence'?"),
        ("[select]\nforced-in = []\n", 2, "unknown key 'forced-in' in [select]; did you mean 'forced_in'?"),
        ("[data]\nlabel = 3\n", 2, "[data] label is 3; write a text in quotes"),
        ("[data]\nscale = 'std'\n", 2, "[data] scale is 'std'; write one of none, standard, unit"),
        ("[data]\npositive = []\n", 2, "[data] positive is []; write one of the two labels"),
        ("[features]\nnames = []\n", 2, "[features] names is []; write a list of names in quotes"),
        ("[features]\nnames = ['a', 1]\n", 2, "[features] names is ['a', 1]; write a list of names in quotes"),
        ("[features]\nnames = ['a',\n 'b', 'a']\n", 2, "[features] names names 'a' twice; name each once"),
        ("[cost]\nage = 1\nagee = 2\n", 3, "[cost] no feature is called 'agee'; did you mean 'age'?"),
        ("[cost]\nage = -1\n", 2, "[cost] 'age' is -1; write a finite number >= 0"),
        ("[cost]\nage = nan\n", 2, "[cost] 'age' is nan; write a finite number >= 0"),
        ("[cost]\nage = true\n", 2, "[cost] 'age' is True; write a finite number >= 0"),
        ("[cost]\nb.c = 1\n", 2, "[cost] 'b' is a table; quote a name that has a dot"),
        ("[penalty]\nage = 'x'\n", 2, "[penalty] 'age' is 'x'; write a finite number >= 0"),
        ("[groups]\ng = ['age', 'b.d']\n", 2, "[groups] no feature is called 'b.d'; did you mean 'b.c'?"),
        ("[groups]\ng = 'age'\n", 2, "[groups] 'g' is 'age'; write a list of names in quotes"),
        ("[groups]\ng = ['age', 'age']\n", 2, "[groups] 'g' names 'age' twice; name each once"),
        ("[select]\nM = -1\n", 2, "[select] M is -1; write a whole number from 0 to 4, the number of features"),
        ("[select]\nM = 5\n", 2, "[select] M is 5; write a whole number from 0 to 4, the number of features"),
        ("[select]\nM = 2.0\n", 2, "[select] M is 2.0; write a whole number from 0 to 4, the number of features"),
        ("[select]\nbudget = 3\n", 2, "a budget without costs; give features a cost in a table [cost]"),
        (
            "[cost]\nage = 0\n[select]\nbudget = 3\n",
            4,
            "a budget, and all costs are 0; give features a cost above 0 in",
        ),
        ("[cost]\nage = 1\n[select]\nbudget = -3\n", 4, "[select] budget is -3; write a finite number >= 0"),
        ("[select]\nforced_in = 'age'\n", 2, "[select] forced_in is 'age'; write a list of names in quotes"),
        (
            "[select]\nforced_in = [\n'age',\n'aeg']\n",
            4,
            "[select] no feature is called 'aeg'; did you mean 'age'?",
        ),
        (
            "[select]\nforced_in = ['age']\nforced_out = ['b.c', 'age']\n",
            3,
            "[select] 'age' is both forced_in and forced_out; keep one of the two",
        ),
        ("[select]\nimplies = ['age', 'b.c']\n", 2, "[select] implies is ['age', 'b.c']; write implies = [["),
        (
            "[select]\nimplies = [['age', 'b.c'],\n['age', 'b.c', 'mean area']]\n",
            3,
            "[select] implies has ['age', 'b.c', 'mean area']; write two features in each entry",
        ),
        (
            "[select]\nimplies = [['age', 'age']]\n",
            2,
            "[select] an entry of implies names 'age' twice; name each once",
        ),
        ("[select]\nconflicts = [['age']]\n", 2, "[select] conflicts has ['age']; write two features in each entry"),
        (
            "[select]\nconflicts = [['age', 'worst aera']]\n",
            2,
            "[select] no feature is called 'worst aera'; did you mean 'worst area'?",
        ),
        ("[select]\nat_most = {k = 1, of = ['age']}\n", 2, "[select] at_most is {"),
        (
            "[select]\nat_most = [{k = 1}]\n",
            2,
            "[select] entry 1 of at_most is {'k': 1}; write at_most = [{k = 1, of = [",
        ),
        (
            "[select]\nexactly = [{k = -1, of = ['age']}]\n",
            2,
            "[select] entry 1 of exactly: k is -1; write a whole number >= 0",
        ),
        (
            "[select]\nat_least = [{k = 1, of = []}]\n",
            2,
            "[select] entry 1 of at_least: of is []; write a list of names in quotes",
        ),
        (
            "[select]\nat_least = [\n{k = 1, of = ['age']},\n{k = 1, of = ['agee']}]\n",
            4,
            "[select] no feature is called 'agee'; did you mean 'age'?",
        ),
    ],
)
def test_refused(tmp_path, text, line, message):
    with pytest.raises(DataError) as caught:
        read_all(sidecar(tmp_path, text))
    assert str(caught.value).startswith(f"{tmp_path / 'a.toml'}:{line}: {message}")
    assert caught.value.line == line


def test_not_utf8(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"[data]\nlabel = '\xff'\n")
    with pytest.raises(DataError, match=r"a\.toml: not a text file in UTF-8; save it as UTF-8"):
        DataDescription.beside(tmp_path / "a.svm")
