"""One classifier a class, against the rest: what `mipfs solve` writes of data with more than two classes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.check.classes import check_classes
from mipfs.check.several import DocumentReport
from mipfs.data.frames import as_rows
from mipfs.data.instance import Instance
from mipfs.errors import DataError
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import check_arguments
from mipfs.proof import pair
from mipfs.report.blocks import ReportBlock, Reported
from mipfs.report.visible import finite_or_none
from mipfs.result import archive, documents
from mipfs.result.class_results import ClassResults
from mipfs.result.documents import CLASSES, NO_CLASSES
from mipfs.result.result import CERTIFICATE_LIMIT, SCHEMA


@dataclass(frozen=True, eq=False)
class OneVsRest(ClassResults, Reported):
    """One classifier a class; a row is of the class whose classifier has the largest value."""

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Values of every class, (n, K)."""
        X = as_rows(X)
        return np.column_stack([one.decision_function(X) for one in self.classifiers])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of every row, (n,)."""
        return self.labels_of(self.decision_function(X))

    def labels_of(self, values: Array) -> npt.NDArray[Any]:
        """The classes of the largest values (n, K)."""
        best: npt.NDArray[Any] = np.asarray(self.classes)[values.argmax(axis=1)]
        return best

    def verify(self, instances: Sequence[Instance], name: str | None = None) -> DocumentReport:
        """Check every proof, or that of the class `name`, against the data of the classes against the rest."""
        content, entries = archive.packed_together(self.proofs, "classes.cert.npz", math.inf)
        return check_classes(
            self.document(entries, _archive_entry(content, "classes.cert.npz")),
            Path("classes.cert.npz"),
            content,
            instances,
            name,
        )

    def document(
        self,
        certificates: Sequence[Mapping[str, Any] | None] | None = None,
        together: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """What ``--json`` writes, with what it says of the certificates and of the archive that they are in."""
        entries = certificates or [one.certificate for one in self.proofs]
        proofs = [replace(one, certificate=entry).document() for one, entry in zip(self.proofs, entries, strict=True)]
        shared = self.together is not None
        return {
            "schema": SCHEMA,
            "kind": CLASSES,
            "command": self.command,
            "shared_support": shared,
            "bias": self.bias if shared else all(one.params["bias"] for one in self.classifiers),
            "classes": list(self.classes),
            "class_weight": dict(self.class_weight),
            "status": self.status.name,
            "objective": finite_or_none(self.objective),
            "bound": finite_or_none(self.bound),
            "gap": finite_or_none(self.gap),
            "selected": list(self.selected),
            "results": [one.document() for one in self.classifiers] if shared else proofs,
            "together": proofs[0] if shared else None,
            "certificate": next((entry for entry in entries if entry is not None), None),
            **({} if together is None else {"archive": together}),
        }

    def save(self, path: str | Path, *, certificate_limit: float = CERTIFICATE_LIMIT) -> None:
        """Write the JSON, and the certificates beside it as ``NAME.cert.npz``; both or neither."""
        path = Path(path)
        name = pair.sidecar_of(path).name
        content, entries = archive.packed_together(self.proofs, name, 1e6 * certificate_limit)
        document = self.document(entries, _archive_entry(content, name))
        pair.save(path, f"{json.dumps(document, ensure_ascii=False)}\n".encode(), content)
        object.__setattr__(self, "file", str(path))

    @classmethod
    @check_arguments
    def load(cls, path: str | Path) -> OneVsRest:
        """Read a JSON that `save` wrote, with its certificates.

        Raises
        ------
        DataError
            The file holds something else.
        """
        found = classes_or_none(path)
        if found is None:
            raise DataError("it holds no classifiers of more than two classes", NO_CLASSES, path=Path(path))
        return found

    def blocks(self) -> list[ReportBlock]:
        """Of the report."""
        from mipfs.lab.classes.shown import blocks

        return blocks(self)


def _archive_entry(content: bytes | None, name: str) -> Mapping[str, Any] | None:
    """What a document says of its archive: the one beside it is found by that, whenever a process was ended."""
    return None if content is None else {"file": name, "sha256": hashlib.sha256(content).hexdigest()}


def classes_or_none(path: str | Path) -> OneVsRest | None:
    """What a file holds, where it is of more than two classes; None otherwise, or where it cannot be read."""
    kind, document = documents.read_contents(path)
    if kind != CLASSES:
        return None
    saved = documents.classes_of(path, document)
    documents.require_consistent(path, document)
    return OneVsRest(**vars(saved))
