"""Whose call a request is, told from the access key that signed it; and credentials for the services' roles.

Temporary credentials are moto's STS's, so that ``sts:AssumeRole`` gives credentials that count here as well. Access
keys of IAM users have their users' policies. A key that was not issued here, such as the CDK's, a test's, or one of the
operator's own account, is an administrator's. So are the sessions of the roles that the CDK's bootstrapping makes for
deployments. Signatures are not checked, except those of forms for S3.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cicada_local.permissions.policies import Effect, Required, evaluate, parse, text_of
from cicada_local.places import ACCOUNT_ID, REGION

_PARTITION = "aws"
_TEMPORARY, _LASTING = "ASIA", "AKIA"
_CDK_ROLES = "cdk-"
_TEN_YEARS_S = 10 * 365 * 24 * 3600
"""Lambda renews a function's credentials for as long as it runs."""

_roles: dict[str, Any] = {}


class RoleNotAssumable(Exception):
    """A role does not exist, or does not trust the service."""


class TokenInvalid(Exception):
    """The session token is not the access key's, or has expired."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Principal:
    """A role's session, or a user."""

    arn: str
    """``arn:aws:sts::<account>:assumed-role/<role>/<session>``, or the user's."""
    name: str
    """Under which its calls are counted."""
    named: tuple[str, ...]
    """The ARNs by which a resource's policy can name it."""
    documents: Callable[[], Iterable[str]]
    """Its identity-based policies as they stand now."""
    context: Mapping[str, tuple[str, ...]]
    """The condition keys that it brings, in lower case."""


class Principals:
    """Knows every principal by its access key. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._issued: dict[tuple[str, str], Any] = {}
        self._names: dict[str, str] = {}
        self._sessions: dict[str, tuple[Any, Principal | None]] = {}

    def credentials(self, role_arn: str, session: str, *, service: str, name: str | None = None) -> Mapping[str, str]:
        """Credentials of a role for a service that assumes it, as environment variables; the same at each call.

        Args:
            role_arn: the role.
            session: the session's name: of a function's role, the function's.
            service: the service's principal, such as ``lambda.amazonaws.com``.
            name: under which calls are counted; the session's when None.

        Raises:
            RoleNotAssumable: there is no such role, or it does not trust the service.
        """
        check_trust(role_arn, service)
        with self._lock:
            found = self._issued.get((role_arn, session))
            if found is None:
                found = self._issued[role_arn, session] = _assume(role_arn, session)
                self._names[found.access_key_id] = name or session
        return {
            "AWS_ACCESS_KEY_ID": found.access_key_id,
            "AWS_SECRET_ACCESS_KEY": found.secret_access_key,
            "AWS_SESSION_TOKEN": found.session_token,
        }

    def find(self, access_key: str, token: str | None) -> Principal | None:
        """The principal of a request; None for an administrator.

        Raises:
            TokenInvalid: it is signed with temporary credentials of which the token is wrong, or that have expired.
        """
        if access_key.startswith(_LASTING):
            return _user(access_key)
        if not access_key.startswith(_TEMPORARY):
            return None
        known = self._sessions.get(access_key) or self._session(access_key)
        if known is None:
            return None
        self._sessions[access_key] = session, principal = known
        if token != session.session_token:
            raise TokenInvalid("InvalidClientTokenId", "The security token included in the request is invalid")
        if session.expiration < datetime.datetime.now(datetime.UTC).replace(tzinfo=session.expiration.tzinfo):
            raise TokenInvalid("ExpiredToken", "The security token included in the request is expired")
        return principal

    def secret_of(self, access_key: str) -> str | None:
        """The secret of temporary credentials that were issued here; None for others."""
        known = self._sessions.get(access_key) or self._session(access_key)
        return None if known is None else str(known[0].secret_access_key)

    def _session(self, access_key: str) -> tuple[Any, Principal | None] | None:
        from moto.sts.models import sts_backends

        session = sts_backends[ACCOUNT_ID][_PARTITION].get_assumed_role_from_access_key(access_key)
        if session is None:
            return None
        role_arn = session.role_arn
        if role_arn.rpartition("/")[2].startswith(_CDK_ROLES):
            return session, None
        name = self._names.get(access_key, session.session_name)
        context = {
            "aws:principalarn": (role_arn,),
            "aws:principalaccount": (ACCOUNT_ID,),
            "aws:principaltype": ("AssumedRole",),
        }
        return session, Principal(session.arn, name, (session.arn, role_arn), lambda: role_documents(role_arn), context)


def role_documents(role_arn: str) -> list[str]:
    """A role's policies as they stand now; none if it is gone."""
    role = _role(role_arn)
    return [] if role is None else _documents(role)


def check_trust(role_arn: str, service: str) -> None:
    """Make sure that a service may assume a role.

    Raises:
        RoleNotAssumable: there is no such role, or it does not trust the service.
    """
    role = _role(role_arn)
    if role is None:
        raise RoleNotAssumable(f"there is no role {role_arn}")
    required = Required("sts:AssumeRole", role_arn, {"aws:sourceaccount": (ACCOUNT_ID,)})
    trusting = [one for one in parse(text_of(role.assume_role_policy_document)) if one.names("Service", (service,))]
    if evaluate(trusting, required) is not Effect.ALLOW:
        raise RoleNotAssumable(f"{role_arn} does not trust {service}")


def _assume(role_arn: str, session: str) -> Any:
    from moto.sts.models import sts_backends

    return sts_backends[ACCOUNT_ID][_PARTITION].assume_role(
        region_name=REGION,
        role_session_name=session,
        role_arn=role_arn,
        policy="",
        duration=_TEN_YEARS_S,
        external_id="",
    )


def _role(role_arn: str) -> Any:
    """A role; None if there is none. Found again by its id: moto composes each role's ARN anew at every look."""
    roles = _iam().roles
    known = _roles.get(role_arn)
    if known is None or roles.get(known.id) is not known:
        known = next((role for role in list(roles.values()) if role.arn == role_arn), None)
        if known is not None:
            _roles[role_arn] = known
    return known


def _user(access_key: str) -> Principal | None:
    for user in list(_iam().users.values()):
        if any(key.access_key_id == access_key for key in user.access_keys):
            return _principal_of(user)
    return None


def _principal_of(user: Any) -> Principal:
    groups = [group for group in list(_iam().groups.values()) if user in group.users]
    return Principal(
        user.arn,
        user.name,
        (user.arn,),
        lambda: [document for holder in (user, *groups) for document in _documents(holder)],
        {"aws:principalarn": (user.arn,), "aws:username": (user.name,), "aws:principaltype": ("User",)},
    )


def _documents(holder: Any) -> list[str]:
    managed = (
        version.document
        for policy in list(holder.managed_policies.values())
        for version in policy.versions
        if version.version_id == policy.default_version_id
    )
    return [text_of(document) for document in (*list(holder.policies.values()), *managed)]


def _iam() -> Any:
    from moto.iam.models import iam_backends

    return iam_backends[ACCOUNT_ID][_PARTITION]
