"""Whom the local cloud answers: this machine's programs and its own page, on every route; no page of another origin."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer, make_mocked_request
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from cicada_local.functions.runtime_api import RuntimeApi
from cicada_local.senders import LOOPBACK, Senders, programs_only
from tests.wire.local_services import Services, running_services
from tests.wire.page_stack import deployed_page

ROUTES = [
    ("GET", "/"),
    ("GET", "/app.js"),
    ("GET", "/some-bucket"),
    ("PUT", "/some-bucket"),
    ("POST", "/"),
    ("GET", "/?Action=CreateStack&StackName=evil"),
    ("POST", "/2015-03-31/functions/answer/invocations"),
    ("POST", "/model/some.model/converse"),
    ("POST", "/retrieve"),
    ("GET", "/_cicada/health"),
    ("POST", "/_cicada/stop"),
    ("GET", "/_ws/abc/live"),
    ("POST", "/_ws/abc/live/@connections/xyz"),
    ("OPTIONS", "/some-bucket"),
]
FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Origin": "https://localhost:{port}"},
    {"Origin": "http://evil.localhost:{port}"},
    {"Origin": "http://localhost:{port}.evil.example"},
    {"Origin": "file://"},
    {"Host": "rebound.example:{port}"},
    {"Host": "localhost.evil.example"},
    {"Host": "rebound.example", "Origin": "http://rebound.example"},
    {"Host": "localhost.:{port}"},
    {"Host": "127.1:{port}"},
    {"Host": "[::ffff:127.0.0.1]:{port}"},
    {"Host": "[::1].evil.example:{port}"},
    {"Host": "evil.example@localhost:{port}"},
    {"Host": "localhost/.evil.example"},
    {"Host": "localhost#.evil.example"},
    {"Host": "local\thost:{port}"},
    {"Host": "localhoſt:{port}"},
    {"Host": "rebound.example", "X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"},
    {"Origin": ""},
    {"Origin": "chrome-extension://evil"},
    {"Sec-Fetch-Site": ""},
    {"Sec-Fetch-Site": "made-up"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
]


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    files = {"index.html": b"<title>Cicada</title>", "app.js": b"// code"}
    with running_services() as running, deployed_page(running, files):
        yield running


def answer(services: Services, method: str, path: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    """Like a browser: any header, and the path as it is. The body is thrown away."""
    return exchange(services, method, path, headers)[0]


def exchange(
    services: Services, method: str, path: str, headers: dict[str, str]
) -> tuple[http.client.HTTPResponse, bytes]:
    """The answer and its body."""
    port = urlsplit(services.endpoint_url).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    filled = {name: value.format(port=port) for name, value in headers.items()}
    connection.putrequest(method, path, skip_host="Host" in filled)
    for name, value in filled.items():
        connection.putheader(name, value.encode())
    connection.putheader("Content-Length", "0")
    connection.endheaders()
    found = connection.getresponse()
    body = found.read()
    connection.close()
    return found, body


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_refuses_what_is_foreign(
    services: Services, method: str, path: str, headers: dict[str, str]
) -> None:
    found = answer(services, method, path, headers)
    assert found.status == 403
    assert not [name for name in found.headers if name.lower().startswith("access-control-")]


@pytest.mark.parametrize(
    "head",
    [
        "GET http://rebound.example/some-bucket HTTP/1.1\r\nHost: localhost",
        "GET http://localhost/some-bucket HTTP/1.1\r\nHost: rebound.example",
        "GET /some-bucket HTTP/1.0",
        "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: https://evil.example",
    ],
)
def test_a_request_that_names_two_senders_or_no_host_is_refused(services: Services, head: str) -> None:
    with socket.create_connection(("127.0.0.1", urlsplit(services.endpoint_url).port or 0), timeout=10) as connection:
        connection.sendall(f"{head}\r\nConnection: close\r\n\r\n".encode())
        assert b" 403 " in connection.recv(100)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
def test_the_page_is_served_to_its_own_origin_by_every_name_of_this_machine(services: Services, name: str) -> None:
    own = {"Host": f"{name}:{{port}}", "Origin": "http://localhost:{port}", "Sec-Fetch-Site": "same-origin"}
    assert answer(services, "GET", "/app.js", own).status == 200


def test_a_link_to_the_page_may_be_followed_from_anywhere(services: Services) -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for path in ("/", "/some-bucket"):  # any path shows the page, and no bucket
        found, body = exchange(services, "GET", path, followed)
        assert (found.status, body) == (200, b"<title>Cicada</title>")


def test_the_page_itself_reaches_no_service_but_its_socket(services: Services) -> None:
    """A document that was uploaded with a script in it would speak with the page's own origin."""
    own = {"Origin": "http://localhost:{port}", "Sec-Fetch-Site": "same-origin"}
    for method, path in ROUTES:
        if method == "GET" and not path.startswith("/_"):
            found, body = exchange(services, method, path, own)
            assert (found.status, body) == (200, b"// code" if path == "/app.js" else b"<title>Cicada</title>")
        elif path != "/_ws/abc/live":
            assert answer(services, method, path, own).status == 403, path
    assert answer(services, "GET", "/_ws/abc/live", own).status == 403  # no upgrade


def test_who_types_an_address_sees_what_the_control_endpoints_tell(services: Services) -> None:
    typed = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert answer(services, "GET", "/_cicada/health", typed).status != 403
    assert answer(services, "POST", "/_cicada/stop", typed).status == 403


def test_sdks_and_their_hosts_go_on_working(services: Services) -> None:
    client = services.client("s3")
    client.create_bucket(Bucket="of-an-sdk")
    client.put_object(Bucket="of-an-sdk", Key="a", Body=b"b")
    assert client.get_object(Bucket="of-an-sdk", Key="a")["Body"].read() == b"b"
    with pytest.raises(ClientError, match="nowhere does not exist"):  # the service itself answers
        services.client("cloudformation").describe_stacks(StackName="nowhere")


def test_moto_lets_no_page_read_its_answers(services: Services) -> None:
    found = answer(services, "GET", "/some-bucket", {})
    assert not [name for name in found.headers if name.lower().startswith("access-control-")]


def check(headers: dict[str, str], path: str = "/_ws/a/live", further: str = "") -> bool:
    senders = Senders(lambda request: request.path == "/", environ={"CICADA_LOCAL_ORIGINS": further})
    return senders._is_ours(make_mocked_request("GET", path, headers=headers))


def test_a_page_that_is_served_elsewhere_may_open_the_socket_where_its_origin_is_named() -> None:
    headers = {"Host": "localhost:4600", "Origin": "http://localhost:8000", "Upgrade": "websocket"}
    assert not check(headers)
    assert check(headers, further="https://other.example, http://localhost:8000/")
    assert not check(headers, "/_cicada/calls", further="http://localhost:8000")


HOSTS = st.from_regex(r"[a-z0-9.\-\[\]:@]{0,30}", fullmatch=True) | st.text(max_size=20)
"""Whatever somebody may write for a host."""


@given(host=HOSTS | st.builds("{}{}".format, st.sampled_from(sorted(LOOPBACK)), HOSTS))
def test_no_other_name_is_this_machine(host: str) -> None:
    name, _, port = host.rpartition(":")
    ours = host.lower() in LOOPBACK or (name.lower() in LOOPBACK and port.isascii() and port.isdigit())
    with contextlib.suppress(ValueError):  # no header can say that
        assert check({"Host": host}, "/some-bucket") == ours


@given(origin=HOSTS | st.builds("http://{}".format, HOSTS) | st.builds("http://localhost{}".format, HOSTS))
def test_no_other_origin_opens_a_socket(origin: str) -> None:
    own = {f"http://{name}:4600" for name in ("localhost", "127.0.0.1", "[::1]")}
    with contextlib.suppress(ValueError):
        assert check({"Host": "localhost:4600", "Origin": origin, "Upgrade": "websocket"}) == (origin in own)


BROWSERS: list[dict[str, str]] = [
    {"Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Mode": "no-cors"},
    {"Host": "rebound.example"},
]


@pytest.mark.parametrize("headers", BROWSERS, ids=str)
@pytest.mark.parametrize("path", ["/2018-06-01/runtime/invocation/next", "/2018-06-01/runtime/init/error"])
def test_the_runtime_api_gives_no_browser_an_invocation(headers: dict[str, str], path: str) -> None:
    reported: list[object] = []

    async def status() -> int:
        runtime = RuntimeApi(reported.append)
        address = await runtime.start()
        try:
            async with ClientSession() as session:
                method = "GET" if path.endswith("next") else "POST"
                async with session.request(method, f"http://{address}{path}", headers=headers) as answer:
                    return answer.status
        finally:
            await runtime.close()

    assert asyncio.run(status()) == 403
    assert reported == []


@pytest.mark.parametrize("headers", [{}, *BROWSERS], ids=str)
def test_a_port_for_programs_answers_no_browser(headers: dict[str, str]) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="answered")

    async def status() -> int:
        app = web.Application(middlewares=[programs_only])
        app.router.add_get("/", answer)
        async with TestServer(app, host="127.0.0.1") as server, ClientSession() as session:
            async with session.get(server.make_url("/"), headers=headers) as answered:
                return answered.status

    assert asyncio.run(status()) == (403 if headers else 200)
