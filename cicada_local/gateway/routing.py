"""Which route a message takes.

Source: API Gateway developer guide, "Route selection expressions" and "Invoke your routes".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from cicada_local.gateway.config import RouteConfig

_FIELD = re.compile(r"\$\{request\.body\.([\w.-]+)\}|\$request\.body\.([\w.-]+)")
_LIFECYCLE = ("$connect", "$disconnect")


def select_route(routes: Mapping[str, RouteConfig], expression: str, body: str | bytes) -> str | None:
    """The key of the route that a message takes; None when it takes none.

    A body that is no JSON, or lacks a field of the expression, takes ``$default``. No message can take ``$connect`` or
    ``$disconnect``.
    """
    key = _evaluate(expression, body)
    if key in routes and key not in _LIFECYCLE:
        return key
    return "$default" if "$default" in routes else None


def _evaluate(expression: str, body: str | bytes) -> str | None:
    if isinstance(body, bytes):
        return None
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    parts: list[str] = []
    end = 0
    for field in _FIELD.finditer(expression):
        value = document
        for name in (field[1] or field[2]).split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is None or isinstance(value, dict | list):
            return None
        parts += [expression[end : field.start()], value if isinstance(value, str) else json.dumps(value)]
        end = field.end()
    return "".join([*parts, expression[end:]])
