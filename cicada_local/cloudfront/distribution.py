"""A distribution as ``AWS::CloudFront::Distribution`` declares it. What is not simulated is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cicada_local.cloudfront.headers import PolicyHeader

ERROR_CACHING_S = 10.0
"""How long an error is kept where the template does not say."""


@dataclass(frozen=True)
class CachePolicy:
    """How long CloudFront keeps a file, in seconds, and whether it may compress it."""

    min_s: float
    default_s: float
    max_s: float
    compresses: bool


MANAGED_CACHE_POLICIES = {
    "658327ea-f89d-4fab-a63d-7e88639e58f6": CachePolicy(1, 86_400, 31_536_000, compresses=True),
    "4135ea2d-6df8-44a3-9df3-4b5a84be39ad": CachePolicy(0, 0, 0, compresses=False),
}
"""AWS's CachingOptimized and CachingDisabled."""


@dataclass(frozen=True)
class Behavior:
    """How requests for some paths are answered."""

    pattern: re.Pattern[str]
    bucket: str
    policy: CachePolicy
    compress: bool
    headers: tuple[PolicyHeader, ...]


@dataclass(frozen=True)
class ErrorResponse:
    """What is answered in place of an error of the origin."""

    kept_s: float
    status: int | None
    """None keeps the error's own, and its body."""
    path: str


@dataclass(frozen=True)
class Distribution:
    """One distribution."""

    arn: str
    root_object: str
    behaviors: Sequence[Behavior]
    """In the order in which they are tried; the last one takes every path."""
    errors: Mapping[int, ErrorResponse]

    def behavior_of(self, path: str) -> Behavior:
        """The first behavior whose pattern takes a path."""
        return next(behavior for behavior in self.behaviors if behavior.pattern.fullmatch(path))


_KNOWN = {
    "Aliases",
    "CacheBehaviors",
    "Comment",
    "CustomErrorResponses",
    "DefaultCacheBehavior",
    "DefaultRootObject",
    "Enabled",
    "HttpVersion",
    "IPV6Enabled",
    "Origins",
    "PriceClass",
    "ViewerCertificate",
}
_KNOWN_OF_BEHAVIORS = {
    "AllowedMethods",
    "CachePolicyId",
    "CachedMethods",
    "Compress",
    "PathPattern",
    "ResponseHeadersPolicyId",
    "TargetOriginId",
    "ViewerProtocolPolicy",
}


def read_distribution(
    config: Mapping[str, Any],
    arn: str,
    *,
    headers: Mapping[str, tuple[PolicyHeader, ...]],
    access_controls: Mapping[str, Any],
) -> Distribution:
    """Read a distribution.

    Args:
        config: its ``DistributionConfig``, references resolved.
        arn: its own.
        headers: the response headers policies that there are, by id.
        access_controls: the origin access controls that there are, by id.

    Raises:
        ValueError: CloudFront refuses it, or it has a part that is not simulated.
    """
    _only(config, _KNOWN, "a distribution")
    if config.get("Aliases") and "AcmCertificateArn" not in config.get("ViewerCertificate", {}):
        raise ValueError("To add an alternate domain name (CNAME), you must attach a trusted certificate")
    buckets = {origin["Id"]: _bucket(origin, access_controls) for origin in config["Origins"]}
    declared = [*config.get("CacheBehaviors", []), {**config["DefaultCacheBehavior"], "PathPattern": "*"}]
    return Distribution(
        arn=arn,
        root_object=config.get("DefaultRootObject", ""),
        behaviors=[_behavior(one, buckets, headers) for one in declared],
        errors={int(one["ErrorCode"]): _error_response(one) for one in config.get("CustomErrorResponses", [])},
    )


def _only(config: Mapping[str, Any], known: set[str], what: str) -> None:
    unknown = config.keys() - known
    if unknown:
        raise ValueError(f"{what} with {', '.join(sorted(unknown))} is not simulated")


def _bucket(origin: Mapping[str, Any], access_controls: Mapping[str, Any]) -> str:
    found = re.fullmatch(r"(.+)\.s3\.[a-z0-9-]+\.amazonaws\.com", origin["DomainName"])
    if found is None or "S3OriginConfig" not in origin:
        raise ValueError("an origin that is no S3 bucket is not simulated")
    if origin.get("OriginAccessControlId") not in access_controls:
        raise ValueError("NoSuchOriginAccessControl: an origin needs an origin access control that exists")
    return found[1]


def _behavior(
    config: Mapping[str, Any], buckets: Mapping[str, str], headers: Mapping[str, tuple[PolicyHeader, ...]]
) -> Behavior:
    _only(config, _KNOWN_OF_BEHAVIORS, "a cache behavior")
    if set(config.get("AllowedMethods", ["GET", "HEAD"])) != {"GET", "HEAD"}:
        raise ValueError("a cache behavior for other methods than GET and HEAD is not simulated")
    if config["TargetOriginId"] not in buckets:
        raise ValueError("NoSuchOrigin: One or more of your origins or origin groups do not exist.")
    if config["CachePolicyId"] not in MANAGED_CACHE_POLICIES:
        raise ValueError(f"NoSuchCachePolicy: {config['CachePolicyId']}")
    policy_id = config.get("ResponseHeadersPolicyId")
    if policy_id is not None and policy_id not in headers:
        raise ValueError(f"NoSuchResponseHeadersPolicy: {policy_id}")
    return Behavior(
        pattern=_pattern(config["PathPattern"]),
        bucket=buckets[config["TargetOriginId"]],
        policy=MANAGED_CACHE_POLICIES[config["CachePolicyId"]],
        compress=str(config.get("Compress", False)).lower() == "true",
        headers=() if policy_id is None else headers[policy_id],
    )


def _pattern(written: str) -> re.Pattern[str]:
    """``*`` stands for any characters, ``?`` for one; a leading slash may be left out."""
    parts = (".*" if char == "*" else "." if char == "?" else re.escape(char) for char in written.removeprefix("/"))
    return re.compile(f"/{''.join(parts)}", re.DOTALL)


def _error_response(config: Mapping[str, Any]) -> ErrorResponse:
    status = config.get("ResponseCode")
    return ErrorResponse(
        kept_s=float(config.get("ErrorCachingMinTTL", ERROR_CACHING_S)),
        status=None if status is None else int(status),
        path=config.get("ResponsePagePath", ""),
    )
