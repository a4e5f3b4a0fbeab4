"""Authorizers of the local WebSocket gateway."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from cicada_local.gateway import (
    AuthorizerConfig,
    RouteConfig,
)
from cicada_local.gateway.policy import decide
from tests.wire.gateway_house import ALLOW, Event, House, Raised, echo, failing, refused


@pytest.fixture
def guarded(build: Callable[..., House]) -> House:
    """With an authorizer, that allows unless it is scripted to do something else."""
    authorizer = AuthorizerConfig("authorizer", ["route.request.querystring.token", "route.request.header.Origin"])
    guarded = build(
        routes={
            "$connect": RouteConfig("connect", authorizer),
            "$disconnect": RouteConfig("disconnect"),
            "$default": RouteConfig("message", two_way=True),
        }
    )
    guarded.functions["authorizer"] = lambda event: {"principalId": "beatrice", "policyDocument": ALLOW}
    return guarded


def test_the_authorizer_is_asked_before_connect(guarded: House) -> None:
    with guarded.open("?token=secret", origin="https://cicada.example"):
        asked = guarded.events["authorizer"][0]
    assert asked["type"] == "REQUEST"
    assert asked["methodArn"] == "arn:aws:execute-api:us-east-1:123456789012:a1b2c3/dev/$connect"
    assert asked["headers"]["Origin"] == "https://cicada.example"
    assert asked["queryStringParameters"] == {"token": "secret"}
    assert asked["stageVariables"] == {}
    assert asked["requestContext"]["routeKey"] == "$connect"
    connected = guarded.events["connect"][0]["requestContext"]
    assert asked["requestContext"]["connectionId"] == connected["connectionId"]


def test_the_offered_subprotocols_reach_the_authorizer_and_connect(guarded: House) -> None:
    guarded.functions["connect"] = lambda event: {"statusCode": 200, "headers": {"Sec-WebSocket-Protocol": "v1"}}
    with guarded.open("?token=t", origin="o", subprotocols=["v1", "bearer.secret"]) as client:
        assert client.subprotocol == "v1"
    for function in ("authorizer", "connect"):
        assert guarded.events[function][0]["headers"]["Sec-WebSocket-Protocol"] == "v1, bearer.secret"


def test_the_authorizers_context_is_in_every_later_event_as_strings(guarded: House) -> None:
    guarded.functions["authorizer"] = lambda event: {
        "principalId": "beatrice",
        "policyDocument": ALLOW,
        "context": {"subject": "beatrice", "expires_at": 1_800_000_000, "admin": False, "share": 0.5},
    }
    guarded.functions["message"] = echo
    with guarded.open("?token=t", origin="o") as client:
        client.send("hello")
        client.recv()
    disconnected = guarded.wait_for_event("disconnect")
    for event in (guarded.events["connect"][0], guarded.events["message"][0], disconnected):
        seen = dict(event["requestContext"]["authorizer"])
        assert isinstance(seen.pop("integrationLatency"), int)
        assert seen == {
            "principalId": "beatrice",
            "subject": "beatrice",
            "expires_at": "1800000000",
            "admin": "false",
            "share": "0.5",
        }


@pytest.mark.parametrize(("query", "origin"), [("", "o"), ("?token=", "o"), ("?token=t", None)])
def test_a_missing_identity_source_is_401_without_asking(guarded: House, query: str, origin: str | None) -> None:
    status, body = refused(guarded, query, origin=origin)
    assert (status, body["message"]) == (401, "Unauthorized")
    assert guarded.events == {}


def test_an_authorizer_that_raises_unauthorized_is_401(guarded: House) -> None:
    def unauthorized(event: Event) -> Any:
        raise Raised("Unauthorized")

    guarded.functions["authorizer"] = unauthorized
    assert refused(guarded)[0] == 401
    assert "connect" not in guarded.events
    assert guarded.counted == ["a1b2c3/dev ClientError"]


@pytest.mark.parametrize(
    "statements",
    [
        [{"Effect": "Deny", "Action": "execute-api:Invoke", "Resource": "*"}],
        [*ALLOW["Statement"], {"Effect": "Deny", "Action": "*", "Resource": "*"}],
        [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "arn:aws:execute-api:*:*:other/*"}],
        [],
    ],
)
def test_a_policy_that_does_not_allow_is_403(guarded: House, statements: list[Any]) -> None:
    policy = {"Version": "2012-10-17", "Statement": statements}
    guarded.functions["authorizer"] = lambda event: {"principalId": "b", "policyDocument": policy}
    status, body = refused(guarded)
    assert (status, body["message"]) == (403, "Forbidden")
    assert "connect" not in guarded.events


@pytest.mark.parametrize(
    "result",
    [
        None,
        {"principalId": "b"},
        {"policyDocument": ALLOW},
        {"principalId": "b", "policyDocument": {"Statement": [{"Effect": "allow"}]}},
        {"principalId": "b", "policyDocument": ALLOW, "context": {"groups": ["nested"]}},
        {"principalId": "b", "policyDocument": ALLOW, "context": {"large": "x" * 8192}},
    ],
)
def test_an_authorizer_that_answers_what_is_none_is_500(guarded: House, result: Any) -> None:
    guarded.functions["authorizer"] = lambda event: result
    assert refused(guarded)[0] == 500


def test_an_authorizer_that_fails_is_500(guarded: House) -> None:
    guarded.functions["authorizer"] = failing
    assert refused(guarded)[0] == 500
    assert guarded.counted == []


def test_a_function_that_does_not_permit_the_api_is_not_invoked(build: Callable[..., House]) -> None:
    """As API Gateway has it without an ``AWS::Lambda::Permission``."""
    api = "arn:aws:execute-api:us-east-1:123456789012:a1b2c3"
    permitted = {("authorizer", f"{api}/authorizers/abc"), ("connect", f"{api}/dev/$connect")}
    routes = {
        "$connect": RouteConfig("connect", AuthorizerConfig("authorizer", authorizer_id="abc")),
        "$default": RouteConfig("message", two_way=True),
    }
    house = build(routes=routes, permits=lambda function, source: (function, source) in permitted)
    house.functions["authorizer"] = lambda event: {"principalId": "beatrice", "policyDocument": ALLOW}
    with house.open() as client:
        client.send("hello")
        assert json.loads(client.recv())["message"] == "Internal server error"
    assert "message" not in house.events
    permitted.discard(("authorizer", f"{api}/authorizers/abc"))
    assert refused(house)[0] == 500
    assert len(house.events["authorizer"]) == 1


RESOURCE = "arn:aws:execute-api:us-east-1:123456789012:a1b2c3/dev/$connect"


@pytest.mark.parametrize(
    ("statement", "decision"),
    [
        ({"Effect": "Allow", "Action": "execute-api:*", "Resource": "arn:aws:execute-api:*:*:a1b2c3/*"}, "allow"),
        ({"Effect": "Allow", "Action": ["x:Y", "EXECUTE-API:invoke"], "Resource": [RESOURCE]}, "allow"),
        ({"Effect": "Allow", "Action": "*", "Resource": RESOURCE.replace("dev", "d?v")}, "allow"),
        ({"Effect": "Allow", "Action": "*", "Resource": RESOURCE.replace("dev", "d??v")}, "implicit deny"),
        ({"Effect": "Allow", "Action": "*", "Resource": RESOURCE.upper()}, "implicit deny"),
        ({"Effect": "Allow", "NotAction": "s3:*", "NotResource": "arn:aws:s3:::*"}, "allow"),
        ({"Effect": "Allow", "Action": "*", "NotResource": "*"}, "implicit deny"),
        ({"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"Bool": {}}}, "implicit deny"),
        ({"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": {"Bool": {}}}, "explicit deny"),
    ],
)
def test_a_policys_patterns_decide(statement: Any, decision: str) -> None:
    assert decide({"Statement": statement}, "execute-api:Invoke", RESOURCE) == decision
