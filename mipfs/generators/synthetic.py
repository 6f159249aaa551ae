"""The synthetic problems of Tan 2010, Tan 2014 and Paul 2016: the same seed gives the same draws."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from scipy import sparse

from mipfs.data.checks import memory
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import scatter
from mipfs.plumbing.declared import Count, Natural, NumberRange, Seed, check_arguments, show_value

POWERS = {"I": 1.0, "II": 0.3, "III": 3.0}
"""The power of the uniform weights in every type of Tan 2014, section 6.2.1."""

INFORMATIVE = 3
"""f1 and f2, the composite pair, and f3, the best single feature, of Tan 2010."""


Density = Annotated[float, NumberRange(most=1, above=0)]
"""A share of entries."""


def check_room(n_samples: int, n_features: int, density: float = 1.0) -> None:
    """Refuse a matrix that does not fit into memory.

    Raises
    ------
    UsageError
    """
    entries = n_samples * n_features
    if density < 1.0:  # a value and its row
        entries = int(2 * density * entries) + n_features
    if 8 * entries > memory():
        raise UsageError(f"{show_value(entries)} entries do not fit into the memory of this machine; ask for fewer")


def check_chosen(M: int, count: int, what: str) -> None:
    """Refuse a number of features, or groups, that matter and that there are not."""
    if not 1 <= M <= count:
        raise UsageError(f"M = {M} must lie between 1 and {count}, the number of {what}")


@check_arguments
def tan_2010(n_samples: Count = 500, n_noise: Natural = 100, seed: Seed = 0) -> dict[str, Any]:
    """The problem of Tan 2010, sections 3.1 and 3.3: a composite pair, a strong single feature, and noise.

    As many samples of each class as there are in training, shuffled and cut into halves. The paper names the
    parts and refers for the numbers to Xu et al. 2009; these numbers are ours, chosen so that what it says of
    the pair, of f3, of FGM-B and of the SVM on all features holds at its own C = 0.1 and B = 2:

    - f1 and f2 of class y are jointly Gaussian with mean (2y, 0) and covariance 9·[[1, 1], [1, 1]] + 0.01·I. Alone
      f1 is right on three quarters of the samples and f2 on half of them; f1 − f2 is right on all.
    - f3 is Gaussian with mean 0.4y and standard deviation 0.27: the best single feature, right on 93%.
    - Noise of mean 0 and variance 1: the first half uniform, the second Gaussian.

    Whoever ranks features one by one takes f3, also with f1 (whose means differ the most): that pair stays
    at 95%. Only what is tried together shows f2.

    Parameters
    ----------
    n_samples : int >= 1
        Of training and of test, each; the paper has 500 and, at 2000 features, up to 8000.
    n_noise : int >= 0
        Noise features; the paper has 100 to 10,000.
    seed : int >= 0

    Returns
    -------
    dict
        ``train``, ``test``: each (X of shape (n, 3 + noise) in Fortran order, y of shape (n,) in {-1, +1});
        ``names``, the features'; ``S``, the positions of the composite pair.

    Raises
    ------
    UsageError
        A parameter out of its range.
    """
    check_room(2 * n_samples, INFORMATIVE + n_noise)
    r = np.random.default_rng(seed)
    y = np.repeat(np.array([1, -1]), n_samples)[r.permutation(2 * n_samples)]
    common = 3.0 * r.standard_normal(y.size)
    rows = np.empty((INFORMATIVE + n_noise, y.size))
    rows[0] = 2.0 * y + common + 0.1 * r.standard_normal(y.size)
    rows[1] = common + 0.1 * r.standard_normal(y.size)
    rows[2] = 0.4 * y + 0.27 * r.standard_normal(y.size)
    half = INFORMATIVE + (n_noise + 1) // 2
    rows[INFORMATIVE:half] = np.sqrt(12.0) * (r.random((half - INFORMATIVE, y.size)) - 0.5)
    rows[half:] = r.standard_normal((INFORMATIVE + n_noise - half, y.size))
    names = ("f1", "f2", "f3", *(f"noise{k + 1}" for k in range(n_noise)))
    return {
        "train": (rows[:, :n_samples].T.copy(order="F"), y[:n_samples]),
        "test": (rows[:, n_samples:].T.copy(order="F"), y[n_samples:]),
        "names": names,
        "S": np.array([0, 1]),
    }


@check_arguments
def tan_2014(
    n_samples: Count = 4096,
    n_features: Count = 4096,
    M: Count = 400,
    seed: Seed = 0,
    *,
    kind: str = "I",
    density: Density = 1.0,
    n_test: Natural = 4096,
) -> dict[str, Any]:
    """The problem of Tan 2014, section 6.2.1: Gaussian features, y = sign(Xw) for a sparse w > 0.

    X is drawn from N(0, 1); M weights, at random places, from U(0, 1) and raised to the power of the type:
    1 (I), 0.3 (II) or 3 (III). The training rows do not depend on `n_test`.

    Parameters
    ----------
    n_samples, n_features : int >= 1
        The paper has 4096 x 4096, 4096 x 65,536 and 8192 x 100,000. X takes 8 bytes an entry.
    M : int from 1 to `n_features`
        Informative features.
    seed : int >= 0
    kind : {"I", "II", "III"}
    density : float in (0, 1]
        Below 1 the share of entries that are not zero, drawn one by one, and X is sparse (the paper's Figure 7: 0.005
        to 1 at 8192 x 100,000); labels are those of the sparse X.
    n_test : int >= 0
        Test rows; the paper has 4096.

    Returns
    -------
    dict
        ``train``, ``test``: each (X of shape (n, p) in Fortran order or CSC, y of shape (n,) in {-1, +1});
        ``w`` (p,), ``S`` (M,) the sorted positions that matter, and ``M``.

    Raises
    ------
    UsageError
        A parameter out of its range.
    """
    check_room(n_samples + n_test, n_features, density)
    check_chosen(M, n_features, "features")
    if kind not in POWERS:
        raise UsageError(f"type {kind!r} is unknown; it is one of {', '.join(POWERS)}")
    r = np.random.default_rng(seed)
    S = np.sort(r.choice(n_features, M, replace=False))
    w = scatter(n_features, S, (1.0 - r.random(M)) ** POWERS[kind])
    parts = {}
    for part, n in (("train", n_samples), ("test", n_test)):
        X = r.standard_normal((n_features, n)).T if density == 1.0 else _sparse_normal(r, n, n_features, density)
        parts[part] = (X, np.where(X @ w > 0, 1, -1))
    return {**parts, "w": w, "S": S, "M": M, "kind": kind, "density": density}


def _sparse_normal(r: np.random.Generator, n: int, p: int, density: float) -> sparse.csc_array:
    """A CSC matrix (n, p) of which every entry is N(0, 1) with that probability, and zero otherwise."""
    counts = r.binomial(n, density, p)
    rows = [np.sort(r.choice(n, k, replace=False)) for k in counts]
    pointer = np.concatenate([[0], np.cumsum(counts)])
    values = r.standard_normal(int(pointer[-1]))
    return sparse.csc_array((values, np.concatenate(rows).astype(np.int32), pointer), shape=(n, p))


@check_arguments
def tan_2014_groups(
    n_samples: Count = 4096,
    n_features: Count = 20_000,
    M: Count = 100,
    seed: Seed = 0,
    *,
    size: Count = 10,
    n_test: Natural = 2000,
) -> dict[str, Any]:
    """The problem of Tan 2014, section 7.2: groups of equal size, of which M matter.

    X is drawn from N(0, 1); groups are neighbouring features, M of them, at random, have weights from N(0, 1), and
    y = sign(Xw).

    Parameters
    ----------
    n_samples : int >= 1
        The paper has 4096.
    n_features : int, a multiple of `size`
        The paper has 20,000 and 400,000. X takes 8 bytes an entry.
    M : int from 1 to the number of groups
        Groups that matter.
    seed : int >= 0
    size : int >= 1, features of a group
    n_test : int >= 0
        Test rows; the paper has 2000.

    Returns
    -------
    dict
        ``train``, ``test``: each (X of shape (n, p) in Fortran order, y of shape (n,) in {-1, +1}); ``w`` (p,), ``S``
        the sorted positions of the features that matter, ``M``, ``groups``: name to the positions of its features, and
        ``chosen``, the names of the groups that matter.

    Raises
    ------
    UsageError
        A parameter out of its range.
    """
    check_room(n_samples + n_test, n_features)
    if n_features % size:
        raise UsageError(f"n_features = {n_features} must be a multiple of {size}, the features of a group")
    count = n_features // size
    check_chosen(M, count, "groups")
    r = np.random.default_rng(seed)
    chosen = np.sort(r.choice(count, M, replace=False))
    S = (chosen[:, None] * size + np.arange(size)).ravel()
    w = scatter(n_features, S, r.standard_normal(S.size))
    parts = {}
    for part, n in (("train", n_samples), ("test", n_test)):
        X = r.standard_normal((n_features, n)).T
        parts[part] = (X, np.where(X @ w > 0, 1, -1))
    groups = {f"group{g + 1}": np.arange(g * size, (g + 1) * size) for g in range(count)}
    names = tuple(f"group{g + 1}" for g in chosen.tolist())
    return {**parts, "w": w, "S": S, "M": M, "groups": groups, "chosen": names}


@check_arguments
def paul_2016(
    n_samples: Annotated[int, NumberRange(2)] = 200, n_features: Count = 1000, M: Count = 40, seed: Seed = 0
) -> dict[str, Any]:
    """The problem of Paul 2016, section 5.3 (after Bhattacharyya 2004): the first M features matter, the M-th the most.

    Labels are -1 or +1 with equal probability. Feature j = 1 ... M of a sample is y·N(-j, 1), every other one N(0, 1).

    Parameters
    ----------
    n_samples : int >= 2
        Of training and of test, each; the paper has 200, and cross-validates.
    n_features : int >= 1
        The paper has 1000.
    M : int from 1 to `n_features`
        Relevant features; the paper has 40 and 50.
    seed : int >= 0

    Returns
    -------
    dict
        ``train``, ``test``: each (X of shape (n, p) in Fortran order, y of shape (n,) in {-1, +1}), both with samples
        of both classes; ``S`` (M,) the positions that matter, and ``M``.

    Raises
    ------
    UsageError
        A parameter out of its range.
    """
    check_room(2 * n_samples, n_features)
    check_chosen(M, n_features, "features")
    r = np.random.default_rng(seed)
    parts = {}
    for part in ("train", "test"):
        y = np.ones(n_samples, dtype=np.int64)
        while np.all(y == y[0]):
            y = np.where(r.random(n_samples) < 0.5, -1, 1)
        rows = r.standard_normal((n_features, n_samples))
        rows[:M] -= np.arange(1.0, M + 1.0)[:, None]
        rows[:M] *= y
        parts[part] = (rows.T, y)
    return {**parts, "S": np.arange(M), "M": M}
