"""Citations of any answer and its passages, for integrators: a typed request and a typed response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cicada.citations import CheckedSentence, check_sentences, not_attributed
from cicada.citations.judging import Judge
from cicada.corpus.passages import DocumentLocator, Locator, ScriptLocator
from cicada.protocol.calls import AS_WHOLE, CallRequest
from cicada.protocol.events import Citation, Source

MAX_ANSWER_CHARS = 100_000
MAX_PASSAGES = 1_000
MAX_PASSAGE_CHARS = 100_000


class CitationModel(BaseModel):
    """Of a response: immutable, snake_case on the wire."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CitedPassage(CallRequest):
    """A passage as the prompt of the answer numbered it."""

    n: Annotated[int, Field(ge=1), AS_WHOLE] | None = Field(
        None, description="the number that the answer cites; its place in the list without one"
    )
    id: str | None = Field(None, description="of the passage; its number, in words, without one")
    content: Annotated[str, Field(max_length=MAX_PASSAGE_CHARS)]
    source: str | None = Field(None, description="the file that it is from")
    title: str | None = None
    page: Annotated[int, Field(ge=1), AS_WHOLE] | None = None
    speaker: str | None = Field(None, description="whose words it is, for a message of a script")
    episode: str | None = None
    context: str | None = Field(None, description="the passage with what stands around it")


class ExtractCitationsRequest(CallRequest):
    """An answer, and the passages that it was written from."""

    answer: Annotated[str, Field(max_length=MAX_ANSWER_CHARS)]
    passages: Annotated[tuple[CitedPassage, ...], Field(max_length=MAX_PASSAGES, strict=False)]


class ExtractedMarker(CitationModel):
    """One use of one marker."""

    n: int = Field(description="the passage's number; 0 where the marker has none and names no passage")
    passage_id: str | None = Field(None, description="absent where the marker names no passage")
    source: str | None = None
    page: int | None = None
    verdict: Literal["verified", "unverified", "unchecked"]
    code: str | None = Field(None, description="why it is unverified: a stable code, see docs/citations.md")
    reason: str | None = Field(None, description="why it is unverified: a sentence for people")


class ExtractedSentence(CitationModel):
    """A sentence of the answer."""

    text: str = Field(description="without its markers")
    start: int = Field(description="in characters of the answer")
    end: int = Field(description="in characters of the answer, its markers included; exclusive")
    abstains: bool = Field(False, description="it says that nothing was found: nothing is checked")
    markers: tuple[ExtractedMarker, ...] = ()


class ExtractedCitations(CitationModel):
    """What an answer cites, and what of it holds."""

    sentences: tuple[ExtractedSentence, ...]
    cited: tuple[int, ...] = Field(description="numbers of the passages that a marker names, in order")
    verified: tuple[int, ...] = Field(description="of those, the ones with a verified marker")
    not_cited: tuple[int, ...] = Field(
        description="numbers of the passages that no marker names, unless they are not attributed"
    )
    not_attributed: tuple[int, ...] = Field(
        description="numbers of all passages, where an answer that claims something has no marker at all"
    )


def extract_citations(
    answer: str, passages: Sequence[CitedPassage], *, judge: Judge | None = None
) -> ExtractedCitations:
    """Resolve and check every marker of an answer.

    Passages without a number are numbered by their place, from 1. Without a ``judge`` no model is called, and what code
    cannot check stays unchecked. Raises ValueError if two passages have one number.
    """
    sources = [_source(at, passage) for at, passage in enumerate(passages, 1)]
    numbers = sorted(source.n for source in sources)
    if len(set(numbers)) < len(numbers):
        raise ValueError("duplicate passage number")
    sentences = tuple(map(_sentence, check_sentences(answer, sources, judge)))
    cited = {marker.n for one in sentences for marker in one.markers if marker.passage_id is not None}
    checked = [marker for one in sentences if not one.abstains for marker in one.markers]
    verified = {marker.n for marker in checked if marker.verdict == "verified"}
    unattributed = not_attributed(answer, sources)
    return ExtractedCitations(
        sentences=sentences,
        cited=tuple(filter(cited.__contains__, numbers)),
        verified=tuple(filter(verified.__contains__, numbers)),
        not_cited=() if unattributed else tuple(n for n in numbers if n not in cited),
        not_attributed=unattributed,
    )


def _source(at: int, passage: CitedPassage) -> Source:
    n = passage.n or at
    return Source(
        n=n,
        passage_id=passage.id or str(n),
        collection="",
        locator=_locator(n, passage),
        score=0.0,
        text=passage.content,
        context=passage.context,
    )


def _locator(n: int, passage: CitedPassage) -> Locator:
    if passage.speaker is not None:
        return ScriptLocator(
            episode_id=passage.episode or "",
            episode_name=passage.episode or passage.title or "",
            chapter_id="",
            message_id=passage.id or str(n),
            speaker=passage.speaker,
        )
    known = passage.source or passage.title or passage.id or str(n)
    return DocumentLocator(source=known, title=passage.title or "", page=passage.page)


def _sentence(checked: CheckedSentence) -> ExtractedSentence:
    sentence = checked.sentence
    markers = tuple(map(_marker, checked.citations))
    return ExtractedSentence(
        text=sentence.text, start=sentence.start, end=sentence.end, abstains=checked.abstains, markers=markers
    )


def _marker(citation: Citation) -> ExtractedMarker:
    place = citation.locator if isinstance(citation.locator, DocumentLocator) else None
    return ExtractedMarker(
        **citation.model_dump(include={"n", "passage_id", "verdict", "code", "reason"}),
        source=place.source if place else None,
        page=place.page if place else None,
    )
