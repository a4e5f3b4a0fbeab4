"""A guardrail in calls of Converse and ConverseStream, and ApplyGuardrail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from cicada_local.bedrock.errors import AwsError, ModelNotFound, ValidationFailed
from cicada_local.bedrock.guardrails import UNIT_CHARS, Findings, GuardedText, Guardrail, GuardrailStore
from cicada_local.bedrock.replies import Reply
from cicada_local.bedrock.requests import GuardConfig, read_guarded, read_object
from cicada_local.bedrock.tokens import split_pieces
from cicada_local.faults import Faults

MAX_UNITS = 25
"""Text units of one call of ApplyGuardrail: the smallest quota."""
CHUNK_CHARS = 1_000
"""A synchronous stream holds as much back for a check."""
INTERVENED = "guardrail_intervened"
_NO_USE = dict.fromkeys(
    (
        "topicPolicyUnits",
        "contentPolicyUnits",
        "wordPolicyUnits",
        "sensitiveInformationPolicyUnits",
        "sensitiveInformationPolicyFreeUnits",
        "contextualGroundingPolicyUnits",
    ),
    0,
)
_UNITS = {
    "topicPolicyConfig": "topicPolicyUnits",
    "contentPolicyConfig": "contentPolicyUnits",
    "wordPolicyConfig": "wordPolicyUnits",
    "sensitiveInformationPolicyConfig": "sensitiveInformationPolicyUnits",
    "contextualGroundingPolicyConfig": "contextualGroundingPolicyUnits",
}


def strike(faults: Faults) -> None:
    """Let the guardrail's faults strike. Raises AwsError."""
    if faults.take("guardrail.throttle") is not None:
        message = "Your request to the guardrail exceeded the allowed text units per second. Try again later."
        raise AwsError(message, code="ThrottlingException", status=429)
    if faults.take("guardrail.down") is not None:
        message = "The guardrail service is temporarily unavailable. Try again later."
        raise AwsError(message, code="ServiceUnavailableException", status=503)


@dataclass
class Guarding:
    """One call of a model with a guardrail."""

    guardrail: Guardrail
    config: GuardConfig
    _trace: dict[str, Any]

    @classmethod
    def of(cls, config: GuardConfig | None, store: GuardrailStore, faults: Faults) -> Guarding | None:
        """The call's guardrail, if it has one. Raises AwsError."""
        if config is None:
            return None
        strike(faults)
        guardrail = store.find(config.identifier, config.version)
        if guardrail is None:
            raise ValidationFailed("The guardrail identifier or version provided in the request does not exist.")
        return cls(guardrail, config, {})

    def blocked_input(self) -> Reply | None:
        """What is said in place of the model, where the input is blocked."""
        found = self.guardrail.find(self.config.texts, "INPUT")
        self._trace["inputAssessment"] = {self.guardrail.id: _measured(found)}
        if not found.blocked:
            return None
        usage = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
        return self._said(self.guardrail.blocked_message("INPUT"), Reply((), INTERVENED, usage))

    def masked(self, user: str) -> str:
        """The user's words as the model gets them."""
        found = self.guardrail.find(self.config.texts, "INPUT")
        for before, after in zip((one.text for one in self.config.texts if one.guarded), found.masked, strict=True):
            user = user.replace(before, after)
        return user

    def guarded(self, reply: Reply, fault: Mapping[str, Any] | None) -> Reply:
        """A reply as the caller gets it. Tools' uses are not looked at.

        Args:
            reply: the model's.
            fault: intervene ``after`` so many pieces, whatever they say.
        """
        if fault is not None:
            topic = {"name": "Fault", "type": "DENY", "action": "BLOCKED", "detected": True}
            self._outputs([{"topicPolicy": {"topics": [topic]}}])
            return self._stopped(reply, reply.pieces[: int(fault.get("after", 0))])
        context = [one for one in self.config.texts if {"grounding_source", "query"} & set(one.qualifiers)]
        context = [replace(one, qualifiers=tuple(q for q in one.qualifiers if q != "guard_content")) for one in context]
        sent: list[str] = []
        assessments: list[Mapping[str, Any]] = []
        masked = False
        for chunk in _chunks(reply.pieces):
            text = "".join(chunk)
            found = self.guardrail.find([*context, GuardedText(text, ("guard_content",))], "OUTPUT")
            assessments.append(_measured(found))
            if found.blocked:
                self._outputs(assessments)
                return self._stopped(reply, [*sent, *(chunk if self.config.mode == "async" else ())])
            if found.changed and self.config.mode == "sync":
                masked = True
                sent += split_pieces(found.masked[-1])
            else:
                sent += chunk
        self._outputs(assessments)
        reason = INTERVENED if masked else reply.stop_reason
        return replace(reply, pieces=tuple(sent), stop_reason=reason, trace=self._told())

    def _stopped(self, reply: Reply, shown: Sequence[str]) -> Reply:
        said = replace(reply, pieces=tuple(shown), stop_reason=INTERVENED, tool_uses=())
        return self._said(self.guardrail.blocked_message("OUTPUT"), said)

    def _said(self, message: str, reply: Reply) -> Reply:
        return replace(reply, pieces=(*reply.pieces, *split_pieces(message)), trace=self._told())

    def _outputs(self, assessments: Sequence[Mapping[str, Any]]) -> None:
        self._trace["outputAssessments"] = {self.guardrail.id: list(assessments)}

    def _told(self) -> Mapping[str, Any] | None:
        return {"guardrail": dict(self._trace)} if self.config.traced else None


def _chunks(pieces: Sequence[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    for piece in pieces:
        chunk.append(piece)
        if sum(map(len, chunk)) >= CHUNK_CHARS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _measured(found: Findings) -> Mapping[str, Any]:
    metrics = {"guardrailProcessingLatency": 1, "usage": _NO_USE}
    return {**found.assessment, "invocationMetrics": metrics}


class ApplyGuardrail:
    """The operation."""

    def __init__(self, store: GuardrailStore, faults: Faults) -> None:
        self._store = store
        self._faults = faults

    async def apply(self, request: web.Request) -> web.StreamResponse:
        """POST /guardrail/{guardrailIdentifier}/version/{guardrailVersion}/apply."""
        body = read_object(await request.read())
        texts, source = _asked(body)
        strike(self._faults)
        guardrail = self._store.find(request.match_info["identifier"], request.match_info["version"])
        if guardrail is None:
            raise ModelNotFound("The guardrail identifier or version provided in the request does not exist.")
        units = sum(-(-len(one.text) // UNIT_CHARS) for one in texts)
        if units > MAX_UNITS:
            message = f"Input text size ({units} text units) exceeds the maximum allowed ({MAX_UNITS} text units)."
            raise AwsError(message, code="ThrottlingException", status=429)
        found = guardrail.find(texts, source)
        outputs = [guardrail.blocked_message(source)] if found.blocked else found.masked if found.changed else ()
        used = {_UNITS[name]: units for name in _UNITS if name in guardrail.config}
        return web.json_response(
            {
                "action": "GUARDRAIL_INTERVENED" if outputs else "NONE",
                "outputs": [{"text": text} for text in outputs],
                "assessments": [_measured(found)],
                "usage": {**_NO_USE, **used},
            }
        )


def _asked(body: Mapping[str, Any]) -> tuple[list[GuardedText], str]:
    source, content = body.get("source"), body.get("content")
    if source not in ("INPUT", "OUTPUT"):
        raise ValidationFailed(
            f"1 validation error detected: Value '{source}' at 'source' failed to satisfy constraint: Member must "
            "satisfy enum value set: [INPUT, OUTPUT]"
        )
    if not isinstance(content, list) or not content:
        raise ValidationFailed("1 validation error detected: Value at 'content' failed to satisfy constraint: a list")
    return [read_guarded(block) for block in content], source
