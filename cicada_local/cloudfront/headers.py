"""Response headers policies, as ``AWS::CloudFront::ResponseHeadersPolicy`` declares them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SECURITY_HEADERS = frozenset(
    {
        "content-security-policy",
        "referrer-policy",
        "strict-transport-security",
        "x-content-type-options",
        "x-frame-options",
        "x-xss-protection",
    }
)
"""CloudFront takes these by properties of their own, and refuses them as custom headers."""


@dataclass(frozen=True)
class PolicyHeader:
    """One header of a policy."""

    name: str
    value: str
    overrides: bool
    """Whether it takes the place of the origin's header of that name."""


def read_headers(config: Mapping[str, Any]) -> tuple[PolicyHeader, ...]:
    """The headers of a policy.

    Raises:
        ValueError: CloudFront refuses it, or it has a part that is not simulated.
    """
    unknown = config.keys() - {"Name", "Comment", "SecurityHeadersConfig", "CustomHeadersConfig"}
    if unknown:
        raise ValueError(f"a response headers policy with {', '.join(sorted(unknown))} is not simulated")
    custom = config.get("CustomHeadersConfig", {}).get("Items", [])
    for item in custom:
        if item["Header"].lower() in SECURITY_HEADERS:
            raise ValueError(
                f"The parameter CustomHeaders contains {item['Header']} that is a security header and cannot be set as "
                "custom header."
            )
    return (
        *_security(config.get("SecurityHeadersConfig", {})),
        *(PolicyHeader(item["Header"], item["Value"], _true(item["Override"])) for item in custom),
    )


def _security(config: Mapping[str, Any]) -> list[PolicyHeader]:
    unknown = config.keys() - _WRITTEN.keys()
    if unknown:
        raise ValueError(f"security headers {', '.join(sorted(unknown))} are not simulated")
    return [
        PolicyHeader(name, write(config[part]), _true(config[part]["Override"]))
        for part, (name, write) in _WRITTEN.items()
        if part in config
    ]


def _transport(part: Mapping[str, Any]) -> str:
    flags = (("IncludeSubdomains", "includeSubDomains"), ("Preload", "preload"))
    return "; ".join(
        [f"max-age={part['AccessControlMaxAgeSec']}", *(word for name, word in flags if _true(part.get(name)))]
    )


def _true(value: Any) -> bool:
    return str(value).lower() == "true"


_WRITTEN: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "ContentSecurityPolicy": ("Content-Security-Policy", lambda part: str(part["ContentSecurityPolicy"])),
    "ContentTypeOptions": ("X-Content-Type-Options", lambda _: "nosniff"),
    "FrameOptions": ("X-Frame-Options", lambda part: str(part["FrameOption"])),
    "ReferrerPolicy": ("Referrer-Policy", lambda part: str(part["ReferrerPolicy"])),
    "StrictTransportSecurity": ("Strict-Transport-Security", _transport),
}
