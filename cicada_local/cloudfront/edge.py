"""What an edge location does with a viewer's request: cache, origin, error responses, compression, headers.

Without I/O but for the origin; time comes from outside. Sources: the CloudFront developer guide, "Manage how long
content stays in the cache", "Serve compressed files", "Generate custom error responses".
"""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from cicada_local.cloudfront.distribution import Behavior, Distribution
from cicada_local.cloudfront.headers import PolicyHeader

COMPRESSED_BYTES = range(1_000, 10_000_001)
"""The sizes of files that CloudFront compresses."""
COMPRESSED_TYPES = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/manifest+json",
        "application/xml",
        "image/svg+xml",
        "text/css",
        "text/html",
        "text/javascript",
        "text/plain",
        "text/xml",
    }
)
"""Those of the types that CloudFront compresses which a page can have."""

_FORBIDDEN_TO_KEEP = re.compile(r"\b(?:no-cache|no-store|private)\b")
_MAX_AGE = re.compile(r"\b(s-maxage|max-age)=(\d+)")


@dataclass(frozen=True)
class ViewerRequest:
    """What counts of a viewer's request."""

    path: str
    """Percent-decoded."""
    accepts_gzip: bool = False
    if_none_match: str = ""


@dataclass(frozen=True)
class EdgeResponse:
    """An answer, of the origin or to a viewer."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    """In lower case."""
    body: bytes = b""


@dataclass(frozen=True)
class _Kept:
    response: EdgeResponse
    since: float
    until: float


Origin = Callable[[str, str, str], EdgeResponse]
"""Answers for a distribution's ARN, a bucket and a key, as S3 does."""


@dataclass(frozen=True)
class Laptop:
    """What differs on a laptop: addresses that the stacks know by their names on AWS."""

    local: Callable[[str], str] = lambda text: text
    """A header's value with the addresses of this machine."""
    instead: Callable[[str, EdgeResponse], EdgeResponse] = lambda _, response: response
    """What is answered for a path in place of what the origin has."""


class Edge:
    """One edge location, with a cache of its own."""

    def __init__(
        self, origin: Origin, laptop: Laptop = Laptop(), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Serve what an origin has; ``clock`` is in seconds."""
        self._origin = origin
        self._laptop = laptop
        self._clock = clock
        self._cache: dict[tuple[str, str], _Kept] = {}

    def answer(self, distribution: Distribution, request: ViewerRequest) -> EdgeResponse:
        """Answer a request."""
        path = request.path if request.path != "/" else f"/{distribution.root_object}"
        behavior = distribution.behavior_of(path)
        found = self._fetched(distribution, behavior, path)
        instead = distribution.errors.get(found.status)
        if instead is not None and instead.path:
            page = self._fetched(distribution, distribution.behavior_of(instead.path), instead.path)
            if page.status == 200:
                told = {**page.headers, "x-cache": "Error from cloudfront"}
                found = replace(page, status=instead.status or found.status, headers=told)
        found = _compressed(self._laptop.instead(path, found), behavior, request)
        policy = [replace(header, value=self._laptop.local(header.value)) for header in behavior.headers]
        return _with_headers(_not_modified(found, request), policy)

    def _fetched(self, distribution: Distribution, behavior: Behavior, path: str) -> EdgeResponse:
        """From the cache, or from the origin."""
        now, key = self._clock(), (distribution.arn, path)
        kept = self._cache.get(key)
        if kept is not None and now < kept.until:
            hit = "Hit from cloudfront" if kept.response.status < 400 else "Error from cloudfront"
            told = {"x-cache": hit, "age": str(int(now - kept.since))}
            return replace(kept.response, headers={**kept.response.headers, **told})
        response = self._origin(distribution.arn, behavior.bucket, path.removeprefix("/"))
        self._cache[key] = _Kept(response, now, now + _kept_s(response, distribution, behavior))
        missed = "Miss from cloudfront" if response.status < 400 else "Error from cloudfront"
        return replace(response, headers={**response.headers, "x-cache": missed})


def _kept_s(response: EdgeResponse, distribution: Distribution, behavior: Behavior) -> float:
    """How long a response of the origin is kept."""
    policy, told = behavior.policy, response.headers.get("cache-control", "")
    if response.status >= 400:
        return distribution.errors[response.status].kept_s if response.status in distribution.errors else 10.0
    if _FORBIDDEN_TO_KEEP.search(told):
        return policy.min_s
    ages = dict(_MAX_AGE.findall(told))
    age = ages.get("s-maxage", ages.get("max-age"))
    return min(max(policy.default_s if age is None else float(age), policy.min_s), policy.max_s)


def _compressed(response: EdgeResponse, behavior: Behavior, request: ViewerRequest) -> EdgeResponse:
    kind = response.headers.get("content-type", "").partition(";")[0]
    may_be = behavior.compress and behavior.policy.compresses and "content-encoding" not in response.headers
    if not may_be or kind not in COMPRESSED_TYPES or len(response.body) not in COMPRESSED_BYTES:
        return response
    headers = {**response.headers, "vary": "Accept-Encoding"}
    if not request.accepts_gzip:
        return replace(response, headers=headers)
    if "etag" in headers:  # the bytes are others, the meaning is the same
        headers["etag"] = f"W/{headers['etag'].removeprefix('W/')}"
    return replace(
        response, headers={**headers, "content-encoding": "gzip"}, body=gzip.compress(response.body, mtime=0)
    )


def _not_modified(response: EdgeResponse, request: ViewerRequest) -> EdgeResponse:
    known = {tag.strip().removeprefix("W/") for tag in request.if_none_match.split(",")}
    if response.status != 200 or response.headers.get("etag", "").removeprefix("W/") not in known - {""}:
        return response
    left_out = ("content-type", "content-encoding", "content-length")
    return EdgeResponse(304, {name: value for name, value in response.headers.items() if name not in left_out})


def _with_headers(response: EdgeResponse, policy: Sequence[PolicyHeader]) -> EdgeResponse:
    ours = {header.name.lower(): header.value for header in policy if header.overrides}
    weak = {header.name.lower(): header.value for header in policy if not header.overrides}
    return replace(response, headers={**weak, **response.headers, **ours})
