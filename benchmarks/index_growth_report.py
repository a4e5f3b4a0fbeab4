"""What the growth benchmark's figures come to: costs, the table, and the plot's lines.

Prices are those of us-east-1, list, on demand; S3 Vectors' come from third parties, not from a bill.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cold_start_data import DIMENSIONS
from benchmarks.index_growth_chart import Line, Panel
from cicada_evaluation.fees import read_fees

MEMORY_STEPS_MB = (512, 1024, 1769, 2048, 3072, 4096, 6144, 8192, 10_240)
"""Of which the least that leaves :data:`HEADROOM` is taken."""
HEADROOM = 1.25
CPU_MB = 1769
"""Memory that comes with one whole CPU; with less, a share. Source: AWS Lambda Developer Guide, "Configure Lambda
function memory"."""

# List prices of us-east-1, US dollars, 2026-11-20: aws.amazon.com/s3/pricing and aws.amazon.com/lambda/pricing.
S3_GB_MONTH_USD = 0.023
S3_GET_USD = 0.0004 / 1000
LAMBDA_GB_S_USD = 0.0000133334
"""arm64, the first tier."""
# As third parties tell them: exploreagentic.ai/insights/s3-vectors-enterprise-rag (read in November 2026). What a query
# costs stands in cicada_evaluation/fees.json.
S3_VECTORS_GB_MONTH_USD = 0.06
S3_VECTORS_GB_WRITTEN_USD = 0.20
GB = 2**30


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
    search_gb_s_texts_in_memory: float | None
    storage_month: float
    gets_of_1000_cold_starts: float
    million_searches: float
    million_searches_texts_in_memory: float | None
    vectors_storage_month: float
    vectors_load: float
    vectors_million_searches: float


def costs(growth: Growth, rest_mb: float) -> Costs:
    """What a size costs, here and with S3 Vectors."""
    needed = HEADROOM * (growth.replaced["after"]["peak"] + rest_mb)
    memory_mb = next((step for step in MEMORY_STEPS_MB if step >= needed), MEMORY_STEPS_MB[-1])
    slower = max(1.0, CPU_MB / memory_mb)
    search_s = slower * statistics.median(growth.served["search_cpu_ms"]["hybrid"]) / 1000
    search_gb_s = memory_mb / 1024 * (search_s + statistics.median(growth.served["text_s"]))
    in_memory: float | None = None
    if growth.with_texts is not None:
        text_s = slower * statistics.median(growth.with_texts["text_cpu_ms"]) / 1000
        in_memory = memory_mb / 1024 * (search_s + text_s)
    gets_usd = growth.served["text_gets"] * S3_GET_USD
    fees = read_fees()
    vector_bytes = 4 * DIMENSIONS + growth.added["passage_bytes"]
    return Costs(
        memory_mb=memory_mb,
        search_gb_s=search_gb_s,
        search_gb_s_texts_in_memory=in_memory,
        storage_month=growth.stored_bytes / GB * S3_GB_MONTH_USD,
        gets_of_1000_cold_starts=1000 * growth.served["warm_gets"] * S3_GET_USD,
        million_searches=1e6 * (search_gb_s * LAMBDA_GB_S_USD + gets_usd),
        million_searches_texts_in_memory=None if in_memory is None else 1e6 * in_memory * LAMBDA_GB_S_USD,
        vectors_storage_month=growth.rows * vector_bytes / GB * S3_VECTORS_GB_MONTH_USD,
        vectors_load=growth.rows * vector_bytes / GB * S3_VECTORS_GB_WRITTEN_USD,
        vectors_million_searches=1e6 * fees.usd_per_query("s3vectors", vectors=growth.rows, dimensions=DIMENSIONS),
    )


def _mb(count: float) -> str:
    return f"{count / 1e6:,.1f}" if count < 100e6 else f"{count / 1e6:,.0f}"


def _usd(amount: float | None) -> str:
    if amount is None:
        return "-"
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
        return f"{ours:.2f} / {flat:.2f} = {ours / flat:.2f}"

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
    yield row("peak, every segment replaced", lambda growth: f"{growth.replaced['after']['peak']:,.0f}")
    yield row("- and the function around it", lambda growth: f"{growth.replaced['after']['peak'] + rest:,.0f}")
    yield heading("Warm search, CPU ms, p50 / p99")
    for mode in ("hybrid", "dense", "keyword"):
        yield row(mode, lambda growth, mode=mode: cpu(growth, mode))  # type: ignore[misc]
    yield row("texts of ten hits from S3, ms waited", lambda growth: text_read(growth.served, "text_s", 1000))
    yield row("- of it CPU ms", lambda growth: text_read(growth.served, "text_cpu_ms", 1))
    yield row("texts in memory, CPU ms", lambda growth: text_read(growth.with_texts, "text_cpu_ms", 1))
    yield row("dense / FAISS Flat, p50, in turns", lambda growth: peer(growth, ratio))
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
    yield row(
        "a million searches, texts in memory",
        lambda growth: _usd(costs_of[growth.rows].million_searches_texts_in_memory),
    )
    yield row("S3 Vectors: storage a month", lambda growth: _usd(costs_of[growth.rows].vectors_storage_month))
    yield row("S3 Vectors: loading it once", lambda growth: _usd(costs_of[growth.rows].vectors_load))
    yield row("S3 Vectors: a million searches", lambda growth: _usd(costs_of[growth.rows].vectors_million_searches))


def panels(report: Report) -> list[Panel]:
    """The figures that the plot shows."""

    def line(name: str, of: Callable[[Growth], float | None], *, dashed: bool = False) -> Line:
        values = [(growth.rows, of(growth)) for growth in report.sizes]
        return Line(name, [(rows, value) for rows, value in values if value], dashed)

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
                line("hybrid", searched("hybrid")),
                line("dense", searched("dense")),
                line("FAISS Flat", flat, dashed=True),
                line("keyword", searched("keyword")),
            ],
        ),
        Panel(
            "Costs, US dollars",
            [
                line("1M searches", lambda growth: priced[growth.rows].million_searches),
                line("S3 Vectors", lambda growth: priced[growth.rows].vectors_million_searches, dashed=True),
                line("in memory", lambda growth: priced[growth.rows].million_searches_texts_in_memory),
                line("stored a month", lambda growth: priced[growth.rows].storage_month),
                line("S3 Vectors'", lambda growth: priced[growth.rows].vectors_storage_month, dashed=True),
            ],
        ),
    ]
    return [Panel(panel.title, [line for line in panel.lines if line.points]) for panel in found]
