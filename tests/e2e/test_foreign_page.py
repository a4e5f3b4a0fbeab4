"""A web page of another origin, in a real browser, reaches nothing of the local cloud."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import boto3
import pytest

from tests.e2e.page.browser import Browser

ATTACKS = """(async (cloud, socket, token) => {
  const form = (fields) => new URLSearchParams(fields);
  const outcome = async (ask) => {
    try { const answer = await ask(); return answer.type === "opaque" ? "opaque" : `read ${answer.status}`; }
    catch { return "refused"; }
  };
  const image = () => new Promise((done) => {
    const it = new Image();
    it.onload = () => done("shown");
    it.onerror = () => done("refused");
    it.src = `${cloud}/icon.svg`;
  });
  const open = () => new Promise((done) => {
    const it = new WebSocket(socket, ["cicada.v1", `cicada.bearer.${token}`]);
    it.onopen = () => done("open");
    it.onerror = () => done("refused");
  });
  const stealthy = { method: "POST", mode: "no-cors" };
  const stack = { Action: "CreateStack", StackName: "evil", TemplateBody: '{"Resources":{}}' };
  return {
    list: await outcome(() => fetch(`${cloud}/`, { method: "GET" })),
    bucket: await outcome(() => fetch(`${cloud}/evil-bucket`, { method: "PUT" })),
    control: await outcome(() => fetch(`${cloud}/_cicada/calls`)),
    stop: await outcome(() => fetch(`${cloud}/_cicada/stop`, stealthy)),
    stack: await outcome(() => fetch(`${cloud}/`, { ...stealthy, body: form(stack) })),
    invoke: await outcome(() => fetch(`${cloud}/2015-03-31/functions/x/invocations`, stealthy)),
    image: await image(),
    socket: await open(),
  };
})"""


@pytest.fixture
def foreign_url() -> Iterator[str]:
    """A page of nobody's, on another port of this machine: another origin."""

    class Foreign(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>foreign</title>")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


def test_it_can_neither_read_nor_write_nor_open_a_socket(cloud, issuer, user, foreign_url):
    token = issuer.token(user)
    with Browser() as browser, browser.page(foreign_url) as page:
        found = page.run(f"{ATTACKS}('{cloud.endpoint_url}', '{cloud.websocket_url}', '{token}')")
    assert {found[one] for one in ("list", "bucket", "control", "image", "socket")} == {"refused"}
    assert {found[one] for one in ("stop", "stack", "invoke")} == {"opaque"}  # sent, answered by 403, and not readable
    assert_nothing_was_done(cloud)


def test_a_name_that_is_bound_to_this_machine_reaches_no_more(cloud, issuer, user):
    """DNS rebinding: the attacker's page has the cloud's own origin, under a name of theirs."""
    rebound = cloud.endpoint_url.replace("localhost", "rebound.example")
    socket = cloud.websocket_url.replace("localhost", "rebound.example")
    with Browser("--host-resolver-rules=MAP rebound.example 127.0.0.1") as browser, browser.page(rebound) as page:
        found = page.run(f"{ATTACKS}('', '{socket}', '{issuer.token(user)}')")
    assert {found.pop(one) for one in ("image", "socket")} == {"refused"}
    assert set(found.values()) == {"read 403"}
    assert_nothing_was_done(cloud)


def assert_nothing_was_done(cloud):
    client = {"endpoint_url": cloud.endpoint_url, "region_name": "us-east-1"}
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    stacks = boto3.client("cloudformation", **client, **keys).describe_stacks()["Stacks"]
    assert "evil" not in {stack["StackName"] for stack in stacks}
    buckets = boto3.client("s3", **client, **keys).list_buckets()["Buckets"]
    assert "evil-bucket" not in {bucket["Name"] for bucket in buckets}


def test_the_page_itself_cannot_be_framed_and_speaks_to_its_own_server_alone(cloud):
    with Browser() as browser, browser.page(cloud.endpoint_url) as page:
        headers = page.run("fetch('/').then((answer) => Object.fromEntries(answer.headers))")
        blocked = page.run("fetch('http://127.0.0.1:1/').then(() => 'sent', () => 'refused')")
    policy = headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert f"connect-src 'self' {cloud.endpoint_url.replace('http', 'ws', 1)};" in policy
    assert (headers["x-frame-options"], headers["referrer-policy"]) == ("DENY", "no-referrer")
    assert blocked == "refused"
