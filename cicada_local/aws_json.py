"""Responses of services that speak AWS JSON 1.1."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from aiohttp import web


def json_response(document: Mapping[str, Any], *, status: int = 200) -> web.Response:
    """A response with a request id of its own."""
    return web.Response(
        status=status,
        text=json.dumps(document),
        content_type="application/x-amz-json-1.1",
        headers={"x-amzn-RequestId": str(uuid.uuid4())},
    )
