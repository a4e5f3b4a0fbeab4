"""CloudFront's types as the stacks declare them, kept for the edge to read: distributions and what belongs to them."""

from __future__ import annotations

from typing import Any

from cicada_local.cloudformation.base import Declaration, Resource, define, forgetting
from cicada_local.cloudformation.websocket_api import derived_id
from cicada_local.cloudfront.distribution import Distribution, read_distribution
from cicada_local.cloudfront.headers import PolicyHeader, read_headers

DISTRIBUTIONS: dict[str, Distribution] = {}
"""What is deployed, by id."""
HEADERS_POLICIES: dict[str, tuple[PolicyHeader, ...]] = {}
ACCESS_CONTROLS: dict[str, dict[str, Any]] = {}

_ACCESS_CONTROL = {"OriginAccessControlOriginType": "s3", "SigningBehavior": "always", "SigningProtocol": "sigv4"}
_DOMAIN = "cloudfront.net"


def _create_distribution(declaration: Declaration) -> Resource:
    name = derived_id(declaration.stack_name, declaration.logical_id)
    id = f"E{name.upper()}"
    domain = f"d{name}.{_DOMAIN}"
    arn = f"arn:aws:cloudfront::{declaration.account_id}:distribution/{id}"

    def replace(properties: dict[str, Any]) -> None:
        config = properties["DistributionConfig"]
        DISTRIBUTIONS[id] = read_distribution(config, arn, headers=HEADERS_POLICIES, access_controls=ACCESS_CONTROLS)

    replace(declaration.properties)
    return Resource(id, {"Id": id, "DomainName": domain}, replace=replace, remove=forgetting(DISTRIBUTIONS, id))


def _create_headers_policy(declaration: Declaration) -> Resource:
    id = derived_id(declaration.stack_name, declaration.logical_id)

    def replace(properties: dict[str, Any]) -> None:
        HEADERS_POLICIES[id] = read_headers(properties["ResponseHeadersPolicyConfig"])

    replace(declaration.properties)
    return Resource(id, {"Id": id}, replace=replace, remove=forgetting(HEADERS_POLICIES, id))


def _create_access_control(declaration: Declaration) -> Resource:
    id = f"E{derived_id(declaration.stack_name, declaration.logical_id).upper()}"

    def replace(properties: dict[str, Any]) -> None:
        config = properties["OriginAccessControlConfig"]
        if {name: config.get(name) for name in _ACCESS_CONTROL} != _ACCESS_CONTROL:
            raise ValueError(f"an origin access control other than {_ACCESS_CONTROL} is not simulated")
        ACCESS_CONTROLS[id] = config

    replace(declaration.properties)
    return Resource(id, {"Id": id}, replace=replace, remove=forgetting(ACCESS_CONTROLS, id))


def _update(resource: Resource, declaration: Declaration) -> Resource:
    resource.replace(declaration.properties)
    return resource


define("AWS::CloudFront::Distribution", create=_create_distribution, update=_update, attributes=("Id", "DomainName"))
define("AWS::CloudFront::ResponseHeadersPolicy", create=_create_headers_policy, update=_update, attributes=("Id",))
define("AWS::CloudFront::OriginAccessControl", create=_create_access_control, update=_update, attributes=("Id",))
