"""What is left out while kernels compile is what nobody reads."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from llvmlite import ir as llvm_ir
from numba import njit, types
from numba.core import base, errors, event
from numba.core.compiler import run_frontend
from numba.core.postproc import PostProcessor
from numba.core.registry import cpu_target
from numba.core.types.functions import BaseFunction
from numba.core.typing.npydecl import NumpyRulesArrayOperator

from mipfs.compiled import spared

COLUMN = types.Array(types.float64, 1, "C")
CALLS: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (operator.add, (types.int64, types.float64)),
    (operator.add, (COLUMN, types.float64)),
    (operator.add, (types.literal(2), types.literal(3))),
    (operator.add, (types.unicode_type, types.unicode_type)),
    (operator.add, (types.Optional(COLUMN), COLUMN)),
    (operator.iadd, (COLUMN, types.float64)),
    (operator.lt, (types.float64, types.int64)),
    (operator.getitem, (COLUMN, types.intp)),
    (operator.getitem, (types.UniTuple(COLUMN, 2), types.literal(1))),
    (np.sqrt, (types.float64,)),
)
REFUSED = ((operator.add, (types.none, COLUMN)), (operator.getitem, (types.float64, types.intp)))


def _function(of: Any) -> Any:
    context = cpu_target.typing_context
    context.refresh()
    return context, context.resolve_value_type(of)


@pytest.mark.parametrize(("of", "given"), CALLS)
def test_a_call_is_resolved_as_numba_does_it(of: Any, given: tuple[Any, ...]) -> None:
    context, function = _function(of)
    own = function.get_call_type(context, given, {})
    made = function.get_impl_key(own)
    with spared.spared():
        for _ in range(2):  # the second is one that is remembered, where types are plain
            found = function.get_call_type(context, given, {})
            assert (found.args, found.return_type) == (own.args, own.return_type)
            assert function.get_impl_key(found) == made


@pytest.mark.parametrize(("of", "given"), REFUSED)
def test_a_call_that_nothing_fits_has_numbas_error(of: Any, given: tuple[Any, ...]) -> None:
    context, function = _function(of)
    with pytest.raises(errors.TypingError) as own:
        function.get_call_type(context, given, {})
    with spared.spared(), pytest.raises(errors.TypingError) as found:
        function.get_call_type(context, given, {})
    assert str(found.value).split() == str(own.value).split()  # but for how deep numba indents, which grows


def test_an_operation_on_numbers_is_none_of_numpys_rules() -> None:
    context, function = _function(operator.mul)
    rules = next(one for one in function.templates if issubclass(one, NumpyRulesArrayOperator))(context)
    for given in ((types.int64, types.float64), (COLUMN, types.int64), (types.Optional(types.float64), types.int64)):
        assert spared._generic(rules, given, {}) == rules.generic(given, {})


def test_where_variables_live_is_what_numba_computes() -> None:
    def summed(values: Any) -> float:
        total = 0.0
        for value in values:
            if value > 0:
                total += value
        return total

    own, lazy = run_frontend(summed), run_frontend(summed)
    PostProcessor(own).run()
    spared._run(PostProcessor(lazy))
    assert lazy.variable_lifetime.livemap == own.variable_lifetime.livemap
    assert lazy.variable_lifetime.deadmaps == own.variable_lifetime.deadmaps
    for one, run in ((own, PostProcessor.run), (lazy, spared._run)):
        run(PostProcessor(one), True)
    statements = [[str(one) for f in (g.blocks,) for block in f.values() for one in block.body] for g in (own, lazy)]
    assert statements[0] == statements[1]


def test_sizes_are_llvms() -> None:
    target = cpu_target.target_context
    named = llvm_ir.global_context.get_identified_type("a pair of mipfs")
    if named.is_opaque:
        named.set_body(llvm_ir.IntType(64), llvm_ir.IntType(8))
    pair = llvm_ir.LiteralStructType([llvm_ir.DoubleType(), llvm_ir.IntType(8)])
    for kind in (pair, llvm_ir.IntType(32), named, named.as_pointer()):
        own = target.get_abi_sizeof(kind)
        with spared.spared():
            assert (target.get_abi_sizeof(kind), target.get_abi_sizeof(kind)) == (own, own)


def test_what_is_declared_meanwhile_is_seen() -> None:
    target = cpu_target.target_context

    def declared() -> None:
        """Something new."""

    with spared.spared():
        target.refresh()
        base.builtin_registry.functions.append((lambda: None, declared, ()))
        assert declared not in target._defns
        target.refresh()
        assert declared in target._defns


def test_who_listens_is_told() -> None:
    told: list[str] = []

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            told.append(f"start {event.kind}")

        def on_end(self, event: Any) -> None:
            told.append(f"end {event.kind}")

    with (
        spared.spared(),
        event.trigger_event("numba:run_pass"),
        event.install_listener("numba:run_pass", Listener()),
        event.trigger_event("numba:run_pass"),
        event.trigger_event("numba:compile"),
    ):
        event.start_event("numba:llvm_lock")
    assert told == ["start numba:run_pass", "end numba:run_pass"]


def test_all_is_numbas_own_afterwards() -> None:
    def now() -> list[Any]:
        owners = PostProcessor, BaseFunction, NumpyRulesArrayOperator, base.BaseContext, base, event, type(types.Type)
        names = (
            "run", "get_call_type", "generic", "get_abi_sizeof", "refresh", "_has_loc", "start_event", "end_event",
            "trigger_event", "__instancecheck__",
        )  # fmt: skip
        return [vars(owner).get(name) for owner in owners for name in names]

    before = now()
    with spared.spared():
        assert now() != before
        assert isinstance(types.int64, types.Integer)
        assert not isinstance(types.int64, types.Float)
        assert njit(lambda x: x + 1)(2) == 3
    assert now() == before
