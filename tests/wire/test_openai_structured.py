"""OpenAiStructuredModel over real HTTP: forms by schema, by any JSON object, by the prompt alone, and mended once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from cicada.attempts.budgets import AttemptBudget
from cicada.errors import AnswerBlocked, AnswerMalformed, AnswerTruncated, BudgetSpent, ModelBusy, StreamBroken
from cicada.models.endpoints import Endpoints
from cicada.models.factory import ModelFactory
from cicada.models.model_ids import Sampling
from cicada.models.openai_chat import ChatSettings, OpenAiChat
from cicada.models.openai_dialect import Dialects
from cicada.models.openai_structured import OpenAiStructuredModel
from cicada.models.ports import Prompt, Stopped, StructuredModel, Unbounded, Usage
from cicada.models.retries import RetryPolicy
from tests.wire.openai_service import OpenAiService, serving

PROMPT = Prompt("Read the passage.", "Aoi found the letter on the second evening.")


class Person(BaseModel):
    """Somebody."""

    name: str
    role: Literal["finder", "writer"] | None = None


class Findings(BaseModel):
    """Who is named, and how sure that is."""

    people: list[Person] = Field(description="in the order of the text")
    certainty: int = Field(ge=0, le=10)
    note: str | None = None


WHOLE = {"people": [{"name": "Aoi", "role": "finder"}], "certainty": 9, "note": None}
VALUE = Findings(people=[Person(name="Aoi", role="finder")], certainty=9)


@pytest.fixture
def service() -> Iterator[OpenAiService]:
    with serving() as running:
        running.answer = lambda body: json.dumps(WHOLE)
        yield running


def model(service: OpenAiService, *, dialects: Dialects | None = None, max_tokens: int = 500) -> OpenAiStructuredModel:
    chat = OpenAiChat(
        "mine/model",
        "model",
        service.connection(),
        None,
        ChatSettings(max_tokens, retry=RetryPolicy(max_attempts=2, base_s=0.001)),
        sampling=Sampling(),
        dialects=dialects or Dialects(),
    )
    return OpenAiStructuredModel(chat)


def fill(structured: StructuredModel, call_scope: Any = None) -> Any:
    return structured.fill(PROMPT, Findings, time_budget_s=20, call_scope=call_scope or Unbounded())


def answers(service: OpenAiService, *texts: str) -> None:
    """Say these in turn, and the last one again to those who ask for more."""
    service.answer = lambda body: texts[min(service.calls, len(texts)) - 1]


def formats(service: OpenAiService) -> list[str | None]:
    return [(body.get("response_format") or {}).get("type") for body in service.bodies]


def test_a_form_is_filled_in_by_a_strict_schema(service):
    filled = fill(model(service))
    assert filled.value == VALUE
    assert filled.calls == 1
    assert filled.usage.reported
    asked = service.bodies[0]["response_format"]["json_schema"]
    assert (asked["name"], asked["strict"]) == ("findings", True)
    assert asked["description"] == "Who is named, and how sure that is."
    schema = asked["schema"]
    assert schema["required"] == ["people", "certainty", "note"]
    assert schema["additionalProperties"] is False
    person = schema["properties"]["people"]["items"]
    assert person["required"] == ["name", "role"]
    assert person["additionalProperties"] is False
    assert {"type": "null"} in person["properties"]["role"]["anyOf"]
    assert "$ref" not in json.dumps(schema)


def test_the_schema_is_no_part_of_the_prompt_where_the_endpoint_takes_it(service):
    fill(model(service))
    assert service.bodies[0]["messages"] == [
        {"role": "system", "content": PROMPT.system},
        {"role": "user", "content": PROMPT.user},
    ]


@pytest.mark.parametrize(
    ("message", "times", "sent"),
    [
        ("This model does not support response format `json_schema`.", 1, ["json_schema", "json_object"]),
        ("The response_format parameter is unsupported. Leave it unset.", 2, ["json_schema", "json_object", None]),
    ],
)
def test_a_format_that_is_refused_is_replaced_by_the_next_and_that_is_remembered(service, message, times, sent):
    memory = Dialects()
    service.faults.arm("openai.error", times=times, status=400, message=message)
    assert fill(model(service, dialects=memory)).value == VALUE
    assert formats(service) == sent
    assert fill(model(service, dialects=memory)).value == VALUE
    assert formats(service) == [*sent, sent[-1]]
    assert '"certainty"' in service.bodies[-1]["messages"][0]["content"]
    assert "JSON" in service.bodies[-1]["messages"][0]["content"]


@pytest.mark.parametrize("text", ["```json\n{}\n```", "Here it is: {} I hope that helps.", "<think>Hm.</think>\n{}"])
def test_json_is_found_among_what_models_put_around_it(service, text):
    answers(service, text.replace("{}", json.dumps(WHOLE)))
    assert fill(model(service)).value == VALUE


def test_an_answer_that_does_not_fit_is_asked_for_once_more_with_what_is_wrong(service):
    answers(service, json.dumps({**WHOLE, "certainty": 99}), json.dumps(WHOLE))
    filled = fill(model(service))
    assert filled.value == VALUE
    assert filled.calls == 2
    said = service.bodies[1]["messages"][-2:]
    assert said[0] == {"role": "assistant", "content": json.dumps({**WHOLE, "certainty": 99})}
    assert said[1]["role"] == "user"
    assert "certainty: Input should be less than or equal to 10" in said[1]["content"]


def test_the_usage_is_that_of_all_calls(service):
    service.usage = lambda prompt, completion: {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}
    answers(service, "{}", json.dumps(WHOLE))
    assert fill(model(service)).usage == Usage(100, 14)


def test_a_stream_that_broke_was_paid_for_by_nobody_knows_how_much(service):
    service.usage = lambda prompt, completion: {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}
    service.faults.arm("openai.cut", times=1, mode="reset", after=2)
    with pytest.raises(StreamBroken) as raised:
        fill(model(service))
    assert raised.value.usage == Usage(reported=False)
    service.faults.arm("openai.refuse", times=1)
    assert fill(model(service)).usage == Usage(50, 7, reported=False)
    service.faults.arm("openai.error", times=1, status=429)
    assert fill(model(service)).usage == Usage(50, 7)


def test_an_endpoint_that_ignores_the_schema_is_told_it_in_the_prompt(service):
    memory = Dialects()
    answers(service, "Aoi, I think.", json.dumps(WHOLE))
    assert fill(model(service, dialects=memory)).value == VALUE
    assert formats(service) == ["json_schema", "json_object"]
    assert '"certainty"' in service.bodies[1]["messages"][0]["content"]
    fill(model(service, dialects=memory))
    assert formats(service)[2:] == ["json_object"]


def test_an_answer_that_twice_does_not_fit_is_malformed_and_its_usage_told(service):
    service.usage = lambda prompt, completion: {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}
    answers(service, "{}")
    with pytest.raises(AnswerMalformed, match="people: Field required") as raised:
        fill(model(service))
    assert service.calls == 2
    assert raised.value.usage == Usage(100, 14)


def test_without_a_call_left_to_mend_it_the_first_misfit_is_told(service):
    answers(service, "{}")
    with pytest.raises(AnswerMalformed, match="people"):
        fill(model(service), AttemptBudget("rag", calls=1, deadline=float("inf")))
    assert service.calls == 1


def test_an_endpoint_that_cannot_make_its_model_write_json_is_asked_once_more(service):
    service.faults.arm(
        "openai.error", times=1, status=400, code="json_validate_failed", message="Failed to generate JSON."
    )
    filled = fill(model(service))
    assert (filled.value, filled.calls) == (VALUE, 2)


def test_a_truncated_and_a_blocked_form_are_no_forms(service):
    with pytest.raises(AnswerTruncated):
        fill(model(service, max_tokens=3))
    service.faults.arm("openai.stop", reason="content_filter")
    with pytest.raises(AnswerBlocked):
        fill(model(service))


def test_a_busy_endpoint_is_tried_again_and_then_told(service):
    service.faults.arm("openai.error", status=429)
    with pytest.raises(ModelBusy):
        fill(model(service))
    assert service.calls == 2


def test_how_often_it_is_tried_is_the_callers_to_say(service):
    price = {"input_usd_per_million": 1, "output_usd_per_million": 1}
    endpoints = Endpoints.model_validate({"mine": {"base_url": service.url, "models": {"model": price}}})
    models = ModelFactory(bedrock=lambda: None, secrets=lambda: None, endpoints=endpoints)
    service.faults.arm("openai.error", status=429)
    with pytest.raises(ModelBusy):
        fill(models.structured("mine/model", max_tokens=500, retry=RetryPolicy(max_attempts=1)))
    assert service.calls == 1
    with pytest.raises(ModelBusy):
        fill(models.structured("mine/model", max_tokens=500, retry=RetryPolicy(max_attempts=3, base_s=0.001)))
    assert service.calls == 4


def test_no_call_is_made_without_leave(service):
    with pytest.raises(BudgetSpent):
        fill(model(service), AttemptBudget("rag", calls=0, deadline=float("inf")))
    call_scope = AttemptBudget("rag", calls=2, deadline=float("inf"))
    call_scope.stop()
    with pytest.raises(Stopped):
        fill(model(service), call_scope)
    assert service.calls == 0
