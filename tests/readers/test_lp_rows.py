"""LP rows: the selections that a file allows, its lines in messages, and everything that HiGHS would misread."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest

from mipfs.data.instance import Instance
from mipfs.errors import DataError
from mipfs.problem import Problem
from mipfs.readers import lp_rows
from mipfs.readers.lp_rows import read_rows, scan
from tests.oracles import ExtraVariable, LinearRow, allowed_supports

NAMES = ("mean area", "worst area", "radius", "texture", "age")


def make(names: tuple[str, ...] = NAMES) -> Instance:
    rng = np.random.default_rng(0)
    return Instance.from_arrays(rng.normal(size=(8, len(names))), [1, -1] * 4, feature_names=names)


def write(folder: Path, text: str, name: str = "rows.lp") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def allowed(data: Instance, path: Path) -> set[frozenset[int]]:
    selection = Problem(data, rows=read_rows(path, data)).selection
    every = itertools.product((False, True), repeat=data.n_features)
    return {frozenset(np.flatnonzero(s).tolist()) for s in every if selection.contains(np.array(s))}


def test_rows_extras_and_bounds_against_enumeration(tmp_path: Path) -> None:
    text = r"""\ a comment
Minimize
 obj:
Subject To
 budget: 2 mean_area + 1.5 x2
    + radius <= 3.5        \ over two lines
 even: x1 + worst_area + radius + texture + x5 - 2 extra_half = 0
 - texture + age >= 0
 c4: extra_level - .5 radius - 1e0 age >= -0.25
Bounds
 texture <= 0.5
 extra_half <= 2
 -1 <= extra_level <= +0.5
 x1 free
General
 extra_half mean_area
Binary
 radius
End
"""
    data = make()
    path = write(tmp_path, text)
    wanted = allowed_supports(
        NAMES,
        rows=[
            LinearRow("budget", {"mean area": 2, "worst area": 1.5, "radius": 1}, -np.inf, 3.5),
            LinearRow("even", {**dict.fromkeys(NAMES, 1.0), "half": -2.0}, 0, 0),
            LinearRow("pair", {"texture": -1.0, "age": 1.0}, 0, np.inf),
            LinearRow("c4", {"level": 1.0, "radius": -0.5, "age": -1.0}, -0.25, np.inf),
            LinearRow("bound", {"texture": 1.0}, -np.inf, 0.5),
        ],
        extras=[ExtraVariable("half", 0, 2, integer=True), ExtraVariable("level", -1, 0.5)],
    )
    assert allowed(data, path) == set(wanted)
    rows = read_rows(path, data)
    assert rows.names == ("budget", "even", "line 8", "c4", "bounds of texture")
    assert rows.origins == ("rows.lp:5", "rows.lp:7", "rows.lp:8", "rows.lp:9", "rows.lp:11")
    extras = dict(zip(rows.extra.names, rows.extra.integer.tolist(), strict=True))
    assert extras == {"extra_half": True, "extra_level": False}


@pytest.mark.parametrize(
    "objective",
    ["minimize obj: 0 age", "max\n 0 x1 - 0.0 age", "min obj:", "Minimize\nobj:\n+ 0 age\n", "min\n obj: 0"],
)
def test_an_objective_of_zeros_is_none(tmp_path: Path, objective: str) -> None:
    path = write(tmp_path, f"{objective}\nsubject to\n c: x1 + age <= 1\nend\n")
    rows = read_rows(path, make())
    assert rows.matrix.toarray().tolist() == [[1.0, 0.0, 0.0, 0.0, 1.0]]
    assert rows.ub.tolist() == [1.0]
    assert len(rows.extra) == 0


def test_strict_relations_and_rows_of_two_sides(tmp_path: Path) -> None:
    text = """st
 one: 1 <= x1 + x2
      + radius <= 2
 -.5 < x1 - 2 age < 3
 down: 4 >= x1 + extra_u => 1
 same: 1 =< texture <= 1
 x1 + x2 > 0
bounds
 extra_u < 5
end
"""
    rows = read_rows(write(tmp_path, text), make())
    assert rows.names == ("one", "line 4", "down", "same", "line 7")
    assert rows.origins == tuple(f"rows.lp:{line}" for line in (2, 4, 5, 6, 7))
    assert rows.matrix.toarray().tolist() == [
        [1, 1, 1, 0, 0, 0],
        [1, 0, 0, 0, -2, 0],
        [1, 0, 0, 0, 0, 1],
        [0, 0, 0, 1, 0, 0],
        [1, 1, 0, 0, 0, 0],
    ]
    assert (rows.lb.tolist(), rows.ub.tolist()) == ([1, -0.5, 1, 1, 0], [2, 3, 4, 1, np.inf])
    assert rows.extra.ub.tolist() == [5]


@pytest.mark.parametrize("seed", range(5))
def test_random_rows_come_back(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = make(tuple(f"f {j}" for j in range(40)))
    A = np.round(rng.normal(size=(15, 40)) * 10.0 ** rng.integers(-3, 4, size=(15, 40)), 3)
    A[rng.random(A.shape) < 0.7] = 0.0
    A[:, 0] = 1.0
    rhs, relation = np.round(rng.normal(size=15), 4), rng.choice(["<=", ">=", "="], 15)
    lines = []
    for r in range(15):
        terms = " ".join(f"{'-' if A[r, j] < 0 else '+'} {abs(A[r, j])!r} f_{j}" for j in np.flatnonzero(A[r]))
        lines.append(f" r{r}: {terms} {relation[r]} {rhs[r]!r}")
    text = "subject to\n" + "\n".join(lines).replace("np.float64(", "").replace(")", "") + "\nend\n"
    rows = read_rows(write(tmp_path, text), data)
    assert np.array_equal(rows.matrix.toarray(), A)
    assert np.array_equal(rows.lb, np.where(relation == "<=", -np.inf, rhs))
    assert np.array_equal(rows.ub, np.where(relation == ">=", np.inf, rhs))


def test_kinds_and_bounds_of_extra_variables(tmp_path: Path) -> None:
    text = """st
 c: x1 + extra_a + extra_b + extra_c + extra_d <= 4
bounds
 extra_a <= 3
 5 >= extra_b
 extra_c free
 extra_d = 2
binary
 extra_a
end
"""
    extra = read_rows(write(tmp_path, text), make()).extra
    assert extra.names == ("extra_a", "extra_b", "extra_c", "extra_d")
    assert extra.lb.tolist() == [0, 0, -np.inf, 2]
    assert extra.ub.tolist() == [1, 5, np.inf, 2]
    assert extra.integer.tolist() == [True, False, False, False]


def test_bounds_alone_are_rows_enough(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path, "subject to\nbounds\n x3 = 1\nend\n"), make())
    assert (rows.names, rows.origins) == (("bounds of radius",), ("rows.lp:3",))
    assert (rows.lb.tolist(), rows.ub.tolist()) == ([1.0], [np.inf])


def test_a_row_whose_coefficients_are_zero_stays(tmp_path: Path) -> None:
    path = write(tmp_path, "st\n never: 0 x1 + 0 x2 >= 1\nend\n")
    assert allowed(make(), path) == set()


BAD = (
    # What HiGHS 1.15 reads as something else, without a word.
    ("st\n c: worst area <= 1\nend", 2, "no [+] or - before 'area'"),
    ("st\n c: x1 + x2 + 1 <= 2\nend", 2, "the constant 1 on the left"),
    ("st\n c: 2 3 x1 <= 1\nend", 2, "the constant 2 on the left"),
    ("st\n c: 0 <= 1\nend", 2, "the constant 1 on the left"),
    ("st\n c: x1 + inf <= 1\nend", 2, "unexpected 'inf'"),
    ("st\n c: x1 + nan x2 <= 1\nend", 2, "'nan' cannot be read"),
    ("st\n c: x1 + infant <= 1\nend", 2, "'infant' cannot be read"),
    ("st\n c: 1.2.3 x1 <= 1\nend", 2, "unexpected '1.2.3'"),
    ("st\n c: 0x10 x1 <= 1\nend", 2, "unexpected '0x10'"),
    ("st\n c: 1e x1 <= 1\nend", 2, "unexpected '1e'"),
    ("st\n c: (x1 + x2) <= 1\nend", 2, r"unexpected '\('"),
    ("st\n c: x1 <= 1;\nend", 2, "unexpected ';'"),
    ("st\n c: x1 < = 1\nend", 2, "unexpected '='"),
    ("st\n c: x1 <= 1e25\nend", 2, "1e25 is too large"),
    ("st\n c: x1 <= inf\nend", 2, "unexpected 'inf'"),
    ("st\n c: x1 >= 2 <= 3\nend", 2, "two relations"),
    ("st\n c: x1 <= 1\n c: x2 <= 1\nend", 3, "a second row 'c'"),
    ("st\n c: x1 <= 1\nend\nst\n d: x2 <= 1", 4, "second section"),
    ("c: x1 <= 1\nend", 1, "begins with 'subject to'"),
    ("min\n [x1^2]/2\nst\n c: x1 <= 1\nend", 2, "only linear rows"),
    ("max\n 0 x1 + 3\nst\n c: x1 <= 1\nend", 2, "an objective"),
    ("st\n c: x1 <= 1\nsemi-continuous\n x1\nend", 3, "unexpected 'semi'"),
    ("st\n c: x1 <= 1\nbounds\n x1 >= 0.2\n x1 >= 0.3\nend", 5, "two bounds >="),
    ("st\n c: x1 <= 1\nend\nleftover\n", 4, "text after 'end'"),
    # What it refuses, with the line that it does not say.
    ("min\n obj: x1\nst\n c: x1 <= 1\nend", 2, "an objective"),
    ("st\n c: 2 x1 + 3 x1 <= 1\nend", 2, "'x1' twice in c"),
    ("st\n c: x1 == 1\nend", 2, "unexpected '=='"),
    ("st\n c: 1 <= x1 + x2\nend", 2, "a row without <="),
    ("st\n c: 1 <= x1 + x2 >= 0\nend", 2, "'<=' and '>=' in one row"),
    ("st\n c: 1 = x1 + x2 = 1\nend", 2, "'=' and '=' in one row"),
    ("st\n c: 2 <= x1 + x2 <= 1\nend", 2, "nothing lies between 2 and 1"),
    ("min\n obj: 0 x1 + 1 x2\nst\n c: x1 <= 1\nend", 2, "an objective"),
    ("min\n obj: 0 x1 + x2\nst\n c: x1 <= 1\nend", 2, "an objective"),
    ("min obj: 0 zzz\nst\n c: x1 <= 1\nend", 1, "no feature is called 'zzz'"),
    ("st\n c: x1 >= x2\nend", 2, "variables stand on the left"),
    ("st\n c: x1 x2\nend", 2, "no [+] or -"),
    ("st\n c: 2 * x1 <= 1\nend", 2, r"unexpected '\*'"),
    ("st\n c: x1 = 1 -> x2 = 1\nend", 2, "unexpected '-'"),
    ("st\n c: [x1 * x2] <= 1\nend", 2, r"unexpected '\['"),
    ("st\n c: <= 1\nend", 2, "no variable on the left"),
    ("st\n c: x1 - <= 1\nend", 2, "unexpected '<='"),
    ("st\n c: x1 <= 1\nsos\n s: S1:: x1:1\nend", 4, "unexpected ':'"),
    ("st\n c: x1 <= 1\nsos\n x1\nend", 3, "unexpected 'sos'"),
    ("st\n c: x1 <= 1\nfoo\nend", 3, "a row without <="),
    ("st\n c: x1 <= 1\nbounds\n x1 + x2 <= 3\nend", 4, r"unexpected '\+'"),
    ("st\n c: x1 <= 1\nbounds\n 2 x1 <= 3\nend", 4, "unexpected 'x1'"),
    ("st\n c: x1 <= 1\nbounds\n 3 >= x1 >= 0\nend", 4, "a bound is like"),
    ("st\n c: x1 <= 1\nbounds\n x1 <= x2\nend", 4, "a bound is a number"),
    ("st\n c: x1 <= 1\nbounds\n x1\nend", 5, "a bound is like"),
    ("st\n c: x1 <= 1\ngeneral\n x1, x2\nend", 4, "unexpected ','"),
    ("st\n c: x1 <= 1\nbinary\n x1 3\nend", 4, "unexpected '3'"),
    ("st\n c: x1 <= 1\nbounds\n extra_u <= -1\nend", 4, "no value is within the bounds of 'extra_u'"),
    ("bounds\n x1 <= 1\nst\n c: x1 <= 1\nend", 1, "stands before the rows"),
    ("st\n c: x1 <= 1\nmin\nend", 3, "stands after the rows"),
    ("st\n c: x1 <= 1\n", 3, "no 'end'"),
    ("", 1, "no 'subject to'"),
    ("st\nend", 2, "no row"),
    ("st\n c: st >= 1\nend", 2, "unexpected 'st'"),
    # What begins where something else ends, which HiGHS does not read.
    ("st\n c: x1 <= 1\n d: x2 <= 0 x3 <= 0\nend", 3, "unexpected 'x3' in the middle of a line; begin every row"),
    ("st\n c: x1 <=\n 1 d: x2 <= 1\nend", 3, "unexpected 'd' in the middle"),
    ("st\n c: x1 <= 1 + x2 <= 1\nend", 2, "unexpected '[+]' in the middle"),
    ("st\n c: x1 <= 1 end", 2, "unexpected 'end' in the middle"),
    ("min obj: 0 x1 st\n c: x1 <= 1\nend", 1, "unexpected 'st' in the middle"),
    ("st\n c: x1 <= 1\nbounds\n extra_a free extra_b <= 2\nend", 4, "unexpected 'extra_b' in the middle"),
    ("st\n c: x1 <= 1\nbounds\n extra_a <= 1 extra_b <= 2\nend", 4, "unexpected 'extra_b' in the middle"),
    ("st\n c: x1 <= 1\n: x2 <= 1\nend", 3, "unexpected ':'"),
    # Names.
    ("st\n c: radius + teksture <= 1\nend", 2, "no feature is called 'teksture'; did you mean 'texture'"),
    ("st\n c: radius\n  + zzz <= 1\nend", 3, "no feature is called 'zzz'"),
    ("st\n c: x6 <= 1\nend", 2, "no feature is called 'x6'"),
    ("st\n c: x0 <= 1\nend", 2, "no feature is called 'x0'"),
    ("st\n c: x1 <= 1\nbounds\n u <= 3\nend", 4, "no feature is called 'u'"),
    ("st\n c: x1 <= 1\ngeneral\n u\nend", 4, "no feature is called 'u'"),
)


@pytest.mark.parametrize(("text", "line", "message"), BAD, ids=[repr(text)[:40] for text, _, _ in BAD])
def test_bad_files_name_their_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=message) as raised:
        read_rows(path, make())
    assert (raised.value.path, raised.value.line) == (path, line)
    assert "\n" not in str(raised.value)


def test_what_highs_cannot_read_is_said_of_the_file_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lp_rows, "read", lambda place: (highspy.HighsLp(), f"ERROR: Parser error reading {place}"))
    with pytest.raises(DataError, match=r"rows.lp: HiGHS cannot read it \(ERROR: Parser error reading rows.lp\)"):
        read_rows(write(tmp_path, "st\n c: x1 <= 1\nend"), make())


def test_names_that_stand_for_several(tmp_path: Path) -> None:
    data = make(("mean area", "mean_area", "x1", "x4", "extra_u", "ok"))
    for name in ("mean_area", "x1", "extra_u"):
        with pytest.raises(DataError, match=f"'{name}' may stand for"):
            read_rows(write(tmp_path, f"st\n c: {name} <= 1\nend"), data)
    # The collisions matter only where such a name is used; x<k> is always there for the rest.
    rows = read_rows(write(tmp_path, "st\n c: x2 + 2 x5 + 3 x4 + 4 ok <= 1\nend"), data)
    assert rows.matrix.toarray().tolist() == [[0.0, 1.0, 0.0, 3.0, 2.0, 4.0]]


def test_two_spellings_of_a_feature_add_up(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path, "st\n c: mean_area + x1 + x2 <= 1\nend"), make())
    assert rows.matrix.toarray().tolist() == [[2.0, 1.0, 0.0, 0.0, 0.0]]


def test_a_name_of_thousands_of_digits_is_no_feature(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no feature is called 'x1111"):
        read_rows(write(tmp_path, f"st\n c: x{'1' * 5000} <= 1\nend"), make())


def test_files_that_are_no_lp_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not called \*\.lp"):
        read_rows(write(tmp_path, "st\n c: x1 <= 1\nend", "rows.mps"), make())
    with pytest.raises(DataError, match="No such file"):
        read_rows(tmp_path / "missing.lp", make())
    binary = tmp_path / "binary.lp"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="UTF-8"):
        read_rows(binary, make())


def test_a_different_reading_by_highs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "st\n c: x1 + x2 <= 1\nend")
    scanned = scan(path)
    for change in ({"terms": {"x1": 1.0}}, {"ub": 2.0}, {"lb": 0.0}, {"sides": 2}):
        other: Any = replace(scanned, rows=[replace(scanned.rows[0], **change)])
        monkeypatch.setattr(lp_rows, "scan", lambda _, other=other: other)
        with pytest.raises(DataError, match="HiGHS reads this row differently") as raised:
            read_rows(path, make())
        assert raised.value.line == 2
