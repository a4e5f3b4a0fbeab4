"""The deployed thing: one local cloud for the whole folder, with real tokens."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from local.testing import LocalCloud
from tests.e2e.plain_client import Socket

SAMPLES = Path(__file__).parents[2] / "samples" / "script"
ISSUER, AUDIENCE = "https://issuer.example/", "cicada-tests"


class Issuer:
    """Signs tokens, and publishes the key that proves it."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = json.loads(ECAlgorithm.to_jwk(self._key.public_key()))
        document = json.dumps({"keys": [public | {"kid": "k1", "alg": "ES256", "use": "sig"}]}).encode()

        class Keys(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(document)

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Keys)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.jwks_url = f"http://127.0.0.1:{self._server.server_port}/jwks.json"

    def token(self, subject: str = "mara", *, lasts_s: float = 600, **claims: Any) -> str:
        values = {"sub": subject, "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time() + lasts_s)} | claims
        return jwt.encode(values, self._key, algorithm="ES256", headers={"kid": "k1"})

    def close(self) -> None:
        self._server.shutdown()


@pytest.fixture(scope="session")
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    yield issuer
    issuer.close()


@pytest.fixture(scope="session")
def deployment(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    home = tmp_path_factory.mktemp("cloud")
    settings = {
        "auth": {
            "issuer": ISSUER,
            "audience": AUDIENCE,
            "jwksUrl": "https://issuer.example/jwks.json",
            "allowedOrigins": [],
        }
    }
    script = [SAMPLES / "episode-1.jsonl", SAMPLES / "episode-2.jsonl"]
    with LocalCloud(home, settings=settings, load=script, environment={"JWKS_URL": issuer.jwks_url}) as cloud:
        yield cloud


@pytest.fixture
def cloud(deployment: LocalCloud) -> Iterator[LocalCloud]:
    """The deployment, without a fault of an earlier test."""
    deployment.disarm()
    yield deployment
    deployment.disarm()


@pytest.fixture
def connect(cloud: LocalCloud, issuer: Issuer) -> Iterator[Any]:
    """Open sockets, by user."""
    with contextlib.ExitStack() as opened:

        def open_socket(subject: str = "mara", **claims: Any) -> Socket:
            token = issuer.token(subject, **claims)
            return opened.enter_context(Socket(f"{cloud.websocket_url}?token={token}"))

        yield open_socket
