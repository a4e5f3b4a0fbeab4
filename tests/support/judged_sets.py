"""Small judged sets on disk, and reports about them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from cicada_evaluation.report import Latency, MeanEstimate, ModeResult, QueryResult, Report, ReportedCost, SetResult

DOCUMENTS = {
    "d1": ("Bells", "the fog bell rings at night"),
    "d2": ("", "the ferry leaves the jetty at noon"),
    "d3": ("Ledger", "a green ledger lies on the desk"),
    "d4": ("Clock", "the hall clock stopped at three"),
}
QUERIES = {"q1": "fog bell", "q2": "green ledger", "q3": "when did the clock stop", "q4": "nobody judged this"}
JUDGEMENTS = {"q1": {"d1": 3, "d4": 1}, "q2": {"d3": 2}, "q3": {"d4": 1, "d1": 0}}


def write_beir(
    folder: Path,
    documents: Mapping[str, tuple[str, str]] = DOCUMENTS,
    queries: Mapping[str, str] = QUERIES,
    judgements: Mapping[str, Mapping[str, int]] = JUDGEMENTS,
) -> Path:
    """A set in BEIR's layout."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"_id": name, "title": title, "text": text} for name, (title, text) in documents.items()]
    write_lines(folder / "corpus.jsonl", map(json.dumps, rows))
    write_lines(folder / "queries.jsonl", (json.dumps({"_id": name, "text": text}) for name, text in queries.items()))
    judged = [f"{query}\t{name}\t{gain}" for query, gains in judgements.items() for name, gain in gains.items()]
    write_lines(folder / "qrels.tsv", ["query-id\tcorpus-id\tscore", *judged])
    return folder


def write_lines(file: Path, lines: object) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")  # type: ignore[attr-defined]
    return file


def make_report(values: Mapping[str, Mapping[str, Sequence[float]]], *, digest: str = "same") -> Report:
    """A report of one measure, ``ndcg@10``, with a value a query: by set and mode."""
    return Report(
        created_at="2026-01-01T00:00:00+00:00",
        cicada_version="0",
        embedding_model_id="test.words",
        dimensions=64,
        price_date="2026-01-01",
        seed=0,
        sets=tuple(_set(name, modes, digest) for name, modes in values.items()),
    )


def _set(name: str, modes: Mapping[str, Sequence[float]], digest: str) -> SetResult:
    return SetResult(
        name=name,
        kind="beir",
        judgements_digest=digest,
        corpus_digest="corpus",
        left_out=0,
        notes=(),
        indexing=None,
        embedding=None,
        modes=tuple(_mode(mode, found) for mode, found in modes.items()),
    )


def _mode(mode: str, values: Sequence[float]) -> ModeResult:
    mean = sum(values) / len(values)
    return ModeResult(
        mode=mode,
        engine="shards",
        index_version="v1",
        estimates={"ndcg@10": MeanEstimate(mean=mean, low=max(0.0, mean - 0.05), high=min(1.0, mean + 0.05))},
        search=Latency(median_ms=2.0, p95_ms=5.0),
        cost=ReportedCost(embedding_usd=0.0, engine_usd=0.0, usd_per_1000_queries=0.0),
        degraded={},
        queries=tuple(
            QueryResult(id=f"q{number}", values={"ndcg@10": value}, search_ms=2.0, top=("d1",))
            for number, value in enumerate(values)
        ),
    )
