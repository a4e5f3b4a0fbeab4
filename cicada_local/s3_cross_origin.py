"""Which browsers' pages may use a bucket (CORS), as S3 decides it from the bucket's rules.

moto's own headers are dropped, since it gives them to every caller. Source: Amazon S3 User Guide, "Using cross-origin
resource sharing", "How does Amazon S3 evaluate the CORS configuration on a bucket?".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from cicada_local.places import ACCOUNT_ID


@dataclass(frozen=True)
class CorsRule:
    """One rule of a bucket."""

    origins: tuple[str, ...]
    methods: tuple[str, ...]
    headers: tuple[str, ...]
    max_age_s: str = ""

    def allows(self, origin: str, method: str, headers: Sequence[str] = ()) -> bool:
        """Whether a page of an origin may make such a request."""
        return (
            any(fnmatchcase(origin, one) for one in self.origins)
            and method in self.methods
            and all(any(fnmatchcase(name.lower(), one.lower()) for one in self.headers) for name in headers)
        )


def rules_of(bucket: str) -> tuple[CorsRule, ...]:
    """The rules of a bucket in moto; none if there is no such bucket."""
    from moto.s3.models import s3_backends

    found = s3_backends[ACCOUNT_ID]["aws"].buckets.get(bucket)
    return () if found is None else tuple(_rule(one) for one in found.cors)


def allowed(rules: Sequence[CorsRule], origin: str, method: str, headers: Sequence[str] = ()) -> CorsRule | None:
    """The first rule that allows a request."""
    return next((rule for rule in rules if rule.allows(origin, method, headers)), None)


def response_headers(rule: CorsRule, origin: str, headers: Sequence[str] = ()) -> dict[str, str]:
    """The headers of an answer that a page of the origin may read."""
    told = {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": ", ".join(rule.methods),
        "Access-Control-Allow-Credentials": "true",
        "Vary": "Origin, Access-Control-Request-Headers, Access-Control-Request-Method",
    }
    if headers:
        told["Access-Control-Allow-Headers"] = ", ".join(headers)
    if rule.max_age_s:
        told["Access-Control-Max-Age"] = rule.max_age_s
    return told


def _rule(of: Any) -> CorsRule:
    return CorsRule(
        origins=_texts(of.allowed_origins),
        methods=_texts(of.allowed_methods),
        headers=_texts(of.allowed_headers),
        max_age_s="" if of.max_age_seconds is None else str(of.max_age_seconds),
    )


def _texts(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(map(str, value))
