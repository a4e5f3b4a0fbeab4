"""A stop ends a model call whatever it waits for: the caller is woken, and the service sees its connection closed.

The stand-in would be silent for a minute in each of these; it counts the calls that their caller has closed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from cicada.answering.spending import Spending
from cicada.models.bedrock_text import BedrockTextModel
from cicada.models.ports import Finished, Prompt, Stopped, TextDelta
from cicada.models.retries import RetryPolicy
from cicada.models.sampling import Sampling
from tests.wire.bedrock_service import ANSWER, BedrockService, Identity, serving

PROMPT = Prompt("Answer from the passages.", "Who found the letter?")
MODEL = "local.extractive"
MINUTE_MS = 60_000
PATIENCE_S = 20.0

PHASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "before the response": ("bedrock.slow", {"first_ms": MINUTE_MS}, 0),
    "before the first piece": ("bedrock.slow", {"first_piece_ms": MINUTE_MS}, 0),
    "between two pieces": ("bedrock.slow", {"delay_ms": MINUTE_MS}, 1),
    "after a stall": ("bedrock.cut", {"mode": "stall", "after": 3}, 3),
    # urllib3 passes nothing of such a response on before 64 KiB of it are there
    "in a response without a marked end": ("bedrock.cut", {"mode": "stall", "after": 3, "framing": "close"}, 0),
    "while pieces arrive": ("bedrock.slow", {"delay_ms": 5}, 4),
}
"""The fault, and the pieces that arrive under it before the stop."""


@pytest.fixture(scope="module")
def identity(tmp_path_factory) -> Identity:
    return Identity.make(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["plain", "tls"])
def service(request, identity) -> Iterator[BedrockService]:
    with serving(identity if request.param == "tls" else None) as running:
        running.answer = lambda system, user: "word " * 10_000
        yield running


@pytest.fixture
def leash() -> Spending:
    return Spending("rag", calls=4, deadline=float("inf"))


def model(service: BedrockService, **settings: Any) -> BedrockTextModel:
    client = service.client(read_timeout_s=MINUTE_MS / 1000)
    return BedrockTextModel(client, MODEL, max_tokens=8000, silence_s=60, sampling=Sampling(), **settings)


class Reading:
    """An answer that is read on a thread of its own."""

    def __init__(self, text_model: BedrockTextModel, leash: Spending) -> None:
        self.pieces: list[TextDelta | Finished] = []
        self._more = threading.Condition()
        self.done: Future[None] = ThreadPoolExecutor(1).submit(self._read, text_model, leash)

    def _read(self, text_model: BedrockTextModel, leash: Spending) -> None:
        for piece in text_model.stream(PROMPT, time_budget_s=300, leash=leash):
            with self._more:
                self.pieces.append(piece)
                self._more.notify_all()

    def wait_for(self, pieces: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: len(self.pieces) >= pieces, PATIENCE_S)


def until(holds: Callable[[], bool]) -> None:
    passed = threading.Event()
    for _ in range(int(PATIENCE_S / 0.01)):
        if holds():
            return
        passed.wait(0.01)
    raise AssertionError("it does not come true")


def arm(service: BedrockService, phase: str) -> int:
    fault, params, pieces = PHASES[phase]
    service.faults.arm(fault, **params)
    return pieces


@pytest.mark.parametrize("phase", PHASES)
def test_a_stop_wakes_the_caller_and_closes_the_connection(service, leash, phase):
    pieces = arm(service, phase)
    reading = Reading(model(service), leash)
    until(lambda: service.streams()["open"] == 1)
    reading.wait_for(pieces)
    leash.stop()
    with pytest.raises(Stopped):
        reading.done.result(PATIENCE_S)
    until(lambda: service.streams() == {"open": 0, "finished": 0, "closed_by_caller": 1, "broken": 0, "refused": 0})
    assert service.calls["converse-stream"] == 1


@pytest.mark.parametrize("phase", [phase for phase, (_, _, pieces) in PHASES.items() if pieces])
def test_closing_the_iterator_closes_the_connection_too(service, leash, phase):
    arm(service, phase)
    pieces = model(service).stream(PROMPT, time_budget_s=300, leash=leash)
    assert isinstance(next(pieces), TextDelta)
    pieces.close()
    until(lambda: service.streams()["closed_by_caller"] == 1)


@pytest.mark.parametrize("phase", ["before the response", "before the first piece", "after a stall"])
def test_a_call_that_runs_out_of_time_closes_its_connection(service, leash, phase):
    arm(service, phase)
    with pytest.raises(Exception, match="time budget"):
        list(model(service).stream(PROMPT, time_budget_s=0.3, leash=leash))
    until(lambda: service.streams()["closed_by_caller"] == 1)


def test_a_stop_on_a_connection_that_has_carried_other_calls_strikes_its_own(service, leash):
    service.answer = lambda system, user: ANSWER
    answers = model(service)
    for _ in range(3):
        assert isinstance(list(answers.stream(PROMPT, time_budget_s=60, leash=leash))[-1], Finished)
    arm(service, "before the response")
    reading = Reading(answers, leash)
    until(lambda: service.streams()["open"] == 1)
    leash.stop()
    with pytest.raises(Stopped):
        reading.done.result(PATIENCE_S)
    until(lambda: service.streams()["closed_by_caller"] == 1)


def test_a_stop_after_an_answer_leaves_the_next_one_alone(service, leash):
    service.answer = lambda system, user: ANSWER
    answers = model(service)
    pieces = answers.stream(PROMPT, time_budget_s=60, leash=leash)
    while not isinstance(next(pieces), Finished):
        pass
    leash.stop()  # the iterator of the first answer is at its last item, and still open
    another = Spending("rag", calls=1, deadline=float("inf"))
    assert isinstance(list(answers.stream(PROMPT, time_budget_s=60, leash=another))[-1], Finished)
    pieces.close()
    assert service.streams()["closed_by_caller"] == 0


def test_a_stop_of_one_answer_leaves_another_of_the_same_client_alone(service, leash):
    service.answer = lambda system, user: "word " * 40
    service.faults.arm("bedrock.slow", delay_ms=10)
    answers = model(service)
    stopped = Reading(answers, leash)
    whole = Reading(answers, Spending("direct", calls=1, deadline=float("inf")))
    stopped.wait_for(2)
    whole.wait_for(2)
    leash.stop()
    with pytest.raises(Stopped):
        stopped.done.result(PATIENCE_S)
    whole.done.result(PATIENCE_S)
    assert isinstance(whole.pieces[-1], Finished)


def test_a_stop_wakes_a_caller_that_waits_to_try_again(service, leash):
    service.faults.arm("bedrock.throttle")
    reading = Reading(model(service, retry=RetryPolicy(base_s=60, cap_s=60), share=lambda: 0.9), leash)
    until(lambda: service.calls["converse-stream"] == 1 and leash.calls_left == 2)
    leash.stop()
    with pytest.raises(Stopped):
        reading.done.result(PATIENCE_S)
    assert service.calls["converse-stream"] == 1


def test_no_call_is_made_once_the_leash_has_stopped(service, leash):
    leash.stop()
    with pytest.raises(Stopped):
        list(model(service).stream(PROMPT, time_budget_s=60, leash=leash))
    assert leash.calls_left == 4
    assert not service.calls
