"""Kernels that kernels call are linked, and get a wrapper around the same code when Python calls them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit, typeof, types
from numba.core import config, event, ir
from numba.core.compiler import Flags
from numba.core.registry import cpu_target
from numba.core.targetconfig import TargetConfig

from mipfs.compiled import Cache, compiled, kept, linked, shortcuts
from mipfs.pointers import Step, call

PAIR = np.dtype([("a", np.float64), ("n", np.int64)], align=True)
NAMES = ("first", "second")


@compiled()
def _share(x, y):  # type: ignore[no-untyped-def]
    return x / y


@compiled()
def _shares(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(x.size):
        total += _share(x[i], y[i])
    return total


@compiled()
def _named(pair, count):  # type: ignore[no-untyped-def]
    """Gives back what Python made, and what is made of Python's objects; an error says numbers of the call."""
    if count < 0:
        raise ValueError("too few", count)
    if count > 1:
        raise IndexError(NAMES[count % 2])
    pair.a += count
    return NAMES[count], np.full(2, pair.a)


@compiled()
def _same(pair):  # type: ignore[no-untyped-def]
    pair.n += 1
    return pair


@compiled()
def _asks(pair, count):  # type: ignore[no-untyped-def]
    name, values = _named(_same(pair), count)
    return len(name) + values.sum()


@njit
def _doubled(x):  # type: ignore[no-untyped-def]
    """Of another package."""
    return 2.0 * x


@compiled()
def _doubles(x):  # type: ignore[no-untyped-def]
    return _doubled(x)


@compiled()
def _is_even(n):  # type: ignore[no-untyped-def]
    return n == 0 or _is_even_again(n - 1)


@compiled()
def _is_even_again(n):  # type: ignore[no-untyped-def]
    if n == 0:
        return False
    return n == 1 or _is_even_again(n - 2)


@compiled(nogil=True)
def _halve(x):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        x[i] *= 0.5


@compiled(nogil=True)
def _halve_twice(x):  # type: ignore[no-untyped-def]
    _halve(x)
    _halve(x)


@compiled(nogil=True)
def _stepped(step, x):  # type: ignore[no-untyped-def]
    call(step, x)


KERNELS = (_share, _shares, _named, _same, _asks, _doubles, _is_even, _is_even_again, _halve, _halve_twice, _stepped)


def _forget() -> None:
    """As in another process: nothing is compiled or looked up yet."""
    for kernel in KERNELS:
        kernel._make_finalizer()()
        kernel.overloads.clear()
        kernel._reset_overloads()
        kernel._inner.clear()
        kernel._cache = Cache(kernel.py_func)


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Nothing is kept, and nothing compiled."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    for one in (kept.home, kept.folders):
        one.cache_clear()
    _forget()
    yield
    _forget()
    for one in (kept.home, kept.folders):
        one.cache_clear()


def _typed(kernel: Any) -> list[Any]:
    """The argument types of what was typed and lowered, not loaded or only wrapped; filled from now on."""
    seen: list[Any] = []
    core = kernel._compiler._compile_core

    def watched(args: Any, return_type: Any) -> Any:
        seen.append(args)
        return core(args, return_type)

    kernel._compiler._compile_core = watched
    return seen


def test_a_kernel_that_another_calls_gets_a_wrapper_when_python_calls_it() -> None:
    typed = _typed(_share)
    x, y = np.array([1.0, 2.0]), np.array([2.0, 4.0])
    assert _shares(x, y) == 1.0
    assert not _share._inner.keys() ^ _share.overloads
    with pytest.raises(ZeroDivisionError):
        _shares(x, np.zeros(2))
    assert _share(1.0, 4.0) == 0.25
    assert not _share._inner
    assert _shares(x, y) == 1.0
    with pytest.raises(ZeroDivisionError):
        _share(1.0, 0.0)
    assert len(typed) == 1
    assert _share(1, 4) == 0.25
    assert len(typed) == 2
    del _share._compiler._compile_core


@pytest.mark.sampled(2)
@pytest.mark.parametrize("again", [False, True])
def test_what_python_made_and_gets_is_the_same(again: bool) -> None:
    """Records, names and errors; compiled for another, then wrapped, then loaded where both were kept."""
    pair = np.zeros(1, dtype=PAIR)[0]
    assert _asks(pair, 0) == 5.0
    for _ in range(1 + again):
        if again:
            _forget()
            assert _asks(pair, 0) >= 5.0
        name, values = _named(pair, 1)
        assert (name, _same(pair)["a"], _same(pair).dtype) == ("second", pair["a"], PAIR)
        assert values.tolist() == [pair["a"]] * 2
        with pytest.raises(ValueError, match="too few") as low:
            _named(pair, -3)
        assert low.value.args == ("too few", -3)
        with pytest.raises(IndexError, match="second"):
            _named(pair, 3)
        with pytest.raises(IndexError, match="first"):
            _asks(pair, 4)
        assert _asks(pair, 0) == 5.0 + 2.0 * pair["a"]


def test_code_to_link_that_is_kept_is_wrapped_and_kept_too() -> None:
    x = np.array([4.0])
    _halve_twice(x)
    for hits in (0, 1):
        _forget()
        typed = _typed(_halve)
        _halve(x)
        assert (typed, sum(_halve.stats.cache_hits.values()) >= hits) == ([], True)
        del _halve._compiler._compile_core
        _halve_twice(x)
    assert x.tolist() == [4.0 / 2**8]


@pytest.mark.slow
def test_wrapped_code_is_whole_where_it_is_the_first_that_runs(tmp_path: Path) -> None:
    """What counts references was emitted by other kernels alone: in a new process its address was 0."""
    given = (
        "import numpy as np; from mipfs.kernels.order import sink, sort_up; x, i = np.array([1.0, 3.0]), np.arange(2)"
    )
    for what in ("sort_up(x, i)", "sink(x, i, 0, 2)", "sink(x, i, 0, 2)"):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        script = f"{given}; {what}; print(x.tolist())"
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == ("[1.0, 3.0]" if "sort" in what else "[3.0, 1.0]")


def test_a_kernel_that_was_linked_is_a_step() -> None:
    x = np.array([8.0])
    _halve_twice(x)
    step = Step.of(_halve, x).made()
    assert step.address
    _stepped(step, x)
    assert x.tolist() == [1.0]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_kernels_that_call_themselves(order: tuple[int, int]) -> None:
    both = _is_even, _is_even_again
    said = {k: [bool(both[k](n)) for n in range(5)] for k in order}
    assert said[0] == [n == 0 or (n - 1) % 2 == 1 for n in range(5)]
    assert said[1] == [n % 2 == 1 for n in range(5)]
    _forget()
    assert [bool(_is_even(n)) for n in range(5)] == said[0]


def test_an_error_of_the_types_leaves_what_was_there() -> None:
    x = np.array([2.0])
    _halve_twice(x)
    with pytest.raises(Exception, match="_halve"):
        _halve_twice("words")
    with pytest.raises(Exception, match="size"):
        _halve("words")
    _halve(x)
    assert x.tolist() == [0.25]
    assert linked._Compiling.depth == 0


def test_with_an_unknown_numba_each_function_is_compiled_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked, "LINKS", False)
    assert _shares(np.array([1.0, 2.0]), np.array([2.0, 4.0])) == 1.0
    assert not _share._inner
    assert _share(1.0, 4.0) == 0.25
    with pytest.raises(ZeroDivisionError):
        _share(1.0, 0.0)


def test_numba_is_its_own_again() -> None:
    x = np.array([2.0])
    before = TargetConfig.__eq__, TargetConfig.__hash__, event.install_timer
    _halve_twice(x)
    _halve(x)
    with pytest.raises(Exception, match="words"):
        _halve.compile((types.literal("words"),))
    target = cpu_target.target_context
    assert not {"get_executable", "create_cfunc_wrapper"} & set(vars(target))
    assert not {"_library_class", "set_env"} & set(vars(target.codegen()))
    assert "__deepcopy__" not in vars(ir.Scope)
    assert before == (TargetConfig.__eq__, TargetConfig.__hash__, event.install_timer)


def test_what_another_package_compiles_is_whole() -> None:
    """Also where a kernel called it first: it can be handed over as a function, and called from Python."""
    assert _doubles(4.0) == 8.0
    of = types.FunctionType(types.float64(types.float64))

    @njit((of,))
    def asked(f):  # type: ignore[no-untyped-def]
        return f(3.0)

    assert (asked(_doubled), _doubled(5.0)) == (6.0, 10.0)


def test_the_variables_of_a_statement_are_those_that_numba_finds() -> None:
    loc = ir.Loc("here", 1)
    a, b = (ir.Var(ir.Scope(None, loc), name, loc) for name in "ab")
    calls = ir.Expr.call(a, (b, a), (("axis", b),), loc), ir.Expr.build_tuple([a, b], loc), ir.Const(1, loc)
    for value in (*calls, a):
        one = ir.Assign(value, b, loc)
        found = one.list_vars()
        assert shortcuts._variables(one, vars(one)) == found
        assert found[-1] is b
        assert shortcuts._variables(one, value) == one._rec_list_vars(value)


def test_configurations_are_as_equal_as_numba_says() -> None:
    one, other, third = Flags(), Flags(), Flags()
    other.nrt = Flags.options["nrt"].default
    third.nrt = not other.nrt
    for a in (one, other, third, None):
        for b in (one, other, third):
            assert (b == a) == (shortcuts._are_equal(b, a) is True)
    assert {hash(a) for a in (one, other, third)} == {shortcuts._hash_of(Flags)}
    assert typeof(1.0) == types.float64
