"""Text as scikit-learn users store it, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from tests.cli.outcome import Cli


def test_text_as_it_is_kept_beside_its_labels_and_words(cli: Cli, tmp_path: Path) -> None:
    folder, documents = tmp_path, ["the cat sat", "a dog ran", "cat and cat", "dog eats dog"] * 4
    vectorizer, labels = TfidfVectorizer(), ["cats", "dogs"] * 8
    sparse.save_npz(folder / "X.npz", vectorizer.fit_transform(documents))
    np.save(folder / "y.npy", labels)
    (folder / "names.txt").write_text("\n".join(vectorizer.get_feature_names_out()))
    result, new = folder / "r.json", folder / "new"
    solved = cli("solve", "fgm", folder / "X.npz", "-p", "M=2", "--json", result, "--quiet")
    assert solved.code == 0
    assert set(json.loads(result.read_text())["selected"]) <= {"cat", "dog", "the", "ran"}
    new.mkdir()
    for name in ("X.npz", "names.txt"):
        (new / name).write_bytes((folder / name).read_bytes())
    predicted = cli("predict", result, new / "X.npz")
    assert predicted.code == 0
    assert predicted.out.split()[-16:] == labels
    assert cli("verify", result, folder / "X.npz").code == 0
    (folder / "names.txt").write_text("a\n")
    failed = cli("solve", "fgm", folder / "X.npz", "-p", "M=2")
    assert failed.code == 2
    assert failed.err.count("\n") == 1
    for name in ("y.npy", "names.txt"):
        refused = cli("solve", "fgm", folder / "X.npz", "-p", "M=2", "--json", folder / name)
        assert refused.code == 2
