"""A raw table: columns left out, cells of many kinds, missing values; against pandas and scikit-learn."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mipfs
from mipfs.data.recipe import TYPES, Recipe
from mipfs.errors import DataError, UsageError
from mipfs.lab.studies.folds import stratify
from mipfs.readers import read, read_new
from mipfs.readers.typed import parse_cell

HEAD = "id,opened,income,rate,ratio,home,age,late,bad\n"
RECIPE = {
    "drop": ["id"],
    "impute": {"*": "median", "home": "level"},
    "types": {"opened": "date", "income": "currency", "rate": "percent", "ratio": "decimal comma"},
}


def table(n: int, seed: int = 0) -> str:
    """A credit table as it comes: words, dates, currency, percent, decimal commas, and holes."""
    r = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        late = int(r.poisson(1))
        day = (pd.Timestamp("2015-01-01") + pd.Timedelta(days=int(r.integers(2000)))).date().isoformat()
        cells = [f"C{i}", day, f'"${r.lognormal(10, 0.5):,.2f}"', f"{r.uniform(3, 25):.2f}%"]
        cells += ['"' + f"{r.uniform(0, 1.5):.3f}".replace(".", ",") + '"', r.choice(["own", "rent", "free"])]
        cells += [str(r.integers(18, 80)), str(late)]
        for k, share in ((2, 0.1), (3, 0.1), (5, 0.2), (6, 0.2)):
            cells[k] = r.choice(["", "NA", "?"]) if r.random() < share else cells[k]
        lines.append(",".join([*cells, "yes" if r.random() < 0.2 + 0.2 * min(late, 3) else "no"]))
    return HEAD + "\n".join(lines) + "\n"


def cleaned(text: str) -> pd.DataFrame:
    """What pandas makes of the table in eight steps."""
    frame = pd.read_csv(io.StringIO(text), na_values=["?", "NA"]).drop(columns="id")
    frame["opened"] = (pd.to_datetime(frame["opened"]) - pd.Timestamp("1970-01-01")).dt.days.astype(float)
    frame["income"] = frame["income"].str.replace("[$,]", "", regex=True).astype(float)
    frame["rate"] = frame["rate"].str.rstrip("%").astype(float)
    frame["ratio"] = frame["ratio"].str.replace(",", ".").astype(float)
    frame["home"] = frame["home"].fillna("missing")
    return frame


def written(tmp_path, text, name="raw.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "text", "toml"])
def test_a_raw_table_is_what_pandas_and_scikit_learn_make_of_it(tmp_path, kind):
    text = table(120)
    clean = cleaned(text)
    path = written(tmp_path, text)
    given = dict(RECIPE)
    if kind in ("parquet", "frame", "text"):
        raw = pd.read_csv(path, keep_default_na=False, dtype=str)
        for name in ("age", "late") if kind != "text" else ("late",):  # of text, age is one of numbers and ? and NA
            raw[name] = pd.to_numeric(raw[name], errors="coerce")
        if kind == "parquet":
            pytest.importorskip("pyarrow")
            raw["opened"] = pd.to_datetime(raw["opened"])
            path = tmp_path / "raw.parquet"
            raw.to_parquet(path)
        path = path if kind == "parquet" else raw
    if kind == "toml":
        types = ", ".join(f'{name} = "{said}"' for name, said in given.pop("types").items())
        (tmp_path / "raw.toml").write_text(
            f'[data]\ndrop = ["id"]\nimpute = {{ "*" = "median", home = "level" }}\ntypes = {{ {types} }}\n'
        )
        given = {}
    data = read(path, label="bad", scale="none", **given)
    numbers = ["opened", "income", "rate", "ratio", "age", "late"]
    filled = SimpleImputer(strategy="median").fit_transform(clean[numbers])
    columns = data.columns_of(numbers)
    np.testing.assert_allclose(data.block().dense()[:, columns], filled, rtol=1e-15)
    words = ["free", "missing", "own", "rent"]
    ids = data.columns_of([f"home={word}" for word in words])
    np.testing.assert_array_equal(data.block().dense()[:, ids], np.array([clean["home"] == word for word in words]).T)
    stated = data.prepared.document()
    holes = pd.read_csv(io.StringIO(text), na_values=["?", "NA"]).isna().sum()
    assert stated["missing"] == {name: count for name, count in holes.items() if count}
    assert stated["filled"]["age"] == np.nanmedian(clean["age"])


def test_folds_fill_in_and_scale_by_their_training_part_alone(tmp_path):
    """No value of the test part moves the training part: the same as a pipeline of scikit-learn, fold by fold."""
    text = table(90, seed=3)
    recipe = {**RECIPE, "impute": {"*": "median", "home": "most frequent", "age": "level"}}
    data = read(written(tmp_path, text), label="bad", scale="standard", **recipe)
    clean = cleaned(text).replace({"home": {"missing": np.nan}})
    numbers, y = ["opened", "income", "rate", "ratio", "age", "late"], (clean["bad"] == "yes").to_numpy()
    frequent = SimpleImputer(strategy="most_frequent")
    steps = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median"), numbers),
            ("words", make_pipeline(frequent, OneHotEncoder(sparse_output=False, categories=[[*WORDS]])), ["home"]),
        ]
    )
    folds = stratify(data, 5, seed=7)
    splits = StratifiedKFold(5, shuffle=True, random_state=7).split(np.zeros(90), data.y)
    names = [*numbers, *(f"home={word}" for word in WORDS)]
    moved = 0
    for fold, (train, test) in zip(folds, splits, strict=True):
        pipeline = make_pipeline(steps, StandardScaler())
        wanted = pipeline.fit_transform(clean.iloc[train], y[train]), pipeline.transform(clean.iloc[test])
        ids = fold.train.columns_of(names)
        np.testing.assert_allclose(fold.train.block(ids).dense(), wanted[0], atol=1e-9)
        standing = (fold.X[:, ids] - fold.train.shift[ids]) / fold.train.scale[ids]
        np.testing.assert_allclose(standing, wanted[1], atol=1e-9)
        moved += pipeline[0].named_transformers_["numbers"].statistics_[4] != np.nanmedian(clean["age"])
        inner = stratify(fold.train, 3, seed=1)[0].train  # folds of a training part too
        kept = next(iter(StratifiedKFold(3, shuffle=True, random_state=1).split(np.zeros(len(train)), fold.train.y)))[0]
        wanted = make_pipeline(steps, StandardScaler()).fit_transform(clean.iloc[train[kept]])
        np.testing.assert_allclose(inner.block(inner.columns_of(names)).dense(), wanted, atol=1e-9)
    assert moved  # the medians differ between folds, so a leak would have shown


WORDS = ("free", "own", "rent")


def test_sparse_columns_are_filled_in_again_as_dense_ones(tmp_path):
    r = np.random.default_rng(1)
    words = [f"w{k}" for k in range(12)]
    lines = [f"{r.choice(['', '1', '2', '5'])},{r.choice(['', *words])},{i % 2}" for i in range(80)]
    data = read(written(tmp_path, "x,word,label\n" + "\n".join(lines) + "\n"), impute="median", scale="none")
    dense = mipfs.Instance.from_arrays(data.block().dense(), data.y, feature_names=data.feature_names)
    rows = np.flatnonzero((dense.X[:, 0] == 5) | (np.arange(80) < 4))
    wanted = data.prepared.refill(dense.X, data.index, rows)
    from scipy import sparse

    found = data.prepared.refill(sparse.csc_array(dense.X), data.index, rows)
    np.testing.assert_array_equal(found.toarray(), wanted)
    assert np.any(wanted != dense.X)
    np.testing.assert_array_equal(data.part(rows).block().dense(), wanted[rows])


def test_the_digest_is_that_of_the_table_and_the_recipe(tmp_path):
    path = written(tmp_path, "x,y,label\n1,2,0\n,3,1\n3,1,0\n2,2,1\n")
    filled = written(tmp_path, "x,y,label\n1,2,0\n2,3,1\n3,1,0\n2,2,1\n", "filled.csv")  # by hand, with the median
    plain = read(filled, scale="none")
    one, other = (read(path, scale="none", impute=how) for how in ("median", {"x": "median"}))
    np.testing.assert_array_equal(one.X, plain.X)
    assert len({plain.sha256, one.sha256, other.sha256}) == 3
    assert read(filled, scale="none", impute="median").sha256 != one.sha256  # the same values, none of them missing
    assert read(path, scale="standard", impute="median").sha256 == one.sha256


def test_a_classifier_prepares_new_rows_as_training_did(tmp_path):
    path = written(tmp_path, table(150))
    data = read(path, label="bad", scale="standard", **RECIPE)
    result = mipfs.solve(mipfs.Problem(data, M=5, C=1.0))
    result.save(tmp_path / "r.json")
    result = mipfs.Result.load(tmp_path / "r.json")
    new = written(tmp_path, table(40, seed=9), "new.csv")
    clean = cleaned(new.read_text())
    filled = clean.fillna({name: value for name, value in result.recipe["filled"].items() if name != "home"})
    score = np.full(40, result.intercept)
    for name, weight in result.weights.items():
        column, _, word = name.partition("=")
        score += weight * ((filled[column] == word) if word else filled[column]).to_numpy(dtype=float)
    names = tuple(result.weights)
    frame = pd.read_csv(new)
    for found in (
        result.decision_function(read_new(new, names=names, remembered="bad", recipe=result.recipe)),
        result.decision_function(frame),
        result.decision_function(frame.iloc[::-1].drop(columns=["id", "bad"]))[::-1],
    ):
        np.testing.assert_allclose(found, score, rtol=1e-9, atol=1e-9)
    less = {**result.recipe, "filled": {}}  # of a changed file: never the median of the new rows
    with pytest.raises(DataError, match="the result does not say what stands for a missing"):
        read_new(new, names=names, remembered="bad", recipe=less)
    constant = read_new(new, names=(), remembered="bad", recipe=less)
    assert constant.n_samples == 40
    one = frame.iloc[[0]].copy()
    for name in one.columns:
        one[name] = None  # nothing is known of a row, and not its label: all of it is filled in
    assert np.isfinite(result.decision_function(one)).all()


@pytest.mark.parametrize(
    ("cell", "kind", "value"),
    [
        ("$1,234.50", "currency", 1234.5),
        ("1 234.50 EUR", "currency", 1234.5),
        ("(20.00)", "currency", -20.0),
        ("-$5", "currency", -5.0),
        ("$-5", "currency", -5.0),
        ("12,34", "currency", None),
        ("1.234,50 €", "currency decimal comma", 1234.5),
        ("CHF 1'234.50", "currency", 1234.5),
        ("12.5 %", "percent", 12.5),
        ("-12,5%", "percent decimal comma", -12.5),
        ("3,7", "decimal comma", 3.7),
        ("1.234.567,5", "decimal comma", 1234567.5),
        ("3.7", "decimal comma", None),
        ("2026-11-25", "date", 20782.0),
        ("2026/11/25", "date", 20782.0),
        ("20261125", "date", 20782.0),
        ("25.11.2026", "date", 20782.0),
        ("2026-11-25T12:00:00Z", "date", 20782.5),
        ("25/11/2026", "date", None),
        ("25/11/2026", "date d/m/y", 20782.0),
        ("11/25/2026", "date m/d/y", 20782.0),
        ("2026-02-30", "date", None),
        ("--5", "currency", None),
        ("", "percent", None),
        ("%", "percent", None),
        ("1e5", "currency", None),
        ("²", "percent", None),
    ],
)
def test_cells(cell, kind, value):
    assert parse_cell(cell, kind) == value


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.text(max_size=12), st.sampled_from(TYPES))
def test_no_cell_breaks_the_reader(cell, kind):
    found = parse_cell(cell, kind)
    assert found is None or np.isfinite(found)


@settings(max_examples=100, deadline=None)
@given(st.integers(-(10**12), 10**12))
def test_money_that_python_writes_is_read_back(cents):
    value = cents / 100
    assert parse_cell(f"${value:,.2f}", "currency") == value
    comma = f"{value:,.2f}".translate(str.maketrans(",.", ".,"))
    assert parse_cell(f"{comma} €", "currency decimal comma") == value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"drop": ["nme"]}, "drop names the column 'nme', which is not there; did you mean 'name'?"),
        ({"drop": ["label"]}, "drop names 'label', which is no feature; leave it out of it"),
        ({"impute": {"label": "median"}}, "impute names 'label', which is no feature; leave it out of it"),
        ({"drop": ["name", "x"]}, "the recipe leaves no feature column; use or keep one at least"),
        ({"use": ["x"], "types": {"name": "percent"}, "impute": "median"}, None),
        (
            {"types": {"name": "percent"}, "impute": "median"},
            ":2: column 'name' is 'a', which is no percent; correct the cell, or give",
        ),
        ({"impute": "mean"}, "impute is 'mean'; it is one of 'median', 'most frequent', 'level'"),
        ({"impute": {"x": "mode"}}, "impute of 'x' is 'mode'; it is one of"),
        ({"impute": 3}, "impute = 3: give {column: kind}"),
        ({"types": {"x": "euro"}}, "types of 'x' is 'euro'; it is one of 'date', "),
        ({"use": 5}, "use = 5: give names of columns, such as use=['id']"),
        ({"use": ["x"], "drop": "x"}, "drop and use both name 'x'; leave it out of one of them"),
        ({"drop": ["name"]}, ":3: column 'x' has no value (''); fill it in, or leave out the sample or the column, or"),
    ],
)
def test_what_cannot_be_prepared_is_named(tmp_path, given, message):
    path = written(tmp_path, "name,x,label\na,1,0\nb,,1\na,3,1\n")
    if message is None:
        assert read(path, scale="none", **given).feature_names == ("x",)
        return
    with pytest.raises((DataError, UsageError)) as caught:
        read(path, scale="none", **given)
    assert message in str(caught.value)


def test_a_column_without_any_value_and_other_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="column 'x' has no value at all; --drop it"):
        read(written(tmp_path, "x,y,label\n,1,0\n?,2,1\n"), impute="median")
    with pytest.raises(UsageError, match=r"drop: a\.svm is no table of named columns"):
        read(written(tmp_path, "1 1:2\n-1 1:1\n", "a.svm"), drop=["x1"])
    (tmp_path / "raw.toml").write_text('[data]\nimpute = "middle"\n')
    with pytest.raises(DataError, match=r"raw\.toml:2: \[data\] impute is 'middle'; it is one of"):
        read(written(tmp_path, "x,label\n1,0\n2,1\n"))


def test_words_where_numbers_were_are_no_zeros(tmp_path):
    """A column of numbers that holds words in new data was taken for one of zeros."""
    data = read(written(tmp_path, "x,z,label\n1,5,0\n2,4,1\n3,1,1\n0,2,0\n"), scale="none")
    result = mipfs.solve(mipfs.Problem(data, M=2))
    new = read_new(written(tmp_path, "x,z\na,1\nb,2\n", "new.csv"), names=("x", "z"))
    with pytest.raises(UsageError, match="has no feature 'x', which the classifier uses"):
        result.predict(new)


def test_recipes_are_the_same_after_json():
    recipe = Recipe.of(drop=["a"], use=None, impute={"*": "Most-Frequent"}, types={"b": "currency, decimal comma"})
    assert Recipe.of_document(recipe.document()) == recipe
    assert recipe.how("z") == "most frequent"
    assert not Recipe()


def test_the_type_that_the_cells_are_of_is_named(tmp_path):
    rows = "".join(f'"{1 + i % 9}.{200 + i},5{i % 10} €",{i},{i % 2}\n' for i in range(40))
    path = written(tmp_path, "income,x,label\n" + rows)
    with pytest.raises(DataError, match=r"which is no currency; .*or say --types \"income=currency decimal comma\""):
        mipfs.read(path, scale="none", types={"income": "currency"})
    with pytest.raises(DataError, match=r"or say --types \"income=currency decimal comma\""):
        mipfs.read(pd.read_csv(path), label="label", scale="none", types={"income": "currency"})
