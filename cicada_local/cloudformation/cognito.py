"""Amazon Cognito's user pools as stacks declare them: moto serves their API, and knows none of the types.

Ids are derived from the names in the template, so that users, tokens and pages that were left open outlive a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moto.cognitoidp.models import (
    CognitoIdpBackend,
    CognitoIdpGroup,
    CognitoIdpUser,
    CognitoIdpUserPool,
    CognitoIdpUserPoolClient,
    cognitoidp_backends,
)

from cicada_local.cloudformation.base import Declaration, Resource, define
from cicada_local.cloudformation.websocket_api import derived_id

_POOL_ID_LENGTH = 9
_CLIENT_ID_LENGTH = 26


class DeployedPool(CognitoIdpUserPool):
    """A user pool whose users are found, and signed out, by id and by e-mail address, in upper and lower case."""

    def _get_user(self, username: str) -> CognitoIdpUser:
        found: Any = super()._get_user(username)
        if found is None and not self.extended_config.get("UsernameConfiguration", {}).get("CaseSensitive", False):
            found = next((user for user in self.users.values() if username.casefold() in _names(user)), None)
        return found  # type: ignore[no-any-return]  # None where there is no such user, as moto has it

    def sign_out(self, username: str) -> None:
        """End the refresh tokens of a user."""
        super().sign_out(self._get_user(username).username)


def _names(user: CognitoIdpUser) -> set[str]:
    return {user.username.casefold(), str(user.attribute_lookup.get("email", "")).casefold()}


def backend_of(account_id: str, region: str) -> CognitoIdpBackend:
    """moto's user pools of an account and region."""
    return cognitoidp_backends[account_id][region]


def _ids(length: int, *names: str) -> str:
    return "".join(derived_id(*names, str(part)) for part in range(3))[:length]


def _but(properties: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name not in names}


def _create_pool(declaration: Declaration) -> Resource:
    backend = backend_of(declaration.account_id, declaration.region_name)
    pool = DeployedPool(
        declaration.account_id, declaration.region_name, declaration.name, _but(declaration.properties, "UserPoolName")
    )
    suffix = _ids(_POOL_ID_LENGTH, declaration.stack_name, declaration.logical_id)
    pool.id = f"{declaration.region_name}_{suffix}"
    pool.arn = f"{pool.arn.rpartition('/')[0]}/{pool.id}"
    backend.user_pools[pool.id] = pool
    provider = f"cognito-idp.{declaration.region_name}.amazonaws.com/{pool.id}"

    def replace(properties: dict[str, Any]) -> None:
        pool.update_extended_config(_but(properties, "UserPoolName", "Schema"))

    def remove() -> None:
        backend.user_pools.pop(pool.id, None)

    attributes = {
        "Arn": pool.arn,
        "ProviderName": provider,
        "ProviderURL": f"https://{provider}",
        "UserPoolId": pool.id,
    }
    return Resource(pool.id, attributes, replace=replace, remove=remove)


def _pool_of(declaration: Declaration) -> CognitoIdpUserPool:
    backend = backend_of(declaration.account_id, declaration.region_name)
    return backend.describe_user_pool(declaration.properties["UserPoolId"])


def _create_client(declaration: Declaration) -> Resource:
    pool = _pool_of(declaration)
    client = CognitoIdpUserPoolClient(pool.id, declaration.properties.get("GenerateSecret", False), {})
    client.id = _ids(_CLIENT_ID_LENGTH, pool.id, declaration.logical_id)
    defaults = dict(client.extended_config)

    def replace(properties: dict[str, Any]) -> None:
        client.extended_config = {**defaults, **_but(properties, "UserPoolId", "GenerateSecret")}

    def remove() -> None:
        pool.clients.pop(client.id, None)

    replace(declaration.properties)
    pool.clients[client.id] = client
    attributes = {"ClientId": client.id, "Name": declaration.name, "ClientSecret": client.secret}
    return Resource(client.id, attributes, replace=replace, remove=remove)


def _create_domain(declaration: Declaration) -> Resource:
    backend = backend_of(declaration.account_id, declaration.region_name)
    domain = declaration.properties["Domain"]
    created = backend.create_user_pool_domain(
        declaration.properties["UserPoolId"], domain, declaration.properties.get("CustomDomainConfig")
    )

    def remove() -> None:
        backend.user_pool_domains.pop(domain, None)

    distribution = created.to_json(extended=True)["CloudFrontDistribution"]
    return Resource(domain, {"CloudFrontDistribution": distribution, "Id": domain}, remove=remove)


def _create_group(declaration: Declaration) -> Resource:
    pool = _pool_of(declaration)
    name = declaration.properties.get("GroupName", declaration.name)
    group = pool.groups.setdefault(name, CognitoIdpGroup(pool.id, name, "", "", 0))

    def replace(properties: dict[str, Any]) -> None:
        group.update(properties.get("Description"), properties.get("RoleArn"), properties.get("Precedence"))

    def remove() -> None:
        gone = pool.groups.pop(name, None)
        for user in gone.users if gone is not None else ():
            user.groups.discard(gone)

    replace(declaration.properties)
    return Resource(name, {}, replace=replace, remove=remove)


def _create_branding(declaration: Declaration) -> Resource:
    branding_id = _ids(_CLIENT_ID_LENGTH, declaration.stack_name, declaration.logical_id)
    pool_id = declaration.properties["UserPoolId"]
    return Resource(f"{pool_id}|{branding_id}", {"ManagedLoginBrandingId": branding_id})


def _define(kind: str, create: Callable[[Declaration], Resource], *attributes: str, name_property: str = "") -> None:
    def update(resource: Resource, declaration: Declaration) -> Resource:
        resource.replace(declaration.properties)
        return resource

    define(f"AWS::Cognito::{kind}", create=create, update=update, attributes=attributes, name_property=name_property)


_define("UserPool", _create_pool, "Arn", "ProviderName", "ProviderURL", "UserPoolId", name_property="UserPoolName")
_define("UserPoolClient", _create_client, "ClientId", "Name", "ClientSecret", name_property="ClientName")
_define("UserPoolDomain", _create_domain, "CloudFrontDistribution", "Id", name_property="Domain")
_define("UserPoolGroup", _create_group, name_property="GroupName")
_define("ManagedLoginBranding", _create_branding, "ManagedLoginBrandingId")
