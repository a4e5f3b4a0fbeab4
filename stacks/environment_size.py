"""Whether the functions' environment variables fit into what Lambda takes, before anything is deployed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from stacks.settings import ContextInvalid

LIMIT_BYTES = 4096
"""Of a function's variables together, written as JSON. Source: AWS Lambda Developer Guide, "Lambda quotas"."""
UNKNOWN_BYTES = 128
"""Counted for each name or ARN that exists only once it is deployed."""

GROWING = {
    "ACCESS": "access.collections",
    "ALLOWED_ORIGINS": "auth.allowedOrigins",
    "LOADING": "ingest.collections",
    "MODEL_ENDPOINTS": "models.endpoints",
    "STRATEGY_MODEL_IDS": "models.perStrategy",
    "USAGE_LIMITS": "usageLimits",
}
"""The variables whose length the deployer decides, and the settings that do."""

_KNOWN_BYTES = {"AWS::AccountId": 12, "AWS::Partition": 10, "AWS::Region": 14, "AWS::URLSuffix": 16}


def check_environments(templates: Iterable[Mapping[str, Any]]) -> None:
    """Make sure that every function's variables fit.

    Args:
        templates: the stacks'.

    Raises:
        ContextInvalid: naming the setting that outgrew them.
    """
    for template in templates:
        for logical_id, resource in template.get("Resources", {}).items():
            if resource["Type"] == "AWS::Lambda::Function":
                variables = resource["Properties"].get("Environment", {}).get("Variables", {})
                _check(resource.get("Metadata", {}).get("aws:cdk:path", logical_id), variables)


def _check(function: str, variables: Mapping[str, Any]) -> None:
    sizes = {name: _size(value) for name, value in variables.items()}
    total = sum(len(json.dumps(name)) + size + len(":,") for name, size in sizes.items()) + len("{}") - len(",")
    if total <= LIMIT_BYTES:
        return
    grown = max(sizes, key=lambda name: (name in GROWING, sizes[name]))
    raise ContextInvalid(
        f"{GROWING.get(grown, grown)}: too long. The function {function} would get {total:,} bytes of environment "
        f"variables, {sizes[grown]:,} of them for this, and Lambda takes {LIMIT_BYTES:,}"
    )


def _size(value: Any) -> int:
    """The bytes of a value in JSON, its quotes among them."""
    return _deployed(value) + len('""')


def _deployed(value: Any) -> int:
    if isinstance(value, str):
        return len(json.dumps(value, ensure_ascii=False).encode()) - len('""')
    match value:
        case {"Fn::Join": [separator, parts]}:
            return sum(map(_deployed, parts)) + len(separator) * max(len(parts) - 1, 0)
        case {"Ref": name}:
            return _KNOWN_BYTES.get(name, UNKNOWN_BYTES)
    return UNKNOWN_BYTES
