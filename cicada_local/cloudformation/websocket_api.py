"""WebSocket APIs: the ``AWS::ApiGatewayV2`` types as stacks declare them, kept for the gateway to read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cicada_local.cloudformation.base import Declaration, Resource, define

_ID_LENGTH = 10
_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"

Properties = Mapping[str, Any]


@dataclass
class DeployedApi:
    """One API and what belongs to it, each part with its properties as in the template, references resolved."""

    api_id: str
    properties: Properties
    routes: dict[str, Properties] = field(default_factory=dict)
    integrations: dict[str, Properties] = field(default_factory=dict)
    route_responses: dict[str, Properties] = field(default_factory=dict)
    integration_responses: dict[str, Properties] = field(default_factory=dict)
    authorizers: dict[str, Properties] = field(default_factory=dict)
    models: dict[str, Properties] = field(default_factory=dict)
    deployments: dict[str, Properties] = field(default_factory=dict)
    stages: dict[str, Properties] = field(default_factory=dict)
    """By stage name; every other part is by its id."""


APIS: dict[str, DeployedApi] = {}
"""What is deployed, by API id."""

Parts = Callable[[DeployedApi], dict[str, Properties]]


def derived_id(*names: str) -> str:
    """An id that is the same at every start, so that a page left open finds its API again."""
    digest = hashlib.sha256("/".join(names).encode()).digest()
    return "".join(_ID_ALPHABET[byte % len(_ID_ALPHABET)] for byte in digest[:_ID_LENGTH])


def _create_api(declaration: Declaration) -> Resource:
    api_id = derived_id(declaration.stack_name, declaration.logical_id)
    api = APIS[api_id] = DeployedApi(api_id, declaration.properties)

    def replace(properties: dict[str, Any]) -> None:
        api.properties = properties

    def remove() -> None:
        APIS.pop(api_id, None)

    endpoint = f"wss://{api_id}.execute-api.{declaration.region_name}.amazonaws.com"
    return Resource(api_id, {"ApiId": api_id, "ApiEndpoint": endpoint}, replace=replace, remove=remove)


def _create_part(declaration: Declaration, id_attribute: str, parts: Parts, id_property: str | None) -> Resource:
    api_id = declaration.properties["ApiId"]
    part_id = declaration.properties[id_property] if id_property else derived_id(api_id, declaration.logical_id)

    def replace(properties: dict[str, Any]) -> None:
        parts(APIS[api_id])[part_id] = properties

    def remove() -> None:
        if api_id in APIS:
            parts(APIS[api_id]).pop(part_id, None)

    replace(declaration.properties)
    return Resource(part_id, {id_attribute: part_id}, replace=replace, remove=remove)


def _update(resource: Resource, declaration: Declaration) -> Resource:
    resource.replace(declaration.properties)
    return resource


def _define_part(kind: str, id_attribute: str, parts: Parts, *, id_property: str | None = None) -> None:
    """Define the type of something that belongs to an API.

    Args:
        kind: the type's last word.
        id_attribute: the attribute that gives its id.
        parts: where the API keeps them.
        id_property: the property that is its id, where it has none of its own making.
    """
    define(
        f"AWS::ApiGatewayV2::{kind}",
        create=lambda declaration: _create_part(declaration, id_attribute, parts, id_property),
        update=_update,
        attributes=(id_attribute,),
    )


define("AWS::ApiGatewayV2::Api", create=_create_api, update=_update, attributes=("ApiId", "ApiEndpoint"))
_define_part("Route", "RouteId", lambda api: api.routes)
_define_part("RouteResponse", "RouteResponseId", lambda api: api.route_responses)
_define_part("Integration", "IntegrationId", lambda api: api.integrations)
_define_part("IntegrationResponse", "IntegrationResponseId", lambda api: api.integration_responses)
_define_part("Authorizer", "AuthorizerId", lambda api: api.authorizers)
_define_part("Model", "ModelId", lambda api: api.models)
_define_part("Deployment", "DeploymentId", lambda api: api.deployments)
_define_part("Stage", "Id", lambda api: api.stages, id_property="StageName")
