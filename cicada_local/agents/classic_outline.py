"""Reads what a parameter's description says of the JSON in it, as a model would.

``As JSON: [{"name": string, "cites"?: [integer]}]`` becomes a schema again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cicada_local.agents.turns import BrainTool

_SAYS_SO = re.compile(r" As JSON: (?P<outline>.+)$", re.DOTALL)
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[a-z]+|[\[\]{}:,|?])')
_TYPES = frozenset({"string", "integer", "number", "boolean"})


def as_read(tool: BrainTool) -> BrainTool:
    """A tool whose parameters are what their descriptions say."""
    properties = tool.schema.get("properties", {})
    read = {name: _property(schema) for name, schema in properties.items()}
    return BrainTool(tool.name, tool.description, {**tool.schema, "properties": read})


def _property(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    told = str(schema.get("description", ""))
    found = _SAYS_SO.search(told)
    if found is None:
        return schema
    shape = _Reader(_TOKEN.findall(found["outline"])).value()
    return {**shape, "description": told[: found.start()]}


class _Reader:
    """Reads an outline's tokens."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0

    def value(self) -> dict[str, Any]:
        """One value, or several with bars between them."""
        options = [self._one()]
        while self._take("|"):
            options.append(self._one())
        if len(options) == 1:
            return options[0]
        if all("const" in option for option in options):
            return {"enum": [option["const"] for option in options]}
        return {"anyOf": options}

    def _one(self) -> dict[str, Any]:
        if self._take("["):
            items = self.value()
            self._take("]")
            return {"type": "array", "items": items}
        if self._take("{"):
            return self._object()
        word = self._word()
        if word.startswith('"'):
            return {"const": word[1:-1]}
        return {"type": word} if word in _TYPES else {}

    def _object(self) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        required = []
        while not self._take("}") and self._next < len(self._tokens):
            name = self._word()[1:-1]
            if not self._take("?"):
                required.append(name)
            self._take(":")
            properties[name] = self.value()
            self._take(",")
        return {"type": "object", "properties": properties, "required": required}

    def _take(self, token: str) -> bool:
        if self._next < len(self._tokens) and self._tokens[self._next] == token:
            self._next += 1
            return True
        return False

    def _word(self) -> str:
        if self._next >= len(self._tokens):
            return ""
        self._next += 1
        return self._tokens[self._next - 1]
