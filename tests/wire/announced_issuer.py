"""An issuer that says where its keys are, and publishes them: for a local cloud whose connections it authorizes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """An HTTP server; gives its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


class Issuer:
    """Signs tokens, says where its keys are, and publishes them."""

    declared = "https://issuer.example"
    """What the stacks are synthesised with: the real address is not known then."""
    audience = "cicada-tests"

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.url = self.declared
        self.asked: list[str] = []

    def settings(self) -> dict[str, Any]:
        """Of a deployment that its tokens open."""
        auth = {"mode": "oidc", "issuer": self.declared, "audience": self.audience}
        return {"auth": {**auth, "groupsClaim": "groups", "requiredGroups": ["readers"]}}

    def token(self, subject: str = "aoi", **changed: object) -> str:
        claims = {"iss": self.url, "aud": self.audience, "sub": subject, "exp": int(time.time()) + 600}
        claims["groups"] = ["readers"]
        return jwt.encode({**claims, **changed}, self._key, algorithm="RS256", headers={"kid": "1"})

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve at the address that it gives, which becomes the tokens' issuer."""
        jwk = {**json.loads(RSAAlgorithm.to_jwk(self._key.public_key())), "kid": "1", "use": "sig", "alg": "RS256"}
        issuer = self

        class Keys(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                about = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}
                body = json.dumps({"keys": [jwk]} if self.path == "/keys" else about).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        with serving(Keys) as port:
            self.url = f"http://127.0.0.1:{port}"
            yield self.url
