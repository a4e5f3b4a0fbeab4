"""The saved queries: one catalogue, deployed over the log groups of the functions that they read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cicada import errors
from cicada.request_trace import NOT_FAULTS
from cicada_cli.trace_words import SAVED_QUERIES
from cicada_local.insights.query import parse
from stacks.findings import flat
from stacks.queries import ACCESS_LOG, CATALOGUE, MAX_CHARS, MAX_GROUPS, TELLERS, full_name
from tests.template.templates import FUNCTIONS, OPTIONAL_FUNCTIONS, Resource, Synthesis

ROOT = Path(__file__).resolve().parents[2]
REFUSALS = {errors.Unauthorized.code, errors.LimitReached.code, errors.SpendingStopped.code}
"""Codes: no faults either, but of frames and questions for which no request is made."""


def test_every_query_is_saved_over_the_log_groups_that_it_reads(each: Synthesis) -> None:
    saved = {one.properties["Name"]: one.properties for one in each.resources("AWS::Logs::QueryDefinition")}
    assert set(saved) == {full_name(each.prefix, query) for query in CATALOGUE}
    deployed = {flat(one.properties["LoggingConfig"]["LogGroup"]) for one in functions(each)}
    for query in CATALOGUE:
        properties = saved[full_name(each.prefix, query)]
        assert properties["QueryString"] == query.text
        groups = [flat(name) for name in properties["LogGroupNames"]]
        ids = [
            id for id in map(group_id, query.functions) if id == "AccessLogs" or any(id in group for group in deployed)
        ]
        assert len(groups) == len(ids), query.name
        assert all(id in group for id, group in zip(ids, groups, strict=True)), query.name


def functions(synthesis: Synthesis) -> Iterator[Resource]:
    for one in synthesis.resources("AWS::Lambda::Function"):
        if "LoggingConfig" in one.properties:
            yield one


def group_id(folder: str) -> str:
    """How the id of a function's log group begins."""
    match folder:
        case _ if folder == ACCESS_LOG:
            return "AccessLogs"
        case "agent_tools":
            return "AgentsToolsLogs"
        case _:
            return f"{(FUNCTIONS | OPTIONAL_FUNCTIONS)[folder]}Logs"


def test_every_function_that_knows_a_request_is_asked(shipped: Synthesis) -> None:
    knowing = {folder for folder in FUNCTIONS if "REQUESTS_TABLE" in shipped.environment(folder)}
    assert knowing == set(TELLERS)


def test_cloudwatch_keeps_every_query() -> None:
    assert len({query.name for query in CATALOGUE}) == len({query.id for query in CATALOGUE}) == len(CATALOGUE)
    for query in CATALOGUE:
        assert len(query.text) <= MAX_CHARS
        assert 1 <= len(query.functions) <= MAX_GROUPS
        parse(query.text)
        assert query.placeholder is None or query.text.count(query.placeholder) == 1


def test_requests_end_without_a_fault_by_the_codes_that_the_query_leaves_out() -> None:
    harmless = {
        error.code for error in kinds(errors.CicadaError) if not error.fault and error is not errors.NameUnknown
    }
    assert harmless - REFUSALS == set(NOT_FAULTS)


def test_the_queries_that_a_trace_names_are_saved() -> None:
    assert set(SAVED_QUERIES) <= {query.name for query in CATALOGUE}


def test_the_documentation_lists_every_query() -> None:
    table = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").partition("\n## Saved queries\n")[2]
    rows = re.findall(r"^\| `(.+?)` \| (.+) \| (\w+) \|$", table.partition("\n## ")[0], re.MULTILINE)
    assert rows == [(query.name, query.symptom, query.level) for query in CATALOGUE]


def kinds(of: type[errors.CicadaError]) -> Iterator[type[errors.CicadaError]]:
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)
