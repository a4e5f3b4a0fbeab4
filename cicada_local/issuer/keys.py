"""The RSA keys that a pool signs its tokens with: one for ID tokens, one for access tokens, as Cognito has them."""

from __future__ import annotations

import base64
import secrets
import threading
from dataclasses import dataclass, field
from typing import Any, Literal

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

TokenUse = Literal["id", "access"]

_KEY_BITS = 2048


@dataclass(frozen=True)
class SigningKey:
    """A key pair."""

    kid: str
    private: rsa.RSAPrivateKey = field(repr=False)

    @classmethod
    def generate(cls) -> SigningKey:
        """A new one."""
        kid = base64.b64encode(secrets.token_bytes(32)).decode()
        return cls(kid, rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS))

    def published(self) -> dict[str, str]:
        """Its public part, as the key set has it."""
        numbers = self.private.public_key().public_numbers()
        return {
            "alg": "RS256",
            "e": _base64url(numbers.e),
            "kid": self.kid,
            "kty": "RSA",
            "n": _base64url(numbers.n),
            "use": "sig",
        }

    def stored(self) -> dict[str, str]:
        """All of it, as plain data."""
        pem = self.private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return {"kid": self.kid, "pem": pem.decode()}

    @classmethod
    def restored(cls, stored: dict[str, str]) -> SigningKey:
        """What :meth:`stored` gave."""
        private = serialization.load_pem_private_key(stored["pem"].encode(), password=None)
        assert isinstance(private, rsa.RSAPrivateKey)
        return cls(stored["kid"], private)


class KeyRing:
    """The keys of one pool: the last two sign, all are published. Made when they are first needed."""

    def __init__(self, keys: list[SigningKey] | None = None) -> None:
        self._keys = list(keys or ())
        self._lock = threading.Lock()

    def published(self) -> dict[str, list[dict[str, str]]]:
        """The key set."""
        return {"keys": [key.published() for key in self._made()]}

    def sign(self, claims: dict[str, Any], use: TokenUse) -> str:
        """A signed token."""
        key = self._made()[-2 if use == "id" else -1]
        return jwt.encode(claims, key.private, algorithm="RS256", headers={"kid": key.kid})

    def verify(self, token: str) -> dict[str, Any]:
        """A token's claims.

        Raises:
            jwt.InvalidTokenError: it is not of this pool, or expired.
        """
        kid = jwt.get_unverified_header(token).get("kid")
        for key in self._made():
            if key.kid == kid:
                options: Any = {"verify_aud": False}
                return dict(jwt.decode(token, key.private.public_key(), algorithms=["RS256"], options=options))
        raise jwt.InvalidTokenError("unknown key")

    def rotate(self) -> list[str]:
        """Sign with new keys from now on; the earlier ones stay published. Returns the ids of the new keys."""
        fresh = [SigningKey.generate(), SigningKey.generate()]
        with self._lock:
            self._keys += fresh
        return [key.kid for key in fresh]

    def retire(self) -> list[str]:
        """Publish the signing keys only, so that tokens of earlier keys are refused. Returns the removed ids."""
        self._made()
        with self._lock:
            gone, self._keys = self._keys[:-2], self._keys[-2:]
        return [key.kid for key in gone]

    def stored(self) -> list[dict[str, str]]:
        """The keys as plain data; none before they were needed."""
        with self._lock:
            return [key.stored() for key in self._keys]

    def _made(self) -> list[SigningKey]:
        with self._lock:
            if not self._keys:
                self._keys = [SigningKey.generate(), SigningKey.generate()]
            return list(self._keys)


def _base64url(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8)).rstrip(b"=").decode()
