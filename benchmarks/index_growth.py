"""How the index grows: bytes in S3, memory, cold and warm time, publishing and costs, from 10,000 passages to a million.

Everything is done by fresh processes, over a store with S3's manners (``benchmarks/s3_manners.py``), with the corpora of
the cold start benchmark (384 dimensions, texts of 12 to 36 words, about 170 characters; segments of 250,000).
Texts stay in S3 unless the table says otherwise.

``first result`` is a hybrid search, its texts included, of a process that has read nothing, interpreter and imports
left out; ``warm after`` counts from the same begin until no search reads anything but texts. ``resident`` is what the
kernel tells of the process when it is warm and has searched; ``peak``, the most it ever was. ``all segments replaced``
is a warm reader under which a version was published that shares nothing with the one before: for a moment it holds
both. ``+ function`` adds what the answer function's other imports take. Searches are CPU time of one query on one
thread, the query's vector given, texts apart. Every process of a reader runs under ``RLIMIT_DATA``.

FAISS's exact scan of float32 (``IndexFlatIP``) takes turns with the searches by meaning alone in a process of its own.

    python -m benchmarks.index_growth --work /tmp/index-growth
    python -m benchmarks.index_growth --work /tmp/index-growth --json growth.json --plot growth.svg
    python -m benchmarks.index_growth --from-json growth.json --plot growth.svg

Prices are those of us-east-1, list, on demand; S3 Vectors' come from third parties, not from a bill.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cold_start_data import BUCKET, DIMENSIONS, Prepared, prepare
from benchmarks.import_time import CASES, ENVIRONMENT
from benchmarks.index_growth_chart import Line, Panel, chart
from benchmarks.index_growth_process import BLOCKS, Task
from benchmarks.s3_manners import PRESETS, Manners, running
from clients.evaluation.fees import read_fees

ROOT = Path(__file__).parents[1]
SIZES = (10_000, 31_623, 100_000, 316_228, 1_000_000)
QUERIES = 256
FUNCTION_MB = 2048
"""Of the function that a million passages are to fit into, in MiB."""
LIMIT_MB = FUNCTION_MB - 256
"""Of a reader's writable mappings: the rest of the function is given an eighth."""
TEXTS_IN_MEMORY_BYTES = 256 * 2**20
"""What the reader holds of texts at most unless it is told otherwise (``cicada.index.reader.TEXT_BYTES``)."""
MEMORY_STEPS_MB = (512, 1024, 1769, 2048, 3072, 4096, 6144, 8192, 10_240)
"""Of which the least that leaves :data:`HEADROOM` is taken."""
HEADROOM = 1.25
CPU_MB = 1769
"""Memory that comes with one whole CPU; with less, a share. Source: AWS Lambda Developer Guide, "Configure Lambda
function memory"."""

# List prices of us-east-1, US dollars, as of 2026-11-20. Sources: aws.amazon.com/s3/pricing, aws.amazon.com/lambda/pricing.
S3_GB_MONTH_USD = 0.023
S3_GET_USD = 0.0004 / 1000
LAMBDA_GB_S_USD = 0.0000133334
"""arm64, the first tier."""
# As third parties tell them: exploreagentic.ai/insights/s3-vectors-enterprise-rag (read in November 2026). What a query
# costs stands in clients/evaluation/fees.json.
S3_VECTORS_GB_MONTH_USD = 0.06
S3_VECTORS_GB_WRITTEN_USD = 0.20
GB = 2**30

INSTANT = Manners(first_byte_ms=0.0, connection_mb_s=10_000.0, total_mb_s=10_000.0)
KINDS = {
    "codes": "vectors.codes",
    "rows": "vectors.rows",
    "exact": "vectors.exact",
    "lexical": "lexical.",
    "texts": "passages.",
    "columns": "columns.",
    "digests of rows": "rows.",
}
"""What lies in a segment, by the begin of its sections' names."""


@dataclass(frozen=True)
class Growth:
    """What was measured at one size: the medians of fresh processes."""

    rows: int
    stored_bytes: int
    """Every object."""
    by_kind: dict[str, int]
    segments: int
    served: dict[str, Any]
    """Medians of :class:`benchmarks.index_growth_process.Served`, and the searches of all processes."""
    first_s: list[float]
    """Of every process."""
    with_texts: dict[str, Any] | None
    """The same with the texts in memory, where they fit."""
    replaced: dict[str, Any]
    added: dict[str, Any]
    peer: dict[str, Any] | None


@dataclass(frozen=True)
class Report:
    """Everything that the table and the plot show."""

    machine: str
    store: str
    runs: int
    limit_mb: int
    function_mb: float
    """Resident when the answer function has been imported, beyond what a reader's process has."""
    sizes: list[Growth]


# --- measuring ---


def in_a_process(task: Task, buckets: Path, manners: Manners) -> dict[str, Any]:
    """Have a task done by a process of its own, over a store of its own; one thread for numpy, as a function has."""
    with running(buckets, manners) as store:
        environment = os.environ | {
            "AWS_ENDPOINT_URL": store.endpoint,
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "layers" / "cicada" / "python"))),
        }
        command = [sys.executable, "-m", "benchmarks.index_growth_process"]
        done = subprocess.run(
            command, input=json.dumps(asdict(task)), env=environment, cwd=ROOT, capture_output=True, text=True
        )
    if done.returncode:
        raise SystemExit(f"{task.name} at {task.rows:,} passages failed:\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def scratch_copy(prepared: Prepared) -> Iterator[Prepared]:
    """The same index in a folder of its own, to write to; objects that stay the same are not copied."""
    folder = prepared.folder.with_name(f"{prepared.folder.name}-written")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared.buckets / BUCKET / "index", folder / "buckets" / BUCKET / "index", copy_function=os.link)
    for name in ("queries.npy", "queries.json"):
        os.link(prepared.folder / name, folder / name)
    try:
        yield Prepared(folder, prepared.rows)
    finally:
        shutil.rmtree(folder)


def medians(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of each figure; what is in a list already is put together."""
    told: dict[str, Any] = {}
    for name, first in found[0].items():
        values = [one[name] for one in found]
        if isinstance(first, dict):
            told[name] = medians(values)
        elif isinstance(first, list):
            told[name] = [value for one in values for value in one]
        else:
            told[name] = statistics.median(values)
    return told


def measure(prepared: Prepared, runs: int, limit_mb: int, *, faiss: bool) -> Growth:
    """All figures of one size."""
    _, _, block = next(prepared.blocks())
    texts = [" ".join(dict.fromkeys(text.split()[:4])) for text in block[:QUERIES]]
    usual = PRESETS["usual"]

    def done(name: str, of: Prepared = prepared, manners: Manners = usual, **told: Any) -> dict[str, Any]:
        return in_a_process(Task(name, str(of.folder), of.rows, texts, **told), of.buckets, manners)

    served = [done("serve", number=number, limit_mb=limit_mb) for number in range(runs)]
    first = served[0]
    fits = first["section_bytes"][BLOCKS] <= TEXTS_IN_MEMORY_BYTES
    with_texts = done("serve", text_bytes=TEXTS_IN_MEMORY_BYTES, limit_mb=limit_mb) if fits else None
    with scratch_copy(prepared) as copy:
        replaced = done("replace", copy, limit_mb=limit_mb)
    added = []
    for _ in range(runs):
        with scratch_copy(prepared) as copy:
            added.append(done("publish", copy))
    by_kind = {
        kind: sum(size for name, size in first["section_bytes"].items() if name.startswith(begin))
        for kind, begin in KINDS.items()
    }
    index = prepared.buckets / BUCKET / "index"
    return Growth(
        rows=prepared.rows,
        stored_bytes=sum(path.stat().st_size for path in index.rglob("*") if path.is_file()),
        by_kind=by_kind | {"heads": first["head_bytes"]},
        segments=first["segments"],
        served=medians(served),
        first_s=[one["first_s"] for one in served],
        with_texts=with_texts,
        replaced=replaced,
        added=medians(added),
        peer=done("peer", manners=INSTANT) if faiss else None,
    )


def function_mb() -> float:
    """What the answer function's imports take beyond those of a reader, resident, in MiB."""

    def resident(code: str) -> float:
        code += "\nimport os; print(open('/proc/self/status').read(), flush=True); os._exit(0)"
        environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(ROOT / "layers" / "cicada" / "python")}
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
        return next(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("VmRSS:")) / 1024

    return resident(CASES["answer"]) - resident(CASES["the search path alone"])


# --- what follows from it ---


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


@dataclass(frozen=True)
class Costs:
    """US dollars."""

    memory_mb: int
    """``answerMemoryMb``: the least step that leaves room for a version in which everything is new."""
    search_gb_s: float
    """Of a warm hybrid search and its texts, read from S3."""
    storage_month: float
    gets_of_1000_cold_starts: float
    million_searches: float
    vectors_storage_month: float
    vectors_load: float
    vectors_million_searches: float


def costs(growth: Growth, rest_mb: float) -> Costs:
    """What a size costs, here and with S3 Vectors."""
    needed = HEADROOM * (growth.replaced["after"]["peak"] + rest_mb)
    memory_mb = next((step for step in MEMORY_STEPS_MB if step >= needed), MEMORY_STEPS_MB[-1])
    cpu_ms = statistics.median(growth.served["search_cpu_ms"]["hybrid"])
    billed_s = cpu_ms / 1000 * max(1.0, CPU_MB / memory_mb) + statistics.median(growth.served["text_s"])
    fees = read_fees()
    vector_bytes = 4 * DIMENSIONS + growth.added["passage_bytes"]
    return Costs(
        memory_mb=memory_mb,
        search_gb_s=memory_mb / 1024 * billed_s,
        storage_month=growth.stored_bytes / GB * S3_GB_MONTH_USD,
        gets_of_1000_cold_starts=1000 * growth.served["warm_gets"] * S3_GET_USD,
        million_searches=1e6 * (memory_mb / 1024 * billed_s * LAMBDA_GB_S_USD + growth.served["text_gets"] * S3_GET_USD),
        vectors_storage_month=growth.rows * vector_bytes / GB * S3_VECTORS_GB_MONTH_USD,
        vectors_load=growth.rows * vector_bytes / GB * S3_VECTORS_GB_WRITTEN_USD,
        vectors_million_searches=1e6 * fees.usd_per_query("s3vectors", vectors=growth.rows, dimensions=DIMENSIONS),
    )


def _mb(count: float) -> str:
    return f"{count / 1e6:,.1f}" if count < 100e6 else f"{count / 1e6:,.0f}"


def _usd(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.4f}"


def table(report: Report) -> Iterator[str]:
    """The figures as a table in Markdown, a column a size."""
    rest = report.function_mb
    sizes = report.sizes

    def row(name: str, of: Callable[[Growth], str]) -> str:
        return f"| {name} | " + " | ".join(of(growth) for growth in sizes) + " |"

    def heading(name: str) -> str:
        return f"| **{name}** |" + " |" * len(sizes)

    def cpu(growth: Growth, mode: str) -> str:
        values = growth.served["search_cpu_ms"][mode]
        return f"{statistics.median(values):.2f} / {percentile(values, 0.99):.2f}"

    def text_read(served: dict[str, Any] | None, of: str, scale: float) -> str:
        return "-" if served is None else f"{scale * statistics.median(served[of]):.1f}"

    def peer(growth: Growth, told: Callable[[dict[str, Any]], str]) -> str:
        return "-" if growth.peer is None else told(growth.peer)

    def ratio(found: dict[str, Any]) -> str:
        ours, flat = statistics.median(found["ours_cpu_ms"]), statistics.median(found["flat_cpu_ms"])
        return f"{ours:.2f} / {flat:.2f} = 1/{flat / ours:.1f}"

    yield row("passages", lambda growth: f"{growth.rows:,}")
    yield "| --- |" + " ---: |" * len(sizes)
    yield heading("Stored in S3, MB")
    yield row("all objects", lambda growth: _mb(growth.stored_bytes))
    for kind in sizes[0].by_kind:
        yield row(f"- {kind}", lambda growth, kind=kind: _mb(growth.by_kind[kind]))  # type: ignore[misc]
    yield row("segments", lambda growth: f"{growth.segments}")
    yield heading("Cold")
    yield row("first result, s", lambda growth: f"{growth.served['first_s']:.3f}")
    yield row("- of it CPU, s", lambda growth: f"{growth.served['first_cpu_s']:.3f}")
    yield row("- GETs", lambda growth: f"{growth.served['first_gets']:.0f}")
    yield row("- MB read", lambda growth: _mb(growth.served["first_bytes"]))
    yield row("warm after, s", lambda growth: f"{growth.served['warm_after_s']:.2f}")
    yield row("- GETs", lambda growth: f"{growth.served['warm_gets']:.0f}")
    yield row("- MB read", lambda growth: _mb(growth.served["warm_bytes"]))
    yield heading("Memory, MiB")
    yield row("sections and heads", lambda growth: f"{growth.served['resident_bytes'] / 2**20:,.0f}")
    yield row("resident, anonymous", lambda growth: f"{growth.served['warm']['anonymous']:,.0f}")
    yield row("peak, all pages", lambda growth: f"{growth.served['warm']['peak']:,.0f}")
    yield row("writable mappings", lambda growth: f"{growth.served['warm']['mapped']:,.0f}")
    yield row(
        "resident, anonymous, texts in memory",
        lambda growth: f"{growth.with_texts['warm']['anonymous']:,.0f}" if growth.with_texts else "do not fit",
    )
    yield row("peak, all segments replaced", lambda growth: f"{growth.replaced['after']['peak']:,.0f}")
    yield row("peak, all segments replaced, + function", lambda growth: f"{growth.replaced['after']['peak'] + rest:,.0f}")
    yield heading("Warm search, CPU ms, p50 / p99")
    for mode in ("hybrid", "dense", "keyword"):
        yield row(mode, lambda growth, mode=mode: cpu(growth, mode))  # type: ignore[misc]
    yield row("texts of ten hits from S3, ms waited", lambda growth: text_read(growth.served, "text_s", 1000))
    yield row("- of it CPU ms", lambda growth: text_read(growth.served, "text_cpu_ms", 1))
    yield row("texts in memory, CPU ms", lambda growth: text_read(growth.with_texts, "text_cpu_ms", 1))
    yield row("dense beside FAISS Flat", lambda growth: peer(growth, ratio))
    yield row("recall@10 of dense", lambda growth: peer(growth, lambda found: f"{found['recall']:.3f}"))
    yield row("MB of FAISS Flat", lambda growth: peer(growth, lambda found: _mb(found["flat_bytes"])))
    yield heading("Publishing 100 more")
    yield row("s", lambda growth: f"{growth.added['wall_s']:.2f}")
    yield row("- of it CPU, s", lambda growth: f"{growth.added['cpu_s']:.2f}")
    yield row("MB read", lambda growth: _mb(growth.added["bytes"]))
    yield row("peak of the writer, MiB", lambda growth: f"{growth.added['memory']['peak']:,.0f}")
    yield heading("Costs, USD")
    costs_of = {growth.rows: costs(growth, rest) for growth in sizes}
    yield row("`answerMemoryMb` that it needs", lambda growth: f"{costs_of[growth.rows].memory_mb:,}")
    yield row("storage a month", lambda growth: _usd(costs_of[growth.rows].storage_month))
    yield row("GETs of 1,000 cold starts", lambda growth: _usd(costs_of[growth.rows].gets_of_1000_cold_starts))
    yield row("GB-s a search", lambda growth: f"{costs_of[growth.rows].search_gb_s:.3f}")
    yield row("a million searches", lambda growth: _usd(costs_of[growth.rows].million_searches))
    yield row("S3 Vectors: storage a month", lambda growth: _usd(costs_of[growth.rows].vectors_storage_month))
    yield row("S3 Vectors: loading it once", lambda growth: _usd(costs_of[growth.rows].vectors_load))
    yield row("S3 Vectors: a million searches", lambda growth: _usd(costs_of[growth.rows].vectors_million_searches))


def panels(report: Report) -> list[Panel]:
    """The figures that the plot shows."""

    def line(name: str, of: Callable[[Growth], float | None]) -> Line:
        values = [(growth.rows, of(growth)) for growth in report.sizes]
        return Line(name, [(rows, value) for rows, value in values if value])

    def searched(mode: str) -> Callable[[Growth], float]:
        return lambda growth: statistics.median(growth.served["search_cpu_ms"][mode])

    def flat(growth: Growth) -> float | None:
        return statistics.median(growth.peer["flat_cpu_ms"]) if growth.peer else None

    priced = {growth.rows: costs(growth, report.function_mb) for growth in report.sizes}
    found = [
        Panel(
            "Size, MB",
            [
                line("in S3", lambda growth: growth.stored_bytes / 1e6),
                line("resident", lambda growth: growth.served["warm"]["anonymous"] * 2**20 / 1e6),
                line("read cold", lambda growth: growth.served["first_bytes"] / 1e6),
            ],
        ),
        Panel(
            "Waiting, seconds",
            [
                line("warm after", lambda growth: growth.served["warm_after_s"]),
                line("100 more", lambda growth: growth.added["wall_s"]),
                line("first result", lambda growth: growth.served["first_s"]),
            ],
        ),
        Panel(
            "Warm search, CPU ms",
            [
                line("FAISS Flat", flat),
                line("hybrid", searched("hybrid")),
                line("dense", searched("dense")),
                line("keyword", searched("keyword")),
            ],
        ),
        Panel(
            "Costs, US dollars",
            [
                line("1M searches", lambda growth: priced[growth.rows].million_searches),
                line("... S3 Vectors", lambda growth: priced[growth.rows].vectors_million_searches),
                line("storage/month", lambda growth: priced[growth.rows].storage_month),
                line("... S3 Vectors", lambda growth: priced[growth.rows].vectors_storage_month),
            ],
        ),
    ]
    return [Panel(panel.title, [line for line in panel.lines if line.points]) for panel in found]


def main(argv: list[str] | None = None) -> int:
    """Prepare what is missing, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="a folder for the corpora; 2 GB for all sizes")
    parser.add_argument(
        "--sizes", type=lambda told: tuple(map(int, told.split(","))), default=SIZES, help="passages, by commas"
    )
    parser.add_argument("--runs", type=int, default=5, help="fresh processes a figure (default: %(default)s)")
    parser.add_argument("--limit-mb", type=int, default=LIMIT_MB, help="RLIMIT_DATA of readers (default: %(default)s)")
    parser.add_argument("--no-faiss", action="store_true", help="without the peer")
    parser.add_argument("--json", type=Path, help="where to write the figures as well")
    parser.add_argument("--plot", type=Path, help="where to write the plot, an SVG")
    parser.add_argument("--from-json", type=Path, help="measure nothing: show what --json wrote")
    args = parser.parse_args(argv)
    if args.from_json is not None:
        told = json.loads(args.from_json.read_text())
        report = Report(**(told | {"sizes": [Growth(**one) for one in told["sizes"]]}))
    elif args.work is None:
        parser.error("--work is required")
    else:
        manners = PRESETS["usual"]
        report = Report(
            machine=f"{os.cpu_count()} cores, {platform.machine()}",
            store=f"first byte {manners.first_byte_ms:g} ms, {manners.connection_mb_s:g} MB/s a connection, "
            f"{manners.total_mb_s:g} MB/s in all",
            runs=args.runs,
            limit_mb=args.limit_mb,
            function_mb=function_mb(),
            sizes=[],
        )
        for size in args.sizes:
            prepared = prepare(args.work, size)
            report.sizes.append(measure(prepared, args.runs, args.limit_mb, faiss=not args.no_faiss))
            print(f"{size:,} passages: measured", file=sys.stderr, flush=True)
    print(
        f"{report.machine}; {report.store}; {report.runs} fresh processes a figure, {QUERIES} queries each; "
        f"RLIMIT_DATA {report.limit_mb:,} MiB; the rest of the answer function takes {report.function_mb:.0f} MiB\n"
    )
    print("\n".join(table(report)))
    if args.json is not None:
        args.json.write_text(json.dumps(asdict(report), indent=1))
    if args.plot is not None:
        args.plot.write_text(chart(panels(report)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
