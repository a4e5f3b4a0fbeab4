"""Cold start: how long a function that has read nothing takes to its first result, over a store with S3's manners.

Each row is the median of fresh processes, a query each. The interpreter is up and everything is imported before the
clock starts (``benchmarks/import_time.py`` tells what that costs); the index, the store, its connections and its
threads are not made yet. ``first`` ends with the first result, texts included; ``second`` is another query right after
it; ``warm after`` counts from the clock's start until no search would read anything but texts; ``warm query`` is the
median of further ones then. GETs, megabytes, rounds and the chain are those of the first result; see
``benchmarks/s3_manners.py``. CPU is the process's up to the first result. Recall@10 is against all vectors, cold, over
64 queries.

LanceDB searches the same vectors and texts beside it, without an index up to 100k passages, and with IVF_PQ (nprobes
32, refine factor 10) and BM25.

    python -m benchmarks.cold_start --work /tmp/cold-start
    python -m benchmarks.cold_start --work /tmp/cold-start --sizes 100000 --presets usual --json cold.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cold_start_data import BUCKET, DIMENSIONS, MODEL_ID, TABLE, Prepared, Vectors, prepare
from benchmarks.s3_manners import PRESETS, Counts, Manners, Store, running

ROOT = Path(__file__).parents[1]
SIZES = (10_000, 100_000, 1_000_000)
UNINDEXED_UP_TO = 100_000
"""Passages that LanceDB searches without an index as well."""
TOP_K = 10
WARM_QUERIES = 20
WARM_BUDGET_S = 60.0
NPROBES, REFINE = 32, 10
INSTANT = Manners(first_byte_ms=0.0, connection_mb_s=10_000.0, total_mb_s=10_000.0)
"""Where recall is measured."""


@dataclass(frozen=True)
class Case:
    """Who searches, and how."""

    engine: str
    """``cicada``, or LanceDB's files: ``plain`` or ``indexed``."""
    mode: str

    @property
    def name(self) -> str:
        """As the table shows it."""
        engine = {"cicada": "Cicada", "plain": "LanceDB, no index", "indexed": "LanceDB, IVF_PQ + BM25"}[self.engine]
        return f"{engine}, {self.mode}"


@dataclass(frozen=True)
class Cold:
    """One fresh process. Times in seconds."""

    first_s: float
    first_cpu_s: float
    second_s: float
    warm_after_s: float | None
    warm_query_s: float | None
    counts: Counts


@dataclass(frozen=True)
class Row:
    """A case's medians. Times in seconds."""

    rows: int
    preset: str
    case: str
    gets: float
    megabytes: float
    rounds: float
    chain: float
    first_s: float
    first_best_s: float
    first_cpu_s: float
    second_s: float
    warm_after_s: float | None
    warm_query_s: float | None
    recall: float | None


Search = Callable[[int], list[int]]
"""The passages that a query, by its number, finds."""
Begin = Callable[[], tuple[Search, Callable[[], bool] | None]]
"""Opens the index: how to search it, and whether it is warm by now, if that can be told. All is imported already."""


# --- in the fresh process ---


def _cicada(mode: str, queries: Vectors, texts: Sequence[str], *, stays_cold: bool) -> Begin:
    from cicada.index.reader import IndexReader
    from cicada.index.s3_direct import DirectS3Store
    from cicada.retrieval.ports import SearchQuery
    from cicada.retrieval.shards import ShardRetriever
    from cicada.rights import EVERYTHING

    class ColdReader(IndexReader):
        """Loads nothing beside the searches."""

        def warm_soon(self) -> None:
            """Not at all."""

    vectors = dict(zip(texts, queries.tolist(), strict=True))

    class Embedder:
        model_id = MODEL_ID
        dimensions = DIMENSIONS

        def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:  # noqa: ARG002
            return [vectors[text] for text in texts]

    shared = DirectS3Store(BUCKET)  # many cold readers with connections of their own would be too many

    def begin() -> tuple[Search, Callable[[], bool] | None]:
        store = shared if stays_cold else DirectS3Store(BUCKET)
        kind = ColdReader if stays_cold else IndexReader
        reader = kind(store, embedding_model_id=MODEL_ID, dimensions=DIMENSIONS)
        retriever = ShardRetriever(reader, Embedder())

        def search(number: int) -> list[int]:
            query = SearchQuery(texts[number], top_k=TOP_K, min_score=0.0, mode=mode, readable=EVERYTHING)  # type: ignore[arg-type]
            return [int(hit.passage.id.removeprefix("p")) for hit in retriever.search(query).hits]

        return search, lambda: reader.current().warm

    return begin


def _lance(engine: str, mode: str, queries: Vectors, texts: Sequence[str]) -> Begin:
    import lancedb

    options = {
        "endpoint": os.environ["AWS_ENDPOINT_URL"],
        "allow_http": "true",
        "aws_access_key_id": "x",
        "aws_secret_access_key": "x",
        "region": os.environ["AWS_REGION"],
    }

    def begin() -> tuple[Search, Callable[[], bool] | None]:
        table = lancedb.connect(f"s3://{BUCKET}/lance-{engine}", storage_options=options).open_table(TABLE)

        def search(number: int) -> list[int]:
            match mode:
                case "keyword":
                    query: Any = table.search(texts[number], query_type="fts")
                case "hybrid":
                    query = table.search(query_type="hybrid").vector(queries[number]).text(texts[number])
                case _:
                    query = table.search(queries[number])
            if mode != "keyword":
                query = query.distance_type("cosine")
                if engine == "indexed":
                    query = query.nprobes(NPROBES).refine_factor(REFINE)
            return [found["id"] for found in query.select(["id", "text"]).limit(TOP_K).to_list()]

        return search, None

    return begin


def _begin(case: Case, prepared: Prepared, *, stays_cold: bool = False) -> Begin:
    queries, texts, _ = prepared.queries()
    if case.engine == "cicada":
        return _cicada(case.mode, queries, texts, stays_cold=stays_cold)
    return _lance(case.engine, case.mode, queries, texts)


def cold(case: Case, prepared: Prepared, store: Store, number: int) -> Cold:
    """Be the fresh process: search for the first time, and on until it is warm."""
    begin = _begin(case, prepared)
    cpu, begun = time.process_time(), time.monotonic()
    search, warm = begin()
    search(number)
    first_at = time.monotonic()
    first_cpu = time.process_time() - cpu
    search(number + 1)
    second_at = time.monotonic()
    warm_after: float | None = None
    if warm is not None:
        while not warm() and time.monotonic() - begun < WARM_BUDGET_S:
            time.sleep(0.002)
        warm_after = time.monotonic() - begun if warm() else None
    taken: list[float] = []
    for further in range(number + 2, number + 2 + WARM_QUERIES):
        before = time.monotonic()
        search(further)
        taken.append(time.monotonic() - before)
    return Cold(
        first_s=first_at - begun,
        first_cpu_s=first_cpu,
        second_s=second_at - first_at,
        warm_after_s=warm_after,
        warm_query_s=statistics.median(taken),
        counts=store.counts(until=first_at),
    )


def recall(case: Case, prepared: Prepared) -> float:
    """Of the ten nearest passages the share that is found, by searches that find nothing in memory."""
    _, _, nearest = prepared.queries()
    begin = _begin(case, prepared, stays_cold=True)
    found = [len(set(begin()[0](number)) & set(expected.tolist())) for number, expected in enumerate(nearest)]
    return sum(found) / nearest.size


# --- around it ---


def in_a_fresh_process(task: str, case: Case, prepared: Prepared, endpoint: str, number: int = 0) -> Any:
    """Have a task done by a process of its own; one thread for numpy, as a function has."""
    told = {"task": task, "number": number, "folder": str(prepared.folder), "rows": prepared.rows, **asdict(case)}
    environment = os.environ | {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_REGION": "us-east-1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "layers" / "cicada" / "python"))),
    }
    command = [sys.executable, "-m", "benchmarks.cold_start", "--as-process", json.dumps(told)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{case.name} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def as_process(told: Mapping[str, Any]) -> None:
    """Do the task that :func:`in_a_fresh_process` gave, and print what came of it."""
    prepared = Prepared(Path(told["folder"]), told["rows"])
    case = Case(told["engine"], told["mode"])
    if told["task"] == "recall":
        print(json.dumps(recall(case, prepared)))
    else:
        print(json.dumps(asdict(cold(case, prepared, Store(os.environ["AWS_ENDPOINT_URL"]), told["number"]))))
    sys.stdout.flush()
    os._exit(0)  # nothing is left to tidy up, and a thread of LanceDB's may hang


def measured(case: Case, prepared: Prepared, preset: str, runs: int, recalls: Mapping[Case, float]) -> Row:
    """The medians of some fresh processes."""
    colds: list[Cold] = []
    for number in range(runs):
        with running(prepared.buckets, PRESETS[preset]) as store:
            told = in_a_fresh_process("cold", case, prepared, store.endpoint, number)
        colds.append(Cold(**(told | {"counts": Counts(**told["counts"])})))

    def median(of: Callable[[Cold], float]) -> float:
        return statistics.median(map(of, colds))

    def optional(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.median(known) if len(known) == len(values) else None

    return Row(
        rows=prepared.rows,
        preset=preset,
        case=case.name,
        gets=median(lambda one: one.counts.gets + one.counts.heads + one.counts.lists),
        megabytes=median(lambda one: one.counts.bytes / 1e6),
        rounds=median(lambda one: one.counts.rounds),
        chain=median(lambda one: one.counts.chain),
        first_s=median(lambda one: one.first_s),
        first_best_s=min(one.first_s for one in colds),
        first_cpu_s=median(lambda one: one.first_cpu_s),
        second_s=median(lambda one: one.second_s),
        warm_after_s=optional([one.warm_after_s for one in colds]),
        warm_query_s=optional([one.warm_query_s for one in colds]),
        recall=recalls.get(case),
    )


def cases(rows: int, *, lance: bool) -> list[Case]:
    """What is measured at a size."""
    found = [Case("cicada", mode) for mode in ("dense", "keyword", "hybrid")]
    if lance and rows <= UNINDEXED_UP_TO:
        found.append(Case("plain", "dense"))
    if lance and rows >= UNINDEXED_UP_TO:
        found += [Case("indexed", mode) for mode in ("dense", "keyword", "hybrid")]
    return found


def _line(row: Row, base_s: float) -> str:
    def told(value: float | None, scale: float, form: str) -> str:
        return "-" if value is None else format(value * scale, form)

    return (
        f"{row.case:32}{row.gets:>6.0f}{row.megabytes:>8.1f}{row.rounds:>8.0f}{row.chain:>7.0f}"
        f"{row.first_s:>9.3f}{row.first_best_s:>8.3f}{row.first_s / base_s:>8.2f}{row.first_cpu_s * 1000:>9.0f}"
        f"{row.second_s:>10.3f}{told(row.warm_after_s, 1, '.3f'):>14}{told(row.warm_query_s, 1000, '.1f'):>15}"
        f"{told(row.recall, 1, '.3f'):>11}"
    )


HEADINGS = (
    f"{'':32}{'GETs':>6}{'MB':>8}{'rounds':>8}{'chain':>7}{'first s':>9}{'best':>8}{'ratio':>8}{'CPU ms':>9}"
    f"{'second s':>10}{'warm after s':>14}{'warm query ms':>15}{'recall@10':>11}"
)


def main(argv: list[str] | None = None) -> int:
    """Prepare what is missing, measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="a folder for the corpora; 2.5 GB at a million passages")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="passages (default: %(default)s)")
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=tuple(PRESETS), help="the store's manners")
    parser.add_argument("--runs", type=int, default=7, help="fresh processes a row (default: %(default)s)")
    parser.add_argument("--no-lancedb", action="store_true", help="measure Cicada alone")
    parser.add_argument("--no-recall", action="store_true", help="do not measure recall")
    parser.add_argument("--json", type=Path, help="where to write the rows as well")
    parser.add_argument("--as-process", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.as_process:
        as_process(json.loads(args.as_process))
    if args.work is None:
        parser.error("--work is required")
    rows: list[Row] = []
    for size in args.sizes:
        asked = cases(size, lance=not args.no_lancedb)
        lance = dict.fromkeys(case.engine for case in asked if case.engine != "cicada")
        prepared = prepare(args.work, size, lance)
        recalls: dict[Case, float] = {}
        if not args.no_recall:
            with running(prepared.buckets, INSTANT) as store:
                for case in asked:
                    if case.mode == "dense":
                        recalls[case] = in_a_fresh_process("recall", case, prepared, store.endpoint)
        for preset in args.presets:
            manners = PRESETS[preset]
            print(
                f"\n{size:,} x {DIMENSIONS}, {preset} store: first byte {manners.first_byte_ms:g} ms, "
                f"{manners.connection_mb_s:g} MB/s a connection, {manners.total_mb_s:g} MB/s in all\n{HEADINGS}"
            )
            of_preset: list[Row] = []
            for case in asked:
                of_preset.append(measured(case, prepared, preset, args.runs, recalls))
                print(_line(of_preset[-1], of_preset[0].first_s), flush=True)
            rows += of_preset
    if args.json is not None:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
