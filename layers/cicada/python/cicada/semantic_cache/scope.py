"""The scope of an earlier answer: only questions with an equal scope can find it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from cicada.attempts.strategy import AskedQuestion
from cicada.retrieval.calibration import query_language
from cicada.rights import Readable

Sharing = Literal["user", "tenant", "deployment"]
"""Who shares answers."""

LAYOUT_VERSION = 2
"""Must change whenever the stored layout or the lookup changes."""
_DIGEST_CHARS = 32


@dataclass(frozen=True)
class CacheScope:
    """Everything that an answer depends on except the question."""

    shared_by: tuple[str, ...]
    """``("user", tenant or "", subject)``, ``("tenant", name)`` or ``("deployment",)``."""
    index_version: str
    collections: tuple[str, ...]
    episodes: tuple[str, ...]
    rights: tuple[str, ...]
    """What the asker may read, and the asker's groups where the engine has access rules of its own."""
    language: str
    """The question's, ISO 639-3: an answer is in the language of its question."""
    generation_model_id: str
    prompt_version: str
    embedding_model_id: str
    dimensions: int
    documents: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The scope's key: 128 bits of SHA-256, in hexadecimal."""
        parts = [
            LAYOUT_VERSION,
            list(self.shared_by),
            self.index_version,
            sorted(set(self.collections)),
            sorted(set(self.episodes)),
            list(self.rights),
            self.language,
            self.generation_model_id,
            self.prompt_version,
            self.embedding_model_id,
            self.dimensions,
        ]
        if self.documents or self.sections:  # without them the key is that of a release that did not know them
            parts += [sorted(set(self.documents)), sorted(set(self.sections))]
        text = json.dumps(parts, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]


def shared_by(asked: AskedQuestion, sharing: Sharing) -> tuple[str, ...]:
    """Who may get this question's answer replayed.

    Only the asker if no tenant is known, or if the question was completed from a conversation: then it repeats what was
    said there, which nobody else may read.
    """
    as_asked = asked.query == asked.question.query
    if sharing == "deployment" and as_asked:
        return ("deployment",)
    if sharing == "tenant" and as_asked and asked.question.tenant:
        return ("tenant", asked.question.tenant)
    return ("user", asked.question.tenant or "", asked.key.subject)


def rights_of(readable: Readable, *, by_groups: bool) -> tuple[str, ...]:
    """The rights as a scope has them; ``by_groups`` if the engine has access rules of its own."""
    return (readable.key, *sorted(readable.groups or ())) if by_groups else (readable.key,)


def language_of(query: str) -> str:
    """The language of a question, ISO 639-3; ``und`` if its script only shows that it is not English."""
    return query_language(query, {})
