"""The headers of the page: one list, which the local cloud sends and hosts are told to send."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from aiohttp.test_utils import make_mocked_request

from cicada_local.page import Page, page_headers

PAGE = Path(__file__).resolve().parents[2] / "web"
API = "wss://abc123.execute-api.eu-central-1.amazonaws.com"


def directives(policy: str) -> dict[str, set[str]]:
    parts = (part.split() for part in policy.split(";"))
    return {name: set(values) for name, *values in parts}


def test_the_page_may_speak_to_its_own_server_alone_and_be_framed_by_nobody() -> None:
    policy = directives(page_headers(PAGE, API)["Content-Security-Policy"])
    assert policy["connect-src"] == {"'self'", API}
    assert policy["default-src"] == policy["frame-ancestors"] == policy["form-action"] == {"'none'"}
    assert policy["script-src"] == policy["style-src"] == {"'self'"}
    assert "*" not in json.dumps({name: sorted(values) for name, values in policy.items()})
    assert page_headers(PAGE, API)["X-Frame-Options"] == "DENY"


def test_without_a_server_the_page_speaks_to_its_own_host_alone() -> None:
    assert directives(page_headers(PAGE, "")["Content-Security-Policy"])["connect-src"] == {"'self'"}


def test_the_policy_in_the_page_is_the_headers_but_for_the_server() -> None:
    """A host that sends no headers has this one; a page cannot forbid being framed by itself."""
    written = re.search(r'http-equiv="Content-Security-Policy"\s+content="([^"]+)"', (PAGE / "index.html").read_text())
    assert written is not None
    inside, sent = (
        directives(html.unescape(written[1])),
        directives(page_headers(PAGE, "ws: wss:")["Content-Security-Policy"]),
    )
    assert inside == {name: values for name, values in sent.items() if name != "frame-ancestors"}


@pytest.mark.parametrize("path", ["/" + "a" * 300, "/a\0b", "/../../cdk.json", "/%2e%2e/%2e%2e/cdk.json"])
def test_what_is_no_file_of_the_page_is_left_to_the_other_services(path: str) -> None:
    assert not Page(PAGE, lambda: None).serves(make_mocked_request("GET", path))
