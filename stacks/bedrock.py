"""Which resources a policy must name so that a function, or a service, may call one Bedrock model."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from cicada.models.model_ids import read_endpoint_id

# Regions that AWS's inference profiles of a geography route to: the union over its models, because a profile's own list
# differs from model to model. Source: Amazon Bedrock User Guide, "Supported Regions and models for inference profiles".
DESTINATION_REGIONS: dict[str, tuple[str, ...]] = {
    "us": ("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    "us-gov": ("us-gov-east-1", "us-gov-west-1"),
    "ca": ("ca-central-1", "ca-west-1"),
    "eu": (
        "eu-central-1",
        "eu-central-2",
        "eu-north-1",
        "eu-south-1",
        "eu-south-2",
        "eu-west-1",
        "eu-west-2",
        "eu-west-3",
    ),
    "apac": (
        "ap-east-2",
        "ap-northeast-1",
        "ap-northeast-2",
        "ap-northeast-3",
        "ap-south-1",
        "ap-south-2",
        "ap-southeast-1",
        "ap-southeast-2",
        "ap-southeast-3",
        "ap-southeast-4",
        "ap-southeast-5",
        "ap-southeast-7",
        "me-central-1",
    ),
    "jp": ("ap-northeast-1", "ap-northeast-3"),
    "au": ("ap-southeast-2", "ap-southeast-4"),
}

GLOBAL = "global"

# Regions that may call a geography's profiles, by the beginning of their names.
_SOURCES: dict[str, tuple[str, ...]] = {
    "us": ("us-east-", "us-west-", "ca-"),
    "us-gov": ("us-gov-",),
    "ca": ("ca-",),
    "eu": ("eu-", "il-"),
    "apac": ("ap-", "me-"),
    "jp": ("ap-northeast-",),
    "au": ("ap-southeast-",),
}

# Source: Amazon Bedrock User Guide, "Supported Regions and models for reranking". No profile routes to other Regions.
RERANKING_REGIONS: dict[str, tuple[str, ...]] = {
    "amazon.rerank-v1:0": ("ap-northeast-1", "ca-central-1", "eu-central-1", "us-west-2"),
    "cohere.rerank-v3-5:0": ("ap-northeast-1", "ca-central-1", "eu-central-1", "us-east-1", "us-west-2"),
}


def geography_of(model_id: str) -> str | None:
    """The geography of an inference profile's id, ``us`` of ``us.amazon.nova-lite-v1:0``; None for a model's own id."""
    prefix = model_id.split(".", 1)[0]
    return prefix if prefix == GLOBAL or prefix in DESTINATION_REGIONS else None


def serves(geography: str, region: str) -> bool:
    """Whether the profiles of a geography can be called from a Region."""
    return geography == GLOBAL or region.startswith(_SOURCES[geography])


def why_not_from(region: str, model_id: str) -> str | None:
    """Why a model cannot be called from a Region, and what helps; None if nothing that is known here is in the way."""
    geography = geography_of(model_id)
    if geography is not None and not serves(geography, region):
        offered = [f"{other}." for other in (*DESTINATION_REGIONS, GLOBAL) if serves(other, region)]
        return (
            f"{model_id} cannot be called from {region}. Choose a model of that Region, or an inference profile whose "
            f"id begins with {' or '.join(offered)}"
        )
    regions = RERANKING_REGIONS.get(model_id)
    if regions is not None and region not in regions:
        return (
            f"{model_id} is known in {', '.join(regions)}, and not in {region}. Choose another re-ranking model, or "
            "any text model, which marks passages; or, if AWS has it there by now, add the Region to "
            "RERANKING_REGIONS in stacks/bedrock.py"
        )
    return None


def invoke_statements(
    stack: Stack, model_id: str, *, action: str, more_regions: Sequence[str] = ()
) -> list[iam.PolicyStatement]:
    """The statements that allow one action on one model and on nothing else.

    A profile needs two: the profile itself, and its model in every Region that it may route to, which is allowed
    through this profile only. Naming the Regions keeps the ARNs free of wildcards. A model of another endpoint needs
    none (:mod:`stacks.endpoints`).

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
    regions = ("", stack.region) if geography == GLOBAL else DESTINATION_REGIONS[geography]
    return [
        iam.PolicyStatement(actions=[action], resources=[profile]),
        iam.PolicyStatement(
            actions=[action],
            resources=[model_arn(region, name) for region in dict.fromkeys((*regions, *more_regions))],
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
) -> iam.Role:
    """A role in which a service of Bedrock's, for resources of this account alone, may call one model and nothing else.

    Args:
        scope: gets the role, as its ``Role``.
        service: such as ``bedrock``: the first part of its principal and of its resources' ARNs.
        resources: for which of them the service may take the role: what follows the account in their ARNs.
        model_id: see :func:`invoke_statements`.
        more_regions: likewise.
        description: the role's.
    """
    stack = Stack.of(scope)
    role = iam.Role(
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
    )
    for action in ("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"):
        for statement in invoke_statements(stack, model_id, action=action, more_regions=more_regions):
            role.add_to_principal_policy(statement)
    return role
