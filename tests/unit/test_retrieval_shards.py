"""Retrieval over the index: queries in, hits with comparable scores out."""

from __future__ import annotations

import threading
from dataclasses import replace
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.corpus.messages import Message
from cicada.corpus.passages import DocumentLocator
from cicada.corpus.windows import passages
from cicada.errors import IndexMismatch, IndexMissing, ModelBusy
from cicada.index.manifest import CURRENT_KEY, parse_manifest
from cicada.index.reader import IndexReader
from cicada.index.versions import set_allow_partial
from cicada.index.writer import IndexWriter
from cicada.retrieval.calibration import CALIBRATIONS, DEFAULT_CALIBRATION, Calibration, calibration_of
from cicada.retrieval.ports import Filters, Pin, SearchQuery, TimeLimit
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore, WatchedStore
from tests.support.passages import indexable, make_passages, script_place

COUNT = 60


def message(number: int, text: str, speaker: str = "Mira", **texts: str) -> Message:
    return Message("ep1", "One", f"c{number}", f"m{number}", speaker, {"ENG": text, **texts})


@pytest.fixture
def searching():
    """Makes a retriever over collections; closes its reader afterwards."""
    readers = []

    def make(embedder=None, **collections):
        store = InMemoryStore()
        for name, items in collections.items():
            IndexWriter(store, WordEmbedder(), segment_rows=7).replace(name, items)
        watched = WatchedStore(store)
        reader = IndexReader(watched, embedding_model_id="test.words", dimensions=64, refresh_interval_s=3600)
        readers.append(reader)
        retriever = ShardRetriever(reader, embedder or WordEmbedder())
        return retriever, watched

    yield make
    for reader in readers:
        reader.close()


@pytest.fixture
def retriever(searching):
    return searching(script=indexable(make_passages(COUNT)))[0]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "keyword"])
def test_the_passage_that_says_it_is_found_first(retriever, mode):
    result = retriever.search(SearchQuery(make_passages(COUNT)[17].context, mode=mode, readable=EVERYTHING))
    assert result.hits[0].passage == make_passages(COUNT)[17]
    assert 0.9 < result.hits[0].score <= 1
    assert result.searched == COUNT
    assert result.index_version.startswith("000001-")
    assert set(result.timings_ms) == {"embed", "load", "rank"}


def test_hits_are_at_most_top_k_best_first_and_at_least_the_minimum(retriever):
    result = retriever.search(SearchQuery("Line word3 of script", top_k=7, min_score=0.4, readable=EVERYTHING))
    scores = [hit.score for hit in result.hits]
    assert 0 < len(scores) <= 7
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= 0.4


@pytest.mark.parametrize("top_k", [1, 20, COUNT, COUNT + 40])
def test_without_a_minimum_every_passage_can_be_had(retriever, top_k):
    result = retriever.search(SearchQuery("Line", top_k=top_k, min_score=0.0, readable=EVERYTHING))
    assert len(result.hits) == min(top_k, COUNT)


def test_nothing_is_near_enough_to_an_alien_question(retriever):
    assert retriever.search(SearchQuery("zebra quantum", min_score=0.5, readable=EVERYTHING)).hits == ()


def test_a_filtered_search_still_returns_top_k(retriever):
    result = retriever.search(
        SearchQuery(
            "Line 3", Filters(episodes=("ep5", "ep6"), speakers=("Jon",)), top_k=6, min_score=0.0, readable=EVERYTHING
        )
    )
    assert len(result.hits) == 6
    assert {hit.passage.locator.speaker for hit in result.hits} == {"Jon"}
    assert {hit.passage.locator.episode_id for hit in result.hits} <= {"ep5", "ep6"}
    assert result.searched == sum(script_place(p).speaker == "Jon" for p in make_passages(20, start=40))


def test_a_search_can_be_limited_to_collections(searching):
    retriever, _ = searching(script=indexable(make_passages(9)), notes=indexable(make_passages(4, collection="notes")))
    both = retriever.search(SearchQuery("Line", min_score=0.0, readable=EVERYTHING))
    one = retriever.search(SearchQuery("Line", Filters(collections=("notes",)), min_score=0.0, readable=EVERYTHING))
    assert (both.searched, one.searched) == (13, 4)
    assert {hit.passage.collection for hit in one.hits} == {"notes"}


@pytest.mark.parametrize("languages", [2, 5])
def test_a_message_in_several_languages_is_one_hit(searching, languages):
    spoken = [
        message(n, f"line {n} shared", **{f"L{k}": f"line {n} shared" for k in range(languages)}) for n in range(30)
    ]
    retriever, _ = searching(script=list(passages("script", spoken)))
    result = retriever.search(SearchQuery("line 7 shared", top_k=12, min_score=0.0, readable=EVERYTHING))
    assert result.searched == 30 * (1 + languages)
    assert len(result.hits) == 12
    assert len({hit.passage.locator.message_id for hit in result.hits}) == 12


def test_the_language_that_fits_is_the_one_that_is_shown(searching):
    texts = {f"L{a}{b}": f"word{a}{b} shared" for a, b in ("AA", "AB", "BA", "BB")}
    retriever, _ = searching(script=list(passages("script", [message(n, f"english{n}", **texts) for n in range(10)])))
    result = retriever.search(SearchQuery("wordAB shared", top_k=10, min_score=0.0, readable=EVERYTHING))
    assert {hit.passage.metadata["language"] for hit in result.hits} == {"LAB"}
    assert len(result.hits) == 10


def test_passages_of_one_page_are_hits_of_their_own(searching):
    pages = [
        passage.model_copy(update={"locator": DocumentLocator(source="a.pdf", title="A", page=3)})
        for passage in make_passages(10)
    ]
    retriever, _ = searching(script=indexable(pages))
    assert len(retriever.search(SearchQuery("Line of script", min_score=0.0, readable=EVERYTHING)).hits) == 10
    assert (
        len(
            retriever.search(
                SearchQuery("Line", Filters(metadata={"source": ("a.pdf",)}), 20, 0.0, readable=EVERYTHING)
            ).hits
        )
        == 10
    )


def test_metadata_tells_the_source_where_the_place_does_not(searching):
    items = [passage.model_copy(update={"metadata": {"source": "wiki"}}) for passage in make_passages(3)]
    retriever, _ = searching(script=indexable(items))
    assert (
        retriever.search(
            SearchQuery("Line", Filters(metadata={"source": ("wiki",)}), 20, 0.0, readable=EVERYTHING)
        ).searched
        == 3
    )


def test_a_search_for_nothing_is_refused():
    with pytest.raises(ValueError, match="top_k"):
        SearchQuery("Line", top_k=0, readable=EVERYTHING)


def test_a_warm_search_reads_nothing(searching):
    retriever, watched = searching(script=indexable(make_passages(COUNT)))
    retriever.search(SearchQuery("Line 1", readable=EVERYTHING))
    warm = list(watched.calls)
    for number in range(5):
        retriever.search(SearchQuery(f"Line {number}", Filters(episodes=("ep2",)), readable=EVERYTHING))
    assert watched.calls == warm


def test_an_index_that_is_not_there_is_told(searching):
    retriever, _ = searching()
    with pytest.raises(IndexMissing):
        retriever.search(SearchQuery("Line", readable=EVERYTHING))


def test_a_query_vector_of_other_dimensions_is_never_compared(searching):
    retriever, _ = searching(script=indexable(make_passages(3)), embedder=Lying())
    with pytest.raises(IndexMismatch):
        retriever.search(SearchQuery("Line", readable=EVERYTHING))


class Lying(WordEmbedder):
    def _vector(self, text):
        return [1.0]


def test_a_model_that_is_busy_leaves_the_words(searching):
    class Busy(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            raise ModelBusy("throttled")

    retriever, _ = searching(script=indexable(make_passages(3)), embedder=Busy())
    with pytest.raises(ModelBusy):
        retriever.search(SearchQuery("Line", mode="dense", readable=EVERYTHING))
    by_words = retriever.search(SearchQuery("Line 2", min_score=0.0, readable=EVERYTHING))
    assert by_words.hits[0].passage.id == "m2"
    assert [one.code for one in by_words.degraded] == ["words_only"]


def test_a_model_that_is_slow_leaves_the_words_their_time(searching):
    class Hung(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            ends.wait(20)
            return super().embed(texts, time_budget_s=time_budget_s)

    ends = threading.Event()
    retriever, _ = searching(script=indexable(make_passages(3)), embedder=Hung())
    by_words = retriever.search(
        SearchQuery("Line 2", min_score=0.0, limits=TimeLimit(lambda: 0.2), readable=EVERYTHING)
    )
    ends.set()
    assert by_words.hits[0].passage.id == "m2"
    assert [one.code for one in by_words.degraded] == ["words_only"]


def test_scores_by_meaning_are_the_models_calibrated_cosines(retriever):
    (hit,) = retriever.search(
        SearchQuery(make_passages(COUNT)[17].context, top_k=1, mode="dense", readable=EVERYTHING)
    ).hits
    assert hit.score == pytest.approx(DEFAULT_CALIBRATION.score(1.0), abs=1e-3)


def test_a_query_by_words_needs_no_model(searching):
    class Broken(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            raise AssertionError("nothing was to be embedded")

    retriever, _ = searching(script=indexable(make_passages(9)), embedder=Broken())
    hits = retriever.search(SearchQuery('"line 4 of"', mode="keyword", min_score=0.0, readable=EVERYTHING)).hits
    assert [hit.passage.id for hit in hits] == ["m4"]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "keyword"])
def test_a_search_can_be_limited_by_metadata(searching, mode):
    moods = ["glad", "grim", "calm"]
    items = [
        passage.model_copy(update={"metadata": {"mood": moods[n % 3]}}) for n, passage in enumerate(make_passages(30))
    ]
    retriever, _ = searching(script=indexable(items))
    query = SearchQuery(
        "Line of script", Filters(metadata={"mood": ("glad", "calm")}), 30, 0.0, mode, readable=EVERYTHING
    )
    result = retriever.search(query)
    assert result.searched == 20
    assert {hit.passage.id for hit in result.hits} == {f"m{n}" for n in range(30) if n % 3 != 1}
    assert (
        retriever.search(
            SearchQuery("Line", Filters(metadata={"none": ("x",)}), 30, 0.0, mode, readable=EVERYTHING)
        ).hits
        == ()
    )


@pytest.mark.parametrize("mode", ["hybrid", "dense", "keyword"])
def test_what_was_deleted_is_not_found(searching, mode):
    retriever, watched = searching(script=indexable(make_passages(12)))
    IndexWriter(watched, WordEmbedder()).delete("script", ["m3", "m7"])
    retriever._reader.refresh()
    result = retriever.search(SearchQuery("Line of script", top_k=50, min_score=0.0, mode=mode, readable=EVERYTHING))
    assert result.searched == 10
    assert {hit.passage.id for hit in result.hits} == {f"m{n}" for n in range(12)} - {"m3", "m7"}


@pytest.mark.parametrize("mode", ["hybrid", "dense", "keyword"])
def test_an_index_of_which_everything_was_deleted_finds_nothing(searching, mode):
    retriever, watched = searching(script=indexable(make_passages(2)))
    IndexWriter(watched, WordEmbedder()).delete("script", ["m0", "m1"])
    retriever._reader.refresh()
    result = retriever.search(SearchQuery("Line", min_score=0.0, mode=mode, readable=EVERYTHING))
    assert (result.hits, result.searched) == ((), 0)


@pytest.mark.parametrize("mode", ["hybrid", "dense", "keyword"])
@pytest.mark.parametrize("eager_bytes", [0, 10**9])
def test_a_cold_search_finds_what_a_warm_one_does(searching, mode, eager_bytes):
    _, watched = searching(
        script=indexable(make_passages(COUNT)), notes=indexable(make_passages(9, collection="notes"))
    )
    reader = IndexReader(
        watched, embedding_model_id="test.words", dimensions=64, refresh_interval_s=3600, eager_bytes=eager_bytes
    )
    retriever = ShardRetriever(reader, WordEmbedder())
    query = SearchQuery("word3 Line 7 of script", Filters(speakers=("Mira", "Jon")), 10, 0.0, mode, readable=EVERYTHING)
    try:
        first = retriever.search(query)
        reader.warm_up()
        assert first.hits == retriever.search(query).hits
    finally:
        reader.close()


def test_a_version_in_part_says_how_much_is_missing(searching):
    retriever, watched = searching(
        script=indexable(make_passages(COUNT)), notes=indexable(make_passages(9, collection="notes"))
    )
    set_allow_partial(watched, True)
    current = parse_manifest(watched.read(CURRENT_KEY).data)
    del watched._store.objects[current.of_collection("notes")[0].key]
    result = retriever.search(SearchQuery("Line 3", min_score=0.0, top_k=100, readable=EVERYTHING))
    missing = current.of_collection("notes")[0].live
    assert [one.code for one in result.degraded] == ["partial_index"]
    assert result.degraded[0].message.startswith(f"{missing} of {COUNT + 9} passages")
    assert result.searched == COUNT + 9 - missing


def test_searches_that_share_a_pin_are_of_one_version_though_another_is_published_between_them(searching):
    retriever, watched = searching(script=indexable(make_passages(COUNT)))
    pin = Pin()
    query = SearchQuery("Line 3", min_score=0.0, top_k=3, pin=pin, readable=EVERYTHING)
    before = retriever.search(query)
    IndexWriter(watched._store, WordEmbedder(), segment_rows=7).replace("script", indexable(make_passages(2)))
    retriever._reader.refresh()
    assert retriever.search(query) == replace(before, timings_ms=ANY)
    assert pin.version == before.index_version
    after = retriever.search(SearchQuery("Line 3", min_score=0.0, top_k=3, readable=EVERYTHING))
    assert (after.index_version != before.index_version, len(after.hits)) == (True, 2)


# --- calibration ---


@given(
    st.sampled_from([DEFAULT_CALIBRATION, *CALIBRATIONS.values()]),
    st.floats(-1, 1, allow_nan=False),
    st.floats(-1, 1, allow_nan=False),
)
def test_scores_lie_in_0_to_1_and_keep_the_order_of_cosines(calibration, one, other):
    low, high = sorted((one, other))
    assert 0 <= calibration.score(low) <= calibration.score(high) <= 1


def test_the_midpoint_scores_a_half():
    assert Calibration(0.37, 9).score(0.37) == 0.5


def test_a_model_has_its_own_calibration_or_the_default():
    assert calibration_of("local.all-minilm-l6-v2") is CALIBRATIONS["local.all-minilm-l6-v2"]
    assert calibration_of("vendor.never-seen") is DEFAULT_CALIBRATION
