"""How long loading and searching the index take: ``OPENBLAS_NUM_THREADS=1 python -m benchmarks.retrieval_speed``.

Random unit vectors of 384 dimensions and synthetic passages, in a store in memory: what is measured is our own work
(checksums, opening, ranking, unpacking what is shown), not a network. The peer of a warm search is the bare numpy scan
that it cannot do without: ``vectors @ query`` over one contiguous matrix, and the best 20 of the result. One thread, as
in the function: waking OpenBLAS's other threads for one query costs more than they save.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from cicada.corpus.indexable import Indexable, Part
from cicada.corpus.passages import Passage, ScriptLocator
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter
from cicada.retrieval.ports import Filters, SearchQuery
from cicada.retrieval.shards import ShardRetriever
from tests.support.object_stores import InMemoryStore

DIMENSIONS = 384
REPEATS = 30
TOP_K = 20


class RandomEmbedder:
    """A random unit vector a text, at no cost."""

    model_id = "benchmark.random"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._generator = np.random.default_rng(0)

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:  # noqa: ARG002 (the port's)
        """One vector a text."""
        rows = self._generator.normal(size=(len(texts), DIMENSIONS))
        vectors: list[list[float]] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tolist()
        return vectors


def synthetic(count: int) -> list[Indexable]:
    """Passages of 100 to an episode, with texts of a usual length."""
    items = []
    for number in range(count):
        text = f"Line {number}: " + "and so they went on talking about the lake. " * 2
        locator = ScriptLocator(
            episode_id=f"ep{number // 100}",
            episode_name=f"Episode {number // 100}",
            chapter_id="c1",
            message_id=f"m{number}",
            speaker=f"speaker {number % 12}",
        )
        passage = Passage(id=f"m{number}", collection="script", text=text, context=text * 3, locator=locator)
        items.append(Indexable(passage, (Part(text, 1.0),)))
    return items


def median_ms(work: Callable[[], object]) -> float:
    """The median time of a piece of work, in milliseconds."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1000


def measure(count: int) -> None:
    """Print the times for one size."""
    store, embedder = InMemoryStore(), RandomEmbedder()
    IndexWriter(store, embedder).replace("script", synthetic(count))
    index_mb = sum(map(len, store.objects.values())) / 1e6
    reader = IndexReader(store, embedding_model_id=embedder.model_id, dimensions=DIMENSIONS)
    begin = time.perf_counter()
    index = reader.current()
    load_ms = (time.perf_counter() - begin) * 1000
    retriever = ShardRetriever(reader, embedder)
    matrix = np.concatenate([segment.vectors for segment in index.segments])
    query = matrix[0].copy()

    def bare() -> object:
        scores = matrix @ query
        best = np.argpartition(scores, -TOP_K)[-TOP_K:]
        return best[np.argsort(-scores[best])]

    bare_ms = median_ms(bare)
    search_ms = median_ms(lambda: retriever.search(SearchQuery("x", top_k=TOP_K, min_score=0.0)))
    one_episode = Filters(episodes=("ep1",))
    filtered_ms = median_ms(lambda: retriever.search(SearchQuery("x", one_episode, TOP_K, min_score=0.0)))
    reader.close()
    print(
        f"{count:>9,} {index_mb:8.1f} {load_ms:10.1f} {search_ms:10.2f} {filtered_ms:12.2f} {bare_ms:10.2f} "
        f"{search_ms / bare_ms:8.2f}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Time loading and searching.")
    parser.add_argument("rows", nargs="*", type=int, default=[1_000, 10_000, 100_000], help="sizes to measure")
    args = parser.parse_args(argv)
    print(f"OPENBLAS_NUM_THREADS={os.environ.get('OPENBLAS_NUM_THREADS', 'unset')}")
    print(
        f"{'passages':>9} {'MB':>8} {'load ms':>10} {'search ms':>10} {'filtered ms':>12} {'numpy ms':>10} {'ratio':>8}"
    )
    for count in args.rows:
        measure(count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
