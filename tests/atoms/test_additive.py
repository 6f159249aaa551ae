"""Functions of single features against dense kernel matrices, scikit-learn's maps and its SVM on the sum of kernels."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate, sparse
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.preprocessing import SplineTransformer
from sklearn.svm import SVC

import mipfs
from mipfs import atoms
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from tests.additive_cases import KINDS, dense, draw, instance, make

Array = npt.NDArray[np.float64]


@pytest.mark.slow
def test_scores_and_columns_of_the_intersection_kernel_are_those_of_the_dense_matrix() -> None:
    for seed in range(100):
        data, X = instance(seed)
        made = make("additive-hik", data)
        r = np.random.default_rng(seed)
        v = r.standard_normal(X.shape[0])
        scores = made.scores(v)
        for j, x in enumerate(X.T):
            K = np.minimum.outer(x, x)
            assert abs(scores[j] - v @ K @ v) <= 1e-12 * (np.abs(v) @ K @ np.abs(v)), seed
            Z = dense(made.data.block(made.columns([j]).ids).values)
            np.testing.assert_allclose(Z @ Z.T, K, rtol=1e-12, atol=1e-14 * K.max())
            assert Z.shape[1] == max(1, np.unique(x[x > 0]).size), "one column for every distinct value"
            new = r.gamma(1.0, 1.0, size=7) * x.max()
            mapped = dense(made.mapped(made.options, made.stated(j), new))
            expected = np.minimum.outer(new, x) if x.max() > 0 else 0.0
            np.testing.assert_allclose(mapped @ Z.T, expected, rtol=1e-10, atol=1e-13 * K.max())


def test_levels_round_to_equal_steps_and_shift_counts_from_the_least_value() -> None:
    for seed in range(40):
        data, X = instance(seed)
        v = np.random.default_rng(seed).standard_normal(X.shape[0])
        top = X.max(axis=0)
        rounded = np.where(top > 0, np.rint(7 * X / np.where(top > 0, top, 1.0)) / 7 * top, 0.0)
        lower = Instance.from_arrays((sparse.csc_array if data.is_sparse else np.asarray)(X - 1.5 * top), data.y)
        from_least = X - X.min(axis=0)
        both = (make("additive-hik", data, levels=7), rounded), (make("additive-hik", lower, shift=True), from_least)
        for made, values in both:
            expected = [v @ np.minimum.outer(x, x) @ v for x in values.T]
            np.testing.assert_allclose(made.scores(v), expected, rtol=1e-6, atol=1e-7 * float(values.max()))
        assert max(make("additive-hik", data, levels=7).sizes) <= 7


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "options"), KINDS)
@pytest.mark.parametrize("scaling", ["none", "norm"])
def test_every_kind_agrees_with_groups_of_its_columns_written_out(
    name: str, options: dict[str, Any], scaling: str
) -> None:
    for seed in range(12):
        data, X = instance(seed)
        made = make(name, data, scaling=scaling, **options)
        written = Instance.from_arrays(dense(made.data.block().values[:, np.arange(made.data.n_features)]), data.y)
        groups = Groups(written, {f"x{j + 1}": range(*made.starts[j : j + 2]) for j in range(made.count)}, scaling)
        v = np.random.default_rng(seed).standard_normal(X.shape[0])
        size = float(groups.scores(np.abs(v)).max(initial=1e-300))
        np.testing.assert_allclose(made.scores(v), groups.scores(v), rtol=1e-9, atol=1e-12 * size)
        np.testing.assert_allclose(made.scale, groups.scale, rtol=1e-9)
        assert np.all(np.abs(made.scores(v) - groups.scores(v)) <= made.score_error(v) + groups.score_error(v) + 1e-300)
        chosen = np.random.default_rng(seed).permutation(made.count)[:3]
        for one, other in zip(vars(made.columns(chosen)).values(), vars(groups.columns(chosen)).values(), strict=True):
            np.testing.assert_allclose(one, other)
        for j in range(made.count):
            again = dense(made.mapped(made.options, made.stated(j), X[:, j]))
            np.testing.assert_allclose(
                again, written.block(groups.columns([j]).ids).dense(), atol=1e-9 * np.sqrt(X.max() + 1)
            )
        picked = np.random.default_rng(seed).permutation(made.data.n_features)[:9]
        np.testing.assert_allclose(dense(made.data.block(picked).values), written.block(picked).dense())
        copy = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(copy.scores(v), made.scores(v))
        assert copy.stamp == made.stamp == made.on(data).stamp
        assert made.data.feature_names[0] == "x1[0]"


KERNELS = {
    "additive-chi2": lambda x, z: 2 * x * z / (x + z),
    "additive-intersection": np.minimum,
    "additive-jensen-shannon": lambda x, z: 0.5 * x * np.log2((x + z) / x) + 0.5 * z * np.log2((x + z) / z),
}
FAR = {"additive-chi2": 1e-3, "additive-intersection": 0.04, "additive-jensen-shannon": 1e-3}


@pytest.mark.parametrize("name", KERNELS)
def test_sampled_maps_approach_their_kernels(name: str) -> None:
    x = np.geomspace(0.03, 1.0, 40)
    data = Instance.from_arrays(x[:, None], np.where(np.arange(40) % 2, 1.0, -1.0))
    exact, errors = KERNELS[name](x[:, None], x[None, :]), []
    for steps in (1, 3, 5):
        Z = make(name, data, steps=steps).expand(np.array([0]))
        errors.append(float(np.sqrt(np.mean((Z @ Z.T - exact) ** 2))))
    assert errors[0] > errors[1] > errors[2]
    many = make(name, data, steps=50, interval=0.2).expand(np.array([0]))
    assert np.abs(many @ many.T - exact).max() < FAR[name]


def _twice(kind: Any, frequency: float) -> float:
    """The spectrum and its mirror image."""
    return 2.0 * float(kind.spectrum(np.array(frequency)))


def test_spectra_are_the_fourier_transforms_of_the_kernels() -> None:
    from mipfs.atoms.homogeneous import JensenShannon, SampledIntersection

    for kind, name in ((SampledIntersection, "additive-intersection"), (JensenShannon, "additive-jensen-shannon")):
        for ratio in (1.5, 2.0, 5.0):
            wave = np.log(ratio)
            value, _ = integrate.quad(
                lambda at, k=kind: 2 * float(k.spectrum(np.array(at))), 0, np.inf, weight="cos", wvar=wave
            )
            expected = KERNELS[name](np.array(np.sqrt(ratio)), np.array(1 / np.sqrt(ratio)))
            assert value == pytest.approx(float(expected), abs=1e-4)


def test_the_chi2_map_is_scikit_learns() -> None:
    data, X = instance(3, n=30, p=4)
    made = make("additive-chi2", data, steps=2)
    theirs = AdditiveChi2Sampler(sample_steps=2).fit_transform(X)
    order = np.arange(12).reshape(3, 4).T.ravel()  # theirs step by step, ours feature by feature
    np.testing.assert_allclose(dense(made.expand(np.arange(4))), theirs[:, order], atol=1e-12 * np.sqrt(X.max()))


def test_splines_are_scikit_learns_and_average_to_nothing() -> None:
    r = np.random.default_rng(0)
    X, weights = r.standard_normal((60, 3)) * 1e5, r.uniform(0.5, 2.0, 60)
    X[:, 2] = 7.0
    data = Instance.from_arrays(X, np.where(X[:, 0] > 0, 1.0, -1.0), sample_weight=weights)
    made = make("splines", data, knots=6, degree=2)
    assert made.sizes.tolist() == [7, 7, 1]
    Z = made.expand(np.arange(3))
    np.testing.assert_allclose(weights @ Z, 0.0, atol=1e-11)
    assert not Z[:, -1].any(), "a constant feature has no function"
    knots = np.quantile(X[:, :2], np.linspace(0, 1, 6), axis=0, weights=weights, method="inverted_cdf")
    theirs = SplineTransformer(degree=2, knots=knots, extrapolation="constant").fit_transform(X[:, :2])
    np.testing.assert_allclose(Z[:, :14], theirs - weights @ theirs / weights.sum(), atol=1e-11)
    assert make("splines", data, scaling="norm").scale[2] == 0.0
    few = Instance.from_arrays(np.tile([0.0, 0.0, 0.0, 1.0], 3)[:, None], np.tile([1.0, -1.0], 6))
    assert make("splines", few, knots=9, degree=1).sizes.tolist() == [2]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_an_svm_on_selected_features_is_the_svm_of_the_sum_of_their_kernels(C: float) -> None:
    for seed in range(6):
        data, X = instance(seed, n=50, p=5)
        scaled = X / X.max()
        data = Instance.from_arrays(scaled, data.y)
        chosen = ["x2", "x4"]
        problem = mipfs.Problem(data, atoms=atoms.make("additive-hik", data), C=C, M=2, forced_in=tuple(chosen))
        result = mipfs.solve(problem, "kelley", gap=1e-9)
        assert set(result.selected) == set(chosen)
        K = sum(np.minimum.outer(scaled[:, j], scaled[:, j]) for j in (1, 3))
        theirs = SVC(C=C, kernel="precomputed", tol=1e-10).fit(K, data.y)
        found = theirs.decision_function(K)
        alpha = theirs.dual_coef_.ravel()
        norm = alpha @ K[np.ix_(theirs.support_, theirs.support_)] @ alpha
        value = 0.5 * norm + C * np.maximum(0.0, 1.0 - data.y * found).sum()
        assert result.objective == pytest.approx(value, rel=1e-6)
        new = np.random.default_rng(seed).gamma(1.0, 0.3, size=(20, 5))
        K_new = sum(np.minimum.outer(new[:, j], scaled[:, j]) for j in (1, 3))
        own, others = result.decision_function(new), theirs.decision_function(K_new)
        # the intercept of a hinge may lie anywhere in an interval
        np.testing.assert_allclose(own - own.mean(), others - others.mean(), atol=2e-3 * max(1.0, np.ptp(others)))


def test_what_they_are_not_for_is_refused_with_a_remedy() -> None:
    X, y = draw(2, n=12, p=3)
    data = Instance.from_arrays(X - X.max(), y)
    for name in ("additive-hik", "additive-chi2", "additive-intersection", "additive-jensen-shannon"):
        with pytest.raises(DataError, match=r"Negative values in data: feature 'x1' has .*shift=True"):
            atoms.make(name, data)
        made = make(name, data, shift=True)
        assert dense(made.mapped(made.options, made.stated(0), np.array([-1e9]))).any() is np.False_
    for options, said in (
        ({"levels": 0}, "levels = 0 must be a whole number from 1"),
        ({"level": 3}, "no option 'level'; did you mean 'levels'?"),
        ({"scaling": "norms"}, "scaling = 'norms' is unknown"),
    ):
        with pytest.raises(UsageError, match=said.replace("?", r"\?")):
            atoms.make("additive-hik", Instance.from_arrays(X, y), **options)
    with pytest.raises(UsageError, match="no atoms are called 'spline'; did you mean 'splines'"):
        atoms.make("spline", data)
    for options, said in (({"knots": 1}, "knots"), ({"degree": -1}, "degree"), ({"knots": True}, "knots")):
        with pytest.raises(UsageError, match=said):
            atoms.make("splines", data, **options)
    with pytest.raises(UsageError, match=r"interval = -1.0 must be a positive number"):
        atoms.make("additive-chi2", Instance.from_arrays(X, y), interval=-1.0)
    made = make("additive-hik", Instance.from_arrays(X, y))
    with pytest.raises(DataError, match="for values >= 0, and there is -1"):
        made.mapped(made.options, made.stated(0), np.array([-1.0]))
    with pytest.raises(UsageError, match="made of other features"):
        made.on(Instance.from_arrays(X, y, feature_names=["a", "b", "c"]))


def test_features_and_groups_are_in_the_registry() -> None:
    X, y = draw(4, n=12, p=3)
    data = Instance.from_arrays(X, y, groups={"both": ["x1", "x2"]})
    assert atoms.make("groups", data).names == ("both", "x3")
    assert atoms.make("features", data, scaling="norm").kind == "scaled features"


def test_huge_and_tiny_values() -> None:
    for size in (1e-300, 1e-150, 1e90):
        x = np.array([0.0, 0.25, 0.5, 0.5, 1.0]) * size
        data = Instance.from_arrays(x[:, None], np.array([1.0, -1.0, 1.0, -1.0, 1.0]))
        made = make("additive-hik", data)
        v = np.array([1.0, -2.0, 0.5, 1.0, 3.0])
        np.testing.assert_allclose(made.scores(v) / size, [v @ np.minimum.outer(x, x) / size @ v], rtol=1e-12)
        Z = dense(made.expand(np.array([0]))) / np.sqrt(size)
        np.testing.assert_allclose(Z @ Z.T, np.minimum.outer(x / size, x / size), rtol=1e-12)
