"""What the operator has: saved queries that show what happened, over the lines that the deployed functions wrote."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from websockets.exceptions import InvalidStatus

from benchmarks.dashboard_data import collect
from cicada import __version__
from cicada_local.insights.query import parse
from cicada_local.testing import LocalCloud
from stacks.queries import CATALOGUE, COLLECTION_PLACEHOLDER, REQUEST_PLACEHOLDER
from tests.chaos.house import ANSWER, House
from tests.drills.deployment import Deployment
from tests.drills.runner import run
from tests.drills.scenes_operation import MESSAGES_FAILED
from tests.e2e import command
from tests.e2e.conftest import BLOCKED, DENIED, OIDC
from tests.e2e.plain_client import Socket
from tests.e2e.reading import PATIENT_S, SIMPLE, eventually, first, let_pass, slow_down
from tests.e2e.searched_cloud import SearchedCloud
from tests.support.token_issuer import Issuer

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples" / "script"
EXPECTED = {
    "Requests without an answer": {"all_strategies_failed", "rag: model_refused"},
    "Why answers fell back": {"rag: stream_broken", "rag: worker_died"},
    "Failed model calls": {"stream_broken", "model_refused"},
    "Refused connections": {"connection refused"},
    "Refused by limits": {"spending_stopped"},
    "Lost workers": {"never_started", "restarted"},
    "Failed uploads": {"WorkflowUnavailable"},
    "Documents set aside": {"document_broken"},
    "Functions that failed": {"Runtime.ExitError"},
    "Gateway errors": {"UNAUTHORIZED", "401"},
    "Releases at work": {__version__},
    "Upkeep of the index": {"index maintained", "IndexUnavailable"},
}
"""Values that rows of the queries have."""

LINES_AT = {
    "INFO": '["INFO", "WARNING", "ERROR", "CRITICAL"]',
    "WARN": '["WARNING", "ERROR", "CRITICAL"]',
    "ERROR": '["ERROR", "CRITICAL"]',
}
"""The levels of lines that are written, by ``logLevel``."""

SHOWN = {
    *("questions", "complete answers", "requests without an answer", "first text, p95, ms", "end, p95"),
    *("failed attempts", "share that fell back", "lost workers", "connects", "messages", "running in the account"),
    *("answers, by a guardrail", "questions, by a limit", "frames", "connections", "client errors"),
    *("recovery sweep", "index maintenance", "documents set aside"),
}
"""Lines of the dashboard that have values then."""

BY_LAMBDA = {"errorType", "errorMessage", "exception_name", "record"}
"""Fields that Lambda, or Powertools, writes."""

MINUTE_S = 1.0
"""Real seconds that are one of CloudWatch's minutes."""


@pytest.fixture(scope="module")
def operated(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchedCloud]:
    """A deployment with alarms, in which CloudWatch's minutes are short."""
    settings = {
        "auth": OIDC,
        "page": {"enabled": False},
        "alarmEmail": "operator@example.com",
        "ingest": {"quietS": 5},
        "knowledge": {"enabled": False},
        "guardrail": {"create": {"words": [DENIED], "blockedMessage": BLOCKED}},
    }
    home, environment = tmp_path_factory.mktemp("operated"), {"JWKS_URL": issuer.jwks_url}
    script = [SAMPLES / "episode-1.jsonl"]
    with SearchedCloud(
        home, settings=settings, load=script, environment=environment, metric_minute_s=MINUTE_S
    ) as cloud:
        yield cloud
        cloud.forbid_texts(*issuer.tokens)
        cloud.forbid_names(*issuer.subjects)


class Day:
    """A day of the deployment: everything that an operator is asked about happens once."""

    def __init__(self, cloud: SearchedCloud, issuer: Issuer) -> None:
        self._cloud = cloud
        self._issuer = issuer
        self._house = House(cloud)
        self._user = f"mara-{uuid4()}"
        self.collection = f"day-{uuid4().hex[:8]}"
        self.request_id = ""
        """Of a request that was answered."""
        self.failed_id = ""
        """Of one that ended without an answer."""

    def pass_by(self) -> None:
        """Let it all happen."""
        self._upload_while_no_run_can_be_started()
        with Socket(self._cloud.websocket_url, self._issuer.token(self._user)) as socket:
            self.request_id = first(socket.answer(SIMPLE), "complete")["requestId"]
            self._break_off(socket)
            self._refuse_the_model(socket)
            assert socket.answer(f"Who found the {DENIED} in the boathouse?")[-1]["code"] == "answer_blocked"
            socket.send_raw("no message")
            assert socket.until("error")["code"] == "invalid_message"
            self._stop_answering(socket)
            self._lose_a_start(socket)
            self._kill_a_worker(socket)
        self._refuse_a_connection()
        assert eventually(lambda: bool(self._cloud.lines_about('"ingest finished"')), within_s=60)
        self._maintain_the_index()

    def _upload_while_no_run_can_be_started(self) -> None:
        self._cloud.arm("stepfunctions.error", operation="StartExecution")
        key = f"incoming/{self.collection}/broken.pdf"
        bucket = self._cloud.outputs["IndexBucket"]
        self._cloud.client("s3").put_object(Bucket=bucket, Key=key, Body=io.BytesIO(b"%PDF-1.7 and no more"))
        assert eventually(lambda: any("Start" in line for line in self._cloud.lines_about('"errorType"')))
        self._cloud.disarm()

    def _break_off(self, socket: Socket) -> None:
        self._cloud.arm("bedrock.cut", times=1, after=2, mode="exception", exception="internalServerException")
        assert first(socket.answer("Who heard the fog bell?"), "fallback")["code"] == "stream_broken"

    def _refuse_the_model(self, socket: Socket) -> None:
        self._cloud.arm("bedrock.error", exception="AccessDeniedException", status=403)
        end = socket.answer("Who read the gauge?")[-1]
        assert end["code"] == "all_strategies_failed"
        self.failed_id = end["requestId"]
        self._cloud.disarm()

    def _stop_answering(self, socket: Socket) -> None:
        self.type("limits", "stop")
        socket.ask(SIMPLE)
        assert socket.until("error")["code"] == "spending_stopped"
        self.type("limits", "start")

    def _lose_a_start(self, socket: Socket) -> None:
        self._cloud.arm("stepfunctions.lost_start", times=1)
        request_id = socket.ask(SIMPLE)
        socket.until("accepted", request_id=request_id)
        let_pass(self._cloud, self._user, request_id, PATIENT_S)
        self._house.sweep()
        assert socket.events(request_id)[-1]["type"] == "complete"

    def _kill_a_worker(self, socket: Socket) -> None:
        slow_down(self._cloud, 500)
        request_id = socket.ask("Who rang the fog bell?")
        socket.until("chunk", request_id=request_id)
        assert self._cloud.kill_workers(self._house.name_of(ANSWER))
        self._cloud.disarm()
        assert first(socket.events(request_id), "fallback")["code"] == "worker_died"

    def _refuse_a_connection(self) -> None:
        with pytest.raises(InvalidStatus), Socket(self._cloud.websocket_url, self._issuer.token(lasts_s=-60)):
            pass

    def _maintain_the_index(self) -> None:
        self._cloud.control("POST", "schedules/Cicada-index-maintenance")
        self._cloud.arm("s3.error")
        self._cloud.control("POST", "schedules/Cicada-index-maintenance")
        self._cloud.disarm()

    def type(self, *words: str) -> str:
        """What a command of the operator's writes."""
        environment = os.environ | {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        where = ("--endpoint-url", self._cloud.endpoint_url, "--region", "us-east-1")
        done = command.cicada([*words, *where], environment)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def day(operated: SearchedCloud, issuer: Issuer) -> Day:
    day = Day(operated, issuer)
    day.pass_by()
    return day


def rows(
    cloud: LocalCloud, saved: Mapping[str, Any], filled: Mapping[str, str], *, level: str = "INFO"
) -> list[dict[str, str]]:
    """What a saved query finds over its log groups and the last hour.

    Args:
        cloud: the deployment.
        saved: the query, as its definition is described.
        filled: what its placeholders stand for.
        level: a ``logLevel``: the lines that it leaves out are not looked at.
    """
    text = f"filter not ispresent(level) or level in {LINES_AT[level]}\n| {saved['queryString']}"
    for placeholder, value in filled.items():
        text = text.replace(placeholder, value)
    logs, now = cloud.client("logs"), int(time.time())
    asked = {"logGroupNames": saved["logGroupNames"], "startTime": now - 3600, "endTime": now + 60}
    query_id = logs.start_query(queryString=text, **asked)["queryId"]
    while (found := logs.get_query_results(queryId=query_id))["status"] == "Running":
        time.sleep(0.05)
    assert found["status"] == "Complete"
    return [{cell["field"]: cell["value"] for cell in row} for row in found["results"]]


def test_every_saved_query_finds_what_happened(operated: SearchedCloud, day: Day) -> None:
    definitions = operated.client("logs").describe_query_definitions(queryDefinitionNamePrefix="Cicada/")
    saved = {one["name"].removeprefix("Cicada/"): one for one in definitions["queryDefinitions"]}
    assert set(saved) == {query.name for query in CATALOGUE}
    filled = {REQUEST_PLACEHOLDER: day.request_id, COLLECTION_PLACEHOLDER: day.collection}
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(saved, pool.map(lambda one: rows(operated, one, filled), saved.values()), strict=True))
    assert [name for name, of in found.items() if not of] == []
    for query in CATALOGUE:
        assert rows(operated, saved[query.name], filled, level=query.level), f"{query.name} at logLevel {query.level}"
        # What no row has is a field of events that did not happen here, and must be written by somebody.
        absent = set(parse(query.text).fields) - {column for row in found[query.name] for column in row}
        assert {column for column in absent if not is_written(query.text, column)} == set(), query.name
    values = {name: {value for row in of for value in row.values()} for name, of in found.items()}
    for name, expected in EXPECTED.items():
        assert expected <= values[name], name
    (named,) = re.findall(r" Cicada/(.+)\n\Z", day.type("trace", day.failed_id))
    assert day.failed_id in {row.get("request_id") for row in found[named]}, named
    assert "cache_miss" not in values["Faults by dependency"]
    assert "Unauthorized" not in values["Functions that failed"]


def test_a_drill_shows_its_fault_its_alarm_its_query_and_its_mend(operated: SearchedCloud, issuer: Issuer) -> None:
    outcome = run(MESSAGES_FAILED, Deployment(operated, issuer), print)
    assert outcome.problem is None, outcome
    assert [change.state for change in outcome.changes][-2:] == ["ALARM", "OK"]


@pytest.mark.usefixtures("day")
def test_the_dashboard_shows_what_happened(operated: SearchedCloud) -> None:
    now = operated.metric_now()
    shown = collect(operated.client("cloudwatch"), operated.outputs["Dashboard"], now - timedelta(days=1), now)
    labels = {one["Label"] for results in shown["results"].values() for one in results if any(one["Values"])}
    assert labels >= SHOWN
    (alarms,) = shown["alarms"].values()
    assert {"Cicada-AnswersMissing", "Cicada-SweepSilent"} < {alarm["name"] for alarm in alarms}
    definitions = operated.client("logs").describe_query_definitions(queryDefinitionNamePrefix="Cicada/")
    saved = {one["name"].removeprefix("Cicada/"): one for one in definitions["queryDefinitions"]}
    for widget in (one["properties"] for one in shown["body"]["widgets"] if one["type"] == "log"):
        query = saved[widget["title"]]
        sources = "".join(f"SOURCE '{name}' | " for name in query["logGroupNames"])
        assert widget["query"] == sources + query["queryString"]


def is_written(query: str, column: str) -> bool:
    """Whether the code writes the field that a query's column shows, or Lambda does."""
    renamed = {alias: field for field, alias in re.findall(r"\w+\(([@\w.]+)[^()]*\) as (\w+)", query)}
    name = renamed.get(column, column).partition(".")[0]
    return name in BY_LAMBDA or re.search(rf'\b{name}=|"{name}":', sources()) is not None


@cache
def sources() -> str:
    """The functions' code, and the library's."""
    folders = (ROOT / "lambdas", ROOT / "layers" / "cicada" / "python")
    return "".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
