"""mipfs.read and read_new: files and their descriptions together, the formats against each other."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from mipfs.data.instance import Labels
from mipfs.errors import DataError, UsageError
from mipfs.readers import read, read_new

INSTANCES = Path(__file__).parents[2] / "instances"
SVM = "+1 1:1.5 2:-2\n-1 1:0.25 3:4\n+1 2:1 3:1\n"
DENSE = np.array([[1.5, -2, 0], [0.25, 0, 4], [0, 1, 1]])
CSV = "x1,x2,x3,label\n1.5,-2,0,1\n0.25,0,4,-1\n0,1,1,1\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.svm").write_text(SVM)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(SVM.encode()))
    (tmp_path / "c.csv").write_text(CSV)
    np.savez(tmp_path / "d.npz", X=DENSE, y=[1, -1, 1])
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_array(DENSE))
    with np.load(tmp_path / "s.npz") as arrays:
        np.savez(tmp_path / "e.npz", y=[1, -1, 1], **arrays)
    return tmp_path


def test_the_formats_agree(folder):
    found = [read(folder / name) for name in ("a.svm", "b.txt.gz", "c.csv", "d.npz", "e.npz")]
    for data in found:
        np.testing.assert_array_equal(data.X.toarray() if data.is_sparse else data.X, DENSE)
        np.testing.assert_array_equal(data.y, [1, -1, 1])
        assert data.feature_names == ("x1", "x2", "x3")
        assert data.labels == Labels(-1, 1)
        assert data.scaling == "none"
        assert data.source.startswith(str(folder))
    assert len({data.sha256 for data in found}) == 1
    assert {read(folder / "a.svm", scale=scale).sha256 for scale in ("none", "standard", "unit")} == {found[0].sha256}


def test_parquet_agrees_with_csv(folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {f"x{j + 1}": DENSE[:, j] for j in range(3)} | {"label": [1, -1, 1]}
    parquet.write_table(pa.table(columns), folder / "f.parquet")
    assert read(folder / "f.parquet").sha256 == read(folder / "c.csv").sha256


def test_the_description_is_used_and_the_caller_has_the_last_word(folder):
    (folder / "c.toml").write_text(
        '[data]\nlabel = "x3"\npositive = 0\nscale = "unit"\n[cost]\nx1 = 2\n[penalty]\nx2 = 0.5\n'
        '[groups]\ng = ["x1", "x2"]\n[select]\nM = 1\nbudget = 2\nforced_out = ["label"]\n'
    )
    text = CSV.replace(",4,", ",1,")  # x3 in {0, 1}
    (folder / "c.csv").write_text(text)
    data = read(folder / "c.csv")
    assert data.feature_names == ("x1", "x2", "label")
    assert data.labels == Labels(1, 0)
    np.testing.assert_array_equal(data.y, [1, -1, -1])
    assert data.scaling == "unit"
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=0), 1)
    assert data.cost == {"x1": 2.0, "x2": 0.0, "label": 0.0}
    assert data.penalty == {"x2": 0.5}
    assert data.groups == {"g": ("x1", "x2")}
    assert (data.select.M, data.select.forced_out) == (1, ("label",))
    assert [(row.name, row.ub, row.origin) for row in data.rows] == [("budget", 2.0, "c.toml:13")]
    (folder / "c.toml").write_text('[data]\nlabel = "x3"\npositive = 0\nscale = "unit"\n')
    data = read(folder / "c.csv", scale="none", label="label", positive=-1)
    assert data.feature_names == ("x1", "x2", "x3")
    assert data.labels == Labels(1, -1)
    assert data.scaling == "none"


def test_names_for_svmlight_say_how_many_features_there_are(folder):
    (folder / "a.toml").write_text('[features]\nnames = ["p", "q", "r", "never"]\n')
    data = read(folder / "a.svm")
    assert data.feature_names == ("p", "q", "r", "never")
    assert data.X.shape == (3, 4)
    assert read(folder / "b.txt.gz", n_features=7).n_features == 7


def test_one_hot_groups_reach_the_instance(folder):
    (folder / "g.csv").write_text("home,x,label\nown,1,yes\nrent,2,no\n")
    (folder / "g.toml").write_text('[groups]\nboth = ["home=rent", "x"]\n[cost]\n"home=rent" = 1\n')
    data = read(folder / "g.csv")
    assert data.groups == {"home": ("home=rent",), "both": ("home=rent", "x")}
    assert data.labels == Labels("no", "yes")
    assert data.cost["home=rent"] == 1


def test_bags_and_weights_reach_the_instance(folder):
    (folder / "w.csv").write_text("bag,sample_weight,x,label\n7,2,1,1\n8,0.5,2,0\n")
    data = read(folder / "w.csv")
    np.testing.assert_array_equal(data.bags, [7, 8])
    np.testing.assert_array_equal(data.sample_weight, [2, 0.5])


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        ({"a.toml": '[features]\nnames = ["p", "q"]\n'}, {}, "a.svm:2: index 3, and [features] names of a.toml"),
        (
            {"a.toml": '[features]\nnames = ["p", "q", "r"]\n'},
            {"n_features": 5},
            "a.toml:2: [features] has 3 names, but 5 features are asked for; make the two agree",
        ),
        ({"a.svm": "1 1:1\n1 1:2\n"}, {}, "a.svm: one class only: every label is 1; give samples of both classes"),
        (
            {"a.svm": "1 1:1\n2 1:2\n\n3 1:1\n"},
            {},
            "a.svm:4: 3 different labels (1, 2, 3); the third is 3; keep two classes",
        ),
        ({"a.svm": ""}, {}, "a.svm: the file has no samples"),
        ({}, {"positive": "x"}, "a.svm: positive = 'x' is not one of the labels -1 and 1; name one of them"),
        ({}, {"path": "none.svm"}, "none.svm: no such file; check the path"),
        ({}, {"path": "a.xls"}, "a.xls: no data format has the suffix '.xls'"),
        (
            {"c.toml": '[features]\nnames = ["p", "q", "r"]\n'},
            {"path": "c.csv"},
            "c.toml:2: [features] names differ from those in the data file; leave the list out",
        ),
        (
            {"d.toml": '[features]\nnames = ["p", "q"]\n'},
            {"path": "d.npz"},
            "d.toml:2: [features] has 2 names for 3 features; give one name per feature",
        ),
        (
            {"g.csv": "home,x,home=rent,label\nown,1,1,yes\nrent,2,1,no\n"},
            {"path": "g.csv"},
            "g.csv: two features are called 'home=rent'; give every feature its own name",
        ),
        (
            {"g.csv": "home,x,label\nown,1,1\nrent,2,0\n", "g.toml": '[groups]\nhome = ["x"]\n'},
            {"path": "g.csv"},
            "g.toml:2: [groups] 'home' is a column of words, a group already; rename it",
        ),
        (
            {"w.csv": "sample_weight,x,label\n1,1,1\n-2,1,0\n"},
            {"path": "w.csv"},
            "w.csv: sample weight -2 in row 2; give finite numbers above 0, or leave the sample out",
        ),
    ],
)
def test_refused_files(folder, files, arguments, message):
    for name, text in files.items():
        (folder / name).write_text(text)
    arguments = {"path": "a.svm"} | arguments
    with pytest.raises(DataError) as caught:
        read(folder / arguments.pop("path"), **arguments)
    assert str(caught.value).startswith(f"{folder}/{message}")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("a.svm", {"scale": "std"}, "scale = 'std' is unknown; it is one of 'none', 'standard', 'unit'"),
        ("a.svm", {"label": "y"}, "label = 'y': the labels of an svmlight file stand first on each line"),
        ("a.svm", {"n_features": 0}, "n_features = 0 must be a whole number from 1 to 1e+08 or None"),
        ("c.csv", {"n_features": 3}, "n_features = 3: only svmlight leaves the number of features open"),
    ],
)
def test_refused_parameters(folder, name, arguments, message):
    with pytest.raises(UsageError) as caught:
        read(folder / name, **arguments)
    assert str(caught.value) == message


def test_npz_values_that_are_not_finite_are_located(folder):
    np.savez(folder / "n.npz", X=[[1.0, 2.0], [np.nan, 1.0]], y=[0, 1])
    with pytest.raises(DataError) as caught:
        read(folder / "n.npz")
    message = "row 2, column 1 is nan; every value must be a finite number"
    assert str(caught.value) == f"{folder / 'n.npz'}: {message}"


def test_new_data_may_be_unlabelled_or_of_one_class(folder):
    (folder / "new.csv").write_text("x1,x2,x3\n1,2,3\n")
    data = read_new(folder / "new.csv")
    np.testing.assert_array_equal(data.X, [[1, 2, 3]])
    assert np.isnan(data.y).all()
    (folder / "one.svm").write_text("0 1:1\n0 2:1\n")
    assert np.isnan(read_new(folder / "one.svm", n_features=3).y).all()
    data = read_new(folder / "one.svm", n_features=3, labels=Labels(1, 0))
    np.testing.assert_array_equal(data.y, [1, 1])
    assert data.n_features == 3
    assert data.labels == Labels(1, 0)
    with pytest.raises(DataError, match=r"one\.svm:1: the label 0 is unknown to the classifier"):
        read_new(folder / "one.svm", labels=Labels(-1, 1))
    with pytest.raises(DataError, match="no column is called 'label'"):
        read_new(folder / "new.csv", labels=Labels(-1, 1))


def test_new_data_is_not_scaled_and_obeys_no_rows(folder):
    (folder / "a.toml").write_text('[data]\nscale = "standard"\n[features]\nnames = ["p", "q", "r"]\n[select]\nM = 2\n')
    data = read_new(folder / "a.svm")
    np.testing.assert_array_equal(data.X, DENSE)
    assert data.feature_names == ("p", "q", "r")
    assert data.select.M is None


def test_a_word_that_new_data_does_not_have(folder):
    (folder / "new.csv").write_text("home,x\nrent,2\nrent,3\n")
    data = read_new(folder / "new.csv", names=["home=own", "x", "home=rent", "other"])
    assert data.feature_names == ("home=rent", "x", "home=own")
    np.testing.assert_array_equal(data.X, [[1, 2, 0], [1, 3, 0]])


def test_wdbc_is_the_data_of_scikit_learn():
    data, expected = read(INSTANCES / "wdbc.svm"), load_breast_cancer()
    np.testing.assert_array_equal(data.X, expected.data)
    np.testing.assert_array_equal(data.y, 2 * expected.target - 1)
    assert data.feature_names == tuple(expected.feature_names)
    assert min(data.cost.values()) > 0
    assert data.rows == ()
    assert data.select.M is None
    scaled = read(INSTANCES / "wdbc.svm", scale="standard")
    np.testing.assert_allclose(scaled.X, StandardScaler().fit_transform(expected.data), atol=1e-12)
    assert scaled.sha256 == data.sha256


def test_credit_says_what_a_selection_must_obey():
    data = read(INSTANCES / "credit.csv")
    assert (data.n_samples, data.n_features, data.scaling) == (200, 12, "standard")
    assert data.labels == Labels("no", "yes")
    assert data.groups["housing"] == ("housing=family", "housing=own", "housing=rent")
    assert [row.name for row in data.rows] == [
        "budget",
        "implies[loan to income -> loan]",
        "conflicts[age, history years]",
        "at_most[1]",
        "at_least[1]",
    ]
    assert data.select.M == 5
    assert data.select.forced_in == ("income",)
    assert min(data.cost.values()) > 0
