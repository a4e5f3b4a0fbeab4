"""A guardrail of Amazon Bedrock in the calls of a model: what is sent of it, and what its trace says.

The service checks a user's turn and the model's text. It checks neither tools' definitions, uses and results nor the
system prompt. Sources: Amazon Bedrock User Guide, "Include a guardrail with the Converse API" and "Use contextual
grounding check to filter hallucinations in responses".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cicada.errors import AnswerBlocked, GuardrailUnavailable
from cicada.models.failure import Failure
from cicada.models.ports import Prompt
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)

MAX_GROUNDING_CHARS = 100_000
"""Of the sources that an answer is checked against. With longer ones, an answer is not checked for its grounding."""
MAX_QUERY_CHARS = 1_000
"""Likewise of the question."""
INTERVENED = "guardrail_intervened"
"""The stop reason of an answer that was blocked or, by some models, masked."""
TRIES = 2
"""With ``on_failure`` open, a call continues unchecked after this many failures of the guardrail."""


class GuardrailWatch:
    """Counts the guardrail's failures in one worker, which runs one attempt at a time."""

    def __init__(self, on_failure: Callable[[], None] = lambda: None) -> None:
        """``on_failure`` is called for every failed check, from any thread, and raises nothing."""
        self._on_failure = on_failure
        self._unchecked = False

    def failed(self, error: GuardrailUnavailable, *, goes_on: bool) -> None:
        """A check failed; ``goes_on`` says whether its text is used unchecked."""
        self._unchecked = self._unchecked or goes_on
        self._on_failure()
        log_event(
            logger,
            "guardrail",
            "the guardrail failed",
            level=logging.WARNING,
            outcome="unchecked" if goes_on else "failed",
            why=str(error),
        )

    def take_unchecked(self) -> bool:
        """Whether a text was used unchecked since the last look."""
        found, self._unchecked = self._unchecked, False
        return found


@dataclass(frozen=True)
class Guardrail:
    """A deployment's guardrail."""

    id: str
    """Its id or ARN."""
    version: str
    stream: Literal["sync", "async"] = "sync"
    """Whether text is shown only after its check."""
    grounding: bool = False
    """Whether answers are checked against their passages."""
    on_failure: Literal["closed", "open"] = "closed"
    """Whether a text that could not be checked is used."""
    message: str = ""
    """What it says in place of a blocked text, where that is known."""
    watch: GuardrailWatch = field(default_factory=GuardrailWatch, compare=False)

    def grounds(self, prompt: Prompt) -> bool:
        """Whether an answer to the prompt is checked against the prompt's sources."""
        return (
            self.grounding
            and 0 < len(prompt.sources) <= MAX_GROUNDING_CHARS
            and 0 < len(prompt.checked) <= MAX_QUERY_CHARS
        )


class GuardrailUse:
    """The guardrail in one use of a model, retries included; does nothing without one."""

    def __init__(self, guardrail: Guardrail | None) -> None:
        self._guardrail = guardrail
        self._failures = 0
        self._trace: Mapping[str, Any] = {}
        self._said: list[str] = []

    def content(self, prompt: Prompt) -> list[dict[str, Any]]:
        """The user's turn: what people wrote is checked, and the passages are what the answer is checked against.

        If the prompt does not say what people wrote, all of the turn is checked.
        """
        guardrail = self._guardrail
        if guardrail is None or not prompt.checked:
            return [{"text": prompt.user}]
        grounds = guardrail.grounds(prompt)
        marks = {prompt.checked: ["query", "guard_content"] if grounds else ["guard_content"]}
        if grounds:
            marks[prompt.sources] = ["grounding_source"]
        return [
            {"guardContent": {"text": {"text": text, "qualifiers": marks[text]}}} if text in marks else {"text": text}
            for text in prompt.parts(marks)
            if text.strip()  # the service refuses a blank block
        ]

    def apply(self, request: dict[str, Any], *, streamed: bool) -> dict[str, Any]:
        """The parameters of Converse, or of ConverseStream where it is ``streamed``, with the guardrail."""
        guardrail = self._guardrail
        if guardrail is None:
            return request if not self._failures else {**request, "messages": _unmarked(request["messages"])}
        self._said.clear()
        self._trace = {}
        config = {
            "guardrailIdentifier": guardrail.id,
            "guardrailVersion": guardrail.version,
            "trace": "enabled",
            **({"streamProcessingMode": guardrail.stream} if streamed else {}),
        }
        return {**request, "guardrailConfig": config}

    def said(self, text: str) -> None:
        """Take a piece of the answer, or of the message in its place."""
        if self._guardrail is not None:
            self._said.append(text)

    def traced(self, metadata: Mapping[str, Any]) -> None:
        """Take the trace of a whole response, or of a stream's ``metadata``, if it has one."""
        self._trace = (metadata.get("trace") or {}).get("guardrail") or self._trace

    def verdict(self, reason: str) -> AnswerBlocked | None:
        """The error of an answer that stopped because the guardrail intervened; None if it only masked something."""
        on_input = found_by(self._trace.get("inputAssessment", {}).values())
        outputs = self._trace.get("outputAssessments", {}).values()
        found = on_input.with_(found_by(each for one in outputs for each in one))
        log_intervention(found)
        if found.masked and not found.blocked:
            return None
        # What follows a blocked question is the guardrail's message; before one for an answer, the answer began.
        said = "".join(self._said) if on_input.blocked else ""
        message = (self._guardrail.message if self._guardrail else "") or said
        return AnswerBlocked(reason, told=message, by_guardrail=True)

    def read(self, failure: Failure | None) -> Failure | None:
        """What a failed call means. Only the message distinguishes a guardrail's failure from the model's."""
        if self._guardrail is None or failure is None or "guardrail" not in str(failure.error).lower():
            return failure
        return replace(failure, error=GuardrailUnavailable(str(failure.error)))

    def gives_way(self, failure: Failure) -> bool:
        """Take note of a failure; true if the next try does without the guardrail."""
        guardrail, error = self._guardrail, failure.error
        if guardrail is None or not isinstance(error, GuardrailUnavailable):
            return False
        self._failures += 1
        goes_on = guardrail.on_failure == "open" and (not failure.retry or self._failures >= TRIES)
        guardrail.watch.failed(error, goes_on=goes_on)
        if goes_on:
            self._guardrail = None
        return goes_on


@dataclass(frozen=True)
class Intervention:
    """The kinds of policies that intervened; never the text."""

    blocked: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()

    def with_(self, other: Intervention) -> Intervention:
        """Both together."""
        return Intervention(_once(self.blocked + other.blocked), _once(self.masked + other.masked))


def _once(kinds: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kinds))


def log_intervention(found: Intervention) -> None:
    """Log the kinds of policies that intervened, if any did, in the request trace."""
    if found.blocked or found.masked:
        outcome = "blocked" if found.blocked else "masked"
        log_event(
            logger,
            "guardrail",
            "the guardrail intervened",
            level=logging.WARNING,
            outcome=outcome,
            blocked=list(found.blocked),
            masked=list(found.masked),
        )


def found_by(assessments: Iterable[Mapping[str, Any]]) -> Intervention:
    """What assessments of a guardrail say."""
    kinds = [found for assessment in assessments for found in _kinds(assessment)]
    blocked = _once([kind for kind, action in kinds if action == "BLOCKED"])
    return Intervention(blocked, _once([kind for kind, action in kinds if action == "ANONYMIZED"]))


_LISTS = (
    ("topicPolicy", "topics", "topic"),
    ("contentPolicy", "filters", "content"),
    ("wordPolicy", "customWords", "word"),
    ("wordPolicy", "managedWordLists", "profanity"),
    ("sensitiveInformationPolicy", "piiEntities", "personal_data"),
    ("sensitiveInformationPolicy", "regexes", "pattern"),
    ("contextualGroundingPolicy", "filters", "grounding"),
)
_TYPES = {"PROMPT_ATTACK": "prompt_attack", "RELEVANCE": "relevance"}
"""Filters that are named for what they find."""


def _kinds(assessment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each finding's kind and action."""
    for policy, members, kind in _LISTS:
        for found in (assessment.get(policy) or {}).get(members) or ():
            yield _TYPES.get(str(found.get("type")), kind), str(found.get("action"))


def _unmarked(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Turns whose blocks are not marked for a guardrail."""
    return [
        {
            **message,
            "content": [
                {"text": block["guardContent"]["text"]["text"]} if "guardContent" in block else block
                for block in message["content"]
            ],
        }
        for message in messages
    ]
