"""Reads requests to a harness as strictly as AgentCore does, and makes of them what the harness asks its model."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from cicada_local import service_model
from cicada_local.agents.harness_store import DEFAULT_ENDPOINT, HarnessStore, HarnessVersion
from cicada_local.bedrock.catalogue import TextModel, find_model
from cicada_local.bedrock.errors import ModelNotFound, ValidationFailed
from cicada_local.bedrock.requests import ConverseRequest, read_converse

BUILTIN_TOOLS = ("shell", "file_operations")
"""Every session has them, unless ``allowedTools`` leaves them out."""
_SESSION, _ARN, _QUALIFIER = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id", "harnessArn", "qualifier"
_BUILTIN_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


class HarnessInvalid(ValidationFailed):
    """The request breaks the API's rules."""

    def response(self) -> web.Response:
        """With a reason, which AgentCore's have."""
        response = super().response()
        response.text = json.dumps({"message": str(self), "reason": "FieldValidationFailed"})
        return response


@dataclass(frozen=True)
class Invocation:
    """A valid request, with what the harness was deployed with where it overrides nothing."""

    harness_arn: str
    session_id: str
    actor_id: str
    messages: tuple[Mapping[str, Any], ...]
    system: tuple[Mapping[str, Any], ...]
    inline: tuple[Mapping[str, Any], ...]
    """Inline functions that are allowed, as Converse's tools."""
    builtin: tuple[str, ...]
    """Tools of the session's own that are allowed."""
    model_id: str
    model_max_tokens: int | None
    max_iterations: int
    max_tokens: int | None
    timeout_s: int

    @property
    def session(self) -> tuple[str, str, str]:
        """What its conversation is kept under."""
        return self.harness_arn, self.session_id, self.actor_id


class InvocationReader:
    """Reads InvokeHarness."""

    def __init__(self, store: HarnessStore) -> None:
        """``store``: the harnesses that can be invoked."""
        self._store = store
        self._shape = service_model.load("bedrock-agentcore").operation_model("InvokeHarness").input_shape

    async def read(self, request: web.Request) -> Invocation:
        """Read a request.

        Raises:
            HarnessInvalid: it breaks the service's model, or the rules on top.
            ModelNotFound: there is no such harness, or endpoint of it.
        """
        told = self._told(request, await request.read())
        harness = self._store.find(told[_ARN])
        version = None if harness is None else harness.version_of(told.get(_QUALIFIER, DEFAULT_ENDPOINT))
        if version is None:
            raise ModelNotFound(f"The harness or its endpoint was not found: {told[_ARN]}")
        return _invocation(told, version)

    def _told(self, request: web.Request, body: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(body or b"{}")
        except ValueError:
            asked = None
        if not isinstance(asked, dict):
            raise HarnessInvalid("Request body is not valid JSON")
        told = {**asked, **{name: request.query[name] for name in (_ARN, _QUALIFIER) if name in request.query}}
        if _SESSION in request.headers:
            told["runtimeSessionId"] = request.headers[_SESSION]
        problems = list(service_model.problems(self._shape, told))
        if problems:
            said = "; ".join(f"Value at '{one.path}' failed to satisfy constraint: {one.message}" for one in problems)
            raise HarnessInvalid(f"{len(problems)} validation error(s) detected: {said}")
        return {name: value for name, value in told.items() if value is not None}


def _invocation(told: Mapping[str, Any], version: HarnessVersion) -> Invocation:
    model = dict(told.get("model") or version.model).get("bedrockModelConfig")
    if model is None:
        raise HarnessInvalid("Only bedrockModelConfig is served here.")
    tools = told.get("tools") or version.tools
    others = sorted({tool["type"] for tool in tools} - {"inline_function"})
    if others or told.get("skills"):
        raise HarnessInvalid(f"Only inline functions are served here, and no skills: {', '.join(others)}")
    allowed = told.get("allowedTools") or version.allowed_tools
    for name in ("maxIterations", "maxTokens", "timeoutSeconds"):
        if told.get(name, 1) < 1:
            raise HarnessInvalid(f"Value at '/{name}' failed to satisfy constraint: Member must be at least 1")
    return Invocation(
        harness_arn=told["harnessArn"],
        session_id=told["runtimeSessionId"],
        actor_id=told.get("actorId", ""),
        messages=tuple(told["messages"]),
        system=tuple(told.get("systemPrompt") or version.system_prompt),
        inline=tuple(_spec(tool) for tool in tools if _allows(allowed, tool.get("name", ""))),
        builtin=tuple(name for name in BUILTIN_TOOLS if _allows(allowed, name, builtin=True)),
        model_id=model["modelId"],
        model_max_tokens=model.get("maxTokens"),
        max_iterations=told.get("maxIterations", version.max_iterations),
        max_tokens=told.get("maxTokens", version.max_tokens),
        timeout_s=told.get("timeoutSeconds", version.timeout_s),
    )


def _allows(patterns: Sequence[str], name: str, *, builtin: bool = False) -> bool:
    names = [name, f"@builtin/{name}", "@builtin"] if builtin else [name]
    return any(pattern == "*" or fnmatch.fnmatchcase(one, pattern) for pattern in patterns for one in names)


def _spec(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = (tool.get("config") or {}).get("inlineFunction")
    if not tool.get("name") or function is None:
        raise HarnessInvalid("An inline_function needs a name, and inlineFunction as its config.")
    schema = {"json": function["inputSchema"]}
    return {"toolSpec": {"name": tool["name"], "description": function["description"], "inputSchema": schema}}


def asked_of_model(invocation: Invocation, heard: Sequence[Mapping[str, Any]]) -> tuple[ConverseRequest, TextModel]:
    """What the harness asks its model.

    Args:
        invocation: the request.
        heard: the messages that the session has kept.

    Raises:
        AwsError: the model would refuse it.
    """
    model = find_model(invocation.model_id)
    if not isinstance(model, TextModel):
        raise ValidationFailed("This model does not converse.")
    builtin = [
        {"toolSpec": {"name": name, "description": "Of the session.", "inputSchema": {"json": _BUILTIN_SCHEMA}}}
        for name in invocation.builtin
    ]
    limits = [limit for limit in (invocation.model_max_tokens, invocation.max_tokens) if limit is not None]
    tools = [*invocation.inline, *builtin]
    body = {
        "system": list(invocation.system),
        "messages": [*heard, *invocation.messages],
        "inferenceConfig": {"maxTokens": min(limits)} if limits else {},
        **({"toolConfig": {"tools": tools}} if tools else {}),
    }
    return read_converse(json.dumps(body).encode(), model), model
