"""The Insights stand-in does what AWS does: each line of its conformance list, by a boto3 client over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from cicada_local.insights import Insights, server
from tests.wire.engine_services import EngineService, serving

GROUP, OTHER = "Cicada-Answer-Logs", "Cicada-Gateway-Logs"
BEGAN_S = 1_795_228_800  # 2026-11-21 02:40:00 UTC
STREAM = "2026/11/21/[$LATEST]d5337fd93cfccab019fb45e0e5f86c3b"


def event(after_s: float, message: Mapping[str, Any] | str) -> str:
    """A line of a function's log file."""
    minutes, rest = divmod(after_s, 60)
    text = message if isinstance(message, str) else json.dumps(message)
    return f"2026-11-21T02:{40 + int(minutes)}:{rest:06.3f}+00:00 {STREAM} {text}\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The log file of each group; they do not exist yet."""
    return {GROUP: tmp_path / "answer.log", OTHER: tmp_path / "gateway.log"}


@pytest.fixture
def service(files: dict[str, Path]) -> Iterator[EngineService]:
    service = EngineService()
    groups = {group: (path,) for group, path in files.items()}
    with serving(service, Insights(lambda: groups, service.faults)) as running:
        yield running


@pytest.fixture
def client(service: EngineService) -> Any:
    return service.client("logs", parameter_validation=False)


def started(client: Any, query: str, *, groups: tuple[str, ...] = (GROUP,), **changes: Any) -> str:
    window = {"startTime": BEGAN_S, "endTime": BEGAN_S + 3600}
    answer = client.start_query(logGroupNames=list(groups), queryString=query, **{**window, **changes})
    query_id: str = answer["queryId"]
    return query_id


def polled(client: Any, query_id: str) -> dict[str, Any]:
    """The answer once the query runs no more."""
    while (answer := client.get_query_results(queryId=query_id))["status"] == "Running":
        pass
    found: dict[str, Any] = answer
    return found


def rows(client: Any, query: str, **asked: Any) -> list[dict[str, str]]:
    answer = polled(client, started(client, query, **asked))
    assert answer["status"] == "Complete"
    return [{cell["field"]: cell["value"] for cell in row} for row in answer["results"]]


def messages(client: Any, query: str, **asked: Any) -> list[str]:
    return [row["message"] for row in rows(client, f"fields message | {query}", **asked)]


def refused(error: pytest.ExceptionInfo[ClientError]) -> str:
    code: str = error.value.response["Error"]["Code"]
    return code


def test_l01_other_operations_of_the_service_are_not_answered_here(client: Any) -> None:
    with pytest.raises(ClientError) as error:
        client.describe_log_groups()
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_l02_a_request_without_a_signature_is_refused(service: EngineService) -> None:
    unsigned = service.client("logs", config=Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1}))
    with pytest.raises(ClientError) as error:
        started(unsigned, "fields @message")
    assert refused(error) == "MissingAuthenticationTokenException"


@pytest.mark.parametrize(
    "changes",
    [
        {"queryString": 7},
        {"limit": 10_001},
        {"startTime": BEGAN_S, "endTime": BEGAN_S - 1},
        {"logGroupNames": [f"group-{n}" for n in range(51)]},
        {"logGroupNames": []},
    ],
    ids=str,
)
def test_l03_what_breaks_the_model_is_an_invalid_parameter(client: Any, changes: dict[str, Any]) -> None:
    asked = {"logGroupNames": [GROUP], "queryString": "fields @message", "startTime": BEGAN_S, "endTime": BEGAN_S + 1}
    with pytest.raises(ClientError) as error:
        client.start_query(**{**asked, **changes})
    assert refused(error) == "InvalidParameterException"


def test_l04_an_unknown_group_or_query_is_not_found(client: Any) -> None:
    with pytest.raises(ClientError) as error:
        started(client, "fields @message", groups=(GROUP, "Nothing"))
    assert refused(error) == "ResourceNotFoundException"
    for operation in (client.get_query_results, client.stop_query):
        with pytest.raises(ClientError) as error:
            operation(queryId="no-such-query")
        assert refused(error) == "ResourceNotFoundException"


@pytest.mark.parametrize(
    "query",
    [
        "select *",
        "fields",
        "fields @message |",
        "stats",
        "stats count()",
        "stats count(*) by",
        "stats count(*) by bin(5)",
        "stats count(*) by bin(0m)",
        "stats count(*), count(*)",
        "stats pct(took_ms)",
        "stats pct(took_ms, 101)",
        "stats median(took_ms)",
        "stats count(*) as rows | sort took_ms",
        "stats count(*) as rows | filter rows > 1",
        "filter level not 'INFO'",
        "filter request_id =",
        "filter request_id > 'abc'",
        "filter request_id and",
        "filter (level = 'INFO'",
        "filter level in ['INFO'",
        "filter level like /(/",
        "filter level ~ 'INFO'",
        "filter level , 'INFO'",
        "limit many",
        "limit 0",
        "limit 10001",
        "sort",
    ],
)
def test_l05_a_query_that_cannot_be_read_is_malformed(client: Any, query: str) -> None:
    with pytest.raises(ClientError) as error:
        started(client, query)
    assert refused(error) == "MalformedQueryException"


def test_l06_results_are_polled_and_none_come_while_the_query_runs(client: Any, files: dict[str, Path]) -> None:
    files[GROUP].write_text(event(1, {"message": "a"}))
    query_id = started(client, "fields message")
    first = client.get_query_results(queryId=query_id)
    assert (first["status"], first["results"]) == ("Running", [])
    assert len(polled(client, query_id)["results"]) == 1


def test_l07_both_ends_of_the_window_are_within_it(client: Any, files: dict[str, Path]) -> None:
    files[GROUP].write_text("".join(event(at, {"message": f"{at}"}) for at in (9.999, 10, 20.999, 21)))
    window = {"startTime": BEGAN_S + 10, "endTime": BEGAN_S + 20}
    assert messages(client, "sort @timestamp asc", **window) == ["10", "20.999"]


def test_l08_fields_are_found_in_json_and_rows_have_those_that_are_there(client: Any, files: dict[str, Path]) -> None:
    message = {"step": "complete", "metrics": {"cost": 0.5}, "failed": ["rag: x"], "grounded": True, "none": None}
    files[GROUP].write_text(event(1, message) + event(2, "no JSON\n  and a second line") + "no event at all\n")
    first, second = rows(
        client, "fields @timestamp, step, metrics.cost, failed.0, grounded, none | sort @timestamp asc"
    )
    assert first.pop("@ptr") != second.pop("@ptr")
    assert first == {
        "@timestamp": "2026-11-21 02:40:01.000",
        "step": "complete",
        "metrics.cost": "0.5",
        "failed.0": "rag: x",
        "grounded": "1",
    }
    assert second == {"@timestamp": "2026-11-21 02:40:02.000"}
    (own,) = rows(client, "display @message, @log, @logStream | filter not ispresent(step)")
    assert own["@message"] == "no JSON\n  and a second line\nno event at all"
    assert (own["@log"], own["@logStream"]) == (f"123456789012:{GROUP}", STREAM)


def test_l09_the_newest_come_first_and_as_many_as_the_limit(client: Any, files: dict[str, Path]) -> None:
    files[GROUP].write_text(event(1, {"message": "a", "n": 10}) + event(3, {"message": "c", "n": 9}))
    files[OTHER].write_text(event(2, {"message": "b"}))
    both = (GROUP, OTHER)
    assert messages(client, "filter ispresent(message)", groups=both) == ["c", "b", "a"]
    assert messages(client, "limit 2", groups=both) == ["c", "b"]
    assert messages(client, "limit 3", groups=both, limit=1) == ["c"]
    assert messages(client, "sort n asc, message desc", groups=both) == ["b", "c", "a"]


def test_l10_a_stopped_query_is_cancelled_and_one_that_has_ended_cannot_be_stopped(client: Any) -> None:
    query_id = started(client, "fields message")
    assert client.stop_query(queryId=query_id)["success"] is True
    assert client.get_query_results(queryId=query_id)["status"] == "Cancelled"
    ended = started(client, "fields message")
    polled(client, ended)
    with pytest.raises(ClientError) as error:
        client.stop_query(queryId=ended)
    assert refused(error) == "InvalidParameterException"


def test_l12_stats_sum_up_groups_of_events(client: Any, files: dict[str, Path]) -> None:
    took = [("hybrid", 10), ("rag", 4), ("hybrid", 30), ("hybrid", "no number"), (None, 7)]
    files[GROUP].write_text(
        "".join(
            event(60 * at, {"took_ms": ms, "n": at} | ({} if strategy is None else {"strategy": strategy}))
            for at, (strategy, ms) in enumerate(took, 3)
        )
    )
    summed = "count(*) as events, sum(took_ms), avg(took_ms) as mean, pct(took_ms, 50) as p50, max(took_ms) as most"
    told = rows(client, f"stats {summed}, earliest(n) as first_n, latest(n) as last_n by strategy | sort events desc")
    assert told == [
        {
            "strategy": "hybrid",
            "events": "3",
            "sum(took_ms)": "40",
            "mean": "20",
            "p50": "10",
            "most": "30",
            "first_n": "3",
            "last_n": "6",
        },
        {"strategy": "rag", "events": "1", "sum(took_ms)": "4", "mean": "4", "p50": "4", "most": "4"}
        | {"first_n": "4", "last_n": "4"},
        {"events": "1", "sum(took_ms)": "7", "mean": "7", "p50": "7", "most": "7", "first_n": "7", "last_n": "7"},
    ]
    by_time = rows(client, "stats count_distinct(strategy) as many, min(n) by bin(5m) | sort many desc")
    assert by_time == [
        {"bin(5m)": "2026-11-21 02:40:00.000", "many": "2", "min(n)": "3"},
        {"bin(5m)": "2026-11-21 02:45:00.000", "many": "1", "min(n)": "5"},
    ]
    assert rows(client, "filter n > 99 | stats count(*), sum(n)") == [{"count(*)": "0"}]
    assert rows(client, "filter n > 99 | stats count(*) by strategy") == []


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ('request_id = "r-1"', "ab"),
        ("request_id != 'r-1'", "cd"),
        ("request_id = 'r-1' and level = \"INFO\"", "a"),
        ("request_id = 'r-1' or level = 'INFO'", "abc"),
        ("not (request_id = 'r-1' or level = 'INFO')", "d"),
        ("took_ms > 5 and took_ms <= 12", "b"),
        ("took_ms >= 12 # the slow ones", "bc"),
        ("took_ms < 12", "a"),
        ("took_ms = 12", "b"),
        ("level in ['INFO', 'DEBUG']", "ac"),
        ("level not in ['INFO', 'DEBUG']", "bd"),
        ("message not like /^[bc]$/", "ad"),
        ("message like /^[bc]$/", "bc"),
        ("why like 'a \"quoted\" word'", "d"),
        ("`request_id` = 'r-2'", "c"),
        ("why = 'a \\\"quoted\\\" word'", ""),
    ],
)
def test_a_filter_passes_what_its_condition_says(
    client: Any, files: dict[str, Path], condition: str, found: str
) -> None:
    files[GROUP].write_text(
        event(1, {"message": "a", "request_id": "r-1", "level": "INFO", "took_ms": 5})
        + event(2, {"message": "b", "request_id": "r-1", "level": "ERROR", "took_ms": 12})
        + event(3, {"message": "c", "request_id": "r-2", "level": "INFO", "took_ms": 40})
        + event(4, {"message": "d", "why": 'a "quoted" word of r-1'})
    )
    assert "".join(messages(client, f"filter {condition}\n| sort @timestamp asc")) == found


@pytest.mark.parametrize(
    ("fault", "code"), [("logs.throttle", "ThrottlingException"), ("logs.limit", "LimitExceededException")]
)
def test_a_fault_switch_refuses_calls(service: EngineService, client: Any, fault: str, code: str) -> None:
    service.faults.arm(fault, times=1)
    with pytest.raises(ClientError) as error:
        started(client, "fields message")
    assert refused(error) == code
    assert rows(client, "fields message") == []


def test_a_fault_switch_fails_a_query(service: EngineService, client: Any) -> None:
    service.faults.arm("logs.fail_query", times=1, status="Timeout")
    assert polled(client, started(client, "fields message"))["status"] == "Timeout"


def test_a_bug_of_the_stand_ins_own_is_told_as_aws_does() -> None:
    def groups() -> Mapping[str, tuple[Path, ...]]:
        raise KeyError("stack")

    service = EngineService()
    with serving(service, Insights(groups, service.faults)), pytest.raises(ClientError) as error:
        started(service.client("logs"), "fields message")
    assert refused(error) == "ServiceUnavailableException"


def test_queries_of_long_ago_are_forgotten(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "KEPT_QUERIES", 2)
    first = started(client, "fields message")
    for _ in range(2):
        started(client, "fields message")
    with pytest.raises(ClientError) as error:
        client.get_query_results(queryId=first)
    assert refused(error) == "ResourceNotFoundException"


# --- saved queries ---


def test_l11_saved_queries_are_found_by_the_beginning_of_their_names(client: Any) -> None:
    ids = [
        client.put_query_definition(name=f"l11/{name}", queryString="fields @message", logGroupNames=[GROUP])[
            "queryDefinitionId"
        ]
        for name in ("Slow starts", "Faults")
    ]
    first = client.describe_query_definitions(queryDefinitionNamePrefix="l11/", maxResults=1)
    second = client.describe_query_definitions(queryDefinitionNamePrefix="l11/", nextToken=first["nextToken"])
    found = [*first["queryDefinitions"], *second["queryDefinitions"]]
    assert [query["name"] for query in found] == ["l11/Faults", "l11/Slow starts"]
    assert found[0]["logGroupNames"] == [GROUP]
    client.put_query_definition(queryDefinitionId=ids[0], name="l11/Slow", queryString="fields @log")
    for id in ids:
        client.delete_query_definition(queryDefinitionId=id)
    assert client.describe_query_definitions(queryDefinitionNamePrefix="l11/")["queryDefinitions"] == []
    with pytest.raises(ClientError) as error:
        client.delete_query_definition(queryDefinitionId=ids[0])
    assert refused(error) == "ResourceNotFoundException"
