"""The issuer's keys over real HTTP: discovery, rotation, outages, and what is fetched how often."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from cicada.authorization import TokenRules, TokenVerifier
from cicada.errors import Unauthorized
from cicada.issuer_keys import FRESH_S, MAX_DOCUMENT_BYTES, REFETCH_S, RETRY_S, STALE_S, IssuerKeys, IssuerUnavailable

AUDIENCE = "cicada"


class Issuer:
    """Publishes its keys, and whatever else a test wants of it."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.rotate("k1")
        self.answers: dict[str, tuple[int, bytes]] = {}
        """By path, in place of the right ones."""
        self.asked: list[tuple[str, str | None]] = []
        """Each path that was asked for, and the User-Agent."""
        self.discovered: dict[str, Any] = {}
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append((self.path, self.headers["User-Agent"]))
                status, body = issuer.answers.get(self.path, (404, b""))
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{issuer.url}/keys")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.issuer = f"{self.url}/realms/script"
        self.discovery = "/realms/script/.well-known/openid-configuration"
        self.publish()

    def rotate(self, kid: str) -> None:
        """Sign with a new key from now on."""
        self.kid = kid
        self.keys[kid] = ec.generate_private_key(ec.SECP256R1())

    def publish(self) -> None:
        """Publish the keys, and where they are."""
        keys = [
            json.loads(ECAlgorithm.to_jwk(key.public_key())) | {"kid": kid, "use": "sig"}
            for kid, key in self.keys.items()
        ]
        document = {"issuer": self.issuer, "jwks_uri": f"{self.url}/keys"}
        self.answers = {
            "/keys": (200, json.dumps({"keys": keys}).encode()),
            self.discovery: (200, json.dumps(document).encode()),
        }

    def answer_all(self, status: int, body: bytes = b"") -> None:
        self.answers = dict.fromkeys(("/keys", self.discovery), (status, body))

    def token(self, kid: str | None = None) -> str:
        kid = kid or self.kid
        claims = {"iss": self.issuer, "aud": AUDIENCE, "sub": "mara", "exp": 9_999_999_999}
        key = self.keys.get(kid, self.keys[self.kid])
        return jwt.encode(claims, key, algorithm="ES256", headers={"kid": kid})

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


class House:
    """A verifier of the issuer's tokens, with a clock of the test's."""

    def __init__(self, issuer: Issuer, jwks_url: str | None = None) -> None:
        self.now = 1_000.0
        keys = IssuerKeys(issuer.issuer, jwks_url, clock=lambda: self.now)
        self._verifier = TokenVerifier(keys, TokenRules(issuer.issuer, frozenset({AUDIENCE})))

    def accepts(self, token: str) -> bool:
        """Raises IssuerUnavailable."""
        try:
            return self._verifier.verify(token).subject == "mara"
        except Unauthorized:
            return False


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    yield issuer
    issuer.server.shutdown()
    issuer.server.server_close()


def test_the_issuer_says_where_its_keys_are(issuer: Issuer) -> None:
    house = House(issuer)
    assert house.accepts(issuer.token())
    assert house.accepts(issuer.token())
    assert issuer.asked == [(issuer.discovery, "cicada-authorizer"), ("/keys", "cicada-authorizer")]


def test_a_slash_at_the_end_of_the_issuer_is_its_own(issuer: Issuer) -> None:
    issuer.issuer += "/"  # as Auth0's is
    issuer.publish()
    assert House(issuer).accepts(issuer.token())
    assert issuer.paths()[0] == issuer.discovery


def test_a_named_address_of_keys_needs_no_discovery(issuer: Issuer) -> None:
    house = House(issuer, f"{issuer.url}/keys")
    assert house.accepts(issuer.token())
    assert issuer.paths() == ["/keys"]


def test_a_new_key_is_fetched_when_a_token_names_it(issuer: Issuer) -> None:
    house = House(issuer, f"{issuer.url}/keys")
    assert house.accepts(issuer.token())
    issuer.rotate("k2")
    issuer.publish()
    assert house.accepts(issuer.token())
    assert house.accepts(issuer.token("k1"))
    assert issuer.paths() == ["/keys"] * 2
    issuer.rotate("k3")
    issuer.publish()
    assert not house.accepts(issuer.token())
    house.now += REFETCH_S
    assert house.accepts(issuer.token())
    assert issuer.paths() == ["/keys"] * 3


def test_tokens_with_unknown_keys_cannot_make_many_fetches(issuer: Issuer) -> None:
    house = House(issuer, f"{issuer.url}/keys")
    assert not house.accepts(issuer.token("unknown"))
    assert len(issuer.asked) == 1  # keys that were fetched for this very token are not fetched again
    for fetches in (2, 3):
        for kid in range(50):
            assert not house.accepts(issuer.token(f"unknown-{kid}"))
        assert len(issuer.asked) == fetches
        house.now += REFETCH_S


def test_a_withdrawn_key_is_refused_once_the_keys_are_no_longer_fresh(issuer: Issuer) -> None:
    house = House(issuer, f"{issuer.url}/keys")
    old = issuer.token()
    assert house.accepts(old)
    issuer.rotate("k2")
    del issuer.keys["k1"]
    issuer.publish()
    house.now += FRESH_S
    assert not house.accepts(old)
    assert house.accepts(issuer.token())


def test_keys_outlive_an_outage_of_the_issuer_for_a_while(issuer: Issuer) -> None:
    house = House(issuer, f"{issuer.url}/keys")
    assert house.accepts(issuer.token())
    issuer.answer_all(503)
    house.now += FRESH_S
    assert house.accepts(issuer.token())
    asked = len(issuer.asked)
    assert house.accepts(issuer.token())
    assert len(issuer.asked) == asked  # a failed fetch is not repeated at once either
    house.now = 1_000.0 + STALE_S
    with pytest.raises(IssuerUnavailable, match="answered 503"):
        house.accepts(issuer.token())
    issuer.publish()
    house.now += REFETCH_S
    assert house.accepts(issuer.token())


BAD: list[tuple[str, int, bytes, str]] = [
    ("/keys", 500, b"", "/keys answered 500"),
    ("/keys", 302, b"", "/keys answered 302"),
    ("/keys", 200, b"<html>", "/keys did not answer with JSON"),
    ("/keys", 200, b" " * (MAX_DOCUMENT_BYTES + 1), "/keys answered more than"),
    ("/keys", 200, b"[]", "unusable keys"),
    ("/keys", 200, b'{"keys": []}', "unusable keys"),
    ("/keys", 200, b'{"keys": [{"kty": "RSA", "alg": [1]}]}', "unusable keys"),
    ("discovery", 404, b"", "openid-configuration answered 404"),
    ("discovery", 200, b'{"issuer": "https://another.example"}', "describes a different issuer"),
    ("discovery", 200, b"[]", "describes a different issuer"),
    ("discovery", 200, b'{"issuer": "ISSUER"}', "has no jwks_uri"),
    ("discovery", 200, b'{"issuer": "ISSUER", "jwks_uri": "file:///etc/passwd"}', "has no jwks_uri"),
]


@pytest.mark.parametrize(("path", "status", "body", "said"), BAD)
def test_an_issuer_that_cannot_be_used_is_a_fault_that_says_why(
    issuer: Issuer, path: str, status: int, body: bytes, said: str
) -> None:
    body = body.replace(b"ISSUER", issuer.issuer.encode())
    issuer.answers[issuer.discovery if path == "discovery" else path] = (status, body)
    with pytest.raises(IssuerUnavailable, match=said):
        House(issuer).accepts(issuer.token())


def test_an_issuer_that_comes_up_late_is_asked_again_soon(issuer: Issuer) -> None:
    house = House(issuer, f"{issuer.url}/keys")
    issuer.answer_all(503)
    for _ in range(20):
        with pytest.raises(IssuerUnavailable, match="answered 503"):
            house.accepts(issuer.token())
    assert len(issuer.asked) == 1
    issuer.publish()
    house.now += RETRY_S
    assert house.accepts(issuer.token())


def test_an_issuer_that_is_not_there_is_a_fault(issuer: Issuer) -> None:
    house = House(issuer, "http://127.0.0.1:9/keys")
    with pytest.raises(IssuerUnavailable, match="did not answer"):
        house.accepts(issuer.token())


def test_a_connection_without_a_token_asks_the_issuer_nothing(issuer: Issuer) -> None:
    verifier = TokenVerifier(IssuerKeys(issuer.issuer), TokenRules(issuer.issuer, frozenset({AUDIENCE})))
    for token in ("nonsense", "a.b.c", "x" * 9_000):
        with pytest.raises(Unauthorized):
            verifier.verify(token)
    assert issuer.asked == []
