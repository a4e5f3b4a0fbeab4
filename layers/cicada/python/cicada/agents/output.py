"""What a tool tells the model, as JSON within its bound."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cicada.agents.ports import MAX_OUTPUT_CHARS

_LEAST_CHARS = 60
"""Texts are not cut shorter than this: then lists lose their ends first."""


def bounded(result: Mapping[str, Any], max_chars: int = MAX_OUTPUT_CHARS) -> str:
    """A result as JSON of at most ``max_chars`` characters.

    The longest texts are cut first, then the ends of lists; a result that was cut says ``"clipped": true``, so that the
    model does not take it for the whole.
    """
    text = _dump(result)
    if len(text) <= max_chars:
        return text
    limit, most = max_chars, max((len(found) for found in _lists(result)), default=0)
    while True:
        if limit > _LEAST_CHARS:
            limit = max(_LEAST_CHARS, limit * 3 // 4)
        elif most > 1:
            most = max(1, most // 2)
        else:
            return _dump({"clipped": True, "why": "the result is too long to be shown"})
        text = _dump({**_cut(result, limit, most or 1), "clipped": True})
        if len(text) <= max_chars:
            return text


def _dump(result: Mapping[str, Any]) -> str:
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))


def _lists(value: object) -> list[list[Any] | tuple[Any, ...]]:
    match value:
        case Mapping():
            return [found for part in value.values() for found in _lists(part)]
        case list() | tuple():
            return [value, *(found for part in value for found in _lists(part))]
        case _:
            return []


def _cut(value: Any, limit: int, most: int) -> Any:
    match value:
        case str():
            return value if len(value) <= limit else value[: limit - 1] + "…"
        case Mapping():
            return {key: _cut(part, limit, most) for key, part in value.items()}
        case list() | tuple():
            return [_cut(part, limit, most) for part in value[:most]]
        case _:
            return value
