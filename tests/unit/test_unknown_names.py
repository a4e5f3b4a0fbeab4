"""Collections and episodes that a search is limited to, and that its asker cannot find."""

from __future__ import annotations

import pytest

from cicada.corpus.passages import DocumentLocator
from cicada.errors import CollectionUnknown, EpisodeUnknown, IndexUnavailable, NameUnknown
from cicada.index.versions import set_allow_partial
from cicada.index.writer import IndexWriter
from cicada.protocol.events import Failed
from cicada.retrieval.facets import ShardFacets
from cicada.retrieval.names import MAX_KNOWN, NameChecker, NameCheckingRetriever, _told, unknown_names
from cicada.retrieval.ports import Filters, SearchQuery
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING, NOTHING, Readable
from tests.support.embedding import WordEmbedder
from tests.support.entities import naming, reading, stored
from tests.support.object_stores import InMemoryStore, WatchedStore
from tests.support.passages import indexable, make_passage

CORPUS = [naming(1), naming(13), naming(2, collection="notes"), naming(3, collection="secret")]
"""Passages of two episodes, ep1 and ep2; a collection each for two more."""
ALL_BUT_SECRET = Readable(others=True, exceptions=frozenset({"secret"}))


@pytest.fixture(scope="module")
def reader():
    with reading(stored(*CORPUS)) as opened:
        yield opened


def failed(reader, readable=EVERYTHING, **filters) -> NameUnknown:
    with pytest.raises(NameUnknown) as raised:
        unknown_names(reader.current().seen_by(readable), Filters(**filters))
    return raised.value


def test_known_names_are_not_mentioned(reader):
    view = reader.current()
    assert unknown_names(view, Filters()) == ()
    assert unknown_names(view, Filters(collections=("script", "notes"), episodes=("ep2", "ep1"))) == ()


def test_names_that_are_all_unknown_are_an_error_that_lists_some_that_exist(reader):
    collection = failed(reader, collections=("scripts", "scripts"), episodes=("ep9",))
    assert isinstance(collection, CollectionUnknown)
    assert collection.told == "Unknown collection “scripts”. Available: “notes”, “script”, “secret”."
    assert collection.known == ("notes", "script", "secret")
    assert "scripts" not in str(collection)
    episodes = failed(reader, collections=("script",), episodes=("ep8", "ep9"))
    assert isinstance(episodes, EpisodeUnknown)
    assert episodes.told == "Unknown episodes “ep8”, “ep9”. Available: “ep1”, “ep2”."


def test_the_listed_names_include_those_that_are_most_like_the_unknown_one():
    names = frozenset(f"ep{number:03}" for number in range(200))
    with pytest.raises(EpisodeUnknown) as raised:
        _told(EpisodeUnknown, "episode", ("ep-150",), names)
    assert "ep150" in raised.value.known
    assert len(raised.value.known) == MAX_KNOWN
    assert list(raised.value.known) == sorted(raised.value.known)


def test_names_that_would_take_long_to_compare_are_listed_in_their_order():
    names = frozenset("a" * 190 + f"{number:03}" for number in range(200))
    with pytest.raises(EpisodeUnknown) as raised:
        _told(EpisodeUnknown, "episode", ("a" * 190 + "150x",), names)
    assert raised.value.known == tuple(sorted(names)[:MAX_KNOWN])


def test_documents_and_sections_are_told_like_episodes():
    store = InMemoryStore()
    place = DocumentLocator(source="gate.md", title="Gate", section="Setup > Locks")
    passage = make_passage(1, collection="manual").model_copy(update={"locator": place})
    IndexWriter(store, WordEmbedder()).replace("manual", indexable([passage]))
    with reading(store) as opened:
        assert unknown_names(opened.current(), Filters(documents=("gate.md",), sections=("Setup",))) == ()
        document, section = failed(opened, documents=("x.md",)), failed(opened, sections=("Locks",))
        assert (document.code, document.known) == ("document_unknown", ("gate.md",))
        assert (section.code, section.known) == ("section_unknown", ("Setup", "Setup > Locks"))
        (told,) = unknown_names(opened.current(), Filters(sections=("Locks", "Setup > Locks")))
        assert told.message == "Unknown section “Locks”. Searched the others."


def test_an_error_ends_the_request_with_the_names_that_exist(reader):
    event = Failed.of(failed(reader, collections=("scripts",)))
    assert (event.code, event.retryable, event.known) == ("collection_unknown", False, ("notes", "script", "secret"))
    assert failed(reader, collections=("scripts",)).final


def test_some_unknown_names_are_told_and_the_others_searched(reader):
    told = unknown_names(reader.current(), Filters(collections=("script", "scripts"), episodes=("ep9", "ep1")))
    assert [(one.code, one.message) for one in told] == [
        ("collection_unknown", "Unknown collection “scripts”. Searched the others."),
        ("episode_unknown", "Unknown episode “ep9”. Searched the others."),
    ]


def test_what_may_not_be_read_is_told_as_what_does_not_exist(reader):
    forbidden, absent = (failed(reader, ALL_BUT_SECRET, collections=(name,)) for name in ("secret", "absent"))
    assert forbidden.told.replace("secret", "absent") == absent.told
    assert (forbidden.known, str(forbidden)) == (absent.known, str(absent))
    assert forbidden.known == ("notes", "script")
    nothing = failed(reader, NOTHING, collections=("script",))
    assert (nothing.told, nothing.known) == ("Unknown collection “script”.", ())
    only_notes = Readable(others=False, exceptions=frozenset({"notes"}))
    assert failed(reader, only_notes, episodes=("ep2",)).known == ("ep1",)


def test_long_lists_and_names_are_cut():
    names = [f"shelf-{number:02}" for number in range(MAX_KNOWN + 3)]
    with reading(stored(*(naming(number, collection=name) for number, name in enumerate(names)))) as opened:
        error = failed(opened, collections=tuple(f"no-{number:02}" for number in range(MAX_KNOWN + 2)))
        long = failed(opened, collections=("x" * 100 + "\n\u202ey",))
    assert "“no-09” and 2 more. Examples: “shelf-00”" in error.told
    assert error.known == tuple(names[:MAX_KNOWN])
    assert f"“{'x' * 59}…”" in long.told


def test_an_episode_is_not_called_unknown_while_a_part_cannot_be_read():
    store = stored(*CORPUS)
    set_allow_partial(store, allowed=True)
    with reading(store) as opened:
        whole = opened.current()
        part = whole.without(whole.segments[0].entry.key)
    assert unknown_names(part, Filters(episodes=("ep9",))) == ()
    assert unknown_names(part, Filters(collections=("script",))) == ()


def test_an_index_that_cannot_be_read_is_left_to_the_search():
    with reading(WatchedStore(InMemoryStore(), before={1: IndexUnavailable("down")})) as opened:
        checker = NameChecker(opened)
        assert checker.check(Filters(collections=("x",)), EVERYTHING, time_budget_s=1) == ()


def test_a_retriever_tells_unknown_names_whatever_the_engine(reader):
    retriever = NameCheckingRetriever(ShardRetriever(reader, WordEmbedder()), NameChecker(reader))
    query = SearchQuery("bell", Filters(collections=("script", "secret")), min_score=0, readable=ALL_BUT_SECRET)
    found = retriever.search(query)
    assert [one.code for one in found.degraded] == ["collection_unknown"]
    assert {hit.passage.collection for hit in found.hits} == {"script"}
    assert retriever.version() == found.index_version


def test_a_name_is_not_unknown_because_its_collection_is_new():
    store = stored(*CORPUS)
    with reading(store) as opened:
        opened.current()
        stored(naming(4, collection="attic"), store=store)
        assert NameChecker(opened).check(Filters(collections=("attic",)), EVERYTHING) == ()
        assert (
            ShardFacets(opened).count(("source",), Filters(collections=("attic",)), readable=EVERYTHING, limit=1).total
        )
