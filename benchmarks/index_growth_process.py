"""What the growth benchmark has done by processes of their own: a reader that starts cold, a writer, a peer.

``python -m benchmarks.index_growth_process`` reads its task as JSON from its input and prints what came of it; the
benchmark starts it, with the store's endpoint in the environment.

Memory is limited by ``RLIMIT_DATA``: the kernel counts the process's private writable mappings, the untouched ones and
the stacks of all threads (8 MiB each) included, so that it refuses more than a limit on resident memory, as a function
has it, would.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.cold_start_data import BUCKET, DIMENSIONS, MODEL_ID, Vectors
from benchmarks.index_growth_tasks import BLOCKS, MODES, TOP_K, Added, Compared, Memory, Replaced, Served, Task
from benchmarks.s3_manners import Store

if TYPE_CHECKING:
    from cicada.corpus.indexable import Indexable
    from cicada.index.loaded_index import LoadedIndex, RowScope
    from cicada.index.reader import IndexReader
    from cicada.retrieval.ports import SearchMode
    from cicada.retrieval.ranking import Ranking

DEPTH = 2 * TOP_K
"""What the retriever asks a ranking for: texts in several languages are one hit."""
WARM_UP = 8
"""Queries before those that are measured."""
TURN = 16
"""Queries of one engine before it is the other's turn."""
PEER_PASSES = 4
TEXT_READS = 32
"""Searches whose texts are read."""
ADDED = 100
BUDGET_S = 120.0
"""For becoming warm."""


@dataclass(frozen=True)
class _Embedder:
    """Vectors that are known beforehand."""

    vectors: dict[str, list[float]]
    model_id: str = MODEL_ID
    dimensions: int = DIMENSIONS

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:  # noqa: ARG002 (the port's)
        return [self.vectors[text] for text in texts]


@dataclass(frozen=True)
class _Queries:
    """Distinct words, and vectors in turn."""

    texts: list[str]
    vectors: Vectors

    def vector(self, number: int) -> Vectors:
        found: Vectors = self.vectors[number % len(self.vectors)]
        return found

    def embedder(self) -> _Embedder:
        return _Embedder({text: self.vector(number).tolist() for number, text in enumerate(self.texts)})

    def rank(self, index: LoadedIndex, number: int, mode: SearchMode) -> Ranking:
        """A search without its texts."""
        from cicada.retrieval.ranking import rank

        return rank(index, _everything(index), self.texts[number], self.vector(number), mode, MODEL_ID, DEPTH)


def _queries(task: Task) -> _Queries:
    return _Queries(task.texts, task.prepared.queries()[0])


def _reader(task: Task) -> IndexReader:
    from cicada.index.reader import IndexReader
    from cicada.index.s3_direct import DirectS3Store

    return IndexReader(
        DirectS3Store(BUCKET), embedding_model_id=MODEL_ID, dimensions=DIMENSIONS, text_bytes=task.text_bytes
    )


def serve(task: Task) -> Served:
    """Search for the first time, become warm, and search on."""
    from cicada.retrieval.ports import SearchQuery
    from cicada.retrieval.shards import ShardRetriever
    from cicada.rights import EVERYTHING

    store = Store(os.environ["AWS_ENDPOINT_URL"])
    queries = _queries(task)
    embedder = queries.embedder()
    at_start = Memory.now()
    cpu, begun = time.process_time(), time.monotonic()
    reader = _reader(task)
    ShardRetriever(reader, embedder).search(
        SearchQuery(task.texts[task.number], top_k=TOP_K, min_score=0.0, readable=EVERYTHING)
    )
    first_at, first_cpu_s = time.monotonic(), time.process_time() - cpu
    _until(lambda: reader.current().warm)
    warm_at = time.monotonic()
    index = reader.current()
    text_bytes = sum(segment.sections.size(BLOCKS) for segment in index.segments)
    if text_bytes <= task.text_bytes:
        _until(lambda: all(segment.sections.resident(BLOCKS) is not None for segment in index.segments))
    first, warm = store.counts(until=first_at), store.counts(until=warm_at)
    searches: dict[str, list[float]] = {mode: _timed(queries, index, mode) for mode in MODES}

    rankings = [queries.rank(index, number, "hybrid") for number in range(TEXT_READS)]
    store.count_anew()
    text_cpu_ms, text_s = _texts_read(index, rankings)
    text_gets = store.counts().gets
    sections: dict[str, int] = {}
    for segment in index.segments:
        for name in segment.sections.names():
            sections[name] = sections.get(name, 0) + segment.sections.size(name)
    head_bytes = sum(segment.entry.head_bytes for segment in index.segments)
    return Served(
        first_s=first_at - begun,
        first_cpu_s=first_cpu_s,
        first_gets=first.gets,
        first_bytes=first.bytes,
        first_rounds=first.rounds,
        warm_after_s=warm_at - begun,
        warm_gets=warm.gets,
        warm_bytes=warm.bytes,
        section_bytes=sections,
        head_bytes=head_bytes,
        segments=len(index.segments),
        resident_bytes=head_bytes + sum(segment.sections.resident_bytes() for segment in index.segments),
        at_start=at_start,
        warm=Memory.now(),
        search_cpu_ms=searches,
        text_cpu_ms=text_cpu_ms,
        text_s=text_s,
        text_gets=text_gets / TEXT_READS,
    )


def _texts_read(index: LoadedIndex, rankings: Sequence[Ranking]) -> tuple[list[float], list[float]]:
    """Of the texts of each ranking's best: CPU milliseconds, and seconds."""
    scope = _everything(index)
    cpu_ms, wall_s = [], []
    for ranking in rankings:
        cpu, begun = time.process_time(), time.monotonic()
        index.passages(scope, ranking.rows[:TOP_K])
        wall_s.append(time.monotonic() - begun)
        cpu_ms.append(1000 * (time.process_time() - cpu))
    return cpu_ms, wall_s


def _everything(index: LoadedIndex) -> RowScope:
    """What the retriever searches where nothing is filtered."""
    from cicada.retrieval.ports import Filters
    from cicada.retrieval.shards import row_filter

    return index.scope(row_filter(Filters()))


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + BUDGET_S
    while not true():
        if time.monotonic() > deadline:
            sys.exit("the reader did not become warm")
        time.sleep(0.002)


def _timed(queries: _Queries, index: LoadedIndex, mode: SearchMode) -> list[float]:
    """CPU milliseconds of each query, the first ones left out."""
    taken: list[float] = []
    for number in range(len(queries.texts)):
        cpu = time.process_time()
        queries.rank(index, number, mode)
        taken.append(1000 * (time.process_time() - cpu))
    return taken[WARM_UP:]


def replace(task: Task) -> Replaced:
    """Have a version published whose segments are all others, with the same content, under a warm reader."""
    from cicada.index.manifest import Manifest, new_segment_key
    from cicada.index.s3_direct import DirectS3Store
    from cicada.index.versions import must_be_published, publish

    store = DirectS3Store(BUCKET)
    current = must_be_published(store)
    reader = _reader(task)
    reader.warm_up()
    queries = _queries(task)
    _timed(queries, reader.current(), "hybrid")
    before = Memory.now()
    entries = []
    bucket = Path(task.folder) / "buckets" / BUCKET
    for entry in current.manifest.segments:
        key = new_segment_key(entry.sha256)
        os.link(bucket / entry.key, bucket / key)
        entries.append(entry.model_copy(update={"key": key}))
    manifest = Manifest.create(
        number=current.manifest.number + 1,
        created_at=datetime.now(UTC),
        embedding_model_id=MODEL_ID,
        dimensions=DIMENSIONS,
        analyzer_version=current.manifest.analyzer_version,
        allow_partial=False,
        segments=tuple(entries),
        previous=current.manifest.version,
    )
    publish(store, manifest, replaces=current.etag)
    begun = time.monotonic()
    reader.refresh()
    load_s = time.monotonic() - begun
    index = reader.current()
    if index.manifest.version != manifest.version or not index.warm:
        sys.exit("the new version was not loaded")
    queries.rank(index, 0, "hybrid")
    return Replaced(load_s, before, Memory.now())


def publish_more(task: Task) -> Added:
    """Add passages by the writer that ``cicada load`` uses."""
    import boto3

    from cicada.index.s3 import CLIENT_CONFIG, S3Store
    from cicada.index.writer import IndexWriter

    items = list(_passages(task.rows, islice(task.texts, ADDED)))
    drawn = np.random.default_rng(3).standard_normal((ADDED, DIMENSIONS))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    texts = [item.parts[0].text for item in items]
    embedder = _Embedder(dict(zip(texts, drawn.tolist(), strict=True)))
    store = Store(os.environ["AWS_ENDPOINT_URL"])
    client = boto3.client("s3", config=CLIENT_CONFIG)
    cpu, begun = time.process_time(), time.monotonic()
    written = IndexWriter(S3Store(client, BUCKET), embedder).add("passages", items)
    wall_s, cpu_s = time.monotonic() - begun, time.process_time() - cpu
    counts = store.counts()
    if written.passages != task.rows + ADDED:
        sys.exit(f"{written.passages:,} passages after {ADDED} were added to {task.rows:,}")
    lengths = [len(item.passage.model_dump_json(by_alias=True).encode()) for item in items]
    return Added(
        passages=ADDED,
        wall_s=wall_s,
        cpu_s=cpu_s,
        gets=counts.gets,
        writes=counts.writes,
        bytes=counts.bytes,
        memory=Memory.now(),
        passage_bytes=float(np.mean(lengths)),
    )


def _passages(rows: int, texts: Any) -> list[Indexable]:
    from cicada.corpus.indexable import Indexable, WeightedText
    from cicada.corpus.passages import DocumentLocator, Passage

    items = []
    for number, text in enumerate(texts, rows):
        locator = DocumentLocator(source="supplement", title="supplement", page=number - rows + 1, section=None)
        passage = Passage(id=f"p{number}", collection="passages", text=text, context=text, locator=locator)
        items.append(Indexable(passage, (WeightedText(text, 1.0),)))
    return items


def compare(task: Task) -> Compared:
    """Search by meaning alone in turns with FAISS's exact scan of float32, both warm."""
    try:
        import faiss
    except ImportError:
        sys.exit("faiss is missing: pip install -r requirements-bench.lock, or --no-faiss")
    faiss.omp_set_num_threads(1)
    flat = faiss.IndexFlatIP(DIMENSIONS)
    for _, block, _ in task.prepared.blocks():
        flat.add(block)
    reader = _reader(task)
    reader.warm_up()
    index = reader.current()
    queries = _queries(task)
    _, _, nearest = task.prepared.queries()
    count = len(queries.vectors)
    found: dict[int, list[tuple[int, int]]] = {}
    ours: list[float] = []
    theirs: list[float] = []

    def search(number: int) -> None:
        found[number] = queries.rank(index, number, "dense").rows[:TOP_K]

    def search_flat(number: int) -> None:
        flat.search(queries.vectors[number : number + 1], TOP_K)

    for _ in range(PEER_PASSES):
        for start in range(0, count, TURN):
            for one, taken in ((search, ours), (search_flat, theirs)):
                one(start)  # the other engine's rows are in the caches
                for number in range(start, min(start + TURN, count)):
                    cpu = time.process_time()
                    one(number)
                    taken.append(1000 * (time.process_time() - cpu))
    recall = np.mean([_recall(index, found[number], nearest[number].tolist()) for number in range(count)])
    return Compared(ours, theirs, 4 * DIMENSIONS * task.rows, float(recall))


def _recall(index: LoadedIndex, rows: list[tuple[int, int]], nearest: list[int]) -> float:
    passages = index.passages(_everything(index), rows)
    return len({int(passage.id.removeprefix("p")) for passage in passages} & set(nearest)) / len(nearest)


TASKS: dict[str, Callable[[Task], Any]] = {
    "serve": serve,
    "replace": replace,
    "publish": publish_more,
    "peer": compare,
}


def main() -> int:
    """Do the task."""
    task = Task(**json.load(sys.stdin))
    if task.limit_mb is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (task.limit_mb * 2**20, task.limit_mb * 2**20))
    print(json.dumps(asdict(TASKS[task.name](task))))
    sys.stdout.flush()
    os._exit(0)  # nothing is left to tidy up


if __name__ == "__main__":
    main()
