"""Events cut to the size that the wire takes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.agents.source_registry import MAX_SOURCES
from cicada.attempts.frame_limits import fit_sources
from cicada.corpus.passages import DocumentLocator, NoteLocator, ScriptLocator
from cicada.protocol.events import MAX_EVENT_BYTES, Reason, Source, Sources, dump_event, event_frame


def built(model, **parts):
    """Like ``st.builds``, which takes a model's aliases for arguments that it has to find."""
    return st.fixed_dictionaries(parts).map(lambda given: model(**given))


WORDS = st.builds(lambda text, times: text * times, st.text(min_size=1, max_size=12), st.integers(1, 60))
IDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=256)
PLACES = st.one_of(
    built(ScriptLocator, episode_id=IDS, episode_name=WORDS, chapter_id=IDS, message_id=IDS, speaker=WORDS),
    built(DocumentLocator, source=WORDS, title=WORDS, page=st.none() | st.integers(1, 999), section=WORDS),
    built(NoteLocator, profile_id=st.just("a" * 20), profile=WORDS, field=WORDS, noted_at_ms=st.integers(0)),
)
REASONS = built(Reason, kind=st.just("tool"), name=WORDS, matched=st.none() | WORDS, confidence=st.floats(0, 1))
SOURCES = built(
    Source,
    n=st.just(1),
    passage_id=IDS,
    collection=st.text(min_size=1, max_size=64),
    locator=PLACES,
    score=st.floats(0, 1),
    text=WORDS,
    context=st.none() | WORDS,
    why=st.lists(REASONS, max_size=4).map(tuple),
)


def event(sources):
    numbered = tuple(source.model_copy(update={"n": n}) for n, source in enumerate(sources, 1))
    return Sources(attempt=1, index_version="v1", searched=9_000, sources=numbered)


def size_of(sources):
    return len(event_frame("r" * 64, 99_999, dump_event(sources)).encode())


@settings(max_examples=25)
@given(st.lists(SOURCES, min_size=1, max_size=4), st.integers(1, MAX_SOURCES))
def test_any_sources_fit_whatever_they_hold(some, count):
    full = event([some[n % len(some)] for n in range(count)])
    fitted = fit_sources(full)
    assert size_of(fitted) <= MAX_EVENT_BYTES
    kept = full.sources[: len(fitted.sources)]
    assert [(one.n, one.passage_id) for one in fitted.sources] == [(one.n, one.passage_id) for one in kept]
    if len(dump_event(full).encode()) < MAX_EVENT_BYTES - 300:
        assert fitted == full


def source(n, **more):
    place = ScriptLocator(
        episode_id="ep1", episode_name="The Night", chapter_id="c1", message_id=f"m{n:06d}", speaker="Tamsin Oake"
    )
    return Source(n=n, passage_id=f"p{n}", collection="script", locator=place, score=0.9, text="t" * 300, **more)


def weighed(statement):
    return Reason(kind="tool", name="gather_evidence", matched=f"against: {statement}", confidence=0.87)


@pytest.mark.parametrize("statements", [1, 2, 4])
@pytest.mark.parametrize("word", ["keeper ", "守塔人"])
def test_a_full_shelf_of_evidence_fits_with_every_number_a_line_of_text_and_a_reason(statements, word):
    why = tuple(weighed(f"{n}{word * 8}") for n in range(statements))
    fitted = fit_sources(event([source(n, why=why) for n in range(1, MAX_SOURCES + 1)]))
    assert size_of(fitted) <= MAX_EVENT_BYTES
    assert [one.n for one in fitted.sources] == list(range(1, MAX_SOURCES + 1))
    assert all(one.text and one.clipped and one.why for one in fitted.sources)
    assert all(one.locator.label() for one in fitted.sources)


def test_contexts_go_before_texts_and_texts_before_reasons():
    why = (weighed("the keeper"),)
    wide = fit_sources(event([source(n, context="around " * 300, why=why) for n in range(1, 20)]))
    assert all(one.context is None and not one.clipped for one in wide.sources)
    long = [source(n, why=why).model_copy(update={"text": "t" * 1_000}) for n in range(1, 31)]
    cut = fit_sources(event(long))
    assert all(one.clipped and one.why == why for one in cut.sources)


def test_long_names_of_places_lose_their_ends_and_ids_stay():
    place = DocumentLocator(source="s3://bucket/" + "x" * 200, title="T" * 300, section="S" * 300, page=7)
    fitted = fit_sources(event([source(n).model_copy(update={"locator": place}) for n in range(1, MAX_SOURCES + 1)]))
    assert len(fitted.sources) == MAX_SOURCES
    for one in fitted.sources:
        assert isinstance(one.locator, DocumentLocator)
        assert one.locator.section is not None
        assert (one.locator.page, one.locator.title[:1], one.locator.section[:1]) == (7, "T", "S")
