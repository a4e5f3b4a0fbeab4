"""Cuts events to the size limit of a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cicada.corpus.passages import CitedLocator
from cicada.delivery.outbox import MIN_PART_BYTES, json_bytes, split_text
from cicada.protocol.events import MAX_EVENT_BYTES, Citation, Citations, Source, Sources, dump_event

MAX_SENTENCE_CHARS = 1_000
"""The part of a cited sentence that its citation repeats."""
_ENVELOPE_BYTES = 256
"""What a frame adds around an event: requestId, seq and the braces of lists."""
_LINE_BYTES = 160
_LABELS = frozenset({"episode_name", "speaker", "source", "title", "section", "profile", "field"})
"""The parts of a locator that are names; the others are ids, which are useless when cut."""
_BUDGET_BYTES = MAX_EVENT_BYTES - _ENVELOPE_BYTES


def fit_sources(event: Sources) -> Sources:
    """The event within :data:`MAX_EVENT_BYTES`.

    The order of the cuts: contexts are dropped; the longest texts are cut to about a line and marked as clipped;
    ``matched`` of the reasons is dropped, then all reasons but each source's first; the rest of the texts is dropped,
    then the ends of the longest names in locators. If that is not enough, the last sources are left out: a citation of
    such a source still names its passage and locator.
    """
    if _fits(event):
        return event
    event = _each(event, lambda source: source.model_copy(update={"context": None}))
    longest = max((json_bytes(source.text) for source in event.sources), default=0)
    event = _cut_until_fit(event, _clip, longest, least=_LINE_BYTES)
    for bare in (_without_matches, _without_more_reasons):
        if not _fits(event):
            event = _each(event, bare)
    event = _cut_until_fit(event, _clip, _LINE_BYTES)
    longest = max((json_bytes(name) for source in event.sources for name in _names(source.locator).values()), default=0)
    event = _cut_until_fit(event, _clip_names, longest, least=MIN_PART_BYTES)
    while not _fits(event) and event.sources:
        event = event.model_copy(update={"sources": event.sources[:-1]})
    return event


def _fits(event: Sources) -> bool:
    return len(dump_event(event).encode()) <= _BUDGET_BYTES


def _each(event: Sources, change: Callable[[Source], Source]) -> Sources:
    return event.model_copy(update={"sources": tuple(map(change, event.sources))})


def _cut_until_fit(event: Sources, cut: Callable[[Source, int], Source], limit: int, *, least: int = 0) -> Sources:
    """Cut every source with a shrinking limit in bytes, until the event fits or the limit is ``least``."""
    while not _fits(event) and limit > least:
        limit = max(least, limit * 3 // 4)
        event = event.model_copy(update={"sources": tuple(cut(source, limit) for source in event.sources)})
    return event


def _clip(source: Source, max_bytes: int) -> Source:
    if json_bytes(source.text) <= max_bytes:
        return source
    return source.model_copy(update={"text": _clipped(source.text, max_bytes), "clipped": True})


def _without_matches(source: Source) -> Source:
    return source.model_copy(update={"why": tuple(one.model_copy(update={"matched": None}) for one in source.why)})


def _without_more_reasons(source: Source) -> Source:
    return source.model_copy(update={"why": source.why[:1]})


def _names(locator: CitedLocator) -> dict[str, str]:
    """The names in a locator, by attribute."""
    return {name: value for name, value in locator if isinstance(value, str) and name in _LABELS}


def _clip_names(source: Source, max_bytes: int) -> Source:
    names = {name: _clipped(value, max_bytes) for name, value in _names(source.locator).items()}
    return source.model_copy(update={"locator": source.locator.model_copy(update=names)})


def _clipped(text: str, max_bytes: int) -> str:
    if json_bytes(text) <= max_bytes:
        return text
    return split_text(text, max_bytes)[0] if max_bytes >= MIN_PART_BYTES else ""


def fit_citations(
    attempt: int, citations: Sequence[Citation], not_attributed: tuple[int, ...] = ()
) -> Iterator[Citations]:
    """The citations in as many events as they need, at least one; the last one has ``not_attributed``."""
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
