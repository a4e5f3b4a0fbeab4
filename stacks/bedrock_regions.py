"""Where Bedrock's models and inference profiles can be called: known without the CDK and without AWS."""

from __future__ import annotations

from cicada.models.model_ids import read_model_id

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

PROVIDERS = frozenset(
    {
        *("ai21", "amazon", "anthropic", "cohere", "deepseek", "google", "luma", "meta", "minimax", "mistral"),
        *("moonshot", "moonshotai", "nvidia", "openai", "qwen", "stability", "twelvelabs", "writer", "zai"),
    }
)
"""What the ids of Bedrock's models begin with."""

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


def unknown_geography(model_id: str) -> str | None:
    """The geography of an inference profile that is not known here, ``in`` of ``in.amazon.nova-lite-v1:0``; else None.

    Without its destination Regions no policy can allow the call. A model's own id begins with its provider.
    """
    prefix, _, rest = model_id.partition(".")
    names_a_profile = "." in rest and (rest.split(".", 1)[0] in PROVIDERS or read_model_id(model_id).profile == prefix)
    return prefix if names_a_profile and geography_of(model_id) is None else None


def serves(geography: str, region: str) -> bool:
    """Whether the profiles of a geography can be called from a Region."""
    return geography == GLOBAL or region.startswith(_SOURCES[geography])


def why_not_from(region: str | None, model_id: str) -> str | None:
    """Why a model cannot be called from a Region, and what helps; None if nothing that is known here is in the way.

    Without a Region, what holds in every one.
    """
    unknown = unknown_geography(model_id)
    if unknown is not None:
        offered = [f"{known}." for known in (*DESTINATION_REGIONS, GLOBAL) if region is None or serves(known, region)]
        return (
            f"{model_id} is an inference profile of {unknown}., whose Regions are not known. Choose a model's own id, "
            f"or an inference profile whose id begins with {' or '.join(offered)}; or add the Regions to "
            "DESTINATION_REGIONS in stacks/bedrock_regions.py"
        )
    if region is None:
        return None
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
            "RERANKING_REGIONS in stacks/bedrock_regions.py"
        )
    return None
