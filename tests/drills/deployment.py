"""The deployment that is drilled: asked as its askers do, looked at and mended as its operator does."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from websockets.exceptions import InvalidStatus

from cicada_local.testing import LocalCloud
from tests.chaos.house import House
from tests.e2e.command import Done, cicada
from tests.e2e.plain_client import Socket, applied, of
from tests.support.token_issuer import AUDIENCE, ISSUER, Issuer

ROOT = Path(__file__).parents[2]
PREFIX = "Cicada"
GENERATION_MODEL, DIRECT_MODEL = "us.amazon.nova-lite-v1:0", "us.amazon.nova-micro-v1:0"
METRIC_MINUTE_S = 1.0
"""So many real seconds are one of CloudWatch's minutes."""
QUIET_S = 5
"""How long the upload of a folder must rest, at least."""
FIRST_TEXT_S = 3
SETTINGS: Mapping[str, Any] = {
    "alarmEmail": "operator@example.org",
    "auth": {
        "mode": "oidc",
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "jwksUrl": "https://issuer.example/jwks.json",
        "allowedOrigins": [],
    },
    "page": {"signIn": False},
    "models": {"generationModelId": GENERATION_MODEL, "directModelId": DIRECT_MODEL},
    "knowledge": {"enabled": False},
    "ingest": {"quietS": QUIET_S},
    "objectives": {"firstTextS": FIRST_TEXT_S},
}
_POLL_S = 0.2
_AGE_S = 60
_TOKEN_S = 3600
_PATIENCE_S, _RESUME_S = 60.0, 3.0
_TEXT_CHARS = 90


@dataclass(frozen=True)
class Asked:
    """What an asker saw of a question."""

    at: str
    """``broken`` or ``mended``: before or after the mend."""
    question: str
    saw: str
    """In a line, for people."""
    end: Mapping[str, Any]
    """The terminal event; empty where none came."""


@dataclass(frozen=True)
class AlarmChange:
    """A change of an alarm's state."""

    alarm: str
    at: datetime
    state: str
    reason: str


class Deployment:
    """A local cloud with alarms, its issuer, and what was done to them in the scene that runs."""

    def __init__(self, cloud: LocalCloud, issuer: Issuer) -> None:
        """``cloud`` must be started with :data:`SETTINGS`."""
        self.cloud = cloud
        self.issuer = issuer
        self.kept: dict[str, Any] = {}
        """What a scene's acts hand on to each other."""
        self.asked: list[Asked] = []
        self.commands: list[str] = []
        self._undo = contextlib.ExitStack()
        self._stage = "broken"
        self._house = House(cloud)
        self._asker = 0

    # --- scenes ---

    def begin(self) -> None:
        """Begin a scene: nothing was asked or done yet."""
        self.kept, self.asked, self.commands, self._stage = {}, [], [], "broken"

    def mended(self) -> None:
        """What is asked from now on is asked after the mend."""
        self._stage = "mended"

    def end(self) -> None:
        """Undo what the scene has left broken, whatever became of it."""
        self.cloud.disarm()
        self.issuer.is_away = False
        self._undo.close()
        self.close_breakers()

    def undo(self, act: Callable[[], object]) -> None:
        """Do this at the scene's end."""
        self._undo.callback(act)

    # --- askers ---

    def token(self) -> str:
        """A token of an asker who has asked nothing yet: no earlier answer is theirs."""
        self._asker += 1
        return self.issuer.token(f"asker-{self._asker}", lasts_s=_TOKEN_S)

    def ask(
        self,
        question: str,
        *,
        meanwhile: Callable[[Socket], None] | None = None,
        patience_s: float = _PATIENCE_S,
        **fields: Any,
    ) -> Asked:
        """Ask over a socket of an asker's own, and keep what they saw.

        Args:
            question: the question.
            meanwhile: is called with the socket as soon as the question is sent.
            patience_s: how long the asker waits for the end.
            fields: further ones of the frame.
        """
        began = time.monotonic()
        try:
            with Socket(self.cloud.websocket_url, self.token()) as socket:
                request_id = socket.ask(question, **fields)
                self.kept["request_id"] = request_id
                if meanwhile is not None:
                    meanwhile(socket)
                frames = _until_end(socket, request_id, patience_s)
        except InvalidStatus as refused:
            status = refused.response.status_code
            return self._note(question, f"the connection is refused with HTTP {status}", {"refused": status})
        return self._note(question, f"{told(frames)} ({time.monotonic() - began:.1f} s)", _end(frames))

    def resume_until_end(self, question: str) -> Asked:
        """Come back as the last asker, and resume every few seconds up to the end of their request."""
        began = time.monotonic()
        request_id = self.kept["request_id"]
        frames: list[dict[str, Any]] = []
        with Socket(self.cloud.websocket_url, self.issuer.token(f"asker-{self._asker}", lasts_s=_TOKEN_S)) as socket:
            while not _end(frames) and time.monotonic() - began < _PATIENCE_S:
                socket.send("resume", requestId=request_id, after=applied(frames))
                _until_end(socket, request_id, _RESUME_S)
                frames = of(socket.frames, request_id)
        return self._note(question, f"{told(frames)} ({time.monotonic() - began:.1f} s)", _end(frames))

    def ask_until(
        self, question: str, holds: Callable[[Mapping[str, Any]], bool], within_s: float = 60.0, **fields: Any
    ) -> Asked:
        """Ask until the terminal event is as expected; only the last time is kept.

        Raises:
            TimeoutError: it was not, within the time.
        """
        deadline = time.monotonic() + within_s
        while True:
            asked = self.ask(question, **fields)
            if holds(asked.end):
                return asked
            if time.monotonic() > deadline:
                raise TimeoutError(f"the last answer to {question!r} was: {asked.saw}")
            self.asked.pop()
            time.sleep(0.5)

    def _note(self, question: str, saw: str, end: Mapping[str, Any]) -> Asked:
        asked = Asked(self._stage, question, saw, end)
        self.asked.append(asked)
        return asked

    # --- the operator ---

    def cicada(self, *words: str, status: int = 0) -> Done:
        """Type a command of ``cicada``, and keep it with the first lines that it printed.

        Raises:
            AssertionError: it ended with another status.
        """
        environment = os.environ | {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
        done = cicada([*words, "--endpoint-url", self.cloud.endpoint_url], environment)
        told = done.stdout.strip() or done.stderr.strip()
        self.did(f"cicada {' '.join(words)}", told)
        assert done.returncode == status, f"cicada {' '.join(words)} ended with {done.returncode}: {told}"
        return done

    def did(self, command: str, told: str = "") -> None:
        """Keep a command that was carried out, and what it said."""
        shown = [f"    {line.strip()[:160]}" for line in told.splitlines()[:4]]
        self.commands.append("\n".join([f"$ {command}", *shown]))

    def client(self, service: str) -> Any:
        """A boto3 client."""
        return self.cloud.client(service)

    def function(self, part: str) -> str:
        """A function's name, by its folder below ``lambdas/`` or its construct's name."""
        return self._house.name_of(part)

    def role(self, part: str) -> str:
        """The name of a function's role."""
        found = self.client("lambda").get_function_configuration(FunctionName=self.function(part))
        return str(found["Role"]).rpartition("/")[2]

    def upload(self, name: str, data: bytes) -> None:
        """Put a document below ``incoming/``."""
        bucket, key = self.cloud.outputs["IndexBucket"], f"incoming/{name}"
        self.client("s3").put_object(Bucket=bucket, Key=key, Body=data)
        self.did(f"aws s3 cp {name.rpartition('/')[2]} s3://BUCKET/{key}")

    def dead_letter_queue(self) -> str:
        """The URL of the queue of dead letters."""
        return str(self.client("sqs").get_queue_url(QueueName=f"{PREFIX}-dead-letters")["QueueUrl"])

    def dead_letters(self) -> int:
        """How many messages the queue of dead letters holds."""
        name = "ApproximateNumberOfMessages"
        found = self.client("sqs").get_queue_attributes(QueueUrl=self.dead_letter_queue(), AttributeNames=[name])
        return int(found["Attributes"][name])

    def table(self) -> str:
        """The table of requests."""
        return self._house.request_table()

    def age_request(self, socket: Socket) -> None:
        """Make the request that was just asked older, by its times in the table, as if nobody had worked on it."""
        socket.until("accepted")
        self.client("dynamodb").update_item(
            TableName=self.table(),
            Key={"pk": {"S": f"{self.kept['request_id']}#asker-{self._asker}"}, "sk": {"S": "head"}},
            UpdateExpression="SET lease_until = lease_until - :s, accepted_at_ms = accepted_at_ms - :ms",
            ExpressionAttributeValues={":s": {"N": str(_AGE_S)}, ":ms": {"N": str(1000 * _AGE_S)}},
            ConditionExpression="attribute_exists(pk)",
        )

    def restart(self, part: str) -> None:
        """End a function's processes: its next invocations begin in new environments."""
        name = self.function(part)

        def alive() -> set[int]:
            return set(self.cloud.functions().get(name, {}).get("processes", ()))

        ended = alive()
        for pid in ended:
            self.cloud.control("DELETE", f"functions/{name}/processes/{pid}")
        wait_for(lambda: not ended & alive(), _PATIENCE_S)

    def close_breakers(self) -> None:
        """Forget what the workers take for broken, in the table and in the workers themselves."""
        dynamodb, table = self.client("dynamodb"), self.table()
        found = dynamodb.query(
            TableName=table,
            KeyConditionExpression="pk = :breakers",
            ExpressionAttributeValues={":breakers": {"S": "breakers"}},
        )["Items"]
        for item in found:
            dynamodb.delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})
        if any("open_since_ms" in item for item in found):
            self.restart("Answer")

    # --- CloudWatch ---

    def now(self) -> datetime:
        """CloudWatch's time."""
        return self.cloud.metric_now()

    def alarm_state(self, name: str) -> str:
        """``OK``, ``ALARM`` or ``INSUFFICIENT_DATA``.

        Raises:
            LookupError: there is no such alarm.
        """
        full = f"{PREFIX}-{name}"
        found = self.client("cloudwatch").describe_alarms(AlarmNames=[full])["MetricAlarms"]
        if not found:
            raise LookupError(f"no alarm {full} is deployed")
        return str(found[0]["StateValue"])

    def wait_for_alarm(self, name: str, *states: str, within_s: float) -> bool:
        """Whether an alarm comes to one of these states within real seconds."""
        return wait_for(lambda: self.alarm_state(name) in states, within_s)

    def wait_until_fired(self, name: str, since: datetime, within_s: float) -> bool:
        """Whether an alarm fires within real seconds, or has fired since a time, even if it is OK again."""
        fired = (name, "ALARM")
        return wait_for(lambda: any((one.alarm, one.state) == fired for one in self.alarm_changes(since)), within_s)

    def alarm_changes(self, since: datetime) -> list[AlarmChange]:
        """The changes of all alarms' states, oldest first."""
        pages = self.client("cloudwatch").get_paginator("describe_alarm_history")
        found = [
            AlarmChange(
                item["AlarmName"].removeprefix(f"{PREFIX}-"),
                item["Timestamp"],
                told["newState"]["stateValue"],
                told["newState"]["stateReason"],
            )
            for page in pages.paginate(HistoryItemType="StateUpdate", StartDate=since, EndDate=self.now())
            for item in page["AlarmHistoryItems"]
            for told in [json.loads(item["HistoryData"])]
        ]
        return sorted(found, key=lambda change: change.at)

    def saved_query(self, name: str, began: float) -> list[dict[str, str]]:
        """Run a saved query, as it is deployed, over the log lines since a real time; its rows.

        Raises:
            LookupError: no such query is deployed.
        """
        logs = self.client("logs")
        full = f"{PREFIX}/{name}"
        definitions = logs.describe_query_definitions(queryDefinitionNamePrefix=full)["queryDefinitions"]
        found = [one for one in definitions if one["name"] == full]
        if not found:
            raise LookupError(f"no saved query {full} is deployed")
        started = logs.start_query(
            logGroupNames=found[0]["logGroupNames"],
            startTime=int(began),
            endTime=int(time.time()) + 1,
            queryString=found[0]["queryString"],
        )
        while (results := logs.get_query_results(queryId=started["queryId"]))["status"] in ("Scheduled", "Running"):
            time.sleep(_POLL_S)
        assert results["status"] == "Complete", results
        return [{cell["field"]: cell["value"] for cell in row if cell["field"] != "@ptr"} for row in results["results"]]


def wait_for(holds: Callable[[], bool], within_s: float) -> bool:
    """Whether something comes to hold within real seconds."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _until_end(socket: Socket, request_id: str, patience_s: float) -> list[dict[str, Any]]:
    """The frames of a request up to its end, the gateway's own error, or the end of patience."""
    deadline = time.monotonic() + patience_s
    while not (mine := _of(socket.frames, request_id)) or mine[-1].get("type") not in (None, "complete", "error"):
        try:
            socket.receive(timeout_s=max(0.1, deadline - time.monotonic()))
        except TimeoutError:
            break
    return mine


def _of(frames: Sequence[dict[str, Any]], request_id: str) -> list[dict[str, Any]]:
    """A request's frames, and those of the gateway, which have no type."""
    return [frame for frame in frames if "type" not in frame or frame["requestId"] == request_id]


def _end(frames: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return frames[-1] if frames and frames[-1].get("type") in ("complete", "error") else {}


def told(frames: Sequence[Mapping[str, Any]]) -> str:
    """What an asker saw, in a line."""
    parts = [part for frame in frames if (part := _part(frame))]
    text = " ".join("".join(frame["content"] for frame in _last_attempt(frames) if frame["type"] == "chunk").split())
    shown = [f"“{text[:_TEXT_CHARS]}{'…' if len(text) > _TEXT_CHARS else ''}”"] if text else []
    ended = [parts.pop()] if parts and _end(frames) else []
    return "; ".join([*parts, *shown, *ended]) or "nothing after `accepted`"


def _last_attempt(frames: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The frames whose text an asker still sees: those before a ``fallback`` are dropped."""
    begins = max((place for place, frame in enumerate(frames) if frame.get("type") == "fallback"), default=0)
    return [frame for frame in frames[begins:] if "type" in frame]


def _part(frame: Mapping[str, Any]) -> str:
    """What a frame tells beside text; nothing for most."""
    match frame.get("type"):
        case "fallback":
            return f"`fallback` from {frame['from']} to {frame['to']} (`{frame['code']}`)"
        case "complete":
            return f"`complete`, answered by {frame['answeredBy']}"
        case "error":
            failed = ", ".join(f"{one['strategy']}: `{one['code']}`" for one in frame.get("failed", ()))
            return f"`error` `{frame['code']}`" + (f" ({failed})" if failed else "")
        case None:
            return f"the gateway's `{frame.get('message')}`"
        case _:
            return ""


def since_minutes(change: AlarmChange, began: datetime) -> float:
    """How many of CloudWatch's minutes after a time an alarm changed."""
    return (change.at - began) / timedelta(minutes=1)
