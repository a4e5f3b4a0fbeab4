"""One response to every request of CloudFormation, whatever happens."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from cicada.custom_resources import PUT_ATTEMPTS, ResourceRequest, put, respond

EVENT = {
    "RequestType": "Create",
    "ResponseURL": "https://bucket.example/response?Signature=abc",
    "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/s/1",
    "RequestId": "r-1",
    "ResourceType": "Custom::Thing",
    "LogicalResourceId": "Thing",
    "ResourceProperties": {"ServiceToken": "arn", "Size": "3"},
}


def answered(event: dict[str, Any], handle: Any = lambda _: None) -> dict[str, Any]:
    sent: list[tuple[str, bytes]] = []
    respond(event, "own-id", handle, lambda url, body: sent.append((url, body)))
    ((url, body),) = sent
    assert url == event["ResponseURL"]
    assert len(body) <= 4096
    answer: dict[str, Any] = json.loads(body)
    assert {name: answer[name] for name in ("StackId", "RequestId", "LogicalResourceId")} == {
        name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")
    }
    return answer


def test_a_request_is_handled_and_answered() -> None:
    seen: list[ResourceRequest] = []
    answer = answered(EVENT, seen.append)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "own-id")
    assert seen == [ResourceRequest("Create", "Custom::Thing", {"ServiceToken": "arn", "Size": "3"}, {})]


def test_an_update_keeps_the_physical_id_and_tells_the_old_properties() -> None:
    seen: list[ResourceRequest] = []
    event = EVENT | {
        "RequestType": "Update",
        "PhysicalResourceId": "earlier-id",
        "OldResourceProperties": {"Size": "2"},
    }
    assert answered(event, seen.append)["PhysicalResourceId"] == "earlier-id"
    assert seen[0].old_properties == {"Size": "2"}


@pytest.mark.parametrize("words", ["no access", "x" * 10_000, "駅" * 10_000, "\0\n\\" * 5_000])
def test_a_failure_is_told_with_a_reason_that_fits(words: str) -> None:
    def fail(_: ResourceRequest) -> None:
        raise ValueError(words)

    answer = answered(EVENT, fail)
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].startswith(f"ValueError: {words[:5]}")
    assert answer["PhysicalResourceId"]


def test_an_event_that_is_not_understood_is_answered_too() -> None:
    event = {name: value for name, value in EVENT.items() if name != "ResourceProperties"}
    assert answered(event)["Status"] == "FAILED"


class Bucket:
    """Stands for the presigned URL."""

    def __init__(self, *statuses: int) -> None:
        self.received: list[tuple[str, str | None, bytes]] = []
        bucket = self
        replies = iter(statuses)

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                bucket.received.append((self.path, self.headers["Content-Type"], body))
                self.send_response(next(replies))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/r?Signature=a%2Fb"


@pytest.fixture
def bucket(request: pytest.FixtureRequest) -> Iterator[Bucket]:
    bucket = Bucket(*request.param)
    thread = threading.Thread(target=bucket.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield bucket
    bucket.server.shutdown()
    bucket.server.server_close()
    thread.join()


@pytest.mark.parametrize("bucket", [(200,), (503, 500, 200)], indirect=True)
def test_a_response_is_put_as_the_presigned_url_demands_it(bucket: Bucket) -> None:
    put(bucket.url, b"{}", sleep=lambda _: None)
    assert set(bucket.received) == {("/r?Signature=a%2Fb", "", b"{}")}


@pytest.mark.parametrize(("bucket", "tries"), [((403,), 1), ((500,) * PUT_ATTEMPTS, PUT_ATTEMPTS)], indirect=["bucket"])
def test_a_response_that_cannot_be_put_fails_the_invocation(bucket: Bucket, tries: int) -> None:
    with pytest.raises(OSError, match=str(403 if tries == 1 else 500)):
        put(bucket.url, b"{}", sleep=lambda _: None)
    assert len(bucket.received) == tries
