"""The optional fields of a Chat Completions request that a model accepts, learnt from its endpoint's refusals.

Newer OpenAI models take only ``max_completion_tokens``. Older servers know only ``max_tokens`` and silently ignore the
other, so ``max_tokens`` is sent first. Some endpoints lack ``stream_options``, JSON schemas, or system turns.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cicada.models.openai_errors import Complaint

Format = Literal["json_schema", "json_object", "text"]
"""How JSON is asked for: by its schema, as any object, or in the prompt alone."""

_LESS: dict[Format, Format] = {"json_schema": "json_object", "json_object": "text"}
_UNKNOWN_FIELD = re.compile(
    r"max_completion_tokens|unsupported|not supported|unrecogni[sz]ed|unknown|not permitted|forbidden", re.IGNORECASE
)
_MAX_TOKENS = re.compile(r"\bmax_tokens\b", re.IGNORECASE)
_STREAM_OPTIONS = re.compile(r"stream_options|include_usage", re.IGNORECASE)
_FORMAT = re.compile(
    r"response[ _]?format|json[ _]?(schema|object|mode)|structured[ _]?output|grammar|additionalProperties",
    re.IGNORECASE,
)
_SYSTEM = re.compile(r"system (role|message|prompt|instruction)|role.{0,20}system|developer instruction", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """What one model takes, as far as is known."""

    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    usage: bool = True
    """Whether it can be asked for its usage."""
    format: Format = "json_schema"
    system: bool = True
    """Whether it takes a system turn; without, the instructions stand before the user's."""

    def without(self, complaint: Complaint, sent: Mapping[str, Any]) -> Dialect:
        """The dialect after a refusal of a request; the same if it names nothing that can be left out."""
        said = complaint.all_words
        if "max_tokens" in sent and _MAX_TOKENS.search(said) and _UNKNOWN_FIELD.search(said):
            return replace(self, limit="max_completion_tokens")
        if "stream_options" in sent and _STREAM_OPTIONS.search(said):
            return replace(self, usage=False)
        if "response_format" in sent and _FORMAT.search(said):
            return self.less(sent["response_format"]["type"])
        if sent["messages"][0]["role"] == "system" and _SYSTEM.search(said):
            return replace(self, system=False)
        return self

    def less(self, used: Format) -> Dialect:
        """The dialect after JSON asked for as ``used`` has failed; unchanged if another way is known already."""
        return replace(self, format=_LESS.get(used, used)) if self.format == used else self


@dataclass
class Dialects:
    """What each model is known to take. Thread-safe."""

    _known: dict[str, Dialect] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, model_id: str) -> Dialect:
        """What to speak with a model."""
        return self._known.get(model_id, Dialect())

    def learn(self, model_id: str, spoken: Dialect, complaint: Complaint, sent: Mapping[str, Any]) -> bool:
        """Note a refusal of a request in the dialect ``spoken``; true if the next request will differ.

        Another thread may have learnt something since the request.
        """
        with self._lock:
            self._known[model_id] = self.of(model_id).without(complaint, sent)
        return spoken.without(complaint, sent) != spoken

    def format_ignored(self, model_id: str, used: Format) -> None:
        """The model ignored ``used`` and answered without JSON: ask in the next way from now on."""
        with self._lock:
            self._known[model_id] = self.of(model_id).less(used)


LEARNT_DIALECTS = Dialects()
"""Shared by all model objects of the process by default."""
