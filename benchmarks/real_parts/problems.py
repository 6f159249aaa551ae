"""The problems of the benchmark, built from a description that fits into a line of JSON.

    {"from": "set", "set": "sonar", "scale": "standard"}              a folder below MIPFS_DATA
    {"from": "resampled", "set": "spambase", "n": 1000, "p": 57}      rows drawn again, columns repeated
    {"from": "aytug", "n": 500, "p": 100, "seed": 101}                data set one of Aytug (2015)
    {"from": "peers", "n": 2000, "p": 2000, "seed": 1}                ten true features, correlation ½^|i − j|
    {"from": "census", "n": 20000, "seed": 1}                         14 questions, 100 columns of 0/1, one 1 a question

and, of each, loss, bias, M, C and, optionally, rows: some of "budget", "conflicts" and "implications".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

import mipfs
from mipfs.data.instance import Instance
from mipfs.generators import aytug_one
from mipfs.problem import Problem

Array = npt.NDArray[np.float64]
Description = Mapping[str, Any]

NOISE = 0.05
"""Standard deviation of the noise on a number that was drawn again, in units of its column's."""
ANSWERS = (5, 8, 16, 5, 7, 14, 6, 5, 2, 5, 5, 5, 10, 7)
"""Of the census data: how many answers every question has, about as many as the adult sets' do."""
N_ROWS = 20
"""Conflicts, and implications, of a problem with rows."""
CORRELATION, N_TRUE, STRENGTH = 0.5, 10, 2.0
"""Of the peers' data: neighbouring columns, true features, standard deviation of the true score (with ten weights of
one it is about 3.2, and the labels are less noisy)."""


def build(what: Description, folder: Path | None) -> Problem:
    """The problem of a description; `folder` holds the data sets."""
    data = _data(what, folder)
    problem = Problem(
        data, loss=what["loss"], bias=what.get("bias", True), M=min(what["M"], data.n_features), C=what["C"]
    )
    return with_rows(problem, what.get("rows", ()))


def _data(what: Description, folder: Path | None) -> Instance:
    if what["from"] == "aytug":
        X, y = aytug_one(what["n"], what["p"], what["M"], what["seed"])["train"]
        return Instance.from_arrays(X, y)
    if what["from"] == "peers":
        return Instance.from_arrays(*peers(what["n"], what["p"], what["seed"], what.get("strength", STRENGTH)))
    if what["from"] == "census":
        return Instance.from_arrays(*census(what["n"], what["seed"]))
    if folder is None:
        raise mipfs.UsageError("MIPFS_DATA is unset; it names the folder that holds the data sets")
    path = read_from(folder / what["set"])
    if what["from"] == "set":
        return mipfs.read(path, scale=what["scale"])
    raw = mipfs.read(path)
    X, y = resampled(raw.X, raw.y, what["n"], what["p"], what.get("seed", 1))
    return Instance.from_arrays(X, y, scale=what.get("scale", "standard"))


def read_from(folder: Path) -> Path:
    """The file of a data set's folder that holds its numbers."""
    for name in ("data.svm.gz", "data.svm", "data.csv", "data.parquet"):
        if (folder / name).is_file():
            return folder / name
    raise mipfs.DataError(f"{folder} holds no data.svm.gz, data.svm, data.csv or data.parquet")


def resampled(X: Any, y: Array, n: int, p: int, seed: int) -> tuple[Any, Array]:
    """n rows drawn with replacement and p columns, repeated where there are fewer; every stored number gets noise."""
    random = np.random.default_rng(seed)
    rows, columns = random.integers(0, X.shape[0], n), np.arange(p) % X.shape[1]
    if not sparse.issparse(X):
        part = X[rows][:, columns]
        spread = X.std(axis=0)[columns]
        return part + NOISE * spread * random.standard_normal(part.shape), y[rows]
    part = sparse.csc_array(sparse.csr_array(X)[rows][:, columns])
    part.data = part.data * (1.0 + NOISE * random.standard_normal(part.data.size))
    return part, y[rows]


def peers(n: int, p: int, seed: int, strength: float | None = STRENGTH) -> tuple[Array, Array]:
    """Gaussian columns with correlation ½^|i − j|; labels from ten of them, evenly spaced, by a logistic model.

    `strength` is the deviation of its scores; None: their weights are 1.
    """
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1.0 - CORRELATION**2) * X[:, j]
    score = X[:, np.linspace(0, p - 1, N_TRUE).astype(int)].sum(axis=1)
    if strength is not None:
        score = strength * score / score.std()
    chance = 1.0 / (1.0 + np.exp(-score))
    return X, np.where(random.random(n) < chance, 1.0, -1.0)


def census(n: int, seed: int) -> tuple[Any, Array]:
    """Questions with one answer each, correlated by three latent traits; a quarter of the labels are +1."""
    random = np.random.default_rng(seed)
    traits, blocks, score = random.standard_normal((n, 3)), [], np.zeros(n)
    for question, k in enumerate(ANSWERS):
        # Gumbel's noise makes the largest one a draw from the softmax
        liking = 0.8 * traits @ random.standard_normal((3, k)) - 0.6 * np.arange(k) + random.gumbel(size=(n, k))
        answer = liking.argmax(axis=1)
        score += random.standard_normal(k)[answer] * (0.8 if question % 2 else 0.3)
        blocks.append(sparse.csc_array((np.ones(n), (np.arange(n), answer)), shape=(n, k)))
    score -= np.quantile(score, 0.76)
    chance = 1.0 / (1.0 + np.exp(-1.6 * score))
    return sparse.hstack(blocks, format="csc"), np.where(random.random(n) < chance, 1.0, -1.0)


def with_rows(problem: Problem, kinds: Sequence[str], seed: int = 7) -> Problem:
    """The problem with a budget of half of what M features cost on average, 20 conflicts, 20 implications."""
    p, random = problem.data.n_features, np.random.default_rng(seed)
    cost = random.integers(1, 6, p).astype(float)
    pairs = {kind: _pairs(p, N_ROWS, random) for kind in ("conflicts", "implications")}
    if "budget" in kinds:
        assert problem.M is not None
        problem = problem.with_rows(cost[None, :], -np.inf, np.floor(0.5 * problem.M * cost.mean()))
    if "conflicts" in kinds:
        problem = problem.with_rows(_two(pairs["conflicts"], p, 1.0), -np.inf, 1.0)
    if "implications" in kinds:
        problem = problem.with_rows(_two(pairs["implications"], p, -1.0), -np.inf, 0.0)
    return problem


def _pairs(p: int, count: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Different pairs of different features, shape (count, 2)."""
    found: dict[tuple[int, int], None] = {}
    while len(found) < min(count, p * (p - 1) // 2):
        a, b = random.choice(p, 2, replace=False)
        found[int(min(a, b)), int(max(a, b))] = None
    return np.array(list(found))


def _two(pairs: npt.NDArray[np.int64], p: int, second: float) -> sparse.csr_array:
    """σ_a + second·σ_b, one row a pair."""
    rows = np.repeat(np.arange(len(pairs)), 2)
    values = np.tile([1.0, second], len(pairs))
    return sparse.csr_array((values, (rows, pairs.ravel())), shape=(len(pairs), p))
