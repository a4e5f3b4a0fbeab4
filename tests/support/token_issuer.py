"""An OpenID Connect issuer of a test's own: it signs tokens, and publishes the keys that prove them."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE = "https://issuer.example/", "cicada-tests"


class Issuer:
    """Signs tokens, and publishes the key that proves it."""

    rsa_kid = "k2"
    """Names another published key, with which no token is signed."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        """Every token that was signed."""
        self.subjects: set[str] = set()
        self.is_away = False
        """Whether it answers 503 instead of its keys."""
        self.ahead_s = 0
        """How far its clock is ahead of this machine's."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        ours = json.loads(ECAlgorithm.to_jwk(self._key.public_key())) | {"kid": "k1", "alg": "ES256", "use": "sig"}
        another = rsa.generate_private_key(65537, 2048).public_key()
        keys = [ours, json.loads(RSAAlgorithm.to_jwk(another)) | {"kid": self.rsa_kid, "use": "sig"}]
        document = json.dumps({"keys": keys}).encode()
        issuer = self

        class Keys(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(503 if issuer.is_away else 200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(b"{}" if issuer.is_away else document)

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Keys)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.jwks_url = f"http://127.0.0.1:{self._server.server_port}/jwks.json"

    def token(self, subject: str = "mara", *, lasts_s: float = 600, kid: str = "k1", **claims: Any) -> str:
        now_s = time.time() + self.ahead_s
        values: dict[str, Any] = {
            "sub": subject,
            "iss": ISSUER,
            "aud": AUDIENCE,
            "iat": int(now_s),
            "exp": int(now_s + lasts_s),
        } | claims
        token = jwt.encode(values, self._key, algorithm="ES256", headers={"kid": kid})
        self.tokens.append(token)
        self.subjects.add(values["sub"])
        return token

    def close(self) -> None:
        self._server.shutdown()
