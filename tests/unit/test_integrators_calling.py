"""How functions for integrators are called: what they answer, how they fail, and their published schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from cicada.errors import (
    CicadaError,
    DocumentBroken,
    DocumentUnknown,
    IndexUnavailable,
    ModelBusy,
    RetrievalInvalid,
)
from cicada.integrators import calling
from cicada.integrators.calling import FailedCall, reading, respond
from cicada.integrators.citations import extract
from cicada.integrators.documents import IndexDocumentRequest, SummaryRequest
from cicada.integrators.entities import FacetsRequest, GraphRequest
from cicada.integrators.schemas import CONTRACTS, main, schema_of, written
from cicada.integrators.sql_schema import SchemaRequest
from cicada.retrieval.pipelines.api import MAX_FILTER_KEYS, MAX_FILTER_VALUES, MAX_PROBLEMS, parse_retrieve_request
from cicada.rights import EVERYTHING
from tests.support.pipelines import ScriptedRetriever, pipelines_over

FOLDER = Path(__file__).parents[2] / "docs" / "functions"
SECRET = "s3cret-value"
PLACE = {"collection": "shelf", "source": "a.md"}
TABLE = {"name": "t", "columns": [{"name": "c"}]}
MEGABYTE = 2**20


class Echo(BaseModel):
    text: str = ""


def answered(event: object, function=lambda request: request) -> dict[str, Any]:
    return respond(event, reading(Echo), function)


def failing(error: CicadaError) -> Any:
    def function(request: Echo) -> Echo:
        raise error

    return answered({}, function)["error"]


def problem(request: str, event: object) -> str:
    """What a function says of an event that is none of its requests."""
    parse = parse_retrieve_request if request == "retrieve" else reading(CONTRACTS[request].request)
    told = respond(event, parse, lambda request: request)
    assert (told["success"], told["error"]["code"], told["error"]["retryable"]) == (False, "invalid_request", False)
    return str(told["error"]["message"])


def test_a_response_is_plain_json():
    assert answered({"text": "鐘"}) == {"text": "鐘"}


@pytest.mark.parametrize("error", [ModelBusy("at 10.0.0.1"), IndexUnavailable("s3://bucket/key")])
def test_a_failure_of_ours_is_told_by_its_code_and_its_own_words_stay_in_the_log(error: CicadaError):
    assert failing(error) == {"code": error.code, "message": error.told, "retryable": True}


@pytest.mark.parametrize("error", [RetrievalInvalid("top_k: why"), DocumentBroken("why"), DocumentUnknown("why")])
def test_what_is_wrong_with_the_callers_own_request_is_told_whole(error: CicadaError):
    assert failing(error) == {"code": error.code, "message": f"{error.told[:-1]}: {error}", "retryable": False}


def test_a_bug_fails_the_invocation():
    with pytest.raises(ZeroDivisionError):
        answered({}, lambda request: 1 / 0)


def test_a_response_that_lambda_would_not_give_back_is_a_failure_of_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calling, "MAX_RESPONSE_BYTES", 20)
    assert answered({"text": "x" * 8}) == {"text": "x" * 8}
    told = answered({"text": "鐘" * 8})  # as many characters, three times the bytes
    assert (told["success"], told["error"]["code"]) == (False, "response_too_large")


@pytest.mark.parametrize("event", [None, "text", 3, [], [{}]])
def test_an_event_that_is_no_object_is_refused(event: object):
    for request in CONTRACTS:
        assert "request: " in problem(request, event)


@pytest.mark.parametrize(
    ("request_name", "event", "field"),
    [
        ("retrieve", {"query": SECRET, "top_k": 0}, "top_k"),
        ("retrieve", {"query": SECRET, "top_k": 1_001}, "top_k"),
        ("retrieve", {"query": SECRET * 400}, "query"),
        ("retrieve", {"query": " "}, "query"),
        ("retrieve", {"query": "x", "pipeline": SECRET}, "pipeline"),
        ("retrieve", {"query": "x", "unheard_of": SECRET}, "unheard_of"),
        ("retrieve", {"query": "x", "filters": {"sources": [SECRET] * (MAX_FILTER_VALUES + 1)}}, "filters.sources"),
        ("retrieve", {"query": "x", "filters": {"metadata": {str(n): ["v"] for n in range(33)}}}, "filters.metadata"),
        ("index_document", {**PLACE, "content": 7}, "content"),
        ("index_document", {**PLACE, "content": "half of a character: \ud800"}, "content"),
        ("index_document", PLACE, "content"),
        ("index_document", {**PLACE, "content": SECRET, "content_base64": SECRET}, "content"),
        ("index_document", {**PLACE, "content": SECRET, "delete": True}, "content"),
        ("index_document", {**PLACE, "collection": "../up", "content": SECRET}, "collection"),
        ("index_document", {**PLACE, "source": "", "content": SECRET}, "source"),
        ("index_document", {**PLACE, "source": "x" * 513, "content": SECRET}, "source"),
        ("index_document", {**PLACE, "content": "x" * (6 * MEGABYTE + 1)}, "content"),
        ("index_document", {**PLACE, "content": "x", "metadata": {str(n): "v" for n in range(33)}}, "metadata"),
        ("index_document", {**PLACE, "content": "x", "metadata": {"k": ""}}, "metadata.k"),
        ("index_document", {**PLACE, "content": "x", "metadata": {"k": SECRET * 100}}, "metadata.k"),
        ("index_document", {**PLACE, "content": "x", "metadata": {"source": SECRET}}, "metadata.source"),
        ("index_document", {**PLACE, "content": "x", "metadata": {"doc_type": SECRET}}, "metadata.doc_type"),
        ("index_document", {**PLACE, "content": "x", "metadata": {"language": SECRET}}, "metadata.language"),
        ("index_document", {**PLACE, "content": "x", "metadata": {"pages": SECRET}}, "metadata.pages"),
        (
            "index_document",
            {**PLACE, "content": "x", "workflow_id": "w1", "metadata": {"workflow_id": SECRET}},
            "workflow_id and metadata.workflow_id differ",
        ),
        ("get_document_summary", {"source": SECRET}, "collection"),
        ("get_document_summary", {**PLACE, "time_budget_s": 601}, "time_budget_s"),
        ("get_document_summary", {**PLACE, "workflow_id": ""}, "workflow_id"),
        ("extract_citations", {"answer": SECRET}, "passages"),
        ("extract_citations", {"answer": "x" * 100_001, "passages": []}, "answer"),
        ("extract_citations", {"answer": "x", "passages": [{"content": "x", "n": 0}]}, "passages.0.n"),
        ("extract_citations", {"answer": "x", "passages": [{"content": "x"}] * 1_001}, "passages"),
        ("graph_query", {"operation": SECRET}, "operation"),
        ("graph_query", {"operation": "neighbours", "start": SECRET}, "neighbours requires entity"),
        ("graph_query", {"operation": "paths", "end": SECRET}, "paths requires start"),
        ("graph_query", {"operation": "paths"}, "paths requires start and end"),
        ("graph_query", {"operation": "paths", "start": "a", "end": "b", "max_hops": 99}, "max_hops"),
        ("graph_query", {"operation": "cooccurring", "entities": [SECRET] * 1_001}, "entities"),
        ("graph_query", {"operation": "cooccurring", "limit": 0}, "limit"),
        ("graph_query", {"operation": "cooccurring", "passages": -1}, "passages"),
        ("facets", {"fields": []}, "fields"),
        ("facets", {"fields": [SECRET] * 17}, "fields"),
        ("facets", {"limit": 1_001}, "limit"),
        ("enrich_schema", {"tables": []}, "tables"),
        ("enrich_schema", {"tables": [TABLE] * 51}, "tables"),
        ("enrich_schema", {"tables": [{"name": SECRET, "columns": []}]}, "tables.0.columns"),
        ("enrich_schema", {"tables": [{"name": "t", "columns": [{"name": "c"}] * 201}]}, "tables.0.columns"),
        ("enrich_schema", {"tables": [TABLE], "passages_per_table": 31}, "passages_per_table"),
        ("enrich_schema", {"tables": [TABLE], "time_budget_s": 0}, "time_budget_s"),
    ],
)
def test_bad_input_is_told_by_its_field_and_never_by_its_value(request_name: str, event: object, field: str):
    told = problem(request_name, event)
    assert field in told
    assert SECRET not in told


@pytest.mark.parametrize(
    ("request_name", "event", "told"),
    [
        ("retrieve", None, "Invalid request: request: Input should be an object"),
        ("retrieve", {"query": "x", "filters": {"metadata": []}}, "filters.metadata: Input should be an object"),
        ("retrieve", {"query": "x", "facets": "source"}, "facets: Input should be a list"),
        (
            "facets",
            {"fields": ["source"] * 17},
            "Invalid request: fields: Input has too many items: at most 16",
        ),
        ("facets", {"fields": []}, "Invalid request: fields: Input has too few items: at least 1"),
        (
            "retrieve",
            {"query": "x", "filters": {"metadata": {str(n): ["v"] for n in range(MAX_FILTER_KEYS + 1)}}},
            f"Invalid request: filters.metadata: Input has too many items: at most {MAX_FILTER_KEYS}",
        ),
        ("enrich_schema", {"tables": ["x"]}, "Invalid request: tables.0: Input should be an object"),
        ("graph_query", {"operation": "paths", "start": "a"}, "Invalid request: request: paths requires end"),
    ],
)
def test_a_problem_is_told_in_the_words_of_json(request_name: str, event: object, told: str):
    assert problem(request_name, event).endswith(told)


@cache
def validator(name: str, part: str) -> Draft202012Validator:
    return Draft202012Validator(schema_of(name)[part])


def valid(name: str, part: str, value: object) -> bool:
    """By the published schema."""
    return bool(validator(name, part).is_valid(value))


KINDS: tuple[object, ...] = (
    *("5", "yes", "on", True, -1, 0, 1, 5.0, 5.5, 10**9, 1e9, None),
    *([], ["a"], [5], {}, {"k": "v"}, {"k": ["v"]}),
)
"""Values of every kind of JSON, among them those that a lenient reader takes for another, and numbers out of bounds."""
SMALLEST: dict[str, Mapping[str, object]] = {
    "retrieve": {"query": "x"},
    "index_document": {**PLACE, "content": "x"},
    "get_document_summary": PLACE,
    "extract_citations": {"answer": "x", "passages": [{"content": "x"}]},
    "graph_query": {"operation": "paths", "start": "a", "end": "b"},
    "facets": {},
    "enrich_schema": {"tables": [TABLE]},
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_request_is_taken_where_its_schema_takes_it_and_else_refused(name: str):
    smallest = SMALLEST[name]
    events: list[object] = [{}]
    for field in CONTRACTS[name].request.model_fields:
        events.append({key: value for key, value in smallest.items() if key != field})
        events += [{**smallest, field: value} for value in KINDS]
    if name == "retrieve":
        events += [{"query": " "}, {"query": "", "pipeline": "facets"}, {"pipeline": "facets"}, {"pipeline": "rerank"}]
        events += [{"query": "x", "filters": {"sources": value}} for value in KINDS]
    if name == "index_document":
        events += [{**PLACE, "delete": True}, {**PLACE, "delete": True, "content": None}, {**PLACE, "content": None}]
        events += [{**PLACE, "content_base64": "eA==", "content": value} for value in (None, "x")]
        events += [{**smallest, "metadata": {key: "v"}} for key in ("author", "source", "doc_type")]
    if name == "graph_query":
        events += [
            {"operation": "cooccurring"},
            {"operation": "neighbours"},
            {"operation": "neighbours", "entity": "a"},
        ]
    if name == "extract_citations":
        events += [{"answer": "x", "passages": [{"content": "x", "n": value}]} for value in KINDS]
        events += [{"answer": "x", "passages": [{"content": "x", "page": value}]} for value in KINDS]
    assert valid(name, "request", smallest)
    for event in [smallest, *events]:
        parse = parse_retrieve_request if name == "retrieve" else reading(CONTRACTS[name].request)
        taken = "error" not in respond(event, parse, lambda request: Echo())
        assert taken == valid(name, "request", event), event


def test_of_many_problems_the_first_are_told():
    told = problem("facets", {"fields": [""] * 16})
    assert told.count("fields.") == MAX_PROBLEMS
    assert told.endswith("; and 6 more")  # that the whole list is too short is not one of them
    long = "k" * 10_000
    assert len(problem("facets", {long: 1})) < 300


def events() -> st.SearchStrategy[object]:
    """Anything that JSON can say, by names of which some are known."""
    names = st.sampled_from(["tables", "operation", "collection", "source", "fields", "filters", "limit", "x"])
    plain = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
    return st.recursive(
        plain, lambda one: st.dictionaries(names, one, max_size=4) | st.lists(one, max_size=3), max_leaves=6
    )


@given(events())
@settings(max_examples=60)
def test_whatever_is_sent_is_a_request_or_is_refused(event: object):
    for request in (IndexDocumentRequest, SummaryRequest, GraphRequest, FacetsRequest, SchemaRequest):
        told = respond(event, reading(request), lambda found: found)
        assert "error" not in told or told["error"]["code"] == "invalid_request"


# --- extract_citations ---


def extracted(**event: object) -> dict[str, Any]:
    request: Any = CONTRACTS["extract_citations"].request
    return respond(event, reading(request), extract)


def test_an_answers_citations_are_resolved_and_checked():
    passage = {"content": "The bell rings at nine.", "source": "log.pdf", "page": 4}
    found = extracted(
        answer="The bell rings at nine [Doc 1: log.pdf, Page 4]. It rings 10 times [1].", passages=[passage]
    )
    assert (found["success"], found["cited"], found["verified"], found["error"]) == (True, [1], [1], None)
    told = [(one["markers"][0]["verdict"], one["markers"][0]["page"]) for one in found["sentences"]]
    assert told == [("verified", 4), ("unverified", 4)]


def test_without_markers_all_passages_are_not_attributed():
    found = extracted(answer="The bell rings at nine.", passages=[{"content": "a"}, {"content": "b"}])
    assert (found["not_attributed"], found["not_cited"]) == ([1, 2], [])


def test_two_passages_of_one_number_are_refused():
    told = extracted(answer="x [1].", passages=[{"content": SECRET, "n": 1}, {"content": "b", "n": 1}])
    assert told["error"]["code"] == "invalid_request"
    assert SECRET not in told["error"]["message"]


# --- the published schemas ---


def test_the_published_schemas_are_those_of_the_code():
    assert {path.stem for path in FOLDER.glob("*.json")} == CONTRACTS.keys()
    for name in CONTRACTS:
        assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == written(name), (
            "python -m cicada.integrators.schemas docs/functions"
        )


def test_the_schemas_are_written_into_a_folder(tmp_path: Path):
    assert main([str(tmp_path / "new")]) == 0
    assert {path.name for path in (tmp_path / "new").iterdir()} == {f"{name}.json" for name in CONTRACTS}


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_contract_describes_every_call(name: str):
    schema = json.loads(written(name))
    assert schema == schema_of(name)
    assert schema["request"]["additionalProperties"] is schema["response"]["additionalProperties"] is False
    assert {"success", "error"} <= schema["response"]["properties"].keys()
    assert valid(name, "failure", answered(3))
    assert not valid(name, "failure", {**answered(3), "success": True})
    assert CONTRACTS[name].request.__doc__ != BaseModel.__doc__
    assert not re.search(r'"(ge|gt|le|lt)":', written(name)), "bounds by names that JSON Schema does not know"


def test_a_retrieval_that_fails_under_way_answers_what_its_contract_says():
    under_way = pipelines_over(ScriptedRetriever({"fog bell": IndexUnavailable("gone")})).run
    told = respond({"query": "fog bell"}, parse_retrieve_request, lambda request: under_way(request, EVERYTHING))
    assert (told["success"], told["error"]["code"], told["documents"]) == (False, "index_unavailable", [])
    assert valid("retrieve", "failure", told)
    assert valid("retrieve", "response", told)


def test_a_failed_call_has_nothing_but_its_failure():
    told = answered(3)
    assert told.keys() == {"success", "error"}
    assert FailedCall.model_validate(told).error.code == "invalid_request"
