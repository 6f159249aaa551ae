"""The instances that `mipfs generate` writes: the same seed gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs import shipped
from mipfs.errors import UsageError
from mipfs.readers.files import FORMATS

Array = npt.NDArray[np.float64]

AYTUG_TWO_M = (20, 100, 200, 400, 600)
"""The M of Aytug's second data set."""


def aytug_one(n_samples: int, n_features: int, M: int | None = None, seed: int = 0) -> dict[str, Any]:
    """An instance as in Aytug (2015), section 4, data set one: separable on M of the features.

    Training rows are drawn first and scaled into the unit ball, then the features that matter and their
    weights; validation and test rows come next from the same stream, with the same divisor.

    Parameters
    ----------
    n_samples, n_features : int >= 1
        Sizes of each of the three parts; the paper has n in {500, 1000, 5000} and p in {20, 50, 100}.
    M : int from 1 to `n_features`, optional
        Features that matter; drawn when absent.
    seed : int >= 0

    Returns
    -------
    dict
        ``train``, ``validation``, ``test``: each (X of shape (n, p), y of shape (n,) in {-1, +1});
        ``w`` (p,), ``b`` = 0.0, ``S`` (M,) the positions that matter, and ``M``.

    Raises
    ------
    UsageError
        A parameter out of its range.
    """
    n, p = n_samples, n_features
    if n < 1 or p < 1:
        raise UsageError(f"{n} samples and {p} features: both must be at least 1")
    if seed < 0:
        raise UsageError(f"seed = {seed} must be at least 0")
    if M is None:
        M = int(np.random.default_rng([seed, 1]).integers(1, p + 1))
    if not 1 <= M <= p:
        raise UsageError(f"M = {M} must lie between 1 and {p}, the number of features")
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    divisor = np.linalg.norm(X, axis=1).max()
    X /= divisor
    S = r.choice(p, M, False)
    w = np.zeros(p)
    w[S] = r.standard_normal(M)
    parts = {"train": (X, _signs(X, w))}
    for part in ("validation", "test"):
        rows = r.standard_normal((n, p)) / divisor
        parts[part] = (rows, _signs(rows, w))
    return {**parts, "w": w, "b": 0.0, "S": S, "M": M}


def aytug_two(M: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Data set two of Aytug (2015), section 4: 1000 samples of 800 features; the paper's M are `AYTUG_TWO_M`.

    The draws and what is returned are those of `aytug_one`.
    """
    return aytug_one(1000, 800, M, seed)


def write(
    name: str,
    out: str | Path = ".",
    *,
    n_samples: int | None = None,
    n_features: int | None = None,
    M: int | None = None,
    seed: int = 0,
) -> Path:
    """Write an instance and the .toml beside it.

    Parameters
    ----------
    name : {"aytug-one", "aytug-two", "credit", "wdbc"}
    out : path-like
        A folder, made where it is missing, or the path of the data file.
    n_samples, n_features, M, seed
        Of `aytug_one` (500 samples of 20 features unless given); ``aytug-two`` takes M and seed.

    Returns
    -------
    Path
        The data file. Made data comes with ``STEM-validation.svm`` and ``STEM-test.svm`` beside it.

    Raises
    ------
    UsageError
        An unknown name, a parameter that the instance does not take, a path that cannot be written.
    """
    sizes = {"n_samples": n_samples, "n_features": n_features, "M": M}
    taken = {"aytug-one": tuple(sizes), "aytug-two": ("M",), "credit": (), "wdbc": ()}
    if name not in taken:
        raise UsageError(f"no instance is called {name!r}; there are {', '.join(taken)}")
    for key, value in sizes.items():
        if value is not None and key not in taken[name]:
            raise UsageError(f"{key} = {value}: the sizes of {name} are fixed")
    if seed != 0 and not taken[name]:
        raise UsageError(f"seed = {seed}: {name} is always the same")
    if name == "credit":
        return _save(Path(out), name, ".csv", {"": shipped.credit}, shipped.CREDIT_TOML)
    if name == "wdbc":
        X, y, description = shipped.wdbc()
        return _save(Path(out), name, ".svm", {"": lambda: _svmlight(X, y)}, description)
    n, p = 500 if n_samples is None else n_samples, 20 if n_features is None else n_features
    made = aytug_one(n, p, M, seed) if name == "aytug-one" else aytug_two(M, seed)
    n, p = made["train"][0].shape
    stem = f"{name}-{n}x{p}-M{made['M']}-seed{seed}"
    texts = {
        "": lambda: _svmlight(*made["train"]),
        "-validation": lambda: _svmlight(*made["validation"]),
        "-test": lambda: _svmlight(*made["test"]),
    }
    return _save(Path(out), stem, ".svm", texts, _aytug_toml(name, made, seed))


def _signs(X: Array, w: Array) -> npt.NDArray[np.int64]:
    return np.where(X @ w > 0, 1, -1)


def _svmlight(X: Array, y: npt.ArrayLike) -> str:
    """Every value in the shortest form that reads back as the same float64."""
    lines = []
    for label, row in zip(np.asarray(y).tolist(), X.tolist(), strict=True):
        lines.append(f"{label:+d} " + " ".join(f"{j}:{value!r}" for j, value in enumerate(row, 1)))
    return "\n".join(lines) + "\n"


def _save(out: Path, stem: str, suffix: str, texts: Mapping[str, Callable[[], str]], description: str) -> Path:
    """Write the parts and the description; `out` is a folder or, by its suffix, the data file itself."""
    if out.suffix in FORMATS and out.suffix not in ("", suffix) and not out.is_dir():
        raise UsageError(f"{out}: {stem} is written as {suffix}; give a folder or a name that ends so")
    data = out if out.suffix == suffix else out / f"{stem}{suffix}"
    try:
        data.parent.mkdir(parents=True, exist_ok=True)
        for part, text in texts.items():
            data.with_name(f"{data.stem}{part}{suffix}").write_text(text(), encoding="utf-8", newline="\n")
        data.with_suffix(".toml").write_text(description, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{data}: cannot be written: {error.strerror}") from None
    return data


def _aytug_toml(name: str, made: Mapping[str, Any], seed: int) -> str:
    n, p = made["train"][0].shape
    support = np.sort(made["S"])
    sizes = f"--n-samples {n} --n-features {p} " if name == "aytug-one" else ""
    names = ", ".join(f'"x{j + 1}"' for j in support)
    weights = ", ".join(repr(value) for value in made["w"][support].tolist())
    return f"""\
# Labels are the signs of X w; validation and test rows stand in files of their own.
[data]
source = "made by `mipfs generate {name} {sizes}--M {made["M"]} --seed {seed}`, after Aytug 2015, section 4"
licence = "CC0-1.0"

[select]
M = {made["M"]}

[generator]
name = "{name}"
n_samples = {n}
n_features = {p}
M = {made["M"]}
seed = {seed}
support = [{names}]
weights = [{weights}]
"""
