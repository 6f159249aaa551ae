# mypy: disable-error-code="no-untyped-call, attr-defined"
"""The one decorator of the numba kernels: machine code is kept on disk under a key over the sources of all kernels.

numba's own cache of a function sees the file that the function stands in, and its code holds that of the kernels which
it calls: after an edit in one file an old copy of it would go on running inside another. `mipfs.compiled.kept` says
where code lies, and under which key; `mipfs.compiled.cache` hands it to numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba import config, njit

from mipfs.compiled.cache import keep


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function with numba, as ``njit(cache=True, **options)`` does, under the key of all kernels.

    Parameters
    ----------
    **options
        Of ``numba.njit``: ``nogil``, ``fastmath``, ``inline``, ``forceinline``.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if cast(Any, config).DISABLE_JIT:
            return function
        kernel = cast(Any, njit)(**options)(function)
        keep(kernel)
        return kernel

    return decorate
