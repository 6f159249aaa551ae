"""The small data of the kept results: every format, and every way in which a table is read."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

ROWS = 24
TOML = {
    "table": """[data]
label = "sick"
positive = "yes"
[cost]
a = 1
b = 2
c = 2
d = 1.5
e = 1
[penalty]
b = 0.25
[select]
budget = 6
implies = [["a", "b"]]
at_most = [{ k = 2, of = ["c", "d", "e"] }]
""",
    "groups": """[groups]
one = ["u", "v"]
two = ["x", "y"]
""",
    "overlap": """[groups]
one = ["u", "v"]
two = ["v", "x"]
three = ["y"]
""",
    "described": """[data]
label = "ill"
positive = "yes"
scale = "standard"
class_weight = { yes = 3 }
[penalty]
v = 0.1
[select]
M = 3
forced_in = ["u"]
forced_out = ["y"]
conflicts = [["v", "x"]]
[weights]
nonpositive = ["u"]
bounds = { v = [-1.0, 2.0] }
""",
    "recipe": """[data]
label = "defaulted"
positive = "yes"
drop = ["id", "closed"]
impute = { "*" = "median", home = "level" }
types = { opened = "date", income = "currency", rate = "percent" }
""",
}
"""What stands beside a table."""
RAW = "id,opened,paid,closed,income,rate,ratio,fee,share,home,late,defaulted"
LP = """Minimize
 obj:
Subject To
 first: u + v <= 1
 second: x - y <= 0
End
"""


def write(folder: Path) -> None:
    """All of it."""
    rng = np.random.default_rng(7)
    y = tables(folder, rng)
    sparse_files(folder, rng, y)
    positive(folder, rng)
    raw(folder, rng)
    several(folder, rng)
    bags(folder, rng)
    for name, text in TOML.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    (folder / "rows.lp").write_text(LP, encoding="utf-8")


def csv(path: Path, head: str, rows: object, between: str = ",") -> None:
    """A table as text."""
    lines = [between.join(map(str, row)) for row in rows]  # type: ignore[attr-defined]
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


def tables(folder: Path, rng: np.random.Generator) -> NDArray[np.str_]:
    """table.csv, words.csv with weights, words and semicolons, and the labels of both."""
    X = np.round(rng.normal(size=(ROWS, 5)) * [1, 10, 0.1, 3, 1] + [0, 50, 0, 0, 2], 3)
    score = X[:, 0] - 0.1 * (X[:, 1] - 50) + 8 * X[:, 2] + 0.7 * rng.normal(size=ROWS)
    y = np.where(score > np.median(score), "yes", "no")
    csv(folder / "table.csv", "a,b,c,d,e,sick", ([*row, label] for row, label in zip(X.tolist(), y, strict=True)))
    words = rng.choice(["red", "green", "blue"], ROWS)
    weights = np.round(rng.uniform(0.5, 2.0, ROWS), 2)
    rows = zip(X[:, 0].tolist(), words, weights.tolist(), y, strict=True)
    csv(folder / "words.csv", "a;colour;sample_weight;label", rows, ";")
    return y


def sparse_files(folder: Path, rng: np.random.Generator, y: NDArray[np.str_]) -> None:
    """sparse.svm, the same compressed, and as npz with y.npy and names.txt beside it."""
    X = np.where(rng.random((ROWS, 9)) < 0.2, np.round(rng.normal(size=(ROWS, 9)), 2), 0.0)
    X[-1, -1] = 1.5
    signs = np.where(y == "yes", 1, -1)
    lines = [
        f"{sign} " + " ".join(f"{j + 1}:{row[j]:g}" for j in np.flatnonzero(row))
        for sign, row in zip(signs, X, strict=True)
    ]
    text = "\n".join(lines) + "\n"
    (folder / "sparse.svm").write_text(text, encoding="utf-8")
    (folder / "pressed.svm.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (folder / "named").mkdir()
    sparse.save_npz(folder / "named" / "X.npz", sparse.csr_array(X))
    np.save(folder / "named" / "y.npy", signs)
    (folder / "named" / "names.txt").write_text("".join(f"word{j}\n" for j in range(9)), encoding="utf-8")


def positive(folder: Path, rng: np.random.Generator) -> None:
    """Numbers from 0 on, for functions of features too, in a table of every format that is read."""
    X = np.round(rng.gamma(2.0, 1.0, size=(ROWS, 4)), 2)
    X[rng.random(X.shape) < 0.15] = 0.0
    score = np.abs(X[:, 0] - 1.5) - X[:, 1] + 0.4 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=ROWS)
    y = np.where(score > np.quantile(score, 0.6), "yes", "no")
    head, rows = "u,v,x,y,label", [[*row, label] for row, label in zip(X.tolist(), y, strict=True)]
    for name in ("plain", "groups", "overlap"):
        csv(folder / f"{name}.csv", head, rows)
    csv(folder / "described.csv", "u,v,x,y,ill", rows)
    more = (X[::-1] + 0.01).round(2).tolist()
    csv(folder / "more.csv", head, ([*row, label] for row, label in zip(more, y[::-1], strict=True)))
    csv(folder / "tabs.csv", "# numbers of gamma\n" + head.replace(",", "\t"), rows, "\t")
    comma = ([*(str(value).replace(".", ",") for value in row[:-1]), row[-1]] for row in rows)
    csv(folder / "decimals.csv", head.replace(",", ";"), comma, ";")
    csv(folder / "numbered.csv", f",{head}", ([k, *row] for k, row in enumerate(rows)))
    csv(folder / "ids.csv", f"id,{head}", ([f"K-{(7 * k) % ROWS:03d}", *row] for k, row in enumerate(rows)))
    text = (folder / "plain.csv").read_bytes()
    (folder / "pressed.csv.bz2").write_bytes(bz2.compress(text))
    weights = np.round(rng.uniform(0.5, 2.0, ROWS), 2)
    np.savez(folder / "arrays.npz", X=X, y=np.where(y == "yes", 1, 0), feature_names=[*"uvxy"], sample_weight=weights)
    frame = pd.DataFrame(X, columns=[*"uvxy"]).assign(kind=rng.choice(["s", "t"], ROWS), label=y)
    frame.to_parquet(folder / "columns.parquet", index=False)


def raw(folder: Path, rng: np.random.Generator) -> None:
    """A table as a business system exports it: IDs, dates, money, percent, decimal commas, words, gaps."""
    late = rng.poisson(1.5, ROWS)
    rate = np.round(rng.uniform(3, 20, ROWS), 1)
    income = np.round(rng.uniform(15e3, 60e3, ROWS), 2)
    y = np.where(late + 0.2 * rate - income / 2e4 + 0.5 * rng.normal(size=ROWS) > 2.0, "yes", "no")
    months, days = rng.integers(1, 13, (3, ROWS)), rng.integers(13, 29, (3, ROWS))
    money, comma = rng.uniform(1e3, 3e3, ROWS).round(2), rng.uniform(0, 1, ROWS).round(3)
    rows = [
        [
            f"L-{k:02d}",
            f"2021-{months[0, k]:02d}-{days[0, k]:02d}",
            f"{days[1, k]:02d}/{months[1, k]:02d}/2022",
            f"{months[2, k]:02d}/{days[2, k]:02d}/2023",
            "" if k in (3, 11) else f'"${income[k]:,.2f}"',
            "?" if k == 6 else f"{rate[k]}%",
            f'"{comma[k]}"'.replace(".", ","),
            f'"{money[k]:,.2f} EUR"'.translate(str.maketrans(",.", ".,")),
            f'"{100 * comma[-k]:.1f}%"'.replace(".", ","),
            "" if k in (2, 9) else str(rng.choice(["own", "rent", "free"])),
            "NA" if k == 13 else late[k],
            y[k],
        ]
        for k in range(ROWS)
    ]
    for name in ("raw", "recipe"):
        csv(folder / f"{name}.csv", RAW, rows)


def several(folder: Path, rng: np.random.Generator) -> None:
    """kinds.csv: three classes."""
    kinds = np.repeat(["low", "middle", "high"], [10, 7, 7])
    place = np.repeat([1.0, 3.0, 5.0], [10, 7, 7])
    X = np.round(np.column_stack([place, place**2 / 9, np.full(ROWS, 2.0)]) + rng.normal(size=(ROWS, 3)), 2)
    rows = zip(*X.T.tolist(), kinds, strict=True)
    csv(folder / "kinds.csv", "length,width,height,label", rows)


def bags(folder: Path, rng: np.random.Generator) -> None:
    """Bags of two rows: bags.csv by a column, bags.svm by qid; a bag is positive if one of its rows is."""
    label = np.array([1, 0, 1, 0, 0, 1, 0, 0])
    rows = []
    for bag, truth in enumerate(label):
        far = np.array([5.0, 5.0]) * truth * np.array([[0.0], [1.0]])
        rows += [(bag, truth, *row) for row in np.round(far + 0.3 * rng.random((2, 2)), 2).tolist()]
    csv(folder / "bags.csv", "bag,label,p,q", rows)
    lines = [f"{2 * truth - 1} qid:{bag} 1:{p:g} 2:{q:g}\n" for bag, truth, p, q in rows]
    (folder / "bags.svm").write_text("".join(lines), encoding="utf-8")
