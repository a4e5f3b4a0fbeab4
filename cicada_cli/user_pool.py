"""The user pool of a deployment in Amazon Cognito."""

from __future__ import annotations

import secrets
import string
import time
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cicada_cli.aws import Aws

PASSWORD_CHARS = 20
"""Of a temporary password."""

_LETTERS = "".join(sorted(set(string.ascii_letters) - set("lIO")))
_DIGITS = "23456789"
_SYMBOLS = "-_.+"


class UserPoolFault(Exception):
    """A call to Cognito failed; the message says which and why."""


class UserUnknown(Exception):
    """The pool lacks the user."""


class UserExists(Exception):
    """The pool has the user already."""


@dataclass(frozen=True)
class PoolUser:
    """A user."""

    username: str
    email: str
    subject: str
    status: str
    """``CONFIRMED``, or ``FORCE_CHANGE_PASSWORD`` while the password is a temporary one."""
    enabled: bool
    created_at: datetime
    groups: tuple[str, ...] = ()

    @property
    def invited(self) -> bool:
        """Whether the user has never signed in."""
        return self.status == "FORCE_CHANGE_PASSWORD"

    @classmethod
    def of(cls, told: Mapping[str, Any], groups: Iterable[str] = ()) -> Self:
        """A user from an API response."""
        attributes = {one["Name"]: one["Value"] for one in told.get("UserAttributes") or told.get("Attributes") or ()}
        return cls(
            username=told["Username"],
            email=attributes.get("email", ""),
            subject=attributes.get("sub", told["Username"]),
            status=told["UserStatus"],
            enabled=told.get("Enabled", True),
            created_at=told["UserCreateDate"],
            groups=tuple(sorted(groups)),
        )


class UserPool:
    """The pool. Every method raises UserPoolFault."""

    def __init__(self, client: Any, pool_id: str) -> None:
        """``client``: of ``cognito-idp``."""
        self._client = client
        self._pool = {"UserPoolId": pool_id}

    @classmethod
    def of(cls, aws: Aws, pool_id: str) -> Self:
        """The pool of a deployment."""
        from botocore.config import Config

        config = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
        return cls(aws.client("cognito-idp", config), pool_id)

    def groups(self) -> dict[str, str]:
        """The groups with their descriptions."""
        with _faults("cannot list the groups"):
            pages = self._client.get_paginator("list_groups").paginate(**self._pool)
            return {one["GroupName"]: one.get("Description", "") for page in pages for one in page["Groups"]}

    def users(self) -> list[PoolUser]:
        """All users with their groups, the oldest first."""
        members = {group: self._members(group) for group in self.groups()}
        with _faults("cannot list the users"):
            pages = self._client.get_paginator("list_users").paginate(**self._pool)
            told = [one for page in pages for one in page["Users"]]
        users = [PoolUser.of(one, (group for group, of in members.items() if one["Username"] in of)) for one in told]
        return sorted(users, key=lambda user: user.created_at)

    def user(self, name: str) -> PoolUser:
        """A user by e-mail address or subject.

        Raises:
            UserUnknown: the pool lacks this user.
        """
        with _faults(f"cannot look up {name}", UserNotFoundException=UserUnknown(name)):
            told = self._client.admin_get_user(**self._pool, Username=name)
            pages = self._client.get_paginator("admin_list_groups_for_user").paginate(
                **self._pool, Username=told["Username"]
            )
            return PoolUser.of(told, (one["GroupName"] for page in pages for one in page["Groups"]))

    def create(self, email: str, password: str | None) -> None:
        """Create a user. Cognito mails a temporary password, unless one is given.

        Raises:
            UserExists: the pool has this user.
        """
        attributes = [{"Name": "email", "Value": email}, {"Name": "email_verified", "Value": "true"}]
        how: dict[str, Any] = {"DesiredDeliveryMediums": ["EMAIL"]}
        if password is not None:
            how = {"MessageAction": "SUPPRESS", "TemporaryPassword": password}
        with _faults(f"cannot add {email}", UsernameExistsException=UserExists(email)):
            self._client.admin_create_user(**self._pool, Username=email, UserAttributes=attributes, **how)

    def set_temporary_password(self, user: PoolUser, password: str) -> None:
        """Replace the password with one that must be changed at the next sign-in."""
        with _faults(f"cannot set the password of {user.email}"):
            self._client.admin_set_user_password(
                **self._pool, Username=user.username, Password=password, Permanent=False
            )

    def join(self, user: PoolUser, group: str) -> None:
        """Add a user to a group."""
        with _faults(f"cannot add {user.email} to {group}"):
            self._client.admin_add_user_to_group(**self._pool, Username=user.username, GroupName=group)

    def leave(self, user: PoolUser, group: str) -> None:
        """Remove a user from a group."""
        with _faults(f"cannot remove {user.email} from {group}"):
            self._client.admin_remove_user_from_group(**self._pool, Username=user.username, GroupName=group)

    def disable(self, user: PoolUser) -> None:
        """Disable a user, who then gets no new tokens."""
        with _faults(f"cannot disable {user.email}"):
            self._client.admin_disable_user(**self._pool, Username=user.username)

    def sign_out(self, user: PoolUser) -> int:
        """Revoke a user's refresh tokens. Returns the time by AWS's clock, in epoch seconds."""
        with _faults(f"cannot sign out {user.email}"):
            answer = self._client.admin_user_global_sign_out(**self._pool, Username=user.username)
        return _answered_at(answer)

    def delete(self, user: PoolUser) -> None:
        """Delete a user."""
        with _faults(f"cannot delete {user.email}"):
            self._client.admin_delete_user(**self._pool, Username=user.username)

    def _members(self, group: str) -> set[str]:
        with _faults(f"cannot list the users of {group}"):
            pages = self._client.get_paginator("list_users_in_group").paginate(**self._pool, GroupName=group)
            return {one["Username"] for page in pages for one in page["Users"]}


def temporary_password() -> str:
    """A random password that meets every password policy of a user pool."""
    while True:
        drawn = "".join(secrets.choice(_LETTERS + _DIGITS + _SYMBOLS) for _ in range(PASSWORD_CHARS))
        kinds = (str.isupper, str.islower, str.isdigit, _SYMBOLS.__contains__)
        if drawn[0] not in _SYMBOLS and all(any(kind(one) for one in drawn) for kind in kinds):
            return drawn


def _answered_at(answer: Mapping[str, Any]) -> int:
    """The time of the response, by the clock that stamps the tokens."""
    told = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    return int(time.time()) if told is None else int(parsedate_to_datetime(told).timestamp())


@contextmanager
def _faults(what: str, **known: Exception) -> Iterator[None]:
    """Raise the SDK's errors as ours: ``known`` ones by their code, all others as :class:`UserPoolFault`."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in known:
            raise known[code] from error
        raise UserPoolFault(f"{what}: {code}: {error.response['Error'].get('Message', '')}") from error
    except BotoCoreError as error:
        raise UserPoolFault(f"{what}: {error}") from error
