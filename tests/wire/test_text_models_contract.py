"""What every text model promises (:class:`cicada.models.ports.TextModel`), kept by each adapter over real HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Event
from typing import Any

import pytest

from cicada.attempts.budgets import AttemptBudget
from cicada.errors import (
    AnswerBlocked,
    AnswerTruncated,
    BudgetSpent,
    ModelBusy,
    ModelRefused,
    ModelUnavailable,
    StreamBroken,
)
from cicada.models.bedrock_text import BedrockTextModel
from cicada.models.model_ids import Sampling
from cicada.models.openai_chat import ChatSettings, OpenAiChat, OpenAiTextModel
from cicada.models.openai_dialect import Dialects
from cicada.models.ports import Finished, Prompt, Stopped, TextDelta, TextModel, Unbounded
from cicada.models.retries import INTERACTIVE, RetryPolicy
from tests.wire import bedrock_service, openai_service
from tests.wire.bedrock_service import Identity

PROMPT = Prompt("Answer from the passages.", "Who found the letter?")
ANSWER = "Aoi found the letter in the boathouse on the second evening [1]."
MINUTE_MS = 60_000
PATIENCE_S = 20.0


@dataclass
class House:
    """A service and its adapter, as this page looks at them."""

    name: str
    arm: Callable[..., None]
    """Arms a fault by the name it has with both."""
    says: Callable[[str], None]
    model: Callable[..., TextModel]
    calls: Callable[[], int]
    streams: Callable[[], dict[str, int]]


def early(name: str, status: int) -> dict[str, Any]:
    """The parameters of an error before the stream."""
    return {"status": status, "exception": "SomeException"} if name == "bedrock" else {"status": status}


@contextmanager
def bedrock(identity: Identity | None) -> Iterator[House]:
    with bedrock_service.serving(identity) as service:

        def model(retry: RetryPolicy = INTERACTIVE, **settings: Any) -> TextModel:
            client = service.client(read_timeout_s=60)
            return BedrockTextModel(client, "local.extractive", retry=retry, sampling=Sampling(), **settings)

        def says(text: str) -> None:
            service.answer = lambda system, user: text

        yield House(
            "bedrock",
            lambda fault, **params: service.faults.arm(f"bedrock.{fault}", **params),
            says,
            model,
            lambda: service.calls["converse-stream"],
            service.streams,
        )


@contextmanager
def openai(identity: Identity | None) -> Iterator[House]:
    with openai_service.serving(identity) as service:

        def model(
            retry: RetryPolicy = INTERACTIVE,
            max_tokens: int = 2048,
            silence_s: float = 20.0,
            temperature: float | None = None,
            **clocks: Any,
        ) -> TextModel:
            chat = OpenAiChat(
                "mine/model",
                "model",
                service.connection(read_timeout_s=60),
                None,
                ChatSettings(max_tokens, temperature, silence_s=silence_s, retry=retry),
                sampling=Sampling(),
                dialects=Dialects(),
                **clocks,
            )
            return OpenAiTextModel(chat)

        def says(text: str) -> None:
            service.answer = lambda body: text

        yield House(
            "openai",
            lambda fault, **params: service.faults.arm(f"openai.{fault}", **params),
            says,
            model,
            lambda: service.calls,
            service.streams,
        )


@pytest.fixture(scope="module")
def identity(tmp_path_factory) -> Identity:
    return Identity.make(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["bedrock", "bedrock-tls", "openai", "openai-tls"])
def house(request, identity) -> Iterator[House]:
    name, _, tls = request.param.partition("-")
    with (bedrock if name == "bedrock" else openai)(identity if tls else None) as running:
        running.says(ANSWER)
        yield running


@pytest.fixture
def call_scope() -> AttemptBudget:
    return AttemptBudget("rag", calls=4, deadline=float("inf"))


def read(model: TextModel, call_scope: Any = None) -> list[Any]:
    return list(model.stream(PROMPT, time_budget_s=PATIENCE_S, call_scope=call_scope or Unbounded()))


def test_the_last_item_is_one_finish_with_the_usage_and_all_others_are_text(house):
    *texts, end = read(house.model())
    assert "".join(piece.text for piece in texts) == ANSWER
    assert isinstance(end, Finished)
    assert end.stop_reason == "end_turn"
    assert end.usage.reported
    assert min(end.usage.input_tokens, end.usage.output_tokens) > 0


@pytest.mark.parametrize("mode", ["reset", "silent", "garbled", "stall"])
@pytest.mark.parametrize("after", [0, 3])
def test_a_stream_that_is_cut_anywhere_is_broken_and_never_written_again(house, mode, after):
    house.arm("cut", mode=mode, after=after)
    kind = ModelUnavailable if (mode, after) == ("stall", 0) else StreamBroken
    with pytest.raises(kind) as raised:
        read(house.model(silence_s=0.8 if mode == "stall" else 20))
    assert type(raised.value) is kind
    assert house.calls() == 1


def test_an_answer_over_its_limit_is_truncated_and_carries_what_it_took(house):
    with pytest.raises(AnswerTruncated) as raised:
        read(house.model(max_tokens=3))
    assert raised.value.usage is not None
    assert raised.value.usage.reported


def test_a_filter_that_steps_in_blocks_the_answer(house):
    reason = {"stop_reason": "content_filtered"} if house.name == "bedrock" else {"reason": "content_filter"}
    house.arm("stop", **reason)
    with pytest.raises(AnswerBlocked):
        read(house.model())


@pytest.mark.parametrize(
    ("status", "kind", "calls"),
    [
        (429, ModelBusy, 3),
        (503, ModelUnavailable, 3),
        (500, ModelUnavailable, 3),
        (403, ModelRefused, 1),
        (404, ModelRefused, 1),
    ],
)
def test_what_may_pass_is_tried_again_and_what_may_not_is_refused(house, status, kind, calls):
    house.arm("error", **early(house.name, status))
    with pytest.raises(kind) as raised:
        read(house.model(RetryPolicy(max_attempts=3, base_s=0.001)))
    assert type(raised.value) is kind
    assert house.calls() == calls


def test_a_connection_that_is_lost_before_the_response_is_tried_again(house):
    house.arm("refuse", times=1)
    assert isinstance(read(house.model(RetryPolicy(base_s=0.001)))[-1], Finished)
    assert house.calls() == 2


def test_a_parameter_that_is_refused_is_left_out_at_once_and_from_then_on(house):
    refusal = {"message": "`temperature` is deprecated for this model.", "status": 400}
    house.arm("error", times=1, **refusal, **({"exception": "ValidationException"} if house.name == "bedrock" else {}))
    model = house.model(temperature=0.2)
    for _ in range(2):
        assert isinstance(read(model)[-1], Finished)
    assert house.calls() == 3


def test_no_more_calls_go_out_than_the_call_scope_allows(house):
    house.arm("error", **early(house.name, 429))
    call_scope = AttemptBudget("rag", calls=2, deadline=float("inf"))
    model = house.model(RetryPolicy(base_s=0.001))
    with pytest.raises(ModelBusy):
        read(model, call_scope)
    with pytest.raises(BudgetSpent):
        read(model, call_scope)
    assert house.calls() == 2


def test_the_time_budget_holds_in_mid_stream(house):
    house.says("word " * 10_000)
    house.arm("slow", delay_ms=10)
    skipped_s = 0.0
    model = house.model(
        max_tokens=8000 if house.name == "bedrock" else 80_000, clock=lambda: time.monotonic() + skipped_s
    )
    answer = model.stream(PROMPT, time_budget_s=MINUTE_MS / 1000, call_scope=Unbounded())
    assert isinstance(next(answer), TextDelta)
    skipped_s = MINUTE_MS / 1000 - 0.4
    with pytest.raises(StreamBroken, match="time budget"):
        list(answer)


# --- stops ---

PHASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "before the response": ("slow", {"first_ms": MINUTE_MS}, 0),
    "before the first piece": ("slow", {"first_piece_ms": MINUTE_MS}, 0),
    "between two pieces": ("slow", {"delay_ms": MINUTE_MS}, 1),
    "after a stall": ("cut", {"mode": "stall", "after": 3}, 3),
    "in a response without a marked end": ("cut", {"mode": "stall", "after": 3, "framing": "close"}, 0),
    "while pieces arrive": ("slow", {"delay_ms": 5}, 4),
}
"""The fault, and the pieces that arrive under it before the stop."""


class Reading:
    """An answer that is read on a thread of its own."""

    def __init__(self, model: TextModel, call_scope: AttemptBudget) -> None:
        self.pieces: list[TextDelta | Finished] = []
        self._more = Condition()
        self.done: Future[None] = ThreadPoolExecutor(1).submit(self._read, model, call_scope)

    def _read(self, model: TextModel, call_scope: AttemptBudget) -> None:
        for piece in model.stream(PROMPT, time_budget_s=300, call_scope=call_scope):
            with self._more:
                self.pieces.append(piece)
                self._more.notify_all()

    def wait_for(self, pieces: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: len(self.pieces) >= pieces, PATIENCE_S)


def until(holds: Callable[[], bool]) -> None:
    passed = Event()
    for _ in range(int(PATIENCE_S / 0.01)):
        if holds():
            return
        passed.wait(0.01)
    raise AssertionError("it does not come true")


def lengthy(house: House) -> TextModel:
    house.says("word " * 10_000)
    return house.model(max_tokens=8000 if house.name == "bedrock" else 80_000, silence_s=60.0)


@pytest.mark.parametrize("phase", PHASES)
def test_a_stop_wakes_the_caller_and_closes_the_connection_whatever_is_waited_for(house, call_scope, phase):
    fault, params, pieces = PHASES[phase]
    house.arm(fault, **params)
    reading = Reading(lengthy(house), call_scope)
    until(lambda: house.streams()["open"] == 1)
    reading.wait_for(pieces)
    call_scope.stop()
    with pytest.raises(Stopped):
        reading.done.result(PATIENCE_S)
    until(lambda: house.streams()["closed_by_caller"] == 1 and house.streams()["open"] == 0)
    assert house.calls() == 1


def test_closing_the_iterator_closes_the_connection_too(house, call_scope):
    house.arm("slow", delay_ms=MINUTE_MS)
    pieces = lengthy(house).stream(PROMPT, time_budget_s=300, call_scope=call_scope)
    assert isinstance(next(pieces), TextDelta)
    pieces.close()
    until(lambda: house.streams()["closed_by_caller"] == 1)


def test_a_stop_on_a_connection_that_has_carried_other_calls_strikes_its_own(house, call_scope):
    model = house.model(silence_s=60.0)
    for _ in range(3):
        assert isinstance(read(model, call_scope)[-1], Finished)
    until(lambda: house.streams()["open"] == 0)
    house.arm("slow", first_ms=MINUTE_MS)
    reading = Reading(model, call_scope)
    until(lambda: house.streams()["open"] == 1)
    call_scope.stop()
    with pytest.raises(Stopped):
        reading.done.result(PATIENCE_S)
    until(lambda: house.streams()["closed_by_caller"] == 1)


def test_a_stop_of_one_answer_leaves_another_of_the_same_client_alone(house, call_scope):
    house.says("word " * 100)
    house.arm("slow", delay_ms=MINUTE_MS, times=1)
    model = house.model(silence_s=60.0)
    stopped = Reading(model, call_scope)
    stopped.wait_for(1)
    house.arm("slow", delay_ms=5)
    whole = Reading(model, AttemptBudget("direct", calls=1, deadline=float("inf")))
    whole.wait_for(1)
    call_scope.stop()
    with pytest.raises(Stopped):
        stopped.done.result(PATIENCE_S)
    whole.done.result(PATIENCE_S)
    assert isinstance(whole.pieces[-1], Finished)


def test_a_call_that_runs_out_of_time_closes_its_connection(house, call_scope):
    house.arm("slow", first_piece_ms=MINUTE_MS)
    with pytest.raises(ModelUnavailable, match="time budget"):
        list(house.model().stream(PROMPT, time_budget_s=1.5, call_scope=call_scope))
    until(lambda: house.streams()["closed_by_caller"] == 1)


def test_a_stop_after_an_answer_leaves_the_next_one_alone(house, call_scope):
    model = house.model()
    pieces = model.stream(PROMPT, time_budget_s=60, call_scope=call_scope)
    while not isinstance(next(pieces), Finished):
        pass
    call_scope.stop()  # the iterator of the first answer is at its last item, and still open
    assert isinstance(read(model)[-1], Finished)
    pieces.close()
    assert house.streams()["closed_by_caller"] == 0


def test_a_stop_wakes_a_caller_that_waits_to_try_again(house, call_scope):
    house.arm("error", **early(house.name, 429))
    reading = Reading(house.model(RetryPolicy(base_s=60, cap_s=60), share=lambda: 0.9), call_scope)
    until(lambda: house.calls() == 1 and call_scope.calls_left == 2)
    call_scope.stop()
    with pytest.raises(Stopped):
        reading.done.result(PATIENCE_S)
    assert house.calls() == 1


def test_no_call_is_made_once_the_call_scope_has_stopped(house, call_scope):
    call_scope.stop()
    with pytest.raises(Stopped):
        read(house.model(), call_scope)
    assert (house.calls(), call_scope.calls_left) == (0, 4)
