"""What the workflow caught, in words for people."""

from __future__ import annotations

import pytest

from cicada.answering.failures import strategy_failure, strategy_failures
from cicada.answering.workflow import CHAIN, entry_strategy
from cicada.errors import CicadaError, IndexMissing, StreamBroken


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


def test_failures_come_in_the_order_of_the_chain_whatever_the_objects_order():
    caught = {strategy: {"Error": "StreamBroken"} for strategy in reversed(CHAIN)}
    assert tuple(failure.strategy for failure in strategy_failures(caught)) == CHAIN


def test_every_route_enters_the_chain():
    assert entry_strategy("direct") == "direct"
    for route in ("rag", "hybrid", "cag", "profile_agent", "theory_agent"):
        assert entry_strategy(route) == "rag"
