"""What the workflow caught, in words for people."""

from __future__ import annotations

import pytest

from cicada.attempts.chain import longest_path, strategy_failure, strategy_failures
from cicada.errors import CicadaError, IndexMissing, StreamBroken
from cicada.protocol.events import StrategyName


@pytest.mark.parametrize("error", [StreamBroken, IndexMissing])
def test_our_own_errors_keep_their_code_and_sentence(error):
    failure = strategy_failure("rag", {"Error": error.__name__, "Cause": "{}"})
    assert (failure.code, failure.reason) == (error.code, error.told)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Lambda.TooManyRequestsException", "capacity"),
        ("Sandbox.Timedout", "worker_timeout"),
        ("States.Timeout", "worker_timeout"),
        ("Lambda.Unknown", "worker_died"),
        ("Runtime.ExitError", "worker_died"),
        ("KeyError", CicadaError.code),
        ("", CicadaError.code),
    ],
)
def test_failures_of_the_worker_itself_have_codes_too(name, code):
    failure = strategy_failure("rag", {"Error": name, "Cause": "Traceback with internals"})
    assert failure.code == code
    assert "internals" not in failure.reason


@pytest.mark.parametrize("code", ["stream_broken", "worker_died", "worker_lost"])
def test_what_an_earlier_execution_left_is_named_by_its_code(code):
    assert strategy_failure("rag", {"Error": code, "Cause": "It broke off."}).code == code


@pytest.mark.parametrize("entry", ["hybrid", "rag", "cag"])
def test_failures_come_in_the_order_of_trying_whatever_the_objects_order(entry):
    path = longest_path(entry)
    caught = {strategy: {"Error": "StreamBroken"} for strategy in sorted(path)}
    assert tuple(failure.strategy for failure in strategy_failures(caught, entry)) == path


def test_what_was_tried_before_an_execution_began_comes_first():
    caught: dict[StrategyName, dict[str, str]] = {"rag": {"Error": "StreamBroken"}, "hybrid": {"Error": "model_busy"}}
    assert [failure.strategy for failure in strategy_failures(caught, "rag")] == ["hybrid", "rag"]
