"""What is done once another package is imported, whoever imports it, and in whatever order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def once_imported(package: str, act: Callable[[], object]) -> None:
    """Do something now if a package is imported, else right after it is.

    Parameters
    ----------
    package : name of a module, which need not be installed
    act : called once; its errors are those of the import
    """
    if package in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, _Watch(package, act))


class _Watch(MetaPathFinder):
    """Finds nothing by itself: a package that others find tells when it is executed."""

    def __init__(self, package: str, act: Callable[[], object]) -> None:
        self.package = package
        self.act = act

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders have, with a loader that acts in the end."""
        if fullname != self.package:
            return None
        others = [one for one in sys.meta_path if not isinstance(one, _Watch) and hasattr(one, "find_spec")]
        spec = next(filter(None, (one.find_spec(fullname, path, target) for one in others)), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if module.__name__ == self.package:  # some loaders are those of several modules
                _act_on(self.package)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _act_on(package: str) -> None:
    """Do what is to be done once a package is imported, by whoever asked for it, once."""
    for watch in [one for one in sys.meta_path if isinstance(one, _Watch) and one.package == package]:
        watch.act()
        sys.meta_path.remove(watch)
