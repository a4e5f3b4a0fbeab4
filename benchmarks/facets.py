"""Counting and filtering by lists: ``python -m benchmarks.facets [--passages 100000]``.

Synthetic passages, 8 entities (Zipf-distributed over 50,000 names) and 2 codes each, of 50 workflows, in segments of
40,000 rows, searched through the library's own reader, warm. Beside it, in the same run and with answers checked to be
equal: a plain Python ``Counter`` over all passages' lists in memory, SQLite (in memory, with the indexes that serve
each query) and DuckDB (in memory, one thread). Medians of CPU time in milliseconds, and ratios to the library's.

Then what the entity graph costs: making it, neighbours, paths, and the most frequent pairs (beside a ``Counter`` of all
pairs and DuckDB's self-join). Last, what the lists add to an index: bytes a passage, what a cold filter reads, and the
time of a search that asks for no entity, with lists and without.
"""

from __future__ import annotations

import argparse
import itertools
import sqlite3
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers import peer
from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.index.loaded_index import LoadedIndex
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter
from cicada.retrieval.facets import ShardFacets
from cicada.retrieval.graph import EntityGraph
from cicada.retrieval.ports import Filters, SearchMode, SearchQuery
from cicada.retrieval.shards import ShardRetriever, row_filter
from cicada.rights import EVERYTHING
from tests.support.object_stores import InMemoryStore

MODEL_ID, DIMENSIONS = "bench.random", 64
NAMES, CODES, WORKFLOWS = 50_000, 5_000, 50
WORDS_A_PASSAGE, ENTITIES_A_PASSAGE, CODES_A_PASSAGE = 60, 8, 2
SEGMENT_ROWS = 40_000
LIMIT = 20
ROUNDS = 9

Counts = list[tuple[str, int]]


class RandomEmbedder:
    """Vectors drawn at random: meaning is not what is measured here."""

    model_id = MODEL_ID
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._generator = np.random.default_rng(5)

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """One vector a text; there is always time."""
        del time_budget_s
        drawn = self._generator.normal(size=(len(texts), DIMENSIONS))
        vectors: list[list[float]] = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).tolist()
        return vectors


def passages_of(count: int) -> Iterator[Passage]:
    """The corpus."""
    generator = np.random.default_rng(7)
    share = np.cumsum(1 / (np.arange(1, NAMES + 1) + 2.7) ** 1.05)
    drawn = np.searchsorted(share, generator.random((count, 2 * ENTITIES_A_PASSAGE)) * share[-1])
    codes = generator.integers(0, CODES, (count, CODES_A_PASSAGE))
    words = generator.integers(0, 20_000, (count, WORDS_A_PASSAGE))
    for number in range(count):
        text = " ".join(f"w{word}" for word in words[number].tolist())
        names = dict.fromkeys(f"Name of {name}" for name in drawn[number].tolist())
        yield Passage(
            id=f"p{number}",
            collection="shelf",
            text=text,
            context=text,
            locator=DocumentLocator(source=f"{number // 100}.pdf", title="", page=number % 100 + 1),
            metadata={"workflow_id": f"w{number % WORKFLOWS}"},
            entities=tuple(names)[:ENTITIES_A_PASSAGE],
            codes=tuple(dict.fromkeys(f"P{code:04}" for code in codes[number].tolist())),
        )


def index_of(passages: Sequence[Passage]) -> InMemoryStore:
    """An index of passages."""
    store = InMemoryStore()
    items = (Indexable(passage, (WeightedText(passage.text, 1.0),)) for passage in passages)
    IndexWriter(store, RandomEmbedder(), segment_rows=SEGMENT_ROWS).replace("shelf", items)
    return store


def reader_of(store: Any, **options: Any) -> IndexReader:
    """A reader that looks for no other version."""
    return IndexReader(store, embedding_model_id=MODEL_ID, dimensions=DIMENSIONS, refresh_interval_s=1e9, **options)


def median_ms(*works: Callable[[], Any]) -> list[float]:
    """CPU time of each, by turns: the medians of :data:`ROUNDS` runs, after one."""
    for work in works:
        work()
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, times in zip(works, taken, strict=True):
            before = time.process_time()
            work()
            times.append((time.process_time() - before) * 1000)
    return [statistics.median(times) for times in taken]


# --- the peers ---


class Sql:
    """The passages as tables: one of passages, one of their entities, one of their codes."""

    def __init__(self, connection: Any, passages: Sequence[Passage]) -> None:
        self._run = connection.execute
        self._run("CREATE TABLE passage (id INTEGER PRIMARY KEY, workflow TEXT)")
        rows = [(number, passage.metadata["workflow_id"]) for number, passage in enumerate(passages)]
        self._fill(connection, "passage", rows)
        for table in ("entities", "entity_codes"):
            self._run(f"CREATE TABLE {table} (passage INTEGER, value TEXT)")
            listed = [p.entities if table == "entities" else p.codes for p in passages]
            self._fill(connection, table, [(number, value) for number, values in enumerate(listed) for value in values])

    @staticmethod
    def _fill(connection: Any, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
            for column in connection.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchall():
                connection.execute(f"CREATE INDEX {table}_{column[0]} ON {table} ({column[0]})")
            connection.execute("ANALYZE")
            return
        first, second = (list(column) for column in zip(*rows, strict=True))
        names = "id, workflow" if table == "passage" else "passage, value"
        connection.execute(
            f"INSERT INTO {table} ({names}) SELECT unnest($1::INTEGER[]), unnest($2::VARCHAR[])", [first, second]
        )

    def count(self, table: str, where: str = "", *values: str) -> tuple[int, Counts]:
        """Unique values and the most frequent ones."""
        grouped = f"SELECT value, count(*) AS n FROM {table} {where} GROUP BY value"
        unique = self._run(f"SELECT count(*) FROM ({grouped})", values).fetchone()[0]
        best = self._run(f"{grouped} ORDER BY n DESC, value LIMIT {LIMIT}", values).fetchall()
        return unique, [(value, count) for value, count in best]

    def of_workflow(self, table: str, workflow: str) -> tuple[int, Counts]:
        """The same of one workflow's passages."""
        return self.count(table, "WHERE passage IN (SELECT id FROM passage WHERE workflow = ?)", workflow)

    def naming(self, table: str, name: str) -> tuple[int, Counts]:
        """The same of the passages that name an entity."""
        return self.count(table, "WHERE passage IN (SELECT passage FROM entities WHERE value = ?)", name)

    def rows(self, names: Sequence[str]) -> int:
        """How many passages name any of some entities."""
        asked = ", ".join("?" * len(names))
        found = self._run(f"SELECT DISTINCT passage FROM entities WHERE value IN ({asked})", list(names)).fetchall()
        return len(found)

    def pairs(self) -> list[int]:
        """Passages of the most frequent pairs."""
        joined = (
            "SELECT count(*) AS n FROM entities a JOIN entities b ON a.passage = b.passage AND a.value < b.value "
            f"GROUP BY a.value, b.value ORDER BY n DESC LIMIT {LIMIT}"
        )
        return [count for (count,) in self._run(joined).fetchall()]


class Plain:
    """Counters over all passages."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages

    def count(self, table: str, passes: Callable[[Passage], bool] = lambda _: True) -> tuple[int, Counts]:
        """Unique values and the most frequent ones."""
        counts: Counter[str] = Counter()
        for passage in self._passages:
            if passes(passage):
                counts.update(passage.entities if table == "entities" else passage.codes)
        return len(counts), sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:LIMIT]

    def rows(self, names: Sequence[str]) -> int:
        """How many passages name any of some entities."""
        wanted = frozenset(names)
        return sum(not wanted.isdisjoint(passage.entities) for passage in self._passages)

    def pairs(self) -> list[int]:
        """Passages of the most frequent pairs."""
        counts = Counter(
            pair for passage in self._passages for pair in itertools.combinations(sorted(passage.entities), 2)
        )
        return [count for _, count in counts.most_common(LIMIT)]


# --- what is measured ---


def compare(what: str, runs: Sequence[tuple[str, Callable[[], Any]]]) -> None:
    """Time the same answer from each, the library's first."""
    answers = [run() for _, run in runs]
    if any(answer != answers[0] for answer in answers):
        sys.exit(f"{what}: the answers differ")
    times = median_ms(*(run for _, run in runs))
    cells = [f"{times[0]:9.3f} ms"]
    cells += [
        f"{name} {taken:9.2f} ms ({taken / times[0]:7.1f} x)"
        for (name, _), taken in zip(runs[1:], times[1:], strict=True)
    ]
    print(f"{what:44} {'   '.join(cells)}")


def counts_and_filters(reader: IndexReader, plain: Plain, peers: Sequence[tuple[str, Sql]]) -> None:
    """Facets and filters beside the peers."""
    facets = ShardFacets(reader)
    index = reader.current()
    hub, rare = "Name of 3", "Name of 40000"

    def ours(field: str, filters: Filters) -> Callable[[], tuple[int, Counts]]:
        def run() -> tuple[int, Counts]:
            index.scopes.clear()  # a filter that was not asked for before
            (found,) = facets.count([field], filters, limit=LIMIT, readable=EVERYTHING).fields
            return found.unique, list(found.values)

        return run

    for field in ("entities", "entity_codes"):
        everything = [("Counter", partial(plain.count, field))]
        everything += [(name, partial(sql.count, field)) for name, sql in peers]
        compare(f"count {field}, all", [("", ours(field, Filters())), *everything])
    workflow = [("Counter", lambda: plain.count("entities", lambda p: p.metadata["workflow_id"] == "w7"))]
    workflow += [(name, partial(sql.of_workflow, "entities", "w7")) for name, sql in peers]
    compare(
        "count entities, one workflow of 50",
        [("", ours("entities", Filters(metadata={"workflow_id": ("w7",)}))), *workflow],
    )
    naming = [("Counter", lambda: plain.count("entities", lambda p: hub in p.entities))]
    naming += [(name, partial(sql.naming, "entities", hub)) for name, sql in peers]
    compare(
        "count entities, where a frequent one is named", [("", ours("entities", Filters(entities=(hub,)))), *naming]
    )
    for what, names in (("a rare entity", [rare]), ("a frequent one or a rare one", [hub, rare])):
        filters = Filters(entities=tuple(names))
        others = [("loop", partial(plain.rows, names))]
        others += [(name, partial(sql.rows, names)) for name, sql in peers]
        compare(f"filter by {what}", [("", partial(fresh_scope, index, filters)), *others])


def fresh_scope(index: LoadedIndex, filters: Filters) -> int:
    """How many rows pass a filter that was not asked for before."""
    index.scopes.clear()
    return index.scope(row_filter(filters)).count


def graph(reader: IndexReader, plain: Plain, peers: Sequence[tuple[str, Sql]]) -> None:
    """The entity graph."""
    entities, everything = EntityGraph(reader), Filters()
    before = time.process_time()
    entities.neighbours("name of 3", everything, limit=LIMIT, show=0, readable=EVERYTHING)
    print(f"{'graph: made, with the first answer':44} {(time.process_time() - before) * 1000:9.2f} ms")
    for name in ("name of 0", "name of 3", "name of 40000"):
        found = entities.neighbours(name, everything, limit=LIMIT, readable=EVERYTHING)
        told = f"graph: {found.unique:,} neighbours, {LIMIT} with 3 passages"
        asked, bare = median_ms(
            partial(entities.neighbours, name, everything, limit=LIMIT, readable=EVERYTHING),
            partial(entities.neighbours, name, everything, limit=LIMIT, show=0, readable=EVERYTHING),
        )
        print(f"{told:44} {asked:9.2f} ms   (without passages {bare:.2f} ms)")
    for start, end in (("name of 3", "name of 40000"), ("name of 49000", "name of 40000")):
        found_paths = entities.paths(start, end, everything, max_hops=4, limit=5, readable=EVERYTHING)
        hops = len(found_paths.paths[0]) if found_paths.paths else 0
        ways = partial(entities.paths, start, end, everything, max_hops=4, limit=5, readable=EVERYTHING)
        (taken,) = median_ms(ways)
        print(f"{f'graph: 5 paths of {hops} hops and more':44} {taken:9.2f} ms")
    (unknown,) = median_ms(lambda: entities.neighbours("nane of 123", everything, limit=LIMIT, readable=EVERYTHING))
    print(f"{'graph: an unknown name, with the closest':44} {unknown:9.2f} ms")
    others: list[tuple[str, Callable[[], list[int]]]] = [("Counter", plain.pairs)]
    others += [(name, sql.pairs) for name, sql in peers if name == "DuckDB"]

    def ours() -> list[int]:
        return [
            tie.passages for tie in entities.cooccurring([], everything, limit=LIMIT, show=0, readable=EVERYTHING).ties
        ]

    compare(f"graph: the {LIMIT} most frequent pairs of all", [("", ours), *others])


def costs(store: CountingStore, passages: Sequence[Passage]) -> None:
    """What lists add to an index."""
    bare_store = index_of([passage.model_copy(update={"entities": (), "codes": ()}) for passage in passages])
    readers = [reader_of(store), reader_of(bare_store)]
    for reader in readers:
        reader.warm_up()
    index = readers[0].current()
    added = sum(segment.sections.size(name) for segment in index.segments for name in segment.lists.body_names())
    warm = sum(segment.sections.resident_bytes() for segment in index.segments)
    print(f"lists: {added / len(passages):.1f} bytes a passage, of {warm / len(passages):.0f} in memory")
    modes: tuple[SearchMode, ...] = ("hybrid", "dense", "keyword")
    for mode in modes:
        for what, min_score in (("ranked", 1.1), ("ranked, 10 shown", 0.0)):
            ours, bare = search_ms(readers, mode, min_score)
            told = f"search by no entity, {mode}, {what}"
            print(f"{told:44} {ours:9.3f} ms   without lists {bare:9.3f} ms ({ours / bare:.2f} x)")
    cold = reader_of(store, eager_bytes=0)
    cold.current()
    ranges, read = store.ranges, store.range_bytes
    cold.current().scope(row_filter(Filters(entities=("Name of 40000",))))
    print(f"cold filter by an entity: {store.ranges - ranges} ranges, {(store.range_bytes - read) / 1024:,.0f} KiB")
    for reader in (*readers, cold):
        reader.close()


class CountingStore(InMemoryStore):
    """A store in memory that counts the ranges that are read of it, and their bytes."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        super().__init__()
        self.objects = objects
        self.ranges = 0
        self.range_bytes = 0

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """The bytes, counted."""
        found = super().read_range(key, start, length)
        self.ranges += 1
        self.range_bytes += len(found)
        return found


def search_ms(readers: Sequence[IndexReader], mode: SearchMode, min_score: float) -> list[float]:
    """A warm search of each index, by turns; a score that none has shows none."""
    return [taken / 20 for taken in median_ms(*(partial(_search, reader, mode, min_score) for reader in readers))]


def _search(reader: IndexReader, mode: SearchMode, min_score: float) -> None:
    """Twenty searches."""
    retriever = ShardRetriever(reader, RandomEmbedder())
    for number in range(20):
        text = f"w{number * 997 % 20_000} w17 w{number * 7_919 % 9_000}"
        retriever.search(SearchQuery(text, Filters(), 10, min_score, mode, readable=EVERYTHING))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.facets", description=__doc__)
    parser.add_argument("--passages", type=int, default=100_000)
    count = parser.parse_args().passages
    passages = list(passages_of(count))
    before = time.process_time()
    store = CountingStore(index_of(passages).objects)
    print(f"{count:,} passages, {ENTITIES_A_PASSAGE} entities each; indexed in {time.process_time() - before:.0f} s")
    peers = [("SQLite", Sql(sqlite3.connect(":memory:", check_same_thread=False), passages))]
    if duckdb := peer("duckdb"):
        connection = duckdb.connect(":memory:", config={"threads": 1})
        peers.append(("DuckDB", Sql(connection, passages)))
    plain = Plain(passages)
    reader = reader_of(store)
    reader.warm_up()
    counts_and_filters(reader, plain, peers)
    graph(reader, plain, peers)
    reader.close()
    costs(store, passages)


if __name__ == "__main__":
    main()
