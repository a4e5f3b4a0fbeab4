"""A passage, the smallest piece that is found and cited, and its locator, which says where it stands."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class CorpusModel(BaseModel):
    """Immutable, strict, camelCase on the wire and in files."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class ScriptLocator(CorpusModel):
    """Where a passage stands in a script."""

    kind: Literal["script"] = "script"
    episode_id: str
    episode_name: str
    chapter_id: str
    message_id: str
    speaker: str

    def label(self) -> str:
        """One line for people: episode, chapter, message and speaker."""
        return f"{self.episode_name} · {self.chapter_id} · {self.message_id} · {self.speaker}"


Locator = ScriptLocator
"""Every kind of locator. A second kind makes this a union, discriminated by ``kind``."""


class Passage(CorpusModel):
    """What is found and cited.

    ``text`` is the passage's own words: what is shown and cited. ``context`` is the text with enough of its neighbours
    to be understood by whoever reads it (a short reply means nothing alone).
    """

    id: str = Field(min_length=1, max_length=256, description="unique in its collection and stable across loads")
    collection: str = Field(min_length=1, max_length=64)
    text: str = Field(min_length=1)
    context: str = Field(min_length=1)
    locator: Locator
    metadata: dict[str, str] = Field(default_factory=dict)
