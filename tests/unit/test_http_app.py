"""The application behind the function URL: who is let through, and what the others are told."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from cicada_client.connection import TransportClosed
from cicada_client.errors import (
    AnswerFailed,
    ConnectionLost,
    ConnectionRefused,
    InvalidQuestion,
    RequestRefused,
    Unauthorized,
)
from cicada_http import gate
from cicada_http.app import Part, create_app
from cicada_http.clients import token_of
from cicada_http.refusals import HttpRefusal
from cicada_http.settings import HttpSettings

TOKEN = "secret-token-of-a-user"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SIGNED_IN = {
    "WEBSOCKET_URL": "wss://abc.execute-api.us-east-1.amazonaws.com/live",
    "JWT_ISSUER": "https://issuer.example.org",
    "JWT_SCOPES": "openid email",
    "ALLOWED_ORIGINS": "https://a.example",
}


class Connection:
    def __init__(self):
        self.closed = 0

    async def send(self, text):
        raise AssertionError("nobody asked")

    async def receive(self):
        await asyncio.Event().wait()

    async def close(self):
        self.closed += 1


class Deployment:
    """Opens connections, or refuses them."""

    def __init__(self, refusal=None):
        self.refusal = refusal
        self.opened = []
        self.tokens = []

    async def __call__(self, url, token):
        self.tokens.append(token)
        if self.refusal is not None:
            raise self.refusal
        self.opened.append(Connection())
        return self.opened[-1]


def part(seen, running=None):
    def make(clients):
        async def ask(request: Request):
            seen["body"] = await request.body()
            client = clients(token_of(request))
            seen["transport"] = await client._manager._connector("", token_of(request))
            if (error := seen.get("raises")) is not None:
                raise error
            return JSONResponse({"answer": "yes"})

        async def stream(request: Request):
            async def pieces():
                yield b"a"
                yield b"b"

            return StreamingResponse(pieces())

        return Part([Route("/v1/ask", ask, methods=["POST"]), Route("/v1/stream", stream)], running)

    return make


def client(deployment, seen=None, *, environ=SIGNED_IN, running=None, **options):
    app = create_app(HttpSettings.read(environ), part({} if seen is None else seen, running), connector=deployment)
    return TestClient(app, base_url="https://abc.lambda-url.us-east-1.on.aws", **options)


def test_a_token_opens_one_connection_which_the_request_uses():
    deployment = Deployment()
    seen: dict[str, Any] = {}
    answer = client(deployment, seen).post("/v1/ask", content=b"hello", headers=BEARER)
    assert (answer.status_code, answer.json()) == (200, {"answer": "yes"})
    assert seen["body"] == b"hello"
    assert deployment.tokens == [TOKEN]
    assert seen["transport"] is deployment.opened[0]
    assert deployment.opened[0].closed == 0  # its client's to close


def test_a_connection_that_no_client_takes_is_closed():
    deployment = Deployment()
    assert client(deployment).get("/v1/stream", headers=BEARER).text == "ab"
    assert [one.closed for one in deployment.opened] == [1]


def test_without_a_token_no_connection_is_opened():
    deployment = Deployment()
    answer = client(deployment).post("/v1/ask")
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"
    assert deployment.tokens == []
    assert answer.headers["WWW-Authenticate"] == (
        'Bearer resource_metadata="https://abc.lambda-url.us-east-1.on.aws/.well-known/oauth-protected-resource/mcp"'
    )


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (Unauthorized("not for you"), 401, "unauthorized"),
        (Unauthorized("not in the group", status=403), 403, "forbidden"),
        (ConnectionRefused("no deployment"), 502, "deployment_unavailable"),
        (TransportClosed("busy", status=429), 429, "throttled"),
        (TransportClosed("no route to host"), 503, "deployment_unavailable"),
    ],
)
def test_a_refused_connection_has_a_status_and_a_code(refusal, status, code):
    answer = client(Deployment(refusal)).post("/v1/ask", headers=BEARER)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert str(refusal) not in answer.text
    assert ("error=" in answer.headers.get("WWW-Authenticate", "")) is (status == 401)
    assert ("Retry-After" in answer.headers) is (status in (429, 503))


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidQuestion("query: is empty"), 400, "invalid_request"),
        (RequestRefused("limit_reached", "A limit."), 429, "limit_reached"),
        (RequestRefused("unauthorized", "The token was revoked."), 401, "unauthorized"),
        (RequestRefused("workflow_unavailable", "Try again."), 503, "workflow_unavailable"),
        (RequestRefused("unknown_action", "Not known."), 400, "unknown_action"),
        (AnswerFailed("all_strategies_failed", "All failed.", retryable=True, text=""), 503, "all_strategies_failed"),
        (AnswerFailed("budget_spent", "Spent.", retryable=False, text=""), 502, "budget_spent"),
        (ConnectionLost("gave up"), 503, "deployment_unavailable"),
        (HttpRefusal(404, "model_not_found", "No such model."), 404, "model_not_found"),
        (ValueError("secret"), 500, "internal"),
    ],
)
def test_an_error_while_answering_has_a_status_and_a_code(error, status, code):
    answer = client(Deployment(), {"raises": error}, raise_server_exceptions=False).post("/v1/ask", headers=BEARER)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert "secret" not in answer.text


def test_a_slow_deployment_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(gate, "OPEN_S", 0.01)

    async def hang(url, token):
        await asyncio.Event().wait()

    assert client(hang).post("/v1/ask", headers=BEARER).status_code == 503


def test_a_large_body_is_refused(monkeypatch):
    monkeypatch.setattr(gate, "MAX_BODY_BYTES", 8)
    deployment = Deployment()
    answer = client(deployment).post("/v1/ask", content=b"123456789", headers=BEARER)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
    assert deployment.tokens == []


@pytest.mark.parametrize(("origin", "status"), [("https://a.example", 200), ("https://b.example", 403), ("null", 403)])
def test_only_pages_of_known_origins_may_send(origin, status):
    answer = client(Deployment()).post("/v1/ask", headers={**BEARER, "Origin": origin})
    assert answer.status_code == status


def test_metadata_leads_to_the_issuer():
    public = client(Deployment())
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        assert public.get(path).json() == {
            "resource": "https://abc.lambda-url.us-east-1.on.aws/mcp",
            "resource_name": "Cicada",
            "authorization_servers": ["https://issuer.example.org"],
            "scopes_supported": ["openid", "email"],
            "bearer_methods_supported": ["header"],
        }
    assert public.get("/health").json()["status"] == "ok"


def test_without_sign_in_no_token_is_needed_and_no_issuer_named():
    environ = {"WEBSOCKET_URL": "ws://localhost:4600/_ws/a/live", "AUTH": "none"}
    deployment = Deployment()
    anonymous = client(deployment, environ=environ)
    assert anonymous.post("/v1/ask").status_code == 200
    assert deployment.tokens == [None]
    assert anonymous.get("/.well-known/oauth-protected-resource").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [("GET", "/v2", 404, "not_found"), ("GET", "/v1/ask", 405, "method_not_allowed")],
)
def test_what_does_not_exist_is_told_in_the_same_form(method, path, status, code):
    answer = client(Deployment()).request(method, path, headers=BEARER)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_the_parts_run_as_long_as_the_application():
    steps = []

    @asynccontextmanager
    async def running():
        steps.append("started")
        yield
        steps.append("ended")

    with client(Deployment(), running=running):
        assert steps == ["started"]
    assert steps == ["started", "ended"]


def test_no_token_gets_into_the_log(caplog):
    with caplog.at_level(logging.DEBUG, logger="cicada"):
        client(Deployment(Unauthorized(f"not {TOKEN}"))).post(f"/v1/ask?token={TOKEN}", headers=BEARER)
        client(Deployment()).post("/v1/ask", headers=BEARER)
    lines = [record for record in caplog.records if record.name == "cicada.http"]
    assert [(line.path, line.status) for line in lines] == [("/v1/ask", 401), ("/v1/ask", 200)]
    assert not any(TOKEN in str(vars(line)) for line in lines)
