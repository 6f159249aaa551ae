"""CSV: roles of columns, one-hot groups, and every error with its line."""

from __future__ import annotations

import bz2
import json
import warnings

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.cli import main
from mipfs.convert import convert
from mipfs.errors import DataError, DataWarning
from mipfs.readers.columns import tells_rows_apart
from mipfs.readers.csv_file import read_csv

SMALL = "age,home,label\n30,own,yes\n41.5,rent,no\n22,own,no\n"


_FILL = (
    "; fill it in, or leave out the sample or the column, or give --impute median (or 'most frequent', level) or "
    "--drop NAME, or impute and drop under [data]"
)


def write(tmp_path, text: str | bytes, name: str = "a.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_words_become_groups(tmp_path):
    found = read_csv(write(tmp_path, SMALL))
    assert found.names == ("age", "home=rent")
    assert found.groups == {"home": ("home=rent",)}
    assert found.words == {"home": ("own", "rent")}
    np.testing.assert_array_equal(found.X, [[30, 0], [41.5, 1], [22, 0]])
    three = read_csv(write(tmp_path, SMALL + "19,free,no\n"))
    assert three.names == ("age", "home=free", "home=own", "home=rent")
    np.testing.assert_array_equal(three.X[:, 1:], [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(found.labels, ["yes", "no", "no"])
    np.testing.assert_array_equal(found.lines, [2, 3, 4])


def test_the_label_column_may_have_another_name_and_place(tmp_path):
    found = read_csv(write(tmp_path, "bad,x\n1,0.5\n0,2\n"), "bad")
    assert found.names == ("x",)
    np.testing.assert_array_equal(found.labels, [1, 0])


def test_bags_and_weights_are_no_features(tmp_path):
    found = read_csv(write(tmp_path, "bag,x,sample_weight,label\nb7,1,2.5,1\n12,2,1,0\nb7,3,1,0\n"))
    assert found.names == ("x",)
    np.testing.assert_array_equal(found.bags, [1, 0, 1])
    np.testing.assert_array_equal(found.sample_weight, [2.5, 1, 1])
    numbered = read_csv(write(tmp_path, "bag,x,label\n7,1,1\n3,2,0\n"))
    np.testing.assert_array_equal(numbered.bags, [7, 3])


def test_the_smaller_syntax(tmp_path):
    text = '\ufeff"a, b", x ,label\r\n"1", 2 ,"say ""yes"""\r\n\r\n3,4,"two\nlines"\r\n'
    found = read_csv(write(tmp_path, text))
    assert found.names == ("a, b", "x")
    np.testing.assert_array_equal(found.X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(found.labels, ['say "yes"', "two\nlines"])
    np.testing.assert_array_equal(found.lines, [2, 5])


def test_labels_may_mix_words_and_numbers(tmp_path):
    found = read_csv(write(tmp_path, "x,label\n1,0\n2,bad\n"))
    np.testing.assert_array_equal(found.labels, ["0", "bad"])


def test_packed(tmp_path):
    path = tmp_path / "a.csv.bz2"
    path.write_bytes(bz2.compress(SMALL.encode()))
    assert read_csv(path).X.shape == (3, 2)


def test_many_words_are_stored_sparse(tmp_path):
    rows = "".join(f"w{i % 20},{i % 2}\n" for i in range(40))
    found = read_csv(write(tmp_path, "word,label\n" + rows))
    assert sparse.issparse(found.X)
    assert found.X.shape == (40, 20)
    np.testing.assert_array_equal(np.asarray(found.X.sum(axis=0)).ravel(), np.full(20, 2))
    assert found.X[3, found.names.index("word=w3")] == 1


def test_without_labels(tmp_path):
    found = read_csv(write(tmp_path, "x\n1\n2\n"), labelled=False)
    assert found.labels is None
    assert found.names == ("x",)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "the file is empty; write the names of the columns on the first line"),
        ("x,label\n", None, "no samples under the header; give one sample per line"),
        ("x,,label\n1,2,3\n", 1, "column 2 has no name; name every column"),
        ("x,label,x\n1,2,3\n", 1, "two columns are called 'x'; give each its own name"),
        ("x,label\n1,0\n2,1,5\n", 3, "3 cells under 2 columns; give every column one cell"),
        ("x,label\n1,0\n2\n", 3, "1 cells under 2 columns; give every column one cell"),
        (
            "x,label\n1,0\n,1\n",
            3,
            "column 'x' has no value ('')" + _FILL,
        ),
        (
            "x,label\n1,0\n NA,1\n",
            3,
            "column 'x' has no value (' NA')" + _FILL,
        ),
        (
            "x,label\n1,0\nnan,1\n",
            3,
            "column 'x' has no value ('nan')" + _FILL,
        ),
        (
            "x,label\n1,0\n2,?\n",
            3,
            "column 'label' has no value ('?'); fill it in, or leave out the sample or the column",
        ),
        (
            "x,y,z,label\n1,2,a,0\n1,?,NA,0\n1,,b,1\n",
            3,
            "column 'y' has no value ('?'), 2 values in all; so have 'z'" + _FILL,
        ),
        ("x,label\n1,0\n-inf,1\n", 3, "column 'x' is '-inf'; every value must be a finite number"),
        (
            "x,label\n1,0\n2,1\n1.5x,0\n",
            4,
            "column 'x' is '1.5x' here and the number '1' on line 2; "
            "correct the cell; categories are written as words throughout",
        ),
        (
            "x,label\n1,0\n1_000,1\n",
            3,
            "column 'x' is '1_000' here and the number '1' on line 2; "
            "correct the cell; categories are written as words throughout",
        ),
        (
            'x,label\n1,0\n"2,1\n',
            3,
            "not CSV: unexpected end of data; correct the quotes; columns are separated by commas, "
            "semicolons, tabs or bars, not by blanks",
        ),
        (
            "x,lable\n1,0\n",
            None,
            "no column is called 'label'; say which column holds the labels by --label NAME, label='NAME' in Python "
            "(did you mean 'lable'?): there are 'x', 'lable'",
        ),
        (
            "1,2\n1,0\n2,1\n",
            None,
            "no column is called 'label'; say which column holds the labels by --label NAME, label='NAME' in Python "
            "(the first line must hold the names of the columns): there are '1', '2'",
        ),
        ("label\n1\n0\n", None, "no feature column; give at least one column beside the labels"),
        (
            "x,sample_weight,label\n1,big,0\n",
            None,
            "the column 'sample_weight' holds words; give positive numbers, or rename the column",
        ),
        (
            b"x,label\n\xff\xfe,1\n",
            None,
            "not a text file in UTF-8; save it as UTF-8: encoding='utf-8' in pandas, fileEncoding = 'UTF-8' in R",
        ),
    ],
)
def test_damaged_files(tmp_path, text, line, message):
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_csv(path)
    assert str(caught.value) == f"{path}:{f'{line}:' if line else ''} {message}"
    assert caught.value.line == line


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
def test_separators_are_recognised(tmp_path, separator):
    text = SMALL.replace(",", separator)
    found = read_csv(write(tmp_path, f'"a{separator} b"{separator}{text}'.replace("30", f"7{separator}30", 1)
                           .replace("41.5", f"8{separator}41.5").replace("22", f"9{separator}22")))  # fmt: skip
    assert found.names == (f"a{separator} b", "age", "home=rent")
    np.testing.assert_array_equal(found.X[:, 1], [30, 41.5, 22])


def test_the_comma_stands_where_nothing_else_fits(tmp_path):
    found = read_csv(write(tmp_path, "a;b,label\n1,x\n2,y\n"))
    assert found.names == ("a;b",)


@pytest.mark.parametrize(("name", "numbers"), [("", "012"), ("Unnamed: 0", "123"), ("", "927")])
def test_an_unnamed_first_column_of_row_numbers_is_left_out(tmp_path, name, numbers):
    path = write(tmp_path, f"{name},x,label\n{numbers[0]},1,0\n{numbers[1]},2,1\n{numbers[2]},5,1\n")
    with pytest.warns(DataWarning, match="the unnamed first column holds row numbers and is left out"):
        found = read_csv(path)
    assert found.names == ("x",)
    np.testing.assert_array_equal(found.X, [[1], [2], [5]])


def test_an_unnamed_column_of_anything_else_is_refused(tmp_path):
    for text in (",x,label\n1,1,0\n1,2,1\n", ",x,label\na,1,0\nb,2,1\n", "x,,label\n1,1,0\n2,2,1\n"):
        with pytest.raises(DataError, match=r"a\.csv:1: column \d has no name"):
            read_csv(write(tmp_path, text))


@pytest.mark.parametrize(
    ("cells", "n", "remedy"),
    [
        ([f"${i}.32" for i in range(15)], 15, 'say --types "income=currency"'),
        ([f"2024-01-{i + 1:02}" for i in range(12)], 12, 'say --types "income=date"'),
        ([f"w{i % 21}" for i in range(500)], 500, "no currency, unit or decimal comma"),
    ],
)
def test_words_that_are_hardly_categories_are_named(tmp_path, cells, n, remedy):
    text = "x;income;label\n" + "".join(f"{i * i};{cell};{i % 2}\n" for i, cell in enumerate(cells))
    with pytest.warns(DataWarning, match="column 'income' holds .* different words in .* rows, such as '") as caught:
        read_csv(write(tmp_path, text))
    assert len(caught) == 1
    assert f"{len(set(cells))} different words in {n} rows, such as {cells[0]!r}" in str(caught[0].message)
    assert remedy in str(caught[0].message)


def test_a_column_of_ids_is_left_out_with_a_word_unless_it_is_named(tmp_path):
    rows = "".join(f"{i * i},A{i:03},{'uvw'[i % 3]},{i % 2}\n" for i in range(60))
    path = write(tmp_path, "x,id,kind,label\n" + rows)
    with pytest.warns(DataWarning, match=r"column 'id' holds 60 different words in 60 rows, such as 'A000'.* left out"):
        data = mipfs.read(path, scale="none")
    assert list(data.feature_names) == ["x", "kind=u", "kind=v", "kind=w"]
    assert set(data.words) == {"kind"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mipfs.read(path, scale="none", words="id").n_features == 64
        path.with_suffix(".toml").write_text('[data]\nwords = ["id"]\n')
        assert mipfs.read(path, scale="none").n_features == 64
    path.with_suffix(".toml").write_text('[data]\nwords = ["ID"]\n')
    about = r"\[data\] words: no column of words is called 'ID'; columns of words are: 'id', 'kind'"
    with pytest.raises(DataError, match=about) as caught:
        mipfs.read(path)
    assert (caught.value.path, caught.value.line) == (path.with_suffix(".toml"), 2)
    with pytest.raises(DataError, match=about):
        convert(path, tmp_path / "store")
    with pytest.raises(DataError, match="no column of words is called 'XD'") as caught:
        mipfs.read(path, words=["XD"])
    assert caught.value.path == path
    path.with_suffix(".toml").write_text('[data]\nwords = "id"\n')
    with pytest.raises(DataError, match=r"\[data\] words is 'id'; write a list of names in quotes"):
        mipfs.read(path)
    assert data.reading.left_out == ("id",)
    alone = write(tmp_path, "id,label\n" + "".join(f"A{i:03},{i % 2}\n" for i in range(60)))
    alone.with_suffix(".toml").unlink()
    with pytest.warns(DataWarning), pytest.raises(DataError, match="no feature column"):
        mipfs.read(alone)


def test_many_numbers_with_a_sign_are_no_categories(tmp_path):
    """80 percentages in 800 rows: each is met ten times, and would be a feature of its own."""
    rows = "".join(f"{i * i},{i % 80} %,{i % 4 * 10}%,{i % 2}\n" for i in range(800))
    path = write(tmp_path, "x,used,rate,label\n" + rows)
    with pytest.warns(
        DataWarning, match='80 different words.* as dates, amounts and percentages do.*--types "used=percent"'
    ):
        data = mipfs.read(path, scale="none")
    assert data.reading.left_out == ("used",)
    assert data.n_features == 5
    assert mipfs.read(path, scale="none", types={"used": "percent"}).n_features == 6
    assert mipfs.read(path, scale="none", words="used").n_features == 85
    both = write(
        tmp_path,
        "x,used,day,label\n" + "".join(f"{i},{i % 80} %,2026-01-{i % 28 + 1:02},{i % 2}\n" for i in range(800)),
    )
    with pytest.warns(DataWarning, match='all at once: --types "used=percent,day=date"'):
        mipfs.read(both, scale="none")


def test_many_rare_words_are_names_and_left_out(tmp_path):
    """377 employers in 1,200 rows; the 50 states in 300 rows, and 21 words, stay."""
    rows = "".join(f"{i * i},E{i * 7 % 377},S{i % 50},{i % 2}\n" for i in range(1200))
    path = write(tmp_path, "x,employer,state,label\n" + rows)
    with pytest.warns(DataWarning) as caught:
        data = mipfs.read(path, scale="none")
    assert data.reading.left_out == ("employer",)
    assert tells_rows_apart(377, 1200)
    assert not any(tells_rows_apart(words, 300) for words in (21, 50, 60))
    assert any("'employer'" in str(one.message) for one in caught)
    saved = tmp_path / "r.json"
    result = mipfs.solve(mipfs.Problem(data, M=1, C=1e-6))
    assert json.loads(result.to_json())["read"]["left_out"] == ["employer"]
    assert "employer was left out" in result.summary()
    result.save(saved)
    assert main(["verify", str(saved), str(path), "-q"]) == 0
    kept = mipfs.solve(mipfs.Problem(mipfs.read(path, scale="none", words="employer"), M=1, C=1e-6))
    kept.save(saved)
    assert main(["verify", str(saved), str(path), "-q"]) == 0  # as the result says, without --words


@pytest.mark.parametrize(
    "text",
    [
        "# made by hand\n# don't; ever\nx,y,label\n1,2,a\n# in between\n\n2,1,b\n#\n",
        "# x,y,label\n1,2,a\n2,1,b\n",
        "#made\n\nx;y;label\n1;2;a\n2;1;b\n",
    ],
)
def test_comments_are_skipped_and_lines_keep_their_numbers(tmp_path, text):
    if text.startswith("# x"):
        text = text.replace("a", "0").replace("b\n", "1\n").replace("l0", "la")
    found = read_csv(write(tmp_path, text))
    assert found.names == ("x", "y")
    np.testing.assert_array_equal(found.X, [[1, 2], [2, 1]])
    lines = text.splitlines()
    assert [lines[k - 1][:1] for k in found.lines] == ["1", "2"]


def test_what_only_resembles_a_comment_is_data(tmp_path):
    found = read_csv(write(tmp_path, 'id,x,label\n#1,2,a\n#2,1,b\n"a\n# b",3,b\n'))
    assert found.names == ("id=#1", "id=#2", "id=a\n# b", "x")
    found = read_csv(write(tmp_path, "# x,y\nz,label\n1,a\n2,b\n"))
    assert found.names == ("z",)
    found = read_csv(write(tmp_path, "#z,label\n1,0\n2,1\n"), "label")
    assert found.names == ("z",)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["3,7", "2", "-0,5"], [3.7, 2, -0.5]),
        (["1,500", "2,25", " 7 "], [1.5, 2.25, 7]),
        (["0,125", "0,250", "1,5e-3"], [0.125, 0.25, 0.0015]),
    ],
)
def test_decimal_commas_are_read_and_said(tmp_path, cells, values):
    text = "x;income;label\n" + "".join(f"{i * i};{cell};{i % 2}\n" for i, cell in enumerate(cells))
    with pytest.warns(DataWarning, match=f"column 'income' has decimal commas: {cells[0]} is read as ") as caught:
        found = read_csv(write(tmp_path, text))
    assert len(caught) == 1
    np.testing.assert_array_equal(found.X[:, 1], values)
    quoted = "income,label\n" + "".join(f'"{cell}",{i % 2}\n' for i, cell in enumerate(cells))
    with pytest.warns(DataWarning, match="decimal commas"):
        np.testing.assert_array_equal(read_csv(write(tmp_path, quoted)).X[:, 0], values)


@pytest.mark.parametrize("cells", [["1,500", "2,250", "999"], ["1,234,567", "2,000", "1"], ["12,345.5", "1", "7.5"]])
def test_commas_that_may_stand_between_thousands_are_refused(tmp_path, cells):
    text = "x;income;label\n" + "".join(f"{i * i};{cell};{i % 2}\n" for i, cell in enumerate(cells))
    with pytest.raises(DataError, match=r"a\.csv:2: column 'income' is .*, with a comma between thousands or before"):
        read_csv(write(tmp_path, text))


def test_blanks_are_no_separators_and_that_is_said(tmp_path):
    with pytest.raises(DataError, match="semicolons, tabs or bars, not by blanks"):
        read_csv(write(tmp_path, "x y label\n1 2 0\n2 1 1\n"))


def test_categories_are_read_without_a_word(tmp_path):
    text = "x,home,label\n" + "".join(f"{i * i},h{i % 20},{i % 2}\n" for i in range(60))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_csv(write(tmp_path, text))
        read_csv(write(tmp_path, SMALL))


def test_a_column_that_counts_the_rows_is_named(tmp_path):
    text = "id,label\n" + "".join(f"{i + 1},{int(i > 20)}\n" for i in range(40))
    with pytest.warns(DataWarning, match="column 'id' counts the rows"):
        assert read_csv(write(tmp_path, text)).names == ("id",)
