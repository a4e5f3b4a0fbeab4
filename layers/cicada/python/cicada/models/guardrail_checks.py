"""ApplyGuardrail: a guardrail of Amazon Bedrock for texts that no call of Converse carries.

Source: Amazon Bedrock User Guide, "Use the ApplyGuardrail API in your application".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, Literal, Unpack

from cicada.errors import AnswerBlocked, GuardrailUnavailable, ModelError
from cicada.models.bedrock import read_failure
from cicada.models.failure import Failure
from cicada.models.guardrail import INTERVENED, Guardrail, found_by, log_intervention
from cicada.models.ports import (
    CallScope,
    Filled,
    Finished,
    Form,
    Prompt,
    StructuredModel,
    TextDelta,
    TextModel,
    Usage,
)
from cicada.models.retries import Pace, Pacing
from cicada.models.stopping import track_connections
from cicada.models.unary_calls import UnaryCalls

UNIT_CHARS = 1_000
"""A text unit, by which checks are charged and bounded."""
MAX_CALL_CHARS = 25 * UNIT_CHARS
"""Of one call: the service's smallest quota of text units."""
FIRST_PIECE_CHARS = 200
"""An answer's first checked piece is short, so that it is shown early."""
MAX_CHECK_S = 5.0
"""A check that takes longer, its retries included, has failed."""
_SENTENCE_END = re.compile(r"[.!?…]['\"”’)\]]*\s+|[。！？]+|\n+")
_SPACE = re.compile(r"\s+")

Source = Literal["INPUT", "OUTPUT"]


class _Unreserved:
    """A call scope's stop signal without its budget: a check is not a model call."""

    def __init__(self, call_scope: CallScope) -> None:
        self._call_scope = call_scope

    def call(self) -> None:
        """See the port."""

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """See the port."""
        return self._call_scope.on_stop(wake)


class GuardrailChecks:
    """Checks texts. A text that only has personal data masked comes back changed."""

    def __init__(self, client: Any, guardrail: Guardrail, **pacing: Unpack[Pacing]) -> None:
        """``client`` is configured by :func:`cicada.models.bedrock.bedrock_client_config`."""
        track_connections(client)
        self._client = client
        self.guardrail = guardrail
        self._pace = Pace(**pacing)
        self.clock = self._pace.clock

    def check(
        self,
        text: str,
        source: Source,
        *,
        call_scope: CallScope,
        time_left_s: float = MAX_CHECK_S,
        prompt: Prompt | None = None,
    ) -> str:
        """Check a text; an answer against its prompt's sources, where that is asked for.

        Raises:
            AnswerBlocked: the text is blocked.
            GuardrailUnavailable: it could not be checked, and may not be used unchecked.
            Stopped: the call scope's stop.
        """
        if not text.strip():
            return text
        deadline_s = self.clock() + min(MAX_CHECK_S, time_left_s)
        context = self._context(text, prompt)
        try:
            return "".join(
                self._part(part, source, context, call_scope, deadline_s) if part.strip() else part
                for part in _parts(text)
            )
        except ModelError as error:
            if isinstance(error, AnswerBlocked):
                raise
            failed = GuardrailUnavailable(str(error))
            goes_on = self.guardrail.on_failure == "open"
            self.guardrail.watch.failed(failed, goes_on=goes_on)
            if goes_on:
                return text
            raise failed from error

    def _context(self, text: str, prompt: Prompt | None) -> list[dict[str, Any]]:
        """What an answer is checked against."""
        if prompt is None or not self.guardrail.grounds(prompt):
            return []
        if len(prompt.sources) + len(prompt.checked) + min(len(text), UNIT_CHARS) > MAX_CALL_CHARS:
            return []
        return [_block(prompt.sources, "grounding_source"), _block(prompt.checked, "query")]

    def _part(
        self, text: str, source: Source, context: list[dict[str, Any]], call_scope: CallScope, deadline_s: float
    ) -> str:
        content = [*context, _block(text, "guard_content") if context else _block(text)]

        def call() -> Mapping[str, Any]:
            response: Mapping[str, Any] = self._client.apply_guardrail(
                guardrailIdentifier=self.guardrail.id,
                guardrailVersion=self.guardrail.version,
                source=source,
                content=content,
            )
            return response

        with UnaryCalls(_Unreserved(call_scope), deadline_s, self._pace, read_failure=_read_failure) as calls:
            response = calls.make(call)
        return self._read(response, text)

    def _read(self, response: Mapping[str, Any], text: str) -> str:
        if "action" not in response:  # botocore gives a body that broke off as an empty response
            raise GuardrailUnavailable("the guardrail's response was cut off")
        if response["action"] != INTERVENED.upper():
            return text
        found = found_by(response.get("assessments") or ())
        log_intervention(found)
        outputs = [str(one.get("text", "")) for one in response.get("outputs") or ()]
        if found.masked and not found.blocked and outputs:
            return outputs[-1]
        told = self.guardrail.message or "".join(outputs[:1])
        raise AnswerBlocked(INTERVENED, told=told, by_guardrail=True)


def _read_failure(error: Exception) -> Failure | None:
    failure = read_failure(error)
    return failure and replace(failure, error=GuardrailUnavailable(str(failure.error)))


def _block(text: str, *qualifiers: str) -> dict[str, Any]:
    return {"text": {"text": text, **({"qualifiers": list(qualifiers)} if qualifiers else {})}}


def _parts(text: str) -> list[str]:
    """A text in parts that one call takes, divided between sentences or words."""
    parts = []
    while len(text) > MAX_CALL_CHARS:
        cut = cut_before(text, MAX_CALL_CHARS)
        parts.append(text[:cut])
        text = text[cut:]
    return [*parts, text]


def cut_before(text: str, most: int) -> int:
    """Where to cut a text of more than ``most`` characters: after its last sentence before that, else its last word."""
    for ends in (_SENTENCE_END, _SPACE):
        places = [found.end() for found in ends.finditer(text, 0, most)]
        if places:
            return places[-1]
    return most


class PieceChecker:
    """Checks an answer piece by piece while it is written, each at most :data:`UNIT_CHARS` long.

    Pieces end with sentences, so that a checked text is not divided where it matters. Streamed synchronously, text is
    passed on after its check; asynchronously before it, and is then never masked.
    """

    def __init__(self, check: Callable[[str], str], *, waits: bool) -> None:
        """``check`` returns the text to show, or raises; ``waits`` says whether text waits for its check."""
        self._check = check
        self._waits = waits
        self._text = ""
        self._most = FIRST_PIECE_CHARS

    def feed(self, text: str) -> Generator[TextDelta, None, None]:
        """Take more of the answer; yield what may be shown."""
        if not self._waits and text:
            yield TextDelta(text)
        self._text += text
        while len(self._text) > self._most:
            cut = cut_before(self._text, self._most)
            piece, self._text = self._text[:cut], self._text[cut:]
            self._most = UNIT_CHARS
            yield from self._checked(piece)

    def end(self) -> Generator[TextDelta, None, None]:
        """The answer is whole; yield the rest of what may be shown."""
        piece, self._text = self._text, ""
        yield from self._checked(piece)

    def _checked(self, piece: str) -> Generator[TextDelta, None, None]:
        shown = self._check(piece) if piece else ""
        if self._waits and shown:
            yield TextDelta(shown)


def _masked(prompt: Prompt, checked: str) -> Prompt:
    """A prompt whose checked part was changed by its check."""
    if checked == (prompt.checked or prompt.user):
        return prompt
    if not prompt.checked:
        return replace(prompt, user=checked)
    parts = [checked if part == prompt.checked else part for part in prompt.parts((prompt.checked,))]
    return replace(prompt, user="".join(parts), checked=checked)


class CheckedTextModel:
    """A :class:`cicada.models.ports.TextModel` of a service that knows no guardrail."""

    def __init__(self, model: TextModel, checks: GuardrailChecks) -> None:
        self._model = model
        self._checks = checks
        self.model_id = model.model_id
        self.max_tokens = model.max_tokens

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        """See the port. Raises AnswerBlocked and GuardrailUnavailable too."""
        checks, deadline_s = self._checks, self._checks.clock() + time_budget_s

        def check(text: str, source: Source = "OUTPUT") -> str:
            left_s = deadline_s - checks.clock()
            against = prompt if source == "OUTPUT" else None
            return checks.check(text, source, call_scope=call_scope, time_left_s=left_s, prompt=against)

        sent = _masked(prompt, check(prompt.checked or prompt.user, "INPUT"))
        pieces = PieceChecker(check, waits=checks.guardrail.stream == "sync")
        usage = Usage(reported=False)
        stream = self._model.stream(sent, time_budget_s=deadline_s - checks.clock(), call_scope=call_scope)
        with closing(stream) as steps:
            try:
                for step in steps:
                    if isinstance(step, TextDelta):
                        yield from pieces.feed(step.text)
                    else:
                        usage = step.usage
                        yield from pieces.end()
                        yield step
            except (AnswerBlocked, GuardrailUnavailable) as error:
                error.usage = usage
                raise


class CheckedStructuredModel:
    """A :class:`cicada.models.ports.StructuredModel` of a service that knows no guardrail.

    As with a tool's use on Bedrock, what the model fills in is not checked.
    """

    def __init__(self, model: StructuredModel, checks: GuardrailChecks) -> None:
        self._model = model
        self._checks = checks
        self.model_id = model.model_id
        self.max_tokens = model.max_tokens

    def fill(self, prompt: Prompt, form: type[Form], *, time_budget_s: float, call_scope: CallScope) -> Filled[Form]:
        """See the port. Raises AnswerBlocked and GuardrailUnavailable too."""
        clock = self._checks.clock
        deadline_s = clock() + time_budget_s
        asked = prompt.checked or prompt.user
        checked = self._checks.check(asked, "INPUT", call_scope=call_scope, time_left_s=time_budget_s)
        sent = _masked(prompt, checked)
        return self._model.fill(sent, form, time_budget_s=deadline_s - clock(), call_scope=call_scope)
