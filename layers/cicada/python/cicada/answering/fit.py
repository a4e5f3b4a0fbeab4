"""Events cut to the size that the wire takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cicada.delivery.outbox import MIN_PART_BYTES, json_bytes, split_text
from cicada.protocol.events import MAX_EVENT_BYTES, Citation, Citations, Source, Sources, dump_event

MAX_SENTENCE_CHARS = 1_000
"""As much of a cited sentence as its citation repeats."""
_ENVELOPE_BYTES = 256
"""What a frame adds around an event: requestId, seq and the braces of lists."""
_BUDGET_BYTES = MAX_EVENT_BYTES - _ENVELOPE_BYTES


def fit_sources(event: Sources) -> Sources:
    """The event within :data:`MAX_EVENT_BYTES`: contexts go first, then the longest texts are cut, and say so."""
    if len(dump_event(event).encode()) > _BUDGET_BYTES:
        bare = tuple(source.model_copy(update={"context": None}) for source in event.sources)
        event = event.model_copy(update={"sources": bare})
    limit = max((json_bytes(source.text) for source in event.sources), default=0)
    while len(dump_event(event).encode()) > _BUDGET_BYTES and limit > 0:
        limit = limit * 3 // 4
        event = event.model_copy(update={"sources": tuple(_clip(source, limit) for source in event.sources)})
    return event


def _clip(source: Source, max_bytes: int) -> Source:
    if json_bytes(source.text) <= max_bytes:
        return source
    text = split_text(source.text, max_bytes)[0] if max_bytes >= MIN_PART_BYTES else ""
    return source.model_copy(update={"text": text, "clipped": True})


def fit_citations(
    attempt: int, citations: Sequence[Citation], not_attributed: tuple[int, ...] = ()
) -> Iterator[Citations]:
    """The citations in as many events as they need; one where the answer has none, with what is not attributed."""
    part: list[Citation] = []
    size = 0
    for citation in citations:
        citation = citation.model_copy(update={"sentence": citation.sentence[:MAX_SENTENCE_CHARS]})
        added = len(citation.model_dump_json(by_alias=True).encode()) + 1
        if part and size + added > _BUDGET_BYTES:
            yield Citations(attempt=attempt, citations=tuple(part))
            part, size = [], 0
        part.append(citation)
        size += added
    yield Citations(attempt=attempt, citations=tuple(part), not_attributed=not_attributed)
