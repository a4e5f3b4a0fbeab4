"""The saved queries that show a request's timeline, and of the runs over uploads."""

from __future__ import annotations

from typing import Any

from stacks.findings import flat
from stacks.ingest_query import COLLECTION_PLACEHOLDER, RUN_FIELDS, runs_query
from stacks.trace_query import FIELDS, PLACEHOLDER, TELLERS, trace_query
from tests.template.templates import FUNCTIONS, Synthesis


def saved_query(synthesis: Synthesis, id: str) -> dict[str, Any]:
    (found,) = (one for one in synthesis.resources("AWS::Logs::QueryDefinition") if one.id == id)
    return found.properties


def test_the_story_of_a_request_is_a_saved_query_over_the_functions_that_tell_it(each: Synthesis) -> None:
    saved = saved_query(each, "Trace")
    assert saved["Name"] == f"{each.prefix}/Story of a request"
    assert saved["QueryString"] == trace_query()
    groups = [flat(name) for name in saved["LogGroupNames"]]
    assert len(groups) == len(TELLERS)
    for group, teller in zip(groups, TELLERS, strict=True):
        assert group.startswith(f"<{FUNCTIONS[teller]}Logs")


def test_every_function_that_knows_a_request_is_asked(shipped: Synthesis) -> None:
    knowing = {folder for folder in FUNCTIONS if "REQUESTS_TABLE" in shipped.environment(folder)}
    assert knowing == set(TELLERS)


def test_the_query_names_the_request_and_reads_in_order() -> None:
    commands = trace_query().split("\n| ")
    assert commands[0].removeprefix("fields @timestamp, ").split(", ") == list(FIELDS)
    assert commands[1:3] == [f'filter request_id = "{PLACEHOLDER}"', "sort @timestamp asc"]


def test_the_runs_over_uploads_are_a_saved_query_over_the_functions_of_the_ingest(each: Synthesis) -> None:
    saved = saved_query(each, "Runs")
    assert saved["Name"] == f"{each.prefix}/Runs over uploads"
    assert saved["QueryString"] == runs_query()
    folders = ("ingest_start", "ingest_plan", "ingest_document", "ingest_commit")
    groups = [flat(name) for name in saved["LogGroupNames"]]
    assert len(groups) == len(folders)
    for group, folder in zip(groups, folders, strict=True):
        assert group.startswith(f"<{FUNCTIONS[folder]}Logs")


def test_the_query_of_runs_names_the_collection_and_reads_in_order() -> None:
    commands = runs_query().split("\n| ")
    assert commands[0].removeprefix("fields @timestamp, ").split(", ") == list(RUN_FIELDS)
    assert commands[1:3] == [f'filter collection = "{COLLECTION_PLACEHOLDER}"', "sort @timestamp asc"]
