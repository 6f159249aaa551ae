"""A branching rule that reads beyond an array of a node is refused before it is compiled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

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


def test_what_python_cannot_run_is_left_to_the_compiler() -> None:
    def only_compiled(relaxed: Any, places: Any) -> Any:
        raise NotImplementedError

    rule_trial.check("own", as_rule(only_compiled), 0)
    rule_trial.check("own", as_rule(of_memory), 1)


@pytest.mark.parametrize("name", RULES)
def test_the_rules_of_the_package_pass_as_they_would_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = get_rule(name)
    monkeypatch.setattr(rule.py_func, "__module__", "elsewhere")
    rule_trial.check(name, rule, begin_memory(name, 1).shape[1])
