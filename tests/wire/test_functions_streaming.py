"""ASGI applications on Lambda's Runtime API, in real processes, behind a function URL of the local Lambda service."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cicada_local.functions import FunctionConfig, urls
from cicada_local.functions import runtime_api as stand_in
from cicada_local.functions.config import StreamedResult
from cicada_local.functions.urls import FunctionUrl, FunctionUrls
from cicada_local.ports import listen
from tests.wire.functions_cloud import Cloud, clouds

ROOT = Path(__file__).parents[2]
ARN = "arn:aws:lambda:eu-west-1:123456789012:function:f"
WRAPPER = """#!/bin/sh
PYTHONPATH="$LAMBDA_TASK_ROOT:/opt/python" exec "$1" -m cicada_http.bridge
"""
APP = """
import asyncio, json, os, sys
from pathlib import Path

started = []

async def handler(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        started.append(True)
        scope["state"]["word"] = "kept"
        await send({"type": "lifespan.startup.complete"})
        await receive()
        return
    request = await receive()

    async def start(status=200, *headers):
        await send({"type": "http.response.start", "status": status, "headers": [
            (b"content-type", b"text/plain"), *headers]})

    async def piece(text, more=True):
        await send({"type": "http.response.body", "body": text.encode(), "more_body": more})

    def passed(name):
        return (Path(os.environ["GATES"]) / name).exists()

    match scope["path"]:
        case "/echo":
            await start(201, (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"www-authenticate", b"Bearer"))
            await piece(json.dumps({
                "method": scope["method"], "path": scope["path"], "query": scope["query_string"].decode(),
                "headers": {name.decode(): value.decode() for name, value in scope["headers"]},
                "body": request["body"].hex(), "client": scope["client"][0], "state": scope["state"],
                "started": len(started), "id": scope["aws.request_id"],
            }), more=False)
        case "/pieces":
            await start()
            await piece("first ")
            while not passed("go"):
                await asyncio.sleep(0.01)
            await piece("second", more=False)
            (Path(os.environ["GATES"]) / "finished").touch()
        case "/broken":
            await start()
            raise ValueError("the secret is 1234")
        case "/cut":
            await start()
            await piece("half ")
            raise ValueError("the secret is 1234")
        case "/late":
            await start()
            await piece("half ")
            await asyncio.Event().wait()
        case "/killed":
            await start()
            await piece("half ")
            os._exit(3)
        case "/empty":
            await start(202)
            await piece("", more=False)
        case "/nothing":
            await start(204)
            await piece("", more=False)
        case "/unfinished":
            await start()
"""


def package(app: str = APP, wrapper: str = WRAPPER, mode: int = 0o755, filler: str = r"\n") -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as unfinished:
        unfinished.writestr("handler.py", app)
        for path in sorted((ROOT / "cicada_http").rglob("*.py")):
            source = path.read_text().replace(r'FILLER = b"\n"', f'FILLER = b"{filler}"')
            unfinished.writestr(str(path.relative_to(ROOT)), source)
        script = zipfile.ZipInfo("bridge.sh")
        script.external_attr = mode << 16
        unfinished.writestr(script, wrapper)
    return archive.getvalue()


def function(archive: bytes, gates: Path, **config: Any) -> FunctionConfig:
    return FunctionConfig(
        name="f",
        arn=ARN,
        handler="handler.handler",
        code_zip=archive,
        code_sha=hashlib.sha256(archive).hexdigest(),
        environment={"AWS_LAMBDA_EXEC_WRAPPER": "/var/task/bridge.sh", "GATES": str(gates)},
        **{"timeout_s": 30.0, "memory_mb": 512, **config},
    )


class Served:
    """A function behind its URL."""

    def __init__(self, cloud: Cloud, gates: Path) -> None:
        self.cloud = cloud
        self.gates = gates
        self.url = FunctionUrl("abc", "abc.lambda-url.eu-west-1.on.aws", ARN, "NONE", "RESPONSE_STREAM")
        self.permitted = True
        self.urls = FunctionUrls(lambda: [self.url], cloud.service, lambda arn, kind: self.permitted)
        self.port = 0

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, headers or {})
        return connection.getresponse()

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        response = self.request("GET", path, None, headers)
        return response.status, response.read()


@contextmanager
def serving(cloud: Cloud, gates: Path) -> Iterator[Served]:
    served = Served(cloud, gates)
    sockets = listen(0)
    served.port = sockets[0].getsockname()[1]
    cloud.call(served.urls.start(sockets))
    try:
        yield served
    finally:
        cloud.call(served.urls.close())


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for the tests that leave it as it is."""
    root = tmp_path_factory.mktemp("bridge")
    with clouds(root) as start, serving(start(), root) as served:
        served.cloud.functions["f"] = function(package(), root)
        yield served


def test_a_request_reaches_the_application_as_it_was_sent(warm: Served) -> None:
    response = warm.request(
        "POST", "/echo?a=1&b=%20", b"\x00\xff", {"Cookie": "one=1; two=2", "Content-Type": "image/png", "X-Own": "yes"}
    )
    seen = json.loads(response.read())
    assert response.status == 201
    assert response.headers.get_all("Set-Cookie") == ["a=1", "b=2"]
    assert (seen["method"], seen["path"], seen["query"], seen["body"]) == ("POST", "/echo", "a=1&b=%20", "00ff")
    assert (seen["headers"]["cookie"], seen["headers"]["x-own"]) == ("one=1; two=2", "yes")
    assert seen["headers"]["x-forwarded-for"] == seen["client"] == "127.0.0.1"
    assert (seen["state"], seen["started"]) == ({"word": "kept"}, 1)
    assert seen["id"] == response.headers["x-amzn-RequestId"]


def test_lambda_renames_the_challenge_of_a_refusal(warm: Served) -> None:
    response = warm.request("GET", "/echo")
    assert "WWW-Authenticate" not in response.headers
    assert response.headers["x-amzn-Remapped-www-authenticate"] == "Bearer"


def test_a_response_arrives_piece_by_piece(warm: Served) -> None:
    response = warm.request("GET", "/pieces")
    assert response.read(6) == b"first "
    (warm.gates / "go").touch()
    assert response.read() == b"second"


def test_an_invocation_goes_on_when_its_client_is_gone(warm: Served) -> None:
    for name in ("go", "finished"):
        (warm.gates / name).unlink(missing_ok=True)
    response = warm.request("GET", "/pieces")
    assert response.read(6) == b"first "
    response.close()
    (warm.gates / "go").touch()
    status, _ = warm.get("/echo")  # waits for nothing: another environment may answer
    assert status == 201
    while not (warm.gates / "finished").exists():
        pass


@pytest.mark.parametrize("path", ["/broken", "/unfinished"])
def test_an_error_before_the_first_piece_is_a_bad_gateway(warm: Served, path: str) -> None:
    assert warm.get(path) == (502, b"Internal Server Error")


def test_an_error_within_the_response_cuts_the_connection(warm: Served) -> None:
    response = warm.request("GET", "/cut")
    assert response.status == 200
    with pytest.raises(http.client.IncompleteRead) as caught:
        response.read()
    assert caught.value.partial == b"half "
    assert "the secret is 1234" in warm.cloud.log()  # for the operator alone


def test_a_streamed_error_names_its_type_in_the_trailers(warm: Served) -> None:
    async def ended() -> Any:
        event = {"version": "2.0", "rawPath": "/cut", "requestContext": {"http": {"method": "GET"}}}
        result = await warm.cloud.service.stream("f", json.dumps(event).encode())
        assert isinstance(result, StreamedResult)
        text = b"".join([piece async for piece in result.stream.pieces()])
        return text, result.stream.error

    text, error = warm.cloud.call(ended())
    assert text.endswith(bytes(8) + b"half ")
    assert error.type == "Function.Failed"
    assert "1234" not in error.body


def test_a_process_that_dies_within_the_response_cuts_it(warm: Served) -> None:
    with pytest.raises(http.client.IncompleteRead):
        warm.request("GET", "/killed").read()
    assert warm.get("/echo")[0] == 201


def test_a_response_without_a_body_gets_a_line_break(warm: Served) -> None:
    assert warm.get("/empty") == (202, b"\n")
    assert warm.get("/nothing") == (204, b"")


def test_an_event_of_another_service_is_refused(warm: Served) -> None:
    answer = warm.cloud.invoke({"Records": []})
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Payload"]["errorType"] == "Function.EventInvalid"


def test_a_plain_invocation_gets_the_whole_stream_at_once(warm: Served) -> None:
    event = {"version": "2.0", "rawPath": "/empty", "requestContext": {"http": {"method": "GET"}}}
    answer = warm.cloud.client.invoke(FunctionName="f", Payload=json.dumps(event))
    head, _, body = answer["Payload"].read().partition(bytes(8))
    assert (json.loads(head)["statusCode"], body) == (202, b"\n")


# --- function URLs ---


def test_a_url_needs_both_permissions(warm: Served) -> None:
    warm.permitted = False
    try:
        response = warm.request("GET", "/echo")
        assert (response.status, response.headers["x-amzn-ErrorType"]) == (403, "AccessDeniedException")
        assert b"urls-auth" in response.read()
    finally:
        warm.permitted = True


def test_an_unsigned_request_to_a_url_of_iam_is_refused(warm: Served) -> None:
    plain, warm.url = warm.url, replace(warm.url, auth_type="AWS_IAM")
    try:
        assert warm.get("/echo")[0] == 403
    finally:
        warm.url = plain


def test_a_request_over_six_megabytes_is_refused(warm: Served) -> None:
    """As text it fits, as base64 it does not."""
    body = b"x" * (5 * 1024 * 1024)
    assert warm.request("POST", "/empty", body, {"Content-Type": "text/plain"}).status == 202
    assert warm.request("POST", "/empty", body, {"Content-Type": "image/png"}).status == 413


def test_a_page_gets_what_cors_allows_and_others_nothing(warm: Served) -> None:
    page = {"Origin": "https://a.example"}
    assert warm.request("GET", "/echo", None, page).status == 403  # no page of this machine's browser, without CORS
    plain = warm.url
    warm.url = replace(plain, cors={"AllowOrigins": ["https://a.example"], "AllowMethods": ["POST"], "MaxAge": 60})
    try:
        asked = warm.request("OPTIONS", "/echo", None, page | {"Access-Control-Request-Method": "POST"})
        assert (asked.status, asked.headers["Access-Control-Allow-Methods"]) == (200, "POST")
        allowed = warm.request("GET", "/echo", None, page)
        assert (allowed.status, allowed.headers["Access-Control-Allow-Origin"]) == (201, "https://a.example")
        assert warm.request("GET", "/echo", None, {"Origin": "https://b.example"}).status == 403
    finally:
        warm.url = plain


def test_no_other_host_is_answered(warm: Served) -> None:
    assert warm.request("GET", "/echo", None, {"Host": "rebound.example"}).status == 403


def test_an_unknown_url_is_forbidden_as_on_aws(warm: Served) -> None:
    urls_of, warm.urls._deployed = warm.urls._deployed, list
    try:
        assert warm.get("/echo") == (403, b'{"Message": null}')
    finally:
        warm.urls._deployed = urls_of


def test_throttled_requests_are_told_so(warm: Served) -> None:
    plain = warm.cloud.functions["f"]
    warm.cloud.functions["f"] = replace(plain, reserved_concurrency=0)
    try:
        status, body = warm.get("/echo")
        assert (status, json.loads(body)["Type"]) == (429, "User")
    finally:
        warm.cloud.functions["f"] = plain


def test_a_streamed_response_without_a_body_keeps_the_connection_open(
    start: Callable[..., Cloud], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the bridge's line break is for."""
    monkeypatch.setattr(urls, "EMPTY_STREAM_S", 0.05)
    with serving(start(), tmp_path) as served:
        served.cloud.functions["f"] = function(package(filler=""), tmp_path)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            served.request("GET", "/empty").read()


# --- starting and ending ---


def test_a_response_ends_with_an_error_before_its_time_is_over(start: Callable[..., Cloud], tmp_path: Path) -> None:
    with serving(start(), tmp_path) as served:
        served.cloud.functions["f"] = function(package(), tmp_path, timeout_s=1.5)
        with pytest.raises(http.client.IncompleteRead):
            served.request("GET", "/late").read()
        assert served.get("/echo")[0] == 201
        assert served.cloud.service.stats()["f"].cold_starts == 1  # the process was not killed


@pytest.mark.parametrize(
    ("app", "told"),
    [
        ("import nothing_of_this_name", "Runtime.ModuleNotFoundError"),
        (
            "async def handler(scope, receive, send):\n"
            "    await receive()\n"
            "    await send({'type': 'lifespan.startup.failed', 'message': 'no address'})\n",
            "Runtime.StartFailed",
        ),
    ],
)
def test_an_application_that_does_not_start_is_reported(
    start: Callable[..., Cloud], tmp_path: Path, app: str, told: str
) -> None:
    cloud = start()
    cloud.functions["f"] = function(package(app), tmp_path)
    assert cloud.invoke({})["Payload"]["errorType"] == told


@pytest.mark.parametrize(
    ("wrapper", "mode"),
    [(WRAPPER, 0o644), (WRAPPER.replace("$LAMBDA_TASK_ROOT:", ""), 0o755)],
    ids=["not executable", "without the code's folder"],
)
def test_a_wrapper_that_would_not_start_on_aws_does_not_start_here(
    start: Callable[..., Cloud], tmp_path: Path, wrapper: str, mode: int
) -> None:
    cloud = start()
    cloud.functions["f"] = function(package(APP, wrapper, mode), tmp_path)
    answer = cloud.invoke({})
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Payload"]["errorType"] == "Runtime.ExitError"


def test_a_streamed_response_over_its_limit_is_cut(
    start: Callable[..., Cloud], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stand_in, "MAX_STREAMED_BYTES", 300)
    with serving(start(), tmp_path) as served:
        served.cloud.functions["f"] = function(package(), tmp_path)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            served.request("GET", "/echo").read()
