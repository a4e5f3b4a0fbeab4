"""``AWS::Lambda::Url``, and what :mod:`cicada_local.functions.urls` is told of those that are deployed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from cicada_local.cloudformation.base import Declaration, Resource, define, forgetting
from cicada_local.functions.urls import FunctionUrl

FUNCTION_URLS: dict[str, FunctionUrl] = {}
"""The deployed ones, by their ids."""
_ID_CHARS = 32


def deployed() -> Iterable[FunctionUrl]:
    """Those that there are now."""
    return list(FUNCTION_URLS.values())


def _create(declaration: Declaration) -> Resource:
    named = f"{declaration.stack_name}/{declaration.logical_id}"
    url_id = hashlib.sha256(named.encode()).hexdigest()[:_ID_CHARS]  # the same at every start
    domain = f"{url_id}.lambda-url.{declaration.region_name}.on.aws"

    def replace(properties: dict[str, Any]) -> None:
        FUNCTION_URLS[url_id] = _checked(url_id, domain, properties)

    replace(declaration.properties)
    function_arn = FUNCTION_URLS[url_id].function_arn
    return Resource(
        function_arn,
        {"FunctionArn": function_arn, "FunctionUrl": f"https://{domain}/"},
        replace=replace,
        remove=forgetting(FUNCTION_URLS, url_id),
    )


def _checked(url_id: str, domain: str, properties: dict[str, Any]) -> FunctionUrl:
    """Refuse what Lambda refuses. Raises ValueError."""
    auth_type, mode = properties.get("AuthType"), properties.get("InvokeMode", "BUFFERED")
    if auth_type not in ("NONE", "AWS_IAM"):
        raise ValueError(f"AuthType: {auth_type!r} is not one of NONE and AWS_IAM")
    if mode not in ("BUFFERED", "RESPONSE_STREAM"):
        raise ValueError(f"InvokeMode: {mode!r} is not one of BUFFERED and RESPONSE_STREAM")
    cors = properties.get("Cors", {})
    for origin in cors.get("AllowOrigins", ()):
        if origin != "*" and (not urlsplit(origin).scheme or urlsplit(origin).path):
            raise ValueError(f"Cors.AllowOrigins: {origin!r} is not an origin")
    return FunctionUrl(url_id, domain, properties["TargetFunctionArn"], auth_type, mode, cors)


def _update(url: Resource, declaration: Declaration) -> Resource:
    url.replace(declaration.properties)
    return url


define("AWS::Lambda::Url", create=_create, update=_update, attributes=("FunctionArn", "FunctionUrl"))
