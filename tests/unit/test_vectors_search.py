"""Vector search: what it finds, in memory and by range, with filters, and over any cut into segments."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cicada.errors import IndexMismatch
from cicada.index.segment_format import Sections, Span
from cicada.index.vectors import scan as scan_module
from cicada.index.vectors import search as search_module
from cicada.index.vectors.encoding import encode_vectors
from cicada.index.vectors.part import VectorPart, decode_vectors
from cicada.index.vectors.search import cosines, search_vectors
from tests.support.sections import MemorySections, gather_resident

DIMENSIONS = 96


class OnStore:
    """Sections of which only the head is in memory."""

    def __init__(self, sections: Sections) -> None:
        assert isinstance(sections, MemorySections)
        self.stored = sections
        self.meta, self.head, self.size = sections.meta, sections.head, sections.size

    def resident(self, name: str) -> None:
        return None


class Store:
    """Reads spans of sections that are not in memory, and counts."""

    def __init__(self) -> None:
        self.rounds: list[list[Span]] = []

    def __call__(self, spans: Sequence[Span]) -> list[memoryview]:
        self.rounds.append(list(spans))
        return gather_resident([in_memory(span) for span in spans])


def in_memory(span: Span) -> Span:
    assert isinstance(span.sections, OnStore)
    return Span(span.sections.stored, span.name, span.start, span.length)


class Corpus:
    """Clustered unit vectors with queries near them, cut into segments."""

    def __init__(self, count: int, pieces: int = 1, dimensions: int = DIMENSIONS, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        centres = generator.standard_normal((40, dimensions), dtype=np.float32)
        drawn = centres[generator.integers(0, 40, count + 50)]
        drawn += generator.standard_normal(drawn.shape, dtype=np.float32)
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        self.vectors, self.queries = drawn[:count], drawn[count:]
        self.parts: list[VectorPart] = []
        self.inputs: list[np.ndarray] = []
        for piece in np.array_split(np.arange(count), pieces):
            order, encoded = encode_vectors(self.vectors[piece])
            self.parts.append(VectorPart(MemorySections({"vectors": encoded}), len(piece), dimensions))
            self.inputs.append(piece[order])

    def cold(self) -> list[VectorPart]:
        return [VectorPart(OnStore(part.sections), part.count, part.dimensions) for part in self.parts]

    def found(self, hits) -> list[int]:
        """The hits as positions in ``vectors``."""
        return [int(self.inputs[segment][row]) for segment, row in zip(hits.segment, hits.row, strict=True)]

    def masks(self, allowed: np.ndarray) -> list[np.ndarray]:
        return [allowed[inputs] for inputs in self.inputs]

    def best(self, query: np.ndarray, allowed: np.ndarray | None = None, limit: int = 10) -> set[int]:
        scores = self.vectors @ query
        if allowed is not None:
            scores = np.where(allowed, scores, -np.inf)
        return set(np.argsort(-scores)[:limit].tolist())

    def recall(self, parts, allowed: np.ndarray | None = None, gather=gather_resident, limit: int = 10) -> float:
        masks = [None] * len(parts) if allowed is None else self.masks(allowed)
        shares = []
        for query in self.queries:
            best = self.best(query, allowed, limit)
            hits = search_vectors(parts, query, masks, limit, gather)
            shares.append(len(best & set(self.found(hits))) / len(best))
        return float(np.mean(shares))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus(12_000)


@pytest.fixture(scope="module")
def pieces() -> Corpus:
    return Corpus(12_000, pieces=5)


def search(corpus: Corpus, query: np.ndarray, limit: int = 10, parts=None, allowed=None, gather=gather_resident):
    parts = corpus.parts if parts is None else parts
    return search_vectors(parts, query, allowed or [None] * len(parts), limit, gather)


# --- in memory ---


def test_the_nearest_rows_are_found(corpus):
    assert corpus.recall(corpus.parts) >= 0.98


def test_the_nearest_rows_are_found_when_only_the_likely_clusters_are_scanned(corpus, monkeypatch):
    monkeypatch.setattr(scan_module, "ALWAYS_SCANNED_ROWS", 2_000)
    assert corpus.recall(corpus.parts) >= 0.95


@pytest.mark.parametrize("pieces", [1, 3])
def test_every_row_finds_itself(pieces):
    corpus = Corpus(6_000, pieces)
    for position in range(0, 6_000, 97):
        hits = search(corpus, corpus.vectors[position], limit=1)
        assert corpus.found(hits) == [position]
        assert hits.cosine[0] == pytest.approx(1, abs=0.01)


def test_hits_are_the_best_first_with_cosines_close_to_the_true_ones(corpus):
    query = corpus.queries[0]
    hits = search(corpus, query, limit=50)
    assert len(hits.row) == 50
    assert (np.diff(hits.cosine) <= 0).all()
    assert hits.cosine == pytest.approx(corpus.vectors[corpus.found(hits)] @ query, abs=0.005)


def test_a_query_may_have_any_length(corpus):
    short, long = search(corpus, corpus.queries[0]), search(corpus, 1000 * corpus.queries[0])
    assert short.row.tolist() == long.row.tolist()
    assert short.cosine == pytest.approx(long.cosine, abs=1e-5)


def test_more_hits_than_rows_are_all_rows():
    corpus = Corpus(30)
    assert sorted(corpus.found(search(corpus, corpus.queries[0], limit=100))) == list(range(30))


def test_many_hits_are_found_too(corpus):
    assert corpus.recall(corpus.parts, limit=300) >= 0.98


def test_no_hits_are_wanted_or_nothing_is_there(corpus):
    assert len(search(corpus, corpus.queries[0], limit=0).row) == 0
    assert len(search_vectors([], corpus.queries[0], [], 10, gather_resident).row) == 0


def test_the_ranking_does_not_depend_on_the_cut_into_segments(corpus, pieces):
    assert pieces.recall(pieces.parts) >= 0.98
    for query in corpus.queries[:10]:
        whole, cut = search(corpus, query), search(pieces, query)
        assert cut.cosine == pytest.approx(whole.cosine, abs=0.005)


def test_small_segments_beside_a_large_one_are_searched_too():
    large, small = Corpus(8_000), Corpus(10, seed=9)
    parts = [large.parts[0], small.parts[0]]
    for position in range(10):
        hits = search_vectors(parts, small.vectors[position], [None, None], 1, gather_resident)
        assert hits.segment.tolist() == [1]
        assert small.inputs[0][hits.row[0]] == position


def test_searches_on_several_threads_do_not_disturb_each_other(corpus):
    alone = [search(corpus, query).row.tolist() for query in corpus.queries]
    with ThreadPoolExecutor(8) as pool:
        together = [hits.row.tolist() for hits in pool.map(lambda query: search(corpus, query), corpus.queries)]
    assert together == alone


# --- filters ---


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("always", [1_000, 65_536])
def test_a_filter_comes_before_the_ranking(corpus, monkeypatch, share, always):
    monkeypatch.setattr(scan_module, "ALWAYS_SCANNED_ROWS", always)
    allowed = np.random.default_rng(1).random(12_000) < share
    masks = corpus.masks(allowed)
    hits = search(corpus, corpus.queries[0], allowed=masks)
    assert len(hits.row) == 10
    assert allowed[corpus.found(hits)].all()
    assert corpus.recall(corpus.parts, allowed) >= 0.95


def test_a_filter_far_from_the_query_still_gives_its_best_rows(corpus):
    query = corpus.queries[0]
    far = np.zeros(12_000, dtype=bool)
    far[np.argsort(corpus.vectors @ query)[:5_000]] = True
    hits = search(corpus, query, allowed=corpus.masks(far))
    best = np.sort((corpus.vectors @ query)[far])[::-1][:10]  # hardly apart: too near for the same rows, not for others
    assert hits.cosine == pytest.approx(best, abs=0.005)


def test_segments_without_an_allowed_row_are_left_out(pieces):
    allowed = [np.zeros(part.count, dtype=bool) for part in pieces.parts]
    assert len(search(pieces, pieces.queries[0], allowed=allowed).row) == 0
    allowed[3][7] = True
    hits = search(pieces, pieces.queries[0], allowed=allowed)
    assert (hits.segment.tolist(), hits.row.tolist()) == ([3], [7])


def test_nothing_allowed_in_segments_on_the_store_reads_nothing(pieces):
    store = Store()
    allowed = [np.zeros(part.count, dtype=bool) for part in pieces.parts]
    assert len(search(pieces, pieces.queries[0], parts=pieces.cold(), allowed=allowed, gather=store).row) == 0
    assert store.rounds == []


# --- odd vectors ---


def _parts_of(vectors: np.ndarray) -> list[VectorPart]:
    _, encoded = encode_vectors(vectors)
    return [VectorPart(MemorySections({"vectors": encoded}), *vectors.shape)]


@pytest.mark.parametrize("count", [1, 2])
def test_a_segment_of_one_or_two_rows(count):
    vectors = np.eye(count, 5, dtype=np.float32)
    hits = search_vectors(_parts_of(vectors), vectors[count - 1], [None], 10, gather_resident)
    assert hits.cosine[0] == pytest.approx(1, abs=1e-3)
    assert len(hits.row) == count


def test_a_segment_without_rows_has_no_hits():
    (part,) = _parts_of(np.zeros((0, 5), dtype=np.float32))
    assert len(search_vectors([part], np.ones(5, dtype=np.float32), [None], 10, gather_resident).row) == 0
    assert decode_vectors(part, gather_resident).shape == (0, 5)


def test_equal_rows_are_ranked_by_segment_and_row():
    vectors = np.tile(np.eye(1, 8, dtype=np.float32), (9_000, 1))
    parts = _parts_of(vectors) + _parts_of(vectors[:50])
    hits = search_vectors(parts, vectors[0], [None, None], 20, gather_resident)
    assert hits.cosine == pytest.approx(np.ones(20), abs=1e-3)
    places = list(zip(hits.segment.tolist(), hits.row.tolist(), strict=True))
    assert places == sorted(places)


def test_a_row_of_zeros_is_found_last():
    vectors = np.concatenate([np.eye(6, dtype=np.float32), np.zeros((1, 6), dtype=np.float32)])
    order, encoded = encode_vectors(vectors)
    part = VectorPart(MemorySections({"vectors": encoded}), 7, 6)
    hits = search_vectors([part], np.ones(6, dtype=np.float32), [None], 7, gather_resident)
    assert order[hits.row[-1]] == 6
    assert hits.cosine[-1] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("query", [np.zeros(DIMENSIONS), np.full(DIMENSIONS, np.nan), np.ones(DIMENSIONS + 1)])
def test_a_query_without_a_direction_or_of_other_dimensions_is_refused(corpus, query):
    with pytest.raises(ValueError, match="query"):
        search(corpus, query.astype(np.float32))


def test_a_mask_of_other_rows_is_refused(corpus):
    with pytest.raises(ValueError, match="mask"):
        search(corpus, corpus.queries[0], allowed=[np.ones(5, dtype=bool)])


def test_segments_of_other_dimensions_are_told_apart(corpus):
    other = Corpus(20, dimensions=32)
    with pytest.raises(IndexMismatch):
        search_vectors([*corpus.parts, *other.parts], corpus.queries[0], [None, None], 10, gather_resident)


# --- by range ---


def test_a_cold_search_reads_once_and_finds_what_a_warm_one_finds(pieces):
    store = Store()
    cold = pieces.cold()
    for query in pieces.queries[:5]:
        assert search(pieces, query, parts=cold, gather=store).row.tolist() == search(pieces, query).row.tolist()
    assert len(store.rounds) == 5


def test_a_cold_search_of_much_reads_only_the_likeliest_clusters(corpus, monkeypatch):
    size = corpus.parts[0].sections.size("vectors.rows")
    monkeypatch.setattr(search_module, "COLD_BYTES", size // 3)
    monkeypatch.setattr(search_module, "JOINED_GAP_BYTES", 0)
    store = Store()
    assert corpus.recall(corpus.cold(), gather=store) >= 0.9
    read = [sum(span.length for span in spans) for spans in store.rounds]
    assert max(read) < size / 2


def test_ranges_are_joined_until_they_are_few(corpus, monkeypatch):
    monkeypatch.setattr(search_module, "COLD_BYTES", corpus.parts[0].sections.size("vectors.rows") // 3)
    monkeypatch.setattr(search_module, "JOINED_GAP_BYTES", 1)
    monkeypatch.setattr(search_module, "MAX_RANGES", 2)
    store = Store()
    search(corpus, corpus.queries[0], parts=corpus.cold(), gather=store)
    assert len(store.rounds[0]) <= 2


def test_a_cold_search_with_a_filter_reads_where_allowed_rows_are(corpus, monkeypatch):
    monkeypatch.setattr(search_module, "COLD_BYTES", 200_000)
    monkeypatch.setattr(search_module, "JOINED_GAP_BYTES", 0)
    allowed = np.zeros(12_000, dtype=bool)
    allowed[np.argsort(corpus.vectors @ corpus.queries[0])[:40]] = True
    store = Store()
    hits = search(corpus, corpus.queries[0], parts=corpus.cold(), allowed=corpus.masks(allowed), gather=store)
    assert len(hits.row) == 10
    assert allowed[corpus.found(hits)].all()


def test_segments_in_memory_and_on_the_store_are_one_ranking(pieces):
    store = Store()
    mixed = [
        cold if number % 2 else warm
        for number, (warm, cold) in enumerate(zip(pieces.parts, pieces.cold(), strict=True))
    ]
    for query in pieces.queries[:5]:
        warm = search(pieces, query)
        hits = search(pieces, query, parts=mixed, gather=store)
        assert hits.cosine == pytest.approx(warm.cosine, abs=1e-5)
    assert all(span.sections in (mixed[1].sections, mixed[3].sections) for spans in store.rounds for span in spans)


# --- given rows, and back ---


def test_the_cosines_of_given_rows_are_those_of_the_search(pieces):
    query = pieces.queries[0]
    hits = search(pieces, query, limit=40)
    shuffled = np.random.default_rng(0).permutation(40)
    segment, row = hits.segment[shuffled], hits.row[shuffled]
    assert cosines(pieces.parts, query, segment, row, gather_resident) == pytest.approx(hits.cosine[shuffled])
    store = Store()
    assert cosines(pieces.cold(), query, segment, row, store) == pytest.approx(hits.cosine[shuffled], abs=1e-6)
    assert len(store.rounds) == 1


def test_a_row_may_be_asked_for_twice_or_not_at_all(corpus):
    zero = np.zeros(2, dtype=np.intp)
    first, second = cosines(corpus.parts, corpus.queries[0], zero, zero + 5, gather_resident)
    assert first == second
    assert len(cosines(corpus.parts, corpus.queries[0], zero[:0], zero[:0], gather_resident)) == 0


@pytest.mark.parametrize(("segment", "row"), [(1, 0), (-1, 0), (0, 12_000), (0, -1)])
def test_rows_that_do_not_exist_have_no_cosine(corpus, segment, row):
    with pytest.raises(ValueError, match=r"unknown (segment|row)"):
        cosines(corpus.parts, corpus.queries[0], np.array([segment]), np.array([row]), gather_resident)


def test_decoding_gives_the_rows_back_and_coding_them_again_loses_nothing(corpus):
    decoded = decode_vectors(corpus.parts[0], gather_resident)
    assert np.allclose(decoded, corpus.vectors[corpus.inputs[0]], atol=5e-4)
    order, encoded = encode_vectors(decoded)
    again = decode_vectors(VectorPart(MemorySections({"vectors": encoded}), *decoded.shape), gather_resident)
    assert np.array_equal(again, decoded[order])
