"""The message processor where its services fail or barely answer: each frame gets a reply that names its request."""

from __future__ import annotations

import importlib.util
import json
import logging
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest
from botocore.config import Config

from benchmarks.import_time import ENVIRONMENT
from cicada.answering.action_handlers import ActionHandlers
from cicada.answering.recovery import Recovery
from cicada.answering.time_left import REPLY_RESERVE_S, TimeLeft, longest_call_s
from cicada.delivery import dynamodb
from cicada.delivery.decide import LEASE_GRACE_S, START_GRACE_S
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.errors import DeliveryUnavailable
from cicada.identity import Caller
from cicada.protocol.actions import parse_action
from stacks.answering import PROCESSOR_TIMEOUT_S
from tests.support.dynamodb import TABLE, requests_table
from tests.support.gates import open_gate
from tests.support.memory import InMemoryConnections
from tests.support.profiles import profile_counter
from tests.support.questions import NOW_S, REQUEST_ID

HANDLER = Path(__file__).parents[2] / "lambdas" / "message_processor" / "handler.py"
QUICK = Config(connect_timeout=0.2, read_timeout=0.1, retries={"mode": "standard", "total_max_attempts": 2})
ASK = {"action": "ask", "requestId": REQUEST_ID, "query": "Who locked the boathouse?"}
ACTIONS = [
    ASK,
    {"action": "resume", "requestId": REQUEST_ID},
    {"action": "cancel", "requestId": REQUEST_ID},
    {"action": "profile", "requestId": REQUEST_ID, "operation": "list"},
    {"action": "confirm", "requestId": REQUEST_ID, "confirmationId": "0" * 32, "accept": True},
]


class Throttling(BaseHTTPRequestHandler):
    """Refuses each call as DynamoDB does a table's that is throttled."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = (
            b'{"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "message": "slow"}'
        )
        self.send_response(400)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class Silent(socketserver.BaseRequestHandler):
    """Takes a call, and answers nothing."""

    def handle(self) -> None:
        while self.request.recv(65536):
            pass


class Accepting(BaseHTTPRequestHandler):
    """Takes every call of DynamoDB and of Step Functions, and notes its name; no table holds anything."""

    protocol_version = "HTTP/1.1"
    calls: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.calls.append(self.headers["X-Amz-Target"].partition(".")[2])
        bodies = {"StartExecution": b'{"executionArn": "arn", "startDate": 1}', "BatchGetItem": b'{"Responses": {}}'}
        body = bodies.get(self.calls[-1], b"{}")
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class Hanging(socketserver.ThreadingTCPServer):
    daemon_threads = True


@contextmanager
def throttling() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Throttling) as server:
        yield from _served(server)


@contextmanager
def accepting() -> Iterator[int]:
    Accepting.calls.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Accepting) as server:
        yield from _served(server)


@contextmanager
def silent() -> Iterator[int]:
    with Hanging(("127.0.0.1", 0), Silent) as server:
        yield from _served(server)


@contextmanager
def absent() -> Iterator[int]:
    yield 9


def _served(server: socketserver.TCPServer) -> Iterator[int]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield int(server.server_address[1])
    server.shutdown()


@pytest.fixture
def logging_as_it_was() -> Iterator[None]:
    """The function's telemetry sets up the library's logger for its whole process."""
    logger = logging.getLogger("cicada")
    handlers, level = list(logger.handlers), logger.level
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"message_processor_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, logging_as_it_was: None) -> Callable[..., ModuleType]:
    """Loads the function, with its services at a port of this machine and its time-outs short."""

    def load(port: int, auth: str = "none") -> ModuleType:
        for name, value in (ENVIRONMENT | {"AUTH": auth, "POWERTOOLS_METRICS_DISABLED": "true"}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setattr(dynamodb, "STORE_CONFIG", QUICK)
        monkeypatch.setattr("cicada.profiles.dynamodb.PROFILES_CONFIG", QUICK)
        monkeypatch.setitem(sys.modules, "wiring", loaded(HANDLER.with_name("wiring.py")))
        return loaded(HANDLER)

    return load


def sent(
    module: ModuleType,
    action: dict[str, Any],
    remaining_s: float = PROCESSOR_TIMEOUT_S,
    identity: dict[str, str] | None = None,
) -> dict[str, Any]:
    """The reply to a frame."""
    context = SimpleNamespace(
        function_name="processor",
        function_version="1",
        invoked_function_arn="arn",
        memory_limit_in_mb=1024,
        aws_request_id="r",
        get_remaining_time_in_millis=lambda: int(1000 * remaining_s),
    )
    connection = {"connectionId": "c=", "requestId": "g", "messageId": "m", "authorizer": identity or {}}
    event = {"requestContext": connection, "body": json.dumps(action)}
    reply: dict[str, Any] = json.loads(module.handler(event, context)["body"])
    return reply


@pytest.mark.parametrize("service", [throttling, silent, absent])
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action["action"])
def test_a_store_that_fails_is_named_to_whoever_sent_the_frame(
    load: Callable[..., ModuleType], service: Any, action: dict[str, Any]
) -> None:
    with service() as port:
        reply = sent(load(port), action)
    code = "profiles_unavailable" if action["action"] == "profile" else "delivery_unavailable"
    assert (reply["requestId"], reply["seq"], reply["code"], reply["retryable"]) == (REQUEST_ID, 0, code, True)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action["action"])
def test_a_function_that_has_no_time_for_a_call_says_so_and_does_not_begin_it(
    load: Callable[..., ModuleType], action: dict[str, Any]
) -> None:
    reply = sent(load(9), action, remaining_s=REPLY_RESERVE_S + 0.1)
    assert (reply["requestId"], reply["seq"]) == (REQUEST_ID, 0)
    assert (reply["code"], reply["retryable"]) == ("delivery_unavailable", True)


@pytest.mark.parametrize("action", [*ACTIONS, {"action": "ping"}], ids=lambda action: action["action"])
def test_where_a_revocation_cannot_be_looked_up_nothing_is_carried_out(
    load: Callable[..., ModuleType], action: dict[str, Any]
) -> None:
    identity = {"subject": "mara", "expires_at": "9999999999", "issued_at": "1"}
    with throttling() as port:
        reply = sent(load(port, auth="jwt"), action, identity=identity)
    assert reply["requestId"] == action.get("requestId")
    assert (reply["code"], reply["retryable"], reply.get("detail")) == ("delivery_unavailable", True, None)


@pytest.mark.parametrize("auth", ["none", "jwt"])
def test_a_question_costs_one_read_for_revocation_and_limits_and_one_write(
    load: Callable[..., ModuleType], auth: str
) -> None:
    identity = {"subject": "mara", "expires_at": "9999999999", "issued_at": "1"}
    with accepting() as port:
        assert sent(load(port, auth=auth), ASK, identity=identity)["type"] == "accepted"
    assert Accepting.calls == ["BatchGetItem", "PutItem", "StartExecution"]


class SlowStore:
    """An intake over a store each call of which takes as long as it may, on a clock of its own."""

    def __init__(self, client: Any) -> None:
        self.now = 0.0
        self.slow = False
        self.started = 0
        self.epoch_s = float(NOW_S)
        self.time_left = TimeLeft(lambda: self.now)
        client.meta.events.register_last("before-call", self._take_time)
        self._longest_s = longest_call_s(client)
        log = DynamoDbLog(self.time_left.hold(client), TABLE)
        connections = InMemoryConnections("c1", "c2")
        recovery = Recovery(log, connections, self, time_left_s=self.time_left.seconds, now_s=lambda: self.epoch_s)
        self.action_handlers = ActionHandlers(
            log,
            connections,
            recovery,
            profile_counter(),
            open_gate(log),
            retention_s=3600,
            now_s=lambda: self.epoch_s,
            monotonic=lambda: self.now,
        )

    def start(self, key: Any, strategy: Any, failed: Any = ()) -> None:
        """See :class:`cicada.answering.workflow.WorkflowStarter`."""
        self.started += 1

    def send(self, action: dict[str, Any], frame: str, connection: str = "c1") -> tuple[dict[str, Any], float]:
        """The reply to a frame, and how long it took."""
        begun = self.now
        self.time_left.begin(PROCESSOR_TIMEOUT_S)
        reply = json.loads(
            self.action_handlers.handle(parse_action(json.dumps(action)), Caller("mara", connection, frame))
        )
        return reply, self.now - begun

    def _take_time(self, **_: Any) -> None:
        if self.slow:
            self.now += self._longest_s


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowStore]:
    with requests_table(monkeypatch, STORE_CONFIG) as client:
        yield SlowStore(client)


@pytest.mark.parametrize("action", ACTIONS[:3], ids=lambda action: action["action"])
def test_a_store_that_barely_answers_does_not_have_the_function_killed_before_it_replies(
    store: SlowStore, action: dict[str, Any]
) -> None:
    store.send(ASK, "f1")
    store.slow = True
    reply, took_s = store.send(action, "f2", "c2")
    assert (reply["requestId"], reply["code"]) == (REQUEST_ID, "delivery_unavailable")
    assert took_s < PROCESSOR_TIMEOUT_S
    store.slow = False
    reply, _ = store.send(action, "f3", "c2")
    assert reply["type"] == {"ask": "accepted", "resume": "resumed", "cancel": "error"}[action["action"]]
    assert reply.get("code") != "delivery_unavailable"


def test_a_resume_takes_no_request_up_that_it_has_not_the_time_to_start(store: SlowStore) -> None:
    store.send(ASK, "f1")
    store.epoch_s += START_GRACE_S + LEASE_GRACE_S + 1
    store.slow = True
    store.send({"action": "resume", "requestId": REQUEST_ID}, "f2")
    assert store.started == 1
    store.slow = False
    reply, _ = store.send({"action": "resume", "requestId": REQUEST_ID}, "f3")
    assert (reply["outcome"], store.started) == ("live", 2)


def test_calls_are_not_held_back_outside_an_invocation(monkeypatch: pytest.MonkeyPatch) -> None:
    with requests_table(monkeypatch, STORE_CONFIG) as client:
        time_left = TimeLeft()
        time_left.hold(client).list_tables()
        time_left.begin(longest_call_s(client))
        with pytest.raises(DeliveryUnavailable):
            client.list_tables()
