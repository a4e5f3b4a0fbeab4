"""Any JSON as a function URL's event: a request, or a clear refusal."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada_http.bridge.events import EventInvalid, read_event
from cicada_http.bridge.exchange import ApplicationBroke, prelude
from cicada_local.functions.url_events import event_of, head

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TOKEN = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12)
VALUE = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=";,"), min_size=1, max_size=20)
OWN = {"connection", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive", "cookie", "content-type"}


def event(**changed):
    plain = {
        "version": "2.0",
        "rawPath": "/v1/models",
        "rawQueryString": "a=1",
        "headers": {"Host": "abc.lambda-url.eu-west-1.on.aws", "x-forwarded-proto": "https"},
        "requestContext": {
            "domainName": "abc.lambda-url.eu-west-1.on.aws",
            "http": {"method": "get", "sourceIp": "192.0.2.7"},
        },
    }
    return {**plain, **changed}


@given(
    st.dictionaries(
        st.sampled_from(["version", "rawPath", "rawQueryString", "headers", "cookies", "body", "isBase64Encoded"])
        | st.text(max_size=8),
        JSON,
    )
    | JSON,
    JSON,
)
def test_whatever_comes_is_read_or_refused(changed, context):
    found = event(**changed, requestContext=context) if isinstance(changed, dict) else changed
    for one in (found, event(**changed) if isinstance(changed, dict) else context):
        try:
            request = read_event(json.loads(json.dumps(one)), "id")
        except EventInvalid:
            continue
        else:
            assert isinstance(request.body, bytes)
            assert all(isinstance(part, bytes) for pair in request.scope["headers"] for part in pair)


@given(
    method=st.sampled_from(["GET", "POST", "DELETE", "OPTIONS"]),
    path=st.text(max_size=20).map(lambda text: "/" + quote(text, safe="/")),
    query=st.dictionaries(TOKEN, TOKEN, max_size=3).map(lambda pairs: "&".join(f"{k}={v}" for k, v in pairs.items())),
    headers=st.dictionaries(TOKEN.filter(lambda name: name not in OWN and not name.startswith("x-")), VALUE),
    cookies=st.lists(st.tuples(TOKEN, TOKEN).map("=".join), max_size=3),
    content_type=st.sampled_from(["application/json", "text/plain; charset=utf-8", "image/png", ""]),
    body=st.binary(max_size=64),
)
def test_what_a_client_sends_is_what_the_application_gets(method, path, query, headers, cookies, content_type, body):
    sent = [*headers.items(), ("Content-Type", content_type)]
    if cookies:
        sent.append(("Cookie", "; ".join(cookies)))
    made = event_of(
        url_id="abc",
        domain="localhost:1",
        method=method,
        raw_path=path,
        query=query,
        headers=sent,
        body=body,
        source_ip="127.0.0.1",
        port=1,
    )
    request = read_event(json.loads(json.dumps(made)), "id")
    scope = request.scope
    got = {name.decode(): value.decode() for name, value in scope["headers"]}
    assert (scope["method"], scope["raw_path"].decode(), scope["query_string"].decode()) == (method, path, query)
    assert request.body == body
    assert {name: got[name] for name in headers} == headers
    assert got.get("cookie", "") == "; ".join(cookies)
    assert scope["scheme"] == "http"
    assert scope["client"] == ("127.0.0.1", 0)


def test_a_request_is_read_as_documented():
    scope = read_event(event(cookies=["a=1", "b=2"]), "id-1").scope
    assert (scope["type"], scope["method"], scope["path"], scope["scheme"]) == ("http", "GET", "/v1/models", "https")
    assert scope["server"] == ("abc.lambda-url.eu-west-1.on.aws", 443)
    assert (b"cookie", b"a=1; b=2") in scope["headers"]
    assert scope["aws.request_id"] == "id-1"


@pytest.mark.parametrize("changed", [{"version": "1.0"}, {"isBase64Encoded": True, "body": "é"}, {"requestContext": 1}])
def test_another_services_event_is_refused(changed):
    with pytest.raises(EventInvalid):
        read_event(event(**changed), "id")


def test_headers_become_a_prelude():
    start = {
        "status": 200,
        "headers": [
            (b"Content-Type", b"text/plain"),
            (b"vary", b"a"),
            (b"vary", b"b"),
            (b"set-cookie", b"x=1"),
            (b"set-cookie", b"y=2"),
            (b"content-length", b"3"),
            (b"transfer-encoding", b"chunked"),
        ],
    }
    told = prelude(start)
    assert told == {
        "statusCode": 200,
        "headers": {"content-type": "text/plain", "vary": "a, b"},
        "cookies": ["x=1", "y=2"],
    }
    assert head(told["headers"], told["cookies"]).getall("Set-Cookie") == ["x=1", "y=2"]


def test_too_many_headers_are_the_applications_fault():
    with pytest.raises(ApplicationBroke):
        prelude({"status": 200, "headers": [(b"x", b"y" * 20_000)]})
