"""The access log of a stage of the local WebSocket gateway."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cicada_local.gateway import AuthorizerConfig, RouteConfig
from cicada_local.gateway.config import AccessLog
from stacks.gateway import ACCESS_LOG
from tests.wire.gateway_house import House, Raised, echo, eventually, failing, refused, throttled

STAGE = AccessLog("access", json.dumps(ACCESS_LOG))


@pytest.fixture
def logging(build: Callable[..., House]) -> House:
    """A gateway whose stage logs as the deployed one does."""
    return build(access_log=STAGE)


def lines(house: House, many: int) -> list[dict[str, Any]]:
    """The lines, once there are so many."""
    eventually(lambda: len(house.logged) >= many)
    assert all(line.startswith("access: ") for line in house.logged)
    return [json.loads(line.removeprefix("access: ")) for line in house.logged]


def test_each_connect_message_and_disconnect_is_a_line_of_the_access_log(logging: House) -> None:
    logging.functions["message"] = echo
    with logging.open() as client:
        connection_id = logging.connection_id
        client.send("{}")
        client.recv()
        logging.functions["message"] = failing
        client.send("{}")
        client.recv()
        logging.functions["message"] = throttled
        client.send("{}")
        client.recv()
    told = lines(logging, 5)
    assert {line["connectionId"] for line in told} == {connection_id}
    assert [
        (line["eventType"], line["routeKey"], line["status"], line["integrationStatus"], line["functionStatus"])
        for line in told
    ] == [
        ("CONNECT", "$connect", "200", "200", "200"),
        ("MESSAGE", "$default", "200", "200", "200"),
        ("MESSAGE", "$default", "502", "200", "-"),
        ("MESSAGE", "$default", "502", "429", "-"),
        ("DISCONNECT", "$disconnect", "200", "200", "-"),
    ]
    assert [line["error"] for line in told] == ["-", "-", "INTEGRATION_FAILURE", "INTEGRATION_FAILURE", "-"]
    assert told[1]["integrationLatencyMs"].isdigit()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Raised("Unauthorized"), ("401", "401", "UNAUTHORIZED")),
        (Raised("a bug"), ("500", "500", "AUTHORIZER_FAILURE")),
        ({"principalId": "p", "policyDocument": {"Statement": []}}, ("403", "200", "ACCESS_DENIED")),
    ],
    ids=str,
)
def test_a_refused_connect_is_a_line_of_the_access_log(
    build: Callable[..., House], answer: Any, told: tuple[str, str, str]
) -> None:
    def authorizer(_: Any) -> Any:
        if isinstance(answer, Raised):
            raise answer
        return answer

    house = build(
        routes={"$connect": RouteConfig("connect", AuthorizerConfig("authorizer", []))},
        access_log=STAGE,
    )
    house.functions["authorizer"] = authorizer
    refused(house)
    (line,) = lines(house, 1)
    assert (line["status"], line["authorizerStatus"], line["error"]) == told
    assert (line["eventType"], line["integrationStatus"]) == ("CONNECT", "-")


def test_a_stage_without_an_access_log_logs_nothing(house: House) -> None:
    with house.open():
        pass
    house.wait_for_event("disconnect")
    assert house.logged == []
