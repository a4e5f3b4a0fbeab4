"""The headers of the page: one list, which the stacks send and other hosts are told to send."""

from __future__ import annotations

import html
import json
import re

from stacks.page_headers import WEB, page_headers

API = "wss://abc123.execute-api.eu-central-1.amazonaws.com"
ISSUER = "https://issuer.example.org"


def directives(policy: str) -> dict[str, set[str]]:
    parts = (part.split() for part in policy.split(";"))
    return {name: set(values) for name, *values in parts}


def test_the_page_may_speak_to_its_own_server_alone_and_be_framed_by_nobody() -> None:
    policy = directives(page_headers(API)["Content-Security-Policy"])
    assert policy["connect-src"] == {"'self'", API}
    assert policy["default-src"] == policy["frame-ancestors"] == policy["form-action"] == {"'none'"}
    assert policy["script-src"] == policy["style-src"] == {"'self'"}
    assert "*" not in json.dumps({name: sorted(values) for name, values in policy.items()})
    assert page_headers(API)["X-Frame-Options"] == "DENY"


def test_it_may_speak_to_those_who_sign_its_users_in() -> None:
    policy = page_headers(API, [ISSUER, "https://tokens.example.org"])["Content-Security-Policy"]
    assert directives(policy)["connect-src"] == {"'self'", API, ISSUER, "https://tokens.example.org"}


def test_it_may_send_uploads_to_the_bucket_where_somebody_may_upload() -> None:
    policy = page_headers(API, uploads="https://index.s3.eu-central-1.amazonaws.com")["Content-Security-Policy"]
    assert directives(policy)["connect-src"] == {"'self'", API, "https://index.s3.eu-central-1.amazonaws.com"}


def test_what_is_not_there_leaves_no_gap() -> None:
    for headers in (page_headers(""), page_headers(API), page_headers("", [ISSUER])):
        assert not re.search(r"  | ;|[{}]", "".join(headers.values()))


def test_without_a_server_the_page_speaks_to_its_own_host_alone() -> None:
    assert directives(page_headers("")["Content-Security-Policy"])["connect-src"] == {"'self'"}


def test_the_policy_in_the_page_is_the_headers_but_for_the_servers() -> None:
    """A host that sends no headers has this one; a page cannot forbid being framed by itself."""
    written = re.search(r'http-equiv="Content-Security-Policy"\s+content="([^"]+)"', (WEB / "index.html").read_text())
    assert written is not None
    sent = page_headers("ws: wss:", ["https:", "http://localhost:*"])["Content-Security-Policy"]
    inside = directives(html.unescape(written[1]))
    assert inside == {name: values for name, values in directives(sent).items() if name != "frame-ancestors"}
