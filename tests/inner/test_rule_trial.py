"""A branching rule that reads beyond an array of a node is refused before it is compiled."""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mipfs.branching import RULES, begin_memory, get_rule
from mipfs.errors import UsageError
from mipfs.inner import rule_trial


def as_rule(choose: Any) -> Any:
    """What a compiled function looks like to the trial."""
    return SimpleNamespace(py_func=choose)


def by_number(relaxed: Any, places: Any) -> Any:
    """Takes numbers of atoms for places."""
    return places[0] if relaxed.w[relaxed.atoms[places[0]]] >= 0.0 else places[-1]


def second(relaxed: Any, places: Any) -> Any:
    """Supposes two places."""
    return places[1] if relaxed.sigma[places[1]] > relaxed.sigma[places[0]] else places[0]


def of_memory(relaxed: Any, places: Any) -> Any:
    """Reads a memory that it did not ask for."""
    return places[0] if relaxed.memory[relaxed.atoms[places[0]], 0] >= 0.0 else places[-1]


@pytest.mark.parametrize("choose", [by_number, second, of_memory])
def test_a_rule_that_reads_beyond_an_array_is_refused(choose: Any) -> None:
    with pytest.raises(UsageError, match=r"branching = 'own': choose of .*test_rule_trial reads beyond an array"):
        rule_trial.check("own", as_rule(choose), 0)


def of_many(relaxed: Any, places: Any) -> Any:
    """Reads beyond an array of a large node alone."""
    return places[0] if places.size <= 20 or relaxed.sigma[relaxed.sigma.size + 50] > 0.0 else places[-1]


def of_all(relaxed: Any, places: Any) -> Any:
    """The same of a node with many atoms and one place."""
    return places[0] if relaxed.w.size <= 3000 or relaxed.w[relaxed.w.size] > 0.0 else places[-1]


def far(relaxed: Any) -> Any:
    """What a rule calls, compiled."""
    return relaxed.sigma[relaxed.sigma.size]


helper = as_rule(far)
far.__module__ = "elsewhere"


def by_helper(relaxed: Any, places: Any) -> Any:
    """Reads beyond an array in a compiled function that it calls."""
    return places[0] if helper(relaxed) > 0.0 else places[-1]


@pytest.mark.parametrize(("choose", "in_play"), [(of_many, 35), (of_many, 10**6), (of_all, 4000), (by_helper, 1)])
def test_a_rule_is_tried_on_nodes_as_large_as_those_of_the_problem(choose: Any, in_play: int) -> None:
    begin = time.perf_counter()
    with pytest.raises(UsageError, match=r"choose of .*test_rule_trial reads beyond an array of a node with \d+ atoms"):
        rule_trial.check("own", as_rule(choose), 0, in_play)
    assert time.perf_counter() - begin < 1.0
    if choose is not by_helper:
        rule_trial.check("own", as_rule(choose), 0, 9)


def alone(relaxed: Any) -> Any:
    """A rule of other arguments."""
    return 0


def writes(relaxed: Any, places: Any) -> Any:
    """A rule that writes into its memory."""
    relaxed.memory[relaxed.atoms[0], 0] += 1.0
    return places[0]


def test_what_would_not_compile_is_said_in_words() -> None:
    with pytest.raises(UsageError, match=r"choose of .*test_rule_trial takes other arguments than \(relaxed, places\)"):
        rule_trial.check("own", as_rule(alone), 0)
    with pytest.raises(UsageError, match=r"choose of .*test_rule_trial writes into relaxed.memory, which learn alone"):
        rule_trial.check("own", as_rule(writes), 1)


def new_array(memory: Any, splits: Any) -> Any:
    return memory + 1.0


def of_nan(memory: Any, splits: Any) -> Any:
    memory[:, 1] = np.nan


def wrong_size(memory: Any, splits: Any) -> Any:
    memory += splits["gain"]


def third(memory: Any, splits: Any) -> Any:
    np.add.at(memory, (splits["atom"], 2), 1.0)


def by_feature(memory: Any, splits: Any) -> Any:
    memory[splits["feature"], 1] += splits["gain"]


def in_place(memory: Any, splits: Any) -> Any:
    np.add.at(memory, (splits["atom"], 1), splits["gain"])
    return memory


@pytest.mark.parametrize(
    ("learn", "message"),
    [
        (new_array, "returns ndarray"),
        (of_nan, "leaves a number in memory that is not finite"),
        (wrong_size, r":\d+: ValueError: operands could not be broadcast"),
        (third, r":\d+: IndexError: index 2 is out of bounds"),
        (by_feature, r":\d+: ValueError: no field of name feature"),
        (in_place, None),
    ],
)
def test_what_a_rule_learns_is_tried(learn: Any, message: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_rule")
    module.learn, module.MEMORY = learn, 2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own_rule", module)
    monkeypatch.setitem(RULES, "own", "own_rule")
    if message is None:
        rule_trial.check_learning("own", 35)
    else:
        said = rf"branching = 'own': learn\(memory, splits\) of test_rule_trial.py.*{message}"
        with pytest.raises(UsageError, match=said):
            rule_trial.check_learning("own", 35)


def test_what_python_cannot_run_is_left_to_the_compiler() -> None:
    def only_compiled(relaxed: Any, places: Any) -> Any:
        raise NotImplementedError

    rule_trial.check("own", as_rule(only_compiled), 0)
    rule_trial.check("own", as_rule(of_memory), 1)


@pytest.mark.parametrize("name", RULES)
def test_the_rules_of_the_package_pass_as_they_would_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = get_rule(name)
    monkeypatch.setattr(rule.py_func, "__module__", "elsewhere")
    rule_trial.check(name, rule, begin_memory(name, 1).shape[1], 5000)
    monkeypatch.setattr(rule_trial, "is_own", lambda module: False)
    rule_trial.check_learning(name, 5000)
