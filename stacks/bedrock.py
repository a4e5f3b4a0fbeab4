"""Which resources a policy must name so that a function, or a service, may call one Bedrock model."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from cicada.models.model_ids import read_endpoint_id
from stacks.bedrock_regions import DESTINATION_REGIONS, GLOBAL, geography_of


def invoke_statements(
    stack: Stack, model_id: str, *, action: str, more_regions: Sequence[str] = ()
) -> list[iam.PolicyStatement]:
    """The statements that allow one action on one model and on nothing else.

    A profile needs two: the profile itself, and its model in the Region of the call and in every Region that it may
    route to, which is allowed through this profile only. Naming the Regions keeps the ARNs free of wildcards. A model
    of another endpoint needs none (:mod:`stacks.endpoints`). Source: Amazon Bedrock User Guide, "Geographic
    cross-Region inference".

    Args:
        stack: whose account, Region and partition the ARNs carry.
        model_id: a model's id, an inference profile's, or ``<endpoint>/<model>``.
        action: the one action, such as ``bedrock:InvokeModelWithResponseStream``.
        more_regions: destination Regions beside the known ones.
    """

    if read_endpoint_id(model_id) is not None:
        return []

    def model_arn(region: str, name: str) -> str:
        return f"arn:{stack.partition}:bedrock:{region}::foundation-model/{name}"

    geography = geography_of(model_id)
    if geography is None:
        return [iam.PolicyStatement(actions=[action], resources=[model_arn(stack.region, model_id)])]
    profile = f"arn:{stack.partition}:bedrock:{stack.region}:{stack.account}:inference-profile/{model_id}"
    name = model_id.removeprefix(f"{geography}.")
    # A global profile is allowed by the ARN without a Region that stands for all of them.
    destinations = ("",) if geography == GLOBAL else DESTINATION_REGIONS[geography]
    return [
        iam.PolicyStatement(actions=[action], resources=[profile]),
        iam.PolicyStatement(
            actions=[action],
            resources=[
                model_arn(region, name) for region in dict.fromkeys((*destinations, stack.region, *more_regions))
            ],
            conditions={"StringEquals": {"bedrock:InferenceProfileArn": profile}},
        ),
    ]


def model_role(
    scope: Construct,
    *,
    service: str,
    resources: str,
    model_id: str,
    more_regions: Sequence[str],
    description: str,
    more: Sequence[iam.PolicyStatement] = (),
) -> iam.Role:
    """A role in which a service of Bedrock's, for resources of this account alone, may call one model.

    Its policy is part of it: CloudFormation waits for a new role before it goes on, and does not wait for a policy of
    its own, without which the service refuses to make what uses the role.

    Args:
        scope: gets the role, as its ``Role``.
        service: such as ``bedrock``: the first part of its principal and of its resources' ARNs.
        resources: for which of them the service may take the role: what follows the account in their ARNs.
        model_id: see :func:`invoke_statements`.
        more_regions: likewise.
        description: the role's.
        more: what else the service may do.
    """
    stack = Stack.of(scope)
    calls = [
        statement
        for action in ("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream")
        for statement in invoke_statements(stack, model_id, action=action, more_regions=more_regions)
    ]
    return iam.Role(
        scope,
        "Role",
        assumed_by=iam.ServicePrincipal(
            f"{service}.amazonaws.com",
            conditions={
                "StringEquals": {"aws:SourceAccount": stack.account},
                "ArnLike": {
                    "aws:SourceArn": f"arn:{stack.partition}:{service}:{stack.region}:{stack.account}:{resources}"
                },
            },
        ),
        description=description,
        inline_policies={"Model": iam.PolicyDocument(statements=[*calls, *more])},
    )
