"""The Pyomo models of this package: ordinary ones, whose LP files SCIP reads too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyomo.environ as pyo


class DeclaredModel(pyo.ConcreteModel):  # type: ignore[misc]
    """A model whose own ``write`` leaves an LP file that every reader of quadratic rows takes."""

    def write(self, filename: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Write the model to a file, as Pyomo does; squares in an LP as SCIP reads them, without a space."""
        found = super().write(filename, *args, **kwargs)
        path = Path(found[0]) if isinstance(found, tuple) else None
        if path is not None and path.suffix.lower() == ".lp":
            path.write_bytes(path.read_bytes().replace(b" ^ 2\n", b" ^2\n"))
        return found
