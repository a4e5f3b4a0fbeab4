"""The cold start benchmark's corpora, made once: vectors, texts, an index of Cicada's and one of LanceDB's.

Vectors are unit length, from 2,000 Gaussian clusters of Zipf-weighted sizes whose axes' variances follow a power law;
queries are further draws, not in the corpus. Harder than real text, whose neighbours are nearer. Texts are draws from a
Zipf vocabulary; a query is four words of a passage.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 384
QUERIES = 64
CLUSTERS = 2_000
SPREAD = 0.7
"""Of a cluster, in the spread of the clusters' centres."""
VOCABULARY = 60_000
"""Words, of three syllables each."""
WORDS = (12, 36)
"""Of a text, at least and at most."""
SEGMENT_ROWS = 250_000
BLOCK_ROWS = 50_000
MODEL_ID = "benchmark.clusters"
BUCKET = "bench"
TABLE = "passages"

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Prepared:
    """A corpus on disk."""

    folder: Path
    rows: int

    @property
    def buckets(self) -> Path:
        """What a store is to serve."""
        return self.folder / "buckets"

    def lance(self, name: str) -> Path:
        """LanceDB's files, ``plain`` or ``indexed``."""
        return self.buckets / BUCKET / f"lance-{name}"

    def queries(self) -> tuple[Vectors, list[str], NDArray[np.intp]]:
        """The queries' vectors and words, and for each the ten nearest passages, nearest first."""
        told = json.loads((self.folder / "queries.json").read_text())
        return np.load(self.folder / "queries.npy"), told["texts"], np.array(told["nearest"])

    def blocks(self) -> Iterator[tuple[int, Vectors, list[str]]]:
        """The corpus, a block after the other: the first row's number, vectors and texts."""
        draw = _Draw()
        for start in range(0, self.rows, BLOCK_ROWS):
            count = min(BLOCK_ROWS, self.rows - start)
            yield start, draw.vectors(count, start + 1), draw.texts(count, start + 1)


class _Draw:
    """Draws of one distribution; the same seed gives the same."""

    def __init__(self) -> None:
        generator = np.random.default_rng(0)
        self._axes = (np.arange(1, DIMENSIONS + 1) ** -0.5).astype(np.float32)
        self._centres = generator.standard_normal((CLUSTERS, DIMENSIONS), np.float32) * self._axes
        self._sizes = _zipf(CLUSTERS)
        self._frequencies = _zipf(VOCABULARY)
        syllables = [consonant + vowel for consonant in "bdfgklmnprtvz" for vowel in "aeiou"]
        self._words = ["".join(word) for word in islice(product(syllables, repeat=3), VOCABULARY)]

    def vectors(self, count: int, seed: int) -> Vectors:
        generator = np.random.default_rng((1, seed))
        drawn = generator.standard_normal((count, DIMENSIONS), np.float32)
        drawn *= SPREAD * self._axes
        drawn += self._centres[generator.choice(CLUSTERS, count, p=self._sizes)]
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        return drawn

    def texts(self, count: int, seed: int) -> list[str]:
        generator = np.random.default_rng((2, seed))
        lengths = generator.integers(WORDS[0], WORDS[1] + 1, count)
        words = generator.choice(VOCABULARY, int(lengths.sum()), p=self._frequencies).tolist()
        ends = np.cumsum(lengths).tolist()
        return [
            " ".join(self._words[word] for word in words[end - length : end])
            for end, length in zip(ends, lengths.tolist(), strict=True)
        ]


def _zipf(count: int) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = 1.0 / np.arange(1, count + 1)
    weights /= weights.sum()
    return weights


def prepare(work: Path, rows: int, lance: Iterable[str] = ()) -> Prepared:
    """Make what is missing of a corpus of a size; what is there already is kept.

    Args:
        work: where corpora lie, a folder each.
        rows: passages.
        lance: LanceDB's files that are wanted, ``plain`` or ``indexed`` (IVF_PQ and BM25).
    """
    prepared = Prepared(work / str(rows), rows)
    (prepared.buckets / BUCKET).mkdir(parents=True, exist_ok=True)
    if not (prepared.folder / "queries.json").exists():
        _make_queries(prepared)
    index = prepared.buckets / BUCKET / "index"
    if not (index / "current.json").exists():  # written last
        shutil.rmtree(index, ignore_errors=True)
        _make_index(prepared)
    for name in lance:
        if not prepared.lance(name).exists():
            _make_lance(prepared, name)
    return prepared


def _make_queries(prepared: Prepared) -> None:
    draw = _Draw()
    vectors = draw.vectors(QUERIES, 0)
    scores = np.full((QUERIES, 10), -np.inf, np.float32)
    nearest = np.zeros((QUERIES, 10), np.intp)
    texts: list[str] = []
    for start, block, block_texts in prepared.blocks():
        if not texts:
            texts = [" ".join(dict.fromkeys(text.split()[:4])) for text in block_texts[:QUERIES]]
        found = np.hstack([scores, vectors @ block.T])
        best = np.argsort(-found, axis=1)[:, :10]
        numbers = np.hstack([nearest, np.broadcast_to(start + np.arange(len(block)), (QUERIES, len(block)))])
        scores, nearest = np.take_along_axis(found, best, 1), np.take_along_axis(numbers, best, 1)
    np.save(prepared.folder / "queries.npy", vectors)
    told = {"texts": texts, "nearest": nearest.tolist()}
    (prepared.folder / "queries.json").write_text(json.dumps(told))


def _make_index(prepared: Prepared) -> None:
    from cicada.corpus.indexable import Indexable, WeightedText
    from cicada.corpus.passages import DocumentLocator, Passage
    from cicada.index.lexical import ANALYZER_VERSION
    from cicada.index.manifest import Manifest, SegmentEntry
    from cicada.index.segment import SegmentContents, write_segment
    from cicada.index.versions import publish
    from tests.support.object_stores import InMemoryStore

    store = InMemoryStore()
    entries: list[SegmentEntry] = []
    items: list[Indexable] = []
    vectors: list[Vectors] = []

    def write() -> None:
        contents = SegmentContents.of("passages", items, np.concatenate(vectors))
        items.clear()
        vectors.clear()
        entries.append(write_segment(store, contents, MODEL_ID))
        _move(store.objects, prepared.buckets / BUCKET)

    for start, block, texts in prepared.blocks():
        if len(items) + len(block) > SEGMENT_ROWS:
            write()
        vectors.append(block)
        for number, text in enumerate(texts, start):
            source = f"book-{number // 1000}"
            passage = Passage(
                id=f"p{number}",
                collection="passages",
                text=text,
                context=text,
                locator=DocumentLocator(source=source, title=source, page=number % 1000 + 1, section=None),
            )
            items.append(Indexable(passage, (WeightedText(text, 1.0),)))
    write()
    manifest = Manifest.create(
        number=1,
        created_at=datetime.now(UTC),
        embedding_model_id=MODEL_ID,
        dimensions=DIMENSIONS,
        analyzer_version=ANALYZER_VERSION,
        allow_partial=False,
        segments=tuple(entries),
        previous=None,
    )
    publish(store, manifest, replaces=None)
    _move(store.objects, prepared.buckets / BUCKET)


def _move(objects: dict[str, bytes], bucket: Path) -> None:
    """Write objects as files, and forget them."""
    for key, data in objects.items():
        path = bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    objects.clear()


def _make_lance(prepared: Prepared, name: str) -> None:
    try:
        import lancedb
        import pyarrow as pa
    except ImportError as error:
        raise SystemExit("LanceDB is missing: pip install -r requirements-bench.lock, or --no-lancedb") from error
    schema = pa.schema([("id", pa.int64()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), DIMENSIONS))])

    def batches() -> Iterator[pa.RecordBatch]:
        for start, block, texts in prepared.blocks():
            flat = pa.FixedSizeListArray.from_arrays(pa.array(block.reshape(-1)), DIMENSIONS)
            yield pa.record_batch(
                [pa.array(np.arange(start, start + len(block))), pa.array(texts), flat], schema=schema
            )

    building = prepared.lance(name).with_suffix(".building")
    shutil.rmtree(building, ignore_errors=True)
    table = lancedb.connect(building).create_table(TABLE, batches(), schema=schema, mode="overwrite")
    if name == "indexed":
        lists = max(16, round(prepared.rows**0.5))
        table.create_index(metric="cosine", num_partitions=lists, num_sub_vectors=DIMENSIONS // 8, index_type="IVF_PQ")
        table.create_fts_index("text", stem=False, remove_stop_words=False)
    building.rename(prepared.lance(name))
