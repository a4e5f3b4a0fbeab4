"""Resource types that change nothing on a laptop: accepted, named, and otherwise left alone."""

from __future__ import annotations

from collections import defaultdict

from cicada_local.cloudformation.base import Declaration, Resource, define

TYPES = (
    "AWS::ApiGateway::Account",
    "AWS::Budgets::Budget",
    "AWS::CDK::Metadata",
    "AWS::CloudWatch::CompositeAlarm",
    "AWS::Logs::MetricFilter",
    "AWS::SNS::Subscription",
    "AWS::WAFv2::WebACL",
    "AWS::WAFv2::WebACLAssociation",
    "AWS::XRay::SamplingRule",
)


def _accept(declaration: Declaration, resource_type: str) -> Resource:
    service, kind = resource_type.lower().split("::")[1:]
    arn = f"arn:aws:{service}:{declaration.region_name}:{declaration.account_id}:{kind}/{declaration.name}"
    attributes = defaultdict(lambda: declaration.name, {"Arn": arn, f"{resource_type.split('::')[2]}Arn": arn})
    return Resource(declaration.name, attributes)


def _define(resource_type: str) -> None:
    define(
        resource_type,
        create=lambda declaration: _accept(declaration, resource_type),
        update=lambda resource, _: resource,
    )


for _type in TYPES:
    _define(_type)
