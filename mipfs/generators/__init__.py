"""The instances that `mipfs generate` writes: the same seed gives the same bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import UsageError
from mipfs.generators import shipped
from mipfs.generators.synthetic import (
    INFORMATIVE,
    Density,
    check_chosen,
    check_room,
    paul_2016,
    tan_2010,
    tan_2014,
    tan_2014_groups,
)
from mipfs.plumbing import output_file
from mipfs.plumbing.arrays import Array, scatter
from mipfs.plumbing.declared import Count, Seed, check_arguments
from mipfs.readers.arrays import csc_arrays, npz_bytes
from mipfs.readers.files import FORMATS

__all__ = [
    "AYTUG_TWO_M",
    "aytug_one",
    "aytug_two",
    "paul_2016",
    "tan_2010",
    "tan_2014",
    "tan_2014_groups",
    "write",
]


AYTUG_TWO_M = (20, 100, 200, 400, 600)
"""The M of Aytug's second data set."""
NPZ = ("tan-2010", "tan-2014", "tan-2014-groups", "paul-2016")
"""What is written as npz."""
_SIZES = ("n_samples", "n_features", "M")
TAKEN: dict[str, tuple[str, ...]] = {
    "aytug-one": _SIZES,
    "aytug-two": ("M",),
    "tan-2010": _SIZES[:2],
    "tan-2014": (*_SIZES, "kind", "density"),
    "tan-2014-groups": _SIZES,
    "paul-2016": _SIZES,
    "credit": (),
    "wdbc": (),
}
"""The parameters that every instance takes, beside the seed."""


@check_arguments
def aytug_one(n_samples: Count, n_features: Count, M: Count | None = None, seed: Seed = 0) -> dict[str, Any]:
    """An instance as in Aytug (2015), section 4, data set one: separable on M of the features.

    Training rows are drawn first and scaled into the unit ball, then the features that matter and their
    weights; validation and test rows come next from the same stream, with the same divisor, the largest length of a
    training row: "each observation was normalized to fit in a ball of radius one" is read as one scale for all, which
    keeps the labels' hyperplane and the rows' shape.

    Parameters
    ----------
    n_samples, n_features : int >= 1
        Sizes of each of the three parts; the paper has n in {500, 1000, 5000} and p in {20, 50, 100}.
    M : int from 1 to `n_features`, optional
        Features that matter; drawn when absent, for every seed and size anew.
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
    check_room(3 * n, p)
    if M is None:
        M = draw_M(n, p, seed)
    check_chosen(M, p, "features")
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    divisor = np.linalg.norm(X, axis=1).max()
    X /= divisor
    S = r.choice(p, M, False)
    w = scatter(p, S, r.standard_normal(M))
    parts = {"train": (X, _labels_by_weights(X, w))}
    for part in ("validation", "test"):
        rows = r.standard_normal((n, p)) / divisor
        parts[part] = (rows, _labels_by_weights(rows, w))
    return {**parts, "w": w, "b": 0.0, "S": S, "M": M}


def draw_M(n: int, p: int, seed: int) -> int:
    """How many features matter in a problem of `aytug_one`, uniformly from 1 to p, for every size and seed anew."""
    return int(np.random.default_rng([seed, 1, n, p]).integers(1, p + 1))


@check_arguments
def aytug_two(M: Count | None = None, seed: Seed = 0) -> dict[str, Any]:
    """Data set two of Aytug (2015), section 4: 1000 samples of 800 features; the paper's M are `AYTUG_TWO_M`.

    The draws and what is returned are those of `aytug_one`.
    """
    return aytug_one(1000, 800, M, seed)


@check_arguments
def write(
    name: str,
    out: str | Path = ".",
    *,
    n_samples: Count | None = None,
    n_features: Count | None = None,
    M: Count | None = None,
    kind: str | None = None,
    density: Density | None = None,
    seed: Seed = 0,
    force: bool = False,
) -> Path:
    """Write an instance and the .toml beside it.

    Parameters
    ----------
    name : {"aytug-one", "aytug-two", "tan-2010", "tan-2014", "tan-2014-groups", "paul-2016", "credit", "wdbc"}
    out : path-like
        A folder, made where it is missing, or the path of the data file.
    n_samples, n_features, M, seed
        Of `aytug_one` (500 samples of 20 features unless given); ``aytug-two`` takes M and seed. Of `tan_2010`
        (500 of 103, of which 3 are no noise), without M. Of `tan_2014` (4096 of 4096, M = 400): 8 bytes an
        entry for training and test each. Of `tan_2014_groups` (4096 of 20,000, M = 100 groups). Of `paul_2016` (200
        of 1000, M = 40).
    kind, density
        Of `tan_2014`: "I", "II" or "III", and the share of entries that are not zero.
    force : bool
        Whether files of these names with other contents are replaced.

    Returns
    -------
    Path
        The data file, svmlight or CSV, npz for Tan's and Paul's. Made data comes with ``STEM-test`` beside it, Aytug's
        also with ``STEM-validation``.

    Raises
    ------
    UsageError
        An unknown name, a parameter that the instance does not take, a path that cannot be written, or one where
        something else stands.
    """
    given = {"n_samples": n_samples, "n_features": n_features, "M": M, "kind": kind, "density": density}
    taken = TAKEN
    if name not in taken:
        raise UsageError(f"no instance is called {name!r}; there are {', '.join(taken)}")
    sizes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    for key, value in sizes.items():
        if key not in taken[name]:
            raise UsageError(f"{key} = {value}: in {name} it is fixed")
    if seed != 0 and not taken[name]:
        raise UsageError(f"seed = {seed}: {name} is always the same")
    if name == "credit":
        return _save(Path(out), name, ".csv", {"": shipped.credit}, shipped.CREDIT_TOML, force)
    if name == "wdbc":
        X, y, description = shipped.wdbc()
        return _save(Path(out), name, ".svm", {"": lambda: _svmlight_text(X, y)}, description, force)
    made = _draw_instance(name, sizes, seed)
    n, p = made["train"][0].shape
    more = "".join(f"-{key}{sizes[key]}" for key in ("kind", "density") if key in sizes)
    stem = f"{name}-{n}x{p}" + (f"-M{made['M']}" if "M" in taken[name] else "") + more + f"-seed{seed}"
    suffix, form = (".npz", _npz_bytes) if name in NPZ else (".svm", _svmlight_text)
    parts = {"train": "", "validation": "-validation", "test": "-test"}
    contents = {
        tail: partial(form, *made[part], *([made["names"]] if "names" in made else []))
        for part, tail in parts.items()
        if part in made
    }
    return _save(Path(out), stem, suffix, contents, _description_toml(name, made, taken[name], seed), force)


def _draw_instance(name: str, sizes: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The made instance of a name, with what the user gave in place of its usual sizes."""
    if name == "aytug-one":
        return aytug_one(**{"n_samples": 500, "n_features": 20, **sizes}, seed=seed)
    if name == "aytug-two":
        return aytug_two(**sizes, seed=seed)
    if name == "tan-2014":
        usual = {"n_samples": 4096, "n_features": 4096, "M": 400}
        return tan_2014(**{**usual, **sizes}, seed=seed)
    if name == "tan-2014-groups":
        return tan_2014_groups(**sizes, seed=seed)
    if name == "paul-2016":
        return paul_2016(sizes.get("n_samples", 200), sizes.get("n_features", 1000), sizes.get("M", 40), seed)
    p = sizes.get("n_features", INFORMATIVE + 100)
    if p < INFORMATIVE:
        raise UsageError(f"n_features = {p} must be at least {INFORMATIVE}: f1, f2, f3 and then the noise")
    return {**tan_2010(sizes.get("n_samples", 500), p - INFORMATIVE, seed), "M": 2}


def _labels_by_weights(X: Array, w: Array) -> npt.NDArray[np.int64]:
    return np.where(X @ w > 0, 1, -1)


def _svmlight_text(X: Array, y: npt.ArrayLike) -> str:
    """Every value in the shortest form that reads back as the same float64."""
    lines = []
    for label, row in zip(np.asarray(y).tolist(), X.tolist(), strict=True):
        lines.append(f"{label:+d} " + " ".join(f"{j}:{value!r}" for j, value in enumerate(row, 1)))
    return "\n".join(lines) + "\n"


def _npz_bytes(X: Any, y: npt.ArrayLike, names: tuple[str, ...] | None = None) -> bytes:
    """The arrays as `mipfs.read` takes them."""
    labels = np.asarray(y)
    arrays = {"y": labels, **csc_arrays(X)} if sparse.issparse(X) else {"X": X, "y": labels}
    if names is not None:
        arrays["feature_names"] = np.array(names)
    return npz_bytes(arrays)


def _save(
    out: Path,
    stem: str,
    suffix: str,
    contents: Mapping[str, Callable[[], str | bytes]],
    description: str,
    force: bool,
) -> Path:
    """Write the parts and the description; `out` is a folder or, by its suffix, the data file itself."""
    if out.suffix in FORMATS and out.suffix not in ("", suffix) and not os.path.isdir(out):
        raise UsageError(f"{out}: {stem} is written as {suffix}; give a folder or a name that ends so")
    data = out if out.suffix == suffix else out / f"{stem}{suffix}"
    made = {data.with_name(f"{data.stem}{tail}{suffix}"): content for tail, content in contents.items()}
    made[data.with_suffix(".toml")] = lambda: description
    try:
        data.parent.mkdir(parents=True, exist_ok=True)
        for path, content in made.items():
            if not force and os.path.exists(path) and path.read_bytes() != _as_bytes(content()):
                raise UsageError(f"{path} is there already and holds something else; give another --out, or --force")
    except (OSError, ValueError) as error:  # of a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{data}: cannot be written: {reason}; give another place for it") from None
    output_file.save((path, _as_bytes(content())) for path, content in made.items())
    return data


def _as_bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8")


def _description_toml(name: str, made: Mapping[str, Any], taken: tuple[str, ...], seed: int) -> str:
    """The .toml of made data: how to make it again, and which features matter."""
    n, p = made["train"][0].shape
    support = np.sort(made["S"])
    sizes = {"n_samples": n, "n_features": p, **{key: made[key] for key in ("M", "kind", "density") if key in made}}
    options = "".join(f"--{key.replace('_', '-')} {sizes[key]} " for key in sizes if key in taken)
    names = made.get("names") or [f"x{j + 1}" for j in range(p)]
    weights = f"weights = {made['w'][support].tolist()!r}\n" if "w" in made else ""
    weights += "".join(f"{key} = {made[key]!r}\n".replace("'", '"') for key in ("kind", "density") if key in made)
    groups = ""
    if "groups" in made:
        weights += f"chosen = [{', '.join(repr(one) for one in made['chosen'])}]\n".replace("'", '"')
        lines = (f"{g} = [{', '.join(repr(names[j]) for j in ids)}]\n" for g, ids in made["groups"].items())
        groups = "\n[groups]\n" + "".join(lines).replace("'", '"')
    return f"""\
# {_RECIPES[name][0]}
[data]
source = "made by `mipfs generate {name} {options}--seed {seed}`, after {_RECIPES[name][1]}"
licence = "CC0-1.0"

[select]
M = {made["M"]}

[generator]
name = "{name}"
n_samples = {n}
n_features = {p}
M = {made["M"]}
seed = {seed}
support = [{", ".join(f'"{names[j]}"' for j in support)}]
{weights}{groups}"""


_SIGNS = "Labels are the signs of X w; "
_PAUL = "Paul 2016, section 5.3"
_RECIPES = {
    "aytug-one": (_SIGNS + "validation and test rows stand in files of their own.", "Aytug 2015, section 4"),
    "aytug-two": (_SIGNS + "validation and test rows stand in files of their own.", "Aytug 2015, section 4"),
    "tan-2010": ("The support is the composite pair; test rows stand in a file of their own.", "Tan 2010, section 3.3"),
    "tan-2014": (_SIGNS + "test rows stand in a file of their own.", "Tan 2014, section 6.2.1"),
    "tan-2014-groups": (_SIGNS + "test rows stand in a file of their own.", "Tan 2014, section 7.2"),
    "paul-2016": ("The last of the support matters the most; test rows stand in a file of their own.", _PAUL),
}
