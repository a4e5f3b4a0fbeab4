"""One address for browsers and SDKs: who gets the page, who gets S3, and whom the control endpoints answer."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from cicada_local.calls import CallLog
from cicada_local.control import Control
from cicada_local.faults import Faults
from tests.wire.local_services import Services, running_services
from tests.wire.page_stack import deployed_page


class Nothing:
    """Stands for the Lambda service and the gateway: nothing runs, one connection is open."""

    def __init__(self) -> None:
        self.open = {"abc="}

    def processes(self) -> dict[str, list[int]]:
        return {}

    def stats(self) -> dict[str, Any]:
        return {}

    def connections(self) -> list[Any]:
        return []

    def drop(self, connection_id: str) -> bool:
        return connection_id in self.open and not self.open.remove(connection_id)  # type: ignore[func-returns-value]


@pytest.fixture(scope="module")
def told() -> list[str]:
    """What the control endpoints have asked the cloud to do."""
    return []


@pytest.fixture(scope="module")
def faults() -> Faults:
    return Faults()


@pytest.fixture(scope="module")
def services(told: list[str], faults: Faults) -> Iterator[Services]:
    nothing: Any = Nothing()
    control = Control(
        faults=faults,
        calls=CallLog(),
        functions=nothing,
        gateway=nothing,
        executions=lambda: [{"name": "r1", "states": ["Rag", "Direct"]}],
        schedules=nothing,
        health=lambda: {"status": "ready"},
        save=lambda: told.append("save"),
        stop=lambda: told.append("stop"),
    )
    with running_services(control) as running:
        yield running


@pytest.fixture
def page(services: Services) -> Iterator[None]:
    with deployed_page(services, {"index.html": b"<title>Cicada</title>", "app.js": b"// code"}):
        yield


def request(services: Services, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
    call = urllib.request.Request(f"{services.endpoint_url}/_cicada/{path}", data=body, method=method, headers=headers)
    try:
        with urllib.request.urlopen(call, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.mark.usefixtures("page")
def test_a_browser_gets_the_page_and_its_files(services: Services) -> None:
    assert services.get("/") == (200, b"<title>Cicada</title>")
    assert services.get("/app.js") == (200, b"// code")


@pytest.mark.usefixtures("page")
def test_an_sdk_gets_s3_at_the_same_address(services: Services) -> None:
    client = services.client("s3")
    client.create_bucket(Bucket="app.js")
    assert "app.js" in [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]
    assert client.list_objects_v2(Bucket="app.js")["KeyCount"] == 0


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("path", ["/../etc/passwd", "/%2e%2e/secret", "/other-bucket/secret.txt", "/_cicada", "/a%00b"])
def test_a_browser_gets_nothing_but_the_page(services: Services, path: str) -> None:
    client = services.client("s3")
    client.create_bucket(Bucket="other-bucket")
    client.put_object(Bucket="other-bucket", Key="secret.txt", Body=b"not for the page")
    assert services.get(path) == (200, b"<title>Cicada</title>")


@pytest.mark.usefixtures("page")
def test_control_endpoints_that_there_are_not_are_no_page(services: Services) -> None:
    assert services.get("/_cicada/nothing")[0] == 404
    assert services.get("/_ws/nothing")[0] == 404


def test_without_a_page_a_browser_is_told_so(services: Services) -> None:
    assert services.get("/") == (503, b"The page is not deployed (yet).\n")


@pytest.mark.usefixtures("page")
def test_neither_the_page_nor_the_control_endpoints_count_as_aws_calls(services: Services) -> None:
    services.calls.clear()
    services.get("/")
    request(services, "GET", "health")
    assert services.calls.counts() == {}


def test_faults_are_armed_and_disarmed(services: Services, faults: Faults) -> None:
    status, armed = request(services, "PUT", "faults/bedrock.cut", b'{"times": 2, "after": 3}')
    assert (status, armed) == (200, {"bedrock.cut": {"times": 2, "after": 3}})
    assert faults.take("bedrock.cut") == {"after": 3}
    request(services, "PUT", "faults/s3.error")
    assert request(services, "DELETE", "faults/bedrock.cut")[1] == {"s3.error": {"times": None}}
    assert request(services, "DELETE", "faults")[1] == {}


@pytest.mark.parametrize("body", [b"not json", b"[]", b'{"times": "twice"}'])
def test_a_fault_with_senseless_parameters_is_refused(services: Services, body: bytes) -> None:
    assert request(services, "PUT", "faults/bedrock.cut", body)[0] == 400


def test_connections_functions_and_executions_are_told(services: Services) -> None:
    assert request(services, "GET", "connections") == (200, [])
    assert request(services, "GET", "functions") == (200, {})
    assert request(services, "GET", "executions")[1][0]["states"] == ["Rag", "Direct"]
    assert request(services, "DELETE", "connections/abc=")[0] == 200
    assert request(services, "DELETE", "connections/abc=")[0] == 404


def test_saving_and_stopping_can_be_asked_for(services: Services, told: list[str]) -> None:
    assert request(services, "POST", "save")[0] == 200
    assert request(services, "POST", "stop")[0] == 202
    assert told == ["save", "stop"]
