"""Loading versions into S3 Vectors and searching there, by boto3's own code against the stand-in."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from botocore.exceptions import ClientError
from numpy.typing import NDArray

from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import (
    IndexCorrupt,
    IndexMismatch,
    IndexMissing,
    IndexUnavailable,
    ModelUnavailable,
    PublishConflict,
)
from cicada.models.retries import RetryPolicy
from cicada.retrieval.calibration import calibration_of
from cicada.retrieval.managed import query_config
from cicada.retrieval.ports import Filters, SearchQuery
from cicada.retrieval.s3vectors import S3VectorsRetriever
from cicada.retrieval.s3vectors.collection_state import HELD_KEY, CollectionStateReader, parse_collection_state
from cicada.retrieval.s3vectors.load import Loader
from cicada.retrieval.s3vectors.retriever import MAX_TOP_K
from cicada.retrieval.s3vectors.setup import LOAD_CONFIG, IndexCalls
from cicada.retrieval.s3vectors.vector_records import NON_FILTERABLE_KEYS, OVERFLOW_PREFIX
from cicada.rights import EVERYTHING, AccessRules
from cicada_local.s3vectors import S3Vectors, VectorStore
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import make_passage
from tests.wire.engine_services import EngineService, serving

EMBEDDER = WordEmbedder()
NOW = datetime(2026, 11, 21, tzinfo=UTC)
_numbers = itertools.count()


@dataclass
class Version:
    """A version of an index, as a load reads it."""

    listed: list[Passage]
    version: str = "000001-a"
    embedding_model_id: str = EMBEDDER.model_id
    dimensions: int = EMBEDDER.dimensions
    read: int = field(default=0)
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = len(self.listed)

    def passages(self) -> Iterable[tuple[Passage, NDArray[np.float32]]]:
        for passage in self.listed:
            self.read += 1
            (vector,) = EMBEDDER.embed([passage.context], time_budget_s=1)
            yield passage, np.array(vector, dtype=np.float32)


@dataclass
class House:
    """An empty vector index, and a bucket."""

    service: EngineService
    vectors: VectorStore
    arn: str
    store: InMemoryStore = field(default_factory=InMemoryStore)

    def client(self) -> Any:
        return self.service.client("s3vectors", config=LOAD_CONFIG)

    def loader(self, **options: Any) -> Loader:
        quick = RetryPolicy(max_attempts=None, base_s=0.01, cap_s=0.02)
        calls = IndexCalls(self.client(), self.arn, **{"retry": quick, **options})
        return Loader(calls, self.store, now=lambda: NOW)

    def load(self, *passages: Passage, version: str = "000001-a") -> Any:
        return self.loader(pause=lambda *_: None).load(Version(list(passages), version))

    def retriever(self, embedder: Any = EMBEDDER, **options: Any) -> S3VectorsRetriever:
        client = self.service.client("s3vectors", config=query_config(5.0))
        return S3VectorsRetriever(client, self.arn, embedder, self.store, **options)

    def search(self, text: str, **query: Any) -> Any:
        return self.retriever().search(SearchQuery(text, **{"min_score": 0.0, "readable": EVERYTHING, **query}))

    def held(self) -> Any:
        return parse_collection_state(self.store.objects[HELD_KEY])

    def stored(self) -> set[str]:
        """The vectors' keys."""
        return set(self.vectors.index(self.arn).vectors)


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[EngineService, VectorStore]]:
    service, vectors = EngineService(), VectorStore()
    with serving(service, S3Vectors(vectors, service.faults, backfill_s=0.0, query_page=7)):
        yield service, vectors


@pytest.fixture
def house(running: tuple[EngineService, VectorStore]) -> Iterator[House]:
    service, vectors = running
    service.calls.clear()
    yield House(service, vectors, make_index(service))
    service.faults.disarm()


def make_index(service: EngineService, **over: Any) -> str:
    """As the stacks make it: full-text search is set up by the load."""
    client, bucket = service.client("s3vectors"), f"engine-{next(_numbers)}"
    client.create_vector_bucket(vectorBucketName=bucket)
    settings = {
        "dataType": "float32",
        "dimension": EMBEDDER.dimensions,
        "distanceMetric": "cosine",
        "metadataConfiguration": {"nonFilterableMetadataKeys": list(NON_FILTERABLE_KEYS)},
        **over,
    }
    return str(client.create_index(vectorBucketName=bucket, indexName="passages", **settings)["indexArn"])


def said(number: int, text: str, *, language: str | None = None, **metadata: str) -> Passage:
    """A passage of its own words."""
    passage = make_passage(number)
    marks = metadata if language is None else {**metadata, "language": language}
    id = passage.id if language is None else f"{passage.id}:{language}"
    return passage.model_copy(update={"id": id, "text": text, "context": text, "metadata": marks})


BELL, LAMP, FERRY = (
    said(1, "The fog bell rings at night", season="autumn"),
    said(2, "Ada lights the lamp", season="winter"),
    said(30, "The ferry leaves at dawn with P0700", season="winter", note="x" * 300),
)


# --- searching ---


def test_a_hybrid_search_is_one_call_and_names_its_engine_and_version(house: House) -> None:
    house.load(BELL, LAMP, FERRY)
    house.service.calls.clear()
    result = house.search("who rings the fog bell")
    assert house.service.calls == {"QueryVectors": 1}
    assert result.hits[0].passage == BELL
    assert (result.engine, result.index_version, result.searched, result.degraded) == ("s3vectors", "000001-a", 0, ())
    assert set(result.timings_ms) == {"embed", "query", "read"}


@pytest.mark.parametrize("mode", ["hybrid", "dense", "keyword"])
def test_the_engines_order_stands_and_scores_are_in_range(house: House, mode: Any) -> None:
    house.load(*(said(n, f"bell {'ring ' * (n % 5)}word{n}") for n in range(40)))
    result = house.search("ring the bell word7", mode=mode, top_k=12)
    client, index = house.service.client("s3vectors"), house.arn
    query: dict[str, Any] = {}
    if mode != "keyword":
        query["queryVector"] = {"float32": EMBEDDER.embed(["ring the bell word7"], time_budget_s=1)[0]}
    if mode != "dense":
        query["queryTexts"] = [{"metadataKey": key, "text": "ring the bell word7"} for key in ("_text", "_context")]
    pages = client.get_paginator("query_vectors").paginate(indexArn=index, topK=24, **query)
    ranked = [vector["key"].split("/")[1] for page in pages for vector in page["vectors"]]
    assert [hit.passage.id for hit in result.hits] == ranked[:12]
    assert all(0 <= hit.score <= 1 for hit in result.hits)
    assert len(result.hits) == 12


def test_a_dense_score_is_the_calibrated_cosine(house: House) -> None:
    house.load(BELL, LAMP)
    result = house.search(BELL.text, mode="dense")
    assert [hit.passage for hit in result.hits] == [BELL, LAMP]
    calibration = calibration_of(EMBEDDER.model_id)
    lamp, query = (np.array(EMBEDDER.embed([text], time_budget_s=1)[0]) for text in (LAMP.text, BELL.text))
    scores = [calibration.score(1.0), calibration.score(float(lamp @ query))]
    assert [hit.score for hit in result.hits] == pytest.approx(scores, abs=1e-5)
    assert [hit.passage for hit in house.search(BELL.text, mode="dense", min_score=scores[0] - 0.01).hits] == [BELL]


def test_a_match_of_words_alone_is_found_by_its_rare_word_and_not_by_common_ones(house: House) -> None:
    house.load(FERRY, *(said(n, f"the ferry number {n}") for n in range(100, 400)))
    found = house.search("P0700", mode="keyword", min_score=0.5).hits
    assert [hit.passage for hit in found] == [FERRY]
    assert house.search("the ferry", mode="keyword", min_score=0.5).hits == ()


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(), {"m1", "m2", "m30"}),
        (Filters(collections=("script",)), {"m1", "m2", "m30"}),
        (Filters(collections=("other",)), set()),
        (Filters(episodes=("ep1",)), {"m1", "m2"}),
        (Filters(episodes=("ep1", "ep4")), {"m1", "m2", "m30"}),
        (Filters(episodes=("ep1",), speakers=("Ada",)), {"m2"}),
        (Filters(metadata={"season": ("winter",)}), {"m2", "m30"}),
        (Filters(metadata={"season": ("winter", "autumn")}), {"m1", "m2", "m30"}),
        (Filters(metadata={"season": ("winter",), "note": ("x" * 300,)}), {"m30"}),
        (Filters(metadata={"note": ("x" * 299,)}), set()),
        (Filters(metadata={"colour": ("red",)}), set()),
    ],
)
def test_filters_apply_before_ranking(house: House, filters: Filters, found: set[str]) -> None:
    house.load(BELL, LAMP, FERRY)
    for mode in ("hybrid", "dense", "keyword"):
        hits = house.search("the ferry bell lamp", filters=filters, mode=mode).hits
        assert {hit.passage.id for hit in hits} == found


def with_lists(number: int, entities: Iterable[str] = (), codes: Iterable[str] = ()) -> Passage:
    update = {"entities": tuple(entities), "codes": tuple(codes)}
    return said(number, f"The bell number {number}").model_copy(update=update)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(entities=("Mira Oake",)), {"m1", "m2"}),
        (Filters(entities=("Jon", "Nobody")), {"m1"}),
        (Filters(codes=("P0700",)), {"m2", "m3"}),
        (Filters(entities=("Mira Oake", "Jon"), codes=("P0700",)), {"m2"}),
        (Filters(entities=("Nobody",)), set()),
    ],
)
def test_lists_are_filtered_by_any_of_their_values(house: House, filters: Filters, found: set[str]) -> None:
    first = with_lists(1, ["Mira Oake", "Jon"])
    second = with_lists(2, ["Mira Oake"], ["P0700", "A-1"])
    house.load(first, second, with_lists(3, codes=["P0700"]), LAMP)
    hits = house.search("bell", filters=filters).hits
    assert {hit.passage.id for hit in hits} == found
    assert all(hit.passage in (first, second, with_lists(3, codes=["P0700"])) for hit in hits)


def test_a_passage_of_more_names_than_there_is_room_for_is_still_filtered_exactly(house: House) -> None:
    crowd = with_lists(1, (f"name {number}" for number in range(300)), (f"P{number:04}" for number in range(300)))
    codes = with_lists(2, ["name 7"], (f"P{number:04}" for number in range(150)))
    house.load(crowd, codes, with_lists(3, ["name 7"], ["P0007"]))
    for wanted, found in (("name 7", {"m1", "m2", "m3"}), ("name 299", {"m1"}), ("name 300", set())):
        assert {hit.passage.id for hit in house.search("bell", filters=Filters(entities=(wanted,))).hits} == found
    for wanted, found in (("P0007", {"m1", "m2", "m3"}), ("P0149", {"m1", "m2"}), ("P0300", set())):
        assert {hit.passage.id for hit in house.search("bell", filters=Filters(codes=(wanted,))).hits} == found


def test_names_that_are_equal_by_chance_are_told_apart(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cicada.retrieval.s3vectors.vector_records._short_digest", lambda value: "same")
    house.load(with_lists(1, ["Mira"]), with_lists(2, ["Jon"]))
    hits = house.search("bell", filters=Filters(entities=("Jon",))).hits
    assert {hit.passage.id for hit in hits} == {"m2"}


@pytest.mark.parametrize(
    ("rules", "collections", "seen"),
    [
        (AccessRules(readers={"notes": ()}), (), {"m1"}),
        (AccessRules("nobody", {"notes": ("gm",)}), (), {"m2"}),
        (AccessRules(readers={"notes": ()}), ("notes", "script"), {"m1"}),
        (AccessRules(readers={"notes": ()}), ("notes",), set()),
        (AccessRules("nobody"), (), set()),
    ],
)
def test_nothing_is_found_in_a_collection_that_the_asker_may_not_read(
    house: House, rules: AccessRules, collections: tuple[str, ...], seen: set[str]
) -> None:
    script, notes = (
        with_lists(number, ["Mira"]).model_copy(update={"collection": collection})
        for number, collection in ((1, "script"), (2, "notes"))
    )
    house.load(script, notes)
    for filters in (Filters(collections), Filters(collections, entities=("Mira",))):
        hits = house.search("bell", filters=filters, readable=rules.readable(("gm",))).hits
        assert {hit.passage.id for hit in hits} == seen


def test_more_names_than_the_service_takes_are_refused(house: House) -> None:
    house.load(BELL)
    with pytest.raises(IndexMismatch, match="100 constraints"):
        house.search("bell", filters=Filters(entities=tuple(f"name {number}" for number in range(100))))


def test_documents_are_filtered_by_their_source(house: House) -> None:
    papers = [
        said(n, "A bell").model_copy(
            update={"locator": DocumentLocator(source=f"{n}.pdf", title="Bells", page=n), "collection": "papers"}
        )
        for n in (1, 2)
    ]
    house.load(*papers)
    for filters in (Filters(metadata={"source": ("2.pdf",)}), Filters(documents=("2.pdf",))):
        assert [hit.passage for hit in house.search("bell", filters=filters).hits] == [papers[1]]
    with pytest.raises(IndexMismatch, match="does not support filters by section"):  # the shards answer then
        house.search("bell", filters=Filters(sections=("Bells",)))


def test_a_message_in_several_languages_is_one_hit(house: House) -> None:
    house.load(BELL, said(1, "Die Nebelglocke, fog bell", language="DEU"), LAMP)
    hits = house.search("fog bell", top_k=2).hits
    assert [hit.passage.locator for hit in hits] == [BELL.locator, LAMP.locator]


def test_when_the_query_cannot_be_embedded_a_hybrid_search_goes_by_words(house: House) -> None:
    class Down(WordEmbedder):
        def embed(self, texts: Any, *, time_budget_s: float) -> list[list[float]]:
            raise ModelUnavailable("down")

    house.load(BELL, LAMP)
    result = house.retriever(Down()).search(SearchQuery("fog bell", min_score=0.0, readable=EVERYTHING))
    assert [hit.passage for hit in result.hits] == [BELL]
    assert [note.code for note in result.degraded] == ["words_only"]
    with pytest.raises(ModelUnavailable):
        house.retriever(Down()).search(SearchQuery("fog bell", mode="dense", readable=EVERYTHING))


def test_an_sdk_that_knows_no_words_searches_by_meaning_and_says_so(house: House) -> None:
    house.load(BELL, LAMP)
    retriever = house.retriever()
    retriever._knows_words = False
    result = retriever.search(SearchQuery("fog bell", min_score=0.0, readable=EVERYTHING))
    assert result.hits[0].passage == BELL
    assert [note.code for note in result.degraded] == ["mode_fallback"]
    assert retriever.search(SearchQuery("fog bell", mode="dense", readable=EVERYTHING)).degraded == ()
    with pytest.raises(IndexUnavailable, match="AWS SDK"):
        retriever.search(SearchQuery("fog bell", mode="keyword", readable=EVERYTHING))


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        ({"exception": "ServiceUnavailableException", "status": 503}, IndexUnavailable),
        ({"exception": "AccessDeniedException", "status": 403}, IndexUnavailable),
        ({"exception": "ValidationException", "status": 400}, IndexMismatch),
        ({"exception": "NotFoundException", "status": 404}, IndexMissing),
    ],
)
def test_failures_are_told_in_the_domains_words(house: House, fault: dict[str, Any], raised: Any) -> None:
    house.load(BELL)
    house.service.faults.arm("s3vectors.error", **fault)
    with pytest.raises(raised, match="Amazon S3 Vectors"):
        house.search("bell")


def test_one_throttle_is_waited_out(house: House) -> None:
    house.load(BELL)
    house.service.faults.arm("s3vectors.throttle", times=1)
    assert house.search("bell").hits


def test_another_model_is_refused(house: House) -> None:
    house.load(BELL)
    with pytest.raises(IndexMismatch, match=r"test\.words at 64 dimensions, queries are embedded with other at 64"):
        house.retriever(WordEmbedder("other")).search(SearchQuery("bell", readable=EVERYTHING))


def test_vectors_of_somebody_else_are_no_passages(house: House) -> None:
    house.load(BELL)
    house.client().put_vectors(
        indexArn=house.arn, vectors=[{"key": "x", "data": {"float32": [1.0] * 64}, "metadata": {"_text": "fog bell"}}]
    )
    with pytest.raises(IndexCorrupt, match="has no valid passage key"):
        house.search("fog bell")


# --- what is held ---


def test_nothing_loaded_is_said(house: House) -> None:
    with pytest.raises(IndexMissing, match="cicada engine load s3vectors"):
        house.search("bell")


def test_a_load_into_another_index_does_not_count(house: House) -> None:
    house.load(BELL)
    house.arn = make_index(house.service)
    with pytest.raises(IndexMissing, match="cicada engine load s3vectors"):
        house.search("bell")


def test_a_new_version_is_noticed_without_a_search_waiting_for_it(house: House) -> None:
    clock = [0.0]
    held = CollectionStateReader(house.store, house.arn, clock=lambda: clock[0])
    house.load(BELL)
    retriever = house.retriever(held=held)
    query = SearchQuery("bell", min_score=0.0, readable=EVERYTHING)
    assert retriever.held_version() is None
    assert retriever.search(query).index_version == retriever.held_version() == "000001-a"
    house.load(BELL, LAMP, version="000002-b")
    assert retriever.search(query).index_version == "000001-a"
    clock[0] = 10.0
    retriever.search(query)
    held._pool.shutdown(wait=True)
    assert retriever.held_version() == "000002-b"


def test_while_a_version_is_loaded_the_one_before_is_named_and_the_mixture_said(house: House) -> None:
    house.load(BELL)
    house.store.objects[HELD_KEY] = (
        house.held().model_copy(update={"status": "loading", "version": "000002-b", "previous": "000001-a"}).to_bytes()
    )
    result = house.search("bell")
    assert result.index_version == "000001-a"
    (note,) = result.degraded
    assert note.code == "partial_index"
    assert "000002-b over 000001-a" in note.message
    house.store.objects[HELD_KEY] = house.held().model_copy(update={"previous": None}).to_bytes()
    with pytest.raises(IndexUnavailable, match="for the first time"):
        house.search("bell")


# --- loading ---


def test_a_load_reports_and_records_what_it_did(house: House) -> None:
    told: list[tuple[int, int]] = []
    passages = [said(n, f"word{n}") for n in range(1203)]
    loaded = house.loader().load(Version(passages), lambda done, total: told.append((done, total)))
    assert (loaded.version, loaded.passages, loaded.put, loaded.kept, loaded.deleted) == ("000001-a", 1203, 1203, 0, 0)
    assert house.service.calls["PutVectors"] == 3
    assert (told[0], told[-1]) == ((0, 1203), (1203, 1203))
    held = house.held()
    assert (held.status, held.version, held.passages, held.previous) == ("ready", "000001-a", 1203, None)
    assert (held.index_arn, held.embedding_model_id, held.dimensions) == (house.arn, "test.words", 64)


def test_vectors_are_exactly_those_of_the_version(house: House) -> None:
    house.load(BELL)
    (stored,) = house.vectors.index(house.arn).vectors.values()
    (vector,) = EMBEDDER.embed([BELL.context], time_budget_s=1)
    assert stored.vector.tobytes() == np.array(vector, dtype=np.float32).tobytes()


def test_a_second_load_writes_only_what_has_changed(house: House) -> None:
    house.load(BELL, LAMP)
    house.service.calls.clear()
    changed = LAMP.model_copy(update={"text": "Ada puts out the lamp"})
    loaded = house.load(BELL, changed, FERRY, version="000002-b")
    assert (loaded.put, loaded.kept, loaded.deleted) == (2, 1, 1)
    assert {hit.passage.id: hit.passage for hit in house.search("lamp ferry bell").hits}["m2"] == changed
    again = house.load(BELL, changed, FERRY, version="000002-b")
    assert (again.put, again.kept, again.deleted) == (0, 3, 0)


def test_an_interrupted_load_goes_on_where_it_stopped(house: House) -> None:
    passages = [said(n, f"word{n}") for n in range(3000)]
    house.service.faults.arm(
        "s3vectors.error", exception="AccessDeniedException", status=403, operation="DeleteVectors"
    )

    class Broken(Version):
        def passages(self) -> Iterator[tuple[Passage, NDArray[np.float32]]]:
            for place, pair in enumerate(Version.passages(self)):
                if place == 2600:
                    raise IndexCorrupt("a segment is damaged")
                yield pair

    with pytest.raises(IndexCorrupt):
        house.loader().load(Broken(passages))
    assert (house.held().status, house.held().previous) == ("loading", None)
    written = len(house.stored())
    assert written >= 2000
    house.service.calls.clear()
    loaded = house.loader().load(Version(passages))
    assert (loaded.kept, loaded.put) == (written, 3000 - written)
    assert house.held().status == "ready"


def test_throttles_are_waited_out(house: House) -> None:
    house.service.faults.arm("s3vectors.throttle", times=5)
    waited: list[float] = []
    house.loader(pause=lambda seconds, _: waited.append(seconds)).load(Version([BELL, LAMP]))
    assert len(waited) == 5
    assert house.held().status == "ready"


def test_more_than_the_index_takes_in_a_second_gets_there(house: House) -> None:
    house.loader().load(Version([said(n, f"word{n}") for n in range(4200)]))
    assert len(house.stored()) == 4200


def test_what_cannot_pass_is_not_waited_for(house: House) -> None:
    house.service.faults.arm("s3vectors.error", exception="AccessDeniedException", status=403, operation="PutVectors")
    with pytest.raises(IndexUnavailable, match="AccessDenied"):
        house.loader(pause=lambda *_: pytest.fail("waited")).load(Version([BELL]))


def test_of_two_loads_at_once_the_first_finds_out(house: House) -> None:
    class Overtaken(Version):
        def passages(self) -> Iterator[tuple[Passage, NDArray[np.float32]]]:
            yield from Version.passages(self)
            house.load(LAMP, version="000003-c")

    with pytest.raises(PublishConflict):
        house.loader().load(Overtaken([BELL], "000002-b"))
    assert (house.held().status, house.held().version) == ("ready", "000003-c")
    assert {key.split("/")[1] for key in house.stored()} == {"m2"}


def test_whoever_writes_beside_the_load_is_noticed(house: House) -> None:
    class Disturbed(Version):
        def passages(self) -> Iterator[tuple[Passage, NDArray[np.float32]]]:
            yield from Version.passages(self)
            house.client().put_vectors(
                indexArn=house.arn, vectors=[{"key": "stranger", "data": {"float32": [1.0] * 64}}]
            )

    with pytest.raises(IndexUnavailable, match=r"holds 2 passages where version 000001-a has 1"):
        house.loader().load(Disturbed([BELL]))
    assert house.held().status == "loading"
    house.load(BELL)
    assert (house.held().status, len(house.stored())) == ("ready", 1)


def test_a_load_sets_up_full_text_search_in_a_language(house: House) -> None:
    house.loader().load(Version([BELL]), language="de")
    described = house.client().get_index(indexArn=house.arn)["index"]["metadataConfiguration"]
    assert [(one["metadataKey"], one["language"]) for one in described["textSearchConfigurations"]] == [
        ("_text", "de"),
        ("_context", "de"),
    ]
    with pytest.raises(IndexMismatch, match="with the analyzer de, not standard"):
        house.loader().load(Version([BELL]))


def test_an_index_in_classic_mode_is_brought_to_enhanced(house: House) -> None:
    house.vectors.index(house.arn).description["indexMode"] = "CLASSIC"
    house.load(BELL)
    assert house.client().get_index(indexArn=house.arn)["index"]["indexMode"] == "ENHANCED"


@pytest.mark.parametrize(
    ("over", "told"),
    [
        ({"dimension": 32}, "32 dimensions, not 64"),
        ({"distanceMetric": "euclidean"}, "the metric euclidean, not cosine"),
        ({"metadataConfiguration": {}}, "the non-filterable keys none, not _text, _context, _passage"),
    ],
)
def test_an_index_made_with_other_settings_is_refused_before_anything_is_written(
    house: House, over: dict[str, Any], told: str
) -> None:
    house.arn = make_index(house.service, **over)
    with pytest.raises(IndexMismatch, match=told):
        house.load(BELL)
    assert house.store.objects == {}


def test_an_index_that_is_not_there_is_named(house: House) -> None:
    house.client().delete_index(indexArn=house.arn)
    with pytest.raises(IndexMissing, match="could not be found"):
        house.load(BELL)


def test_a_passage_beyond_the_services_size_lies_beside_the_index(house: House) -> None:
    long = said(5, "鐘" * 20_000 + " P0700")
    house.load(BELL, long)
    (key,) = (key for key in house.store.objects if key.startswith(OVERFLOW_PREFIX))
    hits = house.search("鐘鐘鐘").hits
    assert hits[0].passage == long
    house.load(BELL, version="000002-b")
    assert key not in house.store.objects
    assert house.search("bell").hits[0].passage == BELL


def test_a_missing_or_changed_passage_beside_the_index_is_told(house: House) -> None:
    house.load(said(5, "鐘" * 20_000))
    (key,) = (key for key in house.store.objects if key.startswith(OVERFLOW_PREFIX))
    house.store.objects[key] += b" "
    with pytest.raises(IndexCorrupt, match="differs from the one that was written"):
        house.search("鐘鐘")
    del house.store.objects[key]
    with pytest.raises(IndexCorrupt, match="is missing"):
        house.search("鐘鐘")


def test_no_passage_of_any_size_is_refused_by_the_service(house: House) -> None:
    sizes = (1, 6_000, 6_660, 6_700, 13_000, 19_900, 20_100, 40_000)
    passages = [said(n, '鐘"' * (size // 2) + "x") for n, size in enumerate(sizes)]
    many = {f"key-{n}-{'k' * 50}": "v" * 1000 for n in range(32)}
    passages.append(said(99, "A bell", **many))
    house.load(*passages)
    hits = house.search("a bell", filters=Filters(metadata={next(iter(many)): ("v" * 1000,)})).hits
    assert [hit.passage for hit in hits] == passages[-1:]


def test_a_bug_is_no_failure_of_the_engine(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.load(BELL)
    retriever = house.retriever()
    monkeypatch.setattr(retriever, "_client", object())
    with pytest.raises(AttributeError):
        retriever.search(SearchQuery("bell", readable=EVERYTHING))
    with pytest.raises(ClientError):
        house.service.client("s3vectors").get_index(indexArn=house.arn + "x")


def test_more_than_the_service_returns_is_not_silently_less(house: House) -> None:
    house.load(*(make_passage(number) for number in range(MAX_TOP_K + 5)))
    capped = house.search("Line", top_k=MAX_TOP_K + 5)
    assert (len(capped.hits), [note.code for note in capped.degraded]) == (MAX_TOP_K, ["top_k_capped"])
    assert house.search("Line", top_k=MAX_TOP_K).degraded == ()
    assert house.search("Line", top_k=MAX_TOP_K + 5, min_score=0.99).degraded == ()
