"""Forms filled in by a model, where the wire plays no part: schemas, corrections, stops and who is asked first."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from cicada.errors import (
    AnswerBlocked,
    AnswerMalformed,
    AnswerTruncated,
    BudgetSpent,
    ContextTooLarge,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from cicada.models.bedrock_structured import BedrockStructuredModel
from cicada.models.failure import Failure
from cicada.models.model_ids import Sampling
from cicada.models.ports import Prompt, Stopped, Unbounded, Usage
from cicada.models.retries import PATIENT, Pace, RetryPolicy
from cicada.models.structured_output import MALFORMED_HINT, OutputMisfit, form_name, form_schema, read_form
from cicada.models.unary_calls import UnaryCalls


class Score(BaseModel):
    """How well one passage answers."""

    passage: int = Field(ge=1, description="its number")
    relevance: Annotated[float, Field(ge=0, le=10)]
    note: str | None = None


class PassageScores(BaseModel):
    """The scores of all passages."""

    scores: list[Score]
    language: Literal["en", "ja"] | None = Field(description="of the question")


class Branch(BaseModel):
    """A form that holds itself."""

    branches: list[Branch] = []


GOOD = {"scores": [{"passage": 1, "relevance": 7}], "language": None}
BAD = {"scores": [{"passage": 1, "relevance": 70}], "language": "fr"}


def used(value: Any, *, name: str = "passage_scores", stop: str = "tool_use", tokens: int = 5) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"text": " "}, {"toolUse": {"toolUseId": "t-1", "name": name, "input": value}}]
    return answered(content, stop, tokens)


def answered(content: list[dict[str, Any]], stop: str = "end_turn", tokens: int = 5) -> dict[str, Any]:
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop,
        "usage": {"inputTokens": 100, "outputTokens": tokens},
    }


def refused(code: str, message: str = "", status: int = 400) -> ClientError:
    error = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(error, "Converse")


class Client:
    """Gives each call its answer, and keeps what was sent."""

    def __init__(self, *answers: dict[str, Any] | Exception | Callable[[], dict[str, Any]]) -> None:
        self.answers = list(answers)
        self.sent: list[dict[str, Any]] = []

    def converse(self, **request: Any) -> dict[str, Any]:
        self.sent.append(json.loads(json.dumps(request)))
        answer = self.answers[len(self.sent) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer


class Held:
    """A call scope that allows some calls."""

    def __init__(self, calls: int = 99) -> None:
        self.left = calls
        self.wake: Callable[[], None] | None = None

    def call(self) -> None:
        if self.left == 0:
            raise BudgetSpent("no call is left")
        self.left -= 1

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        self.wake = wake

        def off() -> None:
            self.wake = None

        return off


def fill(client: Client, call_scope: Held | None = None, **extra: Any) -> Any:
    model = BedrockStructuredModel(
        client, "a.model", max_tokens=64, **{"sampling": Sampling(), "pause": lambda *_: None, **extra}
    )
    return model.fill(
        Prompt("Judge.", "Which?"), PassageScores, time_budget_s=5.0, call_scope=call_scope or Unbounded()
    )


def test_the_model_is_made_to_call_the_forms_tool_and_its_input_is_the_form():
    client = Client(used(GOOD))
    filled = fill(client, temperature=0.0)
    assert filled.value == PassageScores(scores=[Score(passage=1, relevance=7.0)], language=None)
    assert (filled.usage, filled.calls) == (Usage(100, 5), 1)
    (sent,) = client.sent
    assert sent["toolConfig"]["toolChoice"] == {"tool": {"name": "passage_scores"}}
    assert sent["inferenceConfig"] == {"maxTokens": 64, "temperature": 0.0}
    assert sent["system"] == [{"text": "Judge."}]


def test_a_schema_has_no_reference_and_only_what_every_model_takes_at_its_top():
    schema = form_schema(PassageScores)
    assert set(schema) == {"type", "properties", "required"}
    assert "$ref" not in json.dumps(schema)
    score = schema["properties"]["scores"]["items"]
    assert score["properties"]["note"] == {"type": "string"}, "what may be left out need not be null"
    assert score["required"] == ["passage", "relevance"]
    assert schema["properties"]["language"]["anyOf"][1] == {"type": "null"}, "what must be there may be null"


def test_a_form_that_holds_itself_is_a_bug_of_its_author():
    with pytest.raises(ValueError, match="Branch is recursive"):
        form_schema(Branch)


def test_a_tools_name_is_one_that_the_service_takes():
    made = type("Ranking[Two, Kinds]" + "x" * 80, (BaseModel,), {})
    assert form_name(PassageScores) == "passage_scores"
    assert form_name(made).startswith("ranking_two_kinds_")
    assert len(form_name(made)) == 64


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
@settings(max_examples=60)
def test_whatever_a_model_gives_is_a_form_or_a_misfit(value: Any):
    problems: tuple[str, ...] = ()
    read = None
    try:
        read = read_form(PassageScores, value)
    except OutputMisfit as misfit:
        problems = misfit.problems
    assert (0 < len(problems) <= 10) != isinstance(read, PassageScores)


def test_an_input_that_does_not_fit_is_sent_back_once_with_what_is_wrong_and_no_values():
    client = Client(used(BAD), used(GOOD, tokens=7))
    filled = fill(client)
    assert filled.calls == 2
    assert filled.usage == Usage(200, 12)
    question, said, told = client.sent[1]["messages"]
    assert question == client.sent[0]["messages"][0]
    assert said == {"role": "assistant", "content": [used(BAD)["output"]["message"]["content"][1]]}, "no blank text"
    result = told["content"][0]["toolResult"]
    assert result["toolUseId"] == "t-1"
    assert "scores.0.relevance: Input should be less than or equal to 10" in result["content"][0]["text"]
    assert "70" not in result["content"][0]["text"]


def test_twice_what_does_not_fit_is_malformed_with_the_usage_of_both():
    with pytest.raises(AnswerMalformed, match=r"scores\.0\.relevance") as raised:
        fill(Client(used(BAD), used(BAD)))
    assert raised.value.usage == Usage(200, 10)


def test_a_model_that_talks_instead_is_asked_for_the_call():
    client = Client(answered([{"text": "Passage 1."}]), used(GOOD))
    assert fill(client).calls == 2
    assert "passage_scores was not called" in client.sent[1]["messages"][2]["content"][0]["text"]


@pytest.mark.parametrize("stop", ["malformed_tool_use", "malformed_model_output"])
def test_an_answer_that_the_service_could_not_read_is_asked_for_anew(stop: str):
    client = Client(answered([], stop), used(GOOD))
    assert fill(client).calls == 2
    assert client.sent[1]["messages"] == client.sent[0]["messages"]
    assert client.sent[1]["system"][0]["text"].endswith(MALFORMED_HINT)


def test_every_tool_call_of_an_answer_gets_its_result():
    double = used(BAD)
    double["output"]["message"]["content"].append({"toolUse": {"toolUseId": "t-2", "name": "other", "input": {}}})
    client = Client(double, used(GOOD))
    fill(client)
    told = client.sent[1]["messages"][2]["content"]
    assert [block["toolResult"]["toolUseId"] for block in told] == ["t-1", "t-2"]


@pytest.mark.parametrize(
    ("stop", "error"),
    [
        ("max_tokens", AnswerTruncated),
        ("guardrail_intervened", AnswerBlocked),
        ("content_filtered", AnswerBlocked),
        ("model_context_window_exceeded", ContextTooLarge),
    ],
)
def test_other_stops_are_no_answer_whatever_was_written(stop: str, error: type[ModelError]):
    with pytest.raises(error) as raised:
        fill(Client(used(GOOD, stop=stop)))
    assert raised.value.usage == Usage(100, 5)


def test_usage_that_the_service_does_not_tell_is_not_made_up():
    silent = used(GOOD) | {"usage": None}
    assert fill(Client(silent)).usage == Usage(reported=False)
    assert not fill(Client(used(BAD), silent)).usage.reported


def test_a_throttled_call_is_made_again_and_each_try_is_asked_for():
    call_scope = Held(2)
    client = Client(refused("ThrottlingException", status=429), used(GOOD))
    assert fill(client, call_scope).calls == 2
    assert call_scope.left == 0
    assert call_scope.wake is None, "nobody listens any more"


def test_without_a_call_left_the_last_failure_is_told():
    with pytest.raises(BudgetSpent):
        fill(Client(), Held(0))
    with pytest.raises(ModelBusy):
        fill(Client(refused("ThrottlingException", status=429)), Held(1))
    with pytest.raises(AnswerMalformed):
        fill(Client(used(BAD)), Held(1))


def test_retries_end_with_their_policy():
    with pytest.raises(ModelUnavailable):
        fill(Client(*[refused("InternalServerException", status=500)] * 2), retry=RetryPolicy(max_attempts=2))


def test_a_refused_temperature_is_left_out_from_then_on():
    sampling = Sampling()
    client = Client(refused("ValidationException", "`temperature` is deprecated for this model."), used(GOOD))
    assert fill(client, temperature=0.2, sampling=sampling).calls == 2
    assert client.sent[1]["inferenceConfig"] == {"maxTokens": 64}
    assert sampling.accepted("a.model", {"temperature": 0.2}) == {}


def test_a_model_that_cannot_be_made_to_call_the_tool_is_asked_to():
    refusal = refused("ValidationException", "This model doesn't support the toolConfig.toolChoice.tool field.")
    client = Client(refusal, used(GOOD))
    assert fill(client).calls == 2
    assert "toolChoice" not in client.sent[1]["toolConfig"]
    assert "calling the tool passage_scores" in client.sent[1]["system"][0]["text"]


def test_calls_that_are_refused_together_all_learn_that_the_tool_cannot_be_forced():
    together = threading.Barrier(2)

    class Refusing:
        def converse(self, **request: Any) -> dict[str, Any]:
            if "toolChoice" not in request["toolConfig"]:
                return used(GOOD)
            together.wait(5)
            raise refused("ValidationException", "This model doesn't support the toolConfig.toolChoice.tool field.")

    model = BedrockStructuredModel(Refusing(), "a.model", sampling=Sampling())
    with ThreadPoolExecutor(2) as pool:
        made = [
            pool.submit(model.fill, Prompt("", "?"), PassageScores, time_budget_s=5, call_scope=Unbounded())
            for _ in range(2)
        ]
    assert [one.result().calls for one in made] == [2, 2]


@pytest.mark.parametrize(
    ("failure", "known"),
    [
        (refused("ThrottlingException", status=429), True),
        (refused("ServiceUnavailableException", status=503), True),
        (EndpointConnectionError(endpoint_url="https://bedrock"), True),
        (refused("InternalServerException", status=500), False),
        (ReadTimeoutError(endpoint_url="https://bedrock"), False),
        (OSError("connection reset"), False),
    ],
)
def test_a_try_that_may_have_been_paid_for_leaves_the_usage_unknown(failure: Exception, known: bool):
    assert fill(Client(failure, used(GOOD))).usage == Usage(100, 5, reported=known)
    with pytest.raises(ModelError) as raised:
        fill(Client(failure), Held(1))
    assert raised.value.usage == Usage(reported=known)


def test_a_misfit_before_a_time_out_is_a_part_of_what_was_paid_for():
    release = threading.Event()

    def never() -> dict[str, Any]:
        release.wait(5)
        return used(GOOD)

    now_s = 0.0

    def misfit() -> dict[str, Any]:
        nonlocal now_s
        now_s = 59.9
        return used(BAD)

    model = BedrockStructuredModel(Client(misfit, never), "a.model", sampling=Sampling(), clock=lambda: now_s)
    with pytest.raises(ModelUnavailable) as raised:
        model.fill(Prompt("", "?"), PassageScores, time_budget_s=60, call_scope=Unbounded())
    release.set()
    assert raised.value.usage == Usage(100, 5, reported=False)


def test_another_refusal_is_final():
    with pytest.raises(ModelRefused):
        fill(Client(refused("ValidationException", "The provided model identifier is invalid.")))
    with pytest.raises(ModelRefused):
        fill(Client(refused("AccessDeniedException", status=403)))


def test_a_service_that_asks_to_be_left_alone_is():
    failures = iter([OSError("busy")])
    waited: list[float] = []

    def call() -> str:
        for failure in failures:
            raise failure
        return "done"

    calls = UnaryCalls(
        Unbounded(),
        60.0,
        Pace(PATIENT, lambda: 0.0, lambda seconds, _: waited.append(seconds), lambda: 0.0),
        read_failure=lambda _: Failure(ModelBusy("busy"), retry=True, retry_after_s=20.0, free=True),
    )
    with calls:
        assert calls.make(call) == "done"
    assert (waited, calls.count, calls.lost) == ([20.0], 2, 0)


def test_a_bug_is_no_failure_of_the_model():
    with pytest.raises(ZeroDivisionError):
        fill(Client(ZeroDivisionError()))


def test_the_time_budget_ends_a_call_that_does_not_answer():
    release = threading.Event()

    def never() -> dict[str, Any]:
        release.wait(5)
        return used(GOOD)

    model = BedrockStructuredModel(Client(never), "a.model")
    with pytest.raises(ModelUnavailable, match="time budget"):
        model.fill(Prompt("", "?"), PassageScores, time_budget_s=0.02, call_scope=Unbounded())
    release.set()


def test_a_stop_ends_the_wait_for_an_answer():
    call_scope, release, ended = Held(), threading.Event(), threading.Event()

    def stopping() -> dict[str, Any]:
        assert call_scope.wake is not None
        call_scope.wake()
        release.wait(20)
        ended.set()
        return used(GOOD)

    with pytest.raises(Stopped):
        fill(Client(stopping), call_scope)
    assert not ended.is_set()
    release.set()
