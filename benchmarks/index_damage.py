"""What becomes of a search over a damaged store: ``python -m benchmarks.index_damage --count 10000``.

Each run takes a small store with several versions of two collections, tombstones among them, tampers with one to three
of its objects (bits flipped, cut short, made longer, deleted, swapped, replaced by others, cut out, spliced, zeroed, or
garbage), opens it cold or whole, and searches by meaning, by words and by both, with and without filters. What must
come out is a clear error; or, to the passage and the score, what a published version holds; or, where the version
allows to do without a segment, what is left of one, and the number of passages that are missing. Anything else is
printed with its seed and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from cicada.errors import CicadaError
from cicada.index.reader import IndexReader
from cicada.index.versions import set_allow_partial
from cicada.index.writer import IndexWriter
from cicada.retrieval.ports import Filters, SearchQuery, SearchResult
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING
from tests.support.damage import damage
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages

QUERIES = (
    SearchQuery("Line word3 of script", top_k=50, min_score=0.0, readable=EVERYTHING),
    SearchQuery("Line 7 word2", top_k=50, min_score=0.0, mode="dense", readable=EVERYTHING),
    SearchQuery('word1 "of notes"', top_k=50, min_score=0.0, mode="keyword", readable=EVERYTHING),
    SearchQuery("Line word5", Filters(speakers=("Jon",)), top_k=50, min_score=0.0, readable=EVERYTHING),
    SearchQuery("Line word5", Filters(collections=("notes",)), top_k=50, min_score=0.0, readable=EVERYTHING),
)
Answers = tuple[tuple[tuple[str, str, str, float], ...], ...]
"""For each query its hits: collection, id, text and score."""


def published(*, partial: bool) -> tuple[dict[str, bytes], dict[str, Answers]]:
    """A store's objects, and what each of its versions answers."""
    store = InMemoryStore()
    writer = IndexWriter(store, WordEmbedder(), segment_rows=9)
    right: dict[str, Answers] = {}

    def note() -> None:
        answers, version = answer(store, eager=True)
        right[version] = answers

    writer.replace("script", indexable(make_passages(20)))
    note()
    writer.replace("notes", indexable(make_passages(6, collection="notes")))
    note()
    writer.delete("script", ["m3", "m11"])
    note()
    writer.add("script", indexable(make_passages(4, start=20)))
    note()
    if partial:
        set_allow_partial(store, True)
        note()
    return dict(store.objects), right


def answer(store: InMemoryStore, *, eager: bool) -> tuple[Answers, str]:
    """What the store answers, and of which version.

    Raises:
        CicadaError: it cannot.
    """
    results = search(store, eager=eager)
    return tuple(map(hits_of, results)), results[0].index_version


def search(store: InMemoryStore, *, eager: bool) -> list[SearchResult]:
    """Open the store and ask everything."""
    options: dict[str, Any] = {} if eager else {"eager_bytes": 0, "text_bytes": 0}
    reader = IndexReader(store, embedding_model_id="test.words", dimensions=64, refresh_interval_s=3600.0, **options)
    try:
        retriever = ShardRetriever(reader, WordEmbedder())
        return [retriever.search(query) for query in QUERIES]
    finally:
        reader.close()


def hits_of(result: SearchResult) -> tuple[tuple[str, str, str, float], ...]:
    """A result's hits, comparable."""
    return tuple((hit.passage.collection, hit.passage.id, hit.passage.text, round(hit.score, 5)) for hit in result.hits)


def verdict(objects: Mapping[str, bytes], right: Mapping[str, Answers], seed: int) -> tuple[str, list[str]]:
    """What became of one damaged store, and what was done to it."""
    rng = random.Random(seed)
    store = InMemoryStore()
    store.objects = dict(objects)
    done = damage(store.objects, rng)
    try:
        results = search(store, eager=rng.random() < 0.5)
    except CicadaError as error:
        return f"refused: {error.code}", done
    except Exception as error:  # what must not happen
        return f"CRASH: {type(error).__name__}: {error}", done
    if any(result.degraded for result in results):
        whole = {hit[:3] for answers in right.values() for hits in answers for hit in hits}
        stray = any(hit[:3] not in whole for result in results for hit in hits_of(result))
        return ("WRONG: a partial answer with strange passages" if stray else "partial, and said so"), done
    answers = tuple(map(hits_of, results))
    if answers == right.get(results[0].index_version):
        return "whole", done
    return "WRONG", done


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="damaged stores to search")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    options = parser.parse_args()
    logging.disable()
    began = time.perf_counter()
    stores = [published(partial=False), published(partial=True)]
    outcomes: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.count):
        outcome, done = verdict(*stores[seed % 2], seed)
        outcomes[outcome] += 1
        if outcome.startswith(("CRASH", "WRONG")):
            print(f"seed {seed}: {outcome}: {', '.join(done)}")
    for outcome, count in outcomes.most_common():
        print(f"{count:8,}  {outcome}")
    print(f"{options.count:8,}  in {time.perf_counter() - began:.0f} s")
    return int(any(outcome.startswith(("CRASH", "WRONG")) for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
