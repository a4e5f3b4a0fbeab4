"""OAuth of the client: what it checks of an issuer, and where it sends secrets."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from cicada_client import oauth
from cicada_client.oauth import Attempt, Endpoints, IssuerRefused, IssuerUnreachable, Tokens


def token(**claims: Any) -> str:
    """A JWT, as far as a client looks into one."""
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({}, claims, {})
    )


class Issuer:
    """Answers every request with what a test says."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.asked: list[tuple[str, dict[str, list[str]], str]] = []
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                issuer.asked.append((self.path, parse_qs(body), self.headers["User-Agent"]))
                status, answer = issuer.answers.pop(0) if len(issuer.answers) > 1 else issuer.answers[0]
                told = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{issuer.url}/elsewhere")
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def endpoints(self) -> Endpoints:
        return Endpoints(
            issuer=self.url, authorization_endpoint=f"{self.url}/authorize", token_endpoint=f"{self.url}/token"
        )


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    found = Issuer()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


def test_the_address_to_sign_in_at(issuer: Issuer) -> None:
    attempt = Attempt("http://localhost:8741/callback", "state", "nonce", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    fields = parse_qs(urlsplit(attempt.url(issuer.endpoints, "me", "openid email")).query)
    assert fields["code_challenge"] == ["E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"]  # RFC 7636, appendix B
    assert fields["code_challenge_method"] == ["S256"]
    assert (fields["state"], fields["nonce"], fields["scope"]) == (["state"], ["nonce"], ["openid email"])
    assert Attempt.begin("x").verifier != Attempt.begin("x").verifier
    assert 43 <= len(Attempt.begin("x").verifier) <= 128


def test_discovery(issuer: Issuer) -> None:
    issuer.answers = [(200, issuer.endpoints.model_dump())]
    assert oauth.discover(issuer.url + "/") == issuer.endpoints
    assert issuer.asked == [("/.well-known/openid-configuration", {}, "cicada-client")]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"issuer": "https://other.example"}, "is of another issuer"),
        ({"token_endpoint": "http://other.example/token"}, "must begin with https://"),
        ({"revocation_endpoint": "ftp://localhost/"}, "must begin with https://"),
        ({"token_endpoint": 7}, "does not name the endpoints"),
    ],
)
def test_wrong_discovery(issuer: Issuer, change: dict[str, Any], told: str) -> None:
    issuer.answers = [(200, issuer.endpoints.model_dump() | change)]
    with pytest.raises(IssuerRefused, match=told):
        oauth.discover(issuer.url)


@pytest.mark.parametrize(
    ("status", "answer", "told"), [(200, b"<html>", "is not JSON"), (302, b"", "answered HTTP 302")]
)
def test_discovery_that_is_none(issuer: Issuer, status: int, answer: bytes, told: str) -> None:
    issuer.answers = [(status, answer)]
    with pytest.raises(IssuerRefused, match=told):
        oauth.discover(issuer.url)


def test_no_secret_follows_a_redirect(issuer: Issuer) -> None:
    issuer.answers = [(302, b"")]
    with pytest.raises(IssuerRefused):
        oauth.refresh(f"{issuer.url}/token", "me", "secret")
    assert [path for path, _, _ in issuer.asked] == ["/token"]


def test_a_refresh_is_repeated_once_without_an_answer_and_a_code_is_not(issuer: Issuer) -> None:
    issuer.answers = [(503, b"")]
    with pytest.raises(IssuerUnreachable, match=r"http://127\.0\.0\.1:\d+ answered HTTP 503"):
        oauth.refresh(f"{issuer.url}/token", "me", "secret")
    assert len(issuer.asked) == 2
    with pytest.raises(IssuerUnreachable):
        oauth.redeem(issuer.endpoints, "me", "code", Attempt.begin("x"))
    assert len(issuer.asked) == 3


def test_a_refusal_names_the_error(issuer: Issuer) -> None:
    issuer.answers = [(400, {"error": "invalid_grant", "error_description": "Refresh token has expired"})]
    with pytest.raises(IssuerRefused, match=r"invalid_grant \(Refresh token has expired\)"):
        oauth.refresh(f"{issuer.url}/token", "me", "secret")


def test_an_answer_without_tokens_is_told_without_its_content(issuer: Issuer) -> None:
    issuer.answers = [(200, {"id_token": "secret"})]
    with pytest.raises(IssuerRefused, match="gave no tokens") as caught:
        oauth.refresh(f"{issuer.url}/token", "me", "secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, None),
        ({"aud": ["me", "other"]}, None),
        ({"iss": "https://other.example"}, "of another issuer"),
        ({"aud": "other"}, "for another client"),
        ({"nonce": "other"}, "of another sign-in"),
    ],
)
def test_the_id_token_is_of_this_sign_in(issuer: Issuer, change: dict[str, Any], told: str | None) -> None:
    attempt = Attempt.begin("x")
    claims = {"iss": issuer.url, "aud": "me", "nonce": attempt.nonce} | change
    issuer.answers = [(200, {"access_token": "opaque", "id_token": token(**claims)})]
    if told is None:
        assert oauth.redeem(issuer.endpoints, "me", "code", attempt).access_token == "opaque"
    else:
        with pytest.raises(IssuerRefused, match=told):
            oauth.redeem(issuer.endpoints, "me", "code", attempt)
    assert issuer.asked[0][1]["code_verifier"] == [attempt.verifier]


def test_the_token_to_send_is_a_jwt() -> None:
    access, identity = token(sub="a"), token(sub="i")
    assert Tokens(access_token=access, id_token=identity).to_send == access
    assert Tokens(access_token="opaque", id_token=identity).to_send == identity
    for opaque in ("opaque", "a.b", "a.b.c", "a.WzFd.c"):
        with pytest.raises(IssuerRefused, match="no token that is a JWT"):
            assert Tokens(access_token=opaque).to_send


@pytest.mark.parametrize("url", ["http://issuer.example", "ftp://localhost", "localhost", "https://", "http://[::1"])
def test_addresses_without_tls_are_refused(url: str) -> None:
    with pytest.raises(IssuerRefused):
        oauth.check_url(url)
