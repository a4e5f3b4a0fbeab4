"""The user pools that moto holds, as the issuer reads them: clients, users, passwords, groups."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

_UNIT_S = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}


class PasswordInvalid(Exception):
    """The new password breaks the pool's policy; the message says so."""


@dataclass(frozen=True)
class Client:
    """An app client."""

    id: str
    pool_id: str
    secret: str | None
    """None for a public client."""
    callback_urls: tuple[str, ...]
    logout_urls: tuple[str, ...]
    flows: tuple[str, ...]
    """Allowed OAuth grants; none where the client is not for OAuth."""
    scopes: tuple[str, ...]
    access_validity_s: int
    id_validity_s: int
    refresh_validity_s: int
    revocation: bool
    rotation_grace_s: int | None
    """For how long a refresh token that was exchanged still works; None where refresh tokens do not rotate."""


@dataclass(frozen=True)
class User:
    """A user."""

    id: str
    username: str
    attributes: dict[str, Any]
    groups: tuple[str, ...]
    must_change_password: bool

    @property
    def name(self) -> str:
        """How the user signs in."""
        return str(self.attributes.get("email", self.username))


class Pools:
    """Reads moto's pools while moto is at rest."""

    def __init__(
        self, pools: Callable[[], dict[str, Any]], lock: AbstractContextManager[Any], local: Callable[[str], str]
    ) -> None:
        """Read pools.

        Args:
            pools: moto's, by id.
            lock: held while one is read.
            local: where an address that the stacks name is served on this machine.
        """
        self._pools = pools
        self._lock = lock
        self._local = local

    def has(self, pool_id: str) -> bool:
        """Whether there is such a pool."""
        return pool_id in self._pools()

    def has_domain(self, pool_id: str) -> bool:
        """Whether the pool has a domain: without one, it has no managed login."""
        return self._pools()[pool_id].domain is not None

    def client(self, client_id: str) -> Client | None:
        """An app client of any pool."""
        with self._lock:
            for pool in self._pools().values():
                if client_id in pool.clients:
                    return self._client(pool.clients[client_id])
        return None

    def check_password(self, pool_id: str, name: str, password: str) -> User | None:
        """The user who signs in, None for a wrong name or password, or a user who is disabled."""
        with self._lock:
            user = self._pools()[pool_id]._get_user(name)
            known = user is not None and user.enabled and user.password
            expected = user.password if known else secrets.token_hex()
            if not secrets.compare_digest(expected.encode(), password.encode()) or not known:
                return None
            return _user(user)

    def set_password(self, pool_id: str, username: str, password: str) -> None:
        """Set the password that a user has chosen.

        Raises:
            PasswordInvalid: the pool's policy refuses it.
        """
        from moto.cognitoidp.exceptions import InvalidPasswordException

        with self._lock:
            pool = self._pools()[pool_id]
            try:
                pool.backend.admin_set_user_password(pool_id, username, password, True)
            except InvalidPasswordException as error:
                raise PasswordInvalid(str(error.message)) from error

    def user(self, pool_id: str, username: str) -> User | None:
        """A user who may have tokens; None for one who is gone or disabled."""
        with self._lock:
            pool = self._pools().get(pool_id)
            user = None if pool is None else pool.users.get(username)
            return _user(user) if user is not None and user.enabled else None

    def note_refresh_token(self, pool_id: str, token: str, client_id: str, username: str, origin: str) -> None:
        """Let moto know a refresh token, so that a global sign-out ends it."""
        with self._lock:
            self._pools()[pool_id].refresh_tokens[token] = (client_id, username, origin)

    def signed_out(self, pool_id: str, token: str) -> bool:
        """Whether a global sign-out ended a refresh token."""
        with self._lock:
            return self._pools()[pool_id].refresh_tokens.get(token) is None

    def _client(self, client: Any) -> Client:
        config = client.extended_config
        units = config.get("TokenValidityUnits", {})
        rotation = config.get("RefreshTokenRotation", {})

        def validity(name: str, default: int, unit: str) -> int:
            return int(config.get(f"{name}Validity", default)) * _UNIT_S[units.get(name, unit)]

        return Client(
            id=client.id,
            pool_id=client.user_pool_id,
            secret=client.secret if client.generate_secret else None,
            callback_urls=self._urls(config.get("CallbackURLs", ())),
            logout_urls=self._urls(config.get("LogoutURLs", ())),
            flows=tuple(config.get("AllowedOAuthFlows", ())) if config.get("AllowedOAuthFlowsUserPoolClient") else (),
            scopes=tuple(config.get("AllowedOAuthScopes", ())),
            access_validity_s=validity("AccessToken", 60, "minutes"),
            id_validity_s=validity("IdToken", 60, "minutes"),
            refresh_validity_s=validity("RefreshToken", 30, "days"),
            revocation=bool(config.get("EnableTokenRevocation", True)),
            rotation_grace_s=(
                int(rotation.get("RetryGracePeriodSeconds", 0)) if rotation.get("Feature") == "ENABLED" else None
            ),
        )

    def _urls(self, urls: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*urls, *map(self._local, urls)]))


def _user(user: Any) -> User:
    return User(
        id=user.id,
        username=user.username,
        attributes={name: value for name, value in user.attribute_lookup.items() if name != "sub"},
        groups=tuple(sorted(group.group_name for group in user.groups)),
        must_change_password=user.status == "FORCE_CHANGE_PASSWORD",
    )
