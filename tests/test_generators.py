"""Made instances: the recipe draw by draw, files that read back bit by bit."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs import generators
from mipfs.errors import UsageError
from mipfs.readers import read

INSTANCES = Path(__file__).parents[1] / "instances"


def recipe(n, p, M, seed):
    """Aytug (2015), section 4, in the order of draws that published optima rest on."""
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    divisor = np.linalg.norm(X, axis=1).max()
    X /= divisor
    S = r.choice(p, M, False)
    w = np.zeros(p)
    w[S] = r.standard_normal(M)
    more = [r.standard_normal((n, p)) / divisor for _ in range(2)]
    return [(A, np.where(A @ w > 0, 1, -1)) for A in (X, *more)], w, S


@pytest.mark.parametrize(("n", "p", "M", "seed"), [(500, 20, 5, 1), (500, 50, 25, 1), (30, 4, 4, 7)])
def test_aytug_one_follows_the_recipe(n, p, M, seed):
    made = generators.aytug_one(n, p, M, seed)
    parts, w, S = recipe(n, p, M, seed)
    for name, (X, y) in zip(("train", "validation", "test"), parts, strict=True):
        np.testing.assert_array_equal(made[name][0], X)
        np.testing.assert_array_equal(made[name][1], y)
    np.testing.assert_array_equal(made["w"], w)
    np.testing.assert_array_equal(made["S"], S)
    assert (made["M"], made["b"]) == (M, 0.0)
    assert np.linalg.norm(made["train"][0], axis=1).max() == pytest.approx(1)


def test_the_first_draws_are_those_of_numpy():
    made = generators.aytug_one(500, 20, 5, 1)
    ratio = made["train"][0][0, :3] / made["train"][0][0, 0]
    first = np.array([0.345584192064786, 0.8216181435011584, 0.33043707618338714])  # default_rng(1)
    np.testing.assert_allclose(ratio, first / first[0], rtol=1e-14)


def test_aytug_two_is_the_same_recipe():
    made = generators.aytug_two(20, 3)
    parts, _, S = recipe(1000, 800, 20, 3)
    np.testing.assert_array_equal(made["test"][0], parts[2][0])
    np.testing.assert_array_equal(made["S"], S)


def test_M_is_drawn_where_it_is_not_given():
    for seed in range(5):
        made = generators.aytug_one(10, 30, None, seed)
        assert made["M"] == np.random.default_rng([seed, 1, 10, 30]).integers(1, 31) == np.count_nonzero(made["w"])
    np.testing.assert_array_equal(made["train"][0], generators.aytug_one(10, 30, 3, 4)["train"][0])


def test_files_read_back_bit_by_bit(tmp_path):
    path = generators.write("aytug-one", tmp_path / "made", n_samples=40, n_features=6, M=2, seed=5)
    assert path == tmp_path / "made" / "aytug-one-40x6-M2-seed5.svm"
    made = generators.aytug_one(40, 6, 2, 5)
    for part, suffix in (("train", ""), ("validation", "-validation"), ("test", "-test")):
        data = read(path.with_name(f"{path.stem}{suffix}.svm"))
        np.testing.assert_array_equal(data.X, made[part][0])
        np.testing.assert_array_equal(data.y, made[part][1])
    assert read(path).select.M == 2
    described = tomllib.loads(path.with_suffix(".toml").read_text())
    support = [f"x{j + 1}" for j in sorted(made["S"])]
    expected = {"name": "aytug-one", "n_samples": 40, "n_features": 6, "M": 2, "seed": 5, "support": support}
    assert expected.items() <= described["generator"].items()
    np.testing.assert_array_equal(described["generator"]["weights"], made["w"][np.sort(made["S"])])
    assert described["data"]["source"].startswith(
        "made by `mipfs generate aytug-one --n-samples 40 --n-features 6 --M 2 --seed 5`"
    )
    assert described["data"]["licence"] == "CC0-1.0"


def test_files_of_tan_and_paul_read_back_bit_by_bit(tmp_path):
    made = {
        "tan-2010": (generators.tan_2010(30, 5, 7), "tan-2010-30x8-seed7.npz", {"n_samples": 30, "n_features": 8}),
        "tan-2014": (
            *(generators.tan_2014(30, 8, 3, 7), "tan-2014-30x8-M3-seed7.npz"),
            {"n_samples": 30, "n_features": 8, "M": 3},
        ),
        "paul-2016": (
            *(generators.paul_2016(30, 8, 3, 7), "paul-2016-30x8-M3-seed7.npz"),
            {"n_samples": 30, "n_features": 8, "M": 3},
        ),
    }
    for name, (arrays, file, sizes) in made.items():
        path = generators.write(name, tmp_path, seed=7, **sizes)
        first = path.read_bytes()
        assert path == generators.write(name, tmp_path, seed=7, **sizes) == tmp_path / file
        assert path.read_bytes() == first
        for part, tail in (("train", ""), ("test", "-test")):
            data = read(path.with_name(f"{path.stem}{tail}.npz"))
            np.testing.assert_array_equal(data.X, arrays[part][0])
            np.testing.assert_array_equal(data.y, arrays[part][1])
        data = read(path)
        described = tomllib.loads(path.with_suffix(".toml").read_text())["generator"]
        assert described["support"] == [data.feature_names[j] for j in arrays["S"]]
        assert data.select.M == described["M"] == len(arrays["S"])
    assert read(tmp_path / "tan-2010-30x8-seed7.npz").feature_names[:4] == ("f1", "f2", "f3", "noise1")


def test_kinds_and_densities_of_tan_2014(tmp_path):
    """Weights are one uniform draw to the power of the kind; a density is a share of entries of X, also for labels."""
    one, two = (generators.tan_2014(20, 30, 5, 3, kind=kind) for kind in ("I", "II"))
    np.testing.assert_allclose(two["w"][two["S"]], one["w"][one["S"]] ** 0.3)
    thin = generators.tan_2014(400, 200, 5, 3, density=0.1)
    X, y = thin["train"]
    assert abs(X.nnz / 80_000 - 0.1) < 0.005
    assert abs(X.data.std() - 1) < 0.05
    np.testing.assert_array_equal(y, np.where(X.toarray() @ thin["w"] > 0, 1, -1))
    path = generators.write("tan-2014", tmp_path, n_samples=40, n_features=20, M=3, kind="III", density=0.3, seed=2)
    assert path.name == "tan-2014-40x20-M3-kindIII-density0.3-seed2.npz"
    again = generators.tan_2014(40, 20, 3, 2, kind="III", density=0.3)
    np.testing.assert_array_equal(read(path).X.toarray(), again["train"][0].toarray())
    described = tomllib.loads(path.with_suffix(".toml").read_text())
    assert (described["generator"]["kind"], described["generator"]["density"]) == ("III", 0.3)
    assert "--kind III --density 0.3 --seed 2" in described["data"]["source"]


def test_groups_of_tan_2014_are_solved_as_groups(tmp_path):
    made = generators.tan_2014_groups(60, 40, 2, 1, n_test=30)
    X, y = made["train"]
    np.testing.assert_array_equal(y, np.where(X @ made["w"] > 0, 1, -1))
    assert np.count_nonzero(made["w"]) == 20
    assert [made["groups"][name].tolist() for name in made["chosen"]] == made["S"].reshape(2, 10).tolist()
    path = generators.write("tan-2014-groups", tmp_path, n_samples=60, n_features=40, M=2, seed=1)
    data = read(path)
    np.testing.assert_array_equal(data.X, X)
    assert set(data.groups) == set(made["groups"])
    problem = mipfs.Problem(data, C=1.0, atoms=mipfs.atoms.make("groups", data))
    assert problem.M == 2
    assert set(mipfs.solve(problem).selected) == set(made["chosen"])


def test_out_may_be_the_file_itself(tmp_path):
    path = generators.write("aytug-one", tmp_path / "mine.svm", n_samples=20, n_features=3, M=1)
    assert path == tmp_path / "mine.svm"
    assert {file.name for file in tmp_path.iterdir()} == {
        *("mine.svm", "mine-validation.svm", "mine-test.svm", "mine.toml")
    }


@pytest.mark.parametrize("name", ["wdbc", "credit"])
def test_the_shipped_files_are_made_again_byte_for_byte(tmp_path, name):
    path = generators.write(name, tmp_path)
    for file in (path, path.with_suffix(".toml")):
        assert file.read_bytes() == (INSTANCES / file.name).read_bytes()


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        (
            "aytug",
            {},
            "no instance is called 'aytug'; "
            "there are aytug-one, aytug-two, tan-2010, tan-2014, tan-2014-groups, paul-2016, credit, wdbc",
        ),
        ("aytug-two", {"n_samples": 5}, "n_samples = 5: in aytug-two it is fixed"),
        ("wdbc", {"M": 5}, "M = 5: in wdbc it is fixed"),
        ("tan-2010", {"M": 2}, "M = 2: in tan-2010 it is fixed"),
        ("tan-2010", {"n_features": 2}, "n_features = 2 must be at least 3: f1, f2, f3 and then the noise"),
        ("tan-2010", {"seed": -1}, "seed = -1 must be a whole number >= 0"),
        ("tan-2014", {"n_features": 399}, "M = 400 must lie between 1 and 399, the number of features"),
        ("tan-2014", {"n_samples": 0}, "n_samples = 0 must be a whole number >= 1 or None"),
        ("tan-2014", {"kind": "IV"}, "type 'IV' is unknown; it is one of I, II, III"),
        ("tan-2010", {"density": 0.5}, "density = 0.5: in tan-2010 it is fixed"),
        ("tan-2014-groups", {"n_features": 25}, "n_features = 25 must be a multiple of 10, the features of a group"),
        ("tan-2014-groups", {"n_features": 20, "M": 3}, "M = 3 must lie between 1 and 2, the number of groups"),
        ("paul-2016", {"M": 1001}, "M = 1001 must lie between 1 and 1000, the number of features"),
        ("paul-2016", {"n_samples": 1}, "n_samples = 1 must be a whole number >= 2"),
        ("credit", {"seed": 5}, "seed = 5: credit is always the same"),
        ("aytug-one", {"M": 0}, "M = 0 must be a whole number >= 1 or None"),
        ("aytug-one", {"M": 21}, "M = 21 must lie between 1 and 20, the number of features"),
        ("aytug-one", {"n_samples": 0}, "n_samples = 0 must be a whole number >= 1 or None"),
        ("aytug-one", {"seed": -1}, "seed = -1 must be a whole number >= 0"),
    ],
)
def test_refused(tmp_path, name, parameters, message):
    with pytest.raises(UsageError) as caught:
        generators.write(name, tmp_path, **parameters)
    assert str(caught.value) == message
    assert not list(tmp_path.iterdir())


def test_paths_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        generators.write("credit", tmp_path / "file" / "sub")
    with pytest.raises(UsageError, match=r"credit is written as \.csv; give a folder or a name that ends so"):
        generators.write("credit", tmp_path / "credit.svm")
