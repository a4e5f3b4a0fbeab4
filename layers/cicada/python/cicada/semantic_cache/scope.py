"""What an earlier answer is valid for: only a question of the very same scope can find it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from cicada.attempts.strategy import AskedQuestion
from cicada.retrieval.calibration import query_language

Sharing = Literal["user", "tenant", "deployment"]
"""Among whom answers are shared."""

LAYOUT_VERSION = 2
"""Changes whenever what is stored, or how it is found, would be read differently."""
_DIGEST_CHARS = 32


@dataclass(frozen=True)
class CacheScope:
    """Everything that an answer depends on besides the question's meaning."""

    shared_by: tuple[str, ...]
    """``("user", tenant or "", subject)``, ``("tenant", name)`` or ``("deployment",)``."""
    index_version: str
    collections: tuple[str, ...]
    episodes: tuple[str, ...]
    language: str
    """The question's, ISO 639-3: an answer is in the language of its question."""
    generation_model_id: str
    prompt_version: str
    embedding_model_id: str
    dimensions: int

    @property
    def digest(self) -> str:
        """The scope's key: 128 bits of SHA-256, in hexadecimal."""
        parts = [
            LAYOUT_VERSION,
            list(self.shared_by),
            self.index_version,
            sorted(set(self.collections)),
            sorted(set(self.episodes)),
            self.language,
            self.generation_model_id,
            self.prompt_version,
            self.embedding_model_id,
            self.dimensions,
        ]
        text = json.dumps(parts, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]


def shared_by(asked: AskedQuestion, sharing: Sharing) -> tuple[str, ...]:
    """Who may be given this question's answer again.

    The asker alone where no tenant is known, and where the question was completed from a conversation: then it holds
    what was said there, which nobody else may read.
    """
    said_so = asked.query == asked.question.query
    if sharing == "deployment" and said_so:
        return ("deployment",)
    if sharing == "tenant" and said_so and asked.question.tenant:
        return ("tenant", asked.question.tenant)
    return ("user", asked.question.tenant or "", asked.key.subject)


def language_of(query: str) -> str:
    """The language of a question, ISO 639-3; ``und`` where its letters tell only that it is not English."""
    return query_language(query, {})
