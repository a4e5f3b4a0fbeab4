"""The saved query that tells the story of a request."""

from __future__ import annotations

from stacks.findings import flat
from stacks.trace_query import FIELDS, PLACEHOLDER, TELLERS, trace_query
from tests.template.templates import FUNCTIONS, Synthesis


def test_the_story_of_a_request_is_a_saved_query_over_the_functions_that_tell_it(each: Synthesis) -> None:
    saved = each.one("AWS::Logs::QueryDefinition").properties
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
