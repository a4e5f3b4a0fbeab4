"""A passage, the smallest piece that is found and cited, and its locator, which says where it stands."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class CorpusModel(BaseModel):
    """Immutable, strict, camelCase on the wire and in files."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )


class _Place(CorpusModel):
    def voice(self) -> str | None:
        """The speaker; None if the text is not speech."""
        return None

    def whole(self) -> str | None:
        """Id shared by translations of one text; None if there are none."""
        return None


class ScriptLocator(_Place):
    """Where a passage stands in a script."""

    kind: Literal["script"] = "script"
    episode_id: str
    episode_name: str
    chapter_id: str
    message_id: str
    speaker: str

    def label(self) -> str:
        """One line for people."""
        return f"{self.episode_name} · {self.chapter_id} · {self.message_id} · {self.speaker}"

    def names(self) -> dict[str, str]:
        """What the prompt calls the place by, each under its attribute's name."""
        return {
            "episode": self.episode_name,
            "episode_id": self.episode_id,
            "chapter": self.chapter_id,
            "message": self.message_id,
            "speaker": self.speaker,
        }

    def fields(self) -> dict[str, str]:
        """What searches filter by."""
        return {"episode": self.episode_id, "speaker": self.speaker}

    def voice(self) -> str | None:  # noqa: D102 (see the base class)
        return self.speaker

    def whole(self) -> str | None:  # noqa: D102
        return f"{self.episode_id}/{self.message_id}"


class DocumentLocator(_Place):
    """Where a passage stands in a document."""

    kind: Literal["document"] = "document"
    source: str = Field(min_length=1, description="the file, or what else the document is known by")
    title: str
    page: int | None = Field(None, ge=1, description="from 1, for documents with pages")
    section: str | None = Field(None, description="the headings above it, outermost first")

    def label(self) -> str:
        """One line for people."""
        page = None if self.page is None else f"page {self.page}"
        return " · ".join(part for part in (self.title or self.source, self.section, page) if part)

    def names(self) -> dict[str, str]:
        """What the prompt calls the place by, each under its attribute's name."""
        page = None if self.page is None else str(self.page)
        found = {"source": self.source, "title": self.title, "section": self.section, "page": page}
        return {name: value for name, value in found.items() if value}

    def fields(self) -> dict[str, str]:
        """What searches filter by."""
        return {"source": self.source, **({"section": self.section} if self.section else {})}


class NoteLocator(_Place):
    """Where a user's own words stand: a field of one of their profiles. No search finds it."""

    kind: Literal["note"] = "note"
    profile_id: str
    profile: str = Field(description="the profile's name")
    field: str
    noted_at_ms: int = Field(description="when the user said so, in epoch milliseconds")

    def label(self) -> str:
        """One line for people."""
        return f"your note · {self.profile} · {self.field}"

    def lead(self) -> str:
        """Written before the value where a note is shown as a source."""
        return f"{self.profile} · {self.field}: "

    def names(self) -> dict[str, str]:
        """What the prompt calls the place by, each under its attribute's name."""
        return {"profile": self.profile, "field": self.field}

    def fields(self) -> dict[str, str]:
        """No search filters by it."""
        return {}


Locator = Annotated[ScriptLocator | DocumentLocator, Field(discriminator="kind")]
"""Of a passage. All kinds have the same methods."""
CitedLocator = Annotated[ScriptLocator | DocumentLocator | NoteLocator, Field(discriminator="kind")]
"""Of what an answer may cite."""


class Passage(CorpusModel):
    """The unit that is found and cited.

    ``text`` is shown and cited. ``context`` is the text with enough of its neighbours to be understood (a short reply
    means nothing alone).

    Empty enrichment (``summary``, ``entities``, ``codes``) is not serialised: a passage without it is written, and
    digested, as before enrichment existed.
    """

    id: str = Field(min_length=1, max_length=256, description="unique in its collection and stable across loads")
    collection: str = Field(min_length=1, max_length=64)
    text: str = Field(min_length=1)
    context: str = Field(min_length=1)
    locator: Locator
    metadata: dict[str, str] = Field(default_factory=dict)
    summary: str | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="what it says, in a sentence or two; None where nobody made one",
    )
    entities: tuple[str, ...] = Field(
        (), exclude_if=lambda value: not value, description="who and what it names, as written most often, each once"
    )
    codes: tuple[str, ...] = Field(
        (),
        exclude_if=lambda value: not value,
        description="identifiers in it, such as part numbers and error codes, each once",
    )
